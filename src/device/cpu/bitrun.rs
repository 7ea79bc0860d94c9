//! Runs of bits, least significant first, at any bit of a byte. Exactly the bytes that hold the
//! run are touched, and the bits beside it are kept.
use core::ptr::copy_nonoverlapping;

/// The byte and the bit in it that lie `bit` bits from `base`.
#[inline]
pub(super) fn at(base: *const u8, bit: i64) -> (*const u8, u32) {
    (base.wrapping_offset((bit >> 3) as isize), (bit & 7) as u32)
}

/// `n` (1 to 8) bits that start at bit `shift` of `*from`.
///
/// # Safety
/// The bytes that hold them are readable.
#[inline]
pub(super) unsafe fn read(from: *const u8, shift: u32, n: u32) -> u8 {
    // SAFETY: the second byte is read only if it holds some of the bits.
    let both = unsafe {
        let second = if shift + n > 8 { *from.wrapping_add(1) } else { 0 };
        u32::from(*from) | u32::from(second) << 8
    };
    (both >> shift & ((1 << n) - 1)) as u8
}

/// Writes the low `n` (1 to 8) bits of `value` at bit `shift` of `*to`.
///
/// # Safety
/// The bytes that hold them are readable and writable.
#[inline]
pub(super) unsafe fn write(to: *mut u8, shift: u32, n: u32, value: u8) {
    let mask = ((1u32 << n) - 1) << shift;
    let bits = u32::from(value) << shift & mask;
    // SAFETY: the second byte is touched only if it holds some of the bits.
    unsafe {
        *to = (*to & !(mask as u8)) | bits as u8;
        if shift + n > 8 {
            let second = to.wrapping_add(1);
            *second = (*second & !((mask >> 8) as u8)) | (bits >> 8) as u8;
        }
    }
}

/// Copies `n` bits.
///
/// # Safety
/// The bytes that hold them are readable, and writable at the destination, without overlap.
pub(super) unsafe fn copy(dst: *mut u8, dst_bit: i64, src: *const u8, src_bit: i64, n: usize) {
    let (to, shift) = at(dst, dst_bit);
    let mut to = to.cast_mut();
    let head = ((8 - shift) as usize & 7).min(n);
    let (mut from, mut bit) = at(src, src_bit);
    // SAFETY: head, whole bytes and tail make up the caller's run.
    unsafe {
        if head > 0 {
            write(to, shift, head as u32, read(from, bit, head as u32));
            to = to.wrapping_add(usize::from(shift as usize + head >= 8));
            (from, bit) = at(from, i64::from(bit) + head as i64);
        }
        let (bytes, tail) = ((n - head) / 8, (n - head) % 8);
        if bit == 0 {
            copy_nonoverlapping(from, to, bytes);
        } else {
            shifted(to, from, bit, bytes);
        }
        if tail > 0 {
            let value = read(from.wrapping_add(bytes), bit, tail as u32);
            write(to.wrapping_add(bytes), 0, tail as u32, value);
        }
    }
}

/// 64 bits.
///
/// # Safety
/// The bytes that hold them are readable.
#[inline(never)] // once, not twice
pub(super) unsafe fn word(base: *const u8, bit: i64) -> u64 {
    let (from, shift) = at(base, bit);
    // SAFETY: the last byte is the ninth only if it holds some of the bits.
    unsafe {
        let last = from.wrapping_add((shift as usize + 63) / 8);
        u64::from_le(from.cast::<u64>().read_unaligned()) >> shift
            | u64::from(*last) << 1 << (63 - shift)
    }
}

/// Whole destination bytes, each from two source bytes, which they may overlap from below.
///
/// # Safety
/// `bytes` bytes are writable, and one more is readable.
pub(super) unsafe fn shifted(to: *mut u8, from: *const u8, bit: u32, bytes: usize) {
    let mut i = 0;
    // SAFETY: `bytes` destination bytes take their bits from `bytes + 1` source bytes.
    unsafe {
        while i + 8 <= bytes {
            let low = u64::from_le(from.wrapping_add(i).cast::<u64>().read_unaligned());
            let high = u64::from(*from.wrapping_add(i + 8));
            let value = low >> bit | high << (64 - bit);
            to.wrapping_add(i).cast::<u64>().write_unaligned(value.to_le());
            i += 8;
        }
        while i < bytes {
            *to.wrapping_add(i) = read(from.wrapping_add(i), bit, 8);
            i += 1;
        }
    }
}

/// Sets `n` bits to 0.
///
/// # Safety
/// The bytes that hold them are readable and writable.
pub(super) unsafe fn zero(dst: *mut u8, dst_bit: i64, n: usize) {
    let (to, shift) = at(dst, dst_bit);
    let mut to = to.cast_mut();
    let head = ((8 - shift) as usize & 7).min(n);
    // SAFETY: head, whole bytes and tail make up the caller's run.
    unsafe {
        if head > 0 {
            write(to, shift, head as u32, 0);
            to = to.wrapping_add(1);
        }
        let (bytes, tail) = ((n - head) / 8, (n - head) % 8);
        to.write_bytes(0, bytes);
        if tail > 0 {
            write(to.wrapping_add(bytes), 0, tail as u32, 0);
        }
    }
}
