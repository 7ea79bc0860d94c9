//! The message of an error, and the values for `dlrs_error`.
#![forbid(unsafe_code)]

use core::fmt::{self, Write};

use crate::integer_text::{hex, signed, unsigned};

use super::{Arg, BITS, DIMENSION, Error, Field, Number, Status};

/// A buffer, and the length of the text written so far.
struct Counted<'a> {
    out: &'a mut dyn Write,
    nbytes: usize,
}

impl Write for Counted<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.nbytes = self.nbytes.saturating_add(text.len());
        self.out.write_str(text)
    }
}

/// A text before and after its first NUL.
#[inline(never)]
fn parted(text: &'static str) -> (&'static str, &'static str) {
    text.split_once('\0').unwrap_or((text, ""))
}

impl Error {
    /// The member at fault.
    pub fn member(&self) -> Field {
        Field::ALL
            .get(usize::from(self.bits(BITS) & 15))
            .map_or(Field::DLRS_FIELD_NONE, |&field| field)
    }

    /// The dimension at fault, or -1.
    pub const fn dimension(&self) -> i32 {
        self.bits(DIMENSION) as i8 as i32
    }

    /// The value found, 0 where none is shown.
    pub const fn found(&self) -> i64 {
        self.first
    }

    /// The limit that it exceeds, 0 where none is shown.
    pub const fn bound(&self) -> i64 {
        match self.numbers()[1] {
            Number::Code => 0,
            _ => self.second,
        }
    }

    /// The driver's own code, or 0.
    pub const fn driver_code(&self) -> i32 {
        match self.numbers()[1] {
            Number::Code => self.second as i32,
            _ => 0,
        }
    }

    /// Writes `function: argument->field[dim]: what "quoted" (value, limit) [status]. Remedy.`
    /// Never an address. `quoted` is the text that cannot be parsed; the part around `value` is
    /// shown. Returns the bytes at which the place, the description and the status end.
    pub fn write(
        &self,
        function: &str,
        quoted: Option<&[u8]>,
        out: &mut dyn Write,
    ) -> Result<[usize; 3], fmt::Error> {
        let mut out = Counted { out, nbytes: 0 };
        let (name, meaning, remedy) = self.status().explain();
        let (member, words) = match self.member() {
            Field::DLRS_FIELD_OPTION => parted(self.words()),
            field => (field.text(), self.words()),
        };
        write!(out, "{function}: ")?;
        self.write_place(member, &mut out)?;
        let place = out.nbytes;
        let (detail, given) = parted(words);
        let remedy = if given.is_empty() { remedy } else { given };
        out.write_str(if detail.is_empty() { meaning } else { detail })?;
        if let Some(quoted) = quoted {
            self.write_quoted(quoted, &mut out)?;
        }
        self.write_numbers(&mut out)?;
        let text = out.nbytes;
        write!(out, " [{}]. ", name.to_str().unwrap_or(""))?;
        let status = out.nbytes;
        out.write_str(match self.argument() {
            Some(Arg::nobody) => "Fix the allocator or backend that returned it.",
            _ => remedy,
        })?;
        Ok([place, text, status])
    }

    fn write_place(&self, member: &str, out: &mut Counted) -> fmt::Result {
        let argument = self.argument().map_or("", Arg::as_str);
        // A parameter with the field's own name, such as `shape` or `dtype`, is named once.
        let rest = member.strip_prefix(argument);
        let once = rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'));
        if !argument.is_empty() && !once {
            out.write_str(argument)?;
            out.write_str(if member.is_empty() { "" } else { "->" })?;
        }
        out.write_str(member)?;
        if self.dimension() >= 0 {
            write!(out, "[{}]", signed(self.dimension().into()))?;
        }
        out.write_str(if argument.is_empty() && member.is_empty() { "" } else { ": " })
    }

    /// At most 32 bytes around the position in `value`, as printable ASCII.
    fn write_quoted(&self, text: &[u8], out: &mut Counted) -> fmt::Result {
        const SHOWN: usize = 32;
        let position = if self.status() == Status::DLRS_PARSE { self.found() } else { 0 };
        let from = usize::try_from(position).unwrap_or(0).saturating_sub(SHOWN / 2);
        let rest = text.get(from..).unwrap_or(&[]);
        out.write_str(if from > 0 { ": \"..." } else { ": \"" })?;
        for &byte in rest.iter().take(SHOWN) {
            match byte {
                b' '..=b'~' if byte != b'"' && byte != b'\\' => out.write_char(byte.into())?,
                _ => write!(out, "\\x{}", hex(byte.into(), 2))?,
            }
        }
        out.write_str(if rest.len() > SHOWN { "...\"" } else { "\"" })
    }
    fn write_numbers(&self, out: &mut Counted) -> fmt::Result {
        let mut before = " (";
        for (label, is, number) in
            [("value", self.numbers()[0], self.first), ("limit", self.numbers()[1], self.second)]
        {
            match is {
                Number::None | Number::Code => continue,
                Number::Signed => write!(out, "{before}{label} {}", signed(number))?,
                Number::Unsigned => write!(out, "{before}{label} {}", unsigned(number as u64))?,
            }
            before = ", ";
        }
        if self.driver_code() != 0 {
            write!(out, "{before}driver code {}", signed(self.driver_code().into()))?;
            before = ", ";
        }
        out.write_str(if before == ", " { ")" } else { "" })
    }
}
