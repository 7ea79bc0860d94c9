/* Section K: copies on the CPU, against a copy of one element at a time. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <sys/mman.h>
#include <sys/resource.h>

#include "catalogue.h"

/* Copies element by element; whole bytes only. */
static void reference(const DLTensor *src, const DLTensor *dst) {
  size_t item = (size_t)src->dtype.bits * src->dtype.lanes / 8;
  int64_t index[8] = {0};
  int32_t dim;
  for (;;) {
    char *from = (char *)src->data + src->byte_offset, *to = (char *)dst->data + dst->byte_offset;
    for (dim = 0; dim < src->ndim; ++dim) {
      from += index[dim] * src->strides[dim] * (int64_t)item;
      to += index[dim] * dst->strides[dim] * (int64_t)item;
    }
    memcpy(to, from, item);
    for (dim = src->ndim - 1; dim >= 0; --dim) {
      if (++index[dim] < src->shape[dim]) break;
      index[dim] = 0;
    }
    if (dim < 0) return;
  }
}

static int32_t copy(const DLTensor *src, const DLTensor *dst) {
  return dlrs_copy_desc(src, 0, dst, 0, NULL, ERR);
}

static uint32_t random_state = 12345;
static uint32_t random_next(void) {
  random_state = random_state * 1664525u + 1013904223u;
  return random_state >> 8;
}

static void fill(void *memory, size_t nbytes) {
  unsigned char *bytes = (unsigned char *)memory;
  while (nbytes-- > 0) *bytes++ = (unsigned char)random_next();
}

static void k01(void) {
  t_tensor good;
  DLManagedTensorVersioned *out;
  DLTensor *bare = &good.managed.dl_tensor;
  t_make(&good);
  t_watch(&good, sizeof good);
  t_result(&out);
  REJECTS(NULL_ARG, 1, NONE, -1, dlrs_copy(NULL, &good.managed, NULL, ERR));
  REJECTS(NULL_ARG, 2, NONE, -1, dlrs_copy(&good.managed, NULL, NULL, ERR));
  REJECTS(NULL_ARG, 1, NONE, -1, dlrs_copy_desc(NULL, 0, bare, 0, NULL, ERR));
  REJECTS(NULL_ARG, 3, NONE, -1, dlrs_copy_desc(bare, 0, NULL, 0, NULL, ERR));
  REJECTS(NULL_ARG, 1, NONE, -1, dlrs_clone(NULL, CPU, NULL, &out, ERR));
  REJECTS(NULL_ARG, 4, NONE, -1, dlrs_clone(&good.managed, CPU, NULL, NULL, ERR));
}

static void k03(void) {
  t_tensor src, dst;
  t_make(&src);
  t_make(&dst);
  memset(dst.values, 0, sizeof dst.values);
  dst.managed.flags = DLPACK_FLAG_BITMASK_READ_ONLY;
  t_watch(&dst, sizeof dst);
  REJECTS(READ_ONLY, 2, FLAGS, -1, dlrs_copy(&src.managed, &dst.managed, NULL, ERR));
  REJECTS(READ_ONLY, 3, FLAGS, -1,
          dlrs_copy_desc(&src.managed.dl_tensor, 0, &dst.managed.dl_tensor,
                         DLPACK_FLAG_BITMASK_READ_ONLY, NULL, ERR));
  t_unwatch();
  t_context = "K04";
  src.managed.flags = DLPACK_FLAG_BITMASK_READ_ONLY;
  dst.managed.flags = DLPACK_FLAG_BITMASK_IS_COPIED;
  WORKS(dlrs_copy(&src.managed, &dst.managed, NULL, ERR));
  CHECK(memcmp(src.values, dst.values, sizeof src.values) == 0);
  EQUAL(dst.managed.flags, DLPACK_FLAG_BITMASK_IS_COPIED);
}

static void k05(void) {
  t_tensor src, dst;
  t_make(&src);
  t_make(&dst);
  memset(dst.values, 0, sizeof dst.values);
  dst.shape[1] = 2;
  t_watch(&dst, sizeof dst);
  REJECTS(SHAPE_MISMATCH, 2, SHAPE, 1, dlrs_copy(&src.managed, &dst.managed, NULL, ERR));
  t_unwatch();
  dst.shape[0] = 1; /* (1, 3) is not (2, 3): nothing is broadcast */
  dst.shape[1] = 3;
  REJECTS(SHAPE_MISMATCH, 2, SHAPE, 0, dlrs_copy(&dst.managed, &src.managed, NULL, ERR));
  dst.managed.dl_tensor.shape = dst.shape + 1;
  dst.managed.dl_tensor.strides = dst.strides + 1;
  dst.managed.dl_tensor.ndim = 1;
  src.shape[0] = 1; /* (3) is not (1, 3) */
  REJECTS(SHAPE_MISMATCH, 2, NDIM, -1, dlrs_copy(&src.managed, &dst.managed, NULL, ERR));
  dst.managed.dl_tensor.ndim = 0; /* () is not (1, 1) */
  src.shape[1] = 1;
  REJECTS(SHAPE_MISMATCH, 2, NDIM, -1, dlrs_copy(&src.managed, &dst.managed, NULL, ERR));
  EQUAL(dst.values[0], 0);
}

static void k06(void) {
  t_tensor src, dst;
  DLDataType *dtype = &dst.managed.dl_tensor.dtype;
  t_make(&src);
  t_make(&dst);
  src.shape[1] = dst.shape[1] = 1;
  t_watch(dst.values, sizeof dst.values);
  *dtype = t_dtype(kDLInt, 32, 1);
  REJECTS(DTYPE_MISMATCH, 2, DTYPE_CODE, -1, dlrs_copy(&src.managed, &dst.managed, NULL, ERR));
  *dtype = t_dtype(kDLFloat, 16, 1);
  REJECTS(DTYPE_MISMATCH, 2, DTYPE_BITS, -1, dlrs_copy(&src.managed, &dst.managed, NULL, ERR));
  *dtype = t_dtype(kDLFloat, 32, 2);
  REJECTS(DTYPE_MISMATCH, 2, DTYPE_LANES, -1, dlrs_copy(&src.managed, &dst.managed, NULL, ERR));
  src.managed.dl_tensor.dtype = t_dtype(kDLFloat, 64, 1); /* the same size, another type */
  REJECTS(DTYPE_MISMATCH, 2, DTYPE_BITS, -1, dlrs_copy(&src.managed, &dst.managed, NULL, ERR));
}

static void k07(void) {
  float into[16], from[16] = {1, 2, 3, 4, 5, 6, 7, 8, 9};
  int64_t shape[2] = {3, 3}, src_strides[2] = {3, 1}, dst_strides[2];
  static const int64_t wrong[][2] = {{0, 1}, {1, 0}, {1, 1}, {2, 1}, {-1, 1}, {0, 0}};
  DLTensor src = t_describe(from, F32, 2, shape, src_strides);
  DLTensor dst = t_describe(into + 4, F32, 2, shape, dst_strides);
  size_t i;
  memset(into, 0, sizeof into);
  t_watch(into, sizeof into);
  for (i = 0; i < sizeof wrong / sizeof *wrong; ++i) {
    dst_strides[0] = wrong[i][0];
    dst_strides[1] = wrong[i][1];
    REJECTS(OVERLAP_DST, 3, STRIDES, -1, dlrs_copy_desc(&src, 0, &dst, 0, NULL, ERR));
  }
  t_unwatch();
  t_context = "K08";
  shape[0] = 1;
  dst_strides[0] = 0;
  dst_strides[1] = 1;
  WORKS(dlrs_copy_desc(&src, 0, &dst, 0, NULL, ERR));
  EQUAL(into[6], 3);
  shape[0] = 0;
  dst_strides[1] = 0;
  shape[1] = 5;
  WORKS(dlrs_copy_desc(&src, 0, &dst, 0, NULL, ERR));
}

/* Strides below 2^20 from a generator, with which `rank` dimensions of two elements each exceed the
 * bounds of a search for shared memory. Returns the number of bytes that they span. */
static int64_t scattered(int32_t rank, uint64_t generator, int64_t *strides) {
  uint64_t power = 1;
  int64_t nbytes = 1;
  int32_t dim, times;
  for (dim = 0; dim < rank; ++dim) {
    for (times = 0; times < 7; ++times) power = power * generator % 1048573;
    strides[dim] = (int64_t)power;
    nbytes += strides[dim];
  }
  return nbytes;
}

static const int64_t twos[14] = {2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2};

/* A destination for which the bounded search cannot prove that its elements are distinct. */
static void k07_undecided(void) {
  int64_t shape[14], strides[14], zeros[14] = {0}, nbytes = scattered(14, 7, strides);
  unsigned char *into = (unsigned char *)calloc(1, (size_t)nbytes), from[1] = {1};
  DLTensor src = t_describe(from, t_dtype(kDLUInt, 8, 1), 14, shape, zeros);
  DLTensor dst = t_describe(into, t_dtype(kDLUInt, 8, 1), 14, shape, strides);
  dlrs_copy_options options = DLRS_INIT(dlrs_copy_options);
  int32_t unique = 9;
  options.flags = DLRS_COPY_ALLOW_OVERLAP;
  memcpy(shape, twos, sizeof shape);
  WORKS(dlrs_is_unique(&dst, 0, &unique, ERR));
  EQUAL(unique, DLRS_UNDECIDED);
  t_watch(into, (size_t)nbytes);
  REJECTS(OVERLAP_DST, 3, STRIDES, -1, dlrs_copy_desc(&src, 0, &dst, 0, NULL, ERR));
  CHECK(strstr(t_error.message, "cannot be decided") != NULL);
  REJECTS(OVERLAP_DST, 3, STRIDES, -1, dlrs_copy_desc(&src, 0, &dst, 0, &options, ERR));
  t_unwatch();
  free(into);
}

/* The check of the destination is exact: compared with marking every element. */
static void k09(void) {
  static unsigned char from[256], into[256];
  int64_t shape[2], strides[2], src_strides[2];
  DLTensor src = t_describe(from, t_dtype(kDLInt, 16, 1), 2, shape, src_strides);
  DLTensor dst = t_describe(into + 128, t_dtype(kDLInt, 16, 1), 2, shape, strides);
  int wrong = 0;
  for (shape[0] = 1; shape[0] <= 4; ++shape[0]) {
    for (shape[1] = 1; shape[1] <= 4; ++shape[1]) {
      t_compact(2, shape, src_strides);
      for (strides[0] = -6; strides[0] <= 6; ++strides[0]) {
        for (strides[1] = -6; strides[1] <= 6; ++strides[1]) {
          unsigned char seen[128] = {0};
          int overlap = 0;
          int64_t i, j;
          for (i = 0; i < shape[0]; ++i) {
            for (j = 0; j < shape[1]; ++j) overlap |= seen[64 + i * strides[0] + j * strides[1]]++;
          }
          wrong += copy(&src, &dst) != (overlap ? DLRS_OVERLAP_DST : DLRS_OK);
        }
      }
    }
  }
  EQUAL(wrong, 0);
  shape[0] = 4; /* the catalogue's example */
  shape[1] = 2;
  strides[0] = 2;
  strides[1] = 3;
  t_compact(2, shape, src_strides);
  EQUAL(copy(&src, &dst), DLRS_OK);
}

static void k10(void) {
  t_tensor good;
  t_make(&good);
  t_watch(&good, sizeof good);
  WORKS(dlrs_copy(&good.managed, &good.managed, NULL, ERR));
  EQUAL(good.values[5], 5);
}

static void k11(void) {
  /* The ways in which a 4 x 4 view can overlap its own memory. */
  static const struct {
    int offset;
    int64_t strides[2];
  } views[] = {{1, {4, 1}}, {-1, {4, 1}}, {5, {4, 1}}, {-5, {4, 1}}, {0, {1, 4}},
               {15, {-4, -1}}, {12, {-4, 1}}, {3, {4, -1}}, {2, {1, 4}}};
  int32_t memory[40], expected[40];
  int64_t shape[2] = {4, 4}, src_strides[2] = {4, 1}, dst_strides[2];
  dlrs_copy_options options = DLRS_INIT(dlrs_copy_options);
  size_t i;
  int n;
  options.flags = DLRS_COPY_ALLOW_OVERLAP;
  for (i = 0; i < sizeof views / sizeof *views; ++i) {
    int32_t temporary[16];
    int64_t temporary_strides[2] = {4, 1};
    DLTensor src = t_describe(memory + 12, t_dtype(kDLInt, 32, 1), 2, shape, src_strides);
    DLTensor dst = src, middle = src;
    memcpy(dst_strides, views[i].strides, sizeof dst_strides);
    dst.data = memory + 12 + views[i].offset;
    dst.strides = dst_strides;
    middle.data = temporary;
    middle.strides = temporary_strides;
    for (n = 0; n < 40; ++n) memory[n] = 100 + n;
    t_watch(memory, sizeof memory);
    REJECTS(OVERLAP_SRC_DST, 3, ANY, -1, dlrs_copy_desc(&src, 0, &dst, 0, NULL, ERR));
    t_unwatch();
    reference(&src, &middle);
    reference(&middle, &dst);
    memcpy(expected, memory, sizeof memory);
    for (n = 0; n < 40; ++n) memory[n] = 100 + n;
    WORKS(dlrs_copy_desc(&src, 0, &dst, 0, &options, ERR));
    CHECK(memcmp(memory, expected, sizeof memory) == 0);
  }
}

/* Two tensors of distinct elements each: the bounded search does not decide whether they
 * overlap. */
static void k11_undecided(void) {
  int64_t shape[12], to_strides[12], from_strides[12];
  int64_t to_nbytes = scattered(12, 11, to_strides), from_nbytes = scattered(12, 7, from_strides);
  size_t nbytes = (size_t)(to_nbytes > from_nbytes ? to_nbytes : from_nbytes);
  unsigned char *memory = (unsigned char *)malloc(nbytes), values[4096];
  unsigned char *expected = (unsigned char *)malloc(nbytes);
  DLTensor src = t_describe(memory + (nbytes - (size_t)from_nbytes) / 2, t_dtype(kDLUInt, 8, 1), 12,
                            shape, from_strides);
  DLTensor dst = t_describe(memory + (nbytes - (size_t)to_nbytes) / 2, t_dtype(kDLUInt, 8, 1), 12,
                            shape, to_strides);
  dlrs_copy_options options = DLRS_INIT(dlrs_copy_options);
  int32_t answer = 9;
  int n, dim;
  memcpy(shape, twos, sizeof shape);
  options.flags = DLRS_COPY_ALLOW_OVERLAP;
  fill(memory, nbytes);
  memcpy(expected, memory, nbytes);
  WORKS(dlrs_is_unique(&src, 0, &answer, ERR));
  EQUAL(answer, DLRS_YES);
  WORKS(dlrs_is_unique(&dst, 0, &answer, ERR));
  EQUAL(answer, DLRS_YES);
  WORKS(dlrs_may_overlap(&src, 0, &dst, 0, &answer, ERR));
  EQUAL(answer, DLRS_UNDECIDED);
  t_watch(memory, nbytes);
  REJECTS(OVERLAP_SRC_DST, 3, ANY, -1, dlrs_copy_desc(&src, 0, &dst, 0, NULL, ERR));
  CHECK(strstr(t_error.message, "cannot be decided") != NULL);
  t_unwatch();
  for (n = 0; n < 2 * 4096; ++n) { /* all of the source, then all of the destination */
    int64_t at = 0;
    for (dim = 0; dim < 12; ++dim) {
      at += (n >> dim & 1) * (n < 4096 ? from_strides : to_strides)[dim];
    }
    if (n < 4096) {
      values[n] = ((unsigned char *)src.data)[at];
    } else {
      expected[(unsigned char *)dst.data - memory + at] = values[n - 4096];
    }
  }
  WORKS(dlrs_copy_desc(&src, 0, &dst, 0, &options, ERR));
  CHECK(memcmp(memory, expected, nbytes) == 0);
  free(memory);
  free(expected);
}

static void k12(void) {
  int16_t memory[32];
  int64_t shape[1] = {16}, strides[1] = {2}, two[2] = {4, 4}, apart[2] = {8, 1};
  DLTensor src = t_describe(memory, t_dtype(kDLInt, 16, 1), 1, shape, strides), dst = src;
  int n;
  for (n = 0; n < 32; ++n) memory[n] = (int16_t)n;
  dst.data = memory + 1;
  WORKS(dlrs_copy_desc(&src, 0, &dst, 0, NULL, ERR));
  for (n = 0; n < 32; ++n) EQUAL(memory[n], n / 2 * 2);
  src = t_describe(memory, t_dtype(kDLInt, 16, 1), 2, two, apart);
  dst = t_describe(memory + 4, t_dtype(kDLInt, 16, 1), 2, two, apart);
  WORKS(dlrs_copy_desc(&src, 0, &dst, 0, NULL, ERR));
}

static void k13(void) {
  int64_t shape[2] = {3, 0}, strides[2] = {0, 0};
  DLTensor src = t_describe(NULL, F32, 2, shape, strides), dst = src;
  DLManagedTensorVersioned managed, *out;
  WORKS(dlrs_copy_desc(&src, 0, &dst, 0, NULL, ERR));
  src.data = t_guard();
  WORKS(dlrs_copy_desc(&src, 0, &dst, 0, NULL, ERR));
  dst.data = t_guard();
  dst.byte_offset = 12345;
  WORKS(dlrs_copy_desc(&src, 0, &dst, 0, NULL, ERR));
  managed = t_managed(dst, 0);
  WORKS(dlrs_clone(&managed, CPU, NULL, &out, ERR));
  CHECK(out->dl_tensor.data == NULL);
  dlrs_release(out);
}

static void k14(void) {
  double from = 2.5, into = 0;
  DLTensor src = t_describe(&from, t_dtype(kDLFloat, 64, 1), 0, NULL, NULL), dst = src;
  DLManagedTensorVersioned managed = t_managed(src, 0), *out;
  dst.data = &into;
  WORKS(dlrs_copy_desc(&src, 0, &dst, 0, NULL, ERR));
  CHECK(into == 2.5);
  WORKS(dlrs_clone(&managed, CPU, NULL, &out, ERR));
  CHECK(*(double *)out->dl_tensor.data == 2.5 && out->dl_tensor.shape == NULL);
  dlrs_release(out);
}

/* Source and destination of a shape in memory next to guard pages, with the given order and signs
 * of strides and gap between elements; then K15 and K25 hold. */
static void guarded_copy(int32_t ndim, const int64_t *shape, size_t item, int reversed,
                         unsigned src_signs, unsigned dst_signs, int64_t gap, int behind) {
  int64_t extents[4], strides[2][4];
  DLTensor tensors[2], expected;
  size_t nbytes[2];
  char *starts[2], *copy_of;
  int side;
  int32_t dim;
  memcpy(extents, shape, (size_t)ndim * sizeof *shape);
  for (side = 0; side < 2; ++side) {
    unsigned signs = side == 0 ? src_signs : dst_signs;
    int64_t step = side == 0 ? gap : 1, low = 0, high = 0;
    for (dim = 0; dim < ndim; ++dim) {
      int32_t at = reversed && side == 1 ? dim : ndim - 1 - dim;
      int64_t reach = (extents[at] - 1) * step;
      strides[side][at] = (signs >> at & 1) != 0 ? -step : step;
      if ((signs >> at & 1) != 0) {
        low -= reach;
      } else {
        high += reach;
      }
      step *= extents[at];
    }
    nbytes[side] = (size_t)(high - low + 1) * item;
    starts[side] = (char *)(behind ? t_behind_guard(nbytes[side]) : t_before_guard(nbytes[side]));
    fill(starts[side], nbytes[side]);
    tensors[side] = t_describe(starts[side] - low * (int64_t)item,
                               t_dtype(kDLUInt, 8, (int)item), ndim, extents, strides[side]);
  }
  copy_of = (char *)malloc(nbytes[1]);
  memcpy(copy_of, starts[1], nbytes[1]);
  expected = tensors[1];
  expected.data = copy_of + ((char *)tensors[1].data - starts[1]);
  reference(&tensors[0], &expected);
  if (copy(&tensors[0], &tensors[1]) != DLRS_OK || memcmp(copy_of, starts[1], nbytes[1]) != 0) {
    t_check(0, __FILE__, __LINE__, "the copy is the reference's");
  } else {
    t_check(1, __FILE__, __LINE__, "");
  }
  free(copy_of);
  t_guards_free();
}

static void k15(void) {
  static const int64_t shape[4] = {3, 2, 5, 4};
  int32_t ndim;
  unsigned src_signs, dst_signs;
  for (ndim = 1; ndim <= 4; ++ndim) {
    for (src_signs = 0; src_signs < 1u << ndim; ++src_signs) {
      for (dst_signs = 0; dst_signs < 1u << ndim; ++dst_signs) {
        guarded_copy(ndim, shape, 4, (src_signs ^ dst_signs) & 1, src_signs, dst_signs, 1, 0);
      }
    }
  }
}

static void k25(void) {
  static const int64_t shapes[][4] = {{7, 1, 1, 1}, {33, 2, 1, 1}, {5, 17, 1, 1}, {64, 65, 1, 1},
                                      {3, 4, 5, 1}, {9, 8, 7, 2}, {1, 130, 3, 1}};
  static const size_t items[] = {1, 2, 3, 4, 8, 16};
  size_t i, j;
  int reversed, behind, gap;
  for (i = 0; i < sizeof shapes / sizeof *shapes; ++i) {
    for (j = 0; j < sizeof items / sizeof *items; ++j) {
      for (reversed = 0; reversed < 2; ++reversed) {
        for (behind = 0; behind < 2; ++behind) {
          for (gap = 1; gap <= 3; ++gap) {
            guarded_copy(4, shapes[i], items[j], reversed, behind * 5u, reversed * 10u, gap, behind);
          }
        }
      }
    }
  }
}

static void k16(void) {
  static char from[512], into[512], expected[512];
  int64_t shape[2] = {5, 6}, strides[2] = {7, 1};
  int src_off, dst_off, wrong = 0;
  for (src_off = 0; src_off < 8; ++src_off) {
    for (dst_off = 0; dst_off < 8; ++dst_off) {
      DLTensor src = t_describe(from + src_off, t_dtype(kDLFloat, 64, 1), 2, shape, strides);
      DLTensor dst = t_describe(into, t_dtype(kDLFloat, 64, 1), 2, shape, strides), model = dst;
      fill(from, sizeof from);
      fill(into, sizeof into);
      memcpy(expected, into, sizeof into);
      dst.byte_offset = (uint64_t)dst_off;
      model.byte_offset = (uint64_t)dst_off;
      model.data = expected;
      reference(&src, &model);
      wrong += copy(&src, &dst) != DLRS_OK || memcmp(into, expected, sizeof into) != 0;
    }
  }
  EQUAL(wrong, 0);
}

static void k17(void) {
  static const int items[] = {1, 2, 3, 4, 6, 8, 12, 16, 32, 100};
  static const int64_t shape[2] = {6, 5};
  int64_t big_shape[1] = {3}, big_strides[1] = {-1};
  size_t i, big = 2097120; /* 65535 lanes of 256 bits are impossible: 255 are not */
  char *memory = (char *)malloc(2 * 3 * big);
  DLTensor src, dst;
  for (i = 0; i < sizeof items / sizeof *items; ++i) {
    guarded_copy(2, shape, (size_t)items[i], 0, 0, 0, 1, 0);
    guarded_copy(2, shape, (size_t)items[i], 1, 1, 2, 2, 0);
  }
  fill(memory, 3 * big);
  src = t_describe(memory + 2 * 524280, t_dtype(kDLFloat, 64, 65535), 1, big_shape, big_strides);
  dst = t_describe(memory + 3 * big, t_dtype(kDLFloat, 64, 65535), 1, big_shape, NULL);
  WORKS(dlrs_copy_desc(&src, 0, &dst, 0, NULL, ERR));
  CHECK(memcmp(memory + 3 * big, memory + 2 * 524280, 524280) == 0);
  CHECK(memcmp(memory + 3 * big + 524280 * 2, memory, 524280) == 0);
  free(memory);
}

static unsigned bits_at(const unsigned char *bytes, int64_t bit, int width) {
  unsigned value = 0;
  int i;
  for (i = 0; i < width; ++i) value |= (unsigned)(bytes[(bit + i) / 8] >> ((bit + i) % 8) & 1) << i;
  return value;
}

/* Packed elements are copied bit by bit at any offset; their neighbours are unchanged. */
static void k18(void) {
  static const int widths[][2] = {{kDLUInt, 1}, {kDLInt, 2}, {kDLFloat4_e2m1fn, 4}, {kDLFloat6_e2m3fn, 6}};
  static const int64_t layouts[][2] = {{5, 1}, {7, 1}, {8, 1}, {1, 3}, {11, 2}};
  unsigned char from[64], into[64], before[64];
  int64_t shape[2] = {3, 5}, src_strides[2], dst_strides[2];
  size_t w, a, b;
  for (w = 0; w < 4; ++w) {
    for (a = 0; a < 5; ++a) {
      for (b = 0; b < 5; ++b) {
        int width = widths[w][1], wrong = 0;
        DLDataType dtype = t_dtype(widths[w][0], width, 1);
        DLTensor src = t_describe(from, dtype, 2, shape, src_strides);
        DLTensor dst = t_describe(into, dtype, 2, shape, dst_strides);
        unsigned char touched[512] = {0};
        int64_t i, j, k;
        memcpy(src_strides, layouts[a], sizeof src_strides);
        memcpy(dst_strides, layouts[b], sizeof dst_strides);
        fill(from, sizeof from);
        fill(into, sizeof into);
        memcpy(before, into, sizeof into);
        WORKS(dlrs_copy_desc(&src, 0, &dst, 0, NULL, ERR));
        for (i = 0; i < 3; ++i) {
          for (j = 0; j < 5; ++j) {
            int64_t s = (i * src_strides[0] + j * src_strides[1]) * width;
            int64_t d = (i * dst_strides[0] + j * dst_strides[1]) * width;
            wrong += bits_at(from, s, width) != bits_at(into, d, width);
            for (k = 0; k < width; ++k) touched[d + k] = 1;
          }
        }
        for (k = 0; k < 512; ++k) wrong += !touched[k] && bits_at(into, k, 1) != bits_at(before, k, 1);
        EQUAL(wrong, 0);
      }
    }
  }
}

static void k19(void) {
  unsigned char from[16] = {1, 2, 3}, into[16] = {0};
  int64_t shape[1] = {4};
  DLTensor src = t_describe(from, t_dtype(kDLFloat4_e2m1fn, 4, 1), 1, shape, NULL), dst = src;
  uint64_t padded = DLPACK_FLAG_BITMASK_IS_SUBBYTE_TYPE_PADDED;
  dst.data = into;
  t_watch(into, sizeof into);
  REJECTS(DTYPE_MISMATCH, 3, FLAGS, -1, dlrs_copy_desc(&src, padded, &dst, 0, NULL, ERR));
  CHECK(t_error.value == 0 && t_error.limit == (int64_t)padded);
  REJECTS(DTYPE_MISMATCH, 3, FLAGS, -1, dlrs_copy_desc(&src, 0, &dst, padded, NULL, ERR));
  CHECK(t_error.value == (int64_t)padded && t_error.limit == 0);
  t_unwatch();
  WORKS(dlrs_copy_desc(&src, padded, &dst, padded, NULL, ERR));
  CHECK(memcmp(from, into, 4) == 0 && into[4] == 0);
}

static void k20(void) {
  static const uint32_t values[] = {0x7FA00001, 0xFFC12345, 0x80000000, 0x7F800001, 0x00000001, 0xFFFFFFFF};
  uint32_t into[6];
  unsigned char bools[256], bools_into[256];
  int64_t shape[1] = {6}, strides[1] = {-1};
  DLTensor src = t_describe((void *)(uintptr_t)values, F32, 1, shape, NULL);
  DLTensor dst = t_describe(into + 5, F32, 1, shape, strides);
  int i;
  WORKS(dlrs_copy_desc(&src, 0, &dst, 0, NULL, ERR));
  for (i = 0; i < 6; ++i) EQUAL(into[5 - i], values[i]);
  for (i = 0; i < 256; ++i) bools[i] = (unsigned char)i;
  shape[0] = 256;
  src = t_describe(bools, t_dtype(kDLBool, 8, 1), 1, shape, NULL);
  dst = t_describe(bools_into + 255, t_dtype(kDLBool, 8, 1), 1, shape, strides);
  WORKS(dlrs_copy_desc(&src, 0, &dst, 0, NULL, ERR));
  for (i = 0; i < 256; ++i) EQUAL(bools_into[255 - i], i);
}

static void k21(void) {
  t_tensor good;
  DLManagedTensorVersioned *out;
  int times;
  t_make(&good);
  good.managed.flags = DLPACK_FLAG_BITMASK_READ_ONLY;
  good.managed.dl_tensor.device = t_device(kDLCUDAHost, 0);
  good.strides[0] = 1;
  good.strides[1] = 2;
  good.managed.dl_tensor.byte_offset = 0;
  for (times = 0; times < 3; ++times) {
    const DLTensor *tensor;
    if (times == 0) WORKS(dlrs_clone(&good.managed, CPU, NULL, &out, ERR));
    if (times == 1) WORKS(dlrs_to_device(&good.managed, CPU, 0, NULL, &out, ERR));
    if (times == 2) good.managed.dl_tensor.device = CPU;
    if (times == 2) WORKS(dlrs_contiguous(&good.managed, 'C', NULL, &out, ERR));
    tensor = &out->dl_tensor;
    EQUAL(out->flags, DLPACK_FLAG_BITMASK_IS_COPIED);
    EQUAL(out->version.major, 1);
    EQUAL(out->version.minor, 3);
    CHECK(tensor->strides[0] == 3 && tensor->strides[1] == 1 && tensor->byte_offset == 0);
    CHECK((uintptr_t)tensor->data % 256 == 0);
    CHECK(tensor->device.device_type == kDLCPU && tensor->device.device_id == 0);
    EQUAL(((float *)tensor->data)[1], 2);
    dlrs_release(out);
  }
}

static void k22(void) {
  float values[8] = {0, 1, 2, 3, 4, 5, 6, 7}, *dense;
  int64_t shape[2] = {3, 3}, strides[2] = {0, 1};
  DLManagedTensorVersioned managed = t_managed(t_describe(values, F32, 2, shape, strides), 0), *out;
  int i;
  WORKS(dlrs_clone(&managed, CPU, NULL, &out, ERR));
  dense = (float *)out->dl_tensor.data;
  for (i = 0; i < 9; ++i) EQUAL(dense[i], i % 3);
  dlrs_release(out);
  strides[0] = 1;
  WORKS(dlrs_clone(&managed, CPU, NULL, &out, ERR));
  dense = (float *)out->dl_tensor.data;
  for (i = 0; i < 9; ++i) EQUAL(dense[i], i / 3 + i % 3);
  EQUAL(out->dl_tensor.strides[0], 3);
  dlrs_release(out);
}

static void k26(void) {
  uint64_t room = ((uint64_t)5 << 30) + 4096;
  size_t nbytes = (size_t)room;
  int64_t shape[2] = {2, 3}, strides[2] = {(int64_t)5 << 28, 7}, dense[2] = {3, 1};
  float into[6], *memory;
  DLTensor src, dst;
  void *mapped;
  if (nbytes != room) return; /* a 32-bit address space is too small */
  mapped = mmap(NULL, nbytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  CHECK(mapped != MAP_FAILED);
  if (mapped == MAP_FAILED) return;
  memory = (float *)mapped;
  memory[14] = 2;
  memory[(int64_t)5 << 28] = 3;
  memory[((int64_t)5 << 28) + 14] = 5;
  src = t_describe(mapped, F32, 2, shape, strides);
  dst = t_describe(into, F32, 2, shape, dense);
  WORKS(dlrs_copy_desc(&src, 0, &dst, 0, NULL, ERR));
  CHECK(into[0] == 0 && into[2] == 2 && into[3] == 3 && into[5] == 5);
  into[5] = 9;
  WORKS(dlrs_copy_desc(&dst, 0, &src, 0, NULL, ERR));
  EQUAL(memory[((int64_t)5 << 28) + 14], 9);
  munmap(mapped, nbytes);
}

static void k27(void) {
  int64_t shape[2] = {2048, 2048}, from_strides[2] = {1, 2048};
  size_t nbytes = (size_t)2048 * 2048 * 4;
  uint32_t *from = (uint32_t *)malloc(nbytes), *into = (uint32_t *)calloc(1, nbytes);
  DLTensor src = t_describe(from, F32, 2, shape, from_strides);
  DLTensor dst = t_describe(into, F32, 2, shape, NULL);
  dlrs_copy_options options = DLRS_INIT(dlrs_copy_options);
  int64_t i, j;
  int wrong = 0;
  options.threads = 8;
  for (i = 0; i < 2048 * 2048; ++i) from[i] = (uint32_t)i;
  inject_threads(1);
  WORKS(dlrs_copy_desc(&src, 0, &dst, 0, &options, ERR));
  CHECK(inject_threads(0) > 0 || !inject_works());
  for (i = 0; i < 2048; ++i) {
    for (j = 0; j < 2048; ++j) wrong += into[i * 2048 + j] != (uint32_t)(j * 2048 + i);
  }
  EQUAL(wrong, 0);
  free(from);
  free(into);
}

static void k29(void) {
  uint64_t from[4] = {1, 2, 3, 4}, into[4] = {0};
  int64_t shape[1] = {4};
  DLTensor src = t_describe(from, t_dtype(kDLOpaqueHandle, 64, 1), 1, shape, NULL), dst = src;
  DLManagedTensorVersioned managed, *out;
  dlrs_copy_options options = DLRS_INIT(dlrs_copy_options);
  dst.data = into;
  managed = t_managed(src, 0);
  t_watch(into, sizeof into);
  t_result(&out);
  REJECTS(UNSUPPORTED, ANY, DTYPE_CODE, -1, dlrs_copy_desc(&src, 0, &dst, 0, NULL, ERR));
  REJECTS(UNSUPPORTED, 1, DTYPE_CODE, -1, dlrs_clone(&managed, CPU, NULL, &out, ERR));
  t_unwatch();
  options.flags = DLRS_COPY_RAW_BYTES;
  WORKS(dlrs_copy_desc(&src, 0, &dst, 0, &options, ERR));
  CHECK(memcmp(from, into, sizeof from) == 0);
  src.dtype = dst.dtype = t_dtype(99, 24, 1); /* an unknown type of 3 bytes */
  memset(into, 0, sizeof into);
  WORKS(dlrs_copy_desc(&src, 0, &dst, 0, &options, ERR));
  CHECK(memcmp(from, into, 12) == 0 && ((char *)into)[12] == 0);
}

static void k30(void) {
  /* Devices without a backend; section D has those with one. */
  static const int32_t types[] = {kDLVPI, kDLExtDev, kDLOneAPI, kDLHexagon, kDLMAIA, kDLTrn};
  t_tensor good;
  DLManagedTensorVersioned device, *out;
  size_t i;
  t_make(&good);
  device = good.managed;
  device.dl_tensor.data = t_guard();
  t_watch(&good, sizeof good);
  t_result(&out);
  for (i = 0; i < sizeof types / sizeof *types; ++i) {
    device.dl_tensor.device = t_device(types[i], 0);
    REJECTS(DEVICE_TYPE, ANY, DEVICE_TYPE, -1, dlrs_copy(&device, &good.managed, NULL, ERR));
    REJECTS(DEVICE_TYPE, ANY, DEVICE_TYPE, -1, dlrs_copy(&good.managed, &device, NULL, ERR));
    REJECTS(DEVICE_TYPE, ANY, DEVICE_TYPE, -1, dlrs_clone(&device, CPU, NULL, &out, ERR));
    REJECTS(DEVICE_TYPE, ANY, DEVICE_TYPE, -1, dlrs_to_device(&device, CPU, 0, NULL, &out, ERR));
  }
}

static void k31(void) {
  static const int32_t types[] = {kDLCUDAHost, kDLROCMHost, kDLCUDAManaged};
  t_tensor src, dst;
  size_t i;
  t_make(&src);
  for (i = 0; i < 3; ++i) {
    t_make(&dst);
    memset(dst.values, 0, sizeof dst.values);
    src.managed.dl_tensor.device = t_device(types[i], 0);
    WORKS(dlrs_copy(&src.managed, &dst.managed, NULL, ERR));
    dst.managed.dl_tensor.device = t_device(types[i], 0);
    src.managed.dl_tensor.device = CPU;
    WORKS(dlrs_copy(&src.managed, &dst.managed, NULL, ERR));
    CHECK(memcmp(src.values, dst.values, sizeof src.values) == 0);
    EQUAL(dst.managed.dl_tensor.device.device_type, types[i]);
  }
}

/* rows.inc has faults of both sides; here: the source is checked first. */
static void k02(void) {
  t_tensor src, dst;
  t_make(&src);
  t_make(&dst);
  src.shape[0] = -1;
  dst.managed.dl_tensor.ndim = -1;
  REJECTS(SHAPE_NEG, 1, SHAPE, 0, dlrs_copy(&src.managed, &dst.managed, NULL, ERR));
}

const c_row c_rows_k[] = {
    {"K01", "", k01},
    {"K02", "the source is judged before the destination", k02},
    {"K03", "", k03},
    {"K04", "", k03},
    {"K05", "", k05},
    {"K06", "", k06},
    {"K07", "", k07},
    {"K07", "undecided is rejected", k07_undecided},
    {"K08", "", k07},
    {"K09", "", k09},
    {"K10", "", k10},
    {"K11", "", k11},
    {"K11", "undecided is rejected, or copied through a temporary", k11_undecided},
    {"K12", "", k12},
    {"K13", "", k13},
    {"K14", "", k14},
    {"K15", "", k15},
    {"K16", "", k16},
    {"K17", "", k17},
    {"K18", "any phase is copied bit by bit, tail bits of the destination stay", k18},
    {"K19", "", k19},
    {"K20", "", k20},
    {"K21", "", k21},
    {"K22", "", k22},
    {"K25", "", k25},
    {"K26", "", k26},
    {"K27", "", k27},
    {"K29", "", k29},
    {"K30", "", k30},
    {"K31", "treated as reachable by the CPU; without a driver nothing is pending", k31},
    {NULL, "", NULL},
};
