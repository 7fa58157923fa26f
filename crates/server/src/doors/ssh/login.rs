//! Identifies a client, and opens its channels.

use super::Shared;
use super::channel::{self, Client};
use crate::counter::Counter;
use russh::keys::PublicKey;
use russh::server::{
    Auth, ChannelOpenHandle, Handler, Msg, PublicKeyOffer, Session, VerifiedPublicKey,
};
use russh::{Channel, ChannelId, ChannelOpenFailure, Pty};
use std::sync::Arc;
use tokio::sync::oneshot;

/// Most sessions of one connection. A client may share its connection.
const CHANNELS_MAX: usize = 10;

/// The user that a client has proved to be, and the key that proved it.
#[derive(Clone, Debug)]
pub(super) struct Identity {
    pub(super) user: String,
    pub(super) key: PublicKey,
}

/// The state of one connection.
pub(super) struct Login {
    shared: Shared,
    /// Receives the identity once the client has logged in.
    report: Option<oneshot::Sender<Identity>>,
    identity: Option<Identity>,
    channels: Arc<Counter>,
}

impl Login {
    pub(super) fn new(shared: Shared, report: oneshot::Sender<Identity>) -> Self {
        Self { shared, report: Some(report), identity: None, channels: Arc::default() }
    }

    fn check(&self, user: &str, key: &PublicKey) -> Auth {
        if self.shared.register.knows_key(user, key) { Auth::Accept } else { Auth::reject() }
    }
}

impl Handler for Login {
    type Error = russh::Error;

    async fn auth_publickey_offered(
        &mut self,
        user: &str,
        offer: PublicKeyOffer<'_>,
    ) -> Result<Auth, Self::Error> {
        Ok(self.check(user, offer.public_key))
    }

    async fn auth_publickey(
        &mut self,
        user: &str,
        key: VerifiedPublicKey<'_>,
    ) -> Result<Auth, Self::Error> {
        let checked = self.check(user, key.public_key);
        if checked == Auth::Accept {
            self.identity = Some(Identity { user: user.to_owned(), key: key.public_key.clone() });
        }
        Ok(checked)
    }

    async fn auth_succeeded(&mut self, _: &mut Session) -> Result<(), Self::Error> {
        if let (Some(report), Some(identity)) = (self.report.take(), &self.identity) {
            // The receiver may have closed the connection already.
            let _ = report.send(identity.clone());
        }
        Ok(())
    }

    async fn channel_open_session(
        &mut self,
        channel: Channel<Msg>,
        reply: ChannelOpenHandle,
        _: &mut Session,
    ) -> Result<(), Self::Error> {
        let counted = self.channels.try_add(CHANNELS_MAX);
        let (Some(Identity { user, .. }), Some(counted)) = (&self.identity, counted) else {
            reply.reject(ChannelOpenFailure::ResourceShortage).await;
            return Ok(());
        };
        let client = Client {
            user: user.clone(),
            register: Arc::clone(&self.shared.register),
            identified: self.shared.identified.clone(),
        };
        reply.accept().await;
        tokio::spawn(async move {
            let _counted = counted;
            channel::serve(channel, client).await;
        });
        Ok(())
    }

    // Requests are passed to the channel's task. Here they are only confirmed, in the client's
    // order.

    async fn pty_request(
        &mut self,
        channel: ChannelId,
        _term: &str,
        _columns: u32,
        _rows: u32,
        _width: u32,
        _height: u32,
        _modes: &[(Pty, u32)],
        session: &mut Session,
    ) -> Result<(), Self::Error> {
        session.channel_success(channel)
    }

    async fn shell_request(
        &mut self,
        channel: ChannelId,
        session: &mut Session,
    ) -> Result<(), Self::Error> {
        session.channel_success(channel)
    }

    async fn exec_request(
        &mut self,
        channel: ChannelId,
        _: &[u8],
        session: &mut Session,
    ) -> Result<(), Self::Error> {
        session.channel_success(channel)
    }

    async fn window_change_request(
        &mut self,
        channel: ChannelId,
        _columns: u32,
        _rows: u32,
        _width: u32,
        _height: u32,
        session: &mut Session,
    ) -> Result<(), Self::Error> {
        session.channel_success(channel)
    }

    async fn subsystem_request(
        &mut self,
        channel: ChannelId,
        _: &str,
        session: &mut Session,
    ) -> Result<(), Self::Error> {
        session.channel_failure(channel)
    }

    async fn env_request(
        &mut self,
        channel: ChannelId,
        _: &str,
        _: &str,
        session: &mut Session,
    ) -> Result<(), Self::Error> {
        session.channel_failure(channel)
    }

    async fn x11_request(
        &mut self,
        channel: ChannelId,
        _: bool,
        _: &str,
        _: &str,
        _: u32,
        session: &mut Session,
    ) -> Result<(), Self::Error> {
        session.channel_failure(channel)
    }
}
