//! What a transpose needs of its caller's stack: lists of rows, and the stage.
use core::mem::MaybeUninit;

use crate::LINE;

/// Source rows at a time.
pub(crate) const BAND: usize = 128;
/// Bytes of transposed rows in the stage: a line of columns, each with what was carried over and a band
/// of new bytes, and a line more so that rows do not compete for the same set of the first-level
/// cache.
pub(crate) const TRANSPOSED: usize = 256 * LINE;
/// Destination rows whose partial lines are carried at a time.
pub(crate) const STRIP: usize = 256;

/// What a transpose needs of its caller's stack.
#[derive(Clone, Copy)]
pub struct Space {
    pub(crate) lists: *mut Lists,
    /// Dangling where nothing is staged or streamed.
    pub(crate) stage: *mut Stage,
}

impl Space {
    /// Of transposes that are neither staged nor streamed.
    #[inline(always)]
    pub const fn near(lists: &mut MaybeUninit<Lists>) -> Space {
        Space { lists: lists.as_mut_ptr(), stage: core::ptr::dangling_mut() }
    }

    /// Of any transpose.
    #[inline(always)]
    pub const fn any(lists: &mut MaybeUninit<Lists>, stage: &mut MaybeUninit<Stage>) -> Space {
        Space { lists: lists.as_mut_ptr(), stage: stage.as_mut_ptr() }
    }

    /// Bytes of transposed rows.
    #[inline(always)]
    pub(crate) fn transposed(&self) -> *mut u8 {
        self.stage.cast()
    }

    /// Bytes of partial lines.
    #[inline(always)]
    pub(crate) fn carry(&self) -> *mut u8 {
        self.transposed().wrapping_add(TRANSPOSED)
    }
}

/// Rows transposed, and parts of lines that are carried over.
#[repr(align(64))]
pub struct Stage(#[allow(dead_code)] [u8; TRANSPOSED + STRIP * LINE]);

/// Where rows and columns are.
pub struct Lists {
    /// Source rows of this band and of the next one.
    pub(crate) bands: [[isize; BAND]; 2],
    /// Destination rows, of a line of columns.
    pub(crate) columns: [isize; LINE],
    /// The same of `tiles`.
    pub(crate) tile_rows: [isize; BAND],
    pub(crate) tile_columns: [isize; LINE + 16],
    /// Rows of the stage.
    pub(crate) transposed: [isize; LINE],
}
