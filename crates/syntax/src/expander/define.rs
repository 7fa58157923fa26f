//! Parsing of `define` and `define-syntax`.

use super::definition::Init;
use super::{Expander, Result, malformed, parts};
use crate::datum::Datum;
use crate::error::SyntaxError;

const DEFINE: &str = "(define name value) or (define (name parameter ...) body ...)";

impl Expander<'_> {
    /// The name that a `define` defines, and the source of its value.
    pub(super) fn parse_define(&self, form: &Datum) -> Result<(Datum, Init)> {
        let operands = parts(form, 1, None, DEFINE)?;
        let Some((mut header, mut body)) = form.as_pair().and_then(|(_, rest)| rest.as_pair())
        else {
            return Err(malformed(form, DEFINE));
        };
        if header.is_identifier() {
            if operands.len() != 2 {
                return Err(malformed(form, DEFINE));
            }
            return Ok((header.clone(), Init::Expression(operands[1].clone())));
        }
        // `(define ((f a) b) ...)` defines a procedure that returns a procedure.
        let mut curried;
        loop {
            let Some((inner, formals)) = header.as_pair() else {
                let message = format!("{header} cannot be defined");
                return Err(SyntaxError::new(header.span, message).expected(DEFINE));
            };
            if inner.is_identifier() {
                let init = Init::Procedure(formals.clone(), body.clone(), form.clone());
                return Ok((inner.clone(), init));
            }
            let lambda = self.system_identifier("lambda", header.span);
            let tail = Datum::pair(formals.clone(), body.clone(), header.span);
            let lambda = Datum::pair(lambda, tail, header.span);
            curried = Datum::list(vec![lambda], header.span);
            body = &curried;
            header = inner;
        }
    }
}

/// The name and the transformer of a `define-syntax`.
pub(super) fn parse_define_syntax(form: &Datum) -> Result<(&Datum, &Datum)> {
    let shape = "(define-syntax keyword transformer)";
    let parts = parts(form, 2, Some(2), shape)?;
    if !parts[0].is_identifier() {
        return Err(malformed(form, shape));
    }
    Ok((parts[0], parts[1]))
}
