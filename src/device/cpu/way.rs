//! Which way a part of a plan goes: one answer, for the engine, which goes it, and for whoever
//! wants to know beforehand.
use core::ops::Range;

use super::engine::Sides;
use super::ops::{Braid, OddKernel, OddTiles, Ops, Shuffle, Split, Squares, WINDOW};
use super::staged::Stage;
use super::tuning::tuning;
use super::{braid, deal, groups, lines, nest, odd, planes, small};
use crate::device::part::Part;
use crate::device::plan::{Dim, Item, Kernel};

/// A way, and the kernel for it where not every level has one.
pub(super) enum Way {
    /// One contiguous block.
    Memcpy,
    /// Long elements, one by one.
    Blocks,
    /// Loops alone.
    Nest,
    /// Two loops over single elements.
    Strided,
    /// Two loops over tables of offsets.
    Tables,
    /// Destination rows, element by element.
    Gather,
    /// One element for a whole row.
    Fill,
    /// Every so many-th element.
    Step(i64),
    /// A few planes woven.
    Interleave,
    /// Squares and tiles, of faces of any size.
    Transpose,
    /// Tiles, of faces of which one side is short.
    Slim,
    /// Squares or tiles alone, of small faces.
    Small(Squares),
    /// Squares of any size, of elements of any size.
    OddSquares(OddKernel),
    /// Likewise, past the caches, of rows that are copied first.
    OddStaged(OddKernel, &'static Stage),
    /// Tiles of elements of 3, 5, 6 and 7 bytes.
    OddTiles(OddTiles),
    /// A few rows in turn.
    Braid(Braid),
    /// Pixels taken apart, all planes in one go.
    Planes(i64, (usize, Split)),
    /// Pixels to planes, or back.
    Deal((deal::Found, deal::Dealt)),
    /// A few bytes in any order.
    Groups((groups::Found, Shuffle)),
    /// Packed elements.
    Bits,
}

impl Way {
    /// The way of a part of a simplified plan, with the kernels of a level; past the caches, if its
    /// output `streams`. If it turns faces, `sides` are theirs.
    #[inline(never)] // a frame of its own: stacks may be small
    pub(super) fn of(ops: &Ops, plan: &Part, streams: bool, sides: &mut Sides) -> Way {
        let Item::Bytes(size) = plan.item else { return Way::Bits };
        let kernel = plan.way(sides);
        let moved = moved(plan, (kernel, sides), size);
        if streams && let Some(way) = reversed(plan, kernel, size) {
            return way;
        }
        let several = several(ops, plan, kernel, size);
        if let Some(way) = several.or_else(|| pixels(ops, plan, kernel, size, streams)) {
            return way;
        }
        let alone = kernel == Kernel::Few || moved && nested(plan, size, streams);
        if alone || scattered(ops, plan, (kernel, sides), size, streams) {
            return Way::Nest;
        }
        if let Some(way) = rare(ops, plan, (kernel, sides), size, streams) {
            return way;
        }
        if let Some(way) = in_order(plan, kernel, size, streams) {
            return way;
        }
        let (n, dense) = (plan.inner().n as usize, plan.inner().dst == size as i64);
        let far = if streams { 128 } else { 1025 };
        match kernel {
            _ if tiny(ops, plan, (kernel, sides), size, streams) => {
                let near = nested(plan, size, streams);
                let plain = if near { Way::Nest } else { Way::Tables };
                odd::short(ops, plan, size, sides).map_or(plain, Way::OddSquares)
            }
            Kernel::Memcpy => Way::Memcpy,
            Kernel::Rows | Kernel::Gather if size >= far || !dense && size >= 256 => Way::Blocks,
            Kernel::Rows | Kernel::Gather if dense && n * size >= 64 => Way::Gather,
            Kernel::Fill if size > 1024 => Way::Blocks,
            Kernel::Fill if n >= 4 => Way::Fill,
            Kernel::Step(step) if n * size >= 64 => Way::Step(step),
            Kernel::Interleave => Way::Interleave,
            Kernel::Transpose => Way::Transpose,
            Kernel::Slim => Way::Slim,
            _ if plan.ndim >= 2 && tuning().nested.0 && nested(plan, size, streams) => Way::Nest,
            _ => Way::Strided,
        }
    }

    /// Its name.
    pub(super) const fn name(&self) -> &'static str {
        match self {
            Way::Memcpy => "memcpy",
            Way::Blocks => "blocks",
            Way::Nest => "nest",
            Way::Strided => "strided",
            Way::Tables => "tables",
            Way::Gather => "gather",
            Way::Fill => "fill",
            Way::Step(_) => "step",
            Way::Interleave => "interleave",
            Way::Transpose => "transpose",
            Way::Slim => "slim",
            Way::Small(_) => "small",
            Way::OddSquares(_) => "odd squares",
            Way::OddStaged(..) => "odd squares of copies",
            Way::OddTiles(_) => "odd tiles",
            Way::Braid(_) => "braid",
            Way::Planes(..) => "planes",
            Way::Deal(_) => "deal",
            Way::Groups(_) => "groups",
            Way::Bits => "bits",
        }
    }
}

/// The way of long reversed rows past the caches, where the next ones are asked for: groups of so
/// many bytes are slower (measured on a Xeon, benches/notes.md).
fn reversed(plan: &Part, kernel: Kernel, size: usize) -> Option<Way> {
    const LONG: i64 = 256;
    let Dim { n, src, dst } = plan.inner();
    let able = lines::from_first(plan) && src == -dst && n.saturating_mul(dst) > LONG;
    match kernel {
        Kernel::Step(-1) if able => Some(Way::Step(-1)),
        Kernel::Rows if able && (5..=16).contains(&size) => Some(Way::Gather),
        _ => None,
    }
}

/// Whether elements are moved one by one, by whatever way: of 16 bytes and more none is turned in
/// registers.
fn moved(plan: &Part, (kernel, sides): (Kernel, &Sides), size: usize) -> bool {
    const LONG: i64 = 256;
    let able = size >= 16 || size >= 8 && tuning().nested.0 && nest::light(plan, size);
    match kernel {
        Kernel::Memcpy | Kernel::Fill => false,
        Kernel::Transpose | Kernel::Slim => able && !odd::before_loops(plan, size, sides),
        // Long reversed rows are turned around in registers.
        Kernel::Step(-1) if size == 8 && plan.source_inner().is_none() => {
            able && plan.inner().n < LONG
        }
        _ => able,
    }
}

/// Groups of several elements of 8 bytes and more, where loops alone would copy these one by one,
/// as they do whatever is near (measured on a Xeon, benches/notes.md).
fn several(ops: &Ops, plan: &Part, kernel: Kernel, size: usize) -> Option<Way> {
    const LEAST: u64 = 16 << 10;
    let able = size >= 8 && tuning().nested.0 && plan.whole_bytes() >= LEAST;
    // Of more, a group has one element.
    let near = plan.inner().n.saturating_mul(size as i64) <= WINDOW as i64;
    let able = able && near && !matches!(kernel, Kernel::Memcpy | Kernel::Fill);
    let found = if able { groups::of(ops, plan, kernel, size) } else { None };
    found.filter(|(it, _)| groups::several(it)).map(Way::Groups)
}

/// The way of a plan for which few levels have kernels, if the level in use does.
fn rare(
    ops: &Ops,
    plan: &Part,
    (kernel, sides): (Kernel, &mut Sides),
    size: usize,
    streams: bool,
) -> Option<Way> {
    let never = matches!(kernel, Kernel::Memcpy | Kernel::Few | Kernel::Interleave);
    let grouped = !never && !alone(plan, kernel, size, streams);
    if grouped && let Some(found) = groups::of(ops, plan, kernel, size) {
        return Some(Way::Groups(found));
    }
    let able = match kernel {
        Kernel::Interleave => !streams,
        Kernel::Gather | Kernel::Transpose | Kernel::Slim => true,
        _ => false,
    };
    if able && let Some(braid) = braid::of(ops, plan, size) {
        return Some(Way::Braid(braid));
    }
    match kernel {
        Kernel::Rows => odd::of(ops, plan, size, sides, streams),
        // Picking is for long runs.
        Kernel::Step(_) if size <= 2 && plan.inner().n < 128 => {
            *sides = plan.sides(size as i64)?;
            short(ops, plan, size, sides, false)
        }
        // Small faces.
        Kernel::Gather if size == 1 => {
            *sides = plan.sides(1)?;
            let enough = sides.0.n.saturating_mul(sides.1.n) >= 96;
            if enough { short(ops, plan, 1, sides, true) } else { None }
        }
        // Planes that are so many, and their runs so short, that it is faster than to weave them.
        Kernel::Interleave if size >= 4 && plan.inner().n >= 3 => {
            let (planes, run) = (plan.inner().n, plan.dim(plan.ndim.wrapping_sub(2)).n);
            // Past the caches from 4 planes of 4 bytes on, and 3 of 8: measured (benches/notes.md).
            let least = if streams { 5 - size as i64 / 4 } else { 5 };
            let many = planes >= least && run <= 64;
            let able = many || size == 8 && few(planes, run) && !nested(plan, size, streams);
            *sides = if able { plan.sides(size as i64) } else { None }?;
            squares(ops, plan, size, sides, true)
        }
        Kernel::Transpose | Kernel::Slim => squares(ops, plan, size, sides, false),
        _ => None,
    }
}

/// The way of a plan whose source is in pixels, or whose destination is. Where loops alone are
/// faster than to deal, and where neither is, is measured (Zen 4 and Zen 3, benches/notes.md).
fn pixels(ops: &Ops, plan: &Part, kernel: Kernel, size: usize, streams: bool) -> Option<Way> {
    if matches!(kernel, Kernel::Memcpy | Kernel::Few | Kernel::Rows | Kernel::Fill) {
        return None;
    }
    if let Kernel::Step(step) = kernel
        && let Some(split) = planes::of(ops, plan, size, step, streams)
    {
        return Some(Way::Planes(step, split));
    }
    let whole = ops.groups.is_some_and(|(_, masked, _)| !masked);
    let found = if whole { groups::of(ops, plan, kernel, size) } else { None };
    if let Some(found) = found.filter(|(it, _)| groups::whole(it)) {
        return Some(Way::Groups(found));
    }
    if let Some(found) = groups::matrices(ops, plan, kernel, size) {
        return Some(Way::Groups(found));
    }
    let run = plan.inner().n.saturating_mul(size as i64);
    let middle = middle(ops, plan, size, streams);
    if middle.contains(&run) && nest::scans(plan, size) {
        return Some(Way::Nest);
    }
    let squares = size == 8 && plan.inner().src == 64 && run >= 512;
    if size == 16 && run < middle.end || squares {
        return None;
    }
    let (found, deal) = deal::of(ops, plan, size)?;
    found.worth(&deal, plan, size, streams).then_some(Way::Deal((found, deal)))
}

/// Bytes of the runs that loops alone are the fastest for: where lines are dealt, and where parts
/// of 16 bytes are.
fn middle(ops: &Ops, plan: &Part, size: usize, streams: bool) -> Range<i64> {
    const LARGE: u64 = 8 << 20;
    let parts = matches!(ops.deal, Some(deal::Dealt::Parts(_)));
    let pixel = plan.inner().src.saturating_abs();
    match size {
        16 if streams && parts => 513..i64::MAX,
        16 if streams => 513..4096,
        16 if parts && pixel == 32 => 513..i64::MAX,
        16 if parts => 513..if pixel == 48 { 48 << 10 } else { 12 << 10 },
        16 => 513..8192,
        8 if parts && pixel == 16 => 0..0,
        8 if parts && (streams || pixel == 24) => 64..i64::MAX,
        8 if parts => 64..4096,
        8 if plan.whole_bytes() >= LARGE => 320..3072,
        4 if parts && (17..=if streams { 32 } else { 28 }).contains(&pixel) => 32..i64::MAX,
        4 if streams && !parts => 513..3072,
        _ => 0..0,
    }
}

/// The way of rows in the caches that take every so many-th element, in the source's order: short
/// ones end before shuffles are worth their beginning (measured on Zen 3, benches/notes.md).
fn in_order(plan: &Part, kernel: Kernel, size: usize, streams: bool) -> Option<Way> {
    let Kernel::Step(step) = kernel else { return None };
    let short = match size {
        1 => 128,
        2 => 192,
        4 => 448,
        _ => 640,
    };
    let nbytes = plan.inner().n.saturating_mul(size as i64);
    let able = !streams && nbytes >= 64 && plan.source_inner().is_none() && plan.ndim >= 2;
    able.then_some(if nbytes < short { Way::Nest } else { Way::Step(step) })
}

/// Squares of small faces, or of any size; these of `even` faces, too.
fn squares(ops: &Ops, plan: &Part, size: usize, sides: &Sides, even: bool) -> Option<Way> {
    match small::of(ops, plan, size, sides) {
        Some(squares) => Some(Way::Small(squares)),
        None => short(ops, plan, size, sides, even),
    }
}

/// Squares of any size, of uneven faces; of `even` ones, too, if they are to be.
fn short(ops: &Ops, plan: &Part, size: usize, sides: &Sides, even: bool) -> Option<Way> {
    let able = even || odd::uneven(plan, size, sides);
    let turn = if able { odd::short(ops, plan, size, sides) } else { None };
    turn.map(Way::OddSquares)
}

/// Whether loops alone copy a plan that has no kernel.
fn nested(plan: &Part, size: usize, streams: bool) -> bool {
    !streams && nest::suits(plan, size) || size == 16 && nest::compact(plan)
}

/// Whether faces are turned element by element, by loops alone: of 8 bytes, where a list tells
/// where columns are, and there are no squares of any size (measured on Zen 3, benches/notes.md).
fn scattered(
    ops: &Ops,
    plan: &Part,
    (kernel, sides): (Kernel, &Sides),
    size: usize,
    streams: bool,
) -> bool {
    const MOST: i64 = 4 << 20;
    let faces = size == 8 && matches!(kernel, Kernel::Transpose | Kernel::Slim);
    if !faces || streams || !tuning().reads() || odd::short(ops, plan, size, sides).is_some() {
        return false;
    }
    sides.1.listed() && nest::fits(plan, size, MOST)
}

/// Whether runs of every so many-th element are copied one by one: of 4 and 8 bytes, of a line or
/// more that a table has room for.
fn singles(plan: &Part, kernel: Kernel, size: usize) -> bool {
    let nbytes = plan.inner().n.saturating_mul(size as i64);
    matches!(kernel, Kernel::Step(_)) && size >= 4 && (64..=256).contains(&nbytes)
}

/// Whether more of them than a line has are. Past the caches, on makes that were measured with next
/// rows asked for, groups are faster.
fn alone(plan: &Part, kernel: Kernel, size: usize, streams: bool) -> bool {
    let past = streams && tuning().backwards > 0;
    !past && singles(plan, kernel, size) && plan.inner().n * size as i64 > 64
}

/// Whether planes are a few short ones.
fn few(planes: i64, run: i64) -> bool {
    planes.saturating_mul(run) <= 64
}

/// Whether a plan goes element by element, through tables of offsets.
fn tiny(
    ops: &Ops,
    plan: &Part,
    (kernel, (dst, src)): (Kernel, &Sides),
    size: usize,
    streams: bool,
) -> bool {
    match kernel {
        // Rows that use most of the source's lines: in the buffer, and past the caches.
        Kernel::Gather if size == 16 && streams && plan.inner().src.abs() <= 64 => {
            plan.inner().n < 32 || plan.source_inner().is_some()
        }
        // Long lines need no table.
        Kernel::Gather | Kernel::Scatter => plan.inner().n < 64 || plan.source_inner().is_some(),
        // Long rows of one dimension of the source go past the caches by way of the buffer. Larger
        // ones if their rows are not the source's.
        Kernel::Rows => match plan.source_inner() {
            Some(_) => size <= 80,
            None => size <= 16 && !(streams && size > 8 && plan.inner().n >= 64),
        },
        Kernel::Step(_) => {
            let short = plan.inner().n < 16 || size == 8 || singles(plan, kernel, size);
            short && plan.ndim >= 3
        }
        // Of faces that are a few elements wide, tiles would be mostly edges, and runs mostly
        // their beginning; small faces cost more to set up.
        Kernel::Transpose => {
            let few = match size {
                16 => 12,
                8 if odd::short(ops, plan, size, &(*dst, *src)).is_none() => 4,
                _ => 8,
            };
            size >= 4
                && (dst.n.min(src.n) <= few
                    || dst.n.saturating_mul(src.n) < if size >= 8 { 512 } else { 64 })
        }
        // A few short planes, unless they are woven (measured on Zen 3, benches/notes.md).
        Kernel::Interleave => {
            let (planes, run) = (plan.inner().n, plan.dim(plan.ndim.wrapping_sub(2)).n);
            let woven = tuning().reads() && planes <= 3 && run >= 16;
            size == 8 && few(planes, run) && !woven
        }
        _ => false,
    }
}
