//! A package of libraries in memory: what a world is given. How an archive is read is no matter of syntax.

use super::datum::Datum;
use std::collections::HashMap;
use std::path::PathBuf;

/// Libraries that come together, with the files that they include.
#[derive(Debug)]
pub struct Package {
    /// The definition of each library.
    pub definitions: Vec<Datum>,
    /// Each file by its path, which begins with the archive's.
    pub files: HashMap<PathBuf, Vec<u8>>,
}
