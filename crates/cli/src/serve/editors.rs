//! The doors for editors (nREPL): a Unix socket, where the kernel tells who comes, and a port, where a token does.

use super::network::{PATIENCE, STACK_BYTES, account_of_peer, comes_from_outside};
use super::nrepl::{self, Editor, Strangers, Token, TokenFile};
use super::register::Register;
use super::wire::{Outlet, Wire};
use core::net::SocketAddr;
use kyocho_lisp::account::Account;
use kyocho_lisp::system::System;
use kyocho_microprocess::Builder;
use kyocho_microprocess::net::{TcpListener, TcpStream, UnixStream};
use std::io;
use std::os::fd::AsFd;
use std::sync::Arc;

/// A port for editors.
pub(crate) struct EditorsDoor {
    listener: TcpListener,
    token: Arc<Token>,
    strangers: Arc<Strangers>,
}

impl EditorsDoor {
    /// Listens; the file with the token for who may come in.
    ///
    /// # Errors
    /// The host's; the configuration names nobody who comes this way.
    pub(super) fn open(address: SocketAddr, register: &Register) -> io::Result<(Self, TokenFile)> {
        if register.account_of_nrepl().is_none() {
            let message = "nobody comes in by this port: the configuration names no `nrepl_user`";
            return Err(io::Error::other(message));
        }
        let listener = TcpListener::bind(address)?;
        let (token, file) = Token::make(listener.local_addr()?)?;
        crate::terminal::line(&format!("{:<20} {}", "nrepl token", file.path().display()));
        let (token, strangers) = (Arc::new(token), Arc::default());
        Ok((Self { listener, token, strangers }, file))
    }

    /// Where it listens.
    pub(super) fn address(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Waits for the next connection, and has it asked for the token.
    pub(super) fn let_in(&self, system: &Arc<System>, register: &Arc<Register>) -> io::Result<()> {
        let (stream, _) = self.listener.accept()?;
        let writer = std::net::TcpStream::from(stream.as_fd().try_clone_to_owned()?);
        writer.set_write_timeout(Some(PATIENCE))?;
        // Answers are small, and come one after the other.
        writer.set_nodelay(true)?;
        let wire = Wire::new(Box::new(writer));
        let (token, strangers) = (Arc::clone(&self.token), Arc::clone(&self.strangers));
        let (system, register) = (Arc::clone(system), Arc::clone(register));
        let builder = Builder::new().name("nrepl: by port".to_owned()).stack_bytes(STACK_BYTES);
        let body = move || {
            if let Some(editor) = shown_the_token(&strangers, &token, stream, wire) {
                begin(&system, &register, register.account_of_nrepl(), editor);
            }
        };
        builder.spawn(body).map(drop)
    }
}

/// Who has come, once he has shown the token.
fn shown_the_token(
    strangers: &Arc<Strangers>,
    token: &Token,
    stream: TcpStream,
    wire: Wire,
) -> Option<Editor> {
    let Some((decoder, first)) = nrepl::wait_for_token(strangers, token, &stream, &wire) else {
        wire.hang_up();
        return None;
    };
    // Asked last: it takes time in proportion to all connections of the machine.
    if let Err(reason) = comes_from_outside(&stream) {
        nrepl::refuse(wire, &reason);
        return None;
    }
    Some(Editor { decoder, first: Some(first), ..Editor::new(Box::new(stream), wire) })
}

/// Serves who has come by the Unix socket.
pub(super) fn let_in(
    system: &Arc<System>,
    register: &Arc<Register>,
    stream: UnixStream,
) -> io::Result<()> {
    let writer = std::os::unix::net::UnixStream::from(stream.as_fd().try_clone_to_owned()?);
    writer.set_write_timeout(Some(PATIENCE))?;
    let writer: Box<dyn Outlet> = Box::new(writer);
    let wire = Wire::new(writer);
    let account = match account_of_peer(register, &stream)? {
        Ok(account) => account,
        Err(reason) => {
            nrepl::refuse(wire, &reason);
            return Ok(());
        }
    };
    let (system, register) = (Arc::clone(system), Arc::clone(register));
    let name = format!("nrepl: {}", account.name());
    let builder = Builder::new().name(name).stack_bytes(STACK_BYTES);
    let editor = Editor::new(Box::new(stream), wire);
    builder.spawn(move || begin(&system, &register, Some(account), editor)).map(drop)
}

/// Serves an editor to its end.
fn begin(system: &Arc<System>, register: &Register, account: Option<Arc<Account>>, editor: Editor) {
    // The configuration may have changed meanwhile.
    let Some(account) = account else {
        return nrepl::refuse(editor.wire, "the configuration names no nrepl_user");
    };
    let (name, max) = (account.name(), account.bounds().sessions_max);
    // One that opens no session is of no use to him.
    let Some(_place) = register.editors_of(name).enter(max) else {
        let reason = format!("too many connections: {name} may have {max}");
        return nrepl::refuse(editor.wire, &reason);
    };
    nrepl::serve(system, &account, register.world_of(name), editor);
}
