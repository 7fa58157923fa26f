//! For any call, the filter that the host runs gives the verdict of [`decide`].

use super::filter::{Calls, program};
use super::{
    Limited, MARKING, NATIVE, READ_WRITE, RULES, Resource, Verdict, decide, shares_unseen,
};
use crate::options::Personality;
use crate::program::launcher::MARK;
use kyocho_sys::seccomp::Instruction;
use proptest::prelude::{Strategy, any, prop_oneof, proptest};
use proptest::sample::select;

/// Every resource has a limit.
const ALL: Limited = Limited { tasks: true, memory: true };

/// What the host would do with `program`. Interprets the instructions that the filter uses, as the
/// kernel's documentation defines them.
fn run(program: &[Instruction], number: u32, architecture: u32, arguments: &[u64; 6]) -> u32 {
    run_at(program, 0, number, architecture, arguments)
}

/// The same for a call from address `counter`.
fn run_at(
    program: &[Instruction],
    counter: u64,
    number: u32,
    architecture: u32,
    arguments: &[u64; 6],
) -> u32 {
    let mut data = vec![number, architecture, counter as u32, (counter >> 32) as u32];
    data.extend(arguments.iter().flat_map(|word| [*word as u32, (*word >> 32) as u32]));
    let (mut at, mut accumulator) = (0, 0);
    loop {
        let Instruction { code, jt, jf, k } = program[at];
        at += 1;
        let holds = match code {
            0x20 => {
                accumulator = data[k as usize / 4];
                continue;
            }
            0x06 => return k,
            0x15 => accumulator == k,
            0x25 => accumulator > k,
            0x35 => accumulator >= k,
            0x45 => accumulator & k != 0,
            other => panic!("no such instruction: {other:#x}"),
        };
        at += usize::from(if holds { jt } else { jf });
    }
}

fn word() -> impl Strategy<Value = u64> {
    let edges: Vec<u64> = vec![
        0,
        0x1_0000,
        0xffff,
        0x1f_ffff,
        0x20_0000,
        1 << 32,
        0x10,
        0x5412,
        0x5413,
        3,
        4,
        8,
        0x100,
        0x4100,
        0x1_0f00,
    ];
    prop_oneof![any::<u64>(), select(edges), (0_u64..64)]
}

fn number() -> impl Strategy<Value = u32> {
    let ruled: Vec<u32> = RULES.iter().map(|rule| rule.number as u32).collect();
    prop_oneof![0_u32..500, select(ruled)]
}

proptest! {
    #[test]
    fn the_filter_decides_as_the_policy(number in number(), counter in word(), arguments in [word(), word(), word(), word(), word(), word()]) {
        for (tasks, memory) in [(false, false), (true, false), (false, true), (true, true)] {
            let expected = match decide(number, &arguments, counter) {
                Verdict::Native => libc::SECCOMP_RET_ALLOW,
                Verdict::Counted(Resource::Tasks) if !tasks => libc::SECCOMP_RET_ALLOW,
                Verdict::Counted(Resource::Memory) if !memory => libc::SECCOMP_RET_ALLOW,
                Verdict::Counted(_) | Verdict::Served => libc::SECCOMP_RET_USER_NOTIF,
                Verdict::Refused(errno) => libc::SECCOMP_RET_ERRNO | errno as u32,
            };
            let program = program(Calls::Served, Limited { tasks, memory }, Personality::Linux);
            assert_eq!(run_at(&program, counter, number, 0xc000_003e, &arguments), expected);
        }
    }
}

#[test]
fn calls_of_freebsd_programs_trap_and_those_of_their_library_do_not() {
    let of_linux = program(Calls::Served, Limited::default(), Personality::Linux);
    let of_freebsd = program(Calls::Served, Limited::default(), Personality::FreeBsd);
    for number in 0..500 {
        let words = [3, 0x20_0000, 0, 0, 0, 0];
        let [linux, library] = [&of_linux, &of_freebsd]
            .map(|program| run_at(program, 0x1_2345, number, 0xc000_003e, &words));
        assert_eq!(library, linux, "{number}");
        for counter in [0, 0xffff, 0x20_0000, 0x40_1000, 0x1_0001_2345, 1 << 47] {
            let verdict = run_at(&of_freebsd, counter, number, 0xc000_003e, &words);
            assert_eq!(verdict, libc::SECCOMP_RET_TRAP, "{number} at {counter:#x}");
        }
    }
}

#[test]
fn a_new_process_reaches_its_server_and_the_launcher_before_it_has_a_library() {
    let launcher = crate::program::launcher::PATH_ADDRESS as u64;
    let channel = kyocho_sys::confined::CHANNEL as u64;
    for (number, first) in
        [(libc::SYS_sendto, channel), (libc::SYS_recvfrom, channel), (libc::SYS_execve, launcher)]
    {
        for (calls, personality) in
            [(Calls::Served, Personality::FreeBsd), (Calls::All, Personality::Linux)]
        {
            let program = program(calls, ALL, personality);
            let words = [first, 8, 0, 0, 0, 0];
            let verdict = run_at(&program, 1 << 46, number as u32, 0xc000_003e, &words);
            assert_eq!(verdict, libc::SECCOMP_RET_ALLOW, "{number}");
        }
    }
    // A socket under the channel's number cannot send to an address.
    let to_address = [channel, 8, 0, 0, 0x20_0000, 16];
    let number = libc::SYS_sendto as u32;
    let of_freebsd = program(Calls::Served, ALL, Personality::FreeBsd);
    let verdict = run_at(&of_freebsd, 1 << 46, number, 0xc000_003e, &to_address);
    assert_eq!(verdict, libc::SECCOMP_RET_TRAP);
    let all_calls = program(Calls::All, ALL, Personality::Linux);
    let verdict = run_at(&all_calls, 1 << 46, number, 0xc000_003e, &to_address);
    assert_eq!(verdict, libc::SECCOMP_RET_USER_NOTIF);
}

/// A call that makes a process with shared memory without the launcher's knowledge is served;
/// threads and forks are not.
#[test]
fn no_process_shares_memory_unseen() {
    let (vfork, clone) = (libc::SYS_vfork as u32, libc::SYS_clone as u32);
    let spawning = (libc::CLONE_VM | libc::CLONE_VFORK | libc::SIGCHLD) as u64;
    let thread = (libc::CLONE_VM | libc::CLONE_SIGHAND | libc::CLONE_THREAD) as u64;
    let (program, launcher) = (1 << 46, crate::program::launcher::BASE as u64);
    for (number, flags, counter, unseen) in [
        (vfork, 0, program, true),
        (vfork, 0, launcher, false),
        (clone, spawning, program, true),
        (clone, spawning, launcher, false),
        (clone, thread, program, false),
        (clone, libc::SIGCHLD as u64, program, false),
    ] {
        let words = [flags, 0, 0, 0, 0, 0];
        let counted = Verdict::Counted(Resource::Tasks);
        let verdict = if unseen { Verdict::Served } else { counted };
        assert_eq!(decide(number, &words, counter), verdict, "{number} {flags:#x} {counter:#x}");
        assert_eq!(shares_unseen(number, &words, counter), unseen);
    }
}

#[test]
fn other_instruction_sets_are_killed_and_x32_is_not_there() {
    let none = [0; 6];
    let program = program(Calls::Served, Limited::default(), Personality::Linux);
    assert_eq!(run(&program, 1, 0x4000_0003, &none), libc::SECCOMP_RET_KILL_PROCESS);
    let x32 = run(&program, 0x4000_0001, 0xc000_003e, &none);
    assert_eq!(x32, libc::SECCOMP_RET_ERRNO | libc::ENOSYS as u32);
}

#[test]
fn what_names_things_is_never_native() {
    let named = [
        libc::SYS_open,
        libc::SYS_openat,
        libc::SYS_openat2,
        libc::SYS_kill,
        libc::SYS_tgkill,
        libc::SYS_connect,
        libc::SYS_bind,
        libc::SYS_ptrace,
        libc::SYS_process_vm_writev,
        libc::SYS_mount,
        libc::SYS_execveat,
        libc::SYS_io_uring_setup,
        libc::SYS_bpf,
        libc::SYS_unlink,
        libc::SYS_rename,
        libc::SYS_chdir,
        libc::SYS_pidfd_getfd,
        libc::SYS_userfaultfd,
        libc::SYS_shmat,
        libc::SYS_remap_file_pages,
    ];
    for number in named {
        assert!(!NATIVE.contains(&number));
        assert_eq!(decide(number as u32, &[0; 6], 1 << 46), Verdict::Served, "{number}");
    }
}

#[test]
fn the_launcher_cannot_be_unmapped_or_replaced() {
    let launcher = crate::program::launcher::BASE as u64;
    let fixed = libc::MAP_FIXED as u64;
    for (number, arguments) in [
        (libc::SYS_munmap, [0, 1 << 47, 0, 0, 0, 0]),
        (libc::SYS_munmap, [launcher, 4096, 0, 0, 0, 0]),
        (libc::SYS_mprotect, [launcher, 4096, 7, 0, 0, 0]),
        (libc::SYS_pkey_mprotect, [launcher, 4096, 7, 0, 0, 0]),
        (libc::SYS_mmap, [launcher, 4096, 7, fixed, 0, 0]),
        (libc::SYS_mmap, [MARK as u64, 4096, READ_WRITE, libc::MAP_SHARED as u64 | fixed, 0, 0]),
        (libc::SYS_mmap, [MARK as u64, 4096, 3, libc::MAP_SHARED as u64 | fixed | 0x20, 0, 0]),
        (libc::SYS_mmap, [MARK as u64, 4096, 7, MARKING, 0, 0]),
        (libc::SYS_mmap, [MARK as u64, 8192, READ_WRITE, MARKING, 0, 0]),
        (libc::SYS_mmap, [MARK as u64 - 4096, 4096, READ_WRITE, MARKING, 0, 0]),
        (libc::SYS_mremap, [launcher, 4096, 8192, 1, 0, 0]),
        (libc::SYS_mremap, [1 << 40, 4096, 4096, 3, launcher, 0]),
        (libc::SYS_mremap, [1 << 40, 4096, 4096, 5, launcher, 0]),
    ] {
        assert!(
            matches!(decide(number as u32, &arguments, 1 << 46), Verdict::Refused(_)),
            "{number}"
        );
    }
}
