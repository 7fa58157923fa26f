//! The nREPL door, for editors. Through a Unix socket, the kernel reports the user. Through a TCP
//! port, the client sends a token.

mod answers;
mod bencode;
mod connection;
mod login;
mod request;
mod session;
mod token;
mod worker;

use crate::address::Endpoint;
use crate::context::Context;
use crate::door::{Door, Listener, Opened};
use crate::entrance::{
    STACK_BYTES, account_of_peer, check_other_process, outlet_of_port, outlet_of_socket,
};
use crate::protocol::{ConfiguredUser, Ports, Protocol};
use crate::socket_file;
use crate::wire::Wire;
use answers::refuse;
use connection::Editor;
use core::net::SocketAddr;
use kyocho_lisp::account::Account;
use kyocho_microprocess::Builder;
use kyocho_microprocess::net::{TcpListener, TcpStream, UnixListener};
use login::UnidentifiedClients;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use token::{Token, TokenFile};

static PROTOCOL: Protocol = Protocol {
    name: "nrepl",
    socket_prefix: Some("nrepl:unix:"),
    own_socket: Some("nrepl.sock"),
    ports: Ports::Loopback,
    user: ConfiguredUser::Trusted,
    read_section: None,
};

/// The nREPL door.
#[derive(Debug)]
pub(crate) struct Nrepl;

impl Door for Nrepl {
    fn protocol(&self) -> &'static Protocol {
        &PROTOCOL
    }

    fn open(&self, endpoint: &Endpoint, context: &Arc<Context>) -> io::Result<Opened> {
        match endpoint {
            Endpoint::Socket(path) => {
                let (listener, file) = socket_file::listen(path)?;
                let listener = Box::new(Socket { listener, path: path.clone() });
                Ok(Opened { listener, files: Some(Box::new(file)) })
            }
            Endpoint::Port(address) => {
                let (port, file) = Port::open(*address, context)?;
                context.system.keep_sessions_from(port.listener.local_addr()?);
                Ok(Opened { listener: Box::new(port), files: Some(Box::new(file)) })
            }
        }
    }
}

/// Accepts connections through the Unix socket.
struct Socket {
    listener: UnixListener,
    path: PathBuf,
}

impl Listener for Socket {
    fn endpoint(&self) -> io::Result<Endpoint> {
        Ok(Endpoint::Socket(self.path.clone()))
    }

    fn serve_next(&self, context: &Arc<Context>) -> io::Result<()> {
        let stream = self.listener.accept()?;
        let wire = Wire::new(outlet_of_socket(&stream)?);
        let account = match account_of_peer(&context.register, &stream)? {
            Ok(account) => account,
            Err(reason) => {
                refuse(wire, &reason);
                return Ok(());
            }
        };
        let name = format!("nrepl: {}", account.name());
        let builder = Builder::new().name(name).stack_bytes(STACK_BYTES);
        let (context, editor) = (Arc::clone(context), Editor::new(Box::new(stream), wire));
        builder.spawn(move || serve_editor(&context, Some(account), editor)).map(drop)
    }
}

/// Accepts connections through the TCP port.
struct Port {
    listener: TcpListener,
    token: Arc<Token>,
    unidentified: Arc<UnidentifiedClients>,
}

impl Port {
    /// Listens on `address`, and writes the file with the token that clients must send.
    ///
    /// # Errors
    /// The host refuses, or the configuration has no `nrepl_user`.
    fn open(address: SocketAddr, context: &Context) -> io::Result<(Self, TokenFile)> {
        if context.register.configured_account(&PROTOCOL).is_none() {
            let message = "this port needs a configuration with an `nrepl_user`";
            return Err(io::Error::other(message));
        }
        let listener = TcpListener::bind(address)?;
        let (token, file) = Token::make(listener.local_addr()?)?;
        context.console.announce_service("nrepl token", &file.path().display().to_string());
        Ok((Self { listener, token: Arc::new(token), unidentified: Arc::default() }, file))
    }
}

impl Listener for Port {
    fn endpoint(&self) -> io::Result<Endpoint> {
        self.listener.local_addr().map(Endpoint::Port)
    }

    fn serve_next(&self, context: &Arc<Context>) -> io::Result<()> {
        let (stream, _) = self.listener.accept()?;
        let writer = outlet_of_port(&stream)?;
        // Answers are small, and follow each other.
        writer.set_nodelay(true)?;
        let wire = Wire::new(Box::new(writer));
        let (token, unidentified) = (Arc::clone(&self.token), Arc::clone(&self.unidentified));
        let context = Arc::clone(context);
        let builder = Builder::new().name("nrepl: by port".to_owned()).stack_bytes(STACK_BYTES);
        let body = move || {
            if let Some(editor) = await_token(&unidentified, &token, stream, wire) {
                serve_editor(&context, context.register.configured_account(&PROTOCOL), editor);
            }
        };
        builder.spawn(body).map(drop)
    }
}

/// Waits for the message with the token. Returns `None` if the connection is refused.
fn await_token(
    unidentified: &Arc<UnidentifiedClients>,
    token: &Token,
    stream: TcpStream,
    wire: Wire,
) -> Option<Editor> {
    let Some((decoder, first)) = login::wait(unidentified, token, &stream, &wire) else {
        wire.hang_up();
        return None;
    };
    // Checked last: it takes time in proportion to all connections of the machine.
    if let Err(reason) = check_other_process(&stream) {
        refuse(wire, &reason);
        return None;
    }
    Some(Editor { decoder, first: Some(first), ..Editor::new(Box::new(stream), wire) })
}

/// Serves an editor until it disconnects.
fn serve_editor(context: &Context, account: Option<Arc<Account>>, editor: Editor) {
    // The configuration may have changed meanwhile.
    let Some(account) = account else {
        return refuse(editor.wire, "the configuration names no nrepl_user");
    };
    let (name, max) = (account.name(), account.bounds().sessions_max);
    // A connection that cannot open a session is useless.
    let Some(_counted) = context.register.connections(&PROTOCOL, name).try_add(max) else {
        let reason = format!("too many connections: {name} may have {max}");
        return refuse(editor.wire, &reason);
    };
    connection::serve(&context.system, &account, context.register.world_of(name), editor);
}
