/* An old producer, a new consumer, and back: no element is copied. */
#include <dlpack/dlpack_rs.h>
#include <stdio.h>
#include <stdlib.h>

/* A producer written before DLPack 1.0: a legacy struct, and strides left NULL. */
static int64_t old_shape[] = {2, 2};
static void old_deleter(DLManagedTensor *self) {
  puts("the producer's deleter runs, once");
  free(self->dl_tensor.data);
  free(self);
}
static DLManagedTensor *old_producer(void) {
  DLManagedTensor *made = calloc(1, sizeof *made);
  double *values = malloc(4 * sizeof *values);
  if (made == NULL || values == NULL) exit(1);
  for (int i = 0; i < 4; ++i) values[i] = i * 1.5;
  made->dl_tensor = (DLTensor){values, {kDLCPU, 0}, 2, {kDLFloat, 64, 1}, old_shape, NULL, 0};
  made->deleter = old_deleter;
  return made;
}

static int fail(const dlrs_error *error) {
  fprintf(stderr, "%s\n", error->message);
  return 1;
}

int main(void) {
  dlrs_error error = {.struct_size = sizeof error};
  DLManagedTensor *legacy = old_producer();
  const void *data = legacy->dl_tensor.data;

  // [quote:bridge]
  /* `_take` consumes its input only when it succeeds, and then sets your pointer to NULL. A legacy
   * struct has no flags: 0 says that the data may be written. */
  DLManagedTensorVersioned *tensor = NULL;
  if (dlrs_from_legacy_take(&legacy, 0, &tensor, &error) != DLRS_OK) {
    dlrs_release_legacy(legacy); /* still ours */
    return fail(&error);
  }
  printf("versioned %u.%u, strides %lld and %lld\n", tensor->version.major, tensor->version.minor,
         (long long)tensor->dl_tensor.strides[0], (long long)tensor->dl_tensor.strides[1]);

  /* And back, for an old consumer. Read-only data is refused: a legacy struct has no flag for it. */
  if (dlrs_to_legacy_take(&tensor, DLRS_LEGACY_REFUSE, &legacy, &error) != DLRS_OK) {
    dlrs_release(tensor);
    return fail(&error);
  }
  // [/quote]
  printf("same data: %s\n", legacy->dl_tensor.data == data ? "yes" : "no");
  legacy->deleter(legacy);
  return 0;
}
