/* Events recorded for a tensor (dlrs_ready_record), beside the matrix of order.c: the number of
 * driver calls, captures, contexts, what the host reads, the end of the memory.
 * ready cuda|rocm [ROW] */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#pragma GCC diagnostic ignored "-Wunused-parameter" /* of a backend's functions */

#include "gpu.h"

enum { NBYTES = 64, OLD = 0x11, NEW = 0x22 };

static int holds(const void *address, int value) {
  const unsigned char *bytes = seen(address);
  for (int i = 0; i < NBYTES; ++i) {
    if (bytes[i] != value) return 0;
  }
  return 1;
}

static DLManagedTensorVersioned *tensor_on(void *data, DLDevice on) {
  static int64_t shape[1] = {NBYTES};
  DLManagedTensorVersioned *out = NULL;
  DLTensor bare = t_describe(data, U8, 1, shape, NULL);
  bare.device = on;
  WORKS(dlrs_tensor_wrap(&bare, 0, NULL, NULL, &out, ERR));
  return out;
}
static DLManagedTensorVersioned *tensor_at(int place, void *data) { return tensor_on(data, gpu_place(place)); }

static void *fresh(int place) {
  void *data = gpu_room(place, NBYTES);
  memset(seen(data), OLD, NBYTES);
  return data;
}

/* The stream and event functions of all tensors that share the memory use one event. */
static void shared(void) {
  void *stream = gpu_stream(0, 1), *other = gpu_stream(0, 1), *data = fresh(0), *into = fresh(0);
  DLManagedTensorVersioned *base = tensor_at(0, data), *view, *second, *again, *dst = tensor_at(0, into);
  DLManagedTensor *legacy;
  int64_t half[1] = {NBYTES / 2}, one[1] = {1};
  WORKS(dlrs_view_as_strided(base, half, one, 1, NBYTES / 2, &view, ERR));
  WORKS(dlrs_view_as_strided(view, half, one, 1, 0, &second, ERR));
  WORKS(dlrs_ready_wait(second, DEV(0), other, ERR)); /* nothing was recorded */
  WORKS(dlrs_ready_sync(second, ERR));
  gpu_fill(0, stream, data, NEW, NBYTES);
  EQUAL(gpu_now().stats.events, 0);
  WORKS(dlrs_ready_record(second, stream, ERR));
  EQUAL(gpu_now().stats.events, 1);
  WORKS(dlrs_ready_wait(base, DEV(0), other, ERR));
  gpu_copy(0, other, into, data, NBYTES);
  CHECK(holds(data, OLD));
  WORKS(dlrs_stream_sync(DEV(0), other, ERR));
  CHECK(holds(into, NEW));
  gpu_fill(0, stream, data, OLD, NBYTES);
  WORKS(dlrs_ready_record(base, stream, ERR)); /* replaces it */
  EQUAL(gpu_now().stats.events, 1);
  CHECK(holds(data, NEW));
  WORKS(dlrs_ready_sync(view, ERR));
  CHECK(holds(data, OLD));
  /* As a legacy tensor, and as another reference to it. */
  gpu_fill(0, stream, data, NEW, NBYTES);
  WORKS(dlrs_ready_record(base, stream, ERR));
  WORKS(dlrs_retain(base, &again, ERR));
  WORKS(dlrs_to_legacy_take(&again, DLRS_LEGACY_REFUSE, &legacy, ERR));
  dlrs_release_legacy(legacy);
  dlrs_release(base);
  dlrs_release(view);
  EQUAL(gpu_now().stats.events, 1);
  WORKS(dlrs_ready_sync(second, ERR));
  dlrs_release(second); /* the last reference */
  EQUAL(gpu_now().stats.events, 0);
  dlrs_release(dst);
}

/* A tensor of this library with data outside its own memory has no event; nor has a foreign one. */
static void elsewhere(void) {
  void *stream = gpu_stream(0, 1), *data = fresh(0);
  DLManagedTensorVersioned *base = tensor_at(0, data), *out = NULL;
  WORKS(dlrs_ready_record(base, stream, ERR));
  DLManagedTensorVersioned foreign = *base;
  for (int i = 0; i < 16; ++i) { /* whatever bytes follow */
    struct {
      DLManagedTensorVersioned bytes;
      unsigned char behind[512];
    } placed;
    memset(&placed, i, sizeof placed);
    placed.bytes = *base;
    WORKS(dlrs_clone(&placed.bytes, DEV(0), NULL, &out, ERR));
    dlrs_release(out);
  }
  foreign.deleter = NULL;
  WORKS(dlrs_clone(&foreign, DEV(0), NULL, &out, ERR));
  dlrs_release(out);
  FAILS(DLRS_FOREIGN, ANY, dlrs_ready_record(&foreign, stream, ERR));
  FAILS(DLRS_FOREIGN, ANY, dlrs_ready_wait(&foreign, DEV(0), stream, ERR));
  FAILS(DLRS_FOREIGN, ANY, dlrs_ready_sync(&foreign, ERR));
  FAILS(DLRS_DEVICE_ID, ANY, dlrs_ready_wait(base, DEV(99), NULL, ERR));
  dlrs_release(base);
  EQUAL(gpu_now().stats.events, 0);
}

/* The producer after the consumer (cuda-python#259): the reader records, the next writer waits. */
static void turns(void) {
  void *writer = gpu_stream(0, 1), *reader = gpu_stream(0, 1), *data = gpu_alloc(0, NBYTES);
  unsigned char *sums = (unsigned char *)gpu_pinned(4 * NBYTES);
  DLManagedTensorVersioned *mine = tensor_at(0, data), *theirs;
  WORKS(dlrs_retain(mine, &theirs, ERR));
  for (int i = 0; i < 4; ++i) {
    WORKS(dlrs_ready_wait(mine, DEV(0), writer, ERR));
    gpu_fill(0, writer, data, i + 1, NBYTES);
    WORKS(dlrs_ready_record(mine, writer, ERR));
    WORKS(dlrs_ready_wait(theirs, DEV(0), reader, ERR));
    gpu_copy(0, reader, sums + i * NBYTES, data, NBYTES);
    WORKS(dlrs_ready_record(theirs, reader, ERR));
  }
  if (G.standin) EQUAL(gpu_now().stats.events, 1);
  WORKS(dlrs_ready_sync(mine, ERR));
  for (int i = 0; i < 4; ++i) CHECK(holds(sums + i * NBYTES, i + 1));
  dlrs_release(theirs);
  dlrs_release(mine);
  if (G.standin) EQUAL(gpu_now().stats.events, 0);
}

/* A graph does not wait for work outside a capture, and nothing waits for captured work. */
static void captured(void) {
  void *stream = gpu_stream(0, 1), *maker = gpu_stream(0, 1), *data = fresh(0), *into = fresh(0);
  DLManagedTensorVersioned *src = tensor_at(0, data), *dst = tensor_at(0, into);
  dlrs_copy_options to = gpu_options(NULL, stream, DLRS_COPY_ASYNC);
  gpu_fill(0, maker, data, NEW, NBYTES);
  WORKS(dlrs_ready_record(src, maker, ERR));
  WORKS(dlrs_ready_record(dst, maker, ERR));
  G.ctl(STANDIN_HANG, 1, 0, NULL);
  gpu_capture(0, stream, 0);
  FAILS(DLRS_CAPTURING, ANY, dlrs_ready_record(src, stream, ERR));
  FAILS(DLRS_CAPTURING, ANY, dlrs_ready_wait(src, DEV(0), stream, ERR));
  FAILS(DLRS_CAPTURING, ANY, dlrs_copy(src, dst, &to, ERR));
  G.ctl(STANDIN_HANG, 0, 0, NULL);
  WORKS(dlrs_ready_sync(src, ERR));
  WORKS(dlrs_ready_sync(dst, ERR));
  WORKS(dlrs_ready_wait(src, DEV(0), stream, ERR));
  WORKS(dlrs_copy(src, dst, &to, ERR));
  WORKS(dlrs_ready_sync(dst, ERR)); /* captured work has written nothing */
  CHECK(holds(into, OLD));
  EQUAL(gpu_now().stats.captures_broken, 0);
  EQUAL(gpu_capture_end(0, stream, 1), 0);
  CHECK(holds(into, NEW));
  dlrs_release(src);
  dlrs_release(dst);
  EQUAL(gpu_now().stats.events, 0);
}

/* An event belongs to the context of the stream on which it is recorded, whichever is current. */
static void contexts(void) {
  uint64_t waiting = 9;
  void *stream, *data = fresh(0), *news = gpu_pinned(NBYTES);
  memset(news, NEW, NBYTES);
  gpu_set_current(0, 1);
  WORKS(dlrs_stream_create(DEV(0), &stream, ERR)); /* of the current context */
  gpu_set_current(0, 0);
  void *ours = gpu_stream(0, 1);
  DLManagedTensorVersioned *it = tensor_at(0, data), *again, *from = tensor_at(PINNED_HOST, news);
  dlrs_copy_options to = gpu_options(NULL, stream, DLRS_COPY_ASYNC);
  WORKS(dlrs_copy(from, it, &to, ERR));
  CHECK(holds(data, OLD));
  WORKS(dlrs_ready_record(it, stream, ERR));
  WORKS(dlrs_ready_wait(it, DEV(0), ours, ERR));
  WORKS(dlrs_stream_sync(DEV(0), ours, ERR));
  CHECK(holds(data, NEW));
  FAILS(DLRS_STREAM, ANY, dlrs_ready_record(it, ours, ERR)); /* of another context than before */
  WORKS(dlrs_ready_sync(it, ERR));
  WORKS(dlrs_retain(it, &again, ERR));
  WORKS(dlrs_release_after_take(&again, DEV(0), stream, ERR));
  WORKS(dlrs_stream_sync(DEV(0), stream, ERR));
  WORKS(dlrs_release_drain(&waiting, ERR));
  EQUAL(waiting, 0);
  dlrs_release(it);
  dlrs_release(from);
  EQUAL(gpu_now().stats.events, 0);
}

/* Host memory that a device fills, by a stream that is recorded, or managed memory by its device's
 * default stream: the host waits before it looks. */
static void host(void) {
  void *other = gpu_stream(1, 1), *named = gpu_stream(0, 1);
  unsigned char bytes[NBYTES];
  memset(bytes, NEW, sizeof bytes);
  DLManagedTensorVersioned *same = tensor_at(PLAIN_HOST, bytes);
  for (int i = 0; i < (G.managed ? 3 : 1); ++i) {
    int place = i ? MANAGED_HOST : PINNED_HOST, recorded = i < 2;
    void *data = gpu_room(place, NBYTES), *stream = recorded ? named : NULL;
    DLManagedTensorVersioned *it = tensor_at(place, data), *out = NULL;
    for (int way = 0; way < 7; ++way) {
      static char text[4096];
      int32_t equal = 1;
      double apart = 0;
      memset(seen(data), OLD, NBYTES);
      gpu_fill(0, stream, data, NEW, NBYTES);
      if (recorded) WORKS(dlrs_ready_record(it, stream, ERR));
      CHECK(holds(data, OLD));
      if (way == 0) WORKS(dlrs_equal(it, same, DLRS_EQUAL_VALUES, &equal, ERR));
      if (way == 1) WORKS(dlrs_equal(same, it, DLRS_EQUAL_BITS, &equal, ERR));
      if (way == 2) WORKS(dlrs_max_diff(same, it, &apart, ERR));
      if (way == 3) WORKS(dlrs_clone(it, CPU, NULL, &out, ERR));
      if (way == 4) WORKS(recorded ? dlrs_ready_wait(it, CPU, NULL, ERR) : dlrs_ready_sync(it, ERR));
      if (way == 5) WORKS(dlrs_managed_to_string(it, NULL, text, sizeof text, NULL, ERR));
      if (way == 6) WORKS(dlrs_contiguous(it, 'C', NULL, &out, ERR));
      if (way < 6) CHECK(holds(data, NEW));
      EQUAL(equal, 1);
      CHECK(apart == 0);
      if (way == 3) CHECK(holds(out->dl_tensor.data, NEW));
      if (way == 5) CHECK(strstr(text, "34") != NULL && strstr(text, "17") == NULL);
      if (way == 3 || way == 6) dlrs_release(out); /* the last is the tensor itself */
      EQUAL(gpu_sync(0, stream), 0);
    }
    FAILS(DLRS_STREAM, ANY, dlrs_ready_wait(it, CPU, named, ERR));
    if (i == 0 && !G.hip) FAILS(DLRS_STREAM, ANY, dlrs_ready_record(it, other, ERR)); /* another device's */
    dlrs_release(it);
  }
  EQUAL(gpu_now().stats.events, 0);
}

/* A recorded event delays a tensor's release, also without a stream. */
static void drained(void) {
  uint64_t waiting = 0;
  void *stream = gpu_stream(0, 1), *data = fresh(0);
  for (int i = 0; i < 2; ++i) {
    t_tensor gone;
    t_make(&gone);
    gone.managed.dl_tensor.data = data;
    gone.managed.dl_tensor.device = DEV(0);
    DLManagedTensorVersioned *given = &gone.managed, *it;
    long before = t_deleted;
    WORKS(dlrs_import_take(&given, NULL, &it, ERR)); /* for a foreign tensor the box holds it */
    G.ctl(STANDIN_HANG, 1, 0, NULL);
    gpu_fill(0, stream, data, NEW, NBYTES);
    WORKS(dlrs_ready_record(it, stream, ERR));
    WORKS(dlrs_release_after_take(&it, i ? CPU : DEV(0), NULL, ERR));
    WORKS(dlrs_release_drain(&waiting, ERR));
    EQUAL(waiting, 1);
    EQUAL(t_deleted, before);
    G.ctl(STANDIN_HANG, 0, 0, NULL);
    WORKS(dlrs_stream_sync(DEV(0), stream, ERR));
    WORKS(dlrs_stream_sync(DEV(0), NULL, ERR));
    WORKS(dlrs_release_drain(&waiting, ERR));
    EQUAL(waiting, 0);
    EQUAL(t_deleted, before + 1);
    EQUAL(gpu_now().stats.events, 0);
  }
}

/* ---- Number of driver calls -------------------------------------------------------------------*/

static void cost(void) {
  enum { RECORD, AGAIN, WAIT, SYNC, COPY, COPY_WAITS, COPY_INTO, DROP, NOTHING, WAYS };
  static const char *const names[] = {"record", "again", "wait", "sync", "copy", "copy, waits", "copy into", "release",
                                      "copy of what has none"};
  static const int wants[] = {5, 4, 4, 4, 7, 13, 11, 2, 5};
  gpu_set_current(0, 0);
  void *maker = gpu_stream(0, 1), *stream = gpu_stream(0, 1), *data = fresh(0), *into = fresh(0);
  DLManagedTensorVersioned *it = tensor_at(0, data), *dst = tensor_at(0, into);
  DLManagedTensorVersioned *warm = tensor_at(0, data);
  dlrs_copy_options async = gpu_options(NULL, stream, DLRS_COPY_ASYNC), waits = gpu_options(NULL, stream, 0);
  dlrs_copy_options named = gpu_options(stream, stream, DLRS_COPY_ASYNC);
  WORKS(dlrs_ready_record(warm, maker, ERR)); /* all functions are found */
  WORKS(dlrs_ready_wait(warm, DEV(0), stream, ERR));
  WORKS(dlrs_copy(warm, dst, &async, ERR));
  WORKS(dlrs_copy(warm, dst, &waits, ERR));
  WORKS(dlrs_ready_sync(warm, ERR));
  dlrs_release(warm);
  for (int i = 0; i < WAYS; ++i) {
    long before = gpu_now().stats.calls;
    if (i == RECORD || i == AGAIN) WORKS(dlrs_ready_record(it, maker, ERR));
    if (i == WAIT) WORKS(dlrs_ready_wait(it, DEV(0), stream, ERR));
    if (i == SYNC) WORKS(dlrs_ready_sync(it, ERR));
    if (i == COPY) WORKS(dlrs_copy(it, dst, &async, ERR));
    if (i == COPY_WAITS) WORKS(dlrs_copy(it, dst, &waits, ERR));
    if (i == COPY_INTO) WORKS(dlrs_copy(dst, it, &named, ERR)); /* waits for it, and records again */
    if (i == DROP) dlrs_release(it);
    if (i == NOTHING) {
      it = tensor_at(0, data);
      WORKS(dlrs_copy(it, dst, &named, ERR));
    }
    long calls = gpu_now().stats.calls - before;
    int want = wants[i];
    if (G.hip == 5 && calls < want) want = (int)calls; /* which does not report a stream's device */
    if (calls != want) printf("%s: %ld\n", names[i], calls);
    EQUAL(calls, want);
  }
  dlrs_release(it);
  dlrs_release(dst);
}

/* ---- Backends of the caller -------------------------------------------------------------------*/

static int made, ended, recorded_on;

static int b_copy(void *context, DLDevice device, const dlrs_byte_plan *plan, void *stream, dlrs_fault *fault) {
  return DLRS_UNSUPPORTED;
}
static int b_create(void *context, DLDevice device, void **out, dlrs_fault *fault) {
  *out = &made;
  return ++made, 0;
}
static int b_destroy(void *context, DLDevice device, void *event, dlrs_fault *fault) {
  return ++ended, 0;
}
static int b_record(void *context, DLDevice device, void *event, void *stream, dlrs_fault *fault) {
  return ++recorded_on, 0;
}
static int waits, syncs;
static int b_wait(void *context, DLDevice device, void *event, void *stream, dlrs_fault *fault) {
  return ++waits, 0;
}
static int b_sync(void *context, DLDevice device, void *event, dlrs_fault *fault) {
  return ++syncs, 0;
}

/* While a tensor is being freed its event can still be waited for, but no new one be recorded. */
static int32_t dying_says[2];
static void when_dying(void *tensor) {
  dying_says[0] = dlrs_ready_record((DLManagedTensorVersioned *)tensor, NULL, NULL);
  dying_says[1] = dlrs_ready_sync((DLManagedTensorVersioned *)tensor, NULL);
}

static void plugged(void) {
  dlrs_backend table;
  char memory[NBYTES] = {0};
  DLDevice here = t_device(kDLExtDev, 0);
  memset(&table, 0, sizeof table);
  table.struct_size = sizeof table;
  table.copy = b_copy;
  for (int has = 0; has < 32; ++has) { /* which of its event functions exist */
    made = ended = recorded_on = waits = syncs = 0;
    table.event_create = has & 1 ? b_create : NULL;
    table.event_destroy = has & 2 ? b_destroy : NULL;
    table.event_record = has & 4 ? b_record : NULL;
    table.event_wait = has & 8 ? b_wait : NULL;
    table.event_sync = has & 16 ? b_sync : NULL;
    WORKS(dlrs_backend_set(kDLExtDev, &table, NULL, ERR));
    DLManagedTensorVersioned *it = tensor_on(memory, here);
    int usable = (has & 7) == 7 && has & 24;
    if (!usable) {
      FAILS(DLRS_UNSUPPORTED, ANY, dlrs_ready_record(it, NULL, ERR));
      WORKS(dlrs_ready_wait(it, here, NULL, ERR));
      WORKS(dlrs_ready_sync(it, ERR));
    } else {
      WORKS(dlrs_ready_record(it, NULL, ERR));
      WORKS(dlrs_ready_record(it, NULL, ERR));
      EQUAL(recorded_on, 2);
      WORKS(dlrs_ready_wait(it, here, NULL, ERR)); /* on the stream, else on the host */
      EQUAL(waits, (has & 8) != 0);
      EQUAL(syncs, (has & 8) == 0);
      if (has & 16) WORKS(dlrs_ready_sync(it, ERR));
      else FAILS(DLRS_UNSUPPORTED, ANY, dlrs_ready_sync(it, ERR));
    }
    WORKS(dlrs_attach(it, when_dying, it, DLRS_BEFORE_FREE, ERR));
    dlrs_release(it);
    EQUAL(dying_says[0], DLRS_REFCOUNT);
    EQUAL(dying_says[1], usable && !(has & 16) ? DLRS_UNSUPPORTED : DLRS_OK);
    EQUAL(made, usable);
    EQUAL(ended, made);
  }
  WORKS(dlrs_backend_set(kDLExtDev, NULL, NULL, ERR));
}

/* The CPU may access managed memory after dlrs_ready_sync, also without a record, and a copy does. */
static void managed(int shares) {
  void *other = gpu_stream(0, 1), *unrelated = gpu_alloc(0, NBYTES), *data = gpu_room(MANAGED_HOST, NBYTES);
  DLManagedTensorVersioned *it = tensor_at(MANAGED_HOST, data), foreign = *it, *out;
  foreign.deleter = NULL;
  G.ctl(STANDIN_CONCURRENT, shares, 0, NULL);
  for (int way = 0; way < 4; ++way) { /* foreign, a copy, not recorded, recorded */
    void *stream = way == 3 ? other : NULL;
    memset(seen(data), OLD, NBYTES);
    gpu_fill(0, stream, data, NEW, NBYTES);
    if (way == 3) WORKS(dlrs_ready_record(it, stream, ERR));
    gpu_fill(0, other, unrelated, NEW, NBYTES); /* not waited for */
    CHECK(holds(data, OLD));
    if (way == 1) WORKS(dlrs_clone(it, CPU, NULL, &out, ERR));
    else WORKS(dlrs_ready_sync(way ? it : &foreign, ERR));
    CHECK(holds(data, NEW));
    if (way == 1) dlrs_release(out);
    /* Unless the memory is shared, no work may be pending on the device. */
    EQUAL(gpu_now().stats.pending != 0, shares);
    EQUAL(gpu_sync(0, stream), 0);
    EQUAL(gpu_sync(0, other), 0);
  }
  dlrs_release(it);
}
static void shares(void) { managed(1); }
static void shares_not(void) { managed(0); }

static const gpu_row rows[] = {
    {"shared", "views, references, legacy tensors", shared, STANDIN},
    {"elsewhere", "bytes of a tensor, foreign ones", elsewhere, STANDIN},
    {"turns", "the producer after the consumer", turns, 0},
    {"captured", "next to a capture", captured, STANDIN},
    {"contexts", "streams of other contexts", contexts, STANDIN | ON_CUDA},
    {"host", "host memory", host, STANDIN},
    {"managed", "memory that the CPU may use at any time", shares, STANDIN | ON_CUDA},
    {"managed_alone", "... or only while the device does nothing", shares_not, STANDIN | ON_CUDA},
    {"drained", "released when it is ready", drained, STANDIN},
    {"cost", "calls of the driver", cost, STANDIN},
    {"plugged", "registered backends", plugged, 0},
};
GPU_MAIN(rows)
