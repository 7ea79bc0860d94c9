//! `DLDevice`: the device types, who can access their memory, and their names.
//!
//! # Names
//!
//! `kind (":" ordinal)?`, without an ordinal it is 0: `cpu`, `cuda`, `cuda:1`, `rocm_host`.
//! [`format`] leaves the ordinal out only for the kinds that have none, so `cuda` is written
//! `cuda:0`. A kind that is not known is written `unknown(type=99):0`.
//!
//! Case-sensitive, ASCII, no white space, numbers without plus sign or leading zero, no hex. First
//! the whole text must fit the grammar (`DLRS_PARSE`, `value` is the byte position), then the
//! ordinal must be one that [`check`] takes. `unknown(type=T):I` is taken for every T and I of
//! 32 bits. tests/names.rs has the results for unusual texts.
#![forbid(unsafe_code)]

use crate::abi::{DLDevice, DLDeviceType::*, DeviceCode};
use crate::error::{Error, Field, Result, Status};
use crate::integer_text::signed;
use crate::scan::Scan;
use core::fmt::{self, Write};

/// The CPU.
pub const CPU: DLDevice = DLDevice { device_type: kDLCPU as DeviceCode, device_id: 0 };

/// Device type of `dlpack.h` newer than v1.3: memory of a Google TPU.
pub const DLRS_CODE_TPU: DeviceCode = 19;
/// Device type of `dlpack.h` newer than v1.3: host memory, pinned for a Google TPU.
pub const DLRS_CODE_TPU_HOST: DeviceCode = 20;
/// Device type of `dlpack.h` newer than v1.3: memory of a Huawei Ascend NPU.
pub const DLRS_CODE_ASCEND: DeviceCode = 21;

/// One kind of device: all that the library knows of it.
pub struct Kind {
    /// Its `DLDeviceType` code.
    pub code: DeviceCode,
    /// Its name.
    pub name: &'static str,
    /// There is one only, whose ordinal is 0.
    pub id_must_be_zero: bool,
    /// The host reads and writes the memory through the same addresses.
    pub host_reachable: bool,
    /// `data` is a handle, not an address: only `byte_offset` can move it.
    pub opaque_handle: bool,
}

const SOLE: (bool, bool, bool) = (true, true, false);
const HOST: (bool, bool, bool) = (false, true, false);
const ADDRESS: (bool, bool, bool) = (false, false, false);
const HANDLE: (bool, bool, bool) = (false, false, true);

const fn row(code: DeviceCode, name: &'static str, is: (bool, bool, bool)) -> Kind {
    let (id_must_be_zero, host_reachable, opaque_handle) = is;
    Kind { code, name, id_must_be_zero, host_reachable, opaque_handle }
}

/// Every kind of device that is known, those newer than DLPack 1.3 too, by code: a row is all that
/// a new one needs.
pub const KINDS: [Kind; 19] = [
    row(kDLCPU as DeviceCode, "cpu", SOLE),
    row(kDLCUDA as DeviceCode, "cuda", ADDRESS),
    row(kDLCUDAHost as DeviceCode, "cuda_host", HOST),
    row(kDLOpenCL as DeviceCode, "opencl", HANDLE),
    row(kDLVulkan as DeviceCode, "vulkan", HANDLE),
    row(kDLMetal as DeviceCode, "metal", HANDLE),
    row(kDLVPI as DeviceCode, "vpi", ADDRESS),
    row(kDLROCM as DeviceCode, "rocm", ADDRESS),
    row(kDLROCMHost as DeviceCode, "rocm_host", HOST),
    row(kDLExtDev as DeviceCode, "ext_dev", ADDRESS),
    row(kDLCUDAManaged as DeviceCode, "cuda_managed", HOST),
    row(kDLOneAPI as DeviceCode, "oneapi", ADDRESS),
    row(kDLWebGPU as DeviceCode, "webgpu", HANDLE),
    row(kDLHexagon as DeviceCode, "hexagon", ADDRESS),
    row(kDLMAIA as DeviceCode, "maia", ADDRESS),
    row(kDLTrn as DeviceCode, "trn", ADDRESS),
    row(DLRS_CODE_TPU, "tpu", ADDRESS),
    row(DLRS_CODE_TPU_HOST, "tpu_host", HOST),
    row(DLRS_CODE_ASCEND, "ascend", ADDRESS),
];

const LAST: i64 = KINDS[KINDS.len() - 1].code as i64;

const UNKNOWN: &str = "unknown(type=";

/// The row of a code, if it is known.
pub fn kind(code: DeviceCode) -> Option<&'static Kind> {
    const TABLE: &[Kind] = &KINDS;
    TABLE.iter().find(|kind| kind.code == code)
}

/// Codes as bits, computed from the table at compile time: every validation uses it.
struct Codes(u32);

impl Codes {
    const KNOWN: Codes = Codes::of(0);
    const ZERO_ID: Codes = Codes::of(1);
    const HOST: Codes = Codes::of(2);
    const HANDLE: Codes = Codes::of(3);
    const ADDRESSED: Codes = Codes::of(4);

    const fn of(column: u32) -> Codes {
        let (mut bits, mut row) = (0, 0);
        while row < KINDS.len() {
            let kind = &KINDS[row];
            let wanted = match column {
                1 => kind.id_must_be_zero,
                2 => kind.host_reachable,
                3 => kind.opaque_handle,
                4 => !kind.opaque_handle,
                _ => true,
            };
            bits |= (wanted as u32) << kind.code;
            row += 1;
        }
        Codes(bits)
    }

    const fn contain(&self, code: DeviceCode) -> bool {
        (code as u32) < u32::BITS && (self.0 >> code as u32) & 1 != 0
    }
}

/// Whether this kind has a row.
pub fn known(code: DeviceCode) -> bool {
    Codes::KNOWN.contain(code)
}

/// Whether the ordinal must be 0.
pub fn id_must_be_zero(code: DeviceCode) -> bool {
    Codes::ZERO_ID.contain(code)
}

/// Whether the host may read and write the memory directly. Of unknown kinds: no.
pub fn host_reachable(code: DeviceCode) -> bool {
    Codes::HOST.contain(code)
}

/// Whether work on its memory is ordered on its device's default stream unless a stream is given.
/// Host and pinned memory have none; managed memory belongs to a device too.
pub fn has_default_stream(code: DeviceCode) -> bool {
    !host_reachable(code) || code == kDLCUDAManaged as DeviceCode
}

/// Whether all devices of this type share one address space: host memory, CUDA's and ROCm's do.
pub fn unified_addresses(code: DeviceCode) -> bool {
    host_reachable(code) || code == kDLCUDA as DeviceCode || code == kDLROCM as DeviceCode
}

/// Whether the CPU, as the target, can access memory of another device by its address.
pub fn serves_cpu(here: DLDevice, wanted: DLDevice) -> bool {
    wanted == CPU && here != CPU && host_reachable(here.device_type)
}

/// Whether `data` is a handle instead of an address. Of unknown kinds: no.
pub fn opaque_handle(code: DeviceCode) -> bool {
    Codes::HANDLE.contain(code)
}

/// Requires a known device type with an ordinal that it may have.
pub fn check(device: DLDevice) -> Result<()> {
    if !known(device.device_type) {
        let code = i64::from(device.device_type);
        let error = bad_type(code);
        return Err(match code {
            0 => error.detail("\0kDLCPU is 1.\0The CPU is (1, 0)."),
            _ if code > LAST => error.limit(LAST),
            _ => error,
        });
    }
    let zero = id_must_be_zero(device.device_type);
    if device.device_id < 0 || (zero && device.device_id != 0) {
        return Err(bad_id(device.device_id.into(), 0));
    }
    Ok(())
}

/// As [`check`], and the ordinal is 0 for all memory that the host can access, as in dlpack.h. Not
/// all producers comply: CuPy's managed memory has the ordinal of its device.
pub fn check_strictly(device: DLDevice) -> Result<()> {
    check(device)?;
    match host_reachable(device.device_type) && device.device_id != 0 {
        true => Err(bad_id(device.device_id.into(), 0)),
        false => Ok(()),
    }
}

/// Whether [`check_strictly`] passes and `data` is an address.
#[inline(always)]
pub fn plain(device: DLDevice) -> bool {
    let word = device.word(); // for most devices one question less
    word == kDLCPU as u64
        || word < u64::from(u32::BITS) && (Codes::ADDRESSED.0 >> word) & 1 != 0
        || has_free_id(device)
}

#[cold]
fn has_free_id(device: DLDevice) -> bool {
    let DLDevice { device_type, device_id } = device;
    Codes::ADDRESSED.contain(device_type) && device_id > 0 && !host_reachable(device_type)
}

/// The description and the remedy of a text that is no device.
macro_rules! expected {
    ($what:literal) => {
        concat!("cannot be parsed, expected ", $what, "\0Write devices as cpu, cuda:0, rocm:1.",)
    };
}

/// Reads the name of a device; the module's documentation has the grammar.
pub fn parse(text: &[u8]) -> Result<DLDevice> {
    let mut scan = Scan::new(text);
    let unknown = scan.eat(UNKNOWN);
    let code = if unknown {
        let code = scan.signed(expected!("a code"))?;
        scan.expect(")", expected!("a parenthesis"))?;
        code
    } else {
        match scan.longest(KINDS.iter(), |kind| kind.name) {
            Some(kind) => kind.code.into(),
            None => return Err(scan.fail(expected!("a kind of device"))),
        }
    };
    let (id, end) = match scan.eat(":") {
        true => (scan.signed(expected!("an ordinal"))?, expected!("the end")),
        false => (0, expected!("a colon and the ordinal, or the end")),
    };
    scan.end(end)?;
    let device = DLDevice {
        device_type: i32::try_from(code).map_err(|_| bad_type(code).limit(i32::MAX.into()))?,
        device_id: i32::try_from(id).map_err(|_| bad_id(id, i32::MAX.into()))?,
    };
    // "unknown" accepts any numbers; a name must be one of a device that can exist.
    if !unknown {
        check(device)?;
    }
    Ok(device)
}

/// Writes the name of a device, whatever it is. [`parse`] reads it back unless the kind is known
/// and the ordinal impossible, as in `cuda:-1`.
#[inline(never)] // one copy for all kinds of `out`
pub fn format(device: DLDevice, out: &mut dyn Write) -> fmt::Result {
    match kind(device.device_type) {
        Some(kind) if kind.host_reachable && device.device_id == 0 => out.write_str(kind.name),
        Some(kind) => write!(out, "{}:{}", kind.name, signed(device.device_id.into())),
        None => {
            let (code, id) = (signed(device.device_type.into()), signed(device.device_id.into()));
            write!(out, "{UNKNOWN}{code}):{id}")
        }
    }
}

/// A device that prints as its name.
pub struct Name(pub DLDevice);

impl fmt::Display for Name {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        format(self.0, out)
    }
}

#[cold]
fn bad_type(code: i64) -> Error {
    Error::new(Status::DLRS_DEVICE_TYPE).field(Field::DLRS_FIELD_DEVICE_TYPE).value(code)
}

#[cold]
fn bad_id(id: i64, limit: i64) -> Error {
    let error = Error::new(Status::DLRS_DEVICE_ID).field(Field::DLRS_FIELD_DEVICE_ID);
    error.value(id).limit(limit)
}
