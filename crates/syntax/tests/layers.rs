//! The reader and the expander are built and tested without the heap, the runtime or TLS.
//! `Cargo.lock` lists what they depend on.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::path::Path;

/// Packages of higher layers, and packages that take long to build.
const ABOVE: [&str; 8] = [
    "kyocho-heap",
    "kyocho-lisp",
    "kyocho-microprocess",
    "kyocho-gate",
    "kyocho-dsm",
    "kyocho-tst",
    "rustls",
    "ring",
];

/// The dependencies of each package, including those of its tests.
fn needs(lock: &str) -> HashMap<&str, Vec<&str>> {
    let mut needs: HashMap<&str, Vec<&str>> = HashMap::new();
    let mut package = "";
    for line in lock.lines() {
        if let Some(name) = line.strip_prefix("name = ") {
            package = name.trim_matches('"');
        } else if let Some(need) = line.strip_prefix(" \"") {
            // A name, followed by a version if there are several.
            let name = need.split(['"', ' ']).next().unwrap_or(need);
            needs.entry(package).or_default().push(name);
        }
    }
    needs
}

/// All direct and indirect dependencies of a package.
fn closure<'l>(needs: &HashMap<&'l str, Vec<&'l str>>, package: &'l str) -> HashSet<&'l str> {
    let mut found = HashSet::new();
    let mut pending = vec![package];
    while let Some(package) = pending.pop() {
        if found.insert(package) {
            pending.extend(needs.get(package).into_iter().flatten());
        }
    }
    found
}

#[test]
fn the_reader_depends_on_no_runtime() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let lock = fs::read_to_string(root.join("Cargo.lock")).unwrap();
    let needs = needs(&lock);
    let below = closure(&needs, "kyocho-syntax");
    assert!(below.contains("num-bigint") && below.contains("proptest"), "{below:?}");
    let above: Vec<_> = ABOVE.into_iter().filter(|name| below.contains(name)).collect();
    assert!(above.is_empty(), "kyocho-syntax needs {above:?}");
    // The heap depends on the runtime, so this shows that the search finds a runtime.
    assert!(closure(&needs, "kyocho-heap").contains("kyocho-microprocess"));
}
