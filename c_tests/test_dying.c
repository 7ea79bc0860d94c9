/* Calls within callbacks: each function that takes a tensor, called inside a DLRS_BEFORE_FREE
 * callback on the tensor that is being freed (nothing is shared or taken any more), and inside both
 * kinds on a live tensor (everything works). */
#include "harness.h"

static const dlrs_import_options COPIES = {sizeof COPIES, 0, 1, 0, 0, 0, NULL, 0, 0, NULL, 0};
static DLManagedTensorVersioned *out;
static DLManagedTensor *legacy_out;

typedef DLManagedTensorVersioned *tensor_t;

/* Each returns the status, and stores in `kept` what the caller owns afterwards. */
#define READS(name, call) \
  static int32_t name(tensor_t t, tensor_t *kept) { return (void)kept, (call); }
#define TAKES(name, call) \
  static int32_t name(tensor_t t, tensor_t *kept) { return *kept = t, (call); }
READS(do_retain, dlrs_retain(t, &out, ERR))
READS(do_contiguous, dlrs_contiguous(t, 'C', NULL, &out, ERR))
READS(do_to_device, dlrs_to_device(t, CPU, 0, NULL, &out, ERR))
TAKES(do_import, dlrs_import_take(kept, NULL, &out, ERR))
TAKES(do_import_copy, dlrs_import_take(kept, &COPIES, &out, ERR))
TAKES(do_to_legacy, dlrs_to_legacy_take(kept, DLRS_LEGACY_COPY, &legacy_out, ERR))

static int32_t do_from_legacy(tensor_t t, tensor_t *kept) {
  /* The legacy struct of the same tensor. */
  DLManagedTensor *legacy = (DLManagedTensor *)(void *)&t->dl_tensor, *watched = legacy;
  const int32_t status = dlrs_from_legacy_take(&watched, t->flags, &out, ERR);
  CHECK(watched == (status == DLRS_OK ? NULL : legacy));
  *kept = watched ? t : NULL;
  return status;
}
TAKES(do_release_after, dlrs_release_after_take(kept, CPU, NULL, ERR))
READS(do_apply, dlrs_view_apply(t, NULL, 0, &out, ERR))
READS(do_read_only, dlrs_view_read_only(t, &out, ERR))
READS(do_bitcast, dlrs_view_bitcast(t, t_dtype(kDLInt, 32, 1), &out, ERR))
READS(do_slice, dlrs_view_slice(t, 0, 0, 1, 1, &out, ERR))
static int32_t do_expand(tensor_t t, tensor_t *kept) {
  int64_t shape[3] = {2, 2, 3};
  (void)kept;
  return dlrs_view_expand(t, shape, 3, &out, ERR);
}
/* These read, or copy: a tensor that is being freed still has its data. */
READS(do_clone, dlrs_clone(t, CPU, NULL, &out, ERR))
READS(do_validate, dlrs_validate_managed(t, DLRS_LEVEL_STRICT, ERR))
static int32_t do_copy(tensor_t t, tensor_t *kept) {
  t_tensor good;
  (void)kept;
  t_make(&good);
  return dlrs_copy(t, &good.managed, NULL, ERR);
}
static int32_t do_equal(tensor_t t, tensor_t *kept) {
  int32_t equal = 0, status;
  (void)kept;
  status = dlrs_equal(t, t, DLRS_EQUAL_VALUES, &equal, ERR);
  return equal ? status : -1;
}

typedef struct call {
  const char *name;
  int32_t (*run)(tensor_t t, tensor_t *kept);
  int shares;
} call;
static const call calls[] = {
    {"retain", do_retain, 1},
    {"contiguous", do_contiguous, 1},
    {"to_device", do_to_device, 1},
    {"import_take", do_import, 1},
    {"import_take of a copy", do_import_copy, 1},
    {"to_legacy_take", do_to_legacy, 1},
    {"from_legacy_take", do_from_legacy, 1},
    {"release_after_take", do_release_after, 1},
    {"view_apply", do_apply, 1},
    {"view_read_only", do_read_only, 1},
    {"view_bitcast", do_bitcast, 1},
    {"view_slice", do_slice, 1},
    {"view_expand", do_expand, 1},
    {"clone", do_clone, 0},
    {"validate_managed", do_validate, 0},
    {"copy", do_copy, 0},
    {"equal", do_equal, 0},
};

static tensor_t fresh(void) {
  t_tensor good;
  tensor_t made = NULL;
  t_make(&good);
  CHECK(dlrs_clone(&good.managed, CPU, NULL, &made, NULL) == 0);
  return made;
}

/* Releases the call's results, and drains pending frees. */
static void give_up(void) {
  dlrs_release(out);
  dlrs_release_legacy(legacy_out);
  out = NULL;
  legacy_out = NULL;
  CHECK(dlrs_release_drain(NULL, NULL) == DLRS_OK);
}

typedef struct scene {
  const call *called;
  tensor_t tensor;
  int dying;
  int ran;
} scene;

static void callback(void *context) {
  scene *s = (scene *)context;
  tensor_t kept = s->tensor;
  int32_t status;
  ++s->ran;
  out = NULL;
  legacy_out = NULL;
  t_before();
  status = s->called->run(s->tensor, &kept);
  if (s->dying && s->called->shares) {
    EQUAL(status, DLRS_REFCOUNT);
    EQUAL(t_error.argument, 1);
    CHECK(out == NULL && legacy_out == NULL && kept == s->tensor);
  } else {
    EQUAL(status, DLRS_OK);
    if (!s->dying && kept == s->tensor) dlrs_release(kept);
    else CHECK(s->dying || kept == NULL);
  }
  give_up();
}

static void table(void) {
  size_t i;
  int order;
  for (i = 0; i < sizeof calls / sizeof *calls; ++i) {
    scene s;
    t_context = calls[i].name;
    s.called = &calls[i];
    s.ran = 0;
    s.dying = 1;
    s.tensor = fresh();
    CHECK(dlrs_attach(s.tensor, callback, &s, DLRS_BEFORE_FREE, NULL) == DLRS_OK);
    dlrs_release(s.tensor);
    EQUAL(s.ran, 1);
    for (order = DLRS_BEFORE_FREE; order <= DLRS_AFTER_FREE; ++order) {
      tensor_t host = fresh();
      s.dying = 0;
      s.tensor = fresh();
      CHECK(dlrs_attach(host, callback, &s, order, NULL) == DLRS_OK);
      dlrs_release(host);
    }
    EQUAL(s.ran, 3);
  }
  t_context = NULL;
}

int main(void) {
  table();
  return t_close();
}
