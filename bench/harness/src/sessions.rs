//! Paper 4, many users: a thousand sessions of one server, each of which evaluates once a second,
//! beside a server of kernel threads that only answers.
//!
//! One program, `crates/cli/benches/sessions.rs`, runs both, one after the other, and checks
//! each answer; a round runs it once.

use crate::progress::Progress;
use crate::statistics::Spread;
use crate::{Options, Part, build, process};
use serde_json::{Value, json};

const RUN_SECONDS_MAX: u32 = 300;
const SESSIONS: &str = "1000";
const P99_MS_MAX: f64 = 20.0;
const KIB_MAX: f64 = 200e3 / 1024.0;
/// The figures of each server: key, description, mark.
const FIGURES: [(&str, &str, Option<f64>); 4] = [
    ("p50_ms", "from request to answer, median, ms", None),
    ("p99_ms", "99th percentile, ms", Some(P99_MS_MAX)),
    ("longest_ms", "longest, ms", None),
    ("kib_a_session", "memory a session, KiB", Some(KIB_MAX)),
];

/// Measures everything; the report's files are `sessions.*`.
///
/// # Errors
/// The program cannot be built, or an answer is wrong.
pub fn run(options: &Options) -> Result<Part, String> {
    // Cargo builds the server with it.
    let program = build::bench("kyocho-cli", "sessions", &options.build_into())?;
    let seconds = if options.quick { "3" } else { "20" };
    let mut progress = Progress::new(options.rounds());
    let mut results = Vec::new();
    for round in 1..=options.rounds() {
        progress.step(&format!("round {round}"));
        let mut command = process::limited(&program, RUN_SECONDS_MAX);
        let run = process::run(command.args([SESSIONS, seconds, "--json"]))?;
        results
            .extend(run.output.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok()));
    }
    drop(progress);
    let markdown = markdown(&options.host, options.rounds(), &results);
    let json = json!({ "host": options.host, "rounds": options.rounds(), "results": results });
    Ok(Part { name: "sessions", json, markdown, plots: Vec::new() })
}

fn spread(results: &[Value], server: &str, key: &str) -> Option<Spread> {
    let own = results.iter().filter(|result| result["server"] == server);
    Spread::of(&own.filter_map(|result| result[key].as_f64()).collect::<Vec<_>>())
}

fn markdown(host: &str, rounds: usize, results: &[Value]) -> String {
    let mut text = format!(
        "# {SESSIONS} sessions, each evaluates once a second\n\n{host}; {rounds} rounds, median (least to greatest). Written by `bench/run`.\n\n\
         | | Kyocho | a kernel thread a connection, no evaluation | mark |\n|---|---|---|---|\n"
    );
    for (key, what, mark) in FIGURES {
        let shown = |server| {
            spread(results, server, key)
                .map_or_else(String::new, |Spread { median, least, most }| {
                    format!("{median:.2} ({least:.2} to {most:.2})")
                })
        };
        let mark = mark.map_or_else(String::new, |mark| format!("{mark:.0}"));
        text += &format!("| {what} | {} | {} | {mark} |\n", shown("kyocho"), shown("threads"));
    }
    text
}
