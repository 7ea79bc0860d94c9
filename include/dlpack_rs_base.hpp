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

/// A pointer and a number of elements: std::span for C++17.
template <class T>
class Span {
 public:
  constexpr Span() noexcept = default;
  constexpr Span(T *data, size_t count) noexcept : data_(data), count_(count) {}
  template <size_t N>
  constexpr Span(T (&array)[N]) noexcept : data_(array), count_(N) {}
  /// Of {2, 3}, where T is const. The list lives as long as the statement.
  template <class U = T, class = std::enable_if_t<std::is_const_v<U>>>
  constexpr Span(std::initializer_list<std::remove_cv_t<U>> list) noexcept {
    data_ = list.begin();  // not in the initialiser, where GCC warns of parameters as of locals
    count_ = list.size();
  }
  /// Of a std::vector, std::array, std::span, ... of T; not of a class derived from it, whose
  /// elements have another size.
  template <class C, class E = std::remove_pointer_t<decltype(std::declval<C &>().data())>,
            class = std::enable_if_t<std::is_convertible_v<E (*)[], T (*)[]> &&
                                     !std::is_same_v<std::decay_t<C>, Span>>>
  constexpr Span(C &&container) noexcept : data_(container.data()), count_(container.size()) {}

  [[nodiscard]] constexpr T *data() const noexcept { return data_; }
  [[nodiscard]] constexpr size_t size() const noexcept { return count_; }
  [[nodiscard]] constexpr bool empty() const noexcept { return count_ == 0; }
  constexpr T &operator[](size_t i) const noexcept { return data_[i]; }
  [[nodiscard]] constexpr T *begin() const noexcept { return data_; }
  [[nodiscard]] constexpr T *end() const noexcept { return data_ + count_; }

 private:
  T *data_ = nullptr;
  size_t count_ = 0;
};
/// Extents, strides or axes: a braced list, an array, a container of int64_t.
using Shape = Span<const int64_t>;

/// Up to 64 numbers, one for each dimension: what a function that makes a shape returns.
class Dims {
 public:
  static constexpr size_t capacity = 64;
  constexpr Dims() noexcept = default;
  /// `count` numbers, of which those beyond the capacity are left out.
  explicit constexpr Dims(size_t count) noexcept : count_(count < capacity ? count : capacity) {}
  [[nodiscard]] constexpr int64_t *data() noexcept { return values_; }
  [[nodiscard]] constexpr const int64_t *data() const noexcept { return values_; }
  [[nodiscard]] constexpr size_t size() const noexcept { return count_; }
  [[nodiscard]] constexpr const int64_t *begin() const noexcept { return values_; }
  [[nodiscard]] constexpr const int64_t *end() const noexcept { return values_ + count_; }
  constexpr int64_t &operator[](size_t i) noexcept { return values_[i]; }
  constexpr int64_t operator[](size_t i) const noexcept { return values_[i]; }

 private:
  int64_t values_[capacity] = {};
  size_t count_ = 0;
};

namespace detail {
/// A number of dimensions for a C function, which refuses what is above 64.
[[nodiscard]] constexpr int32_t rank(Shape shape) noexcept {
  return shape.size() < INT32_MAX ? static_cast<int32_t>(shape.size()) : INT32_MAX;
}
}  // namespace detail

// ---- devices and dtypes -----------------------------------------------------------------------

[[nodiscard]] constexpr DLDevice cpu() noexcept { return {kDLCPU, 0}; }
[[nodiscard]] constexpr DLDevice cuda(int32_t id = 0) noexcept { return {kDLCUDA, id}; }
[[nodiscard]] constexpr DLDevice rocm(int32_t id = 0) noexcept { return {kDLROCM, id}; }
/// Whether the CPU reads this memory at its address: CPU, CUDAHost, ROCMHost, CUDAManaged.
[[nodiscard]] constexpr bool is_host(DLDevice device) noexcept {
  return device.device_type == kDLCPU || device.device_type == kDLCUDAHost ||
         device.device_type == kDLROCMHost || device.device_type == kDLCUDAManaged;
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

// ---- shapes -----------------------------------------------------------------------------------

/// The strides of a compact tensor, in 'C' or 'F' order.
template <class M = DefaultMode>
ResultOf<M, Dims> compact_strides(Shape shape, char order = 'C') {
  return detail::get<M, Dims>([&](Dims *out, dlrs_error *e) {
    *out = Dims(shape.size());
    return dlrs_compact_strides(shape.data(), detail::rank(shape), order, out->data(), e);
  });
}
/// The shape to which two shapes broadcast.
template <class M = DefaultMode>
ResultOf<M, Dims> broadcast_shapes(Shape a, Shape b) {
  return detail::get<M, Dims>([&](Dims *out, dlrs_error *e) {
    *out = Dims(a.size() > b.size() ? a.size() : b.size());
    int32_t ndim = 0;
    return dlrs_broadcast_shapes(a.data(), detail::rank(a), b.data(), detail::rank(b),
                                 out->data(), &ndim, e);
  });
}

// ---- versions ---------------------------------------------------------------------------------

/// Version of the library that is running; compare with DLRS_HEADER_VERSION.
[[nodiscard]] inline uint32_t version() noexcept { return dlrs_version(); }
/// The same as text: "major.minor.patch".
[[nodiscard]] inline const char *version_string() noexcept { return dlrs_version_string(); }
/// The newest DLPack version that the library knows.
[[nodiscard]] inline DLPackVersion dlpack_version() noexcept { return dlrs_dlpack_version(); }
/// The layout of DLPack's structs as the library was compiled.
[[nodiscard]] inline const dlrs_abi_table &abi_layout() noexcept { return *dlrs_abi_layout(); }
/// Checks that the library has the layout expected and serves programs of this header.
template <class M = DefaultMode>
ResultOf<M, void> abi_check(const dlrs_abi_table &expected,
                            uint32_t header_version = DLRS_HEADER_VERSION) {
  return detail::run<M>(dlrs_abi_check, header_version, &expected);
}

}  // namespace dlpack_rs

#endif  // DLPACK_RS_BASE_HPP_
