//! The options of a copy.

use core::ptr::null_mut;

use crate::abi::DLPACK_FLAG_BITMASK_IS_SUBBYTE_TYPE_PADDED;
use crate::backend::Stream;
use crate::cpu::Parallel;
use crate::validate::Rules;

/// Streams on which source and destination are ordered.
#[derive(Clone, Copy)]
pub struct Streams {
    /// Stream of the source's device that computes its elements.
    pub src: Stream,
    /// Stream of the destination's device that will use them.
    pub dst: Stream,
    /// Return once the work is enqueued.
    pub enqueue_only: bool,
}

impl Streams {
    /// Default streams, synchronous.
    pub const NONE: Streams = Streams { src: null_mut(), dst: null_mut(), enqueue_only: false };

    /// Whether the caller gave a stream or DLRS_COPY_ASYNC.
    pub fn any(&self) -> bool {
        self.enqueue_only || !self.src.is_null() || !self.dst.is_null()
    }
}

/// Options of a copy.
#[derive(Clone, Copy)]
pub struct Options {
    /// Source and destination may share memory: the result is as if through a temporary.
    pub allow_overlap: bool,
    /// Elements are copied as bytes: their dtype may be unknown.
    pub raw_bytes: bool,
    /// Between packed and padded elements too.
    pub repack: bool,
    /// For conversions: values too large become the largest finite value.
    pub saturate: bool,
    /// Threads.
    pub parallel: Parallel,
    /// Order with other work of devices.
    pub streams: Streams,
}

impl Options {
    /// The defaults: threads by the library's choice, synchronous.
    pub const DEFAULT: Options = Options {
        allow_overlap: false,
        raw_bytes: false,
        repack: false,
        saturate: false,
        parallel: Parallel { threads: 0, hook: None },
        streams: Streams::NONE,
    };

    /// Requirements on source and destination.
    pub fn rules(&self) -> Rules {
        if self.raw_bytes { Rules::RAW } else { Rules::COPY }
    }
}

/// Whether a copy may be made.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum CopyPolicy {
    /// No: fail instead.
    Never,
    /// Only if a requirement needs it.
    IfNeeded,
    /// Always.
    Always,
}

pub(super) const PADDED: u64 = DLPACK_FLAG_BITMASK_IS_SUBBYTE_TYPE_PADDED;
