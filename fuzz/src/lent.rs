//! Memory and tensors that the library borrows or owns, and a record of their release.

use std::cell::RefCell;
use std::ffi::c_void;
use std::ptr::NonNull;

use dlpack_rs::capi::error::dlrs_error;

use crate::{Layout, call};

thread_local! {
    /// Which callbacks and deleters have run, in their order.
    static RAN: RefCell<Vec<u32>> = const { RefCell::new(Vec::new()) };
}

fn came_back(id: u32) {
    RAN.with_borrow_mut(|ran| ran.push(id));
}

/// A callback's context: freed by the first call, so that a second one is detected.
pub struct Witness {
    /// Its name in the record.
    pub id: u32,
    /// The memory.
    pub memory: Box<[u8]>,
}

/// # Safety
/// Called by the library, once.
pub unsafe extern "C" fn called(context: *mut c_void) {
    // SAFETY: a witness that was passed to the library once.
    let witness = unsafe { Box::from_raw(context.cast::<Witness>()) };
    assert!(witness.memory.iter().all(|&byte| byte == 0x11), "written to");
    came_back(witness.id);
}

/// A foreign tensor, of either kind. `managed` is first.
#[repr(C)]
pub struct Foreign<T> {
    /// The library's argument.
    pub managed: T,
    /// The arrays that `managed` points to.
    pub layout: Layout,
    /// Freed with the tensor.
    pub witness: Witness,
}

/// # Safety
/// Called by the library, once.
pub unsafe extern "C" fn delete<T>(managed: *mut T) {
    // SAFETY: `managed` is the first member of a box that was passed to the library once.
    let foreign = unsafe { Box::from_raw(managed.cast::<Foreign<T>>()) };
    assert!(foreign.layout.shape.len() < 64);
    came_back(foreign.witness.id);
}

/// Calls a function that creates a tensor: `*out` is NULL after a failure.
pub fn made<T>(
    function: impl FnOnce(*mut *mut T, *mut dlrs_error) -> i32,
) -> Result<NonNull<T>, i32> {
    let mut out = NonNull::dangling().as_ptr();
    match call(|error| function(&mut out, error)) {
        0 => Ok(NonNull::new(out).expect("success and no tensor")),
        status => {
            assert!(out.is_null(), "a failure and a tensor");
            Err(status)
        }
    }
}

/// Begins a new record.
pub fn forget() {
    RAN.with_borrow_mut(Vec::clear);
}

/// The releases, in order.
pub fn record() -> Vec<u32> {
    RAN.with_borrow(Vec::clone)
}
