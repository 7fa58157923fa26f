//! Continuations. The stack's words are moved to a segment in the heap, and copied back one frame
//! at a time.
//!
//! ```text
//! stack:  | underflow | callee | slots .. | return | callee | slots ..      (running)
//!             |
//!             v  segment, length, pc
//! segment: [live][next segment][next length][next pc][words: frames, the newest last]
//! ```
//!
//! A capture moves the frames pushed since the last capture, and leaves the stack empty above an
//! underflow. Returning through the underflow copies one frame back. So a capture costs as much as
//! the frames pushed or copied back since the last one, however deep the stack is. Segments are
//! never modified, so a continuation may be entered any number of times.

use crate::machine::access::{Frame, Pc};
use crate::machine::{Exit, Machine, Next, Underflow};
use kyocho_heap::heap::Kind;
use kyocho_heap::raise::Raise;
use kyocho_heap::value::Value;

/// Payload words of a segment before its frames: the live count and three values.
pub(super) const SEGMENT_HEAD: usize = 4;

impl Underflow {
    /// What is below the segment's own frames.
    fn next(self) -> Self {
        Self {
            segment: self.segment.field_at(1),
            length: self.segment.field_at(2).as_fixnum().unwrap_or(0) as usize,
            pc: Pc::from_word(self.segment.payload_word(3)),
        }
    }
}

impl Machine {
    /// Moves the frames below `frame` into a segment. The stack is then empty; the caller fills its
    /// first frame.
    fn spill(&mut self, frame: Frame) -> Result<(), Raise> {
        let count = self.stack.depth(frame) - 2;
        if count == 0 {
            return Ok(());
        }
        let oom = |_| Raise::out_of_memory();
        let words = SEGMENT_HEAD + count;
        let segment = self.mutator.object(Kind::Segment, 0, words).map_err(oom)?;
        segment.set_payload_word(0, Value::fixnum(words as i64 - 1).to_word());
        segment.set_payload_word(1, self.underflow.segment.to_word());
        segment.set_payload_word(2, Value::fixnum(self.underflow.length as i64).to_word());
        segment.set_payload_word(3, self.underflow.pc.to_word());
        for (i, value) in self.stack.copy_out(0, count).enumerate() {
            segment.set_payload_word(SEGMENT_HEAD + i, value.to_word());
        }
        self.underflow = Underflow { segment, length: count, pc: frame.return_pc() };
        Ok(())
    }

    /// The continuation of `frame`. The returned frame is the first of the stack, with the same
    /// callee and arguments.
    pub(super) fn capture(&mut self, frame: Frame, count: usize) -> Result<(Value, Frame), Raise> {
        let before = self.underflow;
        self.spill(frame)?;
        let bottom = self.stack.bottom();
        let Underflow { segment, length, pc } = self.underflow;
        let context = &self.mutator.context;
        let fields = [
            Value::fixnum(0),
            segment,
            Value::fixnum(length as i64),
            Value::from_word(pc.to_word()),
            context.winders,
            context.handlers,
            context.parameters,
        ];
        let Ok(continuation) = self.mutator.object_of(Kind::Continuation, &fields) else {
            self.underflow = before;
            return Err(Raise::out_of_memory());
        };
        for slot in -1..count as isize {
            bottom.set_value(slot, frame.value(slot));
        }
        bottom.set_return_pc(Pc::underflow());
        Ok((continuation, bottom))
    }

    /// Whether the `dynamic-wind` entries of the continuation are those in effect now.
    pub(super) fn is_wound_as(&self, continuation: Value) -> bool {
        continuation.field_at(4) == self.mutator.context.winders
    }

    /// Passes `value` to a continuation. The `dynamic-wind` procedures have run already.
    pub fn reinstate(&mut self, continuation: Value, value: Value) -> Next {
        self.underflow = Underflow {
            segment: continuation.field_at(1),
            length: continuation.field_at(2).as_fixnum().unwrap_or(0) as usize,
            pc: Pc::from_word(continuation.payload_word(3)),
        };
        let context = &mut self.mutator.context;
        context.winders = continuation.field_at(4);
        context.handlers = continuation.field_at(5);
        context.parameters = continuation.field_at(6);
        self.stack.recover();
        self.limit = self.stack.limit();
        let base = self.stack.bottom().down(2);
        base.set(0, value);
        Next { pc: Pc::underflow(), frame: base }
    }

    /// Inserts frames below `frame`: those of `end` that `base` does not have. `end` must extend
    /// `base`. The returned frame is above the inserted ones and has only its return address.
    ///
    /// The segments in between are copied, each linked to the one before. The cost is proportional
    /// to the size of the frames. The copied words are position-independent.
    ///
    /// # Errors
    /// Out of memory; or `end` does not extend `base`.
    pub(super) fn splice(&mut self, frame: Frame, base: Value, end: Value) -> Result<Frame, Raise> {
        let bottom_of = |value: Value| (value.field_at(1), value.field_at(2).as_fixnum());
        let target = bottom_of(base);
        let mut between = Vec::new();
        let mut link = Underflow {
            segment: end.field_at(1),
            length: end.field_at(2).as_fixnum().unwrap_or(0) as usize,
            pc: Pc::from_word(end.payload_word(3)),
        };
        while (link.segment, Some(link.length as i64)) != target {
            if !link.segment.is_object() {
                let message = "continuation: it does not go on to this prompt";
                return Err(Raise::error(message, Vec::new()));
            }
            between.push(link);
            link = link.next();
        }
        let before = self.underflow;
        self.spill(frame)?;
        while let Some(link) = between.pop() {
            match self.copy_segment(link) {
                Ok(copy) => self.underflow = Underflow { segment: copy, ..link },
                Err(raise) => {
                    self.underflow = before;
                    return Err(raise);
                }
            }
        }
        let bottom = self.stack.bottom();
        bottom.set_return_pc(Pc::underflow());
        Ok(bottom)
    }

    /// A copy of the first frames of a segment, linked to what is below the machine's stack.
    fn copy_segment(&mut self, link: Underflow) -> Result<Value, Raise> {
        let words = SEGMENT_HEAD + link.length;
        let oom = |_| Raise::out_of_memory();
        let copy = self.mutator.object(Kind::Segment, 0, words).map_err(oom)?;
        copy.set_payload_word(0, Value::fixnum(words as i64 - 1).to_word());
        copy.set_payload_word(1, self.underflow.segment.to_word());
        copy.set_payload_word(2, Value::fixnum(self.underflow.length as i64).to_word());
        copy.set_payload_word(3, self.underflow.pc.to_word());
        for i in SEGMENT_HEAD..words {
            copy.set_payload_word(i, link.segment.payload_word(i));
        }
        Ok(copy)
    }

    /// Handles a return through the bottom of the stack. The value is in the first word.
    #[cold]
    #[inline(never)]
    pub(super) fn underflow(&mut self, base: Frame) -> Result<Next, Exit> {
        let value = base.get(0);
        let Underflow { segment, length, pc } = self.underflow;
        if !segment.is_object() {
            self.outcome = value;
            return Err(Exit::Finished);
        }
        let size = pc.returns_over() + 2;
        let from = length - size;
        let mut bottom = self.stack.bottom();
        if bottom.up(size) > self.limit {
            bottom = self.grow(bottom, size).map_err(|_| Exit::Broken)?;
        }
        for i in 1..size {
            self.stack.put(i, segment.field_at(SEGMENT_HEAD + from + i));
        }
        self.underflow = if from == 0 {
            self.underflow.next()
        } else {
            let pc = Pc::from_word(segment.payload_word(SEGMENT_HEAD + from));
            Underflow { segment, length: from, pc }
        };
        bottom.set_return_pc(Pc::underflow());
        bottom.set_value(pc.returns_over() as isize, value);
        Ok(Next { pc, frame: bottom })
    }
}
