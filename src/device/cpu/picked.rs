//! Transposes of every so many-th element: a block of them is picked first, next to one another in
//! memory of its own, and turned from there.
use super::engine::once;
use super::level::{Level, level};
use super::staged::Memory;
use super::walk::{set, walk};
use crate::device::part::Part;
use crate::device::plan::{Dim, Item, MAX_STEP, Plan};

/// Bytes of an output from which two more plans for each block are worth their time, of single
/// bytes and of pairs: of these a row of the source has at least so many, or the output is large.
const LEAST: [u64; 2] = [16 << 10, 64 << 10];
const PAIRS: i64 = 128;
const LARGE: u64 = 1 << 20;

/// Bytes of the source's rows, once picked, and of the destination's at least.
const SHORT: i64 = 32;

/// Bytes of a block, of which even a small second-level cache has room for all that is in use; and
/// of a row of it at most.
const ROOM: i64 = 96 << 10;
const LONG: i64 = 4096;

/// Bytes of an element, and the dimension along which elements are picked, if there is one (of one
/// and two bytes: measured on a Xeon, benches/notes.md).
#[inline(never)] // a frame of its own: stacks may be small
pub(super) fn of(plan: &Part) -> Option<(i64, usize)> {
    let Item::Bytes(size @ 1..=2) = plan.item else { return None };
    let (least, all) = (LEAST.get(size.wrapping_sub(1)).copied()?, plan.whole_bytes());
    let (size, inner) = (size as i64, plan.inner());
    let able = inner.dst == size && inner.n.saturating_mul(size) >= SHORT && all >= least;
    // Without shuffles picking is no faster than what there is else.
    let able = able && level() > Level::Portable;
    let last = plan.ndim.checked_sub(1).filter(|_| able)?;
    let i = (0..plan.ndim).min_by_key(|&i| plan.dim(i).src.saturating_abs())?;
    let Dim { n, src, .. } = plan.dim(i);
    let steps = (2 * size..=MAX_STEP * size).contains(&src.saturating_abs()) && src % size == 0;
    let many = size == 1 || n >= PAIRS || all >= LARGE;
    (i < last && steps && many && n.saturating_mul(size) >= SHORT).then_some((size, i))
}

/// Blocks of a plan: dimensions of the destination from the innermost on, and the one along which
/// elements are picked.
#[derive(Clone, Copy)]
struct Blocks {
    /// Bytes of an element.
    size: i64,
    /// The dimension along which elements are picked, and how many of it are in a block.
    picked: (usize, i64),
    /// The outermost of the others, and how many of it are.
    cut: (usize, i64),
    /// All of them.
    inside: u64,
    /// Bytes from one row of a block to the next.
    pitch: i64,
}

impl Blocks {
    #[inline(never)] // as above
    fn of(plan: &Part, size: i64, i: usize) -> Blocks {
        let n = plan.dim(i).n.min(LONG.checked_div(size).unwrap_or(1));
        // An odd number of lines: rows share no place in the caches.
        let pitch = (n * size + 63) & !63 | 64;
        let (mut rows, mut cut, mut inside) = (1, (i, n), set(&[Some(i)]));
        for k in (0..plan.ndim).rev().filter(|&k| k != i) {
            let most = ROOM.checked_div(pitch * rows).map_or(1, |most| most.max(1));
            let all = plan.dim(k).n;
            inside |= set(&[Some(k)]);
            cut = (k, all.min(most));
            if all >= most {
                break;
            }
            rows *= all;
        }
        Blocks { size, picked: (i, n), cut, inside, pitch }
    }

    /// The plan of the block at an index of both dimensions that are cut: to pick it, or to turn it
    /// from where it was put.
    ///
    /// # Safety
    /// `at` has room for a plan and a block, and lives as long as the plan is used.
    #[inline(never)] // as above
    unsafe fn plan<'a>(
        &self,
        part: &Part,
        at: *mut u8,
        (src, dst): (*const u8, *mut u8),
        from: [i64; 2],
        turns: bool,
    ) -> &'a Plan {
        let Blocks { size, picked, cut, inside, pitch } = *self;
        let block = at.wrapping_add(size_of::<Plan>().next_multiple_of(64));
        // SAFETY: the caller's room; a line is aligned for a plan.
        let plan = unsafe {
            at.cast::<Plan>().write(Plan::none());
            &mut *at.cast::<Plan>()
        };
        let count = |k: usize| match k {
            _ if k == picked.0 => picked.1.min(part.dim(k).n - from[0]),
            _ if k == cut.0 => cut.1.min(part.dim(k).n - from[1]),
            _ => part.dim(k).n,
        };
        let dims = (0..part.ndim).filter(|k| inside >> (k & 63) & 1 == 1);
        for k in dims.clone() {
            let inner = dims.clone().filter(|&inner| inner > k && inner != picked.0);
            let to = match k == picked.0 {
                true => size,
                false => inner.fold(pitch, |by, inner| by * count(inner)),
            };
            let Dim { src, dst, .. } = part.dim(k);
            let n = count(k);
            plan.push(if turns { Dim { n, src: to, dst } } else { Dim { n, src, dst: to } });
        }
        let by = |strides: [i64; 2]| (from[0] * strides[0] + from[1] * strides[1]) as isize;
        let (first, second) = (part.dim(picked.0), part.dim(cut.0));
        (plan.item, plan.src, plan.dst) = match turns {
            false => (part.item, src.wrapping_offset(by([first.src, second.src])), block),
            true => {
                (part.item, block.cast_const(), dst.wrapping_offset(by([first.dst, second.dst])))
            }
        };
        plan.simplify();
        plan
    }
}

/// Copies a plan whose elements are picked along dimension `i`; past the caches, if it is `large`.
/// It is copied as any without memory for a block.
///
/// # Safety
/// As [`super::copy`].
#[inline(never)] // as above
pub(super) unsafe fn copy(part: &Part, (size, i): (i64, usize), large: bool) {
    let (blocks, mut memory) = (Blocks::of(part, size, i), Memory::none());
    let room = size_of::<Plan>().next_multiple_of(64) + ROOM as usize + LONG as usize + 64;
    let Some(at) = memory.lines(room) else {
        // SAFETY: the caller's plan.
        return unsafe { once(part, large) };
    };
    let (picked, cut) = (part.dim(i).n, part.dim(blocks.cut.0).n);
    walk(part, blocks.inside, |src_at, dst_at| {
        let to = (part.src.wrapping_offset(src_at), part.dst.wrapping_offset(dst_at));
        let mut from = [0, 0];
        while from[1] < cut {
            // SAFETY: a part of the caller's plan, and room for it; what the second plan reads the
            // first one has written.
            unsafe {
                once(&Part::whole(blocks.plan(part, at, to, from, false)), false);
                once(&Part::whole(blocks.plan(part, at, to, from, true)), large);
            }
            from[0] += blocks.picked.1.max(1);
            if from[0] >= picked {
                from = [0, from[1] + blocks.cut.1.max(1)];
            }
        }
    });
}
