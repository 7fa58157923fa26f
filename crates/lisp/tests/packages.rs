//! Packages of libraries in programs: named at the start, loaded by the program, and errors.

use flate2::Compression;
use flate2::write::GzEncoder;
use kyocho_lisp::system::{BootError, Options, System};
use std::path::{Path, PathBuf};

const MANIFEST: &str = "(package (name \"sums\") (version \"1.0\")
    (library (name (sums double)) (path \"sums/double.sld\"))
    (library (name (sums one)) (path \"sums/one.sld\")))";
const ONE: &str = "(define-library (sums one) (export one) (import (scheme base))
    (include-library-declarations \"parts/one.scm\"))";
const DOUBLE: &str = "(define-library (sums double) (export double)
    (import (scheme base) (sums one))
    (include \"parts/double.scm\"))";

/// A package in a temporary file, removed at the end.
struct Archive(PathBuf);

impl Archive {
    fn new(test: &str, files: &[(&str, &str)]) -> Self {
        let path = std::env::temp_dir().join(format!("kyocho-{}-{test}.tgz", std::process::id()));
        let file = std::fs::File::create(&path).expect("the folder can be written");
        let mut builder = tar::Builder::new(GzEncoder::new(file, Compression::default()));
        for (name, text) in files {
            let mut header = tar::Header::new_gnu();
            header.set_size(text.len() as u64);
            let added = builder.append_data(&mut header, name, text.as_bytes());
            added.expect("the archive can be written");
        }
        let packed = builder.into_inner().expect("the archive can be finished");
        packed.finish().expect("the archive can be written");
        Self(path)
    }

    fn of_sums(test: &str) -> Self {
        Self::new(
            test,
            &[
                ("sums-1.0/package.scm", MANIFEST),
                ("sums-1.0/sums/one.sld", ONE),
                ("sums-1.0/sums/double.sld", DOUBLE),
                ("sums-1.0/sums/parts/one.scm", "(begin (define one 1))"),
                ("sums-1.0/sums/parts/double.scm", "(define (double n) (* (+ one one) n))"),
            ],
        )
    }
}

impl Drop for Archive {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

fn boot(packages: &[&Path]) -> Result<System, BootError> {
    let packages = packages.iter().map(|path| path.to_path_buf()).collect();
    System::boot(Options { packages, ..Options::default() }, &mut |_| {})
}

#[test]
fn libraries_of_a_package_can_be_imported_in_every_session() {
    let archive = Archive::of_sums("imported");
    let system = boot(&[&archive.0]).unwrap();
    for _ in 0..2 {
        let mut session = system.session();
        session.eval("(import (sums double))", "test").unwrap();
        assert_eq!(session.eval("(double 21)", "test").unwrap().values, ["42"]);
    }
}

#[test]
fn a_program_can_load_a_package() {
    let archive = Archive::of_sums("loaded");
    let mut session = boot(&[]).unwrap().session();
    let load = format!("(load-package {:?})", archive.0.display().to_string());
    assert!(session.eval("(import (sums one))", "test").is_err());
    assert_eq!(session.eval(&load, "test").unwrap().values, ["((sums double) (sums one))"]);
    assert_eq!(session.eval(&load, "test").unwrap().values, ["((sums double) (sums one))"]);
    let known = "(cond-expand ((library (sums one)) 'known) (else 'unknown))";
    assert_eq!(session.eval(known, "test").unwrap().values, ["known"]);
    session.eval("(import (prefix (sums double) sums:))", "test").unwrap();
    assert_eq!(session.eval("(sums:double 4)", "test").unwrap().values, ["8"]);
    let again = session.eval(&load, "test").unwrap_err().to_string();
    assert!(again.contains("is loaded already"), "{again}");
}

#[test]
fn an_invalid_package_is_an_error_and_adds_nothing() {
    let built_in = Archive::new(
        "built-in",
        &[
            (
                "package.scm",
                "(package (library (name (mine)) (path \"mine.sld\"))
                          (library (name (scheme base)) (path \"base.sld\")))",
            ),
            ("mine.sld", "(define-library (mine))"),
            ("base.sld", "(define-library (scheme base))"),
        ],
    );
    let error = boot(&[&built_in.0]).unwrap_err().to_string();
    assert!(error.contains("built-in.tgz: ") && error.contains("is built in"), "{error}");
    let mut session = boot(&[]).unwrap().session();
    let load = format!("(load-package {:?})", built_in.0.display().to_string());
    assert!(session.eval(&load, "test").unwrap_err().to_string().contains("is built in"));
    assert!(session.eval("(import (mine))", "test").is_err());
    let missing = "(guard (e ((file-error? e) (error-object? e)))
                     (load-package \"/no/such.tgz\"))";
    assert_eq!(session.eval(missing, "test").unwrap().values, ["#t"]);
    assert!(session.eval("(load-package 5)", "test").is_err());
}

#[test]
fn includes_of_a_library_cannot_leave_the_archive() {
    let archive = Archive::new(
        "escape",
        &[
            ("package.scm", "(package (library (name (out)) (path \"a/out.sld\")))"),
            ("a/out.sld", "(define-library (out) (import (scheme base)) (include \"../../../x\"))"),
        ],
    );
    let mut session = boot(&[&archive.0]).unwrap().session();
    let error = session.eval("(import (out))", "test").unwrap_err().to_string();
    assert!(error.contains("cannot read") || error.contains("may not include"), "{error}");
}
