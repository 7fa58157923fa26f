//! Channels: `(make-channel [capacity])`. Without a capacity a send ends when the message is taken.

use crate::heap::barrier;
use crate::heap::{ForeignObject, Marker};
use crate::machine::Machine;
use crate::machine::access::Frame;
use crate::machine::control::{Control, Procedure};
use crate::raise::{Raise, Result};
use crate::system::kernel::lock;
use crate::thread::lisp_thread::LispThread;
use crate::thread::wait::{Stage, Wait, Waiters};
use crate::value::Value;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

/// Messages that a channel may hold.
const CAPACITY_MAX: usize = 1 << 20;

#[derive(Debug)]
struct State {
    /// Messages, oldest first, each with its number.
    messages: VecDeque<Value>,
    capacity: usize,
    /// How many messages were sent, and how many taken.
    sent: u64,
    taken: u64,
    closed: bool,
    /// Who waits for room.
    senders: Waiters,
    /// Who waits for their message to be taken, in the messages' order.
    sent_by: Waiters,
    receivers: Waiters,
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
        }
    }
}

/// A channel as Lisp holds it.
#[derive(Debug)]
struct ChannelObject(Mutex<State>);

impl ForeignObject for ChannelObject {
    fn held_bytes(&self) -> usize {
        size_of::<Self>() + size_of::<Value>() * lock(&self.0).messages.capacity()
    }

    fn trace(&self, marker: &mut Marker) {
        for &message in &lock(&self.0).messages {
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
    if !waiters.into_iter().all(Waiters::is_empty) {
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
        if state.taken > number {
            return Ok(Control::Value(Value::UNSPECIFIED));
        }
        if state.closed {
            return Err(closed());
        }
        return Ok(await_receiver(machine, me, frame.get(0), &mut state, number));
    }
    if state.closed {
        return Err(closed());
    }
    if state.messages.len() < state.capacity.max(1) {
        if state.messages.len() == state.messages.capacity() {
            // It doubles.
            machine.mutator.charge(size_of::<Value>() * state.messages.len())?;
        }
        state.messages.push_back(frame.get(1));
        let number = state.sent;
        state.sent += 1;
        state.receivers.wake_one();
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
    machine.wait = None;
    let mut state = lock(&channel.0);
    if let Some(message) = state.messages.pop_front() {
        barrier::overwrite(|| message);
        state.taken += 1;
        // The receiver may have been woken for an earlier message and overtaken.
        state.receivers.remove(me);
        state.sent_by.wake_one();
        state.senders.wake_one();
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
        if state.sent_by.remove(thread) || state.receivers.remove(thread) {
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
    Ok(Control::Value(Value::UNSPECIFIED))
}

fn closed() -> Raise {
    Raise::error("the channel is closed", Vec::new())
}
