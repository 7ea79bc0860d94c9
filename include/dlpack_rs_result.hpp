/*!
 * \file dlpack_rs_result.hpp
 * \brief How the C++ headers of libdlpack_rs fail: Error, Result, two modes; spans and options.
 *
 * Included by dlpack_rs_core.hpp, which is what a program includes.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef DLPACK_RS_RESULT_HPP_
#define DLPACK_RS_RESULT_HPP_

#if (defined(_MSVC_LANG) ? _MSVC_LANG : __cplusplus) < 201703L
#error "dlpack_rs.hpp needs C++17 or newer (-std=c++17); dlpack_rs.h serves C++11 and C99 on"
#endif

#include "dlpack_rs.h"

#include <cstddef>
#include <cstdint>
#include <exception>
#include <initializer_list>
#include <new>
#include <type_traits>
#include <utility>

/// 1 where the compiler has exceptions, else 0. Then `Tensor` returns a Result, as nothrow::Tensor.
#if defined(__cpp_exceptions) || defined(_CPPUNWIND)
#define DLRS_CXX_EXCEPTIONS 1
#else
#define DLRS_CXX_EXCEPTIONS 0
#endif

namespace dlpack_rs {

// ---- spans -------------------------------------------------------------------------------------

/// A pointer and a number of elements: std::span for C++17.
template <class T>
class Span {
 public:
  constexpr Span() noexcept = default;
  constexpr Span(T *data, size_t count) noexcept : data_(data), count_(count) {}
  template <size_t N>
  constexpr Span(T (&array)[N]) noexcept : data_(array), count_(N) {}
  /// Of {2, 3}, where T is const. The list is valid until the end of the statement.
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

// ---- options ----------------------------------------------------------------------------------

/// An options struct of dlpack_rs.h with struct_size set and the rest 0, the defaults:
///   CopyOptions o; o.threads = 1;      CopyOptions().with(&dlrs_copy_options::threads, 1)
template <class S>
struct Options : S {
  constexpr Options() noexcept : S() { this->struct_size = sizeof(S); }
  /// Sets one member. Calls can be chained.
  template <class T, class V>
  constexpr Options &with(T S::*member, V value) noexcept {
    this->*member = static_cast<T>(value);
    return *this;
  }
};
using AllocOptions = Options<dlrs_alloc_options>;
using CopyOptions = Options<dlrs_copy_options>;
using ImportOptions = Options<dlrs_import_options>;
#ifndef DLRS_NO_PRINT
using PrintOptions = Options<dlrs_print_options>;
#endif

/// A parameter that takes options, a pointer to them, or nothing. Only for parameters: temporary
/// options live as long as the call.
template <class S>
class OptionsRef {
 public:
  constexpr OptionsRef(const S *options = nullptr) noexcept : options_(options) {}
  constexpr OptionsRef(const S &options) noexcept : options_(&options) {}
  constexpr operator const S *() const noexcept { return options_; }

 private:
  const S *options_;
};

// ---- errors -----------------------------------------------------------------------------------

/// A failure: thrown by Tensor, held by the Result of a nothrow::Tensor. It is a dlrs_error.
class Error : public std::exception {
 public:
  explicit Error(const dlrs_error &raw) noexcept : raw_(raw) {}
  /// A failure that C++ code found. The text is cut at DLRS_ERROR_MESSAGE_SIZE.
  Error(dlrs_status status, const char *message, int32_t field = DLRS_FIELD_NONE) noexcept
      : raw_() {
    raw_.struct_size = sizeof raw_;
    raw_.status = status;
    raw_.field = field;
    raw_.dimension = -1;
    for (size_t i = 0; i + 1 < sizeof raw_.message && message[i] != 0; ++i)
      raw_.message[i] = message[i], ++raw_.text_end;
    raw_.hint_start = raw_.hint_end = raw_.text_end;
  }
  /// The message: function, argument, member, what is wrong, value, limit, and what to do.
  [[nodiscard]] const char *what() const noexcept override { return raw_.message; }
  /// Its description of the error, with value and limit.
  [[nodiscard]] Span<const char> text() const noexcept {
    return part(raw_.text_start, raw_.text_end);
  }
  /// Its remedy. May be empty.
  [[nodiscard]] Span<const char> hint() const noexcept {
    return part(raw_.hint_start, raw_.hint_end);
  }
  [[nodiscard]] dlrs_status status() const noexcept { return raw_.status; }
  /// 1 argument, 2 malformed tensor, 3 policy, 4 resource, 5 unavailable, 6 device, 9 internal.
  [[nodiscard]] int status_class() const noexcept { return raw_.status / 100; }
  /// "DLRS_SHAPE_NEG", ...; NULL for a number that is no status.
  [[nodiscard]] const char *status_name() const noexcept { return dlrs_status_name(raw_.status); }
  /// Which parameter of the C function, from 1; 0 when none is at fault.
  [[nodiscard]] int32_t argument() const noexcept { return raw_.argument; }
  /// Which member of it: a dlrs_field.
  [[nodiscard]] int32_t field() const noexcept { return raw_.field; }
  /// Which dimension, or -1.
  [[nodiscard]] int32_t dimension() const noexcept { return raw_.dimension; }
  /// The driver's own code, or 0.
  [[nodiscard]] int32_t driver_code() const noexcept { return raw_.driver_code; }
  /// The value found, where there is one.
  [[nodiscard]] int64_t value() const noexcept { return raw_.value; }
  /// The limit that it broke, where there is one.
  [[nodiscard]] int64_t limit() const noexcept { return raw_.limit; }
  /// The whole, for C functions.
  [[nodiscard]] const dlrs_error &raw() const noexcept { return raw_; }
  /// Reports it through the SetError of DLPack's managed tensor allocator.
  void forward(void *error_ctx, dlrs_set_error_fn set_error) const noexcept {
    static_cast<void>(dlrs_error_forward(&raw_, error_ctx, set_error, nullptr));
  }

 private:
  [[nodiscard]] Span<const char> part(uint16_t start, uint16_t end) const noexcept {
    return {raw_.message + start, end > start ? size_t{end} - start : 0};
  }
  dlrs_error raw_;
};

namespace detail {
[[noreturn]] inline void raise(const Error &error) {
#if DLRS_CXX_EXCEPTIONS
  throw error;
#else
  static_cast<void>(error);
  std::terminate();
#endif
}
struct Nothing {};  // the value of a Result<void>
/// f(value), or f() for Nothing.
template <class F, class V>
auto pass(F &f, V &&value) -> decltype(f(std::forward<V>(value))) {
  return f(std::forward<V>(value));
}
template <class F>
auto pass(F &f, const Nothing &) -> decltype(f()) {
  return f();
}
}  // namespace detail

/// A T or an Error, with the names of std::expected. Move-only.
template <class T>
class [[nodiscard]] Result {
  using Value = std::conditional_t<std::is_void_v<T>, detail::Nothing, T>;

 public:
  using value_type = T;
  using error_type = Error;

  /// A value; Result<void>() is success.
  Result(Value value = Value()) noexcept : value_(std::move(value)), ok_(true) {}
  Result(const Error &error) noexcept : error_(error), ok_(false) {}
  Result(Result &&other) noexcept : ok_(other.ok_) { take(other); }
  Result &operator=(Result &&other) noexcept {
    if (this != &other) {
      clear();
      ok_ = other.ok_;
      take(other);
    }
    return *this;
  }
  ~Result() { clear(); }

  [[nodiscard]] bool has_value() const noexcept { return ok_; }
  explicit operator bool() const noexcept { return ok_; }
  /// The value, which is not checked to be there.
  [[nodiscard]] Value &operator*() & noexcept { return value_; }
  [[nodiscard]] const Value &operator*() const & noexcept { return value_; }
  [[nodiscard]] Value &&operator*() && noexcept { return std::move(value_); }
  Value *operator->() noexcept { return &value_; }
  const Value *operator->() const noexcept { return &value_; }
  /// The value; throws the Error, or ends the program where there are no exceptions.
  Value &value() & { return demand(), value_; }
  const Value &value() const & { return demand(), value_; }
  Value &&value() && { return demand(), std::move(value_); }
  /// The Error, which is not checked to be there.
  [[nodiscard]] const Error &error() const noexcept { return error_; }
  template <class U>
  [[nodiscard]] Value value_or(U &&other) && {
    return ok_ ? std::move(value_) : static_cast<Value>(std::forward<U>(other));
  }
  /// f(value), or f() of a Result<void>, which returns a Result; or the Error.
  template <class F>
  auto and_then(F &&f) && -> decltype(detail::pass(f, std::declval<Value>())) {
    if (ok_) return detail::pass(f, std::move(value_));
    return error_;
  }
  template <class F>
  auto and_then(F &&f) & -> decltype(detail::pass(f, std::declval<Value &>())) {
    if (ok_) return detail::pass(f, value_);
    return error_;
  }
  template <class F>
  auto and_then(F &&f) const & -> decltype(detail::pass(f, std::declval<const Value &>())) {
    if (ok_) return detail::pass(f, value_);
    return error_;
  }
  /// A Result of f(value), or f(), which returns a value or nothing; or the Error.
  template <class F>
  auto transform(F &&f) && -> Result<decltype(detail::pass(f, std::declval<Value>()))> {
    if (!ok_) return error_;
    if constexpr (std::is_void_v<decltype(detail::pass(f, std::declval<Value>()))>)
      return detail::pass(f, std::move(value_)), Result<void>();
    else
      return detail::pass(f, std::move(value_));
  }
  /// The value; or f(error), which returns such a Result.
  template <class F>
  Result or_else(F &&f) && {
    if (ok_) return std::move(*this);
    return f(error_);
  }

 private:
  void take(Result &other) noexcept {
    if (ok_)
      ::new (static_cast<void *>(&value_)) Value(std::move(other.value_));
    else
      ::new (static_cast<void *>(&error_)) Error(other.error_);
  }
  void clear() noexcept {
    if (ok_)
      value_.~Value();
    else
      error_.~Error();
  }
  void demand() const {
    if (!ok_) detail::raise(error_);
  }
  union {
    Value value_;
    Error error_;
  };
  bool ok_;
};

// ---- two ways to fail: classes of either way may be used in one program -----------------------

/// What can fail returns a Result.
struct Returning {
  template <class T>
  using R = Result<T>;
  template <class T>
  static Result<T> give(dlrs_status status, const dlrs_error &error, T &&value) noexcept {
    if (status == DLRS_OK) return Result<T>(std::move(value));
    return Result<T>(Error(error));
  }
  static Result<void> give(dlrs_status status, const dlrs_error &error) noexcept {
    if (status == DLRS_OK) return Result<void>();
    return Result<void>(Error(error));
  }
};
#if DLRS_CXX_EXCEPTIONS
/// What can fail returns its value, and throws an Error.
struct Throwing {
  template <class T>
  using R = T;
  template <class T>
  static T give(dlrs_status status, const dlrs_error &error, T &&value) {
    if (status != DLRS_OK) throw Error(error);
    return std::move(value);
  }
  static void give(dlrs_status status, const dlrs_error &error) {
    if (status != DLRS_OK) throw Error(error);
  }
};
using DefaultMode = Throwing;
#else
using DefaultMode = Returning;
#endif
/// A T or a failure, in the way of a mode.
template <class M, class T>
using ResultOf = typename M::template R<T>;

namespace detail {
/// The details of one call. Only the size is set: the library writes the rest, and on failure only.
struct Call {
  dlrs_error error;
  Call() noexcept { error.struct_size = sizeof error; }
};
/// function(arguments..., &value, &error) fills the value of the result, which is of type Raw
/// there, as an int32_t that stands for a bool.
template <class M, class T, class Raw = T, class F, class... A>
ResultOf<M, T> get(F &&function, A... arguments) {
  Call call;
  Raw value{};
  const dlrs_status status = function(arguments..., &value, &call.error);
  return M::template give<T>(status, call.error, static_cast<T>(std::move(value)));
}
/// function(arguments..., &error) has no value.
template <class M, class F, class... A>
ResultOf<M, void> run(F &&function, A... arguments) {
  Call call;
  const dlrs_status status = function(arguments..., &call.error);
  return M::give(status, call.error);
}
/// A failure that C++ code found, composed as the library does it: where, what, the status, and
/// what to do.
class Refusal {
 public:
  Refusal(dlrs_error *e, dlrs_status status, int32_t field, const char *where) noexcept
      : error_(e) {
    *e = Error(status, "", field).raw();
    append(where);
    append(": ");
    e->text_start = used_;
    ended();
  }
  Refusal &operator<<(const char *more) noexcept {
    append(more);
    return ended();
  }
  Refusal &operator<<(DLDataType dtype) noexcept {
    char name[64] = "";
    static_cast<void>(dlrs_dtype_format(dtype, name, sizeof name, nullptr, nullptr));
    return *this << name;
  }
  Refusal &operator<<(DLDevice device) noexcept {
    char name[64] = "";
    static_cast<void>(dlrs_device_format(device, name, sizeof name, nullptr, nullptr));
    return *this << name;
  }
  /// Value and limit, in the message and in their members.
  Refusal &value(int64_t value, int64_t limit) noexcept {
    *this << " (value ";
    number(error_->value = value);
    *this << ", limit ";
    number(error_->limit = limit);
    return *this << ")";
  }
  /// What to do. It ends the message.
  dlrs_status hint(const char *what) noexcept {
    append(" [");
    append(dlrs_status_name(error_->status));
    append("]. ");
    error_->hint_start = used_;
    append(what);
    error_->hint_end = used_;
    return error_->status;
  }

 private:
  void append(const char *more) noexcept {
    for (; *more && used_ + 1 < DLRS_ERROR_MESSAGE_SIZE; ++more) error_->message[used_++] = *more;
    error_->message[used_] = 0;
  }
  void number(int64_t n) noexcept {
    char digits[24];
    size_t at = sizeof digits - 1;
    digits[at] = 0;
    uint64_t rest = n < 0 ? 0 - static_cast<uint64_t>(n) : static_cast<uint64_t>(n);
    do digits[--at] = static_cast<char>('0' + rest % 10);
    while (rest /= 10);
    if (n < 0) digits[--at] = '-';
    append(digits + at);
  }
  Refusal &ended() noexcept {
    error_->text_end = error_->hint_start = error_->hint_end = used_;
    return *this;
  }
  dlrs_error *error_;
  uint16_t used_ = 0;
};
}  // namespace detail

}  // namespace dlpack_rs

#endif  // DLPACK_RS_RESULT_HPP_
