//! What the Lisp Server hands to the machine: its primitives and its control procedures.

use crate::{gate, image, service, shared, system, thread};
use kyocho_library::primitives;
use kyocho_vm::machine::control::{self, Procedure};

/// Control procedures, one table a file.
const TABLES: [&[Procedure]; 7] = [
    system::control::TABLE,
    system::debugger::TABLE,
    shared::TABLE,
    shared::region::TABLE,
    system::statistics::TABLE,
    image::TABLE,
    service::policy::TABLE,
];

/// Hands them over. Only the first call does.
pub(crate) fn install() {
    let procedures = TABLES.into_iter().chain(thread::TABLES).chain(gate::TABLES).flatten();
    control::install(primitives::all(), procedures);
}
