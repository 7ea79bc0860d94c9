//! Every kind of tensor through the C ABI, on one thread and on three: small, so that Miri can run
//! it under both of Rust's aliasing models (`make miri`).

use core::ffi::c_void;
use core::ptr::{null, null_mut};
use std::sync::atomic::{AtomicUsize, Ordering::*};

use dlpack_rs::abi::*;
use dlpack_rs::capi::alloc::*;
use dlpack_rs::capi::chain::*;
use dlpack_rs::capi::convert::*;
use dlpack_rs::capi::share::*;
use dlpack_rs::capi::stream::*;
use dlpack_rs::capi::view::*;
use dlpack_rs::capi::view_axes::*;
use dlpack_rs::capi::view_index::*;
use dlpack_rs::capi::view_shape::*;
use dlpack_rs::capi::wrap::*;

type Tensor = *mut DLManagedTensorVersioned;

const CPU: DLDevice = DLDevice { device_type: 1, device_id: 0 };
const F32: DLDataType = DLDataType { code: 2, bits: 32, lanes: 1 };

/// The result of a function whose last argument before the error is the result variable.
macro_rules! made {
    ($function:ident($($argument:expr),*)) => {{
        let mut out = null_mut();
        // SAFETY: live tensors, by the tests.
        let status = unsafe { $function($($argument,)* &mut out, null_mut()) };
        assert_eq!((status, out.is_null()), (0, false), stringify!($function));
        out
    }};
}

fn fresh() -> Tensor {
    made!(dlrs_tensor_new([2i64, 3].as_ptr(), 2, F32, CPU, null()))
}

fn release(tensor: Tensor) {
    // SAFETY: the tests' reference.
    unsafe { dlrs_release(tensor) }
}

/// One address: Miri gives a function several.
static COUNT: unsafe extern "C" fn(*mut c_void) = count;

unsafe extern "C" fn count(context: *mut c_void) {
    // SAFETY: the tests attach it with a counter.
    unsafe { (*context.cast::<AtomicUsize>()).fetch_add(1, Relaxed) };
}

fn context(counter: &AtomicUsize) -> *mut c_void {
    (&raw const *counter).cast_mut().cast()
}

/// A foreign tensor in separate memory.
struct Foreign {
    tensor: DLManagedTensorVersioned,
    legacy: DLManagedTensor,
    shape: [i64; 2],
    data: [f32; 6],
    freed: AtomicUsize,
}

unsafe extern "C" fn delete(tensor: Tensor) {
    // SAFETY: `foreign` stored it there.
    unsafe { count((*tensor).manager_ctx) }
}

unsafe extern "C" fn delete_legacy(tensor: *mut DLManagedTensor) {
    // SAFETY: as above.
    unsafe { count((*tensor).manager_ctx) }
}

/// A pointer to one, to be returned to `Box`.
fn foreign() -> *mut Foreign {
    let dl_tensor = DLTensor {
        data: null_mut(),
        device: CPU,
        ndim: 2,
        dtype: F32,
        shape: null_mut(),
        strides: null_mut(),
        byte_offset: 0,
    };
    let made = Box::into_raw(Box::new(Foreign {
        tensor: DLManagedTensorVersioned {
            version: DLPackVersion { major: 1, minor: 3 },
            manager_ctx: null_mut(),
            deleter: Some(delete),
            flags: 0,
            dl_tensor,
        },
        legacy: DLManagedTensor {
            dl_tensor,
            manager_ctx: null_mut(),
            deleter: Some(delete_legacy),
        },
        shape: [2, 3],
        data: [0.0; 6],
        freed: AtomicUsize::new(0),
    }));
    // SAFETY: fresh; addresses in it, which does not move.
    unsafe {
        let (data, shape) = (&raw mut (*made).data, &raw mut (*made).shape);
        let freed = (&raw mut (*made).freed).cast();
        (*made).tensor.manager_ctx = freed;
        (*made).legacy.manager_ctx = freed;
        for at in [&raw mut (*made).tensor.dl_tensor, &raw mut (*made).legacy.dl_tensor] {
            (*at).data = data.cast();
            (*at).shape = shape.cast();
        }
    }
    made
}

fn freed(foreign: *mut Foreign) -> usize {
    // SAFETY: `foreign` made it; its tensor is freed.
    unsafe { Box::from_raw(foreign) }.freed.into_inner()
}

fn references_and_chains() {
    let (before, after) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let tensor = fresh();
    let more = made!(dlrs_retain(tensor));
    // SAFETY: live tensors and counters.
    unsafe {
        for order in [DLRS_BEFORE_FREE, DLRS_AFTER_FREE] {
            let counter = if order == DLRS_BEFORE_FREE { &before } else { &after };
            for _ in 0..3 {
                assert_eq!(
                    dlrs_attach(tensor, Some(COUNT), context(counter), order, null_mut()),
                    0
                );
            }
            assert_eq!(dlrs_detach(tensor, Some(COUNT), context(counter), null_mut()), 0);
            assert_eq!(dlrs_attach(more, Some(COUNT), context(counter), order, null_mut()), 0);
        }
        assert_eq!(dlrs_set_flags(tensor, DLPACK_FLAG_BITMASK_READ_ONLY, 0, null_mut()), 0);
        assert_eq!(dlrs_ref_count(more), 2);
        (*tensor).deleter.unwrap()(tensor);
    }
    assert_eq!(before.load(Relaxed), 0);
    release(more);
    assert_eq!((before.into_inner(), after.into_inner()), (3, 3));
}

/// Views of views; the base is released first, so that the last view frees it.
fn views() {
    let base = fresh();
    let mut all = vec![
        made!(dlrs_view_transpose(base, 0, 1)),
        made!(dlrs_view_flip(base, 1)),
        made!(dlrs_view_reshape(base, [6i64].as_ptr(), 1)),
        made!(dlrs_view_bitcast(base, DLDataType { code: 1, bits: 8, lanes: 1 })),
        made!(dlrs_view_slice(base, 0, 1, 2, 1)),
        made!(dlrs_view_expand(base, [4i64, 2, 3].as_ptr(), 3)),
        made!(dlrs_view_apply(base, null(), 0)),
    ];
    let last = *all.last().unwrap();
    all.push(made!(dlrs_view_read_only(last)));
    release(base);
    all.into_iter().for_each(release);
}

fn legacy_and_boxes() {
    let mut tensor = fresh();
    let mut legacy = made!(dlrs_to_legacy_take(&mut tensor, 0));
    let back = made!(dlrs_from_legacy_take(&mut legacy, 0));
    release(back);

    let (as_versioned, as_legacy) = (foreign(), foreign());
    // SAFETY: addresses in the memory of `foreign`.
    let (mut tensor, mut legacy) =
        unsafe { (&raw mut (*as_versioned).tensor, &raw mut (*as_legacy).legacy) };
    let boxed = [
        made!(dlrs_import_take(&mut tensor, null())),
        made!(dlrs_from_legacy_take(&mut legacy, 0)),
    ];
    for tensor in boxed {
        let view = made!(dlrs_view_flip(tensor, 0));
        release(tensor);
        release(view);
    }
    assert_eq!((freed(as_versioned), freed(as_legacy)), (1, 1));

    let lent = foreign();
    let counter = AtomicUsize::new(0);
    // SAFETY: as above.
    let bare = unsafe { &raw const (*lent).tensor.dl_tensor };
    let wrapped = made!(dlrs_tensor_wrap(bare, 0, Some(COUNT), context(&counter)));
    release(wrapped);
    assert_eq!((counter.into_inner(), freed(lent)), (1, 0));
}

fn deferred() {
    let new = |n: i64| made!(dlrs_tensor_new([n].as_ptr(), 1, F32, CPU, null()));
    for round in 0..4 {
        let mut tensor = new(round);
        let other = new(round + 70);
        // SAFETY: a live tensor in a variable.
        let status = unsafe { dlrs_release_after_take(&mut tensor, CPU, null_mut(), null_mut()) };
        assert_eq!((status, tensor), (0, null_mut()));
        release(other);
        // SAFETY: NULL is allowed for both.
        assert_eq!(unsafe { dlrs_release_drain(null_mut(), null_mut()) }, 0);
    }
}

const SCENES: [fn(); 4] = [references_and_chains, views, legacy_and_boxes, deferred];

#[test]
fn on_one_thread() {
    SCENES.iter().for_each(|scene| scene());
}

#[test]
fn on_three_threads() {
    std::thread::scope(|scope| {
        for shift in 0..3 {
            scope
                .spawn(move || SCENES.iter().cycle().skip(shift).take(4).for_each(|scene| scene()));
        }
    });
}

/// A reference for another thread.
struct Mine(Tensor);

// SAFETY: tensors of the library may be used on any thread.
unsafe impl Send for Mine {}

impl Mine {
    fn take(self) -> Tensor {
        self.0
    }
}

/// Three threads share, view, change, attach to and release one tensor; the last one frees it.
#[test]
fn one_tensor_on_three_threads() {
    let (ran, own) = (AtomicUsize::new(0), [const { AtomicUsize::new(0) }; 3]);
    let tensor = fresh();
    // SAFETY: a live tensor, and counters that outlive it.
    unsafe { dlrs_attach(tensor, Some(COUNT), context(&ran), DLRS_AFTER_FREE, null_mut()) };
    let mine: Vec<Mine> = (0..3).map(|_| Mine(made!(dlrs_retain(tensor)))).collect();
    release(tensor);
    std::thread::scope(|scope| {
        for (mine, own) in mine.into_iter().zip(&own) {
            scope.spawn(move || {
                let tensor = mine.take();
                for round in 0..4 {
                    let more = made!(dlrs_retain(tensor));
                    let view = made!(dlrs_view_flip(more, 0));
                    // SAFETY: a live tensor and a counter that outlives it.
                    unsafe {
                        let (flag, own) = (DLPACK_FLAG_BITMASK_READ_ONLY, context(own));
                        assert_eq!(dlrs_set_flags(more, flag, 0, null_mut()), 0);
                        let order = round % 2;
                        assert_eq!(dlrs_attach(more, Some(COUNT), own, order, null_mut()), 0);
                        if round > 0 {
                            assert_eq!(dlrs_detach(more, Some(COUNT), own, null_mut()), 0);
                        }
                    }
                    release(more);
                    release(view);
                }
                release(tensor);
            });
        }
    });
    assert_eq!(ran.into_inner(), 1);
    assert_eq!(own.map(AtomicUsize::into_inner), [1; 3]);
}
