/*!
 * \file dlpack_rs_base.hpp
 * \brief Small values of the C++ headers of libdlpack_rs: arrays, devices, dtypes, shapes.
 *
 * Included by dlpack_rs_core.hpp, which is what a program includes.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef DLPACK_RS_BASE_HPP_
#define DLPACK_RS_BASE_HPP_

#include "dlpack_rs_result.hpp"

#include <limits>

namespace dlpack_rs {

// ---- arrays -----------------------------------------------------------------------------------

/// Extents, strides or axes: a braced list, an array, a container of int64_t.
using Shape = Span<const int64_t>;


namespace detail {
/// The most dimensions that a tensor has.
inline constexpr size_t most_dims = 64;
/// A number of dimensions for a C function, which rejects more than 64.
[[nodiscard]] constexpr int32_t rank(Shape shape) noexcept {
  return shape.size() < INT32_MAX ? static_cast<int32_t>(shape.size()) : INT32_MAX;
}
/// Two arrays that belong together differ in length.
inline dlrs_status other_count(dlrs_error *e, const char *where, size_t value,
                               size_t limit) noexcept {
  return (Refusal(e, DLRS_BAD_ARG, DLRS_FIELD_NONE, where) << "two arrays differ in length")
      .value(static_cast<int64_t>(value), static_cast<int64_t>(limit))
      .hint("Give as many values in both.");
}
}  // namespace detail

// ---- devices and dtypes -----------------------------------------------------------------------

[[nodiscard]] constexpr DLDevice cpu() noexcept { return {kDLCPU, 0}; }
[[nodiscard]] constexpr DLDevice cuda(int32_t id = 0) noexcept { return {kDLCUDA, id}; }
[[nodiscard]] constexpr DLDevice rocm(int32_t id = 0) noexcept { return {kDLROCM, id}; }
/// Whether the CPU reads this memory at its address: CPU, CUDAHost, ROCMHost, CUDAManaged, TPUHost.
[[nodiscard]] constexpr bool is_host(DLDevice device) noexcept {
  return device.device_type == kDLCPU || device.device_type == kDLCUDAHost ||
         device.device_type == kDLROCMHost || device.device_type == kDLCUDAManaged ||
         device.device_type == DLRS_CODE_TPU_HOST;
}
[[nodiscard]] constexpr bool same(DLDataType a, DLDataType b) noexcept {
  return a.code == b.code && a.bits == b.bits && a.lanes == b.lanes;
}
[[nodiscard]] constexpr bool same(DLDevice a, DLDevice b) noexcept {
  return a.device_type == b.device_type && a.device_id == b.device_id;
}

namespace detail {
template <class T>
constexpr DLDataType arithmetic(int code) noexcept {
  return {static_cast<uint8_t>(code), static_cast<uint8_t>(sizeof(T) * 8), 1};
}
template <class T>
constexpr int code_of() noexcept {
  if constexpr (std::is_same_v<T, bool>) return kDLBool;
  // std::bfloat16_t of C++23: two bytes, of which the significand has as many bits as one.
  if (std::is_floating_point_v<T>)
    return sizeof(T) == 2 && std::numeric_limits<T>::digits == 8 ? kDLBfloat : kDLFloat;
  return std::is_signed_v<T> ? kDLInt : kDLUInt;
}
template <class T, class = void>
struct arithmetic_dtype {};  // no value: not an element type
template <class T>
struct arithmetic_dtype<
    T, std::enable_if_t<std::is_arithmetic_v<T> && !std::is_same_v<T, long double>>> {
  static constexpr DLDataType value = arithmetic<T>(code_of<T>());
};
}  // namespace detail

/// The DLPack type of a C++ type: bool, integers, float, double; with dlpack_rs.hpp std::complex
/// of the two. Specialise it for element types of your own:
///   template <> struct dlpack_rs::dtype_traits<Half> {
///     static constexpr DLDataType value{kDLFloat, 16, 1};
///   };
template <class T>
struct dtype_traits : detail::arithmetic_dtype<T> {};

/// Whether T, const or not, is an element type.
template <class T, class = void>
inline constexpr bool has_dtype = false;
template <class T>
inline constexpr bool
    has_dtype<T, std::void_t<decltype(dtype_traits<std::remove_cv_t<T>>::value)>> = true;

/// The DLPack type of a C++ type, const or not.
template <class T>
[[nodiscard]] constexpr DLDataType dtype_of() noexcept {
  using U = std::remove_cv_t<T>;
  if constexpr (!std::is_same_v<T, U>) {
    return dtype_of<U>();
  } else {
    static_assert(has_dtype<T>, "not an element type: specialise dlpack_rs::dtype_traits for it");
    return dtype_traits<T>::value;
  }
}
/// Whether a dtype is that of one of several types: is_one_of<float, double>(t.dtype())
template <class... T>
[[nodiscard]] constexpr bool is_one_of(DLDataType dtype) noexcept {
  return (same(dtype, dtype_of<T>()) || ...);
}

}  // namespace dlpack_rs

#endif  // DLPACK_RS_BASE_HPP_
