//! The door of `kyocho connect`: a Unix socket. The kernel reports the user of each client.

use crate::address::Endpoint;
use crate::context::Context;
use crate::door::{Door, Listener, Opened};
use crate::entrance::{account_of_peer, socket_connection, start_getty};
use crate::frames;
use crate::protocol::{ConfiguredUser, Ports, Protocol};
use crate::socket_file;
use kyocho_microprocess::net::UnixListener;
use std::io::{self, ErrorKind};
use std::path::PathBuf;
use std::sync::Arc;

static PROTOCOL: Protocol = Protocol {
    name: "unix",
    socket_prefix: Some("unix:"),
    own_socket: None,
    ports: Ports::None,
    user: ConfiguredUser::None,
    read_section: None,
};

/// The door of `kyocho connect`.
#[derive(Debug)]
pub(crate) struct Unix;

impl Door for Unix {
    fn protocol(&self) -> &'static Protocol {
        &PROTOCOL
    }

    fn open(&self, endpoint: &Endpoint, _: &Arc<Context>) -> io::Result<Opened> {
        let Endpoint::Socket(path) = endpoint else { return Err(ErrorKind::InvalidInput.into()) };
        let (listener, file) = socket_file::listen(path)?;
        let listener = Box::new(Socket { listener, path: path.clone() });
        Ok(Opened { listener, files: Some(Box::new(file)) })
    }
}

/// Accepts connections.
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
        let account = account_of_peer(&context.register, &stream)?;
        let connection = socket_connection(stream, frames::Decoder::default(), frames::Encoder)?;
        start_getty(context, account, connection, || Ok(None))
    }
}
