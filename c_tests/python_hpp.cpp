// A Python extension that calls the functions of dlpack_rs_python.hpp that its examples leave out:
// private capsules, memory of Python objects, exceptions, adapters that return a Result.
// PYTHON_HPP_MODULE is its name: it is built with exceptions and without.
#include <dlpack/dlpack_rs_python.hpp>

namespace dp = dlpack_rs::python;
using dlpack_rs::Error;
using dlpack_rs::Result;
using dlpack_rs::Tensor;

namespace {
const char name[] = "python_hpp.base";
const dlrs_py_kind kinds[] = {{DLRS_READ_ONLY, DLRS_FIELD_NONE, "PermissionError"}};

dp::ErrorOptions words() {
  dp::ErrorOptions out;
  out.kinds = kinds;
  out.kinds_count = 1;
  out.prefix = "mine: ";
  return out;
}

// A number, which an adapter without exceptions converts to a tensor.
struct Number {
  int64_t value;
};
}  // namespace

template <>
struct dlpack_rs::adapter<Number> {
  static Result<nothrow::Tensor> to_dlpack(const Number &n) {
    if (n.value == 0) return Result<nothrow::Tensor>(nothrow::Tensor());
    if (n.value < 0) return Error(DLRS_BAD_ARG, "a negative number");
    auto out = nothrow::Tensor::make<int64_t>({n.value});
    return out;
  }
  static Result<Number> from_dlpack(Tensor tensor) {
    if (tensor.ndim() != 1) return Error(DLRS_NDIM, "a number has one dimension");
    return Number{tensor.shape(0)};
  }
};

namespace {
// Python's int is the type of a Number.
struct P {
  static const Number *get(PyObject *object) noexcept {
    static Number number;
    number.value = PyLong_AsLongLong(object);
    return PyErr_Occurred() ? nullptr : &number;
  }
  static PyObject *make(Number &&number) noexcept { return PyLong_FromLongLong(number.value); }
  static void *work_stream(DLDevice) noexcept { return nullptr; }
};

PyObject *private_capsule(PyObject *, PyObject *object) {
  Tensor tensor = dp::from_dlpack(object);
  return tensor ? dp::holder(std::move(tensor), name) : nullptr;
}
// A capsule with a DLPack name is rejected, and the tensor is unchanged.
PyObject *private_capsule_of_dlpack(PyObject *, PyObject *object) {
  Tensor tensor = dp::from_dlpack(object);
  PyObject *made = tensor ? dp::holder(std::move(tensor), "dltensor") : nullptr;
  if (made || !tensor) Py_FatalError("a private capsule by the name of DLPack's capsules");
  return made;
}
PyObject *ndim_of_held(PyObject *, PyObject *object) {
  const dlpack_rs::TensorView view = dp::holder_view(object, name);
  if (!view && PyErr_Occurred()) Py_FatalError("holder_view set an exception");
  return PyLong_FromLong(view ? view.ndim() : -1);
}
PyObject *wrap_bytes(PyObject *, PyObject *bytes) {
  const auto *data = reinterpret_cast<const uint8_t *>(PyBytes_AsString(bytes));
  const int64_t count = PyBytes_Size(bytes);
  const dlpack_rs::Described<1> memory(data, {count});
  Tensor tensor = dp::wrap(memory, bytes);
  return tensor ? dp::object(std::move(tensor)) : nullptr;
}
PyObject *dlpack_of_bytes(PyObject *, PyObject *args) {
  PyObject *bytes, *version;
  if (!PyArg_ParseTuple(args, "SO", &bytes, &version)) return nullptr;
  const auto *data = reinterpret_cast<const uint8_t *>(PyBytes_AsString(bytes));
  const dlpack_rs::Described<1> memory(data, {static_cast<int64_t>(PyBytes_Size(bytes))});
  return dp::dunder_dlpack(memory, bytes, dp::request(nullptr, version, nullptr, nullptr), words());
}
PyObject *dlpack_of_nothing(PyObject *, PyObject *owner) {
  return dp::dunder_dlpack(dlpack_rs::TensorView(), owner, dp::Request());
}
PyObject *dlpack_of_number(PyObject *, PyObject *number) {
  const Tensor tensor = dp::tensor_of<Number, P>(*P::get(number));
  return tensor ? dp::dunder_dlpack(tensor, dp::Request()) : nullptr;
}
// Calls the table's functions as a consumer in C does.
PyObject *through_table(PyObject *, PyObject *number) {
  const DLPackExchangeAPI *api = dp::ExchangeApi<Number, P>::table();
  DLManagedTensorVersioned *managed = nullptr;
  void *object = nullptr, *stream = &managed;
  if (api->dltensor_from_py_object_no_sync) Py_FatalError("nothing can be borrowed of a number");
  if (api->current_work_stream(kDLCPU, 0, &stream) != 0 || stream) Py_FatalError("a stream");
  if (api->managed_tensor_from_py_object_no_sync(number, &managed) != 0) return nullptr;
  if (api->managed_tensor_to_py_object_no_sync(managed, &object) != 0) return nullptr;
  return static_cast<PyObject *>(object);
}
PyObject *limits(PyObject *, PyObject *object) {
  dlpack_rs::ImportOptions limits;
  limits.ranks = 1U << 1U;
  dp::PyImportOptions options;
  options.protocols = DLRS_PY_DUNDER_DLPACK;
  options.import_options = &limits;
  Tensor tensor = dp::from_dlpack(object, nullptr, nullptr, options, words());
  return tensor ? PyLong_FromLongLong(tensor.shape(0)) : nullptr;
}

#if DLRS_CXX_EXCEPTIONS
struct Own {};
struct Translator {
  static bool translate() noexcept {
    try {
      throw;
    } catch (const Own &) {
      return PyErr_SetString(PyExc_KeyError, "own"), true;
    } catch (...) {
      return false;
    }
  }
};
PyObject *thrown(PyObject *, PyObject *kind) {
  const dp::ErrorOptions mine = words();
  return dp::guarded<Translator>(
      [&]() -> PyObject * {
        switch (PyLong_AsLong(kind)) {
          case 0: throw Error(DLRS_READ_ONLY, "it is read-only");
          case 1: throw std::bad_alloc();
          case 2: throw Own();
          case 3: throw 3;
          case 4: PyErr_SetString(PyExc_IndexError, "set before"); throw 4;
          case 5: throw std::exception();
          default: return PyLong_FromLong(7);
        }
      },
      nullptr, mine);
}
#endif

PyMethodDef functions[] = {
    {"private_capsule", private_capsule, METH_O, nullptr},
    {"private_capsule_of_dlpack", private_capsule_of_dlpack, METH_O, nullptr},
    {"ndim_of_held", ndim_of_held, METH_O, nullptr},
    {"wrap_bytes", wrap_bytes, METH_O, nullptr},
    {"dlpack_of_bytes", dlpack_of_bytes, METH_VARARGS, nullptr},
    {"dlpack_of_nothing", dlpack_of_nothing, METH_O, nullptr},
    {"dlpack_of_number", dlpack_of_number, METH_O, nullptr},
    {"through_table", through_table, METH_O, nullptr},
    {"limits", limits, METH_O, nullptr},
#if DLRS_CXX_EXCEPTIONS
    {"thrown", thrown, METH_O, nullptr},
#endif
    dp::from_dlpack_def<Number, P>(),
    {nullptr, nullptr, 0, nullptr}};
#define TEXT_(x) #x
#define TEXT(x) TEXT_(x)
#define JOIN_(a, b) a##b
#define JOIN(a, b) JOIN_(a, b)
PyModuleDef module = {PyModuleDef_HEAD_INIT, TEXT(PYTHON_HPP_MODULE), nullptr, -1, functions,
                      nullptr, nullptr, nullptr, nullptr};
}  // namespace

PyMODINIT_FUNC JOIN(PyInit_, PYTHON_HPP_MODULE)() { return PyModule_Create(&module); }
