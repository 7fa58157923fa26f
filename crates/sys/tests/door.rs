//! Only `prim` uses atomics, cells, clocks and kernel threads of the standard library: a model
//! checker and a simulator must be able to replace them in one place.

use std::path::{Path, PathBuf};
use std::{fs, io};

/// Names that only `prim` may use. A space stands for any white space or none, so that this list
/// does not match itself.
const ONLY_IN_PRIM: [&str; 8] = [
    "core ::sync::atomic",
    "std ::sync::atomic",
    "core ::cell::UnsafeCell",
    "std ::cell::UnsafeCell",
    "std ::time::Instant",
    "std ::time::SystemTime",
    "std ::thread::spawn",
    "std ::thread::Builder",
];

/// Files that are exempt, each with its reason.
const EXEMPT: [(&str, &str); 3] = [
    ("sys/src/prim.rs", "is the module itself"),
    ("arch/", "is below `sys`, and only its tests need any of them"),
    ("freebsd/", "runs inside FreeBSD programs, without any other crate of the workspace"),
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

/// The first line of `text` that uses such a name.
fn direct_use(text: &str) -> Option<(usize, &'static str)> {
    let names = || ONLY_IN_PRIM.iter().copied();
    text.lines().enumerate().find_map(|(index, line)| {
        let code = line.split("//").next().unwrap_or("");
        let taken = names().find(|name| code.contains(&name.replace(' ', "")));
        taken.map(|name| (index + 1, name))
    })
}

#[test]
fn only_prim_uses_the_library_directly() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut files = Vec::new();
    // Libraries and their unit tests. Programs in `tests/` and `benches/` are exempt, like user
    // programs.
    for name in fs::read_dir(crates).unwrap().flatten() {
        sources(&name.path().join("src"), &mut files).unwrap();
    }
    assert!(files.len() > 20, "read only {} files", files.len());
    let exempt = |path: &Path| {
        let inside = path.strip_prefix(crates).unwrap().to_string_lossy().into_owned();
        EXEMPT.iter().any(|(prefix, _)| inside.starts_with(prefix))
    };
    let direct_uses: Vec<String> = files
        .iter()
        .filter(|path| !exempt(path))
        .filter_map(|path| {
            let (line, name) = direct_use(&fs::read_to_string(path).unwrap())?;
            Some(format!("{}:{line} names {name}", path.display()))
        })
        .collect();
    assert!(direct_uses.is_empty(), "use kyocho_sys::prim instead:\n{}", direct_uses.join("\n"));
}

#[test]
fn direct_use_is_found_and_comments_are_ignored() {
    let line = format!("use {};", ONLY_IN_PRIM[0].replace(' ', ""));
    assert_eq!(direct_use(&line), Some((1, ONLY_IN_PRIM[0])));
    assert_eq!(direct_use(&format!("// {line}")), None);
    assert_eq!(direct_use("use kyocho_sys::prim::atomic;"), None);
}
