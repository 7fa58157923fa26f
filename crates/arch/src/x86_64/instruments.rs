//! Notes to analysis tools about stacks: to Valgrind by instructions without other effect, to
//! `ThreadSanitizer` by calls of its runtime, if the program contains it.
//!
//! The runtime's functions are weak symbols: zero if they are not defined, however the program is
//! linked.

use core::arch::{asm, global_asm};
use core::ffi::{c_uint, c_void};

global_asm!(
    ".weak __tsan_get_current_fiber",
    ".weak __tsan_create_fiber",
    ".weak __tsan_destroy_fiber",
    ".weak __tsan_switch_to_fiber",
    ".weak __tsan_acquire",
    ".weak __tsan_release",
    ".pushsection .data.rel.ro.kyocho_instruments,\"aw\",@progbits",
    ".balign 8",
    ".globl kyocho_instruments",
    ".hidden kyocho_instruments",
    ".type kyocho_instruments, @object",
    ".size kyocho_instruments, 48",
    "kyocho_instruments:",
    ".quad __tsan_get_current_fiber",
    ".quad __tsan_create_fiber",
    ".quad __tsan_destroy_fiber",
    ".quad __tsan_switch_to_fiber",
    ".quad __tsan_acquire",
    ".quad __tsan_release",
    ".popsection",
);

/// Functions of `ThreadSanitizer` (`sanitizer/tsan_interface.h`). A fiber is its record of one
/// stack.
#[repr(C)]
#[derive(Debug)]
pub struct ThreadSanitizer {
    /// The fiber that the calling thread runs.
    pub current_fiber: Option<unsafe extern "C" fn() -> *mut c_void>,
    /// Creates a fiber; the flags are 0.
    pub create_fiber: Option<unsafe extern "C" fn(c_uint) -> *mut c_void>,
    /// Destroys a fiber that no thread runs.
    pub destroy_fiber: Option<unsafe extern "C" fn(*mut c_void)>,
    /// The calling thread continues with a fiber; flag 1: this does not synchronise.
    pub switch_to_fiber: Option<unsafe extern "C" fn(*mut c_void, c_uint)>,
    /// Everything before releases at this address happens before the caller continues.
    pub acquire: Option<unsafe extern "C" fn(*mut c_void)>,
    /// See `acquire`.
    pub release: Option<unsafe extern "C" fn(*mut c_void)>,
}

unsafe extern "C" {
    static kyocho_instruments: ThreadSanitizer;
}

/// `ThreadSanitizer`'s functions, each present or not. One load tells whether a function is
/// present.
#[inline(always)]
#[must_use]
pub fn thread_sanitizer() -> &'static ThreadSanitizer {
    // SAFETY: defined above, of this layout, and never written.
    unsafe { &kyocho_instruments }
}

/// Valgrind's number for the registration of a stack (`valgrind.h`).
const STACK_REGISTER: usize = 0x1501;

/// Tells Valgrind, if it runs this program, that the bytes from `lowest` to before `end` are a
/// stack. Otherwise a few instructions without effect.
pub fn register_stack(lowest: usize, end: usize) {
    let request = [STACK_REGISTER, lowest, end, 0, 0, 0];
    // SAFETY: the rotations add up to two full turns, and the exchange is with itself. Valgrind,
    // which knows the sequence, reads the request and writes its answer to rdx.
    unsafe {
        asm!(
            "rol rdi, 3",
            "rol rdi, 13",
            "rol rdi, 61",
            "rol rdi, 51",
            "xchg rbx, rbx",
            in("rax") request.as_ptr(),
            inout("rdx") 0_usize => _,
            options(nostack),
        );
    }
}
