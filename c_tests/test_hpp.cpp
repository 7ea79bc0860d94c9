// Tests of include/dlpack_rs.hpp. Ends with `N passed, N failed`; exit status 1 if any failed.
#include "dlpack_rs.hpp"

#include <cstdio>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

using dlpack_rs::Error;
using dlpack_rs::Legacy;
using dlpack_rs::Tensor;

static int passed = 0, failed = 0;

static void check(bool ok, const char *what, int line) {
  if (ok) {
    ++passed;
  } else {
    ++failed;
    std::printf("test_hpp.cpp:%d: failed: %s\n", line, what);
  }
}
#define CHECK(condition) check((condition), #condition, __LINE__)

template <class F>
static dlrs_status status_of(F &&f) {
  try {
    f();
  } catch (const Error &error) {
    return error.status();
  }
  return DLRS_OK;
}

static_assert(!std::is_copy_constructible_v<Tensor>, "move-only");
static_assert(std::is_nothrow_move_constructible_v<Tensor>, "moves do not throw");
static_assert(std::is_nothrow_move_assignable_v<Tensor>, "moves do not throw");

static void making() {
  Tensor t = Tensor::make({2, 3}, dlpack_rs::dtype("float32"));
  CHECK(t && t.is_own() && t.ref_count() == 1);
  CHECK(t.ndim() == 2 && t.shape().size() == 2 && t.shape()[0] == 2 && t.shape()[1] == 3);
  CHECK(t.strides().size() == 2 && t.strides()[0] == 3 && t.strides()[1] == 1);
  CHECK(t.numel() == 6 && t.itemsize_bits() == 32 && t.nbytes() == 24 && t.is_contiguous());
  CHECK(reinterpret_cast<uintptr_t>(t.data()) % 256 == 0);
  CHECK(dlpack_rs::to_string(t.dtype()) == "float32");
  CHECK(dlpack_rs::to_string(t.device()) == "cpu:0" || dlpack_rs::to_string(t.device()) == "cpu");
  t.validate();

  const std::vector<int64_t> from_vector{4};
  const int64_t from_array[] = {5, 1};
  CHECK(Tensor::make(from_vector, dlpack_rs::dtype("int8")).nbytes() == 4);
  CHECK(Tensor::make<double>(from_array).nbytes() == 40);
  CHECK(Tensor::make<int16_t>({}).numel() == 1);
  CHECK(Tensor::make<int16_t>({0, 7}).data() == nullptr);

  dlrs_alloc_options options{};
  options.struct_size = sizeof options;
  options.align_bytes = 4096;
  Tensor aligned = Tensor::make({1}, dlpack_rs::dtype("int8"), dlpack_rs::cpu(), &options);
  CHECK(reinterpret_cast<uintptr_t>(aligned.data()) % 4096 == 0);
}

static void dtypes() {
  using dlpack_rs::dtype;
  using dlpack_rs::dtype_of;
  using dlpack_rs::same;
  CHECK(same(dtype_of<bool>(), dtype("bool")));
  CHECK(same(dtype_of<int8_t>(), dtype("int8")));
  CHECK(same(dtype_of<uint64_t>(), dtype("uint64")));
  CHECK(same(dtype_of<const float>(), dtype("float32")));
  CHECK(same(dtype_of<double>(), dtype("float64")));
  CHECK(same(dtype_of<std::complex<float>>(), dtype("complex64")));
  CHECK(!same(dtype_of<int32_t>(), dtype_of<uint32_t>()));
  CHECK(dlpack_rs::device("cuda:1").device_type == kDLCUDA);
  CHECK(dlpack_rs::device("cuda:1").device_id == 1);
}

static void errors() {
  try {
    Tensor::make({2, -3}, dlpack_rs::dtype("float32"));
    CHECK(false);
  } catch (const Error &error) {
    CHECK(error.status() == DLRS_SHAPE_NEG && error.kind() == 2);
    CHECK(std::strstr(error.status_name(), "SHAPE_NEG") != nullptr);
    CHECK(error.field() == DLRS_FIELD_SHAPE && error.dimension() == 1 && error.value() == -3);
    CHECK(std::string(error.what()).find("dlrs_tensor_new") != std::string::npos);
  }
  CHECK(status_of([] { dlpack_rs::dtype("flaot32"); }) == DLRS_PARSE);
  CHECK(status_of([] { Tensor().validate(); }) == DLRS_NULL_ARG);
  CHECK(status_of([] { static_cast<void>(Tensor().retain()); }) == DLRS_NULL_ARG);
  CHECK(status_of([] { Tensor::make(std::vector<int64_t>(65, 1), dlpack_rs::dtype("int8")); }) ==
        DLRS_NDIM);
}

static void moving() {
  Tensor a = Tensor::make<int32_t>({3});
  DLManagedTensorVersioned *raw = a.get();
  Tensor b = std::move(a);
  CHECK(!a && b.get() == raw);
  a = std::move(b);
  CHECK(a.get() == raw && !b);
  Tensor &same = a;
  a = std::move(same);
  CHECK(a.get() == raw && a.ref_count() == 1);

  Tensor held = a.retain();
  CHECK(held.get() == a.get() && a.ref_count() == 2);
  held.reset();
  CHECK(!held && a.ref_count() == 1);

  raw = a.release();
  CHECK(!a && dlrs_ref_count(raw) == 1);
  Tensor back(raw);
  CHECK(back.ref_count() == 1);
}

static void wrapping() {
  auto owner = std::make_shared<std::vector<float>>(6, 1.5f);
  {
    Tensor t = Tensor::wrap(owner->data(), {2, 3}, [owner] {});
    CHECK(owner.use_count() == 2);
    CHECK(t.data() == owner->data() && !t.read_only());
    t.data_as<float>()[5] = 7;
    CHECK((*owner)[5] == 7);
  }
  CHECK(owner.use_count() == 1);

  const std::vector<float> constant(4, 2.0f);
  Tensor r = Tensor::wrap(constant.data(), {4}, [] {});
  CHECK(r.read_only() && r.data_as<const float>()[3] == 2.0f);
  bool refused = false;
  try {
    r.data_as<float>();
  } catch (const std::invalid_argument &) {
    refused = true;
  }
  CHECK(refused);
  refused = false;
  try {
    r.data_as<const int32_t>();
  } catch (const std::invalid_argument &error) {
    refused = std::string(error.what()).find("float32") != std::string::npos;
  }
  CHECK(refused);

  // On an exception the function object is destroyed and not called.
  int calls = 0;
  CHECK(status_of([&] { Tensor::wrap(owner->data(), {-1}, [owner, &calls] { ++calls; }); }) ==
        DLRS_SHAPE_NEG);
  CHECK(calls == 0 && owner.use_count() == 1);

  static int freed = 0;
  int64_t shape[] = {6};
  const DLTensor plain{owner->data(), dlpack_rs::cpu(), 1, dlpack_rs::dtype_of<float>(),
                       shape,         nullptr,          0};
  const auto add = [](void *context) { freed += *static_cast<int *>(context); };
  Tensor::wrap(plain, 0, add, &(calls = 5));
  CHECK(freed == 5);
}

static void chaining() {
  std::string order;
  {
    Tensor t = Tensor::make<int8_t>({1});
    t.attach([&] { order += "a"; });
    t.attach([&] { order += "b"; });
    t.attach([&] { order += "z"; }, DLRS_AFTER_FREE);
  }
  CHECK(order == "baz");
}

static void converting() {
  Tensor t = Tensor::make<int64_t>({2});
  t.data_as<int64_t>()[0] = 11;
  t.data_as<int64_t>()[1] = 22;
  Legacy legacy = std::move(t).to_legacy();
  CHECK(!t && legacy && legacy->dl_tensor.ndim == 1);
  DLManagedTensor *raw = legacy.release();
  t = Tensor::from_legacy_take(raw);
  CHECK(raw == nullptr && t.data_as<int64_t>()[1] == 22);

  t.set_flags(DLPACK_FLAG_BITMASK_READ_ONLY);
  CHECK(t.read_only());
  CHECK(status_of([&] { static_cast<void>(std::move(t).to_legacy()); }) == DLRS_READ_ONLY);
  CHECK(t && t.data_as<const int64_t>()[0] == 11);  // an exception takes nothing

  DLManagedTensorVersioned *foreign = t.release();
  dlrs_import_options options{};
  options.struct_size = sizeof options;
  options.writable = 1;
  options.copy = -1;
  CHECK(status_of([&] { Tensor::import_take(foreign, &options); }) == DLRS_READ_ONLY);
  CHECK(foreign != nullptr);
  options.copy = 0;
  t = Tensor::import_take(foreign, &options);
  CHECK(foreign == nullptr && !t.read_only() && t.data_as<int64_t>()[1] == 22);
}

static void copying() {
  Tensor a = Tensor::make<int32_t>({2, 2});
  for (int i = 0; i < 4; ++i) a.data_as<int32_t>()[i] = i;
  Tensor b = a.clone();
  CHECK(b.data() != a.data() && std::memcmp(a.data(), b.data(), 16) == 0);
  CHECK((b.flags() & DLPACK_FLAG_BITMASK_IS_COPIED) != 0);
  CHECK(a.contiguous().get() == a.get());
  Tensor f = a.contiguous('F');
  CHECK(f.is_contiguous('F') && f.data_as<int32_t>()[1] == 2);
  CHECK(a.to_device(dlpack_rs::cpu()).get() == a.get());
  CHECK(a.to_device(dlpack_rs::cpu(), 1).get() != a.get());
  a.data_as<int32_t>()[3] = 99;
  a.copy_to(b);
  CHECK(b.data_as<int32_t>()[3] == 99);
  Tensor other = Tensor::make<int32_t>({4});
  CHECK(status_of([&] { a.copy_to(other); }) == DLRS_SHAPE_MISMATCH);
}

static void printing() {
  Tensor t = Tensor::make<int32_t>({2});
  t.data_as<int32_t>()[0] = 5;
  t.data_as<int32_t>()[1] = -7;
  const std::string text = t.to_string();
  CHECK(text.find("shape=(2,), dtype=int32") != std::string::npos);
  CHECK(text.size() > 7 && text.substr(text.size() - 7) == "[ 5 -7]");
  CHECK(status_of([] { Tensor().to_string(); }) == DLRS_NULL_ARG);
}

// A Span is of the type itself: what is derived from it has elements of another size.
struct Base {
  int a;
};
struct Derived : Base {
  int b;
};
template <class T, class From>
constexpr bool spans = std::is_constructible_v<dlpack_rs::Span<T>, From>;
static_assert(spans<Base, std::vector<Base> &> && spans<const Base, const std::vector<Base> &>);
static_assert(!spans<Base, std::vector<Derived> &> && !spans<Base, std::array<Derived, 2> &>);
static_assert(!spans<Base, const std::vector<Base> &> && !spans<Base, int>);

int main() {
  making();
  dtypes();
  errors();
  moving();
  wrapping();
  chaining();
  converting();
  copying();
  printing();
  std::printf("test_hpp: %d passed, %d failed\n", passed, failed);
  return failed != 0;
}
