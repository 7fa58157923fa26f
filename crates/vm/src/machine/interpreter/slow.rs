//! Instructions whose fast path does not apply: they call the primitive.

use crate::machine::access::{Frame, Pc, primitive};
use crate::machine::{Exit, Machine, Next};
use kyocho_heap::raise::Result;
use kyocho_heap::value::Value;

impl Machine {
    /// Runs the primitive whose address follows an instruction, if its fast path does not apply.
    #[cold]
    #[inline(never)]
    pub(super) fn slow_primitive(
        &mut self,
        pc: Pc,
        frame: Frame,
        to: u16,
        arguments: &[Value],
    ) -> core::result::Result<Next, Exit> {
        self.frame = frame;
        match self.call_primitive(primitive(pc.word(1)).function, arguments) {
            Ok(value) => {
                frame.set(to, value);
                if self.mutator.heap.collection_wanted() {
                    return Err(Exit::Collect);
                }
                Ok(Next { pc: pc.at(2), frame })
            }
            Err(raise) if raise.is_interruption() => Err(Exit::Poll),
            Err(raise) => Ok(self.raise_at(pc, frame, raise)),
        }
    }

    /// Whether the primitive whose address follows the instruction returns a true value.
    /// `(zero? x)` compares with zero, but has one argument.
    #[cold]
    #[inline(never)]
    pub(super) fn slow_test(&mut self, pc: Pc, frame: Frame, arguments: &[Value]) -> Result<bool> {
        self.frame = frame;
        let primitive = primitive(pc.word(1));
        let count = primitive.max.map_or(arguments.len(), |max| arguments.len().min(max.into()));
        self.call_primitive(primitive.function, &arguments[..count]).map(Value::is_true)
    }
}
