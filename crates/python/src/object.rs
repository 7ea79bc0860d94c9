//! Objects: owned references, released at the end of their scope; attributes, values.

use core::ffi::{CStr, c_ulong};
use core::marker::PhantomData;
use core::mem::forget;
use core::ptr::{NonNull, null_mut};

use super::raise::{is, raised, required};
use super::symbols::{PyObject, Python, header_nbytes};
use crate::error::Result;

/// A live object, borrowed. The thread is attached to its interpreter.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Object<'a>(NonNull<PyObject>, PhantomData<&'a PyObject>);

impl Object<'_> {
    /// # Safety
    /// `object` is live as long as the result is used, by a thread that is attached.
    #[inline]
    pub unsafe fn new<'a>(object: *mut PyObject) -> Object<'a> {
        // SAFETY: a live object is not NULL.
        Object(unsafe { NonNull::new_unchecked(object) }, PhantomData)
    }

    /// The object.
    #[inline]
    pub fn as_ptr(self) -> *mut PyObject {
        self.0.as_ptr()
    }
}

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
        // SAFETY: `object` is live, and this thread is attached.
        unsafe { python.Py_IncRef(object.as_ptr()) };
        Owned(object, PhantomData)
    }

    /// The object, borrowed.
    #[inline]
    pub fn as_ptr(&self) -> *mut PyObject {
        self.0.as_ptr()
    }

    /// The object, borrowed.
    #[inline]
    pub fn object(&self) -> Object<'_> {
        Object(self.0, PhantomData)
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

/// An interned text.
pub fn text(python: Python, text: &CStr) -> Result<Owned> {
    // SAFETY: attached; the text ends with NUL.
    unsafe { required(python.PyUnicode_InternFromString(text.as_ptr())) }
}

/// A number.
pub fn integer(python: Python, value: i64) -> Result<Owned> {
    // SAFETY: attached.
    unsafe { required(python.PyLong_FromLongLong(value)) }
}

/// A tuple of objects, each of which gets one more reference.
pub fn tuple(python: Python, items: &[*mut PyObject]) -> Result<Owned> {
    // SAFETY: attached; live objects; each place is filled once, which takes the reference.
    unsafe {
        let tuple = required(python.PyTuple_New(items.len() as isize))?;
        for (place, &item) in items.iter().enumerate() {
            python.Py_IncRef(item);
            if python.PyTuple_SetItem(tuple.as_ptr(), place as isize, item) != 0 {
                return Err(raised());
            }
        }
        Ok(tuple)
    }
}

/// A tuple of two numbers.
pub fn pair(python: Python, first: i64, second: i64) -> Result<Owned> {
    let (first, second) = (integer(python, first)?, integer(python, second)?);
    tuple(python, &[first.as_ptr(), second.as_ptr()])
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
    // SAFETY: `thread` is the state that this thread has just saved.
    unsafe { python.PyEval_RestoreThread(thread) };
    result
}

/// `_PyType_Lookup`.
type LookUp = unsafe extern "C" fn(*mut PyObject, *mut PyObject) -> *mut PyObject;

impl Python {
    /// An attribute; `None` when the object has none of that name.
    pub fn attribute(self, object: Object, name: Object) -> Result<Option<Owned>> {
        // SAFETY: live objects.
        unsafe {
            if let Some(look_up) = self.PyObject_GetOptionalAttr() {
                let mut found = null_mut();
                let answer = look_up(object.as_ptr(), name.as_ptr(), &raw mut found);
                return if answer < 0 { Err(raised()) } else { Ok(Owned::new(found)) };
            }
            let found = Owned::new(self.PyObject_GetAttr(object.as_ptr(), name.as_ptr()));
            if found.is_none() {
                if !is(self, Python::PyExc_AttributeError) {
                    return Err(raised());
                }
                self.PyErr_Clear();
            }
            Ok(found)
        }
    }

    /// An attribute of an object's attribute; `None` when there is no such.
    pub fn attribute_of_attribute(
        self,
        object: Object,
        [first, second]: [&CStr; 2],
    ) -> Result<Option<Owned>> {
        match self.attribute(object, text(self, first)?.object())? {
            Some(found) => self.attribute(found.object(), text(self, second)?.object()),
            None => Ok(None),
        }
    }

    /// An attribute of an object's type, as `getattr(type, name)` finds it. Most types do not have
    /// this one: an exception, made and thrown away, would cost more than all the rest. Python 3.13
    /// has a function for that. The older ones, which will not change any more, have
    /// `_PyType_Lookup`, which does not see attributes that a metaclass gives: a second call of it
    /// looks in the metaclass, unless that has a `__getattr__` or `__getattribute__` of its own.
    #[inline]
    pub fn attribute_of_type(self, kind: Object, name: Object) -> Result<Option<Owned>> {
        // SAFETY: live objects.
        unsafe {
            if let (None, Some(look_up)) = (self.PyObject_GetOptionalAttr(), self._PyType_Lookup())
                && look_up(kind.as_ptr(), name.as_ptr()).is_null()
                && (type_of(kind.as_ptr()) == self.PyType_Type()
                    || self.gives_nothing(look_up, type_of(kind.as_ptr()), name)?)
            {
                return Ok(None);
            }
            self.attribute(kind, name)
        }
    }

    /// Whether a metaclass gives its types no attribute of a name.
    ///
    /// # Safety
    /// `meta` is live, and `look_up` is `_PyType_Lookup`.
    #[inline(never)]
    unsafe fn gives_nothing(
        self,
        look_up: LookUp,
        meta: *mut PyObject,
        name: Object,
    ) -> Result<bool> {
        let [more, all] = [text(self, c"__getattr__")?, text(self, c"__getattribute__")?];
        let (more, all, usual) = (more.as_ptr(), all.as_ptr(), self.PyType_Type());
        // SAFETY: live types and texts; what is found is compared only.
        unsafe {
            let plain = look_up(meta, more).is_null() && look_up(meta, all) == look_up(usual, all);
            Ok(plain && look_up(meta, name.as_ptr()).is_null())
        }
    }

    /// Whether an object's type has an attribute.
    #[inline(never)]
    pub fn type_has(self, kind: Object, name: Object) -> Result<bool> {
        self.attribute_of_type(kind, name).map(|found| found.is_some())
    }

    /// The type of an object.
    pub fn kind(self, object: Object) -> Result<Owned> {
        // SAFETY: a live object.
        unsafe { required(self.PyObject_Type(object.as_ptr())) }
    }

    /// What a method without arguments returns; `None` when it raised.
    pub fn call(self, object: Object, method: Object) -> Option<Owned> {
        let args = [object.as_ptr()];
        let (method, args) = (method.as_ptr(), args.as_ptr());
        // SAFETY: live objects; one positional argument, the object.
        unsafe { Owned::new(self.PyObject_VectorcallMethod(method, args, 1, null_mut())) }
    }

    /// Whether an object is true.
    pub fn truth(self, object: Object) -> Result<bool> {
        // SAFETY: live objects.
        match unsafe { self.PyObject_IsTrue(object.as_ptr()) } {
            -1 => Err(raised()),
            truth => Ok(truth != 0),
        }
    }

    /// The value of an integer object.
    pub fn number(self, object: Object) -> Result<i64> {
        // SAFETY: live objects.
        unsafe {
            let number = self.PyLong_AsLongLong(object.as_ptr());
            if number == -1 && !self.PyErr_Occurred().is_null() {
                return Err(raised());
            }
            Ok(number)
        }
    }
}
