//! Flame graphs from folded stacks, drawn by `inferno` as SVG. Each line is a stack, its parts
//! separated by semicolons, and a count.

use super::Primitive;
use super::call::Call;
use crate::port::waiting;
use inferno::flamegraph::{self, Options};
use kyocho_heap::heap::Mutator;
use kyocho_heap::raise::{Raise, Result};
use kyocho_heap::value::Value;

pub(super) const TABLE: &[Primitive] = &[Primitive::exactly("%flame-graph", 1, flame_graph)];

/// Maximum number of bytes of input, because drawing cannot be interrupted.
const FOLDED_BYTES_MAX: usize = 1 << 20;

fn flame_graph(m: &mut Mutator, arguments: &[Value]) -> Result {
    let call = Call::new("profile->svg", arguments);
    let folded = call.string(0)?;
    if folded.len() > FOLDED_BYTES_MAX {
        let message = format!("profile->svg: a profile of more than {FOLDED_BYTES_MAX} bytes");
        return Err(Raise::error(message, Vec::new()));
    }
    let svg = waiting(m, |_| draw(&folded));
    let svg = svg.map_err(|reason| Raise::error(format!("profile->svg: {reason}"), Vec::new()))?;
    Ok(m.string(&svg)?)
}

fn draw(folded: &str) -> core::result::Result<String, String> {
    let mut options = Options::default();
    "Where the time went".clone_into(&mut options.title);
    options.deterministic = true;
    let mut svg = Vec::new();
    flamegraph::from_lines(&mut options, folded.lines(), &mut svg)
        .map_err(|error| error.to_string())?;
    Ok(String::from_utf8_lossy(&svg).into_owned())
}
