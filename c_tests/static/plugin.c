/* A plugin that the static library is linked into. */
#include "dlpack_rs.h"

DLManagedTensorVersioned *make(float value);

DLManagedTensorVersioned *make(float value) {
  int64_t shape[1] = {1};
  DLDataType f32 = {kDLFloat, 32, 1};
  DLDevice cpu = {kDLCPU, 0};
  DLManagedTensorVersioned *made = NULL;
  if (dlrs_tensor_new(shape, 1, f32, cpu, NULL, &made, NULL) != DLRS_OK) return NULL;
  *(float *)made->dl_tensor.data = value;
  return made;
}
