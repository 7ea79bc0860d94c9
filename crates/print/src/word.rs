//! One printed element, kept until its length is known.
#![forbid(unsafe_code)]

use core::fmt::{self, Write};

/// Room for the longest element: a complex number, each part at most 25 characters on both sides
/// of its point.
const MOST: usize = 128;

/// A short ASCII text.
pub struct Word {
    bytes: [u8; MOST],
    used: usize,
}

impl Word {
    /// No text.
    pub const EMPTY: Word = Word { bytes: [0; MOST], used: 0 };

    /// What was written so far.
    pub fn text(&self) -> &str {
        self.bytes.get(..self.used).and_then(|bytes| str::from_utf8(bytes).ok()).unwrap_or("")
    }

    /// Characters so far.
    pub fn width(&self) -> usize {
        self.used
    }

    /// Removes spaces from the end and says how many.
    pub fn strip(&mut self) -> usize {
        let width = self.text().trim_end_matches(' ').len();
        core::mem::replace(&mut self.used, width) - width
    }

    /// Writes `count` times the same character.
    pub fn fill(&mut self, character: char, count: usize) -> fmt::Result {
        (0..count).try_for_each(|_| self.write_char(character))
    }
}

impl Write for Word {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let end = self.used + text.len();
        self.bytes.get_mut(self.used..end).ok_or(fmt::Error)?.copy_from_slice(text.as_bytes());
        self.used = end;
        Ok(())
    }
}
