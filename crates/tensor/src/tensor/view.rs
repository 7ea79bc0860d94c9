//! Views: tensors over memory that another tensor owns.

use core::ffi::c_void;
use core::ptr::{NonNull, null_mut};

use super::block::{self, Block, Data, Owner, Spec};
use super::{Versioned, wrap};
use crate::abi::*;
use crate::device_type;
use crate::error::{Error, Field::*, Result, Status::*};
use crate::validate::{Snapshot, check_addressed};
use crate::view::View;

/// Where the elements of a view are.
pub struct Place {
    /// `data`.
    pub data: *mut c_void,
    /// `byte_offset`.
    pub byte_offset: u64,
}

/// The properties of a view's base that do not change with the layout.
pub struct Base {
    data: *mut u8,
    byte_offset: u64,
    /// The device.
    pub device: DLDevice,
    /// First byte that it uses and one past the last, from its first element.
    pub byte_extent: (i64, i64),
}

/// Starts with the view of all of `base`, whose layout has been checked: it takes its place.
#[inline(always)]
pub fn start(base: &mut Snapshot) -> (Base, View<'_>) {
    // A view shares memory with its base, so neither is solely owned.
    let flags = base.flags & !DLPACK_FLAG_BITMASK_IS_COPIED;
    let &mut Snapshot { data, byte_offset, device, byte_extent, dtype, .. } = base;
    (Base { data, byte_offset, device, byte_extent }, View::of(&mut base.dims, dtype, flags))
}

/// Where the elements of a view of `base` are: `byte_offset` has the difference, so that opaque
/// handles can be viewed too; `data` changes only if the offset would be negative.
#[inline(always)]
pub fn place(base: &Base, view: &View) -> Result<Place> {
    let Some(moved) = view.settle(base.byte_extent)? else {
        return Ok(Place { data: null_mut(), byte_offset: 0 });
    };
    match base.byte_offset.checked_add_signed(moved) {
        Some(byte_offset) if !view.fold => Ok(Place { data: base.data.cast(), byte_offset }),
        _ => place_any(base, view, moved),
    }
}

/// As [`place`], for a view whose first element is so many bytes after that of `base`.
#[inline(never)]
fn place_any(base: &Base, view: &View, moved: i64) -> Result<Place> {
    let byte_offset = i128::from(base.byte_offset) + i128::from(moved);
    if view.fold && byte_offset != 0 {
        check_addressed(base.device)?;
    }
    match u64::try_from(byte_offset) {
        Err(_) if device_type::opaque_handle(base.device.device_type) => {
            let error = Error::new(DLRS_OFFSET).field(DLRS_FIELD_BYTE_OFFSET).value(moved);
            Err(error.detail("the view would start before the handle's memory, bytes moved"))
        }
        _ => {
            let data = base.data.wrapping_offset(byte_offset as isize).cast();
            Ok(Place { data, byte_offset: 0 })
        }
    }
}

/// The bytes of a dense tensor in memory order, as a 1-d tensor that keeps it alive.
///
/// # Safety
/// `tensor` is a live block of ours, from which `base` was read.
pub unsafe fn bytes(base: &Snapshot, tensor: NonNull<Block>, flags: u64) -> Result<Versioned> {
    let shape = [base.nbytes()? as i64];
    let spec = Spec {
        shape: &shape,
        strides: None,
        dtype: DLDataType { code: DLDataTypeCode::kDLUInt as u8, bits: 8, lanes: 1 },
        flags,
        ..wrap::spec_of(base, flags, Owner::Versioned(Block::versioned(tensor)))
    };
    // SAFETY: `tensor` is a live block of ours.
    unsafe { block::shared(&spec, tensor) }.map(Block::versioned)
}

/// A tensor for `view` of `tensor`, which it keeps alive by its own reference.
///
/// # Safety
/// `tensor` is a live block of ours, from which `base` was read.
pub unsafe fn share(view: &View, tensor: NonNull<Block>, base: &Base) -> Result<Versioned> {
    let place = place(base, view)?;
    let spec = Spec {
        shape: view.shape(),
        strides: Some(view.strides()),
        dtype: view.dtype,
        device: base.device,
        flags: view.flags,
        data: Data::At(place.data, place.byte_offset),
        owner: Owner::Versioned(Block::versioned(tensor)),
    };
    // SAFETY: `tensor` is a live block of ours.
    unsafe { block::sharing(&spec, tensor) }.map(Block::versioned)
}
