//! Requests to other address spaces, for `kyocho ps`, `top` and `kill`.
//!
//! Plain blocking calls with a time limit, for kernel threads and microprocesses alike.

use core::time::Duration;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::{fs, process};

use kyocho_sys::directory;

use super::protocol::{REPLY_BYTES_MAX, Reply, Request, to_line};
use super::server::path_of;

/// How long an address space may take to answer. It needs no virtual processor for that.
const PATIENCE: Duration = Duration::from_secs(10);

/// A connection to the control socket of one address space.
#[derive(Debug)]
pub struct Client {
    process: u32,
    reader: BufReader<UnixStream>,
}

impl Client {
    /// Connects to the address space of `process`.
    ///
    /// # Errors
    /// `NotFound`: it serves no control socket to this user. Otherwise the host's.
    pub fn connect(process: u32) -> io::Result<Self> {
        Self::connect_in(&directory::of_user()?, process)
    }

    pub(super) fn connect_in(directory: &Path, process: u32) -> io::Result<Self> {
        let path = path_of(directory, process);
        let stream = UnixStream::connect(&path).map_err(|error| {
            if error.kind() == io::ErrorKind::ConnectionRefused {
                // A dead process has left the socket behind.
                let _taken = fs::remove_file(&path);
            }
            let why = format!("process {process} serves no control socket here ({error})");
            io::Error::new(io::ErrorKind::NotFound, why)
        })?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        Ok(Self { process, reader: BufReader::new(stream) })
    }

    /// The number of the process to which it is connected.
    #[must_use]
    pub fn process(&self) -> u32 {
        self.process
    }

    /// Sends a request, and waits for the reply.
    ///
    /// # Errors
    /// `Other`, with the message of the address space, if it refuses or fails; the host's, if it
    /// has ended.
    pub fn ask(&mut self, request: &Request) -> io::Result<Reply> {
        let mut line = to_line(request).map_err(io::Error::other)?;
        line.push('\n');
        self.reader.get_mut().write_all(line.as_bytes())?;
        let mut reply = Vec::new();
        self.reader.by_ref().take(REPLY_BYTES_MAX as u64).read_until(b'\n', &mut reply)?;
        if reply.last() != Some(&b'\n') {
            let why = format!("process {} closed the connection without an answer", self.process);
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, why));
        }
        match serde_json::from_slice(&reply) {
            Ok(Reply::Error(why)) => Err(io::Error::other(why)),
            Ok(reply) => Ok(reply),
            Err(error) => Err(io::Error::new(io::ErrorKind::InvalidData, error)),
        }
    }
}

/// The processes of this user that serve a control socket, except the calling one, in ascending
/// order.
///
/// # Errors
/// The directory cannot be read.
pub fn processes() -> io::Result<Vec<u32>> {
    let directory: PathBuf = directory::of_user()?;
    let number = |entry: io::Result<fs::DirEntry>| {
        let name = entry.ok()?.file_name();
        name.to_str()?.strip_suffix(".sock")?.parse().ok()
    };
    let others = |process: &u32| *process != process::id();
    let mut found: Vec<u32> = fs::read_dir(directory)?.filter_map(number).filter(others).collect();
    found.sort_unstable();
    Ok(found)
}
