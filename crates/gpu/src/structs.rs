//! The structs of the drivers' interfaces. A test compares them with the vendors' headers.
#![forbid(unsafe_code)]

use core::ffi::c_void;
use core::ptr::null_mut;

use super::vendor::{Pitched, Ptr};

const MEMORY_DEVICE: u32 = 2; // CU_MEMORYTYPE_DEVICE
const MEMORY_UNIFIED: u32 = 4; // CU_MEMORYTYPE_UNIFIED

/// CUDA_MEMCPY2D.
#[repr(C)]
pub struct Copy2d {
    src_x: usize,
    src_y: usize,
    src_type: u32,
    src_host: *const c_void,
    src_device: *const c_void,
    src_array: Ptr,
    src_pitch: usize,
    dst_x: usize,
    dst_y: usize,
    dst_type: u32,
    dst_host: Ptr,
    dst_device: Ptr,
    dst_array: Ptr,
    dst_pitch: usize,
    width: usize,
    height: usize,
}

impl From<&Pitched> for Copy2d {
    fn from(copy: &Pitched) -> Copy2d {
        Copy2d {
            src_x: 0,
            src_y: 0,
            src_type: MEMORY_UNIFIED,
            src_host: null_mut(),
            src_device: copy.src.cast(),
            src_array: null_mut(),
            src_pitch: copy.src_pitch,
            dst_x: 0,
            dst_y: 0,
            dst_type: MEMORY_UNIFIED,
            dst_host: null_mut(),
            dst_device: copy.dst.cast(),
            dst_array: null_mut(),
            dst_pitch: copy.dst_pitch,
            width: copy.width,
            height: copy.height,
        }
    }
}

/// CUDA_MEMCPY3D_PEER.
#[repr(C)]
pub struct Copy3dPeer {
    src_x: usize,
    src_y: usize,
    src_z: usize,
    src_lod: usize,
    src_type: u32,
    src_host: *const c_void,
    src_device: *const c_void,
    src_array: Ptr,
    src_context: Ptr,
    src_pitch: usize,
    src_height: usize,
    dst_x: usize,
    dst_y: usize,
    dst_z: usize,
    dst_lod: usize,
    dst_type: u32,
    dst_host: Ptr,
    dst_device: Ptr,
    dst_array: Ptr,
    dst_context: Ptr,
    dst_pitch: usize,
    dst_height: usize,
    width: usize,
    height: usize,
    depth: usize,
}

impl Copy3dPeer {
    /// Rows, from memory of one context to memory of another.
    pub fn new(copy: &Pitched, src_context: Ptr, dst_context: Ptr) -> Copy3dPeer {
        Copy3dPeer {
            src_x: 0,
            src_y: 0,
            src_z: 0,
            src_lod: 0,
            src_type: MEMORY_DEVICE,
            src_host: null_mut(),
            src_device: copy.src.cast(),
            src_array: null_mut(),
            src_context,
            src_pitch: copy.src_pitch,
            src_height: copy.height,
            dst_x: 0,
            dst_y: 0,
            dst_z: 0,
            dst_lod: 0,
            dst_type: MEMORY_DEVICE,
            dst_host: null_mut(),
            dst_device: copy.dst.cast(),
            dst_array: null_mut(),
            dst_context,
            dst_pitch: copy.dst_pitch,
            dst_height: copy.height,
            width: copy.width,
            height: copy.height,
            depth: 1,
        }
    }
}

const ORDER_STREAM: i32 = 1; // CU_MEMCPY_SRC_ACCESS_ORDER_STREAM

/// CUmemLocation, here of no kind.
#[repr(C)]
struct Location {
    kind: i32,
    id: i32,
}

const ANYWHERE: Location = Location { kind: 0, id: 0 };

/// CUmemcpyAttributes.
#[repr(C)]
pub struct CopyAttributes {
    order: i32,
    src_hint: Location,
    dst_hint: Location,
    flags: u32,
}

impl CopyAttributes {
    /// Sources, as destinations always, are accessed in the order of the stream.
    pub const IN_ORDER: CopyAttributes =
        CopyAttributes { order: ORDER_STREAM, src_hint: ANYWHERE, dst_hint: ANYWHERE, flags: 0 };
}

/// hipPointerAttribute_t, with room for fields of later versions.
#[repr(C)]
pub struct Attributes {
    pub(super) kind: i32,
    pub(super) device: i32,
    pub(super) device_pointer: *mut c_void,
    pub(super) host_pointer: *mut c_void,
    pub(super) is_managed: i32,
    pub(super) flags: u32,
    pub(super) room: [u64; 8],
}

/// hipDeviceProp_t of any version, whose members have moved; the first 256 bytes are the name.
#[repr(C, align(16))]
pub struct Properties(pub(super) [u8; 4096]);

impl Properties {
    /// The name of the architecture with its features, such as "gfx90a:sramecc+:xnack-".
    pub fn architecture(&self) -> impl Iterator<Item = u8> {
        let from = self.0.windows(3).skip(256).position(|text| text == b"gfx");
        let text = from.and_then(|from| self.0.get(256 + from..)).unwrap_or_default();
        text.iter().copied().take_while(u8::is_ascii_graphic)
    }
}
