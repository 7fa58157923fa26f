//! Hostile input: programs, files and streams that must not bring the command down.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

fn kyocho() -> Command {
    Command::new(env!("CARGO_BIN_EXE_kyocho"))
}

/// Writes `source` to a file of this test.
fn program(name: &str, source: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("bad-{name}.scm"));
    std::fs::write(&path, source).expect("the test's folder can be written");
    path
}

fn run(path: &Path, options: &[&str]) -> Output {
    let mut command = kyocho();
    command.args(options).arg("run").arg(path).stdin(Stdio::null());
    command.output().expect("kyocho starts")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn full() -> File {
    File::options().write(true).open("/dev/full").expect("Linux has /dev/full")
}

#[test]
fn errors_of_tail_calls_name_the_form_that_began_them() {
    for (at, wrong) in [
        "(car 1 2)",
        "((lambda (x) x))",
        "(raise 'x)",
        "(1 2)",
        "(f)",
        "(load \"/nowhere/at/all\")",
        "(with-exception-handler (lambda (e) 1) (lambda () (raise 1)))",
    ]
    .iter()
    .enumerate()
    {
        let path = program(
            &format!("tail-{at}"),
            &format!("(define (f) (g 1))\n(define (g) 1)\n {wrong}"),
        );
        let output = run(&path, &[]);
        let message = text(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{wrong}");
        assert!(message.starts_with(&format!("{}:3:2: ", path.display())), "{wrong}: {message}");
    }
}

#[test]
fn lost_output_is_a_failure() {
    let path = program("lost", "(display \"hello\")");
    let output = kyocho().arg("run").arg(path).stdout(full()).output().expect("kyocho starts");
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("output was lost"));
}

#[test]
fn a_message_that_cannot_be_printed_keeps_the_exit_code() {
    let path = program("unheard", "(car 1)");
    let output = kyocho().arg("run").arg(path).stderr(full()).output().expect("kyocho starts");
    assert_eq!(output.status.code(), Some(1));
}

#[test]
fn a_program_without_end_is_refused() {
    let output = run(Path::new("/dev/zero"), &[]);
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(text(&output.stderr), "cannot read /dev/zero: more than 256 MiB\n");
}

/// When a heap fills up with pairs, no collection may be repeated that frees almost nothing.
#[test]
fn memory_that_runs_out_by_pairs_is_an_error_that_can_be_handled() {
    let source = "(define kept '())
(define seen
  (guard (e (#t (set! kept '()) (error-object-message e)))
    (let loop () (set! kept (cons 1 kept)) (loop))))
(display seen)
(display (length (make-list 1000 1)))";
    let output = run(&program("pairs", source), &["--memory", "32"]);
    assert_eq!(text(&output.stdout), "out of memory1000", "{}", text(&output.stderr));
    assert_eq!(output.status.code(), Some(0));
}

#[test]
fn memory_that_runs_out_in_a_thread_raises_there_and_the_rest_goes_on() {
    let source = "(define hog
  (make-thread (lambda () (let loop ((l '())) (loop (cons (make-vector 10000 0) l))))))
(thread-start! hog)
(display (guard (e ((uncaught-exception? e) 'joined)) (thread-join! hog)))
(display (length (make-list 1000 1)))";
    let output = run(&program("hog", source), &["--memory", "32"]);
    assert_eq!(text(&output.stdout), "joined1000", "{}", text(&output.stderr));
}

#[test]
fn deep_and_circular_data_are_only_data() {
    let source = "(define (nest n x) (if (= n 0) x (nest (- n 1) (list x))))
(define (count n) (if (= n 0) 0 (+ 1 (count (- n 1)))))
(define cycle (list 1 2))
(set-cdr! (cdr cycle) cycle)
(display (equal? (nest 1000000 1) (nest 1000000 1)))
(let ((port (open-output-string)))
  (write (nest 1000000 1) port)
  (display (string-length (get-output-string port))))
(display (count 1000000))
(write cycle)
(display (guard (e (#t 'caught)) (length cycle)))
(display (guard (e (#t 'caught)) (eval cycle (interaction-environment))))
(display (guard (e (#t 'caught)) (eval (nest 1000000 1) (interaction-environment))))";
    let output = run(&program("deep", source), &[]);
    let expected = "#t20000011000000#0=(1 2 . #0#)caughtcaughtcaught";
    assert_eq!(text(&output.stdout), expected, "{}", text(&output.stderr));
    assert_eq!(output.status.code(), Some(0));
}

#[test]
fn forms_nest_a_thousand_deep_and_quoted_data_fifty_thousand() {
    let deep = |open: &str, inner: &str, close: &str, n: usize| {
        format!("{}{inner}{}", open.repeat(n), close.repeat(n))
    };
    let source = format!(
        "(define (depth x) (let loop ((x x) (n 0)) (if (pair? x) (loop (car x) (+ n 1)) n)))
(display (depth '{}))
(display (list {} {} {}))
(define (nest n x) (if (= n 0) x (nest (- n 1) (list x))))
(display (depth (eval (list 'quote (nest 50000 1)) (interaction-environment))))",
        deep("(", "1", ")", 50_000),
        deep("(+ 1 ", "0", ")", 1_900),
        deep("(let ((x 1)) ", "0", ")", 1_100),
        deep("((lambda (x) ", "0", ") 1)", 1_100),
    );
    let output = run(&program("nested", &source), &[]);
    assert_eq!(text(&output.stdout), "50000(1900 0 0)50000", "{}", text(&output.stderr));
    for (name, source, limit) in [
        ("nested-code", deep("(+ 1 ", "0", ")", 5_000), "2000 forms"),
        ("nested-data", deep("'(", "0", ")", 100_001), "100000 levels"),
    ] {
        let output = run(&program(name, &source), &[]);
        assert_eq!(output.status.code(), Some(1));
        assert!(text(&output.stderr).contains(limit), "{}", text(&output.stderr));
    }
}

#[test]
fn input_without_end_is_refused() {
    let zeros = || Stdio::from(File::open("/dev/zero").expect("Linux has /dev/zero"));
    let output = kyocho().stdin(zeros()).output().expect("kyocho starts");
    assert_eq!(output.status.code(), Some(1));
    let message = text(&output.stderr);
    assert!(message.contains("standard input: more than 256 MiB"), "{message}");
    let deep = ["--engine", "deep", "run", "/dev/zero"];
    let output = kyocho().args(deep).output().expect("kyocho starts");
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("/dev/zero: more than 256 MiB"));
}

#[test]
fn standard_input_that_is_not_utf8_is_named_by_its_place() {
    let path = program("latin1", "");
    std::fs::write(&path, b"(display 1)\n  \xe9").expect("the test's folder can be written");
    let input = File::open(&path).expect("it was just written");
    let output = kyocho().stdin(input).output().expect("kyocho starts");
    assert_eq!(output.status.code(), Some(1));
    let message = text(&output.stderr);
    assert!(message.contains("standard input:2:3: this byte is not UTF-8"), "{message}");
}
