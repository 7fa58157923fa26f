//! Builds the image of the FreeBSD personality. It is a program without an operating system below
//! it, for which cargo has no kind of target.
//!
//! ```text
//!   arch/image.rs ─► library ─► freebsd/src ─► library ─► freebsd/image.rs, image.ld
//!     ─► OUT_DIR/freebsd-image
//! ```

use std::env::var_os;
use std::path::{Path, PathBuf};
use std::process::Command;

fn main() {
    let arch = folder_of("DEP_KYOCHO_ARCH_FOLDER");
    let freebsd = folder_of("DEP_KYOCHO_FREEBSD_FOLDER");
    let out = PathBuf::from(var_os("OUT_DIR").expect("cargo says so"));
    let image_source = freebsd.join("image.rs");
    let script = freebsd.join("image.ld");
    for part in [&arch.join("src"), &arch.join("image.rs"), &freebsd.join("src")] {
        println!("cargo::rerun-if-changed={}", part.display());
    }
    for part in [&image_source, &script] {
        println!("cargo::rerun-if-changed={}", part.display());
    }
    if var_os("CARGO_CFG_TARGET_ARCH").is_none_or(|arch| arch != "x86_64") {
        return;
    }
    let arch = library(&arch.join("image.rs"), "kyocho_arch", &[], &out);
    let freebsd =
        library(&freebsd.join("src/lib.rs"), "kyocho_freebsd", &[("kyocho_arch", &arch)], &out);
    let mut image = compiler(&image_source, "image", "bin", &out);
    image.arg("-o").arg(out.join("freebsd-image"));
    image.arg(format!("--extern=kyocho_arch={}", arch.display()));
    image.arg(format!("--extern=kyocho_freebsd={}", freebsd.display()));
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
    // Nothing refers to the launcher but its address.
    image.arg("-Clink-arg=-Wl,--undefined=kyocho_launcher");
    image.arg(format!("-Clink-arg=-Wl,-T,{}", script.display()));
    run(&mut image);
}

/// The folder of a package that this one depends on, as that package's build script tells it. By
/// its path alone it would not be found from a published package.
fn folder_of(variable: &str) -> PathBuf {
    PathBuf::from(var_os(variable).unwrap_or_else(|| panic!("cargo passes {variable}")))
}

/// The command that compiles one crate of the image.
fn compiler(source: &Path, name: &str, kind: &str, out: &Path) -> Command {
    let mut command = Command::new(var_os("RUSTC").expect("cargo says so"));
    command.arg(source).args(["--edition=2024", "--crate-name", name, "--crate-type", kind]);
    command.arg("--target").arg(var_os("TARGET").expect("cargo says so"));
    // Lints run on these crates when cargo builds them.
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
