//! AVX-512 (F, BW, VL) kernels; AVX2's where those are as fast.
#![cfg(any(target_arch = "x86", target_arch = "x86_64"))]
#[cfg(target_arch = "x86")]
use core::arch::x86::*;
#[cfg(target_arch = "x86_64")]
use core::arch::x86_64::*;

use super::ops::Ops;
use super::x86_avx2;

pub(super) static OPS: Ops = Ops {
    width: 64,
    tiles: [tile1, tile2, tile4, tile8, tile16],
    flush,
    flush_shifted,
    stream,
    ..x86_avx2::TABLE
};

/// Rows `i`, `i + C`, `i + 2 C`, `i + 3 C` as the quarters of one register.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
unsafe fn four(row: *const u8, stride: isize) -> __m512i {
    let at = |i: isize| row.wrapping_offset(i * stride).cast::<__m128i>();
    // SAFETY: the caller's rows have 16 bytes each.
    unsafe {
        let low = _mm256_castsi128_si256(_mm_loadu_si128(at(0)));
        let low = _mm256_inserti128_si256::<1>(low, _mm_loadu_si128(at(1)));
        let high = _mm256_castsi128_si256(_mm_loadu_si128(at(2)));
        let high = _mm256_inserti128_si256::<1>(high, _mm_loadu_si128(at(3)));
        _mm512_inserti64x4::<1>(_mm512_castsi256_si512(low), high)
    }
}

/// As AVX2's, with a C × C matrix in each of four lanes.
macro_rules! tile {
    (
        $name:ident, $rounds:literal, $unpack_low:ident, $unpack_high:ident,
        [$($i:literal)*], [$($h:literal)*]
    ) => {
        #[target_feature(enable = "avx512f,avx512bw,avx512vl")]
        unsafe fn $name(src: *const u8, ss: isize, dst: *mut u8, ds: isize, blocks: usize) {
            const C: usize = [$($i),*].len();
            for block in 0..blocks {
                let from = src.wrapping_add(16 * block);
                let to = dst.wrapping_offset((block * C) as isize * ds);
                let row = |i: isize| from.wrapping_offset(i * ss);
                // SAFETY: the caller vouches for 4 C rows of 16 bytes.
                let mut rows = unsafe { [$(four(row($i), C as isize * ss)),*] };
                shuffle!(rows, C, $rounds, $unpack_low, $unpack_high, [$($h)*]);
                let row = |i: isize| to.wrapping_offset(i * ds).cast();
                // SAFETY: the caller vouches for C destination rows of 64 bytes.
                unsafe { $(_mm512_storeu_si512(row($i), rows[$i]);)* }
            }
        }
    };
}
tile!(
    tile1, 4, _mm512_unpacklo_epi8, _mm512_unpackhi_epi8,
    [0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15], [0 1 2 3 4 5 6 7]
);
tile!(
    tile2, 3, _mm512_unpacklo_epi16, _mm512_unpackhi_epi16,
    [0 1 2 3 4 5 6 7], [0 1 2 3]
);
tile!(
    tile4, 2, _mm512_unpacklo_epi32, _mm512_unpackhi_epi32,
    [0 1 2 3], [0 1]
);
tile!(
    tile8, 1, _mm512_unpacklo_epi64, _mm512_unpackhi_epi64,
    [0 1], [0]
);
tile!(tile16, 0, _mm512_unpacklo_epi64, _mm512_unpackhi_epi64, [0], []);

#[target_feature(enable = "avx512f")]
unsafe fn flush(buffer: *const u8, pitch: usize, dst: *mut u8, ds: isize, rows: usize) {
    for row in 0..rows {
        let from: *const __m512i = buffer.wrapping_add(row * pitch).cast();
        let to: *mut __m512i = dst.wrapping_offset(row as isize * ds).cast();
        // SAFETY: the caller vouches for a line of the buffer and of the destination, both
        // aligned to 64 bytes.
        unsafe { _mm512_stream_si512(to, _mm512_load_si512(from)) };
    }
}

#[target_feature(enable = "avx512f")]
unsafe fn flush_shifted(buffer: *mut u8, dst: *mut u8, ds: isize, rows: usize) {
    for row in 0..rows {
        let former: *mut __m512i = buffer.wrapping_add(row * 128).cast();
        let at = dst.wrapping_offset(row as isize * ds);
        let phase = at as usize & 63;
        let from: *const __m512i = former.cast::<u8>().wrapping_add(64 - phase).cast();
        let to: *mut __m512i = at.wrapping_sub(phase).cast();
        // SAFETY: a row of the buffer is 128 aligned bytes, of which `from` covers 64; the line
        // `to` is aligned, and the caller vouches for it.
        unsafe {
            _mm512_stream_si512(to, _mm512_loadu_si512(from));
            _mm512_store_si512(former, _mm512_load_si512(former.add(1)));
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
