//! A Python module with a `Tensor` type, made at run time of CPython's stable ABI.
//!
//! Nothing is compiled against a Python: the type is made from a spec and the functions from
//! method tables, so calls cost what those of a compiled extension cost, and one library serves
//! every CPython from 3.9 on. There is one module per interpreter, kept in its record
//! ([`super::home`]); asking again gives the same one, and so the same `Tensor` type.
//!
//! Threads: a `Tensor` never changes, so nothing is locked, with or without the GIL. The module
//! does not pass through the import system, which alone would switch the GIL on.

mod arguments;
mod attributes;
mod buffer;
mod copies;
pub mod exchange;
mod failure;
mod methods;
mod scalars;
mod spec;
mod state;
mod tensor;
mod values;
mod views;

use core::cell::UnsafeCell;
use core::ffi::{CStr, c_int, c_void};
use core::ptr::null_mut;
use core::sync::atomic::{AtomicBool, Ordering::*};

use crate::abi::{DLPACK_MAJOR_VERSION, DLPACK_MINOR_VERSION, DLPackExchangeAPI};
use crate::error::{Error, Result, Status::*};
use crate::python::capsule::EXCHANGE_API;
use crate::python::raise::raised;
use crate::python::{Owned, Python, header_nbytes, home};
use failure::{Answer, Failure, done, made};
use spec::*;
use state::State;

/// The object header of any Python fits in as many bytes.
const HEADER_MOST: usize = 64;

/// The definition of the module. Python writes a number into it, once, and reads it for as long as
/// a module lives, so it is never moved or freed.
#[repr(C, align(16))]
struct Definition(UnsafeCell<[u8; HEADER_MOST + size_of::<ModuleDef>()]>);

// SAFETY: written by whoever first sets `CLAIMED`, before the module that uses it is made.
unsafe impl Sync for Definition {}

static DEFINITION: Definition = Definition(UnsafeCell::new([0; _]));
static CLAIMED: AtomicBool = AtomicBool::new(false);
static WRITTEN: AtomicBool = AtomicBool::new(false);

/// The module of this interpreter, made if there is none yet: a new reference. `api` goes to its
/// type.
pub fn module(python: Python, api: &'static DLPackExchangeAPI) -> Result<Owned> {
    let module = home::here(python)?.module.get(|| {
        make(python, api).map_err(|failure| match failure {
            Failure::Error(error) | Failure::Index(error) => error,
            Failure::Raised | Failure::Call(_) => raised(),
        })
    })?;
    // SAFETY: live: the record has a reference.
    Ok(unsafe { Owned::share(python, module) })
}

/// Sets an attribute; `value` is given away.
fn set(python: Python, object: &Owned, name: &CStr, value: Answer<Owned>) -> Answer<()> {
    let value = value?;
    // SAFETY: live objects.
    done(unsafe { python.PyObject_SetAttrString(object.as_ptr(), name.as_ptr(), value.as_ptr()) })?;
    Ok(())
}

/// Makes a module.
fn make(python: Python, api: &'static DLPackExchangeAPI) -> Answer<Owned> {
    let version = [DLPACK_MAJOR_VERSION.into(), DLPACK_MINOR_VERSION.into()];
    // SAFETY: attached, by `Python`; the definition lives for ever.
    unsafe {
        let definition = definition()?;
        // 3: the stable ABI's own version number.
        let module = made(python.PyModule_Create2(definition, 3))?;
        let state = State::of_new(python, module.as_ptr())?;
        if !tensor::check_header(python, &module)? {
            return Err(unknown_header());
        }
        state.lender = lender_type(python, &module)?.into_ptr();
        let kind = tensor_type(python, &module)?;
        let api = (&raw const *api).cast_mut().cast();
        let api = made(python.PyCapsule_New(api, EXCHANGE_API.as_ptr(), None));
        set(python, &kind, c"__dlpack_c_exchange_api__", api)?;
        python.Py_IncRef(kind.as_ptr());
        state.kind = kind.as_ptr();
        set(python, &module, c"Tensor", Ok(kind))?;
        set(python, &module, c"dlpack_version", attributes::tuple(python, &version))?;
        let own = attributes::text(python, env!("CARGO_PKG_VERSION").as_bytes());
        set(python, &module, c"__version__", own)?;
        Ok(module)
    }
}

/// The type `Tensor`.
fn tensor_type(python: Python, module: &Owned) -> Answer<Owned> {
    let members = [
        MemberDef {
            name: c"__weaklistoffset__".as_ptr(),
            kind: T_PYSSIZET,
            offset: tensor::weak_list_offset() as isize,
            flags: READONLY,
            doc: core::ptr::null(),
        },
        MemberDef::END,
    ];
    // The function pointers of a list of slots are data to C.
    let slots = [
        TypeSlot::new(Slot::Dealloc, tensor::dealloc as *const c_void),
        TypeSlot::new(Slot::New, methods::refuse_new as *const c_void),
        TypeSlot::new(Slot::Repr, values::repr as *const c_void),
        TypeSlot::new(Slot::Doc, methods::TENSOR.as_ptr().cast()),
        TypeSlot::new(Slot::Methods, (&raw const methods::METHODS).cast()),
        TypeSlot::new(Slot::GetSet, (&raw const attributes::ATTRIBUTES).cast()),
        TypeSlot::new(Slot::Members, members.as_ptr().cast()),
        TypeSlot::new(Slot::Subscript, views::subscript as *const c_void),
        TypeSlot::new(Slot::Length, views::length as *const c_void),
        TypeSlot::new(Slot::SequenceLength, views::length as *const c_void),
        TypeSlot::new(Slot::Item, views::item as *const c_void),
        // Where one of these is missing Python falls back on another, and gives a wrong value.
        TypeSlot::new(Slot::Iter, views::iterate as *const c_void),
        TypeSlot::new(Slot::Contains, scalars::contains as *const c_void),
        TypeSlot::new(Slot::Bool, scalars::truth as *const c_void),
        TypeSlot::new(Slot::Int, scalars::int as *const c_void),
        TypeSlot::new(Slot::Float, scalars::float as *const c_void),
        TypeSlot::new(Slot::RichCompare, scalars::compare as *const c_void),
        TypeSlot::END,
    ];
    new_type(python, module, c"dlpack_rs.Tensor", &slots)
}

/// The type of what lends the memory of a `Tensor` as a buffer: an object like a `Tensor`, which
/// has no buffer itself.
fn lender_type(python: Python, module: &Owned) -> Answer<Owned> {
    let slots = [
        TypeSlot::new(Slot::Dealloc, tensor::dealloc as *const c_void),
        TypeSlot::new(Slot::New, methods::refuse_new as *const c_void),
        TypeSlot::new(Slot::GetBuffer, buffer::get as *const c_void),
        TypeSlot::new(Slot::ReleaseBuffer, buffer::release as *const c_void),
        TypeSlot::END,
    ];
    new_type(python, module, c"dlpack_rs.TensorMemory", &slots)
}

/// A type whose objects hold a tensor. Python copies the list.
fn new_type(python: Python, module: &Owned, name: &CStr, slots: &[TypeSlot]) -> Answer<Owned> {
    let spec = TypeSpec {
        name: name.as_ptr(),
        basicsize: tensor::basicsize() as c_int,
        itemsize: 0,
        flags: TYPE_FLAGS,
        slots: slots.as_ptr(),
    };
    // SAFETY: Python copies the spec; the tables that slots point to live for ever, but for
    // `members`, which is copied too.
    unsafe {
        let spec = (&raw const spec).cast();
        made(python.PyType_FromModuleAndSpec(module.as_ptr(), spec, null_mut()))
    }
}

/// The definition of the module, written on the first call.
fn definition() -> Answer<*mut c_void> {
    let start: *mut c_void = DEFINITION.0.get().cast();
    if WRITTEN.load(Acquire) {
        return Ok(start);
    }
    let header = header_nbytes();
    if header > HEADER_MOST || !header.is_multiple_of(align_of::<ModuleDef>()) {
        return Err(unknown_header());
    }
    if CLAIMED.swap(true, AcqRel) {
        // Another interpreter's thread is between the two, for a few instructions.
        while !WRITTEN.load(Acquire) {
            core::hint::spin_loop();
        }
        return Ok(start);
    }
    let definition = ModuleDef {
        base: [null_mut(); 3],
        name: c"dlpack_rs".as_ptr(),
        doc: methods::MODULE.as_ptr().cast(),
        state_nbytes: size_of::<State>() as isize,
        methods: (&raw const methods::FUNCTIONS).cast(),
        slots: core::ptr::null(),
        traverse: Some(state::traverse),
        clear: Some(state::clear),
        free: Some(state::free),
    };
    // SAFETY: `header` is at most HEADER_MOST, so the definition fits behind it; nobody else
    // writes, and nobody reads before WRITTEN. A header of zeroes is what Python fills in.
    unsafe { start.byte_add(header).cast::<ModuleDef>().write(definition) };
    WRITTEN.store(true, Release);
    Ok(start)
}

fn unknown_header() -> Failure {
    let error = Error::new(DLRS_UNSUPPORTED).value(header_nbytes() as i64);
    error.detail("objects of this Python have a header that is not known here, bytes").into()
}
