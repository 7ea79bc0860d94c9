/* Levels and arguments; the malformed tensors are section V of the catalogue. */
#include "harness.h"

/* Whether a message contains a number close to an address. */
static int tells(const char *message, const void *address) {
  const char *at = message;
  while (*at != '\0') {
    char *end = NULL;
    const uint64_t number = strtoull(at, &end, 10);
    if (end == at) {
      ++at;
      continue;
    }
    if (number - (uint64_t)(uintptr_t)address + ((uint64_t)1 << 20) < (uint64_t)1 << 21) return 1;
    at = end;
  }
  return 0;
}

/* The error reports an offset from the caller's base, never an address; an unsigned one is printed
 * without a sign. */
static void within(void) {
  t_tensor good;
  DLTensor *bare = &good.managed.dl_tensor;
  char *first = (char *)good.values;
  const uintptr_t bases[] = {0, 1, 16, 4095, 65535, (uintptr_t)-1 - 65535, (uintptr_t)-17};
  const size_t count = sizeof(void *) == 8 ? 7 : 5; /* far away where the address space permits */
  size_t i;
  dlrs_alloc_options options = DLRS_INIT(dlrs_alloc_options);
  DLManagedTensorVersioned *out;
  t_make(&good);
  for (i = 0; i < count; ++i) {
    REJECTS(OUT_OF_BOUNDS, 1, DATA, -1, dlrs_validate_within(bare, 0, (void *)bases[i], 16, ERR));
    CHECK(!tells(t_error.message, first) && t_error.value == 0);
  }
  REJECTS(OUT_OF_BOUNDS, 1, DATA, -1, dlrs_validate_within(bare, 0, first - 8, 16, ERR));
  EQUAL(t_error.value, 32);
  EQUAL(t_error.limit, 16);
  REJECTS(OUT_OF_BOUNDS, 1, DATA, -1, dlrs_validate_within(bare, 0, first + 8, 16, ERR));
  EQUAL(t_error.value, -8);
  REJECTS(OUT_OF_BOUNDS, 1, ANY, -1, dlrs_validate_within(bare, 0, first, UINT64_MAX, ERR));
  CHECK(strstr(t_error.message, "(value 18446744073709551615)") != NULL);
  REJECTS(FLAGS, 1, FLAGS, -1, dlrs_validate(bare, (uint64_t)1 << 63, DLRS_LEVEL_STRICT, ERR));
  CHECK(strstr(t_error.message, "(value 9223372036854775808)") != NULL);
  bare->byte_offset = UINT64_MAX;
  REJECTS(OFFSET, 1, BYTE_OFFSET, -1, dlrs_validate(bare, 0, DLRS_LEVEL_STRICT, ERR));
  CHECK(strstr(t_error.message, "(value 18446744073709551615)") != NULL);
  bare->byte_offset = 0;
  options.flags = (uint64_t)1 << 63;
  REJECTS(FLAGS, 2, FLAGS, -1, dlrs_tensor_new_like(bare, &options, &out, ERR));
  CHECK(strstr(t_error.message, "(value 9223372036854775808)") != NULL);
}

int main(void) {
  within();
  t_tensor good;
  DLTensor *bare = &good.managed.dl_tensor;
  int32_t level;
  static const int32_t wrong[] = {0, 5, -1, INT32_MIN, INT32_MAX};
  size_t i;
  t_make(&good);
  t_watch(&good, sizeof good);
  for (level = DLRS_LEVEL_STRUCT; level <= DLRS_LEVEL_DEVICE; ++level) {
    WORKS(dlrs_validate(bare, 0, level, ERR));
    WORKS(dlrs_validate(bare, 7, level, ERR));
    WORKS(dlrs_validate_managed(&good.managed, level, ERR));
    WORKS(dlrs_validate_legacy(&good.legacy, level, ERR));
  }
  WORKS(dlrs_validate_within(bare, 0, good.values, sizeof good.values, ERR));
  for (i = 0; i < sizeof wrong / sizeof *wrong; ++i) {
    REJECTS(BAD_ARG, 3, NONE, -1, dlrs_validate(bare, 0, wrong[i], ERR));
    REJECTS(BAD_ARG, 2, NONE, -1, dlrs_validate_managed(&good.managed, wrong[i], ERR));
    REJECTS(BAD_ARG, 2, NONE, -1, dlrs_validate_legacy(&good.legacy, wrong[i], ERR));
    EQUAL(t_error.value, wrong[i]);
  }
  REJECTS(NULL_ARG, 1, ANY, -1, dlrs_validate_within(NULL, 0, good.values, 24, ERR));
  REJECTS(MISALIGNED_STRUCT, 1, ANY, -1,
          dlrs_validate_within((DLTensor *)((char *)t_guard() + 2), 0, good.values, 24, ERR));
  REJECTS(OUT_OF_BOUNDS, 1, ANY, -1, dlrs_validate_within(bare, 0, NULL, 0, ERR));
  REJECTS(OUT_OF_BOUNDS, 1, ANY, -1, dlrs_validate_within(bare, 0, good.values, 23, ERR));
  t_unwatch();
  /* Numbers of which a quick check sees the same bits twice, or that wrap to 0: 2^40 steps of 2^37,
   * 2^27 and 2^38 bytes, 2^12 of 2^60. With pointers of 32 bits the elements alone are too many. */
  int32_t status = sizeof(void *) == 8 ? DLRS_EXTENT_OVERFLOW : DLRS_SIZE_OVERFLOW;
  int64_t many = ((int64_t)1 << 40) + 1, step;
  DLTensor far = t_describe(good.values, t_dtype(kDLUInt, 8, 1), 1, &many, &step);
  static const int shifts[] = {37, 27, 38};
  for (int i = 0; i < 3; i++) {
    step = (int64_t)1 << shifts[i];
    REFUSED(status, 1, ANY, ANY, dlrs_validate(&far, 0, 3, ERR));
  }
  many = 4097;
  step = (int64_t)1 << 40;
  far.dtype = t_dtype(kDLComplex, 128, 65535);
  REFUSED(status, 1, ANY, ANY, dlrs_validate(&far, 0, 3, ERR));
  many = 3; /* 2^61 elements, 2^63 bytes */
  step = (int64_t)1 << 60;
  far.dtype = F32;
  REJECTS(EXTENT_OVERFLOW, 1, ANY, ANY, dlrs_validate(&far, 0, 3, ERR));
  EQUAL(t_error.value, (int64_t)1 << 61);
  /* Several faults: the first in the fixed order is reported. */
  good.managed.version.major = 2;
  good.managed.flags = 8;
  bare->ndim = -1;
  bare->shape = NULL;
  bare->dtype = t_dtype(99, 0, 0);
  bare->device = t_device(99, -1);
  REJECTS(VERSION, 1, ANY, -1, dlrs_validate_managed(&good.managed, 3, ERR));
  good.managed.version.major = 1;
  REJECTS(FLAGS, 1, ANY, -1, dlrs_validate_managed(&good.managed, 3, ERR));
  good.managed.flags = 0;
  REJECTS(NDIM, 1, ANY, -1, dlrs_validate_managed(&good.managed, 3, ERR));
  bare->ndim = 2;
  REJECTS(SHAPE_NULL, 1, ANY, -1, dlrs_validate_managed(&good.managed, 3, ERR));
  bare->shape = good.shape;
  good.shape[1] = -1;
  REJECTS(DTYPE_BITS, 1, ANY, -1, dlrs_validate_managed(&good.managed, 3, ERR));
  bare->dtype.bits = 32;
  REJECTS(DTYPE_LANES, 1, ANY, -1, dlrs_validate_managed(&good.managed, 3, ERR));
  bare->dtype.lanes = 1;
  REJECTS(DTYPE_CODE, 1, ANY, -1, dlrs_validate_managed(&good.managed, 3, ERR));
  EQUAL(t_error.value, 99);
  EQUAL(t_error.limit, DLRS_CODE_BCOMPLEX); /* the last known code */
  bare->dtype.code = kDLFloat;
  REJECTS(DEVICE_TYPE, 1, ANY, -1, dlrs_validate_managed(&good.managed, 3, ERR));
  bare->device.device_type = kDLCPU;
  REJECTS(DEVICE_ID, 1, ANY, -1, dlrs_validate_managed(&good.managed, 3, ERR));
  bare->device.device_id = 0;
  bare->strides = NULL;
  REJECTS(SHAPE_NEG, 1, ANY, 1, dlrs_validate_managed(&good.managed, 3, ERR));
  good.shape[1] = 3;
  bare->data = NULL;
  REJECTS(STRIDES_NULL, 1, ANY, -1, dlrs_validate_managed(&good.managed, 3, ERR));
  bare->strides = good.strides;
  good.strides[0] = INT64_MAX / 2;
  REJECTS(EXTENT_OVERFLOW, 1, ANY, ANY, dlrs_validate_managed(&good.managed, 3, ERR));
  good.strides[0] = 3;
  REJECTS(DATA_NULL, 1, ANY, -1, dlrs_validate_managed(&good.managed, 3, ERR));
  bare->data = good.values;
  WORKS(dlrs_validate_managed(&good.managed, 3, ERR));
  return t_close();
}
