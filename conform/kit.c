/* Verdicts, elements, tensors made by hand, and calls of the library with them.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "kit.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- verdicts -------------------------------------------------------------------------------*/

int32_t kit_fail(kit *k, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(k->verdict->text, sizeof k->verdict->text, format, arguments);
  va_end(arguments);
  return k->verdict->outcome = DLRS_CONFORM_FAIL;
}

int32_t kit_skip(kit *k, const char *what) {
  snprintf(k->verdict->text, sizeof k->verdict->text, "%s", what);
  return k->verdict->outcome = DLRS_CONFORM_SKIP;
}

int32_t kit_note(kit *k, const char *what) {
  snprintf(k->verdict->text, sizeof k->verdict->text, "%s", what);
  return k->verdict->outcome = DLRS_CONFORM_NOTE;
}

/* ---- elements -------------------------------------------------------------------------------*/

const double KIT_TWELVE[12] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};
const double KIT_TRANSPOSED[12] = {0, 4, 8, 1, 5, 9, 2, 6, 10, 3, 7, 11};
const int64_t KIT_MATRIX[2] = {3, 4};
#define KIT_DTYPES 14
static const DLDataType KIT_STANDARD[KIT_DTYPES] = {
    {kDLInt, 8, 1},      {kDLInt, 16, 1},      {kDLInt, 32, 1},   {kDLInt, 64, 1},
    {kDLUInt, 8, 1},     {kDLUInt, 16, 1},    {kDLUInt, 32, 1},     {kDLUInt, 64, 1},
    {kDLFloat, 16, 1},   {kDLFloat, 32, 1},
    {kDLFloat, 64, 1},   {kDLComplex, 64, 1},  {kDLComplex, 128, 1}, {kDLBool, 8, 1}};

DLDataType kit_dtype(int code, int bits, int lanes) {
  DLDataType dtype;
  dtype.code = (uint8_t)code;
  dtype.bits = (uint8_t)bits;
  dtype.lanes = (uint16_t)lanes;
  return dtype;
}

/* The bytes of an element; 0 if the dtype is not in the standard. */
static size_t encode(DLDataType dtype, double value, unsigned char *out) {
  double parts[2] = {value, 0};
  float halves[2] = {(float)value, 0};
  int64_t integer = value < 9e18 ? (int64_t)value : INT64_MIN; /* 2^63 */
  memset(out, 0, 16);
  if (dtype.lanes != 1) return 0;
  if (dtype.code == kDLInt || dtype.code == kDLUInt || dtype.code == kDLBool) {
    int8_t i8 = (int8_t)(dtype.code == kDLBool ? value != 0 : integer);
    int16_t i16 = (int16_t)integer;
    int32_t i32 = (int32_t)integer;
    const void *from = dtype.bits == 8 ? (void *)&i8 : dtype.bits == 16 ? (void *)&i16
                       : dtype.bits == 32 ? (void *)&i32 : (void *)&integer;
    double most = (double)((uint64_t)1 << (dtype.bits - 1));
    if (dtype.code == kDLUInt ? value >= 0 : value < most) /* else no element has these bytes */
      memcpy(out, from, dtype.bits / 8);
  } else if (dtype.code == kDLFloat && dtype.bits == 16) {
    uint16_t half = 0; /* of an integer below 2048 */
    int exponent = 0;
    while (integer >> (exponent + 1) != 0) exponent++;
    if (integer != 0)
      half = (uint16_t)((exponent + 15) * 1024 + (integer << (10 - exponent)) % 1024);
    memcpy(out, &half, 2);
  } else if ((dtype.code == kDLFloat && dtype.bits == 32) ||
             (dtype.code == kDLComplex && dtype.bits == 64)) {
    memcpy(out, halves, dtype.bits / 8);
  } else if ((dtype.code == kDLFloat && dtype.bits == 64) ||
             (dtype.code == kDLComplex && dtype.bits == 128)) {
    memcpy(out, parts, dtype.bits / 8);
  } else {
    return 0;
  }
  return dtype.bits / 8;
}

int32_t kit_of_each_dtype(kit *k, int32_t (*judge)(kit *k, DLDataType dtype)) {
  int32_t answer = 0;
  for (int i = 0; i < KIT_DTYPES; i++) {
    int32_t judged = judge(k, KIT_STANDARD[i]);
    if (judged == DLRS_CONFORM_FAIL || judged == DLRS_CONFORM_SKIP) return judged;
    if (judged != 0) answer = kit_note(k, "some are refused");
  }
  return answer;
}

int64_t kit_count(const DLTensor *tensor) {
  int64_t count = 1;
  for (int32_t i = 0; i < tensor->ndim; i++) count *= tensor->shape[i];
  return count;
}

int64_t kit_stride(const DLTensor *tensor, int32_t axis) {
  int64_t stride = 1;
  if (tensor->strides != NULL) return tensor->strides[axis];
  for (int32_t i = tensor->ndim - 1; i > axis; i--) stride *= tensor->shape[i];
  return stride;
}

int32_t kit_readable(kit *k, const DLTensor *tensor) {
  const int64_t most = (int64_t)1 << 40, farthest = 1 << 24;
  int64_t count = 1;
  if (tensor->ndim < 0 || tensor->ndim > KIT_NDIM)
    return kit_fail(k, "ndim is %d", (int)tensor->ndim);
  if (tensor->ndim != 0 && tensor->shape == NULL) return kit_fail(k, "shape is NULL");
  for (int32_t i = 0; i < tensor->ndim; i++) {
    int64_t extent = tensor->shape[i];
    if (extent < 0 || (count != 0 && extent > most / count))
      return kit_fail(k, "shape[%d] is %lld", (int)i, (long long)extent);
    count *= extent;
  }
  if (count != 0 && tensor->data == NULL) return kit_fail(k, "data is NULL");
  if (tensor->byte_offset > (uint64_t)farthest)
    return kit_fail(k, "byte_offset is %llu", (unsigned long long)tensor->byte_offset);
  for (int32_t i = 0; i < tensor->ndim && count != 0 && tensor->strides != NULL; i++) {
    int64_t stride = tensor->strides[i];
    if (tensor->shape[i] > 1 && (stride > farthest || stride < -farthest))
      return kit_fail(k, "strides[%d] is %lld", (int)i, (long long)stride);
  }
  return 0;
}

unsigned char *kit_first(const DLTensor *tensor) {
  return tensor->data == NULL ? NULL : (unsigned char *)tensor->data + tensor->byte_offset;
}

int32_t kit_same(kit *k, const DLTensor *tensor, int32_t ndim, const int64_t *shape,
                 const double *elements) {
  unsigned char wanted[16];
  size_t size = encode(tensor->dtype, 0, wanted);
  if (tensor->ndim != ndim) return kit_fail(k, "ndim is %d, not %d", (int)tensor->ndim, (int)ndim);
  for (int32_t i = 0; i < ndim; i++)
    if (tensor->shape[i] != shape[i])
      return kit_fail(k, "shape[%d] is %lld, not %lld", (int)i, (long long)tensor->shape[i],
                      (long long)shape[i]);
  if (size == 0)
    return kit_fail(k, "the dtype became (%d, %d, %d)", tensor->dtype.code, tensor->dtype.bits,
                    tensor->dtype.lanes);
  for (int64_t n = 0; n < kit_count(tensor); n++) {
    int64_t rest = n, place = 0;
    for (int32_t i = ndim - 1; i >= 0; i--) {
      place += rest % shape[i] * kit_stride(tensor, i);
      rest /= shape[i];
    }
    encode(tensor->dtype, elements[n], wanted);
    if (memcmp(kit_first(tensor) + place * (int64_t)size, wanted, size) != 0)
      return kit_fail(k, "element %lld is not %g", (long long)n, elements[n]);
  }
  return 0;
}

/* ---- tensors made by hand -------------------------------------------------------------------*/

static hand *hands;

static void count(hand *h) {
  kit_lock();
  h->deleted++;
  kit_unlock();
}

static void delete_versioned(DLManagedTensorVersioned *self) { count((hand *)(void *)self); }

static void delete_legacy(DLManagedTensor *self) {
  count((hand *)(void *)((char *)self - offsetof(hand, legacy)));
}

hand *kit_hand_of(DLDataType dtype, int32_t ndim, const int64_t *shape, const double *elements,
                  int64_t count) {
  unsigned char one[16];
  size_t size = encode(dtype, 0, one);
  hand *h = (hand *)calloc(1, sizeof(hand) + (size_t)count * 16 + 1024);
  DLTensor *tensor;
  int64_t stride = 1;
  if (h == NULL) abort(); /* a kilobyte */
  tensor = &h->versioned.dl_tensor;
  h->start = (unsigned char *)(h + 1);
  h->start += (256 - (uintptr_t)h->start % 256) % 256;
  for (int64_t i = 0; i < count; i++) {
    encode(dtype, elements[i], one);
    memcpy(h->start + (size_t)i * size, one, size);
  }
  for (int32_t i = ndim - 1; i >= 0; i--) {
    h->shape[i] = shape[i];
    h->strides[i] = stride;
    stride *= shape[i];
  }
  tensor->data = h->start;
  tensor->device.device_type = kDLCPU;
  tensor->ndim = ndim;
  tensor->dtype = dtype;
  tensor->shape = h->shape;
  tensor->strides = h->strides;
  h->versioned.version.major = 1;
  h->versioned.version.minor = 3;
  h->versioned.manager_ctx = h;
  h->versioned.deleter = delete_versioned;
  kit_lock();
  h->other = hands;
  hands = h;
  kit_unlock();
  return h;
}

hand *kit_hand(void) {
  return kit_hand_of(KIT_FLOAT32, 2, KIT_MATRIX, KIT_TWELVE, 12);
}

void kit_set(hand *h, int64_t rows, int64_t columns, int64_t first, int64_t second) {
  h->shape[0] = rows;
  h->shape[1] = columns;
  h->strides[0] = first;
  h->strides[1] = second;
}

void kit_shift(hand *h, int bytes) {
  memmove(h->start + bytes, h->start, 192);
  memset(h->start, 0xee, (size_t)bytes);
}

int kit_deleted(hand *h) {
  int deleted;
  kit_lock();
  deleted = h->deleted;
  kit_unlock();
  return deleted;
}

int kit_unchanged(const hand *h) {
  return memcmp(&h->before.versioned, &h->versioned, sizeof h->versioned) == 0 &&
         memcmp(&h->before.legacy, &h->legacy, sizeof h->legacy) == 0 &&
         memcmp(h->before.shape, h->shape, sizeof h->shape) == 0 &&
         memcmp(h->before.strides, h->strides, sizeof h->strides) == 0;
}

/* ---- calls of the library -------------------------------------------------------------------*/

int32_t kit_can_produce(kit *k) {
  const dlrs_conform_subject *s = &k->subject;
  if (s->make == NULL || s->drop == NULL || (s->produce == NULL && s->produce_legacy == NULL))
    return kit_skip(k, "needs make, drop, and produce or produce_legacy");
  return 0;
}

static int needs_versioned(const hand *h) {
  const DLPackVersion *version = &h->versioned.version;
  return h->versioned.flags != 0 || version->major != 1 || version->minor != 3;
}

static int32_t can_consume(kit *k, const hand *h) {
  const dlrs_conform_subject *s = &k->subject;
  if (s->drop == NULL) return kit_skip(k, "needs drop");
  if (h->is_legacy) return s->consume_legacy == NULL ? kit_skip(k, "needs consume_legacy") : 0;
  if (s->consume != NULL) return 0;
  if (needs_versioned(h)) return kit_skip(k, "needs consume");
  return s->consume_legacy == NULL ? kit_skip(k, "needs consume or consume_legacy") : 0;
}

int32_t kit_take(kit *k, hand *h, void **tensor) {
  int32_t status;
  *tensor = NULL;
  TRY(can_consume(k, h));
  h->legacy.dl_tensor = h->versioned.dl_tensor;
  h->legacy.manager_ctx = h->versioned.manager_ctx;
  h->legacy.deleter = h->versioned.deleter == NULL ? NULL : delete_legacy;
  memcpy(&h->before.versioned, &h->versioned, sizeof h->versioned);
  memcpy(&h->before.legacy, &h->legacy, sizeof h->legacy);
  memcpy(h->before.shape, h->shape, sizeof h->shape);
  memcpy(h->before.strides, h->strides, sizeof h->strides);
  if (h->is_legacy || k->subject.consume == NULL)
    status = k->subject.consume_legacy(k->subject.context, &h->legacy, tensor);
  else
    status = k->subject.consume(k->subject.context, &h->versioned, tensor);
  h->refused = status != 0;
  if (h->refused) *tensor = NULL;
  return 0;
}

int32_t kit_taken(kit *k, hand *h, void **tensor) {
  TRY(kit_take(k, h, tensor));
  return h->refused ? kit_fail(k, "refused") : 0;
}

void kit_drop(kit *k, void *tensor) { k->subject.drop(k->subject.context, tensor); }

int32_t kit_freed(kit *k, hand *h) {
  int deleted = kit_deleted(h);
  if (deleted == 1 || (deleted == 0 && h->refused)) return 0;
  k->cause = h->refused ? "C10" : "C04";
  return kit_fail(k, "the deleter ran %d times", deleted);
}

int32_t kit_legacy(kit *k, void *tensor, exported *out) {
  int32_t status;
  memset(out, 0, sizeof *out);
  if (k->subject.produce_legacy == NULL) return kit_skip(k, "needs produce_legacy");
  status = k->subject.produce_legacy(k->subject.context, tensor, &out->legacy);
  if (status != 0 || out->legacy == NULL)
    return kit_fail(k, "produce_legacy answered %d", (int)status);
  out->tensor = &out->legacy->dl_tensor;
  return kit_readable(k, out->tensor);
}

int32_t kit_versioned(kit *k, const char *name, int32_t status, exported *out) {
  if (status != 0 || out->versioned == NULL)
    return kit_fail(k, "%s answered %d", name, (int)status);
  out->tensor = &out->versioned->dl_tensor;
  out->flags = out->versioned->flags;
  return kit_readable(k, out->tensor);
}

int32_t kit_newest(kit *k, void *tensor, exported *out) {
  if (k->subject.produce == NULL) return kit_legacy(k, tensor, out);
  memset(out, 0, sizeof *out);
  return kit_versioned(
      k, "produce", k->subject.produce(k->subject.context, tensor, &out->versioned), out);
}

int32_t kit_copy(kit *k, void *tensor, exported *out) {
  memset(out, 0, sizeof *out);
  if (k->subject.produce_copy == NULL) return kit_skip(k, "needs produce_copy");
  return kit_versioned(
      k, "produce_copy", k->subject.produce_copy(k->subject.context, tensor, &out->versioned), out);
}

void kit_free(exported *e) {
  if (e->versioned != NULL && e->versioned->deleter != NULL) e->versioned->deleter(e->versioned);
  if (e->legacy != NULL && e->legacy->deleter != NULL) e->legacy->deleter(e->legacy);
  memset(e, 0, sizeof *e);
}

int32_t kit_make(kit *k, const hand *h, uint64_t flags, void **tensor) {
  int32_t status;
  *tensor = NULL;
  TRY(kit_can_produce(k));
  status = k->subject.make(k->subject.context, &h->versioned.dl_tensor, flags, tensor);
  if (status == 0) return 0;
  if (flags != 0) return kit_skip(k, "no read-only tensors");
  return kit_fail(k, "make answered %d", (int)status);
}

int32_t kit_made(kit *k, thing *m, const hand *h, uint64_t flags) {
  TRY(kit_make(k, h, flags, &m->x));
  return kit_newest(k, m->x, &m->e);
}

int32_t kit_made_versioned(kit *k, thing *m) {
  if (k->subject.produce == NULL) return kit_skip(k, "needs produce");
  return kit_made(k, m, kit_hand(), 0);
}

int32_t kit_view(kit *k, void *tensor, int32_t kind, void **view) {
  *view = NULL;
  if (k->subject.view == NULL) return kit_skip(k, "needs view");
  return k->subject.view(k->subject.context, tensor, kind, view) == 0
             ? 0
             : kit_skip(k, "no such view");
}

int32_t kit_look(kit *k, void *tensor, thing *out) {
  if (k->subject.read != NULL) {
    int32_t status = k->subject.read(k->subject.context, tensor, &out->t, &out->flags);
    return status == 0 ? kit_readable(k, &out->t) : kit_fail(k, "read answered %d", (int)status);
  }
  if (k->subject.produce == NULL && k->subject.produce_legacy == NULL)
    return kit_skip(k, "needs read, produce or produce_legacy");
  TRY(kit_newest(k, tensor, &out->by));
  out->t = *out->by.tensor;
  out->flags = out->by.flags;
  return 0;
}

int32_t kit_took(kit *k, thing *m, hand *h) {
  m->h = h;
  TRY(kit_take(k, h, &m->x));
  if (!h->refused) return kit_look(k, m->x, m);
  TRY(kit_freed(k, h));
  return kit_note(k, "refused");
}

int32_t kit_again(kit *k, thing *m, hand *h) {
  m->h = h;
  if (k->subject.produce == NULL && k->subject.produce_legacy == NULL)
    return kit_skip(k, "needs produce or produce_legacy");
  TRY(kit_take(k, h, &m->x));
  return h->refused ? kit_skip(k, "refused") : kit_newest(k, m->x, &m->e);
}

int32_t kit_done(kit *k, thing *m) {
  kit_free(&m->e);
  kit_free(&m->by);
  if (m->x != NULL) kit_drop(k, m->x);
  return m->h == NULL ? 0 : kit_freed(k, m->h);
}

int32_t kit_right(kit *k, hand *h, const double *elements, int may_refuse) {
  thing m;
  int32_t answer;
  memset(&m, 0, sizeof m);
  answer = kit_took(k, &m, h);
  if (answer == DLRS_CONFORM_NOTE && !may_refuse) return kit_fail(k, "refused");
  TRY(answer);
  TRY(kit_same(k, &m.t, h->before.versioned.dl_tensor.ndim, h->before.shape, elements));
  return kit_done(k, &m);
}

int32_t kit_refused(kit *k, hand *h) {
  void *tensor;
  TRY(kit_take(k, h, &tensor));
  return h->refused ? kit_freed(k, h) : kit_fail(k, "accepted");
}
