//! What source and destination of a copy or conversion must satisfy.

use core::ptr::{NonNull, null_mut};

use crate::abi::{DLManagedTensorVersioned as Managed, *};
use crate::copy::route::{self, Memory};
use crate::copy::{Options, PADDED, Streams};
use crate::device::registry;
use crate::device_type::{self, CPU};
use crate::error::{Arg, Error, Field::*, Of, Result, Status, Status::*};
use crate::overlap::Verdict;
use crate::validate::{Rules, Snapshot};
use crate::view::sharing::{self, Elements};

/// Two managed tensors of a caller's, as they were given: source and destination of a copy or
/// conversion, or what is compared.
#[derive(Clone, Copy)]
pub struct Given {
    /// The first one.
    pub src: NonNull<Managed>,
    /// The second one.
    pub dst: NonNull<Managed>,
}

/// A bare tensor of a caller's and the flags of the managed one around it.
#[derive(Clone, Copy)]
pub struct Described {
    /// The tensor.
    pub tensor: NonNull<DLTensor>,
    /// Its flags.
    pub flags: u64,
}

/// Two tensors, each read once, and which arguments they are: what all checks of a pair look at,
/// and whom their errors name. Where one of them stands for something else (bytes, a value), it is
/// the argument that gave this.
pub struct Pair {
    /// The source, or the first of two that are compared.
    pub src: Snapshot,
    /// The destination, or the second one.
    pub dst: Snapshot,
    /// Which arguments they are.
    pub args: [Arg; 2],
}

impl Pair {
    /// To be read.
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
        // SAFETY: the caller's word.
        unsafe {
            self.src.read_managed(given.src.as_ptr(), rules).of(source)?;
            self.dst.read_managed(given.dst.as_ptr(), rules).of(target)
        }
    }

    /// As [`Pair::read`], of bare tensors.
    ///
    /// # Safety
    /// As there.
    pub unsafe fn read_described(
        &mut self,
        [src, dst]: [Described; 2],
        rules: Rules,
    ) -> Result<()> {
        let [source, target] = self.args;
        // SAFETY: the caller's word.
        unsafe {
            self.src.read(src.tensor.as_ptr(), src.flags, rules).of(source)?;
            self.dst.read(dst.tensor.as_ptr(), dst.flags, rules).of(target)
        }
    }

    /// A destination that may be written, of the source's shape.
    pub fn check_target(&self) -> Result<()> {
        let [_, target] = self.args;
        if self.dst.flags & DLPACK_FLAG_BITMASK_READ_ONLY != 0 {
            let error = Error::new(DLRS_READ_ONLY).field(DLRS_FIELD_FLAGS).of(target);
            return Err(error.value_u64(self.dst.flags));
        }
        self.check_same_shape()
    }

    /// Refuses different shapes; the second is at fault.
    pub fn check_same_shape(&self) -> Result<()> {
        check_same_shape(&self.src, &self.dst).of(self.args[1])
    }

    /// Refuses different dtypes, padding apart; the second is at fault.
    pub fn check_same_dtype(&self) -> Result<()> {
        check_same_dtype(&self.src, &self.dst).of(self.args[1])
    }

    pub(super) fn check_same_padding(&self) -> Result<()> {
        check_same_padding(&self.src, &self.dst).of(self.args[1])
    }

    /// Waits until the CPU may read the source and write the destination, both of which it reaches.
    pub fn host_access(&self, streams: &Streams) -> Result<()> {
        route::host_access(&memory(&self.src), &memory(&self.dst), streams)
    }

    /// Asks a question of each, the source first; who fails it is at fault.
    pub fn check_each(&self, check: impl Fn(&Snapshot) -> Result<()>) -> Result<()> {
        let [source, target] = self.args;
        check(&self.src).of(source)?;
        check(&self.dst).of(target)
    }

    /// Whether the two share memory; refused unless allowed, and the destination is at fault.
    pub fn check_memory(&self, allowed: bool) -> Result<bool> {
        check_memory(&self.src, &self.dst, allowed).of(self.args[1])
    }
}

/// Whether source and destination share memory; refused unless allowed.
#[inline(never)]
fn check_memory(src: &Snapshot, dst: &Snapshot, allowed: bool) -> Result<bool> {
    match sharing::self_verdict(dst.shape(), dst.strides(), dst.slot_bits()) {
        Verdict::Disjoint => {}
        verdict => return Err(overlap_error(DLRS_OVERLAP_DST, verdict).field(DLRS_FIELD_STRIDES)),
    }
    if !comparable(src, dst) || apart(src, dst) {
        return Ok(false);
    }
    match sharing::pair_verdict(&elements(src), &elements(dst)) {
        Verdict::Disjoint => Ok(false),
        _ if allowed => Ok(true),
        verdict => Err(overlap_error(DLRS_OVERLAP_SRC_DST, verdict)),
    }
}

/// Whether all bytes of one come before all those of the other.
pub(super) fn apart(a: &Snapshot, b: &Snapshot) -> bool {
    let bytes = |tensor: &Snapshot| {
        let (first, (low, high)) = (place(tensor) as i128, tensor.byte_extent);
        (first + i128::from(low), first + i128::from(high))
    };
    let (a, b) = (bytes(a), bytes(b));
    a.1 <= b.0 || b.1 <= a.0
}

/// A tensor's elements, wherever its places are counted from.
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
            Error::new(status).detail("sharing of memory is undecided within bounds, so refused")
        }
        _ => Error::new(status),
    }
}

fn check_same_shape(src: &Snapshot, dst: &Snapshot) -> Result<()> {
    let error = Error::new(DLRS_SHAPE_MISMATCH);
    let (from, to) = (src.shape(), dst.shape());
    if from.len() != to.len() {
        let error = error.field(DLRS_FIELD_NDIM).detail("ranks differ");
        return Err(error.value(to.len() as i64).limit(from.len() as i64));
    }
    match from.iter().zip(to).enumerate().find(|(_, (from, to))| from != to) {
        None => Ok(()),
        Some((dim, (&from, &to))) => {
            Err(error.field(DLRS_FIELD_SHAPE).dim(dim).value(to).limit(from))
        }
    }
}

fn check_same_dtype(src: &Snapshot, dst: &Snapshot) -> Result<()> {
    let error = Error::new(DLRS_DTYPE_MISMATCH);
    let (from, to) = (src.dtype, dst.dtype);
    for (field, from, to) in [
        (DLRS_FIELD_DTYPE_CODE, i64::from(from.code), i64::from(to.code)),
        (DLRS_FIELD_DTYPE_BITS, from.bits.into(), to.bits.into()),
        (DLRS_FIELD_DTYPE_LANES, from.lanes.into(), to.lanes.into()),
    ] {
        if from != to {
            return Err(error.field(field).value(to).limit(from));
        }
    }
    Ok(())
}

fn check_same_padding(src: &Snapshot, dst: &Snapshot) -> Result<()> {
    if src.slot_bits() == dst.slot_bits() {
        return Ok(());
    }
    let error = Error::new(DLRS_DTYPE_MISMATCH);
    let error = error.field(DLRS_FIELD_FLAGS).detail("one is packed and the other padded");
    Err(error.value((dst.flags & PADDED) as i64).limit((src.flags & PADDED) as i64))
}

/// Whether the elements can be moved: by the CPU, or by the backend of their device.
pub fn check_copyable(tensor: &Snapshot, options: &Options) -> Result<()> {
    check_movable(tensor, options)?;
    if device_type::host_reachable(tensor.device.device_type) {
        return Ok(());
    }
    registry::required(tensor.device.device_type)?;
    if is_handle(tensor) && !tensor.empty {
        check_handle(tensor)?;
    }
    Ok(())
}

fn memory(tensor: &Snapshot) -> Memory {
    Memory { device: tensor.device, first: tensor.first() }
}

/// Waits until the CPU may read a tensor that it reaches: a device may still be writing managed
/// memory on its default stream.
pub fn host_read(tensor: &Snapshot) -> Result<()> {
    let nowhere = Memory { device: CPU, first: core::ptr::null() };
    route::host_access(&memory(tensor), &nowhere, &Streams::NONE)
}

/// Whether the elements can be read and written by the CPU.
pub fn check_host(tensor: &Snapshot, options: &Options) -> Result<()> {
    check_movable(tensor, options)?;
    if device_type::host_reachable(tensor.device.device_type) {
        return Ok(());
    }
    let error = Error::new(DLRS_DEVICE_TYPE).field(DLRS_FIELD_DEVICE_TYPE);
    let error = error.detail("only the CPU does this, and it does not reach this device's memory");
    Err(error.value(tensor.device.device_type.into()))
}

/// Asks the driver of the device, where the rules demand it, whether the memory is what the tensor
/// says. A backend that does not tell, or memory that no driver gives, passes.
pub fn check_pointer(tensor: &Snapshot, rules: Rules) -> Result<()> {
    let said = tensor.device;
    let cpu = said.device_type == DLDeviceType::kDLCPU as i32;
    if !rules.driver || tensor.empty || cpu || is_handle(tensor) {
        return Ok(());
    }
    let backend = registry::required(said.device_type)?;
    let known = match backend.pointer(tensor.first().cast()) {
        Err(error) if error.status == DLRS_UNSUPPORTED => return Ok(()),
        known => known?,
    };
    let error = Error::new(DLRS_DEVICE_TYPE).field(DLRS_FIELD_DEVICE_TYPE);
    let error = error.detail("the driver knows this memory as another kind of device's");
    if known.device.device_type != said.device_type {
        return Err(error.value(said.device_type.into()).limit(known.device.device_type.into()));
    }
    let error = Error::new(DLRS_DEVICE_ID).field(DLRS_FIELD_DEVICE_ID);
    let error = error.detail("the driver knows this memory as another device's");
    if known.device.device_id != said.device_id {
        return Err(error.value(said.device_id.into()).limit(known.device.device_id.into()));
    }
    match known.nbytes {
        0 => Ok(()),
        nbytes => tensor.check_within(known.base.cast(), nbytes),
    }
}

fn check_movable(tensor: &Snapshot, options: &Options) -> Result<()> {
    if !is_opaque(tensor.dtype) || options.raw_bytes {
        return Ok(());
    }
    let error = Error::new(DLRS_UNSUPPORTED).field(DLRS_FIELD_DTYPE_CODE);
    let error = error.detail("opaque handles are copied only as raw bytes");
    Err(error.value(tensor.dtype.code.into()))
}

/// Whether elements are opaque handles, which are moved only when that is asked for.
pub(super) fn is_opaque(dtype: DLDataType) -> bool {
    dtype.code == DLDataTypeCode::kDLOpaqueHandle as u8
}

/// An opaque handle that is there, and offsets into it that are not negative.
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
pub fn is_handle(tensor: &Snapshot) -> bool {
    device_type::opaque_handle(tensor.device.device_type)
}

/// Where element (0, ..., 0) is: an address, or bytes from the start of what the handle stands for.
pub(super) fn place(tensor: &Snapshot) -> *mut u8 {
    match is_handle(tensor) {
        true => null_mut::<u8>().wrapping_add(tensor.byte_offset as usize),
        false => tensor.first(),
    }
}

/// Whether places of the two are of one kind: both addresses, or offsets into the same object.
pub fn same_origin(a: &Snapshot, b: &Snapshot) -> bool {
    let object = |tensor| is_handle(tensor).then_some((tensor.device, tensor.data));
    object(a) == object(b)
}

/// Whether places of the two can be compared: of [`same_origin`], and in one address space.
fn comparable(a: &Snapshot, b: &Snapshot) -> bool {
    let unified = |tensor: &Snapshot| device_type::unified_addresses(tensor.device.device_type);
    same_origin(a, b) && (a.device == b.device || unified(a) && unified(b))
}

/// Strides in units of `unit_bits` bits, one by one; 0 where the extent is 1.
pub fn unit_strides(
    tensor: &Snapshot,
    unit_bits: u32,
) -> impl Iterator<Item = Result<i64>> + use<'_> {
    let slots = i64::from(tensor.slot_bits().checked_div(unit_bits).unwrap_or(0));
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

/// Whether both are the same view of the same memory, so that there is nothing to move.
pub(super) fn same_place(src: &Snapshot, dst: &Snapshot) -> bool {
    let mut dims = src.shape().iter().zip(src.strides().iter().zip(dst.strides()));
    comparable(src, dst)
        && place(src) == place(dst)
        && dims.all(|(&extent, (from, to))| extent == 1 || from == to)
}
