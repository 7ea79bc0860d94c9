/* Rules about tensors that are exported again, and about the C exchange API.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "kit.h"
#include "rules.h"

#define READ_ONLY DLPACK_FLAG_BITMASK_READ_ONLY
#define IS_COPIED DLPACK_FLAG_BITMASK_IS_COPIED

static const int64_t MATRIX[2] = {3, 4};

/* The library's export of a tensor that it took. */
static int32_t again(kit *k, hand *h, void **tensor, exported *e) {
  if (k->subject.produce == NULL && k->subject.produce_legacy == NULL)
    return kit_skip(k, "needs produce or produce_legacy");
  TRY(kit_take(k, h, tensor));
  return h->refused ? kit_skip(k, "refused") : kit_newest(k, *tensor, e);
}

static int shares(const hand *h, const exported *e) {
  return kit_first(e->tensor) == h->start + h->versioned.dl_tensor.byte_offset;
}

static int32_t done(kit *k, hand *h, void *tensor, exported *e) {
  kit_free(e);
  if (tensor != NULL) kit_drop(k, tensor);
  return kit_freed(k, h);
}

RULE(R01) {
  hand *h = kit_hand();
  void *x;
  exported e;
  h->versioned.flags = READ_ONLY;
  TRY(again(k, h, &x, &e));
  if (!shares(h, &e)) return kit_skip(k, "it was copied");
  if (e.versioned == NULL) return kit_skip(k, "a legacy tensor, which cannot say it");
  if ((e.flags & READ_ONLY) == 0)
    return kit_fail(k, "flags is 0x%llx", (unsigned long long)e.flags);
  return done(k, h, x, &e);
}

RULE(R02) {
  hand *h = kit_hand();
  void *x;
  exported e;
  h->versioned.flags = IS_COPIED;
  TRY(again(k, h, &x, &e));
  if (!shares(h, &e)) return kit_skip(k, "it was copied");
  if ((e.flags & IS_COPIED) != 0)
    return kit_fail(k, "two tensors share memory that one calls its own");
  return done(k, h, x, &e);
}

RULE(R03) {
  hand *h = kit_hand();
  void *x;
  exported e;
  TRY(again(k, h, &x, &e));
  kit_drop(k, x);
  if (shares(h, &e) && kit_deleted(h) != 0) return kit_fail(k, "freed under the re-export");
  TRY(kit_same(k, e.tensor, 2, MATRIX, KIT_TWELVE));
  return done(k, h, NULL, &e);
}

RULE(R04) {
  static const double wanted[12] = {0, 4, 8, 1, 5, 9, 2, 6, 10, 3, 7, 11};
  const int64_t shape[2] = {4, 3};
  hand *h = kit_hand();
  void *x;
  exported e;
  h->shape[0] = 4;
  h->shape[1] = 3;
  kit_set_strides(h, 1, 4);
  TRY(again(k, h, &x, &e));
  TRY(kit_same(k, e.tensor, 2, shape, wanted));
  if (shares(h, &e) && (kit_stride(e.tensor, 0) != 1 || kit_stride(e.tensor, 1) != 4))
    return kit_fail(k, "the strides are others");
  return done(k, h, x, &e);
}

RULE(R05) {
  hand *h = kit_hand();
  void *x;
  exported e;
  TRY(again(k, h, &x, &e));
  if (e.tensor == &h->versioned.dl_tensor || e.tensor == &h->legacy.dl_tensor)
    return kit_fail(k, "it is the same struct");
  return done(k, h, x, &e);
}

RULE(R06) {
  hand *h = kit_hand();
  void *x;
  look seen;
  if (k->subject.produce == NULL || k->subject.consume == NULL)
    return kit_skip(k, "needs produce and consume");
  TRY(kit_taken(k, h, &x));
  for (int i = 0; i < 20; i++) {
    exported e;
    void *following = NULL;
    TRY(kit_newest(k, x, &e));
    if (k->subject.consume(k->subject.context, e.versioned, &following) != 0)
      return kit_skip(k, "does not take its own");
    kit_drop(k, x);
    x = following;
  }
  TRY(kit_look(k, x, &seen));
  if (kit_first(&seen.tensor) == h->start && kit_deleted(h) != 0)
    return kit_fail(k, "freed too early");
  TRY(kit_same(k, &seen.tensor, 2, MATRIX, KIT_TWELVE));
  kit_unlook(&seen);
  kit_drop(k, x);
  return kit_freed(k, h);
}

RULE(R08) {
  hand *h = kit_hand();
  void *x;
  exported e;
  kit_shift(h, 64);
  h->versioned.dl_tensor.byte_offset = 64;
  TRY(again(k, h, &x, &e));
  TRY(kit_same(k, e.tensor, 2, MATRIX, KIT_TWELVE));
  return done(k, h, x, &e);
}

RULE(R09) {
  hand *h = kit_hand();
  void *x;
  exported one, other;
  int shared;
  TRY(again(k, h, &x, &one));
  TRY(kit_newest(k, x, &other));
  shared = shares(h, &other);
  kit_free(&one);
  kit_drop(k, x);
  if (shared && kit_deleted(h) != 0) return kit_fail(k, "freed too early");
  TRY(kit_same(k, other.tensor, 2, MATRIX, KIT_TWELVE));
  return done(k, h, NULL, &other);
}

RULE(R11) {
  hand *h = kit_hand();
  void *x;
  exported e;
  if (k->subject.produce_copy == NULL) return kit_skip(k, "needs produce_copy");
  TRY(kit_take(k, h, &x));
  if (h->refused) return kit_skip(k, "refused");
  TRY(kit_copy(k, x, &e));
  if (shares(h, &e)) return kit_fail(k, "the same address");
  return done(k, h, x, &e);
}

RULE(R13) {
  const int64_t shape[1] = {8};
  hand *h = kit_hand_of(kit_dtype(kDLFloat4_e2m1fn, 4, 1), 1, shape, KIT_TWELVE, 8);
  void *x;
  exported e;
  h->versioned.flags = DLPACK_FLAG_BITMASK_IS_SUBBYTE_TYPE_PADDED;
  TRY(again(k, h, &x, &e));
  if (!shares(h, &e)) return kit_skip(k, "it was copied");
  if (e.versioned == NULL) return kit_skip(k, "a legacy tensor, which cannot say it");
  if ((e.flags & DLPACK_FLAG_BITMASK_IS_SUBBYTE_TYPE_PADDED) == 0)
    return kit_fail(k, "flags is 0x%llx", (unsigned long long)e.flags);
  return done(k, h, x, &e);
}

/* ---- the C exchange API ---------------------------------------------------------------------*/

static int32_t table(kit *k, const DLPackExchangeAPI **out) {
  *out = k->subject.exchange_api;
  return *out == NULL ? kit_skip(k, "no C exchange API") : 0;
}

static int32_t object(kit *k, const DLPackExchangeAPI **out) {
  TRY(table(k, out));
  return k->subject.object == NULL ? kit_skip(k, "needs object") : 0;
}

static int32_t from_object(kit *k, exported *e) {
  const DLPackExchangeAPI *api;
  int status;
  memset(e, 0, sizeof *e);
  TRY(object(k, &api));
  status = api->managed_tensor_from_py_object_no_sync(k->subject.object, &e->versioned);
  return kit_versioned(k, "managed_tensor_from_py_object_no_sync", status, e);
}

RULE(X01) {
  const DLPackExchangeAPI *api;
  const DLPackExchangeAPIHeader *older;
  int steps = 0;
  TRY(table(k, &api));
  if (api->header.version.major != 1)
    return kit_fail(k, "major version %u", api->header.version.major);
  for (older = api->header.prev_api; older != NULL && steps < 10; steps++) older = older->prev_api;
  return older == NULL ? 0 : kit_fail(k, "prev_api does not end");
}

RULE(X02) {
  const DLPackExchangeAPI *api;
  TRY(table(k, &api));
  if (api->managed_tensor_allocator == NULL)
    return kit_fail(k, "NULL: managed_tensor_allocator");
  if (api->managed_tensor_from_py_object_no_sync == NULL)
    return kit_fail(k, "NULL: managed_tensor_from_py_object_no_sync");
  if (api->managed_tensor_to_py_object_no_sync == NULL)
    return kit_fail(k, "NULL: managed_tensor_to_py_object_no_sync");
  if (api->current_work_stream == NULL) return kit_fail(k, "NULL: current_work_stream");
  return 0;
}

RULE(X05) {
  const DLPackExchangeAPI *api;
  hand *h = kit_hand();
  void *made = NULL;
  int status;
  TRY(table(k, &api));
  if (k->subject.object_drop == NULL) return kit_skip(k, "needs object_drop");
  status = api->managed_tensor_to_py_object_no_sync(&h->versioned, &made);
  if (status != 0 || made == NULL) return kit_fail(k, "status %d", status);
  if (api->dltensor_from_py_object_no_sync != NULL) {
    DLTensor seen;
    memset(&seen, 0, sizeof seen);
    if (api->dltensor_from_py_object_no_sync(made, &seen) != 0)
      return kit_fail(k, "its object is not described");
    if (kit_first(&seen) == h->start && kit_deleted(h) != 0) return kit_fail(k, "freed too early");
    TRY(kit_same(k, &seen, 2, MATRIX, KIT_TWELVE));
  }
  k->subject.object_drop(made);
  return kit_freed(k, h);
}

RULE(X06) {
  const DLPackExchangeAPI *api;
  DLTensor borrowed;
  exported e;
  int status;
  TRY(object(k, &api));
  if (api->dltensor_from_py_object_no_sync == NULL) return kit_skip(k, "it does not borrow");
  TRY(from_object(k, &e));
  memset(&borrowed, 0, sizeof borrowed);
  status = api->dltensor_from_py_object_no_sync(k->subject.object, &borrowed);
  if (status != 0) return kit_fail(k, "status %d", status);
  if (kit_first(&borrowed) != kit_first(e.tensor)) return kit_fail(k, "another address");
  TRY(kit_same(k, &borrowed, 2, MATRIX, KIT_TWELVE));
  kit_free(&e);
  return 0;
}

RULE(X07) {
  const DLPackExchangeAPI *api;
  void *stream = NULL;
  int status;
  TRY(table(k, &api));
  status = api->current_work_stream(kDLCPU, 0, &stream);
  return status == 0 ? 0 : kit_fail(k, "status %d", status);
}

static void note(void *context, const char *kind, const char *message) {
  (void)kind, (void)message;
  *(int *)context += 1;
}

RULE(X11) {
  const DLPackExchangeAPI *api;
  hand *prototype = kit_hand();
  DLManagedTensorVersioned *out = NULL;
  int status, errors = 0;
  TRY(table(k, &api));
  prototype->versioned.dl_tensor.data = NULL;
  prototype->versioned.dl_tensor.strides = NULL;
  status = api->managed_tensor_allocator(&prototype->versioned.dl_tensor, &out, &errors, note);
  if (status != 0 || out == NULL) return kit_fail(k, "status %d, %d errors", status, errors);
  if (kit_first(&out->dl_tensor) == NULL) return kit_fail(k, "it has no memory");
  memset(kit_first(&out->dl_tensor), 0, 12 * 4);
  {
    static const double zeros[12] = {0};
    TRY(kit_same(k, &out->dl_tensor, 2, MATRIX, zeros));
  }
  if (out->dl_tensor.strides == NULL || kit_stride(&out->dl_tensor, 0) != 4)
    return kit_fail(k, "it is not compact, or its strides are NULL");
  if (memcmp(&out->dl_tensor.dtype, &prototype->versioned.dl_tensor.dtype, sizeof(DLDataType)) != 0)
    return kit_fail(k, "another dtype");
  if (out->deleter != NULL) out->deleter(out);
  return 0;
}
