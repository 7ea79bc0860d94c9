/* Workers that wait for copies: many copies of a few hundred KiB, each on several threads. */
#include <dlpack/dlpack_rs.h>
#include <stdint.h>
#include <stdio.h>

enum { SIDE = 512, FRAMES = 8 };
static int32_t from[SIDE * SIDE], to[SIDE * SIDE];

int main(void) {
  dlrs_error error = {.struct_size = sizeof error};
  int64_t shape[] = {SIDE, SIDE}, transposed[] = {1, SIDE};
  DLTensor src = {.data = from, .device = {kDLCPU, 0}, .ndim = 2, .dtype = {kDLInt, 32, 1}};
  src.shape = shape;
  DLTensor dst = src;
  src.strides = transposed;
  dst.data = to;
  for (int i = 0; i < SIDE * SIDE; ++i) from[i] = i;

  // [quote:workers]
  /* Once, when the application starts: the caller of a copy and one more. */
  void *workers = NULL;
  const dlrs_workers_options two = {.struct_size = sizeof two, .threads = 2};
  if (dlrs_workers_new(&two, &workers, &error)) goto failed;

  const dlrs_copy_options options = {.struct_size = sizeof options,
                                     .parallel_for = dlrs_workers_run,
                                     .parallel_context = workers};
  for (int frame = 0; frame < FRAMES; ++frame)
    if (dlrs_copy_desc(&src, 0, &dst, 0, &options, &error)) goto failed;

  /* At its end; the threads have ended when it returns. */
  dlrs_workers_free(workers);
  // [/quote]
  printf("to[1][0] is %d\n", (int)to[SIDE]);
  return 0;

failed:
  fprintf(stderr, "%s\n", error.message);
  dlrs_workers_free(workers);
  return 1;
}
