//! Entry points for fuzzers, and the property tests that drive them for some seconds in every run:
//! no bytes make the reader, the expander or the compiler panic, overflow the stack or run away.

use crate::system::Options;
use crate::system::kernel::{Kernel, lock};
use kyocho_heap::heap::ThreadContext;
use kyocho_heap::heap::{Heap, Limits, Mutator};
use kyocho_library::prelude;
use kyocho_syntax::lexer::ReadError;
use kyocho_syntax::reader::Reader;
use kyocho_syntax::source;
use kyocho_syntax::world::World;
use std::sync::Arc;

/// What the heap of one program may take: it is only compiled.
const HEAP_BYTES_MAX: usize = 64 << 20;

/// Reads every datum of `data`, taken as text; what is not UTF-8 is replaced.
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

/// Expands and compiles every datum of `data` at a prompt, and runs none of it; returns how many
/// data compile. A heap that the host refuses ends it.
pub fn fuzz_compiler(data: &[u8]) -> usize {
    let text = String::from_utf8_lossy(data);
    let limits = Limits { bytes_max: HEAP_BYTES_MAX, ..Limits::default() };
    let Ok(heap) = Heap::new(limits) else { return 0 };
    let mutator = Mutator::new(Arc::clone(&heap), ThreadContext::default());
    let Ok(kernel) = Kernel::new(heap, Options::default(), mutator) else { return 0 };
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
