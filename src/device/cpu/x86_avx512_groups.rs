//! Groups of bytes, with instructions that bring the bytes of two registers into any order
//! (AVX-512 VBMI).
#![cfg(any(target_arch = "x86", target_arch = "x86_64"))]
use super::ops::{Bytes, Groups};
use super::x86_vectors::*;

/// See [`super::ops::Shuffle`].
#[cfg_attr(not(emulated), target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi"))]
#[cfg_attr(emulated, target_feature(enable = "avx2"))]
pub(super) unsafe fn groups(dst: *mut u8, src: *const u8, n: usize, how: &Groups) {
    // SAFETY: the caller's promise.
    unsafe {
        match (how.width, how.mask[0] >> 64 > 0) {
            (129.., _) => large(dst, src, n, how),
            (65.., true) => all::<true, true>(dst, src, n, how),
            (65.., false) => all::<true, false>(dst, src, n, how),
            _ => all::<false, false>(dst, src, n, how),
        }
    }
}

/// The bytes of a window that are in a mask.
macro_rules! load {
    ($from:ident, $mask:ident) => {{
        let low = _mm512_maskz_loadu_epi8($mask as u64, $from.cast());
        let high = ($mask >> 64) as u64;
        let next = $from.wrapping_add(64).cast();
        [low, if WIDE { _mm512_maskz_loadu_epi8(high, next) } else { low }]
    }};
}

/// A window's bytes in another order.
macro_rules! turn {
    ($window:ident, $order:expr) => {{
        let [low, high] = $window;
        if WIDE {
            _mm512_permutex2var_epi8(low, $order, high)
        } else {
            _mm512_permutexvar_epi8($order, low)
        }
    }};
}

/// Groups from windows of one register, or of two if they are WIDE; and to one, or to two if those
/// are so LONG.
#[cfg_attr(not(emulated), target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi"))]
#[cfg_attr(emulated, target_feature(enable = "avx2"))]
unsafe fn all<const WIDE: bool, const LONG: bool>(
    dst: *mut u8,
    src: *const u8,
    mut n: usize,
    how: &Groups,
) {
    let (mut from, mut to, mut count) = (src.wrapping_offset(how.first), dst, how.at_once);
    let [step, by] = how.strides.map(|stride| stride.wrapping_mul(count as isize));
    let (mut read, [mut write, _]) = (source(how, count), how.mask);
    // SAFETY: the caller vouches for `n` groups and for all between their bytes in the source; no
    // other byte is read or written.
    unsafe {
        let order = how.order.as_ptr().cast::<__m512i>();
        let order = [_mm512_loadu_si512(order), _mm512_loadu_si512(order.wrapping_add(1))];
        while n > 0 {
            if n < count {
                count = n;
                (read, write) = (source(how, n), write & first(written(how, n)));
            }
            let window = load!(from, read);
            _mm512_mask_storeu_epi8(to.cast(), write as u64, turn!(window, order[0]));
            if LONG {
                let (to, write) = (to.wrapping_add(64), (write >> 64) as u64);
                _mm512_mask_storeu_epi8(to.cast(), write, turn!(window, order[1]));
            }
            (from, to) = (from.wrapping_offset(step), to.wrapping_offset(by));
            n -= count;
        }
    }
}

/// Groups from windows of three or four registers, to as many: of each line all bytes that may be
/// in it are taken from the first two, and from the others.
#[inline(never)] // or its registers are saved for all
#[cfg_attr(not(emulated), target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi"))]
#[cfg_attr(emulated, target_feature(enable = "avx2"))]
unsafe fn large(dst: *mut u8, src: *const u8, mut n: usize, how: &Groups) {
    let (mut from, mut to, mut count) = (src.wrapping_offset(how.first), dst, how.at_once);
    let [step, by] = how.strides.map(|stride| stride.wrapping_mul(count as isize));
    let (mut read, mut write) = (sources(how, count), how.mask);
    // SAFETY: as in `all`.
    unsafe {
        let order = |i: usize| _mm512_loadu_si512(how.order.as_ptr().wrapping_add(64 * i).cast());
        let (first, second, third, fourth) = (order(0), order(1), order(2), order(3));
        macro_rules! line {
            ($at:literal, $order:ident, $mask:expr, $a:ident $b:ident $c:ident $d:ident) => {{
                let low = _mm512_permutex2var_epi8($a, $order, $b);
                let high = _mm512_permutex2var_epi8($c, $order, $d);
                let line = _mm512_mask_mov_epi8(low, _mm512_movepi8_mask($order), high);
                _mm512_mask_storeu_epi8(to.wrapping_add($at).cast(), $mask, line);
            }};
        }
        while n > 0 {
            if n < count {
                count = n;
                let [low, high] = below(written(how, n));
                (read, write) = (sources(how, n), [write[0] & low, write[1] & high]);
            }
            let part = |i: usize, read| _mm512_maskz_loadu_epi8(read, from.wrapping_add(i).cast());
            let (a, b) = (part(0, read[0] as u64), part(64, (read[0] >> 64) as u64));
            let (c, last) = (part(128, read[1] as u64), (read[1] >> 64) as u64);
            let d = if last > 0 { part(192, last) } else { c };
            line!(0, first, write[0] as u64, a b c d);
            line!(64, second, (write[0] >> 64) as u64, a b c d);
            line!(128, third, write[1] as u64, a b c d);
            let last = (write[1] >> 64) as u64;
            if last > 0 {
                line!(192, fourth, last, a b c d);
            }
            (from, to) = (from.wrapping_offset(step), to.wrapping_offset(by));
            n -= count;
        }
    }
}

/// The first `n` bytes, 1 to 128.
fn first(n: usize) -> u128 {
    u128::MAX >> (n.wrapping_neg() & 127)
}

/// Bytes of the source from the first to the last one of `count` groups, 1 or more.
fn between(how: &Groups, count: usize) -> usize {
    (count - 1) * how.strides[0].unsigned_abs() + how.span
}

/// Likewise of the destination.
fn written(how: &Groups, count: usize) -> usize {
    (count - 1) * how.strides[1].unsigned_abs() + how.reach
}

/// The bytes of a window between those of which `count` groups are made.
fn source(how: &Groups, count: usize) -> u128 {
    let n = between(how, count);
    if how.strides[0] < 0 { first(n) << (how.width.wrapping_sub(n) & 127) } else { first(n) }
}

/// The first `n` bytes of a large window.
fn below(n: usize) -> Bytes {
    match n {
        ..=128 => [first(n), 0],
        _ => [u128::MAX, first(n - 128)],
    }
}

/// As [`source`], of a large one.
fn sources(how: &Groups, count: usize) -> Bytes {
    let n = between(how, count);
    match how.width.checked_sub(n) {
        Some(before @ 1..) if how.strides[0] < 0 => below(before).map(|before| !before),
        _ => below(n),
    }
}
