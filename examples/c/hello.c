/* Allocate a tensor, fill it, check it, print it, free it. The first program to read. */
// [quote:hello]
#include <dlpack/dlpack_rs.h>
#include <stdio.h>

int main(void) {
  /* Every function can explain its failure: the struct is yours and lives on the stack. */
  dlrs_error error = {.struct_size = sizeof error};
  const int64_t shape[] = {2, 3};
  const DLDataType float32 = {kDLFloat, 32, 1};
  const DLDevice cpu = {kDLCPU, 0};

  DLManagedTensorVersioned *tensor = NULL; /* a plain DLPack struct, not a handle of ours */
  if (dlrs_tensor_new(shape, 2, float32, cpu, NULL, &tensor, &error) != DLRS_OK) goto failed;

  float *values = tensor->dl_tensor.data; /* compact, row-major, 256-byte aligned */
  for (int i = 0; i < 6; ++i) values[i] = (float)i / 2;

  if (dlrs_validate_managed(tensor, DLRS_LEVEL_STRICT, &error) != DLRS_OK) goto failed;
  char text[512];
  if (dlrs_managed_to_string(tensor, NULL, text, sizeof text, NULL, &error) != DLRS_OK) goto failed;
  puts(text);

  tensor->deleter(tensor); /* or dlrs_release(tensor); any DLPack consumer does the same */
  return 0;
failed:
  fprintf(stderr, "%s\n", error.message);
  dlrs_release(tensor); /* NULL is fine */
  return 1;
}
// [/quote]
