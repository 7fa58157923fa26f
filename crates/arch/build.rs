//! Tells the build script of `kyocho-unix` where the sources of this package are. That script
//! compiles them once more, for the program that stands in the clients of the UNIX server.

fn main() {
    let folder = std::env::var("CARGO_MANIFEST_DIR").expect("cargo sets it");
    println!("cargo::metadata=folder={folder}");
    println!("cargo::rerun-if-changed=build.rs");
}
