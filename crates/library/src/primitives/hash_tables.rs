//! Hash tables as the prelude uses them. SRFI 69 and 125 are written in the prelude on top of these
//! primitives.

use super::Primitive;
use super::call::Call;
use super::lists::Builder;
use kyocho_heap::hash_table::{self, Equivalence, Table, Walk, Weakness};
use kyocho_heap::heap::Mutator;
use kyocho_heap::heap::object::Kind;
use kyocho_heap::raise::Result;
use kyocho_heap::text::Text;
use kyocho_heap::value::Value;
use kyocho_syntax::symbol::Symbol;

pub(super) const TABLE: &[Primitive] = &[
    Primitive::exactly("hash-table?", 1, |_, a| Ok(Value::boolean(a[0].is_kind(Kind::HashTable)))),
    Primitive::exactly("%make-hash-table", 4, make),
    Primitive::exactly("%hash-table-weakness", 1, |_, a| {
        Ok(match hash_table::weakness(a[0]) {
            Weakness::None => Value::FALSE,
            Weakness::Keys => Value::symbol(Symbol::intern(WEAK_KEYS)),
            Weakness::Values => Value::symbol(Symbol::intern(WEAK_VALUES)),
            Weakness::Both => Value::symbol(Symbol::intern(WEAK_BOTH)),
        })
    }),
    Primitive::exactly("%hash-table-custom?", 1, |_, a| {
        let equivalence = hash_table::equivalence(a[0]);
        Ok(Value::boolean(equivalence == Some(Equivalence::Custom)))
    }),
    Primitive::exactly("%hash-table-procedures", 1, |_, a| Ok(hash_table::procedures(a[0]))),
    // A custom table looks empty to this primitive; the prelude then searches it.
    Primitive::exactly("%hash-table-ref", 3, |_, a| {
        let table = table(Call::new("hash-table-ref", a))?;
        Ok(table.get(a[1]).filter(|_| !table.is_custom()).unwrap_or(a[2]))
    }),
    Primitive::exactly("%bucket-ref", 2, |_, a| {
        let table = table(Call::new("%bucket-ref", a))?;
        Ok(table.get(a[1]).unwrap_or(Value::NIL))
    }),
    Primitive::exactly("%bucket-set!", 3, |m, a| {
        table(Call::new("%bucket-set!", a))?.set(m, a[1], a[2])?;
        Ok(Value::UNSPECIFIED)
    }),
    Primitive::exactly("%hash-table-set!", 3, set),
    Primitive::exactly("%hash-table-delete!", 2, |_, a| {
        let mut table = table(Call::new("hash-table-delete!", a))?;
        Ok(Value::boolean(table.delete(a[1])))
    }),
    Primitive::exactly("%hash-table-contains?", 2, |_, a| {
        let table = table(Call::new("hash-table-contains?", a))?;
        Ok(Value::boolean(!table.is_custom() && table.get(a[1]).is_some()))
    }),
    Primitive::exactly("%hash-table-size", 1, |m, a| {
        drop(table(Call::new("hash-table-size", a))?);
        Ok(Value::fixnum(hash_table::count(m, a[0])? as i64))
    }),
    Primitive::exactly("%hash-table-clear!", 1, |m, a| {
        table(Call::new("hash-table-clear!", a))?.clear(m)?;
        Ok(Value::UNSPECIFIED)
    }),
    Primitive::exactly("%hash-table-copy", 1, |m, a| {
        let table = table(Call::new("hash-table-copy", a))?;
        hash_table::copy(m, table)
    }),
    Primitive::exactly("%hash-table-keys", 1, |m, a| {
        list(m, Call::new("hash-table-keys", a), |_, (key, _)| Ok(key))
    }),
    Primitive::exactly("%hash-table-values", 1, |m, a| {
        list(m, Call::new("hash-table-values", a), |_, (_, value)| Ok(value))
    }),
    Primitive::exactly("%hash-table->alist", 1, |m, a| {
        let call = Call::new("hash-table->alist", a);
        list(m, call, |m, (key, value)| Ok(m.cons(key, value)?))
    }),
];

/// The table in argument 0, locked, if argument 1 may be a key of it.
fn table(call: Call<'_>) -> Result<Table> {
    let key = call.optional(1);
    if hash_table::equivalence(call.value(0)) == Some(Equivalence::String)
        && key.is_some_and(|key| Text::of(key).is_none())
    {
        return Err(call.wrong(1, "string"));
    }
    Table::lock(call.value(0)).ok_or_else(|| call.wrong(0, "hash table"))
}

const WEAK_KEYS: &str = "weak-keys";
const WEAK_VALUES: &str = "weak-values";
const WEAK_BOTH: &str = "weak-keys-and-values";

/// `(%make-hash-table equivalence procedures capacity weakness)`; the equivalence is one of the
/// symbols `eqv`, `equal`, `string`, `custom`, the weakness `weak-keys`, `weak-values`,
/// `weak-keys-and-values` or `#f`.
fn make(m: &mut Mutator, arguments: &[Value]) -> Result {
    let call = Call::new("make-hash-table", arguments);
    let equivalence = match call.symbol(0)?.name() {
        "eqv" => Equivalence::Eqv,
        "equal" => Equivalence::Equal,
        "string" => Equivalence::String,
        "custom" => Equivalence::Custom,
        _ => return Err(call.outside(0, "eqv, equal, string or custom")),
    };
    let capacity = call.count_at(2)?;
    let table = hash_table::make(m, equivalence, arguments[1], capacity)?;
    let weakness = match arguments[3].as_symbol().map(Symbol::name) {
        None => Weakness::None,
        Some(WEAK_KEYS) => Weakness::Keys,
        Some(WEAK_VALUES) => Weakness::Values,
        Some(WEAK_BOTH) => Weakness::Both,
        Some(_) => return Err(call.outside(3, "a weakness")),
    };
    hash_table::make_weak(table, weakness);
    Ok(table)
}

/// Returns whether the value was set. In a custom table it is not; the prelude does that.
fn set(m: &mut Mutator, arguments: &[Value]) -> Result {
    let mut table = table(Call::new("hash-table-set!", arguments))?;
    if table.is_custom() {
        return Ok(Value::FALSE);
    }
    table.set(m, arguments[1], arguments[2])?;
    Ok(Value::TRUE)
}

/// A list with an element for each association, oldest first.
fn list(
    m: &mut Mutator,
    call: Call<'_>,
    element: fn(&Mutator, (Value, Value)) -> Result,
) -> Result {
    let mut walk = Walk::over(table(call)?);
    let mut list = Builder::new();
    while let Some(part) = walk.next_part() {
        for association in part {
            let element = element(m, association)?;
            list.push(m, element)?;
        }
        let kept = list.kept();
        let (kept, ()) = m.keeping_over(kept, |m| m.pause_with(&mut walk.held().collect()))?;
        list = Builder::of(kept.unrooted(m));
    }
    Ok(list.finish())
}
