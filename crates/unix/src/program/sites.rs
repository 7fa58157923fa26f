//! Call sites of programs and libraries that are rewritten when they are mapped. They call the
//! launcher's page, which answers by itself or makes a call of the host.
//!
//! ```text
//!   before   b8 27 00 00 00   0f 05      c3       mov eax, 39              syscall     ret
//!   after    b9 .. .. .. ..   ff d1      c3       mov ecx, `process`       call rcx    ret
//! ```
//!
//! The server searches each file for [`PATTERNS`] once: static programs and interpreters when they
//! are executed, the C library when it is opened. Sites of the first two are in the plan by which
//! the launcher maps them. Sites of the C library are written into the client's own page
//! ([`LOCAL`]). The interpreter's `mmap` is a site itself, and rewrites what the interpreter maps.
//!
//! A `call` writes its return address below the stack pointer. Each pattern covers enough of a
//! function of the C library to show that nothing is stored there.
//!
//! **Invariant:** bytes change before any thread can run them, and only if the expected word is
//! still there. Only the client's own copy of a page is rewritten.
//!
//! Source: The emulation library of Lites (paper 2) redirects calls where they are made. Paper 4
//! answers them from a system-call cache.

use crate::errors::host;
use crate::program::elf::{Elf, HEADERS_BYTES_MAX, Segment};
use crate::program::launcher;
use kyocho_arch::launcher::Launcher;
use kyocho_sys::error::Errno;
use rustix::fs::Stat;
use std::collections::HashMap;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A word of a file, and the word that replaces it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Site {
    /// The offset in the file.
    pub(crate) offset: u64,
    pub(crate) old: u64,
    pub(crate) new: u64,
}

/// A site as it looks in the text of a program.
struct Pattern {
    /// The bytes before those that are replaced.
    before: &'static [u8],
    /// The bytes that are replaced. They end with the system call.
    replaced: [u8; REPLACED],
    /// The bytes after them. At least one.
    after: &'static [u8],
    entry: fn(&Launcher) -> usize,
    scope: SearchScope,
}

/// Where a pattern is searched for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SearchScope {
    /// Everywhere: its entry calls the host.
    Asked,
    /// Where calls need not be shown: its entry does not call the host.
    Answered,
    /// As `Answered`, and only if the user's numbers cannot change.
    Owner,
    /// Only in files that the launcher maps.
    Mapped,
}

/// `mov eax, NUMBER; syscall`, or other instructions of the same length.
const REPLACED: usize = 7;
const SYSCALL: [u8; 2] = [0x0f, 0x05];

const fn numbered(number: u8) -> [u8; REPLACED] {
    [0xb8, number, 0, 0, 0, SYSCALL[0], SYSCALL[1]]
}

const RETURN: &[u8] = &[0xc3];

const fn whole(number: u8, entry: fn(&Launcher) -> usize, scope: SearchScope) -> Pattern {
    Pattern { before: &[], replaced: numbered(number), after: RETURN, entry, scope }
}

const PATTERNS: &[Pattern] = &[
    whole(39, |launcher| launcher.process, SearchScope::Answered),
    whole(102, |launcher| launcher.user, SearchScope::Owner),
    whole(107, |launcher| launcher.effective_user, SearchScope::Owner),
    whole(104, |launcher| launcher.group, SearchScope::Owner),
    whole(108, |launcher| launcher.effective_group, SearchScope::Owner),
    // `syscall`: mov r9, [rsp + 8]; syscall; cmp rax, -4095; jae.
    Pattern {
        before: &[0x4d, 0x89, 0xc8],
        replaced: [0x4c, 0x8b, 0x4c, 0x24, 0x08, SYSCALL[0], SYSCALL[1]],
        after: &[0x48, 0x3d, 0x01, 0xf0, 0xff, 0xff, 0x73],
        entry: |launcher| launcher.any,
        scope: SearchScope::Answered,
    },
    // `vfork`, which keeps its return address in a register: pop rdi; ...; push rdi.
    Pattern {
        before: &[0x5f],
        replaced: numbered(58),
        after: &[0x57],
        entry: |launcher| launcher.vfork,
        scope: SearchScope::Asked,
    },
    // `clone`: mov r10, [rsp + 8]; ...; test rax, rax; jl; jz.
    Pattern {
        before: &[0x4c, 0x8b, 0x54, 0x24, 0x08],
        replaced: numbered(56),
        after: &[0x48, 0x85, 0xc0, 0x7c],
        entry: |launcher| launcher.clone,
        scope: SearchScope::Asked,
    },
    // `fstat` up to version 2.38. It is `newfstatat` with an empty path, which a filter cannot
    // recognise: mov r10d, ecx; ...; cmp eax, -4096; ja.
    Pattern {
        before: &[0x41, 0x89, 0xca],
        replaced: [0xb8, 0x06, 0x01, 0, 0, SYSCALL[0], SYSCALL[1]],
        after: &[0x3d, 0x00, 0xf0, 0xff, 0xff, 0x77],
        entry: |launcher| launcher.stat,
        scope: SearchScope::Asked,
    },
    // `mmap`: test r9d, 4095; jne; ...; cmp rax, -4096; ja.
    Pattern {
        before: &[0x41, 0xf7, 0xc1, 0xff, 0x0f, 0, 0, 0x75, 0x14],
        replaced: numbered(9),
        after: &[0x48, 0x3d, 0x00, 0xf0, 0xff, 0xff, 0x77],
        entry: |launcher| launcher.map,
        scope: SearchScope::Mapped,
    },
];

impl Pattern {
    /// Whether the pattern is in `text`, with its system call at `call`.
    fn is_at(&self, text: &[u8], call: usize) -> bool {
        let start = (call + SYSCALL.len()).checked_sub(self.before.len() + REPLACED);
        start
            .and_then(|start| text[start..].strip_prefix(self.before))
            .and_then(|rest| rest.strip_prefix(&self.replaced))
            .is_some_and(|rest| rest.starts_with(self.after))
    }

    /// The site for a pattern that begins at `offset` of its file.
    fn site(&self, offset: u64) -> Site {
        let [a, b, c, d] = (launcher::address(self.entry) as u32).to_le_bytes();
        let [q, r, s, t, u, v, w] = self.replaced;
        let next = self.after[0];
        Site {
            offset,
            old: u64::from_le_bytes([q, r, s, t, u, v, w, next]),
            new: u64::from_le_bytes([0xb9, a, b, c, d, 0xff, 0xd1, next]),
        }
    }
}

/// The sites in `text`, which begins at `offset` of its file.
fn find(text: &[u8], offset: u64, looked_for: &[SearchScope]) -> Vec<Site> {
    let calls = memchr::memmem::find_iter(text, &SYSCALL);
    let site = |call| {
        let pattern = PATTERNS
            .iter()
            .find(|pattern| looked_for.contains(&pattern.scope) && pattern.is_at(text, call))?;
        Some(pattern.site(offset + (call + SYSCALL.len() - REPLACED) as u64))
    };
    calls.filter_map(site).take(SITES_MAX).collect()
}

/// Searches one segment of a file, a part at a time.
fn find_in_file(
    file: &OwnedFd,
    segment: &Segment,
    looked_for: &[SearchScope],
    sites: &mut Vec<Site>,
) -> Result<(), Errno> {
    let mut text = vec![0; PART_BYTES + PATTERN_BYTES_MAX];
    for part in (0..segment.in_file).step_by(PART_BYTES) {
        let bytes = text.len().min((segment.in_file - part) as usize);
        let offset = segment.offset + part;
        let read = rustix::io::pread(file, &mut text[..bytes], offset).map_err(host)?;
        // A site in the overlap of two parts is found twice.
        let behind = sites.last().map_or(0, |last| last.offset + 1);
        let found = find(&text[..read], offset, looked_for);
        sites.extend(found.into_iter().filter(|site| site.offset >= behind));
    }
    Ok(())
}

/// How much of a file is searched at a time.
const PART_BYTES: usize = 64 << 10;
/// The longest pattern. Two parts overlap by this much.
const PATTERN_BYTES_MAX: usize = 32;
/// Most sites of a file.
const SITES_MAX: usize = 64;
/// Files with more text than this are not searched.
const TEXT_BYTES_MAX: u64 = 4 << 20;
/// Most files whose sites are remembered.
const FILES_MAX: usize = 256;

/// The identity and state of a file: device, number, size, last change.
type Identity = (u64, u64, i64, i64, u64);

fn identity(status: &Stat) -> Identity {
    (status.st_dev, status.st_ino, status.st_size, status.st_ctime, status.st_ctime_nsec)
}

/// The sites of files.
#[derive(Debug)]
pub(crate) struct Sites {
    /// What is searched for in the C library, and in files that the launcher maps.
    library: Vec<SearchScope>,
    mapped: Vec<SearchScope>,
    known: Mutex<HashMap<Identity, Arc<[Site]>>>,
}

impl Sites {
    /// With `traced`, only sites whose entries call the host. Without the entries that know the
    /// user, if the user can change.
    pub(crate) fn new(traced: bool) -> Self {
        let library = match (traced, launcher::owner()) {
            (true, _) => vec![SearchScope::Asked],
            (false, None) => vec![SearchScope::Asked, SearchScope::Answered],
            (false, Some(_)) => vec![SearchScope::Asked, SearchScope::Answered, SearchScope::Owner],
        };
        let mapped = [library.as_slice(), &[SearchScope::Mapped]].concat();
        Self { library, mapped, known: Mutex::default() }
    }

    /// The sites of a program or an interpreter with the headers `elf`; none if it cannot be read.
    /// Programs with an interpreter use the C library's calls.
    pub(crate) fn of_program(&self, file: &OwnedFd, elf: &Elf) -> Arc<[Site]> {
        let sites = || {
            let status = rustix::fs::fstat(file).map_err(host)?;
            self.of(file, &status, &self.mapped, || Ok(Some(elf.clone())))
        };
        if elf.interpreter.is_some() { Arc::default() } else { sites().unwrap_or_default() }
    }

    /// The sites of the C library.
    pub(crate) fn of_library(&self, file: &OwnedFd) -> Result<Arc<[Site]>, Errno> {
        let status = rustix::fs::fstat(file).map_err(host)?;
        self.of(file, &status, &self.library, || {
            let mut start = [0; HEADERS_BYTES_MAX];
            let read = rustix::io::pread(file, start.as_mut_slice(), 0).map_err(host)?;
            Ok(Elf::read(&start[..read], status.st_size as u64).ok())
        })
    }

    fn of(
        &self,
        file: &OwnedFd,
        status: &Stat,
        looked_for: &[SearchScope],
        elf: impl FnOnce() -> Result<Option<Elf>, Errno>,
    ) -> Result<Arc<[Site]>, Errno> {
        let identity = identity(status);
        if let Some(sites) = self.known().get(&identity) {
            return Ok(Arc::clone(sites));
        }
        let elf = elf()?;
        let text = || {
            let segments = elf.iter().flat_map(|elf| &elf.segments);
            segments.filter(|segment| segment.flags & libc::PF_X != 0)
        };
        let mut sites = Vec::new();
        if text().map(|segment| segment.in_file).sum::<u64>() <= TEXT_BYTES_MAX {
            text().try_for_each(|segment| find_in_file(file, segment, looked_for, &mut sites))?;
        }
        sites.truncate(SITES_MAX);
        let sites: Arc<[Site]> = sites.into();
        let mut known = self.known();
        if known.len() >= FILES_MAX {
            known.clear();
        }
        known.insert(identity, Arc::clone(&sites));
        Ok(sites)
    }

    fn known(&self) -> MutexGuard<'_, HashMap<Identity, Arc<[Site]>>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether a file of this name may be the C library.
pub(crate) fn is_library(path: &[u8]) -> bool {
    let name = path.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
    name.starts_with(b"libc.so.") || name.starts_with(b"libc-2.")
}

#[cfg(test)]
mod tests;
