//! Allocation: header, extents, strides and CPU data in one block, or data from an allocator.

use core::ffi::c_void;
use core::ptr::{NonNull, null_mut};

use super::Versioned;
use super::block::{self, Allocation, Block, Data, Owner, Spec};
use crate::abi::*;
use crate::device_type::{self, CPU};
use crate::dtype;
use crate::error::{Error, Field::*, NOBODY, Result, Status::*};
use crate::layout::{self, MAX_NDIM, Order};
use crate::overlap::Verdict;
use crate::per_kind::PerKind;
use crate::plugged::Plugged;
use crate::registry;
use crate::view::sharing::self_verdict;

/// Data of our own tensors is aligned to this, as DLPack requires.
pub const ALIGN_BYTES: usize = 256;
/// The largest alignment.
pub const ALIGN_BYTES_MAX: u64 = 1 << 30;

/// A caller's allocator for the data of tensors. Every member must be set; both functions may be
/// called on any thread.
#[repr(C)]
#[derive(Clone, Copy, PartialEq)]
#[allow(unpredictable_function_pointer_comparisons)] // another address: another table
#[allow(non_camel_case_types)]
pub struct dlrs_allocator {
    /// `sizeof(dlrs_allocator)`.
    pub struct_size: u32,
    /// Passed to both functions.
    pub context: *mut c_void,
    /// Returns `nbytes` (above 0) bytes on `device`, aligned to `align_bytes` (a power of two), or
    /// NULL.
    pub alloc: Option<
        unsafe extern "C" fn(
            context: *mut c_void,
            nbytes: u64,
            align_bytes: u64,
            device: DLDevice,
        ) -> *mut c_void,
    >,
    /// Frees what `alloc` returned for the same three values.
    pub free: Option<
        unsafe extern "C" fn(
            context: *mut c_void,
            data: *mut c_void,
            nbytes: u64,
            align_bytes: u64,
            device: DLDevice,
        ),
    >,
}

// SAFETY: its functions may be called on any thread; `context` is only passed to them.
unsafe impl Sync for dlrs_allocator {}

/// The properties of a new tensor.
pub struct Request<'a> {
    /// Extents.
    pub shape: &'a [i64],
    /// Order of the compact strides, or the strides themselves.
    pub strides: Option<&'a [i64]>,
    /// Element type.
    pub dtype: DLDataType,
    /// Device.
    pub device: DLDevice,
    /// Flags of the result.
    pub flags: u64,
    /// Alignment of the data, a power of two.
    pub align_bytes: usize,
    /// Allocator of the data; `None` for the default.
    pub allocator: Option<&'a dlrs_allocator>,
}

impl<'a> Request<'a> {
    /// A row-major tensor, aligned as by default.
    pub const fn dense(shape: &'a [i64], dtype: DLDataType, device: DLDevice) -> Request<'a> {
        let align_bytes = ALIGN_BYTES;
        Request { shape, strides: None, dtype, device, flags: 0, align_bytes, allocator: None }
    }
}

/// The alignment of an options struct: 0 is the default, else a power of two.
pub fn check_align(align_bytes: u64) -> Result<usize> {
    match align_bytes {
        0 => Ok(ALIGN_BYTES),
        n if n.is_power_of_two() && n <= ALIGN_BYTES_MAX => Ok(n as usize),
        n => {
            let error = Error::new(DLRS_BAD_ARG).option(
                "align_bytes\0\
                 is no power of two, or too large\0Give a power of two up to the limit.",
            );
            Err(error.value_u64(n).limit_u64(ALIGN_BYTES_MAX))
        }
    }
}

/// Bytes of the data of a compact tensor: everything is checked, nothing is allocated.
pub fn data_nbytes(request: &Request) -> Result<usize> {
    dtype::legal(request.dtype)?;
    device_type::check(request.device)?;
    let item_bits = dtype::slot_bits(request.dtype, request.flags);
    let numel = match layout::plain_numel(request.shape) {
        Some(numel) => numel,
        None if layout::check_shape(request.shape)? => return Ok(0),
        None => layout::numel(request.shape)?,
    };
    let compact = layout::packed_nbytes(numel, item_bits)? as usize;
    match request.strides {
        None => Ok(compact),
        Some(strides) => Ok(layout::byte_extent(request.shape, strides, item_bits)?.1 as usize),
    }
}

/// Rejects strides that a new tensor cannot have: negative, or such that elements share memory.
pub fn check_strides(shape: &[i64], strides: &[i64], dtype: DLDataType, flags: u64) -> Result<()> {
    let error = |status, dim, stride: i64| {
        Error::new(status).field(DLRS_FIELD_STRIDES).dim(dim).value(stride)
    };
    let plain = layout::check_shape(shape).is_ok_and(|empty| !empty);
    if !plain || layout::numel(shape).is_err() {
        return Ok(()); // empty, or what is wrong is said of the shape
    }
    for (dim, (&extent, &stride)) in shape.iter().zip(strides).enumerate() {
        if extent > 1 && stride < 0 {
            const NEGATIVE: &str = "a new tensor has no negative strides\0Flip it instead.";
            return Err(error(DLRS_BAD_ARG, dim, stride).limit(0).detail(NEGATIVE));
        }
    }
    let item_bits = dtype::slot_bits(dtype, flags);
    let (_, end) = layout::byte_extent(shape, strides, item_bits)?;
    if isize::try_from(end).is_err() {
        return Err(Error::new(DLRS_EXTENT_OVERFLOW).field(DLRS_FIELD_STRIDES).value(end));
    }
    if !item_bits.is_multiple_of(8) && !layout::is_contiguous(shape, strides, Order::C) {
        let error = Error::new(DLRS_SUBBYTE).field(DLRS_FIELD_STRIDES);
        const GAPS: &str = "packed elements of less than a byte are row-major without gaps\0\
                            Leave the strides out.";
        return Err(error.detail(GAPS));
    }
    match self_verdict(shape, strides, item_bits) {
        Verdict::Disjoint => Ok(()),
        _ => {
            let error = Error::new(DLRS_OVERLAP_DST).field(DLRS_FIELD_STRIDES);
            Err(error.detail("elements would share memory\0Give larger strides."))
        }
    }
}

/// The size of a common tensor: in host memory without a caller's allocator, row-major, of elements
/// of whole bytes, of fewer bytes than `limit`, not empty. `None` for any other, which [`new`]
/// checks.
#[inline(always)]
pub fn new_usual(
    shape: &[i64],
    dtype: DLDataType,
    device: DLDevice,
    flags: u64,
    limit: usize,
) -> Result<Option<(Versioned, usize)>> {
    let item_nbytes = dtype::plain_bytes(dtype);
    if item_nbytes == 0 || device != CPU || served(CPU.device_type) {
        return Ok(None);
    }
    let numel = layout::plain_numel(shape).and_then(|numel| usize::try_from(numel).ok());
    match numel.and_then(|numel| numel.checked_mul(item_nbytes as usize)) {
        Some(nbytes) if nbytes < limit => {
            let (data, owner) = (Data::Inside(nbytes, ALIGN_BYTES), Owner::Block);
            let spec = Spec { shape, strides: None, dtype, device, flags, data, owner };
            Ok(Some((Block::versioned(block::new_here(&spec)?), nbytes)))
        }
        _ => Ok(None),
    }
}

/// Allocates a tensor. Its data is not initialised; a tensor of size zero has none.
pub fn new(request: &Request) -> Result<Versioned> {
    new_sized(request, data_nbytes(request)?)
}

/// As [`new`], for a request whose shape and dtype have been checked to need `nbytes` bytes.
pub fn new_sized(request: &Request, nbytes: usize) -> Result<Versioned> {
    match request.allocator.or_else(|| ALLOCATORS.get(request.device.device_type)) {
        Some(allocator) if nbytes > 0 => new_from(request, nbytes, allocator),
        _ if request.device.device_type == DLDeviceType::kDLCPU as i32 || nbytes == 0 => {
            let data = Data::Inside(nbytes, request.align_bytes);
            Ok(Block::versioned(block::new(&spec(request, data, Owner::Block))?))
        }
        _ => new_on_device(request, nbytes),
    }
}

/// Data from the backend of the device.
#[inline(never)]
fn new_on_device(request: &Request, nbytes: usize) -> Result<Versioned> {
    let device = request.device;
    let plugged = registry::registered(device.device_type);
    let Some(backend) = registry::of(device.device_type, plugged) else {
        return Err(registry::unserved(device.device_type));
    };
    let (nbytes, align_bytes) = (nbytes as u64, request.align_bytes as u64);
    let data = backend.alloc(device, nbytes, align_bytes, null_mut())?.as_ptr();
    let context = plugged.map_or(null_mut(), |plugged| (&raw const *plugged).cast_mut().cast());
    let free = give_back_to_device;
    owned(request, Allocation { free, context, data, nbytes, align_bytes, device })
}

/// A tensor that owns memory just allocated, which is given back on error.
fn owned(request: &Request, allocation: Allocation) -> Result<Versioned> {
    let spec = spec(request, Data::At(allocation.data, 0), Owner::Allocator(allocation));
    // SAFETY: just allocated, and without a block nobody uses it.
    block::new(&spec).map(Block::versioned).inspect_err(|_| unsafe { allocation.give_back() })
}

/// `context` is the registered backend that allocated, or NULL for the library's own. A deleter
/// cannot fail: if the driver fails, at the end of the process, the memory is leaked.
unsafe extern "C" fn give_back_to_device(
    context: *mut c_void,
    data: *mut c_void,
    nbytes: u64,
    align_bytes: u64,
    device: DLDevice,
) {
    // SAFETY: the context that `new_on_device` kept; registered backends stay.
    let plugged = unsafe { context.cast::<Plugged>().as_ref() };
    let backend = registry::of(device.device_type, plugged);
    if let (Some(backend), Some(data)) = (backend, NonNull::new(data)) {
        // SAFETY: as it was allocated; NULL: after all work of the device.
        let _ = unsafe { backend.free(device, data, nbytes, align_bytes, null_mut()) };
    }
}

/// Whether an allocator was set for a device type.
pub fn served(device_type: DeviceCode) -> bool {
    ALLOCATORS.get(device_type).is_some()
}

fn spec<'a>(request: &'a Request, data: Data, owner: Owner) -> Spec<'a> {
    Spec {
        shape: request.shape,
        strides: request.strides,
        dtype: request.dtype,
        device: request.device,
        flags: request.flags,
        data,
        owner,
    }
}

fn new_from(request: &Request, nbytes: usize, allocator: &dlrs_allocator) -> Result<Versioned> {
    let (Some(alloc), Some(free)) = (allocator.alloc, allocator.free) else {
        let error = Error::new(DLRS_NULL_ARG).option("allocator's alloc or free");
        return Err(error);
    };
    let (nbytes, align_bytes) = (nbytes as u64, request.align_bytes as u64);
    let (context, device) = (allocator.context, request.device);
    // SAFETY: `nbytes` is above 0, `align_bytes` a power of two, and `context` the allocator's own.
    let data = unsafe { alloc(context, nbytes, align_bytes, device) };
    if data.is_null() {
        return Err(Error::new(DLRS_NOMEM)
            .value_u64(nbytes)
            .detail("allocator returned no memory"));
    }
    let allocation = Allocation { free, context, data, nbytes, align_bytes, device };
    let off = data as u64 & (align_bytes - 1);
    if off != 0 {
        // SAFETY: just allocated, and not used.
        unsafe { allocation.give_back() };
        let off = off & off.wrapping_neg();
        let error = Error::new(DLRS_MISALIGNED).value_u64(off).limit_u64(align_bytes).of(NOBODY);
        return Err(error.detail("allocator returned memory that is not aligned as requested"));
    }
    owned(request, allocation)
}

/// Allocators set for a device type. None: the library's own.
static ALLOCATORS: PerKind<dlrs_allocator> = PerKind::new();

/// Sets the allocator of a device type, read from the caller's struct, or none; returns the address
/// of the previous struct.
pub fn allocator_set(
    device_type: DeviceCode,
    new: Option<(*mut dlrs_allocator, &dlrs_allocator)>,
) -> Result<*mut dlrs_allocator> {
    ALLOCATORS.set(device_type, new)
}

/// Strides of a compact layout in `order`, which for K follows those of `like`.
pub fn strides_for(shape: &[i64], order: Order, like: &[i64]) -> [i64; MAX_NDIM] {
    let mut strides = [0; MAX_NDIM];
    match order {
        Order::K => layout::like_strides(shape, like, &mut strides),
        order => layout::compact_strides(shape, order, &mut strides),
    }
    strides
}
