//! Objects that every import needs: made once per interpreter, or rather once for the main one.
//!
//! An object of one interpreter must never be seen by another. So only the main interpreter, which
//! is nearly always the only one, has them kept; others make theirs at each call. When the main
//! interpreter ends, and before a host may start it again, its dictionary goes, and with it a
//! capsule whose destructor empties the slots.

use core::ffi::{CStr, c_void};
use core::ptr::{NonNull, null_mut};
use core::sync::atomic::{AtomicPtr, Ordering::*};

use super::object::Owned;
use super::raise::{raised, required};
use super::symbols::{PyObject, Python};
use crate::abi::{DLPACK_MAJOR_VERSION, DLPACK_MINOR_VERSION};
use crate::error::Result;

/// What is kept.
#[derive(Clone, Copy)]
pub enum Constant {
    /// `"__dlpack__"`
    Dlpack,
    /// `"__dlpack_c_exchange_api__"`
    ExchangeApi,
    /// `("max_version",)`
    MaxVersionOnly,
    /// `(1, 3)`
    Version,
}

const N: usize = 4;
static SLOTS: [AtomicPtr<PyObject>; N] = [const { AtomicPtr::new(null_mut()) }; N];
const KEEPER: &CStr = c"libdlpack_rs.constants";

/// The constant, made where it is not there yet.
///
/// # Safety
/// None beyond what `python` stands for.
#[inline]
pub fn get(python: Python, constant: Constant) -> Result<Owned> {
    // SAFETY: attached, so there is an interpreter.
    let main = unsafe { python.PyInterpreterState_GetID(python.PyInterpreterState_Get()) } == 0;
    let slot = SLOTS.get(constant as usize).filter(|_| main);
    match slot.and_then(|slot| NonNull::new(slot.load(Acquire))) {
        // SAFETY: the slot holds a reference for as long as the interpreter runs.
        Some(kept) => Ok(unsafe { Owned::share(python, kept) }),
        None => make(python, constant, slot),
    }
}

#[cold]
fn make(
    python: Python,
    constant: Constant,
    slot: Option<&'static AtomicPtr<PyObject>>,
) -> Result<Owned> {
    let made = match constant {
        Constant::Dlpack => text(python, c"__dlpack__")?,
        Constant::ExchangeApi => text(python, c"__dlpack_c_exchange_api__")?,
        Constant::MaxVersionOnly => tuple(python, [Some(text(python, c"max_version")?)])?,
        Constant::Version => {
            let (major, minor) = (DLPACK_MAJOR_VERSION.into(), DLPACK_MINOR_VERSION.into());
            tuple(python, [Some(integer(python, major)?), Some(integer(python, minor)?)])?
        }
    };
    if let Some(slot) = slot {
        watch_the_end(python)?;
        // SAFETY: `made` is live.
        let kept = unsafe { Owned::share(python, NonNull::new_unchecked(made.as_ptr())) };
        // Another thread may have been first: what it published stays.
        if slot.compare_exchange(null_mut(), kept.as_ptr(), Release, Relaxed).is_ok() {
            kept.into_ptr();
        }
    }
    Ok(made)
}

/// Leaves a capsule in the interpreter's dictionary: it goes when the interpreter does.
fn watch_the_end(python: Python) -> Result<()> {
    let slots: *mut c_void = (&raw const SLOTS).cast_mut().cast();
    // SAFETY: the dictionary is borrowed and exists while the interpreter runs; names are static.
    unsafe {
        let dict = python.PyInterpreterState_GetDict(python.PyInterpreterState_Get());
        if SLOTS.iter().any(|slot| !slot.load(Relaxed).is_null()) || dict.is_null() {
            return Ok(());
        }
        let keeper = required(python.PyCapsule_New(slots, KEEPER.as_ptr(), Some(empty)))?;
        match python.PyDict_SetItemString(dict, KEEPER.as_ptr(), keeper.as_ptr()) {
            0 => Ok(()),
            _ => Err(raised()),
        }
    }
}

unsafe extern "C" fn empty(_: *mut PyObject) {
    for slot in &SLOTS {
        let kept = slot.swap(null_mut(), AcqRel);
        if !kept.is_null() {
            // SAFETY: Python calls, so it is attached; the slot's reference is given back.
            unsafe { Python::calling().Py_DecRef(kept) };
        }
    }
}

/// An interned text.
pub fn text(python: Python, text: &CStr) -> Result<Owned> {
    // SAFETY: attached; the text ends with NUL.
    unsafe { required(python.PyUnicode_InternFromString(text.as_ptr())) }
}

/// A number.
pub fn integer(python: Python, value: i64) -> Result<Owned> {
    // SAFETY: attached.
    unsafe { required(python.PyLong_FromLongLong(value)) }
}

/// A tuple of the items that are there.
pub fn tuple<const MOST: usize>(python: Python, items: [Option<Owned>; MOST]) -> Result<Owned> {
    let n = items.iter().flatten().count();
    // SAFETY: attached; each place is filled once, which takes the item.
    unsafe {
        let tuple = required(python.PyTuple_New(n as isize))?;
        for (place, item) in items.into_iter().flatten().enumerate() {
            let item = item.into_ptr();
            if python.PyTuple_SetItem(tuple.as_ptr(), place as isize, item) != 0 {
                return Err(raised());
            }
        }
        Ok(tuple)
    }
}
