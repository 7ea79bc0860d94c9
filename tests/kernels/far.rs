//! Copies in a device's memory that is far larger than the host's.
use std::ffi::{c_int, c_void};

use dlpack_rs::plan::{Dim, Item, Plan};

use crate::model::Random;
use crate::standin::{Modules, Range, launches};

/// Memory of a device without the addresses of the host's: pieces far apart.
struct Far(Vec<(u64, Vec<u8>)>);

impl Far {
    extern "C" fn reach(far: *mut c_void, at: u64, found: *mut Range) -> c_int {
        // SAFETY: `far` is one, and `found` is an output.
        unsafe {
            let Far(pieces) = &mut *far.cast::<Far>();
            let Some((low, bytes)) =
                pieces.iter_mut().find(|(low, all)| at.wrapping_sub(*low) < all.len() as u64)
            else {
                return 0;
            };
            let high = *low + bytes.len() as u64;
            found.write(Range { low: *low, high, bytes: bytes.as_mut_ptr() });
            1
        }
    }

    fn at(&self, address: u64) -> u8 {
        let (low, bytes) = self.0.iter().rev().find(|(low, _)| address >= *low).unwrap();
        bytes[(address - low) as usize]
    }

    /// Runs the last launches of a plan, from number `first` on, at most so many blocks of each, and
    /// returns how many it has.
    fn run(&mut self, dims: &[(i64, i64, i64)], size: i64, first: usize, blocks: u32) -> usize {
        let mut plan = Plan::new(SRC as *const u8, DST as *mut u8, Item::Bytes(size as usize));
        dims.iter().for_each(|&(n, src, dst)| plan.push(Dim { n, src, dst }));
        let all: Vec<_> = launches(&plan, i64::MAX).collect();
        for launch in &all[first.min(all.len())..] {
            let of = (&raw mut *self).cast();
            // SAFETY: the callback describes the pieces.
            unsafe {
                let grid = launch.grid[0];
                let blocks = (blocks.min(grid), grid);
                Modules::shipped().run(launch.kernel, blocks, &launch.args, Far::reach, of);
            }
        }
        all.len()
    }
}

const SRC: u64 = 1 << 44;
const DST: u64 = 1 << 45;

#[test]
fn strides_beyond_32_bits_and_more_elements_than_a_launch_has() {
    let mut random = Random(0xfa12_0000_0000_0001);
    let mut filled = |n: i64| {
        let mut bytes = vec![0; n as usize];
        random.fill(&mut bytes);
        bytes
    };
    let (rows, n, by_src, by_dst) = (70i64, 66i64, 5i64 << 32, 7i64 << 32);
    for size in [1, 2, 4, 8, 16] {
        // Rows to rows, with a gap in the source; rows to columns; columns to rows.
        for (src, dst) in [
            ([by_src, 2 * size], [by_dst, size]),
            ([by_src, size], [size, 80 * size]),
            ([size, 80 * size], [by_dst, size]),
        ] {
            let piece = 80 * 80 * size;
            let far = |base: u64, by: i64| {
                (0..rows).map(move |row| base + (row * by) as u64).take(if by > piece {
                    70
                } else {
                    1
                })
            };
            let pieces = far(SRC, src[0]).chain(far(DST, dst[0]));
            let mut memory = Far(pieces.map(|low| (low, filled(piece))).collect());
            memory.run(&[(rows, src[0], dst[0]), (n, src[1], dst[1])], size, 0, u32::MAX);
            for (row, i, byte) in
                (0..rows * n * size).map(|k| (k / n / size, k / size % n, k % size))
            {
                let from = SRC + (row * src[0] + i * src[1] + byte) as u64;
                let to = DST + (row * dst[0] + i * dst[1] + byte) as u64;
                assert_eq!(memory.at(from), memory.at(to), "{size} {row} {i}");
            }
        }
        // The last of two launches.
        let (most, more) = (1i64 << 27, 1000);
        let pieces = [(SRC, 2 * size), (DST, size)]
            .map(|(base, step)| (base + (most * step) as u64, filled(more * step)));
        let mut memory = Far(pieces.into());
        let last = [(most + more, 2 * size, size)];
        assert_eq!(memory.run(&last, size, 1, u32::MAX), 2);
        for k in most * size..(most + more) * size {
            let from = SRC + (k / size * 2 * size + k % size) as u64;
            assert_eq!(memory.at(from), memory.at(DST + k as u64), "{size} {k}");
        }
    }
}

/// The first blocks of the largest grid work on the first units and, in later turns, on those after
/// the last block's. An image is a unit here, or four; no others are in memory.
#[test]
fn more_work_than_a_grid_has_blocks() {
    const BLOCKS: i64 = 4;
    let mut random = Random(0xb10c_0000_0000_0001);
    for (size, turns, units, inner) in [
        (4, 4, 1, vec![(256, 8, 4)]),
        (16, 4, 1, vec![(256, 32, 16)]),
        (2, 2, 1, vec![(512, 4, 2)]),
        (8, 1, 4, vec![(33, 8, 528), (65, 272, 8)]),
        (1, 1, 1, vec![(3, 1, 160), (150, 3, 1)]),
        (2, 1, 1, vec![(150, 2, 6), (3, 320, 2)]),
    ] {
        let extent = |step: fn(&(i64, i64, i64)) -> i64| {
            (inner.iter().map(|d| (d.0 - 1) * step(d)).sum::<i64>() + size + 95) / 32 * 32
        };
        let (src, dst) = (extent(|d| d.1), extent(|d| d.2));
        let first = |turn: i64| (turn << 16) / units;
        let images: Vec<_> =
            (0..=turns).flat_map(|turn| first(turn)..first(turn) + BLOCKS / units).collect();
        let mut filled = |n: i64| {
            let mut bytes = vec![0; n as usize];
            random.fill(&mut bytes);
            bytes
        };
        let mut pieces = vec![];
        for (base, step) in [(SRC, src), (DST, dst)] {
            pieces.extend(images.iter().map(|&i| (base + (i * step) as u64, filled(step))));
        }
        let mut memory = Far(pieces);
        let mut dims = vec![(first(turns) + BLOCKS / units, src, dst)];
        dims.extend(&inner);
        assert_eq!(memory.run(&dims, size, 0, BLOCKS as u32), 1, "{dims:?}");
        let none = (1, 0, 0);
        let (outer, last) = (if inner.len() > 1 { inner[0] } else { none }, inner[inner.len() - 1]);
        for (i, a, b) in images
            .iter()
            .flat_map(|&i| (0..outer.0).flat_map(move |a| (0..last.0).map(move |b| (i, a, b))))
        {
            for byte in 0..size {
                let from = SRC + (i * src + a * outer.1 + b * last.1 + byte) as u64;
                let to = DST + (i * dst + a * outer.2 + b * last.2 + byte) as u64;
                assert_eq!(memory.at(from), memory.at(to), "{size}: image {i}, {a}, {b}");
            }
        }
    }
}
