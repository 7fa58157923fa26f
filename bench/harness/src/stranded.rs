//! Paper 4, §7 and §8: cells in the caches of threads that wait, and the length of a time slice.
//!
//! One program, `crates/lisp/benches/stranded.rs`, runs each configuration in a process of its own;
//! a round runs all of them once. A ratio is taken within the round, to an adaptive cache with
//! slices of 5 ms. The program fails if no collection took place, because it measured nothing then.

use crate::progress::Progress;
use crate::statistics::Spread;
use crate::{Options, Part, build, process};
use serde_json::{Value, json};

const RUN_SECONDS_MAX: u32 = 600;
const NOTE: &str = "Ten busy threads make lists; the idle ones wait for messages, and make a short \
    list for each. `stranded` is the number of cells that a collection takes back unused from all \
    caches, `asked` that of requests for cells. The paper names both questions (section 7: unused \
    cells of threads that need few; section 8: the best time slice, which is 100 ms in it) and \
    publishes no figures for them.";
/// What is measured of a configuration: key, title, digits.
const FIGURES: [(&str, &str, usize); 4] = [
    ("ms", "ms", 1),
    ("stranded", "stranded at a collection", 0),
    ("collections", "collections", 0),
    ("asked", "requests for cells", 0),
];
/// The slice of the first table, and of all ratios' baseline.
const BASELINE_SLICE_MS: u64 = 5;
const BASELINE_CACHE: &str = "auto";

/// Measures everything; the report's files are `stranded.*`.
///
/// # Errors
/// The program cannot be built, or a run of it fails.
pub fn run(options: &Options) -> Result<Part, String> {
    let program = build::bench("kyocho-lisp", "stranded", &options.build_into())?;
    let idle = if options.quick { "1000" } else { "10000" };
    let mut progress = Progress::new(options.rounds());
    let mut rounds = Vec::new();
    for round in 1..=options.rounds() {
        progress.step(&format!("round {round}"));
        let mut command = process::limited(&program, RUN_SECONDS_MAX);
        command.args([idle, "--json"]).args(options.quick.then_some("--quick"));
        let output = process::run(&mut command)?.output;
        let lines = output.lines().filter_map(|line| serde_json::from_str(line).ok());
        rounds.push(lines.collect::<Vec<Value>>());
    }
    drop(progress);
    let [section_7, section_8] = [true, false].map(|has_idle| rows(&rounds, has_idle));
    let (host, count) = (&options.host, options.rounds());
    let markdown = markdown(host, count, &section_7, &section_8);
    let json = json!({ "host": host, "rounds": count, "note": NOTE, "section_7": section_7,
        "section_8": section_8 });
    Ok(Part { name: "stranded", json, markdown, plots: Vec::new() })
}

/// The configurations with idle threads, by cache, or those without, by time slice and cache.
fn rows(rounds: &[Vec<Value>], has_idle: bool) -> Vec<Value> {
    let own = |line: &&Value| (line["idle"] != 0) == has_idle;
    let configurations = rounds.first().into_iter().flatten().filter(own);
    configurations.map(|configuration| row(rounds, configuration)).collect()
}

fn row(rounds: &[Vec<Value>], configuration: &Value) -> Value {
    let is_same = |line: &Value, other: &Value| {
        ["cache", "slice_ms", "idle"].iter().all(|key| line[key] == other[key])
    };
    let baseline = json!({ "cache": BASELINE_CACHE, "slice_ms": BASELINE_SLICE_MS,
        "idle": configuration["idle"] });
    let of = |round: &[Value], configuration: &Value, key: &str| {
        round.iter().find(|line| is_same(line, configuration))?[key].as_f64()
    };
    let spread = |values: Vec<f64>| Spread::of(&values).map(Spread::to_json);
    let ratio =
        |round: &Vec<Value>| Some(of(round, configuration, "ms")? / of(round, &baseline, "ms")?);
    let mut row = json!({ "cache": configuration["cache"], "slice_ms": configuration["slice_ms"],
        "busy": configuration["busy"], "idle": configuration["idle"],
        "ratio": spread(rounds.iter().filter_map(ratio).collect()) });
    for (key, ..) in FIGURES {
        let values = rounds.iter().filter_map(|round| of(round, configuration, key));
        row[key] = json!(spread(values.collect()));
    }
    row
}

fn markdown(host: &str, rounds: usize, section_7: &[Value], section_8: &[Value]) -> String {
    let mut text = format!(
        "# Unused cells of threads that wait, and time slices (paper 4)\n\n{host}; {rounds} rounds, median (least to greatest). Written by `bench/run --part stranded`.\n\n{NOTE}\n"
    );
    for (title, rows) in
        [("By size of the cache, with idle threads", section_7), ("By time slice", section_8)]
    {
        text += &format!("\n## {title}\n\n| cache | slice, ms | idle threads | ratio |");
        FIGURES.iter().for_each(|(_, title, _)| text += &format!(" {title} |"));
        text += &format!("\n|{}\n", "---|".repeat(4 + FIGURES.len()));
        for row in rows {
            let cache = row["cache"].as_str().unwrap_or_default();
            let shown = |key: &str, digits: usize| {
                let value = |which| row[key][which].as_f64().unwrap_or(f64::NAN);
                let [median, least, most] = ["median", "least", "most"].map(value);
                format!(" {median:.digits$} ({least:.digits$} to {most:.digits$}) |")
            };
            text += &format!(
                "| {cache} | {} | {} |{}",
                row["slice_ms"],
                row["idle"],
                shown("ratio", 2)
            );
            FIGURES.iter().for_each(|(key, _, digits)| text += &shown(key, *digits));
            text += "\n";
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::rows;
    use serde_json::{Value, json};

    fn line(cache: &str, slice_ms: u64, idle: u64, ms: f64) -> Value {
        json!({ "cache": cache, "slice_ms": slice_ms, "busy": 10, "idle": idle, "ms": ms,
            "stranded": 7.0, "asked": 8, "collections": 9 })
    }

    #[test]
    fn ratios_are_to_the_adaptive_cache_of_the_same_round_and_table() {
        let round = |factor: f64| {
            vec![
                line("16", 5, 10, 30.0 * factor),
                line("auto", 5, 10, 10.0 * factor),
                line("auto", 5, 0, 5.0 * factor),
                line("100", 100, 0, 4.0 * factor),
            ]
        };
        let rounds = [round(1.0), round(2.0)];
        let (with_idle, without) = (rows(&rounds, true), rows(&rounds, false));
        assert_eq!((with_idle.len(), without.len()), (2, 2));
        assert_eq!(with_idle[0]["ratio"]["most"], 3.0);
        assert_eq!(without[1]["ratio"]["median"], 0.8);
        assert_eq!(with_idle[0]["ms"]["median"], 45.0);
        assert_eq!(without[0]["stranded"]["least"], 7.0);
    }
}
