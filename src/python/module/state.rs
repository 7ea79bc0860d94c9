//! What a module keeps: one per interpreter, and never a Python object outside of it.

use core::ffi::{c_int, c_void};
use core::ptr::null_mut;

use super::failure::{Answer, Failure};
use super::spec::Visit;
use crate::error::{Error, Status::*};
use crate::python::{Owned, PyObject, Python};

/// The state of a module; Python makes it of zeroes.
#[repr(C)]
pub struct State {
    /// The type `Tensor`; NULL before and after the module's life.
    pub kind: *mut PyObject,
    /// The type of what lends a `Tensor`'s memory as a buffer.
    pub lender: *mut PyObject,
}

impl State {
    /// The state of a module that is being made.
    ///
    /// # Safety
    /// `module` is one of ours, and nobody else has seen it.
    pub unsafe fn of_new<'a>(python: Python, module: *mut PyObject) -> Answer<&'a mut State> {
        // SAFETY: the caller's word.
        unsafe {
            let state: *mut State = python.PyModule_GetState(module).cast();
            state.as_mut().ok_or(Failure::Raised)
        }
    }

    /// The state of a module in use.
    ///
    /// # Safety
    /// `module` is one of ours.
    #[inline]
    pub unsafe fn of_module<'a>(python: Python, module: *mut PyObject) -> Answer<&'a State> {
        // SAFETY: the caller's word.
        unsafe { State::at(python.PyModule_GetState(module)) }
    }

    /// The state of the module of a type in use.
    ///
    /// # Safety
    /// `kind` is one of ours.
    pub unsafe fn of_type<'a>(python: Python, kind: *mut PyObject) -> Answer<&'a State> {
        // SAFETY: the caller's word.
        unsafe { State::at(python.PyType_GetModuleState(kind)) }
    }

    /// # Safety
    /// The state of a module of ours, or NULL.
    #[inline]
    unsafe fn at<'a>(state: *mut c_void) -> Answer<&'a State> {
        let state: *const State = state.cast();
        // SAFETY: the caller's word; what Python made of zeroes stays as long as the module.
        match unsafe { state.as_ref() } {
            Some(state) if !state.kind.is_null() => Ok(state),
            // Something that the collector destroys together with the module calls it once more.
            _ => Err(Error::new(DLRS_UNSUPPORTED).detail("the module is being destroyed").into()),
        }
    }
}

/// `m_traverse`: the types refer to the module, so both go only if the collector sees it.
///
/// # Safety
/// Python calls it for a module of ours.
pub unsafe extern "C" fn traverse(module: *mut PyObject, visit: Visit, arg: *mut c_void) -> c_int {
    // SAFETY: Python's word.
    unsafe {
        let state: *mut State = Python::calling().PyModule_GetState(module).cast();
        let Some(state) = state.as_ref() else { return 0 };
        for object in [state.kind, state.lender] {
            if !object.is_null() {
                match visit(object, arg) {
                    0 => {}
                    answer => return answer,
                }
            }
        }
    }
    0
}

/// `m_clear`.
///
/// # Safety
/// Python calls it for a module of ours.
pub unsafe extern "C" fn clear(module: *mut PyObject) -> c_int {
    // SAFETY: Python's word; each variable is emptied before its object goes.
    unsafe {
        let state: *mut State = Python::calling().PyModule_GetState(module).cast();
        let Some(state) = state.as_mut() else { return 0 };
        for object in [&mut state.kind, &mut state.lender] {
            drop(Owned::new(core::mem::replace(object, null_mut())));
        }
    }
    0
}

/// `m_free`.
///
/// # Safety
/// Python calls it for a module of ours.
pub unsafe extern "C" fn free(module: *mut c_void) {
    // SAFETY: Python's word.
    unsafe { clear(module.cast()) };
}
