//! Views: `t[...]` and the methods for another shape, order or type of the same memory.

use core::ffi::c_void;

use super::arguments::{self, Call, method};
use super::failure::{done, no_element, slot, wrong};
use super::makes::blank;
use super::tensor::{Held, Live, This, type_of};
use super::values::{Way, move_packed};
use super::writes::assign;
use crate::abi::{DLPACK_FLAG_BITMASK_IS_COPIED, DLPACK_FLAG_BITMASK_READ_ONLY, DLTensor};
use crate::device_type::{host_reachable, opaque_handle};
use crate::error::{Arg, Error, Result, Status::*};
use crate::layout::MAX_NDIM;
use crate::validate::{Level, Rules, Snapshot};
use crate::view::{ALL_AXES, Step, View, no_axis};
use dlpack_python::raise::required;
use dlpack_python::words::given;
use dlpack_python::{Owned, PyObject, Python};
use dlpack_tensor::tensor::share;
use dlpack_tensor::tensor::view::{self, Base};

/// The view of `object` that the steps of `change` make.
fn view_of(this: This, change: &mut dyn FnMut(&mut View) -> Result<()>) -> Result<Owned> {
    this.like(viewed(this.live(), change)?)
}

/// As [`view_of`], of any tensor of ours.
pub fn viewed(from: Live, change: &mut dyn FnMut(&mut View) -> Result<()>) -> Result<Held> {
    made(from, change, &mut |view, base| shared(from, view, base))
}

/// What `make` makes of a layout that `change` has changed.
fn made<T>(
    from: Live,
    change: &mut dyn FnMut(&mut View) -> Result<()>,
    make: &mut dyn FnMut(&View, &Base) -> Result<T>,
) -> Result<T> {
    let mut snapshot = Snapshot::new();
    from.read(Rules::of(Level::DLRS_LEVEL_LAYOUT), &mut snapshot)?;
    let (base, mut changed) = view::start(&mut snapshot);
    changed.fold = !opaque_handle(base.device.device_type);
    change(&mut changed)?;
    make(&changed, &base)
}

/// A view as a tensor.
fn shared(from: Live, view: &View, base: &Base) -> Result<Held> {
    // SAFETY: a live block; the view is ours.
    unsafe { Ok(Held::new(from.python, view::share(view, from.block(), base)?)) }
}

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

/// The view of one step.
pub fn step(this: This, step: Step) -> Result<Owned> {
    view_of(this, &mut |view| view.apply(&step))
}

method!(
    /// reshape($self, /, *shape)
    /// A view with another shape, one extent of which may be -1; ValueError if that needs a copy.
    /// >>> dlpack_rs.zeros((2, 6)).reshape(3, -1).shape
    /// (3, 4)
    reshape, |this, call| (..) {
        by_numbers(this, call, |shape| Step::Reshape { shape })
    }
);
method!(
    /// broadcast_to($self, /, *shape)
    /// A read-only view in which extents of 1 and new axes in front are repeated.
    /// >>> dlpack_rs.zeros(3).broadcast_to(2, 3).strides
    /// (0, 1)
    broadcast_to, |this, call| (..) {
        by_numbers(this, call, |shape| Step::Expand { shape })
    }
);
method!(
    /// permute($self, /, *axes)
    /// A view with its axes in another order.
    /// >>> dlpack_rs.zeros((2, 3, 4)).permute(2, 0, 1).shape
    /// (4, 2, 3)
    permute, |this, call| (..) {
        by_numbers(this, call, |axes| Step::Permute { axes })
    }
);
method!(
    /// transpose($self, /, *axes)
    /// A view with its axes in another order, by default reversed.
    /// >>> dlpack_rs.zeros((2, 3, 4)).transpose().shape
    /// (4, 3, 2)
    transpose, |this, call| (..) {
        match *call.positional {
            [] => reversed(this),
            [none] if !given(call.python, none) => reversed(this),
            _ => by_numbers(this, call, |axes| Step::Permute { axes }),
        }
    }
);
method!(
    /// swapaxes($self, axis_a, axis_b, /)
    /// A view with two axes exchanged.
    /// >>> dlpack_rs.zeros((2, 3, 4)).swapaxes(0, -1).shape
    /// (4, 3, 2)
    swapaxes, |this, call| (a b / *) {
        let axis_a = arguments::axis(call.python, a)?;
        let axis_b = arguments::axis(call.python, b)?;
        step(this, Step::Transpose { axis_a, axis_b })
    }
);
method!(
    /// flip($self, /, axis=None)
    /// A view with one axis, several, or all reversed.
    /// >>> dlpack_rs.asarray([1, 2, 3]).flip().tolist()
    /// [3, 2, 1]
    flip, |this, _| (/ axis *) {
        axes(this, axis, |axis| Step::Flip { axis })
    }
);
method!(
    /// squeeze($self, /, axis=None)
    /// A view without an axis of extent 1, without several, or without all of them.
    /// >>> dlpack_rs.zeros((1, 3, 1)).squeeze().shape
    /// (3,)
    squeeze, |this, _| (/ axis *) {
        axes(this, axis, |axis| Step::Squeeze { axis })
    }
);
method!(
    /// unsqueeze($self, /, axis)
    /// A view with a new axis of extent 1.
    /// >>> dlpack_rs.zeros(3).unsqueeze(-1).shape
    /// (3, 1)
    unsqueeze, |this, call| (/ axis *) {
        call.needs(axis, "an axis")?;
        let axis = arguments::axis(call.python, axis)?;
        step(this, Step::Unsqueeze { axis })
    }
);
method!(
    /// view($self, dtype, /)
    /// A view of the same bytes as elements of another type. As 'uint8' packed elements have any
    /// number, and the view is read-only if the last byte has bits behind them.
    /// >>> dlpack_rs.full(2, 1.0).view('uint16').tolist()
    /// [0, 16256, 0, 16256]
    view, |this, call| (dtype / *) {
        let dtype = call.dtype(dtype)?;
        step(this, Step::Bitcast { dtype })
    }
);
method!(
    /// read_only($self, /)
    /// A view that consumers must not write.
    /// >>> dlpack_rs.zeros(3).read_only().readonly
    /// True
    read_only, |this, _| (/ *) {
        step(this, Step::ReadOnly)
    }
);

/// The step that numbers say, given one by one or as one sequence.
fn by_numbers(this: This, call: &Call, step: fn(&[i64]) -> Step<'_>) -> Result<Owned> {
    let mut room = [0; MAX_NDIM];
    self::step(this, step(call.numbers(&mut room)?))
}

/// One step for every axis of an argument that is None (all axes), a number or a sequence.
#[inline(never)]
fn axes(this: This, wanted: *mut PyObject, step: fn(i32) -> Step<'static>) -> Result<Owned> {
    if !given(this.python, wanted) {
        return self::step(this, step(ALL_AXES));
    }
    let mut room = [0; MAX_NDIM];
    let ndim = i64::from(this.live().description().ndim);
    let mut chosen = 0u64;
    for &axis in arguments::shape(this.python, wanted, &mut room)? {
        let dim = if axis < 0 { axis + ndim } else { axis };
        let bit = 1u64.wrapping_shl(dim as u32);
        if !(0..ndim).contains(&dim) {
            return Err(no_axis(axis, ndim).of(Arg::axis));
        }
        if chosen & bit != 0 {
            const TWICE: &str = "the axis is given twice\0Name an axis once.";
            return Err(Error::new(DLRS_BAD_ARG).detail(TWICE).value(axis).of(Arg::axis));
        }
        chosen |= bit;
    }
    view_of(this, &mut |view| {
        // From the last axis to the first: taking one out does not rename those to come.
        (0..ndim as i32)
            .rev()
            .filter(|&dim| chosen & 1u64.wrapping_shl(dim as u32) != 0)
            .try_for_each(|dim| view.apply(&step(dim)))
    })
}

slot!(
    /// `T`: the axes in the opposite order.
    get_transposed, "T", |this, _place: *mut c_void| -> Owned {
        reversed(this)
    }
);

fn reversed(this: This) -> Result<Owned> {
    view_of(this, &mut |view| {
        view.reverse_axes();
        Ok(())
    })
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
