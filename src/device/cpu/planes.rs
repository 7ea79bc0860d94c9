//! Elements that lie in turn, the channels of pixels, to planes: all in one go, past the caches.
use super::ops::{Ops, Planes, Split};
use super::step::{Step, byte_of};
use super::tuning::tuning;
use super::walk::{set, walk};
use crate::device::part::Part;
use crate::device::plan::Dim;

/// Bytes of the shortest run of a plane.
const LEAST: i64 = 1024;

/// What copies a plan of which every `step`-th element is taken, of `size` (1, 2, 4, 8) bytes, and
/// which takes others between these too, if the level in use has a kernel for it and lines of all
/// planes begin together; and how many bytes it makes at once.
pub(super) fn of(
    ops: &Ops,
    plan: &Part,
    size: usize,
    step: i64,
    streams: bool,
) -> Option<(usize, Split)> {
    let past = streams || ops.streams && plan.whole_bytes() >= tuning().split_from;
    let Dim { n, src, dst } = plan.source_inner().map_or(Dim::NONE, |i| plan.dim(i));
    let lines =
        (0..plan.ndim).all(|i| (plan.dim(i).dst | plan.dst as i64) & (size as i64 - 1) == 0);
    let together = src == size as i64 && n <= step && step <= 4 && dst & 63 == 0 && lines;
    ops.planes.filter(|_| past && together && plan.inner().n * size as i64 >= LEAST)
}

/// Copies a plan by what [`of`] names for it.
///
/// # Safety
/// As [`super::copy`].
#[inline(never)] // a frame of its own: stacks may be small
pub(super) unsafe fn copy(
    ops: &Ops,
    plan: &Part,
    size: usize,
    (step, (once, split)): (i64, (usize, Split)),
) {
    let (row, beside) = (plan.inner(), plan.source_inner());
    let Dim { n, dst, .. } = beside.map_or(Dim::NONE, |i| plan.dim(i));
    let how = table(once, size, [step as usize, n as usize], dst as isize);
    let single = Step::new(size, step as isize);
    let each = (split, &how, &single, row.n as usize);
    walk(plan, set(&[plan.ndim.checked_sub(1), beside]), |src_at, dst_at| {
        let (src, dst) = (plan.src.wrapping_offset(src_at), plan.dst.wrapping_offset(dst_at));
        // SAFETY: rows of the caller's plan.
        unsafe { pixels(ops, dst, src, size, each) };
    });
}

/// A row of each plane.
unsafe fn pixels(
    ops: &Ops,
    dst: *mut u8,
    src: *const u8,
    size: usize,
    (split, how, single, n): (Split, &Planes, &Step, usize),
) {
    let (log, stride) = (size.trailing_zeros(), how.lines * size);
    let head = ((dst as usize).wrapping_neg() & 63) >> log;
    // Of the last pixel only its elements are there.
    let lines = (n - head - 1) >> (6 - log);
    let done = head + (lines << (6 - log));
    // SAFETY: parts of the caller's rows, of which lines begin at `head`.
    unsafe {
        split(dst.wrapping_add(head << log), src.wrapping_add(head * stride), lines, how);
        for plane in 0..how.n {
            let (src, dst) =
                (src.wrapping_add(plane << log), dst.wrapping_offset(plane as isize * how.apart));
            single.pick(ops, dst, src, head);
            let (src, dst) = (src.wrapping_add(done * stride), dst.wrapping_add(done << log));
            single.pick(ops, dst, src, n - done);
        }
    }
}

/// Every `step`-th element of `size` bytes, of `n` planes, of each so many bytes at `once`.
fn table(once: usize, size: usize, [step, n]: [usize; 2], apart: isize) -> Planes {
    let mut how = Planes { order: [[0x80; 64]; 4], masks: [0; 4], n, lines: step, apart };
    let tables = how.order.iter_mut().zip(&mut how.masks).take(n);
    for (plane, (order, mask)) in tables.enumerate() {
        for b in 0..once {
            let at = byte_of(b, size, (step, plane));
            let (to, from) = if once == 16 { (b + (at & !15), 15) } else { (b, 127) };
            if let Some(order) = order.get_mut(to) {
                *order = (at & from) as u8;
            }
            *mask |= (at as u64 >> 7) << b;
        }
    }
    how
}
