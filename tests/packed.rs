//! Packed texts unpack to the originals.

use core::ffi::CStr;

use dlpack_rs::gpu::kernels::{self, FAMILIES, Family, PTX, SOURCE};
use dlpack_rs::gpu::packed::unpack;

#[allow(dead_code)] // its `main`
#[path = "../crates/gpu/src/packed/pack.rs"]
mod pack;
#[path = "lib/random.rs"]
mod random;
use random::Random;

fn there_and_back(text: &[u8]) -> usize {
    let packed = pack::pack(text);
    assert!(packed.len() <= text.len() + text.len().div_ceil(128));
    let mut out = vec![0xAA; text.len()];
    unpack(&packed, &mut out);
    assert!(out == text, "{} bytes", text.len());
    packed.len()
}

#[test]
fn texts_round_trip() {
    let mut random = Random(1);
    let mut chance = |below| random.below(below);
    for nbytes in (0..300).chain([1000, 65_535, 65_536, 65_537, 70_000]) {
        there_and_back(&vec![b'a'; nbytes]);
        for letters in [2, 3, 256] {
            let text: Vec<u8> = (0..nbytes).map(|_| chance(letters) as u8).collect();
            there_and_back(&text);
        }
    }
    // The same far away, or beyond the maximum distance, with incompressible text between.
    let noise: Vec<u8> = (0..100).map(|_| chance(256) as u8).collect();
    for far in [65_534, 65_535, 65_536, 70_000] {
        let text = [&noise[..], &vec![b'a'; far - 100], &noise].concat();
        there_and_back(&text);
    }
}

#[test]
fn the_kernels_come_back_and_are_small() {
    for (text, packed) in [(PTX, &kernels::CUDA), (SOURCE, &kernels::ROCM)] {
        let nbytes = there_and_back(text.to_bytes_with_nul());
        assert_eq!(nbytes, packed.bytes.len());
        assert!(nbytes * 5 < text.count_bytes() * 3 && nbytes <= 40 << 10, "{nbytes}");
        let unpacked = packed.text().unwrap();
        // SAFETY: it ends with NUL, if it is correct.
        assert_eq!(unsafe { CStr::from_ptr(unpacked.as_ptr()) }, text);
    }
}

/// Each kernel is in one family: the family's part of the PTX has exactly its kernels, whole; the
/// source has them between an `#if` and its `#endif` that the family's option selects.
#[test]
fn each_kernel_is_in_one_family() {
    let entries = |text: &str| -> Vec<String> {
        let entry = |line: &str| Some(line.strip_prefix(".visible .entry ")?.to_owned());
        text.lines().filter_map(entry).collect()
    };
    let all = entries(PTX.to_str().unwrap());
    let mut found = Vec::new();
    let mut numbers = Vec::new();
    for first in ["dlrs_run", "dlrs_transpose", "dlrs_tile", "dlrs_pixels", "dlrs_bits"] {
        let family = Family::of(first.as_bytes()).unwrap();
        numbers.push(family.number());
        let mut left = PTX.to_bytes_with_nul().to_vec();
        family.leave(&mut left);
        assert_eq!(left.len(), PTX.to_bytes_with_nul().len());
        let left = CStr::from_bytes_with_nul(&left).unwrap().to_str().unwrap();
        assert_eq!(left.matches(".version").count(), 1);
        let mine = entries(left);
        assert!(mine.iter().all(|name| Family::of(name.as_bytes()) == Some(family)));
        assert_eq!(left.matches("\nret;").count(), mine.len());
        assert_eq!(left.matches('{').count(), left.matches('}').count());
        let option = family.option().to_str().unwrap();
        let bit: u32 = option.strip_prefix("-DDLRS_KERNELS=").unwrap().parse().unwrap();
        assert_eq!(bit, 1 << family.number());
        let source = SOURCE.to_str().unwrap();
        let (_, rest) = source.split_once(&format!("#if DLRS_KERNELS & {bit}\n")).unwrap();
        let (part, _) = rest.split_once("#endif").unwrap();
        let kernel = |line: &str| Some(line.strip_prefix("KERNEL ")?.split_once('(')?.0.to_owned());
        let names: Vec<_> = mine.iter().map(|name| name.trim_end_matches('(')).collect();
        assert_eq!(part.lines().filter_map(kernel).collect::<Vec<_>>(), names);
        found.extend(mine);
    }
    assert_eq!(numbers, (0..FAMILIES).collect::<Vec<_>>());
    assert_eq!(found, all);
    assert_eq!(Family::of(b"dlrs_nothing"), None);
}

/// Invalid packed data must do no harm either.
#[test]
fn garbage_input_stays_in_bounds() {
    let mut out = [0; 64];
    for head in 0..=255 {
        for rest in [&[][..], &[255], &[255, 255], &[0, 0], &[1, 0, 7]] {
            unpack(&[&[head], rest].concat(), &mut out);
        }
    }
}
