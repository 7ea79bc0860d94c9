//! Faces of 8 and 16 bytes past the caches, element by element: of each destination row its own
//! whole lines, wherever in a line it starts.
//!
//! Squares write lines that all rows agree on, or share; windows lose one of each row's few. What
//! is turned here needs no registers to turn it in. A row's ends are ordinary stores, for which
//! the stores past the caches that follow wait: their lines are asked for.
use super::face::{COLUMNS_MOST, Face, Tables};
use super::ops::{Lines, Ops, Straight};
use super::touch;
use super::tuning::tuning;

/// Source rows at a time, and bytes of each that are read before.
const READ: (usize, usize) = (64, 4096);

/// Source rows of 16 bytes, a stride apart: so few the processor follows by itself.
const FOLLOWED: usize = 16;

/// Elements of 8 bytes of faces that the caches have room for, and that squares turn as fast if
/// the destination's rows are shorter than three lines.
const NEAR: usize = 1 << 20;

/// What writes a face's lines, if it is one; `near` if the caches have room for it.
pub(super) fn lines(ops: &Ops, face: &Face, near: bool) -> Option<Lines> {
    // Rows a large power of two apart share few places in the caches.
    let long = face.n_dst >= 2 * face.line() && face.rows.room() == usize::MAX;
    let anywhere = !face.columns.lined() || tuning().reads() && apart(face);
    let starts = anywhere && face.starts(face.log) && !face.wraps();
    let few = face.log == 3 && face.n_dst < 3 * face.line() && face.n_dst * face.n_src < NEAR;
    let cached = near && (few || face.strides().is_none());
    let suits = face.log >= tuning().straight && long && starts && !cached;
    ops.lines.filter(|_| suits)
}

/// Whether rows that all start at the same place in a line go so, too: source rows must not share
/// places in the caches, and of 8 bytes, squares are slower only where rows begin in others' lines.
fn apart(face: &Face) -> bool {
    const ROW: usize = 96;
    let apart = |by: isize| face.rows.inner() & (by - 1) != 0;
    match face.log {
        4 => apart(4096),
        _ => apart(1024) && face.n_dst >= ROW && face.follows(false).is_some(),
    }
}

/// Copies such a face.
///
/// # Safety
/// As [`super::transpose::transpose`].
#[inline(never)] // a frame of its own: stacks may be small
pub(super) unsafe fn copy(face: &Face, lines: Lines) {
    let (log, n_dst) = (face.log, face.n_dst);
    let mut tables = Tables::new(face);
    let followed = log == 4 && tables.apart.is_some();
    let (most, touched) = if followed { (FOLLOWED, 0) } else { READ };
    let each = n_dst.div_ceil(n_dst.div_ceil(most).max(1));
    let run = (touched >> log).max(1);
    let step = if followed { face.n_src } else { run };
    let step = if tables.apart.is_some() { step } else { step.min(COLUMNS_MOST) };
    let mut from = 0;
    while from < n_dst {
        let end = (from + each).min(n_dst);
        // The last line of a part of a row ends in the next part.
        let n = (end + face.line()).min(n_dst) - from;
        let src = tables.rows(face, from, n);
        for s in (0..face.n_src).step_by(step.max(1)) {
            let left = face.n_src - s;
            let columns = step.min(left);
            let (src, dst) = (src.wrapping_add(s << log), tables.columns(face, s, columns));
            let listed = if tables.apart.is_some() { left } else { columns };
            let rows = tables.places(0, 0).1;
            let how = Straight { log, rows, columns, listed, n_dst, from, end };
            // SAFETY: parts of the caller's rows.
            unsafe {
                if touched > 0 {
                    touch::read(src, (n, 1 << log), (run, s, left), &|i| tables.row(i));
                }
                lines(src, dst, &how);
            }
        }
        from = end;
    }
}
