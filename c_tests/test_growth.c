/* Structs with a size: every size of any version is accepted; a longer one of a newer header is
 * accepted if all members unknown to this library are 0, and rejected otherwise. */
#include "harness.h"

enum { ROOM = 8192, SIZE_MOST = 4096 };

static union { uint64_t aligned; unsigned char bytes[ROOM]; } given;

#define GIVEN(type) ((type *)(void *)given.bytes)

static int64_t shape[2] = {2, 3};

static dlrs_status alloc_options(void) {
  DLManagedTensorVersioned *out;
  dlrs_status status =
      dlrs_tensor_new(shape, 2, F32, CPU, GIVEN(dlrs_alloc_options), &out, ERR);
  dlrs_release(out);
  return status;
}

static dlrs_status import_options(void) {
  DLManagedTensorVersioned *tensor, *out;
  dlrs_status status;
  CHECK(dlrs_tensor_new(shape, 2, F32, CPU, NULL, &tensor, NULL) == DLRS_OK);
  status = dlrs_import_take(&tensor, GIVEN(dlrs_import_options), &out, ERR);
  dlrs_release(status == DLRS_OK ? out : tensor);
  return status;
}

static dlrs_status copy_options(void) {
  DLManagedTensorVersioned *tensor, *out;
  dlrs_status status;
  CHECK(dlrs_tensor_new(shape, 2, F32, CPU, NULL, &tensor, NULL) == DLRS_OK);
  memset(tensor->dl_tensor.data, 0, 24);
  status = dlrs_clone(tensor, CPU, GIVEN(dlrs_copy_options), &out, ERR);
  dlrs_release(out);
  dlrs_release(tensor);
  return status;
}

static dlrs_status workers_options(void) {
  void *workers;
  dlrs_status status;
  GIVEN(dlrs_workers_options)->threads = 1;
  status = dlrs_workers_new(GIVEN(dlrs_workers_options), &workers, ERR);
  dlrs_workers_free(workers);
  return status;
}

static dlrs_status print_options(void) {
  t_tensor good;
  char text[256];
  t_make(&good);
  return dlrs_tensor_to_string(&good.managed.dl_tensor, 0, GIVEN(dlrs_print_options), text,
                               sizeof text, NULL, ERR);
}

static dlrs_status view_step(void) {
  DLManagedTensorVersioned *tensor, *out;
  dlrs_status status;
  dlrs_view_step *step = GIVEN(dlrs_view_step);
  CHECK(dlrs_tensor_new(shape, 2, F32, CPU, NULL, &tensor, NULL) == DLRS_OK);
  step->op = DLRS_VIEW_READ_ONLY;
  status = dlrs_view_apply(tensor, step, 1, &out, ERR);
  dlrs_release(out);
  dlrs_release(tensor);
  return status;
}

/* Without Python in the process these reach this point. */
static dlrs_status with_python(dlrs_status status) {
  return status == DLRS_UNSUPPORTED ? DLRS_OK : status;
}

static dlrs_status py_import_options(void) {
  DLManagedTensorVersioned *out;
  return with_python(dlrs_py_import(shape, GIVEN(dlrs_py_import_options), &out, ERR));
}

static dlrs_status py_request(void) {
  t_tensor good;
  void *out;
  t_make(&good);
  return with_python(dlrs_py_export(&good.managed, GIVEN(dlrs_py_request), &out, ERR));
}

static dlrs_status py_request_out(void) {
  return with_python(dlrs_py_request_parse(NULL, 0, NULL, GIVEN(dlrs_py_request), ERR));
}

static dlrs_status py_error_options(void) {
  dlrs_error failure = DLRS_INIT(dlrs_error);
  return with_python(dlrs_py_error_set_as(&failure, GIVEN(dlrs_py_error_options), ERR));
}

static int copies_nothing(void *context, DLDevice device, const dlrs_byte_plan *plan, void *stream,
                          dlrs_fault *fault) {
  (void)context, (void)device, (void)plan, (void)stream, (void)fault;
  return DLRS_UNSUPPORTED;
}

static dlrs_status backend(void) {
  dlrs_status status;
  GIVEN(dlrs_backend)->copy = copies_nothing;
  status = dlrs_backend_set(kDLHexagon, GIVEN(dlrs_backend), NULL, ERR);
  CHECK(dlrs_backend_set(kDLHexagon, NULL, NULL, NULL) == DLRS_OK);
  return status;
}

/* Sizes where pointers have 8 bytes, ascending; the last is today's. A size is never removed. */
static const struct {
  const char *name;
  dlrs_status (*call)(void);
  size_t today;
  uint32_t sizes[4];
  int result; /* the struct is for a result */
} structs[] = {
    {"dlrs_alloc_options", alloc_options, sizeof(dlrs_alloc_options), {24, 40}, 0},
    {"dlrs_import_options", import_options, sizeof(dlrs_import_options), {32, 64}, 0},
    {"dlrs_copy_options", copy_options, sizeof(dlrs_copy_options), {32, 48}, 0},
    {"dlrs_workers_options", workers_options, sizeof(dlrs_workers_options), {16}, 0},
    {"dlrs_print_options", print_options, sizeof(dlrs_print_options), {16}, 0},
    {"dlrs_view_step", view_step, sizeof(dlrs_view_step), {64}, 0},
    {"dlrs_py_import_options", py_import_options, sizeof(dlrs_py_import_options), {32, 56}, 0},
    {"dlrs_py_request", py_request, sizeof(dlrs_py_request), {48}, 0},
    {"dlrs_py_request (out)", py_request_out, sizeof(dlrs_py_request), {48}, 1},
    {"dlrs_backend", backend, sizeof(dlrs_backend), {136}, 0},
    {"dlrs_py_error_options", py_error_options, sizeof(dlrs_py_error_options), {24}, 0},
};

static void takes(const char *what, size_t i, uint32_t size, size_t dirty_at, dlrs_status want) {
  memset(given.bytes, 0, sizeof given.bytes);
  memcpy(given.bytes, &size, sizeof size);
  if (dirty_at > 0) { given.bytes[dirty_at] = 1; }
  t_context = structs[i].name;
  if (!t_equal(structs[i].call(), want, __FILE__, __LINE__, what)) {
    printf("%s of %u bytes\n", structs[i].name, size);
  }
  if (want != DLRS_OK) {
    EQUAL(t_error.field, DLRS_FIELD_STRUCT_SIZE);
    EQUAL(t_error.value, size <= 4096 ? size : 0); /* which could be half of an address */
  }
}

static void each(size_t i) {
  const uint32_t *sizes = structs[i].sizes;
  uint32_t today = (uint32_t)structs[i].today, size;
  size_t n = 0;
  int result = structs[i].result;
  if (sizeof(void *) == 8) {
    while (n < 4 && sizes[n] != 0) {
      takes("a size that was released", i, sizes[n], 0, DLRS_OK);
      ++n;
    }
    EQUAL(sizes[n - 1], today);
    for (size = 0; size < sizes[0]; ++size) {
      takes("smaller than ever", i, size, 0, DLRS_STRUCT_SIZE);
    }
  }
  for (size = today + 1; size < today + 40; ++size) {
    takes("longer, and 0", i, size, 0, DLRS_OK);
    takes("longer, not 0 at the end", i, size, size - 1, result ? DLRS_OK : DLRS_STRUCT_SIZE);
    takes("longer, not 0 at the start", i, size, today, result ? DLRS_OK : DLRS_STRUCT_SIZE);
    takes("what lies behind does not count", i, size, size, DLRS_OK);
  }
  takes("the longest", i, SIZE_MOST, 0, DLRS_OK);
  takes("too long", i, SIZE_MOST + 1, 0, DLRS_STRUCT_SIZE);
  takes("no size", i, UINT32_MAX, 0, DLRS_STRUCT_SIZE);
}

/* A newer member's default is 0, as in a shorter struct. */
static void shorter_is_zero(void) {
  DLManagedTensorVersioned *tensor, *out;
  dlrs_import_options *options = GIVEN(dlrs_import_options);
  memset(given.bytes, 0xFF, sizeof given.bytes);
  memset(given.bytes, 0, offsetof(dlrs_import_options, device_types));
  CHECK(dlrs_tensor_new(shape, 2, F32, CPU, NULL, &tensor, NULL) == DLRS_OK);
  options->struct_size = (uint32_t)offsetof(dlrs_import_options, device_types);
  options->device_types = 0;
  options->ranks = 2;
  WORKS(dlrs_import_take(&tensor, options, &out, ERR));
  tensor = out;
  options->struct_size += 12; /* between two versions: no member is read in part */
  WORKS(dlrs_import_take(&tensor, options, &out, ERR));
  tensor = out;
  options->dtypes = NULL;
  options->struct_size = sizeof *options;
  REJECTS(UNSUPPORTED, 1, NDIM, -1, dlrs_import_take(&tensor, options, &out, ERR));
  dlrs_release(tensor);
}

int main(void) {
  size_t i;
  t_error.struct_size = sizeof t_error;
  for (i = 0; i < sizeof structs / sizeof *structs; ++i) {
    each(i);
  }
  t_context = "";
  shorter_is_zero();
  return t_close();
}
