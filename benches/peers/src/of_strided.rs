//! strided-perm's `copy_into`: a port of HPTT's ideas to Rust, for any strides.

use crate::view::{View, of_size};
use strided_view::{StridedView, StridedViewMut};

/// # Safety
///
/// As [`crate::Peer`].
pub unsafe fn copy(view: &View, dst: *mut u8) -> bool {
    // SAFETY: the caller's promise.
    unsafe { of_size!(view.size, copy_as(view, dst)) }
}

unsafe fn copy_as<T: Copy + Send + Sync + 'static>(view: &View, dst: *mut u8) -> bool {
    let (low, span) = view.span();
    let dims = view.dims();
    let steps: Vec<_> = view.strides.iter().map(|&step| step as isize).collect();
    // SAFETY: all that the view can reach, and the caller's output.
    let (from, to) = unsafe {
        let start = view.data.cast::<T>().offset(low);
        let from = std::slice::from_raw_parts(start, span);
        (from, std::slice::from_raw_parts_mut(dst.cast::<T>(), view.count()))
    };
    let from = StridedView::<T>::new(from, &dims, &steps, -low);
    let to = StridedViewMut::<T>::new(to, &dims, &view.compact(), 0);
    let (Ok(from), Ok(mut to)) = (from, to) else { return false };
    strided_perm::copy_into(&mut to, &from, threadteam::Exec::serial()).is_ok()
}
