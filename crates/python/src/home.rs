//! Interpreters: the state kept for each, and the release of their objects.
//!
//! An object of one interpreter must never be seen by another, and is freed only in its own: each
//! may have a memory allocator and a lock of its own, and a thread that releases a tensor is
//! attached to any of them or to none. So there is a record for each life of an interpreter. It
//! keeps the few objects that every import needs, and what outlives a call of Python holds it
//! ([`Life`]). When the interpreter ends, its dictionary goes, and with it a capsule whose
//! destructor empties the record: what is released later is left alone.
//!
//! Records are never freed, and used again when nobody holds them: there are as many as there were
//! interpreters at once. They belong to this copy of the library: another copy in the process has
//! records, and names in the dictionary, of its own.

use core::ffi::{CStr, c_void};
use core::fmt::Write;
use core::ptr::{NonNull, from_ref, null_mut};
use core::sync::atomic::{AtomicBool, AtomicI64, AtomicPtr, AtomicUsize, Ordering::*};

use super::constants;
use crate::error::{Error, Result, Status::*};
use crate::integer_text::hex;
use crate::{
    Message, Object, Owned, PyObject, Python, aside, platform, pointer, raised, required, text_of,
};

/// A place for an object that an interpreter's record keeps.
pub struct Slot(AtomicPtr<PyObject>);

impl Slot {
    const EMPTY: Slot = Slot(AtomicPtr::new(null_mut()));

    /// The object, created on first use; borrowed. It is valid as long as the interpreter, whose
    /// private dictionary no other code clears.
    #[inline]
    pub fn get(&self, make: impl FnOnce() -> Result<Owned>) -> Result<Object<'_>> {
        match self.kept() {
            Some(kept) => Ok(kept),
            None => self.put(make()?),
        }
    }

    /// The object, if it was created.
    #[inline]
    pub fn kept(&self) -> Option<Object<'_>> {
        // SAFETY: the slot has a reference, for as long as the interpreter.
        unsafe { Object::optional(self.0.load(Acquire)) }
    }

    #[cold]
    fn put(&self, made: Owned) -> Result<Object<'_>> {
        // Without the GIL another thread may have been first: its object is used.
        if self.0.compare_exchange(null_mut(), made.as_ptr(), AcqRel, Acquire).is_ok() {
            made.into_ptr();
        }
        self.kept().ok_or_else(raised)
    }
}

/// The record of one interpreter, for one of its lives.
pub struct Home {
    /// Its state, until it ends; then NULL.
    interpreter: AtomicPtr<c_void>,
    /// Its number; 0 is the main one's.
    id: AtomicI64,
    /// Python 3.15's weak reference to it.
    view: AtomicPtr<c_void>,
    /// The objects of [`constants`].
    pub constants: [Slot; constants::COUNT],
    /// The type `Tensor` of the Python module.
    pub tensor: Slot,
    /// The type of objects that export a `Tensor`'s memory as a buffer.
    pub lender: Slot,
    /// The type that was last found to have no mask, of those that nobody changes or frees.
    pub unmasked: AtomicPtr<PyObject>,
    /// The keeper in the dictionary, and every [`Life`].
    references: AtomicUsize,
    free: AtomicBool,
    next: AtomicPtr<Home>,
}

/// The first record, which is the only one of most processes.
static FIRST: Home = Home::new();

/// The name of the keeper, a capsule.
const KEEPER: &CStr = c"libdlpack_rs.home";

impl Home {
    const fn new() -> Home {
        Home {
            interpreter: AtomicPtr::new(null_mut()),
            id: AtomicI64::new(0),
            view: AtomicPtr::new(null_mut()),
            constants: [Slot::EMPTY; _],
            tensor: Slot::EMPTY,
            lender: Slot::EMPTY,
            unmasked: AtomicPtr::new(null_mut()),
            references: AtomicUsize::new(0),
            free: AtomicBool::new(true),
            next: AtomicPtr::new(null_mut()),
        }
    }

    /// An unused record, with one reference.
    fn claim() -> Result<&'static Home> {
        let free = |home: &&Home| home.free.compare_exchange(true, false, AcqRel, Relaxed).is_ok();
        if let Some(home) = all().find(free) {
            home.slots().for_each(|slot| slot.0.store(null_mut(), Relaxed));
            home.references.store(1, Release);
            return Ok(home);
        }
        let memory: NonNull<Home> = memory_for()?;
        let (references, free) = (AtomicUsize::new(1), AtomicBool::new(false));
        // SAFETY: room for a record, which is never freed; so are the others.
        unsafe {
            memory.write(Home { references, free, ..Home::new() });
            let mut last = &FIRST;
            while let Err(next) =
                last.next.compare_exchange(null_mut(), memory.as_ptr(), AcqRel, Acquire)
            {
                last = &*next;
            }
            Ok(memory.as_ref())
        }
    }

    fn give_up(&self, python: Python) {
        if self.references.fetch_sub(1, AcqRel) == 1 {
            let view = self.view.swap(null_mut(), AcqRel);
            if let Some(close) = python.PyInterpreterView_Close().filter(|_| !view.is_null()) {
                // SAFETY: a view of ours; this may be called on any thread.
                unsafe { close(view) };
            }
            self.free.store(true, Release);
        }
    }

    /// A reference to the record, for what outlives the call.
    #[inline]
    pub fn life(&'static self) -> Life {
        if !self.is_main() {
            self.references.fetch_add(1, Relaxed);
        }
        Life(self)
    }

    /// Whether it is of the main interpreter. Such a record is never used again, so nobody counts
    /// its references: each time that Python is started in the process it has a new one.
    #[inline]
    fn is_main(&self) -> bool {
        self.id.load(Relaxed) == 0
    }

    /// Whether it is that of the interpreter that this thread is attached to.
    #[inline]
    pub fn is_here(&self, python: Python) -> bool {
        // SAFETY: attached, so there is an interpreter.
        self.interpreter.load(Acquire) == unsafe { python.PyInterpreterState_Get() }
    }

    fn slots(&self) -> impl Iterator<Item = &Slot> {
        self.constants.iter().chain([&self.tensor, &self.lender])
    }
}

/// Memory for a value.
pub fn memory_for<T>() -> Result<NonNull<T>> {
    let nbytes = size_of::<T>();
    let error = Error::new(DLRS_NOMEM).value(nbytes as i64);
    platform::memory(nbytes).map(NonNull::cast).ok_or(error)
}

/// Every record.
fn all() -> impl Iterator<Item = &'static Home> {
    // SAFETY: records are never freed.
    core::iter::successors(Some(&FIRST), |home| unsafe { home.next.load(Acquire).as_ref() })
}

/// The record of the interpreter that this thread is attached to.
#[inline]
pub fn here(python: Python) -> Result<&'static Home> {
    if FIRST.is_here(python) { Ok(&FIRST) } else { find(python) }
}

/// Whether an object is a constant of the first record. For that one need not be attached: what is
/// kept there was live before it was read.
#[inline]
pub fn is_first(object: Object, constant: constants::Constant) -> bool {
    let slot = FIRST.constants.get(constant as usize);
    slot.is_some_and(|slot| slot.kept() == Some(object))
}

/// As [`here`], where it is not the first record.
#[inline(never)]
fn find(python: Python) -> Result<&'static Home> {
    // SAFETY: attached, so there is an interpreter.
    let interpreter = unsafe { python.PyInterpreterState_Get() };
    match all().find(|home| home.interpreter.load(Acquire) == interpreter) {
        Some(home) => Ok(home),
        None => settle(python, interpreter),
    }
}

/// Makes the record of an interpreter, and leaves its keeper in the interpreter's dictionary.
#[cold]
fn settle(python: Python, interpreter: *mut c_void) -> Result<&'static Home> {
    let ending =
        || Error::new(DLRS_UNSUPPORTED).detail("the interpreter is ending\0Make tensors before.");
    // The dictionary may be gone already: a new one would never be emptied.
    if python.ends() {
        return Err(ending());
    }
    // SAFETY: attached; the dictionary is borrowed and exists while the interpreter runs. Its
    // other entries are those of others, so the key says which library, and which copy, this is.
    unsafe {
        let dict = python.PyInterpreterState_GetDict(interpreter);
        if dict.is_null() {
            return Err(ending());
        }
        let mut key = Message::EMPTY;
        let copy = hex(from_ref(&FIRST).addr() as u64, 1);
        let _ = write!(key, "libdlpack_rs {} 0x{copy}", env!("CARGO_PKG_VERSION"));
        let key = text_of(python, key.text())?;
        let home = Home::claim()?;
        let record = from_ref(home).cast_mut().cast();
        let keeper = required(python.PyCapsule_New(record, KEEPER.as_ptr(), Some(end)))
            .inspect_err(|_| home.give_up(python))?;
        home.id.store(python.PyInterpreterState_GetID(interpreter), Relaxed);
        if let Some(look) = python.PyInterpreterView_FromCurrent() {
            let view = look();
            if view.is_null() {
                return Err(raised());
            }
            home.view.store(view, Relaxed);
        }
        // Without the GIL several threads may be here: the first one's keeper stays.
        let first = python.PyDict_SetDefault(dict, key.as_ptr(), keeper.as_ptr());
        if first.is_null() {
            return Err(raised());
        }
        let found = pointer::<Home>(python, Object::new(first), KEEPER);
        let home = found.ok_or_else(raised)?.as_ref();
        home.interpreter.store(interpreter, Release);
        Ok(home)
    }
}

/// The interpreter's life ends, or its record was never used.
unsafe extern "C" fn end(keeper: *mut PyObject) {
    // SAFETY: Python calls, so it is attached, with a keeper of ours, whose places are ours too.
    unsafe {
        let python = Python::calling();
        let home = pointer::<Home>(python, Object::new(keeper), KEEPER);
        let Some(home) = home.map(|home| home.as_ref()) else { return };
        home.slots().for_each(|slot| drop(Owned::new(slot.0.swap(null_mut(), AcqRel))));
        let used = !home.interpreter.swap(null_mut(), AcqRel).is_null();
        if !(used && home.is_main()) {
            home.give_up(python);
        }
    }
}

/// One life of an interpreter, held by what belongs to it; it may be over.
pub struct Life(&'static Home);

impl Life {
    /// A life that was held and forgotten.
    ///
    /// # Safety
    /// It is so, and this is the only one made of it.
    pub unsafe fn of(home: &'static Home) -> Life {
        Life(home)
    }

    /// Whether it is that of the interpreter that this thread is attached to.
    pub fn is_here(&self, python: Python) -> bool {
        self.0.is_here(python)
    }

    /// Runs `body` attached to the interpreter, with no exception set; does not, and says so, when
    /// the interpreter is gone or Python is going: what it still holds is then left alone, as
    /// python_spec asks of deleters.
    ///
    /// From 3.15 on Python itself keeps the interpreter alive meanwhile. Before, an interpreter
    /// that ends while a thread is on its way into it cannot be told from one that lives.
    pub fn attach(&self, body: impl FnOnce(Python)) -> bool {
        // SAFETY: these functions may be called on any thread; each is undone on the same one.
        unsafe {
            // The record was made by a thread that had Python.
            let python = Python::calling();
            let interpreter = self.0.interpreter.load(Acquire);
            if interpreter.is_null() || python.Py_IsInitialized() == 0 || python.ends() {
                return false;
            }
            let body = || aside(python, || body(python));
            let current = python.attached_here().then(|| python.PyInterpreterState_Get());
            if current == Some(interpreter) {
                body();
                return true;
            }
            if let (Some(ensure), Some(release)) =
                (python.PyThreadState_EnsureFromView(), python.PyThreadState_Release())
            {
                let thread = ensure(self.0.view.load(Relaxed));
                if !thread.is_null() {
                    body();
                    release(thread);
                }
                return !thread.is_null();
            }
            let left = current.map(|_| python.PyEval_SaveThread());
            let entered = self.enter(python, interpreter, body);
            if let Some(left) = left {
                python.PyEval_RestoreThread(left);
            }
            entered
        }
    }

    /// As [`Life::attach`], of a thread that is not attached.
    ///
    /// # Safety
    /// The interpreter has not ended.
    unsafe fn enter(&self, python: Python, interpreter: *mut c_void, body: impl FnOnce()) -> bool {
        // SAFETY: the interpreter has not ended; these functions may be called on any thread.
        unsafe {
            // A thread has one state in an interpreter: `Ensure` takes the one it has, if it is
            // of this interpreter, or makes one of the main interpreter.
            let own = python.PyGILState_GetThisThreadState();
            let fits = match own.is_null() {
                true => self.0.id.load(Relaxed) == 0,
                false => python.PyThreadState_GetInterpreter(own) == interpreter,
            };
            if fits {
                let state = python.PyGILState_Ensure();
                body();
                python.PyGILState_Release(state);
                return true;
            }
            let state = python.PyThreadState_New(interpreter);
            if state.is_null() {
                return false;
            }
            python.PyEval_AcquireThread(state);
            body();
            python.PyThreadState_Clear(state);
            python.PyThreadState_DeleteCurrent();
            true
        }
    }
}

impl Drop for Life {
    fn drop(&mut self) {
        if !self.0.is_main() {
            // SAFETY: the record was made by a thread that had Python; nothing here needs it
            // attached.
            self.0.give_up(unsafe { Python::calling() });
        }
    }
}
