/* Copies on threads of 16 KiB, including thread-local storage and the C library's data: cases that
 * `test_engine` lacks, which runs there as well. Each layout is copied by all copy functions and
 * compared with an element-by-element copy; dlrs_equal, dlrs_max_diff and dlrs_copy_explain are
 * called with it, too. Conversions and fills have separate layouts.
 * `test_stack [divisor]`; STACK_KIB=64 to measure more than fits. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "by_bit.h"
#include "harness.h"
#include "small_stack.h"

enum { DIMS = 64 };

/* ---- Layouts --------------------------------------------------------------------------------*/

typedef struct layout {
  const char *name;
  int code, bits, lanes;
  int ndim;
  int64_t shape[6];
  int perm[6];      /* the destination's dimension i is the source's perm[i] */
  unsigned back;    /* source dimensions with negative strides, and THIRDS */
  unsigned repeats; /* source dimensions that repeat one element */
  int64_t gap;      /* elements between the destination's rows */
} layout;

#define TURNED {1, 0}
#define THIRDS 256u /* every third element of the source */
#define INT kDLUInt
static const layout layouts[] = {
    {"square, 1 byte", INT, 8, 1, 2, {2112, 2048}, TURNED, 0, 0, 0},
    {"square, 1 byte, odd", INT, 8, 1, 2, {1511, 1301}, TURNED, 0, 0, 5},
    {"square, 2 bytes", INT, 16, 1, 2, {1536, 1024}, TURNED, 0, 0, 0},
    {"square, 2 bytes, odd", INT, 16, 1, 2, {1001, 1003}, TURNED, 0, 0, 3},
    {"square, 4 bytes", INT, 32, 1, 2, {1024, 1024}, TURNED, 0, 0, 0},
    {"square, 4 bytes, odd", INT, 32, 1, 2, {1000, 1001}, TURNED, 0, 0, 1},
    {"square, 8 bytes", INT, 64, 1, 2, {1000, 1001}, TURNED, 0, 0, 0},
    {"square, 16 bytes", kDLComplex, 128, 1, 2, {500, 501}, TURNED, 0, 0, 0},
    {"square, non-temporal", INT, 8, 1, 2, {4224, 4160}, TURNED, 0, 0, 0},
    {"box, non-temporal", INT, 8, 1, 3, {314, 1000, 112}, {2, 1, 0}, 0, 0, 0},
    {"square of 4, non-temporal", INT, 32, 1, 2, {2112, 2176}, TURNED, 0, 0, 0},
    {"rows in others' lines, 2 bytes", INT, 16, 1, 2, {278, 9498}, TURNED, 0, 0, 3},
    {"rows in others' lines, 4 bytes", INT, 32, 1, 2, {138, 9001}, TURNED, 0, 0, 1},
    {"rows in others' lines, 8 bytes", INT, 64, 1, 2, {77, 8001}, TURNED, 0, 0, 1},
    {"rows anywhere, 4 bytes", INT, 32, 1, 2, {1201, 1003}, TURNED, 0, 0, 1},
    {"rows anywhere, 8 bytes", INT, 64, 1, 2, {801, 803}, TURNED, 0, 0, 1},
    {"rows anywhere, 16 bytes", kDLComplex, 128, 1, 2, {601, 503}, TURNED, 0, 0, 1},
    {"rows anywhere, pages apart", INT, 32, 1, 2, {1101, 1025}, TURNED, 0, 0, 1},
    {"volume, rows in others' lines", INT, 32, 1, 3, {76, 3, 5003}, {2, 1, 0}, 0, 0, 1},
    {"square, backwards", INT, 32, 1, 2, {600, 1024}, TURNED, 3, 0, 0},
    {"tall, 1 byte", INT, 8, 1, 2, {600, 8192}, TURNED, 0, 0, 0},
    {"squares, 1 byte", INT, 8, 1, 3, {64, 48, 48}, {0, 2, 1}, 0, 0, 0},
    {"squares, 2 bytes", INT, 16, 1, 3, {40, 64, 96}, {0, 2, 1}, 1, 0, 0},
    {"squares, 8 bytes", INT, 64, 1, 3, {200, 20, 30}, {0, 2, 1}, 0, 0, 0},
    {"five dimensions, 1 byte", INT, 8, 1, 5, {19, 13, 10, 36, 25}, {4, 3, 2, 1, 0}, 0, 0, 0},
    {"five dimensions, 2 bytes", INT, 16, 1, 5, {19, 13, 10, 36, 15}, {4, 3, 2, 1, 0}, 2, 0, 0},
    {"five dimensions, 4 bytes", INT, 32, 1, 5, {32, 24, 16, 24, 8}, {4, 3, 2, 1, 0}, 0, 0, 0},
    {"six dimensions", INT, 32, 1, 6, {6, 7, 8, 9, 10, 11}, {4, 0, 5, 1, 3, 2}, 5, 0, 1},
    {"thirds, 1 byte", INT, 8, 1, 2, {700, 900}, TURNED, THIRDS, 0, 0},
    {"thirds, 1 byte, volume", INT, 8, 1, 4, {7, 30, 40, 60}, {3, 1, 0, 2}, THIRDS | 1, 0, 5},
    {"thirds, 2 bytes", INT, 16, 1, 3, {40, 100, 300}, {2, 0, 1}, THIRDS, 0, 0},
    {"pixels to planes", INT, 8, 1, 3, {4, 65536, 3}, {0, 2, 1}, 0, 0, 0},
    {"pixels of 4 bytes", INT, 32, 1, 3, {4, 65536, 3}, {0, 2, 1}, 0, 0, 0},
    {"planes to pixels", INT, 8, 1, 3, {4, 3, 65536}, {0, 2, 1}, 0, 0, 0},
    {"planes of 2 bytes", INT, 16, 1, 3, {4, 5, 65536}, {0, 2, 1}, 0, 0, 0},
    {"eight planes", INT, 8, 1, 3, {2, 8, 20000}, {0, 2, 1}, 0, 0, 0},
    {"three bytes", INT, 8, 3, 2, {700, 600}, TURNED, 0, 0, 0},
    {"five bytes", INT, 8, 5, 2, {300, 400}, TURNED, 0, 0, 2},
    {"twelve bytes", INT, 32, 3, 2, {300, 400}, TURNED, 0, 0, 0},
    {"three bytes, groups", INT, 8, 3, 3, {60, 70, 30}, {0, 2, 1}, 1, 0, 0},
    {"rows", INT, 32, 25, 2, {300, 400}, TURNED, 0, 0, 0},
    {"long rows", INT, 8, 1000, 2, {40, 50}, TURNED, 0, 0, 7},
    {"reversed, 1 byte", INT, 8, 1, 1, {3000000}, {0}, 1, 0, 0},
    {"reversed, 2 bytes", INT, 16, 1, 2, {100, 9000}, {0, 1}, 3, 0, 0},
    {"reversed, 4 bytes", INT, 32, 1, 2, {100, 9000}, {0, 1}, 2, 0, 0},
    {"fill", INT, 32, 1, 2, {700, 900}, {0, 1}, 0, 2, 0},
    {"fill, 3 bytes", INT, 8, 3, 2, {700, 900}, {0, 1}, 0, 2, 0},
    {"fill, all", INT, 16, 1, 2, {700, 900}, {0, 1}, 0, 3, 1},
    {"rows repeated", INT, 8, 1, 3, {70, 30, 90}, {0, 1, 2}, 0, 2, 0},
    {"squares repeated, 1 byte", INT, 8, 1, 3, {9, 500, 600}, {0, 2, 1}, 0, 1, 0},
    {"squares repeated, 2 bytes", INT, 16, 1, 3, {9, 500, 400}, {0, 2, 1}, 0, 1, 0},
    {"squares repeated, 4 bytes", INT, 32, 1, 3, {9, 200, 301}, {0, 2, 1}, 0, 1, 1},
    {"squares repeated, 3 bytes", INT, 8, 3, 3, {9, 300, 400}, {0, 2, 1}, 0, 1, 0},
    {"gaps", INT, 32, 1, 2, {900, 700}, {0, 1}, 0, 0, 3},
    {"few", INT, 32, 1, 3, {3, 4, 5}, {2, 1, 0}, 0, 0, 0},
    {"tiny", INT, 64, 1, 3, {2, 1, 2}, {2, 1, 0}, 0, 0, 1},
    {"rows one after the other", INT, 8, 1, 2, {1024, 17000}, TURNED, 0, 0, 0},
    {"slim, 1 byte", INT, 8, 1, 2, {9, 30000}, TURNED, 0, 0, 0},
    {"slim, 2 bytes", INT, 16, 1, 3, {30, 5, 900}, {0, 2, 1}, 0, 0, 0},
    {"table", INT, 32, 1, 4, {30, 3, 5, 90}, {2, 0, 3, 1}, 0, 0, 1},
    {"4 bits, transposed", kDLFloat4_e2m1fn, 4, 1, 2, {1024, 1056}, TURNED, 0, 0, 0},
    {"4 bits, odd", kDLFloat4_e2m1fn, 4, 1, 2, {333, 555}, TURNED, 0, 0, 1},
    {"6 bits, transposed", kDLFloat6_e2m3fn, 6, 1, 2, {512, 576}, TURNED, 0, 0, 0},
    {"6 bits, odd", kDLFloat6_e2m3fn, 6, 1, 2, {301, 203}, TURNED, 2, 0, 0},
    {"1 bit", INT, 1, 1, 2, {300, 203}, TURNED, 0, 0, 0},
    {"2 bits, batches", INT, 2, 1, 3, {30, 40, 64}, {0, 2, 1}, 0, 0, 0},
    {"4 bits, rows", kDLFloat4_e2m1fn, 4, 1, 2, {300, 2003}, {0, 1}, 0, 0, 5},
    {"4 bits, backwards", kDLFloat4_e2m1fn, 4, 1, 2, {30, 2003}, {0, 1}, 2, 0, 0},
};

/* A source and a destination, of up to 64 dimensions. */
typedef struct pair {
  const char *name;
  int64_t shape[DIMS], from[DIMS], to[DIMS]; /* strides in elements */
  int64_t width;                             /* bits of an element */
  DLManagedTensorVersioned src, dst;
  unsigned char *source, *target, *expected;
  unsigned char *dense; /* the expected elements without gaps */
  size_t target_nbytes, dense_nbytes;
} pair;

static void fill_bytes(unsigned char *bytes, size_t nbytes, uint64_t seed) {
  size_t i;
  for (i = 0; i < nbytes; ++i) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    bytes[i] = (unsigned char)(seed >> 56);
  }
}

/* From the source, whose first element is at bit `at`, to `to`. */
static void by_hand(const pair *p, int64_t at, const int64_t *strides, unsigned char *to) {
  copy_by_bit(p->src.dl_tensor.ndim, p->shape, p->width, p->source, at, p->from, to, 0, strides);
}

/* Memory for both sides of a pair whose extents and strides are set, and the expected elements. */
static void pair_finish(pair *p, DLDataType dtype, int ndim) {
  int64_t low = 0, high = 1, end = 1, count = 1, strides[DIMS];
  size_t source_nbytes;
  int i;
  p->width = (int64_t)dtype.bits * dtype.lanes;
  for (i = ndim; i-- > 0; count *= p->shape[i]) strides[i] = count;
  for (i = 0; i < ndim; ++i) {
    int64_t reach = (p->shape[i] - 1) * p->from[i];
    if (reach < 0) low -= reach; else high += reach;
    end += (p->shape[i] - 1) * p->to[i];
  }
  low = (low + 7) / 8 * 8; /* whole bytes, whatever the width */
  source_nbytes = (size_t)((low + high) * p->width / 8 + 1);
  p->target_nbytes = (size_t)(end * p->width + 7) / 8;
  p->source = (unsigned char *)malloc(source_nbytes);
  p->target = (unsigned char *)malloc(p->target_nbytes);
  p->expected = (unsigned char *)malloc(p->target_nbytes);
  p->dense_nbytes = (size_t)(count * p->width + 7) / 8;
  p->dense = (unsigned char *)calloc(p->dense_nbytes, 1);
  if (!p->source || !p->target || !p->expected || !p->dense) abort();
  fill_bytes(p->source, source_nbytes, 1);
  fill_bytes(p->expected, p->target_nbytes, 2);
  p->src = t_managed(t_describe(p->source + low * p->width / 8, dtype, ndim, p->shape, p->from), 0);
  p->dst = t_managed(t_describe(p->target, dtype, ndim, p->shape, p->to), 0);
  memcpy(p->target, p->expected, p->target_nbytes);
  by_hand(p, low * p->width, p->to, p->expected);
  by_hand(p, low * p->width, strides, p->dense);
}

static void pair_free(pair *p) {
  free(p->source);
  free(p->target);
  free(p->expected);
  free(p->dense);
}

static void pair_make(pair *p, const layout *l, long divisor) {
  int64_t strides[6], shape[6], next = l->back & THIRDS ? 3 : 1;
  int i;
  memset(p, 0, sizeof *p);
  p->name = l->name;
  for (i = l->ndim; i-- > 0; next *= shape[i]) {
    shape[i] = l->shape[i] > 500 && divisor > 1 ? l->shape[i] / divisor + 64 : l->shape[i];
    strides[i] = (l->repeats >> i & 1) ? 0 : (l->back >> i & 1) ? -next : next;
  }
  for (i = 0; i < l->ndim; ++i) {
    p->shape[i] = shape[l->perm[i]];
    p->from[i] = strides[l->perm[i]];
  }
  for (next = 1, i = l->ndim; i-- > 0; next *= p->shape[i]) {
    p->to[i] = next;
    if (i == l->ndim - 1) next += l->gap;
  }
  pair_finish(p, t_dtype(l->code, l->bits, l->lanes), l->ndim);
}

/* 64 dimensions: `bits` of them, of extent 2, are reversed in the source. */
static void pair_make_deep(pair *p, DLDataType dtype, int bits) {
  int i, k = 0;
  memset(p, 0, sizeof *p);
  p->name = "64 dimensions";
  for (i = 0; i < DIMS; ++i) {
    int used = k * DIMS <= i * bits && k < bits;
    p->shape[i] = used ? 2 : 1;
    p->from[i] = used ? (int64_t)1 << k : 7;
    p->to[i] = used ? (int64_t)1 << (bits - 1 - k) : 3;
    k += used;
  }
  pair_finish(p, dtype, DIMS);
}

/* ---- Calls ----------------------------------------------------------------------------------*/

typedef struct call {
  pair *p;
  DLManagedTensorVersioned *made;
  unsigned char *bytes;
  DLDataType value; /* of `bytes` */
  int32_t answer;
  double difference;
  dlrs_copy_options options;
  dlrs_error error;
  dlrs_status status;
} call;

static void copies(void *argument) {
  call *c = (call *)argument;
  c->status = dlrs_copy(&c->p->src, &c->p->dst, &c->options, &c->error);
}

static void copies_two(void *argument) {
  call *c = (call *)argument;
  const DLManagedTensorVersioned *from[2];
  DLManagedTensorVersioned *to[2];
  from[0] = from[1] = &c->p->src;
  to[0] = to[1] = &c->p->dst;
  c->status = dlrs_copy_batch(2, from, to, &c->options, NULL, &c->error);
}

static void casts(void *argument) {
  call *c = (call *)argument;
  c->status = dlrs_cast(&c->p->src, &c->p->dst, &c->options, &c->error);
}

static void copies_described(void *argument) {
  call *c = (call *)argument;
  c->status = dlrs_copy_desc(&c->p->src.dl_tensor, 0, &c->p->dst.dl_tensor, 0, &c->options, &c->error);
}

static void clones(void *argument) {
  call *c = (call *)argument;
  c->status = dlrs_clone(&c->p->src, CPU, &c->options, &c->made, &c->error);
}

static void imports(void *argument) {
  call *c = (call *)argument;
  DLManagedTensorVersioned *src = &c->p->src;
  dlrs_import_options options = DLRS_INIT(dlrs_import_options);
  options.copy = 1;
  options.copy_options = &c->options;
  c->status = dlrs_import_take(&src, &options, &c->made, &c->error);
}

static void explains(void *argument) {
  call *c = (call *)argument;
  size_t nbytes = 0;
  c->status = dlrs_copy_explain(&c->p->src.dl_tensor, 0, &c->p->dst.dl_tensor, 0, &c->options,
                                (char *)c->bytes, 1, &nbytes, &c->error);
  if (c->status == DLRS_BUF_SMALL && nbytes > 1) c->status = DLRS_OK;
}

static void compares(void *argument) {
  call *c = (call *)argument;
  c->status = dlrs_equal(&c->p->src, &c->p->dst, DLRS_EQUAL_BITS, &c->answer, &c->error);
}

static void finds_difference(void *argument) {
  call *c = (call *)argument;
  c->status = dlrs_max_diff(&c->p->src, &c->p->dst, &c->difference, &c->error);
}

static void fills(void *argument) {
  call *c = (call *)argument;
  c->status = dlrs_fill(&c->p->dst, c->bytes, c->value, &c->options, &c->error);
}

static void makes_contiguous(void *argument) {
  call *c = (call *)argument;
  c->status = dlrs_contiguous(&c->p->src, 'C', &c->options, &c->made, &c->error);
}

static void goes_to_device(void *argument) {
  call *c = (call *)argument;
  c->status = dlrs_to_device(&c->p->src, CPU, 1, &c->options, &c->made, &c->error);
}

/* A function's use of a pair: writes its destination, creates a tensor, or reads. */
typedef enum effect { WRITES, MAKES, LOOKS } effect;

/* The maximum stack use of each function. */
static struct function {
  const char *name;
  void (*work)(void *);
  effect does;
  size_t most;
  const char *most_in;
} functions[] = {
    {"dlrs_copy", copies, WRITES, 0, ""},
    {"dlrs_copy_desc", copies_described, WRITES, 0, ""},
    {"dlrs_copy_batch", copies_two, WRITES, 0, ""},
    {"dlrs_clone", clones, MAKES, 0, ""},
    {"dlrs_contiguous", makes_contiguous, MAKES, 0, ""},
    {"dlrs_to_device", goes_to_device, MAKES, 0, ""},
    {"dlrs_import_take", imports, MAKES, 0, ""},
    {"dlrs_cast, equal dtypes", casts, WRITES, 0, ""},
    {"dlrs_copy_explain", explains, LOOKS, 0, ""},
    {"dlrs_equal", compares, LOOKS, 0, ""}, /* of the previous cast's result */
    {"dlrs_max_diff", finds_difference, LOOKS, 0, ""},
};
static struct function converts = {"dlrs_cast to another dtype", casts, WRITES, 0, ""};
static struct function fills_all = {"dlrs_fill", fills, WRITES, 0, ""};

static void noted(struct function *f, const char *name, size_t nbytes) {
  if (nbytes > f->most) {
    f->most = nbytes;
    f->most_in = name;
  }
}

static void prepare(call *c, pair *p, uint32_t threads) {
  memset(c, 0, sizeof *c);
  c->p = p;
  c->options.struct_size = sizeof c->options;
  c->options.threads = threads;
  c->error.struct_size = sizeof c->error;
}

/* The bits behind the last element of a packed tensor are unused. */
static void check_made(const pair *p, DLManagedTensorVersioned *made) {
  unsigned char *bytes = (unsigned char *)made->dl_tensor.data;
  int64_t count = 1, i;
  for (i = 0; i < p->src.dl_tensor.ndim; ++i) count *= p->shape[i];
  if (count * p->width % 8 != 0) {
    bytes[p->dense_nbytes - 1] &= (unsigned char)((1u << (count * p->width % 8)) - 1);
  }
  CHECK(memcmp(bytes, p->dense, p->dense_nbytes) == 0);
  made->deleter(made);
}

static void run_pair(pair *p) {
  unsigned char *bytes = (unsigned char *)malloc(p->dense_nbytes);
  size_t i;
  uint32_t threads;
  if (bytes == NULL) abort();
  for (i = 0; i < sizeof functions / sizeof *functions; ++i) {
    struct function *f = &functions[i];
    for (threads = 1; threads <= 2; ++threads) {
      call c;
      prepare(&c, p, threads);
      c.bytes = bytes;
      memset(bytes, 0xff, p->dense_nbytes);
      if (f->does == WRITES) fill_bytes(p->target, p->target_nbytes, 2);
      t_context = p->name;
      noted(f, p->name, small_stack_run(p->name, f->work, &c));
      if (f->work == makes_contiguous && c.status == DLRS_FOREIGN) continue; /* it is */
      if (f->work == imports && c.status == DLRS_SUBBYTE) continue; /* rows in mid-byte */
      if (!EQUAL(c.status, DLRS_OK)) continue;
      if (f->does == MAKES) check_made(p, c.made);
      if (f->does == WRITES) CHECK(memcmp(p->target, p->expected, p->target_nbytes) == 0);
      if (f->work == compares) EQUAL(c.answer, 1);
    }
  }
  free(bytes);
}

/* ---- Copies through a staging buffer, and rejected ones -------------------------------------*/

/* A transpose of a square onto itself, through a buffer; and its error without permission. */
static void onto_itself(int bits, int64_t n) {
  pair p;
  call c;
  memset(&p, 0, sizeof p);
  p.name = "onto itself";
  p.shape[0] = p.shape[1] = n;
  p.from[0] = p.to[1] = 1;
  p.from[1] = p.to[0] = n;
  pair_finish(&p, t_dtype(kDLUInt, bits, 1), 2);
  memcpy(p.target, p.source, p.target_nbytes);
  p.src.dl_tensor.data = p.dst.dl_tensor.data;
  prepare(&c, &p, 2);
  small_stack_run(p.name, copies, &c);
  EQUAL(c.status, DLRS_OVERLAP_SRC_DST);
  c.options.flags = DLRS_COPY_ALLOW_OVERLAP;
  noted(&functions[0], p.name, small_stack_run(p.name, copies, &c));
  EQUAL(c.status, DLRS_OK);
  CHECK(memcmp(p.target, p.expected, p.target_nbytes) == 0);
  memcpy(p.target, p.source, p.target_nbytes);
  noted(&functions[1], p.name, small_stack_run(p.name, copies_two, &c));
  EQUAL(c.status, DLRS_OK); /* a round trip */
  CHECK(memcmp(p.target, p.source, p.target_nbytes) == 0);
  pair_free(&p);
}

/* Elements for which shared memory must be searched: in the destination, and with the source. */
static void searched(void) {
  static const int64_t primes[] = {10007, 20011, 40009, 80021, 160001, 320009, 640007, 1280023};
  unsigned char *memory = (unsigned char *)calloc(1, 64);
  pair p;
  call c;
  int i;
  memset(&p, 0, sizeof p);
  p.name = "a search among the destination's";
  for (i = 0; i < 11; ++i) {
    p.shape[i] = i < 8 ? 2 : 3;
    p.from[i] = 0;
    p.to[i] = i < 8 ? primes[i] : i == 8 ? 35 : i == 9 ? 21 : 14; /* 35 = 21 + 14 */
  }
  p.src = t_managed(t_describe(memory, t_dtype(kDLUInt, 8, 1), 11, p.shape, p.from), 0);
  p.dst = t_managed(t_describe(memory + 8, t_dtype(kDLUInt, 8, 1), 11, p.shape, p.to), 0);
  prepare(&c, &p, 1);
  noted(&functions[0], p.name, small_stack_run(p.name, copies, &c));
  EQUAL(c.status, DLRS_OVERLAP_DST);
  p.name = "a search between both";
  for (i = 0; i < 11; ++i) {
    p.from[i] = i < 8 ? primes[7 - i] + 3 : 1 + i;
    p.to[i] = i < 8 ? primes[i] : i == 8 ? 35 : i == 9 ? 105 : 315;
  }
  p.src.dl_tensor.data = memory + 43; /* (0, ..., 1, 0, 0) of the destination */
  noted(&functions[0], p.name, small_stack_run(p.name, copies, &c));
  EQUAL(c.status, DLRS_OVERLAP_SRC_DST);
  free(memory);
}

/* n x n elements of the source at `from`, all of them `value`, to another dtype and place, where each
 * becomes `wanted`; transposed or not. */
typedef struct conversion {
  const char *name;
  int64_t n;
  int turned;
  DLDataType from, to;
  const void *value, *wanted;
} conversion;

static size_t item_nbytes(DLDataType dtype) { return (size_t)(dtype.bits * dtype.lanes + 7) / 8; }

static void repeat(unsigned char *to, const void *value, size_t nbytes, int64_t n) {
  for (; n-- > 0; to += nbytes) memcpy(to, value, nbytes);
}

static void converted(const conversion *v, long divisor, int onto_itself) {
  size_t from = item_nbytes(v->from), to = item_nbytes(v->to);
  int64_t n = v->n > 500 && divisor > 1 ? v->n / divisor + 64 : v->n, i, right = 0;
  unsigned char *found;
  pair p;
  call c;
  memset(&p, 0, sizeof p);
  p.name = v->name;
  p.shape[0] = p.shape[1] = n;
  p.to[0] = p.from[v->turned] = n;
  p.to[1] = p.from[1 - v->turned] = 1;
  p.source = (unsigned char *)malloc((size_t)(n * n) * (from > to ? from : to));
  found = onto_itself ? p.source : (unsigned char *)calloc((size_t)(n * n), to);
  if (p.source == NULL || found == NULL) abort();
  repeat(p.source, v->value, from, n * n);
  p.src = t_managed(t_describe(p.source, v->from, 2, p.shape, p.from), 0);
  p.dst = t_managed(t_describe(found, v->to, 2, p.shape, p.to), 0);
  prepare(&c, &p, 2);
  c.options.flags = onto_itself ? DLRS_COPY_ALLOW_OVERLAP : 0;
  noted(&converts, v->name, small_stack_run(v->name, casts, &c));
  t_context = v->name;
  EQUAL(c.status, DLRS_OK);
  for (i = 0; i < n * n; ++i) right += memcmp(found + (size_t)i * to, v->wanted, to) == 0;
  EQUAL(right, n * n);
  c.bytes = (unsigned char *)v->value; /* the same as a fill */
  c.value = v->from;
  memset(found, 0, (size_t)(n * n) * to);
  p.dst.dl_tensor.strides = p.from;
  noted(&fills_all, v->name, small_stack_run(v->name, fills, &c));
  EQUAL(c.status, DLRS_OK);
  for (right = i = 0; i < n * n; ++i) right += memcmp(found + (size_t)i * to, v->wanted, to) == 0;
  EQUAL(right, n * n);
  free(p.source);
  if (!onto_itself) free(found);
}

/* 1 in dtypes: as many bytes as they have, or the first ones. */
static void conversions(long divisor) {
  static const float floats[] = {1, 1, 1, 1, 1, 1, 1, 1}, complex1[] = {1, 0};
  static const double doubles[] = {1, 1, 1, 1, 1, 1, 1, 1}, complex2[] = {1, 0};
  static const unsigned char one = 1, e4m3 = 0x38, e5m2 = 0x3c;
  static const int32_t integer = 1;
  const DLDataType u8 = t_dtype(kDLUInt, 8, 1), i8 = t_dtype(kDLInt, 8, 1);
  const DLDataType i32 = t_dtype(kDLInt, 32, 1), b8 = t_dtype(kDLBool, 8, 1);
  const DLDataType f8 = t_dtype(kDLFloat8_e4m3fn, 8, 1), g8 = t_dtype(kDLFloat8_e5m2, 8, 1);
  const DLDataType f64 = t_dtype(kDLFloat, 64, 1), c64 = t_dtype(kDLComplex, 64, 1);
  const DLDataType c128 = t_dtype(kDLComplex, 128, 1), eight = t_dtype(kDLFloat, 32, 8);
  const conversion all[] = {
      {"integers", 1000, 0, u8, F32, &one, floats},
      {"a few integers, transposed", 60, 1, i8, F32, &one, floats},
      {"integers, transposed", 1000, 1, i8, F32, &one, floats},
      {"float8, by a table", 1000, 0, f8, F32, &e4m3, floats},
      {"a few of float8, transposed", 60, 1, g8, F32, &e5m2, floats},
      {"float8, transposed", 1000, 1, g8, F32, &e5m2, floats},
      {"to float8, transposed", 1000, 1, f64, f8, doubles, &e4m3},
      {"floats, transposed", 1000, 1, F32, f64, floats, doubles},
      {"floats to integers, transposed", 1000, 1, F32, i32, floats, &integer},
      {"to complex", 1000, 0, F32, c64, floats, complex1},
      {"to complex, transposed", 1000, 1, F32, c64, floats, complex1},
      {"complex, transposed", 700, 1, c64, c128, complex1, complex2},
      {"from complex, transposed", 1000, 1, c64, F32, complex1, floats},
      {"what is true of complex, transposed", 1000, 1, c64, b8, complex1, &one},
      {"lanes, transposed", 300, 1, t_dtype(kDLFloat, 64, 8), eight, doubles, floats},
  };
  size_t i;
  for (i = 0; i < sizeof all / sizeof *all; ++i) {
    converted(&all[i], divisor, 0);
    if (all[i].turned) converted(&all[i], divisor, 1);
  }
}

/* A text is written. */
static void refused(void) {
  pair p;
  call c;
  pair_make_deep(&p, t_dtype(kDLUInt, 8, 1), 4);
  p.name = "refused";
  p.dst.dl_tensor.dtype = t_dtype(kDLFloat, 32, 1);
  prepare(&c, &p, 1);
  noted(&functions[0], p.name, small_stack_run(p.name, copies, &c));
  EQUAL(c.status, DLRS_DTYPE_MISMATCH);
  CHECK(strstr(c.error.message, "dtype") != NULL);
  pair_free(&p);
}

int main(int argc, char **argv) {
  static const int deep_bits[] = {8, 16, 32, 64, 4};
  long divisor = argc > 1 ? atol(argv[1]) : 1;
  size_t i;
  small_stack_begin();
  for (i = 0; i < sizeof layouts / sizeof *layouts; ++i) {
    pair p;
    pair_make(&p, &layouts[i], divisor);
    run_pair(&p);
    pair_free(&p);
  }
  for (i = 0; i < sizeof deep_bits / sizeof *deep_bits; ++i) {
    pair p;
    pair_make_deep(&p, t_dtype(kDLUInt, deep_bits[i], 1), divisor > 1 ? 12 : 20);
    run_pair(&p);
    pair_free(&p);
    onto_itself(deep_bits[i] < 8 ? 4 : deep_bits[i], divisor > 1 ? 130 : 1024 + 3 * (int64_t)i);
  }
  searched();
  refused();
  conversions(divisor);
  for (i = 0; i < sizeof functions / sizeof *functions; ++i) {
    printf("%s: %lu bytes (%s)\n", functions[i].name, (unsigned long)functions[i].most,
           functions[i].most_in);
  }
  printf("%s: %lu bytes (%s)\n", converts.name, (unsigned long)converts.most, converts.most_in);
  printf("%s: %lu bytes (%s)\n", fills_all.name, (unsigned long)fills_all.most, fills_all.most_in);
  small_stack_end();
  return t_close();
}
