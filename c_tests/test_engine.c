/* Every function that copies, against an oracle that copies one bit at a time: random and named
 * layouts, between guard pages, with and without memory, on stacks of 64 KiB, on every machine.
 * dlrs_equal, dlrs_max_diff and dlrs_copy_explain run there too; so do conversions and fills.
 * `test_engine [cases [seed]]`: with cases, named layouts are smaller. STACK_KIB: small_stack.h. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "by_bit.h"
#include "guarded.h"
#include "harness.h"
#include "random.h"
#include "small_stack.h"
#include "woven.h"

enum { DIMS = 64, ROOM = 64 << 20 };

static guarded from_room, to_room;
static unsigned char *before, *expected, *dense;
static long failures;

#define ONE_OF(...) \
  one_of((const int64_t[]){__VA_ARGS__}, sizeof((const int64_t[]){__VA_ARGS__}) / sizeof(int64_t))

/* ---- Cases ----------------------------------------------------------------------------------*/

typedef struct layout {
  int64_t strides[DIMS]; /* in elements of `width` bits */
  int64_t low, high;     /* bytes before and behind the first element's start */
} layout;

typedef struct one_case {
  const char *name;
  DLDataType dtype;
  uint64_t flags;
  int64_t width;
  int32_t ndim;
  int64_t shape[DIMS];
  layout src, dst;
  dlrs_copy_options options;
  int without_memory;
} one_case;

static void measure(const one_case *c, layout *side) {
  int64_t low = 0, high = c->width;
  int i;
  for (i = 0; i < c->ndim; ++i) {
    int64_t reach = (c->shape[i] - 1) * side->strides[i] * c->width;
    if (reach < 0) low -= reach; else high += reach;
  }
  side->low = (low + 7) / 8;
  side->high = (high + 7) / 8;
}

static DLTensor tensor_of(one_case *c, layout *side, unsigned char *bytes) {
  uint64_t offset = draw() % 3 * 5;
  DLTensor tensor =
      t_describe(bytes + side->low - offset, c->dtype, c->ndim, c->shape, side->strides);
  tensor.byte_offset = offset;
  return tensor;
}

/* ---- Calls ----------------------------------------------------------------------------------*/

typedef struct call {
  DLManagedTensorVersioned src, dst, *made;
  dlrs_copy_options options;
  const void *value; /* of a fill */
  DLDataType value_dtype;
  int without_memory;
  int32_t answer;
  double difference;
  dlrs_status status;
} call;

#define WORK(name, expression)               \
  static void name(void *argument) {         \
    call *c = (call *)argument;              \
    const dlrs_copy_options *o = &c->options; \
    c->status = (expression);                \
    (void)o;                                 \
  }
WORK(copies, dlrs_copy(&c->src, &c->dst, o, ERR))
WORK(casts, dlrs_cast(&c->src, &c->dst, o, ERR))
WORK(clones, dlrs_clone(&c->src, CPU, o, &c->made, ERR))
WORK(makes_contiguous, dlrs_contiguous(&c->src, 'C', o, &c->made, ERR))
WORK(goes_to_device, dlrs_to_device(&c->src, CPU, 1, o, &c->made, ERR))
WORK(compares, dlrs_equal(&c->src, &c->dst, DLRS_EQUAL_BITS, &c->answer, ERR))
WORK(finds_difference, dlrs_max_diff(&c->src, &c->dst, &c->difference, ERR))
WORK(fills, dlrs_fill(&c->dst, c->value, c->value_dtype, o, ERR))

static void copies_described(void *argument) {
  call *c = (call *)argument;
  if (c->without_memory) inject_arm(1, 1);
  c->status = dlrs_copy_desc(&c->src.dl_tensor, c->src.flags, &c->dst.dl_tensor, c->dst.flags,
                             &c->options, ERR);
  if (c->without_memory) inject_disarm();
}

static void copies_two(void *argument) {
  call *c = (call *)argument;
  const DLManagedTensorVersioned *from[] = {&c->src, &c->src};
  DLManagedTensorVersioned *to[] = {&c->dst, &c->dst};
  c->status = dlrs_copy_batch(2, from, to, &c->options, NULL, ERR);
}

static void imports(void *argument) {
  call *c = (call *)argument;
  DLManagedTensorVersioned *src = &c->src;
  dlrs_import_options options = DLRS_INIT(dlrs_import_options);
  options.copy = 1;
  options.copy_options = &c->options;
  c->status = dlrs_import_take(&src, &options, &c->made, ERR);
}

static void explains(void *argument) {
  call *c = (call *)argument;
  size_t nbytes = 0;
  char text;
  c->status = dlrs_copy_explain(&c->src.dl_tensor, c->src.flags, &c->dst.dl_tensor, c->dst.flags,
                                &c->options, &text, 1, &nbytes, ERR);
  if (c->status == DLRS_BUF_SMALL && nbytes > 1) c->status = DLRS_OK;
}

/* What a function does: writes the destination, makes a tensor, or reads what was written. */
enum effect { WRITES, MAKES, READS };

static struct function {
  const char *name;
  void (*work)(void *);
  enum effect does;
  size_t most; /* bytes of stack */
  const char *most_in;
} functions[] = {
    {"dlrs_copy_desc", copies_described, WRITES, 0, ""},
    {"dlrs_copy", copies, WRITES, 0, ""},
    {"dlrs_copy_batch", copies_two, WRITES, 0, ""},
    {"dlrs_cast, equal dtypes", casts, WRITES, 0, ""},
    {"dlrs_equal", compares, READS, 0, ""},
    {"dlrs_max_diff", finds_difference, READS, 0, ""},
    {"dlrs_copy_explain", explains, READS, 0, ""},
    {"dlrs_clone", clones, MAKES, 0, ""},
    {"dlrs_contiguous", makes_contiguous, MAKES, 0, ""},
    {"dlrs_to_device", goes_to_device, MAKES, 0, ""},
    {"dlrs_import_take", imports, MAKES, 0, ""},
    {"dlrs_cast to another dtype", casts, WRITES, 0, ""},
    {"dlrs_fill", fills, WRITES, 0, ""},
};
enum { DESC, COPY, BATCH, CAST, EQUAL_, DIFF, EXPLAIN, CLONE, CONTIGUOUS, DEVICE, IMPORT, COPIERS,
       CONVERT = COPIERS, FILL };

static void run(struct function *f, const char *name, call *c) {
  size_t nbytes;
  t_context = name;
  t_before();
  nbytes = small_stack_run(name, f->work, c);
  if (nbytes > f->most) {
    f->most = nbytes;
    f->most_in = name;
  }
}

/* ---- Checks ---------------------------------------------------------------------------------*/

static int report(const one_case *c, const struct function *f, const char *what) {
  int i;
  ++failures;
  t_check(0, __FILE__, __LINE__, what);
  printf("%s: code %d, bits %d, lanes %d, flags %d, threads %u%s: %.255s\n", f->name, c->dtype.code,
         c->dtype.bits, c->dtype.lanes, (int)c->flags, c->options.threads,
         c->options.parallel_for ? ", hook" : c->without_memory ? ", malloc fails" : "",
         t_error.message);
  for (i = 0; i < c->ndim; ++i) {
    printf("  extent %lld: from %lld to %lld\n", (long long)c->shape[i],
           (long long)c->src.strides[i], (long long)c->dst.strides[i]);
  }
  return 0;
}

/* 0 when it failed; a case that exceeds the memory is left out. `which`: a set of functions. */
static int check(one_case *c, unsigned which) {
  unsigned char *source, *target;
  size_t source_bytes, target_bytes, dense_bytes, n;
  int64_t compact[DIMS], total = 1;
  DLTensor from, to;
  int i;
  measure(c, &c->src);
  measure(c, &c->dst);
  source_bytes = (size_t)(c->src.low + c->src.high);
  target_bytes = (size_t)(c->dst.low + c->dst.high);
  if (source_bytes + 256 > ROOM || target_bytes + 256 > ROOM) return 1;
  source = guarded_place(&from_room, source_bytes, (unsigned)draw());
  target = guarded_place(&to_room, target_bytes, (unsigned)draw());
  draw_bytes(source, source_bytes);
  draw_bytes(before, target_bytes);
  from = tensor_of(c, &c->src, source);
  to = tensor_of(c, &c->dst, target);
  for (i = c->ndim; i-- > 0; total *= c->shape[i]) compact[i] = total;
  dense_bytes = (size_t)(total * c->width + 7) / 8;
  memcpy(expected, before, target_bytes);
  if (which & ~(~0u << CLONE)) {
    copy_by_bit(c->ndim, c->shape, c->width, source, 8 * c->src.low, c->src.strides, expected,
                8 * c->dst.low, c->dst.strides);
  }
  memset(dense, 0, dense_bytes); /* the bits behind the last element of a packed tensor are 0 */
  if (which & ~0u << CLONE) {
    copy_by_bit(c->ndim, c->shape, c->width, source, 8 * c->src.low, c->src.strides, dense, 0,
                compact);
  }
  for (i = 0; i < COPIERS; ++i) {
    struct function *f = &functions[i];
    call made;
    if (!(which >> i & 1)) continue;
    memset(&made, 0, sizeof made);
    made.src = t_managed(from, c->flags);
    made.dst = t_managed(to, c->flags);
    made.options = c->options;
    made.without_memory = c->without_memory;
    if (f->does == WRITES) memcpy(target, before, target_bytes);
    run(f, c->name, &made);
    if (i == CONTIGUOUS && made.status == DLRS_FOREIGN) continue; /* it is, and another's */
    if (i == IMPORT && made.status == DLRS_SUBBYTE) continue; /* rows in mid-byte */
    if (made.status != DLRS_OK) return report(c, f, "the call succeeds");
    if (i == EQUAL_ && made.answer != 1) return report(c, f, "a copy is equal");
    if (f->does == MAKES) {
      const unsigned char *bytes = (const unsigned char *)made.made->dl_tensor.data;
      for (n = 0; n < dense_bytes && bytes[n] == dense[n]; ++n) {
      }
      made.made->deleter(made.made);
      if (n < dense_bytes) return report(c, f, "the new tensor has the oracle's bytes");
    } else {
      for (n = 0; n < target_bytes && target[n] == expected[n]; ++n) {
      }
      if (n < target_bytes) return report(c, f, "the destination has the oracle's bytes");
    }
    t_check(1, __FILE__, __LINE__, "");
  }
  return 1;
}

/* ---- Random cases ---------------------------------------------------------------------------*/

static const int64_t EXTENTS[] = {1,  2,  2,  3,  3,  4,  5,  6,  7,  8,  9,   12,
                                  15, 16, 17, 24, 31, 33, 48, 64, 65, 100, 129, 300};

/* Strides with distinct elements: a random order, random gaps, random signs. */
static void draw_strides(const one_case *c, int64_t gaps, int64_t *strides) {
  int order[DIMS], i, sorted = below(4) == 0;
  int64_t next = 1;
  for (i = 0; i < c->ndim; ++i) {
    int other = sorted ? i : (int)below(i + 1);
    order[i] = order[other];
    order[other] = c->ndim - 1 - i;
  }
  for (i = 0; i < c->ndim; ++i) {
    if (below(4) < gaps) next += ONE_OF(1, 2, 1, 1, 64, 3);
    strides[order[i]] = below(4) == 0 ? -next : next;
    next *= c->shape[order[i]];
  }
}

static long hooked;
static int hook(void *context, size_t n, void (*body)(void *, size_t), void *body_context) {
  ++*(long *)context;
  while (n-- > 0) body(body_context, n);
  return 0;
}
static int refusing_hook(void *context, size_t n, void (*body)(void *, size_t), void *ignored) {
  (void)n, (void)body, (void)ignored;
  ++*(long *)context;
  return 1;
}

/* An empty case with random options; the functions that it is for. */
static unsigned draw_options(one_case *c, const char *name) {
  unsigned which = 1u << ONE_OF(DESC, DESC, DESC, COPY, BATCH, CLONE, IMPORT);
  memset(c, 0, sizeof *c);
  c->name = name;
  c->options.struct_size = sizeof c->options;
  c->options.threads = (uint32_t)ONE_OF(0, 1, 1, 2, 3, 7);
  if (below(8) == 0) {
    c->options.parallel_for = below(4) == 0 ? refusing_hook : hook;
    c->options.parallel_context = &hooked;
  }
  /* The thread queue needs memory; other allocations of a copy are optional. */
  c->without_memory = which == 1u << DESC && c->options.threads <= 1 && below(8) == 0;
  return which;
}

static void draw_whole(one_case *c) {
  int64_t bits = ONE_OF(8, 8, 16, 32, 32, 64, 64);
  /* Floats and bools too: any bits stay as they are. */
  c->dtype = t_dtype((int)ONE_OF(kDLUInt, bits > 8 ? kDLFloat : kDLBool), (int)bits,
                     (int)ONE_OF(1, 1, 1, 1, 2, 3, 4, 5, 12, 16, 100));
  if (below(4) == 0) c->dtype = t_dtype(kDLComplex, (int)ONE_OF(32, 64, 128), 1);
  if (below(4) == 0) c->dtype = t_dtype(kDLInt, (int)ONE_OF(1, 2, 4), 8); /* bytes after all */
  c->width = c->dtype.bits * c->dtype.lanes;
  if (below(8) == 0) { /* a byte or two for each packed element */
    c->dtype = t_dtype(kDLFloat6_e2m3fn, 6, (int)ONE_OF(1, 1, 2));
    c->flags = DLPACK_FLAG_BITMASK_IS_SUBBYTE_TYPE_PADDED;
    c->width = (6 * c->dtype.lanes + 7) / 8 * 8;
  }
}

static void draw_packed(one_case *c) {
  c->dtype = t_dtype(kDLUInt, (int)ONE_OF(1, 2, 4, 4, 4), (int)ONE_OF(1, 1, 1, 3, 5));
  if (below(3) == 0) c->dtype = t_dtype(kDLFloat6_e3m2fn, 6, (int)ONE_OF(1, 1, 3));
  if (below(3) == 0) c->dtype = t_dtype(kDLFloat4_e2m1fn, 4, 1);
  if (below(5) == 0) { /* unknown to DLPack, but copied */
    c->dtype = t_dtype(99, (int)ONE_OF(3, 5, 7, 9, 12, 63, 131), (int)ONE_OF(1, 1, 3));
    c->options.flags = DLRS_COPY_RAW_BYTES;
  }
  c->width = c->dtype.bits * c->dtype.lanes;
}

static int random_case(int packed) {
  one_case c;
  unsigned which = draw_options(&c, packed ? "bits" : "bytes");
  int64_t most, total = 1, dims = below(9);
  if (packed) draw_packed(&c); else draw_whole(&c);
  if (c.dtype.code == 99 && which == 1u << IMPORT) which = 1u << CLONE;
  most = packed ? 3000 : (below(8) == 0 ? 30000 : 2000) * 8 / (8 + c.width / 8);
  while (dims-- > 0) {
    int64_t extent = one_of(EXTENTS, sizeof EXTENTS / sizeof *EXTENTS);
    if (total * extent > most) continue;
    c.shape[c.ndim++] = extent;
    total *= extent;
  }
  draw_strides(&c, below(4), c.src.strides);
  draw_strides(&c, below(2) * below(4), c.dst.strides);
  if (below(8) == 0) woven(c.ndim, c.shape, c.src.strides);
  if (below(3) == 0) woven(c.ndim, c.shape, c.dst.strides);
  for (dims = 0; dims < c.ndim; ++dims) {
    if (below(8) == 0) c.src.strides[dims] = 0;
  }
  return check(&c, which);
}

/* ---- Named cases ----------------------------------------------------------------------------*/

static const struct named {
  const char *name;
  int code, bits, lanes;
  int ndim;
  int64_t shape[6];
  int perm[6];      /* the destination's dimension i is the source's perm[i] */
  unsigned back;    /* source dimensions with negative strides, and THIRDS */
  unsigned repeats; /* source dimensions that repeat one element */
  int64_t gap;      /* elements between the destination's rows */
} named[] = {
#define TURNED {1, 0}
#define THIRDS 256u /* every third element of the source */
#define INT kDLUInt
    {"square, 1 byte, odd", INT, 8, 1, 2, {1511, 1301}, TURNED, 0, 0, 5},
    {"square, 2 bytes", INT, 16, 1, 2, {1536, 1024}, TURNED, 0, 0, 0},
    {"square, 4 bytes, odd", INT, 32, 1, 2, {1000, 1001}, TURNED, 0, 0, 1},
    {"square, 8 bytes", INT, 64, 1, 2, {1000, 1001}, TURNED, 0, 0, 0},
    {"square, 16 bytes", kDLComplex, 128, 1, 2, {500, 501}, TURNED, 0, 0, 0},
    {"square, non-temporal", INT, 8, 1, 2, {4224, 4160}, TURNED, 0, 0, 0},
    {"box, non-temporal", INT, 8, 1, 3, {314, 1000, 112}, {2, 1, 0}, 0, 0, 0},
    {"rows in others' lines, 4 bytes", INT, 32, 1, 2, {138, 9001}, TURNED, 0, 0, 1},
    {"rows anywhere, 8 bytes", INT, 64, 1, 2, {801, 803}, TURNED, 0, 0, 1},
    {"volume, rows in others' lines", INT, 32, 1, 3, {76, 3, 5003}, {2, 1, 0}, 0, 0, 1},
    {"square, backwards", INT, 32, 1, 2, {600, 1024}, TURNED, 3, 0, 0},
    {"squares, 2 bytes", INT, 16, 1, 3, {40, 64, 96}, {0, 2, 1}, 1, 0, 0},
    {"five dimensions, 1 byte", INT, 8, 1, 5, {19, 13, 10, 36, 25}, {4, 3, 2, 1, 0}, 0, 0, 0},
    {"five dimensions, 4 bytes", INT, 32, 1, 5, {32, 24, 16, 24, 8}, {4, 3, 2, 1, 0}, 0, 0, 0},
    {"six dimensions", INT, 32, 1, 6, {6, 7, 8, 9, 10, 11}, {4, 0, 5, 1, 3, 2}, 5, 0, 1},
    {"thirds, 1 byte", INT, 8, 1, 2, {700, 900}, TURNED, THIRDS, 0, 0},
    {"thirds, 1 byte, volume", INT, 8, 1, 4, {7, 30, 40, 60}, {3, 1, 0, 2}, THIRDS | 1, 0, 5},
    {"pixels to planes", INT, 8, 1, 3, {4, 65536, 3}, {0, 2, 1}, 0, 0, 0},
    {"planes to pixels", INT, 8, 1, 3, {4, 3, 65536}, {0, 2, 1}, 0, 0, 0},
    {"eight planes", INT, 8, 1, 3, {2, 8, 20000}, {0, 2, 1}, 0, 0, 0},
    {"three bytes", INT, 8, 3, 2, {700, 600}, TURNED, 0, 0, 0},
    {"twelve bytes", INT, 32, 3, 2, {300, 400}, TURNED, 0, 0, 0},
    {"rows", INT, 32, 25, 2, {300, 400}, TURNED, 0, 0, 0},
    {"long rows", INT, 8, 1000, 2, {40, 50}, TURNED, 0, 0, 7},
    {"reversed, 1 byte", INT, 8, 1, 1, {3000000}, {0}, 1, 0, 0},
    {"reversed, 4 bytes", INT, 32, 1, 2, {100, 9000}, {0, 1}, 2, 0, 0},
    {"fill, 3 bytes", INT, 8, 3, 2, {700, 900}, {0, 1}, 0, 2, 0},
    {"fill, all", INT, 16, 1, 2, {700, 900}, {0, 1}, 0, 3, 1},
    {"rows repeated", INT, 8, 1, 3, {70, 30, 90}, {0, 1, 2}, 0, 2, 0},
    {"squares repeated, 2 bytes", INT, 16, 1, 3, {9, 500, 400}, {0, 2, 1}, 0, 1, 0},
    {"gaps", INT, 32, 1, 2, {900, 700}, {0, 1}, 0, 0, 3},
    {"few", INT, 32, 1, 3, {3, 4, 5}, {2, 1, 0}, 0, 0, 0},
    {"rows one after the other", INT, 8, 1, 2, {1024, 17000}, TURNED, 0, 0, 0},
    {"slim, 2 bytes", INT, 16, 1, 3, {30, 5, 900}, {0, 2, 1}, 0, 0, 0},
    {"table", INT, 32, 1, 4, {30, 3, 5, 90}, {2, 0, 3, 1}, 0, 0, 1},
    {"4 bits, transposed", kDLFloat4_e2m1fn, 4, 1, 2, {1024, 1056}, TURNED, 0, 0, 0},
    {"4 bits, odd", kDLFloat4_e2m1fn, 4, 1, 2, {333, 555}, TURNED, 0, 0, 1},
    {"6 bits, odd", kDLFloat6_e2m3fn, 6, 1, 2, {301, 203}, TURNED, 2, 0, 0},
    {"1 bit", INT, 1, 1, 2, {300, 203}, TURNED, 0, 0, 0},
    {"2 bits, batches", INT, 2, 1, 3, {30, 40, 64}, {0, 2, 1}, 0, 0, 0},
    {"4 bits, rows", kDLFloat4_e2m1fn, 4, 1, 2, {300, 2003}, {0, 1}, 0, 0, 5},
    {"dense, non-temporal", INT, 32, 1, 1, {5600000}, {0}, 0, 0, 0},
    {"4 bits, rows of odd length", INT, 4, 1, 2, {5900, 5901}, {0, 1}, 0, 0, 3},
    {"4 bits, large, transposed", INT, 4, 1, 2, {5900, 5900}, TURNED, 0, 0, 0},
    {"4 bits, backwards", kDLFloat4_e2m1fn, 4, 1, 2, {30, 2003}, {0, 1}, 2, 0, 0},
};

/* On one thread, on two, by the caller's threads, and where malloc fails. */
static void named_case(const struct named *l, long divisor) {
  one_case c;
  int64_t strides[6], shape[6], next = l->back & THIRDS ? 3 : 1;
  int i, way;
  memset(&c, 0, sizeof c);
  c.name = l->name;
  c.dtype = t_dtype(l->code, l->bits, l->lanes);
  c.width = (int64_t)l->bits * l->lanes;
  c.ndim = l->ndim;
  for (i = l->ndim; i-- > 0; next *= shape[i]) {
    shape[i] = l->shape[i] > 500 && divisor > 1 ? l->shape[i] / divisor + 64 : l->shape[i];
    strides[i] = (l->repeats >> i & 1) ? 0 : (l->back >> i & 1) ? -next : next;
  }
  for (i = 0; i < l->ndim; ++i) {
    c.shape[i] = shape[l->perm[i]];
    c.src.strides[i] = strides[l->perm[i]];
  }
  for (next = 1, i = l->ndim; i-- > 0; next *= c.shape[i]) {
    c.dst.strides[i] = next;
    if (i == l->ndim - 1) next += l->gap;
  }
  c.options.struct_size = sizeof c.options;
  for (way = 0; way < 4; ++way) {
    c.options.threads = way == 1 ? 2 : way == 2 ? 4 : 1;
    c.options.parallel_for = way == 2 ? l->ndim % 2 ? refusing_hook : hook : NULL;
    c.options.parallel_context = &hooked;
    c.without_memory = way == 3;
    check(&c, way < 2 ? ~(~0u << COPIERS) : 1u << DESC);
  }
}

/* Data that is computed once for a whole copy is stored in allocated memory, if there is any:
 * offsets of rows of several dimensions, and repeated elements. */
static void memory_cases(void) {
  static const struct {
    const char *name;
    int64_t shape[4], strides[4]; /* of the source; the destination is dense */
  } cases[] = {
      {"rows of three dimensions", {11, 13, 9, 70}, {1, 99 * 71, 11, 99}},
      {"columns of three", {70, 11, 13, 9}, {1, 9 * 71, 99 * 71, 71}},
      {"both of several", {7, 19, 11, 23}, {11, 23 * 77, 1, 77}},
      {"more than are kept", {65, 13, 5, 17}, {5, 65 * 5, 1, 65 * 67}},
      {"a column, repeated", {40, 50, 9, 3}, {1, 40, 0, 2000}},
      {"a row, repeated", {6, 50, 70, 1}, {1, 0, 6, 1}},
  };
  one_case c;
  size_t i;
  int size;
  for (i = 0; i < sizeof cases / sizeof *cases; ++i) {
    for (size = 2; size <= 33; ++size) {
      memset(&c, 0, sizeof c);
      c.name = cases[i].name;
      c.without_memory = size % 2;
      c.options.struct_size = sizeof c.options;
      c.options.threads = 1;
      c.dtype = t_dtype(kDLUInt, 8, size / 2);
      c.width = 8 * (size / 2);
      c.ndim = 4;
      memcpy(c.shape, cases[i].shape, sizeof cases[i].shape);
      memcpy(c.src.strides, cases[i].strides, sizeof cases[i].strides);
      t_compact(4, c.shape, c.dst.strides);
      check(&c, 1u << DESC);
    }
  }
}

/* ---- One tensor onto the memory of the other; searches; rejected copies -----------------------*/

static void prepare(call *c, DLDataType dtype, int ndim, int64_t *shape, void *from,
                    int64_t *from_strides, void *to, int64_t *to_strides) {
  memset(c, 0, sizeof *c);
  c->src = t_managed(t_describe(from, dtype, ndim, shape, from_strides), 0);
  c->dst = t_managed(t_describe(to, dtype, ndim, shape, to_strides), 0);
  c->options.struct_size = sizeof c->options;
}

/* A transpose of a square onto itself, through a buffer; and its error without permission. */
static void onto_itself(int bits, int64_t n) {
  int64_t shape[2], rows[2], columns[2];
  size_t nbytes = (size_t)(n * n * bits + 7) / 8;
  call c;
  shape[0] = shape[1] = rows[0] = columns[1] = n;
  rows[1] = columns[0] = 1;
  draw_bytes(before, nbytes);
  memcpy(expected, before, nbytes);
  memcpy(dense, before, nbytes);
  copy_by_bit(2, shape, bits, before, 0, columns, expected, 0, rows);
  prepare(&c, t_dtype(kDLUInt, bits, 1), 2, shape, dense, columns, dense, rows);
  c.options.threads = 2;
  run(&functions[COPY], "onto itself", &c);
  EQUAL(c.status, DLRS_OVERLAP_SRC_DST);
  c.options.flags = DLRS_COPY_ALLOW_OVERLAP;
  run(&functions[COPY], "onto itself", &c);
  CHECK(c.status == DLRS_OK && memcmp(dense, expected, nbytes) == 0);
  memcpy(dense, before, nbytes);
  run(&functions[BATCH], "onto itself and back", &c);
  CHECK(c.status == DLRS_OK && memcmp(dense, before, nbytes) == 0);
}

/* Elements for which shared memory must be searched: in the destination, and with the source. */
static void searched(void) {
  static const int64_t primes[] = {10007, 20011, 40009, 80021, 160001, 320009, 640007, 1280023};
  int64_t shape[11], from[11] = {0}, to[11];
  call c;
  int i;
  for (i = 0; i < 11; ++i) {
    shape[i] = i < 8 ? 2 : 3;
    to[i] = i < 8 ? primes[i] : i == 8 ? 35 : i == 9 ? 21 : 14; /* 35 = 21 + 14 */
  }
  prepare(&c, t_dtype(kDLUInt, 8, 1), 11, shape, before, from, before + 8, to);
  run(&functions[COPY], "a search among the destination's", &c);
  EQUAL(c.status, DLRS_OVERLAP_DST);
  for (i = 0; i < 11; ++i) {
    from[i] = i < 8 ? primes[7 - i] + 3 : 1 + i;
    to[i] = i < 8 ? primes[i] : i == 8 ? 35 : i == 9 ? 105 : 315;
  }
  c.src.dl_tensor.data = before + 43; /* (0, ..., 1, 0, 0) of the destination */
  run(&functions[COPY], "a search between both", &c);
  EQUAL(c.status, DLRS_OVERLAP_SRC_DST);
  c.dst.dl_tensor.dtype = F32;
  run(&functions[COPY], "a text is written", &c);
  EQUAL(c.status, DLRS_DTYPE_MISMATCH);
  CHECK(strstr(t_error.message, "dtype") != NULL);
}

/* ---- Conversions ------------------------------------------------------------------------------*/

/* n x n elements, all of them `value`, to another dtype and place, where each becomes `wanted`;
 * transposed or not, onto its own memory or not; and a fill with it. */
static void converted(const char *name, int64_t n, int turned, DLDataType from, DLDataType to,
                      const void *value, const void *wanted, int onto_itself_too) {
  size_t from_nbytes = (size_t)(from.bits * from.lanes / 8);
  size_t nbytes = (size_t)(to.bits * to.lanes / 8);
  int64_t shape[2], strides[2], rows[2], i, right;
  unsigned char *found = onto_itself_too ? before : expected;
  int filled;
  call c;
  shape[0] = shape[1] = rows[0] = strides[turned] = n;
  rows[1] = strides[1 - turned] = 1;
  for (i = 0; i < n * n; ++i) memcpy(before + (size_t)i * from_nbytes, value, from_nbytes);
  prepare(&c, from, 2, shape, before, strides, found, rows);
  c.dst.dl_tensor.dtype = to;
  c.options.threads = 2;
  c.options.flags = onto_itself_too ? DLRS_COPY_ALLOW_OVERLAP : 0;
  c.value = value;
  c.value_dtype = from;
  for (filled = 0; filled < 2; ++filled) {
    run(&functions[CONVERT + filled], name, &c);
    EQUAL(c.status, DLRS_OK);
    for (right = i = 0; i < n * n; ++i) {
      right += memcmp(found + (size_t)i * nbytes, wanted, nbytes) == 0;
    }
    EQUAL(right, n * n);
    memset(found, 0, (size_t)(n * n) * nbytes);
    c.dst.dl_tensor.strides = strides;
  }
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
  const struct {
    const char *name;
    int64_t n;
    int turned;
    DLDataType from, to;
    const void *value, *wanted;
  } all[] = {
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
  int onto;
  for (i = 0; i < sizeof all / sizeof *all; ++i) {
    for (onto = 0; onto <= all[i].turned; ++onto) {
      converted(all[i].name, all[i].n > 500 && divisor > 1 ? all[i].n / divisor + 64 : all[i].n,
                all[i].turned, all[i].from, all[i].to, all[i].value, all[i].wanted, onto);
    }
  }
}

int main(int argc, char **argv) {
  static const int square_bits[] = {8, 16, 32, 64, 4};
  long cases = argc > 1 ? atol(argv[1]) : 4000, divisor = argc > 1 ? 8 : 1, i;
  if (argc > 2) state ^= strtoull(argv[2], NULL, 0);
  from_room = guarded_new(ROOM);
  to_room = guarded_new(ROOM);
  before = (unsigned char *)calloc(3, ROOM);
  if (before == NULL) return 1;
  expected = before + ROOM;
  dense = expected + ROOM;
  small_stack_begin();
  for (i = 0; i < cases && failures < 5; ++i) random_case(0);
  for (i = 0; i < cases && failures < 5; ++i) random_case(1);
  memory_cases();
  for (i = 0; i < (long)(sizeof named / sizeof *named) && failures < 5; ++i) {
    named_case(&named[i], divisor);
  }
  for (i = 0; i < 5; ++i) {
    onto_itself(square_bits[i], divisor > 1 ? 130 : 1024 + 3 * i);
  }
  searched();
  conversions(divisor);
  CHECK(hooked > 0);
  for (i = 0; i < (long)(sizeof functions / sizeof *functions); ++i) {
    printf("%s: %lu bytes (%s)\n", functions[i].name, (unsigned long)functions[i].most,
           functions[i].most_in);
  }
  small_stack_end();
  free(before);
  return t_close();
}
