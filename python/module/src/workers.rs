//! Threads that wait for copies. A capsule owns them, which the class `Workers` of `__init__.py`
//! keeps until it is closed, and a copy while it uses them.

use core::ffi::CStr;
use core::ptr::NonNull;

use super::arguments::{self, Call, method};
use crate::copy::Options;
use crate::cpu::{Parallel, ParallelFor};
use crate::error::Result;
use crate::platform::pool::Pool;
use dlpack_python::raise::{forgive, refused, required};
use dlpack_python::words::given;
use dlpack_python::{Owned, PyObject, Python};

const NAME: &CStr = c"dlpack_rs.workers";

method!(
    /// _workers(threads, /)
    /// The threads of Workers.
    _workers as "Workers", |_, call| (threads / *) {
        let python = call.python;
        let threads = arguments::number(python, threads)?;
        let pool = Pool::new(usize::try_from(threads).unwrap_or(usize::MAX), 0)?;
        let at = pool.as_ptr().cast();
        let capsule = required(python.PyCapsule_New(at, NAME.as_ptr(), Some(end)));
        capsule.inspect_err(|_| Pool::free(pool))
    }
);

unsafe extern "C" fn end(capsule: *mut PyObject) {
    // SAFETY: Python calls, with a capsule of ours, which nobody else has any more.
    unsafe {
        let pool = Python::calling().PyCapsule_GetPointer(capsule, NAME.as_ptr());
        if let Some(pool) = NonNull::new(pool.cast()) {
            Pool::free(pool);
        }
    }
}

/// The options of a copy by `workers`, which may be omitted, and what keeps their threads.
///
/// # Safety
/// `workers` is NULL or live.
pub unsafe fn options(
    call: &Call,
    workers: *mut PyObject,
    usual: &Options,
) -> Result<(Options, Option<Owned>)> {
    let python = call.python;
    if !given(python, workers) {
        return Ok((*usual, None));
    }
    // SAFETY: `workers` is live, and so is what it has; a capsule of this name has a pool.
    unsafe {
        let found = Owned::new(python.PyObject_GetAttrString(workers, c"_capsule".as_ptr()));
        let Some(capsule) = found else {
            forgive(python)?;
            return Err(call.wrong("needs workers made by dlpack_rs.Workers"));
        };
        if python.PyCapsule_IsValid(capsule.as_ptr(), NAME.as_ptr()) == 0 {
            let text = format_args!("{}: workers are closed", call.name());
            return Err(refused(python, python.PyExc_ValueError(), text));
        }
        let pool = python.PyCapsule_GetPointer(capsule.as_ptr(), NAME.as_ptr());
        let parallel = Parallel { threads: 0, hook: Some(ParallelFor::of(pool.cast())) };
        Ok((Options { parallel, ..*usual }, Some(capsule)))
    }
}
