//! Files as named by the host: names, links, folders, modes (the core of SRFI 170). Reading and
//! writing is in `ports`.

use super::Primitive;
use super::call::Call;
use super::lists::Builder;
use crate::port::{Port, file_error, permit, permit_process, waiting};
use kyocho_heap::heap::{Kind, Mutator};
use kyocho_heap::raise::Result;
use kyocho_heap::value::Value;
use kyocho_syntax::symbol::Symbol;
use kyocho_sys::descriptor::{self, Access};
use kyocho_sys::prim::atomic::{AtomicU64, Ordering};
use std::ffi::CString;
use std::fs::{self, DirBuilder, File, FileType, Metadata, OpenOptions, Permissions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, MetadataExt, OpenOptionsExt, PermissionsExt};

pub(super) const TABLE: &[Primitive] = &[
    Primitive::between("create-directory", 1, 2, create_directory),
    Primitive::exactly("delete-directory", 1, |m, a| {
        on_path(m, Call::new("delete-directory", a), |path| fs::remove_dir(path))
    }),
    Primitive::exactly("rename-file", 2, |m, a| {
        on_two_paths(m, Call::new("rename-file", a), |from, to| fs::rename(from, to))
    }),
    Primitive::exactly("create-hard-link", 2, |m, a| {
        on_two_paths(m, Call::new("create-hard-link", a), |from, to| fs::hard_link(from, to))
    }),
    Primitive::exactly("create-symlink", 2, |m, a| {
        let link = |from: &str, to: &str| std::os::unix::fs::symlink(from, to);
        on_two_paths(m, Call::new("create-symlink", a), link)
    }),
    Primitive::exactly("read-symlink", 1, |m, a| {
        let call = Call::new("read-symlink", a);
        let target = ask(m, call, |path| fs::read_link(path))?;
        Ok(m.string(&target.to_string_lossy())?)
    }),
    Primitive::exactly("real-path", 1, |m, a| {
        let call = Call::new("real-path", a);
        let path = ask(m, call, |path| fs::canonicalize(path))?;
        Ok(m.string(&path.to_string_lossy())?)
    }),
    Primitive::exactly("truncate-file", 2, truncate_file),
    Primitive::exactly("set-file-mode", 2, |m, a| {
        let call = Call::new("set-file-mode", a);
        let mode = mode(call, 1)?;
        on_path(m, call, |path| fs::set_permissions(path, Permissions::from_mode(mode)))
    }),
    Primitive::between("directory-files", 1, 2, directory_files),
    Primitive::exactly("file-status", 2, file_status),
    Primitive::exactly("current-directory", 0, |m, a| {
        permit(m, "current-directory", ".")?;
        let folder = std::env::current_dir();
        let folder = folder
            .map_err(|error| file_error(Call::new("current-directory", a).who(), ".", &error))?;
        Ok(m.string(&folder.to_string_lossy())?)
    }),
    Primitive::exactly("set-current-directory!", 1, |m, a| {
        let call = Call::new("set-current-directory!", a);
        permit_process(m, call.who(), &call.string(0)?)?;
        on_path(m, call, |path| std::env::set_current_dir(path))
    }),
    Primitive::exactly("create-temp-file", 1, create_temp_file),
    Primitive::exactly("pid", 0, |_, _| Ok(Value::fixnum(std::process::id().into()))),
];

/// The mode bits that `chmod` can set.
const MODE_MAX: i64 = 0o7777;
/// Maximum number of names that are tried for a new temporary file.
const TEMPORARY_NAMES_MAX: u32 = 10_000;

/// Runs a host operation on the path in argument 0.
fn ask<T>(m: &mut Mutator, call: Call<'_>, act: impl FnOnce(&str) -> io::Result<T>) -> Result<T> {
    let path = call.string(0)?;
    permit(m, call.who(), &path)?;
    waiting(m, |_| act(&path)).map_err(|error| file_error(call.who(), &path, &error))
}

fn on_path(m: &mut Mutator, call: Call<'_>, act: impl FnOnce(&str) -> io::Result<()>) -> Result {
    ask(m, call, act).map(|()| Value::UNSPECIFIED)
}

fn on_two_paths(
    m: &mut Mutator,
    call: Call<'_>,
    act: impl FnOnce(&str, &str) -> io::Result<()>,
) -> Result {
    let second = call.string(1)?;
    on_path(m, call, |first| act(first, &second))
}

pub(super) fn mode(call: Call<'_>, i: usize) -> Result<u32> {
    let mode = call.fixnum(i)?;
    if !(0..=MODE_MAX).contains(&mode) {
        return Err(call.outside(i, format!("0 <= mode <= #o{MODE_MAX:o}")));
    }
    Ok(mode as u32)
}

/// `(create-directory path [mode])`.
fn create_directory(m: &mut Mutator, arguments: &[Value]) -> Result {
    let call = Call::new("create-directory", arguments);
    let mode = if call.optional(1).is_some() { mode(call, 1)? } else { 0o775 };
    on_path(m, call, |path| DirBuilder::new().mode(mode).create(path))
}

fn truncate_file(m: &mut Mutator, arguments: &[Value]) -> Result {
    let call = Call::new("truncate-file", arguments);
    let bytes = u64::try_from(call.fixnum(1)?).map_err(|_| call.outside(1, "0 <= length"))?;
    if let Some((name, file)) = file_of_port(m, call)? {
        let cut = waiting(m, |_| file.set_len(bytes));
        cut.map_err(|error| file_error(call.who(), &name, &error))?;
        return Ok(Value::UNSPECIFIED);
    }
    on_path(m, call, |path| {
        // A named pipe without a reader is refused, because opening it would block.
        let file = descriptor::open(&CString::new(path)?, Access::Change)?;
        File::from(file).set_len(bytes)
    })
}

/// `(directory-files path [dot-files?])`: names in alphabetical order, without `.` and `..`.
fn directory_files(m: &mut Mutator, arguments: &[Value]) -> Result {
    let call = Call::new("directory-files", arguments);
    let with_dots = call.optional(1).is_some_and(Value::is_true);
    let mut names = ask(m, call, |path| {
        let name = |entry: io::Result<fs::DirEntry>| {
            entry.map(|entry| entry.file_name().to_string_lossy().into_owned())
        };
        fs::read_dir(path)?.map(name).collect::<io::Result<Vec<String>>>()
    })?;
    names.retain(|name| with_dots || !name.starts_with('.'));
    names.sort_unstable();
    let mut list = Builder::new();
    for name in names {
        let name = m.string(&name)?;
        list.push(m, name)?;
    }
    Ok(list.finish())
}

/// The file of the port in argument 0, and its name; `None` if the argument is not a port.
pub(super) fn file_of_port(m: &mut Mutator, call: Call<'_>) -> Result<Option<(String, File)>> {
    let Some(port) = call.value(0).as_foreign::<Port>() else { return Ok(None) };
    permit(m, call.who(), port.name())?;
    let file = port.file(m)?.ok_or_else(|| call.wrong(0, "path, or open port of a file"))?;
    Ok(Some((port.name().to_owned(), file.into())))
}

/// `(file-status path follow-links?)`: kind, device, inode, mode, links, user, group, number of the
/// special device, size, block size, blocks; times of access, modification and change in seconds.
fn file_status(m: &mut Mutator, arguments: &[Value]) -> Result {
    let call = Call::new("file-status", arguments);
    let follow = call.value(1).is_true();
    let data = match file_of_port(m, call)? {
        Some((name, file)) => waiting(m, |_| file.metadata())
            .map_err(|error| file_error(call.who(), &name, &error))?,
        None => ask(
            m,
            call,
            |path| {
                if follow { fs::metadata(path) } else { fs::symlink_metadata(path) }
            },
        )?,
    };
    let mut fields = vec![Value::symbol(Symbol::intern(kind_name(data.file_type())))];
    for number in numbers(&data) {
        fields.push(m.integer(&number.into())?);
    }
    for (seconds, nanoseconds) in [
        (data.atime(), data.atime_nsec()),
        (data.mtime(), data.mtime_nsec()),
        (data.ctime(), data.ctime_nsec()),
    ] {
        fields.push(m.flonum(seconds as f64 + nanoseconds as f64 / 1e9)?);
    }
    Ok(m.object_of(Kind::Vector, &fields)?)
}

fn numbers(data: &Metadata) -> [u64; 10] {
    [
        data.dev(),
        data.ino(),
        u64::from(data.mode()),
        data.nlink(),
        u64::from(data.uid()),
        u64::from(data.gid()),
        data.rdev(),
        data.size(),
        data.blksize(),
        data.blocks(),
    ]
}

fn kind_name(kind: FileType) -> &'static str {
    if kind.is_dir() {
        "directory"
    } else if kind.is_symlink() {
        "symlink"
    } else if kind.is_fifo() {
        "fifo"
    } else if kind.is_socket() {
        "socket"
    } else if kind.is_block_device() || kind.is_char_device() {
        "device"
    } else {
        "regular"
    }
}

static TEMPORARY: AtomicU64 = AtomicU64::new(0);

/// `(create-temp-file prefix)`: the path of a new, empty file that only this user may read.
fn create_temp_file(m: &mut Mutator, arguments: &[Value]) -> Result {
    let call = Call::new("create-temp-file", arguments);
    let process = std::process::id();
    let path = ask(m, call, |prefix| {
        for _ in 0..TEMPORARY_NAMES_MAX {
            let number = TEMPORARY.fetch_add(1, Ordering::Relaxed);
            let path = format!("{prefix}{process}.{number}");
            match OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path) {
                Ok(_) => return Ok(path),
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
        Err(ErrorKind::AlreadyExists.into())
    })?;
    Ok(m.string(&path)?)
}
