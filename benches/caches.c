/*
 * Copies that lie in the caches: random permutations with outputs of about 1 to 250 KB, through the C ABI,
 * next to loops in C that write the output in its order, and to memcpy of as many bytes. Prints a line
 * for each: bytes of an element, bytes, and the three times in nanoseconds, each the least of some
 * rounds in turn. Results are compared before. Not a test.
 *
 * caches [COUNT [SEED]]; -O3 -march=native gives the loops what the processor has.
 */
#define _POSIX_C_SOURCE 200809L
#include "dlpack_rs.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define ROUNDS 21
#define MOST (1 << 20) /* bytes of an array: rounding may make it larger than asked for */
#define NDIM 5

typedef struct { uint8_t bytes[3]; } u8x3;
typedef struct { float floats[3]; } f32x3;
typedef struct { double re, im; } c128;

/* One copy: the output's shape, and both strides in elements. */
typedef struct {
  int ndim;
  int64_t shape[NDIM], from[NDIM], to[NDIM], numel;
} layout;

#define LOOPS(name, type)                                                                \
  static void name(void *out, const void *in, const layout *l) {                         \
    int64_t at[NDIM] = {0}, n = l->shape[l->ndim - 1], step = l->from[l->ndim - 1], j;   \
    const type *from = in;                                                               \
    type *to = out;                                                                      \
    for (;;) {                                                                           \
      int k = l->ndim - 2;                                                               \
      for (j = 0; j < n; ++j) *to++ = from[j * step];                                    \
      for (; k >= 0; --k) {                                                              \
        from += l->from[k];                                                              \
        if (++at[k] < l->shape[k]) break;                                                \
        from -= l->from[k] * l->shape[k];                                                \
        at[k] = 0;                                                                       \
      }                                                                                  \
      if (k < 0) return;                                                                 \
    }                                                                                    \
  }
LOOPS(loops_u8, uint8_t)
LOOPS(loops_u16, uint16_t)
LOOPS(loops_u8x3, u8x3)
LOOPS(loops_f32, float)
LOOPS(loops_f64, double)
LOOPS(loops_f32x3, f32x3)
LOOPS(loops_c128, c128)

static const struct {
  DLDataType dtype;
  void (*loops)(void *, const void *, const layout *);
} kinds[] = {
    {{kDLUInt, 8, 1}, loops_u8},     {{kDLUInt, 16, 1}, loops_u16},     {{kDLUInt, 8, 3}, loops_u8x3},
    {{kDLFloat, 32, 1}, loops_f32},  {{kDLFloat, 64, 1}, loops_f64},    {{kDLFloat, 32, 3}, loops_f32x3},
    {{kDLComplex, 128, 1}, loops_c128},
};
#define KINDS (sizeof kinds / sizeof *kinds)

static uint64_t state;

static double uniform(double low, double high) {
  state = state * 6364136223846793005u + 1442695040888963407u;
  return low + (high - low) * (double)(state >> 40) / (1 << 24);
}

static double now_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return 1e9 * (double)t.tv_sec + (double)t.tv_nsec;
}

/* Axes of some elements in a random order; 0 if that is the order they have, or they are too many. */
static int permuted(layout *l, double numel, int64_t most) {
  int64_t shape[NDIM], strides[NDIM], step = 1;
  int order[NDIM] = {0}, i, moved = 0;
  l->ndim = (int)uniform(2, NDIM + 1);
  l->numel = 1;
  for (i = 0; i < l->ndim; ++i) {
    double part = uniform(0.2, 1) * 2 / (l->ndim - i + 1);
    double n = i == l->ndim - 1 ? numel : uniform(0, 4) < 1 ? uniform(2, 9) : pow(numel, part);
    shape[i] = n < 2 ? 2 : (int64_t)(n + 0.5);
    numel /= (double)shape[i];
    l->numel *= shape[i];
  }
  for (i = 0; i < l->ndim; ++i) {
    int j = (int)uniform(0, i + 1);
    order[i] = order[j];
    order[j] = i;
  }
  for (i = l->ndim - 1; i >= 0; --i) strides[i] = step, step *= shape[i];
  for (i = l->ndim - 1, step = 1; i >= 0; --i) {
    l->shape[i] = shape[order[i]];
    l->from[i] = strides[order[i]];
    l->to[i] = step;
    step *= l->shape[i];
    moved |= order[i] != i;
  }
  return moved && l->numel <= most;
}

static int measured(const layout *l, size_t kind, void *in, void *out, void *other) {
  DLTensor from = {in, {kDLCPU, 0}, l->ndim, kinds[kind].dtype, (int64_t *)l->shape, (int64_t *)l->from, 0};
  DLTensor to = {out, {kDLCPU, 0}, l->ndim, kinds[kind].dtype, (int64_t *)l->shape, (int64_t *)l->to, 0};
  size_t item = (size_t)from.dtype.bits * from.dtype.lanes / 8, nbytes = item * (size_t)l->numel;
  int round, call, calls = (int)(40000 / l->numel) + 2;
  double best[3] = {1e18, 1e18, 1e18};
  memset(out, 0, nbytes);
  kinds[kind].loops(other, in, l);
  if (dlrs_copy_desc(&from, 0, &to, 0, NULL, NULL) != DLRS_OK || memcmp(out, other, nbytes) != 0) return 0;
  for (round = 0; round < ROUNDS; ++round) {
    double at[4];
    at[0] = now_ns();
    for (call = 0; call < calls; ++call) dlrs_copy_desc(&from, 0, &to, 0, NULL, NULL);
    at[1] = now_ns();
    for (call = 0; call < calls; ++call) kinds[kind].loops(other, in, l);
    at[2] = now_ns();
    for (call = 0; call < calls; ++call) {
      void *(*volatile copy)(void *, const void *, size_t) = memcpy; /* is not left out */
      copy(other, in, nbytes);
    }
    at[3] = now_ns();
    for (call = 0; call < 3; ++call) {
      double each = (at[call + 1] - at[call]) / calls;
      if (each < best[call]) best[call] = each;
    }
  }
  printf("%zu %zu %.1f %.1f %.1f\n", item, nbytes, best[0], best[1], best[2]);
  return 1;
}

int main(int argc, char **argv) {
  int count = argc > 1 ? atoi(argv[1]) : 1000, i;
  char *in = aligned_alloc(64, MOST), *out = aligned_alloc(64, MOST), *other = aligned_alloc(64, MOST);
  if (in == NULL || out == NULL || other == NULL) return 1;
  state = argc > 2 ? (uint64_t)atoll(argv[2]) : 1;
  for (i = 0; i < MOST; ++i) in[i] = (char)(i * 7 + (i >> 8));
  for (i = 0; i < count;) {
    size_t kind = (size_t)uniform(0, KINDS);
    int64_t item = kinds[kind].dtype.bits / 8 * kinds[kind].dtype.lanes;
    layout l;
    if (!permuted(&l, exp(uniform(log(1e3), log(2.5e5))) / (double)item, MOST / item)) continue;
    if (!measured(&l, kind, in, out, other)) return fprintf(stderr, "a copy failed, or is wrong\n"), 1;
    ++i;
  }
  free(in), free(out), free(other);
  return 0;
}
