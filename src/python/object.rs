//! Owned references, released at the end of their scope.

use core::ffi::c_ulong;
use core::marker::PhantomData;
use core::mem::forget;
use core::ptr::{NonNull, null_mut};

use super::raise::{is, raised};
use super::symbols::{PyObject, Python, header_nbytes};
use crate::error::Result;

/// An owned reference; released when it goes out of scope, on the same thread.
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

/// The type of any object, borrowed.
///
/// # Safety
/// `object` is live, and [`Python::get`] has succeeded.
#[inline]
pub unsafe fn type_of(object: *mut PyObject) -> *mut PyObject {
    // SAFETY: the type stands at the end of the header: `Python::get` has seen that it does.
    unsafe { object.byte_add(header_nbytes()).cast::<*mut PyObject>().sub(1).read() }
}

/// Whether a live object is a text, as `PyUnicode_Check` tells: much faster than `isinstance`.
#[inline]
pub fn is_text(python: Python, object: *mut PyObject) -> bool {
    const TEXT: c_ulong = 1 << 28; // Py_TPFLAGS_UNICODE_SUBCLASS
    // SAFETY: a live object, and so its type.
    unsafe { python.PyType_GetFlags(type_of(object)) & TEXT != 0 }
}

/// Work on more bytes lets other threads run Python meanwhile.
const LONG_NBYTES: u64 = 1 << 16;

/// Work that calls nothing of Python, on so many bytes.
pub fn detached<T>(python: Python, nbytes: u64, work: impl FnOnce() -> T) -> T {
    if nbytes <= LONG_NBYTES {
        return work();
    }
    // SAFETY: attached, by `Python`; attached again before it is used.
    let thread = unsafe { python.PyEval_SaveThread() };
    let result = work();
    // SAFETY: as above.
    unsafe { python.PyEval_RestoreThread(thread) };
    result
}

impl Python {
    /// An attribute; `None` when the object has none of that name.
    ///
    /// # Safety
    /// Both objects are live.
    pub unsafe fn attribute(
        self,
        object: *mut PyObject,
        name: *mut PyObject,
    ) -> Result<Option<Owned>> {
        // SAFETY: the caller's word.
        unsafe {
            if let Some(look_up) = self.PyObject_GetOptionalAttr() {
                let mut found = null_mut();
                let answer = look_up(object, name, &raw mut found);
                return if answer < 0 { Err(raised()) } else { Ok(Owned::new(found)) };
            }
            let found = Owned::new(self.PyObject_GetAttr(object, name));
            if found.is_none() {
                if !is(self, Python::PyExc_AttributeError) {
                    return Err(raised());
                }
                self.PyErr_Clear();
            }
            Ok(found)
        }
    }

    /// An attribute of an object's type, as `getattr(type, name)` finds it. Most types do not have
    /// the one that is asked for: so an exception, made and thrown away, would cost more than all
    /// the rest. Python 3.13 has a function for that. The older ones, which will not change any
    /// more, have `_PyType_Lookup`, which knows nothing of attributes that a metaclass gives.
    ///
    /// # Safety
    /// Both objects are live.
    #[inline]
    pub unsafe fn attribute_of_type(
        self,
        kind: *mut PyObject,
        name: *mut PyObject,
    ) -> Result<Option<Owned>> {
        // SAFETY: the caller's word.
        unsafe {
            if let (None, Some(look_up)) = (self.PyObject_GetOptionalAttr(), self._PyType_Lookup())
                && type_of(kind) == self.PyType_Type()
                && look_up(kind, name).is_null()
            {
                return Ok(None);
            }
            self.attribute(kind, name)
        }
    }

    /// Whether an object's type has an attribute.
    ///
    /// # Safety
    /// As [`Python::attribute_of_type`].
    #[inline(never)]
    pub unsafe fn type_has(self, kind: *mut PyObject, name: NonNull<PyObject>) -> Result<bool> {
        // SAFETY: the caller's word.
        unsafe { self.attribute_of_type(kind, name.as_ptr()) }.map(|found| found.is_some())
    }

    /// Whether an object is true.
    ///
    /// # Safety
    /// `object` is live.
    pub unsafe fn truth(self, object: *mut PyObject) -> Result<bool> {
        // SAFETY: the caller's word.
        match unsafe { self.PyObject_IsTrue(object) } {
            -1 => Err(raised()),
            truth => Ok(truth != 0),
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
