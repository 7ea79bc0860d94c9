/* Strides in bytes and in elements, against an oracle for one dimension at a time. */
#include "harness.h"
#include "random.h"

enum { MOST = 6, ROUNDS = 20000 };

/* Whether the dimension's stride is used. */
static int used(const int64_t *shape, int32_t ndim, int32_t dim) {
  int32_t i;
  for (i = 0; i < ndim; ++i) {
    if (shape[i] == 0) { return 0; }
  }
  return shape[dim] > 1;
}

static void equal(int32_t ndim, const int64_t *got, const int64_t *want, int64_t factor) {
  int32_t i;
  for (i = 0; i < ndim; ++i) {
    EQUAL(got[i], want[i] * factor);
  }
}

static void there_and_back(void) {
  int64_t shape[MOST], bytes[MOST], want[MOST], row[MOST], got[MOST];
  int32_t ndim = (int32_t)below(MOST), i, uneven = -1;
  uint32_t itemsize = (uint32_t)(1 + below(17));
  int with_uneven = below(3) == 0;
  for (i = 0; i < ndim; ++i) {
    shape[i] = below(20) == 0 ? 0 : 1 + below(5);
    want[i] = below(2001) - 1000;
    bytes[i] = want[i] * itemsize;
  }
  WORKS(dlrs_compact_strides(shape, ndim, 'C', row, ERR)); /* test_view.c tests it */
  for (i = 0; i < ndim; ++i) {
    if (!used(shape, ndim, i)) {
      want[i] = row[i];
      bytes[i] = (int64_t)(draw() << 11 | 1); /* not checked */
    } else if (with_uneven && itemsize > 1 && uneven < 0) {
      bytes[i] += 1 + below(itemsize - 1);
      uneven = i;
    }
  }
  if (uneven >= 0) {
    memset(got, 1, sizeof got);
    t_watch(got, sizeof got);
    REJECTS(STRIDES_UNEVEN, 2, STRIDES, uneven,
            dlrs_strides_from_bytes(shape, bytes, ndim, itemsize, got, ERR));
    EQUAL(t_error.value, bytes[uneven]);
    EQUAL(t_error.limit, itemsize);
    t_unwatch();
    return;
  }
  WORKS(dlrs_strides_from_bytes(shape, bytes, ndim, itemsize, got, ERR));
  equal(ndim, got, want, 1);
  WORKS(dlrs_strides_to_bytes(shape, want, ndim, itemsize, got, ERR));
  equal(ndim, got, want, itemsize);
  /* NULL is compact; and the arrays may be the same. */
  WORKS(dlrs_strides_from_bytes(shape, NULL, ndim, itemsize, got, ERR));
  equal(ndim, got, row, 1);
  WORKS(dlrs_strides_to_bytes(shape, NULL, ndim, itemsize, got, ERR));
  equal(ndim, got, row, itemsize);
  WORKS(dlrs_strides_from_bytes(shape, bytes, ndim, itemsize, bytes, ERR));
  equal(ndim, bytes, want, 1);
  WORKS(dlrs_strides_to_bytes(shape, bytes, ndim, itemsize, shape, ERR));
  equal(ndim, shape, want, itemsize);
}

/* The errors of both, with their names. */
#define REFUSALS(call) \
  do { \
    t_watch(out, sizeof out); \
    REJECTS(SHAPE_NULL, 1, ANY, -1, call(NULL, steps, 2, 4, out, ERR)); \
    REJECTS(NULL_ARG, 5, ANY, -1, call(shape, steps, 2, 4, NULL, ERR)); \
    REJECTS(MISALIGNED_STRUCT, 2, ANY, -1, call(shape, odd, 2, 4, out, ERR)); \
    REJECTS(NDIM, 3, ANY, -1, call(shape, steps, -1, 4, out, ERR)); \
    REJECTS(NDIM, 3, ANY, -1, call(shape, steps, 65, 4, out, ERR)); \
    REJECTS(NDIM, 3, ANY, -1, call(shape, steps, INT32_MIN, 4, out, ERR)); \
    REJECTS(BAD_ARG, 4, ANY, -1, call(shape, steps, 2, 0, out, ERR)); \
    REJECTS(SHAPE_NEG, 1, SHAPE, 1, call(negative, steps, 2, 4, out, ERR)); \
    REJECTS(SIZE_OVERFLOW, 1, SHAPE, 1, call(huge, steps, 2, 4, out, ERR)); \
    WORKS(call(NULL, NULL, 0, 4, NULL, ERR)); \
    t_unwatch(); \
  } while (0)

static void refusals(void) {
  int64_t shape[2] = {2, 3}, steps[3] = {12, 4, 4}, out[2] = {7, 7};
  int64_t negative[2] = {2, -1}, huge[2] = {2, INT64_MAX};
  const int64_t *odd = (const int64_t *)((const char *)steps + 1);
  REFUSALS(dlrs_strides_from_bytes);
  REFUSALS(dlrs_strides_to_bytes);
}

static void limits(void) {
  int64_t shape[2] = {2, 3}, steps[2] = {12, 6}, out[2] = {7, 7};
  int64_t far[2] = {INT64_MAX / 4, INT64_MIN}, ones[2] = {1, 1}, none[2] = {0, 2};
  t_watch(out, sizeof out);
  REJECTS(NULL_ARG, 5, ANY, -1, dlrs_strides_from_bytes(shape, steps, 2, 4, NULL, ERR));
  REJECTS(NULL_ARG, 5, ANY, -1, dlrs_strides_to_bytes(shape, steps, 2, 4, NULL, ERR));
  REJECTS(STRIDES_UNEVEN, 2, STRIDES, 1, dlrs_strides_from_bytes(shape, steps, 2, 4, out, ERR));
  CHECK(strstr(t_error.message, "(value 6, limit 4)") != NULL);
  REJECTS(EXTENT_OVERFLOW, 2, STRIDES, 1, dlrs_strides_to_bytes(shape, far, 2, 4, out, ERR));
  EQUAL(t_error.value, INT64_MIN);
  t_unwatch();
  /* Large ones that fit; unused strides cannot be too large. */
  far[0] = INT64_MIN;
  WORKS(dlrs_strides_from_bytes(shape, far, 2, 4, out, ERR));
  CHECK(out[0] == INT64_MIN / 4 && out[1] == INT64_MIN / 4);
  WORKS(dlrs_strides_to_bytes(shape, out, 2, 4, out, ERR));
  CHECK(out[0] == INT64_MIN && out[1] == INT64_MIN);
  WORKS(dlrs_strides_to_bytes(ones, far, 2, 8, out, ERR));
  CHECK(out[0] == 8 && out[1] == 8);
  WORKS(dlrs_strides_to_bytes(none, far, 2, 8, out, ERR));
  CHECK(out[0] == 16 && out[1] == 8);
}

int main(void) {
  int i;
  refusals();
  limits();
  for (i = 0; i < ROUNDS; ++i) {
    there_and_back();
  }
  return t_close();
}
