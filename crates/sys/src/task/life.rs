//! Kernel threads that are never mistaken for a later one. The host reuses the numbers of threads
//! that have ended, so a number alone does not tell whether its thread still runs.

use core::cell::Cell;

use super::{State, open_task_file, parse_state, read_from_start};
use crate::thread_id::ThreadId;

/// One kernel thread of this process: its number in the lower half of a word, the time of its start
/// in the upper half.
///
/// Two threads with one number can be mistaken only if all numbers were used in between, within one
/// tick of the host's clock (10 ms), or if they started 497 days apart to the tick. Without `/proc`
/// the number alone counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ThreadLife(u64);

thread_local! {
    /// The calling thread; 0 if it was not asked for yet.
    static LIFE: Cell<u64> = const { Cell::new(0) };
}

impl ThreadLife {
    /// The thread with this number that started so many ticks after the host, modulo 2^32.
    #[must_use]
    pub const fn new(thread: ThreadId, start_ticks: u32) -> Self {
        Self((start_ticks as u64) << 32 | thread.number() as u64)
    }

    /// The calling thread. A file is read once for each thread; then it takes 1 ns. After `fork`, a
    /// child gets its parent's.
    #[inline]
    #[must_use]
    pub fn remembered() -> Self {
        Self::if_remembered().unwrap_or_else(Self::remember)
    }

    /// The calling thread, if it has called [`remembered`](Self::remembered) before. For fast paths,
    /// which stay small without the other case.
    #[inline]
    #[must_use]
    pub fn if_remembered() -> Option<Self> {
        Some(Self(LIFE.get())).filter(|life| life.0 != 0)
    }

    #[cold]
    fn remember() -> Self {
        let life = Self::current();
        LIFE.set(life.0);
        life
    }

    /// The calling thread. Reads a file.
    #[must_use]
    pub fn current() -> Self {
        let thread = ThreadId::current();
        Self::new(thread, state_and_start(thread).map_or(0, |(_, start_ticks)| start_ticks))
    }

    /// Whether the thread has ended. Costs a system call if no thread has its number, else the
    /// reading of a file, some microseconds.
    #[must_use]
    pub fn has_ended(self) -> bool {
        if !self.thread().exists() {
            return true;
        }
        // A main thread that has ended before the others still exists, as a zombie.
        match state_and_start(self.thread()) {
            Some((state, start_ticks)) => {
                state == State::Dead || self.start_ticks() != 0 && start_ticks != self.start_ticks()
            }
            None => !self.thread().exists(),
        }
    }

    /// Its number.
    #[must_use]
    pub const fn thread(self) -> ThreadId {
        ThreadId::new(self.0 as u32)
    }

    /// Time from the start of the host to that of the thread, modulo 2^32; 0 if unknown.
    #[must_use]
    pub const fn start_ticks(self) -> u32 {
        (self.0 >> 32) as u32
    }

    /// The whole as a word, which is not 0.
    #[must_use]
    pub const fn word(self) -> u64 {
        self.0
    }

    /// The thread with this [`word`](Self::word).
    #[must_use]
    pub const fn from_word(word: u64) -> Self {
        Self(word)
    }
}

/// From `/proc/self/task/TID/stat`.
fn state_and_start(thread: ThreadId) -> Option<(State, u32)> {
    let mut buffer = [0; 512];
    let file = open_task_file(thread, "stat").ok()?;
    let text = read_from_start(&file, &mut buffer).ok()?;
    Some((parse_state(text), parse_start_ticks(text)?))
}

/// The 22nd word of `TID (name) S ...`, where the name may itself have parentheses and spaces;
/// modulo 2^32.
fn parse_start_ticks(text: &[u8]) -> Option<u32> {
    let after_name = text.iter().rposition(|&byte| byte == b')')? + 2;
    let word = text.get(after_name..)?.split(|&byte| byte == b' ').nth(22 - 3)?;
    word.iter().try_fold(0_u32, |number, &digit| {
        let value = (digit as char).to_digit(10)?;
        Some(number.wrapping_mul(10).wrapping_add(value))
    })
}

#[cfg(test)]
mod tests {
    use super::{ThreadLife, parse_start_ticks, state_and_start};
    use crate::prim::thread::{spawn, yield_now};
    use crate::task::State;

    #[test]
    fn start_is_the_twenty_second_word() {
        let text = b"12 (a) b) S 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 4711 23";
        assert_eq!(parse_start_ticks(text), Some(4711));
        assert_eq!(parse_start_ticks(b"12 (a) S 4 5"), None);
        assert_eq!(parse_start_ticks(b"12"), None);
    }

    #[test]
    fn a_living_thread_has_not_ended_and_an_earlier_one_with_its_number_has() {
        let life = ThreadLife::remembered();
        assert_eq!(life, ThreadLife::current());
        assert_eq!(ThreadLife::from_word(life.word()), life);
        assert!(!life.has_ended());
        let (state, start_ticks) = state_and_start(life.thread()).unwrap();
        assert_eq!((state, start_ticks), (State::Running, life.start_ticks()));
        assert!(ThreadLife::new(life.thread(), start_ticks - 1).has_ended());
        assert!(!ThreadLife::new(life.thread(), 0).has_ended(), "its start is unknown");
    }

    #[test]
    fn a_thread_that_was_joined_has_ended() {
        let life = spawn(ThreadLife::remembered).join().unwrap();
        // The kernel removes a thread some microseconds after it was joined.
        while !life.has_ended() {
            yield_now();
        }
    }
}
