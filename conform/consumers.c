/* Rules of consumers: what a library does with tensors made by hand.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "kit.h"
#include "rules.h"

static int32_t right(kit *k, hand *h, const double *elements) {
  return kit_right(k, h, elements, 1);
}

static int32_t right_twelve(kit *k, hand *h) { return right(k, h, KIT_TWELVE); }

HAND(C01, (void)0, kit_right(k, h, KIT_TWELVE, 0))

JUDGE(C02, kit_taken(k, m->h = kit_hand(), &m->x)) {
  TRY(kit_look(k, m->x, m));
  return kit_first(&m->t) == m->h->start ? 0 : kit_fail(k, "it was copied");
}

JUDGE(C04, kit_taken(k, m->h = kit_hand(), &m->x)) {
  if (kit_deleted(m->h) > 1) return kit_fail(k, "the deleter ran %d times", kit_deleted(m->h));
  TRY(kit_look(k, m->x, m));
  if (kit_first(&m->t) == m->h->start && kit_deleted(m->h) != 0)
    return kit_fail(k, "freed while the result shares it");
  return 0;
}

HAND(C05, h->is_legacy = 1, kit_right(k, h, KIT_TWELVE, 0))
HAND(C10, h->versioned.version.major = 2; h->versioned.version.minor = 0, kit_refused(k, h))
HAND(C11, h->versioned.version.minor = 99, right_twelve(k, h))
HAND(C12, h->versioned.flags = (uint64_t)1 << 40, kit_refused(k, h))

static int32_t without_deleter(kit *k, hand *h) {
  void *x;
  h->versioned.deleter = NULL;
  TRY(kit_take(k, h, &x));
  if (h->refused) return kit_note(k, "refused");
  kit_drop(k, x);
  return 0;
}

HAND(C14, h->versioned.version.minor = 0, without_deleter(k, h))
HAND(C15, h->is_legacy = 1, without_deleter(k, h))
HAND(C16, h->versioned.manager_ctx = NULL, right_twelve(k, h))
HAND(C17, h->is_legacy = 1; t->strides = NULL, right_twelve(k, h))
HAND(C18, h->versioned.version.minor = 0; t->strides = NULL, right_twelve(k, h))
HAND(C19, kit_shift(h, 64); t->byte_offset = 64, right_twelve(k, h))
HAND(C20, kit_shift(h, 4); t->byte_offset = 4, right_twelve(k, h))

RULE(C21) {
  const double *five = KIT_TWELVE + 5;
  return right(k, kit_hand_of(KIT_FLOAT32, 0, NULL, five, 1), five);
}

HAND(C22, h->shape[0] = 0; t->data = NULL, right(k, h, NULL))
HAND(C23, kit_set(h, 0, 3, 0, 0), right(k, h, NULL))

RULE(C24) {
  const int64_t shape[3] = {1, 3, 1};
  hand *h = kit_hand_of(KIT_FLOAT32, 3, shape, KIT_TWELVE, 3);
  h->strides[0] = 999;
  h->strides[2] = -7;
  return kit_right(k, h, KIT_TWELVE, 0);
}

static const double REVERSED[12] = {8, 9, 10, 11, 4, 5, 6, 7, 0, 1, 2, 3};
static const double REPEATED[12] = {0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3};
static const double COLUMNS[6] = {0, 2, 4, 6, 8, 10};

HAND(C25, kit_set(h, 3, 4, -4, 1); t->data = h->start + 8 * 4, right(k, h, REVERSED))
HAND(C26, kit_set(h, 3, 4, 0, 1), right(k, h, REPEATED))
HAND(C27, kit_set(h, 3, 2, 4, 2), right(k, h, COLUMNS))
HAND(C28, kit_set(h, 4, 3, 1, 4), right(k, h, KIT_TRANSPOSED))
HAND(C29, kit_shift(h, 4); t->data = h->start + 4, right_twelve(k, h))
HAND(C30, kit_shift(h, 1); t->data = h->start + 1, right_twelve(k, h))

static int32_t numbers(kit *k, DLDataType dtype) {
  const int64_t shape[1] = {3};
  double three[3] = {1, 2, 3};
  if (dtype.code == kDLInt) three[0] = -1; /* which no unsigned dtype has, and the reverse */
  if (dtype.code == kDLUInt) three[0] = (double)((uint64_t)1 << (dtype.bits - 1));
  return right(k, kit_hand_of(dtype, 1, shape, three, 3), three);
}

RULE(C33) { return kit_of_each_dtype(k, numbers); }

HAND(C34, t->dtype.code = 200, kit_refused(k, h))

/* Whether all numbers of what was taken are there: lanes, and bits of each. */
static int32_t counted(kit *k, hand *h, int64_t bits) {
  thing m;
  int64_t found;
  memset(&m, 0, sizeof m);
  TRY(kit_took(k, &m, h));
  found = kit_count(&m.t) * m.t.dtype.lanes * m.t.dtype.bits;
  if (found != bits) return kit_fail(k, "%lld bits became %lld", (long long)bits, (long long)found);
  return kit_done(k, &m);
}

HAND(C35, t->ndim = 1; h->strides[0] = 1; t->dtype.lanes = 4, counted(k, h, 12 * 32))
HAND(C36, t->dtype.lanes = 0, kit_refused(k, h))
HAND(C37, t->dtype.bits = 17, kit_refused(k, h))
HAND(C38, t->ndim = -1, kit_refused(k, h))
HAND(C40, h->shape[0] = -3, kit_refused(k, h))
HAND(C41, kit_set(h, (int64_t)1 << 40, (int64_t)1 << 40, (int64_t)1 << 40, 1), kit_refused(k, h))
HAND(C42, t->data = NULL, kit_refused(k, h))

RULE(C43) {
  const int unknown = 99; /* not as the enum, which has no such value */
  hand *h = kit_hand();
  memcpy(&h->versioned.dl_tensor.device.device_type, &unknown, sizeof unknown);
  return kit_refused(k, h);
}

JUDGE(C49, kit_take(k, m->h = kit_hand(), &m->x)) {
  return kit_unchanged(m->h) ? 0 : kit_fail(k, "they are");
}

JUDGE(C50, kit_took(k, m, kit_hand())) {
  void *rows;
  thing seen;
  memset(&seen, 0, sizeof seen);
  if (kit_first(&m->t) != m->h->start) return kit_skip(k, "it was copied");
  TRY(kit_view(k, m->x, DLRS_CONFORM_ROWS, &rows));
  TRY(kit_look(k, rows, &seen));
  if (kit_first(&seen.t) != m->h->start + 16) return kit_skip(k, "views are copies");
  kit_free(&m->by);
  kit_drop(k, m->x);
  m->x = NULL;
  if (kit_deleted(m->h) != 0) return kit_fail(k, "freed under a view");
  seen.x = rows;
  return kit_done(k, &seen);
}

static int32_t drop_it(kit *k, void *tensor) {
  kit_drop(k, tensor);
  return 0;
}

JUDGE(C51, kit_taken(k, m->h = kit_hand(), &m->x)) {
  void *x = m->x;
  m->x = NULL;
  return kit_threads(k, 1, drop_it, x);
}

static int32_t take_often(kit *k, int count) {
  for (int i = 0; i < count; i++) {
    hand *h = kit_hand();
    void *x;
    TRY(kit_taken(k, h, &x));
    kit_drop(k, x);
    TRY(kit_freed(k, h));
  }
  return 0;
}

RULE(C54) { return take_often(k, 500); }

HAND(C58, h->strides[0] = (int64_t)1 << 62, kit_refused(k, h))
HAND(C59, t->shape = NULL, kit_refused(k, h))

RULE(C60) {
  const int64_t shape[1] = {8};
  return counted(k, kit_hand_of(kit_dtype(kDLFloat4_e2m1fn, 4, 1), 1, shape, KIT_TWELVE, 8), 32);
}

HAND(C61, h->versioned.flags = KIT_PADDED, right_twelve(k, h))

static int32_t take_on_thread(kit *k, void *argument) {
  (void)argument;
  return take_often(k, 200);
}

RULE(C62) { return kit_threads(k, 8, take_on_thread, NULL); }

HAND(C64, h->versioned.flags = KIT_IS_COPIED, right_twelve(k, h))

RULE(C66) {
  hand *h = kit_hand_of(kit_dtype(kDLUInt, 8, 1), 1, KIT_MATRIX, KIT_TWELVE, 1);
  h->shape[0] = ((int64_t)1 << 32) + 1;
  h->strides[0] = 0;
  return counted(k, h, h->shape[0] * 8);
}
