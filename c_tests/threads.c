/* References on many threads, long chains, small stacks. `threads N` divides the counts by N. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <pthread.h>
#include <unistd.h>

#include "harness.h"

enum { THREADS_MAX = 64 };

static long divisor = 1;
static long scaled(long count) { return count / divisor > 1 ? count / divisor : 1; }

/* Counts atomically: callbacks run on any thread. */
static long runs;
static void ran(void *context) {
  (void)context;
  __atomic_add_fetch(&runs, 1, __ATOMIC_RELAXED);
}

static void run_threads(int count, void *(*start)(void *), void *const *arguments) {
  pthread_t threads[THREADS_MAX];
  int i;
  for (i = 0; i < count; ++i) {
    if (pthread_create(&threads[i], NULL, start, arguments[i]) != 0) abort();
  }
  for (i = 0; i < count; ++i) pthread_join(threads[i], NULL);
}

/* On a new thread with a stack of this many KiB, or the system's minimum. */
static void on_stack(size_t kib, void *(*start)(void *), void *argument) {
  pthread_attr_t attributes;
  pthread_t thread;
  size_t least = (size_t)sysconf(_SC_THREAD_STACK_MIN), nbytes = kib * 1024;
  int started;
  pthread_attr_init(&attributes);
  CHECK(pthread_attr_setstacksize(&attributes, nbytes > least ? nbytes : least) == 0);
  started = pthread_create(&thread, &attributes, start, argument);
  if (started == 0) pthread_join(thread, NULL);
  CHECK(started == 0); /* not concurrently with the thread, which counts as well */
  pthread_attr_destroy(&attributes);
}

/* ---- F07, C18: references -------------------------------------------------------------------*/

static void *share_and_release(void *argument) {
  DLManagedTensorVersioned *mine = *(DLManagedTensorVersioned **)argument, *more;
  DLManagedTensor *legacy;
  long i;
  for (i = 0; i < scaled(2000); ++i) {
    if (dlrs_retain(mine, &more, NULL) != DLRS_OK) abort();
    if (i % 3 == 0) {
      dlrs_release(more);
    } else if (i % 3 == 1) {
      more->deleter(more);
    } else { /* C18: converted meanwhile */
      if (dlrs_to_legacy_take(&more, 0, &legacy, NULL) != DLRS_OK) abort();
      if (legacy->dl_tensor.shape[1] != 3) abort();
      if (dlrs_from_legacy_take(&legacy, 0, &more, NULL) != DLRS_OK) abort();
      dlrs_release(more);
    }
  }
  dlrs_release(mine);
  return NULL;
}

static void f07(void) {
  static const int counts[] = {2, 3, 8, 16, 64};
  t_tensor good;
  size_t i;
  t_make(&good);
  for (i = 0; i < sizeof counts / sizeof *counts; ++i) {
    DLManagedTensorVersioned *tensor;
    void *arguments[THREADS_MAX];
    DLManagedTensorVersioned *references[THREADS_MAX];
    int n;
    runs = 0;
    CHECK(dlrs_tensor_wrap(&good.managed.dl_tensor, 0, ran, NULL, &tensor, NULL) == DLRS_OK);
    CHECK(dlrs_attach(tensor, ran, NULL, DLRS_BEFORE_FREE, NULL) == DLRS_OK);
    for (n = 0; n < counts[i]; ++n) {
      references[n] = tensor;
      arguments[n] = &references[n];
      if (n > 0) CHECK(dlrs_retain(tensor, &references[n], NULL) == DLRS_OK);
    }
    EQUAL(dlrs_ref_count(tensor), counts[i]);
    run_threads(counts[i], share_and_release, arguments);
    EQUAL(runs, 2);
  }
}

/* Two owners change the flags of the same tensors, one from the first on and the other from the
 * last: wherever they cross, neither may undo the other's change. */
enum { SHARED = 4096 };
static DLManagedTensorVersioned *shared[SHARED];
static pthread_mutex_t door = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t both_here = PTHREAD_COND_INITIALIZER;
static int arrived;

static void *changes_flags(void *argument) {
  const uint64_t set = argument ? DLPACK_FLAG_BITMASK_READ_ONLY : 0;
  const uint64_t clear = argument ? 0 : DLPACK_FLAG_BITMASK_IS_COPIED;
  int i;
  pthread_mutex_lock(&door);
  if (++arrived == 2) pthread_cond_broadcast(&both_here);
  while (arrived < 2) pthread_cond_wait(&both_here, &door);
  pthread_mutex_unlock(&door);
  for (i = 0; i < SHARED; ++i) {
    if (dlrs_set_flags(shared[argument ? i : SHARED - 1 - i], set, clear, NULL) != DLRS_OK) abort();
  }
  return NULL;
}

static void flags_beside(void) {
  void *arguments[2] = {NULL, &arrived};
  DLManagedTensorVersioned *more;
  int64_t shape[1] = {1};
  long round, lost = 0;
  for (round = 0; round < scaled(400); ++round) {
    int i;
    for (i = 0; i < SHARED; ++i) {
      if (dlrs_tensor_new(shape, 1, F32, CPU, NULL, &shared[i], NULL) != DLRS_OK) abort();
      if (dlrs_retain(shared[i], &more, NULL) != DLRS_OK) abort();
    }
    arrived = 0;
    run_threads(2, changes_flags, arguments);
    for (i = 0; i < SHARED; ++i) {
      lost += shared[i]->flags != DLPACK_FLAG_BITMASK_READ_ONLY;
      dlrs_release(shared[i]);
      dlrs_release(shared[i]);
    }
  }
  EQUAL(lost, 0);
}

static void *makes(void *argument) {
  int64_t shape[1] = {100};
  if (dlrs_tensor_new(shape, 1, F32, CPU, NULL, (DLManagedTensorVersioned **)argument, NULL) != DLRS_OK) abort();
  return NULL;
}

/* Chains grow and shrink concurrently. */
static void *attaches(void *argument) {
  DLManagedTensorVersioned *tensor = (DLManagedTensorVersioned *)argument;
  int mark;
  long i;
  for (i = 0; i < scaled(1000); ++i) {
    if (dlrs_attach(tensor, ran, &mark, (int32_t)(i & 1), NULL) != DLRS_OK) abort();
    if (i % 4 == 0 && dlrs_detach(tensor, ran, &mark, NULL) != DLRS_OK) abort();
  }
  return NULL;
}

static void attach_beside(void) {
  DLManagedTensorVersioned *tensor = NULL;
  void *arguments[8];
  long n = scaled(1000), kept = n - (n + 3) / 4;
  int i;
  makes(&tensor);
  for (i = 0; i < 8; ++i) arguments[i] = tensor;
  runs = 0;
  run_threads(8, attaches, arguments);
  EQUAL(runs, 0);
  dlrs_release(tensor);
  EQUAL(runs, 8 * kept);
}

/* ---- Chains on a stack of 64 KiB ------------------------------------------------------------*/

static void *f14(void *argument) {
  DLManagedTensorVersioned *tensor = NULL;
  long i, links = scaled(1000000);
  makes(&tensor);
  runs = 0;
  for (i = 0; i < links; ++i) {
    if (dlrs_attach(tensor, ran, argument, (int32_t)(i & 1), NULL) != DLRS_OK) abort();
  }
  dlrs_release(tensor);
  EQUAL(runs, links);
  return NULL;
}

static void *c17(void *argument) {
  t_tensor good;
  DLManagedTensor *legacy;
  DLManagedTensorVersioned *versioned = NULL, *view;
  long i, depth = scaled(10000), deleted = t_deleted;
  (void)argument;
  t_make(&good);
  legacy = &good.legacy;
  for (i = 0; i < depth; ++i) {
    /* Other flags than the base's: one more wrapper each time. */
    if (dlrs_from_legacy_take(&legacy, (uint64_t)(i & 1), &versioned, NULL) != DLRS_OK) abort();
    if (dlrs_to_legacy_take(&versioned, DLRS_LEGACY_DROP, &legacy, NULL) != DLRS_OK) abort();
  }
  EQUAL(t_deleted, deleted);
  dlrs_release_legacy(legacy);
  EQUAL(t_deleted, deleted + 1);
  makes(&versioned); /* and each a view of the one before */
  runs = 0;
  if (dlrs_attach(versioned, ran, NULL, DLRS_AFTER_FREE, NULL) != DLRS_OK) abort();
  for (i = 0; i < depth; ++i) {
    if (dlrs_view_read_only(versioned, &view, NULL) != DLRS_OK) abort();
    dlrs_release(versioned);
    versioned = view;
  }
  EQUAL(runs, 0);
  dlrs_release(versioned);
  EQUAL(runs, 1);
  return NULL;
}

/* ---- K28, Z21: every kind of call on the smallest stack -------------------------------------*/

static void *everything(void *argument) {
  t_tensor good;
  DLManagedTensorVersioned *out, *clone, *taken;
  DLManagedTensor *legacy;
  DLDataType dtype;
  dlrs_copy_options options = DLRS_INIT(dlrs_copy_options);
  int64_t shape[2] = {5, 7}, src_strides[2] = {1, 5}, dst_strides[2] = {-7, 1};
  float from[35] = {0}, into[35];
  DLTensor src = t_describe(from, F32, 2, shape, src_strides);
  DLTensor dst = t_describe(into + 28, F32, 2, shape, dst_strides);
  int *failures = (int *)argument;
  char text[256];
  dlrs_error error;
  error.struct_size = sizeof error;
  options.flags = DLRS_COPY_ALLOW_OVERLAP;
  t_make(&good);
  *failures += dlrs_validate_managed(&good.managed, DLRS_LEVEL_STRICT, &error) != DLRS_OK;
  *failures += dlrs_validate_managed(NULL, DLRS_LEVEL_STRICT, &error) != DLRS_NULL_ARG;
  *failures += dlrs_copy_desc(&src, 0, &dst, 0, NULL, &error) != DLRS_OK;
  dst.data = from;
  dst_strides[0] = 7;
  *failures += dlrs_copy_desc(&src, 0, &dst, 0, &options, &error) != DLRS_OK;
  *failures += dlrs_copy_desc(&src, 0, &dst, 0, NULL, &error) != DLRS_OVERLAP_SRC_DST;
  *failures += dlrs_clone(&good.managed, CPU, NULL, &clone, &error) != DLRS_OK;
  *failures += dlrs_managed_to_string(clone, NULL, text, sizeof text, NULL, &error) != DLRS_OK;
  dlrs_release(clone);
  taken = &good.managed;
  *failures += dlrs_import_take(&taken, NULL, &out, &error) != DLRS_OK;
  *failures += dlrs_attach(out, ran, NULL, DLRS_AFTER_FREE, &error) != DLRS_OK;
  *failures += dlrs_to_legacy_take(&out, 0, &legacy, &error) != DLRS_OK;
  *failures += dlrs_from_legacy_take(&legacy, 1, &out, &error) != DLRS_OK;
  dlrs_release(out);
  *failures += dlrs_dtype_parse("complex128x7", 12, &dtype, &error) != DLRS_OK;
  *failures += dlrs_dtype_parse("complex128y7", 12, &dtype, &error) != DLRS_PARSE;
  return NULL;
}

static void z21(void) {
  static const size_t kib[] = {64, 32, 16};
  size_t i;
  for (i = 0; i < sizeof kib / sizeof *kib; ++i) {
    int failures = 0;
    if (kib[i] * 1024 < (size_t)sysconf(_SC_THREAD_STACK_MIN)) continue;
    on_stack(kib[i], everything, &failures);
    EQUAL(failures, 0);
  }
}

int main(int argc, char **argv) {
  static const struct {
    const char *id;
    void (*run)(void);
  } tests[] = {{"F07 C18", f07}, {"flags beside", flags_beside},
               {"attach beside", attach_beside}, {"K28 Z21", z21}};
  size_t i;
  if (argc > 1) divisor = atol(argv[1]);
  for (i = 0; i < sizeof tests / sizeof *tests; ++i) {
    t_context = tests[i].id;
    tests[i].run();
  }
  t_context = "F14";
  on_stack(64, f14, NULL);
  t_context = "C17";
  on_stack(64, c17, NULL);
  return t_close();
}
