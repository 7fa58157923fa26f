//! Compiled code: closures refer to it and the machine runs it.
//!
//! ```text
//! words:  | a := frame base | Raised | (global) | entry .. instructions .. | literals .. |
//!           `-- stub: where a frame that raised returns to
//! ```
//!
//! **Invariant:** `words` never changes or moves after construction, and `verify` has accepted it,
//! because the machine reads it without checks. The collector keeps the code while a closure refers
//! to it. The code keeps the locations that its words refer to.

use crate::compiler::instruction::Instruction;
use kyocho_heap::heap::{ForeignObject, Marker, location};
use kyocho_heap::value::Value;
use kyocho_syntax::datum::Span;
use kyocho_syntax::location::Global;
use kyocho_syntax::symbol::Symbol;
use std::sync::Arc;

/// Words before the first entry: the stub, and the word that may name a global.
pub const PROLOGUE_WORDS: usize = 3;
/// The position of the stub's `Raised` in the words.
pub const STUB_RETURN: usize = 1;
/// Number of slots that the stack has above the beginning of every frame that is entered. A
/// procedure that needs more begins with `Reserve`.
pub const HEADROOM_SLOTS: usize = 48;
/// Number of slots that a raise uses above a frame: the fault's address, return address and callee,
/// two arguments.
pub const RAISE_SLOTS: usize = 5;
/// The closure flag of a procedure whose clauses must be checked when it is called.
pub const ARITY_GENERAL: u8 = 0xff;
/// Maximum number of arguments that a closure's flag can encode.
pub const ARITY_FIXED_MAX: usize = 200;

/// The entry of one clause.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// Number of required arguments.
    pub required: usize,
    /// Whether further arguments are accepted, as a list.
    pub rest: bool,
    /// The position of its first instruction.
    pub at: usize,
}

/// A local variable, for the debugger: the range of code where it has a value, and the source of
/// the value.
#[derive(Clone, Copy, Debug)]
pub struct Local {
    /// Its name.
    pub name: Symbol,
    /// A slot of the frame, or with `SOURCE_FREE` a free variable of the closure.
    pub source: u16,
    /// The value is in a cell, to which the source refers.
    pub celled: bool,
    /// The first position at which it has a value.
    pub from: u32,
    /// The position after the last one at which it has a value.
    pub until: u32,
}

/// A compiled procedure.
pub struct Code {
    /// Stub, instructions and literals.
    pub words: Box<[u64]>,
    /// The position after the last instruction.
    pub instructions_end: usize,
    /// Its name, if the source has one.
    pub name: Option<Symbol>,
    /// One for each clause.
    pub entries: Box<[Entry]>,
    /// Slots of its frames.
    pub frame_slots: usize,
    /// The heap values among the literals.
    pub constants: Box<[Value]>,
    /// The locations among the literals that are not the system's.
    pub globals: Box<[Arc<Global>]>,
    /// By position: the source of each instruction that may raise or call.
    pub spans: Box<[(u32, Span)]>,
    /// Its variables.
    pub locals: Box<[Local]>,
}

impl core::fmt::Debug for Code {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        writeln!(f, "{:?} ({} slots)", self.name, self.frame_slots)?;
        let mut at = 0;
        while at < self.instructions_end {
            let instruction = Instruction(self.words[at]);
            writeln!(f, "{at:5} {instruction:?}")?;
            at += if at == PROLOGUE_WORDS - 1 { 1 } else { instruction.length() };
        }
        Ok(())
    }
}

impl ForeignObject for Code {
    fn held_bytes(&self) -> usize {
        size_of::<Self>()
            + size_of_val(&*self.words)
            + size_of_val(&*self.constants)
            + size_of_val(&*self.globals)
            + size_of_val(&*self.spans)
            + size_of_val(&*self.locals)
    }

    fn trace(&self, marker: &mut Marker) {
        for &constant in &self.constants {
            marker.mark(constant);
        }
        for global in &self.globals {
            marker.mark(location::value(global));
        }
    }
}

impl Code {
    /// The address of a word. Closures and stacks contain such addresses as values: a multiple of
    /// eight reads as a fixnum.
    pub fn address_of(&self, at: usize) -> u64 {
        (self.words.as_ptr().expose_provenance() + 8 * at) as u64
    }

    /// The position of an address inside this code.
    pub fn position(&self, address: u64) -> Option<usize> {
        let offset = address.checked_sub(self.address_of(0))? as usize / 8;
        (offset < self.words.len()).then_some(offset)
    }

    /// The source of the instruction at `position`.
    pub fn span_at(&self, position: usize) -> Option<Span> {
        let i = self.spans.partition_point(|&(at, _)| at as usize <= position);
        let (_, span) = *self.spans.get(i.checked_sub(1)?)?;
        (span.line > 0).then_some(span)
    }

    /// The variables that have a value where the instruction at `position` begins.
    pub fn locals_at(&self, position: usize) -> impl Iterator<Item = &Local> {
        let is_live = move |local: &&Local| {
            (local.from as usize) <= position && position < local.until as usize
        };
        self.locals.iter().filter(is_live)
    }

    /// The names of a clause's parameters. They are in the first slots of the frame when it begins.
    pub fn parameters(&self, entry: &Entry) -> Vec<Symbol> {
        let first = |slot: usize| {
            let is_first = |local: &&Local| {
                local.from as usize >= entry.at && usize::from(local.source) == slot
            };
            self.locals.iter().find(is_first).map(|local| local.name)
        };
        (0..entry.required + usize::from(entry.rest)).map_while(first).collect()
    }

    /// The closure flag: the number of arguments if there is one clause with a fixed number of
    /// them; otherwise [`ARITY_GENERAL`].
    pub fn arity_flag(&self) -> u8 {
        match *self.entries {
            [Entry { required, rest: false, .. }] if required <= ARITY_FIXED_MAX => required as u8,
            _ => ARITY_GENERAL,
        }
    }
}
