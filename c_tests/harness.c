#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "harness.h"

#include <sys/mman.h>
#include <unistd.h>

static long passed, failed;
const char *t_context = "";
int t_heap_shared;
dlrs_error t_error;
long t_deleted;

/* ---- Checks ---------------------------------------------------------------------------------*/

/* Failures are printed without allocations, which would count as leaks. */
static void say(void) {
  static char buffer[BUFSIZ];
  static int said;
  if (!said) setvbuf(stdout, buffer, _IOLBF, sizeof buffer);
  said = 1;
}

int t_check(int ok, const char *file, int line, const char *what) {
  if (ok) {
    ++passed;
  } else {
    ++failed;
    say();
    printf("%s:%d: %s: failed: %s\n", file, line, t_context, what);
  }
  return ok;
}

int t_equal(long long got, long long want, const char *file, int line, const char *what) {
  if (got == want) {
    ++passed;
    return 1;
  }
  ++failed;
  say();
  printf("%s:%d: %s: failed: %s (%lld, not %lld)\n", file, line, t_context, what, got, want);
  return 0;
}

int t_close(void) { return t_close_with(""); }

int t_close_with(const char *more) {
  t_unwatch();
  t_guards_free();
  say();
  printf("%ld passed, %ld failed%s\n", passed, failed, more);
  fflush(stdout);
  return failed != 0 || passed == 0;
}

/* ---- Calls ----------------------------------------------------------------------------------*/

enum { WATCHED_MAX = 24, RESULTS_MAX = 4 };

static struct {
  const void *memory;
  void *copy;
  size_t nbytes;
} watched[WATCHED_MAX];
static struct {
  void *variable;
  const char *text;
} results[RESULTS_MAX];
static int watched_count, results_count;
static long deleted_before, live_before;

void t_watch(const void *memory, size_t nbytes) {
  if (watched_count == WATCHED_MAX) abort();
  watched[watched_count].memory = memory;
  watched[watched_count].copy = malloc(nbytes ? nbytes : 1);
  if (watched[watched_count].copy == NULL) abort();
  watched[watched_count++].nbytes = nbytes;
}

void t_watch_result(void *variable, const char *text) {
  if (results_count == RESULTS_MAX) abort();
  results[results_count].variable = variable;
  results[results_count++].text = text;
}

void t_unwatch(void) {
  while (watched_count > 0) free(watched[--watched_count].copy);
  results_count = 0;
}

void t_before(void) {
  void *poison = &t_error;
  int i;
  memset(&t_error, 0x5A, sizeof t_error);
  t_error.struct_size = sizeof t_error;
  for (i = 0; i < watched_count; ++i) {
    memcpy(watched[i].copy, watched[i].memory, watched[i].nbytes);
  }
  for (i = 0; i < results_count; ++i) memcpy(results[i].variable, &poison, sizeof poison);
  deleted_before = t_deleted;
  live_before = inject_live();
}

/* The name of the function in the text of a call. */
static void function_of(const char *call, char *name, size_t capacity) {
  size_t n = 0;
  while (call[n] != '\0' && call[n] != '(' && n + 1 < capacity) {
    name[n] = call[n];
    ++n;
  }
  name[n] = '\0';
}

/* Whether a text holds "0x" with enough digits to be an address. */
static int has_address(const char *text) {
  for (text = strstr(text, "0x"); text != NULL; text = strstr(text + 1, "0x")) {
    if (strspn(text + 2, "0123456789abcdefABCDEF") >= 5) return 1;
  }
  return 0;
}

/* The fault of a message, or NULL. */
static const char *message_fault(const char *function, int32_t status) {
  const char *message = t_error.message;
  const char *name = dlrs_status_name(status);
  size_t i, n = 0, length = strlen(function);
  while (n < sizeof t_error.message && message[n] != '\0') ++n;
  if (n == sizeof t_error.message) return "message does not end";
  for (i = 0; i < n; ++i) {
    if (message[i] < ' ' || message[i] > '~') return "message is not printable ASCII";
  }
  if (strncmp(message, function, length) != 0 || message[length] != ':') {
    return "message does not start with the function";
  }
  if (has_address(message)) return "message seems to hold an address";
  if (name == NULL || (n + 1 < sizeof t_error.message && strstr(message, name) == NULL)) {
    return "message does not name the status";
  }
  if (t_error.text_start >= t_error.text_end) return "nothing is described";
  if (t_error.hint_end < t_error.hint_start + 5) return "there is no remedy";
  if (strstr(message, "Compile with this library's headers") != NULL &&
      strcmp(function, "dlrs_abi_check") != 0) {
    return "the remedy is another function's";
  }
  if (n + 1 < sizeof t_error.message && message[n - 1] != '.' && message[n - 1] != '?') {
    return "the remedy is no sentence";
  }
  return NULL;
}

static const char *state_fault(const char *call) {
  int i;
  for (i = 0; i < watched_count; ++i) {
    if (memcmp(watched[i].copy, watched[i].memory, watched[i].nbytes) != 0) {
      return "an input or a destination has changed";
    }
  }
  for (i = 0; i < results_count; ++i) {
    void *value;
    memcpy(&value, results[i].variable, sizeof value);
    if (value != NULL && strstr(call, results[i].text) != NULL) return "the result is not NULL";
  }
  if (t_deleted != deleted_before) return "a deleter has run";
  if (!t_heap_shared && inject_live() != live_before) return "memory is leaked or freed";
  return NULL;
}

static int blame(const char *file, int line, const char *call, const char *fault) {
  ++failed;
  say();
  printf("%s:%d: %s: failed: %.100s: %s", file, line, t_context, call, fault);
  return 0;
}

int t_refused(const char *file, int line, const char *call, int32_t got, int32_t want,
              int32_t argument, int32_t field, int32_t dimension) {
  char function[64];
  const char *fault = state_fault(call);
  function_of(call, function, sizeof function);
  if (got != want) {
    blame(file, line, call, "wrong status");
    printf(" %d, not %d (%s)\n", got, want, got ? t_error.message : "");
    return 0;
  }
  if (fault == NULL) fault = message_fault(function, want);
  if (fault == NULL && t_error.status != want) fault = "wrong status in the error";
  if (fault == NULL && argument != ANY && t_error.argument != argument) fault = "wrong argument";
  if (fault == NULL && field != ANY && t_error.field != field) fault = "wrong field";
  if (fault == NULL && dimension != ANY && t_error.dimension != dimension) {
    fault = "wrong dimension";
  }
  if (fault == NULL && t_error.struct_size != sizeof t_error) fault = "struct_size has changed";
  if (fault == NULL && t_error.driver_code != 0) fault = "a driver's code without a driver";
  if (fault != NULL) {
    blame(file, line, call, fault);
    printf(" (argument %d, field %d, dimension %d: %.255s)\n", t_error.argument, t_error.field,
           t_error.dimension, t_error.message);
    return 0;
  }
  ++passed;
  return 1;
}

int t_worked(const char *file, int line, const char *call, int32_t got) {
  if (got != DLRS_OK) {
    blame(file, line, call, "failed");
    printf(" (%d: %.255s)\n", got, t_error.message);
    return 0;
  }
  if (t_error.status != 0x5A5A5A5A || t_error.message[0] != 0x5A) {
    blame(file, line, call, "success has written an error\n");
    return 0;
  }
  ++passed;
  return 1;
}

/* ---- Memory between guard pages -------------------------------------------------------------*/

enum { GUARDED_MAX = 64 };
static struct {
  void *memory;
  size_t nbytes;
} guarded[GUARDED_MAX];
static int guarded_count;

static unsigned char *guarded_map(size_t *room) {
  size_t page = (size_t)sysconf(_SC_PAGESIZE);
  size_t inside = (*room + page - 1) / page * page;
  size_t all = inside + 2 * page;
  void *memory = mmap(NULL, all, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED || guarded_count == GUARDED_MAX) abort();
  if (inside > 0 && mprotect((char *)memory + page, inside, PROT_READ | PROT_WRITE) != 0) abort();
  guarded[guarded_count].memory = memory;
  guarded[guarded_count++].nbytes = all;
  *room = inside;
  return (unsigned char *)memory + page;
}

void *t_before_guard(size_t nbytes) {
  size_t room = nbytes;
  unsigned char *inside = guarded_map(&room);
  return inside + room - nbytes;
}

void *t_behind_guard(size_t nbytes) {
  size_t room = nbytes;
  return guarded_map(&room);
}

void *t_guard(void) {
  size_t room = 0;
  return guarded_map(&room);
}

void t_guards_free(void) {
  while (guarded_count > 0) {
    --guarded_count;
    munmap(guarded[guarded_count].memory, guarded[guarded_count].nbytes);
  }
}

/* ---- Tensors of a foreign producer ----------------------------------------------------------*/

void t_count(void *context) {
  ++t_deleted;
  if (context != NULL) ++*(int *)context;
}

void t_delete_versioned(DLManagedTensorVersioned *self) {
  (void)self;
  ++t_deleted;
}

void t_delete_legacy(DLManagedTensor *self) {
  (void)self;
  ++t_deleted;
}

DLDevice t_device(int32_t device_type, int32_t device_id) {
  DLDevice device;
  device.device_type = (DLDeviceType)device_type;
  device.device_id = device_id;
  return device;
}

DLDataType t_dtype(int code, int bits, int lanes) {
  DLDataType dtype;
  dtype.code = (uint8_t)code;
  dtype.bits = (uint8_t)bits;
  dtype.lanes = (uint16_t)lanes;
  return dtype;
}

DLTensor t_describe(void *data, DLDataType dtype, int32_t ndim, int64_t *shape, int64_t *strides) {
  DLTensor tensor;
  memset(&tensor, 0, sizeof tensor);
  tensor.data = data;
  tensor.device = CPU;
  tensor.ndim = ndim;
  tensor.dtype = dtype;
  tensor.shape = shape;
  tensor.strides = strides;
  return tensor;
}

void t_make(t_tensor *tensor) {
  int i;
  memset(tensor, 0, sizeof *tensor);
  for (i = 0; i < 6; ++i) tensor->values[i] = (float)i;
  tensor->shape[0] = 2;
  tensor->shape[1] = 3;
  tensor->strides[0] = 3;
  tensor->strides[1] = 1;
  tensor->managed.version.major = DLPACK_MAJOR_VERSION;
  tensor->managed.version.minor = DLPACK_MINOR_VERSION;
  tensor->managed.deleter = t_delete_versioned;
  tensor->managed.dl_tensor =
      t_describe(tensor->values, F32, 2, tensor->shape, tensor->strides);
  tensor->legacy.dl_tensor = tensor->managed.dl_tensor;
  tensor->legacy.deleter = t_delete_legacy;
}

DLManagedTensorVersioned t_managed(DLTensor tensor, uint64_t flags) {
  DLManagedTensorVersioned managed;
  memset(&managed, 0, sizeof managed);
  managed.version.major = DLPACK_MAJOR_VERSION;
  managed.version.minor = DLPACK_MINOR_VERSION;
  managed.deleter = t_delete_versioned;
  managed.flags = flags;
  managed.dl_tensor = tensor;
  return managed;
}

void t_compact(int32_t ndim, const int64_t *shape, int64_t *strides) {
  int64_t step = 1;
  while (ndim-- > 0) {
    strides[ndim] = step;
    step *= shape[ndim];
  }
}

/* ---- Memory of an allocator, or of a backend ------------------------------------------------*/

t_request t_request_of(const void *data) {
  t_request request;
  memcpy(&request, (const char *)data - sizeof request, sizeof request);
  return request;
}

static void *give(void *context, uint64_t nbytes, uint64_t align_bytes, DLDevice device) {
  t_source *source = (t_source *)context;
  t_request request;
  uintptr_t at;
  if (source->gives_null) return NULL;
  request.memory = malloc((size_t)(nbytes + 2 * align_bytes) + sizeof request);
  if (request.memory == NULL) return NULL;
  request.owner = source;
  request.nbytes = nbytes;
  request.align_bytes = align_bytes;
  request.device = device;
  at = (uintptr_t)request.memory + sizeof request + (uintptr_t)align_bytes - 1;
  at = (at & ~(uintptr_t)(align_bytes - 1)) + (source->gives_odd != 0);
  memcpy((char *)at - sizeof request, &request, sizeof request);
  if (source->dirt != 0) memset((void *)at, source->dirt, (size_t)nbytes);
  __atomic_add_fetch(&source->given, 1, __ATOMIC_RELAXED);
  return (void *)at;
}

static void take(void *context, void *data, uint64_t nbytes, uint64_t align_bytes,
                 DLDevice device) {
  t_request request = t_request_of(data);
  if (request.owner != (t_source *)context || request.nbytes != nbytes ||
      request.align_bytes != align_bytes || memcmp(&request.device, &device, sizeof device) != 0) {
    __atomic_add_fetch(&((t_source *)context)->strange, 1, __ATOMIC_RELAXED);
  }
  __atomic_add_fetch(&request.owner->taken, 1, __ATOMIC_RELAXED);
  free(request.memory);
}

dlrs_allocator t_allocator(t_source *source) {
  dlrs_allocator allocator;
  memset(&allocator, 0, sizeof allocator); /* the padding too, which tests compare */
  allocator.struct_size = sizeof allocator;
  allocator.context = source;
  allocator.alloc = give;
  allocator.free = take;
  return allocator;
}

static int32_t one_device(void *context, int32_t device_type, int32_t *n, dlrs_fault *fault) {
  (void)context, (void)device_type, (void)fault;
  *n = 1;
  return DLRS_OK;
}

static int32_t backend_alloc(void *context, DLDevice device, uint64_t nbytes, uint64_t align_bytes,
                             void *stream, void **out, dlrs_fault *fault) {
  (void)stream, (void)fault;
  *out = give(context, nbytes, align_bytes, device);
  return *out != NULL ? DLRS_OK : DLRS_NOMEM;
}

static int32_t backend_free(void *context, DLDevice device, void *data, uint64_t nbytes,
                            uint64_t align_bytes, void *stream, dlrs_fault *fault) {
  (void)stream, (void)fault;
  take(context, data, nbytes, align_bytes, device);
  return DLRS_OK;
}

static int32_t backend_copy(void *context, DLDevice device, const dlrs_byte_plan *plan,
                            void *stream, dlrs_fault *fault) {
  (void)context, (void)device, (void)stream, (void)fault;
  if (plan->ndim != 0) return DLRS_UNSUPPORTED;
  memcpy(plan->dst, plan->src, (size_t)plan->item_nbytes);
  return DLRS_OK;
}

static int32_t backend_sync(void *context, DLDevice device, void *stream, dlrs_fault *fault) {
  (void)context, (void)device, (void)stream, (void)fault;
  return DLRS_OK;
}

dlrs_backend t_backend(t_source *source, const char *name) {
  dlrs_backend backend;
  memset(&backend, 0, sizeof backend);
  backend.struct_size = sizeof backend;
  backend.name = name;
  backend.context = source;
  backend.device_count = one_device;
  backend.alloc = backend_alloc;
  backend.free = backend_free;
  backend.copy = backend_copy;
  backend.stream_sync = backend_sync;
  return backend;
}
