//! The checks of the fuzz targets, and their shared code: conversion of input bytes to choices,
//! calls of the C ABI, layouts small enough to compare bit by bit, and memory whose release is
//! recorded. The library's package compiles it once more as its test `fuzz_seeds`, without a
//! fuzzer: see `replay.rs`.

pub mod call;
pub mod layout;
pub mod lent;
#[cfg(test)]
#[path = "../../tests/lib/random.rs"]
mod random;
pub mod reader;
#[cfg(test)]
mod replay;
pub mod targets;

pub use call::{call, snprintf_rule};
pub use layout::Layout;
pub use reader::Reader;
