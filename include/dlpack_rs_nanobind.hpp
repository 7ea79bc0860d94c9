/*!
 * \file dlpack_rs_nanobind.hpp
 * \brief DLPack for classes that nanobind binds, in one line; dlpack_rs::Tensor as an argument.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef DLPACK_RS_NANOBIND_HPP_
#define DLPACK_RS_NANOBIND_HPP_

#include <nanobind/nanobind.h>

#include "dlpack_rs_python.hpp"

namespace dlpack_rs::python {

/// Requirements of dlpack_rs_python.hpp on a type that nanobind binds.
template <class T>
struct NanobindType {
  static const T *get(PyObject *object) noexcept {
    if (nanobind::isinstance<T>(nanobind::handle(object))) return nanobind::inst_ptr<T>(object);
    PyErr_Format(PyExc_TypeError, "a tensor of this module is needed, not %.200s",
                 Py_TYPE(object)->tp_name);
    return nullptr;
  }
  static PyObject *make(T &&value) { return nanobind::cast(std::move(value)).release().ptr(); }
  static bool translate() noexcept {
    try {
      throw;
    } catch (nanobind::python_error &e) {
      return e.restore(), true;
    } catch (...) {
      return false;
    }
  }
};

namespace nanobind_detail {
/// A new reference as an object; the exception that is set where there is none.
inline nanobind::object given(PyObject *object) {
  if (!object) nanobind::raise_python_error();
  return nanobind::steal(object);
}
inline auto none(const char *name) {  // its type is one of nanobind's version
  return nanobind::arg(name).none() = nanobind::none();
}
/// For Error, once in a module.
inline void register_errors() {
  static const bool once = [] {
    nanobind::register_exception_translator([](const std::exception_ptr &thrown, void *) {
      try {
        std::rethrow_exception(thrown);
      } catch (const Error &e) {
        raise(e);
      }
    });
    return true;
  }();
  static_cast<void>(once);
}
}  // namespace nanobind_detail

/// Makes dlpack_rs::Error, thrown by any function of the module, the Python exception that fits.
/// bind() does it.
inline void register_errors(nanobind::module_ &) { nanobind_detail::register_errors(); }

/// Gives a class `__dlpack__`, `__dlpack_device__` and the exchange API, by adapter<T>.
template <class T, class... X>
void bind(nanobind::class_<T, X...> &type) {
  namespace nb = nanobind;
  using nb::handle;
  using nanobind_detail::given;
  using nanobind_detail::none;
  nanobind_detail::register_errors();
  type.def(
      "__dlpack__",
      [](const T &self, handle stream, handle max_version, handle dl_device, handle copy) {
        const Tensor tensor = traits::demand(adapter<T>::to_dlpack(self));
        return given(dunder_dlpack(
            tensor, request(stream.ptr(), max_version.ptr(), dl_device.ptr(), copy.ptr())));
      },
      nb::kw_only(), none("stream"), none("max_version"), none("dl_device"), none("copy"));
  type.def("__dlpack_device__",
           [](const T &self) { return given(dunder_dlpack_device(device_of(self))); });
  type.attr("__dlpack_c_exchange_api__") = given(ExchangeApi<T, NanobindType<T>>::capsule());
}

/// The same, and adds from_dlpack(x, *, device=None, copy=None) to the module.
template <class T, class... X>
void bind(nanobind::module_ &module, nanobind::class_<T, X...> &type) {
  namespace nb = nanobind;
  using nanobind_detail::none;
  bind(type);
  module.def(
      "from_dlpack",
      [](nb::handle x, nb::handle device, nb::handle copy) {
        Tensor tensor = from_dlpack(x.ptr(), device.ptr(), copy.ptr());
        if (!tensor) nanobind::raise_python_error();
        return traits::demand(adapter<T>::from_dlpack(std::move(tensor)));
      },
      nb::arg("x"), nb::kw_only(), none("device"), none("copy"));
}

}  // namespace dlpack_rs::python

namespace nanobind::detail {
/// A parameter of type dlpack_rs::Tensor takes any object with DLPack; what has none is left to the
/// next overload, and then a TypeError. Not a type of results: dlpack_rs::python::object makes an
/// object of any framework's choice.
template <>
struct type_caster<dlpack_rs::Tensor> {
  using Value = dlpack_rs::Tensor;
  static constexpr auto Name = const_name("object");
  template <class>
  using Cast = Value &&;
  template <class>
  static constexpr bool can_cast() {
    return true;
  }
  bool from_python(handle source, uint32_t, cleanup_list *) noexcept {
    value = dlpack_rs::python::from_dlpack(source.ptr());
    if (!value) PyErr_Clear();
    return static_cast<bool>(value);
  }
  explicit operator Value &&() { return static_cast<Value &&>(value); }
  Value value;
};
}  // namespace nanobind::detail

#endif  // DLPACK_RS_NANOBIND_HPP_
