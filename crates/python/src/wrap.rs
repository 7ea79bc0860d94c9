//! Memory that a Python object owns: the block keeps the object.

use core::ffi::c_void;
use core::mem::forget;
use core::ptr::{NonNull, from_ref};

use super::buffer;
use super::home::{self, Home, Life};
use crate::abi::DLTensor;
use crate::error::Result;
use crate::tensor::block::{self, Block, Kept, Owner};
use crate::tensor::{Legacy, Versioned, share, wrap};
use crate::validate::{Level, Rules, Snapshot, check_version};
use crate::{Object, Python, aside};

/// The owner of a block that keeps `object`, whose reference [`taken`] then takes.
#[inline(always)]
fn owner(object: Object, home: &'static Home) -> Owner {
    let (object, runtime) = (object.as_ptr().cast(), from_ref(home).cast());
    Owner::Object(Kept { free: let_go, object, runtime })
}

/// There is a block with this [`owner`]: it has its reference now.
#[inline(always)]
fn taken(python: Python, object: Object, home: &'static Home) {
    object.share(python).into_ptr();
    forget(home.life());
}

/// The object of this interpreter that keeps the memory, if it is held by one reference to `block`
/// alone: then that object goes with it, for the garbage collector to count.
///
/// # Safety
/// `block` is live.
pub unsafe fn only_object<'a>(python: Python, mut block: NonNull<Block>) -> Option<Object<'a>> {
    loop {
        // SAFETY: `block` is live, and each block holds its owner: every step of the way is live.
        unsafe {
            if block.as_ref().references() != 1 {
                return None;
            }
            let base = match block.as_ref().owner() {
                Owner::Object(Kept { free, object, runtime })
                    if core::ptr::eq(free as *const (), let_go as *const ()) =>
                {
                    let home = &*runtime.cast::<Home>();
                    return Object::optional(object.cast()).filter(|_| home.is_here(python));
                }
                Owner::Callback(free, context) => return buffer::lent_by(python, free, context),
                Owner::Versioned(base) => block::of_versioned(base),
                Owner::Legacy(base) => block::of_legacy(base),
                _ => None,
            };
            block = base?;
        }
    }
}

/// Lets an object go, attached to its interpreter, or leaves it alone. What it takes with it may be
/// Python code.
#[inline(never)]
unsafe fn let_go(object: *mut c_void, runtime: *const c_void) {
    // SAFETY: what [`owner`] put there, once.
    let life = unsafe { Life::of(&*runtime.cast::<Home>()) };
    // SAFETY: attached to the interpreter of the object, whose reference it is.
    life.attach(|python| unsafe { python.Py_DecRef(object.cast()) });
}

/// Releases one reference to a tensor, ours or foreign, on a thread that is attached. What that
/// calls may be Python code: a pending exception is set aside.
///
/// # Safety
/// `tensor` is live and not used again.
#[inline(never)]
pub unsafe fn release(python: Python, tensor: Versioned) {
    // SAFETY: `tensor` is live, and its reference is ours; an object that goes is one that
    // [`owner`] put there.
    aside(python, || unsafe {
        match block::of_versioned(tensor) {
            Some(block) => block::drop_reference_by(block.as_ptr(), |kept| {
                let home = &*kept.runtime.cast::<Home>();
                match home.is_here(python) {
                    true => {
                        python.Py_DecRef(kept.object.cast());
                        drop(Life::of(home));
                    }
                    false => let_go(kept.object, kept.runtime),
                }
            }),
            None => share::release(tensor),
        }
    })
}

/// One reference to a tensor, ours or foreign, which is released when it goes out of scope.
pub struct Reference {
    /// Python, to which this thread is attached until then.
    pub python: Python,
    tensor: Versioned,
}

impl Reference {
    /// # Safety
    /// `tensor` is live, of any major, with one reference to give.
    #[inline]
    pub unsafe fn new(python: Python, tensor: Versioned) -> Reference {
        Reference { python, tensor }
    }

    /// The tensor, whose reference stays here.
    #[inline]
    pub fn tensor(&self) -> Versioned {
        self.tensor
    }

    /// What it describes; an error for another major.
    #[inline]
    pub fn description(&self) -> Result<DLTensor> {
        // SAFETY: a live struct; past the check it is of major 1.
        unsafe {
            check_version(self.tensor.as_ptr())?;
            Ok((&raw const (*self.tensor.as_ptr()).dl_tensor).read())
        }
    }

    /// Reads and checks it.
    pub fn read(&self, rules: Rules, snapshot: &mut Snapshot) -> Result<()> {
        // SAFETY: a live struct.
        unsafe { snapshot.read_managed(self.tensor.as_ptr(), rules) }
    }

    /// The tensor with its reference, now the caller's.
    #[inline]
    pub fn into_tensor(self) -> Versioned {
        let tensor = self.tensor;
        forget(self);
        tensor
    }

    /// Gives the reference to `take`, or releases it where that fails.
    #[inline]
    pub fn give<T>(self, take: impl FnOnce(Versioned) -> Result<T>) -> Result<T> {
        let taken = take(self.tensor);
        if taken.is_ok() {
            forget(self);
        }
        taken
    }
}

impl Drop for Reference {
    #[inline(never)]
    fn drop(&mut self) {
        // SAFETY: the reference is ours.
        unsafe { release(self.python, self.tensor) }
    }
}

/// As [`release`], of a legacy tensor.
///
/// # Safety
/// As [`release`].
pub unsafe fn release_legacy(python: Python, tensor: Legacy) {
    // SAFETY: `tensor` is a live legacy struct.
    match unsafe { block::of_legacy(tensor) } {
        // SAFETY: the block is live; the reference, which is ours, is both structs'.
        Some(block) => unsafe { release(python, Block::versioned(block)) },
        // SAFETY: `tensor` is a live foreign struct, and its reference is ours to release.
        None => aside(python, || unsafe { share::release_legacy(tensor) }),
    }
}

/// A block around memory that `object` keeps. On error nothing is taken.
///
/// # Safety
/// `tensor` is as of [`Snapshot::read`].
#[inline(always)]
pub unsafe fn around(
    python: Python,
    tensor: *const DLTensor,
    flags: u64,
    object: Object,
) -> Result<NonNull<Block>> {
    const RULES: Rules = Rules::of(Level::DLRS_LEVEL_LAYOUT);
    let home = home::here(python)?;
    // SAFETY: `tensor`, its shape and its strides are readable.
    let block = unsafe {
        match block::around(tensor, flags, owner(object, home)) {
            Ok(block) => block,
            Err(left) => wrap::wrap_checked(tensor, flags, owner(object, home), RULES, left)?,
        }
    };
    taken(python, object, home);
    Ok(block)
}

/// As [`around`], of a tensor that has been read.
pub fn around_read(python: Python, tensor: &Snapshot, object: Object) -> Result<NonNull<Block>> {
    let home = home::here(python)?;
    wrap::wrap(tensor, owner(object, home)).inspect(|_| taken(python, object, home))
}
