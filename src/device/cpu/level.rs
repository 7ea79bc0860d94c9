//! Which instructions to use: asked of the processor once, and settable by tests.
use core::sync::atomic::{AtomicBool, AtomicU8, AtomicUsize, Ordering};

use super::ops::Ops;
use super::simd::{detect, table};
use super::tuning::tuning;

/// A set of kernels. A higher level includes the lower ones of the same processor family.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[repr(u8)]
pub enum Level {
    /// No instructions beyond the target's baseline.
    Portable = 1,
    /// AArch64 vectors.
    Neon = 2,
    /// x86 with 256-bit vectors, and BMI2.
    Avx2 = 3,
    /// x86 with 512-bit vectors (F, BW, VL).
    Avx512 = 4,
    /// The same with permutations of bytes (VBMI).
    Vbmi = 5,
}

impl Level {
    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Level::Portable => "portable",
            Level::Neon => "neon",
            Level::Avx2 => "avx2",
            Level::Avx512 => "avx512",
            Level::Vbmi => "vbmi",
        }
    }
}

/// 0: not asked yet.
static LEVEL: AtomicU8 = AtomicU8::new(0);

/// The highest level that this processor and its operating system support.
pub fn detected() -> Level {
    detect()
}

/// The level in use.
pub fn level() -> Level {
    match LEVEL.load(Ordering::Relaxed) {
        1 => Level::Portable,
        2 => Level::Neon,
        3 => Level::Avx2,
        4 => Level::Avx512,
        5 => Level::Vbmi,
        _ => {
            let found = detect();
            LEVEL.store(found as u8, Ordering::Relaxed);
            found
        }
    }
}

/// Makes every later copy use `level`, for tests and measurements; false, and nothing changes, if
/// this processor cannot.
pub fn set_level(level: Level) -> bool {
    let found = detect();
    let can =
        level == Level::Portable || level == found || (level >= Level::Avx2 && level <= found);
    if can {
        LEVEL.store(level as u8, Ordering::Relaxed);
    }
    can
}

/// The kernels of the level in use.
pub(super) fn ops() -> &'static Ops {
    table(level())
}

/// Bytes of an output up to which loops alone may be the fastest way: with the source they fit into
/// the second-level cache.
pub(super) const NEST_MOST: i64 = 256 << 10;

/// One more than the bytes from which an output goes past the caches (0: what suits the processor),
/// bytes that are worth a thread, and whether loops alone may do.
static STREAM_FROM: AtomicUsize = AtomicUsize::new(0);
static THREAD_FROM: AtomicUsize = AtomicUsize::new(4 << 20);
static NESTED: AtomicBool = AtomicBool::new(true);

pub(super) fn stream_from() -> u64 {
    match STREAM_FROM.load(Ordering::Relaxed) {
        0 => tuning().all_from,
        more => more as u64 - 1,
    }
}

pub(super) fn thread_from() -> u64 {
    THREAD_FROM.load(Ordering::Relaxed).max(1) as u64
}

/// The bytes of the largest output that loops alone may copy, if `most` are as fast.
pub(super) fn nest_most(most: i64) -> i64 {
    if NESTED.load(Ordering::Relaxed) { most } else { 0 }
}

/// Has plans carried out by loops alone where these are fast, as is usual, or not, for tests and
/// measurements.
pub fn set_nested(on: bool) {
    NESTED.store(on, Ordering::Relaxed);
}

/// Replaces both sizes, for tests and measurements: outputs of at least `stream` bytes go past the
/// caches, and each thread gets at least `thread` bytes.
pub fn set_thresholds(stream: usize, thread: usize) {
    STREAM_FROM.store(stream.saturating_add(1), Ordering::Relaxed);
    THREAD_FROM.store(thread, Ordering::Relaxed);
}
