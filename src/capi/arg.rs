//! The pointers that C passes: each is judged once, and becomes a type that says what was found.
//!
//! An export hands its pointer parameters to [`run`](super::error::run), which refuses what is NULL
//! and must not be, or is not aligned, and hands the judged ones to the body: [`Live`], [`Out`],
//! and, in the files of this folder, arrays, texts and options. No other file of the C interface
//! follows a pointer of the caller's.

mod options;
mod pointer;
mod taken;
mod text;
mod values;

pub use options::*;
pub use pointer::*;
#[cfg(feature = "python")]
pub use taken::Held;
pub use taken::Taken;
pub use text::*;
pub use values::*;

/// Descriptions and remedies of members and arguments that several functions have.
pub const RESERVED: &str = "reserved\0is not 0\0Set it to 0.";
/// As [`RESERVED`].
pub const FLAGS: &str = "flags\0has bits that this function does not know\0Clear them.";
