//! `t[...]`, and what else Python does with a sequence.

use super::failure::{no_element, slot, wrong};
use super::makes::blank;
use super::tensor::{Held, Live, This};
use super::values::{move_bits, store_packed};
use super::views::{made, shared};
use super::writes::assign;
use crate::abi::{DLPACK_FLAG_BITMASK_IS_COPIED, DLPACK_FLAG_BITMASK_READ_ONLY, DLTensor};
use crate::device_type::host_reachable;
use crate::error::{Error, Result, Status::*};
use crate::validate::{Level, Rules, Snapshot};
use crate::view::{Step, View};
use dlpack_print::reader::Reader;
use dlpack_python::kinds::TUPLE;
use dlpack_python::{Object, Owned, Python, is_a, raised};
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
    let mut tensor = Snapshot::new();
    from.read(Rules::of(Level::DLRS_LEVEL_LAYOUT), &mut tensor)?;
    let value = blank(from.python, &[], view.dtype)?;
    let to = value.live().description().data.cast();
    const FLAGS: u64 = DLPACK_FLAG_BITMASK_IS_COPIED | DLPACK_FLAG_BITMASK_READ_ONLY;
    // SAFETY: an element inside `from`, which the host can read, and a fresh block of one.
    unsafe {
        Reader::new(&tensor)?;
        move_bits((tensor.first(), bit), (to, 0), view.slot_bits());
        share::set_flags(value.live().block().as_ref(), FLAGS, 0)?;
    }
    Ok(value)
}

/// Writes a value where a key says: to a view; or, where packed elements start inside a byte, to a
/// tensor of its own, and its bits to theirs.
fn write(from: Live, view: &View, base: &Base, value: Object) -> Result<()> {
    match packed_bit(view, base)? {
        Some(bit) if bit & 7 != 0 => {
            let values = blank(from.python, view.shape(), view.dtype)?;
            assign(values.live(), value, SET)?;
            // SAFETY: elements inside `from`, and a fresh block of as many.
            unsafe { store_packed(values.live(), from, (view, bit)) }
        }
        _ => assign(shared(from, view, base)?.live(), value, SET),
    }
}

/// The method whose slots these are.
const GET: &str = "Tensor.__getitem__";

slot!(
    /// `mp_subscript`.
    subscript, GET, |this, key: Object| -> Owned {
        this.like(chosen(this, GET, key, &mut |view, base| read(this.live(), view, base))?)
    }
);

/// The method whose slot this is.
const SET: &str = "Tensor.__setitem__";

slot!(
    /// `mp_ass_subscript`.
    assign_subscript, SET,
    |this, key: Object, value: Option<Object>| -> () {
        let Some(value) = value else {
            return Err(wrong(this.python, SET, "cannot delete elements"));
        };
        chosen(this, SET, key, &mut |view, base| write(this.live(), view, base, value))
    }
);

/// What `make` makes of the layout that a key chooses.
fn chosen<T>(
    this: This,
    name: &'static str,
    key: Object,
    make: &mut dyn FnMut(&View, &Base) -> Result<T>,
) -> Result<T> {
    let python = this.python;
    let several = is_a(python, key, TUPLE);
    let count = if several { python.PyTuple_Size(key)? } else { 1 };
    // SAFETY: a tuple, of so many items.
    let item = |place| if several { unsafe { key.item(python, place) } } else { key };
    let ndim = i64::from(this.live().description().ndim);
    let used = (0..count).filter(|&place| uses_axis(python, item(place))).count() as i64;
    let mut change = |view: &mut View| {
        let mut at = Position { name, axis: 0, dim: 0, ndim, used, dotted: false };
        (0..count).try_for_each(|place| index(python, view, item(place), &mut at))
    };
    made(this.live(), &mut change, make)
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
fn uses_axis(python: Python, item: Object) -> bool {
    item != python._Py_NoneStruct() && item != python._Py_EllipsisObject()
}

fn select(python: Python, view: &mut View, index: i64, at: &Position) -> Result<()> {
    let step = Step::Select { axis: at.axis, index };
    view.apply(&step).map_err(|error| no_element(python, at.name, &error.dim(at.dim)))
}

/// One item of a key: a number, a slice, None, or an ellipsis.
fn index(python: Python, view: &mut View, item: Object, at: &mut Position) -> Result<()> {
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
    let is_bool = [python._Py_TrueStruct(), python._Py_FalseStruct()].contains(&item);
    if python.PyIndex_Check(item)? && !is_bool {
        let index = python.PyNumber_AsSsize_t(item, python.PyExc_IndexError())?;
        select(python, view, index as i64, at)?;
        at.dim += 1;
        return Ok(());
    }
    let [mut start, mut stop, mut step] = [0isize; 3];
    if item.type_of() != python.PySlice_Type() {
        const WHAT: &str = "takes integers, slices, None and ..., alone or in a tuple";
        return Err(wrong(python, at.name, WHAT));
    }
    // SAFETY: a slice, and variables of ours.
    if unsafe { python.PySlice_Unpack(item, &mut start, &mut stop, &mut step) } < 0 {
        return Err(raised());
    }
    at.axis += 1;
    at.dim += 1;
    let (start, stop, step) = (start as i64, stop as i64, step as i64);
    view.apply(&Step::Slice { axis, start, stop, step })
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
            1.. => this.python.PySeqIter_New(this.object()),
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
            // SAFETY: a live tensor has so many extents.
            1.. => Ok(unsafe { shape.read() } as isize),
            _ => Err(wrong(this.python, "len", "of a Tensor without axes")),
        }
    }
);
