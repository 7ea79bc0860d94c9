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

/// Writes a contiguous run of `n` elements of `size` bytes (1 to 1024) that `produce(to, first,
/// count)` makes piece by piece; large ones in the buffer, and from there past the caches.
///
/// # Safety
/// `n * size` bytes at `dst` are writable; `produce` writes `count * size` bytes and no more.
#[inline(never)] // a frame of its own, with one buffer: stacks may be small
pub(super) unsafe fn run(
    ops: &Ops,
    streams: bool,
    dst: *mut u8,
    n: usize,
    size: usize,
    produce: &mut dyn FnMut(*mut u8, usize, usize),
) {
    if !streams || n * size < 512 {
        produce(dst, 0, n);
        return;
    }
    let mut buffer = Buffer::new();
    let buffer = buffer.ptr();
    let phase = dst as usize & 63;
    // What follows the first whole elements is made at lines, if they end at one.
    let head = (64 - phase).checked_rem(size) == Some(0) && phase > 0;
    let mut most = if head { (64 - phase) / size.max(1) } else { (BUFFER - 64) / size.max(1) };
    // The line being built starts at `line`; `fill` bytes of it and its followers are there, of
    // which the first `foreign` are not ours.
    let (mut line, mut fill, mut foreign, mut done) = (dst.wrapping_sub(phase), phase, phase, 0);
    while done < n {
        let count = most.max(1).min(n - done);
        produce(buffer.wrapping_add(fill), done, count);
        done += count;
        fill += count * size;
        if head && done == count {
            most = (BUFFER - 64) / size.max(1);
            continue; // with the line's neighbours
        }
        let full = fill & !63;
        if full == 0 {
            continue; // the last few elements do not fill a line
        }
        // SAFETY: the buffer's first `fill` bytes (but `foreign`) belong at `line`, within the
        // run; size ≤ 1024 keeps `fill` within the buffer: 64 + most * size ≤ 4096. What is left
        // is less than the line that it moves over.
        unsafe {
            flush(ops, line, buffer, full, foreign);
            copy_nonoverlapping(buffer.wrapping_add(full), buffer, fill - full);
        }
        foreign = 0;
        line = line.wrapping_add(full);
        fill -= full;
    }
    // The first flush has dealt with what is foreign: a run is longer than a line.
    // SAFETY: what is left in the buffer is the run's last, partial line.
    unsafe { copy_nonoverlapping(buffer, line, fill) };
}

/// Writes `full` bytes, whole lines and at least one, but the first `foreign` of them.
#[inline]
unsafe fn flush(ops: &Ops, line: *mut u8, buffer: *const u8, full: usize, foreign: usize) {
    let skip = if foreign > 0 { 64 } else { 0 };
    // SAFETY: the caller's bytes; the first line by its own part of it.
    unsafe {
        if foreign > 0 {
            let (from, to) = (buffer.wrapping_add(foreign), line.wrapping_add(foreign));
            copy_nonoverlapping(from, to, 64 - foreign);
        }
        (ops.stream)(line.wrapping_add(skip), buffer.wrapping_add(skip), (full - skip) / 64);
    }
}
