/* Rows of section S, the second attack; catalogue_absent.c names the tests of those of Python. */
#include "catalogue.h"

#define PADDED DLPACK_FLAG_BITMASK_IS_SUBBYTE_TYPE_PADDED

/* The tensor has no flag but these, and is released. */
static void has(DLManagedTensorVersioned *tensor, uint64_t flags) {
  EQUAL(tensor->flags, flags);
  dlrs_release(tensor);
}

static void of_whole_bytes(DLDataType dtype) {
  t_tensor given;
  DLManagedTensorVersioned *taken = &given.managed, *out, *view;
  DLManagedTensor *legacy = &given.legacy;
  const DLTensor *bare = &given.managed.dl_tensor;
  t_make(&given);
  given.shape[0] = given.shape[1] = 1;
  given.managed.dl_tensor.dtype = given.legacy.dl_tensor.dtype = dtype;
  given.managed.flags = PADDED;
  WORKS(dlrs_tensor_wrap(bare, PADDED, NULL, NULL, &out, ERR));
  has(out, 0);
  WORKS(dlrs_from_legacy_take(&legacy, PADDED, &out, ERR));
  has(out, 0);
  WORKS(dlrs_clone(&given.managed, CPU, NULL, &out, ERR));
  has(out, DLPACK_FLAG_BITMASK_IS_COPIED);
  WORKS(dlrs_import_take(&taken, NULL, &out, ERR));
  WORKS(dlrs_view_read_only(out, &view, ERR));
  has(view, DLPACK_FLAG_BITMASK_READ_ONLY);
  has(out, 0);
}

/* IS_SUBBYTE_TYPE_PADDED is never kept for elements of whole bytes. */
static void s06(void) {
  static const int bits[] = {8, 16, 32, 64};
  DLManagedTensorVersioned *small, *view;
  dlrs_alloc_options options = DLRS_INIT(dlrs_alloc_options);
  int64_t two = 2;
  size_t i;
  for (i = 0; i < sizeof bits / sizeof *bits; ++i) {
    of_whole_bytes(t_dtype(kDLUInt, bits[i], 1));
    of_whole_bytes(t_dtype(kDLInt, bits[i], 3));
  }
  of_whole_bytes(t_dtype(kDLBool, 8, 1));
  of_whole_bytes(t_dtype(DLRS_CODE_BCOMPLEX, 32, 1));
  options.flags = PADDED;
  WORKS(dlrs_tensor_new(&two, 1, t_dtype(kDLUInt, 4, 1), CPU, &options, &small, ERR));
  WORKS(dlrs_view_bitcast(small, t_dtype(kDLUInt, 8, 1), &view, ERR));
  has(view, 0);
  has(small, PADDED);
}

/* The call is refused; its message names the struct, and has no number, which would be of an
 * address. */
#define NAMES_THE_STRUCT(struct_name, call)                                             \
  do {                                                                                  \
    CHECK((call) != DLRS_OK);                                                           \
    CHECK(strstr(t_error.message, struct_name) != NULL);                                \
    CHECK(strstr(t_error.message, "value") == NULL && t_error.value == 0);              \
  } while (0)

/* A struct of the other kind: a legacy one for a versioned one, and the reverse. */
static void s07(void) {
  void *const places[] = {NULL, &t_error, (void *)16, (void *)(uintptr_t)UINT64_C(0x7f1220000000)};
  enum { PLACES = sizeof places / sizeof *places };
  t_tensor given;
  DLManagedTensorVersioned *out = NULL, *versioned = (DLManagedTensorVersioned *)(void *)&given.legacy;
  DLManagedTensor *legacy = (DLManagedTensor *)(void *)&given.managed, *legacy_out = NULL;
  size_t i, flags;
  t_make(&given);
  t_error.struct_size = sizeof t_error;
  NAMES_THE_STRUCT("DLManagedTensor?", dlrs_validate_managed(versioned, 1, ERR));
  NAMES_THE_STRUCT("DLManagedTensor?", dlrs_clone(versioned, CPU, NULL, &out, ERR));
  NAMES_THE_STRUCT("DLManagedTensor?", dlrs_import_take(&versioned, NULL, &out, ERR));
  NAMES_THE_STRUCT("DLManagedTensor?", dlrs_to_legacy_take(&versioned, 0, &legacy_out, ERR));
  for (i = 0; i < (size_t)PLACES * PLACES; ++i) {
    given.managed.manager_ctx = places[i % PLACES];
    memcpy(&given.managed.deleter, &places[i / PLACES], sizeof(void *));
    for (flags = 0; flags < 4; ++flags) {
      given.managed.flags = flags;
      NAMES_THE_STRUCT("DLManagedTensorVersioned", dlrs_validate_legacy(legacy, 1, ERR));
      NAMES_THE_STRUCT("DLManagedTensorVersioned", dlrs_from_legacy_take(&legacy, 0, &out, ERR));
    }
  }
}

const c_row c_rows_s[] = {
    {"S06", "whole bytes are never said to be padded", s06},
    {"S07", "a struct of the other kind gives an error that names it and the function for it", s07},
    {NULL, NULL, NULL},
};
