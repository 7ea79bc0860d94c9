/* What inject.c counts and fails, on every system; included there alone. */
#ifndef C_TESTS_INJECTED_H_
#define C_TESTS_INJECTED_H_

#include <errno.h>
#include <stddef.h>

static long live, calls, countdown, threads_refused;
static int armed, forever_too, fired, refuse_threads;

long inject_calls(void) { return __atomic_load_n(&calls, __ATOMIC_RELAXED); }

void inject_arm(long k, int forever) {
  countdown = k;
  forever_too = forever;
  fired = 0;
  __atomic_store_n(&armed, k > 0, __ATOMIC_RELEASE);
}

int inject_disarm(void) {
  __atomic_store_n(&armed, 0, __ATOMIC_RELEASE);
  return fired;
}

long inject_threads(int fail) {
  long before = threads_refused;
  threads_refused = 0;
  refuse_threads = fail;
  return before;
}

/* Whether this allocation fails. */
static inline int fails(void) {
  __atomic_add_fetch(&calls, 1, __ATOMIC_RELAXED);
  if (!__atomic_load_n(&armed, __ATOMIC_ACQUIRE)) return 0;
  long left = __atomic_sub_fetch(&countdown, 1, __ATOMIC_RELAXED);
  if (left == 0 || (left < 0 && forever_too)) {
    __atomic_store_n(&fired, 1, __ATOMIC_RELAXED);
    errno = ENOMEM;
    return 1;
  }
  return 0;
}

static inline void *counted(void *memory) {
  if (memory != NULL) __atomic_add_fetch(&live, 1, __ATOMIC_RELAXED);
  return memory;
}

/* Whether this thread is refused; after `fail` - 1 more of them, each is. */
static inline int refuses(void) {
  if (refuse_threads > 1) {
    --refuse_threads;
  } else if (refuse_threads == 1) {
    __atomic_add_fetch(&threads_refused, 1, __ATOMIC_RELAXED);
    return 1;
  }
  return 0;
}

#endif
