//! What `--trace` shows: each call, whether the host alone did it, and how many there were.

use crate::names;
use crate::server::{Answer, Request};
use kyocho_sys::error::Errno;
use std::collections::BTreeMap;
use std::io::Write;
use std::sync::{Mutex, PoisonError};

/// Who answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum By {
    Local,
    Server,
}

/// The counts so far.
#[derive(Debug, Default)]
pub(crate) struct Trace {
    counts: Mutex<BTreeMap<(By, u32), u64>>,
}

impl Trace {
    /// Shows a call that is about to be answered so.
    pub(crate) fn show(&self, request: &Request<'_>, by: By, answer: &Result<Answer, Errno>) {
        let asked = &request.asked;
        let name = names::of(asked.number).map_or_else(|| asked.number.to_string(), str::to_owned);
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        *counts.entry((by, asked.number)).or_default() += 1;
        let result = match answer {
            Ok(Answer::Value(value)) => format!(" = {value}"),
            Ok(Answer::Descriptor(..)) => " = a descriptor".to_owned(),
            Ok(Answer::LetThrough | Answer::Given) => String::new(),
            Err(errno) => format!(" = {errno}"),
        };
        let mark = match by {
            By::Local => "local",
            By::Server => "server",
        };
        // One write a line. Standard error that is closed leaves nobody to tell.
        let line = format!("{} [{mark}] {name}({}){result}\n", asked.thread, arguments(request));
        let _ = std::io::stderr().write_all(line.as_bytes());
    }

    /// The summary.
    pub(crate) fn summary(&self) -> String {
        let counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        let mut rows: Vec<_> = counts.iter().collect();
        rows.sort_by_key(|(_, count)| core::cmp::Reverse(**count));
        let mut text = String::from("    calls  by      name\n");
        for ((by, number), count) in rows {
            let by = if *by == By::Local { "local " } else { "server" };
            let name = names::of(*number).unwrap_or("?");
            text.push_str(&format!("{count:9}  {by}  {name}\n"));
        }
        text
    }
}

/// The argument words; paths as text.
fn arguments(request: &Request<'_>) -> String {
    const SHOWN_BYTES_MAX: usize = 128;
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
            request.client.string(request.word(index), SHOWN_BYTES_MAX).map_or_else(
                |_| "?".to_owned(),
                |text| format!("{:?}", String::from_utf8_lossy(&text)),
            )
        }
        _ => format!("{:#x}", request.word(index)),
    };
    (0..4).map(word).collect::<Vec<_>>().join(", ")
}
