//! Shuffles with AVX2: every k-th element of a run, k planes woven into one, and groups.
#![cfg(any(target_arch = "x86", target_arch = "x86_64"))]
#[cfg(target_arch = "x86")]
use core::arch::x86::*;
#[cfg(target_arch = "x86_64")]
use core::arch::x86_64::*;
use core::ptr::copy_nonoverlapping;

use super::ops::{Groups, Masks, Planes};
use super::x86_avx2::two;

/// The body for every `$i` below `$k`, at most 8, written out: what it keeps in arrays stays in
/// registers, and no loop's place in the code counts.
macro_rules! straight {
    ($k:ident, $i:ident => $body:block) => { straight!($k, $i, $body, [0 1 2 3 4 5 6 7]) };
    ($k:ident, $i:ident, $body:block, [$($n:literal)*]) => {
        $({
            const $i: usize = $n;
            if $i < $k $body
        })*
    };
}
pub(super) use straight;

#[target_feature(enable = "avx2")]
pub(super) unsafe fn step(dst: *mut u8, src: *const u8, results: usize, how: &Masks) -> usize {
    // SAFETY: the caller's promises are those of `steps`.
    unsafe {
        match how.loads {
            1 => steps::<1>(dst, src, results, how),
            2 => steps::<2>(dst, src, results, how),
            3 => steps::<3>(dst, src, results, how),
            4 => steps::<4>(dst, src, results, how),
            5 => steps::<5>(dst, src, results, how),
            6 => steps::<6>(dst, src, results, how),
            7 => steps::<7>(dst, src, results, how),
            _ => steps::<8>(dst, src, results, how),
        }
    }
}

#[target_feature(enable = "avx2")]
unsafe fn steps<const K: usize>(
    dst: *mut u8,
    src: *const u8,
    results: usize,
    how: &Masks,
) -> usize {
    let mut from = src.wrapping_offset(how.first);
    let mut masks = [_mm256_setzero_si256(); K];
    straight!(K, J => {
        let mask = how.masks[J].as_ptr().cast();
        // SAFETY: a mask is 16 bytes.
        masks[J] = _mm256_broadcastsi128_si256(unsafe { _mm_loadu_si128(mask) });
    });
    for pair_of_results in 0..results / 2 {
        let next = from.wrapping_offset(how.advance);
        let mut all = _mm256_setzero_si256();
        straight!(K, J => {
            // SAFETY: the caller vouches for K loads of 16 bytes at both places.
            let bytes = unsafe { two(from.wrapping_add(16 * J), how.advance, 0, 1) };
            all = _mm256_or_si256(all, _mm256_shuffle_epi8(bytes, masks[J]));
        });
        // SAFETY: the caller vouches for `results` times 16 bytes.
        unsafe { _mm256_storeu_si256(dst.wrapping_add(32 * pair_of_results).cast(), all) };
        from = next.wrapping_offset(how.advance);
    }
    results & !1
}

#[target_feature(enable = "avx2")]
pub(super) unsafe fn weave(
    dst: *mut u8,
    src: *const u8,
    plane_stride: isize,
    rounds: usize,
    planes: usize,
    masks: &[[[u8; 16]; 8]; 8],
) -> usize {
    // SAFETY: the caller's promises are those of `weaves`.
    unsafe {
        match planes {
            2 => weaves::<2>(dst, src, plane_stride, rounds, masks),
            3 => weaves::<3>(dst, src, plane_stride, rounds, masks),
            4 => weaves::<4>(dst, src, plane_stride, rounds, masks),
            5 => weaves::<5>(dst, src, plane_stride, rounds, masks),
            6 => weaves::<6>(dst, src, plane_stride, rounds, masks),
            7 => weaves::<7>(dst, src, plane_stride, rounds, masks),
            _ => weaves::<8>(dst, src, plane_stride, rounds, masks),
        }
    }
}

#[target_feature(enable = "avx2")]
unsafe fn weaves<const K: usize>(
    dst: *mut u8,
    src: *const u8,
    plane_stride: isize,
    rounds: usize,
    masks: &[[[u8; 16]; 8]; 8],
) -> usize {
    for pair_of_rounds in 0..rounds / 2 {
        let mut planes = [_mm256_setzero_si256(); K];
        straight!(K, P => {
            let from = src.wrapping_offset(P as isize * plane_stride);
            let from = from.wrapping_add(32 * pair_of_rounds);
            // SAFETY: the caller vouches for `rounds` times 16 bytes of every plane.
            planes[P] = unsafe { _mm256_loadu_si256(from.cast()) };
        });
        let to = dst.wrapping_add(32 * K * pair_of_rounds);
        // From memory in every round: hoisted, K² masks would fill the stack.
        let masks = core::hint::black_box(masks);
        for (r, result) in masks.iter().take(K).enumerate() {
            let mut all = _mm256_setzero_si256();
            straight!(K, P => {
                // SAFETY: a mask is 16 bytes.
                let mask = unsafe { _mm_loadu_si128(result[P].as_ptr().cast()) };
                let mask = _mm256_broadcastsi128_si256(mask);
                all = _mm256_or_si256(all, _mm256_shuffle_epi8(planes[P], mask));
            });
            let (low, high) = (_mm256_castsi256_si128(all), _mm256_extracti128_si256::<1>(all));
            // SAFETY: the destination has K times 16 bytes for every round.
            unsafe {
                _mm_storeu_si128(to.wrapping_add(16 * r).cast(), low);
                _mm_storeu_si128(to.wrapping_add(16 * (r + K)).cast(), high);
            }
        }
    }
    if rounds & 1 > 0 {
        let at = 16 * (rounds - 1);
        // SAFETY: the last round.
        unsafe { one::<K>(dst.wrapping_add(K * at), src.wrapping_add(at), plane_stride, masks) };
    }
    rounds
}

/// One round.
#[target_feature(enable = "avx2")]
unsafe fn one<const K: usize>(
    dst: *mut u8,
    src: *const u8,
    plane_stride: isize,
    masks: &[[[u8; 16]; 8]; 8],
) {
    let mut planes = [_mm_setzero_si128(); K];
    straight!(K, P => {
        let from = src.wrapping_offset(P as isize * plane_stride);
        // SAFETY: the caller vouches for 16 bytes of every plane.
        planes[P] = unsafe { _mm_loadu_si128(from.cast()) };
    });
    let masks = core::hint::black_box(masks);
    for (r, result) in masks.iter().take(K).enumerate() {
        let mut all = _mm_setzero_si128();
        straight!(K, P => {
            // SAFETY: a mask is 16 bytes.
            let mask = unsafe { _mm_loadu_si128(result[P].as_ptr().cast()) };
            all = _mm_or_si128(all, _mm_shuffle_epi8(planes[P], mask));
        });
        // SAFETY: the destination has K times 16 bytes.
        unsafe { _mm_storeu_si128(dst.wrapping_add(16 * r).cast(), all) };
    }
}

/// See [`super::ops::Shuffle`].
#[target_feature(enable = "avx2")]
pub(super) unsafe fn groups(dst: *mut u8, src: *const u8, n: usize, how: &Groups) {
    // SAFETY: the caller's promise.
    unsafe {
        match how.width {
            16 => windows::<1>(dst, src, n, how),
            32 => windows::<2>(dst, src, n, how),
            64 => windows::<4>(dst, src, n, how),
            _ => large(dst, src, n, how),
        }
    }
}

/// Windows of K times 16 bytes. Two rounds are written out: how fast one is depends on where in a
/// line of code it begins.
#[target_feature(enable = "avx2")]
unsafe fn windows<const K: usize>(mut dst: *mut u8, mut src: *const u8, n: usize, how: &Groups) {
    let (at_once, order) = (how.at_once, how.order.as_ptr());
    let (step, bytes) = (at_once as isize * how.strides[0], at_once * how.bytes);
    let (least, mut left) = (how.outside(), n);
    src = src.wrapping_offset(how.first);
    // SAFETY: orders are 128 bytes. The caller vouches for `n` groups and for all between their
    // bytes: windows lie within that, and what is written too much the next groups cover.
    unsafe {
        let (low, high) = (parts::<K>(order), parts::<K>(order.wrapping_add(32)));
        macro_rules! make {
            ($to:expr, $from:expr) => {
                let (to, window): (*mut u8, _) = ($to, quarters::<K>($from));
                let first = turned(window, low);
                if K == 1 {
                    _mm_storeu_si128(to.cast(), _mm256_castsi256_si128(first));
                } else {
                    _mm256_storeu_si256(to.cast(), first);
                }
                if K > 2 {
                    _mm256_storeu_si256(to.wrapping_add(32).cast(), turned(window, high));
                }
            };
            () => {
                make!(dst, src);
                (dst, src) = (dst.wrapping_add(bytes), src.wrapping_offset(step));
                left -= at_once;
            };
        }
        while left > least + at_once {
            make!();
            make!();
        }
        while left > least {
            make!();
        }
        rest(dst, src, left, how, &mut |to, from| {
            make!(to, from);
        });
    }
}

/// Windows of 128 bytes.
#[target_feature(enable = "avx2")]
unsafe fn large(mut dst: *mut u8, mut src: *const u8, mut n: usize, how: &Groups) {
    let (at_once, order, least) = (how.at_once, how.order.as_ptr(), how.outside());
    let (step, bytes) = (at_once as isize * how.strides[0], at_once * how.bytes);
    let mut orders = [[_mm256_setzero_si256(); 8]; 4];
    src = src.wrapping_offset(how.first);
    // SAFETY: as in `windows`.
    unsafe {
        for (i, orders) in orders.iter_mut().enumerate() {
            *orders = parts::<8>(order.wrapping_add(32 * i));
        }
        macro_rules! make {
            ($to:ident, $from:ident) => {
                let window = quarters::<8>($from);
                for (i, orders) in orders.iter().enumerate() {
                    let some = turned(window, *orders);
                    _mm256_storeu_si256($to.wrapping_add(32 * i).cast(), some);
                }
            };
        }
        while n > least {
            make!(dst, src);
            (dst, src) = (dst.wrapping_add(bytes), src.wrapping_offset(step));
            n -= at_once;
        }
        rest(dst, src, n, how, &mut |to, from| {
            make!(to, from);
        });
    }
}

/// Bytes of the largest window that is read and written in whole.
const WHOLE: usize = 128;

/// The last groups, of which windows would reach beyond what there is: in memory that has room for
/// whole ones.
#[inline(never)] // a frame of its own: stacks may be small
unsafe fn rest(
    mut dst: *mut u8,
    mut src: *const u8,
    mut n: usize,
    how: &Groups,
    make: &mut dyn FnMut(*mut u8, *const u8),
) {
    let (mut from, mut to) = ([0u8; WHOLE], [0u8; WHOLE]);
    let (from, to) = (from.as_mut_ptr(), to.as_mut_ptr());
    while n > 0 {
        let count = how.at_once.min(n);
        let nbytes = (count - 1) * how.strides[0].unsigned_abs() + how.span;
        // Those that follow lie before the first one, if the source runs backwards.
        let skip = if how.strides[0] < 0 { how.width - nbytes } else { 0 };
        // SAFETY: `count` groups of the caller's, which are within a window on both sides.
        unsafe {
            copy_nonoverlapping(src.wrapping_add(skip), from.wrapping_add(skip), nbytes);
            make(to, from);
            copy_nonoverlapping(to, dst, count * how.bytes);
        }
        src = src.wrapping_offset(count as isize * how.strides[0]);
        dst = dst.wrapping_add(count * how.bytes);
        n -= count;
    }
}

/// Which bytes of each of K times 16 bytes come where in 32.
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn parts<const K: usize>(order: *const u8) -> [__m256i; K] {
    // SAFETY: the caller's 32 bytes.
    let order = unsafe { _mm256_loadu_si256(order.cast()) };
    let mut parts = [order; K];
    straight!(K, I => {
        // A place that is no byte of that part has its highest bit set, which makes 0.
        let at = _mm256_sub_epi8(order, _mm256_set1_epi8(16 * I as i8));
        parts[I] = _mm256_adds_epu8(at, _mm256_set1_epi8(0x70));
    });
    parts
}

/// Each of K times 16 bytes, twice.
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn quarters<const K: usize>(from: *const u8) -> [__m256i; K] {
    let mut window = [_mm256_setzero_si256(); K];
    straight!(K, I => {
        // SAFETY: the caller's bytes.
        let part = unsafe { _mm_loadu_si128(from.wrapping_add(16 * I).cast()) };
        window[I] = _mm256_broadcastsi128_si256(part);
    });
    window
}

/// 32 bytes of K times 16, in the order of as many parts.
#[inline]
#[target_feature(enable = "avx2")]
fn turned<const K: usize>(window: [__m256i; K], orders: [__m256i; K]) -> __m256i {
    let mut all = _mm256_setzero_si256();
    straight!(K, I => {
        all = _mm256_or_si256(all, _mm256_shuffle_epi8(window[I], orders[I]));
    });
    all
}

/// See [`super::ops::Split`].
#[target_feature(enable = "avx2")]
pub(super) unsafe fn planes(dst: *mut u8, src: *const u8, n: usize, how: &Planes) {
    // SAFETY: the caller's promises.
    unsafe {
        match (how.apart & (FAR - 1), how.lines) {
            (0, 2) => alone::<2>(dst, src, n, how),
            (0, 3) => alone::<3>(dst, src, n, how),
            (0, _) => alone::<4>(dst, src, n, how),
            (_, 2) => splits::<2>(dst, src, n, how),
            (_, 3) => splits::<3>(dst, src, n, how),
            _ => splits::<4>(dst, src, n, how),
        }
    }
}

/// Planes so many bytes apart, or a multiple of it, share places: of each some lines are written
/// one after the other, for a line of each in turn takes a third longer. Of others it is faster.
const FAR: isize = 4096;
const TOGETHER: usize = 4;

/// A line of each plane at a time, in four parts, each of K times 16 bytes. Both halves of a line
/// are written one after the other: with others in between, that takes twice as long.
#[target_feature(enable = "avx2")]
unsafe fn splits<const K: usize>(mut dst: *mut u8, mut src: *const u8, n: usize, how: &Planes) {
    let part = 16 * K as isize;
    for _ in 0..n {
        let (mut low, mut high) = ([_mm256_setzero_si256(); K], [_mm256_setzero_si256(); K]);
        straight!(K, I => {
            let from = src.wrapping_add(16 * I);
            // SAFETY: the caller vouches for K lines of the source for one of each plane.
            (low[I], high[I]) = unsafe { (two(from, part, 0, 1), two(from, part, 2, 1)) };
        });
        let mut to = dst;
        for order in how.order.iter().take(how.n) {
            let (mut first, mut second) = (_mm256_setzero_si256(), _mm256_setzero_si256());
            straight!(K, I => {
                // SAFETY: an order is 64 bytes.
                let order = unsafe { _mm_loadu_si128(order.as_ptr().wrapping_add(16 * I).cast()) };
                let order = _mm256_broadcastsi128_si256(order);
                first = _mm256_or_si256(first, _mm256_shuffle_epi8(low[I], order));
                second = _mm256_or_si256(second, _mm256_shuffle_epi8(high[I], order));
            });
            // SAFETY: and for `n` lines of each plane.
            unsafe {
                _mm256_stream_si256(to.cast(), first);
                _mm256_stream_si256(to.wrapping_add(32).cast(), second);
            }
            to = to.wrapping_offset(how.apart);
        }
        (dst, src) = (dst.wrapping_add(64), src.wrapping_offset(4 * part));
    }
}

/// As [`splits`], some lines of a plane at a time.
#[target_feature(enable = "avx2")]
unsafe fn alone<const K: usize>(dst: *mut u8, src: *const u8, n: usize, how: &Planes) {
    let part = 16 * K as isize;
    for first in (0..n).step_by(TOGETHER) {
        let mut to = dst;
        for order in how.order.iter().take(how.n) {
            let mut orders = [_mm256_setzero_si256(); K];
            straight!(K, I => {
                // SAFETY: an order is 64 bytes.
                let order = unsafe { _mm_loadu_si128(order.as_ptr().wrapping_add(16 * I).cast()) };
                orders[I] = _mm256_broadcastsi128_si256(order);
            });
            for line in first..n.min(first + TOGETHER) {
                let (mut low, mut high) = (_mm256_setzero_si256(), _mm256_setzero_si256());
                straight!(K, I => {
                    let from = src.wrapping_add(64 * K * line + 16 * I);
                    // SAFETY: the caller vouches for K lines of the source for one of each plane.
                    let (a, b) = unsafe { (two(from, part, 0, 1), two(from, part, 2, 1)) };
                    low = _mm256_or_si256(low, _mm256_shuffle_epi8(a, orders[I]));
                    high = _mm256_or_si256(high, _mm256_shuffle_epi8(b, orders[I]));
                });
                let to = to.wrapping_add(64 * line);
                // SAFETY: and for `n` lines of each plane.
                unsafe {
                    _mm256_stream_si256(to.cast(), low);
                    _mm256_stream_si256(to.wrapping_add(32).cast(), high);
                }
            }
            to = to.wrapping_offset(how.apart);
        }
    }
}
