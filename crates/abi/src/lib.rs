//! Upstream's `dlpack.h`, v1.3, as plain data: structs, codes, flags, versions.
//!
//! Nothing here is ours to change: `include/dlpack.h` is generated from this file and must equal
//! upstream's header byte for byte, comments aside. Device and type codes travel as integers
//! (`DeviceCode`, `u8`), never as Rust enums: a code newer than 1.3 must survive.
//!
//! May use: nothing. Used by: every crate but `kernels`.
#![no_std]
#![allow(non_camel_case_types, non_upper_case_globals, non_snake_case)]

use core::ffi::{c_char, c_int, c_void};

/// The DLPack major version of this library; another major is another struct layout.
pub const DLPACK_MAJOR_VERSION: u32 = 1;
/// The DLPack minor version of this library; a newer minor only adds codes and flags.
pub const DLPACK_MINOR_VERSION: u32 = 3;

/// Flag: consumers must not write the data.
pub const DLPACK_FLAG_BITMASK_READ_ONLY: u64 = 1 << 0;
/// Flag: the data is a fresh copy that the consumer alone owns.
pub const DLPACK_FLAG_BITMASK_IS_COPIED: u64 = 1 << 1;
/// Flag: each element of a sub-byte type fills whole bytes instead of being packed.
pub const DLPACK_FLAG_BITMASK_IS_SUBBYTE_TYPE_PADDED: u64 = 1 << 2;

/// The DLPack version of a tensor.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DLPackVersion {
    /// Layout of the structs: equal, or nothing past `flags` may be read.
    pub major: u32,
    /// Codes and flags in use; a newer one is usable when every field is understood.
    pub minor: u32,
}

/// Device types: the codes of DLPack 1.3. Any other `int32_t` may occur too.
#[repr(C)]
#[derive(Clone, Copy)]
pub enum DLDeviceType {
    /// Ordinary host memory.
    kDLCPU = 1,
    /// NVIDIA CUDA device memory.
    kDLCUDA = 2,
    /// Pinned host memory made by CUDA.
    kDLCUDAHost = 3,
    /// OpenCL buffer: `data` is an opaque handle.
    kDLOpenCL = 4,
    /// Vulkan buffer: `data` is an opaque handle.
    kDLVulkan = 7,
    /// Apple Metal buffer: `data` is an opaque handle.
    kDLMetal = 8,
    /// Verilog simulator memory.
    kDLVPI = 9,
    /// AMD ROCm device memory.
    kDLROCM = 10,
    /// Pinned host memory made by ROCm.
    kDLROCMHost = 11,
    /// Reserved for experiments with a new device type.
    kDLExtDev = 12,
    /// CUDA managed (unified) memory.
    kDLCUDAManaged = 13,
    /// oneAPI unified shared memory.
    kDLOneAPI = 14,
    /// WebGPU buffer: `data` is an opaque handle.
    kDLWebGPU = 15,
    /// Qualcomm Hexagon DSP memory.
    kDLHexagon = 16,
    /// Microsoft MAIA device memory.
    kDLMAIA = 17,
    /// AWS Trainium device memory.
    kDLTrn = 18,
}

/// A device code: any `int32_t`, known or not. `DLDeviceType` in C.
pub type DeviceCode = i32;

/// A device: its kind and its ordinal.
#[repr(C)]
#[derive(Clone, Copy, Eq, Debug)]
pub struct DLDevice {
    /// A `DLDeviceType` code.
    pub device_type: DeviceCode,
    /// The ordinal; 0 for host, pinned and managed memory.
    pub device_id: i32,
}

impl DLDevice {
    /// Both in one number.
    #[inline(always)]
    pub const fn word(self) -> u64 {
        self.device_type as u32 as u64 | (self.device_id as u32 as u64) << 32
    }
}

/// One comparison, as every call uses it.
impl PartialEq for DLDevice {
    #[inline(always)]
    fn eq(&self, other: &DLDevice) -> bool {
        self.word() == other.word()
    }
}

/// Dtype codes of DLPack 1.3. Any other `uint8_t` may occur too.
#[repr(C)]
#[derive(Clone, Copy)]
pub enum DLDataTypeCode {
    /// Signed integer, two's complement.
    kDLInt = 0,
    /// Unsigned integer.
    kDLUInt = 1,
    /// IEEE 754 binary floating point.
    kDLFloat = 2,
    /// A handle that only producer and consumer understand.
    kDLOpaqueHandle = 3,
    /// bfloat16.
    kDLBfloat = 4,
    /// Complex: two floats of half the bits, real part first.
    kDLComplex = 5,
    /// Boolean, one byte.
    kDLBool = 6,
    /// 8-bit float: 3 exponent bits, 4 mantissa bits.
    kDLFloat8_e3m4 = 7,
    /// 8-bit float: 4 exponent bits, 3 mantissa bits, with infinities.
    kDLFloat8_e4m3 = 8,
    /// 8-bit float e4m3, bias 11, finite, unsigned zero.
    kDLFloat8_e4m3b11fnuz = 9,
    /// 8-bit float e4m3, finite.
    kDLFloat8_e4m3fn = 10,
    /// 8-bit float e4m3, finite, unsigned zero.
    kDLFloat8_e4m3fnuz = 11,
    /// 8-bit float: 5 exponent bits, 2 mantissa bits.
    kDLFloat8_e5m2 = 12,
    /// 8-bit float e5m2, finite, unsigned zero.
    kDLFloat8_e5m2fnuz = 13,
    /// 8-bit scale: exponent only, unsigned.
    kDLFloat8_e8m0fnu = 14,
    /// 6-bit float: 2 exponent bits, 3 mantissa bits, finite.
    kDLFloat6_e2m3fn = 15,
    /// 6-bit float: 3 exponent bits, 2 mantissa bits, finite.
    kDLFloat6_e3m2fn = 16,
    /// 4-bit float: 2 exponent bits, 1 mantissa bit, finite.
    kDLFloat4_e2m1fn = 17,
}

/// The type of one element, in native byte order: `lanes` values of `bits` bits.
#[repr(C)]
#[derive(Clone, Copy, Eq, Debug)]
pub struct DLDataType {
    /// A `DLDataTypeCode` code.
    pub code: u8,
    /// Bits of one lane.
    pub bits: u8,
    /// Number of lanes; 1 for scalars.
    pub lanes: u16,
}

/// One comparison, as every call uses it.
impl PartialEq for DLDataType {
    #[inline(always)]
    fn eq(&self, other: &DLDataType) -> bool {
        let word = |&DLDataType { code, bits, lanes }: &DLDataType| {
            u32::from(code) | u32::from(bits) << 8 | u32::from(lanes) << 16
        };
        word(self) == word(other)
    }
}

/// A tensor that owns nothing: a description of memory.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct DLTensor {
    /// Start of the memory, or an opaque handle on some devices; NULL when the size is zero.
    pub data: *mut c_void,
    /// The device of `data`.
    pub device: DLDevice,
    /// Number of dimensions.
    pub ndim: i32,
    /// The type of one element.
    pub dtype: DLDataType,
    /// Extent of each dimension, `ndim` values.
    pub shape: *mut i64,
    /// Elements to step per dimension, `ndim` values; NULL means compact row-major before 1.2.
    pub strides: *mut i64,
    /// Bytes from `data` to element (0, ..., 0).
    pub byte_offset: u64,
}

/// The legacy managed tensor: no version, no flags.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct DLManagedTensor {
    /// The tensor, borrowed by the consumer.
    pub dl_tensor: DLTensor,
    /// The producer's own.
    pub manager_ctx: *mut c_void,
    /// Frees the resources and the struct, exactly once, on any thread; may be NULL.
    pub deleter: Option<unsafe extern "C" fn(self_: *mut DLManagedTensor)>,
}

/// The managed tensor of DLPack 1.0 and newer.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct DLManagedTensorVersioned {
    /// Version of this struct; on another major only `deleter` may be used.
    pub version: DLPackVersion,
    /// The producer's own.
    pub manager_ctx: *mut c_void,
    /// Frees the resources and the struct, exactly once, on any thread; may be NULL.
    pub deleter: Option<unsafe extern "C" fn(self_: *mut DLManagedTensorVersioned)>,
    /// `DLPACK_FLAG_BITMASK_*` bits.
    pub flags: u64,
    /// The tensor, borrowed by the consumer.
    pub dl_tensor: DLTensor,
}

/// Exchange API: allocate a tensor like `prototype`; 0, or -1 after `SetError`.
pub type DLPackManagedTensorAllocator = Option<
    unsafe extern "C" fn(
        prototype: *mut DLTensor,
        out: *mut *mut DLManagedTensorVersioned,
        error_ctx: *mut c_void,
        SetError: Option<
            unsafe extern "C" fn(
                error_ctx: *mut c_void,
                kind: *const c_char,
                message: *const c_char,
            ),
        >,
    ) -> c_int,
>;
/// Exchange API: export a Python object as an owned tensor, without synchronizing.
pub type DLPackManagedTensorFromPyObjectNoSync = Option<
    unsafe extern "C" fn(py_object: *mut c_void, out: *mut *mut DLManagedTensorVersioned) -> c_int,
>;
/// Exchange API: describe a Python object's tensor without ownership; may be NULL.
pub type DLPackDLTensorFromPyObjectNoSync =
    Option<unsafe extern "C" fn(py_object: *mut c_void, out: *mut DLTensor) -> c_int>;
/// Exchange API: the framework's current stream.
pub type DLPackCurrentWorkStream = Option<
    unsafe extern "C" fn(
        device_type: DeviceCode,
        device_id: i32,
        out_current_stream: *mut *mut c_void,
    ) -> c_int,
>;
/// Exchange API: make a Python object of an owned tensor, which it takes.
pub type DLPackManagedTensorToPyObjectNoSync = Option<
    unsafe extern "C" fn(
        tensor: *mut DLManagedTensorVersioned,
        out_py_object: *mut *mut c_void,
    ) -> c_int,
>;

/// Head of an exchange API table: its version, and the table of an older major.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct DLPackExchangeAPIHeader {
    /// The version of the table.
    pub version: DLPackVersion,
    /// The same framework's table of an older major, or NULL.
    pub prev_api: *mut DLPackExchangeAPIHeader,
}

/// What a framework offers on its tensor type for exchange without Python calls.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct DLPackExchangeAPI {
    /// Version and older tables.
    pub header: DLPackExchangeAPIHeader,
    /// Makes a tensor.
    pub managed_tensor_allocator: DLPackManagedTensorAllocator,
    /// Exports an object.
    pub managed_tensor_from_py_object_no_sync: DLPackManagedTensorFromPyObjectNoSync,
    /// Imports a tensor.
    pub managed_tensor_to_py_object_no_sync: DLPackManagedTensorToPyObjectNoSync,
    /// Describes an object.
    pub dltensor_from_py_object_no_sync: DLPackDLTensorFromPyObjectNoSync,
    /// Returns the current stream.
    pub current_work_stream: DLPackCurrentWorkStream,
}
