//! Comparison of the elements of two tensors.

use crate::array::Array;
use crate::convert::{self, Cast, Kind};
use crate::copy::{self, Options, Pair, Streams};
use crate::error::{Of, Result};
use crate::layout::MAX_NDIM;
use crate::numbers::{self, Part};

/// When two elements are equal.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Equality {
    /// The same bits.
    Bits,
    /// The same number: zeros of both signs are equal, NaN is not equal to anything.
    Values,
    /// As values, and NaN is equal to NaN.
    ValuesOrNan,
}

/// The numbers of two tensors of the same dtype, side by side.
struct Both {
    pair: Cast,
    kind: Kind,
    equality: Equality,
    /// Some dimension repeats the elements of just one of the two.
    one_sided: bool,
}

impl Both {
    /// For a pair that was checked and has elements. `once(a, b)`: whether a dimension with these
    /// two strides, of which 0 repeats elements, is compared at its first index only.
    #[inline(never)]
    fn new(tensors: &Pair, equality: Equality, once: fn(i64, i64) -> bool) -> Result<Both> {
        let Pair { src: a, dst: b, args: [first, second] } = tensors;
        let [mut from_a, mut from_b] = [Part::of(a).of(*first)?, Part::of(b).of(*second)?];
        let kind = from_a.kind;
        let bits = Kind::Int { bits: kind.bits() as u8, signed: false };
        let mut shape = Array::<i64, MAX_NDIM>::new();
        let strides = from_a.strides.iter().zip(from_b.strides.iter());
        let mut one_sided = false;
        for (&extent, (&a, &b)) in a.shape().iter().zip(strides) {
            shape.push(if once(a, b) { 1 } else { extent });
            one_sided |= (a == 0) != (b == 0);
        }
        for part in [&mut from_a, &mut from_b] {
            if equality == Equality::Bits {
                part.kind = bits;
            }
            if numbers::is_complex(a) {
                *part = part.both();
            }
        }
        let pair = numbers::pair(&shape, &from_a, &from_b, numbers::per_element(a));
        Ok(Both { pair, kind, equality, one_sided })
    }

    /// Whether the numbers are compared as floating-point ones.
    fn floats(&self) -> bool {
        self.kind.is_float() && self.equality != Equality::Bits
    }

    /// Passes the numbers widened to 8 bytes to `visit`, until it returns false.
    ///
    /// # Safety
    /// The tensors that were read are live.
    unsafe fn visit(&self, wide: Kind, visit: &mut dyn FnMut(&[u8], &[u8]) -> bool) {
        // SAFETY: every element of both tensors, which are live, is readable.
        unsafe { convert::side_by_side(&self.pair, wide, visit) };
    }

    /// Whether all numbers are equal.
    ///
    /// # Safety
    /// The tensors that were read are live.
    unsafe fn equal(&self) -> bool {
        let mut same = true;
        // SAFETY: both tensors that were read are live.
        unsafe {
            if self.floats() {
                self.visit(Kind::FLOAT64, &mut |a, b| {
                    for (a, b) in pairs(a, b) {
                        let (a, b) = (f64::from_ne_bytes(a), f64::from_ne_bytes(b));
                        let nans = a.is_nan() & b.is_nan();
                        same &= (a == b) | nans & (self.equality == Equality::ValuesOrNan);
                    }
                    !same
                });
            } else {
                self.visit(Kind::INT64, &mut |a, b| {
                    same &= pairs(a, b).fold(true, |same, (a, b)| same & (a == b));
                    !same
                });
            }
        }
        same
    }
}

/// The numbers of two tiles, in pairs.
fn pairs<'a>(a: &'a [u8], b: &'a [u8]) -> impl Iterator<Item = ([u8; 8], [u8; 8])> + 'a {
    a.as_chunks().0.iter().copied().zip(b.as_chunks().0.iter().copied())
}

/// Requirements of a comparison on two tensors, except for their shapes.
fn check(pair: &Pair) -> Result<()> {
    pair.check_same_dtype()?;
    pair.check_each(|tensor| copy::check_host(tensor, &Options::DEFAULT))
}

/// Whether two tensors of the same dtype have the same shape and equal elements; both were read
/// with [`crate::validate::Rules::COPY`].
///
/// # Safety
/// Both are live.
pub unsafe fn equal(pair: &Pair, equality: Equality) -> Result<bool> {
    check(pair)?;
    if pair.src.shape() != pair.dst.shape() {
        return Ok(false);
    }
    if pair.src.empty {
        return Ok(true);
    }
    pair.host_access(&Streams::NONE)?;
    // A repeated element equals all its partners if it equals one of them, and this one equals all
    // the others: so the repeats of each tensor are compared once, in turn, instead of every pair.
    let first = Both::new(pair, equality, |a, _| a == 0)?;
    let second = Both::new(pair, equality, |_, b| b == 0)?;
    // SAFETY: both tensors are live, and both were read.
    unsafe { Ok(first.equal() && (!first.one_sided || second.equal())) }
}

/// The largest absolute difference of two elements; NaN where just one of the two is. Both were
/// read as for [`equal`].
///
/// # Safety
/// As [`equal`].
pub unsafe fn max_diff(pair: &Pair) -> Result<f64> {
    check(pair)?;
    pair.check_same_shape()?;
    if pair.src.empty {
        return Ok(0.0);
    }
    pair.host_access(&Streams::NONE)?;
    let both = Both::new(pair, Equality::Values, |a, b| a == 0 && b == 0)?;
    let mut largest = 0.0f64;
    // SAFETY: both tensors are live, and both were read.
    unsafe {
        if !both.floats() {
            return Ok(largest_of_integers(&both));
        }
        both.visit(Kind::FLOAT64, &mut |a, b| {
            for (a, b) in pairs(a, b) {
                let (a, b) = (f64::from_ne_bytes(a), f64::from_ne_bytes(b));
                let same = (a == b) | (a.is_nan() & b.is_nan());
                let apart = if same { 0.0 } else { (a - b).abs() };
                largest = if apart > largest || apart.is_nan() { apart } else { largest };
            }
            largest.is_nan()
        });
    }
    Ok(largest)
}

/// # Safety
/// The tensors that were read are live.
unsafe fn largest_of_integers(both: &Both) -> f64 {
    // Signed numbers are ordered as unsigned ones after the sign bit is flipped.
    let turn = if matches!(both.kind, Kind::Int { signed: true, .. }) { 1 << 63 } else { 0u64 };
    let mut largest = 0;
    // SAFETY: both tensors that were read are live.
    unsafe {
        both.visit(Kind::INT64, &mut |a, b| {
            for (a, b) in pairs(a, b) {
                let (a, b) = (u64::from_ne_bytes(a) ^ turn, u64::from_ne_bytes(b) ^ turn);
                largest = largest.max(a.abs_diff(b));
            }
            false
        });
    }
    nearest(largest)
}

/// The nearest double, ties to even, whatever the thread's rounding mode is.
fn nearest(whole: u64) -> f64 {
    let excess = (u64::BITS - whole.leading_zeros()).saturating_sub(f64::MANTISSA_DIGITS);
    let (kept, rest, half) = (whole >> excess, whole & ((1 << excess) - 1), (1u64 << excess) >> 1);
    let up = excess > 0 && (rest > half || rest == half && kept & 1 == 1);
    // Both are at most 2^53, and the second is a power of two: nothing is left to round.
    (kept + u64::from(up)) as i64 as f64 * (1i64 << excess) as f64
}
