//! The restartable sequences for `AArch64`: see `restartable.rs` of the crate for the rules and the
//! pseudo-code. This file also has the two that read the words of a kernel thread.
//!
//! Registers: inputs in `x0`, `x1`, `x2`, and in `x3` the virtual processor that must be held, all
//! preserved; outputs in `x4` and `w5` (1: not held, nothing done); `x6` to `x8` scratch. A
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
                "bl {sequence}",
                sequence = sym $symbol,
                in("x0") first, in("x1") second, in("x2") third, in("x3") $holder,
                out("x4") value, out("w5") refused, out("x6") _, out("x7") _, out("x8") _,
                out("x30") _,
            );
        }
        Outcome { value, refused: refused != 0 }
    }};
}

#[cfg(feature = "mutants")]
pub(crate) use call;

/// The methods of [`Holder`], each a call of its sequence.
macro_rules! holder_methods {
    ($($name:ident = $symbol:ident),* $(,)?) => {
        $(
            #[inline(always)]
            unsafe fn $name(self, inputs: [usize; 3]) -> Outcome {
                call!($symbol, self.as_ptr(), inputs)
            }
        )*
    };
}

// SAFETY: each sequence compares the thread's word with the virtual processor inside the range that
// is rewound.
unsafe impl Holder for NonNull<()> {
    const NAME: &'static str = "restartable";

    holder_methods! {
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
// `kyocho_sequence` opens it and refuses when another virtual processor than x3's, or none, is
// held; `kyocho_committed` closes it, records it in the table and returns. `x4` and `x5` are the
// scratch registers of the check.
global_asm!(
    ".macro kyocho_open name",
    ".balign 16",
    ".globl kyocho_\\name",
    ".hidden kyocho_\\name",
    ".type kyocho_\\name, %function",
    "kyocho_\\name:",
    ".cfi_startproc",
    ".endm",
    ".macro kyocho_close name",
    ".cfi_endproc",
    ".size kyocho_\\name, . - kyocho_\\name",
    ".pushsection .rodata.kyocho_restartable,\"a\",%progbits",
    ".long kyocho_\\name - kyocho_restartable_begin, .Lend_\\name - kyocho_restartable_begin",
    ".popsection",
    ".endm",
    ".macro kyocho_sequence name",
    "kyocho_open \\name",
    "adrp x4, :gottprel:kyocho_vp",
    "ldr x4, [x4, :gottprel_lo12:kyocho_vp]",
    "mrs x5, tpidr_el0",
    "ldr x4, [x4, x5]",
    "cmp x4, x3",
    "b.ne 9f",
    ".endm",
    // Reached after the commit; a sequence without anything to do jumps to 8.
    ".macro kyocho_committed name",
    ".Lend_\\name:",
    "8:",
    "mov w5, #0",
    "ret",
    "9:",
    "mov w5, #1",
    "ret",
    "kyocho_close \\name",
    ".endm",
    ".pushsection .rodata.kyocho_restartable,\"a\",%progbits",
    ".balign 4",
    ".globl kyocho_restartable_table",
    ".hidden kyocho_restartable_table",
    "kyocho_restartable_table:",
    ".popsection",
    ".pushsection .text.kyocho_restartable,\"ax\",%progbits",
    ".balign 64",
    ".globl kyocho_restartable_begin",
    ".hidden kyocho_restartable_begin",
    "kyocho_restartable_begin:",
    // x0: *u32. x4 = old; if old == 0 { *x0 = 1 }. Acquire: the word may have been cleared
    // elsewhere.
    "kyocho_sequence test_and_set",
    "ldar w4, [x0]",
    "cbnz w4, 8f",
    "mov w6, #1",
    "str w6, [x0]",
    "kyocho_committed test_and_set",
    // x0: *word, x1: expected, x2: new. x4 = old; if old == x1 { *x0 = x2 }
    "kyocho_sequence compare_and_swap",
    "ldr x4, [x0]",
    "cmp x4, x1",
    "b.ne 8f",
    "str x2, [x0]",
    "kyocho_committed compare_and_swap",
    // x0: *word, x1: addend. x4 = old; *x0 = old + x1
    "kyocho_sequence fetch_add",
    "ldr x4, [x0]",
    "add x6, x4, x1",
    "str x6, [x0]",
    "kyocho_committed fetch_add",
    // x0: *head, x1: node. x4 = node.next = *head; *head = node. The first store is to a node that
    // no other thread can reach yet, so only the second commits.
    "kyocho_sequence push",
    "ldr x4, [x0]",
    "str x4, [x1]",
    "str x1, [x0]",
    "kyocho_committed push",
    // x0: *head. x4 = *head; if x4 != null { *head = x4.next }
    "kyocho_sequence pop",
    "ldr x4, [x0]",
    "cbz x4, 8f",
    "ldr x6, [x4]",
    "str x6, [x0]",
    "kyocho_committed pop",
    // x0: *{head, tail}, x1: node. As on x86-64: the link before the node lies past the logical
    // end.
    "kyocho_sequence enqueue",
    "ldr x4, [x0, #8]",
    "cmp x4, #0",
    "csel x6, x0, x4, eq",
    "str x1, [x6]",
    "str x1, [x0, #8]",
    "kyocho_committed enqueue",
    // x0: *{head, tail}. x4 = head if tail != null; then either head = head.next or, for the last
    // node, tail = null: which word and which value is decided first, so that one store commits.
    "kyocho_sequence dequeue",
    "ldr x6, [x0, #8]",
    "mov x4, #0",
    "cbz x6, 8f",
    "ldr x4, [x0]",
    "ldr x7, [x4]",
    "add x8, x0, #8",
    "cmp x4, x6",
    "csel x7, xzr, x7, eq",
    "csel x8, x8, x0, eq",
    "str x7, [x8]",
    "kyocho_committed dequeue",
    // x4 = the virtual processor of this kernel thread
    "kyocho_open read_vp",
    "adrp x4, :gottprel:kyocho_vp",
    "ldr x4, [x4, :gottprel_lo12:kyocho_vp]",
    "mrs x5, tpidr_el0",
    "ldr x4, [x4, x5]",
    ".Lend_read_vp:",
    "ret",
    "kyocho_close read_vp",
    // x4 = the runtime's record of this kernel thread
    "kyocho_open read_thread_word",
    "adrp x4, :gottprel:kyocho_thread_word",
    "ldr x4, [x4, :gottprel_lo12:kyocho_thread_word]",
    "mrs x5, tpidr_el0",
    "ldr x4, [x4, x5]",
    ".Lend_read_thread_word:",
    "ret",
    "kyocho_close read_thread_word",
    ".globl kyocho_restartable_end",
    ".hidden kyocho_restartable_end",
    "kyocho_restartable_end:",
    ".popsection",
    ".pushsection .rodata.kyocho_restartable,\"a\",%progbits",
    ".globl kyocho_restartable_table_end",
    ".hidden kyocho_restartable_table_end",
    "kyocho_restartable_table_end:",
    ".popsection",
);
