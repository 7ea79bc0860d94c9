/* The backend for CUDA and ROCm on a stand-in driver: test_gpu_backend cuda|rocm DRIVER
 * DRIVER is the file that the library finds (LD_LIBRARY_PATH); this program reads its counters. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <dlfcn.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../harness.h"
#include "../standin/standin.h"

static int (*ctl)(int, long, long, const char *);
static void (*stats_of)(standin_stats_t *);
static const char *(*violation)(void);
static void *(*bytes_of)(const void *);
static long (*count_of)(const char *);
static size_t (*log_of)(char *, size_t);

static int rocm;
static DLDevice cpu = {kDLCPU, 0}, device, second, pinned, managed;

static void load(const char *path) {
  void *driver = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (driver == NULL) {
    puts(dlerror());
    exit(2);
  }
  *(void **)&ctl = dlsym(driver, "standin_ctl");
  *(void **)&stats_of = dlsym(driver, "standin_stats");
  *(void **)&violation = dlsym(driver, "standin_violation");
  *(void **)&bytes_of = dlsym(driver, "standin_bytes");
  *(void **)&count_of = dlsym(driver, "standin_count");
  *(void **)&log_of = dlsym(driver, "standin_log");
}

static standin_stats_t now(void) {
  standin_stats_t stats;
  stats_of(&stats);
  return stats;
}

static void no_violation(int line) {
  const char *words = violation();
  if (*words) printf("line %d: %s\n", line, words);
  CHECK(*words == '\0');
}
#define NO_VIOLATION() no_violation(__LINE__)

static unsigned state = 1;
static unsigned chance(unsigned below) {
  state = state * 1664525u + 1013904223u;
  return (state >> 8) % below;
}

/* ---- Memory, streams, events ----------------------------------------------------------------*/

static void memory(void) {
  void *data = NULL, *stream = NULL;
  int32_t count = 0;
  standin_stats_t before = now();
  WORKS(dlrs_device_count(device.device_type, &count, ERR));
  EQUAL(count, 2);
  WORKS(dlrs_device_count(pinned.device_type, &count, ERR));
  EQUAL(count, 1);
  for (int id = 0; id < 2; ++id) {
    DLDevice on = {device.device_type, id};
    WORKS(dlrs_mem_alloc(on, 1000, 0, NULL, &data, ERR));
    EQUAL(now().device_blocks, 1);
    dlrs_pointer_info info = {sizeof info, 0, {0, 0}, NULL, 0};
    WORKS(dlrs_pointer_device(device.device_type, (char *)data + 10, &info, ERR));
    EQUAL(info.device.device_type, device.device_type);
    EQUAL(info.device.device_id, id);
    CHECK(info.base == data);
    EQUAL(info.nbytes, 1000);
    WORKS(dlrs_mem_free(on, data, 1000, 0, NULL, ERR));
    WORKS(dlrs_stream_create(on, &stream, ERR));
    WORKS(dlrs_mem_alloc(on, 1000, 64, stream, &data, ERR));
    WORKS(dlrs_mem_free(on, data, 1000, 64, stream, ERR));
    WORKS(dlrs_mem_alloc(on, 1000, 64, stream, &data, ERR));
    WORKS(dlrs_mem_free(on, data, 1000, 64, NULL, ERR));
    WORKS(dlrs_stream_sync(on, stream, ERR));
    WORKS(dlrs_stream_destroy(on, stream, ERR));
  }
  WORKS(dlrs_mem_alloc(pinned, 1000, 64, NULL, &data, ERR));
  EQUAL(now().pinned - before.pinned, 1);
  memset(data, 1, 1000);
  WORKS(dlrs_mem_free(pinned, data, 1000, 64, NULL, ERR));
  if (!rocm) {
    WORKS(dlrs_mem_alloc(managed, 1000, 64, NULL, &data, ERR));
    memset(data, 1, 1000);
    WORKS(dlrs_mem_free(managed, data, 1000, 64, NULL, ERR));
  }
  EQUAL(now().device_blocks + now().managed + now().streams, 0);
  EQUAL(now().pinned, before.pinned);
  DLDevice third = {device.device_type, 2};
  REFUSED(DLRS_DEVICE_ID, ANY, DLRS_FIELD_DEVICE_ID, ANY,
          dlrs_mem_alloc(third, 1000, 64, NULL, &data, ERR));
  EQUAL(now().depth, before.depth);
  NO_VIOLATION();
}

static void streams(void) {
  void *a = NULL, *b = NULL, *event = NULL;
  int32_t done = 0;
  long events = now().events;
  WORKS(dlrs_stream_create(device, &a, ERR));
  WORKS(dlrs_stream_create(second, &b, ERR));
  if (!rocm) REFUSED(DLRS_STREAM, ANY, ANY, ANY, dlrs_stream_sync(device, b, ERR));
  WORKS(dlrs_event_create(device, &event, ERR));
  WORKS(dlrs_event_record(device, event, a, ERR));
  WORKS(dlrs_event_wait(second, event, b, ERR));
  WORKS(dlrs_event_sync(device, event, ERR));
  WORKS(dlrs_event_query(device, event, &done, ERR));
  EQUAL(done, 1);
  WORKS(dlrs_event_destroy(device, event, ERR));
  WORKS(dlrs_stream_query(device, a, &done, ERR));
  WORKS(dlrs_stream_wait(device, a, NULL, ERR));
  WORKS(dlrs_stream_sync(device, a, ERR));
  WORKS(dlrs_stream_sync(second, b, ERR));
  WORKS(dlrs_stream_destroy(device, a, ERR));
  WORKS(dlrs_stream_destroy(second, b, ERR));
  EQUAL(now().streams + now().events, events);
  NO_VIOLATION();
}

/* ---- Copies ---------------------------------------------------------------------------------*/

typedef struct side {
  DLDevice on;
  unsigned char *data;  /* as the driver reports */
  unsigned char *bytes; /* where the host may read */
  size_t nbytes;
  DLTensor tensor;
  int64_t shape[5], strides[5];
} side;

static void side_new(side *self, DLDevice on, size_t nbytes) {
  void *data = NULL;
  self->on = on;
  self->nbytes = nbytes;
  if (on.device_type == kDLCPU) {
    self->data = self->bytes = malloc(nbytes);
  } else {
    WORKS(dlrs_mem_alloc(on, nbytes, 0, NULL, &data, ERR));
    self->data = data;
    self->bytes = bytes_of(data) ? bytes_of(data) : data;
  }
  for (size_t i = 0; i < nbytes; ++i) self->bytes[i] = (unsigned char)chance(256);
}

static void side_free(side *self) {
  if (self->on.device_type == kDLCPU) free(self->data);
  else WORKS(dlrs_mem_free(self->on, self->data, self->nbytes, 0, NULL, ERR));
}

/* A layout of the shape with dimensions in any order, gaps and negative strides; bytes. */
static size_t layout(side *self, int ndim, const int64_t *shape, int itemsize, int dense) {
  int order[5];
  int64_t step = 1, first = 0;
  for (int i = 0; i < ndim; ++i) order[i] = i;
  for (int i = ndim - 1; i > 0 && dense < 2; --i) {
    int j = (int)chance((unsigned)i + 1), kept = order[i];
    order[i] = order[j];
    order[j] = kept;
  }
  for (int k = ndim - 1; k >= 0; --k) {
    int i = order[k];
    self->shape[i] = shape[i];
    if (!dense && chance(3) == 0) step += chance(3);
    self->strides[i] = step;
    step *= shape[i];
    if (!dense && chance(4) == 0) {
      first += self->strides[i] * (shape[i] - 1);
      self->strides[i] = -self->strides[i];
    }
  }
  self->tensor.ndim = ndim;
  self->tensor.shape = self->shape;
  self->tensor.strides = self->strides;
  self->tensor.dtype = (DLDataType){kDLUInt, (uint8_t)(8 * itemsize), 1};
  if (itemsize == 16) self->tensor.dtype = (DLDataType){kDLComplex, 128, 1};
  self->tensor.byte_offset = (uint64_t)(first * itemsize);
  return (size_t)(step * itemsize);
}

static void place(side *self) {
  self->tensor.data = self->data;
  self->tensor.device = self->on;
}

static void copy_once(DLDevice from, DLDevice to, int64_t extent, int dense) {
  int64_t shape[5];
  int ndim = 1 + (int)chance(4), itemsize = 1 << chance(5);
  side src = {0}, dst = {0};
  for (int i = 0; i < ndim; ++i) shape[i] = 1 + chance((unsigned)extent);
  side_new(&src, from, layout(&src, ndim, shape, itemsize, dense));
  side_new(&dst, to, layout(&dst, ndim, shape, itemsize, dense));
  place(&src);
  place(&dst);
  unsigned char *want = malloc(dst.nbytes);
  memcpy(want, dst.bytes, dst.nbytes);
  int64_t index[5] = {0};
  for (;;) {
    int64_t s = 0, d = 0;
    for (int i = 0; i < ndim; ++i) {
      s += index[i] * src.strides[i];
      d += index[i] * dst.strides[i];
    }
    memcpy(want + dst.tensor.byte_offset + d * itemsize, src.bytes + src.tensor.byte_offset + s * itemsize,
           (size_t)itemsize);
    int i = ndim - 1;
    while (i >= 0 && ++index[i] == shape[i]) index[i--] = 0;
    if (i < 0) break;
  }
  WORKS(dlrs_copy_desc(&src.tensor, 0, &dst.tensor, 0, NULL, ERR));
  if (!CHECK(memcmp(want, dst.bytes, dst.nbytes) == 0)) {
    printf("  from %d:%d to %d:%d, %d dims of %d bytes\n", from.device_type, from.device_id,
           to.device_type, to.device_id, ndim, itemsize);
  }
  NO_VIOLATION();
  free(want);
  side_free(&src);
  side_free(&dst);
}

static void copies(void) {
  DLDevice all[] = {cpu, device, second, pinned, managed};
  int kinds = rocm ? 4 : 5;
  for (int seed = 0; seed < 2; ++seed) {
    ctl(STANDIN_SEED, seed * 7, 0, NULL);
    for (int i = 0; i < kinds * kinds; ++i) {
      for (int dense = 0; dense < 3; ++dense) {
        for (int n = 0; n < 4; ++n) copy_once(all[i / kinds], all[i % kinds], 7, dense);
        copy_once(all[i / kinds], all[i % kinds], 24, dense);
      }
    }
  }
  ctl(STANDIN_SEED, 0, 0, NULL);
  CHECK(count_of(rocm ? "hipModuleLaunchKernel" : "cuLaunchKernel") > 100);
  EQUAL(now().device_blocks + now().managed + now().streams + now().pending, 0);
  EQUAL(now().depth, 0);
}

static void dense(side *self, DLDevice on, int64_t rows, int64_t columns, int turned) {
  memset(self, 0, sizeof *self);
  side_new(self, on, (size_t)(rows * columns));
  self->shape[0] = rows;
  self->shape[1] = columns;
  self->strides[0] = turned ? 1 : columns;
  self->strides[1] = turned ? rows : 1;
  self->tensor.ndim = 2;
  self->tensor.shape = self->shape;
  self->tensor.strides = self->strides;
  self->tensor.dtype = (DLDataType){kDLUInt, 8, 1};
  place(self);
}

static int same(const side *src, const side *dst) {
  for (int64_t i = 0; i < src->shape[0]; ++i) {
    for (int64_t j = 0; j < src->shape[1]; ++j) {
      if (dst->bytes[i * dst->strides[0] + j * dst->strides[1]] !=
          src->bytes[i * src->strides[0] + j * src->strides[1]]) {
        return 0;
      }
    }
  }
  return 1;
}

/* Many dimensions, none of which can be merged: a single launch. */
static void many_dims(void) {
  enum { NDIM = 16, NBYTES = 1 << NDIM };
  const char *launch = rocm ? "hipModuleLaunchKernel" : "cuLaunchKernel";
  int64_t shape[NDIM], up[NDIM], down[NDIM];
  side src = {0}, dst = {0};
  for (int i = 0; i < NDIM; ++i) {
    shape[i] = 2;
    up[i] = (int64_t)1 << i;
    down[i] = NBYTES / 2 >> i;
  }
  side_new(&src, device, NBYTES);
  side_new(&dst, device, NBYTES);
  src.tensor = (DLTensor){src.data, device, NDIM, {kDLUInt, 8, 1}, shape, up, 0};
  dst.tensor = (DLTensor){dst.data, device, NDIM, {kDLUInt, 8, 1}, shape, down, 0};
  count_of(NULL);
  WORKS(dlrs_copy_desc(&src.tensor, 0, &dst.tensor, 0, NULL, ERR));
  EQUAL(count_of(launch), 1);
  int wrong = 0;
  for (int at = 0; at < NBYTES; ++at) {
    int turned = 0;
    for (int i = 0; i < NDIM; ++i) turned |= (at >> i & 1) << (NDIM - 1 - i);
    wrong += src.bytes[at] != dst.bytes[turned];
  }
  EQUAL(wrong, 0);
  NO_VIOLATION();
  side_free(&src);
  side_free(&dst);
}

/* Through the pinned buffers: contiguous and transposed, several pieces, twice, so that buffers are
 * reused. Asynchronously from pageable memory, which may change once the call has returned. */
static void large(void) {
  void *stream = NULL;
  WORKS(dlrs_stream_create(device, &stream, ERR));
  for (int turn = 0; turn < 6; ++turn) {
    side src, dst;
    int up = turn & 1, turned = turn >> 1 & 1, async = turn < 4;
    dense(&src, up ? cpu : device, 3000, 3501, 0);
    dense(&dst, up ? device : cpu, 3000, 3501, turned);
    ctl(STANDIN_SEED, turn & 2, 0, NULL);
    dlrs_copy_options options = {0};
    options.struct_size = sizeof options;
    options.flags = async ? DLRS_COPY_ASYNC : 0;
    if (up) options.dst_stream = stream;
    else options.src_stream = stream;
    WORKS(dlrs_copy_desc(&src.tensor, 0, &dst.tensor, 0, &options, ERR));
    if (async && up) {
      unsigned char *kept = malloc(src.nbytes);
      memcpy(kept, src.bytes, src.nbytes);
      memset(src.bytes, 0, src.nbytes);
      WORKS(dlrs_stream_sync(device, stream, ERR));
      memcpy(src.bytes, kept, src.nbytes);
      free(kept);
    } else if (async) {
      WORKS(dlrs_stream_sync(device, stream, ERR));
    }
    CHECK(same(&src, &dst));
    NO_VIOLATION();
    side_free(&src);
    side_free(&dst);
  }
  ctl(STANDIN_SEED, 0, 0, NULL);
  CHECK(now().pinned <= 32); /* cached: two per thread, of eight, and device */
  EQUAL(now().events, now().pinned);
  WORKS(dlrs_stream_destroy(device, stream, ERR));
}

/* The pieces of a copy through the pinned buffers are of 2 MiB, and of an eighth where the bus
 * would be idle: one per thread at the start of a copy to the device, and at the end of one
 * from it. The last piece is small enough for one part. */
static int one_by_one(void *context, size_t n, void (*body)(void *, size_t), void *of) {
  *(size_t *)context = n;
  for (size_t i = 0; i < n; ++i) body(of, i);
  return 0;
}

static void pieces(void) {
  enum { COLUMNS = 4096, PIECE = 512, ROWS = 7 * PIECE + 64 };
  const char *copy = rocm ? "hipMemcpyAsync" : "cuMemcpyAsync";
  for (int up = 0; up < 2; ++up) {
    for (int threads = 1; threads < 5; ++threads) {
      side src, dst;
      size_t ran = 1;
      dense(&src, up ? cpu : device, ROWS, COLUMNS, 0);
      dense(&dst, up ? device : cpu, ROWS, COLUMNS, 0);
      dlrs_copy_options options = {0};
      options.struct_size = sizeof options;
      options.threads = (uint32_t)threads;
      options.parallel_for = one_by_one;
      options.parallel_context = &ran;
      count_of(NULL);
      WORKS(dlrs_copy_desc(&src.tensor, 0, &dst.tensor, 0, &options, ERR));
      EQUAL(ran, threads);
      EQUAL(count_of(copy), 8 + (threads == 1 ? 0 : 7 * (up ? threads : threads - 1)));
      CHECK(same(&src, &dst));
      side_free(&src);
      side_free(&dst);
    }
  }
}

static void *find(const char *path, const char *name) {
  return dlsym(dlopen(path, RTLD_NOW | RTLD_LOCAL), name);
}

/* The exact driver calls, in order, of a small copy that is only enqueued: the current context, the
 * stream's context, the devices of the addresses, and the copy. docs/devices.md has their
 * numbers. */
enum { NOTHING, OWN, OTHER }; /* the current context: none, the device's, another device's */

static void asks(int current, int handle, DLDevice from, DLDevice to, const char *want) {
  char calls[512];
  void *stream = NULL;
  side src, dst;
  if (handle) WORKS(dlrs_stream_create(device, &stream, ERR));
  dense(&src, from, 4, 25, 0);
  dense(&dst, to, 4, 25, 0);
  dlrs_copy_options options = {0};
  options.struct_size = sizeof options;
  options.flags = DLRS_COPY_ASYNC;
  if (from.device_type != kDLCPU) options.src_stream = stream;
  if (to.device_type != kDLCPU) options.dst_stream = stream;
  for (int i = 0; i < 2; ++i) { /* the second copy makes the same calls as the first */
    count_of(NULL);
    WORKS(dlrs_copy_desc(&src.tensor, 0, &dst.tensor, 0, &options, ERR));
    log_of(calls, sizeof calls);
    for (char *c = calls; *c; ++c) *c = *c == '\n' ? ' ' : *c;
    if (strcmp(calls, want) != 0) printf("current %d: %s\n", current, calls);
    CHECK(strcmp(calls, want) == 0);
  }
  WORKS(dlrs_stream_sync(device, stream, ERR));
  CHECK(same(&src, &dst));
  side_free(&src);
  side_free(&dst);
  if (handle) WORKS(dlrs_stream_destroy(device, stream, ERR));
}

static void cost(const char *path) {
  int (*set)(void *), (*primary)(void **, int), (*release)(int), (*set_device)(int);
  void *contexts[2] = {NULL, NULL};
  if (rocm) {
    *(void **)&set_device = find(path, "hipSetDevice");
    int whose = find(path, "hipStreamGetDevice") != NULL; /* HIP 5 does not report it */
#define ASKS(current, handle, from, to, calls) \
  asks(current, handle, from, to, whose ? "hipGetDevice hipStreamGetDevice " calls : "hipGetDevice " calls)
#define ADDRESS "hipPointerGetAttributes "
    ASKS(OWN, 1, cpu, device, ADDRESS "hipMemcpyAsync ");
    ASKS(OWN, 1, pinned, device, ADDRESS "hipMemcpyAsync ");
    ASKS(OWN, 1, device, cpu, ADDRESS "hipMemcpyAsync ");
    if (whose) ASKS(OWN, 1, device, pinned, ADDRESS "hipMemcpyAsync ");
    else ASKS(OWN, 1, device, pinned, "hipEventCreateWithFlags hipEventRecord hipEventDestroy " ADDRESS "hipMemcpyAsync ");
    ASKS(OWN, 1, device, device, ADDRESS ADDRESS "hipMemcpyAsync ");
    asks(OWN, 0, cpu, device, "hipGetDevice " ADDRESS "hipMemcpyAsync ");
    EQUAL(set_device(1), 0);
    ASKS(OTHER, 1, cpu, device, "hipSetDevice " ADDRESS "hipMemcpyAsync hipSetDevice ");
    EQUAL(set_device(0), 0);
    return;
  }
  *(void **)&set = find(path, "cuCtxSetCurrent");
  *(void **)&primary = find(path, "cuDevicePrimaryCtxRetain");
  *(void **)&release = find(path, "cuDevicePrimaryCtxRelease_v2");
  for (int i = 0; i < 2; ++i) EQUAL(primary(&contexts[i], i), 0);
#define CUDA "cuCtxGetCurrent cuStreamGetCtx "
#undef ADDRESS
#define ADDRESS "cuPointerGetAttribute "
  EQUAL(set(contexts[0]), 0);
  asks(OWN, 1, cpu, device, CUDA ADDRESS "cuMemcpyAsync ");
  asks(OWN, 1, pinned, device, CUDA ADDRESS "cuMemcpyAsync ");
  asks(OWN, 1, device, cpu, CUDA ADDRESS "cuMemcpyAsync ");
  asks(OWN, 1, device, pinned, CUDA ADDRESS "cuMemcpyAsync ");
  asks(OWN, 1, device, device, CUDA ADDRESS ADDRESS "cuMemcpyAsync ");
  asks(OWN, 0, pinned, device, "cuCtxGetCurrent " ADDRESS "cuMemcpyAsync ");
  EQUAL(set(contexts[1]), 0);
#define PUSHED CUDA "cuCtxPushCurrent_v2 "
  asks(OTHER, 1, cpu, device, PUSHED ADDRESS "cuMemcpyAsync cuCtxPopCurrent_v2 ");
  asks(OTHER, 1, device, device, PUSHED ADDRESS ADDRESS "cuMemcpyAsync cuCtxPopCurrent_v2 ");
  EQUAL(set(NULL), 0);
#define FIRST "cuCtxGetCurrent cuCtxPushCurrent_v2 cuStreamGetCtx "
  asks(NOTHING, 1, cpu, device, FIRST ADDRESS "cuMemcpyAsync cuCtxPopCurrent_v2 ");
  asks(NOTHING, 1, device, device, FIRST ADDRESS ADDRESS "cuMemcpyAsync cuCtxPopCurrent_v2 ");
  for (int i = 0; i < 2; ++i) EQUAL(release(i), 0);
  NO_VIOLATION();
}

/* ---- Contexts and captures of the caller ----------------------------------------------------*/

static void contexts(const char *path) {
  int (*create)(void **, unsigned, int) = NULL, (*destroy)(void *) = NULL, (*set)(int) = NULL;
  void *mine = NULL;
  if (rocm) {
    *(void **)&set = find(path, "hipSetDevice");
    EQUAL(set(1), 0);
  } else {
    *(void **)&create = find(path, "cuCtxCreate_v2");
    *(void **)&destroy = find(path, "cuCtxDestroy_v2");
    EQUAL(create(&mine, 0, 1), 0);
  }
  void *current = now().current;
  memory();
  streams();
  for (int i = 0; i < 40; ++i) copy_once(i & 1 ? cpu : device, i & 2 ? second : cpu, 9, i % 3);
  side src, dst;
  dense(&src, cpu, 7000, 5003, 0);
  dense(&dst, second, 7000, 5003, 0);
  WORKS(dlrs_copy_desc(&src.tensor, 0, &dst.tensor, 0, NULL, ERR));
  CHECK(same(&src, &dst));
  side_free(&src);
  side_free(&dst);
  CHECK(now().current == current);
  EQUAL(now().device, 1);
  if (rocm) EQUAL(set(0), 0);
  else EQUAL(destroy(mine), 0);
  NO_VIOLATION();
}

static void captures(const char *path) {
  int (*begin)(void *, int), (*end)(void *, void **), (*drop)(void *);
  void *stream = NULL, *graph = NULL, *data = NULL;
  int32_t answer = 0;
  *(void **)&begin = find(path, rocm ? "hipStreamBeginCapture" : "cuStreamBeginCapture_v2");
  *(void **)&end = find(path, rocm ? "hipStreamEndCapture" : "cuStreamEndCapture");
  *(void **)&drop = find(path, rocm ? "hipGraphDestroy" : "cuGraphDestroy");
  WORKS(dlrs_stream_create(device, &stream, ERR));
  side src, dst;
  dense(&src, device, 50, 20, 0);
  dense(&dst, device, 50, 20, 0);
  void *current = now().current;
  if (!rocm) { /* a context must be current for the test's own calls */
    int (*push)(void *), (*retain)(void **, int);
    void *context = NULL;
    *(void **)&push = find(path, "cuCtxPushCurrent_v2");
    *(void **)&retain = find(path, "cuDevicePrimaryCtxRetain");
    EQUAL(retain(&context, 0), 0);
    EQUAL(push(context), 0);
    current = context;
  }
  EQUAL(begin(stream, 0), 0);
  REFUSED(DLRS_CAPTURING, ANY, ANY, ANY, dlrs_stream_sync(device, stream, ERR));
  REFUSED(DLRS_CAPTURING, ANY, ANY, ANY, dlrs_stream_query(device, stream, &answer, ERR));
  REFUSED(DLRS_CAPTURING, ANY, ANY, ANY, dlrs_mem_alloc(device, 64, 0, stream, &data, ERR));
  WORKS(dlrs_mem_alloc(device, 64, 0, NULL, &data, ERR));
  WORKS(dlrs_mem_free(device, data, 64, 0, NULL, ERR));
  dlrs_copy_options options = {0};
  options.struct_size = sizeof options;
  options.dst_stream = stream;
  REFUSED(DLRS_CAPTURING, ANY, ANY, ANY,
          dlrs_copy_desc(&src.tensor, 0, &dst.tensor, 0, &options, ERR));
  options.flags = DLRS_COPY_ASYNC;
  WORKS(dlrs_copy_desc(&src.tensor, 0, &dst.tensor, 0, &options, ERR));
  EQUAL(now().captures_broken, 0);
  EQUAL(end(stream, &graph), 0);
  CHECK(graph != NULL);
  EQUAL(drop(graph), 0);
  if (!rocm) {
    int (*pop)(void **), (*release)(int);
    *(void **)&pop = find(path, "cuCtxPopCurrent_v2");
    *(void **)&release = find(path, "cuDevicePrimaryCtxRelease_v2");
    CHECK(now().current == current);
    EQUAL(pop(&current), 0);
    EQUAL(release(0), 0);
  }
  side_free(&src);
  side_free(&dst);
  WORKS(dlrs_stream_destroy(device, stream, ERR));
  NO_VIOLATION();
}

/* ---- Environment ----------------------------------------------------------------------------*/

static void forked(void) {
  fflush(stdout);
  pid_t child = fork();
  if (child == 0) {
    void *data = NULL;
    long before = now().calls;
    int refused = dlrs_mem_alloc(device, 1000, 64, NULL, &data, ERR) == DLRS_FORKED;
    _exit(refused && now().calls == before ? 0 : 1);
  }
  int status = 0;
  EQUAL(waitpid(child, &status, 0), child);
  EQUAL(status, 0);
}

static void exiting(void) {
  void *data = NULL;
  WORKS(dlrs_mem_alloc(device, 1000, 64, NULL, &data, ERR));
  ctl(STANDIN_EXITING, 1, 0, NULL);
  EQUAL(dlrs_mem_free(device, data, 1000, 64, NULL, ERR), DLRS_SHUTDOWN);
  ctl(STANDIN_EXITING, 0, 0, NULL);
  WORKS(dlrs_mem_free(device, data, 1000, 64, NULL, ERR));
}

int main(int argc, char **argv) {
  if (argc != 3) return 2;
  rocm = strcmp(argv[1], "rocm") == 0;
  device = second = (DLDevice){rocm ? kDLROCM : kDLCUDA, 0};
  second.device_id = 1;
  pinned = (DLDevice){rocm ? kDLROCMHost : kDLCUDAHost, 0};
  managed = (DLDevice){kDLCUDAManaged, 0};
  load(argv[2]);
  ctl(STANDIN_DEVICES, 2, 0, NULL);
  EQUAL(now().calls, 0);
  memory();
  streams();
  copies();
  many_dims();
  large();
  pieces();
  cost(argv[2]);
  contexts(argv[2]);
  captures(argv[2]);
  forked();
  exiting();
  NO_VIOLATION();
  return t_close();
}
