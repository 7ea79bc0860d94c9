/* Section F: freeing, chains, references. Rows that need threads are in threads.c. */
#include "catalogue.h"

static void f01(void) {
  dlrs_release(NULL);
  dlrs_release_legacy(NULL);
  EQUAL(dlrs_ref_count(NULL), 0);
  EQUAL(dlrs_is_own(NULL), 0);
}

static void f02(void) {
  t_tensor good;
  t_make(&good);
  good.managed.deleter = NULL;
  good.legacy.deleter = NULL;
  dlrs_release(&good.managed);
  dlrs_release_legacy(&good.legacy);
  EQUAL(good.values[5], 5);
}

/* A tensor of the library whose data is freed by t_count(&freed). */
static DLManagedTensorVersioned *wrapped(t_tensor *good, int *freed) {
  DLManagedTensorVersioned *out = NULL;
  t_make(good);
  *freed = 0;
  WORKS(dlrs_tensor_wrap(&good->managed.dl_tensor, 0, t_count, freed, &out, ERR));
  return out;
}

/* A callback may do everything with any other tensor, also with another reference. */
static struct {
  DLManagedTensorVersioned *sibling, *self;
  int runs;
} reenter;

static void busy(void *context) {
  DLManagedTensorVersioned *fresh = NULL;
  int64_t shape[1] = {7};
  (void)context;
  ++reenter.runs;
  CHECK(dlrs_tensor_new(shape, 1, F32, CPU, NULL, &fresh, NULL) == DLRS_OK);
  CHECK(dlrs_validate_managed(fresh, DLRS_LEVEL_STRICT, NULL) == DLRS_OK);
  CHECK(dlrs_attach(fresh, t_count, NULL, DLRS_AFTER_FREE, NULL) == DLRS_OK);
  dlrs_release(fresh);
  dlrs_release(reenter.sibling);
  reenter.sibling = NULL;
}

static void f10(void) {
  t_tensor good, other;
  int freed, other_freed;
  int32_t order;
  for (order = DLRS_BEFORE_FREE; order <= DLRS_AFTER_FREE; ++order) {
    DLManagedTensorVersioned *out = wrapped(&good, &freed);
    reenter.sibling = wrapped(&other, &other_freed);
    reenter.runs = 0;
    WORKS(dlrs_attach(out, busy, NULL, order, ERR));
    dlrs_release(out);
    EQUAL(reenter.runs, 1);
    EQUAL(freed, 1);
    EQUAL(other_freed, 1);
  }
  /* free_fn itself releases another reference to a tensor that it keeps alive. */
  {
    DLManagedTensorVersioned *base = wrapped(&other, &other_freed), *out;
    reenter.sibling = base;
    reenter.runs = 0;
    WORKS(dlrs_tensor_wrap(&base->dl_tensor, 0, busy, NULL, &out, ERR));
    dlrs_release(out);
    EQUAL(reenter.runs, 1);
    EQUAL(other_freed, 1);
  }
}

static void again(void *context) {
  (void)context;
  ++reenter.runs;
  if (reenter.runs < 5) reenter.self->deleter(reenter.self);
}

static void f11(void) {
  t_tensor good;
  int freed;
  reenter.runs = 0;
  reenter.self = wrapped(&good, &freed);
  WORKS(dlrs_attach(reenter.self, again, NULL, DLRS_BEFORE_FREE, ERR));
  dlrs_release(reenter.self);
  EQUAL(reenter.runs, 1);
  EQUAL(freed, 1);
  reenter.runs = 0;
  t_make(&good);
  WORKS(dlrs_tensor_wrap(&good.managed.dl_tensor, 0, again, NULL, &reenter.self, ERR));
  dlrs_release(reenter.self);
  EQUAL(reenter.runs, 1);
}

static void f23(void) {
  t_tensor good;
  int freed;
  DLManagedTensorVersioned *out = wrapped(&good, &freed);
  DLManagedTensor *legacy;
  out->manager_ctx = (void *)(uintptr_t)0x123;
  EQUAL(dlrs_ref_count(out), 1);
  WORKS(dlrs_to_legacy_take(&out, 0, &legacy, ERR));
  legacy->manager_ctx = NULL;
  dlrs_release_legacy(legacy);
  EQUAL(freed, 1);
}

static void f24(void) {
  t_tensor good;
  int freed;
  DLManagedTensorVersioned *out = wrapped(&good, &freed);
  out->dl_tensor.shape[0] = INT64_MIN;
  out->dl_tensor.strides[1] = INT64_MAX;
  out->dl_tensor.shape = NULL;
  out->dl_tensor.strides = (int64_t *)t_guard();
  out->dl_tensor.ndim = 2000;
  out->dl_tensor.data = t_guard();
  out->version.major = 77;
  dlrs_release(out);
  EQUAL(freed, 1);
}

static DLManagedTensorVersioned *own_deleter_ran;
static void (*own_deleter)(DLManagedTensorVersioned *self);

static void outer_deleter(DLManagedTensorVersioned *self) {
  own_deleter_ran = self;
  own_deleter(self);
}

static void f25(void) {
  t_tensor good;
  int freed;
  DLManagedTensorVersioned *out = wrapped(&good, &freed), *more;
  out->flags = UINT64_MAX; /* a consumer's change */
  own_deleter = out->deleter;
  out->deleter = outer_deleter;
  /* A tensor with another deleter is foreign: it is not shared, and freed through its deleter. */
  EQUAL(dlrs_is_own(out), 0);
  t_result(&more);
  REJECTS(FOREIGN, 1, NONE, -1, dlrs_retain(out, &more, ERR));
  own_deleter_ran = NULL;
  dlrs_release(out);
  CHECK(own_deleter_ran == out);
  EQUAL(freed, 1);
}

const c_row c_rows_f[] = {
    {"F01", "releasing NULL does nothing", f01},
    {"F02", "without a deleter a release is a silent no-op", f02},
    {"F10", "a callback may do everything with other tensors", f10},
    {"F11", "a release within the own callback is ignored", f11},
    {"F23", "the library does not need manager_ctx", f23},
    {"F24", "what a consumer writes into the struct does not reach the release", f24},
    {"F25", "release calls the deleter that stands in the struct", f25},
    {NULL, NULL, NULL},
};
