//! `quote`: removes renamings and checks labels.

use super::{Core, DEPTH_MAX, Expander, Result, parts};
use crate::datum::{Datum, DatumKind};
use crate::error::SyntaxError;
use std::collections::HashSet;

impl Expander<'_> {
    #[inline(never)]
    pub(super) fn quote(&mut self, form: &Datum) -> Result {
        let parts = parts(form, 1, Some(1), "(quote datum)")?;
        self.constant(parts[0])
    }

    /// A constant made of a datum.
    pub(super) fn constant(&mut self, datum: &Datum) -> Result {
        Ok(Core::Constant(self.strip(datum)?))
    }

    /// The datum, with each alias replaced by its symbol. Parts without aliases are shared with the
    /// original.
    ///
    /// # Errors
    /// A reference to a label that is not in the datum; a datum that macros nested too deep.
    pub(crate) fn strip(&mut self, datum: &Datum) -> Result<Datum> {
        if !self.has_renamed(datum)? {
            return Ok(datum.clone());
        }
        Ok(self.strip_inner(datum, 0)?.unwrap_or_else(|| datum.clone()))
    }

    /// Whether the datum contains aliases. Checks its labels too. Does not recurse, because a
    /// quoted datum may be nested deeper than the native stack allows.
    ///
    /// A datum that was read is a tree no larger than its text. Macros can make a datum larger than
    /// memory by sharing, so this walk is charged as expansion steps.
    fn has_renamed(&mut self, datum: &Datum) -> Result<bool> {
        let mut has_renamed = false;
        let mut labels = HashSet::new();
        let mut references = Vec::new();
        let mut pending = vec![datum];
        while let Some(datum) = pending.pop() {
            self.charge(1, datum.span)?;
            match &*datum.kind {
                DatumKind::Alias(_) => has_renamed = true,
                DatumKind::Pair(first, rest) => pending.extend([rest, first]),
                DatumKind::Vector(items) => pending.extend(items),
                DatumKind::Label(label, inner) => {
                    labels.insert(*label);
                    pending.push(inner);
                }
                DatumKind::Reference(label) => references.push((*label, datum.span)),
                _ => {}
            }
        }
        for (label, span) in references {
            if !labels.contains(&label) {
                let message = format!("#{label}# refers to a label outside of the quoted datum");
                return Err(SyntaxError::new(span, message)
                    .expected(format!("#{label}= inside the same quotation")));
            }
        }
        Ok(has_renamed)
    }

    /// `None` if nothing changes.
    fn strip_inner(&mut self, datum: &Datum, depth: u32) -> Result<Option<Datum>> {
        let span = datum.span;
        if depth > DEPTH_MAX {
            return Err(SyntaxError::new(
                span,
                "this datum, which a macro made, is nested too deep",
            )
            .expected(format!("at most {DEPTH_MAX} levels")));
        }
        match &*datum.kind {
            DatumKind::Alias(alias) => Ok(Some(Datum::symbol(alias.of.symbol(), span))),
            DatumKind::Pair(..) => self.strip_list(datum, depth),
            DatumKind::Vector(items) => {
                let (items, changed) = self.strip_items(items.iter(), depth)?;
                Ok(changed.then(|| Datum::new(DatumKind::Vector(items), span)))
            }
            DatumKind::Label(label, inner) => {
                let inner = self.strip_inner(inner, depth + 1)?;
                Ok(inner.map(|inner| Datum::new(DatumKind::Label(*label, inner), span)))
            }
            _ => Ok(None),
        }
    }

    /// The stripped items, and whether any of them changed.
    fn strip_items<'d>(
        &mut self,
        items: impl Iterator<Item = &'d Datum>,
        depth: u32,
    ) -> Result<(Vec<Datum>, bool)> {
        let mut changed = false;
        let mut stripped = Vec::new();
        for item in items {
            let new = self.strip_inner(item, depth + 1)?;
            changed |= new.is_some();
            stripped.push(new.unwrap_or_else(|| item.clone()));
        }
        Ok((stripped, changed))
    }

    fn strip_list(&mut self, list: &Datum, depth: u32) -> Result<Option<Datum>> {
        let mut elements = list.elements();
        let (items, changed) = self.strip_items(elements.by_ref(), depth)?;
        let tail = self.strip_inner(elements.tail(), depth + 1)?;
        if !changed && tail.is_none() {
            return Ok(None);
        }
        let tail = tail.unwrap_or_else(|| elements.tail().clone());
        Ok(Some(Datum::list_with_tail(items, tail, list.span)))
    }
}
