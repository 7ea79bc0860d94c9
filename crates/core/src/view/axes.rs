//! Steps that order, drop and add axes.

use super::{ALL_AXES, View, bad};
use crate::error::{Arg, Error, Field::*, Result, Status::*};
use crate::layout::Dims;

impl View<'_> {
    pub(super) fn permute(&mut self, axes: &[i64]) -> Result<()> {
        if axes.len() != self.ndim() {
            const NUMBER: &str = "there must be as many axes as dimensions\0Name every axis once.";
            let error = bad(Arg::ndim, NUMBER, axes.len() as i64);
            return Err(error.limit(self.ndim() as i64));
        }
        let (mut dims, mut seen) = (Dims::new(), 0u64);
        for (place, &axis) in axes.iter().enumerate() {
            // What does not fit into 32 bits is no axis either.
            let narrow = i32::try_from(axis).unwrap_or(i32::MAX);
            let dim = self.dim_of(narrow, Arg::axes).map_err(|e| e.dim(place).value(axis))?;
            let bit = 1u64.wrapping_shl(dim as u32);
            if seen & bit != 0 {
                const TWICE: &str = "the axis is given twice\0Name every axis once.";
                return Err(bad(Arg::axes, TWICE, axis).dim(place));
            }
            seen |= bit;
            dims.push((self.extent(dim), self.stride(dim)));
        }
        self.replace(dims.first(), dims.second());
        Ok(())
    }

    /// The axes in the opposite order.
    pub fn reverse_axes(&mut self) {
        let ndim = self.ndim();
        for dim in 0..ndim / 2 {
            self.swap(dim, ndim - 1 - dim);
        }
    }

    fn swap(&mut self, a: usize, b: usize) {
        if let (Some(first), Some(second)) = (self.dims.get(a), self.dims.get(b)) {
            self.dims.set(a, second);
            self.dims.set(b, first);
        }
    }

    pub(super) fn transpose(&mut self, axis_a: i32, axis_b: i32) -> Result<()> {
        let a = self.dim_of(axis_a, Arg::axis_a)?;
        let b = self.dim_of(axis_b, Arg::axis_b)?;
        self.swap(a, b);
        Ok(())
    }

    pub(super) fn squeeze(&mut self, axis: i32) -> Result<()> {
        if axis != ALL_AXES {
            let dim = self.dim_of(axis, Arg::axis)?;
            let extent = self.extent(dim);
            if extent != 1 {
                let error = Error::new(DLRS_SHAPE_MISMATCH).detail(
                    "only an axis of extent 1 can be removed\0Select an index of it instead.",
                );
                return Err(error.field(DLRS_FIELD_SHAPE).dim(dim).value(extent).limit(1));
            }
            self.remove(dim);
            return Ok(());
        }
        let mut dim = 0;
        while dim < self.ndim() {
            if self.extent(dim) == 1 { self.remove(dim) } else { dim += 1 }
        }
        Ok(())
    }

    /// The new axis is before the given one; -1 is after the last.
    pub(super) fn unsqueeze(&mut self, axis: i32) -> Result<()> {
        let places = self.ndim() as i64 + 1;
        let dim = if axis < 0 { i64::from(axis) + places } else { axis.into() };
        if !(0..places).contains(&dim) {
            const PLACE: &str = "there is no such place for an axis\0\
                                 Count places from 0 to the limit, or from -1 backwards.";
            return Err(bad(Arg::axis, PLACE, axis.into()).limit(places - 1));
        }
        let dim = dim as usize;
        // The stride that a dense tensor would have there.
        let inner = i128::from(self.extent(dim)) * i128::from(self.stride(dim));
        self.insert(dim, 1, if dim < self.ndim() { inner } else { 1 })
    }
}
