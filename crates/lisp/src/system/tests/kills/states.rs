//! The states in which a thread is killed: what it does, and how the test detects that it does.

/// How the test detects that the thread is in the state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum At {
    /// It computes.
    Work,
    /// It waits for another thread, a point in time, or the collector.
    Wait,
    /// It is blocked in the host's kernel.
    Host,
    /// It has taken most of its user's memory. Most of the time it computes, or waits for
    /// collections.
    Shortage,
}

pub(super) use At::{Host, Shortage, Wait, Work};

/// A state: its name, how to detect it, definitions, and the expression that the thread evaluates.
pub(super) type State = (&'static str, At, &'static str, &'static str);

pub(super) const STATES: &[State] = &[
    ("runs", Work, "", "(let loop () (loop))"),
    (
        "recurses",
        Work,
        "",
        "(let loop () (let f ((n 0)) (if (< n 10000) (+ 1 (f (+ n 1))) 0)) (loop))",
    ),
    (
        "sleeps-deep",
        Wait,
        "",
        "(let f ((n 0)) (if (< n 100000) (+ 1 (f (+ n 1))) (thread-sleep! 1000)))",
    ),
    ("allocates", Work, "", "(let loop () (list 1 2 3) (loop))"),
    ("raises", Work, "", "(let loop () (guard (e (#t (loop))) (raise 'again)))"),
    (
        "handles",
        Work,
        "",
        "(let loop ()
           (with-exception-handler
             (lambda (e) (do ((i 0 (+ i 1))) ((= i 1000) 'handled)))
             (lambda () (raise-continuable 'again)))
           (loop))",
    ),
    ("captures", Work, "", "(let loop () (call/cc (lambda (k) (loop))))"),
    ("searches", Work, "(define long (iota 1000000))", "(let loop () (member 'x long) (loop))"),
    ("fills", Work, "", "(let loop () (vector-fill! (make-vector 1000000 0) 1) (loop))"),
    ("multiplies", Work, "", "(let loop () (expt 3 100000) (loop))"),
    (
        "compares",
        Work,
        "(define (dag n) (let loop ((n n) (x '())) (if (= n 0) x (loop (- n 1) (cons x x)))))",
        "(let loop () (equal? (dag 60) (dag 60)) (loop))",
    ),
    (
        "prints",
        Work,
        "(define long (iota 100000))",
        "(let loop () (write long (open-output-string)) (loop))",
    ),
    (
        "reads",
        Work,
        "(define text (make-string 100000 #\\'))",
        "(let loop () (guard (e (#t #f)) (read (open-input-string text))) (loop))",
    ),
    (
        "evaluates",
        Work,
        "",
        "(let loop () (eval '(let-values (((a b) (values 1 2))) (+ a b)) (interaction-environment)) (loop))",
    ),
    (
        "compiles",
        Work,
        "(define form (cons 'begin (make-list 500 '(let ((x 1)) (lambda (y) (+ x y))))))",
        "(let loop () (eval form (interaction-environment)) (loop))",
    ),
    (
        "matches",
        Work,
        "(import (srfi 115))",
        "(regexp-matches '(: (* (* (* \"a\"))) \"b\") (make-string 2000 #\\a))",
    ),
    (
        "lacks-memory",
        Shortage,
        "",
        "(let loop () (guard (e (#t (gc))) (let more ((l '())) (more (cons 1 l)))) (loop))",
    ),
    (
        "lacks-large-memory",
        Shortage,
        "",
        "(let loop () (guard (e (#t (gc))) (let more ((l '())) (more (cons (make-vector 100000 0) l)))) (loop))",
    ),
    ("yields", Work, "", "(let loop () (thread-yield!) (loop))"),
    ("collects", Wait, "", "(let loop () (gc) (loop))"),
    ("sleeps", Wait, "", "(thread-sleep! 1000)"),
    ("mutex", Wait, "(define taken (make-mutex)) (mutex-lock! taken #f #f)", "(mutex-lock! taken)"),
    (
        "mutex-for-a-time",
        Wait,
        "(define taken (make-mutex)) (mutex-lock! taken #f #f)",
        "(mutex-lock! taken 1000)",
    ),
    (
        "condition",
        Wait,
        "",
        "(let ((m (make-mutex))) (mutex-lock! m) (mutex-unlock! m (make-condition-variable)))",
    ),
    (
        "condition-for-a-time",
        Wait,
        "",
        "(let ((m (make-mutex))) (mutex-lock! m) (mutex-unlock! m (make-condition-variable) 1000))",
    ),
    ("receives", Wait, "", "(channel-receive (make-channel))"),
    ("sends", Wait, "", "(channel-send! (make-channel) 1)"),
    (
        "sends-to-a-full-one",
        Wait,
        "(define full (make-channel 1)) (channel-send! full 1)",
        "(channel-send! full 1)",
    ),
    (
        "selects-to-receive",
        Wait,
        "(define there (make-channel))",
        "(select ((channel-receive there) 1) ((channel-receive (make-channel 1)) 2))",
    ),
    (
        "selects-to-send",
        Wait,
        "(define there (make-channel))",
        "(select ((channel-send! there (list 1)) 1) ((channel-send! (make-channel) 2) 2))",
    ),
    (
        "selects-to-send-to-a-full-one",
        Wait,
        "(define full (make-channel 1)) (channel-send! full 1)",
        "(select ((channel-send! full 1) 1) ((channel-receive (make-channel)) 2))",
    ),
    (
        "selects-for-a-time",
        Wait,
        "(define there (make-channel))",
        "(select ((channel-receive there) 1) ((channel-send! there 1) 2) ((thread-sleep! 1000) 3))",
    ),
    ("mailbox", Wait, "(import (kyocho mailbox))", "(receive-message)"),
    (
        "mailbox-for-a-time",
        Wait,
        "(import (kyocho mailbox))",
        "(receive-message (lambda (m) #f) 1000)",
    ),
    (
        "joins",
        Wait,
        "(define other (spawn (lambda () (thread-sleep! 1000)) 'other))",
        "(thread-join! other)",
    ),
    ("joins-itself", Wait, "", "(thread-join! (current-thread))"),
    ("after", Wait, "", "(dynamic-wind values values (lambda () (thread-sleep! 1000)))"),
    (
        "calls-a-gate",
        Wait,
        "(import (kyocho gate)) (define server (gate-serve \"$folder/gate\" (lambda (m b) (thread-sleep! 1000)))) (define gate (gate-connect \"$folder/gate\"))",
        "(gate-call gate 0 (bytevector))",
    ),
    ("kernel-call", Host, "", "(raw-sleep 1000)"),
    ("named-pipe", Host, "", "(read-char (open-input-file \"$folder/silent\"))"),
    ("named-pipe-without-a-writer", Host, "", "(open-input-file \"$folder/alone\")"),
    ("named-pipe-without-a-reader", Host, "", "(open-output-file \"$folder/alone\")"),
    (
        "full-named-pipe",
        Host,
        "(define p (open-output-file \"$folder/stuffed\"))",
        "(let loop () (write-string \"0123456789\" p) (loop))",
    ),
    (
        "port-in-use",
        Host,
        "(define p (open-input-file \"$folder/silent\")) (spawn (lambda () (read-char p)) 'first) (thread-sleep! 0.05)",
        "(read-char p)",
    ),
    (
        "output-port-in-use",
        Host,
        "(define p (open-output-file \"$folder/stuffed\")) (define (write-all) (write-string \"0123456789\" p) (write-all)) (spawn write-all 'first) (thread-sleep! 0.05)",
        "(write-all)",
    ),
    (
        "output-of-a-program",
        Host,
        "(define started (start-programs '((\"sleep\" \"1000\")) #f #f #f '()))",
        "(read-u8 (cadr (cdr started)))",
    ),
    (
        "input-of-a-program",
        Host,
        "(define started (start-programs '((\"sleep\" \"1000\")) #t #f #f '()))",
        "(let loop () (write-u8 1 (cadr started)) (loop))",
    ),
    (
        "end-of-a-program",
        Host,
        "(define started (start-programs '((\"sleep\" \"1000\")) #f #f #f '()))",
        "(program-wait (car (car started)))",
    ),
    ("accepts", Host, "(define l (tcp-listen \"127.0.0.1\" 0))", "(socket-accept l)"),
    ("connects", Host, "", "(tcp-connect \"127.0.0.1\" $silent)"),
    ("looks-a-host-up", Host, "", "(tcp-connect \"silent.test\" 80)"),
    ("receives-by-tcp", Host, TCP, "(read-char (socket-input-port client))"),
    (
        "sends-by-tcp",
        Host,
        TCP,
        "(let ((p (socket-output-port client))) (let loop () (write-string \"0123456789\" p) (loop)))",
    ),
    ("begins-tls", Host, TCP, "(tls-connect \"localhost\" (port-of l))"),
    (
        "begins-tls-behind-another",
        Host,
        TLS_SILENT,
        "(let ((p (socket-output-port served))) (write-char #\\a p) (flush-output-port p))",
    ),
    ("receives-by-tls", Host, TLS, "(read-char (socket-input-port client))"),
    (
        "sends-by-tls",
        Host,
        TLS,
        "(let ((p (socket-output-port client))) (let loop () (write-string \"0123456789\" p) (loop)))",
    ),
    (
        "shared-lock",
        Host,
        "(import (kyocho dsm)) (spawn (lambda () (with-shared-lock 7 (thread-sleep! 1000))) 'other) (thread-sleep! 0.1)",
        "(shared-lock! 7)",
    ),
    (
        "shared-condition",
        Host,
        "(import (kyocho dsm))",
        "(with-shared-lock 8 (let loop () (shared-wait! 8 0) (loop)))",
    ),
];

const TCP: &str = "
    (define l (tcp-listen \"127.0.0.1\" 0))
    (define client (tcp-connect \"127.0.0.1\" (port-of l)))
    (define served (socket-accept l))";

const TLS_SILENT: &str = "
    (define l (tls-listen \"127.0.0.1\" 0 \"$certificate\" \"$key\"))
    (define client (tcp-connect \"127.0.0.1\" (port-of l)))
    (define served (socket-accept l))
    (spawn (lambda () (read-char (socket-input-port served))) 'first)
    (thread-sleep! 0.05)";

const TLS: &str = "
    (define l (tls-listen \"127.0.0.1\" 0 \"$certificate\" \"$key\"))
    (define other (spawn (lambda () (read-char (socket-input-port (socket-accept l)))) 'other))
    (define client (tls-connect \"localhost\" (port-of l) \"$certificate\"))";
