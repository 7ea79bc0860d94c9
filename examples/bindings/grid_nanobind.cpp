// grid::Array for Python with nanobind. DLPack is the line with `bind`.
#include <nanobind/nanobind.h>
#include <nanobind/stl/vector.h>

#include <dlpack/dlpack_rs_nanobind.hpp>

#include "grid_dlpack.hpp"

namespace nb = nanobind;
using grid::Array;

NB_MODULE(grid_nanobind, m) {
  auto c = nb::class_<Array>(m, "Array");
  c.def_ro("shape", &Array::shape)
      .def_ro("strides", &Array::strides)
      .def_rw("read_only", &Array::read_only)
      .def_prop_ro("T", &Array::transposed)
      .def("sum", &Array::sum)
      .def("fill", &Array::fill);
  m.def("range", [](std::vector<int64_t> shape) { return Array::range(std::move(shape)); });
  // [quote:bind]
  dlpack_rs::python::bind(m, c);  // __dlpack__, __dlpack_device__, the exchange API, from_dlpack

  // Any object with DLPack as an argument.
  m.def("trace", [](dlpack_rs::Tensor x) {
    const auto a = x.as<const double, 2>();  // of another dtype or rank: the matching exception
    double sum = 0;
    for (int64_t i = 0; i < a.extent(0) && i < a.extent(1); ++i) sum += a(i, i);
    return sum;
  });
  // [/quote]
  // A result that no framework owns: NumPy, PyTorch and others import it with from_dlpack.
  m.def("halves", [](int64_t count) {
    std::vector<float> values(static_cast<size_t>(count));
    for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i) / 2;
    return nb::steal(dlpack_rs::python::object(dlpack_rs::Tensor::from(std::move(values))));
  });
}
