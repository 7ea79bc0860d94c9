//! `t[...]`, and what else Python does with a sequence.

use super::arguments;
use super::failure::{done, no_element, slot, wrong};
use super::makes::blank;
use super::tensor::{Held, Live, This, type_of};
use super::values::{Way, move_packed};
use super::views::{made, shared};
use super::writes::assign;
use crate::abi::{DLPACK_FLAG_BITMASK_IS_COPIED, DLPACK_FLAG_BITMASK_READ_ONLY, DLTensor};
use crate::device_type::host_reachable;
use crate::error::{Error, Result, Status::*};
use crate::view::{Step, View};
use dlpack_python::raise::required;
use dlpack_python::{Owned, PyObject, Python};
use dlpack_tensor::tensor::share;
use dlpack_tensor::tensor::view::Base;

/// The first bit of a view of packed elements; `None` for elements of whole bytes.
#[inline]
fn packed_bit(view: &View, base: &Base) -> Result<Option<i128>> {
    if view.slot_bits() & 7 == 0 { Ok(None) } else { view.first_bit(base.byte_extent) }
}

/// What a key reads: a view; or, of packed elements, which have no addresses, the value of one,
/// which is read-only.
fn read(from: Live, view: &View, base: &Base) -> Result<Held> {
    match packed_bit(view, base)? {
        Some(bit) if view.shape().is_empty() => read_bits(from, view, base, bit),
        _ => shared(from, view, base),
    }
}

/// The value of the packed element at a bit. On a device, of which the CPU can read nothing, it is
/// still a view where there is one.
#[cold]
fn read_bits(from: Live, view: &View, base: &Base, bit: i128) -> Result<Held> {
    if bit & 7 == 0 && !host_reachable(base.device.device_type) {
        return shared(from, view, base);
    }
    let value = blank(from.python, &[], view.dtype)?;
    const FLAGS: u64 = DLPACK_FLAG_BITMASK_IS_COPIED | DLPACK_FLAG_BITMASK_READ_ONLY;
    // SAFETY: an element inside `from`, and a fresh block of one.
    unsafe {
        move_packed(from, (view, bit), value.live(), Way::Load)?;
        share::set_flags(value.live().block().as_ref(), FLAGS, 0)?;
    }
    Ok(value)
}

/// Writes a value where a key says: to a view; or, where packed elements start inside a byte, to a
/// tensor of its own, and its bits to theirs.
///
/// # Safety
/// `value` is a live object.
unsafe fn write(from: Live, view: &View, base: &Base, value: *mut PyObject) -> Result<()> {
    // SAFETY: `value` is live; elements inside `from`, and a fresh block of as many.
    unsafe {
        match packed_bit(view, base)? {
            Some(bit) if bit & 7 != 0 => {
                let values = blank(from.python, view.shape(), view.dtype)?;
                assign(values.live(), value, SET)?;
                move_packed(from, (view, bit), values.live(), Way::Store)
            }
            _ => assign(shared(from, view, base)?.live(), value, SET),
        }
    }
}

/// The method whose slots these are.
const GET: &str = "Tensor.__getitem__";

slot!(
    /// `mp_subscript`.
    subscript, GET, |this, key: *mut PyObject| -> Owned {
        this.like(chosen(this, GET, key, &mut |view, base| read(this.live(), view, base))?)
    }
);

/// The method whose slot this is.
const SET: &str = "Tensor.__setitem__";

slot!(
    /// `mp_ass_subscript`.
    assign_subscript, SET,
    |this, key: *mut PyObject, value: *mut PyObject| -> () {
        if value.is_null() {
            return Err(wrong(this.python, SET, "cannot delete elements"));
        }
        chosen(this, SET, key, &mut |view, base| write(this.live(), view, base, value))
    }
);

/// What `make` makes of the layout that a key chooses.
///
/// # Safety
/// `key` is a live object.
unsafe fn chosen<T>(
    this: This,
    name: &'static str,
    key: *mut PyObject,
    make: &mut dyn FnMut(&View, &Base) -> Result<T>,
) -> Result<T> {
    let python = this.python;
    // SAFETY: `key` is live, and a tuple keeps its items.
    unsafe {
        let several = arguments::is_a(python, key, arguments::TUPLE);
        let count = if several { python.PyTuple_Size(key).max(0) } else { 1 };
        let item = |place| if several { python.PyTuple_GetItem(key, place) } else { key };
        let ndim = i64::from(this.live().description().ndim);
        let used = (0..count).filter(|&place| uses_axis(python, item(place))).count() as i64;
        let mut change = |view: &mut View| {
            let mut at = Position { name, axis: 0, dim: 0, ndim, used, dotted: false };
            (0..count).try_for_each(|place| index(python, view, item(place), &mut at))
        };
        made(this.live(), &mut change, make)
    }
}

/// Where in the view the next item of a key applies.
struct Position {
    /// The method, in messages.
    name: &'static str,
    axis: i32,
    /// The same place in the tensor.
    dim: usize,
    /// Axes of the tensor, and how many of them items name.
    ndim: i64,
    used: i64,
    /// An ellipsis has been met.
    dotted: bool,
}

/// Whether an item of a key stands for an axis: all but None and the ellipsis do.
fn uses_axis(python: Python, item: *mut PyObject) -> bool {
    item != python._Py_NoneStruct() && item != python._Py_EllipsisObject()
}

/// One element of an axis.
fn select(python: Python, view: &mut View, index: i64, at: &Position) -> Result<()> {
    let step = Step::Select { axis: at.axis, index };
    view.apply(&step).map_err(|error| no_element(python, at.name, &error.dim(at.dim)))
}

/// One item of a key: a number, a slice, None, or an ellipsis.
///
/// # Safety
/// `item` is a live object.
fn index(python: Python, view: &mut View, item: *mut PyObject, at: &mut Position) -> Result<()> {
    let axis = at.axis;
    if item == python._Py_EllipsisObject() {
        if at.dotted {
            const TWO: &str = "an index can have only one ellipsis\0Write the others as slices.";
            let error = Error::new(DLRS_BAD_ARG).detail(TWO);
            return Err(no_element(python, at.name, &error));
        }
        at.dotted = true;
        let left = (at.ndim - at.used).max(0);
        at.axis += left as i32;
        at.dim += left as usize;
        return Ok(());
    }
    if item == python._Py_NoneStruct() {
        at.axis += 1;
        return view.apply(&Step::Unsqueeze { axis });
    }
    if at.used > at.ndim {
        const MANY: &str = "too many indices\0Give at most one for each axis.";
        let error = Error::new(DLRS_BAD_ARG).detail(MANY).value(at.used).limit(at.ndim);
        return Err(no_element(python, at.name, &error));
    }
    if arguments::is_index(python, item) && !is_bool(python, item) {
        let index = arguments::index(python, item)?;
        select(python, view, index, at)?;
        at.dim += 1;
        return Ok(());
    }
    let [mut start, mut stop, mut step] = [0isize; 3];
    // SAFETY: live objects, and variables of ours; a slice is unpacked only if it is one.
    unsafe {
        if type_of(item) != python.PySlice_Type() {
            const WHAT: &str = "takes integers, slices, None and ..., alone or in a tuple";
            return Err(wrong(python, at.name, WHAT));
        }
        done(python.PySlice_Unpack(item, &mut start, &mut stop, &mut step))?;
    }
    at.axis += 1;
    at.dim += 1;
    let (start, stop, step) = (start as i64, stop as i64, step as i64);
    view.apply(&Step::Slice { axis, start, stop, step })
}

fn is_bool(python: Python, object: *mut PyObject) -> bool {
    object == python._Py_TrueStruct() || object == python._Py_FalseStruct()
}

slot!(
    /// `sq_item`: `t[i]`, until there is no such index.
    item, GET, |this, index: isize| -> Owned {
        let at = Position { name: GET, axis: 0, dim: 0, ndim: 1, used: 1, dotted: false };
        let mut change = |view: &mut View| {
            // Python has added the extent to a negative one: it would be added twice.
            let extent = view.shape().first().map_or(0, |&extent| extent);
            let added = if index < 0 { extent } else { 0 };
            select(this.python, view, index as i64 - added, &at)
        };
        let make = &mut |view: &View, base: &Base| read(this.live(), view, base);
        this.like(made(this.live(), &mut change, make)?)
    }
);

slot!(
    /// `tp_iter`: one after the other along the first axis.
    iterate, "iter", |this| -> Owned {
        match this.live().description().ndim {
            1.. => required(this.python.PySeqIter_New(this.as_ptr())),
            _ => {
                const WHAT: &str = "of a Tensor without axes; item() gives its value";
                Err(wrong(this.python, "iter", WHAT))
            }
        }
    }
);

slot!(
    /// `mp_length` and `sq_length`: the first extent.
    length, "len", |this| -> isize {
        let &DLTensor { ndim, shape, .. } = this.live().description();
        match ndim {
            1.. => Ok(shape.read() as isize),
            _ => Err(wrong(this.python, "len", "of a Tensor without axes")),
        }
    }
);
