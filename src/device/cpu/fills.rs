//! One element for whole rows.
use core::mem::MaybeUninit;

use super::lines;
use super::ops::Ops;
use super::strided::{line, one};
use super::tuning::tuning;
use super::walk::{set, walk};
use crate::device::part::Part;
use crate::device::plan::Dim;

/// Fills rows of `total` bytes, a line or more, each with one element of `size` bytes, a power of
/// two up to 64: of how many, and how far elements and rows are apart, `rows` tells.
pub(super) type Fill =
    unsafe fn(dst: *mut u8, src: *const u8, rows: &Dim, size: usize, total: usize);

/// Bytes of a line.
const LINE: usize = 64;

/// One source element, of up to a kilobyte, for a whole row.
///
/// # Safety
/// As [`super::copy`]; the plan is simplified, and its destination's rows are dense.
#[inline(never)] // a frame of its own: stacks may be small
pub(super) unsafe fn copy(ops: &Ops, plan: &Part, size: usize, streams: bool) {
    let (n, last) = (plan.inner().n as usize, plan.ndim.checked_sub(1));
    // SAFETY: parts of the caller's plan; a row's source is one element.
    unsafe {
        if streams && (tuning().fills || !divides(size)) {
            let fill = |to, from, n| repeat(ops, size, to, from, n);
            return lines::rows(ops, plan, size, true, &fill);
        }
        if !lined(size, n * size) {
            return walk(plan, set(&[last]), |src_at, dst_at| {
                let src = plan.src.wrapping_offset(src_at);
                repeat(ops, size, plan.dst.wrapping_offset(dst_at), src, n);
            });
        }
        let next = plan.ndim.checked_sub(2);
        let rows = next.map_or(SINGLE, |i| plan.dim(i));
        walk(plan, set(&[last, next]), |src_at, dst_at| {
            let (src, dst) = (plan.src.wrapping_offset(src_at), plan.dst.wrapping_offset(dst_at));
            (ops.fill)(dst, src, &rows, size, n * size);
        });
    }
}

/// A row that stands alone.
const SINGLE: Dim = Dim { n: 1, ..Dim::NONE };

/// Whether lines are whole elements of so many bytes.
fn divides(size: usize) -> bool {
    size.is_power_of_two() && size <= LINE
}

/// Whether rows of so many bytes are filled by lines: whole elements are one, and there is no
/// faster way for all of them.
pub(super) fn lined(size: usize, total: usize) -> bool {
    const BYTES: usize = 512;
    divides(size) && total >= LINE && (size > 1 || total < BYTES)
}

/// Writes an element `n` times: in lines, else singly up to 256 bytes, and then by copying what is
/// there, and near.
unsafe fn repeat(ops: &Ops, size: usize, to: *mut u8, from: *const u8, n: usize) {
    const NEAR: usize = 8192;
    let total = n * size;
    // SAFETY: the caller's n elements; each copy reads what is written and writes what follows.
    unsafe {
        if lined(size, total) {
            return (ops.fill)(to, from, &SINGLE, size, total);
        }
        if size == 1 {
            return to.write_bytes(*from, n);
        }
        let mut done = n.min(256 / size.max(1) + 1);
        line(size, to, from, done, 0, size as isize);
        done *= size;
        let mut there = done;
        while done < total {
            let count = there.min(total - done);
            core::ptr::copy_nonoverlapping(to, to.wrapping_add(done), count);
            done += count;
            there = if there < NEAR { done } else { there };
        }
    }
}

/// [`Fill`], with a level's way to make a line of an element, to load one, and to store it.
///
/// # Safety
/// As there.
#[inline(always)] // functions with a target_feature cannot ask for it; the callers have it
pub(super) unsafe fn each<L: Copy>(
    (dst, src): (*mut u8, *const u8),
    rows: &Dim,
    total: usize,
    element: impl Fn(*const u8) -> L,
    load: impl Fn(*const u8) -> L,
    store: impl Fn(*mut u8, L),
) {
    // From here on lines of the destination are worth being met.
    const LONG: usize = 1024;
    let (mut to, mut from) = (dst, src);
    for _ in 0..rows.n {
        let line = element(from);
        let (mut at, mut now, end) = (to, line, to.wrapping_add(total - LINE));
        let skip = (to as usize).wrapping_neg() & (LINE - 1);
        if total >= LONG && skip > 0 {
            let mut twice = MaybeUninit::<[u8; 2 * LINE]>::uninit();
            let twice = twice.as_mut_ptr().cast::<u8>();
            store(to, line);
            store(twice, line);
            store(twice.wrapping_add(LINE), line);
            (at, now) = (at.wrapping_add(skip), load(twice.wrapping_add(skip)));
        }
        while at < end {
            store(at, now);
            at = at.wrapping_add(LINE);
        }
        store(end, line);
        (to, from) =
            (to.wrapping_offset(rows.dst as isize), from.wrapping_offset(rows.src as isize));
    }
}

/// [`Fill`] for every target.
///
/// # Safety
/// As there.
pub(super) unsafe fn fill(dst: *mut u8, src: *const u8, rows: &Dim, size: usize, total: usize) {
    // SAFETY: the caller's elements and rows.
    unsafe {
        each(
            (dst, src),
            rows,
            total,
            |from| line_of(size, from),
            |from| from.cast::<[[u8; 16]; 4]>().read_unaligned(),
            |to, line| one::<LINE>(to, line.as_ptr().cast(), (0, 0)),
        );
    }
}

/// A line of an element of up to 64 bytes, a power of two: made in registers, for a load of 16
/// bytes waits for stores of less.
unsafe fn line_of(size: usize, from: *const u8) -> [[u8; 16]; 4] {
    let times = |element: u128, by: u128| [element.wrapping_mul(by).to_ne_bytes(); 4];
    // SAFETY: bytes of the caller's element.
    unsafe {
        match size {
            1 => times((*from).into(), u128::MAX / 0xff),
            2 => times(from.cast::<u16>().read_unaligned().into(), u128::MAX / 0xffff),
            4 => times(from.cast::<u32>().read_unaligned().into(), u128::MAX / 0xffff_ffff),
            8 => times(from.cast::<u64>().read_unaligned().into(), 1 | 1 << 64),
            _ => [0, 16, 32, 48].map(|at| *from.wrapping_add(at & (size - 1)).cast()),
        }
    }
}
