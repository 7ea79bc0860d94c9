//! The functions and methods, whose docstrings stand with them (`method!`), and the documentation
//! of the module and the type. Their examples are run as tests.

use super::failure::{slot, wrong};
use super::spec::MethodDef;
use super::{copies, exchange, makes, numpy, pickles, scalars, values, views, writes};
use crate::python::{Owned, PyObject};

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
    exchange::from_dlpack(),
    makes::asarray(),
    makes::from_numpy(),
    makes::empty(),
    makes::zeros(),
    makes::full(),
    MethodDef::END,
];

/// Methods of the type.
pub static METHODS: [MethodDef; 35] = [
    MethodDef::new("__dlpack__\0", exchange::dlpack, DLPACK.as_bytes()),
    exchange::__dlpack_device__(),
    numpy::__array__(),
    pickles::__copy__(),
    pickles::__deepcopy__(),
    pickles::__reduce_ex__(),
    pickles::_rebuild().of_type(),
    copies::copy(),
    copies::contiguous(),
    copies::is_contiguous(),
    copies::to(),
    makes::astype(),
    writes::fill(),
    writes::copy_from(),
    writes::equal(),
    writes::max_diff(),
    views::reshape(),
    views::broadcast_to(),
    views::permute(),
    views::transpose(),
    views::swapaxes(),
    views::flip(),
    views::squeeze(),
    views::unsqueeze(),
    views::view(),
    views::read_only(),
    numpy::numpy(),
    values::memoryview(),
    pickles::tobytes(),
    scalars::__complex__(),
    scalars::__floor__(),
    scalars::__ceil__(),
    values::tolist(),
    values::item(),
    MethodDef::END,
];

const DLPACK: &str = "\
__dlpack__($self, /, *, stream=None, max_version=None, dl_device=None, copy=None)\n--\n\n\
A capsule with the tensor, for a consumer's from_dlpack.\n\n\
>>> 'dltensor_versioned' in str(dlpack_rs.zeros(3).__dlpack__(max_version=(1, 0)))\n\
True\0";

slot!(
    /// `tp_new`: there is no tensor without memory.
    refuse_new, "Tensor",
    |this, _arguments: *mut PyObject, _keywords: *mut PyObject| -> Owned {
        const USE: &str =
            "cannot be called: use from_dlpack(), asarray(), zeros(), full() or empty()";
        Err(wrong(this.python, "Tensor", USE))
    }
);
