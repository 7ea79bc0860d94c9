//! The `Tensor` object: it holds one reference to a tensor, and no reference to a Python object but
//! its type. The tensor may hold one: the garbage collector visits it where the object is the only
//! owner of the tensor. There is no `tp_clear`, as a tuple has none: what a tensor holds is older
//! than it, so in a cycle there is an object that was changed later, and can be cleared.
//!
//! The tensor is a block of ours, and never changes: a foreign one is put in a block when it is
//! taken in. Its producer may keep the struct and change it, as PyTorch does, whose extents are
//! those of the tensor that lives on.

use core::ffi::{CStr, c_int, c_void};
use core::marker::PhantomData;
use core::mem::offset_of;
use core::ptr::{NonNull, null_mut};

use super::spec::{TYPE_FLAGS, TypeSlot, TypeSpec, Visit};
use crate::abi::{DLDevice, DLPACK_FLAG_BITMASK_READ_ONLY, DLTensor};
use crate::copy::{CopyPolicy, Options};
use crate::device_type::opaque_handle;
use crate::error::{Error, Result, Status::*};
use crate::import::Import;
use crate::validate::limits::Limits;
use crate::validate::{Level, Rules, Snapshot};
use dlpack_python::import::{Wanted, import, protocol};
use dlpack_python::payload::{Payload, payload};

use dlpack_python::wrap::{Reference, only_object, release};
use dlpack_python::{Object, Owned, PyObject, Python, header_nbytes, home, required, stream};
use dlpack_tensor::tensor::alloc::{self, Request};
use dlpack_tensor::tensor::block::{self, Block, Owner};
use dlpack_tensor::tensor::{Versioned, convert, share};

/// What a tensor must be to become an object.
pub const RULES: Rules = Rules::of_import(Level::DLRS_LEVEL_STRICT);

/// The default request of an import.
pub fn wanted(device: Option<DLDevice>, policy: CopyPolicy) -> Wanted {
    Wanted {
        import: Import {
            rules: RULES,
            align_bytes: 0,
            order: None,
            device,
            writable: false,
            policy,
            options: Options::DEFAULT,
            limits: Limits::NONE,
        },
        // As NumPy: the legacy struct lacks the flag.
        legacy_flags: DLPACK_FLAG_BITMASK_READ_ONLY,
        protocols: protocol::ALL,
        stream: stream::NONE,
    }
}

pub fn weak_list_offset() -> usize {
    header_nbytes() + offset_of!(Payload, weak_references)
}

/// A type whose objects hold a tensor. Python copies the list.
pub fn new_type(python: Python, name: &CStr, slots: &[TypeSlot]) -> Result<Owned> {
    let spec = TypeSpec {
        name: name.as_ptr(),
        basicsize: (header_nbytes() + size_of::<Payload>()) as c_int,
        itemsize: 0,
        flags: TYPE_FLAGS,
        slots: slots.as_ptr(),
    };
    // SAFETY: Python copies the spec; the tables that slots point to live for ever, but for
    // `members`, which is copied too.
    unsafe { required(python.PyType_FromSpec((&raw const spec).cast())) }
}

/// A type whose objects hold a tensor, borrowed.
#[derive(Clone, Copy)]
pub struct Holds<'a>(Object<'a>);

impl<'a> Holds<'a> {
    /// # Safety
    /// `kind` was made by [`new_type`].
    pub unsafe fn new(kind: Object<'a>) -> Holds<'a> {
        Holds(kind)
    }
}

/// The type `Tensor`, made already.
#[inline]
pub fn known(python: Python) -> Result<Holds<'static>> {
    let kind = home::here(python)?.tensor.get(|| {
        Err(Error::new(DLRS_UNSUPPORTED).detail("the interpreter is ending\0Make tensors before."))
    })?;
    Ok(Holds(kind))
}

/// The `Tensor` that Python calls a function for, and keeps meanwhile.
#[derive(Clone, Copy)]
pub struct This<'a> {
    pub python: Python,
    object: Object<'a>,
}

impl<'a> This<'a> {
    /// # Safety
    /// `object` is a `Tensor`, or nothing is asked of it.
    #[inline]
    pub unsafe fn new(python: Python, object: Object<'a>) -> This<'a> {
        This { python, object }
    }

    pub fn object(self) -> Object<'a> {
        self.object
    }

    #[inline]
    pub fn live(self) -> Live<'a> {
        // SAFETY: live, and nobody sees an object that is not filled.
        unsafe {
            Live::new(self.python, (*payload(self.object.as_ptr())).tensor.unwrap_unchecked())
        }
    }

    /// A tensor that was made here as an object of the same type.
    pub fn like(self, tensor: Held) -> Result<Owned> {
        tensor.object(Holds(self.object.type_of()))
    }
}

/// A tensor of ours that is kept live.
#[derive(Clone, Copy)]
pub struct Live<'a> {
    pub python: Python,
    block: NonNull<Block>,
    keeper: PhantomData<&'a Block>,
}

impl<'a> Live<'a> {
    /// # Safety
    /// The block is live as long as the result.
    #[inline]
    pub unsafe fn new(python: Python, block: NonNull<Block>) -> Live<'a> {
        Live { python, block, keeper: PhantomData }
    }

    #[inline]
    pub fn block(self) -> NonNull<Block> {
        self.block
    }

    /// The tensor, borrowed.
    #[inline]
    pub fn tensor(self) -> Versioned {
        Block::versioned(self.block)
    }

    /// Its description, which nobody changes.
    #[inline]
    pub fn description(self) -> &'a DLTensor {
        // SAFETY: live.
        unsafe { &(*self.tensor().as_ptr()).dl_tensor }
    }

    /// Reads and checks it.
    #[inline(never)]
    pub fn read(self, rules: Rules, snapshot: &mut Snapshot) -> Result<()> {
        // SAFETY: live.
        unsafe { snapshot.read_managed(self.tensor().as_ptr(), rules) }
    }

    /// One more reference.
    #[inline]
    pub fn share(self) -> Result<Held> {
        // SAFETY: live; the reference is ours.
        unsafe { Ok(Held::new(self.python, share::retain(self.tensor())?)) }
    }
}

/// What an object holds in place of `tensor`: itself, or a block that owns it.
///
/// Its `data` is the address of the first element: half of the frameworks ignore `byte_offset`, and
/// show other memory instead (docs/interop.md).
///
/// # Safety
/// `tensor` is live; on success the block owns the caller's reference.
pub unsafe fn owned(tensor: Versioned) -> Result<NonNull<Block>> {
    let mut snapshot = Snapshot::new();
    // SAFETY: `tensor` is live, and its reference goes to the block.
    unsafe {
        snapshot.read_managed(tensor.as_ptr(), RULES)?;
        let opaque = opaque_handle(snapshot.device.device_type);
        match block::of_versioned(tensor) {
            Some(block) if snapshot.byte_offset == 0 || opaque => return Ok(block),
            _ if opaque => {}
            _ => (snapshot.data, snapshot.byte_offset) = (snapshot.first(), 0),
        }
        convert::box_snapshot(&snapshot, tensor)
    }
}

/// A new object with the block of `own`; on failure no ownership is taken.
///
/// # Safety
/// `kind` was made by [`new_type`]; the block has one reference to give.
#[inline]
pub unsafe fn wrap_if(
    python: Python,
    kind: Object,
    own: impl FnOnce() -> Result<NonNull<Block>>,
) -> Result<Owned> {
    // SAFETY: a live type; the object is fresh, and as large as its type says.
    unsafe {
        let object = required(python._PyObject_GC_New(kind))?;
        let payload = payload(object.as_ptr());
        payload.write(Payload { tensor: None, weak_references: null_mut() });
        let block = own()?;
        (*payload).tensor = Some(block);
        // Memory of its own refers to nothing.
        if !matches!(block.as_ref().owner(), Owner::Block) {
            python.PyObject_GC_Track(object.as_ptr().cast());
        }
        Ok(object)
    }
}

/// One reference to our tensor, released when it goes out of scope.
pub struct Held(Reference);

impl Held {
    /// # Safety
    /// `tensor` is a live block of ours, with one reference to give; attached to Python until this
    /// is dropped.
    pub unsafe fn new(python: Python, tensor: Versioned) -> Held {
        // SAFETY: a live tensor, with one reference to give.
        Held(unsafe { Reference::new(python, tensor) })
    }

    /// A new tensor, uninitialised.
    pub fn alloc(python: Python, request: &Request) -> Result<Held> {
        // SAFETY: a fresh block.
        unsafe { Ok(Held::new(python, alloc::new(request)?)) }
    }

    pub fn of(python: Python, object: Object) -> Result<Held> {
        Held::by(python, object, None, CopyPolicy::IfNeeded)
    }

    /// The tensor of any object, where it is or on a device.
    #[inline(never)]
    pub fn by(
        python: Python,
        object: Object,
        device: Option<DLDevice>,
        policy: CopyPolicy,
    ) -> Result<Held> {
        Held::import(python, object, &wanted(device, policy))
    }

    /// The tensor of any object, by a request of [`wanted`].
    #[inline]
    pub fn import(python: Python, object: Object, wanted: &Wanted) -> Result<Held> {
        Ok(Held(import(python, object, wanted)?))
    }

    /// The tensor, whose reference stays here.
    pub fn live(&self) -> Live<'_> {
        // SAFETY: a live block of ours.
        unsafe { Live::new(self.0.python, self.0.tensor().cast()) }
    }

    /// Gives the reference to `take`, or releases it where that fails.
    #[inline]
    pub fn give<T>(self, take: impl FnOnce(Versioned) -> Result<T>) -> Result<T> {
        self.0.give(take)
    }

    /// The tensor as an object of a type.
    #[inline(never)]
    pub fn object(self, Holds(kind): Holds) -> Result<Owned> {
        let python = self.0.python;
        let &DLTensor { byte_offset, device, .. } = self.live().description();
        let as_is = byte_offset == 0 || opaque_handle(device.device_type);
        // SAFETY: a type whose objects hold a tensor; a live block of ours, which is given.
        self.give(|tensor| unsafe {
            wrap_if(python, kind, || if as_is { Ok(tensor.cast()) } else { owned(tensor) })
        })
    }
}

/// `tp_traverse`.
///
/// # Safety
/// Python calls it for a `Tensor`.
pub unsafe extern "C" fn traverse(
    object: *mut PyObject,
    visit: Visit,
    context: *mut c_void,
) -> c_int {
    // SAFETY: `object` is a live `Tensor`; a block that it holds is live, and what that holds.
    unsafe {
        match visit(Object::new(object).type_of().as_ptr(), context) {
            0 => {}
            stop => return stop,
        }
        let block = (*payload(object)).tensor;
        match block.and_then(|block| only_object(Python::calling(), block)) {
            Some(held) => visit(held.as_ptr(), context),
            None => 0,
        }
    }
}

/// `tp_dealloc`.
///
/// # Safety
/// Python calls it for a `Tensor` without references.
pub unsafe extern "C" fn dealloc(object: *mut PyObject) {
    // SAFETY: `object` is a `Tensor` without references; nothing of it is used after it was freed.
    unsafe {
        let python = Python::calling();
        python.PyObject_GC_UnTrack(object.cast());
        let Payload { tensor, weak_references } = payload(object).read();
        let kind = Object::new(object).type_of().as_ptr();
        if !weak_references.is_null() {
            python.PyObject_ClearWeakRefs(object);
        }
        if let Some(tensor) = tensor.map(Block::versioned) {
            // A deleter may be one that a program wrote in Python.
            release(python, tensor);
        }
        python.PyObject_GC_Del(object.cast());
        python.Py_DecRef(kind);
    }
}
