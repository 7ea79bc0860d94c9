// Tests of dlpack_rs_core.hpp in the mode that returns, with and without exceptions. Ends with
// `N passed, N failed`.
#include "dlpack_rs_core.hpp"

#include "hpp_check.h"

using namespace dlpack_rs;

struct Half {  // an element type of the program
  unsigned short bits;
};
template <>
struct dlpack_rs::dtype_traits<Half> {
  static constexpr DLDataType value{kDLFloat, 16, 1};
};
struct Brain {  // the same, by the function
  unsigned short bits;
};
template <>
constexpr DLDataType dlpack_rs::dtype_of<Brain>() noexcept {
  return {kDLBfloat, 16, 1};
}
static_assert(dtype_of<const Half>().bits == 16 && has_dtype<const Half>);
static_assert(has_dtype<int> && !has_dtype<long double> && !has_dtype<Error>);
static_assert(!has_dtype<void *> && !has_dtype<int &>);
static_assert(is_host(cpu()) && !is_host(cuda()) && same(rocm(2), DLDevice{kDLROCM, 2}));
static_assert(CopyOptions().with(&dlrs_copy_options::threads, 3).threads == 3);
static_assert(CopyOptions().struct_size == sizeof(dlrs_copy_options));
static_assert(std::is_same_v<Tensor, nothrow::Tensor> == !DLRS_CXX_EXCEPTIONS);
constexpr int elements[] = {1, 2, 3, 4, 5, 6};
constexpr int64_t extents[] = {2, 3};
static_assert(Strided<const int, 2>(elements, extents, nullptr)(1, 1) == 5);
static_assert(Span<const int>(elements).size() == 6);

using T = nothrow::Tensor;

static T made(Result<T> made) {  // a result is passed on by a move
  CHECK(made);
  return std::move(made).value();
}

// Of nothing: f() and a Result<void>; an error can become a value again.
static void chains() {
  const T t = made(T::make<int>({2, 3}));
  int64_t count = 0;
  const auto read = t.validate().and_then([&] { return t.numel(); }).transform([&](int64_t n) {
    count = n;
  });
  CHECK(read && count == 6);
  CHECK(*t.validate().transform([] { return 5; }) == 5);
  const auto code = [](const Error &e) { return Result<int>(e.status()); };
  const auto recovered = t.validate(99).transform([&] { return ++count, 1; }).or_else(code);
  CHECK(recovered && *recovered == DLRS_BAD_ARG && count == 6);
  CHECK(*t.validate().transform([] { return 3; }).or_else(code) == 3);
  CHECK(*recovered.and_then([](const int &n) { return Result<long>(n + 1L); }) == 105);
}

static void results() {
  Result<int> seven(7);
  CHECK(seven && seven.has_value() && *seven == 7 && seven.value() == 7);
  auto more = std::move(seven).transform([](int n) { return n + 0.5; });
  CHECK(more && *more == 7.5);
  auto none = std::move(more).and_then([](double) -> Result<long> {
    return Error(DLRS_BAD_ARG, "no", DLRS_FIELD_OPTION);
  });
  CHECK(!none && none.error().status() == DLRS_BAD_ARG && none.error().what()[0] == 'n');
  CHECK(none.error().field() == DLRS_FIELD_OPTION && none.error().dimension() == -1);
  auto still = std::move(none).transform([](long n) { return n; });
  CHECK(!still && std::move(still).value_or(5) == 5);
  Result<void> good, bad = Error(DLRS_NOMEM, "x");
  CHECK(good && !bad && bad.error().status_class() == 4);
  good = std::move(bad);
  CHECK(!good && good.error().status() == DLRS_NOMEM);
  // A Result owns its value: assigned and destroyed, the tensor is freed once.
  int freed = 0;
  float memory[1];
  const Described one(memory, {1});
  {
    Result<T> first = T::wrap(one, [&] { ++freed; });
    Result<T> second = std::move(first);
    CHECK(second && first && !*first && freed == 0);
    second = Result<T>(Error(DLRS_NOMEM, ""));
    CHECK(freed == 1);
  }
  CHECK(freed == 1);
#if DLRS_CXX_EXCEPTIONS
  dlrs_status thrown = DLRS_OK;
  try {
    static_cast<void>(Result<int>(Error(DLRS_PARSE, "")).value());
  } catch (const Error &error) {
    thrown = error.status();
  }
  CHECK(thrown == DLRS_PARSE);
#endif
}

static void tensors() {
  T t = made(T::make<float>({2, 3}));
  CHECK(t.fill(1.0) && *t.numel() == 6 && *t.is_contiguous());
  CHECK(*t.transpose().and_then([](T x) { return x.numel(); }) == 6);
  CHECK(t.flip().and_then([](T x) { return x.slice(0, 0, 1); })->shape(0) == 1);
  const auto a = t.as<float, 2>();
  CHECK(a && (*a)(1, 2) == 1.0f);
  const auto b = t.as<float, 3>();
  CHECK(!b && b.error().status() == DLRS_NDIM);
  CHECK(t.data_as<int>().error().status() == DLRS_DTYPE_MISMATCH);
  const auto refused = T::make<float>({-1});
  CHECK(!refused && refused.error().value() == -1 && refused.error().argument() == 1);
  CHECK(!T().numel() && T().numel().error().status() == DLRS_NULL_ARG);
  T half = made(t.cast<Half>());
  CHECK((*half.span<const Half>())[5].bits == 0x3c00);
  CHECK(half.fill(Half{0x4000}) && *half.max_diff(made(half.clone())) == 0);
  T brain = made(t.cast<Brain>());
  CHECK((*brain.data_as<const Brain>())->bits == 0x3f80);
  auto legacy = std::move(brain).to_legacy(DLRS_LEGACY_COPY);
  CHECK(legacy && !brain && *legacy->numel() == 6);
  CHECK(std::move(*legacy).to_versioned()->is_own());
}

// What cannot be stored is unchanged: an owner that is not moved on failure.
struct Owner {
  int *ends;
  explicit Owner(int *e) noexcept : ends(e) {}
  Owner(Owner &&other) noexcept : ends(std::exchange(other.ends, nullptr)) {}
  Owner(const Owner &) = delete;
  ~Owner() {
    if (ends) ++*ends;
  }
};
static void owners() {
  int ends = 0;
  float memory[2];
  Owner owner(&ends);
  CHECK(!T::own(memory, {-2}, std::move(owner)) && owner.ends == &ends && ends == 0);
  {
    const auto t = T::own(memory, {2}, std::move(owner));
    CHECK(t && owner.ends == nullptr && ends == 0);
  }
  CHECK(ends == 1);
}

int main() {
  results();
  chains();
  tensors();
  owners();
  HPP_END("test_hpp_core");
}
