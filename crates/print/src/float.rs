//! Floats as NumPy prints them: one notation for a whole column, so that the points align.
//!
//! A column is scanned twice before it is printed: for its [`Span`], which decides between
//! positional and scientific notation, then for the width of its digits.
#![forbid(unsafe_code)]

use super::digits::{Cut, Decimal, digits};
use super::word::Word;
use crate::float_formats::{Class, FLOAT32, FLOAT64, FloatFormat, Magnitude, Parts};
use crate::integer_text::unsigned;
use core::fmt::{self, Write};

/// More places than positional notation has on either side of the point: 4 zeros and 17 digits.
/// Only a value that another thread has changed since it was measured can have more.
const MOST_PLACES: usize = 24;

/// Largest magnitude in positional notation, exclusive: in an array, and of a bare scalar.
fn limits(format: &FloatFormat) -> (Magnitude, Magnitude) {
    const THOUSAND: Magnitude = Magnitude::of(1000);
    const MILLION: Magnitude = Magnitude::of(1_000_000);
    match format.width() {
        16 => (THOUSAND, THOUSAND),
        32 => (MILLION, MILLION),
        _ => {
            (const { Magnitude::of(100_000_000) }, const { Magnitude::of(10_000_000_000_000_000) })
        }
    }
}

/// 0.0001 as the format has it.
fn least(format: &FloatFormat) -> Magnitude {
    let raw = match format.width() {
        16 => 0x068e,
        32 => 0.0001_f32.to_bits().into(),
        _ => 0.0001_f64.to_bits(),
    };
    format.parts(raw).magnitude()
}

/// Statistics of a column for the choice of its notation.
pub struct Span {
    largest: Magnitude,
    /// Of what is not 0.
    smallest: Magnitude,
    special: bool,
    minus_infinity: bool,
}

impl Span {
    /// Nothing seen.
    pub const EMPTY: Span = Span {
        largest: Magnitude::ZERO,
        smallest: Magnitude::MOST,
        special: false,
        minus_infinity: false,
    };

    /// Adds one value.
    pub fn see(&mut self, parts: &Parts) {
        if parts.class != Class::Finite {
            self.special = true;
            self.minus_infinity |= parts.class == Class::Infinite && parts.negative;
        } else if parts.mantissa != 0 {
            self.largest = self.largest.max(parts.magnitude());
            self.smallest = self.smallest.min(parts.magnitude());
        }
    }

    /// NumPy compares in the format of the array: the limits are rounded to it, and the ratio.
    fn scientific(&self, format: &FloatFormat) -> bool {
        self.largest != Magnitude::ZERO
            && (self.largest >= limits(format).0
                || self.smallest < least(format)
                || self.largest.thousandfold(&self.smallest, format.mantissa_bits))
    }
}

/// How a column of floats is printed.
pub struct Column {
    /// A plus is shown: the imaginary parts.
    plus: bool,
    scientific: bool,
    precision: i32,
    /// Characters left of the point, sign included.
    left: usize,
    /// Characters right of the point.
    right: usize,
    /// Digits of the exponent.
    power: usize,
}

impl Column {
    /// A column of what `span` has seen; [`Column::fit`] comes next, for every value.
    #[inline(never)]
    pub fn new(span: &Span, format: &FloatFormat, precision: u32, plus: bool) -> Column {
        let scientific = span.scientific(format);
        let precision = precision.min(1000) as i32;
        Column { plus, scientific, precision, left: 0, right: 0, power: 0 }
    }

    /// Makes room for a value.
    pub fn fit(&mut self, parts: &Parts) {
        if parts.class != Class::Finite {
            return;
        }
        let signs = usize::from(parts.negative || self.plus);
        if self.scientific {
            let decimal = digits(parts, Cut::Total(self.precision.saturating_add(1)));
            self.left = self.left.max(1 + signs);
            self.right = self.right.max(decimal.tail());
            self.power = self.power.max(power_width(decimal.exponent));
        } else {
            let decimal = digits(parts, Cut::Fraction(self.precision));
            self.left = self.left.max(decimal.whole().min(MOST_PLACES) + signs);
            self.right = self.right.max(decimal.fraction().min(MOST_PLACES));
        }
    }

    /// Makes room for what is not finite, once every value was fitted.
    pub fn finish(&mut self, span: &Span) {
        if self.scientific {
            self.precision = self.right as i32;
            self.right += self.power + 2;
        }
        if span.special {
            let infinity = 3 + usize::from(self.plus || span.minus_infinity);
            self.left = self.left.max(infinity.saturating_sub(self.right + 1));
        }
    }

    /// Prints a value at the column's width.
    pub fn write(&self, parts: &Parts, out: &mut Word) -> fmt::Result {
        if parts.class != Class::Finite {
            let nan = parts.class == Class::Nan;
            let sign = sign_of(parts.negative && !nan, self.plus);
            out.fill(' ', (self.left + self.right + 1).saturating_sub(3 + sign.len()))?;
            return write!(out, "{sign}{}", if nan { "nan" } else { "inf" });
        }
        let sign = sign_of(parts.negative, self.plus);
        if self.scientific {
            out.fill(' ', self.left.saturating_sub(1 + sign.len()))?;
            out.write_str(sign)?;
            let decimal = digits(parts, Cut::Exactly(self.precision + 1));
            scientific(&decimal, self.precision as usize, true, self.power, out)
        } else {
            let decimal = digits(parts, Cut::FractionWhole(self.precision));
            if decimal.whole().max(decimal.fraction()) > MOST_PLACES {
                return scalar(parts, &FLOAT32, true, self.plus, out);
            }
            out.fill(' ', self.left.saturating_sub(decimal.whole() + sign.len()))?;
            out.write_str(sign)?;
            positional(&decimal, decimal.fraction(), true, out)?;
            out.fill(' ', self.right.saturating_sub(decimal.fraction()))
        }
    }
}

/// Prints a bare scalar, all its digits. A real one keeps a digit behind the point ("1.0"), the
/// parts of a complex one do not.
pub fn scalar(
    parts: &Parts,
    format: &FloatFormat,
    real: bool,
    plus: bool,
    out: &mut Word,
) -> fmt::Result {
    match parts.class {
        Class::Nan => return write!(out, "{}nan", sign_of(false, plus)),
        Class::Infinite => return write!(out, "{}inf", sign_of(parts.negative, plus)),
        Class::Finite => out.write_str(sign_of(parts.negative, plus))?,
    }
    let decimal = digits(parts, Cut::Shortest);
    // Unlike those of an array, every format's scalars are compared with the same 0.0001.
    let positions = least(&FLOAT64)..limits(format).1;
    if parts.mantissa == 0 || positions.contains(&parts.magnitude()) {
        let fraction = decimal.fraction().max(real.into());
        positional(&decimal, fraction, fraction > 0, out)
    } else {
        scientific(&decimal, decimal.tail(), decimal.tail() > 0, 2, out)
    }
}

fn sign_of(negative: bool, plus: bool) -> &'static str {
    match (negative, plus) {
        (true, _) => "-",
        (false, true) => "+",
        (false, false) => "",
    }
}

/// Width of an exponent, which has at least two digits.
fn power_width(exponent: i32) -> usize {
    if exponent.unsigned_abs() < 100 { 2 } else { 3 }
}

fn places(decimal: &Decimal, from: i32, count: usize, out: &mut Word) -> fmt::Result {
    let mut place = from;
    (0..count).try_for_each(|_| {
        out.write_char(char::from(decimal.digit(place)))?;
        place -= 1;
        Ok(())
    })
}

fn positional(decimal: &Decimal, fraction: usize, point: bool, out: &mut Word) -> fmt::Result {
    places(decimal, decimal.exponent.max(0), decimal.whole(), out)?;
    if point {
        out.write_char('.')?;
    }
    places(decimal, -1, fraction, out)
}

fn scientific(
    decimal: &Decimal,
    tail: usize,
    point: bool,
    power: usize,
    out: &mut Word,
) -> fmt::Result {
    places(decimal, decimal.exponent, 1, out)?;
    if point {
        out.write_char('.')?;
    }
    places(decimal, decimal.exponent.saturating_sub(1), tail, out)?;
    let exponent = decimal.exponent.unsigned_abs();
    out.write_str(if decimal.exponent < 0 { "e-" } else { "e+" })?;
    let width = if exponent < 10 { 1 } else { power_width(decimal.exponent) };
    out.fill('0', power.saturating_sub(width))?;
    write!(out, "{}", unsigned(exponent.into()))
}
