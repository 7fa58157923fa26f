//! A microprocess whose priority changes while it waits is served by the new priority, also where
//! no microprocess inherits.

use std::sync::{Arc, Mutex, PoisonError};

use super::{at, on_one, settle};
use crate::runtime::control::find;
use crate::wait::channel::{self, Receiver, Sender};
use crate::wait::select::{Select, recv};
use crate::{Condvar, Microprocess, Priority, Semaphore};

/// Changes the priority of another microprocess, from inside the runtime or from outside.
type Change = fn(&Microprocess, Priority);

fn from_inside(who: &Microprocess, priority: Priority) {
    who.set_priority(priority);
}

/// From a kernel thread outside any runtime, as the control socket does.
fn from_outside(who: &Microprocess, priority: Priority) {
    let id = who.id();
    let order = move || find(id).unwrap().order_priority(priority);
    kyocho_sys::prim::thread::spawn(order).join().unwrap().unwrap();
}

/// Two microprocesses wait with `wait`, the first one more urgent. Then `changed` gets another
/// level, which makes the second one more urgent. So the first `grant` must end the wait of the
/// second, the next one that of the first.
fn second_goes_first(
    change: Change,
    (changed, level): (usize, u8),
    wait: impl Fn() + Send + Sync + 'static,
    grant: impl Fn(),
) {
    Microprocess::current().set_priority(Priority::LOWEST);
    let (wait, went) = (Arc::new(wait), Arc::new(Mutex::new(Vec::new())));
    let waiters = [20, 10].map(|level| {
        let (wait, went) = (Arc::clone(&wait), Arc::clone(&went));
        let waits = move || {
            wait();
            went.lock().unwrap_or_else(PoisonError::into_inner).push(level);
        };
        let waiter = at(level).spawn(waits).unwrap();
        settle();
        waiter
    });
    change(&waiters[changed].microprocess(), Priority::new(level).unwrap());
    settle();
    for so_far in [&[10][..], &[10, 20]] {
        grant();
        settle();
        assert_eq!(*went.lock().unwrap(), so_far);
    }
    waiters.into_iter().for_each(|waiter| waiter.join().unwrap());
}

/// Runs that for each way to change a level, with the second one raised or the first one lowered.
/// `make` makes the object that is waited for.
fn in_every_way<W: Fn() + Send + Sync + 'static, G: Fn()>(make: impl Fn() -> (W, G) + Send + Sync) {
    on_one(|| {
        for change in [from_inside, from_outside] {
            for changed in [(1, 50), (0, 5)] {
                let (wait, grant) = make();
                second_goes_first(change, changed, wait, grant);
            }
        }
    });
}

#[test]
fn of_a_semaphore() {
    in_every_way(|| {
        let permits = Arc::new(Semaphore::new(0));
        let other = Arc::clone(&permits);
        (move || permits.acquire(), move || other.release())
    });
}

#[test]
fn of_a_condition_variable() {
    in_every_way(|| {
        let place = Arc::new((crate::Mutex::new(()), Condvar::new()));
        let other = Arc::clone(&place);
        let wait = move || drop(place.1.wait(place.0.lock().unwrap()).unwrap());
        (wait, move || other.1.notify_one())
    });
}

/// A channel without room, with shared ends.
fn rendezvous() -> (Arc<Sender<()>>, Arc<Receiver<()>>) {
    let (sender, receiver) = channel::rendezvous();
    (Arc::new(sender), Arc::new(receiver))
}

#[test]
fn of_a_channels_receivers() {
    in_every_way(|| {
        let (sender, receiver) = rendezvous();
        (move || receiver.recv().unwrap(), move || sender.send(()).unwrap())
    });
}

#[test]
fn of_a_channels_senders() {
    in_every_way(|| {
        let (sender, receiver) = rendezvous();
        (move || sender.send(()).unwrap(), move || receiver.recv().unwrap())
    });
}

#[test]
fn of_a_select() {
    in_every_way(|| {
        let [(sender, first), (quiet, second)] = [rendezvous(), rendezvous()];
        let wait = move || {
            let arms = [recv(&first), recv(&second)];
            assert_eq!(Select::new(&[&arms[0], &arms[1]]).wait(), 0);
        };
        let grant = move || {
            // Kept, so that the second arm never completes.
            let _quiet = &quiet;
            sender.send(()).unwrap();
        };
        (wait, grant)
    });
}
