//! Conversion and filling.

use core::ffi::c_void;

use super::arg::{Live, live, optional};
use super::copy_options::{
    DLRS_COPY_RAW_BYTES, DLRS_COPY_SATURATE, Room, copy_options, dlrs_copy_options,
};
use super::error::{dlrs_error, dlrs_status, run};
use crate::abi::*;
use crate::cast::{self, Value};
use crate::copy::{Given, Options, Pair};
use crate::dtype;
use crate::error::{Arg, Error, Of, Result, Status::*};
use crate::validate::Rules;

/// Options of a function that converts elements, and does not only move them.
#[inline(never)]
pub(super) fn value_options(
    options: Option<Live<dlrs_copy_options>>,
    argument: Arg,
    room: &mut Room,
) -> Result<&Options> {
    let options = copy_options(options, argument, DLRS_COPY_SATURATE, room)?;
    if options.raw_bytes {
        const RAW: &str = "flags\0DLRS_COPY_RAW_BYTES cannot be combined with a conversion\0\
                           Leave it out, or copy with dlrs_copy.";
        let error = Error::new(DLRS_BAD_ARG).option(RAW).of(argument);
        return Err(error.value(DLRS_COPY_RAW_BYTES.into()));
    }
    Ok(options)
}

/// Convert the elements of one tensor to the dtype of another of the same shape.
///
/// Between all of bool, int and uint of 1 to 64 bits, float16/32/64, bfloat16, the eight float8,
/// the two float6, float4 and complex; lanes are converted one by one. Equal dtypes are copied bit
/// for bit, so this also converts between packed and padded sub-byte elements. If elements are not
/// contiguous on both sides, a buffer of at most 520 KiB per thread is allocated; if that fails the
/// conversion is slower.
///
/// To a float:   one rounding from the exact value, to nearest, ties to even. Too large values
///               become infinity; NaN in formats without infinity (float8_*fn, *fnuz); the largest
///               finite value in float6 and float4, infinity too.
/// NaN:          stays NaN with its sign; from 16 bits down it is the format's one quiet NaN, but
///               between a format and complex numbers of it every bit is kept; *fnuz have only
///               0x80. Float6 and float4 have none: -0, and +0 for a negative NaN.
/// float8_e8m0fnu: a power of two, ties up; 2^-127 for all below it, 2^-126 for all between the
///               two; NaN for zero, negative or too large values.
/// Float to int: towards zero; out of range saturates; NaN becomes 0.
/// Int to int:   the low bits (two's complement).
/// With DLRS_COPY_SATURATE: integers saturate, too. Values too large for a float become its largest
///               finite value; in types of at most 16 bits, and from float64 to float32, infinity
///               too. Wider types represent all values.
/// To bool:      whether it is not 0; NaN is not. From bool: 0 or 1, any byte but 0 being true.
/// Complex:      the imaginary part is dropped, except that to bool either part counts; from a
///               real dtype it is 0.
///
/// Shape:     equal in rank and extents, lanes too; nothing is broadcast. Any strides on both
///            sides, including 0 (source only) and negative; elements may be unaligned.
/// Bytes:     only those of the destination's elements are written; packed sub-byte elements bit by
///            bit; the unused bits of padded ones become 0, except where both sides are padded and
///            of one dtype, whose bytes are copied unchanged.
/// Device:    both accessible by the CPU: CPU, pinned, managed.
/// Ownership: unchanged.
/// Flags:     dst must not be READ_ONLY. IS_SUBBYTE_TYPE_PADDED may differ. None is changed.
/// Errors:    as dlrs_copy, but DLRS_DTYPE_MISMATCH is only for different lanes. DLRS_BAD_ARG:
///            options, also for DLRS_COPY_RAW_BYTES.
///            DLRS_OVERLAP_SRC_DST: memory is shared, without DLRS_COPY_ALLOW_OVERLAP.
///            On any error nothing has been written.
/// Threads:   any; large ones use more threads as dlrs_copy does. The thread's rounding mode,
///            denormal mode and floating-point exception flags are neither used nor changed.
/// Source:    the casts of NumPy and ml_dtypes, bit for bit where they round once and the result is
///            no NaN.
///
/// # Safety
/// As dlrs_copy.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dlrs_cast(
    src: *const DLManagedTensorVersioned,
    dst: *mut DLManagedTensorVersioned,
    options: *const dlrs_copy_options,
    error: *mut dlrs_error,
) -> dlrs_status {
    let args: [Arg; 2] = [Arg::src, Arg::dst];
    let options = optional(live(options, Arg::options));
    let pointers = (live(src, args[0]), live(dst, args[1]), options);
    // SAFETY: src, dst, options and error are NULL or live, by the preface.
    unsafe {
        run("dlrs_cast", error, pointers, |(src, dst, options)| {
            let (mut pair, mut room) = (Pair::new(args), Room::uninit());
            let options = value_options(options, Arg::options, &mut room)?;
            pair.read(Given { src: src.get(), dst: dst.get() }, Rules::COPY)?;
            cast::cast(&pair, options)
        })
    }
}

/// Write one value to every element of a tensor.
///
/// Shape:     any strides without shared memory of elements; size zero is allowed.
/// Bytes:     value points to one element of value_dtype, all its lanes, unaligned; a sub-byte one
///            in the low bits. It is converted as by dlrs_cast, or copied bit for bit if the dtype
///            is dst's: a double fills a tensor of any dtype.
/// Device:    accessible by the CPU: CPU, pinned, managed.
/// Ownership: unchanged.
/// Flags:     dst must not be READ_ONLY. None is changed.
/// Errors:    DLRS_NULL_ARG: dst or value. DLRS_MISALIGNED_STRUCT: dst. DLRS_STRUCT_SIZE,
///            DLRS_BAD_ARG: options. what dlrs_copy reports of src, for dst. DLRS_DTYPE_CODE,
///            DLRS_DTYPE_BITS, DLRS_DTYPE_LANES: value_dtype.
///            DLRS_DTYPE_MISMATCH: its lanes are not dst's. DLRS_READ_ONLY, DLRS_UNSUPPORTED,
///            DLRS_DEVICE_TYPE, DLRS_OVERLAP_DST: dst. DLRS_OVERLAP_SRC_DST: value lies in dst,
///            without DLRS_COPY_ALLOW_OVERLAP; except where it is read first, because it is
///            converted or of sub-byte size, and dst's elements have at most 128 bits.
///            DLRS_NOMEM: no temporary memory. On any error nothing has been written.
/// Threads:   any; large fills use threads as dlrs_copy.
///
/// # Safety
/// value is readable, and no other thread accesses the elements of dst meanwhile.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dlrs_fill(
    dst: *mut DLManagedTensorVersioned,
    value: *const c_void,
    value_dtype: DLDataType,
    options: *const dlrs_copy_options,
    error: *mut dlrs_error,
) -> dlrs_status {
    let args: [Arg; 2] = [Arg::value, Arg::dst];
    let (options, place) = (optional(live(options, Arg::options)), value.cast::<u8>());
    let pointers = (live(dst, args[1]), live(place, args[0]), options);
    // SAFETY: dst, options and error are NULL or live, value is NULL or holds an element.
    unsafe {
        run("dlrs_fill", error, pointers, |(dst, value, options)| {
            let mut room = Room::uninit();
            let options = value_options(options, Arg::options, &mut room)?;
            dtype::legal(value_dtype).of(Arg::value_dtype)?;
            let value =
                Value { place: value.as_ptr(), dtype: value_dtype, dtype_arg: Arg::value_dtype };
            cast::fill(value, dst.get(), args, options)
        })
    }
}
