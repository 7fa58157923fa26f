//! The marks that the compiler relies on: `mutated`, `captured`, and which names still refer to
//! primitives.

use super::{Core, Prompt, TopLevel};
use crate::core_form::{Clause, Variable};
use std::rc::Rc;

/// Every variable that a core form binds.
fn variables(core: &Core, found: &mut Vec<Rc<Variable>>) {
    let bindings = |bindings: &[(Rc<Variable>, Core)], found: &mut Vec<Rc<Variable>>| {
        for (variable, value) in bindings {
            found.push(Rc::clone(variable));
            variables(value, found);
        }
    };
    match core {
        Core::Let(pairs, body) | Core::Letrec(pairs, body) => {
            bindings(pairs, found);
            variables(body, found);
        }
        Core::Lambda(lambda) => {
            for Clause { required, rest, body } in &lambda.clauses {
                found.extend(required.iter().chain(rest).map(Rc::clone));
                variables(body, found);
            }
        }
        Core::If(a, b, c) => [a, b, c].into_iter().for_each(|core| variables(core, found)),
        Core::Sequence(forms) => forms.iter().for_each(|core| variables(core, found)),
        Core::Call(procedure, arguments, _) => {
            variables(procedure, found);
            arguments.iter().for_each(|core| variables(core, found));
        }
        Core::SetLocal(_, value, _)
        | Core::SetGlobal(_, value, _)
        | Core::DefineGlobal(_, value, _) => variables(value, found),
        Core::Constant(_) | Core::Unspecified | Core::Local(..) | Core::Global(..) => {}
    }
}

/// The name and the marks `mutated` and `captured` of each variable in `text`.
fn marks(text: &str) -> Vec<(String, bool, bool)> {
    let mut found = Vec::new();
    for form in Prompt::new().try_expand(text).unwrap() {
        if let TopLevel::Form(core) = &form {
            variables(core, &mut found);
        }
    }
    found.iter().map(|v| (v.name.to_string(), v.mutated.get(), v.captured.get())).collect()
}

fn mark(text: &str, name: &str) -> (bool, bool) {
    let marks = marks(text);
    let (_, mutated, captured) = marks.iter().find(|(found, ..)| found == name).unwrap();
    (*mutated, *captured)
}

#[test]
fn a_variable_used_in_its_own_lambda_is_neither_mutated_nor_captured() {
    assert_eq!(mark("(lambda (x) (let ((y x)) (f x y)))", "x"), (false, false));
    assert_eq!(mark("(lambda (x) (let ((y x)) (f x y)))", "y"), (false, false));
    assert_eq!(mark("(lambda (x) ((lambda (y) (f x y)) 1))", "x"), (false, false));
}

#[test]
fn set_marks_mutated_and_an_inner_lambda_marks_captured() {
    assert_eq!(mark("(lambda (x) (set! x 1) x)", "x"), (true, false));
    assert_eq!(mark("(lambda (x) (lambda () x))", "x"), (false, true));
    assert_eq!(mark("(lambda (x) (lambda () (set! x 1)))", "x"), (true, true));
    assert_eq!(mark("(let ((x 1)) (lambda (y) (lambda () x)))", "x"), (false, true));
    assert_eq!(mark("(let ((x 1)) (delay x))", "x"), (false, true));
    assert_eq!(mark("(let ((x 1)) (guard (e (#t x)) 1))", "x"), (false, true));
    assert_eq!(mark("(let ((x 1)) (let-values (((a) x)) a))", "x"), (false, true));
    assert_eq!(mark("(let-values (((a) 1) ((b) 2)) (list a b))", "a"), (false, true));
    assert_eq!(mark("(let-values (((a) 1) ((b) 2)) (list a b))", "b"), (false, false));
}

#[test]
fn loops_capture_themselves_but_not_their_own_parameters() {
    assert_eq!(mark("(let loop ((i 0)) (loop i))", "loop"), (false, true));
    assert_eq!(mark("(let loop ((i 0)) (loop i))", "i"), (false, false));
    assert_eq!(mark("(let loop ((i 0)) i)", "loop"), (false, false));
    assert_eq!(mark("(do ((i 0 (+ i 1))) (i) 1)", "i"), (false, false));
}

#[test]
fn a_definition_does_not_count_as_assignment() {
    assert_eq!(mark("(let () (define x 1) x)", "x"), (false, false));
    assert_eq!(mark("(let () (define (f) (g)) (define (g) 1) (f))", "g"), (false, true));
    assert_eq!(mark("(let () (define x 1) (set! x 2) x)", "x"), (true, false));
}

#[test]
fn standard_names_are_the_primitives_until_the_program_defines_its_own() {
    let mut prompt = Prompt::new();
    let primitive = prompt.world.runtime("car");
    let global = |prompt: &mut Prompt| match prompt.try_expand("car").unwrap().remove(0) {
        TopLevel::Form(Core::Global(global, _)) => global,
        other => panic!("{other:?}"),
    };
    assert_eq!(global(&mut prompt), primitive);
    prompt.expand("(define (car x) x)");
    let own = global(&mut prompt);
    assert_ne!(own, primitive);
    prompt.expand("(define (car x) (list x))");
    assert_eq!(global(&mut prompt), own, "a redefinition keeps the location");
    let other = Prompt::new();
    let theirs = other.world.runtime("car");
    assert_ne!(theirs, primitive, "worlds share no locations");
}

#[test]
fn a_definition_that_is_wrong_leaves_the_name_as_it_was() {
    let mut prompt = Prompt::new();
    let before = prompt.expand("car");
    prompt.error("(define car (if))");
    assert_eq!(prompt.environment.variable("car").unwrap(), prompt.world.runtime("car"));
    assert_eq!(prompt.expand("car"), before);
}

#[test]
fn a_name_used_before_its_definition_keeps_its_location() {
    let mut prompt = Prompt::new();
    prompt.expand("(define (f) (later))");
    let used = prompt.environment.variable("later").unwrap();
    prompt.expand("(define (later) 1)");
    assert_eq!(prompt.environment.variable("later").unwrap(), used);
}
