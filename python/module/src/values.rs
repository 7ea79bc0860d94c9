//! Elements as Python's own objects, and tensors as text.

use core::fmt::{self, Write};
use core::ptr::NonNull;

use super::arguments::method;
use super::buffer;
use super::failure::slot;
use super::tensor::{Live, This};
use crate::abi::*;
use crate::error::{Error, Field::*, Result, Status::*};
use crate::layout::{self, MAX_NDIM};
use crate::overlap::Verdict;
use crate::validate::{Level, Rules, Snapshot};
use crate::view::View;
use crate::view::sharing::self_verdict;
use crate::{dtype, float_formats, platform};
use dlpack_print::reader::Reader;
use dlpack_print::{Description, Elements, PrintOptions};
use dlpack_python::{Owned, Python, detached, raised, required, text_of};

/// Reads the tensor of an object whose elements have values.
pub fn read(this: This, snapshot: &mut Snapshot) -> Result<()> {
    this.live().read(Rules::of(Level::DLRS_LEVEL_LAYOUT), snapshot)?;
    dtype::legal(snapshot.dtype)
}

/// One value, of the bits of one lane.
fn value(python: Python, dtype: DLDataType, bits: u128) -> Result<Owned> {
    const INT: u8 = DLDataTypeCode::kDLInt as u8;
    const UINT: u8 = DLDataTypeCode::kDLUInt as u8;
    const HANDLE: u8 = DLDataTypeCode::kDLOpaqueHandle as u8;
    const BOOL: u8 = DLDataTypeCode::kDLBool as u8;
    let width = u32::from(dtype.bits).clamp(1, 128);
    let bits = bits & (u128::MAX >> (128 - width));
    match dtype.code {
        INT => {
            let up = 64 - width.min(64);
            python.PyLong_FromLongLong(((bits as u64) << up) as i64 >> up)
        }
        UINT | HANDLE => python.PyLong_FromUnsignedLongLong(bits as u64),
        BOOL => python.PyBool_FromLong((bits != 0).into()),
        code if dtype::is_complex(code) => {
            let part = |raw: u128| float_formats::decode(code, dtype.bits, raw as u64);
            python.PyComplex_FromDoubles(part(bits), part(bits >> (width / 2)))
        }
        code => python.PyFloat_FromDouble(float_formats::decode(code, dtype.bits, bits as u64)),
    }
}

fn list(python: Python, count: i64, item: &mut dyn FnMut(i64) -> Result<Owned>) -> Result<Owned> {
    // SAFETY: a fresh list, filled before anybody sees it.
    unsafe {
        let list = required(python.PyList_New(count as isize))?;
        for place in 0..count {
            let item = item(place)?.into_ptr();
            if python.PyList_SetItem(list.as_ptr(), place as isize, item) != 0 {
                return Err(raised());
            }
        }
        Ok(list)
    }
}

/// The elements of `tensor` from dimension `dim` on; several lanes are a list as well.
fn nested(
    python: Python,
    (tensor, reader): (&Snapshot, &Reader),
    index: &mut [i64; MAX_NDIM],
    dim: usize,
) -> Result<Owned> {
    let dtype = tensor.dtype;
    match tensor.shape().get(dim) {
        Some(&extent) => list(python, extent, &mut |at| {
            if let Some(slot) = index.get_mut(dim) {
                *slot = at;
            }
            nested(python, (tensor, reader), index, dim + 1)
        }),
        None => {
            let place = index.get(..dim).unwrap_or(&[]);
            match dtype.lanes {
                1 => value(python, dtype, reader.bits(place, 0)),
                lanes => list(python, lanes.into(), &mut |lane| {
                    value(python, dtype, reader.bits(place, lane as u16))
                }),
            }
        }
    }
}

method!(
    /// tolist($self, /)
    /// The elements as nested lists of Python's numbers.
    /// >>> dlpack_rs.zeros((2, 1), 'bool').tolist()
    /// [[False], [False]]
    tolist, |this, call| (/ *) {
        let mut snapshot = Snapshot::new();
        read(this, &mut snapshot)?;
        // SAFETY: read without error from a live tensor.
        let reader = unsafe { Reader::new(&snapshot)? };
        nested(call.python, (&snapshot, &reader), &mut [0; MAX_NDIM], 0)
    }
);
/// Fails where a tensor has not just one element.
pub fn single(tensor: &Snapshot, detail: &'static str) -> Result<()> {
    match tensor.numel()? {
        1 => Ok(()),
        numel => {
            let error = Error::new(DLRS_SHAPE_MISMATCH).field(DLRS_FIELD_SHAPE).value(numel);
            Err(error.detail(detail).limit(1))
        }
    }
}

/// The only element of a tensor.
///
/// # Safety
/// `tensor` was read without error by [`read`], and its memory is live.
pub unsafe fn element(python: Python, tensor: &Snapshot) -> Result<Owned> {
    // SAFETY: `tensor` was read at the layout level without error, and its memory is live.
    let reader = unsafe { Reader::new(tensor) }?;
    let dims = tensor.shape().len();
    nested(python, (tensor, &reader), &mut [0; MAX_NDIM], dims)
}

/// Calls `visit` with the place of every element, row-major, in elements from the first one.
fn each(shape: &[i64], strides: &[i64], at: i128, visit: &mut dyn FnMut(i128)) {
    match (shape.split_first(), strides.split_first()) {
        (Some((&extent, shape)), Some((&stride, strides))) => (0..extent).for_each(|index| {
            each(shape, strides, at + i128::from(index) * i128::from(stride), visit);
        }),
        _ => visit(at),
    }
}

/// Copies `count` bits, from the least significant one of a byte on.
///
/// # Safety
/// `from` is readable, `to` writable.
pub unsafe fn move_bits(from: (*mut u8, i128), to: (*mut u8, i128), count: u32) {
    for place in 0..i128::from(count) {
        let (source, target) = (from.1 + place, to.1 + place);
        // SAFETY: the bytes of the bits.
        unsafe {
            let bit = from.0.offset((source >> 3) as isize).read() >> (source & 7) & 1;
            let byte = to.0.offset((target >> 3) as isize);
            let shift = (target & 7) as u32;
            byte.write(byte.read() & !(1 << shift) | bit << shift);
        }
    }
}

/// Copies the elements of a dense tensor in the memory of the CPU to where a view of `to` has them,
/// with the first at any `bit` from that of `to`; no bit beside them changes.
///
/// # Safety
/// Every element of the view is inside `to`, and the dense tensor has as many, initialised.
pub unsafe fn store_packed(dense: Live, to: Live, (view, bit): (&View, i128)) -> Result<()> {
    let (shape, strides) = (view.shape(), view.strides());
    let (mut tensor, slot) = (Snapshot::new(), view.slot_bits());
    to.read(Rules::of(Level::DLRS_LEVEL_LAYOUT), &mut tensor)?;
    // SAFETY: live.
    unsafe { Reader::new(&tensor)? };
    if view.flags & DLPACK_FLAG_BITMASK_READ_ONLY != 0 {
        return Err(Error::new(DLRS_READ_ONLY).field(DLRS_FIELD_FLAGS));
    }
    if !matches!(self_verdict(shape, strides, slot), Verdict::Disjoint) {
        return Err(Error::new(DLRS_OVERLAP_DST).field(DLRS_FIELD_STRIDES));
    }
    let (from, to): (*mut u8, *mut u8) = (dense.description().data.cast(), tensor.first());
    let mut next = 0i128;
    let nbytes = layout::packed_nbytes(layout::numel(shape)?, slot)?;
    // A single element is written with Python's lock: its neighbours in the byte are others'.
    // SAFETY: the place of an element in the dense tensor, and one inside `to`, whose memory the
    // host can access; nothing of Python is called.
    unsafe {
        detached(dense.python, nbytes, || {
            each(shape, strides, 0, &mut |at| {
                move_bits((from, next), (to, bit + at * i128::from(slot)), slot);
                next += i128::from(slot);
            });
        });
    }
    Ok(())
}

method!(
    /// item($self, /)
    /// The only element as a Python number.
    /// >>> dlpack_rs.full((1, 1), 7).item()
    /// 7
    item, |this, call| (/ *) {
        let mut snapshot = Snapshot::new();
        read(this, &mut snapshot)?;
        single(&snapshot, "there must be exactly one element\0Take one by its index.")?;
        // SAFETY: read without error from a live tensor.
        unsafe { element(call.python, &snapshot) }
    }
);
method!(
    /// memoryview($self, /)
    /// A memoryview of the memory, which the CPU must be able to access.
    /// >>> dlpack_rs.zeros(3, 'int8').memoryview().nbytes
    /// 3
    memoryview, |this, call| (/ *) {
        let python = call.python;
        let lender = this.live().share()?.object(buffer::lender(python)?)?;
        python.PyMemoryView_FromObject(lender.object())
    }
);

/// Text in memory of fixed size; counts what the whole would need.
struct Page {
    memory: NonNull<u8>,
    room: usize,
    nbytes: usize,
}

impl Write for Page {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let now = self.room.saturating_sub(self.nbytes).min(text.len());
        // SAFETY: `now` bytes fit behind what was written.
        unsafe { self.memory.as_ptr().wrapping_add(self.nbytes).copy_from(text.as_ptr(), now) };
        self.nbytes = self.nbytes.saturating_add(text.len());
        Ok(())
    }
}

slot!(
    /// `repr(t)`: the description, and the values as nested lists.
    repr, "Tensor.__repr__", |this| -> Owned {
        let mut snapshot = Snapshot::new();
        this.live().read(Rules::of(Level::DLRS_LEVEL_LAYOUT), &mut snapshot)?;
        let failed = |_| Error::new(DLRS_INTERNAL).detail("a value could not be written");
        // SAFETY: read without error from a live tensor.
        let reader = unsafe { Reader::new(&snapshot) }.ok();
        let mut page = Page { memory: NonNull::dangling(), room: 0, nbytes: 0 };
        write(&snapshot, reader.as_ref(), &mut page).map_err(failed)?;
        // Elements may change between the two runs: then the end is cut.
        let room = page.nbytes;
        let memory = platform::memory(room).ok_or(Error::new(DLRS_NOMEM).value(room as i64))?;
        let mut page = Page { memory, room, nbytes: 0 };
        let written = write(&snapshot, reader.as_ref(), &mut page).map_err(failed);
        // SAFETY: memory of our own, of which so much was written; it is given back once.
        unsafe {
            let shown = core::slice::from_raw_parts(memory.as_ptr(), page.nbytes.min(room));
            let answer = written.and_then(|()| text_of(this.python, shown));
            platform::give_back(memory);
            answer
        }
    }
);

fn write(tensor: &Snapshot, reader: Option<&Reader>, out: &mut Page) -> fmt::Result {
    let description = Description {
        shape: tensor.shape(),
        strides: Some(tensor.strides()),
        dtype: tensor.dtype,
        device: tensor.device,
        byte_offset: tensor.byte_offset,
        flags: Some(tensor.flags),
    };
    let elements = reader.map(|reader| reader as &dyn Elements);
    dlpack_print::write_tensor(&description, elements, &PrintOptions::DEFAULT, out)
}
