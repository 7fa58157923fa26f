//! Libraries that the expander knows only by name: the system defines everything that they export.

use crate::system::{Options, System};
use kyocho_syntax::library::BUILT_IN;

#[test]
fn every_name_that_a_built_in_library_exports_is_defined() {
    let system = System::boot(Options::default(), &mut |_| {});
    let mut session = system.unwrap().session();
    let mut unbound = Vec::new();
    for (library, groups) in BUILT_IN {
        for name in groups.iter().flat_map(|group| group.split_ascii_whitespace()) {
            let text = format!("(import (only {library} {name}))\n{name}");
            if let Err(report) = session.eval(&text, "test")
                && !report.to_string().contains("is a keyword")
            {
                unbound.push(format!("{library} {name}"));
            }
        }
    }
    assert!(unbound.is_empty(), "unbound: {unbound:#?}");
}
