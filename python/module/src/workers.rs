//! Threads that wait for copies. A capsule owns them, which the class `Workers` of `__init__.py`
//! keeps until it is closed, and a copy while it uses them.

use core::ffi::CStr;

use super::arguments::{self, Call, method};
use crate::copy::Options;
use crate::cpu::{Parallel, ParallelFor};
use crate::error::Result;
use crate::platform::pool::Pool;
use dlpack_python::words::given;
use dlpack_python::{Object, Owned, PyObject, Python, forgive, pointer, refused, required};

const NAME: &CStr = c"dlpack_rs.workers";

method!(
    /// _workers(threads, /)
    /// The threads of Workers.
    _workers as "Workers", |_, call| (threads / *) {
        let python = call.python;
        let threads = arguments::number(python, threads)?;
        let pool = Pool::new(usize::try_from(threads).unwrap_or(usize::MAX), 0)?;
        let at = pool.as_ptr().cast();
        // SAFETY: the pool is the capsule's, or freed here.
        unsafe {
            let capsule = required(python.PyCapsule_New(at, NAME.as_ptr(), Some(end)));
            capsule.inspect_err(|_| Pool::free(pool))
        }
    }
);

unsafe extern "C" fn end(capsule: *mut PyObject) {
    // SAFETY: Python calls, with a capsule of ours, which nobody else has any more.
    unsafe {
        if let Some(pool) = pointer(Python::calling(), Object::new(capsule), NAME) {
            Pool::free(pool);
        }
    }
}

/// The options of a copy by `workers`, which may be omitted, and what keeps their threads.
pub fn options(
    call: &Call,
    workers: Option<Object>,
    usual: &Options,
) -> Result<(Options, Option<Owned>)> {
    let python = call.python;
    let Some(workers) = given(python, workers) else { return Ok((*usual, None)) };
    let Ok(capsule) = python.named(workers, c"_capsule") else {
        forgive(python)?;
        return Err(call.wrong("needs workers made by dlpack_rs.Workers"));
    };
    let Some(pool) = pointer(python, capsule.object(), NAME) else {
        let text = format_args!("{}: workers are closed", call.name());
        return Err(refused(python, python.PyExc_ValueError(), text));
    };
    // SAFETY: a capsule of this name has a pool, which it keeps.
    let hook = Some(unsafe { ParallelFor::of(pool.as_ptr()) });
    Ok((Options { parallel: Parallel { threads: 0, hook }, ..*usual }, Some(capsule)))
}
