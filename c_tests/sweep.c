/* Every allocation of every function that allocates (of views, which all allocate in one place, a
 * few) fails, once and from then on: the call returns DLRS_NOMEM, nothing is taken, written or
 * leaked, no deleter runs, and the next call succeeds.
 * `sweep N` runs only every N-th scenario. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "harness.h"

/* The scenarios' operands; created anew for each call. */
static struct {
  t_tensor src, dst;
  int64_t shape[64], arrays[128];
  float values[64];
  DLManagedTensorVersioned *in, *own;
  DLManagedTensor *legacy, *own_legacy;
  DLTensor bare, target;
  dlrs_alloc_options alloc;
  dlrs_allocator allocator;
  dlrs_import_options import;
  dlrs_copy_options copy;
  dlrs_view_step steps[2];
  char bytes[64];
  int64_t flat_shape, flat_stride;
  int freed;
  float *large;
  DLManagedTensorVersioned pairs[2][3], *onto[3];
  const DLManagedTensorVersioned *from[3];
} S;

/* Their results. */
static struct {
  DLManagedTensorVersioned *out;
  DLManagedTensor *legacy_out;
} R;

static t_source pool;

static void noop(void *context) { (void)context; }

/* ---- Setups ---------------------------------------------------------------------------------*/

static void plain(void) {
  int i;
  memset(&S, 0, sizeof S);
  t_make(&S.src);
  t_make(&S.dst);
  S.in = &S.src.managed;
  S.legacy = &S.src.legacy;
  for (i = 0; i < 64; ++i) {
    S.shape[i] = 1 + (i == 3);
    S.values[i] = (float)i;
  }
  S.alloc.struct_size = sizeof S.alloc;
  S.allocator = t_allocator(&pool);
  S.import.struct_size = sizeof S.import;
  S.copy.struct_size = sizeof S.copy;
  S.flat_shape = 6;
  S.flat_stride = 1;
  S.bare = t_describe(S.values, F32, 2, S.src.shape, S.src.strides);
  S.target = t_describe(S.values + 1, F32, 2, S.src.shape, S.src.strides);
}

/* Another setup, and then what differs. */
#define SETUP(name, base, ...) \
  static void name(void) {     \
    base();                    \
    __VA_ARGS__;               \
  }

SETUP(with_allocator, plain, S.alloc.allocator = &S.allocator)
SETUP(with_global_allocator, plain,
      CHECK(dlrs_allocator_set(kDLCPU, &S.allocator, NULL, NULL) == DLRS_OK))
SETUP(aligned, plain, S.alloc.align_bytes = 1u << 16)
SETUP(unaligned_pool, with_allocator, S.alloc.align_bytes = 4096)
SETUP(padded, plain, S.alloc.flags = DLPACK_FLAG_BITMASK_IS_SUBBYTE_TYPE_PADDED)
SETUP(empty, plain, S.src.shape[1] = 0; S.shape[1] = 0)
SETUP(no_strides, plain, S.src.managed.dl_tensor.strides = NULL;
      S.src.legacy.dl_tensor.strides = NULL; S.bare.strides = NULL)
SETUP(no_deleter, plain, S.src.managed.deleter = NULL; S.src.legacy.deleter = NULL)
SETUP(read_only, plain, S.src.managed.flags = DLPACK_FLAG_BITMASK_READ_ONLY; S.import.writable = 1)
SETUP(scalar, plain, S.src.managed.dl_tensor.ndim = S.bare.ndim = S.src.legacy.dl_tensor.ndim = 0)
SETUP(transposed, plain, S.src.strides[0] = 1; S.src.strides[1] = 2; S.import.order = 'C')
SETUP(broadcast, plain, S.src.strides[0] = 0; S.import.order = 'K')
SETUP(fortran, plain, S.import.order = 'F')
SETUP(misaligned, plain, S.src.managed.dl_tensor.data = (char *)S.src.values + 1;
      S.src.shape[0] = 1; S.import.align_bytes = 64)
SETUP(always_copy, plain, S.import.copy = 1; S.import.copy_options = &S.copy)
SETUP(loose, plain, S.import.level = DLRS_LEVEL_STRUCT;
      S.src.managed.dl_tensor.dtype = t_dtype(200, 7, 3))
SETUP(pinned, plain, S.src.managed.dl_tensor.device = t_device(kDLCUDAHost, 0))
SETUP(float4, plain, S.src.managed.dl_tensor.dtype = S.bare.dtype = t_dtype(kDLFloat4_e2m1fn, 4, 1);
      S.target = S.bare; S.src.legacy.dl_tensor = S.src.managed.dl_tensor)
SETUP(overlap, plain, S.copy.flags = DLRS_COPY_ALLOW_OVERLAP)
SETUP(overlap_transposed, overlap, S.src.shape[0] = S.src.shape[1] = 3; S.arrays[0] = 1;
      S.arrays[1] = 3; S.target = t_describe(S.values, F32, 2, S.src.shape, S.arrays))
SETUP(overlap_bits, float4, S.copy.flags = DLRS_COPY_ALLOW_OVERLAP;
      S.target.data = (char *)S.bare.data + 1)
SETUP(overlap_managed, overlap, S.dst.managed.dl_tensor.data = (char *)S.src.values + 4;
      S.src.shape[0] = S.dst.shape[0] = 1)

/* Temporaries of several sizes. */
static void overlap_batch(void) {
  int i;
  overlap();
  S.flat_stride = 1;
  for (i = 0; i < 3; ++i) {
    float *first = S.values + 20 * i;
    S.arrays[i] = i == 1 ? 10 : 5 - i;
    S.pairs[0][i] = t_managed(t_describe(first, F32, 1, &S.arrays[i], &S.flat_stride), 0);
    S.pairs[1][i] = t_managed(t_describe(first + 1, F32, 1, &S.arrays[i], &S.flat_stride), 0);
    S.from[i] = &S.pairs[0][i];
    S.onto[i] = &S.pairs[1][i];
  }
}

SETUP(overlap_threads, overlap, S.copy.threads = 4)
SETUP(own, plain, CHECK(dlrs_tensor_new(S.src.shape, 2, F32, CPU, NULL, &S.own, NULL) == DLRS_OK);
      memcpy(S.own->dl_tensor.data, S.values, 24); S.in = NULL)
SETUP(own_read_only, own,
      CHECK(dlrs_set_flags(S.own, DLPACK_FLAG_BITMASK_READ_ONLY, 0, NULL) == DLRS_OK))
SETUP(own_attached, own, CHECK(dlrs_attach(S.own, noop, &S, DLRS_BEFORE_FREE, NULL) == DLRS_OK))
SETUP(own_wrapped, plain,
      CHECK(dlrs_tensor_wrap(&S.bare, 0, t_count, &S.freed, &S.own, NULL) == DLRS_OK))
SETUP(own_boxed, plain, CHECK(dlrs_import_take(&S.in, NULL, &S.own, NULL) == DLRS_OK))
SETUP(own_copying, own, S.import.copy = 1)
SETUP(own_legacy, own, CHECK(dlrs_to_legacy_take(&S.own, 0, &S.own_legacy, NULL) == DLRS_OK))
SETUP(steps, own, memset(S.steps, 0, sizeof S.steps);
      S.steps[0].struct_size = S.steps[1].struct_size = sizeof S.steps[0];
      S.steps[0].op = DLRS_VIEW_FLIP; S.steps[1].op = DLRS_VIEW_TRANSPOSE;
      S.steps[1].other_axis = 1)
SETUP(own_flags, own, S.own->dl_tensor.byte_offset = 0;
      CHECK(dlrs_set_flags(S.own, DLPACK_FLAG_BITMASK_IS_COPIED, 0, NULL) == DLRS_OK))
SETUP(cast_onto_itself, overlap, S.dst.managed.dl_tensor.data = S.src.values;
      S.dst.managed.dl_tensor.dtype = t_dtype(kDLInt, 32, 1); S.dst.strides[0] = 1;
      S.dst.strides[1] = 2)

static void large_copy(void) {
  plain();
  S.copy.threads = 4;
  S.large = (float *)calloc(1 << 21, sizeof *S.large);
  S.arrays[0] = S.arrays[1] = 1024;
  S.arrays[2] = 1;
  S.arrays[3] = 1024;
  S.src.managed.dl_tensor = t_describe(S.large, F32, 2, S.arrays, S.arrays + 2);
  S.arrays[4] = 1024;
  S.arrays[5] = 1;
  S.target = t_describe(S.large + (1 << 20), F32, 2, S.arrays, S.arrays + 4);
  S.bare = S.src.managed.dl_tensor;
}

/* ---- Scenarios ------------------------------------------------------------------------------*/

/* setup, then the call; `survives`: it may also succeed although an allocation failed. */
#define SCENARIOS(X)                                                                               \
  X(plain, 0, dlrs_tensor_new(S.shape, 1, F32, CPU, NULL, &R.out, ERR))                            \
  X(plain, 0, dlrs_tensor_new(S.shape, 4, F32, CPU, &S.alloc, &R.out, ERR))                        \
  X(plain, 0, dlrs_tensor_new(S.shape, 64, F32, CPU, NULL, &R.out, ERR))                           \
  X(plain, 0, dlrs_tensor_new(NULL, 0, F32, CPU, NULL, &R.out, ERR))                               \
  X(empty, 0, dlrs_tensor_new(S.shape, 2, F32, CPU, NULL, &R.out, ERR))                            \
  X(empty, 0, dlrs_tensor_new(S.shape, 2, F32, t_device(kDLCUDA, 1), NULL, &R.out, ERR))           \
  X(plain, 0, dlrs_tensor_new(S.shape, 4, t_dtype(17, 4, 1), CPU, NULL, &R.out, ERR))              \
  X(padded, 0, dlrs_tensor_new(S.shape, 4, t_dtype(17, 4, 1), CPU, &S.alloc, &R.out, ERR))         \
  X(aligned, 0, dlrs_tensor_new(S.shape, 4, F32, CPU, &S.alloc, &R.out, ERR))                      \
  X(with_allocator, 0, dlrs_tensor_new(S.shape, 4, F32, CPU, &S.alloc, &R.out, ERR))               \
  X(with_allocator, 0, dlrs_tensor_new(S.shape, 4, F32, t_device(kDLVPI, 2), &S.alloc, &R.out, ERR)) \
  X(unaligned_pool, 0, dlrs_tensor_new(S.shape, 4, F32, CPU, &S.alloc, &R.out, ERR))               \
  X(with_global_allocator, 0, dlrs_tensor_new(S.shape, 4, F32, CPU, NULL, &R.out, ERR))            \
  X(plain, 0, dlrs_tensor_new_like(&S.bare, NULL, &R.out, ERR))                                    \
  X(with_allocator, 0, dlrs_tensor_new_like(&S.bare, &S.alloc, &R.out, ERR))                       \
  X(with_global_allocator, 0, dlrs_tensor_new_like(&S.bare, NULL, &R.out, ERR))                    \
  X(plain, 0, dlrs_tensor_wrap(&S.bare, 0, t_count, &S.freed, &R.out, ERR))                        \
  X(plain, 0, dlrs_tensor_wrap(&S.bare, 0, NULL, NULL, &R.out, ERR))                               \
  X(no_strides, 0, dlrs_tensor_wrap(&S.bare, 0, t_count, &S.freed, &R.out, ERR))                   \
  X(scalar, 0, dlrs_tensor_wrap(&S.bare, 0, t_count, &S.freed, &R.out, ERR))                       \
  X(plain, 0, dlrs_from_legacy_take(&S.legacy, 0, &R.out, ERR))                                    \
  X(plain, 0, dlrs_from_legacy_take(&S.legacy, 1, &R.out, ERR))                                    \
  X(no_strides, 0, dlrs_from_legacy_take(&S.legacy, 0, &R.out, ERR))                               \
  X(no_deleter, 0, dlrs_from_legacy_take(&S.legacy, 0, &R.out, ERR))                               \
  X(own_legacy, 0, dlrs_from_legacy_take(&S.own_legacy, 1, &R.out, ERR))                           \
  X(plain, 0, dlrs_to_legacy_take(&S.in, DLRS_LEGACY_REFUSE, &R.legacy_out, ERR))                  \
  X(no_strides, 0, dlrs_to_legacy_take(&S.in, DLRS_LEGACY_REFUSE, &R.legacy_out, ERR))             \
  X(no_deleter, 0, dlrs_to_legacy_take(&S.in, DLRS_LEGACY_REFUSE, &R.legacy_out, ERR))             \
  X(read_only, 0, dlrs_to_legacy_take(&S.in, DLRS_LEGACY_DROP, &R.legacy_out, ERR))                \
  X(read_only, 0, dlrs_to_legacy_take(&S.in, DLRS_LEGACY_COPY, &R.legacy_out, ERR))                \
  X(own_read_only, 0, dlrs_to_legacy_take(&S.own, DLRS_LEGACY_COPY, &R.legacy_out, ERR))           \
  X(plain, 0, dlrs_import_take(&S.in, NULL, &R.out, ERR))                                          \
  X(no_strides, 0, dlrs_import_take(&S.in, NULL, &R.out, ERR))                                     \
  X(no_deleter, 0, dlrs_import_take(&S.in, &S.import, &R.out, ERR))                                \
  X(read_only, 0, dlrs_import_take(&S.in, NULL, &R.out, ERR))                                      \
  X(read_only, 0, dlrs_import_take(&S.in, &S.import, &R.out, ERR))                                 \
  X(transposed, 0, dlrs_import_take(&S.in, &S.import, &R.out, ERR))                                \
  X(broadcast, 0, dlrs_import_take(&S.in, &S.import, &R.out, ERR))                                 \
  X(fortran, 0, dlrs_import_take(&S.in, &S.import, &R.out, ERR))                                   \
  X(misaligned, 0, dlrs_import_take(&S.in, &S.import, &R.out, ERR))                                \
  X(always_copy, 0, dlrs_import_take(&S.in, &S.import, &R.out, ERR))                               \
  X(loose, 0, dlrs_import_take(&S.in, &S.import, &R.out, ERR))                                     \
  X(own_copying, 0, dlrs_import_take(&S.own, &S.import, &R.out, ERR))                              \
  X(own, 0, dlrs_attach(S.own, noop, &S, DLRS_BEFORE_FREE, ERR))                                   \
  X(own, 0, dlrs_attach(S.own, noop, &S, DLRS_AFTER_FREE, ERR))                                    \
  X(own_attached, 0, dlrs_attach(S.own, noop, &S, DLRS_BEFORE_FREE, ERR))                          \
  X(own_wrapped, 0, dlrs_attach(S.own, noop, NULL, DLRS_AFTER_FREE, ERR))                          \
  X(own_boxed, 0, dlrs_attach(S.own, noop, NULL, DLRS_BEFORE_FREE, ERR))                           \
  X(plain, 0, dlrs_clone(&S.src.managed, CPU, NULL, &R.out, ERR))                                  \
  X(transposed, 0, dlrs_clone(&S.src.managed, CPU, &S.copy, &R.out, ERR))                          \
  X(broadcast, 0, dlrs_clone(&S.src.managed, CPU, &S.copy, &R.out, ERR))                           \
  X(float4, 0, dlrs_clone(&S.src.managed, CPU, NULL, &R.out, ERR))                                 \
  X(own, 0, dlrs_clone(S.own, CPU, NULL, &R.out, ERR))                                             \
  X(with_global_allocator, 0, dlrs_clone(&S.src.managed, CPU, NULL, &R.out, ERR))                  \
  X(large_copy, 1, dlrs_clone(&S.src.managed, CPU, &S.copy, &R.out, ERR))                          \
  X(transposed, 0, dlrs_contiguous(&S.src.managed, 'C', NULL, &R.out, ERR))                        \
  X(plain, 0, dlrs_contiguous(&S.src.managed, 'F', NULL, &R.out, ERR))                             \
  X(broadcast, 0, dlrs_contiguous(&S.src.managed, 'A', NULL, &R.out, ERR))                         \
  X(broadcast, 0, dlrs_contiguous(&S.src.managed, 'K', NULL, &R.out, ERR))                         \
  X(plain, 0, dlrs_to_device(&S.src.managed, CPU, 1, NULL, &R.out, ERR))                           \
  X(pinned, 0, dlrs_to_device(&S.src.managed, CPU, 0, &S.copy, &R.out, ERR))                       \
  X(own, 0, dlrs_to_device(S.own, CPU, 1, NULL, &R.out, ERR))                                      \
  X(overlap, 0, dlrs_copy_desc(&S.bare, 0, &S.target, 0, &S.copy, ERR))                            \
  X(overlap_transposed, 0, dlrs_copy_desc(&S.bare, 0, &S.target, 0, &S.copy, ERR))                 \
  X(overlap_bits, 0, dlrs_copy_desc(&S.bare, 0, &S.target, 0, &S.copy, ERR))                       \
  X(overlap_threads, 0, dlrs_copy_desc(&S.bare, 0, &S.target, 0, &S.copy, ERR))                    \
  X(overlap_managed, 0, dlrs_copy(&S.src.managed, &S.dst.managed, &S.copy, ERR))                   \
  X(overlap_batch, 0, dlrs_copy_batch(3, S.from, S.onto, &S.copy, NULL, ERR))                      \
  X(cast_onto_itself, 0, dlrs_cast(&S.src.managed, &S.dst.managed, &S.copy, ERR))                  \
  X(own_flags, 0, dlrs_view_transpose(S.own, 0, 1, &R.out, ERR))                                   \
  X(own, 0, dlrs_view_bitcast(S.own, t_dtype(kDLInt, 32, 1), &R.out, ERR))                         \
  X(own, 0, dlrs_view_reshape(S.own, &S.flat_shape, 1, &R.out, ERR))                              \
  X(steps, 0, dlrs_view_apply(S.own, S.steps, 2, &R.out, ERR))                                     \
  X(large_copy, 1, dlrs_copy_desc(&S.bare, 0, &S.target, 0, &S.copy, ERR))

typedef struct scenario {
  const char *call, *label;
  void (*setup)(void);
  int survives;
} scenario;

#define ROW(setup, survives, call) {#call, #setup ", " #call, setup, survives},
static const scenario scenarios[] = {SCENARIOS(ROW)};
enum { COUNT = sizeof scenarios / sizeof *scenarios };

#define CASE(setup, survives, call) \
  if (number-- == 0) return call;
static int32_t run_scenario(int number) {
  SCENARIOS(CASE)
  return -1;
}

static void teardown(const scenario *row) {
  /* A result variable has the poison of t_before when the call lacks it. */
  if (strstr(row->call, "&R.out") != NULL) dlrs_release(R.out);
  if (strstr(row->call, "&R.legacy_out") != NULL) dlrs_release_legacy(R.legacy_out);
  dlrs_release(S.own);
  dlrs_release_legacy(S.own_legacy);
  free(S.large);
  CHECK(dlrs_allocator_set(kDLCPU, NULL, NULL, NULL) == DLRS_OK);
}

/* Runs a scenario whose k-th allocation fails; returns whether there was a k-th. */
static int point(int number, long k, int forever) {
  const scenario *row = &scenarios[number];
  char context[256];
  int32_t status;
  int fired;
  long live = inject_live(), deleted;
  snprintf(context, sizeof context, "%.180s, allocation %ld%s", row->label, k, forever ? " on" : "");
  t_context = context;
  row->setup();
  deleted = t_deleted;
  t_watch(&S, sizeof S);
  if (S.own != NULL) t_watch(S.own, sizeof *S.own);
  t_result(&R.out);
  t_result(&R.legacy_out);
  t_before();
  inject_arm(k, forever);
  status = run_scenario(number);
  fired = inject_disarm();
  if (!fired) {
    t_worked(__FILE__, __LINE__, row->call, status);
  } else if (status != DLRS_OK || !row->survives) {
    t_refused(__FILE__, __LINE__, row->call, status, DLRS_NOMEM, ANY, ANY, ANY);
    t_before();
    t_worked(__FILE__, __LINE__, row->call, run_scenario(number));
  }
  t_unwatch();
  teardown(row);
  CHECK(t_deleted - deleted <= 1); /* the foreign tensor's, or the borrowed memory's */
  /* The C library keeps a few blocks with the stacks of threads that have ended. */
  CHECK(inject_live() >= live && inject_live() <= live + (row->survives ? 8 : 0));
  t_context = "";
  return fired;
}

/* Functions that create no tensor do not allocate either. */
static void allocates_nothing(void) {
  DLManagedTensorVersioned *more;
  DLManagedTensor *legacy;
  DLDataType dtype;
  char text[512];
  int64_t numel;
  uint64_t nbytes;
  int32_t answer;
  size_t length;
  long calls;
  t_context = "allocates nothing";
  own();
  calls = inject_calls();
  inject_arm(1, 1);
  WORKS(dlrs_validate_managed(S.own, DLRS_LEVEL_STRICT, ERR));
  WORKS(dlrs_validate(&S.bare, 0, DLRS_LEVEL_STRICT, ERR));
  WORKS(dlrs_validate_legacy(&S.src.legacy, DLRS_LEVEL_STRICT, ERR));
  WORKS(dlrs_validate_within(&S.bare, 0, S.values, sizeof S.values, ERR));
  WORKS(dlrs_numel(&S.bare, &numel, ERR));
  WORKS(dlrs_itemsize_bits(&S.bare, 0, &nbytes, ERR));
  WORKS(dlrs_nbytes(&S.bare, 0, &nbytes, ERR));
  WORKS(dlrs_is_contiguous(&S.bare, 'K', &answer, ERR));
  WORKS(dlrs_dtype_parse("float32x4", 9, &dtype, ERR));
  WORKS(dlrs_dtype_format(dtype, text, sizeof text, &length, ERR));
  WORKS(dlrs_device_format(CPU, text, sizeof text, &length, ERR));
  WORKS(dlrs_tensor_to_string(&S.bare, 0, NULL, text, sizeof text, &length, ERR));
  WORKS(dlrs_managed_to_string(S.own, NULL, text, sizeof text, &length, ERR));
  WORKS(dlrs_retain(S.own, &more, ERR));
  dlrs_release(more);
  WORKS(dlrs_contiguous(S.own, 'C', NULL, &more, ERR));
  dlrs_release(more);
  WORKS(dlrs_to_device(S.own, CPU, 0, NULL, &more, ERR));
  dlrs_release(more);
  WORKS(dlrs_set_flags(S.own, DLPACK_FLAG_BITMASK_READ_ONLY, 0, ERR));
  WORKS(dlrs_set_flags(S.own, 0, DLPACK_FLAG_BITMASK_READ_ONLY, ERR));
  WORKS(dlrs_copy(&S.src.managed, S.own, NULL, ERR));
  WORKS(dlrs_to_legacy_take(&S.own, 0, &legacy, ERR));
  WORKS(dlrs_from_legacy_take(&legacy, 0, &S.own, ERR));
  WORKS(dlrs_import_take(&S.own, NULL, &more, ERR));
  REJECTS(NULL_ARG, 1, ANY, ANY, dlrs_validate(NULL, 0, 1, ERR));
  EQUAL(inject_calls(), calls);
  inject_disarm();
  dlrs_release(more);
}

int main(int argc, char **argv) {
  int step = argc > 1 ? atoi(argv[1]) : 1, number, forever;
  long points = 0, runs = 0;
  if (!inject_works()) {
    printf("allocations cannot be made to fail here\n");
    CHECK(1);
    return t_close();
  }
  for (number = 0; number < COUNT; number += step) {
    for (forever = 0; forever <= 1; ++forever) {
      long k = 1;
      while (point(number, k, forever) && k < 1000) ++k;
      CHECK(k > 1 || scenarios[number].survives);
      points += k - 1;
      ++runs;
    }
  }
  allocates_nothing();
  CHECK(pool.given == pool.taken && pool.strange == 0);
  printf("sweep: %d scenarios, %ld points of failure, %ld calls without\n", (COUNT + step - 1) / step,
         points, runs);
  return t_close();
}
