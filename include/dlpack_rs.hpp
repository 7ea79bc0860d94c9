/*!
 * \file dlpack_rs.hpp
 * \brief libdlpack_rs for C++17: dlpack_rs_core.hpp, text, and std::complex.
 *
 * What needs <string> and <complex> is here, so that programs without them compile faster by
 * including the core alone.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef DLPACK_RS_HPP_
#define DLPACK_RS_HPP_

#include "dlpack_rs_core.hpp"

#include <complex>
#include <iosfwd>
#include <string>
#include <string_view>
#if defined(__has_include)
#if __has_include(<version>)
#include <version>
#endif
#endif
#if defined(__cpp_lib_format)
#include <format>
#endif

namespace dlpack_rs {

template <>
struct dtype_traits<std::complex<float>> {
  static constexpr DLDataType value{kDLComplex, 64, 1};
};
template <>
struct dtype_traits<std::complex<double>> {
  static constexpr DLDataType value{kDLComplex, 128, 1};
};

namespace detail {
/// The text that write(buffer, capacity, &nbytes, &error) writes; DLRS_BUF_SMALL is "cut".
template <class M, class F>
ResultOf<M, std::string> text(F &&write) {
  return get<M, std::string>([&](std::string *out, dlrs_error *e) {
    char small[256];
    size_t nbytes = 0;
    dlrs_status status = write(small, sizeof small, &nbytes, e);
    if (status == DLRS_OK) out->assign(small, nbytes);
    while (status == DLRS_BUF_SMALL) {  // again where the values have changed meanwhile
      out->resize(nbytes);              // its own NUL is one more byte of room
      status = write(out->data(), out->size() + 1, &nbytes, e);
      if (status == DLRS_OK) out->resize(nbytes);
    }
    return status;
  });
}
}  // namespace detail

/// "float32", "uint4", "bfloat16x4"; a code without a name is written as numbers.
[[nodiscard]] inline std::string to_string(DLDataType dtype) {
  auto text = detail::text<Returning>([&](char *b, size_t n, size_t *nbytes, dlrs_error *e) {
    return dlrs_dtype_format(dtype, b, n, nbytes, e);
  });
  return std::move(text).value_or("");  // cannot fail
}
/// "cpu", "cuda:1"
[[nodiscard]] inline std::string to_string(DLDevice device) {
  auto text = detail::text<Returning>([&](char *b, size_t n, size_t *nbytes, dlrs_error *e) {
    return dlrs_device_format(device, b, n, nbytes, e);
  });
  return std::move(text).value_or("");  // cannot fail
}
#ifndef DLRS_NO_PRINT
/// A line of description and the values of a tensor, as nested lists.
template <class D, class M>
ResultOf<M, std::string> to_string(const Queries<D, M> &tensor,
                                   OptionsRef<dlrs_print_options> options = {}) {
  detail::Lent lent = static_cast<const D &>(tensor).lend();
  return detail::text<M>([&](char *b, size_t n, size_t *nbytes, dlrs_error *e) {
    return dlrs_managed_to_string(lent.get(), options, b, n, nbytes, e);
  });
}
template <class D, class M>
auto Queries<D, M>::to_string(OptionsRef<dlrs_print_options> options) const {
  return dlpack_rs::to_string(*this, options);
}
#endif

/// What is wrong, by Error::text(), and what to do, by Error::hint(): in the Error's memory.
[[nodiscard]] inline std::string_view to_view(Span<const char> part) noexcept {
  return {part.data(), part.size()};
}

/// Understands "float32", "uint4", "bfloat16", ...
template <class M = DefaultMode>
ResultOf<M, DLDataType> parse_dtype(std::string_view text) {
  return detail::get<M, DLDataType>(dlrs_dtype_parse, text.data(), text.size());
}

#ifndef DLRS_NO_PRINT
/// Writes to_string(tensor); a tensor that cannot be described sets the stream's failbit.
template <class Traits, class D, class M>
std::basic_ostream<char, Traits> &operator<<(std::basic_ostream<char, Traits> &stream,
                                             const Queries<D, M> &tensor) {
  const nothrow::TensorView view(tensor);
  const Result<std::string> text = to_string(view);
  if (text) return stream << std::string_view(*text);
  stream.setstate(std::basic_ostream<char, Traits>::failbit);
  return stream;
}
#endif

}  // namespace dlpack_rs

#if defined(__cpp_lib_format) && !defined(DLRS_NO_PRINT)
namespace dlpack_rs::detail {
/// std::format("{}", tensor) is to_string(tensor), with the format of strings.
template <class T>
struct Formatter : std::formatter<std::string_view, char> {
  template <class Context>
  auto format(const T &tensor, Context &context) const {
    const nothrow::TensorView view(tensor);
    const Result<std::string> text = to_string(view);
    const std::string_view shown = text ? std::string_view(*text) : text.error().what();
    return std::formatter<std::string_view, char>::format(shown, context);
  }
};
}  // namespace dlpack_rs::detail
template <class M>
struct std::formatter<dlpack_rs::BasicTensor<M>, char>
    : dlpack_rs::detail::Formatter<dlpack_rs::BasicTensor<M>> {};
template <class M>
struct std::formatter<dlpack_rs::BasicView<M>, char>
    : dlpack_rs::detail::Formatter<dlpack_rs::BasicView<M>> {};
template <class M>
struct std::formatter<dlpack_rs::BasicLegacyTensor<M>, char>
    : dlpack_rs::detail::Formatter<dlpack_rs::BasicLegacyTensor<M>> {};
#endif

#endif  // DLPACK_RS_HPP_
