//! `copy.copy`, `copy.deepcopy`, pickle, and the bytes of a `Tensor`.
//!
//! A pickle has the bytes of the elements without gaps and what is needed to see them as a tensor
//! again: they are never copied where they are dense already and pickle's protocol (5) can hand
//! them over, and what is loaded shares the memory of the buffer that pickle gives.

use core::ptr::null;

use super::arguments::{self, Call, method};
use super::failure::{dtype_name, refused};
use super::numpy::{call_method, import};
use super::tensor::{self, Held, RULES, This};
use super::{buffer, copies};
use crate::abi::*;
use crate::copy::{self, CopyPolicy, Options, Streams};
use crate::device_type::{self, CPU};
use crate::error::{Error, Field::*, Result, Status::*};
use crate::layout::{self, MAX_NDIM, Order};
use crate::overlap::Verdict;
use crate::platform;
use crate::validate::Snapshot;
use crate::view::sharing;
use dlpack_python::{Object, Owned, Python, detached, numbers, required};
use dlpack_tensor::tensor::block::Block;
use dlpack_tensor::tensor::{convert, share, view};

const READ_ONLY: u64 = DLPACK_FLAG_BITMASK_READ_ONLY;
const PADDED: u64 = DLPACK_FLAG_BITMASK_IS_SUBBYTE_TYPE_PADDED;
/// Of writable elements that a pickle keeps as `bytes`, which nothing may write to.
const COPIED: u64 = DLPACK_FLAG_BITMASK_IS_COPIED;

/// Sees to it that the elements of a tensor are in host memory, dense in an order: where they are
/// not, `snapshot` becomes that of a copy, which is given back.
///
/// # Safety
/// `snapshot` was read, by the rules of a copy, from a live tensor.
unsafe fn dense(python: Python, snapshot: &mut Snapshot, order: Order) -> Result<Option<Held>> {
    const OPTIONS: &Options = &Options::DEFAULT;
    let fits = layout::is_contiguous(snapshot.shape(), snapshot.strides(), order);
    if fits && device_type::host_reachable(snapshot.device.device_type) {
        copy::host_read(snapshot, &Streams::NONE)?;
        return Ok(None);
    }
    let order = if order == Order::A { Order::C } else { order };
    let from: &Snapshot = snapshot;
    let nbytes = from.nbytes()?;
    // SAFETY: a copy calls nothing of Python, and gives a fresh block.
    let clone = unsafe {
        let made = detached(python, nbytes, || copy::clone(from, order, CPU, OPTIONS))?;
        Held::new(python, made)
    };
    clone.live().read(RULES, snapshot)?;
    Ok(Some(clone))
}

/// A copy of the bytes of the elements.
///
/// # Safety
/// They are dense, in host memory, and kept meanwhile.
unsafe fn bytes_of(python: Python, snapshot: &Snapshot) -> Result<Owned> {
    let nbytes = snapshot.nbytes()?;
    // SAFETY: attached; `nbytes` are readable at `from`, and writable in fresh bytes of our own;
    // moving them calls nothing of Python.
    unsafe {
        let made = required(python.PyBytes_FromStringAndSize(null(), nbytes as isize))?;
        let memory: *mut u8 = python.PyBytes_AsString(made.as_ptr()).cast();
        platform::in_huge_pages(memory.cast(), nbytes as usize);
        if !snapshot.empty {
            let from = snapshot.first();
            detached(python, nbytes, || memory.copy_from_nonoverlapping(from, nbytes as usize));
        }
        Ok(made)
    }
}

method!(
    /// tobytes($self, /, order='C')
    /// The bytes of the elements without gaps, in the order 'C', 'F', 'A' ('F' if they are dense
    /// so, else 'C') or 'K' (that of the strides).
    /// >>> dlpack_rs.asarray([1, 2], dtype='int8').tobytes()
    /// b'\x01\x02'
    tobytes, |this, call| (/ order *) {
        let (python, order) = (call.python, call.order(order)?);
        let mut snapshot = Snapshot::new();
        this.live().read(Options::DEFAULT.rules(), &mut snapshot)?;
        // SAFETY: read from a live tensor; what is dense is kept by it, or by the copy.
        unsafe {
            let _copy = dense(python, &mut snapshot, order)?;
            bytes_of(python, &snapshot)
        }
    }
);

/// A copy that is all that the tensor is: read-only, too.
fn twin(this: This) -> Result<Owned> {
    copies::derived(this, &mut |from| {
        let clone = copy::clone(from, Order::K, from.device, &Options::DEFAULT)?;
        // SAFETY: a fresh block, with one reference.
        unsafe {
            let block = clone.cast::<Block>().as_ref();
            let flagged = share::set_flags(block, from.flags & READ_ONLY, 0);
            flagged.inspect_err(|_| share::release(clone))?;
        }
        Ok(clone)
    })
}

method!(
    /// __copy__($self, /)
    /// As copy('K'), and read-only if this is.
    /// >>> import copy
    /// >>> copy.copy(dlpack_rs.full(2, 1)).tolist()
    /// [1, 1]
    __copy__ as "Tensor.__copy__", |this, _| (/ *) {
        twin(this)
    }
);
method!(
    /// __deepcopy__($self, memo, /)
    /// As __copy__.
    /// >>> import copy
    /// >>> copy.deepcopy([dlpack_rs.full(2, 1)])[0].tolist()
    /// [1, 1]
    __deepcopy__ as "Tensor.__deepcopy__", |this, _| (_memo / *) {
        twin(this)
    }
);

method!(
    /// __reduce_ex__($self, protocol, /)
    /// The pickled state of a tensor in memory that the CPU can access: dtype, shape, order, bytes,
    /// and whether they are read-only. With protocol 5, out-of-band buffers are not copied.
    /// >>> import pickle
    /// >>> pickle.loads(pickle.dumps(dlpack_rs.full(2, 1.5))).tolist()
    /// [1.5, 1.5]
    __reduce_ex__ as "Tensor.__reduce_ex__", |this, call| (protocol / *) {
        reduce(this, arguments::number(call.python, protocol)?)
    }
);

/// What pickle keeps: `_rebuild` and its arguments.
fn reduce(this: This, protocol: i64) -> Result<Owned> {
    let python = this.python;
    let mut snapshot = Snapshot::new();
    // SAFETY: Python keeps `this` during the call, and with it the tensor; the rest is held here.
    unsafe {
        this.live().read(Options::DEFAULT.rules(), &mut snapshot)?;
        if !device_type::host_reachable(snapshot.device.device_type) {
            let text = format_args!(
                "cannot pickle a Tensor on '{}': copy it by to('cpu') first",
                device_type::Name(snapshot.device)
            );
            return Err(refused(python, python.PyExc_TypeError(), text));
        }
        if copy::is_opaque(snapshot.dtype) {
            let text = format_args!("cannot pickle opaque handles, which mean nothing elsewhere");
            return Err(refused(python, python.PyExc_TypeError(), text));
        }
        let flags = snapshot.flags & READ_ONLY;
        let copy = dense(python, &mut snapshot, Order::K)?;
        let mut kept = snapshot.flags & PADDED;
        let memory = if protocol < 5 {
            // Of a bytearray pickle would make bytes, too, and copy them when it is loaded.
            kept |= if flags == 0 { COPIED } else { 0 };
            bytes_of(python, &snapshot)?
        } else {
            let block = copy.as_ref().map_or(this.live(), Held::live).block();
            let bytes = view::bytes(&snapshot, block, flags);
            let lender = Held::new(python, bytes?).object(buffer::lender(python)?)?;
            let pickle = import(python, c"pickle")?;
            call_method(python, c"PickleBuffer", &[pickle.object(), lender.object()])?
        };
        let rebuild = python.named(this.object().type_of(), c"_rebuild")?;
        let (shape, dtype) =
            (numbers(python, snapshot.shape())?, dtype_name(python, snapshot.dtype)?);
        let strides = numbers(python, snapshot.strides())?;
        required(python.builder()(
            c"O(OOOOK)".as_ptr(),
            rebuild.as_ptr(),
            memory.as_ptr(),
            dtype.as_ptr(),
            shape.as_ptr(),
            strides.as_ptr(),
            kept,
        ))
    }
}

method!(
    /// _rebuild($type, memory, dtype, shape, strides, flags, /)
    /// Used by pickle.
    /// >>> dlpack_rs.Tensor._rebuild(b'ab', 'uint8', (2,), (1,), 0).tolist()
    /// [97, 98]
    _rebuild as "Tensor._rebuild", |_, call| (memory dtype shape strides flags / *) {
        let python = call.python;
        let copied = arguments::number(python, flags)? as u64 & COPIED != 0;
        let policy = if copied { CopyPolicy::Always } else { CopyPolicy::Never };
        let memory = Held::by(python, memory, Some(CPU), policy)?;
        let mut snapshot = Snapshot::new();
        describe(call, &memory, [dtype, shape, strides, flags], &mut snapshot)?;
        // SAFETY: the elements are inside of the memory; the block is fresh.
        let made = unsafe {
            let block = memory.give(|memory| convert::box_snapshot(&snapshot, memory))?;
            Held::new(python, Block::versioned(block))
        };
        made.object(tensor::known(python)?)
    }
);

/// Reads a pickle's description of elements, which must be inside the given memory. Those that may
/// overlap are read-only.
fn describe(
    call: &Call,
    memory: &Held,
    [dtype, shape, strides, flags]: [Object; 4],
    out: &mut Snapshot,
) -> Result<()> {
    let python = call.python;
    let (mut extents, mut steps) = ([0; MAX_NDIM], [0; MAX_NDIM]);
    let shape = arguments::shape(python, shape, &mut extents)?;
    let strides = arguments::shape(python, strides, &mut steps)?;
    let error = |detail| Error::new(DLRS_OUT_OF_BOUNDS).field(DLRS_FIELD_DATA).detail(detail);
    if shape.len() != strides.len() {
        return Err(error("there are not as many strides as extents"));
    }
    memory.live().read(RULES, out)?;
    let (data, nbytes, read_only) = (out.first(), out.nbytes()?, out.flags & READ_ONLY);
    if !layout::is_contiguous(out.shape(), out.strides(), Order::A) {
        return Err(error("the buffer has gaps"));
    }
    let tensor = DLTensor {
        data: data.cast(),
        device: CPU,
        ndim: shape.len() as i32,
        dtype: call.dtype(dtype)?,
        shape: shape.as_ptr().cast_mut(),
        strides: strides.as_ptr().cast_mut(),
        byte_offset: 0,
    };
    let padded = arguments::number(python, flags)? as u64 & PADDED;
    // SAFETY: arrays of `ndim` values.
    unsafe { out.read(&tensor, padded | read_only, RULES)? };
    let (low, high) = out.byte_extent;
    if !out.empty && (low < 0 || high as u64 > nbytes) {
        let error = error("the elements are not all in the buffer, bytes");
        return Err(error.value(high).limit(nbytes as i64));
    }
    // Of elements that may share memory a write to one changes others.
    match sharing::self_verdict(out.shape(), out.strides(), out.slot_bits()) {
        Verdict::Disjoint => {}
        _ => out.flags |= READ_ONLY,
    }
    Ok(())
}
