//! Sizes of sets of sources: of a scheduler package (paper 1, §6.3), of what notices events (§6.2),
//! of what depends on the processor (paper 2, table 3), of the UNIX personalities. `bench/lines`
//! has the sets and counts.

use crate::{Options, Part, process};
use core::fmt::Write;
use serde_json::Value;
use std::process::Command;

/// Counts everything; the report's files are `lines.*`.
///
/// # Errors
/// A name of a set matches no file, or the script cannot run.
pub fn run(_options: &Options) -> Result<Part, String> {
    let output = process::run(&mut Command::new("bench/lines"))?.output;
    let json: Value = serde_json::from_str(&output).map_err(|failure| failure.to_string())?;
    let markdown = markdown(&json);
    Ok(Part { name: "lines", json, markdown, plots: Vec::new() })
}

fn markdown(json: &Value) -> String {
    let mut text = String::from(
        "# Sizes of sources\n\nLines that are neither blank nor comment; tests do not count. \
         Written by `bench/run --part lines`.\n",
    );
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let word = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    for set in list(&json["sets"]) {
        let (paper, name, what) = (&set["paper"], word(&set["set"]), word(&set["what"]));
        let mut rows: String = list(&set["groups"])
            .iter()
            .map(|group| {
                format!("| {} | {} | {} |\n", word(&group["group"]), group["files"], group["lines"])
            })
            .collect();
        writeln!(rows, "| total | | {} |", set["lines"]).expect("a string takes any text");
        write!(
            text,
            "\n## {name} (paper {paper})\n\n{what}.\n\n| | files | lines |\n|---|---|---|\n{rows}"
        )
        .expect("a string takes any text");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::markdown;
    use serde_json::json;

    #[test]
    fn a_set_becomes_a_table_with_its_total() {
        let group = json!({ "group": "signals", "files": 4, "lines": 509 });
        let set = json!({ "set": "freebsd", "paper": 2, "what": "emulation", "groups": [group],
            "lines": 509 });
        let text = markdown(&json!({ "sets": [set] }));
        assert!(text.contains("| signals | 4 | 509 |\n| total | | 509 |\n"), "{text}");
    }
}
