//! The process as the host sees it (its user, file mode mask, niceness), and the host's users and
//! groups (SRFI 170).

use super::Primitive;
use super::call::Call;
use super::lists::Builder;
use crate::port::{file_error, permit, permit_process, waiting};
use kyocho_heap::heap::{Kind, Mutator};
use kyocho_heap::raise::Result;
use kyocho_heap::value::Value;
use nix::unistd::{Group, User};
use rustix::fs::Mode;
use rustix::process::{self, Pid};
use std::{fs, io};

pub(super) const TABLE: &[Primitive] = &[
    Primitive::exactly("umask", 0, umask),
    Primitive::exactly("set-umask!", 1, set_umask),
    Primitive::between("nice", 0, 1, nice),
    Primitive::exactly("user-uid", 0, |_, _| Ok(number(process::getuid().as_raw()))),
    Primitive::exactly("user-gid", 0, |_, _| Ok(number(process::getgid().as_raw()))),
    Primitive::exactly("user-effective-uid", 0, |_, _| Ok(number(process::geteuid().as_raw()))),
    Primitive::exactly("user-effective-gid", 0, |_, _| Ok(number(process::getegid().as_raw()))),
    Primitive::exactly("user-supplementary-gids", 0, groups),
    Primitive::exactly("user-entry", 1, user_entry),
    Primitive::exactly("group-entry", 1, group_entry),
];

/// The subject of errors about changes.
const PROCESS: &str = "the process";
const UMASK_MAX: i64 = 0o777;
const NICE_MIN: i64 = -20;
const NICE_MAX: i64 = 19;

fn number(n: u32) -> Value {
    Value::fixnum(n.into())
}

/// The mask is read from `/proc`: the system call `umask` returns it only by changing it, for all
/// threads.
fn umask(m: &mut Mutator, arguments: &[Value]) -> Result {
    let call = Call::new("umask", arguments);
    permit(m, call.who(), PROCESS)?;
    let status = fs::read_to_string("/proc/self/status");
    let status = status.map_err(|error| file_error(call.who(), PROCESS, &error))?;
    let mask = status.lines().find_map(|line| line.strip_prefix("Umask:"));
    let mask = mask.and_then(|mask| i64::from_str_radix(mask.trim(), 8).ok());
    let absent = || file_error(call.who(), PROCESS, &io::ErrorKind::Unsupported.into());
    mask.map(Value::fixnum).ok_or_else(absent)
}

fn set_umask(m: &mut Mutator, arguments: &[Value]) -> Result {
    let call = Call::new("set-umask!", arguments);
    let mask = call.fixnum(0)?;
    if !(0..=UMASK_MAX).contains(&mask) {
        return Err(call.outside(0, format!("0 <= mask <= #o{UMASK_MAX:o}")));
    }
    permit_process(m, call.who(), PROCESS)?;
    process::umask(Mode::from_raw_mode(mask as u32));
    Ok(Value::UNSPECIFIED)
}

/// `(nice [delta])`: the new niceness. On Linux each kernel thread has its own; all are set alike.
fn nice(m: &mut Mutator, arguments: &[Value]) -> Result {
    let call = Call::new("nice", arguments);
    let delta = if call.optional(0).is_some() { call.fixnum(0)? } else { 1 };
    permit_process(m, call.who(), PROCESS)?;
    let refused = |error: io::Error| file_error(call.who(), PROCESS, &error);
    let now = process::getpriority_process(None).map_err(|error| refused(error.into()))?;
    let new = i64::from(now).saturating_add(delta).clamp(NICE_MIN, NICE_MAX);
    for entry in fs::read_dir("/proc/self/task").map_err(refused)? {
        let name = entry.map_err(refused)?.file_name();
        let thread = name.to_str().and_then(|name| name.parse().ok()).and_then(Pid::from_raw);
        match process::setpriority_process(thread, new as i32) {
            // The thread has ended meanwhile.
            Ok(()) | Err(rustix::io::Errno::SRCH) => {}
            Err(error) => return Err(refused(error.into())),
        }
    }
    Ok(Value::fixnum(new))
}

fn groups(m: &mut Mutator, arguments: &[Value]) -> Result {
    let who = Call::new("user-supplementary-gids", arguments).who();
    let groups = process::getgroups().map_err(|error| file_error(who, PROCESS, &error.into()))?;
    let mut list = Builder::new();
    for group in groups {
        list.push(m, number(group.as_raw()))?;
    }
    Ok(list.finish())
}

/// The entry of the host's user database for the number or name in argument 0. The look-up may use
/// the network, so it is outside Lisp.
fn entry<T>(
    m: &mut Mutator,
    call: Call<'_>,
    by_number: fn(u32) -> nix::Result<Option<T>>,
    by_name: fn(&str) -> nix::Result<Option<T>>,
) -> Result<Option<T>> {
    permit(m, call.who(), "the data base of users")?;
    let found = match call.value(0).as_fixnum() {
        Some(number) => {
            let number =
                u32::try_from(number).map_err(|_| call.outside(0, "0 <= number < 2^32"))?;
            waiting(m, |_| by_number(number))
        }
        None => {
            let name = call.string(0)?;
            waiting(m, |_| by_name(&name))
        }
    };
    found.map_err(|error| file_error(call.who(), "the data base of users", &error.into()))
}

/// `(user-entry uid-or-name)`: name, uid, gid, home folder, shell, comment; `#f` if there is no
/// such user.
fn user_entry(m: &mut Mutator, arguments: &[Value]) -> Result {
    let call = Call::new("user-entry", arguments);
    let found = entry(m, call, |uid| User::from_uid(uid.into()), User::from_name)?;
    let Some(user) = found else { return Ok(Value::FALSE) };
    let fields = [
        m.string(&user.name)?,
        number(user.uid.as_raw()),
        number(user.gid.as_raw()),
        m.string(&user.dir.to_string_lossy())?,
        m.string(&user.shell.to_string_lossy())?,
        m.string(&user.gecos.to_string_lossy())?,
    ];
    Ok(m.object_of(Kind::Vector, &fields)?)
}

/// `(group-entry gid-or-name)`: name and gid; `#f` if there is no such group.
fn group_entry(m: &mut Mutator, arguments: &[Value]) -> Result {
    let call = Call::new("group-entry", arguments);
    let found = entry(m, call, |gid| Group::from_gid(gid.into()), Group::from_name)?;
    let Some(group) = found else { return Ok(Value::FALSE) };
    let fields = [m.string(&group.name)?, number(group.gid.as_raw())];
    Ok(m.object_of(Kind::Vector, &fields)?)
}
