//! Capsules: tensors in Python objects, and the release of those that are not consumed.
//!
//! Destructors run at odd moments: with an exception pending, while the interpreter ends, on any
//! thread. They are native, call Python only to look at the capsule itself, and set a pending
//! exception aside before a producer's deleter runs, which may be Python code.

use core::ffi::{CStr, c_char, c_void};
use core::ptr::{NonNull, without_provenance_mut};
use core::sync::atomic::{AtomicBool, Ordering::Relaxed};

use super::object::{contents, inside};
use super::ticket;
use super::wrap::{self, Reference};
use crate::abi::*;
use crate::error::{Arg, Error, Result, Status::*};
use crate::tensor::block::{self, Block};
use crate::tensor::{Legacy, Versioned, convert};
use crate::validate::check_version;
use crate::{
    CriticalSection, Destructor, Object, Owned, PyObject, Python, device_type, pointer, raised,
    required,
};

/// A legacy tensor that is not consumed.
pub const LEGACY: &CStr = c"dltensor";
/// A legacy tensor's empty shell.
pub const LEGACY_USED: &CStr = c"used_dltensor";
/// A versioned tensor that is not consumed.
pub const VERSIONED: &CStr = c"dltensor_versioned";
/// A versioned tensor's empty shell.
pub const VERSIONED_USED: &CStr = c"used_dltensor_versioned";
/// An exchange API table.
pub const EXCHANGE_API: &CStr = c"dlpack_exchange_api";

/// Whether a tensor was ever put into a versioned capsule.
pub static LENT: AtomicBool = AtomicBool::new(false);

/// A capsule that owns `tensor`.
///
/// # Safety
/// `tensor` is live; on success the capsule owns the caller's reference.
#[inline(always)]
pub unsafe fn new(python: Python, tensor: Versioned) -> Result<Owned> {
    if !LENT.load(Relaxed) {
        LENT.store(true, Relaxed);
    }
    // SAFETY: `tensor` is live, and its reference goes to the capsule; the name is static.
    unsafe {
        match block::of_versioned(tensor) {
            Some(_) => shell(python, tensor.as_ptr().cast(), VERSIONED.as_ptr(), destroy_versioned),
            None => new_foreign(python, tensor),
        }
    }
}

/// As [`new`], of a foreign tensor.
///
/// # Safety
/// As [`new`].
#[inline(never)]
unsafe fn new_foreign(python: Python, tensor: Versioned) -> Result<Owned> {
    // SAFETY: `tensor` is live. While the capsule is called used, nobody frees what is in it.
    unsafe {
        check_version(tensor.as_ptr())?;
        let capsule =
            shell(python, tensor.as_ptr().cast(), VERSIONED_USED.as_ptr(), destroy_versioned)?;
        let presentable = presentable(tensor)?;
        python.PyCapsule_SetPointer(capsule.as_ptr(), presentable.as_ptr().cast());
        python.PyCapsule_SetName(capsule.as_ptr(), VERSIONED.as_ptr());
        Ok(capsule)
    }
}

/// As [`new`], for consumers that only know the legacy struct.
///
/// # Safety
/// `tensor` is live; on success the capsule owns the caller's reference.
#[inline(always)]
pub unsafe fn new_legacy(python: Python, tensor: Legacy) -> Result<Owned> {
    // SAFETY: `tensor` is a live legacy struct, and its reference goes to the capsule.
    unsafe {
        let device = (&raw const (*tensor.as_ptr()).dl_tensor.device).read();
        let watched = !device_type::host_reachable(device.device_type);
        match !watched && block::of_legacy(tensor).is_some() {
            true => shell(python, tensor.as_ptr().cast(), LEGACY.as_ptr(), destroy_legacy),
            false => new_boxed(python, tensor, watched),
        }
    }
}

/// As [`new_legacy`], of a foreign tensor, or one that is `watched`.
///
/// # Safety
/// As [`new_legacy`].
#[inline(never)]
unsafe fn new_boxed(python: Python, tensor: Legacy, watched: bool) -> Result<Owned> {
    // SAFETY: `tensor` is live. While the capsule is called used, nobody frees what is in it.
    unsafe {
        let destroy = if watched { destroy_watched } else { destroy_legacy };
        let capsule = shell(python, tensor.as_ptr().cast(), LEGACY_USED.as_ptr(), destroy)?;
        let presentable = Block::legacy(convert::boxed_legacy(tensor, 0)?);
        if let Some(block) = block::of_legacy(presentable).filter(|_| watched)
            && let Some(ticket) = ticket::issue(block.as_ref())
        {
            python.PyCapsule_SetContext(capsule.as_ptr(), without_provenance_mut(ticket));
        }
        python.PyCapsule_SetPointer(capsule.as_ptr(), presentable.as_ptr().cast());
        python.PyCapsule_SetName(capsule.as_ptr(), LEGACY.as_ptr());
        Ok(capsule)
    }
}

/// The names of DLPack's capsules, consumed or not.
static NAMES: [&CStr; 5] = [LEGACY, LEGACY_USED, VERSIONED, VERSIONED_USED, EXCHANGE_API];

/// A private capsule: its name is not DLPack's, so that no consumer takes the tensor.
///
/// # Safety
/// `tensor` is live, and `name` a static text; on success the capsule owns the caller's reference.
#[inline]
pub unsafe fn private(python: Python, tensor: Versioned, name: *const c_char) -> Result<Owned> {
    // SAFETY: `name` is a text that ends with NUL. Mostly the first byte tells.
    let own = unsafe {
        matches!(name.read() as u8, b'd' | b'u') && NAMES.contains(&CStr::from_ptr(name))
    };
    if own {
        return Err(Error::new(DLRS_BAD_ARG)
            .detail("the name is one of DLPack's\0Give a name of your own.")
            .of(Arg::name));
    }
    // SAFETY: `tensor` is live, and its reference goes to the capsule; `name` is static.
    unsafe {
        check_version(tensor.as_ptr())?;
        shell(python, tensor.as_ptr().cast(), name, destroy_private)
    }
}

/// The tensor in a private capsule of that name; `None` for any other object. Sets no
/// exception.
///
/// # Safety
/// `name` is a text that ends with NUL.
pub unsafe fn held(python: Python, object: Object, name: *const c_char) -> Option<Versioned> {
    // SAFETY: `object` is a capsule, of a name that ends with NUL. A capsule's destructor tells who
    // made it, and so what is inside.
    unsafe {
        let found = contents(python, object, name)?;
        let destroy = python.PyCapsule_GetDestructor(object.as_ptr());
        (destroy.map(|f| f as usize) == Some(destroy_private as *const () as usize))
            .then_some(found)
    }
}

#[inline(never)]
unsafe extern "C" fn destroy_private(capsule: *mut PyObject) {
    // SAFETY: Python calls, with a capsule of ours, whose pointer is found under its own name.
    unsafe {
        let python = Python::calling();
        let pointer = python.PyCapsule_GetPointer(capsule, python.PyCapsule_GetName(capsule));
        if let Some(tensor) = NonNull::new(pointer.cast()) {
            wrap::release(python, tensor);
        }
    }
}

/// # Safety
/// `pointer` is not NULL; the name is a static text.
#[inline(always)]
unsafe fn shell(
    python: Python,
    pointer: *mut c_void,
    name: *const c_char,
    destroy: Destructor,
) -> Result<Owned> {
    // SAFETY: attached; `pointer` is not NULL, and `name` is static.
    unsafe { required(python.PyCapsule_New(pointer, name, Some(destroy))) }
}

/// A tensor that no consumer stumbles over: with a deleter, a context and strides, which some take
/// for granted (Paddle never calls the deleter of a tensor without context).
///
/// # Safety
/// `tensor` is live, of major 1; on success the result owns the caller's reference.
unsafe fn presentable(tensor: Versioned) -> Result<Versioned> {
    // SAFETY: `tensor` is a live struct of major 1.
    let (ours, found) = unsafe { (block::of_versioned(tensor), tensor.as_ptr().read()) };
    let bare = found.dl_tensor.ndim > 0 && found.dl_tensor.strides.is_null();
    if ours.is_some() || !(found.deleter.is_none() || found.manager_ctx.is_null() || bare) {
        return Ok(tensor);
    }
    // SAFETY: `tensor` is a live struct of major 1, and its reference goes to the block.
    unsafe { convert::boxed(tensor).map(Block::versioned) }
}

unsafe extern "C" fn destroy_versioned(capsule: *mut PyObject) {
    // SAFETY: Python calls, with a capsule of ours; under this name it still owns its tensor.
    unsafe {
        let python = Python::calling();
        if let Some(tensor) = inside(python, Object::new(capsule), VERSIONED.as_ptr()) {
            wrap::release(python, tensor);
        }
    }
}

unsafe extern "C" fn destroy_legacy(capsule: *mut PyObject) {
    // SAFETY: Python destroys a capsule of ours; under this name it still owns its legacy tensor.
    unsafe {
        let python = Python::calling();
        if let Some(tensor) = inside(python, Object::new(capsule), LEGACY.as_ptr()) {
            wrap::release_legacy(python, tensor);
        }
    }
}

/// TensorFlow, given a device that it does not have, calls the deleter and yet leaves the name: of
/// a tensor on a device only the ticket then tells. It is that of a block that only the capsule's
/// consumer holds.
unsafe extern "C" fn destroy_watched(capsule: *mut PyObject) {
    // SAFETY: Python destroys a capsule of ours, whose context is a ticket or NULL.
    unsafe {
        let python = Python::calling();
        let ticket = python.PyCapsule_GetContext(capsule).addr();
        if ticket == 0 || ticket::valid(ticket) {
            destroy_legacy(capsule);
        }
        ticket::void(ticket);
    }
}

/// Takes the tensor out of a capsule, which is renamed; a legacy one gets `legacy_flags`. Of
/// several threads one gets it, without the GIL too: nothing in here releases the critical section.
/// A Python that has none has the GIL.
#[inline(never)]
pub fn consume(python: Python, capsule: Object, legacy_flags: u64) -> Result<Reference> {
    let ends = python.PyCriticalSection_Begin().zip(python.PyCriticalSection_End());
    let mut section = CriticalSection([0; _]);
    // SAFETY: a live object; the section is ended where it was begun.
    unsafe {
        if let Some((begin, _)) = ends {
            begin(&raw mut section, capsule);
        }
        let taken = take(python, capsule, legacy_flags);
        if let Some((_, end)) = ends {
            end(&raw mut section);
        }
        Ok(Reference::new(python, taken?))
    }
}

/// # Safety
/// No other thread takes from the capsule meanwhile.
#[inline(always)]
unsafe fn take(python: Python, capsule: Object, legacy_flags: u64) -> Result<Versioned> {
    if let Some(tensor) = pointer::<DLManagedTensorVersioned>(python, capsule, VERSIONED) {
        // Of another major the capsule keeps it, and its destructor calls the deleter.
        // SAFETY: the name says what is inside, and no other thread takes it.
        unsafe { check_version(tensor.as_ptr())? };
        rename(python, capsule, VERSIONED_USED)?;
        return Ok(tensor);
    }
    if let Some(tensor) = pointer::<DLManagedTensor>(python, capsule, LEGACY) {
        // SAFETY: the name says what is inside, and no other thread takes it.
        let versioned = unsafe { convert::from_legacy(tensor, legacy_flags)? };
        rename(python, capsule, LEGACY_USED)?;
        return Ok(versioned);
    }
    Err(Error::new(DLRS_BAD_ARG).detail(match is_of_tensor(python, capsule) {
        true => {
            "the capsule was consumed before\0\
             Call __dlpack__ again: each capsule is taken once."
        }
        false => {
            "what __dlpack__ returned is no capsule with a DLPack tensor\0Give a capsule, or an \
             object whose __dlpack__ returns one."
        }
    }))
}

/// Whether an object is a capsule of a tensor, consumed or not.
pub fn is_of_tensor(python: Python, object: Object) -> bool {
    let is = |name| pointer::<()>(python, object, name).is_some();
    [VERSIONED, LEGACY, VERSIONED_USED, LEGACY_USED].into_iter().any(is)
}

/// Of a capsule, this cannot fail.
fn rename(python: Python, capsule: Object, name: &'static CStr) -> Result<()> {
    // SAFETY: a live object, and the name is static.
    match unsafe { python.PyCapsule_SetName(capsule.as_ptr(), name.as_ptr()) } {
        0 => Ok(()),
        _ => Err(raised()),
    }
}
