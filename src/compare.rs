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

/// Shows the numbers of both tensors, of the same dtype, side by side, 8 bytes each.
fn visit(
    (a, b): (&Snapshot, &Snapshot),
    as_kind: impl Fn(Kind) -> (Kind, Kind),
    mut visit: impl FnMut([u8; 8], [u8; 8]) -> bool,
) -> Result<()> {
    let [mut from_a, mut from_b] = [Part::of(a)?, Part::of(b)?];
    let (narrow, wide) = as_kind(from_a.kind);
    if a.empty {
        return Ok(());
    }
    for part in [&mut from_a, &mut from_b] {
        part.kind = narrow;
        if numbers::is_complex(a) {
            *part = part.both();
        }
    }
    let pair = numbers::pair(a.shape(), &from_a, &from_b, numbers::per_element(a));
    // SAFETY: every element has an address in memory that the caller vouched for.
    unsafe {
        cast::side_by_side([&pair.src, &pair.dst], wide, &pair.dims, &mut |a, b| {
            let mut stop = false;
            for (a, b) in a.as_chunks().0.iter().zip(b.as_chunks().0) {
                stop |= visit(*a, *b);
            }
            stop
        });
    }
    Ok(())
}

#[inline(never)]
fn check_readable(a: &Snapshot, b: &Snapshot, options: &Options) -> Result<()> {
    copy::check_same_dtype(a, b)?;
    copy::check_copyable(a, options)?;
    copy::check_copyable(b, options)
}

/// Whether two tensors of the same dtype have the same shape and equal elements.
pub fn equal(a: &Snapshot, b: &Snapshot, equality: Equality, options: &Options) -> Result<bool> {
    check_readable(a, b, options)?;
    if a.shape() != b.shape() {
        return Ok(false);
    }
    let values = equality != Equality::Bits;
    let mut same = true;
    let mut floats = false;
    let bits = |kind: Kind| Kind::Int { bits: kind.bits() as u8, signed: false };
    let kinds = |kind: Kind| match kind {
        Kind::Float(_) if values => (kind, Kind::FLOAT64),
        Kind::Bool if values => (kind, Kind::INT64),
        _ => (bits(kind), Kind::INT64),
    };
    if let Some(kind) = Kind::of(a.dtype.code, a.dtype.bits) {
        floats = values && kind.is_float();
    }
    visit((a, b), kinds, |a, b| {
        if floats {
            let (a, b) = (f64::from_ne_bytes(a), f64::from_ne_bytes(b));
            let nans = a.is_nan() && b.is_nan() && equality == Equality::ValuesOrNan;
            same &= a == b || nans;
        } else {
            same &= a == b;
        }
        !same
    })?;
    Ok(same)
}

/// The largest absolute difference of two elements; NaN where just one of the two is.
pub fn max_diff(a: &Snapshot, b: &Snapshot, options: &Options) -> Result<f64> {
    check_readable(a, b, options)?;
    copy::check_same_shape(a, b)?;
    let kind = Kind::of(a.dtype.code, a.dtype.bits).unwrap_or(Kind::Bool);
    let signed = matches!(kind, Kind::Int { signed: true, .. });
    let floats = kind.is_float();
    let (mut largest, mut most) = (0.0f64, 0u64);
    let wide = if floats { Kind::FLOAT64 } else { Kind::INT64 };
    visit(
        (a, b),
        |kind| (kind, wide),
        |a, b| {
            if !floats {
                let apart = i64::from_ne_bytes(a).abs_diff(i64::from_ne_bytes(b));
                let whole = u64::from_ne_bytes(a).abs_diff(u64::from_ne_bytes(b));
                most = most.max(if signed { apart } else { whole });
                return false;
            }
            let (a, b) = (f64::from_ne_bytes(a), f64::from_ne_bytes(b));
            let same = a == b || a.is_nan() && b.is_nan();
            let apart = if same { 0.0 } else { (a - b).abs() };
            if apart > largest || apart.is_nan() && !largest.is_nan() {
                largest = apart;
            }
            false
        },
    )?;
    Ok(if floats { largest } else { most as f64 })
}
