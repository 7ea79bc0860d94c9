//! Objects that every import needs: made once per interpreter, or rather once for the main one.
//!
//! An object of one interpreter must never be seen by another. So only the main interpreter, which
//! is nearly always the only one, has them kept; others make theirs at each call. When the main
//! interpreter ends, and before a host may start it again, its dictionary goes, and with it a
//! capsule whose destructor empties the slots.

use core::ffi::{CStr, c_void};
use core::ptr::{NonNull, null_mut};
use core::sync::atomic::{AtomicBool, AtomicPtr, Ordering::*};

use super::object::Owned;
use super::raise::{raised, required};
use super::symbols::{PyObject, Python};
use crate::abi::{DLPACK_MAJOR_VERSION, DLPACK_MINOR_VERSION};
use crate::error::{Error, Result, Status::*};

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

/// The main interpreter, while its objects are kept.
static MAIN: AtomicPtr<c_void> = AtomicPtr::new(null_mut());

/// A constant: of the slot, which holds it for as long as the interpreter runs, or one's own.
pub struct Kept(*mut PyObject, Option<Owned>);

impl Kept {
    /// The object, borrowed.
    #[inline]
    pub fn as_ptr(&self) -> *mut PyObject {
        self.0
    }

    /// A reference of its own.
    pub fn share(&self, python: Python) -> Owned {
        // SAFETY: live, and never NULL.
        unsafe { Owned::share(python, NonNull::new_unchecked(self.0)) }
    }
}

/// The constant, made where it is not there yet.
#[inline]
pub fn get(python: Python, constant: Constant) -> Result<Kept> {
    // SAFETY: attached, so there is an interpreter.
    let main = unsafe { python.PyInterpreterState_Get() } == MAIN.load(Acquire);
    let slot = SLOTS.get(constant as usize).filter(|_| main);
    match slot.map(|slot| slot.load(Acquire)) {
        Some(kept) if !kept.is_null() => Ok(Kept(kept, None)),
        _ => make(python, constant),
    }
}

#[cold]
fn make(python: Python, constant: Constant) -> Result<Kept> {
    let made = match constant {
        Constant::Dlpack => text(python, c"__dlpack__")?,
        Constant::ExchangeApi => text(python, c"__dlpack_c_exchange_api__")?,
        Constant::MaxVersionOnly => tuple(python, [Some(text(python, c"max_version")?)])?,
        Constant::Version => {
            let (major, minor) = (DLPACK_MAJOR_VERSION.into(), DLPACK_MINOR_VERSION.into());
            tuple(python, [Some(integer(python, major)?), Some(integer(python, minor)?)])?
        }
    };
    // SAFETY: attached, so there is an interpreter.
    let interpreter = unsafe { python.PyInterpreterState_Get() };
    // SAFETY: as above.
    let main = unsafe { python.PyInterpreterState_GetID(interpreter) } == 0;
    if let Some(slot) = SLOTS.get(constant as usize)
        && main
        && watch_the_end(python, interpreter)?
    {
        let kept = Kept(made.as_ptr(), None).share(python);
        // Another thread may have been first: what it published stays.
        if slot.compare_exchange(null_mut(), kept.as_ptr(), Release, Relaxed).is_ok() {
            kept.into_ptr();
        }
    }
    Ok(Kept(made.as_ptr(), Some(made)))
}

/// Leaves a capsule in the interpreter's dictionary: it goes when the interpreter does. Answers
/// whether that is done; another thread may be about it.
fn watch_the_end(python: Python, interpreter: *mut c_void) -> Result<bool> {
    static CLAIM: AtomicBool = AtomicBool::new(false);
    if MAIN.load(Acquire) == interpreter {
        return Ok(true);
    }
    if CLAIM.swap(true, AcqRel) {
        return Ok(false);
    }
    // It may have been done between the two questions: a second keeper would empty the slots.
    let left = match MAIN.load(Acquire) == interpreter {
        true => Ok(()),
        false => leave_keeper(python, interpreter),
    };
    if left.is_ok() {
        MAIN.store(interpreter, Release);
    }
    CLAIM.store(false, Release);
    left.map(|()| true)
}

fn leave_keeper(python: Python, interpreter: *mut c_void) -> Result<()> {
    let slots: *mut c_void = (&raw const SLOTS).cast_mut().cast();
    // SAFETY: the dictionary is borrowed and exists while the interpreter runs; names are static.
    unsafe {
        let dict = python.PyInterpreterState_GetDict(interpreter);
        if dict.is_null() {
            return Err(Error::new(DLRS_UNSUPPORTED).detail("the interpreter is ending"));
        }
        let keeper = required(python.PyCapsule_New(slots, KEEPER.as_ptr(), Some(empty)))?;
        match python.PyDict_SetItemString(dict, KEEPER.as_ptr(), keeper.as_ptr()) {
            0 => Ok(()),
            _ => Err(raised()),
        }
    }
}

unsafe extern "C" fn empty(_: *mut PyObject) {
    MAIN.store(null_mut(), Release);
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
