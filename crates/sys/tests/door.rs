//! Nobody but `prim` takes atomics, cells, clocks or kernel threads from the library itself: a model checker
//! and a simulator must be able to stand behind the one door.

use std::path::{Path, PathBuf};
use std::{fs, io};

/// What only the door may name. A space stands for any white space or none, so this list does not name itself.
const BEHIND_THE_DOOR: [&str; 8] = [
    "core ::sync::atomic",
    "std ::sync::atomic",
    "core ::cell::UnsafeCell",
    "std ::cell::UnsafeCell",
    "std ::time::Instant",
    "std ::time::SystemTime",
    "std ::thread::spawn",
    "std ::thread::Builder",
];

/// Files at the door, and below it: each with its reason.
const EXEMPT: [(&str, &str); 3] = [
    ("sys/src/prim.rs", "is the door"),
    ("arch/", "lies below the door, and only its tests need any of it"),
    ("freebsd/", "stands in programs of FreeBSD, where there is nothing of ours but itself"),
];

fn sources(folder: &Path, into: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            sources(&path, into)?;
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            into.push(path);
        }
    }
    Ok(())
}

/// The first line of `text` that takes something from behind the door.
fn offence(text: &str) -> Option<(usize, &'static str)> {
    let names = || BEHIND_THE_DOOR.iter().copied();
    text.lines().enumerate().find_map(|(index, line)| {
        let code = line.split("//").next().unwrap_or("");
        let taken = names().find(|name| code.contains(&name.replace(' ', "")));
        taken.map(|name| (index + 1, name))
    })
}

#[test]
fn only_the_door_is_used() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut files = Vec::new();
    // Libraries and their unit tests; programs in `tests/` and `benches/` stand outside, as users do.
    for name in fs::read_dir(crates).unwrap().flatten() {
        sources(&name.path().join("src"), &mut files).unwrap();
    }
    assert!(files.len() > 20, "read only {} files", files.len());
    let exempt = |path: &Path| {
        let inside = path.strip_prefix(crates).unwrap().to_string_lossy().into_owned();
        EXEMPT.iter().any(|(prefix, _)| inside.starts_with(prefix))
    };
    let offences: Vec<String> = files
        .iter()
        .filter(|path| !exempt(path))
        .filter_map(|path| {
            let (line, name) = offence(&fs::read_to_string(path).unwrap())?;
            Some(format!("{}:{line} names {name}", path.display()))
        })
        .collect();
    assert!(offences.is_empty(), "use kyocho_sys::prim instead:\n{}", offences.join("\n"));
}

#[test]
fn an_offence_is_found_and_a_comment_is_none() {
    let line = format!("use {};", BEHIND_THE_DOOR[0].replace(' ', ""));
    assert_eq!(offence(&line), Some((1, BEHIND_THE_DOOR[0])));
    assert_eq!(offence(&format!("// {line}")), None);
    assert_eq!(offence("use kyocho_sys::prim::atomic;"), None);
}
