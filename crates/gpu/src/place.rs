//! Where a copy happens.

use super::context::Current;
use super::vendor::Ptr;

/// Where a copy is enqueued.
#[derive(Clone, Copy)]
pub struct Place<'a> {
    /// The device that copies.
    pub here: &'a Current<'a>,
    /// Its stream.
    pub stream: Ptr,
    /// Whether one side is host memory.
    pub host: bool,
}

/// The other device of a copy between two, which the copying device reads or `writes`.
#[derive(Clone, Copy)]
pub struct Far {
    /// Its ordinal.
    pub ordinal: i32,
    /// Whether the destination is on it.
    pub writes: bool,
}

impl Far {
    /// The values for the source and for the destination.
    pub fn ends<T>(self, near: T, far: T) -> (T, T) {
        if self.writes { (near, far) } else { (far, near) }
    }
}
