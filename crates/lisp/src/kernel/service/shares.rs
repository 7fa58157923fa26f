//! The service that enforces users' shares. While their threads run, it makes each of them update
//! its priority at intervals.
//!
//! ```text
//!  a thread's step: charges its account, and gets its priority     (see account::share)
//!  every TICK:      computes the floor of virtual times;
//!                   brings running threads to a safepoint, which ends their steps;
//!                   passes events to a scheduler policy in Lisp
//! ```
//!
//! Without it a thread of the highest priority could run one step for ever, and would never be
//! charged. It ticks only while threads of users take steps, or any threads while a policy
//! schedules them. An idle system uses no processor time.

use crate::kernel::{Kernel, lock};
use core::time::Duration;
use kyocho_heap::account::share;
use kyocho_microprocess::{Microprocess, park, sleep, virtual_processor};
use kyocho_sys::prim::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::Mutex;

/// Interval at which running threads are interrupted.
const TICK: Duration = Duration::from_millis(10);

/// The service and its state.
#[derive(Debug)]
pub(crate) struct Shares {
    /// The floor of the accounts' virtual times at the last tick.
    floor_ns: AtomicU64,
    /// By virtual processor: the user's thread whose step began last since the last tick.
    stepping: Box<[Mutex<Option<Microprocess>>]>,
    is_ticking: AtomicBool,
    microprocess: Mutex<Option<Microprocess>>,
}

impl Shares {
    /// The service for this many virtual processors.
    pub(crate) fn new(virtual_processors: usize) -> Self {
        Self {
            floor_ns: AtomicU64::new(0),
            stepping: (0..virtual_processors).map(|_| Mutex::default()).collect(),
            is_ticking: AtomicBool::new(false),
            microprocess: Mutex::default(),
        }
    }

    /// Records that the calling thread of a user begins a step. Returns the floor of the virtual
    /// times.
    pub(crate) fn begin_step(&self) -> u64 {
        if let Some(place) = self.stepping.get(virtual_processor()) {
            *lock(place) = Some(Microprocess::current());
        }
        self.keep_ticking();
        self.floor_ns.load(Ordering::Relaxed)
    }

    /// Requests at least one more tick.
    pub(crate) fn keep_ticking(&self) {
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
                // A step that began meanwhile may have seen `is_ticking` still set.
                self.is_ticking.fetch_or(self.interrupt(), Ordering::AcqRel);
            }
        }
    }

    /// Brings running threads to a safepoint. Returns whether a step has begun since the last call.
    fn interrupt(&self) -> bool {
        let stepping = self.stepping.iter().filter_map(|place| lock(place).take());
        stepping.map(|thread| thread.poll_word().store(1, Ordering::Release)).count() > 0
    }
}
