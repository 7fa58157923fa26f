//! A package of libraries in memory, which can be added to a world. Reading archives is not part of
//! this crate.

use super::datum::Datum;
use std::collections::HashMap;
use std::path::PathBuf;

/// Libraries that are installed together, with the files that they include.
#[derive(Debug)]
pub struct Package {
    /// The `define-library` form of each library.
    pub definitions: Vec<Datum>,
    /// Each file by its path, which begins with the path of the archive.
    pub files: HashMap<PathBuf, Vec<u8>>,
}
