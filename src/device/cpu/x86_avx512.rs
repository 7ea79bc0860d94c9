//! AVX-512 (F, BW, VL) kernels; AVX2's where those are as fast.
#![cfg(any(target_arch = "x86", target_arch = "x86_64"))]
#[cfg(target_arch = "x86")]
use core::arch::x86::*;
#[cfg(target_arch = "x86_64")]
use core::arch::x86_64::*;

use super::ops::Ops;
use super::x86_avx2;

pub(super) static OPS: Ops = Ops { square: Some(square), stream, ..x86_avx2::TABLE };

/// Turns C × C matrices of elements: one in each of the four lanes of C rows of 64 bytes, four
/// times over. Row `r` of group `g` goes to row `g` C + `r`.
macro_rules! lanes {
    (
        $name:ident, $rounds:literal, $unpack_low:ident, $unpack_high:ident,
        [$($i:literal)*], [$($h:literal)*]
    ) => {
        #[target_feature(enable = "avx512f,avx512bw")]
        unsafe fn $name((src, ss): (*const u8, isize), (half, by): (*mut u8, isize)) {
            const C: usize = [$($i),*].len();
            for group in 0..4 {
                let from = src.wrapping_offset((group * C) as isize * ss);
                let row = |i: isize| from.wrapping_offset(i * ss).cast();
                // SAFETY: the caller vouches for 4 C rows of 64 bytes.
                let mut rows = unsafe {
                    [$(_mm512_loadu_si512(row($i))),*]
                };
                shuffle!(rows, C, $rounds, $unpack_low, $unpack_high, [$($h)*]);
                let to = half.wrapping_offset((group * C) as isize * by);
                let row = |i: isize| to.wrapping_offset(i * by).cast();
                // SAFETY: the caller vouches for 4 C rows of 64 bytes.
                unsafe { $(_mm512_storeu_si512(row($i), rows[$i]);)* }
            }
        }
    };
}
lanes!(
    lanes1, 4, _mm512_unpacklo_epi8, _mm512_unpackhi_epi8,
    [0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15], [0 1 2 3 4 5 6 7]
);
lanes!(
    lanes2, 3, _mm512_unpacklo_epi16, _mm512_unpackhi_epi16,
    [0 1 2 3 4 5 6 7], [0 1 2 3]
);
lanes!(
    lanes4, 2, _mm512_unpacklo_epi32, _mm512_unpackhi_epi32,
    [0 1 2 3], [0 1]
);
lanes!(
    lanes8, 1, _mm512_unpacklo_epi64, _mm512_unpackhi_epi64,
    [0 1], [0]
);

/// Turns a 4 × 4 matrix of 16-byte quarters.
#[inline]
#[target_feature(enable = "avx512f")]
fn quarters([a, b, c, d]: [__m512i; 4]) -> [__m512i; 4] {
    let (low, high) = (_mm512_shuffle_i64x2::<0x44>(a, b), _mm512_shuffle_i64x2::<0x44>(c, d));
    let (first, second) =
        (_mm512_shuffle_i64x2::<0x88>(low, high), _mm512_shuffle_i64x2::<0xdd>(low, high));
    let (low, high) = (_mm512_shuffle_i64x2::<0xee>(a, b), _mm512_shuffle_i64x2::<0xee>(c, d));
    let (third, fourth) =
        (_mm512_shuffle_i64x2::<0x88>(low, high), _mm512_shuffle_i64x2::<0xdd>(low, high));
    [first, second, third, fourth]
}

/// The second half: the 16-byte quarters of rows `i`, `i` + C, `i` + 2 C, `i` + 3 C are a 4 × 4
/// matrix, and its rows are destination rows of the same numbers.
#[target_feature(enable = "avx512f,avx512bw")]
unsafe fn square(
    log: u32,
    src: (*const u8, isize),
    (dst, ds): (*mut u8, isize),
    half: (*mut u8, isize),
    streams: bool,
) {
    let c = 16isize >> log;
    // Elements of 16 bytes are whole quarters: there is no first half.
    let half = if log == 4 { (src.0.cast_mut(), src.1) } else { half };
    // SAFETY: the caller vouches for the square on both sides and for the place between, and for
    // aligned lines if they are to go past the caches.
    unsafe {
        match log {
            0 => lanes1(src, half),
            1 => lanes2(src, half),
            2 => lanes4(src, half),
            3 => lanes8(src, half),
            _ => {}
        }
        for i in 0..c {
            let from = |l: isize| half.0.wrapping_offset((i + l * c) * half.1).cast();
            let row = |l: isize| dst.wrapping_offset((i + l * c) * ds).cast::<__m512i>();
            let [a, b, c, d] = quarters([
                _mm512_loadu_si512(from(0)),
                _mm512_loadu_si512(from(1)),
                _mm512_loadu_si512(from(2)),
                _mm512_loadu_si512(from(3)),
            ]);
            if streams {
                _mm512_stream_si512(row(0), a);
                _mm512_stream_si512(row(1), b);
                _mm512_stream_si512(row(2), c);
                _mm512_stream_si512(row(3), d);
            } else {
                _mm512_storeu_si512(row(0), a);
                _mm512_storeu_si512(row(1), b);
                _mm512_storeu_si512(row(2), c);
                _mm512_storeu_si512(row(3), d);
            }
        }
    }
}

#[target_feature(enable = "avx512f")]
unsafe fn stream(dst: *mut u8, src: *const u8, lines: usize) {
    for line in 0..lines {
        let from: *const __m512i = src.wrapping_add(64 * line).cast();
        let to: *mut __m512i = dst.wrapping_add(64 * line).cast();
        // SAFETY: the caller vouches for `lines` lines; a prefetch touches nothing.
        unsafe {
            _mm_prefetch::<_MM_HINT_T0>(from.wrapping_add(16).cast());
            _mm512_stream_si512(to, _mm512_loadu_si512(from));
        }
    }
}
