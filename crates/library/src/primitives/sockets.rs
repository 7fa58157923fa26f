//! Stream sockets: TCP, and Unix sockets of this machine. Reading and writing go through ports.
//!
//! A connection's descriptors are non-blocking; a thread waits in `poll`, outside Lisp, so it can
//! be ended.

use super::Primitive;
use super::call::Call;
use super::host_names::look_up;
use crate::port::{Content, Flush, Input, Output, Port, Tls, file_error, permit, waiting};
use crate::session::{self, has_request};
use core::net::SocketAddr;
use kyocho_heap::account::{Countable, Held};
use kyocho_heap::heap::{ForeignObject, Mutator};
use kyocho_heap::raise::{Cause, Raise, Result};
use kyocho_heap::value::Value;
use kyocho_sys::error::Errno;
use kyocho_sys::poll::{self, Interest};
use rustls::{ServerConfig, ServerConnection};
use socket2::{Domain, SockAddr, Socket, Type};
use std::io::{self, ErrorKind};
use std::net::Shutdown;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

pub(super) const TABLE: &[Primitive] = &[
    Primitive::exactly("tcp-connect", 2, |m, a| {
        let call = Call::new("tcp-connect", a);
        let addresses = tcp_addresses(m, call)?;
        connect(m, call, &addresses)
    }),
    Primitive::exactly("tcp-listen", 2, |m, a| {
        let call = Call::new("tcp-listen", a);
        let addresses = tcp_addresses(m, call)?;
        listen(m, call, &addresses, Layer::Listener)
    }),
    Primitive::exactly("unix-connect", 1, |m, a| {
        let call = Call::new("unix-connect", a);
        connect(m, call, &[unix_address(m, call)?])
    }),
    Primitive::exactly("unix-listen", 1, |m, a| {
        let call = Call::new("unix-listen", a);
        let address = unix_address(m, call)?;
        listen(m, call, &[address], Layer::Listener)
    }),
    Primitive::exactly("socket-accept", 1, accept),
    Primitive::exactly("socket?", 1, |_, a| {
        Ok(Value::boolean(a[0].as_foreign::<SocketObject>().is_some()))
    }),
    Primitive::exactly("socket-address", 1, |m, a| {
        let text = socket(Call::new("socket-address", a))?.address.clone();
        Ok(m.string(&text)?)
    }),
    Primitive::exactly("socket-close!", 1, |_, a| {
        socket(Call::new("socket-close!", a))?.close();
        Ok(Value::UNSPECIFIED)
    }),
    Primitive::exactly("socket-end!", 1, |_, a| {
        let socket = socket(Call::new("socket-end!", a))?;
        socket.announce_end();
        // The other side has closed already, or the socket is not connected.
        let _ = socket.lock().0.as_ref().map(|socket| socket.shutdown(Shutdown::Write));
        Ok(Value::UNSPECIFIED)
    }),
    Primitive::between("socket-input-port", 1, 2, |m, a| {
        let (name, end, content) = end(Call::new("socket-input-port", a))?;
        let input = match end {
            End::Plain(end) => Input::of_file(end),
            End::Tls(tls) => Input::of_tls(tls),
        };
        Ok(m.foreign(Box::new(Port::of_input(name, content, input)))?)
    }),
    Primitive::between("socket-output-port", 1, 2, |m, a| {
        let (name, end, content) = end(Call::new("socket-output-port", a))?;
        let output = match end {
            End::Plain(end) => Output::of_file(end, Flush::WhenFull),
            End::Tls(tls) => Output::of_tls(tls, Flush::WhenFull),
        };
        Ok(m.foreign(Box::new(Port::of_output(name, content, output)))?)
    }),
];

/// Maximum number of connections waiting to be accepted.
const BACKLOG: i32 = 128;

/// The role and protocol of a socket.
#[derive(Debug)]
pub(super) enum Layer {
    Listener,
    /// A listener for TLS connections.
    TlsListener(Arc<ServerConfig>),
    Stream,
    Tls(Arc<Tls>),
}

/// The stream that a port of a connection reads or writes.
enum End {
    Plain(OwnedFd),
    Tls(Arc<Tls>),
}

/// A socket as Lisp refers to it.
#[derive(Debug)]
struct SocketObject {
    /// Its own address if it is a listener, otherwise the other side's.
    address: String,
    layer: Layer,
    /// The socket, `None` once closed; its count among its account's sockets.
    socket: Mutex<(Option<Socket>, Option<Held>)>,
}

impl ForeignObject for SocketObject {}

impl SocketObject {
    fn lock(&self) -> MutexGuard<'_, (Option<Socket>, Option<Held>)> {
        self.socket.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends the connection and its ports. Threads that wait in the ports are woken.
    fn close(&self) {
        self.announce_end();
        if let (Some(socket), _) = core::mem::take(&mut *self.lock()) {
            // The other side has closed already, or the socket is not connected.
            let _ = socket.shutdown(Shutdown::Both);
        }
    }

    /// Announces the end, so that the other side can distinguish it from a broken connection.
    fn announce_end(&self) {
        if let Layer::Tls(tls) = &self.layer {
            tls.announce_end();
        }
    }

    fn listens(&self) -> bool {
        matches!(self.layer, Layer::Listener | Layer::TlsListener(_))
    }

    /// A new descriptor of the same socket.
    fn end(&self) -> io::Result<Socket> {
        let state = self.lock();
        let closed = || io::Error::new(ErrorKind::NotConnected, "the socket is closed");
        state.0.as_ref().ok_or_else(closed)?.try_clone()
    }
}

fn socket<'a>(call: Call<'_>) -> Result<&'a SocketObject> {
    call.value(0).as_foreign::<SocketObject>().ok_or_else(|| call.wrong(0, "socket"))
}

/// Counts a socket for the running thread's account.
fn hold(m: &Mutator, who: &'static str) -> Result<Option<Held>> {
    let Some(account) = m.context.account() else { return Ok(None) };
    let exceeded = |error| Raise::error(format!("{who}: {error}; close some"), Vec::new());
    account.hold(Countable::Sockets).map(Some).map_err(exceeded)
}

/// The addresses for argument 0, a host's name or number, and argument 1, a port number.
pub(super) fn tcp_addresses(m: &mut Mutator, call: Call<'_>) -> Result<Vec<SockAddr>> {
    let host = call.string(0)?;
    let port = u16::try_from(call.fixnum(1)?).map_err(|_| call.outside(1, "0 <= port <= 65535"))?;
    let held = hold(m, call.who())?;
    let found = look_up(m, &host, port, held);
    let found = found.map_err(|error| refused(call, &host, &error))?;
    Ok(found.into_iter().map(SockAddr::from).collect())
}

/// A Unix address: a path, which needs the right to use files.
fn unix_address(m: &Mutator, call: Call<'_>) -> Result<SockAddr> {
    let path = call.string(0)?;
    permit(m, call.who(), &path)?;
    SockAddr::unix(&path).map_err(|error| file_error(call.who(), &path, &error))
}

fn shown(address: &SockAddr) -> String {
    let path = || address.as_pathname().map(|path| path.display().to_string());
    address
        .as_socket()
        .map(|address: SocketAddr| address.to_string())
        .or_else(path)
        .unwrap_or_default()
}

/// Waits until the socket is ready. An error if the thread must stop.
fn await_ready(m: &mut Mutator, socket: &Socket, interest: Interest) -> io::Result<()> {
    loop {
        match waiting(m, |_| poll::wait([(socket.as_fd(), interest)], None)) {
            Err(Errno::INTR) if !has_request(&m.context) => {}
            result => return Ok(result.map(drop)?),
        }
    }
}

pub(super) fn refused(call: Call<'_>, what: &str, error: &io::Error) -> Raise {
    if error.kind() == ErrorKind::Interrupted {
        return Raise::new(Cause::Interrupted);
    }
    file_error(call.who(), what, error)
}

/// Makes the object for a socket that is about to be created.
pub(super) fn reserve(m: &mut Mutator) -> Result {
    Ok(m.reserve_outside::<SocketObject>()?)
}

pub(super) fn store(
    m: &mut Mutator,
    place: Value,
    socket: Socket,
    address: String,
    layer: Layer,
    held: Option<Held>,
) -> Value {
    let socket = Mutex::new((Some(socket), held));
    m.complete_outside(place, SocketObject { address, layer, socket })
}

fn connect(m: &mut Mutator, call: Call<'_>, addresses: &[SockAddr]) -> Result {
    let place = reserve(m)?;
    let (socket, address, held) = reach(m, call, addresses)?;
    Ok(store(m, place, socket, address, Layer::Stream, held))
}

/// Connects to the first address that answers. Returns the socket, its address, and its count among
/// the account's sockets.
pub(super) fn reach(
    m: &mut Mutator,
    call: Call<'_>,
    addresses: &[SockAddr],
) -> Result<(Socket, String, Option<Held>)> {
    let held = hold(m, call.who())?;
    let mut failed = io::Error::from(ErrorKind::AddrNotAvailable);
    for address in addresses {
        match connected(m, address) {
            Ok(socket) => return Ok((socket, shown(address), held)),
            Err(error) if error.kind() == ErrorKind::Interrupted => {
                return Err(refused(call, "", &error));
            }
            Err(error) => failed = error,
        }
    }
    Err(refused(call, &addresses.first().map(shown).unwrap_or_default(), &failed))
}

fn connected(m: &mut Mutator, address: &SockAddr) -> io::Result<Socket> {
    let socket = Socket::new(address.domain(), Type::STREAM, None)?;
    socket.set_nonblocking(true)?;
    match socket.connect(address) {
        Err(error) if error.raw_os_error() == Some(Errno::INPROGRESS.number()) => {
            await_ready(m, &socket, Interest::Write)?;
            if let Some(error) = socket.take_error()? {
                return Err(error);
            }
        }
        result => result?,
    }
    if leads_to_forbidden_address(m, &socket)? {
        let reason = "a session of this server may not connect to it";
        return Err(io::Error::new(ErrorKind::PermissionDenied, reason));
    }
    socket.set_nonblocking(false)?;
    Ok(socket)
}

/// Whether the socket is connected to a service of this process through which another user would
/// enter.
fn leads_to_forbidden_address(m: &Mutator, socket: &Socket) -> io::Result<bool> {
    let is_door = |end| {
        session::with(&m.context, |own| own.is_some_and(|own| own.forbidden_addresses.has(end)))
    };
    match socket.peer_addr() {
        Ok(end) => Ok(end.as_socket().is_some_and(is_door)),
        // The other side has hung up: nothing is heard there.
        Err(error) if error.kind() == ErrorKind::NotConnected => Ok(false),
        Err(error) => Err(error),
    }
}

pub(super) fn listen(
    m: &mut Mutator,
    call: Call<'_>,
    addresses: &[SockAddr],
    layer: Layer,
) -> Result {
    let place = reserve(m)?;
    let held = hold(m, call.who())?;
    let Some(address) = addresses.first() else {
        return Err(refused(call, "", &ErrorKind::AddrNotAvailable.into()));
    };
    let made = || {
        let socket = Socket::new(address.domain(), Type::STREAM, None)?;
        if address.domain() != Domain::UNIX {
            socket.set_reuse_address(true)?;
        }
        socket.bind(address)?;
        socket.listen(BACKLOG)?;
        // A client may disappear before its connection is accepted.
        socket.set_nonblocking(true)?;
        // If the port was 0, the host has chosen one.
        let own = socket.local_addr()?;
        Ok((socket, shown(&own)))
    };
    let (socket, own) = made().map_err(|error| refused(call, &shown(address), &error))?;
    Ok(store(m, place, socket, own, layer, held))
}

/// `(socket-accept listener)`: waits for a connection.
fn accept(m: &mut Mutator, arguments: &[Value]) -> Result {
    let call = Call::new("socket-accept", arguments);
    let listener = socket(call)?;
    if !listener.listens() {
        return Err(call.wrong(0, "socket that listens"));
    }
    let place = reserve(m)?;
    let held = hold(m, call.who())?;
    let mut accepted = || {
        let end = listener.end()?;
        loop {
            await_ready(m, &end, Interest::Read)?;
            match end.accept() {
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                result => return result,
            }
        }
    };
    let (socket, address) = accepted().map_err(|error| refused(call, &listener.address, &error))?;
    let layer = match &listener.layer {
        Layer::TlsListener(config) => {
            let begun = || {
                let connection =
                    ServerConnection::new(Arc::clone(config)).map_err(io::Error::other)?;
                Tls::new(socket.try_clone()?, connection.into())
            };
            // The handshake happens at the first read or write, so a slow client does not delay
            // other connections.
            Layer::Tls(Arc::new(begun().map_err(|error| refused(call, &listener.address, &error))?))
        }
        _ => Layer::Stream,
    };
    Ok(store(m, place, socket, shown(&address), layer, held))
}

/// The stream of a port for argument 0. The port is textual unless argument 1 is the symbol
/// `binary`.
fn end(call: Call<'_>) -> Result<(String, End, Content)> {
    let socket = socket(call)?;
    if socket.listens() {
        return Err(call.wrong(0, "socket that is connected"));
    }
    let content = match call.optional(1) {
        None => Content::Textual,
        Some(_) if call.symbol(1)?.name() == "binary" => Content::Binary,
        Some(_) => return Err(call.outside(1, "binary")),
    };
    let end = socket.end().map_err(|error| refused(call, &socket.address, &error))?;
    let end = match &socket.layer {
        Layer::Tls(tls) => End::Tls(Arc::clone(tls)),
        _ => End::Plain(end.into()),
    };
    Ok((socket.address.clone(), end, content))
}
