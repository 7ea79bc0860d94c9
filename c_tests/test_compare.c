/* Comparisons beside those of test_elements.c: repeated elements, in tensors far larger than
 * memory; tensors of size zero, whatever their strides, for all functions; integers under every
 * rounding mode. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

#include "harness.h"
#include "random.h"

typedef struct operand {
  DLManagedTensorVersioned managed;
  int64_t shape[6], strides[6];
} operand;

static void make(operand *o, void *data, DLDataType dtype, int32_t ndim) {
  o->managed = t_managed(t_describe(data, dtype, ndim, o->shape, o->strides), 0);
}

static int32_t equal(operand *a, operand *b, int32_t level) {
  int32_t same = -1;
  CHECK(dlrs_equal(&a->managed, &b->managed, level, &same, ERR) == DLRS_OK);
  return same;
}
static double difference(operand *a, operand *b) {
  double largest = -1;
  CHECK(dlrs_max_diff(&a->managed, &b->managed, &largest, ERR) == DLRS_OK);
  return largest;
}

/* ---- Repeated elements ----------------------------------------------------------------------*/

static float left[3], right[3];

/* Each would take longer than a life, element by element. */
static void huge_ones(void) {
  /* As many as there are addresses. */
  const int64_t far = (int64_t)1 << (sizeof(void *) > 4 ? 29 : 13);
  const int64_t n = (int64_t)1 << (sizeof(void *) > 4 ? 20 : 15);
  unsigned char *many = (unsigned char *)calloc((size_t)n, 1);
  unsigned char *others = (unsigned char *)calloc((size_t)n, 1);
  operand a, b;
  int i;
  t_context = "huge ones";
  left[0] = left[1] = left[2] = 1;
  right[0] = right[1] = 1;
  right[2] = 1.5f;
  make(&a, left, F32, 3);
  make(&b, right, F32, 3);
  for (i = 0; i < 2; ++i) {
    a.shape[i] = b.shape[i] = far;
    a.strides[i] = b.strides[i] = 0;
  }
  a.shape[2] = b.shape[2] = 2;
  a.strides[2] = b.strides[2] = 1;
  EQUAL(equal(&a, &b, DLRS_EQUAL_VALUES), 1);
  CHECK(difference(&a, &b) == 0);
  a.shape[2] = b.shape[2] = 3;
  EQUAL(equal(&a, &b, DLRS_EQUAL_BITS), 0);
  CHECK(difference(&a, &b) == 0.5);
  /* One repeats its rows, the other its columns. */
  make(&a, many, t_dtype(kDLUInt, 8, 1), 2);
  make(&b, others, t_dtype(kDLUInt, 8, 1), 2);
  a.shape[0] = a.shape[1] = b.shape[0] = b.shape[1] = n;
  a.strides[0] = b.strides[1] = 0;
  a.strides[1] = b.strides[0] = 1;
  EQUAL(equal(&a, &b, DLRS_EQUAL_VALUES), 1);
  many[n - 1] = 1;
  EQUAL(equal(&a, &b, DLRS_EQUAL_VALUES), 0);
  EQUAL(equal(&b, &a, DLRS_EQUAL_BITS), 0);
  free(many);
  free(others);
}

/* ---- Size zero ------------------------------------------------------------------------------*/

static int64_t any_stride(void) {
  static const int64_t values[] = {INT64_MIN, INT64_MAX, INT64_MIN + 1, (int64_t)1 << 62, -1, 0, 1};
  return values[below(sizeof values / sizeof *values)];
}

static void empty_ones(void) {
  static const int64_t extents[] = {0, 1, 2, (int64_t)1 << 62, INT64_MAX};
  static char context[64];
  const double one = 1;
  long round;
  t_context = context;
  for (round = 0; round < 3000; ++round) {
    operand a, b;
    const int32_t ndim = 1 + (int32_t)below(4);
    int32_t answer = -1, d;
    int64_t numel = -1;
    uint64_t nbytes = 1;
    DLManagedTensorVersioned *out = NULL;
    char text[512];
    const int same = (int)below(2), given = below(4) > 0;
    make(&a, below(2) == 0 ? NULL : left, same ? F32 : t_dtype(kDLUInt, 4, 1), ndim);
    make(&b, below(2) == 0 ? NULL : left, F32, ndim);
    for (d = 0; d < ndim; ++d) {
      a.shape[d] = b.shape[d] = extents[below(5)];
      a.strides[d] = any_stride();
      b.strides[d] = any_stride();
    }
    d = (int32_t)below(ndim);
    a.shape[d] = b.shape[d] = 0;
    if (!given) a.managed.dl_tensor.strides = b.managed.dl_tensor.strides = NULL;
    a.managed.version.minor = b.managed.version.minor = 1;
    sprintf(context, "empty, round %ld", round);
    WORKS(dlrs_validate_managed(&a.managed, DLRS_LEVEL_STRICT, ERR));
    WORKS(dlrs_numel(&a.managed.dl_tensor, &numel, ERR));
    WORKS(dlrs_nbytes(&a.managed.dl_tensor, 0, &nbytes, ERR));
    CHECK(numel == 0 && nbytes == 0);
    WORKS(dlrs_cast(&a.managed, &b.managed, NULL, ERR));
    WORKS(dlrs_fill(&a.managed, &one, t_dtype(kDLFloat, 64, 1), NULL, ERR));
    WORKS(dlrs_clone(&a.managed, CPU, NULL, &out, ERR));
    if (out != NULL) dlrs_release(out);
    WORKS(dlrs_tensor_to_string(&a.managed.dl_tensor, 0, NULL, text, sizeof text, NULL, ERR));
    if (same) {
      WORKS(dlrs_copy(&a.managed, &b.managed, NULL, ERR));
      WORKS(dlrs_equal(&a.managed, &b.managed, DLRS_EQUAL_VALUES, &answer, ERR));
      EQUAL(answer, 1);
      CHECK(difference(&a, &b) == 0);
    }
    /* Queries about addresses, which neither opaque handles nor empty tensors have. */
    if (below(2) == 0) a.managed.dl_tensor.device = t_device(kDLOpenCL, 0);
    WORKS(dlrs_validate_within(&a.managed.dl_tensor, 0, (void *)(uintptr_t)16, UINT64_MAX, ERR));
    WORKS(dlrs_is_unique(&a.managed.dl_tensor, 0, &answer, ERR));
    EQUAL(answer, DLRS_YES);
    WORKS(dlrs_may_overlap(&a.managed.dl_tensor, 0, &b.managed.dl_tensor, 0, &answer, ERR));
    EQUAL(answer, DLRS_NO);
  }
}

/* ---- Integers -------------------------------------------------------------------------------*/

static void rounding(void) {
  enum { TRIES = 3000 };
  static uint64_t xs[TRIES];
  static double wanted[TRIES];
  const uint64_t zero = 0;
  operand a, b;
  int i, mode;
  t_context = "rounding";
  for (i = 0; i < TRIES; ++i) {
    /* Around halves of a double's last place. */
    const int bits = 50 + (int)below(15);
    const uint64_t top = (uint64_t)1 << (bits < 64 ? bits - 1 : 63);
    xs[i] = i == 0 ? UINT64_MAX : i == 1 ? 0 : top | (draw() << 11 & (top - 1)) | (uint64_t)below(8);
    if (bits > 55 && below(2) == 0) {
      const uint64_t place = (uint64_t)1 << (bits - 53);
      xs[i] = (xs[i] & ~(place - 1)) + place / 2 + (uint64_t)below(3) - 1;
    }
    wanted[i] = (double)xs[i];
  }
  for (mode = 0; mode < 4; ++mode) {
    for (i = 0; i < TRIES; ++i) {
      double found = -1;
      make(&a, &xs[i], t_dtype(kDLUInt, 64, 1), 0);
      make(&b, (void *)(uintptr_t)&zero, t_dtype(kDLUInt, 64, 1), 0);
#if defined(__x86_64__)
      const unsigned before = _mm_getcsr();
      _mm_setcsr((before & ~0x6000u) | (unsigned)mode << 13);
#endif
      dlrs_max_diff(&a.managed, &b.managed, &found, NULL);
#if defined(__x86_64__)
      _mm_setcsr(before);
#endif
      CHECK(memcmp(&found, &wanted[i], sizeof found) == 0);
    }
  }
}

int main(void) {
  huge_ones();
  empty_ones();
  rounding();
  return t_close();
}
