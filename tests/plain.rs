//! The fast path of the common case returns the same as the full checks: whatever it accepts they
//! accept at every level, and both report the same properties of the tensor.

use core::ptr::{null, null_mut};

use dlpack_rs::abi::*;
use dlpack_rs::tensor::block::{self, Block, Owner};
use dlpack_rs::tensor::{share, wrap};
use dlpack_rs::validate::{Found, Level, Level::*, Plain, Rules, Snapshot};
use dlpack_rs::{device_type, dtype, platform};

const LEVELS: [Level; 3] = [DLRS_LEVEL_STRUCT, DLRS_LEVEL_LAYOUT, DLRS_LEVEL_STRICT];

#[test]
fn a_plain_dtype_is_legal_and_its_bytes_are_counted() {
    let mut plain = 0;
    for bits in (0..=u8::MAX).flat_map(|code| (0..=u8::MAX).map(move |bits| (code, bits))) {
        for lanes in [0, 1, 2, 3, 8, 255, u16::MAX] {
            let dtype = DLDataType { code: bits.0, bits: bits.1, lanes };
            let nbytes = dtype::plain_bytes(dtype);
            if nbytes != 0 {
                plain += 1;
                assert!(dtype::legal(dtype).is_ok());
                assert!((0..8).all(|flags| dtype::slot_bits(dtype, flags) == nbytes * 8));
            }
        }
    }
    // Every legal dtype whose lanes have whole bytes, with lanes.
    let whole = dtype::KINDS.iter().flat_map(|kind| kind.bits).filter(|&bits| bits % 8 == 0);
    assert_eq!(plain, whole.count() * 6);
}

#[test]
fn a_plain_device_exists_and_has_addresses() {
    let mut plain = 0;
    for device_type in (-2..40).chain([i32::MIN, i32::MAX]) {
        for device_id in [i32::MIN, -1, 0, 1, 7, i32::MAX] {
            let device = DLDevice { device_type, device_id };
            let good = device_type::check_strictly(device).is_ok()
                && !device_type::opaque_handle(device_type);
            assert_eq!(device_type::plain(device), good, "{device:?}");
            plain += usize::from(good);
        }
    }
    assert!(plain > 16);
}

/// Pseudo-random choices.
struct Dice(u64);

impl Dice {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 33) as usize % n
    }
    /// Mostly one of the first `usual`, at times any.
    fn of<T: Copy>(&mut self, usual: usize, from: &[T]) -> T {
        let n = if self.below(12) == 0 { from.len() } else { usual };
        from[self.below(n)]
    }
}

const EXTENTS: [i64; 14] =
    [1, 2, 3, 5, 1 << 15, (1 << 30) - 1, 1 << 30, 0, -1, 1 << 32, 1 << 62, i64::MAX, i64::MIN, -7];
const STRIDES: [i64; 14] =
    [1, 0, 3, 60, 1 << 20, (1 << 30) - 1, 1 << 30, -1, -60, 1 << 40, i64::MAX, i64::MIN, 7, -3];
const LOW: u64 = platform::LOW_HALF;
const DATA: [u64; 8] = [0x1000, 0x7001, 1, 0, LOW - 1, LOW, LOW - 4096, u64::MAX];
const OFFSETS: [u64; 7] = [0, 8, 1 << 46, LOW, 1 << 63, u64::MAX, u64::MAX - 0x1000];
const FLAGS: [u64; 6] = [0, 3, 4, 7, 8, 1 << 63];
const DEVICES: [(i32, i32); 8] =
    [(1, 0), (2, 1), (10, 0), (4, 0), (1, 1), (2, -1), (0, 0), (19, 0)];
const DTYPES: [(u8, u8, u16); 10] = [
    (2, 32, 1),
    (0, 8, 3),
    (5, 128, 1),
    (2, 64, u16::MAX),
    (17, 4, 2),
    (0, 1, 1),
    (2, 32, 0),
    (2, 24, 1),
    (2, 0, 1),
    (99, 8, 1),
];

/// A tensor whose pointers point into both arrays, and the flags beside it.
fn roll(dice: &mut Dice, shape: &mut [i64; 10], strides: &mut [i64; 10]) -> (DLTensor, u64) {
    shape.iter_mut().for_each(|extent| *extent = dice.of(4, &EXTENTS));
    strides.iter_mut().for_each(|stride| *stride = dice.of(5, &STRIDES));
    let (device_type, device_id) = dice.of(3, &DEVICES);
    let (code, bits, lanes) = dice.of(4, &DTYPES);
    let array = |dice: &mut Dice, array: &mut [i64; 10]| match dice.below(40) {
        0 | 1 => null_mut(),
        2 => array.as_mut_ptr().cast::<u8>().wrapping_add(4).cast(),
        _ => array.as_mut_ptr(),
    };
    let tensor = DLTensor {
        data: dice.of(3, &DATA) as usize as *mut _,
        device: DLDevice { device_type, device_id },
        ndim: dice.of(6, &[1, 2, 3, 4, 7, 8, 0, 9, -1]),
        dtype: DLDataType { code, bits, lanes },
        shape: array(dice, shape),
        strides: array(dice, strides),
        byte_offset: dice.of(2, &OFFSETS),
    };
    (tensor, dice.of(4, &FLAGS))
}

fn said(snapshot: &Snapshot, layout: bool) -> impl PartialEq + core::fmt::Debug {
    (
        (snapshot.data, snapshot.byte_offset, snapshot.device, snapshot.dtype, snapshot.flags),
        (snapshot.empty, snapshot.strides_given, layout.then_some(snapshot.byte_extent)),
        (snapshot.shape().to_vec(), snapshot.strides().to_vec()),
    )
}

#[test]
fn fast_path_agrees_with_the_full_checks() {
    let mut dice = Dice(1);
    let (mut shape, mut strides) = ([0; 10], [0; 10]);
    let (mut accepted, mut plain, mut bare) = (0, 0, 0);
    for _ in 0..400_000 {
        let (tensor, flags) = roll(&mut dice, &mut shape, &mut strides);
        let due = dice.below(2) == 0;
        let mut short = Snapshot::new();
        // SAFETY: both arrays hold as many values as any `ndim` that is read; a misaligned one is
        // not read.
        let (found, is) =
            unsafe { (short.read_plain(&tensor, flags), Plain::of(&tensor, flags).is_some()) };
        assert!(found == Found::Plain || !is);
        // What is read without a second look has the result of the full checks, error and all.
        for level in LEVELS {
            let (mut once, mut long, rules) = (Snapshot::new(), Snapshot::new(), Rules::of(level));
            // SAFETY: as above.
            let (read, checked) = unsafe {
                let read = once.read(&tensor, flags, rules);
                (read, long.read_checked(tensor, flags, rules, false))
            };
            assert_eq!(format!("{read:?}"), format!("{checked:?}"));
            assert!(read.is_err() || said(&once, rules.layout) == said(&long, rules.layout));
        }
        if found != Found::Plain || due && tensor.strides.is_null() {
            continue;
        }
        plain += usize::from(is);
        accepted += 1;
        bare += usize::from(tensor.strides.is_null());
        for level in LEVELS {
            let (mut long, rules) = (Snapshot::new(), Rules::of(level));
            // SAFETY: as above.
            let checked = unsafe { long.read_checked(tensor, flags, rules, due) };
            assert!(checked.is_ok(), "{checked:?}");
            assert!(said(&short, rules.layout) == said(&long, rules.layout));
        }
    }
    assert!(accepted > 20_000 && plain > 20_000 && plain < accepted && bare > 200);
}

#[test]
fn fast_path_leaves_large_extents_to_the_full_checks() {
    let (mut near, mut far) = (0, 0);
    for (k, j) in (0..32).flat_map(|k| (0..30).map(move |j| (k, j))) {
        for lanes in [1, 3, 1 << 15, u16::MAX] {
            let (mut shape, mut strides) = ([(1i64 << k) + 1], [1i64 << j]);
            let tensor = DLTensor {
                data: 0x1000 as *mut _,
                device: DLDevice { device_type: 1, device_id: 0 },
                ndim: 1,
                dtype: DLDataType { code: 2, bits: 64, lanes },
                shape: shape.as_mut_ptr(),
                strides: strides.as_mut_ptr(),
                byte_offset: 0,
            };
            let rules = Rules::of(DLRS_LEVEL_LAYOUT);
            // SAFETY: one value each.
            let (plain, good) = unsafe {
                let read = Snapshot::new().read_checked(tensor, 0, rules, false);
                (Plain::of(&tensor, 0).is_some(), read.is_ok())
            };
            assert!(good || !plain, "2^{k} * 2^{j} elements of {lanes} lanes");
            near += usize::from(plain);
            far += usize::from(!good);
        }
    }
    // Elsewhere nearly all of 64 bits are addresses.
    let least = if cfg!(target_arch = "x86_64") { 1_000 } else { 200 };
    assert!(near > 400 && far > least, "{near} {far}");
}

#[test]
fn both_structs_of_a_block_are_one_tensor() {
    let (mut shape, mut strides) = ([2, 3], [3, 1]);
    let tensor = DLTensor {
        data: 0x1000 as *mut _,
        device: DLDevice { device_type: 1, device_id: 0 },
        ndim: 2,
        dtype: DLDataType { code: 2, bits: 32, lanes: 1 },
        shape: shape.as_mut_ptr(),
        strides: strides.as_mut_ptr(),
        byte_offset: 4,
    };
    // SAFETY: a tensor that is not dereferenced; each block is freed once, by one of its deleters.
    unsafe {
        for by_legacy in [false, true] {
            let owner = Owner::Callback(None, null_mut());
            let Ok(block) = block::around(&tensor, 1, owner) else { panic!() };
            let (versioned, legacy) = (Block::versioned(block), Block::legacy(block));
            assert_eq!(block::of_versioned(versioned), Some(block));
            assert_eq!(block::of_legacy(legacy), Some(block));
            let (versioned, legacy) = (versioned.as_ptr(), legacy.as_ptr());
            assert_eq!((*legacy).manager_ctx, (*versioned).manager_ctx);
            assert_eq!(&raw const (*legacy).dl_tensor, &raw const (*versioned).dl_tensor);
            assert_eq!((*legacy).dl_tensor.byte_offset, 4);
            match by_legacy {
                true => ((*legacy).deleter.unwrap())(legacy),
                false => ((*versioned).deleter.unwrap())(versioned),
            }
        }
    }
}

#[test]
fn blocks_are_equal_however_created() {
    let mut dice = Dice(2);
    let (mut shape, mut strides) = ([0; 10], [0; 10]);
    let mut made = 0;
    for _ in 0..40_000 {
        let (tensor, flags) = roll(&mut dice, &mut shape, &mut strides);
        let mut long = Snapshot::new();
        let rules = Rules::of(DLRS_LEVEL_LAYOUT);
        let owner = Owner::Callback(None, null_mut());
        // SAFETY: as in the test above; a block of ours is freed once.
        unsafe {
            let short = match block::around(&tensor, flags, owner) {
                Ok(block) => Ok(block),
                Err(left) => wrap::wrap_checked(&tensor, flags, owner, rules, left),
            };
            let checked = long.read_checked(tensor, flags, rules, false);
            let checked = checked.and_then(|()| wrap::wrap(&long, owner));
            match (short, checked) {
                (Ok(short), Ok(checked)) => {
                    made += 1;
                    for managed in [short, checked].map(Block::versioned) {
                        let managed = managed.as_ptr();
                        let whole = tensor.dtype.bits.is_multiple_of(8);
                        let gone =
                            if whole { DLPACK_FLAG_BITMASK_IS_SUBBYTE_TYPE_PADDED } else { 0 };
                        assert_eq!((*managed).flags, flags & !gone);
                        assert!(!(*managed).manager_ctx.is_null());
                        assert!(told(&(*managed).dl_tensor) == said(&long));
                    }
                    for legacy in [short, checked].map(Block::legacy) {
                        assert!(told(&(*legacy.as_ptr()).dl_tensor) == said(&long));
                    }
                    share::release(Block::versioned(short));
                    share::release(Block::versioned(checked));
                }
                (Err(short), Err(checked)) => {
                    // Flags come first in the one, and last in the other.
                    assert!(short.status() == checked.status() || flags > 7);
                }
                _ => panic!("one way refuses what the other takes"),
            }
        }
    }
    assert!(made > 2_000, "{made}");

    fn said(from: &Snapshot) -> (usize, u64, DLDevice, DLDataType, Vec<i64>, Vec<i64>) {
        let data = if from.empty { null() } else { from.data.cast_const() };
        let (shape, strides) = (from.shape().to_vec(), from.strides().to_vec());
        (data as usize, from.byte_offset, from.device, from.dtype, shape, strides)
    }
    /// # Safety
    /// A tensor of ours.
    unsafe fn told(tensor: &DLTensor) -> (usize, u64, DLDevice, DLDataType, Vec<i64>, Vec<i64>) {
        let array = |array: *const i64| match tensor.ndim {
            0 => Vec::new(),
            // SAFETY: the caller's promise.
            n => unsafe { core::slice::from_raw_parts(array, n as usize) }.to_vec(),
        };
        let (shape, strides) = (array(tensor.shape), array(tensor.strides));
        (tensor.data as usize, tensor.byte_offset, tensor.device, tensor.dtype, shape, strides)
    }
}
