/* Section K: copies on the CPU, against a copy of one element at a time. */
#include "catalogue.h"
#include "random.h"

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

static void k04(void) { /* K03, a read-only destination, is in test_pairs.c */
  t_tensor src, dst;
  t_make(&src);
  t_make(&dst);
  memset(dst.values, 0, sizeof dst.values);
  src.managed.flags = DLPACK_FLAG_BITMASK_READ_ONLY;
  dst.managed.flags = DLPACK_FLAG_BITMASK_IS_COPIED;
  WORKS(dlrs_copy(&src.managed, &dst.managed, NULL, ERR));
  CHECK(memcmp(src.values, dst.values, sizeof src.values) == 0);
  EQUAL(dst.managed.flags, DLPACK_FLAG_BITMASK_IS_COPIED);
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
  draw_bytes(memory, nbytes);
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

/* Elements of 65535 lanes, reversed. */
static void k17(void) {
  enum { ITEM = 524280 };
  int64_t shape[1] = {3}, strides[1] = {-1};
  char *memory = (char *)malloc(6 * ITEM);
  DLTensor src = t_describe(memory + 2 * ITEM, t_dtype(kDLFloat, 64, 65535), 1, shape, strides);
  DLTensor dst = t_describe(memory + 3 * ITEM, t_dtype(kDLFloat, 64, 65535), 1, shape, NULL);
  int i;
  draw_bytes(memory, 3 * ITEM);
  WORKS(dlrs_copy_desc(&src, 0, &dst, 0, NULL, ERR));
  for (i = 0; i < 3; ++i) {
    CHECK(memcmp(memory + (3 + i) * ITEM, memory + (2 - i) * ITEM, ITEM) == 0);
  }
  free(memory);
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

const c_row c_rows_k[] = {
    {"K01", "NULL on either side is refused", k01},
    {"K04", "flags of the source do not matter, and the destination keeps its own", k04},
    {"K07", "a destination that cannot be decided to be distinct is refused", k07_undecided},
    {"K11", "an overlap that cannot be decided is refused, or copied through a temporary",
     k11_undecided},
    {"K13", "without elements no data is read or written", k13},
    {"K17", "elements of 65535 lanes are copied", k17},
    {"K19", "packed is not copied to padded", k19},
    {"K21", "a copy is dense, aligned, writable and the caller's alone", k21},
    {"K27", "without threads the caller's own does all the work", k27},
    {"K29", "handles are copied as raw bytes only", k29},
    {"K30", "devices without a backend are refused, and their data not read", k30},
    {NULL, NULL, NULL},
};
