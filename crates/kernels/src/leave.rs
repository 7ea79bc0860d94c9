//! From the stage of a transpose to the destination, whose rows start at any offset in a line.
use core::ptr::copy_nonoverlapping;

use crate::side::List;
use crate::vector::{LINE, Vector};

/// Rows to write from the stage to the destination.
#[derive(Clone, Copy)]
pub(crate) struct Leave {
    /// The first row in the stage, behind its 64 carried bytes, and the stride of rows.
    pub(crate) from: *mut u8,
    pub(crate) pitch: usize,
    /// The destination of each row.
    pub(crate) dst: *mut u8,
    pub(crate) columns: List,
    pub(crate) rows: usize,
    /// New bytes of each row.
    pub(crate) bytes: usize,
    /// A line per row: the bytes carried over from band to band; null: none, since all rows are
    /// whole lines.
    pub(crate) carry: *mut u8,
    /// Whether these are the first or the last bytes of the rows.
    pub(crate) first: bool,
    pub(crate) last: bool,
}

/// Writes rows of the stage in whole lines; the rest of each is carried over, or written as it is.
#[inline(always)]
pub(crate) unsafe fn leave<V: Vector>(leave: &Leave) {
    let Leave { mut from, mut carry, bytes: n, .. } = *leave;
    let carries = !carry.is_null();
    let mut c = 0;
    while c < leave.rows {
        // SAFETY: the rows are in the stage, behind room for a line each; `carry` has a line per
        // row, and their destinations are writable.
        unsafe {
            let row = leave.dst.wrapping_offset(*leave.columns.add(c));
            // Offset of the first whole line in the stage: 1 to 64.
            let mut at = LINE - row as usize % LINE;
            let (dst, end) = (row.wrapping_sub(LINE), n + LINE);
            if carries && leave.first {
                copy_nonoverlapping(from.wrapping_add(LINE), row, at % LINE);
                at += if at < LINE { LINE } else { 0 };
            } else if carries {
                copy_nonoverlapping(carry, from, LINE);
            }
            while at + LINE <= end {
                let mut k = 0;
                while k < LINE {
                    V::load(from.wrapping_add(at + k)).stream(dst.wrapping_add(at + k));
                    k += V::BYTES;
                }
                at += LINE;
            }
            if carries && leave.last {
                copy_nonoverlapping(from.wrapping_add(at), dst.wrapping_add(at), end - at);
            } else if carries {
                copy_nonoverlapping(from.wrapping_add(n), carry, LINE);
            }
        }
        from = from.wrapping_add(leave.pitch);
        if carries {
            carry = carry.wrapping_add(LINE);
        }
        c += 1;
    }
}
