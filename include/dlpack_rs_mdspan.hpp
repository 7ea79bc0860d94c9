/*!
 * \file dlpack_rs_mdspan.hpp
 * \brief Tensors as mdspan, and mdspan as tensors, for dlpack_rs_core.hpp.
 *
 * Define DLRS_CXX_MDSPAN as the namespace of an implementation and include its header before, as
 * `Kokkos` or `cuda::std`; without it <mdspan> of C++23 is used.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef DLPACK_RS_MDSPAN_HPP_
#define DLPACK_RS_MDSPAN_HPP_

#include "dlpack_rs_core.hpp"

#include <array>
#ifndef DLRS_CXX_MDSPAN
#include <mdspan>
#define DLRS_CXX_MDSPAN std
#endif

namespace dlpack_rs {

namespace md = DLRS_CXX_MDSPAN;

/// A layout of any strides, 0 and negative ones too, which layout_stride forbids.
struct layout_any {
  template <class Extents>
  class mapping {
   public:
    using extents_type = Extents;
    using index_type = typename Extents::index_type;
    using size_type = typename Extents::size_type;
    using rank_type = typename Extents::rank_type;
    using layout_type = layout_any;
    using strides_type = std::array<index_type, Extents::rank()>;

    constexpr mapping() noexcept = default;
    constexpr mapping(const Extents &extents, const strides_type &strides) noexcept
        : extents_(extents), strides_(strides) {}
    [[nodiscard]] constexpr const Extents &extents() const noexcept { return extents_; }
    [[nodiscard]] constexpr strides_type strides() const noexcept { return strides_; }
    /// From the first element upwards; negative strides lead below it.
    [[nodiscard]] constexpr index_type required_span_size() const noexcept {
      index_type size = 1;
      for (rank_type i = 0; i < Extents::rank(); ++i)
        if (extents_.extent(i) == 0) return 0;
      for (rank_type i = 0; i < Extents::rank(); ++i)
        if (strides_[i] > 0) size += (extents_.extent(i) - 1) * strides_[i];
      return size;
    }
    template <class... I>
    [[nodiscard]] constexpr index_type operator()(I... index) const noexcept {
      static_assert(sizeof...(I) == Extents::rank(), "as many indices as dimensions");
      index_type at = 0;
      [[maybe_unused]] rank_type axis = 0;
      ((at += static_cast<index_type>(index) * strides_[axis++]), ...);
      return at;
    }
    [[nodiscard]] constexpr index_type stride(rank_type axis) const noexcept {
      return strides_[axis];
    }
    [[nodiscard]] static constexpr bool is_always_unique() noexcept { return false; }
    [[nodiscard]] static constexpr bool is_always_exhaustive() noexcept { return false; }
    [[nodiscard]] static constexpr bool is_always_strided() noexcept { return true; }
    [[nodiscard]] static constexpr bool is_unique() noexcept { return false; }
    [[nodiscard]] static constexpr bool is_exhaustive() noexcept { return false; }
    [[nodiscard]] static constexpr bool is_strided() noexcept { return true; }
    [[nodiscard]] friend constexpr bool operator==(const mapping &a, const mapping &b) noexcept {
      return a.extents_ == b.extents_ && a.strides_ == b.strides_;
    }

   private:
    Extents extents_{};
    strides_type strides_{};
  };
};

template <class T, size_t N, class Layout = layout_any>
using Mdspan = md::mdspan<T, md::dextents<int64_t, N>, Layout>;

namespace detail {
/// What an mdspan is made of, before it is known that it can be.
template <class T, size_t N, class Layout>
struct MdspanParts {
  T *data = nullptr;
  std::array<int64_t, N> shape{}, strides{};

  /// layout_stride requires that each stride covers all elements of the smaller ones.
  [[nodiscard]] bool is_nested() const noexcept {
    for (size_t i = 0; i < N; ++i) {
      if (strides[i] <= 0) return false;
      for (size_t j = 0; j < N; ++j) {
        const bool inner = strides[j] != strides[i] ? strides[j] < strides[i]
                           : shape[j] != shape[i]   ? shape[j] < shape[i]
                                                    : j < i;
        if (inner && shape[j] > 0 && strides[i] / shape[j] < strides[j]) return false;
      }
    }
    return true;
  }
  operator Mdspan<T, N, Layout>() const {
    using Extents = md::dextents<int64_t, N>;
    if constexpr (std::is_constructible_v<typename Layout::template mapping<Extents>, Extents,
                                          std::array<int64_t, N>>)
      return {data, typename Layout::template mapping<Extents>(Extents(shape), strides)};
    else
      return {data, typename Layout::template mapping<Extents>(Extents(shape))};
  }
};
}  // namespace detail

/// The elements of a tensor as an mdspan, checked as those of as<T, N>() are. layout_right and
/// layout_left need a tensor that is contiguous in that order; layout_stride needs positive
/// strides, and none inside another.
template <class T, size_t N, class Layout = layout_any, class D, class M>
ResultOf<M, Mdspan<T, N, Layout>> to_mdspan(const Queries<D, M> &tensor) {
  using Parts = detail::MdspanParts<T, N, Layout>;
  constexpr bool right = std::is_same_v<Layout, md::layout_right>;
  constexpr bool left = std::is_same_v<Layout, md::layout_left>;
  return detail::get<M, Mdspan<T, N, Layout>, Parts>([&](Parts *out, dlrs_error *e) {
    out->strides.fill(1);  // for an mdspan that nobody sees, on failure
    const nothrow::TensorView view(tensor);
    const auto elements = view.template as<T, N>();
    if (!elements) {
      *e = elements.error().raw();
      return e->status;
    }
    Parts parts;
    parts.data = elements->data();
    for (size_t i = 0; i < N; ++i) {
      parts.shape[i] = elements->extent(i);
      parts.strides[i] = elements->stride(i);
    }
    if constexpr (right || left) {
      int32_t contiguous = 0;
      const dlrs_status status =
          dlrs_is_contiguous(view.desc(), right ? 'C' : 'F', &contiguous, e);
      if (status != DLRS_OK) return status;
      if (!contiguous)
        return (detail::Refusal(e, DLRS_COPY_NEEDED, DLRS_FIELD_STRIDES, "to_mdspan")
                << "the elements are not contiguous in this order")
            .hint("Use contiguous(), or layout_any.");
    }
    if (std::is_same_v<Layout, md::layout_stride> && !parts.is_nested())
      return (detail::Refusal(e, DLRS_UNSUPPORTED, DLRS_FIELD_STRIDES, "to_mdspan")
              << "layout_stride takes no stride of 0 or below, nor one inside another")
          .hint("Use layout_any.");
    *out = parts;
    return dlrs_status{DLRS_OK};
  });
}

/// An mdspan as a tensor, valid as long as the result:
///   const auto d = describe(span); Tensor::borrow(d)
template <class T, class E, class L>
[[nodiscard]] Described<E::rank() ? E::rank() : 1> describe(
    const md::mdspan<T, E, L, md::default_accessor<T>> &span) noexcept {
  constexpr size_t rank = E::rank(), room = rank ? rank : 1;
  int64_t shape[room] = {}, strides[room] = {};
  for (size_t i = 0; i < rank; ++i) {
    shape[i] = static_cast<int64_t>(span.extent(i));
    strides[i] = static_cast<int64_t>(span.stride(i));
  }
  return Described<room>(span.data_handle(), Shape(shape, rank), Shape(strides, rank));
}

}  // namespace dlpack_rs

#endif  // DLPACK_RS_MDSPAN_HPP_
