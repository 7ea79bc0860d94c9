//! Elements that lie in turn to planes, with instructions that bring the bytes of two registers
//! into any order (AVX-512 VBMI).
#![cfg(any(target_arch = "x86", target_arch = "x86_64"))]
use super::ops::Planes;
use super::x86_vectors::*;

/// See [`super::ops::Split`].
#[cfg_attr(not(emulated), target_feature(enable = "avx512f,avx512bw,avx512vbmi"))]
#[cfg_attr(emulated, target_feature(enable = "avx2"))]
pub(super) unsafe fn planes(dst: *mut u8, src: *const u8, n: usize, how: &Planes) {
    // SAFETY: the caller's promise.
    unsafe {
        if how.lines <= 2 {
            pairs::<1>(dst, src, n, how);
        } else {
            pairs::<2>(dst, src, n, how);
        }
    }
}

/// From so many times two lines, of which the last may be one line twice.
#[cfg_attr(not(emulated), target_feature(enable = "avx512f,avx512bw,avx512vbmi"))]
#[cfg_attr(emulated, target_feature(enable = "avx2"))]
unsafe fn pairs<const PAIRS: usize>(mut dst: *mut u8, mut src: *const u8, n: usize, how: &Planes) {
    let last = how.lines.wrapping_sub(1);
    // SAFETY: the caller vouches for `n` times as many lines, and for `n` of each plane.
    unsafe {
        for _ in 0..n {
            let line = |i: usize| _mm512_loadu_si512(src.wrapping_add(64 * i.min(last)).cast());
            let pairs: [_; PAIRS] = core::array::from_fn(|i| [line(2 * i), line(2 * i + 1)]);
            let mut to = dst;
            for (order, &mask) in how.order.iter().zip(&how.masks).take(how.n) {
                let order = _mm512_loadu_si512(order.as_ptr().cast());
                let turn = |i: usize| {
                    let [low, high] = pairs[i];
                    _mm512_permutex2var_epi8(low, order, high)
                };
                let mut line = turn(0);
                if PAIRS > 1 {
                    line = _mm512_mask_mov_epi8(line, mask, turn(1));
                }
                _mm512_stream_si512(to.cast(), line);
                to = to.wrapping_offset(how.apart);
            }
            (dst, src) = (dst.wrapping_add(64), src.wrapping_add(64 * how.lines));
        }
    }
}
