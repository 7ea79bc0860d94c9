//! Vector kernels of the copy engine: each algorithm once, generic over [`Vector`], and one table
//! of functions per instruction set.
//!
//! ```text
//! vector    the trait: load, store, stream (non-temporal), zip, permute
//! portable  vectors in plain Rust for any target; wider ones for tests and Miri
//! x86       AVX2 and AVX-512 vectors, one with full-width permutations (VBMI)
//! neon      AArch64 vectors
//! transpose the macro-kernels of transposes, with staging and prefetches
//! tile      their micro-kernels: tiles in registers
//! side      addresses of rows and columns
//! space     stack buffers of transposes
//! shuffle   executes programs of windows and permutations per destination cache line
//! program   compiles them
//! rows      runs and repeated items, with plain or non-temporal stores
//! bits      runs of bits; packed elements to bytes and back
//! items     scalar copy, by baseline instructions
//! ```
//! Pitfall: closures passed through std (`array::from_fn`, iterators) are compiled without the
//! caller's target feature. Here there are only `while` loops and `inline(always)`.
//!
//! # Safety
//! All kernels are called through a table, [`Level::kernels`], under two conditions: the processor
//! has the level's instructions ([`detected`]), and every byte of the items that the arguments
//! describe (in `Matrix`, `Program`, `Rows`) is readable in the source and writable in the
//! destination, without overlap. A kernel accesses these bytes and no others.
#![no_std]

#[cfg(test)]
extern crate std;

/// A module with the kernels of one instruction set, each compiled for it. Parameters: attributes
/// of all functions, and more for shuffles and bits; the vectors for transposes of bytes and of
/// larger elements; the function for shorter sides; the vectors for shuffles and bits, and for
/// runs.
macro_rules! wrappers {
    (
        $name:ident [$($features:meta)?] [$($more:meta)?]
        $bytes:ty, $wide:ty, $narrow:ident, $shuffle:ty, $rows:ty
    ) => {
        #[allow(dead_code)] // a kernel of one level may serve a higher one
        mod $name {
            use super::*;
            use crate::{bits, rows, shuffle, tile, transpose};

            /// The micro-kernels of transposes.
            const MICRO_KERNELS: tile::MicroKernels = tile::MicroKernels {
                bytes: [<$bytes as Vector>::BYTES, <$wide as Vector>::BYTES],
                wide: if <$wide as Vector>::BYTES == 16 { $narrow } else { wide },
                narrow: $narrow,
                leave,
                put,
            };

            pub(super) unsafe fn transpose(
                item: usize,
                matrix: &transpose::Matrix,
                how: &transpose::How,
                space: crate::Space,
            ) {
                // SAFETY: the matrix is readable or writable on its sides; the processor has the
                // level's instructions.
                unsafe { transpose::any(&MICRO_KERNELS, item, matrix, how, space) }
            }

            $(#[$features])?
            unsafe fn wide(item: usize, block: &tile::Block) {
                // SAFETY: the block is readable or writable on its sides; the processor has the
                // level's instructions.
                unsafe { tile::wide::<$bytes, $wide>(item, block) }
            }

            $(#[$features])?
            unsafe fn leave(leave: &tile::Leave) {
                // SAFETY: the rows are in the stage and their destinations writable; the processor
                // has the level's instructions.
                unsafe { tile::leave::<$wide>(leave) }
            }

            $(#[$features])?
            unsafe fn put(writer: &mut rows::Writer, to: *mut u8, from: *const u8, n: usize) {
                // SAFETY: `n` bytes are readable at `from` and writable at `to`; the processor has
                // the level's instructions.
                unsafe { writer.put::<$wide>(to, from, n) }
            }

            $(#[$features])?
            $(#[$more])?
            pub(super) unsafe fn shuffle(
                program: &shuffle::Program,
                src: *const u8,
                dst: *mut u8,
                n: usize,
                stream: bool,
            ) {
                const PER_LINE: usize = crate::LINE / <$shuffle as Vector>::BYTES;
                // SAFETY: `n` periods are readable and writable; the processor has the level's
                // instructions.
                unsafe { shuffle::run::<$shuffle, PER_LINE>(program, src, dst, n, stream) }
            }

            $(#[$features])?
            pub(super) unsafe fn fill(fill: &rows::Fill) {
                // SAFETY: the items are readable and the rows writable; the processor has the
                // level's instructions.
                unsafe { rows::fill::<$rows>(fill) }
            }

            $(#[$features])?
            pub(super) unsafe fn rows(rows: &rows::Rows) {
                // SAFETY: the runs are readable and writable; the processor has the level's
                // instructions.
                unsafe { rows::copy::<$rows>(rows) }
            }

            $(#[$features])?
            $(#[$more])?
            pub(super) unsafe fn bits(bits: &bits::Bits) {
                // SAFETY: the items are readable and writable; the processor has the level's
                // instructions.
                unsafe { bits::run::<$shuffle>(bits) }
            }
        }
    };
}

/// The table of a level, from modules made by [`wrappers`]: one for most kernels, and one for bits
/// and for shuffles with windows of so many bytes.
macro_rules! table {
    ($level:expr, $most:ident, $shuffles:ident, $window:literal, $fence:ident) => {
        Kernels {
            level: $level,
            transpose: $most::transpose,
            shuffles: Some(crate::Shuffles { run: $shuffles::shuffle, window: $window }),
            rows: $most::rows,
            bits: $shuffles::bits,
            fill: $most::fill,
            fence: $fence,
        }
    };
}

mod bits;
mod items;
#[cfg(all(target_arch = "aarch64", target_feature = "neon", target_endian = "little"))]
mod neon;
mod portable;
mod program;
mod rows;
mod shuffle;
mod side;
mod space;
#[cfg(test)]
mod tests;
mod tile;
mod transpose;
mod vector;
#[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
mod x86;

pub use bits::{Bit, Bits, Packed, Runs};
pub use items::{LOOPS, Loop, items};
pub use program::{BYTES_MOST, GAP, Made, Period, Steps};
pub use rows::{FILL_MOST, Fill, Rows, Writer};
pub use shuffle::Program;
pub use side::{SIDE_LOOPS, Side, Step};
pub use space::{Lists, Space, Stage};
pub use transpose::{ELEMENT_MOST, How, LINES_MOST, Matrix};
pub use vector::Vector;

/// Bytes of a cache line.
pub const LINE: usize = 64;

/// The kernels of one level. All are unsafe; see the crate's documentation.
pub struct Kernels {
    /// Their level.
    pub level: Level,
    /// Transposes a matrix of elements of `item` bytes, at most [`ELEMENT_MOST`]; both sides have
    /// at least 16 bytes.
    pub transpose: unsafe fn(item: usize, matrix: &Matrix, how: &How, space: Space),
    /// `None` without permutations in registers, where the scalar copy is as fast.
    pub shuffles: Option<Shuffles>,
    /// Copies runs.
    pub rows: unsafe fn(rows: &Rows),
    /// Copies, unpacks or packs items that are not whole bytes.
    pub bits: unsafe fn(bits: &Bits),
    /// Repeats an item.
    pub fill: unsafe fn(fill: &Fill),
    /// Orders non-temporal stores before later accesses.
    pub fence: unsafe fn(),
}

/// The kernel for shuffles.
#[derive(Clone, Copy)]
pub struct Shuffles {
    /// Executes a shuffle program for `n` periods from `src` to `dst`.
    pub run: unsafe fn(program: &Program, src: *const u8, dst: *mut u8, n: usize, stream: bool),
    /// Bytes that an index of a program addresses: its window.
    pub window: usize,
}

/// A set of kernels. A higher level of a processor includes the lower ones of its family.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[repr(u8)]
pub enum Level {
    /// No instructions beyond the target's baseline.
    Portable = 1,
    /// AArch64 vectors.
    Neon = 2,
    /// x86 with 256-bit vectors, and BMI2.
    Avx2 = 3,
    /// x86 with 512-bit vectors (F, BW, VL).
    Avx512 = 4,
    /// As [`Level::Avx512`], with permutations of bytes (VBMI).
    Vbmi = 5,
    /// [`Level::Vbmi`] emulated in plain Rust with checks, for tests on any machine.
    Emulated = 6,
    /// [`Level::Avx2`] emulated in the same way.
    EmulatedLanes = 7,
}

impl Level {
    /// All levels, lowest first.
    pub const ALL: [Level; 7] = [
        Level::Portable,
        Level::Neon,
        Level::Avx2,
        Level::Avx512,
        Level::Vbmi,
        Level::Emulated,
        Level::EmulatedLanes,
    ];

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Level::Portable => "portable",
            Level::Neon => "neon",
            Level::Avx2 => "avx2",
            Level::Avx512 => "avx512",
            Level::Vbmi => "vbmi",
            Level::Emulated => "emulated",
            Level::EmulatedLanes => "emulated-lanes",
        }
    }

    /// Whether this target (for test levels, this build) includes it and this processor has its
    /// instructions.
    pub fn is_here(self) -> bool {
        self.kernels().level == self && (self <= detected() || self > Level::Vbmi)
    }

    /// Its kernels; the portable ones if this target or build does not include it.
    pub fn kernels(self) -> &'static Kernels {
        let built = cfg!(feature = "vectors") || self > Level::Vbmi;
        match if built { self } else { Level::Portable } {
            #[cfg(all(target_arch = "aarch64", target_feature = "neon", target_endian = "little"))]
            Level::Neon => &neon::NEON,
            #[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
            Level::Avx2 => &x86::AVX2,
            #[cfg(target_arch = "x86_64")]
            Level::Avx512 => &x86::AVX512,
            #[cfg(target_arch = "x86_64")]
            Level::Vbmi => &x86::VBMI,
            #[cfg(any(test, feature = "emulated"))]
            Level::Emulated => &portable::EMULATED,
            #[cfg(any(test, feature = "emulated"))]
            Level::EmulatedLanes => &portable::EMULATED_LANES,
            _ => &portable::PORTABLE,
        }
    }
}

/// The highest level of this processor.
#[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
pub fn detected() -> Level {
    x86::detected()
}

/// The highest level of this processor: the target's.
#[cfg(not(any(target_arch = "x86", target_arch = "x86_64")))]
pub fn detected() -> Level {
    Level::Neon.kernels().level
}
