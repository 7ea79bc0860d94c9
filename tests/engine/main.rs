//! The CPU copy engine against an oracle that copies one bit at a time, between guard pages.
use std::ffi::c_void;
use std::sync::{Mutex, MutexGuard, PoisonError};

use dlpack_rs::cpu::{
    Level, Parallel, ParallelFor, copy, detected, level, set_level, set_thresholds,
};
use dlpack_rs::plan::{Dim, Item, Plan};
use model::{Case, Random, Run, case, memory};

mod elements;
mod kinds;
mod matrix;
mod model;
mod page;

const SERIAL: Parallel = Parallel { threads: 1, hook: None };

/// The level and the thresholds are global: one test at a time.
fn lock() -> MutexGuard<'static, ()> {
    static ONE: Mutex<()> = Mutex::new(());
    ONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// All levels that the processor supports, and those in plain Rust; LEVELS="avx512 vbmi" requires
/// exactly these (an emulator is slow).
fn levels() -> Vec<Level> {
    let mut levels: Vec<_> = Level::ALL.into_iter().filter(|&level| set_level(level)).collect();
    assert!(levels.contains(&detected()));
    if let Ok(only) = std::env::var("LEVELS") {
        let only: Vec<_> = only.split(' ').collect();
        levels.retain(|level| only.contains(&level.name()));
        assert_eq!(levels.len(), only.len(), "{levels:?} alone of {only:?} on this processor");
    }
    levels
}

impl Run for Parallel {
    unsafe fn run(&self, plan: &Plan) {
        // SAFETY: the caller's promise.
        unsafe { copy(&mut { *plan }, self) }.unwrap()
    }
}

const NEVER: usize = usize::MAX;

/// Runs `one` at every level, with and without streaming.
fn everywhere(one: impl FnMut(&str)) {
    ways(&[0, NEVER], one);
}

/// Runs `one` at every level, streaming from this many bytes on.
fn ways(streams: &[usize], mut one: impl FnMut(&str)) {
    each_level(|this| {
        for &stream in streams {
            set_thresholds(stream, 1);
            one(&format!("{this:?}, streaming from {stream}"));
        }
    });
}

/// Runs `one` at every level, and restores all settings.
fn each_level(mut one: impl FnMut(Level)) {
    let _one = lock();
    for this in levels() {
        assert!(set_level(this) && level() == this);
        one(this);
    }
    set_level(detected());
    set_thresholds(3 << 20, 1 << 20);
}

/// The best level is detected: else these tests would miss it, and copies be slow.
#[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
#[test]
fn detects() {
    let avx2 = is_x86_feature_detected!("avx2") && is_x86_feature_detected!("bmi2");
    let avx512 = cfg!(target_arch = "x86_64")
        && is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512bw")
        && is_x86_feature_detected!("avx512vl");
    let best = match (avx2, avx512, is_x86_feature_detected!("avx512vbmi")) {
        (false, ..) => Level::Portable,
        (_, false, _) => Level::Avx2,
        (.., false) => Level::Avx512,
        _ => Level::Vbmi,
    };
    assert_eq!(detected(), best);
    let _one = lock();
    assert!(!set_level(Level::Neon), "of other processors");
}

#[test]
fn random_bytes() {
    let memory = memory();
    let sizes = [1, 1, 2, 2, 3, 4, 4, 4, 6, 8, 8, 12, 16, 16, 20, 24, 32, 48, 100, 1000];
    everywhere(|what| {
        let mut random = Random(0x9e37_79b9_7f4a_7c15);
        for _ in 0..500 {
            let size = random.one_of(&sizes);
            let most = if random.below(8) == 0 { 30_000 } else { 2_000 } / (1 + size as i64 / 8);
            let case = case(&mut random, Item::Bytes(size), most);
            case.check(&memory, &mut random, &SERIAL, what);
        }
    });
}

#[test]
fn random_bits() {
    let memory = memory();
    let widths = [1usize, 2, 3, 4, 4, 4, 5, 6, 6, 6, 7, 8, 9, 12, 24, 63, 100, 393];
    everywhere(|what| {
        let mut random = Random(0x1234_5678_9abc_def1);
        for _ in 0..300 {
            let width = random.one_of(&widths);
            let padded = width.max(8).next_multiple_of(8);
            let dst_slot = random.one_of(&[width, width, width, padded, padded, width + 1]);
            let case = case(&mut random, Item::Bits { width, dst_slot }, 3_000);
            case.check(&memory, &mut random, &SERIAL, what);
        }
    });
}

/// Groups of a few bytes in any order, some of them twice or not at all, adjacent in the
/// destination or with gaps: windows of 16 to 128 bytes, with positive, negative and zero strides,
/// and sides that end at a guard page.
#[test]
fn groups() {
    let memory = memory();
    everywhere(|what| {
        let mut random = Random(0x0c0f_fee0_0000_2468);
        for i in 0..320 {
            let size = random.one_of(&[1, 1, 1, 2, 3, 4, 4, 5, 7, 8, 12, 16, 20, 32]);
            let gap = |random: &mut Random| i / 4 % 2 * random.one_of(&[0, 1, size, 2 * size + 1]);
            let mut dims = Vec::new();
            let mut bytes = size;
            for _ in 0..i % 4 {
                let n = random.one_of(&[2, 2, 3, 3, 4, 5]);
                let src =
                    random.one_of(&[0, 1, size, -size, 2 * size, 3 * size, -3 * size, 16, 900]);
                if n * bytes <= 160 {
                    let dst = bytes + gap(&mut random);
                    dims.push(Dim { n, src, dst });
                    bytes = n * dst;
                }
            }
            let n = random.one_of(&[1, 2, 3, 20, 85, 129, 400, 1400]);
            let by =
                random.one_of(&[0, 1, 2, size, bytes, -bytes, bytes + 3, -bytes - 7, 40, -100]);
            bytes += gap(&mut random);
            dims.push(Dim { n, src: by, dst: bytes });
            let apart = n * bytes + random.one_of(&[0, 0, 1, 70]);
            dims.push(Dim { n: 3, src: random.one_of(&[0, 5, n * by]), dst: apart });
            dims.reverse();
            let case = Case { item: Item::Bytes(size as usize), dims };
            case.check(&memory, &mut random, &SERIAL, what);
        }
    });
}

/// `m` times a transposed matrix of `a` × `b` elements, `n` times over; with a gap before the next
/// matrix of the destination.
fn repeated([m, n, a, b]: [i64; 4], size: i64, gap: i64) -> Case {
    let block = a * b * size;
    let dims = vec![
        Dim { n: m, src: block, dst: n * block + gap },
        Dim { n, src: 0, dst: block },
        Dim { n: b, src: size, dst: a * size },
        Dim { n: a, src: b * size, dst: size },
    ];
    Case { item: Item::Bytes(size as usize), dims }
}

/// Interleaved rows of a destination, as many bytes apart as if they were adjacent, are not a run.
#[test]
fn interleaved_rows() {
    let memory = memory();
    ways(&[0], |what| {
        let mut random = Random(0x736c_6162_7300_0003);
        let dims = vec![
            Dim { n: 1200, src: 16, dst: 96 },
            Dim { n: 2, src: 1200 * 16, dst: 48 },
            Dim { n: 3, src: 2 * 1200 * 16, dst: 32 },
        ];
        Case { item: Item::Bytes(16), dims }.check(&memory, &mut random, &SERIAL, what);
    });
}

/// Two transposes of `a` × `b` packed elements: source rows `gap` bits further apart than whole
/// bytes, in either direction, destination rows `by_dst` bits apart.
fn turned(width: i64, (a, b): (i64, i64), gap: i64, by_dst: i64, random: &mut Random) -> Case {
    let by_src = (b * width + 7) / 8 * 8 + gap;
    let sign = random.one_of(&[1, -1]);
    let dims = vec![
        Dim { n: 2, src: a * by_src + gap, dst: b * by_dst },
        Dim { n: a, src: sign * by_src, dst: width },
        Dim { n: b, src: width, dst: by_dst },
    ];
    Case { item: Item::Bits { width: width as usize, dst_slot: width as usize }, dims }
}

/// Transposes of packed elements whose rows begin at every possible bit of a byte, on both sides,
/// and one at which kernels give up: adjacent, or cache lines apart, or nearly.
fn phases(width: i64, extents: &[(i64, i64)]) {
    let memory = memory();
    everywhere(|what| {
        let mut random = Random(0x4646_4646_0000_0001 + width as u64);
        let steps = [0, 2, 4, 6, 12, 3].map(|bits| if width == 4 { 2 * bits } else { bits });
        for (i, &(a, b)) in extents.iter().enumerate() {
            for gap in steps {
                let dense = a * width;
                let lines = (dense + 511) / 512 * 512;
                let odd = random.one_of(&steps);
                let by_dst = random.one_of(&[dense, lines, lines + 64, lines + odd, dense + odd]);
                let case = turned(width, (a, b), gap, by_dst, &mut random);
                let places = [random.next(), 1 + 4 * (i as u64 % 64)];
                case.check_at(places, &memory, &mut random, &SERIAL, what);
                case.check(&memory, &mut random, &SERIAL, what);
            }
        }
    });
}

/// Packed nibbles: tiles, strips and blocks in both directions, and remainders.
#[test]
fn transposes_of_nibbles() {
    let mut extents = vec![(63, 40), (70, 31), (70, 4130)];
    for a in [64, 65, 127, 128, 130, 200, 257, 300, 383, 385, 448, 511, 513, 576, 770, 903] {
        extents.extend([(a, 32), (a, 33 + a % 16), (a, 64 + a % 32)]);
    }
    extents.extend([(128, 128), (128, 260), (256, 384), (300, 256), (512, 289), (648, 420)]);
    phases(4, &extents);
}

/// Packed nibbles in long rows of whole cache lines, whole bytes or neither, on both sides, and
/// some as large as the L2 cache and larger.
#[test]
fn transposes_of_nibbles_to_long_rows() {
    let memory = memory();
    let one = |(a, b): (i64, i64), more: &[i64], random: &mut Random, what: &str| {
        let dense = (a + 1) / 2 * 8;
        let lines = (dense + 511) / 512 * 512;
        let by_dst = random.one_of(more).checked_add(lines).unwrap_or(dense);
        let by_dst = by_dst * random.one_of(&[1, 1, 1, -1]);
        // Rows of whole bytes, and such as begin in the middle of one.
        for gaps in [[0, 8, 64], [4, 12, 508]] {
            let case = turned(4, (a, b), random.one_of(&gaps), by_dst, random);
            // At any offset in a cache line, or next to a guard page.
            let places = [0, 1].map(|_| random.below(256));
            case.check_at(places, &memory, random, &SERIAL, what);
        }
    };
    everywhere(|what| {
        let mut random = Random(0x4444_57a6_0000_0001);
        for (a, b) in [(512, 256), (513, 1024), (640, 1170), (1023, 259), (1180, 400)] {
            let (a, b) = (a + random.below(3) as i64, b + random.below(9) as i64);
            one((a, b), &[i64::MAX, 0, 64, 8, 4, 4, 500], &mut random, what);
        }
    });
    ways(&[NEVER], |what| {
        let mut random = Random(0x4444_57a6_0000_0002);
        for (a, b, more) in [(2048, 4100, 0), (2600, 3300, 8), (2051, 4200, 4)] {
            one((a, b), &[more], &mut random, what);
        }
    });
}

/// Matrices of packed elements of 6 bits.
#[test]
fn transposes_of_6_bit_elements() {
    let mut extents = vec![(31, 40), (40, 17), (40, 23), (40, 4130)];
    for a in [32, 33, 63, 64, 70, 127, 235, 255, 257, 266, 300, 319, 321, 352, 468, 490, 572, 700] {
        extents.extend([(a, 24), (a, 25 + a % 8), (a, 32 + a % 16)]);
    }
    phases(6, &extents);
}

/// Rows of every kind: runs, steps, fills, a few interleaved planes, long enough to stream.
#[test]
fn rows() {
    let memory = memory();
    everywhere(|what| {
        let mut random = Random(0xabcd_ef01_2345_6789);
        for size in [1, 2, 3, 4, 6, 8, 12, 16, 32, 100] {
            for step in -9..=9 {
                let n = random.one_of(&[1, 5, 33, 200, 1025]);
                let rows = random.one_of(&[1, 2, 5]);
                let dims = vec![
                    Dim { n: rows, src: 9 * n * size, dst: n * size + random.one_of(&[0, 0, 5]) },
                    Dim { n, src: step * size, dst: size },
                ];
                let case = Case { item: Item::Bytes(size as usize), dims };
                case.check(&memory, &mut random, &SERIAL, what);
            }
            for planes in 2..=9 {
                let n = random.one_of(&[4, 31, 100, 2000]);
                let odd = random.one_of(&[0, 0, 3, 64]);
                let plane = Dim { n: planes, src: n * size + odd, dst: size };
                let run = Dim { n, src: size, dst: planes * size };
                let weave = vec![Dim { n: 2, src: 20_000, dst: planes * n * size }, run, plane];
                let weave = Case { item: Item::Bytes(size as usize), dims: weave };
                if 2 * 20_000 > n * size {
                    weave.check(&memory, &mut random, &SERIAL, what);
                }
                let swapped = weave.dims.iter().map(|d| Dim { n: d.n, src: d.dst, dst: d.src });
                let mut unweave = Case { item: weave.item, dims: swapped.collect() };
                unweave.dims[0].dst = planes * (n * size + 64);
                unweave.check(&memory, &mut random, &SERIAL, what);
            }
        }
    });
}

/// One element for whole rows: shorter than a cache line and longer, in lines that the destination
/// shares, in and out of phase, and by copies of earlier output.
#[test]
fn fills() {
    let memory = memory();
    everywhere(|what| {
        let mut random = Random(0xf111_0000_0000_0001);
        for size in [1, 2, 3, 4, 8, 12, 16, 32, 64, 100, 1000] {
            for bytes in [40, 64, 130, 700, 1024, 1500, 5000, 20_000] {
                let (rows, n) = (random.one_of(&[1, 3, 4]), (bytes + size - 1) / size);
                let gap = random.one_of(&[0, 0, 24]);
                let row = Dim { n: rows, src: 2 * size, dst: n * size + gap };
                let outer = Dim { n: 2, src: 7 * size, dst: rows * row.dst + 8 };
                let dims = vec![outer, row, Dim { n, src: 0, dst: size }];
                let case = Case { item: Item::Bytes(size as usize), dims };
                case.check(&memory, &mut random, &SERIAL, what);
            }
        }
    });
}

/// Sub-byte tiles and rows: packed transposes, packed to padded and back, odd phases.
#[test]
fn packed() {
    let memory = memory();
    everywhere(|what| {
        let mut random = Random(0x0f0f_1111_2222_3333);
        for width in 1..=8i64 {
            for (src, dst) in [(width, width), (width, 8), (8, width)] {
                let (a, b) = (random.one_of(&[17, 64, 130]), random.one_of(&[16, 33, 100]));
                let (item, odd) =
                    (Item::Bits { width: width as usize, dst_slot: dst as usize }, random.below(2));
                let by_src = b * src + odd as i64 * 3;
                let transpose = vec![
                    Dim { n: a, src: by_src, dst },
                    Dim { n: b, src, dst: a * dst + random.below(9) as i64 },
                ];
                let rows = vec![
                    Dim { n: a, src: by_src, dst: b * dst + random.below(9) as i64 },
                    Dim { n: b, src, dst },
                ];
                let back = vec![Dim { n: a * b, src: -src, dst }];
                let front = vec![Dim { n: a * b, src, dst: -dst }];
                for dims in [transpose, rows, back, front] {
                    Case { item, dims }.check(&memory, &mut random, &SERIAL, what);
                }
            }
        }
    });
}

#[test]
fn large_elements() {
    let memory = memory();
    everywhere(|what| {
        let mut random = Random(77);
        let big = 2 << 20;
        let dims = vec![Dim { n: 3, src: -big, dst: big + 5 }];
        let case = Case { item: Item::Bytes(big as usize), dims };
        case.check(&memory, &mut random, &SERIAL, what);
        let (width, dst_slot) = (393_210, 393_216);
        let dims = vec![Dim { n: 3, src: width as i64, dst: dst_slot as i64 }];
        let case = Case { item: Item::Bits { width, dst_slot }, dims };
        case.check(&memory, &mut random, &SERIAL, what);
        for item in [Item::Bytes(1), Item::Bytes(16), Item::Bits { width: 3, dst_slot: 8 }] {
            let dims = vec![Dim { n: 1, src: -7, dst: 0 }; 64];
            Case { item, dims }.check(&memory, &mut random, &SERIAL, what);
        }
        let dims = (0..13).map(|i| Dim { n: 2, src: 1 << i, dst: 1 << (12 - i) });
        let mut dims: Vec<_> = dims.collect();
        dims.extend([Dim { n: 1, src: 5, dst: 5 }; 51]);
        Case { item: Item::Bytes(1), dims }.check(&memory, &mut random, &SERIAL, what);
    });
}

/// Transposes as large as the L2 cache and larger, in proportions of all kinds.
#[test]
fn large_transposes() {
    let memory = memory();
    let extents =
        [(4, 1030, 1050), (2, 1120, 2000), (1, 2112, 2064), (2, 4160, 544), (8, 700, 801)];
    let rows_of_16 = [(16, 61, 5589), (16, 60, 4001), (16, 71, 11200), (11, 820, 700)];
    let near_squares = [(1, 2560, 2048), (1, 3301, 3300), (3, 1301, 1402), (5, 1200, 1101)];
    let others = [
        (1, 3072, 1500),
        (2, 1536, 1500),
        (4, 768, 1401),
        (8, 640, 901),
        (16, 320, 823),
        (1, 2011, 2303),
        (2, 1101, 2101),
        (4, 1025, 1040),
        (1, 2048, 2112),
        (2, 320, 8192),
    ];
    ways(&[NEVER], |what| {
        let mut random = Random(0x4c41_5247_4500_0001);
        for (size, a, b) in extents.into_iter().chain(rows_of_16).chain(near_squares).chain(others)
        {
            for places in [[0, 0], [random.next(), random.next()]] {
                let rows = Dim { n: a, src: b * size, dst: size };
                let dims = vec![Dim { n: b, src: size, dst: a * size }, rows];
                let case = Case { item: Item::Bytes(size as usize), dims };
                case.check_at(places, &memory, &mut random, &SERIAL, what);
            }
        }
    });
}

/// Elements of whole bytes that are far apart, of positive strides: only these are compared.
#[cfg(target_pointer_width = "64")]
fn check_elements(case: &Case, [src, dst]: [&model::Guarded; 2], what: &str) {
    let (_, width, _) = case.bits();
    let from = src.place(case.extent(|d| d.src, width).1 as usize, 0);
    let to = dst.place(case.extent(|d| d.dst, width).1 as usize, 0);
    let bytes = |at: i64| (at / 8) as usize..((at + width) / 8) as usize;
    let mut random = Random(0x0fa2_0fa2_0000_0001);
    case.elements(|s, d| {
        random.fill(&mut from[bytes(s)]);
        to[bytes(d)].fill(!from[bytes(s)][0]);
    });
    // SAFETY: both extents are mapped; elements are distinct.
    unsafe { SERIAL.run(&case.plan(from.as_ptr(), to.as_mut_ptr())) };
    case.elements(|s, d| assert!(to[bytes(d)] == from[bytes(s)], "{what}: {case:?}"));
}

/// Rows further apart than 32 bits can express, on either side.
#[cfg(target_pointer_width = "64")]
#[test]
fn far() {
    const FAR: i64 = 320 << 20;
    let memory = [1 << 20, 9 << 28].map(model::Guarded::new);
    everywhere(|what| {
        for size in [1, 2, 3, 4, 8, 12, 16] {
            // Extents, and strides in elements near and far: sides of two dimensions.
            let dims = [(8, 1, FAR / size), (5, 8, 264), (8, 40, 33), (33, 320, 1)];
            for back in [false, true] {
                let dims = dims.map(|(n, near, far)| {
                    let (near, far) = (near * size, far * size);
                    if back {
                        Dim { n, src: near, dst: far }
                    } else {
                        Dim { n, src: far, dst: near }
                    }
                });
                let case = Case { item: Item::Bytes(size as usize), dims: dims.to_vec() };
                let [near, far] = &memory;
                check_elements(&case, if back { [near, far] } else { [far, near] }, what);
            }
        }
    });
}

/// Moves what is stored in sequence, from a random dimension on, to separate pages.
fn spread(random: &mut Random, dims: &mut [Dim], side: fn(&mut Dim) -> &mut i64) {
    let mut order: Vec<_> = (0..dims.len()).collect();
    order.sort_by_key(|&i| side(&mut dims[i]).abs());
    let from = random.below(dims.len() as u64 + 1) as usize;
    let mut next = 1;
    for (k, i) in order.into_iter().enumerate() {
        let (n, stride) = (dims[i].n, side(&mut dims[i]));
        if k >= from && *stride != 0 {
            let page = random.one_of(&[1, 2, 2, 3]) * 4096;
            let least = next.max(stride.abs());
            *stride = stride.signum() * (least + page - 1) / page * page;
        }
        next = next.max(stride.abs().saturating_mul(n));
    }
}

/// Pages without elements are inaccessible on both sides, for any number of threads.
#[test]
fn pages_without_elements() {
    let memory = memory();
    let sizes = [1, 1, 2, 2, 3, 4, 4, 5, 6, 7, 8, 9, 12, 15, 16, 20, 24, 64, 100];
    everywhere(|what| {
        let mut random = Random(0x0f1e_2d3c_4b5a_6978);
        for _ in 0..120 {
            let size = random.one_of(&sizes);
            let most = random.one_of(&[60_000, 3_000, 3_000, 1_000]) / (1 + size as i64 / 4);
            let mut case = case(&mut random, Item::Bytes(size), most);
            spread(&mut random, &mut case.dims, |dim| &mut dim.src);
            if random.below(2) == 0 {
                spread(&mut random, &mut case.dims, |dim| &mut dim.dst);
            }
            let (src, dst) =
                (case.extent(|dim| dim.src, 8 * size as i64), case.extent(|dim| dim.dst, 8));
            if (src.0 + src.1).max(dst.0 + dst.1) > 20 << 20 {
                continue;
            }
            let mut count = 0i64;
            let hook = ParallelFor { run: pool, ctx: (&raw mut count).cast(), warm: 0 };
            let threads = random.one_of(&[1, 1, 2, 3, 16]);
            let parallel = Parallel { threads, hook: Some(hook) };
            case.check(&memory, &mut random, &parallel, what);
        }
    });
}

/// Rows that end at page ends, with no memory behind them: only elements are read.
#[test]
fn rows_in_pages_of_their_own() {
    const PAGE: usize = 4096;
    const APART: usize = 2 * PAGE;
    const ROWS: usize = 300;
    const PIECES: usize = 17;
    const ROW: usize = 12 * PIECES;
    let memory = memory();
    let src = memory[0].place(APART * ROWS, 0).as_mut_ptr();
    let mut dst = vec![0; ROWS * ROW];
    let at = |row: usize, i: usize| APART * row + PAGE - ROW + i;
    for row in 0..ROWS {
        // SAFETY: within the memory, which nothing else uses.
        unsafe {
            (0..ROW).for_each(|i| src.add(at(row, i)).write((row + 7 * i) as u8));
            let behind = src.add(at(row, ROW)).cast();
            assert_eq!(libc::mprotect(behind, PAGE, libc::PROT_NONE), 0);
        }
    }
    let dims = vec![
        Dim { n: PIECES as i64, src: 12, dst: (12 * ROWS) as i64 },
        Dim { n: ROWS as i64, src: APART as i64, dst: 12 },
        Dim { n: 6, src: 1, dst: 2 },
        Dim { n: 2, src: 6, dst: 1 },
    ];
    let case = Case { item: Item::Bytes(1), dims };
    everywhere(|what| {
        dst.fill(0);
        // SAFETY: the elements exist, and the destination is as large as they are.
        unsafe { SERIAL.run(&case.plan(src.add(at(0, 0)), dst.as_mut_ptr())) };
        for (i, &byte) in dst.iter().enumerate() {
            let (piece, row, j, k) = (i / 12 / ROWS, i / 12 % ROWS, i % 12 / 2, i % 2);
            assert_eq!(byte, (row + 7 * (12 * piece + j + 6 * k)) as u8, "{what}: {i}");
        }
    });
}

/// The same for parts of one extent each: the bytes between their rows are not theirs.
#[test]
fn parts_in_pages_of_their_own() {
    const PAGE: usize = 4096;
    const APART: usize = 2 * PAGE;
    const LINE: usize = 64;
    const PARTS: usize = 16;
    const COPIES: usize = 36;
    const ROWS: usize = 100;
    const OUTER: usize = 23;
    const SIZE: usize = LINE / PARTS;
    let memory = memory();
    let src = memory[0].place(APART * ROWS * OUTER, 0).as_mut_ptr();
    let mut dst = vec![0; PARTS * COPIES * ROWS * OUTER * 2 * SIZE];
    for row in 0..ROWS * OUTER {
        // SAFETY: within the memory, which nothing else uses.
        unsafe {
            let end = src.add(APART * row + PAGE);
            (0..LINE).for_each(|i| end.sub(LINE - i).write((row + 7 * i) as u8));
            assert_eq!(libc::mprotect(end.cast(), PAGE, libc::PROT_NONE), 0);
        }
    }
    let dims = [[PARTS, SIZE], [COPIES, 0], [ROWS, APART], [OUTER, ROWS * APART]];
    let mut place = dst.len();
    let dims = dims.map(|[n, src]| {
        place /= n;
        Dim { n: n as i64, src: src as i64, dst: place as i64 }
    });
    let case = Case { item: Item::Bytes(SIZE), dims: dims.to_vec() };
    let mut count = 0i64;
    let hook = Some(ParallelFor { run: pool, ctx: (&raw mut count).cast(), warm: 0 });
    everywhere(|what| {
        dst.fill(0);
        let parallel = Parallel { threads: PARTS, hook };
        // SAFETY: the elements exist, and the destination has room for them.
        unsafe {
            let first = src.add(PAGE - LINE);
            parallel.run(&case.plan(first, dst.as_mut_ptr()));
        }
        for (i, elements) in dst.chunks(2 * SIZE).enumerate() {
            let (outer, row, part) = (i % OUTER, i / OUTER % ROWS, i / OUTER / ROWS / COPIES);
            let row = outer * ROWS + row;
            let right = |j| (row + 7 * (part * SIZE + j)) as u8;
            assert!((0..SIZE).all(|j| elements[j] == right(j)), "{what}: {i}");
        }
    });
    assert_eq!(count as usize % PARTS, 0);
}

/// Runs the bodies one after the other, last first; counts them.
unsafe extern "C" fn pool(
    ctx: *mut c_void,
    n: usize,
    body: unsafe extern "C" fn(*mut c_void, usize),
    body_ctx: *mut c_void,
) -> i32 {
    // SAFETY: the tests below pass a counter; -1 requests a failure.
    unsafe {
        let count = &mut *ctx.cast::<i64>();
        if *count < 0 {
            return 1;
        }
        for i in (0..n).rev() {
            body(body_ctx, i);
            *count += 1;
        }
    }
    0
}

#[test]
fn parallel() {
    let memory = memory();
    everywhere(|what| {
        let mut random = Random(0x5555_aaaa_0123_4567);
        for i in 0..120 {
            let mut count = if i % 4 == 3 { -1i64 } else { 0 };
            let hook = ParallelFor { run: pool, ctx: (&raw mut count).cast(), warm: 0 };
            let threads = random.one_of(&[0, 2, 3, 4, 7, 64, 1000]);
            let hook = (i % 4 > 1).then_some(hook);
            let parallel = Parallel { threads, hook };
            let width = random.one_of(&[1, 4, 6, 12]);
            let dst_slot = random.one_of(&[width, 8.max(width)]);
            let item = random.one_of(&[
                Item::Bytes(1),
                Item::Bytes(4),
                Item::Bytes(12),
                Item::Bytes(300_000),
                Item::Bits { width, dst_slot },
            ]);
            let most = if item == Item::Bytes(300_000) { 3 } else { 5_000 };
            case(&mut random, item, most).check(&memory, &mut random, &parallel, what);
        }
        let mut count = 0i64;
        let hook = Some(ParallelFor { run: pool, ctx: (&raw mut count).cast(), warm: 0 });
        let dims = vec![Dim { n: 64, src: 1, dst: 64 }, Dim { n: 64, src: 64, dst: 1 }];
        let case = Case { item: Item::Bytes(1), dims };
        case.check(&memory, &mut random, &Parallel { threads: 4, hook }, what);
        assert_eq!(count, 4, "{what}: the hook ran every part");
        // Packed bits are divided only where no two parts share a byte.
        let inner = Dim { n: 16, src: 3, dst: 3 };
        let woven = [Dim { n: 64, src: 6, dst: 4 }, Dim { n: 2, src: 3, dst: 262 }];
        for (width, dims, parts) in [
            (3, vec![Dim { n: 64, src: 60, dst: 48 }, inner], 4),
            (3, vec![Dim { n: 64, src: 60, dst: 49 }, inner], 4),
            (2, woven.to_vec(), 0),
            // Negative strides, which begin in the middle of a byte if the extent is even.
            (4, vec![Dim { n: 65, src: 4, dst: -4 }], 4),
            (4, vec![Dim { n: 64, src: 4, dst: -4 }], 0),
            (4, vec![Dim { n: 32, src: 48, dst: 48 }, Dim { n: 12, src: 4, dst: -4 }], 0),
            (4, vec![Dim { n: 32, src: 48, dst: 48 }, Dim { n: 10, src: 4, dst: -4 }], 4),
        ] {
            count = 0;
            let hook = Some(ParallelFor { run: pool, ctx: (&raw mut count).cast(), warm: 0 });
            let case = Case { item: Item::Bits { width, dst_slot: width }, dims };
            case.check(&memory, &mut random, &Parallel { threads: 4, hook }, what);
            assert_eq!(count, parts, "{what}: {case:?}");
        }
    });
}

/// The normal form: dense runs become the item, reversed and unit dimensions vanish.
#[test]
fn simplified() {
    let simple = |item, dims: &[(i64, i64, i64)]| {
        let dims = dims.iter().map(|&(n, src, dst)| Dim { n, src, dst }).collect();
        let mut plan = Case { item, dims }.plan(std::ptr::null(), std::ptr::null_mut());
        plan.simplify();
        (plan.item, plan.ndim())
    };
    let f32 = Item::Bytes(4);
    assert_eq!(simple(f32, &[(3, -20, -20), (1, 9, 9), (5, 4, 4)]), (Item::Bytes(60), 0));
    assert_eq!(simple(f32, &[(8, 512, 256), (64, 4, 4)]), (Item::Bytes(256), 1));
    assert_eq!(simple(f32, &[(64, 4, 256), (64, 256, 4)]), (f32, 2));
    let complex = simple(f32, &[(19, 16, 1000), (19, 1000, 16), (2, 4, 4), (2, 8, 8)]);
    assert_eq!(complex, (Item::Bytes(16), 2));
    let packed = Item::Bits { width: 4, dst_slot: 4 };
    assert_eq!(simple(packed, &[(300, 48, 40), (10, 4, 4)]), (Item::Bytes(5), 1));
}

/// A nest in normal form is unchanged, with strides in bits of any sign, too.
#[test]
fn simplified_again() {
    let form = |plan: &Plan| {
        let dims: Vec<_> = (0..plan.ndim()).map(|i| plan.dim(i)).collect();
        (plan.src, plan.dst, plan.item, dims)
    };
    let mut random = Random(31);
    for _ in 0..20_000 {
        let width = random.one_of(&[1, 2, 4, 6, 12]);
        let items = [Item::Bytes(width), Item::Bits { width, dst_slot: width }];
        let (mut src, mut dst) = (width as i64, width as i64);
        let mut dims: Vec<_> = (0..1 + random.below(4))
            .map(|_| {
                let n = 1 + random.below(4) as i64;
                let sign = random.one_of(&[1, -1, -1]);
                let dim =
                    Dim { n, src: src * random.one_of(&[sign, sign, 1, -1]), dst: dst * sign };
                src *= n * random.one_of(&[1, 1, 2]);
                dst *= n * random.one_of(&[1, 1, 1, 2]);
                dim
            })
            .collect();
        dims.reverse();
        for item in items {
            let case = Case { item, dims: dims.clone() };
            let mut plan = case.plan(std::ptr::null(), std::ptr::null_mut());
            plan.simplify();
            let first = form(&plan);
            plan.simplify();
            assert_eq!(form(&plan), first, "{case:?}");
        }
    }
}

/// A caller with a small stack: 64 KiB in release builds, whose frame sizes matter.
#[test]
fn small_stacks() {
    extern "C" fn work(what: *mut c_void) -> *mut c_void {
        let (plan, parallel): &mut (Plan, Parallel) =
            // SAFETY: the test passes both, and joins before they are dropped.
            unsafe { &mut *what.cast() };
        // SAFETY: the plan's extents are mapped.
        unsafe { copy(plan, parallel) }.unwrap();
        std::ptr::null_mut()
    }
    let memory = memory();
    let stack = if cfg!(debug_assertions) { 256 << 10 } else { 64 << 10 };
    everywhere(|what| {
        let mut random = Random(0x1616_1616_1616_1616);
        for i in 0..60 {
            let width = random.one_of(&[4, 6]);
            let bits = Item::Bits { width: width as usize, dst_slot: width as usize };
            let item = random.one_of(&[Item::Bytes(1), Item::Bytes(4), Item::Bytes(12), bits]);
            let case = match item {
                Item::Bits { .. } if i % 2 == 0 => {
                    let (row, column) = (272 * width, 144 * width);
                    let dims = vec![
                        Dim { n: 272, src: column, dst: width },
                        Dim { n: 144, src: width, dst: row },
                    ];
                    Case { item, dims }
                }
                Item::Bytes(size @ (1 | 4)) if i % 8 == 4 => {
                    let size = size as i64;
                    let extents = [(45, 1, 40 * 70), (40, 45, 70), (70, 40 * 45, 1)];
                    let dims =
                        extents.map(|(n, src, dst)| Dim { n, src: src * size, dst: dst * size });
                    Case { item, dims: dims.into() }
                }
                Item::Bytes(1) if i % 4 == 0 => {
                    let dims =
                        vec![Dim { n: 9, src: 300, dst: 1 }, Dim { n: 300, src: 1, dst: 20 }];
                    Case { item, dims }
                }
                Item::Bytes(size @ (1 | 4)) if i % 4 == 1 => {
                    let (size, line) = (size as i64, 64 / size as i64);
                    let row = Dim { n: 5 * line, src: 384, dst: size };
                    Case { item, dims: vec![Dim { n: 5 * line, src: size, dst: 320 }, row] }
                }
                Item::Bytes(size @ (1 | 4)) if i % 4 == 2 => {
                    let size = size as i64;
                    let dims = vec![
                        Dim { n: 3, src: size, dst: 1152 * size },
                        Dim { n: 1100, src: 3 * size, dst: size },
                    ];
                    Case { item, dims }
                }
                Item::Bytes(size) if i % 4 == 3 => repeated([3, 5, 20, 30], size as i64, 0),
                _ => case(&mut random, item, 30_000),
            };
            let (_, width, slot) = case.bits();
            let (src_low, src_high) = case.extent(|d| d.src, width);
            let (dst_low, dst_high) = case.extent(|d| d.dst, slot);
            let src = memory[0].place((src_low + src_high) as usize, 0);
            let dst = memory[1].place((dst_low + dst_high) as usize, 2);
            let mut expected = dst.to_vec();
            case.oracle(src, src_low, &mut expected, dst_low);
            let parallel = Parallel { threads: 1 + i % 3, hook: None };
            // SAFETY: the extents are mapped; the thread is joined before they are dropped.
            unsafe {
                let (from, to) = (src.as_ptr(), dst.as_mut_ptr());
                let plan = case.plan(from.add(src_low as usize), to.add(dst_low as usize));
                let mut job = (plan, parallel);
                let mut attributes = std::mem::zeroed();
                let mut thread = std::mem::zeroed();
                libc::pthread_attr_init(&mut attributes);
                assert_eq!(libc::pthread_attr_setstacksize(&mut attributes, stack), 0);
                let made =
                    libc::pthread_create(&mut thread, &attributes, work, (&raw mut job).cast());
                assert_eq!(made, 0);
                libc::pthread_join(thread, std::ptr::null_mut());
                libc::pthread_attr_destroy(&mut attributes);
            }
            assert!(dst == expected, "{what}: {case:?}");
        }
    });
}
