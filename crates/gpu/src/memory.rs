//! Device, pinned and managed memory; queries of addresses.

use core::ffi::c_void;
use core::ptr::{NonNull, null_mut};
use core::sync::atomic::Ordering::Relaxed;

use super::codes::INVALID_VALUE;
use super::driver::Driver;
use super::vendor::{Memory, Ptr, Vendor};
use super::{cuda, rocm};
use crate::error::{Error, Field::*, Result, Status::*};

/// For allocated and for registered host memory.
pub const PORTABLE: u32 = 1; // CU_MEMHOSTALLOC_PORTABLE, hipHostRegisterPortable
const GLOBAL: u32 = 1; // CU_MEM_ATTACH_GLOBAL, hipMemAttachGlobal
const CONCURRENT_MANAGED: i32 = 89; // CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS
/// Alignment of all memory from a driver.
const ALIGNED_ALWAYS: u64 = 64;

/// Whether a driver or device lacks a function.
fn absent(error: &Error) -> bool {
    matches!(error.status(), DLRS_DRV_SYMBOL | DLRS_UNSUPPORTED)
}

/// The address that the driver returned; an error if NULL or not aligned.
fn answered(data: Ptr) -> Result<NonNull<c_void>> {
    let nothing = Error::new(DLRS_INTERNAL).detail("the driver reports success and no memory");
    let possible = data.addr() as u64 & (ALIGNED_ALWAYS - 1) == 0;
    NonNull::new(data).filter(|_| possible).ok_or(nothing)
}

impl Driver {
    /// Allocates aligned memory in the current context.
    pub fn alloc(
        &self,
        memory: Memory,
        nbytes: usize,
        align_bytes: u64,
        stream: Ptr,
    ) -> Result<NonNull<c_void>> {
        if !stream.is_null() {
            self.not_capturing(stream)?;
        }
        let _relaxed = self.relaxed();
        let mut data = null_mut();
        // SAFETY: a valid output pointer, sizes above 0, a stream of the current context.
        unsafe {
            match memory {
                Memory::Device if stream.is_null() => self.mem_alloc(&mut data, nbytes)?,
                Memory::Device => match self.mem_alloc_async(&mut data, nbytes, stream) {
                    Err(error) if absent(&error) => self.mem_alloc(&mut data, nbytes)?,
                    answer => answer?,
                },
                Memory::Managed => self.managed_alloc(&mut data, nbytes, GLOBAL)?,
                Memory::Pinned => {
                    let answer = self.host_alloc(&mut data, nbytes, PORTABLE);
                    answer.map_err(|error| match error.status() {
                        DLRS_DEV_OOM => Error::new(DLRS_NOMEM).driver(error.driver_code()),
                        _ => error,
                    })?;
                }
            }
        }
        let data = answered(data)?;
        if data.addr().get() as u64 & align_bytes.wrapping_sub(1) == 0 {
            return Ok(data);
        }
        // SAFETY: allocated here, of this kind, for this stream.
        let _ = unsafe { self.free(memory, data, stream) };
        let error = Error::new(DLRS_MISALIGNED).value(align_bytes as i64);
        Err(error.detail("the driver does not allocate with this alignment"))
    }

    /// Frees memory, after the stream's work or all of the device's.
    ///
    /// # Safety
    /// It came from [`Driver::alloc`], on the current device.
    pub unsafe fn free(&self, memory: Memory, data: NonNull<c_void>, stream: Ptr) -> Result<()> {
        let data = data.as_ptr();
        // SAFETY: `data` is of this kind, from `alloc` on the current device, and was not freed
        // yet.
        unsafe {
            if !stream.is_null() {
                self.not_capturing(stream)?;
                if memory == Memory::Device {
                    let _relaxed = self.relaxed();
                    match self.mem_free_async(data, stream) {
                        Err(error) if absent(&error) => {}
                        answer => return answer,
                    }
                }
                let _relaxed = self.relaxed();
                self.stream_sync(stream)?;
            } else if self.vendor() == Vendor::Cuda && cuda::pooled(self, data) {
                self.synchronize()?; // freeing pool memory does not
            }
            let _relaxed = self.relaxed();
            match memory {
                Memory::Pinned => self.host_free(data),
                _ => self.mem_free(data),
            }
        }
    }

    /// Allocates memory of the current device for enqueued work of a stream that is not being
    /// captured; and whether it is from a pool, so that [`Driver::free_scratch`] does not wait for
    /// that work.
    pub fn scratch(&self, nbytes: usize, stream: Ptr) -> Result<(NonNull<c_void>, bool)> {
        let _relaxed = self.relaxed();
        let (mut data, mut pooled) = (null_mut(), true);
        // SAFETY: a valid output pointer, a stream of the current context.
        unsafe {
            match self.mem_alloc_async(&mut data, nbytes, stream) {
                Err(error) if absent(&error) => {
                    pooled = false;
                    self.mem_alloc(&mut data, nbytes)?;
                }
                answer => answer?,
            }
        }
        Ok((answered(data)?, pooled))
    }

    /// Frees scratch memory after the stream's work. Errors are ignored: no recovery is possible.
    ///
    /// # Safety
    /// It came from [`Driver::scratch`] for this stream, in the current context.
    pub unsafe fn free_scratch(
        &self,
        (data, pooled): (NonNull<c_void>, bool),
        stream: Ptr,
    ) -> Result<()> {
        let _relaxed = self.relaxed();
        // SAFETY: `data` came from `scratch` for this stream of the current context, and was not
        // freed yet.
        unsafe {
            if pooled {
                return self.mem_free_async(data.as_ptr(), stream);
            }
            let done = self.stream_sync(stream);
            done.and(self.mem_free(data.as_ptr()))
        }
    }

    /// The kind and the device of memory; `None`: unknown to the driver.
    pub fn known(&self, data: *const c_void) -> Result<Option<(Memory, i32)>> {
        match self.vendor() {
            Vendor::Cuda => cuda::pointer(self, data),
            Vendor::Rocm => rocm::pointer(self, data),
        }
    }

    /// The device that the driver reports for an address; `None`: unknown to it.
    pub fn ordinal(&self, data: *const c_void) -> Result<Option<i32>> {
        match self.vendor() {
            Vendor::Cuda => cuda::ordinal(self, data),
            Vendor::Rocm => Ok(rocm::pointer(self, data)?.map(|(_, ordinal)| ordinal)),
        }
    }

    /// Returns an error for an address that is unknown to the driver or on another device.
    pub fn check_address(&self, data: *const c_void, ordinal: i32) -> Result<()> {
        let found = self.ordinal(data)?;
        let unknown = Error::new(DLRS_BAD_ARG).field(DLRS_FIELD_DATA);
        match found {
            Some(device) if device == ordinal => Ok(()),
            None => Err(unknown.driver(INVALID_VALUE).detail(
                "the driver reports no memory at this address\0\
                         Give memory of the device; is it freed?",
            )),
            Some(device) => match self.known(data)? {
                Some((Memory::Device, _)) => {
                    let error = Error::new(DLRS_DEVICE_ID).field(DLRS_FIELD_DEVICE_ID);
                    let error = error.value(ordinal.into()).limit(device.into());
                    Err(error
                        .detail("the memory is on another device, the limit's\0Name that device."))
                }
                _ => Ok(()), // pinned and managed memory can be used on every device
            },
        }
    }

    /// Whether the CPU may access managed memory while the device works; false if the driver does
    /// not report it.
    pub fn shares_managed(&self, ordinal: i32) -> Result<bool> {
        let known = &self.device(ordinal)?.shares_managed;
        if known.load(Relaxed) == 0 {
            let (mut shares, device) = (0, self.handle(ordinal)?);
            // SAFETY: a valid output pointer.
            if unsafe { self.cu_attribute(&mut shares, CONCURRENT_MANAGED, device) }.is_err() {
                return Ok(false);
            }
            known.store(1 + i32::from(shares != 0), Relaxed);
        }
        Ok(known.load(Relaxed) > 1)
    }
}
