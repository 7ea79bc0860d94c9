/* The library's compiled layout equals this compiler's. */
#include "harness.h"

static dlrs_abi_table mine(void) {
  const uint16_t one = 1;
  struct aligned {
    char first;
    DLTensor tensor;
  };
  dlrs_abi_table table = DLRS_INIT(dlrs_abi_table);
  table.pointer_size = sizeof(void *);
  table.big_endian = *(const unsigned char *)&one == 0;
  table.dlpack_major = DLPACK_MAJOR_VERSION;
  table.dlpack_minor = DLPACK_MINOR_VERSION;
  table.version_size = sizeof(DLPackVersion);
  table.device_size = sizeof(DLDevice);
  table.dtype_size = sizeof(DLDataType);
  table.tensor_size = sizeof(DLTensor);
  table.tensor_align = offsetof(struct aligned, tensor);
  table.tensor_data = offsetof(DLTensor, data);
  table.tensor_device = offsetof(DLTensor, device);
  table.tensor_ndim = offsetof(DLTensor, ndim);
  table.tensor_dtype = offsetof(DLTensor, dtype);
  table.tensor_shape = offsetof(DLTensor, shape);
  table.tensor_strides = offsetof(DLTensor, strides);
  table.tensor_byte_offset = offsetof(DLTensor, byte_offset);
  table.legacy_size = sizeof(DLManagedTensor);
  table.legacy_dl_tensor = offsetof(DLManagedTensor, dl_tensor);
  table.legacy_manager_ctx = offsetof(DLManagedTensor, manager_ctx);
  table.legacy_deleter = offsetof(DLManagedTensor, deleter);
  table.versioned_size = sizeof(DLManagedTensorVersioned);
  table.versioned_version = offsetof(DLManagedTensorVersioned, version);
  table.versioned_manager_ctx = offsetof(DLManagedTensorVersioned, manager_ctx);
  table.versioned_deleter = offsetof(DLManagedTensorVersioned, deleter);
  table.versioned_flags = offsetof(DLManagedTensorVersioned, flags);
  table.versioned_dl_tensor = offsetof(DLManagedTensorVersioned, dl_tensor);
  table.exchange_header_size = sizeof(DLPackExchangeAPIHeader);
  table.exchange_api_size = sizeof(DLPackExchangeAPI);
  return table;
}

int main(void) {
  dlrs_abi_table table = mine();
  uint32_t *members = (uint32_t *)(void *)&table;
  size_t i;
  struct {
    dlrs_abi_table known;
    uint32_t unknown[4];
  } larger;
  CHECK(memcmp(dlrs_abi_layout(), &table, sizeof table) == 0);
  WORKS(dlrs_abi_check(DLRS_HEADER_VERSION, &table, ERR));
  REJECTS(NULL_ARG, 2, NONE, -1, dlrs_abi_check(DLRS_HEADER_VERSION, NULL, ERR));
  REJECTS(VERSION, 1, NONE, -1, dlrs_abi_check(DLRS_HEADER_VERSION + 1, &table, ERR));
  REJECTS(VERSION, 1, NONE, -1, dlrs_abi_check(DLRS_HEADER_VERSION + 1000000, &table, ERR));
  for (i = 1; i < sizeof table / sizeof *members; ++i) { /* each member that differs is found */
    ++members[i];
    t_watch(&table, sizeof table);
    REJECTS(BAD_ARG, 2, OPTION, -1, dlrs_abi_check(DLRS_HEADER_VERSION, &table, ERR));
    EQUAL(t_error.value, members[i]);
    EQUAL(t_error.limit, members[i] - 1);
    t_unwatch();
    --members[i];
  }
  table.struct_size -= 4;
  REJECTS(STRUCT_SIZE, 2, STRUCT_SIZE, -1, dlrs_abi_check(DLRS_HEADER_VERSION, &table, ERR));
  memset(&larger, 0, sizeof larger); /* a newer header's longer table */
  larger.known = mine();
  larger.known.struct_size = sizeof larger;
  larger.unknown[3] = 8; /* a size that this library cannot confirm */
  REJECTS(STRUCT_SIZE, 2, STRUCT_SIZE, -1, dlrs_abi_check(DLRS_HEADER_VERSION, &larger.known, ERR));
  larger.unknown[3] = 0;
  WORKS(dlrs_abi_check(DLRS_HEADER_VERSION, &larger.known, ERR));
  return t_close();
}
