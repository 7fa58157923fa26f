//! Where one text stands in another, in time linear in both: no two strings make a search slow (Knuth, Morris, Pratt 1977).
//!
//! ```text
//!  text     a b a b a c        `matched` characters of the pattern stand before `read`; after a mismatch
//!  pattern    a b a c          `borders` tells how many of them still do
//! ```
//!
//! Backwards the same is done from the other end.

use super::Text;
use core::ops::Range;

/// The places of a pattern in a range of a text, those that overlap too, from one end to the other.
#[derive(Debug)]
pub struct Places {
    text: Text,
    range: Range<usize>,
    pattern: Text,
    backwards: bool,
    /// For each beginning of the pattern, one longer each: the length of the longest shorter beginning that is also its end.
    borders: Vec<usize>,
    read: usize,
    matched: usize,
}

impl Places {
    /// Those in `range`, which lies in the text, the first one first.
    pub fn new(text: Text, range: Range<usize>, pattern: Text) -> Self {
        let borders = Vec::new();
        let mut places =
            Self { text, range, pattern, backwards: false, borders, read: 0, matched: 0 };
        places.find_borders();
        places
    }

    /// The last one first.
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

    /// Where a match begins of which the last character that was read is the last.
    fn begin(&self) -> usize {
        if self.backwards {
            self.range.end - self.read
        } else {
            self.range.start + self.read - self.pattern.length()
        }
    }

    /// The empty pattern stands before each character, and behind the last.
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
        /// As one who looks at every place.
        #[test]
        fn every_place_is_found(text in "[abé]{0,30}", pattern in "[abé]{0,4}", cut in 0_usize..8) {
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
