/* Every driver call fails with every code, in every scenario: the library returns the status of
 * that code, or does the work by another method; nothing leaks, the current context stays the same,
 * and the same call succeeds next.
 *   faults cuda|rocm [STEP [NAME]]   with STEP only every STEP-th code of each call; scenarios with NAME in their names
 * FAULTS_VERBOSE=1 prints each point. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "gpu.h"
#include "../by_bit.h"

static const int CODES[] = {1,   2,   3,   4,   34,  46,  100, 101, 200, 201, 209,
                            217, 304, 400, 500, 700, 701, 704, 705, 709, 719, 800,
                            801, 802, 803, 805, 808, 810, 811, 900, 901, 906, 999, INT32_MAX};
enum { CODES_N = sizeof CODES / sizeof *CODES };

/* The status of each code; HOSTILE_INPUTS Z09, and the vendors' manuals. */
static int means(int code, int32_t status) {
  switch (code) {
  case 1: return status == DLRS_BAD_ARG;
  case 2: return status == DLRS_DEV_OOM || status == DLRS_NOMEM;
  case 3: case 46: case 304: case 802: case 803: case 805: case 808: return status == DLRS_DRV_INIT;
  case 4: return status == DLRS_SHUTDOWN;
  case 34: return status == DLRS_DRV_STUB;
  case 100: return status == DLRS_NO_DEVICE;
  case 101: return status == (G.hip ? DLRS_NO_DEVICE : DLRS_DEVICE_ID);
  case 201: case 709: case 810: return status == DLRS_CTX_LOST;
  case 217: case 704: case 705: return status == DLRS_PEER || status == DLRS_UNSUPPORTED;
  case 200: case 209: case 500: case 701: return status == DLRS_LAUNCH;
  case 400: return status == DLRS_STREAM;
  case 700: case 719: return status == DLRS_ASYNC_FAULT || status == DLRS_CTX_LOST;
  case 800: case 801: case 811: return status == DLRS_UNSUPPORTED;
  case 900: case 901: case 906: return status == DLRS_CAPTURING;
  default: return status == DLRS_INTERNAL;
  }
}

/* ---- Operands of the scenarios; made before the faults, released after them ------------------*/

/* Where a block of memory is: the host, a device's, device 1's of a pool. */
enum { HOST, PINNED, MANAGED, REGISTERED, DEV_0, DEV_1, POOL_1, PLACES };
static const int place_of[PLACES] = {PLAIN_HOST, PINNED_HOST, MANAGED_HOST, PINNED_HOST, 0, 1, 1};
/* How 2 x 3 elements of 4 bytes are in it; WIDE: 2 x 24; BITS: of 4 bits. */
enum { DENSE, ROWS, COLUMNS, REVERSED, BROADCAST, WIDE, BITS };
enum { NONE, FIRST, SECOND }; /* streams: none, the device's, device 0's other one */
enum { NBYTES = 256 };

typedef struct operands {
  int src, dst, src_layout, dst_layout, src_stream, dst_stream;
  uint32_t flags;
} operands;

static struct {
  unsigned char *blocks[PLACES][2];
  DLManagedTensorVersioned from, to;
  int64_t shape[2], strides[2][2];
  t_tensor host, target;
  unsigned char *many; /* of device 0: see `rows_up` */
  void *streams[2][2], *event0;
  dlrs_copy_options options;
  DLManagedTensorVersioned *made;
  void *memory, *handle;
  int32_t number;
  uint64_t a, b;
  dlrs_pointer_info info;
} S;
static unsigned char host[2][NBYTES], known[4096], page[4096], seed[NBYTES], want[NBYTES];

/* A scenario makes one call under test. Its result, if any, is released by `undo` with the faults
 * switched off; `good` returns whether the result is right. */
typedef struct scenario {
  const char *name;
  operands of;
  int32_t (*run)(void);
  int (*good)(void);
  void (*undo)(void);
  void (*before)(void); /* makes the call's operands, before the faults; may be NULL */
  int every;            /* for long scenarios: only each n-th code; else 0 */
} scenario;

static void describe(DLManagedTensorVersioned *out, int place, int side, int layout) {
  static const int64_t strides[][2] = {{3, 1}, {8, 1}, {1, 2}, {-3, 1}, {0, 1}, {32, 1}, {3, 1}};
  S.shape[0] = 2;
  S.shape[1] = layout == WIDE ? 24 : 3;
  memcpy(S.strides[side], strides[layout], sizeof strides[layout]);
  DLDataType dtype = layout == BITS ? t_dtype(kDLFloat4_e2m1fn, 4, 1) : F32;
  DLTensor bare = gpu_tensor_at(place_of[place], S.blocks[place][side], dtype, 2, S.shape, S.strides[side]);
  bare.byte_offset = layout == REVERSED ? 12 : 0;
  *out = t_managed(bare, 0);
}

static void fresh(const operands *of) {
  describe(&S.from, of->src, 0, of->src_layout);
  describe(&S.to, of->dst, 1, of->dst_layout);
  memcpy(seen(S.from.dl_tensor.data), seed, NBYTES);
  memset(seen(S.to.dl_tensor.data), 0, NBYTES);
  memset(want, 0, NBYTES);
  copy_by_bit(2, S.shape, of->src_layout == BITS ? 4 : 32, seed, (int64_t)S.from.dl_tensor.byte_offset * 8, S.strides[0], want,
              (int64_t)S.to.dl_tensor.byte_offset * 8, S.strides[1]);
  t_make(&S.host);
  t_make(&S.target);
  S.options = gpu_options(of->src_stream ? S.streams[of->src >= DEV_1][of->src_stream - 1] : NULL,
                          of->dst_stream ? S.streams[of->dst >= DEV_1][of->dst_stream - 1] : NULL, of->flags);
  memset(&S.info, 0, sizeof S.info);
  S.info.struct_size = sizeof S.info;
  S.made = NULL;
  S.memory = S.handle = NULL;
  S.number = 0;
}

static void make(void) {
  for (int i = 0; i < NBYTES; ++i) seed[i] = (unsigned char)(i + 1);
  for (int i = 0; i < 2; ++i) {
    for (int k = 0; k < 2; ++k) S.streams[i][k] = gpu_stream(i, 1);
  }
  WORKS(dlrs_mem_register_host(G.type, known, sizeof known, ERR));
  for (int i = 0; i < 2; ++i) {
    void *pool = NULL;
    WORKS(dlrs_mem_alloc(DEV(1), NBYTES, 0, S.streams[1][0], &pool, ERR));
    WORKS(dlrs_stream_sync(DEV(1), S.streams[1][0], ERR));
    unsigned char *all[PLACES] = {host[i], gpu_pinned(NBYTES), gpu_room(MANAGED_HOST, NBYTES), known + 64 + i * 2 * NBYTES,
                                  gpu_alloc(0, NBYTES), gpu_alloc(1, NBYTES), pool};
    for (int place = 0; place < PLACES; ++place) S.blocks[place][i] = all[place];
  }
}

/* ---- Copies ---------------------------------------------------------------------------------*/

static int any(void) { return 1; }
static void nothing(void) {}
/* After an asynchronous copy all work runs; sync is not under test. */
static void settle(void) { G.ctl(STANDIN_RUN, -1, 0, NULL); }
static void release(void) {
  settle();
  dlrs_release(S.made);
  S.made = NULL;
}

static int32_t copy(void) { return dlrs_copy(&S.from, &S.to, &S.options, ERR); }
static int arrived(void) {
  if (S.options.flags) settle();
  return memcmp(seen(S.to.dl_tensor.data), want, NBYTES) == 0;
}
/* Both rows, which one call of CUDA's driver copies. */
static int32_t copy_rows(void) {
  static DLManagedTensorVersioned rows[2][2];
  static int64_t three[1] = {3};
  for (int i = 0; i < 4; ++i) {
    unsigned char *row = S.blocks[DEV_0][i / 2] + 12 * (i % 2);
    rows[i / 2][i % 2] = t_managed(gpu_tensor_at(0, row, F32, 1, three, NULL), 0);
  }
  const DLManagedTensorVersioned *from[2] = {&rows[0][0], &rows[0][1]};
  DLManagedTensorVersioned *to[2] = {&rows[1][0], &rows[1][1]};
  return dlrs_copy_batch(2, from, to, &S.options, &S.a, ERR);
}
static int32_t copy_batch(void) { /* two pairs of different devices */
  const DLManagedTensorVersioned *from[2] = {&S.from, &S.to};
  DLManagedTensorVersioned *to[2] = {&S.to, &S.target.managed};
  return dlrs_copy_batch(2, from, to, &S.options, &S.a, ERR);
}
static int batch_arrived(void) { return arrived() && memcmp(S.target.values, want, 24) == 0; }

/* Narrow rows, apart on the host, through the pinned buffers of two threads: the calling thread's,
 * one after the other, so that the order of calls is deterministic. One piece and a little of a
 * second one, in the small parts that start a copy to the device, or end one from it. */
enum { MANY = 73728, ROW = 32, PITCH = 64 };
static unsigned char apart[MANY][PITCH], many_seed[MANY * ROW];
static int one_by_one(void *context, size_t n, void (*body)(void *, size_t), void *of) {
  (void)context;
  for (size_t i = 0; i < n; ++i) body(of, i);
  return 0;
}
static void with_many(void) {
  for (int i = 0; i < MANY * ROW; ++i) many_seed[i] = (unsigned char)((unsigned)i * 2654435761u >> 13);
  memset(apart, 0xEE, sizeof apart);
  gpu_write(0, S.many, apart, MANY * ROW);
}
static void with_rows(void) {
  with_many();
  for (int i = 0; i < MANY; ++i) memcpy(apart[i], many_seed + i * ROW, ROW);
}
static void with_bytes(void) {
  with_many();
  gpu_write(0, S.many, many_seed, MANY * ROW);
}
static int32_t many(int up) {
  static int64_t shape[2] = {MANY, ROW}, dense[2] = {ROW, 1}, rows[2] = {PITCH, 1};
  DLTensor there = gpu_tensor_at(0, S.many, U8, 2, shape, dense), here = t_describe(apart, U8, 2, shape, rows);
  S.options.parallel_for = one_by_one;
  S.options.threads = 2;
  return dlrs_copy_desc(up ? &here : &there, 0, up ? &there : &here, 0, &S.options, ERR);
}
static int32_t rows_up(void) { return many(1); }
static int32_t rows_down(void) { return many(0); }
static int rows_up_good(void) { return memcmp(G.bytes(S.many), many_seed, MANY * ROW) == 0; }
static int rows_down_good(void) {
  for (int i = 0; i < MANY; ++i) {
    if (memcmp(apart[i], many_seed + i * ROW, ROW) != 0 || apart[i][ROW] != 0xEE) return 0;
  }
  return 1;
}

/* ---- New tensors ----------------------------------------------------------------------------*/

static int is_made(void) { return S.made != NULL; }
static int made_good(void) {
  if (S.options.flags) settle();
  return S.made && memcmp(seen(S.made->dl_tensor.data), want, 24) == 0;
}
static int32_t clone(void) { return dlrs_clone(&S.from, S.to.dl_tensor.device, &S.options, &S.made, ERR); }
static int32_t to_device(void) { return dlrs_to_device(&S.from, DEV(1), 0, &S.options, &S.made, ERR); }
static int32_t contiguous(void) { return dlrs_contiguous(&S.from, 'C', &S.options, &S.made, ERR); }
static int32_t tensor_new(void) {
  return dlrs_tensor_new(S.shape, 2, F32, S.to.dl_tensor.device, NULL, &S.made, ERR);
}

/* ---- Memory, streams, events ----------------------------------------------------------------*/

static int32_t mem_alloc(void) {
  return dlrs_mem_alloc(S.to.dl_tensor.device, 64, 0, S.options.dst_stream, &S.memory, ERR);
}
static int has_memory(void) { return S.memory != NULL; }
static void free_memory(void) {
  if (S.memory) CHECK(dlrs_mem_free(S.to.dl_tensor.device, S.memory, 64, 0, NULL, ERR) == DLRS_OK);
  S.memory = NULL;
}
static void with_memory(void) { S.memory = gpu_alloc(0, 64); }
static int32_t mem_free(void) {
  int32_t status = dlrs_mem_free(DEV(0), S.memory, 64, 0, NULL, ERR);
  /* Once the driver's free was called, the memory is free, whatever it returned. */
  if (status == DLRS_OK || G.bytes(S.memory) == NULL) S.memory = NULL;
  return status;
}
static void free_left(void) {
  if (S.memory) gpu_leave(0, S.memory);
  S.memory = NULL;
}
static int32_t pointer(void) { return dlrs_pointer_device(G.type, S.blocks[DEV_1][0], &S.info, ERR); }
static int pointer_good(void) {
  return S.info.device.device_id == 1 && S.info.device.device_type == (DLDeviceType)G.type;
}
static int32_t pointer_managed(void) { return dlrs_pointer_device(G.type, S.blocks[MANAGED][0], &S.info, ERR); }
static int32_t count(void) { return dlrs_device_count(G.type, &S.number, ERR); }
static int count_good(void) { return S.number == 2; }
static int32_t host_register(void) {
  return dlrs_mem_register_host(G.type, page, sizeof page, ERR);
}
static void host_unregister(void) { (void)dlrs_mem_unregister_host(G.type, page, ERR); }
static int32_t register_both(void) {
  int32_t status = host_register();
  return status != DLRS_OK ? status : dlrs_mem_unregister_host(G.type, page, ERR);
}

static int32_t stream_create(void) { return dlrs_stream_create(S.to.dl_tensor.device, &S.handle, ERR); }
static int has_handle(void) { return S.handle != NULL; }
static void stream_end(void) {
  if (S.handle) gpu_stream_free(0, S.handle);
  S.handle = NULL;
}
static void with_stream(void) { S.handle = gpu_stream(0, 1); }
static int32_t stream_destroy(void) {
  long streams = gpu_now().stats.streams;
  int32_t status = dlrs_stream_destroy(DEV(0), S.handle, ERR);
  if (gpu_now().stats.streams < streams) S.handle = NULL;
  return status;
}
static int32_t stream_sync(void) { return dlrs_stream_sync(DEV(0), S.streams[0][0], ERR); }
static int32_t stream_sync_default(void) { return dlrs_stream_sync(DEV(1), NULL, ERR); }
static int32_t stream_wait(void) { return dlrs_stream_wait(DEV(0), S.streams[0][0], S.streams[0][1], ERR); }
static int32_t event_create(void) { return dlrs_event_create(DEV(0), &S.handle, ERR); }
static void event_end(void) {
  if (S.handle) CHECK(dlrs_event_destroy(DEV(0), S.handle, ERR) == DLRS_OK);
  S.handle = NULL;
}
/* Calls on an existing event, made before the faults by `with_event`. */
static int32_t event_record(void) { return dlrs_event_record(DEV(0), S.event0, S.streams[0][0], ERR); }
static int32_t event_wait(void) { return dlrs_event_wait(DEV(0), S.event0, S.streams[0][0], ERR); }
static int32_t event_sync(void) { return dlrs_event_sync(DEV(0), S.event0, ERR); }
static int32_t release_after(void) {
  S.made = &S.host.managed;
  int32_t status = dlrs_release_after_take(&S.made, DEV(0), S.streams[0][0], ERR);
  if (status != DLRS_OK) CHECK(S.made == &S.host.managed);
  return status;
}
static void drain(void) {
  uint64_t left = 1;
  settle();
  for (int i = 0; i < 4 && left; ++i) CHECK(dlrs_release_drain(&left, ERR) == DLRS_OK);
  EQUAL(left, 0);
  S.made = NULL;
}

/* A failing query counts as done, but because of a capture; an event that cannot be destroyed is left. */
static uint64_t waiting;
static int code_now; /* what the driver answers */
static void with_released(void) {
  CHECK(release_after() == DLRS_OK && dlrs_stream_sync(DEV(0), S.streams[0][0], ERR) == DLRS_OK);
}
static int32_t release_drain(void) { return dlrs_release_drain(&waiting, ERR); }
static int drained(void) { return waiting == 0 || means(code_now, DLRS_CAPTURING); }

/* Of a tensor of this library around device memory, whose event may already be recorded. */
static void with_own(void) {
  CHECK(dlrs_tensor_wrap(&S.from.dl_tensor, 0, NULL, NULL, &S.made, ERR) == DLRS_OK);
}
static void with_recorded(void) {
  with_own();
  CHECK(dlrs_ready_record(S.made, S.streams[0][1], ERR) == DLRS_OK);
}
/* Whether its record, if it has one, is of use. */
static void release_ready(void) {
  CHECK(dlrs_ready_sync(S.made, ERR) == DLRS_OK);
  release();
}
static int32_t ready_record(void) { return dlrs_ready_record(S.made, S.streams[0][0], ERR); }
static int32_t ready_wait(void) { return dlrs_ready_wait(S.made, DEV(0), S.streams[0][0], ERR); }
static int32_t ready_sync(void) { return dlrs_ready_sync(S.made, ERR); }
static int32_t copy_recorded(void) { return dlrs_copy(S.made, &S.to, &S.options, ERR); }
static int32_t copy_into_recorded(void) { return dlrs_copy(&S.to, S.made, &S.options, ERR); }

/* A copy or a new tensor: from, to; their layouts and streams. A call on other operands. */
#define REST(a, b, c, d, e, f, g, ...) {a, b, c, d, e, f, g}
#define ON(...) REST(__VA_ARGS__, DENSE, DENSE, NONE, NONE, 0, 0)
#define COPY(name, ...) {"copy " name, ON(__VA_ARGS__), copy, arrived, settle, NULL, 0}
#define NEW(name, run, ...) {name, ON(__VA_ARGS__), run, made_good, release, NULL, 0}
#define CALL(name, run, good, undo, before, ...) {name, ON(DEV_0, __VA_ARGS__), run, good, undo, before, 0}
#define ASYNC DLRS_COPY_ASYNC
static const scenario scenarios[] = {
    CALL("device_count", count, count_good, nothing, NULL, DEV_0),
    COPY("host to device", HOST, DEV_0),
    COPY("device to host", DEV_0, HOST),
    COPY("on a device", DEV_0, DEV_0),
    COPY("between devices", DEV_1, DEV_0),
    COPY("host to device, stream", HOST, DEV_0, DENSE, DENSE, NONE, FIRST),
    COPY("device to host, stream", DEV_0, HOST, DENSE, DENSE, FIRST),
    COPY("on a device, stream", DEV_0, DEV_0, DENSE, DENSE, FIRST, FIRST),
    COPY("on a device, two streams", DEV_0, DEV_0, DENSE, DENSE, FIRST, SECOND),
    COPY("between devices, streams", DEV_1, DEV_0, DENSE, DENSE, FIRST, FIRST),
    COPY("host to device, async", HOST, DEV_0, DENSE, DENSE, NONE, FIRST, ASYNC),
    COPY("device to host, async", DEV_0, HOST, DENSE, DENSE, FIRST, NONE, ASYNC),
    COPY("on a device, async", DEV_0, DEV_0, DENSE, DENSE, FIRST, FIRST, ASYNC),
    COPY("on a device, two streams, async", DEV_0, DEV_0, DENSE, DENSE, FIRST, SECOND, ASYNC),
    COPY("between devices, async", DEV_1, DEV_0, DENSE, DENSE, FIRST, FIRST, ASYNC),
    COPY("rows to a device", HOST, DEV_0, DENSE, ROWS),
    COPY("columns to the host", DEV_0, HOST, COLUMNS),
    COPY("columns to a device", HOST, DEV_0, COLUMNS),
    COPY("columns on a device", DEV_0, DEV_0, COLUMNS),
    COPY("columns on a device, async", DEV_0, DEV_0, COLUMNS, DENSE, FIRST, FIRST, ASYNC),
    COPY("columns between devices", DEV_1, DEV_0, COLUMNS),
    COPY("columns between devices, async", DEV_1, DEV_0, COLUMNS, DENSE, FIRST, FIRST, ASYNC),
    COPY("rows between devices, last first", DEV_1, DEV_0, REVERSED),
    COPY("wide rows between devices", DEV_1, DEV_0, WIDE, WIDE),
    COPY("columns between devices, from a pool", POOL_1, DEV_0, COLUMNS),
    COPY("registered columns to a device", REGISTERED, DEV_0, COLUMNS),
    COPY("columns to pinned memory", DEV_0, PINNED, COLUMNS),
    COPY("reversed", DEV_0, DEV_0, REVERSED),
    COPY("broadcast", DEV_0, DEV_0, BROADCAST),
    {"copy many rows to a device", ON(HOST, DEV_0), rows_up, rows_up_good, nothing, with_rows, 7},
    {"copy many rows to the host", ON(DEV_0, HOST), rows_down, rows_down_good, nothing, with_bytes, 7},
    COPY("bits to the host", DEV_0, HOST, BITS, BITS),
    COPY("bits on a device", DEV_0, DEV_0, BITS, BITS),
    COPY("pinned to device", PINNED, DEV_0),
    COPY("device to pinned", DEV_0, PINNED),
    COPY("managed to device", MANAGED, DEV_0),
    {"copy_batch", ON(HOST, DEV_0), copy_batch, batch_arrived, settle, NULL, 0},
    CALL("copy_batch together", copy_rows, arrived, settle, NULL, DEV_0, DENSE, DENSE, FIRST, FIRST),
    CALL("copy_batch together, async", copy_rows, arrived, settle, NULL, DEV_0, DENSE, DENSE, FIRST, FIRST, ASYNC),
    NEW("clone to a device", clone, HOST, DEV_0),
    NEW("clone to the host", clone, DEV_0, HOST),
    NEW("clone on a device", clone, DEV_0, DEV_0),
    NEW("clone between devices", clone, DEV_1, DEV_0),
    NEW("clone columns", clone, DEV_0, DEV_0, COLUMNS),
    NEW("clone columns to the host", clone, DEV_0, HOST, COLUMNS),
    NEW("clone on a stream", clone, DEV_0, DEV_0, DENSE, DENSE, FIRST, FIRST),
    NEW("clone async", clone, DEV_0, DEV_0, DENSE, DENSE, FIRST, FIRST, ASYNC),
    NEW("clone to a device, async", clone, HOST, DEV_0, DENSE, DENSE, NONE, FIRST, ASYNC),
    NEW("clone to pinned", clone, DEV_0, PINNED),
    NEW("clone to managed", clone, DEV_0, MANAGED),
    NEW("to_device", to_device, HOST, DEV_1),
    NEW("contiguous", contiguous, DEV_0, DEV_0, COLUMNS),
    CALL("tensor_new", tensor_new, is_made, release, NULL, DEV_0),
    CALL("tensor_new pinned", tensor_new, is_made, release, NULL, PINNED),
    CALL("mem_alloc", mem_alloc, has_memory, free_memory, NULL, DEV_0),
    CALL("mem_alloc on a stream", mem_alloc, has_memory, free_memory, NULL, DEV_0, DENSE, DENSE, NONE, FIRST),
    CALL("mem_alloc pinned", mem_alloc, has_memory, free_memory, NULL, PINNED),
    CALL("mem_free", mem_free, any, free_left, with_memory, DEV_0),
    CALL("pointer_device", pointer, pointer_good, nothing, NULL, DEV_0),
    CALL("pointer_device of managed memory", pointer_managed, any, nothing, NULL, DEV_0),
    CALL("mem_register_host", host_register, any, host_unregister, NULL, DEV_0),
    CALL("mem_register_host and back", register_both, any, host_unregister, NULL, DEV_0),
    CALL("stream_create", stream_create, has_handle, stream_end, NULL, DEV_0),
    CALL("stream_create on another device", stream_create, has_handle, stream_end, NULL, DEV_1),
    CALL("stream_destroy", stream_destroy, any, stream_end, with_stream, DEV_0),
    CALL("stream_sync", stream_sync, any, nothing, NULL, DEV_0),
    CALL("stream_sync of a default stream", stream_sync_default, any, nothing, NULL, DEV_0),
    CALL("stream_wait", stream_wait, any, settle, NULL, DEV_0),
    CALL("event_create", event_create, has_handle, event_end, NULL, DEV_0),
    CALL("event_record", event_record, any, settle, NULL, DEV_0),
    CALL("event_wait", event_wait, any, settle, NULL, DEV_0),
    CALL("event_sync", event_sync, any, settle, NULL, DEV_0),
    CALL("release_after_take", release_after, any, drain, NULL, DEV_0),
    CALL("release_drain", release_drain, drained, drain, with_released, DEV_0),
    CALL("ready_record", ready_record, any, release_ready, with_own, DEV_0),
    CALL("ready_record, again", ready_record, any, release_ready, with_recorded, DEV_0),
    CALL("ready_wait", ready_wait, any, release_ready, with_recorded, DEV_0),
    CALL("ready_sync", ready_sync, any, release_ready, with_recorded, DEV_0),
    CALL("copy of what is recorded", copy_recorded, arrived, release, with_recorded, DEV_0, DENSE, DENSE, NONE, FIRST),
    CALL("copy of what is recorded, async", copy_recorded, arrived, release, with_recorded, DEV_0, DENSE, DENSE, NONE, FIRST, ASYNC),
    CALL("copy into what is recorded, async", copy_into_recorded, any, release, with_recorded, DEV_0, DENSE, DENSE, NONE, FIRST, ASYNC),
};
enum { SCENARIOS = sizeof scenarios / sizeof *scenarios };

/* ---- The sweep ------------------------------------------------------------------------------*/

/* Points of the sweep: all, those that return the code's status, those done by another method,
 * those with garbage outputs; and buffers that were not freed. */
#define points gpu_tally[0]
#define mapped gpu_tally[1]
#define another_way gpu_tally[2]
#define garbled gpu_tally[3]
#define left_alone gpu_tally[4]

/* The name of the k-th call of the driver since the counts were reset. */
static const char *call_name(long k) {
  static char log[1 << 16];
  size_t n = G.log(log, sizeof log - 1);
  log[n < sizeof log ? n : sizeof log - 1] = '\0';
  char *name = strtok(log, "\n");
  while (name != NULL && --k > 0) name = strtok(NULL, "\n");
  return name ? name : "?";
}

/* The k-th call fails, or writes garbage, once or from then on. 0: there is no k-th call. */
static int point(const scenario *it, int what, long k, int code) {
  static char where[160] = "";
  t_context = where;
  fresh(&it->of);
  gpu_state before = gpu_now();
  if (it->before) it->before();
  long deleted = t_deleted;
  t_before();
  G.calls(NULL);
  G.ctl(what, k, code, NULL);
  code_now = code;
  int32_t status = it->run();
  G.ctl(STANDIN_FAIL, 0, 0, NULL);
  gpu_state after = gpu_now();
  int happened = after.stats.injected != before.stats.injected;
  int ok = 1;
  const char *failing = call_name(k);
  snprintf(where, sizeof where, "%s, call %ld %s, %s %d", it->name, k, failing,
           what == STANDIN_GARBAGE ? "garbage" : what == STANDIN_FAIL ? "once" : "always", code);
  int unknown = code == 1 && strstr(failing, "PointerGetAttribute") != NULL;
  if (status == DLRS_OK) {
    /* "Invalid value" is the driver's code for an unknown address. */
    /* Work that is only enqueued when the device fails is not done. */
    int broke = what == STANDIN_FAIL_ALWAYS && strstr(it->name, "async") != NULL;
    if (what != STANDIN_GARBAGE && !unknown && !broke) ok &= CHECK(it->good());
    gpu_tally[what == STANDIN_GARBAGE ? 3 : 2] += happened;
  } else if (what == STANDIN_GARBAGE) {
    ++garbled;
  } else {
    ok &= t_check(means(code, status) && t_error.status == status, __FILE__, __LINE__, t_error.message);
    ok &= CHECK(t_error.driver_code == code || status == DLRS_UNSUPPORTED || code == 1);
    ++mapped;
  }
  if (getenv("FAULTS_VERBOSE")) fprintf(stderr, "%s: status %d\n", where, status);
  if (what == STANDIN_GARBAGE) {
    /* A garbage handle is indistinguishable from a valid one; so is a garbage current context. */
    if (S.handle == (void *)-1) S.handle = NULL;
    if (G.hip && strcmp(failing, "hipGetDevice") == 0) gpu_set_current(0, 0);
    G.ctl(STANDIN_FORGIVE, before.stats.violations, 0, NULL);
    after = gpu_now();
  }
  EQUAL(after.stats.depth, before.stats.depth);
  if (!CHECK(after.current == before.current)) gpu_set_current(0, 0);
  it->undo();
  settle();
  if (it->undo != drain) ok &= CHECK(t_deleted == deleted);
  if (it->run == release_drain) before.stats.events = gpu_now().stats.events;
  ok &= SAME(before);
  /* The same call succeeds now. */
  fresh(&it->of);
  if (it->before) it->before();
  int32_t again = it->run();
  ok &= t_check(again == DLRS_OK && it->good(), __FILE__, __LINE__, "the same call works next");
  it->undo();
  settle();
  if (what == STANDIN_FAIL_ALWAYS) {
    /* A cached buffer that the device may still use is not freed when nothing can wait for it; the
     * next call has made another one. */
    after = gpu_now();
    long more = after.stats.pinned - before.stats.pinned;
    if (more > 0 && more <= 2) {
      left_alone += more;
      before.stats.pinned += more;
      before.stats.events += more;
    }
  }
  ok &= SAME(before);
  if (!ok) printf("  status %d, then %d: %.200s\n", status, again, status ? t_error.message : "");
  points += happened;
  return happened;
}

static void sweep(const scenario *it, int step) {
  if (it->every > step) step = it->every;
  for (int warm = 0; warm < 2; ++warm) { /* makes what is cached after the first call */
    fresh(&it->of);
    t_context = it->name;
    if (it->before) it->before();
    if (!EQUAL(it->run(), DLRS_OK) || !CHECK(it->good())) printf("  %.200s\n", t_error.message);
    it->undo();
    settle();
  }
  for (int always = 0; always < 2; ++always) {
    for (long k = 1;; ++k) {
      int happened = 1;
      for (int c = (int)(k % step); c < CODES_N && happened; c += step) {
        happened = point(it, always ? STANDIN_FAIL_ALWAYS : STANDIN_FAIL, k, CODES[c]);
      }
      if (!happened) break;
    }
  }
  for (long k = 1; point(it, STANDIN_GARBAGE, k, 0) | point(it, STANDIN_GARBAGE, k, 1) |
                   point(it, STANDIN_GARBAGE, k, 2);
       ++k) {
  }
}

static int step = 1;
static const scenario *chosen;

static void warm_row(void) {
  DLManagedTensorVersioned *there, *turned, *compact;
  make();
  t_make(&S.host);
  t_make(&S.target);
  if (chosen->every) S.many = (unsigned char *)gpu_alloc(0, MANY * ROW);
  for (int i = 0; i < 2; ++i) { /* the library caches per-device resources, including kernels */
    WORKS(dlrs_clone(&S.host.managed, DEV(i), NULL, &there, ERR));
    WORKS(dlrs_view_transpose(there, 0, 1, &turned, ERR));
    WORKS(dlrs_clone(turned, DEV(i), NULL, &compact, ERR));
    dlrs_release(compact);
    for (int up = 0; up < 2; ++up) { /* buffers, for a copy that the driver rejects */
      G.ctl(STANDIN_FAIL, 1, 1, VENDOR("MemcpyAsync"));
      WORKS(up ? dlrs_copy(&S.host.managed, there, NULL, ERR) : dlrs_copy(there, &S.target.managed, NULL, ERR));
    }
    dlrs_release(turned);
    dlrs_release(there);
  }
  void *made;
  WORKS(dlrs_event_create(DEV(0), &made, ERR));
  S.event0 = made;
  sweep(chosen, step);
}

int main(int argc, char **argv) {
  gpu_begin(argc, argv);
  if (argc > 2) step = atoi(argv[2]);
  printf("%d scenarios\n", SCENARIOS);
  for (int i = 0; i < SCENARIOS; ++i) {
    if (argc > 3 && strstr(scenarios[i].name, argv[3]) == NULL) continue;
    chosen = &scenarios[i];
    gpu_run(&(gpu_row){"Z09", scenarios[i].name, warm_row, STANDIN});
  }
  printf("%ld points: %ld answered with their status, %ld done in another way, %ld garbage; %ld buffers left "
         "alone\n",
         points, mapped, another_way, garbled, left_alone);
  return gpu_end();
}
