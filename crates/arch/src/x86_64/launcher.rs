//! The code that stands in every UNIX client, at a fixed address: the *launcher*.
//!
//! ```text
//!   offset 0   path        "/proc/self/exe": the one path that a client may execute, which is this very code
//!          16  start       asks for a plan, carries it out, enters the program
//!              exec        system call, then RETURN with its answer
//!              chdir       fchdir, close of the same descriptor, then RETURN with fchdir's answer
//!              stat        called from a rewritten site of newfstatat: fstat, where that is what is meant
//! ```
//!
//! It decides nothing: the server fills in a plan, records of seven words: a system call's number and six arguments, or
//! [`ZERO`], address, length, or [`END`]. Registers in at `start`: the kernel's stack of a new program. Out: the same
//! stack, every register zero. `exec` and `chdir` are entered by a change of registers, never called; what comes after RETURN
//! is not reached. `stat` is called with a call's registers, and returns as that call does: it changes `rax`, `rcx` and `r11` alone. Position-independent, never run in place: it is copied into an ELF file.

use core::arch::global_asm;

/// Ends a plan.
pub const END: u64 = u64::MAX;
/// In a plan: zero bytes instead of a system call.
pub const ZERO: u64 = u64::MAX - 1;
/// Room for the plan.
pub const PLAN_BYTES_MAX: usize = 16 * 1024;
/// Words of one record.
pub const RECORD_WORDS: usize = 7;
/// The served call by which a started launcher asks for its plan: auxiliary vector, room for the plan; answers with the entry point.
pub const LOAD: u64 = 0x0b59_0001;
/// The served call that ends a diverted one: its answer.
pub const RETURN: u64 = 0x0b59_0002;

global_asm!(
    ".pushsection .rodata.kyocho_launcher,\"a\",@progbits",
    // Whoever asks for them may be compiled apart.
    ".globl kyocho_launcher, kyocho_launcher_start, kyocho_launcher_exec",
    ".globl kyocho_launcher_chdir, kyocho_launcher_stat, kyocho_launcher_end",
    ".hidden kyocho_launcher, kyocho_launcher_start, kyocho_launcher_exec",
    ".hidden kyocho_launcher_chdir, kyocho_launcher_stat, kyocho_launcher_end",
    ".balign 16",
    "kyocho_launcher: .asciz \"/proc/self/exe\"",
    ".balign 16",
    "kyocho_launcher_start:",
    "mov rdi, [rsp]",                 // behind argc: arguments, 0, environment, 0, auxiliary vector
    "lea rdi, [rsp + rdi * 8 + 16]",
    "2: cmp qword ptr [rdi], 0",
    "lea rdi, [rdi + 8]",
    "jne 2b",
    "mov rbx, rsp",
    "sub rsp, {plan_bytes}",
    "and rsp, -16",
    "mov rsi, rsp",
    "mov rbp, rsp",
    "mov eax, {load}",
    "syscall",
    "test rax, rax",
    "js 6f",
    "mov r12, rax",
    "3: mov rax, [rbp]",
    "cmp rax, {end}",
    "je 5f",
    "mov rdi, [rbp + 8]",
    "mov rsi, [rbp + 16]",
    "cmp rax, {zero}",
    "je 4f",
    "mov rdx, [rbp + 24]",
    "mov r10, [rbp + 32]",
    "mov r8, [rbp + 40]",
    "mov r9, [rbp + 48]",
    "syscall",
    "cmp rax, -4095",
    "jae 6f",
    "add rbp, 56",
    "jmp 3b",
    "4: mov rcx, rsi",
    "xor eax, eax",
    "rep stosb",
    "add rbp, 56",
    "jmp 3b",
    "5: mov rsp, rbx",
    "mov [rsp - 8], r12",
    "xor eax, eax",
    "xor ebx, ebx",
    "xor ecx, ecx",
    "xor edx, edx",
    "xor esi, esi",
    "xor edi, edi",
    "xor ebp, ebp",
    "xor r8d, r8d",
    "xor r9d, r9d",
    "xor r10d, r10d",
    "xor r11d, r11d",
    "xor r12d, r12d",
    "jmp [rsp - 8]",
    "6: mov edi, 127",
    "mov eax, 231", // exit_group
    "syscall",
    "ud2",
    "kyocho_launcher_exec:",
    "syscall",
    "mov rdi, rax",
    "mov eax, {answer}",
    "syscall",
    "ud2",
    "kyocho_launcher_chdir:",
    "syscall",
    "mov rsi, rax",
    "mov eax, 3", // close
    "syscall",
    "mov rdi, rsi",
    "mov eax, {answer}",
    "syscall",
    "ud2",
    "kyocho_launcher_stat:",
    "cmp r10d, 0x1000", // AT_EMPTY_PATH, and nothing else
    "jne 8f",
    "test edi, edi", // AT_FDCWD is no descriptor
    "js 8f",
    "test rsi, rsi",
    "jz 7f",
    "cmp byte ptr [rsi], 0",
    "jne 8f",
    "7: push rsi",
    "mov rsi, rdx",
    "mov eax, 5", // fstat
    "syscall",
    "pop rsi",
    "ret",
    "8: mov eax, 262", // newfstatat
    "syscall",
    "ret",
    "kyocho_launcher_end:",
    ".popsection",
    plan_bytes = const PLAN_BYTES_MAX,
    load = const LOAD,
    answer = const RETURN,
    end = const END as i64,
    zero = const ZERO as i64,
);

unsafe extern "C" {
    static kyocho_launcher: u8;
    static kyocho_launcher_start: u8;
    static kyocho_launcher_exec: u8;
    static kyocho_launcher_chdir: u8;
    static kyocho_launcher_stat: u8;
    static kyocho_launcher_end: u8;
}

/// The launcher's bytes, and where in them its entries are.
#[derive(Debug, Clone, Copy)]
pub struct Launcher {
    /// What to copy. The path stands at its beginning, ended by a NUL.
    pub code: &'static [u8],
    /// Where a new program begins.
    pub start: usize,
    /// Where a client goes to execute.
    pub exec: usize,
    /// Where a client goes to change its directory.
    pub chdir: usize,
    /// Where a rewritten site calls.
    pub stat: usize,
}

impl Launcher {
    /// The launcher of this instruction set.
    #[must_use]
    pub fn get() -> Self {
        let base = (&raw const kyocho_launcher).addr();
        let offset = |label: *const u8| label.addr() - base;
        let bytes = offset(&raw const kyocho_launcher_end);
        // SAFETY: the bytes between the two labels, in a read-only section.
        let code = unsafe { core::slice::from_raw_parts(&raw const kyocho_launcher, bytes) };
        Self {
            code,
            start: offset(&raw const kyocho_launcher_start),
            exec: offset(&raw const kyocho_launcher_exec),
            chdir: offset(&raw const kyocho_launcher_chdir),
            stat: offset(&raw const kyocho_launcher_stat),
        }
    }
}
