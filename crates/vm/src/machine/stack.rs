//! A machine's stack: one array of words that grows by doubling, up to a limit.
//!
//! ```text
//! words: | return | callee | slots of the first frame .. | return | callee | slots .. | headroom |
//!        `- frame - 2                                     frame of the running procedure - limit -'
//! ```
//!
//! Every word is a value: return addresses are multiples of eight, so they read as fixnums. The
//! instruction before a return address gives the size of the caller's frame. Words above the
//! running frame are cleared at each collection. So every value in a frame's slots was alive at the
//! last collection or is younger.

use crate::compiler::code::HEADROOM_SLOTS;
use crate::machine::access::Frame;
use kyocho_heap::heap::Marker;
use kyocho_heap::value::Value;
use kyocho_sys::prim::cell::UnsafeCell;

/// Words of a new stack.
const FIRST_WORDS: usize = HEADROOM_SLOTS + 48;
/// Words kept beyond the limit, so that a handler can report that the recursion is too deep.
const RESERVE_WORDS: usize = 16 * 1024;

/// The stack would exceed its limit.
#[derive(Debug)]
pub(super) struct TooDeep;

pub(super) struct Stack {
    words: Box<[UnsafeCell<u64>]>,
    words_max: usize,
    /// The bound that was exceeded: the limit, or the memory of the account.
    bound: usize,
    /// Whether a handler runs on the reserve.
    overflowed: bool,
}

impl core::fmt::Debug for Stack {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Stack").field("words", &self.words.len()).finish_non_exhaustive()
    }
}

fn zeroed(words: usize) -> Box<[UnsafeCell<u64>]> {
    (0..words).map(|_| UnsafeCell::new(0)).collect()
}

impl Stack {
    pub(super) fn new(bytes_max: usize) -> Self {
        Self { words: zeroed(FIRST_WORDS), words_max: bytes_max / 8, bound: 0, overflowed: false }
    }

    fn pointer(&self) -> *mut u64 {
        UnsafeCell::raw_get(self.words.as_ptr())
    }

    /// The first frame. Its return address and callee are the first words.
    pub(super) fn bottom(&self) -> Frame {
        Frame::new(self.pointer().wrapping_add(2))
    }

    /// The highest frame that may begin without growth.
    pub(super) fn limit(&self) -> Frame {
        Frame::new(self.pointer().wrapping_add(self.usable() - HEADROOM_SLOTS))
    }

    /// Number of words that may be used. They include the reserve only while a handler runs on it.
    fn usable(&self) -> usize {
        let max = if self.overflowed { usize::MAX } else { self.words_max.max(FIRST_WORDS) };
        self.words.len().min(max)
    }

    /// Number of words below `frame`.
    pub(super) fn depth(&self, frame: Frame) -> usize {
        (frame.pointer().addr() - self.pointer().addr()) / 8
    }

    pub(super) fn frame_at(&self, depth: usize) -> Frame {
        debug_assert!(depth <= self.words.len(), "a frame inside the stack");
        Frame::new(self.pointer().wrapping_add(depth))
    }

    /// Moves to a larger array, so that `slots` fit above `frame`. Returns the moved frame.
    /// `charge` is called with the bytes to charge, which exclude the reserve.
    pub(super) fn grow(
        &mut self,
        frame: Frame,
        slots: usize,
        charge: impl FnOnce(usize) -> bool,
    ) -> Result<Frame, TooDeep> {
        let depth = self.depth(frame);
        let need = depth + slots + HEADROOM_SLOTS;
        if need <= self.usable() {
            return Ok(frame);
        }
        let max = if self.overflowed { self.bound + RESERVE_WORDS } else { self.words_max };
        if need > max {
            return Err(self.overflow(self.words_max));
        }
        let new = need.next_power_of_two().clamp(FIRST_WORDS, max);
        let more = new.saturating_sub(self.words.len());
        if more > 0 {
            if !self.overflowed && !charge(8 * more) {
                return Err(self.overflow(self.words.len()));
            }
            self.resize(self.words.len(), new);
        }
        Ok(self.frame_at(depth))
    }

    fn overflow(&mut self, bound: usize) -> TooDeep {
        if !self.overflowed {
            self.bound = bound;
        }
        self.overflowed = true;
        TooDeep
    }

    fn resize(&mut self, keep: usize, new: usize) {
        let mut words = Vec::with_capacity(new);
        words.extend(self.words[..keep.min(new)].iter().map(|word| UnsafeCell::new(word_of(word))));
        words.resize_with(new, || UnsafeCell::new(0));
        self.words = words.into_boxed_slice();
    }

    /// Frees memory of an earlier, deeper recursion, but keeps the words below `top`. `frame_at`
    /// then finds the frames again.
    pub(super) fn give_back(&mut self, top: usize) {
        let comfortable = (top + 2 * HEADROOM_SLOTS).next_power_of_two().max(FIRST_WORDS);
        if self.words.len() > 4 * comfortable {
            self.resize(top, comfortable);
        }
    }

    /// Marks the words below `top`, and clears those above.
    pub(super) fn trace(&mut self, top: usize, marker: &mut Marker) {
        for word in &self.words[..top] {
            marker.mark(Value::from_word(word_of(word)));
        }
        for word in &mut self.words[top..] {
            *word.get_mut() = 0;
        }
        marker.hold(8 * self.words.len());
        if top < self.bound / 2 {
            self.overflowed = false;
        }
    }

    /// Makes the reserve available again, after the deep frames have been popped.
    pub(super) fn recover(&mut self) {
        self.overflowed = false;
    }

    /// `count` words from index `from` on, as values.
    pub(super) fn copy_out(&self, from: usize, count: usize) -> impl Iterator<Item = Value> + '_ {
        self.words[from..from + count].iter().map(|word| Value::from_word(word_of(word)))
    }

    /// Writes a word.
    pub(super) fn put(&mut self, at: usize, value: Value) {
        *self.words[at].get_mut() = value.to_word();
    }

    pub(super) fn words(&self) -> usize {
        self.words.len()
    }
}

#[expect(unsafe_code, reason = "reading a word of the stack while the machine is stopped")]
fn word_of(word: &UnsafeCell<u64>) -> u64 {
    // SAFETY: the machine that owns the stack is not running an instruction, so nothing writes to
    // it.
    unsafe { *word.get() }
}
