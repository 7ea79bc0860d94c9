//! One element at a time: two strides, any element size.
use core::ptr::copy_nonoverlapping;

use super::walk::{set, walk};
use crate::device::{part::Part, plan::Dim};

/// Copies `n` elements of `size` bytes from one stride to another.
///
/// # Safety
/// The elements are readable and writable, without overlap.
#[inline]
pub(super) unsafe fn line(
    size: usize,
    dst: *mut u8,
    src: *const u8,
    n: usize,
    ss: isize,
    ds: isize,
) {
    // SAFETY: the caller's promise, passed on.
    unsafe {
        match size {
            1 => fixed::<1>(dst, src, n, ss, ds),
            2 => fixed::<2>(dst, src, n, ss, ds),
            3 => pair::<2, 2>(size, dst, src, n, ss, ds),
            4 => fixed::<4>(dst, src, n, ss, ds),
            8 => fixed::<8>(dst, src, n, ss, ds),
            5..=7 => pair::<4, 4>(size, dst, src, n, ss, ds),
            16 => fixed::<16>(dst, src, n, ss, ds),
            9..=15 => pair::<8, 8>(size, dst, src, n, ss, ds),
            17..=31 => pair::<16, 16>(size, dst, src, n, ss, ds),
            32 => fixed::<32>(dst, src, n, ss, ds),
            33..=48 => pair::<32, 16>(size, dst, src, n, ss, ds),
            49..=64 => pair::<48, 16>(size, dst, src, n, ss, ds),
            65..=80 => pair::<64, 16>(size, dst, src, n, ss, ds),
            81..=96 | 128..=512 => sixties(size, dst, src, n, ss, ds),
            _ => any(size, dst, src, n, ss, ds),
        }
    }
}

/// One element, at offsets.
///
/// # Safety
/// As [`line()`].
#[inline(always)]
pub(super) unsafe fn one<const SIZE: usize>(
    dst: *mut u8,
    src: *const u8,
    (from, to): (isize, isize),
) {
    let from: *const [u8; SIZE] = src.wrapping_offset(from).cast();
    // SAFETY: the caller's element; byte arrays have no alignment.
    unsafe { *dst.wrapping_offset(to).cast() = *from };
}

/// Two elements of 8 bytes, which become neighbours.
///
/// # Safety
/// They are readable, and 16 bytes at `to` writable.
#[inline(always)]
#[allow(dead_code)] // by targets that have an instruction for it
pub(super) unsafe fn eights(to: *mut u8, [first, second]: [*const u8; 2]) {
    // SAFETY: the caller's promise.
    unsafe {
        one::<8>(to, first, (0, 0));
        one::<8>(to, second, (0, 8));
    }
}

/// [`line()`] for one size; of up to 16 bytes four elements at a time: how fast a loop of few
/// instructions is depends on where in a line it begins.
///
/// # Safety
/// As [`line()`].
#[inline(always)]
pub(super) unsafe fn fixed<const SIZE: usize>(
    dst: *mut u8,
    src: *const u8,
    n: usize,
    ss: isize,
    ds: isize,
) {
    let (mut from, mut to) = (src, dst);
    // SAFETY: the caller's n elements.
    unsafe {
        let fours = if SIZE <= 16 { n / 4 } else { 0 };
        for _ in 0..fours {
            one::<SIZE>(to, from, (0, 0));
            one::<SIZE>(to, from, (ss, ds));
            one::<SIZE>(to, from, (2 * ss, 2 * ds));
            one::<SIZE>(to, from, (3 * ss, 3 * ds));
            from = from.wrapping_offset(4 * ss);
            to = to.wrapping_offset(4 * ds);
        }
        if SIZE <= 16 {
            if n & 2 > 0 {
                one::<SIZE>(to, from, (0, 0));
                one::<SIZE>(to, from, (ss, ds));
                from = from.wrapping_offset(2 * ss);
                to = to.wrapping_offset(2 * ds);
            }
            if n & 1 > 0 {
                one::<SIZE>(to, from, (0, 0));
            }
            return;
        }
        for _ in 0..n {
            one::<SIZE>(to, from, (0, 0));
            from = from.wrapping_offset(ss);
            to = to.wrapping_offset(ds);
        }
    }
}

/// Pairs of elements that follow one another, to two places.
///
/// # Safety
/// As [`line()`], for both places.
pub(super) unsafe fn two<const SIZE: usize>(
    [a, b]: [*mut u8; 2],
    src: *const u8,
    n: usize,
    ss: isize,
) {
    let mut from = src;
    for at in (0..n).map(|i| (i * SIZE) as isize) {
        // SAFETY: one of the caller's n pairs.
        unsafe {
            one::<SIZE>(a, from, (0, at));
            one::<SIZE>(b, from, (SIZE as isize, at));
        }
        from = from.wrapping_offset(ss);
    }
}

/// [`line()`] for sizes from `V` to `V` + `L`: the first `V` bytes and the last `L`, which may
/// overlap.
///
/// # Safety
/// As [`line()`].
#[inline(always)]
pub(super) unsafe fn pair<const V: usize, const L: usize>(
    size: usize,
    dst: *mut u8,
    src: *const u8,
    n: usize,
    ss: isize,
    ds: isize,
) {
    let (mut from, mut to, last) = (src, dst, (size - L) as isize);
    // SAFETY: both parts lie within the caller's elements.
    unsafe {
        for _ in 0..n / 2 {
            one::<V>(to, from, (0, 0));
            one::<L>(to, from, (last, last));
            (from, to) = (from.wrapping_offset(ss), to.wrapping_offset(ds));
            one::<V>(to, from, (0, 0));
            one::<L>(to, from, (last, last));
            (from, to) = (from.wrapping_offset(ss), to.wrapping_offset(ds));
        }
        if n & 1 == 1 {
            one::<V>(to, from, (0, 0));
            one::<L>(to, from, (last, last));
        }
    }
}

/// [`line()`] for 65 bytes and more: 64 at a time, of which the last may overlap those before.
///
/// # Safety
/// As [`line()`].
#[inline(always)]
pub(super) unsafe fn sixties(
    size: usize,
    dst: *mut u8,
    src: *const u8,
    n: usize,
    ss: isize,
    ds: isize,
) {
    let (mut from, mut to, last) = (src, dst, (size - 64) as isize);
    for _ in 0..n {
        let mut at = 0;
        // SAFETY: all lie within the caller's element.
        unsafe {
            while at < last {
                one::<64>(to, from, (at, at));
                at += 64;
            }
            one::<64>(to, from, (last, last));
        }
        from = from.wrapping_offset(ss);
        to = to.wrapping_offset(ds);
    }
}

/// [`line()`] for 128 bytes and more, 128 at a time, in registers of 32: reads before writes, which
/// is faster where the source is not near. Long ones to whole parts of lines, if `aligned`.
///
/// # Safety
/// As [`line()`].
#[inline(always)]
pub(super) unsafe fn hundreds(
    size: usize,
    dst: *mut u8,
    src: *const u8,
    n: usize,
    ss: isize,
    ds: isize,
    aligned: bool,
) {
    // Every second store would lie across two lines.
    const LONG: usize = 256;
    let (mut from, mut to, last) = (src, dst, (size - 64) as isize);
    for _ in 0..n {
        let skew = if aligned && size >= LONG { (to as usize).wrapping_neg() & 31 } else { 0 };
        let rest = (size - skew) & 127;
        let whole = (size - rest) as isize;
        // SAFETY: all lie within the caller's element.
        unsafe {
            if skew > 0 {
                one::<32>(to, from, (0, 0));
            }
            let mut at = skew as isize;
            while at < whole {
                one::<128>(to, from, (at, at));
                at += 128;
            }
            if rest > 64 {
                one::<64>(to, from, (whole, whole));
            }
            if rest > 0 {
                one::<64>(to, from, (last, last));
            }
        }
        from = from.wrapping_offset(ss);
        to = to.wrapping_offset(ds);
    }
}

/// A run of 32 bytes and more: 32 at a time, of which the last may overlap those before.
///
/// # Safety
/// It is readable and writable, without overlap.
#[inline(always)]
#[allow(dead_code)] // by targets without SIMD kernels
pub(super) unsafe fn thirties(size: usize, dst: *mut u8, src: *const u8) {
    let (mut at, last) = (0, (size - 32) as isize);
    // SAFETY: all lie within the caller's run.
    unsafe {
        while at < last {
            one::<32>(dst, src, (at, at));
            at += 32;
        }
        one::<32>(dst, src, (last, last));
    }
}

/// [`line()`] for any size.
///
/// # Safety
/// As [`line()`].
#[inline(always)]
pub(super) unsafe fn any(
    size: usize,
    dst: *mut u8,
    src: *const u8,
    n: usize,
    ss: isize,
    ds: isize,
) {
    let (mut from, mut to) = (src, dst);
    for _ in 0..n {
        // SAFETY: the caller's n elements, which do not overlap.
        unsafe { copy_nonoverlapping(from, to, size) };
        from = from.wrapping_offset(ss);
        to = to.wrapping_offset(ds);
    }
}

/// Elements along the inner loop before the outer one advances: what they touch stays in cache.
const BLOCK: usize = 256;

/// The inner loop's dimension, and the one around it.
fn loops(plan: &Part) -> (usize, Option<usize>) {
    let last = plan.ndim.wrapping_sub(1);
    let (beside, near) = (plan.ndim.checked_sub(2), plan.source_inner());
    if plan.dim(last).n >= 16 {
        return (last, near.or(beside));
    }
    let n = |i: Option<usize>| i.map_or(0, |i| plan.dim(i).n);
    let longest = if n(near) >= n(beside) { near } else { beside };
    match longest {
        Some(i) if plan.dim(i).n > plan.dim(last).n => (i, Some(last)),
        _ => (last, near.or(beside)),
    }
}

/// Copies a whole plan of elements of `size` bytes.
///
/// # Safety
/// As [`super::copy`]; the plan is simplified.
#[inline(never)] // a frame of its own: stacks may be small
pub(super) unsafe fn copy(plan: &Part, size: usize) {
    let (inner, outer) = loops(plan);
    let (a, b) = (plan.dim(inner), outer.map_or(Dim::NONE, |i| plan.dim(i)));
    let (n, ss, ds) = (a.n as usize, a.src as isize, a.dst as isize);
    walk(plan, set(&[Some(inner), outer]), |src_at, dst_at| {
        let (src, dst) = (plan.src.wrapping_offset(src_at), plan.dst.wrapping_offset(dst_at));
        let mut at = 0;
        while at < n {
            let count = BLOCK.min(n - at);
            let mut from = src.wrapping_offset(at as isize * ss);
            let mut to = dst.wrapping_offset(at as isize * ds);
            for _ in 0..b.n {
                // SAFETY: elements of the caller's plan.
                unsafe { line(size, to, from, count, ss, ds) };
                from = from.wrapping_offset(b.src as isize);
                to = to.wrapping_offset(b.dst as isize);
            }
            at += count;
        }
    });
}
