/* Properties of a new tensor: the requested alignment, the given options, and no bits of the
 * memory's previous content. */
#include "harness.h"
#include "scattered.h"

static t_source dirty_source;
static dlrs_allocator dirty;

/* ---- The source -----------------------------------------------------------------------------*/

enum { ROOM = 1 << 16 };
static unsigned char room[ROOM];
static int64_t shape[3], strides[3];
static DLManagedTensorVersioned src;

static DLTensor *tensor_of(DLManagedTensorVersioned *made) { return &made->dl_tensor; }

/* ---- Every function that creates a tensor from another one ----------------------------------*/

typedef struct made {
  DLManagedTensorVersioned *tensor;
  DLManagedTensor *legacy;
} made;

#define CALL(name, call) \
  static int32_t name(made *m) { return (void)m, (call); }
CALL(m_clone, dlrs_clone(&src, CPU, NULL, &m->tensor, ERR))
CALL(m_c, dlrs_contiguous(&src, 'C', NULL, &m->tensor, ERR))
CALL(m_f, dlrs_contiguous(&src, 'F', NULL, &m->tensor, ERR))
CALL(m_k, dlrs_contiguous(&src, 'K', NULL, &m->tensor, ERR))
CALL(m_to_device, dlrs_to_device(&src, CPU, 1, NULL, &m->tensor, ERR))
static dlrs_import_options import_of(int32_t order, uint32_t align_bytes) {
  dlrs_import_options options = DLRS_INIT(dlrs_import_options);
  options.level = DLRS_LEVEL_LAYOUT; /* rows may start inside a byte */
  options.copy = 1;
  options.order = order;
  options.align_bytes = align_bytes;
  return options;
}
static int32_t m_import(made *m) {
  const dlrs_import_options options = import_of('F', 0);
  DLManagedTensorVersioned *taken = &src;
  return dlrs_import_take(&taken, &options, &m->tensor, ERR);
}
static int32_t m_to_legacy(made *m) {
  DLManagedTensorVersioned *taken = &src;
  int32_t status;
  src.flags |= DLPACK_FLAG_BITMASK_READ_ONLY;
  status = dlrs_to_legacy_take(&taken, DLRS_LEGACY_COPY, &m->legacy, ERR);
  src.flags &= ~DLPACK_FLAG_BITMASK_READ_ONLY;
  return status;
}

static const struct {
  const char *name;
  int32_t (*make)(made *);
} ways[] = {
    {"dlrs_clone", m_clone},
    {"dlrs_contiguous C", m_c},     {"dlrs_contiguous F", m_f},
    {"dlrs_contiguous K", m_k},     {"dlrs_to_device", m_to_device},
    {"dlrs_import_take", m_import}, {"dlrs_to_legacy_take", m_to_legacy},
};
enum { WAYS = sizeof ways / sizeof *ways };

static void release(made *m) {
  if (m->tensor != NULL) dlrs_release(m->tensor);
  if (m->legacy != NULL) dlrs_release_legacy(m->legacy);
  m->tensor = NULL;
  m->legacy = NULL;
}

/* ---- Unused bits ----------------------------------------------------------------------------*/

static void bits(void) {
  static const struct {
    int code, bits, lanes;
  } dtypes[] = {{kDLUInt, 1, 1}, {kDLUInt, 2, 1}, {kDLInt, 4, 1},  {kDLFloat6_e2m3fn, 6, 1},
                {kDLUInt, 4, 3}, {kDLUInt, 1, 5}, {kDLInt, 2, 11}, {kDLFloat4_e2m1fn, 4, 1}};
  static char context[128];
  long round, tails = 0;
  size_t i, n;
  t_context = context;
  draw_bytes(room, ROOM);
  for (round = 0; round < 1500; ++round) {
    const int d = (int)below(sizeof dtypes / sizeof *dtypes);
    src.dl_tensor.ndim = (int32_t)below(4);
    for (n = 0; n < 3; ++n) shape[n] = 1 + below(6);
    scattered(src.dl_tensor.ndim, shape, dtypes[d].bits * dtypes[d].lanes, 0, ROOM, strides,
              &src.dl_tensor.byte_offset);
    src.dl_tensor.dtype = t_dtype(dtypes[d].code, dtypes[d].bits, dtypes[d].lanes);
    dirty_source.dirt = round % 2 == 0 ? 0xA5 : 0xFF;
    for (i = 0; i < WAYS; ++i) {
      made m = {NULL, NULL};
      int64_t numel = 1;
      uint64_t used;
      int32_t same = 0;
      DLTensor *t;
      sprintf(context, "%s, %d bits, %d lanes", ways[i].name, dtypes[d].bits, dtypes[d].lanes);
      if (ways[i].make(&m) == DLRS_FOREIGN) continue; /* it is dense already, and foreign */
      CHECK(m.tensor != NULL || m.legacy != NULL);
      if (m.tensor == NULL && m.legacy == NULL) continue;
      t = m.tensor != NULL ? tensor_of(m.tensor) : &m.legacy->dl_tensor;
      for (n = 0; n < (size_t)t->ndim; ++n) numel *= t->shape[n];
      used = (uint64_t)numel * (uint64_t)(dtypes[d].bits * dtypes[d].lanes);
      if (used % 8 != 0) {
        const unsigned char last = ((unsigned char *)t->data)[used / 8];
        ++tails;
        CHECK(last >> used % 8 == 0);
      }
      if (m.tensor != NULL) {
        CHECK(dlrs_equal(&src, m.tensor, DLRS_EQUAL_BITS, &same, ERR) == DLRS_OK && same);
      }
      release(&m);
    }
  }
  CHECK(tails > 1000);
}

/* ---- The same on a device whose memory the CPU cannot access ---------------------------------*/

static void far_bits(void) {
  static dlrs_backend backend;
  const DLDevice device = t_device(kDLExtDev, 0);
  int64_t n;
  size_t i;
  t_context = "device";
  backend = t_backend(&dirty_source, "far");
  WORKS(dlrs_backend_set(kDLExtDev, &backend, NULL, ERR));
  dirty_source.dirt = 0xA5;
  for (n = 1; n < 20; ++n) {
    for (i = 1; i < 5; ++i) { /* bits */
      DLManagedTensorVersioned *there = NULL, *more = NULL, *back = NULL;
      const uint64_t used = (uint64_t)n * i;
      int32_t same = 0;
      if (i == 3) continue;
      src.dl_tensor = t_describe(room, t_dtype(kDLUInt, (int)i, 1), 1, shape, strides);
      src.flags = 0;
      shape[0] = n;
      strides[0] = 1;
      WORKS(dlrs_to_device(&src, device, 0, NULL, &there, ERR));
      WORKS(dlrs_clone(there, device, NULL, &more, ERR));
      WORKS(dlrs_to_device(there, CPU, 0, NULL, &back, ERR));
      if (there == NULL || more == NULL || back == NULL) continue;
      if (used % 8 != 0) { /* the memory of this device is readable by the test */
        CHECK(((unsigned char *)there->dl_tensor.data)[used / 8] >> used % 8 == 0);
        CHECK(((unsigned char *)more->dl_tensor.data)[used / 8] >> used % 8 == 0);
        CHECK(((unsigned char *)back->dl_tensor.data)[used / 8] >> used % 8 == 0);
      }
      WORKS(dlrs_equal(&src, back, DLRS_EQUAL_BITS, &same, ERR));
      CHECK(same);
      /* Elements of a device are for copies only; the CPU's functions reject them. */
      REJECTS(DEVICE_TYPE, ANY, ANY, -1, dlrs_equal(there, more, DLRS_EQUAL_BITS, &same, ERR));
      dlrs_release(there);
      dlrs_release(more);
      dlrs_release(back);
    }
  }
  WORKS(dlrs_backend_set(kDLExtDev, NULL, NULL, ERR));
}

/* ---- Alignment ------------------------------------------------------------------------------*/

static void alignment(void) {
  static char context[128];
  DLManagedTensorVersioned *taken, *kept[16];
  uint32_t align_bytes;
  int copy, i, far = 0;
  t_context = context;
  src.dl_tensor = t_describe(room + 4, F32, 2, shape, strides);
  src.flags = 0;
  shape[0] = 100;
  shape[1] = 1;
  for (align_bytes = 1; align_bytes <= 1u << 16; align_bytes *= 2) {
    for (copy = 0; copy < 2; ++copy) {
      for (i = 0; i < 16; ++i) {
        dlrs_import_options options = import_of(i % 3 == 0 ? 'C' : i % 3 == 1 ? 'K' : 0, align_bytes);
        uint64_t first;
        options.copy = copy;
        options.level = i % 2 == 0 ? DLRS_LEVEL_STRUCT : DLRS_LEVEL_STRICT;
        strides[0] = i % 2 == 0 ? 1 : 2; /* dense, and not */
        strides[1] = 1;
        src.dl_tensor.byte_offset = i % 5 == 0 ? 0 : 4;
        sprintf(context, "align_bytes %u, copy %d, %d", (unsigned)align_bytes, copy, i);
        kept[i] = NULL;
        taken = &src;
        WORKS(dlrs_import_take(&taken, &options, &kept[i], ERR));
        if (kept[i] == NULL) continue;
        first = (uintptr_t)tensor_of(kept[i])->data + tensor_of(kept[i])->byte_offset;
        EQUAL(first % align_bytes, 0);
        far += tensor_of(kept[i])->data != room + 4;
      }
      for (i = 0; i < 16; ++i) {
        if (kept[i] != NULL) dlrs_release(kept[i]);
      }
    }
  }
  CHECK(far > 100);
}

/* An allocator's arguments are those of the options. */
static void asked(void) {
  dlrs_import_options options = import_of(0, 4096);
  DLManagedTensorVersioned *taken = &src;
  made m = {NULL, NULL};
  t_context = "asked";
  WORKS(dlrs_import_take(&taken, &options, &m.tensor, ERR));
  EQUAL(t_request_of(m.tensor->dl_tensor.data).align_bytes, 4096);
  release(&m);
  options.align_bytes = 16;
  taken = &src;
  WORKS(dlrs_import_take(&taken, &options, &m.tensor, ERR));
  EQUAL(t_request_of(m.tensor->dl_tensor.data).align_bytes, 256);
  release(&m);
}

/* ---- Members of dlrs_alloc_options, by every function that takes them ------------------------*/

static dlrs_alloc_options alloc_options;
CALL(a_new, dlrs_tensor_new(shape, 2, src.dl_tensor.dtype, CPU, &alloc_options, &m->tensor, ERR))
CALL(a_like, dlrs_tensor_new_like(&src.dl_tensor, &alloc_options, &m->tensor, ERR))

static void alloc_members(void) {
  static int32_t (*const calls[])(made *) = {a_new, a_like};
  t_source source = {0, 0, 0, 0, 0, 0};
  dlrs_allocator other = t_allocator(&source);
  size_t i;
  int member;
  t_context = "dlrs_alloc_options";
  shape[0] = 5;
  shape[1] = 3;
  src.dl_tensor = t_describe(room, t_dtype(kDLUInt, 4, 1), 2, shape, NULL);
  for (member = 0; member < 4; ++member) {
    memset(&alloc_options, 0, sizeof alloc_options);
    alloc_options.struct_size = sizeof alloc_options;
    if (member == 1) alloc_options.align_bytes = 8192;
    if (member == 2) alloc_options.flags = DLPACK_FLAG_BITMASK_IS_SUBBYTE_TYPE_PADDED;
    if (member == 3) alloc_options.allocator = &other;
    for (i = 0; i < sizeof calls / sizeof *calls; ++i) {
      made m = {NULL, NULL};
      CHECK(calls[i](&m) == DLRS_OK);
      if (m.tensor == NULL) continue;
      CHECK((uintptr_t)tensor_of(m.tensor)->data % (member == 1 ? 8192 : 256) == 0);
      EQUAL((m.tensor->flags & DLPACK_FLAG_BITMASK_IS_SUBBYTE_TYPE_PADDED) != 0, member == 2);
      EQUAL(source.given, member == 3 ? (long)i + 1 : 0);
      if (member == 3) EQUAL(t_request_of(m.tensor->dl_tensor.data).nbytes, 8);
      release(&m);
    }
  }
}

/* ---- Members of dlrs_copy_options, by every function that takes them ------------------------*/

static dlrs_copy_options copy_options;
static long hook_parts;
static int32_t hook(void *context, size_t n, void (*body)(void *, size_t), void *body_context) {
  size_t i;
  CHECK(context == &hook_parts);
  for (i = 0; i < n; ++i) body(body_context, i);
  hook_parts += (long)n;
  return 0;
}

enum { WIDE = 2048 };
static DLManagedTensorVersioned large, dst, half;
static int64_t large_shape[2] = {WIDE, WIDE}, turned[2] = {1, WIDE}, dense[2] = {WIDE, 1};
static float *large_values, *dst_values;

CALL(c_copy, dlrs_copy(&large, &dst, &copy_options, ERR))
CALL(c_desc, dlrs_copy_desc(&large.dl_tensor, 0, &dst.dl_tensor, 0, &copy_options, ERR))
static int32_t c_batch(made *m) {
  const DLManagedTensorVersioned *sources[1];
  DLManagedTensorVersioned *targets[1];
  (void)m;
  sources[0] = &large;
  targets[0] = &dst;
  return dlrs_copy_batch(1, sources, targets, &copy_options, NULL, ERR);
}
CALL(c_cast, dlrs_cast(&large, &half, &copy_options, ERR))
static int32_t c_fill(made *m) {
  const double one = 1;
  (void)m;
  return dlrs_fill(&large, &one, t_dtype(kDLFloat, 64, 1), &copy_options, ERR);
}
CALL(c_clone, dlrs_clone(&large, CPU, &copy_options, &m->tensor, ERR))
CALL(c_contiguous, dlrs_contiguous(&large, 'C', &copy_options, &m->tensor, ERR))
CALL(c_to_device, dlrs_to_device(&large, CPU, 1, &copy_options, &m->tensor, ERR))
static int32_t c_import(made *m) {
  dlrs_import_options options = import_of('C', 0);
  DLManagedTensorVersioned *taken = &large;
  options.copy_options = &copy_options;
  return dlrs_import_take(&taken, &options, &m->tensor, ERR);
}

static void copy_members(void) {
  static const struct {
    const char *name;
    int32_t (*call)(made *);
    int values; /* elements are converted, so raw bytes are rejected */
  } calls[] = {
      {"dlrs_copy", c_copy, 0},           {"dlrs_copy_desc", c_desc, 0},
      {"dlrs_copy_batch", c_batch, 0},    {"dlrs_cast", c_cast, 1},
      {"dlrs_fill", c_fill, 1},           {"dlrs_clone", c_clone, 0},
      {"dlrs_contiguous", c_contiguous, 0}, {"dlrs_to_device", c_to_device, 0},
      {"dlrs_import_take", c_import, 0},
  };
  size_t i;
  large_values = (float *)calloc(WIDE * WIDE, sizeof(float));
  dst_values = (float *)calloc(WIDE * WIDE, sizeof(float));
  for (i = 0; i < sizeof calls / sizeof *calls; ++i) {
    made m = {NULL, NULL};
    t_context = calls[i].name;
    large = t_managed(t_describe(large_values, F32, 2, large_shape, turned), 0);
    dst = t_managed(t_describe(dst_values, F32, 2, large_shape, dense), 0);
    half = t_managed(t_describe(dst_values, t_dtype(kDLFloat, 16, 1), 2, large_shape, dense), 0);
    memset(&copy_options, 0, sizeof copy_options);
    copy_options.struct_size = sizeof copy_options;
    copy_options.threads = 4;
    copy_options.parallel_for = hook;
    copy_options.parallel_context = &hook_parts;
    hook_parts = 0;
    CHECK(calls[i].call(&m) == DLRS_OK);
    CHECK(hook_parts > 1);
    release(&m);
    copy_options.threads = 1;
    hook_parts = 0;
    CHECK(calls[i].call(&m) == DLRS_OK);
    EQUAL(hook_parts, 0);
    release(&m);
    /* Elements of an unknown dtype: by their bytes. */
    copy_options.flags = DLRS_COPY_RAW_BYTES;
    large.dl_tensor.dtype.code = dst.dl_tensor.dtype.code = 99;
    EQUAL(calls[i].call(&m), calls[i].values ? DLRS_BAD_ARG : DLRS_OK);
    release(&m);
    copy_options.flags = 0;
    EQUAL(calls[i].call(&m), DLRS_DTYPE_CODE);
    release(&m);
  }
  free(large_values);
  free(dst_values);
}

int main(void) {
  src = t_managed(t_describe(room, F32, 0, shape, strides), 0);
  dirty = t_allocator(&dirty_source);
  CHECK(dlrs_allocator_set(kDLCPU, &dirty, NULL, NULL) == DLRS_OK);
  bits();
  alignment();
  asked();
  CHECK(dlrs_allocator_set(kDLCPU, NULL, NULL, NULL) == DLRS_OK);
  bits(); /* run.sh makes the C library fill new memory */
  alignment();
  far_bits();
  alloc_members();
  copy_members();
  CHECK(dirty_source.given == dirty_source.taken && dirty_source.strange == 0);
  return t_close();
}
