//! The AVX2 kernel of packed 6-bit elements.
#![cfg(any(target_arch = "x86", target_arch = "x86_64"))]
#[cfg(target_arch = "x86")]
use core::arch::x86::*;
#[cfg(target_arch = "x86_64")]
use core::arch::x86_64::*;

use super::x86_avx2::two;

/// Which byte of a row becomes which: to words of three bytes, and back.
static SPREAD: [u8; 16] = [0, 1, 2, 0x80, 3, 4, 5, 0x80, 6, 7, 8, 0x80, 9, 10, 11, 0x80];
static CLOSE: [u8; 16] = [0, 1, 2, 4, 5, 6, 8, 9, 10, 12, 13, 14, 0x80, 0x80, 0x80, 0x80];

/// Exchanges the bits `mask` of `b`'s words with those that lie `BY` bits above them in `a`'s.
#[inline]
#[target_feature(enable = "avx2")]
fn swap<const BY: i32>(a: __m256i, b: __m256i, mask: i32) -> (__m256i, __m256i) {
    let differ = _mm256_xor_si256(_mm256_srli_epi32::<BY>(a), b);
    let differ = _mm256_and_si256(differ, _mm256_set1_epi32(mask));
    let back = _mm256_slli_epi32::<BY>(differ);
    (_mm256_xor_si256(a, back), _mm256_xor_si256(b, differ))
}

/// In the lanes: rows 0 to 15 and 16 to 31, four elements in each word.
#[target_feature(enable = "avx2")]
pub(super) unsafe fn sixes(src: *const u8, apart: isize, lead: usize, dst: *mut u8, pitch: usize) {
    // SAFETY: a mask is 16 bytes; the caller vouches for the rows on both sides.
    unsafe {
        let mask =
            |bytes: &[u8; 16]| _mm256_broadcastsi128_si256(_mm_loadu_si128(bytes.as_ptr().cast()));
        let (spread, close) = (mask(&SPREAD), mask(&CLOSE));
        let spread = _mm256_add_epi8(spread, _mm256_set1_epi8(lead as i8));
        let join = _mm256_setr_epi32(0, 1, 2, 4, 5, 6, 7, 7);
        let mut fours = [[_mm256_setzero_si256(); 4]; 4];
        for (i, four) in fours.iter_mut().enumerate() {
            let src = src.wrapping_offset(apart * 4 * i as isize);
            let row = |i: usize| _mm256_shuffle_epi8(two(src, apart, i, 16), spread);
            let (a, c) = swap::<12>(row(0), row(2), 0xfff);
            let (b, d) = swap::<12>(row(1), row(3), 0xfff);
            let ((a, b), (c, d)) = (swap::<6>(a, b, 0x3f03f), swap::<6>(c, d, 0x3f03f));
            *four = [a, b, c, d];
        }
        for i in 0..4 {
            let four =
                |k: usize| _mm256_loadu_si256(fours.as_ptr().cast::<__m256i>().add(4 * k + i));
            let (a, b, c, d) = (four(0), four(1), four(2), four(3));
            let (low, high) = (_mm256_unpacklo_epi32(a, b), _mm256_unpackhi_epi32(a, b));
            let (lower, higher) = (_mm256_unpacklo_epi32(c, d), _mm256_unpackhi_epi32(c, d));
            let put = |k: usize, row: __m256i| {
                let row = _mm256_permutevar8x32_epi32(_mm256_shuffle_epi8(row, close), join);
                let to = dst.wrapping_add((4 * k + i) * pitch);
                _mm_storeu_si128(to.cast(), _mm256_castsi256_si128(row));
                let rest = _mm256_extracti128_si256::<1>(row);
                _mm_storel_epi64(to.wrapping_add(16).cast(), rest);
            };
            put(0, _mm256_unpacklo_epi64(low, lower));
            put(1, _mm256_unpackhi_epi64(low, lower));
            put(2, _mm256_unpacklo_epi64(high, higher));
            put(3, _mm256_unpackhi_epi64(high, higher));
        }
    }
}
