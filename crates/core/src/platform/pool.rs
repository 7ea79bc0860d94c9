//! A pool of threads that an application makes, uses and frees.

use core::ffi::c_void;
use core::ptr::NonNull;

use super::jobs::Jobs;
use super::os;
use super::workers::{Body, WORKERS_MOST, Work, start, uncancelled};
use crate::array::Array;
use crate::error::{Error, Result, Status::*};

/// Of a pool whose size nobody names; more do not increase the memory bandwidth.
const DECIDED_MOST: usize = 16;
const SPIN_US: u64 = 40;

/// Workers, and the job that they share.
#[repr(C)] // a thread finds in front what it is to do
pub struct Pool {
    work: Work,
    jobs: Jobs,
    /// The process that has the workers: a forked child does not.
    process: i32,
    threads: Array<os::Thread, WORKERS_MOST>,
}

impl Pool {
    /// `threads` threads with the caller's, at most [`WORKERS_MOST`], who wait for work busily for
    /// `spin_us` before they sleep. 0 threads: one for each processor; 0 microseconds: [`SPIN_US`].
    pub fn new(threads: usize, spin_us: u64) -> Result<NonNull<Pool>> {
        let threads = match threads {
            0 => os::processors().min(DECIDED_MOST),
            threads if threads <= WORKERS_MOST => threads,
            _ => {
                const MANY: &str = "threads\0are too many\0Give at most 64, or 0.";
                let error = Error::new(DLRS_BAD_ARG).option(MANY).value(threads as i64);
                return Err(error.limit(WORKERS_MOST as i64));
            }
        };
        let spin_us = if spin_us == 0 { SPIN_US } else { spin_us };
        let nbytes = size_of::<Pool>();
        let error = || Error::new(DLRS_NOMEM);
        let memory = super::memory(nbytes)
            .ok_or_else(|| error().value(nbytes as i64).detail("out of memory, bytes"))?;
        let pool = memory.cast::<Pool>();
        let (at, others) = (pool.as_ptr(), threads.saturating_sub(1));
        // SAFETY: the memory is the pool's own, of its size and aligned for anything. From the
        // first thread on `jobs` is only shared, and `threads` this thread's.
        unsafe {
            let (jobs, process) = (Jobs::new(spin_us), os::process_id());
            at.write(Pool { work: Pool::work, jobs, process, threads: Array::new() });
            let noted = &mut (*at).threads;
            start(at.cast(), others, &mut |thread| noted.push(thread));
            let had = noted.len();
            if had < others {
                Pool::free(pool);
                let error = error().value(had as i64).limit(others as i64);
                return Err(error.detail("the system gives fewer threads, workers"));
            }
        }
        Ok(pool)
    }

    /// # Safety
    /// `pool` points to a live Pool, which joins the calling thread.
    unsafe fn work(pool: *mut c_void) {
        // SAFETY: a live Pool, of which a worker only sees `jobs`, which is shared.
        unsafe { (*pool.cast::<Pool>()).jobs.work() }
    }

    /// How many threads work at a job, the caller's with them.
    pub fn threads(&self) -> usize {
        self.threads.len() + 1
    }

    /// Calls `body(context, i)` once for every `i` below `parts`, on this thread and on workers.
    /// Not 0: it has called none: there is no pool, it is in use, or another process's.
    ///
    /// # Safety
    /// `pool` is NULL or points to a live Pool; the body may be called so, on several threads at a
    /// time.
    pub unsafe extern "C" fn run(
        pool: *mut c_void,
        parts: usize,
        body: Body,
        context: *mut c_void,
    ) -> i32 {
        // SAFETY: a live pool, or none.
        let pool = unsafe { pool.cast::<Pool>().as_ref() };
        let Some(pool) = pool.filter(|pool| pool.process == os::process_id()) else { return 1 };
        // SAFETY: the body may be called on several threads at a time.
        i32::from(!uncancelled(|| unsafe { pool.jobs.run(parts, body, context) }))
    }

    /// Waits for the job that is running, joins the workers, gives the memory back.
    ///
    /// # Safety
    /// `pool` is from [`Pool::new`] and not used again, nor by one of its own bodies here.
    pub unsafe fn free(pool: NonNull<Pool>) {
        // SAFETY: a live pool; of one that belongs to another process only the memory is here, with
        // locks that nobody will ever unlock.
        unsafe {
            if pool.as_ref().process == os::process_id() {
                uncancelled(|| {
                    pool.as_ref().jobs.stop();
                    for &thread in pool.as_ref().threads.iter() {
                        os::thread_join(thread);
                    }
                });
                pool.drop_in_place();
            }
            super::give_back(pool.cast());
        }
    }
}
