//! Event queues (`kqueue`) on the host's `epoll`.
//!
//! ```text
//!   kqueue ─► epoll descriptor ─ registered:
//!               descriptors, with their numbers
//!               the queue's bell, an eventfd, for the program's own events (EVFILT_USER)
//!               for each timer (EVFILT_TIMER), a descriptor that is readable when it is due
//!   QUEUES[k]   descriptor, bell, notes ─► a note for each descriptor: what the program
//!               attached to its reading and its writing
//! ```
//!
//! All state is words that are read and written as a whole, because signal handlers and other
//! threads may intervene. If two threads change the same filter of the same descriptor at once,
//! each word gets one of the two values.

mod notes;
mod timers;

use crate::errno::Errno;
use crate::host::{Answer, address, address_of, number, pass};
use crate::user::{self, plain};
use notes::{Filter, Knote, Queue, State};
use timers::TIMERS;

/// FreeBSD's `struct kevent`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[repr(C)]
pub(crate) struct Event {
    pub(crate) ident: u64,
    /// The filter in the low half, flags above.
    pub(crate) filter_flags: u32,
    pub(crate) filter_words: u32,
    pub(crate) data: u64,
    pub(crate) user: u64,
    pub(crate) more: [u64; 4],
}

plain!(Event);

const READ: i16 = -1;
const WRITE: i16 = -2;
const TIMER: i16 = -7;
const USER: i16 = -11;

const ADD: u16 = 0x1;
const DELETE: u16 = 0x2;
const ENABLE: u16 = 0x4;
const DISABLE: u16 = 0x8;
const ONCE: u16 = 0x10;
const CLEAR: u16 = 0x20;
const RECEIPT: u16 = 0x40;
const DISPATCH: u16 = 0x80;
const ERROR: u16 = 0x4000;
const END: u16 = 0x8000;
const TRIGGER: u32 = 0x100_0000;

impl Event {
    fn filter(&self) -> i16 {
        self.filter_flags as i16
    }

    fn flags(&self) -> u16 {
        (self.filter_flags >> 16) as u16
    }

    fn new(ident: u64, filter: i16, flags: u16, data: u64, user: u64) -> Self {
        let filter_flags = u32::from(filter as u16) | u32::from(flags) << 16;
        Self { ident, filter_flags, filter_words: 0, data, user, more: [0; 4] }
    }
}

/// The host's event: its bits, and the word that was registered. Packed, twelve bytes.
type HostEvent = [u32; 3];

/// The host's event bits.
mod host {
    pub(super) const READABLE: u32 = 0x1;
    pub(super) const WRITABLE: u32 = 0x4;
    pub(super) const FAILED: u32 = 0x8;
    pub(super) const HUNG_UP: u32 = 0x10;
    pub(super) const PEER_CLOSED: u32 = 0x2000;
    pub(super) const ON_CHANGE: u32 = 1 << 31;
    pub(super) const ADD: u64 = 1;
    pub(super) const REMOVE: u64 = 2;
    pub(super) const CHANGE: u64 = 3;
}

/// The word of a queue's own bell.
const BELL: u32 = u32::MAX;
/// Most events that are requested from the host at a time.
const EVENTS_MAX: usize = 32;

/// `kqueue`.
pub(crate) fn create() -> Answer {
    const CLOSE_ON_EXECUTION: u64 = 0o2_000_000;
    const NO_WAITING: u64 = 0o4000;
    let file = pass(number::EPOLL_CREATE1, &[CLOSE_ON_EXECUTION])?;
    let made = pass(number::EVENTFD2, &[0, CLOSE_ON_EXECUTION | NO_WAITING]).and_then(|bell| {
        let event: HostEvent = [host::READABLE, BELL, 0];
        pass(number::EPOLL_CTL, &[file, host::ADD, bell, address_of(&event)])
            .and_then(|_| Queue::take(file as i32, bell as i32))
            .inspect_err(|_| {
                // No other thread knows the descriptor.
                let _ = pass(number::CLOSE, &[bell]);
            })
    });
    match made {
        Ok(()) => Ok(file),
        Err(errno) => {
            pass(number::CLOSE, &[file])?;
            Err(errno)
        }
    }
}

/// `close`, of a queue or any other descriptor.
pub(crate) fn close(file: u64) -> Answer {
    if let Some(queue) = Queue::find(file as i32) {
        queue.give_back();
    }
    pass(number::CLOSE, &[file])
}

/// The place for events that are reported, and how many were.
struct EventBuffer {
    layout: Layout,
    place: u64,
    room: u64,
    count: u64,
}

impl EventBuffer {
    fn has_room(&self) -> bool {
        self.count < self.room
    }

    /// Reports `event`. Returns whether there was room.
    fn put(&mut self, event: &Event) -> Result<bool, Errno> {
        let has_room = self.has_room();
        if has_room {
            self.layout.write(self.place, self.count, event)?;
            self.count += 1;
        }
        Ok(has_room)
    }
}

/// The layout of events in the program's memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Layout {
    /// Without the last words, as before FreeBSD 12.
    Old,
    New,
}

/// The words of the old layout.
type OldEvent = [u64; 4];

impl Layout {
    /// The address of event `index` of the list at `place`.
    fn address(self, place: u64, index: u64) -> u64 {
        let bytes = match self {
            Self::Old => size_of::<OldEvent>(),
            Self::New => size_of::<Event>(),
        };
        place.wrapping_add(index * bytes as u64)
    }

    fn read(self, place: u64, index: u64) -> Result<Event, Errno> {
        let at = self.address(place, index);
        match self {
            Self::New => user::read(at),
            Self::Old => user::read(at).map(|[ident, words, data, user]: OldEvent| Event {
                ident,
                filter_flags: words as u32,
                filter_words: (words >> 32) as u32,
                data,
                user,
                more: [0; 4],
            }),
        }
    }

    fn write(self, place: u64, index: u64, event: &Event) -> Result<(), Errno> {
        let at = self.address(place, index);
        match self {
            Self::New => user::write(at, event),
            Self::Old => {
                let words = u64::from(event.filter_flags) | u64::from(event.filter_words) << 32;
                user::write(at, &[event.ident, words, event.data, event.user])
            }
        }
    }
}

/// A count that the host reads as an `int`. Negative counts are 0.
fn count(word: u64) -> u64 {
    u64::try_from(word as i32).unwrap_or(0)
}

/// `kevent`: makes the changes, then waits for events.
pub(crate) fn wait(layout: Layout, words: &[u64; 6]) -> Answer {
    let [file, changes, changes_count, events, room, limit] = *words;
    let queue = Queue::find(file as i32).ok_or(Errno::BADF)?;
    let mut buffer = EventBuffer { layout, place: events, room: count(room), count: 0 };
    for index in 0..count(changes_count) {
        let change = layout.read(changes, index)?;
        let made = queue.apply(file, &change);
        if made.is_ok() && change.flags() & RECEIPT == 0 {
            continue;
        }
        let error = made.err().map_or(0, Errno::freebsd);
        let report = Event::new(change.ident, change.filter(), ERROR, error, change.user);
        if !buffer.put(&report)? {
            made?;
        }
    }
    if buffer.count == 0 && buffer.room > 0 {
        queue.gather(file, limit, &mut buffer)?;
    }
    Ok(buffer.count)
}

impl Queue {
    /// Makes one change.
    fn apply(&self, file: u64, change: &Event) -> Result<(), Errno> {
        match change.filter() {
            READ | WRITE => self.apply_to_descriptor(file, change),
            TIMER => self.apply_to_timer(file, change),
            USER => self.apply_to_user(change),
            _ => Err(Errno::INVAL),
        }
    }

    fn apply_to_descriptor(&self, file: u64, change: &Event) -> Result<(), Errno> {
        let descriptor = i32::try_from(change.ident).map_err(|_| Errno::BADF)?;
        let note = self.note(descriptor)?;
        let filter = note.filter(change.filter() == READ);
        if change.flags() & ADD != 0 {
            let fresh = State::from_flags(change.flags());
            // If the descriptor is new to the host, the note about its number is obsolete.
            let event: HostEvent = [fresh.wanted(change.filter() == READ), descriptor as u32, 0];
            let words = [file, host::ADD, descriptor as u64, address_of(&event)];
            match pass(number::EPOLL_CTL, &words) {
                Ok(_) => note.forget(),
                Err(Errno::EXIST) => {}
                Err(errno) => return Err(errno),
            }
            filter.set(fresh, change.user);
        } else {
            filter.change(change.flags())?;
        }
        self.register(file, descriptor, note)
    }

    /// Registers with the host what the program wants of a descriptor now.
    fn register(&self, file: u64, descriptor: i32, note: &Knote) -> Result<(), Errno> {
        let wanted = note.wanted();
        let event: HostEvent = [wanted, descriptor as u32, 0];
        let operation = if note.is_forgotten() { host::REMOVE } else { host::CHANGE };
        pass(number::EPOLL_CTL, &[file, operation, descriptor as u64, address_of(&event)]).map(drop)
    }

    fn apply_to_user(&self, change: &Event) -> Result<(), Errno> {
        let note = self.user_note(change.ident, change.flags() & ADD != 0)?;
        if change.flags() & ADD != 0 {
            note.filter.set(State::from_flags(change.flags()), change.user);
        } else if change.flags() & (DELETE | ENABLE | DISABLE) != 0 {
            note.filter.change(change.flags())?;
        }
        if change.filter_words & TRIGGER != 0 {
            note.trigger();
            self.ring()?;
        }
        Ok(())
    }

    /// Waits for events and reports them.
    fn gather(&self, file: u64, limit: u64, buffer: &mut EventBuffer) -> Result<(), Errno> {
        // A descriptor may be ready for reading and writing, which are two events.
        let most = (buffer.room as usize / 2).clamp(1, EVENTS_MAX);
        loop {
            let mut ready = [[0_u32; 3]; EVENTS_MAX];
            let words = [file, address(&mut ready), most as u64, limit];
            let count = pass(number::EPOLL_PWAIT2, &words)? as usize;
            for event in &ready[..count.min(most)] {
                self.report(file, event, buffer)?;
            }
            // Events that another thread took, or that are no longer wanted, do not count. A call
            // with a time limit is not kept beyond it.
            if buffer.count > 0 || limit != 0 {
                return Ok(());
            }
        }
    }

    fn report(
        &self,
        file: u64,
        &[bits, word, _]: &HostEvent,
        buffer: &mut EventBuffer,
    ) -> Result<(), Errno> {
        match word {
            BELL => self.report_user_events(buffer),
            place if place & TIMERS != 0 => {
                self.report_timer(file, (place & !TIMERS) as usize, buffer)
            }
            descriptor => self.report_descriptor(file, descriptor as i32, bits, buffer),
        }
    }

    fn report_descriptor(
        &self,
        file: u64,
        descriptor: i32,
        bits: u32,
        buffer: &mut EventBuffer,
    ) -> Result<(), Errno> {
        let note = self.note(descriptor)?;
        let sides = [
            (READ, host::READABLE | host::PEER_CLOSED | host::HUNG_UP | host::FAILED),
            (WRITE, host::WRITABLE | host::HUNG_UP | host::FAILED),
        ];
        let mut again = false;
        for (side, meant) in sides {
            let filter = note.filter(side == READ);
            if bits & meant == 0 || !filter.state().is_active() {
                continue;
            }
            let ends = if side == READ {
                host::PEER_CLOSED | host::HUNG_UP
            } else {
                host::FAILED | host::HUNG_UP
            };
            let end = if bits & ends != 0 { END } else { 0 };
            let flags = filter.state().registered_flags() | end;
            let data = if side == READ { waiting_bytes(descriptor) } else { 1 };
            let event = Event::new(descriptor as u64, side, flags, data, filter.user());
            // If there is no room, the host must report it again.
            again |= !buffer.put(&event)? || filter.after_reporting();
        }
        if again { self.register(file, descriptor, note) } else { Ok(()) }
    }

    fn report_user_events(&self, buffer: &mut EventBuffer) -> Result<(), Errno> {
        self.silence();
        let mut left = false;
        for note in self.user_notes() {
            let state = note.filter.state();
            if !state.is_active() || !note.was_triggered(state.is_cleared()) {
                continue;
            }
            let event =
                Event::new(note.ident(), USER, state.registered_flags(), 0, note.filter.user());
            if buffer.put(&event)? {
                note.filter.after_reporting();
                left |= !state.is_cleared();
            } else {
                note.trigger();
                left = true;
            }
        }
        if left { self.ring() } else { Ok(()) }
    }
}

/// How much can be read; 1 if that is unknown, as for a socket with a waiting connection.
fn waiting_bytes(descriptor: i32) -> u64 {
    const READABLE_BYTES: u64 = 0x541b;
    let mut bytes = 0_i32;
    let asked = pass(number::IOCTL, &[descriptor as u64, READABLE_BYTES, address(&mut bytes)]);
    asked.map_or(1, |_| bytes as u64)
}

impl Filter {
    /// `EV_DELETE`, `EV_ENABLE`, `EV_DISABLE` of a filter that exists.
    fn change(&self, flags: u16) -> Result<(), Errno> {
        let state = self.state();
        if !state.is_there() {
            return Err(Errno::NOENT);
        }
        if flags & DELETE != 0 {
            self.forget();
        } else if flags & DISABLE != 0 {
            self.set_state(state.with_active(false));
        } else if flags & ENABLE != 0 {
            self.set_state(state.with_active(true));
        }
        Ok(())
    }

    /// Updates a filter whose event was reported. Returns whether the host's registration must change.
    fn after_reporting(&self) -> bool {
        let state = self.state();
        if state.is_once() {
            self.forget();
        } else if state.is_dispatched() {
            self.set_state(state.with_active(false));
        }
        state.is_once() || state.is_dispatched()
    }
}

/// A new process has none of its parent's queues.
pub(crate) fn after_fork() {
    Queue::forget_all();
}

/// Of the program's flags, the library keeps `ONCE`, `CLEAR` and `DISPATCH`.
impl State {
    fn from_flags(flags: u16) -> Self {
        let kept = flags & (ONCE | CLEAR | DISPATCH);
        Self::new(kept, flags & DISABLE == 0)
    }

    fn is_cleared(self) -> bool {
        self.flags() & (CLEAR | DISPATCH | ONCE) != 0
    }

    fn is_once(self) -> bool {
        self.flags() & ONCE != 0
    }

    fn is_dispatched(self) -> bool {
        self.flags() & DISPATCH != 0
    }

    /// The flags in an event that come from its registration.
    fn registered_flags(self) -> u16 {
        self.flags() & (ONCE | CLEAR | DISPATCH)
    }

    /// The events that the host must watch for.
    fn wanted(self, reading: bool) -> u32 {
        let on_change = if self.flags() & CLEAR != 0 { host::ON_CHANGE } else { 0 };
        match (self.is_active(), reading) {
            (false, _) => 0,
            (true, true) => host::READABLE | host::PEER_CLOSED | on_change,
            (true, false) => host::WRITABLE | on_change,
        }
    }
}

impl Knote {
    /// The events that the host must watch for, for reading and writing. If either wants repeated
    /// reports, both get them.
    fn wanted(&self) -> u32 {
        let [read, write] = [true, false].map(|side| (self.filter(side).state(), side));
        let both = read.0.wanted(true) | write.0.wanted(false);
        let steady = |(state, side): (State, bool)| {
            let wanted = state.wanted(side);
            wanted != 0 && wanted & host::ON_CHANGE == 0
        };
        if steady(read) || steady(write) { both & !host::ON_CHANGE } else { both }
    }
}

#[cfg(test)]
mod tests;
