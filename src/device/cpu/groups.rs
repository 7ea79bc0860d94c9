//! A few bytes in another order, or some of them, or some of them repeated, over and over: channels
//! reversed, dropped, repeated or put among others, small matrices transposed. One table, made
//! beforehand, says which byte of a window of the source comes where in one of the destination.
use super::fills;
use super::ops::{Groups, Ops, Rows, Shuffle, WINDOW};
use super::stream::Lined;
use super::tuning::tuning;
use super::walk::{set, walk};
use crate::array::Array;
use crate::device::part::Part;
use crate::device::plan::{Dim, Kernel};

/// Elements of the least output that is worth a table.
const LEAST: u64 = 2048;

/// Bytes of the least run of groups.
const LEAST_RUN: i64 = 128;

/// Bytes of the longest run of elements at one stride that is worth one.
const LONG_RUN: i64 = 512;

/// Bytes of the destination in which groups with gaps are written, before others in these gaps.
const PIECE: usize = 4096;

/// Bytes of the smallest page: of groups at most so far apart, a window's bytes that are none of
/// theirs lie in a page with others that are.
const PAGE: u64 = 4096;

/// Where the elements of a group are on both sides, from its address.
type Elements = Array<(i16, i16), WINDOW>;

/// The innermost dimensions of a plan that make one group, and the one along which groups follow.
#[derive(Clone, Copy)]
pub(super) struct Found {
    /// Bytes of a window.
    width: usize,
    /// Bytes of an element.
    size: usize,
    /// Elements of a group.
    elements: usize,
    /// The first byte of the source that a group is made of, and the last but one.
    span: [i64; 2],
    /// Bytes of the destination from a group's first to its last.
    reach: i64,
    /// The dimension along which groups follow.
    along: Dim,
    /// The dimensions of a group.
    group: u64,
    /// These, and the one along which groups follow.
    inside: u64,
    /// Groups made at once.
    at_once: usize,
    /// Whether there are gaps in the destination.
    gaps: bool,
    /// Whether windows are read and written in part.
    masked: bool,
}

impl Found {
    /// A group of one element, and none that follows.
    fn one(size: usize, width: usize, gaps: bool, masked: bool) -> Found {
        let (span, reach, along) = ([0, size as i64], size as i64, Dim::NONE);
        let (elements, group, inside, at_once) = (1, 0, 0, 1);
        Found { width, size, elements, span, reach, along, group, inside, at_once, gaps, masked }
    }

    /// Bytes of a group.
    fn bytes(&self) -> usize {
        self.elements * self.size
    }

    /// How fast bytes are made: by one load, shuffle and store at once, two of these, or four and
    /// as many shuffles more; a run takes as long to begin as two or three of them. In whole
    /// windows by 3, 6, 20 or 72 instructions.
    fn speed(&self) -> usize {
        let long = (self.at_once as i64 - 1) * self.along.dst + self.reach > 64;
        if self.masked {
            let n = self.along.n as usize;
            let windows = n.div_ceil(self.at_once.max(1));
            let each = match (self.width, long) {
                (..=64, _) => 3,
                (65..=128, false) => 4,
                (65..=128, true) => 6,
                _ => 12,
            };
            return n.saturating_mul(self.bytes() << 10)
                / (windows.saturating_mul(each) + 8).max(1);
        }
        let by = match self.width {
            16 => 120,
            32 => 60,
            64 => 18,
            _ => 5,
        };
        by * self.at_once * self.bytes()
    }

    /// Whether groups are faster than what else there is.
    fn worth(&self, plan: &Part, kernel: Kernel) -> bool {
        let gaps = self.gaps;
        let run = self.along.n.saturating_mul(self.bytes() as i64);
        // Single elements at one stride have kernels of their own, if there are any, for long runs;
        // these are faster than large windows in whole.
        let single = self.elements == 1
            && match kernel {
                _ if whole(self) => true,
                Kernel::Rows => self.size > 16 || plan.source_inner().is_some(),
                Kernel::Step(_) => self.width < 64 || run > LONG_RUN,
                _ => !gaps,
            };
        // A window is read in whole, where another group follows: it must not be far, for there may
        // be no memory between.
        let near = 1..=PAGE;
        let stuck = !self.masked && !near.contains(&self.along.src.unsigned_abs());
        let least = match self.width {
            _ if gaps => 8,
            64.. if !self.masked => self.width / 16 + 2,
            _ => 2,
        };
        let pieces = self.elements * self.at_once;
        // Nor windows that are mostly what is between, unless many elements are near one another.
        let part = if self.masked || self.width < 64 { 3 } else { 4 };
        // What is repeated is read once.
        let repeated = kernel == Kernel::Fill && self.elements > 2;
        let many = self.masked && (repeated || 8 * self.elements >= self.width);
        let full = gaps || many || 8 * self.size * pieces >= part * self.width;
        // The last windows of a run go through other memory: there must be more.
        let least_run = if whole(self) { 8 * self.width as i64 } else { LEAST_RUN };
        pieces >= least && full && !single && !stuck && run >= least_run
    }

    /// The elements of a group.
    fn places(&self, plan: &Part) -> Elements {
        let mut at = Elements::new();
        at.push((0, 0));
        for i in (0..plan.ndim).rev().filter(|i| self.group >> (i & 63) & 1 == 1) {
            let (elements, Dim { n, src, dst }) = (at.len(), plan.dim(i));
            for i in elements..elements * n as usize {
                let (from, to) = at.get(i - elements).copied().unwrap_or_default();
                at.push((from + src as i16, to + dst as i16)); // within a window
            }
        }
        at
    }

    /// Which byte comes where.
    #[inline(never)] // a frame of its own: stacks may be small
    fn table(&self, plan: &Part) -> Groups {
        let Found { width, at_once, size, .. } = *self;
        let ([low, high], reach) = (self.span.map(|at| at as isize), self.reach as usize);
        // Those that follow lie before the first one, if the source runs backwards.
        let first = if self.along.src < 0 { high - width as isize } else { low };
        let strides = [self.along.src as isize, self.along.dst as isize];
        let (span, bytes) = ((high - low) as usize, self.bytes());
        let (order, mask) = ([0; WINDOW], [0; WINDOW / 128]);
        let mut how = Groups { order, mask, width, first, strides, bytes, at_once, span, reach };
        let elements = self.places(plan);
        for i in 0..at_once as isize {
            let (by_src, by_dst) = (i * strides[0] - first, i * strides[1]);
            for &(from, to) in elements.iter() {
                let (from, to) = (isize::from(from) + by_src, isize::from(to) + by_dst);
                let (to, order) = (to as usize, how.order.get_mut(to as usize..));
                for (byte, order) in (0..size).zip(order.unwrap_or_default()) {
                    *order = (from as usize + byte) as u8;
                    if let Some(mask) = how.mask.get_mut((to + byte) / 128) {
                        *mask |= 1 << ((to + byte) & 127);
                    }
                }
            }
        }
        how
    }
}

/// Finds the groups of which most bytes are made at once from a window to another, from a group of
/// one element on. If there are to be no gaps, the destination is dense.
fn find(plan: &Part, mut now: Found) -> Option<Found> {
    let Found { size, width, gaps, .. } = now;
    let (mut best, mut most, window) = (None, 0, width as i64);
    for i in (0..plan.ndim).rev().filter(|_| size <= width) {
        let (along, Found { span, reach, .. }) = (plan.dim(i), now);
        let (bytes, Dim { n, src, dst }) = (now.bytes() as i64, along);
        if !gaps && dst != bytes {
            break;
        }
        let fit = |room: i64, by: i64| room.checked_div(by).map_or(n, |more| more + 1);
        let near = fit(window - (span[1] - span[0]), src.saturating_abs());
        // The last window of a run is written up to its last group's end: of groups that lie
        // between one another, bytes of groups that are not there would lie before that.
        let whole = if reach > dst { 1 } else { n };
        let at_once = near.min(fit(window - reach, dst)).min(whole);
        let inside = now.group | set(&[Some(i)]);
        if at_once * bytes >= most && (at_once > 1 || !gaps) {
            most = at_once * bytes;
            best = Some(Found { along, inside, at_once: at_once as usize, ..now });
        }
        let last = n.wrapping_sub(1).saturating_mul(src);
        let low = last.min(0).saturating_add(span[0]);
        let high = last.max(0).saturating_add(span[1]);
        let reach = n.wrapping_sub(1).saturating_mul(dst).saturating_add(reach);
        if high.saturating_sub(low) > window || reach > window {
            if gaps {
                continue; // that one is walked along
            }
            break;
        }
        let elements = now.elements.saturating_mul(n as usize).min(WINDOW);
        now = Found { span: [low, high], reach, group: inside, elements, ..now };
    }
    best
}

/// Whether there are gaps, in which other elements may lie, within a few bytes of the destination.
fn gaps(plan: &Part, size: usize) -> bool {
    let mut dense = size as i64;
    for Dim { n, dst, .. } in (0..plan.ndim).rev().map(|i| plan.dim(i)) {
        if dst != dense {
            return dst <= 64;
        }
        dense = dense.saturating_mul(n);
    }
    false
}

/// The groups of a plan, if the level in use has a kernel for them and they are faster than what
/// else there is.
#[inline(never)] // a frame of its own: stacks may be small
pub(super) fn of(ops: &Ops, plan: &Part, kernel: Kernel, size: usize) -> Option<(Found, Shuffle)> {
    let (widths, masked, shuffle) = ops.groups?;
    if size > 32 || plan.whole_bytes() < LEAST.saturating_mul(size as u64) {
        return None;
    }
    let (gaps, run) = (gaps(plan, size), plan.inner().n.saturating_mul(size as i64));
    // Long runs in another order are for other kernels.
    if run > LONG_RUN && kernel != Kernel::Rows && !gaps {
        return None;
    }
    if kernel == Kernel::Fill && fills::lined(size, run as usize) {
        return None;
    }
    let mut best = None::<Found>;
    for &width in widths.iter().filter(|&&width| !gaps || masked && width <= 128) {
        let one = Found::one(size, width, gaps, masked);
        let found = find(plan, one).filter(|it| it.worth(plan, kernel));
        if let Some(found) = found
            && best.as_ref().is_none_or(|best| found.speed() > best.speed())
        {
            best = Some(found);
        }
    }
    best.map(|best| (best, shuffle))
}

/// Likewise of small matrices that follow one another, where groups have room for them in whole
/// and nothing is faster.
pub(super) fn matrices(
    ops: &Ops,
    plan: &Part,
    kernel: Kernel,
    size: usize,
) -> Option<(Found, Shuffle)> {
    let (_, masked, _) = ops.groups?;
    let columns = plan.dim(plan.ndim.checked_sub(2).filter(|&next| masked && next > 0)?);
    let nbytes = plan.inner().n.saturating_mul(columns.n).saturating_mul(size as i64);
    let found = if nbytes <= WINDOW as i64 { of(ops, plan, kernel, size) } else { None };
    found.filter(|(it, _)| it.elements as i64 >= plan.inner().n.saturating_mul(columns.n))
}

/// Whether groups have more elements than one.
pub(super) fn several(found: &Found) -> bool {
    found.elements > 1
}

/// Copies a plan in the groups that [`of`] found.
///
/// # Safety
/// As [`super::copy`].
#[inline(never)] // a frame of its own: stacks may be small
pub(super) unsafe fn copy(
    ops: &Ops,
    plan: &Part,
    (found, shuffle): &(Found, Shuffle),
    streams: bool,
) {
    let how = found.table(plan);
    let each = (&how, found.inside, found.along.n as usize);
    // SAFETY: the caller's promise.
    unsafe {
        match found.gaps {
            true => sparse(plan, *shuffle, each),
            false => dense(ops, plan, *shuffle, each, streams),
        }
    }
}

/// Groups that follow one another without a gap.
#[inline(never)] // a frame of its own: stacks may be small
unsafe fn dense(
    ops: &Ops,
    plan: &Part,
    shuffle: Shuffle,
    (how, inside, n): (&Groups, u64, usize),
    streams: bool,
) {
    // Windows of permutations of bytes begin anywhere in a line, which the processor is slow to
    // foresee (measured, benches/notes.md).
    let stride = how.strides[0];
    let masked = ops.groups.is_some_and(|(_, masked, _)| masked);
    let asks = masked && streams && tuning().pages && stride.unsigned_abs() <= how.bytes;
    let mut lined = Lined::new(ops, streams);
    walk(plan, inside, |src_at, dst_at| {
        let (src, dst) = (plan.src.wrapping_offset(src_at), plan.dst.wrapping_offset(dst_at));
        let mut make = |to: *mut u8, first: usize, count: usize| {
            let src = src.wrapping_offset(first as isize * stride);
            if asks && first + count < n {
                let whole = count as isize * stride;
                let next = src.wrapping_offset(if whole < 0 { 2 * whole } else { whole });
                // SAFETY: a prefetch touches nothing.
                unsafe {
                    (ops.fetch)(next, Rows::Apart([0]), 1, whole.unsigned_abs() / 64);
                }
            }
            // SAFETY: groups of the caller's plan.
            unsafe { shuffle(to, src, count, how) };
        };
        // SAFETY: a run of the caller's plan.
        unsafe { lined.run(dst, n, how.bytes, &mut make) };
    });
    // SAFETY: the caller's plan.
    unsafe { lined.finish() };
}

/// Groups with gaps: those that come into these follow, a piece of each at a time.
unsafe fn sparse(plan: &Part, shuffle: Shuffle, (how, inside, n): (&Groups, u64, usize)) {
    let beside = (0..plan.ndim).rev().find(|i| inside >> (i & 63) & 1 == 0);
    let (near, [by_src, by_dst]) = (beside.map_or(Dim::NONE, |i| plan.dim(i)), how.strides);
    let piece = PIECE.checked_div(by_dst.unsigned_abs()).unwrap_or(1).max(1);
    walk(plan, inside | set(&[beside]), |src_at, dst_at| {
        let mut first = 0;
        while first < n {
            for i in 0..near.n {
                let src_at = src_at + (i * near.src) as isize + first as isize * by_src;
                let dst_at = dst_at + (i * near.dst) as isize + first as isize * by_dst;
                let (src, dst) =
                    (plan.src.wrapping_offset(src_at), plan.dst.wrapping_offset(dst_at));
                // SAFETY: groups of the caller's plan.
                unsafe { shuffle(dst, src, piece.min(n - first), how) };
            }
            first += piece;
        }
    });
}

/// Whether they are made in windows of more than 16 bytes that are read and written in whole: these
/// go before what deals pixels, and loops alone.
pub(super) fn whole(found: &Found) -> bool {
    !found.masked && found.width > 16
}
