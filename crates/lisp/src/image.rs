//! Images: a session's world in a file, and back. `(save-image FILE)`, `kyocho --image FILE`. Without a file, from one session to another of the
//! same system: a copy, which nobody else sees and needs no seal.
//!
//! ```text
//!   roots: environments, libraries ──> locations ──> values, code ──> more of all of them
//!          what the system has (prelude, primitives) is named by number, not written: system.rs
//!
//!   file:  magic | format | build | bytes | tables: symbols, sources, environments, locations, data,
//!          objects, code, bindings, libraries | seal                                           seal.rs
//! ```
//!
//! Kept: definitions, macros, libraries, records, closures with what they hold, hash tables, code with its places for
//! reports. **Not kept:** threads, ports, gates, sockets, programs, continuations, guardians, ephemerons, and
//! locks and channels that a thread holds or waits for: the error names the definition that holds one. Other mutexes, condition variables and
//! channels are kept, with what was sent and not taken. A name for one that is silently dead would fail far from its cause. The session's own standard ports are
//! kept as what they are for whoever loads.
//!
//! Code is written as the machine's instructions, for the machine trusts them. So a file is believed only when its seal was made
//! with the key of the user who loads it (`seal.rs`), and by the same build. What is behind the seal is decoded with all
//! lengths checked nevertheless.
//!
//! Other threads of the session may run meanwhile: what they change is kept as it was before or after, each word by itself.

mod program;
mod reader;
mod seal;
mod syntax_in;
mod syntax_out;
mod system;
mod wire;
mod writer;

pub(crate) use system::SystemObjects;

use crate::thread::wait::OnThread;
use core::fmt;
use kyocho_heap::raise::{Raise, Result};
use kyocho_heap::value::Value;
use kyocho_syntax::source;
use kyocho_sys::prim::atomic::{AtomicU64, Ordering};
use kyocho_vm::machine::Machine;
use kyocho_vm::machine::access::Frame;
use kyocho_vm::machine::control::{Control, Procedure};
use std::fs::{self, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

pub(crate) const TABLE: &[Procedure] = &[
    Procedure::new("save-image", 0, Some(1), save),
    Procedure::new("%load-image", 1, Some(1), load),
    Procedure::new("%copy-world", 1, Some(1), |machine, _, _| copy(machine).map(Control::Value)),
    Procedure::new("%take-world", 0, Some(0), |machine, _, _| take(machine).map(Control::Value)),
];

/// Why there is no image, or none of use.
#[derive(Debug)]
#[non_exhaustive]
pub(crate) enum ImageError {
    /// The host refuses the file.
    File(io::Error),
    /// The host refuses the key.
    Key(PathBuf, io::Error),
    /// The user has no folder for a key.
    NoHome,
    /// The file is something else.
    NoImage,
    /// Another build wrote it.
    OtherBuild,
    /// It ends early, or goes on.
    WrongLength { announced: u64, found: u64 },
    /// Another user's key sealed it, or it was changed since.
    WrongSeal,
    /// A sealed file breaks a rule of the format.
    Damaged(&'static str),
    /// A definition holds something that cannot be kept.
    Unkept { holder: String, what: &'static str },
    /// It would be larger than its user's memory.
    TooLarge,
    /// No memory now.
    OutOfMemory,
}

impl fmt::Display for ImageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(error) => error.fmt(f),
            Self::Key(path, error) => write!(f, "the key {}: {error}", path.display()),
            Self::NoHome => {
                f.write_str("no place for the key: neither HOME nor XDG_STATE_HOME is set")
            }
            Self::NoImage => f.write_str("this is no image"),
            Self::OtherBuild => f.write_str(
                "another version of Kyocho wrote this image; load it there, or load the sources here",
            ),
            Self::WrongLength { announced, found } => {
                write!(f, "the image is {announced} bytes long, the file has {found}")
            }
            Self::WrongSeal => {
                f.write_str("the image is not this user's own, or was changed since it was saved")
            }
            Self::Damaged(what) => write!(f, "the image is damaged: {what}"),
            Self::Unkept { holder, what } => write!(
                f,
                "{holder} holds {what}, which an image cannot keep; give it another value first"
            ),
            Self::TooLarge => f.write_str("the image would be larger than this user's memory"),
            Self::OutOfMemory => f.write_str("out of memory"),
        }
    }
}

impl core::error::Error for ImageError {}

impl From<io::Error> for ImageError {
    fn from(error: io::Error) -> Self {
        Self::File(error)
    }
}

impl From<kyocho_heap::heap::OutOfMemory> for ImageError {
    fn from(_: kyocho_heap::heap::OutOfMemory) -> Self {
        Self::OutOfMemory
    }
}

impl ImageError {
    fn into_raise(self, who: &str, path: &Path) -> Raise {
        match self {
            Self::OutOfMemory => Raise::out_of_memory(),
            other => Raise::error(format!("{who}: {}: {other}", path.display()), Vec::new()),
        }
    }
}

/// `(save-image [FILE])`: without a file, where the session's world was loaded from or its server keeps it.
fn save(machine: &mut Machine, frame: Frame, count: usize) -> Result<Control> {
    const WHO: &str = "save-image";
    let session = std::sync::Arc::clone(&machine.thread()?.session);
    let path = if count > 0 {
        let path = kyocho_heap::text::to_rust(frame.get(0))
            .ok_or_else(|| Raise::wrong_type(WHO, 1, "string", frame.get(0)))?;
        kyocho_library::port::permit(&machine.mutator, WHO, &path)?;
        PathBuf::from(path)
    } else {
        session.image().ok_or_else(|| Raise::error("save-image: which file?", Vec::new()))?
    };
    let kernel = machine.kernel()?;
    let failed = |error: ImageError| error.into_raise(WHO, &path);
    let contents = writer::contents(&kernel, &session, &machine.mutator).map_err(failed)?;
    let written = machine.outside(frame, count, || {
        seal::sealed(&contents).and_then(|image| Ok(replace(&path, &image)?))
    });
    written.map_err(failed)?;
    Ok(Control::Value(Value::UNSPECIFIED))
}

/// Puts a file there as a whole or not at all.
fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let new = beside(path, bytes)?;
    fs::rename(&new, path).inspect_err(|_| discard(&new))
}

/// A new file beside `path`, whole on the disk; only its user may read it.
fn beside(path: &Path, bytes: &[u8]) -> io::Result<PathBuf> {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed)));
    let new = PathBuf::from(name);
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&new)?;
    let written = file.write_all(bytes).and_then(|()| file.sync_all());
    written.inspect_err(|_| discard(&new))?;
    Ok(new)
}

/// Takes a file away that is of no use; that it stays is none either.
fn discard(path: &Path) {
    let _ = fs::remove_file(path);
}

/// `(%load-image FILE)`: the session's names are the image's from now on; gives the hash tables with hashes of the program's own.
fn load(machine: &mut Machine, frame: Frame, count: usize) -> Result<Control> {
    const WHO: &str = "load-image";
    let path = kyocho_heap::text::to_rust(frame.get(0))
        .map(PathBuf::from)
        .ok_or_else(|| Raise::wrong_type(WHO, 1, "string", frame.get(0)))?;
    let (kernel, session) = (machine.kernel()?, std::sync::Arc::clone(&machine.thread()?.session));
    let bytes_max = kernel.heap.limits().bytes_max as u64;
    let contents = machine.outside(frame, count, || {
        let mut image = Vec::new();
        source::open_plain_file(&path)?.take(bytes_max).read_to_end(&mut image)?;
        seal::opened(image)
    });
    let tables = contents
        .and_then(|contents| reader::restore(&kernel, &session, &mut machine.mutator, &contents));
    Ok(Control::Value(tables.map_err(|error| error.into_raise(WHO, &path))?))
}

/// A copy of a session's world, for another session of the system to begin with.
pub struct WorldCopy(pub(crate) std::sync::Arc<[u8]>);

impl fmt::Debug for WorldCopy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WorldCopy").field("bytes", &self.0.len()).finish()
    }
}

/// `(%copy-world text)`: notes what an image of the session would hold, for who has it done.
fn copy(machine: &mut Machine) -> Result {
    let (kernel, session) = (machine.kernel()?, std::sync::Arc::clone(&machine.thread()?.session));
    let contents = writer::contents(&kernel, &session, &machine.mutator);
    session.set_copy(Some(contents.map_err(no_copy)?.into()));
    Ok(Value::NIL)
}

/// `(%take-world)`: the session's names are from now on those of the copy that it was given; gives what `%load-image` does.
fn take(machine: &mut Machine) -> Result {
    let (kernel, session) = (machine.kernel()?, std::sync::Arc::clone(&machine.thread()?.session));
    let contents = session.copy().ok_or_else(|| no_copy(ImageError::NoImage))?;
    let tables = reader::restore(&kernel, &session, &mut machine.mutator, &contents);
    let tables = tables.map_err(no_copy)?;
    session.set_copy(None);
    Ok(tables)
}

#[cold]
fn no_copy(error: ImageError) -> Raise {
    match error {
        ImageError::OutOfMemory => Raise::out_of_memory(),
        other => Raise::error(format!("the session cannot be copied: {other}"), Vec::new()),
    }
}

#[cfg(test)]
mod tests;
