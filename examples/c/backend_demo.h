/* Shared by the examples of backends: tensors are copied to the device, views of them back. */
#ifndef BACKEND_DEMO_H
#define BACKEND_DEMO_H

#include <dlpack/dlpack_rs.h>
#include <stdio.h>
#include <string.h>

static const DLDevice of_host = {kDLCPU, 0};
static const int64_t shape[] = {6, 10, 8};
enum { COUNT = 6 * 10 * 8, VIEWS = 200 };
static dlrs_error error = {.struct_size = sizeof error};

static int draw(int n) {
  static unsigned state = 2463534242u;
  state ^= state << 13, state ^= state >> 17, state ^= state << 5;
  return (int)(state % (unsigned)n);
}

/* Views of two tensors: the same slices, the same order of the axes. */
static int views(DLManagedTensorVersioned *of[2], DLManagedTensorVersioned *out[2]) {
  static const int64_t orders[][3] = {{0, 1, 2}, {0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {2, 1, 0}};
  dlrs_view_step steps[4] = {0};
  for (int axis = 0; axis < 3; ++axis)
    steps[axis] = (dlrs_view_step){.struct_size = sizeof *steps, .op = DLRS_VIEW_SLICE,
                                   .axis = axis, .start = draw(3), .stop = shape[axis] - draw(3),
                                   .step = draw(3) ? 1 : 2};
  steps[3] = (dlrs_view_step){.struct_size = sizeof *steps, .op = DLRS_VIEW_PERMUTE, .ndim = 3,
                              .shape = orders[draw(5)]};
  return dlrs_view_apply(of[0], steps, 4, &out[0], &error) == DLRS_OK &&
         dlrs_view_apply(of[1], steps, 4, &out[1], &error) == DLRS_OK;
}

/* A view equals the host's when it is copied on the device, read, and written. */
static int agree(DLManagedTensorVersioned *host, DLManagedTensorVersioned *there) {
  DLManagedTensorVersioned *both[2] = {host, there}, *view[2] = {0}, *read[3] = {0}, *whole = NULL;
  int good = views(both, view) && !dlrs_clone(view[0], of_host, NULL, &read[0], &error) &&
             !dlrs_clone(view[1], of_host, NULL, &read[1], &error) &&
             !dlrs_clone(view[1], there->dl_tensor.device, NULL, &whole, &error) &&
             !dlrs_to_device(whole, of_host, 0, NULL, &read[2], &error);
  dlrs_release(whole);
  whole = NULL;
  if (good) {
    const int64_t *n = view[0]->dl_tensor.shape, count = n[0] * n[1] * n[2];
    float *values = read[0]->dl_tensor.data;
    for (int i = 1; i < 3; ++i)
      good = good && !memcmp(values, read[i]->dl_tensor.data, (size_t)count * sizeof *values);
    for (int64_t i = 0; i < count; ++i) values[i] += 1;
  }
  for (int i = 0; i < 2 && good; ++i)
    good = !dlrs_copy_desc(&read[0]->dl_tensor, 0, &view[i]->dl_tensor, 0, NULL, &error);
  good = good && !dlrs_to_device(there, of_host, 0, NULL, &whole, &error) &&
         memcmp(whole->dl_tensor.data, host->dl_tensor.data, COUNT * sizeof(float)) == 0;
  dlrs_release(whole);
  for (int i = 0; i < 2; ++i) dlrs_release(view[i]);
  for (int i = 0; i < 3; ++i) dlrs_release(read[i]);
  return good;
}

/* Returns 0, or 1 after printing the error. */
static int demonstrate(DLDevice device) {
  const DLDataType float32 = {kDLFloat, 32, 1};
  const dlrs_view_step steps[] = {
      {.struct_size = sizeof *steps, .op = DLRS_VIEW_SELECT, .axis = 0, .start = 2},
      {.struct_size = sizeof *steps, .op = DLRS_VIEW_SLICE, .axis = 0, .stop = 10, .step = 4},
      {.struct_size = sizeof *steps, .op = DLRS_VIEW_NARROW, .axis = 1, .start = 4, .stop = 4}};
  DLManagedTensorVersioned *host = NULL, *there = NULL, *corner = NULL, *back = NULL;
  char text[512];
  int good = 0;
  if (dlrs_tensor_new(shape, 3, float32, of_host, NULL, &host, &error)) goto done;
  for (int i = 0; i < COUNT; ++i) ((float *)host->dl_tensor.data)[i] = (float)i;
  if (dlrs_to_device(host, device, 0, NULL, &there, &error)) goto done;

  /* A view of the device's tensor is a byte_offset and strides. */
  if (dlrs_view_apply(there, steps, 3, &corner, &error)) goto done;
  printf("there: the same data, byte_offset %d\n", (int)corner->dl_tensor.byte_offset);
  if (dlrs_clone(corner, of_host, NULL, &back, &error)) goto done;
  if (dlrs_managed_to_string(back, NULL, text, sizeof text, NULL, &error)) goto done;
  puts(text);

  for (int i = 0; i < VIEWS; ++i) good += agree(host, there);
  printf("%d of %d views agree with the host's\n", good, VIEWS);
done:
  if (good != VIEWS) puts(error.message);
  dlrs_release(back), dlrs_release(corner), dlrs_release(there), dlrs_release(host);
  return good != VIEWS;
}

#endif
