#include <dlpack/dlpack_rs.h>
#include <stdio.h>

int main(void) {
  const int64_t shape[] = {2, 3};
  const DLDataType float32 = {kDLFloat, 32, 1};
  const DLDevice cpu = {kDLCPU, 0};
  DLManagedTensorVersioned *tensor;
  if (dlrs_tensor_new(shape, 2, float32, cpu, NULL, &tensor, NULL) != DLRS_OK) return 1;
  dlrs_release(tensor);
  printf("libdlpack_rs %s\n", dlrs_version_string());
  return 0;
}
