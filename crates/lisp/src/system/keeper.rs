//! Services are kept alive: by a keeper each, which starts its service again when that has ended by a kill or a panic.
//!
//! ```text
//!  service ──its end──► keeper ──starts──► service
//!                          │ killed: as it unwinds, starts a keeper in its place
//! ```

use core::time::Duration;
use kyocho_microprocess::channel::{self, Receiver, Sender};
use kyocho_microprocess::{Builder, Priority, always_unwind, sleep};
use std::io;
use std::sync::Arc;

/// Services do little; the compiler runs on the kernel thread's own stack.
const SERVICE_STACK_BYTES: usize = 256 * 1024;

/// How long a service that has died stays dead: one that dies at once is not started all the time.
const PAUSE: Duration = Duration::from_millis(10);

/// Runs a service, and starts it again when it is killed or panics (init is the parent of all threads). Killed, it ends at its next wait: what
/// it holds until then, the stopped world for one, others need, so it is never left where it stands. A keeper that is killed leaves its place to
/// another one.
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

/// What a keeper keeps.
struct Service {
    name: String,
    priority: Priority,
    body: Box<dyn Fn() + Send + Sync>,
    /// Told, each time that it ends, whether it returned.
    ended: Sender<bool>,
}

/// Tells how a service ended, whatever ended it.
struct LastWord {
    service: Arc<Service>,
    has_returned: bool,
}

impl Drop for LastWord {
    fn drop(&mut self) {
        // There is room: one runs at a time.
        let _ = self.service.ended.try_send(self.has_returned);
    }
}

impl Service {
    fn start(self: &Arc<Self>) -> io::Result<()> {
        let last = LastWord { service: Arc::clone(self), has_returned: false };
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

/// What starts a service again.
struct Keeper {
    service: Arc<Service>,
    ends: Receiver<bool>,
    /// The service has ended, and was not started again yet.
    is_dead: bool,
    is_over: bool,
    /// Keepers in a row that the host had no memory for.
    tries: u32,
}

/// So many, then a killed keeper has no successor.
const KEEPER_TRIES_MAX: u32 = 3;

impl Keeper {
    fn begin(self) -> io::Result<()> {
        let keeper = Builder::new().name(format!("init: {}", self.service.name));
        // It does nothing but start it: nobody who is urgent shall keep a dead service dead.
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
                // The host has no memory for it: it has told that it ended, and is tried again.
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
        // One that cannot begin is dropped, and so tries it again.
        let _ = Self { service, ends, is_dead, is_over: false, tries }.begin();
    }
}
