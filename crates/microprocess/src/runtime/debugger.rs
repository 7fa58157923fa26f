//! Where a debugger finds microprocesses. `scripts/gdb/kyocho.py` reads this, in a live process or
//! in a core file.
//!
//! The offsets are computed by the compiler that laid out the records. So the script contains none
//! of them, and needs no debug information of types.
#![expect(unsafe_code, reason = "a symbol with a fixed name")]

use core::mem::offset_of;

use crate::processor::kernel_thread::KernelThread;
use crate::processor::published::PublishedReason;
use crate::processor::record::{self, Record};
use crate::processor::slot::{self, ArenaLayout};
use crate::processor::vp::Vp;

/// Incremented whenever the script must know of a change.
const VERSION: usize = 1;

/// What the script reads, word by word, in this order.
#[repr(C)]
struct Layout {
    version: usize,
    arenas: ArenaLayout,
    record_bytes: usize,
    id: usize,
    state: usize,
    level: usize,
    context: usize,
    bound: usize,
    home: usize,
    name: usize,
    reason_kind: usize,
    reason_object: usize,
    current_of_vp: usize,
    holder_of_vp: usize,
    tid_of_kernel_thread: usize,
    states: &'static str,
    kinds: &'static str,
}

#[used]
#[unsafe(no_mangle)]
static KYOCHO_DEBUGGER_LAYOUT: Layout = Layout {
    version: VERSION,
    arenas: slot::LAYOUT,
    record_bytes: size_of::<Record>(),
    id: offset_of!(Record, id),
    state: offset_of!(Record, state),
    level: record::LEVEL_OFFSET,
    context: offset_of!(Record, context),
    bound: offset_of!(Record, bound),
    home: offset_of!(Record, home),
    name: offset_of!(Record, name),
    reason_kind: offset_of!(Record, reason) + PublishedReason::KIND_OFFSET,
    reason_object: offset_of!(Record, reason) + PublishedReason::OBJECT_OFFSET,
    current_of_vp: offset_of!(Vp, current),
    holder_of_vp: offset_of!(Vp, holder),
    tid_of_kernel_thread: KernelThread::TID_OFFSET,
    states: record::STATES,
    kinds: record::KINDS,
};

/// Keeps the layout in the program.
pub(crate) fn keep() {
    core::hint::black_box(&raw const KYOCHO_DEBUGGER_LAYOUT);
}
