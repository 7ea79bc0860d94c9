//! Owned references, so that none is forgotten on the way out of a function.

use core::marker::PhantomData;
use core::mem::forget;
use core::ptr::{NonNull, null_mut};

use super::raise::{is, raised};
use super::symbols::{PyObject, Python};
use crate::error::Result;

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

impl Python {
    /// An attribute; `None` when the object has none of that name.
    ///
    /// # Safety
    /// Both objects are live.
    #[inline]
    pub unsafe fn attribute(
        self,
        object: *mut PyObject,
        name: *mut PyObject,
    ) -> Result<Option<Owned>> {
        let mut found = null_mut();
        // SAFETY: the caller's word. The first two make no exception that is then thrown away.
        unsafe {
            let answer = match self.PyObject_GetOptionalAttr().or(self._PyObject_LookupAttr()) {
                Some(look_up) => look_up(object, name, &raw mut found),
                None => {
                    found = self.PyObject_GetAttr(object, name);
                    if found.is_null() && is(self, self.PyExc_AttributeError()) {
                        self.PyErr_Clear();
                        return Ok(None);
                    }
                    if found.is_null() { -1 } else { 1 }
                }
            };
            if answer < 0 { Err(raised()) } else { Ok(Owned::new(found)) }
        }
    }

    /// The value of an integer object.
    ///
    /// # Safety
    /// `object` is live.
    pub unsafe fn number(self, object: *mut PyObject) -> Result<i64> {
        // SAFETY: the caller's word.
        unsafe {
            let number = self.PyLong_AsLongLong(object);
            if number == -1 && !self.PyErr_Occurred().is_null() {
                return Err(raised());
            }
            Ok(number)
        }
    }
}
