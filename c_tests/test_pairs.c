/* The argument that an error names: every function of two tensors, with every fault on either side,
 * and on both. Faults of one tensor alone are reported first, the source's before the target's;
 * then mismatches, which are the target's; then unsupported operations, the source's first. */
#include "harness.h"

enum { SRC, DST };

typedef struct side {
  DLManagedTensorVersioned managed;
  int64_t shape[2], strides[2];
  double values[6];
} side;

static side operands[2];
static dlrs_error *const error = &t_error;

static void make(side *s) {
  s->shape[0] = 2;
  s->shape[1] = 3;
  t_compact(2, s->shape, s->strides);
  s->managed = t_managed(t_describe(s->values, F32, 2, s->shape, s->strides), 0);
}

/* As REFUSED, of the function with this name. */
static void refused(const char *name, int32_t (*call)(void), int32_t status, int32_t argument,
                    int32_t field, int32_t dimension) {
  char text[64];
  sprintf(text, "%s(...)", name);
  t_before();
  t_refused(__FILE__, __LINE__, text, call(), status, argument, field, dimension);
}

/* ---- Faults ---------------------------------------------------------------------------------*/

static void f_flags(side *s) { s->managed.flags = (uint64_t)1 << 63; }
static void f_ndim(side *s) { s->managed.dl_tensor.ndim = 65; }
static void f_shape(side *s) { s->managed.dl_tensor.shape = NULL; }
static void f_code(side *s) { s->managed.dl_tensor.dtype.code = 99; }
static void f_bits(side *s) { s->managed.dl_tensor.dtype.bits = 33; }
static void f_lanes(side *s) { s->managed.dl_tensor.dtype.lanes = 0; }
static void f_type(side *s) { s->managed.dl_tensor.device = t_device(99, 0); }
static void f_id(side *s) { s->managed.dl_tensor.device.device_id = 1; }
static void f_extent(side *s) { s->shape[1] = -1; }
static void f_strides(side *s) {
  s->managed.dl_tensor.strides = (int64_t *)(void *)((char *)s->strides + 1);
}
static void f_size(side *s) { s->shape[0] = s->shape[1] = INT64_MAX; }
static void f_reach(side *s) { s->strides[0] = INT64_MAX; }
static void f_data(side *s) { s->managed.dl_tensor.data = NULL; }
static void f_offset(side *s) { s->managed.dl_tensor.byte_offset = UINT64_MAX; }
static void f_read_only(side *s) { s->managed.flags = DLPACK_FLAG_BITMASK_READ_ONLY; }
static void f_unserved(side *s) { s->managed.dl_tensor.device.device_type = kDLHexagon; }
static void f_overlap(side *s) { s->strides[0] = 0; }

/* Found in this order: while one tensor is read, in the comparison of the two, before a copy,
 * last. */
enum when { READ = 1, FIT, MOVE, MEMORY };
/* Applies to: any tensor; a written one; the second of two. */
enum whom { ANYBODY, WRITTEN };

typedef struct fault {
  const char *name;
  void (*make)(side *);
  int32_t status, field;
  enum when when;
  enum whom whom;
} fault;

static const fault faults[] = {
    {"flags", f_flags, DLRS_FLAGS, DLRS_FIELD_FLAGS, READ, ANYBODY},
    {"ndim", f_ndim, DLRS_NDIM, DLRS_FIELD_NDIM, READ, ANYBODY},
    {"shape", f_shape, DLRS_SHAPE_NULL, DLRS_FIELD_SHAPE, READ, ANYBODY},
    {"code", f_code, DLRS_DTYPE_CODE, DLRS_FIELD_DTYPE_CODE, READ, ANYBODY},
    {"bits", f_bits, DLRS_DTYPE_BITS, DLRS_FIELD_DTYPE_BITS, READ, ANYBODY},
    {"lanes", f_lanes, DLRS_DTYPE_LANES, DLRS_FIELD_DTYPE_LANES, READ, ANYBODY},
    {"device type", f_type, DLRS_DEVICE_TYPE, DLRS_FIELD_DEVICE_TYPE, READ, ANYBODY},
    {"device id", f_id, DLRS_DEVICE_ID, DLRS_FIELD_DEVICE_ID, READ, ANYBODY},
    {"extent", f_extent, DLRS_SHAPE_NEG, DLRS_FIELD_SHAPE, READ, ANYBODY},
    {"strides", f_strides, DLRS_MISALIGNED_STRUCT, DLRS_FIELD_STRIDES, READ, ANYBODY},
    {"size", f_size, DLRS_SIZE_OVERFLOW, DLRS_FIELD_SHAPE, READ, ANYBODY},
    {"reach", f_reach, DLRS_EXTENT_OVERFLOW, DLRS_FIELD_STRIDES, READ, ANYBODY},
    {"data", f_data, DLRS_DATA_NULL, DLRS_FIELD_DATA, READ, ANYBODY},
    {"offset", f_offset, DLRS_OFFSET, DLRS_FIELD_BYTE_OFFSET, READ, ANYBODY},
    {"read-only", f_read_only, DLRS_READ_ONLY, DLRS_FIELD_FLAGS, FIT, WRITTEN},
    {"unserved", f_unserved, DLRS_DEVICE_TYPE, DLRS_FIELD_DEVICE_TYPE, MOVE, ANYBODY},
    {"overlap", f_overlap, DLRS_OVERLAP_DST, DLRS_FIELD_STRIDES, MEMORY, WRITTEN},
};
enum { FAULTS = sizeof faults / sizeof *faults };

/* ---- Functions of two tensors ---------------------------------------------------------------*/

#define M(i) (&operands[i].managed)
#define D(i) (&operands[i].managed.dl_tensor)

static char text[64];
static int32_t answer;
static double number;

static int32_t c_copy(void) { return dlrs_copy(M(SRC), M(DST), NULL, error); }
static int32_t c_desc(void) {
  return dlrs_copy_desc(D(SRC), M(SRC)->flags, D(DST), M(DST)->flags, NULL, error);
}
static int32_t c_explain(void) {
  return dlrs_copy_explain(D(SRC), M(SRC)->flags, D(DST), M(DST)->flags, NULL, text, sizeof text,
                           NULL, error);
}
static int32_t c_batch(void) {
  const DLManagedTensorVersioned *sources[1];
  DLManagedTensorVersioned *targets[1];
  sources[0] = M(SRC);
  targets[0] = M(DST);
  return dlrs_copy_batch(1, sources, targets, NULL, NULL, error);
}
static int32_t c_cast(void) { return dlrs_cast(M(SRC), M(DST), NULL, error); }
static int32_t c_equal(void) {
  return dlrs_equal(M(SRC), M(DST), DLRS_EQUAL_BITS, &answer, error);
}
static int32_t c_max_diff(void) { return dlrs_max_diff(M(SRC), M(DST), &number, error); }

typedef struct function {
  const char *name;
  int32_t (*call)(void);
  int32_t arguments[2];
  int writes;
  int dst_bits; /* of the second one's floats */
} function;

static const function functions[] = {
    {"dlrs_copy", c_copy, {1, 2}, 1, 32},         {"dlrs_copy_desc", c_desc, {1, 3}, 1, 32},
    {"dlrs_copy_explain", c_explain, {1, 3}, 1, 32}, {"dlrs_copy_batch", c_batch, {2, 3}, 1, 32},
    {"dlrs_cast", c_cast, {1, 2}, 1, 32},         {"dlrs_cast", c_cast, {1, 2}, 1, 16},
    {"dlrs_equal", c_equal, {1, 2}, 0, 32},       {"dlrs_max_diff", c_max_diff, {1, 2}, 0, 32},
};
enum { FUNCTIONS = sizeof functions / sizeof *functions };

static int concerns(const fault *f, const function *g, int which) {
  return f->whom == ANYBODY || (g->writes && which == DST);
}

/* Either side's fault, or none (FAULTS). */
static void try_pair(const function *g, int src_fault, int dst_fault) {
  const int chosen[2] = {src_fault, dst_fault};
  static char context[160];
  const fault *first = NULL;
  int32_t argument = 0;
  int i;
  for (i = 0; i < 2; ++i) {
    const fault *f = chosen[i] < FAULTS ? &faults[chosen[i]] : NULL;
    make(&operands[i]);
    if (i == DST) operands[i].managed.dl_tensor.dtype.bits = (uint8_t)g->dst_bits;
    if (f == NULL) continue;
    f->make(&operands[i]);
    if (concerns(f, g, i) && (first == NULL || f->when < first->when)) {
      first = f;
      argument = g->arguments[i];
    }
  }
  sprintf(context, "%s: %s, %s", g->name, src_fault < FAULTS ? faults[src_fault].name : "-",
          dst_fault < FAULTS ? faults[dst_fault].name : "-");
  t_context = context;
  if (first == NULL) {
    WORKS(g->call());
  } else {
    refused(g->name, g->call, first->status, argument, first->field, ANY);
  }
}

static void pairs(void) {
  int g, i, j;
  for (g = 0; g < FUNCTIONS; ++g) {
    for (i = 0; i <= FAULTS; ++i) {
      for (j = 0; j <= FAULTS; ++j) try_pair(&functions[g], i, j);
    }
  }
}

/* A mismatch is the second one's fault: nothing is broadcast, and only dlrs_cast converts. */
static void mismatches(void) {
  static const struct {
    const char *what;
    int64_t src[2], dst[3]; /* ndim and extents of the second one */
    DLDataType dtype;
    int32_t field, dimension;
  } rows[] = {
      {"the last extent", {2, 3}, {2, 2, 2}, {kDLFloat, 32, 1}, DLRS_FIELD_SHAPE, 1},
      {"(1, 3), (2, 3)", {1, 3}, {2, 2, 3}, {kDLFloat, 32, 1}, DLRS_FIELD_SHAPE, 0},
      {"(1, 3), (3)", {1, 3}, {1, 3, 0}, {kDLFloat, 32, 1}, DLRS_FIELD_NDIM, -1},
      {"(1, 1), ()", {1, 1}, {0, 0, 0}, {kDLFloat, 32, 1}, DLRS_FIELD_NDIM, -1},
      {"a code", {1, 1}, {2, 1, 1}, {kDLInt, 32, 1}, DLRS_FIELD_DTYPE_CODE, -1},
      {"bits", {1, 1}, {2, 1, 1}, {kDLFloat, 16, 1}, DLRS_FIELD_DTYPE_BITS, -1},
      {"lanes", {1, 1}, {2, 1, 1}, {kDLFloat, 32, 2}, DLRS_FIELD_DTYPE_LANES, -1},
  };
  int g;
  size_t i;
  for (g = 0; g < FUNCTIONS; ++g) {
    const function *f = &functions[g];
    for (i = 0; i < sizeof rows / sizeof *rows; ++i) {
      const int of_shape = rows[i].field <= DLRS_FIELD_SHAPE;
      t_context = rows[i].what;
      make(&operands[SRC]);
      make(&operands[DST]);
      memcpy(operands[SRC].shape, rows[i].src, sizeof rows[i].src);
      memcpy(operands[DST].shape, rows[i].dst + 1, sizeof rows[i].src);
      D(DST)->ndim = (int32_t)rows[i].dst[0];
      D(DST)->dtype = rows[i].dtype;
      if (of_shape ? f->call == c_equal : f->call == c_cast && rows[i].dtype.lanes == 1) {
        WORKS(f->call());
      } else {
        refused(f->name, f->call, of_shape ? DLRS_SHAPE_MISMATCH : DLRS_DTYPE_MISMATCH,
                f->arguments[DST], rows[i].field, rows[i].dimension);
      }
    }
    /* Both are opaque handles: no backend copies them, the first is named. */
    make(&operands[SRC]);
    make(&operands[DST]);
    D(SRC)->dtype = D(DST)->dtype = t_dtype(kDLOpaqueHandle, 64, 1);
    refused(f->name, f->call, DLRS_UNSUPPORTED, f->arguments[SRC], DLRS_FIELD_DTYPE_CODE, -1);
  }
  make(&operands[SRC]);
  D(DST)->dtype = t_dtype(kDLOpaqueHandle, 64, 1);
  refused("dlrs_cast", c_cast, DLRS_UNSUPPORTED, 2, DLRS_FIELD_DTYPE_CODE, -1);
}

/* ---- Functions of one tensor and another argument --------------------------------------------*/

static DLManagedTensorVersioned *out;
static char bytes[24];

static int32_t o_clone(void) { return dlrs_clone(M(SRC), CPU, NULL, &out, error); }
static int32_t o_contiguous(void) { return dlrs_contiguous(M(SRC), 'F', NULL, &out, error); }
static int32_t o_to_device(void) { return dlrs_to_device(M(SRC), CPU, 1, NULL, &out, error); }
static int32_t o_fill(void) { return dlrs_fill(M(SRC), bytes, F32, NULL, error); }
static int32_t o_fill_other(void) {
  return dlrs_fill(M(SRC), bytes, t_dtype(kDLFloat, 64, 1), NULL, error);
}

static void alone(void) {
  static const struct {
    const char *name;
    int32_t (*call)(void);
    int32_t argument;
    int writes, has_flags;
  } calls[] = {
      {"dlrs_clone", o_clone, 1, 0, 1},
      {"dlrs_contiguous", o_contiguous, 1, 0, 1},
      {"dlrs_to_device", o_to_device, 1, 0, 1},
      {"dlrs_fill", o_fill, 1, 1, 1},
      {"dlrs_fill", o_fill_other, 1, 1, 1},
  };
  static char context[160];
  size_t i, j;
  t_context = context;
  for (i = 0; i < sizeof calls / sizeof *calls; ++i) {
    for (j = 0; j < FAULTS; ++j) {
      const fault *f = &faults[j];
      if ((f->whom == WRITTEN && !calls[i].writes) || (j == 0 && !calls[i].has_flags)) continue;
      sprintf(context, "%s: %s", calls[i].name, f->name);
      make(&operands[SRC]);
      f->make(&operands[SRC]);
      refused(calls[i].name, calls[i].call, f->status, calls[i].argument, f->field, ANY);
    }
  }
}

/* Neither tensor is wrong. */
static void elsewhere(void) {
  t_source crooked = {0, 0, 0, 0, 1, 0};
  dlrs_allocator allocator = t_allocator(&crooked);
  DLManagedTensorVersioned *taken = M(SRC);
  dlrs_import_options options = DLRS_INIT(dlrs_import_options);
  t_context = "elsewhere";
  make(&operands[SRC]);
  /* The requested device. */
  REJECTS(DEVICE_TYPE, 2, DEVICE_TYPE, -1,
          dlrs_to_device(M(SRC), t_device(99, 0), 0, NULL, &out, ERR));
  REJECTS(DEVICE_ID, 2, DEVICE_ID, -1,
          dlrs_to_device(M(SRC), t_device(kDLCUDA, -1), 0, NULL, &out, ERR));
  REJECTS(DEVICE_TYPE, 2, DEVICE_TYPE, -1,
          dlrs_to_device(M(SRC), t_device(kDLHexagon, 0), 0, NULL, &out, ERR));
  REJECTS(DEVICE_TYPE, 2, DEVICE_TYPE, -1,
          dlrs_clone(M(SRC), t_device(kDLHexagon, 0), NULL, &out, ERR));
  REJECTS(DEVICE_TYPE, 2, DEVICE_TYPE, -1, dlrs_clone(M(SRC), t_device(99, 0), NULL, &out, ERR));
  REJECTS(BAD_ARG, 3, ANY, -1, dlrs_to_device(M(SRC), CPU, 2, NULL, &out, ERR));
  REJECTS(BAD_ARG, 2, ANY, -1, dlrs_contiguous(M(SRC), 'X', NULL, &out, ERR));
  /* The allocator. */
  options.copy = 1;
  WORKS(dlrs_allocator_set(kDLCPU, &allocator, NULL, ERR));
  refused("dlrs_clone", o_clone, DLRS_MISALIGNED, 0, DLRS_FIELD_NONE, -1);
  CHECK(strstr(t_error.message, "llocator") != NULL && strstr(t_error.message, "Copy") == NULL);
  refused("dlrs_contiguous", o_contiguous, DLRS_MISALIGNED, 0, DLRS_FIELD_NONE, -1);
  refused("dlrs_to_device", o_to_device, DLRS_MISALIGNED, 0, DLRS_FIELD_NONE, -1);
  REJECTS(MISALIGNED, 0, NONE, -1, dlrs_import_take(&taken, &options, &out, ERR));
  CHECK(crooked.given == 4 && crooked.taken == 4 && crooked.strange == 0);
  WORKS(dlrs_allocator_set(kDLCPU, NULL, NULL, ERR));
}

int main(void) {
  pairs();
  mismatches();
  alone();
  elsewhere();
  return t_close();
}
