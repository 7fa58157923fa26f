//! The telnet door: a port of the loopback interface. Clients are not identified, so all
//! connections belong to one user.

mod dialect;
mod other_protocol;

use crate::address::Endpoint;
use crate::context::Context;
use crate::door::{Door, Listener, Opened};
use crate::entrance::{check_other_process, outlet_of_port, start_getty};
use crate::getty::Connection;
use crate::protocol::{ConfiguredUser, Ports, Protocol};
use kyocho_microprocess::net::TcpListener;
use std::io::{self, ErrorKind};
use std::sync::Arc;

static PROTOCOL: Protocol = Protocol {
    name: "telnet",
    socket_prefix: None,
    own_socket: None,
    ports: Ports::Loopback,
    user: ConfiguredUser::Unidentified,
    read_section: None,
};

/// The name under which all connections are counted together. It stays the same if the
/// configuration names another user.
const ALL: &str = "";

const NO_USER: &str = "telnet needs a configuration with a `telnet_user`, because every \
                       process on this machine can connect (docs/serve.md)";

/// The telnet door.
#[derive(Debug)]
pub(crate) struct Telnet;

impl Door for Telnet {
    fn protocol(&self) -> &'static Protocol {
        &PROTOCOL
    }

    fn open(&self, endpoint: &Endpoint, context: &Arc<Context>) -> io::Result<Opened> {
        let Endpoint::Port(address) = endpoint else { return Err(ErrorKind::InvalidInput.into()) };
        if context.register.configured_account(&PROTOCOL).is_none() {
            return Err(io::Error::other(NO_USER));
        }
        let listener = TcpListener::bind(address)?;
        // The urgent byte of an interrupt stays at its place in the stream. Connections inherit
        // this setting.
        rustix::net::sockopt::set_socket_oobinline(&listener, true)?;
        context.system.keep_sessions_from(listener.local_addr()?);
        Ok(Opened { listener: Box::new(Port(listener)), files: None })
    }
}

/// Accepts connections.
struct Port(TcpListener);

impl Listener for Port {
    fn endpoint(&self) -> io::Result<Endpoint> {
        self.0.local_addr().map(Endpoint::Port)
    }

    fn serve_next(&self, context: &Arc<Context>) -> io::Result<()> {
        let (stream, _) = self.0.accept()?;
        let writer = outlet_of_port(&stream)?;
        let asked = stream.try_clone()?;
        let connection = Connection {
            reader: Box::new(stream),
            writer: Box::new(writer),
            decode: Box::new(dialect::Decoder::default()),
            encode: Arc::new(dialect::Encoder),
        };
        let Some(account) = context.register.configured_account(&PROTOCOL) else {
            connection.refuse("the configuration names no telnet_user");
            return Ok(());
        };
        // Sessions are counted before `may_enter` is called, because that takes time in proportion
        // to all connections of the machine.
        let (name, max) = (account.name(), account.bounds().sessions_max);
        let Some(counted) = context.register.connections(&PROTOCOL, ALL).try_add(max) else {
            connection.refuse(&format!("too many sessions: {name} may have {max}"));
            return Ok(());
        };
        start_getty(context, Ok(account), connection, move || {
            check_other_process(&asked).map(|()| Some(counted))
        })
    }
}
