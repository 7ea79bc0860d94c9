//! HPTT, C++: permutations of floats, also of a part of each row. It computes 1 · view + 0 · output.
//! Its crate makes a plan (by estimate, not by trial) in each call.

use crate::view::View;
use hptt::{Complex64, MemoryOrder};

/// The array that the view permutes: its shape, the extents of what it is a part of, and which of
/// its axes each of the view's is.
struct Permuted {
    shape: Vec<usize>,
    outer: Vec<usize>,
    axes: Vec<usize>,
}

/// None where the view is no permutation.
fn permuted(view: &View) -> Option<Permuted> {
    let mut order: Vec<usize> = (0..view.shape.len()).collect();
    order.sort_by_key(|&axis| std::cmp::Reverse((view.strides[axis], view.shape[axis])));
    let shape: Vec<usize> = order.iter().map(|&axis| view.shape[axis] as usize).collect();
    let steps: Vec<i64> = order.iter().map(|&axis| view.strides[axis]).collect();
    let mut outer = shape.clone();
    for (i, pair) in steps.windows(2).enumerate() {
        outer[i + 1] =
            (pair[0].checked_rem(pair[1]) == Some(0)).then(|| pair[0] / pair[1])? as usize;
    }
    let fits = outer.iter().zip(&shape).all(|(outer, n)| outer >= n);
    let place = |axis| order.iter().position(|&at| at == axis);
    let axes = (0..order.len()).map(place).collect::<Option<_>>()?;
    (steps.last() == Some(&1) && fits).then_some(Permuted { shape, outer, axes })
}

/// # Safety
///
/// As [`crate::Peer`].
pub unsafe fn copy(view: &View, dst: *mut u8) -> bool {
    let Some(how) = permuted(view) else { return false };
    macro_rules! run {
        ($type:ty, $function:ident, $one:expr, $zero:expr $(, $conjugate:expr)?) => {{
            let reach = how.outer.iter().product();
            // SAFETY: HPTT reads what the view has and writes the whole output; `reach` goes up to
            // the end of the last row of what the view is a part of.
            let (from, to) = unsafe {
                let from = std::slice::from_raw_parts(view.data.cast::<$type>(), reach);
                (from, std::slice::from_raw_parts_mut(dst.cast::<$type>(), view.count()))
            };
            let to_shape = view.dims();
            hptt::$function(
                &how.axes, $one, from, &how.shape, &how.outer, $zero, to, &to_shape, 1,
                $($conjugate,)? MemoryOrder::RowMajor,
            )
            .is_ok()
        }};
    }
    match view.size {
        4 => run!(f32, transpose_f32_sub, 1.0, 0.0),
        8 => run!(f64, transpose_f64_sub, 1.0, 0.0),
        16 => {
            let (one, zero) = (Complex64::new(1.0, 0.0), Complex64::new(0.0, 0.0));
            run!(Complex64, transpose_c64_sub, one, zero, false)
        }
        _ => false,
    }
}
