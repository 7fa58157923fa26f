//! `kyocho nrepl-port`: a TCP port, for editors that cannot use a Unix socket, which leads to a
//! server's Unix socket.
//!
//! ```text
//!   editor ──TCP──► kyocho nrepl-port ──Unix socket──► kyocho serve --listen nrepl
//!                     checks the process at the other end (/proc/net/tcp)
//! ```
//!
//! To the server, every connection belongs to the user that runs this command. So the socket at the
//! other end must belong to the same user. It must not belong to the server's process, because the
//! server's sessions act for other users.

use crate::{signals, terminal};
use core::net::Ipv4Addr;
use kyocho_sys::loopback::OtherEnd;
use kyocho_sys::peer::{Peer, own_user};
use kyocho_sys::prim::atomic::{AtomicUsize, Ordering};
use std::fs::{self, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

/// The file in which editors look for a port, in the folder of a project.
const PORT_FILE: &str = ".nrepl-port";
/// Longest such file: a number.
const PORT_FILE_BYTES_MAX: u64 = 16;
/// Most connections at a time.
const CONNECTIONS_MAX: usize = 32;
const STACK_BYTES: usize = 256 << 10;

/// `kyocho nrepl-port`.
pub(crate) fn command(socket: Option<PathBuf>, port: u16) -> ExitCode {
    match open(socket, port) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            terminal::complain(&format!("kyocho: {message}"));
            ExitCode::FAILURE
        }
    }
}

fn open(socket: Option<PathBuf>, port: u16) -> Result<(), String> {
    let own = || kyocho_sys::directory::of_user().map(|folder| folder.join("nrepl.sock"));
    let socket = socket.map_or_else(own, Ok).map_err(|error| error.to_string())?;
    let missing = |error| {
        let path = socket.display();
        format!("{path}: {error} (is `kyocho serve --listen nrepl` running?)")
    };
    UnixStream::connect(&socket).map_err(missing)?;
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port));
    let listener = listener.map_err(|error| format!("port {port}: {error}"))?;
    let port = listener.local_addr().map_err(|error| error.to_string())?.port();
    let _file = PortFile::write(Path::new(PORT_FILE), port)
        .map_err(|error| format!("{PORT_FILE}: {error}"))?;
    let accepting = move || accept(&listener, &socket);
    kyocho_sys::thread::start("nrepl-port", STACK_BYTES, accepting)
        .map_err(|error| format!("cannot start a thread: {error}"))?;
    terminal::line(&format!("editors can connect to 127.0.0.1:{port}; the port is in {PORT_FILE}"));
    signals::serve(|| {});
    Ok(())
}

/// The file with the port. Removed when this is dropped.
struct PortFile(PathBuf);

impl PortFile {
    /// Writes the file. An existing file is replaced only if it contains a port on which no process
    /// listens.
    fn write(path: &Path, port: u16) -> io::Result<Self> {
        if is_left_over(path)? {
            fs::remove_file(path)?;
        }
        let mut file = OpenOptions::new().write(true).create_new(true).open(path)?;
        write!(file, "{port}")?;
        Ok(Self(path.to_owned()))
    }
}

impl Drop for PortFile {
    fn drop(&mut self) {
        // The file may be gone already, which is as good.
        let _ = fs::remove_file(&self.0);
    }
}

fn is_left_over(path: &Path) -> io::Result<bool> {
    let taken = |why| Err(io::Error::new(ErrorKind::AlreadyExists, why));
    match fs::symlink_metadata(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(false),
        Ok(found) if found.is_file() && found.len() <= PORT_FILE_BYTES_MAX => {}
        _ => return taken("the existing file contains no port, and is not replaced"),
    }
    let Ok(port) = fs::read_to_string(path)?.trim().parse::<u16>() else {
        return taken("the existing file contains no port, and is not replaced");
    };
    match TcpStream::connect((Ipv4Addr::LOCALHOST, port)) {
        Err(error) if error.kind() == ErrorKind::ConnectionRefused => Ok(true),
        _ => taken("an nREPL server is running here already"),
    }
}

fn accept(listener: &TcpListener, socket: &Path) {
    let open = Arc::new(AtomicUsize::new(0));
    for stream in listener.incoming() {
        let stream = match stream {
            Ok(stream) => stream,
            Err(error) => return terminal::complain(&format!("kyocho: {error}")),
        };
        if open.fetch_add(1, Ordering::AcqRel) >= CONNECTIONS_MAX {
            open.fetch_sub(1, Ordering::AcqRel);
            continue;
        }
        let (socket, counter) = (socket.to_owned(), Arc::clone(&open));
        let body = move || {
            if let Err(error) = lead(&stream, &socket) {
                terminal::complain(&format!("kyocho: refused a connection: {error}"));
            }
            counter.fetch_sub(1, Ordering::AcqRel);
        };
        if let Err(error) = kyocho_sys::thread::start("nrepl-connection", STACK_BYTES, body) {
            open.fetch_sub(1, Ordering::AcqRel);
            terminal::complain(&format!("kyocho: cannot start a thread: {error}"));
        }
    }
}

/// Forwards one connection to the server, to its end.
fn lead(editor: &TcpStream, socket: &Path) -> io::Result<()> {
    let server = UnixStream::connect(socket)?;
    let refuse = |why| Err(io::Error::new(ErrorKind::PermissionDenied, why));
    match OtherEnd::of(editor.local_addr()?, editor.peer_addr()?)? {
        Some(end) if end.user != own_user() => return refuse("it belongs to another user"),
        Some(end) if end.is_of(Peer::of(server.as_fd())?.process)? => {
            return refuse("it comes from a session of the server");
        }
        Some(_) => {}
        None => return refuse("no process holds its other end"),
    }
    editor.set_nodelay(true)?;
    let (mut from_server, mut to_editor) = (server.try_clone()?, editor.try_clone()?);
    let back = kyocho_sys::thread::start("nrepl-answers", STACK_BYTES, move || {
        // If either side closes its connection, the other one is closed as well.
        let _ = io::copy(&mut from_server, &mut to_editor);
        let _ = to_editor.shutdown(Shutdown::Both);
    })?;
    let _ = io::copy(&mut &*editor, &mut &server);
    let _ = server.shutdown(Shutdown::Write);
    // The thread cannot panic.
    let _ = back.join();
    Ok(())
}
