// The functions that differential.py calls: arguments of several types, and arrays of numbers.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/vector.h>
#include <complex>

namespace nb = nanobind;

template <typename... Args> static nb::dict seen(const nb::ndarray<Args...> &a) {
    nb::list shape, strides;
    bool steps = a.size() > 0;
    for (size_t i = 0; i < a.ndim(); ++i) {
        shape.append(a.shape(i));
        if (steps && a.shape(i) > 1) // else it has no meaning
            strides.append(a.stride(i));
    }
    nb::dict said;
    said["shape"] = shape;
    said["strides"] = strides;
    said["dtype"] = nb::make_tuple(a.dtype().code, a.dtype().bits, a.dtype().lanes);
    said["device"] = nb::make_tuple(a.device_type(), a.device_id());
    said["offset"] = a.byte_offset();
    if (a.device_type() == nb::device::cpu::value && steps && a.itemsize() <= 16)
        said["first"] = nb::bytes((const char *) a.data_handle() + a.byte_offset(), a.itemsize());
    return said;
}

template <typename... Args> static void taker(nb::module_ &m, const char *name) {
    m.def(name, [](const nb::ndarray<Args...> &a) { return seen(a); });
    m.def((std::string(name) + ", as it is").c_str(),
          [](const nb::ndarray<Args...> &a) { return seen(a); }, nb::arg("a").noconvert());
}

template <typename... Args> static void maker(nb::module_ &m, const char *name) {
    m.def(name, [](uintptr_t data, nb::handle owner, std::vector<size_t> shape,
                   std::vector<int64_t> strides, std::vector<int> dtype, std::vector<int> device,
                   char order, uint64_t offset) {
        nb::dlpack::dtype type{ (uint8_t) dtype[0], (uint8_t) dtype[1], (uint16_t) dtype[2] };
        return nb::ndarray<Args...>(
            (void *) data, shape.size(), shape.data(), owner,
            strides.empty() ? nullptr : strides.data(), type, device[0], device[1], order, offset);
    });
}

NB_MODULE(differential_ext, m) {
    taker<>(m, "any");
    taker<nb::ro>(m, "read");
    taker<float>(m, "float");
    taker<const double>(m, "const double");
    taker<std::complex<float>>(m, "complex");
    taker<bool>(m, "bool");
    taker<int64_t, nb::ndim<2>>(m, "int64, 2 axes");
    taker<nb::c_contig>(m, "C");
    taker<nb::ro, nb::f_contig>(m, "read F");
    taker<nb::any_contig, nb::ndim<3>>(m, "C or F, 3 axes");
    taker<nb::ro, nb::shape<2, -1, 4>>(m, "2, any, 4");
    taker<float, nb::shape<2, 3>, nb::f_contig>(m, "float F of 2, 3");
    taker<nb::device::cpu>(m, "CPU");
    taker<nb::ro, nb::device::cuda>(m, "CUDA");
    m.def("is one", [](nb::handle object) { return nb::ndarray_check(object); });
    m.def("same", [](nb::ndarray<> a) { return a; }, nb::rv_policy::none);
    m.def("numpy", [](const nb::ndarray<> &a) { return nb::ndarray<nb::numpy>(a); });
    m.def("copy", [](const nb::ndarray<> &a) { return nb::ndarray<nb::numpy>(a); },
          nb::rv_policy::copy);
    m.def("capsule", [](const nb::ndarray<nb::ro> &a) { return nb::ndarray<>(a); },
          nb::rv_policy::reference);
    maker<nb::array_api>(m, "array");
    maker<nb::array_api, nb::ro>(m, "constant");
    maker<nb::no_framework>(m, "bare");
    maker<nb::no_framework, nb::ro>(m, "bare constant");
    maker<nb::memview>(m, "memoryview");
    maker<nb::numpy, nb::ro>(m, "constant of NumPy");
}
