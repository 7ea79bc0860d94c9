//! DLPack's C exchange API: the allocator of this library, and tables of frameworks.

use core::ffi::{c_int, c_void};
use core::ptr::{null, null_mut};

use super::alloc::dlrs_tensor_new_like;
use super::arg;
use super::error::{dlrs_error, dlrs_error_forward, dlrs_set_error_fn};
use super::error::{dlrs_status, run, run_given};
use crate::abi::*;
use crate::error::{Arg, Error, Of, Result, Status::*};
use crate::python::{Object, PyObject, Python, exchange};
use crate::validate::exchange::{find, read};

/// Allocate a tensor like a prototype: the managed_tensor_allocator of an exchange API table.
///
/// Shape:     as dlrs_tensor_new_like.
/// Bytes:     as dlrs_tensor_new_like.
/// Device:    as dlrs_tensor_new_like; no stream waits.
/// Ownership: on 0 the caller owns *out; on -1 *out is NULL.
/// Flags:     0.
/// Errors:    -1, after SetError(error_ctx, kind, message) was called once, if it is not NULL; the
///            kinds are those of dlrs_error_forward. Python is not called.
/// Threads:   any, attached to Python or not.
/// Source:    DLPackManagedTensorAllocator in dlpack.h.
///
/// # Safety
/// See the preface.
#[unsafe(no_mangle)]
#[allow(non_snake_case)]
pub unsafe extern "C" fn dlrs_managed_tensor_allocator(
    prototype: *mut DLTensor,
    out: *mut *mut DLManagedTensorVersioned,
    error_ctx: *mut c_void,
    SetError: dlrs_set_error_fn,
) -> c_int {
    let mut failure = dlrs_error::NONE;
    // SAFETY: the caller's pointers, by the preface; `failure` is ours.
    unsafe {
        if dlrs_tensor_new_like(prototype, null(), out, &raw mut failure) == DLRS_OK as i32 {
            return 0;
        }
        dlrs_error_forward(&raw const failure, error_ctx, SetError, null_mut());
    }
    -1
}

/// # Safety
/// `out` is NULL or a writable variable; the chain is NULL or live.
unsafe fn find_table(
    header: *const DLPackExchangeAPIHeader,
    major: u32,
    out: *mut *const DLPackExchangeAPI,
    args: [Arg; 2],
) -> Result<()> {
    arg::pointers([arg::need(header, args[0]), arg::need(out, args[1])])?;
    let (header, out) = (arg::required(header, args[0])?, arg::required(out, args[1])?);
    // SAFETY: the caller's word.
    unsafe {
        let table = find(header.as_ptr(), major).of(args[0])?;
        if major == DLPACK_MAJOR_VERSION {
            read(table).of(args[0])?;
        }
        out.write(table);
    }
    Ok(())
}

/// Find the table of a major version in a framework's exchange API.
///
/// Ownership: *out is the framework's own static table.
/// Errors:    DLRS_NULL_ARG: header or out; a function of the table of major 1 is NULL, which only
///            dltensor_from_py_object_no_sync may be.
///            DLRS_MISALIGNED_STRUCT: a table of the chain. DLRS_VERSION: no table of this major
///            among the first 16; value is the newest. *out is then NULL.
/// Threads:   any; needs no Python.
/// Source:    DLPackExchangeAPIHeader in dlpack.h: prev_api leads to older majors.
///
/// # Safety
/// `header` is the head of a chain of live tables.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dlrs_exchange_api_find(
    header: *const DLPackExchangeAPIHeader,
    major: u32,
    out: *mut *const DLPackExchangeAPI,
    error: *mut dlrs_error,
) -> dlrs_status {
    run("dlrs_exchange_api_find", error, || {
        // SAFETY: the caller's word.
        unsafe {
            clear(out);
            find_table(header, major, out, [Arg::header, Arg::out])
        }
    })
}

/// Find the exchange API of a Python type, in the major version that this library supports.
///
/// Ownership: *out is the framework's own static table.
/// Errors:    DLRS_NULL_ARG, DLRS_MISALIGNED_STRUCT: type or out.
///            DLRS_UNSUPPORTED: the type has no `__dlpack_c_exchange_api__`; no Python, as
///            dlrs_py_capsule_new_take.
///            DLRS_CALLBACK: Python raised an exception, which stays set.
///            what dlrs_exchange_api_find reports. *out is then NULL.
/// Threads:   attached to Python.
/// Source:    dlpack.h 1.3: a capsule named "dlpack_exchange_api" on the type.
///
/// # Safety
/// `type` is a live Python type.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dlrs_exchange_api_from_type(
    r#type: *mut c_void,
    out: *mut *const DLPackExchangeAPI,
    error: *mut dlrs_error,
) -> dlrs_status {
    // SAFETY: NULL or a variable of the caller.
    unsafe { clear(out) };
    let kind = r#type.cast::<PyObject>();
    let pointers = [arg::need(kind, Arg::r#type), arg::need(out, Arg::out)];
    run_given("dlrs_exchange_api_from_type", error, pointers, || {
        // SAFETY: the caller's word.
        unsafe {
            let kind = arg::required(kind, Arg::r#type)?;
            let header =
                exchange::of_type(Python::get()?, Object::new(kind.as_ptr())).of(Arg::r#type)?;
            if header.is_null() {
                let error = Error::new(DLRS_UNSUPPORTED).of(Arg::r#type);
                return Err(
                    error.detail("has no __dlpack_c_exchange_api__\0Use __dlpack__ instead.")
                );
            }
            find_table(header, DLPACK_MAJOR_VERSION, out, [Arg::r#type, Arg::out])
        }
    })
}

/// # Safety
/// `out` is NULL or a writable variable.
unsafe fn clear(out: *mut *const DLPackExchangeAPI) {
    if !out.is_null() && out.is_aligned() {
        // SAFETY: the caller's word.
        unsafe { out.write(null()) }
    }
}
