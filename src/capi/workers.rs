//! Threads that wait for copies.

use core::ffi::c_void;
use core::mem::MaybeUninit;
use core::ptr::NonNull;

use super::arg::{self, live, optional, result};
use super::error::{dlrs_error, dlrs_status, run};
use crate::error::{Arg, Error, Status::*};
use crate::platform::pool::Pool;

/// How workers are made. All members but `struct_size` may be 0.
#[repr(C)]
#[derive(Clone, Copy)]
#[allow(non_camel_case_types)]
pub struct dlrs_workers_options {
    /// `sizeof(dlrs_workers_options)`.
    pub struct_size: u32,
    /// Threads that share a copy, its caller's with them: at most 64; 0 for one on each processor
    /// that the calling thread may run on, at most 16.
    pub threads: u32,
    /// Microseconds for which a worker without work keeps its processor before it sleeps: copies
    /// in quick succession find it awake. 0 for 40.
    pub spin_us: u32,
    /// Must be 0.
    pub reserved: u32,
}

// SAFETY: plain data, u32 first.
unsafe impl arg::Sized32 for dlrs_workers_options {}

/// Make threads that wait for copies, which then need not create and join theirs: in the options of
/// a copy, dlrs_workers_run is parallel_for and *out parallel_context. Its parts are as small as
/// 64 KiB; threads of the options, if not 0, is their most.
///
/// Ownership: the caller owns *out and frees it by dlrs_workers_free.
/// Errors:    DLRS_NULL_ARG, DLRS_MISALIGNED_STRUCT: out. DLRS_STRUCT_SIZE, DLRS_BAD_ARG: options.
///            DLRS_NOMEM: no memory, or the system gives fewer threads; then none is left.
/// Threads:   any. Any may use the workers: those of a copy that runs do not help another, which
///            its caller then does alone. The workers' signals are as those of a copy's threads. A
///            forked child has no workers: there copies are made by their caller alone, and it may
///            make workers of its own.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dlrs_workers_new(
    options: *const dlrs_workers_options,
    out: *mut *mut c_void,
    error: *mut dlrs_error,
) -> dlrs_status {
    // SAFETY: options, out and error are NULL or live, by the preface.
    unsafe {
        let (options, out) = (optional(live(options, Arg::options)), result(out, Arg::out));
        run("dlrs_workers_new", error, (options, out), |(options, out)| {
            let mut room = MaybeUninit::uninit();
            let options = arg::options(options, Arg::options, &mut room)?;
            let (threads, spin_us, reserved) =
                options.map_or((0, 0, 0), |given| (given.threads, given.spin_us, given.reserved));
            if reserved != 0 {
                let error = Error::new(DLRS_BAD_ARG).option(arg::RESERVED).of(Arg::options);
                return Err(error.value(reserved.into()));
            }
            let bad = |e: Error| if e.status() == DLRS_BAD_ARG { e.of(Arg::options) } else { e };
            out.give(Pool::new(threads as usize, spin_us.into()).map_err(bad)?.cast());
            Ok(())
        })
    }
}

/// Free workers: their threads have ended when it returns.
///
/// Ownership: workers is invalid afterwards; NULL does nothing. In a child that was forked after
///            dlrs_workers_new only memory is freed.
/// Errors:    none.
/// Threads:   any but one that runs a part for these workers. A copy that uses them is waited for;
///            none may begin.
///
/// # Safety
/// workers is NULL or came from dlrs_workers_new.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dlrs_workers_free(workers: *mut c_void) {
    if let Some(workers) = NonNull::new(workers) {
        // SAFETY: workers is from dlrs_workers_new and not used again, by the preface.
        unsafe { Pool::free(workers.cast()) }
    }
}

/// Call body(body_context, index) for every index below n, on the calling thread and the workers:
/// what parallel_for of the copy options asks for (dlrs_parallel_for_fn).
///
/// Ownership: unchanged.
/// Errors:    not 0, and nothing was called, if workers is NULL, in use by another thread or made
///            by another process, or if n is below 2 or above 65534.
/// Threads:   any.
///
/// # Safety
/// workers is NULL or came from dlrs_workers_new; body may be called so, on any
/// thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dlrs_workers_run(
    workers: *mut c_void,
    n: usize,
    body: unsafe extern "C" fn(body_context: *mut c_void, index: usize),
    body_context: *mut c_void,
) -> i32 {
    // SAFETY: workers is a live pool or NULL, and body may be called on any thread, by the preface.
    unsafe { Pool::run(workers, n, body, body_context) }
}
