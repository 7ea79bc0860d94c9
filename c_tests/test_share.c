/* Errors of references and flags; what each call does to the others is in
 * fuzz/src/targets/convert_chain.rs. */
#include "harness.h"

static DLManagedTensorVersioned *fresh(void) {
  int64_t shape[1] = {4};
  DLManagedTensorVersioned *out = NULL;
  WORKS(dlrs_tensor_new(shape, 1, F32, CPU, NULL, &out, ERR));
  return out;
}

#define COPIED DLPACK_FLAG_BITMASK_IS_COPIED
#define READ_ONLY DLPACK_FLAG_BITMASK_READ_ONLY
#define PADDED DLPACK_FLAG_BITMASK_IS_SUBBYTE_TYPE_PADDED

static void references(void) {
  t_tensor good;
  DLManagedTensorVersioned *out, *foreign = &good.managed;
  t_make(&good);
  EQUAL(dlrs_is_own(foreign), 0);
  EQUAL(dlrs_ref_count(foreign), 0);
  t_watch(&good, sizeof good);
  t_result(&out);
  REJECTS(FOREIGN, 1, ANY, -1, dlrs_retain(foreign, &out, ERR));
  REJECTS(NULL_ARG, 1, ANY, -1, dlrs_retain(NULL, &out, ERR));
  t_unwatch();
}

static void flags(void) {
  DLManagedTensorVersioned *tensor = fresh(), *more;
  t_tensor good;
  t_make(&good);
  WORKS(dlrs_set_flags(tensor, READ_ONLY | COPIED, 0, ERR));
  EQUAL(tensor->flags, READ_ONLY | COPIED);
  WORKS(dlrs_set_flags(tensor, 0, READ_ONLY, ERR));
  EQUAL(tensor->flags, COPIED);
  t_watch(tensor, sizeof *tensor);
  REJECTS(FLAGS, 1, FLAGS, -1, dlrs_set_flags(tensor, 8, 0, ERR));
  REJECTS(FLAGS, 1, FLAGS, -1, dlrs_set_flags(tensor, 0, (uint64_t)1 << 63, ERR));
  REJECTS(FLAGS, 1, FLAGS, -1, dlrs_set_flags(tensor, READ_ONLY, READ_ONLY, ERR));
  EQUAL(t_error.value, READ_ONLY);
  REJECTS(FLAGS, 1, FLAGS, -1, dlrs_set_flags(tensor, PADDED, 0, ERR));
  EQUAL(t_error.value, PADDED);
  t_unwatch();
  WORKS(dlrs_retain(tensor, &more, ERR));
  WORKS(dlrs_set_flags(tensor, READ_ONLY, 0, ERR));
  REJECTS(REFCOUNT, 1, FLAGS, -1, dlrs_set_flags(tensor, COPIED, 0, ERR));
  REJECTS(READ_ONLY, 1, FLAGS, -1, dlrs_set_flags(tensor, 0, READ_ONLY, ERR));
  dlrs_release(more);
  dlrs_release(tensor);
  REJECTS(NULL_ARG, 1, ANY, -1, dlrs_set_flags(NULL, 0, 0, ERR));
  REJECTS(FOREIGN, 1, ANY, -1, dlrs_set_flags(&good.managed, 0, 0, ERR));
}

int main(void) {
  EQUAL(dlrs_is_own(NULL), 0);
  EQUAL(dlrs_ref_count(NULL), 0);
  references();
  flags();
  return t_close();
}
