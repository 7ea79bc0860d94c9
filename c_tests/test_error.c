/* Names of statuses, and failures passed on to DLPack's SetError. */
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
  dlrs_error failure;
  memset(&failure, 0, sizeof failure);
  failure.struct_size = sizeof failure;
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

int main(void) {
  size_t i;
  dlrs_error failure;
  names();
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
  REFUSED(DLRS_NULL_ARG, 1, DLRS_FIELD_NONE, -1, dlrs_error_forward(NULL, &seen, set_error, ERR));
  REFUSED(DLRS_MISALIGNED_STRUCT, 1, DLRS_FIELD_NONE, -1,
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
    else REFUSED(DLRS_STRUCT_SIZE, 1, DLRS_FIELD_STRUCT_SIZE, -1,
                 dlrs_error_forward(&failure, &seen, set_error, ERR));
  }
  return t_close();
}
