//! The header declares exactly the functions that the library exports.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

fn folder(name: &str) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(name)
}

/// The names after `before` in `text`, up to an opening parenthesis.
fn names(text: &str, before: &str) -> BTreeSet<String> {
    text.split(before)
        .skip(1)
        .filter_map(|rest| {
            let name: String = rest
                .chars()
                .take_while(|letter| letter.is_alphanumeric() || *letter == '_')
                .collect();
            rest[name.len()..].starts_with('(').then(|| format!("kyocho_{name}"))
        })
        .collect()
}

/// C source `text` without comments.
fn without_comments(text: &str) -> String {
    let mut parts = text.split("/*");
    let first = parts.next().unwrap_or("").to_owned();
    parts.fold(first, |kept, part| kept + part.split_once("*/").map_or("", |(_, code)| code))
}

#[test]
fn header_and_library_name_the_same_functions() {
    let header = fs::read_to_string(folder("include/kyocho.h")).unwrap();
    let declared = names(&without_comments(&header), "kyocho_");
    let sources = fs::read_dir(folder("src")).unwrap();
    let code: String =
        sources.map(|entry| fs::read_to_string(entry.unwrap().path()).unwrap()).collect();
    let exported = names(&code, "extern \"C\" fn kyocho_");
    assert!(declared.len() > 60, "found only {declared:?}");
    assert_eq!(declared, exported);
    let marks = code.matches("#[unsafe(no_mangle)]").count();
    assert_eq!(marks, exported.len(), "every function must be exported under its name");
}
