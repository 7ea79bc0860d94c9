//! Who executes plans: the trait [`backend::Backend`], and what serves it.
//!
//! ```text
//!   backend  │ allocate, copy, order, query: the functions that a device has
//!   host     │ the backend of host memory; plugged: those given from C; ready: events
//!   per_kind │ a table that callers set for each kind of device
//! ```
//! Which backend serves a device is decided in `tensor::registry`.
//! May use: `engine`. Used by: `gpu`, `tensor`.
#![no_std]

#[cfg(test)]
extern crate std;

pub use dlpack_engine::*;

pub mod backend;
pub mod host;
pub mod per_kind;
pub mod plugged;
pub mod ready;
