/* NumPy's DLPack support on dlpack_rs: it replaces numpy/_core/src/multiarray/dlpack.c and defines
 * the functions of npy_dlpack.h. */
#define NPY_NO_DEPRECATED_API NPY_API_VERSION
#define _MULTIARRAYMODULE
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <dlpack/dlpack_rs.h> /* first: its dlpack.h is newer than NumPy's */

#include "numpy/arrayobject.h"
#include "npy_argparse.h"
#include "npy_dlpack.h"
#include "npy_pycompat.h"
#include "npy_static_data.h"
#include "conversion_utils.h"

/* NumPy's shapes are npy_intp, DLPack's int64_t; where these differ they would have to be
 * copied. */
_Static_assert(sizeof(npy_intp) == sizeof(int64_t), "a 64-bit platform");

/* The base of an array from another library: a capsule with this name. */
static const char BASE[] = "numpy_dlpack_rs";
#define ON_HOST (1U << kDLCPU | 1U << kDLCUDAHost | 1U << kDLROCMHost | 1U << kDLCUDAManaged)

/* Raises the exceptions that NumPy's users expect, without the names of C functions. */
static PyObject *
failed(const dlrs_error *error)
{
    static const dlrs_py_error_options words = {sizeof words, 0, NULL, ""};
    if (error->status == DLRS_STREAM) {
        PyErr_SetString(PyExc_ValueError, "NumPy only supports stream=None.");
    }
    else {
        dlrs_py_error_set_as(error, &words, NULL);
    }
    return NULL;
}

/* The dtype of one of NumPy's numbers or of a registered descriptor; negative with an exception. */
static int
export_dtype(PyArray_Descr *descr, DLDataType *dtype)
{
    dlrs_error error;
    error.struct_size = sizeof error;
    const int type = descr->type_num; /* negative for a user's DType */
    if (type >= 0 && PyTypeNum_ISNUMBER(type)) {
        const uint32_t size = (uint32_t)PyDataType_ELSIZE(descr);
        return dlrs_dtype_from_kind(descr->kind, size, dtype, &error) ? failed(&error), -1 : 0;
    }
    PyObject *pair = NULL;
    const int found = PyDict_GetItemRef(npy_static_pydata.dlpack_export_registry,
                                        (PyObject *)descr, &pair);
    if (found > 0) { /* its numbers were checked when it was registered */
        *dtype = (DLDataType){(uint8_t)PyLong_AsLong(PyTuple_GET_ITEM(pair, 0)),
                              (uint8_t)PyLong_AsLong(PyTuple_GET_ITEM(pair, 1)), 1};
        Py_DECREF(pair);
    }
    else if (found == 0) {
        PyErr_SetString(PyExc_BufferError,
                        "DLPack only supports signed/unsigned integers, float and complex dtypes "
                        "(or dtypes registered by third-party packages).");
    }
    return found - 1;
}

/* A new reference to NumPy's or the registered descriptor of a dtype; NULL with an exception. */
static PyArray_Descr *
import_dtype(DLDataType dtype)
{
    dlrs_error error;
    error.struct_size = sizeof error;
    int32_t kind;
    uint32_t size;
    PyObject *descr = NULL;
    if (dlrs_dtype_to_kind(dtype, &kind, &size, &error) == DLRS_OK) {
        return PyArray_DescrFromType(PyArray_TypestrConvert((int)size, kind));
    }
    PyObject *pair = Py_BuildValue("(ii)", dtype.code, dtype.bits);
    if (pair != NULL) {
        int found = dtype.lanes != 1 ? 0 : PyDict_GetItemRef(
                npy_static_pydata.dlpack_dtype_registry, pair, &descr);
        Py_DECREF(pair);
        if (found == 0) {
            failed(&error);
        }
    }
    return (PyArray_Descr *)descr;
}

static DLDevice
device_of(PyArrayObject *self)
{
    PyObject *base = PyArray_BASE(self);
    while (base != NULL && PyArray_Check(base)) {
        base = PyArray_BASE((PyArrayObject *)base);
    }
    const DLManagedTensorVersioned *held = dlrs_py_holder_get(base, BASE);
    return held != NULL ? held->dl_tensor.device : (DLDevice){kDLCPU, 0};
}

NPY_NO_EXPORT PyObject *
array_dlpack_device(PyArrayObject *self, PyObject *NPY_UNUSED(args))
{
    DLDevice device = device_of(self);
    return Py_BuildValue("ii", (int)device.device_type, (int)device.device_id);
}

NPY_NO_EXPORT PyObject *
array_dlpack(PyArrayObject *self, PyObject *const *args, Py_ssize_t len_args, PyObject *kwnames)
{
    dlrs_error error;
    error.struct_size = sizeof error;
    dlrs_py_request request;
    request.struct_size = sizeof request;
    void *capsule = NULL;
    int64_t strides[NPY_MAXDIMS];
    DLTensor tensor = {.data = PyArray_DATA(self), .device = device_of(self), .strides = strides,
                       .shape = (int64_t *)PyArray_SHAPE(self), .ndim = PyArray_NDIM(self)};
    const uint64_t flags = PyArray_ISWRITEABLE(self) ? 0 : DLPACK_FLAG_BITMASK_READ_ONLY;
    if (!PyArray_ISNOTSWAPPED(self)) {
        PyErr_SetString(PyExc_BufferError, "DLPack only supports native byte order.");
        return NULL;
    }
    if (dlrs_py_request_parse((void *const *)args, len_args, kwnames, &request, &error)) {
        return failed(&error);
    }
    if (export_dtype(PyArray_DESCR(self), &tensor.dtype) < 0) {
        return NULL;
    }
    if (dlrs_strides_from_bytes(tensor.shape, (const int64_t *)PyArray_STRIDES(self), tensor.ndim,
                                (uint32_t)PyArray_ITEMSIZE(self), strides, &error) ||
        dlrs_py_export_desc(&tensor, flags, self, &request, &capsule, &error)) {
        return failed(&error);
    }
    return capsule;
}

/* An array over a tensor, of which it takes ownership. */
static PyObject *
array_over(DLManagedTensorVersioned *managed)
{
    dlrs_error error;
    error.struct_size = sizeof error;
    const DLTensor t = managed->dl_tensor;
    const int flags = managed->flags & DLPACK_FLAG_BITMASK_READ_ONLY ? 0 : NPY_ARRAY_WRITEABLE;
    int64_t strides[NPY_MAXDIMS];
    void *base = NULL;
    PyArray_Descr *descr = import_dtype(t.dtype);
    if (descr == NULL) {
        dlrs_release(managed);
        return NULL;
    }
    if (dlrs_strides_to_bytes(t.shape, t.strides, t.ndim, (uint32_t)PyDataType_ELSIZE(descr),
                              strides, &error) ||
        dlrs_py_holder_new_take(&managed, BASE, &base, &error)) {
        Py_DECREF(descr);
        dlrs_release(managed);
        return failed(&error);
    }
    PyObject *array = PyArray_NewFromDescr(
            &PyArray_Type, descr, t.ndim, (npy_intp *)t.shape, (npy_intp *)strides,
            (char *)t.data + t.byte_offset, flags, NULL);
    if (array == NULL) {
        Py_DECREF((PyObject *)base);
    }
    else if (PyArray_SetBaseObject((PyArrayObject *)array, base) < 0) { /* takes base in any case */
        Py_CLEAR(array);
    }
    return array;
}

NPY_NO_EXPORT PyObject *
from_dlpack(PyObject *NPY_UNUSED(self), PyObject *const *args, Py_ssize_t len_args,
            PyObject *kwnames)
{
    PyObject *obj, *copy = Py_None, *device = Py_None;
    NPY_DEVICE cpu = NPY_DEVICE_CPU;
    NPY_PREPARE_ARGPARSER;
    if (npy_parse_arguments("from_dlpack", args, len_args, kwnames, {"obj", NULL, &obj},
                            {"$copy", NULL, &copy}, {"$device", NULL, &device}) < 0 ||
        !PyArray_DeviceConverterOptional(device, &cpu)) {
        return NULL;
    }
    dlrs_error error;
    error.struct_size = sizeof error;
    const dlrs_import_options limits = { /* the register may have dtypes that DLPack has not */
            .struct_size = sizeof limits, .level = DLRS_LEVEL_LAYOUT, .device_types = ON_HOST};
    const dlrs_py_import_options options = {
            .struct_size = sizeof options, .import_options = &limits, .copy = copy,
            .protocols = DLRS_PY_DUNDER_DLPACK,
            .dl_device = {device != Py_None ? kDLCPU : 0, 0}};
    DLManagedTensorVersioned *managed = NULL;
    return dlrs_py_import(obj, &options, &managed, &error) ? failed(&error) : array_over(managed);
}

NPY_NO_EXPORT PyObject *
_register_dlpack_dtype(PyObject *NPY_UNUSED(self), PyObject *args)
{
    long code, bits;
    PyObject *descr, *exported = NULL, *imported = NULL;
    if (!PyArg_ParseTuple(args, "(ll)O!:register_dlpack_dtype", &code, &bits, &PyArrayDescr_Type,
                          &descr)) {
        return NULL;
    }
    const npy_intp size = PyDataType_ELSIZE((PyArray_Descr *)descr);
    if (code < 0 || code > 255 || size > 255 / 8 || size * 8 != bits) {
        PyErr_SetString(PyExc_ValueError,
                        "register_dlpack_dtype: DLPack code must be in 0..255, and the number of "
                        "bits must match the dtype's elsize and be <=255.");
        return NULL;
    }
    PyObject *pair = Py_BuildValue("(ll)", code, bits);
    if (pair == NULL || PyDict_SetDefaultRef(npy_static_pydata.dlpack_export_registry, descr, pair,
                                             &exported) < 0) {
        Py_XDECREF(pair);
        return NULL;
    }
    const int same = PyObject_RichCompareBool(exported, pair, Py_EQ);
    if (same == 0) {
        PyErr_SetString(PyExc_ValueError,
                        "register_dlpack_dtype: this NumPy dtype is already exported with a "
                        "different DLPack (code, bits).");
    }
    else if (same > 0 && PyDict_SetDefaultRef(npy_static_pydata.dlpack_dtype_registry, pair, descr,
                                              &imported) >= 0 && imported != descr) {
        PyErr_Format(PyExc_ValueError,
                     "register_dlpack_dtype: the same (code, bits) already maps to a %R which is "
                     "not identical (it may be equal). The dtype->(code, bits) was, however, "
                     "established.", imported);
    }
    Py_DECREF(pair);
    Py_XDECREF(exported);
    Py_XDECREF(imported);
    return PyErr_Occurred() ? NULL : Py_NewRef(Py_None);
}

NPY_NO_EXPORT PyObject *
_dlpack_registry_replace(PyObject *NPY_UNUSED(self), PyObject *args)
{
    PyObject **imports = &npy_static_pydata.dlpack_dtype_registry, *new_imports;
    PyObject **exports = &npy_static_pydata.dlpack_export_registry, *new_exports;
    if (!PyArg_ParseTuple(args, "O!O!: _dlpack_registry_replace", &PyDict_Type, &new_imports,
                          &PyDict_Type, &new_exports)) {
        return NULL;
    }
    PyObject *old = PyTuple_Pack(2, *imports, *exports);
    if (old != NULL) {
        Py_SETREF(*imports, Py_NewRef(new_imports));
        Py_SETREF(*exports, Py_NewRef(new_exports));
    }
    return old;
}
