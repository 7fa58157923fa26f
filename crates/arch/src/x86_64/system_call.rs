//! System calls.

use core::arch::asm;

/// Calls the host kernel: its answer, or the negated error number.
///
/// Unlike the C library's `syscall` it leaves `errno` alone, which belongs to a kernel thread: code
/// that may be preempted between the call and the look at `errno` would read another thread's.
///
/// # Safety
/// As the call asks of its arguments.
#[inline(always)]
#[must_use]
pub unsafe fn system_call(number: usize, arguments: [usize; 6]) -> isize {
    let [a, b, c, d, e, f] = arguments;
    let answer: isize;
    // SAFETY: the kernel overwrites rax, rcx and r11, and memory as the call says.
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
