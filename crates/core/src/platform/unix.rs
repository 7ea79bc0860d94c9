//! POSIX.

use core::cell::UnsafeCell;
use core::ffi::{c_char, c_int, c_void};
use core::mem::MaybeUninit;
use core::ptr::{NonNull, null, null_mut};

use super::names::Names;
use super::workers::{STACK, Work};

/// Memory from `malloc`, aligned for any C object; `None` when there is none.
#[inline]
pub fn memory(nbytes: usize) -> Option<NonNull<u8>> {
    // SAFETY: malloc takes any size; `max(1)` keeps the answer for 0 bytes from being NULL.
    let memory = unsafe { libc::malloc(nbytes.max(1)) };
    if nbytes >= HUGE {
        in_huge_pages(memory, nbytes);
    }
    NonNull::new(memory.cast())
}

/// The size from which memory gets huge pages, which take half the time to write; as in NumPy.
const HUGE: usize = 4 << 20;

/// Asks for huge pages for fresh memory.
#[inline(never)]
pub fn in_huge_pages(_memory: *mut c_void, nbytes: usize) {
    if nbytes < HUGE || _memory.is_null() {
        return;
    }
    // SAFETY: the advice changes no contents, wherever the pages are.
    #[cfg(all(target_os = "linux", not(miri)))]
    unsafe {
        let page = libc::sysconf(libc::_SC_PAGESIZE).max(1) as usize;
        let before = _memory.addr() & page.wrapping_sub(1);
        let first = _memory.wrapping_byte_sub(before);
        libc::madvise(first, nbytes.wrapping_add(before), libc::MADV_HUGEPAGE);
    }
}

/// Gives memory back.
///
/// # Safety
/// `memory` came from [`memory`] and is not used again.
pub unsafe fn give_back(memory: NonNull<u8>) {
    // SAFETY: `memory` is from malloc, and was not freed yet.
    unsafe { libc::free(memory.as_ptr().cast()) }
}

/// Where [`symbol`] looks: one loaded library, or all that the process shows to everybody.
#[derive(Clone, Copy)]
pub struct Library(pub(super) *mut c_void);

/// Where the process has a symbol, which implies its neighbours.
///
/// # Safety
/// `name` ends with NUL.
pub unsafe fn library_with(name: *const c_char) -> Option<Library> {
    let everybody = Library(libc::RTLD_DEFAULT);
    // SAFETY: `name` ends with NUL; RTLD_DEFAULT is a handle of dlsym.
    (!unsafe { symbol(everybody, name) }.is_null()).then_some(everybody)
}

/// Loads a library, for good.
///
/// # Safety
/// `name` ends with NUL; what the library does when it is loaded is harmless.
pub unsafe fn library_open(name: *const c_char) -> Option<Library> {
    // SAFETY: `name` ends with NUL; what the library does when it is loaded is harmless.
    handle(unsafe { libc::dlopen(name, libc::RTLD_NOW | libc::RTLD_LOCAL) })
}

/// A library, if the process has loaded it already.
///
/// # Safety
/// `name` ends with NUL.
pub unsafe fn library_loaded(name: *const c_char) -> Option<Library> {
    // SAFETY: `name` ends with NUL; RTLD_NOLOAD runs no code of the library.
    handle(unsafe { libc::dlopen(name, libc::RTLD_NOW | libc::RTLD_LOCAL | libc::RTLD_NOLOAD) })
}

fn handle(library: *mut c_void) -> Option<Library> {
    (!library.is_null()).then_some(Library(library))
}

/// The address of a symbol, NULL when there is none.
///
/// # Safety
/// `name` ends with NUL.
pub unsafe fn symbol(library: Library, name: *const c_char) -> *mut c_void {
    // SAFETY: the handle is never closed, and `name` ends with NUL.
    unsafe { libc::dlsym(library.0, name) }
}

/// A lock.
pub struct Lock(UnsafeCell<libc::pthread_mutex_t>);

// SAFETY: it is made for threads to share.
unsafe impl Sync for Lock {}

/// A guard: the lock is held while it exists.
pub struct Held<'a>(&'a Lock);

impl Lock {
    /// Nobody's.
    pub const fn new() -> Lock {
        Lock(UnsafeCell::new(libc::PTHREAD_MUTEX_INITIALIZER))
    }

    /// Waits until it is this thread's, which does not hold it yet.
    pub fn lock(&self) -> Held<'_> {
        // SAFETY: an initialised mutex, of the kind for which nothing can go wrong.
        unsafe { libc::pthread_mutex_lock(self.0.get()) };
        Held(self)
    }

    /// This thread's from now on, unless it is somebody's.
    pub fn try_lock(&self) -> Option<Held<'_>> {
        // SAFETY: an initialised mutex.
        (unsafe { libc::pthread_mutex_trylock(self.0.get()) } == 0).then(|| Held(self))
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // SAFETY: an initialised mutex, which nobody holds: a guard would borrow it.
        unsafe { libc::pthread_mutex_destroy(self.0.get()) };
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        // SAFETY: this thread locked it.
        unsafe { libc::pthread_mutex_unlock(self.0.0.get()) };
    }
}

/// What threads that hold a lock wait for.
pub(super) struct Condition(UnsafeCell<libc::pthread_cond_t>);

// SAFETY: it is made for threads to share.
unsafe impl Sync for Condition {}

impl Condition {
    /// Nobody waits.
    pub(super) const fn new() -> Condition {
        Condition(UnsafeCell::new(libc::PTHREAD_COND_INITIALIZER))
    }

    /// Waits until it is woken, or for no reason; meanwhile the lock is not held.
    pub(super) fn wait<'a>(&self, held: Held<'a>) -> Held<'a> {
        // SAFETY: an initialised condition, and a mutex that this thread holds.
        unsafe { libc::pthread_cond_wait(self.0.get(), held.0.0.get()) };
        held
    }

    /// Wakes one that waits.
    pub(super) fn wake_one(&self) {
        // SAFETY: an initialised condition.
        unsafe { libc::pthread_cond_signal(self.0.get()) };
    }
}

impl Drop for Condition {
    fn drop(&mut self) {
        // SAFETY: an initialised condition, for which nobody waits: it would be borrowed.
        unsafe { libc::pthread_cond_destroy(self.0.get()) };
    }
}

/// Lets the other threads of the core go first, for some nanoseconds.
pub(super) use core::hint::spin_loop as pause;

/// Time, from some moment on.
pub(super) fn microseconds() -> u64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: a clock that exists, and a variable.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut now) };
    (now.tv_sec as u64).wrapping_mul(1_000_000).wrapping_add(now.tv_nsec as u64 / 1000)
}

/// The number of the calling process.
pub fn process_id() -> i32 {
    // SAFETY: getpid has no precondition.
    unsafe { libc::getpid() }
}

/// NVIDIA's driver.
pub const CUDA: Names = Names {
    loaded: &[],
    opened: &[c"libcuda.so.1"],
    missing: "the NVIDIA driver's library is not found: libcuda.so.1",
};
/// AMD's runtime. Wheels carry it without a version in its name; two in a process are one too many.
pub const HIP: Names = Names {
    loaded: &[c"libamdhip64.so.7", c"libamdhip64.so.6", c"libamdhip64.so.5", c"libamdhip64.so"],
    opened: &[c"libamdhip64.so.7", c"libamdhip64.so.6", c"libamdhip64.so.5"],
    missing: "AMD's HIP library is not found: libamdhip64.so.7, .6 or .5",
};
/// AMD's compiler at run time, where it is not in [`HIP`].
pub const HIPRTC: Names = Names {
    loaded: &[c"libhiprtc.so.7", c"libhiprtc.so.6", c"libhiprtc.so.5", c"libhiprtc.so"],
    opened: &[c"libhiprtc.so.7", c"libhiprtc.so.6", c"libhiprtc.so.5"],
    missing: "AMD's hiprtc library is not found: libhiprtc.so.7, .6 or .5",
};

/// Processors that the calling thread, and so the threads it creates, may run on; where the system
/// does not report them, those that are online.
pub fn processors() -> usize {
    let allowed = affinity();
    if allowed > 0 {
        return allowed;
    }
    // SAFETY: sysconf has no precondition.
    unsafe { libc::sysconf(libc::_SC_NPROCESSORS_ONLN) }.max(1) as usize
}

/// Bytes of a core's second-level cache, its ways, and bytes of the last level; 0 of what the
/// system does not tell.
#[cfg(not(target_arch = "x86_64"))]
pub fn caches() -> [usize; 3] {
    // `_SC_LEVEL2_CACHE_SIZE`, `_SC_LEVEL2_CACHE_ASSOC` and `_SC_LEVEL3_CACHE_SIZE` of glibc.
    let names =
        if cfg!(all(target_os = "linux", target_env = "gnu")) { [191, 192, 194] } else { [-1; 3] };
    // SAFETY: sysconf has no precondition.
    names.map(|name| unsafe { libc::sysconf(name) }.max(0) as usize)
}

/// Processors in the calling thread's affinity mask; 0 if it cannot be had.
#[cfg(any(target_os = "linux", target_os = "android"))]
fn affinity() -> usize {
    // Room for 8,192: as many as Linux can be built for. `cpu_set_t` has room for 1,024.
    let mut mask = [0u64; 128];
    // SAFETY: the system writes no more than the size given.
    unsafe { libc::sched_getaffinity(0, size_of_val(&mask), mask.as_mut_ptr().cast()) };
    mask.iter().map(|word| word.count_ones() as usize).sum()
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
fn affinity() -> usize {
    0
}

#[cfg(not(any(target_os = "android", miri)))]
unsafe extern "C" {
    // The libc crate does not have them for Linux.
    fn pthread_setcancelstate(state: c_int, former: *mut c_int) -> c_int;
    fn pthread_testcancel();
}

/// Ends the calling thread here, if it was cancelled: the caller holds nothing.
pub fn cancellation_point() {
    #[cfg(not(any(target_os = "android", miri)))]
    // SAFETY: no precondition.
    unsafe {
        pthread_testcancel();
    }
}

/// Whether the calling thread could be cancelled.
#[cfg(not(any(target_os = "android", miri)))] // which has no pthread_cancel
pub(super) struct Cancellation(c_int);

#[cfg(not(any(target_os = "android", miri)))]
impl Cancellation {
    /// From now on pthread_cancel waits: whoever joins threads would leave at that point, and they
    /// would go on with what lies on its stack.
    pub(super) fn hold() -> Cancellation {
        const DISABLE: c_int = if cfg!(target_vendor = "apple") { 0 } else { 1 };
        let mut former = DISABLE;
        // SAFETY: a state that exists, and a variable.
        unsafe { pthread_setcancelstate(DISABLE, &raw mut former) };
        Cancellation(former)
    }

    /// As it was.
    pub(super) fn release(self) {
        let mut held = self.0;
        // SAFETY: the state that was told, and a variable.
        unsafe { pthread_setcancelstate(self.0, &raw mut held) };
    }
}

#[cfg(any(target_os = "android", miri))]
pub(super) struct Cancellation;

#[cfg(any(target_os = "android", miri))]
impl Cancellation {
    pub(super) fn hold() -> Cancellation {
        Cancellation
    }
    pub(super) fn release(self) {}
}

/// What [`thread_start`] needs.
pub(super) type ThreadMaker = *const libc::pthread_attr_t;

/// A thread that was started.
pub(super) type Thread = libc::pthread_t;

/// Signals that an instruction raises, on the thread that runs it. Blocked, they end the process:
/// so the host's handler gets them (which repairs the fault, or tells of the crash).
const OF_INSTRUCTIONS: [c_int; 6] =
    [libc::SIGSEGV, libc::SIGBUS, libc::SIGFPE, libc::SIGILL, libc::SIGTRAP, libc::SIGSYS];

/// Calls `make` with the attributes of a worker, and with all other signals blocked: workers
/// inherit that, so that what the host does on a signal never interrupts them.
pub(super) fn with_thread_maker(make: impl FnOnce(ThreadMaker)) {
    let mut attributes = MaybeUninit::<libc::pthread_attr_t>::uninit();
    let (mut blocked, mut former) = (MaybeUninit::uninit(), MaybeUninit::uninit());
    // SAFETY: each object is initialised by the call that comes first; a failure leaves the
    // default attributes, or the mask as it was.
    unsafe {
        let set = libc::pthread_attr_init(attributes.as_mut_ptr()) == 0;
        let attributes = attributes.as_mut_ptr();
        if set {
            libc::pthread_attr_setstacksize(attributes, STACK);
        }
        libc::sigfillset(blocked.as_mut_ptr());
        for signal in OF_INSTRUCTIONS {
            libc::sigdelset(blocked.as_mut_ptr(), signal);
        }
        let masked =
            libc::pthread_sigmask(libc::SIG_SETMASK, blocked.as_ptr(), former.as_mut_ptr()) == 0;
        make(if set { attributes } else { null() });
        if masked {
            libc::pthread_sigmask(libc::SIG_SETMASK, former.as_ptr(), null_mut());
        }
        if set {
            libc::pthread_attr_destroy(attributes);
        }
    }
}

extern "C" fn work(argument: *mut c_void) -> *mut c_void {
    // SAFETY: a Work is in front of the argument of `thread_start`, and may be called here.
    unsafe { (*argument.cast::<Work>())(argument) };
    null_mut()
}

/// A thread that does the [`Work`] in front of `argument`; `None` when there is none to be had.
///
/// # Safety
/// `maker` is that of [`with_thread_maker`]; the Work may be called with `argument` on any thread.
pub(super) unsafe fn thread_start(maker: ThreadMaker, argument: *mut c_void) -> Option<Thread> {
    let mut made = MaybeUninit::uninit();
    // SAFETY: the attributes are live or NULL; the thread is written on success.
    unsafe {
        (libc::pthread_create(made.as_mut_ptr(), maker, work, argument) == 0)
            .then(|| made.assume_init())
    }
}

/// Waits for the thread's end.
///
/// # Safety
/// `thread` came from [`thread_start`] and was not joined yet.
pub(super) unsafe fn thread_join(thread: Thread) {
    // SAFETY: `thread` was made by pthread_create, and is neither joined nor detached yet.
    unsafe { libc::pthread_join(thread, null_mut()) };
}
