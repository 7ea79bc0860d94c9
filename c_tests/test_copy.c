/* Copies: functions, options, ownership; section K of the catalogue tests the elements. */
#include "harness.h"

static dlrs_copy_options options_of(uint32_t flags, uint32_t threads) {
  dlrs_copy_options options = DLRS_INIT(dlrs_copy_options);
  options.flags = flags;
  options.threads = threads;
  return options;
}

static void copies(void) {
  t_tensor src, dst;
  DLManagedTensorVersioned *out, *own;
  long deleted = t_deleted;
  int32_t copy;
  t_make(&src);
  t_make(&dst);
  memset(dst.values, 0, sizeof dst.values);
  WORKS(dlrs_copy(&src.managed, &dst.managed, NULL, ERR));
  CHECK(memcmp(src.values, dst.values, sizeof src.values) == 0);
  WORKS(dlrs_clone(&src.managed, CPU, NULL, &own, ERR));
  /* Where no copy is needed: one more reference. */
  for (copy = -1; copy <= 1; ++copy) {
    WORKS(dlrs_to_device(own, CPU, copy, NULL, &out, ERR));
    CHECK((out == own) == (copy < 1) && dlrs_ref_count(own) == (copy < 1 ? 2 : 1));
    dlrs_release(out);
  }
  WORKS(dlrs_contiguous(own, 'C', NULL, &out, ERR));
  CHECK(out == own);
  dlrs_release(out);
  WORKS(dlrs_contiguous(own, 'F', NULL, &out, ERR));
  CHECK(out != own && out->dl_tensor.strides[0] == 1 && out->dl_tensor.strides[1] == 2);
  EQUAL(((float *)out->dl_tensor.data)[1], 3);
  dlrs_release(out);
  dlrs_release(own);
  EQUAL(t_deleted, deleted); /* no source was ever taken */
}

/* Order K: larger strides stay outside, and equal ones keep their order. */
static void order_k(void) {
  static const struct {
    int64_t strides[3], want[3];
  } rows[] = {{{2, 4, 12}, {1, 2, 6}}, {{24, 2, 6}, {12, 1, 3}}, {{-24, 8, -2}, {12, 4, 1}},
              {{0, 0, 0}, {12, 4, 1}}, {{0, 0, 2}, {3, 1, 6}}, {{14, 0, 0}, {12, 4, 1}}};
  float values[96];
  int64_t shape[3] = {2, 3, 4};
  for (int i = 0; i < 96; ++i) values[i] = (float)i;
  for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
    DLManagedTensorVersioned *out, *more;
    int64_t strides[3];
    memcpy(strides, rows[i].strides, sizeof strides);
    DLManagedTensorVersioned src = t_managed(t_describe(values + 30, F32, 3, shape, strides), 0);
    if (!WORKS(dlrs_contiguous(&src, 'K', NULL, &out, ERR))) continue;
    for (int dim = 0; dim < 3; ++dim) EQUAL(out->dl_tensor.strides[dim], rows[i].want[dim]);
    /* No device was requested, so the invalid one is the source's. */
    src.dl_tensor.device.device_id = 5;
    REJECTS(DEVICE_ID, 1, DEVICE_ID, -1, dlrs_contiguous(&src, 'K', NULL, &more, ERR));
    EQUAL(((float *)out->dl_tensor.data)[rows[i].want[0] + rows[i].want[2]],
          30 + strides[0] + strides[2]);
    dlrs_release(out);
  }
}

/* The stride of a dimension of extent 1 is never used, whatever it is. */
static void unused_strides(void) {
  float from[6] = {1, 2, 3, 4, 5, 6}, into[3] = {0, 0, 0};
  int64_t shape[2] = {1, 3}, gaps[2] = {INT64_MAX, 2}, back[2] = {INT64_MIN, -1};
  DLTensor src = t_describe(from, F32, 2, shape, gaps);
  DLTensor dst = t_describe(into + 2, F32, 2, shape, back);
  WORKS(dlrs_copy_desc(&src, 0, &dst, 0, NULL, ERR));
  CHECK(into[0] == 5 && into[1] == 3 && into[2] == 1);
}

static void explanations(void) {
  t_tensor src, dst;
  DLTensor *from = &src.managed.dl_tensor, *to = &dst.managed.dl_tensor;
  int64_t columns[2] = {1, 2}, large[2] = {1024, 1024}, turned[2] = {1, 1024};
  char text[256];
  size_t nbytes = 0;
  dlrs_copy_options options = options_of(0, 1);
  t_make(&src);
  t_make(&dst);
  WORKS(dlrs_copy_explain(from, 0, to, 0, &options, text, sizeof text, &nbytes, ERR));
  CHECK(strstr(text, "cpu: run, 1 thread, ") == text && strstr(text, "; 24 bytes") != NULL);
  EQUAL(nbytes, strlen(text));
  WORKS(dlrs_copy_explain(from, 0, to, 0, &options, NULL, 0, &nbytes, ERR));
  EQUAL(nbytes, strlen(text));
  REJECTS(BUF_SMALL, 7, ANY, -1,
          dlrs_copy_explain(from, 0, to, 0, &options, text, nbytes, NULL, ERR));
  EQUAL(strlen(text), nbytes - 1);
  WORKS(dlrs_copy_explain(from, 0, from, 0, NULL, text, sizeof text, NULL, ERR));
  CHECK(strcmp(text, "nothing to move") == 0);
  from->strides = columns;
  WORKS(dlrs_copy_explain(from, 0, to, 0, NULL, text, sizeof text, NULL, ERR));
  CHECK(strstr(text, "; 4 bytes x 2 (12 <- 4) x 3 (4 <- 8)") != NULL);
  /* Elements are not accessed: there are none. */
  from->shape = to->shape = large;
  from->strides = turned;
  to->strides = NULL;
  from->data = (void *)4096;
  to->data = (void *)((uintptr_t)1 << 24);
  WORKS(dlrs_copy_explain(from, 0, to, 0, &options, text, sizeof text, NULL, ERR));
  CHECK(strstr(text, "cpu: transpose ") == text && strstr(text, ", 1 thread, ") != NULL);
  options = options_of(DLRS_COPY_ALLOW_OVERLAP, 1);
  to->data = (void *)8192;
  WORKS(dlrs_copy_explain(from, 0, to, 0, &options, text, sizeof text, NULL, ERR));
  CHECK(strstr(text, "twice, through 4194304 bytes of compact memory; cpu: transpose ") == text);
  CHECK(strstr(text, "; then cpu: run") != NULL);
  strcpy(text, "as it was");
  REJECTS(OVERLAP_SRC_DST, 3, ANY, -1,
          dlrs_copy_explain(from, 0, to, 0, NULL, text, sizeof text, NULL, ERR));
  /* Addresses of pinned memory and CUDA's are in the host's address space. */
  to->device = t_device(kDLCUDAHost, 0);
  REJECTS(OVERLAP_SRC_DST, 3, ANY, -1,
          dlrs_copy_explain(from, 0, to, 0, NULL, text, sizeof text, NULL, ERR));
#ifndef DLRS_NO_CUDA
  from->device = t_device(kDLCUDA, 0);
  REJECTS(OVERLAP_SRC_DST, 3, ANY, -1,
          dlrs_copy_explain(from, 0, to, 0, NULL, text, sizeof text, NULL, ERR));
#endif
  from->device = to->device = CPU;
  CHECK(strcmp(text, "as it was") == 0);
  REJECTS(NULL_ARG, 1, ANY, -1, dlrs_copy_explain(NULL, 0, to, 0, NULL, text, 9, NULL, ERR));
  to->data = (void *)((uintptr_t)1 << 24);
}

/* Pools that do not do what they are told; those that do are in test_fresh.c and test_engine.c. */
static size_t hook_leaves;
static int32_t leaves_out(void *context, size_t n, void (*body)(void *, size_t), void *body_context) {
  size_t i;
  (void)context;
  for (i = 0; i < n; ++i) body(body_context, i == hook_leaves % n ? (i + 1) % n : i);
  return 0;
}

static int32_t too_often(void *context, size_t n, void (*body)(void *, size_t), void *body_context) {
  size_t i;
  (void)context;
  for (i = 0; i < 3 * n; ++i) body(body_context, i / 2);
  return 0;
}

static void hooks(void) {
  int64_t shape[2] = {2000, 1500}, strides[2] = {1, 2000};
  size_t count = 3000000, i, wrong = 0;
  float *from = (float *)malloc(count * sizeof *from), *into = (float *)calloc(count, sizeof *into);
  DLTensor src = t_describe(from, F32, 2, shape, strides), dst = t_describe(into, F32, 2, shape, NULL);
  dlrs_copy_options options = options_of(0, 4);
  for (i = 0; i < count; ++i) from[i] = (float)i;
  /* A pool that skips any part, runs one twice or runs one that does not exist. */
  for (hook_leaves = 0; hook_leaves < 4; ++hook_leaves) {
    options.parallel_for = leaves_out;
    REJECTS(CALLBACK, ANY, ANY, -1, dlrs_copy_desc(&src, 0, &dst, 0, &options, ERR));
    CHECK(t_error.value == t_error.limit - 1 && t_error.limit <= 4);
  }
  options.parallel_for = too_often;
  WORKS(dlrs_copy_desc(&src, 0, &dst, 0, &options, ERR));
  for (i = 0; i < count; ++i) wrong += into[i] != (float)(i % 1500 * 2000 + i / 1500);
  EQUAL(wrong, 0);
  free(from);
  free(into);
}

static void refuses(void) {
  t_tensor src, dst;
  DLManagedTensorVersioned *out;
  DLManagedTensor *legacy_out;
  DLTensor *from = &src.managed.dl_tensor, *into = &dst.managed.dl_tensor;
  dlrs_copy_options options = options_of(8, 0);
  t_make(&src);
  t_make(&dst);
  t_watch(&src, sizeof src);
  t_watch(&dst, sizeof dst);
  t_result(&out);
  t_result(&legacy_out);
  REJECTS(NULL_ARG, 1, ANY, -1, dlrs_contiguous(NULL, 'C', NULL, &out, ERR));
  REJECTS(NULL_ARG, 1, ANY, -1, dlrs_to_device(NULL, CPU, 0, NULL, &out, ERR));
  REJECTS(BAD_ARG, 2, ANY, -1, dlrs_contiguous(&src.managed, 0, NULL, &out, ERR));
  REJECTS(FOREIGN, 1, ANY, -1, dlrs_contiguous(&src.managed, 'C', NULL, &out, ERR));
  REJECTS(FOREIGN, 1, ANY, -1, dlrs_to_device(&src.managed, CPU, 0, NULL, &out, ERR));
  REJECTS(COPY_NEEDED, 1, ANY, -1,
          dlrs_to_device(&src.managed, t_device(kDLCUDA, 0), -1, NULL, &out, ERR));
  REJECTS(DEVICE_TYPE, ANY, ANY, -1,
          dlrs_clone(&src.managed, t_device(kDLVulkan, 0), NULL, &out, ERR));
  REJECTS(DEVICE_ID, ANY, ANY, -1, dlrs_clone(&src.managed, t_device(kDLCPU, 1), NULL, &out, ERR));
  REJECTS(BAD_ARG, 3, OPTION, -1, dlrs_copy(&src.managed, &dst.managed, &options, ERR));
  options = options_of(0, 0);
  options.reserved = 1;
  REJECTS(BAD_ARG, 5, OPTION, -1, dlrs_copy_desc(from, 0, into, 0, &options, ERR));
  REJECTS(BAD_ARG, 3, OPTION, -1, dlrs_clone(&src.managed, CPU, &options, &out, ERR));
  options.struct_size = 8;
  REJECTS(STRUCT_SIZE, 3, STRUCT_SIZE, -1, dlrs_contiguous(&src.managed, 'F', &options, &out, ERR));
  REJECTS(STRUCT_SIZE, 4, STRUCT_SIZE, -1,
          dlrs_to_device(&src.managed, CPU, 1, &options, &out, ERR));
}

/* Every set of flags with one that is unknown: it is named with the value as given. What each flag
 * does is in test_fresh.c, test_cast.c and fuzz/src/targets/copy.rs. */
static void flags(void) {
  t_tensor src, dst;
  DLManagedTensorVersioned *from = &src.managed, *to = &dst.managed;
  uint32_t set, reserved;
  int cast;
  t_make(&src);
  t_make(&dst);
  for (cast = 0; cast < 2; ++cast) {
    const uint32_t known = DLRS_COPY_ALLOW_OVERLAP | DLRS_COPY_RAW_BYTES | DLRS_COPY_ASYNC |
                           (cast ? DLRS_COPY_SATURATE : 0);
    for (set = 0; set < 64; ++set) {
      for (reserved = 0; reserved < 6; reserved += 5) {
        const int unknown = (set & ~known) != 0;
        dlrs_copy_options options = options_of(set, 1);
        options.reserved = reserved;
        if (!unknown && reserved == 0) continue;
        if (cast) REJECTS(BAD_ARG, 3, OPTION, -1, dlrs_cast(from, to, &options, ERR));
        else REJECTS(BAD_ARG, 3, OPTION, -1, dlrs_copy(from, to, &options, ERR));
        EQUAL(t_error.value, unknown ? set : reserved);
        CHECK(strstr(t_error.message, unknown ? "options->flags" : "options->reserved"));
      }
    }
  }
}

/* CPU-accessible memory, of tensors allocated here and elsewhere, copied to the CPU by each
 * function. */
static void test_host_memory_to_cpu(void) {
  static const int types[] = {kDLCUDAHost, kDLROCMHost, kDLCUDAManaged};
  float values[3] = {1, 2, 3};
  int64_t three = 3;
  int type, own, copy;
  for (type = 0; type < 3; ++type)
    for (own = 0; own < 2; ++own)
      for (copy = -1; copy <= 1; ++copy) {
        DLTensor memory = t_describe(values, F32, 1, &three, NULL);
        DLManagedTensorVersioned foreign, *src = &foreign, *out = NULL;
        int shared = own && copy < 1;
        memory.device.device_type = (DLDeviceType)types[type];
        foreign = t_managed(memory, 0);
        if (own) WORKS(dlrs_tensor_wrap(&memory, 0, NULL, NULL, &src, ERR));
        if (!own && copy < 0) {
          CHECK(dlrs_to_device(src, CPU, copy, NULL, &out, ERR) == DLRS_COPY_NEEDED);
          CHECK(out == NULL);
          continue;
        }
        WORKS(dlrs_to_device(src, CPU, copy, NULL, &out, ERR));
        CHECK((out->dl_tensor.data == (void *)values) == shared);
        CHECK(((out->flags & DLPACK_FLAG_BITMASK_IS_COPIED) != 0) == !shared);
        CHECK(out->dl_tensor.device.device_type == kDLCPU);
        CHECK(memcmp(out->dl_tensor.data, values, sizeof values) == 0);
        if (!shared) {
          ((float *)out->dl_tensor.data)[0] = 9;
          WORKS(dlrs_copy(out, src, NULL, ERR)); /* the other way, and back */
          EQUAL(values[0], 9);
          values[0] = 1;
          WORKS(dlrs_copy(src, out, NULL, ERR));
          EQUAL(((float *)out->dl_tensor.data)[0], 1);
        }
        if (own) dlrs_release(src); /* a shared tensor keeps it */
        CHECK(((float *)out->dl_tensor.data)[2] == 3);
        dlrs_release(out);
      }
}

int main(void) {
  test_host_memory_to_cpu();
  copies();
  order_k();
  unused_strides();
  explanations();
  flags();
  hooks();
  refuses();
  return t_close();
}
