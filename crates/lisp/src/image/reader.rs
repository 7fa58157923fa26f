//! From an image to the heap. Every object is first made and then filled, because objects refer to
//! one another in cycles.
//!
//! Everything that could run out of memory comes before any change visible to the session. If it
//! does run out, loading is repeated after a collection.

mod syntax;

use super::ImageError;
use super::wire::{In, at};
use super::writer::{OWN, SYSTEM, foreign, pair, tag, target};
use crate::kernel::environment::EnvironmentObject;
use crate::kernel::session::LispSession;
use crate::kernel::system_objects::SystemObjects;
use crate::kernel::{Kernel, lock};
use crate::thread::{channel, condvar, mutex};
use kyocho_heap::hash_table::{self, Equivalence, Table};
use kyocho_heap::heap::object::{FLAG_LOCKED, Kind};
use kyocho_heap::heap::{ForeignObject, Mutator, location};
use kyocho_heap::value::Value;
use kyocho_library::port::Role;
use kyocho_syntax::datum::Span;
use kyocho_syntax::environment::Environment;
use kyocho_syntax::location::{Global, Location};
use kyocho_syntax::source;
use kyocho_syntax::symbol::Symbol;
use kyocho_syntax::world::World;
use kyocho_vm::compiler;
use kyocho_vm::compiler::code::{Code, Entry, Local, PROLOGUE_WORDS};
use kyocho_vm::machine::control;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use syntax::Syntax;

type Result<T> = core::result::Result<T, ImageError>;

const UNKNOWN: ImageError = ImageError::Damaged("a thing of no kind");

/// The symbols, sources, environments and locations of the image, by number.
pub(super) struct Names {
    symbols: Vec<Symbol>,
    sources: Vec<u32>,
    system: Vec<&'static Global>,
    globals: Vec<Location>,
}

impl Names {
    pub(super) fn symbol(&self, input: &mut In<'_>) -> Result<Symbol> {
        at(&self.symbols, input.number()?).copied()
    }

    pub(super) fn span(&self, input: &mut In<'_>) -> Result<Span> {
        let source = *at(&self.sources, input.number()?)?;
        Ok(Span { source, line: input.small()?, column: input.small()? })
    }

    pub(super) fn global(&self, input: &mut In<'_>) -> Result<Location> {
        match input.byte()? {
            OWN => at(&self.globals, input.number()?).cloned(),
            SYSTEM => Ok(Location::of_system(at(&self.system, input.number()?)?)),
            _ => Err(UNKNOWN),
        }
    }
}

/// Code whose words are known, except for addresses.
struct Draft {
    code: Code,
    object: Value,
}

/// An object that has been made, and how it is to be filled.
enum Made {
    Pair,
    Whole,
    /// This many words, each a value.
    Fields(usize),
    Closure(usize),
    /// This many associations.
    Table(usize),
    /// The draft with this number.
    Code(usize),
    Mutex,
    Condvar,
    /// This many messages.
    Channel(usize),
}

struct Reader<'a> {
    system: &'a SystemObjects,
    names: Names,
    objects: Vec<Value>,
    made: Vec<Made>,
    drafts: Vec<Draft>,
    draft_numbers: HashMap<Value, usize>,
    /// For hash tables: table, key, value.
    associations: Vec<(Value, Value, Value)>,
    ports: Vec<Value>,
}

/// Replaces the session's world by that of an image. Returns a list of the hash tables that use the
/// program's own hash procedures.
pub(super) fn restore(
    kernel: &Kernel,
    session: &LispSession,
    m: &mut Mutator,
    contents: &[u8],
) -> Result<Value> {
    let mut input = In(contents);
    let input = &mut input;
    let system = kernel.system_objects();
    if input.number()? != system.globals.len() || input.number()? != system.objects.len() {
        return Err(ImageError::OtherBuild);
    }
    let symbols = symbols(input)?;
    let count = input.length()?;
    let sources = (0..count).map(|_| Ok(source::register(input.text()?))).collect::<Result<_>>()?;
    let globals = Vec::new();
    let names = Names { symbols, sources, system: system.globals.clone(), globals };
    let mut world = lock(&session.world);
    let mut environments = vec![Arc::clone(world.system())];
    for _ in 1..input.length()? {
        environments.push(match input.flag()? {
            true => world.interaction_environment(),
            false => world.empty_environment(),
        });
    }
    let mut reader = Reader {
        system,
        names,
        objects: Vec::new(),
        made: Vec::new(),
        drafts: Vec::new(),
        draft_numbers: HashMap::new(),
        associations: Vec::new(),
        ports: Vec::new(),
    };
    for role in [Role::Input, Role::Output, Role::Error] {
        reader.ports.push(m.foreign(Box::new(session.port(role)))?);
    }
    for _ in 0..input.length()? {
        reader.make(m, input, &environments)?;
    }
    let tables = reader.custom_tables(m)?;
    reader.locations(&world, input)?;
    reader.fill_all(input)?;
    reader.finish(m)?;
    let syntax = Syntax::read(input, &reader.names, &environments, &mut world)?;
    let main = Arc::clone(at(&environments, input.number()?)?);
    for environment in &environments[1..] {
        syntax.bindings(input, &world, environment)?;
    }
    let libraries = syntax.libraries(input, &world)?;
    input.end()?;
    libraries.into_iter().for_each(|(name, library)| world.adopt_library(name, library));
    drop(world);
    session.enter_image(&main);
    Ok(tables)
}

fn symbols(input: &mut In<'_>) -> Result<Vec<Symbol>> {
    let count = input.length()?;
    let symbol = |_| {
        let (is_interned, name) = (input.flag()?, input.text()?);
        Ok(if is_interned { Symbol::intern(name) } else { Symbol::uninterned(name) })
    };
    (0..count).map(symbol).collect()
}

impl Reader<'_> {
    /// Makes the next object, empty.
    fn make(
        &mut self,
        m: &mut Mutator,
        input: &mut In<'_>,
        environments: &[Arc<Environment>],
    ) -> Result<()> {
        let kind = input.byte()?;
        if matches!(kind, pair::MUTABLE | pair::LITERAL) {
            let made = m.cons(Value::NIL, Value::NIL)?;
            let is_literal = kind == pair::LITERAL;
            self.add(if is_literal { made.into_literal_pair() } else { made }, Made::Pair);
            return Ok(());
        }
        let flags = input.byte()? & !FLAG_LOCKED;
        let kind = Kind::of_code(kind).ok_or(UNKNOWN)?;
        let (object, made) = match kind {
            Kind::Flonum => (m.flonum(f64::from_bits(input.word()?))?, Made::Whole),
            Kind::Bignum => (bignum(m, flags, input)?, Made::Whole),
            Kind::String => (m.string(input.text()?)?, Made::Whole),
            Kind::Bytevector => (m.bytevector(input.bytes()?)?, Made::Whole),
            Kind::Vector => {
                let words = input.length()?;
                (m.vector(words, Value::FALSE)?, Made::Fields(words))
            }
            Kind::Ratio
            | Kind::Complex
            | Kind::Cell
            | Kind::Record
            | Kind::RecordType
            | Kind::Promise
            | Kind::Parameter
            | Kind::Values
            | Kind::Condition => {
                let words = input.length()?;
                (empty(m, kind, flags, words)?, Made::Fields(words))
            }
            Kind::Closure => {
                let words = input.length()?;
                if words < 2 {
                    return Err(ImageError::Damaged("a closure without code"));
                }
                (empty(m, kind, flags, words)?, Made::Closure(words))
            }
            Kind::HashTable => {
                let equivalence = Equivalence::of_number(input.byte()?).ok_or(UNKNOWN)?;
                let count = input.length()?;
                let table = hash_table::make(m, equivalence, Value::FALSE, count);
                (table.map_err(|_| ImageError::OutOfMemory)?, Made::Table(count))
            }
            Kind::Foreign => self.foreign(m, input, environments)?,
            _ => return Err(UNKNOWN),
        };
        object.set_flags(flags);
        self.add(object, made);
        Ok(())
    }

    /// Makes the next Rust object, empty.
    fn foreign(
        &mut self,
        m: &mut Mutator,
        input: &mut In<'_>,
        environments: &[Arc<Environment>],
    ) -> Result<(Value, Made)> {
        Ok(match input.byte()? {
            foreign::CODE => {
                let object = m.reserve_foreign()?;
                let code = self.draft(input)?;
                m.charge(code.held_bytes())?;
                self.draft_numbers.insert(object, self.drafts.len());
                self.drafts.push(Draft { code, object });
                (object, Made::Code(self.drafts.len() - 1))
            }
            foreign::ENVIRONMENT => {
                let environment = Arc::clone(at(environments, input.number()?)?);
                (m.foreign(Box::new(EnvironmentObject(environment)))?, Made::Whole)
            }
            foreign::MUTEX => (m.foreign(mutex::restored(input.flag()?))?, Made::Mutex),
            foreign::CONDVAR => (m.foreign(condvar::restored())?, Made::Condvar),
            foreign::CHANNEL => {
                let channel = channel::restored(input.number()?, input.flag()?).ok_or(UNKNOWN)?;
                let messages = input.length()?;
                m.charge(channel::messages_bytes(messages))?;
                (m.foreign(channel)?, Made::Channel(messages))
            }
            _ => return Err(UNKNOWN),
        })
    }

    fn add(&mut self, object: Value, made: Made) {
        self.objects.push(object);
        self.made.push(made);
    }

    fn draft(&self, input: &mut In<'_>) -> Result<Code> {
        let (instructions_end, frame_slots) = (input.number()?, input.number()?);
        let name = if input.flag()? { Some(self.names.symbol(input)?) } else { None };
        let entry = |input: &mut In<'_>| {
            Ok(Entry { required: input.number()?, rest: input.flag()?, at: input.number()? })
        };
        let entries = many(input, entry)?;
        let spans = many(input, |input| Ok((input.small()?, self.names.span(input)?)))?;
        let local = |input: &mut In<'_>| {
            let (name, source, celled) = (self.names.symbol(input)?, input.small()?, input.flag()?);
            Ok(Local { name, source, celled, from: input.small()?, until: input.small()? })
        };
        let locals = many(input, local)?;
        let words = many(input, |input| input.word())?;
        let inside = |at: usize| (PROLOGUE_WORDS..instructions_end).contains(&at);
        if instructions_end > words.len() || !entries.iter().all(|entry| inside(entry.at)) {
            return Err(ImageError::Damaged("code that begins or ends outside itself"));
        }
        let (constants, globals) = <_>::default();
        Ok(Code {
            words,
            instructions_end,
            name,
            entries,
            frame_slots,
            constants,
            globals,
            spans,
            locals,
        })
    }

    /// The tables that Lisp code must fill again, because their hashes may be derived from
    /// addresses.
    fn custom_tables(&self, m: &mut Mutator) -> Result<Value> {
        let is_custom =
            |&table: &Value| hash_table::equivalence(table) == Some(Equivalence::Custom);
        let custom: Vec<_> = self.objects.iter().copied().filter(is_custom).collect();
        Ok(m.list(&custom)?)
    }

    fn value(&self, input: &mut In<'_>) -> Result<Value> {
        match input.byte()? {
            tag::FIXNUM => {
                let n = input.count()?;
                let n = (n >> 1) as i64 ^ -((n & 1) as i64);
                Value::fixnum_checked(n).ok_or(ImageError::Damaged("no small integer"))
            }
            tag::IMMEDIATE => Value::immediate_of_word(input.count()?).ok_or(UNKNOWN),
            tag::SYMBOL => Ok(Value::symbol(self.names.symbol(input)?)),
            tag::OBJECT => at(&self.objects, input.number()?).copied(),
            tag::SYSTEM => at(&self.system.objects, input.number()?).copied(),
            tag::PORT => at(&self.ports, input.byte()?.into()).copied(),
            _ => Err(UNKNOWN),
        }
    }

    /// The locations and their values.
    fn locations(&mut self, world: &World, input: &mut In<'_>) -> Result<()> {
        for _ in 0..input.length()? {
            let global = world.globals().make(self.names.symbol(input)?);
            location::set(&global, self.value(input)?);
            self.names.globals.push(global);
        }
        Ok(())
    }

    fn fill_all(&mut self, input: &mut In<'_>) -> Result<()> {
        (0..self.objects.len()).try_for_each(|number| self.fill(number, input))
    }

    fn fill(&mut self, number: usize, input: &mut In<'_>) -> Result<()> {
        let object = self.objects[number];
        match self.made[number] {
            Made::Whole => {}
            Made::Pair => {
                let (car, cdr) = (self.value(input)?, self.value(input)?);
                object.fill_pair(car, cdr);
            }
            Made::Fields(words) => {
                for i in 0..words {
                    object.set_field_at(i, self.value(input)?);
                }
            }
            Made::Closure(words) => {
                let code = self.value(input)?;
                let entry = self.entry(code, input.number()?)?;
                object.set_field_at(0, code);
                object.set_payload_word(1, entry);
                for i in 2..words {
                    object.set_field_at(i, self.value(input)?);
                }
            }
            Made::Table(count) => self.fill_table(object, count, input)?,
            Made::Code(draft) => self.fill_code(draft, input)?,
            Made::Mutex => mutex::complete_restored(object, self.value(input)?, self.value(input)?),
            Made::Condvar => {
                condvar::complete_restored(object, self.value(input)?, self.value(input)?);
            }
            Made::Channel(messages) => {
                for _ in 0..messages {
                    channel::complete_restored(object, self.value(input)?);
                }
            }
        }
        Ok(())
    }

    /// The address of an entry in code of the system, or in code that is being read.
    fn entry(&self, code: Value, at: usize) -> Result<u64> {
        let draft = self.draft_numbers.get(&code).map(|&number| &self.drafts[number].code);
        let code = draft
            .or_else(|| code.as_foreign())
            .ok_or(ImageError::Damaged("a closure without code"))?;
        if at >= code.instructions_end {
            return Err(ImageError::Damaged("code that begins outside itself"));
        }
        Ok(code.address_of(at))
    }

    /// Reads the content of a table. It is inserted when its keys are complete.
    fn fill_table(&mut self, table: Value, count: usize, input: &mut In<'_>) -> Result<()> {
        let procedures = self.value(input)?;
        hash_table::set_procedures(table, procedures);
        for _ in 0..count {
            let (key, value) = (self.value(input)?, self.value(input)?);
            self.associations.push((table, key, value));
        }
        Ok(())
    }

    fn fill_code(&mut self, draft: usize, input: &mut In<'_>) -> Result<()> {
        let count = input.length()?;
        let (mut constants, mut globals) = (Vec::new(), BTreeMap::new());
        for _ in 0..count {
            let position = input.number()?;
            let word = self.target(input, &mut constants, &mut globals)?;
            let words = &mut self.drafts[draft].code.words;
            *words.get_mut(position).ok_or(ImageError::Damaged("a word outside its code"))? = word;
        }
        self.drafts[draft].code.constants = constants.into_boxed_slice();
        self.drafts[draft].code.globals = globals.into_values().collect();
        Ok(())
    }

    /// The value of a word that is an address. A value is also among the code's constants; a
    /// location is also kept by the code.
    fn target(
        &self,
        input: &mut In<'_>,
        constants: &mut Vec<Value>,
        globals: &mut BTreeMap<usize, Arc<Global>>,
    ) -> Result<u64> {
        match input.byte()? {
            target::VALUE => {
                let value = self.value(input)?;
                constants.extend(Some(value).filter(|value| value.is_pair() || value.is_object()));
                Ok(value.to_word())
            }
            target::GLOBAL => {
                let location = self.names.global(input)?;
                let kept =
                    location.counted().map(|global| (location.address(), Arc::clone(global)));
                globals.extend(kept);
                Ok(location.address() as u64)
            }
            target::PRIMITIVE => {
                let primitive = *at(control::primitives(), input.number()?)?;
                Ok(core::ptr::from_ref(primitive).expose_provenance() as u64)
            }
            target::ENTRY => {
                let code = self.value(input)?;
                self.entry(code, input.number()?)
            }
            _ => Err(UNKNOWN),
        }
    }

    /// Completes code and tables.
    fn finish(&mut self, m: &mut Mutator) -> Result<()> {
        for Draft { code, object } in core::mem::take(&mut self.drafts) {
            compiler::verify(&code)
                .map_err(|_| ImageError::Damaged("code that the machine must not run"))?;
            m.complete_foreign(object, Box::new(code));
        }
        for (table, key, value) in core::mem::take(&mut self.associations) {
            let set = Table::lock(table).map_or(Ok(()), |mut table| table.set(m, key, value));
            set.map_err(|_| ImageError::OutOfMemory)?;
        }
        Ok(())
    }
}

fn many<T>(input: &mut In<'_>, mut item: impl FnMut(&mut In<'_>) -> Result<T>) -> Result<Box<[T]>> {
    let count = input.length()?;
    (0..count).map(|_| item(input)).collect()
}

/// An object whose values are read later.
fn empty(m: &mut Mutator, kind: Kind, flags: u8, words: usize) -> Result<Value> {
    let object = m.object(kind, flags, words)?;
    (0..words).for_each(|i| object.set_field_at(i, Value::FALSE));
    Ok(object)
}

fn bignum(m: &mut Mutator, flags: u8, input: &mut In<'_>) -> Result<Value> {
    let words = input.length()?;
    let number = m.object(Kind::Bignum, flags, words)?;
    for i in 0..words {
        number.set_payload_word(i, input.word()?);
    }
    Ok(number)
}
