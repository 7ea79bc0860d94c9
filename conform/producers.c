/* Rules of producers: what a library exports.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "kit.h"
#include "rules.h"

#define READ_ONLY DLPACK_FLAG_BITMASK_READ_ONLY
#define IS_COPIED DLPACK_FLAG_BITMASK_IS_COPIED
#define PADDED DLPACK_FLAG_BITMASK_IS_SUBBYTE_TYPE_PADDED

static const int64_t MATRIX[2] = {3, 4};

static void done(kit *k, void *tensor, exported *e) {
  kit_free(e);
  if (tensor != NULL) kit_drop(k, tensor);
}

/* A tensor of the library and its export, which must be versioned. */
static int32_t versioned(kit *k, void **tensor, exported *e) {
  if (k->subject.produce == NULL) return kit_skip(k, "needs produce");
  return kit_made(k, tensor, e);
}

static int32_t read_only(kit *k, void **tensor) {
  return kit_make(k, kit_hand(), READ_ONLY, tensor);
}

RULE(P10) {
  void *x;
  exported e;
  DLPackVersion version;
  TRY(versioned(k, &x, &e));
  version = e.versioned->version;
  if (version.major != 1) return kit_fail(k, "%u.%u", version.major, version.minor);
  done(k, x, &e);
  return 0;
}

RULE(P11) {
  void *x;
  exported e;
  TRY(versioned(k, &x, &e));
  if (e.versioned->version.major == 1 && e.versioned->version.minor < 2)
    return kit_note(k, "an older version");
  if (e.tensor->strides == NULL) return kit_fail(k, "they are NULL");
  done(k, x, &e);
  return 0;
}

RULE(P12) {
  void *x;
  exported e;
  TRY(versioned(k, &x, &e));
  if ((e.flags & ~(uint64_t)(READ_ONLY | IS_COPIED | PADDED)) != 0)
    return kit_fail(k, "flags is 0x%llx", (unsigned long long)e.flags);
  done(k, x, &e);
  return 0;
}

RULE(P13) {
  void *x;
  exported one, other;
  TRY(versioned(k, &x, &one));
  TRY(kit_newest(k, x, &other));
  if (kit_first(one.tensor) != kit_first(other.tensor))
    return kit_note(k, "each export has memory of its own");
  if ((one.flags & IS_COPIED) != 0) return kit_fail(k, "shared, and IS_COPIED");
  kit_free(&one);
  done(k, x, &other);
  return 0;
}

RULE(P15) {
  void *x;
  exported e;
  TRY(kit_make(k, kit_hand(), 0, &x));
  TRY(kit_copy(k, x, &e));
  if ((e.flags & IS_COPIED) == 0)
    return kit_fail(k, "flags is 0x%llx", (unsigned long long)e.flags);
  done(k, x, &e);
  return 0;
}

RULE(P16) {
  void *x;
  exported e, copy;
  TRY(kit_made(k, &x, &e));
  TRY(kit_copy(k, x, &copy));
  TRY(kit_same(k, copy.tensor, 2, MATRIX, KIT_TWELVE));
  if (kit_first(copy.tensor) == kit_first(e.tensor)) return kit_fail(k, "the same address");
  kit_free(&copy);
  done(k, x, &e);
  return 0;
}

RULE(P17) {
  void *x;
  exported e;
  TRY(read_only(k, &x));
  TRY(kit_copy(k, x, &e));
  if ((e.flags & READ_ONLY) != 0) return kit_fail(k, "READ_ONLY is set");
  done(k, x, &e);
  return 0;
}

RULE(P19) {
  void *x;
  exported e;
  TRY(read_only(k, &x));
  TRY(kit_newest(k, x, &e));
  if (e.versioned == NULL) return kit_skip(k, "a legacy tensor, which cannot say it");
  if ((e.flags & IS_COPIED) != 0) return kit_note(k, "a copy");
  if ((e.flags & READ_ONLY) == 0)
    return kit_fail(k, "flags is 0x%llx", (unsigned long long)e.flags);
  done(k, x, &e);
  return 0;
}

RULE(P20) {
  void *x;
  DLManagedTensor *out = NULL;
  if (k->subject.produce_legacy == NULL) return kit_skip(k, "needs produce_legacy");
  TRY(read_only(k, &x));
  if (k->subject.produce_legacy(k->subject.context, x, &out) == 0)
    return kit_fail(k, "exported as if it were writable");
  kit_drop(k, x);
  return 0;
}

RULE(P32) {
  const int64_t shape[1] = {1 << 18};
  double *zeros = (double *)calloc(1 << 18, sizeof(double));
  hand *h = NULL;
  int64_t before = 0;
  if (zeros != NULL) h = kit_hand_of(kit_dtype(kDLFloat, 32, 1), 1, shape, zeros, 1 << 18);
  free(zeros);
  if (h == NULL || kit_resident() < 0) return kit_skip(k, "resident memory cannot be read");
  for (int i = 0; i < 205; i++) {
    void *x;
    exported e;
    if (i == 5) before = kit_resident();
    TRY(kit_make(k, h, 0, &x));
    TRY(kit_newest(k, x, &e));
    done(k, x, &e);
  }
  before = (kit_resident() - before) / 1000000;
  return before < 50 ? 0 : kit_fail(k, "%d MB more", (int)before);
}

/* Makes new tensors, which may reuse freed memory. */
static int32_t others(kit *k, void **made) {
  double sevens[12];
  for (int i = 0; i < 12; i++) sevens[i] = 7;
  for (int i = 0; i < 100; i++)
    TRY(kit_make(k, kit_hand_of(kit_dtype(kDLFloat, 32, 1), 2, MATRIX, sevens, 12), 0, &made[i]));
  return 0;
}

/* P41 judges what the values are, the next two whether they stay so. */
static int32_t right(kit *k, const exported *e) {
  return kit_same(k, e->tensor, 2, MATRIX, KIT_TWELVE) == 0
             ? 0
             : kit_skip(k, "the values are wrong from the start");
}

RULE(P34) {
  void *x, *made[100];
  exported e;
  TRY(kit_made(k, &x, &e));
  TRY(right(k, &e));
  kit_drop(k, x);
  TRY(others(k, made));
  TRY(kit_same(k, e.tensor, 2, MATRIX, KIT_TWELVE));
  for (int i = 0; i < 100; i++) kit_drop(k, made[i]);
  kit_free(&e);
  return 0;
}

RULE(P35) {
  void *x, *made[100];
  exported one, other;
  TRY(kit_made(k, &x, &one));
  TRY(kit_newest(k, x, &other));
  TRY(right(k, &other));
  kit_free(&one);
  kit_drop(k, x);
  TRY(others(k, made));
  TRY(kit_same(k, other.tensor, 2, MATRIX, KIT_TWELVE));
  for (int i = 0; i < 100; i++) kit_drop(k, made[i]);
  kit_free(&other);
  return 0;
}

static int32_t free_it(kit *k, void *argument) {
  (void)k;
  kit_free((exported *)argument);
  return 0;
}

RULE(P36) {
  void *x;
  exported e;
  TRY(kit_made(k, &x, &e));
  kit_drop(k, x);
  return kit_threads(k, 1, free_it, &e);
}

static exported late;

static void free_late(void) { kit_free(&late); }

RULE(P38) {
  void *x;
  TRY(kit_made(k, &x, &late));
  kit_drop(k, x);
  return atexit(free_late) == 0 ? 0 : kit_skip(k, "no room for atexit");
}

RULE(P41) {
  void *x;
  exported e;
  TRY(kit_made(k, &x, &e));
  if (e.tensor->dtype.code != kDLFloat || e.tensor->dtype.bits != 32 || e.tensor->dtype.lanes != 1)
    return kit_fail(k, "dtype is (%d, %d, %d)", e.tensor->dtype.code, e.tensor->dtype.bits,
                    e.tensor->dtype.lanes);
  TRY(kit_same(k, e.tensor, 2, MATRIX, KIT_TWELVE));
  done(k, x, &e);
  return 0;
}

RULE(P42) {
  void *x;
  exported one, other;
  TRY(versioned(k, &x, &one));
  TRY(kit_legacy(k, x, &other));
  TRY(kit_same(k, other.tensor, one.tensor->ndim, one.tensor->shape, KIT_TWELVE));
  if (memcmp(&one.tensor->dtype, &other.tensor->dtype, sizeof(DLDataType)) != 0 ||
      memcmp(&one.tensor->device, &other.tensor->device, sizeof(DLDevice)) != 0)
    return kit_fail(k, "dtype or device differ");
  for (int32_t i = 0; i < one.tensor->ndim; i++)
    if (kit_stride(one.tensor, i) != kit_stride(other.tensor, i))
      return kit_fail(k, "stride %d differs", (int)i);
  kit_free(&one);
  done(k, x, &other);
  return 0;
}

RULE(P43) {
  const int64_t shape[2] = {0, 3};
  void *x;
  exported e;
  TRY(kit_make(k, kit_hand_of(kit_dtype(kDLFloat, 32, 1), 2, shape, NULL, 0), 0, &x));
  TRY(kit_newest(k, x, &e));
  TRY(kit_same(k, e.tensor, 2, shape, NULL));
  if (e.tensor->data != NULL) return kit_fail(k, "it is not");
  done(k, x, &e);
  return 0;
}

RULE(P44) {
  const double five = 5;
  void *x;
  exported e;
  TRY(kit_make(k, kit_hand_of(kit_dtype(kDLFloat, 32, 1), 0, NULL, &five, 1), 0, &x));
  TRY(kit_newest(k, x, &e));
  TRY(kit_same(k, e.tensor, 0, NULL, &five));
  done(k, x, &e);
  return 0;
}

/* Exports three ones of a dtype; a note if the library does not support it. */
static int32_t three(kit *k, DLDataType dtype, exported *e) {
  const int64_t shape[1] = {3};
  const double ones[3] = {1, 1, 1};
  hand *h = kit_hand_of(dtype, 1, shape, ones, 3);
  void *x = NULL;
  TRY(kit_can_produce(k));
  if (k->subject.make(k->subject.context, &h->versioned.dl_tensor, 0, &x) != 0)
    return kit_note(k, "without some dtypes");
  TRY(kit_newest(k, x, e));
  kit_drop(k, x);
  if (memcmp(&e->tensor->dtype, &dtype, sizeof dtype) == 0)
    return kit_same(k, e->tensor, 1, shape, ones);
  return kit_fail(k, "(%d, %d, 1) became (%d, %d, %d)", dtype.code, dtype.bits,
                  e->tensor->dtype.code, e->tensor->dtype.bits, e->tensor->dtype.lanes);
}

RULE(P51) {
  int32_t answer = 0;
  for (int i = 0; i < KIT_DTYPES; i++) {
    exported e;
    int32_t judged;
    if (KIT_STANDARD[i].code == kDLBool) continue; /* P52 judges it */
    judged = three(k, KIT_STANDARD[i], &e);
    if (judged == DLRS_CONFORM_FAIL || judged == DLRS_CONFORM_SKIP) return judged;
    if (judged == 0) kit_free(&e);
    if (judged != 0) answer = judged;
  }
  return answer;
}

RULE(P52) {
  exported e;
  TRY(three(k, kit_dtype(kDLBool, 8, 1), &e));
  kit_free(&e);
  return 0;
}

RULE(P54) {
  void *x;
  exported e;
  TRY(kit_made(k, &x, &e));
  if (e.tensor->device.device_type == kDLCPU && e.tensor->device.device_id != 0)
    return kit_fail(k, "it is %d", (int)e.tensor->device.device_id);
  done(k, x, &e);
  return 0;
}

RULE(P55) {
  static const int64_t counts[4] = {3, 17, 100, 1000};
  static const double zeros[1000] = {0};
  void *x[4];
  exported e[4];
  for (int i = 0; i < 4; i++) {
    TRY(kit_make(k, kit_hand_of(kit_dtype(kDLFloat, 32, 1), 1, &counts[i], zeros, counts[i]), 0,
                 &x[i]));
    TRY(kit_newest(k, x[i], &e[i]));
    if ((uintptr_t)kit_first(e[i].tensor) % 256 != 0) return kit_fail(k, "it is not");
  }
  for (int i = 0; i < 4; i++) done(k, x[i], &e[i]);
  return 0;
}

RULE(P56) {
  void *x;
  exported e;
  if (k->subject.reshape == NULL) return kit_skip(k, "needs reshape");
  TRY(kit_made(k, &x, &e));
  if (k->subject.reshape(k->subject.context, x) != 0)
    return kit_skip(k, "shapes do not change in place");
  TRY(kit_same(k, e.tensor, 2, MATRIX, KIT_TWELVE));
  done(k, x, &e);
  return 0;
}

static int32_t export_often(kit *k, void *x) {
  for (int i = 0; i < 500; i++) {
    exported e;
    TRY(kit_newest(k, x, &e));
    TRY(kit_same(k, e.tensor, 2, MATRIX, KIT_TWELVE));
    kit_free(&e);
  }
  return 0;
}

RULE(P57) {
  void *x;
  TRY(kit_make(k, kit_hand(), 0, &x));
  TRY(kit_threads(k, 8, export_often, x));
  kit_drop(k, x);
  return 0;
}

RULE(P58) {
  const float changed = 99;
  void *x;
  exported e;
  look seen;
  TRY(versioned(k, &x, &e));
  if ((e.flags & (READ_ONLY | IS_COPIED)) != 0) return kit_skip(k, "copied or read-only");
  memcpy(kit_first(e.tensor), &changed, sizeof changed);
  TRY(kit_look(k, x, &seen));
  if (memcmp(kit_first(&seen.tensor), &changed, sizeof changed) != 0)
    return kit_fail(k, "the source is as it was");
  kit_unlook(&seen);
  done(k, x, &e);
  return 0;
}

RULE(P63) {
  static const DLDataType dtypes[3] = {{kDLInt, 8, 1}, {kDLFloat, 64, 1}, {kDLComplex, 128, 1}};
  const int64_t shape[2] = {2, 3};
  for (int i = 0; i < 3; i++) {
    hand *h = kit_hand_of(dtypes[i], 2, shape, KIT_TWELVE, 6);
    void *x = NULL;
    exported e;
    TRY(kit_can_produce(k));
    if (k->subject.make(k->subject.context, &h->versioned.dl_tensor, 0, &x) != 0) continue;
    TRY(kit_newest(k, x, &e));
    if (kit_stride(e.tensor, 0) != 3 || kit_stride(e.tensor, 1) != 1)
      return kit_fail(k, "strides are %lld, %lld", (long long)kit_stride(e.tensor, 0),
                      (long long)kit_stride(e.tensor, 1));
    done(k, x, &e);
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

RULE(P64) {
  static exported exports[1600];
  void *x;
  exported e;
  look seen;
  TRY(kit_made(k, &x, &e));
  for (int i = 0; i < 1600; i++) TRY(kit_newest(k, x, &exports[i]));
  TRY(kit_threads(k, 8, take_turns, exports));
  TRY(kit_look(k, x, &seen)); /* x itself is still there */
  TRY(kit_same(k, &seen.tensor, 2, MATRIX, KIT_TWELVE));
  kit_unlook(&seen);
  done(k, x, &e);
  return 0;
}
