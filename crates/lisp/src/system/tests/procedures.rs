//! The table of exported names, `docs/scheme-procedures.md`: generated from the libraries, and
//! checked.
//!
//! `KYOCHO_WRITE_TABLE=1 cargo test -p kyocho-lisp procedures` writes it anew.

use super::{boot, on, within_watchdog};
use crate::kernel::lock;
use crate::system::System;
use core::fmt::Write;
use kyocho_heap::heap::{Kind, location};
use kyocho_heap::value::Value;
use kyocho_syntax::datum::{Datum, DatumKind, Identifier};
use kyocho_syntax::environment::Binding;
use kyocho_syntax::reader::read_all;
use kyocho_syntax::symbol::Symbol;
use kyocho_syntax::world::World;
use kyocho_vm::machine::procedure::arities_of;
use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};

/// A part of SRFI 14 in a file of its own. SRFI 14 exports the same names.
const INTERNAL: &[&str] = &["(srfi 14 categories)"];
/// The program with a row for each error. Its errors do not show what a name does.
const ERRORS: &str = "errors";

const HEAD: &str = "# Scheme, procedure by procedure

A test writes this page from the libraries themselves:
`KYOCHO_WRITE_TABLE=1 cargo test -p kyocho-lisp procedures`. [scheme.md](scheme.md) says what the
libraries lack, and what was decided where the standards leave a choice.

Each name has one row, under the first library that exports it. The order is: R7RS, the SRFIs,
Kyocho's own libraries, and last the names that only `(kyocho)` exports. (`(kyocho)` exports all
names that are always loaded.)

- *Takes* is the number of arguments.
- *Also in* lists the other libraries that export the same thing.
- *Programs* are tests under `crates/lisp/tests/scheme` that import and use the name: the first four
  by name. Every name is used in at least one of them besides `errors`, which tests each error.
  Tests in Rust are not counted.
";

/// Maximum number of programs named in a row.
const PROGRAMS_SHOWN: usize = 4;

/// A name and its meaning, whichever library exports it.
struct Row {
    name: &'static str,
    binding: Binding,
    libraries: Vec<String>,
    programs: Vec<String>,
}

struct Table {
    libraries: Vec<String>,
    rows: Vec<Row>,
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The position of a library in the table: those of R7RS, SRFIs by number, Kyocho's; the library
/// with all names last.
fn place(library: &str) -> (usize, u32, String) {
    let words: Vec<_> = library.trim_matches(['(', ')']).split(' ').collect();
    let group = match words[..] {
        ["scheme", "base"] => 0,
        ["scheme", "r5rs"] => 2,
        ["scheme", ..] => 1,
        ["srfi", ..] => 3,
        ["kyocho", _, ..] => 4,
        _ => 5,
    };
    let number = words.get(1).and_then(|word| word.parse().ok()).unwrap_or(0);
    (group, number, library.to_owned())
}

fn datum(text: &str) -> Datum {
    read_all(text, "table").unwrap().remove(0)
}

/// Reads every library, and returns their names in the table's order.
fn load_all(system: &System) -> Vec<String> {
    let known = lock(&system.kernel.base.world).library_names();
    let mut libraries: Vec<_> =
        known.into_iter().filter(|name| !INTERNAL.contains(&&**name)).collect();
    libraries.sort_by_key(|library| place(library));
    let mut session = system.session();
    for library in &libraries {
        session.eval(&format!("(begin (environment '{library}) #t)"), "table").unwrap();
    }
    libraries
}

/// The bindings of an import set, if all of its libraries exist.
fn imports(world: &mut World, set: &Datum) -> Vec<(Symbol, Binding)> {
    let Ok((environment, rest)) = world.environment_of(core::slice::from_ref(set)) else {
        return Vec::new();
    };
    assert!(rest.is_empty(), "{set} is read already");
    let named = |(name, binding)| match name {
        Identifier::Symbol(symbol) => Some((symbol, binding)),
        Identifier::Alias(_) => None,
    };
    environment.bindings().into_iter().filter_map(named).collect()
}

impl Table {
    fn of(system: &System) -> Self {
        let libraries = load_all(system);
        let mut table = Self { libraries: libraries.clone(), rows: Vec::new() };
        let world = &mut lock(&system.kernel.base.world);
        for library in libraries {
            for (name, binding) in imports(world, &datum(&library)) {
                table.note(&library, name.name(), binding);
            }
        }
        table.rows.sort_by_key(|row| row.name);
        table.note_programs(world);
        table
    }

    fn row(&mut self, name: &str, binding: &Binding) -> Option<&mut Row> {
        let same = |row: &&mut Row| row.name == name && row.binding.is_same(binding);
        self.rows.iter_mut().find(same)
    }

    fn note(&mut self, library: &str, name: &'static str, binding: Binding) {
        match self.row(name, &binding) {
            Some(row) => row.libraries.push(library.to_owned()),
            None => {
                let libraries = vec![library.to_owned()];
                self.rows.push(Row { name, binding, libraries, programs: Vec::new() });
            }
        }
    }

    fn note_programs(&mut self, world: &mut World) {
        let mut programs = Vec::new();
        for entry in std::fs::read_dir(root().join("crates/lisp/tests/scheme")).unwrap() {
            let path = entry.unwrap().path();
            let stem = path.file_stem().unwrap().to_str().unwrap().to_owned();
            if stem != "harness" && path.extension().is_some_and(|extension| extension == "scm") {
                programs.push((stem, std::fs::read_to_string(&path).unwrap()));
            }
        }
        programs.sort();
        for (stem, text) in programs {
            let mut uses = Uses::default();
            read_all(&text, &stem).unwrap().iter().for_each(|form| uses.look(form));
            let met = uses.imports.iter().flat_map(|set| imports(world, set));
            let used = met.filter(|(name, _)| uses.names.contains(name));
            used.for_each(|(name, binding)| self.note_program(&stem, name.name(), &binding));
        }
    }

    /// Records that a program uses the meaning of `name`, which may have a prefix there.
    fn note_program(&mut self, program: &str, name: &str, binding: &Binding) {
        let is_meant = |row: &&mut Row| row.binding.is_same(binding) && name.ends_with(row.name);
        for row in self.rows.iter_mut().filter(is_meant) {
            if !row.programs.iter().any(|other| other == program) {
                row.programs.push(program.to_owned());
            }
        }
    }

    /// Names that no program tests.
    fn untried(&self) -> Vec<&str> {
        let is_tried = |row: &Row| row.programs.iter().any(|program| program != ERRORS);
        self.rows.iter().filter(|row| !is_tried(row)).map(|row| row.name).collect()
    }

    fn text(&self) -> String {
        let mut text = HEAD.to_owned();
        for library in &self.libraries {
            let (own, others): (Vec<_>, Vec<_>) = self
                .rows
                .iter()
                .filter(|row| row.libraries.contains(library))
                .partition(|row| row.libraries[0] == *library);
            let _ = write!(text, "\n## `{library}`\n\n");
            if !own.is_empty() {
                text += "| name | kind | takes | also in | programs |\n|---|---|---|---|---|\n";
                own.iter().for_each(|row| row.write(&mut text));
            }
            if library != "(kyocho)" {
                write_others(&others, !own.is_empty(), &mut text);
            }
            if own.is_empty() && others.is_empty() {
                text += "Exports nothing: what it describes is part of the reader.\n";
            }
        }
        text
    }
}

/// The names that a library shares with earlier ones, library by library.
fn write_others(others: &[&Row], more: bool, text: &mut String) {
    let mut homes: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for row in others {
        homes.entry(place(&row.libraries[0])).or_default().push(format!("`{}`", row.name));
    }
    for (i, ((_, _, home), names)) in homes.into_iter().enumerate() {
        let gap = if i > 0 || more { "\n" } else { "" };
        let _ = writeln!(text, "{gap}From `{home}`: {}.", names.join(" "));
    }
}

impl Row {
    fn value(&self) -> Option<Value> {
        match &self.binding {
            Binding::Variable { global, .. } => Some(location::value(global)),
            Binding::Special(_) | Binding::Macro(_) => None,
        }
    }

    /// Its kind, and the number of its arguments.
    fn kind(&self) -> (&'static str, String) {
        let Some(value) = self.value() else { return ("syntax", String::new()) };
        assert_ne!(value, Value::UNBOUND, "{} of {} has no value", self.name, self.libraries[0]);
        let in_words = |&(min, max): &(usize, Option<usize>)| match max {
            Some(max) if max == min => min.to_string(),
            Some(max) => format!("{min} to {max}"),
            None => format!("{min} or more"),
        };
        match arities_of(value) {
            Some(arities) => {
                let clauses: Vec<_> = arities.iter().map(in_words).collect();
                ("procedure", clauses.join(", "))
            }
            None if value.is_kind(Kind::Parameter) => ("parameter", "0".to_owned()),
            None => ("value", String::new()),
        }
    }

    fn write(&self, text: &mut String) {
        let (kind, takes) = self.kind();
        let others = self.libraries[1..].iter().filter(|library| *library != "(kyocho)");
        let others: Vec<_> = others.map(|library| format!("`{library}`")).collect();
        let programs = match self.programs.get(..PROGRAMS_SHOWN) {
            Some(first) if self.programs.len() > PROGRAMS_SHOWN => first.join(", ") + ", others",
            _ => self.programs.join(", "),
        };
        let name = self.name.replace('|', "\\|");
        let _ =
            writeln!(text, "| `{name}` | {kind} | {takes} | {} | {programs} |", others.join(" "));
    }
}

/// The import sets of a program, and the names outside of quotations.
#[derive(Default)]
struct Uses {
    imports: Vec<Datum>,
    names: HashSet<Symbol>,
}

impl Uses {
    fn look(&mut self, form: &Datum) {
        if let Some(symbol) = form.as_symbol() {
            self.names.insert(symbol);
        } else if let DatumKind::Vector(elements) = &*form.kind {
            elements.iter().for_each(|element| self.look(element));
        } else if let Some((head, rest)) = form.as_pair() {
            self.look(head);
            let quoted = |set: &Datum| set.elements().nth(1).cloned();
            match head.as_symbol().map(Symbol::name) {
                Some("quote") => {}
                Some("import") => self.imports.extend(rest.elements().cloned()),
                Some("environment") => self.imports.extend(rest.elements().filter_map(quoted)),
                _ => self.look_at_rest(rest),
            }
        }
    }

    fn look_at_rest(&mut self, mut rest: &Datum) {
        while let Some((item, more)) = rest.as_pair() {
            self.look(item);
            rest = more;
        }
        self.look(rest);
    }
}

#[test]
fn the_table_of_procedures_is_up_to_date_and_all_names_are_tested() {
    let (untried, text) = within_watchdog(|| {
        let table = Table::of(&boot(on(1)));
        let untried: Vec<_> = table.untried().into_iter().map(str::to_owned).collect();
        (untried, table.text())
    });
    let path = root().join("docs/scheme-procedures.md");
    if std::env::var_os("KYOCHO_WRITE_TABLE").is_some() {
        std::fs::write(&path, &text).unwrap();
    }
    assert_eq!(untried, Vec::<String>::new(), "no program of tests/scheme tests these");
    let written = std::fs::read_to_string(&path).unwrap_or_default();
    let differs = written.lines().zip(text.lines()).find(|(old, new)| old != new);
    assert!(
        written == text,
        "docs/scheme-procedures.md is out of date: {differs:?}\n\
         `KYOCHO_WRITE_TABLE=1 cargo test -p kyocho-lisp procedures` writes it anew"
    );
}
