//! Copies that execute nearly all of the kernels.
use dlpack_rs::plan::{Dim, Item};

use crate::kind::*;
use crate::model::{Case, Guarded, Random, case_of_bits, case_of_bytes, memory};
use crate::standin::Device;

/// Random cases, most in one launch, some cut into many, some in turns of a few blocks.
fn random(device: Device, count: usize, case: fn(&mut Random) -> Case) {
    let memory = memory();
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    for i in 0..count / device.every {
        let device = match i % 7 {
            5 => device.cut(100),
            6 => device.few_blocks(3),
            _ => device,
        };
        case(&mut random).check(&memory, &mut random, &device, "random");
    }
}

/// As [`random`], of one kind of layout: at every alignment of both sides.
pub fn of_kinds(device: Device, kinds: &[Kind]) {
    let memory = memory();
    let mut random = Random(0xfeed_beef_1234_0001);
    for kind in kinds {
        for i in 0..kind.cases / device.every {
            let size = kind.sizes[i % kind.sizes.len()];
            let device = match random.below(6) {
                4 => device.cut(5000),
                5 => device.few_blocks(2),
                _ => device,
            };
            let case = kind.case(&mut random, size);
            let places = Kind::places(&mut random, size);
            case.check_at(places, &memory, &mut random, &device, kind.what);
        }
    }
}

const TRANSPOSES: Kind = Kind {
    what: "tiles of every shape, at every alignment",
    cases: 360,
    sizes: &[1, 2, 4, 8, 16, 3, 12],
    extents: &[N(&[1, 1, 2, 5]), SIDE, SIDE],
    orders: &[&[0, 2, 1]],
    gaps: [&[0, 0, 16, 64, 1, ITEM, 7]; 2],
    ..BASE
};
pub const NARROW: Kind = Kind {
    what: "large matrices of one and two bytes, with extents around those of a tile",
    cases: 300,
    sizes: &[1, 2],
    extents: &[
        N(&[1, 1, 3]),
        N(&[128, 129, 130, 131, 191, 254, 255, 256, 257, 259, 300]),
        N(&[64, 65, 66, 123, 124, 125, 126, 127, 128, 129, 186, 187, 250]),
    ],
    orders: &[&[0, 2, 1]],
    gaps: [&[-4, -4, 0, ITEM, 4, 6]; 2],
    ..BASE
};
const CHANNELS: Extent = N(&[2, 3, 4, 5, 6, 7]);
const PIXELS: Extent = N(&[128, 129, 130, 131, 255, 1000, 5000]);
pub const WEAVE: Kind = Kind {
    what: "planes of a few channels to pixels",
    cases: 384,
    sizes: &[1, 2, 4, 8],
    extents: &[N(&[1, 2]), CHANNELS, PIXELS],
    orders: &[&[0, 2, 1]],
    gaps: [&[-4, -4, 0, ITEM, 4], &[0, 0, 16, 4, ITEM]],
    ..BASE
};
pub const UNWEAVE: Kind = Kind {
    what: "pixels of a few channels to planes",
    extents: &[N(&[1, 2]), PIXELS, CHANNELS],
    gaps: [WEAVE.gaps[1], WEAVE.gaps[0]],
    ..WEAVE
};
const ROWS: Kind = Kind {
    what: "rows of the destination that begin at any byte of a word, of every n-th element",
    cases: 400,
    sizes: &[1, 2, 3, 4, 6, 8, 12, 16, 32, 100],
    extents: &[N(&[1, 2, 5]), N(&[1, 2, 3, 4, 5, 7, 33, 200, 1025])],
    orders: &[&[0, 1]],
    steps: &[1, 2, 3, 4, 5, 6, 7, 8, 9],
    gaps: [&[0], &[0, 1, 5]],
    ..BASE
};
const FILLS: Kind = Kind {
    what: "rows of one element each",
    cases: 60,
    steps: &[1],
    repeated: Some(1),
    gaps: [&[0, ITEM], &[0, 1, 5]],
    ..ROWS
};
const PLANES: Kind = Kind {
    what: "some planes of elements of any size to pixels",
    cases: 160,
    sizes: ROWS.sizes,
    extents: &[N(&[2, 3, 4, 5, 6, 7, 8, 9]), N(&[4, 31, 100, 2000])],
    orders: &[&[1, 0]],
    gaps: [&[0, 0, 3, 64], &[0]],
    ..BASE
};
const SHARED: Kind = Kind {
    what: "rows of bits that share bytes with their neighbours",
    cases: 400,
    sizes: &[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12],
    bits: true,
    extents: &[N(&[1, 2, 17, 64]), N(&[2, 5, 33, 100])],
    orders: &[&[0, 1], &[1, 0]],
    gaps: [&[0, 3, 7], &[0, 1, ITEM, 5, 40]],
    ..BASE
};

/// More than eight dimensions, elements far wider than any access, extents beyond 32 bits.
fn large_plans(device: Device) {
    let memory = memory();
    let mut random = Random(77);
    let many = |n: i64| (0..n).map(move |i| Dim { n: 2, src: 1 << i, dst: 1 << (n - 1 - i) });
    for (item, n) in [(1, 13), (2, 12), (4, 11), (16, 10)] {
        let scaled = many(n).map(|d| Dim { n: d.n, src: item * d.src, dst: item * d.dst });
        let case = Case { item: Item::Bytes(item as usize), dims: scaled.collect() };
        case.check(&memory, &mut random, &device, "many dimensions");
    }
    let case = Case { item: Item::Bits { width: 3, dst_slot: 3 }, dims: many(12).collect() };
    let tripled = case.dims.iter().map(|d| Dim { n: d.n, src: 3 * d.src, dst: 3 * d.dst });
    let case = Case { item: case.item, dims: tripled.collect() };
    case.check(&memory, &mut random, &device, "many dimensions of bits");
    let big = 1 << 20;
    let dims = vec![Dim { n: 3, src: -big, dst: big + 5 }];
    Case { item: Item::Bytes(big as usize), dims }.check(&memory, &mut random, &device, "big");
    let (width, dst_slot) = (393_210, 393_216);
    let dims = vec![Dim { n: 3, src: width as i64, dst: dst_slot as i64 }];
    let case = Case { item: Item::Bits { width, dst_slot }, dims };
    case.check(&memory, &mut random, &device, "big");
}

/// As many images as fill a device: every block size of `planes` and `pixels`, blocks that end in
/// each of a thread's turns, planes at any alignment.
fn images(device: Device) {
    let memory = [Guarded::new(13 << 20), Guarded::new(13 << 20)];
    let mut random = Random(0x1a6e_0000_0000_0001);
    for (i, (log, channels, size, n)) in [
        (12, 3, 1, 4100),
        (12, 3, 1, 1029),
        (12, 2, 1, 2057),
        (12, 2, 1, 3083),
        (11, 6, 1, 1027),
        (11, 4, 1, 2051),
        (11, 3, 2, 517),
        (11, 2, 2, 1031),
        (11, 3, 2, 1543),
        (10, 3, 4, 1020),
        (10, 5, 2, 519),
        (9, 4, 4, 300),
        (9, 2, 8, 260),
        (8, 4, 8, 140),
        (7, 7, 8, 135),
    ]
    .into_iter()
    .enumerate()
    .step_by(device.every)
    {
        let images = 1024 / ((n + (1 << log) - 1) >> log);
        let plane = (n * size + 3) / 4 * 4 + if i % 3 == 1 { size } else { 0 };
        let weave = vec![
            Dim { n: images, src: channels * plane, dst: n * channels * size },
            Dim { n, src: size, dst: channels * size },
            Dim { n: channels, src: plane, dst: size },
        ];
        let unweave = weave.iter().map(|d| Dim { n: d.n, src: d.dst, dst: d.src }).collect();
        for dims in [weave, unweave] {
            let case = Case { item: Item::Bytes(size as usize), dims };
            let device = if i % 2 == 0 { device } else { device.few_blocks(100) };
            case.check_at([1, 1], &memory, &mut random, &device, "images");
        }
    }
}

/// One to six digits of an index for each kernel: outer dimensions, none of which merges with
/// another, in another order on each side.
fn digits(device: Device) {
    let memory = memory();
    let mut random = Random(0x0d16_1750_0000_0001);
    let up = |n: i64, to: i64| (n + to - 1) / to * to;
    let turned = |size: i64, down: i64, across: i64, odd: i64| {
        let row = up(across * size, 4) + odd;
        let column = up(down * size, 4) + odd;
        let dims =
            vec![Dim { n: down, src: row, dst: size }, Dim { n: across, src: size, dst: column }];
        (Item::Bytes(size as usize), dims)
    };
    let mut inner = vec![];
    for (down, across, odd) in [(64, 64, 0), (65, 40, 4), (130, 63, 1), (5, 17, 0), (40, 33, 16)] {
        inner.extend([1, 2, 4, 8, 16].map(|size| turned(size, down, across, odd / size * size)));
    }
    for size in [1, 2, 4, 8] {
        for channels in 2..=7 {
            let (n, plane) = (150, 160 * size);
            let dims = vec![
                Dim { n, src: size, dst: channels * size },
                Dim { n: channels, src: plane, dst: size },
            ];
            let back = dims.iter().map(|d| Dim { n: d.n, src: d.dst, dst: d.src }).collect();
            inner.extend([dims, back].map(|dims| (Item::Bytes(size as usize), dims)));
        }
    }
    for size in [1, 2, 4, 12, 16, 24] {
        inner.push((Item::Bytes(size as usize), vec![Dim { n: 40, src: 3 * size, dst: size }]));
        inner.push((Item::Bytes(size as usize), vec![Dim { n: 9, src: 3 * size, dst: 2 * size }]));
    }
    for (width, dst_slot) in [(1, 1), (4, 4), (3, 8), (12, 16), (7, 7), (40, 40)] {
        let step = dst_slot as i64;
        let item = Item::Bits { width, dst_slot };
        inner.push((item, vec![Dim { n: 65, src: 5 * width as i64, dst: step }]));
        inner.push((item, vec![Dim { n: 21, src: width as i64, dst: 2 * step }]));
    }
    for (i, (item, dims)) in inner.into_iter().enumerate().step_by(device.every) {
        for outer in 0..=5 {
            let mut case = Case { item, dims: dims.clone() };
            let (unit, width, slot) = case.bits();
            let grain = if unit == 1 { 8 } else { 16 };
            let size = |bits: i64| up(bits / unit + 1, grain);
            let mut src = size(8 * case.extent(|d| d.src, width).1 + 8);
            let mut dst = vec![size(8 * case.extent(|d| d.dst, slot).1 + 8)];
            let n = |k: usize| if k == 0 { 3 } else { 2 };
            for k in (1..outer).rev() {
                dst.push(dst[dst.len() - 1] * n(k) + grain * (1 + k as i64 % 2));
            }
            for k in 0..outer {
                let gap = grain * (k as i64 % 3);
                case.dims.insert(0, Dim { n: n(k), src, dst: dst[outer - 1 - k] });
                src = src * n(k) + gap;
            }
            let device = if i % 5 == 4 { device.few_blocks(3) } else { device };
            case.check(&memory, &mut random, &device, "digits");
        }
    }
}

/// What the copies above execute of the kernels.
pub type Copies = (&'static str, fn(Device));
pub const COPIES: [Copies; 10] = [
    ("random bytes", |device| random(device, 2800, case_of_bytes)),
    ("random bits", |device| random(device, 1800, case_of_bits)),
    ("transposes", |device| of_kinds(device, &[TRANSPOSES])),
    ("transposes of narrow elements", |device| of_kinds(device, &[NARROW])),
    ("pixels", |device| of_kinds(device, &[WEAVE, UNWEAVE])),
    ("rows", |device| of_kinds(device, &[ROWS, FILLS, PLANES])),
    ("shared bytes", |device| of_kinds(device, &[SHARED])),
    ("large plans", large_plans),
    ("digits", digits),
    ("images", images),
];
