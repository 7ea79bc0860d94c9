//! The format of a packed text: a sequence of pieces. A byte below [`EARLIER`] is followed by that
//! many bytes and one more, unpacked. Any other, less [`EARLIER`], is the length above [`LEAST`] of
//! an earlier sequence; the next two bytes are its distance, low byte first.

/// The shortest piece that stands earlier.
pub const LEAST: usize = 4;
/// From here on a first byte says that its piece stands earlier.
pub const EARLIER: u8 = 128;
