//! From text to core forms: reader, expander, libraries. Pure Rust data; never touches the heap.

pub mod core_form;
pub mod datum;
