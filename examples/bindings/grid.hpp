// A small array framework, to show the work of DLPack support: this file does not mention DLPack.
#ifndef EXAMPLES_GRID_HPP_
#define EXAMPLES_GRID_HPP_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <utility>
#include <vector>

namespace grid {

enum class Type { i32, f32, f64 };

/// Elements somewhere in memory that `owner` keeps alive. Copies share them.
struct Array {
  std::shared_ptr<void> owner;
  void *data = nullptr;
  Type type = Type::f64;
  std::vector<int64_t> shape, strides;  // strides in elements
  bool read_only = false;

  /// Row-major; each element is its index.
  static Array range(std::vector<int64_t> shape, Type type = Type::f64) {
    int64_t count = 1;
    Array out;
    out.strides.resize(shape.size());
    for (size_t i = shape.size(); i-- > 0; count *= shape[i]) out.strides[i] = count;
    out.shape = std::move(shape);
    out.type = type;
    const std::shared_ptr<double[]> memory(new double[static_cast<size_t>(count) + 1]);
    out.owner = memory;
    out.data = memory.get();
    double next = 0;
    out.each([&](auto &element) {
      element = static_cast<std::decay_t<decltype(element)>>(next++);
    });
    return out;
  }
  Array transposed() const {
    Array out = *this;
    out.shape.assign(shape.rbegin(), shape.rend());
    out.strides.assign(strides.rbegin(), strides.rend());
    return out;
  }
  double sum() const {
    double total = 0;
    each([&](auto &element) { total += static_cast<double>(element); });
    return total;
  }
  void fill(double value) const {
    if (read_only) throw std::logic_error("the array is read-only");
    each([&](auto &element) { element = static_cast<std::decay_t<decltype(element)>>(value); });
  }

 private:
  template <class F>
  void each(F f) const {
    if (type == Type::i32) walk(static_cast<int32_t *>(data), 0, f);
    if (type == Type::f32) walk(static_cast<float *>(data), 0, f);
    if (type == Type::f64) walk(static_cast<double *>(data), 0, f);
  }
  template <class T, class F>
  void walk(T *at, size_t axis, F &f) const {
    if (axis == shape.size()) return f(*at);
    for (int64_t i = 0; i < shape[axis]; ++i) walk(at + i * strides[axis], axis + 1, f);
  }
};

}  // namespace grid

#endif  // EXAMPLES_GRID_HPP_
