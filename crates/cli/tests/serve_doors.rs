//! Connections that a server must refuse: of other users of the machine, of pages in a browser, and
//! of the server's own sessions.
#![expect(
    clippy::unwrap_used,
    reason = "what helpers of tests unwrap fails the test, as in the tests themselves"
)]

#[path = "serve/client.rs"]
mod client;
#[path = "serve/server.rs"]
#[expect(dead_code, reason = "other tests of the doors use the rest")]
mod server;
#[path = "serve/token.rs"]
mod token;

use client::connect;
use kyocho_sys::skip::skip;
use server::{Server, WATCHDOG};
use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use token::await_token;

/// A user of the host other than the server's.
const OTHER: u32 = 65534;

/// A certificate that no client here trusts. A connection for it gets no further than the
/// handshake.
const CERTIFICATE: &str = "-----BEGIN CERTIFICATE-----
MIIBPDCB76ADAgECAhRd7GsM9AAV9FFORJL3UDVCcBoeYDAFBgMrZXAwEzERMA8G
A1UEAwwIb3duLWRvb3IwIBcNMjYxMTI1MDE0NDIxWhgPMjEyNjExMDEwMTQ0MjFa
MBMxETAPBgNVBAMMCG93bi1kb29yMCowBQYDK2VwAyEANoC2SwkUMje4GPGPP891
/BFxuHXYK3FFXY6JEwLavHyjUzBRMB0GA1UdDgQWBBTAI2KefQyg/nOYQv7IhE9L
Kz/VbjAfBgNVHSMEGDAWgBTAI2KefQyg/nOYQv7IhE9LKz/VbjAPBgNVHRMBAf8E
BTADAQH/MAUGAytlcANBAG0CHvGQ5WCkFz+v8+70UqmDrJ7azKmUW4mOgfIpdUVf
dUlMjt/8kYBSlCsSI7YtKrjAppC2MyOGCPsgWX58+Ac=
-----END CERTIFICATE-----
";

fn uid() -> u32 {
    kyocho_sys::peer::own_user()
}

/// A telnet user, and the user who runs the server.
fn config(more: &str) -> String {
    format!("telnet_user = 'guest'\n[user.guest]\n[user.ada]\nuid = {}\n{more}\n", uid())
}

/// The address of the server's listener of this `kind`.
fn address(server: &mut Server, kind: &str) -> String {
    let line = server.await_line(kind);
    line.rsplit_once(kind).unwrap().1.trim().to_owned()
}

/// Sends `bytes`. Returns what comes back until the server closes the connection or has sent one of
/// `proofs`.
fn answer(address: &str, bytes: &[u8], proofs: &[&str]) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(WATCHDOG)).unwrap();
    // The server may close the connection before everything is written.
    let _ = stream.write_all(bytes);
    let (mut seen, mut buffer) = (String::new(), [0; 4096]);
    while !proofs.iter().any(|proof| seen.contains(proof)) {
        match stream.read(&mut buffer) {
            Ok(count @ 1..) => seen.push_str(&String::from_utf8_lossy(&buffer[..count])),
            Err(error) if error.kind() == ErrorKind::WouldBlock => panic!("not hung up on: {seen}"),
            _ => break,
        }
    }
    seen
}

/// Sends `text` to a listener as another user of the host. Returns everything up to the end. `None`
/// if there is no Python for that.
fn asked_by_another(place: &str, text: &str) -> Option<String> {
    const CLIENT: &str = "import socket, sys\n\
        kind, _, where = sys.argv[1].partition(':')\n\
        s = socket.socket(socket.AF_UNIX if kind == 'unix' else socket.AF_INET)\n\
        s.settimeout(100)\n\
        s.connect(where if kind == 'unix' else (where.split(':')[0], int(where.split(':')[1])))\n\
        try: s.sendall(sys.argv[2].encode())\n\
        except ConnectionError: pass\n\
        seen = b''\n\
        try:\n    while b'value' not in seen and (part := s.recv(4096)): seen += part\n\
        except ConnectionError: pass\n\
        print(seen.decode(errors='replace'))";
    let mut python = Command::new(PYTHON);
    python.args(["-c", CLIENT, place, text]).current_dir("/").uid(OTHER).gid(OTHER);
    let output = python.output().ok()?;
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Some(said)
}

/// A Python that other users can execute.
const PYTHON: &str = "/usr/bin/python3";

/// Starts a server that must fail to start with these listeners. Returns what it prints.
fn server_that_does_not_start(name: &str, config: Option<&str>, listen: &[&str]) -> String {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::create_dir_all(&folder).expect("the test's folder can be made");
    let mut command = Command::new(env!("CARGO_BIN_EXE_kyocho"));
    command.arg("serve");
    if let Some(text) = config {
        std::fs::write(folder.join("config"), text).unwrap();
        command.arg("--config").arg(folder.join("config"));
    }
    for place in listen {
        command.args(["--listen", place]);
    }
    let (said, ours) = std::io::pipe().unwrap();
    command.env("XDG_STATE_HOME", &folder).stdout(ours.try_clone().unwrap()).stderr(ours);
    let mut process = command.spawn().expect("the command runs");
    // From here on, the child has the only ends of the pipe.
    drop(command);
    let (mut text, mut lines) = (String::new(), BufReader::new(said));
    // A server that starts prints its address.
    while !text.contains("network") && lines.read_line(&mut text).unwrap() > 0 {}
    // It may have ended already.
    let _ = process.kill();
    process.wait().expect("it is ours");
    text
}

fn has_python() -> bool {
    Command::new(PYTHON).arg("--version").output().is_ok_and(|output| output.status.success())
}

/// A folder that other users may enter, removed with this value.
struct Open(std::path::PathBuf);

impl Open {
    fn new(name: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("kyocho-{name}-{}", std::process::id()));
        std::fs::create_dir(&folder).unwrap();
        Self(folder)
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        std::fs::remove_dir_all(&self.0).expect("it is ours");
    }
}

#[test]
fn another_user_of_the_host_is_refused() {
    const NAME: &str = "another_user_of_the_host_is_refused";
    if uid() != 0 || !has_python() {
        return skip(NAME, "only root can be another user, and a client is written in Python");
    }
    let open = Open::new("another");
    let (socket, editors) = (open.0.join("s"), open.0.join("editors"));
    let places =
        [format!("unix:{}", socket.display()), format!("nrepl:unix:{}", editors.display())];
    let listen = [places[0].as_str(), places[1].as_str(), "nrepl:127.0.0.1:0"];
    let mut server = Server::start("another", None, &listen);
    let _token = await_token(&mut server);
    let tcp = address(&mut server, "nrepl:127");
    let secret = "(call-with-input-file \"/etc/shadow\" read-line)";
    let frame = format!("{{\"do\":\"eval\",\"text\":{secret:?}}}\n");
    let request = format!("d4:code{}:{secret}2:op4:evale", secret.len());
    for (place, text) in [
        (places[0].clone(), frame),
        (format!("unix:{}", editors.display()), request.clone()),
        (format!("tcp:127{tcp}"), request),
    ] {
        let seen = asked_by_another(&place, &text).unwrap();
        assert!(!seen.contains("root:") && !seen.contains("value"), "{place}: {seen}");
        assert!(
            seen.contains("not known here") || seen.contains("unauthorized"),
            "{place}: {seen}"
        );
    }
}

#[test]
fn telnet_needs_a_user_of_the_configuration() {
    let text = server_that_does_not_start("telnet-alone", None, &["telnet:127.0.0.1:0"]);
    assert!(text.contains("telnet_user"), "{text}");
    let text =
        server_that_does_not_start("nrepl-alone", Some("[user.a]\n"), &["nrepl:127.0.0.1:0"]);
    assert!(text.contains("nrepl_user"), "{text}");
}

#[test]
fn a_page_in_a_browser_evaluates_nothing() {
    let mut server = Server::start(
        "browser",
        Some(&format!("nrepl_user = 'ada'\n{}", config("sockets = 3"))),
        &["telnet:127.0.0.1:0", "nrepl:127.0.0.1:0"],
    );
    let doors = [address(&mut server, "telnet:"), address(&mut server, "nrepl:")];
    let body = "(display (* 1111 3))\r\n(display \"evaluated\")\r\nd4:code6:(* 6 7)2:op4:evale\r\n";
    let requests = [
        format!(
            "POST / HTTP/1.1\r\nHost: evil.example\r\nOrigin: https://evil.example\r\n\r\n{body}"
        ),
        format!("PATCH /?(display+7) HTTP/1.0\r\n\r\n{body}"),
        format!("x-any-method http://127.0.0.1/ HTTP/1.1\r\n\r\n{body}"),
        format!("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n{body}"),
        format!("GET /chat HTTP/1.1\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n{body}"),
        format!("\u{16}\u{3}\u{1}\u{2}\0\u{1}\0\u{1}\r\n{body}"),
        format!("\0\u{3}\0\u{8}!\u{12}\r\n{body}"),
    ];
    let proofs = ["3333", "evaluated", "unbound", "value"];
    for door in &doors {
        for request in &requests {
            let seen = answer(door, request.as_bytes(), &proofs);
            assert!(!proofs.iter().any(|proof| seen.contains(proof)), "{request}: {seen}");
        }
    }
    let frames = "{\"do\":\"eval\",\"text\":\"(display (* 1111 3))\"}\n";
    let mut client = connect(&server);
    let _ = client.stream.write_all(format!("POST / HTTP/1.1\r\n\r\n{frames}").as_bytes());
    let mut seen = String::new();
    let _ = client.reader.read_to_string(&mut seen);
    assert!(!seen.contains("3333"), "{seen}");
}

#[test]
fn a_session_cannot_become_another_user_by_connecting_to_its_server() {
    const NAME: &str = "a_session_cannot_become_another_user_by_connecting_to_its_server";
    if std::net::TcpListener::bind("[::1]:0").is_err() {
        return skip(NAME, "no IPv6 here");
    }
    let open = Open::new("own-doors");
    let editors = open.0.join("editors");
    let mut server = Server::start(
        "own-doors",
        Some(&config("files = true\nsockets = 30\nports = 60")),
        &["telnet:127.0.0.1:0", &format!("nrepl:unix:{}", editors.display()), "telnet:[::1]:0"],
    );
    let port = |address: String| address.rsplit_once(':').unwrap().1.to_owned();
    let (four, six) =
        (port(address(&mut server, "telnet:")), port(address(&mut server, "telnet:")));
    let mut ada = connect(&server);
    ada.line();
    let mut ask = |text: &str| {
        let quoted = serde_json::to_string(text).unwrap();
        ada.eval(quoted.trim_matches('"'))
    };
    // Sends to each kind of listener a text to evaluate. Returns everything up to the end.
    ask(r#"(define (enter said connect)
             (let* ((s (connect)) (in (socket-input-port s)) (out (socket-output-port s)))
               (guard (e (#t 'hung-up-on))
                 (write-string said out)
                 (flush-output-port out)
                 (let loop ((all '()))
                   (let ((c (read-char in)))
                     (if (or (eof-object? c) (> (length all) 600))
                         (list->string (reverse all))
                         (loop (cons c all))))))))
           (define line "(display (* 1111 3))\n")
           (define frame "{\"do\":\"eval\",\"text\":\"(display (* 1111 3))\"}\n{}\n")
           (define request "d4:code10:(* 1111 3)2:op4:evaled")"#);
    let mut tried = Vec::new();
    for (host, port) in [
        ("127.0.0.1", &four),
        ("localhost", &four),
        ("0.0.0.0", &four),
        ("::ffff:127.0.0.1", &four),
        ("::ffff:0.0.0.0", &four),
        ("::1", &six),
        ("::", &six),
        ("localhost", &six),
    ] {
        tried.push(ask(&format!("(enter line (lambda () (tcp-connect {host:?} {port})))")));
    }
    std::fs::write(server.folder.join("ca.pem"), CERTIFICATE).unwrap();
    let folder = server.folder.display().to_string();
    tried.push(ask(&format!(
        "(define trusted (call-with-input-file {:?} (lambda (p) (read-string 100000 p)))) \
         (enter line (lambda () (tls-connect \"127.0.0.1\" {four} trusted)))",
        format!("{folder}/ca.pem")
    )));
    for text in tried {
        // `localhost` may have only one address.
        assert!(
            text.contains("may not connect to it") || text.contains("Connection refused"),
            "{text}"
        );
    }
    for (said, path) in [
        ("frame", format!("{folder}/s")),
        ("frame", format!("{folder}/../own-doors/./s")),
        ("request", format!("/proc/self/root{}", editors.display())),
        ("request", editors.display().to_string()),
    ] {
        let text = ask(&format!("(enter {said} (lambda () (unix-connect {path:?})))"));
        assert!(text.contains("may not connect to it") || text.contains("hung-up-on"), "{text}");
    }
}

#[test]
fn an_interrupt_by_telnet_is_answered_as_its_client_expects() {
    let mut server = Server::start("interrupts", Some(&config("")), &["telnet:127.0.0.1:0"]);
    let address = address(&mut server, "telnet:");
    let stream = TcpStream::connect(&address).unwrap();
    stream.set_read_timeout(Some(WATCHDOG)).unwrap();
    let seen = core::cell::RefCell::new(Vec::new());
    let expect = |part: &[u8]| {
        let mut buffer = [0; 512];
        let mut seen = seen.borrow_mut();
        while !seen.windows(part.len()).any(|window| window == part) {
            let count = (&stream).read(&mut buffer).unwrap();
            assert!(count > 0, "waited for {part:?}, got {seen:?}");
            seen.extend_from_slice(&buffer[..count]);
        }
        seen.clear();
    };
    let send = |bytes: &[u8]| (&stream).write_all(bytes).unwrap();
    expect(b"> ");
    send(b"(let loop () (loop))\r\n");
    // Interrupt process, timing mark, data mark: the last one as urgent data.
    send(b"\xff\xf4\xff\xfd\x06\xff");
    rustix::net::send(&stream, b"\xf2", rustix::net::SendFlags::OOB).unwrap();
    // The timing mark comes at once, the report when the evaluation has stopped.
    expect(b"\xff\xfb\x06");
    send(b"(* 6 7)\r\n");
    expect(b"42\r\n> ");
}

#[test]
fn a_telnet_client_shows_what_comes_after_an_interrupt() {
    const NAME: &str = "a_telnet_client_shows_what_comes_after_an_interrupt";
    if Command::new("telnet").arg("-?").output().is_err() {
        return skip(NAME, "no telnet here");
    }
    let mut server = Server::start("real-telnet", Some(&config("")), &["telnet:127.0.0.1:0"]);
    let address = address(&mut server, "telnet:");
    let (host, port) = address.rsplit_once(':').unwrap();
    let mut command = Command::new("telnet");
    command.args([host, port]);
    let limit = Some(WATCHDOG.as_millis() as u64);
    let mut terminal = rexpect::session::spawn_command(command, limit).unwrap();
    terminal.exp_string("> ").unwrap();
    for _ in 0..3 {
        terminal.send_line("(begin (display 'begun) (newline) (let loop () (loop)))").unwrap();
        terminal.exp_string("begun\r\n").unwrap();
        terminal.send_control('c').unwrap();
        terminal.exp_string("interrupted").unwrap();
        terminal.send_line("(* 1111 3)").unwrap();
        terminal.exp_string("3333").unwrap();
    }
}

#[test]
fn what_an_editor_has_waiting_is_charged_to_its_user() {
    let config = format!("[user.ada]\nuid = {}\nmemory_mib = 8\n", uid());
    let folder = Open::new("waiting");
    let path = folder.0.join("editors");
    let place = format!("nrepl:unix:{}", path.display());
    let server = Server::start("waiting", Some(&config), &[&place]);
    let mut editor = std::os::unix::net::UnixStream::connect(&path).unwrap();
    editor.set_read_timeout(Some(WATCHDOG)).unwrap();
    editor.write_all(b"d4:code24:(let loop () (loop)) 'no2:op4:evale").unwrap();
    // Each of these takes some 1 MiB as bencode and would take 16 as a tree. A quarter of 8 MiB may
    // wait.
    let list = "0:".repeat(500_000);
    let request = format!("d4:code7:'waited4:listl{list}e2:op4:evale");
    let mut refused = String::new();
    for _ in 0..8 {
        // The server may close the connection before everything is written.
        if editor.write_all(request.as_bytes()).is_err() {
            break;
        }
    }
    let _ = editor.read_to_string(&mut refused);
    assert!(refused.contains("pending requests of ada may take 2097152 bytes"), "{refused}");
    // With the end of the connection all memory is released.
    let mut client = connect(&server);
    client.line();
    assert_eq!(client.eval("(+ 40 2)"), r#"{"show":"done","values":["42"]}"#);
}

#[test]
fn a_server_removes_no_file_to_listen_there() {
    let folder = Open::new("no-removal");
    let path = folder.0.join("precious");
    std::fs::write(&path, "kept").unwrap();
    let place = format!("unix:{}", path.display());
    let text = server_that_does_not_start("no-removal", None, &[&place]);
    assert!(text.contains("not a socket of this user"), "{text}");
    assert_eq!(std::fs::read(&path).unwrap(), b"kept");
}

#[test]
fn an_editor_without_unix_sockets_connects_through_nrepl_port() {
    let folder = Open::new("nrepl-port");
    let path = folder.0.join("editors");
    let server = Server::start("nrepl-port", None, &[&format!("nrepl:unix:{}", path.display())]);
    let mut command = Command::new(env!("CARGO_BIN_EXE_kyocho"));
    command.arg("nrepl-port").arg(&path).current_dir(&folder.0).stdout(Stdio::piped());
    let mut forwarder = command.spawn().unwrap();
    let mut lines = BufReader::new(forwarder.stdout.take().unwrap());
    let mut line = String::new();
    lines.read_line(&mut line).unwrap();
    let port = std::fs::read_to_string(folder.0.join(".nrepl-port")).unwrap();
    let address = format!("127.0.0.1:{port}");
    assert!(line.contains(&address), "{line}");
    let request = "d4:code6:(* 6 7)2:op4:evale".replace("6:(", "7:(");
    assert!(answer(&address, request.as_bytes(), &["2:42"]).contains("2:42"));
    // The server sees its own user at this connection. So `nrepl-port` must refuse its sessions and
    // other users.
    let mut session = connect(&server);
    session.line();
    let text = session.eval(&format!(
        "(define s (tcp-connect \\\"127.0.0.1\\\" {port})) (define out (socket-output-port s)) \
         (write-string \\\"{request}\\\" out) (flush-output-port out) (read-char (socket-input-port s))"
    ));
    assert!(text.contains("#<eof>") || text.contains("reset"), "{text}");
    if uid() == 0 && has_python() {
        let seen = asked_by_another(&format!("tcp:{address}"), &request).unwrap();
        assert_eq!(seen.trim(), "");
    }
    // A second bridge finds the port in use, and does not replace the file.
    let second = Command::new(env!("CARGO_BIN_EXE_kyocho"))
        .arg("nrepl-port")
        .arg(&path)
        .current_dir(&folder.0)
        .output()
        .unwrap();
    assert!(String::from_utf8_lossy(&second.stderr).contains("running here already"));
    let number = forwarder.id().to_string();
    assert!(Command::new("kill").args(["-s", "TERM", &number]).status().unwrap().success());
    assert!(forwarder.wait().unwrap().success());
    assert!(!folder.0.join(".nrepl-port").exists());
}
