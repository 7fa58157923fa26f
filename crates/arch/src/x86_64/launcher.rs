//! The *launcher*: code at a fixed address in every UNIX client.
//!
//! ```text
//!   offset 0   path   "/proc/self/exe": the only path that a client may execute; it is this code
//!          16  start  requests a plan, executes it, enters the program
//!              exec   system call, then RETURN with its answer
//!              chdir  fchdir, close of the same descriptor, then RETURN with fchdir's answer
//!              sites  called by rewritten call sites instead of the host
//!              owner  numbers of the user, filled in by the code that copies the launcher
//! ```
//!
//! It decides nothing: the server provides a plan. A plan consists of records of seven words: a
//! system call's number and six arguments, or [`ZERO`], address, length, or [`SITE`], address, old
//! word, new word, or [`END`]. Registers in at `start`: the kernel's stack of a new program. Out:
//! the same stack, every register zero. `exec` and `chdir` are entered by a change of registers,
//! never called; code after RETURN is not reached. The code is position-independent and never runs
//! in place: it is copied into an ELF file.
//!
//! # Sites
//!
//! `mov ecx, ENTRY; call rcx` replaces `mov eax, NUMBER; syscall` (`unix/src/program/sites.rs`), or
//! the call in C's `syscall`. An entry returns like the call: the host also changes `rcx` and
//! `r11`. `clone` and `vfork` return through a register that C lets them change, because the child
//! has another stack, or overwrites words on the parent's.
//!
//! Their data is in one private page of the client ([`LOCAL`]), which the host zeroes in a child of
//! `fork`:
//!
//! ```text
//!    0  number   of this process, 0: not known
//!    4  again    the same again: valid if both are equal
//!    8  sharers  number of processes that may share this memory: unless it is 0, nothing is cached
//!   12  count    number of sites that the server knows in the library that is mapped next
//!   16  sites    offset in the file, old word, new word
//! ```
//!
//! **Invariant:** no process mistakes another's number for its own. Two results of the host are
//! stored, and used only if they are equal: a signal handler that forks in between and returns in
//! the child leaves it one stored result at most. A process that shares memory with its parent uses
//! no stored result.

use core::arch::global_asm;

/// Ends a plan.
pub const END: u64 = u64::MAX;
/// In a plan: zero bytes instead of a system call.
pub const ZERO: u64 = u64::MAX - 1;
/// In a plan: replaces a word, if it has the expected value.
pub const SITE: u64 = u64::MAX - 2;
/// Address of the client's private page.
pub const LOCAL: usize = 0x10_0000;
/// Its size.
pub const LOCAL_BYTES: usize = 4096;
/// Offset in it of the number of processes that may share this memory.
pub const SHARERS: usize = 8;
/// Offset in it of the number of sites, which start at offset 16, three words each.
pub const COUNT: usize = 12;
/// Room for the plan.
pub const PLAN_BYTES_MAX: usize = 16 * 1024;
/// Words of one record.
pub const RECORD_WORDS: usize = 7;
/// The served call by which a started launcher requests its plan. Arguments: auxiliary vector, room
/// for the plan. Result: the entry point.
pub const LOAD: u64 = 0x0b59_0001;
/// The served call that ends a diverted one. Argument: its result.
pub const RETURN: u64 = 0x0b59_0002;

global_asm!(
    ".pushsection .rodata.kyocho_launcher,\"a\",@progbits",
    // Global, because their users may be compiled separately.
    ".globl kyocho_launcher, kyocho_launcher_start, kyocho_launcher_exec",
    ".globl kyocho_launcher_chdir, kyocho_launcher_stat, kyocho_launcher_process",
    ".globl kyocho_launcher_user, kyocho_launcher_effective_user, kyocho_launcher_group",
    ".globl kyocho_launcher_effective_group, kyocho_launcher_any, kyocho_launcher_vfork",
    ".globl kyocho_launcher_clone, kyocho_launcher_map, kyocho_launcher_owner",
    ".globl kyocho_launcher_end",
    ".hidden kyocho_launcher, kyocho_launcher_start, kyocho_launcher_exec",
    ".hidden kyocho_launcher_chdir, kyocho_launcher_stat, kyocho_launcher_process",
    ".hidden kyocho_launcher_user, kyocho_launcher_effective_user, kyocho_launcher_group",
    ".hidden kyocho_launcher_effective_group, kyocho_launcher_any, kyocho_launcher_vfork",
    ".hidden kyocho_launcher_clone, kyocho_launcher_map, kyocho_launcher_owner",
    ".hidden kyocho_launcher_end",
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
    "cmp rax, {site}",
    "je 9f",
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
    "9: cmp [rdi], rsi",
    "jne 8f",
    "mov [rdi], rdx",
    "8: add rbp, 56",
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
    "kyocho_launcher_process:",
    "cmp dword ptr [{local} + 8], 0",
    "jne 2f",
    "mov eax, dword ptr [{local}]",
    "cmp eax, dword ptr [{local} + 4]",
    "jne 2f",
    "test eax, eax",
    "jz 2f",
    "ret",
    "2: mov eax, 39", // getpid
    "syscall",
    "cmp dword ptr [{local} + 8], 0",
    "jne 3f",
    "mov dword ptr [{local}], eax",
    "mov eax, 39",
    "syscall",
    "mov dword ptr [{local} + 4], eax",
    "3: ret",
    "kyocho_launcher_user:",
    "mov eax, [rip + 9f]",
    "ret",
    "kyocho_launcher_effective_user:",
    "mov eax, [rip + 9f + 4]",
    "ret",
    "kyocho_launcher_group:",
    "mov eax, [rip + 9f + 8]",
    "ret",
    "kyocho_launcher_effective_group:",
    "mov eax, [rip + 9f + 12]",
    "ret",
    "kyocho_launcher_any:",
    "mov r9, [rsp + 16]", // as the site has it: there it is one word less deep
    "cmp eax, 39",
    "je kyocho_launcher_process",
    "cmp eax, 56",
    "je kyocho_launcher_clone",
    "cmp eax, 58",
    "je kyocho_launcher_vfork",
    "cmp dword ptr [rip + 9f + 16], 0",
    "je 2f",
    "cmp eax, 102",
    "je kyocho_launcher_user",
    "cmp eax, 107",
    "je kyocho_launcher_effective_user",
    "cmp eax, 104",
    "je kyocho_launcher_group",
    "cmp eax, 108",
    "je kyocho_launcher_effective_group",
    "2: syscall",
    "ret",
    "kyocho_launcher_vfork:",
    "pop rsi",
    "lock inc dword ptr [{local} + 8]",
    "mov eax, 58",
    "syscall",
    "test eax, eax",
    "jz 2f",
    "lock dec dword ptr [{local} + 8]", // the child has its own memory by now
    "2: jmp rsi",
    "kyocho_launcher_clone:",
    "pop r9",
    "mov eax, edi",
    "and eax, 0x10100", // CLONE_VM, and not CLONE_THREAD
    "cmp eax, 0x100",
    "mov eax, 56",
    "je 2f",
    "syscall",
    "jmp r9",
    "2: lock inc dword ptr [{local} + 8]",
    "syscall",
    "test rax, rax",
    "js 3f",
    "jz 4f",
    "test edi, 0x4000", // CLONE_VFORK: as above. Others share for good
    "jz 4f",
    "3: lock dec dword ptr [{local} + 8]",
    "4: jmp r9",
    "kyocho_launcher_map:",
    "mov eax, 9", // mmap
    "cmp dword ptr [{local} + 12], 0",
    "je 2f",
    "test dl, 4", // PROT_EXEC
    "jz 2f",
    "test r10b, 0x20", // MAP_ANONYMOUS
    "jnz 2f",
    "test r10b, 2", // MAP_PRIVATE
    "jnz 3f",
    "2: syscall",
    "ret",
    "3: push rdx",
    "mov edx, 3", // to be read and written
    "syscall",
    "pop rdx",
    "cmp rax, -4095",
    "jae 8f",
    "push rdi",
    "push r8",
    "push r10",
    "mov edi, dword ptr [{local} + 12]",
    "mov r8d, {local} + 16",
    "4: mov rcx, [r8]",
    "sub rcx, r9",
    "jb 5f",
    "lea r11, [rcx + 8]",
    "cmp r11, rsi",
    "ja 5f",
    "mov r11, [rax + rcx]",
    "cmp r11, [r8 + 8]",
    "jne 5f",
    "mov r11, [r8 + 16]",
    "mov [rax + rcx], r11",
    "5: add r8, 24",
    "dec edi",
    "jnz 4b",
    "mov dword ptr [{local} + 12], 0",
    "mov r10, rax",
    "mov rdi, rax",
    "mov eax, 10", // mprotect, as it was asked for
    "syscall",
    "test rax, rax",
    "cmovz rax, r10",
    "pop r10",
    "pop r8",
    "pop rdi",
    "8: ret",
    ".balign 4",
    "kyocho_launcher_owner:",
    "9: .long 0, 0, 0, 0, 0",
    "kyocho_launcher_end:",
    ".popsection",
    plan_bytes = const PLAN_BYTES_MAX,
    load = const LOAD,
    answer = const RETURN,
    end = const END as i64,
    zero = const ZERO as i64,
    site = const SITE as i64,
    local = const LOCAL,
);

/// An offset in [`Launcher::code`] for each name of a label.
macro_rules! entries {
    ($($(#[$doc:meta])* $name:ident = $label:ident;)*) => {
        unsafe extern "C" {
            static kyocho_launcher: u8;
            static kyocho_launcher_end: u8;
            $(static $label: u8;)*
        }

        /// The launcher's bytes, and the offsets of its entries.
        #[derive(Debug, Clone, Copy)]
        pub struct Launcher {
            /// The bytes to copy. They start with the path and a NUL.
            pub code: &'static [u8],
            $($(#[$doc])* pub $name: usize,)*
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
                Self { code, $($name: offset(&raw const $label),)* }
            }
        }
    };
}

entries! {
    /// Where a new program starts.
    start = kyocho_launcher_start;
    /// Where a client is diverted for `execve`.
    exec = kyocho_launcher_exec;
    /// Where a client is diverted to change its directory.
    chdir = kyocho_launcher_chdir;
    /// A site of `newfstatat`: does `fstat` if the arguments amount to that.
    stat = kyocho_launcher_stat;
    /// A site of `getpid`.
    process = kyocho_launcher_process;
    /// A site of `getuid`.
    user = kyocho_launcher_user;
    /// A site of `geteuid`.
    effective_user = kyocho_launcher_effective_user;
    /// A site of `getgid`.
    group = kyocho_launcher_group;
    /// A site of `getegid`.
    effective_group = kyocho_launcher_effective_group;
    /// A site of any call, with its sixth argument on the stack above its return address.
    any = kyocho_launcher_any;
    /// A site of `vfork`.
    vfork = kyocho_launcher_vfork;
    /// A site of `clone`.
    clone = kyocho_launcher_clone;
    /// A site of `mmap`: sites in a library that it maps are rewritten.
    map = kyocho_launcher_map;
    /// The numbers of the user and the group, in the order of the entries above, and whether they
    /// are known: 32 bits each.
    owner = kyocho_launcher_owner;
}
