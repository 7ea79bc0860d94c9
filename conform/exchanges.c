/* Rules about tensors that are exported again, and about the C exchange API.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "kit.h"
#include "rules.h"

static int shares(const thing *m) {
  return kit_first(m->e.tensor) == m->h->start + m->h->versioned.dl_tensor.byte_offset;
}

static hand *flagged(hand *h, uint64_t flags) {
  h->versioned.flags = flags;
  return h;
}

/* Whether a flag of what was taken is on the re-export that shares its memory. */
static int32_t keeps(kit *k, const thing *m, uint64_t flag) {
  if (!shares(m)) return kit_skip(k, "it was copied");
  if (m->e.versioned == NULL) return kit_skip(k, "a legacy tensor, which cannot say it");
  if ((m->e.flags & flag) != 0) return 0;
  return kit_fail(k, "flags is 0x%llx", (unsigned long long)m->e.flags);
}

JUDGE(R01, kit_again(k, m, flagged(kit_hand(), KIT_READ_ONLY))) {
  return keeps(k, m, KIT_READ_ONLY);
}

JUDGE(R02, kit_again(k, m, flagged(kit_hand(), KIT_IS_COPIED))) {
  if (!shares(m)) return kit_skip(k, "it was copied");
  if ((m->e.flags & KIT_IS_COPIED) == 0) return 0;
  return kit_fail(k, "two tensors share memory that one calls its own");
}

/* Frees all but an export, which keeps the memory. */
static int32_t outlives(kit *k, thing *m, int shared) {
  kit_drop(k, m->x);
  m->x = NULL;
  if (shared && kit_deleted(m->h) != 0) return kit_fail(k, "freed under the re-export");
  return kit_same(k, m->e.tensor, 2, KIT_MATRIX, KIT_TWELVE);
}

JUDGE(R03, kit_again(k, m, kit_hand())) { return outlives(k, m, shares(m)); }

static hand *transposed(void) {
  hand *h = kit_hand();
  kit_set(h, 4, 3, 1, 4);
  return h;
}

JUDGE(R04, kit_again(k, m, transposed())) {
  const int64_t shape[2] = {4, 3};
  TRY(kit_same(k, m->e.tensor, 2, shape, KIT_TRANSPOSED));
  if (shares(m) && (kit_stride(m->e.tensor, 0) != 1 || kit_stride(m->e.tensor, 1) != 4))
    return kit_fail(k, "the strides are others");
  return 0;
}

JUDGE(R06, kit_taken(k, m->h = kit_hand(), &m->x)) {
  if (k->subject.produce == NULL || k->subject.consume == NULL)
    return kit_skip(k, "needs produce and consume");
  for (int i = 0; i < 20; i++) {
    void *following = NULL;
    TRY(kit_newest(k, m->x, &m->e));
    if (k->subject.consume(k->subject.context, m->e.versioned, &following) != 0)
      return kit_skip(k, "does not take its own");
    kit_drop(k, m->x);
    m->x = following;
    memset(&m->e, 0, sizeof m->e);
  }
  TRY(kit_look(k, m->x, m));
  if (kit_first(&m->t) == m->h->start && kit_deleted(m->h) != 0)
    return kit_fail(k, "freed too early");
  return kit_same(k, &m->t, 2, KIT_MATRIX, KIT_TWELVE);
}

static hand *offset(void) {
  hand *h = kit_hand();
  kit_shift(h, 64);
  h->versioned.dl_tensor.byte_offset = 64;
  return h;
}

JUDGE(R08, kit_again(k, m, offset())) {
  return kit_same(k, m->e.tensor, 2, KIT_MATRIX, KIT_TWELVE);
}

JUDGE(R09, kit_again(k, m, kit_hand())) {
  int shared = shares(m);
  exported one = m->e;
  TRY(kit_newest(k, m->x, &m->e));
  kit_free(&one);
  return outlives(k, m, shared && shares(m));
}

JUDGE(R11, kit_take(k, m->h = kit_hand(), &m->x)) {
  if (m->h->refused) return kit_skip(k, "refused");
  TRY(kit_copy(k, m->x, &m->e));
  return shares(m) ? kit_fail(k, "the same address") : 0;
}

static hand *padded(void) {
  const int64_t shape[1] = {8};
  return flagged(kit_hand_of(kit_dtype(kDLFloat4_e2m1fn, 4, 1), 1, shape, KIT_TWELVE, 8),
                 KIT_PADDED);
}

JUDGE(R13, kit_again(k, m, padded())) { return keeps(k, m, KIT_PADDED); }

/* ---- the C exchange API ---------------------------------------------------------------------*/

#define API (k->subject.exchange_api)

static const char *missing(const DLPackExchangeAPI *api) {
  if (api->managed_tensor_allocator == NULL) return "NULL: managed_tensor_allocator";
  if (api->managed_tensor_from_py_object_no_sync == NULL)
    return "NULL: managed_tensor_from_py_object_no_sync";
  if (api->managed_tensor_to_py_object_no_sync == NULL)
    return "NULL: managed_tensor_to_py_object_no_sync";
  return api->current_work_stream == NULL ? "NULL: current_work_stream" : NULL;
}

static int32_t table(kit *k) { return API == NULL ? kit_skip(k, "no C exchange API") : 0; }

/* A table whose functions can be called. */
static int32_t callable(kit *k) {
  TRY(table(k));
  if (API->header.version.major != 1) return kit_skip(k, "X01 judges it");
  return missing(API) == NULL ? 0 : kit_skip(k, "X02 judges it");
}

RULE(X01) {
  const DLPackExchangeAPIHeader *older;
  int steps = 0;
  TRY(table(k));
  if (API->header.version.major != 1)
    return kit_fail(k, "major version %u", API->header.version.major);
  for (older = API->header.prev_api; older != NULL && steps < 10; steps++) older = older->prev_api;
  return older == NULL ? 0 : kit_fail(k, "prev_api does not end");
}

RULE(X02) {
  TRY(table(k));
  if (API->header.version.major != 1) return kit_skip(k, "X01 judges it");
  return missing(API) == NULL ? 0 : kit_fail(k, "%s", missing(API));
}

JUDGE(X05, callable(k)) {
  void *made = NULL;
  int status;
  if (k->subject.object_drop == NULL) return kit_skip(k, "needs object_drop");
  m->h = kit_hand();
  status = API->managed_tensor_to_py_object_no_sync(&m->h->versioned, &made);
  if (status != 0 || made == NULL) return kit_fail(k, "status %d", status);
  if (API->dltensor_from_py_object_no_sync != NULL) {
    if (API->dltensor_from_py_object_no_sync(made, &m->t) != 0)
      return kit_fail(k, "its object is not described");
    TRY(kit_readable(k, &m->t));
    if (kit_first(&m->t) == m->h->start && kit_deleted(m->h) != 0)
      return kit_fail(k, "freed too early");
    TRY(kit_same(k, &m->t, 2, KIT_MATRIX, KIT_TWELVE));
  }
  k->subject.object_drop(made);
  return 0;
}

JUDGE(X06, callable(k)) {
  int status;
  if (k->subject.object == NULL) return kit_skip(k, "needs object");
  if (API->dltensor_from_py_object_no_sync == NULL) return kit_skip(k, "it does not borrow");
  status = API->managed_tensor_from_py_object_no_sync(k->subject.object, &m->e.versioned);
  TRY(kit_versioned(k, "managed_tensor_from_py_object_no_sync", status, &m->e));
  status = API->dltensor_from_py_object_no_sync(k->subject.object, &m->t);
  if (status != 0) return kit_fail(k, "status %d", status);
  TRY(kit_readable(k, &m->t));
  if (kit_first(&m->t) != kit_first(m->e.tensor)) return kit_fail(k, "another address");
  if (m->t.strides == NULL) return kit_fail(k, "strides are NULL");
  return kit_same(k, &m->t, 2, KIT_MATRIX, KIT_TWELVE);
}

RULE(X07) {
  void *stream = NULL;
  int status;
  TRY(callable(k));
  status = API->current_work_stream(kDLCPU, 0, &stream);
  return status == 0 ? 0 : kit_fail(k, "status %d", status);
}

static void note(void *context, const char *kind, const char *message) {
  (void)kind, (void)message;
  *(int *)context += 1;
}

JUDGE(X11, callable(k)) {
  static const double zeros[12] = {0};
  DLTensor *prototype = &kit_hand()->versioned.dl_tensor;
  int status, errors = 0;
  prototype->data = NULL;
  prototype->strides = NULL;
  status = API->managed_tensor_allocator(prototype, &m->e.versioned, &errors, note);
  if (status != 0) return kit_fail(k, "status %d, %d errors", status, errors);
  TRY(kit_versioned(k, "managed_tensor_allocator", status, &m->e));
  if (m->e.tensor->strides == NULL || m->e.tensor->ndim != 2 || kit_stride(m->e.tensor, 0) != 4)
    return kit_fail(k, "it is not compact, or its strides are NULL");
  if (memcmp(&m->e.tensor->dtype, &prototype->dtype, sizeof(DLDataType)) != 0)
    return kit_fail(k, "another dtype");
  memset(kit_first(m->e.tensor), 0, 12 * 4);
  return kit_same(k, m->e.tensor, 2, KIT_MATRIX, zeros);
}
