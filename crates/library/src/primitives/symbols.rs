//! Symbols and booleans.

use super::Primitive;
use super::call::Call;
use kyocho_heap::heap::Mutator;
use kyocho_heap::heap::object::FLAG_IMMUTABLE;
use kyocho_heap::raise::Result;
use kyocho_heap::value::Value;
use kyocho_syntax::symbol::Symbol;
use kyocho_sys::prim::atomic::{AtomicU64, Ordering};

pub(super) const TABLE: &[Primitive] = &[
    Primitive::exactly("symbol?", 1, |_, a| Ok(Value::boolean(a[0].is_symbol()))),
    Primitive::exactly("symbol->string", 1, symbol_to_string),
    Primitive::exactly("string->symbol", 1, |m, a| intern(m, "string->symbol", a)),
    Primitive::exactly("intern", 1, |m, a| intern(m, "intern", a)),
    Primitive::exactly("string->uninterned-symbol", 1, |m, a| {
        let name = Call::new("string->uninterned-symbol", a).text(0)?.to_rust_in_parts(m)?;
        m.admit_symbols()?;
        Ok(Value::symbol(Symbol::uninterned(&name)))
    }),
    Primitive::at_least("symbol=?", 1, |_, a| all_same("symbol=?", a, Value::is_symbol, "symbol")),
    Primitive::at_least("symbol-append", 0, symbol_append),
    Primitive::between("generate-symbol", 0, 1, |m, a| generate(m, "generate-symbol", a)),
    Primitive::between("gensym", 0, 1, |m, a| generate(m, "gensym", a)),
    Primitive::exactly("symbol<?", 2, |_, a| {
        let call = Call::new("symbol<?", a);
        Ok(Value::boolean(call.symbol(0)?.name() < call.symbol(1)?.name()))
    }),
    Primitive::exactly("boolean?", 1, |_, a| Ok(Value::boolean(is_boolean(a[0])))),
    Primitive::at_least("boolean=?", 1, |_, a| all_same("boolean=?", a, is_boolean, "boolean")),
    Primitive::exactly("not", 1, |_, a| Ok(Value::boolean(!a[0].is_true()))),
];

fn is_boolean(value: Value) -> bool {
    value == Value::TRUE || value == Value::FALSE
}

fn symbol_to_string(m: &mut Mutator, arguments: &[Value]) -> Result {
    let symbol = Call::new("symbol->string", arguments).symbol(0)?;
    let name = m.string(symbol.name())?;
    // A symbol's name is immutable (R7RS 6.5), although it is a copy.
    name.set_flags(FLAG_IMMUTABLE);
    Ok(name)
}

fn intern(m: &mut Mutator, who: &'static str, arguments: &[Value]) -> Result {
    let name = Call::new(who, arguments).text(0)?.to_rust_in_parts(m)?;
    admitted(m, &name)
}

/// The symbol of this name, if the account may make it.
fn admitted(m: &Mutator, name: &str) -> Result {
    if let Some(symbol) = Symbol::find(name) {
        return Ok(Value::symbol(symbol));
    }
    m.admit_symbols()?;
    Ok(Value::symbol(Symbol::intern(name)))
}

fn symbol_append(m: &mut Mutator, arguments: &[Value]) -> Result {
    let call = Call::new("symbol-append", arguments);
    let mut name = String::new();
    for i in 0..arguments.len() {
        name.push_str(call.symbol(i)?.name());
    }
    admitted(m, &name)
}

/// A new symbol that equals no other, with a name that shows this.
fn generate(m: &mut Mutator, who: &'static str, arguments: &[Value]) -> Result {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let call = Call::new(who, arguments);
    let prefix = match call.optional(0) {
        None => "g".to_owned(),
        Some(value) => match value.as_symbol() {
            Some(symbol) => symbol.name().to_owned(),
            None => call.string(0)?,
        },
    };
    m.admit_symbols()?;
    let serial = COUNT.fetch_add(1, Ordering::Relaxed);
    Ok(Value::symbol(Symbol::uninterned(&format!("{prefix}{serial}"))))
}

fn all_same(
    who: &'static str,
    arguments: &[Value],
    test: fn(Value) -> bool,
    expected: &'static str,
) -> Result {
    if let Some(i) = arguments.iter().position(|&value| !test(value)) {
        return Err(Call::new(who, arguments).wrong(i, expected));
    }
    Ok(Value::boolean(arguments.windows(2).all(|pair| pair[0] == pair[1])))
}
