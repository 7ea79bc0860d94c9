//! The CPU copy engine: any strided layout to any other.
//!
//! ```text
//! copy ─ Plan::simplify ─ threads (splits of one loop) ─ choose
//!                                                          │
//!   Run        the same loop is dense on both sides        ┤
//!   Fill       one item, repeated                          ┤
//!   Transpose  different loops are dense                   ┤
//!   Shuffle    a short period of bytes in any order        ┤
//!   Scalar     everything, item by item                    ┤
//!   Bits       items that are not whole bytes, between     ┘
//!              unpacking and packing
//! ```
//! [`Nest`](super::nest::Nest) describes the loops; a part for a thread is a split of it.
//! [`choose`] selects the op by two criteria: which loop is dense in the destination, and which in
//! the source. The vector kernels are in a separate package (`crates/kernels/`), compiled for
//! speed. [`policy`] decides, from the sizes of the caches, when stores are non-temporal.
mod choose;
mod level;
mod op;
mod policy;
mod threads;

pub use choose::outlet;
pub use level::{Level, bits, detected, level, set_level};
pub use policy::{near, second, set_thresholds};
pub use threads::{Parallel, ParallelFor, parts, side_by_side, worth};

use super::plan::{Item, Plan};
use crate::error::Result;

/// Copies, and leaves the plan simplified. Infallible: if no thread can be created, the caller does
/// its part.
///
/// # Safety
/// Every element of the plan is in memory that is readable (source) or writable (destination);
/// source and destination do not overlap; the destination's elements are distinct.
pub unsafe fn copy(plan: &mut Plan, parallel: &Parallel) -> Result<()> {
    plan.simplify();
    // SAFETY: the simplified plan has the same elements: readable or writable, the two sides apart.
    unsafe { copy_simple(plan, parallel) }
}

/// As [`copy`], of a plan in its normal form.
///
/// # Safety
/// As [`copy`].
#[inline]
pub unsafe fn copy_simple(plan: &Plan, parallel: &Parallel) -> Result<()> {
    if let Item::Bytes(nbytes) = plan.item
        && plan.ndim() == 0
        && policy::near(nbytes)
    {
        // SAFETY: `nbytes` bytes are readable at `src` and writable at `dst`, which do not overlap.
        unsafe { plan.dst.copy_from_nonoverlapping(plan.src, nbytes) };
        return Ok(());
    }
    // SAFETY: all elements are readable or writable, the two sides apart, and the destination's
    // distinct.
    unsafe { threads::run(plan, parallel) }
}
