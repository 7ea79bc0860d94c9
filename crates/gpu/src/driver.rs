//! A vendor's driver: its library, loaded on first use, and its functions, each looked up on its
//! first call.
//!
//! Concurrent threads do the same look-ups with the same results, which are stored in atomics. A
//! failure is not stored: the next call tries again. Kernels differ in both, since they take long
//! to compile: one thread loads them while the others wait, and a rejection is stored.

use core::ffi::{CStr, c_char, c_void};
use core::mem::{MaybeUninit, transmute};
use core::ptr::{null_mut, without_provenance_mut};
use core::sync::atomic::{AtomicI32, AtomicPtr, Ordering::*};

use super::codes;
use super::state::Device;
use super::vendor::{Ptr, Vendor};
use crate::error::{Error, Field::*, Result, Status::*};
use crate::platform::{self, Library, Lock, Names};

/// Maximum number of devices of a vendor.
pub const DEVICES_MOST: usize = 64;
/// A vendor's driver.
pub struct Driver {
    whose: Vendor,
    names: Names,
    path: AtomicPtr<c_char>,
    library: AtomicPtr<c_void>,
    kept: &'static Kept,
    /// Locked by the thread that loads kernels.
    pub(super) loading: Lock,
    /// The process in which the driver was started, or 0.
    process: AtomicI32,
    version: AtomicI32,
    count: AtomicI32,
    /// The last reported fault, if no work was done since.
    fault: AtomicI32,
}

/// The zero-initialized part of a driver's statics: it takes no space in the library's file.
pub struct Kept {
    symbols: [AtomicPtr<c_void>; FUNCTIONS],
    devices: [Device; DEVICES_MOST],
}

impl Kept {
    /// The initial state.
    pub const fn new() -> Kept {
        // SAFETY: all of it is atomics, for which zero is a value.
        unsafe { MaybeUninit::zeroed().assume_init() }
    }
}

/// Declares the drivers' functions: a method each, with both vendors' names ("" where one has none)
/// behind the message for their absence.
macro_rules! functions {
    ($($method:ident($($argument:ident: $type:ty),*) = $cuda:literal, $hip:literal;)*) => {
        #[allow(non_camel_case_types)]
        #[derive(Clone, Copy)]
        enum Function { $($method),* }

        const LACKS: &[[&str; 2]] = &[$([
            concat!("the driver lacks ", $cuda, "\0"),
            concat!("the driver lacks ", $hip, "\0"),
        ]),*];
        const FUNCTIONS: usize = LACKS.len();

        /// The functions, as in the vendors' manuals; `Err` for any code but 0.
        ///
        /// # Safety
        /// As in the vendors' manuals. The driver is ready ([`Driver::enter`]).
        #[allow(missing_docs, clippy::missing_safety_doc, clippy::too_many_arguments)]
        impl Driver {
            $(
            #[inline(never)]
            pub unsafe fn $method(&self $(, $argument: $type)*) -> Result<()> {
                let address = self.symbol(Function::$method)?;
                // SAFETY: the vendor's function of that name, of this type, in a ready driver.
                self.check(unsafe {
                    let call: unsafe extern "system" fn($($type),*) -> i32 = transmute(address);
                    call($($argument),*)
                })
            }
            )*
        }
    };
}

functions! {
    init(flags: u32) = "cuInit", "hipInit";
    get_version(out: *mut i32) = "cuDriverGetVersion", "hipRuntimeGetVersion";
    get_count(out: *mut i32) = "cuDeviceGetCount", "hipGetDeviceCount";
    get_device(out: *mut i32) = "cuCtxGetDevice", "hipGetDevice";
    synchronize() = "cuCtxSynchronize", "hipDeviceSynchronize";
    capture_mode(mode: *mut i32)
        = "cuThreadExchangeStreamCaptureMode", "hipThreadExchangeStreamCaptureMode";

    mem_alloc(out: *mut Ptr, nbytes: usize) = "cuMemAlloc_v2", "hipMalloc";
    mem_free(data: Ptr) = "cuMemFree_v2", "hipFree";
    mem_alloc_async(out: *mut Ptr, nbytes: usize, stream: Ptr)
        = "cuMemAllocAsync", "hipMallocAsync";
    mem_free_async(data: Ptr, stream: Ptr) = "cuMemFreeAsync", "hipFreeAsync";
    host_alloc(out: *mut Ptr, nbytes: usize, flags: u32) = "cuMemHostAlloc", "hipHostMalloc";
    host_free(data: Ptr) = "cuMemFreeHost", "hipHostFree";
    managed_alloc(out: *mut Ptr, nbytes: usize, flags: u32)
        = "cuMemAllocManaged", "hipMallocManaged";
    host_register(data: Ptr, nbytes: usize, flags: u32) = "cuMemHostRegister_v2", "hipHostRegister";
    host_unregister(data: Ptr) = "cuMemHostUnregister", "hipHostUnregister";
    address_range(base: *mut Ptr, nbytes: *mut usize, data: Ptr)
        = "cuMemGetAddressRange_v2", "hipMemGetAddressRange";

    stream_create(out: *mut Ptr, flags: u32) = "cuStreamCreate", "hipStreamCreateWithFlags";
    stream_destroy(stream: Ptr) = "cuStreamDestroy_v2", "hipStreamDestroy";
    stream_sync(stream: Ptr) = "cuStreamSynchronize", "hipStreamSynchronize";
    stream_wait(stream: Ptr, event: Ptr, flags: u32) = "cuStreamWaitEvent", "hipStreamWaitEvent";
    stream_device(stream: Ptr, out: *mut i32) = "cuStreamGetDevice", "hipStreamGetDevice";
    stream_capturing(stream: Ptr, out: *mut i32) = "cuStreamIsCapturing", "hipStreamIsCapturing";
    event_create(out: *mut Ptr, flags: u32) = "cuEventCreate", "hipEventCreateWithFlags";
    event_record(event: Ptr, stream: Ptr) = "cuEventRecord", "hipEventRecord";
    event_query(event: Ptr) = "cuEventQuery", "hipEventQuery";
    event_sync(event: Ptr) = "cuEventSynchronize", "hipEventSynchronize";
    event_destroy(event: Ptr) = "cuEventDestroy_v2", "hipEventDestroy";

    module_load(out: *mut Ptr, image: *const c_void) = "cuModuleLoadData", "hipModuleLoadData";
    module_unload(module: Ptr) = "cuModuleUnload", "hipModuleUnload";
    module_function(out: *mut Ptr, module: Ptr, name: *const c_char)
        = "cuModuleGetFunction", "hipModuleGetFunction";
    launch(function: Ptr, grid_x: u32, grid_y: u32, grid_z: u32, block_x: u32, block_y: u32,
        block_z: u32, shared: u32, stream: Ptr, arguments: *mut Ptr, extra: *mut Ptr)
        = "cuLaunchKernel", "hipModuleLaunchKernel";

    cu_device(out: *mut i32, ordinal: i32) = "cuDeviceGet", "";
    cu_attribute(out: *mut i32, attribute: i32, device: i32) = "cuDeviceGetAttribute", "";
    cu_primary_retain(out: *mut Ptr, device: i32) = "cuDevicePrimaryCtxRetain", "";
    cu_primary_release(device: i32) = "cuDevicePrimaryCtxRelease_v2", "";
    cu_primary_state(device: i32, flags: *mut u32, active: *mut i32)
        = "cuDevicePrimaryCtxGetState", "";
    cu_current(out: *mut Ptr) = "cuCtxGetCurrent", "";
    cu_push(context: Ptr) = "cuCtxPushCurrent_v2", "";
    cu_pop(out: *mut Ptr) = "cuCtxPopCurrent_v2", "";
    cu_stream_context(stream: Ptr, out: *mut Ptr) = "cuStreamGetCtx", "";
    cu_pointer(out: Ptr, attribute: i32, data: *const c_void) = "cuPointerGetAttribute", "";
    cu_copy(dst: Ptr, src: *const c_void, nbytes: usize, stream: Ptr) = "cuMemcpyAsync", "";
    cu_copy_batch(dsts: *const Ptr, srcs: *const Ptr, sizes: *const usize, n: usize,
        attributes: *mut super::structs::CopyAttributes, firsts: *const usize, n_attributes: usize,
        failed: *mut usize, stream: Ptr) = "cuMemcpyBatchAsync", "";
    cu_copy_2d(copy: *const super::structs::Copy2d, stream: Ptr) = "cuMemcpy2DAsync_v2", "";
    cu_copy_peer(dst: Ptr, dst_context: Ptr, src: *const c_void, src_context: Ptr, nbytes: usize,
        stream: Ptr) = "cuMemcpyPeerAsync", "";
    cu_copy_3d_peer(copy: *const super::structs::Copy3dPeer, stream: Ptr)
        = "cuMemcpy3DPeerAsync", "";
    cu_stream_green(stream: Ptr, out: *mut Ptr) = "cuStreamGetGreenCtx", "";

    hip_set_device(device: i32) = "", "hipSetDevice";
    hip_last_error() = "", "hipGetLastError";
    hip_properties(out: *mut super::structs::Properties, device: i32)
        = "", "hipGetDevicePropertiesR0600";
    hip_properties_5(out: *mut super::structs::Properties, device: i32)
        = "", "hipGetDeviceProperties";
    hip_pointer(out: *mut super::structs::Attributes, data: *const c_void)
        = "", "hipPointerGetAttributes";
    hip_copy(dst: Ptr, src: *const c_void, nbytes: usize, kind: i32, stream: Ptr)
        = "", "hipMemcpyAsync";
    hip_copy_peer(dst: Ptr, dst_device: i32, src: *const c_void, src_device: i32, nbytes: usize,
        stream: Ptr) = "", "hipMemcpyPeerAsync";
    hip_copy_2d(dst: Ptr, dst_pitch: usize, src: *const c_void, src_pitch: usize, width: usize,
        height: usize, kind: i32, stream: Ptr) = "", "hipMemcpy2DAsync";
}

/// Stored instead of a function's address: the library lacks it.
const ABSENT: usize = 1;
/// Bytes in front of a function's name in [`LACKS`].
const LACKS_FROM: usize = "the driver lacks ".len();

impl Driver {
    /// A driver that was not loaded yet.
    pub const fn new(vendor: Vendor, names: Names, kept: &'static Kept) -> Driver {
        Driver {
            whose: vendor,
            names,
            path: AtomicPtr::new(null_mut()),
            library: AtomicPtr::new(null_mut()),
            kept,
            loading: Lock::new(),
            process: AtomicI32::new(0),
            version: AtomicI32::new(0),
            count: AtomicI32::new(0),
            fault: AtomicI32::new(0),
        }
    }

    /// The vendor. A constant in builds for one vendor, so that the compiler removes the other
    /// one's code.
    #[inline(always)]
    pub fn vendor(&self) -> Vendor {
        match (cfg!(feature = "cuda"), cfg!(feature = "rocm")) {
            (true, false) => Vendor::Cuda,
            (false, true) => Vendor::Rocm,
            _ => self.whose,
        }
    }

    /// Sets the library to load instead of the default names; NULL: the default names. `false`: it
    /// is already loaded.
    ///
    /// # Safety
    /// `path` is NULL or a string that is never freed.
    pub unsafe fn set_path(&self, path: *const c_char) -> bool {
        let early = self.library.load(Acquire).is_null();
        if early {
            self.path.store(path.cast_mut(), Release);
        }
        early
    }

    /// An error unless the driver works and was started in this process.
    pub fn ready(&self) -> Result<()> {
        let here = platform::process_id();
        match self.process.load(Acquire) {
            process if process == here => Ok(()),
            0 => self.start(here),
            _ => Err(Error::new(DLRS_FORKED)),
        }
    }

    #[cold]
    fn start(&self, process: i32) -> Result<()> {
        self.open()?;
        let (mut version, mut count) = (0, -1);
        // SAFETY: the driver's initialization calls, with valid output pointers.
        unsafe {
            self.init(0).map_err(|error| codes::starting(self.vendor(), error))?;
            self.get_version(&mut version)?;
            self.get_count(&mut count).map_err(|error| codes::starting(self.vendor(), error))?;
        }
        let oldest = self.vendor().oldest();
        if version < oldest {
            let error = Error::new(DLRS_DRV_OLD).value(version.into()).limit(oldest.into());
            return Err(error);
        }
        if count < 0 {
            let error = Error::new(DLRS_DRV_INIT).value(count.into());
            return Err(error.detail("the driver reports an impossible number of devices"));
        }
        if count == 0 {
            return Err(Error::new(DLRS_NO_DEVICE));
        }
        self.version.store(version, Relaxed);
        self.count.store(count.min(DEVICES_MOST as i32), Relaxed);
        self.process.store(process, Release);
        Ok(())
    }

    /// Loads the library. The first thread to do so decides which one is used.
    fn open(&self) -> Result<()> {
        if !self.library.load(Acquire).is_null() {
            return Ok(());
        }
        let path = self.path.load(Acquire);
        // SAFETY: NUL-terminated names; drivers are safe to load.
        let (found, missing) = unsafe {
            if path.is_null() {
                (find(&self.names), self.names.missing)
            } else {
                (platform::library_open(path), "the library at the path that was set does not load")
            }
        };
        let library = found.ok_or(Error::new(DLRS_DRV_MISSING).detail(missing))?.as_ptr();
        let _ = self.library.compare_exchange(null_mut(), library, AcqRel, Acquire);
        Ok(())
    }

    /// The library, NULL before [`Driver::ready`].
    pub(super) fn library(&self) -> Library {
        Library::from_ptr(self.library.load(Acquire))
    }

    /// Whether the driver has [`Driver::cu_copy_batch`]: CUDA's from 12.8 on.
    pub(super) fn copies_batches(&self) -> bool {
        self.symbol(Function::cu_copy_batch).is_ok()
    }

    fn symbol(&self, function: Function) -> Result<Ptr> {
        match self.kept.symbols.get(function as usize).map(|place| place.load(Acquire)) {
            Some(address) if address.addr() > ABSENT => Ok(address),
            _ => self.resolve(function),
        }
    }

    #[cold]
    fn resolve(&self, function: Function) -> Result<Ptr> {
        let lacks = LACKS.get(function as usize).map_or("", |[cuda, hip]| match self.vendor() {
            Vendor::Cuda => cuda,
            Vendor::Rocm => hip,
        });
        let words = lacks.get(..lacks.len().wrapping_sub(1)).unwrap_or("");
        let missing = Err(Error::new(DLRS_DRV_SYMBOL).detail(words));
        let Some(place) = self.kept.symbols.get(function as usize) else { return missing };
        if words.len() <= LACKS_FROM || place.load(Acquire).addr() == ABSENT {
            return missing;
        }
        let name = lacks.as_ptr().wrapping_add(LACKS_FROM);
        // SAFETY: NUL-terminated names; the library is never closed.
        let address = unsafe { platform::symbol(self.library(), name.cast()) };
        if address.is_null() {
            place.store(without_provenance_mut(ABSENT), Release);
            return missing;
        }
        place.store(address, Release);
        Ok(address)
    }

    /// Converts a code to a result. A fault that is reported again, without work between, is
    /// persistent.
    fn check(&self, code: i32) -> Result<()> {
        if code == 0 { Ok(()) } else { Err(self.failed(code)) }
    }

    /// Work has been done since the last fault.
    pub fn works(&self) {
        self.fault.store(0, Relaxed);
    }

    /// Clears HIP's last error of the thread, by which programs check their own launches: an error
    /// that is reported or handled here is not theirs. (CUDA's driver stores none.)
    fn forget(&self) {
        let Ok(address) = self.symbol(Function::hip_last_error) else { return };
        // SAFETY: AMD's function of that name.
        unsafe { transmute::<Ptr, unsafe extern "system" fn() -> i32>(address)() };
    }

    #[cold]
    fn failed(&self, code: i32) -> Error {
        if self.vendor() == Vendor::Rocm && code != codes::NOT_READY {
            self.forget();
        }
        let error = codes::error(self.vendor(), code);
        if error.status() == DLRS_ASYNC_FAULT && self.fault.swap(code, Relaxed) == code {
            return Error::new(DLRS_CTX_LOST).driver(code);
        }
        error
    }

    /// Number of devices.
    pub fn count(&self) -> Result<i32> {
        self.ready()?;
        Ok(self.count.load(Relaxed))
    }

    /// The driver's version: CUDA's 11020 is 11.2, HIP's 60123456 is 6.1.
    pub fn version(&self) -> i32 {
        self.version.load(Relaxed)
    }

    /// The state of a device, which must exist.
    pub fn device(&self, ordinal: i32) -> Result<&Device> {
        let count = self.count.load(Relaxed);
        let known = usize::try_from(ordinal).ok().filter(|_| ordinal < count);
        known.and_then(|place| self.kept.devices.get(place)).ok_or_else(|| {
            let error = Error::new(DLRS_DEVICE_ID).field(DLRS_FIELD_DEVICE_ID);
            error.value(ordinal.into()).limit(i64::from(count) - 1)
        })
    }

    /// CUDA's handle of a device.
    pub(super) fn handle(&self, ordinal: i32) -> Result<i32> {
        let device = self.device(ordinal)?;
        let known = device.handle.load(Relaxed);
        if known != 0 {
            return Ok(known - 1);
        }
        let mut handle = 0;
        // SAFETY: a valid output pointer.
        unsafe { self.cu_device(&mut handle, ordinal)? };
        device.handle.store(handle.wrapping_add(1), Relaxed);
        Ok(handle)
    }
}

/// Loads the first library of these names.
///
/// # Safety
/// Loading the libraries has no harmful effects.
pub unsafe fn find(names: &Names) -> Option<Library> {
    let text = |name: &&CStr| name.as_ptr();
    // SAFETY: C strings; loading the libraries has no harmful effects.
    unsafe {
        let loaded = names.loaded.iter().find_map(|name| platform::library_loaded(text(name)));
        loaded.or_else(|| names.opened.iter().find_map(|name| platform::library_open(text(name))))
    }
}
