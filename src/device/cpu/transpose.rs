//! Transposes: the source is dense along one side (columns), the destination along the other.

use super::face::{COLUMNS_MOST, Face, ROWS_MOST, Tables};
use super::ops::{Ask, Band, Ops, Rows, Squares, To};
use super::rows;
use super::staged::{self, Memory};
use super::straight;
use super::stream::{BUFFER, Buffer};
use super::touch;
use super::tuning::{Tuning, tuning};
use super::windows;

/// Rows of the buffer that are so many bytes apart, as a list.
pub(super) const fn listed<const N: usize>(stride: usize) -> [i32; N] {
    let mut rows = [0; N];
    let mut i = 0;
    while i < N {
        rows[i] = (i * stride) as i32;
        i += 1;
    }
    rows
}

/// Elements of a source row that are used up in one go: the processor fetches ahead along them, and
/// lines of as many destination rows that are half done stay in the caches.
const RUN: usize = 4096;

/// Elements of the destination's rows that are finished before the next of short source rows, of
/// which what is left over of whole lines is read once more.
const REACH: usize = 1024;

/// Elements of the longest destination rows that are finished line after line where source rows are
/// read before.
const SHORT: usize = 96;

/// How far away the tensors are.
#[derive(Clone, Copy)]
pub(super) struct Away {
    /// Whether the output goes past the caches.
    pub(super) streams: bool,
    /// Whether it does though the source may lie in them.
    early: bool,
    /// Whether it does so even where elements may be copied one by one.
    late: bool,
    /// Whether source lines are asked for.
    ahead: bool,
    /// Likewise where elements are copied one by one.
    far: bool,
    /// Whether squares may share lines.
    shared: bool,
    /// Bytes of source rows that are read at once instead.
    pub(super) touched: usize,
    /// Whether rows are copied before they are turned: where they may be if the output stays in the
    /// caches, before that is asked of a face.
    staged: bool,
}

impl Away {
    /// For an output of so many bytes, of elements of 1 << `log`, that goes past the caches if it
    /// `streams`.
    pub(super) fn new(ops: &Ops, nbytes: u64, log: u32, streams: bool) -> Away {
        let Tuning { stream_from, ahead_from, rows_from, bytes_from, touched, .. } = tuning();
        let from = stream_from.get(log as usize).copied().unwrap_or([u64::MAX; 2]);
        let [early, late] = from.map(|from| !streams && ops.streams && nbytes >= from);
        let far = ahead_from.get(log as usize).is_some_and(|&from| nbytes >= from);
        let ahead = streams || far;
        let bytes = *bytes_from < u64::MAX && (streams || nbytes >= *bytes_from);
        let (streams, by_rows) = (streams || early, nbytes >= *rows_from);
        let touched = if streams || by_rows { *touched } else { 0 };
        let (far, shared) = (by_rows, log > 0 || bytes);
        let staged = nbytes >= staged::NEAR;
        Away { streams, early, late, ahead, far, shared, touched, staged }
    }

    /// Goes past the caches only where that suits a face, whose rows may be `joined`; tells whether
    /// they are wide enough as they are.
    fn suits(&mut self, ops: &Ops, face: &Face, joined: bool) -> bool {
        let wide = face.log >= tuning().rows_log && rows::suits(face);
        let joined = joined || self.shared && shares(ops, face);
        let (staged, near) = (self.streams && staged::suits(ops, face, self.early), self.staged);
        let past = windowed(face) || face.columns.lined() || joined || staged;
        let stays = wide && !self.late || tuning().stays && !face.apart();
        self.streams &= past && !(self.early && stays);
        self.staged = if self.streams { staged } else { near && staged::near(ops, face) };
        self.early &= self.streams;
        wide
    }

    /// Orders what went past the caches early before whatever follows.
    pub(super) fn fence(&self, ops: &Ops) {
        if self.early {
            // SAFETY: the level's instructions are there.
            unsafe { (ops.fence)() };
        }
    }
}

/// Transposes a face of at least 16 bytes either way.
///
/// # Safety
/// Every element is readable and writable; no overlap.
pub(super) unsafe fn transpose(ops: &Ops, face: &mut Face, mut away: Away, memory: &mut Memory) {
    let near = away.early && !away.late;
    if let Some(lines) = straight::lines(ops, face, near).filter(|_| away.streams) {
        // SAFETY: the caller's promise; such a face suits.
        return unsafe { straight::copy(face, lines) };
    }
    let line = face.line().max(1);
    let step = face.follows(away.shared && able(ops, face));
    let mut wide = away.suits(ops, face, step.is_some());
    // SAFETY: the caller's promise, and the sizes that each of the two asks for.
    unsafe {
        if let Some(step) = step.filter(|_| away.streams) {
            cut_ends(face, step);
            wide = away.suits(ops, face, false);
        }
        if face.log >= 3 && !away.streams && (wide || ops.squares.is_none()) {
            let far = Some(ops).filter(|_| away.far);
            return rows::elements(face, 1 << face.log, far);
        }
        let least = if ops.squares.is_some() { line } else { 4 * line };
        if face.n_dst < least || face.n_src < line {
            return direct(ops, face);
        }
        let reach = if face.n_src < 16 * line { REACH } else { face.n_dst };
        // Parts end where the destination's lines do, if its rows agree on that.
        let (mut at, mut count) = (0, reach + face.head());
        while at < face.n_dst {
            let left = face.n_dst - at;
            count = if left < count + reach { left } else { count };
            strips(ops, &face.part(at, count, 0, face.n_src), away, memory);
            (at, count) = (at + count, reach);
        }
    }
}

/// Copies the ends of a face whose rows follow one another, and leaves what is between them.
///
/// # Safety
/// As [`transpose`].
#[inline(never)] // a frame of its own: stacks may be small
unsafe fn cut_ends(face: &mut Face, step: usize) {
    for end in face.ends(step) {
        // SAFETY: parts of the caller's face.
        unsafe { rows::elements(&end, 1 << face.log, None) };
    }
    *face = face.wrapped(step);
}

/// Whether squares of a face whose rows start anywhere in a line share these.
fn shares(ops: &Ops, face: &Face) -> bool {
    able(ops, face) && face.shares()
}

/// Whether there are such squares, and no windows instead.
fn able(ops: &Ops, face: &Face) -> bool {
    let able = if face.log > 0 { ops.shares } else { ops.bytes.is_some() };
    able && !windowed(face)
}

/// Whether these rows go past the caches through windows: where source rows are read before, long
/// ones.
fn windowed(face: &Face) -> bool {
    let tuning = tuning();
    face.log >= tuning.windows && (!tuning.reads() || face.long())
}

/// Tiles straight from the source into the destination. The last tile of a row or column moves
/// back over its predecessor, and writes the same bytes again.
///
/// # Safety
/// As [`transpose`].
#[inline(never)] // a frame of its own: stacks may be small
pub(super) unsafe fn direct(ops: &Ops, face: &Face) {
    // SAFETY: the caller's promise.
    unsafe { tiles(ops, face, &mut Tables::new(face)) }
}

/// As [`direct`], with tables of the face or of one it is a part of, which are made anew.
#[inline(never)] // as above
unsafe fn tiles(ops: &Ops, face: &Face, tables: &mut Tables) {
    let log = face.log as usize & 15;
    let wide = face.n_dst << log >= ops.width;
    let (width, tiles) = if wide { (ops.width, &ops.tiles) } else { (16, &ops.narrow) };
    let Some(tile) = tiles.get(log) else { return };
    let (rows, columns, line) = (width >> log, face.vector(), face.line());
    let mut at = 0;
    while at < face.n_dst {
        let count = ROWS_MOST.min((face.n_dst - at).max(rows));
        let at_dst = at.min(face.n_dst - count.min(face.n_dst));
        let src = tables.rows(face, at_dst, count);
        let mut s = 0;
        while s < face.n_src {
            let blocks = ((face.n_src - s).min(line) << log) / 16;
            let s_at = if blocks == 0 { face.n_src - columns } else { s };
            let blocks = blocks.max(1);
            let dst = tables.columns(face, s_at, blocks * columns);
            let (src, dst) = (src.wrapping_add(s_at << log), dst.wrapping_add(at_dst << log));
            let mut d = 0;
            while d < count {
                let d_at = d.min(count - rows);
                let ([offset, _], rows_of) = tables.places(d_at, 0);
                let (src, dst) = (src.wrapping_offset(offset), dst.wrapping_add(d_at << log));
                // SAFETY: a part of the face, which the caller vouches for.
                unsafe { tile(src, dst, rows_of, blocks) };
                d += rows;
            }
            s = s_at + blocks * columns;
        }
        at = at_dst + count;
    }
}

/// Bytes in the buffer: `n_dst` rows of `n_src` at `src` become `n_src` rows of `n_dst` at `dst`,
/// `pitch` apart.
///
/// # Safety
/// They are there, without overlap; `n_dst` is a multiple of the width of tiles, `n_src` of 16.
pub(super) unsafe fn bytes(
    ops: &Ops,
    src: *const u8,
    dst: *mut u8,
    (n_dst, n_src): (usize, usize),
    pitch: usize,
) {
    let Some(tile) = ops.tiles.first() else { return };
    for d in (0..n_dst).step_by(ops.width.max(1)) {
        let rows = Rows::Apart([n_src as isize, pitch as isize]);
        // SAFETY: a part of the caller's bytes.
        unsafe { tile(src.wrapping_add(d * n_src), dst.wrapping_add(d), rows, n_src / 16) };
    }
}

/// Strips of columns: whole squares, and what is left over.
#[inline(never)] // frames of its own: stacks may be small
unsafe fn strips(ops: &Ops, face: &Face, away: Away, memory: &mut Memory) {
    let (vector, line) = (face.vector(), face.line());
    // Strips that start at the source's lines read each line once; of a few lines they would be
    // mostly what precedes and follows them.
    let lead = (face.src as usize).wrapping_neg() & 63;
    let lead = if face.rows.lined() && face.n_src >= 4 * line { lead >> face.log } else { 0 };
    let mut s = lead;
    // SAFETY: the strips are parts of the face, which is at least a line either way.
    unsafe {
        while s + line <= face.n_src {
            let count = RUN.min(face.n_src - s) & !(line - 1);
            let left = face.n_src - (s + count);
            let edges = Edges {
                face,
                lead: if s == lead && s > 0 { lead.max(vector) } else { 0 },
                tail: if left > 0 && left < line { left.max(vector) } else { 0 },
            };
            strip(ops, (&face.part(0, face.n_dst, s, count), &edges), away, memory);
            s += count;
        }
    }
}

/// The columns of a face that precede its first strip, or follow its last one: less than a line.
/// They are made with the rows beside them, whose pages are in use then.
pub(super) struct Edges<'a> {
    face: &'a Face<'a>,
    lead: usize,
    tail: usize,
}

impl Edges<'_> {
    /// Beside `count` positions of the destination's rows, 16 bytes or more, from `d` on; tables
    /// of the face are made anew.
    pub(super) unsafe fn beside(
        &self,
        ops: &Ops,
        d: usize,
        count: usize,
        tables: Option<&mut Tables>,
    ) {
        let mut tables = tables;
        for (s, n) in [(0, self.lead), (self.face.n_src - self.tail, self.tail)] {
            if n > 0 {
                let part = self.face.part(d, count, s, n);
                // SAFETY: parts of the caller's face, at least 16 bytes either way.
                unsafe {
                    match &mut tables {
                        Some(tables) => tiles(ops, &part, tables),
                        None => direct(ops, &part),
                    }
                }
            }
        }
    }
}

/// A strip of whole lines of source columns.
unsafe fn strip(ops: &Ops, (face, edges): (&Face, &Edges), away: Away, memory: &mut Memory) {
    let (streams, head) = (away.streams, face.head());
    let aligned = face.columns.lined() && face.dst as usize & ((1 << face.log) - 1) == 0;
    // Rows that begin in the last line of others are whole squares, and so is what others begin in.
    let joined = streams && !aligned && face.wraps() && shares(ops, face);
    // What is turned of copies in the caches starts anywhere in a line.
    let at_once = away.staged && !streams;
    // SAFETY: parts of the caller's face, at least 16 bytes either way.
    unsafe {
        let start = match ops.squares {
            Some(_) if at_once || !streams && (!aligned || face.n_dst < 16 * face.line()) => 0,
            _ if aligned => head,
            _ => face.line(), // each row's first line is its own
        };
        if start > 0 && !joined {
            let count = start.max(face.vector());
            border(ops, (face, edges), 0, count);
        }
        let windows = if aligned && !at_once { head } else { 0 };
        let staged = match away.staged {
            true => staged::copy(ops, (face, edges), (windows, aligned), streams, memory),
            false => None,
        };
        let done = match ops.squares {
            _ if let Some(done) = staged => done,
            Some(turn) if aligned || !streams || shares(ops, face) => {
                squares(ops, turn, (face, edges), (start, aligned), away)
            }
            _ => windows::copy(ops, (face, edges), (windows, aligned), away),
        };
        if done < face.n_dst && !joined {
            let count = (face.n_dst - done).max(face.vector());
            border(ops, (face, edges), face.n_dst - count, count);
        }
    }
}

/// `count` positions of the destination's rows, 16 bytes or more, from `d` on, and the edges beside
/// them.
///
/// # Safety
/// As [`transpose`].
#[inline(never)] // a frame of its own: stacks may be small
unsafe fn border(ops: &Ops, (face, edges): (&Face, &Edges), d: usize, count: usize) {
    // SAFETY: parts of the caller's face, at least 16 bytes either way.
    unsafe {
        direct(ops, &face.part(d, count, 0, face.n_src));
        edges.beside(ops, d, count, None);
    }
}

/// The rows of a square's half.
static LINES: [i32; COLUMNS_MOST] = listed(64);

/// Squares, straight from the source to the destination, from column `d` of it on: past the caches
/// if it streams, to whole lines, or sharing them if rows are not `aligned`; else to rows. Returns
/// where they end.
#[inline(never)] // a frame of its own: stacks may be small
unsafe fn squares(
    ops: &Ops,
    turn: Squares,
    (face, edges): (&Face, &Edges),
    (mut d, aligned): (usize, bool),
    away: Away,
) -> usize {
    let mut half = Buffer::new();
    let mut bands = Bands::new(ops, turn, face, half.ptr(), aligned, away);
    let line = face.line().max(1);
    let mut tables = Tables::new(face);
    let before = bands.before(line);
    let most = bands.rows(face, &tables, away);
    let most = if away.streams { most.min(face.rows.room()) } else { most };
    let room = if tables.apart.is_none() { ROWS_MOST - before } else { usize::MAX };
    let most = (most.min(room) / line).max(1);
    bands.near = most * line <= tuning().second;
    // Rows that begin in others' lines are whole beside the first band, too.
    let mut beside = if before > 0 && face.wraps() { 0 } else { d };
    while d + line <= face.n_dst {
        let lines = ((face.n_dst - d) / line).min(most);
        let end = d + lines * line;
        // SAFETY: the caller's face has so many.
        unsafe {
            edges.beside(ops, beside, end - beside, Some(&mut tables));
            bands.band(face, &mut tables, d, lines);
        }
        (d, beside) = (end, end);
    }
    d - before
}

/// Bands of source rows, and how they are turned.
struct Bands {
    turn: Squares,
    /// What is half done.
    half: *mut u8,
    to: To,
    /// Whether source lines are asked for.
    ahead: bool,
    /// So many bytes at once.
    chunk: usize,
    /// Into the first-level cache.
    near: bool,
    /// Or read.
    touched: usize,
    /// Whether destination rows are asked for.
    apart: bool,
}

impl Bands {
    /// Of a face whose destination rows may be `aligned` to lines; `half` is a buffer.
    fn new(
        ops: &Ops,
        turn: Squares,
        face: &Face,
        half: *mut u8,
        aligned: bool,
        away: Away,
    ) -> Bands {
        let to = match away.streams {
            false => To::Rows,
            true if aligned => To::Lines,
            true => To::Shared(half.wrapping_add(BUFFER / 2)),
        };
        let turn = match to {
            To::Shared(_) if face.log == 0 => ops.bytes.unwrap_or(turn),
            _ => turn,
        };
        let Tuning { ahead: [chunk, _], apart, .. } = *tuning();
        let apart = !away.streams && face.columns.inner().unsigned_abs() >= apart;
        let Away { ahead, touched, .. } = away;
        Bands { turn, half, to, ahead, chunk, near: true, touched, apart }
    }

    /// Source rows in use at a time.
    fn rows(&mut self, face: &Face, tables: &Tables, away: Away) -> usize {
        let (log, line, tuning) = (face.log as usize, face.line().max(1), tuning());
        // Short destination rows are finished at once, and of those that start anywhere in a line
        // few lines are left half done; tables serve for many.
        let many = tables.apart.is_none() || face.n_dst < 17 * line || !face.columns.lined();
        match tables.apart {
            Some(_) if !away.streams && many && face.n_dst << log >= tuning.ragged => 64,
            _ if !away.streams && many => ROWS_MOST.min(16 * line),
            _ if !away.streams => tuning.cached.get(log).copied().unwrap_or(line),
            None if !face.wraps() => tuning.listed,
            _ if self.before(line) > 0 => tuning.shared.get(log).copied().unwrap_or(line),
            _ if face.rows.inner().unsigned_abs() <= 1024 => tuning.near,
            _ => {
                let far = !away.early || tuning.reads() && face.n_dst <= SHORT;
                let past = if far { &tuning.past } else { &tuning.early };
                let [rows, chunk] = past.get(log).copied().unwrap_or([line, 64]);
                self.chunk = chunk;
                rows
            }
        }
    }

    /// Source rows before a band that are needed too, if `line` make a square.
    fn before(&self, line: usize) -> usize {
        if matches!(self.to, To::Shared(_)) { line } else { 0 }
    }

    /// log2 of the bytes of a source row that a square takes: of single ones that share lines, half
    /// a line, for the buffer has no room for more.
    fn width(&self, face: &Face) -> u32 {
        if face.log == 0 && matches!(self.to, To::Shared(_)) { 5 } else { 6 }
    }

    /// The squares of some `lines` of destination rows, from column `d` of them on.
    unsafe fn band(&self, face: &Face, tables: &mut Tables, d: usize, lines: usize) {
        let (log, line) = (face.log, face.line().max(1));
        let before = self.before(line);
        let (&Tuning { ahead: [_, ahead], followed, .. }, width) = (tuning(), self.width(face));
        let (n, far) = (lines * line + before, self.ahead && lines * line > followed);
        let run = if far { self.touched >> log } else { 0 };
        let chunk = if far && run == 0 { self.chunk / 64 } else { 0 };
        let (src, on) = (tables.rows(face, d - before, n), face.goes_on());
        // So many columns at once: those that are read before, or listed.
        let step = if run > 0 { run } else { face.n_src };
        let step = if tables.apart.is_some() { step } else { step.min(COLUMNS_MOST) };
        for s in (0..face.n_src).step_by(step.max(1)) {
            let (count, left) = (step.min(face.n_src - s), face.n_src - s);
            let dst = tables.columns(face, s, count).wrapping_add(d << log);
            let src = src.wrapping_add(s << log);
            let more = if on { left << log } else { (left << log).saturating_sub(ahead) };
            let ask = Ask {
                lines: chunk,
                ahead,
                columns: (more + (1 << width) - 1) >> width,
                first: s << log >> width,
                near: self.near,
                beside: self.apart,
            };
            let rows = tables.places(0, 0).1.through(LINES.as_ptr());
            let (half, to, columns) = (self.half, self.to, count << log >> width);
            let band = Band { log, lines, columns, rows, half, to, ask };
            // SAFETY: a part of the caller's face, whose lines are aligned if it streams.
            unsafe {
                touch::read(src, (n, 1 << log), (run, s, left), &|i| tables.row(i));
                (self.turn)(src, dst, &band);
            }
        }
    }
}
