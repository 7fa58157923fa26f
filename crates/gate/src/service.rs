//! What a server does for its clients, and what it learns of a call.

use core::fmt;
use std::sync::Arc;

use kyocho_microprocess::control::GlobalId;
use kyocho_sys::peer::Peer;

use crate::error::Failure;
use crate::frame::Head;
use crate::region::Slice;
use crate::worker::Line;

/// The handle of the object that a client is given with its connection.
pub const ROOT: Handle = Handle(0);

/// Names an object of the server for one client: a capability. Another connection's handle names nothing here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
pub struct Handle(pub(crate) u64);

impl Handle {
    /// Its bits, to be sent in a reply.
    #[must_use]
    pub const fn bits(self) -> u64 {
        self.0
    }

    /// The handle of these bits. One that was never granted is refused by the server.
    #[must_use]
    pub const fn from_bits(bits: u64) -> Self {
        Self(bits)
    }
}

/// An object that can be called. Calls come at the same time, each in a microprocess of its own that runs at its caller's priority.
pub trait Service: Send + Sync {
    /// Serves one call; returns the reply.
    ///
    /// # Errors
    /// What the client is told instead.
    fn serve(&self, call: &Call<'_>) -> Result<Vec<u8>, Failure>;
}

impl<F> Service for F
where
    F: Fn(&Call<'_>) -> Result<Vec<u8>, Failure> + Send + Sync,
{
    fn serve(&self, call: &Call<'_>) -> Result<Vec<u8>, Failure> {
        self(call)
    }
}

/// A call being served.
pub struct Call<'a> {
    line: &'a Line,
    head: Head,
    bytes: &'a [u8],
}

impl fmt::Debug for Call<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Call").field("head", &self.head).finish_non_exhaustive()
    }
}

impl<'a> Call<'a> {
    pub(crate) fn new(line: &'a Line, head: Head, bytes: &'a [u8]) -> Self {
        Self { line, head, bytes }
    }

    /// Which method is called.
    #[must_use]
    pub fn method(&self) -> u32 {
        self.head.method
    }

    /// The request: a copy, which nobody changes any more.
    #[must_use]
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// The process that calls, as the kernel vouched for it when it connected.
    #[must_use]
    pub fn peer(&self) -> Peer {
        self.line.peer()
    }

    /// The microprocess that calls: its process is vouched for, its number is what it says.
    #[must_use]
    pub fn caller(&self) -> GlobalId {
        GlobalId { process: self.peer().process, local: self.head.caller }
    }

    /// The memory that is handed over with the call.
    ///
    /// # Errors
    /// [`Failure::NoRegion`]: none is, or it is not what the client says.
    pub fn region(&self) -> Result<Slice, Failure> {
        let (number, offset, bytes) = self.head.region.ok_or(Failure::NoRegion)?;
        let memory = self.line.region(number).ok_or(Failure::NoRegion)?;
        Slice::new(&memory, offset, bytes).ok_or(Failure::NoRegion)
    }

    /// Lets the client call `object`, by the handle that is returned: to be sent in the reply.
    ///
    /// # Errors
    /// [`Failure::NoHandle`]: the client has as many as it may have.
    pub fn grant(&self, object: Arc<dyn Service>) -> Result<Handle, Failure> {
        self.line.grant(object)
    }

    /// Takes the handle that the call came by from the client. Calls that are being served end as they would have.
    pub fn revoke(&self) {
        self.line.revoke(Handle(self.head.handle));
    }
}
