//! Checks of source and destination of a copy or conversion.

use core::ptr::{NonNull, null_mut};

use crate::abi::{DLManagedTensorVersioned as Managed, *};
use crate::copy::ends::{self, Memory};
use crate::copy::options::{Options, PADDED, Streams};
use crate::device_type::{self, CPU};
use crate::dtype::word_of;
use crate::error::{Arg, Error, Field::*, Of, Result, Status, Status::*};
use crate::layout::MAX_NDIM;
use crate::overlap::Verdict;
use crate::registry;
use crate::validate::{Rules, Snapshot};
use crate::view::sharing::{self, Elements};

/// Two managed tensors of a caller: source and destination of a copy or conversion, or the two to
/// compare.
#[derive(Clone, Copy)]
pub struct Given {
    /// The first one.
    pub src: NonNull<Managed>,
    /// The second one.
    pub dst: NonNull<Managed>,
}

/// A bare tensor of a caller and the flags of its managed one.
#[derive(Clone, Copy)]
pub struct Described {
    /// The tensor.
    pub tensor: NonNull<DLTensor>,
    /// Its flags.
    pub flags: u64,
}

/// Two tensors, each read once, and their arguments, for the checks and their errors. Where one of
/// them was made of something else (bytes, a value), the argument is that.
pub struct Pair {
    /// The source, or the first of two that are compared.
    pub src: Snapshot,
    /// The destination, or the second one.
    pub dst: Snapshot,
    /// Which arguments they are.
    pub args: [Arg; 2],
}

impl Pair {
    /// Not read yet.
    #[inline(always)]
    pub const fn new(args: [Arg; 2]) -> Pair {
        Pair { src: Snapshot::new(), dst: Snapshot::new(), args }
    }

    /// Reads and checks both, the source first.
    ///
    /// # Safety
    /// Both are live.
    #[inline(always)]
    pub unsafe fn read(&mut self, given: Given, rules: Rules) -> Result<()> {
        let [source, target] = self.args;
        // SAFETY: both structs are live, with their shapes and strides.
        unsafe {
            self.src.read_managed(given.src.as_ptr(), rules).of(source)?;
            self.dst.read_managed(given.dst.as_ptr(), rules).of(target)
        }
    }

    /// As [`Pair::read`], of bare tensors.
    ///
    /// # Safety
    /// Both point to readable `DLTensor`s; shape and strides, where not NULL, hold `ndim` values.
    pub unsafe fn read_described(
        &mut self,
        [src, dst]: [Described; 2],
        rules: Rules,
    ) -> Result<()> {
        let [source, target] = self.args;
        // SAFETY: both point to readable `DLTensor`s; shape and strides, where not NULL, hold
        // `ndim` values.
        unsafe {
            self.src.read(src.tensor.as_ptr(), src.flags, rules).of(source)?;
            self.dst.read(dst.tensor.as_ptr(), dst.flags, rules).of(target)
        }
    }

    /// A destination that may be written, of the source's shape.
    #[inline(always)]
    pub fn check_target(&self) -> Result<()> {
        match self.dst.flags & DLPACK_FLAG_BITMASK_READ_ONLY {
            0 => self.check_same_shape(),
            _ => Err(read_only()).of(self.args[1]),
        }
    }

    /// Rejects different shapes; the error names the second.
    #[inline(always)]
    pub fn check_same_shape(&self) -> Result<()> {
        check_same_shape(&self.src, &self.dst).of(self.args[1])
    }

    /// Rejects different dtypes, except for padding; the error names the second.
    #[inline(always)]
    pub fn check_same_dtype(&self) -> Result<()> {
        check_same_dtype(&self.src, &self.dst).of(self.args[1])
    }

    #[inline(always)]
    pub(super) fn check_same_padding(&self) -> Result<()> {
        check_same_padding(&self.src, &self.dst).of(self.args[1])
    }

    /// Waits until the CPU may read the source and write the destination, both accessible to it.
    pub fn host_access(&self, streams: &Streams) -> Result<()> {
        ends::host_access(&memory(&self.src), &memory(&self.dst), streams)
    }

    /// Applies a check to each, the source first; the error names the one that fails.
    #[inline(always)]
    pub fn check_each(&self, check: impl Fn(&Snapshot) -> Result<()>) -> Result<()> {
        let [source, target] = self.args;
        check(&self.src).of(source)?;
        check(&self.dst).of(target)
    }

    /// Rejects a destination whose elements share memory. Returns whether it shares memory with the
    /// source; rejected unless allowed. The error names the destination.
    pub fn check_memory(&self, allowed: bool) -> Result<bool> {
        let Pair { src, dst, args: [_, target] } = self;
        check_distinct(dst).of(*target)?;
        match Places::of(src, dst).apart(src, dst) {
            true => Ok(false),
            false => check_shared(src, dst, allowed).of(*target),
        }
    }
}

#[cold]
#[inline(never)]
fn read_only() -> Error {
    Error::new(DLRS_READ_ONLY).field(DLRS_FIELD_FLAGS)
}

/// Rejects a tensor to be written whose elements share memory.
#[inline(never)]
pub(super) fn check_distinct(dst: &Snapshot) -> Result<()> {
    match sharing::self_verdict(dst.shape(), dst.strides(), dst.slot_bits()) {
        Verdict::Disjoint => Ok(()),
        verdict => Err(overlap_error(DLRS_OVERLAP_DST, verdict).field(DLRS_FIELD_STRIDES)),
    }
}

/// Whether source and destination share memory; rejected unless allowed.
#[inline(never)]
pub(super) fn check_shared(src: &Snapshot, dst: &Snapshot, allowed: bool) -> Result<bool> {
    match sharing::pair_verdict(&elements(src), &elements(dst)) {
        Verdict::Disjoint => Ok(false),
        _ if allowed => Ok(true),
        verdict => Err(overlap_error(DLRS_OVERLAP_SRC_DST, verdict)),
    }
}

/// Where element (0, ..., 0) of source and destination is.
pub(super) struct Places {
    pub(super) src: *mut u8,
    pub(super) dst: *mut u8,
    /// They are of [`same_origin`], and in one address space.
    comparable: bool,
}

impl Places {
    #[inline(always)]
    pub(super) fn of(src: &Snapshot, dst: &Snapshot) -> Places {
        let unified = |tensor: &Snapshot| device_type::unified_addresses(tensor.device.device_type);
        let comparable =
            same_origin(src, dst) && (src.device == dst.device || unified(src) && unified(dst));
        Places { src: place(src), dst: place(dst), comparable }
    }

    /// Whether the two certainly share no memory: all bytes of one are before all those of the
    /// other. Both are inside the address space, or the handle's object, which has been checked.
    #[inline(always)]
    pub(super) fn apart(&self, src: &Snapshot, dst: &Snapshot) -> bool {
        let bytes = |place: *mut u8, (low, high): (i64, i64)| {
            let place = place as u64;
            (place.wrapping_add_signed(low), place.wrapping_add_signed(high))
        };
        let (src, dst) = (bytes(self.src, src.byte_extent), bytes(self.dst, dst.byte_extent));
        !self.comparable || src.1 <= dst.0 || dst.1 <= src.0
    }

    /// Whether both are the same view of the same memory, so that there is nothing to copy.
    #[inline(always)]
    pub(super) fn same(&self, src: &Snapshot, dst: &Snapshot) -> bool {
        self.src == self.dst && self.comparable && same_view(src, dst)
    }
}

#[inline(never)]
fn same_view(src: &Snapshot, dst: &Snapshot) -> bool {
    let mut dims = src.shape().iter().zip(src.strides().iter().zip(dst.strides()));
    same_slots(src, dst) && dims.all(|(&extent, (from, to))| extent == 1 || from == to)
}

/// Whether two tensors of one dtype have equal strides.
#[inline(always)]
pub(super) fn same_slots(src: &Snapshot, dst: &Snapshot) -> bool {
    (src.flags ^ dst.flags) & PADDED == 0 || src.slot_bits() == dst.slot_bits()
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

fn overlap_error(status: Status, verdict: Verdict) -> Error {
    match verdict {
        Verdict::Undecided => {
            Error::new(status).detail("whether memory is shared cannot be decided")
        }
        _ => Error::new(status),
    }
}

#[inline(always)]
fn check_same_shape(src: &Snapshot, dst: &Snapshot) -> Result<()> {
    let mut extents = src.shape().iter().zip(dst.shape());
    match src.shape().len() == dst.shape().len() && extents.all(|(from, to)| from == to) {
        true => Ok(()),
        false => other_shape(src, dst),
    }
}

#[cold]
#[inline(never)]
fn other_shape(src: &Snapshot, dst: &Snapshot) -> Result<()> {
    let error = Error::new(DLRS_SHAPE_MISMATCH);
    let (from, to) = (src.shape(), dst.shape());
    if from.len() != to.len() {
        let error = error
            .field(DLRS_FIELD_NDIM)
            .detail("numbers of dimensions differ\0Reshape or expand one of the two first.");
        return Err(error.value(to.len() as i64).limit(from.len() as i64));
    }
    match from.iter().zip(to).enumerate().find(|(_, (from, to))| from != to) {
        None => Ok(()),
        Some((dim, (&from, &to))) => {
            Err(error.field(DLRS_FIELD_SHAPE).dim(dim).value(to).limit(from))
        }
    }
}

#[inline(always)]
fn check_same_dtype(src: &Snapshot, dst: &Snapshot) -> Result<()> {
    if src.dtype == dst.dtype { Ok(()) } else { other_dtype(src, dst) }
}

#[cold]
#[inline(never)]
fn other_dtype(src: &Snapshot, dst: &Snapshot) -> Result<()> {
    let error = Error::new(DLRS_DTYPE_MISMATCH);
    let (from, to) = (src.dtype, dst.dtype);
    for (field, same) in [
        (DLRS_FIELD_DTYPE_CODE, from.code == to.code),
        (DLRS_FIELD_DTYPE_BITS, from.bits == to.bits),
        (DLRS_FIELD_DTYPE_LANES, from.lanes == to.lanes),
    ] {
        if !same {
            return Err(error.field(field).dtypes(word_of(to), Some(word_of(from))));
        }
    }
    Ok(())
}

#[inline(always)]
fn check_same_padding(src: &Snapshot, dst: &Snapshot) -> Result<()> {
    if same_slots(src, dst) { Ok(()) } else { other_padding(src, dst) }
}

#[cold]
#[inline(never)]
fn other_padding(src: &Snapshot, dst: &Snapshot) -> Result<()> {
    let error = Error::new(DLRS_DTYPE_MISMATCH);
    let error = error.field(DLRS_FIELD_FLAGS).detail(
        "one is packed and the other padded\0Convert with dlrs_cast.\0Convert with astype().",
    );
    Err(error.value((dst.flags & PADDED) as i64).limit((src.flags & PADDED) as i64))
}

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

fn memory(tensor: &Snapshot) -> Memory {
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
