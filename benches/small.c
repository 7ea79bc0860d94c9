/*
 * The cost of calls for small tensors through the C ABI, next to malloc + free and to memcpy.
 * Prints a line for each: operation, yardstick, target, and nanoseconds per call of the yardstick,
 * of the library and of the second one. Fields are separated by tabs, an absent one is "-". A
 * target is a multiple of malloc + free, or the nanoseconds that a copy may take more than memcpy.
 *
 * small clock|cpu SECONDS LIBRARY [SECOND]. All take turns; each figure is the minimum of many.
 */
#define _GNU_SOURCE
#include "dlpack_rs.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define FUNCTIONS(F)                                                                             \
  F(dlrs_tensor_new) F(dlrs_tensor_wrap) F(dlrs_from_legacy_take) F(dlrs_retain) F(dlrs_release) \
  F(dlrs_validate) F(dlrs_clone) F(dlrs_copy) F(dlrs_attach) F(dlrs_view_slice)                  \
  F(dlrs_view_permute) F(dlrs_view_reshape)

/* A library and its measured objects. A copy is from `from[i]` to `to[i]`. */
enum { COPIES = 5 };
typedef struct {
#define DECLARE(name) __typeof__(name) *name;
  FUNCTIONS(DECLARE)
#undef DECLARE
  DLManagedTensorVersioned *small, *wrapped, *from[COPIES], *to[COPIES];
} library;

static const DLDataType f32 = {kDLFloat, 32, 1};
static const DLDevice cpu = {kDLCPU, 0};
static int64_t shape4[4] = {2, 3, 4, 5}, strides4[4] = {60, 20, 5, 1};
static float values[120], copied[120];
static DLTensor tensor4 = {values, {kDLCPU, 0}, 4, {kDLFloat, 32, 1}, shape4, strides4, 0};

static void nothing(void *context) { (void)context; }
static void legacy_deleter(DLManagedTensor *self) { (void)self; }

static void allocate(const library *l) {
  static const int64_t shape[2] = {3, 4};
  DLManagedTensorVersioned *t;
  l->dlrs_tensor_new(shape, 2, f32, cpu, NULL, &t, NULL);
  l->dlrs_release(t);
}

static void wrap(const library *l) {
  DLManagedTensorVersioned *t;
  l->dlrs_tensor_wrap(&tensor4, 0, nothing, NULL, &t, NULL);
  l->dlrs_release(t);
}

static void wrap_and_attach(const library *l) {
  DLManagedTensorVersioned *t;
  l->dlrs_tensor_wrap(&tensor4, 0, nothing, NULL, &t, NULL);
  l->dlrs_attach(t, nothing, NULL, DLRS_BEFORE_FREE, NULL);
  l->dlrs_release(t);
}

static void legacy(const library *l) {
  static DLManagedTensor old;
  DLManagedTensor *taken = &old;
  DLManagedTensorVersioned *t;
  old.dl_tensor = tensor4;
  old.deleter = legacy_deleter;
  l->dlrs_from_legacy_take(&taken, 0, &t, NULL);
  l->dlrs_release(t);
}

static void retain(const library *l) {
  DLManagedTensorVersioned *t;
  l->dlrs_retain(l->small, &t, NULL);
  l->dlrs_release(t);
}

static void validate(const library *l) {
  l->dlrs_validate(&tensor4, 0, DLRS_LEVEL_STRICT, NULL);
}

static void clone(const library *l) {
  DLManagedTensorVersioned *t;
  l->dlrs_clone(l->small, cpu, NULL, &t, NULL);
  l->dlrs_release(t);
}

static void slice(const library *l) {
  DLManagedTensorVersioned *t;
  l->dlrs_view_slice(l->wrapped, 1, 1, 3, 1, &t, NULL);
  l->dlrs_release(t);
}

static void permute(const library *l) {
  static const int64_t axes[4] = {0, 2, 3, 1};
  DLManagedTensorVersioned *t;
  l->dlrs_view_permute(l->wrapped, axes, 4, &t, NULL);
  l->dlrs_release(t);
}

static void reshape(const library *l) {
  static const int64_t shape[2] = {6, -1};
  DLManagedTensorVersioned *t;
  l->dlrs_view_reshape(l->wrapped, shape, 2, &t, NULL);
  l->dlrs_release(t);
}

/* Layouts whose copies take almost no time: this measures the checks and the choice of the op. */
static const struct {
  int32_t ndim;
  int64_t shape[4], strides[4];
} layouts[COPIES] = {
    {1, {12}, {1}},                     /* dense */
    {2, {4, 3}, {1, 4}},                /* a transpose */
    {2, {3, 4}, {5, 1}},                /* rows */
    {3, {2, 4, 3}, {12, 1, 4}},         /* a batch of transposes */
    {4, {2, 3, 2, 4}, {24, 4, 12, 1}},  /* BSHD to BHSD */
};

#define COPY(i) \
  static void copy##i(const library *l) { l->dlrs_copy(l->from[i], l->to[i], NULL, NULL); }
COPY(0) COPY(1) COPY(2) COPY(3) COPY(4)

static void malloc_and_free(const library *l) {
  (void)l;
  void *volatile p = malloc(256);
  free(p);
}

static void plain_memcpy(const library *l) {
  static void *(*volatile copy)(void *, const void *, size_t) = memcpy;
  (void)l;
  copy(copied, values, 48);
}

typedef void operation(const library *);
typedef struct {
  const char *name, *yardstick, *target;
  operation *run;
} row;

static const row rows[] = {
    {"allocate, 3x4 f32", "malloc + free", "2.8", allocate},
    {"wrap, 4-D", "malloc + free", "2.2", wrap},
    {"attach a callback", "malloc + free", "1.8", wrap_and_attach}, /* less the row before */
    {"take a legacy tensor, 4-D", "malloc + free", "2.4", legacy},
    {"retain", "malloc + free", "2.0", retain},
    {"validate, 4-D, strict", "malloc + free", "1.1", validate},
    {"clone, 3x4 f32", "malloc + free", "5.2", clone},
    {"view: slice, 4-D", "malloc + free", "-", slice},
    {"view: permute, 4-D", "malloc + free", "-", permute},
    {"view: reshape, 4-D to 2-D", "malloc + free", "-", reshape},
    {"copy 12 f32, dense", "memcpy", "60", copy0},
    {"copy 4x3 f32, transposed", "memcpy", "60", copy1},
    {"copy 3x4 f32, of rows of 5", "memcpy", "60", copy2},
    {"copy 2x4x3 f32, each transposed", "memcpy", "60", copy3},
    {"copy 2x3x2x4 f32, (0,2,1,3)", "memcpy", "60", copy4},
};
enum { ROWS = sizeof rows / sizeof *rows, CALLS = 5000 };

static void open_library(const char *file, library *l) {
  void *handle = dlopen(file, RTLD_NOW | RTLD_LOCAL);
  if (!handle) {
    fprintf(stderr, "small: %s\n", dlerror());
    exit(1);
  }
#define FIND(name) *(void **)&l->name = dlsym(handle, #name);
  FUNCTIONS(FIND)
#undef FIND
  int64_t shape[2] = {3, 4};
  int failed = l->dlrs_tensor_new(shape, 2, f32, cpu, NULL, &l->small, NULL) != 0 ||
               l->dlrs_tensor_wrap(&tensor4, 0, NULL, NULL, &l->wrapped, NULL) != 0;
  if (!failed) memset(l->small->dl_tensor.data, 0, 48);
  for (int i = 0; i < COPIES && !failed; ++i) {
    DLTensor from = {values, cpu, layouts[i].ndim, f32, (int64_t *)layouts[i].shape,
                     (int64_t *)layouts[i].strides, 0};
    failed = l->dlrs_tensor_wrap(&from, 0, NULL, NULL, &l->from[i], NULL) != 0 ||
             l->dlrs_tensor_new(from.shape, from.ndim, f32, cpu, NULL, &l->to[i], NULL) != 0 ||
             l->dlrs_copy(l->from[i], l->to[i], NULL, NULL) != 0;
  }
  if (failed) {
    fprintf(stderr, "small: %s failed\n", file);
    exit(1);
  }
}

static double now_ns(clockid_t clock) {
  struct timespec t;
  clock_gettime(clock, &t);
  return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static void best_of_turn(double *best, clockid_t clock, operation *run, const library *l) {
  double start = now_ns(clock);
  for (int call = 0; call < CALLS; ++call) run(l);
  double ns = (now_ns(clock) - start) / CALLS;
  if (*best == 0 || ns < *best) *best = ns;
}

int main(int argc, char **argv) {
  static library libraries[2];
  static double best[ROWS][2], malloc_ns, memcpy_ns;
  if (argc < 4 || argc > 5) {
    fprintf(stderr, "usage: small clock|cpu SECONDS LIBRARY [SECOND]\n");
    return 2;
  }
  int count = argc - 3;
  clockid_t clock = strcmp(argv[1], "cpu") == 0 ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC;
  for (int i = 0; i < 120; ++i) values[i] = (float)i;
  for (int i = 0; i < count; ++i) open_library(argv[3 + i], &libraries[i]);
  double end = now_ns(CLOCK_MONOTONIC) + atof(argv[2]) * 1e9;
  do {
    best_of_turn(&malloc_ns, clock, malloc_and_free, NULL);
    best_of_turn(&memcpy_ns, clock, plain_memcpy, NULL);
    for (size_t i = 0; i < ROWS; ++i)
      for (int k = 0; k < count; ++k)
        best_of_turn(&best[i][k], clock, rows[i].run, &libraries[k]);
  } while (now_ns(CLOCK_MONOTONIC) < end);
  for (size_t i = 1; i < ROWS; ++i)
    for (int k = 0; k < count && rows[i].run == wrap_and_attach; ++k) best[i][k] -= best[i - 1][k];
  for (size_t i = 0; i < ROWS; ++i) {
    double yardstick = strcmp(rows[i].yardstick, "memcpy") == 0 ? memcpy_ns : malloc_ns;
    printf("%s\t%s\t%s\t%.2f\t%.2f\t", rows[i].name, rows[i].yardstick, rows[i].target,
           yardstick, best[i][0]);
    if (count == 2) printf("%.2f\n", best[i][1]);
    else puts("-");
  }
  return 0;
}
