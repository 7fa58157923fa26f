//! The command as a user sees it: exit codes, messages, streams.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

fn kyocho() -> Command {
    Command::new(env!("CARGO_BIN_EXE_kyocho"))
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Writes `source` to a file of this test.
fn program(name: &str, source: &[u8]) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}.scm"));
    std::fs::write(&path, source).expect("the test's folder can be written");
    path
}

fn run_program(name: &str, source: &[u8], arguments: &[&str]) -> (Output, PathBuf) {
    let path = program(name, source);
    let output = kyocho().arg("run").arg(&path).args(arguments).output().expect("kyocho starts");
    (output, path)
}

fn feed(input: &str) -> Output {
    let mut child = kyocho()
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("kyocho starts");
    let mut standard_input = child.stdin.take().expect("standard input is piped");
    standard_input.write_all(input.as_bytes()).expect("kyocho reads its standard input");
    drop(standard_input);
    child.wait_with_output().expect("kyocho ends")
}

#[test]
fn a_program_prints_and_exits_with_zero() {
    let (output, _) = run_program("prints", b"(display (* 6 7)) (newline)", &[]);
    assert_eq!(text(&output.stdout), "42\n");
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
}

#[test]
fn a_program_sees_its_arguments() {
    let source = b"(for-each (lambda (a) (display a) (newline)) (cdr (command-line)))";
    let (output, _) = run_program("arguments", source, &["one", "--two"]);
    assert_eq!(text(&output.stdout), "one\n--two\n");
}

#[test]
fn exit_gives_its_code_and_flushes() {
    let (output, _) = run_program("exits", b"(display 'before) (exit 7) (display 'after)", &[]);
    assert_eq!(output.status.code(), Some(7));
    assert_eq!(text(&output.stdout), "before");
}

#[test]
fn an_uncaught_error_names_its_place_and_exits_with_one() {
    let source = b"(define (f x)\n  (car x))\n(define (g y) (+ 1 (f y)))\n(display (g 5))\n";
    let (output, path) = run_program("uncaught", source, &[]);
    let message = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1));
    assert!(message.starts_with(&format!("{}:2:", path.display())), "{message}");
    assert!(message.contains("car"), "{message}");
    assert!(message.contains('g'), "{message}");
}

#[test]
fn a_syntax_error_names_its_place_and_exits_with_one() {
    let (output, path) = run_program("unclosed", b"(display 1)\n(define (f x)\n  (car x)\n", &[]);
    assert_eq!(output.status.code(), Some(1));
    let message = text(&output.stderr);
    assert!(message.contains(&path.display().to_string()), "{message}");
    assert!(message.contains("2:1"), "the open parenthesis is at 2:1: {message}");
}

#[test]
fn an_unbound_name_suggests_the_nearest_bound_one() {
    let (output, _) = run_program("unbound", b"(dispaly 1)", &[]);
    assert_eq!(output.status.code(), Some(1));
    let message = text(&output.stderr);
    assert!(message.contains("dispaly") && message.contains("display"), "{message}");
}

#[test]
fn a_missing_file_is_named() {
    let output = kyocho().args(["run", "no-such-file.scm"]).output().expect("kyocho starts");
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("no-such-file.scm"));
}

#[test]
fn a_folder_in_place_of_a_program_is_an_error() {
    let output = kyocho().args(["run", "."]).output().expect("kyocho starts");
    assert_eq!(output.status.code(), Some(1));
    assert!(!output.stderr.is_empty());
}

#[test]
fn a_program_that_is_not_utf8_is_an_error() {
    let (output, path) = run_program("latin1", b"(display 1)\n(display \"caf\xe9\")\n", &[]);
    assert_eq!(output.status.code(), Some(1));
    let message = text(&output.stderr);
    assert!(message.contains(&path.display().to_string()), "{message}");
    assert!(message.to_lowercase().contains("utf-8"), "{message}");
}

#[test]
fn a_wrong_command_line_exits_with_two() {
    for arguments in [&["--no-such-option"][..], &["run"], &["--cell-cache", "0", "run", "x.scm"]] {
        let output = kyocho().args(arguments).output().expect("kyocho starts");
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(!output.stderr.is_empty(), "{arguments:?}");
    }
}

#[test]
fn help_teaches_by_example() {
    let output = kyocho().arg("--help").output().expect("kyocho starts");
    assert_eq!(output.status.code(), Some(0));
    let help = text(&output.stdout);
    assert!(help.contains("kyocho run examples/sieve.scm 700"), "{help}");
    assert!(Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/sieve.scm")).exists());
}

#[test]
fn version_is_the_packages() {
    let output = kyocho().arg("--version").output().expect("kyocho starts");
    assert_eq!(text(&output.stdout), concat!("kyocho ", env!("CARGO_PKG_VERSION"), "\n"));
}

#[test]
fn standard_input_is_evaluated() {
    let output = feed("(define x 20)\n(display (+ x 1))\n(newline)\n");
    assert_eq!(text(&output.stdout), "21\n");
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
}

#[test]
fn values_of_standard_input_are_printed_between_what_it_writes() {
    let output = feed(
        "(+ 40 2)\n(display \"written\")\n(newline)\n(values 1 \"two\") '(a . b)\n(define x 1)\n(if #f #f)\n(begin (display \"sum: \") (+ x 2))\n(car x)\n'never",
    );
    assert_eq!(text(&output.stdout), "42\nwritten\n1\n\"two\"\n(a . b)\nsum: 3\n");
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).starts_with("standard input:8:1: car"), "{output:?}");
}

#[test]
fn a_program_prints_no_values_wherever_it_comes_from() {
    let source = "(+ 40 2)\n\"text\"\n(display \"written\")";
    let (output, path) = run_program("silent", source.as_bytes(), &[]);
    assert_eq!(text(&output.stdout), "written");
    let file = std::fs::File::open(path).expect("it was just written");
    let output = kyocho().args(["run", "/dev/stdin"]).stdin(file).output().expect("kyocho starts");
    assert_eq!(text(&output.stdout), "written", "{}", text(&output.stderr));
}

#[test]
fn an_error_on_standard_input_exits_with_one() {
    let output = feed("(car 1)\n");
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("car"));
}

#[test]
fn a_closed_pipe_ends_a_program_quietly_as_sigpipe_would() {
    let source = b"(let loop ((n 0)) (write n) (newline) (loop (+ n 1)))";
    let path = program("pipe", source);
    let path = path.to_str().expect("the test's folder has a plain name");
    for arguments in [&["run", path][..], &["--engine", "deep", "run", path]] {
        let mut child = kyocho()
            .args(arguments)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("kyocho starts");
        drop(child.stdout.take());
        let output = child.wait_with_output().expect("kyocho ends");
        assert_eq!(text(&output.stderr), "", "{arguments:?}");
        assert_eq!(output.status.code(), Some(128 + 13), "{arguments:?}");
    }
}

#[test]
fn a_program_may_handle_a_closed_pipe_itself() {
    let source = b"(define (spell n)
  (if (guard (e ((file-error? e) #f)) (write n) (newline) #t) (spell (+ n 1)) (exit 3)))
(spell 0)";
    let mut child = kyocho()
        .arg("run")
        .arg(program("own-pipe", source))
        .stdout(Stdio::piped())
        .spawn()
        .expect("kyocho starts");
    drop(child.stdout.take());
    assert_eq!(child.wait().expect("kyocho ends").code(), Some(3));
}

/// Checks that a signal which ends a program flushes what it has printed. The program reports on
/// standard error when it has printed.
fn ends_by_signal_with_what_it_printed(name: &str, signal: &str, number: i32) {
    let source = b"(display \"kept\")
(write-string \"printed\\n\" (current-error-port))
(flush-output-port (current-error-port))
(let loop () (loop))";
    let mut child = kyocho()
        .arg("run")
        .arg(program(name, source))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("kyocho starts");
    let mut error = BufReader::new(child.stderr.take().expect("standard error is piped"));
    let mut said = String::new();
    error.read_line(&mut said).expect("the program says something");
    assert_eq!(said, "printed\n");
    let sent = Command::new("kill").args([signal, &child.id().to_string()]).status();
    assert!(sent.expect("kill starts").success());
    let output = child.wait_with_output().expect("kyocho ends");
    assert_eq!((output.status.code(), text(&output.stdout)), (Some(128 + number), "kept".into()));
}

#[test]
fn sigint_ends_a_program_with_what_it_printed() {
    ends_by_signal_with_what_it_printed("sigint", "-INT", 2);
}

#[test]
fn sigterm_ends_a_program_with_what_it_printed() {
    ends_by_signal_with_what_it_printed("sigterm", "-TERM", 15);
}

#[test]
fn exit_codes_are_what_the_host_takes_and_never_success_by_chance() {
    for (form, code) in [
        ("(exit)", 0),
        ("(exit #t)", 0),
        ("(exit #f)", 1),
        ("(exit 0)", 0),
        ("(exit 300)", 44),
        ("(exit -1)", 255),
        ("(exit 256)", 1),
        ("(exit 'x)", 1),
        ("(emergency-exit)", 0),
        ("(emergency-exit 3)", 3),
        ("(emergency-exit #f)", 1),
        ("(dynamic-wind values (lambda () (exit 4)) (lambda () (exit 5)))", 5),
        ("(dynamic-wind values (lambda () (emergency-exit 4)) (lambda () (exit 5)))", 4),
        ("(thread-join! (thread-start! (make-thread (lambda () (exit 9)))))", 9),
    ] {
        let (output, _) = run_program("exit-code", form.as_bytes(), &[]);
        assert_eq!(output.status.code(), Some(code), "{form}");
        assert_eq!(text(&output.stderr), "", "{form}");
    }
}

#[test]
fn the_continuation_of_an_ended_thread_ends_the_thread_that_enters_it() {
    // SRFI 18: after the continuation of a thread's thunk, the current thread ends.
    let source = b"(define k #f)
(define worker (make-thread (lambda () (call/cc (lambda (c) (set! k c))) (display \"in \") 7)))
(display (thread-join! (thread-start! worker)))
(display (thread-join! (thread-start! (make-thread (lambda () (k 1) (display 'never))))))
(k 1)
(display 'never)";
    let (output, _) = run_program("ended-continuation", source, &[]);
    assert_eq!((text(&output.stdout), text(&output.stderr)), ("in 7in 7in ".into(), String::new()));
    assert_eq!(output.status.code(), Some(0));
}

#[test]
fn a_terminated_thread_is_not_kept_alive_by_its_handlers() {
    let source = b"(define worker
  (thread-start!
   (make-thread
    (lambda ()
      (guard (e (#t (let loop () (loop))))
        (dynamic-wind values (lambda () (thread-sleep! 100)) (lambda () (raise 'late))))))))
(thread-sleep! 0.01)
(thread-terminate! worker)
(display (guard (e ((terminated-thread-exception? e) 'terminated)) (thread-join! worker)))";
    let (output, _) = run_program("terminated", source, &[]);
    assert_eq!(text(&output.stdout), "terminated", "{}", text(&output.stderr));
}

#[test]
fn a_missing_library_is_looked_for_beside_the_program() {
    let path = program("missing-library", b"(import (no such library))");
    let (folder, name) = (path.parent().expect("a folder"), path.file_name().expect("a name"));
    let output = kyocho().current_dir(folder).arg("run").arg(name).output().expect("kyocho starts");
    let message = text(&output.stderr);
    assert!(message.contains("no/such/library.sld in one of: ."), "{message}");
}

#[test]
fn running_out_of_memory_is_an_error() {
    let path = program("memory", b"(let loop ((l '())) (loop (cons (make-vector 1000 0) l)))");
    let output =
        kyocho().args(["--memory", "64", "run"]).arg(path).output().expect("kyocho starts");
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("memory"), "{}", text(&output.stderr));
}

#[test]
fn endless_recursion_is_an_error() {
    let (output, _) = run_program("recursion", b"(define (f x) (+ 1 (f x))) (f 1)", &[]);
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("recursion"), "{}", text(&output.stderr));
}

#[test]
fn the_tour_runs_to_its_end_without_a_terminal() {
    let output = kyocho().arg("tour").stdin(Stdio::null()).output().expect("kyocho starts");
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let seen = text(&output.stdout);
    for part in ["125 primes, 126 threads, 9055 messages", "(ackermann 3 3) = 61", "ticker ticked"]
    {
        assert!(seen.contains(part), "{seen}");
    }
}

#[test]
fn the_deep_engine_runs_programs_and_counts_their_cells() {
    let source = b"(define (f n) (if (= n 0) 'done (f (- n 1)))) (display (f 10)) (newline)\n(system-call-statistics)\n(car 'x)";
    let path = program("deep", source);
    let run = |cell_cache: &str| {
        let arguments = ["--engine", "deep", "--cell-cache", cell_cache, "run"];
        kyocho().args(arguments).arg(&path).output().expect("kyocho starts")
    };
    let off = run("off");
    let lines = text(&off.stdout);
    let (value, statistics) = lines.trim_end().split_once('\n').expect("two lines");
    assert_eq!(value, "done");
    let counts: Vec<&str> =
        statistics.split([' ', ':']).filter(|word| word.parse::<u64>().is_ok()).collect();
    assert_eq!(counts[0], counts[1], "a message a cell: {statistics}");
    assert!(text(&run("1000").stdout).contains(" in 1 messages;"));
    assert_eq!(off.status.code(), Some(1));
    assert!(text(&off.stderr).ends_with("deep.scm:3:1: car: expected a pair, got x\n"));
    let prompt = kyocho().args(["--engine", "deep"]).output().expect("kyocho starts");
    assert_eq!(prompt.status.code(), Some(2));
}

#[test]
fn a_thread_that_ends_by_an_error_and_is_not_joined_is_reported_once() {
    // The mutex is abandoned after the report, so the program does not end earlier.
    let source = b"(define held (make-mutex))
(define (fall x)
  (mutex-lock! held)
  (car x))
(define worker (thread-start! (make-thread (lambda () (+ 1 (fall 5))) \"worker\")))
(let wait () (if (eq? (mutex-state held) 'not-abandoned) (begin (thread-yield!) (wait))))
(display (guard (e ((abandoned-mutex-exception? e) 'abandoned)) (mutex-lock! held)))
(display (guard (e ((uncaught-exception? e) 'raised)) (thread-join! worker)))";
    let (output, path) = run_program("unheard", source, &[]);
    let message = text(&output.stderr);
    assert_eq!(text(&output.stdout), "abandonedraised", "{message}");
    assert_eq!(output.status.code(), Some(0), "the program itself is fine");
    assert!(message.starts_with(&format!("{}:4:", path.display())), "{message}");
    assert!(message.contains("in thread worker: car"), "{message}");
    assert!(message.contains("in fall"), "{message}");
    assert_eq!(message.matches("car").count(), 1, "once: {message}");
}

#[test]
fn a_threads_error_is_raised_where_it_is_joined_and_not_reported() {
    let source = b"(define main (current-thread))
(define worker (make-thread (lambda () (thread-sleep! 0.05) (car 5))))
(thread-start! worker)
(display (guard (e ((uncaught-exception? e) 'raised)) (thread-join! worker)))";
    let (output, _) = run_program("heard", source, &[]);
    assert_eq!((text(&output.stdout), text(&output.stderr)), ("raised".into(), String::new()));
}

#[test]
fn a_world_that_was_saved_is_there_in_the_next_system() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("image");
    // Left over from an earlier run.
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).expect("the test's folder can be made");
    let image = folder.join("world.image");
    let run = |name: &str, source: String, image: Option<&Path>| {
        let mut command = kyocho();
        command.arg("run").arg(program(name, source.as_bytes()));
        if let Some(image) = image {
            command.arg("--image").arg(image);
        }
        command.env("XDG_STATE_HOME", &folder).output().expect("kyocho starts")
    };
    let source = format!("(define (twice x) (* 2 x)) (define n 20) (save-image {image:?})");
    let saved = run("image-save", source, None);
    assert_eq!(saved.status.code(), Some(0), "{}", text(&saved.stderr));
    let key = std::fs::metadata(folder.join("kyocho/image.key")).unwrap();
    assert_eq!(std::os::unix::fs::PermissionsExt::mode(&key.permissions()) & 0o777, 0o600);
    for round in 1..=2 {
        let source = "(set! n (+ n 1)) (display (twice n)) (save-image)";
        let loaded = run("image-load", source.to_owned(), Some(&image));
        assert_eq!(text(&loaded.stdout), (40 + 2 * round).to_string(), "{}", text(&loaded.stderr));
    }
    let mut bytes = std::fs::read(&image).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(&image, &bytes).unwrap();
    let refused = run("image-refused", "(display 'reached)".to_owned(), Some(&image));
    assert_eq!((text(&refused.stdout).as_str(), refused.status.code()), ("", Some(1)));
    assert!(text(&refused.stderr).contains("or was changed since"), "{}", text(&refused.stderr));
}

#[test]
fn libraries_come_from_folders_and_packages() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("libraries");
    for (file, source) in [
        (
            "given/from/flag.sld",
            "(define-library (from flag) (export a) (import (scheme base)) (begin (define a 1)))",
        ),
        (
            "named/from/variable.sld",
            "(define-library (from variable) (export b) (import (scheme base)) (begin (define b 2)))",
        ),
        (
            "packed-1.0/package.scm",
            "(package (library (name (from package)) (path \"from/package.sld\")))",
        ),
        (
            "packed-1.0/from/package.sld",
            "(define-library (from package) (export c) (import (scheme base)) (begin (define c 3)))",
        ),
    ] {
        let path = folder.join(file);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("folders can be made");
        std::fs::write(path, source).expect("the test's folder can be written");
    }
    let archive = folder.join("packed.tgz");
    let packed = Command::new("tar")
        .arg("-czf")
        .arg(&archive)
        .arg("-C")
        .arg(&folder)
        .arg("packed-1.0")
        .status();
    assert!(packed.expect("tar starts").success());
    let source = b"(import (scheme base) (scheme write) (from flag) (from variable) (from package)) (display (list a b c))";
    let path = program("libraries-of-all-kinds", source);
    let output = kyocho()
        .env("KYOCHO_LIBRARY_PATH", format!("/no/such/folder::{}", folder.join("named").display()))
        .arg("run")
        .arg("-I")
        .arg(folder.join("given"))
        .arg("--package")
        .arg(&archive)
        .arg(&path)
        .output()
        .expect("kyocho starts");
    assert_eq!(text(&output.stdout), "(1 2 3)", "{}", text(&output.stderr));
    let nonsense =
        kyocho().arg("run").arg("--package").arg(&path).arg(&path).output().expect("kyocho starts");
    assert_eq!(nonsense.status.code(), Some(1));
    assert!(text(&nonsense.stderr).contains("not a gzipped tar"), "{}", text(&nonsense.stderr));
}

#[test]
fn manual_pages_and_completions_have_every_command() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("pages");
    let _ = std::fs::remove_dir_all(&folder);
    let output = kyocho().arg("pages").arg(&folder).output().expect("kyocho starts");
    assert!(output.status.success(), "{}", text(&output.stderr));
    let read = |file: &str| {
        std::fs::read_to_string(folder.join(file)).unwrap_or_else(|error| panic!("{file}: {error}"))
    };
    let completions = [
        read("bash-completion/completions/kyocho"),
        read("zsh/site-functions/_kyocho"),
        read("fish/vendor_completions.d/kyocho.fish"),
    ];
    for command in ["run", "serve", "unix", "ps", "dsm"] {
        let page = read(&format!("man/man1/kyocho-{command}.1"));
        assert!(page.contains(".SH SYNOPSIS"), "{page}");
        assert!(completions.iter().all(|shell| shell.contains(command)), "{command}");
    }
    assert!(read("man/man1/kyocho-dsm-run.1").contains("hosts"), "commands of commands, too");
    assert!(!folder.join("man/man1/kyocho-pages.1").exists(), "it is for installations alone");
    let nowhere = kyocho().args(["pages", "/dev/null/share"]).output().expect("kyocho starts");
    assert_eq!(nowhere.status.code(), Some(1));
    assert!(text(&nowhere.stderr).contains("/dev/null/share"), "{}", text(&nowhere.stderr));
}
