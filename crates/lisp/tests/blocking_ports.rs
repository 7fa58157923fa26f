//! A thread that waits for the host on a port delays no other thread, and can be ended.

use kyocho_lisp::system::{Options, System};
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::PathBuf;
use std::process::Command;

/// A named pipe. It is opened here for reading and writing, so that opening it never blocks.
fn named_pipe(name: &str) -> (PathBuf, fs::File) {
    let path = std::env::temp_dir().join(format!("kyocho-pipe-{}-{name}", std::process::id()));
    let made = Command::new("mkfifo").arg(&path).status().expect("mkfifo is installed");
    assert!(made.success());
    let both = OpenOptions::new().read(true).write(true).open(&path).expect("it was just made");
    (path, both)
}

#[test]
fn waiting_for_input_delays_no_other_thread_and_can_be_ended() {
    let options = Options { virtual_processors: Some(1), ..Options::default() };
    let system = System::boot(options, &mut |_| {}).unwrap();
    let mut session = system.session();
    let (path, mut other_end) = named_pipe("input");
    let mut eval = |text: &str| match session.eval(text, "test") {
        Ok(evaluation) => evaluation.values.join(" "),
        Err(report) => report.to_string(),
    };
    eval(&format!("(define port (open-input-file \"{}\"))", path.display()));
    eval("(define line #f) (define (reader) (set! line (read-line port)))");
    eval("(define first (thread-start! (make-thread reader)))");
    // Half a line: the thread has read it into its buffer, and waits for more.
    other_end.write_all(b"half ").unwrap();
    eval("(thread-sleep! 0.05)");
    // Others run, allocate and collect meanwhile, on the one virtual processor.
    let allocate =
        "(let loop ((i 0) (l '())) (if (< i 3000000) (loop (+ i 1) (cons i '())) 'done))";
    assert_eq!(eval(allocate), "done");
    eval("(thread-terminate! first)");
    assert!(eval("(thread-join! first)").contains("terminated"));
    assert_eq!(eval("line"), "#f");
    // The next thread gets what the ended one had begun to read.
    eval("(define second (thread-start! (make-thread reader)))");
    eval("(thread-sleep! 0.05)");
    other_end.write_all(b"line\nrest").unwrap();
    eval("(thread-join! second)");
    assert_eq!(eval("line"), "\"half line\"");
    fs::remove_file(path).unwrap();
}
