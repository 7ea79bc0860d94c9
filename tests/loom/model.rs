//! The pool's jobs with loom's atomics and locks: each test runs once for every order in which the
//! threads can meet, within the bound, and every value that memory may show them.

use loom::sync::atomic;

mod jobs {
    include!(concat!(env!("OUT_DIR"), "/jobs.rs"));
}

mod os {
    use loom::sync::{Condvar, Mutex, MutexGuard};

    pub struct Lock(Mutex<()>);
    pub type Held<'a> = MutexGuard<'a, ()>;

    impl Lock {
        pub fn new() -> Lock {
            Lock(Mutex::new(()))
        }
        pub fn lock(&self) -> Held<'_> {
            self.0.lock().unwrap()
        }
        pub fn try_lock(&self) -> Option<Held<'_>> {
            self.0.try_lock().ok()
        }
    }

    pub struct Condition(Condvar);

    impl Condition {
        pub fn new() -> Condition {
            Condition(Condvar::new())
        }
        pub fn wait<'a>(&self, held: Held<'a>) -> Held<'a> {
            self.0.wait(held).unwrap()
        }
        pub fn wake_one(&self) {
            self.0.notify_one();
        }
    }

    /// No time passes: who may wait busily does so for ever, else it sleeps at once.
    pub fn microseconds() -> u64 {
        0
    }
    pub use loom::thread::yield_now as pause;
}

mod workers {
    pub type Body = unsafe extern "C" fn(*mut core::ffi::c_void, usize);
}

use core::ffi::c_void;
use std::sync::Arc;

use loom::cell::UnsafeCell;

use jobs::Jobs;

const MOST: usize = 3;
/// How they wait.
const BUSILY: u64 = 1;
const ASLEEP: u64 = 0;

/// A job's own count of each of its parts, in memory that the model watches: whoever counts, or
/// reads the count, must come after whoever counted before.
struct Sum {
    parts: usize,
    ran: [UnsafeCell<usize>; MOST],
}

fn count(sum: *mut c_void, i: usize, by: usize) {
    let sum = unsafe { &*sum.cast::<Sum>() };
    assert!(i < sum.parts, "part {i} of a job of {}", sum.parts);
    sum.ran[i].with_mut(|ran| unsafe { *ran += by });
}

unsafe extern "C" fn add_one(sum: *mut c_void, i: usize) {
    count(sum, i, 1);
}

unsafe extern "C" fn add_many(sum: *mut c_void, i: usize) {
    count(sum, i, 100);
}

/// A job with a body and a number of parts that are not those of the job before it.
fn job(jobs: &Jobs, which: usize) -> bool {
    let (parts, body, once): (usize, workers::Body, usize) =
        if which == 0 { (3, add_one, 1) } else { (2, add_many, 100) };
    // Never freed: a model of a fault may still read it.
    let sum = Box::leak(Box::new(Sum { parts, ran: core::array::from_fn(|_| UnsafeCell::new(0)) }));
    let ran = unsafe { jobs.run(parts, body, (&raw mut *sum).cast()) };
    for (i, count) in sum.ran.iter().enumerate() {
        let wanted = if ran && i < parts { once } else { 0 };
        assert_eq!(count.with(|count| unsafe { *count }), wanted, "part {i} of job {which}");
    }
    ran
}

fn with_workers(
    workers: usize,
    preemptions: usize,
    spin_us: u64,
    test: impl Fn(&Arc<Jobs>) + Sync + Send + 'static,
) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(preemptions);
    model.check(move || {
        let jobs = Arc::new(Jobs::new(spin_us));
        let work = |_| {
            let jobs = jobs.clone();
            loom::thread::spawn(move || jobs.work())
        };
        let threads: Vec<_> = (0..workers).map(work).collect();
        test(&jobs);
        jobs.stop();
        for thread in threads {
            thread.join().unwrap();
        }
    });
}

#[test]
fn every_part_of_two_jobs_runs_once_with_its_own_body() {
    with_workers(1, 1, BUSILY, |jobs| {
        assert!(job(jobs, 1));
        assert!(job(jobs, 0));
    });
}

#[test]
fn whoever_sleeps_between_two_jobs_is_woken() {
    with_workers(1, 1, ASLEEP, |jobs| {
        assert!(job(jobs, 1));
        assert!(job(jobs, 0));
    });
}

#[test]
fn two_workers_share_a_job() {
    with_workers(2, 1, ASLEEP, |jobs| {
        assert!(job(jobs, 0));
    });
}

#[test]
fn a_second_user_is_served_or_refused() {
    with_workers(1, 1, ASLEEP, |jobs| {
        let other = jobs.clone();
        let user = loom::thread::spawn(move || job(&other, 1));
        job(jobs, 0);
        user.join().unwrap();
    });
}

#[test]
fn workers_without_a_job_end() {
    with_workers(2, 2, ASLEEP, |_| {});
}
