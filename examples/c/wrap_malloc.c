/* Export existing memory to a DLPack consumer, without copying it. */
#include <dlpack/dlpack_rs.h>
#include <stdio.h>
#include <stdlib.h>

// [quote:wrap]
/* Wraps `values`, from malloc. On success the tensor frees them; on failure you still must. */
static DLManagedTensorVersioned *wrap(int32_t *values, int64_t count, dlrs_error *error) {
  const DLTensor description = {
      .data = values,
      .device = {kDLCPU, 0},
      .ndim = 1,
      .dtype = {kDLInt, 32, 1},
      .shape = &count, /* copied: it may live on the stack */
      .strides = NULL, /* compact row-major; the tensor will have them filled in */
  };
  DLManagedTensorVersioned *tensor = NULL;
  /* free(values) is called when the last reference to the tensor is released. */
  dlrs_tensor_wrap(&description, 0, free, values, &tensor, error);
  return tensor; /* NULL on failure */
}
// [/quote]

/* A consumer: it uses dlpack.h and nothing of this library. */
static int64_t consume(DLManagedTensorVersioned *tensor) {
  int64_t sum = 0;
  const int32_t *values = tensor->dl_tensor.data;
  for (int64_t i = 0; i < tensor->dl_tensor.shape[0]; ++i) sum += values[i];
  tensor->deleter(tensor);
  return sum;
}

int main(void) {
  dlrs_error error = {.struct_size = sizeof error};
  int32_t *values = malloc(100 * sizeof *values);
  if (values == NULL) return 1;
  for (int i = 0; i < 100; ++i) values[i] = i + 1;

  /* A mistake first: a negative extent. Nothing is taken, and the message gives the reason. */
  if (wrap(values, -100, &error) != NULL) return 1;
  printf("refused: %s\n", error.message);

  DLManagedTensorVersioned *tensor = wrap(values, 100, &error);
  if (tensor == NULL) {
    fprintf(stderr, "%s\n", error.message);
    free(values);
    return 1;
  }
  printf("sum: %lld\n", (long long)consume(tensor));
  return 0;
}
