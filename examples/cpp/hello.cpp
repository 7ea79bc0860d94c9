// The C++17 view: a tensor that releases itself, and errors as exceptions.
#include <dlpack/dlpack_rs.hpp>

#include <iostream>
#include <memory>
#include <vector>

using dlpack_rs::Error;
using dlpack_rs::Tensor;

int main() try {
  // [quote:hello_cpp]
  Tensor tensor = Tensor::make<float>({2, 3});
  float next = 0;
  for (float &value : tensor.span<float>()) value = next++ / 2;  // throws unless float32, ...
  tensor.validate();

  // A tensor takes a container over, or shares the owner of memory.
  Tensor moved = Tensor::from(std::vector<double>{1, 2, 3, 4}, {2, 2});
  auto owner = std::make_shared<std::vector<double>>(4, 1.5);
  Tensor shared = Tensor::own(owner->data(), {2, 2}, owner);
  DLManagedTensorVersioned *plain = shared.release();  // to any DLPack consumer ...
  plain->deleter(plain);                               // ... which frees it like this
  // [/quote]

  std::cout << tensor << "\nowners of the vector: " << owner.use_count() << '\n';
  try {
    moved = Tensor::make<float>({2, -3});
  } catch (const Error &error) {
    std::cout << error.status_name() << ": " << error.what() << '\n';
  }
  return 0;
} catch (const std::exception &error) {
  std::cerr << error.what() << '\n';
  return 1;
}
