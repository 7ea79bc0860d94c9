//! Values are read back from their text, and small floats decode as in ml_dtypes.
//!
//! The golden file is made by `tests/golden/make_ml_dtypes_values.py`.

use dlpack_rs::abi::{DLDataType, DLDevice};
use dlpack_rs::print::{Description, Elements, PrintOptions, write_tensor, write_values};
use dlpack_rs::{dtype, float_formats};
use std::cell::Cell;

#[path = "lib/random.rs"]
mod random;
use random::Random;

/// Values in memory, each in whole bytes, lanes one after the other.
fn print(bytes: &[u8], shape: &[i64], dtype: DLDataType, options: &PrintOptions) -> String {
    let item = usize::from(dtype.bits).div_ceil(8);
    let elements = |index: &[i64], lane: u16| {
        assert_eq!(index.len(), shape.len());
        let place = index.iter().zip(shape).fold(0, |place, (&i, &extent)| {
            assert!(0 <= i && i < extent);
            place * extent as usize + i as usize
        });
        let start = (place * usize::from(dtype.lanes) + usize::from(lane)) * item;
        let mut raw = [0; 16];
        raw[..item].copy_from_slice(&bytes[start..start + item]);
        u128::from_le_bytes(raw)
    };
    let mut text = String::new();
    write_values(&elements, shape, dtype, options, &mut text).unwrap();
    text
}

fn dtype_of(name: &str) -> DLDataType {
    dtype::parse(name.as_bytes()).expect(name)
}

fn unhex(text: &str) -> Vec<u8> {
    let digits: Vec<u32> = text.chars().filter_map(|digit| digit.to_digit(16)).collect();
    digits.chunks(2).map(|pair| (pair[0] * 16 + pair[1]) as u8).collect()
}

/// Each float dtype with its patterns: all of them up to 16 bits, else the edges of the fields and
/// some at random.
fn floats() -> Vec<(DLDataType, Vec<u64>)> {
    let golden = include_str!("golden/ml_dtypes_values.txt");
    let small = golden.lines().filter(|line| !line.starts_with('#'));
    let small = small.map(|line| line.split(' ').next().unwrap());
    let names = ["float16", "float32", "float64", "bfloat16"].into_iter().chain(small);
    names.map(dtype_of).map(|dtype| (dtype, patterns(dtype))).collect()
}

fn patterns(dtype: DLDataType) -> Vec<u64> {
    if dtype.bits <= 16 {
        return (0..1 << dtype.bits).collect();
    }
    let format = float_formats::of(dtype.code, dtype.bits).unwrap();
    let (width, sign) = (format.mantissa_bits, 1u64 << (dtype.bits - 1));
    let mut random = Random(1);
    let fractions = [0, 1, (1u64 << width) / 2 + 1, (1u64 << width) - 1];
    let edges = (0..1u64 << format.exponent_bits)
        .flat_map(|field| fractions.map(|fraction| field << width | fraction));
    edges
        .chain((0..20_000).map(|_| random.next()))
        .flat_map(|raw| [raw & (sign - 1), raw & (sign - 1) | sign])
        .collect()
}

fn print_one(dtype: DLDataType, raw: u64) -> String {
    print(&raw.to_le_bytes(), &[], dtype, &PrintOptions::DEFAULT)
}

/// The digits of a decimal number that are not zeros at its ends.
fn digits(text: &str) -> String {
    let mantissa = text.split('e').next().unwrap().replace(['-', '.'], "");
    mantissa.trim_matches('0').into()
}

#[test]
fn a_float_is_written_by_the_fewest_digits_that_read_back_as_the_same_value() {
    for (dtype, patterns) in floats() {
        for raw in patterns {
            let (text, value) =
                (print_one(dtype, raw), float_formats::decode(dtype.code, dtype.bits, raw));
            if value.is_nan() {
                assert_eq!(text, "nan");
                continue;
            }
            let (read, shortest) = match dtype.bits {
                64 => (text.parse().unwrap(), format!("{value:e}")),
                _ => (f64::from(text.parse::<f32>().unwrap()), format!("{:e}", value as f32)),
            };
            assert_eq!(read.to_bits(), value.to_bits(), "{dtype:?} {raw:#x} {text}");
            assert_eq!(digits(&text).len(), digits(&shortest).len(), "{dtype:?} {raw:#x} {text}");
            assert!(text.contains(['.', 'e', 'i']) && text.len() <= 24, "{text}");
        }
    }
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
    let floats = floats();
    let all = || -> Vec<(String, u64)> {
        let of = |dtype: DLDataType, raw| {
            let value = float_formats::decode(dtype.code, dtype.bits, raw);
            (print_one(dtype, raw), value.to_bits())
        };
        let some = floats
            .iter()
            .flat_map(|(dtype, raws)| raws.iter().step_by(7).map(|&raw| of(*dtype, raw)));
        some.collect()
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
                let differs = found.iter().zip(&usual).find(|(found, usual)| found != usual);
                assert_eq!(differs, None, "{settings:#x}");
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
    let mut random = Random(1);
    for _ in 0..200_000 {
        let bits = random.next();
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
fn values_are_nested_lists() {
    let all = PrintOptions::DEFAULT;
    let edges = PrintOptions { threshold: 3, edge_items: 1 };
    let one = PrintOptions { threshold: 0, edge_items: 0 };
    for (what, bytes, shape, name, options, wanted) in [
        ("no dimensions: no brackets", "05", &[][..], "int8", all, "5"),
        ("rows are lines", "01ff03 040506", &[2, 3], "int8", all, "[[1, -1, 3],\n [4, 5, 6]]"),
        (
            "an empty line between matrices",
            "01020304",
            &[2, 2, 1],
            "uint8",
            all,
            "[[[1],\n  [2]],\n\n [[3],\n  [4]]]",
        ),
        ("the middle is left out", "01020304", &[4], "uint8", edges, "[1, ..., 4]"),
        (
            "the middle of each dimension",
            "010203 040506 070809",
            &[3, 3],
            "uint8",
            edges,
            "[[1, ..., 3],\n ...,\n [7, ..., 9]]",
        ),
        ("two edges fit", "01020304", &[2, 2], "uint8", edges, "[[1, 2],\n [3, 4]]"),
        ("no edge counts as one", "010203", &[3], "uint8", one, "[1, ..., 3]"),
        ("packed below a byte: sign extended", "01 00 ff", &[3], "int1", all, "[-1, 0, -1]"),
        ("higher bits are ignored", "f1 12", &[2], "uint4", all, "[1, 2]"),
        ("least int64", "0000000000000080", &[], "int64", all, "-9223372036854775808"),
        ("most uint64", "ffffffffffffffff", &[], "uint64", all, "18446744073709551615"),
        ("any bit makes true", "02 00 01", &[3], "bool", all, "[True, False, True]"),
        ("float32", "cdcccc3d", &[], "float32", all, "0.1"),
        ("float64", "9a9999999999b93f", &[1], "float64", all, "[0.1]"),
        ("float16 like float32", "662e", &[], "float16", all, "0.099975586"),
        ("whole floats have a point", "00004040 0000c07f", &[2], "float32", all, "[3.0, nan]"),
        (
            "complex",
            "003c0080 00bc007e 007c00fc",
            &[3],
            "complex32",
            all,
            "[1.0-0.0j, -1.0+nanj, inf-infj]",
        ),
        (
            "complex of two float64",
            "000000000000f03f 000000000000e0bf",
            &[],
            "complex128",
            all,
            "1.0-0.5j",
        ),
        ("lanes", "01 02 03 04", &[2], "uint8x2", all, "[[1, 2],\n [3, 4]]"),
        ("lanes of one element", "01 02", &[], "uint8x2", all, "[1, 2]"),
        ("no elements", "", &[2, 0], "int8", all, "[]"),
    ] {
        assert_eq!(print(&unhex(bytes), shape, dtype_of(name), &options), wanted, "{what}");
    }
}

#[test]
fn what_has_no_value_is_written_as_its_bits_or_not_at_all() {
    let bits = "0102030405060708 090a0b0c0d0e0f10";
    let unknown = |code, bits| DLDataType { code, bits, lanes: 1 };
    let shape = "<values of this shape cannot be shown>";
    for (dtype, shape, wanted) in [
        (dtype_of("handle64"), &[2][..], "[0x807060504030201, 0x100f0e0d0c0b0a09]"),
        (unknown(200, 8), &[3], "[0x1, 0x2, 0x3]"),
        (unknown(200, 3), &[], "0x1"),
        (unknown(200, 128), &[], "0x100f0e0d0c0b0a090807060504030201"),
        (unknown(0, 24), &[2], "[0x30201, 0x60504]"),
        (unknown(200, 129), &[], "<values of this dtype cannot be shown>"),
        (unknown(200, 255), &[0], "[]"),
        (unknown(0, 8), &[-1], shape),
        (unknown(0, 8), &[0, i64::MIN], shape),
        (unknown(0, 8), &[0; 65], shape),
        (unknown(0, 8), &[2; 64], "<these are too many values to show>"),
        (unknown(0, 8), &[i64::MAX, i64::MAX, i64::MAX, 0], "[]"),
    ] {
        assert_eq!(print(&unhex(bits), shape, dtype, &PrintOptions::DEFAULT), wanted, "{dtype:?}");
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
    assert_eq!(text, "[[0],\n [1],\n [2],\n ...,\n [4],\n [5],\n [6]]");
    assert_eq!(reads.get(), 6);
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
    let values = "\n[[0.0, 0.0, 0.0],\n [0.0, 0.0, 0.0]]";
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
