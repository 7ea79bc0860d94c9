//! Bytes in 9 to 15 channels, next to one another on one side and in planes on the other: tiles of
//! 16 channels, of which some are not there.
use super::ops::{Ops, Rows};
use super::stream::Buffer;
use super::strided::line;
use super::walk::{set, walk};
use crate::device::{part::Part, plan::Dim};

/// Elements of every channel that are turned at a time.
const RUN: usize = 64;

/// Copies a simplified plan of bytes; false, and nothing is done, if it is of another kind.
///
/// # Safety
/// As [`super::copy`].
#[inline(never)] // a frame of its own: stacks may be small
pub(super) unsafe fn copy(ops: &Ops, plan: &Part) -> bool {
    let Some(dense) = (0..plan.ndim.wrapping_sub(1)).find(|&i| plan.dim(i).src == 1) else {
        return false;
    };
    let (row, column) = (plan.inner(), plan.dim(dense));
    let least = RUN as i64 + 2; // of fewer, all would be left over
    let splits = (9..16).contains(&column.n) && row.src >= column.n && row.n >= least;
    let weaves = (9..16).contains(&row.n) && column.dst == row.n && column.n >= least;
    if row.dst != 1 || !(splits || weaves) {
        return false;
    }
    let (Some(tile), Some(narrow)) = (ops.tiles.first(), ops.narrow.first()) else { return false };
    let mut buffer = Buffer::new();
    let buffer = buffer.ptr();
    // SAFETY: the buffer's first 16 rows; tiles read no byte that is not written.
    unsafe { buffer.write_bytes(0, 16 * RUN) };
    walk(plan, set(&[plan.ndim.checked_sub(1), Some(dense)]), |src_at, dst_at| {
        let (src, dst) = (plan.src.wrapping_offset(src_at), plan.dst.wrapping_offset(dst_at));
        // SAFETY: elements of the caller's plan, in the kind of dimensions just found.
        unsafe {
            if splits {
                split(*tile, ops.width, buffer, dst, src, row, column);
            } else {
                weave(*narrow, buffer, dst, src, row, column);
            }
        }
    });
    true
}

/// Channels to planes. Loads of 16 bytes end before the last element does.
unsafe fn split(
    tile: super::ops::Tile,
    width: usize,
    buffer: *mut u8,
    dst: *mut u8,
    src: *const u8,
    row: Dim,
    column: Dim,
) {
    let (n, channels) = (row.n as usize, column.n as usize);
    let (ss, ds) = (row.src as isize, column.dst as isize);
    let rows = Rows::Apart([ss, RUN as isize]);
    let mut d = 0;
    while d + RUN + 1 < n {
        let from = src.wrapping_offset(d as isize * ss);
        for at in (0..RUN).step_by(width.max(1)) {
            let from = from.wrapping_offset(at as isize * ss);
            // SAFETY: the loads end 16 bytes after the start of a pixel that two more follow, of
            // at least 9 bytes each.
            unsafe { tile(from, buffer.wrapping_add(at), rows, 1) };
        }
        for channel in 0..channels {
            let to = dst.wrapping_offset(channel as isize * ds).wrapping_add(d);
            let from = buffer.wrapping_add(channel * RUN);
            // SAFETY: RUN elements of a plane; byte arrays have no alignment.
            unsafe { *to.cast::<[u8; RUN]>() = *from.cast() };
        }
        d += RUN;
    }
    for channel in 0..channels {
        let to = dst.wrapping_offset(channel as isize * ds).wrapping_add(d);
        let from = src.wrapping_offset(d as isize * ss).wrapping_add(channel);
        // SAFETY: the plane's other elements.
        unsafe { line(1, to, from, n - d, ss, 1) };
    }
}

/// Planes to channels. A store of 16 bytes runs over the next pixel, which is stored next.
unsafe fn weave(
    tile: super::ops::Tile,
    buffer: *mut u8,
    dst: *mut u8,
    src: *const u8,
    row: Dim,
    column: Dim,
) {
    let (n, channels) = (column.n as usize, row.n as usize);
    let (ss, ds) = (row.src as isize, column.dst as isize);
    let rows = Rows::Apart([RUN as isize, ds]);
    let mut s = 0;
    while s + RUN < n {
        for channel in 0..channels {
            let from = src.wrapping_offset(channel as isize * ss).wrapping_add(s);
            // SAFETY: RUN elements of a plane.
            unsafe { *buffer.wrapping_add(channel * RUN).cast::<[u8; RUN]>() = *from.cast() };
        }
        let to = dst.wrapping_offset(s as isize * ds);
        // SAFETY: RUN pixels, and some bytes of the one that follows, which is not done yet.
        unsafe { tile(buffer, to, rows, RUN / 16) };
        s += RUN;
    }
    for channel in 0..channels {
        let to = dst.wrapping_offset(s as isize * ds).wrapping_add(channel);
        let from = src.wrapping_offset(channel as isize * ss).wrapping_add(s);
        // SAFETY: the plane's other elements.
        unsafe { line(1, to, from, n - s, 1, ds) };
    }
}
