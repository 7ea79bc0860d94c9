// Tests of dlpack_rs.hpp in the mode that throws. Ends with `N passed, N failed`.
#include "dlpack_rs.hpp"

#include <array>
#include <cstring>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "hpp_check.h"

using namespace dlpack_rs;

#if DLRS_CXX_EXCEPTIONS
// The error of a failed call, or DLRS_OK.
template <class F>
static dlrs_status status_of(F &&f) {
  try {
    f();
  } catch (const Error &error) {
    return error.status();
  }
  return DLRS_OK;
}
#define STATUS(...) status_of([&] { static_cast<void>(__VA_ARGS__); })

static_assert(!std::is_copy_constructible_v<Tensor>, "move-only");
static_assert(!std::is_copy_assignable_v<Tensor>, "move-only");
static_assert(std::is_nothrow_move_constructible_v<Tensor>, "moves do not throw");
static_assert(std::is_nothrow_move_assignable_v<Tensor>, "moves do not throw");
static_assert(std::is_same_v<decltype(Tensor().numel()), int64_t>);
static_assert(std::is_same_v<decltype(nothrow::Tensor().numel()), Result<int64_t>>);
// A view of a temporary description or struct would dangle.
static_assert(std::is_convertible_v<const Described<> &, TensorView>);
static_assert(!std::is_convertible_v<Described<>, TensorView>);
static_assert(!std::is_constructible_v<TensorView, DLTensor>);

static Tensor counted(Shape shape) {  // int32 elements 0, 1, 2, ...
  Tensor t = Tensor::make<int32_t>(shape);
  int32_t next = 0;
  for (int32_t &element : t.span<int32_t>()) element = next++;
  return t;
}

static void making() {
  Tensor t = Tensor::make({2, 3}, parse_dtype("float32"));
  CHECK(t && t.is_own() && t.ref_count() == 1);
  CHECK(t.ndim() == 2 && t.shape().size() == 2 && t.shape()[0] == 2 && t.shape(-1) == 3);
  CHECK(t.strides().size() == 2 && t.strides()[0] == 3 && t.strides()[1] == 1);
  CHECK(t.numel() == 6 && t.nbytes() == 24 && t.is_contiguous());
  CHECK(t.on_host() && is_one_of<double, float>(t.dtype()));
  CHECK(to_string(t.dtype()) == "float32" && same(t.device(), cpu()));
  t.validate();
  const std::vector<int64_t> from_vector{4};
  const int64_t from_array[] = {5, 1};
  CHECK(Tensor::make(from_vector, parse_dtype("int8")).nbytes() == 4);
  CHECK(Tensor::make<double>(from_array).nbytes() == 40);
  CHECK(Tensor::make<int16_t>({}).numel() == 1);
  CHECK(Tensor::make<int16_t>({0, 7}).data() == nullptr);
  const Tensor aligned =
      Tensor::make<int8_t>({1}, cpu(), AllocOptions().with(&dlrs_alloc_options::align_bytes, 4096));
  CHECK(reinterpret_cast<uintptr_t>(aligned.data()) % 4096 == 0);
  const Tensor like = Tensor::make_like(t);
  CHECK(same(like.dtype(), t.dtype()) && like.numel() == 6);
}

static void dtypes() {
  CHECK(same(dtype_of<bool>(), parse_dtype("bool")));
  CHECK(same(dtype_of<int8_t>(), parse_dtype("int8")));
  CHECK(same(dtype_of<uint64_t>(), parse_dtype("uint64")));
  CHECK(same(dtype_of<const float>(), parse_dtype("float32")));
  CHECK(same(dtype_of<double>(), parse_dtype("float64")));
  CHECK(same(dtype_of<std::complex<float>>(), parse_dtype("complex64")));
  CHECK(same(dtype_of<std::complex<double>>(), parse_dtype("complex128")));
  CHECK(!same(dtype_of<int32_t>(), dtype_of<uint32_t>()));
  CHECK(STATUS(parse_dtype("flaot32")) == DLRS_PARSE);
}

static void errors() {
  try {
    static_cast<void>(Tensor::make({2, -3}, parse_dtype("float32")));
    CHECK(false);
  } catch (const std::exception &caught) {
    const auto &error = dynamic_cast<const Error &>(caught);
    CHECK(error.status() == DLRS_SHAPE_NEG && error.status_class() == 2);
    CHECK(std::strcmp(error.status_name(), "DLRS_SHAPE_NEG") == 0 && error.argument() == 1);
    CHECK(error.field() == DLRS_FIELD_SHAPE && error.dimension() == 1 && error.value() == -3);
    CHECK(std::string(error.what()).find("dlrs_tensor_new") != std::string::npos);
    CHECK(to_view(error.text()) == "extent is negative (value -3, limit 0)");
    CHECK(to_view(error.hint()) == "Give every extent as 0 or more.");
    struct Said {
      std::string kind, message;
    } said;
    error.forward(&said, [](void *context, const char *kind, const char *message) {
      *static_cast<Said *>(context) = {kind, message};
    });
    CHECK(said.kind == "ValueError" && said.message == error.what());
  }
  const Error long_one(DLRS_BAD_ARG, std::string(1000, 'x').c_str());
  CHECK(std::strlen(long_one.what()) == DLRS_ERROR_MESSAGE_SIZE - 1);
  CHECK(to_view(long_one.text()) == long_one.what() && long_one.hint().empty());
  // A function that can fail reports an empty tensor.
  Tensor none, other;
  CHECK(STATUS(none.validate()) == DLRS_NULL_ARG && STATUS(none.retain()) == DLRS_NULL_ARG);
  CHECK(STATUS(none.numel()) == DLRS_NULL_ARG && STATUS(none.nbytes()) == DLRS_NULL_ARG);
  CHECK(STATUS(none.data_as<int>()) == DLRS_NULL_ARG && STATUS(none.clone()) == DLRS_NULL_ARG);
  CHECK(STATUS(none.copy_to(other)) == DLRS_NULL_ARG && STATUS(none.flip()) == DLRS_NULL_ARG);
  CHECK(STATUS(none.cast<int>()) == DLRS_NULL_ARG && STATUS(none.fill(1)) == DLRS_NULL_ARG);
  CHECK(STATUS(none.to_string()) == DLRS_NULL_ARG && STATUS(none.equal(other)) == DLRS_NULL_ARG);
  CHECK(STATUS(none.span<int>()) == DLRS_NULL_ARG);
  CHECK(STATUS(std::move(none).to_legacy()) == DLRS_NULL_ARG && !TensorView(none));
  try {
    static_cast<void>(none.flip());
    CHECK(false);
  } catch (const Error &error) {
    CHECK(to_view(error.hint()) == "Pass a tensor: this one was never made, or is moved or taken.");
  }
  CHECK(STATUS(Tensor::make_like(none)) == DLRS_NULL_ARG);
  CHECK(STATUS(Tensor::make(std::vector<int64_t>(65, 1), dtype_of<bool>())) == DLRS_NDIM);
}

static void moving() {
  Tensor a = Tensor::make<int32_t>({3});
  DLManagedTensorVersioned *raw = a.get();
  Tensor b = std::move(a);
  CHECK(!a && b.get() == raw);
  a = std::move(b);
  CHECK(a.get() == raw && !b);
  Tensor &same_one = a;
  a = std::move(same_one);
  CHECK(a.get() == raw && a.ref_count() == 1);
  Tensor held = a.retain();
  CHECK(held.get() == a.get() && a.ref_count() == 2);
  held.reset();
  CHECK(!held && a.ref_count() == 1);
  nothrow::Tensor quiet = std::move(a);  // the other mode, and back
  a = std::move(quiet);
  CHECK(a.get() == raw && !quiet);
  raw = a.release();
  CHECK(!a && dlrs_ref_count(raw) == 1);
  Tensor back(raw);
  CHECK(back.ref_count() == 1);
  CHECK(dlrs_clone(back.get(), cpu(), nullptr, a.out(), nullptr) == DLRS_OK && a.numel() == 3);
}

struct Inside {  // elements in the object, as in small vectors
  int64_t values[3] = {1, 2, 3};
  int64_t *data() { return values; }
  const int64_t *data() const { return values; }
  size_t size() const { return 3; }
};
struct ThrowsOnCopy {
  static inline int alive = 0;
  ThrowsOnCopy() { ++alive; }
  ThrowsOnCopy(const ThrowsOnCopy &) { throw 1; }
  ThrowsOnCopy(ThrowsOnCopy &&) noexcept { ++alive; }
  ~ThrowsOnCopy() { --alive; }
};
struct alignas(128) Wide {
  explicit Wide(bool *given) : right(given) {}
  Wide(Wide &&other) noexcept : right(std::exchange(other.right, nullptr)) {}
  ~Wide() {
    if (right) *right = reinterpret_cast<uintptr_t>(this) % 128 == 0;
  }
  bool *right;
};

static void owning() {
  std::vector<float> vector{1, 2, 3, 4};
  const float *elements = vector.data();
  Tensor t = Tensor::from(std::move(vector));
  CHECK(t.data() == elements && t.shape(0) == 4 && t.ndim() == 1 && !t.read_only());
  t = Tensor::from(std::vector<double>{1, 2, 3, 4}, {2, 2});
  CHECK(t.as<double, 2>()(1, 0) == 3);
  std::vector<double> kept{1, 2};
  CHECK(STATUS(Tensor::from(std::move(kept), {3})) == DLRS_OUT_OF_BOUNDS);
  CHECK(STATUS(Tensor::from(std::move(kept), {-3})) == DLRS_SHAPE_NEG);
  CHECK(kept.size() == 2 && kept[1] == 2);  // a failure takes no ownership
  // Elements inside the object move with it.
  CHECK(Tensor::from(Inside()).span<int64_t>()[2] == 3);
  CHECK(Tensor::from(std::array<int, 2>{7, 8}).span<int>()[1] == 8);
  CHECK(Tensor::from(std::string("abc")).span<char>()[1] == 'b');
  CHECK(Tensor::from(std::vector<float>()).numel() == 0);

  t = Tensor::from(std::make_unique<float[]>(6), {2, 3});
  CHECK(t.numel() == 6 && !t.read_only());
  t = Tensor::from(std::unique_ptr<const float[]>(new float[2]()), {2});
  CHECK(t.read_only());
  std::shared_ptr<int[]> shared(new int[6]());
  std::weak_ptr<int[]> watch = shared;
  t = Tensor::from(std::move(shared), {6});
  CHECK(!shared && watch.use_count() == 1);
  t.reset();
  CHECK(watch.expired());
  // A deleter that cannot be assigned; on failure the owner keeps the memory.
  int freed = 0;
  const auto count = [&freed](float *memory) {
    ++freed;
    delete[] memory;
  };
  std::unique_ptr<float[], decltype(count)> sole(new float[6](), count);
  CHECK(STATUS(Tensor::from(std::move(sole), {-6})) == DLRS_SHAPE_NEG && sole && freed == 0);
  t = Tensor::from(std::move(sole), {6});
  CHECK(!sole && freed == 0);
  t.reset();
  CHECK(freed == 1);

  auto owner = std::make_shared<std::vector<float>>(6, 1.5f);
  {
    Tensor own = Tensor::own(owner->data(), {2, 3}, owner);
    CHECK(owner.use_count() == 2 && own.data() == owner->data());
    own.data_as<float>()[5] = 7;
    CHECK((*owner)[5] == 7);
  }
  CHECK(owner.use_count() == 1);
  CHECK(STATUS(Tensor::own(owner->data(), {-1}, owner)) == DLRS_SHAPE_NEG);
  CHECK(owner.use_count() == 1);
  // The owner is moved last, although it describes the memory.
  auto last = std::make_unique<std::vector<float>>(3, 2.0f);
  CHECK(Tensor::own(last->data(), {3}, std::move(last)).span<float>()[2] == 2);
  bool right = false;
  Tensor::own(owner->data(), {1}, Wide(&right)).reset();
  CHECK(right);
  bool thrown = false;
  const ThrowsOnCopy thrower;
  try {
    static_cast<void>(Tensor::own(owner->data(), {1}, thrower));
  } catch (int) {
    thrown = true;
  }
  CHECK(thrown && ThrowsOnCopy::alive == 1);
}

static void wrapping() {
  std::vector<float> values(6, 1.0f);
  int calls = 0;
  const Described memory(values.data(), {2, 3});
  Tensor::wrap(memory, [&calls] { ++calls; }).reset();
  CHECK(calls == 1);
  const Described bad(values.data(), {-1});
  CHECK(STATUS(Tensor::wrap(bad, [&calls] { ++calls; })) == DLRS_SHAPE_NEG && calls == 1);
  Tensor::wrap(memory, [](void *context) { ++*static_cast<int *>(context); }, &calls).reset();
  CHECK(calls == 2);
  Tensor lent = Tensor::borrow(memory);
  CHECK(lent.data() == values.data());

  const Described flipped(values.data(), {3, 2}, {1, 3});
  CHECK(flipped.dl().strides[1] == 3);
  const Described copy = flipped;  // points into itself, not into the object it is a copy of
  CHECK(copy.dl().shape != flipped.dl().shape && copy.dl().shape[0] == 3);
  CHECK(STATUS(Tensor::borrow(Described<1>(values.data(), {2, 3}).dl())) == DLRS_NDIM);
  CHECK(STATUS(Tensor::borrow(Described<>(values.data(), {2, 3}, {1}).dl())) == DLRS_NDIM);
  const std::vector<float> constant(4, 2.0f);
  const Described fixed(constant.data(), {4});
  const TensorView view = fixed;
  CHECK(view.read_only() && view.span<const float>()[3] == 2.0f && view.numel() == 4);
  CHECK(STATUS(view.span<float>()) == DLRS_READ_ONLY);
  CHECK(STATUS(view.fill(1.0f)) == DLRS_READ_ONLY);
  CHECK(!view.managed() && TensorView(lent).managed() == lent.get());
}

static void accessing() {
  Tensor t = counted({2, 3});
  const auto a = t.as<int32_t, 2>();
  CHECK(a(1, 2) == 5 && a.extent(1) == 3 && a.stride(0) == 3 && a.rank() == 2);
  const Strided<const int32_t, 2> fixed = a;
  CHECK(fixed(1, 0) == 3);
  CHECK(t.transpose().as<int32_t, 2>()(2, 1) == 5);
  CHECK(Tensor::make<int>({}).as<int, 0>().rank() == 0);
  // Extents of an empty tensor may have any product.
  const int64_t huge[] = {0, INT64_MAX, INT64_MAX};
  CHECK(Tensor::make<int>(huge).as<int, 3>().extent(2) == INT64_MAX);
  CHECK((Strided<int, 3>(nullptr, huge, nullptr).stride(2) == 1));
  try {
    static_cast<void>(t.data_as<float>());
    CHECK(false);
  } catch (const Error &error) {
    const std::string said = error.what();
    CHECK(error.status() == DLRS_DTYPE_MISMATCH && said.find("int32") != std::string::npos);
    CHECK(said.find("float32") != std::string::npos);
  }
  try {
    static_cast<void>(t.as<int32_t, 3>());
    CHECK(false);
  } catch (const Error &error) {
    CHECK(error.status() == DLRS_NDIM && error.value() == 2 && error.limit() == 3);
    CHECK(std::string(error.what()) ==
          "as: the tensor has another number of dimensions (value 2, limit 3) [DLRS_NDIM]. "
          "Use as<T, N> with N = ndim().");
    CHECK(to_view(error.text()) ==
          "the tensor has another number of dimensions (value 2, limit 3)");
    CHECK(to_view(error.hint()) == "Use as<T, N> with N = ndim().");
  }
  CHECK(STATUS(t.transpose().span<int32_t>()) == DLRS_COPY_NEEDED);
  // Misaligned memory, memory on another device, or with a wrong description.
  alignas(16) char bytes[64] = {};
  const int64_t shape = 4, minus = -4;
  DLTensor odd{bytes, cpu(), 1, dtype_of<int32_t>(), const_cast<int64_t *>(&shape), nullptr, 1};
  CHECK(STATUS(TensorView(odd).data_as<int32_t>()) == DLRS_MISALIGNED);
  CHECK(STATUS(TensorView(odd).span<int32_t>()) == DLRS_MISALIGNED);
  CHECK(STATUS(TensorView(odd).as<int32_t, 1>()) == DLRS_MISALIGNED);
  odd.byte_offset = 4;
  CHECK(TensorView(odd).data_as<int32_t>() == reinterpret_cast<int32_t *>(bytes + 4));
  CHECK(TensorView(odd).as<int32_t, 1>().stride(0) == 1);
  odd.device = cuda();
  CHECK(STATUS(TensorView(odd).data_as<int32_t>()) == DLRS_DEVICE_TYPE);
  odd.device = cpu();
  odd.shape = const_cast<int64_t *>(&minus);
  CHECK(STATUS(TensorView(odd).as<int32_t, 1>()) == DLRS_SHAPE_NEG);
  odd.shape = nullptr;
  CHECK(STATUS(TensorView(odd).as<int32_t, 1>()) == DLRS_SHAPE_NULL);
  odd.ndim = -2;
  CHECK(TensorView(odd).shape().empty() && TensorView(odd).strides().empty());
  CHECK(STATUS(TensorView(odd).data_as<int32_t>()) == DLRS_NDIM);
}

static void converting() {
  Tensor t = Tensor::make<int64_t>({2});
  t.data_as<int64_t>()[0] = 11;
  t.data_as<int64_t>()[1] = 22;
  LegacyTensor legacy = std::move(t).to_legacy();
  CHECK(!t && legacy && legacy.get()->dl_tensor.ndim == 1 && legacy.numel() == 2);
  legacy.validate();
  LegacyTensor second = legacy.clone().to_legacy();
  CHECK(second.equal(legacy) && second.data() != legacy.data());
  t = std::move(second).to_versioned();
  CHECK(t && !second && t.data_as<int64_t>()[1] == 22);
  DLManagedTensor *raw = legacy.release();
  t = Tensor::from_legacy_take(raw);
  CHECK(raw == nullptr && t.data_as<int64_t>()[1] == 22);
  t = t.as_read_only();
  CHECK(t.read_only() && STATUS(std::move(t).to_legacy()) == DLRS_READ_ONLY);
  CHECK(t && t.data_as<const int64_t>()[0] == 11);  // a failure takes no ownership
  DLManagedTensorVersioned *foreign = t.release();
  ImportOptions options;
  options.writable = 1;
  options.copy = -1;
  CHECK(STATUS(Tensor::import_take(foreign, options)) == DLRS_READ_ONLY && foreign != nullptr);
  options.copy = 0;
  t = Tensor::import_take(foreign, &options);
  CHECK(foreign == nullptr && !t.read_only() && t.data_as<int64_t>()[1] == 22);
}

static void copying() {
  Tensor a = counted({2, 2});
  Tensor b = a.clone();
  CHECK(b.data() != a.data() && b.equal(a) && b.max_diff(a) == 0);
  CHECK((b.flags() & DLPACK_FLAG_BITMASK_IS_COPIED) != 0);
  CHECK(a.contiguous().get() == a.get());
  Tensor f = a.contiguous('F');
  CHECK(f.is_contiguous('F') && f.data_as<int32_t>()[1] == 2);
  CHECK(a.to_device(cpu()).get() == a.get() && a.to_device(cpu(), 1).get() != a.get());
  a.data_as<int32_t>()[3] = 99;
  a.copy_to(b, CopyOptions().with(&dlrs_copy_options::threads, 1));
  CHECK(b.data_as<int32_t>()[3] == 99);
  CHECK(STATUS(a.copy_to(Tensor::make<int32_t>({4}))) == DLRS_SHAPE_MISMATCH);
  int32_t plain[4] = {};
  const Described to(plain, {2, 2});
  a.copy_to(to);
  CHECK(plain[3] == 99);
  const Tensor real = a.cast<float>();
  CHECK(real.as<const float, 2>()(1, 1) == 99 && STATUS(real.equal(a)) == DLRS_DTYPE_MISMATCH);
  a.fill(7.9);
  CHECK(a.as<int32_t, 2>()(0, 1) == 7);
  real.cast_to(a);
  CHECK(a.as<int32_t, 2>()(1, 1) == 99 && a.max_diff(b) == 0);
}

static void printing() {
  Tensor t = Tensor::make<int32_t>({2});
  t.data_as<int32_t>()[0] = 5;
  t.data_as<int32_t>()[1] = -7;
  const std::string text = t.to_string();
  CHECK(text.find("shape=(2,), dtype=int32") != std::string::npos);
  CHECK(text.size() > 7 && text.substr(text.size() - 7) == "[5, -7]");
  std::ostringstream stream;
  stream << t << t.view();
  CHECK(stream.str() == text + text);
  stream << Tensor();
  CHECK(stream.fail());
  const Tensor large = counted({30, 30});
  const std::string all =
      large.to_string(PrintOptions().with(&dlrs_print_options::threshold, 10000));
  CHECK(all.size() > 2000 && all.back() == ']');
}

// Each step equals the member of its name; each member returns the shape that its name implies, and
// the element that comes first there. Elements of chains are tested in tests/views.
static void steps() {
  Tensor t = counted({4, 6});
  const auto is = [&](const Tensor &view, const ViewStep &step, std::vector<int64_t> shape,
                      int32_t first) {
    const std::vector<int64_t> seen(view.shape().begin(), view.shape().end());
    const Tensor again = t.apply({step});
    return seen == shape && *view.data_as<const int32_t>() == first && again.equal(view) &&
           again.read_only() == view.read_only();
  };
  CHECK(is(t.slice(1, 1, 5, 2), ViewStep::slice(1, 1, 5, 2), {4, 2}, 1));
  CHECK(is(t.select(0, 2), ViewStep::select(0, 2), {6}, 12));
  CHECK(is(t.narrow(1, 2, 3), ViewStep::narrow(1, 2, 3), {4, 3}, 2));
  CHECK(is(t.flip(), ViewStep::flip(), {4, 6}, 23));
  CHECK(is(t.flip(1), ViewStep::flip(1), {4, 6}, 5));
  CHECK(is(t.unfold(1, 2, 3), ViewStep::unfold(1, 2, 3), {4, 2, 2}, 0));
  CHECK(is(t.diagonal(0, 1, 1), ViewStep::diagonal(0, 1, 1), {4}, 1));
  const int64_t axes[] = {1, 0}, shape[] = {3, 8}, wide[] = {2, 4, 6};
  CHECK(is(t.permute(axes), ViewStep::permute(axes), {6, 4}, 0));
  CHECK(is(t.transpose(), ViewStep::transpose(), {6, 4}, 0));
  CHECK(is(t.unsqueeze(1), ViewStep::unsqueeze(1), {4, 1, 6}, 0));
  CHECK(is(t.reshape(shape), ViewStep::reshape(shape), {3, 8}, 0));
  CHECK(is(t.expand(wide), ViewStep::expand(wide), {2, 4, 6}, 0));
  CHECK(t.bitcast(dtype_of<uint32_t>()).equal(t.apply({ViewStep::bitcast(dtype_of<uint32_t>())})));
  CHECK(t.lanes(6).ndim() == 1 && t.lanes(6).equal(t.apply({ViewStep::lanes(6)})));
  CHECK(is(t.as_read_only(), ViewStep::as_read_only(), {4, 6}, 0) && t.as_read_only().read_only());
  CHECK(is(t.normalize(), ViewStep::normalize(), {4, 6}, 0));
  t = counted({4, 1});
  CHECK(is(t.squeeze(), ViewStep::squeeze(), {4}, 0));
  t = counted({6});
  CHECK(t.as_strided({2, 2}, {1, 2}, 1).as<int32_t, 2>()(1, 1) == 4);
  CHECK(STATUS(t.as_strided({2, 2}, {1})) == DLRS_BAD_ARG);
  CHECK(STATUS(t.reshape({4})) == DLRS_SHAPE_MISMATCH);
}

// A Span has the exact type: a derived type has elements of another size.
struct Base {
  int a;
};
struct Derived : Base {
  int b;
};
template <class T, class From>
constexpr bool spans = std::is_constructible_v<Span<T>, From>;
static_assert(spans<Base, std::vector<Base> &> && spans<const Base, const std::vector<Base> &>);
static_assert(!spans<Base, std::vector<Derived> &> && !spans<Base, std::array<Derived, 2> &>);
static_assert(!spans<Base, const std::vector<Base> &> && !spans<Base, int>);

int main() {
  making();
  dtypes();
  errors();
  moving();
  owning();
  wrapping();
  accessing();
  converting();
  copying();
  printing();
  steps();
  HPP_END("test_hpp");
}
#else
int main() { return 0; }
#endif
