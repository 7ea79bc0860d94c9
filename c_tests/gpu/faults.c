/* Every driver call fails with every code, in every scenario: the library returns the status of
 * that code, or does the work by another method; nothing leaks, the current context stays the same,
 * and the same call succeeds next.
 *   faults cuda|rocm [STEP [NAME]]   with STEP only every STEP-th code of each call; scenarios with NAME in their names
 * FAULTS_VERBOSE=1 prints each point. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <sys/wait.h>
#include <unistd.h>

#include "gpu.h"

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

static struct {
  gpu_tensor dev0, dev1, out0;
  t_tensor host, target;
  float *pinned, *managed, *pool1; /* device 1's, of a pool */
  unsigned char *wide[2];          /* of each device */
  unsigned char *many;             /* of device 0: see `rows_up` */
  char known[4096];                /* registered */
  void *stream0, *other0, *stream1, *event0;
  dlrs_copy_options options;
  DLManagedTensorVersioned *made;
  void *memory, *handle;
  int32_t number;
  uint64_t a, b;
  dlrs_pointer_info info;
  char page[4096];
} S;

/* A scenario makes one call under test. Its result, if any, is released by `undo` with the faults
 * switched off; `good` returns whether the result is right. */
typedef struct scenario {
  const char *name;
  int32_t (*run)(void);
  int (*good)(void);
  void (*undo)(void);
  void (*before)(void); /* makes the call's operands, before the faults; may be NULL */
  int every;            /* for long scenarios: only each n-th code; else 0 */
} scenario;

static const float VALUES[6] = {0, 1, 2, 3, 4, 5};
static const float COLUMNS[6] = {0, 3, 1, 4, 2, 5};

static void transpose(gpu_tensor *tensor) {
  tensor->shape[0] = 3;
  tensor->shape[1] = 2;
  tensor->strides[0] = 1;
  tensor->strides[1] = 3;
}

static void fresh(void) {
  static const float zero[6];
  gpu_write(0, S.dev0.data, VALUES, 24);
  gpu_write(1, S.dev1.data, VALUES, 24);
  gpu_write(0, S.out0.data, zero, 24);
  S.dev0.shape[0] = S.dev1.shape[0] = S.out0.shape[0] = 2;
  S.dev0.shape[1] = S.dev1.shape[1] = S.out0.shape[1] = 3;
  S.dev0.strides[0] = S.dev1.strides[0] = S.out0.strides[0] = 3;
  S.dev0.strides[1] = S.dev1.strides[1] = S.out0.strides[1] = 1;
  t_make(&S.host);
  t_make(&S.target);
  memset(S.target.values, 0, sizeof S.target.values);
  memcpy(S.pinned, VALUES, 24);
  memcpy(S.managed, VALUES, 24);
  memset(&S.options, 0, sizeof S.options);
  S.options.struct_size = sizeof S.options;
  memset(&S.info, 0, sizeof S.info);
  S.info.struct_size = sizeof S.info;
  S.made = NULL;
  S.memory = S.handle = NULL;
  S.number = 0;
}

static void make(void) {
  gpu_make(&S.dev0, 0);
  gpu_make(&S.out0, 0);
  gpu_make(&S.dev1, 1);
  S.pinned = (float *)gpu_pinned(24);
  S.managed = (float *)gpu_managed(0, 24);
  for (int i = 0; i < 2; ++i) S.wide[i] = (unsigned char *)gpu_alloc(i, 256);
  void *pool = NULL;
  WORKS(dlrs_mem_register_host(G.type, S.known, sizeof S.known, ERR));
  S.stream0 = gpu_stream(0, 1);
  S.other0 = gpu_stream(0, 1);
  S.stream1 = gpu_stream(1, 1);
  WORKS(dlrs_mem_alloc(DEV(1), 64, 0, S.stream1, &pool, ERR));
  WORKS(dlrs_stream_sync(DEV(1), S.stream1, ERR));
  S.pool1 = (float *)pool;
  fresh();
}

/* ---- Copies ---------------------------------------------------------------------------------*/

static int target_good(void) { return memcmp(S.target.values, VALUES, 24) == 0; }
static int target_columns(void) { return memcmp(S.target.values, COLUMNS, 24) == 0; }
static int out_good(void) { return gpu_holds(&S.out0.managed.dl_tensor, VALUES); }
static int out_columns(void) { return gpu_holds(&S.out0.managed.dl_tensor, COLUMNS); }
static int any(void) { return 1; }
static void nothing(void) {}
static void release(void) {
  if (S.made) dlrs_release(S.made);
  S.made = NULL;
}

static int32_t h2d(void) { return dlrs_copy(&S.host.managed, &S.out0.managed, &S.options, ERR); }
static int32_t d2h(void) { return dlrs_copy(&S.dev0.managed, &S.target.managed, &S.options, ERR); }
static int32_t d2d(void) { return dlrs_copy(&S.dev0.managed, &S.out0.managed, &S.options, ERR); }
static int32_t p2p(void) { return dlrs_copy(&S.dev1.managed, &S.out0.managed, &S.options, ERR); }
static int32_t on_stream(int32_t (*run)(void), void *src, void *dst) {
  S.options.src_stream = src;
  S.options.dst_stream = dst;
  return run();
}
static int32_t h2d_stream(void) { return on_stream(h2d, NULL, S.stream0); }
static int32_t d2h_stream(void) { return on_stream(d2h, S.stream0, NULL); }
static int32_t d2d_stream(void) { return on_stream(d2d, S.stream0, S.stream0); }
static int32_t d2d_streams(void) { return on_stream(d2d, S.stream0, S.other0); }
static int32_t p2p_streams(void) { return on_stream(p2p, S.stream1, S.stream0); }
static int32_t async(int32_t (*run)(void)) {
  S.options.flags = DLRS_COPY_ASYNC;
  return run();
}
static int32_t h2d_async(void) { return async(h2d_stream); }
static int32_t d2h_async(void) { return async(d2h_stream); }
static int32_t d2d_async(void) { return async(d2d_stream); }
static int32_t d2d_streams_async(void) { return async(d2d_streams); }
static int32_t p2p_async(void) { return async(p2p_streams); }

/* After an asynchronous copy all work runs; sync is not under test. */
static void settle(void) { G.ctl(STANDIN_RUN, -1, 0, NULL); }
static int out_later(void) { return settle(), out_good(); }
static int target_later(void) { return settle(), target_good(); }

static int32_t h2d_rows(void) {
  S.out0.strides[0] = 3; /* 2 rows of 2 out of 3 */
  S.out0.shape[1] = S.host.shape[1] = 2;
  return h2d();
}
static int rows_good(void) {
  static const float want[6] = {0, 1, 0, 3, 4, 0};
  return gpu_holds(&S.out0.managed.dl_tensor, want);
}
static int32_t d2h_columns(void) {
  transpose(&S.dev0);
  S.target.shape[0] = 3;
  S.target.shape[1] = 2;
  S.target.strides[0] = 2;
  return d2h();
}
static int32_t h2d_columns(void) {
  S.host.shape[0] = 3;
  S.host.shape[1] = 2;
  S.host.strides[0] = 1;
  S.host.strides[1] = 3;
  S.out0.shape[0] = 3;
  S.out0.shape[1] = 2;
  S.out0.strides[0] = 2;
  return h2d();
}
static int32_t d2d_columns(void) {
  transpose(&S.dev0);
  S.out0.shape[0] = 3;
  S.out0.shape[1] = 2;
  S.out0.strides[0] = 2;
  return d2d();
}
static int32_t d2d_columns_async(void) {
  S.options.src_stream = S.options.dst_stream = S.stream0;
  return async(d2d_columns);
}
static int out_columns_later(void) { return settle(), out_columns(); }
static int32_t p2p_columns(void) {
  transpose(&S.dev1);
  S.out0.shape[0] = 3;
  S.out0.shape[1] = 2;
  S.out0.strides[0] = 2;
  return p2p();
}
static int32_t p2p_columns_async(void) {
  S.options.src_stream = S.stream1;
  S.options.dst_stream = S.stream0;
  return async(p2p_columns);
}
static int32_t p2p_reversed(void) { /* compact only in the destination */
  S.dev1.strides[0] = -3;
  S.dev1.managed.dl_tensor.byte_offset = 12;
  int32_t status = p2p();
  S.dev1.managed.dl_tensor.byte_offset = 0;
  return status;
}
/* 2 rows of 96 bytes, 128 apart, of both devices. */
static int32_t p2p_rows(void) {
  static const int64_t shape[2] = {2, 24}, strides[2] = {32, 1};
  DLTensor from = t_describe(S.wide[1], F32, 2, (int64_t *)(uintptr_t)shape, (int64_t *)(uintptr_t)strides), to = from;
  to.data = S.wide[0];
  from.device = DEV(1);
  to.device = DEV(0);
  memset(G.bytes(S.wide[0]), 0, 256);
  for (int i = 0; i < 256; ++i) ((unsigned char *)G.bytes(S.wide[1]))[i] = (unsigned char)(i + 1);
  return dlrs_copy_desc(&from, 0, &to, 0, &S.options, ERR);
}
static int wide_good(void) {
  const unsigned char *got = G.bytes(S.wide[0]);
  for (int i = 0; i < 256; ++i) {
    if (got[i] != (i % 128 < 96 ? (unsigned char)(i + 1) : 0)) return 0;
  }
  return 1;
}
static int32_t p2p_pool(void) {
  float *plain = S.dev1.data;
  memcpy(G.bytes(S.pool1), VALUES, sizeof VALUES);
  S.dev1.managed.dl_tensor.data = S.pool1;
  int32_t status = p2p_columns();
  S.dev1.managed.dl_tensor.data = plain;
  return status;
}
static int32_t registered_columns(void) {
  void *heap = S.host.managed.dl_tensor.data;
  memcpy(S.known + 64, VALUES, sizeof VALUES);
  S.host.managed.dl_tensor.data = S.known + 64;
  S.host.managed.dl_tensor.device = t_device(G.pinned, 0);
  int32_t status = h2d_columns();
  S.host.managed.dl_tensor.data = heap;
  S.host.managed.dl_tensor.device = CPU;
  return status;
}
static int32_t pinned_columns(void) {
  void *heap = S.target.managed.dl_tensor.data;
  memset(S.pinned, 0, 24);
  S.target.managed.dl_tensor.data = S.pinned;
  S.target.managed.dl_tensor.device = t_device(G.pinned, 0);
  int32_t status = d2h_columns();
  S.target.managed.dl_tensor.data = heap;
  S.target.managed.dl_tensor.device = CPU;
  return status;
}
static int pinned_good(void) { return memcmp(S.pinned, COLUMNS, 24) == 0; }
static int32_t d2d_reversed(void) {
  S.dev0.strides[0] = -3;
  S.dev0.managed.dl_tensor.byte_offset = 12;
  int32_t status = d2d();
  S.dev0.managed.dl_tensor.byte_offset = 0;
  return status;
}
static int reversed_good(void) {
  static const float want[6] = {3, 4, 5, 0, 1, 2};
  return gpu_holds(&S.out0.managed.dl_tensor, want);
}
static int32_t d2d_broadcast(void) {
  S.dev0.strides[0] = 0;
  return d2d();
}
static int broadcast_good(void) {
  static const float want[6] = {0, 1, 2, 0, 1, 2};
  return gpu_holds(&S.out0.managed.dl_tensor, want);
}
static int32_t bits(int32_t (*run)(void), DLTensor *from, DLTensor *to) {
  from->dtype = to->dtype = t_dtype(kDLFloat4_e2m1fn, 4, 1);
  int32_t status = run(); /* 6 elements of 4 bits: 3 bytes */
  from->dtype = to->dtype = F32;
  return status;
}
static int32_t d2h_bits(void) { return bits(d2h, &S.dev0.managed.dl_tensor, &S.target.managed.dl_tensor); }
static int32_t d2d_bits(void) { return bits(d2d, &S.dev0.managed.dl_tensor, &S.out0.managed.dl_tensor); }
static int32_t as(int32_t (*run)(void), DLTensor *tensor, void *data, int32_t type) {
  DLTensor kept = *tensor;
  tensor->data = data;
  tensor->device = t_device(type, 0);
  int32_t status = run();
  *tensor = kept;
  return status;
}
static int32_t pinned2d(void) { return as(h2d, &S.host.managed.dl_tensor, S.pinned, G.pinned); }
static int32_t d2pinned(void) { return as(d2h, &S.target.managed.dl_tensor, S.pinned, G.pinned); }
static int32_t managed2d(void) {
  return as(h2d, &S.host.managed.dl_tensor, S.managed, G.managed ? G.managed : G.type);
}

/* Narrow rows, apart on the host, through the pinned buffers of two threads: the calling thread's,
 * one after the other, so that the order of calls is deterministic. One piece and a little of a
 * second one, in the small parts that start a copy to the device, or end one from it. */
enum { MANY = 73728, ROW = 32, PITCH = 64 };
static unsigned char apart[MANY][PITCH], seed[MANY * ROW];
static int one_by_one(void *context, size_t n, void (*body)(void *, size_t), void *of) {
  (void)context;
  for (size_t i = 0; i < n; ++i) body(of, i);
  return 0;
}
static void with_many(void) {
  for (int i = 0; i < MANY * ROW; ++i) seed[i] = (unsigned char)((unsigned)i * 2654435761u >> 13);
  memset(apart, 0xEE, sizeof apart);
  gpu_write(0, S.many, apart, MANY * ROW);
}
static void with_rows(void) {
  with_many();
  for (int i = 0; i < MANY; ++i) memcpy(apart[i], seed + i * ROW, ROW);
}
static void with_bytes(void) {
  with_many();
  gpu_write(0, S.many, seed, MANY * ROW);
}
static int32_t many(int up) {
  static int64_t shape[2] = {MANY, ROW}, dense[2] = {ROW, 1}, rows[2] = {PITCH, 1};
  DLTensor there = t_describe(S.many, t_dtype(kDLUInt, 8, 1), 2, shape, dense);
  DLTensor here = t_describe(apart, t_dtype(kDLUInt, 8, 1), 2, shape, rows);
  there.device = DEV(0);
  S.options.parallel_for = one_by_one;
  S.options.threads = 2;
  return dlrs_copy_desc(up ? &here : &there, 0, up ? &there : &here, 0, &S.options, ERR);
}
static int32_t rows_up(void) { return many(1); }
static int32_t rows_down(void) { return many(0); }
static int rows_up_good(void) { return memcmp(G.bytes(S.many), seed, MANY * ROW) == 0; }
static int rows_down_good(void) {
  for (int i = 0; i < MANY; ++i) {
    if (memcmp(apart[i], seed + i * ROW, ROW) != 0 || apart[i][ROW] != 0xEE) return 0;
  }
  return 1;
}

/* ---- New tensors ----------------------------------------------------------------------------*/

static int made_good(void) { return S.made && gpu_holds(&S.made->dl_tensor, VALUES); }
static int made_later(void) { return settle(), made_good(); }
static int made_columns(void) { return S.made && gpu_holds(&S.made->dl_tensor, COLUMNS); }
static int is_made(void) { return S.made != NULL; }
static int32_t clone_h2d(void) { return dlrs_clone(&S.host.managed, DEV(0), &S.options, &S.made, ERR); }
static int32_t clone_d2h(void) { return dlrs_clone(&S.dev0.managed, CPU, &S.options, &S.made, ERR); }
static int32_t clone_d2d(void) { return dlrs_clone(&S.dev0.managed, DEV(0), &S.options, &S.made, ERR); }
static int32_t clone_p2p(void) { return dlrs_clone(&S.dev1.managed, DEV(0), &S.options, &S.made, ERR); }
static int32_t clone_columns(void) {
  transpose(&S.dev0);
  return clone_d2d();
}
static int32_t clone_columns_d2h(void) {
  transpose(&S.dev0);
  return clone_d2h();
}
static int32_t clone_stream(void) { return on_stream(clone_d2d, S.stream0, S.stream0); }
static int32_t clone_async(void) { return async(clone_stream); }
static int32_t clone_h2d_async(void) {
  S.options.dst_stream = S.stream0;
  return async(clone_h2d);
}
static int32_t clone_pinned(void) {
  return dlrs_clone(&S.dev0.managed, t_device(G.pinned, 0), &S.options, &S.made, ERR);
}
static int32_t clone_managed(void) {
  return dlrs_clone(&S.dev0.managed, G.managed ? t_device(G.managed, 0) : DEV(0), &S.options, &S.made,
                    ERR);
}
static int32_t to_device(void) {
  return dlrs_to_device(&S.host.managed, DEV(1), 0, &S.options, &S.made, ERR);
}
static int32_t contiguous(void) {
  transpose(&S.dev0);
  return dlrs_contiguous(&S.dev0.managed, 'C', &S.options, &S.made, ERR);
}
static int32_t tensor_new(void) {
  return dlrs_tensor_new(S.dev0.shape, 2, F32, DEV(0), NULL, &S.made, ERR);
}
static int32_t tensor_new_pinned(void) {
  return dlrs_tensor_new(S.dev0.shape, 2, F32, t_device(G.pinned, 0), NULL, &S.made, ERR);
}

/* ---- Memory, streams, events ----------------------------------------------------------------*/

static int32_t mem_alloc(void) { return dlrs_mem_alloc(DEV(0), 64, 0, NULL, &S.memory, ERR); }
static int32_t mem_alloc_stream(void) { return dlrs_mem_alloc(DEV(0), 64, 0, S.stream0, &S.memory, ERR); }
static int32_t mem_alloc_pinned(void) {
  return dlrs_mem_alloc(t_device(G.pinned, 0), 64, 0, NULL, &S.memory, ERR);
}
static int has_memory(void) { return S.memory != NULL; }
static void free_memory(void) {
  if (S.memory) CHECK(dlrs_mem_free(DEV(0), S.memory, 64, 0, NULL, ERR) == DLRS_OK);
  S.memory = NULL;
}
static void free_pinned(void) {
  if (S.memory) CHECK(dlrs_mem_free(t_device(G.pinned, 0), S.memory, 64, 0, NULL, ERR) == DLRS_OK);
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
  if (S.memory) gpu_free(0, S.memory);
  S.memory = NULL;
}
static int32_t pointer(void) { return dlrs_pointer_device(G.type, S.dev1.data, &S.info, ERR); }
static int pointer_good(void) {
  return S.info.device.device_id == 1 && S.info.device.device_type == (DLDeviceType)G.type;
}
static int32_t pointer_managed(void) { return dlrs_pointer_device(G.type, S.managed, &S.info, ERR); }
static int32_t count(void) { return dlrs_device_count(G.type, &S.number, ERR); }
static int count_good(void) { return S.number == 2; }
static int32_t host_register(void) {
  return dlrs_mem_register_host(G.type, S.page, sizeof S.page, ERR);
}
static void host_unregister(void) { (void)dlrs_mem_unregister_host(G.type, S.page, ERR); }
static int32_t register_both(void) {
  int32_t status = host_register();
  return status != DLRS_OK ? status : dlrs_mem_unregister_host(G.type, S.page, ERR);
}

static int32_t stream_create(void) { return dlrs_stream_create(DEV(0), &S.handle, ERR); }
static int32_t stream_create1(void) { return dlrs_stream_create(DEV(1), &S.handle, ERR); }
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
static int32_t stream_sync(void) { return dlrs_stream_sync(DEV(0), S.stream0, ERR); }
static int32_t stream_sync_default(void) { return dlrs_stream_sync(DEV(1), NULL, ERR); }
static int32_t stream_query(void) { return dlrs_stream_query(DEV(0), S.stream0, &S.number, ERR); }
static int32_t stream_wait(void) { return dlrs_stream_wait(DEV(0), S.stream0, S.other0, ERR); }
static int32_t event_create(void) { return dlrs_event_create(DEV(0), &S.handle, ERR); }
static void event_end(void) {
  if (S.handle) CHECK(dlrs_event_destroy(DEV(0), S.handle, ERR) == DLRS_OK);
  S.handle = NULL;
}
/* Calls on an existing event, made before the faults by `with_event`. */
static int32_t event_record(void) { return dlrs_event_record(DEV(0), S.event0, S.stream0, ERR); }
static int32_t event_wait(void) { return dlrs_event_wait(DEV(0), S.event0, S.stream0, ERR); }
static int32_t event_sync(void) { return dlrs_event_sync(DEV(0), S.event0, ERR); }
static int32_t event_query(void) { return dlrs_event_query(DEV(0), S.event0, &S.number, ERR); }
static int32_t release_after(void) {
  S.made = &S.host.managed;
  int32_t status = dlrs_release_after_take(&S.made, DEV(0), S.stream0, ERR);
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

/* Of a tensor of this library around device memory, whose event may already be recorded. */
static void with_own(void) {
  CHECK(dlrs_tensor_wrap(&S.dev0.managed.dl_tensor, 0, NULL, NULL, &S.made, ERR) == DLRS_OK);
}
static void with_recorded(void) {
  with_own();
  CHECK(dlrs_ready_record(S.made, S.other0, ERR) == DLRS_OK);
}
static int32_t ready_record(void) { return dlrs_ready_record(S.made, S.stream0, ERR); }
static int32_t ready_wait(void) { return dlrs_ready_wait(S.made, DEV(0), S.stream0, ERR); }
static int32_t ready_sync(void) { return dlrs_ready_sync(S.made, ERR); }
static int32_t copy_recorded(void) {
  S.options.dst_stream = S.stream0;
  return dlrs_copy(S.made, &S.out0.managed, &S.options, ERR);
}
static int32_t copy_recorded_async(void) {
  S.options.flags = DLRS_COPY_ASYNC;
  return copy_recorded();
}
static int32_t copy_into_recorded(void) {
  S.options.flags = DLRS_COPY_ASYNC;
  S.options.dst_stream = S.stream0;
  return dlrs_copy(&S.out0.managed, S.made, &S.options, ERR);
}
static void release_settled(void) {
  settle();
  release();
}

static int32_t copy_batch(void) {
  const DLManagedTensorVersioned *from[2] = {&S.host.managed, &S.dev0.managed};
  DLManagedTensorVersioned *to[2] = {&S.out0.managed, &S.target.managed};
  return dlrs_copy_batch(2, from, to, &S.options, &S.a, ERR);
}
static int batch_good(void) { return out_good() && target_good(); }
/* Both rows, which one call of CUDA's driver copies. */
static int32_t copy_rows(void) {
  static DLManagedTensorVersioned rows[2][2];
  static int64_t three[1] = {3};
  for (int i = 0; i < 4; ++i) {
    DLTensor bare = t_describe((i / 2 ? S.out0.data : S.dev0.data) + 3 * (i % 2), F32, 1, three, NULL);
    bare.device = DEV(0);
    rows[i / 2][i % 2] = t_managed(bare, 0);
  }
  const DLManagedTensorVersioned *from[2] = {&rows[0][0], &rows[0][1]};
  DLManagedTensorVersioned *to[2] = {&rows[1][0], &rows[1][1]};
  S.options.src_stream = S.options.dst_stream = S.stream0;
  return dlrs_copy_batch(2, from, to, &S.options, &S.a, ERR);
}
static int32_t copy_rows_async(void) { return async(copy_rows); }

static const scenario scenarios[] = {
    {"device_count", count, count_good, nothing, NULL, 0},
    {"copy host to device", h2d, out_good, nothing, NULL, 0},
    {"copy device to host", d2h, target_good, nothing, NULL, 0},
    {"copy on a device", d2d, out_good, nothing, NULL, 0},
    {"copy between devices", p2p, out_good, nothing, NULL, 0},
    {"copy host to device, stream", h2d_stream, out_good, nothing, NULL, 0},
    {"copy device to host, stream", d2h_stream, target_good, nothing, NULL, 0},
    {"copy on a device, stream", d2d_stream, out_good, nothing, NULL, 0},
    {"copy on a device, two streams", d2d_streams, out_good, nothing, NULL, 0},
    {"copy between devices, streams", p2p_streams, out_good, nothing, NULL, 0},
    {"copy host to device, async", h2d_async, out_later, settle, NULL, 0},
    {"copy device to host, async", d2h_async, target_later, settle, NULL, 0},
    {"copy on a device, async", d2d_async, out_later, settle, NULL, 0},
    {"copy on a device, two streams, async", d2d_streams_async, out_later, settle, NULL, 0},
    {"copy between devices, async", p2p_async, out_later, settle, NULL, 0},
    {"copy rows to a device", h2d_rows, rows_good, nothing, NULL, 0},
    {"copy columns to the host", d2h_columns, target_columns, nothing, NULL, 0},
    {"copy columns to a device", h2d_columns, out_columns, nothing, NULL, 0},
    {"copy columns on a device", d2d_columns, out_columns, nothing, NULL, 0},
    {"copy columns on a device, async", d2d_columns_async, out_columns_later, settle, NULL, 0},
    {"copy columns between devices", p2p_columns, out_columns, nothing, NULL, 0},
    {"copy columns between devices, async", p2p_columns_async, out_columns_later, settle, NULL, 0},
    {"copy rows between devices, last first", p2p_reversed, reversed_good, nothing, NULL, 0},
    {"copy wide rows between devices", p2p_rows, wide_good, nothing, NULL, 0},
    {"copy columns between devices, from a pool", p2p_pool, out_columns, nothing, NULL, 0},
    {"copy registered columns to a device", registered_columns, out_columns, nothing, NULL, 0},
    {"copy columns to pinned memory", pinned_columns, pinned_good, nothing, NULL, 0},
    {"copy reversed", d2d_reversed, reversed_good, nothing, NULL, 0},
    {"copy broadcast", d2d_broadcast, broadcast_good, nothing, NULL, 0},
    {"copy many rows to a device", rows_up, rows_up_good, nothing, with_rows, 7},
    {"copy many rows to the host", rows_down, rows_down_good, nothing, with_bytes, 7},
    {"copy bits to the host", d2h_bits, any, nothing, NULL, 0},
    {"copy bits on a device", d2d_bits, any, nothing, NULL, 0},
    {"copy pinned to device", pinned2d, out_good, nothing, NULL, 0},
    {"copy device to pinned", d2pinned, any, nothing, NULL, 0},
    {"copy managed to device", managed2d, out_good, nothing, NULL, 0},
    {"copy_batch", copy_batch, batch_good, nothing, NULL, 0},
    {"copy_batch together", copy_rows, out_good, nothing, NULL, 0},
    {"copy_batch together, async", copy_rows_async, out_later, nothing, NULL, 0},
    {"clone to a device", clone_h2d, made_good, release, NULL, 0},
    {"clone to the host", clone_d2h, made_good, release, NULL, 0},
    {"clone on a device", clone_d2d, made_good, release, NULL, 0},
    {"clone between devices", clone_p2p, made_good, release, NULL, 0},
    {"clone columns", clone_columns, made_columns, release, NULL, 0},
    {"clone columns to the host", clone_columns_d2h, made_columns, release, NULL, 0},
    {"clone on a stream", clone_stream, made_good, release, NULL, 0},
    {"clone async", clone_async, made_later, release, NULL, 0},
    {"clone to a device, async", clone_h2d_async, made_later, release, NULL, 0},
    {"clone to pinned", clone_pinned, made_good, release, NULL, 0},
    {"clone to managed", clone_managed, any, release, NULL, 0},
    {"to_device", to_device, made_good, release, NULL, 0},
    {"contiguous", contiguous, made_columns, release, NULL, 0},
    {"tensor_new", tensor_new, is_made, release, NULL, 0},
    {"tensor_new pinned", tensor_new_pinned, is_made, release, NULL, 0},
    {"mem_alloc", mem_alloc, has_memory, free_memory, NULL, 0},
    {"mem_alloc on a stream", mem_alloc_stream, has_memory, free_memory, NULL, 0},
    {"mem_alloc pinned", mem_alloc_pinned, has_memory, free_pinned, NULL, 0},
    {"mem_free", mem_free, any, free_left, with_memory, 0},
    {"pointer_device", pointer, pointer_good, nothing, NULL, 0},
    {"pointer_device of managed memory", pointer_managed, any, nothing, NULL, 0},
    {"mem_register_host", host_register, any, host_unregister, NULL, 0},
    {"mem_register_host and back", register_both, any, host_unregister, NULL, 0},
    {"stream_create", stream_create, has_handle, stream_end, NULL, 0},
    {"stream_create on another device", stream_create1, has_handle, stream_end, NULL, 0},
    {"stream_destroy", stream_destroy, any, stream_end, with_stream, 0},
    {"stream_sync", stream_sync, any, nothing, NULL, 0},
    {"stream_sync of a default stream", stream_sync_default, any, nothing, NULL, 0},
    {"stream_query", stream_query, any, nothing, NULL, 0},
    {"stream_wait", stream_wait, any, settle, NULL, 0},
    {"event_create", event_create, has_handle, event_end, NULL, 0},
    {"event_record", event_record, any, settle, NULL, 0},
    {"event_wait", event_wait, any, settle, NULL, 0},
    {"event_sync", event_sync, any, settle, NULL, 0},
    {"event_query", event_query, any, settle, NULL, 0},
    {"release_after_take", release_after, any, drain, NULL, 0},
    {"ready_record", ready_record, any, release_settled, with_own, 0},
    {"ready_record, again", ready_record, any, release_settled, with_recorded, 0},
    {"ready_wait", ready_wait, any, release_settled, with_recorded, 0},
    {"ready_sync", ready_sync, any, release_settled, with_recorded, 0},
    {"copy of what is recorded", copy_recorded, out_good, release_settled, with_recorded, 0},
    {"copy of what is recorded, async", copy_recorded_async, out_later, release_settled, with_recorded, 0},
    {"copy into what is recorded, async", copy_into_recorded, any, release_settled, with_recorded, 0},
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
  fresh();
  gpu_state before = gpu_now();
  if (it->before) it->before();
  long deleted = t_deleted;
  t_before();
  G.calls(NULL);
  G.ctl(what, k, code, NULL);
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
  if (strcmp(it->name, "release_after_take") != 0) ok &= CHECK(t_deleted == deleted);
  ok &= SAME(before);
  /* The same call succeeds now. */
  fresh();
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
  fresh();
  for (int warm = 0; warm < 2; ++warm) { /* makes what is cached after the first call */
    fresh();
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
  if (chosen->every) S.many = (unsigned char *)gpu_alloc(0, MANY * ROW);
  for (int i = 0; i < 2; ++i) { /* the library caches per-device resources, including kernels */
    WORKS(dlrs_clone(&S.host.managed, DEV(i), NULL, &there, ERR));
    WORKS(dlrs_view_transpose(there, 0, 1, &turned, ERR));
    WORKS(dlrs_clone(turned, DEV(i), NULL, &compact, ERR));
    dlrs_release(compact);
    for (int up = 0; up < 2; ++up) { /* buffers, for a copy that the driver rejects */
      G.ctl(STANDIN_FAIL, 1, 1, G.hip ? "hipMemcpyAsync" : "cuMemcpyAsync");
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
  if (argc < 2 || !gpu_open(argv[1]) || !G.standin) {
    puts("usage: faults cuda|rocm [STEP [NAME]]: with a stand-in as the driver");
    return 2;
  }
  if (argc > 2) step = atoi(argv[2]);
  printf("%d scenarios\n", SCENARIOS);
  for (int i = 0; i < SCENARIOS; ++i) {
    if (argc > 3 && strstr(scenarios[i].name, argv[3]) == NULL) continue;
    gpu_row row = {"Z09", scenarios[i].name, warm_row};
    chosen = &scenarios[i];
    gpu_run(&row);
  }
  printf("%ld points: %ld answered with their status, %ld done in another way, %ld garbage; %ld buffers left "
         "alone\n",
         points, mapped, another_way, garbled, left_alone);
  return gpu_end();
}
