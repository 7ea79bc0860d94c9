//! Names of dtypes and devices, and dtypes in other notations: the documented results that no C test
//! has, and that names of devices parse.

use dlpack_rs::abi::{DLDataType, DLDevice};
use dlpack_rs::dtype_notation::{self, Notation::*};
use dlpack_rs::error::{Error, Reader, Status, Status::*};
use dlpack_rs::{device_type, dtype};

const READER: Reader = Reader { python: false, dtype: dtype::format_word };

fn dtype_of(code: u8, bits: u8, lanes: u16) -> DLDataType {
    DLDataType { code, bits, lanes }
}

fn name(dtype: DLDataType) -> String {
    dtype::Name(dtype).to_string()
}

fn device_name(device_type: i32, device_id: i32) -> String {
    device_type::Name(DLDevice { device_type, device_id }).to_string()
}

fn answer<T>(result: Result<T, Error>) -> (Status, Option<i64>) {
    match result {
        Ok(_) => (DLRS_OK, None),
        Err(error) => (error.status(), Some(error.found())),
    }
}

/// Bits that a code lacks: the remedy names those that it has, for bytes too.
#[test]
fn the_remedy_for_bits_names_those_of_the_code() {
    for (code, kind) in dtype::KINDS.iter().enumerate() {
        for bits in 1..=255 {
            let Err(error) = dtype::legal(dtype_of(code as u8, bits, 1)) else { continue };
            let mut message = String::new();
            error.write(READER, "f", None, &mut message).unwrap();
            let (_, remedy) = message.rsplit_once("]. ").unwrap();
            let digits = remedy.split(|c: char| !c.is_ascii_digit());
            let named: Vec<u8> = digits.filter_map(|number| number.parse().ok()).collect();
            assert_eq!(named, kind.bits, "{message}");
            let are_bytes = kind.bits.iter().any(|&legal| u32::from(legal) == u32::from(bits) * 8);
            assert_eq!(remedy.contains("not bytes"), are_bytes, "{message}");
        }
    }
}

#[test]
fn dtypes_have_the_names_of_numpy() {
    for (code, bits, lanes, text) in [
        (0, 8, 1, "int8"),
        (1, 4, 1, "uint4"),
        (2, 16, 1, "float16"),
        (2, 32, 4, "float32x4"),
        (3, 64, 1, "handle64"),
        (4, 16, 1, "bfloat16"),
        (5, 64, 1, "complex64"),
        (6, 8, 2, "boolx2"),
        (10, 8, 1, "float8_e4m3fn"),
        (14, 8, 1, "float8_e8m0fnu"),
        (15, 6, 1, "float6_e2m3fn"),
        (17, 4, 2, "float4_e2m1fnx2"),
        (18, 32, 1, "bcomplex32"),
        (18, 64, 1, "unknown(code=18)64"),
        (0, 24, 1, "unknown(code=0)24"),
        (2, 32, 0, "unknown(code=2)32x0"),
        (200, 7, 3, "unknown(code=200)7x3"),
    ] {
        assert_eq!(name(dtype_of(code, bits, lanes)), text);
    }
}

/// Beside those of c_tests/catalogue_p.c.
#[test]
fn dtype_texts_have_their_documented_answers() {
    let huge = "int".to_owned() + &"9".repeat(1 << 20);
    for (text, status, value) in [
        ("float 32", DLRS_PARSE, 5),
        ("float8", DLRS_DTYPE_BITS, 8),
        ("int24", DLRS_DTYPE_BITS, 24),
        ("bfloat32", DLRS_DTYPE_BITS, 32),
        (&huge, DLRS_DTYPE_BITS, i64::MAX),
        ("uint8x18446744073709551617", DLRS_DTYPE_LANES, i64::MAX),
        ("float32x0", DLRS_DTYPE_LANES, 0),
        ("float32x-4", DLRS_PARSE, 8),
        ("int256zzz", DLRS_PARSE, 6),
        ("bool_", DLRS_PARSE, 4),
        ("float8_e9m9", DLRS_PARSE, 6),
        ("unknown(code=)8", DLRS_PARSE, 13),
        ("unknown(code=200", DLRS_PARSE, 16),
        ("unknown(code=200)", DLRS_PARSE, 17),
        ("float\u{663}\u{662}", DLRS_PARSE, 5),
        ("float32\u{200f}", DLRS_PARSE, 7),
        // There are no aliases, and one text for each dtype.
        ("float32x4x2", DLRS_PARSE, 9),
        ("float32xx4", DLRS_PARSE, 8),
        ("float32,4", DLRS_PARSE, 7),
        ("bool8", DLRS_PARSE, 4),
        ("float8_e4m3FN", DLRS_PARSE, 11),
        ("float8_e4m3fn8", DLRS_PARSE, 13),
        ("float4_e2m1fn_x2", DLRS_PARSE, 13),
        ("e4m3_float8", DLRS_PARSE, 0),
        ("custom[a]8", DLRS_PARSE, 0),
        ("handle", DLRS_PARSE, 6),
    ] {
        let found = answer(dtype::parse(text.as_bytes()));
        assert_eq!(found, (status, Some(value)), "{text:.40}");
    }
}

#[test]
fn messages_show_a_little_of_the_text_and_no_control_characters() {
    let say = |text: &[u8]| {
        let mut message = String::new();
        dtype::parse(text).unwrap_err().write(READER, "f", Some(text), &mut message).unwrap();
        message
    };
    let text = say(&[b"float32".to_vec(), vec![0xff; 1 << 20]].concat());
    assert!(text.contains(r#""float32\xff\xff"#) && text.len() < 300, "{text}");
    let text = say(&[b"int".to_vec(), vec![b'1'; 1000], b"\n\"".to_vec()].concat());
    assert!(text.contains(r#""...1111111111111111\x0a\x22" (position 1003)"#), "{text}");
    assert!(say(b"int24").contains("(value 24, limit 64)"));
}

#[test]
fn sizes_of_elements() {
    let fp4 = dtype_of(17, 4, 1);
    assert!(dtype::is_subbyte(fp4) && !dtype::is_subbyte(dtype_of(17, 4, 2)));
    assert_eq!(dtype::padded_bytes(fp4), 1);
    let most = dtype_of(0, 255, 65535);
    assert_eq!(dtype::item_bits(most), 255 * 65535);
    assert_eq!(answer(dtype::defined(dtype_of(0, 0, 1))), (DLRS_DTYPE_BITS, Some(0)));
    assert_eq!(answer(dtype::defined(dtype_of(99, 1, 0))), (DLRS_DTYPE_LANES, Some(0)));
    assert_eq!(answer(dtype::defined(dtype_of(99, 1, 1))), (DLRS_OK, None));
}

#[test]
fn every_device_is_read_back() {
    for code in -3..300 {
        for id in [0, 1, i32::MAX] {
            let device = DLDevice { device_type: code, device_id: id };
            let text = device_name(code, id);
            let back = device_type::parse(text.as_bytes());
            if device_type::known(code) && device_type::check(device).is_err() {
                assert_eq!(answer(back), (DLRS_DEVICE_ID, Some(id.into())), "{text}");
            } else {
                assert_eq!(back.ok(), Some(device), "{text}");
            }
        }
    }
    for (code, id) in [(i32::MIN, i32::MIN), (i32::MAX, -1), (0, 0), (-1, 7)] {
        let text = device_name(code, id);
        let device = DLDevice { device_type: code, device_id: id };
        assert_eq!(device_type::parse(text.as_bytes()).ok(), Some(device), "{text}");
    }
}

#[test]
fn devices_have_their_names() {
    for (code, id, text) in [
        (1, 0, "cpu"),
        (1, 3, "cpu:3"),
        (2, 0, "cuda:0"),
        (2, -1, "cuda:-1"),
        (3, 0, "cuda_host"),
        (13, 0, "cuda_managed"),
        (18, 5, "trn:5"),
        (19, 5, "tpu:5"),
        (20, 0, "tpu_host"),
        (21, 1, "ascend:1"),
        (99, 0, "unknown(type=99):0"),
    ] {
        assert_eq!(device_name(code, id), text);
    }
}

#[test]
fn device_texts_have_their_documented_answers() {
    for (text, code, id) in [
        ("cuda", 2, 0),
        ("cuda:0", 2, 0),
        ("cpu:0", 1, 0),
        ("rocm", 10, 0),
        ("ext_dev:3", 12, 3),
        ("cuda:2147483647", 2, i32::MAX),
        ("unknown(type=99):-5", 99, -5),
        ("unknown(type=99)", 99, 0),
    ] {
        let device = DLDevice { device_type: code, device_id: id };
        assert_eq!(device_type::parse(text.as_bytes()).ok(), Some(device), "{text}");
    }
    for (text, status, value) in [
        ("cuda:", DLRS_PARSE, 5),
        ("cuda:-1", DLRS_DEVICE_ID, -1),
        ("cuda:-0", DLRS_PARSE, 6),
        ("cuda:-", DLRS_PARSE, 6),
        ("cuda:+1", DLRS_PARSE, 5),
        ("cuda:01", DLRS_PARSE, 6),
        ("cuda:0x1", DLRS_PARSE, 6),
        ("cuda:1:2", DLRS_PARSE, 6),
        ("cuda:1 ", DLRS_PARSE, 6),
        ("cuda:2147483648", DLRS_DEVICE_ID, 2147483648),
        ("cuda:99999999999999999999", DLRS_DEVICE_ID, i64::MAX),
        ("cpu:1", DLRS_DEVICE_ID, 1),
        ("cuda_host:-1", DLRS_DEVICE_ID, -1),
        ("cuda_hos", DLRS_PARSE, 4),
        ("gpu:0", DLRS_PARSE, 0),
        ("hip:0", DLRS_PARSE, 0),
        ("CUDA", DLRS_PARSE, 0),
        ("", DLRS_PARSE, 0),
        (" cpu", DLRS_PARSE, 0),
        ("\0", DLRS_PARSE, 0),
        ("unknown(type=2147483648):0", DLRS_DEVICE_TYPE, 2147483648),
    ] {
        assert_eq!(answer(device_type::parse(text.as_bytes())), (status, Some(value)), "{text}");
    }
}

#[test]
fn devices_are_checked() {
    let check =
        |device_type, device_id| answer(device_type::check(DLDevice { device_type, device_id }));
    for kind in &device_type::KINDS {
        assert_eq!(check(kind.code, 0).0, DLRS_OK);
        assert_eq!(check(kind.code, -1), (DLRS_DEVICE_ID, Some(-1)));
        assert_eq!(check(kind.code, 1).0 == DLRS_OK, !kind.id_must_be_zero);
        // Host-accessible memory has ordinal 0 in dlpack.h, and another one in CuPy's managed
        // memory.
        let strictly =
            device_type::check_strictly(DLDevice { device_type: kind.code, device_id: 1 });
        assert_eq!(strictly.is_ok(), !kind.host_reachable);
        assert!(kind.host_reachable || !kind.id_must_be_zero);
    }
    for code in [i32::MIN, -1, 0, 5, 6, 31, 32, i32::MAX] {
        assert_eq!(check(code, 0), (DLRS_DEVICE_TYPE, Some(code.into())));
    }
    let handles = [4, 7, 8, 15];
    assert!((0..99).all(|code| device_type::opaque_handle(code) == handles.contains(&code)));
}

/// Texts are for little-endian machines; this one is for the current machine.
fn here(text: &str) -> String {
    match (cfg!(target_endian = "big"), text.get(..1)) {
        (true, Some("<")) => text.replacen('<', ">", 1),
        (true, Some(">" | "!")) => format!("<{}", &text[1..]),
        _ => text.to_owned(),
    }
}

#[test]
fn dtypes_are_written_in_other_notations_and_read_back() {
    // Code and bits; the text in each notation, "" for none.
    let rows = [
        (0, 8, ["b", "|i1", "c"]),
        (0, 16, ["h", "<i2", "s"]),
        (0, 32, ["i", "<i4", "i"]),
        (0, 64, ["q", "<i8", "l"]),
        (1, 8, ["B", "|u1", "C"]),
        (1, 16, ["H", "<u2", "S"]),
        (1, 32, ["I", "<u4", "I"]),
        (1, 64, ["Q", "<u8", "L"]),
        (2, 16, ["e", "<f2", "e"]),
        (2, 32, ["f", "<f4", "f"]),
        (2, 64, ["d", "<f8", "g"]),
        (5, 64, ["Zf", "<c8", ""]),
        (5, 128, ["Zd", "<c16", ""]),
        (6, 8, ["?", "|b1", ""]),
        (1, 1, ["", "", "b"]),
        (4, 16, ["", "", ""]),
    ];
    let notations = [DLRS_NOTATION_PEP3118, DLRS_NOTATION_TYPESTR, DLRS_NOTATION_ARROW];
    for (code, bits, texts) in rows {
        for (notation, text) in notations.into_iter().zip(texts) {
            let (text, dtype) = (here(text), dtype_of(code, bits, 1));
            let mut written = String::new();
            if let Ok(found) = dtype_notation::text(dtype, notation) {
                found.write(&mut written).unwrap();
                assert_eq!(dtype_notation::parse(text.as_bytes(), notation).ok(), Some(dtype));
            }
            assert_eq!(written, text, "{code} {bits}");
        }
    }
}

#[test]
fn texts_in_other_notations_have_their_documented_answers() {
    let (long, size) = (8 * size_of::<std::ffi::c_long>() as u8, usize::BITS as u8);
    let pep3118 = [
        ("4f", (2, 32, 4)),
        ("65535B", (1, 8, 65535)),
        ("1f", (2, 32, 1)),
        ("@f", (2, 32, 1)),
        ("=f", (2, 32, 1)),
        ("<f", (2, 32, 1)),
        ("<4f", (2, 32, 4)),
        ("c", (1, 8, 1)),
        ("l", (0, long, 1)),
        ("@L", (1, long, 1)),
        ("<l", (0, 32, 1)),
        ("=L", (1, 32, 1)),
        ("n", (0, size, 1)),
        ("N", (1, size, 1)),
        ("P", (3, size, 1)),
        (">b", (0, 8, 1)), // a byte has no order
        ("F", (5, 64, 1)),
        ("<D", (5, 128, 1)),
    ];
    let typestr = [(">u1", (1, 8, 1)), ("=i2", (0, 16, 1))];
    let read = |text: &str, notation| dtype_notation::parse(here(text).as_bytes(), notation);
    for (texts, notation) in
        [(&pep3118[..], DLRS_NOTATION_PEP3118), (&typestr, DLRS_NOTATION_TYPESTR)]
    {
        for &(text, (code, bits, lanes)) in texts {
            assert_eq!(read(text, notation).ok(), Some(dtype_of(code, bits, lanes)), "{text}");
        }
    }
    for (text, notation, status) in [
        (">f", DLRS_NOTATION_PEP3118, DLRS_UNSUPPORTED),
        ("!d", DLRS_NOTATION_PEP3118, DLRS_UNSUPPORTED),
        (">f4", DLRS_NOTATION_TYPESTR, DLRS_UNSUPPORTED),
        ("0f", DLRS_NOTATION_PEP3118, DLRS_DTYPE_LANES),
        ("65536f", DLRS_NOTATION_PEP3118, DLRS_DTYPE_LANES),
    ] {
        assert_eq!(answer(read(text, notation)).0, status, "{text}");
    }
    let none = [
        (
            DLRS_NOTATION_PEP3118,
            ",<,@,g,Zg,Z,O,s,4s,x,w,u,T{f:a:},(2;3)f,ff,f , f,@@f,<>f,<n,<P,04f,p",
        ),
        (DLRS_NOTATION_TYPESTR, ",f4,|f4,|u2,<V2,<M8,<U4,|S1,|O8,<f,<f3,<f44,<i16,<t1,< f4,<4f4"),
        (DLRS_NOTATION_ARROW, ",n,u,z,w:4,d:19;10,tdD,+l,ee,<f,4f"),
    ];
    for (notation, texts) in none {
        for text in texts.split(',').map(|text| text.replace(';', ",")) {
            assert_eq!(answer(read(&text, notation)).0, DLRS_PARSE, "{text}");
        }
    }
}
