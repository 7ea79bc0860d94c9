//! Windows: the C run-time of the toolchain for memory, kernel32 for the rest.

use core::cell::UnsafeCell;
use core::ffi::{CStr, c_char, c_void};
use core::ptr::{NonNull, null_mut};
use core::sync::atomic::{AtomicBool, Ordering::Relaxed};

use super::names::Names;
use super::workers::{STACK, Work};

/// A kernel object; NULL where there is none.
type Handle = *mut c_void;
type ThreadStart = unsafe extern "system" fn(*mut c_void) -> u32;

const FROM_ADDRESS: u32 = 4; // GET_MODULE_HANDLE_EX_FLAG_FROM_ADDRESS
const PIN: u32 = 1; // GET_MODULE_HANDLE_EX_FLAG_PIN
const SAFE_FOLDERS: u32 = 0x1000; // LOAD_LIBRARY_SEARCH_DEFAULT_DIRS
const INFINITE: u32 = u32::MAX;
const ALL_GROUPS: u16 = u16::MAX;
const RESERVE_ONLY: u32 = 0x0001_0000; // STACK_SIZE_PARAM_IS_A_RESERVATION

#[link(name = "kernel32")]
unsafe extern "system" {
    fn CreateThread(
        attributes: *const c_void,
        stack_nbytes: usize,
        start: ThreadStart,
        argument: *mut c_void,
        flags: u32,
        id: *mut u32,
    ) -> Handle;
    fn WaitForSingleObject(handle: Handle, milliseconds: u32) -> u32;
    fn CloseHandle(handle: Handle) -> i32;
    fn GetCurrentProcess() -> Handle;
    fn GetProcessAffinityMask(process: Handle, own: *mut usize, system: *mut usize) -> i32;
    fn GetActiveProcessorCount(group: u16) -> u32;
    fn K32EnumProcessModules(
        process: Handle,
        modules: *mut Handle,
        nbytes: u32,
        needed: *mut u32,
    ) -> i32;
    fn GetProcAddress(module: Handle, name: *const c_char) -> *mut c_void;
    fn LoadLibraryExA(name: *const c_char, reserved: Handle, flags: u32) -> Handle;
    fn GetCurrentProcessId() -> u32;
    fn AcquireSRWLockExclusive(lock: *mut Handle);
    fn ReleaseSRWLockExclusive(lock: *mut Handle);
    fn TryAcquireSRWLockExclusive(lock: *mut Handle) -> u8;
    fn SleepConditionVariableSRW(
        condition: *mut Handle,
        lock: *mut Handle,
        milliseconds: u32,
        flags: u32,
    ) -> i32;
    fn WakeConditionVariable(condition: *mut Handle);
    fn QueryPerformanceCounter(count: *mut u64) -> i32;
    fn QueryPerformanceFrequency(per_second: *mut u64) -> i32;
    fn GetModuleHandleExA(flags: u32, name: *const c_char, module: *mut Handle) -> i32;
}

/// Memory from `malloc`, aligned for any C object; `None` when there is none. Whoever asks for it
/// will hand out pointers to our functions with it, deleters first of all: so the library stays.
pub fn memory(nbytes: usize) -> Option<NonNull<u8>> {
    stay_loaded();
    // SAFETY: malloc takes any size; `max(1)` keeps the answer for 0 bytes from being NULL.
    NonNull::new(unsafe { libc::malloc(nbytes.max(1)) }.cast())
}

/// Windows gives huge pages only to who may lock memory.
pub fn in_huge_pages(_: *mut c_void, _: usize) {}

/// Gives memory back.
///
/// # Safety
/// `memory` came from [`memory`] and is not used again.
pub unsafe fn give_back(memory: NonNull<u8>) {
    // SAFETY: `memory` is from malloc, and was not freed yet.
    unsafe { libc::free(memory.as_ptr().cast()) }
}

/// A lock.
pub struct Lock(UnsafeCell<Handle>);

// SAFETY: it is made for threads to share.
unsafe impl Sync for Lock {}

/// A guard: the lock is held while it exists.
pub struct Held<'a>(&'a Lock);

impl Lock {
    /// Nobody's.
    pub const fn new() -> Lock {
        Lock(UnsafeCell::new(null_mut())) // SRWLOCK_INIT
    }

    /// Waits until it is this thread's, which does not hold it yet.
    pub fn lock(&self) -> Held<'_> {
        // SAFETY: an initialised lock.
        unsafe { AcquireSRWLockExclusive(self.0.get()) };
        Held(self)
    }

    /// This thread's from now on, unless it is somebody's.
    pub fn try_lock(&self) -> Option<Held<'_>> {
        // SAFETY: an initialised lock.
        (unsafe { TryAcquireSRWLockExclusive(self.0.get()) } != 0).then(|| Held(self))
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        // SAFETY: this thread locked it.
        unsafe { ReleaseSRWLockExclusive(self.0.0.get()) };
    }
}

/// What threads that hold a lock wait for.
pub(super) struct Condition(UnsafeCell<Handle>);

// SAFETY: it is made for threads to share.
unsafe impl Sync for Condition {}

impl Condition {
    /// Nobody waits.
    pub(super) const fn new() -> Condition {
        Condition(UnsafeCell::new(null_mut())) // CONDITION_VARIABLE_INIT
    }

    /// Waits until it is woken, or for no reason; meanwhile the lock is not held.
    pub(super) fn wait<'a>(&self, held: Held<'a>) -> Held<'a> {
        // SAFETY: an initialised condition, and a lock that this thread holds.
        unsafe { SleepConditionVariableSRW(self.0.get(), held.0.0.get(), INFINITE, 0) };
        held
    }

    /// Wakes one that waits.
    pub(super) fn wake_one(&self) {
        // SAFETY: an initialised condition.
        unsafe { WakeConditionVariable(self.0.get()) };
    }
}

/// Lets the other threads of the core go first, for some nanoseconds.
pub(super) use core::hint::spin_loop as pause;

/// Time, from some moment on.
pub(super) fn microseconds() -> u64 {
    let (mut now, mut per_second) = (0u64, 0u64);
    // SAFETY: two variables.
    unsafe {
        QueryPerformanceCounter(&raw mut now);
        QueryPerformanceFrequency(&raw mut per_second);
    }
    now / (per_second / 1_000_000).max(1)
}

/// From now on FreeLibrary leaves the module where it is, as `-z nodelete` does on Linux. Not
/// before: a host that only asks for the version gets its memory back. One load once it is done.
fn stay_loaded() {
    static STAYS: AtomicBool = AtomicBool::new(false);
    if !STAYS.load(Relaxed) {
        // Done twice by two threads it is as well; after a failure the next call tries again.
        STAYS.store(pin(), Relaxed);
    }
}

#[cold]
fn pin() -> bool {
    let inside: *const () = pin as *const ();
    // SAFETY: an address in this module.
    unsafe { keep(FROM_ADDRESS, inside.cast()) }.is_some()
}

/// A loaded module, which from now on stays.
///
/// # Safety
/// `name` ends with NUL or is, with `FROM_ADDRESS`, any address in the module.
unsafe fn keep(flags: u32, name: *const c_char) -> Option<Library> {
    let mut module: Handle = null_mut();
    // SAFETY: `name` ends with NUL, or is an address with FROM_ADDRESS; `module` is a variable.
    let found = unsafe { GetModuleHandleExA(flags | PIN, name, &raw mut module) != 0 };
    found.then_some(Library(module))
}

/// Where [`symbol`] looks: one module.
#[derive(Clone, Copy)]
pub struct Library(pub(super) Handle);

/// The first loaded module that exports a symbol, which then stands for its neighbours. Python's
/// is called python3.dll, python39.dll, python314t.dll, libpython3.12.dll ...: so all are asked.
///
/// # Safety
/// `name` ends with NUL.
pub unsafe fn library_with(name: *const c_char) -> Option<Library> {
    const MODULES_MOST: usize = 1024;
    let mut modules: [Handle; MODULES_MOST] = [null_mut(); MODULES_MOST];
    let mut needed = 0u32;
    let nbytes = size_of_val(&modules) as u32;
    // SAFETY: room for `nbytes` bytes, and a variable.
    let known = unsafe {
        let process = GetCurrentProcess();
        K32EnumProcessModules(process, modules.as_mut_ptr(), nbytes, &raw mut needed)
    };
    if known == 0 {
        return None;
    }
    let loaded = modules.into_iter().take(needed as usize / size_of::<Handle>());
    // SAFETY: `name` ends with NUL; the module was loaded when it was listed.
    let mut found = loaded.map(|module| unsafe { symbol(Library(module), name) });
    let address = found.find(|address| !address.is_null())?;
    // SAFETY: an address in a module.
    unsafe { keep(FROM_ADDRESS, address.cast()) }
}

/// Loads a library, for good. A bare name is looked for where the system and the program keep
/// theirs, and not, as by `LoadLibrary`, in the current folder, where anybody may have put one.
///
/// # Safety
/// `name` ends with NUL; what the library does when it is loaded is harmless.
pub unsafe fn library_open(name: *const c_char) -> Option<Library> {
    // SAFETY: `name` ends with NUL.
    let bare = unsafe { CStr::from_ptr(name) }.to_bytes().iter().all(|&c| !b"/\\:".contains(&c));
    // SAFETY: `name` ends with NUL; what the library does when it is loaded is harmless.
    let library = unsafe { LoadLibraryExA(name, null_mut(), if bare { SAFE_FOLDERS } else { 0 }) };
    (!library.is_null()).then_some(Library(library))
}

/// A library, if the process has loaded it already.
///
/// # Safety
/// `name` ends with NUL.
pub unsafe fn library_loaded(name: *const c_char) -> Option<Library> {
    // SAFETY: `name` ends with NUL, and no flag says that it is an address.
    unsafe { keep(0, name) }
}

/// The number of the calling process.
pub fn process_id() -> i32 {
    // SAFETY: no precondition.
    unsafe { GetCurrentProcessId() as i32 }
}

/// NVIDIA's driver.
pub const CUDA: Names = Names {
    loaded: &[],
    opened: &[c"nvcuda.dll"],
    missing: "the NVIDIA driver's library is not found: nvcuda.dll",
};
/// AMD's runtime; two in a process are one too many.
pub const HIP: Names = Names {
    loaded: &[c"amdhip64_7.dll", c"amdhip64_6.dll", c"amdhip64.dll"],
    opened: &[c"amdhip64_7.dll", c"amdhip64_6.dll", c"amdhip64.dll"],
    missing: "AMD's HIP library is not found: amdhip64_7.dll, amdhip64_6.dll or amdhip64.dll",
};
/// AMD's compiler at run time, where it is not in [`HIP`].
pub const HIPRTC: Names = Names {
    loaded: &[],
    opened: &[c"hiprtc0700.dll", c"hiprtc0600.dll", c"hiprtc0507.dll"],
    missing: "AMD's hiprtc library is not found: hiprtc0700.dll, hiprtc0600.dll or hiprtc0507.dll",
};

/// The address of a symbol, NULL when there is none.
///
/// # Safety
/// `name` ends with NUL.
pub unsafe fn symbol(module: Library, name: *const c_char) -> *mut c_void {
    // SAFETY: a module's handle; `name` ends with NUL.
    unsafe { GetProcAddress(module.0, name) }
}

/// Processors that this process may run on.
pub fn processors() -> usize {
    let (mut own, mut system) = (0usize, 0usize);
    // SAFETY: two variables; the pseudo handle of the process needs no closing.
    unsafe {
        let known = GetProcessAffinityMask(GetCurrentProcess(), &raw mut own, &raw mut system) != 0;
        // 0: the process has threads in several processor groups.
        match own.count_ones() {
            0 => GetActiveProcessorCount(ALL_GROUPS).max(1) as usize,
            n if known => n as usize,
            _ => 1,
        }
    }
}

/// Sizes of caches: not told.
#[cfg(not(target_arch = "x86_64"))]
pub fn caches() -> [usize; 3] {
    [0; 3]
}

/// Threads are not cancelled here.
pub fn cancellation_point() {}

/// The same.
pub(super) struct Cancellation;

impl Cancellation {
    pub(super) fn hold() -> Cancellation {
        Cancellation
    }
    pub(super) fn release(self) {}
}

/// What [`thread_start`] needs: nothing here.
pub(super) type ThreadMaker = ();

/// A thread that was started.
pub(super) type Thread = Handle;

/// Calls `make`.
pub(super) fn with_thread_maker(make: impl FnOnce(ThreadMaker)) {
    make(());
}

unsafe extern "system" fn work(argument: *mut c_void) -> u32 {
    // SAFETY: a Work is in front of the argument of `thread_start`, and may be called here.
    unsafe { (*argument.cast::<Work>())(argument) };
    0
}

/// A thread that does the [`Work`] in front of `argument`; `None` when there is none to be had.
///
/// # Safety
/// The Work may be called with `argument` on any thread.
pub(super) unsafe fn thread_start(_: ThreadMaker, argument: *mut c_void) -> Option<Thread> {
    // SAFETY: `work` uses nothing of the C run-time that a thread must be registered for.
    let made = unsafe { CreateThread(null_mut(), STACK, work, argument, RESERVE_ONLY, null_mut()) };
    (!made.is_null()).then_some(made)
}

/// Waits for the thread's end.
///
/// # Safety
/// `thread` came from [`thread_start`] and was not joined yet.
pub(super) unsafe fn thread_join(thread: Thread) {
    // SAFETY: an open handle, closed once. The wait can only fail for a handle that is none.
    unsafe {
        WaitForSingleObject(thread, INFINITE);
        CloseHandle(thread);
    }
}
