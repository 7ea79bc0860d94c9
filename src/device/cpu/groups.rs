//! A few bytes in another order, or some of them, or some of them repeated, over and over: channels
//! reversed, dropped or repeated, small matrices transposed. What instructions can shuffle at once
//! is looked up in one table, made beforehand.
use super::ops::{Groups, Ops};
use super::walk::{set, walk};
use super::{level, stream};
use crate::array::Array;
use crate::device::part::Part;
use crate::device::plan::{Dim, Kernel};

/// Bytes of a group, at most.
const MOST: usize = 128;

/// Bytes of the least output that is worth a table.
const LEAST: u64 = 1024;

/// The innermost dimensions of a plan that make one group, and the one along which groups follow.
struct Found {
    /// The dimension along which groups follow one another in the destination.
    along: usize,
    /// Elements of a group.
    elements: usize,
    /// The first and the last byte but one of the source that a group is made of, from its address.
    reach: [isize; 2],
    /// Groups made at once.
    at_once: usize,
}

/// Finds the groups of which most bytes are made at once from windows of `width` bytes, and all the
/// offsets of elements that were looked at.
fn find(plan: &Part, size: usize, width: usize, at: &mut Array<isize, MOST>) -> Option<Found> {
    let (mut best, mut most) = (None, 0);
    let (mut low, mut high) = (0, size as i64);
    if size > width {
        return None;
    }
    at.push(0);
    for along in (0..plan.ndim).rev() {
        let (bytes, Dim { n, src, dst }) = ((at.len() * size) as i64, plan.dim(along));
        if dst != bytes {
            break;
        }
        let room = (width as i64).wrapping_sub(high - low);
        let near = room.checked_div(src.saturating_abs()).map_or(n, |more| more + 1);
        let at_once = near.min(n).min((width as i64).checked_div(bytes).unwrap_or(0));
        if at_once * bytes >= most {
            most = at_once * bytes;
            let (reach, at_once) = ([low as isize, high as isize], at_once as usize);
            best = Some(Found { along, elements: at.len(), reach, at_once });
        }
        let last = n.wrapping_sub(1).saturating_mul(src);
        (low, high) = (low.saturating_add(last.min(0)), high.saturating_add(last.max(0)));
        if n.saturating_mul(bytes) > MOST as i64 || high.saturating_sub(low) > width as i64 {
            break;
        }
        let elements = at.len();
        for i in elements..elements * n as usize {
            let before = at.get(i - elements).copied().unwrap_or(0);
            at.push(before + src as isize);
        }
    }
    best
}

/// The table for groups that were found.
fn table(plan: &Part, size: usize, width: usize, at: &[isize], found: &Found) -> Groups {
    let stride = plan.dim(found.along).src as isize;
    let [low, high] = found.reach;
    // Those that follow lie before the first one, if the source runs backwards.
    let first = if stride < 0 { high - width as isize } else { low };
    let Found { elements, at_once, .. } = *found;
    let (bytes, span) = (elements * size, (high - low) as usize);
    let mut how = Groups { order: [0; MOST], width, first, stride, bytes, at_once, span };
    let mut to = how.order.iter_mut();
    for group in 0..at_once {
        for from in at.iter().take(elements) {
            let from = from + group as isize * stride - first;
            for (byte, to) in (0..size).zip(&mut to) {
                *to = (from as usize + byte) as u8;
            }
        }
    }
    how
}

/// Copies a plan whose destination is dense in groups, if the level in use has a kernel for them
/// and it is faster than what else there is.
///
/// # Safety
/// As [`super::copy`].
#[inline(never)] // a frame of its own: stacks may be small
pub(super) unsafe fn copy(
    ops: &Ops,
    plan: &Part,
    kernel: Kernel,
    size: usize,
    streams: bool,
) -> bool {
    let Some((widths, shuffle)) = level::groups() else { return false };
    if size > 32 || plan.whole_bytes() < LEAST {
        return false;
    }
    let mut chosen: Option<(usize, Groups)> = None;
    for &width in widths {
        let mut at = Array::new();
        let Some(found) = find(plan, size, width, &mut at) else { continue };
        let pieces = found.elements * found.at_once;
        let better = |(_, how): &(usize, Groups)| {
            speed(width, pieces * size) > speed(how.width, how.at_once * how.bytes)
        };
        // Single elements at one stride have kernels of their own, if there are any.
        let single =
            found.elements == 1 && (kernel != Kernel::Rows || plan.source_inner().is_some());
        let run = plan.dim(found.along).n.saturating_mul((found.elements * size) as i64);
        // A window may be read in whole where another group follows.
        let stuck = width == 16 && plan.dim(found.along).src == 0;
        if pieces >= 2 && run >= 256 && !single && !stuck && chosen.as_ref().is_none_or(better) {
            chosen = Some((found.along, table(plan, size, width, &at, &found)));
        }
    }
    let Some((along, how)) = chosen else { return false };
    let n = plan.dim(along).n as usize;
    let inside = (along..plan.ndim).fold(0, |inside, i| inside | set(&[Some(i)]));
    walk(plan, inside, |src_at, dst_at| {
        let (src, dst) = (plan.src.wrapping_offset(src_at), plan.dst.wrapping_offset(dst_at));
        let mut make = |to: *mut u8, first: usize, count: usize| {
            let src = src.wrapping_offset(first as isize * how.stride);
            // SAFETY: groups of the caller's plan.
            unsafe { shuffle(to, src, count, &how) };
        };
        // SAFETY: a run of the caller's plan.
        unsafe { stream::run(ops, streams, dst, n, how.bytes, &mut make) };
    });
    true
}

/// How fast so many bytes at once are made: by one load, shuffle and store, or two of these.
fn speed(width: usize, bytes: usize) -> usize {
    match (width > 64, bytes > 64) {
        (false, _) => 4 * bytes,
        (_, false) => 3 * bytes,
        _ => 2 * bytes,
    }
}

/// Groups byte by byte.
///
/// # Safety
/// As [`super::ops::Shuffle`].
pub(super) unsafe fn slowly(dst: *mut u8, src: *const u8, n: usize, how: &Groups) {
    let (mut from, mut to) = (src.wrapping_offset(how.first), dst);
    for _ in 0..n {
        for (i, &at) in how.order.iter().take(how.bytes).enumerate() {
            // SAFETY: a byte of the caller's groups.
            unsafe { *to.wrapping_add(i) = *from.wrapping_add(usize::from(at)) };
        }
        (from, to) = (from.wrapping_offset(how.stride), to.wrapping_add(how.bytes));
    }
}
