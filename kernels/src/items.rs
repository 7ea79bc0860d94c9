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

/// A kind of items, and how a row of them is copied.
trait Kind {
    unsafe fn line(bytes: usize, by: Loop, src: *const u8, dst: *mut u8);
}

/// Items that are one `T`.
struct Whole<T>(T);
/// Items of one to two `T`: two that overlap.
struct Halves<T>(T);
/// Items of 64 bytes and more.
struct Long;

impl<T: Copy> Kind for Whole<T> {
    #[inline(always)]
    unsafe fn line(_: usize, by: Loop, src: *const u8, dst: *mut u8) {
        let Loop { n, src: ss, dst: ds } = by;
        let (mut src, mut dst, mut i) = (src, dst, n);
        // SAFETY: the caller's items.
        unsafe {
            let load = |at: *const u8, i: isize| {
                at.wrapping_offset(i.wrapping_mul(ss)).cast::<T>().read_unaligned()
            };
            if ds == size_of::<T>() as isize {
                while i >= 8 {
                    let low = [load(src, 0), load(src, 1), load(src, 2), load(src, 3)];
                    let next = src.wrapping_offset(ss.wrapping_mul(4));
                    let high = [load(next, 0), load(next, 1), load(next, 2), load(next, 3)];
                    dst.cast::<[[T; 4]; 2]>().write_unaligned([low, high]);
                    src = next.wrapping_offset(ss.wrapping_mul(4));
                    dst = dst.wrapping_add(8 * size_of::<T>());
                    i -= 8;
                }
            }
            while i > 0 {
                dst.cast::<T>().write_unaligned(load(src, 0));
                (src, dst) = (src.wrapping_offset(ss), dst.wrapping_offset(ds));
                i -= 1;
            }
        }
    }
}

impl<T: Copy> Kind for Halves<T> {
    #[inline(always)]
    unsafe fn line(bytes: usize, by: Loop, src: *const u8, dst: *mut u8) {
        let Loop { n, src: ss, dst: ds } = by;
        let second = bytes - size_of::<T>();
        let (mut src, mut dst, mut i) = (src, dst, n);
        while i > 0 {
            // SAFETY: the caller's items.
            unsafe {
                let low = src.cast::<T>().read_unaligned();
                let high = src.wrapping_add(second).cast::<T>().read_unaligned();
                dst.cast::<T>().write_unaligned(low);
                dst.wrapping_add(second).cast::<T>().write_unaligned(high);
            }
            (src, dst) = (src.wrapping_offset(ss), dst.wrapping_offset(ds));
            i -= 1;
        }
    }
}

impl Kind for Long {
    #[inline(always)]
    unsafe fn line(bytes: usize, by: Loop, src: *const u8, dst: *mut u8) {
        let Loop { n, src: ss, dst: ds } = by;
        let (mut src, mut dst, mut i) = (src, dst, n);
        while i > 0 {
            // SAFETY: the caller's items.
            unsafe { copy_nonoverlapping(src, dst, bytes) };
            (src, dst) = (src.wrapping_offset(ss), dst.wrapping_offset(ds));
            i -= 1;
        }
    }
}

/// The three outer loops.
#[inline(never)]
unsafe fn nested<K: Kind>(bytes: usize, loops: &[Loop; LOOPS], src: *const u8, dst: *mut u8) {
    let [outer, middle, inner, line] = *loops;
    let step = |(src, dst, left): (*const u8, *mut u8, usize), by: Loop| {
        (src.wrapping_offset(by.src), dst.wrapping_offset(by.dst), left - 1)
    };
    let mut a = (src, dst, outer.n);
    while a.2 > 0 {
        let mut b = (a.0, a.1, middle.n);
        while b.2 > 0 {
            let mut c = (b.0, b.1, inner.n);
            while c.2 > 0 {
                // SAFETY: the caller's items.
                unsafe { K::line(bytes, line, c.0, c.1) };
                c = step(c, inner);
            }
            b = step(b, middle);
        }
        a = step(a, outer);
    }
}

/// Copies items of `bytes` bytes in four loops, the outermost first, from `src` to `dst`.
///
/// # Safety
/// As in the crate's documentation; any processor will do.
pub unsafe fn items(bytes: usize, loops: &[Loop; LOOPS], src: *const u8, dst: *mut u8) {
    // The kind for this size.
    let copy = match bytes {
        0 => return,
        1 => nested::<Whole<u8>>,
        2 => nested::<Whole<u16>>,
        3 => nested::<Halves<u16>>,
        4 => nested::<Whole<u32>>,
        5..8 => nested::<Halves<u32>>,
        8 => nested::<Whole<u64>>,
        9..16 => nested::<Halves<u64>>,
        16 => nested::<Whole<[u64; 2]>>,
        17..32 => nested::<Halves<[u64; 2]>>,
        32 => nested::<Whole<[u64; 4]>>,
        33..64 => nested::<Halves<[u64; 4]>>,
        _ => nested::<Long>,
    };
    // SAFETY: the caller's items.
    unsafe { copy(bytes, loops, src, dst) }
}
