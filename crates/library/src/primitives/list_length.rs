//! The length of a list, which may be circular.

use kyocho_heap::heap::Mutator;
use kyocho_heap::heap::pause::PART;
use kyocho_heap::raise::Result;
use kyocho_heap::value::Value;

/// The length of a proper list; `None` for an improper or circular one.
///
/// # Errors
/// As [`Mutator::pause`].
pub(crate) fn length(m: &mut Mutator, list: Value) -> Result<Option<usize>> {
    let [mut fast, mut slow] = [m.unrooted(list); 2];
    let mut count = 0;
    loop {
        for _ in 0..PART / 2 {
            for _ in 0..2 {
                match fast.cdr() {
                    Some(rest) => fast = rest,
                    None => return Ok(fast.value().is_nil().then_some(count)),
                }
                count += 1;
            }
            // Another thread may be shortening the list.
            let Some(next) = slow.cdr() else { return Ok(None) };
            slow = next;
            if fast == slow {
                return Ok(None);
            }
        }
        let kept = m.pause_keeping([fast.kept(), slow.kept()])?;
        [fast, slow] = kept.unrooted(m);
    }
}
