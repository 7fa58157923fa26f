//! Builds the image of the FreeBSD personality: a program without an operating system under it, for which cargo has no kind of target.
//!
//! ```text
//!   arch/image.rs ─► library ─► freebsd/src ─► library ─► freebsd/image.rs, image.ld ─► OUT_DIR/freebsd-image
//! ```

use std::env::var_os;
use std::path::{Path, PathBuf};
use std::process::Command;

fn main() {
    let crates = PathBuf::from(var_os("CARGO_MANIFEST_DIR").expect("cargo says so")).join("..");
    let out = PathBuf::from(var_os("OUT_DIR").expect("cargo says so"));
    for part in ["arch/src", "arch/image.rs", "freebsd/src", "freebsd/image.rs", "freebsd/image.ld"]
    {
        println!("cargo::rerun-if-changed={}", crates.join(part).display());
    }
    if var_os("CARGO_CFG_TARGET_ARCH").is_none_or(|arch| arch != "x86_64") {
        return;
    }
    let arch = library(&crates.join("arch/image.rs"), "kyocho_arch", &[], &out);
    let freebsd = library(
        &crates.join("freebsd/src/lib.rs"),
        "kyocho_freebsd",
        &[("kyocho_arch", &arch)],
        &out,
    );
    let mut image = compiler(&crates.join("freebsd/image.rs"), "image", "bin", &out);
    image.arg("-o").arg(out.join("freebsd-image"));
    image.arg(format!("--extern=kyocho_arch={}", arch.display()));
    image.arg(format!("--extern=kyocho_freebsd={}", freebsd.display()));
    let script = crates.join("freebsd/image.ld");
    for argument in [
        "-nostartfiles",
        "-nostdlib",
        "-static",
        "-no-pie",
        "-Wl,--gc-sections",
        "-Wl,--build-id=none",
        "-s",
    ] {
        image.arg(format!("-Clink-arg={argument}"));
    }
    // The launcher is entered by its address alone.
    image.arg("-Clink-arg=-Wl,--undefined=kyocho_launcher");
    image.arg(format!("-Clink-arg=-Wl,-T,{}", script.display()));
    run(&mut image);
}

/// The command that compiles one crate of the image.
fn compiler(source: &Path, name: &str, kind: &str, out: &Path) -> Command {
    let mut command = Command::new(var_os("RUSTC").expect("cargo says so"));
    command.arg(source).args(["--edition=2024", "--crate-name", name, "--crate-type", kind]);
    command.arg("--target").arg(var_os("TARGET").expect("cargo says so"));
    // What lints say of these crates is said when cargo builds them.
    command.args(["-Copt-level=2", "-Cpanic=abort", "-Ccodegen-units=1", "--cap-lints=allow"]);
    command.args(["-Crelocation-model=static", "-L"]).arg(out);
    command
}

fn library(source: &Path, name: &str, uses: &[(&str, &PathBuf)], out: &Path) -> PathBuf {
    let library = out.join(format!("lib{name}.rlib"));
    let mut command = compiler(source, name, "rlib", out);
    command.arg("-o").arg(&library);
    for (used, at) in uses {
        command.arg(format!("--extern={used}={}", at.display()));
    }
    run(&mut command);
    library
}

fn run(command: &mut Command) {
    let status = command.status().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(status.success(), "{command:?}: {status}");
}
