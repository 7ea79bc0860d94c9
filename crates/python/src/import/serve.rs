//! What a tensor that was taken in lacks: a check, a block of ours, or a copy.

use core::ptr::with_exposed_provenance_mut;

use super::call::{Asked, Wanted, call, lacks, stream_to_name};
use crate::abi::*;
use crate::constants::{self, Constant};
use crate::copy::{CopyPolicy, Options, Streams};
use crate::device_type::{CPU, host_reachable};
use crate::error::{Error, Field::*, Result, Status::*};
use crate::raise::{is, raised};
use crate::stream::{self, Stream};
use crate::tensor::Versioned;
use crate::validate::{Snapshot, check_version, flags_of};
use crate::{Object, Python, capsule, detached, wrap};
use dlpack_tensor::import::{self, Import};

/// # Safety
/// `tensor` is live; on success the result owns the caller's reference.
pub(super) unsafe fn serve(
    python: Python,
    object: Object,
    tensor: Versioned,
    wanted: &Wanted,
) -> Result<Versioned> {
    // SAFETY: `tensor` is a live struct; past the check it is of major 1.
    let flags = unsafe {
        check_version(tensor.as_ptr())?;
        flags_of(tensor.as_ptr())
    };
    let copied = flags & DLPACK_FLAG_BITMASK_IS_COPIED != 0;
    let policy = match wanted.import.policy {
        CopyPolicy::Never if copied => {
            let error = Error::new(DLRS_COPY_NEEDED).field(DLRS_FIELD_FLAGS);
            return Err(error.value(flags as i64).detail("the producer made a copy"));
        }
        CopyPolicy::Always if copied => CopyPolicy::IfNeeded, // it is there already
        policy => policy,
    };
    let asked = &wanted.import;
    let any = asked.order.is_none() && asked.align_bytes <= 1 && !asked.writable;
    // SAFETY: `tensor` is live, and its reference goes to the result.
    unsafe {
        match policy {
            CopyPolicy::IfNeeded if any && asked.device.is_none() => {
                import::as_is(tensor, asked.rules, &asked.limits)
            }
            CopyPolicy::Never => import::import(tensor, asked),
            _ => serve_copy(python, object, tensor, wanted, policy),
        }
    }
}

/// As [`serve`], of what may be copied.
///
/// # Safety
/// As [`serve`].
#[inline(never)]
unsafe fn serve_copy(
    python: Python,
    object: Object,
    tensor: Versioned,
    wanted: &Wanted,
    policy: CopyPolicy,
) -> Result<Versioned> {
    let Import { rules, device, options, .. } = wanted.import;
    let mut snapshot = Snapshot::new();
    // SAFETY: `tensor` is live, and its reference goes to the result.
    unsafe {
        snapshot.read_managed(tensor.as_ptr(), rules)?;
        wanted.import.limits.check(&snapshot, device)?;
        let streams = streams_of(wanted, snapshot.device)?;
        let import = Import { policy, options: Options { streams, ..options }, ..wanted.import };
        let nbytes = if import.rules.layout { snapshot.nbytes()? } else { 0 };
        let snapshot = &mut snapshot;
        match detached(python, nbytes, || import::import_read(tensor, snapshot, &import)) {
            Err(failure) if beyond_us(&failure) => {
                let copy = ask_for_copy(python, object, snapshot, wanted, failure)?;
                wrap::release(python, tensor);
                Ok(copy)
            }
            result => result,
        }
    }
}

/// Whether a copy failed because no backend makes it, or the driver is not there.
fn beyond_us(failure: &Error) -> bool {
    failure.status() == DLRS_DEVICE_TYPE || failure.status() as i32 / 100 == 5
}

/// The producer's own copy of the tensor from which `src` was read, and which still exists.
#[cold]
fn ask_for_copy(
    python: Python,
    object: Object,
    src: &Snapshot,
    wanted: &Wanted,
    failure: Error,
) -> Result<Versioned> {
    // SAFETY: attached; the copy is ours.
    unsafe {
        let stream = stream_to_name(python, object, wanted)?.with_device;
        let asked = Asked { version: true, stream, device: wanted.import.device, copy: Some(true) };
        let Some(capsule) = call(python, object, &asked)? else {
            if is(python, Python::PyExc_TypeError) {
                python.clear();
            } else if !lacks(python, object, constants::get(python, Constant::Dlpack)?) {
                return Err(raised());
            }
            return Err(failure
                .detail("no backend can copy it, and the producer does not accept copy=True"));
        };
        // Nobody else has this memory: a legacy struct's may be written.
        let copy = capsule::consume(python, capsule.object(), 0)?;
        let device = wanted.import.device.unwrap_or(src.device);
        let import = Import { device: Some(device), policy: CopyPolicy::Never, ..wanted.import };
        let result = match is_other_memory(copy, src, &import) {
            Ok(true) => import::import(copy, &import),
            Ok(false) => {
                const SAME: &str =
                    "no backend copies it, and copy=True gave the producer's own memory";
                Err(failure.detail(SAME))
            }
            Err(error) => Err(error),
        };
        if result.is_err() {
            wrap::release(python, copy);
        }
        result
    }
}

/// Whether a copy is one: both tensors are held, so their memory is not the same by chance.
///
/// # Safety
/// `copy` is live.
unsafe fn is_other_memory(copy: Versioned, src: &Snapshot, import: &Import) -> Result<bool> {
    let mut found = Snapshot::new();
    // SAFETY: `copy` is a live tensor.
    unsafe { found.read_managed(copy.as_ptr(), import.rules)? };
    Ok(found.empty || found.device != src.device || found.first() != src.first())
}

/// The order of the library's copy: the requested stream is one of the requested device.
fn streams_of(wanted: &Wanted, src: DLDevice) -> Result<Streams> {
    let Import { device, options, .. } = wanted.import;
    let mut streams = options.streams;
    let target = device.unwrap_or(if host_reachable(src.device_type) { CPU } else { src });
    let owner = device.unwrap_or(src);
    if wanted.stream == stream::NONE || !stream::has_streams(owner.device_type) {
        return Ok(streams);
    }
    if let Stream::Handle(handle) = stream::from_python(wanted.stream, owner.device_type)? {
        let handle = with_exposed_provenance_mut(handle);
        for (of, stream) in [(src, &mut streams.src), (target, &mut streams.dst)] {
            if of == owner && stream.is_null() {
                *stream = handle;
            }
        }
    }
    Ok(streams)
}
