//! The sequences of `mutant.rs` for `AArch64`. Registers are those of the original sequences.
#![expect(unsafe_code, reason = "this is the assembly")]

use core::arch::{asm, global_asm};

use super::restartable::call;
use crate::restartable::Outcome;

/// `brk #0`.
pub(crate) const BREAKPOINT: [u8; 4] = 0xd420_0000_u32.to_le_bytes();

/// Distance from the start of the trap to the PC that the trap reports.
pub(crate) const PC_AFTER_BREAKPOINT: usize = 0;

/// Makes a changed instruction visible to the processor.
///
/// # Safety
/// The address is mapped.
pub(crate) unsafe fn publish(instruction: usize) {
    // SAFETY: cleans one line of the data cache and invalidates it in the instruction cache.
    unsafe {
        asm!(
            "dc cvau, {0}", "dsb ish", "ic ivau, {0}", "dsb ish", "isb",
            in(reg) instruction, options(nostack, preserves_flags),
        );
    }
}

/// Functions that call a mutant each.
macro_rules! mutants {
    ($($name:ident = $symbol:ident),* $(,)?) => {
        $(
            /// # Safety
            /// The words are valid and aligned, and only the caller accesses them.
            pub(crate) unsafe fn $name(vp: usize, inputs: [usize; 3]) -> Outcome {
                call!($symbol, vp, inputs)
            }
        )*
    };
}

mutants! {
    test_and_set_twice = kyocho_mutant_test_and_set_twice,
    enqueue_tail_first = kyocho_mutant_enqueue_tail_first,
    test_and_set_unregistered = kyocho_mutant_test_and_set_unregistered,
    fetch_add_unregistered = kyocho_mutant_fetch_add_unregistered,
}

global_asm!(
    ".macro kyocho_mutant name",
    ".balign 16",
    ".globl kyocho_mutant_\\name",
    ".hidden kyocho_mutant_\\name",
    ".type kyocho_mutant_\\name, %function",
    "kyocho_mutant_\\name:",
    "adrp x4, :gottprel:kyocho_vp",
    "ldr x4, [x4, :gottprel_lo12:kyocho_vp]",
    "mrs x5, tpidr_el0",
    "ldr x4, [x4, x5]",
    "cmp x4, x3",
    "b.ne 9f",
    ".endm",
    ".macro kyocho_mutant_end name",
    ".Lmutant_end_\\name:",
    "8:",
    "mov w5, #0",
    "ret",
    "9:",
    "mov w5, #1",
    "ret",
    ".pushsection .rodata.kyocho_mutants,\"a\",%progbits",
    ".long kyocho_mutant_\\name - kyocho_mutants_begin",
    ".long .Lmutant_end_\\name - kyocho_mutants_begin",
    ".popsection",
    ".endm",
    ".pushsection .rodata.kyocho_mutants,\"a\",%progbits",
    ".balign 4",
    ".globl kyocho_mutants_table",
    ".hidden kyocho_mutants_table",
    "kyocho_mutants_table:",
    ".popsection",
    ".pushsection .text.kyocho_mutants,\"ax\",%progbits",
    ".balign 64",
    ".globl kyocho_mutants_begin",
    ".hidden kyocho_mutants_begin",
    "kyocho_mutants_begin:",
    "kyocho_mutant test_and_set_twice",
    "ldr w4, [x0]",
    "cbnz w4, 8f",
    "mov w6, #1",
    "str w6, [x0]",
    "str w6, [x0]",
    "kyocho_mutant_end test_and_set_twice",
    "kyocho_mutant enqueue_tail_first",
    "ldr x4, [x0, #8]",
    "cmp x4, #0",
    "csel x6, x0, x4, eq",
    "str x1, [x0, #8]",
    "str x1, [x6]",
    "kyocho_mutant_end enqueue_tail_first",
    "kyocho_mutant test_and_set_unregistered",
    "ldr w4, [x0]",
    "cbnz w4, 8f",
    "mov w6, #1",
    "str w6, [x0]",
    "kyocho_mutant_end test_and_set_unregistered",
    "kyocho_mutant fetch_add_unregistered",
    "ldr x4, [x0]",
    "add x6, x4, x1",
    "str x6, [x0]",
    "kyocho_mutant_end fetch_add_unregistered",
    ".popsection",
    ".pushsection .rodata.kyocho_mutants,\"a\",%progbits",
    ".globl kyocho_mutants_table_end",
    ".hidden kyocho_mutants_table_end",
    "kyocho_mutants_table_end:",
    ".popsection",
);
