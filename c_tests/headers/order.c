/* Two headers in one unit, in whatever order the macros say: the second adds, never clashes. */
#include FIRST
#include SECOND

/* Uses both, so that a header that declared nothing would be noticed. */
int order_of_headers(const DLTensor *tensor, struct DLManagedTensorVersioned *managed);
int order_of_headers(const DLTensor *tensor, struct DLManagedTensorVersioned *managed) {
  return tensor->ndim + (managed->flags != 0);
}
