//! Parts of messages as bytes.

mod bytes;
pub(crate) mod contents;
pub(crate) mod updates;
