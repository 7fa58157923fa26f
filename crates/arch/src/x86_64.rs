//! x86-64, System V: stack switch, kernel-thread words, signal contexts, system calls. Restartable sequences lie in
//! `x86_64/restartable.rs` (nullified by our preemption handler) and `x86_64/rseq.rs` (nullified by Linux).
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
//! A switch saves its own resume address and stack pointer, nothing else of fixed size: every
//! register that the calling convention lets a function keep is declared as overwritten, so the
//! compiler saves those that are live at this very place. `rbx` and `rbp` cannot be declared (the
//! compiler reserves them) and are pushed by hand.
//!
//! The target is entered by `pop; jmp`. A `ret` would do the same in one instruction and be
//! mispredicted each time, because the return stack of the processor still holds the addresses of
//! the stack that was left: three times the cost.
//!
//! *Not* switched: MXCSR and the x87 control word. Rounding modes and exception masks therefore belong to
//! the kernel thread; code that changes them must change them back before it can suspend.
//!
//! # Backtraces
//!
//! The trampoline at the bottom of each stack declares its return address undefined, which is how
//! the unwind tables say "outermost frame": a debugger, a panic and a profiler end there.
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
// distance from the thread pointer is one constant for the whole process. A preemption between the
// two instructions of an access is therefore harmless, on whatever thread it is finished.
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
/// Read afresh at every call. About 1 ns.
#[inline(always)]
#[must_use]
pub fn current_vp() -> *mut () {
    let vp: *mut ();
    // SAFETY: reads one aligned word of this thread's static TLS, which exists as long as the thread.
    unsafe {
        asm!(
            "mov {0}, qword ptr [rip + kyocho_vp@GOTTPOFF]",
            "mov {0}, qword ptr fs:[{0}]",
            out(reg) vp, options(nostack, preserves_flags, readonly),
        );
    }
    vp
}

/// Records which virtual processor this kernel thread holds; null when it gives it up.
///
/// # Safety
/// [`restartable`](crate::restartable) sequences commit without atomic instructions while this
/// word names their virtual processor: at most one kernel thread may have a given one in its word, and
/// whoever interrupts this thread and lets others run on the virtual processor rewinds it first.
#[inline(always)]
pub unsafe fn set_current_vp(vp: *mut ()) {
    // SAFETY: writes one aligned word of this thread's static TLS; the caller vouches for its meaning.
    unsafe {
        asm!(
            "mov {0}, qword ptr [rip + kyocho_vp@GOTTPOFF]",
            "mov qword ptr fs:[{0}], {1}",
            out(reg) _, in(reg) vp, options(nostack, preserves_flags),
        );
    }
}

/// Where the word of [`current_vp`] lies for this kernel thread: for whoever takes the virtual processor away
/// from a thread that sleeps in the kernel. Valid as long as the thread.
#[must_use]
pub fn current_vp_word() -> *mut *mut () {
    let word: *mut *mut ();
    // SAFETY: computes an address; the first word at the thread pointer is the thread pointer itself.
    unsafe {
        asm!(
            "mov {0}, qword ptr [rip + kyocho_vp@GOTTPOFF]",
            "add {0}, qword ptr fs:[0]",
            out(reg) word, options(nostack, readonly),
        );
    }
    word
}

/// The runtime's record of this kernel thread, or null. Read afresh at every call.
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
/// Whoever reads the word follows it: it must be null or point to what the readers expect, for as
/// long as it stays set.
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

/// A suspended stack: its saved stack pointer. The picture is on top of this file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(transparent)]
pub struct Context(*mut u8);

/// Where a suspended stack goes on: what a backtrace of it starts from.
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
    /// No stack. For the place that the first [`switch`] fills in.
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

    /// Where the stack goes on, for backtraces.
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

/// Words that `prepare` lays down at the top of a stack.
const PREPARED_WORDS: usize = 5;

/// Lays out a new stack so that the first [`switch`] to it calls `entry(argument)` with the stack aligned as
/// the calling convention asks. `stack_top` is the first address above the stack.
///
/// # Safety
/// At least 48 writable bytes lie below `stack_top`, nobody else uses them, and `entry` finds all the stack
/// it needs below them.
#[must_use]
pub unsafe fn prepare(
    stack_top: *mut u8,
    entry: unsafe extern "C" fn(argument: usize) -> !,
    argument: usize,
) -> Context {
    let top = stack_top.map_addr(|address| address & !15).cast::<usize>();
    // SAFETY: five words below the rounded top, inside the 48 bytes the caller vouches for.
    let base = unsafe { top.sub(PREPARED_WORDS) };
    let words = [kyocho_trampoline as *const () as usize, entry as usize, argument, 0, 0];
    // SAFETY: as above; `top` is aligned, so `base` is.
    unsafe { base.cast::<[usize; PREPARED_WORDS]>().write(words) };
    Context(base.cast())
}

/// Suspends the running stack, stores how to resume it in `*save`, and goes on with `to`. Returns when somebody
/// switches to what was stored, perhaps on another kernel thread. 1 to 4 ns.
///
/// # Safety
/// - `save` is writable. It is written before the stack is left, so another kernel thread that sees
///   it may switch to it only once this one has left the stack: publish it after the switch.
/// - `to` is suspended or prepared, and nobody else switches to it: a `Context` is good for one switch.
/// - Nothing that the caller holds across the call may depend on the kernel thread (TLS addresses).
#[inline(always)]
pub unsafe fn switch(save: *mut Context, to: Context) {
    // SAFETY: on resumption the stack pointer, rbx and rbp are those of the suspension; every other
    // register of the convention is declared overwritten. No red zone is in use (`nostack` is absent).
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
// never run: unwinders look up the return address minus one, and the one that `entry` holds must fall
// inside this frame description even if it were the first instruction.
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

/// Offset of the general registers in the kernel's `ucontext_t`, and of three of them there, in bytes.
const REGISTERS: usize = 40;
const RBP: usize = REGISTERS + 10 * 8;
const RSP: usize = REGISTERS + 15 * 8;
const RIP: usize = REGISTERS + 16 * 8;

/// The instruction that a signal interrupted.
///
/// # Safety
/// `ucontext` is the third argument of a running `SA_SIGINFO` handler; so for the three below.
#[must_use]
pub unsafe fn pc_of(ucontext: *const c_void) -> usize {
    // SAFETY: the kernel laid out the context; the caller vouches that this is one.
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

/// Makes the interrupted code go on at `pc` when the handler returns.
///
/// # Safety
/// As for [`pc_of`]; and the registers of the interruption are what the code at `pc` expects.
pub unsafe fn set_pc(ucontext: *mut c_void, pc: usize) {
    // SAFETY: as in `pc_of`.
    unsafe { ucontext.wrapping_byte_add(RIP).cast::<usize>().write(pc) };
}
