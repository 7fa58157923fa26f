//! The machine's instructions: 64-bit words whose operands are slots of the current frame.
//!
//! ```text
//!  63        48 47        32 31        16 15    8 7      0
//! +------------+------------+------------+-------+--------+
//! |     c      |     b      |     a      |   x   | opcode |
//! +------------+------------+------------+-------+--------+
//! |   bc: signed 32 bits    |
//! +-------------------------+
//! ```
//!
//! Offsets (of jumps and literals) count words from the instruction itself. If an instruction's
//! slow path is a primitive, the next word is the primitive's address. A pool of literals after the
//! last instruction contains constants, which the code object keeps alive.

use core::fmt;

/// One instruction word.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Instruction(pub u64);

macro_rules! opcodes {
    ($($(#[$doc:meta])* $name:ident($a:ident $b:ident $c:ident) $words:literal,)*) => {
        /// The operation of an instruction.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(u8)]
        pub enum Opcode { $($(#[$doc])* $name,)* }

        impl Opcode {
            /// Every opcode, by number.
            pub const ALL: &[Self] = &[$(Self::$name,)*];

            /// What the operand fields mean, and how many words the instruction takes.
            pub const fn shape(self) -> Shape {
                match self {
                    $(Self::$name => Shape {
                        a: Role::$a, b: Role::$b, c: Role::$c, words: $words,
                    },)*
                }
            }
        }
    };
}

/// The meaning of an operand field. A 32-bit role of `b` covers `c` too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Not used.
    No,
    /// A slot that is read.
    Read,
    /// A slot that is written.
    Write,
    /// The first slot of a call (return address, callee, arguments), or of several values.
    Base,
    /// A number of arguments or values, or an index.
    Count,
    /// An index into the closure's free variables.
    Free,
    /// A small signed number.
    Small,
    /// A 16-bit jump.
    Near,
    /// A 32-bit jump.
    Far,
    /// A 32-bit offset to a literal.
    Literal,
    /// A 32-bit word, sign-extended: a fixnum or an immediate.
    Word,
}

/// The shape of an instruction.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    /// What field `a` means.
    pub a: Role,
    /// What field `b` means.
    pub b: Role,
    /// What field `c` means.
    pub c: Role,
    /// Number of words: 2 if a primitive's address or a name follows. `MakeClosure` may take more.
    pub words: usize,
}

opcodes! {
    /// The bottom of a stack: reinstate a frame of the continuation, or end the thread.
    Underflow(No No No) 1,
    /// The return address of a frame that raised. It is executed only if a debugger continues the
    /// frame.
    Raised(No No No) 1,
    /// a := b.
    Move(Write Read No) 1,
    /// a := word.
    LoadWord(Write Word No) 1,
    /// a := literal.
    LoadLiteral(Write Literal No) 1,
    /// a := the global's value.
    LoadGlobal(Write Literal No) 1,
    /// The global's value := a. Raises if the global is unbound.
    SetGlobal(Read Literal No) 1,
    /// The global's value := a.
    DefineGlobal(Read Literal No) 1,
    /// a := free variable b.
    FreeRef(Write Free No) 1,
    /// a := the running closure.
    SelfRef(Write No No) 1,
    /// a := a new cell that contains b.
    CellNew(Write Read No) 1,
    /// a := the content of cell b.
    CellRef(Write Read No) 1,
    /// a := the content of cell b. Raises if the cell has no value yet. The variable's name
    /// follows.
    CellRefChecked(Write Read No) 2,
    /// Cell a := b.
    CellSet(Read Read No) 1,
    /// a := a closure; see `assembler`.
    MakeClosure(Write Count No) 2,
    /// Free variable b of closure a := c.
    PatchClosure(Read Count Read) 1,
    /// Jumps.
    Jump(No Far No) 1,
    /// Jumps backwards; a safepoint.
    Loop(No Far No) 1,
    /// Jumps if a is false.
    JumpIfFalse(Read Far No) 1,
    /// Jumps if a is true.
    JumpIfTrue(Read Far No) 1,
    /// Jumps if a is the empty list.
    JumpIfNull(Read Far No) 1,
    /// Jumps if a is not the empty list.
    JumpUnlessNull(Read Far No) 1,
    /// Jumps if a is a pair.
    JumpIfPair(Read Far No) 1,
    /// Jumps if a is not a pair.
    JumpUnlessPair(Read Far No) 1,
    /// Jumps if a and b are the same word.
    JumpIfSame(Read Read Near) 1,
    /// Jumps if a and b differ.
    JumpUnlessSame(Read Read Near) 1,
    /// Jumps if a < b.
    JumpIfLess(Read Read Near) 2,
    /// Jumps unless a < b.
    JumpUnlessLess(Read Read Near) 2,
    /// Jumps if a <= b.
    JumpIfLessEqual(Read Read Near) 2,
    /// Jumps unless a <= b.
    JumpUnlessLessEqual(Read Read Near) 2,
    /// Jumps if a = b.
    JumpIfEqual(Read Read Near) 2,
    /// Jumps unless a = b.
    JumpUnlessEqual(Read Read Near) 2,
    /// Jumps if a < small b.
    JumpIfLessSmall(Read Small Near) 2,
    /// Jumps unless a < small b.
    JumpUnlessLessSmall(Read Small Near) 2,
    /// Jumps if a <= small b.
    JumpIfLessEqualSmall(Read Small Near) 2,
    /// Jumps unless a <= small b.
    JumpUnlessLessEqualSmall(Read Small Near) 2,
    /// Jumps if a = small b.
    JumpIfEqualSmall(Read Small Near) 2,
    /// Jumps unless a = small b.
    JumpUnlessEqualSmall(Read Small Near) 2,
    /// Jumps if a > small b.
    JumpIfGreaterSmall(Read Small Near) 2,
    /// Jumps unless a > small b.
    JumpUnlessGreaterSmall(Read Small Near) 2,
    /// Jumps if a >= small b.
    JumpIfGreaterEqualSmall(Read Small Near) 2,
    /// Jumps unless a >= small b.
    JumpUnlessGreaterEqualSmall(Read Small Near) 2,
    /// a := b + c.
    Add(Write Read Read) 2,
    /// a := b - c.
    Subtract(Write Read Read) 2,
    /// a := b * c.
    Multiply(Write Read Read) 2,
    /// a := b + small c.
    AddSmall(Write Read Small) 2,
    /// a := b - small c.
    SubtractSmall(Write Read Small) 2,
    /// a := b / c, rounded towards zero.
    Quotient(Write Read Read) 2,
    /// a := the remainder of that division.
    Remainder(Write Read Read) 2,
    /// a := b modulo c.
    Modulo(Write Read Read) 2,
    /// a := (b . c).
    Cons(Write Read Read) 1,
    /// a := car of b.
    Car(Write Read No) 2,
    /// a := cdr of b.
    Cdr(Write Read No) 2,
    /// a := car of cdr of b.
    Cadr(Write Read No) 2,
    /// a := cdr of cdr of b.
    Cddr(Write Read No) 2,
    /// a := element c of vector b.
    VectorRef(Write Read Read) 2,
    /// Element b of vector a := c.
    VectorSet(Read Read Read) 2,
    /// a := a record of the closure's type with the c values from slot b on.
    RecordNew(Write Base Count) 1,
    /// a := whether b is a record of the closure's type.
    RecordIs(Write Read No) 1,
    /// a := field c of b, a record of the closure's type.
    RecordRef(Write Read Count) 1,
    /// Field c of a, a record of the closure's type, := b.
    RecordSet(Read Read Count) 1,
    /// a := `primitive()`.
    Primitive0(Write No No) 2,
    /// a := `primitive(b)`.
    Primitive1(Write Read No) 2,
    /// a := `primitive(b, c)`.
    Primitive2(Write Read Read) 2,
    /// a := primitive of the c values from slot b on.
    PrimitiveN(Write Base Count) 2,
    /// Calls the object in slot a+1 with b arguments. The result is written to slot a.
    Call(Base Count No) 1,
    /// Calls the global's value with x arguments.
    CallGlobal(Base Literal No) 1,
    /// Calls the closure in slot a+1, which is known to take these x arguments.
    CallKnown(Base No No) 1,
    /// Calls the running closure with x arguments, which it accepts. bc is the offset of the entry.
    CallSelf(Base Literal No) 1,
    /// Calls the global with x arguments. The global is probably the running closure. bc is the
    /// offset of the word before the entry, which names the global.
    CallSelfGlobal(Base Literal No) 1,
    /// As `Call`, in place of the current frame.
    TailCall(Base Count No) 1,
    /// As `CallGlobal`, in place of the current frame.
    TailCallGlobal(Base Literal No) 1,
    /// As `CallKnown`, in place of the current frame.
    TailCallKnown(Base No No) 1,
    /// As `CallSelfGlobal`, in place of the current frame.
    TailCallSelfGlobal(Base Literal No) 1,
    /// Returns a.
    Return(Read No No) 1,
    /// Returns the word.
    ReturnWord(No Word No) 1,
    /// Makes room for a frame of bc slots, counted from its first slot.
    Reserve(No Word No) 1,
}

impl Instruction {
    /// An instruction of three 16-bit operands.
    pub const fn new(opcode: Opcode, a: u16, b: u16, c: u16) -> Self {
        Self(opcode as u64 | (a as u64) << 16 | (b as u64) << 32 | (c as u64) << 48)
    }

    /// An instruction of an 8-bit, a 16-bit and a 32-bit operand.
    pub const fn wide(opcode: Opcode, x: u8, a: u16, bc: i32) -> Self {
        Self(opcode as u64 | (x as u64) << 8 | (a as u64) << 16 | (bc as u32 as u64) << 32)
    }

    /// Field `x`.
    #[inline(always)]
    pub const fn x(self) -> u8 {
        (self.0 >> 8) as u8
    }

    /// Field `a`.
    #[inline(always)]
    pub const fn a(self) -> u16 {
        (self.0 >> 16) as u16
    }

    /// Field `b`.
    #[inline(always)]
    pub const fn b(self) -> u16 {
        (self.0 >> 32) as u16
    }

    /// Field `c`.
    #[inline(always)]
    pub const fn c(self) -> u16 {
        (self.0 >> 48) as u16
    }

    /// `b` as a signed number.
    #[inline(always)]
    pub const fn b_signed(self) -> i16 {
        (self.0 >> 32) as i16
    }

    /// `c` as a signed number.
    #[inline(always)]
    pub const fn c_signed(self) -> i16 {
        (self.0 >> 48) as i16
    }

    /// Fields `b` and `c` as one signed number.
    #[inline(always)]
    pub const fn bc(self) -> i32 {
        (self.0 >> 32) as i32
    }

    /// The opcode. `None` if the low byte is not one.
    pub fn opcode(self) -> Option<Opcode> {
        Opcode::ALL.get(usize::from(self.0 as u8)).copied()
    }
}

impl fmt::Debug for Instruction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.opcode() {
            Some(opcode) => write!(
                f,
                "{opcode:?} x={} a={} b={} c={} bc={}",
                self.x(),
                self.a(),
                self.b(),
                self.c(),
                self.bc()
            ),
            None => write!(f, "{:#x}", self.0),
        }
    }
}
