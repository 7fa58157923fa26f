//! A server and its users: `kyocho serve`, `kyocho connect`, telnet, invalid input on the socket.
#![expect(
    clippy::unwrap_used,
    reason = "what helpers of tests unwrap fails the test, as in the tests themselves"
)]

#[path = "serve/client.rs"]
mod client;
#[path = "serve/server.rs"]
mod server;

use client::{Client, connect};
use rexpect::session::{PtySession, spawn_command};
use server::{Server, WATCHDOG};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::Command;

#[test]
fn sessions_are_separate_and_end_with_their_connections() {
    let server = Server::start("separate", None, &[]);
    let (mut one, mut other) = (connect(&server), connect(&server));
    assert_eq!(one.line(), r#"{"show":"welcome","user":"owner"}"#);
    other.line();
    assert_eq!(one.eval("(define x 42) x"), r#"{"show":"done","values":["42"]}"#);
    assert!(other.eval("x").contains("unbound variable: x"));
    one.send(r#"{"do":"eval","text":"(display 'seen) (newline) (let loop () (loop))"}"#);
    assert_eq!(one.line(), r#"{"show":"output","text":"seen\n"}"#);
    one.send(r#"{"do":"interrupt"}"#);
    assert!(one.line().contains("interrupted"));
    one.send(r#"{"do":"complete","prefix":"call-with-current"}"#);
    assert_eq!(one.line(), r#"{"show":"names","names":["call-with-current-continuation"]}"#);
    assert_eq!(one.eval("(exit 7)"), r#"{"show":"done","exit":7}"#);
    assert_eq!(one.line(), "", "the server hangs up");
    assert_eq!(other.eval("'still"), r#"{"show":"done","values":["still"]}"#);
}

#[test]
fn a_disconnected_users_threads_end() {
    let config = format!("[user.eva]\nuid = {}\nthreads = 5\nsessions = 1\n", uid());
    let server = Server::start("goes", Some(&config), &[]);
    let mut first = connect(&server);
    first.line();
    first.eval("(spawn (lambda () (let loop () (loop))))");
    let mut second = connect(&server);
    assert_eq!(second.line(), r#"{"show":"refused","reason":"too many sessions: eva may have 1"}"#);
    first.send(r#"{"do":"eval","text":"(let loop () (loop))"}"#);
    drop(first);
    // Once the session has ended, another one may begin.
    let mut again = loop {
        let mut client = connect(&server);
        if client.line().contains("welcome") {
            break client;
        }
    };
    assert_eq!(again.eval("(+ 1 1)"), r#"{"show":"done","values":["2"]}"#);
}

#[test]
fn garbage_and_silence_do_not_affect_others() {
    let server = Server::start("garbage", None, &[]);
    let mut good = connect(&server);
    good.line();
    let _silent: Vec<Client> = (0..5).map(|_| connect(&server)).collect();
    for bytes in [&b"GET / HTTP/1.1\r\n\r\n"[..], &[0xff; 4096], b"{\"do\":", b"\n\n\n"] {
        let mut bad = connect(&server);
        // The server may close the connection before everything is written.
        let _ = bad.stream.write_all(bytes);
        let _ = bad.stream.shutdown(std::net::Shutdown::Write);
        let mut rest = Vec::new();
        let _ = bad.reader.read_to_end(&mut rest);
    }
    assert_eq!(good.eval("'unhurt"), r#"{"show":"done","values":["unhurt"]}"#);
}

#[test]
fn an_unknown_user_is_refused_with_the_reason() {
    let server = Server::start("unknown", Some("[user.eva]\nuid = 4000000\n"), &[]);
    let reason = format!("user {} is not known here", uid());
    assert_eq!(connect(&server).line(), format!(r#"{{"show":"refused","reason":"{reason}"}}"#));
}

#[test]
fn the_configuration_is_read_again() {
    let config = format!("[user.eva]\nuid = {}\nthreads = 0\n", uid());
    let mut server = Server::start("reload", Some(&config), &[]);
    let mut client = connect(&server);
    client.line();
    let spawn = "(thread-join! (spawn (lambda () 1)))";
    assert!(client.eval(spawn).contains("too many threads: eva may have 0"));
    std::fs::write(server.folder.join("config"), "[user.eva]\nthreads = 'many'\n").unwrap();
    server.signal("HUP");
    assert!(server.notification().starts_with("RELOADING=1\nMONOTONIC_USEC="));
    assert_eq!(server.notification(), "READY=1");
    assert!(client.eval(spawn).contains("too many threads"));
    std::fs::write(server.folder.join("config"), config.replace("= 0\n", "= 1\n")).unwrap();
    server.signal("HUP");
    server.await_line("the configuration was read again");
    assert_eq!(client.eval(spawn), r#"{"show":"done","values":["1"]}"#);
    assert!(server.notification().starts_with("RELOADING=1\n"));
    assert_eq!(server.notification(), "READY=1");
    server.signal("TERM");
    assert_eq!(server.notification(), "STOPPING=1");
    assert!(server.process.wait().unwrap().success());
    assert!(!server.folder.join("s").exists(), "the socket's name is gone");
}

#[test]
fn the_user_of_a_thread_is_listed_outside() {
    let config = format!("[user.eva]\nuid = {}\n", uid());
    let server = Server::start("outside", Some(&config), &[]);
    let mut client = connect(&server);
    client.line();
    client.eval("(define (worker) (thread-sleep! 1000)) (spawn worker)");
    let mut command = Command::new(env!("CARGO_BIN_EXE_kyocho"));
    let output = command.arg("ps").arg(server.process.id().to_string()).output().unwrap();
    let table = String::from_utf8_lossy(&output.stdout);
    for name in ["network unix:", "getty: eva", "getty-input: eva", "eva: worker"] {
        assert!(table.contains(&format!(" {name}")), "{name}: {table}");
    }
}

/// The number that `kyocho ps` lists for this name.
fn listed(server: &Server, name: &str) -> Option<String> {
    let mut command = Command::new(env!("CARGO_BIN_EXE_kyocho"));
    let output = command.args(["ps", "--json", &server.process.id().to_string()]).output().unwrap();
    let spaces: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let entries = spaces[0]["microprocesses"].as_array().unwrap();
    let entry = entries.iter().find(|entry| entry["name"] == name)?;
    Some(entry["id"].as_str().unwrap().to_owned())
}

#[test]
fn a_service_is_restarted_after_its_supervisor_was_killed() {
    let config = format!("[user.eva]\nuid = {}\n", uid());
    let server = Server::start_in("keepers", Some(&config), &[], &[("KYOCHO_CONTROL", "1")]);
    let mut client = connect(&server);
    client.line();
    // Kills the thread that restarts the service, its successor, and the service.
    for name in ["init: gc", "init: gc", "gc", "init: gc", "gc"] {
        let killed = listed(&server, name).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_kyocho"));
        assert!(command.args(["kill", &killed]).status().unwrap().success());
        let comes_back = || listed(&server, name).is_some_and(|number| number != killed);
        assert!((0..10_000).any(|_| comes_back()), "{name} comes back");
    }
    assert_eq!(client.eval("(gc) (+ 40 2)"), r#"{"show":"done","values":["42"]}"#);
}

#[test]
fn the_service_manager_is_notified_that_the_system_answers() {
    let config = format!("[user.eva]\nuid = {}\nmemory_mib = 8\n", uid());
    let variables = [("WATCHDOG_USEC", "100000")];
    let server = Server::start_in("watchdog", Some(&config), &[], &variables);
    let mut client = connect(&server);
    client.line();
    let answers = || (0..3).for_each(|_| assert_eq!(server.notification(), "WATCHDOG=1"));
    answers();
    // Also while another session computes without end and has used up its memory.
    client.eval("(spawn (lambda () (let loop () (loop)))) (define all '())");
    let answer = client.eval("(let loop () (set! all (cons 1 all)) (loop))");
    assert!(answer.contains("out of memory"), "{answer}");
    answers();
}

#[test]
fn what_is_wrong_with_a_configuration_is_reported_with_its_line() {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("wrong.toml");
    std::fs::write(&path, "[limits]\nmemory = 3\n").unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_kyocho"));
    let output = command.arg("serve").arg("--config").arg(&path).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let message = String::from_utf8_lossy(&output.stderr);
    assert!(message.contains("wrong.toml:2: unknown field `memory`"), "{message}");
}

#[test]
fn telnet_gives_a_prompt() {
    let config = "telnet_user = 'guest'\n[user.guest]\n";
    let mut server = Server::start("telnet", Some(config), &["telnet:127.0.0.1:0"]);
    let line = server.await_line("telnet:");
    let mut stream = TcpStream::connect(line.rsplit_once("telnet:").unwrap().1.trim()).unwrap();
    stream.set_read_timeout(Some(WATCHDOG)).unwrap();
    let mut seen = String::new();
    let mut expect = |stream: &mut TcpStream, part: &str| {
        let mut buffer = [0; 512];
        while !seen.contains(part) {
            let count = stream.read(&mut buffer).unwrap();
            assert!(count > 0, "waited for {part:?}, got {seen:?}");
            seen.push_str(&String::from_utf8_lossy(&buffer[..count]));
        }
        seen.clear();
    };
    expect(&mut stream, "> ");
    stream.write_all(b"(define (twice x)\r\n").unwrap();
    expect(&mut stream, "  ");
    stream.write_all(b"  (* 2 x)) (twice 21)\r\n").unwrap();
    expect(&mut stream, "42\r\n> ");
    stream.write_all(b"(let loop () (loop))\r\n\xff\xf4").unwrap();
    expect(&mut stream, "interrupted\r\n> ");
}

#[test]
fn connect_prints_the_values_of_its_input_as_the_command_alone_does() {
    let server = Server::start("input", None, &[]);
    let file = server.folder.join("input.scm");
    let text =
        "(+ 40 2)\n(display \"written\")\n(newline)\n(values 1 \"two\") 'three\n(car 1)\n'never";
    std::fs::write(&file, text).unwrap();
    let outputs = [&[][..], &["connect", server.folder.join("s").to_str().unwrap()]].map(|words| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_kyocho"));
        let input = std::fs::File::open(&file).unwrap();
        let output = command.args(words).stdin(input).output().unwrap();
        let error = String::from_utf8(output.stderr).unwrap();
        assert!(error.contains("car: first argument must be a pair"), "{words:?}: {error}");
        (output.status.code(), String::from_utf8(output.stdout).unwrap())
    });
    assert_eq!(outputs[0], (Some(1), "42\nwritten\n1\n\"two\"\nthree\n".to_owned()));
    assert_eq!(outputs[1], outputs[0]);
}

#[test]
fn connect_edits_completes_and_interrupts() {
    let server = Server::start("connect", None, &[]);
    let mut command = Command::new(env!("CARGO_BIN_EXE_kyocho"));
    command.arg("connect").arg(server.folder.join("s"));
    command.env("XDG_STATE_HOME", &server.folder).env("TERM", "xterm").env_remove("NO_COLOR");
    let mut session: PtySession =
        spawn_command(command, Some(WATCHDOG.as_millis() as u64)).expect("a pseudo-terminal opens");
    let listening = "\x1b[?2004h";
    let mut enter = |keys: &str, answer: &str| {
        session.exp_string(listening).unwrap();
        session.send(keys).unwrap();
        session.flush().unwrap();
        session.exp_string(answer).unwrap_or_else(|error| panic!("{answer}: {error}"));
    };
    enter("(define (twice x)\r (* 2 x)) (twice 21)\r", "42");
    enter("(twi\t 4)\r", "8");
    enter("(display \"unfinished\")\r", "unfinished\r\n");
    enter("(begin (display \"also\") 'value)\r", "also\r\nvalue\r\n");
    enter("(begin (display 'begun) (newline) (let loop () (loop)))\r", "begun\r\n");
    session.send_control('c').unwrap();
    session.exp_string("interrupted").unwrap();
    session.exp_string(listening).unwrap();
    session.send_control('d').unwrap();
    session.exp_eof().unwrap();
}

fn uid() -> u32 {
    kyocho_sys::peer::own_user()
}

#[test]
fn a_server_comes_back_with_its_users_worlds() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("worlds-kept");
    // Left over from an earlier run.
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    let uid =
        std::fs::metadata(&folder).map(|own| std::os::unix::fs::MetadataExt::uid(&own)).unwrap();
    let config = format!("worlds = {:?}\n[user.ada]\nuid = {uid}\n", folder.display().to_string());
    let server = Server::start("worlds", Some(&config), &[]);
    let mut client = connect(&server);
    client.line();
    let done = |values: &str| format!(r#"{{"show":"done","values":[{values}]}}"#);
    assert_eq!(
        client.eval("(define (f x) (* x n)) (define n 6) (save-image)"),
        r#"{"show":"done"}"#
    );
    assert_eq!(client.eval("(set! n 7) (f 6)"), done(r#""42""#));
    drop((client, server));
    let server = Server::start("worlds", Some(&config), &[]);
    let (mut one, mut other) = (connect(&server), connect(&server));
    one.line();
    other.line();
    assert_eq!(one.eval("(set! n (+ n 1)) (f 6)"), done(r#""42""#));
    assert_eq!(other.eval("(f 6)"), done(r#""36""#));
    assert!(one.eval("(save-image 'x)").contains("must be a string"));
    drop((one, other));
    std::fs::write(folder.join("ada.image"), "nonsense").unwrap();
    let mut client = connect(&server);
    client.line();
    assert!(client.line().contains("your saved world cannot be loaded"));
    assert!(client.eval("n").contains("unbound variable"));
    assert!(client.eval("(save-image)").contains("which file"));
    assert_eq!(std::fs::read(folder.join("ada.image")).unwrap(), b"nonsense");
    assert!(server.state.join("kyocho/image.key").exists(), "what it keeps is where it was told");
}
