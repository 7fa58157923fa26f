//! Inherited priorities beside a naive model of who waits for whom.
#![expect(clippy::excessive_nesting, reason = "a scenario nests: runtime, microprocess, lock")]

use core::time::Duration;
use std::sync::{Arc, OnceLock, mpsc};

use kyocho_sys::prim::atomic::{AtomicBool, AtomicU32, Ordering};
use kyocho_sys::prim::clock::monotonic_ns;
use proptest::prelude::{Just, ProptestConfig, Strategy, prop_oneof, proptest};

use crate::control::find;
use crate::record::Record;
use crate::schedule;
use crate::{Barrier, Builder, JoinHandle, Microprocess, Mutex, Priority, Runtime, RwLock};
use crate::{channel, sleep, spawn, yield_now};

const ACTORS: usize = 5;
const LOCKS: usize = 4;

fn on_one(main: impl FnOnce() + Send) {
    Runtime::builder().virtual_processors(1).build().run(main).unwrap();
}

fn at(level: u8) -> Builder {
    Builder::new().priority(Priority::new(level).unwrap())
}

/// Lets everybody more urgent than the caller run until nobody can.
fn settle() {
    yield_now();
}

/// What one actor is told to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Order {
    /// To lock a mutex.
    Lock(usize),
    /// To unlock the mutex it locked last.
    Unlock,
}

/// What happens in one step.
#[derive(Debug, Clone, Copy)]
enum Event {
    Order(usize, Order),
    /// An actor that waits is killed: it gives up its wait and all it holds.
    Kill(usize),
    /// Its own priority changes.
    Priority(usize, u8),
}

fn events() -> impl Strategy<Value = Vec<Event>> {
    let order = prop_oneof![
        3 => (0..LOCKS).prop_map(Order::Lock),
        2 => Just(Order::Unlock),
    ];
    let event = prop_oneof![
        12 => (0..ACTORS, order).prop_map(|(actor, order)| Event::Order(actor, order)),
        1 => (0..ACTORS).prop_map(Event::Kill),
        1 => (0..ACTORS, 1_u8..60).prop_map(|(actor, level)| Event::Priority(actor, level)),
    ];
    proptest::collection::vec(event, 1..40)
}

/// Who holds what and who waits for what, and what follows, by the definition.
#[derive(Debug, Clone, Default)]
struct Model {
    asked: [u8; ACTORS],
    /// Locks of each actor, oldest first.
    held: [Vec<usize>; ACTORS],
    waits: [Option<usize>; ACTORS],
    dead: [bool; ACTORS],
}

impl Model {
    fn holder(&self, lock: usize) -> Option<usize> {
        (0..ACTORS).find(|&actor| self.held[actor].contains(&lock))
    }

    /// Whether `actor` would wait for itself. In such a ring nobody runs again, and levels rise only.
    fn would_deadlock(&self, actor: usize, lock: usize) -> bool {
        let next = |&lock: &usize| self.waits[self.holder(lock)?];
        let chain = core::iter::successors(Some(lock), next);
        chain.filter_map(|lock| self.holder(lock)).any(|holder| holder == actor)
    }

    /// The least fixed point of "at least as urgent as whoever waits for it".
    fn levels(&self) -> [u8; ACTORS] {
        let mut levels = self.asked;
        for _ in 0..ACTORS {
            for waiter in 0..ACTORS {
                if let Some(holder) = self.waits[waiter].and_then(|lock| self.holder(lock)) {
                    levels[holder] = levels[holder].max(levels[waiter]);
                }
            }
        }
        levels
    }
}

/// A microprocess that does what it is told, and the test's side of it.
struct Actor {
    orders: channel::Sender<Order>,
    /// The locks it has got so far, in order.
    got: mpsc::Receiver<usize>,
    record: Arc<OnceLock<&'static Record>>,
    handle: JoinHandle<()>,
}

impl Actor {
    fn new(level: u8, locks: &Arc<[Mutex<()>; LOCKS]>) -> Self {
        let (orders, told) = channel::unbounded();
        let (tell, got) = mpsc::channel();
        let locks = Arc::clone(locks);
        let record = Arc::new(OnceLock::new());
        let own = Arc::clone(&record);
        let body = move || {
            own.set(schedule::current()).unwrap();
            let mut guards = Vec::new();
            while let Ok(order) = told.recv() {
                match order {
                    Order::Lock(lock) => {
                        // A killed holder leaves it poisoned.
                        let guard = locks[lock].lock().unwrap_or_else(|poison| poison.into_inner());
                        guards.push(guard);
                        if tell.send(lock).is_err() {
                            // The play is over.
                            return;
                        }
                    }
                    Order::Unlock => drop(guards.pop()),
                }
            }
        };
        let handle = at(level).spawn(body).unwrap();
        Self { orders, got, record, handle }
    }
}

struct Stage {
    model: Model,
    actors: Vec<Actor>,
}

impl Stage {
    fn new(levels: [u8; ACTORS]) -> Self {
        let locks: Arc<[Mutex<()>; LOCKS]> = Arc::new(Default::default());
        let actors = levels.iter().map(|&level| Actor::new(level, &locks)).collect();
        settle();
        Self { model: Model { asked: levels, ..Model::default() }, actors }
    }

    /// Plays one event, unless it makes no sense now.
    fn play(&mut self, event: Event) {
        let before = self.model.clone();
        match event {
            Event::Order(actor, order) => {
                if self.model.waits[actor].is_some() || self.model.dead[actor] {
                    return;
                }
                match order {
                    Order::Lock(lock) if self.model.would_deadlock(actor, lock) => return,
                    Order::Lock(lock) => self.model.waits[actor] = Some(lock),
                    Order::Unlock => {
                        self.model.held[actor].pop();
                    }
                }
                self.actors[actor].orders.send(order).unwrap();
            }
            Event::Kill(actor) => {
                if self.model.dead[actor] {
                    return;
                }
                self.actors[actor].handle.microprocess().kill().unwrap();
                self.model.dead[actor] = true;
                self.model.waits[actor] = None;
                self.model.held[actor].clear();
            }
            Event::Priority(actor, level) => {
                if self.model.dead[actor] || self.model.waits.iter().any(Option::is_some) {
                    // A wait that was no more urgent than the owner is not looked at again.
                    return;
                }
                self.actors[actor]
                    .handle
                    .microprocess()
                    .set_priority(Priority::new(level).unwrap());
                self.model.asked[actor] = level;
            }
        }
        settle();
        self.see_who_got_what(&before);
        self.check();
    }

    /// Takes over which waiter got a lock, which must be one of the most urgent.
    fn see_who_got_what(&mut self, before: &Model) {
        for actor in 0..ACTORS {
            while let Ok(lock) = self.actors[actor].got.try_recv() {
                assert_eq!(self.model.waits[actor].take(), Some(lock));
                let rivals = (0..ACTORS).filter(|&rival| before.waits[rival] == Some(lock));
                let levels = before.levels();
                let rivals =
                    rivals.filter(|&rival| !self.model.dead[rival]).map(|rival| levels[rival]);
                assert!(
                    rivals.max().is_none_or(|most| levels[actor] >= most),
                    "{actor} got {lock}"
                );
                self.model.held[actor].push(lock);
            }
        }
        for lock in self.model.waits.into_iter().flatten() {
            assert!(self.model.holder(lock).is_some(), "somebody waits for {lock}, which is free");
        }
    }

    fn check(&self) {
        let levels = self.model.levels();
        for (actor, level) in
            levels.into_iter().enumerate().filter(|(actor, _)| !self.model.dead[*actor])
        {
            let record = *self.actors[actor].record.get().unwrap();
            assert_eq!(record.effective_level(), level, "actor {actor} in {:?}", self.model);
            assert_eq!(record.level(), level, "actor {actor} as it is queued");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]
    #[test]
    fn levels_are_those_of_the_wait_for_graph(
        levels in proptest::array::uniform5(1_u8..60),
        events in events(),
    ) {
        on_one(|| {
            Microprocess::current().set_priority(Priority::LOWEST);
            settle();
            let mut stage = Stage::new(levels);
            for event in events {
                stage.play(event);
            }
        });
    }
}

/// Longer than anybody who is served by priority waits: where this passes, the order of events is wrong.
const GIVE_UP_NS: u64 = 20_000_000_000;

/// Spins without a call into the runtime until it is told to stop.
fn spin_until(stop: &AtomicBool) {
    let end_ns = monotonic_ns() + GIVE_UP_NS;
    while !stop.load(Ordering::Relaxed) && monotonic_ns() < end_ns {}
}

/// Who does what, in the order in which it happens.
fn pathfinder(
    lock_and_work: impl FnOnce(&dyn Fn()) + Send + 'static,
    wait: impl FnOnce() + Send + 'static,
) {
    on_one(move || {
        let clock = Arc::new(AtomicU32::new(0));
        let held = Arc::new(AtomicBool::new(false));
        let medium_ran = Arc::new(AtomicBool::new(false));
        let stop = Arc::new(AtomicBool::new(false));
        let low = {
            let (held, clock, medium_ran) =
                (Arc::clone(&held), Arc::clone(&clock), Arc::clone(&medium_ran));
            at(10).spawn(move || {
                let work = || {
                    held.store(true, Ordering::SeqCst);
                    // Interrupted in here by the medium one, which then never lets go by itself.
                    spin_until(&medium_ran);
                    clock.fetch_add(1, Ordering::SeqCst);
                };
                lock_and_work(&work);
            })
        };
        while !held.load(Ordering::SeqCst) {
            sleep(Duration::from_millis(1));
        }
        let medium = {
            let (medium_ran, stop, clock) =
                (Arc::clone(&medium_ran), Arc::clone(&stop), Arc::clone(&clock));
            at(20).spawn(move || {
                medium_ran.store(true, Ordering::SeqCst);
                spin_until(&stop);
                clock.fetch_add(1, Ordering::SeqCst)
            })
        };
        while !medium_ran.load(Ordering::SeqCst) {
            sleep(Duration::from_millis(1));
        }
        let high = {
            let (stop, clock) = (Arc::clone(&stop), Arc::clone(&clock));
            at(40).spawn(move || {
                wait();
                stop.store(true, Ordering::SeqCst);
                clock.fetch_add(1, Ordering::SeqCst)
            })
        };
        // Low ends its work (0), high gets on (1), and only then medium ends (2).
        assert_eq!(high.unwrap().join().unwrap(), 1);
        assert_eq!(medium.unwrap().join().unwrap(), 2);
        low.unwrap().join().unwrap();
    });
}

#[test]
fn a_mutex_is_got_although_somebody_in_between_spins() {
    let mutex = Arc::new(Mutex::new(()));
    let other = Arc::clone(&mutex);
    pathfinder(
        move |work| {
            let _guard = mutex.lock().unwrap();
            work();
        },
        move || drop(other.lock().unwrap()),
    );
}

#[test]
fn a_lock_held_for_writing_is_got_although_somebody_in_between_spins() {
    let lock = Arc::new(RwLock::new(()));
    let other = Arc::clone(&lock);
    pathfinder(
        move |work| {
            let _guard = lock.write().unwrap();
            work();
        },
        move || drop(other.read().unwrap()),
    );
}

#[test]
fn who_is_joined_gets_on_although_somebody_in_between_spins() {
    on_one(|| {
        let clock = Arc::new(AtomicU32::new(0));
        let stop = Arc::new(AtomicBool::new(false));
        let tick = |clock: &Arc<AtomicU32>| {
            let clock = Arc::clone(clock);
            move || clock.fetch_add(1, Ordering::SeqCst)
        };
        let (low_ticks, medium_ticks, high_ticks) = (tick(&clock), tick(&clock), tick(&clock));
        let high = at(40).spawn(move || {
            let medium_ran = Arc::new(AtomicBool::new(false));
            let low = at(10).spawn(low_ticks).unwrap();
            let (ran, stopped) = (Arc::clone(&medium_ran), Arc::clone(&stop));
            let medium = at(20).spawn(move || {
                ran.store(true, Ordering::SeqCst);
                spin_until(&stopped);
                medium_ticks()
            });
            while !medium_ran.load(Ordering::SeqCst) {
                sleep(Duration::from_millis(1));
            }
            assert_eq!(low.join().unwrap(), 0);
            assert_eq!(high_ticks(), 1);
            stop.store(true, Ordering::SeqCst);
            assert_eq!(medium.unwrap().join().unwrap(), 2);
        });
        high.unwrap().join().unwrap();
    });
}

#[test]
fn a_wait_that_times_out_takes_its_priority_along() {
    on_one(|| {
        let mutex = Arc::new(Mutex::new(()));
        let guard = mutex.lock().unwrap();
        let me = schedule::current();
        let asked = me.level();
        let other = Arc::clone(&mutex);
        let waits = at(50).spawn(move || other.lock_timeout(Duration::from_millis(20)).is_err());
        settle();
        assert_eq!((me.level(), me.effective_level()), (50, 50));
        assert!(waits.unwrap().join().unwrap());
        assert_eq!((me.level(), me.effective_level()), (asked, asked));
        drop(guard);
    });
}

#[test]
fn what_is_spawned_at_an_inherited_priority_gets_the_spawners_own() {
    on_one(|| {
        let mutex = Arc::new(Mutex::new(()));
        let guard = mutex.lock().unwrap();
        let other = Arc::clone(&mutex);
        let waits = at(50).spawn(move || drop(other.lock().unwrap())).unwrap();
        settle();
        let child = spawn(|| Microprocess::current().priority());
        drop(guard);
        assert_eq!(child.join().unwrap(), Priority::NORMAL);
        waits.join().unwrap();
    });
}

#[test]
fn a_ring_of_waits_ends_and_is_a_deadlock() {
    let deadlock = Runtime::builder().virtual_processors(2).build().run(|| {
        let locks: Arc<[Mutex<()>; 3]> = Arc::new(Default::default());
        let all_hold = Arc::new(Barrier::new(3));
        let ring: Vec<_> = (0..3)
            .map(|first| {
                let (locks, all_hold) = (Arc::clone(&locks), Arc::clone(&all_hold));
                at(10 + first as u8).spawn(move || {
                    let _held = locks[first].lock().unwrap();
                    all_hold.wait();
                    drop(locks[(first + 1) % 3].lock());
                })
            })
            .collect();
        for waits in ring {
            waits.unwrap().join().unwrap();
        }
    });
    assert_eq!(deadlock.unwrap_err().waiting.len(), 4);
}

/// Sleeps until `who` runs at `level`; gives up after long.
fn await_level(who: &Microprocess, level: u8) {
    let end_ns = monotonic_ns() + GIVE_UP_NS;
    while who.effective_priority().level() != level {
        assert!(monotonic_ns() < end_ns, "{} instead of {level}", who.effective_priority().level());
        sleep(Duration::from_millis(1));
    }
}

#[test]
fn an_order_from_outside_goes_along_the_chain() {
    on_one(|| {
        let (gate, locks) = (AtomicBool::new(false), [Mutex::new(()), Mutex::new(())]);
        let (gate, locks) = (Arc::new(gate), Arc::new(locks));
        let (wait_here, both) = (Arc::clone(&gate), Arc::clone(&locks));
        let low = at(10).spawn(move || {
            let _held = both[0].lock().unwrap();
            while !wait_here.load(Ordering::SeqCst) {
                sleep(Duration::from_millis(1));
            }
        });
        let low = low.unwrap();
        while locks[0].try_lock().is_ok() {
            sleep(Duration::from_millis(1));
        }
        let both = Arc::clone(&locks);
        let middle = at(11).spawn(move || {
            let _held = both[1].lock().unwrap();
            drop(both[0].lock());
        });
        await_level(&low.microprocess(), 11);
        let top = at(12).spawn(move || drop(locks[1].lock()));
        await_level(&low.microprocess(), 12);
        let (middle, top) = (middle.unwrap(), top.unwrap());
        for level in [50, 20] {
            // From a kernel thread of no runtime, as the control socket's are.
            let id = top.microprocess().id();
            let order = move || find(id).unwrap().order_priority(Priority::new(level).unwrap());
            kyocho_sys::prim::thread::spawn(order).join().unwrap().unwrap();
            await_level(&middle.microprocess(), level);
            await_level(&low.microprocess(), level);
        }
        gate.store(true, Ordering::SeqCst);
        low.join().and(middle.join()).and(top.join()).unwrap();
    });
}

#[test]
fn chains_hold_on_two_virtual_processors() {
    Runtime::builder()
        .virtual_processors(2)
        .build()
        .run(|| {
            // Else whoever is joined would be at least as urgent.
            Microprocess::current().set_priority(Priority::LOWEST);
            let locks: Arc<[Mutex<u64>; LOCKS]> = Arc::new(Default::default());
            let workers: Vec<_> = (0..8_u8)
                .map(|worker| {
                    let locks = Arc::clone(&locks);
                    at(10 + worker).spawn(move || {
                        for round in 0..2_000 {
                            let first = (usize::from(worker) + round) % (LOCKS - 1);
                            let mut outer = locks[first].lock().unwrap();
                            let mut inner = locks[LOCKS - 1].lock().unwrap();
                            *outer += 1;
                            *inner += 1;
                            if round % 7 == 0 {
                                yield_now();
                            }
                        }
                        (schedule::current().level(), 10 + worker)
                    })
                })
                .collect();
            for worker in workers {
                let (level, asked) = worker.unwrap().join().unwrap();
                assert_eq!(level, asked);
            }
            assert_eq!(*locks[LOCKS - 1].lock().unwrap(), 16_000);
        })
        .unwrap();
}
