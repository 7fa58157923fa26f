//! The sequences of `mutant::rseq` for x86-64. Registers are those of the original sequences.
#![expect(unsafe_code, reason = "this is the assembly")]

use core::arch::{asm, global_asm};

use super::super::mutants::mutants;
use super::super::restartable::{body, call};
use crate::cpu::Sequence;
use crate::restartable::Outcome;

mutants! {
    test_and_set_twice = kyocho_rseq_mutant_test_and_set_twice,
    fetch_add_unwatched = kyocho_rseq_mutant_fetch_add_unwatched,
    fetch_add_ends_early = kyocho_rseq_mutant_fetch_add_ends_early,
    fetch_add_ends_late = kyocho_rseq_mutant_fetch_add_ends_late,
}

unsafe extern "C" {
    static kyocho_rseq_mutants_table: Sequence;
    static kyocho_rseq_mutants_table_end: Sequence;
}

/// All mutants.
pub(crate) fn sequences() -> &'static [Sequence] {
    let table = [&raw const kyocho_rseq_mutants_table, &raw const kyocho_rseq_mutants_table_end];
    // SAFETY: the assembler laid out the table between its labels.
    unsafe { super::rows(table) }
}

// `kyocho_rseq_watch` tells the kernel of the sequence. `.Lmutant_post_NAME` is where a mutant
// claims to have committed.
global_asm!(
    ".macro kyocho_rseq_mutant name",
    ".balign 16",
    ".globl kyocho_rseq_mutant_\\name",
    ".hidden kyocho_rseq_mutant_\\name",
    ".type kyocho_rseq_mutant_\\name, @function",
    "kyocho_rseq_mutant_\\name:",
    "mov r8, qword ptr [rip + kyocho_rseq_offset]",
    ".endm",
    ".macro kyocho_rseq_watch name",
    "lea rax, [rip + .Lmutant_cs_\\name]",
    "mov qword ptr fs:[r8 + 8], rax",
    ".endm",
    ".macro kyocho_rseq_check name",
    ".Lmutant_start_\\name:",
    "cmp dword ptr fs:[r8 + 4], r10d",
    "jne 9f",
    ".endm",
    ".macro kyocho_rseq_mutant_end name",
    "8:",
    "xor ecx, ecx",
    ".Lmutant_zeroed_\\name:",
    "ret",
    "9:",
    "mov ecx, 1",
    "ret",
    ".byte 0x0f, 0xb9, 0x3d",
    ".long 0x53053053",
    ".Lmutant_abort_\\name:",
    "jmp kyocho_rseq_mutant_\\name",
    ".pushsection __rseq_cs,\"aw\",@progbits",
    ".balign 32",
    ".Lmutant_cs_\\name:",
    ".long 0, 0",
    ".quad .Lmutant_start_\\name, .Lmutant_post_\\name - .Lmutant_start_\\name, .Lmutant_abort_\\name",
    ".popsection",
    ".pushsection .data.rel.ro.kyocho_rseq_mutants,\"aw\",@progbits",
    ".quad kyocho_rseq_mutant_\\name, .Lmutant_start_\\name",
    ".quad .Lmutant_post_\\name, .Lmutant_abort_\\name",
    ".popsection",
    ".endm",
    ".pushsection .data.rel.ro.kyocho_rseq_mutants,\"aw\",@progbits",
    ".balign 8",
    ".globl kyocho_rseq_mutants_table",
    ".hidden kyocho_rseq_mutants_table",
    "kyocho_rseq_mutants_table:",
    ".popsection",
    ".pushsection .text.kyocho_rseq_mutants,\"ax\",@progbits",
    "kyocho_rseq_mutant test_and_set_twice",
    "kyocho_rseq_watch test_and_set_twice",
    "kyocho_rseq_check test_and_set_twice",
    body!(test_and_set),
    "mov dword ptr [rdi], 1",
    ".Lmutant_post_test_and_set_twice:",
    "kyocho_rseq_mutant_end test_and_set_twice",
    "kyocho_rseq_mutant fetch_add_unwatched",
    "kyocho_rseq_check fetch_add_unwatched",
    body!(fetch_add),
    ".Lmutant_post_fetch_add_unwatched:",
    "kyocho_rseq_mutant_end fetch_add_unwatched",
    "kyocho_rseq_mutant fetch_add_ends_early",
    "kyocho_rseq_watch fetch_add_ends_early",
    "kyocho_rseq_check fetch_add_ends_early",
    "mov rax, qword ptr [rdi]",
    "lea r8, [rax + rsi]",
    ".Lmutant_post_fetch_add_ends_early:",
    "mov qword ptr [rdi], r8",
    "kyocho_rseq_mutant_end fetch_add_ends_early",
    "kyocho_rseq_mutant fetch_add_ends_late",
    "kyocho_rseq_watch fetch_add_ends_late",
    "kyocho_rseq_check fetch_add_ends_late",
    body!(fetch_add),
    ".set .Lmutant_post_fetch_add_ends_late, .Lmutant_zeroed_fetch_add_ends_late",
    "kyocho_rseq_mutant_end fetch_add_ends_late",
    ".popsection",
    ".pushsection .data.rel.ro.kyocho_rseq_mutants,\"aw\",@progbits",
    ".globl kyocho_rseq_mutants_table_end",
    ".hidden kyocho_rseq_mutants_table_end",
    "kyocho_rseq_mutants_table_end:",
    ".popsection",
);
