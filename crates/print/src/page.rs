//! Brackets, blanks and line breaks around the elements, as NumPy sets them.
#![forbid(unsafe_code)]

use super::walk::Step;
use super::word::Word;
use core::fmt::{self, Write};

/// A page that is being written.
pub struct Page<'a> {
    out: &'a mut dyn Write,
    axes: usize,
    /// Rows break where an element would end behind this column.
    width: i64,
    /// Characters on the line, pending blanks included.
    column: usize,
    /// Blanks that vanish if the line breaks here.
    pending: usize,
}

impl<'a> Page<'a> {
    /// Begins a page for an array of `axes` dimensions, which is at least 1.
    pub fn new(out: &'a mut dyn Write, axes: usize, line_width: u32) -> Page<'a> {
        // One column less per dimension: room for the closing brackets.
        let width = i64::from(line_width) - axes as i64;
        Page { out, axes, width, column: 0, pending: 0 }
    }

    fn repeat(&mut self, character: char, count: usize) -> fmt::Result {
        (0..count).try_for_each(|_| self.out.write_char(character))
    }

    /// Opens the brackets of the dimensions behind `axis` on a line indented that far.
    pub fn open(&mut self, axis: usize) -> fmt::Result {
        self.repeat(' ', axis)?;
        self.repeat('[', self.axes - axis.min(self.axes))?;
        self.column = self.axes;
        self.pending = 0;
        Ok(())
    }

    /// Closes as many brackets.
    pub fn close(&mut self, brackets: usize) -> fmt::Result {
        self.repeat(' ', self.pending)?;
        self.pending = 0;
        self.repeat(']', brackets)
    }

    /// Writes an element, on a new line if it does not fit on this one.
    pub fn word(&mut self, mut word: Word) -> fmt::Result {
        // A line that is still empty is not broken: that would not help.
        if (self.column + word.width()) as i64 > self.width && self.column > self.axes {
            self.out.write_char('\n')?;
            self.column = self.axes;
            self.pending = self.axes;
        }
        self.column += word.width();
        let blanks = word.strip();
        if word.width() > 0 {
            self.repeat(' ', self.pending)?;
            self.out.write_str(word.text())?;
            self.pending = 0;
        }
        self.pending += blanks;
        Ok(())
    }

    fn blank(&mut self) {
        self.column += 1;
        self.pending += 1;
    }

    /// Writes what stands between two elements.
    pub fn between(&mut self, step: &Step) -> fmt::Result {
        let inner = self.axes.saturating_sub(step.axis + 1);
        if inner == 0 {
            self.blank();
            if step.gap {
                let mut dots = Word::EMPTY;
                dots.write_str("...")?;
                self.word(dots)?;
                self.blank();
            }
            return Ok(());
        }
        self.close(inner)?;
        self.repeat('\n', inner)?;
        if step.gap {
            self.repeat(' ', step.axis + 1)?;
            self.out.write_str("...")?;
            self.repeat('\n', inner)?;
        }
        self.open(step.axis + 1)
    }
}
