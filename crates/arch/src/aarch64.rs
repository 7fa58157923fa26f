//! `AArch64`, the 64-bit procedure call standard of Arm: stack switch, kernel-thread words,
//! restartable sequences.
//!
//! # A stack, suspended and prepared
//!
//! ```text
//!   suspended by `switch`                prepared, never run
//!   ┌─────────────────────┐              ┌─────────────────────┐ stack_top, rounded down to 16
//!   │ frames of the owner │              │ 0                   │
//!   ├─────────────────────┤              │ argument            │
//!   │ (alignment)         │              │ entry               │
//!   │ x29 (frame pointer) │              │ trampoline          │ ◄─ Context
//!   │ x19                 │              └─────────────────────┘
//!   │ resume address      │ ◄─ Context
//!   └─────────────────────┘
//! ```
//!
//! As on x86-64, every callee-saved register is declared as clobbered, except `x19` and `x29`,
//! which the compiler reserves. *Not* switched: FPCR.
//!
//! # Kernel-thread words
//!
//! x86-64 reads a word of the kernel thread by one instruction. Here the thread pointer is read
//! first and dereferenced then. A microprocess that is preempted in between may continue with
//! another kernel thread's pointer in its register. So a read is a restartable sequence, too. It
//! has no commit, because repeating a read is harmless. Writes are done only by code that is not
//! preempted.
#![expect(unsafe_code, reason = "this is the assembly")]

#[cfg(feature = "mutants")]
pub(crate) mod mutants;
mod restartable;

use core::arch::{asm, global_asm};
use core::ffi::c_void;

// ---------------------------------------------------------------------------------------------
// Kernel-thread words
// ---------------------------------------------------------------------------------------------

// Two zero-initialised words of each kernel thread, in static TLS (initial-exec model): their
// distance from the thread pointer is a constant of the process.
global_asm!(
    ".pushsection .tbss.kyocho_thread_words,\"awT\",%nobits",
    ".balign 8",
    ".globl kyocho_vp",
    ".hidden kyocho_vp",
    ".type kyocho_vp, %object",
    ".size kyocho_vp, 8",
    "kyocho_vp: .zero 8",
    ".globl kyocho_thread_word",
    ".hidden kyocho_thread_word",
    ".type kyocho_thread_word, %object",
    ".size kyocho_thread_word, 8",
    "kyocho_thread_word: .zero 8",
    ".popsection",
);

unsafe extern "C" {
    fn kyocho_read_vp();
    fn kyocho_read_thread_word();
}

/// The virtual processor that this kernel thread holds, or null.
///
/// Read from memory at every call. About 1 ns.
#[inline(always)]
#[must_use]
pub fn current_vp() -> *mut () {
    let vp: *mut ();
    // SAFETY: the sequence overwrites what is declared here.
    unsafe {
        asm!("bl {read}", read = sym kyocho_read_vp, out("x4") vp, out("x5") _, out("x30") _);
    }
    vp
}

/// Records the virtual processor that this kernel thread holds; null when it releases it.
///
/// # Safety
/// [`restartable`](crate::restartable) sequences commit without atomic instructions while this word
/// names their virtual processor: at most one kernel thread may have a given one in its word. Code
/// that interrupts this thread and lets others run on the virtual processor must rewind it first.
/// The caller is not preempted.
#[inline(always)]
pub unsafe fn set_current_vp(vp: *mut ()) {
    // SAFETY: writes one aligned word of this thread's static TLS; the caller guarantees its
    // meaning.
    unsafe {
        asm!(
            "adrp {0}, :gottprel:kyocho_vp",
            "ldr {0}, [{0}, :gottprel_lo12:kyocho_vp]",
            "mrs {1}, tpidr_el0",
            "str {2}, [{0}, {1}]",
            out(reg) _, out(reg) _, in(reg) vp, options(nostack, preserves_flags),
        );
    }
}

/// Address of this kernel thread's word of [`current_vp`], for a thread that takes the virtual
/// processor away from one that sleeps in the kernel. Valid as long as the thread lives. The caller
/// is not preempted.
#[must_use]
pub fn current_vp_word() -> *mut *mut () {
    let word: *mut *mut ();
    // SAFETY: computes an address.
    unsafe {
        asm!(
            "adrp {0}, :gottprel:kyocho_vp",
            "ldr {0}, [{0}, :gottprel_lo12:kyocho_vp]",
            "mrs {1}, tpidr_el0",
            "add {0}, {0}, {1}",
            out(reg) word, out(reg) _, options(nostack, readonly),
        );
    }
    word
}

/// The runtime's record of this kernel thread, or null. Read from memory at every call.
#[inline(always)]
#[must_use]
pub fn current_thread_word() -> *mut () {
    let word: *mut ();
    // SAFETY: as in `current_vp`.
    unsafe {
        asm!(
            "bl {read}",
            read = sym kyocho_read_thread_word, out("x4") word, out("x5") _, out("x30") _,
        );
    }
    word
}

/// Sets the runtime's record of this kernel thread.
///
/// # Safety
/// Readers dereference the word: while it is set, it must be null or point to what they expect. The
/// caller is not preempted.
#[inline(always)]
pub unsafe fn set_current_thread_word(word: *mut ()) {
    // SAFETY: as in `set_current_vp`.
    unsafe {
        asm!(
            "adrp {0}, :gottprel:kyocho_thread_word",
            "ldr {0}, [{0}, :gottprel_lo12:kyocho_thread_word]",
            "mrs {1}, tpidr_el0",
            "str {2}, [{0}, {1}]",
            out(reg) _, out(reg) _, in(reg) word, options(nostack, preserves_flags),
        );
    }
}

// ---------------------------------------------------------------------------------------------
// Stack switch
// ---------------------------------------------------------------------------------------------

/// A suspended stack: its saved stack pointer. The layout is described at the top of this file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(transparent)]
pub struct Context(*mut u8);

/// The position at which a suspended stack resumes: the start of its backtrace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Suspended {
    /// Address of the instruction that runs next.
    pub pc: usize,
    /// Stack pointer there.
    pub sp: usize,
    /// Frame pointer there.
    pub fp: usize,
}

impl Context {
    /// No stack: the initial value of a variable that the first [`switch`] writes.
    pub const NULL: Self = Self(core::ptr::null_mut());

    /// Whether this is [`Context::NULL`].
    #[must_use]
    pub const fn is_null(self) -> bool {
        self.0.is_null()
    }

    /// The lowest address in use on the suspended stack.
    #[must_use]
    pub fn stack_pointer(self) -> *mut u8 {
        self.0
    }

    /// The position at which the stack resumes, for backtraces.
    ///
    /// # Safety
    /// The stack was suspended by [`switch`], and stays suspended during the call.
    #[must_use]
    pub unsafe fn suspended(self) -> Suspended {
        let saved = self.0.cast::<[usize; 4]>();
        // SAFETY: the four words that `switch` pushed last: resume address, x19, x29, nothing.
        let [pc, _x19, fp, _alignment] = unsafe { *saved };
        Suspended { pc, sp: self.0 as usize + size_of::<[usize; 4]>(), fp }
    }
}

/// Number of words that `prepare` writes at the top of a stack.
const PREPARED_WORDS: usize = 4;

/// Prepares a new stack so that the first [`switch`] to it calls `entry(argument)` with the stack
/// aligned as the calling convention requires. `stack_top` is the first address above the stack.
///
/// # Safety
/// At least 48 writable bytes lie below `stack_top` and are not in use, and `entry` has enough
/// stack below them.
#[must_use]
pub unsafe fn prepare(
    stack_top: *mut u8,
    entry: unsafe extern "C" fn(argument: usize) -> !,
    argument: usize,
) -> Context {
    let top = stack_top.map_addr(|address| address & !15).cast::<usize>();
    // SAFETY: four words below the rounded top, inside the 48 bytes that the caller guarantees.
    let base = unsafe { top.sub(PREPARED_WORDS) };
    let words = [kyocho_trampoline as *const () as usize, entry as usize, argument, 0];
    // SAFETY: as above; `top` is aligned, so `base` is.
    unsafe { base.cast::<[usize; PREPARED_WORDS]>().write(words) };
    Context(base.cast())
}

/// Suspends the running stack, stores its context in `*save`, and resumes `to`. Returns when a
/// switch resumes the stored context, perhaps on another kernel thread. Takes 1 to 4 ns.
///
/// # Safety
/// - `save` is writable. It is written before the stack is left, so another kernel thread that sees
///   it must not switch to it before this one has left the stack: publish it after the switch.
/// - `to` is suspended or prepared, and no other thread switches to it: a `Context` is valid for
///   one switch.
/// - No value that the caller keeps across the call depends on the kernel thread (such as a TLS
///   address).
#[inline(always)]
pub unsafe fn switch(save: *mut Context, to: Context) {
    // SAFETY: on resumption the stack pointer, x19 and x29 are those of the suspension; every other
    // callee-saved register is declared clobbered.
    unsafe {
        asm!(
            "adr x9, 2f",
            "stp x9, x19, [sp, #-32]!",
            "str x29, [sp, #16]",
            "mov x9, sp",
            "str x9, [x0]",
            "mov sp, x1",
            "ldr x9, [sp]",
            "br x9",
            "2:",
            "ldr x19, [sp, #8]",
            "ldr x29, [sp, #16]",
            "add sp, sp, #32",
            inout("x0") save => _,
            inout("x1") to.0 => _,
            lateout("x20") _, lateout("x21") _, lateout("x22") _, lateout("x23") _,
            lateout("x24") _, lateout("x25") _, lateout("x26") _, lateout("x27") _,
            lateout("x28") _,
            clobber_abi("C"),
        );
    }
}

unsafe extern "C" {
    fn kyocho_trampoline();
}

// Entered by the `br` of a switch, with the layout above on the stack. The leading `nop` is never
// executed: unwinders look up the return address minus one instruction.
global_asm!(
    ".pushsection .text.kyocho_trampoline,\"ax\",%progbits",
    ".balign 16",
    ".globl kyocho_trampoline",
    ".hidden kyocho_trampoline",
    ".type kyocho_trampoline, %function",
    ".cfi_startproc",
    ".cfi_undefined x30",
    "nop",
    "kyocho_trampoline:",
    "ldr x9, [sp, #8]",  // entry
    "ldr x0, [sp, #16]", // argument
    "add sp, sp, #32",
    "mov x29, #0",
    "mov x30, #0",
    "blr x9",
    "brk #1", // `entry` does not return
    ".cfi_endproc",
    ".size kyocho_trampoline, . - kyocho_trampoline",
    ".popsection",
);

// ---------------------------------------------------------------------------------------------
// The interrupted context of a signal handler
// ---------------------------------------------------------------------------------------------

/// Offsets in the kernel's `ucontext_t`: 176 bytes before the machine context, a fault address, 31
/// registers.
const REGISTERS: usize = 176 + 8;
const FP: usize = REGISTERS + 29 * 8;
const SP: usize = REGISTERS + 31 * 8;
const PC: usize = REGISTERS + 32 * 8;

/// The instruction that a signal interrupted.
///
/// # Safety
/// `ucontext` is the third argument of a running `SA_SIGINFO` handler. The same holds for the three
/// below.
#[must_use]
pub unsafe fn pc_of(ucontext: *const c_void) -> usize {
    // SAFETY: the kernel wrote the context; the caller guarantees that this is one.
    unsafe { ucontext.wrapping_byte_add(PC).cast::<usize>().read() }
}

/// The stack pointer at the interruption.
///
/// # Safety
/// As for [`pc_of`].
#[must_use]
pub unsafe fn sp_of(ucontext: *const c_void) -> usize {
    // SAFETY: as in `pc_of`.
    unsafe { ucontext.wrapping_byte_add(SP).cast::<usize>().read() }
}

/// The frame pointer at the interruption.
///
/// # Safety
/// As for [`pc_of`].
#[must_use]
pub unsafe fn fp_of(ucontext: *const c_void) -> usize {
    // SAFETY: as in `pc_of`.
    unsafe { ucontext.wrapping_byte_add(FP).cast::<usize>().read() }
}

/// Makes the interrupted code continue at `pc` when the handler returns.
///
/// # Safety
/// As for [`pc_of`]; and the interrupted registers are those that the code at `pc` expects.
pub unsafe fn set_pc(ucontext: *mut c_void, pc: usize) {
    // SAFETY: as in `pc_of`.
    unsafe { ucontext.wrapping_byte_add(PC).cast::<usize>().write(pc) };
}

/// Whether these can be the words before and after a program counter that the kernel has saved for
/// a signal handler: the stack pointer; the processor state and a reserved word.
#[must_use]
pub const fn is_beside_saved_pc([sp, state, _reserved]: [usize; 3]) -> bool {
    /// 64-bit code of a program has 0 in these bits.
    const MODE: usize = 0b1_1111;
    /// The state has 32 bits.
    const STATE_END: usize = 1 << 32;
    sp != 0 && sp.is_multiple_of(16) && state & MODE == 0 && state < STATE_END
}

// ---------------------------------------------------------------------------------------------
// System calls
// ---------------------------------------------------------------------------------------------

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
    // SAFETY: the kernel overwrites x0, and memory as the call specifies.
    unsafe {
        asm!(
            "svc #0",
            in("x8") number,
            inlateout("x0") a => answer,
            in("x1") b, in("x2") c, in("x3") d, in("x4") e, in("x5") f,
            options(nostack),
        );
    }
    answer
}
