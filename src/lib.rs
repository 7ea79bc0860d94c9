//! libdlpack_rs (draft)
#![no_std]
#![allow(missing_docs)]
#[cfg(test)]
extern crate std;
pub mod abi;
pub mod device;
pub mod error;
pub mod capi {}
