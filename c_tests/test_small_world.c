/* Every copy in a small space: two dimensions of 1 to 3 elements, strides of -3 to 4 and offsets up
 * to 5 bytes apart, of bytes, of more bytes and of packed bits, all within one small memory. The
 * checks for shared memory, the errors and the written bytes, with and without
 * DLRS_COPY_ALLOW_OVERLAP, against marking and moving each bit: K07 to K12 of the catalogue.
 * `test_small_world [every]` takes one of `every` cases, prime to 3, 7, 11 and 43. */
#include "harness.h"

enum { NBYTES = 160, HOME = 80, WAYS = 129, OFFSETS = 11 };

static const int dtypes[][3] = {{kDLUInt, 8, 1}, {kDLUInt, 8, 3}, {kDLFloat, 16, 1},
                                {kDLFloat4_e2m1fn, 4, 1}, {kDLFloat4_e2m1fn, 4, 2},
                                {kDLFloat6_e2m3fn, 6, 1}, {kDLUInt, 1, 1}};
enum { DTYPES = sizeof dtypes / sizeof *dtypes };

static unsigned char memory[NBYTES], before[NBYTES], after[NBYTES];

typedef struct world {
  DLDataType dtype;
  int width; /* bits */
  int offset;
  int64_t shape[2], src[2], dst[2];
} world;

/* The n-th of DTYPES * OFFSETS * WAYS * WAYS. */
static void make(world *w, long n) {
  const int *dtype = dtypes[n % DTYPES];
  int dim;
  n /= DTYPES;
  w->dtype = t_dtype(dtype[0], dtype[1], dtype[2]);
  w->width = dtype[1] * dtype[2];
  w->offset = (int)(n % OFFSETS) - OFFSETS / 2;
  n /= OFFSETS;
  for (dim = 0; dim < 2; ++dim) {
    int way = (int)(n % WAYS);
    n /= WAYS;
    w->shape[dim] = way < 128 ? 2 + way / 64 : 1;
    w->src[dim] = way / 8 % 8 - 3;
    w->dst[dim] = way % 8 - 3;
  }
}

/* Where bits of element (i, j) begin. */
static int64_t from(const world *w, int64_t i, int64_t j) {
  return 8 * HOME + (i * w->src[0] + j * w->src[1]) * w->width;
}

static int64_t to(const world *w, int64_t i, int64_t j) {
  return 8 * (HOME + w->offset) + (i * w->dst[0] + j * w->dst[1]) * w->width;
}

/* The expected properties of a case; fills `after` with the memory after a copy. */
static void judge(const world *w, int *twice, int *shared, int *same) {
  static unsigned char marks[8 * NBYTES]; /* 1: read, 2: written */
  int64_t elements = w->shape[0] * w->shape[1], n, bit;
  *twice = *shared = 0;
  *same = 1;
  memset(marks, 0, sizeof marks);
  memcpy(after, before, NBYTES);
  for (n = 0; n < elements; ++n) {
    int64_t s = from(w, n / w->shape[1], n % w->shape[1]);
    memset(marks + s, 1, (size_t)w->width);
  }
  for (n = 0; n < elements; ++n) {
    int64_t s = from(w, n / w->shape[1], n % w->shape[1]);
    int64_t d = to(w, n / w->shape[1], n % w->shape[1]);
    *same &= s == d;
    for (bit = 0; bit < w->width; ++bit, ++s, ++d) {
      int value = before[s / 8] >> s % 8 & 1;
      *twice |= marks[d] >> 1;
      *shared |= marks[d] & 1;
      marks[d] |= 2;
      after[d / 8] = (unsigned char)((after[d / 8] & ~(1 << d % 8)) | value << d % 8);
    }
  }
}

/* Whether a copy returns this status, and leaves the memory unchanged or as expected. */
static int copies(const DLTensor *src, const DLTensor *dst, uint32_t flags, int32_t want) {
  dlrs_copy_options options = DLRS_INIT(dlrs_copy_options);
  options.flags = flags;
  memcpy(memory, before, NBYTES);
  return dlrs_copy_desc(src, 0, dst, 0, &options, NULL) == want &&
         memcmp(memory, want == DLRS_OK ? after : before, NBYTES) == 0;
}

static long seen[4]; /* one place, apart, shared, twice */

static int right(world *w) {
  DLTensor src = t_describe(memory + HOME, w->dtype, 2, w->shape, w->src);
  DLTensor dst = t_describe(memory + HOME + w->offset, w->dtype, 2, w->shape, w->dst);
  int32_t unique = 9, meet = 9, want = DLRS_OK;
  int twice, shared, same, good;
  judge(w, &twice, &shared, &same);
  if (shared && !same) want = DLRS_OVERLAP_SRC_DST;
  if (twice) want = DLRS_OVERLAP_DST;
  ++seen[twice ? 3 : same ? 0 : shared ? 2 : 1];
  good = dlrs_is_unique(&dst, 0, &unique, NULL) == DLRS_OK;
  good &= unique == (twice ? DLRS_NO : DLRS_YES);
  good &= dlrs_may_overlap(&src, 0, &dst, 0, &meet, NULL) == DLRS_OK;
  good &= meet == (shared ? DLRS_YES : DLRS_NO);
  good &= copies(&src, &dst, 0, want);
  return good & copies(&src, &dst, DLRS_COPY_ALLOW_OVERLAP, twice ? DLRS_OVERLAP_DST : DLRS_OK);
}

static void describe(const world *w) {
  printf("%d bits, %d x %d, from strides %d, %d to %d, %d, %d bytes on\n", w->width,
         (int)w->shape[0], (int)w->shape[1], (int)w->src[0], (int)w->src[1], (int)w->dst[0],
         (int)w->dst[1], w->offset);
}

int main(int argc, char **argv) {
  long every = argc > 1 ? atol(argv[1]) : 1, n, cases = 0, wrong = 0;
  world w;
  int i;
  t_context = "small world";
  for (i = 0; i < NBYTES; ++i) before[i] = (unsigned char)(i * 167 + 13);
  for (n = 0; n < (long)DTYPES * OFFSETS * WAYS * WAYS; n += every) {
    make(&w, n);
    ++cases;
    if (!right(&w) && wrong++ < 10) describe(&w);
  }
  EQUAL(wrong, 0);
  for (i = 0; i < 4; ++i) CHECK(seen[i] > cases / 2000);
  printf("%ld cases: %ld onto themselves, %ld apart, %ld shared, %ld twice\n", cases, seen[0],
         seen[1], seen[2], seen[3]);
  return t_close();
}
