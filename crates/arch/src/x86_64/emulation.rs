//! What an emulation library in a UNIX client needs that no compiler writes (Paper 2).
//!
//! ```text
//!   enter     a program's first instruction, on the stack that it was given        thread   a second kernel thread
//!   copy      bytes between program and library; a fault ends it with an answer    leave    the end of one, with its stack
//!   return    what a signal handler returns to                                     alternate   another stack for signals
//! ```
//!
//! Nothing here uses thread-local storage: the thread pointer is the program's.

use core::arch::global_asm;

global_asm!(
    ".pushsection .text.kyocho_emulation,\"ax\",@progbits",
    ".globl kyocho_emulation_return, kyocho_emulation_copy, kyocho_emulation_copy_step",
    ".globl kyocho_emulation_copy_fault, kyocho_emulation_thread, kyocho_emulation_enter",
    ".globl kyocho_emulation_leave, kyocho_emulation_alternate",
    ".hidden kyocho_emulation_return, kyocho_emulation_copy, kyocho_emulation_copy_step",
    ".hidden kyocho_emulation_copy_fault, kyocho_emulation_thread, kyocho_emulation_enter",
    ".hidden kyocho_emulation_leave, kyocho_emulation_alternate",
    // rsp: the host's signal frame.
    "kyocho_emulation_return:",
    "mov eax, 15", // rt_sigreturn
    "syscall",
    "ud2",
    // rdi: to, rsi: from, rdx: bytes. Out: rax 0, or 1 where a byte could not be read or written.
    "kyocho_emulation_copy:",
    "mov rcx, rdx",
    "xor eax, eax",
    "kyocho_emulation_copy_step:",
    "rep movsb",
    "ret",
    "kyocho_emulation_copy_fault:",
    "mov eax, 1",
    "ret",
    // rdi: flags, rsi: stack, rdx, rcx: where the thread's number goes, r8: thread pointer. Out: rax, the caller's alone.
    // The new stack: first instruction, its argument, a return address that is none.
    "kyocho_emulation_thread:",
    "mov r10, rcx",
    "mov eax, 56", // clone
    "syscall",
    "test rax, rax",
    "jz 2f",
    "ret",
    "2: xor ebp, ebp",
    "pop rax",
    "pop rdi",
    "jmp rax",
    // rdi: where the count of arguments is, rsi: the first instruction.
    "kyocho_emulation_enter:",
    "lea rsp, [rdi - 8]",
    "mov rax, rsi",
    "xor ebx, ebx",
    "xor ecx, ecx",
    "xor edx, edx",
    "xor esi, esi",
    "xor ebp, ebp",
    "xor r8d, r8d",
    "xor r9d, r9d",
    "xor r12d, r12d",
    "xor r13d, r13d",
    "xor r14d, r14d",
    "xor r15d, r15d",
    "jmp rax",
    // rdi: the new one, rsi: a stack pointer that is not in the old one. Out: rax.
    "kyocho_emulation_alternate:",
    "mov rdx, rsp",
    "mov rsp, rsi",
    "xor esi, esi",
    "mov eax, 131", // sigaltstack
    "syscall",
    "mov rsp, rdx",
    "ret",
    // rdi: the stack we stand on, rsi: its bytes.
    "kyocho_emulation_leave:",
    "mov eax, 11", // munmap
    "syscall",
    "xor edi, edi",
    "mov eax, 60", // exit
    "syscall",
    "ud2",
    ".popsection",
);

unsafe extern "C" {
    fn kyocho_emulation_return();
    fn kyocho_emulation_copy(to: u64, from: u64, bytes: u64) -> u64;
    fn kyocho_emulation_copy_step();
    fn kyocho_emulation_copy_fault();
    fn kyocho_emulation_thread(
        flags: u64,
        stack: u64,
        for_parent: u64,
        for_child: u64,
        pointer: u64,
    ) -> i64;
    fn kyocho_emulation_enter(stack: u64, entry: u64) -> !;
    fn kyocho_emulation_leave(stack: u64, bytes: u64) -> !;
    fn kyocho_emulation_alternate(new: u64, elsewhere: u64) -> i64;
}

/// Writes what a program that is such a library, and nothing else, needs: its start, which calls `$begin` with the stack pointer that it was entered with, and the
/// four functions that compilers take for granted.
#[macro_export]
macro_rules! emulation_image {
    ($begin:path) => {
        core::arch::global_asm!(
            ".pushsection .text.kyocho_emulation_image,\"ax\",@progbits",
            ".globl kyocho_emulation_start, memcpy, memmove, memset, memcmp, bcmp",
            "kyocho_emulation_start:",
            "mov rdi, rsp",
            "and rsp, -16",
            "call {begin}",
            "ud2",
            // rdi: to, rsi: from, rdx: bytes. Out: rax to.
            "memmove:",
            "mov rax, rdi",
            "sub rax, rsi",
            "cmp rax, rdx",
            "jae memcpy",
            // The end of what is read would be overwritten: backwards.
            "mov rax, rdi",
            "mov rcx, rdx",
            "lea rdi, [rdi + rdx - 1]",
            "lea rsi, [rsi + rdx - 1]",
            "std",
            "rep movsb",
            "cld",
            "ret",
            "memcpy:",
            "mov rax, rdi",
            "mov rcx, rdx",
            "rep movsb",
            "ret",
            // rdi: to, esi: byte, rdx: bytes. Out: rax to.
            "memset:",
            "mov r8, rdi",
            "mov eax, esi",
            "mov rcx, rdx",
            "rep stosb",
            "mov rax, r8",
            "ret",
            // rdi, rsi: both, rdx: bytes. Out: eax their order.
            "memcmp:",
            "bcmp:",
            "xor eax, eax",
            "2: sub rdx, 1",
            "jb 3f",
            "movzx eax, byte ptr [rdi]",
            "movzx ecx, byte ptr [rsi]",
            "inc rdi",
            "inc rsi",
            "sub eax, ecx",
            "jz 2b",
            "3: ret",
            ".popsection",
            begin = sym $begin,
        );
    };
}

/// Where signal handlers return to: the host takes the thread back to what it interrupted.
#[must_use]
pub fn signal_return() -> u64 {
    (kyocho_emulation_return as *const ()).addr() as u64
}

/// Copies `bytes` from address `from` to address `to`: whether all could be, where the handler of memory faults asks [`after_fault`].
///
/// # Safety
/// Each side is memory of the caller's, or of a program whose memory no reference of the caller's leads to.
#[must_use]
pub unsafe fn copy(to: u64, from: u64, bytes: u64) -> bool {
    // SAFETY: the caller's promise.
    unsafe { kyocho_emulation_copy(to, from, bytes) == 0 }
}

/// Where a thread goes on that had a memory fault at `counter`, if that is in [`copy`].
#[must_use]
pub fn after_fault(counter: u64) -> Option<u64> {
    let step = (kyocho_emulation_copy_step as *const ()).addr() as u64;
    (counter == step).then(|| (kyocho_emulation_copy_fault as *const ()).addr() as u64)
}

/// `clone` with `flags`: the new thread begins at the address that stands at `stack`, with the word behind it as argument, and a stack pointer
/// behind both. The host's answer.
///
/// # Safety
/// As `clone` asks; the two words are there, and nobody else uses the stack.
#[must_use]
pub unsafe fn thread(flags: u64, stack: u64, for_parent: u64, for_child: u64, pointer: u64) -> i64 {
    // SAFETY: the caller's promise.
    unsafe { kyocho_emulation_thread(flags, stack, for_parent, for_child, pointer) }
}

/// Begins a program at `entry`, with the host's first stack at `stack`.
///
/// # Safety
/// Nothing of what the caller has on its stack is used any more.
pub unsafe fn enter(stack: u64, entry: u64) -> ! {
    // SAFETY: the caller's promise.
    unsafe { kyocho_emulation_enter(stack, entry) }
}

/// `sigaltstack` for a thread that may stand on the old one, which the host refuses: it makes the call with its stack pointer `elsewhere`. The host's answer.
///
/// # Safety
/// The structure at `new` is one; no signal is delivered to the thread meanwhile.
#[must_use]
pub unsafe fn set_alternate_stack(new: u64, elsewhere: u64) -> i64 {
    // SAFETY: the caller's promise.
    unsafe { kyocho_emulation_alternate(new, elsewhere) }
}

/// Ends the process, by an instruction that is none.
pub fn abort() -> ! {
    // SAFETY: nothing of the process goes on.
    unsafe { core::arch::asm!("ud2", options(noreturn, nomem, nostack)) }
}

/// Ends the calling kernel thread, and unmaps `bytes` at `stack`, on which it may stand.
///
/// # Safety
/// No signal is delivered to it any more, and nobody else uses that memory.
pub unsafe fn leave(stack: u64, bytes: u64) -> ! {
    // SAFETY: the caller's promise.
    unsafe { kyocho_emulation_leave(stack, bytes) }
}
