//! What suits a make of processors: the same results, in another order.
//!
//! Measured (benches/notes.md), not derived: makes differ in how many rows their prefetchers
//! follow, and in what asking for lines does.
use core::sync::atomic::{AtomicU8, Ordering};

use super::level::{Level, NEST_MOST, level};
use super::simd::maker;

/// Makes of processors, each with ways that suit it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Make {
    /// Any other.
    Usual = 1,
    /// AMD's, and Hygon's, up to Zen 4.
    Amd = 2,
    /// AMD's from Zen 5 on.
    Zen5 = 3,
}

/// The ways of a make of processors.
pub(super) struct Tuning {
    /// Source rows that the processor follows by itself, fetching ahead: of more, lines are asked
    /// for.
    pub(super) followed: usize,
    /// Source rows in use at a time where there is a choice: in the caches, by log2 of the
    /// element's bytes.
    pub(super) cached: [usize; 5],
    /// Bytes of destination rows that start anywhere in a line from which it is 64, not 128.
    pub(super) ragged: usize,
    /// Past them, and bytes of each that are asked for at once, by log2 of the element's bytes.
    pub(super) past: [[usize; 2]; 5],
    /// Likewise where the source may lie in the caches.
    pub(super) early: [[usize; 2]; 5],
    /// Past them, if they are at most a kilobyte apart.
    pub(super) near: usize,
    /// Past them, if no stride tells where they are.
    pub(super) listed: usize,
    /// Past them, if the destination's rows start anywhere in a line, by log2 of the element's
    /// bytes.
    pub(super) shared: [usize; 5],
    /// Bytes of a source row that are asked for at once (memory is slow to change its rows), and
    /// how far ahead.
    pub(super) ahead: [usize; 2],
    /// Bytes of source rows that are read once before they are used, a few rows at a time, where
    /// that is faster than to ask for lines. 0: nowhere.
    pub(super) touched: usize,
    /// log2 of the bytes of elements from which long rows are turned where they are, past the
    /// caches: of less they are copied next to one another first.
    pub(super) copied: u32,
    /// Bytes of elements from which small faces go past the caches where they are. Of less, they
    /// are turned in memory of their own: outputs of so many bytes in which all rows begin in the
    /// same place of a line, but not with it, and others.
    pub(super) alone: (usize, [u64; 2]),
    /// log2 of the bytes of elements of which faces whose rows begin in others' lines go past the
    /// caches line by line, element by element.
    pub(super) straight: u32,
    /// Bytes of an output from which they are asked for, in the caches, by log2 of the element's
    /// bytes.
    pub(super) ahead_from: [u64; 5],
    /// Likewise where elements are copied one by one, which asking makes slower in the caches.
    pub(super) rows_from: u64,
    /// Rows in use beyond which lines that are asked for come into the second level only: the first
    /// one, of few ways, would lose them again.
    #[allow(dead_code)] // by targets without SIMD kernels
    pub(super) second: usize,
    /// Bytes between destination rows in the caches from which their lines are asked for.
    pub(super) apart: usize,
    /// How far ahead lines of the destination are asked for: of runs, where output and source do
    /// not fit into the second-level cache, and of planes and fills with AVX-512. 0: they are not.
    pub(super) soon: usize,
    /// Whether long runs go past the caches four pages at a time: the processor fetches ahead
    /// within pages.
    pub(super) pages: bool,
    /// Bytes of rows that are read backwards up to which they are made in the destination's order,
    /// past the caches, and the next ones asked for. 0: they are made backwards, too.
    pub(super) backwards: i64,
    /// Bytes of runs from which those that share source lines are not copied together, in the
    /// caches: one destination row after the other is faster.
    pub(super) beside: usize,
    /// Whether what goes past the caches may be made in slabs that stay in them.
    pub(super) slabs: bool,
    /// Whether packed elements go by tiles of which lines are asked for; if not, strips are as wide
    /// as in the caches.
    pub(super) packed: bool,
    /// Whether nibbles go by squares where they can.
    pub(super) nibbles: bool,
    /// Whether elements of one and two bytes that stay in the caches are mostly turned in halves of
    /// registers of 64 bytes, which there are more instructions for at a time.
    pub(super) halves: bool,
    /// log2 of the bytes of elements from which rows that start anywhere in a line go past the
    /// caches through windows: below, squares share their lines, where they can.
    pub(super) windows: u32,
    /// Bytes of an output from which all of it goes past the caches. What lies in them already is
    /// written slowly so; larger ones do not.
    pub(super) all_from: u64,
    /// Bytes of an output from which transposes go past the caches, if nothing else does yet, by
    /// log2 of the element's bytes: by squares, and where elements may be copied one by one, or are
    /// where lists say.
    pub(super) stream_from: [[u64; 2]; 5],
    /// Whether of transposes only those whose destination rows are whole lines, and long or pages
    /// apart, go past them so early.
    pub(super) stays: bool,
    /// Bytes of an output from which pixels go to planes past the caches, if nothing else does yet.
    pub(super) split_from: u64,
    /// Bytes of an output from which squares of single bytes share lines of the destination to go
    /// past the caches before all does. `u64::MAX`: they never do.
    pub(super) bytes_from: u64,
    /// Whether an element that is repeated goes past the caches: not where ordinary stores of whole
    /// lines read nothing either.
    pub(super) fills: bool,
    /// Faces of 8 bytes, and of 4 if rows are found by lists, go by squares of any size if more
    /// than one element in so many is not in whole lines: in the caches, and where they would go
    /// past them. 0: none does, nor of 1 and 2 bytes.
    pub(super) uneven: [i64; 2],
    /// Elements of 4 bytes of the longest destination rows that do so though no list finds them:
    /// of outputs from 1 MiB on that stay in the caches. 0: none does, nor those of 1, 2 and 8
    /// bytes that were measured with them ([`super::odd`]).
    pub(super) brief: i64,
    /// Whether faces of 8 bytes that no list finds go by them, too, if source rows are short.
    pub(super) strided: bool,
    /// log2 of the bytes from which elements may be turned row by row.
    pub(super) rows_log: u32,
    /// Whether loops alone are the fastest for less than 16 bytes, too, where few source lines lie
    /// between neighbours ([`super::nest::light`]), and bytes of the largest output they copy of
    /// 8 bytes, 32 and 64.
    pub(super) nested: (bool, i64),
    /// Lines that share a place in the first-level cache, of those between neighbours, beyond which
    /// loops alone lose them. 0: no more is asked than whether some lie parts of pages apart.
    pub(super) ways: i64,
    /// Outputs of elements of 16 bytes that loops alone copy: bytes at most, and, of one that does
    /// not fit into the second-level cache, how many source lines may lie between neighbours:
    /// lines that are near one another, and others. Smaller ones, then larger ones; and larger
    /// ones still, if few that are near do ([`super::nest::compact`]).
    pub(super) sixteens: [Loops; 2],
    /// The same, of runs of 17 to 1,024 bytes, but 32 and 64.
    pub(super) runs: [Loops; 2],
    /// The same, of elements of 9 to 15 bytes.
    pub(super) nines: [Loops; 2],
}

/// Bytes of outputs at most, and source lines between neighbours at most ([`Tuning::sixteens`]).
pub(super) type Loops = (i64, [i64; 2]);

/// Lines that lie in the first-level cache; and in the second-level one, where a few instructions
/// move much.
pub(super) const LINES: i64 = 512;
pub(super) const SECOND: i64 = 2048;

impl Tuning {
    /// Whether it is of processors on which rows are read before they are used: AMD's with AVX2
    /// alone, where what goes with that was measured.
    pub(super) fn reads(&self) -> bool {
        self.touched > 0
    }
}

static USUAL: Tuning = Tuning {
    followed: 32,
    cached: [32; 5],
    ragged: usize::MAX,
    past: [[32, 256]; 5],
    early: [[32, 256]; 5],
    near: 32,
    listed: 32,
    shared: [32; 5],
    ahead: [256, 256],
    touched: 0,
    copied: 0,
    alone: (0, [u64::MAX; 2]),
    straight: u32::MAX,
    ahead_from: [u64::MAX, u64::MAX, u64::MAX, 0, 0],
    rows_from: u64::MAX,
    second: usize::MAX,
    apart: 512,
    soon: 0,
    pages: false,
    backwards: 0,
    beside: usize::MAX,
    slabs: false,
    packed: true,
    nibbles: false,
    halves: false,
    windows: 0,
    all_from: 16 << 20,
    stream_from: [[u64::MAX; 2]; 5],
    stays: false,
    split_from: u64::MAX,
    bytes_from: u64::MAX,
    fills: true,
    uneven: [0; 2],
    brief: 0,
    strided: false,
    rows_log: 3,
    nested: (false, NEST_MOST),
    ways: 0,
    sixteens: [(NEST_MOST, [0; 2]); 2],
    runs: [(NEST_MOST, [SECOND; 2]); 2],
    nines: [(NEST_MOST, [LINES; 2]); 2],
};

/// Whoever else has AVX2: Intel's. Measured on a Xeon made to go without AVX-512, but for when to
/// go past the caches: third ones are mostly smaller than its.
static NARROW: Tuning = Tuning {
    copied: 2,
    alone: (8, [16 << 20; 2]),
    straight: 4,
    ahead_from: [u64::MAX, u64::MAX, 8 << 20, 0, 0],
    apart: 0,
    soon: 512,
    slabs: true,
    backwards: 32 << 10,
    uneven: [8, 8],
    brief: 48,
    nested: (true, i64::MAX),
    ways: 11,
    sixteens: [(i64::MAX, [SECOND; 2]); 2],
    runs: [(i64::MAX, [SECOND; 2]); 2],
    nines: [(2 << 20, [24; 2]), (i64::MAX, [150; 2])],
    ..USUAL
};

/// Whoever else has AVX-512: 2 MiB of second-level cache, and before memory a large third one, in
/// which stores wait for their lines.
static WIDE: Tuning = Tuning {
    cached: [128, 64, 32, 16, 16],
    ragged: 2 << 10,
    alone: (8, [32 << 20; 2]),
    pages: true,
    nibbles: true,
    halves: true,
    all_from: 32 << 20,
    stream_from: [[16 << 20; 2], [16 << 20; 2], [16 << 20; 2], [u64::MAX; 2], [u64::MAX; 2]],
    stays: true,
    strided: true,
    nines: [(i64::MAX, [LINES; 2]); 2],
    ..NARROW
};

/// Outputs whose squares go past the caches, and those of which all does.
const MIDDLE: [u64; 2] = [4 << 20, 12 << 20];

/// Zen 4.
static AMD: Tuning = Tuning {
    followed: 16,
    cached: [256; 5],
    ragged: usize::MAX,
    past: [[512, 64], [512, 64], [128, 64], [512, 64], [256, 64]],
    early: [[128, 64], [128, 64], [64, 64], [64, 64], [128, 64]],
    near: 256,
    listed: 128,
    shared: [512, 512, 512, 128, 128],
    ahead: [64, 128],
    touched: 0,
    copied: 0,
    alone: (0, [u64::MAX; 2]),
    straight: u32::MAX,
    ahead_from: [0, 6 << 20, 0, 0, 0],
    rows_from: 5 << 20,
    second: 0,
    apart: usize::MAX,
    soon: 0,
    pages: false,
    backwards: 0,
    beside: usize::MAX,
    slabs: false,
    packed: false,
    nibbles: true,
    halves: false,
    windows: u32::MAX,
    all_from: 16 << 20,
    stream_from: [MIDDLE; 5],
    stays: false,
    split_from: MIDDLE[0],
    bytes_from: 4 << 20,
    fills: false,
    uneven: [32, 8],
    brief: 0,
    strided: false,
    rows_log: 4,
    nested: (false, NEST_MOST),
    ways: 0,
    sixteens: [(5 << 20, [48; 2]); 2],
    runs: [(NEST_MOST, [SECOND; 2]); 2],
    nines: [(NEST_MOST, [LINES; 2]); 2],
};

/// Zen 5: the same caches before a memory that is twice as fast.
static ZEN5: Tuning = Tuning {
    past: [[512, 64], [256, 128], [128, 64], [512, 64], [128, 128]],
    early: [[512, 128], [128, 128], [64, 128], [32, 128], [128, 128]],
    listed: 64,
    ahead: [128, 128],
    ahead_from: [10 << 20; 5],
    second: 64,
    beside: 64,
    bytes_from: 10 << 20,
    fills: true,
    nested: (false, i64::MAX),
    sixteens: [(i64::MAX, [SECOND; 2]); 2],
    runs: [(i64::MAX, [SECOND; 2]); 2],
    nines: [(i64::MAX, [LINES; 2]); 2],
    ..AMD
};

/// Zen 3, and whoever else has no AVX-512.
static AMD_NARROW: Tuning = Tuning {
    past: [[64, 64], [64, 64], [16, 64], [16, 64], [16, 64]],
    early: [[64, 64], [64, 64], [32, 64], [32, 64], [16, 64]],
    near: 64,
    listed: 64,
    ahead: [128, 128],
    ahead_from: [6 << 20; 5],
    touched: 4096,
    copied: 5,
    alone: (16, [4 << 20, 8 << 20]),
    straight: 3,
    stream_from: [MIDDLE, MIDDLE, MIDDLE, MIDDLE, [4 << 20, 8 << 20]],
    sixteens: [(4 << 20, [SECOND; 2]), (16 << 20, [512, 32])],
    runs: [(4 << 20, [SECOND; 2]), (16 << 20, [512; 2])],
    windows: 2,
    ..AMD
};

/// 0: not asked yet.
static MAKE: AtomicU8 = AtomicU8::new(0);

/// The tuning in use.
pub(super) fn tuning() -> &'static Tuning {
    match (make(), level()) {
        (Make::Usual, Level::Portable | Level::Neon) => &USUAL,
        (Make::Usual, Level::Avx2) => &NARROW,
        (Make::Usual, _) => &WIDE,
        (_, Level::Portable | Level::Neon | Level::Avx2) => &AMD_NARROW,
        (Make::Amd, _) => &AMD,
        (Make::Zen5, _) => &ZEN5,
    }
}

/// The make that copies suit; asked of the processor once.
pub fn make() -> Make {
    match MAKE.load(Ordering::Relaxed) {
        1 => Make::Usual,
        2 => Make::Amd,
        3 => Make::Zen5,
        _ => {
            let found = maker();
            set_make(found);
            found
        }
    }
}

/// Makes every later copy go the ways that suit `make`, for tests and measurements.
pub fn set_make(make: Make) {
    MAKE.store(make as u8, Ordering::Relaxed);
}
