//! The reader and the expander are built and tested without the heap, the runtime or TLS: `Cargo.lock` says what they need.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::path::Path;

/// What stands above, or takes long to build.
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

/// The packages that each package needs, those of its tests too.
fn needs(lock: &str) -> HashMap<&str, Vec<&str>> {
    let mut needs: HashMap<&str, Vec<&str>> = HashMap::new();
    let mut package = "";
    for line in lock.lines() {
        if let Some(name) = line.strip_prefix("name = ") {
            package = name.trim_matches('"');
        } else if let Some(need) = line.strip_prefix(" \"") {
            // A name; where there are several versions, the version behind it.
            let name = need.split(['"', ' ']).next().unwrap_or(need);
            needs.entry(package).or_default().push(name);
        }
    }
    needs
}

/// All that a package needs, and what these need.
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
fn the_reader_stands_on_no_runtime() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let lock = fs::read_to_string(root.join("Cargo.lock")).unwrap();
    let needs = needs(&lock);
    let below = closure(&needs, "kyocho-syntax");
    assert!(below.contains("num-bigint") && below.contains("proptest"), "{below:?}");
    let above: Vec<_> = ABOVE.into_iter().filter(|name| below.contains(name)).collect();
    assert!(above.is_empty(), "kyocho-syntax needs {above:?}");
    // The heap needs a runtime: the search finds one where there is one.
    assert!(closure(&needs, "kyocho-heap").contains("kyocho-microprocess"));
}
