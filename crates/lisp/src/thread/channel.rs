//! Channels: `(make-channel [capacity])`. Without a capacity a send ends when the message is taken.
//!
//! A plain send on such a rendezvous channel puts its message down and waits until it is taken. One that is a case of a `select` (`select.rs`) may
//! not: another case may come first. It gives its message to a receiver that waits, or makes an offer, which a receiver takes or the select
//! takes back. **Invariant:** while a select's offer lies in a channel, no receiver waits there but that select
//! itself, and selects that were served elsewhere and are about to leave.

use crate::system::kernel::lock;
use crate::thread::lisp_thread::LispThread;
use crate::thread::ticket::Outcome;
use crate::thread::wait::{OnThread, Waiters};
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

/// Messages that a channel may hold.
const CAPACITY_MAX: usize = 1 << 20;

/// A message of a select that waits, for whoever claims its ticket first.
#[derive(Debug)]
struct Offer {
    thread: Arc<LispThread>,
    /// The case of its select.
    case: usize,
    message: Value,
    /// How many messages were sent before it.
    sent_before: u64,
}

#[derive(Debug)]
pub(super) struct State {
    /// Messages, oldest first, each with its number.
    messages: VecDeque<Value>,
    pub(super) capacity: usize,
    /// How many messages were sent, and how many taken.
    sent: u64,
    taken: u64,
    pub(super) closed: bool,
    /// Who waits for room.
    pub(super) senders: Waiters,
    /// Who waits for their message to be taken, in the messages' order.
    sent_by: Waiters,
    pub(super) receivers: Waiters,
    /// Oldest first.
    offers: VecDeque<Offer>,
    /// Messages with the receivers that they were given to and that have not run since.
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

    /// Takes the message that is first: one that was put down, or offered before that.
    pub(super) fn take(&mut self, me: &Arc<LispThread>) -> Option<Value> {
        // Nobody that was woken for a message finds an offer before it: while one lay there, nobody else waited.
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

    /// Takes another's offer whose turn has come. One whose select was served elsewhere is dropped.
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

    /// Puts a message into the buffer; it has room.
    ///
    /// # Errors
    /// No memory: nothing has happened.
    pub(super) fn put(&mut self, machine: &Machine, message: Value) -> Result<()> {
        if self.messages.len() == self.messages.capacity() {
            // It doubles.
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

    /// Whether the next message has room.
    pub(super) fn has_room(&self) -> bool {
        self.messages.len() < self.capacity.max(1)
    }

    /// Gives a message to another that waits for one; whether there was one.
    pub(super) fn give(&mut self, me: &Arc<LispThread>, message: Value) -> bool {
        let claim =
            |thread: &Arc<LispThread>| !Arc::ptr_eq(thread, me) && thread.ticket.claim_receiver();
        let Some(receiver) = self.receivers.claim_first(claim) else { return false };
        receiver.wake();
        self.given.push((receiver, message));
        true
    }

    /// The message that this thread was given.
    pub(super) fn given_to(&mut self, thread: &Arc<LispThread>) -> Option<Value> {
        let place = self.given.iter().position(|(receiver, _)| Arc::ptr_eq(receiver, thread))?;
        let (_, message) = self.given.swap_remove(place);
        barrier::overwrite(|| message);
        Some(message)
    }

    /// The thread goes on elsewhere: what it was given, if anything, is the next receiver's.
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

    /// Takes a thread's offers back.
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

/// Bytes that a case of a select takes in a channel while it waits; the queue may double.
pub(super) const CASE_BYTES: usize = 2 * (size_of::<Offer>() + size_of::<Arc<LispThread>>());

/// A channel as Lisp holds it.
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

/// What an image keeps of a channel.
pub(crate) struct Kept {
    pub(crate) capacity: usize,
    pub(crate) closed: bool,
    pub(crate) messages: Vec<Value>,
}

/// What an image keeps of this channel, or why it keeps none; `None` where it is no channel.
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

/// A channel of an image, without its messages; `None` where there is no such channel.
pub(crate) fn restored(capacity: usize, closed: bool) -> Option<Box<dyn ForeignObject>> {
    let state = State { closed, ..State::of(capacity) };
    (capacity <= CAPACITY_MAX).then(|| Box::new(ChannelObject(Mutex::new(state))) as _)
}

/// Bytes that so many messages take outside the heap, at most.
pub(crate) const fn messages_bytes(count: usize) -> usize {
    2 * count * size_of::<Value>()
}

/// Adds a message to a channel of an image.
pub(crate) fn furnish(value: Value, message: Value) {
    if let Some(channel) = value.as_foreign::<ChannelObject>() {
        let mut state = lock(&channel.0);
        state.messages.push_back(message);
        state.sent += 1;
    }
}

/// `(channel-send! channel message)`. A send on a rendezvous channel puts its message down, and
/// waits until that one is taken.
fn send(machine: &mut Machine, frame: Frame, _: usize) -> Result<Control> {
    let channel = argument("channel-send!", frame)?;
    let me = machine.thread()?;
    let wait = machine.wait.take();
    let mut state = lock(&channel.0);
    if let Some(Wait { stage: Stage::Sent(number), .. }) = wait {
        if state.taken > number || state.closed {
            // It may have been woken for nothing and found this by itself.
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

/// `(channel-receive channel [when-closed])`: the oldest message; when the channel is closed and
/// empty, an error or the second argument.
fn receive(machine: &mut Machine, frame: Frame, count: usize) -> Result<Control> {
    let channel = argument("channel-receive", frame)?;
    let me = machine.thread()?;
    let has_waited = machine.wait.take().is_some();
    let mut state = lock(&channel.0);
    if has_waited && let Some(message) = state.given_to(me) {
        return Ok(Control::Value(message));
    }
    if let Some(message) = state.take(me) {
        // The receiver may have been woken for an earlier message and overtaken.
        state.receivers.remove(me);
        return Ok(Control::Value(message));
    }
    if state.closed {
        return if count > 1 { Ok(Control::Value(frame.get(1))) } else { Err(closed()) };
    }
    state.receivers.add(me);
    Ok(machine.wait_for(me, "a message", Wait::on(frame.get(0))))
}

/// A thread gives up waiting here, if it does.
pub(super) fn withdraw(object: Value, thread: &Arc<LispThread>) {
    if let Some(channel) = object.as_foreign::<ChannelObject>() {
        let mut state = lock(&channel.0);
        let state = &mut *state;
        if state.give_back(thread) || state.sent_by.remove(thread) || state.receivers.remove(thread)
        {
            return;
        }
        // A wake that it got is for another one: room, or a message.
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
