//! Names and docstrings of all functions and methods. tests/python/test_examples.py runs their
//! examples.

use core::ptr::null_mut;

use super::failure::wrong;
use super::spec::MethodDef;
use super::{copies, exchange, makes, numpy, pickles, scalars, values, views, writes};
use crate::python::{PyObject, Python};

/// Documentation of the module.
pub const MODULE: &str = "\
DLPack tensors of any producer, and copies of them.\n\
\n\
A dtype is the name of its type: 'float32', 'bfloat16', 'float8_e4m3fn', 'bool', 'float32x4'; \
or\n\
the type of NumPy, ml_dtypes, PyTorch or Python that has that name, as np.float32 and int.\n\
A device is its name: 'cpu', 'cuda:0', 'rocm:1'; or the pair (type, id) of\n\
__dlpack_device__.\0";

/// Documentation of the type.
pub const TENSOR: &str = "\
A tensor in shared memory. Made by from_dlpack, asarray, zeros, full and empty.\n\
\n\
Any library imports it by its own from_dlpack. Views share memory and keep it alive. int(),\n\
float(), complex() and bool() return the value of a tensor with one element. There is no\n\
arithmetic, no ==, no in and no hash. The garbage collector does not traverse a Tensor: memory\n\
that refers back to it, through an array that owns objects, is never collected.\0";

/// Functions of the module.
pub static FUNCTIONS: [MethodDef; 7] = [
    MethodDef::new(c"from_dlpack", exchange::from_dlpack, FROM_DLPACK),
    MethodDef::new(c"asarray", makes::asarray, ASARRAY),
    MethodDef::new(c"from_numpy", makes::from_numpy, FROM_NUMPY),
    MethodDef::new(c"empty", makes::empty, EMPTY),
    MethodDef::new(c"zeros", makes::zeros, ZEROS),
    MethodDef::new(c"full", makes::full, FULL),
    MethodDef::END,
];

const FROM_DLPACK: &str = "\
from_dlpack(x, /, *, device=None, copy=None, legacy_writable=False)\n--\n\n\
A Tensor over the memory of x, which has __dlpack__ or DLPack's C exchange API, a buffer or an\n\
array interface; arrays of ml_dtypes too.\n\
\n\
device: of the result; None: that of x.\n\
copy: True always copies, False never (BufferError if one is needed), None if needed. On \
devices\n\
without a backend the producer makes the copy.\n\
legacy_writable: producers from before DLPack 1.0 do not report whether their memory may be\n\
written, so it is read-only, and cannot be exported to one of them; True: it is writable.\n\n\
>>> dlpack_rs.from_dlpack(b'abc').tolist()\n\
[97, 98, 99]\0";
const ASARRAY: &str = "\
asarray(x, /, *, dtype=None, device=None, copy=None)\n--\n\n\
As from_dlpack, and converted to dtype. NumPy converts numbers and nested lists.\n\
\n\
copy: True always copies, False never (ValueError or BufferError if one is needed), None if \
needed.\n\n\
>>> dlpack_rs.asarray([[1, 2], [3, 4]], dtype='float32').tolist()\n\
[[1.0, 2.0], [3.0, 4.0]]\0";
const FROM_NUMPY: &str = "\
from_numpy(x, /)\n--\n\n\
A Tensor over the memory of an array on the CPU, never a copy; arrays of ml_dtypes too.\n\n\
>>> import numpy as np\n\
>>> dlpack_rs.from_numpy(np.zeros(3, 'int16')).dtype\n\
'int16'\0";
const EMPTY: &str = "\
empty(shape, dtype='float32', device='cpu', *, order='C', strides=None)\n--\n\n\
A new uninitialised Tensor, aligned to 256 bytes.\n\
\n\
order: 'C' or 'F'. strides: in elements, in place of an order; gaps between elements are \
allowed.\n\n\
>>> dlpack_rs.empty((2, 3), 'bfloat16', order='F').strides\n\
(1, 2)\0";
const ZEROS: &str = "\
zeros(shape, dtype='float32', device='cpu')\n--\n\n\
A new Tensor of zeros.\n\n\
>>> dlpack_rs.zeros(3, 'int8').tolist()\n\
[0, 0, 0]\0";
const FULL: &str = "\
full(shape, fill_value, dtype=None, device='cpu')\n--\n\n\
A new Tensor whose elements are all fill_value.\n\
\n\
dtype: None is 'float32', 'int64', 'bool' or 'complex64', by the type of a Python number, or \
that\n\
of another value.\n\n\
>>> dlpack_rs.full((2, 2), 7).tolist()\n\
[[7, 7], [7, 7]]\0";

/// Methods of the type.
pub static METHODS: [MethodDef; 35] = [
    MethodDef::new(c"__dlpack__", exchange::dlpack, DLPACK),
    MethodDef::new(c"__dlpack_device__", exchange::dlpack_device, DLPACK_DEVICE),
    MethodDef::new(c"__array__", numpy::array, ARRAY),
    MethodDef::new(c"__copy__", pickles::shallow, COPY_OF),
    MethodDef::new(c"__deepcopy__", pickles::deep, DEEPCOPY),
    MethodDef::new(c"__reduce_ex__", pickles::reduce_ex, REDUCE_EX),
    MethodDef::of_type(c"_rebuild", pickles::rebuild, REBUILD),
    MethodDef::new(c"copy", copies::copy_method, COPY),
    MethodDef::new(c"contiguous", copies::contiguous, CONTIGUOUS),
    MethodDef::new(c"is_contiguous", copies::is_contiguous, IS_CONTIGUOUS),
    MethodDef::new(c"to", copies::to, TO),
    MethodDef::new(c"astype", makes::astype, ASTYPE),
    MethodDef::new(c"fill", writes::fill, FILL),
    MethodDef::new(c"copy_from", writes::copy_from, COPY_FROM),
    MethodDef::new(c"equal", writes::equal, EQUAL),
    MethodDef::new(c"max_diff", writes::max_diff, MAX_DIFF),
    MethodDef::new(c"reshape", views::reshape, RESHAPE),
    MethodDef::new(c"broadcast_to", views::broadcast_to, BROADCAST_TO),
    MethodDef::new(c"permute", views::permute, PERMUTE),
    MethodDef::new(c"transpose", views::transpose, TRANSPOSE),
    MethodDef::new(c"swapaxes", views::swapaxes, SWAPAXES),
    MethodDef::new(c"flip", views::flip, FLIP),
    MethodDef::new(c"squeeze", views::squeeze, SQUEEZE),
    MethodDef::new(c"unsqueeze", views::unsqueeze, UNSQUEEZE),
    MethodDef::new(c"view", views::view_as, VIEW),
    MethodDef::new(c"read_only", views::read_only, READ_ONLY),
    MethodDef::new(c"numpy", numpy::numpy, NUMPY),
    MethodDef::new(c"memoryview", values::memory_view, MEMORYVIEW),
    MethodDef::new(c"tobytes", pickles::tobytes, TOBYTES),
    MethodDef::new(c"__complex__", scalars::complex, COMPLEX),
    MethodDef::new(c"__floor__", scalars::floor, FLOOR),
    MethodDef::new(c"__ceil__", scalars::ceil, CEIL),
    MethodDef::new(c"tolist", values::tolist, TOLIST),
    MethodDef::new(c"item", values::item, ITEM),
    MethodDef::END,
];

const DLPACK: &str = "\
__dlpack__($self, /, *, stream=None, max_version=None, dl_device=None, copy=None)\n--\n\n\
A capsule with the tensor, for a consumer's from_dlpack.\n\n\
>>> 'dltensor_versioned' in str(dlpack_rs.zeros(3).__dlpack__(max_version=(1, 0)))\n\
True\0";
const DLPACK_DEVICE: &str = "\
__dlpack_device__($self, /)\n--\n\n\
The pair (device type, device id).\n\n\
>>> dlpack_rs.zeros(3).__dlpack_device__()\n\
(1, 0)\0";
const ARRAY: &str = "\
__array__($self, /, dtype=None, copy=None)\n--\n\n\
numpy(self), converted to that dtype.\n\n\
>>> dlpack_rs.zeros(2, 'int8').__array__('float32')\n\
array([0., 0.], dtype=float32)\0";
const COPY_OF: &str = "\
__copy__($self, /)\n--\n\n\
As copy('K'), and read-only if this is.\n\n\
>>> import copy\n\
>>> copy.copy(dlpack_rs.full(2, 1)).tolist()\n\
[1, 1]\0";
const DEEPCOPY: &str = "\
__deepcopy__($self, memo, /)\n--\n\n\
As __copy__.\n\n\
>>> import copy\n\
>>> copy.deepcopy([dlpack_rs.full(2, 1)])[0].tolist()\n\
[1, 1]\0";
const REDUCE_EX: &str = "\
__reduce_ex__($self, protocol, /)\n--\n\n\
The pickled state of a tensor in memory that the CPU can access: dtype, shape, order, bytes,\n\
and whether they are read-only. With protocol 5, out-of-band buffers are not copied.\n\n\
>>> import pickle\n\
>>> pickle.loads(pickle.dumps(dlpack_rs.full(2, 1.5))).tolist()\n\
[1.5, 1.5]\0";
const REBUILD: &str = "\
_rebuild($type, memory, dtype, shape, strides, flags, /)\n--\n\n\
Used by pickle.\n\n\
>>> dlpack_rs.Tensor._rebuild(b'ab', 'uint8', (2,), (1,), 0).tolist()\n\
[97, 98]\0";
const COPY: &str = "\
copy($self, /, order='C')\n--\n\n\
A dense copy on the same device, in the order 'C', 'F' or 'K' (that of the strides).\n\n\
>>> dlpack_rs.zeros((2, 3)).copy('F').strides\n\
(1, 2)\0";
const CONTIGUOUS: &str = "\
contiguous($self, /, order='C')\n--\n\n\
The same memory if it is dense in the order 'C', 'F', 'A' (either) or 'K' (any), else a copy.\n\n\
>>> dlpack_rs.zeros((2, 3)).T.contiguous().strides\n\
(2, 1)\0";
const IS_CONTIGUOUS: &str = "\
is_contiguous($self, /, order='C')\n--\n\n\
Whether it is dense in the order 'C', 'F', 'A' (either) or 'K' (any).\n\n\
>>> dlpack_rs.zeros((2, 3)).T.is_contiguous('F')\n\
True\0";
const TO: &str = "\
to($self, /, device, *, copy=None)\n--\n\n\
The tensor on a device: the same memory, or a copy. Pinned and managed memory is the CPU's too.\n\
\n\
copy: True always copies, False never (BufferError if one is needed), None if needed.\n\n\
>>> dlpack_rs.zeros(3).to('cpu', copy=True).is_copied\n\
True\0";
const ASTYPE: &str = "\
astype($self, dtype, /, *, copy=True, saturate=False)\n--\n\n\
A copy with the elements converted, in the order of the strides; copy=False: itself if it has\n\
that dtype. To float: rounded once; too large becomes infinity, or NaN without one. Float \
to\n\
integer: towards zero, saturated, NaN is 0. Integer to integer: the low bits. saturate=True:\n\
too large becomes the largest finite value, for integers too.\n\n\
>>> dlpack_rs.asarray([1.75, -2.5]).astype('int8').tolist()\n\
[1, -2]\0";
const FILL: &str = "\
fill($self, value, /)\n--\n\n\
Write one number, or the element of a one-element tensor, to every element.\n\n\
>>> t = dlpack_rs.empty(3, 'bfloat16')\n\
>>> t.fill(0.5)\n\
>>> t.tolist()\n\
[0.5, 0.5, 0.5]\0";
const COPY_FROM: &str = "\
copy_from($self, x, /)\n--\n\n\
Write the elements of x, anything that from_dlpack accepts, also of another dtype or on another\n\
device, and broadcast as in NumPy.\n\n\
>>> t = dlpack_rs.empty((2, 2))\n\
>>> t.copy_from(dlpack_rs.full(2, 3))\n\
>>> t.tolist()\n\
[[3.0, 3.0], [3.0, 3.0]]\0";
const EQUAL: &str = "\
equal($self, other, /, *, equal_nan=False)\n--\n\n\
Whether other, of the same dtype, has the same shape and equal elements; NaN is not equal to \
NaN.\n\n\
>>> dlpack_rs.zeros(3).equal(dlpack_rs.full(3, -0.0))\n\
True\0";
const MAX_DIFF: &str = "\
max_diff($self, other, /)\n--\n\n\
The largest absolute difference of an element and that of other, of the same dtype and shape; \
NaN\n\
if just one of the two is.\n\n\
>>> dlpack_rs.zeros(3).max_diff(dlpack_rs.full(3, -0.5))\n\
0.5\0";
const RESHAPE: &str = "\
reshape($self, /, *shape)\n--\n\n\
A view with another shape, one extent of which may be -1; ValueError if that needs a \
copy.\n\n\
>>> dlpack_rs.zeros((2, 6)).reshape(3, -1).shape\n\
(3, 4)\0";
const BROADCAST_TO: &str = "\
broadcast_to($self, /, *shape)\n--\n\n\
A read-only view in which extents of 1 and new axes in front are repeated.\n\n\
>>> dlpack_rs.zeros(3).broadcast_to(2, 3).strides\n\
(0, 1)\0";
const PERMUTE: &str = "\
permute($self, /, *axes)\n--\n\n\
A view with its axes in another order.\n\n\
>>> dlpack_rs.zeros((2, 3, 4)).permute(2, 0, 1).shape\n\
(4, 2, 3)\0";
const TRANSPOSE: &str = "\
transpose($self, /, *axes)\n--\n\n\
A view with its axes in another order, by default reversed.\n\n\
>>> dlpack_rs.zeros((2, 3, 4)).transpose().shape\n\
(4, 3, 2)\0";
const SWAPAXES: &str = "\
swapaxes($self, axis_a, axis_b, /)\n--\n\n\
A view with two axes exchanged.\n\n\
>>> dlpack_rs.zeros((2, 3, 4)).swapaxes(0, -1).shape\n\
(4, 3, 2)\0";
const FLIP: &str = "\
flip($self, /, axis=None)\n--\n\n\
A view with one axis, several, or all reversed.\n\n\
>>> dlpack_rs.asarray([1, 2, 3]).flip().tolist()\n\
[3, 2, 1]\0";
const SQUEEZE: &str = "\
squeeze($self, /, axis=None)\n--\n\n\
A view without an axis of extent 1, without several, or without all of them.\n\n\
>>> dlpack_rs.zeros((1, 3, 1)).squeeze().shape\n\
(3,)\0";
const UNSQUEEZE: &str = "\
unsqueeze($self, /, axis)\n--\n\n\
A view with a new axis of extent 1.\n\n\
>>> dlpack_rs.zeros(3).unsqueeze(-1).shape\n\
(3, 1)\0";
const VIEW: &str = "\
view($self, dtype, /)\n--\n\n\
A view of the same bytes as elements of another type.\n\n\
>>> dlpack_rs.full(2, 1.0).view('uint16').tolist()\n\
[0, 16256, 0, 16256]\0";
const READ_ONLY: &str = "\
read_only($self, /)\n--\n\n\
A view that consumers must not write.\n\n\
>>> dlpack_rs.zeros(3).read_only().readonly\n\
True\0";
const NUMPY: &str = "\
numpy($self, /)\n--\n\n\
A NumPy array of the same memory, with ml_dtypes for dtypes that NumPy lacks.\n\n\
>>> dlpack_rs.zeros(3, 'int8').numpy()\n\
array([0, 0, 0], dtype=int8)\0";
const MEMORYVIEW: &str = "\
memoryview($self, /)\n--\n\n\
A memoryview of the memory, which the CPU must be able to access.\n\n\
>>> dlpack_rs.zeros(3, 'int8').memoryview().nbytes\n\
3\0";
const TOBYTES: &str = "\
tobytes($self, /, order='C')\n--\n\n\
The bytes of the elements without gaps, in the order 'C', 'F', 'A' ('F' if they are \
dense so, else 'C')\n\
or 'K' (that of the strides).\n\n\
>>> dlpack_rs.asarray([1, 2], dtype='int8').tobytes()\n\
b'\\x01\\x02'\0";
const COMPLEX: &str = "\
__complex__($self, /)\n--\n\n\
complex(self), of the only element.\n\n\
>>> complex(dlpack_rs.full(1, 2.0))\n\
(2+0j)\0";
const FLOOR: &str = "\
__floor__($self, /)\n--\n\n\
math.floor(self), of the only element.\n\n\
>>> import math\n\
>>> math.floor(dlpack_rs.full(1, 2.5))\n\
2\0";
const CEIL: &str = "\
__ceil__($self, /)\n--\n\n\
math.ceil(self), of the only element.\n\n\
>>> import math\n\
>>> math.ceil(dlpack_rs.full(1, 2.5))\n\
3\0";
const TOLIST: &str = "\
tolist($self, /)\n--\n\n\
The elements as nested lists of Python's numbers.\n\n\
>>> dlpack_rs.zeros((2, 1), 'bool').tolist()\n\
[[False], [False]]\0";
const ITEM: &str = "\
item($self, /)\n--\n\n\
The only element as a Python number.\n\n\
>>> dlpack_rs.full((1, 1), 7).item()\n\
7\0";

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
    const USE: &str = "cannot be called: use from_dlpack(), asarray(), zeros(), full() or empty()";
    wrong(python, "Tensor", USE);
    null_mut()
}
