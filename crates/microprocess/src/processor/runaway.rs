//! Decides when to abandon a killed microprocess that runs a loop without calls of the runtime. The
//! pure part.
//!
//! Code that was interrupted at an arbitrary instruction cannot be unwound. It may be inside the
//! allocator, and the compiler provides no unwinding out of instructions that do not panic. So the
//! loop keeps running, slice by slice, until its next call of the runtime.
//!
//! The loop counts as one without calls if [`SAME_DEPTH_MAX`] slices in a row end in the same way:
//! the stack pointer is the same, and the program counter is in the program itself. Shared
//! libraries do not count, since the allocator and the C library hold their locks there. Such a
//! microprocess is abandoned where it stands. Its destructors do not run, and its locks stay held.

use std::fs;
use std::sync::OnceLock;

use core::ops::Range;

use crate::processor::code_map;
use crate::processor::kernel_thread::KernelThread;

/// How many checks, one in each slice, must find a loop at the same place before it is abandoned.
const SAME_DEPTH_MAX: u32 = 8;

/// Where a microprocess was interrupted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Interrupted {
    /// Program counter.
    pub(crate) pc: usize,
    /// Stack pointer.
    pub(crate) sp: usize,
}

/// How many times in a row code was found at the same stack depth.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SameDepth {
    sp: usize,
    count: u32,
}

impl SameDepth {
    pub(crate) const NONE: Self = Self { sp: 0, count: 0 };

    /// The count after one more interruption. `in_program`: the code was the program's own.
    fn after(self, sp: usize, in_program: bool) -> Self {
        match (in_program, sp == self.sp) {
            (false, _) => Self::NONE,
            (true, true) => Self { sp, count: self.count.saturating_add(1) },
            (true, false) => Self { sp, count: 1 },
        }
    }

    fn is_enough(self) -> bool {
        self.count >= SAME_DEPTH_MAX
    }
}

/// Whether to abandon the killed microprocess that runs on the calling kernel thread. Call in a
/// signal handler.
pub(crate) fn abandons(thread: &KernelThread, at: Interrupted) -> bool {
    let in_program = PROGRAM.get().is_some_and(|program| program.contains(&at.pc));
    let same_depth = thread.same_depth.get().after(at.sp, in_program);
    thread.same_depth.set(same_depth);
    same_depth.is_enough()
}

/// The addresses of the program's own code. Not known if the C library is part of it.
static PROGRAM: OnceLock<Range<usize>> = OnceLock::new();

/// Finds the addresses of the program's code.
pub(crate) fn prepare() {
    if cfg!(target_feature = "crt-static") {
        return;
    }
    let found =
        fs::read_link("/proc/self/exe").ok().zip(fs::read_to_string("/proc/self/maps").ok());
    if let Some(program) = found.and_then(|(path, maps)| code_of(&maps, path.to_str()?)) {
        // If an earlier runtime set it, the value is the same.
        let _same = PROGRAM.set(program);
    }
}

/// The code of the file `path`, from the text of `/proc/self/maps`.
fn code_of(maps: &str, path: &str) -> Option<Range<usize>> {
    code_map::code_in(maps).find(|(_, file)| *file == path).map(|(range, _)| range)
}

#[cfg(test)]
mod tests;
