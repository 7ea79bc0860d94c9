/*
 * What a pool saves: nanoseconds of allocating and releasing a tensor through the C ABI, with the
 * library's own memory and with a pool, its memory untouched or written once. Not a test.
 */
#define _POSIX_C_SOURCE 200809L
#include "dlpack_rs.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define ROUNDS 21

static const DLDataType u8 = {kDLUInt, 8, 1};
static const DLDevice cpu = {kDLCPU, 0};
static dlrs_alloc_options options = {sizeof(dlrs_alloc_options), 0, 0, NULL};

static double now_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static int by_value(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static void run(int64_t nbytes, int calls, int touch, const dlrs_allocator *allocator) {
  dlrs_alloc_options with = options;
  with.allocator = allocator;
  for (int call = 0; call < calls; ++call) {
    DLManagedTensorVersioned *tensor;
    if (dlrs_tensor_new(&nbytes, 1, u8, cpu, &with, &tensor, NULL) != 0) exit(1);
    if (touch) memset(tensor->dl_tensor.data, 1, (size_t)nbytes);
    dlrs_release(tensor);
  }
}

static double measure(int64_t nbytes, int calls, int touch, const dlrs_allocator *allocator) {
  double times[ROUNDS];
  run(nbytes, calls, touch, allocator);
  for (int round = 0; round < ROUNDS; ++round) {
    double start = now_ns();
    run(nbytes, calls, touch, allocator);
    times[round] = (now_ns() - start) / calls;
  }
  qsort(times, ROUNDS, sizeof *times, by_value);
  return times[ROUNDS / 2];
}

static const dlrs_allocator *shared;

static void *busy(void *unused) {
  (void)unused;
  run(65536, 1000000, 0, shared);
  return NULL;
}

static double together(int threads, const dlrs_allocator *allocator) {
  pthread_t ids[8];
  double start = now_ns();
  shared = allocator;
  for (int i = 0; i < threads; ++i) pthread_create(&ids[i], NULL, busy, NULL);
  for (int i = 0; i < threads; ++i) pthread_join(ids[i], NULL);
  return (now_ns() - start) / 1e6 / threads;
}

int main(void) {
  static const int64_t sizes[] = {4096, 65536, 1 << 20, 16 << 20, 64 << 20};
  dlrs_pool *pool;
  const dlrs_allocator *allocator;
  if (dlrs_pool_create(NULL, &pool, NULL) != 0) return 1;
  allocator = dlrs_pool_allocator(pool);
  printf("%-28s %12s %12s\n", "allocate + release", "plain, ns", "pool, ns");
  for (int touch = 0; touch < 2; ++touch)
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; ++i) {
      int calls = !touch || sizes[i] <= 65536 ? 2000 : 10;
      char name[48];
      snprintf(name, sizeof name, "%lld KiB%s", (long long)(sizes[i] >> 10),
               touch ? ", written once" : "");
      printf("%-28s %12.0f %12.0f\n", name, measure(sizes[i], calls, touch, NULL),
             measure(sizes[i], calls, touch, allocator));
    }
  for (int threads = 1; threads <= 4; threads *= 2)
    printf("64 KiB, %d thread%-14s %12.0f %12.0f\n", threads, threads == 1 ? "" : "s",
           together(threads, NULL), together(threads, allocator));
  dlrs_pool_release(pool);
  return 0;
}
