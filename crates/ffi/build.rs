//! Sets the name of the shared library: programs that are linked to it look for this name.

fn main() {
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libkyocho.so.0");
    println!("cargo:rerun-if-changed=build.rs");
}
