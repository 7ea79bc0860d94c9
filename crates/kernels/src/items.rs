//! Scalar copy, item by item, in four loops: correct for every nest, and the fastest for small
//! ones. Uses baseline instructions only: compiled once.
use core::ptr::copy_nonoverlapping;

/// Loops of [`items`].
pub const LOOPS: usize = 4;

/// A loop over items: extent, and the bytes from one item to the next on both sides.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Loop {
    /// Extent.
    pub n: usize,
    /// Source stride.
    pub src: isize,
    /// Destination stride.
    pub dst: isize,
}

impl Loop {
    /// A loop that is not there.
    pub const NONE: Loop = Loop { n: 1, src: 0, dst: 0 };
}

/// Copies items of so many bytes in the three inner loops.
type Inner = unsafe fn(bytes: usize, loops: &[Loop; LOOPS], src: *const u8, dst: *mut u8);

/// Calls `visit` with the first item of every iteration of a loop.
#[inline(always)]
fn each(by: Loop, src: *const u8, dst: *mut u8, mut visit: impl FnMut(*const u8, *mut u8)) {
    let (mut src, mut dst, mut left) = (src, dst, by.n);
    while left > 0 {
        visit(src, dst);
        (src, dst, left) = (src.wrapping_offset(by.src), dst.wrapping_offset(by.dst), left - 1);
    }
}

/// Calls `visit` with the first item of every row of the three inner loops.
#[inline(always)]
fn each_row(
    loops: &[Loop; LOOPS],
    src: *const u8,
    dst: *mut u8,
    mut visit: impl FnMut(Loop, *const u8, *mut u8),
) {
    let [_, middle, inner, line] = *loops;
    each(middle, src, dst, |src, dst| {
        each(inner, src, dst, |src, dst| visit(line, src, dst));
    });
}

/// Items that are one `T`.
unsafe fn whole<T: Copy>(_: usize, loops: &[Loop; LOOPS], src: *const u8, dst: *mut u8) {
    each_row(loops, src, dst, |line, mut src, mut dst| {
        let Loop { mut n, src: ss, dst: ds } = line;
        // SAFETY: item `i` from `at` on is one of the line, so readable.
        let load = |at: *const u8, i: isize| unsafe {
            at.wrapping_offset(i.wrapping_mul(ss)).cast::<T>().read_unaligned()
        };
        if size_of::<T>() <= 8 && ds == size_of::<T>() as isize {
            while n >= 8 {
                let low = [load(src, 0), load(src, 1), load(src, 2), load(src, 3)];
                let next = src.wrapping_offset(ss.wrapping_mul(4));
                let high = [load(next, 0), load(next, 1), load(next, 2), load(next, 3)];
                // SAFETY: the next eight items are neighbours in the destination, and writable.
                unsafe { dst.cast::<[[T; 4]; 2]>().write_unaligned([low, high]) };
                src = next.wrapping_offset(ss.wrapping_mul(4));
                dst = dst.wrapping_add(8 * size_of::<T>());
                n -= 8;
            }
        }
        each(Loop { n, ..line }, src, dst, |src, dst| {
            // SAFETY: one item, readable at `src` and writable at `dst`.
            unsafe { dst.cast::<T>().write_unaligned(load(src, 0)) }
        });
    });
}

/// Items of one to two `T`: two that overlap.
unsafe fn halves<T: Copy>(bytes: usize, loops: &[Loop; LOOPS], src: *const u8, dst: *mut u8) {
    let second = bytes - size_of::<T>();
    each_row(loops, src, dst, |line, src, dst| {
        each(line, src, dst, |src, dst| {
            // SAFETY: one item of at least a `T` is readable at `src` and writable at `dst`.
            unsafe {
                let low = src.cast::<T>().read_unaligned();
                let high = src.wrapping_add(second).cast::<T>().read_unaligned();
                dst.cast::<T>().write_unaligned(low);
                dst.wrapping_add(second).cast::<T>().write_unaligned(high);
            }
        });
    });
}

/// Items of 64 bytes and more.
unsafe fn long(bytes: usize, loops: &[Loop; LOOPS], src: *const u8, dst: *mut u8) {
    each_row(loops, src, dst, |line, src, dst| {
        // SAFETY: one item of `bytes` bytes is readable at `src` and writable at `dst`, without
        // overlap.
        each(line, src, dst, |src, dst| unsafe { copy_nonoverlapping(src, dst, bytes) });
    });
}

/// Copies items of `bytes` bytes in four loops, the outermost first, from `src` to `dst`.
///
/// # Safety
/// As in the crate's documentation; any processor will do.
pub unsafe fn items(bytes: usize, loops: &[Loop; LOOPS], src: *const u8, dst: *mut u8) {
    let copy: Inner = match bytes {
        0 => return,
        1 => whole::<u8>,
        2 => whole::<u16>,
        3 => halves::<u16>,
        4 => whole::<u32>,
        5..8 => halves::<u32>,
        8 => whole::<u64>,
        9..16 => halves::<u64>,
        16 => whole::<[u64; 2]>,
        17..32 => halves::<[u64; 2]>,
        32..64 => halves::<[u64; 4]>,
        _ => long,
    };
    // SAFETY: the items of the inner loops are readable and writable, of a size that `copy` is for.
    each(loops[0], src, dst, |src, dst| unsafe { copy(bytes, loops, src, dst) });
}
