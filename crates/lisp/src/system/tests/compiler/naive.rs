//! The simplest evaluator of core forms: one Rust value for each Lisp value, one map for each
//! scope.

use core::cell::RefCell;
use core::fmt;
use kyocho_syntax::core_form::{Core, Lambda, Variable};
use kyocho_syntax::datum::{DatumKind, NumberLiteral};
use kyocho_syntax::world::World;
use std::collections::HashMap;
use std::rc::Rc;

#[derive(Clone)]
pub(super) enum Value {
    Number(i128),
    Boolean(bool),
    Unspecified,
    Procedure(Rc<Lambda>, Environment),
    Primitive(&'static str),
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(n) => n.fmt(f),
            Self::Boolean(truth) => f.write_str(if *truth { "#t" } else { "#f" }),
            Self::Unspecified => f.write_str("#<unspecified>"),
            Self::Procedure(..) | Self::Primitive(_) => f.write_str("#<procedure>"),
        }
    }
}

type Cell = Rc<RefCell<Value>>;
type Environment = HashMap<*const Variable, Cell>;

pub(super) struct Naive {
    primitives: HashMap<usize, &'static str>,
}

const PRIMITIVES: [&str; 8] = ["+", "-", "*", "remainder", "<", "=", ">=", "not"];

impl Naive {
    pub(super) fn new(world: &World) -> Self {
        let primitives = PRIMITIVES.iter().map(|&name| (world.runtime(name).address(), name));
        Self { primitives: primitives.collect() }
    }

    pub(super) fn evaluate(&self, core: &Core) -> Value {
        self.value(core, &Environment::new())
    }

    fn value(&self, core: &Core, environment: &Environment) -> Value {
        match core {
            Core::Constant(datum) => match &*datum.kind {
                DatumKind::Number(NumberLiteral::Integer(n)) => Value::Number((*n).into()),
                DatumKind::Boolean(truth) => Value::Boolean(*truth),
                other => panic!("no such constant here: {other:?}"),
            },
            Core::Unspecified => Value::Unspecified,
            Core::Local(variable, _) => environment[&Rc::as_ptr(variable)].borrow().clone(),
            Core::SetLocal(variable, value, _) => {
                let value = self.value(value, environment);
                *environment[&Rc::as_ptr(variable)].borrow_mut() = value;
                Value::Unspecified
            }
            Core::Global(global, _) => Value::Primitive(self.primitives[&global.address()]),
            Core::SetGlobal(..) | Core::DefineGlobal(..) => panic!("no globals here"),
            Core::If(test, consequent, alternative) => {
                let holds = !matches!(self.value(test, environment), Value::Boolean(false));
                self.value(if holds { consequent } else { alternative }, environment)
            }
            Core::Sequence(forms) => forms
                .iter()
                .map(|form| self.value(form, environment))
                .reduce(|_, last| last)
                .unwrap(),
            Core::Lambda(lambda) => Value::Procedure(Rc::clone(lambda), environment.clone()),
            Core::Let(bindings, body) => {
                let mut inner = environment.clone();
                for (variable, init) in bindings {
                    bind(&mut inner, variable, self.value(init, environment));
                }
                self.value(body, &inner)
            }
            Core::Letrec(bindings, body) => {
                let mut inner = environment.clone();
                for (variable, _) in bindings {
                    bind(&mut inner, variable, Value::Unspecified);
                }
                for (variable, init) in bindings {
                    let value = self.value(init, &inner);
                    *inner[&Rc::as_ptr(variable)].borrow_mut() = value;
                }
                self.value(body, &inner)
            }
            Core::Call(callee, arguments, _) => {
                let callee = self.value(callee, environment);
                let arguments =
                    arguments.iter().map(|argument| self.value(argument, environment)).collect();
                self.call(callee, arguments)
            }
        }
    }

    fn call(&self, callee: Value, arguments: Vec<Value>) -> Value {
        match callee {
            Value::Procedure(lambda, mut environment) => {
                let clause = &lambda.clauses[0];
                for (variable, argument) in clause.required.iter().zip(arguments) {
                    bind(&mut environment, variable, argument);
                }
                self.value(&clause.body, &environment)
            }
            Value::Primitive(name) => primitive(name, &arguments),
            other => panic!("{other} is no procedure"),
        }
    }
}

fn bind(environment: &mut Environment, variable: &Rc<Variable>, value: Value) {
    environment.insert(Rc::as_ptr(variable), Rc::new(RefCell::new(value)));
}

fn primitive(name: &str, arguments: &[Value]) -> Value {
    if let ("not", [value]) = (name, arguments) {
        return Value::Boolean(matches!(value, Value::Boolean(false)));
    }
    let numbers: Vec<i128> = arguments
        .iter()
        .map(|argument| match argument {
            Value::Number(n) => *n,
            other => panic!("{other} is no number"),
        })
        .collect();
    match (name, numbers.as_slice()) {
        ("+", numbers) => Value::Number(numbers.iter().sum()),
        ("-", [first, rest @ ..]) => Value::Number(first - rest.iter().sum::<i128>()),
        ("*", numbers) => Value::Number(numbers.iter().product()),
        ("remainder", [a, b]) => Value::Number(a % b),
        ("<", [a, b]) => Value::Boolean(a < b),
        ("=", [a, b]) => Value::Boolean(a == b),
        (">=", [a, b]) => Value::Boolean(a >= b),
        _ => panic!("{name} has unexpected arguments"),
    }
}
