//! Handles: how a client names an object of the server.

/// The handle of the object that every client may call from the start: the service that was given
/// to [`ServerBuilder::bind`](crate::ServerBuilder::bind).
pub const ROOT: Handle = Handle(0);

/// A capability: names an object of the server for one client. It is worth nothing on another
/// connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
pub struct Handle(pub(crate) u64);

impl Handle {
    /// The handle's bits, to be sent in a reply.
    #[must_use]
    pub const fn bits(self) -> u64 {
        self.0
    }

    /// The handle with these bits. A call to a handle that was never granted fails with
    /// [`Failure::NoHandle`](crate::Failure::NoHandle).
    #[must_use]
    pub const fn from_bits(bits: u64) -> Self {
        Self(bits)
    }
}
