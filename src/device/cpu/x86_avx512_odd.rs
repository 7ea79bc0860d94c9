//! Squares of elements of 3, 5 to 7 and 9 to 15 bytes, with instructions that bring the bytes of two
//! registers into any order (AVX-512 VBMI).
#![cfg(any(target_arch = "x86", target_arch = "x86_64"))]
#[cfg(target_arch = "x86")]
use core::arch::x86::*;
#[cfg(target_arch = "x86_64")]
use core::arch::x86_64::*;

use super::ops::Turns;

/// How far ahead in the source's rows lines are asked for.
const AHEAD: usize = 512;

/// Whole squares, one row in each register. Of what is left over, if it is half a square or less,
/// registers have two rows in one, before they are turned (the last columns) or then (the last
/// rows).
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi")]
pub(super) unsafe fn squares(
    (src, rows): (*const u8, &[isize]),
    (dst, columns): (*mut u8, &[isize]),
    (n_dst, n_src): (usize, usize),
    how: &Turns,
) {
    let (side, rows, columns) = (1 << how.log, rows.as_ptr(), columns.as_ptr());
    let whole = |n: usize| if n & (side - 1) > side / 2 { n } else { n & !(side - 1) };
    let (d, s) = if side == 4 { (n_dst, n_src) } else { (whole(n_dst), whole(n_src)) };
    let (from, to) = ((src, rows), (dst, columns));
    let below = ((src, rows.wrapping_add(d)), (dst.wrapping_add(d * how.size), columns));
    let beside = ((src.wrapping_add(s * how.size), rows), (dst, columns.wrapping_add(s)));
    // SAFETY: parts of what the caller vouches for.
    unsafe {
        match side {
            4 => squares4::<1, 1>(from, to, (d, s), how),
            8 => {
                squares8::<1, 1>(from, to, (d, s), how);
                squares4::<1, 2>(below.0, below.1, (n_dst - d, s), how);
                squares4::<2, 1>(beside.0, beside.1, (n_dst, n_src - s), how);
            }
            _ => {
                squares16::<1, 1>(from, to, (d, s), how);
                squares8::<1, 2>(below.0, below.1, (n_dst - d, s), how);
                squares8::<2, 1>(beside.0, beside.1, (n_dst, n_src - s), how);
            }
        }
    }
}

static EACH: [u8; 64] = {
    let mut each = [0; 64];
    let mut i = 0;
    while i < 64 {
        each[i] = i as u8;
        i += 1;
    }
    each
};

/// The bytes of `n` elements.
fn bytes(n: usize, size: usize) -> u64 {
    u64::MAX >> ((n * size).wrapping_neg() & 63)
}

/// Squares in C registers, of which each has IN rows of the source, and then OUT of the
/// destination; and what is left over. No byte of other elements is read or written.
macro_rules! squares {
    ($name:ident, [$($i:literal)*], [$($h:literal)*]) => {
        #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi")]
        unsafe fn $name<const IN: usize, const OUT: usize>(
            (src, rows): (*const u8, *const isize),
            (dst, columns): (*mut u8, *const isize),
            (n_dst, n_src): (usize, usize),
            how: &Turns,
        ) {
            const C: usize = [$($i),*].len();
            // SAFETY: the caller vouches for the elements and the offsets.
            unsafe {
                let each = _mm512_loadu_si512(EACH.as_ptr().cast());
                let low = _mm512_loadu_si512(how.low.as_ptr().cast());
                let high = _mm512_loadu_si512(how.high.as_ptr().cast());
                let low = |a, b| _mm512_permutex2var_epi8(a, low, b);
                let high = |a, b| _mm512_permutex2var_epi8(a, high, b);
                // Two halves of registers next to one another, and the second of them.
                let at = _mm512_set1_epi8((C * how.size) as i8);
                let split = _mm512_add_epi8(each, at);
                let join = _mm512_mask_sub_epi8(each, !bytes(C, how.size), _mm512_add_epi8(each, _mm512_set1_epi8(64)), at);
                let mut s = 0;
                while s < n_src {
                    let wide = (C * OUT).min(n_src - s);
                    let (src, read) = (src.wrapping_add(s * how.size), bytes(wide, how.size));
                    let columns = columns.wrapping_add(s);
                    let mut d = 0;
                    while d < n_dst {
                        let write = bytes((C * IN).min(n_dst - d), how.size);
                        let (dst, rows) = (dst.wrapping_add(d * how.size), rows.wrapping_add(d));
                        let mut all = [$({
                            let row = src.wrapping_offset(*rows.wrapping_add($i * IN));
                            if IN == 1 {
                                _mm_prefetch::<_MM_HINT_T0>(row.wrapping_add(AHEAD).cast());
                                _mm512_maskz_loadu_epi8(read, row.cast())
                            } else {
                                let next = src.wrapping_offset(*rows.wrapping_add($i * IN + 1));
                                let row = _mm256_maskz_loadu_epi8(read as u32, row.cast());
                                let next = _mm256_maskz_loadu_epi8(read as u32, next.cast());
                                let row = _mm512_castsi256_si512(row);
                                _mm512_permutex2var_epi8(row, join, _mm512_castsi256_si512(next))
                            }
                        }),*];
                        shuffle!(all, C, (C * IN).trailing_zeros(), low, high, [$($h)*]);
                        $(
                            if OUT == 1 && $i < wide {
                                let to = dst.wrapping_offset(*columns.wrapping_add($i));
                                _mm512_mask_storeu_epi8(to.cast(), write, all[$i]);
                            }
                            if OUT == 2 && $i * 2 < wide {
                                let to = dst.wrapping_offset(*columns.wrapping_add($i * 2));
                                let row = _mm512_castsi512_si256(all[$i]);
                                _mm256_mask_storeu_epi8(to.cast(), write as u32, row);
                            }
                            if OUT == 2 && $i * 2 + 1 < wide {
                                let to = dst.wrapping_offset(*columns.wrapping_add($i * 2 + 1));
                                let row = _mm512_permutexvar_epi8(split, all[$i]);
                                let row = _mm512_castsi512_si256(row);
                                _mm256_mask_storeu_epi8(to.cast(), write as u32, row);
                            }
                        )*
                        d += C * IN;
                    }
                    s += C * OUT;
                }
            }
        }
    };
}
squares!(squares16, [0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15], [0 1 2 3 4 5 6 7]);
squares!(squares8, [0 1 2 3 4 5 6 7], [0 1 2 3]);
squares!(squares4, [0 1 2 3], [0 1]);
