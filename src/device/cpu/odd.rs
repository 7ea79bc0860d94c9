//! Transposes of elements of 3, 5, 6 and 7 bytes: spread to 4 or 8 bytes, turned, and closed up.
use super::face::{COLUMNS_MOST, Face, ROWS_MOST, Tables};
use super::ops::{Odd, Ops};

/// Tiles in a line of the source, and how far ahead lines are asked for.
const LINE: usize = 5;
const AHEAD: usize = 128;

/// Whether there are kernels for elements of so many bytes.
pub(super) fn able(ops: &Ops, size: usize) -> bool {
    ops.odd.is_some() && matches!(size, 3 | 5 | 6 | 7)
}

/// Transposes a face of at least 4 elements either way. The last tile of a row or column moves
/// back over its predecessor, and writes the same bytes again.
///
/// # Safety
/// Every element is readable and writable; no overlap; [`able`].
#[inline(never)] // a frame of its own: stacks may be small
pub(super) unsafe fn transpose(ops: &Ops, face: &Face, size: usize) {
    let Some(turn) = ops.odd else { return };
    let how = Odd::new(size);
    let side = how.side;
    let mut tables = Tables::new(face);
    let mut d = 0;
    while d < face.n_dst {
        // Whole tiles, or the rows that are left.
        let count = ROWS_MOST.min(face.n_dst - d) & !(side - 1);
        let (at, count) = if count > 0 { (d, count) } else { (face.n_dst - side, side) };
        let src = tables.rows(face, at, count);
        let mut dst = face.dst;
        for s in (0..face.n_src).step_by(side.max(1)) {
            let ahead = s.is_multiple_of(LINE * side);
            let (mut place, mut s) = (s & (COLUMNS_MOST - 1), s);
            if place == 0 || s + side > face.n_src {
                (place, s) = (0, s.min(face.n_src - side));
                dst = tables.columns(face, s, COLUMNS_MOST.min(face.n_src - s));
                dst = dst.wrapping_add(at * size);
            }
            let ([_, to], rows) = tables.places(0, place);
            let (src, dst) = (src.wrapping_add(s * size), dst.wrapping_offset(to));
            let last = (face.n_src - s) * size < 16;
            // SAFETY: a part of the face, of whose source rows 16 bytes are left but for the last.
            unsafe {
                if ahead {
                    (ops.fetch)(src.wrapping_add(AHEAD), rows.source(), count, 1);
                }
                turn(src, dst, rows, count / side, &how, last);
            }
        }
        d = at + count;
    }
}
