//! What of CPython only the module calls: a table as `python/symbols.rs` has one.
#![allow(non_snake_case)]

use core::ffi::{c_char, c_int, c_void};
use core::mem::transmute;
use core::ptr::null_mut;
use core::sync::atomic::{AtomicPtr, Ordering::*};

use crate::error::Result;
use crate::platform::Library;
use crate::symbols::{PyObject, Python, fill, symbols};

symbols! {
    functions {
        fn PyModuleDef_Init(definition: *mut c_void) -> *mut PyObject;
        fn PyCFunction_NewEx(
            function: *const c_void, object: *mut PyObject, module: *mut PyObject
        ) -> *mut PyObject;
        fn PyType_FromSpec(spec: *const c_void) -> *mut PyObject;
        fn PyType_GetSlot(kind: *mut PyObject, slot: c_int) -> *mut c_void;
        fn _PyObject_GC_New(kind: *mut PyObject) -> *mut PyObject;
        fn PyObject_GC_Track(object: *mut c_void);
        fn PyObject_GC_UnTrack(object: *mut c_void);
        fn PyObject_GC_Del(object: *mut c_void);
        fn PyObject_ClearWeakRefs(object: *mut PyObject);
        fn PyObject_SetAttrString(
            object: *mut PyObject, name: *const c_char, value: *mut PyObject
        ) -> c_int;
        fn PyImport_ImportModule(name: *const c_char) -> *mut PyObject;
        fn PyIndex_Check(object: *mut PyObject) -> c_int;
        fn PyNumber_AsSsize_t(object: *mut PyObject, overflow: *mut PyObject) -> isize;
        fn PySlice_Unpack(
            slice: *mut PyObject, start: *mut isize, stop: *mut isize, step: *mut isize
        ) -> c_int;
        fn PyList_New(n: isize) -> *mut PyObject;
        fn PyList_SetItem(list: *mut PyObject, place: isize, item: *mut PyObject) -> c_int;
        fn PyLong_FromUnsignedLongLong(value: u64) -> *mut PyObject;
        fn PyFloat_FromDouble(value: f64) -> *mut PyObject;
        fn PyComplex_FromDoubles(real: f64, imaginary: f64) -> *mut PyObject;
        fn PyObject_Format(object: *mut PyObject, spec: *mut PyObject) -> *mut PyObject;
        fn PyNumber_Long(object: *mut PyObject) -> *mut PyObject;
        fn PyObject_RichCompareBool(
            a: *mut PyObject, b: *mut PyObject, order: c_int
        ) -> c_int;
        fn PyFloat_AsDouble(object: *mut PyObject) -> f64;
        fn PyComplex_RealAsDouble(object: *mut PyObject) -> f64;
        fn PyComplex_ImagAsDouble(object: *mut PyObject) -> f64;
        fn PyBytes_FromStringAndSize(bytes: *const c_char, n: isize) -> *mut PyObject;
        fn PyBytes_AsString(bytes: *mut PyObject) -> *mut c_char;
        fn PySeqIter_New(sequence: *mut PyObject) -> *mut PyObject;
        fn PyMemoryView_FromObject(object: *mut PyObject) -> *mut PyObject;
        fn PyImport_GetModule(name: *mut PyObject) -> *mut PyObject;
    }
    objects {
        itself _Py_EllipsisObject;
        itself PySlice_Type;
        itself PyBool_Type;
        itself PyFloat_Type;
        itself PyComplex_Type;
        variable PyExc_ImportError;
        variable PyExc_IndexError;
        variable PyExc_OverflowError;
        itself _Py_NotImplementedStruct;
        itself Py_BuildValue;
    }
    optional {}
}

impl Python {
    /// `Py_BuildValue`, which takes what its format says.
    pub fn builder(self) -> unsafe extern "C" fn(*const c_char, ...) -> *mut PyObject {
        // SAFETY: it is that function.
        unsafe { transmute(self.Py_BuildValue()) }
    }
}
