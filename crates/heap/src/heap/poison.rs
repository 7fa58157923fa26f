//! Which free lines hold poison already: torture overwrites free memory after every collection, and
//! most of it was not handed out since the last one.
//!
//! Pure: block and line numbers. `space` does the overwriting.

use crate::heap::marks::LINES;
use core::ops::Range;

/// The lines that were overwritten and have not been handed out since. Empty without torture.
#[derive(Debug, Default)]
pub(crate) struct Poisoned {
    blocks: Vec<[u64; LINES / 64]>,
}

impl Poisoned {
    /// The block's free lines may be handed out from now on.
    pub(crate) fn taken(&mut self, block: usize) {
        if let Some(lines) = self.blocks.get_mut(block) {
            *lines = [0; LINES / 64];
        }
    }

    /// Calls `overwrite` with each line among the block's `free` ones that is not known to hold
    /// poison. Lines that are not free lose that mark.
    pub(crate) fn renew(
        &mut self,
        block: usize,
        free: impl Iterator<Item = Range<usize>>,
        mut overwrite: impl FnMut(usize),
    ) {
        if self.blocks.len() <= block {
            self.blocks.resize(block + 1, [0; LINES / 64]);
        }
        let lines = &mut self.blocks[block];
        let before = core::mem::take(lines);
        for line in free.flatten() {
            let bit = 1 << (line % 64);
            if before[line / 64] & bit == 0 {
                overwrite(line);
            }
            lines[line / 64] |= bit;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn overwritten(poisoned: &mut Poisoned, block: usize, free: &[(usize, usize)]) -> Vec<usize> {
        let mut lines = Vec::new();
        let free = free.iter().map(|&(start, end)| start..end);
        poisoned.renew(block, free, |line| lines.push(line));
        lines
    }

    #[test]
    fn a_line_is_overwritten_again_only_when_it_was_used_or_may_have_been() {
        let mut poisoned = Poisoned::default();
        assert_eq!(overwritten(&mut poisoned, 1, &[(3, 5), (200, 201)]), [3, 4, 200]);
        assert_eq!(overwritten(&mut poisoned, 1, &[(3, 6)]), [5], "3 and 4 were never handed out");
        assert_eq!(
            overwritten(&mut poisoned, 1, &[(3, 6), (200, 201)]),
            [200],
            "200 was live meanwhile"
        );
        poisoned.taken(1);
        assert_eq!(overwritten(&mut poisoned, 1, &[(4, 6)]), [4, 5]);
        assert_eq!(overwritten(&mut poisoned, 0, &[(4, 5)]), [4], "blocks do not mix");
    }
}
