//! R7RS packages in the format of snow-fort.org: a gzipped tar of one folder with libraries, and a
//! `package.scm` that lists them.
//!
//! ```text
//! (package (name "...") (version "...")
//!          (library (name (foo bar)) (path "foo/bar.sld") ...) ...)
//! ```
//!
//! An archive is untrusted: it is read into memory within bounds, and nothing from it is ever
//! written to a disk. Links, devices and names that lead out of the archive are errors. Only
//! folders and global headers are skipped.

use core::fmt;
use flate2::read::GzDecoder;
use kyocho_syntax::datum::{Datum, Span};
use kyocho_syntax::error::SyntaxError;
use kyocho_syntax::package::Package;
use kyocho_syntax::reader::read_all;
use kyocho_syntax::source;
use std::collections::HashMap;
use std::io::{self, Read};
use std::path::{Component, Path, PathBuf};
use tar::EntryType;

/// Maximum number of bytes of an unpacked archive, including its headers.
pub const BYTES_MAX: u64 = 32 << 20;
/// Maximum number of files of an archive.
pub const FILES_MAX: usize = 4096;
/// The file that lists the libraries.
const MANIFEST: &str = "package.scm";

/// Why an archive is not a package.
#[derive(Debug)]
#[non_exhaustive]
pub enum PackageError {
    /// It cannot be read, is not a gzipped tar, or ends too early.
    Unreadable(io::Error),
    /// More than [`BYTES_MAX`], or more than [`FILES_MAX`] files.
    TooLarge,
    /// A name that is absolute, leads out of the archive, or occurs twice.
    Name(PathBuf),
    /// An entry that is neither file nor folder.
    Kind(PathBuf),
    /// It has no `package.scm`, or several.
    Manifest,
    /// A file in it is malformed, or names something that is missing.
    Syntax(SyntaxError),
}

impl fmt::Display for PackageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreadable(error) => write!(f, "not a gzipped tar: {error}"),
            Self::TooLarge => {
                write!(f, "more than {} MiB or {FILES_MAX} files", BYTES_MAX >> 20)
            }
            Self::Name(path) => {
                write!(f, "{} leads out of the archive, or is there twice", path.display())
            }
            Self::Kind(path) => write!(f, "{} is neither a file nor a folder", path.display()),
            Self::Manifest => write!(f, "there must be one {MANIFEST}, in its only folder"),
            Self::Syntax(error) => write!(f, "{error}"),
        }
    }
}

impl core::error::Error for PackageError {}

/// The package in the archive at `path`. Blocks until the host has read it.
///
/// # Errors
/// The archive is malformed or exceeds a bound.
pub fn open(path: &Path) -> Result<Package, PackageError> {
    let file = source::open_plain_file(path).map_err(PackageError::Unreadable)?;
    read(io::BufReader::new(file), path)
}

/// The package in `archive`. Source positions in it begin with `place`.
///
/// # Errors
/// As [`open`].
pub fn read(archive: impl Read, place: &Path) -> Result<Package, PackageError> {
    let files = unpack(archive)?;
    let is_manifest = |path: &&PathBuf| path.file_name().is_some_and(|name| name == MANIFEST);
    let depth = |path: &PathBuf| path.components().count();
    let mut manifests: Vec<_> =
        files.keys().filter(is_manifest).filter(|path| depth(path) <= 2).collect();
    let (Some(manifest), true) = (manifests.pop(), manifests.is_empty()) else {
        return Err(PackageError::Manifest);
    };
    let folder = manifest.parent().unwrap_or(Path::new(""));
    let mut definitions = Vec::new();
    for (name, path) in libraries(&read_data(&files, manifest, place)?)? {
        let Some(path) = normal(Path::new(&path)).map(|path| folder.join(path)) else {
            return Err(PackageError::Name(path.into()));
        };
        if !files.contains_key(&path) {
            return Err(wrong(&name, format!("the archive has no {}", path.display())));
        }
        let data = read_data(&files, &path, place)?;
        let definition = data.into_iter().find(|datum| defines(datum, &name));
        let missing = || wrong(&name, format!("{} does not define {name}", path.display()));
        definitions.push(definition.ok_or_else(missing)?);
    }
    let files = files.into_iter().map(|(path, text)| (place.join(path), text)).collect();
    Ok(Package { definitions, files })
}

/// The files of a gzipped tar.
fn unpack(archive: impl Read) -> Result<HashMap<PathBuf, Vec<u8>>, PackageError> {
    let mut limited = GzDecoder::new(archive).take(BYTES_MAX + 1);
    let result = entries(&mut limited).and_then(|files| {
        // The end of the archive contains the checksum.
        io::copy(&mut limited, &mut io::sink()).map_err(PackageError::Unreadable)?;
        Ok(files)
    });
    // If the bound has truncated the archive, that is the reason, whatever error the truncation
    // caused.
    if limited.limit() == 0 { Err(PackageError::TooLarge) } else { result }
}

fn entries(archive: &mut impl Read) -> Result<HashMap<PathBuf, Vec<u8>>, PackageError> {
    let mut files = HashMap::new();
    let mut count = 0;
    let mut archive = tar::Archive::new(archive);
    for entry in archive.entries().map_err(PackageError::Unreadable)? {
        let mut entry = entry.map_err(PackageError::Unreadable)?;
        count += 1;
        if count > FILES_MAX {
            return Err(PackageError::TooLarge);
        }
        let written = entry.path().map_err(PackageError::Unreadable)?.into_owned();
        let Some(path) = normal(&written) else { return Err(PackageError::Name(written)) };
        match entry.header().entry_type() {
            EntryType::Directory | EntryType::XGlobalHeader => continue,
            EntryType::Regular => {}
            _ => return Err(PackageError::Kind(written)),
        }
        let size = entry.size();
        let mut text = Vec::new();
        entry.read_to_end(&mut text).map_err(PackageError::Unreadable)?;
        if text.len() as u64 != size {
            return Err(PackageError::Unreadable(io::ErrorKind::UnexpectedEof.into()));
        }
        if path.as_os_str().is_empty() || files.insert(path, text).is_some() {
            return Err(PackageError::Name(written));
        }
    }
    if files.is_empty() {
        return Err(PackageError::Manifest);
    }
    Ok(files)
}

/// The path without `.` steps; `None` if it is absolute or has a `..` step.
fn normal(path: &Path) -> Option<PathBuf> {
    let mut normal = PathBuf::new();
    for component in path.components() {
        match component {
            Component::Normal(name) => normal.push(name),
            Component::CurDir => {}
            _ => return None,
        }
    }
    Some(normal)
}

fn read_data(
    files: &HashMap<PathBuf, Vec<u8>>,
    path: &Path,
    place: &Path,
) -> Result<Vec<Datum>, PackageError> {
    let name = place.join(path).to_string_lossy().into_owned();
    let bytes = files.get(path).map_or(&[][..], Vec::as_slice);
    source::read_stream(bytes, &name, Span::default())
        .and_then(|text| read_all(&text, &name))
        .map_err(PackageError::Syntax)
}

/// The libraries that a manifest lists, with their files.
fn libraries(manifest: &[Datum]) -> Result<Vec<(Datum, String)>, PackageError> {
    let [package] = manifest else { return Err(PackageError::Manifest) };
    let mut libraries = Vec::new();
    let clauses = package.proper_list().unwrap_or_default();
    if !is_called(package, "package") {
        return Err(wrong(package, "no package".to_owned()));
    }
    for clause in clauses.into_iter().filter(|clause| is_called(clause, "library")) {
        let name = operand(clause, "name");
        let path = operand(clause, "path").and_then(|path| path.as_string().map(str::to_owned));
        match (name, path) {
            (Some(name), Some(path)) => libraries.push((name.clone(), path)),
            _ => return Err(wrong(clause, "a library without name or path".to_owned())),
        }
    }
    if libraries.is_empty() {
        return Err(wrong(package, "a package without a library".to_owned()));
    }
    Ok(libraries)
}

fn wrong(datum: &Datum, message: String) -> PackageError {
    let expected = "(package (library (name (a b)) (path \"a/b.sld\")) ...)";
    PackageError::Syntax(SyntaxError::new(datum.span, message).expected(expected))
}

fn is_called(form: &Datum, name: &str) -> bool {
    let head = form.as_pair().and_then(|(head, _)| head.as_symbol());
    head.is_some_and(|symbol| symbol.name() == name)
}

/// The operand of the clause called `name`.
fn operand<'d>(clause: &'d Datum, name: &str) -> Option<&'d Datum> {
    let found = clause.elements().skip(1).find(|item| is_called(item, name))?;
    found.elements().nth(1)
}

/// Whether `form` defines the library of this name.
fn defines(form: &Datum, name: &Datum) -> bool {
    let written = form.elements().nth(1).map(Datum::to_string);
    is_called(form, "define-library") && written == Some(name.to_string())
}

#[cfg(test)]
mod tests;
