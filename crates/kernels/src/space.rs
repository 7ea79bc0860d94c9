//! The stack buffers of a transpose, allocated by its caller: lists of rows, and the stage.
use core::mem::MaybeUninit;

use crate::vector::LINE;

/// Source rows per band.
pub const BAND: usize = 128;
/// Bytes of transposed rows in the stage: a line of columns, each with the carried bytes and a band
/// of new ones, plus a line to avoid conflicts in L1's sets.
pub(crate) const TRANSPOSED: usize = 256 * LINE;
/// Destination rows whose partial lines are carried together.
pub(crate) const STRIP: usize = 256;

/// The stack buffers of a transpose.
#[derive(Clone, Copy)]
pub struct Space {
    pub(crate) lists: *mut Lists,
    /// Dangling if nothing is staged or streamed.
    pub(crate) stage: *mut Stage,
}

impl Space {
    /// For transposes that are neither staged nor streamed.
    #[inline(always)]
    pub const fn near(lists: &mut MaybeUninit<Lists>) -> Space {
        Space { lists: lists.as_mut_ptr(), stage: core::ptr::dangling_mut() }
    }

    /// For any transpose.
    #[inline(always)]
    pub const fn any(lists: &mut MaybeUninit<Lists>, stage: &mut MaybeUninit<Stage>) -> Space {
        Space { lists: lists.as_mut_ptr(), stage: stage.as_mut_ptr() }
    }

    /// The buffer of transposed rows.
    #[inline(always)]
    pub(crate) fn transposed(&self) -> *mut u8 {
        self.stage.cast()
    }

    /// The buffer of partial lines.
    #[inline(always)]
    pub(crate) fn carry(&self) -> *mut u8 {
        self.transposed().wrapping_add(TRANSPOSED)
    }
}

/// Transposed rows, and partial lines that are carried over.
#[repr(align(64))]
pub struct Stage(#[allow(dead_code)] [u8; TRANSPOSED + STRIP * LINE]);

/// Offsets of rows and columns.
pub struct Lists {
    /// Source rows of this band and of the next one.
    pub(crate) bands: [[isize; BAND]; 2],
    /// Destination rows, of a line of columns.
    pub(crate) columns: [isize; LINE],
    /// Source rows of `tiles`.
    pub(crate) tile_rows: [isize; BAND],
    pub(crate) tile_columns: [isize; LINE + 16],
    /// Rows of the stage.
    pub(crate) transposed: [isize; LINE],
}
