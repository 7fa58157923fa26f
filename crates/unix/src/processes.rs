//! Directories, signals and limits of processes.

use crate::client::{is_client, status_field};
use crate::launcher;
use crate::server::{Answer, DONE, Request, host};
use crate::walk::{Last, NOT_A_DIRECTORY};
use kyocho_sys::error::Errno;
use kyocho_sys::seccomp::Inherited;
use rustix::fs::{Access, AtFlags, FileType, Mode, OFlags};
use std::os::fd::{AsFd, AsRawFd};

impl Request<'_> {
    /// `chdir`: the directory is found here and entered there, by descriptor. Thus the host keeps it, for threads and children, too.
    pub(crate) fn change_directory(&self) -> Result<Answer, Errno> {
        let path = self.path(0)?;
        let base = if path.starts_with(b"/") { Vec::new() } else { self.base_of(libc::AT_FDCWD)? };
        let node = self.server.walk(&self.client, &base, &path, Last::Follow)?;
        if node.kind != FileType::Directory {
            return Err(NOT_A_DIRECTORY);
        }
        let shown = format!("/proc/self/fd/{}", node.file.as_raw_fd());
        rustix::fs::accessat(rustix::fs::CWD, shown.as_str(), Access::EXEC_OK, AtFlags::EACCESS)
            .map_err(host)?;
        // The host hands over no descriptor that is for naming alone: a directory must be readable to be entered.
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let directory = rustix::fs::open(shown.as_str(), flags, Mode::empty()).map_err(host)?;
        let number = self.listener.give(self.asked.id, directory.as_fd(), Inherited::No)?;
        self.divert(|registers| {
            registers.rip = launcher::address(|launcher| launcher.chdir);
            registers.rax = libc::SYS_fchdir as u64;
            registers.rdi = number as u64;
            Ok(())
        })
    }

    /// `kill`. To itself the host delivers, at once; to others this server does, by descriptor, so that no stranger is hit who got the number.
    pub(crate) fn kill(&self) -> Result<Answer, Errno> {
        let (target, signal) = (self.int(0), self.int(1));
        let own = self.client.process()?;
        if target == own as i32 {
            return Ok(Answer::LetThrough);
        }
        if target > 0 {
            return send(target as u32, signal).map(|()| Answer::Value(0));
        }
        let group = match target {
            -1 => None,
            0 => Some(group_of(own).ok_or(Errno::SRCH)?),
            _ => Some(target.wrapping_neg()),
        };
        let mut sent = Err(Errno::SRCH);
        for process in processes() {
            let meant = match group {
                None => process != own,
                Some(group) => group_of(process) == Some(group),
            };
            if meant && is_client(process) {
                // One that ended meanwhile is no failure.
                sent = send(process, signal).or(sent);
            }
        }
        sent.map(|()| Answer::Value(0))
    }

    /// `tgkill` and `tkill`, within the caller's process.
    pub(crate) fn signal_thread(
        &self,
        process: i32,
        thread: i32,
        signal: i32,
    ) -> Result<Answer, Errno> {
        let own = self.client.process()?;
        let named = if process == 0 { own } else { process as u32 };
        if named == own {
            let there = status_field(thread as u32, "Tgid:", 10)?;
            return if there == own { Ok(Answer::LetThrough) } else { Err(Errno::SRCH) };
        }
        // Another process of the instance: to its leader, which is who is named nearly always.
        if named == thread as u32 { send(named, signal).and(DONE) } else { Err(Errno::PERM) }
    }

    /// `prlimit64` that names a process.
    pub(crate) fn limits(&self) -> Result<Answer, Errno> {
        self.only_itself(self.word(0))
    }

    /// Calls of the scheduler that name a thread.
    pub(crate) fn schedule(&self) -> Result<Answer, Errno> {
        match i64::from(self.asked.number) {
            libc::SYS_setpriority if self.word(0) != 0 => Err(Errno::PERM),
            libc::SYS_setpriority => self.only_itself(self.word(1)),
            _ => self.only_itself(self.word(0)),
        }
    }

    fn only_itself(&self, thread: u64) -> Result<Answer, Errno> {
        let own = self.client.process()?;
        if status_field(thread as u32, "Tgid:", 10)? == own {
            Ok(Answer::LetThrough)
        } else {
            Err(Errno::PERM)
        }
    }

    /// Ends a process that made a call which only the launcher makes.
    pub(crate) fn end_hostile(&self) -> Result<Answer, Errno> {
        let process = self.client.process()?;
        tracing::warn!(process, "a client made a call of the launcher's: it is ended");
        send(process, libc::SIGKILL)?;
        Err(Errno::PERM)
    }
}

/// Sends `signal` to a process of the instance.
pub(crate) fn send(process: u32, signal: i32) -> Result<(), Errno> {
    // The descriptor first: what is learned behind it is about the process that it names.
    let handle = kyocho_sys::process::open(process)?;
    if !is_client(process) {
        return Err(Errno::SRCH);
    }
    kyocho_sys::process::signal(handle.as_fd(), signal)
}

fn group_of(process: u32) -> Option<i32> {
    let process = rustix::process::Pid::from_raw(process as i32)?;
    rustix::process::getpgid(Some(process)).ok().map(rustix::process::Pid::as_raw_pid)
}

/// All processes of the host that can be seen.
pub(crate) fn processes() -> impl Iterator<Item = u32> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// Takes the statuses of orphans of the instance that ended; not that of the first process, which its instance waits for.
pub(crate) fn reap() {
    let own = std::process::id();
    let orphan =
        |process: &u32| status_field(*process, "PPid:", 10).is_ok_and(|parent| parent == own);
    for process in processes().filter(orphan) {
        let process = rustix::process::Pid::from_raw(process as i32);
        // One that runs on is left alone, one that is gone was taken.
        let _ = rustix::process::waitpid(process, rustix::process::WaitOptions::NOHANG);
    }
}
