//! What an object of the module holds behind Python's header: a `Tensor`, and the object that lends
//! its memory as a buffer.

use core::ptr::NonNull;

use crate::tensor::block::Block;
use crate::{Object, PyObject, Python, header_nbytes, home, type_of};

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

/// The block behind an object that lends a `Tensor`'s memory; `None` of any other.
pub fn lent_block(python: Python, object: Object) -> Option<NonNull<Block>> {
    // SAFETY: a live object, and what one of that type holds.
    unsafe {
        let kind = home::here(python).ok()?.lender.kept()?;
        (type_of(object.as_ptr()) == kind.as_ptr()).then(|| (*payload(object.as_ptr())).tensor)?
    }
}
