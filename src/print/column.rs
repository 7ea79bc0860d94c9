//! The elements of one dtype as words of equal width.
#![forbid(unsafe_code)]

use super::float::{self, Column, Span};
use super::walk::Walk;
use super::word::Word;
use super::{Elements, PrintOptions};
use crate::abi::{DLDataType, DLDataTypeCode::*};
use crate::dtype;
use crate::float_formats::{self, Class, FLOAT32, FloatFormat, Parts};
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
    /// A float.
    Real(&'static FloatFormat),
    /// Two floats, the real part in the low bits.
    Complex(&'static FloatFormat),
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
        } else if is(kDLComplex) {
            Reading::Complex(float_formats::of(kDLFloat as u8, dtype.bits / 2)?)
        } else {
            Reading::Real(float_formats::of(dtype.code, dtype.bits)?)
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
fn halves(raw: u128, format: &'static FloatFormat) -> (Parts, Parts) {
    let shown = shown_as(format);
    let second = (raw >> format.width()) as u64;
    (parts(raw as u64, format, shown), parts(second, format, shown))
}

/// A whole number, a truth value or a handle, unpadded.
fn plain(raw: u128, reading: Reading, out: &mut Word) -> fmt::Result {
    let low = |bits: u8| raw as u64 & u64::MAX >> (64 - u32::from(bits.clamp(1, 64)));
    match reading {
        Reading::Signed(bits) => {
            let unused = 64 - u32::from(bits.clamp(1, 64));
            write!(out, "{}", ((raw as u64) << unused) as i64 >> unused)
        }
        Reading::Unsigned(bits) => write!(out, "{}", low(bits)),
        Reading::Bool => out.write_str(if low(8) != 0 { "True" } else { "False" }),
        _ => write!(out, "{:#x}", low(64)),
    }
}

/// The style of a whole array.
pub enum Style {
    /// Right-aligned words of this width.
    Plain(Reading, usize),
    /// Floats.
    Real(&'static FloatFormat, Column),
    /// Pairs of floats.
    Complex(&'static FloatFormat, Column, Column),
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
        let (format, complex) = match reading {
            Reading::Real(format) => (format, false),
            Reading::Complex(format) => (format, true),
            _ => return Style::plain(reading, walk, elements),
        };
        let mut spans = (Span::EMPTY, Span::EMPTY);
        each(walk, elements, &mut |raw| {
            let (real, imaginary) = halves(raw, format);
            spans.0.see(&real);
            spans.1.see(&imaginary);
        });
        let rules = shown_as(format);
        let mut real = Column::new(&spans.0, rules, options.precision, false);
        let mut imaginary = Column::new(&spans.1, rules, options.precision, true);
        each(walk, elements, &mut |raw| {
            let (first, second) = halves(raw, format);
            real.fit(&first);
            if complex {
                imaginary.fit(&second);
            }
        });
        real.finish(&spans.0);
        imaginary.finish(&spans.1);
        if complex { Style::Complex(format, real, imaginary) } else { Style::Real(format, real) }
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
            Style::Real(format, column) => column.write(&halves(raw, format).0, out),
            Style::Complex(format, real, imaginary) => {
                let (first, second) = halves(raw, format);
                real.write(&first, out)?;
                imaginary.write(&second, out)?;
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
    let (format, complex) = match reading {
        Reading::Real(format) => (format, false),
        Reading::Complex(format) => (format, true),
        _ => return plain(raw, reading, out),
    };
    let (real, imaginary) = halves(raw, format);
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
