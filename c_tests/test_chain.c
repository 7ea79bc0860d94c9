/* Callbacks on a tensor: errors, calls from inside, memory. Any number of them on any tensors is in
 * fuzz/src/targets/convert_chain.rs, many threads are in threads.c. */
#include "harness.h"

static char order[16];

static void tells(void *name) { strncat(order, (const char *)name, 1); }

/* Callbacks that append their names; NULL: none. */
static void attach(DLManagedTensorVersioned *tensor, const char *before, const char *after) {
  if (before) WORKS(dlrs_attach(tensor, tells, (void *)(uintptr_t)before, DLRS_BEFORE_FREE, ERR));
  if (after) WORKS(dlrs_attach(tensor, tells, (void *)(uintptr_t)after, DLRS_AFTER_FREE, ERR));
}

static DLManagedTensorVersioned *going;

/* A callback may change the list that it is in. */
static void changes(void *name) {
  tells(name);
  attach(going, "n", "N");
  REJECTS(BAD_ARG, 2, ANY, -1, dlrs_detach(going, changes, name, ERR));
  WORKS(dlrs_detach(going, tells, (void *)(uintptr_t)"d", ERR));
  WORKS(dlrs_detach(going, tells, (void *)(uintptr_t)"D", ERR));
}

/* The tensor is freed directly, or as the base of a view, with callbacks or without. */
static void from_inside(void) {
  float values[4] = {0, 0, 0, 0};
  int64_t shape[1] = {4};
  DLTensor memory = t_describe(values, F32, 1, shape, NULL);
  int which;
  for (which = 0; which < 3; ++which) {
    DLManagedTensorVersioned *view = NULL;
    const char *want = which == 2 ? "vbcnamNA" : "bcnamNA";
    WORKS(dlrs_tensor_wrap(&memory, 0, tells, (void *)(uintptr_t)"m", &going, ERR));
    attach(going, "a", "A");
    attach(going, "d", "D");
    WORKS(dlrs_attach(going, changes, (void *)(uintptr_t)"c", DLRS_BEFORE_FREE, ERR));
    attach(going, "b", NULL);
    order[0] = 0;
    if (which) {
      WORKS(dlrs_view_read_only(going, &view, ERR));
      if (which == 2) attach(view, "v", NULL);
      dlrs_release(going);
    }
    CHECK(order[0] == 0);
    dlrs_release(view ? view : going);
    if (!CHECK(strcmp(order, want) == 0)) printf("%d: %s, not %s\n", which, order, want);
  }
}

/* Of equal callbacks that which was attached last is detached, of whichever order. */
static void twice(void) {
  static char a[] = "a";
  float values[4] = {0, 0, 0, 0};
  int64_t shape[1] = {4};
  DLTensor memory = t_describe(values, F32, 1, shape, NULL);
  int first;
  for (first = 0; first < 2; ++first) {
    WORKS(dlrs_tensor_wrap(&memory, 0, tells, (void *)(uintptr_t)"m", &going, ERR));
    WORKS(dlrs_attach(going, tells, a, first ? DLRS_AFTER_FREE : DLRS_BEFORE_FREE, ERR));
    WORKS(dlrs_attach(going, tells, a, first ? DLRS_BEFORE_FREE : DLRS_AFTER_FREE, ERR));
    WORKS(dlrs_detach(going, tells, a, ERR));
    order[0] = 0;
    dlrs_release(going);
    CHECK(strcmp(order, first ? "ma" : "am") == 0);
  }
}

/* As in a cache: the next is attached before the last one is detached, and memory is used again. */
static void in_turn(void) {
  static int ids[2] = {0, 0};
  DLManagedTensorVersioned *tensor;
  int64_t shape[1] = {4};
  long before;
  int i;
  WORKS(dlrs_tensor_new(shape, 1, F32, CPU, NULL, &tensor, ERR));
  before = inject_live();
  WORKS(dlrs_attach(tensor, t_count, &ids[1], 0, ERR));
  for (i = 0; i < 1000; ++i) {
    WORKS(dlrs_attach(tensor, t_count, &ids[i & 1], 0, ERR));
    WORKS(dlrs_detach(tensor, t_count, &ids[~i & 1], ERR));
  }
  if (inject_works()) EQUAL(inject_live() - before, 2);
  dlrs_release(tensor);
  CHECK(ids[0] == 0 && ids[1] == 1);
}

static void refusals(void) {
  t_tensor good;
  DLManagedTensorVersioned *tensor;
  int64_t shape[1] = {4};
  int ran = 0;
  t_make(&good);
  WORKS(dlrs_tensor_new(shape, 1, F32, CPU, NULL, &tensor, ERR));
  WORKS(dlrs_attach(tensor, t_count, &ran, DLRS_AFTER_FREE, ERR));
  t_watch(tensor, sizeof *tensor);
  REJECTS(NULL_ARG, 1, ANY, -1, dlrs_attach(NULL, t_count, NULL, 0, ERR));
  REJECTS(NULL_ARG, 2, ANY, -1, dlrs_attach(tensor, NULL, NULL, 0, ERR));
  REJECTS(BAD_ARG, 4, ANY, -1, dlrs_attach(tensor, t_count, NULL, 2, ERR));
  REJECTS(BAD_ARG, 4, ANY, -1, dlrs_attach(tensor, t_count, NULL, -1, ERR));
  REJECTS(FOREIGN, 1, ANY, -1, dlrs_attach(&good.managed, t_count, NULL, 0, ERR));
  REJECTS(NULL_ARG, 1, ANY, -1, dlrs_detach(NULL, t_count, NULL, ERR));
  REJECTS(NULL_ARG, 2, ANY, -1, dlrs_detach(tensor, NULL, NULL, ERR));
  REJECTS(BAD_ARG, 2, ANY, -1, dlrs_detach(tensor, t_count, NULL, ERR));
  REJECTS(FOREIGN, 1, ANY, -1, dlrs_detach(&good.managed, t_count, NULL, ERR));
  t_unwatch();
  dlrs_release(tensor);
  EQUAL(ran, 1);
}

int main(void) {
  refusals();
  from_inside();
  twice();
  in_turn();
  return t_close();
}
