//! The sequences of `mutant.rs` for x86-64. Registers are those of the original sequences.
#![expect(unsafe_code, reason = "this is the assembly")]

use core::arch::{asm, global_asm};

use super::restartable::call;
use crate::restartable::Outcome;

/// `int3`.
pub(crate) const BREAKPOINT: [u8; 1] = [0xcc];

/// Distance from the start of the trap to the PC that the trap reports.
pub(crate) const PC_AFTER_BREAKPOINT: usize = BREAKPOINT.len();

/// Makes a changed instruction visible to the processor. This processor does so itself.
///
/// # Safety
/// No requirement here; on other processors the address must be mapped.
pub(crate) unsafe fn publish(_instruction: usize) {}

/// Functions that call a mutant each; the fourth input is the virtual processor or the CPU.
macro_rules! mutants {
    ($($name:ident = $symbol:ident),* $(,)?) => {
        $(
            /// # Safety
            /// The words are valid and aligned, and only the caller accesses them.
            pub(crate) unsafe fn $name(holder: usize, inputs: [usize; 3]) -> Outcome {
                call!($symbol, holder, inputs)
            }
        )*
    };
}
pub(super) use mutants;

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
    ".type kyocho_mutant_\\name, @function",
    "kyocho_mutant_\\name:",
    "mov rax, qword ptr [rip + kyocho_vp@GOTTPOFF]",
    "cmp qword ptr fs:[rax], r10",
    "jne 9f",
    ".endm",
    ".macro kyocho_mutant_end name",
    ".Lmutant_end_\\name:",
    "8:",
    "xor ecx, ecx",
    "ret",
    "9:",
    "mov ecx, 1",
    "ret",
    ".pushsection .rodata.kyocho_mutants,\"a\",@progbits",
    ".long kyocho_mutant_\\name - kyocho_mutants_begin",
    ".long .Lmutant_end_\\name - kyocho_mutants_begin",
    ".popsection",
    ".endm",
    ".pushsection .rodata.kyocho_mutants,\"a\",@progbits",
    ".balign 4",
    ".globl kyocho_mutants_table",
    ".hidden kyocho_mutants_table",
    "kyocho_mutants_table:",
    ".popsection",
    ".pushsection .text.kyocho_mutants,\"ax\",@progbits",
    ".balign 64",
    ".globl kyocho_mutants_begin",
    ".hidden kyocho_mutants_begin",
    "kyocho_mutants_begin:",
    "kyocho_mutant test_and_set_twice",
    "mov eax, dword ptr [rdi]",
    "test eax, eax",
    "jnz 8f",
    "mov dword ptr [rdi], 1",
    "mov dword ptr [rdi], 1",
    "kyocho_mutant_end test_and_set_twice",
    "kyocho_mutant enqueue_tail_first",
    "mov rax, qword ptr [rdi + 8]",
    "test rax, rax",
    "mov r8, rax",
    "cmovz r8, rdi",
    "mov qword ptr [rdi + 8], rsi",
    "mov qword ptr [r8], rsi",
    "kyocho_mutant_end enqueue_tail_first",
    "kyocho_mutant test_and_set_unregistered",
    "mov eax, dword ptr [rdi]",
    "test eax, eax",
    "jnz 8f",
    "mov dword ptr [rdi], 1",
    "kyocho_mutant_end test_and_set_unregistered",
    "kyocho_mutant fetch_add_unregistered",
    "mov rax, qword ptr [rdi]",
    "lea r8, [rax + rsi]",
    "mov qword ptr [rdi], r8",
    "kyocho_mutant_end fetch_add_unregistered",
    ".popsection",
    ".pushsection .rodata.kyocho_mutants,\"a\",@progbits",
    ".globl kyocho_mutants_table_end",
    ".hidden kyocho_mutants_table_end",
    "kyocho_mutants_table_end:",
    ".popsection",
);
