//! x86-64, System V: stack switch, kernel-thread words, restartable sequences.
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

#[cfg(feature = "mutants")]
pub(crate) mod mutants;

use core::arch::{asm, global_asm};
use core::ffi::c_void;
use core::ptr::NonNull;

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

// ---------------------------------------------------------------------------------------------
// System calls
// ---------------------------------------------------------------------------------------------

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

// ---------------------------------------------------------------------------------------------
// Restartable sequences: see `restartable.rs` for the rules and the pseudo-code
// ---------------------------------------------------------------------------------------------

/// What a sequence leaves in `rax` (its answer) and `ecx` (1: the virtual processor is not held, nothing done).
#[derive(Debug, Clone, Copy)]
pub(crate) struct Outcome {
    pub(crate) value: usize,
    pub(crate) refused: bool,
}

/// Calls a sequence: inputs in `rdi`, `rsi`, `rdx`, and in `r10` the virtual processor that must be held,
/// which it leaves alone; outputs in `rax`, `ecx`; `r8`, `r9` scratch. The narrow list of overwritten registers
/// is why this is not an `extern "C"` call.
macro_rules! sequence {
    ($name:ident = $symbol:ident) => {
        /// # Safety
        /// The words named are valid and aligned, and only sequences on this virtual processor touch them.
        #[inline(always)]
        pub(crate) unsafe fn $name(
            vp: NonNull<()>,
            [first, second, third]: [usize; 3],
        ) -> Outcome {
            unsafe extern "C" {
                fn $symbol();
            }
            let value: usize;
            let refused: u32;
            // SAFETY: the sequence overwrites what is declared here and the words the caller names.
            unsafe {
                asm!(
                    "call {sequence}",
                    sequence = sym $symbol,
                    in("rdi") first, in("rsi") second, in("rdx") third, in("r10") vp.as_ptr(),
                    out("rax") value, out("ecx") refused, out("r8") _, out("r9") _,
                );
            }
            Outcome { value, refused: refused != 0 }
        }
    };
}

#[cfg(feature = "mutants")]
pub(crate) use sequence;

sequence!(test_and_set = kyocho_test_and_set);
sequence!(compare_and_swap = kyocho_compare_and_swap);
sequence!(fetch_add = kyocho_fetch_add);
sequence!(exchange = kyocho_exchange);
sequence!(push = kyocho_push);
sequence!(pop = kyocho_pop);
sequence!(enqueue = kyocho_enqueue);
sequence!(dequeue = kyocho_dequeue);

unsafe extern "C" {
    /// First byte of the sequences, and first byte after them.
    static kyocho_restartable_begin: u8;
    static kyocho_restartable_end: u8;
    /// Pairs (start, end) of `u32` offsets from `kyocho_restartable_begin`.
    static kyocho_restartable_table: [u32; 2];
    static kyocho_restartable_table_end: [u32; 2];
}

/// Bounds of all sequences, and the table of them.
pub(crate) fn restartable_section() -> (usize, usize, &'static [[u32; 2]]) {
    let begin = &raw const kyocho_restartable_begin as usize;
    let end = &raw const kyocho_restartable_end as usize;
    let first = &raw const kyocho_restartable_table;
    let past = &raw const kyocho_restartable_table_end;
    let count = (past as usize - first as usize) / size_of::<[u32; 2]>();
    // SAFETY: the assembler laid out `count` pairs, read-only, for the life of the program.
    (begin, end, unsafe { core::slice::from_raw_parts(first, count) })
}

// A sequence NAME runs from its label to `.Lend_NAME`, the address after its committing store.
// `sequence` opens it and refuses when another virtual processor than r10's, or none, is held; `committed` closes it, records it
// in the table and returns. `rax` is the scratch register of the check.
global_asm!(
    ".macro kyocho_sequence name",
    ".balign 16",
    ".globl kyocho_\\name",
    ".hidden kyocho_\\name",
    ".type kyocho_\\name, @function",
    "kyocho_\\name:",
    ".cfi_startproc",
    "mov rax, qword ptr [rip + kyocho_vp@GOTTPOFF]",
    "cmp qword ptr fs:[rax], r10",
    "jne 9f",
    ".endm",
    // Falls in after the commit; a sequence that finds nothing to do jumps to 8.
    ".macro kyocho_committed name",
    ".Lend_\\name:",
    "8:",
    "xor ecx, ecx",
    "ret",
    "9:",
    "mov ecx, 1",
    "ret",
    ".cfi_endproc",
    ".size kyocho_\\name, . - kyocho_\\name",
    ".pushsection .rodata.kyocho_restartable,\"a\",@progbits",
    ".long kyocho_\\name - kyocho_restartable_begin, .Lend_\\name - kyocho_restartable_begin",
    ".popsection",
    ".endm",
    ".pushsection .rodata.kyocho_restartable,\"a\",@progbits",
    ".balign 4",
    ".globl kyocho_restartable_table",
    ".hidden kyocho_restartable_table",
    "kyocho_restartable_table:",
    ".popsection",
    ".pushsection .text.kyocho_restartable,\"ax\",@progbits",
    ".balign 64",
    ".globl kyocho_restartable_begin",
    ".hidden kyocho_restartable_begin",
    "kyocho_restartable_begin:",
    // rdi: *u32. rax = old; if old == 0 { *rdi = 1 }
    "kyocho_sequence test_and_set",
    "mov eax, dword ptr [rdi]",
    "test eax, eax",
    "jnz 8f",
    "mov dword ptr [rdi], 1",
    "kyocho_committed test_and_set",
    // rdi: *word, rsi: expected, rdx: new. rax = old; if old == rsi { *rdi = rdx }
    "kyocho_sequence compare_and_swap",
    "mov rax, qword ptr [rdi]",
    "cmp rax, rsi",
    "jne 8f",
    "mov qword ptr [rdi], rdx",
    "kyocho_committed compare_and_swap",
    // rdi: *word, rsi: addend. rax = old; *rdi = old + rsi
    "kyocho_sequence fetch_add",
    "mov rax, qword ptr [rdi]",
    "lea r8, [rax + rsi]",
    "mov qword ptr [rdi], r8",
    "kyocho_committed fetch_add",
    // rdi: *word, rsi: new. rax = old; *rdi = rsi
    "kyocho_sequence exchange",
    "mov rax, qword ptr [rdi]",
    "mov qword ptr [rdi], rsi",
    "kyocho_committed exchange",
    // rdi: *head, rsi: node. rax = node.next = *head; *head = node. The first store is to a node that
    // nobody else can reach yet, so only the second commits.
    "kyocho_sequence push",
    "mov rax, qword ptr [rdi]",
    "mov qword ptr [rsi], rax",
    "mov qword ptr [rdi], rsi",
    "kyocho_committed push",
    // rdi: *head. rax = *head; if rax != null { *head = rax.next }
    "kyocho_sequence pop",
    "mov rax, qword ptr [rdi]",
    "test rax, rax",
    "jz 8f",
    "mov r8, qword ptr [rax]",
    "mov qword ptr [rdi], r8",
    "kyocho_committed pop",
    // rdi: *{head, tail}, rsi: node. The link that precedes the node is tail's (or the head word, when
    // empty), past the logical end of the queue until `tail` moves: writing it commits nothing.
    "kyocho_sequence enqueue",
    "mov rax, qword ptr [rdi + 8]",
    "test rax, rax",
    "mov r8, rax",
    "cmovz r8, rdi",
    "mov qword ptr [r8], rsi",
    "mov qword ptr [rdi + 8], rsi",
    "kyocho_committed enqueue",
    // rdi: *{head, tail}. rax = head if tail != null; then either head = head.next or, for the last
    // node, tail = null: which word and which value is decided first, so that one store commits.
    "kyocho_sequence dequeue",
    "mov r8, qword ptr [rdi + 8]",
    "xor eax, eax",
    "test r8, r8",
    "jz 8f",
    "mov rax, qword ptr [rdi]",
    "mov r9, qword ptr [rax]",
    "lea rcx, [rdi + 8]",
    "cmp rax, r8",
    "mov r8d, 0",
    "cmove r9, r8",
    "cmovne rcx, rdi",
    "mov qword ptr [rcx], r9",
    "kyocho_committed dequeue",
    ".globl kyocho_restartable_end",
    ".hidden kyocho_restartable_end",
    "kyocho_restartable_end:",
    ".popsection",
    ".pushsection .rodata.kyocho_restartable,\"a\",@progbits",
    ".globl kyocho_restartable_table_end",
    ".hidden kyocho_restartable_table_end",
    "kyocho_restartable_table_end:",
    ".popsection",
);
