//! Steps that select elements along an axis.

use core::num::NonZeroU64;

use super::{ALL_AXES, View, bad};
use crate::error::{Arg, Result};

impl View<'_> {
    /// Python's `[start:stop:step]`: indices from the end when negative, then clamped.
    pub(super) fn slice(&mut self, axis: i32, start: i64, stop: i64, step: i64) -> Result<()> {
        let dim = self.dim_of(axis, Arg::axis)?;
        let Some(size) = NonZeroU64::new(step.unsigned_abs()) else {
            return Err(bad(
                Arg::step,
                "a slice needs a step other than 0\0Give 1, or -1 to reverse.",
                0,
            ));
        };
        let count = self.extent(dim);
        // Where an index can stand: going back, it can stand before the first element.
        let (low, high) = if step > 0 { (0, count) } else { (-1, count - 1) };
        // An extent is not negative, so nothing wraps.
        let clamped =
            |index: i64| (if index < 0 { index + count } else { index }).max(low).min(high);
        let (start, stop) = (clamped(start), clamped(stop));
        let gap = if step > 0 { stop - start } else { start - stop };
        let extent = match gap as u64 {
            _ if gap <= 0 => 0,
            gap if size.get() == 1 => gap,
            gap => (gap - 1) / size + 1,
        };
        self.walk(dim, start, extent as i64, step)
    }

    /// Keeps `extent` elements from `start` on, every `step`th.
    fn walk(&mut self, dim: usize, start: i64, extent: i64, step: i64) -> Result<()> {
        let stride = self.stride(dim);
        if extent > 0 && start != 0 {
            self.advance(start, stride);
        }
        self.set(dim, extent, i128::from(stride) * i128::from(step))
    }

    pub(super) fn select(&mut self, axis: i32, index: i64) -> Result<()> {
        let dim = self.dim_of(axis, Arg::axis)?;
        let extent = self.extent(dim);
        let at = if index < 0 { index.saturating_add(extent) } else { index };
        if !(0..extent).contains(&at) {
            let words = match extent {
                0 => "the axis has no elements\0Select from an axis that has some.",
                _ => "there is no such index\0Count from 0 to the limit, or from -1 backwards.",
            };
            return Err(bad(Arg::index, words, index).dim(dim).limit(extent - 1));
        }
        let stride = self.stride(dim);
        self.advance(at, stride);
        self.remove(dim);
        Ok(())
    }

    /// As a slice of step 1, but out of bounds is an error.
    pub(super) fn narrow(&mut self, axis: i32, start: i64, count: i64) -> Result<()> {
        let dim = self.dim_of(axis, Arg::axis)?;
        let extent = self.extent(dim);
        let at = if start < 0 { start.saturating_add(extent) } else { start };
        if !(0..=extent).contains(&at) {
            const START: &str = "there is no such place\0Start at 0 to the limit, or back from -1.";
            return Err(bad(Arg::start, START, start).dim(dim).limit(extent));
        }
        if !(0..=extent - at).contains(&count) {
            const COUNT: &str = "there are not so many elements\0Give a count from 0 to the limit.";
            let error = bad(Arg::count, COUNT, count);
            return Err(error.dim(dim).limit(extent - at));
        }
        self.walk(dim, at, count, 1)
    }

    pub(super) fn flip(&mut self, axis: i32) -> Result<()> {
        if axis != ALL_AXES {
            return self.slice(axis, i64::MAX, i64::MIN, -1);
        }
        (0..self.ndim() as i32).try_for_each(|axis| self.flip(axis))
    }

    /// The axis indexes the windows, a new last axis the elements inside one.
    pub(super) fn unfold(&mut self, axis: i32, window: i64, step: i64) -> Result<()> {
        let dim = self.dim_of(axis, Arg::axis)?;
        let (extent, stride) = (self.extent(dim), i128::from(self.stride(dim)));
        if !(1..=extent).contains(&window) {
            const WINDOW: &str = "a window holds 1 to all elements of the axis\0\
                                  Give a window from 1 to the limit.";
            let error = bad(Arg::window, WINDOW, window);
            return Err(error.dim(dim).limit(extent));
        }
        const STEP: &str = "windows need a step above 0\0Give 1 or more.";
        let size = u64::try_from(step)
            .ok()
            .and_then(NonZeroU64::new)
            .ok_or_else(|| bad(Arg::step, STEP, step).limit(1))?;
        let windows = ((extent - window) as u64 / size + 1) as i64;
        self.set(dim, windows, stride * i128::from(step))?;
        self.insert(self.ndim(), window, stride)?;
        if windows > 1 && step < window && !self.is_empty() {
            self.set_read_only();
        }
        Ok(())
    }

    /// Two axes become one at the end, along which both grow.
    pub(super) fn diagonal(&mut self, axis_a: i32, axis_b: i32, offset: i64) -> Result<()> {
        let a = self.dim_of(axis_a, Arg::axis_a)?;
        let b = self.dim_of(axis_b, Arg::axis_b)?;
        if a == b {
            const SAME: &str = "the two axes are the same\0Give two different ones.";
            return Err(bad(Arg::axis_b, SAME, axis_b.into()));
        }
        let stride = |dim| i128::from(self.stride(dim));
        let (down, right) = (stride(a), stride(b));
        let (skip_a, skip_b) = (-i128::from(offset.min(0)), i128::from(offset.max(0)));
        let left_a = i128::from(self.extent(a)) - skip_a;
        let left_b = i128::from(self.extent(b)) - skip_b;
        let extent = left_a.min(left_b).max(0) as i64;
        if extent > 0 {
            self.advance_far(skip_a * down + skip_b * right);
        }
        self.remove(a.max(b));
        self.remove(a.min(b));
        self.insert(self.ndim(), extent, down + right)
    }
}
