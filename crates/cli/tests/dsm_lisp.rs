//! `kyocho dsm run FILE.scm`: Scheme programs on several nodes.
#![expect(clippy::unwrap_used, reason = "a test fails by a panic, in helpers too")]

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

/// Runs a program on this number of nodes. Returns exit code, standard output and standard error.
fn run(name: &str, nodes: &str, program: &str) -> (Option<i32>, String, String) {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("dsm-lisp");
    fs::create_dir_all(&folder).unwrap();
    let file = folder.join(name).with_extension("scm");
    let head = "(import (scheme base) (scheme write) (srfi 18) (kyocho dsm))\n";
    fs::write(&file, format!("{head}{program}")).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_kyocho"));
    command.args(["dsm", "run", "-n", nodes]).arg(file).stdin(Stdio::null());
    let output = command.output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code(), text(output.stdout), text(output.stderr))
}

#[test]
fn threads_of_all_nodes_count_in_one_vector() {
    let program = "
        (define sums (make-shared-vector 600 1))
        (define (count n)
          (if (> n 0)
              (begin
                (with-shared-lock 1
                  (shared-vector-set! sums 350 (+ 1 (shared-vector-ref sums 350))))
                (count (- n 1)))))
        (define (spawn thunk) (thread-start! (make-thread thunk)))
        (for-each thread-join! (map (lambda (i) (spawn (lambda () (count 40)))) '(1 2 3)))
        (shared-vector-set! sums (shared-node) (* 1.5 (shared-node)))
        (shared-barrier)
        (if (= (shared-node) (- (shared-nodes) 1))
            (begin
              (write (map (lambda (i) (shared-vector-ref sums i)) '(0 1 2 3 350)))
              (newline)))";
    let (code, output, errors) = run("count", "3", program);
    assert_eq!((code, output.trim()), (Some(0), "(0.0 1.5 3.0 1 361)"), "{errors}");
}

#[test]
fn a_program_has_the_sizes_it_asks_for_and_moves_managers_to_where_they_are_used() {
    let program = "
        (shared-join! (* 80 1048576) 10000)
        (define v (make-shared-vector 6000000 0))
        (define (sent) (cdr (assq 'messages-sent (shared-statistics))))
        (define (touch) (with-shared-lock 9998 (shared-vector-set! v 5999999 (+ 1 (shared-vector-ref v 5999999)))))
        (define (message thunk) (guard (e (#t (error-object-message e))) (thunk) 'none))
        (if (= (shared-node) 0) (begin (shared-move-lock! 9998 0) (shared-vector-move! v 5999990 6000000 0)))
        (touch)
        (shared-barrier)
        (if (= (shared-node) 0)
            (let ((before (sent)))
              (touch)
              (write (list (- (sent) before) (shared-vector-ref v 5999999)
                           (message (lambda () (shared-lock! 10000)))
                           (message (lambda () (shared-move-lock! 1 2)))
                           (message (lambda () (shared-vector-move! v 0 1 2)))
                           (message (lambda () (shared-join! 1 1)))))
              (newline)))";
    let (code, output, errors) = run("sizes", "2", program);
    let expected = "(0 3 \"shared-lock!: lock 10000 is outside of the layout\" \
                    \"shared-move-lock!: node 2 is outside of the layout\" \
                    \"shared-vector-move!: node 2 is outside of the layout\" \
                    \"shared-join!: this program has joined already: set the sizes before any other use of shared memory\")";
    assert_eq!((code, output.trim()), (Some(0), expected), "{errors}");
}

#[test]
fn nodes_share_vectors_in_a_region_far_away_and_get_an_error_where_they_differ() {
    let program = "
        (define (message thunk) (guard (e (#t (error-object-message e))) (thunk) 'none))
        (define differ
          (message (lambda () (make-shared-region (if (= (shared-node) 2) 4096 8192) (expt 2 50)))))
        (define far (make-shared-region 8192 (expt 2 50)))
        (define near (make-shared-vector 3 0))
        (define sums (make-shared-vector 3 0 far))
        (with-shared-lock 1
          (for-each (lambda (v) (shared-vector-set! v 1 (+ 1 (shared-vector-ref v 1)))) (list near sums)))
        (shared-vector-set! sums (if (= (shared-node) 0) 0 2) (shared-region-address far))
        (shared-barrier)
        (if (= (shared-node) 1)
            (begin
              (write (list (shared-vector->list near) (shared-vector->list sums)
                           (message (lambda () (make-shared-vector 1000 0 far)))))
              (newline)
              (display differ)))";
    let (code, output, errors) = run("regions", "3", program);
    let mut lines = output.lines();
    let there = 1_u64 << 50;
    let expected = format!(
        "((0 3 0) ({there} 3 {there}) \"make-shared-vector: 12000 bytes do not fit: 4096 are left; \
         ask for more shared memory when joining, or make a region\")"
    );
    assert_eq!((code, lines.next()), (Some(0), Some(expected.as_str())), "{errors}");
    let differ = "make-shared-region: node 0 creates a region of 8192 bytes at 0x4000000000000 (Cyclic), \
                  node 2 a region of 4096 bytes at 0x4000000000000 (Cyclic): all nodes must create the same \
                  regions in the same order";
    assert_eq!(lines.next(), Some(differ));
}

#[test]
fn a_failed_node_is_an_exception_in_threads_that_wait_for_it() {
    let program = "
        (define v (make-shared-vector 1 0))
        (if (= (shared-node) 1) (error \"this node fails\"))
        (display
          (guard (e (#t (error-object-message e))) (shared-barrier) 'crossed))
        (newline)
        (display (shared-vector-ref v 0))";
    let (code, output, errors) = run("fail", "2", program);
    assert!(output.starts_with("shared-barrier: node 1 is dead"), "{output} {errors}");
    assert!(output.ends_with("\n0"), "what is here can be read: {output}");
    assert!(errors.contains("this node fails") && code != Some(0), "{code:?} {errors}");
}
