//! From the heap to an image.
//!
//! Each object gets a number when it is first found. Contents are written in the order of the
//! numbers. That may find more objects, and ends when none is left. Nothing recurses, so the length
//! of lists is not limited.

pub(super) mod syntax;

use super::ImageError;
use super::program::{Target, targets};
use super::wire::Out;
use crate::kernel::environment::EnvironmentObject;
use crate::kernel::session::LispSession;
use crate::kernel::system_objects::SystemObjects;
use crate::kernel::{Kernel, lock};
use crate::thread::{channel, condvar, mutex};
use core::hash::Hash;
use kyocho_heap::hash_table::{self, Table};
use kyocho_heap::heap::object::{FLAG_LOCKED, Kind};
use kyocho_heap::heap::{Guardian, Mutator, location};
use kyocho_heap::text::Text;
use kyocho_heap::value::Value;
use kyocho_library::port::{Port, Role};
use kyocho_syntax::datum::Span;
use kyocho_syntax::location::{Global, Location};
use kyocho_syntax::rules::Macro;
use kyocho_syntax::source;
use kyocho_syntax::symbol::Symbol;
use kyocho_vm::compiler::code::Code;
use kyocho_vm::machine::control;
use kyocho_vm::primitive::Primitive;
use std::collections::HashMap;
use std::sync::Arc;
use syntax::Syntax;

type Result<T> = core::result::Result<T, ImageError>;

/// Codes for the kinds of value.
pub(super) mod tag {
    pub(in crate::image) const FIXNUM: u8 = 0;
    pub(in crate::image) const IMMEDIATE: u8 = 1;
    pub(in crate::image) const SYMBOL: u8 = 2;
    pub(in crate::image) const OBJECT: u8 = 3;
    pub(in crate::image) const SYSTEM: u8 = 4;
    pub(in crate::image) const PORT: u8 = 5;
}

/// Codes for the kinds of Rust object.
pub(super) mod foreign {
    pub(in crate::image) const CODE: u8 = 0;
    pub(in crate::image) const ENVIRONMENT: u8 = 1;
    pub(in crate::image) const MUTEX: u8 = 2;
    pub(in crate::image) const CONDVAR: u8 = 3;
    pub(in crate::image) const CHANNEL: u8 = 4;
}

/// Codes for pairs, which no kind of object has.
pub(super) mod pair {
    pub(in crate::image) const MUTABLE: u8 = 0;
    pub(in crate::image) const LITERAL: u8 = 1;
}

/// Codes for the kinds of location.
pub(super) const OWN: u8 = 0;
pub(super) const SYSTEM: u8 = 1;

/// Codes for the targets of words of code.
pub(super) mod target {
    pub(in crate::image) const VALUE: u8 = 0;
    pub(in crate::image) const GLOBAL: u8 = 1;
    pub(in crate::image) const PRIMITIVE: u8 = 2;
    pub(in crate::image) const ENTRY: u8 = 3;
}

/// Maximum memory for saving one object, outside the heap: its numbers and its bytes. It is charged
/// to the user.
const OBJECT_BYTES: usize = 128;
/// Objects that are charged at a time.
const OBJECTS_CHARGED: usize = 4096;

/// Items and their numbers, in the order in which they were found.
#[derive(Debug)]
pub(super) struct Numbers<K> {
    pub(super) items: Vec<K>,
    numbers: HashMap<K, usize>,
}

impl<K> Default for Numbers<K> {
    fn default() -> Self {
        Self { items: Vec::new(), numbers: HashMap::new() }
    }
}

impl<K: Copy + Eq + Hash> Numbers<K> {
    /// The item's number, and whether it is new.
    pub(super) fn number(&mut self, item: K) -> (usize, bool) {
        let next = self.items.len();
        let number = *self.numbers.entry(item).or_insert(next);
        if number == next {
            self.items.push(item);
        }
        (number, number == next)
    }
}

/// The state of saving.
pub(super) struct Writer<'a> {
    session: &'a LispSession,
    system: &'a SystemObjects,
    /// The session's locations found so far, by address.
    locations: HashMap<usize, Arc<Global>>,
    primitives: HashMap<u64, usize>,
    pub(super) symbols: Numbers<Symbol>,
    pub(super) sources: Numbers<u32>,
    globals: Numbers<usize>,
    objects: Numbers<Value>,
    /// For each object, the definition through which it was first found.
    holders: Vec<Option<Symbol>>,
    holder: Option<Symbol>,
}

/// The contents of an image of the session's world.
pub(super) fn contents(kernel: &Kernel, session: &LispSession, m: &Mutator) -> Result<Vec<u8>> {
    let by_address = |(i, primitive): (usize, &&'static Primitive)| {
        (core::ptr::from_ref(*primitive).addr() as u64, i)
    };
    let mut writer = Writer {
        session,
        system: kernel.system_objects(),
        locations: HashMap::new(),
        primitives: control::primitives().iter().enumerate().map(by_address).collect(),
        symbols: Numbers::default(),
        sources: Numbers::default(),
        globals: Numbers::default(),
        objects: Numbers::default(),
        holders: Vec::new(),
        holder: None,
    };
    // Called before the world is locked, because it may have to lock it.
    let main = session.program().unwrap_or_else(|| session.interaction());
    let world = lock(&session.world);
    let mut syntax = Syntax::new(world.system());
    let mut bindings = Out::default();
    bindings.number(syntax.environment(&main));
    let mut libraries = Out::default();
    syntax.libraries(&mut writer, &world, &mut libraries)?;
    let (mut shapes, mut fields, mut values) = <(Out, Out, Out)>::default();
    let (mut objects, mut globals, mut environments) = (0, 0, 1);
    loop {
        if environments < syntax.environments.len() {
            syntax.bindings(&mut writer, &world, environments, &mut bindings)?;
            environments += 1;
        } else if globals < writer.globals.items.len() {
            writer.contents_of(globals, &mut values)?;
            globals += 1;
        } else if objects < writer.objects.items.len() {
            if objects % OBJECTS_CHARGED == 0 {
                m.charge(OBJECTS_CHARGED * OBJECT_BYTES)?;
            }
            if shapes.0.len() + fields.0.len() > m.attainable_bytes() {
                return Err(ImageError::TooLarge);
            }
            writer.object(&mut syntax, objects, &mut shapes, &mut fields)?;
            objects += 1;
        } else {
            break;
        }
    }
    Ok(writer.assemble(&syntax, [bindings, libraries, shapes, fields, values]))
}

impl Writer<'_> {
    fn assemble(&self, syntax: &Syntax, parts: [Out; 5]) -> Vec<u8> {
        let [bindings, libraries, shapes, fields, values] = parts;
        let mut out = Out::default();
        out.number(self.system.globals.len());
        out.number(self.system.objects.len());
        out.number(self.symbols.items.len());
        for &symbol in &self.symbols.items {
            out.byte(u8::from(Symbol::intern(symbol.name()) == symbol));
            out.text(symbol.name());
        }
        out.number(self.sources.items.len());
        self.sources.items.iter().for_each(|&number| out.text(source::name(number)));
        out.number(syntax.environments.len());
        syntax.environments[1..].iter().for_each(|environment| {
            out.byte(u8::from(environment.is_over_system()));
        });
        out.number(self.objects.items.len());
        out.0.extend(shapes.0);
        // The names got their numbers when the values were written.
        out.number(self.globals.items.len());
        out.0.extend(values.0);
        out.0.extend(fields.0);
        syntax.assemble(&mut out);
        out.0.extend(bindings.0);
        out.0.extend(libraries.0);
        out.0
    }

    fn unkept(&self, what: &'static str) -> ImageError {
        let holder = self.holder.map_or_else(
            || "an object that no definition refers to".to_owned(),
            |name| format!("`{name}`"),
        );
        ImageError::Unkept { holder, what }
    }

    pub(super) fn symbol(&mut self, symbol: Symbol, out: &mut Out) {
        out.number(self.symbols.number(symbol).0);
    }

    /// A reference to the location that an environment names.
    pub(super) fn location(&mut self, location: &Location, out: &mut Out) -> Result<()> {
        self.global(location.address(), location.counted(), out)
    }

    /// A reference to a location: of the system, or one that gets a number here.
    fn global(&mut self, address: usize, own: Option<&Arc<Global>>, out: &mut Out) -> Result<()> {
        if let Some(number) = self.system.global(address) {
            out.byte(SYSTEM);
            out.number(number);
            return Ok(());
        }
        let own =
            own.ok_or(ImageError::Damaged("code that refers to no location of its session"))?;
        self.locations.entry(address).or_insert_with(|| Arc::clone(own));
        out.byte(OWN);
        out.number(self.globals.number(address).0);
        Ok(())
    }

    /// Writes a location's name and value.
    fn contents_of(&mut self, number: usize, out: &mut Out) -> Result<()> {
        let global = Arc::clone(&self.locations[&self.globals.items[number]]);
        self.holder = Some(global.name);
        self.symbol(global.name, out);
        self.value(location::value(&global), out)
    }

    pub(super) fn macro_name(&self, rules: &Arc<Macro>) -> Option<Symbol> {
        self.system.macro_name(rules)
    }

    fn value(&mut self, value: Value, out: &mut Out) -> Result<()> {
        if let Some(n) = value.as_fixnum() {
            out.byte(tag::FIXNUM);
            out.count((n << 1 ^ n >> 63) as u64);
        } else if let Some(symbol) = value.as_symbol() {
            out.byte(tag::SYMBOL);
            self.symbol(symbol, out);
        } else if !(value.is_pair() || value.is_object()) {
            out.byte(tag::IMMEDIATE);
            out.count(value.to_word());
        } else if let Some(number) = self.system.object(value) {
            out.byte(tag::SYSTEM);
            out.number(number);
        } else if let Some(port) = value.as_foreign::<Port>() {
            let roles = [Role::Input, Role::Output, Role::Error];
            let role = roles.into_iter().find(|&role| self.session.port(role).is_same(port));
            out.byte(tag::PORT);
            out.byte(role.ok_or_else(|| self.unkept("a port"))? as u8);
        } else {
            let (number, is_new) = self.objects.number(value);
            if is_new {
                self.holders.push(self.holder);
            }
            out.byte(tag::OBJECT);
            out.number(number);
        }
        Ok(())
    }

    /// Writes the shape of an object, which suffices to make it, and separately its content.
    fn object(
        &mut self,
        syntax: &mut Syntax,
        number: usize,
        shape: &mut Out,
        fields: &mut Out,
    ) -> Result<()> {
        let value = self.objects.items[number];
        self.holder = self.holders[number];
        if let Some((car, cdr)) = value.uncons() {
            shape.byte(if value.is_mutable_pair() { pair::MUTABLE } else { pair::LITERAL });
            self.value(car, fields)?;
            return self.value(cdr, fields);
        }
        let Some(kind) = value.kind() else {
            return Err(ImageError::Damaged("a value that is nothing"));
        };
        let words = value.size_words();
        shape.byte(kind as u8);
        shape.byte(value.flags() & !FLAG_LOCKED);
        match kind {
            Kind::Flonum => shape.word(value.payload_word(0)),
            Kind::Bignum => {
                shape.number(words);
                (0..words).for_each(|i| shape.word(value.payload_word(i)));
            }
            Kind::String => {
                let text = Text::of(value).map(Text::to_rust).unwrap_or_default();
                shape.text(&text);
            }
            Kind::Bytevector => shape.bytes(&value.to_bytes().unwrap_or_default()),
            Kind::Vector
            | Kind::Ratio
            | Kind::Complex
            | Kind::Cell
            | Kind::Record
            | Kind::RecordType
            | Kind::Promise
            | Kind::Parameter
            | Kind::Values
            | Kind::Condition => {
                shape.number(words);
                for i in 0..words {
                    self.value(value.field_at(i), fields)?;
                }
            }
            Kind::Closure => self.closure(value, shape, fields)?,
            Kind::HashTable => self.hash_table(value, shape, fields)?,
            Kind::Foreign => self.foreign(syntax, value, shape, fields)?,
            Kind::Continuation | Kind::Segment => return Err(self.unkept("a continuation")),
            Kind::Mutex | Kind::Condvar | Kind::Thread | Kind::Channel | Kind::Environment => {
                return Err(self.unkept("an object of the running system"));
            }
            Kind::Ephemeron => return Err(self.unkept("an ephemeron")),
            Kind::Primitive | Kind::Buffer | Kind::Code => {
                return Err(ImageError::Damaged("an object that is part of another"));
            }
        }
        Ok(())
    }

    fn closure(&mut self, value: Value, shape: &mut Out, fields: &mut Out) -> Result<()> {
        let code = value.field_at(0);
        let entry = code
            .as_foreign::<Code>()
            .and_then(|code| code.position(value.payload_word(1)))
            .ok_or(ImageError::Damaged("a closure without code"))?;
        let words = value.size_words();
        shape.number(words);
        self.value(code, fields)?;
        fields.number(entry);
        (2..words).try_for_each(|i| self.value(value.field_at(i), fields))
    }

    /// Writes only the associations, because hashes may be derived from addresses.
    fn hash_table(&mut self, value: Value, shape: &mut Out, fields: &mut Out) -> Result<()> {
        let Some(equivalence) = hash_table::equivalence(value) else {
            return Err(ImageError::Damaged("a hash table of no kind"));
        };
        let associations: Vec<_> =
            Table::lock(value).map(|table| table.associations().collect()).unwrap_or_default();
        shape.byte(equivalence as u8);
        shape.number(associations.len());
        self.value(hash_table::procedures(value), fields)?;
        for (key, association) in associations {
            self.value(key, fields)?;
            self.value(association, fields)?;
        }
        Ok(())
    }

    fn foreign(
        &mut self,
        syntax: &mut Syntax,
        value: Value,
        shape: &mut Out,
        fields: &mut Out,
    ) -> Result<()> {
        if let Some(environment) = value.as_foreign::<EnvironmentObject>() {
            shape.byte(foreign::ENVIRONMENT);
            shape.number(syntax.environment(&environment.0));
            return Ok(());
        }
        if self.idle(value, shape, fields)? {
            return Ok(());
        }
        let Some(code) = value.as_foreign::<Code>() else {
            let is_guardian = value.as_foreign::<Guardian>().is_some();
            return Err(self.unkept(match is_guardian {
                true => "a guardian",
                false => "a thread, a connection or a similar object",
            }));
        };
        shape.byte(foreign::CODE);
        self.code_shape(code, shape);
        self.code_words(code, shape, fields)
    }

    /// Writes a lock or a channel that no thread holds or waits for; `false` if it is another
    /// object.
    fn idle(&mut self, value: Value, shape: &mut Out, fields: &mut Out) -> Result<bool> {
        let mut contents = Vec::new();
        if let Some(kept) = mutex::kept(value) {
            let (abandoned, name, specific) = kept.map_err(|what| self.unkept(what))?;
            shape.byte(foreign::MUTEX);
            shape.byte(u8::from(abandoned));
            contents.extend([name, specific]);
        } else if let Some(kept) = condvar::kept(value) {
            let (name, specific) = kept.map_err(|what| self.unkept(what))?;
            shape.byte(foreign::CONDVAR);
            contents.extend([name, specific]);
        } else if let Some(kept) = channel::kept(value) {
            let kept = kept.map_err(|what| self.unkept(what))?;
            shape.byte(foreign::CHANNEL);
            shape.number(kept.capacity);
            shape.byte(u8::from(kept.closed));
            shape.number(kept.messages.len());
            contents = kept.messages;
        } else {
            return Ok(false);
        }
        contents.into_iter().try_for_each(|value| self.value(value, fields))?;
        Ok(true)
    }

    fn code_shape(&mut self, code: &Code, shape: &mut Out) {
        shape.number(code.instructions_end);
        shape.number(code.frame_slots);
        shape.byte(u8::from(code.name.is_some()));
        if let Some(name) = code.name {
            self.symbol(name, shape);
        }
        shape.number(code.entries.len());
        for entry in &code.entries {
            shape.number(entry.required);
            shape.byte(u8::from(entry.rest));
            shape.number(entry.at);
        }
        shape.number(code.spans.len());
        for &(at, span) in &code.spans {
            shape.count(at.into());
            self.span(span, shape);
        }
        shape.number(code.locals.len());
        for local in &code.locals {
            self.symbol(local.name, shape);
            shape.count(local.source.into());
            shape.byte(u8::from(local.celled));
            shape.count(local.from.into());
            shape.count(local.until.into());
        }
    }

    pub(super) fn span(&mut self, span: Span, out: &mut Out) {
        out.number(self.sources.number(span.source).0);
        out.count(span.line.into());
        out.count(span.column.into());
    }

    fn code_words(&mut self, code: &Code, shape: &mut Out, fields: &mut Out) -> Result<()> {
        let targets = targets(code)?;
        let mut words = code.words.to_vec();
        targets.iter().for_each(|&(at, _)| words[at] = 0);
        shape.number(words.len());
        words.iter().for_each(|&word| shape.word(word));
        fields.number(targets.len());
        for (at, target) in targets {
            fields.number(at);
            self.target(code, target, fields)?;
        }
        Ok(())
    }

    fn target(&mut self, code: &Code, target: Target, out: &mut Out) -> Result<()> {
        match target {
            Target::Value(value) => {
                out.byte(target::VALUE);
                self.value(value, out)
            }
            Target::Global(address) => {
                out.byte(target::GLOBAL);
                let own = code.globals.iter().find(|global| global.address() == address);
                self.global(address, own, out)
            }
            Target::Primitive(address) => {
                let number = self.primitives.get(&address);
                let number = number.ok_or(ImageError::Damaged("code that calls no primitive"))?;
                out.byte(target::PRIMITIVE);
                out.number(*number);
                Ok(())
            }
            Target::Entry(inner, at) => {
                out.byte(target::ENTRY);
                self.value(inner, out)?;
                out.number(at);
                Ok(())
            }
        }
    }
}
