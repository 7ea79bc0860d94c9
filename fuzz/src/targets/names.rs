//! Names of dtypes and devices: a formatted name parses to the same value, a parsed one formats to
//! the same text with the same numbers, any text is a valid input, and short buffers follow
//! snprintf.

use crate::{Reader, call, snprintf_rule};
use dlpack_rs::abi::{DLDataType, DLDevice};
use dlpack_rs::capi::{names::*, notation::*};
use dlpack_rs::dtype_notation::{self, Notation, Notation::*};
use dlpack_rs::{device_type, dtype};

const NO_DTYPE: DLDataType = DLDataType { code: 0xAA, bits: 0xAA, lanes: 0xAAAA };
const NOTATIONS: [Notation; 3] =
    [DLRS_NOTATION_PEP3118, DLRS_NOTATION_TYPESTR, DLRS_NOTATION_ARROW];

/// Text, partly made of words that occur in names.
fn text(reader: &mut Reader) -> Vec<u8> {
    const WORDS: [&str; 20] = [
        "x",
        ":",
        "unknown(code=",
        "unknown(type=",
        ")",
        "0",
        "1",
        "8",
        "16",
        "32",
        "64",
        "128",
        "255",
        "65535",
        "2147483648",
        "99999999999999999999",
        "-",
        "<",
        "|",
        "Z",
    ];
    let mut text = Vec::new();
    while !reader.done() && text.len() < 256 {
        match reader.below(4) {
            0 => text.extend(reader.of(&dtype::KINDS.each_ref()).stem.bytes()),
            1 => text.extend(reader.of(&device_type::KINDS.each_ref()).name.bytes()),
            2 => text.extend(reader.of(&WORDS).bytes()),
            _ => {
                let n = reader.below(8) + 1;
                text.extend(reader.bytes(n));
            }
        }
    }
    text
}

fn parse_dtype(text: &[u8], notation: i32) -> Option<DLDataType> {
    if let Some(notation) = NOTATIONS.into_iter().find(|known| *known as i32 == notation) {
        return dtype_notation::parse(text, notation).ok();
    }
    let (mut out, text, n) = (NO_DTYPE, text.as_ptr().cast(), text.len());
    // SAFETY: `n` bytes of text, and a variable for the result.
    let status = call(|error| unsafe { dlrs_dtype_parse(text, n, &mut out, error) });
    assert!(status == 0 || out == NO_DTYPE, "written on failure");
    (status == 0).then_some(out)
}

fn parse_device(text: &[u8]) -> Option<DLDevice> {
    device_type::parse(text).ok()
}

/// Notation 0 is the library's, which has a name for every dtype.
fn check_dtype(dtype: DLDataType, notation: i32, capacity: usize) {
    // SAFETY: the rule passes a buffer of that capacity.
    let name = snprintf_rule(capacity, |buffer, capacity, nbytes, error| unsafe {
        match notation {
            0 => dlrs_dtype_format(dtype, buffer, capacity, nbytes, error),
            _ => dlrs_dtype_format_as(dtype, notation, buffer, capacity, nbytes, error),
        }
    });
    assert!(name.is_some() || notation != 0, "{dtype:?}");
    if let Some(name) = name {
        assert_eq!(parse_dtype(name.as_bytes(), notation), Some(dtype), "{name}");
    }
}

fn check_device(device: DLDevice, capacity: usize) {
    // SAFETY: as above.
    let name = snprintf_rule(capacity, |buffer, capacity, nbytes, error| unsafe {
        dlrs_device_format(device, buffer, capacity, nbytes, error)
    });
    let name = name.expect("every device has a name");
    // An invalid ordinal is formatted, and rejected by the parser.
    let exists = device_type::kind(device.device_type)
        .is_none_or(|kind| device.device_id == 0 || device.device_id > 0 && !kind.id_must_be_zero);
    assert_eq!(parse_device(name.as_bytes()), exists.then_some(device), "{name}");
}

/// A text that parses is its value's name, or that of an unknown value with the same numbers; the
/// last of these, `tail`, may be left out if it is the usual one.
fn check_read(text: &[u8], name: &str, unknown: String, (tail, usual): (String, bool)) {
    let heads = [name.strip_suffix(&tail).unwrap_or(name), &unknown];
    let text = str::from_utf8(text).expect("only ASCII is read");
    let said =
        |head: &str| text.strip_prefix(head).is_some_and(|t| t == tail || usual && t.is_empty());
    assert!(heads.into_iter().any(said), "{text}: {heads:?}, {tail}");
}

/// As [`check_read`], of a dtype; what is no notation is read as the library's.
fn check_dtype_read(text: &[u8], dtype: DLDataType, notation: i32) {
    let DLDataType { code, bits, lanes } = dtype;
    if !NOTATIONS.into_iter().any(|known| known as i32 == notation) {
        let (unknown, tail) = (format!("unknown(code={code}){bits}"), format!("x{lanes}"));
        let name = dtype::Name(dtype).to_string();
        return check_read(text, &name, unknown, (tail, lanes == 1));
    }
    // A count of lanes comes first, but for the order of bytes.
    let count = text.iter().skip_while(|byte| b"@=<>!|".contains(byte));
    let count: Vec<u8> = count.take_while(|byte| byte.is_ascii_digit()).copied().collect();
    let said = if count.is_empty() { "1".into() } else { String::from_utf8_lossy(&count) };
    assert_eq!(said, lanes.to_string(), "{:?}", String::from_utf8_lossy(text));
}

/// As [`check_read`], of a device.
fn check_device_read(text: &[u8], device: DLDevice) {
    let DLDevice { device_type, device_id } = device;
    let (unknown, tail) = (format!("unknown(type={device_type})"), format!(":{device_id}"));
    let name = device_type::Name(device).to_string();
    check_read(text, &name, unknown, (tail, device_id == 0));
}

/// Builds the case of an input, and checks it.
pub fn run(input: &[u8]) {
    let mut reader = Reader::new(input);
    let (kind, capacity) = (reader.below(8), reader.below(48));
    let notation = if kind < 4 { 0 } else { reader.of(&[1, 2, 3, 1, 2, 3, 4, -1]) };
    match kind {
        0 | 4 => check_dtype(reader.dtype(), notation, capacity),
        1 | 5 => check_device(reader.device(), capacity),
        2 | 6 => {
            let text = text(&mut reader);
            if let Some(dtype) = parse_dtype(&text, notation) {
                check_dtype_read(&text, dtype, notation);
                check_dtype(dtype, notation, capacity);
            }
        }
        _ => {
            let text = text(&mut reader);
            if let Some(device) = parse_device(&text) {
                check_device_read(&text, device);
                check_device(device, capacity);
            }
        }
    }
}
