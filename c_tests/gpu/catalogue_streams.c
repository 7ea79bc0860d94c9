/* Rows D13 to D17, D27 and D28: streams, captures, and which context or device is current. */
#include "catalogue_d.h"

#include <dlfcn.h>
#include <pthread.h>

/* ---- Streams --------------------------------------------------------------------------------*/

static void d13(void) {
  set_up();
  for (uintptr_t number = 0; number < 3; ++number) {
    void *stream = (void *)number;
    dlrs_copy_options options = gpu_options(NULL, stream, 0);
    if (G.hip == 5 && number == 1) { /* no such stream in ROCm 5 */
      CHECK(dlrs_stream_sync(DEV(0), stream, ERR) == DLRS_STREAM);
      continue;
    }
    WORKS(dlrs_stream_sync(DEV(0), stream, ERR));
    H.values[0] = (float)(10 + number);
    WORKS(dlrs_copy(&H.managed, &A.managed, &options, ERR));
    CHECK(gpu_holds(&A.managed.dl_tensor, H.values));
  }
  if (G.standin) {
    void *stream = (void *)(intptr_t)-1;
    dlrs_copy_options options = gpu_options(NULL, stream, 0);
    FAILS(DLRS_STREAM, ANY, dlrs_stream_sync(DEV(0), stream, ERR));
    FAILS(DLRS_STREAM, ANY, dlrs_copy(&H.managed, &A.managed, &options, ERR));
  }
}

static void d14(void) {
  void *stream = gpu_stream(1, 1);
  dlrs_copy_options options = gpu_options(NULL, stream, 0);
  set_up();
  WORKS(dlrs_copy(&H.managed, &A.managed, NULL, ERR));
  WORKS(dlrs_stream_sync(DEV(1), stream, ERR));
  H.values[0] = 9;
  gpu_state before = gpu_now();
  int32_t status = dlrs_copy(&H.managed, &A.managed, &options, ERR);
  if (G.hip != 5) CHECK(status == DLRS_STREAM); /* ROCm 5 does not report a stream's device */
  if (status != DLRS_OK) CHECK(gpu_holds(&A.managed.dl_tensor, VALUES));
  if (G.hip != 5) FAILS(DLRS_STREAM, ANY, dlrs_stream_sync(DEV(0), stream, ERR));
  WORKS(dlrs_stream_sync(DEV(1), stream, ERR));
  SAME(before);
}

/* On a stand-in only: a real driver may crash. */
static void d15(void) {
  void *stream;
  WORKS(dlrs_stream_create(DEV(0), &stream, ERR));
  WORKS(dlrs_stream_destroy(DEV(0), stream, ERR));
  dlrs_copy_options options = gpu_options(NULL, stream, 0);
  set_up();
  gpu_state before = gpu_now();
  FAILS(DLRS_STREAM, ANY, dlrs_stream_sync(DEV(0), stream, ERR));
  FAILS(DLRS_STREAM, ANY, dlrs_stream_destroy(DEV(0), stream, ERR));
  FAILS(DLRS_STREAM, ANY, dlrs_copy(&H.managed, &A.managed, &options, ERR));
  SAME(before);
}

/* HIP keeps a thread's last error, by which programs check their launches: the library leaves none
 * set, whether it returns the error or recovers from it. */
static void last_error(void) {
  enum { NBYTES = 40 << 20 };
  int64_t nbytes = NBYTES;
  int (*last)(void);
  *(void **)&last = dlsym(G.library, "hipGetLastError");
  unsigned char *bytes = malloc(NBYTES), *heap = malloc(NBYTES);
  dlrs_pointer_info info = {sizeof info, 0, {0, 0}, NULL, 0};
  DLTensor host = t_describe(bytes, U8, 1, &nbytes, NULL), wrong = gpu_tensor_at(0, heap, U8, 1, &nbytes, NULL);
  DLTensor there = gpu_tensor_at(0, gpu_alloc(0, NBYTES), U8, 1, &nbytes, NULL);
  memset(bytes, 5, NBYTES);
  last();
  WORKS(dlrs_copy_desc(&host, 0, &there, 0, NULL, ERR)); /* queries the host memory's type */
  EQUAL(last(), 0);
  WORKS(dlrs_pointer_device(G.type, bytes, &info, ERR));
  EQUAL(last(), 0);
  t_before();
  CHECK(dlrs_copy_desc(&host, 0, &wrong, 0, NULL, ERR) != DLRS_OK);
  EQUAL(last(), 0);
  free(bytes);
  free(heap);
}

/* ---- Captures -------------------------------------------------------------------------------*/

/* No call has invalidated the capture; its graph is launched so many times. */
static void intact(void *stream, int times) {
  if (G.standin) EQUAL(gpu_now().stats.captures_broken, 0);
  EQUAL(gpu_capture_end(0, stream, times), 0);
}

/* Supported work is captured, the rest is rejected. */
static void d16(void) {
  set_up();
  for (int mode = 0; mode < 3; ++mode) {
    DLManagedTensorVersioned *out;
    void *data;
    dlrs_copy_options later = gpu_options(S, S, DLRS_COPY_ASYNC), wait = gpu_options(S, S, 0);
    float zero[6] = {0};
    WORKS(dlrs_copy(&A.managed, &B.managed, &later, ERR)); /* all resources exist */
    WORKS(dlrs_stream_sync(DEV(0), S, ERR));
    gpu_write(0, B.data, zero, sizeof zero);
    gpu_capture(0, S, mode);
    WORKS(dlrs_copy(&A.managed, &B.managed, &later, ERR));
    CHECK(gpu_holds(&B.managed.dl_tensor, zero));
    FAILS(DLRS_CAPTURING, ANY, dlrs_copy(&A.managed, &B.managed, &wait, ERR));
    FAILS(DLRS_CAPTURING, ANY, dlrs_stream_sync(DEV(0), S, ERR));
    t_before();
    int32_t status = dlrs_mem_alloc(DEV(0), 64, 0, NULL, &data, ERR);
    CHECK(status == DLRS_OK || status == DLRS_CAPTURING);
    if (status == DLRS_OK) WORKS(dlrs_mem_free(DEV(0), data, 64, 0, NULL, ERR));
    t_before();
    status = dlrs_clone(&A.managed, DEV(0), &later, &out, ERR);
    CHECK(status == DLRS_OK || status == DLRS_CAPTURING);
    intact(S, 1);
    CHECK(gpu_holds(&B.managed.dl_tensor, VALUES));
    if (status != DLRS_OK) continue;
    CHECK(gpu_holds(&out->dl_tensor, VALUES));
    dlrs_release(out);
  }
}

/* Querying earlier work and waiting for it during a capture: nothing is released early. */
static void d16_others(void) {
  set_up();
  for (int mode = 0; mode < 3; ++mode) {
    uint64_t waiting = 0;
    void *other = gpu_stream(0, 1), *event, *pooled;
    DLManagedTensorVersioned *held = &H.managed;
    long deleted = t_deleted;
    WORKS(dlrs_event_create(DEV(0), &event, ERR));
    WORKS(dlrs_mem_alloc(DEV(0), 64, 0, other, &pooled, ERR));
    if (G.standin) G.ctl(STANDIN_HANG, 1, 0, NULL);
    gpu_fill(0, other, A.data, 1, 24);
    WORKS(dlrs_event_record(DEV(0), event, other, ERR));
    WORKS(dlrs_release_after_take(&held, DEV(0), other, ERR));
    gpu_capture(0, S, mode);
    WORKS(dlrs_release_drain(&waiting, ERR));
    if (G.standin) EQUAL(waiting, 1);
    EQUAL(t_deleted, deleted + 1 - (long)waiting);
    if (G.standin) G.ctl(STANDIN_HANG, 0, 0, NULL);
    WORKS(dlrs_event_sync(DEV(0), event, ERR));
    WORKS(dlrs_stream_sync(DEV(0), other, ERR));
    WORKS(dlrs_mem_free(DEV(0), pooled, 64, 0, other, ERR));
    intact(S, 1);
    WORKS(dlrs_release_drain(&waiting, ERR));
    EQUAL(waiting, 0);
    EQUAL(t_deleted, deleted + 1);
    WORKS(dlrs_event_destroy(DEV(0), event, ERR));
  }
}

/* Through pinned buffers on one stream while another stream captures. */
static void d16_staged(void) {
  void *other = gpu_stream(0, 1);
  dlrs_copy_options up = gpu_options(NULL, other, 0), down = gpu_options(other, NULL, 0);
  set_up();
  big_make();
  big_round(&up, &down);
  gpu_capture(0, S, 0);
  big_round(&up, &down);
  intact(S, 1);
}

/* A graph uses the captured resources at each launch, so no wait can end that use. */
static void d16_release(void) {
  uint64_t waiting = 9;
  DLManagedTensorVersioned *held = &H.managed;
  set_up();
  gpu_capture(0, S, 2);
  FAILS(DLRS_CAPTURING, ANY, dlrs_release_after_take(&held, DEV(0), S, ERR));
  CHECK(held == &H.managed);
  WORKS(dlrs_release_drain(&waiting, ERR));
  EQUAL(waiting, 0);
  EQUAL(t_deleted, 0);
  intact(S, 1);
}

/* The legacy stream is not usable while a blocking stream captures. */
static void d16_legacy(void) {
  void *blocking = gpu_stream(0, 0);
  set_up();
  WORKS(dlrs_copy(&A.managed, &B.managed, NULL, ERR));
  gpu_capture(0, blocking, 0);
  FAILS(DLRS_CAPTURING, ANY, dlrs_copy(&A.managed, &B.managed, NULL, ERR));
  FAILS(DLRS_CAPTURING, ANY, dlrs_stream_sync(DEV(0), NULL, ERR));
  intact(blocking, 0);
}

/* ---- What is current ------------------------------------------------------------------------*/

/* The current context stays the same, whichever it is and whatever happens. */
static void d17(void) {
  int last = gpu_count() - 1;
  for (int place = -1; place <= last; ++place) {
    for (int own = 0; own < (place < 0 || G.hip ? 1 : 2); ++own) {
      DLManagedTensorVersioned *there, *back, *out = NULL;
      dlrs_pointer_info info;
      void *stream, *event;
      gpu_make(&A, last);
      gpu_set_current(place, own);
      long before = gpu_current();
      WORKS(dlrs_clone(&A.managed, DEV(0), NULL, &there, ERR));
      WORKS(dlrs_clone(there, CPU, NULL, &back, ERR));
      CHECK(gpu_holds(&back->dl_tensor, VALUES));
      dlrs_release(there);
      dlrs_release(back);
      EQUAL(gpu_current(), before);
      WORKS(dlrs_stream_create(DEV(last), &stream, ERR));
      WORKS(dlrs_event_create(DEV(last), &event, ERR));
      WORKS(dlrs_event_record(DEV(last), event, stream, ERR));
      WORKS(dlrs_event_sync(DEV(last), event, ERR));
      WORKS(dlrs_stream_wait(DEV(last), NULL, stream, ERR));
      WORKS(dlrs_event_destroy(DEV(last), event, ERR));
      WORKS(dlrs_stream_destroy(DEV(last), stream, ERR));
      EQUAL(gpu_current(), before);
      memset(&info, 0, sizeof info);
      info.struct_size = sizeof info;
      WORKS(dlrs_pointer_device(G.type, A.data, &info, ERR));
      EQUAL(info.device.device_id, last);
      EQUAL(gpu_current(), before);
      if (!G.standin) continue;
      G.ctl(STANDIN_MEMORY, 0, 16, NULL);
      FAILS(DLRS_DEV_OOM, 2, dlrs_clone(&A.managed, DEV(0), NULL, &out, ERR));
      CHECK(out == NULL);
      EQUAL(gpu_current(), before);
      G.ctl(STANDIN_DEFAULTS, 0, 0, NULL);
    }
  }
}

/* On a thread without a context. */
static void *pinned_only(void *unused) {
  static unsigned char host[4096];
  int64_t n = sizeof host;
  void *data = NULL;
  dlrs_pointer_info info;
  memset(&info, 0, sizeof info);
  info.struct_size = sizeof info;
  WORKS(dlrs_mem_alloc(t_device(G.pinned, 0), sizeof host, 0, NULL, &data, ERR));
  WORKS(dlrs_mem_register_host(G.type, host, sizeof host, ERR));
  WORKS(dlrs_pointer_device(G.type, data, &info, ERR));
  EQUAL(info.device.device_type, G.pinned);
  DLTensor from = t_describe(host, U8, 1, &n, NULL), to = gpu_tensor_at(PINNED_HOST, data, U8, 1, &n, NULL);
  WORKS(dlrs_copy_desc(&from, 0, &to, 0, NULL, ERR));
  WORKS(dlrs_mem_unregister_host(G.type, host, ERR));
  WORKS(dlrs_mem_free(t_device(G.pinned, 0), data, sizeof host, 0, NULL, ERR));
  return unused;
}

/* A process that works on device 1 gets no context on device 0, which another may have for itself,
 * and pinned memory of the driver's pools, which is of device -1, is pinned memory. */
static void one_device(int exclusive) {
  int (*state)(int, unsigned *, int *);
  unsigned flags;
  int active = -1;
  void *data = NULL;
  pthread_t thread;
  *(void **)&state = dlsym(G.library, "cuDevicePrimaryCtxGetState");
  EQUAL(state(0, &flags, &active), 0);
  EQUAL(active, 0);
  G.ctl(STANDIN_HOST_DEVICE, -1, 0, NULL);
  if (exclusive) G.ctl(STANDIN_EXCLUSIVE, 0, 0, NULL);
  else WORKS(dlrs_mem_alloc(DEV(1), 4096, 0, NULL, &data, ERR));
  EQUAL(pthread_create(&thread, NULL, pinned_only, NULL), 0);
  pthread_join(thread, NULL);
  EQUAL(state(0, &flags, &active), 0);
  EQUAL(active, 0);
  if (data) WORKS(dlrs_mem_free(DEV(1), data, 4096, 0, NULL, ERR));
}
static void d17_one_device(void) { one_device(0); }
static void d17_exclusive(void) { one_device(1); }

/* Green contexts: one is current to at most one thread, this one or another; kernels can be
 * launched on its streams nevertheless. */
typedef struct green {
  void *context, *stream;
  int (*push)(void *), (*pop)(void **);
  pthread_barrier_t gate;
} green;

static void *holds_green(void *argument) {
  green *it = (green *)argument;
  void *popped;
  EQUAL(it->push(it->context), 0);
  pthread_barrier_wait(&it->gate);
  pthread_barrier_wait(&it->gate);
  EQUAL(it->pop(&popped), 0);
  return NULL;
}

static void d17_green(void) {
  static const float columns[6] = {0, 2, 4, 1, 3, 5};
  int (*create)(void **, void *, int, unsigned), (*destroy)(void *), (*context)(void **, void *);
  int (*stream)(void **, void *, unsigned, int);
  void *made = NULL, *popped = NULL;
  green it;
  pthread_t thread;
  *(void **)&create = dlsym(G.library, "cuGreenCtxCreate");
  *(void **)&destroy = dlsym(G.library, "cuGreenCtxDestroy");
  *(void **)&context = dlsym(G.library, "cuCtxFromGreenCtx");
  *(void **)&stream = dlsym(G.library, "cuGreenCtxStreamCreate");
  *(void **)&it.push = dlsym(G.library, "cuCtxPushCurrent_v2");
  *(void **)&it.pop = dlsym(G.library, "cuCtxPopCurrent_v2");
  EQUAL(create(&made, NULL, 0, 1), 0);
  EQUAL(context(&it.context, made), 0);
  EQUAL(stream(&it.stream, made, 1, 0), 0);
  pthread_barrier_init(&it.gate, NULL, 2);
  set_up();
  gpu_turn(&A);
  big_make();
  for (int i = 0; i < 3; ++i) {
    int elsewhere = i == 2, named = i > 0;
    void *on = named ? it.stream : NULL;
    dlrs_copy_options options = gpu_options(on, on, 0), up = gpu_options(NULL, on, 0), down = gpu_options(on, NULL, 0);
    if (elsewhere) {
      EQUAL(pthread_create(&thread, NULL, holds_green, &it), 0);
      pthread_barrier_wait(&it.gate);
    } else {
      EQUAL(it.push(it.context), 0);
    }
    long launches = G.calls(LAUNCH);
    WORKS(dlrs_copy(&A.managed, &B.managed, &options, ERR));
    if (named) EQUAL(G.calls(LAUNCH) - launches, 1);
    big_round(&up, &down);
    CHECK(gpu_holds(&B.managed.dl_tensor, columns));
    if (named) REJECTS(STREAM, ANY, ANY, ANY, dlrs_stream_sync(DEV(1), on, ERR));
    if (elsewhere) {
      pthread_barrier_wait(&it.gate);
      pthread_join(thread, NULL);
    } else {
      EQUAL(it.pop(&popped), 0);
      CHECK(popped == it.context);
    }
  }
  EQUAL(destroy(made), 0);
}

/* Streams for pinned memory are of any device, whichever is current and whatever the other side's
 * stream is, also where the driver does not tell a stream's device. */
static void d28_streams(void) {
  int64_t six = 6;
  void *pinned = gpu_pinned(24), *memory[2] = {gpu_alloc(0, 24), gpu_alloc(1, 24)}, *streams[2][2];
  for (int i = 0; i < 4; ++i) streams[i / 2][i % 2] = gpu_stream(i / 2, 1);
  for (int i = 0; i < 96; ++i) {
    int device = i & 1, of = i >> 1 & 1, current = i / 32 - 1, up = i >> 2 & 1, last = i >> 3 & 1, named = i >> 4 & 1;
    void *data = memory[device];
    DLTensor a = gpu_tensor_at(PINNED_HOST, pinned, F32, 1, &six, NULL), b = gpu_tensor_at(device, data, F32, 1, &six, NULL);
    memset(pinned, i, 24);
    memset(seen(data), 99, 24);
    void *mine = streams[of][0], *its = named ? streams[device][last] : NULL;
    dlrs_copy_options options = up ? gpu_options(mine, its, 0) : gpu_options(its, mine, 0);
    gpu_set_current(current, 0);
    standin_stats_t before = gpu_now().stats;
    if (WORKS(dlrs_copy_desc(up ? &a : &b, 0, up ? &b : &a, 0, &options, ERR))) {
      EQUAL(up ? *seen(data) : *(unsigned char *)pinned, up ? i : 99);
    } else {
      printf("device %d, a stream of device %d for the pinned side, current %d, up %d\n", device, of, current, up);
    }
    EQUAL(gpu_now().stats.events, before.events);
    EQUAL(gpu_now().stats.device, before.device);
    EQUAL(gpu_now().stats.depth, before.depth);
  }
}

/* ---- Order ----------------------------------------------------------------------------------*/

/* When a device's data is ready on the host: order.c has more, on stand-ins. */
static void d27(void) {
  for (int i = 0; i < (G.standin ? 40 : 4); ++i) {
    int pinned = i & 1, async = i >> 1 & 1;
    if (G.standin) G.ctl(STANDIN_SEED, i / 4, 0, NULL);
    set_up();
    unsigned char *into = pinned ? (unsigned char *)gpu_pinned(24) : (unsigned char *)I.values;
    memset(into, 0, 24);
    I.managed.dl_tensor.data = into;
    if (pinned) I.managed.dl_tensor.device = t_device(G.pinned, 0);
    dlrs_copy_options options = gpu_options(S, NULL, async ? DLRS_COPY_ASYNC : 0);
    gpu_fill(0, S, A.data, 0x41, 24); /* the copy must come after this */
    WORKS(dlrs_copy(&A.managed, &I.managed, &options, ERR));
    if (async && pinned) WORKS(dlrs_stream_sync(DEV(0), S, ERR));
    if (async && !pinned) EQUAL(gpu_sync(0, S), 0);
    for (int k = 0; k < 24; ++k) CHECK(into[k] == 0x41);
  }
}

/* Order with a gate, on a stand-in and on hardware: a function of the host holds a stream back until the
 * call has returned. Then the source is written after the call (hazard 0), or the destination read. */
static void gate(void *open) {
  while (!__atomic_load_n((int *)open, __ATOMIC_ACQUIRE)) sched_yield();
}

enum { ROWS_N = 8, COLUMNS_N = 24, BYTES = ROWS_N * COLUMNS_N, NEW_BYTE = 0x42, OLD_BYTE = 0x24 };
static void *streams[STANDIN_DEVICES_MAX][2];
static unsigned char *news, *read_back, *blocks[8][2]; /* by place: a source, a destination */

static void set_block(int place, unsigned char *block, int byte) {
  unsigned char bytes[BYTES];
  memset(bytes, byte, BYTES);
  if (place >= 0) gpu_write(place, block, bytes, BYTES);
  else memcpy(block, bytes, BYTES);
}

static int block_is(int place, const unsigned char *block, int byte) {
  unsigned char bytes[BYTES];
  if (place >= 0) gpu_read(place, bytes, block, BYTES);
  else memcpy(bytes, block, BYTES);
  for (int i = 0; i < BYTES; ++i) {
    if (bytes[i] != byte) return 0;
  }
  return 1;
}

static void gated(int from, int to, int src_on, int dst_on, int hazard, int way) {
  int open = 0, src_device = gpu_device_of(from), dst_device = gpu_device_of(to), device = hazard ? dst_device : src_device;
  unsigned char *src = blocks[from - PINNED_HOST][0], *dst = blocks[to - PINNED_HOST][1];
  void *reads = src_on ? streams[src_device][0] : NULL, *writes = dst_on ? streams[dst_device][dst_on - 1] : NULL;
  void *held = hazard ? writes : reads;
  int64_t shape[2] = {ROWS_N, COLUMNS_N}, across[2] = {1, ROWS_N};
  DLManagedTensorVersioned one = t_managed(gpu_tensor_at(from, src, U8, 2, shape, way == 1 ? across : NULL), 0);
  DLManagedTensorVersioned two = t_managed(gpu_tensor_at(to, dst, U8, 2, shape, NULL), 0), *targets[] = {&two};
  const DLManagedTensorVersioned *sources[] = {&one};
  dlrs_copy_options options = gpu_options(reads, writes, DLRS_COPY_ASYNC);
  for (int warm = 1; warm >= 0; --warm) { /* kernels are loaded before a stream is held back */
    set_block(from, src, warm || hazard ? NEW_BYTE : OLD_BYTE);
    set_block(to, dst, OLD_BYTE);
    if (!warm) {
      gpu_host(device, held, gate, &open);
      gpu_copy(device, held, hazard ? read_back : src, hazard ? dst : news, BYTES);
    }
    if (way < 2) WORKS(dlrs_copy(&one, &two, &options, ERR));
    else WORKS(dlrs_copy_batch(1, sources, targets, &options, NULL, ERR));
    if (!warm) CHECK(block_is(to, dst, OLD_BYTE));
    __atomic_store_n(&open, !warm, __ATOMIC_RELEASE);
    EQUAL(gpu_sync(dst_device, writes), 0);
    EQUAL(gpu_sync(src_device, reads), 0);
  }
  int right = CHECK(block_is(to, dst, NEW_BYTE));
  if (hazard) right &= CHECK(block_is(PINNED_HOST, read_back, OLD_BYTE));
  if (!right) printf("from %d on %d to %d on %d, hazard %d, way %d\n", from, src_on, to, dst_on, hazard, way);
}

static void d27_gated(void) {
  int last = gpu_count() - 1;
  news = (unsigned char *)gpu_pinned(BYTES);
  read_back = (unsigned char *)gpu_pinned(BYTES);
  set_block(PINNED_HOST, news, NEW_BYTE);
  for (int place = PINNED_HOST; place <= last; ++place) {
    for (int i = 0; i < 2; ++i) blocks[place - PINNED_HOST][i] = (unsigned char *)gpu_room(place, BYTES);
    for (int i = 0; place >= 0 && i < 2; ++i) streams[place][i] = gpu_stream(place, 1);
  }
  for (long seed = 0; seed < (G.standin ? 3 : 1); ++seed) {
    if (G.standin) G.ctl(STANDIN_SEED, seed, 0, NULL);
    for (int from = PINNED_HOST; from <= last; ++from) {
      for (int to = PINNED_HOST; to <= last; ++to) {
        if (from == PLAIN_HOST || to == PLAIN_HOST || (from < 0 && to < 0)) continue;
        for (int i = 0; i < 36; ++i) {
          int src_on = i & 1, hazard = i >> 1 & 1, dst_on = i / 4 % 3, way = i / 12;
          /* Pinned memory has no stream but the one named; columns go by kernels of one device. */
          if ((from < 0 && !src_on) || (to < 0 && !dst_on) || (way == 1 && from != to)) continue;
          gated(from, to, src_on, dst_on, hazard, way);
        }
      }
    }
  }
}

const gpu_row stream_rows[] = {
    {"D13", "streams 0, 1, 2, -1", d13, 0},
    {"D14", "stream of another device", d14, TWO_DEVICES},
    {"D15", "destroyed stream", d15, STANDIN},
    {"-", "HIP's last error", last_error, ON_HIP},
    {"D16", "capturing streams", d16, 0},
    {"D16", "earlier work next to a capture", d16_others, 0},
    {"D16", "pinned buffers next to a capture", d16_staged, 0},
    {"D16", "release after a capturing stream", d16_release, 0},
    {"D16", "legacy stream next to a capture", d16_legacy, 0},
    {"D17", "the current context or device", d17, 0},
    {"D17", "a process on one device leaves the others alone", d17_one_device, STANDIN | ON_CUDA},
    {"D17", "another process has device 0 for itself", d17_exclusive, STANDIN | ON_CUDA},
    {"D17", "green contexts", d17_green, STANDIN | ON_CUDA},
    {"D27", "when data is ready", d27, 0},
    {"D27", "order, by streams that are held back", d27_gated, 0},
    {"D28", "streams of any device for pinned memory", d28_streams, STANDIN},
};
const size_t stream_rows_n = sizeof stream_rows / sizeof *stream_rows;
