//! Directories, signals and limits of processes.

use crate::calls::naming;
use crate::clients::tree::{group_of, is_client, processes, send, status_field};
use crate::errors::{NOT_A_DIRECTORY, host};
use crate::options::Personality;
use crate::paths::walk::FinalLink;
use crate::policy;
use crate::program::launcher;
use crate::program::loading::Completion;
use crate::server::{Answer, DONE, Request};
use kyocho_sys::descriptor;
use kyocho_sys::error::Errno;
use kyocho_sys::process::INFORMATION_BYTES;
use kyocho_sys::seccomp::Inherited;
use rustix::fs::{Access, AtFlags, FileType, Mode, OFlags};
use rustix::process::{Pid, PidfdFlags};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

impl Request<'_> {
    /// `fork`, `vfork`, `clone`: the host does it, if another task is admitted.
    pub(crate) fn make_task(&self) -> Result<Answer, Errno> {
        let asked = &self.asked;
        if self.server.personality == Personality::Linux
            && policy::shares_unseen(asked.number, &asked.arguments, asked.program_counter)
        {
            self.forget()?;
        }
        self.server.admission.admit().map(|()| Answer::LetThrough)
    }

    /// `chdir`. The server finds the directory; the client enters it by descriptor. So the host
    /// keeps it, for threads and children, too.
    pub(crate) fn change_directory(&self) -> Result<Answer, Errno> {
        let path = self.path(0)?;
        let base = if path.starts_with(b"/") { Vec::new() } else { self.base_of(libc::AT_FDCWD)? };
        let node = self.server.walk(&self.client, &base, &path, FinalLink::Follow)?;
        if node.kind != FileType::Directory {
            return Err(NOT_A_DIRECTORY);
        }
        let host_path = node.descriptor_path();
        rustix::fs::accessat(
            rustix::fs::CWD,
            host_path.as_str(),
            Access::EXEC_OK,
            AtFlags::EACCESS,
        )
        .map_err(host)?;
        // Most directories can be read, and then no message is needed.
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let directory = match rustix::fs::open(host_path.as_str(), flags, Mode::empty()) {
            Err(rustix::io::Errno::ACCESS) => return self.enter(node.file.as_fd()),
            other => other.map_err(host)?,
        };
        let number = self.listener.give(self.asked.id, directory.as_fd(), Inherited::No)?;
        self.divert(|_, registers| {
            naming::call(registers, libc::SYS_fchdir, [number as u64, 0, 0]);
            Ok(Completion::Answer)
        })
    }

    /// `kill`. The host delivers a signal to the caller itself. The server delivers it to other
    /// processes, by descriptor, so that it cannot reach a process outside that got the number.
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
                // That a process ended meanwhile is not a failure.
                sent = send(process, signal).or(sent);
            }
        }
        sent.map(|()| Answer::Value(0))
    }

    /// `tgkill` and `tkill`: to a thread of the caller's process, or to the leader of another
    /// process of the instance.
    pub(crate) fn signal_thread(
        &self,
        process: i32,
        thread: i32,
        signal: i32,
    ) -> Result<Answer, Errno> {
        let own = self.client.process()?;
        let named = if process == 0 { own } else { process as u32 };
        // If a process is named, the host checks that the thread belongs to it.
        if named == own && (process != 0 || thread == self.client.thread() as i32) {
            return Ok(Answer::LetThrough);
        }
        // The thread may end before the host looks, and a thread outside may get its number. So the
        // caller makes the call again, with the number of its process.
        if named == own {
            return self.divert(|_, registers| {
                registers.rip = launcher::address(|launcher| launcher.exec);
                registers.rax = libc::SYS_tgkill as u64;
                [registers.rdi, registers.rsi] = [u64::from(own), thread as u64];
                registers.rdx = signal as u64;
                Ok(Completion::Answer)
            });
        }
        // Another process of the instance. The signal goes to its leader, which is nearly always
        // meant.
        if named == thread as u32 { send(named, signal).and(DONE) } else { Err(Errno::PERM) }
    }

    /// `rt_sigqueueinfo`: a signal with a word.
    pub(crate) fn queue_signal(&self) -> Result<Answer, Errno> {
        let (target, signal) = (self.int(0), self.int(1));
        if target == self.client.process()? as i32 {
            return Ok(Answer::LetThrough);
        }
        let information = self.information(2)?;
        let handle = kyocho_sys::process::open(target as u32)?;
        if !is_client(target as u32) {
            return Err(Errno::SRCH);
        }
        kyocho_sys::process::signal_with(handle.as_fd(), signal, &information).and(DONE)
    }

    /// `rt_tgsigqueueinfo`: the same for a thread of the caller's process.
    pub(crate) fn queue_thread_signal(&self) -> Result<Answer, Errno> {
        let own = self.client.process()?;
        let there = status_field(self.word(1) as u32, "Tgid:", 10)?;
        if self.int(0) == own as i32 && there == own {
            Ok(Answer::LetThrough)
        } else {
            Err(Errno::PERM)
        }
    }

    /// The information of a signal, as the sender wrote it. The host checks it.
    fn information(&self, place: usize) -> Result<[u8; INFORMATION_BYTES], Errno> {
        let mut bytes = [0; INFORMATION_BYTES];
        self.client.read(self.word(place), &mut bytes)?;
        Ok(bytes)
    }

    /// `pidfd_open`, for processes of the instance.
    pub(crate) fn open_process(&self) -> Result<Answer, Errno> {
        let flags = PidfdFlags::from_bits(self.word(1) as u32).ok_or(Errno::INVAL)?;
        let process = Some(self.int(0)).filter(|number| *number > 0).and_then(Pid::from_raw);
        let process = process.ok_or(Errno::INVAL)?;
        let handle = rustix::process::pidfd_open(process, flags).map_err(host)?;
        if !is_client(process.as_raw_pid() as u32) {
            return Err(Errno::SRCH);
        }
        Ok(Answer::Descriptor(handle, Inherited::No))
    }

    /// `pidfd_send_signal`. The descriptor may come from outside, for example through a socket. It
    /// must refer to a process of the instance.
    pub(crate) fn signal_by_descriptor(&self) -> Result<Answer, Errno> {
        if self.word(3) != 0 {
            return Err(Errno::INVAL);
        }
        let handle = self.client.descriptor(self.int(0))?;
        let host_path = format!("/proc/self/fdinfo/{}", handle.as_raw_fd());
        let text = std::fs::read_to_string(host_path).map_err(|_| Errno::new(libc::EBADF))?;
        let number = text.lines().find_map(|line| line.strip_prefix("Pid:"));
        let number: i32 =
            number.and_then(|n| n.trim().parse().ok()).ok_or(Errno::new(libc::EBADF))?;
        if number <= 0 || !is_client(number as u32) {
            return Err(Errno::SRCH);
        }
        if self.word(2) == 0 {
            return kyocho_sys::process::signal(handle.as_fd(), self.int(1)).and(DONE);
        }
        let information = self.information(2)?;
        kyocho_sys::process::signal_with(handle.as_fd(), self.int(1), &information).and(DONE)
    }

    /// `F_SETOWN` of `fcntl`: the process that gets `SIGIO` for a descriptor. Only the caller
    /// itself.
    pub(crate) fn own_descriptor(&self) -> Result<Answer, Errno> {
        if self.int(2) == self.client.process()? as i32 {
            Ok(Answer::LetThrough)
        } else {
            Err(Errno::PERM)
        }
    }

    /// `F_SETFL` with `O_ASYNC`.
    pub(crate) fn set_modes(&self) -> Result<Answer, Errno> {
        self.send_arrivals(&self.client.descriptor(self.int(0))?, self.word(2) as u32)
    }

    /// `FIOASYNC`: the same as `F_SETFL` with `O_ASYNC`.
    pub(crate) fn set_async(&self) -> Result<Answer, Errno> {
        let file = self.client.descriptor(self.int(0))?;
        let mut on = [0; 4];
        self.client.read(self.word(2), &mut on)?;
        let modes = rustix::fs::fcntl_getfl(&file).map_err(host)?.bits() & !(libc::O_ASYNC as u32);
        let wanted = if on == [0; 4] { 0 } else { libc::O_ASYNC as u32 };
        self.send_arrivals(&file, modes | wanted)
    }

    /// Sets the modes of a descriptor. A terminal with `O_ASYNC` signals the caller. Otherwise the
    /// host would choose the foreground group of the terminal, which may be outside.
    fn send_arrivals(&self, file: &OwnedFd, modes: u32) -> Result<Answer, Errno> {
        if rustix::termios::isatty(file) && modes & libc::O_ASYNC as u32 != 0 {
            descriptor::set_owner(file.as_fd(), self.client.process()?)?;
        }
        rustix::fs::fcntl_setfl(file, OFlags::from_bits_retain(modes)).map_err(host)?;
        DONE
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

    /// Calls that describe a process or thread and change nothing. If it ends meanwhile, its number
    /// can belong to another one.
    ///
    /// # Errors
    /// `SRCH`: the instance has no such process or thread.
    pub(crate) fn ask_about(&self, number: i32) -> Result<Answer, Errno> {
        if self.has(number)? { Ok(Answer::LetThrough) } else { Err(Errno::SRCH) }
    }

    /// Whether the instance has a process or thread with this number.
    fn has(&self, number: i32) -> Result<bool, Errno> {
        let own = self.client.process()?;
        let process = u32::try_from(number).ok().filter(|number| *number != 0);
        let process = process.and_then(|number| status_field(number, "Tgid:", 10).ok());
        Ok(process.is_some_and(|process| process == own || is_client(process)))
    }

    /// `getpriority` of a process or thread. Groups and users have members outside.
    pub(crate) fn priority(&self) -> Result<Answer, Errno> {
        if self.word(0) == u64::from(libc::PRIO_PROCESS) {
            self.ask_about(self.int(1))
        } else {
            Err(Errno::SRCH)
        }
    }

    /// Calls on the processor clock of a process or thread. The clock's number contains the
    /// process: `!id << 3`, a bit for threads, and which of its clocks.
    ///
    /// # Errors
    /// `INVAL`: it belongs to no process of the instance, or to a descriptor.
    pub(crate) fn clock(&self) -> Result<Answer, Errno> {
        const OF_DESCRIPTOR: i32 = 3;
        let clock = self.int(0);
        let of = !(clock >> 3);
        // 0 is the caller itself.
        if clock & OF_DESCRIPTOR != OF_DESCRIPTOR && (of == 0 || self.has(of)?) {
            Ok(Answer::LetThrough)
        } else {
            Err(Errno::INVAL)
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

    /// Ends a process that made a call reserved for the launcher.
    pub(crate) fn end_hostile(&self) -> Result<Answer, Errno> {
        let process = self.client.process()?;
        tracing::warn!(process, "a client made a call of the launcher's: it is ended");
        send(process, libc::SIGKILL)?;
        Err(Errno::PERM)
    }
}
