/* Random layouts with gaps, reversed and, for sources, broadcast dimensions. */
#ifndef DLRS_TESTS_SCATTERED_H
#define DLRS_TESTS_SCATTERED_H

#include "random.h"

enum { SCATTERED_MOST = 8 };

/* Of `shape`, at most so many dimensions: its strides in elements of so many bits, and its
 * byte_offset. Elements are distinct, but for those of sources. Whether all are within `room` bytes. */
static int scattered(int ndim, const int64_t *shape, int64_t bits, int is_source, int64_t room,
                     int64_t *strides, uint64_t *byte_offset) {
  int order[SCATTERED_MOST], i;
  int64_t step = 1, low = 0, high = 0;
  for (i = 0; i < ndim; ++i) {
    int other = (int)below(i + 1);
    order[i] = order[other];
    order[other] = i;
  }
  for (i = 0; i < ndim; ++i) {
    int64_t stride = step;
    step = step * shape[order[i]] + below(3) * (below(3) == 0);
    if (below(4) == 0 && bits >= 8) stride = -stride;
    if (is_source && below(9) == 0) stride = 0;
    strides[order[i]] = stride;
    if (shape[order[i]] > 0) *(stride < 0 ? &low : &high) += (shape[order[i]] - 1) * stride;
  }
  *byte_offset = (uint64_t)(-low * bits / 8);
  return (high - low + 1) * bits / 8 + 1 <= room;
}

#endif
