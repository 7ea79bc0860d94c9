/*!
 * \file dlpack_rs_core.hpp
 * \brief libdlpack_rs for C++17: tensors that release themselves, views, errors.
 *
 * The functions here are inline, and nearly all call one function of dlpack_rs.h, which is the
 * manual: they have its name without `dlrs_`, `tensor_` and `view_`. What can fail returns
 * R<T>: in a Tensor that is T, and a failure is thrown as an Error; in a nothrow::Tensor, and in
 * both under -fno-exceptions, it is Result<T>. Of the standard library only headers of the
 * language are included; dlpack_rs.hpp adds text and std::complex,
 * dlpack_rs_mdspan.hpp std::mdspan, dlpack_rs_vendor.hpp other people's elements.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef DLPACK_RS_CORE_HPP_
#define DLPACK_RS_CORE_HPP_

#include "dlpack_rs_view.hpp"

namespace dlpack_rs {

namespace detail {
/// Calls and deletes a function object that was passed as a context.
template <class F>
void run_once(void *context) noexcept {
  F *function = static_cast<F *>(context);
  (*function)();
  delete function;
}
/// Memory for a K that is made in it later.
template <class K>
struct Slot {
  alignas(K) unsigned char bytes[sizeof(K)];
  K *get() noexcept { return std::launder(reinterpret_cast<K *>(bytes)); }
};
template <class K>
void drop(void *context) noexcept {
  Slot<K> *slot = static_cast<Slot<K> *>(context);
  slot->get()->~K();
  delete slot;
}
template <class K>
void call_and_drop(void *context) noexcept {
  (*static_cast<Slot<K> *>(context)->get())();
  drop<K>(context);
}
inline dlrs_status no_memory(dlrs_error *e) noexcept {
  return (Refusal(e, DLRS_NOMEM, DLRS_FIELD_NONE, "dlpack_rs") << "no memory to keep the owner")
      .hint("Free some.");
}
/// Whether C is a container, and not an owner, which has get().
template <class C, class = void>
inline constexpr bool has_data = false;
template <class C>
inline constexpr bool has_data<C, std::void_t<decltype(std::declval<C &>().data())>> = true;
}  // namespace detail

/// A legacy tensor that releases itself: one pointer, move-only, empty after being moved from.
template <class M>
class [[nodiscard]] BasicLegacyTensor : public Queries<BasicLegacyTensor<M>, M> {
 public:
  using Pointer = DLManagedTensor *;
  template <class T>
  using R = ResultOf<M, T>;

  constexpr BasicLegacyTensor() noexcept = default;
  /// Takes a tensor over; nothing is checked.
  explicit constexpr BasicLegacyTensor(Pointer owned) noexcept : pointer_(owned) {}
  BasicLegacyTensor(BasicLegacyTensor &&other) noexcept : pointer_(other.release()) {}
  /// From the other mode.
  template <class O>
  BasicLegacyTensor(BasicLegacyTensor<O> &&other) noexcept : pointer_(other.release()) {}
  BasicLegacyTensor &operator=(BasicLegacyTensor &&other) noexcept {
    reset(other.release());
    return *this;
  }
  ~BasicLegacyTensor() { reset(); }

  [[nodiscard]] Pointer get() const noexcept { return pointer_; }
  /// Gives the tensor to the caller, for a consumer that will call its deleter.
  [[nodiscard]] Pointer release() noexcept { return std::exchange(pointer_, nullptr); }
  void reset(Pointer owned = nullptr) noexcept {
    if (const Pointer old = std::exchange(pointer_, owned)) dlrs_release_legacy(old);
  }
  explicit operator bool() const noexcept { return pointer_ != nullptr; }
  [[nodiscard]] const DLTensor &dl() const noexcept { return pointer_->dl_tensor; }
  [[nodiscard]] const DLTensor *desc() const noexcept {
    return pointer_ ? &pointer_->dl_tensor : nullptr;
  }
  [[nodiscard]] uint64_t flags() const noexcept { return 0; }
  [[nodiscard]] const DLManagedTensorVersioned *managed() const noexcept { return nullptr; }
  [[nodiscard]] detail::Lent lend() const noexcept { return {nullptr, desc(), 0}; }

  R<void> validate(int32_t level = DLRS_LEVEL_STRICT) const {
    return detail::run<M>(dlrs_validate_legacy, pointer_, level);
  }
  /// Makes it a Tensor, with flags that a legacy struct lacks. On failure it stays.
  R<BasicTensor<M>> to_versioned(uint64_t flags = 0) && {
    return BasicTensor<M>::from_legacy_take(pointer_, flags);
  }

 private:
  template <class>
  friend class BasicTensor;
  Pointer pointer_ = nullptr;
};

/// One reference to a DLPack tensor, of this library or foreign: one pointer, move-only, empty
/// after being moved from.
template <class M>
class [[nodiscard]] BasicTensor : public Queries<BasicTensor<M>, M> {
 public:
  using Pointer = DLManagedTensorVersioned *;
  template <class T>
  using R = ResultOf<M, T>;
  using View = BasicView<M>;
  using Legacy = BasicLegacyTensor<M>;
  using Mode = M;
  using AllocArguments = OptionsRef<dlrs_alloc_options>;
  using CopyArguments = OptionsRef<dlrs_copy_options>;

  constexpr BasicTensor() noexcept = default;
  /// Takes ownership of a reference; nothing is checked (import_take does).
  explicit constexpr BasicTensor(Pointer owned) noexcept : pointer_(owned) {}
  BasicTensor(BasicTensor &&other) noexcept : pointer_(other.release()) {}
  /// From the other mode.
  template <class O>
  BasicTensor(BasicTensor<O> &&other) noexcept : pointer_(other.release()) {}
  BasicTensor &operator=(BasicTensor &&other) noexcept {
    reset(other.release());
    return *this;
  }
  ~BasicTensor() { reset(); }

  // ---- making -----------------------------------------------------------------------------------

  /// Compact, row-major, not initialised.
  static R<BasicTensor> make(Shape shape, DLDataType dtype, DLDevice device = cpu(),
                             AllocArguments options = {}) {
    return made(dlrs_tensor_new, shape.data(), detail::rank(shape), dtype, device, options);
  }
  template <class T>
  static R<BasicTensor> make(Shape shape, DLDevice device = cpu(), AllocArguments options = {}) {
    return make(shape, dtype_of<T>(), device, options);
  }
  /// Of the shape, dtype and device of another one.
  static R<BasicTensor> make_like(View prototype, AllocArguments options = {}) {
    return made(dlrs_tensor_new_like, prototype.desc(), options);
  }

  /// Wraps memory and keeps its owner, any object, until the tensor is freed. The owner is moved,
  /// or copied, after the memory was described, so it may be what describes it:
  /// own(view, std::move(container)) is right in one statement. On failure the owner is untouched.
  template <class O>
  static R<BasicTensor> own(View memory, O &&owner) {
    using K = std::decay_t<O>;
    return kept<K>(memory, std::forward<O>(owner), &detail::drop<K>);
  }
  /// The same for a compact row-major array on the host; of const elements it is read-only.
  template <class T, class O>
  static R<BasicTensor> own(T *data, Shape shape, O &&owner) {
    const Described<detail::most_dims> memory(data, shape);
    return own(memory, std::forward<O>(owner));
  }
  /// Wraps memory and calls on_free(), which must not throw, when the last reference is released.
  template <class F, class = std::enable_if_t<std::is_invocable_v<std::decay_t<F> &>>>
  static R<BasicTensor> wrap(View memory, F &&on_free) {
    using K = std::decay_t<F>;
    return kept<K>(memory, std::forward<F>(on_free), &detail::call_and_drop<K>);
  }
  /// The same with a C function.
  static R<BasicTensor> wrap(View memory, dlrs_free_fn free_fn, void *context) {
    return made(dlrs_tensor_wrap, memory.desc(), memory.flags(), free_fn, context);
  }
  /// Wraps memory that the caller keeps alive.
  static R<BasicTensor> borrow(View memory) { return wrap(memory, nullptr, nullptr); }

  /// Moves a container into a tensor of one dimension: std::vector, std::array, std::string, any
  /// that has data() and size(). On failure the container is as before.
  template <class C, class = std::enable_if_t<!std::is_lvalue_reference_v<C>>>
  static R<BasicTensor> from(C &&container) {
    const int64_t count = static_cast<int64_t>(container.size());
    return held(std::forward<C>(container), Shape(&count, 1));
  }
  /// Moves a container, or an owner that has get(), into a tensor of a shape: std::unique_ptr<T[]>,
  /// std::shared_ptr<T[]>. An owner does not know its size: the shape is believed.
  template <class C, class = std::enable_if_t<!std::is_lvalue_reference_v<C>>>
  static R<BasicTensor> from(C &&container, Shape shape) {
    if constexpr (detail::has_data<C>)
      return held(std::forward<C>(container), shape);
    else
      return own(container.get(), shape, std::forward<C>(container));
  }

  /// Imports a tensor: checked, boxed if foreign, copied on request. Sets `foreign` to NULL;
  /// on failure it stays the caller's.
  static R<BasicTensor> import_take(Pointer &foreign,
                                    OptionsRef<dlrs_import_options> options = {}) {
    return made(dlrs_import_take, &foreign, options);
  }
  /// Takes a legacy tensor in. Sets `legacy` to NULL; on failure it stays the caller's.
  static R<BasicTensor> from_legacy_take(DLManagedTensor *&legacy, uint64_t flags = 0) {
    return made(dlrs_from_legacy_take, &legacy, flags);
  }

  // ---- holding ----------------------------------------------------------------------------------

  [[nodiscard]] Pointer get() const noexcept { return pointer_; }
  /// For C functions that return a tensor: dlrs_something(..., t.out(), &error). Empties it first.
  [[nodiscard]] Pointer *out() noexcept {
    reset();
    return &pointer_;
  }
  /// Returns the reference to the caller, for a consumer that will call its deleter.
  [[nodiscard]] Pointer release() noexcept { return std::exchange(pointer_, nullptr); }
  void reset(Pointer owned = nullptr) noexcept {
    if (const Pointer old = std::exchange(pointer_, owned)) dlrs_release(old);
  }
  explicit operator bool() const noexcept { return pointer_ != nullptr; }
  [[nodiscard]] const DLTensor &dl() const noexcept { return pointer_->dl_tensor; }
  [[nodiscard]] const DLTensor *desc() const noexcept {
    return pointer_ ? &pointer_->dl_tensor : nullptr;
  }
  [[nodiscard]] uint64_t flags() const noexcept { return pointer_ ? pointer_->flags : 0; }
  [[nodiscard]] const DLManagedTensorVersioned *managed() const noexcept { return pointer_; }
  [[nodiscard]] detail::Lent lend() const noexcept { return {pointer_, nullptr, 0}; }

  /// One more reference to the same tensor.
  R<BasicTensor> retain() const { return made(dlrs_retain, pointer_); }
  /// Turns this into a legacy tensor. On failure it stays as it was.
  R<Legacy> to_legacy(dlrs_legacy_policy policy = DLRS_LEGACY_REFUSE) && {
    return detail::get<M, Legacy>([&](Legacy *out, dlrs_error *e) {
      return dlrs_to_legacy_take(&pointer_, policy, &out->pointer_, e);
    });
  }
  [[nodiscard]] int64_t ref_count() const noexcept { return dlrs_ref_count(pointer_); }
  /// Whether this library made it.
  [[nodiscard]] bool is_own() const noexcept { return dlrs_is_own(pointer_) != 0; }
  /// Checks the whole struct at one of DLRS_LEVEL_...
  R<void> validate(int32_t level = DLRS_LEVEL_STRICT) const {
    return detail::run<M>(dlrs_validate_managed, pointer_, level);
  }

  // ---- views: own references to the same memory -------------------------------------------------

  /// Every step-th element of an axis: Python's a[start:stop:step].
  R<BasicTensor> slice(int32_t axis, int64_t start, int64_t stop, int64_t step = 1) const {
    return made(dlrs_view_slice, pointer_, axis, start, stop, step);
  }
  /// One index of an axis, which is dropped.
  R<BasicTensor> select(int32_t axis, int64_t index) const {
    return made(dlrs_view_select, pointer_, axis, index);
  }
  /// `count` elements of an axis from start on.
  R<BasicTensor> narrow(int32_t axis, int64_t start, int64_t count) const {
    return made(dlrs_view_narrow, pointer_, axis, start, count);
  }
  /// An axis, or all, in the opposite direction.
  R<BasicTensor> flip(int32_t axis = DLRS_ALL_AXES) const {
    return made(dlrs_view_flip, pointer_, axis);
  }
  /// Windows of an axis; the place inside one is a new last axis.
  R<BasicTensor> unfold(int32_t axis, int64_t window, int64_t step = 1) const {
    return made(dlrs_view_unfold, pointer_, axis, window, step);
  }
  /// The diagonal of two axes, as a new last axis.
  R<BasicTensor> diagonal(int32_t a = 0, int32_t b = 1, int64_t offset = 0) const {
    return made(dlrs_view_diagonal, pointer_, a, b, offset);
  }
  /// The axes in another order.
  R<BasicTensor> permute(Shape axes) const {
    return made(dlrs_view_permute, pointer_, axes.data(), detail::rank(axes));
  }
  /// Two axes exchanged.
  R<BasicTensor> transpose(int32_t a = -2, int32_t b = -1) const {
    return made(dlrs_view_transpose, pointer_, a, b);
  }
  /// Without an axis of extent 1, or without any such axis.
  R<BasicTensor> squeeze(int32_t axis = DLRS_ALL_AXES) const {
    return made(dlrs_view_squeeze, pointer_, axis);
  }
  /// With a new axis of extent 1.
  R<BasicTensor> unsqueeze(int32_t axis) const {
    return made(dlrs_view_unsqueeze, pointer_, axis);
  }
  /// The same elements in row-major order in another shape; fails where that needs a copy.
  R<BasicTensor> reshape(Shape shape) const {
    return made(dlrs_view_reshape, pointer_, shape.data(), detail::rank(shape));
  }
  /// Extents of 1 repeated.
  R<BasicTensor> expand(Shape shape) const {
    return made(dlrs_view_expand, pointer_, shape.data(), detail::rank(shape));
  }
  /// Any shape and strides inside the memory that the tensor uses.
  R<BasicTensor> as_strided(Shape shape, Shape strides, int64_t offset = 0) const {
    return made([&](Pointer *o, dlrs_error *e) {
      if (shape.size() != strides.size())
        return detail::other_count(e, "as_strided", strides.size(), shape.size());
      return dlrs_view_as_strided(pointer_, shape.data(), strides.data(), detail::rank(shape),
                                  offset, o, e);
    });
  }
  /// The same bits as another dtype.
  R<BasicTensor> bitcast(DLDataType dtype) const {
    return made(dlrs_view_bitcast, pointer_, dtype);
  }
  /// Lanes as a last axis (1), or a last axis as lanes.
  R<BasicTensor> lanes(int32_t n) const { return made(dlrs_view_lanes, pointer_, n); }
  /// The same tensor, flagged as read-only.
  R<BasicTensor> as_read_only() const { return made(dlrs_view_read_only, pointer_); }
  /// The form that strict consumers accept, by DLRS_NORMALIZE_...
  R<BasicTensor> normalize(uint32_t what = DLRS_NORMALIZE_OFFSET | DLRS_NORMALIZE_STRIDES) const {
    return made(dlrs_view_normalize, pointer_, what);
  }
  /// Several steps at once: apply({ViewStep::slice(0, 1, 3), ViewStep::flip(1)})
  R<BasicTensor> apply(Span<const ViewStep> steps) const {
    return made(dlrs_view_apply, pointer_, steps.data(), steps.size());
  }

  // ---- one more reference, or a copy ------------------------------------------------------------

  /// Dense in 'C', 'F', 'A' or 'K' order.
  R<BasicTensor> contiguous(char order = 'C', CopyArguments options = {}) const {
    return made(dlrs_contiguous, pointer_, order, options);
  }
  /// On a device; copy is -1 never, 0 if needed, 1 always.
  R<BasicTensor> to_device(DLDevice device, int32_t copy = 0, CopyArguments options = {}) const {
    return made(dlrs_to_device, pointer_, device, copy, options);
  }
#ifndef DLRS_NO_CAST
  /// A new tensor of another dtype: compact, on the host.
  R<BasicTensor> cast(DLDataType dtype, CopyArguments options = {}) const {
    return made([&](Pointer *o, dlrs_error *e) {
      if (!pointer_) return dlrs_cast(nullptr, nullptr, options, e);
      BasicTensor result;
      dlrs_status status = dlrs_tensor_new(this->dl().shape, this->ndim(), dtype, cpu(), nullptr,
                                           &result.pointer_, e);
      if (status == DLRS_OK) status = dlrs_cast(pointer_, result.pointer_, options, e);
      if (status == DLRS_OK) *o = result.release();
      return status;
    });
  }
  template <class T>
  R<BasicTensor> cast(CopyArguments options = {}) const {
    return cast(dtype_of<T>(), options);
  }
#endif

 private:
  template <class, class>
  friend class Queries;
  template <class>
  friend class BasicLegacyTensor;

  /// function(arguments..., &tensor, &error) makes the tensor.
  template <class F, class... A>
  static R<BasicTensor> made(F &&function, A... arguments) {
    detail::Call call;
    BasicTensor out;
    const dlrs_status status = function(arguments..., &out.pointer_, &call.error);
    return M::template give<BasicTensor>(status, call.error, std::move(out));
  }
  /// Wraps memory for `what`, which is moved into its slot when nothing can fail any more.
  template <class K, class A>
  static R<BasicTensor> kept(View memory, A &&what, dlrs_free_fn free_fn) {
    if constexpr (!std::is_nothrow_constructible_v<K, A &&>) {
      static_assert(std::is_nothrow_move_constructible_v<K>, "moving the owner must not throw");
      K copy(std::forward<A>(what));
      return kept<K>(memory, std::move(copy), free_fn);
    } else {
      return made([&](Pointer *o, dlrs_error *e) {
        auto *slot = new (std::nothrow) detail::Slot<K>;
        if (!slot) return detail::no_memory(e);
        const dlrs_status status =
            dlrs_tensor_wrap(memory.desc(), memory.flags(), free_fn, slot, o, e);
        if (status == DLRS_OK)
          ::new (static_cast<void *>(slot->bytes)) K(std::forward<A>(what));
        else
          delete slot;
        return status;
      });
    }
  }
  /// Moves a container first, as some have their elements inside, and back on failure.
  template <class C>
  static R<BasicTensor> held(C &&container, Shape shape) {
    static_assert(std::is_nothrow_move_constructible_v<C> && std::is_nothrow_move_assignable_v<C>,
                  "moving the container must not throw");
    return made([&](Pointer *o, dlrs_error *e) {
      auto *slot = new (std::nothrow) detail::Slot<C>;
      if (!slot) return detail::no_memory(e);
      C *kept = ::new (static_cast<void *>(slot->bytes)) C(std::move(container));
      const Described<detail::most_dims> memory(kept->data(), shape);
      const View view(memory);
      dlrs_status status = dlrs_validate_within(view.desc(), 0, kept->data(),
                                                kept->size() * sizeof(*kept->data()), e);
      if (status == DLRS_OK)
        status = dlrs_tensor_wrap(view.desc(), view.flags(), &detail::drop<C>, slot, o, e);
      if (status != DLRS_OK) {
        container = std::move(*kept);
        detail::drop<C>(slot);
      }
      return status;
    });
  }

  Pointer pointer_ = nullptr;
};

using TensorView = BasicView<DefaultMode>;
using Tensor = BasicTensor<DefaultMode>;
using LegacyTensor = BasicLegacyTensor<DefaultMode>;
/// The same with Result<T> in place of exceptions. Each is made from the other by a move.
namespace nothrow {
using TensorView = BasicView<Returning>;
using Tensor = BasicTensor<Returning>;
using LegacyTensor = BasicLegacyTensor<Returning>;
}  // namespace nothrow
static_assert(sizeof(Tensor) == sizeof(void *), "a Tensor is one pointer");

/// How a C++ type is a tensor: specialise it, for the Python headers and for generic code.
///   static Tensor to_dlpack(const T &);     shares the memory and keeps it alive
///   static T from_dlpack(Tensor);           takes the tensor; fails for what T cannot be
///   static DLDevice device(const T &);      optional: cpu()
///   static DLTensor borrow(const T &);      optional: shape and strides live in the T
template <class T>
struct adapter;

}  // namespace dlpack_rs

#endif  // DLPACK_RS_CORE_HPP_
