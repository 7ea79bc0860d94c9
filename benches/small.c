/*
 * What small tensors cost, in nanoseconds per call through the C ABI, next to malloc + free in the
 * same run. Prints a table: operation, ns, ratio to malloc + free, target. Not a test.
 */
#define _POSIX_C_SOURCE 200809L
#include "dlpack_rs.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define ROUNDS 41
#define CALLS 20000

static int64_t shape2[2] = {3, 4};
static int64_t shape4[4] = {2, 3, 4, 5};
static int64_t strides4[4] = {60, 20, 5, 1};
static float values[120];
static DLTensor tensor4;
static DLManagedTensorVersioned *kept, *kept4, *target, *turned;
static const DLDataType f32 = {kDLFloat, 32, 1};
static const DLDevice cpu = {kDLCPU, 0};

static void nothing(void *context) { (void)context; }

static void run_malloc(void) {
  void *volatile p = malloc(256);
  free(p);
}

static void run_new(void) {
  DLManagedTensorVersioned *t;
  dlrs_tensor_new(shape2, 2, f32, cpu, NULL, &t, NULL);
  dlrs_release(t);
}

static void run_wrap(void) {
  DLManagedTensorVersioned *t;
  dlrs_tensor_wrap(&tensor4, 0, nothing, NULL, &t, NULL);
  dlrs_release(t);
}

static void legacy_deleter(DLManagedTensor *self) { (void)self; }

static void run_from_legacy(void) {
  static DLManagedTensor legacy;
  legacy.dl_tensor = tensor4;
  legacy.deleter = legacy_deleter;
  DLManagedTensor *taken = &legacy;
  DLManagedTensorVersioned *t;
  dlrs_from_legacy_take(&taken, 0, &t, NULL);
  dlrs_release(t);
}

static void run_retain(void) {
  DLManagedTensorVersioned *t;
  dlrs_retain(kept, &t, NULL);
  dlrs_release(t);
}

static void run_validate(void) { dlrs_validate(&tensor4, 0, DLRS_LEVEL_STRICT, NULL); }

static void run_clone(void) {
  DLManagedTensorVersioned *t;
  dlrs_clone(kept, cpu, NULL, &t, NULL);
  dlrs_release(t);
}

static void run_copy(void) { dlrs_copy(kept, target, NULL, NULL); }

static void run_copy_turned(void) { dlrs_copy(turned, target, NULL, NULL); }

static void run_attach(void) {
  DLManagedTensorVersioned *t;
  dlrs_tensor_wrap(&tensor4, 0, nothing, NULL, &t, NULL);
  dlrs_attach(t, nothing, NULL, DLRS_BEFORE_FREE, NULL);
  dlrs_release(t);
}

static dlrs_view_step steps[3] = {
    {.struct_size = sizeof(dlrs_view_step), .op = DLRS_VIEW_SELECT, .start = 1},
    {.struct_size = sizeof(dlrs_view_step), .op = DLRS_VIEW_FLIP},
    {.struct_size = sizeof(dlrs_view_step), .op = DLRS_VIEW_UNSQUEEZE},
};

static void run_slice(void) {
  DLManagedTensorVersioned *t;
  dlrs_view_slice(kept4, 1, 1, 3, 1, &t, NULL);
  dlrs_release(t);
}

static void run_reshape(void) {
  static const int64_t shape[2] = {6, -1};
  DLManagedTensorVersioned *t;
  dlrs_view_reshape(kept4, shape, 2, &t, NULL);
  dlrs_release(t);
}

static void run_select(void) {
  DLManagedTensorVersioned *t;
  dlrs_view_select(kept4, 0, 1, &t, NULL);
  dlrs_release(t);
}

static void run_permute(void) {
  static const int64_t axes[4] = {0, 2, 3, 1};
  DLManagedTensorVersioned *t;
  dlrs_view_permute(kept4, axes, 4, &t, NULL);
  dlrs_release(t);
}

static void run_unsqueeze(void) {
  DLManagedTensorVersioned *t;
  dlrs_view_unsqueeze(kept4, 0, &t, NULL);
  dlrs_release(t);
}

static void run_steps(void) {
  DLManagedTensorVersioned *t;
  dlrs_view_apply(kept4, steps, 3, &t, NULL);
  dlrs_release(t);
}

static void run_steps_desc(void) {
  int64_t shape[4], strides[4];
  uint64_t flags;
  DLTensor view = {.ndim = 4, .shape = shape, .strides = strides};
  dlrs_view_apply_desc(&tensor4, 0, steps, 3, &view, &flags, NULL);
}

static double now_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static int by_value(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static double median(double *numbers, int count) {
  qsort(numbers, (size_t)count, sizeof *numbers, by_value);
  return numbers[count / 2];
}

typedef struct {
  const char *name;
  void (*run)(void);
  double target;
} operation;

static const operation operations[] = {
    {"malloc(256) + free", run_malloc, 1},
    {"allocate + release, 3x4 f32", run_new, 3},
    {"wrap + release, 4-D", run_wrap, 2},
    {"legacy to versioned + release", run_from_legacy, 2},
    {"retain + release", run_retain, 1},
    {"validate, 4-D, strict", run_validate, 1.5},
    {"clone + release, 3x4 f32", run_clone, 5},
    {"copy, 3x4 f32", run_copy, 0},
    {"copy, 3x4 f32 from a transpose", run_copy_turned, 0},
    {"slice + release, 4-D view", run_slice, 0},
    {"reshape + release, 4-D to 2-D", run_reshape, 0},
    {"select + release, 4-D", run_select, 0},
    {"permute + release, 4-D", run_permute, 0},
    {"unsqueeze + release, 4-D", run_unsqueeze, 0},
    {"3 steps, one view + release", run_steps, 0},
    {"3 steps, description", run_steps_desc, 0},
    {"wrap + attach + release", run_attach, 0},
};
#define COUNT (sizeof operations / sizeof *operations)

/* What is called the most beside another thread: in a process with one, nothing needs a lock. */
static const operation beside[] = {
    {"malloc(256) + free, two threads", run_malloc, 1},
    {"wrap + release, two threads", run_wrap, 2},
    {"retain + release, two threads", run_retain, 1},
    {"wrap + attach + release", run_attach, 0},
};
#define BESIDE (sizeof beside / sizeof *beside)

/* Rounds go through all operations in turn, so that a slow moment of the machine hits all. */
static void measure(const operation *all, size_t count, double (*times)[ROUNDS]) {
  for (int round = 0; round < ROUNDS; ++round)
    for (size_t i = 0; i < count; ++i) {
      double start = now_ns();
      for (int call = 0; call < CALLS; ++call) all[i].run();
      times[i][round] = (now_ns() - start) / CALLS;
    }
}

/* The first is malloc + free, to which the ratios are; attaching is told without its wrap. */
static void print_rows(const operation *all, size_t count, double (*times)[ROUNDS],
                       const char *attaching) {
  double base = 0, wrap = 0;
  for (size_t i = 0; i < count; ++i) {
    double ns = median(times[i], ROUNDS), target = all[i].target;
    const char *name = all[i].name;
    if (i == 0) base = ns;
    if (all[i].run == run_wrap) wrap = ns;
    if (all[i].run == run_attach) name = attaching, ns -= wrap, target = 2;
    printf("%-44s %8.1f %8.2f %8.1f\n", name, ns, ns / base, target);
  }
}

static pthread_mutex_t waits = PTHREAD_MUTEX_INITIALIZER;

static void *wait(void *unused) {
  pthread_mutex_lock(&waits);
  pthread_mutex_unlock(&waits);
  return unused;
}

int main(void) {
  static double times[COUNT][ROUNDS];
  pthread_t other;
  tensor4.data = values;
  tensor4.device = cpu;
  tensor4.ndim = 4;
  tensor4.dtype = f32;
  tensor4.shape = shape4;
  tensor4.strides = strides4;
  if (dlrs_tensor_new(shape2, 2, f32, cpu, NULL, &kept, NULL) != 0) return 1;
  memset(kept->dl_tensor.data, 0, 48);
  if (dlrs_tensor_wrap(&tensor4, 0, NULL, NULL, &kept4, NULL) != 0) return 1;
  if (dlrs_tensor_new(shape2, 2, f32, cpu, NULL, &target, NULL) != 0) return 1;
  DLTensor columns = kept->dl_tensor;
  int64_t strides2[2] = {1, 3};
  columns.strides = strides2;
  if (dlrs_tensor_wrap(&columns, 0, NULL, NULL, &turned, NULL) != 0) return 1;
  printf("%-44s %8s %8s %8s\n", "operation", "ns", "ratio", "target");
  measure(operations, COUNT, times);
  print_rows(operations, COUNT, times, "attach a callback (difference)");
  pthread_mutex_lock(&waits);
  if (pthread_create(&other, NULL, wait, NULL) != 0) return 1;
  measure(beside, BESIDE, times);
  print_rows(beside, BESIDE, times, "attach a callback (difference), two threads");
  pthread_mutex_unlock(&waits);
  pthread_join(other, NULL);
  dlrs_release(kept);
  dlrs_release(kept4);
  dlrs_release(target);
  dlrs_release(turned);
  return 0;
}
