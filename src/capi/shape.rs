//! Shapes and strides.

use core::mem::MaybeUninit;

use super::arg;
use super::error::{dlrs_error, dlrs_status, run_given, run_rest};
use super::view::values_of;
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
///
/// # Safety
/// See the preface.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dlrs_compact_strides(
    shape: *const i64,
    ndim: i32,
    order: i32,
    strides: *mut i64,
    error: *mut dlrs_error,
) -> dlrs_status {
    let pointers = [arg::may(shape, Arg::shape), arg::need_if(ndim > 0, strides, Arg::strides)];
    run_given("dlrs_compact_strides", error, pointers, || {
        let mut room = Array::new();
        // SAFETY: shape is NULL or holds ndim values.
        let shape = unsafe { values_of(shape, ndim, [Arg::shape, Arg::ndim], &mut room) }?;
        let Some(order @ (Order::C | Order::F)) = Order::from_char(order) else {
            let error = Error::new(DLRS_BAD_ARG).detail("is no such order\0Give 'C' or 'F'.");
            return Err(error.of(Arg::order).value(order.into()));
        };
        layout::check_shape(shape).and_then(|_| layout::numel(shape)).of(Arg::shape)?;
        let mut filled = [0; MAX_NDIM];
        layout::compact_strides(shape, order, &mut filled);
        // SAFETY: strides has room for ndim values, by the preface.
        unsafe { arg::write_values(filled.get(..shape.len()), strides, Arg::strides) }
    })
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
///
/// # Safety
/// See the preface.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dlrs_strides_from_bytes(
    shape: *const i64,
    byte_strides: *const i64,
    ndim: i32,
    itemsize: u32,
    strides: *mut i64,
    error: *mut dlrs_error,
) -> dlrs_status {
    const ARGS: [Arg; 2] = [Arg::byte_strides, Arg::strides];
    let steps = Steps { shape, given: byte_strides, ndim, itemsize, out: strides };
    let turn = layout::into_items(itemsize);
    // SAFETY: the three arrays are NULL or hold ndim values each.
    if unsafe { steps.usual(turn, Some) } {
        return DLRS_OK as dlrs_status;
    }
    run_rest("dlrs_strides_from_bytes", error, move || {
        // SAFETY: the three arrays are NULL or hold ndim values each.
        unsafe {
            // Compact strides count elements as they are.
            let given = !byte_strides.is_null();
            steps.turn(ARGS, given.then_some(layout::strides_from_bytes))
        }
    })
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
///
/// # Safety
/// See the preface.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dlrs_strides_to_bytes(
    shape: *const i64,
    strides: *const i64,
    ndim: i32,
    itemsize: u32,
    byte_strides: *mut i64,
    error: *mut dlrs_error,
) -> dlrs_status {
    const ARGS: [Arg; 2] = [Arg::strides, Arg::byte_strides];
    let steps = Steps { shape, given: strides, ndim, itemsize, out: byte_strides };
    let turn = |stride: i64| stride.checked_mul(itemsize.into());
    // SAFETY: the three arrays are NULL or hold ndim values each.
    if unsafe { steps.usual(turn, turn) } {
        return DLRS_OK as dlrs_status;
    }
    run_rest("dlrs_strides_to_bytes", error, move || {
        // SAFETY: the three arrays are NULL or hold ndim values each.
        unsafe { steps.turn(ARGS, Some(layout::strides_to_bytes)) }
    })
}

/// The arguments of the two.
struct Steps {
    shape: *const i64,
    given: *const i64,
    ndim: i32,
    itemsize: u32,
    out: *mut i64,
}

/// Turns strides of one unit into another, for an item size in bytes.
type Turn = fn(&[i64], &mut [i64], u32) -> Result<()>;

/// The most dimensions of the usual case.
const USUAL_NDIM: usize = 8;

impl Steps {
    /// The usual case, in one pass: few dimensions, none of them empty, strides that are given, and
    /// nothing wrong. Else it says no and writes nothing, and [`Steps::turn`] finds out what it is.
    /// `turn` turns a stride, `compact` that of a compact tensor, where an extent is 1.
    ///
    /// # Safety
    /// The arrays are NULL or hold `ndim` values.
    #[inline(always)]
    unsafe fn usual(
        &self,
        turn: impl Fn(i64) -> Option<i64>,
        compact: impl Fn(i64) -> Option<i64>,
    ) -> bool {
        let &Steps { shape, given, ndim, itemsize, out } = self;
        let there = !shape.is_null() && !given.is_null() && !out.is_null() && itemsize != 0;
        let aligned = (shape.addr() | given.addr() | out.addr()).is_multiple_of(align_of::<i64>());
        if !there || !aligned || ndim as u32 as usize > USUAL_NDIM {
            return false;
        }
        let ndim = ndim as usize;
        let mut room = [const { MaybeUninit::<i64>::uninit() }; USUAL_NDIM];
        let room: *mut i64 = room.as_mut_ptr().cast();
        let (mut dim, mut step) = (ndim, 1i64);
        // SAFETY: each array is neither NULL nor misaligned and holds `ndim` values, of which each
        // is read once; room has as many, and what is read of it has been written.
        unsafe {
            while dim > 0 {
                dim -= 1;
                let extent = shape.add(dim).read_volatile();
                let stride = given.add(dim).read_volatile();
                let turned = match extent {
                    1 => compact(step),
                    2.. => turn(stride),
                    _ => None,
                };
                let Some(turned) = turned else { return false };
                room.add(dim).write(turned);
                let (product, large) = step.overflowing_mul(extent);
                if large {
                    return false;
                }
                step = product;
            }
            while dim < ndim {
                // Volatile: of so few values a call of memcpy costs more than all the rest.
                out.add(dim).write_volatile(room.add(dim).read());
                dim += 1;
            }
        }
        true
    }

    /// # Safety
    /// The arrays are NULL or hold `ndim` values.
    #[inline(never)]
    unsafe fn turn(&self, [given_arg, out_arg]: [Arg; 2], turn: Option<Turn>) -> Result<()> {
        let &Steps { ndim, itemsize, .. } = self;
        arg::pointers([
            arg::may(self.shape, Arg::shape),
            arg::may(self.given, given_arg),
            arg::need_if(ndim > 0, self.out, out_arg),
        ])?;
        let mut room = Array::new();
        // SAFETY: shape is NULL or holds ndim values.
        let shape = unsafe { values_of(self.shape, ndim, [Arg::shape, Arg::ndim], &mut room) }?;
        if itemsize == 0 {
            let error = Error::new(DLRS_BAD_ARG).detail("is 0\0Give the bytes of an element.");
            return Err(error.of(Arg::itemsize).value(0));
        }
        layout::check_shape(shape).and_then(|_| layout::numel(shape)).of(Arg::shape)?;
        let mut strides = Array::new();
        match self.given.is_null() {
            true => {
                strides.extend(shape.len(), || 0);
                layout::compact_strides(shape, Order::C, &mut strides);
            }
            false => {
                // SAFETY: given is not NULL and holds ndim values, as many as the shape.
                unsafe { arg::values(self.given, shape.len(), given_arg, &mut strides) }?;
            }
        }
        if let Some(turn) = turn {
            turn(shape, &mut strides, itemsize).of(given_arg)?;
        }
        // SAFETY: out is NULL or has room for ndim values, as many as there are strides.
        unsafe { arg::write_values(Some(&strides), self.out, out_arg) }
    }
}
