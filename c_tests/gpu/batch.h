/* Operands of the tests of batches (batch.c, batch_faults.c): MOST pairs, each in a block of PITCH bytes
 * on either side. */
#ifndef C_TESTS_GPU_BATCH_H_
#define C_TESTS_GPU_BATCH_H_

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "gpu.h"

enum { MOST = 200, PITCH = 64, ROWS = 3, COLUMNS = 5, NBYTES = MOST * PITCH, TOGETHER = 64 };

/* ---- Operands -------------------------------------------------------------------------------*/

enum { ON_CPU, PINNED, MANAGED, MANAGED_1, DEVICE_0, DEVICE_1, KINDS };
static const int places[KINDS] = {PLAIN_HOST, PINNED_HOST, MANAGED_HOST, MANAGED_HOST_1, 0, 1};
enum { DENSE, STRIDED, MIXED, LAYOUTS };
typedef struct side {
  DLDevice on;
  int device;
  unsigned char *first;
  DLManagedTensorVersioned *own; /* this library's tensor, while something is recorded */
} side;
static side sources[KINDS], targets[KINDS];
static void *streams[2][2], *makers[2][2];
static unsigned char *news, *olds, want[NBYTES];

static inline void set_up(void) {
  gpu_set_current(0, 0);
  for (int i = 0; i < 2 * KINDS; ++i) {
    side *it = i % 2 ? &targets[i / 2] : &sources[i / 2];
    it->device = gpu_device_of(places[i / 2]);
    it->on = gpu_place(places[i / 2]);
    it->first = (unsigned char *)gpu_room(places[i / 2], NBYTES);
  }
  for (int device = 0; device < 2; ++device) {
    for (int i = 0; i < 2; ++i) {
      streams[device][i] = gpu_stream(device, 1);
      makers[device][i] = gpu_stream(device, 1);
    }
  }
  news = (unsigned char *)gpu_pinned(NBYTES);
  olds = (unsigned char *)gpu_pinned(NBYTES);
  for (int i = 0; i < NBYTES; ++i) {
    news[i] = (unsigned char)(((unsigned)i * 2654435761u) >> 13);
    olds[i] = (unsigned char)(0xC0 | (i & 15));
  }
}

/* Pair i of a layout: elements of a byte, from their places in both blocks of PITCH bytes. */
typedef struct layout {
  int64_t shape[2], src[2], dst[2];
  int64_t src_at, dst_at;
} layout;

static inline layout layout_of(int kind, int i) {
  layout it = {{ROWS, COLUMNS}, {COLUMNS, 1}, {COLUMNS, 1}, 0, 0};
  int strided = kind == STRIDED || (kind == MIXED && i % 3 == 1);
  if (kind == MIXED && i % 7 == 6) it.shape[0] = 0;
  if (strided) {
    it.src[0] = 1, it.src[1] = 7;  /* columns first, apart */
    it.dst[0] = 11, it.dst[1] = 2; /* with bytes between */
    it.src_at = 3, it.dst_at = 2;
  }
  return it;
}

typedef struct batch {
  layout layouts[MOST];
  DLManagedTensorVersioned given[2][MOST], *views[2][MOST];
  const DLManagedTensorVersioned *src[MOST];
  DLManagedTensorVersioned *dst[MOST];
} batch;
static batch B;

/* A tensor of a pair: foreign, or a view of the recorded one. */
static inline DLManagedTensorVersioned *tensor_of(const side *at, int target, int i) {
  layout *it = &B.layouts[i];
  int64_t first = i * PITCH + (target ? it->dst_at : it->src_at), *strides = target ? it->dst : it->src;
  B.views[target][i] = NULL;
  if (at->own != NULL) {
    WORKS(dlrs_view_as_strided(at->own, it->shape, strides, 2, first, &B.views[target][i], ERR));
    return B.views[target][i];
  }
  DLTensor bare = t_describe(at->first + first, U8, 2, it->shape, strides);
  bare.device = at->on;
  B.given[target][i] = t_managed(bare, 0);
  return &B.given[target][i];
}

static inline void make_batch(const side *from, const side *to, int n, int kind) {
  for (int i = 0; i < n; ++i) {
    B.layouts[i] = layout_of(kind, i);
    B.src[i] = tensor_of(from, 0, i);
    B.dst[i] = tensor_of(to, 1, i);
  }
}

/* What pair i does to a destination. */
static inline void write_pair(unsigned char *dst, int i) {
  const layout *it = &B.layouts[i];
  for (int64_t row = 0; row < it->shape[0]; ++row) {
    for (int64_t column = 0; column < it->shape[1]; ++column) {
      dst[i * PITCH + it->dst_at + row * it->dst[0] + column * it->dst[1]] =
          news[i * PITCH + it->src_at + row * it->src[0] + column * it->src[1]];
    }
  }
}

static inline void expect(int n) {
  memcpy(want, olds, NBYTES);
  for (int i = 0; i < n; ++i) write_pair(want, i);
}

static inline DLManagedTensorVersioned *wrap(const side *at, unsigned char *first, int64_t nbytes) {
  DLManagedTensorVersioned *out = NULL;
  DLTensor bare = t_describe(first, U8, 1, &nbytes, NULL);
  bare.device = at->on;
  WORKS(dlrs_tensor_wrap(&bare, 0, NULL, NULL, &out, ERR));
  return out;
}

static inline void all_run(void) { G.ctl(STANDIN_RUN, -1, 0, NULL); }

/* ---- One batch on device 0 -------------------------------------------------------------------*/

static inline const char *plain(void) { return VENDOR("MemcpyAsync"); }
static inline const char *pointer(void) { return G.hip ? "hipPointerGetAttributes" : "cuPointerGetAttribute"; }
static inline long by_batches(void) { return G.calls("cuMemcpyBatchAsync"); }

static inline dlrs_copy_options on_stream(void *stream, int async) {
  return gpu_options(stream, stream, async ? DLRS_COPY_ASYNC : 0);
}

static inline long calls_of(int n, int kind, const dlrs_copy_options *options) {
  memcpy(seen(sources[DEVICE_0].first), news, NBYTES);
  memcpy(seen(targets[DEVICE_0].first), olds, NBYTES);
  make_batch(&sources[DEVICE_0], &targets[DEVICE_0], n, kind);
  expect(n);
  G.calls(NULL);
  long before = gpu_now().stats.calls;
  WORKS(dlrs_copy_batch((uint64_t)n, B.src, B.dst, options, NULL, ERR));
  long calls = gpu_now().stats.calls - before;
  all_run();
  CHECK(memcmp(seen(targets[DEVICE_0].first), want, NBYTES) == 0);
  return calls;
}

#endif
