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
    static const dlrs_py_kind kinds[] = {{DLRS_STREAM, DLRS_FIELD_NONE, "RuntimeError"}};
    static const dlrs_py_error_options words = {sizeof words, 1, kinds, ""};
    dlrs_py_error_set_as(error, &words, NULL);
    return NULL;
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
    const uint32_t size = (uint32_t)PyArray_ITEMSIZE(self);
    if (!PyArray_ISNOTSWAPPED(self)) {
        PyErr_SetString(PyExc_BufferError, "DLPack only supports native byte order.");
        return NULL;
    }
    if (dlrs_py_request_parse((void *const *)args, len_args, kwnames, &request, &error) ||
        dlrs_dtype_from_kind(PyArray_DESCR(self)->kind, size, &tensor.dtype, &error) ||
        dlrs_strides_from_bytes(tensor.shape, (const int64_t *)PyArray_STRIDES(self), tensor.ndim,
                                size, strides, &error) ||
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
    int32_t kind;
    uint32_t size;
    void *base = NULL;
    if (dlrs_dtype_to_kind(t.dtype, &kind, &size, &error) ||
        dlrs_strides_to_bytes(t.shape, t.strides, t.ndim, size, strides, &error) ||
        dlrs_py_holder_new_take(&managed, BASE, &base, &error)) {
        dlrs_release(managed);
        return failed(&error);
    }
    PyObject *array = PyArray_NewFromDescr(
            &PyArray_Type, PyArray_DescrFromType(PyArray_TypestrConvert((int)size, kind)), t.ndim,
            (npy_intp *)t.shape, (npy_intp *)strides, (char *)t.data + t.byte_offset, flags, NULL);
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
    if (npy_parse_arguments("from_dlpack", args, len_args, kwnames, "obj", NULL, &obj,
                            "$copy", NULL, &copy, "$device", NULL, &device, NULL, NULL, NULL) < 0 ||
        !PyArray_DeviceConverterOptional(device, &cpu)) {
        return NULL;
    }
    dlrs_error error;
    error.struct_size = sizeof error;
    const dlrs_import_options limits = {.struct_size = sizeof limits, .device_types = ON_HOST};
    const dlrs_py_import_options options = {
            .struct_size = sizeof options, .import_options = &limits, .copy = copy,
            .protocols = DLRS_PY_DUNDER_DLPACK,
            .dl_device = {device != Py_None ? kDLCPU : 0, 0}};
    DLManagedTensorVersioned *managed = NULL;
    return dlrs_py_import(obj, &options, &managed, &error) ? failed(&error) : array_over(managed);
}
