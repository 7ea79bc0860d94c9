/* Conversion, filling, comparison, batches and plain bytes, from plain C. */
#include <float.h>
#include <math.h>

#include "harness.h"

/* The functions are tested from C; tests/cast.rs and tests/python/test_cast.py check the numbers,
 * test_pairs.c what both tensors may be. */

typedef struct made {
  DLManagedTensorVersioned managed;
  int64_t shape[2];
  int64_t strides[2];
} made;

static DLManagedTensorVersioned *make(made *m, void *data, DLDataType dtype, int64_t rows,
                                      int64_t columns, uint64_t flags) {
  m->shape[0] = rows;
  m->shape[1] = columns;
  t_compact(2, m->shape, m->strides);
  m->managed = t_managed(t_describe(data, dtype, 2, m->shape, m->strides), flags);
  return &m->managed;
}

static void test_refusals(void) {
  float values[6] = {0};
  int32_t ints[6] = {0};
  made a, b;
  DLManagedTensorVersioned *src = make(&a, values, F32, 2, 3, 0);
  DLManagedTensorVersioned *dst = make(&b, ints, t_dtype(kDLInt, 32, 1), 2, 3, 0);
  dlrs_copy_options options = DLRS_INIT(dlrs_copy_options);
  t_context = "cast refuses";
  t_watch(ints, sizeof ints);
  REFUSED(DLRS_NULL_ARG, 1, 0, -1, dlrs_cast(NULL, dst, NULL, ERR));
  options.flags = DLRS_COPY_RAW_BYTES;
  REJECTS(BAD_ARG, 3, OPTION, -1, dlrs_cast(src, dst, &options, ERR));
  /* The member, then what is wrong with it, then the remedy. */
  CHECK(strcmp(t_error.message,
               "dlrs_cast: options->flags: DLRS_COPY_RAW_BYTES cannot be combined with a conversion "
               "(value 2) [DLRS_BAD_ARG]. Leave it out, or copy with dlrs_copy.") == 0);
  t_unwatch();
  /* In place: rejected, or through a temporary. */
  values[1] = 7.75f;
  make(&b, values, t_dtype(kDLInt, 32, 1), 2, 3, 0);
  REJECTS(OVERLAP_SRC_DST, 2, ANY, ANY, dlrs_cast(src, dst, NULL, ERR));
  options.flags = DLRS_COPY_ALLOW_OVERLAP;
  WORKS(dlrs_cast(src, dst, &options, ERR));
  memcpy(ints, values, sizeof ints);
  EQUAL(ints[1], 7);
}

static void test_fill(void) {
  double value = 2.5;
  uint16_t halves[6], bits = 0x7fc1; /* a NaN in its own dtype: bit for bit */
  made a;
  DLManagedTensorVersioned *dst = make(&a, halves, t_dtype(kDLBfloat, 16, 1), 2, 3, 0);
  DLDataType f64 = t_dtype(kDLFloat, 64, 1);
  t_context = "fill";
  WORKS(dlrs_fill(dst, &bits, t_dtype(kDLBfloat, 16, 1), NULL, ERR));
  EQUAL(halves[5], 0x7fc1);
  t_watch(halves, sizeof halves);
  REJECTS(NULL_ARG, 1, ANY, -1, dlrs_fill(NULL, &value, f64, NULL, ERR));
  REJECTS(DTYPE_CODE, 3, ANY, -1, dlrs_fill(dst, &value, t_dtype(99, 8, 1), NULL, ERR));
  REJECTS(DTYPE_MISMATCH, 3, DTYPE_LANES, -1,
          dlrs_fill(dst, &value, t_dtype(kDLFloat, 32, 2), NULL, ERR));
  t_unwatch();
}

/* The bits above a padded element are unused, whatever the value's byte has there. */
static void test_fill_padded(void) {
  uint8_t padded[5] = {0, 0, 0, 0, 0}, wide[2] = {0xab, 0xfc}, twice[4];
  made a;
  const uint64_t flags = DLPACK_FLAG_BITMASK_IS_SUBBYTE_TYPE_PADDED;
  DLManagedTensorVersioned *dst = make(&a, padded, t_dtype(kDLUInt, 4, 1), 1, 5, flags);
  t_context = "fill, padded";
  WORKS(dlrs_fill(dst, &wide[1], t_dtype(kDLUInt, 4, 1), NULL, ERR));
  CHECK(padded[0] == 0x0c && padded[4] == 0x0c);
  make(&a, twice, t_dtype(kDLUInt, 4, 3), 1, 2, flags);
  WORKS(dlrs_fill(dst, wide, t_dtype(kDLUInt, 4, 3), NULL, ERR));
  CHECK(twice[2] == 0xab && twice[3] == 0x0c);
}

/* Values are test_elements'; here: arguments, and the largest difference. */
static void test_comparison(void) {
  float x[6] = {0.0f, 1, 2, 3, 4, NAN}, y[6] = {-0.0f, 1, 2, 3, 4, NAN};
  int64_t far[2] = {INT64_MIN, 0}, near[2] = {INT64_MAX, 0};
  made a, b, c, d;
  DLManagedTensorVersioned *one = make(&a, x, F32, 2, 3, 0), *two = make(&b, y, F32, 2, 3, 0);
  int32_t same = -1;
  double apart = -1;
  t_context = "comparison";
  make(&c, far, t_dtype(kDLInt, 64, 1), 1, 2, 0);
  make(&d, near, t_dtype(kDLInt, 64, 1), 1, 2, 0);
  WORKS(dlrs_max_diff(&c.managed, &d.managed, &apart, ERR));
  CHECK(apart == 18446744073709551615.0);
  t_watch(&same, sizeof same);
  t_watch(&apart, sizeof apart);
  REJECTS(NULL_ARG, 1, ANY, -1, dlrs_equal(NULL, two, DLRS_EQUAL_BITS, &same, ERR));
  REJECTS(BAD_ARG, 3, ANY, -1, dlrs_equal(one, two, 0, &same, ERR));
  REJECTS(NULL_ARG, 1, ANY, -1, dlrs_max_diff(NULL, two, &apart, ERR));
  t_unwatch();
  WORKS(dlrs_equal(one, two, DLRS_EQUAL_VALUES, &same, ERR));
  EQUAL(same, 0);
}

static void test_batch(void) {
  float x[6] = {1, 2, 3, 4, 5, 6}, y[6] = {0}, z[6] = {0};
  made a, b, c;
  make(&a, x, F32, 2, 3, 0);
  make(&b, y, F32, 2, 3, 0);
  make(&c, z, F32, 2, 3, 0);
  const DLManagedTensorVersioned *src[2] = {&a.managed, &a.managed};
  DLManagedTensorVersioned *dst[2] = {&b.managed, &c.managed};
  uint64_t failed = 77;
  t_context = "batch";
  WORKS(dlrs_copy_batch(0, NULL, NULL, NULL, NULL, ERR));
  c.managed.flags = DLPACK_FLAG_BITMASK_READ_ONLY;
  t_watch(y, sizeof y);
  t_watch(z, sizeof z);
  REJECTS(READ_ONLY, 3, ANY, -1, dlrs_copy_batch(2, src, dst, NULL, &failed, ERR));
  EQUAL(failed, 1);
  REFUSED(DLRS_NULL_ARG, 2, 0, -1, dlrs_copy_batch(2, NULL, dst, NULL, NULL, ERR));
  src[0] = NULL;
  REFUSED(DLRS_NULL_ARG, 2, 0, -1, dlrs_copy_batch(2, src, dst, NULL, &failed, ERR));
  EQUAL(failed, 0);
  src[0] = &a.managed;
  t_unwatch();
  c.managed.flags = 0;
  WORKS(dlrs_copy_batch(2, src, dst, NULL, NULL, ERR));
  EQUAL(memcmp(y, x, sizeof x) | memcmp(z, x, sizeof x), 0);
  /* Through a staging buffer, where allowed: rows exchanged in place. */
  dlrs_copy_options options = DLRS_INIT(dlrs_copy_options);
  options.flags = DLRS_COPY_ALLOW_OVERLAP;
  make(&b, x, F32, 2, 3, 0);
  b.managed.dl_tensor.byte_offset = 3 * sizeof(float);
  b.strides[0] = -3;
  WORKS(dlrs_copy_batch(1, src, dst, &options, NULL, ERR));
  CHECK(x[0] == 4 && x[3] == 1);
}

/* DLRS_COPY_SATURATE in a fill and in casts, and where it has no meaning. */
static void test_saturation(void) {
  static const int8_t cut[4] = {44, -44, 7, -128}, saturated[4] = {127, -128, 7, 127};
  int16_t integers[4] = {300, -300, 7, 128};
  int8_t bytes[4] = {0};
  int32_t wide = 300;
  double large = 1e300;
  uint8_t narrow[4] = {0};
  float single = 0;
  int64_t four = 4;
  dlrs_copy_options options = DLRS_INIT(dlrs_copy_options);
  DLManagedTensorVersioned dst, one, other;
  options.flags = DLRS_COPY_SATURATE;
  dst = t_managed(t_describe(narrow, t_dtype(kDLUInt, 8, 1), 1, &four, NULL), 0);
  WORKS(dlrs_fill(&dst, &wide, t_dtype(kDLInt, 32, 1), &options, ERR));
  CHECK(narrow[0] == 255 && narrow[3] == 255);
  one = t_managed(t_describe(&large, t_dtype(kDLFloat, 64, 1), 0, NULL, NULL), 0);
  other = t_managed(t_describe(&single, t_dtype(kDLFloat, 32, 1), 0, NULL, NULL), 0);
  WORKS(dlrs_cast(&one, &other, &options, ERR));
  CHECK(single == FLT_MAX);
  one = t_managed(t_describe(integers, t_dtype(kDLInt, 16, 1), 1, &four, NULL), 0);
  other = t_managed(t_describe(bytes, t_dtype(kDLInt, 8, 1), 1, &four, NULL), 0);
  one.version.minor = other.version.minor = 1;
  WORKS(dlrs_cast(&one, &other, &options, ERR));
  CHECK(memcmp(bytes, saturated, sizeof bytes) == 0);
  WORKS(dlrs_cast(&one, &other, NULL, ERR));
  CHECK(memcmp(bytes, cut, sizeof bytes) == 0);
  REJECTS(BAD_ARG, 3, OPTION, -1, dlrs_copy(&dst, &dst, &options, ERR));
}

int main(void) {
  test_saturation();
  test_refusals();
  test_fill();
  test_fill_padded();
  test_comparison();
  test_batch();
  return t_close();
}
