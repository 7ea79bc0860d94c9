/* Two libraries alternate on one device buffer: a producer fills it on its stream, a consumer reads
 * it on another one, and the host waits for neither. */
#include <stdio.h>

#include "late_device.h"

enum { N = 4, TURNS = 3 };
static const DLDataType F32 = {kDLFloat, 32, 1};

// [quote:turns]
/* The producer may write when the consumer has read; then it says when it has written. */
static dlrs_status produce(DLManagedTensorVersioned *buffer, const DLManagedTensorVersioned *frame,
                           void *stream, dlrs_error *error) {
  dlrs_copy_options options = {
      .struct_size = sizeof options, .flags = DLRS_COPY_ASYNC, .dst_stream = stream};
  dlrs_status status = dlrs_ready_wait(buffer, buffer->dl_tensor.device, stream, error);
  /* Here a kernel of its own would be launched; a copy stands for it. */
  if (status == DLRS_OK) status = dlrs_copy(frame, buffer, &options, error);
  if (status == DLRS_OK) status = dlrs_ready_record(buffer, stream, error);
  return status;
}

/* The consumer reads when the producer has written; then it says when it has read. */
static dlrs_status consume(DLManagedTensorVersioned *buffer, DLManagedTensorVersioned *result,
                           void *stream, dlrs_error *error) {
  dlrs_copy_options options = {
      .struct_size = sizeof options, .flags = DLRS_COPY_ASYNC, .src_stream = stream};
  dlrs_status status = dlrs_ready_wait(buffer, buffer->dl_tensor.device, stream, error);
  if (status == DLRS_OK) status = dlrs_copy(buffer, result, &options, error);
  if (status == DLRS_OK) status = dlrs_ready_record(buffer, stream, error);
  return status;
}
// [/quote]

/* The frames and the results are host memory that outlives the streams' work. */
static float frames[TURNS][N], results[TURNS][N];

static dlrs_status around(float *values, DLManagedTensorVersioned **out, dlrs_error *error) {
  static int64_t shape[] = {N};
  DLTensor bare = {.data = values, .device = {kDLCPU, 0}, .ndim = 1, .shape = shape};
  bare.dtype = F32;
  return dlrs_tensor_wrap(&bare, 0, NULL, NULL, out, error);
}

int main(void) {
  dlrs_error error = {.struct_size = sizeof error};
  DLDevice device = {kDLExtDev, 0}; /* or {kDLCUDA, 0}, without dlrs_backend_set */
  DLManagedTensorVersioned *producers = NULL, *consumers = NULL, *frame = NULL, *result = NULL;
  void *write = NULL, *read = NULL;
  int64_t shape[] = {N};
  if (dlrs_backend_set(kDLExtDev, &late_device, NULL, &error) != DLRS_OK ||
      dlrs_stream_create(device, &write, &error) != DLRS_OK ||
      dlrs_stream_create(device, &read, &error) != DLRS_OK ||
      dlrs_tensor_new(shape, 1, F32, device, NULL, &producers, &error) != DLRS_OK ||
      dlrs_retain(producers, &consumers, &error) != DLRS_OK)
    goto failed;
  for (int turn = 0; turn < TURNS; ++turn) {
    for (int i = 0; i < N; ++i) frames[turn][i] = (float)(10 * turn + i);
    if (around(frames[turn], &frame, &error) != DLRS_OK ||
        around(results[turn], &result, &error) != DLRS_OK ||
        produce(producers, frame, write, &error) != DLRS_OK ||
        consume(consumers, result, read, &error) != DLRS_OK)
      goto failed;
    dlrs_release(frame);
    dlrs_release(result);
    frame = result = NULL;
  }
  printf("all is enqueued: %g is not there yet\n", (double)results[TURNS - 1][0]);
  if (dlrs_ready_sync(producers, &error) != DLRS_OK) goto failed;
  for (int turn = 0; turn < TURNS; ++turn)
    printf("turn %d: %g to %g\n", turn, (double)results[turn][0], (double)results[turn][N - 1]);
  dlrs_release(consumers);
  dlrs_release(producers);
  (void)dlrs_stream_destroy(device, read, NULL);
  (void)dlrs_stream_destroy(device, write, NULL);
  return 0;
failed:
  fprintf(stderr, "%s\n", error.message);
  dlrs_release(frame);
  dlrs_release(result);
  dlrs_release(consumers);
  dlrs_release(producers);
  return 1;
}
