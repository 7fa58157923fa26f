//! One test suite for all three kinds of channels, and a naive model for operations that do not
//! wait.
#![expect(
    clippy::excessive_nesting,
    reason = "a scenario nests: runtime, scope, microprocess, loop"
)]

use core::time::Duration;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use proptest::prelude::{Strategy, any, prop, prop_assert_eq, prop_oneof, proptest};

use super::{
    Receiver, RecvError, RecvTimeoutError, SendError, SendTimeoutError, Sender, TryRecvError,
    TrySendError, bounded, rendezvous, unbounded,
};
use crate::wait::sync::tests::on_processors;
use crate::yield_now;
use crate::{scope, spawn};

const SOON: Duration = Duration::from_millis(2);

type Channel<T> = (Sender<T>, Receiver<T>);

/// Runs `check` on every kind of channel, on one and on two virtual processors.
fn on_every_flavour<T: Send>(check: impl Fn(Channel<T>) + Send + Sync) {
    for virtual_processors in [1, 2] {
        let flavours: [fn() -> Channel<T>; 4] =
            [rendezvous, || bounded(1), || bounded(5), unbounded];
        for make in flavours {
            on_processors(virtual_processors, || check(make()));
        }
    }
}

#[test]
fn messages_arrive_in_order() {
    on_every_flavour(|(sender, receiver)| {
        let consumer = spawn(move || receiver.iter().collect::<Vec<usize>>());
        (0..300).for_each(|message| sender.send(message).unwrap());
        drop(sender);
        assert_eq!(consumer.join().unwrap(), (0..300).collect::<Vec<_>>());
    });
}

#[test]
fn every_message_arrives_once_and_in_its_senders_order() {
    const PARTIES: usize = 4;
    const MESSAGES: usize = 200;
    on_every_flavour(|(sender, receiver)| {
        let consumers = [(); PARTIES].map(|()| {
            let receiver = receiver.clone();
            spawn(move || receiver.into_iter().collect::<Vec<(usize, usize)>>())
        });
        drop(receiver);
        scope(|scope| {
            for party in 0..PARTIES {
                let sender = sender.clone();
                scope.spawn(move || {
                    for message in 0..MESSAGES {
                        sender.send((party, message)).unwrap();
                        if message % 7 == party {
                            yield_now();
                        }
                    }
                });
            }
        });
        drop(sender);
        let mut all = Vec::new();
        for consumer in consumers {
            let got = consumer.join().unwrap();
            let mut last = BTreeMap::new();
            for &(party, message) in &got {
                assert!(last.insert(party, message).is_none_or(|last| last < message));
            }
            all.extend(got);
        }
        all.sort_unstable();
        let sent = (0..PARTIES).flat_map(|party| (0..MESSAGES).map(move |m| (party, m)));
        assert!(all.into_iter().eq(sent));
    });
}

#[test]
fn receivers_get_what_was_sent_before_the_senders_left() {
    on_processors(1, || {
        let (sender, receiver) = bounded(4);
        sender.send(1).unwrap();
        sender.send(2).unwrap();
        drop(sender);
        assert_eq!(receiver.recv(), Ok(1));
        assert_eq!(receiver.try_recv(), Ok(2));
        assert_eq!(receiver.recv(), Err(RecvError));
        assert_eq!(receiver.try_recv(), Err(TryRecvError::Disconnected));
        assert_eq!(receiver.recv_timeout(SOON), Err(RecvTimeoutError::Disconnected));
    });
}

#[test]
fn senders_get_their_message_back_when_the_receivers_left() {
    on_every_flavour(|(sender, receiver)| {
        drop(receiver);
        assert_eq!(sender.send(1), Err(SendError(1)));
        assert_eq!(sender.try_send(2), Err(TrySendError::Disconnected(2)));
        assert_eq!(sender.send_timeout(3, SOON), Err(SendTimeoutError::Disconnected(3)));
    });
}

#[test]
fn waits_end_when_the_other_side_is_dropped() {
    on_every_flavour::<usize>(|(sender, receiver)| {
        let waiting = [(); 3].map(|()| {
            let receiver = receiver.clone();
            spawn(move || receiver.recv())
        });
        drop(receiver);
        yield_now();
        drop(sender);
        for receiver in waiting {
            assert_eq!(receiver.join().unwrap(), Err(RecvError));
        }
    });
    on_every_flavour::<usize>(|(sender, receiver)| {
        while sender.try_send(0).is_ok() && sender.capacity().is_some() {}
        let waiting = [(); 3].map(|()| {
            let sender = sender.clone();
            spawn(move || (sender.capacity(), sender.send(9)))
        });
        yield_now();
        drop(receiver);
        for sender in waiting {
            let (capacity, result) = sender.join().unwrap();
            assert!(result == Err(SendError(9)) || capacity.is_none());
        }
    });
}

#[test]
fn waits_with_a_limit_return_the_message_and_leave_no_waiter() {
    on_processors(1, || {
        for capacity in [0, 2] {
            let (sender, receiver) = bounded(capacity);
            (0..capacity).for_each(|message| sender.send(message).unwrap());
            assert_eq!(sender.send_timeout(9, SOON), Err(SendTimeoutError::Timeout(9)));
            assert!(receiver.try_iter().eq(0..capacity));
            assert_eq!(receiver.recv_timeout(SOON), Err(RecvTimeoutError::Timeout));
            let receiver = spawn(move || receiver.recv_timeout(Duration::from_secs(3600)));
            sender.send(5).unwrap();
            assert_eq!(receiver.join().unwrap(), Ok(5));
        }
    });
}

#[test]
fn rendezvous_send_returns_after_its_message_was_received() {
    on_processors(1, || {
        let (sender, receiver) = rendezvous();
        let (after, seen) = unbounded();
        let sender = spawn(move || {
            sender.send(1).unwrap();
            after.send(()).unwrap();
        });
        for _ in 0..5 {
            yield_now();
        }
        assert!(seen.is_empty(), "no message was received yet");
        assert_eq!(receiver.recv(), Ok(1));
        assert_eq!(seen.recv(), Ok(()));
        sender.join().unwrap();
    });
}

#[test]
fn every_message_is_dropped_once_wherever_it_is() {
    on_every_flavour(|(sender, receiver)| {
        let token = Arc::new(());
        let messages = 100;
        let waiting = {
            let (sender, token) = (sender.clone(), Arc::clone(&token));
            spawn(move || (0..messages).all(|_| sender.send(Arc::clone(&token)).is_ok()))
        };
        yield_now();
        // Some are received, some are in the buffer, and one is in the slot of a waiting sender.
        drop(receiver.try_recv());
        drop(receiver);
        waiting.join().unwrap();
        drop(sender);
        assert_eq!(Arc::strong_count(&token), 1);
    });
}

#[test]
fn unbounded_channel_grows_over_many_blocks_and_shrinks_again() {
    on_processors(1, || {
        let (sender, receiver) = unbounded();
        for round in 1..4 {
            (0..round * 500).for_each(|message| sender.send(message).unwrap());
            assert_eq!(receiver.len(), round * 500);
            assert!(receiver.try_iter().eq(0..round * 500));
        }
        (0..100).for_each(|message| sender.send(message).unwrap());
        drop(sender);
        drop(receiver);
    });
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Send(u16),
    Receive,
}

proptest! {
    #[test]
    fn buffered_channel_does_as_a_deque(
        capacity in prop::option::of(0_usize..6),
        steps in prop::collection::vec(
            prop_oneof![any::<u16>().prop_map(Step::Send), prop::strategy::Just(Step::Receive)],
            0..200,
        ),
    ) {
        let (played, modelled) = on_processors(1, || {
            let (sender, receiver) = capacity.map_or_else(unbounded, bounded);
            let mut model = VecDeque::new();
            let (mut played, mut modelled) = (Vec::new(), Vec::new());
            for step in steps {
                match step {
                    Step::Send(message) => {
                        played.push(sender.try_send(message).ok());
                        let room = capacity.is_none_or(|capacity| model.len() < capacity);
                        modelled.push(room.then(|| model.push_back(message)));
                    }
                    Step::Receive => {
                        assert_eq!(receiver.try_recv().ok(), model.pop_front());
                    }
                }
                assert_eq!(sender.len(), model.len());
            }
            (played, modelled)
        });
        prop_assert_eq!(played, modelled);
    }
}

#[test]
fn closed_channel_delivers_sent_messages_and_accepts_none() {
    on_processors(1, || {
        let (sender, receiver) = bounded(2);
        sender.send(1).unwrap();
        sender.send(2).unwrap();
        let waiting = sender.clone();
        let refused = spawn(move || waiting.send(3).unwrap_err().0);
        yield_now();
        sender.close();
        assert_eq!(refused.join().unwrap(), 3);
        assert_eq!(sender.send(4).unwrap_err().0, 4);
        assert!(matches!(sender.try_send(5), Err(TrySendError::Disconnected(5))));
        assert_eq!(receiver.iter().collect::<Vec<_>>(), [1, 2]);
    });
}

#[test]
fn closing_wakes_receivers_alone_or_in_a_select() {
    on_processors(1, || {
        let (sender, receiver) = rendezvous::<u8>();
        let (one, other) = (receiver.clone(), receiver.clone());
        let alone = spawn(move || one.recv().is_err());
        let selecting =
            spawn(move || crate::select! { recv(other) -> message => message.is_err() });
        yield_now();
        sender.close();
        assert!(alone.join().unwrap() && selecting.join().unwrap());
        assert!(crate::select! { recv(receiver) -> message => message.is_err() });
    });
}
