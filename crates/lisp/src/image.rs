//! Images: a session's world saved to a file and loaded from it. `(save-image FILE)`, `kyocho
//! --image FILE`. A world can also be copied from one session to another of the same system,
//! without a file. No other session sees that copy, so it needs no seal.
//!
//! ```text
//!   roots: environments, libraries ──> locations ──> values, code ──> more of all of them
//!          objects of the system (prelude, primitives) are written as numbers
//!          (kernel/system_objects.rs)
//!
//!   file:  magic | format | build | bytes |
//!          symbols, sources, environments, shapes of objects, locations with their values,
//!          contents of objects, aliases, data, macros, bindings, libraries |
//!          seal (seal.rs)
//! ```
//!
//! Saved: definitions, macros, libraries, records, closures with their variables, hash tables, and
//! code with its source positions. **Not saved:** threads, ports, gates, sockets, programs,
//! continuations, guardians, ephemerons, and locks and channels that a thread holds or waits for.
//! For these saving fails, with an error that names the definition that refers to one. The reason:
//! a saved object that does not work any more would fail far from the cause. Other mutexes,
//! condition variables and channels are saved, with messages sent and not received. The session's
//! own standard ports become those of the session that loads.
//!
//! Code is saved as the machine's instructions, and the machine does not check them. So a file is
//! accepted only if its seal was made with the key of the loading user (`seal.rs`), and by the same
//! build. Nevertheless all lengths are checked while the sealed content is decoded, and code is
//! verified before it can run.
//!
//! Other threads of the session may run meanwhile. Each word that they change is saved as it was
//! before or after the change.

mod program;
mod reader;
mod seal;
mod wire;
mod writer;

use crate::kernel::wait::OnThread;
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

/// Why an image cannot be saved or loaded.
#[derive(Debug)]
#[non_exhaustive]
pub(crate) enum ImageError {
    /// The host refuses access to the file.
    File(io::Error),
    /// The host refuses access to the key.
    Key(PathBuf, io::Error),
    /// The user has no folder for a key.
    NoHome,
    /// The file is not an image.
    NoImage,
    /// The image was written by another build.
    OtherBuild,
    /// The file is shorter or longer than the image.
    WrongLength { announced: u64, found: u64 },
    /// It was sealed with another user's key, or changed afterwards.
    WrongSeal,
    /// A sealed file that violates the format.
    Damaged(&'static str),
    /// A definition refers to something that cannot be saved.
    Unkept { holder: String, what: &'static str },
    /// The image would exceed the user's memory.
    TooLarge,
    /// Out of memory at the moment.
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
            Self::NoImage => f.write_str("this is not an image"),
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

/// `(save-image [FILE])`. Without a file: to where the session's world was loaded from, or where
/// its server keeps it.
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

/// Replaces a file completely or not at all.
fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let new = write_new_file(path, bytes)?;
    fs::rename(&new, path).inspect_err(|_| discard(&new))
}

/// Writes a new file beside `path` to disk. Only its user may read it.
fn write_new_file(path: &Path, bytes: &[u8]) -> io::Result<PathBuf> {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed)));
    let new = PathBuf::from(name);
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&new)?;
    let written = file.write_all(bytes).and_then(|()| file.sync_all());
    written.inspect_err(|_| discard(&new))?;
    Ok(new)
}

/// Deletes a file that is of no use any more. Errors are ignored.
fn discard(path: &Path) {
    let _ = fs::remove_file(path);
}

/// `(%load-image FILE)`: replaces the session's definitions by those of the image. Returns the hash
/// tables that use the program's own hash procedures.
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

/// A copy of a session's world, for starting another session of the system.
pub struct WorldCopy(pub(crate) std::sync::Arc<[u8]>);

impl fmt::Debug for WorldCopy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WorldCopy").field("bytes", &self.0.len()).finish()
    }
}

/// `(%copy-world text)`: creates the copy and stores it for the requester.
fn copy(machine: &mut Machine) -> Result {
    let (kernel, session) = (machine.kernel()?, std::sync::Arc::clone(&machine.thread()?.session));
    let contents = writer::contents(&kernel, &session, &machine.mutator);
    session.set_copy(Some(contents.map_err(no_copy)?.into()));
    Ok(Value::NIL)
}

/// `(%take-world)`: replaces the session's definitions by those of the copy that it was given.
/// Returns the same as `%load-image`.
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
