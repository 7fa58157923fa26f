//! Cache lines that a walk looks at: what a TLB miss costs a processor, whatever its clock.

/// Bytes of a cache line.
pub const LINE_BYTES: usize = 64;

/// Is told of each look at a table's memory.
///
/// `()` listens to nothing and costs nothing: a plain look-up.
pub trait Lines {
    /// A look at the byte `offset` of one of the table's arrays; each array is taken to start on a line.
    fn touch(&mut self, array: u8, offset: usize);
}

impl Lines for () {
    #[inline]
    fn touch(&mut self, _array: u8, _offset: usize) {}
}

/// The different lines of one walk.
#[derive(Debug, Clone, Default)]
pub struct LineSet {
    lines: Vec<u64>,
}

impl LineSet {
    /// How many different lines there were since the last [`Self::clear`].
    #[must_use]
    pub fn count(&self) -> usize {
        self.lines.len()
    }

    /// Forgets them all.
    pub fn clear(&mut self) {
        self.lines.clear();
    }

    /// The lines, in the order of the first look at each.
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

/// A cache of 32 KiB, eight ways, least recently used out first: which lines of many walks it would miss.
#[derive(Debug, Clone)]
pub struct LineCache {
    /// The lines of each set, the most recently used first.
    sets: Vec<Vec<u64>>,
    misses: u64,
}

impl Default for LineCache {
    fn default() -> Self {
        Self { sets: vec![Vec::new(); SETS], misses: 0 }
    }
}

impl LineCache {
    /// Looks at a line.
    pub fn access(&mut self, line: u64) {
        // Lines of different arrays that start alike must not share a set.
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

    /// Looks that found their line absent.
    #[must_use]
    pub fn misses(&self) -> u64 {
        self.misses
    }
}
