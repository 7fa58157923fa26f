//! The cost of page tables and TLBs: one JSON line per figure. `bench/run --part pagetable` calls
//! it.
//!
//! ```text
//! pagetable maps SHAPE             look-ups, bytes per page of each table; SHAPE: dense, islands, sparse
//! pagetable tlb NAME               misses, lines and bytes for a program; lackey's output on standard input
//! pagetable replay NAME FILE       the same from a recording
//! pagetable record FILE BYTES      records lackey's output until the recording has this many bytes
//! ```

mod maps;
mod programs;

use std::io::{BufReader, stdin};
use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let done = match words[..] {
        ["maps", shape] => maps::run(shape),
        ["tlb", name] => programs::of_lackey(BufReader::new(stdin())).map(|run| run.print(name)),
        ["replay", name, file] => programs::of_recording(file).map(|run| run.print(name)),
        ["record", file, bytes] => match bytes.parse() {
            Ok(bytes_max) => programs::record(BufReader::new(stdin()), file, bytes_max),
            Err(_) => Err(format!("not a number of bytes: {bytes}")),
        },
        _ => Err("usage: pagetable maps dense|islands|sparse, tlb NAME, replay NAME FILE, record FILE BYTES".into()),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("pagetable: {why}");
            ExitCode::from(2)
        }
    }
}
