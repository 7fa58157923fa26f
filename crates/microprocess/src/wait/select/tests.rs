//! A select takes an arm that is ready, has no effect on the others, and loses nothing between
//! arms.
#![expect(
    clippy::excessive_nesting,
    reason = "a scenario nests: runtime, scope, microprocess, loop"
)]

use core::time::Duration;
use std::collections::BTreeSet;

use proptest::prelude::{Strategy, any, prop, prop_assert, prop_assert_eq, proptest};

use super::{Arm, Select, recv, send};
use crate::wait::channel::{RecvError, SendError, bounded, rendezvous, unbounded};
use crate::wait::sync::tests::on_processors;
use crate::yield_now;
use crate::{scope, spawn};

const SOON: Duration = Duration::from_millis(2);

#[test]
fn ready_arm_is_selected_and_the_others_keep_their_message() {
    on_processors(1, || {
        let (full, _kept) = bounded(1);
        full.send(0).unwrap();
        let (free, got) = bounded(1);
        let (left, right) = (send(&full, 1), send(&free, 2));
        assert_eq!(Select::new(&[&left, &right]).wait(), 1);
        assert_eq!(left.finish(), Err(1));
        assert_eq!(right.finish(), Ok(Ok(())));
        assert_eq!(got.recv(), Ok(2));
    });
}

#[test]
fn default_is_taken_when_nothing_is_ready() {
    on_processors(1, || {
        let (to_us, messages) = rendezvous::<u32>();
        let taken = select! {
            recv(messages) -> message => message.ok(),
            send(to_us, 1) -> _ => panic!("a select cannot send to itself"),
            default => None,
        };
        assert_eq!(taken, None);
        let taken = select! {
            recv(messages) -> message => { message.ok() }
            send(to_us, 1) -> _ => panic!("a select cannot send to itself"),
            default(SOON) => Some(9)
        };
        assert_eq!(taken, Some(9));
    });
}

#[test]
fn disconnected_arm_is_ready() {
    on_processors(1, || {
        let (sender, receiver) = rendezvous::<u32>();
        drop(sender);
        select! { recv(receiver) -> message => assert_eq!(message, Err(RecvError)) }
        let (sender, receiver) = rendezvous::<u32>();
        drop(receiver);
        select! { send(sender, 4) -> result => assert_eq!(result, Err(SendError(4))) }
    });
}

#[test]
fn waiting_arm_is_woken_by_a_disconnect() {
    for virtual_processors in [1, 2] {
        on_processors(virtual_processors, || {
            let (sender, receiver) = rendezvous::<u32>();
            let (_other, silent) = rendezvous::<u32>();
            let waiting = spawn(move || {
                select! {
                    recv(receiver) -> message => message,
                    recv(silent) -> _ => panic!("a message from the silent channel"),
                }
            });
            yield_now();
            drop(sender);
            assert_eq!(waiting.join().unwrap(), Err(RecvError));
        });
    }
}

#[test]
fn arms_may_leave_the_code_around_them() {
    fn first(receiver: &crate::wait::channel::Receiver<u32>) -> Result<u32, RecvError> {
        loop {
            select! {
                recv(receiver) -> message => return Ok(message? + 1),
                default => continue,
            }
        }
    }
    on_processors(1, || {
        let (sender, receiver) = bounded(1);
        sender.send(1).unwrap();
        assert_eq!(first(&receiver), Ok(2));
        drop(sender);
        assert_eq!(first(&receiver), Err(RecvError));
    });
}

#[test]
fn selects_on_both_sides_of_a_rendezvous_meet() {
    const ROUNDS: usize = 500;
    for virtual_processors in [1, 2] {
        on_processors(virtual_processors, || {
            let (ping_in, ping_out) = rendezvous();
            let (pong_in, pong_out) = rendezvous();
            scope(|scope| {
                for _ in 0..2 {
                    // Each side either sends or receives, depending on which partner comes first.
                    let (ping_in, ping_out) = (&ping_in, &ping_out);
                    let (pong_in, pong_out) = (&pong_in, &pong_out);
                    scope.spawn(move || {
                        for round in 0..ROUNDS {
                            select! {
                                send(*ping_in, round) -> sent => sent.unwrap(),
                                recv(*pong_out) -> got => assert!(got.is_ok()),
                            }
                        }
                    });
                    scope.spawn(move || {
                        for round in 0..ROUNDS {
                            select! {
                                recv(*ping_out) -> got => assert!(got.is_ok()),
                                send(*pong_in, round) -> sent => sent.unwrap(),
                            }
                        }
                    });
                }
            });
        });
    }
}

#[test]
fn many_selects_on_many_channels_lose_and_repeat_no_message() {
    const CHANNELS: usize = 3;
    const MESSAGES: usize = 300;
    for virtual_processors in [1, 2] {
        for capacity in [0, 1, 8] {
            let got = on_processors(virtual_processors, || {
                let channels = [(); CHANNELS].map(|()| bounded(capacity));
                let (results, all) = unbounded();
                scope(|scope| {
                    for _ in 0..CHANNELS {
                        let results = results.clone();
                        let receivers = channels.each_ref().map(|(_, receiver)| receiver.clone());
                        scope.spawn(move || receive_all(&receivers, &results));
                    }
                    for (party, (sender, _)) in channels.into_iter().enumerate() {
                        scope.spawn(move || {
                            for message in 0..MESSAGES {
                                sender.send(party * MESSAGES + message).unwrap();
                            }
                        });
                    }
                });
                drop(results);
                all.into_iter().collect::<Vec<usize>>()
            });
            assert_eq!(got.len(), CHANNELS * MESSAGES, "no message twice");
            assert!(
                got.into_iter().collect::<BTreeSet<_>>().into_iter().eq(0..CHANNELS * MESSAGES)
            );
        }
    }
}

/// Receives from every channel that has a message, until all are disconnected.
fn receive_all(
    receivers: &[crate::wait::channel::Receiver<usize>],
    results: &crate::wait::channel::Sender<usize>,
) {
    let mut open: Vec<_> = receivers.iter().collect();
    while !open.is_empty() {
        let mut arms: Vec<_> = open.iter().map(|receiver| recv(receiver)).collect();
        let views: Vec<_> = arms.iter().map(|arm| arm as &dyn Arm).collect();
        let index = Select::new(&views).wait();
        drop(views);
        match arms.swap_remove(index).finish() {
            Some(Ok(message)) => results.send(message).unwrap(),
            Some(Err(RecvError)) => drop(open.swap_remove(index)),
            None => panic!("the index names the selected arm"),
        }
    }
}

#[test]
fn of_arms_that_are_always_ready_each_gets_its_turn() {
    on_processors(1, || {
        let channels = [(); 3].map(|()| unbounded());
        for (sender, _) in &channels {
            (0..300).for_each(|message| sender.send(message).unwrap());
        }
        let mut turns = [0; 3];
        for _ in 0..300 {
            let arms = channels.each_ref().map(|(_, receiver)| recv(receiver));
            let index = Select::new(&[&arms[0], &arms[1], &arms[2]]).wait();
            turns[index] += 1;
        }
        assert!(turns.iter().all(|&turns| turns >= 50), "{turns:?}");
    });
}

#[test]
fn wait_with_a_limit_leaves_the_queues() {
    for virtual_processors in [1, 2] {
        on_processors(virtual_processors, || {
            let (sender, receiver) = rendezvous::<u32>();
            let arm = recv(&receiver);
            assert_eq!(Select::new(&[&arm]).wait_timeout(SOON), None);
            assert_eq!(sender.try_send(1), Err(std::sync::mpsc::TrySendError::Full(1)));
            drop(arm);
        });
    }
}

/// One arm of a generated select: which channel, and what to send if it sends.
fn arms() -> impl Strategy<Value = Vec<(usize, Option<u8>)>> {
    prop::collection::vec((0_usize..3, prop::option::of(any::<u8>())), 1..5)
}

proptest! {
    #[test]
    fn select_does_one_operation_that_a_model_allows(
        selects in prop::collection::vec(arms(), 1..40),
    ) {
        on_processors(1, || -> Result<(), proptest::test_runner::TestCaseError> {
            let capacities = [0, 1, 3];
            let channels = capacities.map(bounded);
            let mut model: [std::collections::VecDeque<u8>; 3] = Default::default();
            for chosen in selects {
                let sends: Vec<_> = chosen
                    .iter()
                    .map(|&(at, message)| message.map(|message| send(&channels[at].0, message)))
                    .collect();
                let receives: Vec<_> = chosen.iter().map(|&(at, _)| recv(&channels[at].1)).collect();
                let views: Vec<&dyn Arm> = sends
                    .iter()
                    .zip(&receives)
                    .map(|(send, recv)| send.as_ref().map_or(recv as &dyn Arm, |send| send))
                    .collect();
                let selected = Select::new(&views).try_now();
                let ready = |&(at, message): &(usize, Option<u8>)| match message {
                    Some(_) => model[at].len() < capacities[at],
                    None => !model[at].is_empty(),
                };
                prop_assert_eq!(selected.is_some(), chosen.iter().any(ready));
                let Some(index) = selected else { continue };
                prop_assert!(ready(&chosen[index]));
                let (at, message) = chosen[index];
                drop(sends);
                match message {
                    Some(message) => model[at].push_back(message),
                    None => {
                        let got = receives.into_iter().nth(index).and_then(super::RecvArm::finish);
                        prop_assert_eq!(got, model[at].pop_front().map(Ok));
                    }
                }
            }
            Ok(())
        })?;
    }
}
