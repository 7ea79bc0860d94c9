/* Copy from a GPU to the host without waiting; where there is no GPU, from the CPU by the same calls.
 * The source is released immediately: its memory is freed when the stream has completed the
 * copy. */
#include <dlpack/dlpack_rs.h>
#include <stdio.h>

int main(void) {
  dlrs_error error = {.struct_size = sizeof error};
  DLDevice device = {kDLCUDA, 0}, pinned = {kDLCUDAHost, 0};
  const DLDevice cpu = {kDLCPU, 0};
  int32_t devices = 0;
  if (dlrs_device_count(kDLCUDA, &devices, NULL) || devices == 0) device = pinned = cpu;

  const int64_t shape[] = {1000};
  const DLDataType int32 = {kDLInt, 32, 1};
  const int32_t seven = 7;
  DLManagedTensorVersioned *source = NULL, *filled = NULL, *target = NULL;
  void *stream = NULL;
  if (dlrs_tensor_new(shape, 1, int32, cpu, NULL, &filled, &error) ||
      dlrs_fill(filled, &seven, int32, NULL, &error) ||
      dlrs_to_device(filled, device, 0, NULL, &source, &error))
    goto failed;

  // [quote:async]
  /* The destination is pinned memory. (Without a GPU this example uses CPU memory, and no stream.) */
  if (dlrs_tensor_new(shape, 1, int32, pinned, NULL, &target, &error)) goto failed;
  if (devices > 0 && dlrs_stream_create(device, &stream, &error)) goto failed;

  const dlrs_copy_options options = {.struct_size = sizeof options,
                                     .flags = DLRS_COPY_ASYNC,
                                     .src_stream = stream,
                                     .dst_stream = stream};
  if (dlrs_copy(source, target, &options, &error)) goto failed; /* returns once it is enqueued */

  /* The source must stay alive until the copy is complete: the library keeps it until then. */
  if (devices > 0 && dlrs_release_after_take(&source, device, stream, &error)) goto failed;

  /* ... other work ... */
  if (devices > 0 && dlrs_stream_sync(device, stream, &error)) goto failed; /* the copy is complete */
  if (dlrs_release_drain(NULL, &error)) goto failed; /* releases the source */
  // [/quote]
  const int32_t *values = target->dl_tensor.data;
  printf("%d ... %d\n", values[0], values[999]);
  if (devices > 0) dlrs_stream_destroy(device, stream, NULL);
  dlrs_release(source); /* NULL where it was taken */
  dlrs_release(filled);
  dlrs_release(target);
  return 0;
failed:
  fprintf(stderr, "%s\n", error.message);
  return 1;
}
