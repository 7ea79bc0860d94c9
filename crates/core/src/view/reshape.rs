//! Steps that give another shape, and the rules of broadcasting.
//!
//! A reshape needs no copy exactly if the new shape splits the dimensions that remain after all
//! contiguous neighbours are merged: an extent across two merged dimensions would need two strides.

use super::*;
use crate::layout::Order;

// Descriptions and remedies.
const TOO_FEW: &str = "a tensor cannot be expanded to fewer dimensions\0Select or squeeze first.";
const NOT_ONE: &str = "only an extent of 1 can be expanded\0Give the tensor's extent, or -1.\0\
                       Extents must be equal, or 1 where they are repeated.";
const OTHER_NUMBER: &str =
    "the numbers of elements differ\0Give a shape of as many elements as the tensor has.";
const NO_DIVISOR: &str =
    "the other extents do not divide the elements\0Give extents that do, beside the -1.";

impl View<'_> {
    pub(super) fn as_strided(&mut self, shape: &[i64], strides: &[i64], offset: i64) -> Result<()> {
        layout::check_shape(shape).map_err(|e| e.of(Arg::shape))?;
        let room = if self.is_empty() { (0, 0) } else { self.span()? };
        self.replace(shape, strides);
        if self.is_empty() {
            return Ok(());
        }
        self.advance(offset, 1);
        inside(self.span().map_err(|e| e.of(Arg::strides))?, room)?;
        if sharing::self_verdict(self.shape(), self.strides(), self.slot_bits())
            != Verdict::Disjoint
        {
            self.set_read_only();
        }
        Ok(())
    }

    pub(super) fn reshape(&mut self, shape: &[i64]) -> Result<()> {
        let elements = layout::numel(self.shape());
        // Dense, or without elements.
        if layout::is_contiguous(self.shape(), self.strides(), Order::C) {
            inferred(shape, elements, self.dims)?;
            let (shape, strides) = self.dims.beside();
            layout::compact_strides(shape, Order::C, strides);
            return Ok(());
        }
        let mut dims = Dims::new();
        inferred(shape, elements, &mut dims)?;
        self.merge();
        let (shape, strides) = dims.beside();
        self.split(shape, strides)?;
        self.replace(shape, strides);
        Ok(())
    }

    /// Drops extents of 1 and merges contiguous neighbours. There are elements.
    pub(super) fn merge(&mut self) {
        let (mut kept, mut outer) = (0usize, (1i64, 0i64));
        for dim in 0..self.ndim() {
            let (extent, stride) = (self.extent(dim), self.stride(dim));
            if extent == 1 {
                continue;
            }
            let behind = i128::from(extent) * i128::from(stride) == i128::from(outer.1);
            if kept > 0 && behind {
                outer = (outer.0.saturating_mul(extent), stride);
            } else {
                (kept, outer) = (kept + 1, (extent, stride));
            }
            self.dims.set(kept.wrapping_sub(1), outer);
        }
        self.dims.truncate(kept);
    }

    /// Strides for `shape`, which has as many elements, by splitting merged dimensions; an error if
    /// that needs a copy.
    fn split(&self, shape: &[i64], strides: &mut [i64]) -> Result<()> {
        let mut groups = self.shape().iter().rev().zip(self.strides().iter().rev());
        let (mut left, mut step) = (1i64, 1i64);
        let places = (0..shape.len()).rev();
        for (dim, (&extent, slot)) in places.zip(shape.iter().rev().zip(strides.iter_mut().rev())) {
            if extent != 1
                && left == 1
                && let Some((&elements, &stride)) = groups.next()
            {
                (left, step) = (elements, stride);
            }
            *slot = step;
            if left.checked_rem(extent) != Some(0) {
                let error = not_viewable("this extent reaches over a gap in memory", dim, extent);
                return Err(error.of(Arg::shape));
            }
            left = left.checked_div(extent).unwrap_or(1);
            step = step.saturating_mul(extent);
        }
        Ok(())
    }

    pub(super) fn expand(&mut self, shape: &[i64]) -> Result<()> {
        let Some(added) = shape.len().checked_sub(self.ndim()) else {
            let error = Error::new(DLRS_SHAPE_MISMATCH).of(Arg::ndim).value(shape.len() as i64);
            let error = error.detail(TOO_FEW);
            return Err(error.limit(self.ndim() as i64));
        };
        let (mut dims, mut repeats) = (Dims::new(), false);
        for (dim, &wanted) in shape.iter().enumerate() {
            let own = dim.checked_sub(added);
            let extent = own.map_or(1, |own| self.extent(own));
            let wanted = if wanted == -1 && own.is_some() { extent } else { wanted };
            if wanted < 0 {
                let error = Error::new(DLRS_SHAPE_NEG).of(Arg::shape).dim(dim);
                return Err(error.value(wanted).limit(0));
            }
            if extent != wanted && extent != 1 {
                let error = Error::new(DLRS_SHAPE_MISMATCH).of(Arg::shape).dim(dim);
                let error = error.detail(NOT_ONE);
                return Err(error.value(wanted).limit(extent));
            }
            repeats |= extent != wanted;
            let stride = own.filter(|_| extent == wanted).map_or(0, |own| self.stride(own));
            dims.push((wanted, stride));
        }
        self.replace(dims.first(), dims.second());
        if repeats && !self.is_empty() {
            self.set_read_only();
        }
        Ok(())
    }

    pub(super) fn normalize(&mut self, what: u32) -> Result<()> {
        let unknown = what & !(NORMALIZE_OFFSET | NORMALIZE_STRIDES | NORMALIZE_MERGE);
        if unknown != 0 {
            const WHAT: &str = "these bits are not known\0Give bits of dlpack_rs.h only.";
            return Err(bad(Arg::what, WHAT, unknown.into()));
        }
        self.fold |= what & NORMALIZE_OFFSET != 0;
        if what & NORMALIZE_MERGE != 0 && !self.is_empty() {
            self.merge();
        }
        if what & NORMALIZE_STRIDES == 0 {
            return Ok(());
        }
        let (shape, strides) = self.dims.beside();
        layout::fill_unused_strides(shape, strides);
        Ok(())
    }
}

/// The shape with its -1 replaced; it has as many elements as there are.
fn inferred(wanted: &[i64], elements: Result<i64>, dims: &mut Dims) -> Result<()> {
    let mut unknown = None;
    dims.truncate(0);
    for (dim, &extent) in wanted.iter().enumerate() {
        dims.push((extent, 0));
        if extent == -1 && unknown.is_some() {
            const TWO: &str = "only one extent may be -1\0Give the others.";
            return Err(bad(Arg::shape, TWO, -1).dim(dim));
        }
        if extent == -1 {
            unknown = Some(dim);
        }
    }
    let elements = elements?;
    if let Some(dim) = unknown {
        dims.set(dim, (1, 0));
    }
    let shape = dims.first();
    layout::check_shape(shape).map_err(|e| e.of(Arg::shape))?;
    let known = layout::numel(shape).map_err(|e| e.of(Arg::shape))?;
    let mismatch = Error::new(DLRS_SHAPE_MISMATCH).of(Arg::shape).value(known).limit(elements);
    let Some(unknown) = unknown else {
        let mismatch = mismatch.detail(OTHER_NUMBER);
        return if known == elements { Ok(()) } else { Err(mismatch) };
    };
    match elements.checked_div(known) {
        Some(extent) if extent.wrapping_mul(known) == elements => {
            dims.set(unknown, (extent, 0));
            Ok(())
        }
        Some(_) => Err(mismatch.detail(NO_DIVISOR)),
        None => {
            const ANY: &str = "beside an extent of 0, -1 can be anything\0Give every extent.";
            Err(bad(Arg::shape, ANY, -1).dim(unknown))
        }
    }
}
