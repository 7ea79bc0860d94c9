//! A kind of layout, and random cases of it: both tensors dense in some order of the axes, but for
//! gaps, strides of both signs and repeated elements.
#![allow(dead_code)] // each test uses some of it

use dlpack_rs::plan::{Dim, Item};

use crate::model::{Case, Random};

/// Extents to choose from.
#[derive(Clone, Copy)]
pub enum Extent {
    /// Elements.
    N(&'static [i64]),
    /// As many cache lines of elements; sometimes one element more, or one less.
    Lines(&'static [i64]),
}
pub use Extent::*;

/// Gaps to choose from, bytes behind all elements of an axis: `ITEM` is an element, and a negative
/// one makes the stride a multiple of as many bytes.
pub type Gaps = &'static [i64];
pub const ITEM: i64 = i64::MAX;

#[derive(Clone, Copy)]
pub struct Kind {
    pub what: &'static str,
    pub cases: usize,
    /// Bytes of an element, or bits, which all others count, too.
    pub sizes: &'static [i64],
    pub bits: bool,
    /// Of each axis, in the order of the source, outermost first.
    pub extents: &'static [Extent],
    /// The axes in the order of the destination, outermost first; random where there is none.
    pub orders: &'static [&'static [usize]],
    /// The innermost source stride, in elements.
    pub steps: &'static [i64],
    pub gaps: [Gaps; 2],
    /// An axis of which the source has one element.
    pub repeated: Option<usize>,
    /// Streaming from this many bytes on.
    pub streams: &'static [usize],
    pub threads: usize,
    /// Most bytes, or bits, of all elements.
    pub most: i64,
}

pub const POWERS: &[i64] = &[1, 2, 4, 8, 16];
pub const SIDE: Extent =
    N(&[3, 8, 16, 17, 24, 40, 41, 64, 70, 127, 128, 130, 200, 256, 260, 300, 520]);
pub const BASE: Kind = Kind {
    what: "two axes: every path of the tiles, at every alignment",
    cases: 120,
    sizes: &[1, 2, 4, 8, 16, 3, 12, 5, 6, 7],
    bits: false,
    extents: &[SIDE, SIDE],
    orders: &[&[1, 0]],
    steps: &[1],
    gaps: [&[0, 0, 64, 1, ITEM, 7]; 2],
    repeated: None,
    streams: &[0, usize::MAX],
    threads: 1,
    most: 1 << 20,
};

impl Kind {
    pub fn case(&self, random: &mut Random, size: i64) -> Case {
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
        let n = size as usize;
        let item = if self.bits { Item::Bits { width: n, dst_slot: n } } else { Item::Bytes(n) };
        Case { item, dims: order.iter().map(|&axis| dims[axis]).collect() }
    }

    /// At a guard page, or at any offset in a cache line: mostly that of an element.
    pub fn places(random: &mut Random, size: i64) -> [u64; 2] {
        let phase = random.below(64) as i64 / size * size + random.one_of(&[0, 0, 0, 1]);
        let offset = 1 + 4 * phase as u64;
        [random.next(), random.one_of(&[offset, offset, 0, 2])]
    }
}
