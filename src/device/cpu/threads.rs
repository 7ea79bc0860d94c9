//! Parts of a copy side by side: on threads made for this call and joined, or on the caller's.
//!
//! No pool: nothing outlives the call, so fork and dlclose need no care.
use core::ffi::c_void;

use super::engine::serial;
use super::level::{stream_from, thread_from};
use crate::device::part::Part;
use crate::device::plan::{Dim, Item, Plan};

/// The caller's way to run `n` bodies at once: it calls `body(body_ctx, i)` once for every `i`
/// below `n`, on any threads, and returns 0 after the last. Nonzero: it could not, and has run
/// none; the calling thread then does all the work.
#[derive(Clone, Copy)]
pub struct ParallelFor {
    /// The function.
    pub run: unsafe extern "C" fn(
        ctx: *mut c_void,
        n: usize,
        body: unsafe extern "C" fn(*mut c_void, usize),
        body_ctx: *mut c_void,
    ) -> i32,
    /// Its first argument.
    pub ctx: *mut c_void,
}

/// How many threads a copy may use, and whose.
#[derive(Clone, Copy)]
pub struct Parallel {
    /// 0: decide by size and processors; 1: the calling thread only; otherwise at most so many.
    pub threads: usize,
    /// The caller's pool, in place of threads made here.
    pub hook: Option<ParallelFor>,
}

/// The most parts a copy is split into.
const MOST: usize = 64;
/// Where the number of threads is ours to decide: memory is saturated beyond.
const DECIDED_MOST: usize = 16;

/// Which units of a plan are dealt out, and how many to each part.
struct Deal<'a> {
    plan: Part<'a>,
    /// The dimension dealt out; `None`: the bytes of the element.
    dim: Option<usize>,
    units: usize,
    each: usize,
    large: bool,
}

// A Deal is only read by the parts; its pointers are the caller's, who vouches for them.
impl Deal<'_> {
    fn parts(&self) -> usize {
        self.units.div_ceil(self.each.max(1))
    }

    /// Carries out part `i`.
    unsafe fn part(&self, i: usize) {
        let first = i.saturating_mul(self.each).min(self.units);
        let n = self.each.min(self.units - first);
        if n == 0 {
            return;
        }
        let part = match self.dim {
            None => self.plan.of_bytes(first, n),
            Some(dim) => self.plan.of_dim(dim, first as i64, n as i64),
        };
        // SAFETY: a part of the caller's plan; parts share no element, and `deal` sees to it that
        // they share no byte.
        unsafe { serial(&part, self.large) };
    }
}

/// Carries out a simplified plan.
///
/// # Safety
/// As [`super::copy`].
pub(super) unsafe fn run(plan: &Plan, parallel: &Parallel) {
    let nbytes = plan.nbytes();
    let large = nbytes >= stream_from();
    let useful = nbytes.checked_div(thread_from()).unwrap_or(1).min(MOST as u64) as usize;
    let threads = match parallel.threads {
        0 if useful > 1 && parallel.hook.is_none() => system::processors().min(DECIDED_MOST),
        0 => DECIDED_MOST,
        n => n,
    };
    let deal = if threads.min(useful) > 1 {
        deal(Part::whole(plan), threads.min(useful), large)
    } else {
        None
    };
    // SAFETY: the caller's promise; the parts make up the plan.
    unsafe {
        match deal {
            None => serial(&Part::whole(plan), large),
            Some(deal) => match parallel.hook {
                None => system::side_by_side(&deal),
                Some(hook) => hooked(&deal, hook),
            },
        }
    }
}

unsafe fn hooked(deal: &Deal, hook: ParallelFor) {
    let context: *mut c_void = (&raw const *deal).cast_mut().cast();
    // SAFETY: the hook is the caller's; `deal` outlives the call. Nonzero says that no body ran.
    unsafe {
        if (hook.run)(hook.ctx, deal.parts(), body, context) != 0 {
            serial(&deal.plan, deal.large);
        }
    }
}

unsafe extern "C" fn body(deal: *mut c_void, i: usize) {
    // SAFETY: `hooked` passes a Deal, which is only read.
    unsafe { (*deal.cast::<Deal>()).part(i) }
}

/// Chooses what to deal out in `parts`: the element's bytes if it is large, else the outermost
/// dimension that has enough to deal, else the longest.
fn deal(plan: Part, parts: usize, large: bool) -> Option<Deal> {
    let even = |units: usize, grain: usize| {
        let each = units.div_ceil(parts.max(1));
        each.div_ceil(grain.max(1)).saturating_mul(grain.max(1))
    };
    match plan.item {
        Item::Bytes(units) if units >= 1 << 18 => {
            return Some(Deal { plan, dim: None, units, each: even(units, 4096), large });
        }
        Item::Bits { .. } if !nested(&plan) => return None,
        _ => {}
    }
    let n = |i: usize| plan.dim(i).n as usize;
    let enough = (0..plan.ndim).find(|&i| n(i) >= 8 * parts || n(i) == parts);
    let dim = enough.or_else(|| (0..plan.ndim).max_by_key(|&i| n(i)))?;
    let whole_bytes = match plan.item {
        Item::Bytes(_) => 1,
        // Parts begin at whole bytes on both sides.
        Item::Bits { .. } => {
            let odd = (plan.dim(dim).dst | plan.dim(dim).src).trailing_zeros().min(3);
            8usize >> odd
        }
    };
    if matches!(plan.item, Item::Bits { .. }) && dim != 0 {
        return None;
    }
    let grain = if n(dim) >= 64 * parts { 64 } else { whole_bytes };
    Some(Deal { plan, dim: Some(dim), units: n(dim), each: even(n(dim), grain), large })
}

/// Whether each step of the outermost destination dimension lies beyond all that the inner ones
/// reach: then parts of it that start at whole bytes share no byte.
fn nested(plan: &Part) -> bool {
    let Item::Bits { dst_slot, .. } = plan.item else { return true };
    let mut reach = dst_slot as i64;
    for i in 1..plan.ndim {
        let Dim { n, dst, .. } = plan.dim(i);
        reach = reach.saturating_add((n - 1).saturating_mul(dst));
    }
    plan.dim(0).dst >= reach
}

#[cfg(unix)]
mod system {
    use core::ffi::c_void;
    use core::mem::MaybeUninit;
    use core::ptr::{null, null_mut};
    use core::sync::atomic::{AtomicUsize, Ordering};

    use super::{Deal, MOST};

    /// Address space for a worker; it touches less than 16 KiB of it.
    const STACK: usize = 256 << 10;

    /// Parts are taken one by one by whoever is free: a worker that could not be made is not
    /// missed.
    struct Queue<'a> {
        deal: &'a Deal<'a>,
        parts: usize,
        next: AtomicUsize,
    }

    impl Queue<'_> {
        unsafe fn work(&self) {
            loop {
                let i = self.next.fetch_add(1, Ordering::Relaxed);
                if i >= self.parts {
                    return;
                }
                // SAFETY: the caller's plan; each part is taken once.
                unsafe { self.deal.part(i) };
            }
        }
    }

    extern "C" fn work(queue: *mut c_void) -> *mut c_void {
        // SAFETY: `side_by_side` passes a Queue that it keeps until this thread is joined.
        unsafe { (*queue.cast::<Queue>()).work() };
        null_mut()
    }

    /// Processors that this thread may run on.
    pub(super) fn processors() -> usize {
        // SAFETY: sysconf has no precondition.
        unsafe { libc::sysconf(libc::_SC_NPROCESSORS_ONLN) }.max(1) as usize
    }

    /// All parts, on the calling thread and on as many others as there are and can be had.
    #[inline(never)] // a frame of its own: stacks may be small
    pub(super) unsafe fn side_by_side(deal: &Deal) {
        let parts = deal.parts();
        let queue = Queue { deal, parts, next: AtomicUsize::new(0) };
        let mut threads = [const { MaybeUninit::<libc::pthread_t>::uninit() }; MOST];
        let mut made = 0;
        // SAFETY: `queue` outlives the threads, which are joined here; the first `made` handles
        // are initialised.
        unsafe {
            with_signals_blocked(|attributes| {
                let argument: *mut c_void = (&raw const queue).cast_mut().cast();
                for thread in threads.iter_mut().take(parts.saturating_sub(1)) {
                    if libc::pthread_create(thread.as_mut_ptr(), attributes, work, argument) != 0 {
                        break;
                    }
                    made += 1;
                }
            });
            queue.work();
            for thread in threads.iter().take(made) {
                libc::pthread_join(thread.assume_init(), null_mut());
            }
        }
    }

    /// Calls `make` with the attributes of a worker, and with every signal blocked: workers
    /// inherit that, so that the host's handlers never run on their small stacks.
    unsafe fn with_signals_blocked(make: impl FnOnce(*const libc::pthread_attr_t)) {
        let mut attributes = MaybeUninit::<libc::pthread_attr_t>::uninit();
        let (mut all, mut former) = (MaybeUninit::uninit(), MaybeUninit::uninit());
        // SAFETY: each object is initialised by the call that comes first; a failure leaves the
        // default attributes, or the mask as it was.
        unsafe {
            let set = libc::pthread_attr_init(attributes.as_mut_ptr()) == 0;
            let attributes = attributes.as_mut_ptr();
            if set {
                libc::pthread_attr_setstacksize(attributes, STACK);
            }
            libc::sigfillset(all.as_mut_ptr());
            let blocked =
                libc::pthread_sigmask(libc::SIG_SETMASK, all.as_ptr(), former.as_mut_ptr()) == 0;
            make(if set { attributes } else { null() });
            if blocked {
                libc::pthread_sigmask(libc::SIG_SETMASK, former.as_ptr(), null_mut());
            }
            if set {
                libc::pthread_attr_destroy(attributes);
            }
        }
    }
}

#[cfg(not(unix))]
mod system {
    pub(super) fn processors() -> usize {
        1
    }

    #[inline(never)] // a frame of its own: stacks may be small
    pub(super) unsafe fn side_by_side(deal: &super::Deal) {
        for i in 0..deal.parts() {
            // SAFETY: the caller's promise; the parts are its plan.
            unsafe { deal.part(i) };
        }
    }
}
