//! Names the shared library: programs linked to it look for this.

fn main() {
    println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libkyocho-dsm.so.0");
    println!("cargo::rerun-if-changed=build.rs");
}
