/* The parts of a large copy on OpenMP's threads.
 * Link: -fopenmp */
#include <dlpack/dlpack_rs.h>
#include <stdio.h>
#include <stdlib.h>

// [quote:openmp]
static int32_t openmp_for(void *context, size_t n, void (*body)(void *, size_t), void *given) {
  (void)context;
#pragma omp parallel for schedule(dynamic)
  for (size_t i = 0; i < n; ++i) body(given, i);
  return 0;
}
// [/quote]

int main(void) {
  dlrs_error error = {.struct_size = sizeof error};
  int64_t shape[] = {2048, 2048}, transposed[] = {1, 2048};
  int32_t *from = malloc(4 * 2048 * 2048), *to = malloc(4 * 2048 * 2048);
  if (from == NULL || to == NULL) return 1;
  DLTensor src = {.data = from, .device = {kDLCPU, 0}, .ndim = 2, .dtype = {kDLInt, 32, 1}};
  src.shape = shape;
  DLTensor dst = src;
  src.strides = transposed;
  dst.data = to;
  for (int i = 0; i < 2048 * 2048; ++i) from[i] = i;
  const dlrs_copy_options options = {.struct_size = sizeof options, .parallel_for = openmp_for};
  if (dlrs_copy_desc(&src, 0, &dst, 0, &options, &error)) {
    fprintf(stderr, "%s\n", error.message);
    return 1;
  }
  printf("to[1][0] is %d\n", (int)to[2048]);
  free(from);
  free(to);
  return 0;
}
