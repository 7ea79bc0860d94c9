//! Copies in another order or place.

use core::ffi::CStr;
use core::ptr::null_mut;

use super::arguments;
use super::failure::{Answer, Failure, made};
use super::tensor;
use super::views::method;
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
unsafe fn derived(
    python: Python,
    object: *mut PyObject,
    make: impl FnOnce(&Snapshot) -> Result<Versioned>,
) -> Answer<Owned> {
    let mut snapshot = Snapshot::new();
    // SAFETY: the caller's word; the reference that the call has keeps the object.
    unsafe {
        tensor::read(object, OPTIONS.rules(), &mut snapshot)?;
        let made = detached(python, snapshot.nbytes()?, || make(&snapshot));
        tensor::wrapped(python, tensor::type_of(object), made)
    }
}

/// A dense copy of an object's tensor.
///
/// # Safety
/// `object` is a live `Tensor`.
pub unsafe fn copy_of(python: Python, object: *mut PyObject) -> Answer<Owned> {
    // SAFETY: the caller's word.
    unsafe { derived(python, object, |from| copy::clone(from, Order::C, from.device, OPTIONS)) }
}

const ORDER: &CStr = c"order";

method!(
    /// `copy(order='C')`
    copy_method, "copy", |object, call| {
        let mut values = [null_mut()];
        call.bind(&[ORDER], 1, &mut values)?;
        let order = match call.order(values[0])? {
            Order::A => Order::C,
            order => order,
        };
        derived(call.python, object, |from| copy::clone(from, order, from.device, OPTIONS))
    }
);
method!(
    /// `contiguous(order='C')`
    contiguous, "contiguous", |object, call| {
        let mut values = [null_mut()];
        call.bind(&[ORDER], 1, &mut values)?;
        let order = call.order(values[0])?;
        let tensor = Block::versioned(tensor::block_of(object));
        derived(call.python, object, |from| {
            copy::made(OPTIONS, &mut |job| copy::contiguous(from, tensor, order, OPTIONS, job))
        })
    }
);
method!(
    /// `is_contiguous(order='C')`
    is_contiguous, "is_contiguous", |object, call| {
        let mut values = [null_mut()];
        call.bind(&[ORDER], 1, &mut values)?;
        let order = call.order(values[0])?;
        let mut snapshot = Snapshot::new();
        tensor::read(object, OPTIONS.rules(), &mut snapshot)?;
        let dense = layout::is_contiguous(snapshot.shape(), snapshot.strides(), order);
        made(call.python.PyBool_FromLong(dense.into()))
    }
);
method!(
    /// `to(device, *, copy=None)`
    to, "to", |object, call| {
        let mut values = [null_mut(); 2];
        call.bind(&[c"device", c"copy"], 1, &mut values)?;
        if values[0].is_null() {
            return Err(Failure::Call("needs a device"));
        }
        let device = call.device(values[0])?;
        let policy = arguments::policy(call.python, values[1])?;
        let tensor = Block::versioned(tensor::block_of(object));
        derived(call.python, object, |from| {
            copy::made(OPTIONS, &mut |job| {
                copy::to_device(from, tensor, device, policy, OPTIONS, job)
            })
        })
    }
);
