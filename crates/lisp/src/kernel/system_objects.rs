//! Numbers for the objects that every system of this build has: the prelude's locations, and the
//! objects reachable from them.
//!
//! Boot is deterministic, and nothing assigns the prelude's locations afterwards. A walk follows
//! only what never changes: code, its constants, and the variables of closures. So it finds the
//! same objects in the same order in each process, and an image can refer to them by number.

use kyocho_heap::heap::{Kind, location};
use kyocho_heap::value::Value;
use kyocho_syntax::environment::{Binding, Environment};
use kyocho_syntax::location::Global;
use kyocho_syntax::rules::Macro;
use kyocho_syntax::symbol::Symbol;
use kyocho_vm::compiler::code::Code;
use std::collections::HashMap;
use std::sync::Arc;

/// The numbering. Its objects live as long as the system, so it need not be traced.
#[derive(Debug)]
pub(crate) struct SystemObjects {
    pub(crate) globals: Vec<&'static Global>,
    global_numbers: HashMap<usize, usize>,
    pub(crate) objects: Vec<Value>,
    object_numbers: HashMap<Value, usize>,
    macro_names: HashMap<usize, Symbol>,
}

impl SystemObjects {
    /// Numbers the objects reachable from these locations.
    pub(crate) fn of(environment: &Environment, globals: Vec<&'static Global>) -> Self {
        let global_numbers =
            globals.iter().enumerate().map(|(i, &global)| (global.address(), i)).collect();
        let mut system = Self {
            globals,
            global_numbers,
            objects: Vec::new(),
            object_numbers: HashMap::new(),
            macro_names: HashMap::new(),
        };
        for i in 0..system.globals.len() {
            system.walk(location::value(system.globals[i]));
        }
        for (name, binding) in environment.public_bindings() {
            if let Binding::Macro(rules) = binding {
                system.macro_names.insert(Arc::as_ptr(&rules).addr(), name);
            }
        }
        system
    }

    fn walk(&mut self, root: Value) {
        let mut pending = vec![root];
        while let Some(value) = pending.pop() {
            if !(value.is_pair() || value.is_object()) || self.object_numbers.contains_key(&value) {
                continue;
            }
            self.object_numbers.insert(value, self.objects.len());
            self.objects.push(value);
            if value.is_kind(Kind::Closure) {
                pending.push(value.field_at(0));
                pending.extend((2..value.size_words()).map(|i| value.field_at(i)));
            } else if let Some(code) = value.as_foreign::<Code>() {
                pending.extend_from_slice(&code.constants);
            }
        }
    }

    /// The number of an object of the system.
    pub(crate) fn object(&self, value: Value) -> Option<usize> {
        self.object_numbers.get(&value).copied()
    }

    /// The number of a location of the system.
    pub(crate) fn global(&self, address: usize) -> Option<usize> {
        self.global_numbers.get(&address).copied()
    }

    /// The name of a macro of the system.
    pub(crate) fn macro_name(&self, rules: &Arc<Macro>) -> Option<Symbol> {
        self.macro_names.get(&Arc::as_ptr(rules).addr()).copied()
    }
}
