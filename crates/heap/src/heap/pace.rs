//! How much threads may allocate during concurrent marking: in proportion to what is marked, as by
//! the pacer of Go (Hudson and Clements, 2015).
//!
//! ```text
//!  taken since the cycle began
//!    ▲                                    ╱ room: threads wait for long
//!    │                         ╱──────────  due + slack: threads wait for a moment
//!    │               ╱──────────            due: the collector is urgent
//!    │     ╱─────────                       due - margin: the collector may yield
//!    └──────────────┬──────────────┬──► marked
//!                 likely          most
//! ```
//!
//! Without this, threads that only allocate would use up the heap before all is marked. The rest of
//! the marking would then be done with the world stopped.
//!
//! Marking ends at the latest when all bytes that the cycle found in use are marked (`most`). It
//! will probably end when somewhat more is marked than was alive at the last collection (`likely`).
//! Most of the room is for the part before `likely`.
//!
//! Pure: the heap measures.

/// Divisor: this part of the room is slack, which threads may take beyond what is due.
const SLACK: usize = 8;
/// Divisor: the collector yields when it is ahead by this part of the room.
const MARGIN: usize = 32;
/// The part of the room that is due when the likely bytes are marked, in eighths.
const LIKELY_EIGHTHS: usize = 5;
/// Divisor: the assumed growth of the live bytes since the last collection, as a part of them.
const GROWTH: usize = 8;

/// How the threads' allocation compares with the marking.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Pace {
    /// No marking is in progress, or the collector is far ahead.
    Ahead,
    /// The collector continues as before.
    Even,
    /// The collector needs a higher priority than the allocating threads.
    Behind,
    /// Allocating threads must wait for the collector.
    HeldUp,
    /// Threads have taken all the room of the cycle.
    Exhausted,
}

impl Pace {
    const ALL: [Self; 5] = [Self::Ahead, Self::Even, Self::Behind, Self::HeldUp, Self::Exhausted];

    /// The pace with this number: see [`number`](Self::number).
    pub(super) fn of_number(number: u8) -> Self {
        Self::ALL.get(usize::from(number)).copied().unwrap_or(Self::Ahead)
    }

    pub(super) const fn number(self) -> u8 {
        self as u8
    }
}

/// The bounds of one cycle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Plan {
    /// Bytes that may be taken before the cycle ends.
    room_bytes: usize,
    /// Bytes that will probably be marked in all.
    likely_bytes: usize,
    /// Maximum number of bytes to be marked.
    most_bytes: usize,
}

impl Plan {
    /// The plan for a cycle that finds `used_bytes` in use. `live_bytes` were alive after the last
    /// collection; 0 if unknown.
    pub(super) fn new(room_bytes: usize, live_bytes: usize, used_bytes: usize) -> Self {
        let most_bytes = used_bytes.max(1);
        let likely_bytes = match live_bytes {
            0 => most_bytes,
            _ => (live_bytes + live_bytes / GROWTH).min(most_bytes),
        };
        Self { room_bytes, likely_bytes, most_bytes }
    }

    /// Bytes that may have been taken when `marked_bytes` are marked, without any slack.
    fn due_bytes(&self, marked_bytes: usize) -> usize {
        let &Self { room_bytes, likely_bytes, most_bytes } = self;
        let by_the_end = room_bytes - room_bytes / SLACK;
        let by_likely = match likely_bytes {
            _ if likely_bytes == most_bytes => by_the_end,
            _ => room_bytes / 8 * LIKELY_EIGHTHS,
        };
        match marked_bytes.checked_sub(likely_bytes) {
            None => part(by_likely, marked_bytes, likely_bytes),
            Some(beyond) => {
                let rest = most_bytes - likely_bytes;
                by_likely + part(by_the_end - by_likely, beyond.min(rest), rest.max(1))
            }
        }
    }

    /// The pace when `taken_bytes` were taken since the cycle began, and `marked_bytes` are marked.
    pub(super) fn pace(&self, taken_bytes: usize, marked_bytes: usize) -> Pace {
        let due = self.due_bytes(marked_bytes);
        if taken_bytes > self.room_bytes {
            Pace::Exhausted
        } else if taken_bytes > due + self.room_bytes / SLACK {
            Pace::HeldUp
        } else if taken_bytes > due {
            Pace::Behind
        } else if taken_bytes + self.room_bytes / MARGIN > due {
            Pace::Even
        } else {
            Pace::Ahead
        }
    }
}

/// `whole * of / all`, in bytes. `of` is at most `all`.
fn part(whole: usize, of: usize, all: usize) -> usize {
    (whole as u128 * of as u128 / all as u128) as usize
}

#[cfg(test)]
mod tests;
