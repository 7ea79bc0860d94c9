//! Shapes and strides.

use super::arg::{Buffer, Live, buffer, live, n_values, optional, start, values};
use super::error::{dlrs_error, dlrs_status, run, run_usual};
use crate::array::Array;
use crate::error::{Arg, Error, Of, Result, Status::*};
use crate::layout::{self, MAX_NDIM, Order};

/// Compute the strides of a compact tensor.
///
/// Shape:     ndim extents (0 to 64); may be NULL when ndim is 0. An extent of 0 counts as 1; what
///            does not fit beside it becomes INT64_MAX.
/// Ownership: strides is an array of the caller with room for ndim values; it may be shape.
/// Errors:    DLRS_NULL_ARG, DLRS_SHAPE_NULL, DLRS_MISALIGNED_STRUCT: shape, strides.
///            DLRS_NDIM, DLRS_SHAPE_NEG, DLRS_SIZE_OVERFLOW: the shape.
///            DLRS_BAD_ARG: order is neither 'C' (row-major) nor 'F' (column-major).
///            On any error nothing is written.
/// Threads:   any.
/// Source:    dlpack.h: strides count elements.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dlrs_compact_strides(
    shape: *const i64,
    ndim: i32,
    order: i32,
    strides: *mut i64,
    error: *mut dlrs_error,
) -> dlrs_status {
    let strides = buffer(strides, ndim.max(0) as usize, Arg::strides);
    let pointers = (optional(live(shape, Arg::shape)), strides);
    // SAFETY: shape is NULL or holds ndim values, strides is NULL or has room for as many, error is
    // NULL or live, by the preface.
    unsafe {
        run("dlrs_compact_strides", error, pointers, |(extents, strides)| {
            let mut room = Array::new();
            let shape = values(start(extents), ndim, [Arg::shape, Arg::ndim], &mut room)?;
            let Some(order @ (Order::C | Order::F)) = Order::from_char(order) else {
                let error = Error::new(DLRS_BAD_ARG).detail("is no such order\0Give 'C' or 'F'.");
                return Err(error.of(Arg::order).value(order.into()));
            };
            layout::check_shape(shape).and_then(|_| layout::numel(shape)).of(Arg::shape)?;
            let mut filled = [0; MAX_NDIM];
            layout::compact_strides(shape, order, &mut filled);
            strides.write(filled.get(..shape.len()).unwrap_or(&[]));
            Ok(())
        })
    }
}

/// Convert strides in bytes into strides in elements.
///
/// Shape:     ndim extents (0 to 64) and strides; NULL byte_strides are compact row-major. A stride
///            without effect, of an extent of 1 or of a tensor without elements, is ignored: it
///            becomes that of a compact row-major tensor, at most INT64_MAX.
/// Bytes:     itemsize is the size of one element, above 0.
/// Ownership: strides is an array of the caller with room for ndim values; it may be byte_strides
///            or shape.
/// Errors:    DLRS_NULL_ARG, DLRS_SHAPE_NULL, DLRS_MISALIGNED_STRUCT: shape, byte_strides, strides.
///            DLRS_NDIM, DLRS_SHAPE_NEG, DLRS_SIZE_OVERFLOW: the shape. DLRS_BAD_ARG: itemsize.
///            DLRS_STRIDES_UNEVEN: a stride is no multiple of itemsize; see dimension and value. On
///            any error nothing is written.
/// Threads:   any.
/// Source:    dlpack.h: strides count elements. NumPy's and the buffer protocol's count bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dlrs_strides_from_bytes(
    shape: *const i64,
    byte_strides: *const i64,
    ndim: i32,
    itemsize: u32,
    strides: *mut i64,
    error: *mut dlrs_error,
) -> dlrs_status {
    let arrays = ((shape, Arg::shape), (byte_strides, Arg::byte_strides), (strides, Arg::strides));
    let usual = layout::into_items(itemsize);
    // Compact strides count elements as they are.
    let rest = (!byte_strides.is_null()).then_some(layout::strides_from_bytes as Turn);
    // SAFETY: the three arrays are NULL or hold ndim values each, error is NULL or live.
    unsafe { turn("dlrs_strides_from_bytes", arrays, (ndim, itemsize), error, usual, Some, rest) }
}

/// Convert strides in elements into strides in bytes.
///
/// Shape:     ndim extents (0 to 64) and strides; NULL strides are compact row-major. A stride
///            without effect is ignored, as by dlrs_strides_from_bytes.
/// Bytes:     itemsize is the size of one element, above 0.
/// Ownership: byte_strides is an array of the caller with room for ndim values; it may be strides
///            or shape.
/// Errors:    DLRS_NULL_ARG, DLRS_SHAPE_NULL, DLRS_MISALIGNED_STRUCT: shape, strides, byte_strides.
///            DLRS_NDIM, DLRS_SHAPE_NEG, DLRS_SIZE_OVERFLOW: the shape. DLRS_BAD_ARG: itemsize.
///            DLRS_EXTENT_OVERFLOW: a stride does not fit; see dimension and value.
///            On any error nothing is written.
/// Threads:   any.
/// Source:    see dlrs_strides_from_bytes, whose inverse it is.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dlrs_strides_to_bytes(
    shape: *const i64,
    strides: *const i64,
    ndim: i32,
    itemsize: u32,
    byte_strides: *mut i64,
    error: *mut dlrs_error,
) -> dlrs_status {
    let arrays = ((shape, Arg::shape), (strides, Arg::strides), (byte_strides, Arg::byte_strides));
    let usual = |stride: i64| stride.checked_mul(itemsize.into());
    let rest = Some(layout::strides_to_bytes as Turn);
    // SAFETY: the three arrays are NULL or hold ndim values each, error is NULL or live.
    unsafe { turn("dlrs_strides_to_bytes", arrays, (ndim, itemsize), error, usual, usual, rest) }
}

/// Turns strides of one unit into another, for an item size in bytes.
type Turn = fn(&[i64], &mut [i64], u32) -> Result<()>;

/// An array of one of the two, and its name.
type Named<T> = (T, Arg);

/// Turns strides into another unit. In the usual case in one pass: few dimensions, none of them
/// empty, strides that are given, and nothing wrong; `usual` turns a stride, `compact` that of a
/// compact tensor, where an extent is 1. Else by `rest`, which finds what is wrong, or as they are.
///
/// # Safety
/// The arrays are NULL or hold `ndim` values each; `error` is NULL or live.
#[inline(always)]
unsafe fn turn(
    function: &'static str,
    (shape, given, out): (Named<*const i64>, Named<*const i64>, Named<*mut i64>),
    (ndim, itemsize): (i32, u32),
    error: *mut dlrs_error,
    usual: impl Fn(i64) -> Option<i64>,
    compact: impl Fn(i64) -> Option<i64>,
    rest: Option<Turn>,
) -> dlrs_status {
    let pointers = (
        optional(live(shape.0, shape.1)),
        optional(live(given.0, given.1)),
        buffer(out.0, ndim.max(0) as usize, out.1),
    );
    let in_one_pass =
        |(shape, given, out): &(Option<Live<i64>>, Option<Live<i64>>, Buffer<i64>)| {
            let (Some(shape), Some(given)) = (*shape, *given) else { return Err(()) };
            let mut step = 1i64;
            let each = |extent: i64, stride| {
                let turned = match extent {
                    1 => compact(step),
                    2.. => usual(stride),
                    _ => None,
                };
                step = step.checked_mul(extent)?;
                turned
            };
            // SAFETY: shape and given hold ndim values, for which out has room.
            let done = ndim >= 0 && itemsize != 0 && unsafe { out.fill(shape, given, each) };
            done.then_some(()).ok_or(())
        };
    // SAFETY: the arrays are NULL or hold ndim values each, error is NULL or live.
    unsafe {
        run_usual(function, error, pointers, in_one_pass, move |(_, _, out), ()| {
            checked(shape, given, (ndim, itemsize), out, rest)
        })
    }
}

/// As [`turn`], where a pass has found something unusual.
///
/// # Safety
/// The arrays are NULL or hold `ndim` values each.
#[inline(never)]
unsafe fn checked(
    shape: Named<*const i64>,
    given: Named<*const i64>,
    (ndim, itemsize): (i32, u32),
    out: Buffer<i64>,
    turn: Option<Turn>,
) -> Result<()> {
    let (mut room, mut strides) = (Array::new(), Array::new());
    // SAFETY: shape is NULL or holds ndim values.
    let shape = unsafe { values(shape.0, ndim, [shape.1, Arg::ndim], &mut room) }?;
    if itemsize == 0 {
        let error = Error::new(DLRS_BAD_ARG).detail("is 0\0Give the bytes of an element.");
        return Err(error.of(Arg::itemsize).value(0));
    }
    layout::check_shape(shape).and_then(|_| layout::numel(shape)).of(Arg::shape)?;
    if given.0.is_null() {
        strides.extend(shape.len(), || 0);
        layout::compact_strides(shape, Order::C, &mut strides);
    } else {
        // SAFETY: given is not NULL and holds ndim values, as many as the shape.
        unsafe { n_values(given.0, shape.len(), given.1, &mut strides) }?;
    }
    if let Some(turn) = turn {
        turn(shape, &mut strides, itemsize).of(given.1)?;
    }
    out.write(&strides);
    Ok(())
}
