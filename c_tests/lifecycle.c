/* Loading and unloading, exit, fork, two copies in one process. Not linked to the library:
 * `lifecycle LIBRARY [COPY [PAGES]]` loads it by path; PAGES is the permitted growth of resident
 * memory, by default the possible lag of the kernel's count. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <pthread.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "loaded.h"

static long resident_pages(void) {
  long size = 0, resident = 0;
  FILE *file = fopen("/proc/self/statm", "r");
  if (file == NULL) return 0;
  if (fscanf(file, "%ld %ld", &size, &resident) != 2) resident = 0;
  fclose(file);
  return resident;
}

static double seconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* F18: a deleter works after dlclose of the library. */
static void unload(const char *path) {
  library lib;
  DLManagedTensorVersioned *tensor;
  CHECK(load(path, &lib));
  tensor = make(&lib);
  CHECK(dlclose(lib.handle) == 0);
  runs = 0;
  tensor->deleter(tensor);
  CHECK(runs == 1);
}

static void reload(const char *path, int times, long allowed) {
  long before = 0, after;
  int i;
  for (i = 0; i < times; ++i) {
    library lib;
    if (!load(path, &lib)) {
      CHECK(!"load");
      return;
    }
    if (i % 100 == 0) lib.release(make(&lib));
    if (dlclose(lib.handle) != 0) CHECK(!"dlclose");
    if (i == times / 10) before = resident_pages();
  }
  after = resident_pages();
  printf("dlopen x %d: %ld pages, then %ld\n", times, before, after);
  CHECK(after - before <= allowed);
}

static void in_child(void (*body)(void), int expected) {
  int status = 0;
  pid_t child;
  fflush(stdout);
  child = fork();
  if (child == 0) {
    body();
    exit(0);
  }
  CHECK(waitpid(child, &status, 0) == child);
  CHECK(WIFEXITED(status) && WEXITSTATUS(status) == expected);
}

static void exits_late(void) {
  late_tensor = make(&late);
  atexit(at_exit);
}

static void at_thread_exit(void *tensor) { late.release((DLManagedTensorVersioned *)tensor); }

static pthread_key_t key;
static void *thread_with_tensor(void *argument) {
  pthread_setspecific(key, make(&late));
  return argument;
}

/* Z18: freed by the destructor of the application's thread-local variable. */
static void thread_exit(void) {
  pthread_t thread;
  CHECK(pthread_key_create(&key, at_thread_exit) == 0);
  runs = 0;
  CHECK(pthread_create(&thread, NULL, thread_with_tensor, NULL) == 0);
  pthread_join(thread, NULL);
  pthread_key_delete(key);
  CHECK(runs == 1);
}

int main(int argc, char **argv) {
  double start;
  void *handle;
  if (argc < 2) return 2;
  start = seconds();
  handle = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
  printf("dlopen: %.0f us\n", (seconds() - start) * 1e6);
  CHECK(handle != NULL);
  if (handle != NULL) dlclose(handle);
  unload(argv[1]);
  reload(argv[1], 1000, argc > 3 ? atol(argv[3]) : 64);
  CHECK(load(argv[1], &late));
  in_child(exits_late, 0);
  late_tensor = make(&late);
  in_child(at_exit, 0); /* Z16: tensors created before a fork are valid in the child */
  late.release(late_tensor);
  thread_exit();
  if (argc > 2) two_copies(argv[1], argv[2]);
  printf("%ld passed, %ld failed\n", passed, failed);
  return failed != 0;
}
