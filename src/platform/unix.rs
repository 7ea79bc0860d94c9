//! POSIX.

use core::ffi::{c_char, c_void};
use core::mem::MaybeUninit;
use core::ptr::{NonNull, null, null_mut};

use super::workers::{Queue, STACK};

/// Memory from `malloc`, aligned for any C object; `None` when there is none.
#[inline]
pub fn memory(nbytes: usize) -> Option<NonNull<u8>> {
    // SAFETY: malloc takes any size; `max(1)` keeps the answer for 0 bytes from being NULL.
    NonNull::new(unsafe { libc::malloc(nbytes.max(1)) }.cast())
}

/// Gives memory back.
///
/// # Safety
/// `memory` came from [`memory`] and is not used again.
#[inline]
pub unsafe fn give_back(memory: NonNull<u8>) {
    // SAFETY: the caller's word.
    unsafe { libc::free(memory.as_ptr().cast()) }
}

/// Where [`symbol`] looks: here in everything that the process has loaded for all to see.
#[derive(Clone, Copy)]
pub struct Library(());

/// Where the process has a symbol, which then stands for its neighbours.
///
/// # Safety
/// `name` ends with NUL.
pub unsafe fn library_with(name: *const c_char) -> Option<Library> {
    // SAFETY: the caller's word.
    (!unsafe { symbol(Library(()), name) }.is_null()).then_some(Library(()))
}

/// The address of a symbol, NULL when there is none.
///
/// # Safety
/// `name` ends with NUL.
pub unsafe fn symbol(_: Library, name: *const c_char) -> *mut c_void {
    // SAFETY: the caller's word.
    unsafe { libc::dlsym(libc::RTLD_DEFAULT, name) }
}

/// Processors that are on line.
pub fn processors() -> usize {
    // SAFETY: sysconf has no precondition.
    unsafe { libc::sysconf(libc::_SC_NPROCESSORS_ONLN) }.max(1) as usize
}

/// What [`thread_start`] needs.
pub(super) type ThreadMaker = *const libc::pthread_attr_t;

/// Calls `make` with the attributes of a worker, and with every signal blocked: workers inherit
/// that, so that the host's handlers never run on their small stacks.
pub(super) fn with_thread_maker(make: impl FnOnce(ThreadMaker)) {
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

extern "C" fn work(queue: *mut c_void) -> *mut c_void {
    // SAFETY: `thread_start`'s caller vouches for its argument.
    unsafe { Queue::work(queue) };
    null_mut()
}

/// A thread that works on a queue; `None` when there is none to be had.
///
/// # Safety
/// `maker` is that of [`with_thread_maker`], `queue` as [`Queue::work`] wants it.
pub(super) unsafe fn thread_start(
    maker: ThreadMaker,
    queue: *mut c_void,
) -> Option<libc::pthread_t> {
    let mut made = MaybeUninit::uninit();
    // SAFETY: the attributes are live or NULL; the thread is written on success.
    unsafe {
        (libc::pthread_create(made.as_mut_ptr(), maker, work, queue) == 0)
            .then(|| made.assume_init())
    }
}

/// Waits for the thread's end.
///
/// # Safety
/// `thread` came from [`thread_start`] and was not joined yet.
pub(super) unsafe fn thread_join(thread: libc::pthread_t) {
    // SAFETY: the caller's word.
    unsafe { libc::pthread_join(thread, null_mut()) };
}
