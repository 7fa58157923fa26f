//! The layers that `lib.rs` draws, checked against the imports.

use std::path::{Path, PathBuf};

/// Highest first.
const LAYERS: [&str; 10] = [
    "life", "calls", "paths", "server", "state", "policy", "program", "clients", "options",
    "errors",
];

/// All source files below `folder`.
fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
}

/// The layer of this name.
fn layer(name: &str) -> usize {
    let place = LAYERS.iter().position(|layer| *layer == name);
    place.unwrap_or_else(|| panic!("{name} is in no layer"))
}

/// The layer of a file: its folder, or itself. `lib.rs` and this file have none.
fn layer_of(file: &Path, source: &Path) -> Option<usize> {
    let first = file.strip_prefix(source).unwrap().components().next().unwrap();
    let name = Path::new(first.as_os_str()).file_stem().unwrap().to_str().unwrap();
    (!["lib", "layers"].contains(&name)).then(|| layer(name))
}

/// The layers that a text imports from; its tests, which may import anything, left out.
fn imports(text: &str) -> impl Iterator<Item = &str> {
    let code = text.split("#[cfg(test)]\nmod tests").next().unwrap_or_default();
    let lines = code.lines().filter(|line| !line.trim_start().starts_with("//"));
    let paths = lines.flat_map(|line| line.split("crate::").skip(1));
    paths.map(|path| path.split(|letter: char| !letter.is_ascii_lowercase()).next().unwrap_or(""))
}

#[test]
fn no_import_runs_up() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut seen = 0;
    for file in files(&source).iter().filter(|file| !file.ends_with("tests.rs")) {
        let Some(own) = layer_of(file, &source) else { continue };
        for import in imports(&std::fs::read_to_string(file).unwrap()) {
            assert!(layer(import) >= own, "{} imports from {import}", file.display());
            seen += 1;
        }
    }
    assert!(seen > 100, "only {seen} imports were seen");
}
