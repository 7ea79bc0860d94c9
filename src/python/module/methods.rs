//! Names and documentation of everything that can be called.

use core::ptr::null_mut;

use super::failure::{Failure, raise};
use super::spec::MethodDef;
use super::{copies, exchange, scalars, values, views};
use crate::python::{PyObject, Python};

/// Documentation of the module.
pub const MODULE: &str = "\
DLPack tensors of any producer, and copies of them.\n\
\n\
A dtype is the name of its type: 'float32', 'bfloat16', 'float8_e4m3fn', 'bool', 'float32x4'.\n\
A device is its name: 'cpu', 'cuda:0', 'rocm:1'; the pair (type, id) of __dlpack_device__ is\n\
understood as well.\0";

/// Documentation of the type.
pub const TENSOR: &str = "\
A tensor in memory that DLPack shares. Made by from_dlpack and empty.\n\
\n\
Any library takes it by its own from_dlpack. Views share memory and keep it alive. int(),\n\
float(), complex() and bool() give the value of an only element. There is no arithmetic, no ==,\n\
no in and no hash. A Tensor is not seen by the garbage collector: memory that refers back to\n\
it, through an array that owns objects, is never collected.\0";

/// Functions of the module.
pub static FUNCTIONS: [MethodDef; 3] = [
    MethodDef::new(c"from_dlpack", exchange::from_dlpack, FROM_DLPACK),
    MethodDef::new(c"empty", copies::empty, EMPTY),
    MethodDef::END,
];

const FROM_DLPACK: &str = "\
from_dlpack(x, /, *, device=None, copy=None, legacy_writable=False)\n--\n\n\
A Tensor over the memory of x, which has __dlpack__ or DLPack's C exchange API.\n\
\n\
device: where the result shall be; None: where x is.\n\
copy: True always copies, False never (BufferError if that cannot be), None if needed. On devices\n\
without a backend here the producer is asked for the copy.\n\
legacy_writable: producers from before DLPack 1.0 cannot say whether their memory may be\n\
written, so it is read-only, and cannot go back to one of them; True: you know that it may.\0";
const EMPTY: &str = "\
empty(shape, dtype='float32', device='cpu')\n--\n\n\
A Tensor of its own, aligned to 256 bytes, whose elements are not set.\0";

/// Methods of the type.
pub static METHODS: [MethodDef; 23] = [
    MethodDef::new(c"__dlpack__", exchange::dlpack, DLPACK),
    MethodDef::new(c"__dlpack_device__", exchange::dlpack_device, DLPACK_DEVICE),
    MethodDef::new(c"__array__", values::array, ARRAY),
    MethodDef::new(c"copy", copies::copy_method, COPY),
    MethodDef::new(c"contiguous", copies::contiguous, CONTIGUOUS),
    MethodDef::new(c"to", copies::to, TO),
    MethodDef::new(c"reshape", views::reshape, RESHAPE),
    MethodDef::new(c"broadcast_to", views::broadcast_to, BROADCAST_TO),
    MethodDef::new(c"permute", views::permute, PERMUTE),
    MethodDef::new(c"swapaxes", views::swapaxes, SWAPAXES),
    MethodDef::new(c"flip", views::flip, FLIP),
    MethodDef::new(c"squeeze", views::squeeze, SQUEEZE),
    MethodDef::new(c"unsqueeze", views::unsqueeze, UNSQUEEZE),
    MethodDef::new(c"view", views::view_as, VIEW),
    MethodDef::new(c"read_only", views::read_only, READ_ONLY),
    MethodDef::new(c"numpy", values::numpy, NUMPY),
    MethodDef::new(c"memoryview", values::memory_view, MEMORYVIEW),
    MethodDef::new(c"__complex__", scalars::complex, COMPLEX),
    MethodDef::new(c"__floor__", scalars::floor, FLOOR),
    MethodDef::new(c"__ceil__", scalars::ceil, CEIL),
    MethodDef::new(c"tolist", values::tolist, TOLIST),
    MethodDef::new(c"item", values::item, ITEM),
    MethodDef::END,
];

const DLPACK: &str = "\
__dlpack__($self, /, *, stream=None, max_version=None, dl_device=None, copy=None)\n--\n\n\
A capsule with the tensor, for a consumer's from_dlpack.\0";
const DLPACK_DEVICE: &str = "\
__dlpack_device__($self, /)\n--\n\n\
The pair (device type, device id).\0";
const ARRAY: &str = "\
__array__($self, /, dtype=None, copy=None)\n--\n\n\
numpy.from_dlpack(self), as an array of that dtype.\0";
const COPY: &str = "\
copy($self, /, order='C')\n--\n\n\
A dense copy on the same device, in the order 'C', 'F' or 'K' (that of the strides).\0";
const CONTIGUOUS: &str = "\
contiguous($self, /, order='C')\n--\n\n\
The same memory if it is dense in the order 'C', 'F', 'A' (either) or 'K' (any), else a copy.\0";
const TO: &str = "\
to($self, /, device, *, copy=None)\n--\n\n\
The tensor on a device: the same memory, or a copy.\n\
\n\
copy: True always copies, False never (BufferError if that cannot be), None if needed.\0";
const RESHAPE: &str = "\
reshape($self, /, *shape)\n--\n\n\
A view with another shape, one extent of which may be -1; ValueError where only a copy has it.\0";
const BROADCAST_TO: &str = "\
broadcast_to($self, /, *shape)\n--\n\n\
A read-only view in which extents of 1 and new axes in front are repeated.\0";
const PERMUTE: &str = "\
permute($self, /, *axes)\n--\n\n\
A view with its axes in another order.\0";
const SWAPAXES: &str = "\
swapaxes($self, axis_a, axis_b, /)\n--\n\n\
A view with two axes exchanged.\0";
const FLIP: &str = "\
flip($self, /, axis=None)\n--\n\n\
A view with the elements of an axis, of several, or of all in the opposite order.\0";
const SQUEEZE: &str = "\
squeeze($self, /, axis=None)\n--\n\n\
A view without an axis of extent 1, without several, or without all of them.\0";
const UNSQUEEZE: &str = "\
unsqueeze($self, /, axis)\n--\n\n\
A view with a new axis of extent 1.\0";
const VIEW: &str = "\
view($self, dtype, /)\n--\n\n\
A view of the same bytes as elements of another type.\0";
const READ_ONLY: &str = "\
read_only($self, /)\n--\n\n\
A view through which consumers must not write.\0";
const NUMPY: &str = "\
numpy($self, /)\n--\n\n\
numpy.from_dlpack(self).\0";
const MEMORYVIEW: &str = "\
memoryview($self, /)\n--\n\n\
The memory as a memoryview, for what reads and writes bytes; for memory that the CPU reaches.\0";
const COMPLEX: &str = "\
__complex__($self, /)\n--\n\n\
complex(self), of the only element.\0";
const FLOOR: &str = "\
__floor__($self, /)\n--\n\n\
math.floor(self), of the only element.\0";
const CEIL: &str = "\
__ceil__($self, /)\n--\n\n\
math.ceil(self), of the only element.\0";
const TOLIST: &str = "\
tolist($self, /)\n--\n\n\
The elements as nested lists of Python's numbers.\0";
const ITEM: &str = "\
item($self, /)\n--\n\n\
The only element as a Python number.\0";

/// `tp_new`: there is no tensor without memory.
///
/// # Safety
/// Python calls it.
pub unsafe extern "C" fn refuse_new(
    _: *mut PyObject,
    _: *mut PyObject,
    _: *mut PyObject,
) -> *mut PyObject {
    // SAFETY: Python's word.
    let python = unsafe { Python::calling() };
    raise(python, "Tensor", &Failure::Call("is made by from_dlpack() and empty() only"));
    null_mut()
}
