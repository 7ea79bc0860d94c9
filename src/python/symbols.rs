//! The table of CPython's functions, filled once from the running process.
//!
//! A line of the `symbols!` list at the end is all that a new function needs. The table is filled
//! by whoever comes first; several threads that come at once write the same addresses, so there is
//! no lock. Where there is no Python the next call looks again: it may be loaded by then.
#![allow(non_snake_case)]

use core::ffi::{CStr, c_char, c_int, c_long, c_longlong, c_void};
use core::marker::PhantomData;
use core::mem::transmute;
use core::ptr::null_mut;
use core::sync::atomic::{AtomicBool, AtomicPtr, Ordering::*};

use crate::error::{Error, Result, Status::*};
use crate::platform;

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

/// The right to call Python: it is in the process, runs, and is attached to this thread. Bound to
/// the thread that asked.
#[derive(Clone, Copy)]
pub struct Python(PhantomData<*mut ()>);

static READY: AtomicBool = AtomicBool::new(false);

impl Python {
    /// Python, when this thread may call it.
    #[inline]
    pub fn get() -> Result<Python> {
        if !READY.load(Acquire) {
            find()?;
        }
        let python = Python(PhantomData);
        // SAFETY: both may be called at any time, on any thread.
        unsafe {
            if python.Py_IsInitialized() == 0 {
                return Err(refuse("Python is not running: not yet, or not any more"));
            }
            if python.PyGILState_Check().is_some_and(|check| check() == 0) {
                return Err(refuse(
                    "this thread is not attached to Python (ctypes: load with PyDLL, not CDLL)",
                ));
            }
        }
        Ok(python)
    }

    /// Python, for functions that Python itself is calling.
    ///
    /// # Safety
    /// [`Python::get`] has succeeded once in this process, and this thread is attached.
    #[inline]
    pub unsafe fn calling() -> Python {
        Python(PhantomData)
    }

    /// Python, in a process where the table has been filled, whatever its state is now. Only
    /// `Py_IsInitialized` and `PyGILState_Ensure` may be called before more is known.
    #[inline]
    pub fn seen() -> Option<Python> {
        READY.load(Acquire).then_some(Python(PhantomData))
    }
}

#[cold]
fn refuse(detail: &'static str) -> Error {
    Error::new(DLRS_UNSUPPORTED).detail(detail)
}

/// Fills the table.
#[cold]
fn find() -> Result<()> {
    let mut name: *const c_char = NAMES.as_ptr().cast();
    // SAFETY: the list starts with a text that ends with NUL.
    let Some(library) = (unsafe { platform::library_with(name) }) else {
        return Err(refuse("there is no Python in this process"));
    };
    for (place, slot) in TABLE.iter().enumerate() {
        // SAFETY: `name` walks over as many texts as there are slots, each ending with NUL.
        let address = unsafe {
            let address = platform::symbol(library, name);
            name = name.add(CStr::from_ptr(name).count_bytes() + 1);
            address
        };
        if address.is_null() && place < REQUIRED {
            return Err(refuse("the Python of this process is older than 3.9"));
        }
        slot.store(address, Relaxed);
    }
    READY.store(true, Release);
    Ok(())
}

/// One method of [`Python`] per line, in three groups. `functions` are called right away; each is
/// unsafe as C is: see CPython's manual for what its arguments must be. `objects` answer a borrowed
/// object: `itself` one, or a `variable` that holds one. `optional` functions answer `None` where
/// this Python lacks them.
macro_rules! symbols {
    (
        functions { $(
            fn $name:ident($($arg:ident: $type:ty),*) $(-> $returns:ty)?;
        )* }
        objects { $( $kind:ident $object:ident; )* }
        optional { $(
            fn $perhaps:ident($($ptype:ty),*) $(-> $preturns:ty)?;
        )* }
    ) => {
        #[allow(non_camel_case_types, clippy::upper_case_acronyms)]
        enum Place { $($name,)* $($object,)* $($perhaps,)* End }

        const REQUIRED: usize =
            Place::End as usize - [$(stringify!($perhaps)),*].len();

        /// The names in the order of the places, each with its NUL.
        const NAMES: &str = concat!(
            $(stringify!($name), "\0",)* $(stringify!($object), "\0",)*
            $(stringify!($perhaps), "\0",)*
        );

        static TABLE: [AtomicPtr<c_void>; Place::End as usize] =
            [const { AtomicPtr::new(null_mut()) }; Place::End as usize];

        #[allow(missing_docs, clippy::too_many_arguments)]
        impl Python {
            $(
                #[inline]
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
                pub fn $object(self) -> *mut PyObject {
                    let address = TABLE[Place::$object as usize].load(Relaxed);
                    symbols!(@object $kind address)
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
    // SAFETY: the variable is set for as long as Python runs.
    (@object variable $address:ident) => { unsafe { $address.cast::<*mut PyObject>().read() } };
}

symbols! {
    functions {
        fn Py_IsInitialized() -> c_int;
        fn Py_IncRef(object: *mut PyObject);
        fn Py_DecRef(object: *mut PyObject);
        fn PyErr_Occurred() -> *mut PyObject;
        fn PyErr_Clear();
        fn PyErr_Fetch(
            kind: *mut *mut PyObject, value: *mut *mut PyObject, trace: *mut *mut PyObject
        );
        fn PyErr_Restore(kind: *mut PyObject, value: *mut PyObject, trace: *mut PyObject);
        fn PyErr_ExceptionMatches(kind: *mut PyObject) -> c_int;
        fn PyErr_SetString(kind: *mut PyObject, message: *const c_char);
        fn PyErr_NoMemory() -> *mut PyObject;
        fn PyCapsule_New(
            pointer: *mut c_void, name: *const c_char, destructor: Option<Destructor>
        ) -> *mut PyObject;
        fn PyCapsule_IsValid(capsule: *mut PyObject, name: *const c_char) -> c_int;
        fn PyCapsule_GetPointer(capsule: *mut PyObject, name: *const c_char) -> *mut c_void;
        fn PyCapsule_SetName(capsule: *mut PyObject, name: *const c_char) -> c_int;
        fn PyObject_Type(object: *mut PyObject) -> *mut PyObject;
        fn PyObject_GetAttr(object: *mut PyObject, name: *mut PyObject) -> *mut PyObject;
        fn PyObject_Call(
            callable: *mut PyObject, args: *mut PyObject, kwargs: *mut PyObject
        ) -> *mut PyObject;
        fn PyObject_IsTrue(object: *mut PyObject) -> c_int;
        fn PyUnicode_InternFromString(text: *const c_char) -> *mut PyObject;
        fn PyUnicode_AsUTF8String(text: *mut PyObject) -> *mut PyObject;
        fn PyBytes_AsStringAndSize(
            bytes: *mut PyObject, text: *mut *mut c_char, nbytes: *mut isize
        ) -> c_int;
        fn PyLong_FromLongLong(value: c_longlong) -> *mut PyObject;
        fn PyLong_AsLongLong(value: *mut PyObject) -> c_longlong;
        fn PyLong_AsUnsignedLongLongMask(value: *mut PyObject) -> u64;
        fn PyBool_FromLong(value: c_long) -> *mut PyObject;
        fn PyTuple_New(n: isize) -> *mut PyObject;
        fn PyTuple_SetItem(tuple: *mut PyObject, place: isize, item: *mut PyObject) -> c_int;
        fn PySequence_Size(sequence: *mut PyObject) -> isize;
        fn PySequence_GetItem(sequence: *mut PyObject, place: isize) -> *mut PyObject;
        fn PyDict_New() -> *mut PyObject;
        fn PyDict_SetItem(dict: *mut PyObject, key: *mut PyObject, item: *mut PyObject) -> c_int;
        fn PyMapping_GetItemString(mapping: *mut PyObject, key: *const c_char) -> *mut PyObject;
        fn PyObject_GetBuffer(object: *mut PyObject, view: *mut PyBuffer, flags: c_int) -> c_int;
        fn PyBuffer_Release(view: *mut PyBuffer);
        fn PyGILState_Ensure() -> c_int;
        fn PyGILState_Release(state: c_int);
        fn PyInterpreterState_Get() -> *mut c_void;
        fn PyInterpreterState_GetID(interpreter: *mut c_void) -> i64;
        fn PyInterpreterState_GetDict(interpreter: *mut c_void) -> *mut PyObject;
        fn PyDict_SetItemString(
            dict: *mut PyObject, key: *const c_char, item: *mut PyObject
        ) -> c_int;
    }
    objects {
        itself _Py_NoneStruct;
        itself _Py_TrueStruct;
        itself _Py_FalseStruct;
        variable PyExc_AttributeError;
        variable PyExc_BufferError;
        variable PyExc_MemoryError;
        variable PyExc_RuntimeError;
        variable PyExc_TypeError;
        variable PyExc_ValueError;
    }
    optional {
        fn PyGILState_Check() -> c_int;
        fn PyObject_VectorcallMethod(
            *mut PyObject, *const *mut PyObject, usize, *mut PyObject
        ) -> *mut PyObject;
        fn PyObject_GetOptionalAttr(*mut PyObject, *mut PyObject, *mut *mut PyObject) -> c_int;
        fn _PyObject_LookupAttr(*mut PyObject, *mut PyObject, *mut *mut PyObject) -> c_int;
    }
}
