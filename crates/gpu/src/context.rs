//! The thread's current context (CUDA) or device (HIP): used where it fits, else changed during a
//! call and always restored.

use core::ptr::null_mut;
use core::sync::atomic::Ordering::*;

use super::cuda;
use super::driver::Driver;
use super::vendor::{Ptr, Vendor};
use crate::error::{Error, Result, Status::*};

/// CU_STREAM_LEGACY and CU_STREAM_PER_THREAD are not handles; they belong to the current context.
const NAMED_STREAMS: usize = 2;
const RELAXED: i32 = 2; // CU_STREAM_CAPTURE_MODE_RELAXED, hipStreamCaptureModeRelaxed
const NONE_OF_ITS: &str = "the driver names a device that is none of its devices";
const NOT_SUPPORTED: i32 = 801; // CUDA_ERROR_NOT_SUPPORTED, hipErrorNotSupported

/// While it lives, this thread's driver calls use the right device.
pub struct Current<'a> {
    driver: &'a Driver,
    /// The device.
    pub ordinal: i32,
    /// CUDA: the context.
    pub context: Ptr,
    /// CUDA: contexts that were pushed.
    pushed: u32,
    /// HIP: the device that was current, or -1.
    former: i32,
}

impl Current<'_> {
    /// Whether this is the device's primary context, which is retained; HIP has no other.
    pub fn is_primary(&self) -> Result<bool> {
        match self.driver.vendor() {
            Vendor::Cuda => cuda::is_primary(self.driver, self.ordinal, self.context),
            Vendor::Rocm => Ok(true),
        }
    }
}

impl Drop for Current<'_> {
    fn drop(&mut self) {
        // SAFETY: as many as were pushed; a device that was current. An error may come from earlier
        // work; the only remedy is to try again.
        unsafe {
            for _ in 0..self.pushed {
                let mut popped = null_mut();
                let _ = self.driver.cu_pop(&mut popped);
            }
            if self.former >= 0 && self.driver.hip_set_device(self.former).is_err() {
                let _ = self.driver.hip_set_device(self.former);
            }
        }
    }
}

#[cold]
fn foreign() -> Result<()> {
    Err(Error::new(DLRS_STREAM).detail("the stream is another device's"))
}

/// Whether a stream is a handle; the named default streams belong to the current context.
pub fn is_handle(stream: Ptr) -> bool {
    stream.addr() > NAMED_STREAMS
}

/// Whether a stream is the legacy default stream, which has two names: NULL and 1.
pub fn is_legacy(stream: Ptr) -> bool {
    stream.addr() <= 1
}

impl Driver {
    /// What is current is not changed yet.
    fn unchanged(&self, ordinal: i32) -> Current<'_> {
        Current { driver: self, ordinal, context: null_mut(), pushed: 0, former: -1 }
    }

    /// Makes a device current, or any (`None`): the stream's, else the thread's, else the first. A
    /// stream of another device is an error.
    pub fn enter(&self, device: Option<i32>, stream: Ptr) -> Result<Current<'_>> {
        self.ready()?;
        if let Some(ordinal) = device {
            self.device(ordinal)?;
        }
        let mut here = self.unchanged(0);
        match self.vendor() {
            Vendor::Cuda => self.enter_context(&mut here, device, stream)?,
            Vendor::Rocm => self.enter_device(&mut here, device, stream)?,
        }
        Ok(here)
    }

    fn enter_context(&self, here: &mut Current, device: Option<i32>, stream: Ptr) -> Result<()> {
        // SAFETY: valid output pointers; contexts from the driver.
        unsafe {
            self.cu_current(&mut here.context)?;
            if here.context.is_null() {
                let any = || cuda::any_primary(self);
                self.push(here, device.map_or_else(any, |ordinal| cuda::primary(self, ordinal))?)?;
            }
            let mut owner = null_mut();
            if is_handle(stream) {
                match self.cu_stream_context(stream, &mut owner) {
                    Err(error) if error.driver_code() == NOT_SUPPORTED => {}
                    answer => answer?,
                }
                if !owner.is_null() && owner != here.context {
                    let kept = cuda::kept_for(self, owner).is_some();
                    if !kept && self.is_green(stream)? {
                        return self.enter_for_green(here, device, stream);
                    }
                    self.push(here, owner)?;
                }
            }
            if let Some(ordinal) = self.told(here.context, device) {
                here.ordinal = ordinal;
                return Ok(());
            }
            let mut handle = -1;
            self.get_device(&mut handle)?;
            here.ordinal = match device {
                Some(ordinal) => ordinal,
                None => self.of_handle(handle)?,
            };
            if handle == self.handle(here.ordinal)? {
                return self.keep(here);
            }
            if !owner.is_null() {
                return foreign();
            }
            self.push(here, cuda::primary(self, here.ordinal)?)
        }
    }

    /// For a stream of a green context that is not current here. It may be current on another
    /// thread, and on one thread only. Its streams accept work from the primary context.
    fn enter_for_green(&self, here: &mut Current, device: Option<i32>, stream: Ptr) -> Result<()> {
        let mut handle = -1;
        // SAFETY: the caller's stream; a valid output pointer.
        let told = unsafe { self.stream_device(stream, &mut handle) };
        here.ordinal = match (told, device) {
            (Err(error), Some(ordinal)) if error.status() == DLRS_DRV_SYMBOL => ordinal,
            (Err(error), None) if error.status() == DLRS_DRV_SYMBOL && self.count()? == 1 => 0,
            (Err(error), _) => return Err(error),
            (Ok(()), Some(ordinal)) if self.handle(ordinal)? != handle => return foreign(),
            (Ok(()), Some(ordinal)) => ordinal,
            (Ok(()), None) => self.of_handle(handle)?,
        };
        let primary = cuda::primary(self, here.ordinal)?;
        if primary == here.context { Ok(()) } else { self.push(here, primary) }
    }

    /// Whether a stream belongs to a green context; drivers before CUDA 12.4 have none.
    pub(super) fn is_green(&self, stream: Ptr) -> Result<bool> {
        if self.vendor() != Vendor::Cuda || !is_handle(stream) {
            return Ok(false);
        }
        let mut green = null_mut();
        // SAFETY: the caller's stream; a valid output pointer.
        match unsafe { self.cu_stream_green(stream, &mut green) } {
            Err(error) if matches!(error.status(), DLRS_DRV_SYMBOL | DLRS_UNSUPPORTED) => Ok(false),
            answer => answer.map(|()| !green.is_null()),
        }
    }

    /// Makes a device's primary context current.
    pub(super) fn enter_primary(&self, ordinal: i32) -> Result<Current<'_>> {
        let mut here = self.unchanged(ordinal);
        self.push(&mut here, cuda::primary(self, ordinal)?)?;
        Ok(here)
    }

    /// The requested device, or any, if the context is its retained primary one.
    fn told(&self, context: Ptr, device: Option<i32>) -> Option<i32> {
        match device {
            Some(ordinal) => cuda::is_kept(self, ordinal, context).then_some(ordinal),
            None => cuda::kept_for(self, context),
        }
    }

    /// Stores the current context if it is its device's primary one, so that the next call needs no
    /// query. Each other context is queried once.
    fn keep(&self, here: &Current) -> Result<()> {
        let device = self.device(here.ordinal)?;
        let kept = !device.context.load(Acquire).is_null();
        if kept || device.asked.swap(here.context, AcqRel) == here.context {
            return Ok(());
        }
        let _relaxed = self.relaxed();
        match cuda::is_primary(self, here.ordinal, here.context) {
            Err(error) if error.status() == DLRS_DRV_SYMBOL => Ok(()),
            Err(error) => {
                device.asked.store(null_mut(), Release);
                Err(error)
            }
            Ok(_) => Ok(()),
        }
    }

    /// The ordinal of a device of CUDA's.
    fn of_handle(&self, handle: i32) -> Result<i32> {
        for ordinal in 0..self.count()? {
            if self.handle(ordinal)? == handle {
                return Ok(ordinal);
            }
        }
        Err(Error::new(DLRS_INTERNAL).detail(NONE_OF_ITS))
    }

    fn push(&self, here: &mut Current, context: Ptr) -> Result<()> {
        // SAFETY: a context from the driver.
        unsafe { self.cu_push(context)? };
        here.pushed += 1;
        here.context = context;
        Ok(())
    }

    fn enter_device(&self, here: &mut Current, device: Option<i32>, stream: Ptr) -> Result<()> {
        let (mut current, mut owner) = (-1, -1);
        // SAFETY: valid output pointers; a device that exists.
        unsafe {
            self.get_device(&mut current)?;
            if current < 0 {
                return Err(
                    Error::new(DLRS_INTERNAL).detail("the driver reports no current device")
                );
            }
            if is_handle(stream) {
                match self.stream_device(stream, &mut owner) {
                    Err(error) if error.status() == DLRS_DRV_SYMBOL => {
                        if device.is_none() && self.count()? > 1 {
                            owner = self.device_of(here, current, stream)?;
                        }
                    }
                    answer => answer?,
                }
            }
            here.ordinal = device.unwrap_or(if owner >= 0 { owner } else { current });
            if owner >= 0 && owner != here.ordinal {
                return foreign();
            }
            if here.ordinal != current || here.former >= 0 {
                self.hip_set_device(here.ordinal)?;
                here.former = current;
            }
        }
        Ok(())
    }

    /// The device of a stream where the runtime does not tell it: events are recorded on streams of
    /// their own device only. Other devices may become current.
    fn device_of(&self, here: &mut Current, current: i32, stream: Ptr) -> Result<i32> {
        let others = (0..self.count()?).filter(|&ordinal| ordinal != current);
        let mut refused = Error::new(DLRS_STREAM);
        for ordinal in core::iter::once(current).chain(others) {
            // SAFETY: a device that exists, the caller's stream, and the event made here.
            unsafe {
                if ordinal != current {
                    self.hip_set_device(ordinal)?;
                    here.former = current;
                }
                match self.event_at(stream) {
                    Ok(event) => {
                        self.event_destroy(event.as_ptr())?;
                        return Ok(ordinal);
                    }
                    Err(error) if error.status() == DLRS_STREAM => refused = error,
                    Err(error) => return Err(error),
                }
            }
        }
        Err(refused)
    }

    /// Makes the context or device of another thread current on this one.
    pub fn enter_beside(&self, there: &Current) -> Result<Current<'_>> {
        let Current { ordinal, context, .. } = *there;
        let mut here = self.unchanged(ordinal);
        match self.vendor() {
            Vendor::Cuda => self.push(&mut here, context)?,
            Vendor::Rocm => self.enter_device(&mut here, Some(ordinal), null_mut())?,
        }
        Ok(here)
    }

    /// Returns an error for a stream that is being captured, before anything that would break the
    /// capture.
    pub fn not_capturing(&self, stream: Ptr) -> Result<()> {
        match self.capturing(stream)? {
            false => Ok(()),
            true => Err(Error::new(DLRS_CAPTURING)),
        }
    }

    /// Whether a stream is being captured.
    pub fn capturing(&self, stream: Ptr) -> Result<bool> {
        let mut status = 0;
        // SAFETY: a stream of the current context; a valid output pointer.
        unsafe { self.stream_capturing(stream, &mut status)? };
        Ok(status != 0)
    }

    /// From here on this thread's calls break no capture, if the driver supports it.
    pub fn relaxed(&self) -> Relaxed<'_> {
        let mut mode = RELAXED;
        // SAFETY: a valid pointer to the new mode, which receives the previous one.
        let changed = unsafe { self.capture_mode(&mut mode) }.is_ok();
        Relaxed { driver: self, former: changed.then_some(mode) }
    }
}

/// While it lives, allocation and similar calls are permitted during a capture.
pub struct Relaxed<'a> {
    driver: &'a Driver,
    former: Option<i32>,
}

impl Drop for Relaxed<'_> {
    fn drop(&mut self) {
        if let Some(mut mode) = self.former {
            // SAFETY: this thread's previous mode.
            let _ = unsafe { self.driver.capture_mode(&mut mode) };
        }
    }
}
