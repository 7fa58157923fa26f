//! Futures: waited for, spawned, and woken by others.

use core::time::Duration;
use std::panic::resume_unwind;
use std::sync::{Arc, Mutex};

use kyocho_microprocess::{Kind, Runtime, block_on, spawn_future, yield_now};

use super::on_one;

#[test]
fn futures_are_waited_for_and_spawned() {
    use core::task::{Poll, Waker};
    on_one(|| {
        // Wakes itself a few times.
        let mut left = 5;
        let value = block_on(core::future::poll_fn(move |context| {
            left -= 1;
            context.waker().wake_by_ref();
            if left == 0 { Poll::Ready(7) } else { Poll::Pending }
        }));
        assert_eq!(value, 7);
        // Woken by another microprocess.
        let shared: Arc<Mutex<(bool, Option<Waker>)>> = Arc::default();
        let waits = Arc::clone(&shared);
        let handle = spawn_future(core::future::poll_fn(move |context| {
            let mut shared = waits.lock().unwrap();
            shared.1 = Some(context.waker().clone());
            if shared.0 { Poll::Ready("done") } else { Poll::Pending }
        }))
        .unwrap();
        yield_now();
        assert!(!handle.is_finished());
        shared.lock().unwrap().0 = true;
        shared.lock().unwrap().1.take().unwrap().wake();
        // One future waits for another.
        assert_eq!(spawn_future(handle).unwrap().join().unwrap().unwrap(), "done");
        assert!(
            spawn_future(async { resume_unwind(Box::new("contained")) }).unwrap().join().is_err()
        );
    });
}

#[test]
fn a_future_woken_from_outside_is_no_deadlock() {
    on_one(|| {
        let mut asked = false;
        block_on(core::future::poll_fn(move |context| {
            if core::mem::replace(&mut asked, true) {
                return core::task::Poll::Ready(());
            }
            let waker = context.waker().clone();
            std::thread::spawn(move || {
                // Long enough for the runtime to find that it has nothing to do.
                std::thread::park_timeout(Duration::from_millis(20));
                waker.wake();
            });
            core::task::Poll::Pending
        }));
    });
}

#[test]
fn future_that_cannot_be_woken_is_a_deadlock() {
    let deadlock = Runtime::builder().virtual_processors(1).build();
    let deadlock = deadlock.run(|| block_on(core::future::pending::<()>())).unwrap_err();
    assert_eq!(deadlock.waiting[0].reason.kind, Kind::Park);
}
