/* Tensors whose rows are up to 2^32 + 192 bytes apart, in either direction, in memory of which few
 * pages are touched: copies of all kinds, packed elements too, conversions, fills and comparisons,
 * on one thread and on two, compared with plain loops. In a smaller address space, rows are closer.
 * `test_far [cases [seed]]`; with cases, none is large. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <sys/mman.h>

#include "harness.h"
#include "random.h"

enum { DIMS = 5, ELEMENT = 40, NARROW = 1 << 24 };
static const uint64_t far_away = UINT64_C(96) << 30;

static unsigned char *memory[2];
static int64_t room; /* bytes in each of the two */
static long passed, failed;

static int64_t one_of(const int64_t *values, size_t nbytes) {
  return values[below((int64_t)(nbytes / sizeof *values))];
}

/* ---- Memory ---------------------------------------------------------------------------------*/

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

/* Touched pages are returned to the system. */
static void tidy(void) {
#ifdef MADV_DONTNEED
  madvise(memory[0], (size_t)room, MADV_DONTNEED);
  madvise(memory[1], (size_t)room, MADV_DONTNEED);
#endif
}

/* ---- Layouts --------------------------------------------------------------------------------*/

static int32_t ndim;
static int64_t shape[DIMS], count;
static int width; /* bits of an element */

typedef struct side {
  int64_t strides[DIMS]; /* in elements */
  unsigned char *first;
  DLTensor tensor;
} side;

/* In any order, with gaps, reversed, repeated if allowed, and far apart along one dimension. False
 * when there is no room. */
static int lay_out(side *s, int in, DLDataType dtype, int apart, int repeats) {
  static const int64_t jumps[] = {INT64_C(1) << 30,         INT64_C(3) << 30,
                                  INT64_C(1) << 31,         (INT64_C(1) << 31) - 64,
                                  INT64_C(1) << 32,         (INT64_C(1) << 32) + 192};
  int64_t next = 1, low = 0, high = width;
  int order[DIMS], i, jump = apart && room > NARROW && ndim > 1 ? 1 + (int)below(ndim - 1) : DIMS;
  for (i = 0; i < ndim; ++i) order[i] = i;
  for (i = ndim - 1; i > 0; --i) {
    int other = (int)below(i + 1), kept = order[i];
    order[i] = order[other];
    order[other] = kept;
  }
  for (i = 0; i < ndim; ++i) {
    int64_t *stride = &s->strides[order[i]], reach;
    if (i == jump) {
      int64_t least = one_of(jumps, sizeof jumps) / width * 8 + (below(2) ? 0 : below(40));
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
  low = (low + 7) / 8;
  if (low + (high + 7) / 8 + 128 > room) return 0;
  s->first = memory[in] + low + below(64);
  s->tensor = t_describe(s->first, dtype, ndim, shape, s->strides);
  return 1;
}

/* Bits from the first element to the n-th. */
static int64_t place_of(const side *s, int64_t n) {
  int64_t elements = 0;
  int i;
  for (i = ndim - 1; i >= 0; --i) {
    elements += n % shape[i] * s->strides[i];
    n /= shape[i];
  }
  return elements * width;
}

/* Signed offsets: bit -1 is the last of the byte before. */
static unsigned char *byte_of(unsigned char *first, int64_t bit) {
  return first + (bit >= 0 ? bit / 8 : -((7 - bit) / 8));
}

static void get(const side *s, int64_t n, unsigned char *element) {
  int64_t at = place_of(s, n);
  int i;
  memset(element, 0, ELEMENT);
  if (width % 8 == 0) {
    memcpy(element, byte_of(s->first, at), (size_t)width / 8);
    return;
  }
  for (i = 0; i < width; ++i, ++at) {
    element[i / 8] |= (unsigned char)((*byte_of(s->first, at) >> (at & 7) & 1) << i % 8);
  }
}

static void put(const side *s, int64_t n, const unsigned char *element) {
  int64_t at = place_of(s, n);
  int i;
  if (width % 8 == 0) {
    memcpy(byte_of(s->first, at), element, (size_t)width / 8);
    return;
  }
  for (i = 0; i < width; ++i, ++at) {
    unsigned char *byte = byte_of(s->first, at), mask = (unsigned char)(1 << (at & 7));
    *byte = (unsigned char)(element[i / 8] >> i % 8 & 1 ? *byte | mask : *byte & ~mask);
  }
}

/* ---- Cases ----------------------------------------------------------------------------------*/

static void check(int good, const char *what, const side *src, const side *dst) {
  int i;
  if (good) {
    ++passed;
    return;
  }
  ++failed;
  printf("failed: %s of %d bits (%.255s)\n", what, width, t_error.message);
  for (i = 0; i < ndim; ++i) {
    printf("  extent %lld: from %lld to %lld\n", (long long)shape[i], (long long)src->strides[i],
           (long long)dst->strides[i]);
  }
}

/* Random elements in the source, others in the destination. */
static void scatter(const side *src, const side *dst) {
  unsigned char element[ELEMENT] = {0};
  int64_t n;
  int i;
  for (n = 0; n < count; ++n) {
    for (i = 0; i < (width + 7) / 8; ++i) element[i] = (unsigned char)draw();
    put(src, n, element);
  }
  for (n = 0; n < count; ++n) {
    get(src, n, element);
    for (i = 0; i < ELEMENT; ++i) element[i] = (unsigned char)~element[i];
    put(dst, n, element);
  }
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

/* Equal tensors, and then ones that differ in the last element. */
static int compared(const side *dst, DLManagedTensorVersioned *a, DLManagedTensorVersioned *b) {
  unsigned char element[ELEMENT];
  int32_t twins = 9, others = 9;
  int worked = dlrs_equal(a, b, DLRS_EQUAL_BITS, &twins, ERR) == DLRS_OK;
  get(dst, count - 1, element);
  element[0] ^= 1;
  put(dst, count - 1, element);
  worked &= dlrs_equal(a, b, DLRS_EQUAL_BITS, &others, ERR) == DLRS_OK;
  return worked && twins == 1 && others == 0;
}

static void run(side *src, side *dst, uint32_t threads) {
  DLManagedTensorVersioned a = t_managed(src->tensor, 0), b = t_managed(dst->tensor, 0);
  dlrs_copy_options options = DLRS_INIT(dlrs_copy_options);
  unsigned char element[ELEMENT];
  int worked;
  memset(&t_error, 0, sizeof t_error);
  t_error.struct_size = sizeof t_error;
  options.threads = threads;
  scatter(src, dst);
  worked = dlrs_copy_desc(&a.dl_tensor, 0, &b.dl_tensor, 0, &options, ERR) == DLRS_OK;
  check(worked && arrived(src, dst, COPIED), "copy", src, dst);
  check(compared(dst, &a, &b), "equal", src, dst);
  get(src, 0, element);
  worked = dlrs_fill(&b, element, dst->tensor.dtype, &options, ERR) == DLRS_OK;
  check(worked && arrived(src, dst, FILLED), "fill", src, dst);
  if (dst->tensor.dtype.bits == 8) {
    b.dl_tensor.dtype.code = kDLBool;
    worked = dlrs_cast(&a, &b, &options, ERR) == DLRS_OK;
    check(worked && arrived(src, dst, CAST), "cast", src, dst);
  }
  tidy();
}

/* At most this many elements: of few dimensions, or of planes, which are transposed in tiles. */
static void shaped(int64_t most) {
  static const int64_t extents[] = {2, 3, 4, 5, 8, 16, 17, 24, 33, 64, 70, 130, 300};
  static const int64_t few[] = {2, 3, 5, 17, 24, 33}, many[] = {64, 65, 128, 130, 257, 300};
  int rank = 2 + (int)below(DIMS - 1), planes = (int)below(2);
  ndim = 0;
  count = 1;
  if (planes) rank = 3;
  while (rank-- > 0) {
    int64_t extent = one_of(extents, sizeof extents);
    if (planes) extent = rank > 0 ? one_of(many, sizeof many) : one_of(few, sizeof few);
    if (count * extent > most) continue;
    shape[ndim++] = extent;
    count *= extent;
  }
}

static int one_case(void) {
  static const int64_t sizes[] = {1, 1, 1, 1, 2, 3, 4, 5, 8, 12, 16, 20, 40};
  static const int64_t packed[] = {1, 2, 4, 4, 6};
  int bits = below(4) == 0, apart = (int)below(3);
  DLDataType dtype = t_dtype(kDLUInt, 8, 1);
  side src, dst;
  dtype.lanes = (uint16_t)one_of(sizes, sizeof sizes);
  if (bits) {
    dtype.bits = (uint8_t)one_of(packed, sizeof packed);
    dtype.code = dtype.bits == 6 ? kDLFloat6_e2m3fn : kDLUInt;
    dtype.lanes = (uint16_t)(below(3) == 0 ? 3 : 1);
  }
  width = dtype.bits * dtype.lanes;
  shaped(bits ? 15000 : 4000000 / width);
  if (!lay_out(&src, 0, dtype, apart != 1, 1) || !lay_out(&dst, 1, dtype, apart != 0, 0)) return 0;
  run(&src, &dst, 1);
  return 1;
}

/* Enough for two threads. */
static int large_case(void) {
  DLDataType dtype = t_dtype(kDLUInt, 32, 1);
  side src, dst;
  int apart = (int)below(3);
  width = 32;
  ndim = 3;
  shape[0] = 5;
  shape[1] = 270 + below(10);
  shape[2] = 800 + below(40);
  count = shape[0] * shape[1] * shape[2];
  if (!lay_out(&src, 0, dtype, apart != 1, 0) || !lay_out(&dst, 1, dtype, apart != 0, 0)) return 0;
  run(&src, &dst, 2);
  return 1;
}

int main(int argc, char **argv) {
  long cases = argc > 1 ? atol(argv[1]) : 800, done = 0;
  if (argc > 2) state ^= strtoull(argv[2], NULL, 0) * UINT64_C(0x9e3779b97f4a7c15);
  if (!prepare()) return 1;
  while (done < cases && failed < 5) done += one_case();
  for (done = 0; argc == 1 && room > NARROW && done < 4 && failed < 5;) done += large_case();
  munmap(memory[0], (size_t)room);
  munmap(memory[1], (size_t)room);
  printf("%ld passed, %ld failed\n", passed, failed);
  return failed != 0 || passed == 0;
}
