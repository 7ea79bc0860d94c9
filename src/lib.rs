//! libdlpack_rs (draft)
#![no_std]
#![allow(missing_docs)]
#[cfg(test)]
extern crate std;
pub mod abi;
pub mod error;
pub mod scan;
pub mod dtype;
pub mod device_type;
pub mod float_formats;
pub mod print;
pub mod device { pub mod plan; }
pub mod capi {}
