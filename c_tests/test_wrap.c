/* Wrapping memory of another owner. */
#include "harness.h"

/* Without memory: an invalid tensor is reported first, then the requested size. */
static void starved(t_tensor *good) {
  DLTensor *bare = &good->managed.dl_tensor;
  DLManagedTensorVersioned *out;
  DLDataType dtype = bare->dtype;
  int64_t nbytes;
  if (!inject_works()) return;
  inject_arm(1, 1);
  EQUAL(dlrs_tensor_wrap(bare, 8, NULL, NULL, &out, ERR), DLRS_FLAGS);
  bare->dtype = t_dtype(kDLFloat, 0, 1);
  EQUAL(dlrs_tensor_wrap(bare, 0, NULL, NULL, &out, ERR), DLRS_DTYPE_BITS);
  bare->dtype = dtype;
  EQUAL(dlrs_tensor_wrap(bare, 0, NULL, NULL, &out, ERR), DLRS_NOMEM);
  nbytes = t_error.value;
  bare->ndim = 0;
  EQUAL(dlrs_tensor_wrap(bare, 0, NULL, NULL, &out, ERR), DLRS_NOMEM);
  bare->ndim = 2;
  CHECK(inject_disarm());
  CHECK(out == NULL);
  EQUAL(nbytes - t_error.value, 4 * (int64_t)sizeof(int64_t)); /* extents and strides */
}

int main(void) {
  t_tensor good;
  DLManagedTensorVersioned *out;
  DLTensor *bare = &good.managed.dl_tensor;
  int freed = 0;
  t_make(&good);
  bare->byte_offset = 4;
  WORKS(dlrs_tensor_wrap(bare, DLPACK_FLAG_BITMASK_READ_ONLY, t_count, &freed, &out, ERR));
  CHECK(out->dl_tensor.data == good.values && out->dl_tensor.byte_offset == 4);
  CHECK(out->dl_tensor.shape != good.shape && out->dl_tensor.strides != good.strides);
  EQUAL(out->flags, DLPACK_FLAG_BITMASK_READ_ONLY);
  EQUAL(dlrs_is_own(out), 1);
  EQUAL(freed, 0);
  dlrs_release(out);
  EQUAL(freed, 1);
  good.shape[0] = 0; /* size zero: data is NULL, the memory is still released */
  WORKS(dlrs_tensor_wrap(bare, 0, t_count, &freed, &out, ERR));
  CHECK(out->dl_tensor.data == NULL);
  dlrs_release(out);
  EQUAL(freed, 2);
  good.shape[0] = 2;
  t_watch(&good, sizeof good);
  t_watch(&freed, sizeof freed);
  t_result(&out);
  REJECTS(NULL_ARG, 1, ANY, -1, dlrs_tensor_wrap(NULL, 0, t_count, &freed, &out, ERR));
  REJECTS(NULL_ARG, 5, ANY, -1, dlrs_tensor_wrap(bare, 0, t_count, &freed, NULL, ERR));
  REJECTS(FLAGS, 2, FLAGS, -1, dlrs_tensor_wrap(bare, 8, t_count, &freed, &out, ERR));
  REJECTS(MISALIGNED_STRUCT, 1, ANY, -1,
          dlrs_tensor_wrap((DLTensor *)((char *)t_guard() + 2), 0, t_count, &freed, &out, ERR));
  REJECTS(MISALIGNED_STRUCT, 5, ANY, -1,
          dlrs_tensor_wrap(bare, 0, t_count, &freed,
                           (DLManagedTensorVersioned **)((char *)t_guard() + 2), ERR));
  EQUAL(dlrs_tensor_wrap(NULL, 0, NULL, NULL, &out, NULL), DLRS_NULL_ARG);
  CHECK(out == NULL);
  t_unwatch();
  WORKS(dlrs_tensor_wrap(bare, 0, NULL, NULL, &out, ERR)); /* only borrowed */
  dlrs_release(out);
  starved(&good);
  return t_close();
}
