/*!
 * \file dlpack_rs_python.hpp
 * \brief `__dlpack__`, `from_dlpack` and the C exchange API for a C++ type: with a binding library
 * (dlpack_rs_nanobind.hpp, dlpack_rs_pybind11.hpp) or without one.
 *
 * CPython's conventions hold: no function throws; NULL or an empty Tensor is returned if and only
 * if a Python exception is set; objects are borrowed, results are new references; a parameter that
 * is taken is an rvalue. The thread is attached to Python. Include <Python.h> before standard
 * headers, as CPython asks.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef DLPACK_RS_PYTHON_HPP_
#define DLPACK_RS_PYTHON_HPP_

#include <Python.h>

#include "dlpack_rs_core.hpp"

#ifdef DLRS_NO_PYTHON
#error "this libdlpack_rs was built without the feature python"
#endif

namespace dlpack_rs {

/// A Tensor is a type with DLPack, too.
template <>
struct adapter<Tensor> {
  static auto to_dlpack(const Tensor &tensor) { return tensor.retain(); }
  static Tensor from_dlpack(Tensor tensor) noexcept { return tensor; }
  static DLDevice device(const Tensor &tensor) noexcept { return tensor.device(); }
  static DLTensor borrow(const Tensor &tensor) noexcept { return tensor.dl(); }
};

namespace python {

using Request = Options<dlrs_py_request>;
using ErrorOptions = Options<dlrs_py_error_options>;
using PyImportOptions = Options<dlrs_py_import_options>;

// ---- errors -----------------------------------------------------------------------------------

/// Raises the exception that fits, in the words of options; NULL, so that a function can return it.
inline std::nullptr_t raise(const dlrs_error &failure, OptionsRef<dlrs_py_error_options> words = {})
    noexcept {
  static_cast<void>(dlrs_py_error_set_as(&failure, words, nullptr));
  return nullptr;
}
inline std::nullptr_t raise(const Error &failure, OptionsRef<dlrs_py_error_options> words = {})
    noexcept {
  return raise(failure.raw(), words);
}

namespace traits {
template <class T>
inline constexpr bool is_result = false;
template <class T>
inline constexpr bool is_result<Result<T>> = true;
/// The value of what an adapter returned, for callers in which exceptions may pass.
template <class R>
auto demand(R &&returned) {
  if constexpr (is_result<std::decay_t<R>>)
    return std::forward<R>(returned).value();
  else
    return std::decay_t<R>(std::forward<R>(returned));
}

// Whether an adapter or a P has an optional member.
template <class T, class = void>
inline constexpr bool has_device = false;
template <class T>
inline constexpr bool
    has_device<T, std::void_t<decltype(adapter<T>::device(std::declval<const T &>()))>> = true;
template <class T, class = void>
inline constexpr bool has_borrow = false;
template <class T>
inline constexpr bool
    has_borrow<T, std::void_t<decltype(adapter<T>::borrow(std::declval<const T &>()))>> = true;
template <class P, class = void>
inline constexpr bool has_work_stream = false;
template <class P>
inline constexpr bool has_work_stream<P, std::void_t<decltype(P::work_stream(DLDevice{}))>> = true;
template <class P, class = void>
inline constexpr bool has_translate = false;
template <class P>
inline constexpr bool has_translate<P, std::void_t<decltype(P::translate())>> = true;
}  // namespace traits

/// Calls f(). A C++ exception becomes a Python one, and the result is `failed`. P, where given,
/// may have `static bool translate()`: it is called while an exception is handled, and says whether
/// it raised one of Python's.
template <class P = void, class F, class R = decltype(std::declval<F>()())>
R guarded(F &&f, std::enable_if_t<true, R> failed = R(),
          OptionsRef<dlrs_py_error_options> words = {}) noexcept {
#if DLRS_CXX_EXCEPTIONS
  try {
    return f();
  } catch (const Error &e) {
    raise(e, words);
  } catch (const std::bad_alloc &) {
    PyErr_NoMemory();
  } catch (...) {
    if constexpr (traits::has_translate<P>)
      if (P::translate()) return failed;
    if (PyErr_Occurred()) return failed;
    try {
      throw;
    } catch (const std::exception &e) {
      PyErr_SetString(PyExc_RuntimeError, e.what());
    } catch (...) {
      PyErr_SetString(PyExc_RuntimeError, "unknown C++ exception");
    }
  }
  return failed;
#else
  static_cast<void>(failed);
  static_cast<void>(words);
  return f();
#endif
}

// ---- producers --------------------------------------------------------------------------------

/// What a consumer passed to `__dlpack__`; NULL and None are the defaults.
[[nodiscard]] inline Request request(PyObject *stream, PyObject *max_version, PyObject *dl_device,
                                     PyObject *copy) noexcept {
  Request out;
  out.stream = stream;
  out.max_version = max_version;
  out.dl_device = dl_device;
  out.copy = copy;
  return out;
}

/// `__dlpack__` for memory that a Python object keeps alive: one allocation.
[[nodiscard]] inline PyObject *dunder_dlpack(TensorView memory, PyObject *owner,
                                             const Request &request,
                                             OptionsRef<dlrs_py_error_options> words = {})
    noexcept {
  dlpack_rs::detail::Call call;
  void *capsule = nullptr;
  if (dlrs_py_export_desc(memory.desc(), memory.flags(), owner, &request, &capsule,
                          &call.error) != DLRS_OK)
    return raise(call.error, words);
  return static_cast<PyObject *>(capsule);
}

/// `__dlpack__` for a tensor that keeps its memory alive itself.
[[nodiscard]] inline PyObject *dunder_dlpack(const Tensor &tensor, const Request &request,
                                             OptionsRef<dlrs_py_error_options> words = {})
    noexcept {
  dlpack_rs::detail::Call call;
  void *capsule = nullptr;
  if (dlrs_py_export(tensor.get(), &request, &capsule, &call.error) != DLRS_OK)
    return raise(call.error, words);
  return static_cast<PyObject *>(capsule);
}

/// `__dlpack_device__`.
[[nodiscard]] inline PyObject *dunder_dlpack_device(DLDevice device) noexcept {
  return Py_BuildValue("ii", static_cast<int>(device.device_type),
                       static_cast<int>(device.device_id));
}

/// A tensor over memory that a Python object owns.
[[nodiscard]] inline Tensor wrap(TensorView memory, PyObject *owner,
                                 OptionsRef<dlrs_py_error_options> words = {}) noexcept {
  dlpack_rs::detail::Call call;
  Tensor out;
  if (dlrs_py_wrap(memory.desc(), memory.flags(), owner, out.out(), &call.error) != DLRS_OK)
    raise(call.error, words);
  return out;
}

// ---- consumers --------------------------------------------------------------------------------

/// The tensor of a Python object. Without options it speaks the exchange API or `__dlpack__`, as
/// the array API standard has it; device and copy are what a Python user passed, or NULL.
[[nodiscard]] inline Tensor from_dlpack(PyObject *object, PyObject *device = nullptr,
                                        PyObject *copy = nullptr,
                                        OptionsRef<dlrs_py_import_options> options = {},
                                        OptionsRef<dlrs_py_error_options> words = {}) noexcept {
  dlpack_rs::detail::Call call;
  PyImportOptions all;
  if (const dlrs_py_import_options *given = options)
    static_cast<dlrs_py_import_options &>(all) = *given;
  else
    all.protocols = DLRS_PY_EXCHANGE_API | DLRS_PY_DUNDER_DLPACK;
  if (device) all.device = device;
  if (copy) all.copy = copy;
  Tensor out;
  if (dlrs_py_import(object, &all, out.out(), &call.error) != DLRS_OK) raise(call.error, words);
  return out;
}

/// A private capsule: it keeps a tensor alive and no consumer takes it, as the base of an import.
/// The name is static and the framework's own. On failure the tensor is left to the caller.
[[nodiscard]] inline PyObject *holder(Tensor &&tensor, const char *name,
                                      OptionsRef<dlrs_py_error_options> words = {}) noexcept {
  dlpack_rs::detail::Call call;
  DLManagedTensorVersioned *taken = tensor.release();
  void *object = nullptr;
  if (dlrs_py_holder_new_take(&taken, name, &object, &call.error) != DLRS_OK)
    raise(call.error, words);
  tensor.reset(taken);
  return static_cast<PyObject *>(object);
}

/// The tensor in a private capsule of that name. Empty, without an exception, for any other object.
[[nodiscard]] inline TensorView holder_view(PyObject *object, const char *name) noexcept {
  const DLManagedTensorVersioned *tensor = dlrs_py_holder_get(object, name);
  return tensor ? TensorView(*tensor) : TensorView();
}

// ---- by an adapter ----------------------------------------------------------------------------
// P names the Python type of a T:
//   static const T *get(PyObject *);       borrowed from the object; NULL with an exception
//   static PyObject *make(T &&);           a new object; NULL with an exception, or it throws
//   static void *work_stream(DLDevice);    optional: the stream on which data is made there
//   static bool translate();               optional, see guarded

/// The device of a value: adapter<T>::device, where there is one, or the CPU.
template <class T>
[[nodiscard]] DLDevice device_of(const T &value) noexcept {
  if constexpr (traits::has_device<T>)
    return adapter<T>::device(value);
  else
    return static_cast<void>(value), cpu();
}

/// The tensor of a value; empty with an exception. The adapter may throw or return a Result.
template <class T, class P = void>
[[nodiscard]] Tensor tensor_of(const T &value) noexcept {
  Tensor out = guarded<P>([&]() -> Tensor {
    auto made = adapter<T>::to_dlpack(value);
    if constexpr (traits::is_result<decltype(made)>) {
      if (!made) return raise(made.error()), Tensor();
      return Tensor(*std::move(made));
    } else {
      return Tensor(std::move(made));
    }
  });
  if (!out && !PyErr_Occurred())
    PyErr_SetString(PyExc_RuntimeError, "dlpack_rs::adapter::to_dlpack gave an empty Tensor");
  return out;
}

/// The Python object of a tensor, which is taken.
template <class T, class P>
[[nodiscard]] PyObject *object_from(Tensor &&tensor) noexcept {
  return guarded<P>([&]() -> PyObject * {
    auto value = adapter<T>::from_dlpack(std::move(tensor));
    if constexpr (traits::is_result<decltype(value)>) {
      if (!value) return raise(value.error());
      return P::make(*std::move(value));
    } else {
      return P::make(std::move(value));
    }
  });
}

/// The exchange API of one Python type, for consumers in C: `__dlpack_c_exchange_api__`. DLPack's
/// functions have no context argument, so each P has a table, which the compiler makes.
template <class T, class P>
struct ExchangeApi {
  [[nodiscard]] static const DLPackExchangeAPI *table() noexcept {
    static const DLPackExchangeAPI api = {
        {{DLPACK_MAJOR_VERSION, DLPACK_MINOR_VERSION}, nullptr},
        dlrs_managed_tensor_allocator,
        to_managed,
        to_object,
        // Optional in DLPack: shape and strides must live in the T.
        traits::has_borrow<T> ? borrow : nullptr,
        work_stream};
    return &api;
  }
  /// The value of `__dlpack_c_exchange_api__`. A static type needs it in tp_dict before
  /// PyType_Ready.
  [[nodiscard]] static PyObject *capsule() noexcept {
    return PyCapsule_New(const_cast<DLPackExchangeAPI *>(table()), "dlpack_exchange_api", nullptr);
  }
  /// Sets it on a heap type: 0, or -1 with an exception.
  [[nodiscard]] static int install(PyObject *type) noexcept {
    PyObject *object = capsule();
    const int status =
        object ? PyObject_SetAttrString(type, "__dlpack_c_exchange_api__", object) : -1;
    Py_XDECREF(object);
    return status;
  }

 private:
  static int to_managed(void *object, DLManagedTensorVersioned **out) noexcept {
    const T *value = P::get(static_cast<PyObject *>(object));
    *out = value ? tensor_of<T, P>(*value).release() : nullptr;
    return *out ? 0 : -1;
  }
  static int to_object(DLManagedTensorVersioned *managed, void **out) noexcept {
    *out = nullptr;
    auto ours = nothrow::Tensor::import_take(managed);
    if (!ours) return raise(ours.error()), -1;
    *out = object_from<T, P>(Tensor(*std::move(ours)));
    return *out ? 0 : -1;
  }
  static int borrow(void *object, DLTensor *out) noexcept {
    const T *value = P::get(static_cast<PyObject *>(object));
    if constexpr (traits::has_borrow<T>) {
      if (value) *out = adapter<T>::borrow(*value);
    }
    static_cast<void>(out);
    return value ? 0 : -1;
  }
  static int work_stream(DLDeviceType type, int32_t id, void **out) noexcept {
    if constexpr (traits::has_work_stream<P>)
      *out = P::work_stream(DLDevice{type, id});
    else
      static_cast<void>(type), static_cast<void>(id), *out = nullptr;
    return 0;
  }
};

/// `__dlpack__` of a plain extension type: METH_FASTCALL | METH_KEYWORDS.
template <class T, class P>
PyObject *dunder_dlpack_method(PyObject *self, PyObject *const *args, Py_ssize_t nargs,
                               PyObject *kwnames) noexcept {
  dlpack_rs::detail::Call call;
  Request asked;
  if (dlrs_py_request_parse(const_cast<void *const *>(reinterpret_cast<const void *const *>(args)),
                            nargs, kwnames, &asked, &call.error) != DLRS_OK)
    return raise(call.error);
  const T *value = P::get(self);
  if (!value) return nullptr;
  const Tensor tensor = tensor_of<T, P>(*value);
  if (!tensor) return nullptr;
  if constexpr (traits::has_work_stream<P>) asked.work_stream = P::work_stream(tensor.device());
  return dunder_dlpack(tensor, asked);
}
/// `__dlpack_device__`: METH_NOARGS.
template <class T, class P>
PyObject *dunder_dlpack_device_method(PyObject *self, PyObject *) noexcept {
  const T *value = P::get(self);
  return value ? dunder_dlpack_device(device_of(*value)) : nullptr;
}
/// `from_dlpack(x, /, *, device=None, copy=None)` of a module: METH_VARARGS | METH_KEYWORDS.
template <class T, class P>
PyObject *from_dlpack_method(PyObject *, PyObject *args, PyObject *kwargs) noexcept {
  static const char *const names[] = {"", "device", "copy", nullptr};
  PyObject *object = nullptr, *device = nullptr, *copy = nullptr;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|$OO:from_dlpack", const_cast<char **>(names),
                                   &object, &device, &copy))
    return nullptr;
  Tensor tensor = from_dlpack(object, device, copy);
  return tensor ? object_from<T, P>(std::move(tensor)) : nullptr;
}

/// Rows of a PyMethodDef table:
///   {dunder_dlpack_def<T, P>(), dunder_dlpack_device_def<T, P>(), {}}
template <class T, class P>
[[nodiscard]] PyMethodDef dunder_dlpack_def() noexcept {
  const auto method = reinterpret_cast<void (*)()>(dunder_dlpack_method<T, P>);
  return {"__dlpack__", reinterpret_cast<PyCFunction>(method), METH_FASTCALL | METH_KEYWORDS,
          "The data as a DLPack capsule."};
}
template <class T, class P>
[[nodiscard]] PyMethodDef dunder_dlpack_device_def() noexcept {
  return {"__dlpack_device__", dunder_dlpack_device_method<T, P>, METH_NOARGS,
          "DLPack's device type, and which of them."};
}
template <class T, class P>
[[nodiscard]] PyMethodDef from_dlpack_def() noexcept {
  const auto method = reinterpret_cast<void (*)()>(from_dlpack_method<T, P>);
  return {"from_dlpack", reinterpret_cast<PyCFunction>(method), METH_VARARGS | METH_KEYWORDS,
          "from_dlpack(x, /, *, device=None, copy=None)\n\n"
          "Shares the data of an object with DLPack."};
}

// ---- a Tensor as a Python object --------------------------------------------------------------

/// The type of what object() makes: an object with `__dlpack__`, and no more.
struct Exporter {
  PyObject_HEAD
  Tensor tensor;

  static const Tensor *get(PyObject *self) noexcept {
    if (Py_TYPE(self)->tp_dealloc == dealloc) return &reinterpret_cast<Exporter *>(self)->tensor;
    PyErr_Format(PyExc_TypeError, "a dlpack_rs.Exporter is needed, not %.200s",
                 Py_TYPE(self)->tp_name);
    return nullptr;
  }
  static PyObject *make(Tensor &&tensor) noexcept {
    PyTypeObject *made = type();
    PyObject *self = made ? made->tp_alloc(made, 0) : nullptr;
    Py_XDECREF(reinterpret_cast<PyObject *>(made));  // self has its own reference
    if (self)
      ::new (static_cast<void *>(&reinterpret_cast<Exporter *>(self)->tensor))
          Tensor(std::move(tensor));
    return self;
  }

 private:
  static PyObject *no_new(PyTypeObject *type, PyObject *, PyObject *) noexcept {
    return PyErr_Format(PyExc_TypeError, "cannot create '%.100s' instances", type->tp_name);
  }
  static void dealloc(PyObject *self) noexcept {
    PyTypeObject *type = Py_TYPE(self);
    reinterpret_cast<Exporter *>(self)->tensor.~Tensor();
    type->tp_free(self);
    Py_DECREF(reinterpret_cast<PyObject *>(type));
  }
  // One for each interpreter and each copy of this code, made at first use.
  static PyTypeObject *type() noexcept {
    static PyMethodDef methods[] = {dunder_dlpack_def<Tensor, Exporter>(),
                                    dunder_dlpack_device_def<Tensor, Exporter>(),
                                    {nullptr, nullptr, 0, nullptr}};
    static PyType_Slot slots[] = {{Py_tp_new, reinterpret_cast<void *>(no_new)},
                                  {Py_tp_dealloc, reinterpret_cast<void *>(dealloc)},
                                  {Py_tp_methods, methods},
                                  {0, nullptr}};
    static PyType_Spec spec = {"dlpack_rs.Exporter", sizeof(Exporter), 0, Py_TPFLAGS_DEFAULT,
                               slots};
    PyObject *types = PyInterpreterState_GetDict(PyInterpreterState_Get());
    PyObject *key = types ? PyUnicode_FromFormat("dlpack_rs.Exporter %p", &spec)
                          : (PyErr_SetString(PyExc_RuntimeError, "no interpreter"), nullptr);
    PyObject *type = key ? PyDict_GetItemWithError(types, key) : nullptr;
    Py_XINCREF(type);
    if (key && !type && !PyErr_Occurred()) {
      type = PyType_FromSpec(&spec);
      if (type && (ExchangeApi<Tensor, Exporter>::install(type) != 0 ||
                   PyDict_SetItem(types, key, type) != 0))
        Py_CLEAR(type);
    }
    Py_XDECREF(key);
    return reinterpret_cast<PyTypeObject *>(type);
  }
};

/// A Python object with `__dlpack__` that exports a tensor: for functions that return data and
/// leave it to the caller which framework's array it becomes.
[[nodiscard]] inline PyObject *object(Tensor &&tensor) noexcept {
  return Exporter::make(std::move(tensor));
}

}  // namespace python
}  // namespace dlpack_rs

#endif  // DLPACK_RS_PYTHON_HPP_
