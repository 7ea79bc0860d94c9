/* Section W: allocation and wrapping. */
#include <limits.h>

#include "catalogue.h"

static dlrs_alloc_options options_of(uint32_t align_bytes) {
  dlrs_alloc_options options = DLRS_INIT(dlrs_alloc_options);
  options.align_bytes = align_bytes;
  return options;
}

static void w01(void) {
  t_tensor good;
  t_make(&good);
  long calls = inject_calls();
  REJECTS(NULL_ARG, 6, NONE, -1, dlrs_tensor_new(good.shape, 2, F32, CPU, NULL, NULL, ERR));
  REJECTS(NULL_ARG, 3, NONE, -1, dlrs_tensor_new_like(&good.managed.dl_tensor, NULL, NULL, ERR));
  REJECTS(NULL_ARG, 5, NONE, -1,
          dlrs_tensor_wrap(&good.managed.dl_tensor, 0, t_count, NULL, NULL, ERR));
  EQUAL(inject_calls(), calls);
}

static void w02(void) {
  int64_t shape[65] = {2, -3}, huge[2] = {INT64_MAX, INT64_MAX};
  DLManagedTensorVersioned *out;
  t_result(&out);
  REJECTS(SHAPE_NULL, 1, NONE, -1, dlrs_tensor_new(NULL, 2, F32, CPU, NULL, &out, ERR));
  REJECTS(SHAPE_NEG, 1, SHAPE, 1, dlrs_tensor_new(shape, 2, F32, CPU, NULL, &out, ERR));
  CHECK(strncmp(t_error.message, "dlrs_tensor_new: shape[1]: extent is negative", 45) == 0);
  REJECTS(SIZE_OVERFLOW, 1, SHAPE, 1, dlrs_tensor_new(huge, 2, F32, CPU, NULL, &out, ERR));
  REJECTS(NDIM, 2, NONE, -1, dlrs_tensor_new(shape, 65, F32, CPU, NULL, &out, ERR));
  REJECTS(NDIM, 2, NONE, -1, dlrs_tensor_new(shape, INT_MIN, F32, CPU, NULL, &out, ERR));
  WORKS(dlrs_tensor_new(shape, 1, F32, CPU, NULL, &out, ERR));
  dlrs_release(out);
}

static void w03(void) {
  static const int64_t sizes[] = {INT64_MAX, INT64_MAX - 63, INT64_MAX - 4096, (int64_t)1 << 62};
  DLManagedTensorVersioned *out;
  dlrs_alloc_options wide = options_of(1u << 30);
  int64_t shape[2] = {1, 0};
  size_t i;
  t_result(&out);
  for (i = 0; i < sizeof sizes / sizeof *sizes; ++i) {
    int32_t status;
    shape[0] = sizes[i];
    status = dlrs_tensor_new(shape, 1, t_dtype(kDLInt, 8, 1), CPU, NULL, &out, NULL);
    CHECK(status == DLRS_SIZE_OVERFLOW || status == DLRS_NOMEM);
    status = dlrs_tensor_new(shape, 1, t_dtype(kDLInt, 8, 1), CPU, &wide, &out, NULL);
    CHECK(status == DLRS_SIZE_OVERFLOW || status == DLRS_NOMEM);
  }
  shape[0] = (int64_t)1 << 58; /* 2^64 - 64 bytes: wraps with padding for alignment */
  REJECTS(SIZE_OVERFLOW, ANY, SHAPE, -1,
          dlrs_tensor_new(shape, 1, t_dtype(kDLInt, 64, 8), CPU, NULL, &out, ERR));
  shape[0] = (int64_t)1 << 62;
  REFUSED(sizeof(void *) == 4 ? DLRS_SIZE_OVERFLOW : DLRS_NOMEM, ANY, ANY, -1,
          dlrs_tensor_new(shape, 1, t_dtype(kDLInt, 8, 1), CPU, NULL, &out, ERR));
}

static void w04(void) {
  static const uint32_t wrong[] = {3, 100, (1u << 30) + 1, 1u << 31, UINT32_MAX};
  int64_t shape[1] = {4};
  DLManagedTensorVersioned *out;
  dlrs_alloc_options options = options_of(0);
  size_t i;
  t_result(&out);
  for (i = 0; i < sizeof wrong / sizeof *wrong; ++i) {
    options.align_bytes = wrong[i];
    REJECTS(BAD_ARG, 5, OPTION, -1, dlrs_tensor_new(shape, 1, F32, CPU, &options, &out, ERR));
  }
  for (i = 0; i <= 20; ++i) {
    options.align_bytes = 1u << i;
    WORKS(dlrs_tensor_new(shape, 1, F32, CPU, &options, &out, ERR));
    CHECK((uintptr_t)out->dl_tensor.data % options.align_bytes == 0);
    dlrs_release(out);
  }
  options.align_bytes = 0;
  WORKS(dlrs_tensor_new(shape, 1, F32, CPU, &options, &out, ERR));
  CHECK((uintptr_t)out->dl_tensor.data % 256 == 0);
  dlrs_release(out);
}

static void w05(void) {
  DLManagedTensorVersioned *out;
  int64_t shape[1];
  int wrong = 0;
  for (shape[0] = 1; shape[0] <= 4097; ++shape[0]) {
    wrong += dlrs_tensor_new(shape, 1, t_dtype(kDLUInt, 8, 1), CPU, NULL, &out, NULL) != DLRS_OK;
    wrong += (uintptr_t)out->dl_tensor.data % 256 != 0 || out->dl_tensor.byte_offset != 0;
    memset(out->dl_tensor.data, 0xEE, (size_t)shape[0]); /* valgrind and the heap's checks */
    dlrs_release(out);
  }
  EQUAL(wrong, 0);
}

static void w06(void) {
  DLManagedTensorVersioned *out;
  int64_t shape[3] = {3, 0, INT64_MAX};
  WORKS(dlrs_tensor_new(shape, 3, F32, CPU, NULL, &out, ERR));
  CHECK(out->dl_tensor.data == NULL && out->dl_tensor.byte_offset == 0);
  CHECK(out->dl_tensor.shape != shape && out->dl_tensor.shape[2] == INT64_MAX);
  out->deleter(out);
  WORKS(dlrs_tensor_new(NULL, 0, F32, CPU, NULL, &out, ERR));
  CHECK(out->dl_tensor.data != NULL && out->dl_tensor.shape == NULL);
  out->deleter(out);
}

static void w07(void) {
  int64_t shape[1] = {4};
  DLManagedTensorVersioned *out;
  long calls = inject_calls();
  t_result(&out);
  REJECTS(DTYPE_CODE, 3, DTYPE_CODE, -1,
          dlrs_tensor_new(shape, 1, t_dtype(22, 32, 1), CPU, NULL, &out, ERR));
  REJECTS(DTYPE_BITS, 3, DTYPE_BITS, -1,
          dlrs_tensor_new(shape, 1, t_dtype(2, 31, 1), CPU, NULL, &out, ERR));
  REJECTS(DTYPE_LANES, 3, DTYPE_LANES, -1,
          dlrs_tensor_new(shape, 1, t_dtype(2, 32, 0), CPU, NULL, &out, ERR));
  REJECTS(DEVICE_TYPE, 4, DEVICE_TYPE, -1,
          dlrs_tensor_new(shape, 1, F32, t_device(99, 0), NULL, &out, ERR));
  REJECTS(DEVICE_ID, 4, DEVICE_ID, -1,
          dlrs_tensor_new(shape, 1, F32, t_device(kDLCPU, 1), NULL, &out, ERR));
  REJECTS(DEVICE_TYPE, 4, DEVICE_TYPE, -1,
          dlrs_tensor_new(shape, 1, F32, t_device(kDLVulkan, 0), NULL, &out, ERR));
  CHECK(strncmp(t_error.message, "dlrs_tensor_new: device.device_type: ", 37) == 0);
  EQUAL(inject_calls(), calls);
}

static void w08(void) {
  static const int bits[] = {0, 1, 3, 40, 63};
  int64_t shape[1] = {4};
  t_tensor good;
  DLManagedTensorVersioned *out;
  dlrs_alloc_options options = options_of(0);
  int freed = 0;
  size_t i;
  t_make(&good);
  t_watch(&freed, sizeof freed);
  t_result(&out);
  for (i = 0; i < sizeof bits / sizeof *bits; ++i) {
    options.flags = (uint64_t)1 << bits[i];
    REJECTS(FLAGS, 5, FLAGS, -1, dlrs_tensor_new(shape, 1, F32, CPU, &options, &out, ERR));
    if (bits[i] < 3) continue;
    REJECTS(FLAGS, 2, FLAGS, -1,
            dlrs_tensor_wrap(&good.managed.dl_tensor, options.flags, t_count, &freed, &out, ERR));
  }
}

static void w09(void) {
  t_tensor good;
  DLManagedTensorVersioned *out;
  t_make(&good);
  WORKS(dlrs_tensor_wrap(&good.managed.dl_tensor, 0, NULL, &good, &out, ERR));
  CHECK(out->deleter != NULL && out->dl_tensor.data == good.values);
  out->deleter(out);
  EQUAL(good.values[5], 5);
}

static void w10(void) {
  t_tensor good;
  DLManagedTensorVersioned *out;
  int freed = 0;
  t_make(&good);
  good.shape[0] = -1;
  t_watch(&good, sizeof good);
  t_watch(&freed, sizeof freed);
  t_result(&out);
  REJECTS(SHAPE_NEG, 1, SHAPE, 0,
          dlrs_tensor_wrap(&good.managed.dl_tensor, 0, t_count, &freed, &out, ERR));
  inject_arm(1, 0);
  t_unwatch();
  good.shape[0] = 2;
  t_result(&out);
  if (inject_works()) {
    REJECTS(NOMEM, ANY, ANY, -1,
            dlrs_tensor_wrap(&good.managed.dl_tensor, 0, t_count, &freed, &out, ERR));
  }
  inject_disarm();
  EQUAL(freed, 0);
  WORKS(dlrs_tensor_wrap(&good.managed.dl_tensor, 0, t_count, &freed, &out, ERR));
  dlrs_release(out);
  EQUAL(freed, 1);
}

static void w11(void) {
  t_tensor good;
  DLManagedTensorVersioned *out;
  long deleted = t_deleted;
  t_make(&good);
  WORKS(dlrs_tensor_wrap(&good.managed.dl_tensor, 0, t_count, NULL, &out, ERR));
  dlrs_release(out); /* t_count would dereference a context that is not NULL */
  EQUAL(t_deleted, deleted + 1);
}

static void w13(void) {
  t_tensor good;
  DLManagedTensorVersioned *out;
  uint64_t flags;
  t_make(&good);
  good.managed.dl_tensor.strides = NULL;
  good.managed.dl_tensor.byte_offset = 4;
  for (flags = 0; flags < 8; ++flags) {
    WORKS(dlrs_tensor_wrap(&good.managed.dl_tensor, flags, NULL, NULL, &out, ERR));
    EQUAL(out->version.major, 1);
    EQUAL(out->version.minor, 3);
    EQUAL(out->flags, flags & ~(uint64_t)DLPACK_FLAG_BITMASK_IS_SUBBYTE_TYPE_PADDED);
    CHECK(out->dl_tensor.strides[0] == 3 && out->dl_tensor.strides[1] == 1);
    EQUAL(out->dl_tensor.byte_offset, 4);
    dlrs_release(out);
  }
}

static void w16(void) {
  int64_t shape[2] = {2, 3};
  DLTensor prototype = t_describe(t_guard(), F32, 2, shape, (int64_t *)t_guard());
  DLManagedTensorVersioned *out;
  prototype.byte_offset = UINT64_MAX;
  WORKS(dlrs_tensor_new_like(&prototype, NULL, &out, ERR));
  CHECK(out->dl_tensor.shape[1] == 3 && out->dl_tensor.strides[0] == 3);
  dlrs_release(out);
  prototype.strides = (int64_t *)((char *)prototype.strides + 1);
  WORKS(dlrs_tensor_new_like(&prototype, NULL, &out, ERR));
  dlrs_release(out);
}

static void w17(void) {
  int64_t shape[2] = {2, 3};
  DLManagedTensorVersioned *out;
  t_source pool = {0, 0, 0, 0, 0, 0};
  dlrs_allocator allocator = t_allocator(&pool), broken = allocator;
  dlrs_alloc_options options = options_of(64);
  options.allocator = &allocator;
  t_result(&out);
  pool.gives_null = 1;
  REJECTS(NOMEM, ANY, ANY, -1, dlrs_tensor_new(shape, 2, F32, CPU, &options, &out, ERR));
  EQUAL(pool.taken, 0);
  pool.gives_null = 0;
  pool.gives_odd = 1;
  REJECTS(MISALIGNED, ANY, ANY, -1, dlrs_tensor_new(shape, 2, F32, CPU, &options, &out, ERR));
  EQUAL(pool.taken, 1);
  pool.gives_odd = 0;
  options.allocator = &broken;
  broken.free = NULL;
  REJECTS(NULL_ARG, 5, OPTION, -1, dlrs_tensor_new(shape, 2, F32, CPU, &options, &out, ERR));
  broken = allocator;
  broken.alloc = NULL;
  REJECTS(NULL_ARG, 5, OPTION, -1, dlrs_tensor_new(shape, 2, F32, CPU, &options, &out, ERR));
  broken = allocator;
  broken.struct_size = 8;
  REJECTS(STRUCT_SIZE, 5, STRUCT_SIZE, -1,
          dlrs_tensor_new(shape, 2, F32, CPU, &options, &out, ERR));
  EQUAL(pool.taken, 1);
  options.allocator = &allocator;
  WORKS(dlrs_tensor_new(shape, 2, F32, t_device(kDLVPI, 3), &options, &out, ERR));
  EQUAL(pool.given, 2);
  EQUAL(t_request_of(out->dl_tensor.data).nbytes, 24);
  EQUAL(t_request_of(out->dl_tensor.data).align_bytes, 64);
  EQUAL(t_request_of(out->dl_tensor.data).device.device_id, 3);
  dlrs_release(out);
  EQUAL(pool.taken, 2);
  EQUAL(pool.strange, 0);
}

static void w19(void) { /* longer ones are in test_growth.c */
  int64_t shape[1] = {4};
  DLManagedTensorVersioned *out;
  uint32_t size;
  t_result(&out);
  for (size = 0; size < offsetof(dlrs_alloc_options, order); ++size) { /* the first version's */
    /* Only struct_size itself may be read. */
    uint32_t *tiny = (uint32_t *)t_before_guard(8);
    *tiny = size;
    REJECTS(STRUCT_SIZE, 5, STRUCT_SIZE, -1,
            dlrs_tensor_new(shape, 1, F32, CPU, (dlrs_alloc_options *)tiny, &out, ERR));
    EQUAL(t_error.value, size);
    EQUAL(t_error.limit, offsetof(dlrs_alloc_options, order));
    t_guards_free();
  }
}

const c_row c_rows_w[] = {
    {"W01", "without a place for the result nothing is allocated", w01},
    {"W02", "a shape that is wrong is refused, and the extent named", w02},
    {"W03", "sizes near 2^63 overflow or find no memory, whatever the alignment adds", w03},
    {"W04", "an alignment of 0 is 256; one that is no power of two is refused", w04},
    {"W05", "data of every size is aligned and all its own", w05},
    {"W06", "no elements have no data; no dimensions have one element", w06},
    {"W07", "a dtype or device that is wrong is refused before anything is allocated", w07},
    {"W08", "allocation takes only the padding flag", w08},
    {"W09", "memory without a deleter is borrowed", w09},
    {"W10", "a wrap that fails does not free the memory", w10},
    {"W11", "a deleter gets the context that was given, NULL too", w11},
    {"W13", "a wrapped tensor has the flags that were given, and strides", w13},
    {"W16", "of a prototype only shape, dtype and device are read", w16},
    {"W17", "an allocator that gives nothing, or misaligned memory, or is incomplete, is refused",
     w17},
    {"W19", "of an options struct that is too small only the size is read", w19},
    {NULL, NULL, NULL},
};
