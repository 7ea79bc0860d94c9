/* Rows D11, D18, D20, D21 and D28: the bytes of copies, by which calls of the driver. */
#include "catalogue_d.h"
#include "../by_bit.h"
#include "../scattered.h"

#include <time.h>

#define LOADS VENDOR("ModuleLoadData")

/* ---- Layouts --------------------------------------------------------------------------------*/

enum { ROOM = 1 << 14 };

static void put(int place, void *dst, const void *src, size_t nbytes) {
  if (place >= 0) gpu_write(place, dst, src, nbytes);
  else memcpy(dst, src, nbytes);
}

static void get(int place, void *dst, const void *src, size_t nbytes) {
  if (place >= 0) gpu_read(place, dst, src, nbytes);
  else memcpy(dst, src, nbytes);
}

/* Between two places, all kinds of elements and strides, with surrounding bytes. */
static void layouts(int from, int to, int rounds) {
  static unsigned char seed[ROOM], want[ROOM], got[ROOM];
  static const int widths[] = {8, 16, 32, 64, 128, 24, 96, 4, 6, 800};
  unsigned char *src = (unsigned char *)gpu_room(from, ROOM), *dst = (unsigned char *)gpu_room(to, ROOM);
  while (rounds-- > 0) {
    int bits = widths[below(10)], ndim = (int)below(6), i;
    DLDataType dtype = bits == 4   ? t_dtype(kDLFloat4_e2m1fn, 4, 1)
                       : bits == 6 ? t_dtype(kDLFloat6_e2m3fn, 6, 1)
                                   : t_dtype(kDLUInt, 8, bits / 8);
    int64_t shape[6], a[6], b[6];
    uint64_t a_offset, b_offset;
    for (i = 0; i < ndim; ++i) shape[i] = below(below(4) ? 6 : 40) + (below(20) != 0);
    if (!scattered(ndim, shape, bits, 1, ROOM, a, &a_offset)) continue;
    if (!scattered(ndim, shape, bits, 0, ROOM, b, &b_offset)) continue;
    for (i = 0; i < ROOM; ++i) seed[i] = (unsigned char)below(256), want[i] = (unsigned char)below(256);
    put(from, src, seed, ROOM);
    put(to, dst, want, ROOM);
    DLTensor one = gpu_tensor_at(from, src, dtype, ndim, shape, a), other = gpu_tensor_at(to, dst, dtype, ndim, shape, b);
    one.byte_offset = a_offset;
    other.byte_offset = b_offset;
    copy_by_bit(ndim, shape, bits, seed, (int64_t)a_offset * 8, a, want, (int64_t)b_offset * 8, b);
    if (!WORKS(dlrs_copy_desc(&one, 0, &other, 0, NULL, ERR))) continue;
    get(to, got, dst, ROOM);
    if (!CHECK(memcmp(got, want, ROOM) == 0)) {
      printf("bits %d, ndim %d, from %d to %d:", bits, ndim, from, to);
      for (i = 0; i < ndim; ++i) printf(" %lld/%lld/%lld", (long long)shape[i], (long long)a[i], (long long)b[i]);
      puts("");
    }
  }
  gpu_leave(from, src);
  gpu_leave(to, dst);
}

/* Transposes that fill tiles, images of a few channels, and enough bytes for several threads and pieces. */
void turned(int from, int to, int bytes, int64_t planes, int64_t rows, int64_t columns, int64_t gap) {
  int64_t pitch = columns + gap, back = rows + gap;
  size_t n = (size_t)(planes * back * pitch * bytes);
  unsigned char *seed = (unsigned char *)malloc(n), *want = (unsigned char *)malloc(n), *got = (unsigned char *)malloc(n);
  unsigned char *src = (unsigned char *)gpu_room(from, n), *dst = (unsigned char *)gpu_room(to, n);
  for (size_t at = 0; at < n; ++at) seed[at] = (unsigned char)(at * 2654435761u >> 13);
  memset(want, 0xEE, n);
  for (int64_t at = 0; at < planes * rows * columns; ++at) {
    int64_t k = at / columns / rows, i = at / columns % rows, j = at % columns;
    memcpy(want + ((k * columns + j) * back + i) * bytes, seed + ((k * rows + i) * pitch + j) * bytes, (size_t)bytes);
  }
  int64_t shape[3] = {planes, columns, rows}, across[3] = {rows * pitch, 1, pitch}, down[3] = {columns * back, back, 1};
  DLDataType dtype = t_dtype(kDLUInt, 8, (uint16_t)bytes);
  DLTensor one = gpu_tensor_at(from, src, dtype, 3, shape, across), other = gpu_tensor_at(to, dst, dtype, 3, shape, down);
  put(to, dst, want, n);
  put(from, src, seed, n);
  WORKS(dlrs_copy_desc(&one, 0, &other, 0, NULL, ERR));
  get(to, got, dst, n);
  if (!CHECK(memcmp(got, want, n) == 0)) {
    printf("%d bytes, %lld x %lld x %lld, gap %lld, from %d to %d\n", bytes, (long long)planes, (long long)rows,
           (long long)columns, (long long)gap, from, to);
  }
  gpu_leave(from, src);
  gpu_leave(to, dst);
  free(seed), free(want), free(got);
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

static void d11_large(void) {
  static const int64_t shapes[][3] = {{2, 300, 170}, {1, 256, 256}, {3, 700, 3}, {2, 3, 1500}, {1, 5, 300}, {1, 130, 7}};
  for (int gap = 0; gap < 2; ++gap) {
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; ++i) {
      for (int bytes = 1; bytes <= 16; bytes *= 2) turned(0, 0, bytes, shapes[i][0], shapes[i][1], shapes[i][2], gap);
    }
    turned(PLAIN_HOST, 0, 4, 1, 1500, 1500, gap);
    turned(0, PLAIN_HOST, 4, 1, 1500, 1500, gap);
    turned(PLAIN_HOST, 0, 4, 1, 2200000, 1, gap);
    turned(0, PLAIN_HOST, 4, 1, 1, 2200000, gap);
  }
}

/* Copies of all sizes between all places, with the CPU as the oracle, for so many seconds. */
static int random_seconds;

static void d11_random(void) {
  int first = G.managed ? MANAGED_HOST : PINNED_HOST, places = gpu_count() - first;
  for (time_t end = time(NULL) + random_seconds; time(NULL) < end;) {
    int from = first + (int)below(places), to = first + (int)below(places), most = G.standin ? 9 : 12;
    layouts(from, to, 5);
    turned(from, to, 1 << below(5), 1 + below(3), 1 + below(1 << below(most)), 1 + below(1 << below(most)), below(3));
  }
}

void random_copies(int seconds) {
  random_seconds = seconds;
  gpu_run(&(gpu_row){"D11", "random copies", d11_random, 0});
}

/* Many dimensions, none of which can be merged: a single launch. */
static void d11_many(void) {
  enum { NDIM = 16, NBYTES = 1 << NDIM };
  static unsigned char bytes[NBYTES], want[NBYTES], got[NBYTES];
  int64_t shape[NDIM], up[NDIM], down[NDIM];
  for (int i = 0; i < NDIM; ++i) {
    shape[i] = 2;
    up[i] = (int64_t)1 << i;
    down[i] = NBYTES / 2 >> i;
  }
  for (int i = 0; i < NBYTES; ++i) bytes[i] = (unsigned char)below(256);
  void *src = gpu_alloc(0, NBYTES), *dst = gpu_alloc(0, NBYTES);
  gpu_write(0, src, bytes, NBYTES);
  DLTensor from = gpu_tensor_at(0, src, U8, NDIM, shape, up), to = gpu_tensor_at(0, dst, U8, NDIM, shape, down);
  long launches = G.standin ? G.calls(LAUNCH) : 0;
  WORKS(dlrs_copy_desc(&from, 0, &to, 0, NULL, ERR));
  if (G.standin) EQUAL(G.calls(LAUNCH) - launches, 1);
  gpu_read(0, got, dst, NBYTES);
  copy_by_bit(NDIM, shape, 8, bytes, 0, up, want, 0, down);
  CHECK(memcmp(got, want, NBYTES) == 0);
}

/* ---- Through pinned buffers -------------------------------------------------------------------*/

enum { ROWS = 4000, COLUMNS = 2200, BIG = ROWS * COLUMNS };
static struct {
  unsigned char *bytes, *host;
  DLTensor here, there;
} big;

void big_make(void) {
  static int64_t shape[] = {ROWS, COLUMNS}, across[] = {1, ROWS}, down[] = {COLUMNS, 1};
  big.bytes = (unsigned char *)malloc(BIG);
  big.host = (unsigned char *)malloc(BIG);
  for (int i = 0; i < BIG; ++i) big.bytes[i] = (unsigned char)(i * 2654435761u >> 13);
  big.here = gpu_tensor_at(PLAIN_HOST, big.host, U8, 2, shape, across);
  big.there = gpu_tensor_at(0, gpu_alloc(0, BIG), U8, 2, shape, down);
}

void big_round(const dlrs_copy_options *up, const dlrs_copy_options *down) {
  memcpy(big.host, big.bytes, BIG);
  WORKS(dlrs_copy_desc(&big.here, 0, &big.there, 0, up, ERR));
  memset(big.host, 0, BIG); /* which is the caller's again */
  WORKS(dlrs_copy_desc(&big.there, 0, &big.here, 0, down, ERR));
  if (down->flags & DLRS_COPY_ASYNC) WORKS(dlrs_stream_sync(DEV(0), down->src_stream, ERR));
  CHECK(memcmp(big.host, big.bytes, BIG) == 0);
}

static size_t ran;

static int pool(void *context, size_t n, void (*body)(void *, size_t), void *of) {
  ran += n;
  if (context == NULL) return 1; /* not supported */
  for (size_t i = n; i-- > 0;) body(of, i);
  return 0;
}

/* The number of host threads is the one in the options, through pinned buffers too. */
static void d11_threads(void) {
  big_make();
  for (int turn = 0; turn < 4; ++turn) {
    dlrs_copy_options options = gpu_options(NULL, NULL, turn % 2 ? DLRS_COPY_ASYNC : 0);
    options.threads = turn == 0;
    if (turn > 1) options.parallel_for = pool;
    if (turn == 3) options.parallel_context = &ran;
    ran = 0;
    inject_threads(1);
    big_round(&options, &options);
    long refused = inject_threads(0);
    if (turn == 1) CHECK(refused > 0 || !inject_works());
    else if (G.standin) EQUAL(refused, 0); /* a driver may start threads */
    if (turn > 1) CHECK(ran >= 8);
  }
}

/* The pieces of a copy through the pinned buffers are of 2 MiB, and of an eighth where the bus would be
 * idle: one per thread at the start of a copy to the device, and at the end of one from it. The last
 * piece is small enough for one part. */
static void d11_pieces(void) {
  int64_t n = (7 * 512 + 64) * 4096;
  DLTensor a = gpu_tensor_at(PLAIN_HOST, gpu_room(PLAIN_HOST, (size_t)n), U8, 1, &n, NULL);
  DLTensor b = gpu_tensor_at(0, gpu_alloc(0, (size_t)n), U8, 1, &n, NULL);
  for (int i = 0; i < 8; ++i) {
    int up = i / 4, threads = 1 + i % 4;
    dlrs_copy_options options = gpu_options(NULL, NULL, 0);
    options.threads = (uint32_t)threads;
    options.parallel_for = pool;
    options.parallel_context = &ran;
    ran = 0;
    G.calls(NULL);
    WORKS(dlrs_copy_desc(up ? &a : &b, 0, up ? &b : &a, 0, &options, ERR));
    EQUAL(ran, threads == 1 ? 0 : threads);
    EQUAL(G.calls(VENDOR("MemcpyAsync")), 8 + (threads == 1 ? 0 : 7 * (up ? threads : threads - 1)));
  }
}

static void d20(void) {
  int64_t n = 5 << 20;
  G.ctl(STANDIN_FAIL_ALWAYS, 1, 2, G.hip ? "hipHostMalloc" : "cuMemHostAlloc");
  layouts(PLAIN_HOST, 0, 60);
  layouts(0, PLAIN_HOST, 60);
  DLManagedTensorVersioned *host, *there, *back;
  WORKS(dlrs_tensor_new(&n, 1, U8, CPU, NULL, &host, ERR));
  memset(host->dl_tensor.data, 7, (size_t)n);
  WORKS(dlrs_clone(host, DEV(0), NULL, &there, ERR));
  WORKS(dlrs_clone(there, CPU, NULL, &back, ERR));
  CHECK(memcmp(back->dl_tensor.data, host->dl_tensor.data, (size_t)n) == 0);
  dlrs_release(host);
  dlrs_release(there);
  dlrs_release(back);
}

/* ---- Kernels --------------------------------------------------------------------------------*/

/* No module can be loaded, so the copy uses another method. */
static void d11_no_kernels(void) {
  char text[256];
  G.ctl(STANDIN_FAIL_ALWAYS, 1, 209, LOADS);
  layouts(PLAIN_HOST, 0, 60);
  layouts(0, PLAIN_HOST, 60);
  layouts(0, 0, 60);
  layouts(1, 0, 60);
  set_up();
  gpu_turn(&A);
  WORKS(dlrs_copy(&A.managed, &B.managed, NULL, ERR));
  WORKS(dlrs_copy_explain(&A.managed.dl_tensor, 0, &B.managed.dl_tensor, 0, NULL, text, sizeof text, NULL, ERR));
  CHECK(strstr(text, "without kernels, which the driver has rejected") != NULL);
}

/* After the driver rejects the kernels, loading is tried once per family and device. */
static void d11_loaded_once(void) {
  static const char *const compiles = "hiprtcCompileProgram";
  for (int device = 0; device < 2; ++device) {
    G.ctl(STANDIN_FAIL_ALWAYS, 1, 209, LOADS);
    long before = G.calls(LOADS), compiled = G.calls(compiles);
    for (int i = 0; i < 5; ++i) turned(device, device, 4, 1, 100, 40, 1);
    EQUAL(G.calls(LOADS) - before, 1);
    if (G.hip) EQUAL(G.calls(compiles) - compiled, 1);
    turned(device, device, 2, 3, 700, 3, 1); /* another family */
    EQUAL(G.calls(LOADS) - before, 2);
  }
}

/* A program that cannot be compiled is destroyed. */
static void d11_not_compiled(void) {
  static const char *const calls[] = {"hiprtcCompileProgram", "hiprtcGetCode"};
  for (int i = 0; i < 2; ++i) {
    G.ctl(STANDIN_FAIL_ALWAYS, 1, 6, calls[i]);
    turned(i, i, 4, 1, 100, 40, 1);
    EQUAL(gpu_now().stats.modules, 0);
  }
}

/* A failure that may be temporary is not cached. */
static void d11_loaded_again(void) {
  set_up();
  gpu_turn(&A);
  G.ctl(STANDIN_FAIL, 1, 2, LOADS);
  t_before();
  CHECK(dlrs_copy(&A.managed, &B.managed, NULL, ERR) != DLRS_OK);
  WORKS(dlrs_copy(&A.managed, &B.managed, NULL, ERR));
  EQUAL(G.calls(LAUNCH), 1);
}

/* The first copy of a kind loads its family of kernels, the second loads nothing. */
static void d11_families(void) {
  static const int64_t shapes[5][3] = {{1, 100, 40}, {1, 20, 20}, {2, 700, 3}, {2, 3, 1500}, {1, 9, 3}};
  static const int loads[5] = {1, 2, 3, 3, 4};
  for (int i = 0; i < 10; ++i) {
    turned(0, 0, 8, shapes[i / 2][0], shapes[i / 2][1], shapes[i / 2][2], i < 4);
    EQUAL(G.calls(LOADS), loads[i / 2]);
  }
  EQUAL(gpu_now().stats.modules, 4);
}

/* The kernels run on the oldest supported driver. */
static void d11_oldest(void) {
  if (G.hip > 5) return; /* its memory type numbers differ by version */
  G.ctl(STANDIN_VERSION, G.hip ? 50000000 : 11000, 0, NULL);
  turned(0, 0, 4, 1, 100, 40, 1);
  EQUAL(G.calls(LAUNCH), 1);
  layouts(0, 0, 60);
  CHECK(G.calls(LAUNCH) > 20);
}

/* ---- Far apart --------------------------------------------------------------------------------*/

/* Rows farther apart than the driver's maximum pitch. */
static void d11_pitch(void) {
  int64_t far = (int64_t)5 << 29, shape[2] = {2, 4}, strides[2] = {far, 1};
  unsigned char got[8] = {0}, want[8] = {1, 2, 3, 4, 5, 6, 7, 8};
  G.ctl(STANDIN_MEMORY, 0, (long)6 << 30, NULL);
  unsigned char *data = (unsigned char *)gpu_alloc(0, (size_t)far + 4);
  gpu_write(0, data, want, 4);
  gpu_write(0, data + far, want + 4, 4);
  DLTensor from = gpu_tensor_at(0, data, U8, 2, shape, strides), to = t_describe(got, U8, 2, shape, NULL);
  WORKS(dlrs_copy_desc(&from, 0, &to, 0, NULL, ERR));
  CHECK(memcmp(got, want, 8) == 0);
  WORKS(dlrs_copy_desc(&to, 0, &from, 0, NULL, ERR));
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

/* Copies `data` in layout a of one place to layout b of another: the elements arrive, and nothing
 * around them changes. */
static int arrives(int from, void *src, const shaped *a, int to, void *dst, const shaped *b, const dlrs_copy_options *options) {
  static uint32_t want[SPACE / 4];
  int64_t shape[2] = {R, C}, strides[2][2] = {{a->strides[0], a->strides[1]}, {b->strides[0], b->strides[1]}};
  DLTensor one = gpu_tensor_at(from, src, F32, 2, shape, strides[0]), other = gpu_tensor_at(to, dst, F32, 2, shape, strides[1]);
  uint32_t *read = (uint32_t *)(void *)seen(src), *written = (uint32_t *)(void *)seen(dst);
  one.byte_offset = (uint64_t)a->first * 4;
  other.byte_offset = (uint64_t)b->first * 4;
  for (int i = 0; i < SPACE / 4; ++i) {
    read[i] = (uint32_t)below(1u << 31);
    want[i] = written[i] = ~read[i];
  }
  for (int64_t i = 0; i < R * C; ++i) want[at(b, i)] = read[at(a, i)];
  if (!WORKS(dlrs_copy_desc(&one, 0, &other, 0, options, ERR))) return 0;
  G.ctl(STANDIN_RUN, -1, 0, NULL);
  return CHECK(memcmp(written, want, SPACE) == 0);
}

/* Kinds of a device's memory. */
enum { PLAIN, POOL, OWN, KINDS };

static void *kind_new(int kind, int device, void *stream) {
  void *data = NULL;
  gpu_set_current(kind == OWN ? device : -1, kind == OWN);
  WORKS(dlrs_mem_alloc(DEV(device), SPACE, 0, kind == POOL ? stream : NULL, &data, ERR));
  gpu_set_current(-1, 0);
  if (kind == POOL) WORKS(dlrs_stream_sync(DEV(device), stream, ERR));
  return data;
}

/* All kinds of memory and layouts on both sides: the bytes arrive. `refusal` is the code of the driver's
 * copy between two devices, 0 if it succeeds. */
static void peers(int refusal) {
  const char *call = VENDOR("MemcpyPeerAsync");
  void *streams[2] = {gpu_stream(0, 1), gpu_stream(1, 1)}, *data[2][KINDS];
  int kinds = G.hip ? OWN : KINDS;
  for (int i = 0; i < 2 * kinds; ++i) data[i & 1][i >> 1] = kind_new(i >> 1, i & 1, streams[i & 1]);
  if (refusal) G.ctl(STANDIN_FAIL_ALWAYS, 1, refusal, call);
  for (int i = 0; i < kinds * kinds * LAYOUTS_N * LAYOUTS_N * 4; ++i) {
    int async = i & 1, to = i >> 1 & 1, rest = i >> 2;
    const shaped *a = &LAYOUTS[rest % LAYOUTS_N], *b = &LAYOUTS[rest / LAYOUTS_N % LAYOUTS_N];
    int kind = rest / LAYOUTS_N / LAYOUTS_N, dense = a == b && a == LAYOUTS;
    long calls = G.calls(call);
    dlrs_copy_options options = gpu_options(async ? streams[!to] : NULL, async ? streams[to] : NULL, async ? DLRS_COPY_ASYNC : 0);
    int ok = arrives(!to, data[!to][kind % kinds], a, to, data[to][kind / kinds], b, &options);
    if (dense && !refusal) ok &= EQUAL(G.calls(call) - calls, 1);
    if (!ok) printf("refusal %d, kinds %d to %d, layouts %d to %d, to %d, async %d\n", refusal, kind % kinds,
                    kind / kinds, (int)(a - LAYOUTS), (int)(b - LAYOUTS), to, async);
  }
  G.ctl(STANDIN_FAIL, 0, 0, NULL);
}

static void d21_kinds(void) {
  static const int refusals[] = {0, 1, 101, 217, 801};
  for (int i = 0; i < 5; ++i) peers(refusals[i]);
}

/* Compact on one device, transposed on the other: one kernel, one copy, no host work. */
static void d21(void) {
  const char *copy = VENDOR("MemcpyPeerAsync");
  static const float columns[6] = {0, 2, 4, 1, 3, 5}, rows[6] = {0, 3, 1, 4, 2, 5};
  for (int i = 0; i < 16; ++i) { /* the second half without pools, and a driver that does not wait itself */
    int from = i & 1, turn_source = i >> 1 & 1, plain = i < 8;
    G.ctl(STANDIN_POOLS, plain, 0, NULL);
    G.ctl(STANDIN_FREE_WAITS, plain, 0, NULL);
    gpu_make(&A, from);
    gpu_make(&B, !from);
    gpu_turn(turn_source ? &A : &B);
    long kernels = G.calls(LAUNCH), copied = G.calls(copy), blocks = gpu_now().stats.device_blocks;
    WORKS(dlrs_copy(&A.managed, &B.managed, NULL, ERR));
    EQUAL(gpu_now().stats.device_blocks, blocks);
    EQUAL(G.calls(LAUNCH) - kernels, 1);
    EQUAL(G.calls(copy) - copied, 1);
    EQUAL(gpu_now().stats.pending, 0);
    if (!CHECK(gpu_holds(&B.managed.dl_tensor, turn_source ? columns : rows))) printf("round %d\n", i);
  }
}

/* Registered host memory, with another address on the device for HIP: kernels get that address. Memory
 * registered in two pieces is two places for a kernel, and one for the host; and no kernel works on
 * memory that is registered in part, or has a hole. */
static void d28_registered(void) {
  enum { WHOLE, HALVES, PART, HOLE, PINNED, HOST_KINDS };
  static _Alignas(4096) unsigned char memory[2 * 4096];
  void *device = gpu_alloc(0, SPACE), *stream = gpu_stream(0, 1), *pinned = gpu_pinned(SPACE);
  for (int kind = 0; kind < HOST_KINDS; ++kind) {
    void *host = kind == PINNED ? pinned : memory + 4096 - 512 + 64;
    size_t first = kind == WHOLE ? sizeof memory : 4096, second = kind == HOLE ? 4096 + 256 : 4096;
    if (kind != PINNED) WORKS(dlrs_mem_register_host(G.type, memory, first, ERR));
    if (kind == HALVES || kind == HOLE) WORKS(dlrs_mem_register_host(G.type, memory + second, sizeof memory - second, ERR));
    for (int i = 0; i < LAYOUTS_N * LAYOUTS_N * 4; ++i) {
      int up = i & 1, async = i >> 1 & 1;
      const shaped *a = &LAYOUTS[i / 4 % LAYOUTS_N], *b = &LAYOUTS[i / 4 / LAYOUTS_N];
      long launches = G.calls(LAUNCH);
      dlrs_copy_options options = gpu_options(up ? NULL : stream, up ? stream : NULL, async ? DLRS_COPY_ASYNC : 0);
      if (up) arrives(PINNED_HOST, host, a, 0, device, b, &options);
      else arrives(0, device, a, PINNED_HOST, host, b, &options);
      if (a == LAYOUTS && b == LAYOUTS + 3 && (kind == WHOLE || kind == PINNED)) EQUAL(G.calls(LAUNCH) - launches, 1);
    }
    if (kind != PINNED) WORKS(dlrs_mem_unregister_host(G.type, memory, ERR));
    if (kind == HALVES || kind == HOLE) WORKS(dlrs_mem_unregister_host(G.type, memory + second, ERR));
  }
}

/* Memory of another context of the device, which kernels of the primary one cannot access. */
static void d17_other_context(void) {
  void *stream = gpu_stream(0, 1), *own = kind_new(OWN, 0, NULL), *plain = gpu_alloc(0, SPACE);
  for (int i = 0; i < LAYOUTS_N * LAYOUTS_N * 4; ++i) {
    int named = i & 1, from_own = i >> 1 & 1;
    dlrs_copy_options options = gpu_options(named ? stream : NULL, named ? stream : NULL, 0);
    arrives(0, from_own ? own : plain, &LAYOUTS[i / 4 % LAYOUTS_N], 0, from_own ? plain : own, &LAYOUTS[i / 4 / LAYOUTS_N],
            &options);
  }
  set_up();
  gpu_set_current(0, 1);
  long pinned = gpu_now().stats.pinned;
  turned(PLAIN_HOST, 0, 4, 1, 1500, 1500, 1); /* its buffers are not kept: it may be destroyed */
  EQUAL(gpu_now().stats.pinned, pinned);
  H.strides[0] = 1, H.strides[1] = 2;
  G.ctl(STANDIN_FAIL, 1, 999, "cuEventCreate"); /* nor when they cannot be used */
  FAILS(DLRS_INTERNAL, 999, dlrs_copy(&H.managed, &A.managed, NULL, ERR));
  EQUAL(gpu_now().stats.pinned, pinned);
}

/* ---- Calls of the driver --------------------------------------------------------------------*/

/* The driver calls, in order, of a small copy that is only enqueued: what is current, the stream's
 * owner, the devices of the addresses, and the copy. By streams: order.c; docs/devices.md. */
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
  void *stream = gpu_stream(0, 1);
  for (size_t i = 0; i < sizeof all / sizeof *all; ++i) {
    const char *want = G.hip == 5 ? all[i].hip5 : G.hip ? all[i].hip : all[i].cuda;
    int64_t n = 100;
    char calls[512];
    void *on = all[i].handle ? stream : NULL;
    DLTensor from = gpu_tensor_at(all[i].from, gpu_room(all[i].from, 100), U8, 1, &n, NULL);
    DLTensor to = gpu_tensor_at(all[i].to, gpu_room(all[i].to, 100), U8, 1, &n, NULL);
    dlrs_copy_options options = gpu_options(all[i].from == PLAIN_HOST ? NULL : on, all[i].to == PLAIN_HOST ? NULL : on, DLRS_COPY_ASYNC);
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
  }
}

/* Queries of small copies about the current context: a primary one is recognised by the first; any
 * other is queried once, and its device each time. */
static void queries(int own, long devices, long primaries) {
  dlrs_copy_options options = gpu_options(NULL, NULL, DLRS_COPY_ASYNC);
  set_up();
  gpu_set_current(0, own);
  for (int i = 0; i < 3; ++i) {
    G.calls(NULL);
    WORKS(dlrs_copy(&A.managed, &B.managed, &options, ERR));
    EQUAL(G.calls("cuCtxGetDevice"), i == 0 ? 1 : devices);
    EQUAL(G.calls("cuDevicePrimaryCtxGetState"), i == 0 ? primaries : 0);
    EQUAL(G.calls("cuDevicePrimaryCtxRetain"), i == 0 ? primaries : 0);
    EQUAL(G.calls("cuCtxPushCurrent_v2"), 0);
  }
}

static void queries_of_primary(void) {
  queries(0, 0, 1);
  queries(1, 1, 0); /* not the retained one */
}

static void queries_of_own(void) { queries(1, 1, 1); }

const gpu_row copy_rows[] = {
    {"D11", "all kinds of strides and elements", d11, 0},
    {"D11", "many dimensions in one launch", d11_many, 0},
    {"D11", "pieces of a copy through pinned buffers", d11_pieces, STANDIN},
    {"D11", "large matrices, few channels, many bytes", d11_large, 0},
    {"D11", "whose threads", d11_threads, 0},
    {"D11/Z12", "the same, no kernel can be loaded", d11_no_kernels, STANDIN},
    {"D11", "a driver that refuses the kernels gets them once", d11_loaded_once, STANDIN},
    {"D11", "a program that cannot be compiled", d11_not_compiled, STANDIN | ON_HIP},
    {"D11", "a driver without memory for the kernels gets them again", d11_loaded_again, STANDIN},
    {"D11", "a family of kernels is loaded once", d11_families, STANDIN},
    {"D11", "kernels on the oldest driver", d11_oldest, STANDIN},
    {"D11", "pitch over the driver's limit", d11_pitch, STANDIN},
    {"D17", "memory of another context", d17_other_context, STANDIN | ON_CUDA},
    {"D18", "driver calls of a small copy", cost, STANDIN},
    {"D18", "the primary context is recognised", queries_of_primary, STANDIN | ON_CUDA},
    {"D18", "a context of the caller's is queried once", queries_of_own, STANDIN | ON_CUDA},
    {"D20", "no pinned memory", d20, STANDIN},
    {"D21", "two devices, one side turned", d21, STANDIN},
    {"D21", "two devices, all kinds of memory and layouts, also if the driver's call is refused", d21_kinds, STANDIN},
    {"D28", "registered memory: whole, in pieces, in part, with a hole", d28_registered, STANDIN},
};
const size_t copy_rows_n = sizeof copy_rows / sizeof *copy_rows;
