use crate::core_form::Core;
use crate::expander::TopLevel;
use crate::library::BUILT_IN;
use crate::reader::read_all;
use crate::world::World;
use std::path::{Path, PathBuf};

/// A temporary folder for one test, removed at the end.
struct Folder(PathBuf);

impl Folder {
    fn new(test: &str) -> Self {
        let path = std::env::temp_dir().join(format!("kyocho-{}-{test}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn write(&self, name: &str, text: impl AsRef<[u8]>) -> &Self {
        let path = self.0.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
        self
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Expands a program. Returns what would run, as words: the name of a definition, or the name of a
/// library that became ready.
fn run(world: &mut World, text: &str, source: &Path) -> Result<Vec<String>, String> {
    let forms = read_all(text, &source.to_string_lossy()).map_err(|error| error.to_string())?;
    let environment = world.program_environment(forms.first());
    let mut ran = Vec::new();
    for form in forms {
        for item in world.expand(&environment, &form).map_err(|error| error.to_string())? {
            match item {
                TopLevel::Form(Core::DefineGlobal(global, ..)) => {
                    ran.push(global.name.to_string());
                }
                TopLevel::Form(_) => ran.push("form".to_owned()),
                TopLevel::Ready(name) => {
                    world.library_ready(&name);
                    ran.push(name.to_string());
                }
            }
        }
    }
    Ok(ran)
}

fn program(text: &str) -> Result<Vec<String>, String> {
    run(&mut World::new(), text, Path::new("program"))
}

const BASE: &str = "(import (scheme base))";

#[test]
fn a_library_runs_once_before_its_importer() {
    let text = "(define-library (a) (export x) (import (scheme base)) (begin (define x 1)))
        (define-library (b) (export y) (import (scheme base) (a)) (begin (define y x)))
        (import (scheme base) (b) (a))
        (import (a))
        (define z y)";
    assert_eq!(program(text).unwrap(), ["x", "(a)", "y", "(b)", "z"]);
}

#[test]
fn a_program_sees_only_what_it_imports() {
    let mut world = World::new();
    let forms = read_all("(import (only (scheme base) define))", "p").unwrap();
    let environment = world.program_environment(forms.first());
    world.expand(&environment, &forms[0]).unwrap();
    assert_eq!(environment.names(), ["define"]);
}

#[test]
fn import_sets_filter_and_rename() {
    let library = "(define-library (l) (export a (rename b c) d) (import (scheme base)) \
        (begin (define a 1) (define b 2) (define d 3)))";
    for (set, names) in [
        ("(l)", "a c d"),
        ("(only (l) a)", "a"),
        ("(except (l) a)", "c d"),
        ("(prefix (l) l:)", "l:a l:c l:d"),
        ("(rename (l) (a b))", "b c d"),
        ("(prefix (rename (only (l) a d) (a z)) q)", "qd qz"),
    ] {
        let mut world = World::new();
        let forms = read_all(&format!("{library} (import {set})"), "p").unwrap();
        let environment = world.program_environment(forms.first());
        for form in &forms {
            world.expand(&environment, form).unwrap();
        }
        assert_eq!(environment.names().join(" "), names, "{set}");
    }
}

#[test]
fn import_errors_name_what_is_missing() {
    let library = "(define-library (l) (export first-name) (import (scheme base)) (begin (define first-name 1)))";
    for (text, parts) in [
        ("(import (no such))", &["there is no library (no such)"][..]),
        ("(import (scheme bsae))", &["there is no library (scheme bsae)", "(scheme base)"]),
        ("(import (only (l) frist-name))", &["`frist-name` is not exported", "`first-name`"]),
        ("(import (except (l) zzz))", &["`zzz` is not exported"]),
        ("(import (rename (l) (zzz a)))", &["`zzz` is not exported"]),
        ("(import 5)", &["5 is no import set"]),
        ("(import (prefix (l)))", &["is no import set"]),
        ("(import (l \"x\"))", &["is no library name"]),
        ("(import (../ x))", &["there is no library"]),
        ("(define-library)", &["malformed define-library"]),
        ("(define-library (scheme base))", &["is built in"]),
        ("(define-library (m) (exprot x)) (import (m))", &["no library declaration", "export"]),
        (
            "(define-library (m) (export nothing)) (import (m))",
            &["`nothing` is exported but not defined"],
        ),
        ("(define-library (m) (import (m))) (import (m))", &["(m) imports itself"]),
        (
            "(define-library (m) (import (l) (rename (scheme base) (car first-name)))) (import (m))",
            &["`first-name` is imported twice"],
        ),
    ] {
        let error = program(&format!("{library}\n{text}")).unwrap_err();
        for part in parts {
            assert!(error.contains(part), "{text}: {error} lacks {part}");
        }
    }
}

#[test]
fn an_imported_variable_cannot_be_assigned() {
    let error = program(
        "(define-library (l) (export x) (import (scheme base)) (begin (define x 1)))
         (import (scheme base) (l)) (set! x 2)",
    );
    assert!(error.unwrap_err().contains("`x` is imported and cannot be assigned"));
}

#[test]
fn a_library_whose_body_did_not_finish_is_loaded_again() {
    let mut world = World::new();
    let text =
        "(define-library (l) (export x) (import (scheme base)) (begin (define x 1))) (import (l))";
    let forms = read_all(text, "p").unwrap();
    let environment = world.program_environment(forms.first());
    world.expand(&environment, &forms[0]).unwrap();
    // The body has not been reported as run.
    assert_eq!(world.expand(&environment, &forms[1]).unwrap().len(), 2);
    assert_eq!(world.expand(&environment, &forms[1]).unwrap().len(), 2);
    world.library_ready("(l)");
    assert_eq!(world.expand(&environment, &forms[1]).unwrap().len(), 0);
}

#[test]
fn libraries_are_found_in_files() {
    let folder = Folder::new("files");
    folder
        .write(
            "lib/a/b.sld",
            "(define-library (a b) (export x) (import (scheme base)) (include \"b-body.scm\"))",
        )
        .write("lib/a/b-body.scm", "(define x 1)")
        .write("lib/a/wrong.sld", "(define-library (a other))")
        .write(
            "lib/a/broken.sld",
            "(define-library (a broken) (import (scheme base))\n (begin (if)))",
        )
        .write("lib/a/1.sld", b"(define-library (a 1))\n; \xff")
        .write(
            "lib/a/loop.sld",
            "(define-library (a loop) (include-library-declarations \"loop.decl\"))",
        )
        .write("lib/a/loop.decl", "(include-library-declarations \"loop.decl\")");
    let mut world = World::new();
    world.add_library_folder(&folder.0.join("lib"));
    let mut run = |text: &str| run(&mut world, text, &folder.0.join("main.scm"));
    assert_eq!(run("(import (scheme base) (a b)) (define y x)").unwrap(), ["x", "(a b)", "y"]);
    assert!(run("(import (a wrong))").unwrap_err().contains("does not define library (a wrong)"));
    let broken = run("(import (scheme base))\n(import (a broken))").unwrap_err();
    assert!(broken.contains("broken.sld:2:9"), "{broken}");
    assert!(broken.contains("main.scm:2:9: library (a broken) is imported here"), "{broken}");
    assert!(run("(import (a 1))").unwrap_err().contains("1.sld:2:3: this byte is not UTF-8"));
    assert!(run("(import (a none))").unwrap_err().contains("a/none.sld in one of"));
    assert!(run("(import (a loop))").unwrap_err().contains("files are included from one form"));
}

#[test]
fn includes_are_relative_to_the_including_file() {
    let folder = Folder::new("includes");
    folder
        .write("part/one.scm", "(include \"two.scm\") (define ONE 1)")
        .write("part/two.scm", "(define two 2)")
        .write("self.scm", "(include \"self.scm\")");
    let main = folder.0.join("main.scm");
    let mut world = World::new();
    let mut run = |form: &str| run(&mut world, &format!("{BASE}{form}"), &main);
    assert_eq!(run("(include \"part/one.scm\")").unwrap(), ["two", "ONE"]);
    assert_eq!(run("(include-ci \"part/one.scm\")").unwrap(), ["two", "one"]);
    assert_eq!(run("(define (f) (include \"part/one.scm\") two)").unwrap(), ["f"]);
    assert!(run("(include \"self.scm\")").unwrap_err().contains("more than 200 files"));
}

#[test]
fn the_library_of_a_forgotten_import_is_named() {
    let world = World::new();
    for (name, library) in [
        ("display", Some("(scheme write)")),
        ("car", Some("(scheme base)")),
        ("filter", Some("(srfi 1)")),
        ("no-such-name", None),
    ] {
        assert_eq!(world.exported_by(name), library, "{name}");
    }
}

#[test]
fn every_built_in_library_can_be_imported_completely() {
    for (name, _) in BUILT_IN {
        program(&format!("(import {name})")).unwrap();
    }
}
