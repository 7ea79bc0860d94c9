/* Queries of a tensor. */
#include "harness.h"

static t_tensor good;
static DLTensor *const bare = &good.managed.dl_tensor;

static int32_t dense(int32_t order) {
  int32_t answer = 77;
  WORKS(dlrs_is_contiguous(bare, order, &answer, ERR));
  return answer;
}

static void layout(int64_t rows, int64_t columns, int64_t row_stride, int64_t column_stride) {
  good.shape[0] = rows;
  good.shape[1] = columns;
  good.strides[0] = row_stride;
  good.strides[1] = column_stride;
}

static void contiguous(void) {
  layout(2, 3, 3, 1);
  CHECK(dense('C') && !dense('F') && dense('A') && dense('K'));
  layout(2, 3, 1, 2);
  CHECK(!dense('C') && dense('F') && dense('A') && dense('K'));
  layout(2, 3, 4, 1);
  CHECK(!dense('C') && !dense('F') && !dense('A') && !dense('K'));
  layout(2, 3, 0, 1);
  CHECK(!dense('C') && !dense('K'));
  layout(2, 3, -3, 1);
  CHECK(!dense('C') && !dense('K'));
  layout(1, 3, 99, 1);
  CHECK(dense('C') && dense('F'));
  layout(0, 3, 99, -7);
  CHECK(dense('C') && dense('F'));
  bare->strides = NULL;
  layout(2, 3, 0, 0);
  CHECK(dense('C') && !dense('F'));
  bare->strides = good.strides;
}

/* 2^32 * 2^32 wraps to 0, which is then no dense stride. Found by fuzzing. */
static void wrapped_products(void) {
  const int64_t two32 = INT64_C(1) << 32;
  int64_t shape[3] = {2, two32, two32}, strides[3] = {0, two32, 1};
  DLTensor wide = *bare;
  int32_t answer = 77, i;
  wide.ndim = 3;
  wide.shape = shape;
  wide.strides = strides;
  for (i = 0; i < 4; i++) {
    WORKS(dlrs_is_contiguous(&wide, "CFAK"[i], &answer, ERR));
    EQUAL(answer, 0);
  }
}

static void sizes(void) {
  int64_t numel = 0;
  uint64_t nbytes = 0;
  layout(2, 3, 3, 1);
  WORKS(dlrs_numel(bare, &numel, ERR));
  EQUAL(numel, 6);
  WORKS(dlrs_nbytes(bare, 0, &nbytes, ERR));
  EQUAL(nbytes, 24);
  layout(2, 3, -10, 2);
  WORKS(dlrs_nbytes(bare, 0, &nbytes, ERR));
  EQUAL(nbytes, 24);
  bare->dtype = t_dtype(kDLUInt, 1, 1);
  layout(3, 3, 3, 1);
  WORKS(dlrs_nbytes(bare, 0, &nbytes, ERR));
  EQUAL(nbytes, 2);
  WORKS(dlrs_nbytes(bare, DLPACK_FLAG_BITMASK_IS_SUBBYTE_TYPE_PADDED, &nbytes, ERR));
  EQUAL(nbytes, 9);
  bare->dtype = F32;
  bare->ndim = 0;
  WORKS(dlrs_numel(bare, &numel, ERR));
  EQUAL(numel, 1);
  bare->ndim = 2;
  layout(0, 3, 3, 1);
}

/* Bits times lanes; a padded sub-byte element fills whole bytes, its lanes together. */
static void item_sizes(void) {
  static const struct {
    uint8_t code, bits;
    uint16_t lanes;
    uint64_t packed, padded;
  } rows[] = {
      {kDLUInt, 1, 1, 1, 8},        {kDLFloat4_e2m1fn, 4, 2, 8, 8}, {kDLFloat6_e3m2fn, 6, 1, 6, 8},
      {kDLInt, 2, 5, 10, 16},        {kDLFloat, 32, 4, 128, 128},     {kDLComplex, 128, 1, 128, 128},
      {kDLUInt, 64, 65535, 4194240, 4194240},
  };
  uint64_t bits = 0;
  size_t i;
  layout(2, 3, -10, 2);
  for (i = 0; i < sizeof rows / sizeof *rows; ++i) {
    bare->dtype = t_dtype(rows[i].code, rows[i].bits, rows[i].lanes);
    WORKS(dlrs_itemsize_bits(bare, 0, &bits, ERR));
    EQUAL(bits, rows[i].packed);
    WORKS(dlrs_itemsize_bits(bare, DLPACK_FLAG_BITMASK_IS_SUBBYTE_TYPE_PADDED, &bits, ERR));
    EQUAL(bits, rows[i].padded);
    WORKS(dlrs_itemsize_bits(bare, DLPACK_FLAG_BITMASK_READ_ONLY, &bits, ERR));
    EQUAL(bits, rows[i].packed);
  }
  bare->dtype = F32;
  layout(INT64_MAX, INT64_MAX, INT64_MAX, INT64_MAX); /* of the dtype alone */
  WORKS(dlrs_itemsize_bits(bare, 0, &bits, ERR));
  EQUAL(bits, 32);
}

static void refuses(void) {
  static const int32_t orders[] = {0, 'c', 'B', 'Z', -1, INT32_MAX};
  int64_t numel = 77, low = 77, high = 77;
  uint64_t nbytes = 77;
  int32_t answer = 77;
  size_t i;
  layout(2, 3, 3, 1);
  t_watch(&good, sizeof good);
  t_watch(&numel, sizeof numel);
  t_watch(&nbytes, sizeof nbytes);
  t_watch(&answer, sizeof answer);
  t_watch(&low, sizeof low);
  t_watch(&high, sizeof high);
  REJECTS(NULL_ARG, 1, ANY, -1, dlrs_numel(NULL, &numel, ERR));
  REJECTS(NULL_ARG, 2, ANY, -1, dlrs_numel(bare, NULL, ERR));
  REJECTS(NULL_ARG, 1, ANY, -1, dlrs_itemsize_bits(NULL, 0, &nbytes, ERR));
  REJECTS(NULL_ARG, 3, ANY, -1, dlrs_itemsize_bits(bare, 0, NULL, ERR));
  REJECTS(NULL_ARG, 1, ANY, -1, dlrs_nbytes(NULL, 0, &nbytes, ERR));
  REJECTS(NULL_ARG, 3, ANY, -1, dlrs_nbytes(bare, 0, NULL, ERR));
  REJECTS(NULL_ARG, 1, ANY, -1, dlrs_is_contiguous(NULL, 'C', &answer, ERR));
  REJECTS(NULL_ARG, 3, ANY, -1, dlrs_is_contiguous(bare, 'C', NULL, ERR));
  REJECTS(MISALIGNED_STRUCT, 2, ANY, -1, dlrs_numel(bare, (int64_t *)((char *)t_guard() + 2), ERR));
  for (i = 0; i < sizeof orders / sizeof *orders; ++i) {
    REJECTS(BAD_ARG, 2, ANY, -1, dlrs_is_contiguous(bare, orders[i], &answer, ERR));
  }
  t_unwatch();
}

int main(void) {
  t_make(&good);
  contiguous();
  wrapped_products();
  item_sizes();
  sizes();
  refuses();
  return t_close();
}
