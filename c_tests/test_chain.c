/* Callbacks on a tensor. Their order is F12 of the catalogue, many threads are in threads.c. */
#include "harness.h"
#include "random.h"

static char order[16];

static void tells(void *name) { strncat(order, (const char *)name, 1); }

/* Callbacks that append their names; NULL: none. */
static void attach(DLManagedTensorVersioned *tensor, const char *before, const char *after) {
  if (before) WORKS(dlrs_attach(tensor, tells, (void *)(uintptr_t)before, DLRS_BEFORE_FREE, ERR));
  if (after) WORKS(dlrs_attach(tensor, tells, (void *)(uintptr_t)after, DLRS_AFTER_FREE, ERR));
}

/* A view of a view of memory, each with both callbacks, one or none. When the last reference is
 * released, those from before the release run from the outermost to the memory, those from after it
 * back again. */
static void nested(void) {
  static const char *const names[3][2] = {{"a", "A"}, {"b", "B"}, {"c", "C"}};
  float values[4] = {0, 0, 0, 0};
  int64_t shape[1] = {4};
  DLTensor memory = t_describe(values, F32, 1, shape, NULL);
  int which, i;
  for (which = 0; which < 64; ++which) {
    DLManagedTensorVersioned *levels[3];
    char want[16] = "";
    WORKS(dlrs_tensor_wrap(&memory, 0, tells, (void *)(uintptr_t)"m", &levels[2], ERR));
    WORKS(dlrs_view_read_only(levels[2], &levels[1], ERR));
    WORKS(dlrs_view_read_only(levels[1], &levels[0], ERR));
    for (i = 0; i < 3; ++i) {
      const char *before = which >> i & 1 ? names[i][0] : NULL;
      const char *after = which >> i & 8 ? names[i][1] : NULL;
      attach(levels[i], before, after);
      if (before) strcat(want, before);
    }
    strcat(want, "m");
    for (i = 3; i-- > 0;)
      if (which >> i & 8) strcat(want, names[i][1]);
    order[0] = 0;
    dlrs_release(levels[2]);
    dlrs_release(levels[1]);
    CHECK(order[0] == 0);
    dlrs_release(levels[0]);
    if (!CHECK(strcmp(order, want) == 0)) printf("%d: %s, not %s\n", which, order, want);
  }
}

static DLManagedTensorVersioned *going;

/* A callback may not share the tensor that is being freed: it has no references. */
static void shares(void *name) {
  DLManagedTensorVersioned *out;
  tells(name);
  EQUAL(dlrs_ref_count(going), 0);
  t_watch(going, sizeof *going);
  t_result(&out);
  REJECTS(REFCOUNT, 1, ANY, -1, dlrs_retain(going, &out, ERR));
  REJECTS(REFCOUNT, 1, ANY, -1, dlrs_view_flip(going, 0, &out, ERR));
  REJECTS(REFCOUNT, 1, ANY, -1, dlrs_contiguous(going, 'C', NULL, &out, ERR));
  t_unwatch();
  EQUAL(dlrs_ref_count(going), 0);
  WORKS(dlrs_clone(going, CPU, NULL, &out, ERR));
  dlrs_release(out);
}

/* But it may change its own list. */
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
    const char *want = which == 2 ? "vsbcnamNA" : "sbcnamNA";
    WORKS(dlrs_tensor_wrap(&memory, 0, tells, (void *)(uintptr_t)"m", &going, ERR));
    attach(going, "a", "A");
    attach(going, "d", "D");
    WORKS(dlrs_attach(going, changes, (void *)(uintptr_t)"c", DLRS_BEFORE_FREE, ERR));
    attach(going, "b", NULL);
    WORKS(dlrs_attach(going, shares, (void *)(uintptr_t)"s", DLRS_BEFORE_FREE, ERR));
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

/* ---- Against a model: attached and detached at random, in any order --------------------------*/

enum { IDS = 6, MOST = 30 };
typedef struct link {
  int id, after;
} link_t;

static int got[MOST], got_count;
static void notes(void *id) {
  if (got_count < MOST) got[got_count++] = *(int *)id;
}

/* Of one order only where `orders` is 1: links are then numbered in another way. */
static void model(int steps, int orders) {
  static int ids[IDS] = {0, 1, 2, 3, 4, 5};
  link_t links[MOST];
  int n = 0, most = 0, step, i, order;
  long before;
  DLManagedTensorVersioned *tensor;
  int64_t shape[1] = {4};
  WORKS(dlrs_tensor_new(shape, 1, F32, CPU, NULL, &tensor, ERR));
  before = inject_live();
  for (step = 0; step < steps; ++step) {
    const int id = (int)below(IDS), after = (int)below(orders);
    if (n < MOST && below(2) != 0) {
      WORKS(dlrs_attach(tensor, notes, &ids[id], after, ERR));
      links[n].id = id;
      links[n++].after = after;
      most = n > most ? n : most;
    } else {
      for (i = n - 1; i >= 0 && links[i].id != id; --i) continue;
      if (i < 0) {
        REJECTS(BAD_ARG, 2, ANY, -1, dlrs_detach(tensor, notes, &ids[id], ERR));
      } else {
        WORKS(dlrs_detach(tensor, notes, &ids[id], ERR));
        memmove(&links[i], &links[i + 1], (size_t)(n - 1 - i) * sizeof *links);
        --n;
      }
    }
    /* Memory only for the largest number of callbacks at a time, for each order. */
    if (inject_works()) CHECK(inject_live() - before <= 2 * most);
  }
  got_count = 0;
  dlrs_release(tensor);
  EQUAL(got_count, n);
  for (order = 0, step = 0; order < 2; ++order) {
    for (i = n - 1; i >= 0; --i) {
      if (links[i].after == order) EQUAL(got[step++], links[i].id);
    }
  }
}

/* As in a cache: the next is attached before the last one is detached. */
static void in_turn(void) {
  static int ids[2] = {0, 1};
  DLManagedTensorVersioned *tensor;
  int64_t shape[1] = {4};
  long before;
  int i;
  WORKS(dlrs_tensor_new(shape, 1, F32, CPU, NULL, &tensor, ERR));
  before = inject_live();
  WORKS(dlrs_attach(tensor, notes, &ids[1], 0, ERR));
  for (i = 0; i < 1000; ++i) {
    WORKS(dlrs_attach(tensor, notes, &ids[i & 1], 0, ERR));
    WORKS(dlrs_detach(tensor, notes, &ids[~i & 1], ERR));
  }
  if (inject_works()) EQUAL(inject_live() - before, 2);
  got_count = 0;
  dlrs_release(tensor);
  EQUAL(got_count, 1);
  EQUAL(got[0], 1);
}

int main(void) {
  t_tensor good;
  DLManagedTensorVersioned *tensor, *more, *boxed, *in;
  DLManagedTensor *legacy;
  int64_t shape[1] = {4};
  int first = 0, second = 0;
  long deleted;
  t_make(&good);
  WORKS(dlrs_tensor_new(shape, 1, F32, CPU, NULL, &tensor, ERR));
  WORKS(dlrs_attach(tensor, t_count, &first, DLRS_BEFORE_FREE, ERR));
  WORKS(dlrs_attach(tensor, t_count, &first, DLRS_AFTER_FREE, ERR));
  WORKS(dlrs_attach(tensor, t_count, &second, DLRS_BEFORE_FREE, ERR));
  t_watch(tensor, sizeof *tensor);
  REJECTS(NULL_ARG, 1, ANY, -1, dlrs_attach(NULL, t_count, NULL, 0, ERR));
  REJECTS(NULL_ARG, 2, ANY, -1, dlrs_attach(tensor, NULL, NULL, 0, ERR));
  REJECTS(BAD_ARG, 4, ANY, -1, dlrs_attach(tensor, t_count, NULL, 2, ERR));
  REJECTS(BAD_ARG, 4, ANY, -1, dlrs_attach(tensor, t_count, NULL, -1, ERR));
  REJECTS(FOREIGN, 1, ANY, -1, dlrs_attach(&good.managed, t_count, NULL, 0, ERR));
  REJECTS(MISALIGNED_STRUCT, 1, ANY, -1,
          dlrs_attach((DLManagedTensorVersioned *)((char *)t_guard() + 2), t_count, NULL, 0, ERR));
  REJECTS(NULL_ARG, 1, ANY, -1, dlrs_detach(NULL, t_count, NULL, ERR));
  REJECTS(NULL_ARG, 2, ANY, -1, dlrs_detach(tensor, NULL, NULL, ERR));
  REJECTS(BAD_ARG, 2, ANY, -1, dlrs_detach(tensor, t_count, NULL, ERR));
  REJECTS(FOREIGN, 1, ANY, -1, dlrs_detach(&good.managed, t_count, NULL, ERR));
  t_unwatch();
  WORKS(dlrs_detach(tensor, t_count, &second, ERR));
  REJECTS(BAD_ARG, 2, ANY, -1, dlrs_detach(tensor, t_count, &second, ERR));
  /* Both of the first are found, one after the other; attached again, it runs again. */
  WORKS(dlrs_detach(tensor, t_count, &first, ERR));
  WORKS(dlrs_detach(tensor, t_count, &first, ERR));
  REJECTS(BAD_ARG, 2, ANY, -1, dlrs_detach(tensor, t_count, &first, ERR));
  WORKS(dlrs_attach(tensor, t_count, &first, DLRS_AFTER_FREE, ERR));
  /* Callbacks wait for the last reference, of whichever kind. */
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
  /* So does a legacy one, whose deleter is called as often: once. */
  deleted = t_deleted;
  legacy = &good.legacy;
  WORKS(dlrs_from_legacy_take(&legacy, 0, &boxed, ERR));
  WORKS(dlrs_attach(boxed, t_count, &second, DLRS_AFTER_FREE, ERR));
  EQUAL(t_deleted, deleted);
  dlrs_release(boxed);
  EQUAL(t_deleted, deleted + 2); /* with the callback, which counts there too */
  EQUAL(second, 2);
  nested();
  from_inside();
  for (deleted = 0; deleted < 80; ++deleted) model((int)deleted / 2 * 5, 1 + (int)deleted % 2);
  model(2000, 1);
  model(2000, 2);
  in_turn();
  return t_close();
}
