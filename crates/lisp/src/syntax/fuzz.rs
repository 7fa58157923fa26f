//! Entry points for fuzzers, and the property tests that drive them for some seconds in every run:
//! no bytes make the reader or the expander panic, overflow the stack or run away.

use super::lexer::ReadError;
use super::reader::Reader;
use super::source;
use super::world::World;

/// Reads every datum of `data`, taken as text; what is not UTF-8 is replaced.
#[doc(hidden)]
pub fn fuzz_reader(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let mut reader = Reader::of_text(&text, source::register("fuzz"));
    loop {
        match reader.read() {
            Ok(Some(datum)) => drop(datum.to_string()),
            Ok(None) | Err(ReadError::Incomplete(_)) => return,
            Err(ReadError::Wrong(error)) => drop(error.to_string()),
        }
    }
}

/// Expands every datum of `data` at a prompt.
#[doc(hidden)]
pub fn fuzz_expander(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let mut world = World::new();
    let environment = world.interaction_environment();
    let mut reader = Reader::of_text(&text, source::register("fuzz"));
    while let Ok(Some(datum)) = reader.read() {
        if let Err(error) = world.expand(&environment, &datum) {
            drop(error.to_string());
        }
    }
}

#[cfg(test)]
mod tests;
