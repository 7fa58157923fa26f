//! Channels: `(make-channel [capacity])`. Without a capacity a send ends when the message has been
//! received (a rendezvous).
//!
//! A plain send on a rendezvous channel stores its message and waits until it is received. A send
//! that is a case of a `select` (`select.rs`) must not do that, because another case may happen
//! first. It passes its message to a waiting receiver. If there is none, it makes an offer, which a
//! receiver accepts or the select withdraws.
//!
//! **Invariant:** while an offer of a select is in a channel, two kinds of receivers may wait
//! there. One is that select itself; the others are selects that were served elsewhere and are
//! about to leave.

use crate::kernel::lock;
use crate::kernel::session::thread::LispThread;
use crate::kernel::ticket::Outcome;
use crate::kernel::wait::{OnThread, Waiters};
use kyocho_heap::heap::barrier;
use kyocho_heap::heap::{ForeignObject, Marker};
use kyocho_heap::raise::{Raise, Result};
use kyocho_heap::value::Value;
use kyocho_vm::machine::Machine;
use kyocho_vm::machine::access::Frame;
use kyocho_vm::machine::control::{Control, Procedure};
use kyocho_vm::machine::wait::{Stage, Wait};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

/// Maximum number of messages in a channel.
const CAPACITY_MAX: usize = 1 << 20;

/// A message of a waiting select, for the first thread that claims its ticket.
#[derive(Debug)]
struct Offer {
    thread: Arc<LispThread>,
    /// The index of the select's case.
    case: usize,
    message: Value,
    /// Number of messages sent before it.
    sent_before: u64,
}

#[derive(Debug)]
pub(super) struct State {
    /// Messages, oldest first. The oldest has the number `taken`.
    messages: VecDeque<Value>,
    pub(super) capacity: usize,
    /// Number of messages sent; number received.
    sent: u64,
    taken: u64,
    pub(super) closed: bool,
    /// Threads that wait for room.
    pub(super) senders: Waiters,
    /// Threads that wait until their messages are received, in the order of the messages.
    sent_by: Waiters,
    pub(super) receivers: Waiters,
    /// Oldest first.
    offers: VecDeque<Offer>,
    /// Messages passed to receivers that have not run since.
    given: Vec<(Arc<LispThread>, Value)>,
}

impl State {
    fn of(capacity: usize) -> Self {
        Self {
            messages: VecDeque::new(),
            capacity,
            sent: 0,
            taken: 0,
            closed: false,
            senders: Waiters::default(),
            sent_by: Waiters::default(),
            receivers: Waiters::default(),
            offers: VecDeque::new(),
            given: Vec::new(),
        }
    }

    /// Takes the oldest message, stored or offered.
    pub(super) fn take(&mut self, me: &Arc<LispThread>) -> Option<Value> {
        // If a thread was woken for a message, there is no offer before that message: while an
        // offer is present, no other thread waits.
        if let Some(message) = self.take_offer(me) {
            return Some(message);
        }
        let message = self.messages.pop_front()?;
        barrier::overwrite(|| message);
        self.taken += 1;
        self.sent_by.wake_one();
        self.senders.wake_one();
        Some(message)
    }

    /// Accepts the next offer of another thread. Drops offers whose select was served elsewhere.
    fn take_offer(&mut self, me: &Arc<LispThread>) -> Option<Value> {
        loop {
            let mut due = self.offers.iter().take_while(|offer| offer.sent_before <= self.taken);
            let place = due.position(|offer| !Arc::ptr_eq(&offer.thread, me))?;
            let offer = self.offers.remove(place)?;
            barrier::overwrite(|| offer.message);
            if offer.thread.ticket.claim(Outcome::Taken(offer.case)) {
                offer.thread.wake();
                return Some(offer.message);
            }
        }
    }

    /// Stores a message in the buffer, which has room.
    ///
    /// # Errors
    /// Out of memory. Nothing has changed.
    pub(super) fn put(&mut self, machine: &Machine, message: Value) -> Result<()> {
        if self.messages.len() == self.messages.capacity() {
            // The buffer doubles.
            machine.mutator.charge(size_of::<Value>() * self.messages.len())?;
        }
        self.put_down(message);
        Ok(())
    }

    fn put_down(&mut self, message: Value) {
        self.messages.push_back(message);
        self.sent += 1;
        self.receivers.wake_one();
    }

    /// Whether there is room for another message.
    pub(super) fn has_room(&self) -> bool {
        self.messages.len() < self.capacity.max(1)
    }

    /// Passes a message to another thread that waits for one. Returns whether there was one.
    pub(super) fn give(&mut self, me: &Arc<LispThread>, message: Value) -> bool {
        let claim =
            |thread: &Arc<LispThread>| !Arc::ptr_eq(thread, me) && thread.ticket.claim_receiver();
        let Some(receiver) = self.receivers.claim_first(claim) else { return false };
        receiver.wake();
        self.given.push((receiver, message));
        true
    }

    /// The message that was passed to this thread.
    pub(super) fn given_to(&mut self, thread: &Arc<LispThread>) -> Option<Value> {
        let place = self.given.iter().position(|(receiver, _)| Arc::ptr_eq(receiver, thread))?;
        let (_, message) = self.given.swap_remove(place);
        barrier::overwrite(|| message);
        Some(message)
    }

    /// Called when the thread stops waiting: a message that was passed to it goes to the next
    /// receiver.
    pub(super) fn give_back(&mut self, thread: &Arc<LispThread>) -> bool {
        let message = self.given_to(thread);
        message.is_some_and(|message| {
            self.put_down(message);
            true
        })
    }

    /// Offers a message, as a case of a select.
    pub(super) fn offer(&mut self, thread: &Arc<LispThread>, case: usize, message: Value) {
        let thread = Arc::clone(thread);
        self.offers.push_back(Offer { thread, case, message, sent_before: self.sent });
    }

    /// Withdraws a thread's offers.
    pub(super) fn retract(&mut self, thread: &Arc<LispThread>) {
        self.offers.retain(|offer| {
            let stays = !Arc::ptr_eq(&offer.thread, thread);
            if !stays {
                barrier::overwrite(|| offer.message);
            }
            stays
        });
    }
}

/// Bytes that a waiting case of a select takes in its channel; the queue may double.
pub(super) const CASE_BYTES: usize = 2 * (size_of::<Offer>() + size_of::<Arc<LispThread>>());

/// A channel as Lisp refers to it.
#[derive(Debug)]
pub(super) struct ChannelObject(pub(super) Mutex<State>);

impl ForeignObject for ChannelObject {
    fn held_bytes(&self) -> usize {
        let state = lock(&self.0);
        let waiters = [&state.senders, &state.sent_by, &state.receivers];
        size_of::<Self>()
            + size_of::<Value>() * state.messages.capacity()
            + size_of::<Offer>() * state.offers.capacity()
            + size_of::<(Arc<LispThread>, Value)>() * state.given.capacity()
            + waiters.into_iter().map(Waiters::held_bytes).sum::<usize>()
    }

    fn trace(&self, marker: &mut Marker) {
        let state = lock(&self.0);
        let offered = state.offers.iter().map(|offer| offer.message);
        let given = state.given.iter().map(|&(_, message)| message);
        for message in state.messages.iter().copied().chain(offered).chain(given) {
            marker.mark(message);
        }
    }
}

pub(super) const TABLE: &[Procedure] = &[
    Procedure::new("make-channel", 0, Some(1), make),
    Procedure::new("channel?", 1, Some(1), |_, frame, _| {
        Ok(Control::Value(Value::boolean(frame.get(0).as_foreign::<ChannelObject>().is_some())))
    }),
    Procedure::new("channel-send!", 2, Some(2), send),
    Procedure::new("channel-receive", 1, Some(2), receive),
    Procedure::new("channel-close!", 1, Some(1), close),
];

fn argument(who: &'static str, frame: Frame) -> Result<&'static ChannelObject> {
    let value = frame.get(0);
    value.as_foreign().ok_or_else(|| Raise::wrong_type(who, 1, "channel", value))
}

fn make(machine: &mut Machine, frame: Frame, count: usize) -> Result<Control> {
    let capacity = if count == 0 {
        0
    } else {
        let capacity = frame.get(0).as_fixnum().and_then(|n| usize::try_from(n).ok());
        capacity.filter(|&n| n <= CAPACITY_MAX).ok_or_else(|| {
            let bound = format!("0 <= capacity <= {CAPACITY_MAX}");
            Raise::out_of_range("make-channel", 1, frame.get(0), bound)
        })?
    };
    let channel = ChannelObject(Mutex::new(State::of(capacity)));
    Ok(Control::Value(machine.mutator.foreign(Box::new(channel))?))
}

/// The state of a channel that an image contains.
pub(crate) struct Kept {
    pub(crate) capacity: usize,
    pub(crate) closed: bool,
    pub(crate) messages: Vec<Value>,
}

/// The state for an image, or why the channel cannot be saved; `None` if the value is not a
/// channel.
pub(crate) fn kept(value: Value) -> Option<core::result::Result<Kept, &'static str>> {
    let state = lock(&value.as_foreign::<ChannelObject>()?.0);
    let waiters = [&state.senders, &state.sent_by, &state.receivers];
    let is_idle = waiters.into_iter().all(Waiters::is_empty);
    if !(is_idle && state.offers.is_empty() && state.given.is_empty()) {
        return Some(Err("a channel that a thread waits for"));
    }
    let messages = state.messages.iter().copied().collect();
    Some(Ok(Kept { capacity: state.capacity, closed: state.closed, messages }))
}

/// A channel restored from an image, without its messages; `None` if the parameters are invalid.
pub(crate) fn restored(capacity: usize, closed: bool) -> Option<Box<dyn ForeignObject>> {
    let state = State { closed, ..State::of(capacity) };
    (capacity <= CAPACITY_MAX).then(|| Box::new(ChannelObject(Mutex::new(state))) as _)
}

/// Maximum number of bytes outside the heap for this number of messages.
pub(crate) const fn messages_bytes(count: usize) -> usize {
    2 * count * size_of::<Value>()
}

/// Adds a message to a restored channel.
pub(crate) fn complete_restored(value: Value, message: Value) {
    if let Some(channel) = value.as_foreign::<ChannelObject>() {
        let mut state = lock(&channel.0);
        state.messages.push_back(message);
        state.sent += 1;
    }
}

/// `(channel-send! channel message)`. On a rendezvous channel it stores the message and waits until
/// that is received.
fn send(machine: &mut Machine, frame: Frame, _: usize) -> Result<Control> {
    let channel = argument("channel-send!", frame)?;
    let me = machine.thread()?;
    let wait = machine.wait.take();
    let mut state = lock(&channel.0);
    if let Some(Wait { stage: Stage::Sent(number), .. }) = wait {
        if state.taken > number || state.closed {
            // The thread may have been woken for another reason, and is still in the queue.
            state.sent_by.remove(me);
            let is_taken = state.taken > number;
            return is_taken.then_some(Control::Value(Value::UNSPECIFIED)).ok_or_else(closed);
        }
        return Ok(await_receiver(machine, me, frame.get(0), &mut state, number));
    }
    if state.closed {
        state.senders.remove(me);
        return Err(closed());
    }
    if state.has_room() {
        let number = state.sent;
        state.put(machine, frame.get(1))?;
        state.senders.remove(me);
        if state.capacity > 0 {
            return Ok(Control::Value(Value::UNSPECIFIED));
        }
        return Ok(await_receiver(machine, me, frame.get(0), &mut state, number));
    }
    state.senders.add(me);
    Ok(machine.wait_for(me, "room in a channel", Wait::on(frame.get(0))))
}

fn await_receiver(
    machine: &mut Machine,
    me: &Arc<LispThread>,
    channel: Value,
    state: &mut State,
    number: u64,
) -> Control {
    state.sent_by.add(me);
    let wait = Wait { stage: Stage::Sent(number), ..Wait::on(channel) };
    machine.wait_for(me, "a channel's receiver", wait)
}

/// `(channel-receive channel [when-closed])`: the oldest message. If the channel is closed and
/// empty, the second argument or an error.
fn receive(machine: &mut Machine, frame: Frame, count: usize) -> Result<Control> {
    let channel = argument("channel-receive", frame)?;
    let me = machine.thread()?;
    let has_waited = machine.wait.take().is_some();
    let mut state = lock(&channel.0);
    if has_waited && let Some(message) = state.given_to(me) {
        return Ok(Control::Value(message));
    }
    if let Some(message) = state.take(me) {
        // The receiver may have been woken for an earlier message, which another thread took.
        state.receivers.remove(me);
        return Ok(Control::Value(message));
    }
    if state.closed {
        return if count > 1 { Ok(Control::Value(frame.get(1))) } else { Err(closed()) };
    }
    state.receivers.add(me);
    Ok(machine.wait_for(me, "a message", Wait::on(frame.get(0))))
}

/// Ends a thread's wait here, if there is one.
pub(super) fn withdraw(object: Value, thread: &Arc<LispThread>) {
    if let Some(channel) = object.as_foreign::<ChannelObject>() {
        let mut state = lock(&channel.0);
        let state = &mut *state;
        if state.give_back(thread) || state.sent_by.remove(thread) || state.receivers.remove(thread)
        {
            return;
        }
        // If the thread was woken, the wake is passed on: there is room, or a message.
        state.senders.withdraw(thread);
        state.receivers.wake_one();
    }
}

fn close(_: &mut Machine, frame: Frame, _: usize) -> Result<Control> {
    let channel = argument("channel-close!", frame)?;
    let mut state = lock(&channel.0);
    state.closed = true;
    state.senders.wake_all();
    state.sent_by.wake_all();
    state.receivers.wake_all();
    for offer in state.offers.drain(..) {
        barrier::overwrite(|| offer.message);
        offer.thread.wake();
    }
    Ok(Control::Value(Value::UNSPECIFIED))
}

pub(super) fn closed() -> Raise {
    Raise::error("the channel is closed", Vec::new())
}
