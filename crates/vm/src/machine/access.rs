//! Unchecked access to code and frames: the machine's registers and the memory that they point to.
//!
//! Invariants, kept by the machine and by `compiler::verify`:
//! - A `Pc` points to an instruction of code that the running closure, or a frame on the stack,
//!   keeps alive, or to the static stub. Jumps stay inside that code.
//! - A `Frame` points into its machine's own stack, two words or more above its beginning. Only at
//!   the instruction `Underflow` it points to the beginning, where the returned value is. The slots
//!   of the running procedure lie below the stack's end: calls check `limit`, and every procedure
//!   keeps to `HEADROOM_SLOTS` above it or begins with `Reserve`.
//! - The words after instructions are those that the generator or the reader of images wrote:
//!   addresses of primitives and of locations. Primitives live as long as the process. Locations
//!   live as long as the system, or are kept by that code.
#![expect(unsafe_code, reason = "the machine's registers are pointers; verified code bounds them")]

use crate::compiler::instruction::{Instruction, Opcode};
use crate::primitive::Primitive;
use core::ptr::with_exposed_provenance;
use kyocho_heap::value::Value;
use kyocho_syntax::location::Global;
use kyocho_sys::prim::atomic::{AtomicU32, Ordering};

/// The machine's position in a procedure's code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Pc(*const u64);

/// The first slot of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Frame(*mut u64);

/// The word that a scheduler sets to request a safepoint.
#[derive(Clone, Copy, Debug)]
pub(super) struct Poll(*const AtomicU32);

// SAFETY: one kernel thread at a time runs a machine, and its registers point into memory that it
// owns (its stack) or shares immutably (code).
unsafe impl Send for Pc {}
// SAFETY: as above.
unsafe impl Send for Frame {}
// SAFETY: the word is atomic, and the owner of a poll word keeps it alive as long as the machine.
unsafe impl Send for Poll {}

/// The bottom of every stack: the code that the first frame returns to.
static STUB: [u64; 2] =
    [Instruction::new(Opcode::Raised, 0, 0, 0).0, Instruction::new(Opcode::Underflow, 0, 0, 0).0];

static NEVER: AtomicU32 = AtomicU32::new(0);

impl Pc {
    /// The instruction at the bottom of a stack.
    pub(super) fn underflow() -> Self {
        Self(&raw const STUB[1])
    }

    /// An instruction that stops the machine.
    pub(super) fn broken() -> Self {
        Self(&raw const STUB[0])
    }

    pub(super) fn from_word(word: u64) -> Self {
        Self(with_exposed_provenance(word as usize))
    }

    pub(super) fn to_word(self) -> u64 {
        self.0.expose_provenance() as u64
    }

    #[inline(always)]
    pub(super) fn fetch(self) -> Instruction {
        Instruction(self.word(0))
    }

    /// The word `n` words after this one.
    #[inline(always)]
    pub(super) fn word(self, n: i32) -> u64 {
        // SAFETY: by the module's invariant the word belongs to the running code.
        unsafe { self.at(n).0.read() }
    }

    #[inline(always)]
    pub(super) fn at(self, n: i32) -> Self {
        Self(self.0.wrapping_offset(n as isize))
    }

    /// The base operand of the call before this return address.
    #[inline(always)]
    pub(super) fn returns_over(self) -> usize {
        usize::from(Instruction(self.word(-1)).a())
    }
}

impl Frame {
    pub(super) const fn new(slot: *mut u64) -> Self {
        Self(slot)
    }

    pub(super) const fn pointer(self) -> *mut u64 {
        self.0
    }

    /// The value in a slot.
    #[inline(always)]
    pub fn get(self, slot: u16) -> Value {
        self.value(slot as isize)
    }

    /// Writes a slot.
    #[inline(always)]
    pub fn set(self, slot: u16, value: Value) {
        self.set_value(slot as isize, value);
    }

    /// The value at a place that may lie below the first slot: the callee is at -1.
    #[inline(always)]
    pub fn value(self, slot: isize) -> Value {
        // SAFETY: by the module's invariant the slot lies in the machine's stack.
        Value::from_word(unsafe { self.0.wrapping_offset(slot).read() })
    }

    /// Writes the value at such a place.
    #[inline(always)]
    pub fn set_value(self, slot: isize, value: Value) {
        // SAFETY: by the module's invariant the slot lies in the machine's stack, which no other
        // thread accesses while the machine runs.
        unsafe { self.0.wrapping_offset(slot).write(value.to_word()) };
    }

    /// The running closure.
    #[inline(always)]
    pub(super) fn callee(self) -> Value {
        self.value(-1)
    }

    #[inline(always)]
    pub(super) fn return_pc(self) -> Pc {
        Pc::from_word(self.value(-2).to_word())
    }

    #[inline(always)]
    pub(super) fn set_return_pc(self, pc: Pc) {
        self.set_value(-2, Value::from_word(pc.to_word()));
    }

    #[inline(always)]
    pub(super) fn up(self, slots: usize) -> Self {
        Self(self.0.wrapping_add(slots))
    }

    #[inline(always)]
    pub(super) fn down(self, slots: usize) -> Self {
        Self(self.0.wrapping_sub(slots))
    }

    /// The values in `count` slots from `first` on. The borrow must end before the next
    /// instruction.
    #[inline(always)]
    pub(super) fn values<'a>(self, first: usize, count: usize) -> &'a [Value] {
        // SAFETY: the slots are in the machine's stack and contain values; `Value` is a transparent
        // `u64`; no primitive writes to the stack while it reads its arguments.
        unsafe { core::slice::from_raw_parts(self.0.wrapping_add(first).cast::<Value>(), count) }
    }
}

impl Poll {
    /// A word that never requests a safepoint.
    pub(super) fn never() -> Self {
        Self(&raw const NEVER)
    }

    /// The word that the scheduler sets for this machine. The scheduler keeps the word alive as
    /// long as the machine.
    pub(super) fn of(word: &AtomicU32) -> Self {
        Self(core::ptr::from_ref(word))
    }

    #[inline(always)]
    pub(super) fn is_set(self) -> bool {
        // SAFETY: the word outlives the machine, by `of`'s contract.
        unsafe { &*self.0 }.load(Ordering::Relaxed) != 0
    }
}

/// The opcode of an instruction of verified code.
#[inline(always)]
pub(super) fn opcode(instruction: Instruction) -> Opcode {
    debug_assert!(instruction.opcode().is_some(), "{instruction:?}");
    // SAFETY: the generator writes the low byte from an `Opcode`, and `verify` has checked it.
    unsafe { core::mem::transmute::<u8, Opcode>(instruction.0 as u8) }
}

/// The location that a literal of the running code refers to. The borrow must end before the next
/// instruction.
#[inline(always)]
pub(super) fn global<'a>(word: u64) -> &'a Global {
    // SAFETY: the word is the address of a location of the system, or of one among the `globals` of
    // the running code, which its frame keeps alive. The generator and the reader of images put
    // each word and its location there together.
    unsafe { &*with_exposed_provenance::<Global>(word as usize) }
}

/// The primitive whose address is the word after an instruction.
#[inline(always)]
pub(super) fn primitive(word: u64) -> &'static Primitive {
    // SAFETY: the generator or the reader of images took the word from a `&'static Primitive`.
    unsafe { &*with_exposed_provenance::<Primitive>(word as usize) }
}
