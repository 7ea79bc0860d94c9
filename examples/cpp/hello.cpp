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
  float *values = tensor.data_as<float>();  // throws unless it is float32, writable, on the CPU
  for (int i = 0; i < 6; ++i) values[i] = static_cast<float>(i) / 2;
  tensor.validate();

  // Lend a vector: the tensor keeps it alive through what the lambda captured.
  auto owner = std::make_shared<std::vector<double>>(4, 1.5);
  Tensor lent = Tensor::wrap(owner->data(), {2, 2}, [owner] {});
  DLManagedTensorVersioned *plain = lent.release();  // to any DLPack consumer ...
  plain->deleter(plain);                             // ... which frees it like this
  // [/quote]

  std::cout << tensor.to_string() << "\nowners of the vector: " << owner.use_count() << '\n';
  try {
    Tensor::make<float>({2, -3});
  } catch (const Error &error) {
    std::cout << error.status_name() << ": " << error.what() << '\n';
  }
  return 0;
} catch (const std::exception &error) {
  std::cerr << error.what() << '\n';
  return 1;
}
