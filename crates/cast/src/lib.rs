//! Elements as numbers: conversion, filling, comparison. Optional (the feature `cast`).
//!
//! ```text
//!   cast    │ a copy that converts; compare: are two tensors equal; numbers: one value, a fill
//!   convert │ elements from one dtype to another: steps over tiles, AVX2 where there is it
//! ```
//! May use: `tensor`. Used by: the C interface, `python/module`.
#![no_std]

#[cfg(test)]
extern crate std;

pub use dlpack_tensor::*;

pub mod cast;
pub mod compare;
pub mod convert;
pub mod numbers;
