/* Section C: legacy and versioned, in both directions. */
#include "catalogue.h"

static void c01(void) {
  t_tensor good;
  DLManagedTensorVersioned *versioned, *none = NULL, *out;
  DLManagedTensor *legacy, *no_legacy = NULL, *legacy_out;
  t_make(&good);
  versioned = &good.managed;
  legacy = &good.legacy;
  t_watch(&good, sizeof good);
  t_watch(&versioned, sizeof versioned);
  t_watch(&legacy, sizeof legacy);
  t_result(&out);
  t_result(&legacy_out);
  REJECTS(NULL_ARG, 1, NONE, -1, dlrs_from_legacy_take(NULL, 0, &out, ERR));
  REJECTS(NULL_ARG, 1, NONE, -1, dlrs_from_legacy_take(&no_legacy, 0, &out, ERR));
  REJECTS(NULL_ARG, 3, NONE, -1, dlrs_from_legacy_take(&legacy, 0, NULL, ERR));
  REJECTS(NULL_ARG, 1, NONE, -1, dlrs_to_legacy_take(NULL, 0, &legacy_out, ERR));
  REJECTS(NULL_ARG, 1, NONE, -1, dlrs_to_legacy_take(&none, 0, &legacy_out, ERR));
  REJECTS(NULL_ARG, 3, NONE, -1, dlrs_to_legacy_take(&versioned, 0, NULL, ERR));
  REJECTS(NULL_ARG, 1, NONE, -1, dlrs_import_take(NULL, NULL, &out, ERR));
  REJECTS(NULL_ARG, 1, NONE, -1, dlrs_import_take(&none, NULL, &out, ERR));
  REJECTS(NULL_ARG, 3, NONE, -1, dlrs_import_take(&versioned, NULL, NULL, ERR));
  /* The variable with the input cannot receive the result; it keeps the input. */
  REJECTS(BAD_ARG, 3, NONE, -1, dlrs_import_take(&versioned, NULL, &versioned, ERR));
  REJECTS(BAD_ARG, 3, NONE, -1,
          dlrs_to_legacy_take(&versioned, 0, (DLManagedTensor **)(void *)&versioned, ERR));
  REJECTS(BAD_ARG, 3, NONE, -1,
          dlrs_from_legacy_take(&legacy, 0, (DLManagedTensorVersioned **)(void *)&legacy, ERR));
}

static void c03(void) {
  t_tensor good;
  DLManagedTensorVersioned *versioned, *out;
  DLManagedTensor *legacy, *legacy_out;
  t_make(&good);
  good.legacy.deleter = NULL;
  good.managed.deleter = NULL;
  legacy = &good.legacy;
  WORKS(dlrs_from_legacy_take(&legacy, 0, &out, ERR));
  CHECK(legacy == NULL && out->deleter != NULL && out->dl_tensor.data == good.values);
  dlrs_release(out);
  t_context = "C04";
  versioned = &good.managed;
  WORKS(dlrs_to_legacy_take(&versioned, 0, &legacy_out, ERR));
  CHECK(versioned == NULL && legacy_out->deleter != NULL);
  legacy_out->deleter(legacy_out);
  versioned = &good.managed;
  WORKS(dlrs_import_take(&versioned, NULL, &out, ERR));
  dlrs_release(out);
  EQUAL(good.values[5], 5);
}

static void c05(void) {
  t_tensor good;
  DLManagedTensorVersioned *versioned;
  DLManagedTensor *out;
  long deleted = t_deleted;
  t_make(&good);
  good.managed.flags = DLPACK_FLAG_BITMASK_READ_ONLY;
  versioned = &good.managed;
  t_watch(&good, sizeof good);
  t_watch(&versioned, sizeof versioned);
  t_result(&out);
  REJECTS(READ_ONLY, 1, FLAGS, -1, dlrs_to_legacy_take(&versioned, DLRS_LEGACY_REFUSE, &out, ERR));
  REJECTS(BAD_ARG, 2, ANY, -1, dlrs_to_legacy_take(&versioned, 3, &out, ERR));
  REJECTS(BAD_ARG, 2, ANY, -1, dlrs_to_legacy_take(&versioned, -1, &out, ERR));
  t_unwatch();
  WORKS(dlrs_to_legacy_take(&versioned, DLRS_LEGACY_DROP, &out, ERR));
  CHECK(out->dl_tensor.data == good.values);
  dlrs_release_legacy(out);
  EQUAL(t_deleted, deleted + 1);
  versioned = &good.managed;
  WORKS(dlrs_to_legacy_take(&versioned, DLRS_LEGACY_COPY, &out, ERR));
  EQUAL(t_deleted, deleted + 2); /* the copy no longer needs the original */
  CHECK(out->dl_tensor.data != good.values && versioned == NULL);
  CHECK(memcmp(out->dl_tensor.data, good.values, sizeof good.values) == 0);
  dlrs_release_legacy(out);
  EQUAL(t_deleted, deleted + 2);
}

static void c06(void) {
  static const uint64_t unknown[] = {8, (uint64_t)1 << 40, (uint64_t)1 << 63};
  t_tensor good;
  DLManagedTensorVersioned *versioned;
  DLManagedTensor *out;
  int32_t policy;
  size_t i;
  t_make(&good);
  versioned = &good.managed;
  t_watch(&versioned, sizeof versioned);
  t_result(&out);
  for (policy = DLRS_LEGACY_REFUSE; policy <= DLRS_LEGACY_COPY; ++policy) {
    for (i = 0; i < 3; ++i) {
      good.managed.flags = unknown[i];
      REJECTS(FLAGS, 1, FLAGS, -1, dlrs_to_legacy_take(&versioned, policy, &out, ERR));
    }
    good.managed.flags = DLPACK_FLAG_BITMASK_IS_SUBBYTE_TYPE_PADDED;
    good.managed.dl_tensor.dtype = t_dtype(kDLFloat4_e2m1fn, 4, 1);
    REJECTS(FLAGS, 1, FLAGS, -1, dlrs_to_legacy_take(&versioned, policy, &out, ERR));
  }
  t_unwatch();
  good.managed.dl_tensor.dtype = F32; /* whole bytes: the padding flag has no effect */
  WORKS(dlrs_to_legacy_take(&versioned, 0, &out, ERR));
  dlrs_release_legacy(out);
  t_context = "C07";
  versioned = &good.managed;
  good.managed.flags = DLPACK_FLAG_BITMASK_IS_COPIED;
  WORKS(dlrs_to_legacy_take(&versioned, 0, &out, ERR));
  dlrs_release_legacy(out);
}

static void c08(void) { /* known ones are in fuzz/src/targets/convert_chain.rs */
  t_tensor good;
  DLManagedTensorVersioned *out;
  DLManagedTensor *legacy;
  t_make(&good);
  legacy = &good.legacy;
  t_watch(&good, sizeof good);
  t_watch(&legacy, sizeof legacy);
  t_result(&out);
  REJECTS(FLAGS, 1, FLAGS, -1, dlrs_from_legacy_take(&legacy, 8, &out, ERR));
}

static int same(const DLTensor *a, const DLTensor *b) {
  size_t nbytes = (size_t)a->ndim * sizeof *a->shape;
  return a->data == b->data && a->byte_offset == b->byte_offset && a->ndim == b->ndim &&
         a->device.device_type == b->device.device_type &&
         a->device.device_id == b->device.device_id && a->dtype.code == b->dtype.code &&
         a->dtype.bits == b->dtype.bits && a->dtype.lanes == b->dtype.lanes &&
         memcmp(a->shape, b->shape, nbytes) == 0 && memcmp(a->strides, b->strides, nbytes) == 0;
}

static void c09(void) {
  t_tensor good;
  DLManagedTensorVersioned *versioned;
  DLManagedTensor *legacy;
  long deleted = t_deleted;
  int i;
  t_make(&good);
  good.managed.dl_tensor.device = t_device(kDLCUDA, 5);
  good.managed.dl_tensor.byte_offset = 8;
  good.managed.dl_tensor.dtype = t_dtype(200, 7, 3); /* unknown codes survive */
  good.legacy.dl_tensor = good.managed.dl_tensor;
  versioned = &good.managed;
  for (i = 0; i < 3; ++i) {
    WORKS(dlrs_to_legacy_take(&versioned, 0, &legacy, ERR));
    CHECK(same(&legacy->dl_tensor, &good.managed.dl_tensor));
    WORKS(dlrs_from_legacy_take(&legacy, 0, &versioned, ERR));
    CHECK(same(&versioned->dl_tensor, &good.managed.dl_tensor));
  }
  EQUAL(t_deleted, deleted);
  dlrs_release(versioned);
  EQUAL(t_deleted, deleted + 1);
  legacy = &good.legacy;
  for (i = 0; i < 3; ++i) {
    WORKS(dlrs_from_legacy_take(&legacy, 0, &versioned, ERR));
    WORKS(dlrs_to_legacy_take(&versioned, 0, &legacy, ERR));
    CHECK(same(&legacy->dl_tensor, &good.managed.dl_tensor));
  }
  EQUAL(t_deleted, deleted + 1);
  legacy->deleter(legacy);
  EQUAL(t_deleted, deleted + 2);
}

static void c11(void) {
  t_tensor good;
  DLManagedTensorVersioned *out, *versioned;
  DLManagedTensor *legacy;
  t_make(&good);
  good.legacy.dl_tensor.strides = NULL;
  good.managed.dl_tensor.strides = NULL;
  legacy = &good.legacy;
  WORKS(dlrs_from_legacy_take(&legacy, 0, &out, ERR));
  CHECK(out->dl_tensor.strides[0] == 3 && out->dl_tensor.strides[1] == 1);
  dlrs_release(out);
  versioned = &good.managed;
  WORKS(dlrs_to_legacy_take(&versioned, 0, &legacy, ERR));
  CHECK(legacy->dl_tensor.strides[0] == 3 && legacy->dl_tensor.strides[1] == 1);
  dlrs_release_legacy(legacy);
  versioned = &good.managed;
  WORKS(dlrs_import_take(&versioned, NULL, &out, ERR));
  CHECK(out->dl_tensor.strides[0] == 3 && out->dl_tensor.strides[1] == 1);
  dlrs_release(out);
  t_context = "C12";
  good.legacy.dl_tensor.ndim = 0;
  legacy = &good.legacy;
  WORKS(dlrs_from_legacy_take(&legacy, 0, &out, ERR));
  CHECK(out->dl_tensor.shape == NULL && out->dl_tensor.strides == NULL);
  WORKS(dlrs_to_legacy_take(&out, 0, &legacy, ERR));
  CHECK(legacy->dl_tensor.shape == NULL && legacy->dl_tensor.strides == NULL);
  dlrs_release_legacy(legacy);
}

static void c16(void) {
  t_tensor good;
  DLManagedTensorVersioned *out, *versioned;
  DLManagedTensor *legacy;
  t_make(&good);
  /* Wrong for a reader of the data, irrelevant to a conversion of the struct. */
  good.legacy.dl_tensor.device = t_device(999, -5);
  good.legacy.dl_tensor.data = NULL;
  good.legacy.dl_tensor.byte_offset = UINT64_MAX;
  good.strides[0] = INT64_MIN;
  good.managed.dl_tensor = good.legacy.dl_tensor;
  legacy = &good.legacy;
  WORKS(dlrs_from_legacy_take(&legacy, 0, &out, ERR));
  CHECK(same(&out->dl_tensor, &good.managed.dl_tensor));
  dlrs_release(out);
  versioned = &good.managed;
  WORKS(dlrs_to_legacy_take(&versioned, 0, &legacy, ERR));
  CHECK(same(&legacy->dl_tensor, &good.managed.dl_tensor));
  dlrs_release_legacy(legacy);
  /* The level of an import selects the checks. */
  versioned = &good.managed;
  t_watch(&versioned, sizeof versioned);
  t_result(&out);
  REJECTS(DEVICE_TYPE, 1, DEVICE_TYPE, -1, dlrs_import_take(&versioned, NULL, &out, ERR));
}

static void c19(void) {
  t_tensor good;
  DLManagedTensor *confused;
  DLManagedTensorVersioned *out;
  t_make(&good);
  good.managed.deleter = NULL; /* where a legacy struct has ndim and dtype */
  confused = (DLManagedTensor *)(void *)&good.managed;
  t_watch(&good, sizeof good);
  t_watch(&confused, sizeof confused);
  t_result(&out);
  REJECTS(DTYPE_BITS, 1, NONE, -1, dlrs_from_legacy_take(&confused, 0, &out, ERR));
}

static void c20(void) {
  t_tensor good;
  DLManagedTensorVersioned *out, *versioned;
  DLManagedTensor *legacy;
  t_make(&good);
  good.managed.dl_tensor.data = t_guard();
  good.managed.dl_tensor.device = t_device(kDLCUDA, 0);
  good.legacy.dl_tensor = good.managed.dl_tensor;
  legacy = &good.legacy;
  WORKS(dlrs_from_legacy_take(&legacy, 0, &out, ERR));
  WORKS(dlrs_to_legacy_take(&out, 0, &legacy, ERR));
  dlrs_release_legacy(legacy);
  versioned = &good.managed;
  WORKS(dlrs_import_take(&versioned, NULL, &out, ERR));
  WORKS(dlrs_validate_managed(out, DLRS_LEVEL_STRICT, ERR));
  CHECK(out->dl_tensor.data == good.managed.dl_tensor.data);
  dlrs_release(out);
}

const c_row c_rows_c[] = {
    {"C01", "NULL is refused, and so is the input as the place of the result", c01},
    {"C03", "a legacy struct without a deleter is converted", c03},
    {"C04", "a versioned struct without a deleter is converted", c03},
    {"C05", "read-only data is refused, dropped or copied, as the policy says", c05},
    {"C06", "unknown flags are refused by every policy; padding on whole bytes says nothing", c06},
    {"C07", "IS_COPIED is lost in a legacy struct", c06},
    {"C08", "flags of a legacy struct come from the argument; there is no default", c08},
    {"C09", "there and back again nothing has changed", c09},
    {"C10", "back and there again nothing has changed", c09},
    {"C11", "NULL strides become compact ones", c11},
    {"C12", "no dimensions have no arrays", c11},
    {"C16", "a conversion checks the struct level, an import that of its options", c16},
    {"C19", "a struct of the other kind is refused where its misread members are implausible", c19},
    {"C20", "data of a device is not read", c20},
    {NULL, NULL, NULL},
};
