#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "gpu.h"
#include "../sanitized.h"

#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../standin/cuda_types.h"

gpu_driver G;
long gpu_tally[5];

/* ---- The driver -----------------------------------------------------------------------------*/

#define FUNCTIONS(X)                                                                             \
  X(init, "cuInit", "hipInit", (unsigned))                                                       \
  X(count, "cuDeviceGetCount", "hipGetDeviceCount", (int *))                                     \
  X(alloc, "cuMemAlloc_v2", "hipMalloc", (void **, size_t))                                      \
  X(release, "cuMemFree_v2", "hipFree", (void *))                                                \
  X(pinned, "cuMemHostAlloc", "hipHostMalloc", (void **, size_t, unsigned))                      \
  X(pinned_free, "cuMemFreeHost", "hipHostFree", (void *))                                       \
  X(managed, "cuMemAllocManaged", "hipMallocManaged", (void **, size_t, unsigned))               \
  X(stream_new, "cuStreamCreate", "hipStreamCreateWithFlags", (void **, unsigned))               \
  X(stream_end, "cuStreamDestroy_v2", "hipStreamDestroy", (void *))                              \
  X(stream_sync, "cuStreamSynchronize", "hipStreamSynchronize", (void *))                        \
  X(begin, "cuStreamBeginCapture_v2", "hipStreamBeginCapture", (void *, int))                    \
  X(end, "cuStreamEndCapture", "hipStreamEndCapture", (void *, void **))                         \
  X(care, "cuThreadExchangeStreamCaptureMode", "hipThreadExchangeStreamCaptureMode", (int *))    \
  X(launch, "cuGraphLaunch", "hipGraphLaunch", (void *, void *))                                 \
  X(host, "cuLaunchHostFunc", "hipLaunchHostFunc", (void *, void (*)(void *), void *))            \
  X(exec_end, "cuGraphExecDestroy", "hipGraphExecDestroy", (void *))                             \
  X(graph_end, "cuGraphDestroy", "hipGraphDestroy", (void *))                                    \
  X(retain, "cuDevicePrimaryCtxRetain", NULL, (void **, int))                                    \
  X(push, "cuCtxPushCurrent_v2", NULL, (void *)) X(pop, "cuCtxPopCurrent_v2", NULL, (void **))   \
  X(get, "cuCtxGetCurrent", NULL, (void **)) X(set, "cuCtxSetCurrent", NULL, (void *))           \
  X(create, "cuCtxCreate_v2", NULL, (void **, unsigned, int))                                    \
  X(cu_fill, "cuMemsetD8Async", NULL, (void *, unsigned char, size_t, void *))                   \
  X(cu_copy, "cuMemcpyAsync", NULL, (void *, void *, size_t, void *))                            \
  X(cu_instantiate, "cuGraphInstantiateWithFlags", NULL, (void **, void *, unsigned long long))  \
  X(get_device, NULL, "hipGetDevice", (int *)) X(set_device, NULL, "hipSetDevice", (int))        \
  X(hip_fill, NULL, "hipMemsetAsync", (void *, int, size_t, void *))                             \
  X(hip_copy, NULL, "hipMemcpyAsync", (void *, const void *, size_t, int, void *))               \
  X(hip_instantiate, NULL, "hipGraphInstantiate", (void **, void *, void **, char *, size_t))
#define DECLARE(name, cuda, hip, arguments) static int(*d_##name) arguments;
FUNCTIONS(DECLARE)

static void *find(const char *name) {
  void *function = name ? dlsym(G.library, name) : NULL;
  if (name && function == NULL && G.standin) {
    printf("the driver lacks %s\n", name);
    exit(1);
  }
  return function;
}

int gpu_open(const char *name) {
  int is_cuda = strcmp(name, "cuda") == 0;
  char file[] = "libamdhip64.so.7";
  if (is_cuda) G.library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  for (G.hip = strcmp(name, "rocm") == 0 ? 7 : 0; G.hip > 4; --G.hip) {
    file[sizeof file - 2] = (char)('0' + G.hip);
    if ((G.library = dlopen(file, RTLD_NOW | RTLD_LOCAL)) != NULL) break;
  }
  if (G.library == NULL) return 0;
  G.name = name;
  G.type = is_cuda ? kDLCUDA : kDLROCM;
  G.pinned = is_cuda ? kDLCUDAHost : kDLROCMHost;
  G.managed = is_cuda ? kDLCUDAManaged : 0;
  G.standin = dlsym(G.library, "standin_ctl") != NULL;
#define FIND(name, cuda, hip, arguments) *(void **)&d_##name = find(is_cuda ? cuda : hip);
  FUNCTIONS(FIND)
  if (!G.standin) return 1;
  *(void **)&G.ctl = find("standin_ctl");
  *(void **)&G.stats = find("standin_stats");
  *(void **)&G.calls = find("standin_count");
  *(void **)&G.violation = find("standin_violation");
  *(void **)&G.bytes = find("standin_bytes");
  *(void **)&G.log = find("standin_log");
  return 1;
}

void gpu_begin(int argc, char **argv) {
  if (argc > 1 && gpu_open(argv[1])) return;
  printf("usage: %s cuda|rocm [ROW]: and its driver must be found\n", argv[0]);
  exit(2);
}

/* The library reads the number of processors through this function. The number is high, so that
 * copies through pinned buffers take several threads on any machine. A sanitizer's runtime calls it
 * too, before anything is loaded. */
#ifndef SANITIZED
long sysconf(int name) {
  static long (*next)(int);
  if (next == NULL) *(void **)&next = dlsym(RTLD_NEXT, "sysconf");
  return name == _SC_NPROCESSORS_ONLN ? 8 : next(name);
}
#endif

static void must(int code, const char *what, int line) {
  if (code == 0) return;
  printf("%s:%d: %s: the test's own call of the driver failed: %s: %d\n", __FILE__, line, t_context,
         what, code);
  fflush(stdout);
  _exit(99);
}
#define MUST(call) must(call, #call, __LINE__)

void gpu_start(void) {
  t_heap_shared = !G.standin;
  MUST(d_init(0));
}

int gpu_count(void) {
  int count = 0;
  MUST(d_count(&count));
  return count;
}

/* Makes a device current temporarily. */
static struct {
  void *contexts[STANDIN_DEVICES_MAX];
  int old;
} kept;

static void on(int device) {
  if (G.hip) {
    MUST(d_get_device(&kept.old));
    MUST(d_set_device(device));
    return;
  }
  if (kept.contexts[device] == NULL) MUST(d_retain(&kept.contexts[device], device));
  MUST(d_push(kept.contexts[device]));
}

static void off(void) {
  void *popped;
  if (G.hip) MUST(d_set_device(kept.old));
  else MUST(d_pop(&popped));
}

dlrs_copy_options gpu_options(void *src_stream, void *dst_stream, uint32_t flags) {
  dlrs_copy_options options;
  memset(&options, 0, sizeof options);
  options.struct_size = sizeof options;
  options.src_stream = src_stream;
  options.dst_stream = dst_stream;
  options.flags = flags;
  return options;
}

int gpu_device_of(int place) { return place >= 0 ? place : place == MANAGED_HOST_1; }

DLDevice gpu_place(int place) {
  if (place == PLAIN_HOST) return CPU;
  if (place == PINNED_HOST) return t_device(G.pinned, 0);
  return place < 0 && G.managed ? t_device(G.managed, 0) : DEV(gpu_device_of(place));
}

void *gpu_room(int place, size_t nbytes) {
  void *data = place == PLAIN_HOST ? calloc(1, nbytes) : NULL;
  if (place == PLAIN_HOST) return data;
  on(gpu_device_of(place));
  MUST(place >= 0               ? d_alloc(&data, nbytes)
       : place == PINNED_HOST ? d_pinned(&data, nbytes, 0)
                              : d_managed(&data, nbytes, 1));
  off();
  return data;
}

void gpu_leave(int place, void *data) {
  if (place == PLAIN_HOST) {
    free(data);
    return;
  }
  on(gpu_device_of(place));
  MUST(place == PINNED_HOST ? d_pinned_free(data) : d_release(data));
  off();
}

DLTensor gpu_tensor_at(int place, void *data, DLDataType dtype, int32_t ndim, int64_t *shape, int64_t *strides) {
  DLTensor tensor = t_describe(data, dtype, ndim, shape, strides);
  tensor.device = gpu_place(place);
  return tensor;
}

/* Sets this thread's capture mode, where the driver supports it; returns the previous mode. */
static int care(int mode) {
  if (d_care != NULL) MUST(d_care(&mode));
  return mode;
}

/* The regular method: a separate stream. During a capture a driver rejects synchronization with any
 * stream, unless the thread's mode is relaxed. */
static void move(int device, void *dst, const void *src, size_t nbytes) {
  enum { RELAXED = 2 };
  int careful = care(RELAXED);
  void *stream = gpu_stream(device, 1);
  on(device);
  MUST(G.hip ? d_hip_copy(dst, src, nbytes, 4, stream)
             : d_cu_copy(dst, (void *)(uintptr_t)src, nbytes, stream));
  MUST(d_stream_sync(stream));
  off();
  gpu_stream_free(device, stream);
  care(careful);
}

void gpu_write(int device, void *dst, const void *src, size_t nbytes) {
  if (G.standin) memcpy(G.bytes(dst), src, nbytes);
  else move(device, dst, src, nbytes);
}

void gpu_read(int device, void *dst, const void *src, size_t nbytes) {
  if (G.standin) memcpy(dst, G.bytes(src), nbytes);
  else move(device, dst, src, nbytes);
}

unsigned char *seen(const void *address) {
  unsigned char *bytes = G.standin ? (unsigned char *)G.bytes(address) : NULL;
  return bytes ? bytes : (unsigned char *)(uintptr_t)address;
}

void *gpu_stream(int device, int nonblocking) {
  void *stream = NULL;
  on(device);
  MUST(d_stream_new(&stream, (unsigned)nonblocking));
  off();
  return stream;
}

void gpu_stream_free(int device, void *stream) {
  on(device);
  MUST(d_stream_end(stream));
  off();
}

void gpu_fill(int device, void *stream, void *dst, int byte, size_t nbytes) {
  on(device);
  MUST(G.hip ? d_hip_fill(dst, byte, nbytes, stream)
             : d_cu_fill(dst, (unsigned char)byte, nbytes, stream));
  off();
}

void gpu_copy(int device, void *stream, void *dst, const void *src, size_t nbytes) {
  on(device);
  MUST(G.hip ? d_hip_copy(dst, src, nbytes, 4, stream)
             : d_cu_copy(dst, (void *)(uintptr_t)src, nbytes, stream));
  off();
}

int gpu_sync(int device, void *stream) {
  on(device);
  int code = d_stream_sync(stream);
  off();
  return code;
}

void gpu_host(int device, void *stream, void (*function)(void *), void *with) {
  on(device);
  MUST(d_host(stream, function, with));
  off();
}

void gpu_capture(int device, void *stream, int mode) {
  on(device);
  MUST(d_begin(stream, mode));
  off();
}

int gpu_capture_end(int device, void *stream, int times) {
  void *graph = NULL, *exec = NULL;
  on(device);
  int code = d_end(stream, &graph);
  if (code == 0) {
    MUST(G.hip ? d_hip_instantiate(&exec, graph, NULL, NULL, 0) : d_cu_instantiate(&exec, graph, 0));
    while (times-- > 0) MUST(d_launch(exec, stream));
    MUST(d_stream_sync(stream));
    MUST(d_exec_end(exec));
    MUST(d_graph_end(graph));
  }
  off();
  return code;
}

long gpu_current(void) {
  int device = -1;
  void *context = NULL;
  if (G.hip) MUST(d_get_device(&device));
  else MUST(d_get(&context));
  return G.hip ? device : (long)(uintptr_t)context;
}

void gpu_set_current(int device, int own) {
  void *context = NULL;
  if (G.hip) {
    MUST(d_set_device(device < 0 ? 0 : device));
  } else if (device < 0) {
    MUST(d_set(NULL));
  } else if (own) {
    MUST(d_create(&context, 0, device));
  } else {
    if (kept.contexts[device] == NULL) MUST(d_retain(&kept.contexts[device], device));
    MUST(d_set(kept.contexts[device]));
  }
}

/* ---- State that must be unchanged ------------------------------------------------------------*/

gpu_state gpu_now(void) {
  gpu_state now;
  memset(&now, 0, sizeof now);
  if (G.standin) G.stats(&now.stats);
  now.current = G.standin ? (G.hip ? now.stats.device : (long)(uintptr_t)now.stats.current) : gpu_current();
  return now;
}

int gpu_same(const gpu_state *before, const char *file, int line) {
  gpu_state now = gpu_now();
  const standin_stats_t *a = &before->stats, *b = &now.stats;
  const char *fault = NULL;
  if (a->device_blocks != b->device_blocks || a->device_bytes != b->device_bytes) fault = "device memory";
  else if (a->pinned != b->pinned) fault = "pinned memory";
  else if (a->managed != b->managed) fault = "managed memory";
  else if (a->registered != b->registered) fault = "registered memory";
  else if (a->contexts != b->contexts || a->retains != b->retains) fault = "contexts";
  else if (a->streams != b->streams) fault = "streams";
  else if (a->events != b->events) fault = "events";
  else if (a->modules != b->modules) fault = "modules";
  else if (a->depth != b->depth || before->current != now.current) fault = "what is current";
  else if (a->violations != b->violations) fault = G.violation();
  if (fault == NULL) return t_check(1, file, line, "same");
  return t_check(0, file, line, fault);
}

/* ---- Tensors --------------------------------------------------------------------------------*/

void gpu_make(gpu_tensor *tensor, int device) {
  static const float values[6] = {0, 1, 2, 3, 4, 5};
  tensor->shape[0] = 2;
  tensor->shape[1] = 3;
  tensor->strides[0] = 3;
  tensor->strides[1] = 1;
  tensor->data = (float *)gpu_alloc(device, sizeof values);
  gpu_write(device, tensor->data, values, sizeof values);
  tensor->managed = t_managed(gpu_tensor_at(device, tensor->data, F32, 2, tensor->shape, tensor->strides), 0);
}

void gpu_turn(gpu_tensor *tensor) {
  tensor->strides[0] = 1;
  tensor->strides[1] = 2;
}

int gpu_holds(const DLTensor *tensor, const float *values) {
  float got[6];
  const char *data = (const char *)tensor->data + tensor->byte_offset;
  if (tensor->device.device_type == (DLDeviceType)G.type) {
    gpu_read(tensor->device.device_id, got, data, sizeof got);
  } else {
    memcpy(got, data, sizeof got);
  }
  return memcmp(got, values, sizeof got) == 0;
}

static int has_address(const char *text) {
  for (text = strstr(text, "0x"); text != NULL; text = strstr(text + 1, "0x")) {
    if (strspn(text + 2, "0123456789abcdefABCDEF") >= 5) return 1;
  }
  return 0;
}

int gpu_failed(const char *file, int line, const char *call, int32_t got, int32_t want, int32_t code) {
  static char said[1024];
  const char *fault = NULL;
  size_t function = strcspn(call, "(");
  if (got != want) fault = "wrong status";
  else if (t_error.status != want) fault = "wrong status in the error";
  else if (code != ANY && t_error.driver_code != code) fault = "wrong driver_code";
  else if (memchr(t_error.message, '\0', sizeof t_error.message) == NULL) fault = "endless message";
  else if (strncmp(t_error.message, call, function) != 0) fault = "message without the function";
  else if (strstr(t_error.message, dlrs_status_name(want)) == NULL) fault = "message without the status";
  else if (has_address(t_error.message)) fault = "message seems to hold an address";
  if (fault == NULL) return t_check(1, file, line, call);
  snprintf(said, sizeof said, "%.200s: %s: got %d, not %d; driver code %d, not %d: %.255s", call, fault,
           got, want, got ? t_error.driver_code : 0, code, got ? t_error.message : "");
  return t_check(0, file, line, said);
}

/* ---- Rows -----------------------------------------------------------------------------------*/

char *gpu_child(void (*run)(const void *), const void *with, int *status) {
  static char said[1 << 16];
  int ends[2];
  size_t n = 0;
  ssize_t got;
  fflush(stdout);
  if (pipe(ends) != 0) exit(1);
  pid_t pid = fork();
  if (pid == 0) {
    dup2(ends[1], 1);
    close(ends[0]);
    close(ends[1]);
    run(with);
    _exit(1);
  }
  close(ends[1]);
  while (n < sizeof said - 1 && (got = read(ends[0], said + n, sizeof said - 1 - n)) > 0) n += (size_t)got;
  said[n] = '\0';
  close(ends[0]);
  waitpid(pid, status, 0);
  return said;
}

static long all_passed, all_failed, all_left_out;

/* Prints a row's output except its last line, which is counted. */
static void count(const gpu_row *row, char *said, int status) {
  char *last = strrchr(said, '\n');
  long passed = 0, failed = 1, tally[5];
  int left_out = 0;
  if (last != NULL) {
    *last = '\0';
    last = strrchr(said, '\n');
    char *closing = last == NULL ? said : last + 1;
    if (sscanf(closing, "%ld passed, %ld failed, %d %ld %ld %ld %ld %ld", &passed, &failed,
               &left_out, &tally[0], &tally[1], &tally[2], &tally[3], &tally[4]) == 8) {
      for (int i = 0; i < 5; ++i) gpu_tally[i] += tally[i];
      if (closing == said) *said = '\0';
      else *last = '\0';
    }
  }
  if (*said) printf("%s\n", said);
  if (status != 0 && failed == 0) failed = 1;
  if (failed) printf("%s %s (%s): %ld failed, status %#x\n", G.name, row->id, row->what, failed, status);
  all_passed += passed;
  all_failed += failed;
  all_left_out += left_out;
}

static int has_what_it_needs(int needs) {
  return !(needs & STANDIN && !G.standin) && !(needs & ON_CUDA && G.hip) && !(needs & ON_HIP && !G.hip) &&
         !(needs & TWO_DEVICES && gpu_count() < 2);
}

static void child(const void *of) {
  const gpu_row *row = (const gpu_row *)of;
  const char *limit = getenv("GPU_ROW_SECONDS");
  alarm(limit ? (unsigned)atoi(limit) : 400);
  t_context = row->id;
  memset(gpu_tally, 0, sizeof gpu_tally);
  gpu_start();
  int runs = has_what_it_needs(row->needs);
  if (runs) row->run();
  if (G.standin) {
    standin_stats_t stats;
    G.ctl(STANDIN_RUN, -1, 0, NULL); /* whatever is pending: it may be wrong */
    G.stats(&stats);
    if (stats.violations) printf("%s: %s\n", row->id, G.violation());
    if (runs) EQUAL(stats.violations, 0);
  }
  /* The parent parses more numbers than t_close prints. */
  char more[120];
  snprintf(more, sizeof more, ", %d %ld %ld %ld %ld %ld", !runs && !G.standin, gpu_tally[0], gpu_tally[1], gpu_tally[2],
           gpu_tally[3], gpu_tally[4]);
  fflush(stdout);
  if (!runs) printf("0 passed, 0 failed%s\n", more);
  else t_close_with(more);
  fflush(stdout);
  exit(0); /* with the handlers that the row set */
}

void gpu_run(const gpu_row *row) {
  int status;
  char *said = gpu_child(child, row, &status);
  count(row, said, status);
}

void gpu_run_all(const gpu_row *rows, size_t n, const char *id, int list) {
  for (size_t i = 0; i < n; ++i) {
    if (id != NULL && strcmp(id, rows[i].id) != 0) continue;
    if (list) printf("%s %s: %s\n", G.name, rows[i].id, rows[i].what);
    gpu_run(&rows[i]);
  }
}

int gpu_end(void) {
  if (all_left_out) printf("%ld rows left out\n", all_left_out);
  printf("%ld passed, %ld failed\n", all_passed, all_failed);
  return all_failed != 0 || all_passed == 0;
}

int gpu_main(int argc, char **argv, const gpu_row *rows, size_t n) {
  gpu_begin(argc, argv);
  gpu_run_all(rows, n, argc > 2 ? argv[2] : NULL, 0);
  return gpu_end();
}
