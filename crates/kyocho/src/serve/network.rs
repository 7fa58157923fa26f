//! The network service: listens, asks who has come, and has a getty serve him.

use super::address::Address;
use super::getty::{self, Connection};
use super::nrepl::Editor;
use super::register::Register;
use super::socket_file::{self, SocketFile};
use super::ssh::{Arrival, Door};
use super::wire::Wire;
use super::{frames, nrepl, telnet};
use core::time::Duration;
use kyocho_lisp::account::Account;
use kyocho_lisp::system::System;
use kyocho_microprocess::Builder;
use kyocho_microprocess::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use kyocho_sys::peer::Peer;
use std::io::{self, ErrorKind};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

/// A user who does not take what is sent to him is hung up on after this time.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long nobody is let in after the host had no descriptors or memory for one more.
const PAUSE: Duration = Duration::from_millis(100);
/// Only touched pages of a stack are memory.
const STACK_BYTES: usize = 1 << 20;

/// A place that is listened at.
#[derive(Debug)]
pub(crate) enum Listener {
    Unix(UnixListener),
    Ssh(Door),
    Telnet(TcpListener),
    Nrepl(TcpListener),
}

impl Listener {
    /// Where it listens, as the host tells.
    pub(crate) fn address(&self) -> Option<Address> {
        match self {
            Self::Unix(_) => None,
            Self::Ssh(door) => Some(Address::Ssh(door.address())),
            Self::Telnet(listener) => listener.local_addr().ok().map(Address::Telnet),
            Self::Nrepl(listener) => listener.local_addr().ok().map(Address::Nrepl),
        }
    }
}

/// Listens at `address`; what is to be kept for as long.
///
/// # Errors
/// The host's; a socket where a server listens already.
pub(crate) fn listen(
    address: &Address,
    register: &Arc<Register>,
) -> io::Result<(Listener, Option<SocketFile>)> {
    match address {
        Address::Unix(path) => {
            let (listener, file) = socket_file::listen(path)?;
            Ok((Listener::Unix(listener), Some(file)))
        }
        Address::Ssh(address) => Ok((Listener::Ssh(Door::open(*address, register)?), None)),
        Address::Telnet(address) => {
            let listener = TcpListener::bind(address)?;
            // The urgent byte of an interrupt stays where it is in the stream; connections inherit this.
            rustix::net::sockopt::set_socket_oobinline(&listener, true)?;
            Ok((Listener::Telnet(listener), None))
        }
        Address::Nrepl(address) => Ok((Listener::Nrepl(TcpListener::bind(address)?), None)),
    }
}

/// The service's body: lets users in until the process ends.
pub(crate) fn serve(system: &Arc<System>, register: &Arc<Register>, listener: &Listener) {
    loop {
        let let_in = match listener {
            Listener::Unix(listener) => {
                listener.accept().and_then(|stream| unix(system, register, stream))
            }
            Listener::Ssh(door) => door.accept().and_then(|arrival| ssh(system, register, arrival)),
            Listener::Telnet(listener) => {
                listener.accept().and_then(|(stream, _)| telnet(system, register, stream))
            }
            Listener::Nrepl(listener) => {
                listener.accept().and_then(|(stream, _)| nrepl(system, register, stream))
            }
        };
        if let Err(error) = let_in
            && error.kind() != ErrorKind::ConnectionAborted
        {
            crate::terminal::complain(&format!("kyocho: network: {error}"));
            kyocho_microprocess::sleep(PAUSE);
        }
    }
}

fn unix(system: &Arc<System>, register: &Register, stream: UnixStream) -> io::Result<()> {
    let peer = Peer::of(stream.as_fd())?;
    let account = register.account_of_uid(peer.user);
    let refusal = || format!("user {} is not known here", peer.user);
    begin(system, register, account.ok_or_else(refusal), in_frames(stream)?)
}

/// Serves who has proved to the SSH door who he is.
fn ssh(system: &Arc<System>, register: &Register, arrival: Arrival) -> io::Result<()> {
    let Arrival { user, stream } = arrival;
    // The configuration may have changed meanwhile.
    let refusal = || format!("user {user} is not known here");
    let account = register.account_of(&user).ok_or_else(refusal);
    begin(system, register, account, in_frames(OwnedFd::from(stream).into())?)
}

fn in_frames(stream: UnixStream) -> io::Result<Connection> {
    let writer = std::os::unix::net::UnixStream::from(stream.as_fd().try_clone_to_owned()?);
    writer.set_write_timeout(Some(PATIENCE))?;
    Ok(Connection {
        reader: Box::new(stream),
        writer: Box::new(writer),
        decode: Box::new(frames::Decoder::default()),
        encode: Arc::new(frames::Encoder),
    })
}

fn telnet(system: &Arc<System>, register: &Register, stream: TcpStream) -> io::Result<()> {
    let writer = std::net::TcpStream::from(stream.as_fd().try_clone_to_owned()?);
    writer.set_write_timeout(Some(PATIENCE))?;
    let connection = Connection {
        reader: Box::new(stream),
        writer: Box::new(writer),
        decode: Box::new(telnet::Decoder::default()),
        encode: Arc::new(telnet::Encoder),
    };
    let refusal = || "the configuration names no telnet_user".to_owned();
    begin(system, register, register.account_of_telnet().ok_or_else(refusal), connection)
}

/// Serves an editor; one who may not come in is hung up on.
fn nrepl(system: &Arc<System>, register: &Register, stream: TcpStream) -> io::Result<()> {
    let Some(account) = register.account_of_nrepl() else {
        crate::terminal::complain("kyocho: nrepl: the configuration names no nrepl_user");
        return Ok(());
    };
    let writer = std::net::TcpStream::from(stream.as_fd().try_clone_to_owned()?);
    writer.set_write_timeout(Some(PATIENCE))?;
    // Answers are small, and come one after the other.
    writer.set_nodelay(true)?;
    let (system, wire) = (Arc::clone(system), Wire::new(Box::new(writer)));
    let max = account.bounds().sessions_max;
    // One that opens no session is of no use to him.
    let Some(place) = register.editors().enter(max) else {
        nrepl::refuse(wire, &format!("too many connections: {} may have {max}", account.name()));
        return Ok(());
    };
    let world = register.world_of(account.name());
    let name = format!("nrepl: {}", account.name());
    let builder = Builder::new().name(name).stack_bytes(STACK_BYTES);
    let body = move || {
        let _place = place;
        nrepl::serve(&system, &account, world, Editor::new(Box::new(stream), wire));
    };
    builder.spawn(body).map(drop)
}

/// Starts a getty, or says why there is none.
fn begin(
    system: &Arc<System>,
    register: &Register,
    account: Result<Arc<Account>, String>,
    connection: Connection,
) -> io::Result<()> {
    match account {
        Ok(account) => {
            let (system, world) = (Arc::clone(system), register.world_of(account.name()));
            let name = format!("getty: {}", account.name());
            let builder = Builder::new().name(name).stack_bytes(STACK_BYTES);
            builder.spawn(move || getty::serve(&system, &account, &world, connection)).map(drop)
        }
        Err(reason) => {
            connection.refuse(&reason);
            Ok(())
        }
    }
}
