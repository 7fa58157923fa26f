//! Identifies the user of a connection, and starts the getty that serves it.

use crate::context::Context;
use crate::counter::CountGuard;
use crate::dialect::{Decode, Encode};
use crate::getty::{self, Connection};
use crate::register::Register;
use crate::wire::ConnectionWriter;
use core::time::Duration;
use kyocho_lisp::account::Account;
use kyocho_microprocess::Builder;
use kyocho_microprocess::net::{TcpStream, UnixStream};
use kyocho_sys::loopback::OtherEnd;
use kyocho_sys::peer::Peer;
use std::io;
use std::os::fd::AsFd;
use std::sync::Arc;

/// A client that does not accept its output for this time is disconnected.
pub(crate) const WRITE_TIMEOUT: Duration = Duration::from_secs(10);
/// Only touched pages of a stack are memory.
pub(crate) const STACK_BYTES: usize = 1 << 20;

const OWN_SESSION: &str = "a session of this server may not connect to it";

/// The account of the user whose process has connected, or why there is none. The server's own
/// sessions have none: they would become the user who runs the server.
pub(crate) fn account_of_peer(
    register: &Register,
    stream: &UnixStream,
) -> io::Result<Result<Arc<Account>, String>> {
    let peer = Peer::of(stream.as_fd())?;
    if peer.process == std::process::id() {
        return Ok(Err(OWN_SESSION.to_owned()));
    }
    let unknown = || format!("user {} is not known here", peer.user);
    Ok(register.account_of_uid(peer.user).ok_or_else(unknown))
}

/// Refuses a connection over the loopback interface if its other end belongs to this process, or to
/// no process any more. This takes time in proportion to all connections of the machine.
pub(crate) fn check_other_process(stream: &TcpStream) -> Result<(), String> {
    let ends = stream.local_addr().and_then(|own| Ok((own, stream.peer_addr()?)));
    let end = ends.and_then(|(own, peer)| OtherEnd::of(own, peer));
    let is_own = |end: Option<OtherEnd>| end.map(|end| end.is_of_this_process()).transpose();
    match end.and_then(is_own) {
        Ok(Some(false)) => Ok(()),
        Ok(Some(true)) => Err(OWN_SESSION.to_owned()),
        Ok(None) => Err("no process of this machine holds the other end".to_owned()),
        Err(error) => Err(format!("cannot identify the process at the other end: {error}")),
    }
}

/// The sending half of a Unix socket.
pub(crate) fn outlet_of_socket(stream: &UnixStream) -> io::Result<Box<dyn ConnectionWriter>> {
    let writer = std::os::unix::net::UnixStream::from(stream.as_fd().try_clone_to_owned()?);
    writer.set_write_timeout(Some(WRITE_TIMEOUT))?;
    Ok(Box::new(writer))
}

/// The sending half of a TCP connection.
pub(crate) fn outlet_of_port(stream: &TcpStream) -> io::Result<std::net::TcpStream> {
    let writer = std::net::TcpStream::from(stream.as_fd().try_clone_to_owned()?);
    writer.set_write_timeout(Some(WRITE_TIMEOUT))?;
    Ok(writer)
}

/// A connection by a Unix socket, with the decoder and the encoder of its protocol.
pub(crate) fn socket_connection(
    stream: UnixStream,
    decode: impl Decode + 'static,
    encode: impl Encode + 'static,
) -> io::Result<Connection> {
    let writer = outlet_of_socket(&stream)?;
    let (decode, encode) = (Box::new(decode), Arc::new(encode));
    Ok(Connection { reader: Box::new(stream), writer, decode, encode })
}

/// Starts a getty for the account's user, or reports to the client why there is none. The getty's
/// own microprocess first calls `may_enter`. The returned value counts the connection until it
/// ends.
pub(crate) fn start_getty(
    context: &Context,
    account: Result<Arc<Account>, String>,
    connection: Connection,
    may_enter: impl FnOnce() -> Result<Option<CountGuard>, String> + Send + 'static,
) -> io::Result<()> {
    match account {
        Ok(account) => {
            let world = context.register.world_of(account.name());
            let system = Arc::clone(&context.system);
            let name = format!("getty: {}", account.name());
            let builder = Builder::new().name(name).stack_bytes(STACK_BYTES);
            let body = move || match may_enter() {
                Ok(_counted) => getty::serve(&system, &account, &world, connection),
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
