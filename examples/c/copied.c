/* Was it copied? Three ways to find out, and one to forbid it. */
#include <dlpack/dlpack_rs.h>
#include <stdio.h>

int main(void) {
  dlrs_error error = {.struct_size = sizeof error};
  const int64_t shape[] = {2, 3};
  const DLDataType int8 = {kDLInt, 8, 1};
  const DLDevice cpu = {kDLCPU, 0};
  DLManagedTensorVersioned *matrix = NULL, *transposed = NULL, *dense = NULL, *refused = NULL;
  if (dlrs_tensor_new(shape, 2, int8, cpu, NULL, &matrix, &error) ||
      dlrs_fill(matrix, "\1", int8, NULL, &error) ||
      dlrs_view_transpose(matrix, 0, 1, &transposed, &error))
    return 1;

  // [quote:copied]
  /* A transposed view is not in row-major order: a copy is made, and says so. */
  if (dlrs_contiguous(transposed, 'C', NULL, &dense, &error)) return 1;
  printf("flag: %d\n", (dense->flags & DLPACK_FLAG_BITMASK_IS_COPIED) != 0);
  printf("other address: %d\n", dense->dl_tensor.data != transposed->dl_tensor.data);

  /* copy -1 forbids it: the call fails, and the tensor is still the caller's. */
  const dlrs_import_options options = {.struct_size = sizeof options, .order = 'C', .copy = -1};
  if (dlrs_import_take(&transposed, &options, &refused, &error) == DLRS_COPY_NEEDED)
    printf("%s\n", error.message);
  // [/quote]
  dlrs_release(dense);
  dlrs_release(transposed);
  dlrs_release(matrix);
  return 0;
}
