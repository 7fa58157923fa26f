//! Killed in a loop that never calls us: when to give up waiting for its next kill point. The pure part.
//!
//! Code that was interrupted anywhere cannot be unwound: it may be inside the allocator, and the compiler left no way out of
//! instructions that do not panic. So the loop goes on, slice by slice, to its next call of ours. One that is found [`STRIKES_MAX`]
//! slices in a row with the same stack pointer and the program counter in the program itself (not in a shared library, where
//! allocator and C library keep their locks) has no such call: it is abandoned where it stands. Its destructors do not
//! run, and what it holds stays held.

use std::fs;
use std::sync::OnceLock;

use core::ops::Range;

use crate::processor::code_map;
use crate::processor::kernel_thread::KernelThread;

/// Looks that find a loop at the same place before it is abandoned; one a slice.
const STRIKES_MAX: u32 = 8;

/// Where a microprocess was interrupted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Interrupted {
    /// Program counter.
    pub(crate) pc: usize,
    /// Stack pointer.
    pub(crate) sp: usize,
}

/// How often in a row code was found at the same depth of its stack.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Strikes {
    sp: usize,
    count: u32,
}

impl Strikes {
    pub(crate) const NONE: Self = Self { sp: 0, count: 0 };

    /// After one more interruption, in code of the program itself or not.
    fn after(self, sp: usize, in_program: bool) -> Self {
        match (in_program, sp == self.sp) {
            (false, _) => Self::NONE,
            (true, true) => Self { sp, count: self.count.saturating_add(1) },
            (true, false) => Self { sp, count: 1 },
        }
    }

    fn are_enough(self) -> bool {
        self.count >= STRIKES_MAX
    }
}

/// Whether the killed microprocess that the calling kernel thread carries is to be abandoned. In a signal handler.
pub(crate) fn gives_up(thread: &KernelThread, at: Interrupted) -> bool {
    let in_program = PROGRAM.get().is_some_and(|program| program.contains(&at.pc));
    let strikes = thread.strikes.get().after(at.sp, in_program);
    thread.strikes.set(strikes);
    strikes.are_enough()
}

/// The addresses of the program's own code; unknown where the C library is part of it.
static PROGRAM: OnceLock<Range<usize>> = OnceLock::new();

/// Finds out where the program's code lies.
pub(crate) fn prepare() {
    if cfg!(target_feature = "crt-static") {
        return;
    }
    let found =
        fs::read_link("/proc/self/exe").ok().zip(fs::read_to_string("/proc/self/maps").ok());
    if let Some(program) = found.and_then(|(path, maps)| code_of(&maps, path.to_str()?)) {
        // Set by an earlier runtime: the same.
        let _same = PROGRAM.set(program);
    }
}

/// The code of the file `path`, from the text of `/proc/self/maps`.
fn code_of(maps: &str, path: &str) -> Option<Range<usize>> {
    code_map::code_in(maps).find(|(_, file)| *file == path).map(|(range, _)| range)
}

#[cfg(test)]
mod tests;
