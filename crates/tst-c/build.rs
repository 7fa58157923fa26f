//! Keeps the shared library in memory once loaded: the kernel may still hold the address of a sequence's descriptor
//! that a thread used last.

fn main() {
    println!("cargo::rustc-cdylib-link-arg=-Wl,-z,nodelete");
    println!("cargo::rerun-if-changed=build.rs");
}
