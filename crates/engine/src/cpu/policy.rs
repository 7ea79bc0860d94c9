//! Thresholds for non-temporal stores, prefetches and threads: one row of sizes in bytes, computed
//! from the cache sizes that the processor reports, for all vendors.
use core::sync::atomic::{AtomicUsize, Ordering::Relaxed};

#[cfg(not(target_arch = "x86_64"))]
use crate::platform;

/// One column of the row.
#[derive(Clone, Copy)]
enum Size {
    /// L2 of one core.
    Second,
    /// One way of L2: lines so far apart are in the same set.
    Way,
    /// Outputs from which reads that are far apart are prefetched: output and source exceed L2.
    PrefetchFrom,
    /// Outputs from which transposes and shuffles use non-temporal stores: plain stores would read
    /// each line from memory in an order that the hardware does not prefetch.
    ScatteredFrom,
    /// Outputs from which all others do, too: source and destination exceed the last-level cache.
    StreamFrom,
    /// Bytes that are worth a thread.
    ThreadFrom,
    /// The least of the last four: no decision is needed below.
    Near,
}

const SIZES: usize = 7;

/// 0: not computed yet.
static ROW: [AtomicUsize; SIZES] = [const { AtomicUsize::new(0) }; SIZES];

impl Size {
    #[inline(always)]
    fn of(self) -> usize {
        match ROW[self as usize].load(Relaxed) {
            0 => self.asked(),
            known => known,
        }
    }

    fn set(self, bytes: usize) {
        ROW[self as usize].store(bytes.max(1), Relaxed);
    }

    /// Queries the processor.
    #[cold]
    #[inline(never)]
    fn asked(self) -> usize {
        let Told { second, ways, last } = Told::read();
        let rows = [
            (Size::Second, second),
            (Size::Way, second / ways.max(1)),
            (Size::PrefetchFrom, second / 2),
            (Size::ScatteredFrom, last / 8),
            (Size::StreamFrom, last / 2),
            (Size::ThreadFrom, THREAD_FROM),
            (Size::Near, (second / 2).min(last / 8)),
        ];
        for (size, bytes) in rows {
            // Values set by a test stay.
            let _ = ROW[size as usize].compare_exchange(0, bytes.max(1), Relaxed, Relaxed);
        }
        ROW[self as usize].load(Relaxed)
    }
}

/// About the bytes copied in ten times the time to create and join a thread (20 us on an idle
/// machine): smaller parts are faster on the calling thread.
const THREAD_FROM: usize = 4 << 20;

/// The bytes that are worth a part for a thread that waits for it.
pub(super) fn part_from() -> u64 {
    thread_from().min(64 << 10)
}

/// The bytes that are worth a thread.
pub(super) fn thread_from() -> u64 {
    Size::ThreadFrom.of() as u64
}

/// Bytes of one core's L2.
pub fn second() -> usize {
    Size::Second.of()
}

/// A cache of one core, in bytes.
pub(super) struct Caches {
    /// Total size.
    pub(super) nbytes: usize,
    /// Size of one way.
    pub(super) way: usize,
}

/// L2.
pub(super) fn caches() -> Caches {
    Caches { nbytes: Size::Second.of(), way: Size::Way.of() }
}

/// Replaces sizes, for tests and measurements: outputs of at least `stream` bytes use non-temporal
/// stores, and each thread gets at least `thread` bytes.
pub fn set_thresholds(stream: usize, thread: usize) {
    Size::StreamFrom.set(stream);
    Size::ScatteredFrom.set(stream);
    Size::ThreadFrom.set(thread);
    Size::Near.set(stream.min(thread).min(Size::PrefetchFrom.of()));
}

/// Whether one thread writes an output of so many bytes by plain stores, and prefetches nothing.
#[inline(always)]
pub fn near(nbytes: usize) -> bool {
    nbytes < Size::Near.of()
}

/// How an output is written.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Reach {
    /// By non-temporal stores.
    pub(super) stream: bool,
    /// Transposes and shuffles use non-temporal stores, from smaller outputs on.
    pub(super) stream_scattered: bool,
    /// Reads that are far apart are prefetched.
    pub(super) prefetch: bool,
}

impl Reach {
    /// Fits into L1.
    pub(super) const NEAR: Reach =
        Reach { stream: false, stream_scattered: false, prefetch: false };
}

/// How an output of so many bytes is written.
#[inline]
pub(super) fn reach(nbytes: u64) -> Reach {
    if nbytes < Size::Near.of() as u64 {
        return Reach::NEAR;
    }
    let from = |size: Size| nbytes >= size.of() as u64;
    Reach {
        stream: from(Size::StreamFrom),
        stream_scattered: from(Size::ScatteredFrom),
        prefetch: from(Size::PrefetchFrom),
    }
}

/// Cache sizes of one core, in bytes.
struct Told {
    second: usize,
    /// Number of ways of L2.
    ways: usize,
    last: usize,
}

impl Told {
    /// Defaults, where the machine reports nothing or an impossible value.
    const USUAL: Told = Told { second: 512 << 10, ways: 8, last: 8 << 20 };

    /// The last-level cache that one core can count on: a larger one is a whole server's, and a
    /// virtual machine reports it whatever its share.
    const LAST_MOST: usize = 32 << 20;

    fn read() -> Told {
        let Told { second, ways, last } = Told::asked();
        let second =
            if (64 << 10..=64 << 20).contains(&second) { second } else { Self::USUAL.second };
        let ways = if (1..=64).contains(&ways) { ways } else { Self::USUAL.ways };
        // A processor without L3 reports none.
        let last = last.clamp(second, Self::LAST_MOST.max(second));
        Told { second, ways, last }
    }

    /// From CPUID: leaf 4, or AMD's equivalent.
    #[cfg(target_arch = "x86_64")]
    fn asked() -> Told {
        use core::arch::x86_64::{__cpuid, __cpuid_count};
        if cfg!(miri) {
            return Told::USUAL;
        }
        let topology =
            __cpuid(0x8000_0000).eax >= 0x8000_001d && __cpuid(0x8000_0001).ecx >> 22 & 1 == 1;
        let leaf = if topology { 0x8000_001d } else { 4 };
        if leaf == 4 && __cpuid(0).eax < 4 {
            return Told::USUAL;
        }
        let mut told = Told { second: 0, ways: 0, last: 0 };
        for i in 0..8 {
            let found = __cpuid_count(leaf, i);
            let ways = (found.ebx >> 22) as usize + 1;
            let parts = (found.ebx >> 12 & 1023) as usize + 1;
            let line = (found.ebx & 4095) as usize + 1;
            let sets = found.ecx as usize + 1;
            let bytes = ways.saturating_mul(parts).saturating_mul(line).saturating_mul(sets);
            // Kinds: 0 none, 1 data, 2 instructions, 3 both.
            match (found.eax & 31, found.eax >> 5 & 7) {
                (0, _) => break,
                (1 | 3, 2) => (told.second, told.ways) = (bytes, ways),
                (1 | 3, 3..) => told.last = bytes,
                _ => {}
            }
        }
        told
    }

    /// As the system reports.
    #[cfg(not(target_arch = "x86_64"))]
    fn asked() -> Told {
        let [second, ways, last] = platform::caches();
        Told { second, ways, last: if last == 0 { Told::USUAL.last } else { last } }
    }
}
