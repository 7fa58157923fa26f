//! Tables keyed by the words of values. Whatever their size, no single insertion takes long: a
//! table consists of pieces that grow one by one.

use std::collections::HashMap;

const PIECES: usize = 256;
/// An odd number without a pattern: 2^64 divided by the golden ratio.
const MULTIPLIER: u64 = 0x9e37_79b9_7f4a_7c15;

/// Information about values, keyed by their words.
#[derive(Debug)]
pub struct Places<T> {
    /// Empty before the first insertion.
    pieces: Vec<HashMap<u64, T>>,
}

impl<T> Default for Places<T> {
    fn default() -> Self {
        Self { pieces: Vec::new() }
    }
}

fn piece(word: u64) -> usize {
    (word.wrapping_mul(MULTIPLIER) >> 56) as usize
}

impl<T> Places<T> {
    /// The information about the value with this word.
    #[must_use]
    pub fn get(&self, word: u64) -> Option<&T> {
        self.pieces.get(piece(word))?.get(&word)
    }

    /// As [`Self::get`], mutable.
    pub fn get_mut(&mut self, word: u64) -> Option<&mut T> {
        self.pieces.get_mut(piece(word))?.get_mut(&word)
    }

    /// Stores the information about the value with this word.
    pub fn insert(&mut self, word: u64, known: T) {
        if self.pieces.is_empty() {
            self.pieces.resize_with(PIECES, HashMap::new);
        }
        self.pieces[piece(word)].insert(word, known);
    }
}

#[cfg(test)]
mod tests {
    use super::{PIECES, Places};

    #[test]
    fn an_inserted_value_is_found_and_the_pieces_have_similar_sizes() {
        let mut places = Places::default();
        assert_eq!(places.get(8), None);
        let words = || (0..100_000_u64).map(|i| 0x7f00_0000_0001 + 16 * i);
        words().for_each(|word| places.insert(word, word + 1));
        assert!(words().all(|word| places.get(word) == Some(&(word + 1))));
        *places.get_mut(0x7f00_0000_0001).unwrap() = 0;
        assert_eq!(places.get(0x7f00_0000_0001), Some(&0));
        assert_eq!(places.pieces.iter().map(|piece| piece.len()).sum::<usize>(), 100_000);
        let longest = places.pieces.iter().map(|piece| piece.len()).max();
        assert!(longest < Some(4 * 100_000 / PIECES));
    }
}
