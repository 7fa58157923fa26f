//! Encoding of numbers and texts in an image: little-endian words, and counts with seven bits in a
//! byte.

use super::ImageError;

type Result<T> = core::result::Result<T, ImageError>;

/// The output.
#[derive(Debug, Default)]
pub(super) struct Out(pub(super) Vec<u8>);

impl Out {
    pub(super) fn byte(&mut self, byte: u8) {
        self.0.push(byte);
    }

    /// Writes a number that is usually small.
    pub(super) fn count(&mut self, mut count: u64) {
        while count >= 0x80 {
            self.0.push(count as u8 | 0x80);
            count >>= 7;
        }
        self.0.push(count as u8);
    }

    pub(super) fn number(&mut self, number: usize) {
        self.count(number as u64);
    }

    pub(super) fn word(&mut self, word: u64) {
        self.0.extend_from_slice(&word.to_le_bytes());
    }

    pub(super) fn bytes(&mut self, bytes: &[u8]) {
        self.number(bytes.len());
        self.0.extend_from_slice(bytes);
    }

    pub(super) fn text(&mut self, text: &str) {
        self.bytes(text.as_bytes());
    }
}

/// The input. Every length is checked against the remaining bytes.
#[derive(Debug)]
pub(super) struct In<'a>(pub(super) &'a [u8]);

const SHORT: ImageError = ImageError::Damaged("it ends in the middle of something");

impl<'a> In<'a> {
    pub(super) fn take(&mut self, count: usize) -> Result<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count).ok_or(SHORT)?;
        self.0 = rest;
        Ok(taken)
    }

    pub(super) fn byte(&mut self) -> Result<u8> {
        Ok(self.take(1)?[0])
    }

    pub(super) fn flag(&mut self) -> Result<bool> {
        Ok(self.byte()? != 0)
    }

    pub(super) fn count(&mut self) -> Result<u64> {
        let mut count = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            count |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok(count);
            }
        }
        Err(ImageError::Damaged("a number without an end"))
    }

    pub(super) fn number(&mut self) -> Result<usize> {
        usize::try_from(self.count()?).map_err(|_| ImageError::Damaged("a number too large"))
    }

    pub(super) fn small<T: TryFrom<u64>>(&mut self) -> Result<T> {
        T::try_from(self.count()?).map_err(|_| ImageError::Damaged("a number too large"))
    }

    /// Reads a number of items, each of at least one byte.
    pub(super) fn length(&mut self) -> Result<usize> {
        let length = self.number()?;
        if length > self.0.len() { Err(SHORT) } else { Ok(length) }
    }

    pub(super) fn word(&mut self) -> Result<u64> {
        let mut word = [0; 8];
        word.copy_from_slice(self.take(8)?);
        Ok(u64::from_le_bytes(word))
    }

    pub(super) fn bytes(&mut self) -> Result<&'a [u8]> {
        let length = self.number()?;
        self.take(length)
    }

    pub(super) fn text(&mut self) -> Result<&'a str> {
        core::str::from_utf8(self.bytes()?)
            .map_err(|_| ImageError::Damaged("a text that is no UTF-8"))
    }

    pub(super) fn end(&self) -> Result<()> {
        if self.0.is_empty() {
            Ok(())
        } else {
            Err(ImageError::Damaged("more than there should be"))
        }
    }
}

/// The item with a number that was read.
pub(super) fn at<T>(items: &[T], number: usize) -> Result<&T> {
    items.get(number).ok_or(ImageError::Damaged("a number that nothing has"))
}
