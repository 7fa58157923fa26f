//! The client: connecting to a server, and calling its objects.

use core::fmt;
use core::time::Duration;
use std::path::Path;
use std::sync::Arc;

use kyocho_microprocess::Microprocess;

use crate::error::{Error, Failure};
use crate::frame::{AWAIT_REGION, Head, INLINE_BYTES_MAX};
use crate::handle::{Handle, ROOT};
use crate::slice::Slice;

mod connection;
mod pending;
mod region;

use connection::Connection;
use pending::PendingCall;
pub use region::Region;

/// A connection to a server. A clone shares the connection; microprocesses may call concurrently.
#[derive(Debug, Clone)]
pub struct Client {
    connection: Arc<Connection>,
}

impl Client {
    /// Connects to the server at `path`. Blocks the kernel thread until the server has answered, at
    /// most 5 seconds.
    ///
    /// # Errors
    /// [`Error::Connect`], [`Error::Refused`], [`Error::Protocol`], [`Error::Host`].
    pub fn connect(path: impl AsRef<Path>) -> Result<Self, Error> {
        Ok(Self { connection: Connection::open(path.as_ref())? })
    }

    /// Calls `method` of the server's root object and returns the reply.
    ///
    /// Blocks the calling microprocess; other microprocesses of its virtual processor run
    /// meanwhile. The server serves the call at the caller's priority.
    ///
    /// # Errors
    /// [`Error`]. The server may have served the call even if the error is [`Error::Closed`].
    ///
    /// # Panics
    /// The caller is not a microprocess.
    pub fn call(&self, method: u32, request: &[u8]) -> Result<Vec<u8>, Error> {
        self.target(ROOT).call(method, request)
    }

    /// The object behind `handle`, which the server granted to this client. Not checked before a
    /// call.
    #[must_use]
    pub fn target(&self, handle: Handle) -> Target {
        Target { connection: Arc::clone(&self.connection), handle, limit: None }
    }

    /// Creates memory of `bytes` bytes that calls can pass without copying. Blocks until the server
    /// has mapped it.
    ///
    /// # Errors
    /// [`Error::TooLong`]: `bytes` exceeds [`REGION_BYTES_MAX`](crate::REGION_BYTES_MAX), or the
    /// client has [`REGIONS_MAX`](crate::REGIONS_MAX) regions already. [`Error::Failed`]: the
    /// server has not mapped it within 10 seconds. [`Error::Closed`], [`Error::Host`].
    ///
    /// # Panics
    /// The caller is not a microprocess.
    pub fn region(&self, bytes: usize) -> Result<Region, Error> {
        let region = Region::new(&self.connection, bytes)?;
        let whole = region.whole();
        self.target(ROOT).call_with(AWAIT_REGION, &[], Some((&region, &whole)), &mut [])?;
        Ok(region)
    }

    /// Whether the connection is open, as far as this side knows.
    #[must_use]
    pub fn is_open(&self) -> bool {
        !self.connection.liveness.is_closed()
    }
}

/// An object of a server.
#[derive(Clone)]
pub struct Target {
    connection: Arc<Connection>,
    handle: Handle,
    limit: Option<Duration>,
}

impl fmt::Debug for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Target").field("handle", &self.handle).finish_non_exhaustive()
    }
}

impl Target {
    /// Limits how long a call waits for its reply. A call that takes longer fails with
    /// [`Error::TimedOut`].
    #[must_use]
    pub fn within(mut self, limit: Duration) -> Self {
        self.limit = Some(limit);
        self
    }

    /// Calls `method` and returns the reply. Blocks as [`Client::call`] does.
    ///
    /// # Errors
    /// As for [`Client::call`].
    ///
    /// # Panics
    /// The caller is not a microprocess.
    pub fn call(&self, method: u32, request: &[u8]) -> Result<Vec<u8>, Error> {
        let mut call = self.begin(method, request, None)?;
        let bytes = call.finish(self.limit)?;
        let mut reply = vec![0; bytes];
        call.frame().get(&mut reply);
        Ok(reply)
    }

    /// Calls `method` with a slice of a region, and copies the reply to the start of `reply`.
    /// Returns the reply's length. Blocks as [`Client::call`] does.
    ///
    /// # Errors
    /// As for [`Client::call`]. [`Error::TooLong`] also if the reply does not fit into `reply`.
    ///
    /// # Panics
    /// The caller is not a microprocess.
    pub fn call_with(
        &self,
        method: u32,
        request: &[u8],
        region: Option<(&Region, &Slice)>,
        reply: &mut [u8],
    ) -> Result<usize, Error> {
        let mut call = self.begin(method, request, region)?;
        let bytes = call.finish(self.limit)?;
        let bytes_max = reply.len();
        let buffer = reply.get_mut(..bytes).ok_or(Error::TooLong { bytes, bytes_max })?;
        call.frame().get(buffer);
        Ok(bytes)
    }

    fn begin(
        &self,
        method: u32,
        request: &[u8],
        region: Option<(&Region, &Slice)>,
    ) -> Result<PendingCall<'_>, Error> {
        let (bytes, bytes_max) = (request.len(), INLINE_BYTES_MAX);
        if bytes > bytes_max {
            return Err(Error::TooLong { bytes, bytes_max });
        }
        if region.is_some_and(|(region, _)| !region.belongs_to(&self.connection)) {
            return Err(Error::Failed(Failure::NoRegion));
        }
        let mut call = PendingCall::new(&self.connection)?;
        let me = Microprocess::current();
        let region = region.map(|(region, slice)| {
            let (offset, bytes) = slice.range();
            (region.number(), offset, bytes)
        });
        let head =
            Head { method, bytes: bytes as u32, handle: self.handle.0, caller: me.id(), region };
        call.request(&head, request, u32::from(me.effective_priority().level()));
        Ok(call)
    }
}
