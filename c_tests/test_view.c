/* Views from C: each function once, the errors of each, steps; what their elements are and who owns
 * them is in tests/views and fuzz/src/targets/convert_chain.rs. Queries about shared memory. */
#include "harness.h"

typedef DLManagedTensorVersioned *mt;

static const int64_t shape234[3] = {2, 3, 4};

/* A tensor of 2 x 3 x 4 int32 whose values are 0, 1, ... 23. */
static mt make_base(void) {
  mt base = NULL;
  int32_t *values;
  int i;
  WORKS(dlrs_tensor_new(shape234, 3, t_dtype(kDLInt, 32, 1), CPU, NULL, &base, ERR));
  values = (int32_t *)base->dl_tensor.data;
  for (i = 0; i < 24; ++i) values[i] = i;
  return base;
}

static int32_t value_at(mt tensor, const int64_t *index) {
  const DLTensor *t = &tensor->dl_tensor;
  const char *first = (const char *)t->data + t->byte_offset;
  int64_t element = 0;
  int32_t value, dim;
  for (dim = 0; dim < t->ndim; ++dim) element += index[dim] * t->strides[dim];
  memcpy(&value, first + element * 4, 4);
  return value;
}

/* The values in row-major order are these; then releases the view. */
static void expect(mt view, int32_t ndim, const int64_t *shape, const int32_t *values, int line) {
  int64_t index[8] = {0};
  int32_t dim;
  int64_t left = 1;
  if (!t_check(view != NULL, __FILE__, line, "there is a view")) return;
  t_equal(view->dl_tensor.ndim, ndim, __FILE__, line, "ndim");
  for (dim = 0; dim < ndim; ++dim) {
    t_equal(view->dl_tensor.shape[dim], shape[dim], __FILE__, line, "extent");
    left *= shape[dim];
  }
  for (; left > 0; --left, ++values) {
    t_equal(value_at(view, index), *values, __FILE__, line, "value");
    for (dim = ndim - 1; dim >= 0 && ++index[dim] == shape[dim]; --dim) index[dim] = 0;
  }
  t_equal(view->version.major * 100 + view->version.minor, 103, __FILE__, line, "version");
  dlrs_release(view);
}

#define SHAPE(...) (const int64_t[]){__VA_ARGS__}
#define VALUES(...) (const int32_t[]){__VA_ARGS__}
#define EXPECT(view, ndim, shape, values) expect(view, ndim, shape, values, __LINE__)

/* Each function once; tests/views has chains of all of them, against lists of offsets. */
static void test_each(mt base) {
  mt v = NULL, w = NULL;
  t_context = "each";
  WORKS(dlrs_view_slice(base, 2, INT64_MAX, INT64_MIN, -2, &v, ERR));
  EXPECT(v, 3, SHAPE(2, 3, 2), VALUES(3, 1, 7, 5, 11, 9, 15, 13, 19, 17, 23, 21));
  WORKS(dlrs_view_select(base, 0, -1, &v, ERR));
  EXPECT(v, 2, SHAPE(3, 4), VALUES(12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23));
  WORKS(dlrs_view_narrow(base, 1, 1, 1, &v, ERR));
  EXPECT(v, 3, SHAPE(2, 1, 4), VALUES(4, 5, 6, 7, 16, 17, 18, 19));
  WORKS(dlrs_view_unfold(base, 2, 3, 1, &v, ERR));
  WORKS(dlrs_view_select(v, 1, 0, &w, ERR));
  EXPECT(w, 3, SHAPE(2, 2, 3), VALUES(0, 1, 2, 1, 2, 3, 12, 13, 14, 13, 14, 15));
  dlrs_release(v);
  WORKS(dlrs_view_diagonal(base, 1, 2, 1, &v, ERR));
  EXPECT(v, 2, SHAPE(2, 3), VALUES(1, 6, 11, 13, 18, 23));
  WORKS(dlrs_view_permute(base, SHAPE(2, 0, -2), 3, &v, ERR));
  EQUAL(value_at(v, SHAPE(1, 0, 2)), 9);
  dlrs_release(v);
  WORKS(dlrs_view_transpose(base, 0, -1, &v, ERR));
  EQUAL(value_at(v, SHAPE(3, 2, 1)), 23);
  dlrs_release(v);
  WORKS(dlrs_view_unsqueeze(base, 1, &v, ERR));
  EQUAL(v->dl_tensor.strides[1], 3 * 4); /* that of a dense tensor */
  WORKS(dlrs_view_squeeze(v, DLRS_ALL_AXES, &w, ERR));
  EQUAL(w->dl_tensor.ndim, 3);
  dlrs_release(w);
  dlrs_release(v);
  WORKS(dlrs_view_reshape(base, SHAPE(4, -1), 2, &v, ERR));
  EQUAL(value_at(v, SHAPE(3, 5)), 23);
  dlrs_release(v);
  WORKS(dlrs_view_expand(base, SHAPE(5, 2, -1, 4), 4, &v, ERR));
  EQUAL(value_at(v, SHAPE(4, 1, 1, 1)), 17);
  dlrs_release(v);
  WORKS(dlrs_view_as_strided(base, SHAPE(3, 3), SHAPE(-4, 5), 2, 12, &v, ERR));
  EXPECT(v, 2, SHAPE(3, 3), VALUES(12, 17, 22, 8, 13, 18, 4, 9, 14));
  WORKS(dlrs_view_bitcast(base, t_dtype(kDLUInt, 8, 1), &v, ERR));
  EQUAL(v->dl_tensor.shape[2], 16);
  dlrs_release(v);
  WORKS(dlrs_view_lanes(base, 4, &v, ERR));
  CHECK(v->dl_tensor.ndim == 2 && v->dl_tensor.dtype.lanes == 4);
  dlrs_release(v);
  WORKS(dlrs_view_read_only(base, &v, ERR));
  EQUAL(v->flags, DLPACK_FLAG_BITMASK_READ_ONLY);
  dlrs_release(v);
  WORKS(dlrs_view_flip(base, DLRS_ALL_AXES, &v, ERR));
  EQUAL(value_at(v, SHAPE(1, 2, 3)), 0);
  EQUAL(v->dl_tensor.byte_offset, 23 * 4); /* data does not move */
  CHECK(v->dl_tensor.data == base->dl_tensor.data);
  dlrs_release(v);
}

/* Strides of axes of one element, which no list of offsets shows. */
static void test_strides(mt base) {
  mt v = NULL, w = NULL;
  t_context = "strides";
  WORKS(dlrs_view_unsqueeze(base, -1, &v, ERR));
  EQUAL(v->dl_tensor.strides[3], 1);
  dlrs_release(v);
  WORKS(dlrs_view_select(base, 2, 0, &v, ERR));
  WORKS(dlrs_view_unsqueeze(v, 2, &w, ERR));
  EQUAL(w->dl_tensor.strides[2], 1);
  dlrs_release(w);
  dlrs_release(v);
  /* Unused ones that exceed 64 bits. */
  WORKS(dlrs_view_slice(base, 1, 0, 3, INT64_MAX, &v, ERR));
  CHECK(v->dl_tensor.shape[1] == 1 && v->dl_tensor.strides[1] == INT64_MAX);
  dlrs_release(v);
  WORKS(dlrs_view_slice(base, 1, 2, INT64_MIN, -INT64_MAX, &v, ERR));
  CHECK(v->dl_tensor.shape[1] == 1 && v->dl_tensor.strides[1] == INT64_MIN);
  dlrs_release(v);
}

/* Elements for which the bounded search does not decide whether they share memory. */
static void test_undecided(void) {
  int64_t strides[14], power = 1, nbytes = 1;
  mt base = NULL, v = NULL;
  int dim, times;
  t_context = "undecided";
  for (dim = 0; dim < 14; ++dim) {
    for (times = 0; times < 7; ++times) power = power * 7 % 1048573;
    strides[dim] = power;
    nbytes += power;
  }
  WORKS(dlrs_tensor_new(&nbytes, 1, t_dtype(kDLUInt, 8, 1), CPU, NULL, &base, ERR));
  WORKS(dlrs_view_as_strided(base, SHAPE(2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2), strides, 14, 0,
                             &v, ERR));
  EQUAL(v->flags, DLPACK_FLAG_BITMASK_READ_ONLY);
  dlrs_release(v);
  dlrs_release(base);
}

/* For a dtype unknown to DLPack 1.3 the size is known, which is sufficient for lanes. */
static void test_unknown_lanes(void) {
  float values[12] = {0};
  int64_t shape[2] = {3, 4};
  DLTensor bare = t_describe(values, t_dtype(200, 8, 4), 2, shape, NULL);
  mt base = NULL, v = NULL, w = NULL;
  t_context = "unknown lanes";
  WORKS(dlrs_tensor_wrap(&bare, 0, NULL, NULL, &base, ERR));
  WORKS(dlrs_view_lanes(base, 1, &v, ERR));
  EQUAL(v->dl_tensor.ndim, 3);
  EQUAL(v->dl_tensor.shape[2], 4);
  EQUAL(v->dl_tensor.strides[0], 16);
  WORKS(dlrs_view_lanes(v, 4, &w, ERR));
  EQUAL(w->dl_tensor.ndim, 2);
  EQUAL(w->dl_tensor.dtype.code, 200);
  EQUAL(w->dl_tensor.dtype.lanes, 4);
  EQUAL(w->dl_tensor.strides[0], 4);
  dlrs_release(w);
  dlrs_release(v);
  REJECTS(DTYPE_CODE, 2, NONE, -1, dlrs_view_bitcast(base, bare.dtype, &v, ERR));
  dlrs_release(base);
}

static void test_form(mt base) {
  mt v = NULL, w = NULL;
  DLManagedTensorVersioned metal;
  DLTensor bare = base->dl_tensor;
  t_context = "form";
  WORKS(dlrs_view_select(base, 1, 2, &v, ERR));
  WORKS(dlrs_view_normalize(v, DLRS_NORMALIZE_OFFSET, &w, ERR));
  CHECK((char *)w->dl_tensor.data == (char *)base->dl_tensor.data + 32);
  EQUAL(w->dl_tensor.byte_offset, 0);
  dlrs_release(w);
  dlrs_release(v);
  REJECTS(BAD_ARG, 2, NONE, -1, dlrs_view_normalize(base, 8, &w, ERR));
  /* A handle has views through byte_offset alone. */
  bare.device = t_device(kDLMetal, 0);
  bare.byte_offset = 64;
  metal = t_managed(bare, 0);
  REJECTS(FOREIGN, 1, NONE, -1, dlrs_view_select(&metal, 0, 1, &w, ERR));
  WORKS(dlrs_tensor_wrap(&bare, 0, NULL, NULL, &v, ERR));
  WORKS(dlrs_view_select(v, 0, 1, &w, ERR));
  CHECK(w->dl_tensor.data == base->dl_tensor.data);
  EQUAL(w->dl_tensor.byte_offset, 64 + 48);
  dlrs_release(w);
  REJECTS(UNSUPPORTED, 1, DEVICE_TYPE, -1, dlrs_view_normalize(v, DLRS_NORMALIZE_OFFSET, &w, ERR));
  dlrs_release(v);
  /* Where the offset would be negative, data is adjusted; a handle cannot be. */
  bare.byte_offset = 0;
  bare.data = (char *)base->dl_tensor.data + 23 * 4;
  bare.strides = (int64_t[]){-12, -4, -1};
  bare.device = CPU;
  WORKS(dlrs_tensor_wrap(&bare, 0, NULL, NULL, &v, ERR));
  WORKS(dlrs_view_flip(v, DLRS_ALL_AXES, &w, ERR));
  CHECK(w->dl_tensor.data == base->dl_tensor.data);
  EQUAL(w->dl_tensor.byte_offset, 0);
  dlrs_release(w);
  dlrs_release(v);
  bare.device = t_device(kDLMetal, 0);
  WORKS(dlrs_tensor_wrap(&bare, 0, NULL, NULL, &v, ERR));
  REJECTS(OFFSET, 1, BYTE_OFFSET, -1, dlrs_view_flip(v, 0, &w, ERR));
  dlrs_release(v);
}

static void test_refusals(mt base) {
  mt v = NULL, turned = NULL, empty = NULL;
  DLManagedTensorVersioned other = *base;
  const int64_t big[2] = {INT64_C(1) << 40, INT64_C(1) << 40};
  t_context = "refusals";
  REJECTS(BAD_ARG, 2, NONE, -1, dlrs_view_slice(base, 3, 0, 1, 1, &v, ERR));
  REJECTS(BAD_ARG, 2, NONE, -1, dlrs_view_slice(base, INT32_MIN, 0, 1, 1, &v, ERR));
  REJECTS(BAD_ARG, 5, NONE, -1, dlrs_view_slice(base, 0, 0, 1, 0, &v, ERR));
  WORKS(dlrs_view_slice(base, 0, INT64_MIN, INT64_MAX, INT64_MAX, &v, ERR));
  EQUAL(v->dl_tensor.shape[0], 1);
  dlrs_release(v);
  WORKS(dlrs_view_slice(base, 0, INT64_MAX, INT64_MIN, INT64_MIN, &v, ERR));
  EQUAL(v->dl_tensor.shape[0], 1);
  dlrs_release(v);
  v = NULL;
  REJECTS(BAD_ARG, 2, NONE, -1, dlrs_view_unsqueeze(base, 4, &v, ERR));
  CHECK(t_error.value == 4 && t_error.limit == 3);
  REJECTS(BAD_ARG, 2, NONE, -1, dlrs_view_select(base, 3, 0, &v, ERR));
  CHECK(t_error.value == 3 && t_error.limit == 2);
  REJECTS(BAD_ARG, 3, NONE, 0, dlrs_view_select(base, 0, 2, &v, ERR));
  CHECK(t_error.value == 2 && t_error.limit == 1);
  REJECTS(BAD_ARG, 3, NONE, 0, dlrs_view_select(base, 0, INT64_MIN, &v, ERR));
  REJECTS(BAD_ARG, 3, NONE, 2, dlrs_view_narrow(base, 2, 5, 0, &v, ERR));
  REJECTS(BAD_ARG, 4, NONE, 2, dlrs_view_narrow(base, 2, 1, 4, &v, ERR));
  EQUAL(t_error.limit, 3);
  REJECTS(BAD_ARG, 4, NONE, 2, dlrs_view_narrow(base, 2, 1, INT64_MIN, &v, ERR));
  REJECTS(BAD_ARG, 2, NONE, -1, dlrs_view_flip(base, -4, &v, ERR));
  REJECTS(BAD_ARG, 3, NONE, 2, dlrs_view_unfold(base, 2, 5, 1, &v, ERR));
  REJECTS(BAD_ARG, 4, NONE, -1, dlrs_view_unfold(base, 2, 2, 0, &v, ERR));
  REJECTS(BAD_ARG, 4, NONE, -1, dlrs_view_unfold(base, 2, 2, INT64_MIN, &v, ERR));
  REJECTS(BAD_ARG, 3, NONE, -1, dlrs_view_diagonal(base, 1, -2, 0, &v, ERR));
  REJECTS(BAD_ARG, 3, NONE, -1, dlrs_view_permute(base, SHAPE(0, 1), 2, &v, ERR));
  REJECTS(BAD_ARG, 2, NONE, 2, dlrs_view_permute(base, SHAPE(0, 1, -2), 3, &v, ERR));
  REJECTS(BAD_ARG, 2, NONE, 1, dlrs_view_permute(base, SHAPE(0, INT64_MIN, 2), 3, &v, ERR));
  REJECTS(BAD_ARG, 3, NONE, -1, dlrs_view_transpose(base, 0, 3, &v, ERR));
  REJECTS(SHAPE_MISMATCH, 1, SHAPE, 0, dlrs_view_squeeze(base, 0, &v, ERR));
  REJECTS(NDIM, 3, NONE, -1, dlrs_view_reshape(base, shape234, 65, &v, ERR));
  REJECTS(NDIM, 3, NONE, -1, dlrs_view_reshape(base, shape234, INT32_MIN, &v, ERR));
  REJECTS(SHAPE_MISMATCH, 2, NONE, -1, dlrs_view_reshape(base, SHAPE(5, -1), 2, &v, ERR));
  WORKS(dlrs_view_transpose(base, 0, 1, &turned, ERR));
  REJECTS(NOT_VIEWABLE, 2, NONE, 0, dlrs_view_reshape(turned, SHAPE(6, 4), 2, &v, ERR));
  dlrs_release(turned);
  WORKS(dlrs_view_narrow(base, 0, 0, 0, &empty, ERR));
  REJECTS(BAD_ARG, 2, NONE, 1, dlrs_view_reshape(empty, SHAPE(0, -1), 2, &v, ERR));
  EQUAL(t_error.value, -1);
  dlrs_release(empty);
  REJECTS(BAD_ARG, 2, NONE, 1, dlrs_view_reshape(base, SHAPE(-1, -1), 2, &v, ERR));
  EQUAL(t_error.value, -1);
  REJECTS(SHAPE_NEG, 2, NONE, 1, dlrs_view_reshape(base, SHAPE(-1, -2), 2, &v, ERR));
  REJECTS(SIZE_OVERFLOW, 2, NONE, 1, dlrs_view_reshape(base, big, 2, &v, ERR));
  REJECTS(SHAPE_MISMATCH, 2, NONE, 0, dlrs_view_expand(base, SHAPE(4, 3, 4), 3, &v, ERR));
  REJECTS(SHAPE_MISMATCH, 3, NONE, -1, dlrs_view_expand(base, SHAPE(3, 4), 2, &v, ERR));
  REJECTS(SIZE_OVERFLOW, 1, SHAPE, ANY,
          dlrs_view_expand(base, SHAPE(INT64_C(1) << 60, 2, 3, 4), 4, &v, ERR));
  REJECTS(OUT_OF_BOUNDS, 1, NONE, -1,
          dlrs_view_as_strided(base, SHAPE(25), SHAPE(1), 1, 0, &v, ERR));
  EQUAL(t_error.value, 100);
  EQUAL(t_error.limit, 96);
  REJECTS(OUT_OF_BOUNDS, 1, NONE, -1,
          dlrs_view_as_strided(base, SHAPE(1), SHAPE(1), 1, -1, &v, ERR));
  CHECK(t_error.value == -4 && t_error.limit == 0);
  REJECTS(OUT_OF_BOUNDS, 1, NONE, -1,
          dlrs_view_as_strided(base, SHAPE(1), SHAPE(1), 1, INT64_MIN, &v, ERR));
  CHECK(t_error.value == INT64_MIN && t_error.limit == 0);
  REJECTS(OUT_OF_BOUNDS, 1, NONE, -1,
          dlrs_view_as_strided(base, SHAPE(2), SHAPE(INT64_MAX), 1, 0, &v, ERR));
  CHECK(t_error.value == INT64_MAX && t_error.limit == 96);
  REJECTS(EXTENT_OVERFLOW, 3, NONE, 0,
          dlrs_view_as_strided(base, SHAPE(3), SHAPE(INT64_MIN), 1, 0, &v, ERR));
  /* 2^67 elements, which overflow 64 bits. */
  REJECTS(EXTENT_OVERFLOW, 3, NONE, 0,
          dlrs_view_as_strided(base, SHAPE((INT64_C(1) << 40) + 1), SHAPE(1 << 27), 1, 0, &v, ERR));
  REJECTS(DTYPE_BITS, 2, NONE, -1, dlrs_view_bitcast(base, t_dtype(kDLFloat, 24, 1), &v, ERR));
  REJECTS(DTYPE_MISMATCH, 2, NONE, -1,
          dlrs_view_bitcast(base, t_dtype(kDLOpaqueHandle, 64, 1), &v, ERR));
  REJECTS(NOT_VIEWABLE, 1, STRIDES, 1, dlrs_view_bitcast(base, t_dtype(kDLFloat, 32, 3), &v, ERR));
  REJECTS(BAD_ARG, 2, NONE, -1, dlrs_view_lanes(base, 0, &v, ERR));
  REJECTS(SHAPE_MISMATCH, 2, NONE, 2, dlrs_view_lanes(base, 3, &v, ERR));
  other.deleter = t_delete_versioned;
  REJECTS(FOREIGN, 1, NONE, -1, dlrs_view_flip(&other, 0, &v, ERR));
  other.version.major = 2;
  REJECTS(VERSION, 1, VERSION, -1, dlrs_view_flip(&other, 0, &v, ERR));
}

/* 2^52 elements of 1 MiB: 2^72 bytes, which overflow 64 bits. */
static void test_far(void) {
  const int64_t shape = 4097, stride = INT64_C(1) << 40;
  DLTensor bare = t_describe((void *)4096, t_dtype(kDLComplex, 128, 65535), 0, NULL, NULL);
  mt base = NULL, v = NULL;
  t_context = "far";
  WORKS(dlrs_tensor_wrap(&bare, 0, NULL, NULL, &base, ERR));
  REJECTS(OUT_OF_BOUNDS, ANY, ANY, ANY, dlrs_view_as_strided(base, &shape, &stride, 1, 0, &v, ERR));
  dlrs_release(base);
}

static void test_limits(void) {
  int64_t ones[64], odd[64];
  float value = 0;
  DLTensor bare;
  mt base = NULL, v = NULL, w = NULL;
  int i;
  t_context = "limits";
  for (i = 0; i < 64; ++i) ones[i] = 1, odd[i] = i % 2 ? INT64_MIN : INT64_MAX;
  WORKS(dlrs_tensor_new(ones, 64, F32, CPU, NULL, &base, ERR));
  REJECTS(NDIM, 1, NONE, -1, dlrs_view_unsqueeze(base, 0, &v, ERR));
  EQUAL(t_error.value, 65);
  REJECTS(NDIM, 1, NONE, -1, dlrs_view_unfold(base, 0, 1, 1, &v, ERR));
  REJECTS(NDIM, 1, NONE, -1, dlrs_view_lanes(base, 1, &v, ERR));
  WORKS(dlrs_view_squeeze(base, DLRS_ALL_AXES, &v, ERR));
  EQUAL(v->dl_tensor.ndim, 0);
  CHECK(v->dl_tensor.shape == NULL && v->dl_tensor.strides == NULL);
  dlrs_release(v);
  WORKS(dlrs_view_reshape(base, NULL, 0, &v, ERR));
  EQUAL(v->dl_tensor.ndim, 0);
  REJECTS(NOT_VIEWABLE, 2, NONE, -1,
          dlrs_view_bitcast(v, t_dtype(kDLUInt, 8, 1), &w, ERR)); /* 0-d */
  dlrs_release(v);
  dlrs_release(base);
  /* Strides of extents of 1 are never used, whatever they are. */
  bare = t_describe(&value, F32, 64, ones, odd);
  WORKS(dlrs_tensor_wrap(&bare, 0, NULL, NULL, &base, ERR));
  WORKS(dlrs_view_flip(base, DLRS_ALL_AXES, &v, ERR));
  WORKS(dlrs_view_diagonal(v, 0, 1, 0, &w, ERR));
  EQUAL(w->dl_tensor.ndim, 63);
  EQUAL(w->dl_tensor.byte_offset, 0);
  dlrs_release(w);
  WORKS(dlrs_view_normalize(v, DLRS_NORMALIZE_STRIDES, &w, ERR));
  EQUAL(w->dl_tensor.strides[63], 1);
  dlrs_release(w);
  dlrs_release(v);
  dlrs_release(base);
}

/* Extents of 0 to 3 in every order of four: strides without effect become compact, others stay. */
static void test_unused_strides(void) {
  float value[4] = {0};
  int number, dim;
  t_context = "unused strides";
  for (number = 0; number < 256; ++number) {
    int64_t shape[4], strides[4], compact = 1;
    DLTensor bare = t_describe(value, F32, 4, shape, strides);
    mt base = NULL, v = NULL;
    int empty = 0;
    for (dim = 0; dim < 4; ++dim) {
      shape[dim] = number >> 2 * dim & 3;
      empty |= shape[dim] == 0;
      strides[dim] = shape[dim] > 1 ? 0 : 777;
    }
    WORKS(dlrs_tensor_wrap(&bare, 0, NULL, NULL, &base, ERR));
    WORKS(dlrs_view_normalize(base, DLRS_NORMALIZE_STRIDES, &v, ERR));
    for (dim = 3; dim >= 0; --dim) {
      EQUAL(v->dl_tensor.strides[dim], empty || shape[dim] == 1 ? compact : 0);
      compact *= shape[dim] > 1 ? shape[dim] : 1;
    }
    dlrs_release(v);
    dlrs_release(base);
  }
}

static void test_steps(mt base) {
  dlrs_view_step steps[3];
  mt v = NULL;
  t_context = "steps";
  memset(steps, 0, sizeof steps);
  steps[0].struct_size = steps[1].struct_size = steps[2].struct_size = sizeof *steps;
  steps[0].op = DLRS_VIEW_SELECT; /* base[1, ::-1, None] */
  steps[0].start = 1;
  steps[1].op = DLRS_VIEW_FLIP;
  steps[2].op = DLRS_VIEW_UNSQUEEZE;
  steps[2].axis = 1;
  WORKS(dlrs_view_apply(base, steps, 3, &v, ERR));
  EXPECT(v, 3, SHAPE(3, 1, 4), VALUES(20, 21, 22, 23, 16, 17, 18, 19, 12, 13, 14, 15));
  EQUAL(dlrs_ref_count(base), 1);
  WORKS(dlrs_view_apply(base, NULL, 0, &v, ERR));
  EQUAL(v->dl_tensor.ndim, 3);
  dlrs_release(v);
  v = NULL;
  REJECTS(NULL_ARG, 2, NONE, -1, dlrs_view_apply(base, NULL, 1, &v, ERR));
  steps[2].axis = 9;
  REJECTS(BAD_ARG, 2, NONE, 2, dlrs_view_apply(base, steps, 3, &v, ERR));
  steps[2].op = 0;
  REJECTS(BAD_ARG, 2, NONE, 2, dlrs_view_apply(base, steps, 3, &v, ERR));
  steps[1].struct_size = 8;
  REJECTS(STRUCT_SIZE, 2, STRUCT_SIZE, 1, dlrs_view_apply(base, steps, 3, &v, ERR));
  steps[1].struct_size = sizeof *steps + 8;
  REJECTS(STRUCT_SIZE, 2, STRUCT_SIZE, 1, dlrs_view_apply(base, steps, 3, &v, ERR));
}

static void test_packed(void) {
  mt base = NULL, v = NULL, w = NULL;
  t_context = "packed";
  WORKS(dlrs_tensor_new(SHAPE(3, 4), 2, t_dtype(kDLFloat4_e2m1fn, 4, 1), CPU, NULL, &base, ERR));
  REJECTS(SUBBYTE, 1, NONE, -1, dlrs_view_narrow(base, 1, 1, 2, &v, ERR));
  /* The other half of a byte belongs to another element. */
  WORKS(dlrs_view_narrow(base, 1, 0, 3, &v, ERR));
  REJECTS(OUT_OF_BOUNDS, 1, NONE, -1, dlrs_view_as_strided(v, SHAPE(12), SHAPE(1), 1, 0, &w, ERR));
  CHECK(t_error.value == 48 && t_error.limit == 44 && strstr(t_error.message, "bits") != NULL);
  WORKS(dlrs_view_as_strided(v, SHAPE(11), SHAPE(1), 1, 0, &w, ERR));
  dlrs_release(w);
  dlrs_release(v);
  dlrs_release(base);
}

/* What fuzz/src/targets/overlap.rs does not ask. */
static void test_queries(mt base) {
  mt none = NULL;
  const DLTensor *all = &base->dl_tensor;
  int32_t answer = 9;
  int64_t strides[3];
  DLTensor handle = *all;
  t_context = "questions";
  WORKS(dlrs_view_slice(base, 2, 1, 1, 1, &none, ERR)); /* no element, inside the other */
  none->dl_tensor.data = all->data;
  WORKS(dlrs_may_overlap(&none->dl_tensor, 0, all, 0, &answer, ERR));
  EQUAL(answer, DLRS_NO);
  WORKS(dlrs_may_overlap(all, 0, &none->dl_tensor, 0, &answer, ERR));
  EQUAL(answer, DLRS_NO);
  dlrs_release(none);
  handle.device = t_device(kDLMetal, 0);
  WORKS(dlrs_may_overlap(all, 0, &handle, 0, &answer, ERR));
  EQUAL(answer, DLRS_UNDECIDED);
  REJECTS(NULL_ARG, 1, NONE, -1, dlrs_is_unique(NULL, 0, &answer, ERR));
  REJECTS(NULL_ARG, 3, NONE, -1, dlrs_may_overlap(all, 0, NULL, 0, &answer, ERR));
  WORKS(dlrs_compact_strides(shape234, 3, 'C', strides, ERR));
  EQUAL(strides[0] * 100 + strides[1] * 10 + strides[2], 1241);
  WORKS(dlrs_compact_strides(shape234, 3, 'F', strides, ERR));
  EQUAL(strides[0] * 100 + strides[1] * 10 + strides[2], 126);
  REJECTS(BAD_ARG, 3, NONE, -1, dlrs_compact_strides(shape234, 3, 'K', strides, ERR));
  REJECTS(NULL_ARG, 4, NONE, -1, dlrs_compact_strides(shape234, 3, 'C', NULL, ERR));
  REJECTS(SIZE_OVERFLOW, 1, SHAPE, 1,
          dlrs_compact_strides(SHAPE(INT64_MAX, INT64_MAX), 2, 'C', strides, ERR));
}

/* NULL for the base and for out, in every function; `out` is argument `last`. */
static void test_null(mt base) {
  mt v = NULL;
  t_context = "NULL";
#define NULLS(last, function, ...)                                    \
  REJECTS(NULL_ARG, 1, NONE, -1, function(NULL, __VA_ARGS__, &v, ERR)); \
  REJECTS(NULL_ARG, last, NONE, -1, function(base, __VA_ARGS__, NULL, ERR))
  NULLS(4, dlrs_view_apply, NULL, 0);
  NULLS(6, dlrs_view_slice, 0, 0, 1, 1);
  NULLS(4, dlrs_view_select, 0, 0);
  NULLS(5, dlrs_view_narrow, 0, 0, 1);
  NULLS(3, dlrs_view_flip, 0);
  NULLS(5, dlrs_view_unfold, 0, 1, 1);
  NULLS(5, dlrs_view_diagonal, 0, 1, 0);
  NULLS(4, dlrs_view_permute, shape234, 3);
  NULLS(4, dlrs_view_transpose, 0, 1);
  NULLS(3, dlrs_view_squeeze, 0);
  NULLS(3, dlrs_view_unsqueeze, 0);
  NULLS(6, dlrs_view_as_strided, shape234, shape234, 3, 0);
  NULLS(4, dlrs_view_reshape, shape234, 3);
  NULLS(4, dlrs_view_expand, shape234, 3);
  NULLS(3, dlrs_view_bitcast, F32);
  NULLS(3, dlrs_view_lanes, 1);
  NULLS(3, dlrs_view_normalize, 0);
  EQUAL(dlrs_view_flip(NULL, 0, NULL, NULL), DLRS_NULL_ARG);
  REJECTS(NULL_ARG, 1, NONE, -1, dlrs_view_read_only(NULL, &v, ERR));
  REJECTS(SHAPE_NULL, 2, NONE, -1, dlrs_view_reshape(base, NULL, 3, &v, ERR));
  REJECTS(SHAPE_NULL, 2, NONE, -1, dlrs_view_expand(base, NULL, 3, &v, ERR));
  REJECTS(SHAPE_NULL, 2, NONE, -1, dlrs_view_permute(base, NULL, 3, &v, ERR));
  REJECTS(SHAPE_NULL, 3, NONE, -1, dlrs_view_as_strided(base, shape234, NULL, 3, 0, &v, ERR));
}

int main(void) {
  mt base = make_base();
  test_each(base);
  test_strides(base);
  test_undecided();
  test_unknown_lanes();
  test_form(base);
  test_refusals(base);
  test_steps(base);
  test_queries(base);
  test_null(base);
  t_context = "";
  EQUAL(dlrs_ref_count(base), 1);
  dlrs_release(base);
  test_far();
  test_limits();
  test_unused_strides();
  test_packed();
  return t_close();
}
