/* Linked with unit_b.c: a header that defined anything would be a duplicate symbol. */
#include "dlpack.h"
#include "dlpack_rs.h"

#ifdef __cplusplus
extern "C"
#endif
int ndim_in_unit_b(const DLTensor *tensor);

int main(void) {
  DLTensor tensor;
  tensor.ndim = 3;
  return ndim_in_unit_b(&tensor) == 3 && DLRS_OK == 0 ? 0 : 1;
}
