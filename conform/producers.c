/* Rules of producers: what a library exports.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "kit.h"
#include "rules.h"

static int32_t flags_are(kit *k, const thing *m) {
  return kit_fail(k, "flags is 0x%llx", (unsigned long long)m->e.flags);
}

static int32_t copy_of(kit *k, thing *m, uint64_t flags) {
  TRY(kit_make(k, kit_hand(), flags, &m->x));
  return kit_copy(k, m->x, &m->e);
}

JUDGE(P10, kit_made_versioned(k, m)) {
  DLPackVersion version = m->e.versioned->version;
  return version.major == 1 ? 0 : kit_fail(k, "%u.%u", version.major, version.minor);
}

JUDGE(P11, kit_made_versioned(k, m)) {
  if (m->e.versioned->version.major == 1 && m->e.versioned->version.minor < 2)
    return kit_note(k, "an older version");
  return m->e.tensor->strides == NULL ? kit_fail(k, "they are NULL") : 0;
}

JUDGE(P12, kit_made_versioned(k, m)) {
  const uint64_t known = KIT_READ_ONLY | KIT_IS_COPIED | KIT_PADDED;
  return (m->e.flags & ~known) == 0 ? 0 : flags_are(k, m);
}

JUDGE(P13, kit_made_versioned(k, m)) {
  TRY(kit_newest(k, m->x, &m->by));
  if (kit_first(m->e.tensor) != kit_first(m->by.tensor))
    return kit_note(k, "each export has memory of its own");
  return (m->e.flags & KIT_IS_COPIED) == 0 ? 0 : kit_fail(k, "shared, and IS_COPIED");
}

JUDGE(P15, copy_of(k, m, 0)) { return (m->e.flags & KIT_IS_COPIED) != 0 ? 0 : flags_are(k, m); }

JUDGE(P16, kit_made(k, m, kit_hand(), 0)) {
  TRY(kit_copy(k, m->x, &m->by));
  TRY(kit_same(k, m->by.tensor, 2, KIT_MATRIX, KIT_TWELVE));
  if (kit_first(m->by.tensor) != kit_first(m->e.tensor)) return 0;
  return kit_fail(k, "the same address");
}

JUDGE(P19, kit_made(k, m, kit_hand(), KIT_READ_ONLY)) {
  if (m->e.versioned == NULL) return kit_skip(k, "a legacy tensor, which cannot say it");
  if ((m->e.flags & KIT_IS_COPIED) != 0) return kit_note(k, "a copy");
  return (m->e.flags & KIT_READ_ONLY) != 0 ? 0 : flags_are(k, m);
}

JUDGE(P20, kit_make(k, kit_hand(), KIT_READ_ONLY, &m->x)) {
  DLManagedTensor *out = NULL;
  if (k->subject.produce_legacy == NULL) return kit_skip(k, "needs produce_legacy");
  if (k->subject.produce_legacy(k->subject.context, m->x, &out) == 0)
    return kit_fail(k, "exported as if it were writable");
  return 0;
}

RULE(P32) {
  const int64_t shape[1] = {1 << 18};
  double *zeros = (double *)calloc(1 << 18, sizeof(double));
  hand *h = NULL;
  int64_t before = 0;
  if (zeros != NULL) h = kit_hand_of(KIT_FLOAT32, 1, shape, zeros, 1 << 18);
  free(zeros);
  if (h == NULL || kit_resident() < 0) return kit_skip(k, "resident memory cannot be read");
  for (int i = 0; i < 205; i++) {
    thing m;
    memset(&m, 0, sizeof m);
    if (i == 5) before = kit_resident();
    TRY(kit_made(k, &m, h, 0));
    TRY(kit_done(k, &m));
  }
  before = (kit_resident() - before) / 1000000;
  return before < 50 ? 0 : kit_fail(k, "%d MB more", (int)before);
}

/* Frees x, and makes new tensors, which may reuse its memory: what its export holds stays. */
static int32_t outlives(kit *k, thing *m, int32_t ndim, const int64_t *shape,
                        const double *elements) {
  double sevens[12];
  void *made[100];
  for (int i = 0; i < 12; i++) sevens[i] = 7;
  if (kit_same(k, m->e.tensor, ndim, shape, elements) != 0) /* P41 judges it */
    return kit_skip(k, "the values are wrong from the start");
  kit_drop(k, m->x);
  m->x = NULL;
  for (int i = 0; i < 100; i++)
    TRY(kit_make(k, kit_hand_of(KIT_FLOAT32, 2, KIT_MATRIX, sevens, 12), 0, &made[i]));
  TRY(kit_same(k, m->e.tensor, ndim, shape, elements));
  for (int i = 0; i < 100; i++) kit_drop(k, made[i]);
  return 0;
}

JUDGE(P34, kit_made(k, m, kit_hand(), 0)) {
  return outlives(k, m, 2, KIT_MATRIX, KIT_TWELVE);
}

JUDGE(P35, kit_made(k, m, kit_hand(), 0)) {
  exported one = m->e;
  TRY(kit_newest(k, m->x, &m->e));
  kit_free(&one);
  return outlives(k, m, 2, KIT_MATRIX, KIT_TWELVE);
}

static int32_t free_it(kit *k, void *argument) {
  (void)k;
  kit_free((exported *)argument);
  return 0;
}

JUDGE(P36, kit_made(k, m, kit_hand(), 0)) {
  kit_drop(k, m->x);
  m->x = NULL;
  return kit_threads(k, 1, free_it, &m->e);
}

static exported late;

static void free_late(void) { kit_free(&late); }

JUDGE(P38, kit_made(k, m, kit_hand(), 0)) {
  late = m->e;
  memset(&m->e, 0, sizeof m->e);
  return atexit(free_late) == 0 ? 0 : kit_skip(k, "no room for atexit");
}

JUDGE(P41, kit_made(k, m, kit_hand(), 0)) {
  DLDataType found = m->e.tensor->dtype;
  if (found.code != kDLFloat || found.bits != 32 || found.lanes != 1)
    return kit_fail(k, "dtype is (%d, %d, %d)", found.code, found.bits, found.lanes);
  return kit_same(k, m->e.tensor, 2, KIT_MATRIX, KIT_TWELVE);
}

JUDGE(P42, kit_made_versioned(k, m)) {
  const DLTensor *one = m->e.tensor, *other;
  TRY(kit_legacy(k, m->x, &m->by));
  other = m->by.tensor;
  TRY(kit_same(k, other, one->ndim, one->shape, KIT_TWELVE));
  if (memcmp(&one->dtype, &other->dtype, sizeof(DLDataType)) != 0 ||
      memcmp(&one->device, &other->device, sizeof(DLDevice)) != 0)
    return kit_fail(k, "dtype or device differ");
  for (int32_t i = 0; i < one->ndim; i++)
    if (kit_stride(one, i) != kit_stride(other, i))
      return kit_fail(k, "stride %d differs", (int)i);
  return 0;
}

static const int64_t NONE[2] = {0, 3};

JUDGE(P43, kit_made(k, m, kit_hand_of(KIT_FLOAT32, 2, NONE, NULL, 0), 0)) {
  TRY(kit_same(k, m->e.tensor, 2, NONE, NULL));
  return m->e.tensor->data == NULL ? 0 : kit_fail(k, "it is not");
}

JUDGE(P44, kit_made(k, m, kit_hand_of(KIT_FLOAT32, 0, NULL, KIT_TWELVE + 5, 1), 0)) {
  return kit_same(k, m->e.tensor, 0, NULL, KIT_TWELVE + 5);
}

/* ---- views ----------------------------------------------------------------------------------*/

static const struct {
  int32_t ndim;
  int64_t shape[3];
  double elements[24];
} VIEWS[DLRS_CONFORM_VIEWS] = {
    {2, {4, 3}, {0, 4, 8, 1, 5, 9, 2, 6, 10, 3, 7, 11}},
    {2, {3, 2}, {0, 2, 4, 6, 8, 10}},
    {2, {3, 4}, {8, 9, 10, 11, 4, 5, 6, 7, 0, 1, 2, 3}},
    {2, {2, 3}, {5, 6, 7, 9, 10, 11}},
    {2, {2, 4}, {4, 5, 6, 7, 8, 9, 10, 11}},
    {3, {2, 3, 4}, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}}};

/* A view of a tensor that is gone, and its export. */
static int32_t viewed(kit *k, thing *m, int32_t kind) {
  void *x;
  TRY(kit_make(k, kit_hand(), 0, &x));
  TRY(kit_view(k, x, kind, &m->x));
  if (kit_newest(k, m->x, &m->e) != 0)
    return m->e.tensor == NULL ? kit_note(k, "refused") : k->verdict->outcome;
  kit_drop(k, x);
  return 0;
}

static int32_t seen(kit *k, const thing *m, int32_t kind) {
  return kit_same(k, m->e.tensor, VIEWS[kind].ndim, VIEWS[kind].shape, VIEWS[kind].elements);
}

#define VIEW(id, kind) \
  JUDGE(id, viewed(k, m, DLRS_CONFORM_##kind)) { return seen(k, m, DLRS_CONFORM_##kind); }

VIEW(P45, TRANSPOSED)
VIEW(P46, COLUMNS)
VIEW(P47, REVERSED)
VIEW(P48, INNER)
VIEW(P49, BROADCAST)

JUDGE(P62, viewed(k, m, DLRS_CONFORM_ROWS)) {
  return outlives(k, m, 2, VIEWS[DLRS_CONFORM_ROWS].shape, VIEWS[DLRS_CONFORM_ROWS].elements);
}

/* ---- dtypes, and the rest -------------------------------------------------------------------*/

/* Exports three ones of a dtype; a note if the library does not support it. */
static int32_t three(kit *k, DLDataType dtype) {
  const int64_t shape[1] = {3};
  const double ones[3] = {1, 1, 1};
  hand *h = kit_hand_of(dtype, 1, shape, ones, 3);
  thing m;
  DLDataType found;
  memset(&m, 0, sizeof m);
  TRY(kit_can_produce(k));
  if (k->subject.make(k->subject.context, &h->versioned.dl_tensor, 0, &m.x) != 0)
    return kit_note(k, "without some dtypes");
  TRY(kit_newest(k, m.x, &m.e));
  found = m.e.tensor->dtype;
  if (memcmp(&found, &dtype, sizeof dtype) != 0)
    return kit_fail(k, "(%d, %d, 1) became (%d, %d, %d)", dtype.code, dtype.bits, found.code,
                    found.bits, found.lanes);
  TRY(kit_same(k, m.e.tensor, 1, shape, ones));
  return kit_done(k, &m);
}

/* P52 judges bool. */
static int32_t number(kit *k, DLDataType dtype) {
  return dtype.code == kDLBool ? 0 : three(k, dtype);
}

RULE(P51) { return kit_of_each_dtype(k, number); }

RULE(P52) { return three(k, kit_dtype(kDLBool, 8, 1)); }

JUDGE(P54, kit_made(k, m, kit_hand(), 0)) {
  DLDevice found = m->e.tensor->device;
  if (found.device_type != kDLCPU || found.device_id == 0) return 0;
  return kit_fail(k, "it is %d", (int)found.device_id);
}

RULE(P55) {
  static const int64_t counts[4] = {3, 17, 100, 1000};
  static const double zeros[1000] = {0};
  thing m[4];
  memset(m, 0, sizeof m);
  for (int i = 0; i < 4; i++) {
    TRY(kit_made(k, &m[i], kit_hand_of(KIT_FLOAT32, 1, &counts[i], zeros, counts[i]), 0));
    if ((uintptr_t)kit_first(m[i].e.tensor) % 256 != 0) return kit_fail(k, "it is not");
  }
  for (int i = 0; i < 4; i++) TRY(kit_done(k, &m[i]));
  return 0;
}

JUDGE(P56, kit_made(k, m, kit_hand(), 0)) {
  if (k->subject.reshape == NULL) return kit_skip(k, "needs reshape");
  if (k->subject.reshape(k->subject.context, m->x) != 0)
    return kit_skip(k, "shapes do not change in place");
  return kit_same(k, m->e.tensor, 2, KIT_MATRIX, KIT_TWELVE);
}

static int32_t export_often(kit *k, void *x) {
  for (int i = 0; i < 500; i++) {
    exported e;
    TRY(kit_newest(k, x, &e));
    TRY(kit_same(k, e.tensor, 2, KIT_MATRIX, KIT_TWELVE));
    kit_free(&e);
  }
  return 0;
}

JUDGE(P57, kit_make(k, kit_hand(), 0, &m->x)) { return kit_threads(k, 8, export_often, m->x); }

JUDGE(P58, kit_made_versioned(k, m)) {
  const float changed = 99;
  if ((m->e.flags & (KIT_READ_ONLY | KIT_IS_COPIED)) != 0)
    return kit_skip(k, "copied or read-only");
  TRY(kit_same(k, m->e.tensor, 2, KIT_MATRIX, KIT_TWELVE)); /* where it may be written */
  memcpy(kit_first(m->e.tensor), &changed, sizeof changed);
  TRY(kit_look(k, m->x, m));
  if (memcmp(kit_first(&m->t), &changed, sizeof changed) == 0) return 0;
  return kit_fail(k, "the source is as it was");
}

RULE(P63) {
  static const DLDataType dtypes[3] = {{kDLInt, 8, 1}, {kDLFloat, 64, 1}, {kDLComplex, 128, 1}};
  const int64_t shape[2] = {2, 3};
  for (int i = 0; i < 3; i++) {
    hand *h = kit_hand_of(dtypes[i], 2, shape, KIT_TWELVE, 6);
    thing m;
    memset(&m, 0, sizeof m);
    TRY(kit_can_produce(k));
    if (k->subject.make(k->subject.context, &h->versioned.dl_tensor, 0, &m.x) != 0) continue;
    TRY(kit_newest(k, m.x, &m.e));
    if (m.e.tensor->ndim != 2 || kit_stride(m.e.tensor, 0) != 3 || kit_stride(m.e.tensor, 1) != 1)
      return kit_fail(k, "not 3, 1 in a tensor of 2 x 3");
    TRY(kit_done(k, &m));
  }
  return 0;
}

static int32_t take_turns(kit *k, void *argument) {
  exported *exports = (exported *)argument;
  for (int i = 0; i < 1600; i++) {
    exported mine;
    kit_lock();
    mine = exports[i];
    memset(&exports[i], 0, sizeof exports[i]);
    kit_unlock();
    kit_free(&mine);
  }
  (void)k;
  return 0;
}

JUDGE(P64, kit_made(k, m, kit_hand(), 0)) {
  static exported exports[1600];
  for (int i = 0; i < 1600; i++) TRY(kit_newest(k, m->x, &exports[i]));
  TRY(kit_threads(k, 8, take_turns, exports));
  TRY(kit_look(k, m->x, m)); /* x itself is still there */
  return kit_same(k, &m->t, 2, KIT_MATRIX, KIT_TWELVE);
}
