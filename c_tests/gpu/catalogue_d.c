/* Section D of the catalogue of hostile inputs, and the rows of K with a device operand:
 * catalogue_d cuda|rocm [--list [ROW] | --random SECONDS]. Each row runs in a separate process (gpu.c). Cases that load the
 * library in another way are in loading.c; faults.c makes driver calls fail one by one. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <dlfcn.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include "gpu.h"
#include "../by_bit.h"
#include "../scattered.h"

static const float VALUES[6] = {0, 1, 2, 3, 4, 5};

/* Copies requested from the driver so far. */
static long copies(void) {
  static const char *const names[] = {"cuMemcpyAsync", "cuMemcpy2DAsync_v2", "cuMemcpyPeerAsync",
                                      "cuLaunchKernel", "hipMemcpyAsync", "hipMemcpy2DAsync",
                                      "hipMemcpyPeerAsync", "hipModuleLaunchKernel"};
  long sum = 0;
  for (size_t i = 0; i < sizeof names / sizeof *names; ++i) sum += G.calls(names[i]);
  return sum;
}

#define LOADS (G.hip ? "hipModuleLoadData" : "cuModuleLoadData")
#define LAUNCHES (G.hip ? "hipModuleLaunchKernel" : "cuLaunchKernel")

static long calls(void) { return gpu_now().stats.calls; }

/* ---- The driver and its devices -------------------------------------------------------------*/

static void d02(void) {
  int32_t n = 7;
  NEEDS_STANDIN();
  G.ctl(STANDIN_FAIL, 1, 34, G.hip ? "hipInit" : "cuInit");
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
  NEEDS_STANDIN();
  for (size_t i = 0; i < 5; ++i) {
    G.ctl(STANDIN_FAIL, 1, codes[i], G.hip ? "hipInit" : "cuInit");
    FAILS(codes[i] == 100 ? DLRS_NO_DEVICE : DLRS_DRV_INIT, codes[i],
          dlrs_device_count(G.type, &n, ERR));
    EQUAL(n, 0);
  }
  WORKS(dlrs_device_count(G.type, &n, ERR)); /* not cached forever */
  EQUAL(n, 2);
}

static void d04(void) {
  DLManagedTensorVersioned *out;
  int64_t two = 2;
  int32_t n = gpu_count();
  t_result(&out);
  REFUSED(DLRS_DEVICE_ID, ANY, DLRS_FIELD_DEVICE_ID, -1,
          dlrs_tensor_new(&two, 1, F32, DEV(n), NULL, &out, ERR));
  EQUAL(t_error.value, n);
  EQUAL(t_error.limit, n - 1);
  REFUSED(DLRS_DEVICE_ID, ANY, DLRS_FIELD_DEVICE_ID, -1,
          dlrs_tensor_new(&two, 1, F32, DEV(-1), NULL, &out, ERR));
  void *data = NULL;
  REFUSED(DLRS_DEVICE_ID, ANY, DLRS_FIELD_DEVICE_ID, ANY, dlrs_mem_alloc(DEV(n), 1000, 64, NULL, &data, ERR));
  gpu_tensor src;
  t_tensor dst;
  gpu_make(&src, 0);
  t_make(&dst);
  src.managed.dl_tensor.device.device_id = n;
  t_watch(&dst, sizeof dst);
  REFUSED(DLRS_DEVICE_ID, ANY, DLRS_FIELD_DEVICE_ID, -1,
          dlrs_copy(&src.managed, &dst.managed, NULL, ERR));
  gpu_drop(&src);
}

static void d07(void) {
  gpu_tensor src;
  t_tensor dst;
  if (gpu_count() < 2) {
    gpu_left_out = 1;
    return;
  }
  gpu_make(&src, 1);
  t_make(&dst);
  memset(dst.values, 0, sizeof dst.values);
  src.managed.dl_tensor.device.device_id = 0;
  t_watch(&dst, sizeof dst);
  long before = G.standin ? copies() : 0;
  REFUSED(DLRS_DEVICE_ID, ANY, DLRS_FIELD_DEVICE_ID, -1,
          dlrs_copy(&src.managed, &dst.managed, NULL, ERR));
  if (G.standin) EQUAL(copies(), before);
  gpu_drop(&src);
}

static void d08(void) {
  t_tensor src, dst;
  t_make(&src);
  t_make(&dst);
  memset(dst.values, 0, sizeof dst.values);
  float *heap = (float *)calloc(6, sizeof *heap);
  src.managed.dl_tensor.data = heap;
  src.managed.dl_tensor.device = DEV(0);
  t_watch(&dst, sizeof dst);
  t_before();
  int32_t status = dlrs_copy(&src.managed, &dst.managed, NULL, ERR);
  CHECK(status == DLRS_BAD_ARG);
  EQUAL(t_error.field, DLRS_FIELD_DATA);
  CHECK(dst.values[5] == 0);
  free(heap);
}

/* The allocation ends before the tensor does. */
static void d09(void) {
  gpu_tensor src;
  float into[12] = {0};
  int64_t twelve = 12;
  NEEDS_STANDIN();
  gpu_make(&src, 0);
  DLTensor from = src.managed.dl_tensor, to = t_describe(into, F32, 1, &twelve, NULL);
  from.ndim = 1;
  from.shape = &twelve;
  from.strides = NULL;
  t_before();
  int32_t status = dlrs_copy_desc(&from, 0, &to, 0, NULL, ERR);
  CHECK(status == DLRS_OUT_OF_BOUNDS || status == DLRS_BAD_ARG);
  for (int i = 0; i < 12; ++i) CHECK(into[i] == 0);
  gpu_drop(&src);
}

/* ---- K with device operands: the same results, before any driver call ------------------------*/

static void d10(void) {
  gpu_tensor src, dst;
  DLManagedTensorVersioned *out;
  gpu_make(&src, 0);
  gpu_make(&dst, 0);
  WORKS(dlrs_copy(&src.managed, &dst.managed, NULL, ERR)); /* starts the driver */
  DLTensor *from = &src.managed.dl_tensor, *to = &dst.managed.dl_tensor;
  long before = G.standin ? calls() : 0;
  t_result(&out);
  t_context = "D10/K01";
  REFUSED(DLRS_NULL_ARG, 1, ANY, -1, dlrs_copy(NULL, &dst.managed, NULL, ERR));
  REFUSED(DLRS_NULL_ARG, 2, ANY, -1, dlrs_copy(&src.managed, NULL, NULL, ERR));
  t_context = "D10/K02";
  src.shape[0] = -1;
  REFUSED(DLRS_SHAPE_NEG, 1, DLRS_FIELD_SHAPE, 0, dlrs_copy(&src.managed, &dst.managed, NULL, ERR));
  src.shape[0] = INT64_MAX;
  REFUSED(DLRS_SIZE_OVERFLOW, 1, ANY, ANY, dlrs_clone(&src.managed, CPU, NULL, &out, ERR));
  src.shape[0] = 2;
  from->data = NULL;
  REFUSED(DLRS_DATA_NULL, 1, DLRS_FIELD_DATA, -1, dlrs_copy(&src.managed, &dst.managed, NULL, ERR));
  from->data = src.data;
  from->byte_offset = UINT64_MAX;
  REFUSED(DLRS_OFFSET, 1, DLRS_FIELD_BYTE_OFFSET, -1,
          dlrs_copy(&src.managed, &dst.managed, NULL, ERR));
  from->byte_offset = 0;
  t_context = "D10/K03";
  dst.managed.flags = DLPACK_FLAG_BITMASK_READ_ONLY;
  REFUSED(DLRS_READ_ONLY, 2, DLRS_FIELD_FLAGS, -1, dlrs_copy(&src.managed, &dst.managed, NULL, ERR));
  dst.managed.flags = 0;
  t_context = "D10/K05";
  dst.shape[1] = 2;
  REFUSED(DLRS_SHAPE_MISMATCH, 2, DLRS_FIELD_SHAPE, 1,
          dlrs_copy(&src.managed, &dst.managed, NULL, ERR));
  dst.shape[1] = 3;
  t_context = "D10/K06";
  to->dtype = t_dtype(kDLInt, 32, 1);
  REFUSED(DLRS_DTYPE_MISMATCH, 2, DLRS_FIELD_DTYPE_CODE, -1,
          dlrs_copy(&src.managed, &dst.managed, NULL, ERR));
  to->dtype = F32;
  t_context = "D10/K07";
  dst.strides[0] = 0;
  REFUSED(DLRS_OVERLAP_DST, ANY, ANY, ANY, dlrs_copy(&src.managed, &dst.managed, NULL, ERR));
  dst.strides[0] = 3;
  t_context = "D10/K11";
  to->data = (char *)src.data + 4;
  REFUSED(DLRS_OVERLAP_SRC_DST, ANY, ANY, ANY, dlrs_copy(&src.managed, &dst.managed, NULL, ERR));
  to->data = src.data;
  t_context = "D10/K10";
  WORKS(dlrs_copy(&src.managed, &dst.managed, NULL, ERR));
  to->data = dst.data;
  t_context = "D10/K29";
  from->dtype = to->dtype = t_dtype(kDLOpaqueHandle, 64, 1);
  src.shape[1] = dst.shape[1] = 1;
  REFUSED(DLRS_UNSUPPORTED, ANY, ANY, ANY, dlrs_copy(&src.managed, &dst.managed, NULL, ERR));
  if (G.standin) EQUAL(calls(), before);
  gpu_drop(&src);
  gpu_drop(&dst);
}

/* K11 with permission: the result equals that of a copy through a temporary. */
static void k11(void) {
  gpu_tensor src;
  float got[6];
  dlrs_copy_options options = gpu_options(NULL, NULL, DLRS_COPY_ALLOW_OVERLAP);
  int64_t five = 5, one = 1;
  gpu_make(&src, 0);
  DLTensor from = src.managed.dl_tensor, to;
  from.ndim = 1;
  from.shape = &five;
  from.strides = &one;
  to = from;
  to.byte_offset = 4;
  t_before();
  int32_t status = dlrs_copy_desc(&from, 0, &to, 0, &options, ERR);
  if (status == DLRS_OK) {
    static const float shifted[6] = {0, 0, 1, 2, 3, 4};
    gpu_read(0, got, src.data, sizeof got);
    CHECK(memcmp(got, shifted, sizeof got) == 0);
  } else {
    CHECK(status == DLRS_UNSUPPORTED || status == DLRS_OVERLAP_SRC_DST);
    gpu_read(0, got, src.data, sizeof got);
    CHECK(memcmp(got, VALUES, sizeof got) == 0);
  }
  gpu_drop(&src);
}

/* ---- Layouts --------------------------------------------------------------------------------*/

enum { ROOM = 1 << 14 };
typedef struct layout {
  int64_t strides[6];
  uint64_t byte_offset;
} layout;

static int arrange(layout *it, int ndim, const int64_t *shape, int64_t bits, int is_source) {
  return scattered(ndim, shape, bits, is_source, ROOM, it->strides, &it->byte_offset);
}

static void fill(unsigned char *bytes) {
  for (int i = 0; i < ROOM; ++i) bytes[i] = (unsigned char)below(256);
}

/* Places: a device's memory, or the host's: plain, pinned, managed. */
enum { PLAIN_HOST = -1, PINNED_HOST = -2, MANAGED_HOST = -3 };

static void *room(int place, size_t nbytes) {
  if (place >= 0) return gpu_alloc(place, nbytes);
  return place == PLAIN_HOST ? malloc(nbytes) : place == PINNED_HOST ? gpu_pinned(nbytes) : gpu_managed(0, nbytes);
}

static void leave(int place, void *data) {
  if (place >= 0) gpu_free(place, data);
  else if (place == PLAIN_HOST) free(data);
  else if (place == PINNED_HOST) gpu_pinned_free(data);
  else gpu_managed_free(0, data);
}

static void put(int place, void *dst, const void *src, size_t nbytes) {
  if (place >= 0) gpu_write(place, dst, src, nbytes);
  else memcpy(dst, src, nbytes);
}

static void get(int place, void *dst, const void *src, size_t nbytes) {
  if (place >= 0) gpu_read(place, dst, src, nbytes);
  else memcpy(dst, src, nbytes);
}

static DLDevice device_at(int place) {
  if (place >= 0) return DEV(place);
  return place == PLAIN_HOST ? CPU : t_device(place == PINNED_HOST ? G.pinned : G.managed, 0);
}

/* Between two places, all kinds of elements and strides, with surrounding bytes. */
static void layouts(int from, int to, int rounds) {
  static unsigned char seed[ROOM], want[ROOM], got[ROOM];
  static const int widths[] = {8, 16, 32, 64, 128, 24, 96, 4, 6, 800};
  unsigned char *src = (unsigned char *)room(from, ROOM), *dst = (unsigned char *)room(to, ROOM);
  while (rounds-- > 0) {
    int bits = widths[below(10)], ndim = (int)below(6), i;
    DLDataType dtype = bits == 4   ? t_dtype(kDLFloat4_e2m1fn, 4, 1)
                       : bits == 6 ? t_dtype(kDLFloat6_e2m3fn, 6, 1)
                                   : t_dtype(kDLUInt, 8, bits / 8);
    int64_t shape[6];
    layout a, b;
    for (i = 0; i < ndim; ++i) shape[i] = below(below(4) ? 6 : 40) + (below(20) != 0);
    if (!arrange(&a, ndim, shape, bits, 1) || !arrange(&b, ndim, shape, bits, 0)) continue;
    fill(seed);
    fill(want);
    put(from, src, seed, ROOM);
    put(to, dst, want, ROOM);
    DLTensor one = t_describe(src, dtype, ndim, shape, a.strides), other = t_describe(dst, dtype, ndim, shape, b.strides);
    one.byte_offset = a.byte_offset;
    other.byte_offset = b.byte_offset;
    one.device = device_at(from);
    other.device = device_at(to);
    copy_by_bit(ndim, shape, bits, seed, (int64_t)a.byte_offset * 8, a.strides, want,
                (int64_t)b.byte_offset * 8, b.strides);
    if (!WORKS(dlrs_copy_desc(&one, 0, &other, 0, NULL, ERR))) continue;
    get(to, got, dst, ROOM);
    if (!CHECK(memcmp(got, want, ROOM) == 0)) {
      printf("bits %d, ndim %d, from %d to %d:", bits, ndim, from, to);
      for (i = 0; i < ndim; ++i) {
        printf(" %lld/%lld/%lld", (long long)shape[i], (long long)a.strides[i], (long long)b.strides[i]);
      }
      puts("");
    }
  }
  leave(from, src);
  leave(to, dst);
}

/* Transposes that fill tiles, images of a few channels, and enough bytes for several threads and
 * pieces: `planes` images of rows x columns elements are transposed, rows `gap` elements longer
 * than needed on both sides. */
static void face(int from, int to, int bytes, int64_t planes, int64_t rows, int64_t columns, int64_t gap) {
  int64_t pitch = columns + gap, turned = rows + gap, i, j, k;
  size_t n = (size_t)(planes * (rows + gap) * (columns + gap) * bytes);
  unsigned char *seed = (unsigned char *)malloc(n), *want = (unsigned char *)malloc(n);
  unsigned char *src = (unsigned char *)room(from, n), *dst = (unsigned char *)room(to, n), *got = (unsigned char *)malloc(n);
  for (size_t at = 0; at < n; ++at) seed[at] = (unsigned char)(at * 2654435761u >> 13);
  memset(want, 0xEE, n);
  for (k = 0; k < planes; ++k) {
    for (i = 0; i < rows; ++i) {
      for (j = 0; j < columns; ++j) {
        memcpy(want + ((k * columns + j) * turned + i) * bytes, seed + ((k * rows + i) * pitch + j) * bytes, (size_t)bytes);
      }
    }
  }
  put(to, dst, want, n);
  int64_t shape[3] = {planes, columns, rows}, strides[3] = {rows * pitch, 1, pitch};
  int64_t back[3] = {columns * turned, turned, 1};
  DLDataType dtype = t_dtype(kDLUInt, 8, (uint16_t)bytes);
  DLTensor one = t_describe(src, dtype, 3, shape, strides), other = t_describe(dst, dtype, 3, shape, back);
  put(from, src, seed, n);
  one.device = device_at(from);
  other.device = device_at(to);
  WORKS(dlrs_copy_desc(&one, 0, &other, 0, NULL, ERR));
  get(to, got, dst, n);
  if (!CHECK(memcmp(got, want, n) == 0)) {
    printf("%d bytes, %lld x %lld x %lld, gap %lld, from %d to %d\n", bytes, (long long)planes,
           (long long)rows, (long long)columns, (long long)gap, from, to);
  }
  leave(from, src);
  leave(to, dst);
  free(seed), free(want), free(got);
}

static void d11_faces(void) {
  static const int64_t shapes[][3] = {{2, 300, 170}, {1, 256, 256}, {3, 700, 3}, {2, 3, 1500}, {1, 5, 300}, {1, 130, 7}};
  for (size_t i = 0; i < sizeof shapes / sizeof *shapes; ++i) {
    for (int bytes = 1; bytes <= 16; bytes *= 2) {
      for (int gap = 0; gap < 2; ++gap) face(0, 0, bytes, shapes[i][0], shapes[i][1], shapes[i][2], gap);
    }
  }
  for (int gap = 0; gap < 2; ++gap) {
    face(-1, 0, 4, 1, 1500, 1500, gap);
    face(0, -1, 4, 1, 1500, 1500, gap);
    face(-1, 0, 4, 1, 2200000, 1, gap);
    face(0, -1, 4, 1, 1, 2200000, gap);
  }
}

/* Copies of all sizes between all places, with the CPU as the oracle, for so many seconds. */
static int random_seconds;

static void d11_random(void) {
  int first = G.managed ? MANAGED_HOST : PINNED_HOST, places = gpu_count() - first;
  for (time_t end = time(NULL) + random_seconds; time(NULL) < end;) {
    int from = first + (int)below(places), to = first + (int)below(places), most = G.standin ? 9 : 12;
    layouts(from, to, 5);
    face(from, to, 1 << below(5), 1 + below(3), 1 + below(1 << below(most)), 1 + below(1 << below(most)), below(3));
  }
}

static int ran;

static int pool(void *context, size_t n, void (*body)(void *, size_t), void *body_context) {
  ran += (int)n;
  if (context == NULL) return 1; /* not supported */
  for (size_t i = n; i-- > 0;) body(body_context, i);
  return 0;
}

/* The number of host threads is the one in the options, through pinned buffers too. */
static void d11_threads(void) {
  enum { ROWS = 4000, COLUMNS = 2200 };
  int64_t shape[] = {ROWS, COLUMNS}, across[] = {1, ROWS}, down[] = {COLUMNS, 1};
  unsigned char *bytes = (unsigned char *)malloc(ROWS * COLUMNS), *got = (unsigned char *)malloc(ROWS * COLUMNS);
  unsigned char *pageable = (unsigned char *)malloc(ROWS * COLUMNS);
  void *data = gpu_alloc(0, ROWS * COLUMNS);
  for (int i = 0; i < ROWS * COLUMNS; ++i) bytes[i] = (unsigned char)(i * 2654435761u >> 13);
  for (int turn = 0; turn < 4; ++turn) {
    dlrs_copy_options options = gpu_options(NULL, NULL, 0);
    DLTensor src = {pageable, {kDLCPU, 0}, 2, U8, shape, across, 0}, back = {got, {kDLCPU, 0}, 2, U8, shape, across, 0};
    DLTensor there = {data, DEV(0), 2, U8, shape, down, 0};
    options.threads = turn == 0;
    if (turn > 1) options.parallel_for = pool;
    if (turn == 3) options.parallel_context = &ran;
    memset(got, 0, ROWS * COLUMNS);
    ran = 0;
    inject_threads(1);
    options.flags = turn % 2 ? DLRS_COPY_ASYNC : 0;
    memcpy(pageable, bytes, ROWS * COLUMNS);
    WORKS(dlrs_copy_desc(&src, 0, &there, 0, &options, ERR));
    memset(pageable, 0, ROWS * COLUMNS); /* which is the caller's again */
    WORKS(dlrs_copy_desc(&there, 0, &back, 0, &options, ERR));
    if (turn % 2) WORKS(dlrs_stream_sync(DEV(0), NULL, ERR));
    long refused = inject_threads(0);
    CHECK(memcmp(bytes, got, ROWS * COLUMNS) == 0);
    if (turn == 1) CHECK(refused > 0 || !inject_works());
    else if (G.standin) EQUAL(refused, 0); /* a driver may start threads */
    if (turn > 1) CHECK(ran >= 8);
  }
  gpu_free(0, data);
  free(bytes), free(got), free(pageable);
}

static void d11(void) {
  int last = gpu_count() - 1, first = G.managed ? MANAGED_HOST : PINNED_HOST;
  for (int seed = 0; seed < (G.standin ? 4 : 1); ++seed) {
    if (G.standin) G.ctl(STANDIN_SEED, seed, 0, NULL);
    for (int from = first; from <= last; ++from) {
      for (int to = first; to <= last; ++to) layouts(from, to, from >= PLAIN_HOST && to >= PLAIN_HOST ? 60 : 20);
    }
  }
}

/* Many dimensions, none of which can be merged: a single launch. */
static void d11_many(void) {
  enum { NDIM = 16, NBYTES = 1 << NDIM };
  static unsigned char bytes[NBYTES], got[NBYTES];
  int64_t shape[NDIM], up[NDIM], down[NDIM];
  for (int i = 0; i < NDIM; ++i) {
    shape[i] = 2;
    up[i] = (int64_t)1 << i;
    down[i] = NBYTES / 2 >> i;
  }
  for (int i = 0; i < NBYTES; ++i) bytes[i] = (unsigned char)below(256);
  void *src = gpu_alloc(0, NBYTES), *dst = gpu_alloc(0, NBYTES);
  gpu_write(0, src, bytes, NBYTES);
  DLTensor from = {src, DEV(0), NDIM, U8, shape, up, 0}, to = {dst, DEV(0), NDIM, U8, shape, down, 0};
  long launches = G.standin ? G.calls(LAUNCHES) : 0;
  WORKS(dlrs_copy_desc(&from, 0, &to, 0, NULL, ERR));
  if (G.standin) EQUAL(G.calls(LAUNCHES) - launches, 1);
  gpu_read(0, got, dst, NBYTES);
  int wrong = 0;
  for (int at = 0; at < NBYTES; ++at) {
    int turned = 0;
    for (int i = 0; i < NDIM; ++i) turned |= (at >> i & 1) << (NDIM - 1 - i);
    wrong += bytes[at] != got[turned];
  }
  EQUAL(wrong, 0);
  gpu_free(0, src);
  gpu_free(0, dst);
}

/* The pieces of a copy through the pinned buffers are of 2 MiB, and of an eighth where the bus would be
 * idle: one per thread at the start of a copy to the device, and at the end of one from it. The last
 * piece is small enough for one part. */
static int one_by_one(void *context, size_t n, void (*body)(void *, size_t), void *of) {
  *(size_t *)context = n;
  for (size_t i = 0; i < n; ++i) body(of, i);
  return 0;
}

static void d11_pieces(void) {
  enum { ROWS = 7 * 512 + 64, COLUMNS = 4096 };
  const char *copy = G.hip ? "hipMemcpyAsync" : "cuMemcpyAsync";
  int64_t n = ROWS * COLUMNS;
  NEEDS_STANDIN();
  unsigned char *host = (unsigned char *)malloc((size_t)n), *there = (unsigned char *)gpu_alloc(0, (size_t)n);
  for (int up = 0; up < 2; ++up) {
    for (int threads = 1; threads < 5; ++threads) {
      size_t ran = 1;
      DLTensor a = t_describe(host, U8, 1, &n, NULL), b = t_describe(there, U8, 1, &n, NULL);
      b.device = DEV(0);
      dlrs_copy_options options = gpu_options(NULL, NULL, 0);
      options.threads = (uint32_t)threads;
      options.parallel_for = one_by_one;
      options.parallel_context = &ran;
      G.calls(NULL);
      WORKS(dlrs_copy_desc(up ? &a : &b, 0, up ? &b : &a, 0, &options, ERR));
      EQUAL(ran, threads);
      EQUAL(G.calls(copy), 8 + (threads == 1 ? 0 : 7 * (up ? threads : threads - 1)));
    }
  }
  free(host);
  gpu_free(0, there);
}

/* The same without kernels: no module can be loaded, so the copy uses another method. */
static void d11_no_kernels(void) {
  NEEDS_STANDIN();
  G.ctl(STANDIN_FAIL_ALWAYS, 1, 209, G.hip ? "hipModuleLoadData" : "cuModuleLoadData");
  layouts(-1, 0, 60);
  layouts(0, -1, 60);
  layouts(0, 0, 60);
  layouts(1, 0, 60);
  gpu_tensor src, dst;
  char text[256];
  gpu_make(&src, 0);
  gpu_make(&dst, 0);
  src.strides[0] = 1;
  src.strides[1] = 2;
  WORKS(dlrs_copy(&src.managed, &dst.managed, NULL, ERR));
  WORKS(dlrs_copy_explain(&src.managed.dl_tensor, 0, &dst.managed.dl_tensor, 0, NULL, text, sizeof text, NULL, ERR));
  CHECK(strstr(text, "without kernels, which the driver has rejected") != NULL);
  gpu_drop(&src);
  gpu_drop(&dst);
}

/* After the driver rejects the kernels, loading is tried once per family and device. */
static void d11_asked_once(void) {
  static const char *const compiles = "hiprtcCompileProgram";
  NEEDS_STANDIN();
  for (int device = 0; device < 2; ++device) {
    G.ctl(STANDIN_FAIL_ALWAYS, 1, 209, LOADS);
    long before = G.calls(LOADS), compiled = G.calls(compiles);
    for (int i = 0; i < 5; ++i) face(device, device, 4, 1, 100, 40, 1);
    EQUAL(G.calls(LOADS) - before, 1);
    if (G.hip) EQUAL(G.calls(compiles) - compiled, 1);
    face(device, device, 2, 3, 700, 3, 1); /* another family */
    EQUAL(G.calls(LOADS) - before, 2);
  }
}

/* A program that cannot be compiled is destroyed. */
static void d11_not_compiled(void) {
  static const char *const calls[] = {"hiprtcCompileProgram", "hiprtcGetCode"};
  NEEDS_STANDIN();
  for (int i = 0; G.hip && i < 2; ++i) {
    G.ctl(STANDIN_FAIL_ALWAYS, 1, 6, calls[i]);
    face(i, i, 4, 1, 100, 40, 1);
    EQUAL(gpu_now().stats.modules, 0);
  }
}

/* A failure that may be temporary is not cached. */
static void d11_asked_again(void) {
  NEEDS_STANDIN();
  G.ctl(STANDIN_FAIL, 1, 2, LOADS);
  long launches = G.calls(LAUNCHES);
  gpu_tensor src, dst;
  gpu_make(&src, 0);
  gpu_make(&dst, 0);
  src.strides[0] = 1;
  src.strides[1] = 2;
  CHECK(dlrs_copy(&src.managed, &dst.managed, NULL, ERR) != DLRS_OK);
  WORKS(dlrs_copy(&src.managed, &dst.managed, NULL, ERR));
  EQUAL(G.calls(LAUNCHES) - launches, 1);
  gpu_drop(&src);
  gpu_drop(&dst);
}

/* The first copy of a kind loads its family of kernels, the second loads nothing. */
static void d11_families(void) {
  static const int64_t shapes[5][3] = {{1, 100, 40}, {1, 20, 20}, {2, 700, 3}, {2, 3, 1500}, {1, 9, 3}};
  static const int loads[5] = {1, 2, 3, 3, 4};
  NEEDS_STANDIN();
  for (int i = 0; i < 5; ++i) {
    for (int again = 0; again < 2; ++again) {
      face(0, 0, 8, shapes[i][0], shapes[i][1], shapes[i][2], i < 2);
      EQUAL(G.calls(LOADS), loads[i]);
    }
  }
  EQUAL(gpu_now().stats.modules, 4);
}

/* The kernels run on the oldest supported driver. */
static void d11_oldest(void) {
  NEEDS_STANDIN();
  G.ctl(STANDIN_VERSION, G.hip ? 50000000 : 11000, 0, NULL);
  if (G.hip > 5) return; /* its memory type numbers differ by version */
  face(0, 0, 4, 1, 100, 40, 1);
  EQUAL(G.calls(LAUNCHES), 1);
  layouts(0, 0, 60);
  CHECK(G.calls(LAUNCHES) > 20);
}

/* Rows farther apart than the driver's maximum pitch. */
static void d11_pitch(void) {
  int64_t shape[2] = {2, 4}, strides[2] = {(int64_t)5 << 29, 1}, rows[2] = {4, 1};
  unsigned char got[8] = {0}, want[8];
  NEEDS_STANDIN();
  G.ctl(STANDIN_MEMORY, 0, (long)6 << 30, NULL);
  unsigned char *data = (unsigned char *)gpu_alloc(0, ((size_t)5 << 29) + 4);
  for (int i = 0; i < 8; ++i) want[i] = (unsigned char)(i + 1);
  gpu_write(0, data, want, 4);
  gpu_write(0, data + ((size_t)5 << 29), want + 4, 4);
  DLTensor from = t_describe(data, U8, 2, shape, strides), to = t_describe(got, U8, 2, shape, rows);
  from.device = DEV(0);
  WORKS(dlrs_copy_desc(&from, 0, &to, 0, NULL, ERR));
  CHECK(memcmp(got, want, 8) == 0);
  WORKS(dlrs_copy_desc(&to, 0, &from, 0, NULL, ERR));
  gpu_free(0, data);
}

static void d12(void) {
  gpu_tensor src;
  t_tensor dst;
  gpu_make(&src, 0);
  t_make(&dst);
  static const int64_t wrong[] = {INT64_MAX, INT64_MIN, (int64_t)1 << 62, (int64_t)1 << 61};
  long before = G.standin ? copies() : 0;
  t_watch(&dst, sizeof dst);
  for (size_t i = 0; i < 4; ++i) {
    src.strides[0] = wrong[i];
    REFUSED(DLRS_EXTENT_OVERFLOW, 1, ANY, ANY, dlrs_copy(&src.managed, &dst.managed, NULL, ERR));
  }
  if (G.standin) EQUAL(copies(), before);
  gpu_drop(&src);
}

/* ---- Streams --------------------------------------------------------------------------------*/

static void d13(void) {
  gpu_tensor dst;
  t_tensor src;
  gpu_make(&dst, 0);
  t_make(&src);
  for (uintptr_t number = 0; number < 3; ++number) {
    void *stream = (void *)number;
    dlrs_copy_options options = gpu_options(NULL, stream, 0);
    if (G.hip == 5 && number == 1) { /* no such stream in ROCm 5 */
      CHECK(dlrs_stream_sync(DEV(0), stream, ERR) == DLRS_STREAM);
      continue;
    }
    WORKS(dlrs_stream_sync(DEV(0), stream, ERR));
    src.values[0] = (float)(10 + number);
    WORKS(dlrs_copy(&src.managed, &dst.managed, &options, ERR));
    CHECK(gpu_holds(&dst.managed.dl_tensor, src.values));
  }
  if (G.standin) {
    void *stream = (void *)(intptr_t)-1;
    dlrs_copy_options options = gpu_options(NULL, stream, 0);
    FAILS(DLRS_STREAM, ANY, dlrs_stream_sync(DEV(0), stream, ERR));
    FAILS(DLRS_STREAM, ANY, dlrs_copy(&src.managed, &dst.managed, &options, ERR));
  }
  gpu_drop(&dst);
}

static void d14(void) {
  gpu_tensor dst;
  t_tensor src;
  if (gpu_count() < 2) {
    gpu_left_out = 1;
    return;
  }
  void *stream = gpu_stream(1, 1);
  dlrs_copy_options options = gpu_options(NULL, stream, 0);
  gpu_make(&dst, 0);
  t_make(&src);
  WORKS(dlrs_copy(&src.managed, &dst.managed, NULL, ERR));
  WORKS(dlrs_stream_sync(DEV(1), stream, ERR));
  src.values[0] = 9;
  gpu_state before = gpu_now();
  int32_t status = dlrs_copy(&src.managed, &dst.managed, &options, ERR);
  if (G.hip != 5) CHECK(status == DLRS_STREAM); /* ROCm 5 does not report a stream's device */
  if (status != DLRS_OK) CHECK(gpu_holds(&dst.managed.dl_tensor, VALUES));
  if (G.hip != 5) FAILS(DLRS_STREAM, ANY, dlrs_stream_sync(DEV(0), stream, ERR));
  WORKS(dlrs_stream_sync(DEV(1), stream, ERR));
  SAME(before);
  gpu_stream_free(1, stream);
  gpu_drop(&dst);
}

static void d15(void) {
  NEEDS_STANDIN(); /* a real driver may crash */
  gpu_tensor dst;
  t_tensor src;
  void *stream;
  WORKS(dlrs_stream_create(DEV(0), &stream, ERR));
  WORKS(dlrs_stream_destroy(DEV(0), stream, ERR));
  dlrs_copy_options options = gpu_options(NULL, stream, 0);
  gpu_make(&dst, 0);
  t_make(&src);
  gpu_state before = gpu_now();
  FAILS(DLRS_STREAM, ANY, dlrs_stream_sync(DEV(0), stream, ERR));
  FAILS(DLRS_STREAM, ANY, dlrs_stream_destroy(DEV(0), stream, ERR));
  FAILS(DLRS_STREAM, ANY, dlrs_copy(&src.managed, &dst.managed, &options, ERR));
  SAME(before);
  gpu_drop(&dst);
}

/* HIP keeps a thread's last error, by which programs check their launches: the library leaves none
 * set, whether it returns the error or recovers from it. */
static void last_error(void) {
  int (*last)(void);
  if (!G.hip) return;
  *(void **)&last = dlsym(G.library, "hipGetLastError");
  enum { NBYTES = 40 << 20 };
  int64_t nbytes = NBYTES;
  unsigned char *bytes = malloc(NBYTES), *heap = malloc(NBYTES);
  void *data = gpu_alloc(0, NBYTES);
  dlrs_pointer_info info = {sizeof info, 0, {0, 0}, NULL, 0};
  DLTensor host = t_describe(bytes, U8, 1, &nbytes, NULL), there = host, wrong = host;
  there.data = data;
  wrong.data = heap;
  there.device = wrong.device = DEV(0);
  memset(bytes, 5, NBYTES);
  last();
  WORKS(dlrs_copy_desc(&host, 0, &there, 0, NULL, ERR)); /* queries the host memory's type */
  EQUAL(last(), 0);
  WORKS(dlrs_pointer_device(G.type, bytes, &info, ERR));
  EQUAL(last(), 0);
  t_before();
  CHECK(dlrs_copy_desc(&host, 0, &wrong, 0, NULL, ERR) != DLRS_OK);
  EQUAL(last(), 0);
  gpu_free(0, data);
  free(bytes);
  free(heap);
}

/* Captures: supported work is captured, the rest is rejected, and no capture is invalidated. */
static void d16(void) {
  for (int mode = 0; mode < 3; ++mode) {
    gpu_tensor src, dst;
    DLManagedTensorVersioned *out;
    void *stream = gpu_stream(0, 1), *data;
    dlrs_copy_options later = gpu_options(stream, stream, DLRS_COPY_ASYNC);
    dlrs_copy_options wait = gpu_options(stream, stream, 0);
    float zero[6] = {0};
    gpu_make(&src, 0);
    gpu_make(&dst, 0);
    gpu_write(0, dst.data, zero, sizeof zero);
    WORKS(dlrs_copy(&src.managed, &dst.managed, &later, ERR)); /* all resources exist */
    WORKS(dlrs_stream_sync(DEV(0), stream, ERR));
    gpu_write(0, dst.data, zero, sizeof zero);
    gpu_capture(0, stream, mode);
    WORKS(dlrs_copy(&src.managed, &dst.managed, &later, ERR));
    CHECK(gpu_holds(&dst.managed.dl_tensor, zero));
    FAILS(DLRS_CAPTURING, ANY, dlrs_copy(&src.managed, &dst.managed, &wait, ERR));
    FAILS(DLRS_CAPTURING, ANY, dlrs_stream_sync(DEV(0), stream, ERR));
    t_before();
    int32_t status = dlrs_mem_alloc(DEV(0), 64, 0, NULL, &data, ERR);
    CHECK(status == DLRS_OK || status == DLRS_CAPTURING);
    if (status == DLRS_OK) WORKS(dlrs_mem_free(DEV(0), data, 64, 0, NULL, ERR));
    t_before();
    status = dlrs_clone(&src.managed, DEV(0), &later, &out, ERR);
    CHECK(status == DLRS_OK || status == DLRS_CAPTURING);
    if (G.standin) EQUAL(gpu_now().stats.captures_broken, 0);
    EQUAL(gpu_capture_end(0, stream, 1), 0);
    CHECK(gpu_holds(&dst.managed.dl_tensor, VALUES));
    if (status == DLRS_OK) {
      CHECK(gpu_holds(&out->dl_tensor, VALUES));
      dlrs_release(out);
    }
    gpu_drop(&src);
    gpu_drop(&dst);
    gpu_stream_free(0, stream);
  }
}

/* Querying earlier work and waiting for it during a capture: neither invalidates it, and nothing is
 * released early. */
static void d16_others(void) {
  for (int mode = 0; mode < 3; ++mode) {
    t_tensor host;
    uint64_t waiting = 0;
    void *stream = gpu_stream(0, 1), *other = gpu_stream(0, 1), *data = gpu_alloc(0, 64), *event, *pooled;
    DLManagedTensorVersioned *held = &host.managed;
    t_make(&host);
    long deleted = t_deleted;
    WORKS(dlrs_event_create(DEV(0), &event, ERR));
    WORKS(dlrs_mem_alloc(DEV(0), 64, 0, other, &pooled, ERR));
    if (G.standin) G.ctl(STANDIN_HANG, 1, 0, NULL);
    gpu_fill(0, other, data, 1, 64);
    WORKS(dlrs_event_record(DEV(0), event, other, ERR));
    WORKS(dlrs_release_after_take(&held, DEV(0), other, ERR));
    gpu_capture(0, stream, mode);
    WORKS(dlrs_release_drain(&waiting, ERR));
    if (G.standin) EQUAL(waiting, 1);
    EQUAL(t_deleted, deleted + 1 - (long)waiting);
    if (G.standin) G.ctl(STANDIN_HANG, 0, 0, NULL);
    WORKS(dlrs_event_sync(DEV(0), event, ERR));
    WORKS(dlrs_stream_sync(DEV(0), other, ERR));
    WORKS(dlrs_mem_free(DEV(0), pooled, 64, 0, other, ERR));
    if (G.standin) EQUAL(gpu_now().stats.captures_broken, 0);
    EQUAL(gpu_capture_end(0, stream, 1), 0);
    WORKS(dlrs_release_drain(&waiting, ERR));
    EQUAL(waiting, 0);
    EQUAL(t_deleted, deleted + 1);
    WORKS(dlrs_event_destroy(DEV(0), event, ERR));
    gpu_free(0, data);
    gpu_stream_free(0, stream);
    gpu_stream_free(0, other);
  }
}

/* Through pinned buffers on one stream while another stream captures. */
static void d16_staged(void) {
  enum { ROWS = 3500, COLUMNS = 2000 };
  int64_t shape[] = {ROWS, COLUMNS}, across[] = {1, ROWS}, down[] = {COLUMNS, 1};
  unsigned char *bytes = calloc(ROWS, COLUMNS);
  void *stream = gpu_stream(0, 1), *other = gpu_stream(0, 1), *data = gpu_alloc(0, ROWS * COLUMNS);
  DLTensor src = {bytes, {kDLCPU, 0}, 2, U8, shape, across, 0};
  DLTensor dst = {data, DEV(0), 2, U8, shape, down, 0};
  dlrs_copy_options up = gpu_options(NULL, other, 0), back = gpu_options(other, NULL, 0);
  for (int turn = 0; turn < 2; ++turn) {
    if (turn) gpu_capture(0, stream, 0);
    WORKS(dlrs_copy_desc(&src, 0, &dst, 0, &up, ERR));
    WORKS(dlrs_copy_desc(&dst, 0, &src, 0, &back, ERR));
  }
  if (G.standin) EQUAL(gpu_now().stats.captures_broken, 0);
  EQUAL(gpu_capture_end(0, stream, 1), 0);
  gpu_free(0, data);
  gpu_stream_free(0, stream);
  gpu_stream_free(0, other);
  free(bytes);
}

/* A graph uses the captured resources at each launch, so no wait can end that use. */
static void d16_release(void) {
  t_tensor host;
  uint64_t waiting = 9;
  void *stream = gpu_stream(0, 1);
  DLManagedTensorVersioned *held = &host.managed;
  t_make(&host);
  gpu_capture(0, stream, 2);
  FAILS(DLRS_CAPTURING, ANY, dlrs_release_after_take(&held, DEV(0), stream, ERR));
  CHECK(held == &host.managed);
  WORKS(dlrs_release_drain(&waiting, ERR));
  EQUAL(waiting, 0);
  EQUAL(t_deleted, 0);
  if (G.standin) EQUAL(gpu_now().stats.captures_broken, 0);
  EQUAL(gpu_capture_end(0, stream, 1), 0);
  gpu_stream_free(0, stream);
}

/* The legacy stream is not usable while a blocking stream captures. */
static void d16_legacy(void) {
  gpu_tensor src, dst;
  void *stream = gpu_stream(0, 0);
  gpu_make(&src, 0);
  gpu_make(&dst, 0);
  WORKS(dlrs_copy(&src.managed, &dst.managed, NULL, ERR));
  gpu_capture(0, stream, 0);
  FAILS(DLRS_CAPTURING, ANY, dlrs_copy(&src.managed, &dst.managed, NULL, ERR));
  FAILS(DLRS_CAPTURING, ANY, dlrs_stream_sync(DEV(0), NULL, ERR));
  if (G.standin) EQUAL(gpu_now().stats.captures_broken, 0);
  EQUAL(gpu_capture_end(0, stream, 0), 0);
  gpu_drop(&src);
  gpu_drop(&dst);
  gpu_stream_free(0, stream);
}

/* The current context stays the same, whichever it is and whatever happens. */
static void d17(void) {
  int last = gpu_count() - 1;
  for (int place = -1; place <= last; ++place) {
    for (int own = 0; own < (place < 0 || G.hip ? 1 : 2); ++own) {
      gpu_tensor tensor;
      DLManagedTensorVersioned *there, *back, *out = NULL;
      dlrs_pointer_info info;
      void *stream, *event;
      gpu_make(&tensor, last);
      gpu_set_current(place, own);
      long before = gpu_current();
      WORKS(dlrs_clone(&tensor.managed, DEV(0), NULL, &there, ERR));
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
      WORKS(dlrs_pointer_device(G.type, tensor.data, &info, ERR));
      EQUAL(info.device.device_id, last);
      EQUAL(gpu_current(), before);
      if (G.standin) {
        G.ctl(STANDIN_MEMORY, 0, 16, NULL);
        FAILS(DLRS_DEV_OOM, 2, dlrs_clone(&tensor.managed, DEV(0), NULL, &out, ERR));
        CHECK(out == NULL);
        EQUAL(gpu_current(), before);
        G.ctl(STANDIN_DEFAULTS, 0, 0, NULL);
      }
      gpu_drop(&tensor);
    }
  }
}

/* The primary context is retained once per device. */
static void d18(void) {
  DLManagedTensorVersioned *there;
  t_tensor host;
  NEEDS_STANDIN();
  t_make(&host);
  for (int i = 0; i < 10; ++i) {
    WORKS(dlrs_clone(&host.managed, DEV(i & 1), NULL, &there, ERR));
    dlrs_release(there);
  }
  if (!G.hip) CHECK(gpu_now().stats.retains <= 2);
  EQUAL(gpu_now().stats.depth, 0);
  EQUAL(gpu_now().stats.device_blocks, 0);
}

/* ---- Resources ------------------------------------------------------------------------------*/

static void d19(void) {
  DLManagedTensorVersioned *out;
  t_tensor host;
  gpu_tensor other;
  NEEDS_STANDIN();
  t_make(&host);
  gpu_make(&other, 1);
  WORKS(dlrs_clone(&host.managed, DEV(0), NULL, &out, ERR));
  dlrs_release(out);
  G.ctl(STANDIN_MEMORY, 0, 23, NULL);
  gpu_state before = gpu_now();
  FAILS(DLRS_DEV_OOM, 2, dlrs_clone(&host.managed, DEV(0), NULL, &out, ERR));
  CHECK(out == NULL);
  FAILS(DLRS_DEV_OOM, 2, dlrs_clone(&other.managed, DEV(0), NULL, &out, ERR));
  CHECK(out == NULL);
  SAME(before);
  CHECK(gpu_holds(&other.managed.dl_tensor, VALUES));
  WORKS(dlrs_clone(&host.managed, DEV(1), NULL, &out, ERR)); /* the other device is unaffected */
  dlrs_release(out);
  void *data = NULL; /* the driver's memory is aligned to less */
  before = gpu_now();
  FAILS(DLRS_MISALIGNED, ANY, dlrs_mem_alloc(DEV(1), 64, 1 << 20, NULL, &data, ERR));
  SAME(before);
  G.ctl(STANDIN_MEMORY, 0, 24, NULL);
  WORKS(dlrs_clone(&host.managed, DEV(0), NULL, &out, ERR));
  dlrs_release(out);
  gpu_drop(&other);
}

static void d20(void) {
  NEEDS_STANDIN();
  G.ctl(STANDIN_FAIL_ALWAYS, 1, 2, G.hip ? "hipHostMalloc" : "cuMemHostAlloc");
  layouts(-1, 0, 60);
  layouts(0, -1, 60);
  int64_t big = 5 << 20;
  DLManagedTensorVersioned *host, *there, *back;
  WORKS(dlrs_tensor_new(&big, 1, U8, CPU, NULL, &host, ERR));
  memset(host->dl_tensor.data, 7, (size_t)big);
  WORKS(dlrs_clone(host, DEV(0), NULL, &there, ERR));
  WORKS(dlrs_clone(there, CPU, NULL, &back, ERR));
  CHECK(memcmp(back->dl_tensor.data, host->dl_tensor.data, (size_t)big) == 0);
  dlrs_release(host);
  dlrs_release(there);
  dlrs_release(back);
}

/* Compact on one device, transposed on the other: one kernel, one copy, no host work. */
static void turned(int from, int to, int turn_source) {
  const char *copy = G.hip ? "hipMemcpyPeerAsync" : "cuMemcpyPeerAsync";
  static const float columns[6] = {0, 2, 4, 1, 3, 5};
  gpu_tensor src, dst;
  gpu_make(&src, from);
  gpu_make(&dst, to);
  gpu_write(from, src.data, VALUES, sizeof VALUES);
  gpu_tensor *turned = turn_source ? &src : &dst;
  turned->strides[0] = 1;
  turned->strides[1] = 2;
  for (int warm = 0; warm < 2; ++warm) {
    long kernels = G.calls(LAUNCHES), copied = G.calls(copy);
    WORKS(dlrs_copy(&src.managed, &dst.managed, NULL, ERR));
    EQUAL(G.calls(LAUNCHES) - kernels, 1);
    EQUAL(G.calls(copy) - copied, 1);
  }
  dst.strides[0] = 3;
  dst.strides[1] = 1;
  static const float rows[6] = {0, 3, 1, 4, 2, 5};
  CHECK(gpu_holds(&dst.managed.dl_tensor, turn_source ? columns : rows));
  gpu_drop(&src);
  gpu_drop(&dst);
}

static void d21(void) {
  NEEDS_STANDIN();
  for (int i = 0; i < 8; ++i) { /* the second half without pools, and a driver that does not wait itself */
    G.ctl(STANDIN_POOLS, i < 4, 0, NULL);
    G.ctl(STANDIN_FREE_WAITS, i < 4, 0, NULL);
    turned(i & 1, !(i & 1), i >> 1 & 1);
  }
  G.ctl(STANDIN_DEFAULTS, 0, 0, NULL);
  for (int able = 0; able < 2; ++able) {
    G.ctl(STANDIN_PEER, 0 << 8 | 1, able, NULL);
    G.ctl(STANDIN_PEER, 1 << 8 | 0, able, NULL);
    layouts(0, 1, 60);
    layouts(1, 0, 60);
    EQUAL(gpu_now().stats.peers, 0); /* no access stays enabled */
  }
}

/* ---- Two devices, memory with another address on the device, other contexts -------------------*/

enum { R = 6, C = 32, SPACE = R * C * 3 * 4 };

/* Elements of 4 bytes, R x C: dense, rows, transposed, with gaps, last row first; in elements. */
typedef struct shaped {
  int64_t strides[2], first;
} shaped;
static const shaped LAYOUTS[] = {{{C, 1}, 0}, {{C + 8, 1}, 0}, {{1, R}, 0}, {{2 * C + 1, 2}, 3}, {{-C, 1}, (R - 1) * C}};
enum { LAYOUTS_N = sizeof LAYOUTS / sizeof *LAYOUTS };

static int64_t at(const shaped *it, int64_t i) { return it->first + i / C * it->strides[0] + i % C * it->strides[1]; }

static DLTensor shaped_tensor(const shaped *it, void *data, DLDevice device, int64_t strides[2]) {
  static int64_t shape[2] = {R, C};
  strides[0] = it->strides[0];
  strides[1] = it->strides[1];
  DLTensor tensor = t_describe(data, F32, 2, shape, strides);
  tensor.byte_offset = (uint64_t)it->first * 4;
  tensor.device = device;
  return tensor;
}

/* Copies between two places, which the test reads through `from` and `to`: the elements arrive, and
 * nothing around them changes. Synchronizes with a stream that is not NULL. */
static int arrives(DLTensor src, const shaped *a, uint32_t *from, DLTensor dst, const shaped *b, uint32_t *to,
                   const dlrs_copy_options *options) {
  static uint32_t want[SPACE / 4];
  for (int i = 0; i < SPACE / 4; ++i) {
    from[i] = (uint32_t)below(1u << 31);
    want[i] = to[i] = ~from[i];
  }
  for (int64_t i = 0; i < R * C; ++i) want[at(b, i)] = from[at(a, i)];
  if (!WORKS(dlrs_copy_desc(&src, 0, &dst, 0, options, ERR))) return 0;
  G.ctl(STANDIN_RUN, -1, 0, NULL);
  return CHECK(memcmp(to, want, SPACE) == 0);
}

/* Kinds of a device's memory. */
enum { PLAIN, POOL, OWN, KINDS };

static void *kind_new(int kind, int device, void *stream) {
  void *data = NULL;
  if (kind == OWN) gpu_set_current(device, 1);
  WORKS(dlrs_mem_alloc(DEV(device), SPACE, 0, kind == POOL ? stream : NULL, &data, ERR));
  if (kind == OWN) gpu_set_current(-1, 0);
  if (kind == POOL) WORKS(dlrs_stream_sync(DEV(device), stream, ERR));
  return data;
}

/* All kinds of memory and layouts on both sides, with any peer access: the bytes arrive. `refusal`
 * is the code of the driver's copy between two devices, 0 if it succeeds. */
static void peers(int refusal) {
  const char *call = G.hip ? "hipMemcpyPeerAsync" : "cuMemcpyPeerAsync";
  void *streams[2] = {gpu_stream(0, 1), gpu_stream(1, 1)}, *data[2][KINDS];
  int kinds = G.hip ? OWN : KINDS;
  gpu_set_current(-1, 0);
  for (int i = 0; i < 2 * kinds; ++i) data[i & 1][i >> 1] = kind_new(i >> 1, i & 1, streams[i & 1]);
  if (refusal) G.ctl(STANDIN_FAIL_ALWAYS, 1, refusal, call);
  for (int i = 0; i < kinds * kinds * LAYOUTS_N * LAYOUTS_N * 4; ++i) {
    int async = i & 1, to = i >> 1 & 1, rest = i >> 2;
    const shaped *a = &LAYOUTS[rest % LAYOUTS_N], *b = &LAYOUTS[rest / LAYOUTS_N % LAYOUTS_N];
    int kind = rest / LAYOUTS_N / LAYOUTS_N, dense = a == b && a == LAYOUTS;
    void *src = data[!to][kind % kinds], *dst = data[to][kind / kinds];
    int64_t strides[2][2];
    long calls = G.calls(call);
    dlrs_copy_options options = gpu_options(async ? streams[!to] : NULL, async ? streams[to] : NULL, async ? DLRS_COPY_ASYNC : 0);
    int ok = arrives(shaped_tensor(a, src, DEV(!to), strides[0]), a, G.bytes(src),
                     shaped_tensor(b, dst, DEV(to), strides[1]), b, G.bytes(dst), &options);
    if (dense && !refusal) ok &= EQUAL(G.calls(call) - calls, 1);
    if (!ok) printf("refusal %d, kinds %d to %d, layouts %d to %d, to %d, async %d\n", refusal, kind % kinds,
                    kind / kinds, (int)(a - LAYOUTS), (int)(b - LAYOUTS), to, async);
  }
  G.ctl(STANDIN_FAIL, 0, 0, NULL);
  for (int i = 0; i < 2 * kinds; ++i) {
    if (i >> 1 == OWN) continue; /* freed with its context */
    WORKS(dlrs_mem_free(DEV(i & 1), data[i & 1][i >> 1], SPACE, 0, NULL, ERR));
  }
  for (int i = 0; i < 2; ++i) gpu_stream_free(i, streams[i]);
  EQUAL(gpu_now().stats.peers, 0);
}

static void d21_kinds(void) {
  NEEDS_STANDIN();
  peers(0);
}

static void d21_refused(void) {
  static const int refusals[] = {1, 101, 217, 801};
  NEEDS_STANDIN();
  for (int i = 0; i < 4; ++i) peers(refusals[i]);
}

/* Registered host memory, with another address on the device for HIP: kernels get that address. Memory
 * registered in two pieces is two places for a kernel, and one for the host; and no kernel works on
 * memory that is registered in part, or has a hole. */
static void d28_registered(void) {
  enum { WHOLE, HALVES, PART, HOLE, PINNED, HOST_KINDS };
  static _Alignas(4096) unsigned char memory[2 * 4096];
  NEEDS_STANDIN();
  void *device = gpu_alloc(0, SPACE), *stream = gpu_stream(0, 1);
  for (int kind = 0; kind < HOST_KINDS; ++kind) {
    unsigned char *pinned = gpu_pinned(SPACE), *host = kind == PINNED ? pinned : memory + 4096 - 512 + 64;
    size_t first = kind == WHOLE ? sizeof memory : 4096, second = kind == HOLE ? 4096 + 256 : 4096;
    if (kind != PINNED) WORKS(dlrs_mem_register_host(G.type, memory, first, ERR));
    if (kind == HALVES || kind == HOLE) WORKS(dlrs_mem_register_host(G.type, memory + second, sizeof memory - second, ERR));
    for (int i = 0; i < LAYOUTS_N * LAYOUTS_N * 4; ++i) {
      int up = i & 1, async = i >> 1 & 1;
      const shaped *a = &LAYOUTS[i / 4 % LAYOUTS_N], *b = &LAYOUTS[i / 4 / LAYOUTS_N];
      int64_t strides[2][2];
      long launches = G.calls(LAUNCHES);
      dlrs_copy_options options = gpu_options(up ? NULL : stream, up ? stream : NULL, async ? DLRS_COPY_ASYNC : 0);
      DLTensor there = shaped_tensor(up ? b : a, device, DEV(0), strides[0]);
      DLTensor here = shaped_tensor(up ? a : b, host, t_device(G.pinned, 0), strides[1]);
      if (!up) arrives(there, a, G.bytes(device), here, b, (uint32_t *)(void *)host, &options);
      else arrives(here, a, (uint32_t *)(void *)host, there, b, G.bytes(device), &options);
      if (a == LAYOUTS && b == LAYOUTS + 3 && (kind == WHOLE || kind == PINNED)) EQUAL(G.calls(LAUNCHES) - launches, 1);
    }
    if (kind != PINNED) WORKS(dlrs_mem_unregister_host(G.type, memory, ERR));
    if (kind == HALVES || kind == HOLE) WORKS(dlrs_mem_unregister_host(G.type, memory + second, ERR));
    gpu_pinned_free(pinned);
  }
  gpu_stream_free(0, stream);
  gpu_free(0, device);
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
  DLTensor from = t_describe(host, U8, 1, &n, NULL), to = t_describe(data, U8, 1, &n, NULL);
  to.device = t_device(G.pinned, 0);
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
  NEEDS_STANDIN();
  if (G.hip) return;
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

/* Streams for pinned memory are of any device, whichever is current and whatever the other side's
 * stream is, also where the driver does not tell a stream's device. */
static void d28_streams(void) {
  NEEDS_STANDIN();
  void *pinned = gpu_pinned(24), *streams[2][2];
  for (int i = 0; i < 4; ++i) streams[i / 2][i % 2] = gpu_stream(i / 2, 1);
  for (int i = 0; i < 96; ++i) {
    int device = i & 1, of = i >> 1 & 1, current = i / 32 - 1, up = i >> 2 & 1, last = i >> 3 & 1, named = i >> 4 & 1;
    int64_t six = 6;
    void *data = gpu_alloc(device, 24);
    DLTensor a = t_describe(pinned, F32, 1, &six, NULL), b = t_describe(data, F32, 1, &six, NULL);
    a.device = t_device(G.pinned, 0), b.device = DEV(device);
    memset(pinned, i, 24);
    memset(G.bytes(data), 99, 24);
    void *mine = streams[of][0], *its = named ? streams[device][last] : NULL;
    dlrs_copy_options options = up ? gpu_options(mine, its, 0) : gpu_options(its, mine, 0);
    gpu_set_current(current, 0);
    standin_stats_t before = gpu_now().stats;
    if (WORKS(dlrs_copy_desc(up ? &a : &b, 0, up ? &b : &a, 0, &options, ERR))) {
      EQUAL(up ? *(char *)G.bytes(data) : *(char *)pinned, up ? i : 99);
    } else {
      printf("device %d, a stream of device %d for the pinned side, current %d, up %d\n", device, of, current, up);
    }
    EQUAL(gpu_now().stats.events, before.events);
    EQUAL(gpu_now().stats.device, before.device);
    EQUAL(gpu_now().stats.depth, before.depth);
    gpu_set_current(0, 0);
    gpu_free(device, data);
  }
  for (int i = 0; i < 4; ++i) gpu_stream_free(i / 2, streams[i / 2][i % 2]);
  gpu_pinned_free(pinned);
}

/* Memory of another context of the device, which kernels of the primary one cannot access. */
static void d17_other_context(void) {
  NEEDS_STANDIN();
  if (G.hip) return;
  void *stream = gpu_stream(0, 1), *own = kind_new(OWN, 0, NULL), *plain = gpu_alloc(0, SPACE);
  for (int i = 0; i < LAYOUTS_N * LAYOUTS_N * 4; ++i) {
    int named = i & 1, from_own = i >> 1 & 1;
    const shaped *a = &LAYOUTS[i / 4 % LAYOUTS_N], *b = &LAYOUTS[i / 4 / LAYOUTS_N];
    void *src = from_own ? own : plain, *dst = from_own ? plain : own;
    int64_t strides[2][2];
    dlrs_copy_options options = gpu_options(named ? stream : NULL, named ? stream : NULL, 0);
    arrives(shaped_tensor(a, src, DEV(0), strides[0]), a, G.bytes(src),
            shaped_tensor(b, dst, DEV(0), strides[1]), b, G.bytes(dst), &options);
  }
  gpu_stream_free(0, stream);
  gpu_free(0, plain);
  gpu_set_current(0, 1);
  long pinned = gpu_now().stats.pinned;
  face(PLAIN_HOST, 0, 4, 1, 1500, 1500, 1); /* its buffers are not kept: it may be destroyed */
  EQUAL(gpu_now().stats.pinned, pinned);
  t_tensor src;
  gpu_tensor dst;
  t_make(&src);
  gpu_make(&dst, 0);
  src.strides[0] = 1;
  src.strides[1] = 2;
  G.ctl(STANDIN_FAIL, 1, 999, "cuEventCreate"); /* nor when they cannot be used */
  FAILS(DLRS_INTERNAL, 999, dlrs_copy(&src.managed, &dst.managed, NULL, ERR));
  EQUAL(gpu_now().stats.pinned, pinned);
  gpu_drop(&dst);
}

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
  enum { ROWS = 4000, COLUMNS = 2200 };
  int (*create)(void **, void *, int, unsigned), (*destroy)(void *), (*context)(void **, void *);
  int (*stream)(void **, void *, unsigned, int);
  void *made = NULL, *popped = NULL;
  green it;
  pthread_t thread;
  NEEDS_STANDIN();
  if (G.hip) return;
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
  gpu_tensor src, dst;
  gpu_make(&src, 0);
  gpu_make(&dst, 0);
  unsigned char *bytes = (unsigned char *)malloc(ROWS * COLUMNS), *got = (unsigned char *)calloc(ROWS, COLUMNS);
  void *data = gpu_alloc(0, ROWS * COLUMNS);
  int64_t shape[] = {ROWS, COLUMNS}, across[] = {1, ROWS}, down[] = {COLUMNS, 1};
  for (int i = 0; i < ROWS * COLUMNS; ++i) bytes[i] = (unsigned char)(i * 2654435761u >> 13);
  DLTensor host = {bytes, CPU, 2, U8, shape, across, 0}, back = host, there = {data, DEV(0), 2, U8, shape, down, 0};
  back.data = got;
  for (int elsewhere = 0; elsewhere < 2; ++elsewhere) {
    for (int named = elsewhere; named < 2; ++named) {
      void *on = named ? it.stream : NULL;
      dlrs_copy_options options = gpu_options(on, on, 0), up = gpu_options(NULL, on, 0), down_again = gpu_options(on, NULL, 0);
      if (elsewhere) {
        EQUAL(pthread_create(&thread, NULL, holds_green, &it), 0);
        pthread_barrier_wait(&it.gate);
      } else {
        EQUAL(it.push(it.context), 0);
      }
      long launches = G.calls(LAUNCHES);
      src.strides[0] = 1;
      src.strides[1] = 2;
      WORKS(dlrs_copy(&src.managed, &dst.managed, &options, ERR));
      if (named) EQUAL(G.calls(LAUNCHES) - launches, 1);
      memset(got, 0, ROWS * COLUMNS);
      WORKS(dlrs_copy_desc(&host, 0, &there, 0, &up, ERR));
      WORKS(dlrs_copy_desc(&there, 0, &back, 0, &down_again, ERR));
      CHECK(memcmp(bytes, got, ROWS * COLUMNS) == 0);
      static const float turned[6] = {0, 2, 4, 1, 3, 5};
      CHECK(gpu_holds(&dst.managed.dl_tensor, turned));
      if (named) REFUSED(DLRS_STREAM, ANY, ANY, ANY, dlrs_stream_sync(DEV(1), on, ERR));
      if (elsewhere) {
        pthread_barrier_wait(&it.gate);
        pthread_join(thread, NULL);
      } else {
        EQUAL(it.pop(&popped), 0);
        CHECK(popped == it.context);
      }
    }
  }
  gpu_stream_free(0, it.stream);
  EQUAL(destroy(made), 0);
  gpu_free(0, data);
  gpu_drop(&src);
  gpu_drop(&dst);
  free(bytes), free(got);
}

/* Errors of earlier work outside the library. */
static void d22(void) {
  static const int codes[] = {700, 719};
  NEEDS_STANDIN();
  for (int i = 0; i < 2; ++i) {
    gpu_tensor src;
    t_tensor dst;
    gpu_make(&src, 0);
    t_make(&dst);
    WORKS(dlrs_copy(&src.managed, &dst.managed, NULL, ERR));
    gpu_state before = gpu_now();
    G.ctl(STANDIN_FAIL, 1, codes[i], G.hip ? "hipMemcpyAsync" : "cuMemcpyAsync");
    FAILS(DLRS_ASYNC_FAULT, codes[i], dlrs_copy(&src.managed, &dst.managed, NULL, ERR));
    CHECK(strstr(t_error.message, "earlier") != NULL);
    SAME(before);
    WORKS(dlrs_copy(&src.managed, &dst.managed, NULL, ERR));
    gpu_drop(&src);
  }
}

/* An error after the call has returned, then on every call. */
static void d23(void) {
  gpu_tensor src;
  t_tensor dst;
  DLManagedTensorVersioned *there;
  NEEDS_STANDIN();
  gpu_make(&src, 0);
  t_make(&dst);
  WORKS(dlrs_clone(&src.managed, DEV(0), NULL, &there, ERR));
  void *stream = gpu_stream(0, 1);
  dlrs_copy_options later = gpu_options(stream, stream, DLRS_COPY_ASYNC);
  G.ctl(STANDIN_FAULT_AFTER, 1, 700, NULL);
  WORKS(dlrs_copy(&src.managed, there, &later, ERR));
  FAILS(DLRS_ASYNC_FAULT, 700, dlrs_stream_sync(DEV(0), stream, ERR));
  t_before();
  int32_t status = dlrs_copy(&src.managed, &dst.managed, NULL, ERR);
  CHECK(status == DLRS_ASYNC_FAULT || status == DLRS_CTX_LOST);
  status = dlrs_copy(&src.managed, &dst.managed, NULL, ERR);
  CHECK(status == DLRS_CTX_LOST);
  EQUAL(t_error.driver_code, 700);
  dlrs_release(there); /* does not abort */
  EQUAL(gpu_now().stats.depth, 0);
  if (gpu_count() > 1) { /* the other device still works */
    gpu_tensor other;
    gpu_make(&other, 1);
    WORKS(dlrs_copy(&other.managed, &dst.managed, NULL, ERR));
    CHECK(memcmp(dst.values, VALUES, sizeof VALUES) == 0);
    gpu_drop(&other);
  }
}

/* ---- Asynchronous copies --------------------------------------------------------------------*/

static void d24(void) {
  for (long seed = 0; seed < (G.standin ? 20 : 1); ++seed) {
    DLManagedTensorVersioned *src, *dst;
    t_tensor host;
    uint64_t waiting;
    t_make(&host);
    if (G.standin) G.ctl(STANDIN_SEED, seed, 0, NULL);
    void *stream = gpu_stream(0, 1);
    dlrs_copy_options later = gpu_options(stream, stream, DLRS_COPY_ASYNC);
    WORKS(dlrs_clone(&host.managed, DEV(0), NULL, &src, ERR));
    WORKS(dlrs_clone(&host.managed, DEV(0), NULL, &dst, ERR));
    gpu_fill(0, stream, src->dl_tensor.data, 0x40, 24);
    WORKS(dlrs_copy(src, dst, &later, ERR));
    WORKS(dlrs_release_after_take(&src, DEV(0), stream, ERR));
    CHECK(src == NULL);
    WORKS(dlrs_stream_sync(DEV(0), stream, ERR));
    WORKS(dlrs_release_drain(&waiting, ERR));
    EQUAL(waiting, 0);
    unsigned char got[24], want[24];
    memset(want, 0x40, 24);
    gpu_read(0, got, dst->dl_tensor.data, 24);
    CHECK(memcmp(got, want, 24) == 0);
    dlrs_release(dst);
    gpu_stream_free(0, stream);
    if (G.standin) EQUAL(gpu_now().stats.device_blocks, 0);
    if (G.standin) EQUAL(gpu_now().stats.events, 0);
  }
}

/* Resources that a stream still uses are not released before the stream reaches that point. */
static void d24_waits(void) {
  t_tensor host;
  uint64_t waiting = 0;
  NEEDS_STANDIN();
  t_make(&host);
  void *stream = gpu_stream(0, 1), *data = gpu_alloc(0, 64);
  WORKS(dlrs_stream_sync(DEV(0), stream, ERR));
  G.ctl(STANDIN_HANG, 1, 0, NULL);
  gpu_fill(0, stream, data, 1, 64);
  DLManagedTensorVersioned *held = &host.managed;
  WORKS(dlrs_release_after_take(&held, DEV(0), stream, ERR));
  for (int i = 0; i < 3; ++i) {
    WORKS(dlrs_release_drain(&waiting, ERR));
    EQUAL(waiting, 1);
    EQUAL(t_deleted, 0);
  }
  G.ctl(STANDIN_HANG, 0, 0, NULL);
  WORKS(dlrs_stream_sync(DEV(0), stream, ERR));
  WORKS(dlrs_release_drain(&waiting, ERR));
  EQUAL(waiting, 0);
  EQUAL(t_deleted, 1);
  gpu_stream_free(0, stream);
  gpu_free(0, data);
}

/* A result that is released before its copy has completed. */
static void d25(void) {
  for (long seed = 0; seed < (G.standin ? 20 : 1); ++seed) {
    DLManagedTensorVersioned *out;
    gpu_tensor src;
    if (G.standin) G.ctl(STANDIN_SEED, seed, 0, NULL);
    gpu_make(&src, 0);
    void *stream = gpu_stream(0, 1);
    dlrs_copy_options later = gpu_options(stream, stream, DLRS_COPY_ASYNC);
    WORKS(dlrs_clone(&src.managed, DEV(0), &later, &out, ERR));
    dlrs_release(out);
    EQUAL(gpu_sync(0, stream), 0);
    gpu_stream_free(0, stream);
    gpu_drop(&src);
    if (G.standin) EQUAL(gpu_now().stats.device_blocks, 0);
  }
}

/* Memory is freed while work that uses it is pending: after the work of the stream given, else of all.
 * Where the driver has pools and where not, and does not wait itself when a stream is given. */
static void d25_pending(void) {
  enum { PLAIN_MEMORY, POOL_MEMORY, PINNED_MEMORY, MEMORIES };
  NEEDS_STANDIN();
  for (int i = 0; i < 2; ++i) WORKS(dlrs_stream_sync(DEV(i), NULL, ERR)); /* contexts */
  for (int i = 0; i < 16 * MEMORIES; ++i) {
    int device = i & 1, named = i >> 1 & 1, pools = i >> 2 & 1, waits = !named || i >> 3 & 1, kind = i >> 4;
    DLDevice on = kind == PINNED_MEMORY ? t_device(G.pinned, 0) : DEV(device);
    void *stream = gpu_stream(device, 1), *data = NULL;
    gpu_state before = gpu_now();
    G.ctl(STANDIN_POOLS, pools, 0, NULL);
    G.ctl(STANDIN_FREE_WAITS, waits, 0, NULL);
    WORKS(dlrs_mem_alloc(on, 64, 0, kind == POOL_MEMORY ? stream : NULL, &data, ERR));
    gpu_copy(device, stream, data, VALUES, sizeof VALUES);
    WORKS(dlrs_mem_free(on, data, 64, 0, named ? stream : NULL, ERR));
    EQUAL(gpu_sync(device, stream), 0);
    if (!SAME(before)) printf("device %d, kind %d, stream %d, pools %d\n", device, kind, named, pools);
    gpu_stream_free(device, stream);
  }
  G.ctl(STANDIN_DEFAULTS, 0, 0, NULL);
}

static void d26(void) {
  gpu_tensor src;
  DLManagedTensorVersioned *out;
  int64_t zero = 0;
  gpu_make(&src, 0);
  DLTensor empty = t_describe(NULL, F32, 1, &zero, NULL);
  empty.device = DEV(0);
  DLTensor other = empty;
  long before = G.standin ? copies() : 0;
  WORKS(dlrs_copy_desc(&empty, 0, &other, 0, NULL, ERR));
  other.device = CPU;
  WORKS(dlrs_copy_desc(&empty, 0, &other, 0, NULL, ERR));
  src.shape[1] = 0;
  WORKS(dlrs_clone(&src.managed, CPU, NULL, &out, ERR));
  CHECK(out->dl_tensor.data == NULL);
  dlrs_release(out);
  WORKS(dlrs_clone(&src.managed, DEV(0), NULL, &out, ERR));
  CHECK(out->dl_tensor.data == NULL && out->dl_tensor.device.device_type == (DLDeviceType)G.type);
  dlrs_release(out);
  if (G.standin) EQUAL(copies(), before);
  gpu_drop(&src);
}

/* When a device's data is ready on the host. */
static void d27(void) {
  for (int pinned = 0; pinned < 2; ++pinned) {
    for (int async = 0; async < 2; ++async) {
      for (long seed = 0; seed < (G.standin ? 10 : 1); ++seed) {
        gpu_tensor src;
        t_tensor dst;
        if (G.standin) G.ctl(STANDIN_SEED, seed, 0, NULL);
        gpu_make(&src, 0);
        t_make(&dst);
        void *stream = gpu_stream(0, 1);
        float *into = pinned ? (float *)gpu_pinned(24) : dst.values;
        memset(into, 0, 24);
        dst.managed.dl_tensor.data = into;
        if (pinned) dst.managed.dl_tensor.device = t_device(G.pinned, 0);
        dlrs_copy_options options = gpu_options(stream, NULL, async ? DLRS_COPY_ASYNC : 0);
        gpu_fill(0, stream, src.data, 0x41, 24); /* the copy must come after this */
        WORKS(dlrs_copy(&src.managed, &dst.managed, &options, ERR));
        if (async && pinned) WORKS(dlrs_stream_sync(DEV(0), stream, ERR));
        if (async && !pinned) EQUAL(gpu_sync(0, stream), 0);
        for (int i = 0; i < 24; ++i) CHECK(((unsigned char *)into)[i] == 0x41);
        if (pinned) gpu_pinned_free(into);
        gpu_stream_free(0, stream);
        gpu_drop(&src);
      }
    }
  }
}

/* Order with a gate, on a stand-in and on hardware: a function of the host holds a stream back until the
 * call has returned. Then the source is written after the call (hazard 0), or the destination read. */
static void gate(void *open) {
  while (!__atomic_load_n((int *)open, __ATOMIC_ACQUIRE)) sched_yield();
}

static void gated(int from, int to, int src_on, int dst_on, int hazard, int way) {
  enum { ROWS_N = 8, COLUMNS_N = 24, BYTES = ROWS_N * COLUMNS_N };
  static void *streams[STANDIN_DEVICES_MAX][2];
  static unsigned char *pinned[3], *blocks[8][2]; /* the new bytes, the old ones, what was read */
  unsigned char got[BYTES], was[BYTES], will[BYTES];
  int open = 0, last = gpu_count() - 1, src_device = from < 0 ? 0 : from, dst_device = to < 0 ? 0 : to;
  if (pinned[0] == NULL) {
    for (int i = 0; i <= last; ++i) streams[i][0] = gpu_stream(i, 1), streams[i][1] = gpu_stream(i, 1);
    for (int i = 0; i < 3; ++i) pinned[i] = (unsigned char *)gpu_pinned(BYTES);
    for (int place = PINNED_HOST; place <= last; ++place) {
      for (int i = 0; i < 2; ++i) blocks[place - PINNED_HOST][i] = (unsigned char *)room(place, BYTES);
    }
  }
  memset(will, 0x42, BYTES);
  memset(was, 0x24, BYTES);
  memcpy(pinned[0], will, BYTES);
  unsigned char *src = blocks[from - PINNED_HOST][0], *dst = blocks[to - PINNED_HOST][1];
  void *reads = src_on ? streams[src_device][0] : NULL, *writes = dst_on ? streams[dst_device][dst_on - 1] : NULL;
  int64_t shape[2] = {ROWS_N, COLUMNS_N}, across[2] = {1, ROWS_N}, dense[2] = {COLUMNS_N, 1};
  DLTensor a = t_describe(src, U8, 2, shape, way == 1 ? across : dense), b = t_describe(dst, U8, 2, shape, dense);
  a.device = device_at(from);
  b.device = device_at(to);
  DLManagedTensorVersioned one = t_managed(a, 0), two = t_managed(b, 0);
  const DLManagedTensorVersioned *sources[] = {&one};
  DLManagedTensorVersioned *targets[] = {&two};
  dlrs_copy_options options = gpu_options(reads, writes, DLRS_COPY_ASYNC);
  for (int warm = 1; warm >= 0; --warm) { /* kernels are loaded before a stream is held back */
    put(from, src, warm || hazard ? will : was, BYTES);
    put(to, dst, was, BYTES);
    int device = hazard ? dst_device : src_device;
    void *held = hazard ? writes : reads;
    if (!warm) {
      gpu_host(device, held, gate, &open);
      gpu_copy(device, held, hazard ? pinned[2] : src, hazard ? dst : pinned[0], BYTES);
    }
    if (way < 2) WORKS(dlrs_copy(&one, &two, &options, ERR));
    else WORKS(dlrs_copy_batch(1, sources, targets, &options, NULL, ERR));
    if (!warm) {
      get(to, got, dst, BYTES);
      CHECK(memcmp(got, was, BYTES) == 0);
    }
    __atomic_store_n(&open, !warm, __ATOMIC_RELEASE);
    EQUAL(gpu_sync(dst_device, writes), 0);
    EQUAL(gpu_sync(src_device, reads), 0);
  }
  get(to, got, dst, BYTES);
  int right = CHECK(memcmp(got, will, BYTES) == 0);
  if (hazard) right &= CHECK(memcmp(pinned[2], was, BYTES) == 0);
  if (!right) printf("from %d on %d to %d on %d, hazard %d, way %d\n", from, src_on, to, dst_on, hazard, way);
}

static void d27_gated(void) {
  int last = gpu_count() - 1;
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

/* ---- Kinds of memory, flags -----------------------------------------------------------------*/

static void d28(void) {
  dlrs_pointer_info info;
  DLManagedTensorVersioned *out;
  t_tensor host;
  float *data = (float *)gpu_managed(0, 24), *pinned = (float *)gpu_pinned(24);
  memset(&info, 0, sizeof info);
  info.struct_size = sizeof info;
  t_make(&host);
  WORKS(dlrs_pointer_device(G.type, data, &info, ERR));
  EQUAL(info.device.device_type, G.managed ? G.managed : G.type);
  if (G.managed) EQUAL(info.device.device_id, 0);
  WORKS(dlrs_pointer_device(G.type, pinned, &info, ERR));
  EQUAL(info.device.device_type, G.pinned);
  EQUAL(info.device.device_id, 0);
  for (int device = 0; device < gpu_count(); ++device) {
    void *there = NULL;
    WORKS(dlrs_mem_alloc(DEV(device), 1000, 64, NULL, &there, ERR));
    WORKS(dlrs_pointer_device(G.type, (char *)there + 10, &info, ERR));
    EQUAL(info.device.device_type, G.type);
    EQUAL(info.device.device_id, device);
    CHECK(info.base == there);
    EQUAL(info.nbytes, 1000);
    WORKS(dlrs_mem_free(DEV(device), there, 1000, 64, NULL, ERR));
  }
  WORKS(dlrs_pointer_device(G.type, &host, &info, ERR));
  EQUAL(info.device.device_type, kDLCPU);
  if (G.managed) {
    memcpy(data, VALUES, 24);
    host.managed.dl_tensor.data = data;
    host.managed.dl_tensor.device = t_device(G.managed, 0);
    WORKS(dlrs_clone(&host.managed, CPU, NULL, &out, ERR));
    CHECK(gpu_holds(&out->dl_tensor, VALUES));
    dlrs_release(out);
    WORKS(dlrs_clone(&host.managed, t_device(G.managed, 0), NULL, &out, ERR));
    EQUAL(out->dl_tensor.device.device_type, G.managed);
    EQUAL(out->dl_tensor.device.device_id, 0);
    dlrs_release(out);
  }
  gpu_managed_free(0, data);
  gpu_pinned_free(pinned);
}

/* New memory of each kind, and copies between all of them. */
static void d28_pairs(void) {
  DLDevice devices[4];
  int n = 0;
  t_tensor host;
  t_make(&host);
  devices[n++] = CPU;
  devices[n++] = DEV(0);
  devices[n++] = t_device(G.pinned, 0);
  if (G.managed) devices[n++] = t_device(G.managed, 0);
  for (int i = 0; i < n; ++i) {
    for (int j = 0; j < n; ++j) {
      DLManagedTensorVersioned *one, *two, *back;
      WORKS(dlrs_clone(&host.managed, devices[i], NULL, &one, ERR));
      WORKS(dlrs_clone(one, devices[j], NULL, &two, ERR));
      EQUAL(two->dl_tensor.device.device_type, devices[j].device_type);
      WORKS(dlrs_clone(two, CPU, NULL, &back, ERR));
      CHECK(memcmp(back->dl_tensor.data, VALUES, sizeof VALUES) == 0);
      dlrs_release(one);
      dlrs_release(two);
      dlrs_release(back);
    }
  }
  if (G.standin) {
    standin_stats_t now = gpu_now().stats;
    EQUAL(now.device_blocks + now.managed, 0);
  }
}

static void d29(void) {
  DLManagedTensorVersioned *out;
  t_tensor host;
  if (gpu_count() < 2) {
    gpu_left_out = 1;
    return;
  }
  t_make(&host);
  gpu_set_current(0, 0);
  WORKS(dlrs_clone(&host.managed, DEV(1), NULL, &out, ERR));
  dlrs_release(out); /* a stand-in counts frees with the wrong device current */
  WORKS(dlrs_clone(&host.managed, DEV(0), NULL, &out, ERR));
  gpu_set_current(1, 0);
  dlrs_release(out);
  if (G.standin) EQUAL(gpu_now().stats.device_blocks, 0);
}

static void d30(void) {
  DLManagedTensorVersioned *out, *again;
  gpu_tensor src;
  int last = gpu_count() - 1;
  gpu_make(&src, 0);
  src.managed.flags = DLPACK_FLAG_BITMASK_READ_ONLY;
  src.shape[0] = 3;
  src.shape[1] = 2;
  src.strides[0] = 1;
  src.strides[1] = 3;
  WORKS(dlrs_clone(&src.managed, DEV(last), NULL, &out, ERR));
  static const float transposed[6] = {0, 3, 1, 4, 2, 5};
  EQUAL(out->flags, DLPACK_FLAG_BITMASK_IS_COPIED);
  EQUAL(out->dl_tensor.device.device_type, G.type);
  EQUAL(out->dl_tensor.device.device_id, last);
  EQUAL(out->dl_tensor.strides[0], 2);
  EQUAL(out->dl_tensor.strides[1], 1);
  EQUAL(out->dl_tensor.byte_offset, 0);
  EQUAL((uintptr_t)out->dl_tensor.data % 256, 0);
  EQUAL(out->version.major, 1);
  CHECK(gpu_holds(&out->dl_tensor, transposed));
  WORKS(dlrs_to_device(out, DEV(last), 0, NULL, &again, ERR));
  CHECK(again->dl_tensor.data == out->dl_tensor.data); /* it is already loaded */
  dlrs_release(again);
  WORKS(dlrs_to_device(out, DEV(last), 1, NULL, &again, ERR));
  CHECK(again->dl_tensor.data != out->dl_tensor.data);
  dlrs_release(again);
  dlrs_release(out);
  gpu_drop(&src);
}

static void d31(void) {
  int32_t n = 5;
  DLManagedTensorVersioned *out;
  int64_t two = 2;
  NEEDS_STANDIN();
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
  t_tensor host;
  int status;
  t_make(&host);
  WORKS(dlrs_clone(&host.managed, DEV(0), NULL, &there, ERR));
  fflush(stdout);
  pid_t child = fork();
  if (child == 0) {
    long before = G.standin ? calls() : 0;
    int32_t n, bad = 0;
    bad |= dlrs_device_count(G.type, &n, ERR) != DLRS_FORKED;
    bad |= (dlrs_clone(&host.managed, DEV(0), NULL, &out, ERR) != DLRS_FORKED) << 1;
    bad |= (dlrs_copy(there, &host.managed, NULL, ERR) != DLRS_FORKED) << 2;
    bad |= (dlrs_clone(&host.managed, CPU, NULL, &out, ERR) != DLRS_OK) << 3;
    void *data = NULL;
    bad |= (dlrs_mem_alloc(DEV(0), 1000, 64, NULL, &data, ERR) != DLRS_FORKED) << 5;
    dlrs_release(out);
    dlrs_release(there); /* leaks quietly */
    bad |= (G.standin && calls() != before) << 4;
    _exit(bad);
  }
  waitpid(child, &status, 0);
  EQUAL(status, 0);
  WORKS(dlrs_copy(there, &host.managed, NULL, ERR));
  dlrs_release(there);
}

static DLManagedTensorVersioned *left;

/* Runs after the row has ended; the exit status reports whether the state is as expected. */
static void at_exit(void) {
  t_tensor host;
  t_make(&host);
  if (G.standin) G.ctl(STANDIN_EXITING, 1, 0, NULL);
  int32_t status = dlrs_copy(left, &host.managed, NULL, NULL);
  dlrs_release(left);
  _exit(!G.standin || status == DLRS_SHUTDOWN ? 0 : 43);
}

static void d33(void) {
  t_tensor host;
  t_make(&host);
  WORKS(dlrs_clone(&host.managed, DEV(0), NULL, &left, ERR));
  atexit(at_exit);
}

/* The driver never completes the work: queries report that, and other calls continue. */
static void z15(void) {
  gpu_tensor src, dst;
  t_tensor host;
  uint64_t waiting = 0;
  DLManagedTensorVersioned *held = &host.managed;
  NEEDS_STANDIN();
  t_make(&host);
  gpu_make(&src, 0);
  gpu_make(&dst, 0);
  void *stream = gpu_stream(0, 1);
  dlrs_copy_options later = gpu_options(stream, stream, DLRS_COPY_ASYNC);
  WORKS(dlrs_copy(&src.managed, &dst.managed, NULL, ERR));
  G.ctl(STANDIN_HANG, 1, 0, NULL);
  WORKS(dlrs_copy(&src.managed, &dst.managed, &later, ERR));
  WORKS(dlrs_release_after_take(&held, DEV(0), stream, ERR));
  WORKS(dlrs_release_drain(&waiting, ERR));
  EQUAL(waiting, 1);
  WORKS(dlrs_release_drain(&waiting, ERR));
  EQUAL(waiting, 1);
  G.ctl(STANDIN_HANG, 0, 0, NULL);
  WORKS(dlrs_stream_sync(DEV(0), stream, ERR));
  WORKS(dlrs_release_drain(&waiting, ERR));
  EQUAL(waiting, 0);
  gpu_stream_free(0, stream);
  gpu_drop(&src);
  gpu_drop(&dst);
}

static void z14(void) {
  gpu_tensor src;
  t_tensor dst;
  NEEDS_STANDIN();
  gpu_make(&src, 0);
  t_make(&dst);
  WORKS(dlrs_copy(&src.managed, &dst.managed, NULL, ERR));
  G.ctl(STANDIN_CTX_LOST, 0, 709, NULL);
  FAILS(DLRS_CTX_LOST, 709, dlrs_copy(&src.managed, &dst.managed, NULL, ERR));
  EQUAL(gpu_now().stats.depth, 0);
}

/* Registered host memory. */
static void registered(void) {
  static char memory[8192];
  dlrs_pointer_info info;
  memset(&info, 0, sizeof info);
  info.struct_size = sizeof info;
  WORKS(dlrs_mem_register_host(G.type, memory, sizeof memory, ERR));
  WORKS(dlrs_pointer_device(G.type, memory + 100, &info, ERR));
  EQUAL(info.device.device_type, G.pinned);
  FAILS(DLRS_BAD_ARG, 712, dlrs_mem_register_host(G.type, memory, sizeof memory, ERR));
  WORKS(dlrs_mem_unregister_host(G.type, memory, ERR));
  FAILS(DLRS_BAD_ARG, 713, dlrs_mem_unregister_host(G.type, memory, ERR));
  REFUSED(DLRS_NULL_ARG, 2, ANY, -1, dlrs_mem_register_host(G.type, NULL, 8, ERR));
}

/* Queries of small copies about the current context: a primary one is recognised by the first; any
 * other is queried once, and its device each time. */
static void asked(int own, long devices, long primaries) {
  gpu_tensor a, b;
  dlrs_copy_options options = gpu_options(NULL, NULL, DLRS_COPY_ASYNC);
  gpu_make(&a, 0);
  gpu_make(&b, 0);
  gpu_set_current(0, own);
  for (int i = 0; i < 3; ++i) {
    G.calls(NULL);
    WORKS(dlrs_copy(&a.managed, &b.managed, &options, ERR));
    EQUAL(G.calls("cuCtxGetDevice"), i == 0 ? 1 : devices);
    EQUAL(G.calls("cuDevicePrimaryCtxGetState"), i == 0 ? primaries : 0);
    EQUAL(G.calls("cuDevicePrimaryCtxRetain"), i == 0 ? primaries : 0);
    EQUAL(G.calls("cuCtxPushCurrent_v2"), 0);
  }
  EQUAL(gpu_sync(0, NULL), 0);
  gpu_drop(&a);
  gpu_drop(&b);
}

/* The driver calls, in order, of a small copy that is only enqueued: what is current, the stream's
 * owner, the devices of the addresses, and the copy. docs/devices.md has their numbers. */
static void cost(void) {
#define CUDA "cuCtxGetCurrent cuStreamGetCtx "
#define AT "cuPointerGetAttribute "
#define HIP_AT "hipPointerGetAttributes "
#define HIP "hipGetDevice hipStreamGetDevice "
#define EVENT "hipGetDevice hipEventCreateWithFlags hipEventRecord hipEventDestroy " /* which finds a stream's device */
  static const struct {
    int current, handle, from, to; /* current: the device, another one, none (-1) */
    const char *cuda, *hip, *hip5;
  } all[] = {
      {0, 1, -1, 0, CUDA AT "cuMemcpyAsync ", HIP HIP_AT "hipMemcpyAsync ", "hipGetDevice " HIP_AT "hipMemcpyAsync "},
      {0, 1, -2, 0, CUDA AT "cuMemcpyAsync ", HIP HIP_AT "hipMemcpyAsync ", "hipGetDevice " HIP_AT "hipMemcpyAsync "},
      {0, 1, 0, -1, CUDA AT "cuMemcpyAsync ", HIP HIP_AT "hipMemcpyAsync ", "hipGetDevice " HIP_AT "hipMemcpyAsync "},
      {0, 1, 0, -2, CUDA AT "cuMemcpyAsync ", HIP HIP_AT "hipMemcpyAsync ", EVENT HIP_AT "hipMemcpyAsync "},
      {0, 1, 0, 0, CUDA AT AT "cuMemcpyAsync ", HIP HIP_AT HIP_AT "hipMemcpyAsync ",
       "hipGetDevice " HIP_AT HIP_AT "hipMemcpyAsync "},
      {0, 0, -2, 0, "cuCtxGetCurrent " AT "cuMemcpyAsync ", "hipGetDevice " HIP_AT "hipMemcpyAsync ",
       "hipGetDevice " HIP_AT "hipMemcpyAsync "},
      {1, 1, -1, 0, CUDA "cuCtxPushCurrent_v2 " AT "cuMemcpyAsync cuCtxPopCurrent_v2 ",
       HIP "hipSetDevice " HIP_AT "hipMemcpyAsync hipSetDevice ",
       "hipGetDevice hipSetDevice " HIP_AT "hipMemcpyAsync hipSetDevice "},
      {1, 1, 0, 0, CUDA "cuCtxPushCurrent_v2 " AT AT "cuMemcpyAsync cuCtxPopCurrent_v2 ",
       HIP "hipSetDevice " HIP_AT HIP_AT "hipMemcpyAsync hipSetDevice ",
       "hipGetDevice hipSetDevice " HIP_AT HIP_AT "hipMemcpyAsync hipSetDevice "},
      {-1, 1, -1, 0, "cuCtxGetCurrent cuCtxPushCurrent_v2 cuStreamGetCtx " AT "cuMemcpyAsync cuCtxPopCurrent_v2 ", NULL, NULL},
      {-1, 1, 0, 0, "cuCtxGetCurrent cuCtxPushCurrent_v2 cuStreamGetCtx " AT AT "cuMemcpyAsync cuCtxPopCurrent_v2 ", NULL, NULL},
  };
  NEEDS_STANDIN();
  void *stream = gpu_stream(0, 1);
  for (size_t i = 0; i < sizeof all / sizeof *all; ++i) {
    const char *want = G.hip == 5 ? all[i].hip5 : G.hip ? all[i].hip : all[i].cuda;
    int64_t n = 100;
    char calls[512];
    void *src = room(all[i].from, 100), *dst = room(all[i].to, 100), *on = all[i].handle ? stream : NULL;
    DLTensor from = t_describe(src, U8, 1, &n, NULL), to = t_describe(dst, U8, 1, &n, NULL);
    from.device = device_at(all[i].from);
    to.device = device_at(all[i].to);
    dlrs_copy_options options = gpu_options(from.device.device_type == kDLCPU ? NULL : on,
                                            to.device.device_type == kDLCPU ? NULL : on, DLRS_COPY_ASYNC);
    gpu_set_current(0, 0);
    WORKS(dlrs_copy_desc(&from, 0, &to, 0, &options, ERR)); /* the primary context is known */
    gpu_set_current(all[i].current, 0);
    for (int again = 0; want && again < 2; ++again) {
      G.calls(NULL);
      WORKS(dlrs_copy_desc(&from, 0, &to, 0, &options, ERR));
      G.log(calls, sizeof calls);
      for (char *c = calls; *c; ++c) *c = *c == '\n' ? ' ' : *c;
      if (!CHECK(strcmp(calls, want) == 0)) printf("row %d: %s\n", (int)i, calls);
    }
    gpu_set_current(-1, 0);
    EQUAL(gpu_sync(0, on), 0);
    leave(all[i].from, src);
    leave(all[i].to, dst);
  }
  gpu_stream_free(0, stream);
}

static void asked_primary(void) {
  NEEDS_STANDIN();
  if (G.hip) return;
  gpu_start();
  asked(0, 0, 1);
  asked(1, 1, 0); /* not the retained one */
}

static void asked_own(void) {
  NEEDS_STANDIN();
  if (G.hip) return;
  gpu_start();
  asked(1, 1, 1);
}

static const gpu_row rows[] = {
    {"D02", "stub, old driver", d02},
    {"D03", "the driver does not start, and later does", d03},
    {"D04", "device_id out of range", d04},
    {"D07", "pointer of another device", d07},
    {"D08", "pointer of the host's heap", d08},
    {"D09", "extent leaves the allocation", d09},
    {"D10", "K01-K07, K10, K11, K29 on the device", d10},
    {"K11", "overlap with permission, on the device", k11},
    {"D11", "all kinds of strides and elements", d11},
    {"D11", "many dimensions in one launch", d11_many},
    {"D11", "pieces of a copy through pinned buffers", d11_pieces},
    {"D11", "large matrices, few channels, many bytes", d11_faces},
    {"D11", "whose threads", d11_threads},
    {"D11/Z12", "the same, no kernel can be loaded", d11_no_kernels},
    {"D11", "a driver that refuses the kernels is asked once", d11_asked_once},
    {"D11", "a program that cannot be compiled", d11_not_compiled},
    {"D11", "a driver without memory for the kernels is asked again", d11_asked_again},
    {"D11", "a family of kernels is loaded once", d11_families},
    {"D11", "kernels on the oldest driver", d11_oldest},
    {"D11", "pitch over the driver's limit", d11_pitch},
    {"D12", "extents that overflow", d12},
    {"D13", "streams 0, 1, 2, -1", d13},
    {"D14", "stream of another device", d14},
    {"D15", "destroyed stream", d15},
    {"-", "HIP's last error", last_error},
    {"D16", "capturing streams", d16},
    {"D16", "earlier work next to a capture", d16_others},
    {"D16", "pinned buffers next to a capture", d16_staged},
    {"D16", "release after a capturing stream", d16_release},
    {"D16", "legacy stream next to a capture", d16_legacy},
    {"D17", "the current context or device", d17},
    {"D17", "memory of another context", d17_other_context},
    {"D17", "a process on one device leaves the others alone", d17_one_device},
    {"D17", "another process has device 0 for itself", d17_exclusive},
    {"D17", "green contexts", d17_green},
    {"D18", "no context: retained once", d18},
    {"D18", "driver calls of a small copy", cost},
    {"D18", "the primary context is recognised", asked_primary},
    {"D18", "a context of the caller's is asked about once", asked_own},
    {"D19", "out of device memory", d19},
    {"D20", "no pinned memory", d20},
    {"D21", "with and without peer access", d21},
    {"D21", "two devices, all kinds of memory and layouts", d21_kinds},
    {"D21", "the same, and the driver's call between devices is refused", d21_refused},
    {"D22", "error of earlier work", d22},
    {"D23", "error after the call", d23},
    {"D24", "source kept alive", d24},
    {"D24", "nothing is released early", d24_waits},
    {"D25", "result released early", d25},
    {"D25", "freed while work is pending", d25_pending},
    {"D26", "size 0", d26},
    {"D27", "when data is ready", d27},
    {"D27", "order, by streams that are held back", d27_gated},
    {"D28", "managed and pinned memory", d28},
    {"D28", "all pairs of kinds of memory", d28_pairs},
    {"D28", "registered memory: whole, in pieces, in part, with a hole", d28_registered},
    {"D28", "streams of any device for pinned memory", d28_streams},
    {"D29", "freed on its own device", d29},
    {"D30", "flags and layout of a copy", d30},
    {"D31", "no device", d31},
    {"D32", "after fork", d32},
    {"D33", "during exit", d33},
    {"Z14", "context destroyed by somebody else", z14},
    {"Z15", "a driver that hangs", z15},
    {"-", "registered memory", registered},
};

int main(int argc, char **argv) {
  if (argc < 2 || !gpu_open(argv[1])) {
    puts("usage: catalogue_d cuda|rocm [--list [ROW] | --random SECONDS]: and its driver must be found");
    return 2;
  }
  if (argc > 3 && strcmp(argv[2], "--random") == 0) {
    random_seconds = atoi(argv[3]);
    gpu_run(&(gpu_row){"D11", "random copies", d11_random});
    return gpu_end();
  }
  for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) {
    if (argc > 3 && strcmp(argv[3], rows[i].id) != 0) continue;
    if (argc > 2) printf("%s %s: %s\n", G.name, rows[i].id, rows[i].what);
    gpu_run(&rows[i]);
  }
  return gpu_end();
}
