//! Executing programs.
//!
//! ```text
//!   client:   execve("/bin/x")
//!   server:   finds, opens, reads headers; diverts the thread to execve("/proc/self/exe"),
//!             which is the launcher
//!   host:     new address space with the launcher;
//!             threads, handlers, descriptors as after any execve
//!   launcher: LOAD
//!   server:   hands over the files, writes the plan
//!   launcher: maps, enters the program
//! ```
//!
//! So the host itself does everything in `execve` that concerns the process, and never sees the
//! program's path. The client can execute nothing else, because the filter permits one address as a
//! path. The emulation library of Lites (paper 2) loads programs in the client, too.

use crate::calls::naming;
use crate::clients::client::Client;
use crate::errors::host;
use crate::paths::walk::{FinalLink, Node};
use crate::policy;
use crate::program::elf::{Elf, HEADERS_BYTES_MAX, ImageError};
use crate::program::launcher::{self, RED_ZONE};
use crate::program::loading::{Completion, Diverted, FoundProgram, Program, Refusal};
use crate::program::plan::Plan;
use crate::program::running::Mark;
use crate::server::{Answer, Request, Server};
use kyocho_arch::launcher::{LOCAL, LOCAL_BYTES, PLAN_BYTES_MAX};
use kyocho_sys::error::Errno;
use kyocho_sys::process;
use kyocho_sys::remote::{self, Registers};
use kyocho_sys::seccomp::Inherited;
use rustix::fs::{Access, AtFlags, FileType, Mode, OFlags};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

/// Deepest nesting of scripts, as on Linux.
const SCRIPTS_MAX: usize = 5;
/// Longest first line of a script, as on Linux.
const LINE_BYTES_MAX: usize = 255;
/// Most arguments that are moved for a script.
const ARGUMENTS_MAX: usize = 128 * 1024;
/// The addresses of programs and of interpreters that are not fixed. A random distance is added.
const PROGRAM_AT: u64 = 0x5555_0000_0000;
const INTERPRETER_AT: u64 = 0x7000_0000_0000;
/// Most programs that are being entered before those of dead processes are removed.
const LOADING_MAX: usize = 64;

/// Most diverted threads before dead ones are removed.
const DIVERTED_MAX: usize = 1024;

/// Whether there is a process or thread of this number.
fn is_there(number: u32) -> bool {
    std::path::Path::new(&format!("/proc/{number}")).exists()
}

impl Server {
    /// The program in a node, or the interpreter that its script names.
    pub(crate) fn program(
        &self,
        client: &Client<'_>,
        node: Node,
        path: &[u8],
    ) -> Result<FoundProgram, Refusal> {
        let name = path.rsplit(|byte| *byte == b'/').next().unwrap_or_default().to_vec();
        let (mut node, mut path, mut prefix) = (node, path.to_vec(), Vec::new());
        for _ in 0..=SCRIPTS_MAX {
            let (file, start) = open_executable(&node)?;
            if let Some((interpreter, argument)) = script(&start)? {
                let mut words = vec![interpreter.clone()];
                words.extend(argument);
                // The path of the script follows, and then what the caller put before it.
                words.push(path);
                words.extend(prefix.into_iter().skip(1));
                prefix = words;
                node = self.walk(client, b"/", &interpreter, FinalLink::Follow)?;
                path = interpreter;
                continue;
            }
            let elf = read_elf(&file, &start)?;
            elf.must_be_for(self.personality).map_err(Refusal::ImageError)?;
            let interpreter = match elf.interpreter {
                Some((offset, bytes)) => Some(self.interpreter(client, &file, offset, bytes)?),
                None => None,
            };
            // The mark comes first. A process that opens the file for writing from now on finds the
            // mark. One that opened it before is found by the host.
            let mark = self.running.mark(&file)?;
            process::may_execute(file.as_fd())?;
            let program = Program { file, elf, interpreter, name, mark, thread: client.thread() };
            return Ok(FoundProgram { program, prefix });
        }
        Err(Errno::new(libc::ELOOP).into())
    }

    fn interpreter(
        &self,
        client: &Client<'_>,
        program: &OwnedFd,
        offset: u64,
        bytes: usize,
    ) -> Result<(OwnedFd, Elf), Refusal> {
        let mut path = vec![0; bytes];
        let read = rustix::io::pread(program, path.as_mut_slice(), offset).map_err(host)?;
        let end = path[..read]
            .iter()
            .position(|byte| *byte == 0)
            .ok_or(Refusal::ImageError(ImageError::Broken))?;
        let node = self.walk(client, b"/", &path[..end], FinalLink::Follow)?;
        let (file, start) = open_executable(&node)?;
        let elf = read_elf(&file, &start)?;
        Ok((file, elf))
    }

    /// Keeps `program` until `process` asks for it.
    pub(crate) fn keep(&self, process: u32, program: Program) {
        let mut state = self.state();
        if state.loading.len() >= LOADING_MAX {
            state.loading.retain(|process, _| is_there(*process));
        }
        state.loading.insert(process, program);
    }

    /// Keeps the registers that `thread` gets back at the end of its call.
    fn keep_diverted(&self, thread: u32, diverted: Diverted) {
        let mut state = self.state();
        if state.diverted.len() >= DIVERTED_MAX {
            state.diverted.retain(|thread, _| is_there(*thread));
        }
        state.diverted.insert(thread, diverted);
    }
}

fn open_executable(node: &Node) -> Result<(OwnedFd, Vec<u8>), Errno> {
    let refused = Errno::new(libc::EACCES);
    if node.kind != FileType::RegularFile {
        return Err(refused);
    }
    node.must_be_readable()?;
    let host_path = node.descriptor_path();
    rustix::fs::accessat(rustix::fs::CWD, host_path.as_str(), Access::EXEC_OK, AtFlags::EACCESS)
        .map_err(host)?;
    let flags = OFlags::RDONLY | OFlags::CLOEXEC;
    let file = rustix::fs::open(host_path.as_str(), flags, Mode::empty()).map_err(host)?;
    let mut start = vec![0; HEADERS_BYTES_MAX];
    let read = rustix::io::pread(&file, start.as_mut_slice(), 0).map_err(host)?;
    start.truncate(read);
    Ok((file, start))
}

fn read_elf(file: &OwnedFd, start: &[u8]) -> Result<Elf, Refusal> {
    let bytes = rustix::fs::fstat(file).map_err(host)?.st_size;
    Elf::read(start, bytes as u64).map_err(Refusal::ImageError)
}

/// Interpreter and argument, if a file begins as a script.
type Script = Option<(Vec<u8>, Option<Vec<u8>>)>;

fn script(start: &[u8]) -> Result<Script, Errno> {
    let Some(rest) = start.strip_prefix(b"#!") else { return Ok(None) };
    let rest = &rest[..rest.len().min(LINE_BYTES_MAX)];
    let line = rest.split(|byte| *byte == b'\n').next().unwrap_or_default().trim_ascii();
    let end = line.iter().position(u8::is_ascii_whitespace).unwrap_or(line.len());
    let (interpreter, argument) = line.split_at(end);
    if interpreter.is_empty() {
        return Err(Errno::new(libc::ENOEXEC));
    }
    let argument = Some(argument.trim_ascii().to_vec()).filter(|argument| !argument.is_empty());
    Ok(Some((interpreter.to_vec(), argument)))
}

impl Request<'_> {
    /// `execve` and `execveat`.
    pub(crate) fn execute(&self, directory: i32, path: usize, flags: i32) -> Result<Answer, Errno> {
        let text = self.path(path)?;
        let node = self.find(directory, path, flags)?;
        let text = if text.is_empty() { format!("/dev/fd/{directory}").into_bytes() } else { text };
        let found = self.server.program(&self.client, node, &text).map_err(Refusal::errno)?;
        let (arguments, environment) = (self.word(path + 1), self.word(path + 2));
        let moved = match found.prefix.as_slice() {
            [] => None,
            prefix => Some(self.moved(prefix, arguments)?),
        };
        let process = self.client.process()?;
        self.server.keep(process, found.program);
        let diverted = self.divert(|client, registers| {
            let arguments = match &moved {
                None => arguments,
                Some(moved) => moved.place(client, registers.rsp)?,
            };
            registers.rip = launcher::address(|launcher| launcher.exec);
            registers.rax = libc::SYS_execve as u64;
            registers.rdi = launcher::PATH_ADDRESS as u64;
            registers.rsi = arguments;
            registers.rdx = environment;
            Ok(Completion::Answer)
        });
        if diverted.is_err() {
            self.server.state().loading.remove(&process);
        }
        diverted
    }

    /// The arguments of a script's interpreter: the prefix, and all but the first of the caller's.
    fn moved(&self, prefix: &[Vec<u8>], arguments: u64) -> Result<MovedArguments, Errno> {
        let mut rest = Vec::new();
        let mut at = arguments;
        while at != 0 && rest.len() < ARGUMENTS_MAX {
            let word = self.client.word(at)?;
            if word == 0 {
                break;
            }
            rest.push(word);
            at = at.checked_add(8).ok_or(Errno::FAULT)?;
        }
        if rest.len() == ARGUMENTS_MAX {
            return Err(Errno::new(libc::E2BIG));
        }
        Ok(MovedArguments { prefix: prefix.to_vec(), rest: rest.split_off(rest.len().min(1)) })
    }

    /// Lets the calling thread return from its call with other registers, and keeps its own. If
    /// `change` fails, the call fails.
    pub(crate) fn divert(
        &self,
        change: impl FnOnce(&Client<'_>, &mut Registers) -> Result<Completion, Errno>,
    ) -> Result<Answer, Errno> {
        let (thread, id) = (self.asked.thread, self.asked.id);
        self.client.must_wait()?;
        // If this succeeds, the thread that was attached before is the caller.
        let release = || self.listener.answer(id, Ok(0));
        remote::divert(thread, release, |registers| {
            let saved = *registers;
            match change(&Client::traced(thread), registers) {
                Ok(then) => {
                    self.server.keep_diverted(thread, Diverted { registers: saved, then });
                }
                Err(errno) => {
                    *registers = saved;
                    registers.rax = i64::from(-errno.number()) as u64;
                }
            }
        })?;
        Ok(Answer::Given)
    }

    /// The end of a diverted call: the thread gets its registers back, with the call's result.
    pub(crate) fn come_back(&self) -> Result<Answer, Errno> {
        let thread = self.asked.thread;
        let Some(diverted) = self.server.state().diverted.remove(&thread) else {
            return self.end_hostile();
        };
        if let Ok(process) = self.client.process() {
            self.server.state().loading.remove(&process);
        }
        let Diverted { registers: saved, then } = diverted;
        let result = self.end_of(then, self.word(0));
        let release = || self.listener.answer(self.asked.id, Ok(0));
        remote::divert(thread, release, |registers| {
            if let (Completion::Enter(_), Some(number)) = (then, u32::try_from(result).ok()) {
                naming::call(registers, libc::SYS_fchdir, [u64::from(number), 0, 0]);
                self.server
                    .keep_diverted(thread, Diverted { registers: saved, then: Completion::Answer });
                return;
            }
            if let Completion::Mapped(number) = then {
                registers.rip = launcher::address(|launcher| launcher.exec);
                registers.rax = libc::SYS_close as u64;
                registers.rdi = number;
                let then = Completion::Value(result);
                self.server.keep_diverted(thread, Diverted { registers: saved, then });
                return;
            }
            *registers = saved;
            registers.rax = result as u64;
        })?;
        Ok(Answer::Given)
    }

    /// The result of a diverted call whose own result is `answer`.
    fn end_of(&self, then: Completion, answer: u64) -> i64 {
        let answer = answer as i64;
        match then {
            Completion::Number(at) | Completion::Enter(at) if answer >= 0 => {
                let mut number = [0; 4];
                let read = self.client.read(at, &mut number);
                read.map_or(-i64::from(libc::EFAULT), |()| i32::from_le_bytes(number).into())
            }
            Completion::Value(value) => value,
            _ => answer,
        }
    }

    /// Answers a new launcher that asks for its plan.
    pub(crate) fn load(&self) -> Result<Answer, Errno> {
        let process = self.client.process()?;
        let Some(program) = self.server.state().loading.remove(&process) else {
            return self.end_hostile();
        };
        self.server.state().diverted.remove(&program.thread);
        let mut plan = Plan::new();
        if self.server.sites.is_some() {
            plan.call(
                libc::SYS_madvise,
                &[LOCAL as u64, LOCAL_BYTES as u64, libc::MADV_WIPEONFORK as u64],
            );
        }
        self.put_mark(&mut plan, &program.mark)?;
        let (bias, vector) =
            (self.map(&mut plan, &program.file, &program.elf, PROGRAM_AT)?, self.word(0));
        let elf = &program.elf;
        let entry = elf.entry.wrapping_add(bias);
        let mut changes = vec![
            (libc::AT_PHDR, elf.headers.map_or(0, |headers| headers.wrapping_add(bias))),
            (libc::AT_PHNUM, u64::from(elf.headers_count)),
            (libc::AT_ENTRY, entry),
            (libc::AT_BASE, 0),
        ];
        let mut first = entry;
        if let Some((file, elf)) = &program.interpreter {
            let bias = self.map(&mut plan, file, elf, INTERPRETER_AT)?;
            first = elf.entry.wrapping_add(bias);
            changes.push((libc::AT_BASE, bias));
        }
        first = launcher::first_address(self.server.personality, first);
        self.change_vector(vector, &changes)?;
        let place = self.word(1);
        let plan = plan.finish(&program.name, place).ok_or(Errno::NOMEM)?;
        debug_assert!(plan.len() <= PLAN_BYTES_MAX);
        self.client.write(place, &plan)?;
        Ok(Answer::Value(first as i64))
    }

    /// Makes all processes that will share this memory show which program they run.
    fn put_mark(&self, plan: &mut Plan, mark: &Mark) -> Result<(), Errno> {
        let number = self.listener.give(self.asked.id, mark.as_fd(), Inherited::No)? as u64;
        let (at, bytes) = (launcher::MARK as u64, launcher::MARK_BYTES as u64);
        plan.call(libc::SYS_mmap, &[at, bytes, policy::READ_WRITE, policy::MARKING, number, 0]);
        plan.call(libc::SYS_close, &[number]);
        Ok(())
    }

    /// Hands over `file` and plans its mapping. Returns what must be added to its addresses.
    fn map(&self, plan: &mut Plan, file: &OwnedFd, elf: &Elf, near: u64) -> Result<u64, Errno> {
        let number = self.listener.give(self.asked.id, file.as_fd(), Inherited::No)? as u64;
        let sites = match &self.server.sites {
            None => Arc::default(),
            Some(sites) => sites.of_program(file, elf),
        };
        let bias = plan.map(elf, near + random_distance()?, number, &sites);
        plan.call(libc::SYS_close, &[number]);
        Ok(bias)
    }

    /// Changes entries of the auxiliary vector at `address`. Of several changes to an entry the
    /// last one counts.
    fn change_vector(&self, address: u64, changes: &[(u64, u64)]) -> Result<(), Errno> {
        const ENTRY_BYTES: usize = 16;
        const ENTRIES_MAX: usize = 64;
        let mut vector = [0; ENTRIES_MAX * ENTRY_BYTES];
        let read = self.client.read_some(address, &mut vector)?;
        for entry in vector[..read].chunks_exact_mut(ENTRY_BYTES) {
            let (kind, value) = entry.split_at_mut(ENTRY_BYTES / 2);
            let of_kind = |(changed, _): &&(u64, u64)| changed.to_le_bytes() == *kind;
            if let Some((_, new)) = changes.iter().rev().find(of_kind) {
                value.copy_from_slice(&new.to_le_bytes());
            }
            if *kind == libc::AT_NULL.to_le_bytes() {
                break;
            }
        }
        // The bytes after its end are written back unchanged: the process has one thread, which
        // waits.
        self.client.write(address, &vector[..read])
    }
}

/// Arguments that are written below the stack of the program that is replaced.
struct MovedArguments {
    prefix: Vec<Vec<u8>>,
    rest: Vec<u64>,
}

impl MovedArguments {
    /// Writes them below `stack`. Returns the address of their list.
    fn place(&self, client: &Client<'_>, stack: u64) -> Result<u64, Errno> {
        let list_bytes = 8 * (self.prefix.len() + self.rest.len() + 1);
        let text_bytes: usize = self.prefix.iter().map(|word| word.len() + 1).sum();
        let bytes = (list_bytes + text_bytes) as u64;
        let start = stack.checked_sub(RED_ZONE + bytes).ok_or(Errno::FAULT)? & !15;
        let (mut list, mut text) = (Vec::new(), Vec::new());
        for word in &self.prefix {
            list.push(start + (list_bytes + text.len()) as u64);
            text.extend(word);
            text.push(0);
        }
        list.extend(&self.rest);
        list.push(0);
        let mut block: Vec<u8> = list.iter().flat_map(|word| word.to_le_bytes()).collect();
        block.extend(text);
        client.write(start, &block)?;
        Ok(start)
    }
}

/// A whole number of pages, up to a terabyte.
fn random_distance() -> Result<u64, Errno> {
    const PAGES: u64 = 1 << 28;
    let mut bytes = [0; 8];
    rustix::rand::getrandom(bytes.as_mut_slice(), rustix::rand::GetRandomFlags::empty())
        .map_err(host)?;
    Ok(u64::from_le_bytes(bytes) % PAGES * 4096)
}
