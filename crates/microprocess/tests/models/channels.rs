//! Channels and `select` between threads on separate virtual processors: each message arrives once,
//! or returns to its sender.

use core::time::Duration;

use loom::thread::spawn;

use crate::channel::{Receiver, RecvArm, SendArm, SendTimeoutError, Sender, bounded};
use crate::guarded::leave_early;
use crate::record::MicroprocessRef;
use crate::select::wait_until;
use crate::{explore, must_fail};

fn send(sender: &Sender<u32>, message: u32) {
    assert!(sender.shared().send(message, None).is_ok(), "the receiver exists");
}

fn receive(receiver: &Receiver<u32>) -> u32 {
    receiver.shared().recv(None).expect("the senders exist")
}

fn in_order(messages_max: usize) {
    explore(Some(3), move || {
        let (sender, receiver) = bounded(messages_max);
        let other = spawn(move || [1, 2].map(|message| send(&sender, message)));
        assert_eq!([receive(&receiver), receive(&receiver)], [1, 2]);
        assert!(receiver.shared().recv(None).is_err(), "the last sender was dropped");
        other.join().unwrap();
    });
}

#[test]
fn messages_of_a_rendezvous_pass_in_order() {
    in_order(0);
}

#[test]
fn messages_pass_through_a_buffer_in_order() {
    in_order(1);
}

#[test]
fn channel_whose_guard_is_released_early_is_caught() {
    must_fail(|| {
        leave_early();
        in_order(0);
    });
}

#[test]
fn two_senders_are_both_received() {
    explore(Some(2), || {
        let (sender, receiver) = bounded(0);
        let senders = [(1, sender.clone()), (2, sender)];
        let others = senders.map(|(message, sender)| spawn(move || send(&sender, message)));
        assert_eq!(receive(&receiver) + receive(&receiver), 3);
        others.into_iter().for_each(|other| other.join().unwrap());
    });
}

#[test]
fn message_that_times_out_arrives_or_is_returned() {
    explore(Some(3), || {
        let (sender, receiver) = bounded(0);
        let waiter = MicroprocessRef::current().0;
        let clock = spawn(move || waiter.time_out());
        let other = spawn(move || receiver.shared().recv(None).ok());
        let back = match sender.shared().send(7, Some(Duration::from_secs(1))) {
            Ok(()) => None,
            Err(SendTimeoutError::Timeout(message) | SendTimeoutError::Disconnected(message)) => {
                Some(message)
            }
        };
        drop(sender);
        clock.join().unwrap();
        let arrived = other.join().unwrap();
        assert_eq!([arrived, back].into_iter().flatten().collect::<Vec<_>>(), [7]);
    });
}

/// Selects between two channels, twice, while each gets a message.
fn both_selected() {
    explore(Some(2), || {
        let channels = [bounded(0), bounded(0)];
        let [(first, one), (second, other)] = channels;
        let senders = [(1, first), (2, second)];
        let others = senders.map(|(message, sender)| {
            spawn(move || {
                send(&sender, message);
                sender
            })
        });
        let mut sum = 0;
        while sum < 3 {
            let arms = [RecvArm::new(&one), RecvArm::new(&other)];
            assert!(
                wait_until(&[&arms[0], &arms[1]], None).is_some(),
                "the wait has no time limit"
            );
            let received = arms.into_iter().filter_map(RecvArm::finish);
            sum += received.map(|message| message.expect("the sender exists")).sum::<u32>();
        }
        assert_eq!(sum, 3, "each message arrives once");
        others.into_iter().for_each(|other| drop(other.join().unwrap()));
    });
}

#[test]
fn a_select_does_one_operation_at_a_time() {
    both_selected();
}

#[test]
fn select_whose_guard_is_released_early_is_caught() {
    must_fail(|| {
        leave_early();
        both_selected();
    });
}

/// Two threads, each of which would send to the other or receive from it: exactly one of the two
/// messages passes.
#[test]
fn two_selects_that_meet_agree() {
    explore(Some(2), || {
        let (to_left, left) = bounded::<u32>(0);
        let (to_right, right) = bounded::<u32>(0);
        let meet = |sender: &Sender<u32>, receiver: &Receiver<u32>| {
            let (sends, receives) = (SendArm::new(sender, 1), RecvArm::new(receiver));
            wait_until(&[&sends, &receives], None)
        };
        let other = spawn(move || {
            let chosen = meet(&to_left, &right);
            (chosen, to_left, right)
        });
        let mine = meet(&to_right, &left);
        let (theirs, ..) = other.join().unwrap();
        assert_ne!(mine, theirs, "one sends, the other receives");
    });
}
