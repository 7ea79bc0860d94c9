//! Transposes of elements of 3, 5, 6 and 7 bytes: spread to 4 or 8 bytes, turned, and closed up.
use super::face::{Face, ROWS_MOST, Tables};
use super::ops::{Odd, Ops};
use super::rows::singly;

/// Elements that vectors of 16 bytes run over, at most.
const OVER: usize = 2;

/// Tiles in a line of the source, and how far ahead lines are asked for.
const LINE: usize = 5;
const AHEAD: usize = 128;

/// Whether there are kernels for elements of so many bytes.
pub(super) fn able(ops: &Ops, size: usize) -> bool {
    ops.odd.is_some() && matches!(size, 3 | 5 | 6 | 7)
}

/// Transposes a face. A vector's superfluous bytes are overwritten by the next one in the row; the
/// last elements either way are copied one by one.
///
/// # Safety
/// Every element is readable and writable; no overlap; [`able`].
#[inline(never)] // a frame of its own: stacks may be small
pub(super) unsafe fn transpose(ops: &Ops, face: &Face, size: usize) {
    let Some(turn) = ops.odd else { return };
    let how = Odd::new(size);
    let side = how.side;
    let whole = |n: usize| n.saturating_sub(OVER) & !(side - 1);
    let (n_dst, n_src) = (face.n_dst, face.n_src);
    let (whole_dst, whole_src) = (whole(n_dst), whole(n_src));
    let mut tables = Tables::new(face);
    let mut d = 0;
    while d < n_dst {
        // Whole tiles, or the rows that are left.
        let tiles = d < whole_dst;
        let count = if tiles { ROWS_MOST.min(whole_dst - d) } else { n_dst - d };
        let src = tables.rows(face, d, count);
        let columns = if tiles { whole_src } else { 0 };
        for s in (0..columns).step_by(side.max(1)) {
            let dst = tables.columns(face, s, side).wrapping_add(d * size);
            let (_, rows) = tables.places(0, 0);
            let src = src.wrapping_add(s * size);
            // SAFETY: a part of the face, after which there are OVER more elements both ways.
            unsafe {
                if s.is_multiple_of(LINE * side) {
                    (ops.fetch)(src.wrapping_add(AHEAD), rows.source(), count, 1);
                }
                turn(src, dst, rows, count / side, &how);
            }
        }
        // SAFETY: the other columns of the same rows.
        unsafe { singly(face, &mut tables, size, (d, count), columns) };
        d += count;
    }
}
