/* Pseudo-random numbers, the same in every run, and in every thread: xorshift64*. */
#ifndef DLRS_TESTS_RANDOM_H
#define DLRS_TESTS_RANDOM_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

static __thread uint64_t state = 88172645463325252u;

/* 53 bits. */
static uint64_t draw(void) {
  state ^= state << 13;
  state ^= state >> 7;
  state ^= state << 17;
  return (state * 0x2545f4914f6cdd1du) >> 11;
}

/* 0 to n - 1. */
static int64_t below(int64_t n) { return (int64_t)(draw() % (uint64_t)n); }

static inline int64_t one_of(const int64_t *values, size_t count) {
  return values[below((int64_t)count)];
}

static inline void draw_bytes(void *memory, size_t nbytes) {
  unsigned char *bytes = (unsigned char *)memory;
  for (; nbytes >= 8; nbytes -= 8, bytes += 8) {
    uint64_t value = draw() * 0x9E3779B97F4A7C15u;
    memcpy(bytes, &value, 8);
  }
  while (nbytes-- > 0) *bytes++ = (unsigned char)draw();
}

#endif
