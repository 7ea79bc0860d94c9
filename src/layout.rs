//! Pure arithmetic on shapes and strides: sizes, extents, contiguity. Strides count elements.
//!
//! Sizes are decided zero first (any extent 0 means no elements, whatever the others are), then
//! with checked arithmetic: nothing wraps, and an error names the dimension at which it stopped.
#![forbid(unsafe_code)]

use crate::error::{Error, Field::*, Result, Status::*};

/// No tensor has more dimensions than this, as in NumPy.
pub const MAX_NDIM: usize = 64;

/// Memory orders that can be asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Order {
    /// Row-major: the last dimension is dense.
    C,
    /// Column-major: the first dimension is dense.
    F,
    /// Row-major or column-major.
    A,
    /// Dense in some order of the dimensions, without gaps or repeats.
    K,
}

impl Order {
    /// The order of a C character, `'C'`, `'F'`, `'A'` or `'K'`.
    pub const fn from_char(code: i32) -> Option<Order> {
        Some(match code {
            67 => Order::C,
            70 => Order::F,
            65 => Order::A,
            75 => Order::K,
            _ => return None,
        })
    }
}

/// Checks that no extent is negative; tells whether there are no elements.
#[inline]
pub fn check_shape(shape: &[i64]) -> Result<bool> {
    let mut empty = false;
    for (dim, &extent) in shape.iter().enumerate() {
        if extent < 0 {
            let error = Error::new(DLRS_SHAPE_NEG).field(DLRS_FIELD_SHAPE);
            return Err(error.dim(dim).value(extent).limit(0));
        }
        empty |= extent == 0;
    }
    Ok(empty)
}

/// Number of elements. The shape has passed [`check_shape`].
#[inline]
pub fn numel(shape: &[i64]) -> Result<i64> {
    let mut product: i64 = 1;
    for (dim, &extent) in shape.iter().enumerate() {
        product = match product.checked_mul(extent) {
            Some(product) => product,
            None if shape.contains(&0) => return Ok(0),
            None => {
                let error = Error::new(DLRS_SIZE_OVERFLOW).field(DLRS_FIELD_SHAPE);
                return Err(error.dim(dim).value(extent).limit(i64::MAX));
            }
        };
    }
    Ok(product)
}

/// Bytes of `numel` elements of `item_bits` bits laid out without gaps, rounded up to whole bytes.
#[inline]
pub fn packed_nbytes(numel: i64, item_bits: u32) -> Result<u64> {
    let nbytes = (i128::from(numel) * i128::from(item_bits) + 7) / 8;
    match i64::try_from(nbytes) {
        // The address space of this machine, not only 64 bits: isize::MAX is its limit.
        Ok(nbytes) if isize::try_from(nbytes).is_ok() => Ok(nbytes as u64),
        _ => {
            let error = Error::new(DLRS_SIZE_OVERFLOW).field(DLRS_FIELD_SHAPE);
            Err(error.value(numel).limit(isize::MAX as i64))
        }
    }
}

/// Lowest and highest element offset from element (0, …, 0). The shape has no 0.
#[inline]
pub fn extent(shape: &[i64], strides: &[i64]) -> Result<(i64, i64)> {
    let (mut low, mut high) = (0i64, 0i64);
    for (dim, (&extent, &stride)) in shape.iter().zip(strides).enumerate() {
        // The two ends are summed apart: a large positive and a large negative reach must not
        // cancel. A stride of a dimension of extent 1 is never used.
        let reach = if extent == 1 { Some(0) } else { stride.checked_mul(extent - 1) };
        let sums = reach.and_then(|reach| {
            Some((low.checked_add(reach.min(0))?, high.checked_add(reach.max(0))?))
        });
        (low, high) = match sums {
            Some(sums) => sums,
            None => {
                let error = Error::new(DLRS_EXTENT_OVERFLOW).field(DLRS_FIELD_STRIDES);
                return Err(error.dim(dim).value(stride).limit(i64::MAX));
            }
        };
    }
    Ok((low, high))
}

/// The bytes from element (0, …, 0)'s address to the first byte used, and to one past the last.
#[inline]
pub fn byte_extent(shape: &[i64], strides: &[i64], item_bits: u32) -> Result<(i64, i64)> {
    let (low, high) = extent(shape, strides)?;
    let bits = i128::from(item_bits);
    let first = (i128::from(low) * bits).div_euclid(8);
    let last = (i128::from(high) * bits + bits + 7).div_euclid(8);
    match (i64::try_from(first), i64::try_from(last)) {
        (Ok(first), Ok(last)) => Ok((first, last)),
        _ => {
            let worst = if high.unsigned_abs() > low.unsigned_abs() { high } else { low };
            let error = Error::new(DLRS_EXTENT_OVERFLOW).field(DLRS_FIELD_STRIDES);
            Err(error.value(worst).limit(i64::MAX))
        }
    }
}

/// Fills `strides` for a compact layout. Saturates when empty: those strides are never used.
pub fn compact_strides(shape: &[i64], order: Order, strides: &mut [i64]) {
    let mut step: i64 = 1;
    let mut fill = |(extent, stride): (&i64, &mut i64)| {
        *stride = step;
        step = step.saturating_mul((*extent).max(1));
    };
    // Both sides are reversed before they are paired: a reversed zip keeps a panic path alive.
    match order {
        Order::F => shape.iter().zip(strides).for_each(&mut fill),
        _ => {
            let used = strides.len().min(shape.len());
            let (strides, _) = strides.split_at_mut_checked(used).unwrap_or_default();
            shape.iter().rev().zip(strides.iter_mut().rev()).for_each(&mut fill)
        }
    }
}

/// Whether the layout is dense in `order`. Dimensions of extent 1 and empty tensors always fit.
#[inline]
pub fn is_contiguous(shape: &[i64], strides: &[i64], order: Order) -> bool {
    if shape.contains(&0) {
        return true;
    }
    let dense = |step: &mut i64, extent: i64, stride: i64| {
        let fits = extent == 1 || stride == *step;
        *step = step.wrapping_mul(extent);
        fits
    };
    let mut step = 1;
    match order {
        Order::C => {
            let mut pairs = shape.iter().rev().zip(strides.iter().rev());
            pairs.all(|(&extent, &stride)| dense(&mut step, extent, stride))
        }
        Order::F => {
            let mut pairs = shape.iter().zip(strides);
            pairs.all(|(&extent, &stride)| dense(&mut step, extent, stride))
        }
        Order::A => {
            is_contiguous(shape, strides, Order::C) || is_contiguous(shape, strides, Order::F)
        }
        Order::K => is_dense(shape, strides),
    }
}

/// Whether some order of the dimensions makes the layout compact: repeatedly finds the dimension
/// whose stride is the size of what is already inside.
fn is_dense(shape: &[i64], strides: &[i64]) -> bool {
    let pairs = || shape.iter().zip(strides).filter(|&(&extent, _)| extent != 1);
    let mut step: i64 = 1;
    for _ in pairs() {
        match pairs().find(|&(_, &stride)| stride == step) {
            Some((&extent, _)) => step = step.wrapping_mul(extent),
            None => return false,
        }
    }
    true
}

/// The strides of a fresh dense layout that keeps the order of `strides` (order K): dimensions
/// with larger absolute strides stay outside.
pub fn like_strides(shape: &[i64], strides: &[i64], out: &mut [i64]) {
    let weight = |dim: usize| strides.get(dim).map_or(0, |s| s.unsigned_abs());
    for dim in 0..shape.len() {
        // The step of a dimension is the product of the extents of all dimensions inside it.
        let mut step: i64 = 1;
        for (other, &extent) in shape.iter().enumerate() {
            let inside = weight(other) < weight(dim) || weight(other) == weight(dim) && other > dim;
            if inside {
                step = step.saturating_mul(extent.max(1));
            }
        }
        if let Some(stride) = out.get_mut(dim) {
            *stride = step;
        }
    }
}

/// The dimensions from the outermost to the innermost, as [`like_strides`] places them.
pub fn stride_order(strides: &[i64], out: &mut [i64]) {
    for (dim, stride) in strides.iter().enumerate() {
        let weight = stride.unsigned_abs();
        let outside = strides.iter().enumerate().filter(|(other, stride)| {
            let other_weight = stride.unsigned_abs();
            other_weight > weight || other_weight == weight && *other < dim
        });
        if let Some(slot) = out.get_mut(outside.count()) {
            *slot = dim as i64;
        }
    }
}
