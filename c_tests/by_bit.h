/* The oracle of copies: one element at a time, and one bit where elements are not whole bytes. */
#ifndef DLRS_TESTS_BY_BIT_H
#define DLRS_TESTS_BY_BIT_H

#include <stdint.h>
#include <string.h>

/* Elements of `width` bits; strides are in elements, and the first element is at bit `from_bit` or
 * `to_bit`. Bits count from the least significant one of a byte, on every machine. */
static void copy_by_bit(int ndim, const int64_t *shape, int64_t width, const unsigned char *from,
                        int64_t from_bit, const int64_t *from_strides, unsigned char *to,
                        int64_t to_bit, const int64_t *to_strides) {
  int64_t index[64], k;
  int i;
  for (i = 0; i < ndim; ++i) {
    if (shape[i] == 0) return;
    index[i] = 0;
  }
  for (;;) {
    if (((from_bit | to_bit | width) & 7) == 0) {
      memcpy(to + to_bit / 8, from + from_bit / 8, (size_t)width / 8);
    } else {
      for (k = 0; k < width; ++k) {
        int bit = from[(from_bit + k) >> 3] >> ((from_bit + k) & 7) & 1;
        unsigned char mask = (unsigned char)(1u << ((to_bit + k) & 7));
        unsigned char *byte = &to[(to_bit + k) >> 3];
        *byte = (unsigned char)(bit ? *byte | mask : *byte & ~mask);
      }
    }
    for (i = ndim;;) {
      if (i-- == 0) return;
      from_bit += from_strides[i] * width;
      to_bit += to_strides[i] * width;
      if (++index[i] < shape[i]) break;
      from_bit -= shape[i] * from_strides[i] * width;
      to_bit -= shape[i] * to_strides[i] * width;
      index[i] = 0;
    }
  }
}

#endif
