//! The restartable sequences for x86-64: see `restartable.rs` of the crate for the rules and the
//! pseudo-code.
//!
//! The body of an operation is written once ([`body`]) and used in two sequences: here after the
//! check "this thread holds that virtual processor", in `rseq.rs` after the check "this thread runs
//! on that CPU".
//!
//! Registers: inputs in `rdi`, `rsi`, `rdx`, and in `r10` the holder that must be held, all
//! preserved; outputs in `rax` and `ecx` (1: not held, nothing done); `r8`, `r9` scratch. A
//! sequence is not an `extern "C"` function, because it clobbers so few registers.
#![expect(unsafe_code, reason = "this is the assembly")]

use core::arch::{asm, global_asm};
use core::ptr::NonNull;

use crate::restartable::{Holder, Outcome};

/// Calls the sequence at a symbol: an expression of type [`Outcome`], with the sequence's safety
/// conditions.
macro_rules! call {
    ($symbol:ident, $holder:expr, $inputs:expr) => {{
        unsafe extern "C" {
            fn $symbol();
        }
        let [first, second, third]: [usize; 3] = $inputs;
        let value: usize;
        let refused: u32;
        // SAFETY: the sequence overwrites the registers declared here and the words that the caller
        // passes.
        unsafe {
            asm!(
                "call {sequence}",
                sequence = sym $symbol,
                in("rdi") first, in("rsi") second, in("rdx") third, in("r10") $holder,
                out("rax") value, out("ecx") refused, out("r8") _, out("r9") _,
            );
        }
        Outcome { value, refused: refused != 0 }
    }};
}

/// The methods of [`Holder`], each a call of its sequence; `$holder` turns `self` into what `r10`
/// must hold.
macro_rules! holder_methods {
    ($holder:expr, $($name:ident = $symbol:ident),* $(,)?) => {
        $(
            #[inline(always)]
            unsafe fn $name(self, inputs: [usize; 3]) -> Outcome {
                call!($symbol, ($holder)(self), inputs)
            }
        )*
    };
}

/// The instructions of an operation: they end with the committing store, and jump to 8 if there is
/// nothing to do.
macro_rules! body {
    // rdi: *u32. rax = old; if old == 0 { *rdi = 1 }
    (test_and_set) => {
        "mov eax, dword ptr [rdi]
         test eax, eax
         jnz 8f
         mov dword ptr [rdi], 1"
    };
    // rdi: *word, rsi: expected, rdx: new. rax = old; if old == rsi { *rdi = rdx }
    (compare_and_swap) => {
        "mov rax, qword ptr [rdi]
         cmp rax, rsi
         jne 8f
         mov qword ptr [rdi], rdx"
    };
    // rdi: *word, rsi: addend. rax = old; *rdi = old + rsi
    (fetch_add) => {
        "mov rax, qword ptr [rdi]
         lea r8, [rax + rsi]
         mov qword ptr [rdi], r8"
    };
    // rdi: *head, rsi: node. rax = node.next = *head; *head = node. The first store is to a node
    // that no other thread can reach yet, so only the second commits.
    (push) => {
        "mov rax, qword ptr [rdi]
         mov qword ptr [rsi], rax
         mov qword ptr [rdi], rsi"
    };
    // rdi: *head. rax = *head; if rax != null { *head = rax.next }
    (pop) => {
        "mov rax, qword ptr [rdi]
         test rax, rax
         jz 8f
         mov r8, qword ptr [rax]
         mov qword ptr [rdi], r8"
    };
    // rdi: *{head, tail}, rsi: node. The link that precedes the node is tail's (or the head word,
    // when empty), past the logical end of the queue until `tail` moves: writing it commits
    // nothing.
    (enqueue) => {
        "mov rax, qword ptr [rdi + 8]
         test rax, rax
         mov r8, rax
         cmovz r8, rdi
         mov qword ptr [r8], rsi
         mov qword ptr [rdi + 8], rsi"
    };
    // rdi: *{head, tail}. rax = head if tail != null; then either head = head.next or, for the last
    // node, tail = null: which word and which value is decided first, so that one store commits.
    (dequeue) => {
        "mov r8, qword ptr [rdi + 8]
         xor eax, eax
         test r8, r8
         jz 8f
         mov rax, qword ptr [rdi]
         mov r9, qword ptr [rax]
         lea rcx, [rdi + 8]
         cmp rax, r8
         mov r8d, 0
         cmove r9, r8
         cmovne rcx, rdi
         mov qword ptr [rcx], r9"
    };
}

pub(super) use {body, call, holder_methods};

// SAFETY: each sequence compares the thread's word with the virtual processor inside the range that
// is rewound.
unsafe impl Holder for NonNull<()> {
    const NAME: &'static str = "restartable";

    holder_methods! {
        NonNull::as_ptr,
        test_and_set = kyocho_test_and_set,
        compare_and_swap = kyocho_compare_and_swap,
        fetch_add = kyocho_fetch_add,
        push = kyocho_push,
        pop = kyocho_pop,
        enqueue = kyocho_enqueue,
        dequeue = kyocho_dequeue,
    }
}

// A sequence NAME runs from its label to `.Lend_NAME`, the address after its committing store.
// `kyocho_sequence` opens it and refuses when another virtual processor than r10's, or none, is
// held; `kyocho_committed` closes it, records it in the table and returns. `rax` is the scratch
// register of the check.
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
    // Reached after the commit; a sequence without anything to do jumps to 8.
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
    "kyocho_sequence test_and_set",
    body!(test_and_set),
    "kyocho_committed test_and_set",
    "kyocho_sequence compare_and_swap",
    body!(compare_and_swap),
    "kyocho_committed compare_and_swap",
    "kyocho_sequence fetch_add",
    body!(fetch_add),
    "kyocho_committed fetch_add",
    "kyocho_sequence push",
    body!(push),
    "kyocho_committed push",
    "kyocho_sequence pop",
    body!(pop),
    "kyocho_committed pop",
    "kyocho_sequence enqueue",
    body!(enqueue),
    "kyocho_committed enqueue",
    "kyocho_sequence dequeue",
    body!(dequeue),
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
