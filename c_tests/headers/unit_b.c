/* See unit_a.c. */
#include "dlpack_rs.h"
#include "dlpack.h"

#ifdef __cplusplus
extern "C"
#endif
int ndim_in_unit_b(const DLTensor *tensor);

int ndim_in_unit_b(const DLTensor *tensor) {
  return tensor->ndim;
}
