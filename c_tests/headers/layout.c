/*
 * Where every member of every DLPack struct lies, as constants: written down by hand from the
 * rules of the C ABI, independent of the generator. C99 has no static assertion, so a false one
 * becomes an array of negative size.
 */
#include HEADER

#if defined(__cplusplus)
#define CHECK(name, condition) static_assert(condition, #name)
#elif __STDC_VERSION__ >= 201112L
#define CHECK(name, condition) _Static_assert(condition, #name)
#else
#define CHECK(name, condition) typedef char check_##name[(condition) ? 1 : -1]
#endif

#define AT(type, member, bytes) CHECK(type##_##member, offsetof(type, member) == (bytes))
#define SIZE(type, bytes) CHECK(type##_bytes, sizeof(type) == (bytes))

/* Pointers are 4 or 8 bytes; on i386 a uint64_t in a struct is aligned to 4 bytes only. */
struct wide { char c; uint64_t value; };
#define P sizeof(void *)
#define W offsetof(struct wide, value)
#define UP(bytes, align) (((bytes) + (align) - 1) / (align) * (align))

SIZE(DLPackVersion, 8);
AT(DLPackVersion, major, 0);
AT(DLPackVersion, minor, 4);

SIZE(DLDeviceType, 4);
SIZE(DLDevice, 8);
AT(DLDevice, device_type, 0);
AT(DLDevice, device_id, 4);

SIZE(DLDataType, 4);
AT(DLDataType, code, 0);
AT(DLDataType, bits, 1);
AT(DLDataType, lanes, 2);

#define OFFSET_AT UP(3 * P + 16, W)
#define TENSOR UP(OFFSET_AT + 8, W)
SIZE(DLTensor, TENSOR);
AT(DLTensor, data, 0);
AT(DLTensor, device, P);
AT(DLTensor, ndim, P + 8);
AT(DLTensor, dtype, P + 12);
AT(DLTensor, shape, P + 16);
AT(DLTensor, strides, 2 * P + 16);
AT(DLTensor, byte_offset, OFFSET_AT);

SIZE(DLManagedTensor, UP(TENSOR + 2 * P, W));
AT(DLManagedTensor, dl_tensor, 0);
AT(DLManagedTensor, manager_ctx, TENSOR);
AT(DLManagedTensor, deleter, TENSOR + P);

SIZE(DLManagedTensorVersioned, UP(8 + 2 * P, W) + 8 + TENSOR);
AT(DLManagedTensorVersioned, version, 0);
AT(DLManagedTensorVersioned, manager_ctx, 8);
AT(DLManagedTensorVersioned, deleter, 8 + P);
AT(DLManagedTensorVersioned, flags, UP(8 + 2 * P, W));
AT(DLManagedTensorVersioned, dl_tensor, UP(8 + 2 * P, W) + 8);

SIZE(DLPackExchangeAPIHeader, 8 + P);
AT(DLPackExchangeAPIHeader, version, 0);
AT(DLPackExchangeAPIHeader, prev_api, 8);

SIZE(DLPackExchangeAPI, 8 + 6 * P);
AT(DLPackExchangeAPI, header, 0);
AT(DLPackExchangeAPI, managed_tensor_allocator, 8 + P);
AT(DLPackExchangeAPI, managed_tensor_from_py_object_no_sync, 8 + 2 * P);
AT(DLPackExchangeAPI, managed_tensor_to_py_object_no_sync, 8 + 3 * P);
AT(DLPackExchangeAPI, dltensor_from_py_object_no_sync, 8 + 4 * P);
AT(DLPackExchangeAPI, current_work_stream, 8 + 5 * P);

/* The 64-bit numbers that documents quote. */
#if UINTPTR_MAX > 0xFFFFFFFFu
CHECK(tensor_64, sizeof(DLTensor) == 48);
CHECK(managed_64, sizeof(DLManagedTensor) == 64);
CHECK(versioned_64, sizeof(DLManagedTensorVersioned) == 80);
CHECK(api_header_64, sizeof(DLPackExchangeAPIHeader) == 16);
CHECK(api_64, sizeof(DLPackExchangeAPI) == 56);
#endif

CHECK(first_device, kDLCPU == 1);
CHECK(last_device, kDLTrn == 18);
CHECK(first_code, kDLInt == 0);
CHECK(last_code, kDLFloat4_e2m1fn == 17);
CHECK(flags, (DLPACK_FLAG_BITMASK_READ_ONLY | DLPACK_FLAG_BITMASK_IS_COPIED |
              DLPACK_FLAG_BITMASK_IS_SUBBYTE_TYPE_PADDED) == 7);
CHECK(release, DLPACK_MAJOR_VERSION == 1 && DLPACK_MINOR_VERSION == 3);
