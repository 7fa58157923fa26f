//! Names of sources, so that a [`Span`] stays three small numbers.
//!
//! One table a process, which grows with the number of distinct files and prompts, not with what is read from them. Names are symbols: they
//! stay, and who brings a new one pays for it.

use super::datum::Span;
use super::error::SyntaxError;
use crate::symbol::Symbol;
use core::fmt;
use kyocho_sys::descriptor::{self, Access};
use std::collections::HashMap;
use std::ffi::CString;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::{LazyLock, Mutex, PoisonError};

/// No program is longer; a device such as `/dev/zero` has no end.
const FILE_BYTES_MAX: u64 = 256 << 20;

#[derive(Default)]
struct Table {
    names: Vec<Symbol>,
    numbers: HashMap<Symbol, u32>,
}

static TABLE: LazyLock<Mutex<Table>> = LazyLock::new(|| {
    let mut table = Table::default();
    table.number("?");
    Mutex::new(table)
});

impl Table {
    fn number(&mut self, name: &str) -> u32 {
        let name = Symbol::intern(name);
        if let Some(&number) = self.numbers.get(&name) {
            return number;
        }
        // Number 0 is "?", which also stands in for what is past the last number.
        let Ok(number) = u32::try_from(self.names.len()) else { return 0 };
        self.names.push(name);
        self.numbers.insert(name, number);
        number
    }
}

/// The number of the source called `name`: a path, or what a prompt calls itself.
#[must_use]
pub fn register(name: &str) -> u32 {
    TABLE.lock().unwrap_or_else(PoisonError::into_inner).number(name)
}

/// The name that [`register`] was given; `?` for a number it never gave.
#[must_use]
pub fn name(number: u32) -> &'static str {
    let table = TABLE.lock().unwrap_or_else(PoisonError::into_inner);
    table.names.get(number as usize).unwrap_or(&table.names[0]).name()
}

/// The folder that a file named in `span`'s source is relative to.
#[must_use]
pub fn folder(span: Span) -> PathBuf {
    Path::new(name(span.source)).parent().map(Path::to_path_buf).unwrap_or_default()
}

/// The text of the file at `path`, asked for at `span`.
///
/// # Errors
/// A file that cannot be read, or is not UTF-8 (the line is named).
pub fn read_file(path: &Path, span: Span) -> Result<String, SyntaxError> {
    let name = path.to_string_lossy();
    match File::open(path) {
        Ok(file) => read_stream(file, &name, span),
        Err(cause) => Err(SyntaxError::new(span, format!("cannot read {name}: {cause}"))),
    }
}

/// As [`read_file`], of a plain file alone: nothing else is sure to come to an end, and who reads may not wait.
///
/// # Errors
/// As [`read_file`], and for what is no plain file.
pub fn read_plain_file(path: &Path, span: Span) -> Result<String, SyntaxError> {
    let name = path.to_string_lossy();
    match open_plain_file(path) {
        Ok(file) => read_stream(file, &name, span),
        Err(cause) => Err(SyntaxError::new(span, format!("cannot read {name}: {cause}"))),
    }
}

/// Opens a plain file. Waits for nobody: not for who writes to a named pipe either.
///
/// # Errors
/// What the host says; what is there is no plain file.
pub fn open_plain_file(path: &Path) -> io::Result<File> {
    let name = CString::new(path.as_os_str().as_bytes())?;
    let file = File::from(descriptor::open(&name, Access::ReadAtOnce)?);
    if file.metadata()?.is_file() {
        return Ok(file);
    }
    Err(io::Error::other("it is no plain file"))
}

/// The text that comes from `stream`, which messages call `name`.
///
/// # Errors
/// As [`read_file`], and when there is more of it than any program has.
pub fn read_stream(stream: impl Read, name: &str, span: Span) -> Result<String, SyntaxError> {
    let failed =
        |cause: &dyn fmt::Display| SyntaxError::new(span, format!("cannot read {name}: {cause}"));
    let mut bytes = Vec::new();
    stream.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes).map_err(|cause| failed(&cause))?;
    if bytes.len() as u64 > FILE_BYTES_MAX {
        return Err(failed(&format_args!("more than {} MiB", FILE_BYTES_MAX >> 20)));
    }
    String::from_utf8(bytes).map_err(|error| {
        let good = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        let line = good.iter().filter(|&&byte| byte == b'\n').count() as u32 + 1;
        let column = good.iter().rev().take_while(|&&byte| byte != b'\n').count() as u32 + 1;
        SyntaxError::new(
            Span { source: register(name), line, column },
            "this byte is not UTF-8 text",
        )
        .expected("text in UTF-8")
    })
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", name(self.source), self.line, self.column)
    }
}
