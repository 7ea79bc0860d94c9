//! Packed texts are unpacked to what they were.

use core::ffi::CStr;

use dlpack_rs::device::gpu::kernels::{self, PTX, SOURCE};
use dlpack_rs::device::gpu::packed::{pack, unpack};

/// More than any text below can take.
const ROOM: usize = 1 << 17;

fn there_and_back(text: &[u8]) -> usize {
    let (packed, nbytes) = pack::<ROOM>(text);
    assert_eq!(pack::<0>(text).1, nbytes);
    assert!(nbytes <= text.len() + text.len().div_ceil(128));
    let mut out = vec![0xAA; text.len()];
    unpack(&packed[..nbytes], &mut out);
    assert!(out == text, "{} bytes", text.len());
    nbytes
}

#[test]
fn any_text_comes_back() {
    let mut state = 1u64;
    let mut chance = |below: u64| {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (state >> 33) % below
    };
    for nbytes in (0..300).chain([1000, 65_535, 65_536, 65_537, 70_000]) {
        there_and_back(&vec![b'a'; nbytes]);
        for letters in [2, 3, 256] {
            let text: Vec<u8> = (0..nbytes).map(|_| chance(letters) as u8).collect();
            there_and_back(&text);
        }
    }
    // The same far away, or too far to be named. Between them stands nothing worth remembering.
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
        assert!(nbytes * 5 < text.count_bytes() * 3, "{nbytes}");
        let unpacked = packed.text().unwrap();
        // SAFETY: it ends with NUL, if it is what it should be.
        assert_eq!(unsafe { CStr::from_ptr(unpacked.as_ptr()) }, text);
    }
}

/// What nobody packed must do no harm either.
#[test]
fn garbage_stays_inside() {
    let mut out = [0; 64];
    for head in 0..=255 {
        for rest in [&[][..], &[255], &[255, 255], &[0, 0], &[1, 0, 7]] {
            unpack(&[&[head], rest].concat(), &mut out);
        }
    }
}
