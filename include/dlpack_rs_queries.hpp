/*!
 * \file dlpack_rs_queries.hpp
 * \brief Queries of any tensor, owned or not.
 *
 * Included by dlpack_rs_core.hpp, which is what a program includes.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef DLPACK_RS_QUERIES_HPP_
#define DLPACK_RS_QUERIES_HPP_

#include "dlpack_rs_base.hpp"

namespace dlpack_rs {

template <class M>
class BasicView;
template <class M>
class BasicTensor;
template <class M>
class BasicLegacyTensor;

/// Elements of N dimensions at any strides: a(i, j). Indices are not checked.
template <class T, size_t N>
class Strided {
 public:
  constexpr Strided() noexcept = default;
  /// NULL strides are compact row-major. Shape and strides are copied.
  constexpr Strided(T *data, const int64_t *shape, const int64_t *strides) noexcept : data_(data) {
    uint64_t compact = 1;  // which the extents of an empty tensor may exceed
    for (size_t i = N; i-- > 0;) {
      shape_[i] = shape[i];
      strides_[i] = strides ? strides[i] : static_cast<int64_t>(compact);
      compact *= static_cast<uint64_t>(shape[i]);
    }
  }
  /// Of const elements, from one of others.
  template <class U, class = std::enable_if_t<std::is_same_v<const U, T>>>
  constexpr Strided(const Strided<U, N> &other) noexcept
      : Strided(other.data(), other.shape(), other.strides()) {}
  /// The element at an index: one number for each dimension.
  template <class... I>
  [[nodiscard]] constexpr T &operator()(I... index) const noexcept {
    static_assert(sizeof...(I) == N, "as many indices as dimensions");
    int64_t at = 0;
    [[maybe_unused]] size_t axis = 0;
    ((at += static_cast<int64_t>(index) * strides_[axis++]), ...);
    return data_[at];
  }
  [[nodiscard]] static constexpr size_t rank() noexcept { return N; }
  [[nodiscard]] constexpr int64_t extent(size_t axis) const noexcept { return shape_[axis]; }
  [[nodiscard]] constexpr int64_t stride(size_t axis) const noexcept { return strides_[axis]; }
  /// The element (0, ..., 0).
  [[nodiscard]] constexpr T *data() const noexcept { return data_; }
  [[nodiscard]] constexpr const int64_t *shape() const noexcept { return shape_; }
  [[nodiscard]] constexpr const int64_t *strides() const noexcept { return strides_; }

 private:
  T *data_ = nullptr;
  int64_t shape_[N ? N : 1] = {}, strides_[N ? N : 1] = {};
};


namespace detail {
/// A managed struct around any tensor, for C functions that take no bare one: its own where it has
/// one, else a struct on the stack; NULL for an empty Tensor.
class Lent {
 public:
  Lent(const DLManagedTensorVersioned *own, const DLTensor *tensor, uint64_t flags) noexcept
      : own_(own), any_(tensor != nullptr), room_() {
    if (own || !tensor) return;
    room_.version = {DLPACK_MAJOR_VERSION, 0};  // 1.0 allows NULL strides
    room_.flags = flags;
    room_.dl_tensor = *tensor;
  }
  [[nodiscard]] DLManagedTensorVersioned *get() noexcept {
    if (own_) return const_cast<DLManagedTensorVersioned *>(own_);
    return any_ ? &room_ : nullptr;
  }

 private:
  const DLManagedTensorVersioned *own_;
  bool any_;
  DLManagedTensorVersioned room_;
};
}  // namespace detail

/// What TensorView, Tensor and LegacyTensor have in common. What can fail reports an empty Tensor
/// as DLRS_NULL_ARG; what cannot fail needs one that is not empty, as with std::unique_ptr.
template <class D, class M>
class Queries {
 public:
  template <class T>
  using R = ResultOf<M, T>;
  using View = BasicView<M>;
  using CopyArguments = OptionsRef<dlrs_copy_options>;

  // ---- the struct's members
  [[nodiscard]] int32_t ndim() const noexcept { return self().dl().ndim; }
  [[nodiscard]] DLDataType dtype() const noexcept { return self().dl().dtype; }
  [[nodiscard]] DLDevice device() const noexcept { return self().dl().device; }
  [[nodiscard]] Shape shape() const noexcept {
    const DLTensor &t = self().dl();
    return {t.shape, t.shape && t.ndim > 0 ? static_cast<size_t>(t.ndim) : 0};
  }
  /// One extent; axis counts from the end when negative, and is not checked.
  [[nodiscard]] int64_t shape(int32_t axis) const noexcept {
    return self().dl().shape[axis < 0 ? axis + ndim() : axis];
  }
  /// In elements; empty when the struct has none, which means compact row-major.
  [[nodiscard]] Shape strides() const noexcept {
    const DLTensor &t = self().dl();
    return {t.strides, t.strides && t.ndim > 0 ? static_cast<size_t>(t.ndim) : 0};
  }
  [[nodiscard]] bool read_only() const noexcept {
    return (self().flags() & DLPACK_FLAG_BITMASK_READ_ONLY) != 0;
  }
  /// Whether the CPU reads the elements at their addresses.
  [[nodiscard]] bool on_host() const noexcept { return is_host(device()); }
  /// The first element, byte_offset included. Not for devices whose data is a handle.
  [[nodiscard]] void *data() const noexcept {
    const DLTensor &t = self().dl();
    return t.data ? static_cast<char *>(t.data) + t.byte_offset : nullptr;
  }
  /// As a view, which keeps nothing alive.
  [[nodiscard]] View view() const noexcept { return View(self()); }

  // ---- questions
  R<int64_t> numel() const { return detail::get<M, int64_t>(dlrs_numel, desc()); }
  R<uint64_t> nbytes() const {
    return detail::get<M, uint64_t>(dlrs_nbytes, desc(), self().flags());
  }
  /// Whether it is dense in 'C' or 'F' order.
  R<bool> is_contiguous(char order = 'C') const {
    return detail::get<M, bool, int32_t>(dlrs_is_contiguous, desc(), order);
  }
  /// Checks the struct at one of DLRS_LEVEL_...; of a Tensor and a LegacyTensor all of it.
  R<void> validate(int32_t level = DLRS_LEVEL_STRICT) const {
    return detail::run<M>(dlrs_validate, desc(), self().flags(), level);
  }

  // ---- elements
  /// The first element. Fails unless the elements are T, in host memory, aligned for T, and
  /// writable or T const. The others lie as strides() says. Waits first, as dlrs_ready_sync does,
  /// for what was recorded, and for the default stream of managed memory; data() does not. Of a
  /// LegacyTensor and of a bare DLTensor no record is known.
  template <class T>
  R<T *> data_as() const {
    return detail::get<M, T *>(
        [this](T **out, dlrs_error *e) { return typed(out, "data_as", e); });
  }
  /// All elements of a contiguous tensor; with the errors of data_as.
  template <class T>
  R<Span<T>> span() const {
    return detail::get<M, Span<T>>([this](Span<T> *out, dlrs_error *e) {
      T *first = nullptr;
      int64_t count = 0;
      int32_t contiguous = 0;
      dlrs_status status = typed(&first, "span", e);
      if (status == DLRS_OK) status = dlrs_is_contiguous(desc(), 'C', &contiguous, e);
      if (status == DLRS_OK && !contiguous)
        status = (detail::Refusal(e, DLRS_COPY_NEEDED, DLRS_FIELD_STRIDES, "span")
                  << "the elements are not contiguous")
                     .hint("Use contiguous(), or as() for any strides.");
      if (status == DLRS_OK) status = dlrs_numel(desc(), &count, e);
      *out = {first, static_cast<size_t>(count)};
      return status;
    });
  }
  /// The elements of N dimensions at any strides: as<float, 2>() gives a(i, j).
  template <class T, size_t N>
  R<Strided<T, N>> as() const {
    return detail::get<M, Strided<T, N>>([this](Strided<T, N> *out, dlrs_error *e) {
      T *first = nullptr;
      const dlrs_status status = typed(&first, "as", e);
      if (status != DLRS_OK) return status;
      if (ndim() != static_cast<int32_t>(N))
        return (detail::Refusal(e, DLRS_NDIM, DLRS_FIELD_NDIM, "as")
                << "the tensor has another number of dimensions")
            .value(ndim(), N)
            .hint("Use as<T, N> with N = ndim().");
      *out = Strided<T, N>(first, self().dl().shape, self().dl().strides);
      return status;
    });
  }

  // ---- copying and comparing: with tensors, foreign ones and bare DLTensors alike
  /// Copies the elements into a tensor of the same shape and dtype.
  R<void> copy_to(View destination, CopyArguments options = {}) const {
    detail::Lent from = self().lend(), to = destination.lend();
    return detail::run<M>(dlrs_copy, from.get(), to.get(), options);
  }
  /// A deep copy, compact and row-major.
  R<BasicTensor<M>> clone(DLDevice device = cpu(), CopyArguments options = {}) const {
    detail::Lent lent = self().lend();
    return BasicTensor<M>::made(dlrs_clone, lent.get(), device, options);
  }
#ifndef DLRS_NO_CAST
  /// Converts the elements to the dtype of a tensor of the same shape.
  R<void> cast_to(View destination, CopyArguments options = {}) const {
    detail::Lent from = self().lend(), to = destination.lend();
    return detail::run<M>(dlrs_cast, from.get(), to.get(), options);
  }
  /// Writes one value, converted to the dtype, to every element.
  template <class T>
  R<void> fill(const T &value, CopyArguments options = {}) const {
    detail::Lent lent = self().lend();
    return detail::run<M>(dlrs_fill, lent.get(), &value, dtype_of<T>(), options);
  }
  /// Whether shapes and elements are equal, by one of DLRS_EQUAL_...
  R<bool> equal(View other, int32_t level = DLRS_EQUAL_VALUES) const {
    detail::Lent a = self().lend(), b = other.lend();
    return detail::get<M, bool, int32_t>(dlrs_equal, a.get(), b.get(), level);
  }
  /// The largest difference of two elements at the same place.
  R<double> max_diff(View other) const {
    detail::Lent a = self().lend(), b = other.lend();
    return detail::get<M, double>(dlrs_max_diff, a.get(), b.get());
  }
#endif

#ifndef DLRS_NO_PRINT
  // ---- text
  /// A line of description and the values. Include dlpack_rs.hpp.
  auto to_string(OptionsRef<dlrs_print_options> options = {}) const;
#endif

 protected:
  [[nodiscard]] const D &self() const noexcept { return static_cast<const D &>(*this); }
  [[nodiscard]] const DLTensor *desc() const noexcept { return self().desc(); }

 private:
  template <class T>
  dlrs_status typed(T **out, const char *caller, dlrs_error *e) const noexcept {
    constexpr DLDataType wanted = dtype_of<T>();
    static_assert(sizeof(T) * 8 == size_t{wanted.bits} * wanted.lanes,
                  "an element is as large as its dtype says; packed ones have no address");
    const dlrs_status status = dlrs_validate(desc(), self().flags(), DLRS_LEVEL_LAYOUT, e);
    if (status != DLRS_OK) return status;
    if (!same(dtype(), wanted))
      return (detail::Refusal(e, DLRS_DTYPE_MISMATCH, DLRS_FIELD_DTYPE_CODE, caller)
              << "the elements are " << dtype() << ", not " << wanted)
          .hint("Use cast().");
    if (!on_host())
      return (detail::Refusal(e, DLRS_DEVICE_TYPE, DLRS_FIELD_DEVICE_TYPE, caller)
              << "the CPU does not reach data on " << device())
          .hint("Use to_device(cpu()).");
    if (!std::is_const_v<T> && read_only())
      return (detail::Refusal(e, DLRS_READ_ONLY, DLRS_FIELD_FLAGS, caller)
              << "the data is read-only")
          .hint("Use const elements.");
    if (const auto at = reinterpret_cast<uintptr_t>(data()) % alignof(T); at != 0)
      return (detail::Refusal(e, DLRS_MISALIGNED, DLRS_FIELD_DATA, caller)
              << "the first element is not aligned for its type")
          .value(static_cast<int64_t>(at), alignof(T))
          .hint("Use clone(), or import with align_bytes.");
    detail::Lent lent = self().lend();
    if (device().device_type == kDLCUDAManaged || dlrs_is_own(lent.get()) != 0)
      if (const dlrs_status waited = dlrs_ready_sync(lent.get(), e); waited != DLRS_OK)
        return waited;
    *out = static_cast<T *>(data());
    return DLRS_OK;
  }
};

}  // namespace dlpack_rs

#endif  // DLPACK_RS_QUERIES_HPP_
