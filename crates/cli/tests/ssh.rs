//! The SSH service of `kyocho serve`, as the plain client of OpenSSH sees it.
#![expect(
    clippy::unwrap_used,
    reason = "what helpers of tests unwrap fails the test, as in the tests themselves"
)]

#[path = "serve/server.rs"]
mod server;

use rexpect::session::{PtySession, spawn_command};
use server::{Server, WATCHDOG};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// Whether the client is installed.
fn is_installed(test: &str) -> bool {
    let is_here = ["ssh", "ssh-keygen"].iter().all(|program| {
        Command::new(program).arg("-?").stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok()
    });
    if !is_here {
        kyocho_sys::skip::skip(test, "ssh and ssh-keygen are not installed (openssh-client)");
    }
    is_here
}

/// Keys of users, in a folder of this test.
struct Keys(PathBuf);

impl Keys {
    fn new(test: &str) -> Self {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{test}-keys"));
        // Left over from an earlier run.
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder).unwrap();
        Self(folder)
    }

    /// Makes a key. Returns its public half as a line of a configuration.
    fn make(&self, name: &str) -> String {
        let mut command = Command::new("ssh-keygen");
        command.args(["-q", "-t", "ed25519", "-N", "", "-C", name, "-f"]).arg(self.0.join(name));
        assert!(command.status().unwrap().success());
        let text = std::fs::read_to_string(self.0.join(format!("{name}.pub"))).unwrap();
        text.trim().to_owned()
    }
}

/// A server with an SSH address, and the options for its clients.
struct Door {
    server: Server,
    keys: Keys,
    port: String,
}

impl Door {
    fn open(test: &str, config: &str, keys: Keys) -> Self {
        // An earlier run may have left a host key that is refused.
        let state = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{test}-state"));
        let _ = std::fs::remove_dir_all(state);
        let mut server = Server::start(test, Some(config), &["ssh:127.0.0.1:0"]);
        let line = server.await_line("ssh:127.0.0.1:");
        let port = line.rsplit_once(':').unwrap().1.trim().to_owned();
        Self { server, keys, port }
    }

    /// The client with a user's key. The machine's own configuration of ssh is ignored.
    fn client(&self, user: &str, key: &str) -> Command {
        let mut command = Command::new("ssh");
        let option = |name: &str, path: &Path| format!("{name}={}", path.display());
        command.args(["-F", "none", "-p", &self.port, "-i"]).arg(self.keys.0.join(key));
        command.args(["-o", &option("UserKnownHostsFile", &self.keys.0.join("known_hosts"))]);
        for words in [
            "StrictHostKeyChecking=accept-new",
            "GlobalKnownHostsFile=none",
            "IdentitiesOnly=yes",
            "IdentityAgent=none",
            "BatchMode=yes",
            "LogLevel=ERROR",
        ] {
            command.args(["-o", words]);
        }
        command.arg(format!("{user}@127.0.0.1")).env_remove("NO_COLOR").env("TERM", "xterm");
        command
    }

    fn evaluate(&self, user: &str, key: &str, text: &str) -> Output {
        self.client(user, key).arg(text).stdin(Stdio::null()).output().unwrap()
    }

    fn prompt(&self, user: &str) -> PtySession {
        self.prompt_with(user, user)
    }

    fn prompt_with(&self, user: &str, key: &str) -> PtySession {
        let mut command = self.client(user, key);
        command.arg("-tt");
        spawn_command(command, Some(WATCHDOG.as_millis() as u64)).expect("a pseudo-terminal opens")
    }
}

fn config_of(users: &[(&str, &str)]) -> String {
    users.iter().map(|(name, key)| format!("[user.{name}]\nkeys = ['{key}']\n")).collect()
}

/// A server where the user `ada` has the key `ada`.
fn door_of_ada(test: &str) -> Option<Door> {
    if !is_installed(test) {
        return None;
    }
    let keys = Keys::new(test);
    let config = config_of(&[("ada", &keys.make("ada"))]);
    Some(Door::open(test, &config, keys))
}

fn text(bytes: &[u8]) -> &str {
    core::str::from_utf8(bytes).unwrap()
}

#[test]
fn a_text_is_evaluated_and_its_status_comes_back() {
    let Some(door) = door_of_ada("a_text_is_evaluated_and_its_status_comes_back") else { return };
    let output = door.evaluate("ada", "ada", "(display \"sum: \") (+ 1 2)");
    assert_eq!((output.status.code(), text(&output.stdout)), (Some(0), "sum: 3\n"));
    let output = door.evaluate("ada", "ada", "(car 1)");
    assert_eq!((output.status.code(), text(&output.stdout)), (Some(1), ""));
    assert!(text(&output.stderr).contains("car: first argument must be a pair"), "{output:?}");
    assert_eq!(door.evaluate("ada", "ada", "(exit 7)").status.code(), Some(7));
    let mut client = door.client("ada", "ada");
    let mut client = client.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    client.stdin.take().unwrap().write_all(b"(define (f x)\n (* x 2))\n(f 21)\n").unwrap();
    let output = client.wait_with_output().unwrap();
    assert_eq!((output.status.code(), text(&output.stdout)), (Some(0), "42\n"));
    let key = door.server.state.join("kyocho/ssh_host_ed25519_key");
    assert_eq!(std::fs::metadata(key).unwrap().permissions().mode() & 0o777, 0o600);
}

#[test]
fn a_client_without_a_known_key_is_refused() {
    let Some(mut door) = door_of_ada("a_client_without_a_known_key_is_refused") else { return };
    door.keys.make("eve");
    for (user, key) in [("ada", "eve"), ("eve", "eve"), ("nobody", "ada")] {
        let output = door.evaluate(user, key, "(+ 1 2)");
        assert_eq!((output.status.code(), text(&output.stdout)), (Some(255), ""), "{user} {key}");
        assert!(text(&output.stderr).contains("Permission denied (publickey)"), "{output:?}");
    }
    assert!(door.evaluate("ada", "ada", "1").status.success());
    let config = door.server.folder.join("config");
    std::fs::write(&config, "[user.ada]\n").unwrap();
    door.server.signal("HUP");
    door.server.await_line("the configuration was read again");
    let output = door.evaluate("ada", "ada", "1");
    assert!(text(&output.stderr).contains("Permission denied (publickey)"), "{output:?}");
}

#[test]
fn the_host_key_is_kept() {
    let Some(door) = door_of_ada("the_host_key_is_kept") else { return };
    assert!(door.evaluate("ada", "ada", "1").status.success());
    let state = &door.server.state;
    let path = state.join("kyocho/ssh_host_ed25519_key");
    let before = std::fs::read(&path).unwrap();
    let start = |listen: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_kyocho"));
        command.args(["serve", "--listen", listen]).env("XDG_STATE_HOME", state);
        command.stdin(Stdio::null()).output().unwrap()
    };
    // The port is in use, which the server notices after it has checked the key.
    let again = start(&format!("ssh:127.0.0.1:{}", door.port));
    assert_eq!(again.status.code(), Some(1));
    assert_eq!(std::fs::read(&path).unwrap(), before);
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
    let refused = start("ssh:127.0.0.1:0");
    assert_eq!(refused.status.code(), Some(1));
    let message = text(&refused.stderr);
    assert!(message.contains("ssh_host_ed25519_key: other users may read it"), "{message}");
}

#[test]
fn a_prompt_edits_completes_and_interrupts() {
    let Some(door) = door_of_ada("a_prompt_edits_completes_and_interrupts") else { return };
    let listening = "\x1b[?2004h";
    let enter = |session: &mut PtySession, keys: &str, answer: &str| {
        session.exp_string(listening).unwrap();
        session.send(keys).unwrap();
        session.flush().unwrap();
        session.exp_string(answer).unwrap_or_else(|error| panic!("{answer}: {error}"));
    };
    let mut session = door.prompt("ada");
    session.exp_string("ada's session").unwrap();
    enter(&mut session, "(define (twice x)\r (* 2 x)) (twice 21)\r", "42");
    enter(&mut session, "(twi\t 4)\r", "8");
    enter(&mut session, "(begin (display 'begun) (newline) (let loop () (loop)))\r", "begun\r\n");
    session.send_control('c').unwrap();
    session.exp_string("interrupted").unwrap();
    session.exp_string(listening).unwrap();
    session.send_control('d').unwrap();
    session.exp_eof().unwrap();
    // The arrow key brings back what was typed in the earlier session.
    let mut session = door.prompt("ada");
    enter(&mut session, "'of-\x1b[A\x1b[A\x01(quote \x05)\r", "(twi");
    session.send_control('d').unwrap();
}

#[test]
fn a_user_whose_key_is_removed_is_disconnected() {
    let test = "a_user_whose_key_is_removed_is_disconnected";
    if !is_installed(test) {
        return;
    }
    let keys = Keys::new(test);
    let (lost, kept, of_bob) = (keys.make("lost"), keys.make("kept"), keys.make("bob"));
    let config = config_of(&[("ada", &format!("{lost}', '{kept}")), ("bob", &of_bob)]);
    let mut door = Door::open(test, &config, keys);
    let listening = "\x1b[?2004h";
    let mut sessions = [("ada", "lost"), ("ada", "kept"), ("bob", "bob")].map(|(user, key)| {
        let mut session = door.prompt_with(user, key);
        session.exp_string(listening).unwrap();
        session.send("(define x 'st-ill)\r").unwrap();
        session.flush().unwrap();
        session.exp_string(listening).unwrap();
        session
    });
    let config = config_of(&[("ada", &kept), ("bob", &of_bob)]);
    std::fs::write(door.server.folder.join("config"), config).unwrap();
    door.server.signal("HUP");
    door.server.await_line("the configuration was read again");
    sessions[0].exp_eof().unwrap();
    for session in &mut sessions[1..] {
        session.send("(list x 'here)\r").unwrap();
        session.flush().unwrap();
        session.exp_string("(st-ill here)").unwrap();
    }
}

#[test]
fn the_window_s_size_reaches_the_line_editor() {
    let Some(door) = door_of_ada("the_window_s_size_reaches_the_line_editor") else { return };
    let mut session = door.prompt("ada");
    session.exp_string("\x1b[?2004h").unwrap();
    let resize = |session: &PtySession, columns: u16| {
        let size =
            rustix::termios::Winsize { ws_row: 24, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
        rustix::termios::tcsetwinsize(session.process().get_file_handle().unwrap(), size).unwrap();
    };
    session.send(&"x".repeat(40)).unwrap();
    session.flush().unwrap();
    session.exp_string(&"x".repeat(40)).unwrap();
    // The editor draws the line again, in three rows. Its beginning is two rows up.
    resize(&session, 20);
    session.exp_string(&"x".repeat(40)).unwrap();
    session.send_control('e').unwrap();
    session.send_control('a').unwrap();
    session.exp_string("\x1b[2A").unwrap();
}

#[test]
fn garbage_and_silence_at_the_port_do_not_affect_others() {
    let test = "garbage_and_silence_at_the_port_do_not_affect_others";
    if !is_installed(test) {
        return;
    }
    let keys = Keys::new(test);
    let limits = "[ssh]\nconnections_an_address = 8\nlogin_seconds = 2\n";
    let config = config_of(&[("ada", &keys.make("ada"))]) + limits;
    let door = Door::open(test, &config, keys);
    let knock = || {
        let stream = TcpStream::connect(format!("127.0.0.1:{}", door.port)).unwrap();
        stream.set_read_timeout(Some(WATCHDOG)).unwrap();
        stream
    };
    let rest = |mut stream: TcpStream| {
        let mut rest = Vec::new();
        // The server may close the connection while garbage is being written.
        let _ = stream.read_to_end(&mut rest);
        rest
    };
    for bytes in
        [&b"GET / HTTP/1.1\r\n\r\n"[..], &[0xff; 4096], b"SSH-2.0-x\r\n\xff\xff\xff\xff\xff\xff"]
    {
        let mut stream = knock();
        let _ = stream.write_all(bytes);
        rest(stream);
    }
    // A client that sends nothing, or stops in the middle, is disconnected after the time limit for
    // a login.
    let mut silent: Vec<TcpStream> = (0..8).map(|_| knock()).collect();
    silent[0].write_all(b"SSH-2.0-half-open\r\n").unwrap();
    silent[1].write_all(b"SSH-2.0-").unwrap();
    let one_more = rest(knock());
    assert_eq!(one_more, b"", "nine from one address are too many");
    for stream in silent {
        let received = rest(stream);
        assert!(received.starts_with(b"SSH-2.0-"), "{received:?}");
    }
    // Sessions can be opened again once the server has noticed the disconnections.
    let mut output = door.evaluate("ada", "ada", "'unhurt");
    while !output.status.success() {
        output = door.evaluate("ada", "ada", "'unhurt");
    }
    assert_eq!(text(&output.stdout), "unhurt\n");
}
