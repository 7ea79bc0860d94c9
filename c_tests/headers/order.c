/* Two headers in one unit, in the order that the macros select: the second adds, never
 * conflicts. */
#include FIRST
#include SECOND

/* Uses both, so that a header without declarations fails. */
int order_of_headers(const DLTensor *tensor, struct DLManagedTensorVersioned *managed);
int order_of_headers(const DLTensor *tensor, struct DLManagedTensorVersioned *managed) {
  return tensor->ndim + (managed->flags != 0);
}
