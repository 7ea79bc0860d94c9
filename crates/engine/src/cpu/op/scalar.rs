//! Item by item: for all nests, and the fastest for small ones.
use dlpack_kernels::{LOOPS, Loop, items};

use crate::nest::{Nest, only};

/// Items of the innermost loop in a block, if the source stride is smaller in another loop: as many
/// source lines stay in L1.
const BLOCK: usize = 64;

/// Copies a nest.
///
/// # Safety
/// As [`super::super::copy`].
pub(crate) unsafe fn copy(nest: &Nest) {
    let last = nest.len().wrapping_sub(1);
    let inner = nest.inner(0);
    // Blocks of the innermost loop and of the one with the smallest source stride, if another, use
    // each source line while it is cached.
    let (mut near, mut beside) = (inner.src.unsigned_abs(), last);
    for i in 0..last {
        let stride = nest.at(i).src.unsigned_abs();
        if stride > 0 && stride < near {
            (near, beside) = (stride, i);
        }
    }
    let mut loops = [Loop::NONE, Loop::NONE, Loop::NONE, inner];
    let (mut inside, mut left, mut block) = (only(last), LOOPS - 1, inner.n.max(1));
    if beside != last {
        inside |= only(beside);
        loops[LOOPS - 2] = nest.at(beside);
        // Blocks of the other loops would be far apart.
        (left, block) = if inner.n > BLOCK { (0, BLOCK) } else { (LOOPS - 2, block) };
    }
    for i in (0..last).rev() {
        if i == beside {
            continue;
        }
        let Some(slot) = loops.get_mut(left.wrapping_sub(1)) else { break };
        *slot = nest.at(i);
        inside |= only(i);
        left -= 1;
    }
    let (loops, bytes) = (&mut loops, nest.bytes());
    nest.each(inside, &mut move |src, dst| {
        let mut at = 0;
        while at < inner.n {
            loops[LOOPS - 1].n = block.min(inner.n - at);
            let src = src.wrapping_offset(inner.src.wrapping_mul(at as isize));
            let dst = dst.wrapping_offset(inner.dst.wrapping_mul(at as isize));
            // SAFETY: some of the nest's items, readable at `src` and writable at `dst`.
            unsafe { items(bytes, loops, src, dst) };
            at += block;
        }
    });
}
