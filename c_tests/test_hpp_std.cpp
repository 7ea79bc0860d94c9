// Tests of the parts of dlpack_rs.hpp and dlpack_rs_mdspan.hpp for newer standards, where the
// standard library has them: std::format, std::mdspan, std::span. Ends with `N passed, N failed`.
#include "dlpack_rs.hpp"

#if defined(__cpp_lib_mdspan)
#include "dlpack_rs_mdspan.hpp"
#endif
#if defined(__cpp_lib_span)
#include <span>
#endif
#if __has_include(<stdfloat>) && __cplusplus > 202002L
#include <stdfloat>
#endif
#include <vector>

#include "hpp_check.h"

using namespace dlpack_rs;

#if defined(__STDCPP_FLOAT16_T__)
static_assert(same(dtype_of<std::float16_t>(), DLDataType{kDLFloat, 16, 1}));
#endif
#if defined(__STDCPP_BFLOAT16_T__)
static_assert(same(dtype_of<std::bfloat16_t>(), DLDataType{kDLBfloat, 16, 1}));
#endif

static nothrow::Tensor counted(Shape shape) {
  auto t = nothrow::Tensor::make<int32_t>(shape);
  int32_t next = 0;
  const auto elements = t->span<int32_t>();  // a name: the loop would keep a reference into it
  for (int32_t &element : *elements) element = next++;
  return std::move(*t);
}

static void text() {
  const nothrow::Tensor t = counted({2, 2});
  const Result<std::string> said = t.to_string();
  CHECK(said && said->find("[2, 3]]") != std::string::npos && *to_string(t.view()) == *said);
  CHECK(nothrow::Tensor().to_string().error().status() == DLRS_NULL_ARG);
  CHECK(parse_dtype<Returning>("bfloat16") && !parse_dtype<Returning>("brain16"));
#if defined(__cpp_lib_format)
  CHECK(std::format("{}", t) == *said && std::format("{:.6}", t.view()) == "Tensor");
  CHECK(!std::format("{}", nothrow::Tensor()).empty());
#endif
}

static void spans() {
#if defined(__cpp_lib_span)
  const nothrow::Tensor t = counted({6});
  const auto elements = t.span<int32_t>();
  const std::span<int32_t> all = *elements;  // and from one
  CHECK(all.size() == 6 && all[5] == 5 && Span<const int32_t>(all).data() == all.data());
  const std::vector<int64_t> shape{2, 3};
  CHECK(t.reshape(std::span(shape))->ndim() == 2);
#endif
}

#if defined(__cpp_lib_mdspan)
template <class Layout, class T = int32_t>
static dlrs_status refused(const nothrow::Tensor &t) {
  const auto span = to_mdspan<T, 2, Layout>(t);
  return span ? dlrs_status{DLRS_OK} : span.error().status();
}
static void mdspans() {
  const nothrow::Tensor t = counted({2, 3});
  const auto any = to_mdspan<int32_t, 2>(*t.flip());
  CHECK(any && (*any)[0, 0] == 5 && (*any)[1, 2] == 0 && any->stride(0) == -3);
  CHECK(any->mapping().required_span_size() == 1 && any->extent(1) == 3);
  const auto none = to_mdspan<int, 3>(*nothrow::Tensor::make<int>({INT64_MAX, INT64_MAX, 0}));
  CHECK(none && none->mapping().required_span_size() == 0);
  const auto wide = to_mdspan<const int32_t, 3>(*t.expand({4, 2, 3}));
  CHECK(wide && (*wide)[3, 1, 2] == 5 && wide->stride(0) == 0);
  CHECK((*to_mdspan<int32_t, 2, std::layout_right>(t))[1, 2] == 5);
  CHECK((*to_mdspan<int32_t, 2, std::layout_left>(*t.transpose()))[2, 1] == 5);
  CHECK((*to_mdspan<int32_t, 2, std::layout_stride>(*t.transpose()))[2, 1] == 5);
  CHECK(refused<std::layout_right>(*t.transpose()) == DLRS_COPY_NEEDED);
  CHECK(refused<std::layout_left>(t) == DLRS_COPY_NEEDED);
  CHECK(refused<std::layout_stride>(*t.flip()) == DLRS_UNSUPPORTED);
  const auto windows = [](int64_t step) { return std::move(*counted({6}).unfold(0, 3, step)); };
  CHECK(refused<std::layout_stride, const int32_t>(windows(1)) == DLRS_UNSUPPORTED);
  CHECK(refused<std::layout_stride, const int32_t>(windows(3)) == DLRS_OK);
  CHECK(refused<std::layout_stride>(counted({1, 1})) == DLRS_OK);
  CHECK(refused<layout_any>(*t.select(0, 1)) == DLRS_NDIM);
  CHECK(refused<layout_any>(*t.cast<float>()) == DLRS_DTYPE_MISMATCH);
  CHECK(refused<layout_any>(*t.as_read_only()) == DLRS_READ_ONLY);
  const nothrow::Tensor element = std::move(*t.select(0, 1)->select(0, 1));
  const auto scalar = to_mdspan<int32_t, 0>(element);
  CHECK(scalar && (*scalar)[] == 4);

  const auto described = describe(*any);  // and back
  const auto again = nothrow::Tensor::borrow(described);
  CHECK(again && *again->equal(*t.flip()) && again->data() == any->data_handle());
  const int32_t plain[6] = {1, 2, 3, 4, 5, 6};
  const auto fixed = describe(std::mdspan<const int32_t, std::extents<int, 3, 2>>(plain));
  const nothrow::TensorView view = fixed;
  CHECK(view.read_only() && (*view.as<const int32_t, 2>())(2, 1) == 6);
}
#endif

int main() {
  text();
  spans();
#if defined(__cpp_lib_mdspan)
  mdspans();
#endif
  HPP_END("test_hpp_std");
}
