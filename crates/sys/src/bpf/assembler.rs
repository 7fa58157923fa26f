//! An assembler for BPF: instructions with names, jumps with labels.
//!
//! ```text
//!   63        32 31     16 15  12 11   8 7       0
//!   ┌───────────┬─────────┬──────┬──────┬─────────┐
//!   │ immediate │ offset  │source│ dest.│ opcode  │      an instruction; a map's address takes two
//!   └───────────┴─────────┴──────┴──────┴─────────┘
//! ```
//!
//! Source: kernel documentation, `bpf/standardization/instruction-set.rst`.

use std::os::fd::{AsFd, AsRawFd};

use super::Map;

/// A register. `R1` to `R5` carry arguments and are clobbered by a call; `R0` is the result; `R6`
/// to `R9` are preserved; `R10` is the end of the program's stack of 512 bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Register {
    /// Result.
    R0,
    /// First argument; at the start, the address of the tracepoint's arguments.
    R1,
    /// Second argument.
    R2,
    /// Third argument.
    R3,
    /// Fourth argument.
    R4,
    /// Preserved.
    R6,
    /// Preserved.
    R7,
    /// Preserved.
    R8,
    /// End of the stack.
    R10,
}

impl Register {
    fn number(self) -> u64 {
        match self {
            Self::R0 => 0,
            Self::R1 => 1,
            Self::R2 => 2,
            Self::R3 => 3,
            Self::R4 => 4,
            Self::R6 => 6,
            Self::R7 => 7,
            Self::R8 => 8,
            Self::R10 => 10,
        }
    }
}

/// Size of a load or store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Width {
    /// Four bytes; a load clears the upper half of the register.
    Half,
    /// Eight bytes.
    Whole,
}

/// Condition of a jump. The register, compared as unsigned with the immediate, is ...
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Condition {
    /// equal.
    Equal,
    /// not equal.
    NotEqual,
    /// less than or equal.
    AtMost,
}

/// Functions of the kernel that programs may call; numbers from linux/bpf.h.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Helper {
    /// `(map, key address)`: the value's address or 0.
    MapLookup = 1,
    /// `(map, key address, value address, flags)`.
    MapUpdate = 2,
    /// `(map, key address)`.
    MapDelete = 3,
    /// `()`: the address of the current thread's structure, for comparisons only.
    CurrentTask = 35,
    /// `(arguments, to, bytes, flags)`: program counters of the current thread's stack.
    Stack = 67,
    /// `(to, bytes, from)`: reads kernel memory; 0, or an error if there is none.
    ReadKernel = 113,
    /// `()`: the current thread's structure, in the form for functions that read it.
    CurrentTaskStructure = 158,
    /// `(thread's structure)`: the address of its registers in user mode.
    UserRegisters = 175,
    /// `(to, bytes, from)`: reads memory of the current process; 0, or an error if a page is
    /// missing.
    ReadUser = 112,
    /// `(ring, from, bytes, flags)`.
    RingOutput = 130,
}

/// A jump target.
#[derive(Debug, Clone, Copy)]
pub struct Label(usize);

/// A program under construction.
#[derive(Debug, Clone, Default)]
pub struct Assembler {
    code: Vec<u64>,
    /// Position of each label, once placed.
    places: Vec<Option<usize>>,
    /// Position and label of each jump.
    jumps: Vec<(usize, Label)>,
}

impl Assembler {
    /// An empty program.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    fn emit(&mut self, opcode: u8, to: Register, from: u64, offset: i16, immediate: i32) {
        let word = u64::from(opcode)
            | to.number() << 8
            | from << 12
            | u64::from(offset as u16) << 16
            | u64::from(immediate as u32) << 32;
        self.code.push(word);
    }

    /// `to = from`.
    pub fn copy(&mut self, to: Register, from: Register) {
        self.emit(0xbf, to, from.number(), 0, 0);
    }

    /// `to = value`.
    pub fn set(&mut self, to: Register, value: i32) {
        self.emit(0xb7, to, 0, 0, value);
    }

    /// `to += value`.
    pub fn add(&mut self, to: Register, value: i32) {
        self.emit(0x07, to, 0, 0, value);
    }

    /// `to &= value`, with the value sign-extended.
    pub fn and(&mut self, to: Register, value: i32) {
        self.emit(0x57, to, 0, 0, value);
    }

    /// `to = base[offset]`.
    pub fn load(&mut self, width: Width, to: Register, base: Register, offset: i16) {
        let opcode = if width == Width::Whole { 0x79 } else { 0x61 };
        self.emit(opcode, to, base.number(), offset, 0);
    }

    /// `base[offset] = from`.
    pub fn store(&mut self, width: Width, base: Register, offset: i16, from: Register) {
        let opcode = if width == Width::Whole { 0x7b } else { 0x63 };
        self.emit(opcode, base, from.number(), offset, 0);
    }

    /// Atomically exchanges the eight bytes at `base[offset]` with `register`, with a full memory
    /// barrier.
    pub fn exchange(&mut self, base: Register, offset: i16, register: Register) {
        self.emit(0xdb, base, register.number(), offset, 0xe1);
    }

    /// `base[offset] += register`, atomically.
    pub fn count(&mut self, base: Register, offset: i16, register: Register) {
        self.emit(0xdb, base, register.number(), offset, 0);
    }

    /// `to = ` the address of the stack byte at `offset` (negative).
    pub fn stack_address(&mut self, to: Register, offset: i32) {
        self.copy(to, Register::R10);
        self.add(to, offset);
    }

    /// `to = ` the address of `map`.
    pub fn map(&mut self, to: Register, map: &Map) {
        // The kernel replaces the descriptor with the address.
        const DESCRIPTOR: u64 = 1;
        self.emit(0x18, to, DESCRIPTOR, 0, map.as_fd().as_raw_fd());
        self.code.push(0);
    }

    /// Calls a function of the kernel.
    pub fn call(&mut self, helper: Helper) {
        self.emit(0x85, Register::R0, 0, 0, helper as i32);
    }

    /// Ends the program with `R0` as its result.
    pub fn exit(&mut self) {
        self.emit(0x95, Register::R0, 0, 0, 0);
    }

    /// A new label, to be placed later.
    pub fn label(&mut self) -> Label {
        self.places.push(None);
        Label(self.places.len() - 1)
    }

    /// Places `label` before the next instruction.
    ///
    /// # Panics
    /// It has been placed already.
    pub fn place(&mut self, label: Label) {
        let before = self.places[label.0].replace(self.code.len());
        assert!(before.is_none(), "a label is placed once");
    }

    /// Jumps to `label` if the comparison of `register` with `value` holds.
    pub fn jump_if(&mut self, register: Register, is: Condition, value: i32, label: Label) {
        let opcode = match is {
            Condition::Equal => 0x15,
            Condition::NotEqual => 0x55,
            Condition::AtMost => 0xb5,
        };
        self.jumps.push((self.code.len(), label));
        self.emit(opcode, register, 0, 0, value);
    }

    /// Jumps to `label` if two registers are equal.
    pub fn jump_if_same(&mut self, register: Register, other: Register, label: Label) {
        self.jumps.push((self.code.len(), label));
        self.emit(0x1d, register, other.number(), 0, 0);
    }

    /// Jumps to `label`.
    pub fn jump(&mut self, label: Label) {
        self.jumps.push((self.code.len(), label));
        self.emit(0x05, Register::R0, 0, 0, 0);
    }

    /// Finishes the program.
    ///
    /// # Panics
    /// A label was never placed, or is farther than 32,767 instructions away.
    #[must_use]
    pub fn finish(mut self) -> Vec<u64> {
        for (at, label) in self.jumps {
            let place = self.places[label.0].expect("every label has a place");
            let distance = place as i64 - at as i64 - 1;
            let offset = i16::try_from(distance).expect("a label is near its jumps");
            self.code[at] |= u64::from(offset as u16) << 16;
        }
        self.code
    }
}
