//! Time slices of microprocesses that hold a mutex.

use kyocho_sys::prim::atomic::{AtomicUsize, Ordering};

use super::{Mutex, on_processors};
use crate::{scope, yield_now};

/// The holder of a mutex keeps the virtual processor for one more slice, but not for ever: an equal
/// runs although the holder never calls the runtime.
#[test]
fn holder_without_calls_is_preempted_in_the_end() {
    on_processors(1, || {
        let (mutex, ran) = (Mutex::new(()), AtomicUsize::new(0));
        scope(|scope| {
            scope.spawn(|| {
                let _held = mutex.lock().unwrap();
                while ran.load(Ordering::Relaxed) == 0 {
                    core::hint::spin_loop();
                }
            });
            scope.spawn(|| ran.store(1, Ordering::Relaxed));
        });
    });
}

/// Asked at the end of each slice: prolonged at most once in a row, and only while a mutex is held,
/// in whatever order mutexes are locked and unlocked.
#[test]
fn slice_is_prolonged_once_while_a_mutex_is_held() {
    on_processors(1, || {
        let me = crate::processor::record::MicroprocessRef::current().0;
        let (first, second) = (Mutex::new(()), Mutex::new(()));
        assert!(!me.prolongs_slice());
        let held = first.lock().unwrap();
        assert!(me.prolongs_slice());
        assert!(!me.prolongs_slice());
        assert!(me.prolongs_slice());
        let other = second.try_lock().unwrap();
        drop(held);
        assert!(!me.prolongs_slice());
        assert!(me.prolongs_slice());
        drop(other);
        assert!(!me.prolongs_slice());
        scope(|scope| {
            let held = first.lock().unwrap();
            let next_holder = scope.spawn(|| {
                let _handed_over = first.lock().unwrap();
                crate::processor::record::MicroprocessRef::current().0.prolongs_slice()
            });
            yield_now();
            drop(held);
            assert!(!me.prolongs_slice());
            assert!(next_holder.join().unwrap());
        });
    });
}
