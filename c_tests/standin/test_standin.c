/* Tests of the stand-in for libcuda: that it detects mistakes. test_standin DRIVER */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <dlfcn.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cuda_types.h"
#include "standin.h"

static int passed, failed;
#define EQUAL(got, want) equal((long)(got), (long)(want), __LINE__, #got)
static void equal(long got, long want, int line, const char *what) {
  if (got == want) {
    ++passed;
  } else {
    ++failed;
    printf("test_standin.c:%d: %s is %ld, not %ld\n", line, what, got, want);
  }
}

#define DECLARE(name, arguments) static CUresult(*name) arguments;
CUDA_FUNCTIONS(DECLARE)
static int (*ctl)(int, long, long, const char *);
static void (*stats_of)(standin_stats_t *);
static const char *(*violation)(void);
static void *(*bytes_of)(const void *);

static void load(const char *path) {
  void *driver = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (driver == NULL) {
    puts(dlerror());
    exit(1);
  }
#define FIND(name, arguments) *(void **)&name = dlsym(driver, #name);
  CUDA_FUNCTIONS(FIND)
  *(void **)&ctl = dlsym(driver, "standin_ctl");
  *(void **)&stats_of = dlsym(driver, "standin_stats");
  *(void **)&violation = dlsym(driver, "standin_violation");
  *(void **)&bytes_of = dlsym(driver, "standin_bytes");
}

static standin_stats_t now(void) {
  standin_stats_t stats;
  stats_of(&stats);
  return stats;
}

static unsigned char *bytes(CUdeviceptr address) { return bytes_of((void *)(uintptr_t)address); }
#define P(pointer) ((CUdeviceptr)(uintptr_t)(pointer))

/* What cases use; the end of the context frees it. */
static CUdeviceptr room(size_t nbytes) {
  CUdeviceptr it = 0;
  EQUAL(cuMemAlloc_v2(&it, nbytes), 0);
  return it;
}
static CUstream stream_new(int nonblocking) {
  CUstream it = NULL;
  EQUAL(cuStreamCreate(&it, (unsigned)nonblocking), 0);
  return it;
}

static sigjmp_buf landing;
static void fell(int number) {
  (void)number;
  siglongjmp(landing, 1);
}

static void memory(void) {
  CUdeviceptr a = room(1000);
  EQUAL(a % 256, 0);
  signal(SIGSEGV, fell);
  if (sigsetjmp(landing, 1) == 0) {
    *(volatile char *)(uintptr_t)a = 1;
    EQUAL(0, 1); /* the host has written to device memory */
  } else {
    EQUAL(1, 1);
  }
  signal(SIGSEGV, SIG_DFL);
  bytes(a)[999] = 7;
  EQUAL(now().violations, 0);
  bytes(a)[1000] = 7; /* the red zone */
  EQUAL(now().violations, 1);
  EQUAL(cuMemFree_v2(a + 1), 1);
  EQUAL(cuMemFree_v2(a), 0);
  EQUAL(cuMemFree_v2(a), 1);
  EQUAL(now().violations, 3);
  EQUAL(now().device_blocks, 0);
  EQUAL(ctl(STANDIN_MEMORY, 0, 1 << 20, NULL), 0);
  EQUAL(cuMemAlloc_v2(&a, (1 << 20) + 1), 2);
  EQUAL(cuMemAlloc_v2(&a, 1 << 20), 0);
  CUdeviceptr b;
  EQUAL(cuMemAlloc_v2(&b, 1), 2);
  EQUAL(cuMemFree_v2(a), 0);
  EQUAL(cuMemAlloc_v2(&b, 0), 1);
  EQUAL(cuMemAllocAsync(&b, 0, NULL), 0);
  EQUAL(b, 0);
  size_t rest = 0, total = 0;
  EQUAL(cuMemGetInfo_v2(NULL, &total), 0);
  EQUAL(total, 1 << 20);
  EQUAL(cuMemGetInfo_v2(&rest, NULL), 0);
  EQUAL(rest, 1 << 20);
  ctl(STANDIN_DEFAULTS, 0, 0, NULL);
}

/* Nothing runs before a wait; events order streams; a missing wait shows. */
static void deferred(long seed) {
  CUdeviceptr a = room(64), b = room(64);
  CUstream first = stream_new(1), second = stream_new(1);
  CUevent event;
  void *pinned;
  ctl(STANDIN_SEED, seed, 0, NULL);
  EQUAL(cuMemHostAlloc(&pinned, 64, 0), 0);
  EQUAL(cuEventCreate(&event, 2), 0);
  memset(pinned, 3, 64);
  memset(bytes(a), 0, 64);
  EQUAL(cuMemcpyAsync(a, P(pinned), 64, first), 0);
  EQUAL(bytes(a)[0], 0);
  EQUAL(cuEventRecord(event, first), 0);
  EQUAL(cuStreamWaitEvent(second, event, 0), 0);
  EQUAL(cuMemcpyAsync(b, a, 64, second), 0);
  if (seed == 0) EQUAL(cuEventQuery(event), 600);
  EQUAL(cuStreamSynchronize(second), 0);
  EQUAL(bytes(b)[63], 3);
  EQUAL(cuStreamQuery(second), 0);
  EQUAL(cuEventSynchronize(event), 0);
  EQUAL(cuMemcpyAsync(a, b, 65, first), 1);
  EQUAL(cuStreamDestroy_v2(first), 0);
  EQUAL(cuStreamSynchronize(first), 400);
  EQUAL(cuEventDestroy_v2(event), 0);
  EQUAL(now().pending, 0);
  ctl(STANDIN_DEFAULTS, 0, 0, NULL);
}

/* The legacy stream waits for blocking streams, not for others. */
static void legacy(void) {
  static unsigned char numbers[] = {1, 2, 3};
  CUdeviceptr a = room(4);
  CUstream streams[] = {stream_new(0), stream_new(1), NULL};
  for (int i = 0; i < 3; ++i) EQUAL(cuMemcpyAsync(a + i, P(&numbers[i]), 1, streams[i]), 0);
  bytes(a)[1] = 0;
  EQUAL(cuStreamSynchronize(NULL), 0);
  EQUAL(bytes(a)[0], 1);
  EQUAL(bytes(a)[1], 0);
  EQUAL(bytes(a)[2], 3);
  EQUAL(cuStreamSynchronize(streams[1]), 0);
}

static void early_free(void) {
  static char host[16];
  CUdeviceptr a;
  CUstream stream = stream_new(1);
  long before = now().violations, blocks = now().device_blocks;
  EQUAL(cuMemAllocAsync(&a, 16, stream), 0);
  EQUAL(cuMemcpyAsync(a, P(host), 16, stream), 0);
  EQUAL(cuMemFreeAsync(a, stream), 0);
  EQUAL(cuMemFreeAsync(a, stream), 1);
  EQUAL(now().violations, before + 1);
  EQUAL(cuStreamSynchronize(stream), 0);
  EQUAL(now().device_blocks, blocks);
  ctl(STANDIN_FREE_WAITS, 0, 0, NULL);
  a = room(16);
  EQUAL(cuMemcpyAsync(a, P(host), 16, stream), 0);
  EQUAL(cuMemFree_v2(a), 0);
  EQUAL(now().violations, before + 2);
  ctl(STANDIN_DEFAULTS, 0, 0, NULL);
}

/* Memory of another device's pool is valid only in a call that names both devices; no kernel and no
 * fill accesses another device or context. */
static void devices(CUcontext first) {
  static char host[16];
  CUcontext second, own, popped;
  CUdeviceptr here = room(16), pool, mine, seen;
  CUevent event;
  long before = now().violations;
  EQUAL(cuDevicePrimaryCtxRetain(&second, 1), 0);
  EQUAL(cuCtxPushCurrent_v2(second), 0);
  CUstream stream = stream_new(1);
  CUdeviceptr plain = room(16);
  EQUAL(cuMemAllocAsync(&pool, 16, stream), 0);
  EQUAL(cuStreamSynchronize(stream), 0);
  EQUAL(cuEventCreate(&event, 2), 0);
  EQUAL(cuCtxPopCurrent_v2(&popped), 0);
  EQUAL(cuMemcpyAsync(here, plain, 16, NULL), 0);
  EQUAL(cuMemcpyAsync(here, pool, 16, NULL), 1);
  EQUAL(cuMemcpyAsync(P(host), pool, 16, NULL), 1);
  EQUAL(cuMemcpyAsync(P(host), pool, 16, stream), 0); /* its own device's */
  EQUAL(cuMemcpyPeerAsync(here, first, pool, second, 16, NULL), 0);
  EQUAL(now().violations, before);
  EQUAL(cuMemcpyPeerAsync(here, second, pool, second, 16, NULL), 1);
  EQUAL(now().violations, ++before);
  EQUAL(cuMemcpyPeerAsync(P(host), first, pool, second, 16, NULL), 1);
  EQUAL(cuMemsetD8Async(plain, 1, 16, NULL), 1);
  EQUAL(cuPointerGetAttribute(&seen, 3, here), 0);
  EQUAL(seen == here, 1);
  EQUAL(cuPointerGetAttribute(&seen, 3, plain), 1);
  EQUAL(cuEventRecord(event, NULL), 400); /* another device's */
  EQUAL(cuEventDestroy_v2(event), 0);
  EQUAL(cuStreamSynchronize(NULL), 0);
  EQUAL(cuDevicePrimaryCtxRelease_v2(1), 0);
  EQUAL(cuCtxCreate_v2(&own, 0, 0), 0);
  mine = room(16);
  EQUAL(cuEventCreate(&event, 2), 0);
  EQUAL(cuPointerGetAttribute(&seen, 3, here), 1);
  EQUAL(cuCtxPopCurrent_v2(&popped), 0);
  EQUAL(cuPointerGetAttribute(&seen, 3, mine), 1);
  EQUAL(cuMemsetD8Async(mine, 1, 16, NULL), 1);
  EQUAL(cuMemcpyAsync(here, mine, 16, NULL), 0);
  EQUAL(cuEventRecord(event, NULL), 400); /* another context's */
  EQUAL(cuStreamSynchronize(NULL), 0);
  EQUAL(cuEventDestroy_v2(event), 0);
  EQUAL(cuCtxDestroy_v2(own), 0);
}

/* A fault of a kernel is permanent: the context and what was in it are made anew. */
static void again(void) {
  CUcontext context;
  EQUAL(cuCtxPopCurrent_v2(&context), 0);
  EQUAL(cuDevicePrimaryCtxRelease_v2(0), 0);
  EQUAL(cuDevicePrimaryCtxRetain(&context, 0), 0);
  EQUAL(cuCtxPushCurrent_v2(context), 0);
}

/* What kernels do runs, and what they must not do is seen. Of 128 bytes of device memory and 128 of
 * registered host memory, the kernels are given the addresses; a thread each may use 4 bytes. */
#define MINE "st.shared.u32 [%rd3],%r1; "
#define NEXT "setp.ge.u32 %p1,%r1,255; @!%p1 ld.shared.u32 %r2,[%rd4]; "
static void kernels(void) {
  static const struct {
    int load, run;
    const char *said, *body;
  } all[] = {
      {0, 0, NULL, "st.global.u32 [%rd1],7;"},
      {0, 0, NULL, "ld.global.u32 %r1,[%rd2]; st.global.u32 [%rd1],%r1;"},
      {0, 0, NULL, MINE "bar.sync 0; " NEXT},
      {0, 0, NULL, "setp.ge.u32 %p1,%r1,32; @%p1 bra $1; add.s32 %r1,%r1,1; $1: bar.sync 0;"},
      {0, 0, NULL, "setp.ge.u32 %p1,%r1,32; @!%p1 st.global.u32 [%rd1],%r1;"},
      {218, 0, "not understood: fma.rn.f32 ", "fma.rn.f32 %r1,%r1,%r1,%r1;"},
      {218, 0, "not understood: add.f32 ", "add.f32 %r1,%r1,%r1;"},
      {218, 0, "not understood: add.s32 %r9", "add.s32 %r9,%r1,1;"},
      {218, 0, "not understood: ld.local.u32 ", "ld.local.u32 %r1,[%rd1];"},
      {0, 700, "not aligned", "st.global.u16 [%rd1+1],%r1;"},
      {0, 700, "not aligned", "ld.global.u64 %rd3,[%rd1+4];"},
      {0, 700, "does not reach", "st.global.u32 [%rd1+128],%r1;"},
      {0, 700, "does not reach", "ld.global.u32 %r1,[%rd1+-4];"},
      {0, 700, "does not reach", "ld.global.u32 %r1,[%rd2+128];"},
      {0, 700, "does not reach", "ld.global.u32 %r1,[%rd2+-64];"},
      {0, 700, "not in shared memory", "st.shared.u32 [%rd4+4],%r1;"},
      {0, 700, "not in the argument", "ld.param.u32 %r1,[all+960];"},
      {0, 700, "not written", "ld.shared.u32 %r1,[%rd3];"},
      {0, 700, "race", "st.shared.u32 [all],%r1;"},
      {0, 700, "race", MINE NEXT},
      {0, 700, "race", MINE "bar.sync 0; " NEXT MINE},
      {0, 700, "barrier", "setp.ge.u32 %p1,%r1,32; @%p1 bra $1; bar.sync 0; $1:"},
      {0, 700, "does not end", "$1: bra $1;"},
  };
  static char memory[256] __attribute__((aligned(64)));
  static uint64_t argument[120];
  void *arguments[] = {argument};
  for (size_t i = 0; i < sizeof all / sizeof *all; ++i) {
    char image[2048], body[512], *to = body;
    for (const char *at = all[i].body; *at; ++at) {
      *to++ = *at == ' ' && (at[-1] == ';' || at[-1] == ':') ? '\n' : *at;
    }
    *to = '\0';
    snprintf(image, sizeof image,
             ".version 6.4\n.target sm_50\n.address_size 64\n.visible .entry run(\n"
             ".param .align 8 .b8 p[960]\n)\n.maxntid 256,1,1\n{\n.reg .pred %%p<2>;\n.reg .b32 %%r<3>;\n"
             ".reg .b64 %%rd<5>;\n.shared .align 4 .b8 all[1028];\nld.param.u64 %%rd1,[p];\n"
             "ld.param.u64 %%rd2,[p+8];\nmov.u32 %%r1,%%tid.x;\nmul.wide.u32 %%rd3,%%r1,4;\nmov.u64 %%rd4,all;\n"
             "add.s64 %%rd3,%%rd4,%%rd3;\nadd.s64 %%rd4,%%rd3,4;\n%s\nret;\n}\n", body);
    CUmodule module;
    CUfunction kernel;
    CUdeviceptr a = room(128);
    int bad = failed;
    long before = now().violations;
    EQUAL(cuMemHostRegister_v2(memory + 64, 128, 1), 0);
    argument[0] = a, argument[1] = (uint64_t)(uintptr_t)(memory + 64);
    EQUAL(cuModuleLoadData(&module, image), all[i].load);
    if (all[i].load == 0) {
      EQUAL(cuModuleGetFunction(&kernel, module, "run"), 0);
      EQUAL(cuLaunchKernel(kernel, 1, 1, 1, 256, 1, 1, 0, NULL, arguments, NULL), 0);
      EQUAL(cuStreamSynchronize(NULL), all[i].run);
    }
    if (i == 0) EQUAL(*(int *)bytes(a), 7);
    EQUAL(now().violations - before, all[i].said != NULL);
    if (all[i].said) EQUAL(strstr(violation(), all[i].said) != NULL, 1);
    if (failed > bad) printf("%s\n", all[i].body);
    if (all[i].run != 0) again();
    else EQUAL(cuMemHostUnregister(memory + 64), 0);
  }
}

static void *pushes(void *context) {
  CUcontext popped;
  EQUAL(cuCtxPushCurrent_v2(context), 0);
  EQUAL(cuCtxPopCurrent_v2(&popped), 0);
  return NULL;
}

/* A green context is current to one thread at a time. */
static void greens(void) {
  CUgreenCtx green, owner = NULL;
  CUcontext context, popped;
  CUstream stream;
  CUdevice device = -1;
  pthread_t thread;
  long before = now().violations;
  EQUAL(cuGreenCtxCreate(&green, NULL, 0, 1), 0);
  EQUAL(cuCtxFromGreenCtx(&context, green), 0);
  EQUAL(cuGreenCtxStreamCreate(&stream, green, 1, 0), 0);
  EQUAL(cuStreamGetGreenCtx(stream, &owner), 0);
  EQUAL(owner == green, 1);
  EQUAL(cuStreamGetGreenCtx(NULL, &owner), 0);
  EQUAL(owner == NULL, 1);
  EQUAL(cuStreamGetDevice(stream, &device), 0);
  EQUAL(device, 0);
  for (int held = 0; held < 2; ++held) {
    if (held) EQUAL(cuCtxPushCurrent_v2(context), 0);
    EQUAL(pthread_create(&thread, NULL, pushes, context), 0);
    pthread_join(thread, NULL);
    EQUAL(now().violations, before + held);
    if (held) EQUAL(cuCtxPopCurrent_v2(&popped), 0);
  }
  EQUAL(cuGreenCtxDestroy(green), 0);
}

static void faults(CUcontext context) {
  static char host[16];
  CUdeviceptr a, b;
  CUcontext popped;
  long blocks = now().device_blocks;
  EQUAL(ctl(STANDIN_FAIL, 2, 999, NULL), 0);
  a = room(16);
  EQUAL(cuMemFree_v2(a), 999); /* but it is freed */
  EQUAL(now().device_blocks, blocks);
  EQUAL(now().injected, 1);
  EQUAL(ctl(STANDIN_FAIL_ALWAYS, 1, 2, "cuMemAlloc_v2"), 0);
  EQUAL(cuMemAlloc_v2(&a, 16), 2);
  CUstream stream = stream_new(1);
  EQUAL(cuMemAlloc_v2(&a, 16), 2);
  ctl(STANDIN_GARBAGE, 1, 1, "cuMemAlloc_v2");
  a = 5;
  EQUAL(cuMemAlloc_v2(&a, 16), 0);
  EQUAL(a, 0);
  ctl(STANDIN_DEFAULTS, 0, 0, NULL);
  a = room(16);
  ctl(STANDIN_FAULT_AFTER, 1, 700, NULL);
  EQUAL(cuMemcpyAsync(a, P(host), 16, stream), 0);
  EQUAL(cuStreamSynchronize(stream), 700);
  EQUAL(cuMemAlloc_v2(&b, 16), 700);
  EQUAL(cuMemFree_v2(a), 700);
  EQUAL(cuStreamDestroy_v2(stream), 700);
  EQUAL(cuCtxPopCurrent_v2(&popped), 0);
  EQUAL(popped == context, 1);
  EQUAL(cuDevicePrimaryCtxRelease_v2(0), 0);
  EQUAL(cuDevicePrimaryCtxRetain(&context, 0), 0);
  EQUAL(cuCtxPushCurrent_v2(popped), 201); /* from before the recreation */
  EQUAL(cuCtxPushCurrent_v2(context), 0);
  room(16);
}

static void forked(void) {
  int status, count;
  pid_t child = fork();
  if (child == 0) _exit(cuDeviceGetCount(&count) == 3 ? 0 : 1);
  waitpid(child, &status, 0);
  EQUAL(status, 0);
  ctl(STANDIN_EXITING, 1, 0, NULL);
  EQUAL(cuDeviceGetCount(&count), 4);
  ctl(STANDIN_DEFAULTS, 0, 0, NULL);
}

int main(int argc, char **argv) {
  CUcontext context, got;
  CUdeviceptr a;
  int count;
  (void)argc;
  load(argv[1]);
  EQUAL(cuDeviceGetCount(&count), 3);
  EQUAL(cuInit(0), 0);
  EQUAL(cuDeviceGetCount(&count), 0);
  EQUAL(cuMemAlloc_v2(&a, 16), 201);
  EQUAL(cuDevicePrimaryCtxRetain(&context, 9), 101);
  EQUAL(cuDevicePrimaryCtxRetain(&context, 0), 0);
  EQUAL(cuCtxPushCurrent_v2(context), 0);
  EQUAL(cuCtxGetCurrent(&got), 0);
  EQUAL(got == context, 1);
  memory();
  for (long seed = 0; seed < 20; ++seed) deferred(seed);
  legacy();
  early_free();
  devices(context);
  greens();
  kernels();
  EQUAL(cuCtxGetCurrent(&context), 0);
  faults(context);
  forked();
  EQUAL(cuCtxPopCurrent_v2(&context), 0);
  EQUAL(cuDevicePrimaryCtxRelease_v2(0), 0);
  standin_stats_t end = now();
  EQUAL(end.retains + end.streams + end.events + end.device_blocks + end.pinned + end.pending, 0);
  if (failed) printf("last violation: %s\n", violation());
  printf("%d passed, %d failed\n", passed, failed);
  return failed != 0;
}
