//! Conversion against an oracle that shares only the table of formats: it searches all values of
//! the format for the nearest one. `fuzz/src/targets/cast.rs` has pairs of integers, and
//! `tests/python/test_cast.py` compares with NumPy and ml_dtypes.

use std::ffi::c_void;
use std::ptr::{null, null_mut};

use dlpack_rs::abi::*;
use dlpack_rs::capi::cast::dlrs_cast;
use dlpack_rs::capi::copy_options::dlrs_copy_options;
use dlpack_rs::cpu;
use dlpack_rs::float_formats::{self, FloatFormat, Specials};

#[path = "lib/random.rs"]
mod random;
use random::Random;

const PADDED: u64 = DLPACK_FLAG_BITMASK_IS_SUBBYTE_TYPE_PADDED;

fn dtype(code: u8, bits: u8, lanes: u16) -> DLDataType {
    DLDataType { code, bits, lanes }
}

/// A tensor over memory that is only read if `data` comes from `as_ptr`.
fn tensor<T>(
    data: *const T,
    dtype: DLDataType,
    shape: &[i64],
    strides: Option<&[i64]>,
    flags: u64,
) -> DLManagedTensorVersioned {
    DLManagedTensorVersioned {
        version: DLPackVersion { major: 1, minor: 1 },
        manager_ctx: null_mut(),
        deleter: None,
        flags,
        dl_tensor: DLTensor {
            data: data as *mut c_void,
            device: DLDevice { device_type: 1, device_id: 0 },
            ndim: shape.len() as i32,
            dtype,
            shape: shape.as_ptr().cast_mut(),
            strides: strides.map_or(null_mut(), |strides| strides.as_ptr().cast_mut()),
            byte_offset: 0,
        },
    }
}

fn cast(src: &DLManagedTensorVersioned, dst: &mut DLManagedTensorVersioned) {
    // SAFETY: live tensors over live memory.
    assert_eq!(unsafe { dlrs_cast(src, dst, null(), null_mut()) }, 0);
}

/// Converts between dense padded elements.
fn convert<A, B: Clone + Default>(from: &[A], src: DLDataType, dst: DLDataType) -> Vec<B> {
    let shape = [from.len() as i64];
    let mut to = vec![B::default(); from.len()];
    let mut out = tensor(to.as_mut_ptr(), dst, &shape, None, PADDED);
    cast(&tensor(from.as_ptr(), src, &shape, None, PADDED), &mut out);
    to
}

/// The float formats of at most 16 bits: code and bits.
fn small() -> Vec<(u8, u8)> {
    let mut all = vec![(2, 16), (4, 16)];
    all.extend((7..=14).map(|code| (code, 8)));
    all.extend([(15, 6), (16, 6), (17, 4)]);
    all
}

struct Oracle {
    format: &'static FloatFormat,
    /// Non-negative finite values and their codes, ascending.
    values: Vec<(f64, u64)>,
}

impl Oracle {
    fn new(code: u8, bits: u8) -> Self {
        let format = float_formats::of(code, bits).unwrap();
        let magnitudes = 0..1u64 << (bits - u8::from(format.signed));
        let mut values: Vec<_> =
            magnitudes.map(|raw| (float_formats::decode(code, bits, raw), raw)).collect();
        values.retain(|(value, _)| value.is_finite());
        values.sort_by(|a, b| a.0.total_cmp(&b.0));
        Oracle { format, values }
    }

    fn sign(&self) -> u64 {
        u64::from(self.format.signed) << (self.format.width() - 1)
    }

    fn largest(&self) -> (f64, u64) {
        *self.values.last().unwrap()
    }

    fn nan(&self, negative: bool) -> u64 {
        let all = (1u64 << self.format.exponent_bits << self.format.mantissa_bits) - 1;
        let sign = if negative { self.sign() } else { 0 };
        match self.format.specials {
            Specials::Ieee => sign | (all & !((1 << (self.format.mantissa_bits - 1)) - 1)),
            Specials::AllOnes => sign | all,
            Specials::MinusZero => self.sign(),
            Specials::None => self.sign() ^ sign,
        }
    }

    /// The result for a magnitude beyond the largest finite one.
    fn beyond(&self, negative: bool) -> u64 {
        let sign = if negative { self.sign() } else { 0 };
        match self.format.specials {
            Specials::Ieee => sign | (self.largest().1 + 1),
            Specials::None => sign | self.largest().1,
            _ => self.nan(negative),
        }
    }

    fn round(&self, x: f64) -> u64 {
        if !self.format.signed {
            return self.octave(x);
        }
        let (negative, x) = (x.is_sign_negative(), x.abs());
        if x.is_nan() {
            return self.nan(negative);
        }
        let above = self.values.partition_point(|(value, _)| *value < x);
        let (below, above) = match self.values.get(above) {
            Some(&exact) if exact.0 == x => (exact, exact),
            Some(&next) => (self.values[above - 1], next),
            None => {
                let (last, code) = self.largest();
                let step = last - self.values[self.values.len() - 2].0;
                ((last, code), (last + step, u64::MAX))
            }
        };
        // Exact: the values have few bits.
        let middle = (below.0 + above.0) / 2.0;
        let even = if below.1 & 1 == 0 { below.1 } else { above.1 };
        let code = match x.total_cmp(&middle) {
            std::cmp::Ordering::Less => below.1,
            std::cmp::Ordering::Greater => above.1,
            std::cmp::Ordering::Equal => even,
        };
        match code {
            u64::MAX => self.beyond(negative),
            0 if self.format.specials == Specials::MinusZero => 0,
            code => code | if negative { self.sign() } else { 0 },
        }
    }

    /// e8m0: ties round up, also between 2^-127 and 2^-126; only positive numbers.
    fn octave(&self, x: f64) -> u64 {
        let smallest = 2f64.powi(-127);
        if x.is_nan() || x <= 0.0 || x >= 1.5 * 2f64.powi(127) {
            return 0xff;
        }
        if x <= 2.0 * smallest {
            return u64::from(x > smallest);
        }
        let exponent = (x.to_bits() >> 52) as i64 - 1023;
        let up = x >= 1.5 * 2f64.powi(exponent as i32);
        (exponent + 127) as u64 + u64::from(up)
    }
}

/// Every value, every midpoint of two, and their neighbours; special and random numbers.
fn interesting(oracle: &Oracle) -> Vec<f64> {
    let mut all = vec![0.0, f64::INFINITY, f64::NAN, f64::MAX, 5e-324, 1e-300, f64::MIN_POSITIVE];
    let (last, _) = oracle.largest();
    let step = last - oracle.values[oracle.values.len() - 2].0;
    let values = oracle.values.iter().map(|(value, _)| *value).chain([last + step]);
    let values: Vec<f64> = values.collect();
    for pair in values.windows(2) {
        for x in [pair[0], (pair[0] + pair[1]) / 2.0, pair[1]] {
            // Far below binary32's range, too, where two roundings would be wrong.
            all.extend([x, x.next_up(), x.next_down(), x * (1.0 + 1e-12), x * (1.0 - 1e-12)]);
            all.extend([(x as f32).next_up().into(), f64::from((x as f32).next_down())]);
        }
    }
    let mut random = Random(u64::from(oracle.format.width()));
    all.extend((0..100_000).map(|_| f64::from_bits(random.next())));
    all.extend((0..100_000).map(|_| f64::from(f32::from_bits(random.next() as u32))));
    all.iter().flat_map(|&x| [x, -x]).collect()
}

fn check<T: Copy>(
    what: &str,
    from: &[T],
    got: &[u64],
    want: impl Fn(T) -> u64,
    show: impl Fn(T) -> String,
) {
    assert_eq!(from.len(), got.len());
    for (&x, &got) in from.iter().zip(got) {
        let want = want(x);
        assert_eq!(got, want, "{what}: {} became {got:#x}, not {want:#x}", show(x));
    }
}

fn to_small<T>(from: &[T], src: DLDataType, (code, bits): (u8, u8)) -> Vec<u64> {
    if bits == 16 {
        let codes = convert::<_, u16>(from, src, dtype(code, bits, 1));
        return codes.into_iter().map(u64::from).collect();
    }
    let codes = convert::<_, u8>(from, src, dtype(code, bits, 1));
    codes.into_iter().map(u64::from).collect()
}

fn floats_round_to_nearest() {
    for (code, bits) in small() {
        let oracle = Oracle::new(code, bits);
        let what = format!("({code}, {bits})");
        let from = interesting(&oracle);
        let got = to_small(&from, dtype(2, 64, 1), (code, bits));
        check(&what, &from, &got, |x| oracle.round(x), |x| format!("{x:e}"));
        let from: Vec<f32> = from.iter().map(|&x| x as f32).collect();
        let got = to_small(&from, dtype(2, 32, 1), (code, bits));
        check(&what, &from, &got, |x| oracle.round(x.into()), |x| format!("{x:e}"));
    }
}

fn integers_round_once() {
    let mut random = Random(7);
    let mut from: Vec<i64> =
        (0..100_000).map(|_| random.next() as i64 >> (random.next() & 63)).collect();
    for shift in 0..63 {
        // A midpoint of bfloat16, and one more: through binary32 it would be a tie.
        let middle = (0x101i64 << 54 >> shift.min(54)) | 1;
        from.extend([middle, -middle, (1 << shift) - 1, 1 << shift, i64::MIN, i64::MAX]);
    }
    for (code, bits) in small() {
        let oracle = Oracle::new(code, bits);
        let got = to_small(&from, dtype(0, 64, 1), (code, bits));
        // binary64 rounded to odd is equivalent to the integer here.
        let exact = |x: i64| {
            let near = x as f64;
            let lost = near as i128 - i128::from(x);
            let odd = near.to_bits() & 1 != 0;
            match lost.signum() * i128::from(x.signum()) {
                1 if !odd => f64::from_bits(near.to_bits() - 1),
                -1 if !odd => f64::from_bits(near.to_bits() + 1),
                _ => near,
            }
        };
        check("int64", &from, &got, |x| oracle.round(exact(x)), |x| x.to_string());
    }
    let got = convert::<_, u32>(&from, dtype(0, 64, 1), dtype(2, 32, 1));
    let got: Vec<u64> = got.into_iter().map(u64::from).collect();
    check("float32", &from, &got, |x| (x as f32).to_bits().into(), |x| x.to_string());
    let unsigned: Vec<u64> = from.iter().map(|&x| x as u64).collect();
    let got = convert::<_, u64>(&unsigned, dtype(1, 64, 1), dtype(2, 64, 1));
    check("float64", &unsigned, &got, |x| (x as f64).to_bits(), |x| x.to_string());
}

fn every_code_has_its_value() {
    for (code, bits) in small() {
        let codes: Vec<u16> =
            (0..=u16::MAX).map(|raw| (u32::from(raw) & ((1 << bits) - 1)) as u16).collect();
        let bytes: Vec<u8> = codes.iter().map(|&raw| raw as u8).collect();
        for count in [codes.len(), 200] {
            let (src, dst) = (dtype(code, bits, 1), dtype(2, 64, 1));
            let got: Vec<f64> = match bits {
                16 => convert(&codes[..count], src, dst),
                _ => convert(&bytes[..count], src, dst),
            };
            for (&raw, got) in codes.iter().zip(got) {
                let want = float_formats::decode(code, bits, raw.into());
                assert!(got.to_bits() == want.to_bits() || got.is_nan() && want.is_nan());
            }
        }
    }
}

fn floats_become_integers_as_in_rust() {
    let mut from = interesting(&Oracle::new(2, 16));
    for power in 0..66 {
        let x = 2f64.powi(power);
        from.extend([x, x.next_down(), x.next_up(), -x, -x.next_up(), x + 0.5, 0.5 - x]);
    }
    macro_rules! same {
        ($($int:ty: $code:expr;)*) => {$(
            let got: Vec<$int> = convert(&from, dtype(2, 64, 1), dtype($code, <$int>::BITS as u8, 1));
            let want: Vec<$int> = from.iter().map(|&x| x as $int).collect();
            assert!(got == want, stringify!($int));
            let single: Vec<_> = from.iter().map(|&x| x as f32).collect();
            let to = dtype($code, <$int>::BITS as u8, 1);
            let got: Vec<$int> = convert(&single, dtype(2, 32, 1), to);
            let want: Vec<$int> = single.iter().map(|&x| x as $int).collect();
            assert!(got == want, "binary32 to {}", stringify!($int));
        )*};
    }
    same! { i8: 0; i16: 0; i32: 0; i64: 0; u8: 1; u16: 1; u32: 1; u64: 1; }
}

#[test]
fn all_conversions_at_both_levels() {
    for level in [cpu::level(), dlpack_rs::cpu::Level::Portable] {
        assert!(cpu::set_level(level));
        floats_round_to_nearest();
        integers_round_once();
        every_code_has_its_value();
        floats_become_integers_as_in_rust();
    }
    cpu::set_level(cpu::detected());
}

/// On two threads, the source packed and transposed, so that parts begin at any bit.
#[test]
fn side_by_side() {
    cpu::set_thresholds(usize::MAX, 1);
    let (rows, columns) = (7, 1000);
    let packed: Vec<u8> = (0..rows * columns / 2).map(|i| (i * 37 % 251) as u8).collect();
    let mut out = vec![0.0f32; rows * columns];
    let shape = [columns as i64, rows as i64];
    let strides = [1, columns as i64];
    let src = tensor(packed.as_ptr(), dtype(1, 4, 1), &shape, Some(&strides), 0);
    let mut dst = tensor(out.as_mut_ptr(), dtype(2, 32, 1), &shape, None, 0);
    // SAFETY: all members are plain numbers and pointers, of which 0 is one.
    let mut options: dlrs_copy_options = unsafe { std::mem::zeroed() };
    (options.struct_size, options.threads) = (size_of::<dlrs_copy_options>() as u32, 2);
    // SAFETY: live tensors over live memory.
    assert_eq!(unsafe { dlrs_cast(&src, &mut dst, &options, null_mut()) }, 0);
    cpu::set_thresholds(16 << 20, 4 << 20);
    for (i, value) in out.iter_mut().enumerate() {
        let at = i % rows * columns + i / rows;
        assert_eq!(*value, f32::from(packed[at / 2] >> (4 * (at % 2)) & 15), "number {i}");
    }
}

/// The host may have set another rounding direction, flushing of subnormals, or traps.
#[cfg(target_arch = "x86_64")]
#[test]
fn floating_point_settings_of_the_caller_are_ignored() {
    use std::arch::asm;
    let swap = |new: u32| {
        let mut old = 0u32;
        // SAFETY: MXCSR of this thread, restored below.
        unsafe {
            asm!("stmxcsr [{}]", "ldmxcsr [{}]", in(reg) &raw mut old, in(reg) &raw const new)
        };
        old
    };
    let from = [
        1.0f64 + 1e-9,
        1e-40,
        f64::from_bits(1),
        -1.0 - 1e-9,
        f64::from_bits(0x7ff0_0000_0000_0001),
    ];
    let usual: Vec<u32> = convert(&from, dtype(2, 64, 1), dtype(2, 32, 1));
    // Round up, flush, treat as zero, trap on everything.
    let before = swap(0xc040 | 0x4000);
    let other: Vec<u32> = convert(&from, dtype(2, 64, 1), dtype(2, 32, 1));
    let after = swap(before);
    assert_eq!(usual, other);
    assert_eq!(after, 0xc040 | 0x4000, "settings and flags are as they were");
}
