//! AVX-512's registers, masks and permutations in plain Rust, for tests alone: built with
//! `--cfg emulated`, the kernels for them run on any processor with AVX2, as they are but for the
//! instructions themselves. No byte that is masked off is read or written, and a store past the
//! caches to what is no line fails, as it does on the processor.
#![cfg(all(emulated, any(target_arch = "x86", target_arch = "x86_64")))]
#![allow(non_camel_case_types, clippy::modulo_one)] // Intel's names; elements of one byte, too
#[cfg(target_arch = "x86")]
pub(super) use core::arch::x86::*;
#[cfg(target_arch = "x86_64")]
pub(super) use core::arch::x86_64::*;
use core::mem::transmute;

/// A register.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
pub(super) struct __m512i([u8; 64]);

/// What the upper bytes are where the manual leaves them undefined.
const UNDEFINED: u8 = 0xa5;

fn bytes(f: impl FnMut(usize) -> u8) -> __m512i {
    __m512i(core::array::from_fn(f))
}

/// Of as many bytes as are in the mask: which one.
fn masked(mask: u64, mut f: impl FnMut(usize)) {
    (0..64).filter(|i| mask >> i & 1 == 1).for_each(&mut f);
}

/// # Safety
/// The bytes in the mask are readable.
unsafe fn load(mask: u64, from: *const i8, mut other: [u8; 64]) -> [u8; 64] {
    // SAFETY: the caller's bytes.
    masked(mask, |i| other[i] = unsafe { from.add(i).read() } as u8);
    other
}

/// # Safety
/// The bytes in the mask are writable.
unsafe fn store(mask: u64, to: *mut i8, from: &[u8]) {
    // SAFETY: the caller's bytes.
    masked(mask, |i| unsafe { to.add(i).write(from[i] as i8) });
}

fn of256(half: __m256i) -> [u8; 32] {
    // SAFETY: as many bytes.
    unsafe { transmute(half) }
}

fn of128(quarter: __m128i) -> [u8; 16] {
    // SAFETY: as many bytes.
    unsafe { transmute(quarter) }
}

/// The first bytes of some.
fn first<const N: usize>(all: &[u8]) -> [u8; N] {
    core::array::from_fn(|i| all[i])
}

fn to256(all: &[u8]) -> __m256i {
    // SAFETY: as many bytes.
    unsafe { transmute(first::<32>(all)) }
}

fn to128(all: &[u8]) -> __m128i {
    // SAFETY: as many bytes.
    unsafe { transmute(first::<16>(all)) }
}

// ---- Loads and stores. # Safety: the bytes, those in the mask if there is one, are the caller's.

pub(super) unsafe fn _mm512_loadu_si512(from: *const __m512i) -> __m512i {
    // SAFETY: the caller's bytes.
    unsafe { __m512i(load(u64::MAX, from.cast(), [0; 64])) }
}

pub(super) unsafe fn _mm512_maskz_loadu_epi8(mask: u64, from: *const i8) -> __m512i {
    // SAFETY: the caller's bytes.
    unsafe { __m512i(load(mask, from, [0; 64])) }
}

pub(super) unsafe fn _mm512_mask_loadu_epi8(other: __m512i, mask: u64, from: *const i8) -> __m512i {
    // SAFETY: the caller's bytes.
    unsafe { __m512i(load(mask, from, other.0)) }
}

pub(super) unsafe fn _mm256_maskz_loadu_epi8(mask: u32, from: *const i8) -> __m256i {
    // SAFETY: the caller's bytes.
    to256(&unsafe { load(mask.into(), from, [0; 64]) })
}

pub(super) unsafe fn _mm_maskz_loadu_epi8(mask: u16, from: *const i8) -> __m128i {
    // SAFETY: the caller's bytes.
    to128(&unsafe { load(mask.into(), from, [0; 64]) })
}

pub(super) unsafe fn _mm512_storeu_si512(to: *mut __m512i, a: __m512i) {
    // SAFETY: the caller's bytes.
    unsafe { store(u64::MAX, to.cast(), &a.0) }
}

pub(super) unsafe fn _mm512_stream_si512(to: *mut __m512i, a: __m512i) {
    assert!(to.is_aligned(), "no line");
    // SAFETY: the caller's bytes.
    unsafe { store(u64::MAX, to.cast(), &a.0) }
}

pub(super) unsafe fn _mm512_mask_storeu_epi8(to: *mut i8, mask: u64, a: __m512i) {
    // SAFETY: the caller's bytes.
    unsafe { store(mask, to, &a.0) }
}

pub(super) unsafe fn _mm256_mask_storeu_epi8(to: *mut i8, mask: u32, a: __m256i) {
    // SAFETY: the caller's bytes.
    unsafe { store(mask.into(), to, &of256(a)) }
}

pub(super) unsafe fn _mm_mask_storeu_epi8(to: *mut i8, mask: u16, a: __m128i) {
    // SAFETY: the caller's bytes.
    unsafe { store(mask.into(), to, &of128(a)) }
}

// ---- Permutations.

/// Byte `i` of the element of `N` bytes that `order` names in two registers.
fn picked<const N: usize>(a: __m512i, order: __m512i, b: __m512i) -> __m512i {
    bytes(|i| {
        let at = i / N * N;
        let high = if N > 1 { usize::from(order.0[at + 1]) << 8 } else { 0 };
        let from = (high | usize::from(order.0[at])) % (128 / N) * N + i % N;
        if from < 64 { a.0[from] } else { b.0[from - 64] }
    })
}

pub(super) fn _mm512_permutex2var_epi8(a: __m512i, order: __m512i, b: __m512i) -> __m512i {
    picked::<1>(a, order, b)
}

pub(super) fn _mm512_permutex2var_epi16(a: __m512i, order: __m512i, b: __m512i) -> __m512i {
    picked::<2>(a, order, b)
}

pub(super) fn _mm512_permutex2var_epi32(a: __m512i, order: __m512i, b: __m512i) -> __m512i {
    picked::<4>(a, order, b)
}

pub(super) fn _mm512_permutexvar_epi8(order: __m512i, a: __m512i) -> __m512i {
    picked::<1>(a, order, a)
}

pub(super) fn _mm512_shuffle_i64x2<const HOW: i32>(a: __m512i, b: __m512i) -> __m512i {
    bytes(|i| {
        let lane = (HOW >> (i / 16 * 2) & 3) as usize;
        if i < 32 { a.0[16 * lane + i % 16] } else { b.0[16 * lane + i % 16] }
    })
}

/// Elements of `N` bytes of each lane's first half, or of its second, in turn.
fn unpacked<const N: usize>(a: __m512i, b: __m512i, half: usize) -> __m512i {
    bytes(|i| {
        let element = i % 16 / N;
        let at = i / 16 * 16 + half * 8 + element / 2 * N + i % N;
        if element & 1 == 0 { a.0[at] } else { b.0[at] }
    })
}

macro_rules! unpack {
    ($($low:ident $high:ident $n:literal;)*) => {
        $(
            pub(super) fn $low(a: __m512i, b: __m512i) -> __m512i {
                unpacked::<$n>(a, b, 0)
            }

            pub(super) fn $high(a: __m512i, b: __m512i) -> __m512i {
                unpacked::<$n>(a, b, 1)
            }
        )*
    };
}
unpack! {
    _mm512_unpacklo_epi8 _mm512_unpackhi_epi8 1;
    _mm512_unpacklo_epi16 _mm512_unpackhi_epi16 2;
    _mm512_unpacklo_epi32 _mm512_unpackhi_epi32 4;
    _mm512_unpacklo_epi64 _mm512_unpackhi_epi64 8;
}

// ---- Masks and bits.

pub(super) fn _mm512_mask_mov_epi8(other: __m512i, mask: u64, a: __m512i) -> __m512i {
    bytes(|i| if mask >> i & 1 == 1 { a.0[i] } else { other.0[i] })
}

pub(super) fn _mm512_movepi8_mask(a: __m512i) -> u64 {
    (0..64).fold(0, |mask, i| mask | u64::from(a.0[i] >> 7) << i)
}

pub(super) fn _mm512_ternarylogic_epi32<const HOW: i32>(
    a: __m512i,
    b: __m512i,
    c: __m512i,
) -> __m512i {
    let bit = |i: usize, bit: usize| {
        let at = (a.0[i] >> bit & 1) << 2 | (b.0[i] >> bit & 1) << 1 | c.0[i] >> bit & 1;
        ((HOW >> at & 1) as u8) << bit
    };
    bytes(|i| (0..8).fold(0, |byte, at| byte | bit(i, at)))
}

// ---- Numbers.

macro_rules! numbers {
    ($($number:ty, $n:literal: [$($name:ident($($x:ident),*) $value:expr;)*])*) => {
        $($(
            pub(super) fn $name($($x: __m512i),*) -> __m512i {
                bytes(|i| {
                    let at = i / $n * $n;
                    $(let $x = <$number>::from_le_bytes(first(&$x.0[at..]));)*
                    let value: $number = $value;
                    value.to_le_bytes()[i % $n]
                })
            }
        )*)*
    };
}
numbers! {
    i8, 1: [_mm512_add_epi8(a, b) a.wrapping_add(b); _mm512_sub_epi8(a, b) a.wrapping_sub(b);]
    i16, 2: [_mm512_add_epi16(a, b) a.wrapping_add(b);]
    i32, 4: [_mm512_add_epi32(a, b) a.wrapping_add(b);]
}

macro_rules! same {
    ($($name:ident $number:ty, $n:literal;)*) => {
        $(pub(super) fn $name(value: $number) -> __m512i {
            bytes(|i| value.to_le_bytes()[i % $n])
        })*
    };
}
same! {
    _mm512_set1_epi8 i8, 1;
    _mm512_set1_epi16 i16, 2;
    _mm512_set1_epi32 i32, 4;
    _mm512_set1_epi64 i64, 8;
}

fn shifted(a: __m512i, by: impl Fn(u16) -> u16) -> __m512i {
    bytes(|i| by(u16::from_le_bytes(first(&a.0[i / 2 * 2..]))).to_le_bytes()[i % 2])
}

pub(super) fn _mm512_srli_epi16<const BY: u32>(a: __m512i) -> __m512i {
    shifted(a, |word| word >> BY)
}

pub(super) fn _mm512_slli_epi16<const BY: u32>(a: __m512i) -> __m512i {
    shifted(a, |word| word << BY)
}

pub(super) fn _mm512_cvtepi8_epi16(a: __m256i) -> __m512i {
    let a = of256(a);
    bytes(|i| i16::from(a[i / 2] as i8).to_le_bytes()[i % 2])
}

pub(super) fn _mm512_cvtepi8_epi32(a: __m128i) -> __m512i {
    let a = of128(a);
    bytes(|i| i32::from(a[i / 4] as i8).to_le_bytes()[i % 4])
}

// ---- Parts of registers.

pub(super) fn _mm512_castsi128_si512(a: __m128i) -> __m512i {
    let a = of128(a);
    bytes(|i| a.get(i).copied().unwrap_or(UNDEFINED))
}

pub(super) fn _mm512_castsi256_si512(a: __m256i) -> __m512i {
    let a = of256(a);
    bytes(|i| a.get(i).copied().unwrap_or(UNDEFINED))
}

pub(super) fn _mm512_castsi512_si128(a: __m512i) -> __m128i {
    to128(&a.0)
}

pub(super) fn _mm512_castsi512_si256(a: __m512i) -> __m256i {
    to256(&a.0)
}

pub(super) fn _mm512_extracti32x4_epi32<const I: i32>(a: __m512i) -> __m128i {
    to128(&a.0[16 * I as usize..])
}

pub(super) fn _mm512_extracti64x4_epi64<const I: i32>(a: __m512i) -> __m256i {
    to256(&a.0[32 * I as usize..])
}

pub(super) fn _mm512_inserti32x4<const I: i32>(a: __m512i, b: __m128i) -> __m512i {
    let b = of128(b);
    bytes(|i| if i / 16 == I as usize { b[i % 16] } else { a.0[i] })
}

pub(super) fn _mm512_inserti64x4<const I: i32>(a: __m512i, b: __m256i) -> __m512i {
    let b = of256(b);
    bytes(|i| if i / 32 == I as usize { b[i % 32] } else { a.0[i] })
}

pub(super) fn _mm512_broadcast_i32x4(a: __m128i) -> __m512i {
    let a = of128(a);
    bytes(|i| a[i % 16])
}

pub(super) fn _mm512_broadcast_i64x4(a: __m256i) -> __m512i {
    let a = of256(a);
    bytes(|i| a[i % 32])
}
