/* memcpy by two threads, one of which is created and joined, as in a copy: for bench.py. */
#include <pthread.h>
#include <string.h>

enum { PAGE = 4096 };

struct half {
  void *to;
  const void *from;
  size_t nbytes;
};

static void *copy_half(void *of) {
  struct half *half = of;
  return memcpy(half->to, half->from, half->nbytes);
}

void memcpy_by_two(char *to, const char *from, size_t nbytes) {
  size_t first = nbytes / 2 & ~(size_t)(PAGE - 1);
  struct half second = {to + first, from + first, nbytes - first};
  pthread_t other;
  int alone = pthread_create(&other, NULL, copy_half, &second);
  memcpy(to, from, first);
  if (alone) copy_half(&second);
  else pthread_join(other, NULL);
}
