//! Each op at each level, with elements of each size, at each offset in a cache line, streaming and
//! not, between guard pages; and a check that none of these was left out.
use std::collections::BTreeMap;
use std::ptr::{without_provenance, without_provenance_mut};

use dlpack_rs::cpu::{parts, set_thresholds};
use dlpack_rs::plan::{Dim, Item};

use crate::model::{Case, Random, memory};
use crate::{NEVER, SERIAL, each_level};

/// The ops.
const OPS: [&str; 6] = ["bits", "fill", "run", "scalar", "shuffle", "transpose"];

/// Bytes of elements.
const SIZES: [i64; 23] =
    [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 24, 31, 32, 33, 48, 63];

/// Bits of packed elements.
const WIDTHS: [i64; 10] = [1, 2, 3, 4, 5, 6, 7, 9, 12, 20];

/// Extent, source stride and destination stride, in bytes or bits.
type Dims = Vec<(i64, i64, i64)>;

/// Layouts for each of the ops, of about 6 KiB of elements of `size`, `more` a few more of them.
fn layouts(size: i64, more: i64) -> Vec<Dims> {
    let n = |bytes: i64| bytes / size + 2 + more;
    let (row, line) = (n(300) * size, n(64));
    let (a, b) = (n(70), n(90));
    // A transpose with long destination rows, large enough for a staging buffer.
    let (long, few) = (n(400), n(16));
    let pixels = n(2000);
    vec![
        // Runs, with gaps on both sides, in both orders.
        vec![(20, row + 5, row + 70), (n(300), size, size)],
        vec![(4, row, 5 * row), (5, 4 * row + 64, row), (n(300), size, size)],
        // One element, and rows of one each.
        vec![(n(5000), 0, size)],
        vec![(9, 3 * size, n(600) * size), (n(600), 0, size)],
        // Transposes: adjacent rows, whole cache lines apart, with negative strides, in batches,
        // and sides of two loops.
        vec![(b, size, a * size), (a, b * size, size)],
        vec![(few, size, (long * size + 63) / 64 * 64), (long, few * size + 64, size)],
        vec![(few, size, long * size + 2 * size), (long, few * size, size)],
        vec![(b, -size, a * size), (a, b * size, size)],
        vec![(3, a * line * size, a * line * size), (line, size, a * size), (a, line * size, size)],
        vec![(line, size, 5 * a * size), (5, line * a * size, a * size), (a, line * size, size)],
        // Sides of two and three loops, in other orders than the other side's, some with negative
        // strides: first the columns', then the rows'.
        vec![(line, -size, 5 * a * size), (5, line * a * size, a * size), (a, line * size, size)],
        vec![
            (5, -4 * size, 12 * a * size),
            (4, size, 3 * a * size),
            (3, -20 * size, a * size),
            (a, 60 * size, size),
        ],
        vec![
            (few, size, 6 * line * size),
            (3, -2 * line * few * size, 2 * line * size),
            (2, line * few * size, line * size),
            (line, few * size, size),
        ],
        vec![
            (few, -size, 6 * line * size),
            (3, line * few * size, 2 * line * size),
            (2, -3 * line * few * size, line * size),
            (line, few * size, size),
        ],
        // A short period: every second element, the reverse, and pixels in both directions.
        vec![(n(5000), 2 * size, size)],
        vec![(n(5000), -size, size)],
        vec![(3, size, pixels * size), (pixels, 3 * size, size)],
        vec![(pixels, size, 3 * size), (3, pixels * size, size)],
        // Gaps between elements of the destination.
        vec![(n(3000), size, 2 * size)],
        vec![(line, 7 * size, 3 * line * size), (line, line * 7 * size, 3 * size)],
        vec![(n(1500), size, 64)],
        vec![(n(2000), 2 * size, 3 * size), (2, -size, size)],
        vec![(3, size, (2 * pixels + 1) * size), (pixels, -3 * size, 2 * size)],
    ]
}

/// Layouts of packed elements, to as many bits or to more.
fn packed(width: i64, slot: i64, more: i64) -> Vec<Dims> {
    let (n, a) = (3000 / width + more, 130 + more);
    vec![
        vec![(n, width, slot)],
        vec![(5, n * width + 3, n * slot + 4), (n, width, slot)],
        vec![(n, 2 * width, slot)],
        vec![(n, -width, slot)],
        vec![(n, 0, slot)],
        vec![(70, width, a * slot), (a, 70 * width, slot)],
        vec![(70, width, a * slot + 5), (a, 70 * width + 3, slot)],
        vec![(n, width, slot + 3)],
    ]
}

#[test]
fn matrix() {
    let memory = memory();
    each_level(|level| {
        let mut random = Random(0x03a7_21c5_0000_0001);
        let mut met = BTreeMap::new();
        for (i, stream) in [0, NEVER].into_iter().enumerate() {
            set_thresholds(stream, usize::MAX);
            let what = format!("{level:?}, streaming from {stream}");
            for (item, layouts) in items(i as i64) {
                for dims in layouts {
                    let dims = dims.iter().map(|&(n, src, dst)| Dim { n, src, dst }).collect();
                    let case = Case { item, dims };
                    let phase = met.entry(op(&case)).or_insert(0);
                    // One side ends at a guard page, or begins at one; the other one at the next
                    // offset in a cache line: of 64 of them after 64 cases.
                    for transpose in 0..if cfg!(miri) { 1 } else { 3 } {
                        *phase += if transpose == 1 { 0 } else { 27 };
                        let anywhere = 1 + 4 * (*phase % 64);
                        let places = [[2, anywhere], [anywhere, 2], [0, anywhere]][transpose];
                        case.check_at(places, &memory, &mut random, &SERIAL, &what);
                    }
                }
            }
        }
        // Without permutations there are no shuffles.
        let shuffles = level.kernels().shuffles.is_some();
        let ops = OPS.iter().filter(|op| **op != "shuffle" || shuffles);
        assert!(met.keys().eq(ops), "{level:?}: {met:?}");
        let everywhere = |phase: &u64| *phase >= 27 * 64 || cfg!(miri);
        assert!(met.values().all(everywhere), "{level:?}: {met:?}");
    });
}

/// All items, with their layouts; under Miri, which is slow, every seventh.
fn items(more: i64) -> impl Iterator<Item = (Item, Vec<Dims>)> {
    let bytes =
        SIZES.iter().map(move |&size| (Item::Bytes(size as usize), layouts(size, more + size % 3)));
    let bits = WIDTHS.iter().flat_map(move |&width| {
        [width, (width + 7) / 8 * 8, width + 1].map(|slot| {
            let item = Item::Bits { width: width as usize, dst_slot: slot as usize };
            (item, packed(width, slot, more + width % 3))
        })
    });
    bytes.chain(bits).skip(more as usize).step_by(if cfg!(miri) { 7 } else { 1 })
}

/// The op of a case, which does not depend on the elements' addresses.
fn op(case: &Case) -> &'static str {
    let mut plan = case.plan(without_provenance(4096), without_provenance_mut(64 << 20));
    plan.simplify();
    parts(&plan, &SERIAL).1[0]
}
