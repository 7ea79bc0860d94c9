//! What of CPython only the module calls: a table as `python/symbols.rs` has one.
#![allow(non_snake_case)]

use core::ffi::{c_char, c_int, c_void};
use core::mem::transmute;
use core::ptr::null_mut;
use core::sync::atomic::{AtomicPtr, Ordering::*};

use crate::error::Result;
use crate::object::{Object, Owned};
use crate::platform::Library;
use crate::symbols::{PyObject, Python, fill, symbols};

/// `op` of `PyObject_RichCompare`, which looks it up in a table, unchecked.
#[derive(Clone, Copy)]
#[repr(i32)]
pub enum Comparison {
    /// `Py_LT`
    Less = 0,
    /// `Py_GT`
    Greater = 4,
}

symbols! {
    functions {
        fn PyModuleDef_Init(definition: *mut c_void) -> *mut PyObject;
        fn PyCFunction_NewEx(
            function: *const c_void, object: Object, module: Object
        ) -> *mut PyObject;
        fn PyType_FromSpec(spec: *const c_void) -> *mut PyObject;
        fn PyType_GetSlot(kind: Object, slot: c_int) -> *mut c_void;
        fn _PyObject_GC_New(kind: Object) -> *mut PyObject;
        fn PyObject_GC_Track(object: *mut c_void);
        fn PyObject_GC_UnTrack(object: *mut c_void);
        fn PyObject_GC_Del(object: *mut c_void);
        fn PyObject_ClearWeakRefs(object: *mut PyObject);
        fn PyObject_SetAttrString(object: Object, name: *const c_char, value: Object) -> c_int;
        fn PyImport_ImportModule(name: *const c_char) -> *mut PyObject;
        fn PyImport_GetModule(name: Object) -> *mut PyObject;
        fn PySlice_Unpack(
            slice: Object, start: *mut isize, stop: *mut isize, step: *mut isize
        ) -> c_int;
        fn PyList_New(n: isize) -> *mut PyObject;
        fn PyList_SetItem(list: *mut PyObject, place: isize, item: *mut PyObject) -> c_int;
        fn PyBytes_FromStringAndSize(bytes: *const c_char, n: isize) -> *mut PyObject;
        fn PyBytes_AsString(bytes: *mut PyObject) -> *mut c_char;
    }
    checked {
        fn PyIndex_Check(object: Object) -> bool;
        fn PyNumber_AsSsize_t(object: Object, overflow: Object) -> isize;
        fn PyNumber_Long(object: Object) -> Owned;
        fn PyLong_FromUnsignedLongLong(value: u64) -> Owned;
        fn PyFloat_FromDouble(value: f64) -> Owned;
        fn PyFloat_AsDouble(object: Object) -> f64;
        fn PyComplex_FromDoubles(real: f64, imaginary: f64) -> Owned;
        fn PyComplex_RealAsDouble(object: Object) -> f64;
        fn PyComplex_ImagAsDouble(object: Object) -> f64;
        fn PyObject_Format(object: Object, spec: Object) -> Owned;
        fn PyObject_RichCompareBool(a: Object, b: Object, order: Comparison) -> bool;
        fn PySeqIter_New(sequence: Object) -> Owned;
        fn PyMemoryView_FromObject(object: Object) -> Owned;
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
        unsafe { transmute(self.Py_BuildValue().as_ptr()) }
    }
}
