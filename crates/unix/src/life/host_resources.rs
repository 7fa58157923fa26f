//! Resources of the host that would outlive an instance's processes. The last process of the
//! instance removes them.

use crate::life::shared_memory::SharedMemory;
use crate::options::StartError;
use crate::state::objects::PersistentObjects;
use std::sync::Arc;

/// Shared by front, server and warden. Dropping it, which only the front does, removes them. The
/// other processes remove them if the front is gone.
#[derive(Debug)]
pub(crate) struct HostResources {
    pub(crate) shared_memory: SharedMemory,
    pub(crate) objects: Arc<PersistentObjects>,
}

impl HostResources {
    /// # Errors
    /// The host's.
    pub(crate) fn new(memory_max_bytes: Option<u64>) -> Result<Self, StartError> {
        let failed = |errno| StartError::Host("memory files", crate::errors::host(errno));
        let objects = Arc::new(PersistentObjects::new().map_err(failed)?);
        Ok(Self { shared_memory: SharedMemory::new(memory_max_bytes)?, objects })
    }

    pub(crate) fn remove(&self) {
        self.shared_memory.remove();
        self.objects.remove();
    }
}

impl Drop for HostResources {
    fn drop(&mut self) {
        self.objects.remove();
    }
}
