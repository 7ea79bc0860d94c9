//! Squares of elements of 3, 5 to 7 and 9 to 15 bytes, with instructions that bring the bytes of
//! two registers into any order (AVX-512 VBMI).
#![cfg(any(target_arch = "x86", target_arch = "x86_64"))]
use super::ops::Turns;
use super::x86_vectors::*;

/// How far ahead in the source's rows lines are asked for: into the second level, for the first one
/// is full of rows before these are read.
const AHEAD: usize = 192;

/// Likewise in the destination's rows, where stores wait for their lines.
const SOON: usize = 96;

/// Whole squares, and larger halves of squares, with one row in each register. Of what is left
/// over, registers have two rows: of the last columns before they are turned, of the last rows
/// then. So fewer bytes are moved, and in shorter vectors, which are less often in two lines.
#[cfg_attr(not(emulated), target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi"))]
#[cfg_attr(emulated, target_feature(enable = "avx2"))]
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

/// The first `n` bytes, 1 to 64.
fn first(n: usize) -> u64 {
    u64::MAX >> (n.wrapping_neg() & 63)
}

/// Registers of bytes, each with its number.
pub(super) static NUMBERS: [u8; 64] = {
    let mut numbers = [0; 64];
    let mut i = 0;
    while i < 64 {
        numbers[i] = i as u8;
        i += 1;
    }
    numbers
};

/// Row `i` of the source, or the next two of twice as many: the second of them where `pair` has it.
macro_rules! load {
    ($i:literal, $from:ident, $read:ident, $pair:ident) => {{
        let (src, rows) = $from;
        let row = src.wrapping_offset(*rows.wrapping_add($i * IN));
        if IN == 1 {
            _mm_prefetch::<_MM_HINT_T1>(row.wrapping_add(AHEAD).cast());
            _mm512_maskz_loadu_epi8($read, row.cast())
        } else {
            let next = src.wrapping_offset(*rows.wrapping_add($i * IN + 1));
            let row = _mm256_maskz_loadu_epi8($read as u32, row.cast());
            let next = _mm256_maskz_loadu_epi8($read as u32, next.cast());
            let (row, next) = (_mm512_castsi256_si512(row), _mm512_castsi256_si512(next));
            _mm512_permutex2var_epi8(row, $pair, next)
        }
    }};
}

/// Row `i` of the destination, or two likewise, if they are among the `wide`.
macro_rules! store {
    ($i:literal, $to:ident, $wide:ident, $write:ident, $pair:ident, $row:expr, $asks:ident) => {
        let (dst, columns) = $to;
        let place = |i: usize| dst.wrapping_offset(*columns.wrapping_add(i));
        if OUT == 1 && $i < $wide {
            if $asks {
                _mm_prefetch::<_MM_HINT_T0>(place($i).wrapping_add(SOON).cast());
            }
            _mm512_mask_storeu_epi8(place($i).cast(), $write, $row);
        }
        if OUT == 2 && 2 * $i < $wide {
            let row = _mm512_castsi512_si256($row);
            _mm256_mask_storeu_epi8(place(2 * $i).cast(), $write as u32, row);
        }
        if OUT == 2 && 2 * $i + 1 < $wide {
            let row = _mm512_castsi512_si256(_mm512_permutexvar_epi8($pair, $row));
            _mm256_mask_storeu_epi8(place(2 * $i + 1).cast(), $write as u32, row);
        }
    };
}

/// Squares in C registers, of which each has IN rows of the source, and then OUT of the
/// destination; and what there is of others. No byte of other elements is read or written.
macro_rules! squares {
    ($name:ident, [$($i:literal)*], [$($h:literal)*]) => {
        #[cfg_attr(not(emulated), target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi"))]
        #[cfg_attr(emulated, target_feature(enable = "avx2"))]
        unsafe fn $name<const IN: usize, const OUT: usize>(
            (src, rows): (*const u8, *const isize),
            (dst, columns): (*mut u8, *const isize),
            (n_dst, n_src): (usize, usize),
            how: &Turns,
        ) {
            const C: usize = [$($i),*].len();
            let asks = how.asks;
            // SAFETY: the caller vouches for the elements and the offsets.
            unsafe {
                let all = |from: &[u8]| _mm512_loadu_si512(from.as_ptr().cast());
                let (low, high, numbers) = (all(&how.low), all(&how.high), all(&NUMBERS));
                let low = |a, b| _mm512_permutex2var_epi8(a, low, b);
                let high = |a, b| _mm512_permutex2var_epi8(a, high, b);
                // Two rows of a register: from their own registers, and the second to its own.
                let half = _mm512_set1_epi8((C * how.size) as i8);
                let split = _mm512_add_epi8(numbers, half);
                let next = _mm512_sub_epi8(_mm512_add_epi8(numbers, _mm512_set1_epi8(64)), half);
                let join = _mm512_mask_mov_epi8(next, first(C * how.size), numbers);
                let (mut s, mut d) = (0, 0);
                while s < n_src {
                    let (wide, src) = ((C * OUT).min(n_src - s), src.wrapping_add(s * how.size));
                    let (read, columns) = (first(wide * how.size), columns.wrapping_add(s));
                    while d < n_dst {
                        let write = first((C * IN).min(n_dst - d) * how.size);
                        let from = (src, rows.wrapping_add(d));
                        let to = (dst.wrapping_add(d * how.size), columns);
                        let mut all = [$(load!($i, from, read, join)),*];
                        shuffle!(all, C, (C * IN).trailing_zeros(), low, high, [$($h)*]);
                        $(store!($i, to, wide, write, split, all[$i], asks);)*
                        d += C * IN;
                    }
                    (s, d) = (s + C * OUT, 0);
                }
            }
        }
    };
}
squares!(squares16, [0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15], [0 1 2 3 4 5 6 7]);
squares!(squares8, [0 1 2 3 4 5 6 7], [0 1 2 3]);
squares!(squares4, [0 1 2 3], [0 1]);
