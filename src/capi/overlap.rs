//! Queries on shared memory.

use super::arg::{Live, live, variable};
use super::error::{dlrs_error, dlrs_status, run};
use crate::abi::*;
use crate::copy::{elements, same_origin};
use crate::error::{Arg, Of, Result};
use crate::overlap::Verdict;
use crate::validate::{Level, Rules, Snapshot};
use crate::view::sharing;

/// Result of a query whose work is bounded.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(non_camel_case_types)]
pub enum dlrs_answer {
    /// Proved: no.
    DLRS_NO = 0,
    /// Proved: yes.
    DLRS_YES = 1,
    /// Not decided within the bound.
    DLRS_UNDECIDED = 2,
}

use dlrs_answer::*;

fn read(tensor: Live<DLTensor>, flags: u64, argument: Arg, into: &mut Snapshot) -> Result<()> {
    tensor.read(flags, Rules::of(Level::DLRS_LEVEL_LAYOUT), into).of(argument)
}

/// Return whether no two elements of a tensor share memory.
///
/// Bytes:     *out is DLRS_YES, DLRS_NO (two elements share at least a bit, as in a broadcast or a
///            sliding window), or, after bounded work, DLRS_UNDECIDED.
/// Device:    any: only shape, strides and dtype are used.
/// Ownership: unchanged.
/// Flags:     those of its managed tensor, or 0; only IS_SUBBYTE_TYPE_PADDED is used.
/// Errors:    DLRS_NULL_ARG, DLRS_MISALIGNED_STRUCT: tensor or out.
///            what dlrs_validate reports at DLRS_LEVEL_LAYOUT. On any error *out is not modified.
/// Threads:   any.
/// Source:    bounded Diophantine equations, as in NumPy's solve_may_share_memory.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dlrs_is_unique(
    tensor: *const DLTensor,
    flags: u64,
    out: *mut i32,
    error: *mut dlrs_error,
) -> dlrs_status {
    let pointers = (live(tensor, Arg::tensor), variable(out, Arg::out));
    // SAFETY: tensor and error are NULL or live, out is NULL or a writable variable.
    unsafe {
        run("dlrs_is_unique", error, pointers, |(tensor, out)| {
            let mut snapshot = Snapshot::new();
            read(tensor, flags, Arg::tensor, &mut snapshot)?;
            let tensor = &snapshot;
            let bits = tensor.slot_bits();
            let answer = match sharing::self_verdict(tensor.shape(), tensor.strides(), bits) {
                Verdict::Disjoint => DLRS_YES,
                Verdict::Overlap => DLRS_NO,
                Verdict::Undecided => DLRS_UNDECIDED,
            };
            out.set(answer as i32);
            Ok(())
        })
    }
}

/// Return whether elements of two tensors share memory.
///
/// Bytes:     *out is DLRS_NO, DLRS_YES (at least one bit is shared), or, after bounded work,
///            DLRS_UNDECIDED. Interleaved tensors that share no bit give DLRS_NO.
/// Device:    addresses are compared regardless of the devices. Two different opaque handles give
///            DLRS_UNDECIDED.
/// Ownership: unchanged.
/// Flags:     those of their managed tensors, or 0; only IS_SUBBYTE_TYPE_PADDED is used.
/// Errors:    DLRS_NULL_ARG, DLRS_MISALIGNED_STRUCT: a, b or out.
///            what dlrs_validate reports at DLRS_LEVEL_LAYOUT. On any error *out is not modified.
/// Threads:   any.
/// Source:    bounded Diophantine equations, as in NumPy's shares_memory.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dlrs_may_overlap(
    a: *const DLTensor,
    a_flags: u64,
    b: *const DLTensor,
    b_flags: u64,
    out: *mut i32,
    error: *mut dlrs_error,
) -> dlrs_status {
    let pointers = (live(a, Arg::a), live(b, Arg::b), variable(out, Arg::out));
    // SAFETY: a, b and error are NULL or live, out is NULL or a writable variable.
    unsafe {
        run("dlrs_may_overlap", error, pointers, |(a, b, out)| {
            let (mut of_a, mut of_b) = (Snapshot::new(), Snapshot::new());
            read(a, a_flags, Arg::a, &mut of_a)?;
            read(b, b_flags, Arg::b, &mut of_b)?;
            let (a, b) = (&of_a, &of_b);
            let verdict = match same_origin(a, b) || a.empty || b.empty {
                true => sharing::pair_verdict(&elements(a), &elements(b)),
                false => Verdict::Undecided,
            };
            let answer = match verdict {
                Verdict::Disjoint => DLRS_NO,
                Verdict::Overlap => DLRS_YES,
                Verdict::Undecided => DLRS_UNDECIDED,
            };
            out.set(answer as i32);
            Ok(())
        })
    }
}
