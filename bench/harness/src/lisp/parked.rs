//! Memory of Lisp threads that wait.

use super::Lisp;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Stdio};

/// Memory of one of `count` waiting threads: the growth of the program's memory over a run with one
/// thread.
///
/// # Errors
/// The program did not start its threads, or did not end them.
pub(super) fn bytes_each(lisp: &Lisp, count: u64) -> Result<f64, String> {
    let least = memory_bytes(lisp, 1)?;
    let most = memory_bytes(lisp, count)?;
    Ok(most.saturating_sub(least) as f64 / (count - 1) as f64)
}

fn memory_bytes(lisp: &Lisp, count: u64) -> Result<u64, String> {
    let mut command = lisp.command(Path::new("bench/lisp/threads/parked.scm"), Some(count));
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .map_err(|failure| failure.to_string())?;
    let measured = while_parked(&mut child, count);
    let ended = child.wait().map_err(|failure| failure.to_string())?;
    match measured {
        Ok(_) if !ended.success() => Err(format!("ended with {ended}")),
        measured => measured,
    }
}

fn while_parked(child: &mut Child, count: u64) -> Result<u64, String> {
    let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
        return Err("no pipes".into());
    };
    let mut input = input;
    let mut lines = BufReader::new(output).lines();
    let mut next = || lines.next().and_then(Result::ok).unwrap_or_default();
    if next() != "parked" {
        return Err(format!("cannot have {count} threads"));
    }
    // The child is `timeout`; its only child is the program.
    let children = format!("/proc/{0}/task/{0}/children", child.id());
    let children = std::fs::read_to_string(children).map_err(|failure| failure.to_string())?;
    let program = children.split_whitespace().next().ok_or("the program has ended")?;
    let bytes = status_bytes(program)?;
    input.write_all(b"go\n").map_err(|failure| failure.to_string())?;
    let ran = next();
    if ran == count.to_string() { Ok(bytes) } else { Err(format!("{ran} of {count} threads ran")) }
}

/// Resident memory and its page tables.
fn status_bytes(process: &str) -> Result<u64, String> {
    let status = std::fs::read_to_string(format!("/proc/{process}/status"))
        .map_err(|failure| failure.to_string())?;
    let kib: u64 = status
        .lines()
        .filter(|line| line.starts_with("VmRSS:") || line.starts_with("VmPTE:"))
        .filter_map(|line| line.split_whitespace().nth(1)?.parse::<u64>().ok())
        .sum();
    Ok(kib * 1024)
}
