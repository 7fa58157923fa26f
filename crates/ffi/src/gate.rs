//! Gates: `kyocho_gate_*`.
#![expect(unsafe_code, reason = "the boundary to C")]

use core::ffi::{CStr, c_char, c_int, c_void};
use core::slice;
use core::time::Duration;
use std::ffi::OsStr;
use std::io::ErrorKind;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;

use kyocho_gate::{Call, Client, Error, Failure, INLINE_BYTES_MAX, ROOT, Server, Service};

use crate::answer::{answer, caller, count};
use crate::error::{Code, Result};
use crate::time::until;

/// Error numbers of the C library are below this bound.
const NUMBERS: u32 = 4096;

impl From<Error> for Code {
    fn from(error: Error) -> Self {
        Self(match error {
            Error::Closed => libc::EPIPE,
            Error::Refused => libc::EACCES,
            Error::Connect(kind) => match kind {
                ErrorKind::NotFound => libc::ENOENT,
                ErrorKind::ConnectionRefused => libc::ECONNREFUSED,
                ErrorKind::AddrInUse => libc::EADDRINUSE,
                ErrorKind::PermissionDenied => libc::EACCES,
                ErrorKind::InvalidInput => libc::EINVAL,
                _ => libc::EIO,
            },
            Error::TooLong { .. } => libc::EMSGSIZE,
            Error::TimedOut => libc::ETIMEDOUT,
            Error::Protocol => libc::EPROTO,
            Error::Failed(Failure::Code(code)) if (1..NUMBERS).contains(&code) => code as c_int,
            Error::Host(ErrorKind::OutOfMemory) => libc::ENOMEM,
            Error::Failed(_) => libc::EREMOTEIO,
            _ => libc::EIO,
        })
    }
}

type Serve = extern "C" fn(*mut c_void, u32, *const c_void, usize, *mut c_void) -> i64;

/// A function of C with its argument.
struct Function {
    serve: Serve,
    argument: *mut c_void,
}

// SAFETY: the header requires that several microprocesses may call the function with the argument
// concurrently.
unsafe impl Send for Function {}
// SAFETY: as above.
unsafe impl Sync for Function {}

impl Service for Function {
    fn serve(&self, call: &Call<'_>) -> core::result::Result<Vec<u8>, Failure> {
        let request = call.bytes();
        let mut reply = vec![0_u8; INLINE_BYTES_MAX];
        let (from, into) = (request.as_ptr().cast(), reply.as_mut_ptr().cast());
        let answer = (self.serve)(self.argument, call.method(), from, request.len(), into);
        match usize::try_from(answer) {
            Ok(bytes) if bytes <= INLINE_BYTES_MAX => {
                reply.truncate(bytes);
                Ok(reply)
            }
            Ok(_) => Err(Failure::ReplyTooLong),
            Err(_) => Err(Failure::Code(u32::try_from(-answer).unwrap_or(u32::MAX))),
        }
    }
}

/// The path in a string of C.
///
/// # Safety
/// `path` is null or ends with a zero byte.
unsafe fn path_at<'a>(path: *const c_char) -> Result<&'a Path> {
    if path.is_null() {
        return Err(Code::INVALID);
    }
    // SAFETY: guaranteed by the caller.
    let bytes = unsafe { CStr::from_ptr(path) }.to_bytes();
    Ok(Path::new(OsStr::from_bytes(bytes)))
}

/// Transfers ownership of an object to C.
///
/// # Safety
/// `place` is null or memory for a pointer.
unsafe fn give_to_c<T>(place: *mut *mut T, object: impl FnOnce() -> Result<T>) -> Result<()> {
    if place.is_null() {
        return Err(Code::INVALID);
    }
    let object = Box::into_raw(Box::new(object()?));
    // SAFETY: guaranteed by the caller.
    unsafe { place.write(object) };
    Ok(())
}

/// Takes ownership of an object back from C and drops it.
///
/// # Safety
/// `object` is null, or was transferred to C and is not used any more.
unsafe fn drop_from_c<T>(object: *mut T) -> c_int {
    answer(|| {
        if object.is_null() {
            return Err(Code::INVALID);
        }
        // SAFETY: guaranteed by the caller.
        drop(unsafe { Box::from_raw(object) });
        Ok(())
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn kyocho_gate_serve(
    server: *mut *mut Server,
    path: *const c_char,
    serve: Option<Serve>,
    argument: *mut c_void,
) -> c_int {
    answer(|| {
        // SAFETY: guaranteed by the caller.
        let path = unsafe { path_at(path) }?;
        let serve = serve.ok_or(Code::INVALID)?;
        caller()?;
        let service = Arc::new(Function { serve, argument });
        // SAFETY: guaranteed by the caller.
        unsafe { give_to_c(server, || Ok(Server::builder().bind(path, service)?)) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn kyocho_gate_server_destroy(server: *mut Server) -> c_int {
    // SAFETY: guaranteed by the caller.
    unsafe { drop_from_c(server) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn kyocho_gate_connect(gate: *mut *mut Client, path: *const c_char) -> c_int {
    answer(|| {
        // SAFETY: guaranteed by the caller.
        let path = unsafe { path_at(path) }?;
        caller()?;
        // SAFETY: guaranteed by the caller.
        unsafe { give_to_c(gate, || Ok(Client::connect(path)?)) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn kyocho_gate_destroy(gate: *mut Client) -> c_int {
    // SAFETY: guaranteed by the caller.
    unsafe { drop_from_c(gate) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn kyocho_gate_call(
    gate: *const Client,
    method: u32,
    request: *const c_void,
    request_bytes: usize,
    reply: *mut c_void,
    reply_bytes_max: usize,
) -> i64 {
    // SAFETY: guaranteed by the caller.
    count(|| unsafe {
        call(gate, method, (request, request_bytes), (reply, reply_bytes_max), None)
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn kyocho_gate_timedcall(
    gate: *const Client,
    method: u32,
    request: *const c_void,
    request_bytes: usize,
    reply: *mut c_void,
    reply_bytes_max: usize,
    deadline: *const libc::timespec,
) -> i64 {
    count(|| {
        // SAFETY: guaranteed by the caller.
        let limit = unsafe { until(deadline) }?;
        // SAFETY: guaranteed by the caller.
        unsafe {
            call(gate, method, (request, request_bytes), (reply, reply_bytes_max), Some(limit))
        }
    })
}

/// Calls, and copies the reply to `reply`. Returns its length.
///
/// # Safety
/// `gate` is null or was transferred to C. `request` and `reply` are null, or memory of the given
/// lengths that C may read and write.
unsafe fn call(
    gate: *const Client,
    method: u32,
    (request, request_bytes): (*const c_void, usize),
    (reply, reply_bytes_max): (*mut c_void, usize),
    limit: Option<Duration>,
) -> Result<usize> {
    // SAFETY: guaranteed by the caller.
    let gate = unsafe { gate.as_ref() }.ok_or(Code::INVALID)?;
    if request_bytes > INLINE_BYTES_MAX {
        return Err(Code(libc::EMSGSIZE));
    }
    if (request.is_null() && request_bytes > 0) || (reply.is_null() && reply_bytes_max > 0) {
        return Err(Code::INVALID);
    }
    caller()?;
    let request: &[u8] = if request_bytes == 0 {
        &[]
    } else {
        // SAFETY: not null; the caller guarantees the length.
        unsafe { slice::from_raw_parts(request.cast(), request_bytes) }
    };
    let target = gate.target(ROOT);
    let target = match limit {
        Some(limit) => target.within(limit),
        None => target,
    };
    let bytes = target.call(method, request)?;
    if bytes.len() > reply_bytes_max {
        return Err(Code(libc::EMSGSIZE));
    }
    if !bytes.is_empty() {
        // SAFETY: not null, since the reply fits; the memory belongs to C.
        unsafe { reply.cast::<u8>().copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) };
    }
    Ok(bytes.len())
}
