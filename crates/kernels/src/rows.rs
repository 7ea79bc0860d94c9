//! Runs of bytes: two loops over copies of one length, with plain or non-temporal stores. A source
//! stride of 0 repeats a run.
use core::mem::MaybeUninit;
use core::ptr::copy_nonoverlapping;

use crate::vector::{LINE, Vector};

/// `n[0]` times `n[1]` runs of `bytes` bytes.
#[derive(Clone, Copy)]
pub struct Rows {
    /// The first run in the source.
    pub src: *const u8,
    /// The same in the destination.
    pub dst: *mut u8,
    /// Bytes of a run.
    pub bytes: usize,
    /// Extents, the outer one first.
    pub n: [usize; 2],
    /// Source strides.
    pub by_src: [isize; 2],
    /// Destination strides.
    pub by_dst: [isize; 2],
    /// Whether stores are non-temporal.
    pub stream: bool,
    /// Number of runs by which the source is prefetched ahead; 0: no prefetch.
    pub ahead: usize,
}

/// Bytes of a run from which memcpy is the fastest.
pub(crate) const LONG: usize = 2048;
/// First bytes of a long run, which the hardware does not prefetch.
const FIRST: usize = 8 * LINE;
/// Bytes between two bursts of prefetches.
const STEP: usize = 4 * LINE;

#[inline(always)]
pub(crate) unsafe fn copy<V: Vector>(rows: &Rows) {
    let Rows { bytes, n: [n_outer, n], by_src, by_dst, .. } = *rows;
    let mut writer = Writer::new();
    let mut i = 0;
    while i < n_outer {
        let mut from = rows.src.wrapping_offset(i as isize * by_src[0]);
        let mut to = rows.dst.wrapping_offset(i as isize * by_dst[0]);
        let soon = rows.ahead as isize * by_src[1];
        // Short runs are copied in pieces, each of which prefetches as much of a later run.
        let step = if rows.ahead > 0 && bytes < LONG { STEP } else { bytes };
        let lines = if rows.ahead > 0 { FIRST } else { 0 };
        let mut j = 0;
        while j < n {
            let mut at = 0;
            while at < bytes {
                let piece = if bytes - at < 2 * step { bytes - at } else { step };
                let next = from.wrapping_offset(soon).wrapping_add(at);
                let mut line = 0;
                // SAFETY: a part of a run, or all of it, readable and writable; a prefetch has no
                // effect on memory.
                unsafe {
                    while line < lines.min(piece) {
                        V::prefetch_near(next.wrapping_add(line));
                        line += LINE;
                    }
                    let (from, to) = (from.wrapping_add(at), to.wrapping_add(at));
                    put::<V>(&mut writer, rows.stream, to, from, piece);
                }
                at += piece;
            }
            from = from.wrapping_offset(by_src[1]);
            to = to.wrapping_offset(by_dst[1]);
            j += 1;
        }
        i += 1;
    }
    // SAFETY: the pending bytes are of the last run, which is writable.
    unsafe {
        if rows.stream {
            writer.flush();
        }
    }
}

/// Copies part of a run, or all.
#[inline(always)]
unsafe fn put<V: Vector>(
    writer: &mut Writer,
    stream: bool,
    to: *mut u8,
    from: *const u8,
    n: usize,
) {
    // SAFETY: `n` bytes are readable at `from` and writable at `to`, without overlap.
    unsafe {
        if stream {
            writer.put::<V>(to, from, n);
        } else if !(16..LONG).contains(&n) {
            copy_nonoverlapping(from, to, n);
        } else {
            short::<V>(to, from, n);
        }
    }
}

/// Copies 16 bytes or more by vectors, the last of which overlaps the previous one.
#[inline(always)]
pub(crate) unsafe fn short<V: Vector>(to: *mut u8, from: *const u8, bytes: usize) {
    // SAFETY: `bytes` bytes, 16 at least, are readable and writable; no part reaches beyond them.
    unsafe {
        if bytes < V::BYTES {
            let half = |at: usize, n: usize| {
                let (from, to) = (from.wrapping_add(at), to.wrapping_add(at));
                match n {
                    16 => to
                        .cast::<[u64; 2]>()
                        .write_unaligned(from.cast::<[u64; 2]>().read_unaligned()),
                    _ => to
                        .cast::<[u64; 4]>()
                        .write_unaligned(from.cast::<[u64; 4]>().read_unaligned()),
                }
            };
            let n = if bytes >= 32 { 32 } else { 16 };
            half(0, n);
            half(bytes - n, n);
            return;
        }
        let last = bytes - V::BYTES;
        let mut at = 0;
        while at < last {
            V::load(from.wrapping_add(at)).store(to.wrapping_add(at));
            at += V::BYTES;
        }
        V::load(from.wrapping_add(last)).store(to.wrapping_add(last));
    }
}

/// Rows that repeat one item each.
#[derive(Clone, Copy)]
pub struct Fill {
    /// The first row's item.
    pub src: *const u8,
    /// The first row.
    pub dst: *mut u8,
    /// Bytes of an item: at most [`FILL_MOST`].
    pub bytes: usize,
    /// Number of rows, and of items per row.
    pub n: [usize; 2],
    /// Source stride of rows.
    pub by_src: isize,
    /// Destination stride of rows.
    pub by_dst: isize,
    /// Whether stores are non-temporal.
    pub stream: bool,
}

/// Bytes of an item beyond which repeating it is a copy of runs.
pub const FILL_MOST: usize = 64;
/// Bytes of a pattern: as many items as make whole lines, and one more line, so that a line can be
/// read at any offset.
const PATTERN: usize = FILL_MOST * LINE + LINE;

#[inline(always)]
pub(crate) unsafe fn fill<V: Vector>(fill: &Fill) {
    let Fill { mut src, mut dst, bytes, n: [rows, n], .. } = *fill;
    let mut pattern = MaybeUninit::<[Aligned; PATTERN / LINE]>::uninit();
    let pattern: *mut u8 = pattern.as_mut_ptr().cast();
    let bytes = bytes.max(1);
    let period = (LINE * bytes) >> bytes.trailing_zeros();
    let row = n * bytes;
    let mut writer = Writer::new();
    let mut i = 0;
    while i < rows {
        // SAFETY: the item is readable and the row writable; the pattern has room for a period and
        // one more line, and only initialized bytes are read.
        unsafe {
            pattern_of(pattern, src, bytes, row.min(period + LINE));
            let (mut to, mut left, mut at) = (dst, row, 0);
            // Whole lines are between the ends.
            let head = (to as usize).wrapping_neg() % LINE;
            if row >= 2 * LINE {
                put::<V>(&mut writer, fill.stream, to, pattern, head);
                (to, left, at) = (to.wrapping_add(head), left - head, head % bytes);
                writer.passes(to, left - left % LINE);
                while left >= LINE {
                    let mut k = 0;
                    while k < LINE {
                        let part = V::load(pattern.wrapping_add(at + k));
                        let to = to.wrapping_add(k);
                        if fill.stream {
                            part.stream(to)
                        } else {
                            part.store(to)
                        }
                        k += V::BYTES;
                    }
                    (to, left, at) = (to.wrapping_add(LINE), left - LINE, at + LINE);
                    if at >= period {
                        at -= period;
                    }
                }
            }
            put::<V>(&mut writer, fill.stream, to, pattern.wrapping_add(at), left);
        }
        (src, dst) = (src.wrapping_offset(fill.by_src), dst.wrapping_offset(fill.by_dst));
        i += 1;
    }
    // SAFETY: the pending bytes are the end of the last row, which is writable.
    unsafe {
        if fill.stream {
            writer.flush();
        }
    }
}

/// Fills `n` bytes with a repeated item; more for short items.
#[inline(always)]
unsafe fn pattern_of(pattern: *mut u8, src: *const u8, bytes: usize, n: usize) {
    // SAFETY: `bytes` bytes are readable at `src`; the pattern has room for `n`, and for two lines.
    unsafe {
        let word = match bytes {
            1 => u64::from(src.read()) * (u64::MAX / 0xff),
            2 => u64::from(src.cast::<u16>().read_unaligned()) * (u64::MAX / 0xffff),
            4 => u64::from(src.cast::<u32>().read_unaligned()) * (u64::MAX / 0xffff_ffff),
            8 => src.cast::<u64>().read_unaligned(),
            _ => {
                copy_nonoverlapping(src, pattern, bytes);
                let mut made = bytes;
                while made < n {
                    let more = if made < n - made { made } else { n - made };
                    copy_nonoverlapping(pattern, pattern.wrapping_add(made), more);
                    made += more;
                }
                return;
            }
        };
        pattern.cast::<[u64; 2 * LINE / 8]>().write([word; 2 * LINE / 8]);
    }
}

/// Writes contiguous bytes by non-temporal stores of whole lines; an incomplete line is buffered
/// here.
pub struct Writer {
    line: MaybeUninit<Aligned>,
    /// The next address.
    next: *mut u8,
    /// Number of buffered bytes of the line.
    held: usize,
}

#[repr(align(64))]
#[derive(Clone, Copy)]
struct Aligned(#[allow(dead_code)] [u8; LINE]);

impl Writer {
    /// An empty writer.
    #[inline(always)]
    pub const fn new() -> Writer {
        Writer { line: MaybeUninit::uninit(), next: core::ptr::null_mut(), held: 0 }
    }

    /// Writes `n` bytes to `to`.
    #[inline(always)]
    pub unsafe fn put<V: Vector>(&mut self, to: *mut u8, from: *const u8, n: usize) {
        // SAFETY: `n` bytes are readable at `from` and writable at `to`; less than a line is
        // buffered.
        unsafe {
            if to != self.next {
                self.flush();
            }
            self.next = to.wrapping_add(n);
            let (mut to, mut from, mut n) = (to, from, n);
            let skew = to as usize % LINE;
            let line: *mut u8 = self.line.as_mut_ptr().cast();
            if self.held > 0 || skew > 0 {
                let most = n.min(LINE - skew);
                if self.held == 0 {
                    // The first bytes of a run that starts within a line.
                    copy_nonoverlapping(from, to, most);
                } else {
                    copy_nonoverlapping(from, line.wrapping_add(skew), most);
                    self.held += most;
                    if skew + most == LINE {
                        whole::<V>(line, to.wrapping_sub(skew));
                        self.held = 0;
                    }
                }
                (to, from, n) = (to.wrapping_add(most), from.wrapping_add(most), n - most);
            }
            while n >= LINE {
                whole::<V>(from, to);
                (to, from, n) = (to.wrapping_add(LINE), from.wrapping_add(LINE), n - LINE);
            }
            if n > 0 {
                copy_nonoverlapping(from, line, n);
                self.held = n;
            }
        }
    }

    /// Accounts for `n` bytes written elsewhere from `to` on, where a line begins: the buffered
    /// bytes precede it.
    #[inline(always)]
    fn passes(&mut self, to: *mut u8, n: usize) {
        self.next = to.wrapping_add(n);
    }

    /// Writes the buffered bytes.
    #[inline(always)]
    pub unsafe fn flush(&mut self) {
        let line: *const u8 = self.line.as_ptr().cast();
        if self.held > 0 {
            let (at, n) = (self.next.wrapping_sub(self.held), self.held);
            // SAFETY: the buffered bytes precede `next` in writable memory, and are not written
            // yet.
            unsafe { copy_nonoverlapping(line, at, n) };
            self.held = 0;
        }
    }
}

/// Writes a line.
#[inline(always)]
unsafe fn whole<V: Vector>(from: *const u8, to: *mut u8) {
    let mut k = 0;
    while k < LINE {
        // SAFETY: a line is readable at `from` and writable at `to`, which is aligned to it.
        unsafe { V::load(from.wrapping_add(k)).stream(to.wrapping_add(k)) };
        k += V::BYTES;
    }
}
