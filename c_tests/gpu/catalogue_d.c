/* Section D of the catalogue of hostile inputs, and the rows of K with a device operand:
 * catalogue_d cuda|rocm [--list [ROW] | --random SECONDS]. Each row runs in a separate process (gpu.c). Copies are in
 * catalogue_copies.c, streams and contexts in catalogue_streams.c. Cases that load the library in another way are in
 * loading.c; faults.c makes driver calls fail one by one. */
#include "catalogue_d.h"

#include <sys/wait.h>
#include <unistd.h>

const float VALUES[6] = {0, 1, 2, 3, 4, 5};
gpu_tensor A, B;
t_tensor H, I;
void *S;

void set_up(void) {
  gpu_make(&A, 0);
  gpu_make(&B, 0);
  t_make(&H);
  t_make(&I);
  memset(I.values, 0, sizeof I.values);
  S = gpu_stream(0, 1);
}

long copies(void) {
  static const char *const names[] = {"cuMemcpyAsync", "cuMemcpy2DAsync_v2", "cuMemcpyPeerAsync",
                                      "cuLaunchKernel", "hipMemcpyAsync", "hipMemcpy2DAsync",
                                      "hipMemcpyPeerAsync", "hipModuleLaunchKernel"};
  long sum = 0;
  for (size_t i = 0; G.standin && i < sizeof names / sizeof *names; ++i) sum += G.calls(names[i]);
  return sum;
}

static long calls(void) { return gpu_now().stats.calls; }

/* ---- The driver and its devices -------------------------------------------------------------*/

static void d02(void) {
  int32_t n = 7;
  G.ctl(STANDIN_FAIL, 1, 34, VENDOR("Init"));
  FAILS(DLRS_DRV_STUB, 34, dlrs_device_count(G.type, &n, ERR));
  EQUAL(n, 0);
  G.ctl(STANDIN_VERSION, G.hip ? 40300000 : 10020, 0, NULL);
  FAILS(DLRS_DRV_OLD, ANY, dlrs_device_count(G.type, &n, ERR));
  CHECK(t_error.value > 0 || t_error.limit > 0);
  G.ctl(STANDIN_DEFAULTS, 0, 0, NULL);
  WORKS(dlrs_device_count(G.type, &n, ERR));
  EQUAL(n, 2);
  WORKS(dlrs_device_count(G.pinned, &n, ERR));
  EQUAL(n, 1);
}

static void d03(void) {
  static const int codes[] = {100, 3, 802, 803, 999};
  int32_t n;
  for (size_t i = 0; i < 5; ++i) {
    G.ctl(STANDIN_FAIL, 1, codes[i], VENDOR("Init"));
    FAILS(codes[i] == 100 ? DLRS_NO_DEVICE : DLRS_DRV_INIT, codes[i], dlrs_device_count(G.type, &n, ERR));
    EQUAL(n, 0);
  }
  WORKS(dlrs_device_count(G.type, &n, ERR)); /* not cached forever */
  EQUAL(n, 2);
}

static void d04(void) {
  DLManagedTensorVersioned *out;
  int64_t two = 2;
  int32_t n = gpu_count();
  void *data = NULL;
  t_result(&out);
  REJECTS(DEVICE_ID, ANY, DEVICE_ID, -1, dlrs_tensor_new(&two, 1, F32, DEV(n), NULL, &out, ERR));
  EQUAL(t_error.value, n);
  EQUAL(t_error.limit, n - 1);
  REJECTS(DEVICE_ID, ANY, DEVICE_ID, -1, dlrs_tensor_new(&two, 1, F32, DEV(-1), NULL, &out, ERR));
  REJECTS(DEVICE_ID, ANY, DEVICE_ID, ANY, dlrs_mem_alloc(DEV(n), 1000, 64, NULL, &data, ERR));
  set_up();
  A.managed.dl_tensor.device.device_id = n;
  t_watch(&I, sizeof I);
  REJECTS(DEVICE_ID, ANY, DEVICE_ID, -1, dlrs_copy(&A.managed, &I.managed, NULL, ERR));
}

static void d07(void) {
  set_up();
  gpu_make(&B, 1);
  B.managed.dl_tensor.device.device_id = 0;
  t_watch(&I, sizeof I);
  long before = copies();
  REJECTS(DEVICE_ID, ANY, DEVICE_ID, -1, dlrs_copy(&B.managed, &I.managed, NULL, ERR));
  EQUAL(copies(), before);
}

static void d08(void) {
  set_up();
  H.managed.dl_tensor.data = calloc(6, sizeof(float));
  H.managed.dl_tensor.device = DEV(0);
  t_watch(&I, sizeof I);
  t_before();
  CHECK(dlrs_copy(&H.managed, &I.managed, NULL, ERR) == DLRS_BAD_ARG);
  EQUAL(t_error.field, DLRS_FIELD_DATA);
  CHECK(I.values[5] == 0);
  free(H.managed.dl_tensor.data);
}

/* The allocation ends before the tensor does. */
static void d09(void) {
  float into[12] = {0};
  int64_t twelve = 12;
  set_up();
  DLTensor from = gpu_tensor_at(0, A.data, F32, 1, &twelve, NULL), to = t_describe(into, F32, 1, &twelve, NULL);
  t_before();
  int32_t status = dlrs_copy_desc(&from, 0, &to, 0, NULL, ERR);
  CHECK(status == DLRS_OUT_OF_BOUNDS || status == DLRS_BAD_ARG);
  for (int i = 0; i < 12; ++i) CHECK(into[i] == 0);
}

/* ---- K with device operands: the same results, before any driver call ------------------------*/

#define COPY_REJECTS(status, argument, field, dimension) \
  REFUSED(DLRS_##status, argument, DLRS_FIELD_##field, dimension, dlrs_copy(&A.managed, &B.managed, NULL, ERR))

static void d10(void) {
  static const int64_t far[] = {INT64_MAX, INT64_MIN, (int64_t)1 << 62, (int64_t)1 << 61};
  DLManagedTensorVersioned *out;
  set_up();
  WORKS(dlrs_copy(&A.managed, &B.managed, NULL, ERR)); /* starts the driver */
  DLTensor *from = &A.managed.dl_tensor, *to = &B.managed.dl_tensor;
  long before = calls();
  t_result(&out);
  t_context = "D10/K01";
  REJECTS(NULL_ARG, 1, ANY, -1, dlrs_copy(NULL, &B.managed, NULL, ERR));
  REJECTS(NULL_ARG, 2, ANY, -1, dlrs_copy(&A.managed, NULL, NULL, ERR));
  t_context = "D10/K02";
  A.shape[0] = -1;
  COPY_REJECTS(SHAPE_NEG, 1, SHAPE, 0);
  A.shape[0] = INT64_MAX;
  REJECTS(SIZE_OVERFLOW, 1, ANY, ANY, dlrs_clone(&A.managed, CPU, NULL, &out, ERR));
  A.shape[0] = 2;
  from->data = NULL;
  COPY_REJECTS(DATA_NULL, 1, DATA, -1);
  from->data = A.data;
  from->byte_offset = UINT64_MAX;
  COPY_REJECTS(OFFSET, 1, BYTE_OFFSET, -1);
  from->byte_offset = 0;
  t_context = "D12";
  for (size_t i = 0; i < 4; ++i) {
    A.strides[0] = far[i];
    COPY_REJECTS(EXTENT_OVERFLOW, 1, ANY, ANY);
  }
  A.strides[0] = 3;
  t_context = "D10/K03";
  B.managed.flags = DLPACK_FLAG_BITMASK_READ_ONLY;
  COPY_REJECTS(READ_ONLY, 2, FLAGS, -1);
  B.managed.flags = 0;
  t_context = "D10/K05";
  B.shape[1] = 2;
  COPY_REJECTS(SHAPE_MISMATCH, 2, SHAPE, 1);
  B.shape[1] = 3;
  t_context = "D10/K06";
  to->dtype = t_dtype(kDLInt, 32, 1);
  COPY_REJECTS(DTYPE_MISMATCH, 2, DTYPE_CODE, -1);
  to->dtype = F32;
  t_context = "D10/K07";
  B.strides[0] = 0;
  COPY_REJECTS(OVERLAP_DST, ANY, ANY, ANY);
  B.strides[0] = 3;
  t_context = "D10/K11";
  to->data = (char *)A.data + 4;
  COPY_REJECTS(OVERLAP_SRC_DST, ANY, ANY, ANY);
  to->data = A.data;
  t_context = "D10/K10";
  WORKS(dlrs_copy(&A.managed, &B.managed, NULL, ERR));
  to->data = B.data;
  t_context = "D10/K29";
  from->dtype = to->dtype = t_dtype(kDLOpaqueHandle, 64, 1);
  A.shape[1] = B.shape[1] = 1;
  COPY_REJECTS(UNSUPPORTED, ANY, ANY, ANY);
  EQUAL(calls(), before);
}

/* K11 with permission: the result equals that of a copy through a temporary. */
static void k11(void) {
  static const float shifted[6] = {0, 0, 1, 2, 3, 4};
  dlrs_copy_options options = gpu_options(NULL, NULL, DLRS_COPY_ALLOW_OVERLAP);
  int64_t five = 5;
  set_up();
  DLTensor from = gpu_tensor_at(0, A.data, F32, 1, &five, NULL), to = from;
  to.byte_offset = 4;
  t_before();
  int32_t status = dlrs_copy_desc(&from, 0, &to, 0, &options, ERR);
  CHECK(status == DLRS_OK || status == DLRS_UNSUPPORTED || status == DLRS_OVERLAP_SRC_DST);
  CHECK(gpu_holds(&A.managed.dl_tensor, status == DLRS_OK ? shifted : VALUES));
}

/* ---- Resources ------------------------------------------------------------------------------*/

static void d19(void) {
  DLManagedTensorVersioned *out;
  t_make(&H);
  gpu_make(&B, 1);
  WORKS(dlrs_clone(&H.managed, DEV(0), NULL, &out, ERR));
  dlrs_release(out);
  G.ctl(STANDIN_MEMORY, 0, 23, NULL);
  gpu_state before = gpu_now();
  FAILS(DLRS_DEV_OOM, 2, dlrs_clone(&H.managed, DEV(0), NULL, &out, ERR));
  CHECK(out == NULL);
  FAILS(DLRS_DEV_OOM, 2, dlrs_clone(&B.managed, DEV(0), NULL, &out, ERR));
  CHECK(out == NULL);
  SAME(before);
  CHECK(gpu_holds(&B.managed.dl_tensor, VALUES));
  WORKS(dlrs_clone(&H.managed, DEV(1), NULL, &out, ERR)); /* the other device is unaffected */
  dlrs_release(out);
  void *data = NULL; /* the driver's memory is aligned to less */
  before = gpu_now();
  FAILS(DLRS_MISALIGNED, ANY, dlrs_mem_alloc(DEV(1), 64, 1 << 20, NULL, &data, ERR));
  SAME(before);
  G.ctl(STANDIN_MEMORY, 0, 24, NULL);
  WORKS(dlrs_clone(&H.managed, DEV(0), NULL, &out, ERR));
  dlrs_release(out);
}

/* Errors of earlier work outside the library. */
static void d22(void) {
  static const int codes[] = {700, 719};
  set_up();
  for (int i = 0; i < 2; ++i) {
    WORKS(dlrs_copy(&A.managed, &I.managed, NULL, ERR));
    gpu_state before = gpu_now();
    G.ctl(STANDIN_FAIL, 1, codes[i], VENDOR("MemcpyAsync"));
    FAILS(DLRS_ASYNC_FAULT, codes[i], dlrs_copy(&A.managed, &I.managed, NULL, ERR));
    CHECK(strstr(t_error.message, "earlier") != NULL);
    SAME(before);
    WORKS(dlrs_copy(&A.managed, &I.managed, NULL, ERR));
  }
}

/* An error after the call has returned, then on every call. */
static void d23(void) {
  DLManagedTensorVersioned *there;
  set_up();
  WORKS(dlrs_clone(&A.managed, DEV(0), NULL, &there, ERR));
  dlrs_copy_options later = gpu_options(S, S, DLRS_COPY_ASYNC);
  G.ctl(STANDIN_FAULT_AFTER, 1, 700, NULL);
  WORKS(dlrs_copy(&A.managed, there, &later, ERR));
  FAILS(DLRS_ASYNC_FAULT, 700, dlrs_stream_sync(DEV(0), S, ERR));
  t_before();
  int32_t status = dlrs_copy(&A.managed, &I.managed, NULL, ERR);
  CHECK(status == DLRS_ASYNC_FAULT || status == DLRS_CTX_LOST);
  status = dlrs_copy(&A.managed, &I.managed, NULL, ERR);
  CHECK(status == DLRS_CTX_LOST);
  EQUAL(t_error.driver_code, 700);
  dlrs_release(there); /* does not abort */
  EQUAL(gpu_now().stats.depth, 0);
  gpu_make(&B, 1); /* the other device still works */
  WORKS(dlrs_copy(&B.managed, &I.managed, NULL, ERR));
  CHECK(memcmp(I.values, VALUES, sizeof VALUES) == 0);
}

/* ---- Asynchronous copies --------------------------------------------------------------------*/

static void d24(void) {
  for (long seed = 0; seed < (G.standin ? 20 : 1); ++seed) {
    DLManagedTensorVersioned *src, *dst;
    uint64_t waiting;
    if (G.standin) G.ctl(STANDIN_SEED, seed, 0, NULL);
    set_up();
    gpu_state before = gpu_now();
    dlrs_copy_options later = gpu_options(S, S, DLRS_COPY_ASYNC);
    WORKS(dlrs_clone(&H.managed, DEV(0), NULL, &src, ERR));
    WORKS(dlrs_clone(&H.managed, DEV(0), NULL, &dst, ERR));
    gpu_fill(0, S, src->dl_tensor.data, 0x40, 24);
    WORKS(dlrs_copy(src, dst, &later, ERR));
    WORKS(dlrs_release_after_take(&src, DEV(0), S, ERR));
    CHECK(src == NULL);
    WORKS(dlrs_stream_sync(DEV(0), S, ERR));
    WORKS(dlrs_release_drain(&waiting, ERR));
    EQUAL(waiting, 0);
    unsigned char got[24], want[24];
    memset(want, 0x40, 24);
    gpu_read(0, got, dst->dl_tensor.data, 24);
    CHECK(memcmp(got, want, 24) == 0);
    dlrs_release(dst);
    if (G.standin && seed) SAME(before); /* the first time makes what is kept */
  }
}

/* Resources that a stream still uses are not released before the stream reaches that point. */
static void d24_waits(void) {
  uint64_t waiting = 0;
  set_up();
  WORKS(dlrs_stream_sync(DEV(0), S, ERR));
  G.ctl(STANDIN_HANG, 1, 0, NULL);
  gpu_fill(0, S, A.data, 1, 24);
  DLManagedTensorVersioned *held = &H.managed;
  WORKS(dlrs_release_after_take(&held, DEV(0), S, ERR));
  for (int i = 0; i < 3; ++i) {
    WORKS(dlrs_release_drain(&waiting, ERR));
    EQUAL(waiting, 1);
    EQUAL(t_deleted, 0);
  }
  G.ctl(STANDIN_HANG, 0, 0, NULL);
  WORKS(dlrs_stream_sync(DEV(0), S, ERR));
  WORKS(dlrs_release_drain(&waiting, ERR));
  EQUAL(waiting, 0);
  EQUAL(t_deleted, 1);
}

/* A result that is released before its copy has completed. */
static void d25(void) {
  set_up();
  for (long seed = 0; seed < (G.standin ? 20 : 1); ++seed) {
    DLManagedTensorVersioned *out;
    dlrs_copy_options later = gpu_options(S, S, DLRS_COPY_ASYNC);
    if (G.standin) G.ctl(STANDIN_SEED, seed, 0, NULL);
    gpu_state before = gpu_now();
    WORKS(dlrs_clone(&A.managed, DEV(0), &later, &out, ERR));
    dlrs_release(out);
    EQUAL(gpu_sync(0, S), 0);
    EQUAL(gpu_now().stats.device_blocks, before.stats.device_blocks);
  }
}

/* Memory is freed while work that uses it is pending: after the work of the stream given, else of all.
 * Where the driver has pools and where not, and does not wait itself when a stream is given. */
static void d25_pending(void) {
  enum { PLAIN_MEMORY, POOL_MEMORY, PINNED_MEMORY, MEMORIES };
  for (int i = 0; i < 2; ++i) WORKS(dlrs_stream_sync(DEV(i), NULL, ERR)); /* contexts */
  void *streams[2] = {gpu_stream(0, 1), gpu_stream(1, 1)};
  for (int i = 0; i < 16 * MEMORIES; ++i) {
    int device = i & 1, named = i >> 1 & 1, pools = i >> 2 & 1, waits = !named || i >> 3 & 1, kind = i >> 4;
    DLDevice on = kind == PINNED_MEMORY ? t_device(G.pinned, 0) : DEV(device);
    void *stream = streams[device], *data = NULL;
    gpu_state before = gpu_now();
    G.ctl(STANDIN_POOLS, pools, 0, NULL);
    G.ctl(STANDIN_FREE_WAITS, waits, 0, NULL);
    WORKS(dlrs_mem_alloc(on, 64, 0, kind == POOL_MEMORY ? stream : NULL, &data, ERR));
    gpu_copy(device, stream, data, VALUES, sizeof VALUES);
    WORKS(dlrs_mem_free(on, data, 64, 0, named ? stream : NULL, ERR));
    EQUAL(gpu_sync(device, stream), 0);
    if (!SAME(before)) printf("device %d, kind %d, stream %d, pools %d\n", device, kind, named, pools);
  }
}

static void d26(void) {
  DLManagedTensorVersioned *out;
  int64_t zero = 0;
  set_up();
  DLTensor empty = gpu_tensor_at(0, NULL, F32, 1, &zero, NULL), other = empty;
  long before = copies();
  WORKS(dlrs_copy_desc(&empty, 0, &other, 0, NULL, ERR));
  other.device = CPU;
  WORKS(dlrs_copy_desc(&empty, 0, &other, 0, NULL, ERR));
  A.shape[1] = 0;
  WORKS(dlrs_clone(&A.managed, CPU, NULL, &out, ERR));
  CHECK(out->dl_tensor.data == NULL);
  dlrs_release(out);
  WORKS(dlrs_clone(&A.managed, DEV(0), NULL, &out, ERR));
  CHECK(out->dl_tensor.data == NULL && out->dl_tensor.device.device_type == (DLDeviceType)G.type);
  dlrs_release(out);
  EQUAL(copies(), before);
}

/* ---- Kinds of memory, flags -----------------------------------------------------------------*/

/* What the library reports of an address. */
static dlrs_pointer_info reported(const void *data, int32_t type, int32_t device) {
  dlrs_pointer_info info;
  memset(&info, 0, sizeof info);
  info.struct_size = sizeof info;
  WORKS(dlrs_pointer_device(G.type, data, &info, ERR));
  EQUAL(info.device.device_type, type);
  EQUAL(info.device.device_id, device);
  return info;
}

static void d28(void) {
  void *managed = gpu_room(MANAGED_HOST, 24);
  t_make(&H);
  reported(managed, G.managed ? G.managed : G.type, 0);
  reported(gpu_pinned(24), G.pinned, 0);
  reported(&H, kDLCPU, 0);
  for (int device = 0; device < gpu_count(); ++device) {
    void *there = NULL;
    WORKS(dlrs_mem_alloc(DEV(device), 1000, 64, NULL, &there, ERR));
    dlrs_pointer_info info = reported((char *)there + 10, G.type, device);
    CHECK(info.base == there);
    EQUAL(info.nbytes, 1000);
    WORKS(dlrs_mem_free(DEV(device), there, 1000, 64, NULL, ERR));
  }
}

/* New memory of each kind, and copies between all of them. */
static void d28_pairs(void) {
  t_make(&H);
  for (int i = G.managed ? MANAGED_HOST : PINNED_HOST; i <= 0; ++i) {
    for (int j = G.managed ? MANAGED_HOST : PINNED_HOST; j <= 0; ++j) {
      DLManagedTensorVersioned *one, *two, *back;
      WORKS(dlrs_clone(&H.managed, gpu_place(i), NULL, &one, ERR));
      WORKS(dlrs_clone(one, gpu_place(j), NULL, &two, ERR));
      EQUAL(two->dl_tensor.device.device_type, gpu_place(j).device_type);
      EQUAL(two->dl_tensor.device.device_id, 0);
      WORKS(dlrs_clone(two, CPU, NULL, &back, ERR));
      CHECK(memcmp(back->dl_tensor.data, VALUES, sizeof VALUES) == 0);
      dlrs_release(one);
      dlrs_release(two);
      dlrs_release(back);
    }
  }
  if (G.standin) EQUAL(gpu_now().stats.device_blocks + gpu_now().stats.managed, 0);
}

/* Registered host memory. */
static void registered(void) {
  static char memory[8192];
  WORKS(dlrs_mem_register_host(G.type, memory, sizeof memory, ERR));
  reported(memory + 100, G.pinned, 0);
  FAILS(DLRS_BAD_ARG, 712, dlrs_mem_register_host(G.type, memory, sizeof memory, ERR));
  WORKS(dlrs_mem_unregister_host(G.type, memory, ERR));
  FAILS(DLRS_BAD_ARG, 713, dlrs_mem_unregister_host(G.type, memory, ERR));
  REJECTS(NULL_ARG, 2, ANY, -1, dlrs_mem_register_host(G.type, NULL, 8, ERR));
}

static void d29(void) {
  DLManagedTensorVersioned *out;
  t_make(&H);
  gpu_set_current(0, 0);
  WORKS(dlrs_clone(&H.managed, DEV(1), NULL, &out, ERR));
  dlrs_release(out); /* a stand-in counts frees with the wrong device current */
  WORKS(dlrs_clone(&H.managed, DEV(0), NULL, &out, ERR));
  gpu_set_current(1, 0);
  dlrs_release(out);
  if (G.standin) EQUAL(gpu_now().stats.device_blocks, 0);
}

static void d30(void) {
  static const float transposed[6] = {0, 3, 1, 4, 2, 5};
  DLManagedTensorVersioned *out, *again;
  int last = gpu_count() - 1;
  set_up();
  A.managed.flags = DLPACK_FLAG_BITMASK_READ_ONLY;
  A.shape[0] = 3, A.shape[1] = 2;
  A.strides[0] = 1, A.strides[1] = 3;
  WORKS(dlrs_clone(&A.managed, DEV(last), NULL, &out, ERR));
  EQUAL(out->flags, DLPACK_FLAG_BITMASK_IS_COPIED);
  EQUAL(out->dl_tensor.device.device_type, G.type);
  EQUAL(out->dl_tensor.device.device_id, last);
  EQUAL(out->dl_tensor.strides[0], 2);
  EQUAL(out->dl_tensor.strides[1], 1);
  EQUAL(out->dl_tensor.byte_offset, 0);
  EQUAL((uintptr_t)out->dl_tensor.data % 256, 0);
  EQUAL(out->version.major, 1);
  CHECK(gpu_holds(&out->dl_tensor, transposed));
  for (int copy = 0; copy < 2; ++copy) { /* it is already on the device */
    WORKS(dlrs_to_device(out, DEV(last), copy, NULL, &again, ERR));
    CHECK((again->dl_tensor.data == out->dl_tensor.data) == !copy);
    dlrs_release(again);
  }
  dlrs_release(out);
}

static void d31(void) {
  int32_t n = 5;
  DLManagedTensorVersioned *out;
  int64_t two = 2;
  G.ctl(STANDIN_DEVICES, 0, 0, NULL);
  FAILS(DLRS_NO_DEVICE, ANY, dlrs_device_count(G.type, &n, ERR));
  EQUAL(n, 0);
  FAILS(DLRS_NO_DEVICE, ANY, dlrs_tensor_new(&two, 1, F32, DEV(0), NULL, &out, ERR));
  CHECK(out == NULL);
  G.ctl(STANDIN_DEVICES, 1, 0, NULL);
  WORKS(dlrs_device_count(G.type, &n, ERR));
  EQUAL(n, 1);
}

/* ---- The process ----------------------------------------------------------------------------*/

static void d32(void) {
  DLManagedTensorVersioned *there, *out;
  int status;
  set_up();
  WORKS(dlrs_clone(&H.managed, DEV(0), NULL, &there, ERR));
  WORKS(dlrs_ready_record(there, S, ERR));
  fflush(stdout);
  pid_t child = fork();
  if (child == 0) {
    long before = calls();
    int32_t n, bad = 0;
    void *data = NULL;
    bad |= dlrs_device_count(G.type, &n, ERR) != DLRS_FORKED;
    bad |= (dlrs_clone(&H.managed, DEV(0), NULL, &out, ERR) != DLRS_FORKED) << 1;
    bad |= (dlrs_copy(there, &H.managed, NULL, ERR) != DLRS_FORKED) << 2;
    bad |= (dlrs_clone(&H.managed, CPU, NULL, &out, ERR) != DLRS_OK) << 3;
    bad |= (dlrs_mem_alloc(DEV(0), 1000, 64, NULL, &data, ERR) != DLRS_FORKED) << 5;
    bad |= (dlrs_ready_record(there, S, ERR) != DLRS_FORKED) << 6;
    bad |= (dlrs_ready_wait(there, DEV(0), S, ERR) != DLRS_FORKED) << 7;
    bad |= dlrs_ready_sync(there, ERR) != DLRS_FORKED;
    dlrs_release(out);
    dlrs_release(there); /* leaks quietly */
    bad |= (calls() != before) << 4;
    _exit(bad);
  }
  waitpid(child, &status, 0);
  EQUAL(status, 0);
  WORKS(dlrs_ready_sync(there, ERR));
  WORKS(dlrs_copy(there, &H.managed, NULL, ERR));
  dlrs_release(there);
}

static DLManagedTensorVersioned *left;

/* Runs after the row has ended; the exit status reports whether the state is as expected. */
static void at_exit(void) {
  if (G.standin) G.ctl(STANDIN_EXITING, 1, 0, NULL);
  int32_t status = dlrs_copy(left, &H.managed, NULL, NULL);
  int32_t record = dlrs_ready_record(left, S, NULL), sync = dlrs_ready_sync(left, NULL);
  dlrs_release(left);
  int all = status == DLRS_SHUTDOWN && record == DLRS_SHUTDOWN && sync == DLRS_SHUTDOWN;
  _exit(!G.standin || all ? 0 : 43);
}

static void d33(void) {
  set_up();
  WORKS(dlrs_clone(&H.managed, DEV(0), NULL, &left, ERR));
  WORKS(dlrs_ready_record(left, S, ERR));
  atexit(at_exit);
}

static void z14(void) {
  set_up();
  WORKS(dlrs_copy(&A.managed, &I.managed, NULL, ERR));
  G.ctl(STANDIN_CTX_LOST, 0, 709, NULL);
  FAILS(DLRS_CTX_LOST, 709, dlrs_copy(&A.managed, &I.managed, NULL, ERR));
  EQUAL(gpu_now().stats.depth, 0);
}

static const gpu_row rows[] = {
    {"D02", "stub, old driver", d02, STANDIN},
    {"D03", "the driver does not start, and later does", d03, STANDIN},
    {"D04", "device_id out of range", d04, 0},
    {"D07", "pointer of another device", d07, TWO_DEVICES},
    {"D08", "pointer of the host's heap", d08, 0},
    {"D09", "extent leaves the allocation", d09, STANDIN},
    {"D10", "K01-K07, K10, K11, K29 on the device, and D12: extents that overflow", d10, 0},
    {"K11", "overlap with permission, on the device", k11, 0},
    {"D19", "out of device memory", d19, STANDIN},
    {"D22", "error of earlier work", d22, STANDIN},
    {"D23", "error after the call", d23, STANDIN},
    {"D24", "source kept alive", d24, 0},
    {"D24", "nothing is released early", d24_waits, STANDIN},
    {"D25", "result released early", d25, 0},
    {"D25", "freed while work is pending", d25_pending, STANDIN},
    {"D26", "size 0", d26, 0},
    {"D28", "managed and pinned memory", d28, 0},
    {"D28", "all pairs of kinds of memory", d28_pairs, 0},
    {"D29", "freed on its own device", d29, TWO_DEVICES},
    {"D30", "flags and layout of a copy", d30, 0},
    {"D31", "no device", d31, STANDIN},
    {"D32", "after fork", d32, 0},
    {"D33", "during exit", d33, 0},
    {"Z14", "context destroyed by somebody else", z14, STANDIN},
    {"-", "registered memory", registered, 0},
};

int main(int argc, char **argv) {
  gpu_begin(argc, argv);
  if (argc > 3 && strcmp(argv[2], "--random") == 0) {
    random_copies(atoi(argv[3]));
    return gpu_end();
  }
  const char *id = argc > 3 ? argv[3] : NULL;
  gpu_run_all(rows, sizeof rows / sizeof *rows, id, argc > 2);
  gpu_run_all(copy_rows, copy_rows_n, id, argc > 2);
  gpu_run_all(stream_rows, stream_rows_n, id, argc > 2);
  return gpu_end();
}
