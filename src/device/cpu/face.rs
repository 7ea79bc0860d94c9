//! Faces: what a transpose turns, and where the rows of both tensors are.
use super::ops::Rows;
use crate::array::Array;
use crate::device::part::SIDE_MOST;

/// A transpose. Along `n_dst` the destination is dense and `rows` says where the source's rows
/// are; along `n_src` the source is dense and `columns` says where the destination's rows are.
#[derive(Clone, Copy)]
pub(super) struct Face<'a> {
    pub(super) src: *const u8,
    pub(super) dst: *mut u8,
    pub(super) n_dst: usize,
    pub(super) n_src: usize,
    pub(super) rows: &'a Side,
    pub(super) columns: &'a Side,
    /// The first position of each.
    first: (usize, usize),
    /// If not 0: positions along `n_dst` from here on begin again, `step` columns further.
    wrap: usize,
    step: usize,
    /// log2 of the element's bytes, 0 to 4; not used where they are no power of two.
    pub(super) log: u32,
}

impl<'a> Face<'a> {
    /// `n` elements (along the destination's side, and the source's) of 1 << `log` bytes.
    pub(super) fn new(
        (src, dst): (*const u8, *mut u8),
        (n_dst, n_src): (usize, usize),
        (rows, columns): (&'a Side, &'a Side),
        log: u32,
    ) -> Face<'a> {
        Face { src, dst, n_dst, n_src, rows, columns, first: (0, 0), wrap: 0, step: 0, log }
    }

    /// The same at other places.
    pub(super) fn at(&self, src: *const u8, dst: *mut u8) -> Face<'a> {
        Face { src, dst, ..*self }
    }

    /// The part with `n_dst` by `n_src` elements that starts at (`at_dst`, `at_src`).
    pub(super) fn part(
        &self,
        at_dst: usize,
        n_dst: usize,
        at_src: usize,
        n_src: usize,
    ) -> Face<'a> {
        Face {
            src: self.src.wrapping_add(at_src << self.log),
            dst: self.dst.wrapping_add(at_dst << self.log),
            n_dst,
            n_src,
            first: (self.first.0 + at_dst, self.first.1 + at_src),
            ..*self
        }
    }

    /// If the destination's rows follow one another, and are short: the columns from each to the
    /// next. They are of whole lines though none starts at one, or lines may be `shared`. Tables,
    /// which can list where they are, cost more than long ones gain.
    pub(super) fn follows(&self, shared: bool) -> Option<usize> {
        const LONG: usize = 2048;
        let near = |&(n, by): &(usize, isize)| n.saturating_mul(by.unsigned_abs()) <= 1 << 30;
        let (rows, columns) = (self.rows.dims(), self.columns.dims());
        let ([(n_dst, _)], [inner @ .., (n, by)]) = (rows, columns) else { return None };
        let step = inner.iter().map(|&(n, _)| n).product::<usize>();
        let whole = self.wrap == 0 && self.first == (0, 0) && self.n_dst == *n_dst;
        let bytes = self.n_dst << self.log;
        let dense = *by == bytes as isize && bytes <= LONG && self.n_src > self.line();
        let (at, part) = (self.dst as usize & 63, (1 << self.log) - 1);
        let starts = match self.columns.lined() {
            true => at > 0 && at & part == 0,
            // What is added to a row lies in the next one. Of bytes, tables have room for few.
            false => shared && self.log > 0 && self.whole() && self.n_dst >= 2 * self.line(),
        };
        let all = whole && self.n_src == step * n && rows.iter().chain(columns).all(near);
        (all && dense && starts).then_some(step)
    }

    /// Of such a face what precedes the first rows' first line, and what follows the last ones'
    /// last. Where rows share lines, the elements of a line, and all of the last rows.
    pub(super) fn ends(&self, step: usize) -> [Face<'a>; 2] {
        let head = self.head();
        let (head, done) = if self.columns.lined() { (head, head) } else { (self.line(), 0) };
        let last = self.n_src.saturating_sub(step);
        let first = Face { n_dst: head, n_src: step, ..*self };
        let src = self.src.wrapping_offset(done as isize * self.rows.inner());
        let before = last.checked_div(step).unwrap_or(0) * self.n_dst + done;
        let dst = self.dst.wrapping_add(before << self.log);
        let last = first.at(src.wrapping_add(last << self.log), dst);
        [first, Face { n_dst: self.n_dst.saturating_sub(done), ..last }]
    }

    /// And what is between these: rows are as long as they were, and end with what the next one
    /// begins with. Where lines are shared, rows begin as before, with what the one before ends
    /// with, and they have as many elements more as make a square that begins in the next row.
    pub(super) fn wrapped(&self, step: usize) -> Face<'a> {
        let (columns, line) = (self.n_src.saturating_sub(step), self.line().max(1));
        let part = match self.columns.lined() {
            true => self.part(self.head(), self.n_dst, 0, columns),
            false => self.part(0, (self.n_dst + 2 * line - 1) & !(line - 1), 0, columns),
        };
        Face { wrap: self.n_dst, step, ..part }
    }

    /// Whether squares can share the lines of the destination's rows: these are a stride apart and
    /// long, as the source's are, or wrapped, and start at whole elements.
    pub(super) fn shares(&self) -> bool {
        (self.long() || self.wraps()) && self.whole()
    }

    /// Whether the destination's rows start at whole elements.
    fn whole(&self) -> bool {
        self.starts(self.log.min(3))
    }

    /// Whether the destination's rows start at multiples of 1 << `log` bytes.
    pub(super) fn starts(&self, log: u32) -> bool {
        let unit = (1 << log) - 1;
        self.columns.dims().iter().all(|&(_, by)| by as usize & unit == 0)
            && self.dst as usize & unit == 0
    }

    /// Whether the destination's rows are long and a stride apart, as the source's are.
    pub(super) fn long(&self) -> bool {
        self.strides().is_some() && self.n_dst >= 8 * self.line()
    }

    /// Whether the destination's rows are whole lines, and long or whole pages apart, so that they
    /// share a place in every cache.
    pub(super) fn apart(&self) -> bool {
        const PAGE: isize = 4096;
        self.columns.lined() && (self.long() || self.columns.inner() & (PAGE - 1) == 0)
    }

    /// Bytes from one of the source's rows to the next, and of the destination's, if these are all
    /// that it takes to find them.
    pub(super) fn strides(&self) -> Option<[isize; 2]> {
        match (self.rows.dims(), self.columns.dims()) {
            ([(_, rows)], [(_, columns)]) if self.wrap == 0 => Some([*rows, *columns]),
            _ => None,
        }
    }

    /// Whether it is one of these.
    pub(super) fn wraps(&self) -> bool {
        self.wrap > 0
    }

    /// Whether what follows a source row is another one, which is needed soon: also after a part
    /// of the face that begins and ends at lines.
    pub(super) fn goes_on(&self) -> bool {
        let end = (self.n_src as isize) << self.log;
        let follows = |by: isize| (0..128).contains(&by.wrapping_sub(end));
        self.rows.dims().iter().skip(1).any(|&(_, by)| follows(by))
    }

    /// Elements in 16 and in 64 bytes.
    pub(super) fn vector(&self) -> usize {
        16 >> self.log
    }

    pub(super) fn line(&self) -> usize {
        64 >> self.log
    }

    /// Elements of the destination before its first whole line, if its rows agree on that.
    pub(super) fn head(&self) -> usize {
        ((self.dst as usize).wrapping_neg() & 63) >> self.log
    }
}

/// One side of a face: where the rows of the other tensor lie for each position along it.
#[derive(Clone, Copy)]
pub(super) struct Side {
    /// Extents, and the strides in bytes of the tensor that is not dense here; innermost first.
    dims: Array<(usize, isize), SIDE_MOST>,
}

impl Side {
    /// No position yet.
    pub(super) fn new() -> Side {
        Side { dims: Array::new() }
    }

    /// Adds a dimension outside of those that are there.
    pub(super) fn push(&mut self, n: usize, stride: isize) {
        self.dims.push((n.max(1), stride));
    }

    fn dims(&self) -> &[(usize, isize)] {
        &self.dims
    }

    /// Whether it takes more than a stride to tell where rows are.
    pub(super) fn listed(&self) -> bool {
        self.dims().len() > 1
    }

    /// Whether all rows start at the same place in a line.
    pub(super) fn lined(&self) -> bool {
        self.dims().iter().all(|&(_, stride)| stride & 63 == 0)
    }

    /// The innermost dimension's stride.
    pub(super) fn inner(&self) -> isize {
        self.dims().first().map_or(0, |&(_, stride)| stride)
    }

    /// Rows in use at a time that the caches have room for: those a power of two apart share a few
    /// places.
    pub(super) fn room(&self) -> usize {
        const REACH: usize = 4 << 20;
        const LEAST: usize = 32;
        let Some(&(n, by)) = self.dims().first() else { return usize::MAX };
        let room = REACH.checked_shr(by.trailing_zeros()).unwrap_or(0).max(LEAST);
        if n > room { room } else { usize::MAX }
    }

    /// The innermost dimension's extent and stride, and the side without it.
    pub(super) fn split(&self) -> (usize, isize, Side) {
        let mut others = Side::new();
        for &(n, stride) in self.dims().iter().skip(1) {
            others.push(n, stride);
        }
        self.dims().first().map_or((1, 0, others), |&(n, stride)| (n, stride, others))
    }

    /// The offsets of `count` positions from `first` on, also of one dimension that is long.
    #[inline(never)] // a frame of its own: stacks may be small
    pub(super) fn places(&self, first: usize, count: usize, out: &mut Array<isize, ROWS_MOST>) {
        out.truncate(0);
        if let [(_, stride)] = *self.dims() {
            let mut at = (first as isize).wrapping_mul(stride);
            return out.extend(count, || {
                at = at.wrapping_add(stride);
                at.wrapping_sub(stride)
            });
        }
        let mut list = List::new();
        self.offsets(first, count, &mut list);
        let mut places = list.iter();
        out.extend(list.len(), || places.next().map_or(0, |&at| at as isize));
    }

    /// The offsets of `count` positions from `first` on.
    pub(super) fn offsets<const N: usize>(
        &self,
        first: usize,
        count: usize,
        out: &mut Array<i32, N>,
    ) {
        out.truncate(0);
        let mut digits = [0usize; SIDE_MOST];
        let (mut rest, mut offset) = (first, 0isize);
        for (digit, &(n, stride)) in digits.iter_mut().zip(self.dims()) {
            *digit = rest % n.max(1);
            rest /= n.max(1);
            offset += *digit as isize * stride;
        }
        let ([inner, others @ ..], Some((&(n, stride), outer))) =
            (&mut digits, self.dims().split_first())
        else {
            return out.extend(count, || 0);
        };
        let mut left = count.min(N);
        while left > 0 {
            let some = left.min(n - *inner);
            out.extend(some, || {
                offset += stride;
                (offset - stride) as i32
            });
            left -= some;
            (*inner, offset) = (0, offset - n as isize * stride);
            for (digit, &(n, stride)) in others.iter_mut().zip(outer) {
                (*digit, offset) = (*digit + 1, offset + stride);
                if *digit < n {
                    break;
                }
                (*digit, offset) = (0, offset - n as isize * stride);
            }
        }
    }
}

/// Positions in a table at most: of the destination's side, and of the source's.
pub(super) const ROWS_MOST: usize = 128;
pub(super) const COLUMNS_MOST: usize = 64;

/// Offsets of some positions.
pub(super) type List = Array<i32, ROWS_MOST>;

/// Where some positions along both sides are: strides if they will do, else two tables, whose
/// offsets [`Part::sides`] keeps small.
///
/// [`Part::sides`]: crate::device::part::Part::sides
pub(super) struct Tables {
    pub(super) rows: List,
    columns: Array<i32, COLUMNS_MOST>,
    /// The strides of rows and columns.
    pub(super) apart: Option<[isize; 2]>,
}

impl Tables {
    pub(super) fn new(face: &Face) -> Tables {
        Tables { rows: List::new(), columns: Array::new(), apart: face.strides() }
    }

    /// Finds the source's rows for `n` positions from `at` on: returns where offsets count from.
    pub(super) fn rows(&mut self, face: &Face, at: usize, n: usize) -> *const u8 {
        let at = face.first.0 + at;
        if let Some([stride, _]) = self.apart {
            return face.src.wrapping_offset((at as isize).wrapping_mul(stride));
        }
        face.rows.offsets(at, n, &mut self.rows);
        if face.wrap > 0 {
            for (at, row) in (at..).zip(self.rows.iter_mut()) {
                *row += if at < face.wrap { 0 } else { (face.step << face.log) as i32 };
            }
        }
        face.src
    }

    /// Likewise the destination's.
    pub(super) fn columns(&mut self, face: &Face, at: usize, n: usize) -> *mut u8 {
        let at = face.first.1 + at;
        if let Some([_, stride]) = self.apart {
            return face.dst.wrapping_offset((at as isize).wrapping_mul(stride));
        }
        face.columns.offsets(at, n, &mut self.columns);
        face.dst
    }

    /// The offset of the row found at place `i`.
    pub(super) fn row(&self, i: usize) -> isize {
        match self.apart {
            Some([stride, _]) => (i as isize).wrapping_mul(stride),
            None => self.rows.get(i).map_or(0, |&at| at as isize),
        }
    }

    /// The offset of the column found at place `i`.
    pub(super) fn column(&self, i: usize) -> isize {
        match self.apart {
            Some([_, stride]) => (i as isize).wrapping_mul(stride),
            None => self.columns.get(i).map_or(0, |&at| at as isize),
        }
    }

    /// The rows from place `i` and the columns from place `j` on, and what is added to the source
    /// and to the destination for them.
    pub(super) fn places(&self, i: usize, j: usize) -> ([isize; 2], Rows<2>) {
        match self.apart {
            Some([rows, columns]) => {
                ([i as isize * rows, j as isize * columns], Rows::Apart([rows, columns]))
            }
            None => {
                let rows = self.rows.as_ptr().wrapping_add(i);
                ([0, 0], Rows::Listed([rows, self.columns.as_ptr().wrapping_add(j)]))
            }
        }
    }
}
