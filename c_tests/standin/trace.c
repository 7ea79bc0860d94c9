/* Calls of the CUDA driver whose results the stand-in must reproduce: trace DRIVER [PTX [RECORDED]]
 * Prints the code of each call, and outputs (=) where they are the same on every machine; or compares
 * them with what was RECORDED on a real driver (make test-cuda: trace_cuda.txt). Nothing here depends
 * on timing, and device 0 is enough. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <dlfcn.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cuda_types.h"

#define DECLARE(name, arguments) static CUresult(*name) arguments;
CUDA_FUNCTIONS(DECLARE)

/* A result: printed, or compared with the next one of a recording. */
static FILE *recorded;
static int number, failed, column;
static void token(const char *what, const char *format, ...) {
  char got[64], want[64] = "nothing";
  va_list arguments;
  va_start(arguments, format);
  int n = vsnprintf(got, sizeof got, format, arguments);
  va_end(arguments);
  ++number;
  if (recorded == NULL) {
    int starts = got[n - 1] == ':' || column + 1 + n > 100;
    column = starts ? n : column + 1 + n;
    printf("%s%s", number == 1 ? "" : starts ? "\n" : " ", got);
    fflush(stdout);
  } else if (fscanf(recorded, "%63s", want) != 1 || strcmp(got, want) != 0) {
    ++failed;
    printf("result %d, of %s: %s, not %s\n", number, what, got, want);
  }
}
static int call(const char *text, int code) {
  token(text, "%d", code);
  return code;
}
/* A call and its code. */
#define T(text) call(#text, text)
/* A value that must be the same everywhere. */
#define V(text) token(#text, "=%lld", (long long)(text))
#define P(pointer) ((CUdeviceptr)(uintptr_t)(pointer))

static CUcontext context, got, own;
static CUdevice device;
static CUstream blocking, stream, other;
static CUevent event, second;
static CUdeviceptr a, b, managed;
static void *pinned;
static char pageable[4096], page[8192];

static void starting(void) {
  int count = 0, value = 0;
  unsigned flags;
  T(cuDeviceGetCount(&count));
  T(cuCtxGetCurrent(&got));
  T(cuMemAlloc_v2(&a, 64));
  T(cuInit(1));
  T(cuInit(0));
  T(cuInit(0));
  T(cuDriverGetVersion(&value));
  T(cuDriverGetVersion(NULL));
  T(cuDeviceGetCount(&count));
  T(cuDeviceGetCount(NULL));
  T(cuDeviceGet(&device, 0));
  T(cuDeviceGet(&device, -1));
  T(cuDeviceGet(&device, 1000));
  T(cuDeviceGet(&device, 0));
  static const int attributes[] = {11, 41, 115, 1, 10};
  for (int i = 0; i < 5; ++i) {
    T(cuDeviceGetAttribute(&value, attributes[i], device));
    V(value);
  }
  T(cuDeviceGetAttribute(&value, 11, 1000));
  T(cuDeviceGetAttribute(NULL, 11, device));
  T(cuCtxGetCurrent(&got));
  V(got == NULL);
  T(cuCtxGetDevice(&device));
  T(cuMemAlloc_v2(&a, 64));
  T(cuStreamCreate(&stream, 1));
  T(cuCtxPopCurrent_v2(&got));
  T(cuDevicePrimaryCtxGetState(device, &flags, &value));
  V(value);
  T(cuDevicePrimaryCtxRelease_v2(device));
  T(cuDevicePrimaryCtxRetain(&context, 1000));
  T(cuDevicePrimaryCtxRetain(&context, device));
  T(cuDevicePrimaryCtxGetState(device, &flags, &value));
  V(value);
  T(cuCtxPushCurrent_v2(NULL));
  T(cuCtxPushCurrent_v2(context));
  T(cuCtxGetCurrent(&got));
  V(got == context);
  T(cuCtxGetDevice(&device));
  T(cuCtxGetDevice(NULL));
  T(cuCtxPopCurrent_v2(&got));
  V(got == context);
  T(cuCtxPushCurrent_v2(context));
  T(cuCtxSynchronize());
  T(cuDeviceCanAccessPeer(&value, device, device));
  V(value);
}

static void attributes(CUdeviceptr address) {
  unsigned type = 0;
  int ordinal = -1;
  char is_managed[8] = {0};
  CUdeviceptr start = 0;
  void *owner = NULL, *host = NULL, *pool = NULL;
  T(cuPointerGetAttribute(&type, 2, address));
  V(type);
  T(cuPointerGetAttribute(&ordinal, 9, address));
  V(ordinal);
  T(cuPointerGetAttribute(is_managed, 8, address));
  V(is_managed[0]);
  T(cuPointerGetAttribute(&start, 11, address));
  V(start == address);
  T(cuPointerGetAttribute(&owner, 1, address));
  T(cuPointerGetAttribute(&host, 4, address));
  V(host == (void *)(uintptr_t)address);
  T(cuPointerGetAttribute(&pool, 17, address));
  V(pool != NULL);
}

static void memory(void) {
  size_t size = 0, total = 0;
  CUdeviceptr base = 0, c = 0;
  T(cuMemAlloc_v2(&a, 0));
  T(cuMemAlloc_v2(NULL, 64));
  T(cuMemAlloc_v2(&a, (size_t)1 << 50));
  T(cuMemAlloc_v2(&a, 4096));
  T(cuMemAlloc_v2(&b, 4096));
  V(a % 256);
  T(cuMemGetInfo_v2(&size, &total));
  V(size < total);
  T(cuMemGetInfo_v2(NULL, &total));
  T(cuMemGetAddressRange_v2(&base, &size, a + 100));
  V(base == a);
  V(size);
  T(cuMemGetAddressRange_v2(&base, &size, P(pageable)));
  attributes(a);
  T(cuMemHostAlloc(&pinned, 4096, 0));
  T(cuMemHostAlloc(NULL, 4096, 0));
  attributes(P(pinned));
  T(cuMemAllocManaged(&managed, 4096, 1));
  T(cuMemAllocManaged(&c, 4096, 0));
  attributes(managed);
  attributes(P(pageable));
  T(cuPointerGetAttribute(NULL, 2, a));
  T(cuMemHostRegister_v2(page, 4096, 0));
  T(cuMemHostRegister_v2(page, 4096, 0));
  attributes(P(page));
  T(cuMemHostUnregister(page));
  T(cuMemHostUnregister(page));
  T(cuMemHostRegister_v2(NULL, 4096, 0));
  T(cuMemFree_v2(0));
  T(cuMemFreeHost(NULL));
  T(cuMemAllocAsync(&c, 4096, NULL));
  attributes(c);
  T(cuMemFreeAsync(c, NULL));
  T(cuMemAllocAsync(&c, 0, NULL));
  T(cuStreamSynchronize(NULL));
}

static CUDA_MEMCPY2D rows(CUdeviceptr dst, size_t dst_pitch, CUdeviceptr src, size_t src_pitch, size_t width, size_t height) {
  return (CUDA_MEMCPY2D){.srcMemoryType = 4, .dstMemoryType = 4, .srcDevice = src, .dstDevice = dst, .srcPitch = src_pitch,
                         .dstPitch = dst_pitch, .WidthInBytes = width, .Height = height};
}

static void streams(void) {
  CUcontext owner = NULL;
  T(cuStreamCreate(&blocking, 0));
  T(cuStreamCreate(&stream, 1));
  T(cuStreamCreate(&other, 1));
  T(cuStreamCreate(&other, 77));
  T(cuStreamCreate(NULL, 0));
  T(cuStreamSynchronize(stream));
  T(cuStreamQuery(stream));
  T(cuStreamQuery(NULL));
  T(cuStreamQuery((CUstream)1));
  T(cuStreamQuery((CUstream)2));
  T(cuStreamGetCtx(stream, &owner));
  V(owner == context);
  T(cuStreamGetCtx(NULL, &owner));
  V(owner == context);
  T(cuEventCreate(&event, 2));
  T(cuEventCreate(&second, 2));
  T(cuEventCreate(NULL, 2));
  T(cuEventQuery(event));
  T(cuEventSynchronize(event));
  T(cuStreamWaitEvent(stream, event, 0));
  T(cuEventRecord(event, stream));
  T(cuStreamWaitEvent(other, event, 0));
  T(cuEventSynchronize(event));
  T(cuEventQuery(event));
  T(cuEventRecord(event, NULL));
  T(cuEventSynchronize(event));
}

static void copies(void) {
  memset(pinned, 5, 4096);
  T(cuMemcpyAsync(a, P(pinned), 4096, stream));
  T(cuMemcpyAsync(b, a, 4096, stream));
  T(cuMemcpyAsync(P(pageable), b, 4096, stream));
  T(cuStreamSynchronize(stream));
  V(pageable[0]);
  V(pageable[4095]);
  T(cuMemcpyAsync(a, b, 0, stream));
  T(cuMemcpyAsync(a, b, 4096, NULL));
  T(cuMemcpyAsync(P(page), P(pageable), 64, stream));
  T(cuMemcpyAsync(managed, a, 4096, stream));
  T(cuMemsetD8Async(a, 9, 4096, stream));
  T(cuMemsetD8Async(a, 9, 0, stream));
  T(cuStreamSynchronize(stream));
  T(cuStreamQuery(stream));
  const CUDA_MEMCPY2D all[] = {
      rows(b, 64, a, 128, 64, 10), rows(b, 32, a, 128, 64, 10), /* rows overlap */
      rows(b, 64, a, 128, 0, 10),  rows(b, 64, a, 128, 64, 0),  rows(b, (size_t)1 << 40, a, 128, 64, 2),
      rows(P(pinned), 64, a, 128, 64, 10), rows(P(pageable), 64, a, 128, 64, 10)};
  for (int i = 0; i < 7; ++i) T(cuMemcpy2DAsync_v2(&all[i], stream));
  T(cuMemcpy2DAsync_v2(NULL, stream));
  T(cuMemcpyPeerAsync(a, context, b, context, 64, stream));
  T(cuStreamSynchronize(stream));
  V(pageable[0]);
  T(cuCtxSynchronize());
}

static void capture(int mode) {
  CUgraph graph = NULL;
  CUgraphExec exec = NULL;
  CUdeviceptr c = 0;
  int status = -1, old;
  V(mode);
  T(cuStreamBeginCapture_v2(stream, mode));
  T(cuStreamBeginCapture_v2(stream, mode));
  T(cuStreamIsCapturing(stream, &status));
  V(status);
  T(cuStreamIsCapturing(other, &status));
  V(status);
  T(cuMemcpyAsync(b, a, 64, stream));
  T(cuEventRecord(event, stream));
  T(cuStreamWaitEvent(other, event, 0));
  T(cuMemsetD8Async(b, 1, 64, other));
  T(cuEventRecord(second, other));
  T(cuStreamWaitEvent(stream, second, 0));
  T(cuStreamEndCapture(stream, &graph));
  V(graph != NULL);
  T(cuGraphInstantiateWithFlags(&exec, graph, 0));
  T(cuGraphLaunch(exec, stream));
  T(cuStreamSynchronize(stream));
  T(cuGraphExecDestroy(exec));
  T(cuGraphDestroy(graph));
  /* What invalidates a capture. */
  T(cuStreamBeginCapture_v2(stream, mode));
  T(cuStreamQuery(stream));
  T(cuStreamIsCapturing(stream, &status));
  V(status);
  T(cuMemcpyAsync(b, a, 64, stream));
  T(cuStreamEndCapture(stream, &graph));
  V(graph == NULL);
  T(cuStreamBeginCapture_v2(stream, mode));
  T(cuStreamSynchronize(stream));
  T(cuStreamEndCapture(stream, &graph));
  T(cuStreamBeginCapture_v2(stream, mode));
  T(cuMemAlloc_v2(&c, 64));
  T(cuStreamEndCapture(stream, &graph));
  if (c) T(cuMemFree_v2(c));
  if (graph) T(cuGraphDestroy(graph));
  /* Permitted in a relaxed thread. */
  old = 2;
  T(cuStreamBeginCapture_v2(stream, mode));
  T(cuThreadExchangeStreamCaptureMode(&old));
  V(old);
  T(cuMemAlloc_v2(&c, 64));
  T(cuThreadExchangeStreamCaptureMode(&old));
  T(cuStreamEndCapture(stream, &graph));
  T(cuGraphDestroy(graph));
  T(cuMemFree_v2(c));
}

static void captures(void) {
  CUgraph graph = NULL;
  int status;
  for (int mode = 0; mode < 3; ++mode) capture(mode);
  T(cuStreamEndCapture(stream, &graph));
  T(cuStreamBeginCapture_v2(NULL, 0));
  /* The legacy stream during a blocking stream's capture. */
  T(cuStreamBeginCapture_v2(blocking, 2));
  T(cuStreamIsCapturing(NULL, &status));
  T(cuStreamIsCapturing(blocking, &status));
  V(status);
  T(cuMemcpyAsync(a, b, 64, NULL));
  T(cuStreamIsCapturing(blocking, &status));
  V(status);
  T(cuStreamEndCapture(blocking, &graph));
  T(cuStreamSynchronize(NULL));
}

static void modules(const char *file) {
  CUmodule module = NULL;
  CUfunction kernel = NULL;
  static char text[1 << 20];
  T(cuModuleLoadData(&module, "no image"));
  FILE *ptx = file ? fopen(file, "rb") : NULL;
  if (ptx == NULL) return;
  size_t n = fread(text, 1, sizeof text - 1, ptx);
  text[n] = '\0';
  fclose(ptx);
  T(cuModuleLoadData(&module, text));
  T(cuModuleGetFunction(&kernel, module, "no such kernel"));
  T(cuModuleGetFunction(&kernel, module, "dlrs_run"));
  T(cuLaunchKernel(kernel, 0, 1, 1, 256, 1, 1, 0, stream, NULL, NULL));
  T(cuModuleUnload(module));
}

static void ending(void) {
  T(cuEventDestroy_v2(event));
  T(cuEventDestroy_v2(second));
  T(cuStreamDestroy_v2(NULL));
  T(cuStreamDestroy_v2(blocking));
  T(cuStreamDestroy_v2(stream));
  T(cuStreamDestroy_v2(other));
  T(cuMemFree_v2(a));
  T(cuMemFree_v2(b));
  T(cuMemFree_v2(managed));
  T(cuMemFreeHost(pinned));
  T(cuMemFree_v2(P(pageable)));
  T(cuCtxCreate_v2(&own, 0, device));
  T(cuCtxGetCurrent(&got));
  V(got == own);
  T(cuCtxDestroy_v2(own));
  T(cuCtxGetCurrent(&got));
  V(got == context);
  T(cuCtxPopCurrent_v2(&got));
  T(cuCtxGetCurrent(&got));
  V(got == NULL);
  T(cuDevicePrimaryCtxRelease_v2(device));
  T(cuCtxSynchronize());
}

/* ---- The effect of a call on a capture of another stream --------------------------------------*/

static int capture_mode;

static void begin(void) { cuStreamBeginCapture_v2(stream, capture_mode); }

/* Whether the capture is active (1) or invalidated (2), and the code of ending it. */
static int end(int code) {
  CUgraph graph = NULL;
  int status = -1;
  cuStreamIsCapturing(stream, &status);
  int ended = cuStreamEndCapture(stream, &graph);
  if (graph) cuGraphDestroy(graph);
  token("the capture next to that call", "%d/%d", status, ended);
  return code;
}
#define NEXT_TO(text) (begin(), end(call(#text, text)))

static void work_next_to(void) {
  CUcontext owner;
  int status;
  NEXT_TO(cuStreamSynchronize(other));
  NEXT_TO(cuStreamSynchronize(NULL));
  NEXT_TO(cuStreamQuery(other));
  NEXT_TO(cuStreamQuery(NULL));
  NEXT_TO(cuStreamIsCapturing(NULL, &status));
  NEXT_TO(cuStreamGetCtx(other, &owner));
  NEXT_TO(cuEventRecord(event, other));
  T(cuStreamSynchronize(other));
  NEXT_TO(cuEventQuery(event));
  NEXT_TO(cuEventSynchronize(event));
  NEXT_TO(cuStreamWaitEvent(other, event, 0));
  NEXT_TO(cuMemcpyAsync(a, b, 64, other));
  NEXT_TO(cuMemcpyAsync(a, b, 64, NULL));
  NEXT_TO(cuMemcpyAsync(a, P(pinned), 64, other));
  NEXT_TO(cuMemcpyAsync(a, P(pageable), 64, other));
  NEXT_TO(cuMemcpyAsync(P(pageable), a, 64, other));
  NEXT_TO(cuMemsetD8Async(a, 9, 64, other));
  NEXT_TO(cuCtxSynchronize());
  T(cuCtxSynchronize());
}

/* Resources are released, if need be afterwards. */
static void memory_next_to(void) {
  CUdeviceptr c = 0;
  CUstream fresh = NULL;
  CUevent late = NULL;
  CUmodule module;
  void *host = NULL;
  size_t size, total;
  unsigned type;
  NEXT_TO(cuPointerGetAttribute(&type, 2, a));
  NEXT_TO(cuMemGetAddressRange_v2(NULL, &size, a));
  NEXT_TO(cuMemGetInfo_v2(&size, &total));
  NEXT_TO(cuMemAllocAsync(&c, 64, other));
  if (c == 0) T(cuMemAllocAsync(&c, 64, other));
  if (NEXT_TO(cuMemFreeAsync(c, other))) T(cuMemFreeAsync(c, other));
  c = 0;
  NEXT_TO(cuMemAlloc_v2(&c, 64));
  if (c == 0) T(cuMemAlloc_v2(&c, 64));
  if (NEXT_TO(cuMemFree_v2(c))) T(cuMemFree_v2(c));
  NEXT_TO(cuMemHostAlloc(&host, 64, 0));
  if (host == NULL) T(cuMemHostAlloc(&host, 64, 0));
  if (NEXT_TO(cuMemFreeHost(host))) T(cuMemFreeHost(host));
  if (NEXT_TO(cuMemHostRegister_v2(page, 4096, 0))) T(cuMemHostRegister_v2(page, 4096, 0));
  if (NEXT_TO(cuMemHostUnregister(page))) T(cuMemHostUnregister(page));
  NEXT_TO(cuStreamCreate(&fresh, 1));
  if (fresh && NEXT_TO(cuStreamDestroy_v2(fresh))) T(cuStreamDestroy_v2(fresh));
  NEXT_TO(cuEventCreate(&late, 2));
  if (late && NEXT_TO(cuEventDestroy_v2(late))) T(cuEventDestroy_v2(late));
  NEXT_TO(cuModuleLoadData(&module, "no image"));
  T(cuCtxSynchronize());
}

/* A thread without a capture, next to one with a capture. */
static void *bystander(void *careful) {
  T(cuCtxSetCurrent(context));
  T(cuThreadExchangeStreamCaptureMode(careful));
  T(cuStreamSynchronize(other));
  return NULL;
}

static int in_a_thread(int careful) {
  pthread_t thread;
  return pthread_create(&thread, NULL, bystander, &careful) || pthread_join(thread, NULL);
}

/* For each mode: the default (0), the thread's own captures only (1), relaxed (2). Each run creates
 * its resources anew, so that the numbers above stay the same. */
static void next_to(void) {
  CUdeviceptr c = 1;
  T(cuDevicePrimaryCtxRetain(&context, device));
  T(cuCtxPushCurrent_v2(context));
  T(cuMemAlloc_v2(&a, 4096));
  T(cuMemAlloc_v2(&b, 4096));
  T(cuMemHostAlloc(&pinned, 4096, 0));
  T(cuStreamCreate(&stream, 1));
  T(cuStreamCreate(&other, 1));
  T(cuEventCreate(&event, 2));
  for (capture_mode = 0; capture_mode < 3; ++capture_mode) {
    for (int care = 0; care < 3; ++care) {
      int careful = care;
      token("", "capture-%d-thread-%d:", capture_mode, care);
      NEXT_TO(in_a_thread(care));
      T(cuThreadExchangeStreamCaptureMode(&careful));
      work_next_to();
      memory_next_to();
      T(cuThreadExchangeStreamCaptureMode(&careful));
      V(careful);
    }
  }
  /* Cases that the first recording left out. */
  T(cuMemAllocAsync(&c, 0, NULL));
  V(c == 0);
  T(cuMemGetInfo_v2(NULL, NULL));
  T(cuCtxPopCurrent_v2(&got));
  T(cuDevicePrimaryCtxRelease_v2(device));
}

int main(int argc, char **argv) {
  void *driver = argc > 1 ? dlopen(argv[1], RTLD_NOW) : NULL;
  if (driver == NULL) {
    puts(argc > 1 ? dlerror() : "usage: trace DRIVER [PTX [RECORDED]]");
    return 2;
  }
#define FIND(name, arguments)             \
  *(void **)&name = dlsym(driver, #name); \
  if (name == NULL) fprintf(stderr, "the driver lacks %s\n", #name);
  CUDA_FUNCTIONS(FIND)
  recorded = argc > 3 ? fopen(argv[3], "r") : NULL;
#define SECTION(name, ...) token("", #name ":"), name(__VA_ARGS__)
  SECTION(starting);
  SECTION(memory);
  SECTION(streams);
  SECTION(copies);
  SECTION(captures);
  SECTION(modules, argc > 2 ? argv[2] : NULL);
  SECTION(ending);
  SECTION(next_to);
  if (recorded && fscanf(recorded, "%*s") != EOF) ++failed;
  if (argc > 3) printf("%d passed, %d failed\n", recorded ? number - failed : 0, recorded ? failed : 1);
  else puts("");
  return argc > 3 && (recorded == NULL || failed != 0);
}
