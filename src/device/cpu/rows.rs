//! Faces without tiles: one destination row after the other, element by element.
use super::face::{COLUMNS_MOST, Face, ROWS_MOST, Tables};
use super::ops::{Ops, Rows};
use super::strided::{fixed, line, two};
use super::tuning::tuning;

/// Elements of a row that are made before the next row: what they touch stays in cache.
const REACH: usize = 512;

/// Whether [`elements`] finds the source's lines in the first-level cache again, where those a
/// power of two apart share a few places, and its runs are worth their beginning.
pub(super) fn suits(face: &Face) -> bool {
    const WAYS: usize = 8;
    let (run, by, _) = face.rows.split();
    let sets = match by.unsigned_abs() {
        by if by & 63 == 0 => 64 >> (by / 64).trailing_zeros().min(6),
        _ => 64,
    };
    let rows = face.n_dst.min(REACH);
    rows <= WAYS * sets && (run << face.log >= 128 || run >= rows)
}

/// Copies a whole face of elements of `size` bytes; source lines are asked for if it is `far`.
///
/// # Safety
/// Every element is readable and writable; no overlap.
#[inline(never)] // a frame of its own: stacks may be small
pub(super) unsafe fn elements(face: &Face, size: usize, far: Option<&Ops>) {
    let (run, by, others) = face.rows.split();
    let mut tables = Tables::new(face);
    let mut d = 0;
    while d < face.n_dst {
        // Whole runs of the innermost dimension, or a part of one.
        let (at, left) = (d % run.max(1), REACH.min(face.n_dst - d));
        let within = left.min(run - at);
        let runs = if at == 0 { left.checked_div(run).unwrap_or(1).min(ROWS_MOST) } else { 0 };
        let (runs, n) = if runs > 0 { (runs, run) } else { (1, within) };
        others.offsets(d.checked_div(run).unwrap_or(0), runs, &mut tables.rows);
        let src = face.src.wrapping_offset(at as isize * by);
        // SAFETY: some rows of the caller's face.
        unsafe { columns(face, &mut tables, (size, far), (src, d), (runs, n, by)) };
        d += runs * n;
    }
}

/// All columns of `runs` times `n` rows from `d` on; `tables` has where the runs start from `src`.
/// Of 16 bytes two destination rows are made together, which reads each source line half as often;
/// but one where lines are asked for, which is faster if they come from memory.
unsafe fn columns(
    face: &Face,
    tables: &mut Tables,
    (size, far): (usize, Option<&Ops>),
    (src, d): (*const u8, usize),
    (runs, n, by): (usize, usize, isize),
) {
    let [chunk, distance] = tuning().ahead;
    let together = if size == 16 && far.is_none() { 2 } else { 1 };
    for s in (0..face.n_src).step_by(COLUMNS_MOST) {
        let columns = COLUMNS_MOST.min(face.n_src - s);
        let dst = tables.columns(face, s, columns).wrapping_add(d * size);
        for column in (0..columns).step_by(together) {
            let at = (s + column) * size;
            let src = src.wrapping_add(at);
            let ahead = at & (chunk - 1) == 0 && at + distance < face.n_src * size;
            let asked = far.filter(|_| ahead && size == 16 && chunk == 64).map(|ops| ops.asked);
            if let Some(ops) = far.filter(|_| ahead && asked.is_none()) {
                for &start in tables.rows.iter().take(runs) {
                    let soon = src.wrapping_offset(start as isize).wrapping_add(distance);
                    // SAFETY: a prefetch touches nothing.
                    unsafe { (ops.fetch)(soon, Rows::Apart([by]), n, chunk / 64) };
                }
            }
            let mut to = dst.wrapping_offset(tables.column(column));
            let pair = together == 2 && column + 1 < columns;
            let next = tables.column(column + 1).wrapping_sub(tables.column(column));
            for &start in tables.rows.iter().take(runs) {
                let src = src.wrapping_offset(start as isize);
                // SAFETY: a part of a column of the caller's face, or of two.
                unsafe {
                    match size {
                        16 if pair => two::<16>([to, to.wrapping_offset(next)], src, n, by),
                        16 => match asked {
                            Some(asked) => asked(to, src, n, by, distance),
                            None => fixed::<16>(to, src, n, by, 16),
                        },
                        _ => line(size, to, src, n, by, size as isize),
                    }
                }
                to = to.wrapping_add(n * size);
            }
        }
    }
}
