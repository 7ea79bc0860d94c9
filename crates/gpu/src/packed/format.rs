//! The LZ77 format of packed texts: a sequence of pieces. A first byte below [`EARLIER`] is the
//! number of literal bytes that follow, less one. Any other is the length of a match, less
//! [`LEAST`], plus [`EARLIER`]; its distance is the next two bytes, low byte first.

/// The shortest match.
pub const LEAST: usize = 4;
/// The least first byte of a match.
pub const EARLIER: u8 = 128;
