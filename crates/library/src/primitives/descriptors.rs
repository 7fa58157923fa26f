//! Files as open descriptors, fifos, owners and times: the parts of SRFI 170 other than names and
//! folders.

use super::Primitive;
use super::call::Call;
use super::files::{file_of_port, mode};
use super::ports::{Opened, open_by, port_at, store};
use crate::port::{
    Content, Flush, Input, Output, Port, count, file_error, permit, permit_process, twice, waiting,
};
use kyocho_heap::account::Held;
use kyocho_heap::heap::Mutator;
use kyocho_heap::raise::Result;
use kyocho_heap::value::Value;
use kyocho_syntax::symbol::Symbol;
use kyocho_sys::error::Errno;
use kyocho_vm::machine::condition::errno_of;
use rustix::fs::{self, AtFlags, CWD, FileType, Mode, OFlags, Timespec, Timestamps};
use rustix::process::{self, Gid, PidfdFlags, PidfdGetfdFlags, Uid};
use std::io;
use std::os::fd::OwnedFd;

pub(super) const TABLE: &[Primitive] = &[
    Primitive::exactly("posix-error-name", 1, |_, a| {
        let name = |number| format!("{:?}", nix::errno::Errno::from_raw(number));
        let name = errno_of(a[0]).map(name);
        Ok(name.map_or(Value::FALSE, |name| Value::symbol(Symbol::intern(&name))))
    }),
    Primitive::between("open-file", 3, 5, open_file),
    Primitive::between("fd->port", 2, 3, port_of_descriptor),
    Primitive::exactly("terminal?", 1, |m, a| {
        let port = port_at(Call::new("terminal?", a), 0, "port")?;
        Ok(Value::boolean(port.file(m)?.is_some_and(|file| rustix::termios::isatty(&file))))
    }),
    Primitive::between("create-fifo", 1, 2, create_fifo),
    Primitive::exactly("set-file-owner", 3, set_owner),
    Primitive::between("set-file-times", 1, 3, set_times),
    Primitive::exactly("file-space", 1, space),
];

/// The flags of `open-file`, which programs add up.
const FLAGS: [(i64, OFlags); 5] = [
    (1, OFlags::APPEND),
    (2, OFlags::CREATE),
    (4, OFlags::EXCL),
    (8, OFlags::NOFOLLOW),
    (16, OFlags::TRUNC),
];
const FLAGS_MAX: i64 = 31;

/// The content and the directions of a port.
#[derive(Clone, Copy)]
struct PortType {
    content: Content,
    way: Way,
}

#[derive(Clone, Copy)]
enum Way {
    Input,
    Output,
    Both,
}

fn port_type(call: Call<'_>, i: usize) -> Result<PortType> {
    let (content, way) = match call.symbol(i)?.name() {
        "binary-input" => (Content::Binary, Way::Input),
        "textual-input" => (Content::Textual, Way::Input),
        "binary-output" => (Content::Binary, Way::Output),
        "textual-output" => (Content::Textual, Way::Output),
        "binary-input/output" => (Content::Binary, Way::Both),
        _ => {
            let types = "binary or textual, input or output, or binary-input/output";
            return Err(call.outside(i, types));
        }
    };
    Ok(PortType { content, way })
}

/// When an output port is flushed.
fn buffer_mode(call: Call<'_>, i: usize) -> Result<Flush> {
    if call.optional(i).is_none() {
        return Ok(Flush::WhenFull);
    }
    match call.symbol(i)?.name() {
        "none" => Ok(Flush::EachCall),
        "line" => Ok(Flush::EachLine),
        "block" => Ok(Flush::WhenFull),
        _ => Err(call.outside(i, "buffer-none, buffer-line or buffer-block")),
    }
}

/// A port's file and its count among the user's open ports; twice if the port reads and writes.
type Ends = ((OwnedFd, Option<Held>), Option<(OwnedFd, Option<Held>)>);

fn ends(
    m: &mut Mutator,
    call: Call<'_>,
    path: &str,
    (file, held): (OwnedFd, Option<Held>),
    way: Way,
) -> Result<Ends> {
    let Way::Both = way else { return Ok(((file, held), None)) };
    let second_held = count(m, call.who())?;
    let twice = twice(file).map_err(|error| file_error(call.who(), path, &error))?;
    Ok(((twice.0, held), Some((twice.1, second_held))))
}

fn port(path: String, ((file, held), second): Ends, port_type: PortType, flush: Flush) -> Port {
    let input = |file, held| Input::of_file(file).counted(held);
    let output = |file, held| Output::of_file(file, flush).counted(held);
    match (second, port_type.way) {
        (Some((again, held_again)), _) => {
            let ends = (input(file, held), output(again, held_again));
            Port::of_both(path, port_type.content, ends.0, ends.1)
        }
        (None, Way::Input) => Port::of_input(path, port_type.content, input(file, held)),
        (None, _) => Port::of_output(path, port_type.content, output(file, held)),
    }
}

/// `(open-file path type flags [mode [buffering]])`.
fn open_file(m: &mut Mutator, arguments: &[Value]) -> Result {
    let call = Call::new("open-file", arguments);
    let port_type = port_type(call, 1)?;
    let bits = call.fixnum(2)?;
    if !(0..=FLAGS_MAX).contains(&bits) {
        return Err(call.outside(2, "a sum of open/append, open/create, open/exclusive, ..."));
    }
    let mut flags =
        FLAGS.iter().filter(|(bit, _)| bits & bit != 0).map(|&(_, flag)| flag).collect();
    flags |= match port_type.way {
        Way::Input => OFlags::RDONLY,
        Way::Output => OFlags::WRONLY,
        Way::Both => OFlags::RDWR,
    };
    flags |= OFlags::CLOEXEC | OFlags::NOCTTY;
    let mode = if call.optional(3).is_some() { mode(call, 3)? } else { 0o666 };
    let flush = buffer_mode(call, 4)?;
    let opened = open_by(m, call, |name| {
        let opened = fs::open(name, flags, Mode::from_raw_mode(mode));
        opened.map_err(|error| Errno::new(error.raw_os_error()))
    })?;
    let Opened { path, file, held, place } = opened;
    let ends = ends(m, call, &path, (file, held), port_type.way)?;
    Ok(m.complete_outside(place, port(path, ends, port_type, flush)))
}

/// `(fd->port number type [buffering])`: a port over a new descriptor of the process's open file
/// with this number.
fn port_of_descriptor(m: &mut Mutator, arguments: &[Value]) -> Result {
    let call = Call::new("fd->port", arguments);
    let number = i32::try_from(call.fixnum(0)?).ok().filter(|number| *number >= 0);
    let number = number.ok_or_else(|| call.outside(0, "0 <= descriptor"))?;
    let (port_type, flush) = (port_type(call, 1)?, buffer_mode(call, 2)?);
    let path = format!("descriptor {number}");
    permit_process(m, call.who(), &path)?;
    let held = count(m, call.who())?;
    let file = second_descriptor(number);
    let file = file.map_err(|error| file_error(call.who(), &path, &error.into()))?;
    let ends = ends(m, call, &path, (file, held), port_type.way)?;
    store(m, port(path, ends, port_type, flush))
}

/// A new descriptor of the process's open file with this number. It is requested as if the file
/// belonged to another process, so the number need not be valid.
fn second_descriptor(number: i32) -> rustix::io::Result<OwnedFd> {
    let this = process::pidfd_open(process::getpid(), PidfdFlags::empty())?;
    process::pidfd_getfd(this, number, PidfdGetfdFlags::empty())
}

/// Makes the host change the file that argument 0 names.
fn change(
    m: &mut Mutator,
    call: Call<'_>,
    act: impl FnOnce(&str) -> rustix::io::Result<()>,
) -> Result {
    let path = call.string(0)?;
    permit(m, call.who(), &path)?;
    let done = waiting(m, |_| act(&path));
    done.map_err(|error| file_error(call.who(), &path, &error.into()))?;
    Ok(Value::UNSPECIFIED)
}

/// `(create-fifo path [mode])`.
fn create_fifo(m: &mut Mutator, arguments: &[Value]) -> Result {
    let call = Call::new("create-fifo", arguments);
    let mode = if call.optional(1).is_some() { mode(call, 1)? } else { 0o664 };
    change(m, call, |path| fs::mknodat(CWD, path, FileType::Fifo, Mode::from_raw_mode(mode), 0))
}

/// The number of a user or a group; `None` if it stays unchanged.
fn owner(call: Call<'_>, i: usize) -> Result<Option<u32>> {
    if call.value(i) == Value::FALSE {
        return Ok(None);
    }
    // The highest number means "unchanged" to the host.
    let number = u32::try_from(call.fixnum(i)?).ok().filter(|&number| number != u32::MAX);
    number.map(Some).ok_or_else(|| call.outside(i, "0 <= number < 2^32 - 1"))
}

/// `(set-file-owner path uid gid)`; `#f` leaves one as it is.
fn set_owner(m: &mut Mutator, arguments: &[Value]) -> Result {
    let call = Call::new("set-file-owner", arguments);
    let (uid, gid) = (owner(call, 1)?, owner(call, 2)?);
    change(m, call, |path| fs::chown(path, uid.map(Uid::from_raw), gid.map(Gid::from_raw)))
}

/// A time in seconds, `now`, or `#f` if it stays unchanged.
fn time(call: Call<'_>, i: usize) -> Result<Timespec> {
    let value = call.value(i);
    if value == Value::FALSE {
        return Ok(Timespec { tv_sec: 0, tv_nsec: fs::UTIME_OMIT });
    }
    if value.as_symbol().is_some_and(|symbol| symbol.name() == "now") {
        return Ok(Timespec { tv_sec: 0, tv_nsec: fs::UTIME_NOW });
    }
    let seconds = value.as_fixnum().map(|n| n as f64).or_else(|| value.as_flonum());
    let seconds = seconds.ok_or_else(|| call.wrong(i, "time in seconds"))?;
    let whole = seconds.floor();
    if !(i64::MIN as f64..i64::MAX as f64).contains(&whole) {
        return Err(call.outside(i, "what the host has a time for"));
    }
    Ok(Timespec { tv_sec: whole as i64, tv_nsec: ((seconds - whole) * 1e9) as i64 })
}

/// `(set-file-times path [access modification])`.
fn set_times(m: &mut Mutator, arguments: &[Value]) -> Result {
    let call = Call::new("set-file-times", arguments);
    if call.count() == 2 {
        return Err(call.wrong(1, "time that has another one behind it"));
    }
    let now = Timespec { tv_sec: 0, tv_nsec: fs::UTIME_NOW };
    let mut times = Timestamps { last_access: now, last_modification: now };
    if call.count() == 3 {
        times = Timestamps { last_access: time(call, 1)?, last_modification: time(call, 2)? };
    }
    change(m, call, |path| fs::utimensat(CWD, path, &times, AtFlags::empty()))
}

/// `(file-space path-or-port)`: bytes that are available there to the user that runs the process.
fn space(m: &mut Mutator, arguments: &[Value]) -> Result {
    let call = Call::new("file-space", arguments);
    let (path, asked) = match file_of_port(m, call)? {
        Some((name, file)) => (name, waiting(m, |_| fs::fstatvfs(&file))),
        None => {
            let path = call.string(0)?;
            permit(m, call.who(), &path)?;
            let asked = waiting(m, |_| fs::statvfs(path.as_str()));
            (path, asked)
        }
    };
    let about = asked.map_err(|error| file_error(call.who(), &path, &io::Error::from(error)))?;
    Ok(m.integer(&(u128::from(about.f_bavail) * u128::from(about.f_frsize)).into())?)
}
