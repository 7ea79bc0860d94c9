//! What a packed text is: a row of pieces. A byte below [`EARLIER`] says that as many bytes and one
//! more follow as they are; any other, less [`EARLIER`], how many bytes above [`LEAST`] stand
//! earlier too, and the two bytes behind it how far back, low byte first.

/// The shortest piece that stands earlier.
pub const LEAST: usize = 4;
/// From here on a first byte says that its piece stands earlier.
pub const EARLIER: u8 = 128;
