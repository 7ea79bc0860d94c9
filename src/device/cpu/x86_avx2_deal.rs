//! Pixels to planes with AVX2, by shuffles of 16 bytes.
#![cfg(any(target_arch = "x86", target_arch = "x86_64"))]
#[cfg(target_arch = "x86")]
use core::arch::x86::*;
#[cfg(target_arch = "x86_64")]
use core::arch::x86_64::*;
use core::ptr::copy_nonoverlapping;

use super::deal::Parts;
use super::x86_avx2::two;
use super::x86_avx2_shuffle::straight;

/// See [`super::deal::Dealt`].
#[target_feature(enable = "avx2")]
pub(super) unsafe fn deal(dst: *mut u8, src: *const u8, how: &Parts) {
    // SAFETY: the caller's promises are those of `pixels`.
    unsafe {
        match how.step {
            2 => pixels::<2>(dst, src, how),
            3 => pixels::<3>(dst, src, how),
            4 => pixels::<4>(dst, src, how),
            5 => pixels::<5>(dst, src, how),
            6 => pixels::<6>(dst, src, how),
            7 => pixels::<7>(dst, src, how),
            _ => pixels::<8>(dst, src, how),
        }
    }
}

/// Pixels of `K` elements. Two parts of every plane at a time; the last two end where a run does,
/// and may make again what is there.
#[target_feature(enable = "avx2")]
unsafe fn pixels<const K: usize>(mut dst: *mut u8, mut src: *const u8, how: &Parts) {
    let &Parts { size, n, runs, .. } = how;
    let log = size.trailing_zeros() & 3;
    let (pixel, each) = (K * size, 16 >> log);
    for _ in 0..runs.n {
        let (mut from, mut to) = (src, dst);
        // SAFETY: the caller vouches for n pixels, and as many elements of every plane.
        unsafe {
            for _ in 0..n >> (5 - log) {
                parts::<K>((to, 16), (from, 16 * K), how);
                (from, to) = (from.wrapping_add(32 * K), to.wrapping_add(32));
            }
            let left = n & (2 * each - 1);
            if left > 0 {
                let first = (n - left).min(n - each);
                let (from, to) = (src.wrapping_add(first * pixel), dst.wrapping_add(first * size));
                let by = n - each - first;
                parts::<K>((to, by * size), (from, by * pixel), how);
            }
        }
        if how.last {
            let (from, to) = (src.wrapping_add(n * pixel), dst.wrapping_add(n * size));
            for plane in 0..how.planes {
                let from = from.wrapping_add(plane * size);
                let to = to.wrapping_offset(plane as isize * how.apart);
                // SAFETY: and for the elements of one more.
                unsafe { copy_nonoverlapping(from, to, size) };
            }
        }
        src = src.wrapping_offset(runs.src as isize);
        dst = dst.wrapping_offset(runs.dst as isize);
    }
}

/// 16 bytes of every plane, and 16 others.
#[inline(always)] // functions with a target_feature cannot ask for that; its callers have it
unsafe fn parts<const K: usize>(
    (dst, to_next): (*mut u8, usize),
    (src, next): (*const u8, usize),
    how: &Parts,
) {
    // SAFETY: the caller has AVX2, and vouches for K times 16 bytes at both places, and for 16
    // bytes of every plane at both; there are K orders of 16 bytes for each.
    unsafe {
        let mut all = [_mm256_setzero_si256(); K];
        straight!(K, I => {
            all[I] = two(src.wrapping_add(16 * I), next as isize, 0, 1);
        });
        let (mut to, mut orders) = (dst, how.order.as_ptr());
        for _ in 0..how.planes {
            let mut made = _mm256_setzero_si256();
            straight!(K, I => {
                let order = _mm_loadu_si128(orders.wrapping_add(I).cast());
                let order = _mm256_broadcastsi128_si256(order);
                made = _mm256_or_si256(made, _mm256_shuffle_epi8(all[I], order));
            });
            _mm_storeu_si128(to.cast(), _mm256_castsi256_si128(made));
            let second = _mm256_extracti128_si256::<1>(made);
            _mm_storeu_si128(to.wrapping_add(to_next).cast(), second);
            (to, orders) = (to.wrapping_offset(how.apart), orders.wrapping_add(K));
        }
    }
}
