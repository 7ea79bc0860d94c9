/* Counts the process's allocations and makes them fail on demand. The functions are defined in the
 * test program, so the shared library calls them too; they forward to the C library's. Under
 * valgrind, run with --soname-synonyms=somalloc=nouserintercepts: valgrind then watches the C
 * library's allocator, to which these forward. Always compiled as C. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <string.h>

#include "injected.h"
#include "sanitized.h"

int inject_works(void) {
#ifdef SANITIZED
  return 0;
#else
  return 1;
#endif
}

/* The loader keeps the text of this thread's last failed dlopen, such as of a missing driver, until
 * it has been read and dlerror is called again. */
long inject_live(void) {
  (void)dlerror();
  (void)dlerror();
  return __atomic_load_n(&live, __ATOMIC_RELAXED);
}
#ifndef SANITIZED

/* Function pointers are not data pointers to ISO C: the address is copied as bytes. */
#define NEXT(function)                            \
  do {                                            \
    if (function == NULL) {                       \
      void *found = dlsym(RTLD_NEXT, &#function[5]); \
      memcpy(&function, &found, sizeof function); \
    }                                             \
  } while (0)

static void *(*next_malloc)(size_t);
static void *(*next_realloc)(void *, size_t);
static void *(*next_aligned_alloc)(size_t, size_t);
static int (*next_posix_memalign)(void **, size_t, size_t);
static void (*next_free)(void *);
static int (*next_pthread_create)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);

/* Called before any lookup fails, for dlsym frees the text of its last failure, and dlerror makes
 * it; and it resolves errno, since a small stack has no room for the linker's lookup. */
__attribute__((constructor)) static void find(void) {
  NEXT(next_malloc);
  NEXT(next_realloc);
  NEXT(next_free);
  errno = 0;
}

void *malloc(size_t nbytes) {
  NEXT(next_malloc);
  return fails() ? NULL : counted(next_malloc(nbytes));
}

/* These two forward to the functions that allocate: a C library's versions (musl's) would call
 * those by name, which are defined here, and one allocation would be counted twice. */
void *calloc(size_t count, size_t nbytes) {
  NEXT(next_malloc);
  if (fails()) return NULL;
  if (nbytes != 0 && count > (size_t)-1 / nbytes) {
    errno = ENOMEM;
    return NULL;
  }
  void *memory = counted(next_malloc(count * nbytes));
  return memory == NULL ? NULL : memset(memory, 0, count * nbytes);
}

void *realloc(void *memory, size_t nbytes) {
  NEXT(next_realloc);
  if (fails()) return NULL;
  void *moved = next_realloc(memory, nbytes);
  if (memory == NULL) return counted(moved);
  if (nbytes == 0 && moved == NULL) __atomic_sub_fetch(&live, 1, __ATOMIC_RELAXED);
  return moved;
}

int posix_memalign(void **out, size_t alignment, size_t nbytes) {
  NEXT(next_posix_memalign);
  if (fails()) return ENOMEM;
  int status = next_posix_memalign(out, alignment, nbytes);
  if (status == 0) counted(*out);
  return status;
}

void *aligned_alloc(size_t alignment, size_t nbytes) {
  NEXT(next_aligned_alloc);
  return fails() ? NULL : counted(next_aligned_alloc(alignment, nbytes));
}

void free(void *memory) {
  NEXT(next_free);
  if (memory != NULL) __atomic_sub_fetch(&live, 1, __ATOMIC_RELAXED);
  next_free(memory);
}

int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*start)(void *),
                   void *argument) {
  NEXT(next_pthread_create);
  return refuses() ? EAGAIN : next_pthread_create(thread, attributes, start, argument);
}

#endif
