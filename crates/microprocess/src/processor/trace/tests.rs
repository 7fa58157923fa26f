//! Recording real runs.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{Busy, What, chrome, start, stop};
use crate::wait::sync::tests::on_processors;
use crate::yield_now;
use crate::{Builder, spawn};

/// There is one recording for the whole address space, and tests run in parallel: this is the only
/// one that records.
#[test]
fn timeline_shows_what_ran_by_name_and_time() {
    on_processors(1, || {
        start().unwrap();
        assert_eq!(start(), Err(Busy));
        let named =
            |name: &str| Builder::new().name(name).spawn(|| (0..50).for_each(|_| yield_now()));
        let parties = [named("ping").unwrap(), named("pong").unwrap()];
        for party in parties {
            party.join().unwrap();
        }
        // The record's slot may be in use again: a microprocess that ended keeps its name in the
        // timeline.
        spawn(|| ()).join().unwrap();
        let timeline = stop();
        assert!(timeline.from_ns < timeline.to_ns);
        assert!(timeline.moments.is_sorted_by_key(|moment| moment.at_ns));
        let runs = |name: &str| {
            let is_its =
                |it: &&super::Moment| it.what == What::Runs && it.name.as_deref() == Some(name);
            timeline.moments.iter().filter(is_its).count()
        };
        assert!(runs("ping") >= 50 && runs("pong") >= 50, "{} {}", runs("ping"), runs("pong"));
        check_chrome(&chrome::text(&timeline));
        assert_eq!(stop().virtual_processors, 0, "recording has stopped");
    });
}

/// Checks that the spans of a track follow one another, and carry the names.
fn check_chrome(text: &str) {
    let document: Value = serde_json::from_str(text).unwrap();
    let events = document["traceEvents"].as_array().unwrap();
    let spans: Vec<&Value> = events.iter().filter(|event| event["ph"] == "X").collect();
    let names: BTreeSet<&str> = spans.iter().filter_map(|span| span["name"].as_str()).collect();
    assert!(names.contains("ping") && names.contains("pong") && names.contains("main"));
    let tracks: BTreeSet<u64> = spans.iter().filter_map(|span| span["tid"].as_u64()).collect();
    for track in tracks {
        let mut end = 0.0;
        for span in spans.iter().filter(|span| span["tid"] == track) {
            let start = span["ts"].as_f64().unwrap();
            // Times are floating-point microseconds.
            assert!(start + 0.001 >= end, "spans overlap: {start} < {end}");
            end = start + span["dur"].as_f64().unwrap();
        }
    }
}
