/* Helpers of the rules: tensors made by hand, exports read as a consumer reads them, and
 * verdicts. Elements are read and written without the library under test.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef DLPACK_RS_CONFORM_KIT_H_
#define DLPACK_RS_CONFORM_KIT_H_

#include <string.h>

#include "dlpack_rs_conform.h"

#if DLPACK_MINOR_VERSION < 3
#error "the conformance kit needs dlpack.h of DLPack 1.3 or newer, as beside its header"
#endif

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define KIT_PRINTS(text, first) __attribute__((format(printf, text, first)))
#else
#define KIT_PRINTS(text, first)
#endif

/* A judge returns a dlrs_conform_outcome: TRY continues on 0 and returns any other at once. */
#define TRY(judgement)                   \
  do {                                   \
    int32_t answer_ = (judgement);       \
    if (answer_ != 0) return answer_;    \
  } while (0)

#define RULE(id) int32_t dlrs_conform_rule_##id(kit *k)

#define KIT_READ_ONLY DLPACK_FLAG_BITMASK_READ_ONLY
#define KIT_IS_COPIED DLPACK_FLAG_BITMASK_IS_COPIED
#define KIT_PADDED DLPACK_FLAG_BITMASK_IS_SUBBYTE_TYPE_PADDED

typedef struct kit {
  dlrs_conform_subject subject; /* NULL for functions that the caller's lacks */
  dlrs_conform_verdict *verdict;
  const char *cause; /* the rule that may judge why it failed: C04, C10; else NULL */
} kit;

int32_t kit_fail(kit *k, const char *format, ...) KIT_PRINTS(2, 3);
int32_t kit_skip(kit *k, const char *what);
int32_t kit_note(kit *k, const char *what);

/* ---- elements -------------------------------------------------------------------------------*/

extern const double KIT_TWELVE[12]; /* 0 to 11 */
/* Judges each dtype of the array API standard; a note where one is refused. */
int32_t kit_of_each_dtype(kit *k, int32_t (*judge)(kit *k, DLDataType dtype));

DLDataType kit_dtype(int code, int bits, int lanes);
/* Fails unless the tensor has that shape and the elements, in row-major order. */
int32_t kit_same(kit *k, const DLTensor *tensor, int32_t ndim, const int64_t *shape,
                 const double *elements);
int64_t kit_count(const DLTensor *tensor);
/* The effective stride: NULL strides are row-major. */
int64_t kit_stride(const DLTensor *tensor, int32_t axis);
unsigned char *kit_first(const DLTensor *tensor);

/* ---- tensors made by hand -------------------------------------------------------------------*/

#define KIT_NDIM 100

typedef struct hand {
  DLManagedTensorVersioned versioned; /* edited by the rules; */
  DLManagedTensor legacy;             /* has the same tensor */
  int64_t shape[KIT_NDIM], strides[KIT_NDIM];
  unsigned char *start; /* aligned to 256 bytes */
  int is_legacy;
  int refused; /* rejected by the library */
  int deleted; /* how often the deleter was called */
  struct hand *other; /* list of all, for leak checkers */
  struct {
    DLManagedTensorVersioned versioned;
    DLManagedTensor legacy;
    int64_t shape[KIT_NDIM], strides[KIT_NDIM];
  } before;
} hand;

#define KIT_FLOAT32 kit_dtype(kDLFloat, 32, 1)
extern const int64_t KIT_MATRIX[2]; /* 3, 4 */
extern const double KIT_TRANSPOSED[12];
/* 3 x 4 float32 with the elements 0 to 11, compact. */
hand *kit_hand(void);
/* Compact, with `count` elements in memory. */
hand *kit_hand_of(DLDataType dtype, int32_t ndim, const int64_t *shape, const double *elements,
                  int64_t count);
/* Moves the elements to `bytes` (at most 256) behind `start`. */
void kit_shift(hand *h, int bytes);
/* Another shape and strides of two dimensions, over the same elements. */
void kit_set(hand *h, int64_t rows, int64_t columns, int64_t first, int64_t second);
int kit_deleted(hand *h);
/* Whether struct, shape and strides are as they were when it was taken. */
int kit_unchanged(const hand *h);

/* ---- calls of the library -------------------------------------------------------------------*/

/* Skips the rule if the library cannot produce tensors. */
int32_t kit_can_produce(kit *k);

/* Takes a tensor made by hand: *tensor is NULL if it was rejected. */
int32_t kit_take(kit *k, hand *h, void **tensor);
/* As kit_take; fails if the tensor is rejected. */
int32_t kit_taken(kit *k, hand *h, void **tensor);
void kit_drop(kit *k, void *tensor);
/* Fails unless the deleter was called once, or, if rejected, left to the kit. */
int32_t kit_freed(kit *k, hand *h);

/* A tensor that the library exported: by the newest protocol that it supports. */
typedef struct exported {
  DLManagedTensorVersioned *versioned; /* one of the two */
  DLManagedTensor *legacy;
  DLTensor *tensor;
  uint64_t flags;
} exported;

/* Fails where what the library says of a tensor cannot be read: each tensor of the library's comes
 * through it before a rule reads it. */
int32_t kit_readable(kit *k, const DLTensor *tensor);
/* The export that a function of the library answered with. */
int32_t kit_versioned(kit *k, const char *name, int32_t status, exported *out);
int32_t kit_newest(kit *k, void *tensor, exported *out);
int32_t kit_legacy(kit *k, void *tensor, exported *out);
int32_t kit_copy(kit *k, void *tensor, exported *out);
void kit_free(exported *e);

/* What a rule is about, freed after it. */
typedef struct thing {
  hand *h;     /* what the library took, or NULL */
  void *x;     /* a tensor of the library */
  exported e;  /* an export of it */
  DLTensor t;  /* what it holds: by `read`, or by an export */
  uint64_t flags;
  exported by;
} thing;

/* A tensor of the library with the elements of a hand. */
int32_t kit_make(kit *k, const hand *h, uint64_t flags, void **tensor);
/* And its newest export. */
int32_t kit_made(kit *k, thing *m, const hand *h, uint64_t flags);
/* As kit_made; skips the rule where the library has legacy tensors only. */
int32_t kit_made_versioned(kit *k, thing *m);
/* A view by the library, which is not to blame for views that it lacks. */
int32_t kit_view(kit *k, void *tensor, int32_t kind, void **view);
/* What a tensor of the library holds. */
int32_t kit_look(kit *k, void *tensor, thing *out);
/* A tensor that the library takes, and what it then holds; a note where it is rejected. */
int32_t kit_took(kit *k, thing *m, hand *h);
/* A tensor that the library takes, and its export of it; a skip where it is rejected. */
int32_t kit_again(kit *k, thing *m, hand *h);
int32_t kit_done(kit *k, thing *m);

/* A rule about what `get` gets ready in m; the body judges it. */
#define JUDGE(id, get)                           \
  static int32_t judge_##id(kit *k, thing *m);   \
  RULE(id) {                                     \
    thing of, *m = &of;                          \
    memset(m, 0, sizeof of);                     \
    TRY(get);                                    \
    TRY(judge_##id(k, m));                       \
    return kit_done(k, m);                       \
  }                                              \
  static int32_t judge_##id(kit *k, thing *m)

/* A rule about a tensor made by hand, 3 x 4, which `edit` makes what the rule is about. */
#define HAND(id, edit, judgement)            \
  RULE(id) {                                 \
    hand *h = kit_hand();                    \
    DLTensor *t = &h->versioned.dl_tensor;   \
    (void)t;                                 \
    edit;                                    \
    return judgement;                        \
  }

/* Fails unless the elements are right, or the tensor is rejected where `may_refuse`; and freed
 * once in both cases. */
int32_t kit_right(kit *k, hand *h, const double *elements, int may_refuse);
int32_t kit_refused(kit *k, hand *h);

/* ---- threads, and memory --------------------------------------------------------------------*/

typedef int32_t kit_work(kit *k, void *argument);
/* Runs work on several threads at the same time; returns the first failure. */
int32_t kit_threads(kit *k, int count, kit_work *work, void *argument);
void kit_lock(void);
void kit_unlock(void);
/* Bytes of resident memory; -1 if unknown. */
int64_t kit_resident(void);

#ifdef __cplusplus
}
#endif

#endif /* DLPACK_RS_CONFORM_KIT_H_ */
