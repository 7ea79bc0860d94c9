//! Values print byte for byte as NumPy prints them, and small floats decode as in ml_dtypes.
//!
//! The golden files are made by `tests/golden/make_numpy_print.py`, which documents their format.
//! `DLRS_GOLDEN` names another file of cases to check instead.

use dlpack_rs::abi::{DLDataType, DLDevice};
use dlpack_rs::print::{Description, Elements, PrintOptions, write_tensor, write_values};
use dlpack_rs::{dtype, float_formats};
use std::cell::Cell;

/// Elements in memory, each in whole bytes, lanes one after the other; short memory repeats.
struct Bytes<'a> {
    bytes: &'a [u8],
    shape: &'a [i64],
    lanes: usize,
    item: usize,
}

impl Elements for Bytes<'_> {
    fn bits(&self, index: &[i64], lane: u16) -> u128 {
        assert_eq!(index.len(), self.shape.len());
        let mut place = 0;
        for (&i, &extent) in index.iter().zip(self.shape) {
            assert!(0 <= i && i < extent);
            place = place * extent as usize + i as usize;
        }
        let start = (place * self.lanes + usize::from(lane)) * self.item % self.bytes.len();
        let mut raw = [0; 16];
        raw[..self.item].copy_from_slice(&self.bytes[start..start + self.item]);
        u128::from_le_bytes(raw)
    }
}

fn dtype_of(name: &str) -> DLDataType {
    dtype::parse(name.as_bytes()).expect(name)
}

fn print(bytes: &[u8], shape: &[i64], name: &str, options: &PrintOptions) -> String {
    let dtype = dtype_of(name);
    let item = usize::from(dtype.bits).div_ceil(8);
    let mut text = String::new();
    let elements = Bytes { bytes, shape, lanes: dtype.lanes.into(), item };
    write_values(&elements, shape, dtype, options, &mut text).unwrap();
    text
}

fn unhex(text: &str) -> Vec<u8> {
    let digits: Vec<u32> = text.chars().filter_map(|digit| digit.to_digit(16)).collect();
    digits.chunks(2).map(|pair| (pair[0] * 16 + pair[1]) as u8).collect()
}

fn numbers<T: std::str::FromStr>(text: &str) -> Vec<T> {
    text.split(',').filter_map(|number| number.parse().ok()).collect()
}

/// A case of the golden file, and NumPy's text for it.
struct Case {
    /// As it is in the file.
    line: String,
    bytes: Vec<u8>,
    shape: Vec<i64>,
    dtype: String,
    options: PrintOptions,
    wanted: String,
}

impl Case {
    fn print(&self) -> String {
        print(&self.bytes, &self.shape, &self.dtype, &self.options)
    }
}

fn cases() -> Vec<Case> {
    let file = std::env::var("DLRS_GOLDEN");
    let here = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/numpy_print.txt");
    let golden = std::fs::read_to_string(file.as_deref().unwrap_or(here)).unwrap();
    let mut lines = golden.lines().filter(|line| !line.starts_with('#')).peekable();
    let mut cases = Vec::new();
    while let Some(line) = lines.next() {
        let [dtype, shape, options, hex] = line.split(' ').collect::<Vec<_>>()[..] else {
            panic!("{line}");
        };
        let mut wanted = Vec::new();
        while let Some(line) = lines.next_if(|line| line.starts_with('|')) {
            wanted.push(&line[1..]);
        }
        let options: Vec<u32> = numbers(options);
        cases.push(Case {
            line: line.into(),
            bytes: unhex(hex),
            shape: numbers(shape),
            dtype: dtype.into(),
            options: PrintOptions {
                threshold: options[0].into(),
                edge_items: options[1],
                line_width: options[2],
                precision: options[3],
            },
            wanted: wanted.join("\n"),
        });
    }
    assert!(cases.len() >= 300);
    cases
}

#[test]
fn values_print_as_numpy_prints_them() {
    let cases = cases();
    let mut wrong = 0;
    for case in &cases {
        let found = case.print();
        if found != case.wanted {
            wrong += 1;
            if wrong <= 5 {
                println!("{:.300}\nfound\n{found}\nwanted\n{}\n", case.line, case.wanted);
            }
        }
    }
    assert_eq!(wrong, 0, "of {}", cases.len());
}

/// The bits of every float format at the edges of its fields: subnormal, normal, largest, special.
fn edges() -> Vec<(String, Vec<u64>)> {
    let names = ["float16", "float32", "float64", "bfloat16"].map(String::from);
    let golden = include_str!("golden/ml_dtypes_values.txt");
    let small = golden.lines().filter(|line| !line.starts_with('#'));
    let small = small.map(|line| line.split(' ').next().unwrap().to_owned());
    let edges = |name: String| {
        let dtype = dtype_of(&name);
        let format = float_formats::of(dtype.code, dtype.bits).unwrap();
        let (fraction, field) = (format.mantissa_bits, format.exponent_bits);
        let last = (1u64 << field) - 1;
        // With 1, 1000 and 0.0001, around which the notation changes.
        let middle = format.bias as u64;
        let mut fields = [0, 1, middle - 1, middle, last - 1, last].to_vec();
        if field > 4 {
            fields.extend([middle + 9, middle + 10, middle - 14, middle - 13]);
        }
        let fractions = [0, 1, (1u64 << fraction) / 2 + 1, (1u64 << fraction) - 1];
        let mut found: Vec<u64> = fields
            .iter()
            .flat_map(|field| fractions.map(|part| field << fraction | part & mask(fraction)))
            .flat_map(|raw| [raw, raw | 1 << (dtype.bits - 1)])
            .collect();
        found.sort();
        found.dedup();
        (name, found)
    };
    names.into_iter().chain(small).map(edges).collect()
}

fn mask(bits: u8) -> u64 {
    (1 << bits) - 1
}

/// The host may have set another rounding direction, flushing of subnormals, or traps: texts and
/// values are those of the default settings, bit by bit.
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
    const SUBNORMAL: [u32; 4] = [0, 0x8000, 0x40, 0x8040];
    const TRAPS: [u32; 2] = [0x1f80, 0];
    let (cases, edges) = (cases(), edges());
    let options = PrintOptions::DEFAULT;
    let all = || {
        let mut texts: Vec<String> = cases.iter().map(Case::print).collect();
        let mut values = Vec::new();
        for (name, raws) in &edges {
            let dtype = dtype_of(name);
            for (i, raw) in raws.iter().enumerate() {
                values.push(float_formats::decode(dtype.code, dtype.bits, *raw).to_bits());
                let item = usize::from(dtype.bits).div_ceil(8);
                let next = raws[(i * 7 + 1) % raws.len()];
                let both = [&raw.to_le_bytes()[..item], &next.to_le_bytes()[..item]].concat();
                texts.push(print(&both, &[], name, &options));
                texts.push(print(&both, &[2], name, &options));
            }
        }
        (texts, values)
    };
    let usual = all();
    for rounding in 0..4 {
        for subnormal in SUBNORMAL {
            for traps in TRAPS {
                let settings = rounding << 13 | subnormal | traps;
                let before = swap(settings);
                let found = all();
                let after = swap(before);
                assert_eq!(after, settings, "not even a flag is set");
                let differs = found.0.iter().zip(&usual.0).find(|(found, usual)| found != usual);
                assert_eq!(differs, None, "{settings:#x}");
                assert_eq!(found.1, usual.1, "{settings:#x}");
            }
        }
    }
}

#[test]
fn small_floats_decode_as_in_ml_dtypes() {
    let golden = include_str!("golden/ml_dtypes_values.txt");
    let mut formats = 0;
    for line in golden.lines().filter(|line| !line.starts_with('#')) {
        let mut words = line.split(' ');
        let dtype = dtype_of(words.next().unwrap());
        formats += 1;
        assert_eq!(words.clone().count(), 1 << dtype.bits);
        for (raw, word) in words.enumerate() {
            let found = float_formats::decode(dtype.code, dtype.bits, raw as u64);
            match u32::from_str_radix(word, 16) {
                Ok(wanted) => assert_eq!((found as f32).to_bits(), wanted, "{dtype:?} {raw}"),
                Err(_) => assert!(found.is_nan(), "{dtype:?} {raw}"),
            }
        }
    }
    assert_eq!(formats, 11);
}

#[test]
fn large_floats_decode_as_in_rust() {
    let mut state = 1u64;
    for _ in 0..200_000 {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        let bits = state ^ state >> 29;
        let double = float_formats::decode(2, 64, bits);
        let single = float_formats::decode(2, 32, bits);
        let brain = float_formats::decode(4, 16, bits);
        assert!(double.is_nan() || double.to_bits() == bits);
        assert!(single.is_nan() || single == f64::from(f32::from_bits(bits as u32)));
        assert!(brain.is_nan() || brain == f64::from(f32::from_bits((bits as u32) << 16)));
    }
    for bits in [0, 1, 1 << 52, (1 << 52) - 1, f64::MAX.to_bits(), 1 << 63] {
        assert_eq!(float_formats::decode(2, 64, bits).to_bits(), bits);
    }
    for (bits, value) in [(1, 2f64.powi(-24)), (0x7bff, 65504.0), (0x8000, -0.0)] {
        assert_eq!(float_formats::decode(2, 16, bits).to_bits(), f64::to_bits(value));
    }
    assert_eq!(float_formats::decode(2, 16, 0xfc00), f64::NEG_INFINITY);
    assert!(float_formats::decode(2, 8, 0).is_nan() && float_formats::decode(0, 8, 0).is_nan());
}

#[test]
fn values_that_numpy_lacks_are_printed() {
    let default = PrintOptions::DEFAULT;
    for (bytes, shape, name, wanted) in [
        ("ff00000000000000 1000000000000000", &[2][..], "handle64", "[0xff 0x10]"),
        ("ff00000000000000", &[], "handle64", "0xff"),
        ("01 00 01", &[3], "int1", "[-1  0 -1]"),
        ("01 00", &[2], "uint1", "[1 0]"),
        ("02 00 01 ff", &[4], "bool", "[ True False  True  True]"),
        ("003c0040 00bc007c", &[2], "complex32", "[ 1. +2.j -1.+infj]"),
        ("01 02 03 04", &[2], "uint8x2", "[[1 2]\n [3 4]]"),
        ("01 02", &[], "uint8x2", "[1 2]"),
        ("0000803f 00000040", &[1], "float32x2", "[[1. 2.]]"),
        ("7e", &[], "float8_e4m3fn", "448.0"),
        ("00", &[1], "unknown(code=200)8", "<values of this dtype cannot be shown>"),
        ("00", &[1], "unknown(code=0)24", "<values of this dtype cannot be shown>"),
        ("00", &[0], "unknown(code=200)8", "[]"),
        ("00", &[-1], "int8", "<values of this shape cannot be shown>"),
        ("00", &[0, i64::MIN], "int8", "<values of this shape cannot be shown>"),
        ("00", &[0; 65], "int8", "<values of this shape cannot be shown>"),
        ("00", &[2; 64], "int8", "<these are too many values to show>"),
        ("00", &[i64::MAX, i64::MAX, i64::MAX, 0], "int8", "[]"),
    ] {
        assert_eq!(print(&unhex(bytes), shape, name, &default), wanted, "{name}");
    }
}

#[test]
fn a_huge_shape_reads_only_what_is_shown() {
    let reads = Cell::new(0);
    let elements = |index: &[i64], _: u16| {
        reads.set(reads.get() + 1);
        assert!(index[0] < 3 || index[0] >= i64::MAX - 3);
        (index[0] as u64 & 7).into()
    };
    let mut text = String::new();
    let dtype = dtype_of("uint8");
    write_values(&elements, &[i64::MAX, 1], dtype, &PrintOptions::DEFAULT, &mut text).unwrap();
    assert_eq!(text, "[[0]\n [1]\n [2]\n ...\n [4]\n [5]\n [6]]");
    assert_eq!(reads.get(), 12);
}

fn next(state: &Cell<u64>) -> u64 {
    state.set(state.get().wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407));
    state.get() ^ state.get() >> 31
}

/// Every read returns another value, as with a concurrent writer; options are random too.
#[test]
fn printing_survives_concurrent_writes() {
    let state = Cell::new(1);
    for round in 0..4000 {
        let code = (next(&state) % 18) as usize;
        let bits = dtype::KINDS[code].bits;
        let bits = bits[next(&state) as usize % bits.len()];
        let lanes = 1 + (next(&state) % 3) as u16;
        let dtype = DLDataType { code: code as u8, bits, lanes };
        let ndim = next(&state) % 4;
        let shape: Vec<i64> = (0..ndim).map(|_| (next(&state) % 5) as i64).collect();
        // Small at first, then anything: the measured width is too small for the rest.
        let reads = Cell::new(0);
        let elements = |_: &[i64], _: u16| {
            reads.set(reads.get() + 1);
            let calm = reads.get() < round % 300;
            let low = if calm { 0x3ff8_0000_3f80_3c00 } else { next(&state) };
            u128::from(low) << 64 | u128::from(if calm { low } else { next(&state) })
        };
        let pick = |choices: [u32; 4]| choices[next(&state) as usize % 4];
        let options = PrintOptions {
            threshold: pick([0, 10, 1000, u32::MAX]).into(),
            edge_items: pick([0, 1, 3, u32::MAX]),
            line_width: pick([0, 10, 75, u32::MAX]),
            precision: pick([0, 8, 1000, u32::MAX]),
        };
        let mut text = String::new();
        assert!(write_values(&elements, &shape, dtype, &options, &mut text).is_ok(), "{dtype:?}");
        assert!(text.is_ascii() && !text.is_empty());
    }
}

#[test]
fn tensors_are_described() {
    let device = |device_type, device_id| DLDevice { device_type, device_id };
    let dtype = dtype_of("float32");
    let mut tensor = Description {
        shape: &[2, 3],
        strides: Some(&[3, 1]),
        dtype,
        device: device(1, 0),
        byte_offset: 0,
        flags: Some(3),
    };
    let describe = |tensor: &Description, elements: Option<&dyn Elements>| {
        let mut text = String::new();
        write_tensor(tensor, elements, &PrintOptions::DEFAULT, &mut text).unwrap();
        text
    };
    let line = "Tensor(shape=(2, 3), dtype=float32, device=cpu, strides=(3, 1), byte_offset=0, \
                flags=READ_ONLY|IS_COPIED)";
    assert_eq!(describe(&tensor, None), line);
    let zero = |_: &[i64], _: u16| 0;
    let values = "\n[[0. 0. 0.]\n [0. 0. 0.]]";
    assert_eq!(describe(&tensor, Some(&zero)), line.to_owned() + values);
    tensor = Description { shape: &[7], strides: None, flags: None, byte_offset: 64, ..tensor };
    assert_eq!(
        describe(&tensor, None),
        "Tensor(shape=(7,), dtype=float32, device=cpu, strides=NULL, byte_offset=64)"
    );
    tensor = Description { shape: &[], strides: Some(&[]), flags: Some(0), ..tensor };
    assert!(describe(&tensor, None).ends_with("strides=(), byte_offset=64, flags=0)"));
    tensor.flags = Some(4 | 1 << 40);
    assert!(describe(&tensor, None).ends_with("flags=IS_SUBBYTE_TYPE_PADDED|0x10000000000)"));
    tensor = Description { shape: &[i64::MIN; 65], device: device(2, -1), ..tensor };
    let text = describe(&tensor, Some(&zero));
    assert!(text.contains("-9223372036854775808, ...), dtype=float32, device=cuda:-1"), "{text}");
    assert!(text.ends_with("\n<values of this shape cannot be shown>"));
}
