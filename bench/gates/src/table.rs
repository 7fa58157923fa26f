//! Everything beside its baseline, in rounds, as Markdown.

use std::process::Command;

use serde_json::Value;

/// What is compared with the Unix socket: system, place, bytes, calls a round, and the ratio that is aimed at.
const ROWS: &[(&str, &str, &str, &str, &str)] = &[
    ("kyocho", "same", "0", "20000", "0.35"),
    ("kyocho", "other", "0", "20000", "0.02"),
    ("kyocho", "same", "4096", "20000", "0.45"),
    ("kyocho", "other", "4096", "20000", "0.03"),
    ("kyocho", "same", "1048576", "1000", "0.25"),
    ("kyocho", "other", "1048576", "1000", "0.25"),
];

/// The median call of one run of this program, in nanoseconds.
fn median_ns(arguments: &[&str]) -> f64 {
    let program = std::env::current_exe().expect("this program has a path");
    let run = Command::new(program).args(arguments).output().expect("it can be started");
    assert!(run.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&run.stderr));
    let line: Value = serde_json::from_slice(&run.stdout).expect("one line of JSON");
    line["ns"]["p50"].as_f64().expect("a median")
}

fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted[sorted.len() / 2]
}

fn print_row(name: &str, pairs: &[(f64, f64)], aim: &str) {
    let ratios: Vec<f64> = pairs.iter().map(|(ns, base)| ns / base).collect();
    let least = ratios.iter().copied().fold(f64::INFINITY, f64::min);
    let greatest = ratios.iter().copied().fold(0.0, f64::max);
    let ns = median(&pairs.iter().map(|(ns, _)| *ns).collect::<Vec<_>>());
    let ratio = median(&ratios);
    println!("| {name} | {ns:.0} | {ratio:.3} ({least:.3} to {greatest:.3}) | {aim} |");
}

/// Runs each system after its baseline in every round, and prints medians of the ratios.
pub fn run(rounds: usize) {
    println!("| call | ns, median | ratio to its baseline | aim |");
    println!("|---|---|---|---|");
    for (system, place, bytes, calls, aim) in ROWS {
        let round = |_| {
            let ns = |system| median_ns(&["call", system, place, bytes, calls]);
            let base = ns("unix-socket");
            (ns(system), base)
        };
        let pairs: Vec<_> = (0..rounds).map(round).collect();
        print_row(
            &format!("{bytes} bytes, {place} core, beside a Unix socket"),
            &pairs,
            &format!("<= {aim}"),
        );
    }
    let round = |_| {
        let ns = |system| median_ns(&["call", system, "same", "0", "20000"]);
        (ns("kernel-threads"), ns("kyocho"))
    };
    let pairs: Vec<_> = (0..rounds).map(round).collect();
    print_row("served by a kernel thread, beside the gate", &pairs, ">= 6.3");
}
