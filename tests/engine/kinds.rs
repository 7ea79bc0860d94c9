//! Random layouts of each kind that the engine treats in another way.
use dlpack_rs::cpu::Parallel;

use crate::kind::*;
use crate::model::{Random, memory};
use crate::{NEVER, ways};

const ODD: &[i64] = &[3, 5, 6, 7, 9, 10, 11, 12, 13, 14, 15];
const ALL: &[i64] = &[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16];
const FEW: Extent = N(&[1, 2, 3, 4, 5, 7, 8, 9, 12, 15, 16, 17, 23, 33]);
const MOSTLY_NONE: Gaps = &[0, 0, 0, 0, ITEM, 64];

const KINDS: &[Kind] = &[
    BASE,
    Kind {
        what: "axes in any order",
        cases: 220,
        sizes: &[1, 2, 3, 4, 5, 6, 7, 8, 16, 4, 17, 33, 64, 77],
        extents: &[N(&[1, 2, 3, 5, 8, 13, 16, 24, 40]); 6],
        orders: &[],
        gaps: [&[0, 0, 0, 0, 0, 0, 1, 64]; 2],
        most: 24_000,
        ..BASE
    },
    Kind {
        what: "blocks, halves of them and remainders, on sides of one axis or two",
        cases: 300,
        sizes: ALL,
        extents: &[N(&[1, 2]), FEW, N(&[1, 2, 9, 24]), N(&[1, 8, 40, 127, 260]), FEW],
        orders: &[&[0, 4, 3, 2, 1], &[0, 2, 1, 4, 3], &[0, 4, 1, 3, 2]],
        most: 80_000,
        ..BASE
    },
    Kind {
        what: "rows of whole cache lines, or nearly, in phase and not",
        cases: 600,
        sizes: POWERS,
        extents: &[Lines(&[1, 2, 3, 5, 8, 17]), Lines(&[1, 2, 5, 9])],
        gaps: [&[0, 64, 72, 128, -2048], &[0, 0, -64, ITEM]],
        ..BASE
    },
    Kind {
        what: "adjacent rows, each of which begins in the last line of another",
        cases: 240,
        sizes: POWERS,
        extents: &[Lines(&[2, 3, 4, 5, 7, 9]), N(&[1, 1, 2, 3]), Lines(&[1, 2, 3])],
        orders: &[&[2, 1, 0]],
        gaps: [&[0, 0, 24, 64], &[0, 0, 0, 64]],
        ..BASE
    },
    Kind {
        what: "long rows, and source rows whole pages apart that compete for sets of the caches",
        cases: 200,
        sizes: ALL,
        extents: &[N(&[1, 1, 3, 5, 9]), Lines(&[4, 16, 20, 24, 40]), Lines(&[2, 3, 8, 9, 17])],
        orders: &[&[2, 1, 0], &[2, 1, 0], &[0, 2, 1]],
        gaps: [&[0, ITEM, 24, 64, -1024, -4096], &[0, 0, ITEM, 5, -64, -1024]],
        ..BASE
    },
    Kind {
        what: "tensors that fit into the caches, of rows far apart",
        cases: 12,
        sizes: &[1, 2, 4],
        extents: &[N(&[1, 2, 3]), N(&[32, 48, 64, 290, 300, 401]), N(&[994, 1023, 1024, 2048])],
        orders: &[&[0, 2, 1]],
        gaps: [&[-1024, -2048], &[0, 0, ITEM, 64]],
        streams: &[NEVER],
        most: 4 << 20,
        ..BASE
    },
    Kind {
        what: "elements of odd sizes in long rows with any start and end",
        cases: 24,
        sizes: ODD,
        extents: &[N(&[2]), N(&[256, 301, 450, 555]), N(&[80, 130, 205, 345, 420])],
        orders: &[&[0, 2, 1]],
        gaps: [&[0, 1, 64, -1024], &[0, 0, 5, 192, -64]],
        most: 3 << 20,
        ..BASE
    },
    Kind {
        what: "large elements, on sides of one axis or two",
        cases: 32,
        sizes: &[8, 16],
        extents: &[N(&[1, 3]), N(&[9, 16, 70, 150, 165]), N(&[1, 5]), N(&[9, 33, 64, 98])],
        orders: &[&[3, 2, 0, 1]],
        gaps: [&[0, ITEM, 64]; 2],
        ..BASE
    },
    Kind {
        what: "volumes with the axes reversed",
        cases: 120,
        sizes: POWERS,
        extents: &[Lines(&[1, 2, 4]), N(&[1, 2, 3, 4]), Lines(&[1, 2])],
        orders: &[&[2, 1, 0]],
        gaps: [&[0, 0, ITEM, 64], &[0, 0, 64]],
        ..BASE
    },
    Kind {
        what: "volumes so large that the middle axis becomes part of the source's side",
        cases: 6,
        sizes: &[1, 2, 8, 11],
        extents: &[N(&[40, 192, 256]), N(&[60, 90, 130]), N(&[120, 200, 256])],
        orders: &[&[2, 1, 0]],
        gaps: [&[0]; 2],
        streams: &[NEVER],
        most: 7 << 20,
        ..BASE
    },
    Kind {
        what: "small matrices one after the other, or interlaced",
        cases: 300,
        sizes: &[1, 2, 4, 8],
        extents: &[N(&[3, 7, 20, 50]), N(&[3, 8, 12, 33, 64]), N(&[3, 7, 16, 32, 64, 65, 128])],
        orders: &[&[0, 2, 1], &[1, 2, 0]],
        gaps: [&[0, 0, 1, ITEM, 64]; 2],
        most: 60_000,
        ..BASE
    },
    Kind {
        what: "planes to pixels and back: all channels or some, in runs of any length",
        cases: 900,
        sizes: &[1, 2, 4, 8],
        extents: &[
            N(&[1, 2, 9]),
            N(&[2, 3, 4, 5, 7, 8, 9, 13, 16, 17, 21, 35, 65, 150, 321, 1024, 1087]),
            N(&[1, 2, 3, 4, 5, 7, 8, 9, 12, 16, 17]),
        ],
        orders: &[&[0, 2, 1], &[0, 2, 1], &[2, 0, 1], &[2, 1, 0]],
        gaps: [&[0, 0, 0, ITEM, 1, 9, 64], &[0, 0, 0, ITEM, 5, -64, -4096]],
        most: 80_000,
        ..BASE
    },
    Kind {
        what: "planes to pixels the other way round, with sides of two axes and a few left over",
        cases: 400,
        sizes: ALL,
        extents: &[
            N(&[2, 3, 4, 5, 6, 7, 8, 9, 11, 12, 15, 16, 17]),
            N(&[1, 2, 5, 8, 13]),
            N(&[10, 17, 26, 40, 64, 129, 200, 1030]),
        ],
        orders: &[&[1, 2, 0], &[2, 0, 1], &[2, 1, 0]],
        gaps: [&[0, 0, 0, 1, 20], &[0, 0, 0, ITEM, 5]],
        most: 160_000,
        ..BASE
    },
    Kind {
        what: "matrices of up to 300 bytes in sequence: windows of one to four registers",
        cases: 240,
        sizes: &[1, 1, 1, 2, 2, 3, 4, 4, 5, 6, 8, 12, 16, 24],
        extents: &[
            N(&[1, 3]),
            N(&[1, 2, 3, 5, 40, 300]),
            N(&[2, 3, 4, 5, 7, 12, 15]),
            N(&[2, 3, 4, 5, 8, 13, 20, 30]),
        ],
        orders: &[&[0, 1, 3, 2]],
        gaps: [&[0, 0, 0, 0, ITEM, 37], &[0]],
        most: 90_000,
        ..BASE
    },
    Kind {
        what: "sides of two axes, with more elements than are listed at a time",
        cases: 60,
        sizes: &[1, 1, 2, 2, 3, 4, 4, 5, 8, 8, 12, 15],
        extents: &[
            N(&[3, 5, 7, 19, 64]),
            N(&[1, 2, 3, 7]),
            N(&[18, 29, 43, 64, 241, 1000]),
            N(&[3, 9, 17, 40]),
        ],
        orders: &[&[1, 3, 2, 0], &[3, 0, 2, 1]],
        gaps: [&[0]; 2],
        ..BASE
    },
    Kind {
        what: "transposed matrices that are repeated",
        cases: 160,
        sizes: &[1, 1, 2, 3, 4, 8, 12, 16, 20],
        extents: &[
            N(&[1, 1, 2, 3, 40]),
            N(&[2, 3, 4, 5, 16, 17]),
            N(&[1, 3, 10, 19, 33, 40]),
            N(&[1, 2, 9, 16, 31, 40]),
        ],
        orders: &[&[0, 1, 3, 2]],
        gaps: [&[0, 0, 0, ITEM, 64]; 2],
        repeated: Some(1),
        threads: 3,
        ..BASE
    },
    Kind {
        what: "every n-th element, of few long rows and of many short ones",
        cases: 80,
        sizes: &[1, 1, 2],
        extents: &[
            N(&[33, 60, 130, 300, 2000]),
            N(&[1, 2, 8]),
            N(&[1, 4, 9]),
            N(&[33, 45, 300, 700]),
        ],
        orders: &[&[3, 2, 1, 0], &[0, 3, 2, 1], &[3, 0, 2, 1], &[1, 3, 2, 0]],
        steps: &[2, 3, 4, 7, 8],
        gaps: [&[0, 0, 1, 64]; 2],
        threads: 3,
        most: 2 << 20,
        ..BASE
    },
    Kind {
        what: "rows of every n-th element",
        cases: 200,
        sizes: &[1, 2, 3, 4, 6, 8, 12, 16, 32, 100],
        extents: &[N(&[1, 2, 5]), N(&[1, 5, 33, 200, 1025])],
        orders: &[&[0, 1]],
        steps: &[1, 2, 3, 4, 5, 6, 7, 8, 9],
        gaps: [&[0, ITEM], &[0, 0, 5]],
        ..BASE
    },
    Kind {
        what: "one element for whole rows, shorter than a cache line and longer, in and out of phase",
        cases: 120,
        sizes: &[1, 2, 3, 4, 8, 12, 16, 32, 64, 100, 1000],
        extents: &[N(&[2]), N(&[1, 3, 4]), Lines(&[1, 2, 11, 16, 24, 80, 300])],
        orders: &[&[0, 1, 2]],
        gaps: [&[ITEM, 64], &[0, 0, 24, 8]],
        repeated: Some(2),
        ..BASE
    },
    Kind {
        what: "transposes as large as the L2 cache and larger, in proportions of all kinds",
        cases: 30,
        sizes: POWERS,
        extents: &[
            N(&[60, 71, 320, 544, 701, 1030, 1301, 2048, 2560, 3301]),
            N(&[700, 801, 1050, 2000, 2064, 3300, 5589, 11_200]),
        ],
        gaps: [&[0]; 2],
        streams: &[NEVER],
        most: 13 << 20,
        ..BASE
    },
    Kind {
        what: "packed elements whose rows begin at any bit: tiles, strips, blocks and remainders",
        cases: 500,
        sizes: &[4, 6],
        bits: true,
        extents: &[
            N(&[2]),
            N(&[31, 32, 63, 64, 65, 127, 128, 130, 200, 257, 300, 385, 448, 511, 572, 770, 903]),
            N(&[17, 24, 29, 31, 32, 33, 40, 47, 64, 65, 90]),
        ],
        orders: &[&[0, 2, 1]],
        gaps: [&[-8, 2, 4, 12, 24, 3], &[0, -512, 64, 4, 6, 5]],
        ..BASE
    },
    Kind {
        what: "packed elements in long rows of whole cache lines, whole bytes or neither",
        cases: 24,
        sizes: &[4, 4, 6],
        bits: true,
        extents: &[N(&[2]), N(&[70, 513, 640, 1023, 1180]), N(&[260, 400, 1024, 1170, 4130])],
        orders: &[&[0, 2, 1]],
        gaps: [&[-8, 0, 64, 4, 12, 508], &[0, -512, -8, 64, 4, 500]],
        most: 8 << 20,
        ..BASE
    },
    Kind {
        what: "packed elements as large as the L2 cache and larger",
        cases: 3,
        sizes: &[4],
        bits: true,
        extents: &[N(&[2048, 2600, 2051]), N(&[4100, 3300])],
        gaps: [&[-8, 12], &[0, 8, 4]],
        streams: &[NEVER],
        most: 40 << 20,
        ..BASE
    },
    Kind {
        what: "streamed: short and long adjacent rows at any offset in a cache line",
        cases: 120,
        sizes: &[1, 1, 2, 2, 3, 4, 4, 5, 7, 8, 16],
        extents: &[N(&[1, 2, 3, 140]), N(&[9, 13, 17, 33, 70, 131]), N(&[17, 97, 301, 700, 1900])],
        orders: &[&[0, 2, 1]],
        gaps: [&[0, 0, 0, 0, ITEM], &[0, 0, 0, 0, 0, ITEM, -4096]],
        streams: &[0],
        threads: 3,
        most: 2 << 20,
        ..BASE
    },
    Kind {
        what: "streamed: the source's innermost axis second or last in the destination",
        cases: 150,
        sizes: &[1, 1, 2, 2, 3, 4, 8, 16],
        extents: &[
            N(&[5, 9, 33, 70, 150]),
            N(&[1, 2, 7]),
            N(&[1, 3, 9, 29]),
            N(&[5, 8, 11, 40]),
            N(&[6, 27, 35, 45, 54]),
        ],
        orders: &[
            &[4, 3, 2, 1, 0],
            &[2, 4, 3, 1, 0],
            &[3, 4, 1, 2, 0],
            &[4, 1, 3, 0, 2],
            &[0, 4, 1, 2, 3],
        ],
        gaps: [MOSTLY_NONE; 2],
        streams: &[0],
        threads: 3,
        ..BASE
    },
    Kind {
        what: "streamed: short rows of one element each",
        cases: 80,
        sizes: POWERS,
        extents: &[N(&[1, 5, 27, 300]), N(&[5, 40, 300, 400]), N(&[8, 17, 64, 130, 300])],
        orders: &[&[1, 0, 2], &[0, 1, 2]],
        gaps: [&[0, 0, ITEM, 64]; 2],
        repeated: Some(2),
        streams: &[0],
        threads: 3,
        most: 1 << 19,
        ..BASE
    },
];

#[test]
fn every_kind_of_layout() {
    let memory = memory();
    for (seed, kind) in KINDS.iter().enumerate() {
        ways(kind.streams, |level| {
            let mut random = Random(0x9e37_79b9_7f4a_7c15 ^ (seed as u64 + 1) << 32);
            for i in 0..if cfg!(miri) { 1 } else { kind.cases } {
                let size = kind.sizes[i % kind.sizes.len()];
                let case = kind.case(&mut random, size);
                if case.bytes() > 20 << 20 {
                    continue;
                }
                let places = Kind::places(&mut random, size);
                let parallel = Parallel { threads: 1 + i % kind.threads, hook: None };
                case.check_at(
                    places,
                    &memory,
                    &mut random,
                    &parallel,
                    &format!("{}, {level}", kind.what),
                );
            }
        });
    }
}
