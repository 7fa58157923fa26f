//! The only way to the host: a system call with the words that it gets.
//!
//! The library and the program are one protection domain. Whatever the program makes the host do to
//! its memory through the library, it could do by itself. What the library must not lose is at
//! addresses that the program cannot map, or in variables that are lent to the host for one call.
#![expect(unsafe_code, reason = "system calls")]

use crate::errno::Errno;

/// The result of a call.
pub(crate) type Answer = Result<u64, Errno>;

/// The result of a call that returns nothing.
pub(crate) const DONE: Answer = Ok(0);

/// Makes the host's call `number`. Missing words are 0.
pub(crate) fn pass(number: u32, words: &[u64]) -> Answer {
    let mut all = [0; 6];
    for (to, from) in all.iter_mut().zip(words) {
        *to = *from as usize;
    }
    // SAFETY: addresses among the words are the program's own, whose memory this library does not
    // protect, or those of variables that the callers lend (`address`).
    let answer = unsafe { kyocho_arch::system_call(number as usize, all) };
    const ERRORS: isize = -4095;
    if (ERRORS..0).contains(&answer) { Err(Errno(-answer as i32)) } else { Ok(answer as u64) }
}

/// The address of a variable that the host reads or writes in the call that follows.
pub(crate) fn address<T>(variable: &mut T) -> u64 {
    (&raw mut *variable).expose_provenance() as u64
}

/// The address of a variable that the host only reads.
pub(crate) fn address_of<T>(variable: &T) -> u64 {
    (&raw const *variable).expose_provenance() as u64
}

/// The host's call numbers that are used by name. A test compares them with the C library's.
pub(crate) mod number {
    macro_rules! numbers {
        ($($name:ident = $number:literal as $libc:ident),* $(,)?) => {
            $(pub(crate) const $name: u32 = $number;)*

            #[cfg(test)]
            mod tests {
                #[test]
                fn they_are_the_hosts() {
                    $(assert_eq!(i64::from(super::$name), libc::$libc, stringify!($name));)*
                }
            }
        };
    }

    numbers! {
        CLOSE = 3 as SYS_close, FSTAT = 5 as SYS_fstat, MMAP = 9 as SYS_mmap,
        RT_SIGACTION = 13 as SYS_rt_sigaction, RT_SIGPROCMASK = 14 as SYS_rt_sigprocmask, IOCTL = 16 as SYS_ioctl,
        MSYNC = 26 as SYS_msync, MADVISE = 28 as SYS_madvise, SENDFILE = 40 as SYS_sendfile, SOCKET = 41 as SYS_socket,
        CONNECT = 42 as SYS_connect, SENDTO = 44 as SYS_sendto, RECVFROM = 45 as SYS_recvfrom, SENDMSG = 46 as SYS_sendmsg,
        RECVMSG = 47 as SYS_recvmsg, BIND = 49 as SYS_bind, GETSOCKNAME = 51 as SYS_getsockname, GETPEERNAME = 52 as SYS_getpeername,
        SOCKETPAIR = 53 as SYS_socketpair, SETSOCKOPT = 54 as SYS_setsockopt, GETSOCKOPT = 55 as SYS_getsockopt,
        FORK = 57 as SYS_fork, WAIT4 = 61 as SYS_wait4, KILL = 62 as SYS_kill, UNAME = 63 as SYS_uname, FCNTL = 72 as SYS_fcntl,
        GETCWD = 79 as SYS_getcwd, GETPID = 39 as SYS_getpid,
        SETRESUID = 117 as SYS_setresuid, SETRESGID = 119 as SYS_setresgid,
        RT_SIGPENDING = 127 as SYS_rt_sigpending, RT_SIGTIMEDWAIT = 128 as SYS_rt_sigtimedwait, RT_SIGSUSPEND = 130 as SYS_rt_sigsuspend,
        PRCTL = 157 as SYS_prctl, ARCH_PRCTL = 158 as SYS_arch_prctl, GETTID = 186 as SYS_gettid, FUTEX = 202 as SYS_futex,
        SCHED_GETAFFINITY = 204 as SYS_sched_getaffinity, GETDENTS64 = 217 as SYS_getdents64,
        CLOCK_GETTIME = 228 as SYS_clock_gettime, CLOCK_GETRES = 229 as SYS_clock_getres, CLOCK_NANOSLEEP = 230 as SYS_clock_nanosleep,
        EPOLL_CTL = 233 as SYS_epoll_ctl, TGKILL = 234 as SYS_tgkill, WAITID = 247 as SYS_waitid, OPENAT = 257 as SYS_openat,
        MKNODAT = 259 as SYS_mknodat, FCHOWNAT = 260 as SYS_fchownat, NEWFSTATAT = 262 as SYS_newfstatat, UNLINKAT = 263 as SYS_unlinkat,
        LINKAT = 265 as SYS_linkat, READ = 0 as SYS_read, WRITE = 1 as SYS_write, LSEEK = 8 as SYS_lseek,
        PPOLL = 271 as SYS_ppoll, UTIMENSAT = 280 as SYS_utimensat, FALLOCATE = 285 as SYS_fallocate, ACCEPT4 = 288 as SYS_accept4,
        STATFS = 137 as SYS_statfs, FSTATFS = 138 as SYS_fstatfs,
        TIMERFD_CREATE = 283 as SYS_timerfd_create, TIMERFD_SETTIME = 286 as SYS_timerfd_settime, EVENTFD2 = 290 as SYS_eventfd2, EPOLL_CREATE1 = 291 as SYS_epoll_create1, DUP3 = 292 as SYS_dup3, PIPE2 = 293 as SYS_pipe2,
        PRLIMIT64 = 302 as SYS_prlimit64, FCHMODAT2 = 452 as SYS_fchmodat2, CLOSE_RANGE = 436 as SYS_close_range,
        FACCESSAT2 = 439 as SYS_faccessat2, EPOLL_PWAIT2 = 441 as SYS_epoll_pwait2,
    }
}
