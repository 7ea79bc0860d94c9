//! `assign`, with the number of dimensions known to the compiler where ndarray can.

use crate::view::{View, of_size};
use ndarray::{ArrayView, ArrayViewMut, Axis, Dimension, IxDyn, ShapeBuilder};
use ndarray::{Ix1, Ix2, Ix3, Ix4, Ix5, Ix6};

/// # Safety
///
/// As [`crate::Peer`].
pub unsafe fn copy(view: &View, dst: *mut u8) -> bool {
    // SAFETY: the caller's promise.
    unsafe { of_size!(view.size, copy_as(view, dst)) }
}

unsafe fn copy_as<T: Copy>(view: &View, dst: *mut u8) -> bool {
    let shape = IxDyn(&view.dims());
    let steps: Vec<_> = view.strides.iter().map(|step| step.unsigned_abs() as usize).collect();
    // SAFETY: the view from its lowest element on, whose strides are then positive.
    let mut from = unsafe {
        let low = view.data.cast::<T>().offset(view.span().0);
        ArrayView::from_shape_ptr(shape.clone().strides(IxDyn(&steps)), low)
    };
    for (axis, _) in view.strides.iter().enumerate().filter(|(_, step)| **step < 0) {
        from.invert_axis(Axis(axis));
    }
    // SAFETY: the caller's promise.
    let to = unsafe { ArrayViewMut::from_shape_ptr(shape, dst.cast::<T>()) };
    match view.shape.len() {
        1 => assign::<T, Ix1>(to, from),
        2 => assign::<T, Ix2>(to, from),
        3 => assign::<T, Ix3>(to, from),
        4 => assign::<T, Ix4>(to, from),
        5 => assign::<T, Ix5>(to, from),
        6 => assign::<T, Ix6>(to, from),
        _ => assign::<T, IxDyn>(to, from),
    }
}

fn assign<T: Copy, D: Dimension>(to: ArrayViewMut<T, IxDyn>, from: ArrayView<T, IxDyn>) -> bool {
    let (Ok(mut to), Ok(from)) = (to.into_dimensionality::<D>(), from.into_dimensionality::<D>())
    else {
        return false;
    };
    to.assign(&from);
    true
}
