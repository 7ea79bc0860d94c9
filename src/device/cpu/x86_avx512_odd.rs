//! Squares of elements of 3, 5 to 7 and 9 to 15 bytes, with instructions that bring the bytes of a
//! whole register into any order (AVX-512 VBMI).
#![cfg(any(target_arch = "x86", target_arch = "x86_64"))]
#[cfg(target_arch = "x86")]
use core::arch::x86::*;
#[cfg(target_arch = "x86_64")]
use core::arch::x86_64::*;

use super::ops::{Ops, Spread};
use super::x86_avx512::{TABLE, far, near};

pub(super) static OPS: Ops = Ops { squares: Some(squares), ..TABLE };

/// How far ahead in the source's rows lines are asked for.
const AHEAD: usize = 512;

#[target_feature(enable = "avx512f,avx512bw,avx512vbmi")]
unsafe fn squares(
    from: (*const u8, &[isize]),
    to: (*mut u8, &[isize]),
    n: (usize, usize),
    how: &Spread,
) {
    // SAFETY: the caller's promise.
    unsafe {
        match how.side {
            16 => squares4(from, to, n, how),
            8 => squares8(from, to, n, how),
            _ => squares16(from, to, n, how),
        }
    }
}

/// The first `n` bytes, 1 to 64.
#[inline]
fn bytes(n: usize) -> u64 {
    u64::MAX >> (n.wrapping_neg() & 63)
}

/// Squares of 4 C rows of 4 C elements, and what is left over: of elements that do not count, no
/// byte is read or written.
macro_rules! squares {
    (
        $name:ident, $rounds:literal, $unpack_low:ident, $unpack_high:ident,
        [$($i:literal)*], [$($h:literal)*]
    ) => {
        #[target_feature(enable = "avx512f,avx512bw,avx512vbmi")]
        unsafe fn $name(
            (src, rows): (*const u8, &[isize]),
            (dst, columns): (*mut u8, &[isize]),
            (n_dst, n_src): (usize, usize),
            how: &Spread,
        ) {
            const C: usize = [$($i),*].len();
            // SAFETY: the caller vouches for the elements, and for offsets of whole groups of C.
            unsafe {
                let spread = _mm512_loadu_si512(how.spread.as_ptr().cast());
                let close = _mm512_loadu_si512(how.close.as_ptr().cast());
                let mut s = 0;
                while s < n_src {
                    let wide = (4 * C).min(n_src - s);
                    let (read, src) = (bytes(wide * how.size), src.wrapping_add(s * how.size));
                    let columns = columns.as_ptr().wrapping_add(s);
                    let mut d = 0;
                    while d < n_dst {
                        let high = (4 * C).min(n_dst - d);
                        let (write, dst) = (bytes(high * how.size), dst.wrapping_add(d * how.size));
                        let rows = rows.as_ptr().wrapping_add(d);
                        let load = |i: usize| {
                            let row = src.wrapping_offset(*rows.wrapping_add(i));
                            _mm_prefetch::<_MM_HINT_T0>(row.wrapping_add(AHEAD).cast());
                            let row = _mm512_maskz_loadu_epi8(read, row.cast());
                            _mm512_permutexvar_epi8(spread, row)
                        };
                        let mut first = [$(load($i)),*];
                        shuffle!(first, C, $rounds, $unpack_low, $unpack_high, [$($h)*]);
                        let (mut second, mut third, mut fourth) = (first, first, first);
                        if high > C {
                            second = [$(load(C + $i)),*];
                            shuffle!(second, C, $rounds, $unpack_low, $unpack_high, [$($h)*]);
                        }
                        if high > 2 * C {
                            third = [$(load(2 * C + $i)),*];
                            shuffle!(third, C, $rounds, $unpack_low, $unpack_high, [$($h)*]);
                        }
                        if high > 3 * C {
                            fourth = [$(load(3 * C + $i)),*];
                            shuffle!(fourth, C, $rounds, $unpack_low, $unpack_high, [$($h)*]);
                        }
                        let store = |i: usize, row: __m512i| {
                            if i < wide {
                                let to = dst.wrapping_offset(*columns.wrapping_add(i));
                                let row = _mm512_permutexvar_epi8(close, row);
                                _mm512_mask_storeu_epi8(to.cast(), write, row);
                            }
                        };
                        $(
                            let quarters = [first[$i], second[$i], third[$i], fourth[$i]];
                            let [a, b] = near(quarters);
                            store($i, a);
                            store(C + $i, b);
                            if wide > 2 * C {
                                let [c, d] = far(quarters);
                                store(2 * C + $i, c);
                                store(3 * C + $i, d);
                            }
                        )*
                        d += 4 * C;
                    }
                    s += 4 * C;
                }
            }
        }
    };
}
squares!(
    squares4, 2, _mm512_unpacklo_epi32, _mm512_unpackhi_epi32,
    [0 1 2 3], [0 1]
);
squares!(
    squares8, 1, _mm512_unpacklo_epi64, _mm512_unpackhi_epi64,
    [0 1], [0]
);
squares!(squares16, 0, _mm512_unpacklo_epi64, _mm512_unpackhi_epi64, [0], []);
