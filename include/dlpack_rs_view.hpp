/*!
 * \file dlpack_rs_view.hpp
 * \brief Tensors that own nothing, TensorView and Described; and steps of views.
 *
 * Included by dlpack_rs_core.hpp, which is what a program includes.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef DLPACK_RS_VIEW_HPP_
#define DLPACK_RS_VIEW_HPP_

#include "dlpack_rs_queries.hpp"

namespace dlpack_rs {

/// One step of a view, for apply(). Members as those of Tensor make them. Arrays
/// given are not copied: a braced list lives as long as the statement.
struct ViewStep : Options<dlrs_view_step> {
  [[nodiscard]] static constexpr ViewStep slice(int32_t axis, int64_t start, int64_t stop,
                                                int64_t step = 1) noexcept {
    return ViewStep(DLRS_VIEW_SLICE, axis, start, stop, step);
  }
  [[nodiscard]] static constexpr ViewStep select(int32_t axis, int64_t index) noexcept {
    return ViewStep(DLRS_VIEW_SELECT, axis, index);
  }
  [[nodiscard]] static constexpr ViewStep narrow(int32_t axis, int64_t start,
                                                 int64_t count) noexcept {
    return ViewStep(DLRS_VIEW_NARROW, axis, start, count);
  }
  [[nodiscard]] static constexpr ViewStep flip(int32_t axis = DLRS_ALL_AXES) noexcept {
    return ViewStep(DLRS_VIEW_FLIP, axis);
  }
  [[nodiscard]] static constexpr ViewStep unfold(int32_t axis, int64_t window,
                                                 int64_t step = 1) noexcept {
    return ViewStep(DLRS_VIEW_UNFOLD, axis, window, 0, step);
  }
  [[nodiscard]] static constexpr ViewStep diagonal(int32_t a = 0, int32_t b = 1,
                                                   int64_t offset = 0) noexcept {
    return ViewStep(DLRS_VIEW_DIAGONAL, a, offset).other(b);
  }
  [[nodiscard]] static constexpr ViewStep permute(Shape axes) noexcept {
    return ViewStep(DLRS_VIEW_PERMUTE).sized(axes);
  }
  [[nodiscard]] static constexpr ViewStep transpose(int32_t a = -2, int32_t b = -1) noexcept {
    return ViewStep(DLRS_VIEW_TRANSPOSE, a).other(b);
  }
  [[nodiscard]] static constexpr ViewStep squeeze(int32_t axis = DLRS_ALL_AXES) noexcept {
    return ViewStep(DLRS_VIEW_SQUEEZE, axis);
  }
  [[nodiscard]] static constexpr ViewStep unsqueeze(int32_t axis) noexcept {
    return ViewStep(DLRS_VIEW_UNSQUEEZE, axis);
  }
  [[nodiscard]] static constexpr ViewStep reshape(Shape shape) noexcept {
    return ViewStep(DLRS_VIEW_RESHAPE).sized(shape);
  }
  [[nodiscard]] static constexpr ViewStep expand(Shape shape) noexcept {
    return ViewStep(DLRS_VIEW_EXPAND).sized(shape);
  }
  [[nodiscard]] static constexpr ViewStep bitcast(DLDataType dtype) noexcept {
    ViewStep out(DLRS_VIEW_BITCAST);
    out.dtype = dtype;
    return out;
  }
  [[nodiscard]] static constexpr ViewStep lanes(int32_t n) noexcept {
    return ViewStep(DLRS_VIEW_LANES, 0, n);
  }
  [[nodiscard]] static constexpr ViewStep as_read_only() noexcept {
    return ViewStep(DLRS_VIEW_READ_ONLY);
  }
  [[nodiscard]] static constexpr ViewStep normalize(
      uint32_t what = DLRS_NORMALIZE_OFFSET | DLRS_NORMALIZE_STRIDES) noexcept {
    return ViewStep(DLRS_VIEW_NORMALIZE, 0, what);
  }

 private:
  constexpr explicit ViewStep(int32_t which, int32_t first_axis = 0, int64_t first = 0,
                              int64_t second = 0, int64_t third = 0) noexcept {
    op = which;
    axis = first_axis;
    start = first;
    stop = second;
    step = third;
  }
  constexpr ViewStep &other(int32_t second_axis) noexcept {
    other_axis = second_axis;
    return *this;
  }
  constexpr ViewStep &sized(Shape values) noexcept {
    ndim = detail::rank(values);
    shape = values.data();
    return *this;
  }
};
static_assert(sizeof(ViewStep) == sizeof(dlrs_view_step), "an array of steps is C's");

/// A borrowed tensor: a pointer to any struct. Copy it freely; it keeps nothing alive.
template <class M>
class BasicView : public Queries<BasicView<M>, M> {
 public:
  constexpr BasicView() noexcept = default;
  /// Of a bare tensor, with the flags of the managed one around it, or 0.
  constexpr BasicView(const DLTensor &tensor, uint64_t flags = 0) noexcept
      : tensor_(&tensor), flags_(flags) {}
  BasicView(const DLTensor &&, uint64_t = 0) = delete;
  constexpr BasicView(const DLManagedTensorVersioned &tensor) noexcept
      : tensor_(&tensor.dl_tensor), flags_(tensor.flags), managed_(&tensor) {}
  /// Of a Tensor, a LegacyTensor or a view, in either mode. An empty one gives an empty view.
  template <class D, class O>
  BasicView(const Queries<D, O> &other) noexcept
      : tensor_(static_cast<const D &>(other).desc()),
        flags_(static_cast<const D &>(other).flags()),
        managed_(static_cast<const D &>(other).managed()) {}

  explicit operator bool() const noexcept { return tensor_ != nullptr; }
  [[nodiscard]] const DLTensor &dl() const noexcept { return *tensor_; }
  /// The same; NULL for an empty view.
  [[nodiscard]] const DLTensor *desc() const noexcept { return tensor_; }
  [[nodiscard]] uint64_t flags() const noexcept { return flags_; }
  /// The managed tensor around it, or NULL.
  [[nodiscard]] const DLManagedTensorVersioned *managed() const noexcept { return managed_; }
  [[nodiscard]] detail::Lent lend() const noexcept { return {managed_, tensor_, flags_}; }

 private:
  const DLTensor *tensor_ = nullptr;
  uint64_t flags_ = 0;
  const DLManagedTensorVersioned *managed_ = nullptr;
};

/// A DLTensor with room for shape and strides of up to N dimensions, made from what a framework
/// has, without the heap. Converts to a TensorView while it is a variable: a temporary would be
/// gone before the view is used.
template <size_t N = 8>
class Described {
 public:
  /// A scalar without data.
  Described() noexcept : Described(nullptr, DLDataType{kDLFloat, 32, 1}, cpu(), Shape()) {}
  /// No strides mean compact row-major. Too many dimensions, or another number of strides, are
  /// refused by what uses it, as an ndim of -1.
  Described(void *data, DLDataType dtype, DLDevice device, Shape shape, Shape strides = {},
            uint64_t flags = 0) noexcept
      : tensor_{data, device, detail::rank(shape), dtype, nullptr, nullptr, 0}, flags_(flags) {
    if (shape.size() > N || (!strides.empty() && strides.size() != shape.size()))
      tensor_.ndim = -1;
    for (size_t i = 0; tensor_.ndim > 0 && i < shape.size(); ++i) {
      shape_[i] = shape[i];
      strides_[i] = strides.empty() ? 0 : strides[i];
    }
    point(!strides.empty());
  }
  /// An array on the host; of const elements it is read-only.
  template <class T>
  Described(T *data, Shape shape, Shape strides = {}) noexcept
      : Described(const_cast<std::remove_cv_t<T> *>(data), dtype_of<T>(), cpu(), shape, strides,
                  std::is_const_v<T> ? uint64_t{DLPACK_FLAG_BITMASK_READ_ONLY} : 0) {}
  Described(const Described &other) noexcept { *this = other; }
  Described &operator=(const Described &other) noexcept {
    tensor_ = other.tensor_;
    flags_ = other.flags_;
    for (size_t i = 0; i < N; ++i) {
      shape_[i] = other.shape_[i];
      strides_[i] = other.strides_[i];
    }
    point(other.tensor_.strides != nullptr);
    return *this;
  }
  template <class M>
  operator BasicView<M>() const & noexcept {
    return {tensor_, flags_};
  }
  template <class M>
  operator BasicView<M>() const && = delete;
  [[nodiscard]] const DLTensor &dl() const & noexcept { return tensor_; }
  [[nodiscard]] uint64_t flags() const noexcept { return flags_; }

 private:
  void point(bool strides) noexcept {
    tensor_.shape = tensor_.ndim > 0 ? shape_ : nullptr;
    tensor_.strides = strides && tensor_.ndim > 0 ? strides_ : nullptr;
  }
  DLTensor tensor_;
  uint64_t flags_;
  int64_t shape_[N ? N : 1] = {}, strides_[N ? N : 1] = {};
};

}  // namespace dlpack_rs

#endif  // DLPACK_RS_VIEW_HPP_
