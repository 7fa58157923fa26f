//! One user tries to lock out the others. Whatever arrives by telnet or the editors' port, a client
//! of the Unix socket gets answers.
#![expect(
    clippy::unwrap_used,
    reason = "what helpers of tests unwrap fails the test, as in the tests themselves"
)]
#![expect(clippy::disallowed_methods, reason = "slow clients sleep on kernel threads of their own")]

#[path = "serve/client.rs"]
mod client;
#[path = "serve/server.rs"]
#[expect(dead_code, reason = "other tests of the doors use the rest")]
mod server;
#[path = "serve/token.rs"]
mod token;

use client::{Client, connect};
use core::time::Duration;
use server::{Server, WATCHDOG};
use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::process::Command;
use token::await_token;

/// A user of the Unix socket, and one for the other listeners.
fn config(limits: &str) -> String {
    format!(
        "telnet_user = \"mallory\"\nnrepl_user = \"mallory\"\n\
         [user.eva]\nuid = {}\nsessions = 5\n[user.mallory]\nsessions = 20\n{limits}\n",
        kyocho_sys::peer::own_user()
    )
}

/// The server's TCP listeners.
struct Doors {
    server: Server,
    /// Those of telnet and of editors.
    addresses: [String; 2],
    token: String,
}

impl Doors {
    fn open(name: &str, limits: &str) -> Self {
        let listen = ["telnet:127.0.0.1:0", "nrepl:127.0.0.1:0"];
        Self::of(Server::start(name, Some(&config(limits)), &listen))
    }

    fn of(mut server: Server) -> Self {
        let address = |server: &mut Server, kind: &str| {
            let line = server.await_line(kind);
            line.rsplit_once(kind).unwrap().1.trim().to_owned()
        };
        let telnet = address(&mut server, "telnet:");
        let token = await_token(&mut server);
        let addresses = [telnet, address(&mut server, "nrepl:")];
        Self { server, addresses, token }
    }

    /// A request with the token, as the first one of an editor must be.
    fn with_token(&self, request: &str) -> String {
        request.replacen("2:op", &format!("5:token{}:{}2:op", self.token.len(), self.token), 1)
    }

    /// An editor that has sent the token.
    fn editor(&self) -> TcpStream {
        let mut editor = self.knock(1);
        editor.write_all(self.with_token("d2:op8:describe2:id1:1e").as_bytes()).unwrap();
        expect(&mut editor, "6:status");
        editor
    }

    fn knock(&self, door: usize) -> TcpStream {
        let stream = TcpStream::connect(&self.addresses[door]).unwrap();
        stream.set_read_timeout(Some(WATCHDOG)).unwrap();
        stream.set_write_timeout(Some(WATCHDOG)).unwrap();
        stream
    }

    fn eva(&self) -> Client {
        let mut eva = connect(&self.server);
        assert!(eva.line().contains("welcome"));
        eva
    }
}

fn is_served(eva: &mut Client, beside: &str) {
    assert_eq!(eval(eva, "(gc) (+ 40 2)"), r#"{"show":"done","values":["42"]}"#, "beside {beside}");
}

fn eval(client: &mut Client, text: &str) -> String {
    client.eval(text)
}

/// Reads until `part` has arrived.
fn expect(stream: &mut TcpStream, part: &str) -> String {
    let (mut seen, mut buffer) = (String::new(), [0; 4096]);
    while !seen.contains(part) {
        let count = stream.read(&mut buffer).unwrap();
        assert!(count > 0, "waited for {part:?}, got {seen:?}");
        seen.push_str(&String::from_utf8_lossy(&buffer[..count]));
    }
    seen
}

#[test]
fn garbage_on_any_connection_does_not_affect_others() {
    const GARBAGE: &[&[u8]] = &[
        b"GET / HTTP/1.1\r\n\r\n",
        &[0xff; 4096],
        &[0; 4096],
        b"\xfe\xfe\xc3(\n\xe2\x82\n",
        b")))))\n\"\n#|\n#\\\n",
        b"\xff\xfa\x18\x01\xff\xff\xff\xff\xf0\xff\xfd",
        b"d2:op4:eval4:code3:\xff\xfe\xfde",
        b"i99999999999999999999999e",
        b"d2:op5:cloned2:op5:clonee",
        b",bt -1\n,locals 99999999999999999999\n,\n,,\n,kill x\n,time (\n",
    ];
    let doors = Doors::open("hostile-garbage", "");
    let mut eva = doors.eva();
    for door in 0..doors.addresses.len() {
        for (i, garbage) in GARBAGE.iter().enumerate() {
            let mut bad = doors.knock(door);
            // The server may close the connection before everything is written or read.
            let _ = bad.write_all(garbage);
            let _ = bad.shutdown(Shutdown::Write);
            let _ = bad.read_to_end(&mut Vec::new());
            is_served(&mut eva, &format!("garbage {i} at door {door}"));
        }
    }
    for (i, garbage) in GARBAGE.iter().enumerate() {
        let mut bad = doors.editor();
        let _ = bad.write_all(garbage);
        let _ = bad.shutdown(Shutdown::Write);
        let _ = bad.read_to_end(&mut Vec::new());
        is_served(&mut eva, &format!("garbage {i} of an editor"));
    }
}

#[test]
fn half_open_and_slow_connections_do_not_affect_others() {
    let doors = Doors::open("hostile-slow", "");
    let mut eva = doors.eva();
    let halves: [&[u8]; 2] = [b"(+ 1 ", b"d2:op4:eval4:code100:(+"];
    let mut open = Vec::new();
    for (door, half) in halves.into_iter().enumerate() {
        for _ in 0..9 {
            let mut stream = doors.knock(door);
            stream.write_all(half).unwrap();
            open.push(stream);
        }
        open.extend((0..9).map(|_| doors.knock(door)));
        is_served(&mut eva, "connections that say half of something, or nothing");
    }
    drop(open);
    // A client that sends its text byte by byte gets an answer in the end.
    let mut slow = loop {
        let mut slow = doors.knock(0);
        if expect(&mut slow, "\n> ").contains("many") {
            continue;
        }
        break slow;
    };
    for byte in b"(+ 40 2)\r\n" {
        slow.write_all(&[*byte]).unwrap();
        std::thread::sleep(Duration::from_millis(1));
        is_served(&mut eva, "a slow connection");
    }
    expect(&mut slow, "42\r\n> ");
}

#[test]
fn giant_messages_are_refused() {
    static PIECE: [u8; 1 << 16] = [b'x'; 1 << 16];
    let doors = Doors::open("hostile-giants", "");
    let mut eva = doors.eva();
    let pour = |stream: &mut dyn Write, what: &str| {
        // No listener accepts 64 MiB: the connection is closed.
        let result = (0..1024).try_for_each(|_| stream.write_all(&PIECE));
        assert!(result.is_err(), "{what} took 64 MiB");
    };
    pour(&mut doors.knock(0), "telnet");
    is_served(&mut eva, "a giant line");
    for mut editor in [doors.knock(1), doors.editor()] {
        editor.write_all(b"d2:op4:eval4:code2000000:").unwrap();
        pour(&mut editor, "the editors' door");
        is_served(&mut eva, "a giant string");
    }
    pour(&mut doors.eva().stream, "the Unix socket");
    is_served(&mut eva, "a giant frame");
}

#[test]
fn a_client_that_does_not_read_is_disconnected() {
    let doors = Doors::open("hostile-flood", "");
    let mut eva = doors.eva();
    let mut flood = doors.knock(0);
    flood.write_all(b"(let loop () (display \"0123456789\") (loop))\r\n").unwrap();
    loop {
        is_served(&mut eva, "a flood that is not read");
        match flood.write(b" ") {
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            Err(_) => break,
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn sessions_beyond_the_limit_are_refused_by_name() {
    let doors = Doors::open("hostile-many", "");
    let mut all: Vec<Client> = (0..30).map(|_| connect(&doors.server)).collect();
    let lines: Vec<String> = all.iter_mut().map(Client::line).collect();
    let welcome = lines.iter().filter(|line| line.contains("welcome")).count();
    let refused =
        lines.iter().filter(|line| line.contains("too many sessions: eva may have 5")).count();
    assert_eq!((welcome, refused), (5, 25), "{lines:?}");
    let first = lines.iter().position(|line| line.contains("welcome")).unwrap();
    is_served(&mut all[first], "sessions that were refused");
    expect(&mut doors.knock(0), "> ");
}

#[test]
fn editors_that_open_no_session_are_counted() {
    let doors = Doors::open("hostile-editors", "");
    let mut eva = doors.eva();
    let describe = |stream: &mut TcpStream, part: &str| {
        // The server may close the connection before the request.
        let _ = stream.write_all(doors.with_token("d2:op8:describe2:id1:1e").as_bytes());
        expect(stream, part)
    };
    let mut all: Vec<TcpStream> = (0..20).map(|_| doors.knock(1)).collect();
    all.iter_mut().for_each(|editor| drop(describe(editor, "version")));
    describe(&mut doors.knock(1), "too many connections: mallory may have 20");
    is_served(&mut eva, "editors that do nothing");
    drop(all.pop());
    // The place is free once the server has noticed that the editor has disconnected.
    while describe(&mut doors.knock(1), "6:status").contains("too many") {}
}

#[test]
fn unidentified_editors_do_not_lock_out_others() {
    let doors = Doors::open("hostile-strangers", "");
    let mut eva = doors.eva();
    let mut silent: Vec<TcpStream> = (0..200).map(|_| doors.knock(1)).collect();
    // Later clients are accepted, without a wait for the earlier ones.
    let mut editor = doors.editor();
    is_served(&mut eva, "strangers at the editors' port");
    for stranger in &mut silent {
        // All are disconnected in the end, however slowly they send.
        let _ = stranger.write_all(b"d");
        let ended = stranger.read(&mut [0; 64]);
        let kind = ended.map_err(|error| error.kind());
        assert!(kind == Ok(0) || kind == Err(ErrorKind::ConnectionReset), "{kind:?}");
    }
    editor.write_all(b"d2:op8:describe2:id1:2e").unwrap();
    expect(&mut editor, "6:status");
}

#[test]
fn slow_logins_do_not_affect_others() {
    let seconds = "[ssh]\nlogin_seconds = 2";
    let mut server = Server::start("hostile-logins", Some(&config(seconds)), &["ssh:127.0.0.1:0"]);
    let line = server.await_line("ssh:");
    let address = line.rsplit_once("ssh:").unwrap().1.trim().to_owned();
    let mut eva = connect(&server);
    assert!(eva.line().contains("welcome"));
    let sayings: [&[u8]; 3] = [b"", b"SSH-2.0-nobody\r\n", b"SSH-2.0-nobody\r\n\0\0\x10\0"];
    let open = (0..30).map(|i| {
        let mut stream = TcpStream::connect(&address).unwrap();
        stream.write_all(sayings[i % sayings.len()]).unwrap();
        stream
    });
    let mut open: Vec<TcpStream> = open.collect();
    // A client sends its login byte by byte, until it is disconnected.
    let mut slow = TcpStream::connect(&address).unwrap();
    let pause = Duration::from_millis(50);
    let mut said = b"SSH-2.0-".iter().chain([b'x'].iter().cycle());
    let is_cut = (0..WATCHDOG.as_millis() / pause.as_millis()).any(|_| {
        std::thread::sleep(pause);
        is_served(&mut eva, "logins that take their time");
        slow.write_all(&[*said.next().unwrap()]).is_err()
    });
    assert!(is_cut, "a slow login is disconnected");
    for stream in &mut open {
        stream.set_read_timeout(Some(WATCHDOG)).unwrap();
        let ended = stream.read_to_end(&mut Vec::new());
        assert!(ended.map_err(|error| error.kind()) != Err(ErrorKind::WouldBlock), "disconnected");
        is_served(&mut eva, "logins that took too long");
    }
}

#[test]
fn descriptors_that_run_out_come_back() {
    let shell = "ulimit -n 120; exec \"$@\"";
    let mut command = Command::new("sh");
    command.args(["-c", shell, "sh", env!("CARGO_BIN_EXE_kyocho")]);
    let config = config("sockets = 1000\nmemory_mib = 8");
    let listen = ["telnet:127.0.0.1:0", "nrepl:127.0.0.1:0"];
    let doors =
        Doors::of(Server::start_by(command, "hostile-descriptors", Some(&config), &listen, &[]));
    let mut eva = doors.eva();
    let mut mallory = doors.knock(0);
    expect(&mut mallory, "> ");
    let all = b"(define all '()) (let loop () (set! all (cons (tcp-listen \"127.0.0.1\" 0) all)) (loop))\r\n";
    mallory.write_all(all).unwrap();
    expect(&mut mallory, "Too many open files");
    is_served(&mut eva, "a session with all descriptors");
    // A later client waits until the server has resources again.
    let mut late = connect(&doors.server);
    is_served(&mut eva, "a client that waits for a descriptor");
    drop(mallory);
    assert!(late.line().contains("welcome"));
    is_served(&mut late, "no other client");
}
