//! The CPU copy engine: any strided layout to any other, at the memory's speed.
//!
//! ```text
//! copy ─ Plan::simplify ─ threads (parts of one dimension) ─ engine (way, Plan::kernel)
//!                                                               │
//!        stream    contiguous pieces, past the caches           ├ Memcpy, long Rows
//!        lines     destination rows, through a 4 KiB buffer     ├ Rows Step Gather Interleave
//!        fills     one element for whole rows                   ├ Fill
//!        slabs     slab by slab in the caches, and past them    ├ some of Transpose, Fill, ...
//!        transpose squares and tiles                            ├ Transpose
//!        windows   or windows in the buffer                     ├ some of Transpose
//!        staged    or by copies of its rows, likewise           ├ some of Transpose
//!        straight  or element by element to whole lines         ├ some of Transpose
//!        groups    a few bytes in any order                     ├ some of Rows, Fill, Step, ...
//!        planes    pixels taken apart, past the caches          ├ some of Step
//!        deal      pixels to planes and back, in registers      ├ some of Step, Interleave, ...
//!        small     squares or tiles alone: small faces          ├ some of Transpose, Interleave
//!        odd       squares of any size, or tiles                ├ some of Rows, uneven Transposes
//!        odd_staged likewise, by copies of rows, past the caches ├ some of Rows
//!        rows      row by row, without tiles                    ├ some of Transpose
//!        braid     a few rows in turn, of 1 and 2 bytes         ├ some of Transpose, Interleave
//!        nest      loops alone, in the caches                   ├ Few, and small ones of most
//!        strided   two loops over single elements               ├ short rows of Step and Fill
//!        slim      tiles of 1 and 2 bytes, one side short       ├ some of Transpose
//!        tables    two loops over tables of offsets             ├ Gather Scatter, small Rows
//!        packed    transposes of 4 and 6 bits                   ├ some of Bits
//!        packed_staged likewise, of 4 bits, by copies of rows  ├ some of Bits
//!        bits      packed elements, through bytes               └ Bits
//! ```
//! [`way`] alone decides which of them a part goes; `dlrs_copy_explain` prints its names.
//! The instructions are behind one table ([`ops::Ops`]) per level, and what suits a make of
//! processors is in another ([`tuning::Tuning`]); both are chosen once.
//! What a transpose turns is a [`face::Face`], between two sides of one or more dimensions.
//! Nothing is thread-local, no frame is larger than the 4 KiB buffer and 2 KiB beside it, and
//! nothing allocates but [`staged`], [`odd_staged`], [`packed_staged`], [`small`], [`picked`],
//! [`repeat`] and [`slabs`], which can do without.

/// Rounds of a perfect shuffle, at most four: in each, the low and the high halves of rows `i` and
/// `i + C / 2` follow one another, for every `i` listed. All is written out, so that the rows stay
/// in registers; a loop would stay one where size counts.
#[allow(unused_macros)] // by targets without SIMD kernels
macro_rules! shuffle {
    ($rows:ident, $c:ident, $rounds:expr, $low:ident, $high:ident, []) => {
        let _ = &mut $rows; // one element a row: nothing to turn
    };
    ($rows:ident, $c:ident, $rounds:expr, $low:ident, $high:ident, $i:tt) => {
        if $rounds > 0 {
            shuffle!($rows, $c, $low, $high, $i);
        }
        if $rounds > 1 {
            shuffle!($rows, $c, $low, $high, $i);
        }
        if $rounds > 2 {
            shuffle!($rows, $c, $low, $high, $i);
        }
        if $rounds > 3 {
            shuffle!($rows, $c, $low, $high, $i);
        }
    };
    ($rows:ident, $c:ident, $low:ident, $high:ident, [$($i:literal)*]) => {
        $rows =
            [$($low($rows[$i], $rows[$i + $c / 2]), $high($rows[$i], $rows[$i + $c / 2])),*];
    };
}

/// The squares of an [`ops::Band`], each of `$line` rows of `$bytes` bytes, column by column:
/// `$make` makes one from the source's rows to those of the destination; `$above` makes the one
/// above a column's first, if lines are shared, and says whether they are. If `$among`, `$make`
/// asks for what is as far ahead as it is told.
#[allow(unused_macros)] // likewise
macro_rules! band {
    (
        $how:ident, $line:expr, $bytes:literal, ($src:ident, $from:ident), ($dst:ident, $to:ident),
        $above:expr, $make:expr, $among:expr
    ) => {{
        let (mut src, mut dst, mut to) = ($src, $dst, $to);
        // Those of the first column are beside none.
        let asked = if $how.ask.beside { $how.lines } else { 0 };
        for line in 0..asked {
            ask_beside(dst.wrapping_add(64 * line), to, 0, $line);
        }
        for column in 0..$how.columns {
            let (mut at, mut from, mut dst_at) = (src, $from, dst);
            if $above((at, from)) {
                let (by, next) = from.from($line);
                (at, from) = (at.wrapping_offset(by), next);
            }
            let (asks, beside) = $how.ask.when::<$bytes>(column, $how.columns);
            let among = $among && asks && $how.ask.among();
            for _ in 0..$how.lines {
                if asks && !among {
                    ask_source(at, from, $line, &$how.ask);
                }
                if beside {
                    ask_beside(dst_at, to, $line, $line);
                }
                $make((at, from), (dst_at, to), if among { $how.ask.ahead } else { 0 });
                let (by, next) = from.from($line);
                (at, from, dst_at) = (at.wrapping_offset(by), next, dst_at.wrapping_add(64));
            }
            let (by, next) = to.from($bytes >> $how.log);
            (src, dst, to) = (src.wrapping_add($bytes), dst.wrapping_offset(by), next);
        }
    }};
}

/// A call for rows of either kind.
macro_rules! either {
    ($rows:expr, $places:pat => $call:expr) => {
        match $rows {
            Rows::Apart($places) => $call,
            Rows::Listed($places) => $call,
        }
    };
}

mod bitrun;
mod bits;
mod braid;
mod deal;
mod engine;
mod face;
mod fills;
mod groups;
mod level;
mod lines;
mod nest;
mod odd;
mod odd_staged;
mod ops;
mod pack;
mod packed;
mod packed_staged;
mod picked;
mod planes;
mod portable;
mod repeat;
mod rows;
mod slabs;
mod slim;
mod small;
mod staged;
mod step;
mod straight;
mod stream;
mod strided;
mod tables;
mod threads;
mod touch;
mod transpose;
mod tuning;
mod walk;
mod way;
mod windows;

// Families of processors; each file is empty where it does not apply.
mod neon;
mod simd;
mod x86;
mod x86_ask;
mod x86_avx2;
mod x86_avx2_deal;
mod x86_avx2_lines;
mod x86_avx2_odd;
mod x86_avx2_shuffle;
mod x86_avx2_square;
mod x86_avx2_stage;
mod x86_avx512;
mod x86_avx512_braid;
mod x86_avx512_deal;
mod x86_avx512_groups;
mod x86_avx512_odd;
mod x86_avx512_planes;
mod x86_avx512_shared;
mod x86_avx512_small;
mod x86_avx512_square;
mod x86_emulated;
mod x86_fills;
mod x86_packed;
mod x86_vectors;

pub use level::{Level, detected, level, set_level, set_nested, set_thresholds};
pub use nest::{NEST_DIMS, Stores, few, nested};
pub use threads::{Parallel, ParallelFor, parts};
pub(super) use threads::{side_by_side, worth};
pub use tuning::{Make, make, set_make};

use super::plan::{Item, Plan};
use crate::error::Result;

/// Copies, and leaves the plan simplified. Infallible: when a worker cannot be had, the caller does
/// its part.
///
/// # Safety
/// Every element of the plan lies in memory that is readable (source) or writable (destination);
/// source and destination do not overlap; the destination's elements are distinct.
pub unsafe fn copy(plan: &mut Plan, parallel: &Parallel) -> Result<()> {
    plan.simplify();
    // SAFETY: the simplified plan names the same elements; the caller vouches for them.
    unsafe { copy_simple(plan, parallel) }
}

/// As [`copy`], of a plan that is simplified.
///
/// # Safety
/// As [`copy`].
pub unsafe fn copy_simple(plan: &Plan, parallel: &Parallel) -> Result<()> {
    if plan.item == Item::Bytes(0) || plan.count() == 0 {
        return Ok(());
    }
    // SAFETY: the caller's promise.
    unsafe { threads::run(plan, parallel) }
}
