//! Owned references, so that none is forgotten on the way out of a function.

use core::marker::PhantomData;
use core::mem::forget;
use core::ptr::NonNull;

use super::symbols::{PyObject, Python};

/// A reference that we own; given back when it goes out of scope, on the same thread.
pub struct Owned(NonNull<PyObject>, PhantomData<*mut ()>);

impl Owned {
    /// What a function of Python returned; `None` when it raised.
    ///
    /// # Safety
    /// `object` is NULL or a new reference, which is taken; this thread is attached.
    #[inline]
    pub unsafe fn new(object: *mut PyObject) -> Option<Owned> {
        Some(Owned(NonNull::new(object)?, PhantomData))
    }

    /// One more reference to a borrowed object.
    ///
    /// # Safety
    /// `object` is live; this thread is attached.
    #[inline]
    pub unsafe fn share(python: Python, object: NonNull<PyObject>) -> Owned {
        // SAFETY: the caller's word.
        unsafe { python.Py_IncRef(object.as_ptr()) };
        Owned(object, PhantomData)
    }

    /// The object, borrowed.
    #[inline]
    pub fn as_ptr(&self) -> *mut PyObject {
        self.0.as_ptr()
    }

    /// The reference itself, now the caller's.
    #[inline]
    pub fn into_ptr(self) -> *mut PyObject {
        let object = self.0.as_ptr();
        forget(self);
        object
    }
}

impl Drop for Owned {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: made while attached to Python, and never leaves the thread nor the call.
        unsafe { Python::calling().Py_DecRef(self.0.as_ptr()) }
    }
}
