//! Checks of one tensor of a copy, where its elements are, and what else one of the two is to it.

use core::ptr::null_mut;

use crate::abi::*;
use crate::copy::ends::{self, Memory};
use crate::copy::options::{Options, Streams};
use crate::device_type::{self, CPU};
use crate::error::{Error, Field::*, Result, Status::*};
use crate::layout::MAX_NDIM;
use crate::registry;
use crate::validate::{Rules, Snapshot};
use crate::view::sharing::Elements;

/// Whether the elements can be copied: by the CPU, or by the backend of their device.
#[inline(always)]
pub fn check_copyable(tensor: &Snapshot, options: &Options) -> Result<()> {
    check_movable(tensor, options)?;
    match tensor.device == CPU || device_type::host_reachable(tensor.device.device_type) {
        true => Ok(()),
        false => check_served(tensor),
    }
}

#[inline(never)]
fn check_served(tensor: &Snapshot) -> Result<()> {
    registry::required(tensor.device.device_type)?;
    if is_handle(tensor) && !tensor.empty {
        check_handle(tensor)?;
    }
    Ok(())
}

pub(super) fn memory(tensor: &Snapshot) -> Memory {
    Memory { device: tensor.device, first: tensor.first(), ready: ends::ready_of(tensor) }
}

/// Waits until the CPU may read a tensor that it can access: a device may still be writing managed
/// memory on its default stream, or any memory on the given stream.
pub fn host_read(tensor: &Snapshot, streams: &Streams) -> Result<()> {
    let nowhere = Memory { device: CPU, first: core::ptr::null(), ready: None };
    ends::host_access(&memory(tensor), &nowhere, streams)
}

/// Whether the elements can be read and written by the CPU.
pub fn check_host(tensor: &Snapshot, options: &Options) -> Result<()> {
    check_movable(tensor, options)?;
    if device_type::host_reachable(tensor.device.device_type) {
        return Ok(());
    }
    let error = Error::new(DLRS_DEVICE_TYPE).field(DLRS_FIELD_DEVICE_TYPE);
    let error = error.detail(
        "the CPU cannot access this device's memory\0\
                              Copy it with dlrs_to_device first.\0Copy it by to('cpu') first.",
    );
    Err(error.value(tensor.device.device_type.into()))
}

/// Checks with the device's driver, if the rules require it, that the memory is of the tensor's
/// device. Passes where the backend cannot tell, or memory has no driver.
pub fn check_pointer(tensor: &Snapshot, rules: Rules) -> Result<()> {
    let said = tensor.device;
    let cpu = said.device_type == DLDeviceType::kDLCPU as i32;
    if !rules.driver || tensor.empty || cpu || is_handle(tensor) {
        return Ok(());
    }
    let backend = registry::required(said.device_type)?;
    let known = match backend.pointer(tensor.first().cast()) {
        Err(error) if error.status() == DLRS_UNSUPPORTED => return Ok(()),
        known => known?,
    };
    let error = Error::new(DLRS_DEVICE_TYPE).field(DLRS_FIELD_DEVICE_TYPE);
    let error =
        error.detail("the driver reports another device type for this memory\0Give that type.");
    if known.device.device_type != said.device_type {
        return Err(error.value(said.device_type.into()).limit(known.device.device_type.into()));
    }
    let error = Error::new(DLRS_DEVICE_ID).field(DLRS_FIELD_DEVICE_ID);
    let error =
        error.detail("the driver reports another device for this memory\0Give its ordinal.");
    if known.device.device_id != said.device_id {
        return Err(error.value(said.device_id.into()).limit(known.device.device_id.into()));
    }
    match known.nbytes {
        0 => Ok(()),
        nbytes => tensor.check_within(known.base.cast(), nbytes),
    }
}

#[inline(always)]
fn check_movable(tensor: &Snapshot, options: &Options) -> Result<()> {
    match !is_opaque(tensor.dtype) || options.raw_bytes {
        true => Ok(()),
        false => opaque(tensor),
    }
}

#[cold]
#[inline(never)]
fn opaque(tensor: &Snapshot) -> Result<()> {
    let error = Error::new(DLRS_UNSUPPORTED).field(DLRS_FIELD_DTYPE_CODE);
    let error = error.detail(
        "opaque handles are copied only as raw bytes\0\
                              Set DLRS_COPY_RAW_BYTES.\0View them as uint8.",
    );
    Err(error.value(tensor.dtype.code.into()))
}

/// Whether elements are opaque handles, which are copied only on request.
#[inline(always)]
pub fn is_opaque(dtype: DLDataType) -> bool {
    dtype.code == DLDataTypeCode::kDLOpaqueHandle as u8
}

/// An opaque handle that is not NULL, and offsets into it that are not negative.
fn check_handle(tensor: &Snapshot) -> Result<()> {
    if tensor.data.is_null() {
        return Err(Error::new(DLRS_DATA_NULL).field(DLRS_FIELD_DATA));
    }
    let (low, high) = tensor.byte_extent;
    let inside = i64::try_from(tensor.byte_offset)
        .is_ok_and(|offset| offset >= low.wrapping_neg() && offset.checked_add(high).is_some());
    if inside {
        return Ok(());
    }
    let error = Error::new(DLRS_OFFSET).field(DLRS_FIELD_BYTE_OFFSET);
    Err(error.value_u64(tensor.byte_offset))
}

/// Whether `data` is an opaque handle, which only `byte_offset` can move.
#[inline(always)]
pub fn is_handle(tensor: &Snapshot) -> bool {
    tensor.device != CPU && device_type::opaque_handle(tensor.device.device_type)
}

/// Where element (0, ..., 0) is: an address, or bytes from the start of the handle's object.
#[inline(always)]
pub(super) fn place(tensor: &Snapshot) -> *mut u8 {
    match is_handle(tensor) {
        true => null_mut::<u8>().wrapping_add(tensor.byte_offset as usize),
        false => tensor.first(),
    }
}

/// A tensor's elements, relative to any origin.
pub fn elements(tensor: &Snapshot) -> Elements<'_> {
    Elements {
        address: place(tensor) as u64,
        shape: tensor.shape(),
        strides: tensor.strides(),
        item_bits: tensor.slot_bits(),
    }
}

/// Whether both are addresses, or both offsets into the same object.
#[inline(always)]
pub fn same_origin(a: &Snapshot, b: &Snapshot) -> bool {
    match (is_handle(a), is_handle(b)) {
        (false, false) => true,
        (true, true) => (a.device, a.data) == (b.device, b.data),
        _ => false,
    }
}

/// Strides in bits; 0 where the extent is 1.
pub fn bit_strides(tensor: &Snapshot) -> impl Iterator<Item = Result<i64>> + use<'_> {
    let slots = i64::from(tensor.slot_bits());
    let pairs = tensor.shape().iter().zip(tensor.strides());
    pairs.enumerate().map(move |(dim, (&extent, &stride))| match stride.checked_mul(slots) {
        _ if extent == 1 => Ok(0),
        Some(stride) => Ok(stride),
        None => {
            let error = Error::new(DLRS_EXTENT_OVERFLOW).field(DLRS_FIELD_STRIDES);
            Err(error.dim(dim).value(stride))
        }
    })
}

/// Reads a tensor in host memory: its address, and its strides unless it is compact row-major.
/// `flags` are its own.
///
/// # Safety
/// The elements stay readable as long as the snapshot is used.
#[inline(never)]
pub unsafe fn host_view(
    shape: &[i64],
    dtype: DLDataType,
    (data, strides): (*mut u8, Option<&[i64; MAX_NDIM]>),
    flags: u64,
    out: &mut Snapshot,
) -> Result<()> {
    let view = DLTensor {
        data: data.cast(),
        device: CPU,
        ndim: shape.len() as i32,
        dtype,
        shape: shape.as_ptr().cast_mut(),
        strides: strides.map_or(null_mut(), |strides| strides.as_ptr().cast_mut()),
        byte_offset: 0,
    };
    // SAFETY: a struct of our own; shape and strides hold `ndim` values.
    unsafe { out.read(&raw const view, flags, Rules::RAW) }
}
