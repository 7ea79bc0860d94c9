/* Layouts with no property except that no two elements share memory. */
#ifndef DLRS_TESTS_WOVEN_H
#define DLRS_TESTS_WOVEN_H

#include <stdlib.h>
#include <string.h>

#include "random.h"

/* Whether elements at `starts` and their `extent - 1` repetitions at distance `by` are disjoint;
 * `taken` has room for all between them. */
static int woven_apart(const int64_t *starts, int64_t count, int64_t extent, int64_t by,
                       unsigned char *taken, int64_t room) {
  int64_t i, k;
  memset(taken, 0, (size_t)room);
  for (k = 0; k < extent; ++k) {
    for (i = 0; i < count; ++i) {
      if (taken[starts[i] + k * by]++ != 0) return 0;
    }
  }
  return 1;
}

/* Strides in elements. Each dimension is placed wherever all of it fits, among the elements of
 * those before it (interleaved rows, elements in the gaps of others), or beyond them. */
static void woven(int ndim, const int64_t *shape, int64_t *strides) {
  static const int64_t more[] = {0, 1, 1, 7, 64};
  int64_t total = 1, count = 1, span = 1, *starts;
  int order[32], i, tries;
  for (i = 0; i < ndim; ++i) {
    int other = (int)below(i + 1);
    order[i] = order[other];
    order[other] = i;
    total *= shape[i];
  }
  starts = (int64_t *)calloc((size_t)total, sizeof *starts);
  if (starts == NULL) exit(1);
  for (i = 0; i < ndim; ++i) {
    int64_t extent = shape[order[i]], reach = span + more[below(5)], by = reach, k, j;
    int64_t room = span + (extent - 1) * reach;
    unsigned char *taken = (unsigned char *)malloc((size_t)room);
    if (taken == NULL) exit(1);
    for (tries = below(8) == 0 ? 8 : 0; tries < 8; ++tries) {
      by = 1 + below(reach);
      if (woven_apart(starts, count, extent, by, taken, room)) break;
      by = reach;
    }
    free(taken);
    for (k = extent - 1; k > 0; --k) {
      for (j = 0; j < count; ++j) starts[k * count + j] = starts[j] + k * by;
    }
    count *= extent;
    span += (extent - 1) * by;
    strides[order[i]] = below(4) == 0 ? -by : by;
  }
  free(starts);
}

#endif
