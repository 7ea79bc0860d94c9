/* Pseudo-random numbers, the same in every run: xorshift64*. */
#ifndef DLRS_TESTS_RANDOM_H
#define DLRS_TESTS_RANDOM_H

#include <stdint.h>

static uint64_t state = 88172645463325252u;

/* 53 bits. */
static uint64_t draw(void) {
  state ^= state << 13;
  state ^= state >> 7;
  state ^= state << 17;
  return (state * 0x2545f4914f6cdd1du) >> 11;
}

/* 0 to n - 1. */
static int64_t below(int64_t n) { return (int64_t)(draw() % (uint64_t)n); }

#endif
