//! How the threads of a pool share the parts of a job.
//!
//! tests/loom compiles this file a second time, with a model of atomics and locks that tries every
//! order in which the threads can meet.

use core::ffi::c_void;
use core::ptr::{from_ref, null_mut};

use super::atomic::{AtomicPtr, AtomicU32, AtomicUsize, Ordering::*, fence};
use super::os::{self, Condition, Lock};
use super::workers::Body;

/// The most parts of a job.
const PARTS_MOST: usize = STOP as usize >> 16;
/// The word that ends the workers.
const STOP: u32 = 0xffff_0000 - 1;

/// What the parts of a job are.
struct Job {
    body: Body,
    context: *mut c_void,
}

/// A job at a time, and those who wait for the next one or for its end.
pub(super) struct Jobs {
    /// The number of parts << 16 | the next one to take. In one word: a part that is taken is one
    /// of the current job, however late its taker read the word.
    word: AtomicU32,
    /// Read by who has taken a part: until that is done the job lasts.
    job: AtomicPtr<Job>,
    done: AtomicU32,
    /// Held by the thread whose job it is.
    in_use: Lock,
    new: Bell,
    end: Bell,
    spin_us: u64,
}

fn has_parts(word: u32) -> bool {
    word & 0xffff < word >> 16
}

impl Jobs {
    /// No job yet. Who waits does so without giving up the processor for `spin_us` first.
    pub(super) fn new(spin_us: u64) -> Jobs {
        let (word, done) = (AtomicU32::new(0), AtomicU32::new(0));
        let (job, in_use) = (AtomicPtr::new(null_mut()), Lock::new());
        Jobs { word, job, done, in_use, new: Bell::new(), end: Bell::new(), spin_us }
    }

    /// Calls `body(context, i)` once for every `i` below `parts`, on this thread and on the workers
    /// that are free. False: it has called none, because another job is running or `parts` is too
    /// large, or too small to share.
    ///
    /// # Safety
    /// The body may be called so, on several threads at a time.
    pub(super) unsafe fn run(&self, parts: usize, body: Body, context: *mut c_void) -> bool {
        if !(2..=PARTS_MOST).contains(&parts) {
            return false;
        }
        let Some(_in_use) = self.in_use.try_lock() else { return false };
        let job = Job { body, context };
        self.job.store(from_ref(&job).cast_mut(), Relaxed);
        self.done.store(0, Relaxed);
        self.word.store((parts as u32) << 16, Release);
        self.new.ring(parts - 1);
        // SAFETY: `job`, whose body may be called with its context on any thread, lasts until all
        // parts are done.
        unsafe { self.take() };
        self.end.wait(self.spin_us, || self.done.load(Acquire) as usize == parts);
        true
    }

    /// Takes parts until there are none.
    ///
    /// # Safety
    /// What [`Jobs::run`] was given for the current job holds.
    unsafe fn take(&self) {
        let mut word = self.word.load(Relaxed);
        while has_parts(word) {
            match self.word.compare_exchange_weak(word, word + 1, Acquire, Relaxed) {
                Ok(_) => {
                    // SAFETY: `run` stored the job before the word, and waits for this part; its
                    // body may be called with its context, once for this part.
                    unsafe {
                        let Job { body, context } = *self.job.load(Relaxed);
                        body(context, word as usize & 0xffff);
                    }
                    if self.done.fetch_add(1, Release) + 1 == word >> 16 {
                        self.end.ring(1);
                    }
                    word = self.word.load(Relaxed);
                }
                Err(now) => word = now,
            }
        }
    }

    /// What a worker does, until [`Jobs::stop`].
    pub(super) fn work(&self) {
        let word = || self.word.load(Relaxed);
        while word() != STOP {
            // SAFETY: a job is only ever stored by `run`.
            unsafe { self.take() };
            self.new.wait(self.spin_us, || has_parts(word()) || word() == STOP);
        }
    }

    /// Waits for the job that is running, and ends the workers: there will be no other job.
    pub(super) fn stop(&self) {
        let _in_use = self.in_use.lock();
        self.word.store(STOP, Relaxed);
        self.new.ring(usize::MAX);
    }
}

/// Threads that wait for a change of an atomic, and are woken after it.
struct Bell {
    asleep: AtomicUsize,
    lock: Lock,
    rung: Condition,
}

impl Bell {
    fn new() -> Bell {
        Bell { asleep: AtomicUsize::new(0), lock: Lock::new(), rung: Condition::new() }
    }

    /// Waits until `is_so`: busily for so many microseconds, then asleep.
    fn wait(&self, spin_us: u64, is_so: impl Fn() -> bool) {
        const BETWEEN_LOOKS: usize = 32; // at the clock, which takes about as long as one pause
        if is_so() {
            return;
        }
        let from = os::microseconds();
        while os::microseconds().wrapping_sub(from) < spin_us {
            for _ in 0..BETWEEN_LOOKS {
                if is_so() {
                    return;
                }
                os::pause();
            }
        }
        let mut held = self.lock.lock();
        self.asleep.fetch_add(1, Relaxed);
        // Either it sees the change, or `ring` sees that it sleeps.
        fence(SeqCst);
        while !is_so() {
            held = self.rung.wait(held);
        }
        self.asleep.fetch_sub(1, Relaxed);
    }

    /// Wakes at most so many, after the change.
    fn ring(&self, most: usize) {
        fence(SeqCst);
        if self.asleep.load(Relaxed) > 0 {
            let _held = self.lock.lock();
            for _ in 0..most.min(self.asleep.load(Relaxed)) {
                self.rung.wake_one();
            }
        }
    }
}
