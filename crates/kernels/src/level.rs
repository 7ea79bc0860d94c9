//! What a level of instructions is: its kernels, and how they are made from [`crate::vector`]s.
use crate::bits::Bits;
use crate::rows::{Fill, Rows};
use crate::shuffle::Program;
use crate::space::Space;
use crate::transpose::{How, Matrix};

/// The kernels of one level. All are unsafe; see the crate's documentation.
pub struct Kernels {
    /// Their level.
    pub level: Level,
    /// Transposes a matrix of elements of `item` bytes, at most [`crate::ELEMENT_MOST`]; both sides
    /// have at least 16 bytes.
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
}

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
            use crate::space::Space;
            use crate::vector::LINE;
            use crate::{bits, leave, rows, shuffle, tile, transpose};

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
                space: Space,
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
            unsafe fn leave(rows: &leave::Leave) {
                // SAFETY: the rows are in the stage and their destinations writable; the processor
                // has the level's instructions.
                unsafe { leave::leave::<$wide>(rows) }
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
                const PER_LINE: usize = LINE / <$shuffle as Vector>::BYTES;
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
            shuffles: Some(crate::level::Shuffles { run: $shuffles::shuffle, window: $window }),
            rows: $most::rows,
            bits: $shuffles::bits,
            fill: $most::fill,
            fence: $fence,
        }
    };
}

pub(crate) use {table, wrappers};
