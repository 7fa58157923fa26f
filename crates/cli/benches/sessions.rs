//! How long does an evaluation take beside a thousand other sessions, and what does a session cost?
//!
//! `cargo bench -p kyocho-cli --bench sessions [-- SESSIONS SECONDS [--json]]` connects SESSIONS
//! (1,000) sessions to one `kyocho serve`. Each evaluates `(+ 40 2)` once a second for SECONDS
//! (10), and checks the answer. The bench prints the times from request to answer and the server's
//! resident memory. The clients are microprocesses of the bench's process. Target: p99 at most 20
//! ms, at most 200 KB a session.
//!
//! Baseline, in the same run: the same clients, with a server that has a kernel thread for each
//! connection and always sends the same answer. Its times are those of the host and of the clients.
#![expect(clippy::print_stdout, clippy::unwrap_used, reason = "a bench reports, and may fail")]

use core::time::Duration;
use kyocho_microprocess::net::UnixStream;
use kyocho_microprocess::{Deadline, run, sleep, spawn};
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

const SESSIONS: usize = 1000;
const SECONDS: usize = 10;
const PERIOD: Duration = Duration::from_secs(1);
const WELCOME: &str = r#"{"show":"welcome","user":"bench"}"#;
const ANSWER: &str = r#"{"show":"done","values":["42"]}"#;
/// The argument that makes this program the server of the baseline.
const ANSWERER: &str = "--answer-always";
const THREAD_STACK_BYTES: usize = 64 * 1024;

fn main() {
    let words: Vec<String> = std::env::args().collect();
    if let Some(at) = words.iter().position(|word| word == ANSWERER) {
        return answer_always(Path::new(&words[at + 1]));
    }
    let is_json = words.iter().any(|word| word == "--json");
    let mut numbers = words.iter().filter_map(|word| word.parse().ok());
    let sessions: usize = numbers.next().unwrap_or(SESSIONS);
    let seconds: usize = numbers.next().unwrap_or(SECONDS);
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("sessions");
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    for (name, start) in [("threads", threads as fn(&Path) -> Child), ("kyocho", serve)] {
        let found = measure(&folder, start(&folder), sessions, seconds);
        if is_json {
            println!("{}", found.to_json(name, sessions));
        } else {
            println!("{name}: {sessions} connections, {} answers, one a second each", found.count);
            println!(
                "  p50 {:.2} ms, p99 {:.2} ms, longest {:.2} ms; {:.1} KiB a connection",
                found.p50_ms, found.p99_ms, found.longest_ms, found.each_kib
            );
        }
    }
}

/// The figures of a server.
struct Found {
    count: usize,
    p50_ms: f64,
    p99_ms: f64,
    longest_ms: f64,
    each_kib: f64,
}

impl Found {
    fn to_json(&self, server: &str, sessions: usize) -> serde_json::Value {
        serde_json::json!({
            "server": server, "sessions": sessions, "answers": self.count, "p50_ms": self.p50_ms,
            "p99_ms": self.p99_ms, "longest_ms": self.longest_ms, "kib_a_session": self.each_kib,
        })
    }
}

fn measure(folder: &Path, mut server: Child, sessions: usize, seconds: usize) -> Found {
    let before_kib = resident_kib(&server);
    let (mut times_ns, kib) = run(|| evaluate(folder, &server, sessions, seconds)).unwrap();
    server.kill().unwrap();
    server.wait().unwrap();
    std::fs::remove_file(folder.join("s")).unwrap();
    times_ns.sort_unstable();
    let at = |part: f64| times_ns[((times_ns.len() - 1) as f64 * part) as usize] as f64 / 1e6;
    let each_kib = kib.saturating_sub(before_kib) as f64 / sessions as f64;
    let (p50_ms, p99_ms, longest_ms) = (at(0.5), at(0.99), at(1.0));
    Found { count: times_ns.len(), p50_ms, p99_ms, longest_ms, each_kib }
}

/// Starts the server of the baseline, as a process of its own.
fn threads(folder: &Path) -> Child {
    let mut server = Command::new(std::env::current_exe().unwrap())
        .arg(ANSWERER)
        .arg(folder.join("s"))
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    // It prints a line when it listens.
    let mut line = String::new();
    BufReader::new(server.stdout.take().unwrap()).read_line(&mut line).unwrap();
    server
}

fn answer_always(path: &Path) {
    let listener = std::os::unix::net::UnixListener::bind(path).unwrap();
    println!("listens");
    for stream in listener.incoming() {
        let mut stream = stream.unwrap();
        let body = move || {
            stream.write_all(format!("{WELCOME}\n").as_bytes()).unwrap();
            let mut buffer = [0; 256];
            // A client that disconnects ends its thread.
            while let Ok(1..) = stream.read(&mut buffer) {
                stream.write_all(format!("{ANSWER}\n").as_bytes()).unwrap();
            }
        };
        drop(kyocho_sys::thread::start("answers", THREAD_STACK_BYTES, body).unwrap());
    }
}

fn serve(folder: &Path) -> Child {
    let uid = kyocho_sys::peer::own_user();
    let config = format!("[user.bench]\nuid = {uid}\nsessions = 100000\n");
    std::fs::write(folder.join("config"), config).unwrap();
    let mut server = Command::new(env!("CARGO_BIN_EXE_kyocho"))
        .arg("serve")
        .arg("--config")
        .arg(folder.join("config"))
        .args(["--listen", &format!("unix:{}", folder.join("s").display())])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(server.stdout.take().unwrap());
    let mut line = String::new();
    while !line.starts_with("network") {
        line.clear();
        assert!(lines.read_line(&mut line).unwrap() > 0, "the server comes up");
    }
    // Discards further output.
    kyocho_sys::thread::start("server's words", 1 << 20, move || {
        let _ = lines.read_to_string(&mut line);
    })
    .unwrap();
    server
}

/// Lets all sessions evaluate for the given time. Returns the time of each evaluation, and the
/// server's resident memory with all of them connected.
fn evaluate(folder: &Path, server: &Child, sessions: usize, seconds: usize) -> (Vec<u64>, usize) {
    let streams: Vec<_> = (0..sessions).map(|_| connect(folder)).collect();
    let begin_ns = Deadline::now().ns();
    let clients: Vec<_> = streams
        .into_iter()
        .enumerate()
        .map(|(i, stream)| {
            let first = begin_ns + PERIOD.as_nanos() as u64 * i as u64 / sessions as u64;
            spawn(move || client(&stream, first, seconds))
        })
        .collect();
    sleep(PERIOD * seconds as u32 / 2);
    let resident = resident_kib(server);
    (clients.into_iter().flat_map(|client| client.join().unwrap()).collect(), resident)
}

fn connect(folder: &Path) -> UnixStream {
    let stream = UnixStream::connect(folder.join("s")).unwrap();
    assert_eq!(line(&stream), WELCOME);
    stream
}

fn client(stream: &UnixStream, first_ns: u64, count: usize) -> Vec<u64> {
    let time = |i| {
        let at_ns = first_ns + PERIOD.as_nanos() as u64 * i as u64;
        sleep(Duration::from_nanos(at_ns.saturating_sub(Deadline::now().ns())));
        let begin_ns = Deadline::now().ns();
        (&*stream).write_all(b"{\"do\":\"eval\",\"text\":\"(+ 40 2)\"}\n").unwrap();
        assert_eq!(line(stream), ANSWER);
        Deadline::now().ns() - begin_ns
    };
    (0..count).map(time).collect()
}

fn line(mut stream: &UnixStream) -> String {
    let mut text = Vec::new();
    let mut buffer = [0; 256];
    while text.last() != Some(&b'\n') {
        let count = stream.read(&mut buffer).unwrap();
        assert!(count > 0, "the server hangs up after {:?}", String::from_utf8_lossy(&text));
        text.extend_from_slice(&buffer[..count]);
    }
    text.pop();
    String::from_utf8(text).unwrap()
}

fn resident_kib(process: &Child) -> usize {
    let status = std::fs::read_to_string(format!("/proc/{}/status", process.id())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}
