//! Groups of bytes, with instructions that bring the bytes of two registers into any order
//! (AVX-512 VBMI).
#![cfg(any(target_arch = "x86", target_arch = "x86_64"))]
#[cfg(target_arch = "x86")]
use core::arch::x86::*;
#[cfg(target_arch = "x86_64")]
use core::arch::x86_64::*;

use super::ops::Groups;

/// See [`super::ops::Shuffle`].
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi")]
pub(super) unsafe fn groups(dst: *mut u8, src: *const u8, n: usize, how: &Groups) {
    // SAFETY: the caller's promise.
    unsafe {
        match (how.width > 64, how.mask >> 64 != 0) {
            (true, true) => all::<true, true>(dst, src, n, how),
            (true, false) => all::<true, false>(dst, src, n, how),
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
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi")]
unsafe fn all<const WIDE: bool, const LONG: bool>(
    dst: *mut u8,
    src: *const u8,
    mut n: usize,
    how: &Groups,
) {
    let (mut from, mut to, mut count) = (src.wrapping_offset(how.first), dst, how.at_once);
    let [step, by] = how.strides.map(|stride| stride.wrapping_mul(count as isize));
    let (mut read, mut write) = (source(how, count), how.mask);
    // SAFETY: the caller vouches for `n` groups and for all between their bytes in the source; no
    // other byte is read or written.
    unsafe {
        let order = how.order.as_ptr().cast::<__m512i>();
        let order = [_mm512_loadu_si512(order), _mm512_loadu_si512(order.wrapping_add(1))];
        while n > 0 {
            if n < count {
                count = n;
                (read, write) = (source(how, n), write & destination(how, n));
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

/// The first `n` bytes, 1 to 128.
fn first(n: usize) -> u128 {
    u128::MAX >> (n.wrapping_neg() & 127)
}

/// The bytes of a window between those of which `count` groups, 1 or more, are made.
fn source(how: &Groups, count: usize) -> u128 {
    let n = (count - 1) * how.strides[0].unsigned_abs() + how.span;
    if how.strides[0] < 0 { first(n) << (how.width.wrapping_sub(n) & 127) } else { first(n) }
}

/// The bytes of a window from the first to the last one of `count` groups.
fn destination(how: &Groups, count: usize) -> u128 {
    first((count - 1) * how.strides[1].unsigned_abs() + how.reach)
}
