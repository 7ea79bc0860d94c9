//! Views as arithmetic: [`Step`]s change a layout. No memory is accessed.
//!
//! A [`View`] is a tensor's layout, and the offset of its first element from that of the base.
//! Every step is one change of it, so that a view of ten steps allocates one tensor.
//! [`View::settle`] checks at the end, once for all steps, that the view is inside the base, that
//! the sizes fit and that the first element starts on a whole byte.
//!
//! Between steps a first element may start inside a byte, and strides of extents of 1, or of a
//! tensor without elements, may be any: they are never used.
#![forbid(unsafe_code)]

mod axes;
mod elements;
mod index;
mod reshape;
pub mod sharing;

use crate::abi::{DLDataType, DLPACK_FLAG_BITMASK_READ_ONLY};
use crate::dtype;
use crate::error::{Arg, Error, Field::*, Result, Status::*};
use crate::layout::{self, Dims, MAX_NDIM};
use crate::overlap::Verdict;

/// As an axis: every axis that the step can change.
pub const ALL_AXES: i32 = i32::MIN;

/// Move `byte_offset` into `data`.
pub const NORMALIZE_OFFSET: u32 = 1 << 0;
/// Give every extent of 1, and every extent of an empty tensor, its compact row-major stride.
pub const NORMALIZE_STRIDES: u32 = 1 << 1;
/// Drop extents of 1 and merge dimensions that are contiguous with each other.
pub const NORMALIZE_MERGE: u32 = 1 << 2;

/// One change of a layout. An axis counts from the end when it is negative.
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs)] // the members are the parameters of the C functions, and explained there
pub enum Step<'a> {
    AsStrided { shape: &'a [i64], strides: &'a [i64], offset: i64 },
    Slice { axis: i32, start: i64, stop: i64, step: i64 },
    Select { axis: i32, index: i64 },
    Narrow { axis: i32, start: i64, count: i64 },
    Flip { axis: i32 },
    Unfold { axis: i32, window: i64, step: i64 },
    Diagonal { axis_a: i32, axis_b: i32, offset: i64 },
    Permute { axes: &'a [i64] },
    Transpose { axis_a: i32, axis_b: i32 },
    Squeeze { axis: i32 },
    Unsqueeze { axis: i32 },
    Reshape { shape: &'a [i64] },
    Expand { shape: &'a [i64] },
    Bitcast { dtype: DLDataType },
    Lanes { lanes: i32 },
    ReadOnly,
    Normalize { what: u32 },
}

/// The layout of a view, which starts as the base's.
pub struct View<'a> {
    /// Element type.
    pub dtype: DLDataType,
    /// Flags.
    pub flags: u64,
    /// `byte_offset` is to be moved into `data`.
    pub fold: bool,
    /// From the base's element (0, …, 0) to this one's.
    at_bits: i128,
    dims: &'a mut Dims,
}

/// An error about a parameter of the C function. In this module parameters have names but no
/// places: several functions have one of the same name.
#[cold]
fn bad(parameter: Arg, detail: &'static str, value: i64) -> Error {
    Error::new(DLRS_BAD_ARG).of(parameter).detail(detail).value(value)
}

/// The error for an axis that a tensor does not have.
#[cold]
pub fn no_axis(axis: i64, ndim: i64) -> Error {
    let words = match ndim {
        0 => "a 0-d tensor has no axis\0Unsqueeze it first.",
        _ => "there is no such axis\0Count axes from 0 to the limit, or from -1 backwards.",
    };
    Error::new(DLRS_BAD_ARG).detail(words).value(axis).limit(ndim - 1)
}

#[cold]
fn not_viewable(detail: &'static str, dim: usize, value: i64) -> Error {
    Error::new(DLRS_NOT_VIEWABLE).detail(detail).dim(dim).value(value)
}

impl<'a> View<'a> {
    /// A base as a view of itself.
    #[inline(always)]
    pub fn of(dims: &'a mut Dims, dtype: DLDataType, flags: u64) -> View<'a> {
        View { dtype, flags, fold: false, at_bits: 0, dims }
    }

    /// Extents.
    pub fn shape(&self) -> &[i64] {
        self.dims.first()
    }

    /// Strides in elements.
    pub fn strides(&self) -> &[i64] {
        self.dims.second()
    }

    fn ndim(&self) -> usize {
        self.dims.len()
    }

    /// Whether there are no elements.
    pub fn is_empty(&self) -> bool {
        layout::is_empty(self.shape())
    }

    /// Changes the layout by one step. After an error it must not be used.
    pub fn apply(&mut self, step: &Step) -> Result<()> {
        use Step::*;
        match *step {
            AsStrided { shape, strides, offset } => self.as_strided(shape, strides, offset),
            Slice { axis, start, stop, step } => self.slice(axis, start, stop, step),
            Select { axis, index } => self.select(axis, index),
            Narrow { axis, start, count } => self.narrow(axis, start, count),
            Flip { axis } => self.flip(axis),
            Unfold { axis, window, step } => self.unfold(axis, window, step),
            Diagonal { axis_a, axis_b, offset } => self.diagonal(axis_a, axis_b, offset),
            Permute { axes } => self.permute(axes),
            Transpose { axis_a, axis_b } => self.transpose(axis_a, axis_b),
            Squeeze { axis } => self.squeeze(axis),
            Unsqueeze { axis } => self.unsqueeze(axis),
            Reshape { shape } => self.reshape(shape),
            Expand { shape } => self.expand(shape),
            Bitcast { dtype } => self.bitcast(dtype),
            Lanes { lanes } => self.lanes(lanes),
            ReadOnly => {
                self.set_read_only();
                Ok(())
            }
            Normalize { what } => self.normalize(what),
        }
    }

    /// Bytes from the base's first element to this one's, `None` when there are no elements, once
    /// it is certain that the view stays inside `base_span`, the bytes that the base uses, counted
    /// from its first element.
    #[inline]
    pub fn settle(&self, base_span: (i64, i64)) -> Result<Option<i64>> {
        match self.settle_usual(base_span) {
            Some(moved) => Ok(Some(moved)),
            None => self.settle_any(base_span),
        }
    }

    /// As [`View::settle`], where elements are whole bytes, numbers are moderate and the view is
    /// valid.
    #[inline(always)]
    fn settle_usual(&self, base_span: (i64, i64)) -> Option<i64> {
        let (bits, at) = (self.slot_bits(), i64::try_from(self.at_bits).ok()?);
        if (i64::from(bits) | at) & 7 != 0 {
            return None;
        }
        let (low, high) = layout::moderate_extent(self.shape(), self.strides(), bits / 8)?;
        // The sum of an eighth of the range and little more than a half: nothing wraps.
        let moved = at >> 3;
        let inside = moved + low >= base_span.0 && moved + high <= base_span.1;
        inside.then_some(moved)
    }

    /// As [`View::settle`].
    #[inline(never)]
    fn settle_any(&self, base_span: (i64, i64)) -> Result<Option<i64>> {
        match self.at_bits & 7 {
            bit if bit != 0 && !self.is_empty() => {
                const WHAT: &str = "the view's first element would start inside a byte, at bit\0\
                    Start at a whole byte, or convert to elements of whole bytes.";
                Err(Error::new(DLRS_SUBBYTE).value(bit as i64).limit(0).detail(WHAT))
            }
            // Inside the base's span, so it fits.
            _ => Ok(self.first_bit(base_span)?.map(|bit| (bit >> 3) as i64)),
        }
    }

    /// As [`View::settle`], in bits: packed elements may start inside a byte.
    pub fn first_bit(&self, base_span: (i64, i64)) -> Result<Option<i128>> {
        if self.is_empty() {
            return Ok(None);
        }
        layout::packed_nbytes(layout::numel(self.shape())?, self.slot_bits())?;
        inside(self.span()?, (i128::from(base_span.0) * 8, i128::from(base_span.1) * 8))?;
        Ok(Some(self.at_bits))
    }

    /// First bit used and one past the last, from the base's first element. There are elements.
    fn span(&self) -> Result<(i128, i128)> {
        let (low, high) = layout::extent(self.shape(), self.strides())?;
        let bits = i128::from(self.slot_bits());
        let first = self.at_bits.saturating_add(i128::from(low) * bits);
        Ok((first, self.at_bits.saturating_add((i128::from(high) + 1) * bits)))
    }

    /// Bits from one element of a dense layout to the next.
    pub fn slot_bits(&self) -> u32 {
        dtype::slot_bits(self.dtype, self.flags)
    }

    /// Elements that share memory must not be written one by one.
    fn set_read_only(&mut self) {
        self.flags |= DLPACK_FLAG_BITMASK_READ_ONLY;
    }

    /// The dimension of an axis.
    fn dim_of(&self, axis: i32, parameter: Arg) -> Result<usize> {
        let ndim = self.ndim() as i64;
        let dim = if axis < 0 { i64::from(axis) + ndim } else { axis.into() };
        if (0..ndim).contains(&dim) {
            return Ok(dim as usize);
        }
        Err(no_axis(axis.into(), ndim).of(parameter))
    }

    fn extent(&self, dim: usize) -> i64 {
        self.dims.get(dim).map_or(1, |(extent, _)| extent)
    }

    fn stride(&self, dim: usize) -> i64 {
        self.dims.get(dim).map_or(0, |(_, stride)| stride)
    }

    /// Moves the first element by so many steps; without elements there is none.
    #[inline(always)]
    fn advance(&mut self, steps: i64, stride: i64) {
        let bits = i64::from(self.slot_bits());
        let moved = steps.checked_mul(stride).and_then(|elements| elements.checked_mul(bits));
        let at = i64::try_from(self.at_bits).ok();
        match at.zip(moved).and_then(|(at, moved)| at.checked_add(moved)) {
            Some(_) if self.is_empty() => {}
            Some(at) => self.at_bits = at.into(),
            None => self.advance_far(i128::from(steps) * i128::from(stride)),
        }
    }

    /// As [`View::advance`], by so many elements.
    #[inline(never)]
    fn advance_far(&mut self, elements: i128) {
        if !self.is_empty() {
            let bits = elements.saturating_mul(self.slot_bits().into());
            self.at_bits = self.at_bits.saturating_add(bits);
        }
    }

    /// Gives a dimension another extent and stride.
    #[inline(always)]
    fn set(&mut self, dim: usize, extent: i64, stride: i128) -> Result<()> {
        let stride = match i64::try_from(stride) {
            Ok(stride) => stride,
            Err(_) => {
                self.dims.set(dim, (extent, 0));
                self.fit(dim, extent, stride)?
            }
        };
        self.dims.set(dim, (extent, stride));
        Ok(())
    }

    /// A stride in 64 bits: one that is never used is clamped.
    #[inline(never)]
    fn fit(&self, dim: usize, extent: i64, stride: i128) -> Result<i64> {
        match i64::try_from(stride) {
            Ok(stride) => Ok(stride),
            Err(_) if extent <= 1 || self.is_empty() => {
                Ok(if stride < 0 { i64::MIN } else { i64::MAX })
            }
            Err(_) => {
                let error = Error::new(DLRS_EXTENT_OVERFLOW).field(DLRS_FIELD_STRIDES);
                Err(error.dim(dim).limit(i64::MAX))
            }
        }
    }

    /// Adds a dimension before `dim`.
    fn insert(&mut self, dim: usize, extent: i64, stride: i128) -> Result<()> {
        if self.ndim() >= MAX_NDIM {
            let error = Error::new(DLRS_NDIM).value(self.ndim() as i64 + 1);
            return Err(error.limit(MAX_NDIM as i64).detail("the view would have too many axes"));
        }
        let stride = match i64::try_from(stride) {
            Ok(stride) => stride,
            Err(_) => self.fit(dim, extent, stride)?,
        };
        let mut carried = (extent, stride);
        for at in dim..self.ndim() {
            let next = self.dims.get(at).unwrap_or(carried);
            self.dims.set(at, carried);
            carried = next;
        }
        self.dims.push(carried);
        Ok(())
    }

    /// Removes a dimension.
    #[inline(never)]
    fn remove(&mut self, dim: usize) {
        let mut at = dim;
        while let Some(next) = self.dims.get(at + 1) {
            self.dims.set(at, next);
            at += 1;
        }
        self.dims.truncate(at);
    }

    /// Takes over extents and strides of at most `MAX_NDIM` dimensions.
    fn replace(&mut self, shape: &[i64], strides: &[i64]) {
        self.dims.truncate(0);
        // In one loop: for so few values a call of memcpy is slower, and its wide loads stall on
        // the narrow stores just before.
        shape.iter().zip(strides).for_each(|(&extent, &stride)| self.dims.push((extent, stride)));
    }
}

/// Rejects bits outside of `base`; the error is in bytes if they are whole.
fn inside((low, high): (i128, i128), base: (i128, i128)) -> Result<()> {
    if low >= base.0 && high <= base.1 {
        return Ok(());
    }
    let (worst, limit) = if low < base.0 { (low, base.0) } else { (high, base.1) };
    let (shift, detail) = match (worst | limit) & 7 {
        0 => (3, "the view would reach outside its base, bytes from the first element"),
        _ => (0, "the view would reach outside its base, bits from the first element"),
    };
    let near = |bits: i128| (bits >> shift).clamp(i64::MIN.into(), i64::MAX.into()) as i64;
    let error = Error::new(DLRS_OUT_OF_BOUNDS).value(near(worst)).limit(near(limit));
    Err(error.detail(detail))
}
