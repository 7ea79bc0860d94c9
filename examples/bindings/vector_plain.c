/* A C extension with DLPack in both directions and the exchange API: a type of vectors of float64.
 * No C++ and no binding library. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <dlpack/dlpack_rs.h>

typedef struct {
  PyObject_HEAD
  double *data;
  int64_t count, stride; /* in elements */
  PyObject *base;        /* the data's owner; NULL: the vector */
} Vector;
static PyTypeObject *type;

static void *failed(const dlrs_error *error) {
  static const dlrs_py_error_options words = {sizeof words, 0, NULL, "vector_plain: "};
  dlrs_py_error_set_as(error, &words, NULL);
  return NULL;
}

/* A vector as a DLPack tensor. */
static DLTensor described(Vector *v) {
  return (DLTensor){.data = v->data, .device = {kDLCPU, 0}, .ndim = 1, .dtype = {kDLFloat, 64, 1},
                    .shape = &v->count, .strides = &v->stride};
}

/* The tensors that a vector accepts. */
static dlrs_import_options wanted(void) {
  static const DLDataType float64 = {kDLFloat, 64, 1};
  return (dlrs_import_options){.struct_size = sizeof(dlrs_import_options), .writable = 1,
                               .device_types = 1U << kDLCPU, .ranks = 1U << 1,
                               .dtypes = &float64, .dtypes_count = 1};
}

static Vector *new_vector(double *data, int64_t count, int64_t stride, PyObject *base) {
  Vector *v = (Vector *)type->tp_alloc(type, 0);
  if (v != NULL) v->data = data, v->count = count, v->stride = stride, v->base = base;
  return v;
}

/* A vector over a tensor, of which it takes ownership. */
static Vector *vector_over(DLManagedTensorVersioned *tensor) {
  dlrs_error error;
  error.struct_size = sizeof error;
  const DLTensor t = tensor->dl_tensor;
  const int64_t count = t.shape[0], stride = t.strides[0];
  void *base = NULL;
  if (dlrs_py_holder_new_take(&tensor, "vector_plain.base", &base, &error) != DLRS_OK) {
    dlrs_release(tensor);
    return failed(&error);
  }
  Vector *v = new_vector((double *)((char *)t.data + t.byte_offset), count, stride, base);
  if (v == NULL) Py_DECREF((PyObject *)base);
  return v;
}

static PyObject *vector_dlpack(PyObject *self, PyObject *const *args, Py_ssize_t nargs,
                               PyObject *kwnames) {
  dlrs_error error;
  error.struct_size = sizeof error;
  dlrs_py_request request = {.struct_size = sizeof request};
  const DLTensor tensor = described((Vector *)self);
  void *capsule = NULL;
  if (dlrs_py_request_parse((void *const *)args, nargs, kwnames, &request, &error) != DLRS_OK ||
      dlrs_py_export_desc(&tensor, 0, self, &request, &capsule, &error) != DLRS_OK)
    return failed(&error);
  return capsule;
}

static PyObject *vector_device(PyObject *self, PyObject *unused) {
  (void)self, (void)unused;
  return Py_BuildValue("ii", kDLCPU, 0);
}

static PyObject *from_dlpack(PyObject *module, PyObject *object) {
  (void)module;
  dlrs_error error;
  error.struct_size = sizeof error;
  const dlrs_import_options limits = wanted();
  const dlrs_py_import_options options = {
      .struct_size = sizeof options, .import_options = &limits,
      .protocols = DLRS_PY_EXCHANGE_API | DLRS_PY_DUNDER_DLPACK};
  DLManagedTensorVersioned *tensor = NULL;
  if (dlrs_py_import(object, &options, &tensor, &error) != DLRS_OK) return failed(&error);
  return (PyObject *)vector_over(tensor);
}

/* The exchange API: the same for consumers in C, without a Python call. */
static int to_managed(void *object, DLManagedTensorVersioned **out) {
  dlrs_error error;
  error.struct_size = sizeof error;
  const DLTensor tensor = described(object);
  if (dlrs_py_wrap(&tensor, 0, object, out, &error) == DLRS_OK) return 0;
  failed(&error);
  return -1;
}
static int to_object(DLManagedTensorVersioned *tensor, void **out) {
  dlrs_error error;
  error.struct_size = sizeof error;
  const dlrs_import_options limits = wanted();
  DLManagedTensorVersioned *ours = NULL;
  if (dlrs_import_take(&tensor, &limits, &ours, &error) != DLRS_OK) return failed(&error), -1;
  *out = vector_over(ours);
  return *out != NULL ? 0 : -1;
}
static int borrow(void *object, DLTensor *out) {
  *out = described(object);
  return 0;
}
static int work_stream(DLDeviceType device, int32_t id, void **out) {
  (void)device, (void)id;
  *out = NULL;
  return 0;
}
static DLPackExchangeAPI api = {{{DLPACK_MAJOR_VERSION, DLPACK_MINOR_VERSION}, NULL},
                                dlrs_managed_tensor_allocator,
                                to_managed,
                                to_object,
                                borrow,
                                work_stream};

static PyObject *zeros(PyObject *module, PyObject *count) {
  (void)module;
  const long long n = PyLong_AsLongLong(count);
  if (n < 0) return PyErr_Occurred() ? NULL : PyErr_Format(PyExc_ValueError, "count: %R", count);
  double *data = PyMem_Calloc((size_t)n + 1, sizeof *data);
  if (data == NULL) return PyErr_NoMemory();
  Vector *v = new_vector(data, n, 1, NULL);
  if (v == NULL) PyMem_Free(data);
  return (PyObject *)v;
}
static void dealloc(PyObject *self) {
  Vector *v = (Vector *)self;
  PyTypeObject *its_type = Py_TYPE(self);
  if (v->base == NULL) PyMem_Free(v->data);
  Py_XDECREF(v->base);
  its_type->tp_free(self);
  Py_DECREF((PyObject *)its_type);
}
static PyMethodDef methods[] = {
    {"__dlpack__", (PyCFunction)(void (*)(void))vector_dlpack, METH_FASTCALL | METH_KEYWORDS, NULL},
    {"__dlpack_device__", vector_device, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL}};
static PyMethodDef functions[] = {{"zeros", zeros, METH_O, NULL},
                                  {"from_dlpack", from_dlpack, METH_O, NULL},
                                  {NULL, NULL, 0, NULL}};
static PyType_Slot slots[] = {{Py_tp_dealloc, dealloc}, {Py_tp_methods, methods}, {0, NULL}};
static PyType_Spec spec = {"vector_plain.Vector", sizeof(Vector), 0, Py_TPFLAGS_DEFAULT, slots};
static PyModuleDef module = {.m_base = PyModuleDef_HEAD_INIT, .m_name = "vector_plain",
                             .m_size = -1, .m_methods = functions};

PyMODINIT_FUNC PyInit_vector_plain(void) {
  PyObject *m = PyModule_Create(&module);
  PyObject *capsule = PyCapsule_New(&api, "dlpack_exchange_api", NULL);
  type = (PyTypeObject *)PyType_FromSpec(&spec);
  if (m == NULL || capsule == NULL || type == NULL ||
      PyObject_SetAttrString((PyObject *)type, "__dlpack_c_exchange_api__", capsule) != 0 ||
      PyObject_SetAttrString(m, "Vector", (PyObject *)type) != 0)
    Py_CLEAR(m);
  Py_XDECREF(capsule);
  return m;
}
