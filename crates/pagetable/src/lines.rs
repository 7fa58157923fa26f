//! The cache lines that a walk reads: the cost of a TLB miss, independent of the processor's clock.

/// Bytes of a cache line.
pub const LINE_BYTES: usize = 64;

/// Receives each access to a table's memory.
///
/// `()` ignores them and costs nothing: for a plain look-up.
pub trait Lines {
    /// Records an access to the byte at `offset` of one of the table's arrays. Each array is
    /// assumed to start at a cache line.
    fn touch(&mut self, array: u8, offset: usize);
}

impl Lines for () {
    #[inline]
    fn touch(&mut self, _array: u8, _offset: usize) {}
}

/// The distinct lines of one walk.
#[derive(Debug, Clone, Default)]
pub struct LineSet {
    lines: Vec<u64>,
}

impl LineSet {
    /// Number of distinct lines since the last [`Self::clear`].
    #[must_use]
    pub fn count(&self) -> usize {
        self.lines.len()
    }

    /// Removes all lines.
    pub fn clear(&mut self) {
        self.lines.clear();
    }

    /// The lines, in the order of the first access to each.
    pub fn iter(&self) -> impl Iterator<Item = u64> + '_ {
        self.lines.iter().copied()
    }
}

impl Lines for LineSet {
    fn touch(&mut self, array: u8, offset: usize) {
        let line = u64::from(array) << 56 | (offset / LINE_BYTES) as u64;
        if !self.lines.contains(&line) {
            self.lines.push(line);
        }
    }
}

const SETS: usize = 64;
const WAYS: usize = 8;

/// A cache of 32 KiB, eight ways, with least-recently-used replacement. It counts the lines of many
/// walks that it misses.
#[derive(Debug, Clone)]
pub struct LineCache {
    /// The lines of each set, most recently used first.
    sets: Vec<Vec<u64>>,
    misses: u64,
}

impl Default for LineCache {
    fn default() -> Self {
        Self { sets: vec![Vec::new(); SETS], misses: 0 }
    }
}

impl LineCache {
    /// Accesses a line.
    pub fn access(&mut self, line: u64) {
        // Mixes in the array's number: equal offsets in different arrays must not map to one set.
        let set = (line ^ line >> 56 ^ line >> 6) as usize % SETS;
        let ways = &mut self.sets[set];
        if let Some(place) = ways.iter().position(|&held| held == line) {
            ways[..=place].rotate_right(1);
            return;
        }
        self.misses += 1;
        ways.truncate(WAYS - 1);
        ways.insert(0, line);
    }

    /// Number of accesses that missed.
    #[must_use]
    pub fn misses(&self) -> u64 {
        self.misses
    }
}
