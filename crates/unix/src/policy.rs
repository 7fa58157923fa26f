//! Which system calls of a client go to the host, which are served, and which are refused.
//!
//! Pure: a table, and two ways to evaluate it. One is [`decide`]; the other is the filter for the
//! host, written by `policy/filter.rs`.
//!
//! A call is *native* if it harms no other process when a hostile client makes it: calls on
//! descriptors that the server has handed over, on the client's own memory, signals, threads and
//! children. A call is *served* if it names something: a path, a process, an address. It is also
//! served if it takes some of a resource that the instance has a limit of.
//!
//! Serving has a price: a signal can interrupt a served call before the server has received it. The
//! call then fails with `EINTR` if the handler was installed without `SA_RESTART`. Programs do not
//! expect that of `fork`, so `fork` is served only where tasks have a limit.
//!
//! **Invariant:** no native call opens, connects, or names another process. None changes the pages
//! from [`BASE`] to [`GUARD`], where the launcher is, with two exceptions that the launcher asks
//! for: the client's own page there is cleared in children, and the mark of the program is mapped.
//!
//! **Invariant:** a condition looks at register values alone. Memory that they point to can change
//! after it was checked.

pub(crate) mod filter;
pub(crate) mod names;
mod options;

use crate::program::launcher::{BASE, GUARD, MARK, MARK_BYTES, PATH_ADDRESS};
use kyocho_arch::launcher::{LOCAL, LOCAL_BYTES};
use libc::c_long;
use options::{OF_IPV4, OF_IPV6, OF_SOCKET, OF_UDP};

/// What happens to a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// The host does it.
    Native,
    /// It takes some of this resource. It is served if the instance has a limit of the resource;
    /// otherwise the host does it.
    Counted(Resource),
    /// The server answers it.
    Served,
    /// It fails with this error number.
    Refused(i32),
}

/// A resource of which an instance can have a limit that its server keeps. The host keeps the
/// limits of each process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Resource {
    /// Processes and threads.
    Tasks,
    /// Memory that belongs to no address space: memory files, shared memory without a file.
    Memory,
}

/// The resources that have a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Limited {
    pub(crate) tasks: bool,
    pub(crate) memory: bool,
}

impl Limited {
    /// Whether `resource` has a limit.
    pub(crate) fn has(self, resource: Resource) -> bool {
        match resource {
            Resource::Tasks => self.tasks,
            Resource::Memory => self.memory,
        }
    }
}

/// A condition on an argument word, or on where the call comes from.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Condition {
    /// The word has this value.
    Is(usize, u64),
    /// The word is at least this.
    AtLeast(usize, u32),
    /// Its low half has none of these bits.
    NoBits(usize, u32),
    /// Its low half has this bit.
    Bit(usize, u32),
    /// The low half, which is all that the host reads, is one of these.
    OneOf(usize, &'static [u32]),
    /// The call is made by the launcher: from [`BASE`] to [`GUARD`].
    FromLauncher,
}

/// The first rule for a number whose conditions all hold decides. If there is none, the call is
/// served.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rule {
    pub(crate) number: c_long,
    pub(crate) conditions: &'static [Condition],
    pub(crate) verdict: Verdict,
}

const fn native(number: c_long, conditions: &'static [Condition]) -> Rule {
    Rule { number, conditions, verdict: Verdict::Native }
}

/// Used for calls that are refused with other arguments.
const fn served(number: c_long, conditions: &'static [Condition]) -> Rule {
    Rule { number, conditions, verdict: Verdict::Served }
}

const fn counted(number: c_long, conditions: &'static [Condition]) -> Rule {
    Rule { number, conditions, verdict: Verdict::Counted(Resource::Tasks) }
}

const fn counted_memory(number: c_long, conditions: &'static [Condition]) -> Rule {
    Rule { number, conditions, verdict: Verdict::Counted(Resource::Memory) }
}

const fn refused(number: c_long, errno: i32) -> Rule {
    Rule { number, conditions: &[], verdict: Verdict::Refused(errno) }
}

/// The verdict on call `number` with these arguments, made at address `counter`.
pub(crate) fn decide(number: u32, arguments: &[u64; 6], counter: u64) -> Verdict {
    let number = c_long::from(number);
    if NATIVE.contains(&number) {
        return Verdict::Native;
    }
    RULES
        .iter()
        .filter(|rule| rule.number == number)
        .find(|rule| rule.conditions.iter().all(|condition| condition.holds(arguments, counter)))
        .map_or(Verdict::Served, |rule| rule.verdict)
}

impl Condition {
    fn holds(self, arguments: &[u64; 6], counter: u64) -> bool {
        match self {
            Self::Is(index, word) => arguments[index] == word,
            Self::AtLeast(index, least) => arguments[index] >= u64::from(least),
            Self::NoBits(index, bits) => arguments[index] as u32 & bits == 0,
            Self::Bit(index, bit) => arguments[index] as u32 & bit != 0,
            Self::FromLauncher => (BASE as u64..u64::from(GUARD)).contains(&counter),
            Self::OneOf(index, list) => list.contains(&(arguments[index] as u32)),
        }
    }
}

use Condition::{AtLeast, Bit, FromLauncher, Is, NoBits, OneOf};

/// Namespaces and tracing: a thread or a child of a client may not start with them.
const CLONE_FORBIDDEN: u32 = (libc::CLONE_NEWNS
    | libc::CLONE_NEWCGROUP
    | libc::CLONE_NEWUTS
    | libc::CLONE_NEWIPC
    | libc::CLONE_NEWUSER
    | libc::CLONE_NEWPID
    | libc::CLONE_NEWNET
    | libc::CLONE_PTRACE
    | libc::CLONE_UNTRACED) as u32;

/// The child shares its parent's memory.
const CLONE_VM: u32 = libc::CLONE_VM as u32;

/// Whether a call makes a process that shares its parent's memory, without the launcher's
/// knowledge.
pub(crate) fn shares_unseen(number: u32, arguments: &[u64; 6], counter: u64) -> bool {
    let shares = match c_long::from(number) {
        libc::SYS_vfork => true,
        libc::SYS_clone => arguments[0] as u32 & (CLONE_VM | libc::CLONE_THREAD as u32) == CLONE_VM,
        _ => false,
    };
    shares && !FromLauncher.holds(arguments, counter)
}

/// How a plan maps the mark of a program (`program/running.rs`).
pub(crate) const READ_WRITE: u64 = (libc::PROT_READ | libc::PROT_WRITE) as u64;
pub(crate) const MARKING: u64 = (libc::MAP_SHARED | libc::MAP_FIXED_NOREPLACE) as u64;

/// With these two bits of the flags, `mmap` makes shared memory without a file.
const ANONYMOUS: u32 = libc::MAP_ANONYMOUS as u32;
const SHARED: u32 = libc::MAP_SHARED as u32;

const MAP_AT: u32 = (libc::MAP_FIXED | libc::MAP_FIXED_NOREPLACE) as u32;

/// The flags with which `mremap` reads a fifth word. With the second of them the word is a hint.
const MOVE_AT: u32 = (libc::MREMAP_FIXED | libc::MREMAP_DONTUNMAP) as u32;

/// Requests on terminals, pipes and files that change nothing but the descriptor or its terminal.
/// `TIOCSTI` is not among them: it would type into the shell that started the server.
const REQUESTS: &[u32] = &[
    libc::TCGETS as u32,
    libc::TIOCGWINSZ as u32,
    libc::TIOCGPGRP as u32,
    libc::TIOCSPGRP as u32,
    libc::TCSETS as u32,
    libc::TCSETSW as u32,
    libc::TCSETSF as u32,
    libc::TIOCSWINSZ as u32,
    libc::FIONREAD as u32,
    libc::FIONBIO as u32,
    libc::FIOCLEX as u32,
    libc::FIONCLEX as u32,
    libc::TIOCGSID as u32,
    libc::TIOCSCTTY as u32,
    libc::TIOCNOTTY as u32,
    libc::TIOCGPTN as u32,
    libc::TIOCSPTLCK as u32,
    libc::TIOCGPTLCK as u32,
    libc::TIOCOUTQ as u32,
    libc::TIOCPKT as u32,
    libc::TCSBRK as u32,
    libc::TCSBRKP as u32,
    libc::TCXONC as u32,
    libc::TCFLSH as u32,
    libc::TIOCEXCL as u32,
    libc::TIOCNXCL as u32,
    libc::TIOCGETD as u32,
];

/// Requests on sockets that only describe network interfaces.
const INTERFACE_REQUESTS: &[u32] = &[
    libc::SIOCGIFNAME as u32,
    libc::SIOCGIFCONF as u32,
    libc::SIOCGIFFLAGS as u32,
    libc::SIOCGIFADDR as u32,
    libc::SIOCGIFBRDADDR as u32,
    libc::SIOCGIFNETMASK as u32,
    libc::SIOCGIFMTU as u32,
    libc::SIOCGIFHWADDR as u32,
    libc::SIOCGIFINDEX as u32,
];

/// Commands of `fcntl` that are native. Not among them:
///
/// - `F_SETFL` with `O_ASYNC`: on a terminal it sends signals to the foreground group, whatever
///   that is.
/// - `F_SETOWN`, which is served.
/// - `F_SETOWN_EX`, `F_SETSIG`, `F_NOTIFY`: they send signals to processes named in memory, or
///   signals that are meant for something else.
const COMMANDS: &[u32] = &[
    libc::F_GETFD as u32,
    libc::F_SETFD as u32,
    libc::F_GETFL as u32,
    libc::F_DUPFD as u32,
    libc::F_DUPFD_CLOEXEC as u32,
    libc::F_SETLK as u32,
    libc::F_SETLKW as u32,
    libc::F_GETLK as u32,
    libc::F_OFD_SETLK as u32,
    libc::F_OFD_SETLKW as u32,
    libc::F_OFD_GETLK as u32,
    libc::F_GETPIPE_SZ as u32,
    libc::F_SETPIPE_SZ as u32,
    libc::F_ADD_SEALS as u32,
    libc::F_GET_SEALS as u32,
    libc::F_GETOWN as u32,
    // `F_GETOWN_EX`: the C library uses it for `F_GETOWN`.
    16,
];

/// What a thread may change or ask about itself. Not `PR_SET_DUMPABLE`: the server could no longer
/// read the client's arguments. Not `PR_SET_MM`: the launcher trusts `/proc/self/exe`.
const SELF_DESCRIPTION: &[u32] = &[
    libc::PR_SET_NAME as u32,
    libc::PR_GET_NAME as u32,
    libc::PR_SET_PDEATHSIG as u32,
    libc::PR_GET_PDEATHSIG as u32,
    libc::PR_GET_DUMPABLE as u32,
    libc::PR_CAPBSET_READ as u32,
    libc::PR_SET_NO_NEW_PRIVS as u32,
    libc::PR_GET_NO_NEW_PRIVS as u32,
    libc::PR_SET_TIMERSLACK as u32,
    libc::PR_GET_TIMERSLACK as u32,
    libc::PR_SET_CHILD_SUBREAPER as u32,
    libc::PR_GET_CHILD_SUBREAPER as u32,
    libc::PR_SET_VMA as u32,
    libc::PR_GET_KEEPCAPS as u32,
];

/// The bit of a clock's number that is set if the clock belongs to a process, a thread or a
/// descriptor. The other bits say which.
const CLOCK_OF_PROCESS: u32 = 1 << 31;

/// Setting and reading the thread pointers. Not mapping another vDSO.
const ARCH_REQUESTS: &[u32] = &[0x1001, 0x1002, 0x1003, 0x1004];

/// Calls that are native under conditions. The most frequent come first: the host walks this list.
pub(crate) const RULES: &[Rule] = &[
    // Shared memory without a file, at any place that is permitted.
    counted_memory(libc::SYS_mmap, &[Bit(3, ANONYMOUS), Bit(3, SHARED), NoBits(3, MAP_AT)]),
    counted_memory(libc::SYS_mmap, &[Bit(3, ANONYMOUS), Bit(3, SHARED), AtLeast(0, GUARD)]),
    native(libc::SYS_mmap, &[NoBits(3, MAP_AT)]),
    native(libc::SYS_mmap, &[AtLeast(0, GUARD)]),
    // A page without code, at a place where nothing is mapped. Once a plan is done, something
    // always is.
    native(
        libc::SYS_mmap,
        &[Is(0, MARK as u64), Is(1, MARK_BYTES as u64), Is(2, READ_WRITE), Is(3, MARKING)],
    ),
    refused(libc::SYS_mmap, libc::EPERM),
    native(libc::SYS_mprotect, &[AtLeast(0, GUARD)]),
    refused(libc::SYS_mprotect, libc::EPERM),
    native(libc::SYS_munmap, &[AtLeast(0, GUARD)]),
    refused(libc::SYS_munmap, libc::EPERM),
    native(libc::SYS_fcntl, &[OneOf(1, COMMANDS)]),
    native(libc::SYS_fcntl, &[OneOf(1, &[libc::F_SETFL as u32]), NoBits(2, libc::O_ASYNC as u32)]),
    served(libc::SYS_fcntl, &[OneOf(1, &[libc::F_SETOWN as u32, libc::F_SETFL as u32])]),
    refused(libc::SYS_fcntl, libc::EINVAL),
    native(libc::SYS_ioctl, &[OneOf(1, REQUESTS)]),
    served(libc::SYS_ioctl, &[OneOf(1, INTERFACE_REQUESTS)]),
    served(libc::SYS_ioctl, &[OneOf(1, &[libc::FIOASYNC as u32])]),
    refused(libc::SYS_ioctl, libc::ENOTTY),
    counted(libc::SYS_fork, &[]),
    // These make two processes with one memory. The launcher, or else the server, makes sure that
    // neither takes the other's number for its own.
    counted(libc::SYS_vfork, &[FromLauncher]),
    counted(libc::SYS_clone, &[NoBits(0, CLONE_FORBIDDEN | CLONE_VM)]),
    counted(libc::SYS_clone, &[NoBits(0, CLONE_FORBIDDEN), Bit(0, libc::CLONE_THREAD as u32)]),
    counted(libc::SYS_clone, &[NoBits(0, CLONE_FORBIDDEN), FromLauncher]),
    served(libc::SYS_clone, &[NoBits(0, CLONE_FORBIDDEN)]),
    refused(libc::SYS_clone, libc::EPERM),
    // Its flags are in memory, where no filter sees them. All libraries fall back to `clone`.
    refused(libc::SYS_clone3, libc::ENOSYS),
    counted_memory(libc::SYS_memfd_create, &[]),
    native(libc::SYS_execve, &[Is(0, PATH_ADDRESS as u64)]),
    native(libc::SYS_madvise, &[AtLeast(0, GUARD)]),
    native(
        libc::SYS_madvise,
        &[Is(0, LOCAL as u64), Is(1, LOCAL_BYTES as u64), Is(2, libc::MADV_WIPEONFORK as u64)],
    ),
    refused(libc::SYS_madvise, libc::EINVAL),
    native(libc::SYS_mremap, &[AtLeast(0, GUARD), NoBits(3, MOVE_AT)]),
    native(libc::SYS_mremap, &[AtLeast(0, GUARD), AtLeast(4, GUARD)]),
    native(libc::SYS_mremap, &[AtLeast(0, GUARD), NoBits(3, libc::MREMAP_FIXED as u32), Is(4, 0)]),
    refused(libc::SYS_mremap, libc::EINVAL),
    native(libc::SYS_pkey_mprotect, &[AtLeast(0, GUARD)]),
    refused(libc::SYS_pkey_mprotect, libc::EPERM),
    native(libc::SYS_sendto, &[Is(4, 0), NoBits(3, libc::MSG_FASTOPEN as u32)]),
    // Other options send packets by themselves, choose an interface, or change what the socket
    // receives.
    native(libc::SYS_setsockopt, &[OneOf(1, &[libc::IPPROTO_TCP as u32])]),
    native(libc::SYS_setsockopt, &[OneOf(1, &[libc::SOL_SOCKET as u32]), OneOf(2, OF_SOCKET)]),
    native(libc::SYS_setsockopt, &[OneOf(1, &[libc::IPPROTO_IP as u32]), OneOf(2, OF_IPV4)]),
    native(libc::SYS_setsockopt, &[OneOf(1, &[libc::IPPROTO_IPV6 as u32]), OneOf(2, OF_IPV6)]),
    native(libc::SYS_setsockopt, &[OneOf(1, &[libc::IPPROTO_UDP as u32]), OneOf(2, OF_UDP)]),
    native(libc::SYS_socketpair, &[OneOf(0, &[libc::AF_UNIX as u32])]),
    native(libc::SYS_arch_prctl, &[OneOf(0, ARCH_REQUESTS)]),
    refused(libc::SYS_arch_prctl, libc::EINVAL),
    native(libc::SYS_prctl, &[OneOf(0, SELF_DESCRIPTION)]),
    refused(libc::SYS_prctl, libc::EINVAL),
    native(libc::SYS_clock_gettime, &[NoBits(0, CLOCK_OF_PROCESS)]),
    native(libc::SYS_clock_getres, &[NoBits(0, CLOCK_OF_PROCESS)]),
    native(libc::SYS_clock_nanosleep, &[NoBits(0, CLOCK_OF_PROCESS)]),
    native(libc::SYS_timer_create, &[NoBits(0, CLOCK_OF_PROCESS)]),
    native(libc::SYS_prlimit64, &[Is(0, 0)]),
    native(libc::SYS_sched_getaffinity, &[Is(0, 0)]),
    native(libc::SYS_sched_getscheduler, &[Is(0, 0)]),
    native(libc::SYS_sched_getparam, &[Is(0, 0)]),
    native(libc::SYS_sched_getattr, &[Is(0, 0)]),
    native(libc::SYS_sched_rr_get_interval, &[Is(0, 0)]),
    native(libc::SYS_getpriority, &[Is(0, 0), Is(1, 0)]),
    native(libc::SYS_getpgid, &[Is(0, 0)]),
    native(libc::SYS_getsid, &[Is(0, 0)]),
    native(libc::SYS_sched_setaffinity, &[Is(0, 0)]),
    native(libc::SYS_sched_setscheduler, &[Is(0, 0)]),
    native(libc::SYS_sched_setparam, &[Is(0, 0)]),
    native(libc::SYS_sched_setattr, &[Is(0, 0)]),
    native(libc::SYS_setpriority, &[Is(0, 0), Is(1, 0)]),
];

/// Calls that are native with any arguments.
#[rustfmt::skip]
pub(crate) const NATIVE: &[c_long] = &[
    // Descriptors.
    libc::SYS_read, libc::SYS_write, libc::SYS_close, libc::SYS_fstat, libc::SYS_lseek, libc::SYS_pread64,
    libc::SYS_pwrite64, libc::SYS_readv, libc::SYS_writev, libc::SYS_preadv, libc::SYS_pwritev, libc::SYS_preadv2,
    libc::SYS_pwritev2, libc::SYS_dup, libc::SYS_dup2, libc::SYS_dup3, libc::SYS_pipe, libc::SYS_pipe2,
    libc::SYS_poll, libc::SYS_ppoll, libc::SYS_select, libc::SYS_pselect6, libc::SYS_epoll_create,
    libc::SYS_epoll_create1, libc::SYS_epoll_ctl, libc::SYS_epoll_wait, libc::SYS_epoll_pwait, libc::SYS_epoll_pwait2,
    libc::SYS_eventfd, libc::SYS_eventfd2, libc::SYS_timerfd_create, libc::SYS_timerfd_settime,
    libc::SYS_timerfd_gettime, libc::SYS_signalfd, libc::SYS_signalfd4, libc::SYS_flock, libc::SYS_fsync,
    libc::SYS_fdatasync, libc::SYS_ftruncate, libc::SYS_fallocate, libc::SYS_fadvise64, libc::SYS_sync_file_range,
    libc::SYS_getdents, libc::SYS_getdents64, libc::SYS_sendfile, libc::SYS_splice, libc::SYS_tee, libc::SYS_vmsplice,
    libc::SYS_copy_file_range, libc::SYS_close_range, libc::SYS_fstatfs, libc::SYS_readahead,
    libc::SYS_fchdir, libc::SYS_inotify_init, libc::SYS_inotify_init1, libc::SYS_inotify_rm_watch, libc::SYS_syncfs,
    // Sockets that exist already.
    libc::SYS_accept, libc::SYS_accept4, libc::SYS_listen, libc::SYS_shutdown, libc::SYS_getsockopt, libc::SYS_recvfrom, libc::SYS_recvmsg,
    libc::SYS_recvmmsg,
    // Memory.
    libc::SYS_brk, libc::SYS_mincore, libc::SYS_msync, libc::SYS_mlock, libc::SYS_mlock2, libc::SYS_munlock,
    libc::SYS_mlockall, libc::SYS_munlockall, libc::SYS_membarrier, libc::SYS_pkey_alloc, libc::SYS_pkey_free,
    // Undoes a mapping of `shmat` and nothing else.
    libc::SYS_shmdt,
    // Processes and threads of its own.
    libc::SYS_exit, libc::SYS_exit_group, libc::SYS_wait4, libc::SYS_waitid,
    libc::SYS_getpid, libc::SYS_getppid, libc::SYS_gettid, libc::SYS_getuid, libc::SYS_geteuid, libc::SYS_getgid,
    libc::SYS_getegid, libc::SYS_getresuid, libc::SYS_getresgid, libc::SYS_getgroups, libc::SYS_getpgrp,
    libc::SYS_setpgid, libc::SYS_setsid, libc::SYS_umask,
    libc::SYS_setuid, libc::SYS_setgid, libc::SYS_setreuid, libc::SYS_setregid, libc::SYS_setresuid,
    libc::SYS_setresgid, libc::SYS_setgroups, libc::SYS_setfsuid, libc::SYS_setfsgid, libc::SYS_capget, libc::SYS_capset,
    libc::SYS_set_tid_address, libc::SYS_set_robust_list, libc::SYS_rseq, libc::SYS_futex, libc::SYS_futex_waitv,
    libc::SYS_getrlimit, libc::SYS_setrlimit, libc::SYS_getrusage, libc::SYS_times,
    libc::SYS_sched_yield, libc::SYS_sched_get_priority_max, libc::SYS_sched_get_priority_min, libc::SYS_getcpu,
    // Signals to the caller itself, and time.
    libc::SYS_rt_sigaction, libc::SYS_rt_sigprocmask, libc::SYS_rt_sigreturn, libc::SYS_rt_sigpending,
    libc::SYS_rt_sigtimedwait, libc::SYS_rt_sigsuspend, libc::SYS_sigaltstack, libc::SYS_pause,
    libc::SYS_restart_syscall, libc::SYS_alarm, libc::SYS_getitimer, libc::SYS_setitimer,
    libc::SYS_timer_settime, libc::SYS_timer_gettime, libc::SYS_timer_getoverrun, libc::SYS_timer_delete,
    libc::SYS_nanosleep, libc::SYS_gettimeofday, libc::SYS_time,
    // Descriptions of the host.
    libc::SYS_uname, libc::SYS_sysinfo, libc::SYS_getrandom,
];

#[cfg(test)]
mod tests;
