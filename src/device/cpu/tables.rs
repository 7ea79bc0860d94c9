//! Many tiny dimensions: two tables of offsets in place of loops. One holds the innermost
//! dimensions of the destination, the other those of the source: lines on both sides are used up
//! while they are in the cache.
use super::walk::walk;
use crate::device::{part::Part, plan::Dim};

/// Offsets in a table at most; two tables are 4 KiB.
const MOST: usize = 128;

/// The offsets of every index of some dimensions, in source and destination.
struct Table {
    at: [(isize, isize); MOST],
    n: usize,
}

impl Table {
    #[inline(always)]
    fn new() -> Table {
        Table { at: [(0, 0); MOST], n: 1 }
    }

    /// Adds a dimension outside those already there, if there is room.
    fn add(&mut self, dim: Dim) -> bool {
        let n = self.n;
        let Some(all) = n.checked_mul(dim.n as usize).filter(|&all| all <= MOST) else {
            return false;
        };
        for i in n..all {
            let Some(&(src, dst)) = self.at.get(i - n) else { return false };
            if let Some(at) = self.at.get_mut(i) {
                *at = (src + dim.src as isize, dst + dim.dst as isize);
            }
        }
        self.n = all;
        true
    }
}

/// The dimensions that are in a table, as a set.
fn has(set: u64, i: usize) -> bool {
    set >> (i & 63) & 1 == 1
}

/// Copies a simplified plan whose innermost dimensions are tiny; false, and nothing is done, if
/// they are not.
///
/// # Safety
/// As [`super::copy`].
#[inline(never)] // a frame of its own: stacks may be small
pub(super) unsafe fn copy(plan: &Part, size: usize) -> bool {
    if plan.inner().n >= 16 || plan.ndim < 3 || !matches!(size, 1 | 2 | 4 | 8) {
        return false;
    }
    let (mut inner, mut outer, mut set) = (Table::new(), Table::new(), 0u64);
    for i in (0..plan.ndim).rev() {
        // Source lines that are whole pages apart share one place in the caches.
        let crowded = inner.n * size >= 64 && plan.dim(i).src % 4096 == 0;
        if crowded || !inner.add(plan.dim(i)) {
            break;
        }
        set |= 1 << (i & 63);
    }
    if inner.n < 16 {
        return false;
    }
    loop {
        let others = (0..plan.ndim).filter(|&i| !has(set, i));
        let Some(near) = others.min_by_key(|&i| plan.dim(i).src.unsigned_abs()) else { break };
        if !outer.add(plan.dim(near)) {
            break;
        }
        set |= 1 << (near & 63);
    }
    walk(plan, set, |src_at, dst_at| {
        let (src, dst) = (plan.src.wrapping_offset(src_at), plan.dst.wrapping_offset(dst_at));
        for &(from, to) in outer.at.iter().take(outer.n) {
            let (src, dst) = (src.wrapping_offset(from), dst.wrapping_offset(to));
            let at = inner.at.get(..inner.n).unwrap_or(&[]);
            // SAFETY: elements of the caller's plan.
            unsafe { elements(size, dst, src, at) };
        }
    });
    true
}

/// Copies the elements at the offsets.
///
/// # Safety
/// They are readable and writable, without overlap.
unsafe fn elements(size: usize, dst: *mut u8, src: *const u8, at: &[(isize, isize)]) {
    // SAFETY: the caller's promise, passed on.
    unsafe {
        match size {
            1 => fixed::<1>(dst, src, at),
            2 => fixed::<2>(dst, src, at),
            4 => fixed::<4>(dst, src, at),
            8 => fixed::<8>(dst, src, at),
            _ => fixed::<8>(dst, src, at),
        }
    }
}

#[inline(always)]
unsafe fn fixed<const SIZE: usize>(dst: *mut u8, src: *const u8, at: &[(isize, isize)]) {
    for &(from, to) in at {
        let from: *const [u8; SIZE] = src.wrapping_offset(from).cast();
        // SAFETY: the caller's elements; byte arrays have no alignment.
        unsafe { *dst.wrapping_offset(to).cast() = *from };
    }
}
