//! Programs in C and C++, compiled against the header with strict warnings, linked statically and
//! dynamically with an installed tree, and run. The programs in `tests/c` check themselves; the
//! output of the examples is checked here.
#![expect(clippy::unwrap_used, reason = "a test fails by a panic, in helpers too")]

use std::fs;
use std::path::Path;
use std::process::Command;

use kyocho_sys::skip::skip;

#[path = "support/installed.rs"]
mod installed;
use installed::{Linkage, STRICT, Scratch, compile, have, install, output_of, root, run};

/// Compiles `source` with `compiler`, runs the program, and returns its output.
fn compile_and_run(compiler: &[&str], source: &Path, prefix: &Path, linkage: Linkage) -> String {
    let program = compile(compiler, source, prefix, linkage);
    let output = output_of(&mut Command::new(&program), prefix);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{} {linkage:?}: {}\n{said}", source.display(), output.status);
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn programs_in_c_get_what_the_header_promises() {
    if !have("gcc") {
        return skip("programs_in_c_get_what_the_header_promises", "gcc is not installed");
    }
    let scratch = Scratch::new("c");
    install(&scratch.0);
    let programs = [
        ("crates/ffi/tests/c/threads.c", "threads: as promised\n"),
        ("crates/ffi/tests/c/objects.c", "objects: as promised\n"),
        ("crates/ffi/tests/c/channels.c", "channels: as promised\n"),
        ("crates/ffi/tests/c/gates.c", "gates: as promised\n"),
        ("examples/c/gate.c", "the sum of 1 to 100 is 5050\n"),
        ("examples/c/sieve.c", "125 primes up to 700, the largest 691\n"),
        ("examples/c/producer_consumer.c", "100 items, sum 950\n"),
    ];
    for (source, printed) in programs {
        for linkage in [Linkage::Archive, Linkage::Dynamic] {
            let source = root().join(source);
            let output = compile_and_run(&["gcc", "-std=c99"], &source, &scratch.0, linkage);
            assert_eq!(output, printed);
        }
    }
}

#[test]
fn static_programs_link_with_the_flags_of_pkg_config() {
    let name = "static_programs_link_with_the_flags_of_pkg_config";
    if !have("gcc") || !have("pkg-config") {
        return skip(name, "gcc or pkg-config is not installed");
    }
    let scratch = Scratch::new("static");
    install(&scratch.0);
    for linkage in [Linkage::Static, Linkage::StaticPie] {
        if !linkage.is_possible(&scratch.0) {
            skip(name, &format!("this C library cannot be linked as {linkage:?}"));
            continue;
        }
        let source = root().join("examples/c/sieve.c");
        let output = compile_and_run(&["gcc", "-std=c99"], &source, &scratch.0, linkage);
        assert_eq!(output, "125 primes up to 700, the largest 691\n");
    }
}

#[test]
fn header_compiles_alone_in_c_and_cpp() {
    if !have("gcc") || !have("g++") {
        return skip("header_compiles_alone_in_c_and_cpp", "gcc or g++ is not installed");
    }
    let scratch = Scratch::new("header");
    let source = scratch.0.join("alone.c");
    fs::write(&source, "#include <kyocho.h>\nint main(void) { return kyocho_self() != 0; }\n")
        .unwrap();
    let include = format!("-I{}", root().join("crates/ffi/include").display());
    let compilers = [["gcc", "-std=c99", "-xc"], ["gcc", "-std=c17", "-xc"]];
    let plus = [["g++", "-std=c++11", "-xc++"], ["g++", "-std=c++20", "-xc++"]];
    for [compiler, language, kind] in compilers.into_iter().chain(plus) {
        let mut compile = Command::new(compiler);
        compile.args([language, kind, "-fsyntax-only", &include]).args(STRICT);
        run(compile.arg(&source));
    }
}

#[test]
fn objects_are_used_from_cpp() {
    if !have("g++") {
        return skip("objects_are_used_from_cpp", "g++ is not installed");
    }
    let scratch = Scratch::new("cpp");
    install(&scratch.0);
    let source = root().join("crates/ffi/tests/c/lambda.cpp");
    let output = compile_and_run(&["g++", "-std=c++11"], &source, &scratch.0, Linkage::Dynamic);
    assert_eq!(output, "5050\n");
}
