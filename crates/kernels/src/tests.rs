//! Compares every method of every vector of this machine with the vector in plain Rust, whose
//! algorithms tests/engine compares with its oracle.
use std::vec::Vec;

use crate::portable::Emulated;
use crate::vector::Vector;

#[path = "../../../tests/lib/random.rs"]
mod random;
use random::Random;

/// Bytes aligned to 64.
#[repr(align(64))]
struct Bytes([u8; 1024]);

/// The stored bytes; checks that no others are written.
unsafe fn bytes<V: Vector>(vector: V, stream: bool) -> Vec<u8> {
    let mut to = Bytes([0xa5; 1024]);
    let at = if stream { 64 } else { 67 };
    // SAFETY: enough bytes, and aligned; the processor has the instructions of `V`.
    unsafe {
        let to = to.0.as_mut_ptr().add(at);
        if stream { vector.stream(to) } else { vector.store(to) }
    }
    let (stored, beside) = (at..at + V::BYTES, |i: &usize| !(at..at + V::BYTES).contains(i));
    assert!((0..1024).filter(beside).all(|i| to.0[i] == 0xa5), "beside");
    to.0[stored].into()
}

/// Calls each method of `V` with random bytes, and `done` with its name and result.
unsafe fn every_method<V: Vector>(seed: u64, mut done: impl FnMut(&str, Vec<u8>)) {
    let mut random = Random(seed);
    let mut from = Bytes([0; 1024]);
    random.fill(&mut from.0);
    let place = |random: &mut Random, n: usize| {
        let at = random.within(0, 1024 - n as i64) as usize;
        from.0[at..at + n].as_ptr()
    };
    // SAFETY: every buffer has room for what is read; the processor has the instructions of `V`.
    unsafe {
        let (a, b) = (V::load(place(&mut random, 64)), V::load(place(&mut random, 64)));
        done("load", bytes(a, false));
        done("stream", bytes(b, true));
        let mut index = [0x80; 64];
        for one in &mut index {
            if random.below(4) > 0 {
                *one = random.below(V::WINDOW as u64) as u8;
            }
        }
        done("permute", bytes(a.permute(V::load(index.as_ptr())), false));
        done("over", bytes(a.over(b, V::load(index.as_ptr())), false));
        index.iter_mut().for_each(|one| *one = random.below(2 * V::WINDOW as u64) as u8);
        done("permute2", bytes(a.permute2(b, V::load(index.as_ptr())), false));
        let mut both = |name, [low, high]: [V; 2]| {
            done(name, bytes(low, false));
            done(name, bytes(high, false));
        };
        both("zip 1", a.zip::<1>(b));
        both("zip 2", a.zip::<2>(b));
        both("zip 4", a.zip::<4>(b));
        both("zip 8", a.zip::<8>(b));
        let shift = random.below(64) as usize;
        done("up", bytes(a.up(shift), false));
        done("down", bytes(a.down(shift), false));
        done("mixed", bytes(a.mixed(b, V::load(place(&mut random, 64))), false));
        let (mut windows, apart) = ([0xa5; 160], random.below(V::WINDOW as u64 + 16) as usize);
        a.store_windows(windows.as_mut_ptr(), apart);
        done("store_windows", windows.into());
        // Rows in any order, which may overlap.
        let middle = from.0.as_ptr().add(500);
        let rows = [0; 8].map(|_: isize| random.within(-450, 449) as isize);
        let apart = 1 + random.below(2) as usize;
        done("load_lanes", bytes(V::load_lanes(middle, rows.as_ptr(), apart), false));
        let square = V::load_square(middle, rows.as_ptr(), apart);
        square[..V::BYTES / 16].iter().for_each(|&one| done("load_square", bytes(one, false)));
        let offsets = [0; 4].map(|_: isize| random.within(-450, 449) as isize);
        done("load_windows", bytes(V::load_windows(middle, offsets.as_ptr()), false));
        V::prefetch(core::ptr::null());
        V::prefetch_near(core::ptr::null());
    }
}

/// Compares a vector with the one in plain Rust.
fn compare<V: Vector, E: Vector>(name: &str) {
    assert_eq!((V::BYTES, V::WINDOW), (E::BYTES, E::WINDOW));
    for seed in 0..if cfg!(miri) { 4 } else { 2000 } {
        let mut expected = Vec::new();
        // SAFETY: the processor has the instructions of `V`; those of `E` are the baseline's.
        unsafe {
            every_method::<E>(seed, |method, bytes| expected.push((method.to_owned(), bytes)));
            let mut expected = expected.into_iter();
            every_method::<V>(seed, |method, bytes| {
                let made = Some((method.to_owned(), bytes));
                assert_eq!(made, expected.next(), "{name}::{method} of {seed}");
            });
            assert_eq!(expected.next(), None);
        }
    }
}

use std::borrow::ToOwned;

#[cfg(target_arch = "x86_64")]
#[test]
fn vectors_of_x86() {
    use crate::Level;
    use crate::x86::vectors::{X16, X32, X64};
    if Level::Avx2.is_here() {
        compare::<X16, Emulated<16, 16>>("X16");
        compare::<X32, Emulated<32, 16>>("X32");
    }
    if Level::Avx512.is_here() {
        compare::<X64<16>, Emulated<64, 16>>("X64<16>");
    }
    if Level::Vbmi.is_here() {
        compare::<X64<64>, Emulated<64, 64>>("X64<64>");
    }
}

#[cfg(all(target_arch = "aarch64", target_feature = "neon", target_endian = "little"))]
#[test]
fn vectors_of_neon() {
    compare::<crate::neon::Neon, Emulated<16, 16>>("Neon");
}

#[test]
#[should_panic(expected = "not aligned")]
fn streams_are_aligned() {
    let mut to = Bytes([0; 1024]);
    // SAFETY: enough bytes.
    unsafe { Emulated::<64, 64>::load(to.0.as_ptr()).stream(to.0.as_mut_ptr().add(32)) }
}

#[test]
#[should_panic(expected = "index 16 of 16")]
fn indices_stay_in_their_window() {
    let from = Bytes([16; 1024]);
    // SAFETY: enough bytes.
    unsafe {
        let all = Emulated::<32, 16>::load(from.0.as_ptr());
        all.permute(all);
    }
}
