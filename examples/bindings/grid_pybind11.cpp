// grid::Array for Python with pybind11. DLPack is the line with `bind`.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <dlpack/dlpack_rs_pybind11.hpp>

#include "grid_dlpack.hpp"

namespace py = pybind11;
using grid::Array;

PYBIND11_MODULE(grid_pybind11, m) {
  auto c = py::class_<Array>(m, "Array");
  c.def_readonly("shape", &Array::shape)
      .def_readonly("strides", &Array::strides)
      .def_readwrite("read_only", &Array::read_only)
      .def_property_readonly("T", &Array::transposed)
      .def("sum", &Array::sum)
      .def("fill", &Array::fill);
  m.def("range", [](std::vector<int64_t> shape) { return Array::range(std::move(shape)); });
  dlpack_rs::python::bind(m, c);  // __dlpack__, __dlpack_device__, the exchange API, from_dlpack

  // Any object with DLPack as an argument.
  m.def("trace", [](dlpack_rs::Tensor x) {
    const auto a = x.as<const double, 2>();  // of another dtype or rank: the matching exception
    double sum = 0;
    for (int64_t i = 0; i < a.extent(0) && i < a.extent(1); ++i) sum += a(i, i);
    return sum;
  });
  // A result that no framework owns: NumPy, PyTorch and others import it with from_dlpack.
  m.def("halves", [](int64_t count) {
    std::vector<float> values(static_cast<size_t>(count));
    for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i) / 2;
    return py::reinterpret_steal<py::object>(
        dlpack_rs::python::object(dlpack_rs::Tensor::from(std::move(values))));
  });
}
