//! What the fuzz targets share: how input bytes become choices, how a function of the C ABI is
//! called, layouts small enough to walk through bit by bit, and memory that must come back.

pub mod call;
pub mod layout;
pub mod lent;
pub mod reader;

pub use call::{call, snprintf_rule};
pub use layout::Layout;
pub use reader::Reader;
