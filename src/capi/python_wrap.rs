//! Python: memory that a Python object owns, and the arguments of its `__dlpack__`.

use core::ffi::c_void;
use core::mem::MaybeUninit;
use core::ptr::null_mut;

use super::arg::{self, live, needed_if, optional, result, variable};
use super::error::{dlrs_error, dlrs_status, run};
use super::python::{asked, dlrs_py_request, give};
use super::wrap::blamed;
use crate::abi::*;
use crate::error::{Arg, Of};
use crate::python::{Object, PyObject, Python, export, wrap};
use crate::tensor::block::Block;

/// Wrap memory that a Python object owns into a managed tensor.
///
/// Ownership: the caller owns *out, which takes a reference to owner, a Python object, on success.
///            It is released with the last reference to *out, on that thread, attached to the
///            interpreter of this call meanwhile. If that interpreter or Python is ending or has
///            ended, it is leaked.
/// Errors:    DLRS_NULL_ARG: owner. DLRS_UNSUPPORTED, DLRS_CALLBACK: as
///            dlrs_py_capsule_new_take. All else as dlrs_tensor_wrap.
/// Threads:   attached to Python. *out may be released on any thread, attached or not.
/// Source:    "Producer" rules of dlpack.h; python_spec: a deleter may be called on any thread.
///
/// # Safety
/// `owner` is a live Python object, and the memory is valid as long as it lives.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dlrs_py_wrap(
    tensor: *const DLTensor,
    flags: u64,
    owner: *mut c_void,
    out: *mut *mut DLManagedTensorVersioned,
    error: *mut dlrs_error,
) -> dlrs_status {
    let owner = live(owner.cast::<PyObject>(), Arg::owner);
    let pointers = (live(tensor, Arg::tensor), owner, result(out, Arg::out));
    // SAFETY: tensor, owner and error are NULL or live, the memory as long as owner; out is NULL or
    // a writable variable, by the preface.
    unsafe {
        run("dlrs_py_wrap", error, pointers, |(tensor, owner, out)| {
            let owner = Object::new(owner.as_ptr());
            let made = wrap::around(Python::get()?, tensor.as_ptr(), flags, owner);
            out.give(Block::versioned(made.map_err(blamed)?));
            Ok(())
        })
    }
}

/// Implement `__dlpack__(stream, max_version, dl_device, copy)` for memory that a Python object
/// owns.
///
/// Shape:     as dlrs_py_wrap; a copy is dense in the order of the strides.
/// Bytes:     as dlrs_py_wrap, unless a copy is made.
/// Device:    as dlrs_py_export.
/// Ownership: *out is a new reference to a capsule, as dlrs_py_export's, whose tensor takes a
///            reference to owner as dlrs_py_wrap's. It is dlrs_py_wrap and dlrs_py_export in one
///            call, with one allocation besides the capsule.
/// Flags:     exactly flags; a copy has IS_COPIED and no READ_ONLY.
/// Errors:    as dlrs_py_wrap, and as dlrs_py_export.
/// Threads:   attached to Python.
/// Source:    the array API standard's `__dlpack__`.
///
/// # Safety
/// As dlrs_py_wrap; the request's objects are NULL or live.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dlrs_py_export_desc(
    tensor: *const DLTensor,
    flags: u64,
    owner: *mut c_void,
    request: *const dlrs_py_request,
    out: *mut *mut c_void,
    error: *mut dlrs_error,
) -> dlrs_status {
    let owner = live(owner.cast::<PyObject>(), Arg::owner);
    let request = optional(live(request, Arg::request));
    let pointers = (live(tensor, Arg::tensor), owner, request, result(out, Arg::out));
    // SAFETY: tensor, owner, request and its objects, and error are NULL or live, the memory as
    // long as owner; out is NULL or a writable variable, by the preface.
    unsafe {
        run("dlrs_py_export_desc", error, pointers, |(tensor, owner, request, out)| {
            let mut room = MaybeUninit::uninit();
            let request = arg::options(request, Arg::request, &mut room)?;
            let python = Python::get()?;
            let asked = asked(python, request).of(Arg::request)?;
            let owner = Object::new(owner.as_ptr());
            let made = export::export_kept(python, tensor.as_ptr(), flags, owner, &asked);
            give(out, made.map_err(blamed)?);
            Ok(())
        })
    }
}

/// Read the arguments of a `__dlpack__(self, *, stream, max_version, dl_device, copy)`.
///
/// Ownership: *out is the caller's, with its struct_size set before the call; its objects are
///            borrowed from args, NULL for an omitted argument. work_stream becomes NULL.
/// Errors:    DLRS_NULL_ARG, DLRS_MISALIGNED_STRUCT: args, unless there are none; out.
///            DLRS_STRUCT_SIZE: out. DLRS_UNSUPPORTED: as dlrs_py_capsule_new_take.
///            DLRS_CALLBACK: TypeError is set, for a positional argument or a keyword that
///            `__dlpack__` does not have, so that a consumer retries with fewer.
///            On any error *out is not modified.
/// Threads:   attached to Python.
/// Source:    METH_FASTCALL | METH_KEYWORDS of CPython: args, nargs and kwnames are what such a
///            method is called with, and kwnames is NULL or a tuple of names.
///
/// # Safety
/// The arguments are those that Python has passed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dlrs_py_request_parse(
    args: *const *mut c_void,
    nargs: isize,
    kwnames: *mut c_void,
    out: *mut dlrs_py_request,
    error: *mut dlrs_error,
) -> dlrs_status {
    let named = needed_if(!kwnames.is_null(), live(args, Arg::args));
    // SAFETY: out is NULL or a live struct of the size that it says, error NULL or live; args,
    // nargs and kwnames are what Python has passed: live objects, and NULL or a tuple of names.
    unsafe {
        let pointers = (named, variable(out, Arg::out));
        run("dlrs_py_request_parse", error, pointers, |(_, out)| {
            let given = out.size(Arg::out)?;
            let found = export::parse(args.cast(), nargs, Object::optional(kwnames.cast()))?;
            let object = |given: Option<Object>| given.map_or(null_mut(), |it| it.as_ptr().cast());
            let request = dlrs_py_request {
                struct_size: given,
                stream: object(found.stream),
                max_version: object(found.max_version),
                dl_device: object(found.dl_device),
                copy: object(found.copy),
                work_stream: null_mut(),
            };
            out.fill(request, given);
            Ok(())
        })
    }
}
