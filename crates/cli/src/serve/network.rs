//! The network service: listens, asks who has come, and has a getty serve him.

use super::address::Address;
use super::editors::{self, EditorsDoor};
use super::getty::{self, Connection};
use super::nrepl::TokenFile;
use super::register::Register;
use super::room::Place;
use super::socket_file::{self, SocketFile};
use super::ssh::{Arrival, Door};
use super::{frames, telnet};
use core::time::Duration;
use kyocho_lisp::account::Account;
use kyocho_lisp::system::System;
use kyocho_microprocess::Builder;
use kyocho_microprocess::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use kyocho_sys::loopback::OtherEnd;
use kyocho_sys::peer::Peer;
use std::io::{self, ErrorKind};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

/// A user who does not take what is sent to him is hung up on after this time.
pub(super) const PATIENCE: Duration = Duration::from_secs(10);
/// How long nobody is let in after the host had no descriptors or memory for one more.
const PAUSE: Duration = Duration::from_millis(100);
/// Only touched pages of a stack are memory.
pub(super) const STACK_BYTES: usize = 1 << 20;

/// A place that is listened at.
pub(crate) enum Listener {
    Unix(UnixListener),
    Ssh(Door),
    Telnet(TcpListener),
    NreplUnix(UnixListener),
    Nrepl(EditorsDoor),
}

impl Listener {
    /// Where it listens, as the host tells.
    pub(crate) fn address(&self) -> Option<Address> {
        match self {
            Self::Unix(_) | Self::NreplUnix(_) => None,
            Self::Ssh(door) => Some(Address::Ssh(door.address())),
            Self::Telnet(listener) => listener.local_addr().ok().map(Address::Telnet),
            Self::Nrepl(door) => door.address().ok().map(Address::Nrepl),
        }
    }
}

/// What is gone with a server.
#[derive(Debug)]
pub(crate) enum Kept {
    Socket { _file: SocketFile },
    Token { _file: TokenFile },
}

/// Listens at `address`; what is to be kept for as long.
///
/// # Errors
/// The host's; a socket where a server listens already; a door that the configuration gives to nobody.
pub(crate) fn listen(
    address: &Address,
    system: &System,
    register: &Arc<Register>,
) -> io::Result<(Listener, Option<Kept>)> {
    let unix = |path| {
        let (listener, file) = socket_file::listen(path)?;
        Ok::<_, io::Error>((listener, Some(Kept::Socket { _file: file })))
    };
    match address {
        Address::Unix(path) => unix(path).map(|(listener, kept)| (Listener::Unix(listener), kept)),
        Address::NreplUnix(path) => {
            unix(path).map(|(listener, kept)| (Listener::NreplUnix(listener), kept))
        }
        Address::Ssh(address) => Ok((Listener::Ssh(Door::open(*address, register)?), None)),
        Address::Telnet(address) => {
            if register.account_of_telnet().is_none() {
                return Err(io::Error::other(NO_TELNET_USER));
            }
            let listener = TcpListener::bind(address)?;
            // The urgent byte of an interrupt stays where it is in the stream; connections inherit this.
            rustix::net::sockopt::set_socket_oobinline(&listener, true)?;
            system.keep_sessions_from(listener.local_addr()?);
            Ok((Listener::Telnet(listener), None))
        }
        Address::Nrepl(address) => {
            let (door, file) = EditorsDoor::open(*address, register)?;
            system.keep_sessions_from(door.address()?);
            Ok((Listener::Nrepl(door), Some(Kept::Token { _file: file })))
        }
    }
}

const NO_TELNET_USER: &str = "anybody on this machine can come by telnet: a configuration has to \
                              name a `telnet_user` (docs/serve.md)";

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
            Listener::NreplUnix(listener) => {
                listener.accept().and_then(|stream| editors::let_in(system, register, stream))
            }
            Listener::Nrepl(door) => door.let_in(system, register),
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
    let account = account_of_peer(register, &stream)?;
    begin(system, register, account, in_frames(stream)?, || Ok(None))
}

/// Whose account the process has that connected, or why it has none. One of the server's own sessions has none: it would become the user who runs
/// the server.
pub(super) fn account_of_peer(
    register: &Register,
    stream: &UnixStream,
) -> io::Result<Result<Arc<Account>, String>> {
    let peer = Peer::of(stream.as_fd())?;
    if peer.process == std::process::id() {
        return Ok(Err(FROM_WITHIN.to_owned()));
    }
    let unknown = || format!("user {} is not known here", peer.user);
    Ok(register.account_of_uid(peer.user).ok_or_else(unknown))
}

const FROM_WITHIN: &str = "a session of this server does not enter it";

/// Refuses a connection over the loopback interface whose other end is this process's, or nobody's any more.
pub(super) fn comes_from_outside(stream: &TcpStream) -> Result<(), String> {
    let ends = stream.local_addr().and_then(|own| Ok((own, stream.peer_addr()?)));
    let end = ends.and_then(|(own, peer)| OtherEnd::of(own, peer));
    let is_own = |end: Option<OtherEnd>| end.map(|end| end.is_of_this_process()).transpose();
    match end.and_then(is_own) {
        Ok(Some(false)) => Ok(()),
        Ok(Some(true)) => Err(FROM_WITHIN.to_owned()),
        Ok(None) => Err("no process of this machine holds the other end".to_owned()),
        Err(error) => Err(format!("the host does not tell whose connection this is: {error}")),
    }
}

/// Serves who has proved to the SSH door who he is.
fn ssh(system: &Arc<System>, register: &Register, arrival: Arrival) -> io::Result<()> {
    let Arrival { user, stream } = arrival;
    // The configuration may have changed meanwhile.
    let refusal = || format!("user {user} is not known here");
    let account = register.account_of(&user).ok_or_else(refusal);
    begin(system, register, account, in_frames(OwnedFd::from(stream).into())?, || Ok(None))
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
    let asked = stream.try_clone()?;
    let connection = Connection {
        reader: Box::new(stream),
        writer: Box::new(writer),
        decode: Box::new(telnet::Decoder::default()),
        encode: Arc::new(telnet::Encoder),
    };
    let Some(account) = register.account_of_telnet() else {
        connection.refuse("the configuration names no telnet_user");
        return Ok(());
    };
    // Counted before anything is asked, which takes time in proportion to all connections of the machine.
    let (name, max) = (account.name(), account.bounds().sessions_max);
    let Some(place) = register.guests().enter(max) else {
        connection.refuse(&format!("too many sessions: {name} may have {max}"));
        return Ok(());
    };
    begin(system, register, Ok(account), connection, move || {
        comes_from_outside(&asked).map(|()| Some(place))
    })
}

/// Starts a getty for who `may_enter`, which it asks; or says why there is none. His place is kept to the end.
fn begin(
    system: &Arc<System>,
    register: &Register,
    account: Result<Arc<Account>, String>,
    connection: Connection,
    may_enter: impl FnOnce() -> Result<Option<Place>, String> + Send + 'static,
) -> io::Result<()> {
    match account {
        Ok(account) => {
            let (system, world) = (Arc::clone(system), register.world_of(account.name()));
            let name = format!("getty: {}", account.name());
            let builder = Builder::new().name(name).stack_bytes(STACK_BYTES);
            let body = move || match may_enter() {
                Ok(_place) => getty::serve(&system, &account, &world, connection),
                Err(reason) => connection.refuse(&reason),
            };
            builder.spawn(body).map(drop)
        }
        Err(reason) => {
            connection.refuse(&reason);
            Ok(())
        }
    }
}
