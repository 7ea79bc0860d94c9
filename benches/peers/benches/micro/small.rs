//! What small tensors cost, by calls of the library; benches/small.c has them next to malloc in turn.

use crate::ours::{CPU, F32, Free, Managed, STRICT, Tensor, library, made};
use divan::Bencher;
use std::ffi::c_void;
use std::ptr::{null, null_mut};

static SHAPE: [i64; 4] = [2, 3, 4, 5];
static STRIDES: [i64; 4] = [60, 20, 5, 1];
static MATRIX: [i64; 2] = [3, 4];

unsafe extern "C" fn nothing(_: *mut c_void) {}

fn tensor(values: &mut [f32; 120]) -> Tensor {
    let (shape, strides) = (SHAPE.as_ptr(), STRIDES.as_ptr());
    let data = values.as_mut_ptr().cast();
    Tensor { data, device: CPU, ndim: 4, dtype: F32, shape, strides, byte_offset: 0 }
}

#[divan::bench]
fn malloc_256_and_free(bencher: Bencher) {
    // SAFETY: freed once.
    bencher.bench_local(|| unsafe { libc::free(divan::black_box(libc::malloc(256))) });
}

#[divan::bench]
fn validate_4d_strict(bencher: Bencher) {
    let (mut values, check) = ([0.0; 120], library().dlrs_validate);
    let tensor = tensor(&mut values);
    let wrong = Tensor { ndim: -1, ..tensor };
    // SAFETY: a tensor of memory that is there; of the other, only the count is looked at.
    unsafe {
        assert_ne!(check(&wrong, 0, STRICT, null_mut()), 0);
        assert_eq!(check(&tensor, 0, STRICT, null_mut()), 0);
        bencher.bench_local(|| check(&tensor, 0, STRICT, null_mut()));
    }
}

#[divan::bench]
fn wrap_and_release_4d(bencher: Bencher) {
    let (mut values, library) = ([0.0; 120], library());
    let tensor = tensor(&mut values);
    // SAFETY: the memory outlives what is wrapped around it, which is released once.
    let wrap = || unsafe {
        let free = Some(nothing as Free);
        made(|out| (library.dlrs_tensor_wrap)(&tensor, 0, free, null_mut(), out, null_mut()))
    };
    let release = |wrapped| unsafe { (library.dlrs_release)(wrapped) };
    let wrapped = wrap();
    // SAFETY: not yet released.
    assert_eq!(unsafe { (*wrapped).tensor.data }, tensor.data);
    release(wrapped);
    bencher.bench_local(|| release(wrap()));
}

#[divan::bench]
fn retain_and_release(bencher: Bencher) {
    let library = library();
    // SAFETY: made, shared and released once each.
    unsafe {
        let kept = matrix();
        let retain = || made(|out| (library.dlrs_retain)(kept, out, null_mut()));
        let shared = retain();
        assert_eq!((*shared).tensor.data, (*kept).tensor.data);
        (library.dlrs_release)(shared);
        bencher.bench_local(|| (library.dlrs_release)(retain()));
        (library.dlrs_release)(kept);
    }
}

#[divan::bench]
fn clone_and_release_3x4_f32(bencher: Bencher) {
    let library = library();
    // SAFETY: made, cloned and released once each; 12 floats are in both.
    unsafe {
        let kept = matrix();
        let clone = || made(|out| (library.dlrs_clone)(kept, CPU, null(), out, null_mut()));
        let cloned = clone();
        assert_eq!(values(cloned), values(kept));
        (library.dlrs_release)(cloned);
        bencher.bench_local(|| (library.dlrs_release)(clone()));
        (library.dlrs_release)(kept);
    }
}

#[divan::bench]
fn copy_3x4_f32(bencher: Bencher) {
    let library = library();
    // SAFETY: made and released once each; 12 floats are in both.
    unsafe {
        let (src, dst) = (matrix(), matrix());
        (*dst).tensor.data.write_bytes(0, 48);
        let copy = || (library.dlrs_copy)(src, dst, null(), null_mut());
        assert_eq!(copy(), 0);
        assert_eq!(values(dst), values(src));
        bencher.bench_local(copy);
        (library.dlrs_release)(src);
        (library.dlrs_release)(dst);
    }
}

/// A tensor of 3 × 4 numbers.
fn matrix() -> *mut Managed {
    let new = library().dlrs_tensor_new;
    // SAFETY: an array of two extents, and room for twelve floats.
    unsafe {
        let made = made(|out| new(MATRIX.as_ptr(), 2, F32, CPU, null(), out, null_mut()));
        let data: *mut f32 = (*made).tensor.data.cast();
        (0..12).for_each(|i| data.add(i).write(i as f32));
        made
    }
}

/// # Safety
///
/// A tensor of 3 × 4 numbers.
unsafe fn values<'a>(tensor: *const Managed) -> &'a [f32] {
    // SAFETY: the caller's promise.
    unsafe { std::slice::from_raw_parts((*tensor).tensor.data.cast(), 12) }
}
