/*!
 * \file dlpack_rs.hpp
 * \brief libdlpack_rs for C++17: a tensor that releases itself, and errors as exceptions.
 *
 * Every function here is inline and calls one function of dlpack_rs.h, which is the manual. A
 * Tensor is one pointer. It converts to and from plain DLPack at any time: construct it from a
 * DLManagedTensorVersioned* that you own, and get one back with release().
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef DLPACK_RS_HPP_
#define DLPACK_RS_HPP_

#if (defined(_MSVC_LANG) ? _MSVC_LANG : __cplusplus) < 201703L
#error "dlpack_rs.hpp needs C++17: compile with -std=c++17 or later (MSVC: /std:c++17)"
#endif

#include "dlpack_rs.h"

#include <array>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <memory>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace dlpack_rs {

/// What went wrong: what() is the message; the rest are the members of dlrs_error.
class Error : public std::runtime_error {
 public:
  explicit Error(const dlrs_error &error)
      : std::runtime_error(error.message),
        status_(error.status), argument_(error.argument), field_(error.field),
        dimension_(error.dimension), driver_code_(error.driver_code),
        value_(error.value), limit_(error.limit) {}

  dlrs_status status() const noexcept { return status_; }
  /// The class of the status: 1 argument, 2 malformed, 3 policy, 4 resource, 5 unavailable, ...
  int kind() const noexcept { return status_ / 100; }
  const char *status_name() const noexcept { return dlrs_status_name(status_); }
  int32_t argument() const noexcept { return argument_; }
  int32_t field() const noexcept { return field_; }
  int32_t dimension() const noexcept { return dimension_; }
  int32_t driver_code() const noexcept { return driver_code_; }
  int64_t value() const noexcept { return value_; }
  int64_t limit() const noexcept { return limit_; }

 private:
  dlrs_status status_;
  int32_t argument_, field_, dimension_, driver_code_;
  int64_t value_, limit_;
};

namespace detail {
/// Collects the details of one call; written by the library only when the call fails.
struct Call {
  dlrs_error error;
  Call() noexcept { error.struct_size = sizeof error; }
  dlrs_error *out() noexcept { return &error; }
  void check(dlrs_status status) const {
    if (status != DLRS_OK) throw Error(error);
  }
};

/// Calls and deletes a function object that was handed over as a context.
template <class F>
void run_once(void *context) noexcept {
  const std::unique_ptr<F> function(static_cast<F *>(context));
  (*function)();
}
template <class T>
struct is_complex : std::false_type {};
template <class T>
struct is_complex<std::complex<T>>
    : std::bool_constant<std::is_same_v<T, float> || std::is_same_v<T, double>> {};

/// std::bfloat16_t of C++23: two bytes, of which the significand has as many bits as one.
template <class T>
inline constexpr bool is_bfloat16 =
    std::is_floating_point_v<T> && sizeof(T) == 2 && std::numeric_limits<T>::digits == 8;

template <class Format, class Code>
std::string name(Format format, Code code) {
  Call call;
  std::array<char, 64> text;
  size_t nbytes = 0;
  call.check(format(code, text.data(), text.size(), &nbytes, call.out()));
  return std::string(text.data(), nbytes);
}
}  // namespace detail

/// A pointer and a number of elements: std::span for C++17.
template <class T>
class Span {
 public:
  constexpr Span() noexcept = default;
  constexpr Span(T *data, size_t count) noexcept : data_(data), count_(count) {}
  template <size_t N>
  constexpr Span(T (&array)[N]) noexcept : data_(array), count_(N) {}
  /// Of a std::vector, std::array, std::span, ... of T; not of a class derived from it, whose
  /// elements have another size.
  template <class C, class E = std::remove_pointer_t<decltype(std::declval<C &>().data())>,
            class = std::enable_if_t<std::is_convertible_v<E (*)[], T (*)[]>>>
  constexpr Span(C &&container) noexcept : data_(container.data()), count_(container.size()) {}

  constexpr T *data() const noexcept { return data_; }
  constexpr size_t size() const noexcept { return count_; }
  constexpr bool empty() const noexcept { return count_ == 0; }
  constexpr T &operator[](size_t i) const noexcept { return data_[i]; }
  constexpr T *begin() const noexcept { return data_; }
  constexpr T *end() const noexcept { return data_ + count_; }

 private:
  T *data_ = nullptr;
  size_t count_ = 0;
};

/// The DLPack type of a C++ type: bool, integers, float, double, std::complex of them.
template <class T>
constexpr DLDataType dtype_of() noexcept {
  using U = std::remove_cv_t<T>;
  static_assert(std::is_arithmetic_v<U> || detail::is_complex<U>::value, "not an element type");
  static_assert(!std::is_same_v<U, long double>, "long double has no DLPack type");
  constexpr int code = std::is_same_v<U, bool>      ? kDLBool
                       : detail::is_complex<U>::value ? kDLComplex
                       : detail::is_bfloat16<U>       ? kDLBfloat
                       : std::is_floating_point_v<U>  ? kDLFloat
                       : std::is_signed_v<U>          ? kDLInt
                                                      : kDLUInt;
  return DLDataType{static_cast<uint8_t>(code), static_cast<uint8_t>(sizeof(U) * 8), 1};
}

/// Understands "float32", "uint4", "bfloat16", ...
inline DLDataType dtype(const std::string &text) {
  detail::Call call;
  DLDataType out{};
  call.check(dlrs_dtype_parse(text.data(), text.size(), &out, call.out()));
  return out;
}

/// Understands "cpu", "cuda:1", ...
inline DLDevice device(const std::string &text) {
  detail::Call call;
  DLDevice out{};
  call.check(dlrs_device_parse(text.data(), text.size(), &out, call.out()));
  return out;
}

inline std::string to_string(DLDataType dtype) { return detail::name(dlrs_dtype_format, dtype); }
inline std::string to_string(DLDevice device) { return detail::name(dlrs_device_format, device); }
constexpr DLDevice cpu() noexcept { return DLDevice{kDLCPU, 0}; }
constexpr bool same(DLDataType a, DLDataType b) noexcept {
  return a.code == b.code && a.bits == b.bits && a.lanes == b.lanes;
}

struct ReleaseLegacy {
  void operator()(DLManagedTensor *tensor) const noexcept { dlrs_release_legacy(tensor); }
};
/// A legacy tensor that releases itself.
using Legacy = std::unique_ptr<DLManagedTensor, ReleaseLegacy>;

/// One holder of a DLPack tensor, ours or anyone's. Move-only; empty after being moved from.
/// Members that look into the tensor need one that is not empty, as with std::unique_ptr.
class Tensor {
 public:
  using Pointer = DLManagedTensorVersioned *;
  using Shape = Span<const int64_t>;
  using Extents = std::initializer_list<int64_t>;

  constexpr Tensor() noexcept = default;
  /// Takes a holder over; nothing is checked (import_take does).
  explicit constexpr Tensor(Pointer owned) noexcept : pointer_(owned) {}
  Tensor(Tensor &&other) noexcept : pointer_(other.release()) {}
  Tensor &operator=(Tensor &&other) noexcept {
    reset(other.release());
    return *this;
  }
  Tensor(const Tensor &) = delete;
  Tensor &operator=(const Tensor &) = delete;
  ~Tensor() { reset(); }

  // ---- making -------------------------------------------------------------------------------

  /// Compact, row-major, not initialised.
  static Tensor make(Shape shape, DLDataType dtype, DLDevice device = cpu(),
                     const dlrs_alloc_options *options = nullptr) {
    detail::Call call;
    Tensor out;
    call.check(dlrs_tensor_new(shape.data(), rank(shape), dtype, device, options, &out.pointer_,
                               call.out()));
    return out;
  }
  static Tensor make(Extents shape, DLDataType dtype, DLDevice device = cpu(),
                     const dlrs_alloc_options *options = nullptr) {
    return make(of(shape), dtype, device, options);
  }
  template <class T>
  static Tensor make(Shape shape) {
    return make(shape, dtype_of<T>());
  }
  template <class T>
  static Tensor make(Extents shape) {
    return make(of(shape), dtype_of<T>());
  }

  /// Wraps lent memory; free_fn(context) runs when the last holder goes, never on an exception.
  static Tensor wrap(const DLTensor &tensor, uint64_t flags, dlrs_free_fn free_fn, void *context) {
    detail::Call call;
    Tensor out;
    call.check(dlrs_tensor_wrap(&tensor, flags, free_fn, context, &out.pointer_, call.out()));
    return out;
  }
  /// Wraps lent memory; on_free(), a function object, is called when the last holder goes. It is
  /// moved to the heap, must not throw, and can keep the owner of the memory in its captures.
  template <class F, class = std::enable_if_t<std::is_invocable_v<std::decay_t<F> &>>>
  static Tensor wrap(const DLTensor &tensor, F &&on_free, uint64_t flags = 0) {
    using Function = std::decay_t<F>;
    auto context = std::make_unique<Function>(std::forward<F>(on_free));
    Tensor out = wrap(tensor, flags, &detail::run_once<Function>, context.get());
    static_cast<void>(context.release());
    return out;
  }
  /// Wraps a compact row-major array on the CPU; an array of const elements is read-only.
  template <class T, class F>
  static Tensor wrap(T *data, Shape shape, F &&on_free) {
    DLTensor tensor{const_cast<std::remove_cv_t<T> *>(data), cpu(), rank(shape), dtype_of<T>(),
                    const_cast<int64_t *>(shape.data()), nullptr, 0};
    return wrap(tensor, std::forward<F>(on_free),
                std::is_const_v<T> ? uint64_t{DLPACK_FLAG_BITMASK_READ_ONLY} : 0);
  }
  template <class T, class F>
  static Tensor wrap(T *data, Extents shape, F &&on_free) {
    return wrap(data, of(shape), std::forward<F>(on_free));
  }

  /// Takes a tensor in: checked, boxed when foreign, copied when asked. Sets `foreign` to NULL, or
  /// throws and leaves it alone.
  static Tensor import_take(Pointer &foreign, const dlrs_import_options *options = nullptr) {
    detail::Call call;
    Tensor out;
    call.check(dlrs_import_take(&foreign, options, &out.pointer_, call.out()));
    return out;
  }
  /// Takes a legacy tensor in. Sets `legacy` to NULL, or throws and leaves it alone.
  static Tensor from_legacy_take(DLManagedTensor *&legacy, uint64_t flags = 0) {
    detail::Call call;
    Tensor out;
    call.check(dlrs_from_legacy_take(&legacy, flags, &out.pointer_, call.out()));
    return out;
  }

  // ---- holding ------------------------------------------------------------------------------

  Pointer get() const noexcept { return pointer_; }
  explicit operator bool() const noexcept { return pointer_ != nullptr; }
  /// Gives the holder to the caller, for a consumer that will call its deleter.
  [[nodiscard]] Pointer release() noexcept { return std::exchange(pointer_, nullptr); }
  void reset(Pointer owned = nullptr) noexcept {
    if (const Pointer old = std::exchange(pointer_, owned)) dlrs_release(old);
  }
  /// One more holder of the same tensor.
  [[nodiscard]] Tensor retain() const {
    detail::Call call;
    Tensor out;
    call.check(dlrs_retain(pointer_, &out.pointer_, call.out()));
    return out;
  }
  /// Turns this into a legacy tensor; on an exception this tensor stays as it was.
  [[nodiscard]] Legacy to_legacy(dlrs_legacy_policy policy = DLRS_LEGACY_REFUSE) && {
    detail::Call call;
    DLManagedTensor *out = nullptr;
    call.check(dlrs_to_legacy_take(&pointer_, policy, &out, call.out()));
    return Legacy(out);
  }
  /// Runs a function object when the last holder goes; it must not throw.
  template <class F>
  void attach(F &&callback, int32_t order = DLRS_BEFORE_FREE) {
    using Function = std::decay_t<F>;
    detail::Call call;
    auto context = std::make_unique<Function>(std::forward<F>(callback));
    call.check(dlrs_attach(pointer_, &detail::run_once<Function>, context.get(), order,
                           call.out()));
    static_cast<void>(context.release());
  }
  int64_t ref_count() const noexcept { return dlrs_ref_count(pointer_); }
  bool is_own() const noexcept { return dlrs_is_own(pointer_) != 0; }
  void set_flags(uint64_t set, uint64_t clear = 0) {
    detail::Call call;
    call.check(dlrs_set_flags(pointer_, set, clear, call.out()));
  }

  // ---- copying ------------------------------------------------------------------------------

  /// A deep copy, compact and row-major.
  [[nodiscard]] Tensor clone(DLDevice device = cpu(),
                             const dlrs_copy_options *options = nullptr) const {
    detail::Call call;
    Tensor out;
    call.check(dlrs_clone(pointer_, device, options, &out.pointer_, call.out()));
    return out;
  }
  /// Dense in 'C', 'F', 'A' or 'K' order: one more holder, or a copy.
  [[nodiscard]] Tensor contiguous(char order = 'C',
                                  const dlrs_copy_options *options = nullptr) const {
    detail::Call call;
    Tensor out;
    call.check(dlrs_contiguous(pointer_, order, options, &out.pointer_, call.out()));
    return out;
  }
  /// On a device: one more holder, or a copy. copy is -1 never, 0 if needed, 1 always.
  [[nodiscard]] Tensor to_device(DLDevice device, int32_t copy = 0,
                                 const dlrs_copy_options *options = nullptr) const {
    detail::Call call;
    Tensor out;
    call.check(dlrs_to_device(pointer_, device, copy, options, &out.pointer_, call.out()));
    return out;
  }
  /// Copies the elements into a tensor of the same shape and dtype.
  void copy_to(Tensor &destination, const dlrs_copy_options *options = nullptr) const {
    detail::Call call;
    call.check(dlrs_copy(pointer_, destination.pointer_, options, call.out()));
  }

  // ---- looking ------------------------------------------------------------------------------

  const DLTensor &view() const noexcept { return pointer_->dl_tensor; }
  uint64_t flags() const noexcept { return pointer_->flags; }
  bool read_only() const noexcept { return (flags() & DLPACK_FLAG_BITMASK_READ_ONLY) != 0; }
  int32_t ndim() const noexcept { return view().ndim; }
  DLDataType dtype() const noexcept { return view().dtype; }
  DLDevice device() const noexcept { return view().device; }
  Shape shape() const noexcept { return {view().shape, static_cast<size_t>(ndim())}; }
  /// In elements; empty when the tensor has none, which a foreign one may.
  Shape strides() const noexcept {
    return {view().strides, view().strides ? static_cast<size_t>(ndim()) : 0};
  }
  /// The first element, byte_offset included. Not for devices whose data is a handle.
  void *data() const noexcept {
    return view().data ? static_cast<char *>(view().data) + view().byte_offset : nullptr;
  }
  /// The first element as a T; throws std::invalid_argument unless the elements are T, the CPU
  /// reaches them, and they may be written (ask for a const T otherwise).
  template <class T>
  T *data_as() const {
    const auto type = device().device_type;
    if (!same(dtype(), dtype_of<T>()))
      throw std::invalid_argument("dlpack_rs::Tensor::data_as: the elements are " +
                                  dlpack_rs::to_string(dtype()) + ", not " +
                                  dlpack_rs::to_string(dtype_of<T>()));
    if (type != kDLCPU && type != kDLCUDAHost && type != kDLROCMHost && type != kDLCUDAManaged)
      throw std::invalid_argument("dlpack_rs::Tensor::data_as: the data is on " +
                                  dlpack_rs::to_string(device()) + "; use to_device first");
    if (!std::is_const_v<T> && read_only())
      throw std::invalid_argument("dlpack_rs::Tensor::data_as: read-only; ask for const elements");
    return static_cast<T *>(data());
  }
  int64_t numel() const {
    detail::Call call;
    int64_t out = 0;
    call.check(dlrs_numel(&view(), &out, call.out()));
    return out;
  }
  uint64_t itemsize_bits() const {
    detail::Call call;
    uint64_t out = 0;
    call.check(dlrs_itemsize_bits(&view(), flags(), &out, call.out()));
    return out;
  }
  uint64_t nbytes() const {
    detail::Call call;
    uint64_t out = 0;
    call.check(dlrs_nbytes(&view(), flags(), &out, call.out()));
    return out;
  }
  bool is_contiguous(char order = 'C') const {
    detail::Call call;
    int32_t out = 0;
    call.check(dlrs_is_contiguous(&view(), order, &out, call.out()));
    return out != 0;
  }
  /// A line of description and the values, as NumPy prints them.
  std::string to_string(const dlrs_print_options *options = nullptr) const {
    detail::Call call;
    size_t nbytes = 0;
    std::string text;  // its own NUL is one more byte of room
    const auto fill = [&] {
      return dlrs_managed_to_string(pointer_, options, text.data(), text.size() + 1, &nbytes,
                                    call.out());
    };
    if (const dlrs_status asked = fill(); asked != DLRS_BUF_SMALL) call.check(asked);
    text.resize(nbytes);
    call.check(fill());
    return text;
  }
  void validate(int32_t level = DLRS_LEVEL_STRICT) const {
    detail::Call call;
    call.check(dlrs_validate_managed(pointer_, level, call.out()));
  }

 private:
  static Shape of(Extents shape) noexcept { return {shape.begin(), shape.size()}; }
  static int32_t rank(Shape shape) noexcept {
    return shape.size() < INT32_MAX ? static_cast<int32_t>(shape.size()) : INT32_MAX;
  }

  Pointer pointer_ = nullptr;
};
static_assert(sizeof(Tensor) == sizeof(void *), "a Tensor is one pointer");

}  // namespace dlpack_rs

#endif  // DLPACK_RS_HPP_
