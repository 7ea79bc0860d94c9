//! The message of an error, and the values for `dlrs_error`.
#![forbid(unsafe_code)]

use core::fmt::{self, Write};

use crate::integer_text::{hex, signed, unsigned};

use super::{Arg, BITS, DIMENSION, Error, Field, Number, Status};

/// Who reads a message.
#[derive(Clone, Copy)]
pub struct Reader {
    /// Whether in Python, which has `flags` and `astype()` for `tensor->flags` and `dlrs_cast`.
    pub python: bool,
    /// Writes the name of a dtype of [`Error::dtypes`].
    pub dtype: fn(u32, &mut dyn Write) -> fmt::Result,
}

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
    pub fn found(&self) -> i64 {
        self.member_of_dtype(self.first)
    }

    /// Of a dtype, the member at fault; another number is itself.
    fn member_of_dtype(&self, number: i64) -> i64 {
        match (self.numbers()[0], self.member()) {
            (Number::Code, Field::DLRS_FIELD_DTYPE_CODE) => number & 0xFF,
            (Number::Code, Field::DLRS_FIELD_DTYPE_BITS) => number >> 8 & 0xFF,
            (Number::Code, _) => number >> 16,
            _ => number,
        }
    }

    /// The limit that it exceeds, 0 where none is shown.
    pub fn bound(&self) -> i64 {
        match self.numbers()[1] {
            Number::None | Number::Code => 0,
            _ => self.member_of_dtype(self.second),
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
    /// Never an address. `quoted` is the text that cannot be parsed; the part around `value`, which
    /// is then called position, is shown. Returns the bytes at which the place, the description and
    /// the status end.
    pub fn write(
        &self,
        reader: Reader,
        function: &str,
        quoted: Option<&[u8]>,
        out: &mut dyn Write,
    ) -> Result<[usize; 3], fmt::Error> {
        let mut out = Counted { out, nbytes: 0 };
        let (name, meaning, remedies) = self.status().explain();
        let (member, words) = match self.member() {
            Field::DLRS_FIELD_OPTION => parted(self.words()),
            field => (field.text(), self.words()),
        };
        write!(out, "{function}: ")?;
        self.write_place(reader, member, &mut out)?;
        let place = out.nbytes;
        let (detail, given) = parted(words);
        let remedies = if given.is_empty() { remedies } else { parted(given).into() };
        let remedy = match remedies {
            [_, pythons] if reader.python && !pythons.is_empty() => pythons,
            [of_all, _] => of_all,
        };
        out.write_str(if detail.is_empty() { meaning } else { detail })?;
        if let Some(quoted) = quoted {
            self.write_quoted(quoted, &mut out)?;
        }
        self.write_numbers(reader, &mut out)?;
        let text = out.nbytes;
        write!(out, " [{}]. ", name.to_str().unwrap_or(""))?;
        let status = out.nbytes;
        out.write_str(match self.argument() {
            Some(Arg::nobody) => "Fix the allocator or backend that returned it.",
            _ => remedy,
        })?;
        Ok([place, text, status])
    }

    fn write_place(&self, reader: Reader, member: &str, out: &mut Counted) -> fmt::Result {
        let argument = match self.argument() {
            // In Python the object of the method.
            Some(Arg::tensor | Arg::src | Arg::dst) if reader.python => "",
            argument => argument.map_or("", Arg::as_str),
        };
        // A parameter with the field's own name, such as `shape` or `dtype`, is named once.
        let rest = member.strip_prefix(argument);
        let once = rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'));
        if !argument.is_empty() && !once {
            out.write_str(argument)?;
            let arrow = if reader.python { "." } else { "->" };
            out.write_str(if member.is_empty() { "" } else { arrow })?;
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
    fn write_numbers(&self, reader: Reader, out: &mut Counted) -> fmt::Result {
        let mut before = " (";
        let [first, second] = self.numbers();
        let labels = match (self.status(), first) {
            (Status::DLRS_PARSE, _) => ["position", "limit"],
            (_, Number::Code) => ["dtype", "wanted"],
            _ => ["value", "limit"],
        };
        for (label, is, number) in
            [(labels[0], first, self.first), (labels[1], second, self.second)]
        {
            if first == Number::Code && is != Number::None {
                write!(out, "{before}{label} ")?;
                (reader.dtype)(number as u32, out)?;
                before = ", ";
                continue;
            }
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
