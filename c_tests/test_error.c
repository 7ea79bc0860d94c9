/* Names of statuses, and failures passed on to DLPack's SetError. */
#include <inttypes.h>
#include "harness.h"

static struct {
  int calls;
  void *context;
  char kind[32], message[256];
} seen;

static void set_error(void *context, const char *kind, const char *message) {
  ++seen.calls;
  seen.context = context;
  snprintf(seen.kind, sizeof seen.kind, "%s", kind);
  snprintf(seen.message, sizeof seen.message, "%s", message);
}

static void names(void) {
  int32_t status, known = 0;
  for (status = -1000; status <= 2000; ++status) {
    const char *name = dlrs_status_name(status);
    if (name == NULL) continue;
    ++known;
    CHECK(strncmp(name, "DLRS_", 5) == 0 && strlen(name) < 40);
    CHECK(status == 0 || (status >= 100 && status < 1000));
  }
  CHECK(known >= 50);
  CHECK(strcmp(dlrs_status_name(DLRS_OK), "DLRS_OK") == 0);
  CHECK(strcmp(dlrs_status_name(DLRS_NOMEM), "DLRS_NOMEM") == 0);
  CHECK(strcmp(dlrs_status_name(DLRS_INTERNAL), "DLRS_INTERNAL") == 0);
  CHECK(dlrs_status_name(INT32_MIN) == NULL && dlrs_status_name(INT32_MAX) == NULL);
}

static void forwards(int32_t status, const char *kind) {
  dlrs_error failure = DLRS_INIT(dlrs_error);
  failure.status = status;
  strcpy(failure.message, "what went wrong");
  memset(&seen, 0, sizeof seen);
  t_watch(&failure, sizeof failure);
  WORKS(dlrs_error_forward(&failure, &seen, set_error, ERR));
  EQUAL(seen.calls, 1);
  CHECK(seen.context == &seen);
  CHECK(strcmp(seen.kind, kind) == 0 && strcmp(seen.message, "what went wrong") == 0);
  WORKS(dlrs_error_forward(&failure, &seen, NULL, ERR));
  EQUAL(seen.calls, 1);
  EQUAL(dlrs_error_forward(&failure, NULL, set_error, NULL), DLRS_OK);
  CHECK(seen.context == NULL);
  t_unwatch();
}

/* Where the remedy of a status does not apply, the message has the one for the case. */
#define NAME "dlrs_" "cast." /* which the library may lack: features/run.sh searches for names */
#define CAST "Convert with " NAME
#define REMEDY(text, call) remedy(__LINE__, (t_before(), call), text)
static void remedy(int line, dlrs_status status, const char *text) {
  const char *hint = t_error.message + t_error.hint_start;
  CHECK(status != DLRS_OK && t_error.status == status && t_error.hint_end <= 255);
  CHECK(t_error.hint_start < t_error.hint_end && t_error.text_start < t_error.text_end);
  if (!CHECK(strcmp(hint, text) == 0)) printf("line %d: %s\n", line, t_error.message);
}
static void last(void *tensor) {
  DLManagedTensorVersioned *out;
  REMEDY("Take a reference before the last one is released.",
         dlrs_retain((DLManagedTensorVersioned *)tensor, &out, ERR));
}
static void remedies(void) {
  static const int64_t shape[] = {4, 5}, flat[] = {-1, 3};
  const DLDataType half_byte = {kDLInt, 4, 1};
  DLManagedTensorVersioned *t = NULL, *out = NULL, *padded = NULL;
  dlrs_alloc_options options = DLRS_INIT(dlrs_alloc_options);
  dlrs_copy_options streams = DLRS_INIT(dlrs_copy_options);
  int64_t both[2];
  int32_t ndim;
  WORKS(dlrs_tensor_new(shape, 2, F32, CPU, NULL, &t, ERR));
  REMEDY("Give a shape of as many elements as the tensor has.",
         dlrs_view_reshape(t, shape, 1, &out, ERR));
  REMEDY("Give extents that do, beside the -1.", dlrs_view_reshape(t, flat, 2, &out, ERR));
  REMEDY("Select or squeeze first.", dlrs_view_expand(t, shape, 1, &out, ERR));
  REMEDY("Give the tensor's extent, or -1.", dlrs_view_expand(t, flat, 2, &out, ERR));
  REMEDY("Select an index of it instead.", dlrs_view_squeeze(t, 0, &out, ERR));
  REMEDY("Reshape the tensor first.", dlrs_view_lanes(t, 3, &out, ERR));
  REMEDY("Do one of the two.",
         dlrs_set_flags(t, DLPACK_FLAG_BITMASK_READ_ONLY, DLPACK_FLAG_BITMASK_READ_ONLY, ERR));
  REMEDY(CAST,
         dlrs_set_flags(t, DLPACK_FLAG_BITMASK_IS_SUBBYTE_TYPE_PADDED, 0, ERR));
  streams.src_stream = &ndim;
  REMEDY("Pass NULL.", dlrs_clone(t, CPU, &streams, &out, ERR));
  REMEDY("Pass NULL.", dlrs_stream_sync(CPU, &ndim, ERR));
  REMEDY("Give the size of the allocation.",
         dlrs_validate_within(&t->dl_tensor, 0, &ndim, UINT64_MAX, ERR));
  REMEDY("Give another one.", dlrs_import_take(&t, NULL, &t, ERR));
  REMEDY("Compile with the header of this library.",
         dlrs_abi_check(UINT32_MAX, dlrs_abi_layout(), ERR));
  REMEDY("Set one, or use another device.", dlrs_device_count(kDLMAIA, &ndim, ERR));
  REMEDY("Use CUDA, ROCm or their kinds.", dlrs_driver_path_set(kDLMAIA, NULL, ERR));
  options.strides = both;
  both[0] = both[1] = 1;
  REMEDY("Give larger strides.", dlrs_tensor_new(shape, 2, F32, CPU, &options, &out, ERR));
  REMEDY("Leave the strides out.",
         dlrs_tensor_new(shape, 2, half_byte, CPU, &options, &out, ERR));
  options.strides = NULL;
  options.flags = DLPACK_FLAG_BITMASK_IS_SUBBYTE_TYPE_PADDED;
  WORKS(dlrs_tensor_new(shape, 2, half_byte, CPU, &options, &padded, ERR));
  {
    DLManagedTensor *legacy;
    REMEDY("Convert to packed elements with " NAME,
           dlrs_to_legacy_take(&padded, DLRS_LEGACY_REFUSE, &legacy, ERR));
  }
  REMEDY("Convert to packed elements.", dlrs_view_lanes(padded, 5, &out, ERR));
  WORKS(dlrs_tensor_new(shape, 2, half_byte, CPU, NULL, &out, ERR));
  REMEDY(CAST, dlrs_copy(out, padded, NULL, ERR));
  dlrs_release(out);
  dlrs_release(padded);
  WORKS(dlrs_attach(t, last, t, DLRS_BEFORE_FREE, ERR));
  dlrs_release(t);
}

/* Numbers of 64 bits without a sign are shown as they were given. */
static void large_numbers(void) {
  const uint64_t numbers[] = {(uint64_t)1 << 63, UINT64_MAX - 7}; /* no known flag */
  const DLDevice cpu = {kDLCPU, 0};
  DLManagedTensorVersioned *t = NULL, *out = NULL;
  DLManagedTensorVersioned *const *some = (DLManagedTensorVersioned *const *)t_guard();
  dlrs_alloc_options options = DLRS_INIT(dlrs_alloc_options);
  void *memory = NULL;
  char text[64], shown[32];
  size_t i;
  int call;
  WORKS(dlrs_tensor_new(NULL, 0, t_dtype(kDLFloat, 32, 1), cpu, NULL, &t, ERR));
  for (i = 0; i < sizeof numbers / sizeof *numbers; ++i)
    for (call = 0; call < 8; ++call) {
      const uint64_t n = numbers[i];
      dlrs_status status = DLRS_OK;
      options.flags = n;
      if (call == 0 && n > SIZE_MAX) continue; /* a size of 32 bits */
      switch (call) {
        case 0: status = dlrs_dtype_format(t->dl_tensor.dtype, text, (size_t)n, NULL, ERR); break;
        case 1: status = dlrs_mem_alloc(cpu, n, 0, NULL, &memory, ERR); break;
        case 2: status = dlrs_mem_alloc(cpu, 8, n, NULL, &memory, ERR); break;
        case 3: status = dlrs_set_flags(t, n, 0, ERR); break;
        case 4: status = dlrs_set_flags(t, 0, n, ERR); break;
        case 5: status = dlrs_validate(&t->dl_tensor, n, DLRS_LEVEL_STRICT, ERR); break;
        case 6:
          status = dlrs_tensor_new(NULL, 0, t->dl_tensor.dtype, cpu, &options, &out, ERR);
          break;
        case 7: status = dlrs_copy_batch(n, (const DLManagedTensorVersioned *const *)some, some,
                                          NULL, NULL, ERR); break;
      }
      t_context = text;
      sprintf(text, "large number %d of call %d", (int)i, call);
      CHECK(status != DLRS_OK);
      CHECK(strstr(t_error.message, "value -") == NULL);
      sprintf(shown, "(value %" PRIu64, n);
      CHECK(strstr(t_error.message, shown) != NULL);
    }
  dlrs_release(t);
}

int main(void) {
  size_t i;
  dlrs_error failure;
  names();
  remedies();
  large_numbers();
  forwards(DLRS_NULL_ARG, "ValueError");
  forwards(DLRS_SHAPE_NEG, "ValueError");
  forwards(DLRS_READ_ONLY, "BufferError");
  forwards(DLRS_NOMEM, "MemoryError");
  forwards(DLRS_UNSUPPORTED, "BufferError");
  forwards(DLRS_DEVICE_TYPE, "BufferError");
  forwards(DLRS_VERSION, "BufferError");
  forwards(DLRS_DTYPE_CODE, "BufferError");
  forwards(DLRS_NO_DEVICE, "BufferError");
  forwards(DLRS_CALLBACK, "RuntimeError");
  forwards(DLRS_DRV_INIT, "RuntimeError");
  forwards(DLRS_INTERNAL, "RuntimeError");
  /* No failure, and numbers of no class. */
  forwards(DLRS_OK, "RuntimeError");
  forwards(-1, "RuntimeError");
  forwards(INT32_MAX, "RuntimeError");
  REJECTS(NULL_ARG, 1, NONE, -1, dlrs_error_forward(NULL, &seen, set_error, ERR));
  REJECTS(MISALIGNED_STRUCT, 1, NONE, -1,
          dlrs_error_forward((dlrs_error *)((char *)t_guard() + 2), &seen, set_error, ERR));
  /* From a call that failed to an exception. */
  failure.struct_size = sizeof failure;
  EQUAL(dlrs_validate(NULL, 0, DLRS_LEVEL_STRICT, &failure), DLRS_NULL_ARG);
  WORKS(dlrs_error_forward(&failure, &seen, set_error, ERR));
  CHECK(strcmp(seen.kind, "ValueError") == 0);
  CHECK(strncmp(seen.message, "dlrs_validate: tensor: ", 23) == 0);
  /* A struct without room for the message: none is forwarded. */
  for (i = 0; i <= sizeof failure; ++i) {
    const int has = i > offsetof(dlrs_error, message);
    failure.struct_size = (uint32_t)i;
    if (has) WORKS(dlrs_error_forward(&failure, &seen, set_error, ERR));
    else REJECTS(STRUCT_SIZE, 1, STRUCT_SIZE, -1,
                 dlrs_error_forward(&failure, &seen, set_error, ERR));
  }
  return t_close();
}
