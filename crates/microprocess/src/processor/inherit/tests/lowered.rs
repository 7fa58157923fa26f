//! A microprocess lowers its own priority while another one waits for it. From then on it runs at
//! the waiter's level, even if the waiter was less urgent before.

use core::time::Duration;
use std::sync::Arc;

use super::at;
use super::scenarios::await_level;
use crate::processor::record::{Kind, State};
use crate::runtime::control::find;
use crate::sleep;
use crate::{JoinHandle, Microprocess, Mutex, Priority, Runtime, RwLock, park};

/// Changes a priority from inside the runtime.
fn from_inside(who: &Microprocess, level: u8) {
    who.set_priority(Priority::new(level).unwrap());
}

/// The same, from a kernel thread outside any runtime.
fn from_outside(who: &Microprocess, level: u8) {
    let id = who.id();
    let order = move || find(id).unwrap().order_priority(Priority::new(level).unwrap());
    kyocho_sys::prim::thread::spawn(order).join().unwrap().unwrap();
}

/// Waits until `who` is in a wait of that kind.
fn await_wait(who: &Microprocess, kind: Kind) {
    let waits = || who.record().state.get() == State::Parked;
    while !(waits() && who.record().reason.get().kind == kind) {
        sleep(Duration::from_millis(1));
    }
}

/// Makes two microprocesses and the kind of wait. The first runs at 50 until it is lowered, and
/// ends when it is unparked. The second waits for it, at 40.
type Pair = fn() -> (Microprocess, JoinHandle<()>, Kind);

/// Lowers, raises and lowers again the first of a pair.
fn lowered_while_waited_for(pair: Pair) {
    for change in [from_inside, from_outside] {
        for processors in [1, 2] {
            let run = || {
                Microprocess::current().set_priority(Priority::LOWEST);
                let (holder, waiter, kind) = pair();
                await_wait(&waiter.microprocess(), kind);
                for (asked, effective) in [(10, 40), (45, 45), (39, 40), (0, 40), (50, 50)] {
                    change(&holder, asked);
                    await_level(&holder, effective);
                }
                change(&holder, 5);
                // As its scheduler sees it, too.
                while holder.record().level() != 40 {
                    sleep(Duration::from_millis(1));
                }
                holder.unpark();
                waiter.join().unwrap();
            };
            Runtime::builder().virtual_processors(processors).build().run(run).unwrap();
        }
    }
}

/// A pair: one holds the result of `hold`, the other wants the result of `want`.
fn pair_at<H, W>(
    hold: impl FnOnce() -> H + Send + 'static,
    want: impl FnOnce() -> W + Send + 'static,
    kind: Kind,
) -> (Microprocess, JoinHandle<()>, Kind) {
    let body = move || {
        let held = hold();
        park();
        drop(held);
    };
    let holder = at(50).spawn(body).unwrap().microprocess();
    await_wait(&holder, Kind::Park);
    (holder, at(40).spawn(move || drop(want())).unwrap(), kind)
}

#[test]
fn of_a_mutex() {
    lowered_while_waited_for(|| {
        let mutex: &Mutex<()> = Box::leak(Box::default());
        pair_at(|| mutex.lock().unwrap(), || mutex.lock().unwrap(), Kind::Mutex)
    });
}

#[test]
fn of_a_lock_held_for_writing() {
    lowered_while_waited_for(|| {
        let lock: &RwLock<()> = Box::leak(Box::default());
        pair_at(|| lock.write().unwrap(), || lock.read().unwrap(), Kind::RwLock)
    });
}

#[test]
fn of_a_joined_microprocess() {
    lowered_while_waited_for(|| {
        let joined = at(50).spawn(park).unwrap();
        let holder = joined.microprocess();
        await_wait(&holder, Kind::Park);
        (holder, at(40).spawn(move || joined.join().unwrap()).unwrap(), Kind::Join)
    });
}

/// If the lowered microprocess itself waits, the next one along the chain receives its level.
#[test]
fn lowered_level_is_passed_along_the_chain() {
    let run = || {
        Microprocess::current().set_priority(Priority::LOWEST);
        let locks = Arc::new([Mutex::new(()), Mutex::new(())]);
        let (one, both, last) = (Arc::clone(&locks), Arc::clone(&locks), locks);
        let hold = move || {
            let _held = one[0].lock().unwrap();
            park();
        };
        let end = at(10).spawn(hold).unwrap();
        await_wait(&end.microprocess(), Kind::Park);
        let hold_and_wait = move || {
            let _held = both[1].lock().unwrap();
            drop(both[0].lock());
        };
        let middle = at(50).spawn(hold_and_wait).unwrap();
        await_level(&end.microprocess(), 50);
        let start = at(40).spawn(move || drop(last[1].lock())).unwrap();
        await_wait(&start.microprocess(), Kind::Mutex);
        from_inside(&middle.microprocess(), 20);
        await_level(&middle.microprocess(), 40);
        await_level(&end.microprocess(), 40);
        end.microprocess().unpark();
        end.join().and(middle.join()).and(start.join()).unwrap();
    };
    Runtime::builder().virtual_processors(2).build().run(run).unwrap();
}
