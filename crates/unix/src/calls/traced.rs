//! Calls in the output of `--trace`.

use crate::server::{Answer, Request};
use crate::state::trace::{AnsweredBy, Trace};
use kyocho_sys::error::Errno;

impl Request<'_> {
    /// Shows the call with the answer that it is about to get.
    pub(crate) fn show(&self, trace: &Trace, by: AnsweredBy, answer: &Result<Answer, Errno>) {
        let result = match answer {
            Ok(Answer::Value(value)) => format!(" = {value}"),
            Ok(Answer::Descriptor(..)) => " = a descriptor".to_owned(),
            Ok(Answer::LetThrough | Answer::Given) => String::new(),
            Err(errno) => format!(" = {errno}"),
        };
        let asked = &self.asked;
        trace.line(asked.thread, by, asked.number, &format!("({}){result}", arguments(self)));
    }
}

/// The argument words, with paths as text.
fn arguments(request: &Request<'_>) -> String {
    const PATH_BYTES_MAX: usize = 128;
    let path = match i64::from(request.asked.number) {
        libc::SYS_open
        | libc::SYS_stat
        | libc::SYS_lstat
        | libc::SYS_access
        | libc::SYS_execve
        | libc::SYS_chdir
        | libc::SYS_mkdir
        | libc::SYS_rmdir
        | libc::SYS_unlink
        | libc::SYS_rename
        | libc::SYS_readlink => Some(0),
        libc::SYS_openat
        | libc::SYS_newfstatat
        | libc::SYS_statx
        | libc::SYS_faccessat
        | libc::SYS_faccessat2
        | libc::SYS_unlinkat
        | libc::SYS_mkdirat
        | libc::SYS_readlinkat => Some(1),
        _ => None,
    };
    let word = |index: usize| match path {
        Some(place) if place == index => {
            request.client.string(request.word(index), PATH_BYTES_MAX).map_or_else(
                |_| "?".to_owned(),
                |text| format!("{:?}", String::from_utf8_lossy(&text)),
            )
        }
        _ => format!("{:#x}", request.word(index)),
    };
    (0..4).map(word).collect::<Vec<_>>().join(", ")
}
