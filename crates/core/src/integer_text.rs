//! Integers as text. In core's own formatting, whether a bounds check remains, and with it a panic,
//! depends on the version of Rust (law 6).
#![forbid(unsafe_code)]

use core::fmt;

/// An integer that prints as digits of a base, at least `least` of them.
pub struct Digits<const BASE: u64> {
    negative: bool,
    magnitude: u64,
    least: usize,
}

/// In decimal.
pub fn signed(number: i64) -> Digits<10> {
    Digits { negative: number < 0, magnitude: number.unsigned_abs(), least: 1 }
}

/// In decimal.
pub fn unsigned(number: u64) -> Digits<10> {
    Digits { negative: false, magnitude: number, least: 1 }
}

/// In lower-case hexadecimal, with zeros before it up to `least` digits.
pub fn hex(number: u64, least: usize) -> Digits<16> {
    Digits { negative: false, magnitude: number, least }
}

impl<const BASE: u64> fmt::Display for Digits<BASE> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut digits = [0; 20]; // of u64::MAX in decimal
        let mut start = digits.len();
        let most = start.saturating_sub(self.least);
        let mut rest = self.magnitude;
        for place in digits.iter_mut().rev() {
            if rest == 0 && start <= most {
                break;
            }
            let digit = (rest % BASE) as u8;
            *place = digit + if digit < 10 { b'0' } else { b'a' - 10 };
            rest /= BASE;
            start -= 1;
        }
        if self.negative {
            out.write_str("-")?;
        }
        out.write_str(digits.get(start..).and_then(|text| str::from_utf8(text).ok()).unwrap_or(""))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::format;

    #[test]
    fn integers_read_as_those_of_core() {
        let edges = (0..20).map(|power| 10u64.pow(power)).chain((0..64).map(|bit| 1 << bit));
        let near = edges.flat_map(|edge| [edge - 1, edge, edge + 1, edge.wrapping_neg()]);
        let mut state = 1u64;
        let random = core::iter::repeat_with(move || {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (state ^ state >> 29) >> (state >> 58)
        });
        for number in near.chain([u64::MAX]).chain(random.take(100_000)) {
            let number_signed = number as i64;
            assert_eq!(format!("{}", unsigned(number)), format!("{number}"));
            assert_eq!(format!("{}", signed(number_signed)), format!("{number_signed}"));
            assert_eq!(format!("{}", hex(number, 1)), format!("{number:x}"));
            assert_eq!(format!("{}", hex(number, 2)), format!("{number:02x}"));
        }
    }
}
