/*
 * What one thread can have of memory, for bench.py, which loads this as a library: as many bytes are
 * read and written as a copy reads and writes, but in order and past the caches, by streaming stores,
 * and nothing is turned. In turn from four pages: faster than one after the other, and what glibc's
 * memcpy does with the largest blocks. x86-64. And what two threads have where nothing is turned.
 */
#include <immintrin.h>
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#if defined __AVX512F__
typedef __m512i part;
#define LOAD(at) _mm512_loadu_si512(at)
#define STORE(at, value) _mm512_stream_si512((void *)(at), value)
#elif defined __AVX__
typedef __m256i part;
#define LOAD(at) _mm256_loadu_si256((const part *)(at))
#define STORE(at, value) _mm256_stream_si256((part *)(at), value)
#else
typedef __m128i part;
#define LOAD(at) _mm_loadu_si128((const part *)(at))
#define STORE(at, value) _mm_stream_si128((part *)(at), value)
#endif

enum { LINE = 64, PAGE = 4096, PAGES = 4, GROUP = PAGES * PAGE };

/* Four pages are written, each line with the bits of `reads` lines: for 1 a copy. */
static inline void group(char *to, const char *from, size_t reads) {
  part kept = LOAD(from);
  for (size_t line = 0; line < PAGE; line += LINE)
    for (size_t page = 0; page < GROUP; page += PAGE)
      for (size_t at = page + line; at < page + line + LINE; at += sizeof(part)) {
        part value = reads > 0 ? LOAD(from + at) : kept;
        if (reads > 1) value |= LOAD(from + GROUP + at);
        STORE(to + at, value);
      }
}

/* Writes `nbytes`, but for less than four pages; `read` bytes, 0 to 2, are read for each of them. */
void limit(char *to, const char *from, size_t nbytes, double read) {
  size_t skip = (size_t)(-(uintptr_t)to % LINE);
  double due = 0.5;
  for (to += skip, nbytes -= skip; nbytes >= GROUP; to += GROUP, nbytes -= GROUP) {
    int reads = (int)(due += read);
    if (reads == 0) group(to, from, 0);
    else if (reads == 1) group(to, from, 1);
    else group(to, from, 2);
    from += (size_t)reads * GROUP;
    due -= reads;
  }
  _mm_sfence();
}

struct half {
  void *to;
  const void *from;
  size_t nbytes;
};

static void *copy_half(void *of) {
  struct half *half = of;
  return memcpy(half->to, half->from, half->nbytes);
}

/* memcpy by two threads, of which one is made for it and joined, as a copy's is. */
void memcpy_by_two(char *to, const char *from, size_t nbytes) {
  size_t first = nbytes / 2 & ~(size_t)(PAGE - 1);
  struct half second = {to + first, from + first, nbytes - first};
  pthread_t other;
  int alone = pthread_create(&other, NULL, copy_half, &second);
  memcpy(to, from, first);
  if (alone) copy_half(&second);
  else pthread_join(other, NULL);
}
