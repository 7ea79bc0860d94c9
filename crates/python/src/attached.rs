//! Whether this thread may call Python.

use core::ffi::c_void;
use core::marker::PhantomData;
use core::sync::atomic::{AtomicBool, Ordering::*};

use super::symbols::{self, HEADER, NAMES, refuse};
use crate::error::Result;
use crate::{PyObject, Python, aside, header_nbytes, platform};

/// The table is filled.
static READY: AtomicBool = AtomicBool::new(false);

impl Python {
    /// Python, when this thread may call it.
    #[inline]
    pub fn get() -> Result<Python> {
        let python = Python(PhantomData);
        // With the header the table is there too.
        let attached = HEADER.load(Acquire) != 0 && python.attached();
        if attached { Ok(python) } else { Python::look() }
    }

    /// As [`Python::get`], where Python has not been called yet, or cannot be: then why.
    #[cold]
    #[inline(never)]
    fn look() -> Result<Python> {
        if !READY.load(Acquire) {
            find()?;
        }
        let python = Python(PhantomData);
        // SAFETY: both may be called at any time, on any thread.
        unsafe {
            if python.Py_IsInitialized() == 0 {
                return Err(refuse(
                    "Python is not running: not yet, or not any more\0\
                     Call it between Py_Initialize and Py_Finalize.",
                ));
            }
            if !python.attached() {
                return Err(refuse(
                    "this thread is not attached to Python\0\
                     Attach it; with ctypes, load the library with PyDLL, not CDLL.",
                ));
            }
        }
        if header_nbytes() == 0 {
            python.measure()?;
        }
        Ok(python)
    }

    /// What `object` itself has is the header of every object.
    #[cold]
    fn measure(self) -> Result<()> {
        let nbytes = aside(self, || {
            let base = self.PyBaseObject_Type();
            let size = self.named(base, c"__basicsize__").ok()?;
            let size = usize::try_from(self.PyLong_AsLongLong(size.object()).ok()?).ok()?;
            let kind = self.PyObject_Type(base).ok()?;
            // The type stands at the end: `type_of` looks for it there.
            let last = size.checked_sub(size_of::<*mut PyObject>())?;
            // SAFETY: it is inside of the object.
            let found = unsafe { base.as_ptr().byte_add(last).cast::<*mut PyObject>().read() };
            (found == kind.as_ptr()).then_some(size)
        });
        let unknown = || {
            refuse(
                "objects of this Python have no header of a known size\0\
                 Use CPython, not a tracing build.",
            )
        };
        HEADER.store(nbytes.ok_or_else(unknown)?, Release);
        Ok(())
    }

    /// Whether Python is about to end.
    pub fn ends(self) -> bool {
        let ends = self.Py_IsFinalizing().or(self._Py_IsFinalizing());
        // SAFETY: it may be called at any time, on any thread.
        ends.is_some_and(|ends| unsafe { ends() } != 0)
    }

    /// Whether this thread may call Python, which then runs: no thread has a state before it has
    /// begun, nor after its end.
    #[inline(never)]
    pub fn attached(self) -> bool {
        self.attached_here()
    }

    /// As [`Python::attached`], inlined.
    #[inline(always)]
    pub fn attached_here(self) -> bool {
        let current = self.PyThreadState_GetUnchecked().or(self._PyThreadState_UncheckedGet());
        let Some(current) = current else { return self.checked() };
        // SAFETY: both may be called at any time, on any thread.
        unsafe {
            let current = current();
            // Since 3.12, as since this function, each thread has a current state of its own.
            if self.PyErr_GetRaisedException().is_some() {
                return !current.is_null();
            }
            // Before, it is that of whoever has the one lock.
            let own = self.PyGILState_GetThisThreadState();
            !current.is_null() && (own == current || self.runs_another(own, current))
        }
    }

    #[cold]
    fn checked(self) -> bool {
        // SAFETY: the one may be called at any time, the other on any thread while Python runs.
        let runs = unsafe { self.Py_IsInitialized() } != 0;
        // SAFETY: `PyGILState_Check` may be called on any thread while Python runs.
        runs && self.PyGILState_Check().is_none_or(|check| unsafe { check() } != 0)
    }

    /// Whether a thread of Python 3.9 to 3.11, whose state is `own`, runs a subinterpreter, whose
    /// state is `current`: once there was one, `PyGILState_Check` always returns 1. Nothing shows
    /// whether another thread runs it at the moment.
    #[cold]
    fn runs_another(self, own: *mut c_void, current: *mut c_void) -> bool {
        // SAFETY: it reads a member of a state. One that is NULL has none: Python has not met the
        // thread.
        let interpreter = |state| unsafe { self.PyThreadState_GetInterpreter(state) };
        !own.is_null() && self.checked() && interpreter(own) != interpreter(current)
    }

    /// Python, for functions whose callers are attached to it, though they may be the first ones
    /// of this library to be called.
    ///
    /// # Safety
    /// If Python runs, this thread is attached.
    #[inline]
    pub unsafe fn called() -> Result<Python> {
        match header_nbytes() {
            0 => Python::look(),
            _ => Ok(Python(PhantomData)),
        }
    }
}

/// Fills the tables.
#[cold]
fn find() -> Result<()> {
    // SAFETY: the list starts with a text that ends with NUL.
    let Some(library) = (unsafe { platform::library_with(NAMES.as_ptr().cast()) }) else {
        return Err(refuse(
            "there is no Python in this process\0Call it from a process that runs Python.",
        ));
    };
    symbols::look_up(library)?;
    #[cfg(feature = "module")]
    crate::module_symbols::look_up(library)?;
    READY.store(true, Release);
    Ok(())
}
