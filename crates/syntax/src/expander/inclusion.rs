//! `include`, `include-ci`, `cond-expand`: forms that are replaced by other forms.

use super::{Core, Expander, Result, build, malformed, parts};
use crate::datum::{Datum, Home};
use crate::error::SyntaxError;
use crate::reader::Reader;
use crate::source;
use crate::special::Special;

/// Maximum number of files that one top-level form may include. Stops a file that includes itself.
const INCLUSIONS_MAX: u32 = 200;
const COND_EXPAND: &str = "(cond-expand (requirement form ...) ... (else form ...))";

impl Expander<'_> {
    /// `include` and `cond-expand` in the position of an expression.
    #[inline(never)]
    pub(super) fn spliced(&mut self, special: Special, form: &Datum, home: Home) -> Result {
        let forms = self.splice(special, form, home)?;
        let forms: Vec<&Datum> = forms.iter().collect();
        if forms.is_empty() {
            return Ok(Core::Unspecified);
        }
        Ok(build::sequence(self.expressions(&forms, home)?))
    }

    /// The forms that replace `form`, an `include` or a `cond-expand`.
    pub(crate) fn splice(
        &mut self,
        special: Special,
        form: &Datum,
        home: Home,
    ) -> Result<Vec<Datum>> {
        match special {
            Special::CondExpand => self.cond_expand(form, home),
            _ => self.include(form, special == Special::IncludeCi),
        }
    }

    /// The data of the files that `form` names, relative to the file that contains `form`.
    pub(crate) fn include(&mut self, form: &Datum, fold_case: bool) -> Result<Vec<Datum>> {
        let shape = "(include \"file\" ...)";
        let mut data = Vec::new();
        for name in parts(form, 1, None, shape)? {
            let Some(path) = name.as_string() else { return Err(malformed(form, shape)) };
            self.inclusions += 1;
            if self.inclusions > INCLUSIONS_MAX {
                let message =
                    format!("more than {INCLUSIONS_MAX} files are included from one form");
                return Err(SyntaxError::new(form.span, message));
            }
            let path = source::folder(form.span).join(path);
            if self.world.packed_file(&path).is_none() && !self.world.may_read(&path) {
                let message = format!("this user may not include {}", path.display());
                return Err(SyntaxError::new(name.span, message)
                    .expected("a file in a library folder of the system"));
            }
            let text = match self.world.packed_file(&path) {
                Some(bytes) => source::read_stream(bytes, &path.to_string_lossy(), name.span)?,
                None => source::read_plain_file(&path, name.span)?,
            };
            let mut reader = Reader::of_text(&text, source::register(&path.to_string_lossy()));
            reader.fold_case(fold_case);
            while let Some(datum) = reader
                .read()
                .map_err(|error| SyntaxError::from(error).note(form.span, "included from here"))?
            {
                data.push(datum);
            }
        }
        Ok(data)
    }

    pub(crate) fn cond_expand(&mut self, form: &Datum, home: Home) -> Result<Vec<Datum>> {
        for clause in parts(form, 1, None, COND_EXPAND)? {
            let Some(items) = clause.proper_list().filter(|items| !items.is_empty()) else {
                return Err(SyntaxError::in_form(clause, "no clause").expected(COND_EXPAND));
            };
            let holds = self.is_special(items[0], Special::Else, home)
                || self.requirement(items[0], clause)?;
            if holds {
                return Ok(items[1..].iter().map(|&item| item.clone()).collect());
            }
        }
        Ok(Vec::new())
    }

    /// Whether a feature requirement holds. Its keywords are compared by name, because a library's
    /// declarations have no bindings yet.
    fn requirement(&mut self, requirement: &Datum, clause: &Datum) -> Result<bool> {
        let wrong = || {
            SyntaxError::in_form(clause, format!("{requirement} is no requirement")).expected(
                "a feature, (library name), (and ...), (or ...), (not requirement) or else",
            )
        };
        if let Some(feature) = requirement.as_symbol() {
            return Ok(feature.name() == "else" || self.world.has_feature(feature.name()));
        }
        let items =
            requirement.proper_list().filter(|items| !items.is_empty()).ok_or_else(wrong)?;
        let operands = &items[1..];
        self.enter_level(requirement.span)?;
        let holds = match (items[0].as_symbol().map(|word| word.name()), operands) {
            (Some("and"), _) => self.requirements(operands, clause)?.iter().all(|&holds| holds),
            (Some("or"), _) => self.requirements(operands, clause)?.iter().any(|&holds| holds),
            (Some("not"), [operand]) => !self.requirement(operand, clause)?,
            (Some("library"), [name]) => self.world.has_library(name),
            _ => return Err(wrong()),
        };
        self.leave_level();
        Ok(holds)
    }

    fn requirements(&mut self, requirements: &[&Datum], clause: &Datum) -> Result<Vec<bool>> {
        requirements.iter().map(|requirement| self.requirement(requirement, clause)).collect()
    }
}
