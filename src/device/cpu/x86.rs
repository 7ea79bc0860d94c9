//! x86: which of our levels the processor and the operating system support.
#![cfg(any(target_arch = "x86", target_arch = "x86_64"))]
#[cfg(target_arch = "x86")]
use core::arch::x86 as arch;
#[cfg(target_arch = "x86_64")]
use core::arch::x86_64 as arch;

use super::deal::Dealt;
use super::level::Level;
use super::ops::{OddKernel, Ops, Turns};
use super::tuning::{Make, tuning};
use super::{portable, x86_avx2, x86_avx2_odd, x86_avx512, x86_avx512_braid, x86_avx512_deal};
use super::{x86_avx512_groups, x86_avx512_odd, x86_avx512_planes, x86_avx512_small};

/// Zen 5's family, 1Ah.
const ZEN5: u32 = 0x1a;

pub(super) fn table(level: Level) -> &'static Ops {
    match level {
        Level::Vbmi => &VBMI,
        Level::Avx512 => &x86_avx512::OPS,
        Level::Avx2 => &x86_avx2::OPS,
        _ => &portable::OPS,
    }
}

/// Two elements of 8 bytes, which become neighbours: with one store.
///
/// # Safety
/// They are readable, and 16 bytes at `to` writable.
#[cfg(target_feature = "sse2")]
#[inline(always)]
pub(super) unsafe fn eights(to: *mut u8, [first, second]: [*const u8; 2]) {
    // SAFETY: the caller's promise; no load or store asks for an alignment.
    unsafe {
        let (low, high) =
            (arch::_mm_loadl_epi64(first.cast()), arch::_mm_loadl_epi64(second.cast()));
        arch::_mm_storeu_si128(to.cast(), arch::_mm_unpacklo_epi64(low, high));
    }
}

static VBMI: Ops = Ops {
    bytes: Some(x86_avx512_small::thin),
    odd_squares: Some(OddKernel { least: |_| 0, turn: squares }),
    braid: Some(x86_avx512_braid::braid),
    groups: Some((&[64, 128, 256], true, x86_avx512_groups::groups)),
    planes: Some((64, x86_avx512_planes::planes)),
    deal: Some(Dealt::Lines(x86_avx512_deal::deal)),
    pieces: x86_avx512::pieces_vbmi,
    ..x86_avx512::TABLE
};

/// Squares of elements of any size up to 15 bytes.
#[cfg_attr(not(emulated), target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi"))]
#[cfg_attr(emulated, target_feature(enable = "avx2"))]
unsafe fn squares(
    from: (*const u8, &[isize]),
    to: (*mut u8, &[isize]),
    n: (usize, usize),
    how: &Turns,
) {
    // SAFETY: the caller's promise.
    unsafe {
        match how.size {
            1 => x86_avx512_small::squares::<1>(from, to, n),
            2 => x86_avx512_small::squares::<2>(from, to, n),
            // Few rows by halves of registers: measured on a Xeon, benches/notes.md.
            3 if tuning().halves && FEW.contains(&n.0) && n.1 >= x86_avx2_odd::least(3) => {
                x86_avx2_odd::squares(from, to, n, how)
            }
            _ => x86_avx512_odd::squares(from, to, n, how),
        }
    }
}

/// Source rows of faces of three bytes.
const FEW: core::ops::Range<usize> = 20..128;

pub(super) fn detect() -> Level {
    const OSXSAVE_AVX: u32 = 1 << 27 | 1 << 28;
    const AVX2_BMI2: u32 = 1 << 5 | 1 << 8;
    const AVX512_F_BW_VL: u32 = 1 << 16 | 1 << 30 | 1 << 31;
    const VBMI: u32 = 1 << 1;
    let all = |register: u32, bits: u32| register & bits == bits;
    let last = arch::__cpuid(0).eax;
    if last < 7 || !all(arch::__cpuid(1).ecx, OSXSAVE_AVX) {
        return Level::Portable;
    }
    // SAFETY: OSXSAVE says that xgetbv exists.
    let saved = unsafe { xcr0() };
    let features = arch::__cpuid_count(7, 0);
    if !all(saved, 0x06) || !all(features.ebx, AVX2_BMI2) {
        Level::Portable
    } else if cfg!(emulated) {
        Level::Vbmi
    } else if !all(saved, 0xe6) || !all(features.ebx, AVX512_F_BW_VL) {
        Level::Avx2
    } else if !all(features.ecx, VBMI) {
        Level::Avx512
    } else {
        Level::Vbmi
    }
}

/// Who made the processor: AMD, or Hygon after AMD's plans, or another.
pub(super) fn maker() -> Make {
    let maker = arch::__cpuid(0);
    let says = |name: &[u8; 12]| {
        [maker.ebx, maker.edx, maker.ecx]
            .iter()
            .flat_map(|register| register.to_le_bytes())
            .eq(*name)
    };
    // Bits 8 to 11 and 20 to 27, which are added.
    let version = arch::__cpuid(1).eax;
    let family = (version >> 8 & 0xf) + (version >> 20 & 0xff);
    match says(b"AuthenticAMD") {
        true if family >= ZEN5 => Make::Zen5,
        amd if amd || says(b"HygonGenuine") => Make::Amd,
        _ => Make::Usual,
    }
}

/// The register states that the operating system saves.
#[target_feature(enable = "xsave")]
unsafe fn xcr0() -> u32 {
    // SAFETY: register 0 exists wherever xgetbv does, which the caller has checked.
    unsafe { arch::_xgetbv(0) as u32 }
}
