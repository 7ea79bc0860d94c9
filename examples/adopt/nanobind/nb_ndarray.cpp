/* nanobind's ndarray on dlpack_rs: it replaces nanobind's src/nb_ndarray.cpp. The parts of that
 * file that do not concern DLPack are kept: run.py extracts them into three files, which are
 * included below. */
#include <nanobind/ndarray.h>
#include <atomic>
#include <cstring>
#include <memory>
#include <dlpack/dlpack_rs.h>
#include "nb_internals.h"

static_assert(sizeof(nanobind::dlpack::dltensor) == sizeof(DLTensor) &&
              sizeof(Py_ssize_t) == sizeof(int64_t), "one layout");

NAMESPACE_BEGIN(NB_NAMESPACE)
NAMESPACE_BEGIN(detail)

struct release_tensor {
    void operator()(DLManagedTensorVersioned *tensor) const { dlrs_release(tensor); }
};
using managed_tensor = std::unique_ptr<DLManagedTensorVersioned, release_tensor>;

/// Raises the matching exception, without the names of C functions.
static PyObject *failed(const dlrs_error &error) {
    dlrs_py_error_options words = DLRS_INIT(dlrs_py_error_options);
    words.prefix = "";
    dlrs_py_error_set_as(&error, &words, nullptr);
    return nullptr;
}

static void release_handle(void *th) { ndarray_dec_ref((ndarray_handle *) th); }

/// The target of an nb::ndarray<..>: a tensor, and the objects that own its elements.
struct ndarray_handle {
    managed_tensor managed;
    PyObject *owner = nullptr, *self = nullptr;
    bool ro = false;
    std::atomic<size_t> refcount{ 0 };

    DLTensor &tensor() { return managed->dl_tensor; }
    uint64_t flags() const { return ro ? DLPACK_FLAG_BITMASK_READ_ONLY : 0; }

    /// A capsule for consumers that reject objects with __dlpack__(): they accept only legacy
    /// tensors.
    template <bool Versioned> PyObject *make_capsule() {
        static_assert(!Versioned, "__dlpack__() gives versioned ones");
        dlrs_error error = DLRS_INIT(dlrs_error);
        DLManagedTensorVersioned *shared = nullptr;
        DLManagedTensor *legacy = nullptr;
        void *capsule = nullptr;
        if (dlrs_tensor_wrap(&tensor(), flags(), release_handle, this, &shared, &error))
            return failed(error);
        ++refcount;
        if (dlrs_to_legacy_take(&shared, DLRS_LEGACY_DROP, &legacy, &error) ||
            dlrs_py_capsule_new_legacy_take(&legacy, &capsule, &error)) {
            dlrs_release(shared);
            dlrs_release_legacy(legacy);
            return failed(error);
        }
        return (PyObject *) capsule;
    }
};

static void nb_ndarray_dealloc(PyObject *self) {
    PyTypeObject *tp = Py_TYPE(self);
    ndarray_dec_ref(((nb_ndarray *) self)->th);
    PyObject_Free(self);
    Py_DECREF(tp);
}

static int nb_ndarray_getbuffer(PyObject *self, Py_buffer *view, int flags) {
    struct layout {
        int64_t strides[64];
        char format[16];
    };
    ndarray_handle *th = ((nb_ndarray *) self)->th;
    const DLTensor &t = th->tensor();
    dlrs_error error = DLRS_INIT(dlrs_error);
    uint64_t item_bits = 0, nbytes = 0;
    int32_t dense = 1;
    view->obj = nullptr; // with every failure

    const char *fault = nullptr;
    if (t.device.device_type != kDLCPU)
        fault = "Only CPU-allocated ndarrays can be accessed via the buffer protocol!";
    else if ((flags & PyBUF_WRITABLE) == PyBUF_WRITABLE && th->ro)
        fault = "Cannot provide writable access to a read-only ndarray!";
    else if (t.dtype.lanes != 1)
        fault = "Cannot convert DLPack dtype into buffer protocol format!";
    scoped_pymalloc<layout> own;
    if (!fault && (dlrs_dtype_format_as(t.dtype, DLRS_NOTATION_PEP3118, own->format,
                                        sizeof(own->format), nullptr, &error) ||
                   dlrs_itemsize_bits(&t, 0, &item_bits, &error) ||
                   dlrs_nbytes(&t, 0, &nbytes, &error) ||
                   dlrs_strides_to_bytes(t.shape, t.strides, t.ndim, (uint32_t) item_bits / 8,
                                         own->strides, &error) ||
                   dlrs_is_contiguous(&t, 'C', &dense, &error))) {
        failed(error);
        return -1;
    }
    if (!dense && (flags & PyBUF_STRIDES) != PyBUF_STRIDES)
        fault = "Cannot provide a contiguous buffer for a non-C-contiguous ndarray!";
    if (fault) {
        PyErr_SetString(PyExc_BufferError, fault);
        return -1;
    }
    view->buf = (char *) t.data + t.byte_offset;
    view->obj = Py_NewRef(self);
    view->len = (Py_ssize_t) nbytes;
    view->itemsize = (Py_ssize_t) item_bits / 8;
    view->readonly = th->ro;
    view->ndim = t.ndim;
    view->format = (flags & PyBUF_FORMAT) == PyBUF_FORMAT ? own->format : nullptr;
    view->shape = (flags & PyBUF_ND) == PyBUF_ND ? (Py_ssize_t *) t.shape : nullptr;
    view->strides =
        (flags & PyBUF_STRIDES) == PyBUF_STRIDES ? (Py_ssize_t *) own->strides : nullptr;
    view->suboffsets = nullptr;
    view->internal = own.release();
    return 0;
}

static void nb_ndarray_releasebuffer(PyObject *, Py_buffer *view) { PyMem_Free(view->internal); }

static PyObject *nb_ndarray_dlpack(PyObject *self, PyObject *const *args, Py_ssize_t nargs,
                                   PyObject *kwnames) {
    ndarray_handle *th = ((nb_ndarray *) self)->th;
    dlrs_error error = DLRS_INIT(dlrs_error);
    dlrs_py_request request = DLRS_INIT(dlrs_py_request);
    void *capsule = nullptr;
    if (nargs != 0) {
        PyErr_SetString(PyExc_TypeError, "__dlpack__() does not accept positional arguments");
        return nullptr;
    }
    if (dlrs_py_request_parse((void *const *) args, nargs, kwnames, &request, &error))
        return failed(error);
    request.stream = nullptr; // nanobind supports none
    if (request.copy == Py_True) { // dlpack_rs would copy
        PyErr_SetString(PyExc_BufferError, "__dlpack__(): copy=True is not supported.");
        return nullptr;
    }
    if (dlrs_py_export_desc(&th->tensor(), th->flags(), self, &request, &capsule, &error)) {
        failed(error);
        if (PyErr_ExceptionMatches(PyExc_TypeError))
            PyErr_SetString(PyExc_TypeError,
                            "max_version must be None or tuple[int, int], and so must dl_device");
    }
    return (PyObject *) capsule;
}

static PyObject *nb_ndarray_dlpack_device(PyObject *self, PyObject *) {
    DLDevice device = ((nb_ndarray *) self)->th->tensor().device;
    return Py_BuildValue("ii", (int) device.device_type, (int) device.device_id);
}

#include "nb_ndarray_type.inc"       // the Python type with these methods
#include "nb_ndarray_frameworks.inc" // detect_framework(), convert_array(), ndarray_check()

/// The tensor of an object, if it has a suitable one; else no exception is pending.
static managed_tensor import(PyObject *src, const ndarray_config &cfg, uint32_t protocols) {
    dlrs_import_options limits = DLRS_INIT(dlrs_import_options);
    limits.device_types = cfg.device_type ? uint64_t(1) << cfg.device_type : 0;
    limits.ranks = cfg.ndim >= 0 && cfg.ndim < 64 ? uint64_t(1) << cfg.ndim : 0;
    dlrs_py_import_options options = DLRS_INIT(dlrs_py_import_options);
    options.flags = DLRS_PY_LEGACY_WRITABLE;
    options.import_options = &limits;
    options.protocols = protocols;
    DLManagedTensorVersioned *managed = nullptr;
    if (dlrs_py_import(src, &options, &managed, nullptr))
        PyErr_Clear();
    else if (!cfg.ro && (managed->flags & DLPACK_FLAG_BITMASK_READ_ONLY)) {
        dlrs_release(managed);
        managed = nullptr;
    }
    return managed_tensor(managed);
}

/// For a read-only consumer, the legacy tensor is requested, which producers create faster.
static managed_tensor import_to_read(nb_internals *p, PyObject *src, const ndarray_config &cfg) {
    object method = cfg.ro ? dlpack_method(p, Py_TYPE(src)) : object();
    if (!method.is_valid())
        return nullptr;
    object capsule = steal(PyObject_CallOneArg(method.ptr(), src));
    if (!capsule.is_valid())
        PyErr_Clear();
    return capsule.is_valid() ? import(capsule.ptr(), cfg, DLRS_PY_CAPSULE) : nullptr;
}

/// As before Python's array API of 2021: TensorFlow's function that creates a capsule.
static managed_tensor import_by_package(nb_internals *p, PyObject *src,
                                        const ndarray_config &cfg) {
    const char *package = importers[detect_framework(p, Py_TYPE(src))].to_dlpack_pkg;
    if (!package)
        return nullptr;
    try {
        object to_dlpack = str_getattr(p, module_::import_(package), "to_dlpack");
        return import(obj_call(p, to_dlpack, handle(src)).ptr(), cfg, DLRS_PY_CAPSULE);
    } catch (...) {
        return nullptr;
    }
}

ndarray_handle *ndarray_import(nb_internals *p, PyObject *src, const ndarray_config *c,
                               bool convert, cleanup_list *cleanup) noexcept {
    const ndarray_config &cfg = *c;
    managed_tensor managed = import_to_read(p, src, cfg);
    if (!managed)
        managed = import(src, cfg, DLRS_PY_DUNDER_DLPACK | DLRS_PY_CAPSULE | DLRS_PY_BUFFER);
    if (!managed && !PyCapsule_CheckExact(src))
        managed = import_by_package(p, src, cfg);
    if (!managed)
        return nullptr;
    const DLTensor &t = managed->dl_tensor;
    for (int32_t i = 0; i < cfg.ndim; ++i)
        if (cfg.shape[i] != -1 && cfg.shape[i] != t.shape[i])
            return nullptr;

    DLDataType dtype = t.dtype;
    if (cfg.dtype != dlpack::dtype())
        std::memcpy(&dtype, &cfg.dtype, sizeof(dtype));
    int32_t dense = 1;
    if (cfg.order && dlrs_is_contiguous(&t, cfg.order, &dense, nullptr))
        return nullptr;
    if (!dense || std::memcmp(&dtype, &t.dtype, sizeof(dtype))) {
        char name[32];
        if (!convert || PyCapsule_CheckExact(src) ||
            (t.dtype.code == kDLComplex && dtype.code != kDLComplex) ||
            dlrs_dtype_format(dtype, name, sizeof(name), nullptr, nullptr))
            return nullptr;
        object converted = convert_array(p, detect_framework(p, Py_TYPE(src)), src, name,
                                         cfg.order ? cfg.order : 'K');
        if (!converted.is_valid())
            return nullptr;
        ndarray_handle *th = ndarray_import(p, converted.ptr(), c, false, nullptr);
        if (th && cleanup)
            cleanup->append(converted.release().ptr());
        return th;
    }

    ndarray_handle *th = new (std::nothrow) ndarray_handle();
    if (th) {
        th->managed = std::move(managed);
        th->self = PyCapsule_CheckExact(src) ? nullptr : Py_NewRef(src);
        th->ro = cfg.ro;
    }
    return th;
}

dlpack::dltensor *ndarray_inc_ref(ndarray_handle *th) noexcept {
    if (!th)
        return nullptr;
    ++th->refcount;
    return (dlpack::dltensor *) &th->tensor();
}

void ndarray_dec_ref(ndarray_handle *th) noexcept {
    if (!th)
        return;
    size_t before = th->refcount--;
    check(before != 0, "ndarray_dec_ref(): reference count became negative!");
    if (before == 1) {
        // Don't run the cleanup if the interpreter has been shut down
        if (cleanup_guard guard{}) {
            Py_XDECREF(th->owner);
            Py_XDECREF(th->self);
            delete th;
        }
    }
}

ndarray_handle *ndarray_create(nb_internals *, const ndarray_create_args *args) {
    dlrs_error error = DLRS_INIT(dlrs_error);
    int64_t strides[64];
    DLTensor t{};
    t.data = args->data;
    t.device = { (DLDeviceType) (args->device_type ? args->device_type : kDLCPU),
                 args->device_id };
    t.ndim = (int32_t) args->ndim;
    std::memcpy(&t.dtype, &args->dtype, sizeof(t.dtype));
    t.shape = (int64_t *) args->shape;
    t.strides = (int64_t *) args->strides;
    t.byte_offset = args->byte_offset;
    DLManagedTensorVersioned *managed = nullptr;
    dlrs_status status = DLRS_OK;
    if (!t.strides && args->order == 'F') {
        status = dlrs_compact_strides(t.shape, t.ndim, 'F', strides, &error);
        t.strides = strides;
    }
    if (!status)
        status = dlrs_tensor_wrap(&t, 0, nullptr, nullptr, &managed, &error);
    if (status)
        raise("ndarray_create(): %s", error.message);
    ndarray_handle *th = new ndarray_handle();
    th->managed.reset(managed);
    th->owner = Py_XNewRef(args->owner);
    th->ro = args->ro;
    return th;
}

#include "nb_ndarray_exports.inc" // ndarray_export(): the object for each framework

NAMESPACE_END(detail)
NAMESPACE_END(NB_NAMESPACE)
