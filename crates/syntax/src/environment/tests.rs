use super::{Environment, nearest};
use crate::location::Globals;
use std::sync::Arc;

#[test]
fn the_nearest_name_is_a_few_edits_away() {
    let known = || ["display", "define", "vector-ref", "string-append", "x", "y"].into_iter();
    for (name, expected) in [
        ("dispaly", Some("display")),
        ("defin", Some("define")),
        ("vector-reff", Some("vector-ref")),
        ("string-apend", Some("string-append")),
        ("z", None),
        ("completely-different", None),
        ("", None),
    ] {
        assert_eq!(nearest(name, known()), expected, "{name}");
    }
}

#[test]
fn names_lists_the_names_that_have_a_meaning() {
    let globals = Arc::new(Globals::default());
    let environment = Environment::new(1, Arc::clone(&globals));
    environment.define_name("b");
    environment.define_name("a");
    drop(environment.reference(crate::symbol::Symbol::intern("later")));
    assert_eq!(environment.names(), ["a", "b"]);
    assert_eq!(environment.nearest("latter"), None);
    assert_eq!(globals.count(), 3);
}
