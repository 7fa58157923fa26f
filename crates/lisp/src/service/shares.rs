//! The service that keeps users to their shares: while their threads run, it has each look at its place again and again.
//!
//! ```text
//!  a thread's step: charges its account, takes its place in the queues     (account::share says which)
//!  every TICK:      the floor of virtual times is found anew, and what runs comes to a safepoint: so its step ends;
//!                   where a policy in Lisp places threads, it is told what has happened
//! ```
//!
//! Without it a thread that is more urgent than all others would run one step for ever, and never be charged. It ticks only while
//! threads of users take steps, or any while a policy places them: an idle system uses no processor time.

use crate::system::kernel::{Kernel, lock};
use core::time::Duration;
use kyocho_heap::account::share;
use kyocho_microprocess::{Microprocess, park, sleep, virtual_processor};
use kyocho_sys::prim::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::Mutex;

/// How long what runs is left alone.
const TICK: Duration = Duration::from_millis(10);

/// The service, and what it looks after.
#[derive(Debug)]
pub(crate) struct Shares {
    /// The virtual time of the hindmost account that has active threads, as of the last tick.
    floor_ns: AtomicU64,
    /// By virtual processor: the thread of a user whose step began last there, since the last tick.
    stepping: Box<[Mutex<Option<Microprocess>>]>,
    is_ticking: AtomicBool,
    microprocess: Mutex<Option<Microprocess>>,
}

impl Shares {
    /// For so many virtual processors.
    pub(crate) fn new(virtual_processors: usize) -> Self {
        Self {
            floor_ns: AtomicU64::new(0),
            stepping: (0..virtual_processors).map(|_| Mutex::default()).collect(),
            is_ticking: AtomicBool::new(false),
            microprocess: Mutex::default(),
        }
    }

    /// The calling thread of a user begins a step; the floor of the accounts' virtual times.
    pub(crate) fn begin_step(&self) -> u64 {
        if let Some(place) = self.stepping.get(virtual_processor()) {
            *lock(place) = Some(Microprocess::current());
        }
        self.keep_ticking();
        self.floor_ns.load(Ordering::Relaxed)
    }

    /// There is one more tick at least.
    pub(super) fn keep_ticking(&self) {
        if !self.is_ticking.swap(true, Ordering::AcqRel) {
            super::wake(&self.microprocess);
        }
    }

    /// The service's body, until the process ends.
    pub(crate) fn run(&self, kernel: &Kernel) {
        *lock(&self.microprocess) = Some(Microprocess::current());
        loop {
            if !self.is_ticking.load(Ordering::Acquire) {
                park();
                continue;
            }
            sleep(TICK);
            let active_ns = kernel.active_virtual_times_ns();
            let before_ns = self.floor_ns.load(Ordering::Relaxed);
            self.floor_ns.store(share::floor(before_ns, active_ns.into_iter()), Ordering::Relaxed);
            kernel.policies.tick(kernel);
            if !self.interrupt() {
                self.is_ticking.swap(false, Ordering::AcqRel);
                // A step that began meanwhile may have found it ticking still.
                self.is_ticking.fetch_or(self.interrupt(), Ordering::AcqRel);
            }
        }
    }

    /// Has what runs come to a safepoint; whether a step has begun since the last time.
    fn interrupt(&self) -> bool {
        let stepping = self.stepping.iter().filter_map(|place| lock(place).take());
        stepping.map(|thread| thread.poll_word().store(1, Ordering::Release)).count() > 0
    }
}
