//! Pure arithmetic on shapes and strides: sizes, extents, contiguity. Strides count elements.
//!
//! Sizes are decided zero first (any extent 0 means no elements, whatever the others are), then
//! with checked arithmetic: nothing wraps, and an error names the dimension at which it stopped.
#![forbid(unsafe_code)]

use crate::array::Pairs;
use crate::error::{Error, Field::*, Result, Status::*};

/// No tensor has more dimensions than this, as in NumPy.
pub const MAX_NDIM: usize = 64;

/// Extents and strides.
pub type Dims = Pairs<i64, MAX_NDIM>;

/// Memory orders.
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

/// Checks that no extent is negative; returns whether there are no elements.
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

/// Whether there are no elements.
#[inline]
pub fn is_empty(shape: &[i64]) -> bool {
    // In one loop: `contains` is vectorised, with a longer prologue.
    shape.iter().fold(false, |empty, &extent| empty | (extent == 0))
}

/// Number of elements of a shape without negative or zero extents, when it fits.
#[inline]
pub fn plain_numel(shape: &[i64]) -> Option<i64> {
    let (mut numel, mut odd) = (1i64, false);
    for &extent in shape {
        let (product, large) = numel.overflowing_mul(extent);
        (numel, odd) = (product, odd | large | (extent <= 0));
    }
    (!odd).then_some(numel)
}

/// Number of elements. The shape has passed [`check_shape`].
pub fn numel(shape: &[i64]) -> Result<i64> {
    let mut product: i64 = 1;
    for (dim, &extent) in shape.iter().enumerate() {
        product = match product.checked_mul(extent) {
            Some(product) => product,
            None if is_empty(shape) => return Ok(0),
            None => {
                let error = Error::new(DLRS_SIZE_OVERFLOW).field(DLRS_FIELD_SHAPE);
                return Err(error.dim(dim).value(extent).limit(i64::MAX));
            }
        };
    }
    Ok(product)
}

/// Bytes of `numel` elements of `item_bits` bits laid out without gaps, rounded up to whole bytes.
pub fn packed_nbytes(numel: i64, item_bits: u32) -> Result<u64> {
    let nbytes = match item_bits % 8 {
        0 => numel.checked_mul(i64::from(item_bits / 8)),
        _ => i64::try_from((i128::from(numel) * i128::from(item_bits) + 7) >> 3).ok(),
    };
    match nbytes {
        // The address space of this machine, not only 64 bits: isize::MAX is its limit.
        Some(nbytes) if isize::try_from(nbytes).is_ok() => Ok(nbytes as u64),
        _ => {
            let error = Error::new(DLRS_SIZE_OVERFLOW).field(DLRS_FIELD_SHAPE);
            Err(error.value(numel).limit(isize::MAX as i64))
        }
    }
}

/// Lowest and highest element offset from element (0, …, 0). The shape has no 0.
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
pub fn byte_extent(shape: &[i64], strides: &[i64], item_bits: u32) -> Result<(i64, i64)> {
    let (low, high) = extent(shape, strides)?;
    let ends = match item_bits % 8 {
        0 => whole_bytes(low, high, i64::from(item_bits / 8)),
        _ => {
            let bits = i128::from(item_bits);
            let first = i64::try_from((i128::from(low) * bits) >> 3).ok();
            first.zip(i64::try_from((i128::from(high) * bits + bits + 7) >> 3).ok())
        }
    };
    match ends {
        Some(ends) => Ok(ends),
        None => {
            let worst = if high.unsigned_abs() > low.unsigned_abs() { high } else { low };
            let error = Error::new(DLRS_EXTENT_OVERFLOW).field(DLRS_FIELD_STRIDES);
            Err(error.value(worst).limit(i64::MAX))
        }
    }
}

/// Size and extent of a layout of moderate numbers, dimension by dimension: extents, sizes and
/// strides from 0 up to the limits here, so that nothing can wrap and no step needs a check.
pub struct Sums {
    numel: i64,
    high: i64,
    /// All extents less 1, all sizes and strides, or-ed: negative if a size is 0 or a stride less.
    all: i64,
}

impl Sums {
    /// No dimension yet.
    pub const START: Sums = Sums { numel: 1, high: 0, all: 0 };
    /// The most dimensions: 8 reaches of 2^30 * 2^30 elements still fit.
    pub const NDIM_MAX: u32 = 8;

    /// Elements so far: the compact stride of the next dimension outwards.
    #[inline(always)]
    pub fn numel(&self) -> i64 {
        self.numel
    }

    /// One more dimension.
    #[inline(always)]
    pub fn add(&mut self, extent: i64, stride: i64) {
        let last = extent.wrapping_sub(1);
        self.numel = self.numel.wrapping_mul(extent);
        self.all |= last | self.numel | stride;
        self.high = self.high.wrapping_add(last.wrapping_mul(stride));
    }

    /// One past the last byte used, counted from the first, for elements of whole bytes, fewer than
    /// 2^21, as those of any dtype are; `None` if a number was not moderate.
    #[inline(always)]
    pub fn byte_end(&self, nbytes: u32) -> Option<i64> {
        if (self.all | self.high) as u64 >> 30 != 0 {
            return None;
        }
        // Below 2^30 * 2^21 and 2^30 * 2^21 + 2^21: nothing wraps. The limit of small machines.
        let nbytes = i64::from(nbytes);
        isize::try_from(self.numel.wrapping_mul(nbytes)).ok()?;
        Some(self.high.wrapping_mul(nbytes).wrapping_add(nbytes))
    }
}

/// As [`byte_extent`], of elements of fewer than 2^21 bytes, when all numbers are moderate: fewer
/// than 2^31 elements, strides below 2^28, of either sign. Both ends are then nearer than 2^62 +
/// 2^21. `None` if one is not, if there are no elements, or if compact ones would not fit.
#[inline(always)]
pub fn moderate_extent(shape: &[i64], strides: &[i64], nbytes: u32) -> Option<(i64, i64)> {
    const STEP: i64 = 1 << 28;
    let (mut numel, mut low, mut sum, mut sizes, mut steps) = (1i64, 0i64, 0i64, 0, 0);
    for (&extent, &stride) in shape.iter().zip(strides) {
        let last = extent.wrapping_sub(1);
        numel = numel.wrapping_mul(extent);
        sizes |= last | numel;
        steps |= stride.wrapping_add(STEP);
        // The sum of all `last` is less than the size, however many there are: nothing wraps.
        let reach = last.wrapping_mul(stride);
        low = low.wrapping_add(reach & (reach >> 63));
        sum = sum.wrapping_add(reach);
    }
    let high = sum.wrapping_sub(low);
    let ends = high | low.wrapping_neg();
    let odd = (sizes as u64 >> 31) | (steps as u64 >> 29) | (ends as u64 >> 41);
    let nbytes = i64::from(nbytes);
    if odd != 0 || isize::try_from(numel.wrapping_mul(nbytes)).is_err() {
        return None;
    }
    Some((low.wrapping_mul(nbytes), high.wrapping_mul(nbytes).wrapping_add(nbytes)))
}

fn whole_bytes(low: i64, high: i64, nbytes: i64) -> Option<(i64, i64)> {
    Some((low.checked_mul(nbytes)?, high.checked_mul(nbytes)?.checked_add(nbytes)?))
}

/// Fills `strides` for a compact layout. Saturates when empty: those strides are never used.
pub fn compact_strides(shape: &[i64], order: Order, strides: &mut [i64]) {
    fill_strides(shape, order, strides, |_| true);
}

/// Sets the strides without effect, of extents of 1 and of a tensor without elements, to those of a
/// compact row-major layout.
pub fn fill_unused_strides(shape: &[i64], strides: &mut [i64]) {
    let empty = is_empty(shape);
    fill_strides(shape, Order::C, strides, |extent| empty || extent == 1);
}

/// A stride in bytes as one in elements of so many bytes; `None` if it is no multiple. A division
/// would be slower.
#[inline(always)]
pub fn into_items(item_nbytes: u32) -> impl Fn(i64) -> Option<i64> {
    let item = i64::from(item_nbytes);
    let shift = item_nbytes.is_power_of_two().then(|| item_nbytes.trailing_zeros());
    move |stride| match shift {
        Some(shift) => (stride & (item - 1) == 0).then_some(stride >> shift),
        None => stride.checked_div(item).filter(|items| items * item == stride),
    }
}

/// Converts strides in bytes into strides in elements. Those without effect are ignored and become
/// compact. `item_nbytes` is not 0.
pub fn strides_from_bytes(shape: &[i64], strides: &mut [i64], item_nbytes: u32) -> Result<()> {
    let empty = is_empty(shape);
    let item = i64::from(item_nbytes);
    let turn = into_items(item_nbytes);
    for (dim, (&extent, stride)) in shape.iter().zip(strides.iter_mut()).enumerate() {
        if empty || extent == 1 {
            continue;
        }
        let Some(items) = turn(*stride) else {
            let error = Error::new(DLRS_STRIDES_UNEVEN).field(DLRS_FIELD_STRIDES).dim(dim);
            return Err(error.value(*stride).limit(item));
        };
        *stride = items;
    }
    fill_unused_strides(shape, strides);
    Ok(())
}

/// The inverse of [`strides_from_bytes`].
pub fn strides_to_bytes(shape: &[i64], strides: &mut [i64], item_nbytes: u32) -> Result<()> {
    fill_unused_strides(shape, strides);
    let empty = is_empty(shape);
    let item = i64::from(item_nbytes);
    for (dim, (&extent, stride)) in shape.iter().zip(strides).enumerate() {
        *stride = match stride.checked_mul(item) {
            Some(bytes) => bytes,
            None if empty || extent == 1 => stride.saturating_mul(item),
            None => {
                let error = Error::new(DLRS_EXTENT_OVERFLOW).field(DLRS_FIELD_STRIDES).dim(dim);
                return Err(error
                    .value(*stride)
                    .limit(i64::MAX.checked_div(item).unwrap_or(i64::MAX)));
            }
        };
    }
    Ok(())
}

/// Fills the strides of the extents that `wanted` selects as those of a compact layout.
fn fill_strides(shape: &[i64], order: Order, strides: &mut [i64], wanted: impl Fn(i64) -> bool) {
    let mut step: i64 = 1;
    let mut fill = |(&extent, stride): (&i64, &mut i64)| {
        if wanted(extent) {
            *stride = step;
        }
        step = step.saturating_mul(extent.max(1));
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
    if is_empty(shape) {
        return true;
    }
    // A step that overflows equals no stride: wrapped, it could be 0 or any other.
    let dense = |step: &mut Option<i64>, extent: i64, stride: i64| {
        let fits = extent == 1 || Some(stride) == *step;
        *step = step.and_then(|step| step.checked_mul(extent));
        fits
    };
    let mut step = Some(1);
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
    let mut step = Some(1i64);
    for _ in pairs() {
        match pairs().find(|&(_, &stride)| Some(stride) == step) {
            Some((&extent, _)) => step = step.and_then(|step| step.checked_mul(extent)),
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
