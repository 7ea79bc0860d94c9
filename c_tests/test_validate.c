/* Levels, arguments and questions; the malformed tensors are section V of the catalogue, and the
 * order of their faults in fuzz/src/targets/validate.rs. */
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
  bare->byte_offset = UINT64_MAX;
  REJECTS(OFFSET, 1, BYTE_OFFSET, -1, dlrs_validate(bare, 0, DLRS_LEVEL_STRICT, ERR));
  CHECK(strstr(t_error.message, "(value 18446744073709551615)") != NULL);
}

/* Questions; what they answer is in fuzz/src/targets/validate.rs. */
static void questions(void) {
  t_tensor good;
  const DLTensor *bare = &good.managed.dl_tensor;
  static const int32_t orders[] = {0, 'c', 'B', 'Z', -1, INT32_MAX};
  int64_t numel = 77;
  uint64_t nbytes = 77;
  int32_t answer = 77;
  size_t i;
  t_make(&good);
  t_watch(&good, sizeof good);
  t_watch(&numel, sizeof numel);
  t_watch(&nbytes, sizeof nbytes);
  t_watch(&answer, sizeof answer);
  REJECTS(NULL_ARG, 1, ANY, -1, dlrs_itemsize_bits(NULL, 0, &nbytes, ERR));
  REJECTS(NULL_ARG, 1, ANY, -1, dlrs_nbytes(NULL, 0, &nbytes, ERR));
  REJECTS(NULL_ARG, 1, ANY, -1, dlrs_is_contiguous(NULL, 'C', &answer, ERR));
  for (i = 0; i < sizeof orders / sizeof *orders; ++i) {
    REJECTS(BAD_ARG, 2, ANY, -1, dlrs_is_contiguous(bare, orders[i], &answer, ERR));
  }
  t_unwatch();
}

int main(void) {
  within();
  questions();
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
  REJECTS(OUT_OF_BOUNDS, 1, ANY, -1, dlrs_validate_within(bare, 0, NULL, 0, ERR));
  REJECTS(OUT_OF_BOUNDS, 1, ANY, -1, dlrs_validate_within(bare, 0, good.values, 23, ERR));
  t_unwatch();
  return t_close();
}
