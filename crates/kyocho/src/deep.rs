//! `kyocho --engine deep run FILE`: one program on paper 4's deep-binding evaluator.

use crate::terminal;
use kyocho_lisp::deep;
use kyocho_lisp::heap::Limits;
use kyocho_lisp::system::Options;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::process::ExitCode;

pub(crate) fn command(options: &Options, file: &Path) -> ExitCode {
    let name = file.display().to_string();
    let source = match std::fs::read_to_string(file) {
        Ok(source) => source,
        Err(error) => {
            terminal::complain(&format!("{name}: {error}"));
            return ExitCode::FAILURE;
        }
    };
    let mut deep_options = deep::Options { cell_cache: options.cell_cache, ..Default::default() };
    deep_options.heap = Limits { bytes_max: options.memory_max_bytes, ..deep_options.heap };
    let mut output = BufWriter::new(std::io::stdout());
    let outcome = deep::run(&source, &name, &deep_options, &mut output);
    let flushed = output.flush();
    if let Err(failure) = outcome.and_then(|outcome| outcome.value) {
        terminal::complain(&format!(
            "{name}:{}:{}: {}",
            failure.span.line, failure.span.column, failure.cause
        ));
        return ExitCode::FAILURE;
    }
    // A closed pipe is the reader's wish to hear no more.
    let quiet = |error: &std::io::Error| error.kind() == std::io::ErrorKind::BrokenPipe;
    match flushed {
        Err(error) if !quiet(&error) => {
            terminal::complain(&format!("standard output: {error}"));
            ExitCode::FAILURE
        }
        _ => ExitCode::SUCCESS,
    }
}
