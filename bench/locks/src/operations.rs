//! Paper 0, figure 12: simply repeated calls of `sem_wait`, `pthread_mutex_trylock` and `tst`, over
//! each method.
//!
//! As in the paper nothing is released: the semaphore's value suffices for all calls, and every
//! attempt after the first fails.

use core::hint::black_box;
use core::sync::atomic::AtomicU32;

use kyocho_tst::blocking::mutex::RawMutex;
use kyocho_tst::blocking::semaphore::{Semaphore, VALUE_MAX};
use kyocho_tst::{Atomics, Lamport, SignalsBlocked, SystemCall, TestAndSet};

use crate::methods::{confine_to_one_cpu, restartable, rseq};
use crate::timing::{Subject, print_side_by_side};

const MANY: u64 = 100_000;
const FEW: u64 = 5_000;

/// The three operations over one method, of the calling thread alone.
fn three<M: TestAndSet + 'static>(
    names: [&'static str; 3],
    rounds: u64,
    mechanism: impl Fn() -> M,
) -> [Subject; 3] {
    // SAFETY: this program has one thread.
    let semaphore = unsafe { Semaphore::confined(mechanism(), VALUE_MAX) };
    // SAFETY: as above.
    let mutex = unsafe { RawMutex::confined(mechanism()) };
    let (word, tst) = (AtomicU32::new(0), mechanism());
    [
        Subject::new(names[0], rounds, move |rounds| {
            (0..rounds).for_each(|_| black_box(&semaphore).acquire());
        }),
        Subject::new(names[1], rounds, move |rounds| {
            for _ in 0..rounds {
                black_box(mutex.try_lock());
            }
        }),
        Subject::new(names[2], rounds, move |rounds| {
            for _ in 0..rounds {
                let _set = black_box(tst.test_and_set(black_box(&word)));
            }
        }),
    ]
}

/// Prints a line for each operation and method, `OPERATION METHOD`.
pub fn run() {
    confine_to_one_cpu();
    let mut subjects = Vec::new();
    macro_rules! method {
        ($name:literal, $rounds:expr, $mechanism:expr) => {
            let names =
                [concat!("sem_wait ", $name), concat!("trylock ", $name), concat!("tst ", $name)];
            subjects.extend(three(names, $rounds, $mechanism));
        };
    }
    method!("system-call", FEW, SystemCall::new);
    method!("restartable", MANY, restartable);
    method!("rseq", MANY, rseq);
    method!("atomics", MANY, || Atomics);
    method!("lamport", MANY / 4, || Lamport::new(4));
    method!("signals-blocked", FEW, || SignalsBlocked);
    print_side_by_side("operations", subjects);
}
