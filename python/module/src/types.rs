//! The functions of the module, and its types, which are made once per interpreter and kept in its
//! record. Docstrings stand with the methods (`method!`); their examples are run as tests.

use core::ffi::{CStr, c_void};
use core::ptr::null;

use super::failure::refuse_new;
use super::spec::*;
use super::{
    attributes, copies, dlpack, keys, makes, numpy, pickles, scalars, tensor, values, views,
    workers, writes,
};
use crate::abi::DLPackExchangeAPI;
use crate::error::Result;
use dlpack_python::capsule::EXCHANGE_API;
use dlpack_python::{Object, Owned, Python, home, raised, required};

pub const MODULE: &str = "\
DLPack tensors of any producer, and copies of them.\n\
\n\
A dtype is the name of its type: 'float32', 'bfloat16', 'float8_e4m3fn', 'bool', 'float32x4'; \
or\n\
the type of NumPy, ml_dtypes, PyTorch or Python that has that name, as np.float32 and int.\n\
A device is its name: 'cpu', 'cuda:0', 'rocm:1'; or what has that name as its text, as\n\
torch.device('cuda:0'); or the pair (type, id) of __dlpack_device__.\0";

pub const TENSOR: &str = "\
A tensor in shared memory. Made by from_dlpack, asarray, zeros, full and empty.\n\
\n\
Any library imports it by its own from_dlpack. Views share memory and keep it alive. int(),\n\
float(), complex() and bool() return the value of a tensor with one element. There is no\n\
arithmetic, no ==, no in and no hash. The garbage collector finds a cycle through a buffer or an\n\
array interface, if nothing else holds the tensor. It cannot look into a capsule of another\n\
library: a cycle through a __dlpack__ is never collected.\0";

pub static FUNCTIONS: [MethodDef; 8] = [
    dlpack::from_dlpack(),
    makes::asarray(),
    makes::from_numpy(),
    makes::empty(),
    makes::zeros(),
    makes::full(),
    workers::_workers(),
    MethodDef::END,
];

pub static METHODS: [MethodDef; 38] = [
    MethodDef::new("__dlpack__\0", dlpack::dlpack, DLPACK.as_bytes()),
    dlpack::__dlpack_device__(),
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
    scalars::__trunc__(),
    scalars::__round__(),
    scalars::__format__(),
    values::tolist(),
    values::item(),
    MethodDef::END,
];

const DLPACK: &str = "\
__dlpack__($self, /, *, stream=None, max_version=None, dl_device=None, copy=None)\n--\n\n\
A capsule with the tensor, for a consumer's from_dlpack.\n\n\
>>> 'dltensor_versioned' in str(dlpack_rs.zeros(3).__dlpack__(max_version=(1, 0)))\n\
True\0";

/// The type `Tensor` of this interpreter, borrowed; `api` goes to it when it is made.
pub fn tensor(python: Python, api: &'static DLPackExchangeAPI) -> Result<Object<'static>> {
    home::here(python)?.tensor.get(|| tensor_type(python, api))
}

fn tensor_type(python: Python, api: &'static DLPackExchangeAPI) -> Result<Owned> {
    let members = [
        MemberDef {
            name: c"__weaklistoffset__".as_ptr(),
            kind: T_PYSSIZET,
            offset: tensor::weak_list_offset() as isize,
            flags: READONLY,
            doc: null(),
        },
        MemberDef::END,
    ];
    // The function pointers of a list of slots are data to C.
    let slots = [
        TypeSlot::new(Slot::tp_dealloc, tensor::dealloc as *const c_void),
        TypeSlot::new(Slot::tp_traverse, tensor::traverse as *const c_void),
        TypeSlot::new(Slot::tp_new, refuse_new as *const c_void),
        TypeSlot::new(Slot::tp_repr, values::repr as *const c_void),
        TypeSlot::new(Slot::tp_doc, TENSOR.as_ptr().cast()),
        TypeSlot::new(Slot::tp_methods, (&raw const METHODS).cast()),
        TypeSlot::new(Slot::tp_getset, (&raw const attributes::ATTRIBUTES).cast()),
        TypeSlot::new(Slot::tp_members, members.as_ptr().cast()),
        TypeSlot::new(Slot::mp_subscript, keys::subscript as *const c_void),
        TypeSlot::new(Slot::mp_ass_subscript, keys::assign_subscript as *const c_void),
        TypeSlot::new(Slot::mp_length, keys::length as *const c_void),
        TypeSlot::new(Slot::sq_length, keys::length as *const c_void),
        TypeSlot::new(Slot::sq_item, keys::item as *const c_void),
        // If one of these is missing Python uses another, with a wrong value.
        TypeSlot::new(Slot::tp_iter, keys::iterate as *const c_void),
        TypeSlot::new(Slot::sq_contains, scalars::contains as *const c_void),
        TypeSlot::new(Slot::nb_bool, scalars::truth as *const c_void),
        TypeSlot::new(Slot::nb_int, scalars::int as *const c_void),
        TypeSlot::new(Slot::nb_index, scalars::index as *const c_void),
        TypeSlot::new(Slot::nb_float, scalars::float as *const c_void),
        TypeSlot::new(Slot::tp_richcompare, scalars::compare as *const c_void),
        TypeSlot::END,
    ];
    let kind = tensor::new_type(python, c"dlpack_rs.Tensor", &slots)?;
    // SAFETY: a type that nobody else has seen; the table lives for ever.
    unsafe {
        let api = (&raw const *api).cast_mut().cast();
        let api = required(python.PyCapsule_New(api, EXCHANGE_API.as_ptr(), None));
        set(python, kind.object(), c"__dlpack_c_exchange_api__", api?)?;
    }
    Ok(kind)
}

pub fn set(python: Python, object: Object, name: &CStr, value: Owned) -> Result<()> {
    // SAFETY: live objects, and `name` ends with NUL.
    match unsafe { python.PyObject_SetAttrString(object, name.as_ptr(), value.object()) } {
        0 => Ok(()),
        _ => Err(raised()),
    }
}
