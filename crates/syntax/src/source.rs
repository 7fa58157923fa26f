//! Names of sources. A [`Span`] contains the number of a name, so it consists of three small
//! numbers.
//!
//! The process has one table of names. It grows with the number of distinct files and prompts, not
//! with the amount of text read. Names are symbols, which are never freed; the thread that
//! registers a new name is charged for it.

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

/// Maximum number of bytes that are read as a program. A device such as `/dev/zero` would never
/// end.
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
        // Number 0 is "?". It also represents all sources that have no number left.
        let Ok(number) = u32::try_from(self.names.len()) else { return 0 };
        self.names.push(name);
        self.numbers.insert(name, number);
        number
    }
}

/// The number of the source called `name`: a path, or the name of a prompt.
#[must_use]
pub fn register(name: &str) -> u32 {
    TABLE.lock().unwrap_or_else(PoisonError::into_inner).number(name)
}

/// The name that [`register`] got; `?` for an unknown number.
#[must_use]
pub fn name(number: u32) -> &'static str {
    let table = TABLE.lock().unwrap_or_else(PoisonError::into_inner);
    table.names.get(number as usize).unwrap_or(&table.names[0]).name()
}

/// The folder of the source of `span`. Relative file names in that source refer to it.
#[must_use]
pub fn folder(span: Span) -> PathBuf {
    Path::new(name(span.source)).parent().map(Path::to_path_buf).unwrap_or_default()
}

/// The text of the file at `path`. Errors are reported at `span`.
///
/// # Errors
/// The file cannot be read, is longer than any allowed program, or is not UTF-8 (the error names
/// the line).
pub fn read_file(path: &Path, span: Span) -> Result<String, SyntaxError> {
    let name = path.to_string_lossy();
    match File::open(path) {
        Ok(file) => read_stream(file, &name, span),
        Err(cause) => Err(SyntaxError::new(span, format!("cannot read {name}: {cause}"))),
    }
}

/// As [`read_file`], for a regular file only. Reading any other file might block, or never end.
///
/// # Errors
/// As [`read_file`], and if the file is not a regular one.
pub fn read_plain_file(path: &Path, span: Span) -> Result<String, SyntaxError> {
    let name = path.to_string_lossy();
    match open_plain_file(path) {
        Ok(file) => read_stream(file, &name, span),
        Err(cause) => Err(SyntaxError::new(span, format!("cannot read {name}: {cause}"))),
    }
}

/// Opens a regular file. Never blocks, not even on a named pipe without a writer.
///
/// # Errors
/// The host's error, or that the file is not a regular one.
pub fn open_plain_file(path: &Path) -> io::Result<File> {
    let name = CString::new(path.as_os_str().as_bytes())?;
    let file = File::from(descriptor::open(&name, Access::ReadAtOnce)?);
    if file.metadata()?.is_file() {
        return Ok(file);
    }
    Err(io::Error::other("it is not a regular file"))
}

/// The text read from `stream`. Messages call it `name`.
///
/// # Errors
/// As [`read_file`].
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
