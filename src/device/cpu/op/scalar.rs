//! Item by item: right for everything, and the best for what is small.
use dlpack_kernels::{Items, LOOPS, items};

use crate::device::nest::{Loop, Nest, only};

/// Items of the innermost loop that a block takes of each line, where the source is nearer to dense
/// in another loop: as many source lines stay in the first-level cache.
const BLOCK: usize = 64;

/// Copies a nest.
///
/// # Safety
/// As [`super::super::copy`].
pub(in super::super) unsafe fn copy(nest: &Nest) {
    let last = nest.len().wrapping_sub(1);
    let inner = nest.inner(0);
    // Beside the innermost loop, the one in which the source is nearest to dense: blocks of both
    // use each source line while it is in the cache.
    let near = |&i: &usize| nest.at(i).src.unsigned_abs();
    let beside = (0..last).filter(|&i| nest.at(i).n > 1 && near(&i) > 0).min_by_key(near);
    let row = beside.map_or(Loop::NONE, |i| nest.at(i));
    let mut inside = only(last) | beside.map_or(0, only);
    let turned = beside.is_some() && row.src.unsigned_abs() < inner.src.unsigned_abs();
    let block = if turned { BLOCK } else { inner.n.max(1) };
    // And the innermost of the others, unless blocks of all of them would be far apart.
    let mut loops = [Loop::NONE, Loop::NONE, row, inner];
    let mut left = if inner.n <= block { LOOPS - 2 } else { 0 };
    for i in (0..last).rev() {
        if left > 0 && inside & only(i) == 0 {
            left -= 1;
            inside |= only(i);
            if let Some(slot) = loops.get_mut(left) {
                *slot = nest.at(i);
            }
        }
    }
    let [a, b, c, d] = loops;
    nest.each(inside, &mut |src, dst| {
        let mut at = 0;
        while at < inner.n {
            let n = block.min(inner.n - at);
            let part = Items {
                src: src.wrapping_offset(inner.src.wrapping_mul(at as isize)),
                dst: dst.wrapping_offset(inner.dst.wrapping_mul(at as isize)),
                bytes: nest.bytes(),
                n: [a.n, b.n, c.n, n],
                by_src: [a.src, b.src, c.src, d.src],
                by_dst: [a.dst, b.dst, c.dst, d.dst],
            };
            // SAFETY: some of the caller's items.
            unsafe { items(&part) };
            at += n;
        }
    });
}
