//! The parts of an emulation library in a UNIX client that a compiler cannot generate (Paper 2).
//!
//! ```text
//!   enter      a program's first instruction, on the stack that it was given
//!   copy       bytes between program and library; a fault ends it with an answer
//!   return     what a signal handler returns to
//!   thread     a second kernel thread
//!   leave      the end of one, with its stack
//!   alternate  another stack for signals
//! ```
//!
//! Nothing here uses thread-local storage, because the thread pointer belongs to the program.

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
    // rdi: to, rsi: from, rdx: bytes. Out: rax 0, or 1 if a byte could not be read or written.
    "kyocho_emulation_copy:",
    "mov rcx, rdx",
    "xor eax, eax",
    "kyocho_emulation_copy_step:",
    "rep movsb",
    "ret",
    "kyocho_emulation_copy_fault:",
    "mov eax, 1",
    "ret",
    // rdi: flags, rsi: stack, rdx, rcx: where the thread's number goes, r8: thread pointer. Out:
    // rax, in the calling thread only. The new stack: first instruction, its argument, an invalid
    // return address.
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
    // rdi: address of the argument count, rsi: the first instruction.
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
    // rdi: the current stack, rsi: its length in bytes.
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

/// Defines what a program consisting of such a library needs: its entry point, which calls `$begin`
/// with the stack pointer at entry, and the four functions that compilers assume to exist.
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
            // Copies backwards, because a forward copy would overwrite the end of the source.
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
            // rdi, rsi: the two, rdx: bytes. Out: eax their order.
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

/// The address to which signal handlers return: it makes the host resume the interrupted code.
#[must_use]
pub fn signal_return() -> u64 {
    (kyocho_emulation_return as *const ()).addr() as u64
}

/// Copies `bytes` from address `from` to address `to`. Returns whether all were copied, if the
/// handler of memory faults uses [`after_fault`].
///
/// # Safety
/// Each side is memory of the caller, or memory of a program to which the caller has no references.
#[must_use]
pub unsafe fn copy(to: u64, from: u64, bytes: u64) -> bool {
    // SAFETY: guaranteed by the caller.
    unsafe { kyocho_emulation_copy(to, from, bytes) == 0 }
}

/// The address at which a thread continues after a memory fault at `counter`, if that is in
/// [`copy`].
#[must_use]
pub fn after_fault(counter: u64) -> Option<u64> {
    let step = (kyocho_emulation_copy_step as *const ()).addr() as u64;
    (counter == step).then(|| (kyocho_emulation_copy_fault as *const ()).addr() as u64)
}

/// `clone` with `flags`: the new thread starts at the address stored at `stack`, with the next word
/// as its argument and the stack pointer after both. Returns the host's result.
///
/// # Safety
/// The arguments are valid for `clone`; the two words are there, and the stack is not in use.
#[must_use]
pub unsafe fn thread(flags: u64, stack: u64, for_parent: u64, for_child: u64, pointer: u64) -> i64 {
    // SAFETY: guaranteed by the caller.
    unsafe { kyocho_emulation_thread(flags, stack, for_parent, for_child, pointer) }
}

/// Starts a program at `entry`, with the host's initial stack at `stack`.
///
/// # Safety
/// Nothing on the caller's stack is used any more.
pub unsafe fn enter(stack: u64, entry: u64) -> ! {
    // SAFETY: guaranteed by the caller.
    unsafe { kyocho_emulation_enter(stack, entry) }
}

/// `sigaltstack` for a thread that may be on the old alternate stack, which the host would refuse.
/// So the call is made with the stack pointer `elsewhere`. Returns the host's result.
///
/// # Safety
/// `new` points to a valid structure; no signal is delivered to the thread meanwhile.
#[must_use]
pub unsafe fn set_alternate_stack(new: u64, elsewhere: u64) -> i64 {
    // SAFETY: guaranteed by the caller.
    unsafe { kyocho_emulation_alternate(new, elsewhere) }
}

/// Ends the process with an invalid instruction.
pub fn abort() -> ! {
    // SAFETY: nothing of the process continues.
    unsafe { core::arch::asm!("ud2", options(noreturn, nomem, nostack)) }
}

/// Ends the calling kernel thread and unmaps `bytes` at `stack`, which may be its current stack.
///
/// # Safety
/// No signal is delivered to it any more, and no other thread uses that memory.
pub unsafe fn leave(stack: u64, bytes: u64) -> ! {
    // SAFETY: guaranteed by the caller.
    unsafe { kyocho_emulation_leave(stack, bytes) }
}
