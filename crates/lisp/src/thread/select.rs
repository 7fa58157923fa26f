//! Waiting for the first of several channels: `select`, and `channel-select` for a list of cases.
//!
//! ```text
//! lock the channels, check each case, beginning at another one each time -> one was ready: done
//! wait in each channel: among its receivers, among those waiting for room, or with an offer
//!                          <- a wake: check again
//!                          <- a claim: another thread accepted the offer, or passed a message
//! lock the channels, leave them all -> the case that happened; or the timeout
//! ```
//!
//! Exactly one case happens. All channels are locked, in the order of their addresses, while the
//! thread checks, begins to wait and leaves. So changes by other threads happen before or after
//! that. A wake that the thread got and does not need is passed on.

use crate::kernel::lock;
use crate::kernel::session::thread::LispThread;
use crate::kernel::ticket::Outcome;
use crate::kernel::timeout::until;
use crate::kernel::wait::OnThread;
use crate::thread::channel::{CASE_BYTES, ChannelObject, State, closed};
use core::ptr;
use kyocho_heap::heap::{ForeignObject, Marker};
use kyocho_heap::raise::{Raise, Result};
use kyocho_heap::value::Value;
use kyocho_syntax::symbol::Symbol;
use kyocho_vm::machine::Machine;
use kyocho_vm::machine::access::Frame;
use kyocho_vm::machine::control::{Control, Procedure};
use kyocho_vm::machine::wait::Wait;
use std::sync::{Arc, MutexGuard};

/// Maximum number of cases of one select.
const CASES_MAX: usize = 1024;
/// The distance between the starts of two searches: 2^64 divided by the golden ratio. Its multiples
/// are spread evenly modulo 2^64, and so are every second or every third of them.
const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

const WHO: &str = "channel-select";

pub(super) const TABLE: &[Procedure] = &[Procedure::new("%channel-select", 3, Some(3), select)];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operation {
    /// A receive; the value is returned if the channel is closed and empty.
    Receive(Option<Value>),
    Send(Value),
}

#[derive(Clone, Copy, Debug)]
struct Case {
    /// The index of the channel among all.
    place: usize,
    operation: Operation,
}

/// A channel, and how a thread waits in it.
#[derive(Clone, Copy, Debug)]
struct ChannelEntry {
    channel: Value,
    receives: bool,
    sends: bool,
}

/// The cases of a select and their channels.
#[derive(Debug)]
struct Selection {
    cases: Vec<Case>,
    /// By address, each channel once.
    places: Vec<ChannelEntry>,
}

impl ForeignObject for Selection {
    /// Includes the bytes that its cases take in their channels.
    fn held_bytes(&self) -> usize {
        let case_bytes = size_of::<Case>() + size_of::<ChannelEntry>() + CASE_BYTES;
        size_of::<Self>() + case_bytes * self.cases.len()
    }

    fn trace(&self, marker: &mut Marker) {
        self.places.iter().for_each(|place| marker.mark(place.channel));
        for case in &self.cases {
            match case.operation {
                Operation::Receive(when_closed) => when_closed.iter().for_each(|&v| marker.mark(v)),
                Operation::Send(message) => marker.mark(message),
            }
        }
    }
}

/// The case that happened: its index, and the message.
type Happened = (usize, Value);

/// `(%channel-select cases timeout receiver)`: calls `receiver` with the index of the case that
/// happened and its message. After a timeout the index is `#f`.
fn select(machine: &mut Machine, frame: Frame, _: usize) -> Result<Control> {
    let me = machine.thread()?;
    if let Some(wait) = machine.wait.take() {
        return go_on(machine, me, frame, wait);
    }
    let selection = Selection::of(frame.get(0))?;
    let timeout = Some(frame.get(1));
    let wait = until(WHO, 2, Value::FALSE, timeout)?;
    if selection.cases.is_empty() && wait.deadline.is_none() {
        let message = format!("{WHO}: without cases and a timeout it would wait for ever");
        return Err(Raise::error(message, Vec::new()));
    }
    if let Some(happened) = selection.lock().look(machine, me)? {
        return Ok(call(frame, Some(happened)));
    }
    if wait.is_over() {
        return Ok(call(frame, None));
    }
    // This may run out of memory, so it comes before any effect.
    let object = machine.mutator.foreign(Box::new(selection))?;
    go_on(machine, me, frame, Wait { object, ..wait })
}

/// Checks the cases, and waits if none is ready.
fn go_on(machine: &mut Machine, me: &Arc<LispThread>, frame: Frame, wait: Wait) -> Result<Control> {
    let Some(selection) = wait.object.as_foreign::<Selection>() else {
        return Err(Raise::error(format!("{WHO}: another wait"), Vec::new()));
    };
    let mut locked = selection.lock();
    let happened = match locked.settled(me) {
        Some(happened) => Ok(Some(happened)),
        None => locked.look(machine, me),
    };
    match happened {
        Err(raise) if machine.may_try_again(&raise) => {
            machine.wait = Some(wait);
            Err(raise)
        }
        Ok(None) if !wait.is_over() => {
            locked.enlist(me);
            Ok(machine.wait_for(me, "one of several channels", wait))
        }
        happened => {
            locked.leave(me, happened.as_ref().ok().and_then(|it| it.map(|(case, _)| case)));
            Ok(call(frame, happened?))
        }
    }
}

/// Calls the receiver with the case that happened.
fn call(frame: Frame, happened: Option<Happened>) -> Control {
    let receiver = frame.get(2);
    let (case, message) = match happened {
        Some((case, message)) => (Value::fixnum(case as i64), message),
        None => (Value::FALSE, Value::FALSE),
    };
    frame.set_value(-1, receiver);
    frame.set_value(0, case);
    frame.set_value(1, message);
    Control::Call(frame, 2)
}

/// Ends a thread's wait here, if there is one. A message that was passed to it goes to the next
/// receiver.
pub(super) fn withdraw(object: Value, thread: &Arc<LispThread>) {
    if let Some(selection) = object.as_foreign::<Selection>() {
        let mut locked = selection.lock();
        for state in &mut locked.states {
            state.give_back(thread);
        }
        locked.leave(thread, None);
    }
}

/// The indices of the cases, beginning at `start`, a fraction of 2^64.
fn order(start: u64, count: usize) -> impl Iterator<Item = usize> {
    let start = ((u128::from(start) * count as u128) >> u64::BITS) as usize;
    (start..count).chain(0..start)
}

impl Selection {
    /// Parses a list of cases: `(receive channel [when-closed])` and `(send channel message)`.
    fn of(list: Value) -> Result<Self> {
        let (mut read, mut rest) = (Vec::new(), list);
        while let Some((case, next)) = rest.uncons() {
            if read.len() == CASES_MAX {
                let message = format!("{WHO}: more than {CASES_MAX} cases");
                return Err(Raise::error(message, Vec::new()));
            }
            read.push(case_of(read.len(), case)?);
            rest = next;
        }
        if !rest.is_nil() {
            return Err(Raise::wrong_type(WHO, 1, "list of cases", list));
        }
        let mut selection = Self { cases: Vec::with_capacity(read.len()), places: Vec::new() };
        let mut channels: Vec<Value> = read.iter().map(|&(channel, _)| channel).collect();
        channels.sort_unstable_by_key(|&channel| address(channel));
        channels.dedup();
        let unused = |channel| ChannelEntry { channel, receives: false, sends: false };
        selection.places = channels.into_iter().map(unused).collect();
        for (channel, operation) in read {
            selection.add(channel, operation);
        }
        Ok(selection)
    }

    fn add(&mut self, channel: Value, operation: Operation) {
        let by_address = |place: &ChannelEntry| address(place.channel).cmp(&address(channel));
        let place = self.places.binary_search_by(by_address).expect("every channel is among them");
        match operation {
            Operation::Receive(_) => self.places[place].receives = true,
            Operation::Send(_) => self.places[place].sends = true,
        }
        self.cases.push(Case { place, operation });
    }

    fn lock(&self) -> Locked<'_> {
        let channels = self.places.iter().filter_map(|place| place.channel.as_foreign());
        let states = channels.map(|channel: &ChannelObject| lock(&channel.0)).collect();
        Locked { selection: self, states }
    }
}

/// The address of the channel's lock.
fn address(channel: Value) -> usize {
    channel.as_foreign::<ChannelObject>().map_or(0, |channel| ptr::from_ref(channel).addr())
}

/// Parses one case.
fn case_of(index: usize, case: Value) -> Result<(Value, Operation)> {
    let shape = || {
        let shapes = "(receive channel [when-closed]) or (send channel message)";
        Raise::error(format!("{WHO}: case {index} must be {shapes}"), vec![case])
    };
    let (word, rest) = case.uncons().ok_or_else(shape)?;
    let (channel, rest) = rest.uncons().ok_or_else(shape)?;
    let last = match rest.uncons() {
        Some((last, Value::NIL)) => Some(last),
        None if rest.is_nil() => None,
        _ => return Err(shape()),
    };
    let is = |name| word == Value::symbol(Symbol::intern(name));
    let operation = match last {
        _ if is("receive") => Operation::Receive(last),
        Some(message) if is("send") => Operation::Send(message),
        _ => return Err(shape()),
    };
    if channel.as_foreign::<ChannelObject>().is_none() {
        let message = format!("{WHO}: what case {index} names must be a channel");
        return Err(Raise::error(message, vec![channel]));
    }
    Ok((channel, operation))
}

/// All channels of a selection, locked.
struct Locked<'s> {
    selection: &'s Selection,
    /// In the order of `places`.
    states: Vec<MutexGuard<'s, State>>,
}

impl Locked<'_> {
    /// The case that other threads have completed while the thread waited.
    fn settled(&mut self, me: &Arc<LispThread>) -> Option<Happened> {
        match me.ticket.outcome()? {
            Outcome::Open => None,
            Outcome::Taken(case) => Some((case, Value::UNSPECIFIED)),
            Outcome::Given => {
                let mut states = self.states.iter_mut().enumerate();
                let given = states.find_map(|(i, state)| state.given_to(me).map(|it| (i, it)));
                let (place, message) =
                    given.expect("the message is in the channel where the ticket was claimed");
                let receives = |case: &Case| {
                    case.place == place && matches!(case.operation, Operation::Receive(_))
                };
                let case = self.selection.cases.iter().position(receives);
                Some((case.expect("the thread was among the receivers"), message))
            }
        }
    }

    /// Executes the first case that is ready.
    fn look(&mut self, machine: &mut Machine, me: &Arc<LispThread>) -> Result<Option<Happened>> {
        machine.select_start = machine.select_start.wrapping_add(STEP);
        for index in order(machine.select_start, self.selection.cases.len()) {
            if let Some(message) = self.attempt(index, machine, me)? {
                return Ok(Some((index, message)));
            }
        }
        Ok(None)
    }

    /// Executes one case if it is ready, and returns its message.
    fn attempt(
        &mut self,
        index: usize,
        machine: &Machine,
        me: &Arc<LispThread>,
    ) -> Result<Option<Value>> {
        let case = self.selection.cases[index];
        let state = &mut *self.states[case.place];
        match case.operation {
            Operation::Receive(when_closed) => match state.take(me) {
                None if state.closed => when_closed.map(Some).ok_or_else(closed),
                message => Ok(message),
            },
            Operation::Send(_) if state.closed => Err(closed()),
            Operation::Send(message) if state.capacity == 0 => {
                Ok(state.give(me, message).then_some(Value::UNSPECIFIED))
            }
            Operation::Send(message) if state.has_room() => {
                state.put(machine, message)?;
                Ok(Some(Value::UNSPECIFIED))
            }
            Operation::Send(_) => Ok(None),
        }
    }

    /// Begins to wait in each channel.
    fn enlist(&mut self, me: &Arc<LispThread>) {
        for (place, state) in self.selection.places.iter().zip(&mut self.states) {
            if place.receives {
                state.receivers.enlist(me);
            }
            if place.sends && state.capacity > 0 {
                state.senders.enlist(me);
            }
        }
        if me.ticket.outcome().is_some() {
            // Its offers are present already.
            return;
        }
        for (index, case) in self.selection.cases.iter().enumerate() {
            let state = &mut *self.states[case.place];
            if let Operation::Send(message) = case.operation
                && state.capacity == 0
            {
                state.offer(me, index, message);
            }
        }
        me.ticket.open();
    }

    /// Stops waiting in each channel. A wake for a case other than the one that happened is passed
    /// on.
    fn leave(&mut self, me: &Arc<LispThread>, happened: Option<usize>) {
        if me.ticket.outcome().is_none() {
            // The thread has not waited.
            return;
        }
        let happened = happened.map(|index| self.selection.cases[index]);
        for (index, place) in self.selection.places.iter().enumerate() {
            let state = &mut *self.states[index];
            let here = happened.filter(|case| case.place == index).map(|case| case.operation);
            let received = matches!(here, Some(Operation::Receive(_)));
            if place.receives && !state.receivers.delist(me) && !received {
                state.receivers.wake_one();
            }
            let sent = matches!(here, Some(Operation::Send(_)));
            if place.sends && state.capacity == 0 {
                state.retract(me);
            } else if place.sends && !state.senders.delist(me) && !sent {
                state.senders.wake_one();
            }
        }
        me.ticket.close();
    }
}
