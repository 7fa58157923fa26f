//! `kyocho ps`: the microprocesses of the user's Kyocho processes, as a table, as JSON, or their
//! counters for Prometheus.

use crate::terminal;
use core::fmt::Write;
use kyocho_microprocess::control::client::{self, Client};
use kyocho_microprocess::control::protocol::{ENTRIES_MAX, Reply, Request};
use kyocho_microprocess::control::{Entry, Snapshot};
use std::io;
use std::process::ExitCode;

/// The format of the output.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum OutputFormat {
    Table,
    Json,
    Prometheus,
}

pub(crate) fn command(process: Option<u32>, form: OutputFormat) -> ExitCode {
    let processes = match process.map_or_else(client::processes, |process| Ok(vec![process])) {
        Ok(processes) => processes,
        Err(error) => return fail(&error),
    };
    match form {
        OutputFormat::Prometheus => metrics(&processes, process.is_some()),
        OutputFormat::Table | OutputFormat::Json => snapshots(&processes, process.is_some(), form),
    }
}

fn fail(error: &io::Error) -> ExitCode {
    terminal::complain(&format!("kyocho: {error}"));
    ExitCode::FAILURE
}

/// Sends a request to a process. `None` if the process has ended meanwhile, unless the user has
/// named it.
fn ask(process: u32, by_number: bool, request: &Request) -> io::Result<Option<Reply>> {
    match Client::connect(process).and_then(|mut client| client.ask(request)) {
        Ok(reply) => Ok(Some(reply)),
        Err(error) if error.kind() == io::ErrorKind::NotFound && !by_number => Ok(None),
        Err(error) => Err(error),
    }
}

fn metrics(processes: &[u32], by_number: bool) -> ExitCode {
    let mut out = String::new();
    for &process in processes {
        match ask(process, by_number, &Request::Metrics {}) {
            Ok(Some(Reply::Metrics(text))) => out.push_str(&text),
            Ok(_) => {}
            Err(error) => return fail(&error),
        }
    }
    terminal::line(out.trim_end());
    ExitCode::SUCCESS
}

/// A snapshot of `process`. `None` if it has ended.
///
/// # Errors
/// The process cannot be reached, or refuses.
pub(crate) fn snapshot_of(process: u32) -> io::Result<Option<Snapshot>> {
    match ask(process, false, &Request::Snapshot { entries_max: ENTRIES_MAX })? {
        Some(Reply::Snapshot(snapshot)) => Ok(Some(snapshot)),
        _ => Ok(None),
    }
}

fn snapshots(processes: &[u32], by_number: bool, form: OutputFormat) -> ExitCode {
    let mut found = Vec::new();
    for &process in processes {
        match ask(process, by_number, &Request::Snapshot { entries_max: ENTRIES_MAX }) {
            Ok(Some(Reply::Snapshot(snapshot))) => found.push(snapshot),
            Ok(_) => {}
            Err(error) => return fail(&error),
        }
    }
    if form == OutputFormat::Json {
        match serde_json::to_string_pretty(&found) {
            Ok(text) => terminal::line(&text),
            Err(error) => return fail(&io::Error::other(error)),
        }
        return ExitCode::SUCCESS;
    }
    if found.is_empty() {
        terminal::complain(
            "kyocho: no running program of yours has a control socket. `kyocho`, `kyocho run` and \
             programs with KYOCHO_CONTROL=1 have one",
        );
        return ExitCode::SUCCESS;
    }
    terminal::line(table(&found).trim_end());
    ExitCode::SUCCESS
}

fn table(snapshots: &[Snapshot]) -> String {
    let mut out = String::new();
    // Writing to a string does not fail.
    let _ = writeln!(
        out,
        "{:<14} {:<9} {:>3} {:>3} {:>8} {:>10} {:<22} WAITS FOR",
        "ID", "STATE", "PRI", "VP", "CPU", "SWITCHES", "NAME"
    );
    for snapshot in snapshots {
        for entry in &snapshot.microprocesses {
            let _ = writeln!(out, "{}", row(&snapshot.program, entry));
        }
        if snapshot.left_off > 0 {
            let _ = writeln!(out, "{}: and {} more", snapshot.process, snapshot.left_off);
        }
    }
    out
}

fn row(program: &str, entry: &Entry) -> String {
    let unnamed = || format!("({program})");
    format!(
        "{:<14} {:<9} {:>3} {:>3} {:>8} {:>10} {:<22} {}",
        entry.id.to_string(),
        entry.status,
        entry.priority,
        entry.virtual_processor,
        cpu(entry.cpu_ns),
        entry.switches,
        entry.name.clone().unwrap_or_else(unnamed),
        waits(entry)
    )
}

/// What a microprocess waits for, and which one holds that.
fn waits(entry: &Entry) -> String {
    let mut waits = entry.waits_for.clone().unwrap_or_default();
    if let Some(holder) = entry.held_by {
        // Writing to a string does not fail.
        let _ = write!(waits, ", held by {holder}");
    }
    waits
}

/// A running time, in six characters.
fn cpu(ns: u64) -> String {
    let ms = ns / 1_000_000;
    match ms {
        0..10_000 => format!("{ms}ms"),
        _ => format!("{}s", ms / 1000),
    }
}
