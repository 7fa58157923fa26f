//! Services: the objects of a server, the calls they serve, and the handles that clients hold to
//! them.

use core::fmt;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use kyocho_microprocess::GlobalId;
use kyocho_sys::peer::Peer;

use crate::error::Failure;
use crate::frame::Head;
use crate::handle::{Handle, ROOT};
use crate::slice::Slice;

mod regions;

pub(crate) use regions::Regions;

/// Most handles of one connection at a time.
const HANDLES_MAX: usize = 1024;

/// An object that clients can call. Calls run concurrently, each in a microprocess at its caller's
/// priority.
pub trait Service: Send + Sync {
    /// Serves one call and returns the reply. May block.
    ///
    /// # Errors
    /// The failure is sent to the client in place of a reply.
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

/// The objects that one client may call, by handle.
pub(crate) struct Objects(Mutex<Table>);

struct Table {
    granted: BTreeMap<u64, Arc<dyn Service>>,
    /// The next handle. No handle is used twice.
    next: u64,
}

impl Objects {
    /// A table with `root` alone.
    pub(crate) fn new(root: Arc<dyn Service>) -> Self {
        let granted = BTreeMap::from([(ROOT.0, root)]);
        Self(Mutex::new(Table { granted, next: ROOT.0 + 1 }))
    }

    fn lock(&self) -> MutexGuard<'_, Table> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn get(&self, handle: u64) -> Option<Arc<dyn Service>> {
        self.lock().granted.get(&handle).cloned()
    }

    fn grant(&self, object: Arc<dyn Service>) -> Result<Handle, Failure> {
        let mut table = self.lock();
        if table.granted.len() >= HANDLES_MAX {
            return Err(Failure::NoHandle);
        }
        let handle = table.next;
        table.next += 1;
        table.granted.insert(handle, object);
        Ok(Handle(handle))
    }

    fn revoke(&self, handle: Handle) {
        let _object = self.lock().granted.remove(&handle.0);
    }
}

/// A call that is being served.
pub struct Call<'a> {
    peer: Peer,
    objects: &'a Objects,
    regions: &'a Regions,
    head: Head,
    bytes: &'a [u8],
}

impl fmt::Debug for Call<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Call").field("head", &self.head).finish_non_exhaustive()
    }
}

impl<'a> Call<'a> {
    pub(crate) fn new(
        peer: Peer,
        objects: &'a Objects,
        regions: &'a Regions,
        head: Head,
        bytes: &'a [u8],
    ) -> Self {
        Self { peer, objects, regions, head, bytes }
    }

    /// The number of the method that is called.
    #[must_use]
    pub fn method(&self) -> u32 {
        self.head.method
    }

    /// The request: a private copy, which the client cannot change.
    #[must_use]
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// The calling process, as the kernel identified it when it connected.
    #[must_use]
    pub fn peer(&self) -> Peer {
        self.peer
    }

    /// The calling microprocess. The kernel vouches for its process; its number there is the
    /// client's claim.
    #[must_use]
    pub fn caller(&self) -> GlobalId {
        GlobalId { process: self.peer.process, local: self.head.caller }
    }

    /// The slice of a region that the client passed with the call.
    ///
    /// # Errors
    /// [`Failure::NoRegion`]: the client passed none, or it lies outside of the client's regions.
    pub fn region(&self) -> Result<Slice, Failure> {
        let (number, offset, bytes) = self.head.region.ok_or(Failure::NoRegion)?;
        let memory = self.regions.get(number).ok_or(Failure::NoRegion)?;
        Slice::new(&memory, offset, bytes).ok_or(Failure::NoRegion)
    }

    /// Grants the client a handle to `object`. The service sends it in a reply.
    ///
    /// # Errors
    /// [`Failure::NoHandle`]: the client has 1,024 handles already.
    pub fn grant(&self, object: Arc<dyn Service>) -> Result<Handle, Failure> {
        self.objects.grant(object)
    }

    /// Revokes the handle that this call came through. Calls being served through it finish
    /// normally.
    pub fn revoke(&self) {
        self.objects.revoke(Handle(self.head.handle));
    }
}
