/* Rules of consumers: what a library does with tensors made by hand.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "kit.h"
#include "rules.h"

#define FLOAT32 kit_dtype(kDLFloat, 32, 1)

static const int64_t MATRIX[2] = {3, 4};

static int32_t right(kit *k, hand *h, const double *elements) {
  return kit_right_or_refused(k, h, h->versioned.dl_tensor.ndim, h->shape, elements);
}

/* Takes a tensor and reads it; the rule fails if it is rejected. */
static int32_t taken(kit *k, hand *h, void **tensor, look *seen) {
  TRY(kit_taken(k, h, tensor));
  TRY(kit_look(k, *tensor, seen));
  return kit_same(k, &seen->tensor, h->versioned.dl_tensor.ndim, h->shape, KIT_TWELVE);
}

static int32_t done(kit *k, hand *h, void *tensor, look *seen) {
  kit_unlook(seen);
  kit_drop(k, tensor);
  return kit_freed(k, h);
}

RULE(C01) {
  hand *h = kit_hand();
  void *x;
  look seen;
  TRY(taken(k, h, &x, &seen));
  return done(k, h, x, &seen);
}

RULE(C02) {
  hand *h = kit_hand();
  void *x;
  look seen;
  TRY(taken(k, h, &x, &seen));
  if (kit_first(&seen.tensor) != h->start) return kit_fail(k, "it was copied");
  return done(k, h, x, &seen);
}

RULE(C04) {
  hand *h = kit_hand();
  void *x;
  look seen;
  TRY(kit_taken(k, h, &x));
  if (kit_deleted(h) > 1) return kit_fail(k, "the deleter ran %d times", kit_deleted(h));
  TRY(kit_look(k, x, &seen));
  if (kit_first(&seen.tensor) == h->start && kit_deleted(h) != 0)
    return kit_fail(k, "freed while the result shares it");
  return done(k, h, x, &seen);
}

RULE(C05) {
  hand *h = kit_hand();
  void *x;
  look seen;
  h->is_legacy = 1;
  TRY(taken(k, h, &x, &seen));
  return done(k, h, x, &seen);
}

RULE(C10) {
  hand *h = kit_hand();
  h->versioned.version.major = 2;
  h->versioned.version.minor = 0;
  return kit_refused(k, h);
}

RULE(C11) {
  hand *h = kit_hand();
  h->versioned.version.minor = 99;
  return right(k, h, KIT_TWELVE);
}

RULE(C12) {
  hand *h = kit_hand();
  h->versioned.flags = (uint64_t)1 << 40;
  return kit_refused(k, h);
}

RULE(C13) {
  hand *h = kit_hand();
  void *x;
  look seen;
  h->versioned.flags = DLPACK_FLAG_BITMASK_READ_ONLY;
  TRY(kit_take(k, h, &x));
  if (h->refused) return kit_note(k, "refused");
  TRY(kit_look(k, x, &seen));
  if ((seen.flags & DLPACK_FLAG_BITMASK_READ_ONLY) == 0 && kit_first(&seen.tensor) == h->start)
    return kit_fail(k, "writable, and it shares the memory");
  return done(k, h, x, &seen);
}

static int32_t without_deleter(kit *k, int is_legacy) {
  hand *h = kit_hand();
  void *x;
  h->is_legacy = is_legacy;
  h->versioned.deleter = NULL;
  if (!is_legacy) h->versioned.version.minor = 0;
  TRY(kit_take(k, h, &x));
  if (h->refused) return kit_note(k, "refused");
  kit_drop(k, x);
  return 0;
}

RULE(C14) { return without_deleter(k, 0); }

RULE(C15) { return without_deleter(k, 1); }

RULE(C16) {
  hand *h = kit_hand();
  h->versioned.manager_ctx = NULL;
  return right(k, h, KIT_TWELVE);
}

RULE(C17) {
  hand *h = kit_hand();
  h->is_legacy = 1;
  h->versioned.dl_tensor.strides = NULL;
  return right(k, h, KIT_TWELVE);
}

RULE(C18) {
  hand *h = kit_hand();
  h->versioned.version.minor = 0;
  h->versioned.dl_tensor.strides = NULL;
  return right(k, h, KIT_TWELVE);
}

static int32_t offset(kit *k, int bytes) {
  hand *h = kit_hand();
  kit_shift(h, bytes);
  h->versioned.dl_tensor.byte_offset = (uint64_t)bytes;
  return right(k, h, KIT_TWELVE);
}

RULE(C19) { return offset(k, 64); }

RULE(C20) { return offset(k, 4); }

RULE(C21) {
  const double five = 5;
  return right(k, kit_hand_of(FLOAT32, 0, NULL, &five, 1), &five);
}

RULE(C22) {
  const int64_t shape[2] = {0, 3};
  hand *h = kit_hand_of(FLOAT32, 2, shape, NULL, 0);
  h->versioned.dl_tensor.data = NULL;
  return right(k, h, NULL);
}

RULE(C23) {
  const int64_t shape[2] = {0, 3};
  hand *h = kit_hand_of(FLOAT32, 2, shape, NULL, 0);
  kit_set_strides(h, 0, 0);
  return right(k, h, NULL);
}

RULE(C24) {
  const int64_t shape[3] = {1, 3, 1};
  hand *h = kit_hand_of(FLOAT32, 3, shape, KIT_TWELVE, 3);
  void *x;
  look seen;
  h->strides[0] = 999;
  h->strides[2] = -7;
  TRY(taken(k, h, &x, &seen));
  return done(k, h, x, &seen);
}

RULE(C25) {
  static const double wanted[12] = {8, 9, 10, 11, 4, 5, 6, 7, 0, 1, 2, 3};
  hand *h = kit_hand();
  kit_set_strides(h, -4, 1);
  h->versioned.dl_tensor.data = h->start + 8 * 4;
  return right(k, h, wanted);
}

RULE(C26) {
  static const double wanted[12] = {0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3};
  hand *h = kit_hand();
  kit_set_strides(h, 0, 1);
  return right(k, h, wanted);
}

RULE(C27) {
  const int64_t shape[2] = {3, 2};
  static const double wanted[6] = {0, 2, 4, 6, 8, 10};
  hand *h = kit_hand();
  h->shape[1] = shape[1];
  kit_set_strides(h, 4, 2);
  return right(k, h, wanted);
}

RULE(C28) {
  static const double wanted[12] = {0, 4, 8, 1, 5, 9, 2, 6, 10, 3, 7, 11};
  hand *h = kit_hand();
  h->shape[0] = 4;
  h->shape[1] = 3;
  kit_set_strides(h, 1, 4);
  return right(k, h, wanted);
}

static int32_t shifted(kit *k, int bytes) {
  hand *h = kit_hand();
  kit_shift(h, bytes);
  h->versioned.dl_tensor.data = h->start + bytes;
  return right(k, h, KIT_TWELVE);
}

RULE(C29) { return shifted(k, 4); }

RULE(C30) { return shifted(k, 1); }

RULE(C33) {
  static const double numbers[3] = {1, 2, 3};
  const int64_t shape[1] = {3};
  int32_t answer = 0;
  for (int i = 0; i < KIT_DTYPES; i++) {
    hand *h = kit_hand_of(KIT_STANDARD[i], 1, shape, numbers, 3);
    int32_t judged = right(k, h, numbers);
    if (judged == DLRS_CONFORM_FAIL || judged == DLRS_CONFORM_SKIP) return judged;
    if (judged != 0) answer = kit_note(k, "some are refused");
  }
  return answer;
}

RULE(C34) {
  hand *h = kit_hand();
  h->versioned.dl_tensor.dtype.code = 200;
  return kit_refused(k, h);
}

RULE(C35) {
  hand *h = kit_hand();
  void *x;
  look seen;
  int64_t count;
  h->versioned.dl_tensor.ndim = 1;
  h->strides[0] = 1;
  h->versioned.dl_tensor.dtype.lanes = 4;
  TRY(kit_take(k, h, &x));
  if (h->refused) {
    TRY(kit_freed(k, h));
    return kit_note(k, "refused");
  }
  TRY(kit_look(k, x, &seen));
  count = kit_count(&seen.tensor) * seen.tensor.dtype.lanes;
  if (count != 12) return kit_fail(k, "12 numbers became %lld", (long long)count);
  return done(k, h, x, &seen);
}

RULE(C36) {
  hand *h = kit_hand();
  h->versioned.dl_tensor.dtype.lanes = 0;
  return kit_refused(k, h);
}

RULE(C37) {
  hand *h = kit_hand();
  h->versioned.dl_tensor.dtype.bits = 17;
  return kit_refused(k, h);
}

RULE(C38) {
  hand *h = kit_hand();
  h->versioned.dl_tensor.ndim = -1;
  return kit_refused(k, h);
}

RULE(C40) {
  hand *h = kit_hand();
  h->shape[0] = -3;
  return kit_refused(k, h);
}

RULE(C41) {
  hand *h = kit_hand();
  h->shape[0] = h->shape[1] = h->strides[0] = (int64_t)1 << 40;
  return kit_refused(k, h);
}

RULE(C42) {
  hand *h = kit_hand();
  h->versioned.dl_tensor.data = NULL;
  return kit_refused(k, h);
}

RULE(C43) {
  const int unknown = 99; /* not as the enum, which has no such value */
  hand *h = kit_hand();
  memcpy(&h->versioned.dl_tensor.device.device_type, &unknown, sizeof unknown);
  return kit_refused(k, h);
}

RULE(C49) {
  hand *h = kit_hand();
  void *x;
  TRY(kit_take(k, h, &x));
  if (!kit_unchanged(h)) return kit_fail(k, "they are");
  if (!h->refused) kit_drop(k, x);
  return 0;
}

static int32_t drop_it(kit *k, void *tensor) {
  kit_drop(k, tensor);
  return 0;
}

RULE(C51) {
  hand *h = kit_hand();
  void *x;
  TRY(kit_taken(k, h, &x));
  TRY(kit_threads(k, 1, drop_it, x));
  return kit_freed(k, h);
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

RULE(C57) {
  hand *h = kit_hand();
  h->versioned.dl_tensor.device.device_type = kDLCUDAHost;
  return right(k, h, KIT_TWELVE);
}

RULE(C58) {
  hand *h = kit_hand();
  h->strides[0] = (int64_t)1 << 62;
  return kit_refused(k, h);
}

RULE(C59) {
  hand *h = kit_hand();
  h->versioned.dl_tensor.shape = NULL;
  return kit_refused(k, h);
}

RULE(C60) {
  const int64_t shape[1] = {8};
  hand *h = kit_hand_of(kit_dtype(kDLFloat4_e2m1fn, 4, 1), 1, shape, KIT_TWELVE, 8);
  void *x;
  look seen;
  TRY(kit_take(k, h, &x));
  if (h->refused) {
    TRY(kit_freed(k, h));
    return kit_note(k, "refused");
  }
  TRY(kit_look(k, x, &seen));
  if (kit_count(&seen.tensor) * seen.tensor.dtype.bits * seen.tensor.dtype.lanes != 32)
    return kit_fail(k, "8 numbers of 4 bits became %lld of %d bits",
                    (long long)kit_count(&seen.tensor), seen.tensor.dtype.bits);
  return done(k, h, x, &seen);
}

RULE(C61) {
  hand *h = kit_hand();
  h->versioned.flags = DLPACK_FLAG_BITMASK_IS_SUBBYTE_TYPE_PADDED;
  return right(k, h, KIT_TWELVE);
}

static int32_t take_on_thread(kit *k, void *argument) {
  (void)argument;
  return take_often(k, 200);
}

RULE(C62) { return kit_threads(k, 8, take_on_thread, NULL); }

RULE(C64) {
  hand *h = kit_hand();
  h->versioned.flags = DLPACK_FLAG_BITMASK_IS_COPIED;
  return right(k, h, KIT_TWELVE);
}

RULE(C66) {
  const int64_t shape[1] = {((int64_t)1 << 32) + 1};
  hand *h = kit_hand_of(kit_dtype(kDLUInt, 8, 1), 1, MATRIX, KIT_TWELVE, 1);
  void *x;
  look seen;
  h->shape[0] = shape[0];
  h->strides[0] = 0;
  TRY(kit_take(k, h, &x));
  if (h->refused) {
    TRY(kit_freed(k, h));
    return kit_note(k, "refused");
  }
  TRY(kit_look(k, x, &seen));
  if (seen.tensor.ndim != 1 || seen.tensor.shape[0] != shape[0])
    return kit_fail(k, "the extent is %lld", (long long)seen.tensor.shape[0]);
  return done(k, h, x, &seen);
}
