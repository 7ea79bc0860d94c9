//! Copies in another order or place.

use super::arguments::{self, method};
use super::failure::truth;
use super::tensor::{self, Held};
use crate::copy::{self, Options};
use crate::error::Result;
use crate::layout::{self, Order};
use crate::python::{Owned, PyObject, Python, detached};
use crate::tensor::Versioned;
use crate::tensor::block::Block;
use crate::validate::Snapshot;

const OPTIONS: &Options = &Options::DEFAULT;

/// The tensor that `make` makes of the elements of `object`.
///
/// # Safety
/// `object` is a live `Tensor`.
pub unsafe fn derived(
    python: Python,
    object: *mut PyObject,
    make: &mut dyn FnMut(&Snapshot) -> Result<Versioned>,
) -> Result<Owned> {
    let mut snapshot = Snapshot::new();
    // SAFETY: the caller's word; the reference that the call has keeps the object.
    unsafe {
        tensor::read(object, OPTIONS.rules(), &mut snapshot)?;
        let made = detached(python, snapshot.nbytes()?, || make(&snapshot));
        Held::new(python, made?).object(tensor::type_of(object))
    }
}

/// A dense copy of an object's tensor, on its device.
///
/// # Safety
/// `object` is a live `Tensor`.
pub unsafe fn copy_of(python: Python, object: *mut PyObject, order: Order) -> Result<Owned> {
    // SAFETY: the caller's word.
    unsafe { derived(python, object, &mut |from| copy::clone(from, order, from.device, OPTIONS)) }
}

method!(
    /// copy($self, /, order='C')
    /// A dense copy on the same device, in the order 'C', 'F' or 'K' (that of the strides).
    /// >>> dlpack_rs.zeros((2, 3)).copy('F').strides
    /// (1, 2)
    copy, |object, call| (/ order *) {
        let order = match call.order(order)? {
            Order::A => Order::C,
            order => order,
        };
        copy_of(call.python, object, order)
    }
);
method!(
    /// contiguous($self, /, order='C')
    /// The same memory if it is dense in the order 'C', 'F', 'A' (either) or 'K' (any), else a
    /// copy.
    /// >>> dlpack_rs.zeros((2, 3)).T.contiguous().strides
    /// (2, 1)
    contiguous, |object, call| (/ order *) {
        let order = call.order(order)?;
        let tensor = Block::versioned(tensor::block_of(object));
        derived(call.python, object, &mut |from| {
            copy::made(OPTIONS, &mut |job| copy::contiguous(from, tensor, order, OPTIONS, job))
        })
    }
);
method!(
    /// is_contiguous($self, /, order='C')
    /// Whether it is dense in the order 'C', 'F', 'A' (either) or 'K' (any).
    /// >>> dlpack_rs.zeros((2, 3)).T.is_contiguous('F')
    /// True
    is_contiguous, |object, call| (/ order *) {
        let order = call.order(order)?;
        let mut snapshot = Snapshot::new();
        tensor::read(object, OPTIONS.rules(), &mut snapshot)?;
        let dense = layout::is_contiguous(snapshot.shape(), snapshot.strides(), order);
        truth(call.python, dense)
    }
);
method!(
    /// to($self, /, device, *, copy=None)
    /// The tensor on a device: the same memory, or a copy. Pinned and managed memory is the CPU's
    /// too.
    ///
    /// copy: True always copies, False never (BufferError if one is needed), None if needed.
    /// >>> dlpack_rs.zeros(3).to('cpu', copy=True).is_copied
    /// True
    to, |object, call| (/ device * copy) {
        call.needs(device, "a device")?;
        let device = call.device(device)?;
        let policy = arguments::policy(call.python, copy)?;
        let tensor = Block::versioned(tensor::block_of(object));
        derived(call.python, object, &mut |from| {
            copy::made(OPTIONS, &mut |job| {
                copy::to_device(from, tensor, device, policy, OPTIONS, job)
            })
        })
    }
);
