//! A call under way, and what becomes of its frame if the caller stops waiting.

use core::time::Duration;
use std::sync::Arc;

use kyocho_microprocess::Builder;
use kyocho_microprocess::bell::Wait;
use kyocho_sys::prim::atomic::Ordering;

use super::connection::Connection;
use crate::error::{Error, Failure};
use crate::frame::{Frame, Head, INLINE_BYTES_MAX, NO_BELL};
use crate::protocol::{Answer, Phase, Word, after, client_sees};
use crate::state;

/// Which side owns the frame of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Progress {
    /// The request has not been sent: the frame is the client's.
    Preparing,
    /// The request has been sent: the frame is the server's.
    Requested,
    /// The reply is there: the frame is the client's again.
    Replied,
}

/// A call under way. It owns a frame; dropping it releases the frame, or abandons the call.
pub(super) struct PendingCall<'a> {
    connection: &'a Arc<Connection>,
    index: usize,
    number: u32,
    /// The doorbell that was rung, and whether the virtual processor behind it slept then.
    bell: u32,
    woken: bool,
    progress: Progress,
}

impl<'a> PendingCall<'a> {
    /// Waits for a free frame and takes it for the next call.
    pub(super) fn new(connection: &'a Arc<Connection>) -> Result<Self, Error> {
        let index = connection.take_frame();
        let number = after(connection.last_number(index).load(Ordering::Relaxed));
        let progress = Progress::Preparing;
        let call = Self { connection, index, number, bell: NO_BELL, woken: false, progress };
        if connection.liveness.is_closed() {
            return Err(Error::Closed);
        }
        Ok(call)
    }

    pub(super) fn frame(&self) -> &Frame {
        self.connection.frame(self.index)
    }

    /// Sends the request at the caller's priority `level`.
    pub(super) fn request(&mut self, head: &Head, request: &[u8], level: u32) {
        let frame = self.connection.frame(self.index);
        frame.put_head(head);
        frame.put(request);
        frame.level.store(level, Ordering::Relaxed);
        self.connection.last_number(self.index).store(self.number, Ordering::Relaxed);
        self.progress = Progress::Requested;
        state::ask(&frame.state, self.number);
        self.bell = frame.server_bell();
        self.woken = self.connection.server.ring(self.bell);
    }

    /// Waits for the reply. Returns its length, which does not exceed a frame.
    pub(super) fn finish(&mut self, limit: Option<Duration>) -> Result<usize, Error> {
        let liveness = &self.connection.liveness;
        let frame = self.connection.frame(self.index);
        let wait = Wait {
            word: &frame.state,
            expected: Word::new(Phase::Requested, self.number).bits(),
            level: Some(&frame.level),
            over: Some(liveness.closed_word()),
            from: Some((&self.connection.server, self.bell)),
            woken: self.woken,
            announced: frame.client_bell_word(),
        };
        let Some(word) = wait.run(limit)? else {
            return Err(if liveness.is_closed() { Error::Closed } else { Error::TimedOut });
        };
        if client_sees(self.number, Word::alleged(word)) != Answer::Here {
            liveness.close();
            return Err(Error::Protocol);
        }
        self.progress = Progress::Replied;
        let (status, bytes) = frame.result();
        if let Some(failure) = Failure::alleged(status) {
            return Err(Error::Failed(failure));
        }
        if bytes as usize > INLINE_BYTES_MAX {
            liveness.close();
            return Err(Error::Protocol);
        }
        Ok(bytes as usize)
    }

    /// Cancels the call. The frame is not free before the server has replied, so a microprocess
    /// waits for the reply and releases the frame then.
    fn abandon(&self) {
        let (connection, index, number) = (Arc::clone(self.connection), self.index, self.number);
        if !state::give_up(&self.frame().state, number) {
            // The reply came first.
            return connection.release_frame(index);
        }
        let reclaimer = Builder::new().name("gate frame reclaimer").spawn(move || {
            let frame = connection.frame(index);
            let wait = Wait {
                word: &frame.state,
                expected: Word::new(Phase::Cancelled, number).bits(),
                level: None,
                over: Some(connection.liveness.closed_word()),
                from: None,
                woken: false,
                announced: frame.client_bell_word(),
            };
            if matches!(wait.run(None), Ok(Some(_))) {
                connection.release_frame(index);
            }
        });
        // Without memory for a microprocess, the credit is lost until the connection closes.
        drop(reclaimer);
    }
}

impl Drop for PendingCall<'_> {
    fn drop(&mut self) {
        match self.progress {
            Progress::Requested if !self.connection.liveness.is_closed() => self.abandon(),
            _ => self.connection.release_frame(self.index),
        }
    }
}
