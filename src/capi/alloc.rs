//! Allocation.

use core::mem::{MaybeUninit, offset_of};
use core::ptr::null;

use super::arg::{self, Live, Out, live, n_values, optional, result, start, values};
use super::error::{dlrs_error, dlrs_status, run};
use crate::abi::*;
use crate::array::Array;
use crate::error::{Arg, Error, Field::*, Of, Result, Status::*};
use crate::layout::{self, MAX_NDIM, Order};
use crate::tensor::alloc::{self, Request, dlrs_allocator};
use crate::validate;

/// How to allocate. All members but `struct_size` may be 0.
#[repr(C)]
#[derive(Clone, Copy)]
#[allow(non_camel_case_types)]
pub struct dlrs_alloc_options {
    /// `sizeof(dlrs_alloc_options)`.
    pub struct_size: u32,
    /// Alignment of the data in bytes: a power of two up to 2^30; 0 for 256.
    pub align_bytes: u32,
    /// Flags of the result: 0 or DLPACK_FLAG_BITMASK_IS_SUBBYTE_TYPE_PADDED.
    pub flags: u64,
    /// Allocator of the data; NULL for that of dlrs_allocator_set, else the library's own. Read
    /// during the call; `free` and `context` are kept.
    pub allocator: *const dlrs_allocator,
    /// The order of a compact tensor: 'C' (row-major) or 0, 'F' (column-major), or 'K' for that of
    /// a prototype's strides.
    pub order: i32,
    /// Must be 0.
    pub reserved: u32,
    /// One stride per extent, in elements, in place of order; NULL for a compact tensor. None is
    /// negative, and no two elements share memory; gaps, such as those of a pitch, are allocated
    /// too.
    pub strides: *const i64,
}

// SAFETY: plain data, u32 first.
unsafe impl arg::Sized32 for dlrs_alloc_options {
    const EARLIER: &'static [usize] = &[offset_of!(dlrs_alloc_options, order)];
}
// SAFETY: plain data, u32 first.
unsafe impl arg::Sized32 for dlrs_allocator {}

/// The caller's allocator, if any; `functions` names its two functions when one is missing.
fn allocator_of<'a>(
    allocator: Option<Live<dlrs_allocator>>,
    functions: &'static str,
    argument: Arg,
    room: &'a mut MaybeUninit<dlrs_allocator>,
) -> Result<Option<&'a dlrs_allocator>> {
    match arg::options(allocator, argument, room)? {
        Some(dlrs_allocator { alloc: None, .. } | dlrs_allocator { free: None, .. }) => {
            Err(Error::new(DLRS_NULL_ARG).of(argument).option(functions))
        }
        allocator => Ok(allocator),
    }
}

const NO_OPTIONS: dlrs_alloc_options = dlrs_alloc_options {
    struct_size: 0,
    align_bytes: 0,
    flags: 0,
    allocator: null(),
    order: 0,
    reserved: 0,
    strides: null(),
};

/// Passes the request of a description and options to `then`, and names the argument at fault.
///
/// # Safety
/// The allocator of `options` is NULL or live; their strides and the prototype's are NULL or hold
/// one value per extent.
#[inline(never)]
unsafe fn with_request(
    asked: &Prototype,
    options: Option<Live<dlrs_alloc_options>>,
    then: &mut dyn FnMut(&Request) -> Result<()>,
) -> Result<()> {
    let (argument, mut room) = (Arg::options, Array::new());
    let (mut of_options, mut of_allocator) = (MaybeUninit::uninit(), MaybeUninit::uninit());
    let options = arg::options(options, argument, &mut of_options)?.unwrap_or(&NO_OPTIONS);
    let align_bytes = alloc::check_align(options.align_bytes.into()).of(argument)?;
    if options.flags & !DLPACK_FLAG_BITMASK_IS_SUBBYTE_TYPE_PADDED != 0 {
        let error = Error::new(DLRS_FLAGS).field(DLRS_FIELD_FLAGS).of(argument);
        return Err(error.value_u64(options.flags));
    }
    let functions = "allocator's alloc or free";
    // SAFETY: the allocator is NULL or live, as the member of live options.
    let allocator = unsafe { Live::optional(options.allocator, argument) }?;
    let allocator = allocator_of(allocator, functions, argument, &mut of_allocator)?;
    let request = Request {
        shape: asked.shape,
        // SAFETY: the strides of both are NULL or hold one value per extent.
        strides: unsafe { strides_of(asked, options, argument, &mut room) }?,
        dtype: asked.dtype,
        device: asked.device,
        flags: options.flags,
        align_bytes,
        allocator,
    };
    then(&request).map_err(|error| blamed(error, asked.args))
}

/// The strides that options ask for, `None` for row-major ones.
///
/// # Safety
/// The strides of `options` and of the prototype are NULL or hold one value per extent.
unsafe fn strides_of<'a>(
    asked: &Prototype,
    options: &dlrs_alloc_options,
    argument: Arg,
    room: &'a mut Array<i64, MAX_NDIM>,
) -> Result<Option<&'a [i64]>> {
    const ORDER: &str =
        "order\0is no order of a new tensor\0Give 'C' or 'F', or 'K' for one like another.";
    const BOTH: &str = "order\0strides are given too\0Leave one of the two 0.";
    let bad = |name, value: i64| Error::new(DLRS_BAD_ARG).option(name).value(value).of(argument);
    if options.reserved != 0 {
        return Err(bad(arg::RESERVED, options.reserved.into()));
    }
    let order = match options.order {
        0 => Order::C,
        code => Order::from_char(code).ok_or_else(|| bad(ORDER, code.into()))?,
    };
    let shape = asked.shape;
    let strides = match (order, options.strides.is_null()) {
        (_, false) if options.order != 0 => {
            return Err(bad(BOTH, options.order.into()));
        }
        // SAFETY: the strides of the options are not NULL and hold one value per extent.
        (_, false) => unsafe { n_values(options.strides, shape.len(), argument, room) }?,
        (Order::C, true) => return Ok(None),
        (Order::K, true) if asked.like && asked.strides.is_null() => return Ok(None),
        (Order::K, true) if asked.like => {
            let mut like = Array::new();
            // SAFETY: the prototype's strides are not NULL and hold as many values as the shape.
            let like = unsafe { n_values(asked.strides, shape.len(), argument, &mut like) }?;
            filled(room, shape, |strides| layout::like_strides(shape, like, strides))
        }
        (Order::F, true) => {
            filled(room, shape, |strides| layout::compact_strides(shape, Order::F, strides))
        }
        _ => return Err(bad(ORDER, options.order.into())),
    };
    alloc::check_strides(shape, strides, asked.dtype, options.flags).of(argument)?;
    Ok(Some(strides))
}

/// As many strides as there are extents.
fn filled<'a>(
    room: &'a mut Array<i64, MAX_NDIM>,
    shape: &[i64],
    fill: impl FnOnce(&mut [i64]),
) -> &'a [i64] {
    room.truncate(0);
    room.extend(shape.len(), || 0);
    fill(room);
    room
}

/// Allocate an uninitialised tensor, compact unless options have strides.
///
/// Shape:     ndim extents (0 to 64), copied; may be NULL when ndim is 0.
/// Bytes:     packed sub-byte types round up to whole bytes; data is aligned to align_bytes.
/// Device:    any that an allocator or a backend supports; the CPU always.
/// Ownership: the caller owns *out; header, shape, strides and CPU data are one block. Data from an
///            allocator is a separate block, freed by the allocator.
/// Flags:     as in options; byte_offset is 0; a tensor of size zero has data NULL.
/// Errors:    DLRS_NULL_ARG, DLRS_MISALIGNED_STRUCT: shape or out; an allocator's function.
///            DLRS_NDIM, DLRS_SHAPE_NULL, DLRS_SHAPE_NEG, DLRS_SIZE_OVERFLOW: the shape.
///            DLRS_DTYPE_CODE, DLRS_DTYPE_BITS, DLRS_DTYPE_LANES: the dtype.
///            DLRS_DEVICE_TYPE, DLRS_DEVICE_ID: the device.
///            DLRS_STRUCT_SIZE, DLRS_BAD_ARG, DLRS_FLAGS: the options. Of their strides:
///            DLRS_BAD_ARG: a negative one; DLRS_OVERLAP_DST: elements would share memory;
///            DLRS_EXTENT_OVERFLOW, DLRS_SUBBYTE.
///            DLRS_NOMEM, DLRS_DEV_OOM: no memory; DLRS_MISALIGNED: the allocator's was less
///            aligned than requested. DLRS_UNSUPPORTED: the backend does not allocate. Classes 5
///            and 6: its driver.
/// Threads:   any.
/// Source:    "Producer" rules of dlpack.h: 256-byte alignment, strides since 1.2.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dlrs_tensor_new(
    shape: *const i64,
    ndim: i32,
    dtype: DLDataType,
    device: DLDevice,
    options: *const dlrs_alloc_options,
    out: *mut *mut DLManagedTensorVersioned,
    error: *mut dlrs_error,
) -> dlrs_status {
    let shape_given = optional(live(shape, Arg::shape));
    let pointers = (shape_given, optional(live(options, Arg::options)), result(out, Arg::out));
    // SAFETY: shape is NULL or holds ndim values; options and error are NULL or live, and so is
    // what options have; out is NULL or a writable variable.
    unsafe {
        run("dlrs_tensor_new", error, pointers, |(extents, options, out)| {
            let mut room = Array::new();
            let shape = values(start(extents), ndim, [Arg::shape, Arg::ndim], &mut room)?;
            let args = [Arg::shape, Arg::dtype, Arg::device];
            let asked = Prototype { shape, strides: null(), like: false, dtype, device, args };
            if options.is_none()
                && let Some((tensor, _)) = alloc::new_usual(shape, dtype, device, 0, 1 << 30)?
            {
                out.give(tensor);
                return Ok(());
            }
            with_request(&asked, options, &mut |request| made(request, &out))
        })
    }
}

fn made(request: &Request, out: &Out<*mut DLManagedTensorVersioned>) -> Result<()> {
    out.give(alloc::new(request)?);
    Ok(())
}

/// Names the argument that told the shape, the dtype or the device, whichever is at fault.
#[cold]
fn blamed(error: Error, [of_shape, of_dtype, of_device]: [Arg; 3]) -> Error {
    match error.member() {
        DLRS_FIELD_SHAPE => error.of(of_shape),
        DLRS_FIELD_DTYPE_CODE | DLRS_FIELD_DTYPE_BITS | DLRS_FIELD_DTYPE_LANES => {
            error.of(of_dtype)
        }
        DLRS_FIELD_DEVICE_TYPE | DLRS_FIELD_DEVICE_ID => error.of(of_device),
        _ => error,
    }
}

/// What a prototype tells, each value read once.
struct Prototype<'a> {
    shape: &'a [i64],
    /// Not read yet; they are for an order that follows them.
    strides: *const i64,
    /// Whether there is a prototype, which has strides to follow.
    like: bool,
    dtype: DLDataType,
    device: DLDevice,
    /// The arguments that told shape, dtype and device.
    args: [Arg; 3],
}

impl<'a> Prototype<'a> {
    /// Reads it, its shape into `room`; its data and byte_offset are not looked at.
    fn read(
        prototype: Live<DLTensor>,
        argument: Arg,
        room: &'a mut Array<i64, MAX_NDIM>,
    ) -> Result<Self> {
        let DLTensor { ndim, shape, strides, dtype, device, .. } = prototype.members();
        let n = validate::check_ndim(ndim).of(argument)?;
        // SAFETY: the shape of a live tensor is NULL or holds ndim values.
        let shape = unsafe { n_values(shape, n, argument, room) };
        let shape = shape.map_err(|e| e.field(DLRS_FIELD_SHAPE))?;
        Ok(Prototype { shape, strides, like: true, dtype, device, args: [argument; 3] })
    }
}

/// Allocate an uninitialised tensor of another one's shape, dtype and device.
///
/// Shape:     the prototype's; its data and byte_offset are never read, its strides only for order
///            'K' of the options.
/// Device:    the prototype's.
/// Ownership: nothing of the prototype is kept. All else as dlrs_tensor_new, whose shape, dtype and
///            device are the prototype here.
/// Source:    DLPackManagedTensorAllocator in dlpack.h.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dlrs_tensor_new_like(
    prototype: *const DLTensor,
    options: *const dlrs_alloc_options,
    out: *mut *mut DLManagedTensorVersioned,
    error: *mut dlrs_error,
) -> dlrs_status {
    let (prototype, given) = (live(prototype, Arg::prototype), live(options, Arg::options));
    // SAFETY: prototype, options and error are NULL or live, and so is what options have; out is
    // NULL or a writable variable.
    unsafe {
        let pointers = (prototype, optional(given), result(out, Arg::out));
        run("dlrs_tensor_new_like", error, pointers, |(prototype, options, out)| {
            let mut room = Array::new();
            let asked = Prototype::read(prototype, Arg::prototype, &mut room)?;
            with_request(&asked, options, &mut |request| made(request, &out))
        })
    }
}

/// Set the allocator of new tensors of a device type, for the whole process.
///
/// Bytes:     the allocator receives the size and the alignment of the data.
/// Device:    any known type, the CPU included.
/// Ownership: *allocator is copied during the call and the copy never freed: reuse one struct
///            instead of setting new ones. Its functions and context must stay valid until another
///            is set, calls that began before have returned, and the last tensor made with it is
///            freed. NULL restores the default. *old, when old is not NULL, receives the address of
///            the previous struct, or NULL.
/// Errors:    DLRS_DEVICE_TYPE: device_type is not known.
///            DLRS_MISALIGNED_STRUCT: allocator or old.
///            DLRS_STRUCT_SIZE: allocator->struct_size is too small.
///            DLRS_NULL_ARG: a function of the allocator is NULL.
///            DLRS_NOMEM: no memory for the copy. On any error *old is NULL.
/// Threads:   any; concurrent allocations use either allocator, and are freed by the same one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dlrs_allocator_set(
    device_type: DeviceCode,
    allocator: *const dlrs_allocator,
    old: *mut *const dlrs_allocator,
    error: *mut dlrs_error,
) -> dlrs_status {
    let pointers = (
        optional(live(allocator, Arg::allocator)),
        optional(result(old.cast::<*mut dlrs_allocator>(), Arg::old)),
    );
    // SAFETY: allocator is NULL or a live struct of the size that it says, error NULL or live, old
    // NULL or a writable variable, by the preface.
    unsafe {
        run("dlrs_allocator_set", error, pointers, |(allocator, old)| {
            let mut room = MaybeUninit::uninit();
            let table = allocator_of(allocator, "alloc or free", Arg::allocator, &mut room)?;
            let new = allocator.map(Live::as_ptr).zip(table);
            let before = alloc::allocator_set(device_type, new)
                .map_err(|e| e.field(DLRS_FIELD_NONE).of(Arg::device_type))?;
            if let Some(old) = old {
                old.set(before);
            }
            Ok(())
        })
    }
}
