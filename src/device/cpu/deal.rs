//! Pixels to planes, and planes to pixels, of two to eight elements: of each round all lines of one
//! side are loaded, and every line of the other is made of them, in registers.
use super::nest;
use super::ops::Ops;
use super::step::byte_of;
use super::tuning::tuning;
use super::walk::{set, walk};
use crate::device::part::Part;
use crate::device::plan::Dim;

/// Planes at most.
pub(super) const MOST: usize = 8;

/// Bytes of the shortest run of a plane: of lines, of those of few planes that are made, and of
/// parts.
const LEAST: i64 = 32;
const SHORT: i64 = 24;
const PART: i64 = 16;

/// How lines of some rows become lines of others, in every round of every run.
#[allow(dead_code)] // by targets without such kernels
pub(super) struct Deal {
    /// Which byte of two lines that are loaded becomes which of each line that is made.
    pub(super) order: [u8; 64 * MOST + 16],
    /// Which bytes of it come from the second two lines, the third, and the fourth.
    pub(super) masks: [[u64; MOST / 2 - 1]; MOST],
    /// Lines of a round, 2 to 8 of the source, 1 to 8 of the destination; how many bytes they are
    /// apart, and those of the next round from them.
    pub(super) lines: [usize; 2],
    pub(super) apart: [isize; 2],
    pub(super) by: [isize; 2],
    /// Whole rounds of a run.
    pub(super) rounds: usize,
    /// What another one reads and writes of each line, if it does.
    pub(super) last: [[u64; MOST]; 2],
    /// How far ahead lines of the destination are asked for.
    pub(super) soon: usize,
    /// Runs.
    pub(super) runs: Dim,
}

/// How pixels become planes, 16 bytes of each at a time.
#[allow(dead_code)] // likewise
pub(super) struct Parts {
    /// For every plane, which byte of 16 bytes of the pixels, of the next 16, ..., one for each
    /// element of a pixel, becomes which byte of it; 0x80 for none.
    pub(super) order: [[u8; 16]; MOST * MOST],
    /// Bytes of an element, and elements of a pixel.
    pub(super) size: usize,
    pub(super) step: usize,
    /// Planes that are made, and bytes from one to the next.
    pub(super) planes: usize,
    pub(super) apart: isize,
    /// Pixels of a run, 16 bytes of a plane or more; and whether another one follows, of which only
    /// its own elements are there.
    pub(super) n: usize,
    pub(super) last: bool,
    /// Runs.
    pub(super) runs: Dim,
}

/// Copies runs: `deal(dst, src, how)`.
#[allow(dead_code)] // likewise
#[derive(Clone, Copy)]
pub(super) enum Dealt {
    /// Pixels to planes and back, by lines.
    Lines(unsafe fn(*mut u8, *const u8, &Deal)),
    /// Pixels of up to 16 bytes to planes, by 16 bytes.
    Parts(unsafe fn(*mut u8, *const u8, &Parts)),
}

/// The dimensions of a plan along which pixels follow one another, and planes; whether the source
/// is in planes, and the elements of a pixel.
#[derive(Clone, Copy)]
pub(super) struct Found {
    along: usize,
    planes: usize,
    weaves: bool,
    step: usize,
}

/// What deals a plan of elements of `size` bytes, if the level in use has a kernel for it.
pub(super) fn of(ops: &Ops, plan: &Part, size: usize) -> Option<(Found, Dealt)> {
    let deal = ops.deal.filter(|_| matches!(size, 1 | 2 | 4 | 8 | 16))?;
    let (last, inner, bytes) = (plan.ndim.checked_sub(1)?, plan.inner(), size as i64);
    let few = 2..=MOST as i64;
    let run = last.checked_sub(1)?;
    let Dim { n, src, dst } = plan.dim(run);
    let lines = matches!(deal, Dealt::Lines(_));
    let weaves = lines && few.contains(&inner.n) && src == bytes && dst == inner.n * bytes;
    if weaves && inner.dst == bytes && n * bytes >= LEAST {
        let found = Found { along: run, planes: last, weaves: true, step: inner.n as usize };
        return Some((found, deal));
    }
    let planes = plan.source_inner()?;
    let (step, Dim { n, src, .. }) = (inner.src / bytes, plan.dim(planes));
    let able = inner.dst == bytes && inner.src == step * bytes && few.contains(&step);
    let whole = inner.n - i64::from(n < step);
    let able = able && src == bytes && n <= step;
    let able = match deal {
        Dealt::Lines(_) => {
            able && inner.n * bytes >= if step < 7 && size <= 2 { SHORT } else { LEAST }
        }
        Dealt::Parts(_) => able && inner.src <= 16 && whole * bytes >= PART,
    };
    let found = Found { along: last, planes, weaves: false, step: step as usize };
    able.then_some((found, deal))
}

impl Found {
    /// Whether that is faster than groups, squares and braids, and worth its table.
    pub(super) fn worth(&self, deal: &Dealt, plan: &Part, size: usize, streams: bool) -> bool {
        if matches!(deal, Dealt::Parts(_)) {
            // Squares are faster.
            let squares = size == 2 && self.step == MOST && !streams;
            return plan.whole_bytes() >= 4096 && !squares;
        }
        let n = plan.dim(self.along).n;
        // Squares are faster for many planes of short runs, and braids in the caches.
        let many = if streams { 4 } else { 6 };
        let short = size >= 4 && self.step >= many && (24..=64).contains(&n);
        if self.weaves && (short || !streams && self.step == MOST) {
            return false;
        }
        if !streams && tuning().nested.0 && self.slow(plan, size, n) {
            return false;
        }
        let table = size > 1 && plan.whole_bytes() < (self.step as u64) << 12;
        streams || !table && n.saturating_mul((self.step * size) as i64) > 128
    }

    /// Whether loops, squares and braids are faster for runs of `n` elements, in the caches, where
    /// loops alone are fast (measured on a Xeon, benches/notes.md).
    fn slow(&self, plan: &Part, size: usize, n: i64) -> bool {
        if self.weaves {
            let least = match (size, self.step) {
                (_, 7..) => i64::MAX,
                (8, 6) => 15,
                (8, 5) => 14,
                (4, 6) => 13,
                (4, 5) => 12,
                (8, 4) => 11,
                _ => 0,
            };
            return n < least;
        }
        match size {
            8 => n <= 5 || nest::suits(plan, size),
            4 => self.step == MOST && n < 32,
            _ => false,
        }
    }

    /// How lines become lines.
    #[inline(never)] // a frame of its own: stacks may be small
    fn deal(&self, plan: &Part, size: usize, runs: Dim) -> Deal {
        let (along, planes) = (plan.dim(self.along), plan.dim(self.planes));
        let (n, count, pixel) = (planes.n as usize, along.n as usize, self.step * size);
        let each = 64usize >> size.trailing_zeros(); // pixels of a round
        let (lines, apart, by) = if self.weaves {
            ([n, n], [planes.src as isize, 64], [64, 64 * n as isize])
        } else {
            ([self.step, n], [64, planes.dst as isize], [64 * self.step as isize, 64])
        };
        let mut how = Deal {
            order: [0; 64 * MOST + 16],
            masks: [[0; MOST / 2 - 1]; MOST],
            lines,
            apart,
            by,
            rounds: count >> each.trailing_zeros(),
            last: [[0; MOST]; 2],
            soon: tuning().soon,
            runs,
        };
        self.tables(&mut how, size, (n, each));
        // Of the last pixel only its own elements are there.
        let mut left = count & (each - 1);
        if left == 0 && !self.weaves && n < self.step {
            (left, how.rounds) = (each, how.rounds - 1);
        }
        if left > 0 {
            let pixels = (left - 1) * pixel + n * size;
            let first = |n: usize| if n < 64 { (1u64 << n) - 1 } else { u64::MAX };
            let packed = core::array::from_fn(|i| first(pixels.saturating_sub(64 * i)));
            let alone = [first(left * size); MOST];
            how.last = if self.weaves { [alone, packed] } else { [packed, alone] };
        }
        how
    }

    /// How pixels become parts of planes.
    #[inline(never)] // likewise
    fn parts(&self, plan: &Part, size: usize, runs: Dim) -> Parts {
        let (along, beside) = (plan.dim(self.along), plan.dim(self.planes));
        let (step, planes, apart) = (self.step, beside.n as usize, beside.dst as isize);
        let last = planes < step;
        let n = along.n as usize - usize::from(last);
        let order = [[0x80; 16]; MOST * MOST];
        let mut how = Parts { order, size, step, planes, apart, n, last, runs };
        for (plane, orders) in how.order.chunks_exact_mut(step.max(1)).take(planes).enumerate() {
            for b in 0..16 {
                let at = byte_of(b, size, (step, plane));
                let order = orders.get_mut(at >> 4).and_then(|order| order.get_mut(b));
                if let Some(order) = order {
                    *order = (at & 15) as u8;
                }
            }
        }
        how
    }

    /// Which byte comes where.
    fn tables(&self, how: &mut Deal, size: usize, (n, each): (usize, usize)) {
        // Elements, in the order in which they are made: what one has too many, the next has again.
        let (outer, inner) = if self.weaves { (each, n) } else { (n, each) };
        let ones = u128::from_le_bytes([1; 16]);
        let bytes = u128::from_le_bytes([0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15]);
        let mut to = 0;
        for i in 0..outer {
            for j in 0..inner {
                let from =
                    if self.weaves { 64 * j + i * size } else { j * self.step * size + i * size };
                let order = ones.wrapping_mul((from & 127) as u128).wrapping_add(bytes);
                if let Some(at) = how.order.get_mut(to..to + 16) {
                    at.copy_from_slice(&order.to_le_bytes());
                }
                let masks = how.masks.get_mut(to >> 6);
                if let Some(mask) = masks.and_then(|all| all.get_mut((from >> 7).wrapping_sub(1))) {
                    *mask |= (u64::MAX >> (64 - size)) << (to & 63);
                }
                to += size;
            }
        }
    }
}

/// Copies a plan by what [`of`] names for it.
///
/// # Safety
/// As [`super::copy`].
#[inline(never)] // a frame of its own: stacks may be small
pub(super) unsafe fn copy(plan: &Part, size: usize, (found, deal): &(Found, Dealt)) {
    let inside = set(&[Some(found.along), Some(found.planes)]);
    let next = (0..plan.ndim).rev().find(|i| inside >> (i & 63) & 1 == 0);
    let runs = next.map_or(Dim { n: 1, ..Dim::NONE }, |i| plan.dim(i));
    let inside = inside | set(&[next]);
    match *deal {
        Dealt::Lines(deal) => {
            let how = found.deal(plan, size, runs);
            // SAFETY: runs of the caller's plan.
            each(plan, inside, |dst, src| unsafe { deal(dst, src, &how) });
        }
        Dealt::Parts(deal) => {
            let how = found.parts(plan, size, runs);
            // SAFETY: likewise.
            each(plan, inside, |dst, src| unsafe { deal(dst, src, &how) });
        }
    }
}

/// Calls `deal(dst, src)` for all runs of a plan but those `inside`.
fn each(plan: &Part, inside: u64, deal: impl Fn(*mut u8, *const u8)) {
    walk(plan, inside, |src_at, dst_at| {
        deal(plan.dst.wrapping_offset(dst_at), plan.src.wrapping_offset(src_at));
    });
}
