//! Transposes of elements of 1 and 2 bytes of which one side has less than 16 bytes: tiles whose
//! other rows or columns are not there, by way of the buffer.
use core::ptr::copy_nonoverlapping;

use super::engine::{Sides, faces};
use super::face::{Face, Tables};
use super::ops::{Ops, Place, Rows};
use super::stream::Buffer;
use super::strided::one;
use crate::device::part::Part;

/// Bytes of the long side that are turned at a time, at most.
const RUN: usize = 64;

/// The next of `n` elements from `done` on, in whole vectors: where they begin, and their bytes.
/// The last ones move back over those before them, which are made again.
fn next(done: usize, n: usize, log: u32) -> (usize, usize) {
    let vector = 16 >> log;
    let count = (RUN >> log).min((n - done + vector - 1) & !(vector - 1)).min(n & !(vector - 1));
    (done.min(n - count), count << log)
}

/// Copies a plan of [`Kernel::Slim`](crate::device::plan::Kernel): with at least 2 bytes along the
/// short sides of its faces, and 16 along their long ones.
///
/// # Safety
/// As [`super::copy`].
#[inline(never)] // a frame of its own: stacks may be small
pub(super) unsafe fn copy(ops: &Ops, plan: &Part, size: usize, sides: &Sides) {
    let mut buffer = Buffer::new();
    let (short, lines) = (buffer.ptr(), buffer.ptr().wrapping_add(16 * RUN));
    // SAFETY: the buffer's first 2 KiB: RUN rows of 16 bytes, and 16 lines.
    unsafe { short.write_bytes(0, 32 * RUN) };
    faces(plan, size, sides, &mut |face| {
        let mut tables = Tables::new(face);
        // SAFETY: elements of the caller's plan, and the buffer, of which the kernels read no byte
        // that is not written.
        unsafe {
            if face.n_dst < face.vector() {
                weave(ops, face, &mut tables, short, lines);
            } else {
                split(ops, face, &mut tables, short, lines);
            }
        }
    });
}

/// Few source rows, which are long, to many short ones.
unsafe fn weave(ops: &Ops, face: &Face, tables: &mut Tables, short: *mut u8, lines: *mut u8) {
    let (log, bytes) = (face.log, face.n_dst << face.log);
    let Some(tile) = ops.narrow.get(log as usize) else { return };
    let src = tables.rows(face, 0, face.n_dst);
    let dense = matches!(tables.apart, Some([_, stride]) if stride == bytes as isize);
    let mut s = 0;
    while s < face.n_src {
        let (at, run) = next(s, face.n_src, log);
        let count = run >> log;
        let dst = tables.columns(face, at, count);
        // Without gaps, a store of 16 bytes runs over the next columns, which are stored next.
        let straight = dense && (face.n_src - at - count) * bytes >= 16;
        let (to, pitch) = if straight { (dst, bytes as isize) } else { (short, 16) };
        // SAFETY: `run` bytes of every source row, and the columns that they turn into.
        unsafe {
            for row in 0..face.n_dst {
                let from = src.wrapping_offset(tables.row(row)).wrapping_add(at << log);
                part(lines.wrapping_add(row * RUN), from, run);
            }
            tile(lines, to, Rows::Apart([RUN as isize, pitch]), run / 16);
            if !straight {
                either!(tables.places(0, 0).1, [_, columns] => each(bytes, count, |i| {
                    (short.wrapping_add(16 * i).cast_const(), dst.wrapping_offset(columns.at(i)))
                }));
            }
        }
        s = at + count;
    }
}

/// Many short source rows to few long ones.
unsafe fn split(ops: &Ops, face: &Face, tables: &mut Tables, short: *mut u8, lines: *mut u8) {
    let (log, bytes) = (face.log, face.n_src << face.log);
    let at = log as usize;
    let (Some(wide), Some(narrow)) = (ops.tiles.get(at), ops.narrow.get(at)) else { return };
    let dst = tables.columns(face, 0, face.n_src);
    let near = tables.apart.map_or(0, |[stride, _]| if stride <= 16 { stride.max(0) } else { 0 });
    let mut d = 0;
    while d < face.n_dst {
        let (at, run) = next(d, face.n_dst, log);
        let (tile, width) = if run == RUN { (wide, ops.width.max(1)) } else { (narrow, 16) };
        let count = run >> log;
        let src = tables.rows(face, at, count);
        // A load of 16 bytes runs over the next rows, if these are near and there are enough.
        let after = (face.n_dst - at - count) * near as usize + bytes;
        let straight = near > 0 && after >= 16;
        let (from, pitch) = if straight { (src, near) } else { (short.cast_const(), 16) };
        // SAFETY: `count` source rows, and `run` bytes of every column.
        unsafe {
            if !straight {
                either!(tables.places(0, 0).1, [rows, _] => each(bytes, count, |i| {
                    (src.wrapping_offset(rows.at(i)), short.wrapping_add(16 * i))
                }));
            }
            for done in (0..run).step_by(width) {
                let from = from.wrapping_offset((done >> log) as isize * pitch);
                tile(from, lines.wrapping_add(done), Rows::Apart([pitch, RUN as isize]), 1);
            }
            for column in 0..face.n_src {
                let to = dst.wrapping_offset(tables.column(column)).wrapping_add(at << log);
                part(to, lines.wrapping_add(column * RUN), run);
            }
        }
        d = at + count;
    }
}

/// Copies `run` bytes, whole vectors up to RUN.
#[inline(always)]
unsafe fn part(to: *mut u8, from: *const u8, run: usize) {
    // SAFETY: the caller's bytes.
    unsafe {
        match run {
            RUN => one::<RUN>(to, from, (0, 0)),
            _ => copy_nonoverlapping(from, to, run),
        }
    }
}

/// Copies `bytes` bytes, 2 to 15, from and to each of `n` places.
#[inline(always)]
unsafe fn each(bytes: usize, n: usize, place: impl Fn(usize) -> (*const u8, *mut u8)) {
    // SAFETY: the caller's bytes.
    unsafe {
        match bytes {
            8.. => halves::<8>(bytes, n, place),
            4.. => halves::<4>(bytes, n, place),
            _ => halves::<2>(bytes, n, place),
        }
    }
}

/// [`each`] of `V` to 2 `V` bytes: two parts, which may overlap.
#[inline(always)]
unsafe fn halves<const V: usize>(
    bytes: usize,
    n: usize,
    place: impl Fn(usize) -> (*const u8, *mut u8),
) {
    let last = bytes.saturating_sub(V) as isize;
    for i in 0..n {
        let (from, to) = place(i);
        // SAFETY: the caller's bytes.
        unsafe {
            one::<V>(to, from, (0, 0));
            one::<V>(to, from, (last, last));
        }
    }
}
