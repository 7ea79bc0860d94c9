//! The table of CPython's functions, filled once from the running process.
//!
//! A line of the `symbols!` list at the end is all that a new function needs; what only the Python
//! module calls has a table of its own, `module_symbols.rs`. The tables are filled by whoever comes
//! first; several threads that come at once write the same addresses, so there is no lock. Where
//! there is no Python the next call looks again: it may be loaded by then.
#![allow(non_snake_case)]

use core::ffi::{CStr, c_char, c_int, c_long, c_longlong, c_ulong, c_void};
use core::marker::PhantomData;
use core::mem::transmute;
use core::ptr::null_mut;
use core::sync::atomic::{AtomicPtr, AtomicUsize, Ordering::*};

use super::object::{Object, Owned};
use crate::error::{Error, Result, Status::*};
use crate::platform::{self, Library};

/// A Python object, seen through pointers only.
#[repr(C)]
pub struct PyObject([u8; 0]);

/// `PyCapsule_Destructor`.
pub type Destructor = unsafe extern "C" fn(capsule: *mut PyObject);

/// `Py_buffer`, whose layout has not changed since 3.0 and is part of the stable ABI since 3.11.
#[repr(C)]
pub struct PyBuffer {
    /// First element.
    pub buf: *mut c_void,
    /// The exporter.
    pub obj: *mut PyObject,
    /// Bytes of all elements.
    pub len: isize,
    /// Bytes of one element.
    pub itemsize: isize,
    /// Not 0: the memory must not be written.
    pub readonly: c_int,
    /// Number of dimensions.
    pub ndim: c_int,
    /// Element type as in the module struct; NULL for unsigned bytes.
    pub format: *mut c_char,
    /// Extents.
    pub shape: *mut isize,
    /// Bytes to step per dimension.
    pub strides: *mut isize,
    /// Not NULL: some dimension goes through pointers.
    pub suboffsets: *mut isize,
    /// The exporter's own.
    pub internal: *mut c_void,
}

/// `PyCriticalSection`: two words that are Python's own, with room for more.
#[repr(C)]
pub struct CriticalSection(pub [usize; 8]);

/// The right to call Python: it is in the process, runs, and is attached to this thread. Bound to
/// the thread that asked.
#[derive(Clone, Copy)]
pub struct Python(pub(crate) PhantomData<*mut ()>);

/// Bytes of the header of every object: 16, more where there is no GIL. The same in every
/// interpreter of the process; 0 before [`Python::get`] has first succeeded, and so before the
/// table is filled.
pub(crate) static HEADER: AtomicUsize = AtomicUsize::new(0);

/// Bytes of the header of every object of Python's.
#[inline]
pub fn header_nbytes() -> usize {
    HEADER.load(Relaxed)
}

impl Python {
    /// Python, for functions that Python itself is calling.
    ///
    /// # Safety
    /// [`Python::get`] has succeeded once in this process, and this thread is attached, or calls
    /// only what needs no attachment.
    #[inline]
    pub unsafe fn calling() -> Python {
        Python(PhantomData)
    }
}

#[cold]
pub(crate) fn refuse(detail: &'static str) -> Error {
    Error::new(DLRS_UNSUPPORTED).detail(detail)
}

/// Fills one table, of which the first places are required.
///
/// # Safety
/// `names` has as many texts as there are places, each ending with NUL.
#[cold]
pub unsafe fn fill(
    library: Library,
    names: &'static str,
    table: &[AtomicPtr<c_void>],
    required: usize,
) -> Result<()> {
    let mut name: *const c_char = names.as_ptr().cast();
    for (place, slot) in table.iter().enumerate() {
        // SAFETY: `name` is at one of the texts, each ending with NUL, one for each place.
        let address = unsafe {
            let address = platform::symbol(library, name);
            name = name.add(CStr::from_ptr(name).count_bytes() + 1);
            address
        };
        if address.is_null() && place < required {
            return Err(refuse("the Python of this process is older than 3.9\0Use a newer one."));
        }
        slot.store(address, Relaxed);
    }
    Ok(())
}

/// One method of [`Python`] per line, in four groups. `functions` are called right away, each by
/// one jump that its many callers share; each is unsafe as C is: see CPython's manual for what its
/// arguments must be. `checked` ones take live objects and plain values, whatever these are, so
/// they are safe, and what they return is an error where they raised. `objects` answer a borrowed
/// object: `itself` one, or a `variable` that holds one. `optional` functions answer `None` where
/// this Python lacks them.
macro_rules! symbols {
    (
        functions { $(
            fn $name:ident($($arg:ident: $type:ty),*) $(-> $returns:ty)?;
        )* }
        checked { $( fn $checked:ident($($given:ident: $gtype:ty),*) -> $answer:ty; )* }
        objects { $( $kind:ident $object:ident; )* }
        optional { $(
            fn $perhaps:ident($($ptype:ty),*) $(-> $preturns:ty)?;
        )* }
    ) => {
        #[allow(non_camel_case_types, clippy::upper_case_acronyms)]
        enum Place { $($name,)* $($checked,)* $($object,)* $($perhaps,)* End }

        const OPTIONAL: &[&str] = &[$(stringify!($perhaps)),*];

        /// The names in the order of the places, each with its NUL.
        pub(crate) const NAMES: &str = concat!(
            $(stringify!($name), "\0",)* $(stringify!($checked), "\0",)*
            $(stringify!($object), "\0",)* $(stringify!($perhaps), "\0",)*
        );

        static TABLE: [AtomicPtr<c_void>; Place::End as usize] =
            [const { AtomicPtr::new(null_mut()) }; Place::End as usize];

        /// Fills this table.
        pub(crate) fn look_up(library: Library) -> Result<()> {
            // SAFETY: a name for each place.
            unsafe { fill(library, NAMES, &TABLE, TABLE.len() - OPTIONAL.len()) }
        }

        #[allow(missing_docs, clippy::too_many_arguments)]
        impl Python {
            $(
                #[inline(never)]
                pub unsafe fn $name(self, $($arg: $type),*) $(-> $returns)? {
                    let address = TABLE[Place::$name as usize].load(Relaxed);
                    // SAFETY: the table is filled, and this is the function's type.
                    unsafe {
                        let call: unsafe extern "C" fn($($type),*) $(-> $returns)? =
                            transmute(address);
                        call($($arg),*)
                    }
                }
            )*
            $(
                #[inline]
                pub fn $checked(self, $($given: $gtype),*) -> Result<$answer> {
                    type Raw = <$answer as $crate::object::Returned>::Raw;
                    #[inline(never)]
                    unsafe fn call($($given: $gtype),*) -> Raw {
                        let address = TABLE[Place::$checked as usize].load(Relaxed);
                        // SAFETY: the table is filled, and this is the function's type.
                        unsafe {
                            let call: unsafe extern "C" fn($($gtype),*) -> Raw =
                                transmute(address);
                            call($($given),*)
                        }
                    }
                    // SAFETY: attached, and the objects are live, as their types say.
                    unsafe { $crate::object::Returned::of(self, call($($given),*)) }
                }
            )*
            $(
                #[inline]
                pub fn $object(self) -> Object<'static> {
                    let address = TABLE[Place::$object as usize].load(Relaxed);
                    // SAFETY: required, so not NULL, and live for as long as Python runs.
                    unsafe { Object::new(symbols!(@object $kind address)) }
                }
            )*
            $(
                #[inline]
                #[allow(clippy::type_complexity)]
                pub fn $perhaps(self)
                    -> Option<unsafe extern "C" fn($($ptype),*) $(-> $preturns)?>
                {
                    let address = TABLE[Place::$perhaps as usize].load(Relaxed);
                    // SAFETY: NULL is None; else this is the function's type.
                    unsafe { transmute(address) }
                }
            )*
        }
    };
    (@object itself $address:ident) => { $address.cast() };
    (@object variable $address:ident) => { $address.cast::<*mut PyObject>().read() };
}
#[cfg(feature = "module")]
pub(super) use symbols;

// The first one finds the module to look in: Windows' python3.dll, which may be loaded beside the
// real one, has it only since 3.12. It and the buffer functions joined the stable ABI after 3.9,
// which exports them in the same form.
symbols! {
    functions {
        fn PyObject_VectorcallMethod(
            name: Object, args: *const Object, n: usize, names: Option<Object>
        ) -> *mut PyObject;
        fn Py_IsInitialized() -> c_int;
        fn Py_IncRef(object: *mut PyObject);
        fn Py_DecRef(object: *mut PyObject);
        fn PyErr_Occurred() -> *mut PyObject;
        fn PyErr_Clear();
        fn PyErr_Fetch(
            kind: *mut *mut PyObject, value: *mut *mut PyObject, trace: *mut *mut PyObject
        );
        fn PyErr_Restore(kind: *mut PyObject, value: *mut PyObject, trace: *mut PyObject);
        fn PyErr_ExceptionMatches(kind: Object) -> c_int;
        fn PyErr_SetString(kind: Object, message: *const c_char);
        fn PyCapsule_New(
            pointer: *mut c_void, name: *const c_char, destructor: Option<Destructor>
        ) -> *mut PyObject;
        fn PyCapsule_IsValid(capsule: *mut PyObject, name: *const c_char) -> c_int;
        fn PyCapsule_GetPointer(capsule: *mut PyObject, name: *const c_char) -> *mut c_void;
        fn PyCapsule_GetName(capsule: *mut PyObject) -> *const c_char;
        fn PyCapsule_GetDestructor(capsule: *mut PyObject) -> Option<Destructor>;
        fn PyCapsule_SetName(capsule: *mut PyObject, name: *const c_char) -> c_int;
        fn PyCapsule_SetPointer(capsule: *mut PyObject, pointer: *mut c_void) -> c_int;
        fn PyCapsule_GetContext(capsule: *mut PyObject) -> *mut c_void;
        fn PyCapsule_SetContext(capsule: *mut PyObject, context: *mut c_void) -> c_int;
        fn PyUnicode_InternFromString(text: *const c_char) -> *mut PyObject;
        fn PyUnicode_AsUTF8AndSize(text: Object, nbytes: *mut isize) -> *const c_char;
        fn PyTuple_New(n: isize) -> *mut PyObject;
        fn PyTuple_SetItem(tuple: *mut PyObject, place: isize, item: *mut PyObject) -> c_int;
        fn PyMapping_GetItemString(mapping: Object, key: *const c_char) -> *mut PyObject;
        fn PyObject_GetBuffer(object: Object, view: *mut PyBuffer, flags: c_int) -> c_int;
        fn PyBuffer_Release(view: *mut PyBuffer);
        fn PyGILState_Ensure() -> c_int;
        fn PyGILState_Release(state: c_int);
        fn PyGILState_GetThisThreadState() -> *mut c_void;
        fn PyThreadState_GetInterpreter(thread: *mut c_void) -> *mut c_void;
        fn PyThreadState_New(interpreter: *mut c_void) -> *mut c_void;
        fn PyThreadState_Clear(thread: *mut c_void);
        fn PyThreadState_DeleteCurrent();
        fn PyEval_AcquireThread(thread: *mut c_void);
        fn PyInterpreterState_Get() -> *mut c_void;
        fn PyInterpreterState_GetID(interpreter: *mut c_void) -> i64;
        fn PyInterpreterState_GetDict(interpreter: *mut c_void) -> *mut PyObject;
        fn PyDict_SetDefault(
            dict: *mut PyObject, key: *mut PyObject, item: *mut PyObject
        ) -> *mut PyObject;
        fn PyObject_GetAttrString(object: Object, name: *const c_char) -> *mut PyObject;
        fn PyType_GetFlags(kind: Object) -> c_ulong;
        fn PyTuple_GetItem(tuple: Object, place: isize) -> *mut PyObject;
        fn PyUnicode_FromStringAndSize(text: *const c_char, nbytes: isize) -> *mut PyObject;
        fn PyUnicode_CompareWithASCIIString(text: Object, with: *const c_char) -> c_int;
        fn PyEval_GetBuiltins() -> *mut PyObject;
        fn PyEval_SaveThread() -> *mut c_void;
        fn PyEval_RestoreThread(thread: *mut c_void);
    }
    checked {
        fn PyObject_Type(object: Object) -> Owned;
        fn PyObject_Str(object: Object) -> Owned;
        fn PyObject_GetAttr(object: Object, name: Object) -> Owned;
        fn PyObject_IsTrue(object: Object) -> bool;
        fn PyObject_IsSubclass(class: Object, of: Object) -> bool;
        fn PyObject_CheckBuffer(object: Object) -> bool;
        fn PyLong_FromLongLong(value: c_longlong) -> Owned;
        fn PyLong_AsLongLong(value: Object) -> i64;
        fn PyLong_AsUnsignedLongLong(value: Object) -> u64;
        fn PyNumber_Index(object: Object) -> Owned;
        fn PyBool_FromLong(value: c_long) -> Owned;
        fn PyTuple_Size(tuple: Object) -> usize;
        fn PySequence_Size(sequence: Object) -> usize;
        fn PySequence_Contains(sequence: Object, item: Object) -> bool;
        fn PySequence_GetItem(sequence: Object, place: isize) -> Owned;
    }
    objects {
        itself PyBaseObject_Type;
        itself PyCapsule_Type;
        itself PyLong_Type;
        itself PyMemoryView_Type;
        itself PyTuple_Type;
        itself PyType_Type;
        itself _Py_NoneStruct;
        itself _Py_TrueStruct;
        itself _Py_FalseStruct;
        variable PyExc_AttributeError;
        variable PyExc_BaseException;
        variable PyExc_BufferError;
        variable PyExc_Exception;
        variable PyExc_KeyError;
        variable PyExc_MemoryError;
        variable PyExc_RuntimeError;
        variable PyExc_TypeError;
        variable PyExc_ValueError;
    }
    optional {
        fn PyGILState_Check() -> c_int;
        fn PyThreadState_GetUnchecked() -> *mut c_void;
        fn _PyThreadState_UncheckedGet() -> *mut c_void;
        fn PyErr_GetRaisedException() -> *mut c_void;
        fn Py_IsFinalizing() -> c_int;
        fn _Py_IsFinalizing() -> c_int;
        fn PyObject_GetOptionalAttr(Object, Object, *mut *mut PyObject) -> c_int;
        fn _PyType_Lookup(Object, Object) -> *mut PyObject;
        fn PyCriticalSection_Begin(*mut CriticalSection, Object);
        fn PyCriticalSection_End(*mut CriticalSection);
        fn PyInterpreterView_FromCurrent() -> *mut c_void;
        fn PyInterpreterView_Close(*mut c_void);
        fn PyThreadState_EnsureFromView(*mut c_void) -> *mut c_void;
        fn PyThreadState_Release(*mut c_void);
    }
}
