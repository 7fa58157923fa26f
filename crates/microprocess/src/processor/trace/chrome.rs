//! Timelines in Chrome's trace format, which Perfetto and `chrome://tracing` open.
//!
//! There is one track for each virtual processor. A span begins when a microprocess begins to run.
//! It ends when another one begins there, when the microprocess is blocked or preempted, or when
//! the virtual processor becomes idle. Events are instants. Times are microseconds since the
//! recording began.
//!
//! Source: "Trace Event Format", the JSON object format.

use serde_json::{Value, json};

use super::{Moment, Timeline, What};

/// What runs on one virtual processor.
struct Running<'a> {
    since_ns: u64,
    moment: &'a Moment,
}

/// The timeline as one JSON document.
#[must_use]
pub fn text(timeline: &Timeline) -> String {
    let process = timeline.process;
    let name = format!("kyocho {process}");
    let mut events = vec![
        json!({ "ph": "M", "pid": process, "name": "process_name", "args": { "name": name } }),
    ];
    for number in 0..timeline.virtual_processors {
        let name = format!("virtual processor {number}");
        events.push(json!({ "ph": "M", "pid": process, "tid": number, "name": "thread_name",
            "args": { "name": name } }));
        track(timeline, number, &mut events);
    }
    json!({
        "displayTimeUnit": "ns",
        "otherData": { "dropped": timeline.dropped },
        "traceEvents": events,
    })
    .to_string()
}

/// Appends the spans and instants of one virtual processor.
fn track(timeline: &Timeline, number: usize, events: &mut Vec<Value>) {
    let micros = |at_ns: u64| at_ns.saturating_sub(timeline.from_ns) as f64 / 1000.0;
    let mut running: Option<Running<'_>> = None;
    let close = |running: &mut Option<Running<'_>>, at_ns: u64, events: &mut Vec<Value>| {
        let Some(Running { since_ns, moment }) = running.take() else { return };
        let (start, end) = (micros(since_ns), micros(at_ns));
        events.push(
            json!({ "ph": "X", "pid": timeline.process, "tid": number, "cat": "microprocess",
            "name": title(moment), "ts": start, "dur": end - start, "args": { "id": moment.id } }),
        );
    };
    for moment in timeline.moments.iter().filter(|moment| moment.virtual_processor == number) {
        match moment.what {
            What::Runs => {
                close(&mut running, moment.at_ns, events);
                running = Some(Running { since_ns: moment.at_ns, moment });
            }
            What::Idles => close(&mut running, moment.at_ns, events),
            event => {
                events.push(json!({ "ph": "i", "s": "t", "pid": timeline.process, "tid": number,
                    "cat": "event", "name": format!("{event:?}"), "ts": micros(moment.at_ns),
                    "args": { "id": moment.id, "microprocess": title(moment) } }));
                if matches!(event, What::Blocked | What::Preempted) {
                    close(&mut running, moment.at_ns, events);
                }
            }
        }
    }
    close(&mut running, timeline.to_ns, events);
}

/// The title of a microprocess: its name, or its id.
fn title(moment: &Moment) -> String {
    moment.name.clone().unwrap_or_else(|| format!("microprocess {}", moment.id))
}
