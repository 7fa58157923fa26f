//! A server under load: users define, allocate, spawn, open sockets, run programs, connect,
//! disconnect and are killed, and so are services. Memory, kernel threads and descriptors of the
//! server stay constant. `scripts/soak` runs it for minutes.
#![expect(
    clippy::unwrap_used,
    reason = "what helpers of tests unwrap fails the test, as in the tests themselves"
)]
#![expect(clippy::disallowed_methods, reason = "it lasts for a time, on kernel threads of its own")]

#[path = "serve/client.rs"]
mod client;
#[path = "serve/server.rs"]
#[expect(dead_code, reason = "other tests of the doors use the rest")]
mod server;
#[path = "serve/token.rs"]
mod token;

use client::{Client, connect};
use core::sync::atomic::{AtomicU64, Ordering};
use core::time::Duration;
use server::{Server, WATCHDOG};
use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::Command;
use std::sync::Barrier;
use std::time::Instant;
use token::await_token;

/// Duration, unless `KYOCHO_SOAK_SECONDS` is set.
const SECONDS: u64 = 180;
/// Number of samples. Each is taken while no user is connected.
const SAMPLES: usize = 9;
/// Users of the Unix socket at a time. One more uses telnet, and one an editor's connection.
const USERS: usize = 4;

/// Inputs and their answers. `$N` is a number that differs from session to session. A thread that
/// waits for another one joins it with a time limit, because the other one may have been killed.
/// Then the answer may be wrong.
const DEEDS: &[(&str, &str)] = &[
    (
        "(define (square x) (* x x)) (define-record-type point (make-point x) point? (x px)) (square (px (make-point 7)))",
        "49",
    ),
    (
        "(define-library (mine) (export twice) (import (scheme base)) (begin (define (twice x) (* 2 x)))) (import (mine)) (twice 21)",
        "42",
    ),
    (
        "(define-syntax swap! (syntax-rules () ((_ a b) (let ((t a)) (set! a b) (set! b t))))) (let ((x 1) (y 2)) (swap! x y) (list x y))",
        "(2 1)",
    ),
    ("(let loop ((n 0)) (if (< n 200000) (begin (make-vector 10 n) (loop (+ n 1))) n))", "200000"),
    (
        "(define kept (make-vector 100000 $N)) (define table (make-hash-table)) (do ((i 0 (+ i 1))) ((= i 1000)) (hash-table-set! table i (list i))) (gc) (hash-table-size table)",
        "1000",
    ),
    (
        "(apply + (map thread-join! (map (lambda (i) (spawn (lambda () (thread-sleep! 0.001) i))) (iota 20))))",
        "190",
    ),
    (
        "(define c (make-channel)) (define s (spawn (lambda () (do ((i 0 (+ i 1))) ((= i 100)) (channel-send! c i))))) (define (next) (select ((x (channel-receive c)) x) ((thread-sleep! 20) (thread-join! s 1 'late)))) (do ((i 0 (+ i 1)) (sum 0 (+ sum (next)))) ((= i 100) sum))",
        "4950",
    ),
    (
        "(define t (spawn (lambda () (raw-sleep 1000)))) (thread-terminate! t) (guard (e ((terminated-thread-exception? e) 'gone)) (thread-join! t))",
        "gone",
    ),
    (
        "(do ((i 0 (+ i 1))) ((= i 10)) (spawn (lambda () (let loop () (thread-yield!) (loop))))) (>= (length (threads)) 11)",
        "#t",
    ),
    ("(guard (e (#t 'full)) (let loop ((l '())) (loop (cons (make-vector 1000 0) l))))", "full"),
    (
        "(guard (e (#t 'bomb)) (let loop () (spawn (lambda () (thread-sleep! 1000))) (loop)))",
        "bomb",
    ),
    ("(guard (e (#t 'deep)) (let loop ((n 0)) (+ 1 (loop n))))", "deep"),
    (
        "(define l (tcp-listen \\\"127.0.0.1\\\" 0)) (define port (string->number (car (reverse (string-split (socket-address l) #\\\\:))))) (define s (tcp-connect \\\"127.0.0.1\\\" port)) (define a (socket-accept l)) (define out (socket-output-port s)) (write-string \\\"said\\\" out) (flush-output-port out) (socket-end! s) (read-line (socket-input-port a))",
        "\\\"said\\\"",
    ),
    ("(import (kyocho unix)) (run/string \\\"printf\\\" \\\"here\\\")", "\\\"here\\\""),
    (
        "(import (kyocho unix)) (define p (start-programs '((\\\"sleep\\\" \\\"1000\\\")) #f #f #f '())) (length p)",
        "4",
    ),
    (
        "(define in (open-input-file \\\"/dev/zero\\\")) (read-char in) (call-with-output-string (lambda (p) (write 'text p)))",
        "\\\"text\\\"",
    ),
    (
        "(import (kyocho mailbox)) (define p (spawn-linked (lambda () (let ((who (receive-message))) (send! who 'pong))))) (send! p (self)) (define answer (receive-message (lambda (m) #t) 20 #f)) (if answer answer (thread-join! (process-thread p) 1 'late))",
        "pong",
    ),
    (
        "(define (work n) (if (= n 0) 'done (work (- n 1)))) (profile (lambda () (work 100000))) (work 10)",
        "done",
    ),
];

/// Whether an answer is excused: a thread was killed, or the user has reached a limit in another
/// session.
fn is_excused(answer: &str) -> bool {
    let reasons = [
        "terminated",
        "#(exit ",
        "internal error",
        "too many ",
        "out of memory",
        "deadlock",
        "uncaught exception",
    ];
    answer == r#"{"show":"done"}"# || reasons.iter().any(|reason| answer.contains(reason))
}

/// State that all threads of the test share.
struct Soak {
    server: Server,
    addresses: [String; 2],
    /// The token for editors.
    token: String,
    sessions: AtomicU64,
    orders: AtomicU64,
}

fn open(listen: &[&str]) -> Soak {
    let config = format!(
        "telnet_user = \"tim\"\nnrepl_user = \"ed\"\n[limits]\nmemory_mib = 64\nthreads = 200\nports = 60\nsockets = 30\n\
         [user.eva]\nuid = {}\nsessions = 20\nfiles = true\n[user.tim]\n[user.ed]\n",
        kyocho_sys::peer::own_user()
    );
    let mut server = Server::start_in("soak", Some(&config), listen, &[("KYOCHO_CONTROL", "1")]);
    let address = |server: &mut Server, kind: &str| {
        let line = server.await_line(kind);
        line.rsplit_once(kind).unwrap().1.trim().to_owned()
    };
    let telnet = address(&mut server, "telnet:");
    let token = await_token(&mut server);
    let addresses = [telnet, address(&mut server, "nrepl:")];
    Soak { server, addresses, token, sessions: AtomicU64::new(0), orders: AtomicU64::new(0) }
}

impl Soak {
    /// Opens a session, and repeats that while earlier sessions end.
    fn session(&self) -> Client {
        loop {
            let mut client = connect(&self.server);
            if client.line().contains("welcome") {
                return client;
            }
        }
    }

    /// Runs one session with some inputs. How it ends differs.
    fn visit(&self, number: u64) {
        let mut client = self.session();
        for turn in 0..3 {
            let (deed, value) = DEEDS[(number + 7 * turn) as usize % DEEDS.len()];
            let answer = client.eval(&deed.replace("$N", &number.to_string()));
            assert!(
                answer.contains(&format!("\"{value}\"]")) || is_excused(&answer),
                "{deed}: {answer}"
            );
        }
        match number % 4 {
            0 => drop(client.eval("(exit)")),
            1 => client.send(r#"{"do":"eval","text":"(let loop () (loop))"}"#),
            2 => client.send(r#"{"do":"interrupt"}"#),
            _ => {}
        }
        self.sessions.fetch_add(1, Ordering::Relaxed);
    }

    fn tcp(&self, door: usize) -> TcpStream {
        let stream = TcpStream::connect(&self.addresses[door]).unwrap();
        stream.set_read_timeout(Some(WATCHDOG)).unwrap();
        stream
    }

    /// Sends a line by telnet and reads the answer, unless there are too many sessions.
    fn telnet(&self) {
        let mut stream = self.tcp(0);
        // If the server closes the connection, it has sent the reason.
        let _ = stream.write_all(b"(define x (iota 1000)) (length x)\r\n");
        let (mut seen, mut buffer) = (String::new(), [0; 512]);
        while !seen.contains("1000") && !seen.contains("many") {
            match stream.read(&mut buffer) {
                Ok(count) if count > 0 => seen.push_str(&String::from_utf8_lossy(&buffer[..count])),
                _ => return,
            }
        }
    }

    /// Runs a session of an editor, which is not closed.
    fn editor(&self) {
        let mut stream = self.tcp(1);
        let (token, length) = (&self.token, self.token.len());
        let request = format!("d2:op4:eval4:code13:(iota 100000)2:id1:15:token{length}:{token}e");
        let _ = stream.write_all(request.as_bytes());
        let mut buffer = [0; 512];
        let _ = stream.read(&mut buffer);
    }

    /// Kills a thread of the server: a user's, or a service.
    fn order(&self, round: u64) {
        let wanted =
            ["eva:", "gc", "init:", "system-call", "watchdog", "shares"][round as usize % 6];
        let own = self.server.process.id().to_string();
        let mut command = Command::new(env!("CARGO_BIN_EXE_kyocho"));
        let listed = command.args(["ps", &own]).output().unwrap();
        let table = String::from_utf8_lossy(&listed.stdout).into_owned();
        // The first word is a number, and the name begins at the seventh.
        let is_wanted = |line: &&str| line.split_whitespace().nth(6) == Some(wanted);
        let Some(line) = table.lines().rfind(is_wanted) else { return };
        let id = line.split_whitespace().next().unwrap_or_default();
        let mut command = Command::new(env!("CARGO_BIN_EXE_kyocho"));
        // It may have ended meanwhile.
        if command.args(["kill", id]).output().unwrap().status.success() {
            self.orders.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Takes a sample when all users have disconnected.
    fn sample(&self, elapsed: Duration) -> Sample {
        let process = Path::new("/proc").join(self.server.process.id().to_string());
        let entries = |folder: &str| fs::read_dir(process.join(folder)).unwrap().count();
        // It takes time until collections close what sessions left open, and kernel threads are
        // released.
        let mut before = usize::MAX;
        while entries("fd") + entries("task") < before {
            before = entries("fd") + entries("task");
            drop(self.session().eval("(gc)"));
            std::thread::sleep(Duration::from_secs(2));
        }
        let status = fs::read_to_string(process.join("status")).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
        let memory_kib = line.split_whitespace().next().unwrap().parse().unwrap();
        let sample =
            Sample { memory_kib, kernel_threads: entries("task"), descriptors: entries("fd") };
        let (sessions, orders) =
            (self.sessions.load(Ordering::Relaxed), self.orders.load(Ordering::Relaxed));
        let said = format!(
            "soak serve: {:.0} s, {sessions} sessions, {orders} killed; {sample:?}",
            elapsed.as_secs_f64()
        );
        // Written directly, past the test harness. An error cannot be reported anywhere.
        let _ = writeln!(std::io::stderr(), "{said}");
        sample
    }
}

#[derive(Clone, Copy, Debug)]
struct Sample {
    memory_kib: usize,
    kernel_threads: usize,
    descriptors: usize,
}

/// A figure: its name, how to read it, and the increase that is tolerated.
type Figure = (&'static str, fn(&Sample) -> usize, usize);

const FIGURES: [Figure; 3] = [
    ("KiB", |sample| sample.memory_kib, 4096),
    ("kernel threads", |sample| sample.kernel_threads, 5),
    ("descriptors", |sample| sample.descriptors, 5),
];

/// Runs users for a while.
fn stretch(soak: &Soak, length: Duration, begun: u64) {
    let end = Instant::now() + length;
    let together = Barrier::new(USERS + 3);
    let visits = |user: u64| {
        together.wait();
        let mut number = begun + user;
        while Instant::now() < end {
            soak.visit(number);
            number += USERS as u64;
        }
    };
    let visits = &visits;
    std::thread::scope(|scope| {
        (0..USERS as u64).for_each(|user| drop(scope.spawn(move || visits(user))));
        let again = |deed: &dyn Fn(u64)| {
            together.wait();
            let mut round = 0;
            while Instant::now() < end {
                deed(round);
                round += 1;
                std::thread::sleep(Duration::from_millis(100));
            }
        };
        scope.spawn(move || again(&|_| soak.telnet()));
        scope.spawn(move || again(&|_| soak.editor()));
        scope.spawn(move || again(&|round| soak.order(round)));
    });
}

#[test]
#[ignore = "lasts minutes: scripts/soak"]
fn soak() {
    let seconds = std::env::var("KYOCHO_SOAK_SECONDS").ok().and_then(|text| text.parse().ok());
    let length = Duration::from_secs(seconds.unwrap_or(SECONDS)) / SAMPLES as u32;
    let soak = open(&["telnet:127.0.0.1:0", "nrepl:127.0.0.1:0"]);
    let start = Instant::now();
    let all: Vec<Sample> = (0..SAMPLES)
        .map(|_| {
            stretch(&soak, length, soak.sessions.load(Ordering::Relaxed));
            soak.sample(start.elapsed())
        })
        .collect();
    // The least value of the last third must not exceed what the first third needed: free memory
    // that the heap keeps varies.
    let (first, last) = (&all[..SAMPLES / 3], &all[SAMPLES - SAMPLES / 3..]);
    for (what, figure, more) in FIGURES {
        let most = first.iter().map(figure).max().unwrap();
        let least = last.iter().map(figure).min().unwrap();
        assert!(least <= most + most / 10 + more, "{what} grow: {all:?}");
    }
}
