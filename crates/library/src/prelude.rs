//! The part of the system that is written in Scheme. It is compiled at boot.
//!
//! Procedures that call other procedures are written here. So continuations, kills and the
//! collector find no state of theirs on a Rust stack. Procedures that call no others are
//! primitives.

use kyocho_syntax::world::TextLibrary;

/// What runs a text at top level: name and text. It is loaded before all others.
pub const FIRST: (&str, &str) = ("prelude/run.scm", include_str!("prelude/run.scm"));

/// Names and texts, in the order they are loaded; later ones use earlier ones.
pub const SOURCES: &[(&str, &str)] = &[
    ("prelude/control.scm", include_str!("prelude/control.scm")),
    ("prelude/numbers.scm", include_str!("prelude/numbers.scm")),
    ("prelude/lists.scm", include_str!("prelude/lists.scm")),
    ("prelude/sort.scm", include_str!("prelude/sort.scm")),
    ("prelude/vectors.scm", include_str!("prelude/vectors.scm")),
    ("prelude/strings.scm", include_str!("prelude/strings.scm")),
    ("prelude/ports.scm", include_str!("prelude/ports.scm")),
    ("prelude/comparators.scm", include_str!("prelude/comparators.scm")),
    ("prelude/hash_tables.scm", include_str!("prelude/hash_tables.scm")),
    ("prelude/guardians.scm", include_str!("prelude/guardians.scm")),
    ("prelude/gates.scm", include_str!("prelude/gates.scm")),
    ("prelude/threads.scm", include_str!("prelude/threads.scm")),
    ("prelude/policies.scm", include_str!("prelude/policies.scm")),
    ("prelude/prompts.scm", include_str!("prelude/prompts.scm")),
    ("prelude/debugger.scm", include_str!("prelude/debugger.scm")),
    ("prelude/tools.scm", include_str!("prelude/tools.scm")),
];

/// Libraries that are read when they are first imported: name, source, text.
pub const LIBRARIES: &[TextLibrary] = &[
    ("(kyocho control)", "prelude/kyocho/control.sld", include_str!("prelude/kyocho/control.sld")),
    ("(kyocho dsm)", "prelude/dsm.sld", include_str!("prelude/dsm.sld")),
    ("(kyocho json)", "prelude/kyocho/json.sld", include_str!("prelude/kyocho/json.sld")),
    ("(kyocho mailbox)", "prelude/kyocho/mailbox.sld", include_str!("prelude/kyocho/mailbox.sld")),
    (
        "(kyocho supervisor)",
        "prelude/kyocho/supervisor.sld",
        include_str!("prelude/kyocho/supervisor.sld"),
    ),
    ("(kyocho unix)", "prelude/kyocho/unix.sld", include_str!("prelude/kyocho/unix.sld")),
    ("(srfi 13)", "prelude/srfi/13.sld", include_str!("prelude/srfi/13.sld")),
    ("(srfi 14)", "prelude/srfi/14.sld", include_str!("prelude/srfi/14.sld")),
    (
        "(srfi 14 categories)",
        "prelude/srfi/14-categories.sld",
        include_str!("prelude/srfi/14-categories.sld"),
    ),
    ("(srfi 27)", "prelude/srfi/27.sld", include_str!("prelude/srfi/27.sld")),
    ("(srfi 41)", "prelude/srfi/41.sld", include_str!("prelude/srfi/41.sld")),
    ("(srfi 64)", "prelude/srfi/64.sld", include_str!("prelude/srfi/64.sld")),
    ("(srfi 115)", "prelude/srfi/115.sld", include_str!("prelude/srfi/115.sld")),
    ("(srfi 128)", "prelude/srfi/128.sld", include_str!("prelude/srfi/128.sld")),
    ("(srfi 133)", "prelude/srfi/133.sld", include_str!("prelude/srfi/133.sld")),
    ("(srfi 158)", "prelude/srfi/158.sld", include_str!("prelude/srfi/158.sld")),
    ("(srfi 170)", "prelude/srfi/170.sld", include_str!("prelude/srfi/170.sld")),
];
