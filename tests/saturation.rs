//! F09 of the catalogue: the reference count never wraps. Not reachable from C.

use std::ptr::null_mut;

use dlpack_rs::abi::{DLDataType, DLDevice, DLManagedTensorVersioned};
use dlpack_rs::capi::alloc::dlrs_tensor_new;
use dlpack_rs::capi::error::dlrs_error;
use dlpack_rs::capi::share::{dlrs_ref_count, dlrs_release, dlrs_retain};
use dlpack_rs::capi::view_shape::dlrs_view_read_only;
use dlpack_rs::error::Status;
use dlpack_rs::tensor::block;

#[test]
fn retain_fails_before_the_reference_count_wraps() {
    let shape = [2i64];
    let dtype = DLDataType { code: 2, bits: 32, lanes: 1 };
    let device = DLDevice { device_type: 1, device_id: 0 };
    let mut tensor: *mut DLManagedTensorVersioned = null_mut();
    // SAFETY: live arguments; the tensor is used until its one real reference is released.
    unsafe {
        let status =
            dlrs_tensor_new(shape.as_ptr(), 1, dtype, device, null_mut(), &mut tensor, null_mut());
        assert_eq!(status, 0);
        let block = block::of_versioned(tensor.as_mut().unwrap().into()).unwrap();
        for references in [isize::MAX as usize, isize::MAX as usize + 5] {
            block.as_ref().set_references(references);
            let mut out = tensor;
            let mut error: dlrs_error = std::mem::zeroed();
            error.struct_size = size_of::<dlrs_error>() as u32;
            let status = dlrs_retain(tensor, &mut out, &mut error);
            assert_eq!(status, Status::DLRS_REFCOUNT as i32);
            assert_eq!(error.argument, 1);
            assert!(out.is_null());
            // A view fails as well; its memory does not leak (make sanitize).
            let status = dlrs_view_read_only(tensor, &mut out, &mut error);
            assert_eq!(status, Status::DLRS_REFCOUNT as i32);
            assert!(out.is_null());
            assert_eq!(block.as_ref().references(), references, "the count is as before");
        }
        block.as_ref().set_references(isize::MAX as usize - 1);
        let mut out = null_mut();
        assert_eq!(dlrs_retain(tensor, &mut out, null_mut()), 0, "the last one still fits");
        assert_eq!(dlrs_ref_count(out), isize::MAX as i64);
        block.as_ref().set_references(1);
        dlrs_release(tensor);
    }
}
