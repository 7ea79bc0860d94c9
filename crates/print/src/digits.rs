//! From binary to decimal digits: as few as identify the value, or a requested number.
//!
//! Source: Steele and White, "How to Print Floating-Point Numbers Accurately" (1990); Burger and
//! Dybvig, "Printing Floating-Point Numbers Quickly and Accurately" (1996), the algorithm with
//! exact integers. NumPy uses the same with two cutoffs, and the digits behind the shortest ones
//! show in its output, so a shortest-digits routine alone could not reproduce it.
#![forbid(unsafe_code)]

use super::big::Big;
use crate::float_formats::Parts;

/// No float needs more to be identified (17), nor prints more whole digits (17).
const MOST: usize = 24;

/// Where to stop. Places are powers of ten: 0 is the ones, -1 the tenths.
#[derive(Clone, Copy)]
pub enum Cut {
    /// At the shortest digits that identify the value.
    Shortest,
    /// At the shortest, or rounded after this many digits behind the point.
    Fraction(i32),
    /// As `Fraction`, but never before the ones.
    FractionWhole(i32),
    /// At the shortest, or rounded after this many digits.
    Total(i32),
    /// At exactly this many digits.
    Exactly(i32),
}

/// Decimal digits: the first stands at `exponent`. Trailing zeros are not kept; zero has none.
pub struct Decimal {
    digits: [u8; MOST],
    count: usize,
    /// Place of the first digit.
    pub exponent: i32,
}

impl Decimal {
    /// The digit at a place, as ASCII.
    pub fn digit(&self, place: i32) -> u8 {
        let known = self.digits.get(..self.count).unwrap_or(&[]);
        let index = usize::try_from(i64::from(self.exponent) - i64::from(place));
        index.ok().and_then(|index| known.get(index)).map_or(b'0', |digit| b'0' + digit)
    }

    /// How many digits stand behind the first.
    pub fn tail(&self) -> usize {
        self.count.saturating_sub(1)
    }

    /// How many digits stand behind the decimal point.
    pub fn fraction(&self) -> usize {
        usize::try_from(self.count as i64 - i64::from(self.exponent) - 1).unwrap_or(0)
    }

    /// How many digits stand before the decimal point, at least the one zero.
    pub fn whole(&self) -> usize {
        usize::try_from(i64::from(self.exponent) + 1).unwrap_or(0).max(1)
    }

    fn push(&mut self, digit: u8) {
        if let Some(free) = self.digits.get_mut(self.count) {
            *free = digit;
            self.count += 1;
        }
    }

    /// Adds one to the last digit; nines carry, and 99 becomes 100.
    fn round_up(&mut self) {
        while let Some(last) = self.count.checked_sub(1) {
            match self.digits.get_mut(last) {
                Some(digit) if *digit < 9 => {
                    *digit += 1;
                    return;
                }
                _ => self.count = last,
            }
        }
        self.exponent += 1;
        self.push(1);
    }

    fn trim(&mut self) {
        while let Some(0) = self.count.checked_sub(1).and_then(|last| self.digits.get(last)) {
            self.count -= 1;
        }
        if self.count == 0 {
            self.exponent = 0;
        }
    }
}

/// The number as a fraction `value / scale`, with half the distance to its neighbours.
struct Ratio {
    value: Big,
    scale: Big,
    below: Big,
    /// The margin above is twice the one below.
    wide_above: bool,
    /// An even mantissa: its margins belong to it.
    closed: bool,
}

impl Ratio {
    fn new(parts: &Parts) -> Ratio {
        let up = parts.exponent.max(0) as u32;
        let down = (-parts.exponent).max(0) as u32;
        let halves = 1 + u32::from(parts.closer_below);
        Ratio {
            value: Big::new(parts.mantissa).shifted(up + halves),
            scale: Big::new(1).shifted(down + halves),
            below: Big::new(1).shifted(up),
            wide_above: parts.closer_below,
            closed: parts.mantissa & 1 == 0,
        }
    }

    fn times_ten(&mut self) {
        self.value.multiply(10);
        self.below.multiply(10);
    }

    /// Divides by 10^`power`.
    fn divide(&mut self, power: i32) {
        for _ in 0..power {
            self.scale.multiply(10);
        }
        for _ in power..0 {
            self.times_ten();
        }
    }

    /// Takes the whole part, one digit, off the value.
    fn digit(&mut self) -> u8 {
        let mut digit = 0;
        while digit < 9 && !self.value.less(&self.scale) {
            self.value.subtract(&self.scale);
            digit += 1;
        }
        digit
    }

    /// Whether rounding down, and rounding up, still identifies the value.
    fn identified(&self) -> (bool, bool) {
        let mut top = self.value;
        top.add(&self.below);
        if self.wide_above {
            top.add(&self.below);
        }
        if self.closed {
            (!self.below.less(&self.value), !top.less(&self.scale))
        } else {
            (self.value.less(&self.below), self.scale.less(&top))
        }
    }

    /// Whether the rest is nearer to the next digit; a tie goes to the even one.
    fn nearer_up(&self, digit: u8) -> bool {
        let mut twice = self.value;
        twice.add(&self.value);
        self.scale.less(&twice) || (!twice.less(&self.scale) && digit & 1 == 1)
    }
}

/// The digits of a finite value, its sign left out.
pub fn digits(parts: &Parts, cut: Cut) -> Decimal {
    let mut out = Decimal { digits: [0; MOST], count: 0, exponent: 0 };
    if parts.mantissa == 0 {
        return out;
    }
    let mut ratio = Ratio::new(parts);
    let magnitude = i64::from(63 - parts.mantissa.leading_zeros()) + i64::from(parts.exponent);
    // Place of the first digit plus one, or one less than that: log10(2) is a little below.
    let mut place = (magnitude * 30103).div_euclid(100_000) as i32 + 1;
    if let Cut::Fraction(most) | Cut::FractionWhole(most) = cut {
        place = place.max(1 - most);
    }
    ratio.divide(place);
    if ratio.value.less(&ratio.scale) {
        ratio.times_ten();
    } else {
        place += 1;
    }
    let (first_stop, last) = match cut {
        Cut::Shortest => (place, place - MOST as i32),
        Cut::Fraction(most) => (place, -most),
        Cut::FractionWhole(most) => (place.min(0), -most),
        Cut::Total(count) => (place, place - count),
        Cut::Exactly(count) => (place - count, place - count),
    };
    let last = last.max(place - MOST as i32);
    out.exponent = place - 1;
    generate(&mut ratio, &mut out, first_stop, last);
    out
}

/// Writes digits until the value is identified at or behind `first_stop`, at most to `last`.
fn generate(ratio: &mut Ratio, out: &mut Decimal, first_stop: i32, last: i32) {
    let mut place = out.exponent;
    loop {
        let digit = ratio.digit();
        let (low, high) = ratio.identified();
        out.push(digit);
        if ((low || high) && place <= first_stop) || place <= last {
            if if low == high { ratio.nearer_up(digit) } else { high } {
                out.round_up();
            }
            return out.trim();
        }
        ratio.times_ten();
        place -= 1;
    }
}
