//! Compares inherited priorities with a naive model of which actor waits for which.
#![expect(clippy::excessive_nesting, reason = "a scenario nests: runtime, microprocess, lock")]

use std::sync::{Arc, OnceLock, mpsc};

use proptest::prelude::{Just, ProptestConfig, Strategy, prop_oneof, proptest};

use crate::processor::record::Record;
use crate::schedule;
use crate::wait::channel;
use crate::yield_now;
use crate::{Builder, JoinHandle, Microprocess, Mutex, Priority, Runtime};

mod lowered;
mod ranking;
mod scenarios;

const ACTORS: usize = 5;
const LOCKS: usize = 4;

fn on_one(main: impl FnOnce() + Send) {
    Runtime::builder().virtual_processors(1).build().run(main).unwrap();
}

fn at(level: u8) -> Builder {
    Builder::new().priority(Priority::new(level).unwrap())
}

/// Yields until no microprocess more urgent than the caller can run.
fn settle() {
    yield_now();
}

/// An order to an actor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Order {
    /// Lock a mutex.
    Lock(usize),
    /// Unlock the mutex locked last.
    Unlock,
}

/// What happens in one step.
#[derive(Debug, Clone, Copy)]
enum Event {
    Order(usize, Order),
    /// An actor that waits is killed: it gives up its wait and its locks.
    Kill(usize),
    /// An actor's own priority changes.
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

/// Which actor holds and waits for what; levels follow from the definition.
#[derive(Debug, Clone, Default)]
struct Model {
    asked: [u8; ACTORS],
    /// The locks of each actor, oldest first.
    held: [Vec<usize>; ACTORS],
    waits: [Option<usize>; ACTORS],
    dead: [bool; ACTORS],
}

impl Model {
    fn holder(&self, lock: usize) -> Option<usize> {
        (0..ACTORS).find(|&actor| self.held[actor].contains(&lock))
    }

    /// Whether `actor` would wait for itself. No actor in such a ring runs again, and levels there
    /// only rise.
    fn would_deadlock(&self, actor: usize, lock: usize) -> bool {
        let next = |&lock: &usize| self.waits[self.holder(lock)?];
        let chain = core::iter::successors(Some(lock), next);
        chain.filter_map(|lock| self.holder(lock)).any(|holder| holder == actor)
    }

    /// The least fixed point of "at least as urgent as each of its waiters".
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

/// A microprocess that follows orders, and the test's connection to it.
struct Actor {
    orders: channel::Sender<Order>,
    /// The locks it has acquired so far, in order.
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
                        // A killed holder leaves the mutex poisoned.
                        let guard = locks[lock].lock().unwrap_or_else(|poison| poison.into_inner());
                        guards.push(guard);
                        if tell.send(lock).is_err() {
                            // The test is over.
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

    /// Performs one event, unless it is impossible in the present state.
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
                if self.model.dead[actor] {
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

    /// Records which waiter acquired a lock; it must be one of the most urgent.
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
            assert!(
                self.model.holder(lock).is_some(),
                "{lock} is free although an actor waits for it"
            );
        }
    }

    fn check(&self) {
        let levels = self.model.levels();
        for (actor, level) in
            levels.into_iter().enumerate().filter(|(actor, _)| !self.model.dead[*actor])
        {
            let record = *self.actors[actor].record.get().unwrap();
            assert_eq!(record.effective_level(), level, "actor {actor} in {:?}", self.model);
            assert_eq!(record.level(), level, "actor {actor} is queued at its level");
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
