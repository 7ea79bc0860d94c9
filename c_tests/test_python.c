/* The functions for Python, in a process without Python: those that need it report that, the others
 * work. With Python: tests/python/test_abi.py. */
#include "harness.h"

/* Not a Python object, and not dereferenced. */
static void *const SOME_OBJECT = &t_deleted;

static void without_python(void) {
  t_tensor good;
  DLManagedTensorVersioned *versioned, *out;
  DLManagedTensor *legacy;
  void *object;
  dlrs_error failure;
  dlrs_py_request request = DLRS_INIT(dlrs_py_request);
  memset(&failure, 0, sizeof failure);
  t_make(&good);
  versioned = &good.managed;
  legacy = &good.legacy;
  /* The C library's dlsym keeps the text of its last failure. */
  t_watch(&good, sizeof good);
  t_watch(&versioned, sizeof versioned);
  t_watch(&legacy, sizeof legacy);
  t_result(&out);
  t_result(&object);
  REJECTS(UNSUPPORTED, ANY, ANY, -1, dlrs_py_capsule_new_take(&versioned, &object, ERR));
  CHECK(strstr(t_error.message, "there is no Python in this process") != NULL);
  REJECTS(UNSUPPORTED, ANY, ANY, -1, dlrs_py_capsule_new_legacy_take(&legacy, &object, ERR));
  REJECTS(UNSUPPORTED, ANY, ANY, -1, dlrs_py_capsule_consume(SOME_OBJECT, 0, &out, ERR));
  REJECTS(UNSUPPORTED, ANY, ANY, -1, dlrs_py_export(versioned, NULL, &object, ERR));
  REJECTS(UNSUPPORTED, ANY, ANY, -1, dlrs_py_import(SOME_OBJECT, NULL, &out, ERR));
  t_watch(&request, sizeof request);
  REJECTS(UNSUPPORTED, ANY, ANY, -1, dlrs_py_request_parse(NULL, 0, NULL, &request, ERR));
  REJECTS(UNSUPPORTED, ANY, ANY, -1,
          dlrs_py_wrap(&versioned->dl_tensor, 0, SOME_OBJECT, &out, ERR));
  REJECTS(UNSUPPORTED, ANY, ANY, -1,
          dlrs_py_export_desc(&versioned->dl_tensor, 0, SOME_OBJECT, NULL, &object, ERR));
  REJECTS(UNSUPPORTED, ANY, ANY, -1,
          dlrs_py_holder_new_take(&versioned, "test.private", &object, ERR));
  REJECTS(UNSUPPORTED, ANY, ANY, -1, dlrs_py_error_set_as(&failure, NULL, ERR));
  CHECK(dlrs_py_holder_get(SOME_OBJECT, "test.private") == NULL);
  CHECK(dlrs_py_holder_get(NULL, "test.private") == NULL);
  CHECK(dlrs_py_holder_get(SOME_OBJECT, NULL) == NULL);
  t_unwatch();
}

static void nulls(void) {
  DLManagedTensorVersioned *none = NULL, *out;
  DLManagedTensor *no_legacy = NULL;
  void *object;
  t_result(&out);
  t_result(&object);
  REJECTS(NULL_ARG, 1, ANY, -1, dlrs_py_capsule_new_take(NULL, &object, ERR));
  REJECTS(NULL_ARG, 1, ANY, -1, dlrs_py_capsule_new_take(&none, &object, ERR));
  REJECTS(NULL_ARG, 1, ANY, -1, dlrs_py_capsule_new_legacy_take(NULL, &object, ERR));
  REJECTS(NULL_ARG, 1, ANY, -1, dlrs_py_capsule_new_legacy_take(&no_legacy, &object, ERR));
  REJECTS(NULL_ARG, 1, ANY, -1, dlrs_py_capsule_consume(NULL, 0, &out, ERR));
  REJECTS(FLAGS, 2, FLAGS, -1, dlrs_py_capsule_consume(SOME_OBJECT, 8, &out, ERR));
  REJECTS(NULL_ARG, 1, ANY, -1, dlrs_py_export(NULL, NULL, &object, ERR));
  REJECTS(NULL_ARG, 1, ANY, -1, dlrs_py_import(NULL, NULL, &out, ERR));
  t_unwatch();
}

/* Required properties of the functions for bindings and of their structs. */
static void bindings(void) {
  t_tensor good;
  DLManagedTensorVersioned *versioned, *none = NULL, *out;
  dlrs_py_request request;
  dlrs_py_error_options words;
  const DLTensor *tensor;
  void *object, *args[1];
  dlrs_error failure = DLRS_INIT(dlrs_error);
  t_make(&good);
  versioned = &good.managed;
  tensor = &versioned->dl_tensor;
  args[0] = SOME_OBJECT;
  memset(&request, 0, sizeof request);
  memset(&words, 0, sizeof words);
  t_watch(&good, sizeof good);
  t_watch(&request, sizeof request);
  t_result(&out);
  t_result(&object);
  REJECTS(NULL_ARG, 1, ANY, -1, dlrs_py_wrap(NULL, 0, SOME_OBJECT, &out, ERR));
  REJECTS(NULL_ARG, 1, ANY, -1, dlrs_py_export_desc(NULL, 0, SOME_OBJECT, NULL, &object, ERR));
  REJECTS(STRUCT_SIZE, 4, STRUCT_SIZE, -1,
          dlrs_py_export_desc(tensor, 0, SOME_OBJECT, &request, &object, ERR));
  REJECTS(NULL_ARG, 4, ANY, -1, dlrs_py_request_parse(args, 0, NULL, NULL, ERR));
  REJECTS(NULL_ARG, 1, ANY, -1, dlrs_py_request_parse(NULL, 0, SOME_OBJECT, &request, ERR));
  REJECTS(STRUCT_SIZE, 4, STRUCT_SIZE, -1, dlrs_py_request_parse(args, 0, NULL, &request, ERR));
  REJECTS(NULL_ARG, 1, ANY, -1, dlrs_py_holder_new_take(NULL, "test.private", &object, ERR));
  REJECTS(NULL_ARG, 1, ANY, -1, dlrs_py_holder_new_take(&none, "test.private", &object, ERR));
  REJECTS(NULL_ARG, 1, ANY, -1, dlrs_py_error_set_as(NULL, &words, ERR));
  REJECTS(STRUCT_SIZE, 2, STRUCT_SIZE, -1, dlrs_py_error_set_as(&failure, &words, ERR));
  CHECK(versioned == &good.managed);
  t_unwatch();
}

static void options(void) {
  dlrs_py_request request;
  dlrs_py_import_options import;
  dlrs_import_options inner;
  t_tensor good;
  DLManagedTensorVersioned *out;
  void *object;
  t_make(&good);
  memset(&request, 0, sizeof request);
  memset(&import, 0, sizeof import);
  memset(&inner, 0, sizeof inner);
  t_result(&out);
  t_result(&object);
  REJECTS(STRUCT_SIZE, 2, STRUCT_SIZE, -1, dlrs_py_export(&good.managed, &request, &object, ERR));
  REJECTS(STRUCT_SIZE, 2, STRUCT_SIZE, -1, dlrs_py_import(SOME_OBJECT, &import, &out, ERR));
  import.struct_size = sizeof import;
  import.flags = 4;
  REJECTS(BAD_ARG, 2, OPTION, -1, dlrs_py_import(SOME_OBJECT, &import, &out, ERR));
  import.flags = 2; /* DLRS_PY_NO_EXCHANGE_API, before there were protocols */
  REJECTS(BAD_ARG, 2, OPTION, -1, dlrs_py_import(SOME_OBJECT, &import, &out, ERR));
  import.flags = DLRS_PY_LEGACY_WRITABLE;
  import.protocols = 32;
  REJECTS(BAD_ARG, 2, OPTION, -1, dlrs_py_import(SOME_OBJECT, &import, &out, ERR));
  import.protocols = DLRS_PY_DUNDER_DLPACK | DLRS_PY_ARRAY_INTERFACE;
  import.reserved = 1;
  REJECTS(BAD_ARG, 2, OPTION, -1, dlrs_py_import(SOME_OBJECT, &import, &out, ERR));
  import.reserved = 0;
  import.import_options = &inner;
  REJECTS(STRUCT_SIZE, 2, STRUCT_SIZE, -1, dlrs_py_import(SOME_OBJECT, &import, &out, ERR));
  inner.struct_size = sizeof inner;
  inner.copy = 7;
  REJECTS(BAD_ARG, 2, OPTION, -1, dlrs_py_import(SOME_OBJECT, &import, &out, ERR));
  inner.copy = 0;
  REJECTS(UNSUPPORTED, ANY, ANY, -1, dlrs_py_import(SOME_OBJECT, &import, &out, ERR));
  t_unwatch();
}

/* ---- Stream numbers -------------------------------------------------------------------------*/

#define REFUSE (-99)

static void stream_number(int32_t device_type, int64_t number, intptr_t handle, int sync) {
  void *out = &out;
  int32_t wait = 7;
  if (handle == REFUSE) {
    REJECTS(STREAM, 1, ANY, -1,
            dlrs_stream_from_py(number, t_device(device_type, 0), &out, &wait, ERR));
    CHECK(number < 0 || strstr(t_error.message + t_error.hint_start, "None") != NULL);
    CHECK(out == &out && wait == 7);
    return;
  }
  WORKS(dlrs_stream_from_py(number, t_device(device_type, 0), &out, &wait, ERR));
  EQUAL((intptr_t)out, handle);
  EQUAL(wait, sync);
}

static void stream_back(int32_t device_type, intptr_t handle, int64_t number) {
  int64_t out = 77;
  if (number == REFUSE) {
    REJECTS(STREAM, 1, ANY, -1,
            dlrs_stream_to_py((void *)handle, t_device(device_type, 0), &out, ERR));
    EQUAL(out, 77);
    return;
  }
  WORKS(dlrs_stream_to_py((void *)handle, t_device(device_type, 0), &out, ERR));
  EQUAL(out, number);
}

static void streams(void) {
  const int64_t none = DLRS_PY_STREAM_NONE;
  static const int32_t cudas[] = {kDLCUDA, kDLCUDAManaged, kDLCUDAHost};
  static const int32_t rocms[] = {kDLROCM, kDLROCMHost};
  int32_t sync;
  int64_t number;
  size_t i;
  for (i = 0; i < sizeof cudas / sizeof *cudas; ++i) {
    int32_t cuda = cudas[i];
    stream_number(cuda, none, 1, 1);
    stream_number(cuda, -1, 0, 0);
    stream_number(cuda, 0, REFUSE, 0);
    stream_number(cuda, 1, 1, 1);
    stream_number(cuda, 2, 2, 1);
    stream_number(cuda, 0x7f00, 0x7f00, 1);
    stream_number(cuda, -2, REFUSE, 0);
    stream_back(cuda, 0, 1);
    stream_back(cuda, 1, 1);
    stream_back(cuda, 2, 2);
    stream_back(cuda, 0x7f00, 0x7f00);
  }
  for (i = 0; i < sizeof rocms / sizeof *rocms; ++i) {
    stream_number(rocms[i], none, 0, 1);
    stream_number(rocms[i], -1, 0, 0);
    stream_number(rocms[i], 0, 0, 1);
    stream_number(rocms[i], 1, REFUSE, 0);
    stream_number(rocms[i], 2, REFUSE, 0);
    stream_number(rocms[i], 3, 3, 1);
    stream_back(rocms[i], 0, 0);
    stream_back(rocms[i], 1, REFUSE);
    stream_back(rocms[i], 2, REFUSE);
    stream_back(rocms[i], 0x7f00, 0x7f00);
  }
  stream_number(kDLOneAPI, none, 0, 1);
  stream_number(kDLOneAPI, -1, 0, 0);
  stream_number(kDLOneAPI, 0, REFUSE, 0);
  stream_number(kDLOneAPI, 0x7f00, 0x7f00, 1);
  stream_back(kDLOneAPI, 0, none);
  stream_back(kDLOneAPI, 0x7f00, 0x7f00);
  stream_number(kDLCPU, none, 0, 1);
  stream_number(kDLCPU, -1, 0, 0);
  stream_number(kDLCPU, 0, REFUSE, 0);
  stream_number(kDLCPU, 1, REFUSE, 0);
  stream_back(kDLCPU, 0, none);
  stream_back(kDLCPU, 1, REFUSE);
  REJECTS(NULL_ARG, 3, ANY, -1, dlrs_stream_from_py(1, CPU, NULL, &sync, ERR));
  REJECTS(NULL_ARG, 3, ANY, -1, dlrs_stream_to_py(NULL, CPU, NULL, ERR));
  WORKS(dlrs_stream_to_py(NULL, CPU, &number, ERR));
}

/* ---- Notations ------------------------------------------------------------------------------*/

static void notation_refusals(void) {
  char buffer[2];
  size_t nbytes = 0;
  REJECTS(BAD_ARG, 2, ANY, -1, dlrs_dtype_format_as(F32, 0, buffer, 2, NULL, ERR));
  REJECTS(NULL_ARG, 3, ANY, -1, dlrs_dtype_format_as(F32, DLRS_NOTATION_ARROW, NULL, 2, NULL, ERR));
  REJECTS(BUF_SMALL, 4, ANY, -1,
          dlrs_dtype_format_as(F32, DLRS_NOTATION_TYPESTR, buffer, 2, &nbytes, ERR));
  EQUAL(nbytes, 3);
  WORKS(dlrs_dtype_format_as(F32, DLRS_NOTATION_TYPESTR, NULL, 0, &nbytes, ERR));
  REJECTS(UNSUPPORTED, 1, ANY, -1,
          dlrs_dtype_format_as(t_dtype(kDLFloat, 32, 4), DLRS_NOTATION_TYPESTR, NULL, 0, NULL, ERR));
  REJECTS(UNSUPPORTED, 1, ANY, -1,
          dlrs_dtype_format_as(t_dtype(kDLBfloat, 16, 1), DLRS_NOTATION_ARROW, NULL, 0, NULL, ERR));
  REJECTS(DTYPE_BITS, 1, ANY, -1,
          dlrs_dtype_format_as(t_dtype(kDLFloat, 17, 1), DLRS_NOTATION_ARROW, NULL, 0, NULL, ERR));
}

/* ---- Exchange API ---------------------------------------------------------------------------*/

typedef struct {
  int calls;
  char kind[32];
  size_t message;
} reported;

static void set_error(void *context, const char *kind, const char *message) {
  reported *r = (reported *)context;
  ++r->calls;
  strncpy(r->kind, kind, sizeof r->kind - 1);
  r->message = strlen(message);
}

/* X02: imports another tensor while its own failure is being reported. */
static void re_enters(void *context, const char *kind, const char *message) {
  int64_t shape[1] = {3};
  DLTensor like = t_describe(NULL, F32, 1, shape, NULL);
  DLManagedTensorVersioned *out = NULL;
  int calls = ((reported *)context)->calls;
  EQUAL(dlrs_managed_tensor_allocator(&like, &out, context, set_error), 0);
  EQUAL(((reported *)context)->calls, calls);
  out->deleter(out);
  set_error(context, kind, message);
}

/* X01, X03, X04 of the catalogue. */
static void allocator(void) {
  int64_t shape[2] = {2, 3}, negative[1] = {-1}, huge[2] = {INT64_MAX, 2};
  DLTensor like = t_describe(NULL, F32, 2, shape, NULL);
  DLManagedTensorVersioned *out = NULL;
  reported r;
  memset(&r, 0, sizeof r);
  EQUAL(dlrs_managed_tensor_allocator(&like, &out, &r, set_error), 0);
  EQUAL(r.calls, 0);
  CHECK(out != NULL && out->dl_tensor.data != NULL && dlrs_is_own(out));
  EQUAL(out->version.major, 1);
  EQUAL(out->dl_tensor.shape[1], 3);
  EQUAL(out->dl_tensor.strides[0], 3);
  out->deleter(out);
  like = t_describe(NULL, F32, 1, negative, NULL);
  out = (DLManagedTensorVersioned *)&like;
  EQUAL(dlrs_managed_tensor_allocator(&like, &out, &r, set_error), -1);
  CHECK(out == NULL);
  EQUAL(r.calls, 1);
  CHECK(strcmp(r.kind, "ValueError") == 0 && r.message > 0);
  EQUAL(dlrs_managed_tensor_allocator(&like, &out, NULL, NULL), -1);
  EQUAL(dlrs_managed_tensor_allocator(&like, &out, &r, re_enters), -1);
  EQUAL(r.calls, 2);
  like = t_describe(NULL, F32, 2, huge, NULL);
  EQUAL(dlrs_managed_tensor_allocator(&like, &out, &r, set_error), -1);
  EQUAL(r.calls, 3);
  like = t_describe(NULL, F32, 2, shape, NULL);
  like.device = t_device(kDLHexagon, 0); /* no backend of the library */
  EQUAL(dlrs_managed_tensor_allocator(&like, &out, &r, set_error), -1);
  CHECK(strcmp(r.kind, "BufferError") == 0);
  EQUAL(dlrs_managed_tensor_allocator(NULL, &out, &r, set_error), -1);
  like.device = CPU;
  EQUAL(dlrs_managed_tensor_allocator(&like, NULL, &r, set_error), -1);
  EQUAL(r.calls, 6);
  if (inject_works()) {
    inject_arm(1, 1);
    EQUAL(dlrs_managed_tensor_allocator(&like, &out, &r, set_error), -1);
    inject_disarm();
    CHECK(strcmp(r.kind, "MemoryError") == 0);
    EQUAL(r.calls, 7);
  }
}

int main(void) {
  t_error.struct_size = sizeof t_error;
  without_python();
  nulls();
  bindings();
  options();
  streams();
  notation_refusals();
  allocator(); /* after one call, a program that loads the library late also has its address */
  return t_close();
}
