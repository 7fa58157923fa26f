//! The expansions of forms, written as text: local variables as `name.number`, system names without
//! a number.

use super::{Core, TopLevel};
use crate::core_form::{Clause, Variable};
use crate::environment::Environment;
use crate::reader::read_all;
use crate::world::World;
use std::rc::Rc;
use std::sync::Arc;

mod errors;
mod forms;
mod hygiene;
mod marks;
mod top_level;

/// Writes core forms. Numbers variables in the order of their first occurrence.
#[derive(Default)]
struct Writer {
    seen: Vec<Rc<Variable>>,
}

impl Writer {
    fn name(&mut self, variable: &Rc<Variable>) -> String {
        let at =
            self.seen.iter().position(|seen| Rc::ptr_eq(seen, variable)).unwrap_or_else(|| {
                self.seen.push(Rc::clone(variable));
                self.seen.len() - 1
            });
        format!("{}.{at}", variable.name)
    }

    fn bindings(&mut self, bindings: &[(Rc<Variable>, Core)]) -> String {
        let shown: Vec<String> = bindings
            .iter()
            .map(|(variable, value)| format!("({} {})", self.name(variable), self.core(value)))
            .collect();
        format!("({})", shown.join(" "))
    }

    #[inline(never)]
    fn clause(&mut self, clause: &Clause) -> String {
        let mut formals: Vec<String> = clause.required.iter().map(|v| self.name(v)).collect();
        if let Some(rest) = &clause.rest {
            formals.push(format!(". {}", self.name(rest)));
        }
        format!("({}) {}", formals.join(" "), self.core(&clause.body))
    }

    fn all(&mut self, cores: &[Core]) -> String {
        cores.iter().map(|core| self.core(core)).collect::<Vec<_>>().join(" ")
    }

    fn core(&mut self, core: &Core) -> String {
        match core {
            Core::Constant(datum) => format!("'{datum}"),
            Core::Unspecified => "#!unspecified".to_owned(),
            Core::Local(variable, _) => self.name(variable),
            Core::SetLocal(variable, value, _) => {
                format!("(set! {} {})", self.name(variable), self.core(value))
            }
            Core::Global(global, _) => global.name.to_string(),
            Core::SetGlobal(global, value, _) => {
                format!("(set! {} {})", global.name, self.core(value))
            }
            Core::DefineGlobal(global, value, _) => {
                format!("(define {} {})", global.name, self.core(value))
            }
            Core::If(test, then, otherwise) => {
                format!("(if {} {} {})", self.core(test), self.core(then), self.core(otherwise))
            }
            Core::Sequence(forms) => format!("(begin {})", self.all(forms)),
            Core::Lambda(lambda) => match &lambda.clauses[..] {
                [clause] => format!("(lambda {})", self.clause(clause)),
                clauses => {
                    let shown: Vec<_> =
                        clauses.iter().map(|clause| format!("({})", self.clause(clause))).collect();
                    format!("(case-lambda {})", shown.join(" "))
                }
            },
            Core::Let(bindings, body) => {
                format!("(let {} {})", self.bindings(bindings), self.core(body))
            }
            Core::Letrec(bindings, body) => {
                format!("(letrec {} {})", self.bindings(bindings), self.core(body))
            }
            Core::Call(procedure, arguments, _) if arguments.is_empty() => {
                format!("({})", self.core(procedure))
            }
            Core::Call(procedure, arguments, _) => {
                format!("({} {})", self.core(procedure), self.all(arguments))
            }
        }
    }
}

/// A prompt without the prelude: names that the prelude would define are unbound.
struct Prompt {
    world: World,
    environment: Arc<Environment>,
}

impl Prompt {
    fn new() -> Self {
        let mut world = World::new();
        for name in ["car", "cdr", "cons", "list", "not", "+", "display"] {
            world.system().define_name(name);
        }
        let environment = world.interaction_environment();
        Self { world, environment }
    }

    /// Expands every form of `text`. Returns the core forms of all, or the first error.
    fn try_expand(&mut self, text: &str) -> Result<Vec<TopLevel>, String> {
        let mut out = Vec::new();
        for form in read_all(text, "test").map_err(|error| error.to_string())? {
            let more =
                self.world.expand(&self.environment, &form).map_err(|error| error.to_string())?;
            for item in more {
                self.run(&item);
                out.push(item);
            }
        }
        Ok(out)
    }

    /// Tells the world what running the item would tell it.
    fn run(&mut self, item: &TopLevel) {
        if let TopLevel::Ready(name) = item {
            self.world.library_ready(name);
        }
    }

    fn expand(&mut self, text: &str) -> String {
        show(&self.try_expand(text).unwrap())
    }

    fn error(&mut self, text: &str) -> String {
        match self.try_expand(text) {
            Ok(forms) => panic!("{text:.200} expands to {:.200}", show(&forms)),
            Err(error) => error,
        }
    }
}

fn show(forms: &[TopLevel]) -> String {
    let shown: Vec<String> = forms
        .iter()
        .map(|form| match form {
            TopLevel::Form(core) => Writer::default().core(core),
            TopLevel::Ready(name) => format!("ready {name}"),
        })
        .collect();
    shown.join("\n")
}

/// The expansion of `text` as a separate program.
fn expand(text: &str) -> String {
    Prompt::new().expand(text)
}

/// The error from expanding `text` as a separate program.
fn error(text: &str) -> String {
    Prompt::new().error(text)
}
