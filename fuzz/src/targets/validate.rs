//! Tensors made of bytes. An oracle in 128-bit arithmetic checks every level of validation against
//! the documented order, and sizes, spans, bounds and contiguity. The input is not modified;
//! descriptions follow snprintf.

use std::ptr::null_mut;

use crate::reader::EXTREMES;
use crate::{Reader, call, snprintf_rule};
use dlpack_rs::abi::*;
use dlpack_rs::capi::{overlap::*, print::*, query::*, validate::*};
use dlpack_rs::error::Status::{self, *};
use dlpack_rs::validate::{Level, Rules, Snapshot};
use dlpack_rs::{device_type, dtype, platform};

/// A tensor with all that it points to.
struct World {
    managed: DLManagedTensorVersioned,
    shape: Box<[i64]>,
    strides: Box<[i64]>,
    arena: Box<[u8]>,
}

fn array(reader: &mut Reader, array: &mut [i64]) -> *mut i64 {
    match reader.below(16) {
        14 => null_mut(),
        15 => array.as_mut_ptr().wrapping_byte_add(4), // none of it may be read
        _ => array.as_mut_ptr(),
    }
}

fn address(reader: &mut Reader, arena: &[u8]) -> *mut u8 {
    let inside = arena.as_ptr().wrapping_add(reader.below(64)).cast_mut();
    let outside = [0, 1, 0x1000, platform::LOW_HALF - 1, platform::LOW_HALF, u64::MAX];
    match reader.below(4) {
        0 | 1 => inside,
        2 => reader.of(&outside) as *mut u8,
        _ => u64::from_le_bytes(reader.array()) as *mut u8,
    }
}

fn extents_and_strides(reader: &mut Reader, n: usize) -> [Box<[i64]>; 2] {
    let shape: Box<[i64]> = (0..n).map(|_| reader.number(-1, 4)).collect();
    let mut strides: Box<[i64]> = (0..n).map(|_| reader.number(-4, 9)).collect();
    if reader.one_in(3) {
        // Compact, as far as 64 bits can express it.
        let mut step = 1i64;
        for (stride, n) in strides.iter_mut().zip(&shape).rev() {
            *stride = step;
            step = step.wrapping_mul(*n);
        }
    }
    [shape, strides]
}

fn world(reader: &mut Reader) -> World {
    let ndim = match reader.below(16) {
        0..12 => reader.below(7) as i32,
        12..14 => reader.below(65) as i32,
        14 => reader.of(&[-1, 65, i32::MAX, i32::MIN, 64]),
        _ => i32::from_le_bytes(reader.array()),
    };
    let n = if (0..=64).contains(&ndim) { ndim as usize } else { 0 };
    let [mut shape, mut strides] = extents_and_strides(reader, n);
    let arena = vec![reader.byte(); 256].into_boxed_slice();
    let managed = DLManagedTensorVersioned {
        version: DLPackVersion {
            major: if reader.one_in(32) { reader.byte().into() } else { 1 },
            minor: reader.below(5) as u32,
        },
        manager_ctx: null_mut(),
        deleter: None,
        flags: if reader.one_in(32) { u64::from_le_bytes(reader.array()) } else { 0 }
            ^ reader.below(8) as u64,
        dl_tensor: DLTensor {
            data: address(reader, &arena).cast(),
            device: reader.device(),
            ndim,
            dtype: reader.dtype(),
            shape: array(reader, &mut shape),
            strides: array(reader, &mut strides),
            byte_offset: match reader.below(8) {
                0..6 => reader.below(32) as u64,
                6 => reader.of(&EXTREMES) as u64,
                _ => u64::from_le_bytes(reader.array()),
            },
        },
    };
    World { managed, shape, strides, arena }
}

/// The first failure in the documented order; a `Result` without values.
type Verdict = Result<(), Status>;

fn unless(fault: bool, status: Status) -> Verdict {
    if fault { Err(status) } else { Ok(()) }
}

impl World {
    fn slot_bits(&self) -> i128 {
        let DLDataType { bits, lanes, .. } = self.managed.dl_tensor.dtype;
        let bits = i128::from(bits) * i128::from(lanes);
        if self.managed.flags & 4 == 0 { bits } else { (bits + 7) / 8 * 8 }
    }

    fn empty(&self) -> bool {
        self.shape.contains(&0)
    }

    fn addressed(&self) -> bool {
        let code = self.managed.dl_tensor.device.device_type;
        !device_type::KINDS.iter().any(|kind| kind.code == code && kind.opaque_handle)
    }

    /// An overflow of 64 bits counts as one too many.
    fn numel(&self) -> i128 {
        let fits = |n: i128| n.min(i128::from(i64::MAX) + 1);
        let product = |all: i128, &n: &i64| fits(all.saturating_mul(n.into()));
        if self.empty() { 0 } else { self.shape.iter().fold(1, product) }
    }

    fn nbytes(&self) -> i128 {
        (self.numel() * self.slot_bits() + 7) / 8
    }

    /// The effective strides.
    fn steps(&self) -> Vec<i128> {
        if !self.managed.dl_tensor.strides.is_null() {
            return self.strides.iter().map(|&stride| stride.into()).collect();
        }
        let product = |all: i128, &n: &i64| all.saturating_mul(n.into());
        let inside = |dim| self.shape[dim + 1..].iter().fold(1, product);
        (0..self.shape.len()).map(inside).collect()
    }

    /// The lowest and the highest element offset. The shape has no 0 and few elements.
    fn reach(&self) -> (i128, i128) {
        let reach = |(&n, step): (&i64, i128)| i128::from(n - 1) * step;
        let reaches = || self.shape.iter().zip(self.steps()).map(reach);
        (reaches().filter(|&reach| reach < 0).sum(), reaches().filter(|&reach| reach > 0).sum())
    }

    /// The bytes used, from the first element's start. As `reach`.
    fn span(&self) -> (i128, i128) {
        let ((low, high), bits) = (self.reach(), self.slot_bits());
        ((low * bits) >> 3, (high * bits + bits + 7) >> 3)
    }

    fn known(&self) -> Verdict {
        let (dtype, device) = (self.managed.dl_tensor.dtype, self.managed.dl_tensor.device);
        let kind = dtype::KINDS.get(usize::from(dtype.code)).ok_or(DLRS_DTYPE_CODE)?;
        unless(!kind.bits.contains(&dtype.bits), DLRS_DTYPE_BITS)?;
        let kind = device_type::KINDS.iter().find(|kind| kind.code == device.device_type);
        let zero = kind.ok_or(DLRS_DEVICE_TYPE)?.host_reachable;
        unless(device.device_id < 0 || zero && device.device_id != 0, DLRS_DEVICE_ID)
    }

    /// One run of bits, or rows of bits that each start on a byte.
    fn whole_rows(&self) -> bool {
        let bits = self.slot_bits();
        let dims: Vec<_> = self.shape.iter().zip(self.steps()).filter(|dim| *dim.0 != 1).collect();
        let inner = dims.iter().filter(|dim| dim.1 == 1).count();
        let outer = dims.iter().filter(|dim| dim.1 != 1);
        bits % 8 == 0
            || self.contiguous('C')
            || inner == 1 && { outer }.all(|dim| dim.1 * bits % 8 == 0)
    }

    fn layout(&self, strict: bool) -> Verdict {
        let tensor = &self.managed.dl_tensor;
        unless(self.numel() > i64::MAX.into(), DLRS_SIZE_OVERFLOW)?;
        unless(self.nbytes() > i64::MAX.into(), DLRS_SIZE_OVERFLOW)?;
        let fits = |(low, high)| i64::try_from(low).is_ok() && i64::try_from(high).is_ok();
        unless(!fits(self.reach()), DLRS_EXTENT_OVERFLOW)?;
        let (low, high) = self.span();
        unless(!fits((low, high)), DLRS_EXTENT_OVERFLOW)?;
        unless(strict && !self.whole_rows(), DLRS_SUBBYTE)?;
        if !self.addressed() {
            return Ok(());
        }
        unless(tensor.data.is_null(), DLRS_DATA_NULL)?;
        let data = tensor.data as u64;
        let limit = if data < platform::LOW_HALF { platform::LOW_HALF } else { u64::MAX }.into();
        let first = i128::from(data) + i128::from(tensor.byte_offset);
        unless(first > limit, DLRS_OFFSET)?;
        unless(first + low < 0 || first + high > limit, DLRS_EXTENT_OVERFLOW)
    }

    /// A level's result for the tensor; `due` where strides must be present.
    fn level(&self, level: i32, due: bool) -> Verdict {
        let (tensor, strict) = (&self.managed.dl_tensor, level >= 3);
        unless(strict && self.managed.flags > 7, DLRS_FLAGS)?;
        unless(!(0..=64).contains(&tensor.ndim), DLRS_NDIM)?;
        let arrays = tensor.ndim > 0;
        unless(arrays && tensor.shape.is_null(), DLRS_SHAPE_NULL)?;
        unless(arrays && !tensor.shape.is_aligned(), DLRS_MISALIGNED_STRUCT)?;
        unless(tensor.dtype.bits == 0, DLRS_DTYPE_BITS)?;
        unless(tensor.dtype.lanes == 0, DLRS_DTYPE_LANES)?;
        if strict {
            self.known()?;
        }
        unless(self.shape.iter().any(|&n| n < 0), DLRS_SHAPE_NEG)?;
        unless(arrays && !tensor.strides.is_aligned(), DLRS_MISALIGNED_STRUCT)?;
        unless(arrays && tensor.strides.is_null() && due && strict, DLRS_STRIDES_NULL)?;
        // Compact strides are products of extents, so these must fit.
        let made = tensor.strides.is_null();
        unless(made && self.numel() > i64::MAX.into(), DLRS_SIZE_OVERFLOW)?;
        if level >= 2 && !self.empty() { self.layout(strict) } else { Ok(()) }
    }

    fn contiguous(&self, order: char) -> bool {
        let mut dims: Vec<_> = self.shape.iter().zip(self.steps()).collect();
        dims.retain(|dim| *dim.0 != 1);
        match order {
            'A' => return self.contiguous('C') || self.contiguous('F'),
            'K' => dims.sort_by_key(|dim| dim.1),
            'C' => dims.reverse(),
            _ => {}
        }
        let mut step = 1i128;
        let dense = dims.iter().all(|&(&n, stride)| {
            let fits = stride == step;
            step = (step * i128::from(n)).min(1 << 64);
            fits
        });
        dense || self.empty()
    }

    /// All of the input, to check that it is unchanged.
    fn image(&self) -> impl PartialEq + use<> {
        let DLTensor { data, device, ndim, dtype, shape, strides, byte_offset } =
            self.managed.dl_tensor;
        let managed = &self.managed;
        (
            (managed.version, managed.manager_ctx, managed.flags, device, ndim, dtype),
            (data, shape, strides, byte_offset),
            (self.shape.clone(), self.strides.clone(), self.arena.clone()),
        )
    }
}

fn status(verdict: Verdict) -> i32 {
    verdict.map_or_else(|status| status as i32, |()| 0)
}

fn check_levels(world: &World) {
    let (tensor, flags) = (&raw const world.managed.dl_tensor, world.managed.flags);
    let version = world.managed.version;
    let legacy = DLManagedTensor {
        dl_tensor: world.managed.dl_tensor,
        manager_ctx: null_mut(),
        deleter: None,
    };
    // The driver of a device other than the CPU may have more information.
    let most = if world.managed.dl_tensor.device.device_type == 1 { 4 } else { 3 };
    let mut before = 0;
    for level in 1..=most {
        // SAFETY: arrays are as long as `ndim`, where that is valid.
        let said = call(|error| unsafe { dlrs_validate(tensor, flags, level, error) });
        assert_eq!(said, status(world.level(level, false)), "level {level}");
        assert!(before == 0 || said != 0, "level {level} accepts what a weaker one refuses");
        before = said;
        // SAFETY: as above.
        let said = call(|error| unsafe { dlrs_validate_managed(&world.managed, level, error) });
        let due = version.minor >= 2;
        let one = unless(version.major != 1, DLRS_VERSION);
        assert_eq!(said, status(one.and_then(|()| world.level(level, due))), "level {level}");
        // SAFETY: as above.
        let said = call(|error| unsafe { dlrs_validate_legacy(&legacy, level, error) });
        if flags == 0 {
            assert_eq!(said, status(world.level(level, false)), "level {level}");
        }
    }
}

fn check_within(world: &World, reader: &mut Reader) {
    let (tensor, flags) = (&world.managed.dl_tensor, world.managed.flags);
    let base = address(reader, &world.arena);
    let nbytes = if reader.one_in(4) { u64::from_le_bytes(reader.array()) } else { 96 };
    let end = i128::from(base as u64) + i128::from(nbytes);
    let expected = world.level(2, false).and_then(|()| {
        if world.empty() {
            return Ok(());
        }
        unless(!world.addressed(), DLRS_UNSUPPORTED)?;
        unless(end > u64::MAX.into(), DLRS_OUT_OF_BOUNDS)?;
        let first = i128::from(tensor.data as u64) + i128::from(tensor.byte_offset);
        let (low, high) = world.span();
        let outside = first + low < i128::from(base as u64) || first + high > end;
        unless(outside, DLRS_OUT_OF_BOUNDS)
    });
    // SAFETY: as above; `base` is not dereferenced.
    let said =
        call(|error| unsafe { dlrs_validate_within(tensor, flags, base.cast(), nbytes, error) });
    assert_eq!(said, status(expected));
}

/// Queries a number, and checks it, or that nothing was written.
fn ask<T: PartialEq + std::fmt::Debug + Copy>(
    expected: Result<T, Status>,
    untouched: T,
    question: impl Fn(&mut T, *mut dlpack_rs::capi::error::dlrs_error) -> i32,
) {
    let mut out = untouched;
    let said = call(|error| question(&mut out, error));
    assert_eq!(said, status(expected.map(|_| ())));
    assert_eq!(out, expected.unwrap_or(untouched));
}

fn check_questions(world: &World) {
    let (tensor, flags) = (&raw const world.managed.dl_tensor, world.managed.flags);
    let plain = |count: i128| {
        world.level(1, false)?;
        unless(world.numel() > i64::MAX.into(), DLRS_SIZE_OVERFLOW)?;
        i64::try_from(count).map_err(|_| DLRS_SIZE_OVERFLOW)
    };
    let laid_out = world.level(2, false);
    let unknown = !world.addressed() && !world.empty();
    let span = laid_out.and_then(|()| unless(unknown, DLRS_UNSUPPORTED));
    let span = span.map(|()| if world.empty() { (0, 0) } else { world.span() });
    // SAFETY: as above, and variables for the results.
    unsafe {
        let valid = world.level(1, false).is_ok();
        let (numel, nbytes) = if valid { (world.numel(), world.nbytes()) } else { (0, 0) };
        let bits = world.level(1, false).map(|()| world.slot_bits() as u64);
        ask(bits, 7777, |out, error| dlrs_itemsize_bits(tensor, flags, out, error));
        ask(plain(numel), -7, |out, error| dlrs_numel(tensor, out, error));
        let nbytes = plain(nbytes).map(|n| n as u64);
        ask(nbytes, 7777, |out, error| dlrs_nbytes(tensor, flags, out, error));
        if let Ok((low, high)) = span {
            let mut read = Snapshot::new();
            read.read(tensor, flags, Rules::of(Level::DLRS_LEVEL_LAYOUT)).unwrap();
            assert_eq!(read.byte_extent, (low as i64, high as i64));
        }
        for order in ['C', 'F', 'A', 'K'] {
            let dense = world.level(1, false).map(|()| world.contiguous(order).into());
            ask(dense, -7, |out, error| dlrs_is_contiguous(tensor, order as i32, out, error));
        }
        let mut answer = -7;
        let said = call(|error| dlrs_is_unique(tensor, flags, &mut answer, error));
        assert_eq!(said, status(laid_out));
        assert!(if said == 0 { (0..=2).contains(&answer) } else { answer == -7 });
    }
}

/// Whether the elements may be read: they are in memory of this test, or are not accessed.
fn readable(world: &World) -> bool {
    let tensor = &world.managed.dl_tensor;
    let (base, n) = (world.arena.as_ptr().cast(), world.arena.len() as u64);
    // SAFETY: as above.
    let within = unsafe { dlrs_validate_within(tensor, world.managed.flags, base, n, null_mut()) };
    // Without a valid layout nothing is read either.
    within != DLRS_OUT_OF_BOUNDS as i32 || !device_type::host_reachable(tensor.device.device_type)
}

fn check_texts(world: &World, reader: &mut Reader) {
    let (tensor, flags) = (&raw const world.managed.dl_tensor, world.managed.flags);
    let options = dlrs_print_options {
        struct_size: size_of::<dlrs_print_options>() as u32,
        edge_items: reader.below(5) as u32,
        threshold: reader.below(64) as u64,
    };
    let capacity = reader.below(256);
    // SAFETY: elements are readable; the rule passes a buffer of that capacity.
    let bare = snprintf_rule(capacity, |buffer, capacity, nbytes, error| unsafe {
        dlrs_tensor_to_string(tensor, flags, &options, buffer, capacity, nbytes, error)
    });
    // SAFETY: as above.
    let managed = snprintf_rule(capacity, |buffer, capacity, nbytes, error| unsafe {
        dlrs_managed_to_string(&world.managed, &options, buffer, capacity, nbytes, error)
    });
    if world.managed.version.major == 1 {
        assert_eq!(bare, managed);
    }
}

/// Builds the case of an input, and checks it.
pub fn run(input: &[u8]) {
    let mut reader = Reader::new(input);
    let world = world(&mut reader);
    let image = world.image();
    check_levels(&world);
    check_within(&world, &mut reader);
    check_questions(&world);
    // Slow, so rare.
    if reader.one_in(16) && readable(&world) && world.numel() <= 1 << 20 {
        check_texts(&world, &mut reader);
    }
    assert!(image == world.image(), "the input has changed");
}
