//! The crate `transpose`: compact matrices only.

use crate::view::{View, of_size};

/// # Safety
///
/// As [`crate::Peer`].
pub unsafe fn copy(view: &View, dst: *mut u8) -> bool {
    match (view.shape, view.strides) {
        // SAFETY: the caller's promise.
        (&[rows, _], &[1, step]) if step == rows => unsafe {
            of_size!(view.size, copy_as(view, dst))
        },
        _ => false,
    }
}

unsafe fn copy_as<T: Copy>(view: &View, dst: *mut u8) -> bool {
    let (dims, count) = (view.dims(), view.count());
    // SAFETY: the view is all of a compact matrix, and the caller's output has as many elements.
    unsafe {
        let from = std::slice::from_raw_parts(view.data.cast::<T>(), count);
        let to = std::slice::from_raw_parts_mut(dst.cast::<T>(), count);
        transpose::transpose(from, to, dims[0], dims[1]);
    }
    true
}
