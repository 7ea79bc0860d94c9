//! Transposes of small faces: squares or tiles, one after the other, past the caches by way of
//! other memory. What strips, tables and squares of any size prepare for a face would take longer
//! than turning it.
use super::engine::{Sides, faces};
use super::face::Face;
use super::level::stream_from;
use super::ops::{Ask, Band, Ops, Rows, Squares, To};
use super::staged::Memory;
use super::stream::{Buffer, Joined};
use super::transpose::Away;
use super::tuning::tuning;
use crate::device::part::Part;
use crate::device::plan::Dim;

/// Bytes of a face from which strips are as fast; and where faces are turned in other memory and
/// their rows are of so many elements at most.
const SMALL: usize = 64 << 10;
const LARGE: usize = 16 * SMALL;
const ROWS: usize = 300;

/// How far ahead on both sides lines are asked for past the caches: two pages, for within the one
/// in use processors fetch ahead by themselves; and also of faces of less bytes than `ALONE`.
const AHEAD: usize = 8192;
const ALONE: usize = 2048;

/// Bytes of an output that, with the source, does not fit into the second-level cache, and elements
/// of the destination's rows whose lines are asked for there.
const OUTSIDE: u64 = 1 << 20;
const FEW: i64 = 40;

/// The squares of a plan of elements of 1, 2, 4 or 8 bytes, if its faces are small and strides tell
/// where their rows are.
pub(super) fn of(ops: &Ops, plan: &Part, size: usize, sides: &Sides) -> Option<Squares> {
    let lists = sides.0.listed() || sides.1.listed();
    let stride = sides.1.dims().next().map_or(0, |i| plan.dim(i).dst.unsigned_abs() as usize);
    let (n_dst, n_src) = (sides.0.n as usize, sides.1.n as usize);
    let copied = copied(plan, size, sides);
    let long = copied
        && size <= 4
        && match (n_dst * size, n_src * size) {
            // Rows that begin in the lines of others.
            (row, columns) if row & 63 == 0 => match row {
                _ if plan.dst as usize & 63 == 0 => row >= 1024 && columns <= 64,
                ..=1024 => columns <= 256,
                _ => columns <= if row <= 2048 { 128 } else { 64 },
            },
            _ => n_dst <= ROWS,
        };
    let most = if long { LARGE } else { SMALL };
    let columns = match (copied, long) {
        (_, true) => usize::MAX,
        (true, _) => columns(64),
        _ => columns(stride),
    };
    let able = !lists && n_src <= columns && suits(ops, size, (n_dst, n_src), most);
    ops.squares.filter(|_| able)
}

/// Copies a plan for which [`of`] names the squares.
///
/// # Safety
/// As [`super::copy`].
#[inline(never)] // a frame of its own: stacks may be small
pub(super) unsafe fn copy(
    ops: &Ops,
    plan: &Part,
    size: usize,
    (turn, sides): (Squares, &Sides),
    streams: bool,
) {
    let away = Away::new(ops, plan.whole_bytes(), size.trailing_zeros(), streams);
    let nbytes = (sides.0.n * sides.1.n) as usize * size;
    // In the caches, where stores wait for their lines, of what is made next: measured
    // (benches/notes.md).
    let long = plan.ndim == 3 && size == 4 && sides.0.n >= FEW && nbytes <= 2 * AHEAD;
    let waits = long && plan.whole_bytes() >= OUTSIDE;
    let waits = waits && nbytes >= ALONE && tuning().soon > 0;
    let far = streams && nbytes >= ALONE;
    let copied = away.streams && copied(plan, size, sides);
    let mut copies = Copies::new(ops);
    faces(plan, size, sides, &mut |face| {
        let whole = (face.n_dst | face.n_src) & (face.line() - 1) == 0;
        let to = if away.streams { To::Lines } else { To::Rows };
        // SAFETY: a face of the caller's plan; squares' rows are whole lines.
        unsafe {
            if whole && face.columns.lined() && face.dst as usize & 63 == 0 {
                squares(turn, face, to, far);
            } else if !copied || copies.turn(ops, face).is_none() {
                tiles(ops, face, [far, far || waits]);
            }
        }
    });
    // SAFETY: the last face's end.
    unsafe { copies.joined.flush() };
    away.fence(ops);
}

/// Faces that are turned in memory of their own, and go from there past the caches in whole lines:
/// two in turn, for a line may begin in one and end in the next.
struct Copies<'a> {
    joined: Joined<'a>,
    memory: Memory,
    second: bool,
}

impl Copies<'_> {
    fn new(ops: &Ops) -> Copies<'_> {
        Copies { joined: Joined::new(ops), memory: Memory::none(), second: false }
    }

    /// Turns a face, some rows of the destination at a time; nothing if there is no memory.
    ///
    /// # Safety
    /// As [`copy`]; the face is one of a plan that is [`copied`].
    unsafe fn turn(&mut self, ops: &Ops, face: &Face) -> Option<()> {
        let (row, line) = (face.n_dst << face.log, face.line());
        let some = ((SMALL / row.max(1)) & line.wrapping_neg()).max(line);
        let each = ((some + line) * row + 63) & !63;
        let mut s = 0;
        while s < face.n_src {
            let left = face.n_src - s;
            let n = if left < some + line { left } else { some };
            self.second = !self.second;
            let to = self.memory.lines(2 * each)?.wrapping_add(if self.second { each } else { 0 });
            let part = face.part(0, face.n_dst, s, n);
            // SAFETY: a part of the caller's face, whose rows follow one another.
            unsafe {
                tiles(ops, &part.at(part.src, to), [false; 2]);
                self.joined.push(face.dst.wrapping_add(s * row), to, n * row);
            }
            s += n;
        }
        Some(())
    }
}

/// Whether faces are turned in other memory: each is one run of the destination, and has rows that
/// are longer than a line; of an output most of which does not fit into the caches, or less where
/// all rows begin in the same place of a line, but not with it (measured, benches/notes.md).
fn copied(plan: &Part, size: usize, (dst, src): &Sides) -> bool {
    const ROW: usize = 96;
    let (row, all) = (dst.n as usize * size, (dst.n * src.n) as usize * size);
    let column = src.dims().next().map_or(Dim::NONE, |i| plan.dim(i));
    let dense = column.dst == row as i64 && column.src > 0;
    let long = all >= ALONE && row >= if size > 1 || src.n > 256 { ROW } else { 2 * ROW };
    let lined = row & 63 == 0 && plan.dst as usize & 63 > 0;
    let (least, [starts, others]) = tuning().alone;
    let large = plan.whole_bytes() >= stream_from().min(if lined { starts } else { others });
    dense && long && large && size < least
}

/// Columns of which half of the first-level cache has room for a line each, `apart` bytes from one
/// another: tiles fill these in two or more goes.
fn columns(apart: usize) -> usize {
    const WAYS: usize = 4;
    let sets = if apart & 63 == 0 { 64 >> (apart / 64).trailing_zeros().min(6) } else { 64 };
    WAYS * sets
}

/// Whether faces are small, of less than `most` bytes, and large enough for tiles, of which not too
/// much is made twice.
fn suits(ops: &Ops, size: usize, (n_dst, n_src): (usize, usize), most: usize) -> bool {
    let log = size.trailing_zeros();
    let all = n_dst.saturating_mul(n_src);
    let rows = if n_dst << log < ops.width { 16 } else { ops.width } >> log;
    let columns = 16 >> log;
    let up = |n: usize, by: usize| n.saturating_add(by.wrapping_sub(1)) & by.wrapping_neg();
    let made = up(n_dst, rows).saturating_mul(up(n_src, columns));
    let tiles = n_dst >= rows && n_src >= columns && made / 5 <= all / 2;
    // Long rows of few columns, of which the last tiles would be much: squares of any size.
    let slim = n_src << log < 64 && n_src & columns.wrapping_sub(1) > 0 && n_dst >= 4 * n_src;
    size <= 8 && n_src > 2 && tiles && !slim && (32..most >> log).contains(&all)
}

/// A face of whole squares.
#[inline(never)] // a frame of its own: stacks may be small
unsafe fn squares(turn: Squares, face: &Face, to: To, far: bool) {
    let (log, mut half) = (face.log, Buffer::new());
    let rows = Rows::Apart([face.rows.inner(), face.columns.inner(), 64]);
    let (lines, columns) = (face.n_dst << log >> 6, face.n_src << log >> 6);
    let near = tuning().second == usize::MAX;
    let ask = Ask { lines: usize::from(far), ahead: AHEAD, columns, near, ..Ask::NONE };
    let band = Band { log, lines, columns, rows, half: half.ptr(), to, ask };
    // SAFETY: the caller's face, and room for another square.
    unsafe { turn(face.src, face.dst, &band) };
}

/// A face of at least a tile, whose source's and destination's lines that follow are asked for if
/// that `asks`. The last tile of a row or column moves back over its predecessor, and writes the
/// same bytes again.
unsafe fn tiles(ops: &Ops, face: &Face, asks: [bool; 2]) {
    let (log, from, to) = (face.log as usize & 15, face.rows.inner(), face.columns.inner());
    let wide = face.n_dst << log >= ops.width;
    let (width, tiles) = if wide { (ops.width, &ops.tiles) } else { (16, &ops.narrow) };
    let Some(tile) = tiles.get(log) else { return };
    let (blocks, last) = ((face.n_src << log) / 16, face.n_src - face.vector());
    let mut d = 0;
    while d < face.n_dst {
        d = d.min(face.n_dst - (width >> log));
        let src = face.src.wrapping_offset(d as isize * from);
        let dst = face.dst.wrapping_add(d << log);
        // SAFETY: a part of the caller's face; a prefetch touches nothing.
        unsafe {
            if asks[0] {
                let src = src.wrapping_add(AHEAD);
                (ops.fetch)(src, Rows::Apart([from]), width >> log, 1 + blocks / 4);
            }
            if asks[1] {
                (ops.fetch)(dst.wrapping_add(AHEAD), Rows::Apart([to]), face.n_src, 1);
            }
            tile(src, dst, Rows::Apart([from, to]), blocks);
            if last & (face.vector() - 1) > 0 {
                let dst = dst.wrapping_offset(last as isize * to);
                tile(src.wrapping_add(last << log), dst, Rows::Apart([from, to]), 1);
            }
        }
        d += width >> log;
    }
}
