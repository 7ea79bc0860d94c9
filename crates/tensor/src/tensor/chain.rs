//! Deleter chains: callbacks that run when the last reference to a tensor is released, last in,
//! first out.
//!
//! Before the tensor is freed no link is removed from its chain: attaching pushes with one
//! compare-and-swap, or reuses the link of a detached callback, so a chain is never longer than the
//! most callbacks attached at a time. So both are thread-safe, and no lock is held while a callback
//! runs. When the tensor is freed, the links are sorted in the order in which their callbacks were
//! attached, and removed and run one by one; only callbacks can change the chain then.
//!
//! Serial numbers define that order, and between equal ones the position: those pushed later come
//! first. So a callback that is pushed needs no new number, unless the tensor has some of the other
//! order.

use core::ffi::c_void;
use core::mem::{replace, transmute};
use core::ptr::{NonNull, null_mut};
use core::sync::atomic::{AtomicPtr, AtomicU64, AtomicUsize, Ordering::*};

use crate::error::{Error, Result, Status::*};
use crate::platform;

/// The callback.
pub type Callback = unsafe extern "C" fn(context: *mut c_void);

/// The serial number of a link without a callback.
const DEAD: u64 = 0;
/// The serial number of a link whose next callback is being written.
const BUSY: u64 = 1;
/// The last number: no two callbacks of one link have the same.
static SERIAL: AtomicU64 = AtomicU64::new(BUSY + 1);

fn next_serial() -> u64 {
    SERIAL.fetch_add(1, Relaxed).wrapping_add(1)
}

/// One callback.
struct Link {
    /// Changed only when no other thread can access the chain.
    next: *mut Link,
    callback: AtomicPtr<c_void>,
    context: AtomicPtr<c_void>,
    serial: AtomicU64,
}

/// The callbacks of a tensor of one order.
pub struct Chain {
    first: AtomicPtr<Link>,
    /// Links without a callback that no thread has claimed.
    dead: AtomicUsize,
}

/// The callbacks of a tensor: those that run before its data is freed, and after.
pub struct Chains {
    /// Before.
    pub before: Chain,
    /// After.
    pub after: Chain,
}

impl Link {
    /// Writes the callback of a link that no other thread writes.
    fn set(&self, callback: Callback, context: *mut c_void) {
        // Release, as each store here: a thread that sees it sees that the link is busy.
        self.callback.store(callback as *mut c_void, Release);
        self.context.store(context, Release);
        self.serial.store(next_serial(), Release);
    }

    /// The serial number of the callback, if it is this one.
    fn is(&self, callback: Callback, context: *mut c_void) -> Option<u64> {
        let serial = self.serial.load(Acquire);
        let found = (self.callback.load(Acquire), self.context.load(Acquire));
        (serial > BUSY && found == (callback as *mut c_void, context)).then_some(serial)
    }
}

impl Chain {
    /// Without callbacks.
    pub const fn new() -> Chain {
        Chain { first: AtomicPtr::new(null_mut()), dead: AtomicUsize::new(0) }
    }

    /// Whether nothing was ever attached.
    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        self.first.load(Relaxed).is_null()
    }

    /// The links, while the caller has a reference to the block.
    fn links(&self) -> impl Iterator<Item = &Link> {
        self.links_from(self.first.load(Acquire))
    }

    /// The links from one of them on.
    fn links_from(&self, mut next: *mut Link) -> impl Iterator<Item = &Link> {
        core::iter::from_fn(move || {
            // SAFETY: links are freed only with the block.
            let link = unsafe { next.as_ref() }?;
            next = link.next;
            Some(link)
        })
    }

    /// A link whose callback was detached, for the calling thread alone.
    fn claim(&self) -> Option<&Link> {
        let one_less = |dead: usize| dead.checked_sub(1);
        self.dead.fetch_update(Acquire, Relaxed, one_less).ok()?;
        // There is one for each counted thread, though others may claim those seen first.
        loop {
            let dead =
                |link: &&Link| link.serial.compare_exchange(DEAD, BUSY, Acquire, Relaxed).is_ok();
            if let Some(link) = self.links().find(dead) {
                return Some(link);
            }
        }
    }

    /// The context of a callback that is attached once at most, and never detached.
    fn context_of(&self, from: *mut Link, callback: Callback) -> Option<*mut c_void> {
        let mine = |link: &&Link| link.callback.load(Acquire) == callback as *mut c_void;
        self.links_from(from).find(mine).map(|link| link.context.load(Acquire))
    }

    /// Adds a link for a callback; `alone`: all others of the tensor are of this chain. With
    /// `once`, if another thread has attached it meanwhile, returns the context of that.
    fn push(
        &self,
        alone: bool,
        once: bool,
        callback: Callback,
        context: *mut c_void,
    ) -> Result<Option<*mut c_void>> {
        let function = callback;
        let Some(memory) = platform::memory(size_of::<Link>()) else {
            return Err(Error::new(DLRS_NOMEM).value(size_of::<Link>() as i64));
        };
        let link: NonNull<Link> = memory.cast();
        let (callback, context) =
            (AtomicPtr::new(callback as *mut c_void), AtomicPtr::new(context));
        let serial = AtomicU64::new(if alone { SERIAL.load(Relaxed) } else { next_serial() });
        let mut next = self.first.load(Acquire);
        // SAFETY: fresh memory of the right size, not yet seen by anyone.
        unsafe { link.write(Link { next, callback, context, serial }) };
        loop {
            if once && let Some(found) = self.context_of(next, function) {
                // SAFETY: the memory is from `platform::memory`; the link in it was not pushed, so
                // nobody has seen it.
                unsafe { platform::give_back(memory) };
                return Ok(Some(found));
            }
            // Release: a thread that sees the link sees its contents.
            match self.first.compare_exchange_weak(next, link.as_ptr(), Release, Acquire) {
                Ok(_) => return Ok(None),
                Err(now) => next = now,
            }
            // SAFETY: the link was not pushed, so nobody else has seen it.
            unsafe { (&raw mut (*link.as_ptr()).next).write(next) };
        }
    }
}

impl Chains {
    /// Without callbacks.
    pub const fn new() -> Chains {
        Chains { before: Chain::new(), after: Chain::new() }
    }

    fn of(&self, after: bool) -> &Chain {
        if after { &self.after } else { &self.before }
    }

    /// Adds a callback, to run before the data of the tensor is freed, or after. While it is being
    /// `freed`, the chain is sorted already: a callback attached now is next.
    #[inline]
    pub fn attach(
        &self,
        freed: bool,
        after: bool,
        callback: Callback,
        context: *mut c_void,
    ) -> Result<()> {
        let chain = self.of(after);
        match if freed { None } else { chain.claim() } {
            Some(link) => {
                link.set(callback, context);
                Ok(())
            }
            None => {
                let alone = self.of(!after).is_empty();
                chain.push(alone, false, callback, context).map(|_| ())
            }
        }
    }

    /// Adds a callback of the library, to run after the data is freed; returns the context of the
    /// one that the tensor has already. Only one thread adds it.
    pub fn attach_once(
        &self,
        callback: Callback,
        context: *mut c_void,
    ) -> Result<Option<*mut c_void>> {
        self.after.push(self.before.is_empty(), true, callback, context)
    }

    /// The context of a callback that was added by [`Chains::attach_once`].
    pub fn attached(&self, callback: Callback) -> Option<*mut c_void> {
        self.after.context_of(self.after.first.load(Acquire), callback)
    }

    /// Detaches the callback attached last with this function and context, of either order; returns
    /// whether there was one.
    pub fn detach(&self, callback: Callback, context: *mut c_void) -> bool {
        loop {
            let found = [&self.before, &self.after].into_iter().flat_map(|chain| {
                let found = move |link| Some((Link::is(link, callback, context)?, link, chain));
                chain.links().filter_map(found)
            });
            let later = |a: (u64, _, _), b: (u64, _, _)| if b.0 > a.0 { b } else { a };
            let Some((serial, link, chain)) = found.reduce(later) else { return false };
            // While the number is unchanged, so is the callback that was read with it.
            if link.serial.compare_exchange(serial, DEAD, AcqRel, Relaxed).is_ok() {
                chain.dead.fetch_add(1, Release);
                return true;
            }
        }
    }
}

/// A chain that no other thread can access.
pub struct Rest(*mut Link);

impl Rest {
    /// No callback.
    pub const NONE: Rest = Rest(null_mut());

    /// The callbacks of a chain, with the rest behind them.
    ///
    /// # Safety
    /// Nobody else can reach the chain any more.
    pub unsafe fn behind(self, chain: &Chain) -> Rest {
        // SAFETY: nobody else can reach the chain, so its links are this function's alone.
        let first = unsafe { arranged(chain.first.load(Acquire)) };
        let mut last: *mut Link = null_mut();
        let mut link = first;
        while !link.is_null() {
            last = link;
            // SAFETY: a link of a chain that is ours.
            link = unsafe { (*link).next };
        }
        if last.is_null() {
            return self;
        }
        // SAFETY: `last` is a link of the chain, which nobody else can reach.
        unsafe { (*last).next = self.0 };
        Rest(first)
    }

    /// Runs and frees the callbacks.
    pub fn run(self) {
        // SAFETY: links of chains that are this one's alone.
        unsafe { run_links(&AtomicPtr::new(self.0)) }
    }
}

/// Runs and frees the callbacks of a chain, those attached last first. Each is removed before it
/// runs, so it may attach others, which are next, and detach those that remain.
///
/// # Safety
/// Nobody but the callbacks can reach the chain.
pub unsafe fn run(chain: &Chain) {
    // SAFETY: nobody but the callbacks can reach the chain, so no other thread frees its links.
    unsafe {
        chain.first.store(arranged(chain.first.load(Acquire)), Relaxed);
        run_links(&chain.first);
    }
}

/// # Safety
/// As [`run`].
unsafe fn run_links(links: &AtomicPtr<Link>) {
    while let Some(memory) = NonNull::new(links.load(Acquire)) {
        // SAFETY: a link of the list; it is read out, taken off and freed before its callback runs,
        // so the callback may do anything, even not return.
        let Link { next, callback, context, serial } = unsafe { memory.read() };
        links.store(next, Relaxed);
        // SAFETY: links come from `platform::memory`.
        unsafe { platform::give_back(memory.cast()) };
        if serial.into_inner() > BUSY {
            // SAFETY: `set` or `push` wrote a callback with its own context; it is called once.
            unsafe {
                transmute::<*mut c_void, Callback>(callback.into_inner())(context.into_inner())
            };
        }
    }
}

/// Links in the order in which they run: by merging runs of 1, 2, 4, ... of them.
///
/// # Safety
/// Nobody else can reach them.
unsafe fn arranged(mut links: *mut Link) -> *mut Link {
    // They are sorted as they were pushed, unless a link was reused or two threads attached.
    // SAFETY: the links are live, and nobody else can reach them.
    if unsafe { in_order(links) } {
        return links;
    }
    let mut runs: [*mut Link; usize::BITS as usize] = [null_mut(); _];
    while !links.is_null() {
        let mut run = links;
        // SAFETY: `run` is a live link, and so are those in `runs`; nobody else can reach them.
        unsafe {
            links = replace(&mut (*run).next, null_mut());
            for place in &mut runs {
                let before = replace(place, null_mut());
                if before.is_null() {
                    *place = run;
                    break;
                }
                run = merged(before, run);
            }
        }
    }
    // SAFETY: each run is a list of live links that nobody else can reach, and no link is in two.
    runs.into_iter().fold(null_mut(), |all, run| unsafe { merged(run, all) })
}

/// Whether no link's serial number is greater than the previous one's.
///
/// # Safety
/// As [`arranged`].
unsafe fn in_order(mut link: *mut Link) -> bool {
    // SAFETY: `link` is NULL or a live link, which nobody else changes.
    while let Some(this) = unsafe { link.as_ref() } {
        // SAFETY: `next` is NULL or a live link, as every link's.
        let next = unsafe { this.next.as_ref() };
        if next.is_some_and(|next| next.serial.load(Relaxed) > this.serial.load(Relaxed)) {
            return false;
        }
        link = this.next;
    }
    true
}

/// Two runs as one, the greatest serial number first, and of equal ones that of `a`.
///
/// # Safety
/// As [`arranged`].
unsafe fn merged(mut a: *mut Link, mut b: *mut Link) -> *mut Link {
    let mut first = null_mut();
    let mut last = &raw mut first;
    // SAFETY: both are lists of live links that nobody else can reach; `last` is a place in this
    // frame or in a link.
    unsafe {
        while !a.is_null() && !b.is_null() {
            let from_a = (*a).serial.load(Relaxed) >= (*b).serial.load(Relaxed);
            let next = if from_a { &mut a } else { &mut b };
            let link = *next;
            *next = (*link).next;
            *last = link;
            last = &raw mut (*link).next;
        }
        *last = if a.is_null() { b } else { a };
    }
    first
}
