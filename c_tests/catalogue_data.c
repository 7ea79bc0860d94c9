/* Passes the rows of rows.inc to every function that reads a tensor: a row describes the tensor's
 * fault, this file the result that each function must return. */
#include <limits.h>

#include "catalogue.h"

#define P31 2147483648
#define P32 4294967296
#define P61 2305843009213693952
#define P62 4611686018427387904
#define U63 9223372036854775808u
#define UMAX UINT64_MAX
#define MAX INT64_MAX
#define MIN INT64_MIN

enum data_kind { MEM, NIL, GUARD, LOW, HIGH, TOP };

typedef struct v_row {
  const char *id, *what;
  uint64_t flags;
  uint32_t minor;
  int dtype[3];
  int32_t device[2];
  int32_t ndim;
  int64_t shape[9], strides[9];
  enum data_kind data;
  uint64_t byte_offset;
  int32_t at_struct, at_layout, at_strict;
  int32_t field, dimension;
} v_row;

#define LIST(...) {__VA_ARGS__}
#define V(id, what, flags, minor, dtype, device, ndim, shape, strides, data, offset, s, l, t, f, d) \
  {#id, what, flags, minor, LIST dtype, LIST device, ndim, LIST shape, LIST strides, data, offset,  \
   DLRS_##s, DLRS_##l, DLRS_##t, DLRS_FIELD_##f, d},

static const v_row rows[] = {
#include "rows.inc"
};

/* The row's tensor, in all kinds. */
static t_tensor bad;

static int64_t *array(const int64_t *spec) {
  size_t count, i;
  int64_t *values;
  if (spec[0] == -1) return NULL;
  if (spec[0] == -2) return (int64_t *)t_guard();
  if (spec[0] == -3) return (int64_t *)((char *)t_before_guard(16) + 2);
  count = (size_t)spec[0];
  values = (int64_t *)t_before_guard(count * sizeof *values);
  for (i = 0; i < count; ++i) values[i] = spec[1 + (count > 8 ? 0 : i)];
  t_watch(values, count * sizeof *values);
  return values;
}

static void *data_of(enum data_kind kind) {
  switch (kind) {
    case MEM: return (char *)t_before_guard(4096) + 2048;
    case GUARD: return t_guard();
    case LOW: return (void *)(uintptr_t)64;
    case HIGH: return (void *)(uintptr_t)(((uint64_t)1 << 47) - 64);
    case TOP: return (void *)(UINTPTR_MAX - 63);
    default: return NULL;
  }
}

static void build(const v_row *row) {
  DLTensor *tensor = &bad.managed.dl_tensor;
  t_make(&bad);
  bad.managed.version.minor = row->minor;
  bad.managed.flags = row->flags;
  tensor->data = data_of(row->data);
  tensor->device = t_device(row->device[0], row->device[1]);
  tensor->dtype = t_dtype(row->dtype[0], row->dtype[1], row->dtype[2]);
  tensor->ndim = row->ndim;
  tensor->shape = array(row->shape);
  tensor->strides = array(row->strides);
  tensor->byte_offset = row->byte_offset;
  bad.legacy.dl_tensor = *tensor;
  t_watch(&bad, sizeof bad);
}

/* The call returns `want`: an error with the row's field and dimension, or success. */
#define ANSWERS(want, argument, call)                                         \
  do {                                                                        \
    if ((want) == DLRS_OK) {                                                  \
      WORKS(call);                                                            \
    } else {                                                                  \
      REFUSED(want, argument, row->field, row->dimension, call);              \
    }                                                                         \
  } while (0)

static int32_t at(const v_row *row, int32_t level) {
  return level == DLRS_LEVEL_STRUCT   ? row->at_struct
         : level == DLRS_LEVEL_LAYOUT ? row->at_layout
                                      : row->at_strict;
}

/* Bare and legacy tensors may have NULL strides; an import repairs them. */
static int32_t without_strides_rule(int32_t status) {
  return status == DLRS_STRIDES_NULL ? DLRS_OK : status;
}

/* Only DLRS_LEVEL_STRICT checks the ordinal of pinned or managed memory: an import keeps it. */
static int is_host_ordinal(const v_row *row) {
  int32_t type = row->device[0];
  int is_host = type == kDLCUDAHost || type == kDLROCMHost || type == kDLCUDAManaged;
  return is_host && row->device[1] > 0 && row->at_strict == DLRS_DEVICE_ID;
}

/* The result of an import or a copy. */
static int32_t taken(const v_row *row) {
  return is_host_ordinal(row) ? (int32_t)DLRS_OK : without_strides_rule(row->at_strict);
}

static int is_opaque(const v_row *row) {
  int32_t type = row->device[0];
  return type == kDLOpenCL || type == kDLVulkan || type == kDLMetal || type == kDLWebGPU;
}

static void validate(const v_row *row) {
  const DLTensor *bare = &bad.managed.dl_tensor;
  int32_t level;
  for (level = DLRS_LEVEL_STRUCT; level <= DLRS_LEVEL_STRICT; ++level) {
    int32_t want = at(row, level), loose = without_strides_rule(want);
    ANSWERS(want, 1, dlrs_validate_managed(&bad.managed, level, ERR));
    ANSWERS(loose, 1, dlrs_validate(bare, row->flags, level, ERR));
    EQUAL(dlrs_validate_managed(&bad.managed, level, NULL), want);
    EQUAL(dlrs_validate(bare, row->flags, level, NULL), loose);
    if (row->flags == 0) {
      ANSWERS(loose, 1, dlrs_validate_legacy(&bad.legacy, level, ERR));
    }
  }
  if (row->at_layout != DLRS_OK) {
    REFUSED(row->at_layout, 1, row->field, row->dimension,
            dlrs_validate_within(bare, row->flags, NULL, UINT64_MAX, ERR));
  }
}

static void query(const v_row *row) {
  const DLTensor *bare = &bad.managed.dl_tensor;
  int64_t numel = 77;
  uint64_t nbytes = 77;
  int32_t answer = 77;
  t_watch(&numel, sizeof numel);
  t_watch(&nbytes, sizeof nbytes);
  t_watch(&answer, sizeof answer);
  if (row->at_struct != DLRS_OK) {
    ANSWERS(row->at_struct, 1, dlrs_numel(bare, &numel, ERR));
    ANSWERS(row->at_struct, 1, dlrs_itemsize_bits(bare, row->flags, &nbytes, ERR));
    ANSWERS(row->at_struct, 1, dlrs_nbytes(bare, row->flags, &nbytes, ERR));
    ANSWERS(row->at_struct, 1, dlrs_is_contiguous(bare, 'C', &answer, ERR));
  }
  if (row->at_layout != DLRS_OK) return;
  if (is_opaque(row)) {
    REJECTS(UNSUPPORTED, 1, DEVICE_TYPE, -1,
            dlrs_validate_within(bare, row->flags, NULL, UINT64_MAX, ERR));
    WORKS(dlrs_nbytes(bare, row->flags, &nbytes, ERR));
  } else {
    WORKS(dlrs_numel(bare, &numel, ERR));
    WORKS(dlrs_nbytes(bare, row->flags, &nbytes, ERR));
    WORKS(dlrs_is_contiguous(bare, 'K', &answer, ERR));
  }
}

/* Creates a tensor from the row's shape, dtype and device alone. */
static void make(const v_row *row) {
  DLManagedTensorVersioned *out;
  int32_t want = row->at_strict;
  int of_shape = row->field == DLRS_FIELD_NDIM || row->field == DLRS_FIELD_SHAPE;
  int of_type = row->field >= DLRS_FIELD_DTYPE_CODE && row->field <= DLRS_FIELD_DEVICE_ID;
  if ((!of_shape && !of_type) || is_host_ordinal(row)) return;
  t_result(&out);
  REFUSED(want, ANY, row->field, row->dimension,
          dlrs_tensor_new_like(&bad.managed.dl_tensor, NULL, &out, ERR));
  REFUSED(want, ANY, ANY, row->dimension,
          dlrs_tensor_new(bad.managed.dl_tensor.shape, row->ndim, bad.managed.dl_tensor.dtype,
                          bad.managed.dl_tensor.device, NULL, &out, ERR));
}

/* Calls that take ownership on success: then one deleter runs, at the end. */
#define TAKES(kind, pointer, want, argument, release, call)      \
  do {                                                           \
    long before_take = t_deleted;                                \
    pointer = &bad.kind;                                         \
    ANSWERS(want, argument, call);                               \
    if ((want) == DLRS_OK) {                                     \
      CHECK(pointer == NULL);                                    \
      release;                                                   \
      EQUAL(t_deleted, before_take + 1);                         \
    } else {                                                     \
      CHECK(pointer == &bad.kind);                               \
    }                                                            \
  } while (0)

static void take(const v_row *row) {
  DLManagedTensorVersioned *out, *versioned;
  DLManagedTensor *legacy, *legacy_out;
  int32_t flags_fault = row->at_strict == DLRS_FLAGS ? (int32_t)DLRS_FLAGS : (int32_t)DLRS_OK;
  int32_t wrapped = row->at_layout != DLRS_OK ? row->at_layout : flags_fault;
  int32_t strict = taken(row);
  int freed = 0;
  dlrs_import_options options = DLRS_INIT(dlrs_import_options);
  options.level = DLRS_LEVEL_STRUCT;
  t_result(&out);
  ANSWERS(wrapped, ANY, dlrs_tensor_wrap(&bad.managed.dl_tensor, row->flags, t_count, &freed,
                                         &out, ERR));
  if (wrapped == DLRS_OK) {
    CHECK(out->dl_tensor.ndim == 0 || out->dl_tensor.strides != NULL);
    dlrs_release(out);
  }
  EQUAL(freed, wrapped == DLRS_OK);
  TAKES(managed, versioned, strict, 1, dlrs_release(out),
        dlrs_import_take(&versioned, NULL, &out, ERR));
  TAKES(managed, versioned, row->at_struct, 1, dlrs_release(out),
        dlrs_import_take(&versioned, &options, &out, ERR));
  if (row->flags == 0) {
    TAKES(legacy, legacy, row->at_struct, 1, dlrs_release(out),
          dlrs_from_legacy_take(&legacy, 0, &out, ERR));
  }
  t_result(&legacy_out);
  TAKES(managed, versioned, flags_fault != DLRS_OK ? flags_fault : row->at_struct, 1,
        dlrs_release_legacy(legacy_out),
        dlrs_to_legacy_take(&versioned, DLRS_LEGACY_REFUSE, &legacy_out, ERR));
}

/* Queries of one or two layouts. */
static void overlap(const v_row *row) {
  const DLTensor *bare = &bad.managed.dl_tensor;
  int32_t answer = 77;
  t_tensor good;
  t_make(&good);
  if (row->at_layout == DLRS_OK) return;
  t_watch(&answer, sizeof answer);
  REFUSED(row->at_layout, 1, row->field, row->dimension,
          dlrs_is_unique(bare, row->flags, &answer, ERR));
  REFUSED(row->at_layout, 1, row->field, row->dimension,
          dlrs_may_overlap(bare, row->flags, &good.managed.dl_tensor, 0, &answer, ERR));
  REFUSED(row->at_layout, 3, row->field, row->dimension,
          dlrs_may_overlap(&good.managed.dl_tensor, 0, bare, row->flags, &answer, ERR));
}

/* Other functions that read or write elements; each side of each is in test_pairs.c. */
static void elements(const v_row *row) {
  t_tensor good;
  int32_t answer = 77, want = taken(row);
  double difference = 77;
  float value = 1;
  if (want == DLRS_SUBBYTE) return;
  t_make(&good);
  if (want == DLRS_OK) {
    /* Managed memory needs a driver. */
    if (!is_host_ordinal(row) || row->device[0] == kDLCUDAManaged) return;
    WORKS(dlrs_fill(&bad.managed, &value, F32, NULL, ERR));
    WORKS(dlrs_equal(&bad.managed, &bad.managed, DLRS_EQUAL_BITS, &answer, ERR));
    EQUAL(answer, 1);
    WORKS(dlrs_max_diff(&bad.managed, &bad.managed, &difference, ERR));
    return;
  }
  t_watch(&good, sizeof good);
  t_watch(&answer, sizeof answer);
  REFUSED(want, 1, row->field, row->dimension,
          dlrs_cast(&bad.managed, &good.managed, NULL, ERR));
  REFUSED(want, 1, row->field, row->dimension,
          dlrs_fill(&bad.managed, &value, F32, NULL, ERR));
  REFUSED(want, 2, row->field, row->dimension,
          dlrs_equal(&good.managed, &bad.managed, DLRS_EQUAL_VALUES, &answer, ERR));
}

/* Copies reject a bad source and a bad destination; K rows test valid ones. */
static void copy(const v_row *row) {
  DLManagedTensorVersioned *out;
  t_tensor good;
  const DLTensor *bare = &bad.managed.dl_tensor;
  int32_t want = taken(row);
  if (want == DLRS_SUBBYTE) return;
  t_make(&good);
  if (want == DLRS_OK) {
    if (!is_host_ordinal(row) || row->device[0] == kDLCUDAManaged) return;
    WORKS(dlrs_clone(&bad.managed, CPU, NULL, &out, ERR));
    WORKS(dlrs_copy(&bad.managed, out, NULL, ERR));
    WORKS(dlrs_cast(&bad.managed, out, NULL, ERR));
    dlrs_release(out);
    return;
  }
  t_watch(&good, sizeof good);
  t_result(&out);
  REFUSED(want, 1, row->field, row->dimension,
          dlrs_copy(&bad.managed, &good.managed, NULL, ERR));
  REFUSED(want, 3, row->field, row->dimension,
          dlrs_copy_desc(&good.managed.dl_tensor, 0, bare, row->flags, NULL, ERR));
  REFUSED(want, 1, row->field, row->dimension, dlrs_clone(&bad.managed, CPU, NULL, &out, ERR));
  REFUSED(want, 1, row->field, row->dimension,
          dlrs_contiguous(&bad.managed, 'C', NULL, &out, ERR));
  REFUSED(want, 1, row->field, row->dimension,
          dlrs_to_device(&bad.managed, CPU, 1, NULL, &out, ERR));
}

/* Tensors with a valid shape are printed; a value is read only where that is possible. */
static void print(const v_row *row) {
  char *end = (char *)t_before_guard(600);
  size_t nbytes = 77;
  int32_t status;
  if (strcmp(row->id, "V45") == 0) return; /* its elements exceed the memory here */
  status = dlrs_tensor_to_string(&bad.managed.dl_tensor, row->flags, NULL, end, 600, &nbytes, ERR);
  CHECK(status == DLRS_OK || (status == row->at_struct && nbytes == 77));
  if (status == DLRS_OK) EQUAL(strlen(end), nbytes);
  EQUAL(dlrs_managed_to_string(&bad.managed, NULL, end, 600, &nbytes, NULL), status);
  if (status != DLRS_OK) {
    REFUSED(status, 1, row->field, row->dimension,
            dlrs_tensor_to_string(&bad.managed.dl_tensor, row->flags, NULL, end, 600, NULL, ERR));
  }
}

/* The same calls succeed with a valid tensor. */
static void good_next(void) {
  DLManagedTensorVersioned *out, *clone, *given;
  DLManagedTensor *legacy_out;
  t_tensor good;
  float into[6];
  DLTensor target;
  t_make(&good);
  target = t_describe(into, F32, 2, good.shape, good.strides);
  WORKS(dlrs_validate_managed(&good.managed, DLRS_LEVEL_STRICT, ERR));
  WORKS(dlrs_copy_desc(&good.managed.dl_tensor, 0, &target, 0, NULL, ERR));
  CHECK(memcmp(into, good.values, sizeof into) == 0);
  WORKS(dlrs_clone(&good.managed, CPU, NULL, &clone, ERR));
  CHECK(memcmp(clone->dl_tensor.data, good.values, sizeof into) == 0);
  dlrs_release(clone);
  given = &good.managed;
  WORKS(dlrs_import_take(&given, NULL, &out, ERR));
  WORKS(dlrs_to_legacy_take(&out, DLRS_LEGACY_REFUSE, &legacy_out, ERR));
  dlrs_release_legacy(legacy_out);
}

void c_data_rows(void (*mark)(const char *id)) {
  size_t i;
  long live = inject_live();
  for (i = 0; i < sizeof rows / sizeof *rows; ++i) {
    char context[128];
    void (*const drivers[])(const v_row *) = {validate, query, make, take,
                                                 copy, print, overlap, elements};
    size_t driver;
    snprintf(context, sizeof context, "%s %s", rows[i].id, rows[i].what);
    t_context = context;
    for (driver = 0; driver < sizeof drivers / sizeof *drivers; ++driver) {
      build(&rows[i]);
      drivers[driver](&rows[i]);
      t_unwatch();
      t_guards_free();
    }
    good_next();
    EQUAL(inject_live(), live);
    mark(rows[i].id);
    t_context = "";
  }
}
