//! Contiguous blocks past the caches, and the 4 KiB buffer that lines are made in.
use core::mem::MaybeUninit;
use core::ptr::copy_nonoverlapping;

use super::ops::Ops;

/// Bytes of [`Buffer`].
pub(super) const BUFFER: usize = 4096;

/// Lines under construction, in the first-level cache.
#[repr(C, align(64))]
pub(super) struct Buffer([MaybeUninit<u8>; BUFFER]);

impl Buffer {
    #[inline]
    pub(super) fn new() -> Buffer {
        Buffer([MaybeUninit::uninit(); BUFFER])
    }

    #[inline]
    pub(super) fn ptr(&mut self) -> *mut u8 {
        self.0.as_mut_ptr().cast()
    }
}

/// Contiguous pieces, past the caches: of those that follow one another in the destination, the
/// lines that they share are put together.
pub(super) struct Joined<'a> {
    ops: &'a Ops,
    /// The line that the last piece has begun but not filled; its first bytes are those at `tail`.
    at: *mut u8,
    tail: *const u8,
    n: usize,
}

impl Joined<'_> {
    pub(super) fn new(ops: &Ops) -> Joined<'_> {
        Joined { ops, at: core::ptr::null_mut(), tail: core::ptr::null(), n: 0 }
    }

    /// Copies a piece. Its last bytes may be written by what follows, at the latest by
    /// [`flush`](Self::flush).
    ///
    /// # Safety
    /// `n` bytes are readable and writable, without overlap, and stay so until then.
    pub(super) unsafe fn push(&mut self, dst: *mut u8, src: *const u8, n: usize) {
        let head = (dst as usize).wrapping_neg() & 63;
        let joins = dst == self.at.wrapping_add(self.n) && n >= head && self.n > 0;
        let head = head.min(n);
        let (lines, tail) = ((n - head) / 64, (n - head) % 64);
        // SAFETY: the piece is its head, lines and tail; where it joins, its head and the tail
        // before it are a line.
        unsafe {
            if joins {
                (self.ops.join)(self.at, self.tail, src, self.n);
            } else {
                self.flush();
                copy_nonoverlapping(src, dst, head);
            }
            (self.ops.stream)(dst.wrapping_add(head), src.wrapping_add(head), lines);
        }
        self.at = dst.wrapping_add(n - tail);
        (self.tail, self.n) = (src.wrapping_add(n - tail), tail);
    }

    /// [`push`](Self::push) of `count` pieces, `stride` bytes apart in the source, side by side in
    /// the destination.
    ///
    /// # Safety
    /// As there. All that were pushed before have as many bytes.
    pub(super) unsafe fn push_all(
        &mut self,
        (dst, src): (*mut u8, *const u8),
        size: usize,
        count: usize,
        stride: isize,
    ) {
        // Longer pieces are worth their call, and what it asks for ahead.
        const LONG: usize = 4096;
        let joins = dst == self.at.wrapping_add(self.n) && self.at as usize & 63 == 0;
        let short = (64..=LONG).contains(&size);
        let calls = if short { count.min(usize::from(!joins)) } else { count };
        let (mut to, mut from) = (dst, src);
        for _ in 0..calls {
            // SAFETY: the caller's piece.
            unsafe { self.push(to, from, size) };
            (to, from) = (to.wrapping_add(size), from.wrapping_offset(stride));
        }
        let rest = count - calls;
        if rest == 0 {
            return;
        }
        // SAFETY: the caller's pieces, of 64 bytes or more; `at` is where a line begins, after the
        // first one, too.
        unsafe { (self.ops.pieces)(self.at, (self.tail, self.n), from, size, rest, stride) };
        let last = from.wrapping_offset((rest as isize - 1) * stride);
        self.n = (self.n + rest * size) & 63;
        self.at = to.wrapping_add(rest * size - self.n);
        self.tail = last.wrapping_add(size - self.n);
    }

    /// Keeps what is left of the last piece, less than a line, at `to`: the piece may go.
    ///
    /// # Safety
    /// It is readable still; a line is writable at `to`, apart from it.
    pub(super) unsafe fn keep(&mut self, to: *mut u8) {
        // SAFETY: the caller's word.
        unsafe { copy_nonoverlapping(self.tail, to, self.n) };
        self.tail = to;
    }

    /// Writes what is left of the last piece.
    ///
    /// # Safety
    /// It is readable and writable still.
    pub(super) unsafe fn flush(&mut self) {
        // SAFETY: the caller's word.
        unsafe { copy_nonoverlapping(self.tail, self.at, self.n) };
        self.n = 0;
    }
}

/// Contiguous runs that are made piece by piece: in the buffer, and from there past the caches. Of
/// those that follow one another in the destination the lines that they share are put together: an
/// ordinary store to a line that is far away would keep all that follow waiting.
pub(super) struct Lined<'a> {
    ops: &'a Ops,
    streams: bool,
    buffer: Buffer,
    /// The line that is being made; `fill` bytes of it and its followers are there, of which the
    /// first `foreign` are not in the buffer.
    line: *mut u8,
    fill: usize,
    foreign: usize,
    /// The first lines of this run, at `this`, and of the one before, where others' bytes come
    /// first: of runs that are made backwards, those are this one's last.
    begun: [Begun; 2],
    this: usize,
}

/// A line but for its first bytes.
#[repr(C, align(64))]
struct Begun {
    bytes: [MaybeUninit<u8>; 64],
    /// Where it belongs, if it is one, and how many bytes are not there.
    line: *mut u8,
    foreign: usize,
}

impl Begun {
    const fn none() -> Begun {
        let line = core::ptr::null_mut();
        Begun { bytes: [MaybeUninit::uninit(); 64], line, foreign: 0 }
    }

    /// Copies the bytes that are there to their places in a line at `to`.
    unsafe fn put(&self, to: *mut u8) {
        let (from, at) = (self.bytes.as_ptr().cast::<u8>(), self.foreign);
        // SAFETY: the caller's line.
        unsafe { copy_nonoverlapping(from.wrapping_add(at), to.wrapping_add(at), 64 - at) };
    }

    /// Writes them.
    unsafe fn release(&mut self) {
        if !self.line.is_null() {
            // SAFETY: bytes of a run, which are writable still.
            unsafe { self.put(self.line) };
            self.line = core::ptr::null_mut();
        }
    }
}

impl Lined<'_> {
    /// Past the caches, if it `streams`.
    #[inline(always)]
    pub(super) fn new(ops: &Ops, streams: bool) -> Lined<'_> {
        let (line, begun) = (core::ptr::null_mut(), [Begun::none(), Begun::none()]);
        Lined { ops, streams, buffer: Buffer::new(), line, fill: 0, foreign: 0, begun, this: 0 }
    }

    /// Writes a run of `n` elements of `size` bytes (1 to 1024) that `produce(to, first, count)`
    /// makes. Its last bytes may be written by what follows, at the latest by
    /// [`finish`](Self::finish).
    ///
    /// # Safety
    /// `n * size` bytes at `dst` are writable until then; `produce` writes `count * size` bytes and
    /// no more.
    #[inline(never)] // a frame of its own: stacks may be small
    pub(super) unsafe fn run(
        &mut self,
        dst: *mut u8,
        n: usize,
        size: usize,
        produce: &mut dyn FnMut(*mut u8, usize, usize),
    ) {
        // What stands alone.
        const SHORT: usize = 512;
        // What is worth two pieces, of which the second one is made at lines.
        const LONG: usize = 2048;
        if !self.streams {
            return produce(dst, 0, n);
        }
        if dst != self.line.wrapping_add(self.fill) {
            // SAFETY: the run before's bytes.
            unsafe { self.end() };
            if n * size < SHORT {
                produce(dst, 0, n);
                return self.start(dst.wrapping_add(n * size));
            }
            self.start(dst);
        }
        let mut done = 0;
        while done < n {
            let rest = 64usize.saturating_sub(self.fill);
            let head = (1..64).contains(&rest) && n * size >= LONG;
            let head = head && rest.checked_rem(size) == Some(0);
            let most = if head { rest } else { BUFFER - 64 };
            let count = most.checked_div(size).unwrap_or(1).clamp(1, n - done);
            produce(self.buffer.ptr().wrapping_add(self.fill), done, count);
            (done, self.fill) = (done + count, self.fill + count * size);
            // A whole line waits for its neighbours.
            if !head || done == n {
                // SAFETY: the buffer's first `fill` bytes (but `foreign`) belong at `line`, within
                // runs; 64 + most keeps them within the buffer.
                unsafe { self.flush() };
            }
        }
    }

    /// Begins at `dst`, where a line may have begun.
    fn start(&mut self, dst: *mut u8) {
        let phase = dst as usize & 63;
        (self.line, self.fill, self.foreign) = (dst.wrapping_sub(phase), phase, phase);
    }

    /// Writes the whole lines that are there.
    unsafe fn flush(&mut self) {
        let (buffer, full) = (self.buffer.ptr(), self.fill & !63);
        if full == 0 {
            return;
        }
        let skip = if self.foreign > 0 { 64 } else { 0 };
        let (to, from) = (self.line.wrapping_add(skip), buffer.wrapping_add(skip));
        // SAFETY: the caller's lines, the first one but for what is foreign; what is left is less
        // than the line that it moves over.
        unsafe {
            if self.foreign > 0 {
                self.hold();
            }
            (self.ops.stream)(to, from, (full - skip) / 64);
            copy_nonoverlapping(buffer.wrapping_add(full), buffer, self.fill - full);
        }
        (self.line, self.fill) = (self.line.wrapping_add(full), self.fill - full);
        self.foreign = 0;
    }

    /// Keeps the part of the first line that is not foreign.
    unsafe fn hold(&mut self) {
        let (line, foreign, from) = (self.line, self.foreign, self.buffer.ptr());
        let begun = &mut self.begun[self.this & 1];
        let to = begun.bytes.as_mut_ptr().cast::<u8>();
        // SAFETY: the rest of the line is in the buffer.
        unsafe {
            copy_nonoverlapping(from.wrapping_add(foreign), to.wrapping_add(foreign), 64 - foreign);
        }
        (begun.line, begun.foreign) = (line, foreign);
    }

    /// Writes what is left of the last run: a whole line, with what the one before has kept of it.
    unsafe fn end(&mut self) {
        let (from, foreign, fill) = (self.buffer.ptr(), self.foreign, self.fill);
        let (line, rest) = (self.line, fill.saturating_sub(foreign));
        self.this ^= 1;
        let before = &mut self.begun[self.this & 1];
        // SAFETY: the last line's own bytes, or all of it.
        unsafe {
            if rest > 0 && foreign == 0 && line == before.line && fill == before.foreign {
                before.put(from);
                (self.ops.stream)(line, from, 1);
                before.line = core::ptr::null_mut();
            } else if rest > 0 {
                copy_nonoverlapping(from.wrapping_add(foreign), line.wrapping_add(foreign), rest);
            }
            before.release();
        }
        (self.line, self.fill, self.foreign) = (core::ptr::null_mut(), 0, 0);
    }

    /// Writes what is left of all runs.
    ///
    /// # Safety
    /// It is writable still.
    pub(super) unsafe fn finish(&mut self) {
        // SAFETY: the caller's word.
        unsafe {
            self.end();
            self.end();
        }
    }
}
