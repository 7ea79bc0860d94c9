//! Placeholder: naive, bytes only. The engine replaces it.
#![allow(missing_docs, clippy::undocumented_unsafe_blocks)]
use super::plan::*;
use core::ffi::c_void;
#[derive(Clone, Copy)]
pub struct ParallelFor {
    pub run: unsafe extern "C" fn(
        *mut c_void,
        usize,
        unsafe extern "C" fn(*mut c_void, usize),
        *mut c_void,
    ) -> i32,
    pub context: *mut c_void,
}
#[derive(Clone, Copy)]
pub struct Parallel {
    pub threads: usize,
    pub hook: Option<ParallelFor>,
}
#[allow(non_camel_case_types)]
pub type dlrs_parallel_for_fn = Option<
    unsafe extern "C" fn(
        context: *mut c_void,
        n: usize,
        body: unsafe extern "C" fn(body_context: *mut c_void, index: usize),
        body_context: *mut c_void,
    ) -> i32,
>;
pub unsafe fn copy(plan: &Plan, _p: &Parallel) {
    let n: i64 = plan.shape.iter().take(plan.ndim).product();
    for mut k in 0..n {
        let (mut s, mut d) = (0i64, 0i64);
        for dim in (0..plan.ndim).rev() {
            unsafe {
                let e = *plan.shape.get_unchecked(dim);
                let i = k % e.max(1);
                k /= e.max(1);
                s += i * *plan.src_strides.get_unchecked(dim);
                d += i * *plan.dst_strides.get_unchecked(dim);
            }
        }
        if let Item::Bytes(b) = plan.item {
            unsafe {
                plan.dst.offset(d as isize).copy_from(plan.src.offset(s as isize), b);
            }
        }
    }
}
