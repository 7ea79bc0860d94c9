/* Conversion, fills, comparison and plain bytes of random layouts of every dtype, of many tiles and
 * of sizes that several threads share, between guard pages. Comparisons are checked against a
 * separate reader of all formats; conversions against that of one element, which tests/cast.rs and
 * tests/python/test_cast.py check.
 * Then copies of all kinds of tensors whose rows are up to 2^32 + 192 bytes apart, in either
 * direction, in memory of which few pages are touched. In a smaller address space, rows are closer.
 * `test_elements [cases [seed]]`; with cases, no far tensor is large. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <float.h>
#include <sys/mman.h>

#include "by_bit.h"
#include "guarded.h"
#include "harness.h"
#include "random.h"
#include "woven.h"

enum { DIMS = 5, NARROW = 1 << 24, ROOM = 40 << 20, ELEMENT = 64 };

static guarded rooms[4];
static unsigned char *expected;
static long failed;

/* ---- Numbers --------------------------------------------------------------------------------*/

/* The meaning of the largest exponent and of negative zero. */
enum { WHOLE, TRUTH, IEEE, NAN_LAST, NAN_MINUS_ZERO, FINITE, POWER };

typedef struct format {
  int code, bits, parts, kind, exponent, mantissa, bias; /* of one of the parts */
} format;

static const format formats[] = {
    {kDLInt, 1, 1, WHOLE, 0, 0, 0},           {kDLInt, 2, 1, WHOLE, 0, 0, 0},
    {kDLInt, 4, 1, WHOLE, 0, 0, 0},           {kDLInt, 8, 1, WHOLE, 0, 0, 0},
    {kDLInt, 16, 1, WHOLE, 0, 0, 0},          {kDLInt, 32, 1, WHOLE, 0, 0, 0},
    {kDLInt, 64, 1, WHOLE, 0, 0, 0},          {kDLUInt, 1, 1, WHOLE, 0, 0, 0},
    {kDLUInt, 2, 1, WHOLE, 0, 0, 0},          {kDLUInt, 4, 1, WHOLE, 0, 0, 0},
    {kDLUInt, 8, 1, WHOLE, 0, 0, 0},          {kDLUInt, 16, 1, WHOLE, 0, 0, 0},
    {kDLUInt, 32, 1, WHOLE, 0, 0, 0},         {kDLUInt, 64, 1, WHOLE, 0, 0, 0},
    {kDLBool, 8, 1, TRUTH, 0, 0, 0},           {kDLFloat, 16, 1, IEEE, 5, 10, 15},
    {kDLFloat, 32, 1, IEEE, 8, 23, 127},      {kDLFloat, 64, 1, IEEE, 11, 52, 1023},
    {kDLBfloat, 16, 1, IEEE, 8, 7, 127},      {kDLComplex, 32, 2, IEEE, 5, 10, 15},
    {kDLComplex, 64, 2, IEEE, 8, 23, 127},    {kDLComplex, 128, 2, IEEE, 11, 52, 1023},
    {kDLFloat8_e3m4, 8, 1, IEEE, 3, 4, 3},    {kDLFloat8_e4m3, 8, 1, IEEE, 4, 3, 7},
    {kDLFloat8_e5m2, 8, 1, IEEE, 5, 2, 15},   {kDLFloat8_e4m3fn, 8, 1, NAN_LAST, 4, 3, 7},
    {kDLFloat6_e2m3fn, 6, 1, FINITE, 2, 3, 1}, {kDLFloat6_e3m2fn, 6, 1, FINITE, 3, 2, 3},
    {kDLFloat4_e2m1fn, 4, 1, FINITE, 2, 1, 1}, {kDLFloat8_e8m0fnu, 8, 1, POWER, 8, 0, 127},
    {kDLFloat8_e4m3b11fnuz, 8, 1, NAN_MINUS_ZERO, 4, 3, 11},
    {kDLFloat8_e4m3fnuz, 8, 1, NAN_MINUS_ZERO, 4, 3, 8},
    {kDLFloat8_e5m2fnuz, 8, 1, NAN_MINUS_ZERO, 5, 2, 16},
    {DLRS_CODE_BCOMPLEX, 32, 2, IEEE, 8, 7, 127}};
enum { FORMATS = sizeof formats / sizeof *formats };

/* 2 to a power within the range of normal doubles. */
static double power_of_two(int power) {
  uint64_t bits = (uint64_t)(power + 1023) << 52;
  double value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

static double read_float(const format *f, uint64_t bits) {
  uint64_t all = (UINT64_C(1) << f->mantissa) - 1, mantissa = bits & all;
  int most = (1 << f->exponent) - 1, exponent = (int)(bits >> f->mantissa) & most;
  int minus = f->kind != POWER && bits >> (f->exponent + f->mantissa) & 1, nan = 0;
  double value;
  if (f->kind == IEEE) nan = exponent == most && mantissa != 0;
  if (f->kind == NAN_LAST) nan = exponent == most && mantissa == all;
  if (f->kind == NAN_MINUS_ZERO) nan = minus && exponent == 0 && mantissa == 0;
  if (f->kind == POWER) nan = exponent == most;
  if (nan || (f->kind == IEEE && exponent == most)) { /* computed, since math.h may be missing */
    volatile double huge = 1e300, endless = huge * huge;
    value = nan ? endless - endless : endless;
  } else if (exponent == 0 && f->kind != POWER) { /* in two steps: may exceed a double */
    value = (double)mantissa * power_of_two(-f->mantissa) * 2.0;
    value *= f->bias > 1000 ? power_of_two(-1000) * power_of_two(1000 - f->bias)
                            : power_of_two(-f->bias);
  } else {
    value = 1.0 + (double)mantissa * power_of_two(-f->mantissa);
    value *= power_of_two(exponent - f->bias);
  }
  return minus ? -value : value;
}

/* The bits of the n-th part of an element, the lowest first. */
static uint64_t part_of(const unsigned char *element, int bits, int n) {
  const unsigned char *at = element + n * bits / 8;
  uint16_t two;
  uint32_t four;
  uint64_t value = 0;
  int bit;
  switch (bits) {
    case 8: return *at;
    case 16: memcpy(&two, at, 2); return two;
    case 32: memcpy(&four, at, 4); return four;
    case 64: memcpy(&value, at, 8); return value;
    default: break;
  }
  for (bit = 0; bit < bits; ++bit) {
    value |= (uint64_t)(element[(n * bits + bit) / 8] >> (n * bits + bit) % 8 & 1) << bit;
  }
  return value;
}

/* The relation of two elements, or of two tensors. */
typedef struct verdict {
  int same_bits, same_values, same_or_nan;
  uint64_t apart;    /* integers */
  double difference; /* of the others */
  int nan;           /* only one of them is */
} verdict;

static void compare_parts(const format *f, int bits, uint64_t a, uint64_t b, verdict *v) {
  v->same_bits &= a == b;
  if (f->kind == WHOLE) {
    /* Maps signed to unsigned, in the same order. */
    uint64_t sign = f->code == kDLInt ? UINT64_C(1) << (bits - 1) : 0, x = a ^ sign, y = b ^ sign;
    uint64_t apart = x > y ? x - y : y - x;
    v->same_values &= a == b;
    v->same_or_nan &= a == b;
    if (apart > v->apart) v->apart = apart;
  } else {
    double x = f->kind == TRUTH ? a != 0 : read_float(f, a);
    double y = f->kind == TRUTH ? b != 0 : read_float(f, b);
    int nans = x != x && y != y, same = x == y || nans;
    double difference = same ? 0 : x < y ? y - x : x - y;
    v->same_values &= x == y;
    v->same_or_nan &= same;
    v->nan |= difference != difference;
    if (difference > v->difference) v->difference = difference;
  }
}

/* ---- Layouts --------------------------------------------------------------------------------*/

static int32_t ndim;
static int64_t shape[DIMS], count;

/* A tensor of exactly `nbytes` bytes; strides count slots. */
typedef struct side {
  const format *f;
  int item, slot; /* bits of an element, and its pitch */
  int64_t strides[DIMS], low, nbytes;
  unsigned char *bytes;
  DLManagedTensorVersioned managed;
} side;

/* False when there is no room. */
static int lay_out(side *s, const format *f, int lanes, const guarded *room, int repeats) {
  int64_t next = 1, low = 0, high = 0, offset = below(3) * 5;
  int order[DIMS], gaps = below(3) == 0, padded = (int)below(2), any = below(3) == 0, i;
  s->f = f;
  s->item = s->slot = f->bits * lanes;
  if (padded) s->slot = (s->item + 7) / 8 * 8;
  for (i = 0; i < ndim; ++i) order[i] = ndim - 1 - i;
  for (i = ndim - 1; i > 0 && below(3) != 0; --i) {
    int other = (int)below(i + 1), kept = order[i];
    order[i] = order[other];
    order[other] = kept;
  }
  if (any) woven(ndim, shape, s->strides);
  for (i = 0; i < ndim; ++i) {
    int64_t *stride = &s->strides[order[i]], reach;
    if (gaps && below(3) == 0) next += 1 + below(3);
    if (!any) *stride = below(5) == 0 ? -next : next;
    next *= shape[order[i]];
    if (repeats && below(12) == 0) *stride = 0;
    reach = (shape[order[i]] - 1) * *stride * s->slot;
    if (reach < 0) low -= reach; else high += reach;
  }
  s->low = (low + 7) / 8;
  s->nbytes = s->low + (high + s->slot + 7) / 8;
  if (s->nbytes + 64 > ROOM) return 0;
  s->bytes = guarded_place(room, (size_t)s->nbytes, (unsigned)draw() % 3);
  draw_bytes(s->bytes, (size_t)s->nbytes);
  s->managed = t_managed(t_describe(s->bytes + s->low - offset, t_dtype(f->code, f->bits, lanes),
                                    ndim, shape, s->strides),
                         padded ? DLPACK_FLAG_BITMASK_IS_SUBBYTE_TYPE_PADDED : 0);
  s->managed.dl_tensor.byte_offset = (uint64_t)offset;
  return 1;
}

/* Bits before the n-th element, in row-major order. */
static int64_t place_of(const side *s, int64_t n) {
  int64_t slots = 0;
  int i;
  for (i = ndim - 1; i >= 0; --i) {
    slots += n % shape[i] * s->strides[i];
    n /= shape[i];
  }
  return 8 * s->low + slots * s->slot;
}

static void move_bits(unsigned char *to, int64_t to_bit, const unsigned char *from,
                      int64_t from_bit, int bits) {
  copy_by_bit(0, NULL, bits, from, from_bit, NULL, to, to_bit, NULL);
}

static void get(const side *s, int64_t n, unsigned char *element) {
  memset(element, 0, ELEMENT);
  move_bits(element, 0, s->bytes, place_of(s, n), s->item);
}

/* Writes into `bytes`, with the tensor's layout; other bits there are unchanged. */
static void put(const side *s, unsigned char *bytes, int64_t n, const unsigned char *element) {
  int64_t at = place_of(s, n);
  move_bits(bytes, at, element, 0, s->item);
  if (bytes != s->bytes) move_bits(bytes, at + s->item, s->bytes, at + s->item, s->slot - s->item);
}

/* ---- Cases ----------------------------------------------------------------------------------*/

static void check(int good, const char *what, const side *a, const side *b) {
  int i;
  if (t_check(good, __FILE__, __LINE__, what)) return;
  ++failed;
  printf("%s: code %d, %d bits in %d; code %d, %d bits in %d\n", what, a->managed.dl_tensor.dtype.code, a->item,
         a->slot, b->managed.dl_tensor.dtype.code, b->item, b->slot);
  for (i = 0; i < ndim; ++i) {
    printf("  extent %lld, strides %lld and %lld\n", (long long)shape[i],
           (long long)a->strides[i], (long long)b->strides[i]);
  }
}

/* Random elements, or only such as equal themselves, into both. */
static void twins(const side *a, const side *b, int tame) {
  unsigned char element[ELEMENT];
  int bits = a->f->bits / a->f->parts, n;
  int64_t i;
  for (i = 0; i < count && tame; ++i) {
    for (n = 0; n < a->item / bits; ++n) {
      unsigned char *at = a->bytes;
      int64_t bit = place_of(a, i) + n * bits;
      verdict v = {1, 1, 1, 0, 0, 0};
      do {
        draw_bytes(element, 8);
        v.same_values = 1;
        compare_parts(a->f, bits, part_of(element, bits, 0), part_of(element, bits, 0), &v);
      } while (!v.same_values);
      move_bits(at, bit, element, 0, bits);
    }
  }
  for (i = 0; i < count; ++i) {
    get(a, i, element);
    put(b, b->bytes, i, element);
  }
}

/* Where doubles are computed with more bits and rounded twice, the last bit is not compared. */
static int equals(double a, double b) {
  return a == b || (FLT_EVAL_METHOD != 0 && (a < b ? b - a : a - b) <= b * 1e-15);
}

static void compared(const side *a, const side *b, const char *what) {
  unsigned char x[ELEMENT], y[ELEMENT];
  verdict v = {1, 1, 1, 0, 0, 0};
  int bits = a->f->bits / a->f->parts, n;
  int32_t same[3] = {9, 9, 9};
  double apart = -1, want;
  int64_t i;
  for (i = 0; i < count; ++i) {
    get(a, i, x);
    get(b, i, y);
    for (n = 0; n < a->item / bits; ++n) {
      compare_parts(a->f, bits, part_of(x, bits, n), part_of(y, bits, n), &v);
    }
  }
  want = a->f->kind == WHOLE ? (double)v.apart : v.difference;
  check(dlrs_equal(&a->managed, &b->managed, DLRS_EQUAL_BITS, &same[0], ERR) == DLRS_OK &&
            dlrs_equal(&a->managed, &b->managed, DLRS_EQUAL_VALUES, &same[1], ERR) == DLRS_OK &&
            dlrs_equal(&a->managed, &b->managed, DLRS_EQUAL_VALUES_OR_NAN, &same[2], ERR) ==
                DLRS_OK &&
            same[0] == v.same_bits && same[1] == v.same_values && same[2] == v.same_or_nan,
        what, a, b);
  check(dlrs_max_diff(&a->managed, &b->managed, &apart, ERR) == DLRS_OK &&
            (v.nan ? apart != apart : equals(apart, want)),
        what, a, b);
}

static void flip_a_bit(const side *s) {
  int64_t bit = place_of(s, below(count)) + below(s->item);
  s->bytes[bit / 8] ^= (unsigned char)(1 << bit % 8);
}

/* One element, converted alone. */
static void convert(const side *from, const side *to, const unsigned char *in, unsigned char *out) {
  DLDataType read = from->managed.dl_tensor.dtype, written = to->managed.dl_tensor.dtype;
  DLManagedTensorVersioned a =
      t_managed(t_describe((void *)(uintptr_t)in, read, 0, NULL, NULL), 0);
  DLManagedTensorVersioned b = t_managed(t_describe(out, written, 0, NULL, NULL), 0);
  memset(out, 0, ELEMENT);
  if (dlrs_cast(&a, &b, NULL, ERR) != DLRS_OK) check(0, "one element", from, to);
}

/* Whether only elements are written, and equal `expected`. */
static int as_expected(const side *s) { return memcmp(s->bytes, expected, (size_t)s->nbytes) == 0; }

static void cast(const side *a, side *c, const dlrs_copy_options *options) {
  unsigned char in[ELEMENT], out[ELEMENT];
  int64_t i;
  int worked;
  memcpy(expected, c->bytes, (size_t)c->nbytes);
  worked = dlrs_cast(&a->managed, &c->managed, options, ERR) == DLRS_OK;
  for (i = 0; i < count; ++i) {
    get(a, i, in);
    convert(a, c, in, out);
    put(c, expected, i, out);
  }
  check(worked && as_expected(c), "cast", a, c);
}

/* With an element of `a`, next to a guard page. */
static void filled(const side *a, side *c, const dlrs_copy_options *options) {
  unsigned char in[ELEMENT], out[ELEMENT];
  size_t nbytes = (size_t)(a->item + 7) / 8;
  unsigned char *value = guarded_place(&rooms[3], nbytes, 2);
  int64_t i;
  int worked;
  get(a, below(count), in);
  memcpy(value, in, nbytes);
  convert(a, c, in, out);
  memcpy(expected, c->bytes, (size_t)c->nbytes);
  worked = dlrs_fill(&c->managed, value, a->managed.dl_tensor.dtype, options, ERR) == DLRS_OK;
  for (i = 0; i < count; ++i) put(c, expected, i, out);
  check(worked && as_expected(c), "fill", a, c);
}

/* At most this many elements. */
static void shaped(int64_t most) {
  static const int64_t extents[] = {1, 2, 3, 5, 8, 17, 64, 127, 128, 129, 130, 300, 1000};
  int rank = (int)below(DIMS);
  ndim = 0;
  count = 1;
  while (rank-- > 0) {
    int64_t extent = extents[below(sizeof extents / sizeof *extents)];
    if (count * extent > most) continue;
    shape[ndim++] = extent;
    count *= extent;
  }
}

static void one_case(void) {
  const format *f = &formats[below(FORMATS)], *g = &formats[below(FORMATS)];
  int lanes = below(5) == 0 ? 1 + (int)below(4) : 1, flips;
  dlrs_copy_options options = DLRS_INIT(dlrs_copy_options);
  side a, b, c;
  options.threads = (uint32_t)below(4);
  shaped(below(3) == 0 ? 10000 : 1500);
  if (below(4) == 0) {
    ndim = 2;
    shape[1] = 2 + below(8);
    shape[0] = 2048 / shape[1] + 1 + below(200);
    count = shape[0] * shape[1];
  }
  if (!lay_out(&a, f, lanes, &rooms[0], 1) || !lay_out(&b, f, lanes, &rooms[1], (int)below(2)) ||
      !lay_out(&c, g, lanes, &rooms[2], 0)) {
    return;
  }
  twins(&a, &b, (int)below(2));
  compared(&a, &b, "equal");
  for (flips = 0; flips < 2; ++flips) {
    flip_a_bit(&b);
    compared(&a, &b, "a bit flipped");
  }
  cast(&a, &c, &options);
  filled(&b, &c, &options);
}

/* 8 MiB and more are written, enough for two threads. */
static void large_case(void) {
  const format *f = &formats[below(FORMATS)], *g = f;
  dlrs_copy_options options = DLRS_INIT(dlrs_copy_options);
  side a, b, c;
  options.threads = 2;
  while (g->bits < 64) g = &formats[below(FORMATS)];
  ndim = 2;
  shape[1] = 1 + below(300);
  shape[0] = (1 << 20) / shape[1] + 1;
  count = shape[0] * shape[1];
  if (!lay_out(&a, f, 1, &rooms[0], 0) || !lay_out(&b, f, 1, &rooms[1], 0) ||
      !lay_out(&c, g, 1, &rooms[2], 0)) {
    return;
  }
  twins(&a, &b, 0);
  flip_a_bit(&b);
  compared(&a, &b, "a bit of many flipped");
  cast(&a, &c, &options);
  filled(&a, &c, &options);
}

/* ---- Far tensors ----------------------------------------------------------------------------*/

static const uint64_t far_away = UINT64_C(96) << 30;
static unsigned char *memory[2];
static int64_t room; /* bytes in each of the two */

#define ONE_OF(values) one_of(values, sizeof(values) / sizeof *(values))

static unsigned char *reserve(uint64_t nbytes) {
  void *mapped;
  if ((size_t)nbytes != nbytes) return NULL;
  mapped = mmap(NULL, (size_t)nbytes, PROT_READ | PROT_WRITE,
                MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapped == MAP_FAILED) return NULL;
#ifdef MADV_NOHUGEPAGE
  madvise(mapped, (size_t)nbytes, MADV_NOHUGEPAGE);
#endif
  return (unsigned char *)mapped;
}

/* Two mappings, far apart if possible. */
static int prepare(void) {
  room = (int64_t)far_away;
  memory[0] = reserve(far_away);
  memory[1] = reserve(far_away);
  if (memory[0] != NULL && memory[1] != NULL) return 1;
  printf("not run: rows that are far apart (no 192 GiB of addresses)\n");
  room = NARROW;
  memory[0] = reserve(NARROW);
  memory[1] = reserve(NARROW);
  return memory[0] != NULL && memory[1] != NULL;
}

/* In any order, with gaps, reversed, repeated if allowed, and far apart along one dimension. False
 * when there is no room. */
static int lay_out_far(side *s, int in, DLDataType dtype, int apart, int repeats) {
  static const int64_t jumps[] = {INT64_C(1) << 30, INT64_C(3) << 30,
                                  INT64_C(1) << 31, (INT64_C(1) << 31) - 64,
                                  INT64_C(1) << 32, (INT64_C(1) << 32) + 192};
  const int width = dtype.bits * dtype.lanes;
  int64_t next = 1, low = 0, high = width;
  int order[DIMS], i, jump = apart && room > NARROW && ndim > 1 ? 1 + (int)below(ndim - 1) : DIMS;
  for (i = 0; i < ndim; ++i) {
    int other = (int)below(i + 1);
    order[i] = order[other];
    order[other] = i;
  }
  for (i = 0; i < ndim; ++i) {
    int64_t *stride = &s->strides[order[i]], reach;
    if (i == jump) {
      int64_t least = ONE_OF(jumps) / width * 8 + (below(2) ? 0 : below(40));
      if (least > next) next = least;
    } else if (count < 100000 && below(5) == 0) {
      next += below(9);
    }
    if (next > room / width * 8 / shape[order[i]]) return 0;
    *stride = below(5) == 0 ? -next : next;
    next *= shape[order[i]];
    if (repeats && below(10) == 0) *stride = 0;
    reach = (shape[order[i]] - 1) * *stride * width;
    if (reach < 0) low -= reach; else high += reach;
  }
  s->low = (low + 7) / 8;
  s->nbytes = s->low + (high + 7) / 8;
  if (s->nbytes + 128 > room) return 0;
  s->item = s->slot = width;
  s->bytes = memory[in] + below(64);
  s->managed = t_managed(t_describe(s->bytes + s->low, dtype, ndim, shape, s->strides), 0);
  return 1;
}

/* The expected destination: the source's elements, their first, or whether bytes are 0. */
enum { COPIED, FILLED, CAST };

static int arrived(const side *src, const side *dst, int what) {
  unsigned char a[ELEMENT], b[ELEMENT];
  int64_t n;
  int i;
  for (n = 0; n < count; ++n) {
    get(src, what == FILLED ? 0 : n, a);
    get(dst, n, b);
    for (i = 0; what == CAST && i < ELEMENT; ++i) a[i] = a[i] != 0;
    if (memcmp(a, b, ELEMENT) != 0) return 0;
  }
  return 1;
}

static void run_far(side *src, side *dst, uint32_t threads) {
  DLManagedTensorVersioned *a = &src->managed, *b = &dst->managed;
  dlrs_copy_options options = DLRS_INIT(dlrs_copy_options);
  unsigned char element[ELEMENT] = {0};
  int32_t same = 9, changed = 9;
  int64_t n;
  int worked, i;
  options.threads = threads;
  for (n = 0; n < count; ++n) { /* random elements, and others in the destination */
    draw_bytes(element, (size_t)(src->item + 7) / 8);
    put(src, src->bytes, n, element);
  }
  for (n = 0; n < count; ++n) {
    get(src, n, element);
    for (i = 0; i < ELEMENT; ++i) element[i] = (unsigned char)~element[i];
    put(dst, dst->bytes, n, element);
  }
  worked = dlrs_copy_desc(&a->dl_tensor, 0, &b->dl_tensor, 0, &options, ERR) == DLRS_OK;
  check(worked && arrived(src, dst, COPIED), "copy", src, dst);
  worked = dlrs_equal(a, b, DLRS_EQUAL_BITS, &same, ERR) == DLRS_OK;
  get(dst, count - 1, element);
  element[0] ^= 1;
  put(dst, dst->bytes, count - 1, element);
  worked &= dlrs_equal(a, b, DLRS_EQUAL_BITS, &changed, ERR) == DLRS_OK;
  check(worked && same == 1 && changed == 0, "equal", src, dst);
  get(src, 0, element);
  worked = dlrs_fill(b, element, b->dl_tensor.dtype, &options, ERR) == DLRS_OK;
  check(worked && arrived(src, dst, FILLED), "fill", src, dst);
  if (b->dl_tensor.dtype.bits == 8) {
    b->dl_tensor.dtype.code = kDLBool;
    worked = dlrs_cast(a, b, &options, ERR) == DLRS_OK;
    check(worked && arrived(src, dst, CAST), "cast", src, dst);
  }
#ifdef MADV_DONTNEED /* touched pages are returned to the system */
  madvise(memory[0], (size_t)room, MADV_DONTNEED);
  madvise(memory[1], (size_t)room, MADV_DONTNEED);
#endif
}

/* Of few dimensions, or of planes, which are transposed in tiles. */
static int far_case(void) {
  static const int64_t extents[] = {2, 3, 4, 5, 8, 16, 17, 24, 33, 64, 70, 130, 300};
  static const int64_t few[] = {2, 3, 5, 17, 24, 33}, many[] = {64, 65, 128, 130, 257, 300};
  static const int64_t sizes[] = {1, 1, 1, 1, 2, 3, 4, 5, 8, 12, 16, 20, 40};
  static const int64_t packed[] = {1, 2, 4, 4, 6};
  int bits = below(4) == 0, apart = (int)below(3), planes = (int)below(2), rank;
  DLDataType dtype = t_dtype(kDLUInt, 8, (int)ONE_OF(sizes));
  int64_t most;
  side src, dst;
  if (bits) {
    dtype.bits = (uint8_t)ONE_OF(packed);
    dtype.code = dtype.bits == 6 ? kDLFloat6_e2m3fn : kDLUInt;
    dtype.lanes = (uint16_t)(below(3) == 0 ? 3 : 1);
  }
  most = bits ? 15000 : 4000000 / (8 * dtype.lanes);
  ndim = 0;
  count = 1;
  for (rank = planes ? 3 : 2 + (int)below(DIMS - 1); rank-- > 0;) {
    int64_t extent = !planes  ? ONE_OF(extents)
                     : rank > 0 ? ONE_OF(many)
                                : ONE_OF(few);
    if (count * extent > most) continue;
    shape[ndim++] = extent;
    count *= extent;
  }
  if (!lay_out_far(&src, 0, dtype, apart != 1, 1)) return 0;
  if (!lay_out_far(&dst, 1, dtype, apart != 0, 0)) return 0;
  run_far(&src, &dst, 1);
  return 1;
}

/* Enough for two threads. */
static int large_far_case(void) {
  DLDataType dtype = t_dtype(kDLUInt, 32, 1);
  int apart = (int)below(3);
  side src, dst;
  ndim = 3;
  shape[0] = 5;
  shape[1] = 270 + below(10);
  shape[2] = 800 + below(40);
  count = shape[0] * shape[1] * shape[2];
  if (!lay_out_far(&src, 0, dtype, apart != 1, 0)) return 0;
  if (!lay_out_far(&dst, 1, dtype, apart != 0, 0)) return 0;
  run_far(&src, &dst, 2);
  return 1;
}

int main(int argc, char **argv) {
  long cases = argc > 1 ? atol(argv[1]) : 1500, far_cases = argc > 1 ? cases / 5 : 800, i;
  if (argc > 2) state ^= strtoull(argv[2], NULL, 0) * UINT64_C(0x9e3779b97f4a7c15);
  for (i = 0; i < 4; ++i) rooms[i] = guarded_new(ROOM);
  expected = (unsigned char *)malloc(ROOM);
  if (expected == NULL || !prepare()) return 1;
  t_before();
  for (i = 0; i < cases && failed < 5; ++i) one_case();
  for (i = 0; i < cases / 300 && failed < 5; ++i) large_case();
  for (i = 0; i < far_cases && failed < 5;) i += far_case();
  for (i = 0; argc == 1 && room > NARROW && i < 4 && failed < 5;) i += large_far_case();
  munmap(memory[0], (size_t)room);
  munmap(memory[1], (size_t)room);
  free(expected);
  return t_close();
}
