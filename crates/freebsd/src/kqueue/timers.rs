//! Timer events (`EVFILT_TIMER`). Each has a descriptor of the host's that becomes readable
//! (`timerfd`), which the queue's `epoll` watches.

use super::notes::{Filter, NONE, Queue, State};
use super::{ADD, CLEAR, Event, EventBuffer, HostEvent, ONCE, TIMER, host};
use crate::errno::Errno;
use crate::host::{address, address_of, number, pass};
use core::sync::atomic::{AtomicI32, AtomicU64, Ordering::Relaxed};

/// Most timer events that a program may have in a queue.
pub(super) const TIMERS_MAX: usize = 32;
/// The bit that distinguishes the words of timers, which are their places, from those of
/// descriptors.
pub(super) const TIMERS: u32 = 1 << 31;

/// The bits that say in which unit an event's time is, and whether it is absolute.
const UNITS: u32 = 0xf;
const ABSOLUTE: u32 = 0x10;
const SECOND_NS: u64 = 1_000_000_000;

/// One timer.
#[derive(Debug)]
pub(super) struct Timer {
    ident: AtomicU64,
    filter: Filter,
    file: AtomicI32,
}

/// When it is due: the host's `struct itimerspec`, its flags, and the clock.
#[derive(Debug, PartialEq, Eq)]
struct Setting {
    words: [u64; 4],
    flags: u64,
    clock: u64,
}

impl Setting {
    /// # Errors
    /// `INVAL`: the time is negative, or its unit is unknown.
    fn of(event: &Event) -> Result<Self, Errno> {
        const REAL_TIME: u64 = 0;
        const MONOTONIC: u64 = 1;
        let in_second: u64 = match event.filter_words & UNITS {
            0 | 0x2 => 1000,
            0x1 => 1,
            0x4 => 1_000_000,
            0x8 => SECOND_NS,
            _ => return Err(Errno::INVAL),
        };
        if event.filter_words & !(UNITS | ABSOLUTE) != 0 || i64::try_from(event.data).is_err() {
            return Err(Errno::INVAL);
        }
        let time = [event.data / in_second, event.data % in_second * (SECOND_NS / in_second)];
        // A time of zero would disarm the timer.
        let [seconds, nanoseconds] = if time == [0, 0] { [0, 1] } else { time };
        if event.filter_words & ABSOLUTE != 0 {
            return Ok(Self { words: [0, 0, seconds, nanoseconds], flags: 1, clock: REAL_TIME });
        }
        // A timer that is wanted once is reported once, however late the program asks.
        let again = if event.flags() & ONCE != 0 { [0, 0] } else { [seconds, nanoseconds] };
        let words = [again[0], again[1], seconds, nanoseconds];
        Ok(Self { words, flags: 0, clock: MONOTONIC })
    }

    /// Makes the descriptor of a timer with this setting.
    fn start(&self) -> Result<u64, Errno> {
        const CLOSE_ON_EXECUTION_NO_WAITING: u64 = 0o2_004_000;
        let file = pass(number::TIMERFD_CREATE, &[self.clock, CLOSE_ON_EXECUTION_NO_WAITING])?;
        let set = [file, self.flags, address_of(&self.words), 0];
        match pass(number::TIMERFD_SETTIME, &set) {
            Ok(_) => Ok(file),
            Err(errno) => {
                pass(number::CLOSE, &[file])?;
                Err(errno)
            }
        }
    }
}

impl Timer {
    pub(super) const fn none() -> Self {
        let (ident, file) = (AtomicU64::new(0), AtomicI32::new(NONE));
        Self { ident, filter: Filter::none(), file }
    }

    pub(super) fn forget(&self) {
        // Closing the descriptor removes it from the host's list. No other thread knows it.
        let file = self.file.swap(NONE, Relaxed);
        if file != NONE {
            let _ = pass(number::CLOSE, &[file as u64]);
        }
        self.filter.forget();
    }

    fn file(&self) -> u64 {
        self.file.load(Relaxed) as u64
    }

    /// How often it was due since the last call.
    fn due_count(&self) -> u64 {
        let mut count = 0_u64;
        pass(number::READ, &[self.file(), address(&mut count), 8]).map_or(0, |_| count)
    }
}

impl Queue {
    pub(super) fn apply_to_timer(&self, queue: u64, change: &Event) -> Result<(), Errno> {
        if change.flags() & ADD != 0 {
            return self.add_timer(queue, change);
        }
        let place = self.timer(change.ident).ok_or(Errno::NOENT)?;
        let timer = &self.timers()[place];
        timer.filter.change(change.flags())?;
        self.register_timer(queue, place, host::CHANGE)
    }

    fn add_timer(&self, queue: u64, change: &Event) -> Result<(), Errno> {
        let file = Setting::of(change)?.start()?;
        let place = self.timer(change.ident).or_else(|| self.free_timer());
        let Some(place) = place else {
            pass(number::CLOSE, &[file])?;
            return Err(Errno::NOMEM);
        };
        let timer = &self.timers()[place];
        timer.forget();
        timer.ident.store(change.ident, Relaxed);
        timer.file.store(file as i32, Relaxed);
        timer.filter.set(State::from_flags(change.flags() | CLEAR), change.user);
        self.register_timer(queue, place, host::ADD).inspect_err(|_| timer.forget())
    }

    fn timer(&self, ident: u64) -> Option<usize> {
        self.timers()
            .iter()
            .position(|timer| timer.filter.state().is_there() && timer.ident.load(Relaxed) == ident)
    }

    fn free_timer(&self) -> Option<usize> {
        self.timers().iter().position(|timer| !timer.filter.state().is_there())
    }

    /// Adds a timer to the host's list, or removes it.
    fn register_timer(&self, queue: u64, place: usize, operation: u64) -> Result<(), Errno> {
        let timer = &self.timers()[place];
        if !timer.filter.state().is_there() {
            timer.forget();
            return Ok(());
        }
        let wanted = if timer.filter.state().is_active() { host::READABLE } else { 0 };
        let event: HostEvent = [wanted, TIMERS | place as u32, 0];
        pass(number::EPOLL_CTL, &[queue, operation, timer.file(), address_of(&event)]).map(drop)
    }

    pub(super) fn report_timer(
        &self,
        queue: u64,
        place: usize,
        buffer: &mut EventBuffer,
    ) -> Result<(), Errno> {
        let timer = self.timers().get(place).ok_or(Errno::INVAL)?;
        let state = timer.filter.state();
        // If there is no room, the host reports it again.
        if !state.is_active() || !buffer.has_room() {
            return Ok(());
        }
        let count = timer.due_count();
        if count == 0 {
            return Ok(());
        }
        let (ident, user) = (timer.ident.load(Relaxed), timer.filter.user());
        buffer.put(&Event::new(ident, TIMER, state.registered_flags(), count, user))?;
        if timer.filter.after_reporting() {
            return self.register_timer(queue, place, host::CHANGE);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::{Event, ONCE, Setting, TIMER};

    fn setting(units: u32, data: u64) -> Option<[u64; 4]> {
        let event = Event { filter_words: units, ..Event::new(1, TIMER, 0, data, 0) };
        Setting::of(&event).ok().map(|setting| setting.words)
    }

    #[test]
    fn times_are_counted_in_the_units_that_were_asked_for() {
        assert_eq!(setting(0, 1500), Some([1, 500_000_000, 1, 500_000_000]));
        assert_eq!(setting(1, 7), Some([7, 0, 7, 0]));
        assert_eq!(setting(4, 2_000_001), Some([2, 1000, 2, 1000]));
        assert_eq!(setting(8, 5), Some([0, 5, 0, 5]));
        assert_eq!(setting(0, 0), Some([0, 1, 0, 1]));
        assert_eq!(setting(0x11, 7), Some([0, 0, 7, 0]));
        assert_eq!(setting(3, 7), None);
        assert_eq!(setting(0x20, 7), None);
        assert_eq!(setting(0, u64::MAX), None);
    }

    #[test]
    fn a_timer_that_is_wanted_once_is_due_once() {
        let words = |flags| Setting::of(&Event::new(1, TIMER, flags, 1, 0)).unwrap().words;
        assert_eq!(words(ONCE), [0, 0, 0, 1_000_000]);
        assert_eq!(words(0), [0, 1_000_000, 0, 1_000_000]);
    }
}
