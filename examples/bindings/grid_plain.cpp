// grid::Array as a type of CPython's C API, without a binding library.
#include <dlpack/dlpack_rs_python.hpp>

#include "grid_dlpack.hpp"

namespace dp = dlpack_rs::python;
using grid::Array;

namespace {
struct Object {
  PyObject_HEAD
  Array array;
};
PyTypeObject *type;

// The headers need for the type: the value of an object, and an object of a value.
struct P {
  static const Array *get(PyObject *object) noexcept {
    if (Py_TYPE(object) == type) return &reinterpret_cast<Object *>(object)->array;
    PyErr_SetString(PyExc_TypeError, "a grid_plain.Array is needed");
    return nullptr;
  }
  static PyObject *make(Array &&array) noexcept {
    PyObject *object = type->tp_alloc(type, 0);
    if (object) new (&reinterpret_cast<Object *>(object)->array) Array(std::move(array));
    return object;
  }
};

void dealloc(PyObject *object) {
  PyTypeObject *its_type = Py_TYPE(object);
  reinterpret_cast<Object *>(object)->array.~Array();
  its_type->tp_free(object);
  Py_DECREF(reinterpret_cast<PyObject *>(its_type));
}
PyObject *new_(PyTypeObject *, PyObject *args, PyObject *) {
  long long rows = 0, columns = 0;
  if (!PyArg_ParseTuple(args, "LL", &rows, &columns)) return nullptr;
  return dp::guarded([&] { return P::make(Array::range({rows, columns})); });
}
PyObject *sum(PyObject *object, PyObject *) { return PyFloat_FromDouble(P::get(object)->sum()); }

PyMethodDef methods[] = {dp::dunder_dlpack_def<Array, P>(),
                         dp::dunder_dlpack_device_def<Array, P>(),
                         {"sum", sum, METH_NOARGS, nullptr},
                         {nullptr, nullptr, 0, nullptr}};
PyMethodDef functions[] = {dp::from_dlpack_def<Array, P>(), {nullptr, nullptr, 0, nullptr}};
PyType_Slot slots[] = {{Py_tp_new, reinterpret_cast<void *>(new_)},
                       {Py_tp_dealloc, reinterpret_cast<void *>(dealloc)},
                       {Py_tp_methods, methods},
                       {0, nullptr}};
PyType_Spec spec = {"grid_plain.Array", sizeof(Object), 0, Py_TPFLAGS_DEFAULT, slots};
PyModuleDef module = {PyModuleDef_HEAD_INIT, "grid_plain", nullptr, -1, functions,
                      nullptr, nullptr, nullptr, nullptr};
}  // namespace

PyMODINIT_FUNC PyInit_grid_plain() {
  type = reinterpret_cast<PyTypeObject *>(PyType_FromSpec(&spec));
  PyObject *m = type ? PyModule_Create(&module) : nullptr;
  if (!m || dp::ExchangeApi<Array, P>::install(reinterpret_cast<PyObject *>(type)) != 0 ||
      PyObject_SetAttrString(m, "Array", reinterpret_cast<PyObject *>(type)) != 0)
    Py_CLEAR(m);
  return m;
}
