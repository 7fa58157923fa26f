//! The function for each call number: the personality "Linux x86-64" as a table (Paper 2:
//! personalities are tables).

use crate::calls::extended::Named;
use crate::calls::freebsd::REPORT;
use crate::calls::socket_names::End;
use crate::clients::client::Client;
use crate::options::Personality;
use crate::policy::{self, Verdict};
use crate::server::{Answer, Request, Server};
use crate::state::trace::{AnsweredBy, Trace};
use core::panic::AssertUnwindSafe;
use kyocho_arch::launcher::{LOAD, RETURN};
use kyocho_sys::error::Errno;
use kyocho_sys::seccomp::{Listener, Notification};
use kyocho_sys::sysv::Kind;
use libc::{AT_FDCWD, c_long};
use std::os::fd::AsFd;
use std::panic::catch_unwind;

impl Server {
    /// Answers one call. If the client is gone, answering fails, and the error is ignored.
    pub(crate) fn serve(&self, listener: &Listener, asked: Notification) {
        let client = Client::of(listener, &asked);
        let request = Request { server: self, listener, client, asked };
        let answer = contained(|| match &self.trace {
            None => request.dispatch(),
            Some(trace) => request.dispatch_traced(trace),
        });
        let id = asked.id;
        let _ = match answer {
            Ok(Answer::Value(value)) => listener.answer(id, Ok(value)),
            // The server's copy is closed before the caller continues, because the caller wants
            // this core.
            Ok(Answer::Descriptor(file, inherited)) => {
                let given = listener.give(id, file.as_fd(), inherited);
                drop(file);
                listener.answer(id, given)
            }
            Ok(Answer::LetThrough) => listener.let_through(id),
            Ok(Answer::Given) => Ok(()),
            Err(errno) => listener.answer(id, Err(errno)),
        };
    }
}

/// The result of `dispatch`. If it panics, which is a defect of this server and has been reported
/// on standard error, the caller gets an error instead of waiting for ever.
fn contained(dispatch: impl FnOnce() -> Result<Answer, Errno>) -> Result<Answer, Errno> {
    catch_unwind(AssertUnwindSafe(dispatch)).unwrap_or(Err(Errno::new(libc::EIO)))
}

impl Request<'_> {
    /// Answers the call.
    ///
    /// # Errors
    /// The client's.
    pub(crate) fn dispatch(&self) -> Result<Answer, Errno> {
        match u64::from(self.asked.number) {
            LOAD => return self.load(),
            RETURN => return self.come_back(),
            REPORT => return self.report(),
            _ => {}
        }
        self.on_files()
            .or_else(|| self.on_names())
            .or_else(|| self.on_attributes())
            .or_else(|| self.on_extended_attributes())
            .or_else(|| self.on_processes())
            .or_else(|| self.on_sockets())
            .or_else(|| self.on_objects())
            .unwrap_or_else(|| self.server.missing(Personality::Linux, self.asked.number))
    }

    /// Answers the call and shows it. For `--trace`, the host's filter sends native calls to the
    /// server too.
    ///
    /// # Errors
    /// The client's.
    pub(crate) fn dispatch_traced(&self, trace: &Trace) -> Result<Answer, Errno> {
        let asked = &self.asked;
        let native = match policy::decide(asked.number, &asked.arguments, asked.program_counter) {
            Verdict::Native => true,
            Verdict::Counted(resource) => !self.server.limited.has(resource),
            Verdict::Served | Verdict::Refused(_) => false,
        };
        if native {
            let answer = Ok(Answer::LetThrough);
            self.show(trace, AnsweredBy::Local, &answer);
            return answer;
        }
        let answer = self.dispatch();
        if u64::from(self.asked.number) == REPORT {
            return answer;
        }
        self.show(trace, AnsweredBy::Server, &answer);
        answer
    }

    fn number(&self) -> c_long {
        c_long::from(self.asked.number)
    }

    fn on_files(&self) -> Option<Result<Answer, Errno>> {
        Some(match self.number() {
            libc::SYS_open => self.open(AT_FDCWD, 0, self.word(1), self.word(2)),
            libc::SYS_mmap => self.map_shared(),
            libc::SYS_memfd_create => self.memory_file(),
            libc::SYS_creat => {
                self.open(AT_FDCWD, 0, crate::calls::files::CREAT_FLAGS, self.word(1))
            }
            libc::SYS_openat => self.open(self.int(0), 1, self.word(2), self.word(3)),
            libc::SYS_stat => self.stat(AT_FDCWD, 0, 1, 0),
            libc::SYS_lstat => self.stat(AT_FDCWD, 0, 1, libc::AT_SYMLINK_NOFOLLOW),
            libc::SYS_newfstatat => self.stat(self.int(0), 1, 2, self.int(3)),
            libc::SYS_statx => self.statx(),
            libc::SYS_statfs => self.statfs(),
            libc::SYS_access => self.access(AT_FDCWD, 0, self.int(1), 0),
            libc::SYS_faccessat => self.access(self.int(0), 1, self.int(2), 0),
            libc::SYS_faccessat2 => self.access(self.int(0), 1, self.int(2), self.int(3)),
            libc::SYS_readlink => self.read_link(AT_FDCWD, 0),
            libc::SYS_readlinkat => self.read_link(self.int(0), 1),
            libc::SYS_getcwd => self.current_directory(),
            libc::SYS_chdir => self.change_directory(),
            _ => return None,
        })
    }

    fn on_names(&self) -> Option<Result<Answer, Errno>> {
        Some(match self.number() {
            libc::SYS_mkdir => self.make_directory(AT_FDCWD, 0),
            libc::SYS_mkdirat => self.make_directory(self.int(0), 1),
            libc::SYS_mknod => self.make_node(AT_FDCWD, 0),
            libc::SYS_mknodat => self.make_node(self.int(0), 1),
            libc::SYS_unlink => self.unlink(AT_FDCWD, 0, 0),
            libc::SYS_rmdir => self.unlink(AT_FDCWD, 0, libc::AT_REMOVEDIR),
            libc::SYS_unlinkat => self.unlink(self.int(0), 1, self.int(2)),
            libc::SYS_rename => self.rename((AT_FDCWD, 0), (AT_FDCWD, 1), 0),
            libc::SYS_renameat => self.rename((self.int(0), 1), (self.int(2), 3), 0),
            libc::SYS_renameat2 => self.rename((self.int(0), 1), (self.int(2), 3), self.word(4)),
            libc::SYS_link => self.link((AT_FDCWD, 0), (AT_FDCWD, 1), 0),
            libc::SYS_linkat => self.link((self.int(0), 1), (self.int(2), 3), self.int(4)),
            libc::SYS_symlink => self.symbolic_link(0, AT_FDCWD, 1),
            libc::SYS_symlinkat => self.symbolic_link(0, self.int(1), 2),
            _ => return None,
        })
    }

    fn on_attributes(&self) -> Option<Result<Answer, Errno>> {
        Some(match self.number() {
            libc::SYS_chmod => self.change_mode(AT_FDCWD, Some(0), self.word(1), 0),
            libc::SYS_fchmod => self.change_mode(self.int(0), None, self.word(1), 0),
            libc::SYS_fchmodat => self.change_mode(self.int(0), Some(1), self.word(2), 0),
            libc::SYS_fchmodat2 => {
                self.change_mode(self.int(0), Some(1), self.word(2), self.int(3))
            }
            libc::SYS_chown => self.change_owner(AT_FDCWD, Some(0), 1, 0),
            libc::SYS_lchown => self.change_owner(AT_FDCWD, Some(0), 1, libc::AT_SYMLINK_NOFOLLOW),
            libc::SYS_fchown => self.change_owner(self.int(0), None, 1, 0),
            libc::SYS_fchownat => self.change_owner(self.int(0), Some(1), 2, self.int(4)),
            libc::SYS_utimensat => self.change_times(),
            libc::SYS_truncate => self.truncate(),
            libc::SYS_inotify_add_watch => self.watch(),
            _ => return None,
        })
    }

    fn on_extended_attributes(&self) -> Option<Result<Answer, Errno>> {
        Some(match self.number() {
            libc::SYS_getxattr => self.get_attribute(Named::Path),
            libc::SYS_lgetxattr => self.get_attribute(Named::Link),
            libc::SYS_fgetxattr => self.get_attribute(Named::Open),
            libc::SYS_setxattr => self.set_attribute(Named::Path),
            libc::SYS_lsetxattr => self.set_attribute(Named::Link),
            libc::SYS_fsetxattr => self.set_attribute(Named::Open),
            libc::SYS_listxattr => self.list_attributes(Named::Path),
            libc::SYS_llistxattr => self.list_attributes(Named::Link),
            libc::SYS_flistxattr => self.list_attributes(Named::Open),
            libc::SYS_removexattr => self.remove_attribute(Named::Path),
            libc::SYS_lremovexattr => self.remove_attribute(Named::Link),
            libc::SYS_fremovexattr => self.remove_attribute(Named::Open),
            _ => return None,
        })
    }

    fn on_processes(&self) -> Option<Result<Answer, Errno>> {
        Some(match self.number() {
            libc::SYS_execve => self.execute(AT_FDCWD, 0, 0),
            libc::SYS_execveat => self.execute(self.int(0), 1, self.int(4)),
            libc::SYS_fork | libc::SYS_vfork | libc::SYS_clone => self.make_task(),
            libc::SYS_kill => self.kill(),
            libc::SYS_tgkill => self.signal_thread(self.int(0), self.int(1), self.int(2)),
            libc::SYS_rt_sigqueueinfo => self.queue_signal(),
            libc::SYS_rt_tgsigqueueinfo => self.queue_thread_signal(),
            libc::SYS_pidfd_open => self.open_process(),
            libc::SYS_pidfd_send_signal => self.signal_by_descriptor(),
            libc::SYS_tkill => self.signal_thread(0, self.int(0), self.int(1)),
            libc::SYS_fcntl if self.int(1) == libc::F_SETFL => self.set_modes(),
            libc::SYS_fcntl => self.own_descriptor(),
            libc::SYS_ioctl if self.word(1) as u32 == libc::FIOASYNC as u32 => self.set_async(),
            libc::SYS_prlimit64 => self.limits(),
            libc::SYS_sched_setaffinity
            | libc::SYS_sched_setscheduler
            | libc::SYS_sched_setparam
            | libc::SYS_sched_setattr
            | libc::SYS_setpriority => self.schedule(),
            libc::SYS_sched_getaffinity
            | libc::SYS_sched_getscheduler
            | libc::SYS_sched_getparam
            | libc::SYS_sched_getattr
            | libc::SYS_sched_rr_get_interval
            | libc::SYS_getpgid
            | libc::SYS_getsid => self.ask_about(self.int(0)),
            libc::SYS_getpriority => self.priority(),
            libc::SYS_clock_gettime
            | libc::SYS_clock_getres
            | libc::SYS_clock_nanosleep
            | libc::SYS_timer_create => self.clock(),
            libc::SYS_sync => Ok(Answer::LetThrough),
            _ => return None,
        })
    }

    fn on_sockets(&self) -> Option<Result<Answer, Errno>> {
        Some(match self.number() {
            libc::SYS_socket => self.socket(),
            libc::SYS_connect => self.connect(),
            libc::SYS_bind => self.bind(),
            libc::SYS_sendto => self.send_to(),
            libc::SYS_sendmsg => self.send_message(),
            libc::SYS_sendmmsg => self.send_messages(),
            libc::SYS_setsockopt => self.set_option(),
            libc::SYS_ioctl => self.interfaces(),
            libc::SYS_getsockname => self.name_of_socket(End::Own),
            libc::SYS_getpeername => self.name_of_socket(End::Peer),
            libc::SYS_socketpair => Err(Errno::new(libc::EPROTONOSUPPORT)),
            _ => return None,
        })
    }

    fn on_objects(&self) -> Option<Result<Answer, Errno>> {
        Some(match self.number() {
            libc::SYS_shmget => self.get_object(Kind::Memory),
            libc::SYS_shmat => self.attach(),
            libc::SYS_shmctl => self.control_object(Kind::Memory),
            libc::SYS_semget => self.get_object(Kind::Semaphores),
            libc::SYS_semop | libc::SYS_semtimedop => self.use_object(Kind::Semaphores),
            libc::SYS_semctl => self.control_object(Kind::Semaphores),
            libc::SYS_msgget => self.get_object(Kind::Messages),
            libc::SYS_msgsnd | libc::SYS_msgrcv => self.use_object(Kind::Messages),
            libc::SYS_msgctl => self.control_object(Kind::Messages),
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::{Answer, contained};
    use kyocho_sys::error::Errno;

    #[test]
    fn a_defect_of_the_server_is_an_error_of_the_call() {
        let broken = contained(|| std::panic::resume_unwind(Box::new("on purpose")));
        assert_eq!(broken.unwrap_err(), Errno::new(libc::EIO));
        assert!(matches!(contained(|| Ok(Answer::Value(7))), Ok(Answer::Value(7))));
        assert_eq!(contained(|| Err(Errno::PERM)).unwrap_err(), Errno::PERM);
    }
}
