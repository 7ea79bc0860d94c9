//! What the fuzz targets check, and what they share: how input bytes become choices, how a function
//! of the C ABI is called, layouts small enough to walk through bit by bit, and memory that must come
//! back. The library's own package compiles it once more as its test `fuzz_seeds`, which needs no
//! fuzzer: see `replay.rs`.

pub mod call;
pub mod layout;
pub mod lent;
pub mod reader;
#[cfg(test)]
mod replay;
pub mod targets;

pub use call::{call, snprintf_rule};
pub use layout::Layout;
pub use reader::Reader;
