//! Chooses how a copy is executed.

use core::ffi::c_void;

use super::codes::{INVALID_DEVICE, INVALID_VALUE};
use super::context::Current;
use super::driver::Driver;
use super::gpu::Gpu;
use super::peers::towards;
use super::place::{Far, Place};
use super::runs::Runs;
use super::structs::Copy3dPeer;
use super::vendor::{Memory, Pitched, Ptr, Vendor};
use super::{cuda, rocm};
use crate::abi::{DLDevice, DLDeviceType::kDLCPU, DeviceCode};
use crate::error::{Error, Result, Status::*};
use crate::plan::{Item, Plan};
use dlpack_device::backend::{Lack, Side, Stream, Transfer, unsupported};

/// The largest pitch that the drivers guarantee to accept.
const PITCH_MOST: i64 = i32::MAX as i64;
/// Bytes of a row from which the driver's 2D copy is used, with a host side.
const ROWS_HOST: usize = 64;
/// Bytes of a row from which the driver's 2D copy is used, without a host side.
const ROWS_DEVICE: usize = 256;
/// Bytes from which contiguous copies and rows of pageable memory are staged in pinned memory.
const STAGED_FROM: usize = 8 << 20;

impl Driver {
    /// Enqueues a copy of contiguous bytes.
    ///
    /// # Safety
    /// Both sides stay allocated until the stream has completed the work.
    unsafe fn dense(&self, dst: *mut u8, src: *const u8, n: usize, stream: Ptr) -> Result<()> {
        let (dst, src): (Ptr, *const c_void) = (dst.cast(), src.cast());
        // SAFETY: `n` bytes at `src` and at `dst` stay allocated until the stream has completed the
        // copy.
        unsafe {
            match self.vendor() {
                Vendor::Cuda => self.cu_copy(dst, src, n, stream),
                Vendor::Rocm => self.hip_copy(dst, src, n, rocm::BY_ADDRESS, stream),
            }
        }
    }

    /// Enqueues a copy of contiguous bytes from one device to another. The drivers' other copies,
    /// which infer devices from addresses, reject pool memory and manually mapped memory.
    ///
    /// # Safety
    /// As [`Driver::dense`].
    pub(super) unsafe fn peer(&self, plan: &Plan, far: Far, place: &Place) -> Result<()> {
        let (Item::Bytes(n), 0) = (plan.item, plan.ndim()) else {
            return unsupported(Lack::COPIES);
        };
        let (dst, src): (Ptr, *const c_void) = (plan.dst.cast(), plan.src.cast());
        let stream = place.stream;
        // SAFETY: `n` bytes at `src` and at `dst` stay allocated until the stream has completed the
        // copy; `far.ends` names the devices of both.
        let done = unsafe {
            match self.vendor() {
                Vendor::Cuda => {
                    let (from, to) =
                        far.ends(place.here.context, cuda::primary(self, far.ordinal)?);
                    self.cu_copy_peer(dst, to, src, from, n, stream)
                }
                Vendor::Rocm => {
                    let (from, to) = far.ends(place.here.ordinal, far.ordinal);
                    self.hip_copy_peer(dst, to, src, from, n, stream)
                }
            }
        };
        done.map_err(without_peers)
    }

    /// Enqueues a copy of rows from one device to another.
    ///
    /// # Safety
    /// As [`Driver::dense`].
    unsafe fn peer_rows(&self, copy: &Pitched, far: Far, place: &Place) -> Result<()> {
        // SAFETY: the rows of both sides stay allocated until the stream has completed the copy;
        // `far.ends` names the contexts of both.
        unsafe {
            if self.vendor() == Vendor::Rocm {
                return self.pitched(copy, place.stream);
            }
            let (from, to) = far.ends(place.here.context, cuda::primary(self, far.ordinal)?);
            self.cu_copy_3d_peer(&Copy3dPeer::new(copy, from, to), place.stream)
        }
    }

    /// Enqueues a copy of rows.
    ///
    /// # Safety
    /// As [`Driver::dense`].
    unsafe fn pitched(&self, copy: &Pitched, stream: Ptr) -> Result<()> {
        let Pitched { src, src_pitch, dst, dst_pitch, width, height } = *copy;
        let kind = rocm::BY_ADDRESS;
        // SAFETY: the rows of both sides stay allocated until the stream has completed the copy.
        unsafe {
            match self.vendor() {
                Vendor::Cuda => self.cu_copy_2d(&copy.into(), stream),
                Vendor::Rocm => self.hip_copy_2d(
                    dst.cast(),
                    dst_pitch,
                    src.cast(),
                    src_pitch,
                    width,
                    height,
                    kind,
                    stream,
                ),
            }
        }
    }
}

/// The plan as rows, if possible.
fn rows(plan: &Plan) -> Option<Pitched> {
    let Item::Bytes(width) = plan.item else { return None };
    let dim = plan.inner();
    let fits = |stride: i64| (width as i64..=PITCH_MOST).contains(&stride);
    (plan.ndim() == 1 && fits(dim.src) && fits(dim.dst)).then_some(Pitched {
        src: plan.src,
        src_pitch: dim.src as usize,
        dst: plan.dst,
        dst_pitch: dim.dst as usize,
        width,
        height: dim.n as usize,
    })
}

/// How the copying device accesses a side.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Reach {
    /// By its address.
    Direct,
    /// Only by the driver's peer copies, with this device.
    Peer(i32),
    /// Only by the driver's copies, slowly: pageable memory.
    Pageable,
}

/// The source's and the destination's.
type Reaches = (Reach, Reach);

/// Whether another strategy may succeed after this error.
fn another_way(error: &Error) -> bool {
    let refused = error.driver_code() == INVALID_VALUE;
    refused
        || matches!(error.status(), DLRS_UNSUPPORTED | DLRS_PEER | DLRS_LAUNCH | DLRS_DRV_SYMBOL)
}

/// Copies between two devices that the driver rejects go through the host.
fn without_peers(error: Error) -> Error {
    let refused = another_way(&error) || error.driver_code() == INVALID_DEVICE;
    if refused { Error::new(DLRS_UNSUPPORTED).driver(error.driver_code()) } else { error }
}

impl Driver {
    /// Enqueues a copy that is contiguous or whose sides the device accesses by address.
    ///
    /// # Safety
    /// As [`Driver::dense`]; the plan is simplified.
    pub(super) unsafe fn on_device(&self, plan: &Plan, place: &Place) -> Result<()> {
        // SAFETY: both sides of the plan stay allocated until the stream has completed the work, in
        // all branches; the plan is simplified.
        unsafe {
            if let (Item::Bytes(nbytes), 0) = (plan.item, plan.ndim()) {
                return self.dense(plan.dst, plan.src, nbytes, place.stream);
            }
            let rows = rows(plan);
            let wide = if place.host { ROWS_HOST } else { ROWS_DEVICE };
            if let Some(copy) = rows.as_ref().filter(|copy| copy.width >= wide) {
                match self.pitched(copy, place.stream) {
                    Err(error) if another_way(&error) => {}
                    done => return done,
                }
            }
            match self.kernel(plan, place) {
                Err(error) if another_way(&error) => {}
                done => return done,
            }
            match rows.filter(|copy| copy.width < wide) {
                Some(copy) => self.pitched(&copy, place.stream),
                None => unsupported(Lack::COPIES),
            }
        }
    }
}

impl Gpu {
    /// The strategy of [`Gpu::carry_out`], without calling the driver.
    pub(super) fn way(&self, transfer: &Transfer) -> Result<&'static str> {
        let Transfer { plan, src, dst, .. } = transfer;
        let (mut devices, mut pageable) = (0, false);
        for side in [src.device, dst.device] {
            match self.memory(side.device_type) {
                Some(Memory::Device) => devices += 1,
                Some(_) => {}
                None if side.device_type == kDLCPU as DeviceCode => pageable = true,
                None => return unsupported(Lack::COPIES),
            }
        }
        let peers = devices == 2 && src.device.device_id != dst.device.device_id;
        let dense = plan.ndim() == 0 && matches!(plan.item, Item::Bytes(_));
        let wide = if devices == 2 && !peers { ROWS_DEVICE } else { ROWS_HOST };
        let compact = |writes| towards(plan, writes).is_some();
        let staged = pageable && !peers && plan.nbytes() >= STAGED_FROM as u64;
        match rows(plan).filter(|rows| rows.width >= wide) {
            None if !dense => {}
            _ if staged => return Ok("the driver's copies, through pinned memory"),
            None => return Ok("the driver's copy"),
            Some(_) => return Ok("the driver's copy of rows"),
        }
        let rejected = |side: &Side| {
            let device = self.memory(side.device.device_type) == Some(Memory::Device);
            device && self.0.has_rejected(side.device.device_id, plan)
        };
        if rejected(src) || rejected(dst) {
            return Ok("without kernels, which the driver has rejected");
        }
        match (peers, pageable, plan.item) {
            (true, ..) if compact(true) || compact(false) => {
                Ok("a kernel, and the driver's copy between devices")
            }
            (true, ..) => unsupported(Lack::COPIES),
            (_, false, _) => Ok("a kernel"),
            (_, true, Item::Bytes(_)) => Ok("pinned memory, and a kernel"),
            _ => unsupported(Lack::COPIES),
        }
    }

    /// How the current device accesses a side; an error if the driver reports another kind of
    /// memory.
    fn reach(&self, side: &Side, first: *const u8, here: &Current) -> Result<Reach> {
        let DLDevice { device_type, device_id } = side.device;
        match self.memory(device_type) {
            Some(Memory::Device) => {
                self.0.device(device_id)?;
                self.0.check_address(first.cast(), device_id)?;
                Ok(if device_id == here.ordinal { Reach::Direct } else { Reach::Peer(device_id) })
            }
            Some(_) => Ok(Reach::Direct),
            None if device_type == kDLCPU as DeviceCode => Ok(Reach::Pageable),
            None => unsupported(Lack::COPIES),
        }
    }

    /// Kernels cannot access pinned and managed memory that is unknown to the driver.
    fn reach_by_kernels(&self, side: &Side, first: *const u8, reach: Reach) -> Result<Reach> {
        let device = self.memory(side.device.device_type) == Some(Memory::Device);
        let known = device || reach != Reach::Direct || self.0.known(first.cast())?.is_some();
        Ok(if known { reach } else { Reach::Pageable })
    }

    /// Copies on a stream of the current device, or adds a contiguous copy to `runs`.
    ///
    /// # Safety
    /// As [`dlpack_device::backend::Backend::copy`].
    pub(super) unsafe fn carry_out(
        &self,
        transfer: &Transfer,
        place: &Place,
        runs: Option<&mut Runs>,
    ) -> Result<()> {
        let Transfer { plan, src, dst, .. } = transfer;
        let Place { here, stream, .. } = *place;
        let reach = (self.reach(src, plan.src, here)?, self.reach(dst, plan.dst, here)?);
        let far = match reach {
            (Reach::Peer(ordinal), Reach::Direct) => Some(Far { ordinal, writes: false }),
            (Reach::Direct, Reach::Peer(ordinal)) => Some(Far { ordinal, writes: true }),
            (Reach::Peer(_), _) | (_, Reach::Peer(_)) => return unsupported(Lack::COPIES),
            _ => None,
        };
        let near = if far.is_some_and(|far| far.writes) { src } else { dst };
        if far.is_some() && self.memory(near.device.device_type) != Some(Memory::Device) {
            // The device of the other side copies faster.
            return unsupported(Lack::COPIES);
        }
        // SAFETY: both sides stay allocated until the stream has completed the work, in all
        // branches, and share no element; `stream` is of the current device.
        unsafe {
            let (Item::Bytes(nbytes), 0) = (plan.item, plan.ndim()) else {
                return match far {
                    Some(far) => self.strided_peers(plan, far, place),
                    None => self.strided(transfer, reach, place),
                };
            };
            if let Some(far) = far {
                return self.0.peer(plan, far, place);
            }
            // Pageable memory may be used after the call; managed memory needs a location.
            let plain = |side: &Side| {
                let memory = self.memory(side.device.device_type);
                matches!(memory, Some(Memory::Device | Memory::Pinned))
            };
            if let Some(runs) = runs.filter(|_| plain(src) && plain(dst)) {
                runs.push(plan, nbytes);
                return Ok(());
            }
            if nbytes >= STAGED_FROM && self.gains(plan, reach, stream)? {
                match self.between(transfer, reach, place) {
                    Err(error) if error.status() == DLRS_UNSUPPORTED => {}
                    done => return done,
                }
            }
            let done = self.0.dense(plan.dst, plan.src, nbytes, stream);
            let Err(error) = done else { return done };
            if error.driver_code() != INVALID_VALUE {
                return Err(error);
            }
            // The driver's copies reject host memory that was registered in pieces or in part.
            let host = |side: &Side, reach| match self.memory(side.device.device_type) {
                Some(Memory::Device) => reach,
                _ => Reach::Pageable,
            };
            let reach = (host(src, reach.0), host(dst, reach.1));
            match self.between(transfer, reach, place) {
                Err(other) if other.status() == DLRS_UNSUPPORTED => Err(error),
                done => done,
            }
        }
    }

    /// Copies between two devices, not contiguous.
    ///
    /// # Safety
    /// As [`Gpu::carry_out`].
    unsafe fn strided_peers(&self, plan: &Plan, far: Far, place: &Place) -> Result<()> {
        // SAFETY: both sides stay allocated until the stream has completed the work; one is on the
        // device `far`, the other on the current one.
        unsafe {
            if let Some(copy) = rows(plan).filter(|copy| copy.width >= ROWS_HOST) {
                match self.0.peer_rows(&copy, far, place).map_err(without_peers) {
                    Err(error) if error.status() == DLRS_UNSUPPORTED => {}
                    done => return done,
                }
            }
            self.0.across(plan, far, place)
        }
    }

    /// Whether a contiguous copy, or one of rows, is faster through pinned memory: with pageable
    /// memory it is synchronous anyway. Memory known to the driver was registered.
    fn gains(&self, plan: &Plan, reach: Reaches, stream: Stream) -> Result<bool> {
        let host = match reach {
            (Reach::Pageable, Reach::Direct) => plan.src,
            (Reach::Direct, Reach::Pageable) => plan.dst.cast_const(),
            _ => return Ok(false),
        };
        Ok(self.0.known(host.cast())?.is_none() && !self.0.capturing(stream)?)
    }

    /// # Safety
    /// As [`Gpu::carry_out`].
    unsafe fn strided(&self, transfer: &Transfer, reach: Reaches, place: &Place) -> Result<()> {
        let Transfer { plan, src, dst, .. } = transfer;
        let src = self.reach_by_kernels(src, plan.src, reach.0)?;
        let dst = self.reach_by_kernels(dst, plan.dst, reach.1)?;
        // SAFETY: both sides stay allocated until the stream has completed the work, and share no
        // element.
        unsafe {
            if (src, dst) == (Reach::Direct, Reach::Direct) {
                let device =
                    |side: &Side| self.memory(side.device.device_type) == Some(Memory::Device);
                let host = !(device(&transfer.src) && device(&transfer.dst));
                return self.0.on_device(plan, &Place { host, ..*place });
            }
            let large = plan.nbytes() >= STAGED_FROM as u64;
            let staged = large && self.gains(plan, (src, dst), place.stream)?;
            let wide = |copy: &Pitched| copy.width >= ROWS_HOST && !staged;
            if let Some(copy) = rows(plan).filter(wide) {
                match self.0.pitched(&copy, place.stream) {
                    Err(error) if another_way(&error) => {}
                    done => return done,
                }
            }
            self.between(transfer, (src, dst), place)
        }
    }

    /// Copies between the device and pageable memory.
    ///
    /// # Safety
    /// As [`Gpu::carry_out`].
    unsafe fn between(&self, transfer: &Transfer, reach: Reaches, place: &Place) -> Result<()> {
        let Transfer { plan, parallel, .. } = transfer;
        if !matches!(plan.item, Item::Bytes(_)) {
            return unsupported(Lack::COPIES);
        }
        let up = match reach {
            (Reach::Pageable, Reach::Direct) => true,
            (Reach::Direct, Reach::Pageable) => false,
            _ => return unsupported(Lack::COPIES),
        };
        self.0.not_capturing(place.stream)?;
        // SAFETY: a simplified plan of bytes; `reach` tells which side is host memory, and the
        // other stays allocated until the stream has completed the work.
        unsafe { self.0.through_host(plan, place, up, parallel) }
    }
}
