// The examples of docs/cpp.md, topic by topic.
#include <dlpack/dlpack_rs.hpp>

#include <iostream>
#include <memory>
#include <vector>

using namespace dlpack_rs;

// [quote:traits]
struct Half {  // an element type of your own
  uint16_t bits;
};
template <>
struct dlpack_rs::dtype_traits<Half> {
  static constexpr DLDataType value{kDLFloat, 16, 1};
};
// [/quote]

static void memory() {
  // [quote:memory]
  Tensor made = Tensor::make<float>({2, 3});  // not initialised
  made.fill(0);
  Tensor taken = Tensor::from(std::vector<int>{1, 2, 3, 4}, {2, 2});  // the vector is moved in
  auto owner = std::make_shared<std::vector<double>>(6);
  Tensor kept = Tensor::own(owner->data(), {2, 3}, owner);  // a copy of `owner` is kept
  // Any strides: the description is a variable, and the tensor copies what it says.
  const Described<2> columns(owner->data(), {3, 2}, {1, 3});
  Tensor lent = Tensor::borrow(columns);  // the caller keeps the memory alive
  // [/quote]
  std::cout << made.numel() << ' ' << taken.numel() << ' ' << kept.numel() << ' '
            << lent.strides()[1] << ' ' << owner.use_count() << '\n';
}

// [quote:exchange]
DLManagedTensorVersioned *give(Tensor tensor) { return tensor.release(); }
Tensor take(DLManagedTensorVersioned *&foreign) {  // NULL afterwards, or the caller's on failure
  return Tensor::import_take(foreign, ImportOptions().with(&dlrs_import_options::writable, 1));
}
// [/quote]

// [quote:elements]
double trace(TensorView matrix) {  // a Tensor, a LegacyTensor, a DLTensor: any converts
  const auto a = matrix.as<const double, 2>();  // at any strides
  double sum = 0;
  for (int64_t i = 0; i < a.extent(0) && i < a.extent(1); ++i) sum += a(i, i);
  return sum;
}
void scale(Tensor &tensor, float factor) {
  for (float &value : tensor.span<float>()) value *= factor;  // contiguous
}
// [/quote]

static void errors() {
  // [quote:errors]
  try {
    Tensor t = Tensor::make<int>({2, -3});
  } catch (const Error &error) {
    std::cout << error.status_name() << " in dimension " << error.dimension() << ": "
              << to_view(error.text()) << '\n';
  }
  // The same classes, without exceptions.
  auto tensor = nothrow::Tensor::make<float>({2, 3});
  if (!tensor) return;
  const auto count = tensor->transpose().and_then([](auto view) { return view.numel(); });
  std::cout << *count << " elements, "
            << tensor->data_as<int>().error().status_name() << '\n';
  // [/quote]
}

static void views() {
  Tensor t = Tensor::make<int>({4, 6});
  int next = 0;
  for (int &value : t.span<int>()) value = next++;
  // [quote:views]
  Tensor part = t.slice(0, 1, 3).flip(1).transpose();  // each keeps the memory alive
  Tensor same_part =
      t.apply({ViewStep::slice(0, 1, 3), ViewStep::flip(1), ViewStep::transpose()});
  // [/quote]
  std::cout << part.equal(same_part) << ' ' << part << '\n';
}

static void copies() {
  Tensor t = Tensor::from(std::vector<float>{1.5f, 2.5f, -1});
  // [quote:copies]
  Tensor half = t.cast<Half>();            // a new tensor
  Tensor dense = t.flip().contiguous();    // a copy only where one is needed
  int32_t plain[3];
  const Described<1> target(plain, {3});
  t.cast_to(target, CopyOptions().with(&dlrs_copy_options::threads, 1));
  const bool equal = t.equal(dense.flip());
  // [/quote]
  std::cout << half << '\n' << plain[1] << ' ' << equal << ' ' << t.max_diff(dense) << '\n';
}

int main() try {
  memory();
  DLManagedTensorVersioned *foreign = give(Tensor::from(std::vector<double>{1, 2, 3, 4}, {2, 2}));
  std::cout << trace(take(foreign)) << '\n';
  Tensor t = Tensor::from(std::vector<float>{1, 2});
  scale(t, 3);
  std::cout << t.span<float>()[1] << '\n';
  errors();
  views();
  copies();
  return 0;
} catch (const std::exception &error) {
  std::cerr << error.what() << '\n';
  return 1;
}
