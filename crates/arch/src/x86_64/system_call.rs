//! System calls.

use core::arch::asm;

/// Calls the host kernel. Returns its result, or the negated error number.
///
/// Unlike the C library's `syscall` it does not use `errno`, which belongs to a kernel thread. Code
/// that is preempted between the call and a read of `errno` could read another thread's.
///
/// # Safety
/// The arguments are valid for the call.
#[inline(always)]
#[must_use]
pub unsafe fn system_call(number: usize, arguments: [usize; 6]) -> isize {
    let [a, b, c, d, e, f] = arguments;
    let answer: isize;
    // SAFETY: the kernel overwrites rax, rcx and r11, and memory as the call specifies.
    unsafe {
        asm!(
            "syscall",
            inlateout("rax") number => answer,
            in("rdi") a, in("rsi") b, in("rdx") c, in("r10") d, in("r8") e, in("r9") f,
            lateout("rcx") _, lateout("r11") _,
            options(nostack),
        );
    }
    answer
}
