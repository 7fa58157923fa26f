//! The name of a microprocess.

use core::fmt;

/// The longest name kept, in bytes.
pub(crate) const NAME_BYTES_MAX: usize = 39;

/// A name, stored inside the record: setting it allocates nothing, and reading it follows no
/// pointer.
#[derive(Clone, Copy)]
pub(crate) struct Name {
    bytes_used: u8,
    bytes: [u8; NAME_BYTES_MAX],
}

impl fmt::Debug for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_str().fmt(f)
    }
}

impl Name {
    pub(crate) const NONE: Self = Self { bytes_used: 0, bytes: [0; NAME_BYTES_MAX] };

    /// A name with `text`, cut after the last character that fits.
    pub(crate) fn new(text: &str) -> Self {
        let mut end = text.len().min(NAME_BYTES_MAX);
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        let mut name = Self::NONE;
        name.bytes[..end].copy_from_slice(&text.as_bytes()[..end]);
        name.bytes_used = end as u8;
        name
    }

    /// Its bytes; the last one is the number of bytes used.
    pub(crate) fn to_bytes(self) -> [u8; NAME_BYTES_MAX + 1] {
        let mut all = [0; NAME_BYTES_MAX + 1];
        all[..NAME_BYTES_MAX].copy_from_slice(&self.bytes);
        all[NAME_BYTES_MAX] = self.bytes_used;
        all
    }

    /// The inverse of [`to_bytes`](Self::to_bytes).
    pub(crate) fn from_bytes(all: [u8; NAME_BYTES_MAX + 1]) -> Self {
        let mut name = Self::NONE;
        name.bytes.copy_from_slice(&all[..NAME_BYTES_MAX]);
        name.bytes_used = all[NAME_BYTES_MAX];
        name
    }

    pub(crate) fn as_str(&self) -> Option<&str> {
        match self.bytes.get(..usize::from(self.bytes_used)) {
            None | Some([]) => None,
            Some(bytes) => core::str::from_utf8(bytes).ok(),
        }
    }
}
