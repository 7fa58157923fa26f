//! Many sessions: how long does an evaluation take beside a thousand others, and what does a session cost?
//!
//! `cargo bench -p kyocho --bench sessions [-- SESSIONS SECONDS]`: connects so many sessions (1,000) to one `kyocho serve`, has each
//! evaluate `(+ 40 2)` once a second for so long (10 s), checks the answer, and prints the times from request to answer and the
//! server's resident memory. The clients are microprocesses of this process. Target: p99 at most 20 ms, at most 200 KB
//! a session.
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

fn main() {
    let mut numbers = std::env::args().filter_map(|word| word.parse().ok());
    let sessions: usize = numbers.next().unwrap_or(SESSIONS);
    let seconds: usize = numbers.next().unwrap_or(SECONDS);
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("sessions");
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    let mut server = serve(&folder);
    let resident_before = resident_kib(&server);
    let (mut times_ns, resident) = run(|| evaluate(&folder, &server, sessions, seconds)).unwrap();
    server.kill().unwrap();
    server.wait().unwrap();
    times_ns.sort_unstable();
    let at = |part: f64| times_ns[((times_ns.len() - 1) as f64 * part) as usize] as f64 / 1e6;
    println!("{sessions} sessions, {} evaluations, one a second each", times_ns.len());
    println!("  p50 {:.2} ms, p99 {:.2} ms, longest {:.2} ms", at(0.5), at(0.99), at(1.0));
    let each = resident.saturating_sub(resident_before) as f64 / sessions as f64;
    println!(
        "  server: {resident_before} KiB before, {resident} KiB with them: {each:.1} KiB a session"
    );
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
    // It says no more.
    kyocho_sys::thread::start("server's words", 1 << 20, move || {
        let _ = lines.read_to_string(&mut line);
    })
    .unwrap();
    server
}

/// All sessions for so long: the time of each evaluation, and what the server has resident with all of them connected.
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
