//! What an object of the module holds behind Python's header: a `Tensor`, and the object that lends
//! its memory as a buffer.

use core::ptr::NonNull;

use crate::constants::{self, Constant};
use crate::error::Result;
use crate::tensor::block::Block;
use crate::{Object, PyObject, Python, header_nbytes, home};

/// The members after Python's object header.
#[repr(C)]
pub struct Payload {
    /// `None` only until it is filled.
    pub tensor: Option<NonNull<Block>>,
    /// Python's list of them.
    pub weak_references: *mut PyObject,
}

/// # Safety
/// `object` is a `Tensor`, or an object that lends the memory of one.
#[inline]
pub unsafe fn payload(object: *mut PyObject) -> *mut Payload {
    // SAFETY: the payload stands behind the header of an object of these types.
    unsafe { object.byte_add(header_nbytes()).cast() }
}

/// The block behind an object that lends a `Tensor`'s memory, by itself or through views; `None` of
/// any other.
pub fn lent_block(python: Python, object: Object) -> Result<Option<NonNull<Block>>> {
    let of_lender = |object: Object| {
        let kind = home::here(python).ok()?.lender.kept()?;
        // SAFETY: of that type, it holds a payload.
        (object.type_of() == kind).then(|| unsafe { (*payload(object.as_ptr())).tensor })?
    };
    // Nobody can derive from the type of views, each of which keeps the object that all are of.
    if object.type_of() != python.PyMemoryView_Type() {
        return Ok(of_lender(object));
    }
    let viewed = python.attribute(object, constants::get(python, Constant::Obj)?)?;
    Ok(viewed.and_then(|viewed| of_lender(viewed.object())))
}
