//! `kyocho --engine deep run FILE`: one program on paper 4's deep-binding evaluator.

use crate::terminal;
use kyocho_lisp::deep::{self, Cause};
use kyocho_lisp::heap::Limits;
use kyocho_lisp::syntax::datum::Span;
use kyocho_lisp::syntax::source;
use kyocho_lisp::system::{CLOSED_OUTPUT_EXIT, Options};
use std::io::{BufWriter, ErrorKind, Write};
use std::path::Path;
use std::process::ExitCode;

pub(crate) fn command(options: &Options, file: &Path) -> ExitCode {
    let name = file.display().to_string();
    let source = match source::read_file(file, Span::default()) {
        Ok(source) => source,
        Err(error) => {
            terminal::complain(&error.to_string());
            return ExitCode::FAILURE;
        }
    };
    let mut deep_options = deep::Options { cell_cache: options.cell_cache, ..Default::default() };
    deep_options.heap = Limits { bytes_max: options.memory_max_bytes, ..deep_options.heap };
    let mut output = BufWriter::new(std::io::stdout());
    let outcome = deep::run(&source, &name, &deep_options, &mut output);
    let flushed = output.flush();
    if let Err(failure) = outcome.and_then(|outcome| outcome.value) {
        if failure.cause == Cause::ClosedOutput {
            return ExitCode::from(CLOSED_OUTPUT_EXIT);
        }
        terminal::complain(&format!(
            "{name}:{}:{}: {}",
            failure.span.line, failure.span.column, failure.cause
        ));
        return ExitCode::FAILURE;
    }
    match flushed {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) if error.kind() == ErrorKind::BrokenPipe => ExitCode::from(CLOSED_OUTPUT_EXIT),
        Err(error) => {
            terminal::complain(&format!("standard output: {error}"));
            ExitCode::FAILURE
        }
    }
}
