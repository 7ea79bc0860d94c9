//! Random layouts by the table of their kinds: both tensors dense in some order of the axes, but
//! for gaps, strides of both signs and repeated elements.
use dlpack_rs::cpu::Parallel;
use dlpack_rs::plan::{Dim, Item};

use crate::model::{Case, Random, memory};
use crate::{NEVER, ways};

/// Extents to choose from.
#[derive(Clone, Copy)]
enum Extent {
    /// Elements.
    N(&'static [i64]),
    /// As many cache lines of elements; sometimes one element more, or one less.
    Lines(&'static [i64]),
}
use Extent::*;

/// Gaps to choose from, bytes behind all elements of an axis: `ITEM` is an element, and a negative
/// one makes the stride a multiple of as many bytes.
type Gaps = &'static [i64];
const ITEM: i64 = i64::MAX;
const MOSTLY_NONE: Gaps = &[0, 0, 0, 0, ITEM, 64];

#[derive(Clone, Copy)]
struct Kind {
    what: &'static str,
    cases: usize,
    /// Bytes of an element.
    sizes: &'static [i64],
    /// Of each axis, in the order of the source, outermost first.
    extents: &'static [Extent],
    /// The axes in the order of the destination, outermost first; random where there is none.
    orders: &'static [&'static [usize]],
    /// The innermost source stride, in elements.
    steps: &'static [i64],
    gaps: [Gaps; 2],
    /// An axis of which the source has one element.
    repeated: Option<usize>,
    /// Streaming from this many bytes on.
    streams: &'static [usize],
    threads: usize,
    /// Most bytes of all elements.
    most: i64,
}

const POWERS: &[i64] = &[1, 2, 4, 8, 16];
const ODD: &[i64] = &[3, 5, 6, 7, 9, 10, 11, 12, 13, 14, 15];
const ALL: &[i64] = &[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16];
const FEW: Extent = N(&[1, 2, 3, 4, 5, 7, 8, 9, 12, 15, 16, 17, 23, 33]);
const SIDE: Extent = N(&[3, 8, 16, 17, 24, 40, 41, 64, 70, 127, 128, 130, 200, 256, 260, 300, 520]);
const BASE: Kind = Kind {
    what: "two axes: every path of the tiles, at every alignment",
    cases: 120,
    sizes: &[1, 2, 4, 8, 16, 3, 12, 5, 6, 7],
    extents: &[SIDE, SIDE],
    orders: &[&[1, 0]],
    steps: &[1],
    gaps: [&[0, 0, 64, 1, ITEM, 7]; 2],
    repeated: None,
    streams: &[0, NEVER],
    threads: 1,
    most: 1 << 20,
};

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

impl Kind {
    fn case(&self, random: &mut Random, size: i64) -> Case {
        let mut extents: Vec<i64> = self
            .extents
            .iter()
            .map(|extent| match extent {
                N(from) => random.one_of(from),
                Lines(from) => {
                    let line = (64 / size).max(1);
                    let near = [0, 0, 1, 2, line - 1, -1];
                    (random.one_of(from) * line + random.one_of(&near)).max(1)
                }
            })
            .collect();
        while extents.iter().product::<i64>() * size > self.most {
            let most = extents.iter_mut().max().unwrap();
            *most = *most / 2 + 1;
        }
        let mut order: Vec<usize> = (0..extents.len()).collect();
        match self.orders {
            [] => (1..order.len()).for_each(|last| {
                order.swap(last, random.below(last as u64 + 1) as usize);
            }),
            orders => order = random.one_of(orders).to_vec(),
        }
        let mut dims: Vec<_> = extents.iter().map(|&n| Dim { n, src: 0, dst: 0 }).collect();
        let beyond = |random: &mut Random, dense: i64, side: usize| match self.gaps[side] {
            [0] => dense,
            gaps => match random.one_of(gaps) {
                ITEM => dense + size,
                gap if gap < 0 => (dense - gap - 1) / -gap * -gap,
                gap => dense + gap,
            },
        };
        let (mut src, mut dst) = (size * random.one_of(self.steps), size);
        for axis in (0..dims.len()).rev().filter(|&axis| Some(axis) != self.repeated) {
            dims[axis].src = if random.below(6) == 0 { -src } else { src };
            src = beyond(random, src * dims[axis].n, 0);
        }
        for &axis in order.iter().rev() {
            dims[axis].dst = if random.below(12) == 0 { -dst } else { dst };
            dst = beyond(random, dst * dims[axis].n, 1);
        }
        Case {
            item: Item::Bytes(size as usize),
            dims: order.iter().map(|&axis| dims[axis]).collect(),
        }
    }
}

#[test]
fn every_kind_of_layout() {
    let memory = memory();
    for (seed, kind) in KINDS.iter().enumerate() {
        ways(kind.streams, |level| {
            let mut random = Random(0x9e37_79b9_7f4a_7c15 ^ (seed as u64 + 1) << 32);
            for i in 0..if cfg!(miri) { 1 } else { kind.cases } {
                let size = kind.sizes[i % kind.sizes.len()];
                let case = kind.case(&mut random, size);
                let src = case.extent(|dim| dim.src, 8 * size);
                let dst = case.extent(|dim| dim.dst, 8 * size);
                if (src.0 + src.1).max(dst.0 + dst.1) > 20 << 20 {
                    continue;
                }
                // At a guard page, or at any offset in a cache line: mostly that of an element.
                let phase = random.below(64) as i64 / size * size + random.one_of(&[0, 0, 0, 1]);
                let offset = 1 + 4 * phase as u64;
                let places = [random.next(), random.one_of(&[offset, offset, 0, 2])];
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
