//! Comparison of the elements of two tensors.

use crate::copy::{self, Options};
use crate::device::cast::{self, Kind};
use crate::error::Result;
use crate::numbers::{self, Part};
use crate::validate::Snapshot;

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

/// Shows the numbers of both tensors, of the same dtype, side by side: read as `narrow` (`None`:
/// as they are), made `wide`, 8 bytes each, until `visit` has seen enough.
#[inline(never)]
fn visit(
    (a, b): (&Snapshot, &Snapshot),
    (narrow, wide): (Option<Kind>, Kind),
    visit: &mut dyn FnMut(&[u8], &[u8]) -> bool,
) -> Result<()> {
    let [mut from_a, mut from_b] = [Part::zero(), Part::zero()];
    from_a.read(a)?;
    from_b.read(b)?;
    if a.empty {
        return Ok(());
    }
    for part in [&mut from_a, &mut from_b] {
        part.kind = narrow.unwrap_or(part.kind);
        if numbers::is_complex(a) {
            *part = part.both();
        }
    }
    let pair = numbers::pair(a.shape(), &from_a, &from_b, numbers::per_element(a));
    // SAFETY: every element has an address in memory that the caller vouched for.
    unsafe { cast::side_by_side([&pair.src, &pair.dst], wide, &pair.dims, visit) };
    Ok(())
}

/// The numbers of two tiles, in pairs.
fn pairs<'a>(a: &'a [u8], b: &'a [u8]) -> impl Iterator<Item = ([u8; 8], [u8; 8])> + 'a {
    a.as_chunks().0.iter().copied().zip(b.as_chunks().0.iter().copied())
}

#[inline(never)]
fn check_readable(a: &Snapshot, b: &Snapshot, options: &Options) -> Result<()> {
    copy::check_same_dtype(a, b)?;
    copy::check_host(a, options)?;
    copy::check_host(b, options)
}

/// Whether two tensors of the same dtype have the same shape and equal elements.
pub fn equal(a: &Snapshot, b: &Snapshot, equality: Equality, options: &Options) -> Result<bool> {
    check_readable(a, b, options)?;
    if a.shape() != b.shape() {
        return Ok(false);
    }
    let mut same = true;
    let kind = Kind::of(a.dtype.code, a.dtype.bits).unwrap_or(Kind::Bool);
    if kind.is_float() && equality != Equality::Bits {
        visit((a, b), (None, Kind::FLOAT64), &mut |a, b| {
            for (a, b) in pairs(a, b) {
                let (a, b) = (f64::from_ne_bytes(a), f64::from_ne_bytes(b));
                let nans = a.is_nan() & b.is_nan() & (equality == Equality::ValuesOrNan);
                same &= (a == b) | nans;
            }
            !same
        })?;
        return Ok(same);
    }
    let narrow = match equality {
        Equality::Bits => Some(Kind::Int { bits: kind.bits() as u8, signed: false }),
        _ => None,
    };
    visit((a, b), (narrow, Kind::INT64), &mut |a, b| {
        same &= pairs(a, b).fold(true, |same, (a, b)| same & (a == b));
        !same
    })?;
    Ok(same)
}

/// The largest absolute difference of two elements; NaN where just one of the two is.
pub fn max_diff(a: &Snapshot, b: &Snapshot, options: &Options) -> Result<f64> {
    check_readable(a, b, options)?;
    copy::check_same_shape(a, b)?;
    let kind = Kind::of(a.dtype.code, a.dtype.bits).unwrap_or(Kind::Bool);
    if kind.is_float() {
        let mut largest = 0.0f64;
        visit((a, b), (None, Kind::FLOAT64), &mut |a, b| {
            for (a, b) in pairs(a, b) {
                let (a, b) = (f64::from_ne_bytes(a), f64::from_ne_bytes(b));
                let same = (a == b) | (a.is_nan() & b.is_nan());
                let apart = if same { 0.0 } else { (a - b).abs() };
                largest = if apart > largest || apart.is_nan() { apart } else { largest };
            }
            largest.is_nan()
        })?;
        return Ok(largest);
    }
    // What has a sign is ordered as if it had none, once the sign is turned round.
    let turn = if matches!(kind, Kind::Int { signed: true, .. }) { 1 << 63 } else { 0u64 };
    let mut largest = 0;
    visit((a, b), (None, Kind::INT64), &mut |a, b| {
        for (a, b) in pairs(a, b) {
            let (a, b) = (u64::from_ne_bytes(a) ^ turn, u64::from_ne_bytes(b) ^ turn);
            largest = largest.max(a.abs_diff(b));
        }
        false
    })?;
    Ok(largest as f64)
}
