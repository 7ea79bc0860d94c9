// DLPack for grid::Array: all that the Python headers need.
#ifndef EXAMPLES_GRID_DLPACK_HPP_
#define EXAMPLES_GRID_DLPACK_HPP_

#include <dlpack/dlpack_rs_core.hpp>

#include "grid.hpp"

// [quote:adapter]
template <>
struct dlpack_rs::adapter<grid::Array> {
  static constexpr DLDataType types[] = {dtype_of<int32_t>(), dtype_of<float>(),
                                         dtype_of<double>()};  // as grid::Type counts them

  static Tensor to_dlpack(const grid::Array &a) {
    const Described<64> memory(a.data, types[static_cast<int>(a.type)], cpu(), a.shape, a.strides,
                               a.read_only ? DLPACK_FLAG_BITMASK_READ_ONLY : 0);
    return Tensor::own(memory, a.owner);
  }
  static grid::Array from_dlpack(Tensor foreign) {
    const auto t = std::make_shared<Tensor>(foreign.to_device(cpu()));
    int type = 0;
    while (type < 3 && !same(types[type], t->dtype())) ++type;
    if (type == 3)
      throw Error(DLRS_UNSUPPORTED, "grid has int32, float32 and float64", DLRS_FIELD_DTYPE_CODE);
    return {t, t->data(), static_cast<grid::Type>(type), {t->shape().begin(), t->shape().end()},
            {t->strides().begin(), t->strides().end()}, t->read_only()};
  }
};
// [/quote]

#endif  // EXAMPLES_GRID_DLPACK_HPP_
