//! What a tensor that was taken in lacks: a check, a block of ours, or a copy.

use core::ptr::with_exposed_provenance_mut;

use super::call::{Asked, Wanted, call, lacks, stream_to_name};
use crate::abi::*;
use crate::constants::{self, Constant};
use crate::copy::{CopyPolicy, Options, Streams};
use crate::device_type::{CPU, host_reachable};
use crate::error::{Error, Field::*, Result, Status::*};
use crate::stream::{self, Stream};

use crate::validate::{Snapshot, check_version, flags_of};
use crate::wrap::Reference;
use crate::{Object, Python, capsule, detached, is, raised};
use dlpack_tensor::import::{self, Import};

/// What is wanted of a tensor that an object has exported.
pub(super) fn serve(object: Object, tensor: Reference, wanted: &Wanted) -> Result<Reference> {
    let python = tensor.python;
    // SAFETY: a live struct; past the check it is of major 1.
    let flags = unsafe {
        check_version(tensor.tensor().as_ptr())?;
        flags_of(tensor.tensor().as_ptr())
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
    // SAFETY: a live tensor, whose reference goes to the result.
    unsafe {
        let made = match policy {
            CopyPolicy::IfNeeded if any && asked.device.is_none() => {
                tensor.give(|tensor| import::as_is(tensor, asked.rules, &asked.limits))
            }
            CopyPolicy::Never => tensor.give(|tensor| import::import(tensor, asked)),
            _ => return serve_copy(object, tensor, wanted, policy),
        };
        Ok(Reference::new(python, made?))
    }
}

/// As [`serve`], of what may be copied.
#[inline(never)]
fn serve_copy(
    object: Object,
    tensor: Reference,
    wanted: &Wanted,
    policy: CopyPolicy,
) -> Result<Reference> {
    let (python, Import { rules, device, options, .. }) = (tensor.python, wanted.import);
    let mut snapshot = Snapshot::new();
    tensor.read(rules, &mut snapshot)?;
    // SAFETY: read from a live tensor.
    unsafe { wanted.import.limits.check(&snapshot, device)? };
    let streams = streams_of(wanted, snapshot.device)?;
    let import = Import { policy, options: Options { streams, ..options }, ..wanted.import };
    let nbytes = if import.rules.layout { snapshot.nbytes()? } else { 0 };
    // SAFETY: a live tensor, whose reference goes to the result; an import attaches to Python where
    // it releases what is Python's.
    let made = unsafe {
        detached(python, nbytes, || import::import_read(tensor.tensor(), &mut snapshot, &import))
    };
    match made {
        Ok(made) => {
            tensor.into_tensor();
            // SAFETY: a live tensor, and its reference is ours.
            Ok(unsafe { Reference::new(python, made) })
        }
        Err(failure) if beyond_us(&failure) => {
            ask_for_copy(python, object, &snapshot, wanted, failure)
        }
        Err(failure) => Err(failure),
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
) -> Result<Reference> {
    let stream = stream_to_name(python, object, wanted)?.with_device;
    let asked = Asked { version: true, stream, device: wanted.import.device, copy: Some(true) };
    let Some(capsule) = call(python, object, &asked)? else {
        if is(python, Python::PyExc_TypeError) {
            python.clear();
        } else if !lacks(python, object, constants::get(python, Constant::Dlpack)?) {
            return Err(raised());
        }
        return Err(
            failure.detail("no backend can copy it, and the producer does not accept copy=True")
        );
    };
    // Nobody else has this memory: a legacy struct's may be written.
    let copy = capsule::consume(python, capsule.object(), 0)?;
    let device = wanted.import.device.unwrap_or(src.device);
    let import = Import { device: Some(device), policy: CopyPolicy::Never, ..wanted.import };
    let mut found = Snapshot::new();
    copy.read(import.rules, &mut found)?;
    // Both tensors are held, so their memory is not the same by chance.
    if !found.empty && found.device == src.device && found.first() == src.first() {
        const SAME: &str = "no backend copies it, and copy=True gave the producer's own memory";
        return Err(failure.detail(SAME));
    }
    // SAFETY: a live tensor, whose reference goes to the result.
    unsafe {
        let made = copy.give(|copy| import::import(copy, &import))?;
        Ok(Reference::new(python, made))
    }
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
