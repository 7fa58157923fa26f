//! Gates: `kyocho_gate_*`.
#![expect(unsafe_code, reason = "the border to C")]

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

/// Error numbers of the C library are below this.
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

/// A function of C, and what it is called with.
struct Function {
    serve: Serve,
    argument: *mut c_void,
}

// SAFETY: the header asks that the function may be called with the argument by several microprocesses at a time.
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

/// The path of C.
///
/// # Safety
/// `path` is null or ends with a zero byte.
unsafe fn path_at<'a>(path: *const c_char) -> Result<&'a Path> {
    if path.is_null() {
        return Err(Code::INVALID);
    }
    // SAFETY: the caller's promise.
    let bytes = unsafe { CStr::from_ptr(path) }.to_bytes();
    Ok(Path::new(OsStr::from_bytes(bytes)))
}

/// Hands an object to C.
///
/// # Safety
/// `place` is null or a place for a pointer.
unsafe fn hand_over<T>(place: *mut *mut T, object: impl FnOnce() -> Result<T>) -> Result<()> {
    if place.is_null() {
        return Err(Code::INVALID);
    }
    let object = Box::into_raw(Box::new(object()?));
    // SAFETY: the caller's promise.
    unsafe { place.write(object) };
    Ok(())
}

/// Takes an object back from C, and drops it.
///
/// # Safety
/// `object` is null or was handed over, and nobody uses it any more.
unsafe fn take_back<T>(object: *mut T) -> c_int {
    answer(|| {
        if object.is_null() {
            return Err(Code::INVALID);
        }
        // SAFETY: the caller's promise.
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
        // SAFETY: the caller's promise.
        let path = unsafe { path_at(path) }?;
        let serve = serve.ok_or(Code::INVALID)?;
        caller()?;
        let service = Arc::new(Function { serve, argument });
        // SAFETY: the caller's promise.
        unsafe { hand_over(server, || Ok(Server::builder().bind(path, service)?)) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn kyocho_gate_server_destroy(server: *mut Server) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { take_back(server) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn kyocho_gate_connect(gate: *mut *mut Client, path: *const c_char) -> c_int {
    answer(|| {
        // SAFETY: the caller's promise.
        let path = unsafe { path_at(path) }?;
        caller()?;
        // SAFETY: the caller's promise.
        unsafe { hand_over(gate, || Ok(Client::connect(path)?)) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn kyocho_gate_destroy(gate: *mut Client) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { take_back(gate) }
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
    // SAFETY: the caller's promise.
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
        // SAFETY: the caller's promise.
        let limit = unsafe { until(deadline) }?;
        // SAFETY: the caller's promise.
        unsafe {
            call(gate, method, (request, request_bytes), (reply, reply_bytes_max), Some(limit))
        }
    })
}

/// Calls, and copies the reply to where C wants it; its length.
///
/// # Safety
/// `gate` is null or was handed over; `request` and `reply` are null, or so many bytes that C may read and write.
unsafe fn call(
    gate: *const Client,
    method: u32,
    (request, request_bytes): (*const c_void, usize),
    (reply, reply_bytes_max): (*mut c_void, usize),
    limit: Option<Duration>,
) -> Result<usize> {
    // SAFETY: the caller's promise.
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
        // SAFETY: not null, and as long as C says.
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
        // SAFETY: not null, since that much fits, and it is C's own memory.
        unsafe { reply.cast::<u8>().copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) };
    }
    Ok(bytes.len())
}
