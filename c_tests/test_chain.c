/* Callbacks on a tensor. Their order is F12 of the catalogue, many threads are in threads.c. */
#include "harness.h"

int main(void) {
  t_tensor good;
  DLManagedTensorVersioned *tensor, *more, *boxed, *in;
  DLManagedTensor *legacy;
  int64_t shape[1] = {4};
  int first = 0, second = 0;
  t_make(&good);
  WORKS(dlrs_tensor_new(shape, 1, F32, CPU, NULL, &tensor, ERR));
  WORKS(dlrs_attach(tensor, t_count, &first, DLRS_BEFORE_FREE, ERR));
  WORKS(dlrs_attach(tensor, t_count, &first, DLRS_AFTER_FREE, ERR));
  WORKS(dlrs_attach(tensor, t_count, &second, DLRS_BEFORE_FREE, ERR));
  t_watch(tensor, sizeof *tensor);
  REFUSED(DLRS_NULL_ARG, 1, ANY, -1, dlrs_attach(NULL, t_count, NULL, 0, ERR));
  REFUSED(DLRS_NULL_ARG, 2, ANY, -1, dlrs_attach(tensor, NULL, NULL, 0, ERR));
  REFUSED(DLRS_BAD_ARG, 4, ANY, -1, dlrs_attach(tensor, t_count, NULL, 2, ERR));
  REFUSED(DLRS_BAD_ARG, 4, ANY, -1, dlrs_attach(tensor, t_count, NULL, -1, ERR));
  REFUSED(DLRS_FOREIGN, 1, ANY, -1, dlrs_attach(&good.managed, t_count, NULL, 0, ERR));
  REFUSED(DLRS_MISALIGNED_STRUCT, 1, ANY, -1,
          dlrs_attach((DLManagedTensorVersioned *)((char *)t_guard() + 2), t_count, NULL, 0, ERR));
  REFUSED(DLRS_NULL_ARG, 1, ANY, -1, dlrs_detach(NULL, t_count, NULL, ERR));
  REFUSED(DLRS_NULL_ARG, 2, ANY, -1, dlrs_detach(tensor, NULL, NULL, ERR));
  REFUSED(DLRS_BAD_ARG, 2, ANY, -1, dlrs_detach(tensor, t_count, NULL, ERR));
  REFUSED(DLRS_FOREIGN, 1, ANY, -1, dlrs_detach(&good.managed, t_count, NULL, ERR));
  t_unwatch();
  WORKS(dlrs_detach(tensor, t_count, &second, ERR));
  REFUSED(DLRS_BAD_ARG, 2, ANY, -1, dlrs_detach(tensor, t_count, &second, ERR));
  /* Both of the first are found, one after the other; attached again, it runs again. */
  WORKS(dlrs_detach(tensor, t_count, &first, ERR));
  WORKS(dlrs_detach(tensor, t_count, &first, ERR));
  REFUSED(DLRS_BAD_ARG, 2, ANY, -1, dlrs_detach(tensor, t_count, &first, ERR));
  WORKS(dlrs_attach(tensor, t_count, &first, DLRS_AFTER_FREE, ERR));
  /* Callbacks wait for the last holder, of whichever kind. */
  WORKS(dlrs_retain(tensor, &more, ERR));
  WORKS(dlrs_to_legacy_take(&tensor, 0, &legacy, ERR));
  dlrs_release(more);
  EQUAL(first, 0);
  dlrs_release_legacy(legacy);
  EQUAL(first, 1);
  EQUAL(second, 0);
  /* A foreign tensor takes callbacks once it is boxed. */
  in = &good.managed;
  WORKS(dlrs_import_take(&in, NULL, &boxed, ERR));
  WORKS(dlrs_attach(boxed, t_count, &second, DLRS_BEFORE_FREE, ERR));
  boxed->deleter(boxed);
  EQUAL(second, 1);
  return t_close();
}
