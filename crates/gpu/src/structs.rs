//! The structs of the drivers' interfaces. A test compares them with the vendors' headers.
#![forbid(unsafe_code)]

use core::ffi::c_void;
use core::ptr::NonNull;

use super::vendor::{Pitched, Ptr};

/// A pointer parameter, in structs that are 0 but for what is said.
type Handle = Option<NonNull<c_void>>;

fn handle<T>(address: *const T) -> Handle {
    NonNull::new(address.cast_mut().cast())
}

const MEMORY_DEVICE: u32 = 2; // CU_MEMORYTYPE_DEVICE
const MEMORY_UNIFIED: u32 = 4; // CU_MEMORYTYPE_UNIFIED

/// CUDA_MEMCPY2D.
#[repr(C)]
#[derive(Default)]
pub struct Copy2d {
    src_x: usize,
    src_y: usize,
    src_type: u32,
    src_host: Handle,
    src_device: Handle,
    src_array: Handle,
    src_pitch: usize,
    dst_x: usize,
    dst_y: usize,
    dst_type: u32,
    dst_host: Handle,
    dst_device: Handle,
    dst_array: Handle,
    dst_pitch: usize,
    width: usize,
    height: usize,
}

impl From<&Pitched> for Copy2d {
    fn from(copy: &Pitched) -> Copy2d {
        Copy2d {
            src_type: MEMORY_UNIFIED,
            src_device: handle(copy.src),
            src_pitch: copy.src_pitch,
            dst_type: MEMORY_UNIFIED,
            dst_device: handle(copy.dst),
            dst_pitch: copy.dst_pitch,
            width: copy.width,
            height: copy.height,
            ..Copy2d::default()
        }
    }
}

/// CUDA_MEMCPY3D_PEER.
#[repr(C)]
#[derive(Default)]
pub struct Copy3dPeer {
    src_x: usize,
    src_y: usize,
    src_z: usize,
    src_lod: usize,
    src_type: u32,
    src_host: Handle,
    src_device: Handle,
    src_array: Handle,
    src_context: Handle,
    src_pitch: usize,
    src_height: usize,
    dst_x: usize,
    dst_y: usize,
    dst_z: usize,
    dst_lod: usize,
    dst_type: u32,
    dst_host: Handle,
    dst_device: Handle,
    dst_array: Handle,
    dst_context: Handle,
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
            src_type: MEMORY_DEVICE,
            src_device: handle(copy.src),
            src_context: handle(src_context),
            src_pitch: copy.src_pitch,
            src_height: copy.height,
            dst_type: MEMORY_DEVICE,
            dst_device: handle(copy.dst),
            dst_context: handle(dst_context),
            dst_pitch: copy.dst_pitch,
            dst_height: copy.height,
            width: copy.width,
            height: copy.height,
            depth: 1,
            ..Copy3dPeer::default()
        }
    }
}

const ORDER_STREAM: i32 = 1; // CU_MEMCPY_SRC_ACCESS_ORDER_STREAM

/// CUmemLocation, here of no kind.
#[repr(C)]
#[derive(Default)]
struct Location {
    kind: i32,
    id: i32,
}

/// CUmemcpyAttributes.
#[repr(C)]
#[derive(Default)]
pub struct CopyAttributes {
    order: i32,
    src_hint: Location,
    dst_hint: Location,
    flags: u32,
}

impl CopyAttributes {
    /// Sources, as destinations always, are accessed in the order of the stream.
    pub fn in_order() -> CopyAttributes {
        CopyAttributes { order: ORDER_STREAM, ..CopyAttributes::default() }
    }
}

/// hipPointerAttribute_t, with room for fields of later versions.
#[repr(C)]
#[derive(Default)]
pub struct Attributes {
    pub(super) kind: i32,
    pub(super) device: i32,
    pub(super) device_pointer: Handle,
    pub(super) host_pointer: Handle,
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
