//! Vector kernels of the copy engine: each algorithm once, generic over [`Vector`], and one table
//! of functions per instruction set.
//!
//! ```text
//! vector    the trait: load, store, stream (non-temporal), zip, permute
//! portable  vectors in plain Rust for any target; wider ones for tests and Miri
//! x86       AVX2 and AVX-512 vectors, one with full-width permutations (VBMI)
//! neon      AArch64 vectors
//! transpose the macro-kernels of transposes; bands: with staging and prefetches
//! tile      their micro-kernels: tiles in registers
//! leave     whole lines from the stage to the destination
//! side      addresses of rows and columns
//! space     stack buffers of transposes
//! shuffle   executes programs of windows and permutations per destination cache line
//! program   compiles them
//! rows      runs and repeated items, with plain or non-temporal stores
//! bits      runs of bits; packed elements to bytes and back
//! items     scalar copy, by baseline instructions
//! level     a table of kernels; here: the levels that this build has
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

mod bands;
mod bits;
mod items;
mod leave;
mod level;
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
pub use level::{Kernels, Level, Shuffles};
pub use program::{BYTES_MOST, GAP, Made, Period, Steps};
pub use rows::{FILL_MOST, Fill, Rows, Writer};
pub use shuffle::Program;
pub use side::{SIDE_LOOPS, Side, Step};
pub use space::{BAND, Lists, Space, Stage};
pub use transpose::{ELEMENT_MOST, How, LINES_MOST, Matrix};
pub use vector::{LINE, Vector};

impl Level {
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
