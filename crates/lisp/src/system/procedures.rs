//! The procedures that the Lisp Server installs in the machine: primitives, control procedures.

use crate::kernel::Kernel;
use crate::options::Options;
use crate::{gate, image, shared, system, thread};
use kyocho_heap::heap::{Heap, Mutator};
use kyocho_heap::raise::Result;
use kyocho_library::primitives;
use kyocho_vm::machine;
use kyocho_vm::machine::control::Procedure;
use std::sync::Arc;

/// Control procedures, one table for each file.
const TABLES: [&[Procedure]; 6] = [
    system::control::TABLE,
    system::debugger::TABLE,
    shared::TABLE,
    shared::region::TABLE,
    system::statistics::TABLE,
    image::TABLE,
];

/// A kernel whose system environment contains every primitive and control procedure.
pub(crate) fn new_kernel(heap: Arc<Heap>, options: Options, mutator: Mutator) -> Result<Kernel> {
    let procedures = TABLES.into_iter().chain(thread::TABLES).chain(gate::TABLES).flatten();
    // Only the first call in a process installs them.
    machine::install(primitives::all(), procedures);
    Kernel::new(heap, options, mutator)
}
