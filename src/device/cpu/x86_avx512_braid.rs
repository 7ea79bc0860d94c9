//! A few rows in turn, with instructions that bring the bytes of two registers into any order
//! (AVX-512 VBMI).
#![cfg(any(target_arch = "x86", target_arch = "x86_64"))]
use super::ops::Strands;
use super::x86_vectors::*;

/// See [`super::ops::Braid`].
#[cfg_attr(not(emulated), target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi"))]
#[cfg_attr(emulated, target_feature(enable = "avx2"))]
pub(super) unsafe fn braid(
    src: *const u8,
    rows: &[isize; 16],
    dst: *mut u8,
    n: usize,
    how: &Strands,
) {
    // SAFETY: the caller's promise.
    unsafe {
        if how.rows <= 8 {
            all::<false>(src, rows, dst, n, how);
        } else {
            all::<true>(src, rows, dst, n, how);
        }
    }
}

/// 16 bytes, or less, of each of four rows.
macro_rules! four {
    ($from:ident, $a:literal $b:literal $c:literal $d:literal) => {{
        let (src, rows, read) = $from;
        let row = |at: isize| _mm_maskz_loadu_epi8(read, src.wrapping_offset(at).cast());
        let four = _mm512_castsi128_si512(row(rows[$a]));
        let four = _mm512_inserti32x4::<1>(four, row(rows[$b]));
        let four = _mm512_inserti32x4::<2>(four, row(rows[$c]));
        _mm512_inserti32x4::<3>(four, row(rows[$d]))
    }};
}

/// Up to eight rows, or up to 16 if there are MORE.
#[cfg_attr(not(emulated), target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi"))]
#[cfg_attr(emulated, target_feature(enable = "avx2"))]
unsafe fn all<const MORE: bool>(
    mut src: *const u8,
    rows: &[isize; 16],
    mut dst: *mut u8,
    mut n: usize,
    how: &Strands,
) {
    let (step, column) = (how.columns * how.size, how.rows * how.size);
    let (wide, mut room) = (how.columns * column, n * column);
    // SAFETY: the caller vouches for `n` elements of every row, and for their room, of which 16
    // bytes or less of a row are read at a time; `order` has two times 64 bytes.
    unsafe {
        let order = how.order.as_ptr().cast::<__m512i>();
        let orders = [_mm512_loadu_si512(order), _mm512_loadu_si512(order.wrapping_add(1))];
        let by = _mm512_set1_epi8(step as i8);
        while n > 0 {
            let mut left = how.block.min(n);
            let read = u16::MAX >> ((left * how.size).wrapping_neg() & 15);
            let from = (src, rows, read);
            let (low, high) = (four!(from, 0 1 2 3), four!(from, 4 5 6 7));
            let (mut third, mut fourth) = (low, high);
            if MORE {
                (third, fourth) = (four!(from, 8 9 10 11), four!(from, 12 13 14 15));
            }
            (src, n) = (src.wrapping_add(left * how.size), n - left);
            let [mut first, mut second] = orders;
            while left > 0 {
                let mut turns = _mm512_permutex2var_epi8(low, first, high);
                if MORE {
                    let others = _mm512_permutex2var_epi8(third, second, fourth);
                    turns = _mm512_mask_mov_epi8(turns, how.next, others);
                    second = _mm512_add_epi8(second, by);
                }
                first = _mm512_add_epi8(first, by);
                if room >= 64 {
                    _mm512_storeu_si512(dst.cast(), turns); // the next cover what is too much
                } else {
                    let write = u64::MAX >> (wide.min(room).wrapping_neg() & 63);
                    _mm512_mask_storeu_epi8(dst.cast(), write, turns);
                }
                (dst, room) = (dst.wrapping_add(wide), room.saturating_sub(wide));
                left = left.saturating_sub(how.columns);
            }
        }
    }
}
