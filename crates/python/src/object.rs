//! Objects: owned references, released at the end of their scope; attributes, values.

use core::ffi::{CStr, c_char, c_int, c_longlong, c_ulong};
use core::marker::PhantomData;
use core::mem::forget;
use core::ptr::{NonNull, null_mut};

use super::symbols::{PyObject, Python, header_nbytes};
use crate::error::{Error, Result, Status::*};

/// A live object, borrowed, as C has it. The thread is attached to its interpreter.
#[repr(transparent)]
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Object<'a>(NonNull<PyObject>, PhantomData<&'a PyObject>);

impl<'a> Object<'a> {
    /// # Safety
    /// `object` is live as long as the result is used, by a thread that is attached, after
    /// [`Python::get`] has succeeded.
    #[inline]
    pub unsafe fn new(object: *mut PyObject) -> Object<'a> {
        // SAFETY: a live object is not NULL.
        Object(unsafe { NonNull::new_unchecked(object) }, PhantomData)
    }

    /// As [`Object::new`]; `None` of NULL.
    ///
    /// # Safety
    /// As [`Object::new`], where it is not NULL.
    #[inline]
    pub unsafe fn optional(object: *mut PyObject) -> Option<Object<'a>> {
        Some(Object(NonNull::new(object)?, PhantomData))
    }

    /// The object.
    #[inline]
    pub fn as_ptr(self) -> *mut PyObject {
        self.0.as_ptr()
    }

    /// Its type, borrowed: live until Python code runs, which may give the object another.
    #[inline]
    pub fn type_of(self) -> Object<'a> {
        // SAFETY: the type stands at the end of the header: `Python::get` has seen that it does.
        unsafe {
            let end = self.as_ptr().byte_add(header_nbytes()).cast::<*mut PyObject>();
            Object::new(end.sub(1).read())
        }
    }

    /// One more reference.
    #[inline]
    pub fn share(self, python: Python) -> Owned {
        // SAFETY: a live object; there is a `Python`, so this thread is attached.
        unsafe { python.Py_IncRef(self.as_ptr()) };
        Owned(self.0, PhantomData)
    }

    /// The item of a tuple, borrowed from it.
    ///
    /// # Safety
    /// It is a tuple, which has such a place.
    #[inline]
    pub unsafe fn item(self, python: Python, place: usize) -> Object<'a> {
        // SAFETY: the item is live, as long as the tuple, which never changes.
        unsafe { Object::new(python.PyTuple_GetItem(self, place as isize)) }
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

/// The error that stands for an exception that Python has set.
#[cold]
pub fn raised() -> Error {
    Error::new(DLRS_CALLBACK).detail("Python raised an exception, which is still set")
}

/// The result of a Python function, or that it raised.
///
/// # Safety
/// `object` is NULL or a new reference, which is taken; this thread is attached.
#[inline]
pub unsafe fn required(object: *mut PyObject) -> Result<Owned> {
    // SAFETY: `object` is NULL or a new reference, and this thread is attached.
    unsafe { Owned::new(object) }.ok_or_else(raised)
}

/// Whether the exception that is set is of a kind.
pub fn is(python: Python, kind: fn(Python) -> Object<'static>) -> bool {
    // SAFETY: attached; where no exception is set none matches.
    unsafe { python.PyErr_ExceptionMatches(kind(python)) != 0 }
}

/// What a function of Python returns, where C has a sign that it raised.
pub trait Returned: Sized {
    /// As C has it.
    type Raw;

    /// # Safety
    /// A function of Python has just returned `raw`: an object is a new reference, which is taken.
    unsafe fn of(python: Python, raw: Self::Raw) -> Result<Self>;
}

impl Returned for Owned {
    type Raw = *mut PyObject;

    #[inline]
    unsafe fn of(_: Python, raw: *mut PyObject) -> Result<Owned> {
        // SAFETY: NULL or a new reference; there is a `Python`, so this thread is attached.
        unsafe { required(raw) }
    }
}

/// Kinds of numbers of which one stands for an exception: always, or where one is set.
macro_rules! numbers {
    ($($type:ty, $raw:ty, |$python:ident, $number:ident| $raised:expr, $value:expr;)*) => { $(
        impl Returned for $type {
            type Raw = $raw;

            #[inline]
            unsafe fn of($python: Python, $number: $raw) -> Result<$type> {
                if $raised { Err(raised()) } else { Ok($value) }
            }
        }
    )* };
}

numbers! {
    bool, c_int, |_python, answer| answer < 0, answer > 0;
    usize, isize, |_python, size| size < 0, size as usize;
    isize, isize, |python, number| number == -1 && python.has_raised(), number;
    i64, c_longlong, |python, number| number == -1 && python.has_raised(), number;
    u64, u64, |python, number| number == u64::MAX && python.has_raised(), number;
    f64, f64, |python, number| number == -1.0 && python.has_raised(), number;
}

/// Python's own types with their subclasses, as bits of the flags of a type.
pub mod kinds {
    use core::ffi::c_ulong;

    /// `Py_TPFLAGS_LONG_SUBCLASS`
    pub const LONG: c_ulong = 1 << 24;
    /// `Py_TPFLAGS_LIST_SUBCLASS`
    pub const LIST: c_ulong = 1 << 25;
    /// `Py_TPFLAGS_TUPLE_SUBCLASS`
    pub const TUPLE: c_ulong = 1 << 26;
    /// `Py_TPFLAGS_UNICODE_SUBCLASS`
    pub const TEXT: c_ulong = 1 << 28;
    /// `Py_TPFLAGS_DICT_SUBCLASS`
    pub const DICT: c_ulong = 1 << 29;
}

/// Whether an object is of some [`kinds`], as `PyTuple_Check` tells: much faster than `isinstance`.
#[inline]
pub fn is_a(python: Python, object: Object, kinds: c_ulong) -> bool {
    // SAFETY: the type is live: no Python code runs that could give the object another.
    unsafe { python.PyType_GetFlags(object.type_of()) & kinds != 0 }
}

/// An interned text.
pub fn text(python: Python, text: &CStr) -> Result<Owned> {
    // SAFETY: attached; the text ends with NUL.
    unsafe { required(python.PyUnicode_InternFromString(text.as_ptr())) }
}

/// A text of some bytes.
pub fn text_of(python: Python, text: &[u8]) -> Result<Owned> {
    let start: *const c_char = text.as_ptr().cast();
    // SAFETY: as many bytes as there are.
    unsafe { required(python.PyUnicode_FromStringAndSize(start, text.len() as isize)) }
}

/// A tuple of `count` objects.
pub fn tuple(
    python: Python,
    count: usize,
    mut item: impl FnMut(usize) -> Result<Owned>,
) -> Result<Owned> {
    // SAFETY: attached; a fresh tuple, filled before anybody sees it: each place takes a reference.
    unsafe {
        let tuple = required(python.PyTuple_New(count as isize))?;
        for place in 0..count {
            let item = item(place)?.into_ptr();
            let set = python.PyTuple_SetItem(tuple.as_ptr(), place as isize, item);
            bool::of(python, set)?;
        }
        Ok(tuple)
    }
}

/// A tuple of objects, each of which gets one more reference.
pub fn tuple_of(python: Python, items: &[Object]) -> Result<Owned> {
    let item = |place| items.get(place).map(|item: &Object| item.share(python));
    tuple(python, items.len(), |place| item(place).ok_or_else(raised))
}

/// A tuple of numbers.
pub fn numbers(python: Python, numbers: &[i64]) -> Result<Owned> {
    let number = |place| numbers.get(place).copied().unwrap_or_default();
    tuple(python, numbers.len(), |place| python.PyLong_FromLongLong(number(place)))
}

/// What is in a capsule of that name; `None` for any other, which is not ours to free: renamed, or
/// no capsule at all. Sets no exception.
#[inline]
pub fn pointer<T>(python: Python, capsule: Object, name: &CStr) -> Option<NonNull<T>> {
    // SAFETY: `name` ends with NUL.
    unsafe { contents(python, capsule, name.as_ptr()) }
}

/// As [`pointer`].
///
/// # Safety
/// `name` is a text that ends with NUL.
#[inline]
pub unsafe fn contents<T>(
    python: Python,
    capsule: Object,
    name: *const c_char,
) -> Option<NonNull<T>> {
    match capsule.type_of() == python.PyCapsule_Type() {
        // SAFETY: it is a capsule: nobody can derive from the type; `name` ends with NUL.
        true => unsafe { inside(python, capsule, name) },
        false => None,
    }
}

/// As [`contents`], of a capsule.
///
/// # Safety
/// It is one, and `name` is a text that ends with NUL.
#[inline]
pub unsafe fn inside<T>(
    python: Python,
    capsule: Object,
    name: *const c_char,
) -> Option<NonNull<T>> {
    // SAFETY: `capsule` is a live capsule: its pointer is not NULL, and its name is NULL or a text.
    unsafe {
        let capsule = capsule.as_ptr();
        let found = python.PyCapsule_GetName(capsule);
        // Of our own capsules it is our own text: the addresses are compared before the contents.
        if found != name && python.PyCapsule_IsValid(capsule, name) == 0 {
            return None;
        }
        NonNull::new(python.PyCapsule_GetPointer(capsule, found).cast())
    }
}

/// Work on more bytes lets other threads run Python meanwhile.
const LONG_NBYTES: u64 = 1 << 16;

/// Work on so many bytes.
///
/// # Safety
/// `work` uses no `Python` of this thread; what it calls attaches itself.
pub unsafe fn detached<T>(python: Python, nbytes: u64, work: impl FnOnce() -> T) -> T {
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
type LookUp = unsafe extern "C" fn(Object, Object) -> *mut PyObject;

impl Python {
    /// Whether an exception is set.
    #[inline]
    pub fn has_raised(self) -> bool {
        // SAFETY: attached, by `Python`.
        unsafe { !self.PyErr_Occurred().is_null() }
    }

    /// Clears the exception that is set, if any.
    #[inline]
    pub fn clear(self) {
        // SAFETY: attached, by `Python`.
        unsafe { self.PyErr_Clear() }
    }

    /// An attribute; `None` when the object has none of that name.
    pub fn attribute(self, object: Object, name: Object) -> Result<Option<Owned>> {
        // SAFETY: live objects.
        unsafe {
            if let Some(look_up) = self.PyObject_GetOptionalAttr() {
                let mut found = null_mut();
                let answer = look_up(object, name, &raw mut found);
                return if answer < 0 { Err(raised()) } else { Ok(Owned::new(found)) };
            }
        }
        match self.PyObject_GetAttr(object, name) {
            Ok(found) => Ok(Some(found)),
            Err(_) if is(self, Python::PyExc_AttributeError) => {
                self.clear();
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    /// An attribute that is needed.
    pub fn named(self, object: Object, name: &CStr) -> Result<Owned> {
        // SAFETY: a live object, and a text that ends with NUL.
        unsafe { required(self.PyObject_GetAttrString(object, name.as_ptr())) }
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
                && look_up(kind, name).is_null()
                && (kind.type_of() == self.PyType_Type()
                    || self.gives_nothing(look_up, kind.type_of(), name)?)
            {
                return Ok(None);
            }
            self.attribute(kind, name)
        }
    }

    /// Whether a metaclass gives its types no attribute of a name.
    ///
    /// # Safety
    /// `look_up` is `_PyType_Lookup`.
    #[inline(never)]
    unsafe fn gives_nothing(self, look_up: LookUp, meta: Object, name: Object) -> Result<bool> {
        let [more, all] = [text(self, c"__getattr__")?, text(self, c"__getattribute__")?];
        let (more, all, usual) = (more.object(), all.object(), self.PyType_Type());
        // SAFETY: live types and texts; what is found is compared only.
        unsafe {
            let plain = look_up(meta, more).is_null() && look_up(meta, all) == look_up(usual, all);
            Ok(plain && look_up(meta, name).is_null())
        }
    }

    /// Whether an object's type has an attribute.
    #[inline(never)]
    pub fn type_has(self, kind: Object, name: Object) -> Result<bool> {
        self.attribute_of_type(kind, name).map(|found| found.is_some())
    }

    /// What a method of the first of some objects returns, given the others.
    pub fn call(self, method: Object, args: &[Object]) -> Result<Owned> {
        if args.is_empty() {
            return Err(Error::new(DLRS_INTERNAL).detail("a method is called of no object"));
        }
        // SAFETY: live objects, all by position; the first is the one whose method it is.
        unsafe { required(self.PyObject_VectorcallMethod(method, args.as_ptr(), args.len(), None)) }
    }
}
