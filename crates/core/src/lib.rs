//! Facts and arithmetic: errors, element and device types, layouts, checks of foreign structs, and
//! what the operating system gives. No tensor is made here and none is copied.
//!
//! ```text
//!   validate │ a foreign struct is read once, checked in a fixed order
//!   view     │ shapes, axes and indexes; overlap (do elements share bytes?); layout (extents)
//!   dtype, dtype_notation, device_type, float_formats, scan      tables, and their texts
//!   platform │ what the operating system gives: memory, threads, libraries
//!   error    │ Status, Field, Error, and each message in one place
//!   array    │ a few values; integer_text (integers as text, which cannot panic)
//! ```
//! May use: `abi`. Used by: every crate but `abi` and `kernels`.
#![no_std]

#[cfg(test)]
extern crate std;

pub use dlpack_abi as abi;

pub mod array;
pub mod device_type;
pub mod dtype;
pub mod dtype_notation;
pub mod error;
pub mod float_formats;
pub mod integer_text;
pub mod layout;
pub mod overlap;
pub mod platform;
pub mod scan;
pub mod validate;
pub mod view;
