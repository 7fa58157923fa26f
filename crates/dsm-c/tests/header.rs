//! The header and the library name the same functions.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use kyocho_dsm_c as _; // has the libraries built
use kyocho_sys::skip::skip;

/// Names of functions in C declarations: words before an opening parenthesis, outside of comments.
fn declared(header: &str) -> BTreeSet<String> {
    let mut parts = header.split("/*");
    let first = parts.next().unwrap_or("").to_owned();
    let code = parts.fold(first, |kept, part| kept + part.split_once("*/").map_or("", |(_, c)| c));
    let names = code.split('(').map(|before| {
        let start = before.rfind(|letter: char| !letter.is_alphanumeric() && letter != '_');
        before[start.map_or(0, |start| start + 1)..].to_owned()
    });
    names.filter(|name| name.starts_with("kyocho_dsm_")).collect()
}

#[test]
fn the_header_declares_what_the_library_exports_and_no_more() {
    let library = std::env::current_exe().unwrap().with_file_name("libkyocho_dsm_c.so");
    let Ok(output) = Command::new("nm").args(["-D", "--defined-only"]).arg(library).output() else {
        return skip(
            "the_header_declares_what_the_library_exports_and_no_more",
            "nm is not installed",
        );
    };
    let symbols = String::from_utf8(output.stdout).unwrap();
    let names = symbols.lines().filter_map(|line| line.split_whitespace().last());
    let exported: BTreeSet<String> =
        names.filter(|name| name.starts_with("kyocho_")).map(str::to_owned).collect();
    let header = Path::new(env!("CARGO_MANIFEST_DIR")).join("include/kyocho-dsm.h");
    let declared = declared(&std::fs::read_to_string(header).unwrap());
    assert!(declared.len() > 30, "found only {declared:?}");
    assert_eq!(declared, exported);
}
