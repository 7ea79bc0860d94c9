/*!
 * \file dlpack_rs_vendor.hpp
 * \brief The DLPack types of CUDA's, HIP's and Eigen's element types, for dlpack_rs_core.hpp.
 *
 * Include it after the vendor's headers: what they have defined is taken. std::float16_t and
 * std::bfloat16_t need no header.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef DLPACK_RS_VENDOR_HPP_
#define DLPACK_RS_VENDOR_HPP_

#include "dlpack_rs_core.hpp"

namespace dlpack_rs {

// cuda_fp16.h, hip/hip_fp16.h
#if defined(__CUDA_FP16_TYPES_EXIST__) || defined(HIP_INCLUDE_HIP_HIP_FP16_H)
template <>
struct dtype_traits<__half> {
  static constexpr DLDataType value{kDLFloat, 16, 1};
};
#endif

// cuda_bf16.h
#if defined(__CUDA_BF16_TYPES_EXIST__)
template <>
struct dtype_traits<__nv_bfloat16> {
  static constexpr DLDataType value{kDLBfloat, 16, 1};
};
#endif

// cuda_fp8.h
#if defined(__CUDA_FP8_TYPES_EXIST__)
template <>
struct dtype_traits<__nv_fp8_e4m3> {
  static constexpr DLDataType value{kDLFloat8_e4m3fn, 8, 1};
};
template <>
struct dtype_traits<__nv_fp8_e5m2> {
  static constexpr DLDataType value{kDLFloat8_e5m2, 8, 1};
};
#endif

// Eigen/Core
#if defined(EIGEN_HALF_H)
template <>
struct dtype_traits<Eigen::half> {
  static constexpr DLDataType value{kDLFloat, 16, 1};
};
#endif
#if defined(EIGEN_BFLOAT16_H)
template <>
struct dtype_traits<Eigen::bfloat16> {
  static constexpr DLDataType value{kDLBfloat, 16, 1};
};
#endif

}  // namespace dlpack_rs

#endif  // DLPACK_RS_VENDOR_HPP_
