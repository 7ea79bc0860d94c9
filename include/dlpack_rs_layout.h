/*!
 * \file dlpack_rs_layout.h
 * \brief Static assertions: does a dlpack.h describe the ABI of DLPack?
 *
 * Include it after the dlpack.h that is to be tested, or name that one:
 *
 *     cc -fsyntax-only -x c -include third_party/dlpack.h dlpack_rs_layout.h
 *
 * C99 to C23, C++11 and later; nothing is linked, and no other file of the library is read. What
 * is tested: size, offset and type of every member of every struct, the value of every code and
 * flag, for the version that the header says it has, 0.6 to 1.x. A header older than
 * DLRS_LAYOUT_MINIMUM fails, and the messages name what it lacks. With DLRS_LAYOUT_DEFINE the file
 * asserts nothing and defines the table that layout_check.c hands to dlrs_abi_check; CMake projects
 * have both by one line, dlpack_rs_test_layout.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef DLPACK_RS_LAYOUT_H_
#define DLPACK_RS_LAYOUT_H_

#include <stddef.h>
#include <stdint.h>

/** A version of DLPack as one number: 8 for 0.8, 103 for 1.3. */
#if defined(DLPACK_MAJOR_VERSION)
#define DLRS_LAYOUT_VERSION (DLPACK_MAJOR_VERSION * 100 + DLPACK_MINOR_VERSION)
#elif defined(DLPACK_VERSION)
#define DLRS_LAYOUT_VERSION (DLPACK_VERSION / 10)
#elif defined(DLRS_LAYOUT_NAMES_ONLY)
#define DLRS_LAYOUT_VERSION 0
#else
#error "dlpack_rs_layout.h: include the dlpack.h to be tested before this file"
#endif

/** The oldest version that passes; 104 for 1.3 with the codes that upstream has added since. */
#ifndef DLRS_LAYOUT_MINIMUM
#define DLRS_LAYOUT_MINIMUM 100
#endif

#if !defined(DLRS_LAYOUT_NAMES_ONLY) && !defined(DLRS_LAYOUT_DEFINE)

/* C99 has no static assertion: a false one becomes an array of negative size. C before C11 cannot
 * ask for a type either. */
#if defined(__cplusplus)
#define DLRS_LAYOUT_CHECK(name, condition, message) static_assert(condition, message)
#elif defined(__STDC_VERSION__) && __STDC_VERSION__ >= 201112L
#define DLRS_LAYOUT_CHECK(name, condition, message) _Static_assert(condition, message)
#else
#define DLRS_LAYOUT_CHECK(name, condition, message) \
  typedef char dlrs_layout_##name[(condition) ? 1 : -1]
#endif

#if defined(__cplusplus)
template <class A, class B> struct dlrs_layout_same { static const bool value = false; };
template <class A> struct dlrs_layout_same<A, A> { static const bool value = true; };
#define DLRS_LAYOUT_IS(type, member, ctype) \
  (dlrs_layout_same<decltype(type::member), ctype>::value)
#elif defined(__STDC_VERSION__) && __STDC_VERSION__ >= 201112L
#define DLRS_LAYOUT_IS(type, member, ctype) _Generic(((type *)0)->member, ctype: 1, default: 0)
#else
#define DLRS_LAYOUT_IS(type, member, ctype) (sizeof(((type *)0)->member) == sizeof(ctype))
#endif

/** `member` lies `bytes` from the start of `type`, and is a `ctype`. */
#define DLRS_LAYOUT_MEMBER_OF(name, type, member, bytes, ctype) \
  DLRS_LAYOUT_CHECK(name##_##member##_offset, offsetof(type, member) == (bytes), \
                    #name "." #member " must be at offset " #bytes); \
  DLRS_LAYOUT_CHECK(name##_##member##_type, DLRS_LAYOUT_IS(type, member, ctype), \
                    #name "." #member " must be of the type " #ctype)
#define DLRS_LAYOUT_MEMBER(type, member, bytes, ctype) \
  DLRS_LAYOUT_MEMBER_OF(type, type, member, bytes, ctype)
#define DLRS_LAYOUT_SIZE_OF(name, type, bytes) \
  DLRS_LAYOUT_CHECK(name##_size, sizeof(type) == (bytes), #name " must have " #bytes " bytes")
#define DLRS_LAYOUT_SIZE(type, bytes) DLRS_LAYOUT_SIZE_OF(type, type, bytes)
#define DLRS_LAYOUT_VALUE(name, value) \
  DLRS_LAYOUT_CHECK(name##_value, (name) == (value), #name " must be " #value)
/** `what` came with version `since`: to be there in a header that must be so new. */
#define DLRS_LAYOUT_NEEDS(since, name, what) \
  DLRS_LAYOUT_CHECK(needs_##name, DLRS_LAYOUT_VERSION >= (since) || DLRS_LAYOUT_MINIMUM < (since), \
                    "this dlpack.h is older than DLRS_LAYOUT_MINIMUM: it lacks " what)

DLRS_LAYOUT_CHECK(version_is_known, DLRS_LAYOUT_VERSION >= 6 && DLRS_LAYOUT_VERSION < 200,
                  "only DLPack 0.6 to 1.x can be tested: another major version has another layout");
DLRS_LAYOUT_NEEDS(7, 0_7, "kDLOneAPI, kDLWebGPU, kDLHexagon (since DLPack 0.7)");
DLRS_LAYOUT_NEEDS(8, 0_8, "kDLBool (since DLPack 0.8)");
DLRS_LAYOUT_NEEDS(100, 1_0,
                  "DLManagedTensorVersioned, DLPackVersion, flags, kDLMAIA (since DLPack 1.0)");
DLRS_LAYOUT_NEEDS(101, 1_1, "kDLFloat8_*, kDLFloat6_*, kDLFloat4_e2m1fn (since DLPack 1.1)");
DLRS_LAYOUT_NEEDS(102, 1_2, "kDLTrn (since DLPack 1.2)");
DLRS_LAYOUT_NEEDS(103, 1_3, "DLPackExchangeAPI (since DLPack 1.3)");

/* Pointers have 4 or 8 bytes; on i386 a uint64_t in a struct is aligned to 4 bytes only. */
struct dlrs_layout_wide {
  char first;
  uint64_t value;
};
#define DLRS_LAYOUT_P sizeof(void *)
#define DLRS_LAYOUT_W offsetof(struct dlrs_layout_wide, value)
#define DLRS_LAYOUT_UP(bytes, align) (((bytes) + (align) - 1) / (align) * (align))
/* offsetof(DLTensor, byte_offset) and sizeof(DLTensor); offset of the flags. */
#define DLRS_LAYOUT_LAST DLRS_LAYOUT_UP(3 * DLRS_LAYOUT_P + 16, DLRS_LAYOUT_W)
#define DLRS_LAYOUT_TENSOR DLRS_LAYOUT_UP(DLRS_LAYOUT_LAST + 8, DLRS_LAYOUT_W)
#define DLRS_LAYOUT_FLAGS DLRS_LAYOUT_UP(8 + 2 * DLRS_LAYOUT_P, DLRS_LAYOUT_W)

DLRS_LAYOUT_SIZE(DLDeviceType, 4);
DLRS_LAYOUT_SIZE(DLDevice, 8);
DLRS_LAYOUT_MEMBER(DLDevice, device_type, 0, DLDeviceType);
DLRS_LAYOUT_MEMBER(DLDevice, device_id, 4, int32_t);

DLRS_LAYOUT_SIZE(DLDataType, 4);
DLRS_LAYOUT_MEMBER(DLDataType, code, 0, uint8_t);
DLRS_LAYOUT_MEMBER(DLDataType, bits, 1, uint8_t);
DLRS_LAYOUT_MEMBER(DLDataType, lanes, 2, uint16_t);

DLRS_LAYOUT_SIZE(DLTensor, DLRS_LAYOUT_TENSOR);
DLRS_LAYOUT_MEMBER(DLTensor, data, 0, void *);
DLRS_LAYOUT_MEMBER(DLTensor, device, DLRS_LAYOUT_P, DLDevice);
DLRS_LAYOUT_MEMBER(DLTensor, ndim, DLRS_LAYOUT_P + 8, int32_t);
DLRS_LAYOUT_MEMBER(DLTensor, dtype, DLRS_LAYOUT_P + 12, DLDataType);
DLRS_LAYOUT_MEMBER(DLTensor, shape, DLRS_LAYOUT_P + 16, int64_t *);
DLRS_LAYOUT_MEMBER(DLTensor, strides, 2 * DLRS_LAYOUT_P + 16, int64_t *);
DLRS_LAYOUT_MEMBER(DLTensor, byte_offset, DLRS_LAYOUT_LAST, uint64_t);

typedef void (*dlrs_layout_deleter)(struct DLManagedTensor *);
DLRS_LAYOUT_SIZE(DLManagedTensor,
                 DLRS_LAYOUT_UP(DLRS_LAYOUT_TENSOR + 2 * DLRS_LAYOUT_P, DLRS_LAYOUT_W));
DLRS_LAYOUT_MEMBER(DLManagedTensor, dl_tensor, 0, DLTensor);
DLRS_LAYOUT_MEMBER(DLManagedTensor, manager_ctx, DLRS_LAYOUT_TENSOR, void *);
DLRS_LAYOUT_MEMBER(DLManagedTensor, deleter, DLRS_LAYOUT_TENSOR + DLRS_LAYOUT_P,
                   dlrs_layout_deleter);

DLRS_LAYOUT_VALUE(kDLCPU, 1);
DLRS_LAYOUT_VALUE(kDLCUDA, 2);
DLRS_LAYOUT_VALUE(kDLCUDAHost, 3);
DLRS_LAYOUT_VALUE(kDLOpenCL, 4);
DLRS_LAYOUT_VALUE(kDLVulkan, 7);
DLRS_LAYOUT_VALUE(kDLMetal, 8);
DLRS_LAYOUT_VALUE(kDLVPI, 9);
DLRS_LAYOUT_VALUE(kDLROCM, 10);
DLRS_LAYOUT_VALUE(kDLROCMHost, 11);
DLRS_LAYOUT_VALUE(kDLExtDev, 12);
DLRS_LAYOUT_VALUE(kDLCUDAManaged, 13);
DLRS_LAYOUT_VALUE(kDLInt, 0);
DLRS_LAYOUT_VALUE(kDLUInt, 1);
DLRS_LAYOUT_VALUE(kDLFloat, 2);
DLRS_LAYOUT_VALUE(kDLOpaqueHandle, 3);
DLRS_LAYOUT_VALUE(kDLBfloat, 4);
DLRS_LAYOUT_VALUE(kDLComplex, 5);
#if DLRS_LAYOUT_VERSION >= 7
DLRS_LAYOUT_VALUE(kDLOneAPI, 14);
DLRS_LAYOUT_VALUE(kDLWebGPU, 15);
DLRS_LAYOUT_VALUE(kDLHexagon, 16);
#endif
#if DLRS_LAYOUT_VERSION >= 8
DLRS_LAYOUT_VALUE(kDLBool, 6);
#endif

#if DLRS_LAYOUT_VERSION >= 100
DLRS_LAYOUT_SIZE(DLPackVersion, 8);
DLRS_LAYOUT_MEMBER(DLPackVersion, major, 0, uint32_t);
DLRS_LAYOUT_MEMBER(DLPackVersion, minor, 4, uint32_t);

/* In C, DLPack 1.0 and 1.1 declare the struct's tag only. */
typedef struct DLManagedTensorVersioned dlrs_layout_versioned;
typedef void (*dlrs_layout_versioned_deleter)(struct DLManagedTensorVersioned *);
#define DLRS_LAYOUT_VERSIONED(member, bytes, ctype) \
  DLRS_LAYOUT_MEMBER_OF(DLManagedTensorVersioned, dlrs_layout_versioned, member, bytes, ctype)
DLRS_LAYOUT_SIZE_OF(DLManagedTensorVersioned, dlrs_layout_versioned,
                    DLRS_LAYOUT_FLAGS + 8 + DLRS_LAYOUT_TENSOR);
DLRS_LAYOUT_VERSIONED(version, 0, DLPackVersion);
DLRS_LAYOUT_VERSIONED(manager_ctx, 8, void *);
DLRS_LAYOUT_VERSIONED(deleter, 8 + DLRS_LAYOUT_P, dlrs_layout_versioned_deleter);
DLRS_LAYOUT_VERSIONED(flags, DLRS_LAYOUT_FLAGS, uint64_t);
DLRS_LAYOUT_VERSIONED(dl_tensor, DLRS_LAYOUT_FLAGS + 8, DLTensor);

DLRS_LAYOUT_VALUE(kDLMAIA, 17);
DLRS_LAYOUT_VALUE(DLPACK_FLAG_BITMASK_READ_ONLY, 1);
DLRS_LAYOUT_VALUE(DLPACK_FLAG_BITMASK_IS_COPIED, 2);
#endif
#if DLRS_LAYOUT_VERSION >= 101
DLRS_LAYOUT_VALUE(DLPACK_FLAG_BITMASK_IS_SUBBYTE_TYPE_PADDED, 4);
DLRS_LAYOUT_VALUE(kDLFloat8_e3m4, 7);
DLRS_LAYOUT_VALUE(kDLFloat8_e4m3, 8);
DLRS_LAYOUT_VALUE(kDLFloat8_e4m3b11fnuz, 9);
DLRS_LAYOUT_VALUE(kDLFloat8_e4m3fn, 10);
DLRS_LAYOUT_VALUE(kDLFloat8_e4m3fnuz, 11);
DLRS_LAYOUT_VALUE(kDLFloat8_e5m2, 12);
DLRS_LAYOUT_VALUE(kDLFloat8_e5m2fnuz, 13);
DLRS_LAYOUT_VALUE(kDLFloat8_e8m0fnu, 14);
DLRS_LAYOUT_VALUE(kDLFloat6_e2m3fn, 15);
DLRS_LAYOUT_VALUE(kDLFloat6_e3m2fn, 16);
DLRS_LAYOUT_VALUE(kDLFloat4_e2m1fn, 17);
#endif
#if DLRS_LAYOUT_VERSION >= 102
DLRS_LAYOUT_VALUE(kDLTrn, 18);
#endif

/* Upstream's main branch has these since 1.3, and still that version: 104 asks for them. */
#if DLRS_LAYOUT_VERSION >= 104 || DLRS_LAYOUT_MINIMUM >= 104
DLRS_LAYOUT_VALUE(kDLBcomplex, 18);
DLRS_LAYOUT_VALUE(kDLTPU, 19);
DLRS_LAYOUT_VALUE(kDLTPUHost, 20);
DLRS_LAYOUT_VALUE(kDLAscend, 21);
#endif

#if DLRS_LAYOUT_VERSION >= 103
DLRS_LAYOUT_SIZE(DLPackExchangeAPIHeader, 8 + DLRS_LAYOUT_P);
DLRS_LAYOUT_MEMBER(DLPackExchangeAPIHeader, version, 0, DLPackVersion);
DLRS_LAYOUT_MEMBER(DLPackExchangeAPIHeader, prev_api, 8, struct DLPackExchangeAPIHeader *);

typedef int (*dlrs_layout_allocator)(DLTensor *, DLManagedTensorVersioned **, void *,
                                     void (*)(void *, const char *, const char *));
typedef int (*dlrs_layout_from_py)(void *, DLManagedTensorVersioned **);
typedef int (*dlrs_layout_to_py)(DLManagedTensorVersioned *, void **);
typedef int (*dlrs_layout_describe_py)(void *, DLTensor *);
typedef int (*dlrs_layout_stream)(DLDeviceType, int32_t, void **);
DLRS_LAYOUT_SIZE(DLPackExchangeAPI, 8 + 6 * DLRS_LAYOUT_P);
DLRS_LAYOUT_MEMBER(DLPackExchangeAPI, header, 0, DLPackExchangeAPIHeader);
DLRS_LAYOUT_MEMBER(DLPackExchangeAPI, managed_tensor_allocator, 8 + DLRS_LAYOUT_P,
                   dlrs_layout_allocator);
DLRS_LAYOUT_MEMBER(DLPackExchangeAPI, managed_tensor_from_py_object_no_sync,
                   8 + 2 * DLRS_LAYOUT_P, dlrs_layout_from_py);
DLRS_LAYOUT_MEMBER(DLPackExchangeAPI, managed_tensor_to_py_object_no_sync, 8 + 3 * DLRS_LAYOUT_P,
                   dlrs_layout_to_py);
DLRS_LAYOUT_MEMBER(DLPackExchangeAPI, dltensor_from_py_object_no_sync, 8 + 4 * DLRS_LAYOUT_P,
                   dlrs_layout_describe_py);
DLRS_LAYOUT_MEMBER(DLPackExchangeAPI, current_work_stream, 8 + 5 * DLRS_LAYOUT_P,
                   dlrs_layout_stream);
#endif
#endif /* the assertions */

/* What the header does not declare is 0 in the table. */
#if DLRS_LAYOUT_VERSION >= 100
#define DLRS_LAYOUT_1_0(value) (value)
#else
#define DLRS_LAYOUT_1_0(value) 0
#endif
#define DLRS_LAYOUT_IN_VERSIONED(member) \
  DLRS_LAYOUT_1_0(offsetof(struct DLManagedTensorVersioned, member))
#if DLRS_LAYOUT_VERSION >= 103
#define DLRS_LAYOUT_1_3(value) (value)
#else
#define DLRS_LAYOUT_1_3(value) 0
#endif
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
#define DLRS_LAYOUT_BIG_ENDIAN 1
#else
#define DLRS_LAYOUT_BIG_ENDIAN 0
#endif

/** The members of dlrs_abi_table in its order: ROW(version that brought it, member, value). */
#define DLRS_LAYOUT_ROWS(ROW) \
  ROW(0, struct_size, 29 * sizeof(uint32_t)) \
  ROW(0, pointer_size, sizeof(void *)) \
  ROW(0, big_endian, DLRS_LAYOUT_BIG_ENDIAN) \
  ROW(0, dlpack_major, DLRS_LAYOUT_VERSION / 100) \
  ROW(0, dlpack_minor, DLRS_LAYOUT_VERSION % 100) \
  ROW(100, version_size, DLRS_LAYOUT_1_0(sizeof(DLPackVersion))) \
  ROW(0, device_size, sizeof(DLDevice)) \
  ROW(0, dtype_size, sizeof(DLDataType)) \
  ROW(0, tensor_size, sizeof(DLTensor)) \
  ROW(0, tensor_align, offsetof(struct dlrs_layout_aligned, tensor)) \
  ROW(0, tensor_data, offsetof(DLTensor, data)) \
  ROW(0, tensor_device, offsetof(DLTensor, device)) \
  ROW(0, tensor_ndim, offsetof(DLTensor, ndim)) \
  ROW(0, tensor_dtype, offsetof(DLTensor, dtype)) \
  ROW(0, tensor_shape, offsetof(DLTensor, shape)) \
  ROW(0, tensor_strides, offsetof(DLTensor, strides)) \
  ROW(0, tensor_byte_offset, offsetof(DLTensor, byte_offset)) \
  ROW(0, legacy_size, sizeof(DLManagedTensor)) \
  ROW(0, legacy_dl_tensor, offsetof(DLManagedTensor, dl_tensor)) \
  ROW(0, legacy_manager_ctx, offsetof(DLManagedTensor, manager_ctx)) \
  ROW(0, legacy_deleter, offsetof(DLManagedTensor, deleter)) \
  ROW(100, versioned_size, DLRS_LAYOUT_1_0(sizeof(struct DLManagedTensorVersioned))) \
  ROW(100, versioned_version, DLRS_LAYOUT_IN_VERSIONED(version)) \
  ROW(100, versioned_manager_ctx, DLRS_LAYOUT_IN_VERSIONED(manager_ctx)) \
  ROW(100, versioned_deleter, DLRS_LAYOUT_IN_VERSIONED(deleter)) \
  ROW(100, versioned_flags, DLRS_LAYOUT_IN_VERSIONED(flags)) \
  ROW(100, versioned_dl_tensor, DLRS_LAYOUT_IN_VERSIONED(dl_tensor)) \
  ROW(103, exchange_header_size, DLRS_LAYOUT_1_3(sizeof(DLPackExchangeAPIHeader))) \
  ROW(103, exchange_api_size, DLRS_LAYOUT_1_3(sizeof(DLPackExchangeAPI)))

/** What layout_check.c reads of the translation unit that saw the other dlpack.h. */
#ifdef __cplusplus
extern "C" {
#endif
extern const uint32_t dlrs_layout_seen[];
extern const uint32_t dlrs_layout_minimum;
#ifdef __cplusplus
}
#endif

#ifdef DLRS_LAYOUT_DEFINE
struct dlrs_layout_aligned {
  char first;
  DLTensor tensor;
};
#define DLRS_LAYOUT_ROW(since, member, value) (uint32_t)(value),
const uint32_t dlrs_layout_seen[] = {DLRS_LAYOUT_ROWS(DLRS_LAYOUT_ROW)};
const uint32_t dlrs_layout_minimum = DLRS_LAYOUT_MINIMUM;
#undef DLRS_LAYOUT_ROW
#endif

#endif /* DLPACK_RS_LAYOUT_H_ */
