//! Views: the methods for another shape, order or type of the same memory.

use core::ffi::c_void;

use super::arguments::{self, Call, method};
use super::failure::slot;
use super::tensor::{Held, Live, This};
use crate::device_type::opaque_handle;
use crate::error::{Arg, Error, Result, Status::*};
use crate::layout::MAX_NDIM;
use crate::validate::{Level, Rules, Snapshot};
use crate::view::{ALL_AXES, Step, View, no_axis};
use dlpack_python::words::given;
use dlpack_python::{Object, Owned};
use dlpack_tensor::tensor::view::{self, Base};

/// The view of `object` that the steps of `change` make.
fn view_of(this: This, change: &mut dyn FnMut(&mut View) -> Result<()>) -> Result<Owned> {
    this.like(viewed(this.live(), change)?)
}

/// As [`view_of`], of any tensor of ours.
pub fn viewed(from: Live, change: &mut dyn FnMut(&mut View) -> Result<()>) -> Result<Held> {
    made(from, change, &mut |view, base| shared(from, view, base))
}

/// What `make` makes of a layout that `change` has changed.
pub fn made<T>(
    from: Live,
    change: &mut dyn FnMut(&mut View) -> Result<()>,
    make: &mut dyn FnMut(&View, &Base) -> Result<T>,
) -> Result<T> {
    let mut snapshot = Snapshot::new();
    from.read(Rules::of(Level::DLRS_LEVEL_LAYOUT), &mut snapshot)?;
    let (base, mut changed) = view::start(&mut snapshot);
    changed.fold = !opaque_handle(base.device.device_type);
    change(&mut changed)?;
    make(&changed, &base)
}

/// A view as a tensor.
pub fn shared(from: Live, view: &View, base: &Base) -> Result<Held> {
    // SAFETY: a live block; the view is ours.
    unsafe { Ok(Held::new(from.python, view::share(view, from.block(), base)?)) }
}

/// The view of one step.
pub fn step(this: This, step: Step) -> Result<Owned> {
    view_of(this, &mut |view| view.apply(&step))
}

method!(
    /// reshape($self, /, *shape)
    /// A view with another shape, one extent of which may be -1; ValueError if that needs a copy.
    /// >>> dlpack_rs.zeros((2, 6)).reshape(3, -1).shape
    /// (3, 4)
    reshape, |this, call| (..) {
        by_numbers(this, call, |shape| Step::Reshape { shape })
    }
);
method!(
    /// broadcast_to($self, /, *shape)
    /// A read-only view in which extents of 1 and new axes in front are repeated.
    /// >>> dlpack_rs.zeros(3).broadcast_to(2, 3).strides
    /// (0, 1)
    broadcast_to, |this, call| (..) {
        by_numbers(this, call, |shape| Step::Expand { shape })
    }
);
method!(
    /// permute($self, /, *axes)
    /// A view with its axes in another order.
    /// >>> dlpack_rs.zeros((2, 3, 4)).permute(2, 0, 1).shape
    /// (4, 2, 3)
    permute, |this, call| (..) {
        by_numbers(this, call, |axes| Step::Permute { axes })
    }
);
method!(
    /// transpose($self, /, *axes)
    /// A view with its axes in another order, by default reversed.
    /// >>> dlpack_rs.zeros((2, 3, 4)).transpose().shape
    /// (4, 3, 2)
    transpose, |this, call| (..) {
        match *call.positional {
            [] => reversed(this),
            [one] if given(call.python, Some(one)).is_none() => reversed(this),
            _ => by_numbers(this, call, |axes| Step::Permute { axes }),
        }
    }
);
method!(
    /// swapaxes($self, axis_a, axis_b, /)
    /// A view with two axes exchanged.
    /// >>> dlpack_rs.zeros((2, 3, 4)).swapaxes(0, -1).shape
    /// (4, 3, 2)
    swapaxes, |this, call| (a b / *) {
        let axis_a = arguments::axis(call.python, a)?;
        let axis_b = arguments::axis(call.python, b)?;
        step(this, Step::Transpose { axis_a, axis_b })
    }
);
method!(
    /// flip($self, /, axis=None)
    /// A view with one axis, several, or all reversed.
    /// >>> dlpack_rs.asarray([1, 2, 3]).flip().tolist()
    /// [3, 2, 1]
    flip, |this, _| (/ axis *) {
        axes(this, axis, |axis| Step::Flip { axis })
    }
);
method!(
    /// squeeze($self, /, axis=None)
    /// A view without an axis of extent 1, without several, or without all of them.
    /// >>> dlpack_rs.zeros((1, 3, 1)).squeeze().shape
    /// (3,)
    squeeze, |this, _| (/ axis *) {
        axes(this, axis, |axis| Step::Squeeze { axis })
    }
);
method!(
    /// unsqueeze($self, /, axis)
    /// A view with a new axis of extent 1.
    /// >>> dlpack_rs.zeros(3).unsqueeze(-1).shape
    /// (3, 1)
    unsqueeze, |this, call| (/ axis *) {
        let axis = arguments::axis(call.python, call.needs(axis, "an axis")?)?;
        step(this, Step::Unsqueeze { axis })
    }
);
method!(
    /// view($self, dtype, /)
    /// A view of the same bytes as elements of another type. As 'uint8' packed elements have any
    /// number, and the view is read-only if the last byte has bits behind them.
    /// >>> dlpack_rs.full(2, 1.0).view('uint16').tolist()
    /// [0, 16256, 0, 16256]
    view, |this, call| (dtype / *) {
        let dtype = call.dtype(dtype)?;
        step(this, Step::Bitcast { dtype })
    }
);
method!(
    /// read_only($self, /)
    /// A view that consumers must not write.
    /// >>> dlpack_rs.zeros(3).read_only().readonly
    /// True
    read_only, |this, _| (/ *) {
        step(this, Step::ReadOnly)
    }
);

/// The step that numbers say, given one by one or as one sequence.
fn by_numbers(this: This, call: &Call, step: fn(&[i64]) -> Step<'_>) -> Result<Owned> {
    let mut room = [0; MAX_NDIM];
    self::step(this, step(call.numbers(&mut room)?))
}

/// One step for every axis of an argument that is None (all axes), a number or a sequence.
#[inline(never)]
fn axes(this: This, wanted: Option<Object>, step: fn(i32) -> Step<'static>) -> Result<Owned> {
    let Some(wanted) = given(this.python, wanted) else {
        return self::step(this, step(ALL_AXES));
    };
    let mut room = [0; MAX_NDIM];
    let ndim = i64::from(this.live().description().ndim);
    let mut chosen = 0u64;
    for &axis in arguments::shape(this.python, wanted, &mut room)? {
        let dim = if axis < 0 { axis + ndim } else { axis };
        let bit = 1u64.wrapping_shl(dim as u32);
        if !(0..ndim).contains(&dim) {
            return Err(no_axis(axis, ndim).of(Arg::axis));
        }
        if chosen & bit != 0 {
            const TWICE: &str = "the axis is given twice\0Name an axis once.";
            return Err(Error::new(DLRS_BAD_ARG).detail(TWICE).value(axis).of(Arg::axis));
        }
        chosen |= bit;
    }
    view_of(this, &mut |view| {
        // From the last axis to the first: taking one out does not rename those to come.
        (0..ndim as i32)
            .rev()
            .filter(|&dim| chosen & 1u64.wrapping_shl(dim as u32) != 0)
            .try_for_each(|dim| view.apply(&step(dim)))
    })
}

slot!(
    /// `T`: the axes in the opposite order.
    get_transposed, "T", |this, _place: *mut c_void| -> Owned {
        reversed(this)
    }
);

fn reversed(this: This) -> Result<Owned> {
    view_of(this, &mut |view| {
        view.reverse_axes();
        Ok(())
    })
}
