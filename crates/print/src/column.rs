//! The elements of one dtype as words of equal width.
#![forbid(unsafe_code)]

use super::float::{self, Column, Span};
use super::walk::Walk;
use super::word::Word;
use super::{Elements, PrintOptions};
use crate::abi::{DLDataType, DLDataTypeCode::*};
use crate::dtype;
use crate::float_formats::{self, Class, FLOAT32, FloatFormat, Parts};
use crate::integer_text::{hex, signed, unsigned};
use core::fmt::{self, Write};

/// How the bits of an element are understood.
#[derive(Clone, Copy)]
pub enum Reading {
    /// Two's complement of this many bits.
    Signed(u8),
    /// A whole number of this many bits.
    Unsigned(u8),
    /// 0 is false, all else true.
    Bool,
    /// A handle: hexadecimal.
    Handle,
    /// A float, or two: the real part in the low bits.
    Float { format: &'static FloatFormat, complex: bool },
}

impl Reading {
    /// How a dtype is read, if its values can be shown.
    pub fn of(dtype: DLDataType) -> Option<Reading> {
        dtype::legal(dtype).ok()?;
        let is = |code| dtype.code == code as u8;
        Some(if is(kDLInt) {
            Reading::Signed(dtype.bits)
        } else if is(kDLUInt) {
            Reading::Unsigned(dtype.bits)
        } else if is(kDLBool) {
            Reading::Bool
        } else if is(kDLOpaqueHandle) {
            Reading::Handle
        } else {
            let format = float_formats::of(dtype.code, dtype.bits)?;
            Reading::Float { format, complex: dtype::is_complex(dtype.code) }
        })
    }
}

/// The format whose rules and digits are used: that of the value itself, or binary32 for the ones
/// that NumPy does not have.
fn shown_as(format: &'static FloatFormat) -> &'static FloatFormat {
    if format.width() <= 8 || *format == float_formats::BFLOAT16 { &FLOAT32 } else { format }
}

fn parts(raw: u64, format: &FloatFormat, shown: &FloatFormat) -> Parts {
    let parts = format.parts(raw);
    if *format == *shown { parts } else { shown.parts(parts.place(shown)) }
}

/// Both floats of a complex number; of a real one the second is not used.
#[inline(never)]
fn halves(raw: u128, format: &'static FloatFormat) -> [Parts; 2] {
    let shown = shown_as(format);
    [raw as u64, (raw >> format.width()) as u64].map(|half| parts(half, format, shown))
}

/// A whole number, a truth value or a handle, unpadded.
fn plain(raw: u128, reading: Reading, out: &mut Word) -> fmt::Result {
    let low = |bits: u8| raw as u64 & u64::MAX >> (64 - u32::from(bits.clamp(1, 64)));
    match reading {
        Reading::Signed(bits) => {
            let unused = 64 - u32::from(bits.clamp(1, 64));
            write!(out, "{}", signed(((raw as u64) << unused) as i64 >> unused))
        }
        Reading::Unsigned(bits) => write!(out, "{}", unsigned(low(bits))),
        Reading::Bool => out.write_str(if low(8) != 0 { "True" } else { "False" }),
        _ => write!(out, "0x{}", hex(low(64), 1)),
    }
}

/// The style of a whole array.
pub enum Style {
    /// Right-aligned words of this width.
    Plain(Reading, usize),
    /// Floats: their format, and as many columns as an element has numbers.
    Float(&'static FloatFormat, [Column; 2], usize),
}

/// Calls `see` for every element; the walk ends at its start again.
fn each(walk: &mut Walk, elements: &dyn Elements, see: &mut dyn FnMut(u128)) {
    loop {
        see(elements.bits(walk.index(), walk.lane()));
        if walk.step().is_none() {
            return;
        }
    }
}

impl Style {
    /// Scans all printed elements and computes their style.
    pub fn of(
        reading: Reading,
        walk: &mut Walk,
        elements: &dyn Elements,
        options: &PrintOptions,
    ) -> Style {
        let Reading::Float { format, complex } = reading else {
            return Style::plain(reading, walk, elements);
        };
        let (rules, count) = (shown_as(format), 1 + usize::from(complex));
        let mut spans = [Span::EMPTY, Span::EMPTY];
        each(walk, elements, &mut |raw| {
            spans.iter_mut().zip(&halves(raw, format)).for_each(|(span, part)| span.see(part));
        });
        let column = |span, plus| Column::new(span, rules, options.precision, plus);
        let mut columns = [column(&spans[0], false), column(&spans[1], true)];
        each(walk, elements, &mut |raw| {
            let halves = halves(raw, format);
            let parts = columns.iter_mut().zip(&halves).take(count);
            parts.for_each(|(column, part)| column.fit(part));
        });
        columns.iter_mut().zip(&spans).for_each(|(column, span)| column.finish(span));
        Style::Float(format, columns, count)
    }

    fn plain(reading: Reading, walk: &mut Walk, elements: &dyn Elements) -> Style {
        let mut width = if matches!(reading, Reading::Bool) { 5 } else { 0 };
        each(walk, elements, &mut |raw| {
            let mut word = Word::EMPTY;
            if plain(raw, reading, &mut word).is_ok() {
                width = width.max(word.width());
            }
        });
        Style::Plain(reading, width)
    }

    /// Prints an element at the common width.
    pub fn write(&self, raw: u128, out: &mut Word) -> fmt::Result {
        match self {
            Style::Plain(reading, width) => {
                let mut word = Word::EMPTY;
                plain(raw, *reading, &mut word)?;
                out.fill(' ', width.saturating_sub(word.width()))?;
                out.write_str(word.text())
            }
            Style::Float(format, columns, count) => {
                for (column, part) in columns.iter().zip(&halves(raw, format)).take(*count) {
                    column.write(part, out)?;
                }
                if *count == 1 {
                    return Ok(());
                }
                // The j stands directly behind the number, before its padding.
                let blanks = out.strip();
                out.write_char('j')?;
                out.fill(' ', blanks)
            }
        }
    }
}

/// Prints the element of a 0-d array: all digits, no padding.
pub fn write_scalar(raw: u128, reading: Reading, out: &mut Word) -> fmt::Result {
    let Reading::Float { format, complex } = reading else { return plain(raw, reading, out) };
    let [real, imaginary] = halves(raw, format);
    let rules = shown_as(format);
    if !complex {
        return float::scalar(&real, rules, true, false, out);
    }
    // Like Python: a real part of plus zero is not shown.
    if real.class == Class::Finite && real.mantissa == 0 && !real.negative {
        float::scalar(&imaginary, rules, false, false, out)?;
        return out.write_char('j');
    }
    out.write_char('(')?;
    float::scalar(&real, rules, false, false, out)?;
    float::scalar(&imaginary, rules, false, true, out)?;
    out.write_str("j)")
}
