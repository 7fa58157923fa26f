//! Writes the state of the expander: environments, macros, libraries, and their data.
//!
//! A macro is saved as the rules that its user wrote, and compiled again when it is loaded. Sharing
//! of data is preserved: data that macros have multiplied by sharing are written once.

use super::Writer;
use crate::image::ImageError;
use crate::image::wire::Out;
use kyocho_syntax::datum::{Alias, Datum, DatumKind, Home, Identifier, NumberLiteral};
use kyocho_syntax::environment::{Binding, Environment, Origin};
use kyocho_syntax::library::Library;
use kyocho_syntax::rules::Macro;
use kyocho_syntax::special::SPECIALS;
use kyocho_syntax::world::World;
use std::collections::HashMap;
use std::sync::Arc;

type Result<T> = core::result::Result<T, ImageError>;

/// Codes for the variants of identifiers, homes, bindings, libraries and data.
pub(in crate::image) mod tag {
    pub(in crate::image) const SYMBOL: u8 = 0;
    pub(in crate::image) const ALIAS: u8 = 1;

    pub(in crate::image) const TOP: u8 = 0;
    pub(in crate::image) const SCOPE: u8 = 1;
    pub(in crate::image) const GONE: u8 = 2;

    pub(in crate::image) const SPECIAL: u8 = 0;
    pub(in crate::image) const SYSTEM_MACRO: u8 = 1;
    pub(in crate::image) const MACRO: u8 = 2;
    pub(in crate::image) const OWN: u8 = 3;
    pub(in crate::image) const IMPORTED: u8 = 4;
    pub(in crate::image) const UNDEFINED: u8 = 5;

    pub(in crate::image) const DECLARED: u8 = 0;
    pub(in crate::image) const LOADED: u8 = 1;

    pub(in crate::image) const FALSE: u8 = 0;
    pub(in crate::image) const TRUE: u8 = 1;
    pub(in crate::image) const CHARACTER: u8 = 2;
    pub(in crate::image) const STRING: u8 = 3;
    pub(in crate::image) const IDENTIFIER: u8 = 4;
    pub(in crate::image) const INTEGER: u8 = 5;
    pub(in crate::image) const RATIO: u8 = 6;
    pub(in crate::image) const REAL: u8 = 7;
    pub(in crate::image) const PAIR: u8 = 8;
    pub(in crate::image) const NIL: u8 = 9;
    pub(in crate::image) const VECTOR: u8 = 10;
    pub(in crate::image) const BYTEVECTOR: u8 = 11;
    pub(in crate::image) const LABEL: u8 = 12;
    pub(in crate::image) const REFERENCE: u8 = 13;
    pub(in crate::image) const COMPLEX: u8 = 14;
}

/// A table of objects identified by address. Each is written when it gets its number.
struct Table<T> {
    /// Keeps the objects alive, so that their addresses are not reused.
    items: Vec<Arc<T>>,
    numbers: HashMap<usize, usize>,
    out: Out,
}

impl<T> Default for Table<T> {
    fn default() -> Self {
        Self { items: Vec::new(), numbers: HashMap::new(), out: Out::default() }
    }
}

impl<T> Table<T> {
    fn known(&self, item: &Arc<T>) -> Option<usize> {
        self.numbers.get(&Arc::as_ptr(item).addr()).copied()
    }

    fn add(&mut self, item: &Arc<T>, written: Out) -> usize {
        let number = self.items.len();
        self.numbers.insert(Arc::as_ptr(item).addr(), number);
        self.items.push(Arc::clone(item));
        self.out.0.extend(written.0);
        number
    }

    fn assemble(&self, out: &mut Out) {
        out.number(self.items.len());
        out.0.extend_from_slice(&self.out.0);
    }
}

/// The objects numbered so far. Environment 0 is the system's.
pub(super) struct Syntax {
    pub(super) environments: Vec<Arc<Environment>>,
    numbers: HashMap<u64, usize>,
    aliases: Table<Alias>,
    data: Table<DatumKind>,
    macros: Table<Macro>,
}

impl Syntax {
    pub(super) fn new(system: &Arc<Environment>) -> Self {
        let mut syntax = Self {
            environments: Vec::new(),
            numbers: HashMap::new(),
            aliases: Table::default(),
            data: Table::default(),
            macros: Table::default(),
        };
        syntax.environment(system);
        syntax
    }

    /// An environment's number.
    pub(super) fn environment(&mut self, environment: &Arc<Environment>) -> usize {
        let next = self.environments.len();
        let number = *self.numbers.entry(environment.number()).or_insert(next);
        if number == next {
            self.environments.push(Arc::clone(environment));
        }
        number
    }

    pub(super) fn assemble(&self, out: &mut Out) {
        self.aliases.assemble(out);
        self.data.assemble(out);
        self.macros.assemble(out);
    }

    /// The names of an environment and what they mean.
    pub(super) fn bindings(
        &mut self,
        writer: &mut Writer<'_>,
        world: &World,
        number: usize,
        out: &mut Out,
    ) -> Result<()> {
        let bindings = self.environments[number].bindings();
        out.number(bindings.len());
        for (identifier, binding) in bindings {
            self.identifier(writer, world, &identifier, out);
            self.binding(writer, world, &binding, out)?;
        }
        Ok(())
    }

    fn binding(
        &mut self,
        writer: &mut Writer<'_>,
        world: &World,
        binding: &Binding,
        out: &mut Out,
    ) -> Result<()> {
        match binding {
            Binding::Special(special) => {
                let number = SPECIALS.iter().position(|(_, known)| known == special);
                out.byte(tag::SPECIAL);
                out.number(number.ok_or(ImageError::Damaged("a form without a name"))?);
            }
            Binding::Macro(rules) => match writer.macro_name(rules) {
                Some(name) => {
                    out.byte(tag::SYSTEM_MACRO);
                    writer.symbol(name, out);
                }
                None => {
                    let number = self.rules(writer, world, rules);
                    out.byte(tag::MACRO);
                    out.number(number);
                }
            },
            Binding::Variable { global, origin } => {
                out.byte(match origin {
                    Origin::Own => tag::OWN,
                    Origin::Imported => tag::IMPORTED,
                    Origin::Undefined => tag::UNDEFINED,
                });
                writer.location(global, out)?;
            }
        }
        Ok(())
    }

    fn rules(&mut self, writer: &mut Writer<'_>, world: &World, rules: &Arc<Macro>) -> usize {
        if let Some(number) = self.macros.known(rules) {
            return number;
        }
        let (written, home, name) = rules.source();
        let mut out = Out::default();
        self.home(world, home, &mut out);
        out.byte(u8::from(name.is_some()));
        if let Some(name) = name {
            writer.symbol(name, &mut out);
        }
        self.datum(writer, world, written, &mut out);
        self.macros.add(rules, out)
    }

    /// Writes the libraries that are not built in.
    pub(super) fn libraries(
        &mut self,
        writer: &mut Writer<'_>,
        world: &World,
        out: &mut Out,
    ) -> Result<()> {
        let libraries = world.own_libraries();
        out.number(libraries.len());
        for (name, library) in libraries {
            out.text(name);
            self.library(writer, world, library, out)?;
        }
        Ok(())
    }

    fn library(
        &mut self,
        writer: &mut Writer<'_>,
        world: &World,
        library: &Library,
        out: &mut Out,
    ) -> Result<()> {
        match library {
            Library::Loaded { exports, definition, ready, environment } => {
                out.byte(tag::LOADED);
                out.byte(u8::from(*ready));
                out.number(self.environment(environment));
                self.datum(writer, world, definition, out);
                out.number(exports.len());
                for (name, binding) in exports {
                    writer.symbol(*name, out);
                    self.binding(writer, world, binding, out)?;
                }
                Ok(())
            }
            Library::Declared(definition) => {
                out.byte(tag::DECLARED);
                self.datum(writer, world, definition, out);
                Ok(())
            }
            Library::BuiltIn(_) | Library::Text(..) | Library::Loading => {
                Err(ImageError::Damaged("a library in the middle of being loaded"))
            }
        }
    }

    fn home(&mut self, world: &World, home: Home, out: &mut Out) {
        match home {
            Home::Top(number) => match world.environment(number) {
                Some(environment) => {
                    out.byte(tag::TOP);
                    out.number(self.environment(&environment));
                }
                None => out.byte(tag::GONE),
            },
            Home::Scope(scope) => {
                out.byte(tag::SCOPE);
                out.count(scope.into());
            }
        }
    }

    fn identifier(
        &mut self,
        writer: &mut Writer<'_>,
        world: &World,
        identifier: &Identifier,
        out: &mut Out,
    ) {
        match identifier {
            Identifier::Symbol(symbol) => {
                out.byte(tag::SYMBOL);
                writer.symbol(*symbol, out);
            }
            Identifier::Alias(alias) => {
                let number = self.alias(writer, world, alias);
                out.byte(tag::ALIAS);
                out.number(number);
            }
        }
    }

    /// The number of an alias. The identifier that it renames has a smaller number.
    fn alias(&mut self, writer: &mut Writer<'_>, world: &World, alias: &Arc<Alias>) -> usize {
        let mut chain = Vec::new();
        let mut next = Some(alias);
        while let Some(alias) = next.filter(|alias| self.aliases.known(alias).is_none()) {
            chain.push(alias);
            next = match &alias.of {
                Identifier::Alias(of) => Some(of),
                Identifier::Symbol(_) => None,
            };
        }
        for alias in chain.into_iter().rev() {
            let mut out = Out::default();
            match &alias.of {
                Identifier::Symbol(symbol) => {
                    out.byte(tag::SYMBOL);
                    writer.symbol(*symbol, &mut out);
                }
                Identifier::Alias(of) => {
                    out.byte(tag::ALIAS);
                    out.number(self.aliases.known(of).unwrap_or(0));
                }
            }
            self.home(world, alias.home, &mut out);
            out.count(alias.generation.into());
            self.aliases.add(alias, out);
        }
        self.aliases.known(alias).unwrap_or(0)
    }

    /// Writes a datum: its number and position. Its parts have smaller numbers.
    fn datum(&mut self, writer: &mut Writer<'_>, world: &World, datum: &Datum, out: &mut Out) {
        let mut pending = vec![datum];
        while let Some(&datum) = pending.last() {
            if self.data.known(&datum.kind).is_some() {
                pending.pop();
                continue;
            }
            let before = pending.len();
            let known = |part: &&Datum| self.data.known(&part.kind).is_none();
            match &*datum.kind {
                DatumKind::Pair(car, cdr) => pending.extend([cdr, car].into_iter().filter(known)),
                DatumKind::Vector(items) => pending.extend(items.iter().filter(known)),
                DatumKind::Label(_, labelled) => {
                    pending.extend([labelled].into_iter().filter(known));
                }
                _ => {}
            }
            if pending.len() == before {
                let mut written = Out::default();
                self.kind(writer, world, &datum.kind, &mut written);
                self.data.add(&datum.kind, written);
                pending.pop();
            }
        }
        self.part(writer, datum, out);
    }

    /// Writes a datum that has a number already.
    fn part(&self, writer: &mut Writer<'_>, datum: &Datum, out: &mut Out) {
        out.number(self.data.known(&datum.kind).unwrap_or(0));
        writer.span(datum.span, out);
    }

    fn kind(&mut self, writer: &mut Writer<'_>, world: &World, kind: &DatumKind, out: &mut Out) {
        match kind {
            DatumKind::Boolean(false) => out.byte(tag::FALSE),
            DatumKind::Boolean(true) => out.byte(tag::TRUE),
            DatumKind::Character(c) => {
                out.byte(tag::CHARACTER);
                out.count(u32::from(*c).into());
            }
            DatumKind::String(text) => {
                out.byte(tag::STRING);
                out.text(text);
            }
            DatumKind::Symbol(symbol) => {
                out.byte(tag::IDENTIFIER);
                self.identifier(writer, world, &Identifier::Symbol(*symbol), out);
            }
            DatumKind::Alias(alias) => {
                out.byte(tag::IDENTIFIER);
                self.identifier(writer, world, &Identifier::Alias(Arc::clone(alias)), out);
            }
            DatumKind::Number(number) => literal(number, out),
            DatumKind::Nil => out.byte(tag::NIL),
            DatumKind::Bytevector(bytes) => {
                out.byte(tag::BYTEVECTOR);
                out.bytes(bytes);
            }
            DatumKind::Reference(label) => {
                out.byte(tag::REFERENCE);
                out.count(*label);
            }
            DatumKind::Pair(car, cdr) => {
                out.byte(tag::PAIR);
                self.part(writer, car, out);
                self.part(writer, cdr, out);
            }
            DatumKind::Vector(items) => {
                out.byte(tag::VECTOR);
                out.number(items.len());
                items.iter().for_each(|item| self.part(writer, item, out));
            }
            DatumKind::Label(label, labelled) => {
                out.byte(tag::LABEL);
                out.count(*label);
                self.part(writer, labelled, out);
            }
        }
    }
}

fn literal(number: &NumberLiteral, out: &mut Out) {
    match number {
        NumberLiteral::Integer(n) => {
            out.byte(tag::INTEGER);
            out.bytes(&num_bigint::BigInt::from(*n).to_signed_bytes_le());
        }
        NumberLiteral::Big(n) => {
            out.byte(tag::INTEGER);
            out.bytes(&n.to_signed_bytes_le());
        }
        NumberLiteral::Ratio(ratio) => {
            out.byte(tag::RATIO);
            out.bytes(&ratio.numer().to_signed_bytes_le());
            out.bytes(&ratio.denom().to_signed_bytes_le());
        }
        NumberLiteral::Real(real) => {
            out.byte(tag::REAL);
            out.word(real.to_bits());
        }
        NumberLiteral::Complex(parts) => {
            out.byte(tag::COMPLEX);
            parts.iter().for_each(|part| literal(part, out));
        }
    }
}
