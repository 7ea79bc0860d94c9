//! Comparison.

use super::arg::{live, variable};
use super::error::{dlrs_error, dlrs_status, run};
use crate::abi::*;
use crate::compare::{self, Equality};
use crate::copy::{Given, Pair};
use crate::error::{Arg, Error, Result, Status::*};
use crate::validate::Rules;

/// Elements are equal if their bits are: -0 is not 0, and a NaN equals itself.
pub const DLRS_EQUAL_BITS: i32 = 1;
/// Elements are equal if their values are: -0 is 0, and NaN is not equal to anything.
pub const DLRS_EQUAL_VALUES: i32 = 2;
/// As DLRS_EQUAL_VALUES, but any NaN is equal to any other.
pub const DLRS_EQUAL_VALUES_OR_NAN: i32 = 3;

/// Reads `a` and `b`, asks, and hands the answer over.
///
/// # Safety
/// `a`, `b` and `error` are NULL or live, `out` is NULL or a writable variable.
#[inline(always)]
unsafe fn ask<T: Copy>(
    function: &'static str,
    (a, b): (*const DLManagedTensorVersioned, *const DLManagedTensorVersioned),
    out: *mut T,
    error: *mut dlrs_error,
    question: Result<impl FnOnce(&Pair) -> Result<T>>,
) -> dlrs_status {
    let args: [Arg; 2] = [Arg::a, Arg::b];
    let pointers = (live(a, args[0]), live(b, args[1]), variable(out, Arg::out));
    // SAFETY: a, b and error are NULL or live, out is NULL or a writable variable.
    unsafe {
        run(function, error, pointers, |(a, b, out)| {
            let (question, mut pair) = (question?, Pair::new(args));
            pair.read(Given { src: a.get(), dst: b.get() }, Rules::COPY)?;
            out.set(question(&pair)?);
            Ok(())
        })
    }
}

/// Return whether two tensors have the same shape and equal elements.
///
/// Shape:     different shapes give 0, without an error; any strides; tensors of size zero are
///            equal. Elements that a stride of 0 repeats are compared once.
/// Bytes:     level is DLRS_EQUAL_BITS, DLRS_EQUAL_VALUES or DLRS_EQUAL_VALUES_OR_NAN. The values
///            of float, complex and bool (any byte but 0 is true) differ from their bits. Of
///            complex elements, both parts are equal, each for itself. *out becomes 1 or 0.
/// Device:    both accessible by the CPU: CPU, pinned, managed. For managed memory the call waits
///            for its device's default stream.
/// Ownership: unchanged.
/// Flags:     IS_SUBBYTE_TYPE_PADDED may differ; the unused bits of padded elements are ignored.
/// Errors:    DLRS_NULL_ARG, DLRS_MISALIGNED_STRUCT: a, b or out. DLRS_BAD_ARG: level.
///            what dlrs_copy reports of src; first for a, then for b.
///            DLRS_DTYPE_MISMATCH: convert one with dlrs_cast. DLRS_UNSUPPORTED: opaque handles.
///            DLRS_DEVICE_TYPE: not accessible by the CPU. On any error *out is not modified.
/// Threads:   any.
/// Source:    array_equal of NumPy, with and without equal_nan; to NumPy any two complex numbers
///            with a NaN in either part are equal then.
///
/// # Safety
/// No other thread writes the elements meanwhile.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dlrs_equal(
    a: *const DLManagedTensorVersioned,
    b: *const DLManagedTensorVersioned,
    level: i32,
    out: *mut i32,
    error: *mut dlrs_error,
) -> dlrs_status {
    let equality = match level {
        DLRS_EQUAL_BITS => Ok(Equality::Bits),
        DLRS_EQUAL_VALUES => Ok(Equality::Values),
        DLRS_EQUAL_VALUES_OR_NAN => Ok(Equality::ValuesOrNan),
        _ => {
            const LEVEL: &str =
                "is no such level\0Give DLRS_EQUAL_BITS, _VALUES or _VALUES_OR_NAN.";
            Err(Error::new(DLRS_BAD_ARG).detail(LEVEL).of(Arg::level).value(level.into()))
        }
    };
    // SAFETY: a, b and error are NULL or live, out is NULL or a writable variable; a pair was read
    // of both.
    unsafe {
        let question = equality
            .map(|equality| move |pair: &Pair| compare::equal(pair, equality).map(i32::from));
        ask("dlrs_equal", (a, b), out, error, question)
    }
}

/// Compute the largest absolute difference of elements at the same index.
///
/// Shape:     equal in rank and extents; any strides. For tensors of size zero *out becomes 0.
///            Elements that strides of 0 repeat in both are compared once.
/// Bytes:     computed in double; for integers exact and rounded once. Equal elements differ by 0,
///            infinities and NaNs too; where just one of the two is NaN, *out becomes NaN, so that
///            `*out <= tolerance` is false. Of complex elements, the larger difference of the
///            parts. True and false differ by 1.
/// Errors:    DLRS_SHAPE_MISMATCH: the two differ. All else as dlrs_equal, but for level and
///            its source.
///
/// # Safety
/// As dlrs_equal.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dlrs_max_diff(
    a: *const DLManagedTensorVersioned,
    b: *const DLManagedTensorVersioned,
    out: *mut f64,
    error: *mut dlrs_error,
) -> dlrs_status {
    // SAFETY: a, b and error are NULL or live, out is NULL or a writable variable.
    unsafe { ask("dlrs_max_diff", (a, b), out, error, Ok(|pair: &Pair| compare::max_diff(pair))) }
}
