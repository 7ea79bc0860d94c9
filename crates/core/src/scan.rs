//! Scanner for short texts of the caller, for the grammars of dtypes and devices.
//!
//! Bytes, not characters: only ASCII is ever accepted, so no locale and no Unicode digit can
//! matter, and the work is at most one pass over the text.
#![forbid(unsafe_code)]

use crate::error::{Error, Result, Status};

/// A position in a text.
#[derive(Clone, Copy)]
pub struct Scan<'a> {
    text: &'a [u8],
    position: usize,
}

impl<'a> Scan<'a> {
    /// Starts at the first byte.
    pub const fn new(text: &'a [u8]) -> Self {
        Scan { text, position: 0 }
    }

    fn rest(&self) -> &'a [u8] {
        self.text.get(self.position..).unwrap_or(&[])
    }

    /// Skips `word` if it is next.
    pub fn eat(&mut self, word: &str) -> bool {
        let found = self.rest().starts_with(word.as_bytes());
        if found {
            self.position += word.len();
        }
        found
    }

    /// Skips the longest of `rows`' words that is next, and returns the row: the first of equally
    /// long ones. Empty words are none.
    pub fn longest<T>(
        &mut self,
        rows: impl Iterator<Item = T>,
        word: impl Fn(&T) -> &'static str,
    ) -> Option<T> {
        let (rest, mut best) = (self.rest(), (0, None));
        for row in rows {
            let word = word(&row).as_bytes();
            if word.len() > best.0 && rest.starts_with(word) {
                best = (word.len(), Some(row));
            }
        }
        self.position += best.0;
        best.1
    }

    /// Reads a decimal number: digits only, no leading zero. A huge one saturates, never wraps.
    pub fn number(&mut self, expected: &'static str) -> Result<i64> {
        let start = self.position;
        let mut number = 0i64;
        while let Some(digit @ b'0'..=b'9') = self.text.get(self.position) {
            if self.position > start && number == 0 {
                return Err(self.fail(expected)); // "032" would be a second spelling of "32"
            }
            number = number.saturating_mul(10).saturating_add(i64::from(digit - b'0'));
            self.position += 1;
        }
        if self.position == start { Err(self.fail(expected)) } else { Ok(number) }
    }

    /// Reads a decimal number that may have a minus sign; there is no "-0".
    pub fn signed(&mut self, expected: &'static str) -> Result<i64> {
        let negative = self.eat("-");
        let start = *self;
        match (negative, self.number(expected)?) {
            (true, 0) => Err(start.fail(expected)),
            (true, number) => Ok(-number),
            (false, number) => Ok(number),
        }
    }

    /// Requires that `word` is next.
    pub fn expect(&mut self, word: &str, expected: &'static str) -> Result<()> {
        if self.eat(word) { Ok(()) } else { Err(self.fail(expected)) }
    }

    /// Requires the end of the text.
    pub fn end(&self, expected: &'static str) -> Result<()> {
        if self.rest().is_empty() { Ok(()) } else { Err(self.fail(expected)) }
    }

    /// The error that the text cannot be parsed from here on: the position is its value. `expected`
    /// is the text of [`Error::detail`].
    #[cold]
    pub fn fail(&self, expected: &'static str) -> Error {
        Error::new(Status::DLRS_PARSE).value(self.position as i64).detail(expected)
    }
}
