//! x86-64, System V: stack switch, kernel-thread words, signal contexts, system calls. Restartable
//! sequences are in `x86_64/restartable.rs` (nullified by Kyocho's preemption handler) and
//! `x86_64/rseq.rs` (nullified by Linux).
//!
//! # A stack, suspended and prepared
//!
//! ```text
//!   suspended by `switch`                prepared, never run
//!   ┌─────────────────────┐              ┌─────────────────────┐ stack_top, rounded down to 16
//!   │ frames of the owner │              │ 0                   │ ends a walk that follows
//!   ├─────────────────────┤              │ 0                   │   frame pointers
//!   │ rbp                 │              │ argument            │
//!   │ rbx                 │              │ entry               │
//!   │ resume address      │ ◄─ Context   │ trampoline          │ ◄─ Context
//!   └─────────────────────┘              └─────────────────────┘
//! ```
//!
//! A switch saves its resume address and stack pointer. Every callee-saved register is declared as
//! clobbered, so the compiler saves those that are live at the call. `rbx` and `rbp` cannot be
//! declared (the compiler reserves them) and are pushed explicitly.
//!
//! The target is entered by `pop; jmp`. A `ret` would do the same in one instruction, but it would
//! be mispredicted each time, because the processor's return stack still has the addresses of the
//! previous stack. That triples the cost.
//!
//! *Not* switched: MXCSR and the x87 control word. Rounding modes and exception masks therefore
//! belong to the kernel thread; code that changes them must change them back before it can suspend.
//!
//! # Backtraces
//!
//! The trampoline at the bottom of each stack declares its return address undefined, which marks
//! the outermost frame in unwind tables: debuggers, panics and profilers stop there.
#![expect(unsafe_code, reason = "this is the assembly")]

pub mod emulation;
pub mod instruments;
pub mod launcher;
#[cfg(feature = "mutants")]
pub(crate) mod mutants;
mod restartable;
pub(crate) mod rseq;
mod system_call;

use core::arch::{asm, global_asm};
use core::ffi::c_void;

pub use system_call::system_call;

// ---------------------------------------------------------------------------------------------
// Kernel-thread words
// ---------------------------------------------------------------------------------------------

// Two zero-initialised words of each kernel thread, in static TLS (initial-exec model): their
// distance from the thread pointer is a constant of the process. So a preemption between the two
// instructions of an access is harmless, even if the access is completed on another thread.
global_asm!(
    ".pushsection .tbss.kyocho_thread_words,\"awT\",@nobits",
    ".balign 8",
    ".globl kyocho_vp",
    ".hidden kyocho_vp",
    ".type kyocho_vp, @object",
    ".size kyocho_vp, 8",
    "kyocho_vp: .zero 8",
    ".globl kyocho_thread_word",
    ".hidden kyocho_thread_word",
    ".type kyocho_thread_word, @object",
    ".size kyocho_thread_word, 8",
    "kyocho_thread_word: .zero 8",
    ".popsection",
);

/// The virtual processor that this kernel thread holds, or null.
///
/// Read from memory at every call. About 1 ns.
#[inline(always)]
#[must_use]
pub fn current_vp() -> *mut () {
    let vp: *mut ();
    // SAFETY: reads one aligned word of this thread's static TLS, which exists as long as the
    // thread.
    unsafe {
        asm!(
            "mov {0}, qword ptr [rip + kyocho_vp@GOTTPOFF]",
            "mov {0}, qword ptr fs:[{0}]",
            out(reg) vp, options(nostack, preserves_flags, readonly),
        );
    }
    vp
}

/// Records the virtual processor that this kernel thread holds; null when it releases it.
///
/// # Safety
/// [`restartable`](crate::restartable) sequences commit without atomic instructions while this word
/// names their virtual processor: at most one kernel thread may have a given one in its word. Code
/// that interrupts this thread and lets others run on the virtual processor must rewind it first.
#[inline(always)]
pub unsafe fn set_current_vp(vp: *mut ()) {
    // SAFETY: writes one aligned word of this thread's static TLS; the caller guarantees its
    // meaning.
    unsafe {
        asm!(
            "mov {0}, qword ptr [rip + kyocho_vp@GOTTPOFF]",
            "mov qword ptr fs:[{0}], {1}",
            out(reg) _, in(reg) vp, options(nostack, preserves_flags),
        );
    }
}

/// Address of this kernel thread's word of [`current_vp`], for a thread that takes the virtual
/// processor away from one that sleeps in the kernel. Valid as long as the thread lives.
#[must_use]
pub fn current_vp_word() -> *mut *mut () {
    let word: *mut *mut ();
    // SAFETY: computes an address; the first word at the thread pointer is the thread pointer
    // itself.
    unsafe {
        asm!(
            "mov {0}, qword ptr [rip + kyocho_vp@GOTTPOFF]",
            "add {0}, qword ptr fs:[0]",
            out(reg) word, options(nostack, readonly),
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
            "mov {0}, qword ptr [rip + kyocho_thread_word@GOTTPOFF]",
            "mov {0}, qword ptr fs:[{0}]",
            out(reg) word, options(nostack, preserves_flags, readonly),
        );
    }
    word
}

/// Sets the runtime's record of this kernel thread.
///
/// # Safety
/// Readers dereference the word: while it is set, it must be null or point to what they expect.
#[inline(always)]
pub unsafe fn set_current_thread_word(word: *mut ()) {
    // SAFETY: as in `set_current_vp`.
    unsafe {
        asm!(
            "mov {0}, qword ptr [rip + kyocho_thread_word@GOTTPOFF]",
            "mov qword ptr fs:[{0}], {1}",
            out(reg) _, in(reg) word, options(nostack, preserves_flags),
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
        let saved = self.0.cast::<[usize; 3]>();
        // SAFETY: the three words that `switch` pushed last: resume address, rbx, rbp.
        let [pc, _rbx, fp] = unsafe { *saved };
        Suspended { pc, sp: self.0 as usize + size_of::<[usize; 3]>(), fp }
    }
}

/// Number of words that `prepare` writes at the top of a stack.
const PREPARED_WORDS: usize = 5;

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
    // SAFETY: five words below the rounded top, inside the 48 bytes that the caller guarantees.
    let base = unsafe { top.sub(PREPARED_WORDS) };
    let words = [kyocho_trampoline as *const () as usize, entry as usize, argument, 0, 0];
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
    // SAFETY: on resumption the stack pointer, rbx and rbp are those of the suspension; every other
    // callee-saved register is declared clobbered. No red zone is in use (`nostack` is absent).
    unsafe {
        asm!(
            "push rbp",
            "push rbx",
            "lea rax, [rip + 2f]",
            "push rax",
            "mov qword ptr [rdi], rsp",
            "mov rsp, rsi",
            "pop rax",
            "jmp rax",
            "2:",
            "pop rbx",
            "pop rbp",
            inout("rdi") save => _,
            inout("rsi") to.0 => _,
            lateout("rax") _,
            lateout("r12") _, lateout("r13") _, lateout("r14") _, lateout("r15") _,
            clobber_abi("sysv64"),
        );
    }
}

unsafe extern "C" {
    fn kyocho_trampoline();
}

// Entered by the `jmp` of a switch, with `entry` and `argument` on the stack. The leading `nop` is
// never executed. Unwinders look up the return address minus one, and the return address of `entry`
// minus one must lie inside this frame description.
global_asm!(
    ".pushsection .text.kyocho_trampoline,\"ax\",@progbits",
    ".balign 16",
    ".globl kyocho_trampoline",
    ".hidden kyocho_trampoline",
    ".type kyocho_trampoline, @function",
    ".cfi_startproc",
    ".cfi_undefined rip",
    "nop",
    "kyocho_trampoline:",
    "pop rax", // entry
    "pop rdi", // argument
    "xor ebp, ebp",
    "call rax",
    "ud2", // `entry` does not return
    ".cfi_endproc",
    ".size kyocho_trampoline, . - kyocho_trampoline",
    ".popsection",
);

// ---------------------------------------------------------------------------------------------
// The interrupted context of a signal handler
// ---------------------------------------------------------------------------------------------

/// Offset of the general registers in the kernel's `ucontext_t`, and of three of them there, in
/// bytes.
const REGISTERS: usize = 40;
const RBP: usize = REGISTERS + 10 * 8;
const RSP: usize = REGISTERS + 15 * 8;
const RIP: usize = REGISTERS + 16 * 8;

/// The instruction that a signal interrupted.
///
/// # Safety
/// `ucontext` is the third argument of a running `SA_SIGINFO` handler. The same holds for the three
/// below.
#[must_use]
pub unsafe fn pc_of(ucontext: *const c_void) -> usize {
    // SAFETY: the kernel wrote the context; the caller guarantees that this is one.
    unsafe { ucontext.wrapping_byte_add(RIP).cast::<usize>().read() }
}

/// The stack pointer at the interruption.
///
/// # Safety
/// As for [`pc_of`].
#[must_use]
pub unsafe fn sp_of(ucontext: *const c_void) -> usize {
    // SAFETY: as in `pc_of`.
    unsafe { ucontext.wrapping_byte_add(RSP).cast::<usize>().read() }
}

/// The frame pointer at the interruption.
///
/// # Safety
/// As for [`pc_of`].
#[must_use]
pub unsafe fn fp_of(ucontext: *const c_void) -> usize {
    // SAFETY: as in `pc_of`.
    unsafe { ucontext.wrapping_byte_add(RBP).cast::<usize>().read() }
}

/// Makes the interrupted code continue at `pc` when the handler returns.
///
/// # Safety
/// As for [`pc_of`]; and the interrupted registers are those that the code at `pc` expects.
pub unsafe fn set_pc(ucontext: *mut c_void, pc: usize) {
    // SAFETY: as in `pc_of`.
    unsafe { ucontext.wrapping_byte_add(RIP).cast::<usize>().write(pc) };
}

/// Whether these can be the words before and after a program counter that the kernel has saved for
/// a signal handler: the stack pointer; the flags and the segments.
#[must_use]
pub const fn is_beside_saved_pc([_sp, flags, segments]: [usize; 3]) -> bool {
    /// Set in user mode: interrupts are permitted, and a bit that is always set.
    const ALWAYS_SET: usize = 0x202;
    /// The flags have 22 bits.
    const FLAGS_END: usize = 1 << 22;
    /// The code segment of 64-bit programs. Under the hypervisor Xen, higher bits are set, too.
    const USER_CODE: usize = 0x033;
    flags & ALWAYS_SET == ALWAYS_SET && flags < FLAGS_END && segments & 0xfff == USER_CODE
}
