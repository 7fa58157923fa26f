//! Search for one text in another, in time linear in the length of both, whatever the texts are
//! (Knuth, Morris, Pratt 1977).
//!
//! ```text
//!  text     a b a b a c     the first `matched` characters of the pattern are those before `read`;
//!  pattern    a b a c       after a mismatch `borders` says how many of them still match
//! ```
//!
//! A backward search works in the same way from the other end.

use super::Text;
use core::ops::Range;

/// The occurrences of a pattern in a range of a text, in order, overlapping ones included.
#[derive(Debug)]
pub struct Places {
    text: Text,
    range: Range<usize>,
    pattern: Text,
    backwards: bool,
    /// For each prefix of the pattern, in order of length: the length of the longest shorter prefix
    /// that is also a suffix of it.
    borders: Vec<usize>,
    read: usize,
    matched: usize,
}

impl Places {
    /// The occurrences in `range`, which is inside the text; the first one first.
    pub fn new(text: Text, range: Range<usize>, pattern: Text) -> Self {
        let borders = Vec::new();
        let mut places =
            Self { text, range, pattern, backwards: false, borders, read: 0, matched: 0 };
        places.find_borders();
        places
    }

    /// The same occurrences, the last one first.
    pub fn backwards(self) -> Self {
        let mut places = Self { backwards: true, borders: Vec::new(), ..self };
        places.find_borders();
        places
    }

    fn find_borders(&mut self) {
        let length = self.pattern.length();
        if length == 0 || length > self.range.len() {
            return;
        }
        self.borders.push(0);
        for i in 1..length {
            let wanted = self.pattern_char(i);
            let mut border = self.borders[i - 1];
            while border > 0 && self.pattern_char(border) != wanted {
                border = self.borders[border - 1];
            }
            self.borders.push(border + usize::from(self.pattern_char(border) == wanted));
        }
    }

    fn pattern_char(&self, i: usize) -> char {
        let last = self.pattern.length() - 1;
        self.pattern.char_at(if self.backwards { last - i } else { i })
    }

    fn text_char(&self, i: usize) -> char {
        let at = if self.backwards { self.range.end - 1 - i } else { self.range.start + i };
        self.text.char_at(at)
    }

    /// Where a match begins whose last character is the one just read.
    fn begin(&self) -> usize {
        if self.backwards {
            self.range.end - self.read
        } else {
            self.range.start + self.read - self.pattern.length()
        }
    }

    /// The empty pattern occurs before each character and after the last.
    fn next_empty(&mut self) -> Option<usize> {
        let begin = (self.read <= self.range.len()).then(|| self.begin());
        self.read += 1;
        begin
    }
}

impl Iterator for Places {
    type Item = usize;

    fn next(&mut self) -> Option<usize> {
        let length = self.pattern.length();
        if length == 0 {
            return self.next_empty();
        }
        if length > self.range.len() {
            return None;
        }
        while self.read < self.range.len() {
            let c = self.text_char(self.read);
            self.read += 1;
            while self.matched > 0
                && (self.matched == length || self.pattern_char(self.matched) != c)
            {
                self.matched = self.borders[self.matched - 1];
            }
            self.matched += usize::from(self.pattern_char(self.matched) == c);
            if self.matched == length {
                return Some(self.begin());
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::Places;
    use crate::heap::ThreadContext;
    use crate::heap::{Heap, Limits, Mutator};
    use crate::text::Text;
    use proptest::prelude::{prop_assert_eq, proptest};

    fn both_ways(text: &str, pattern: &str, from: usize, to: usize) -> (Vec<usize>, Vec<usize>) {
        let heap = Heap::new(Limits { bytes_max: 1 << 20, ..Limits::default() }).unwrap();
        let mutator = Mutator::new(heap, ThreadContext::default());
        let make = |text| Text::of(mutator.string(text).unwrap()).unwrap();
        let (text, pattern) = (make(text), make(pattern));
        let places = || Places::new(text, from..to, pattern);
        (places().collect(), places().backwards().collect())
    }

    proptest! {
        /// Compares with a search that tries every position.
        #[test]
        fn every_occurrence_is_found(text in "[abé]{0,30}", pattern in "[abé]{0,4}", cut in 0_usize..8) {
            let characters: Vec<char> = text.chars().collect();
            let wanted: Vec<char> = pattern.chars().collect();
            let (from, to) = (cut.min(characters.len()), characters.len());
            let mut naive: Vec<usize> =
                (from..=to).filter(|&at| characters[at..].starts_with(&wanted)).collect();
            let (forwards, backwards) = both_ways(&text, &pattern, from, to);
            prop_assert_eq!(forwards, naive.clone());
            naive.reverse();
            prop_assert_eq!(backwards, naive);
        }
    }
}
