//! Items one by one, in four loops: right for everything, and the fastest for what is small. Of any
//! processor's instructions: compiled once.
use core::ptr::copy_nonoverlapping;

/// Loops of [`Items`].
pub const LOOPS: usize = 4;

/// Items of `bytes` bytes in four loops, the outermost first.
#[derive(Clone, Copy)]
pub struct Items {
    /// The first item in the source.
    pub src: *const u8,
    /// The same in the destination.
    pub dst: *mut u8,
    /// Of an item.
    pub bytes: usize,
    /// Extents.
    pub n: [usize; LOOPS],
    /// Source strides.
    pub by_src: [isize; LOOPS],
    /// Destination strides.
    pub by_dst: [isize; LOOPS],
}

/// A kind of items: how a line of them is copied.
trait Kind {
    unsafe fn line(items: &Items, src: *const u8, dst: *mut u8);
}

/// Items that are one `T`.
struct Whole<T>(T);
/// Items of one `T` to twice as much: two that overlap.
struct Halves<T>(T);
/// Items of 64 bytes and more.
struct Long;

impl<T: Copy> Kind for Whole<T> {
    #[inline(always)]
    unsafe fn line(items: &Items, src: *const u8, dst: *mut u8) {
        let (n, ss, ds) = (items.n[3], items.by_src[3], items.by_dst[3]);
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
    unsafe fn line(items: &Items, src: *const u8, dst: *mut u8) {
        let (ss, ds, second) = (items.by_src[3], items.by_dst[3], items.bytes - size_of::<T>());
        let (mut src, mut dst, mut i) = (src, dst, items.n[3]);
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
    unsafe fn line(items: &Items, src: *const u8, dst: *mut u8) {
        let (mut src, mut dst, mut i) = (src, dst, items.n[3]);
        while i > 0 {
            // SAFETY: the caller's items.
            unsafe { copy_nonoverlapping(src, dst, items.bytes) };
            (src, dst) =
                (src.wrapping_offset(items.by_src[3]), dst.wrapping_offset(items.by_dst[3]));
            i -= 1;
        }
    }
}

/// The three outer loops.
#[inline(never)]
unsafe fn loops<K: Kind>(items: &Items) {
    let Items { n, by_src, by_dst, .. } = *items;
    let mut a = (items.src, items.dst, n[0]);
    while a.2 > 0 {
        let mut b = (a.0, a.1, n[1]);
        while b.2 > 0 {
            let mut c = (b.0, b.1, n[2]);
            while c.2 > 0 {
                // SAFETY: the caller's items.
                unsafe { K::line(items, c.0, c.1) };
                c = (c.0.wrapping_offset(by_src[2]), c.1.wrapping_offset(by_dst[2]), c.2 - 1);
            }
            b = (b.0.wrapping_offset(by_src[1]), b.1.wrapping_offset(by_dst[1]), b.2 - 1);
        }
        a = (a.0.wrapping_offset(by_src[0]), a.1.wrapping_offset(by_dst[0]), a.2 - 1);
    }
}

/// Copies them.
///
/// # Safety
/// As the crate's preface says, of any processor.
pub unsafe fn items(items: &Items) {
    // SAFETY: the caller's items, by kinds of their size.
    unsafe {
        match items.bytes {
            0 => {}
            1 => loops::<Whole<u8>>(items),
            2 => loops::<Whole<u16>>(items),
            3 => loops::<Halves<u16>>(items),
            4 => loops::<Whole<u32>>(items),
            5..8 => loops::<Halves<u32>>(items),
            8 => loops::<Whole<u64>>(items),
            9..16 => loops::<Halves<u64>>(items),
            16 => loops::<Whole<[u64; 2]>>(items),
            17..32 => loops::<Halves<[u64; 2]>>(items),
            32 => loops::<Whole<[u64; 4]>>(items),
            33..64 => loops::<Halves<[u64; 4]>>(items),
            _ => loops::<Long>(items),
        }
    }
}
