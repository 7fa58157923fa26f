//! Reads the state of the expander; the counterpart of `writer/syntax.rs`.

use super::Names;
use crate::image::ImageError;
use crate::image::wire::{In, at};
use crate::image::writer::syntax::tag;
use kyocho_syntax::datum::{Alias, Datum, DatumKind, Home, Identifier, NumberLiteral};
use kyocho_syntax::environment::{Binding, Environment, Origin};
use kyocho_syntax::library::Library;
use kyocho_syntax::rules::Macro;
use kyocho_syntax::special::SPECIALS;
use kyocho_syntax::world::World;
use num_bigint::BigInt;
use num_rational::BigRational;
use std::sync::Arc;

type Result<T> = core::result::Result<T, ImageError>;

const UNKNOWN: ImageError = ImageError::Damaged("a thing of no kind");

/// What has been read.
pub(super) struct Syntax<'a> {
    pub(super) names: &'a Names,
    pub(super) environments: &'a [Arc<Environment>],
    aliases: Vec<Arc<Alias>>,
    data: Vec<Arc<DatumKind>>,
    macros: Vec<Arc<Macro>>,
}

impl<'a> Syntax<'a> {
    /// Aliases, data and macros.
    pub(super) fn read(
        input: &mut In<'_>,
        names: &'a Names,
        environments: &'a [Arc<Environment>],
        world: &mut World,
    ) -> Result<Self> {
        let (aliases, data, macros) = Default::default();
        let mut syntax = Self { names, environments, aliases, data, macros };
        for _ in 0..input.length()? {
            let alias = syntax.alias(input)?;
            syntax.aliases.push(Arc::new(alias));
        }
        for _ in 0..input.length()? {
            let kind = syntax.kind(input)?;
            syntax.data.push(Arc::new(kind));
        }
        for _ in 0..input.length()? {
            let rules = syntax.rules(input, world)?;
            syntax.macros.push(Arc::new(rules));
        }
        Ok(syntax)
    }

    fn home(&self, input: &mut In<'_>) -> Result<Home> {
        match input.byte()? {
            tag::TOP => Ok(Home::Top(at(self.environments, input.number()?)?.number())),
            tag::SCOPE => Ok(Home::Scope(input.small()?)),
            tag::GONE => Ok(Home::Top(u64::MAX)),
            _ => Err(UNKNOWN),
        }
    }

    fn identifier(&self, input: &mut In<'_>) -> Result<Identifier> {
        match input.byte()? {
            tag::SYMBOL => Ok(Identifier::Symbol(self.names.symbol(input)?)),
            tag::ALIAS => Ok(Identifier::Alias(Arc::clone(at(&self.aliases, input.number()?)?))),
            _ => Err(UNKNOWN),
        }
    }

    fn alias(&self, input: &mut In<'_>) -> Result<Alias> {
        let (of, home) = (self.identifier(input)?, self.home(input)?);
        Ok(Alias { of, home, generation: input.small()? })
    }

    fn datum(&self, input: &mut In<'_>) -> Result<Datum> {
        let kind = Arc::clone(at(&self.data, input.number()?)?);
        Ok(Datum { kind, span: self.names.span(input)? })
    }

    fn kind(&self, input: &mut In<'_>) -> Result<DatumKind> {
        Ok(match input.byte()? {
            tag::FALSE => DatumKind::Boolean(false),
            tag::TRUE => DatumKind::Boolean(true),
            tag::CHARACTER => DatumKind::Character(
                char::from_u32(input.small()?).ok_or(ImageError::Damaged("no character"))?,
            ),
            tag::STRING => DatumKind::String(input.text()?.to_owned()),
            tag::IDENTIFIER => match self.identifier(input)? {
                Identifier::Symbol(symbol) => DatumKind::Symbol(symbol),
                Identifier::Alias(alias) => DatumKind::Alias(alias),
            },
            kind @ (tag::INTEGER | tag::RATIO | tag::REAL) => {
                DatumKind::Number(real_number(kind, input)?)
            }
            tag::COMPLEX => {
                let kind = input.byte()?;
                let real = real_number(kind, input)?;
                let kind = input.byte()?;
                let imaginary = real_number(kind, input)?;
                DatumKind::Number(NumberLiteral::Complex(Box::new([real, imaginary])))
            }
            tag::PAIR => DatumKind::Pair(self.datum(input)?, self.datum(input)?),
            tag::NIL => DatumKind::Nil,
            tag::VECTOR => {
                let length = input.length()?;
                DatumKind::Vector((0..length).map(|_| self.datum(input)).collect::<Result<_>>()?)
            }
            tag::BYTEVECTOR => DatumKind::Bytevector(input.bytes()?.to_vec()),
            tag::LABEL => DatumKind::Label(input.count()?, self.datum(input)?),
            tag::REFERENCE => DatumKind::Reference(input.count()?),
            _ => return Err(UNKNOWN),
        })
    }

    fn rules(&self, input: &mut In<'_>, world: &mut World) -> Result<Macro> {
        let home = self.home(input)?;
        let name = if input.flag()? { Some(self.names.symbol(input)?) } else { None };
        let written = self.datum(input)?;
        let environment = match home {
            Home::Top(number) => world.environment(number),
            Home::Scope(_) => None,
        };
        let environment = environment.unwrap_or_else(|| Arc::clone(world.system()));
        world
            .restore_macro(environment, (&written, home, name))
            .map_err(|_| ImageError::Damaged("a macro that is none"))
    }

    fn binding(&self, input: &mut In<'_>, world: &World) -> Result<Binding> {
        let origin = match input.byte()? {
            tag::SPECIAL => return Ok(Binding::Special(at(SPECIALS, input.number()?)?.1)),
            tag::SYSTEM_MACRO => {
                let name = Identifier::Symbol(self.names.symbol(input)?);
                let binding = world.system().lookup(&name);
                return binding.ok_or(ImageError::Damaged("a macro that is nowhere"));
            }
            tag::MACRO => {
                return Ok(Binding::Macro(Arc::clone(at(&self.macros, input.number()?)?)));
            }
            tag::OWN => Origin::Own,
            tag::IMPORTED => Origin::Imported,
            tag::UNDEFINED => Origin::Undefined,
            _ => return Err(UNKNOWN),
        };
        Ok(Binding::Variable { global: self.names.global(input)?, origin })
    }

    /// The names of an environment.
    pub(super) fn bindings(
        &self,
        input: &mut In<'_>,
        world: &World,
        environment: &Environment,
    ) -> Result<()> {
        for _ in 0..input.length()? {
            let identifier = self.identifier(input)?;
            environment.bind(identifier, self.binding(input, world)?);
        }
        Ok(())
    }

    /// Reads the libraries. The world gets them when all are read.
    pub(super) fn libraries(
        &self,
        input: &mut In<'_>,
        world: &World,
    ) -> Result<Vec<(Arc<str>, Library)>> {
        let count = input.length()?;
        (0..count).map(|_| self.library(input, world)).collect()
    }

    fn library(&self, input: &mut In<'_>, world: &World) -> Result<(Arc<str>, Library)> {
        let name = input.text()?.into();
        let library = match input.byte()? {
            tag::DECLARED => Library::Declared(self.datum(input)?),
            tag::LOADED => {
                let ready = input.flag()?;
                let environment = Arc::clone(at(self.environments, input.number()?)?);
                let definition = self.datum(input)?;
                let count = input.length()?;
                let export = |_| Ok((self.names.symbol(input)?, self.binding(input, world)?));
                let exports = (0..count).map(export).collect::<Result<_>>()?;
                Library::Loaded { exports, definition, ready, environment }
            }
            _ => return Err(UNKNOWN),
        };
        Ok((name, library))
    }
}

fn real_number(kind: u8, input: &mut In<'_>) -> Result<NumberLiteral> {
    Ok(match kind {
        tag::INTEGER => {
            let n = integer(input)?;
            let short = i64::try_from(&n).map(NumberLiteral::Integer);
            short.unwrap_or(NumberLiteral::Big(n))
        }
        tag::RATIO => {
            let (numerator, denominator) = (integer(input)?, integer(input)?);
            if denominator == BigInt::ZERO {
                return Err(ImageError::Damaged("a ratio to nothing"));
            }
            NumberLiteral::Ratio(BigRational::new(numerator, denominator))
        }
        tag::REAL => NumberLiteral::Real(f64::from_bits(input.word()?)),
        _ => return Err(UNKNOWN),
    })
}

fn integer(input: &mut In<'_>) -> Result<BigInt> {
    Ok(BigInt::from_signed_bytes_le(input.bytes()?))
}
