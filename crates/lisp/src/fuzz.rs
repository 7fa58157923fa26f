//! Entry points for fuzzers. Property tests run them for some seconds in every test run. No input
//! may make the reader, the expander or the compiler panic, overflow the stack or run without
//! bound.

use crate::kernel::lock;
use crate::options::Options;
use crate::system::procedures::new_kernel;
use kyocho_heap::heap::ThreadContext;
use kyocho_heap::heap::{Heap, Limits, Mutator};
use kyocho_library::prelude;
use kyocho_syntax::lexer::ReadError;
use kyocho_syntax::reader::Reader;
use kyocho_syntax::source;
use kyocho_syntax::world::World;
use std::sync::Arc;

/// Heap limit for one program, which is only compiled.
const HEAP_BYTES_MAX: usize = 64 << 20;

/// Reads every datum of `data` as text. Invalid UTF-8 is replaced.
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
pub fn fuzz_expander(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let mut world = World::with_libraries(prelude::LIBRARIES);
    let environment = world.interaction_environment();
    let mut reader = Reader::of_text(&text, source::register("fuzz"));
    while let Ok(Some(datum)) = reader.read() {
        if let Err(error) = world.expand(&environment, &datum) {
            drop(error.to_string());
        }
    }
}

/// Expands and compiles every datum of `data` at a prompt, without running any. Returns how many
/// data compile. Returns early if the host has no memory for a heap.
pub fn fuzz_compiler(data: &[u8]) -> usize {
    let text = String::from_utf8_lossy(data);
    let limits = Limits { bytes_max: HEAP_BYTES_MAX, ..Limits::default() };
    let Ok(heap) = Heap::new(limits) else { return 0 };
    let mutator = Mutator::new(Arc::clone(&heap), ThreadContext::default());
    let Ok(kernel) = new_kernel(heap, Options::default(), mutator) else { return 0 };
    let mut mutator = lock(&kernel.mutator);
    let environment = lock(&kernel.base.world).interaction_environment();
    let mut compiled = 0;
    let mut reader = Reader::of_text(&text, source::register("fuzz"));
    while let Ok(Some(datum)) = reader.read() {
        let expanded = lock(&kernel.base.world).expand(&environment, &datum);
        let forms = expanded.map(|forms| kernel.compile_forms(&mut mutator, forms, datum.span));
        compiled += usize::from(forms.is_ok_and(|compiled| compiled.is_ok()));
    }
    compiled
}

#[cfg(test)]
mod tests;
