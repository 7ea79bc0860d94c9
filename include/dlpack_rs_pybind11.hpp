/*!
 * \file dlpack_rs_pybind11.hpp
 * \brief DLPack for classes that pybind11 binds, in one line; dlpack_rs::Tensor as an argument.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef DLPACK_RS_PYBIND11_HPP_
#define DLPACK_RS_PYBIND11_HPP_

#include <pybind11/pybind11.h>

#include "dlpack_rs_python.hpp"

namespace dlpack_rs::python {

/// Requirements of dlpack_rs_python.hpp on a type that pybind11 binds.
template <class T>
struct Pybind11Type {
  static const T *get(PyObject *object) noexcept {
    if (pybind11::isinstance<T>(pybind11::handle(object)))
      return guarded<Pybind11Type>(
          [&] { return pybind11::cast<const T *>(pybind11::handle(object)); });
    PyErr_Format(PyExc_TypeError, "a tensor of this module is needed, not %.200s",
                 Py_TYPE(object)->tp_name);
    return nullptr;
  }
  static PyObject *make(T &&value) { return pybind11::cast(std::move(value)).release().ptr(); }
  static bool translate() noexcept {
    try {
      throw;
    } catch (pybind11::error_already_set &e) {
      return e.restore(), true;
    } catch (const pybind11::builtin_exception &e) {
      return e.set_error(), true;
    } catch (...) {
      return false;
    }
  }
};

namespace pybind11_detail {
/// A new reference as an object; the exception that is set where there is none.
inline pybind11::object given(PyObject *object) {
  if (!object) throw pybind11::error_already_set();
  return pybind11::reinterpret_steal<pybind11::object>(object);
}
inline pybind11::arg_v none(const char *name) { return pybind11::arg(name) = pybind11::none(); }
/// For Error, once in a module.
inline void register_errors() {
  static const bool once = [] {
    pybind11::register_local_exception_translator([](std::exception_ptr thrown) {
      try {
        if (thrown) std::rethrow_exception(thrown);
      } catch (const Error &e) {
        raise(e);
      }
    });
    return true;
  }();
  static_cast<void>(once);
}
}  // namespace pybind11_detail

/// Makes dlpack_rs::Error, thrown by any function of the module, the Python exception that fits.
/// bind() does it.
inline void register_errors(pybind11::module_ &) { pybind11_detail::register_errors(); }

/// Gives a class `__dlpack__`, `__dlpack_device__` and the exchange API, by adapter<T>.
template <class T, class... X>
void bind(pybind11::class_<T, X...> &type) {
  namespace py = pybind11;
  using py::handle;
  using pybind11_detail::given;
  using pybind11_detail::none;
  pybind11_detail::register_errors();
  type.def(
      "__dlpack__",
      [](const T &self, handle stream, handle max_version, handle dl_device, handle copy) {
        const Tensor tensor = traits::demand(adapter<T>::to_dlpack(self));
        return given(dunder_dlpack(
            tensor, request(stream.ptr(), max_version.ptr(), dl_device.ptr(), copy.ptr())));
      },
      py::kw_only(), none("stream"), none("max_version"), none("dl_device"), none("copy"));
  type.def("__dlpack_device__",
           [](const T &self) { return given(dunder_dlpack_device(device_of(self))); });
  type.attr("__dlpack_c_exchange_api__") = given(ExchangeApi<T, Pybind11Type<T>>::capsule());
}

/// The same, and adds from_dlpack(x, *, device=None, copy=None) to the module.
template <class T, class... X>
void bind(pybind11::module_ &module, pybind11::class_<T, X...> &type) {
  namespace py = pybind11;
  using pybind11_detail::none;
  bind(type);
  module.def(
      "from_dlpack",
      [](py::handle x, py::handle device, py::handle copy) {
        Tensor tensor = from_dlpack(x.ptr(), device.ptr(), copy.ptr());
        if (!tensor) throw pybind11::error_already_set();
        return traits::demand(adapter<T>::from_dlpack(std::move(tensor)));
      },
      py::arg("x"), py::kw_only(), none("device"), none("copy"));
}

}  // namespace dlpack_rs::python

namespace pybind11::detail {
/// A parameter of type dlpack_rs::Tensor takes any object with DLPack; what has none is left to the
/// next overload, and then a TypeError. Not a type of results: dlpack_rs::python::object makes an
/// object of any framework's choice.
template <>
struct type_caster<dlpack_rs::Tensor> {
  static constexpr auto name = const_name("object");
  template <class>
  using cast_op_type = dlpack_rs::Tensor &&;
  bool load(handle source, bool) {
    value = dlpack_rs::python::from_dlpack(source.ptr());
    if (!value) PyErr_Clear();
    return static_cast<bool>(value);
  }
  explicit operator dlpack_rs::Tensor &&() { return static_cast<dlpack_rs::Tensor &&>(value); }
  dlpack_rs::Tensor value;
};
}  // namespace pybind11::detail

#endif  // DLPACK_RS_PYBIND11_HPP_
