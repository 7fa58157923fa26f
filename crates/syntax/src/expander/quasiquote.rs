//! `quasiquote`. Constant parts become one constant; other parts become calls of `list`, `%cons`,
//! `%append2` and `%list->vector`.

use super::{Core, Expander, Result, build, parts};
use crate::datum::{Datum, DatumKind, Home, Span};
use crate::error::SyntaxError;
use crate::special::Special;

/// Maximum number of elements passed to one call of `list`.
const LIST_CALL_MAX: usize = 32;

enum Element {
    One(Core),
    Splice(Core),
}

impl Expander<'_> {
    #[inline(never)]
    pub(super) fn quasiquote(&mut self, form: &Datum, home: Home) -> Result {
        let parts = parts(form, 1, Some(1), "(quasiquote template)")?;
        match self.template(parts[0], 1, home)? {
            Some(core) => Ok(core),
            None => self.constant(parts[0]),
        }
    }

    /// The expression that builds `template`; `None` if the template is constant.
    #[inline(never)]
    fn template(&mut self, template: &Datum, level: u32, home: Home) -> Result<Option<Core>> {
        self.enter_level(template.span)?;
        let core = match &*template.kind {
            DatumKind::Pair(..) => self.list_template(template, level, home)?,
            DatumKind::Vector(items) => {
                let list = Datum::list(items.clone(), template.span);
                self.list_template(&list, level, home)?.map(|list| {
                    build::runtime_call(self.world, "%list->vector", vec![list], template.span)
                })
            }
            _ => None,
        };
        self.leave_level();
        Ok(core)
    }

    #[inline(never)]
    fn list_template(&mut self, template: &Datum, level: u32, home: Home) -> Result<Option<Core>> {
        if let Some(core) = self.keyword_template(template, level, home)? {
            return Ok(core);
        }
        let depth = self.depth;
        let mut elements = Vec::new();
        // Constant elements at the end remain part of the constant tail.
        let mut constant_from = Some((template, 0));
        let mut rest = template;
        let mut tail = None;
        let mut ended = false;
        while let Some((item, next)) = rest.as_pair() {
            if !core::ptr::eq(rest, template)
                && let Some(core) = self.keyword_template(rest, level, home)?
            {
                constant_from = constant_from.filter(|_| core.is_none());
                tail = core;
                ended = true;
                break;
            }
            // In the result, each splice and each `LIST_CALL_MAX` elements nest what follows one
            // call deeper. This is an estimate: `join` groups from the end, and adds calls of
            // `%cons`. `DEPTH_MAX` says how much deeper the result may be.
            if elements.len() % LIST_CALL_MAX == 0
                || matches!(elements.last(), Some(Element::Splice(_)))
            {
                self.enter_level(item.span)?;
            }
            let element = self.element_template(item, level, home)?;
            if let Some(element) = element {
                elements.push(element);
                constant_from = Some((next, elements.len()));
            } else {
                elements.push(Element::One(self.constant(item)?));
            }
            rest = next;
        }
        if !ended && !rest.is_nil() {
            tail = self.template(rest, level, home)?;
            if tail.is_some() {
                constant_from = None;
            }
        }
        self.depth = depth;
        let tail = match (tail, constant_from) {
            (Some(core), _) => core,
            (None, Some((_, 0))) => return Ok(None),
            (None, Some((constant, used))) => {
                elements.truncate(used);
                self.constant(constant)?
            }
            (None, None) => self.constant(rest)?,
        };
        Ok(Some(self.join(elements, tail, template)))
    }

    /// For `(unquote e)`, `(quasiquote t)` or `(unquote-splicing e)` as a whole template: `Some`
    /// with the expression that builds it, or with `None` if it is constant. `None` for any other
    /// template.
    #[expect(clippy::option_option, reason = "not such a template; constant; built")]
    #[inline(never)]
    fn keyword_template(
        &mut self,
        template: &Datum,
        level: u32,
        home: Home,
    ) -> Result<Option<Option<Core>>> {
        let Some((head, _)) = template.as_pair() else { return Ok(None) };
        let inner_level = if self.is_special(head, Special::Unquote, home) {
            level - 1
        } else if self.is_special(head, Special::Quasiquote, home) {
            level + 1
        } else if self.is_special(head, Special::UnquoteSplicing, home) {
            if level == 1 {
                return Err(SyntaxError::in_form(template, "unquote-splicing outside of a list")
                    .expected(",@ before an element of a list or vector"));
            }
            level - 1
        } else {
            return Ok(None);
        };
        // A list of another length that begins with such a word is plain data.
        let Some(items) = template.proper_list().filter(|items| items.len() == 2) else {
            return Ok(None);
        };
        let inner = items[1];
        if inner_level == 0 {
            return self.expression(inner, home).map(|core| Some(Some(core)));
        }
        let Some(inner) = self.element_template(inner, inner_level, home)? else {
            return Ok(Some(None));
        };
        let head = self.constant(head)?;
        let (name, rest) = match inner {
            Element::One(inner) => ("list", inner),
            Element::Splice(all) => ("%cons", all),
        };
        let call = build::runtime_call(self.world, name, vec![head, rest], template.span);
        Ok(Some(Some(call)))
    }

    fn element_template(
        &mut self,
        item: &Datum,
        level: u32,
        home: Home,
    ) -> Result<Option<Element>> {
        if level == 1
            && let Some((head, _)) = item.as_pair()
            && self.is_special(head, Special::UnquoteSplicing, home)
        {
            let parts = parts(item, 1, Some(1), "(unquote-splicing expression)")?;
            return self.expression(parts[0], home).map(|core| Some(Element::Splice(core)));
        }
        Ok(self.template(item, level, home)?.map(Element::One))
    }

    /// The list of `elements`, followed by `tail`.
    fn join(&self, elements: Vec<Element>, tail: Core, template: &Datum) -> Core {
        let span = template.span;
        let mut core = tail;
        let mut run = Vec::new();
        for element in elements.into_iter().rev() {
            match element {
                Element::One(item) if run.len() < LIST_CALL_MAX => run.push(item),
                Element::One(item) => {
                    core = self.prepend(core::mem::replace(&mut run, vec![item]), core, template);
                }
                Element::Splice(list) => {
                    core = self.prepend(core::mem::take(&mut run), core, template);
                    core = self.append(list, core, span);
                }
            }
        }
        self.prepend(run, core, template)
    }

    /// `items` (last first), followed by `tail`.
    fn prepend(&self, mut items: Vec<Core>, tail: Core, template: &Datum) -> Core {
        let span = template.span;
        if items.len() <= 2 {
            return items.into_iter().fold(tail, |tail, item| {
                build::runtime_call(self.world, "%cons", vec![item, tail], span)
            });
        }
        items.reverse();
        let list = build::runtime_call(self.world, "list", items, span);
        self.append(list, tail, span)
    }

    fn append(&self, list: Core, tail: Core, span: Span) -> Core {
        if matches!(&tail, Core::Constant(datum) if datum.is_nil()) {
            return list;
        }
        build::runtime_call(self.world, "%append2", vec![list, tail], span)
    }
}
