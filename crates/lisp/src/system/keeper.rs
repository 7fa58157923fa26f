//! Restarting of services. Each service has a keeper, which starts it again when a kill or a panic
//! has ended it.
//!
//! ```text
//!  service ──its end──► keeper ──starts──► service
//!                          │ killed: as it unwinds, starts another keeper
//! ```

use core::time::Duration;
use kyocho_microprocess::channel::{self, Receiver, Sender};
use kyocho_microprocess::{Builder, Priority, always_unwind, sleep};
use std::io;
use std::sync::Arc;

/// Stack of a service. The compiler does not run on it but on the kernel thread's own stack.
const SERVICE_STACK_BYTES: usize = 256 * 1024;

/// Delay before a service is restarted, so that one that dies at once is not restarted
/// continuously.
const PAUSE: Duration = Duration::from_millis(10);

/// Runs a service, and starts it again when it is killed or panics. (init is the parent of all
/// threads.) A killed service ends at its next wait and never in between, because it may have
/// stopped the world. A killed keeper is replaced by another one.
pub(super) fn keep(
    name: &str,
    priority: Priority,
    body: impl Fn() + Send + Sync + 'static,
) -> io::Result<()> {
    let (ended, ends) = channel::bounded(1);
    let service = Service { name: name.to_owned(), priority, body: Box::new(body), ended };
    let service = Arc::new(service);
    service.start()?;
    Keeper { service, ends, is_dead: false, is_over: false, tries: 0 }.begin()
}

/// A service and its keeper's data.
struct Service {
    name: String,
    priority: Priority,
    body: Box<dyn Fn() + Send + Sync>,
    /// Receives, each time the service ends, whether it returned.
    ended: Sender<bool>,
}

/// Reports the end of a service, however it ends.
struct EndReport {
    service: Arc<Service>,
    has_returned: bool,
}

impl Drop for EndReport {
    fn drop(&mut self) {
        // There is room, because only one instance runs at a time.
        let _ = self.service.ended.try_send(self.has_returned);
    }
}

impl Service {
    fn start(self: &Arc<Self>) -> io::Result<()> {
        let last = EndReport { service: Arc::clone(self), has_returned: false };
        let builder = Builder::new().name(&*self.name).stack_bytes(SERVICE_STACK_BYTES);
        let run = move || {
            let mut last = last;
            always_unwind();
            (last.service.body)();
            last.has_returned = true;
        };
        builder.priority(self.priority).spawn(run).map(drop)
    }
}

/// The keeper of a service.
struct Keeper {
    service: Arc<Service>,
    ends: Receiver<bool>,
    /// The service has ended and has not been restarted yet.
    is_dead: bool,
    is_over: bool,
    /// Consecutive keepers for which the host had no memory.
    tries: u32,
}

/// After this many tries a killed keeper is not replaced.
const KEEPER_TRIES_MAX: u32 = 3;

impl Keeper {
    fn begin(self) -> io::Result<()> {
        let keeper = Builder::new().name(format!("init: {}", self.service.name));
        // A keeper only starts its service, so its high priority delays no other thread for long,
        // and no other thread can delay the restart.
        let keeper = keeper.stack_bytes(SERVICE_STACK_BYTES).priority(Priority::HIGHEST);
        keeper.spawn(move || self.run()).map(drop)
    }

    fn run(mut self) {
        self.tries = 0;
        while self.is_dead || self.ends.recv() == Ok(false) {
            self.is_dead = true;
            sleep(PAUSE);
            match self.service.start() {
                Ok(()) => self.is_dead = false,
                // The host has no memory for it. Its end was reported; the next try follows.
                Err(_) => drop(self.ends.try_recv()),
            }
        }
        self.is_over = true;
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        if self.is_over || self.tries == KEEPER_TRIES_MAX {
            return;
        }
        let (service, ends) = (Arc::clone(&self.service), self.ends.clone());
        let (is_dead, tries) = (self.is_dead, self.tries + 1);
        // If the new keeper cannot begin, it is dropped, and its drop tries again.
        let _ = Self { service, ends, is_dead, is_over: false, tries }.begin();
    }
}
