/* Random operations for hours: soak SECONDS [SEED [THREADS]].
 *
 * Threads create, wrap, import, share, convert, view, copy, cast and free tensors, pass them to
 * each other, set the global allocator, fork, and compare every element with a plain loop. Elements
 * are not written once another thread may have a reference, so that a hash verifies them.
 * The time is divided into rounds; between two of them no tensor is alive, and these must be
 * unchanged: deleters, allocations, resident memory, open files. The first round warms up. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <dirent.h>
#include <malloc.h>
#include <pthread.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "harness.h"

enum {
  THREADS_MAX = 64,
  OWN = 16,       /* tensors that a thread owns */
  EXCHANGED = 32, /* tensors in transit to another thread */
  NDIM_MAX = 8,
  ROUNDS = 11,
  DRIFT_MAX = 1 << 20
};

/* A tensor and its expected properties. Flags are recorded here: reading them from the struct would
 * be a data race with the library, which clears IS_COPIED of a viewed tensor. */
typedef struct item {
  DLManagedTensorVersioned *tensor;
  uint64_t hash;
  int read_only;
} item;

typedef struct worker {
  uint64_t state;
  long operations, checks;
  double until;
  const char *name;
  item own[OWN];
} worker;

static pthread_mutex_t exchange_lock = PTHREAD_MUTEX_INITIALIZER;
static item exchange[EXCHANGED];
static long wrong, owed, called;
static uint64_t seed = 1;

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

/* xorshift64*: Marsaglia 2003, Vigna 2016. */
static uint64_t next_random(worker *w) {
  w->state ^= w->state >> 12;
  w->state ^= w->state << 25;
  w->state ^= w->state >> 27;
  return w->state * 2685821657736338717u >> 11;
}
static int below(worker *w, int limit) { return (int)(next_random(w) % (uint64_t)limit); }
static int one_in(worker *w, int n) { return below(w, n) == 0; }

static int expect(worker *w, int ok, int line, const char *what) {
  ++w->checks;
  if (!ok && __atomic_add_fetch(&wrong, 1, __ATOMIC_RELAXED) <= 20) {
    printf("soak.c:%d: %s, operation %ld: failed: %s\n", line, w->name, w->operations, what);
  }
  return ok;
}
#define EXPECT(x) expect(w, (x) ? 1 : 0, __LINE__, #x)

static void *room_for(size_t nbytes) {
  void *memory = malloc(nbytes ? nbytes : 1);
  if (memory == NULL) abort();
  return memory;
}

/* ---- Expected deleter calls -----------------------------------------------------------------*/

/* A deleter's context: what it frees, and how often it ran. */
typedef struct debt {
  long runs;
  void *memory[2];
} debt;

static debt *owe(void *memory, void *more) {
  debt *new_debt = (debt *)room_for(sizeof *new_debt);
  new_debt->runs = 0;
  new_debt->memory[0] = memory;
  new_debt->memory[1] = more;
  __atomic_add_fetch(&owed, 1, __ATOMIC_RELAXED);
  return new_debt;
}

static void forget(debt *old) {
  __atomic_sub_fetch(&owed, 1, __ATOMIC_RELAXED);
  free(old->memory[0]);
  free(old->memory[1]);
  free(old);
}

static void pay(void *context) {
  debt *old = (debt *)context;
  if (__atomic_add_fetch(&old->runs, 1, __ATOMIC_ACQ_REL) != 1) abort(); /* twice */
  __atomic_add_fetch(&called, 1, __ATOMIC_RELAXED);
  free(old->memory[0]);
  free(old->memory[1]);
  free(old);
}

/* ---- Elements -------------------------------------------------------------------------------*/

static int64_t element_count(const DLTensor *tensor) {
  int64_t count = 1;
  int32_t d;
  for (d = 0; d < tensor->ndim; ++d) count *= tensor->shape[d];
  return count;
}
static int64_t element_nbytes(const DLTensor *tensor) { return tensor->dtype.bits / 8; }

static char *first_element(const DLTensor *tensor) {
  return (char *)tensor->data + tensor->byte_offset;
}

/* The next index in row-major order; advances `at`. Returns 0 behind the last one. */
static int step_index(const DLTensor *tensor, int64_t *index, char **at) {
  int32_t d = tensor->ndim;
  int64_t nbytes = element_nbytes(tensor);
  while (d-- > 0) {
    *at += tensor->strides[d] * nbytes;
    if (++index[d] < tensor->shape[d]) return 1;
    *at -= tensor->strides[d] * nbytes * index[d];
    index[d] = 0;
  }
  return 0;
}

static uint64_t hash_of(const DLTensor *tensor) {
  int64_t index[NDIM_MAX] = {0};
  uint64_t hash = 1469598103934665603u;
  char *at;
  if (element_count(tensor) == 0) return hash;
  at = first_element(tensor);
  do {
    uint64_t halves[2] = {0, 0};
    memcpy(halves, at, (size_t)element_nbytes(tensor));
    hash = (hash ^ halves[0]) * 1099511628211u;
    hash = (hash ^ halves[1] ^ hash >> 31) * 1099511628211u;
  } while (step_index(tensor, index, &at));
  return hash;
}

/* The plain loop that copies are compared with. */
static void plain_copy(const DLTensor *from, const DLTensor *to) {
  int64_t from_index[NDIM_MAX] = {0}, to_index[NDIM_MAX] = {0};
  char *source, *sink;
  if (element_count(from) == 0) return;
  source = first_element(from);
  sink = first_element(to);
  do {
    memcpy(sink, source, (size_t)element_nbytes(from));
    step_index(to, to_index, &sink);
  } while (step_index(from, from_index, &source));
}

static void random_bytes(worker *w, void *memory, size_t nbytes) {
  unsigned char *bytes = (unsigned char *)memory;
  for (; nbytes >= 8; nbytes -= 8, bytes += 8) {
    uint64_t value = next_random(w) * 0x9E3779B97F4A7C15u;
    memcpy(bytes, &value, 8);
  }
  while (nbytes-- > 0) *bytes++ = (unsigned char)next_random(w);
}

static DLDataType random_dtype(worker *w) {
  static const unsigned char kinds[][2] = {{kDLUInt, 8},   {kDLInt, 8},    {kDLFloat, 16},
                                           {kDLBfloat, 16}, {kDLInt, 32},  {kDLFloat, 32},
                                           {kDLUInt, 64},  {kDLFloat, 64}, {kDLComplex, 128}};
  const unsigned char *kind = kinds[below(w, 9)];
  return t_dtype(kind[0], kind[1], 1);
}

/* A shape: mostly small, sometimes with an extent of 0, now and then large enough for kernels, and
 * rarely for the library's threads. */
static int32_t random_shape(worker *w, int64_t *shape) {
  int32_t ndim = below(w, 5), d;
  int largest = 8;
  if (one_in(w, 50)) {
    ndim = 2 + below(w, 2);
    largest = ndim == 2 ? 200 : 30;
  }
  for (d = 0; d < ndim; ++d) shape[d] = one_in(w, 40) ? 0 : 1 + below(w, largest);
  if (one_in(w, 4000)) {
    ndim = 2;
    shape[0] = 700 + below(w, 300);
    shape[1] = 500 + below(w, 300);
  }
  return ndim;
}

/* Strides of any order and sign, with gaps; returns the span in elements, and the offset of the
 * first element. */
static int64_t random_strides(worker *w, int32_t ndim, const int64_t *shape, int64_t *strides,
                              int64_t *first) {
  int32_t axes[NDIM_MAX], d;
  int64_t room = 1;
  int gaps = one_in(w, 2), sorted = one_in(w, 3), signs = one_in(w, 2);
  for (d = 0; d < ndim; ++d) axes[d] = ndim - 1 - d;
  for (d = ndim - 1; d > 0 && !sorted; --d) {
    int32_t other = below(w, d + 1), swapped = axes[d];
    axes[d] = axes[other];
    axes[other] = swapped;
  }
  *first = 0;
  for (d = 0; d < ndim; ++d) {
    int64_t extent = shape[axes[d]] > 0 ? shape[axes[d]] : 1, stride = room;
    room = room * extent + (gaps ? below(w, 3) : 0);
    if (signs && one_in(w, 3)) {
      *first += (extent - 1) * stride;
      stride = -stride;
    }
    strides[axes[d]] = stride;
  }
  return room;
}

/* ---- Owned tensors --------------------------------------------------------------------------*/

static void let_go(worker *w, DLManagedTensorVersioned *tensor) {
  if (tensor == NULL) return;
  if (one_in(w, 2)) {
    dlrs_release(tensor);
  } else {
    tensor->deleter(tensor);
  }
}

static void put(worker *w, DLManagedTensorVersioned *tensor, uint64_t hash, int read_only) {
  item *slot = &w->own[below(w, OWN)];
  let_go(w, slot->tensor);
  slot->tensor = tensor;
  slot->hash = hash;
  slot->read_only = read_only;
}

static void put_checked(worker *w, DLManagedTensorVersioned *tensor, uint64_t hash,
                        int read_only) {
  EXPECT(hash_of(&tensor->dl_tensor) == hash);
  put(w, tensor, hash, read_only);
}

static void make(worker *w) {
  int64_t shape[NDIM_MAX];
  int32_t ndim = random_shape(w, shape);
  DLManagedTensorVersioned *tensor = NULL;
  dlrs_alloc_options options = DLRS_INIT(dlrs_alloc_options);
  options.align_bytes = one_in(w, 4) ? 1u << below(w, 13) : 0;
  if (!EXPECT(dlrs_tensor_new(shape, ndim, random_dtype(w), CPU, &options, &tensor, NULL) ==
              DLRS_OK)) {
    return;
  }
  random_bytes(w, tensor->dl_tensor.data,
               (size_t)(element_count(&tensor->dl_tensor) * element_nbytes(&tensor->dl_tensor)));
  put(w, tensor, hash_of(&tensor->dl_tensor), 0);
}

/* Memory of this program, described with any strides. */
static DLTensor lend(worker *w, int64_t *shape, int64_t *strides) {
  int32_t ndim = random_shape(w, shape);
  int64_t first, room = random_strides(w, ndim, shape, strides, &first);
  DLTensor tensor = t_describe(NULL, random_dtype(w), ndim, shape, strides);
  size_t nbytes = (size_t)(room * element_nbytes(&tensor));
  tensor.data = room_for(nbytes);
  random_bytes(w, tensor.data, nbytes);
  tensor.byte_offset = (uint64_t)(first * element_nbytes(&tensor));
  return tensor;
}

static void wrap(worker *w) {
  int64_t shape[NDIM_MAX], strides[NDIM_MAX];
  DLTensor lent = lend(w, shape, strides);
  DLManagedTensorVersioned *tensor = NULL;
  uint64_t hash = hash_of(&lent), flags = one_in(w, 4) ? DLPACK_FLAG_BITMASK_READ_ONLY : 0;
  debt *mine = owe(lent.data, NULL);
  if (!EXPECT(dlrs_tensor_wrap(&lent, flags, pay, mine, &tensor, NULL) == DLRS_OK)) {
    forget(mine);
    return;
  }
  put_checked(w, tensor, hash, flags != 0);
}

/* A foreign tensor, in both kinds. */
typedef struct foreign {
  DLManagedTensorVersioned managed;
  DLManagedTensor legacy;
  int64_t shape[NDIM_MAX], strides[NDIM_MAX];
} foreign;

static void delete_foreign(DLManagedTensorVersioned *self) { pay(self->manager_ctx); }
static void delete_foreign_legacy(DLManagedTensor *self) { pay(self->manager_ctx); }

static foreign *make_foreign(worker *w, debt **mine) {
  foreign *made = (foreign *)room_for(sizeof *made);
  memset(made, 0, sizeof *made);
  made->managed = t_managed(lend(w, made->shape, made->strides), 0);
  made->managed.deleter = delete_foreign;
  made->legacy.dl_tensor = made->managed.dl_tensor;
  made->legacy.deleter = delete_foreign_legacy;
  *mine = owe(made, made->managed.dl_tensor.data);
  made->managed.manager_ctx = *mine;
  made->legacy.manager_ctx = *mine;
  return made;
}

static void import(worker *w) {
  debt *mine;
  foreign *made = make_foreign(w, &mine);
  DLManagedTensorVersioned *given = &made->managed, *tensor = NULL;
  uint64_t hash = hash_of(&given->dl_tensor);
  dlrs_import_options options = DLRS_INIT(dlrs_import_options);
  int32_t status;
  options.copy = below(w, 3) - 1;
  options.order = "\0CFAK"[below(w, 5)];
  status = dlrs_import_take(&given, &options, &tensor, NULL);
  if (status == DLRS_COPY_NEEDED && options.copy == -1 && options.order != 0) {
    EXPECT(tensor == NULL && given == &made->managed);
    dlrs_release(given);
    return;
  }
  if (!EXPECT(status == DLRS_OK && given == NULL)) return;
  put_checked(w, tensor, hash, 0);
}

static void import_legacy(worker *w) {
  debt *mine;
  foreign *made = make_foreign(w, &mine);
  DLManagedTensor *given = &made->legacy;
  DLManagedTensorVersioned *tensor = NULL;
  uint64_t hash = hash_of(&given->dl_tensor);
  if (one_in(w, 8)) {
    dlrs_release_legacy(given);
  } else if (EXPECT(dlrs_from_legacy_take(&given, 0, &tensor, NULL) == DLRS_OK)) {
    EXPECT(given == NULL);
    put_checked(w, tensor, hash, 0);
  }
}

/* ---- Operations -----------------------------------------------------------------------------*/

static item *pick(worker *w) {
  item *slot = &w->own[below(w, OWN)];
  if (slot->tensor == NULL) make(w);
  return slot->tensor == NULL ? NULL : slot;
}

static void retain(worker *w) {
  item *slot = pick(w);
  DLManagedTensorVersioned *more = NULL;
  uint64_t hash;
  int read_only;
  if (slot == NULL) return;
  hash = slot->hash;
  read_only = slot->read_only;
  if (!EXPECT(dlrs_retain(slot->tensor, &more, NULL) == DLRS_OK)) return;
  EXPECT(dlrs_ref_count(more) >= 2);
  put(w, more, hash, read_only);
}

static void drop(worker *w) {
  item *slot = pick(w);
  if (slot == NULL) return;
  let_go(w, slot->tensor);
  slot->tensor = NULL;
}

static void hand_over(worker *w) {
  item *slot = pick(w), other;
  int place = below(w, EXCHANGED);
  if (slot == NULL) return;
  pthread_mutex_lock(&exchange_lock);
  other = exchange[place];
  exchange[place] = *slot;
  pthread_mutex_unlock(&exchange_lock);
  *slot = other;
  if (other.tensor == NULL) return;
  EXPECT(dlrs_validate_managed(other.tensor, DLRS_LEVEL_STRICT, NULL) == DLRS_OK);
  EXPECT(hash_of(&other.tensor->dl_tensor) == other.hash);
}

/* To legacy and back. */
static void convert(worker *w) {
  item *slot = pick(w);
  DLManagedTensor *legacy = NULL;
  int32_t policy = below(w, 3), status;
  uint64_t flags = one_in(w, 4) ? DLPACK_FLAG_BITMASK_READ_ONLY : 0;
  if (slot == NULL) return;
  status = dlrs_to_legacy_take(&slot->tensor, policy, &legacy, NULL);
  if (policy == DLRS_LEGACY_REFUSE && slot->read_only) {
    EXPECT(status == DLRS_READ_ONLY && slot->tensor != NULL && legacy == NULL);
    return;
  }
  if (!EXPECT(status == DLRS_OK && slot->tensor == NULL)) return;
  EXPECT(hash_of(&legacy->dl_tensor) == slot->hash);
  if (one_in(w, 8)) {
    if (one_in(w, 2)) {
      dlrs_release_legacy(legacy);
    } else {
      legacy->deleter(legacy);
    }
    return;
  }
  EXPECT(dlrs_from_legacy_take(&legacy, flags, &slot->tensor, NULL) == DLRS_OK);
  slot->read_only = flags != 0;
}

static void attach(worker *w) {
  item *slot = pick(w);
  debt *mine;
  if (slot == NULL) return;
  mine = owe(NULL, NULL);
  if (!EXPECT(dlrs_attach(slot->tensor, pay, mine, below(w, 2), NULL) == DLRS_OK)) {
    forget(mine);
  } else if (one_in(w, 2)) {
    EXPECT(dlrs_detach(slot->tensor, pay, mine, NULL) == DLRS_OK);
    forget(mine);
  }
}

/* The expected result of each kind of view: `want` is the base on entry and the view on return. */
static void view(worker *w) {
  item *slot = pick(w);
  DLManagedTensorVersioned *base, *out = NULL;
  int64_t shape[NDIM_MAX], strides[NDIM_MAX], start, step, nbytes;
  DLTensor want;
  int32_t ndim, axis, other, d, status = DLRS_OK;
  int kind = below(w, 5), read_only;
  if (slot == NULL) return;
  base = slot->tensor;
  ndim = base->dl_tensor.ndim;
  if (ndim == 0) return;
  want = base->dl_tensor;
  for (d = 0; d < ndim; ++d) {
    shape[d] = want.shape[d];
    strides[d] = want.strides[d];
  }
  want.shape = shape;
  want.strides = strides;
  axis = below(w, ndim);
  other = below(w, ndim);
  nbytes = element_nbytes(&want);
  read_only = slot->read_only;
  if (kind == 0) {
    start = below(w, 4);
    step = 1 + below(w, 3);
    status = dlrs_view_slice(base, axis, start, INT64_MAX, step, &out, NULL);
    if (start > shape[axis]) start = shape[axis];
    shape[axis] = (shape[axis] - start + step - 1) / step;
    want.byte_offset += (uint64_t)(start * strides[axis] * nbytes);
    strides[axis] *= step;
  } else if (kind == 1) {
    status = dlrs_view_flip(base, axis - ndim, &out, NULL);
    if (shape[axis] > 0) {
      want.byte_offset += (uint64_t)((shape[axis] - 1) * strides[axis] * nbytes);
    }
    strides[axis] = -strides[axis];
  } else if (kind == 2) {
    status = dlrs_view_transpose(base, axis, other, &out, NULL);
    shape[axis] = base->dl_tensor.shape[other];
    shape[other] = base->dl_tensor.shape[axis];
    strides[axis] = base->dl_tensor.strides[other];
    strides[other] = base->dl_tensor.strides[axis];
  } else if (kind == 3) {
    start = below(w, 8);
    status = dlrs_view_select(base, axis, start, &out, NULL);
    if (start >= shape[axis]) {
      EXPECT(status == DLRS_BAD_ARG && out == NULL);
      return;
    }
    want.byte_offset += (uint64_t)(start * strides[axis] * nbytes);
    shape[axis] = 1;
  } else if (ndim < NDIM_MAX) {
    status = dlrs_view_unsqueeze(base, axis, &out, NULL);
  } else {
    return;
  }
  if (!EXPECT(status == DLRS_OK)) return;
  put_checked(w, out, hash_of(&want), read_only);
}

static void duplicate(worker *w) {
  item *slot = pick(w);
  DLManagedTensorVersioned *out = NULL;
  uint64_t hash;
  int32_t equal = 0, status;
  int plain = one_in(w, 2), read_only;
  if (slot == NULL) return;
  hash = slot->hash;
  status = plain ? dlrs_clone(slot->tensor, CPU, NULL, &out, NULL)
                 : dlrs_contiguous(slot->tensor, "CFAK"[below(w, 4)], NULL, &out, NULL);
  if (!EXPECT(status == DLRS_OK)) return;
  EXPECT(dlrs_equal(slot->tensor, out, DLRS_EQUAL_BITS, &equal, NULL) == DLRS_OK && equal == 1);
  /* Without a copy the result is another reference; its readers must not write then. */
  read_only = plain ? 0 : slot->read_only;
  if (!plain && out->dl_tensor.data != slot->tensor->dl_tensor.data) read_only = 0;
  put_checked(w, out, hash, read_only);
}

/* Into memory with any strides, compared with the plain loop: gaps and all. */
static void copy(worker *w) {
  item *slot = pick(w);
  int64_t strides[NDIM_MAX], first, room;
  DLTensor into, same;
  dlrs_copy_options options = DLRS_INIT(dlrs_copy_options);
  size_t nbytes;
  if (slot == NULL) return;
  into = slot->tensor->dl_tensor;
  into.strides = strides;
  room = random_strides(w, into.ndim, into.shape, strides, &first);
  nbytes = (size_t)(room * element_nbytes(&into));
  into.data = room_for(nbytes);
  into.byte_offset = (uint64_t)(first * element_nbytes(&into));
  random_bytes(w, into.data, nbytes);
  same = into;
  same.data = room_for(nbytes);
  memcpy(same.data, into.data, nbytes);
  options.threads = (uint32_t)below(w, 4);
  EXPECT(dlrs_copy_desc(&slot->tensor->dl_tensor, 0, &into, DLPACK_FLAG_BITMASK_READ_ONLY,
                        &options, NULL) == DLRS_READ_ONLY);
  EXPECT(memcmp(into.data, same.data, nbytes) == 0);
  EXPECT(dlrs_copy_desc(&slot->tensor->dl_tensor, 0, &into, 0, &options, NULL) == DLRS_OK);
  plain_copy(&slot->tensor->dl_tensor, &same);
  EXPECT(memcmp(into.data, same.data, nbytes) == 0);
  free(into.data);
  free(same.data);
}

/* ---- Casts ----------------------------------------------------------------------------------*/

/* One element, where C has the type. */
static double element(const void *at, DLDataType dtype) {
  union {
    int8_t i8;
    int16_t i16;
    int32_t i32;
    int64_t i64;
    float f32;
    double f64;
  } value;
  memcpy(&value, at, dtype.bits / 8);
  if (dtype.code == kDLFloat) return dtype.bits == 32 ? (double)value.f32 : value.f64;
  if (dtype.bits == 8) return value.i8;
  if (dtype.bits == 16) return value.i16;
  return dtype.bits == 32 ? (double)value.i32 : (double)value.i64;
}

static const unsigned char plain_kinds[][2] = {{kDLInt, 8},  {kDLInt, 16},   {kDLInt, 32},
                                               {kDLInt, 64}, {kDLFloat, 32}, {kDLFloat, 64}};
/* All of these can represent the integers from -8 to 8. */
static const unsigned char middle_kinds[][2] = {
    {kDLInt, 8},     {kDLInt, 32},     {kDLFloat, 16},      {kDLFloat, 32},     {kDLFloat, 64},
    {kDLBfloat, 16}, {kDLComplex, 64}, {kDLFloat8_e4m3fn, 8}, {kDLFloat8_e5m2, 8}, {kDLInt, 64}};

static DLDataType plain_dtype(worker *w) {
  const unsigned char *kind = plain_kinds[below(w, 6)];
  return t_dtype(kind[0], kind[1], 1);
}

/* Small integers from a type of C through any type, transposed, to a type of C. */
static void cast(worker *w) {
  int64_t shape[2], turned[2], i;
  const unsigned char *kind = middle_kinds[below(w, 10)];
  DLManagedTensorVersioned *from = NULL, *view_of = NULL, *middle = NULL, *to = NULL;
  DLDataType from_dtype = plain_dtype(w), to_dtype = plain_dtype(w);
  int largest = one_in(w, 20) ? 80 : 9, wrongs = 0;
  shape[0] = turned[1] = 1 + below(w, largest);
  shape[1] = turned[0] = 1 + below(w, largest);
  if (EXPECT(dlrs_tensor_new(shape, 2, from_dtype, CPU, NULL, &from, NULL) == DLRS_OK) &&
      EXPECT(dlrs_view_transpose(from, 0, 1, &view_of, NULL) == DLRS_OK) &&
      EXPECT(dlrs_tensor_new(turned, 2, t_dtype(kind[0], kind[1], 1), CPU, NULL, &middle,
                             NULL) == DLRS_OK) &&
      EXPECT(dlrs_tensor_new(turned, 2, to_dtype, CPU, NULL, &to, NULL) == DLRS_OK)) {
    char *values = (char *)from->dl_tensor.data, *results = (char *)to->dl_tensor.data;
    int64_t from_nbytes = from_dtype.bits / 8, to_nbytes = to_dtype.bits / 8;
    for (i = 0; i < shape[0] * shape[1]; ++i) {
      double value = below(w, 17) - 8;
      char *place = values + i * from_nbytes;
      if (from_dtype.code == kDLFloat && from_dtype.bits == 32) {
        float narrow = (float)value;
        memcpy(place, &narrow, 4);
      } else if (from_dtype.code == kDLFloat) {
        memcpy(place, &value, 8);
      } else {
        int64_t whole = (int64_t)value; /* the low bytes come first */
        memcpy(place, &whole, (size_t)from_nbytes);
      }
    }
    EXPECT(dlrs_cast(view_of, middle, NULL, NULL) == DLRS_OK);
    EXPECT(dlrs_cast(middle, to, NULL, NULL) == DLRS_OK);
    for (i = 0; i < shape[0] * shape[1]; ++i) {
      int64_t row = i / shape[0], column = i % shape[0];
      wrongs += element(results + i * to_nbytes, to_dtype) !=
                element(values + (column * shape[1] + row) * from_nbytes, from_dtype);
    }
    EXPECT(wrongs == 0);
  }
  let_go(w, from);
  let_go(w, view_of);
  let_go(w, middle);
  let_go(w, to);
}

/* ---- Texts, errors -------------------------------------------------------------------------*/

static void text(worker *w) {
  char name[64], printed[200];
  DLDataType dtype = random_dtype(w), again = t_dtype(0, 0, 0);
  size_t nbytes = 0, i;
  item *slot = pick(w);
  int32_t status;
  dtype.lanes = (uint16_t)(1 + below(w, 9));
  EXPECT(dlrs_dtype_format(dtype, name, sizeof name, &nbytes, NULL) == DLRS_OK);
  EXPECT(nbytes == strlen(name));
  EXPECT(dlrs_dtype_parse(name, nbytes, &again, NULL) == DLRS_OK);
  EXPECT(memcmp(&again, &dtype, sizeof dtype) == 0);
  EXPECT(dlrs_dtype_format(dtype, name, 4, NULL, NULL) == DLRS_BUF_SMALL && strlen(name) == 3);
  for (i = 0; i < sizeof name; ++i) name[i] = "floatuinbxc0123468_ "[below(w, 20)];
  again = dtype;
  status = dlrs_dtype_parse(name, (size_t)below(w, (int)sizeof name), &again, NULL);
  EXPECT(status == DLRS_OK || memcmp(&again, &dtype, sizeof dtype) == 0);
  if (slot == NULL) return;
  status = dlrs_managed_to_string(slot->tensor, NULL, printed, sizeof printed, &nbytes, NULL);
  EXPECT(status == (nbytes < sizeof printed ? DLRS_OK : DLRS_BUF_SMALL));
  EXPECT(strlen(printed) == (nbytes < sizeof printed ? nbytes : sizeof printed - 1));
}

/* Calls that fail, change nothing, and report why. */
static void refused(worker *w) {
  dlrs_error error = DLRS_INIT(dlrs_error);
  item *slot = pick(w);
  DLManagedTensorVersioned *out = (DLManagedTensorVersioned *)&error, *none = NULL;
  int64_t shape[2] = {3, -1};
  int32_t want = DLRS_NULL_ARG, status = DLRS_OK;
  debt *mine;
  if (slot == NULL) return;
  switch (below(w, 9)) {
    case 0:
      want = DLRS_SHAPE_NEG;
      status = dlrs_tensor_new(shape, 2, F32, CPU, NULL, &out, &error);
      break;
    case 1:
      want = DLRS_NDIM;
      status = dlrs_tensor_new(shape, 65, F32, CPU, NULL, &out, &error);
      break;
    case 2:
      want = DLRS_DTYPE_LANES;
      status = dlrs_tensor_new(shape, 1, t_dtype(kDLFloat, 32, 0), CPU, NULL, &out, &error);
      break;
    case 3:
      shape[0] = shape[1] = INT64_MAX / 2;
      want = DLRS_SIZE_OVERFLOW;
      status = dlrs_tensor_new(shape, 2, F32, CPU, NULL, &out, &error);
      break;
    case 4:
      status = dlrs_import_take(&none, NULL, &out, &error);
      break;
    case 5:
      want = DLRS_BAD_ARG;
      status = dlrs_view_flip(slot->tensor, slot->tensor->dl_tensor.ndim, &out, &error);
      break;
    case 6:
      mine = owe(NULL, NULL);
      want = DLRS_BAD_ARG;
      status = dlrs_detach(slot->tensor, pay, mine, &error);
      out = NULL;
      forget(mine);
      break;
    case 7:
      want = DLRS_BAD_ARG;
      status = dlrs_contiguous(slot->tensor, 'X', NULL, &out, &error);
      break;
    default:
      status = dlrs_retain(NULL, &out, &error);
      break;
  }
  EXPECT(status == want && error.status == want && out == NULL);
  EXPECT(strstr(error.message, dlrs_status_name(want)) != NULL);
  EXPECT(hash_of(&slot->tensor->dl_tensor) == slot->hash);
}

/* ---- Global settings, and processes ----------------------------------------------------------*/

static t_source plain_source;
static dlrs_allocator plain_allocator;

/* The CPU's allocator, with which every other thread creates tensors meanwhile. */
static void set_allocator(worker *w) {
  const dlrs_allocator *new_one = one_in(w, 2) ? &plain_allocator : NULL, *old = NULL;
  EXPECT(dlrs_allocator_set(kDLCPU, new_one, &old, NULL) == DLRS_OK);
  EXPECT(old == NULL || old == &plain_allocator);
}

/* The child has one thread, whatever state the others were in. */
static void fork_one(worker *w) {
  int status = -1;
  pid_t child;
  if (!one_in(w, 64)) return;
  child = fork();
  if (child == 0) {
    int64_t shape[2] = {30, 40};
    DLDataType f32 = {kDLFloat, 32, 1};
    DLManagedTensorVersioned *mine = NULL, *copied = NULL;
    int ok;
    alarm(60);
    ok = dlrs_tensor_new(shape, 2, f32, CPU, NULL, &mine, NULL) == DLRS_OK;
    if (ok) memset(mine->dl_tensor.data, 7, 4800);
    ok = ok && dlrs_clone(mine, CPU, NULL, &copied, NULL) == DLRS_OK &&
         memcmp(copied->dl_tensor.data, mine->dl_tensor.data, 4800) == 0;
    dlrs_release(mine);
    dlrs_release(copied);
    _exit(ok ? 0 : 1);
  }
  EXPECT(child > 0 && waitpid(child, &status, 0) == child && status == 0);
}

/* ---- Rounds ---------------------------------------------------------------------------------*/

static void *work(void *argument) {
  static void (*const operations[])(worker *) = {make,   make,      wrap,      wrap, import, drop,
                                                 retain, hand_over, hand_over, view, view,   copy,
                                                 copy,   duplicate, cast,   text,
                                                 attach, attach,    convert,   convert,
                                                 refused, import_legacy, set_allocator, fork_one};
  const int kinds = (int)(sizeof operations / sizeof *operations);
  worker *w = (worker *)argument;
  int i;
  do {
    for (i = 0; i < 64; ++i, ++w->operations) operations[below(w, kinds)](w);
  } while (now() < w->until);
  for (i = 0; i < OWN; ++i) {
    if (w->own[i].tensor != NULL) {
      EXPECT(hash_of(&w->own[i].tensor->dl_tensor) == w->own[i].hash);
      let_go(w, w->own[i].tensor);
    }
    w->own[i].tensor = NULL;
  }
  return NULL;
}

static long resident_nbytes(void) {
  long pages = 0;
  FILE *file = fopen("/proc/self/statm", "r");
  if (file == NULL || fscanf(file, "%*s %ld", &pages) != 1) abort();
  fclose(file);
  return pages * sysconf(_SC_PAGESIZE);
}

static long open_files(void) {
  long count = 0;
  DIR *folder = opendir("/proc/self/fd");
  if (folder == NULL) abort();
  while (readdir(folder) != NULL) ++count;
  closedir(folder);
  return count;
}

static worker workers[THREADS_MAX];

static void round_of(int threads, double seconds) {
  pthread_t ids[THREADS_MAX];
  int i;
  for (i = 0; i < threads; ++i) {
    workers[i].until = now() + seconds;
    CHECK(pthread_create(&ids[i], NULL, work, &workers[i]) == 0);
  }
  for (i = 0; i < threads; ++i) pthread_join(ids[i], NULL);
  for (i = 0; i < EXCHANGED; ++i) {
    dlrs_release(exchange[i].tensor);
    exchange[i].tensor = NULL;
  }
  CHECK(dlrs_allocator_set(kDLCPU, NULL, NULL, NULL) == DLRS_OK);
  malloc_trim(0);
}

int main(int argc, char **argv) {
  static char names[THREADS_MAX][32], lines[BUFSIZ];
  double seconds = argc > 1 ? atof(argv[1]) : 5, started = now();
  int threads = argc > 3 ? atoi(argv[3]) : 4, i;
  long live = 0, files = 0, resident = 0, operations = 0, checks = 0;
  /* The C library caches the stacks of ended threads, each with a block or two: switched off, since
   * blocks are counted. It reads this at its start. */
  if (getenv("GLIBC_TUNABLES") == NULL) {
    setenv("GLIBC_TUNABLES", "glibc.pthread.stack_cache_size=0", 1);
    execv("/proc/self/exe", argv);
  }
  if (argc > 2) seed = strtoull(argv[2], NULL, 10);
  if (seconds <= 0 || threads < 1 || threads > THREADS_MAX) {
    printf("usage: soak SECONDS [SEED [THREADS]], with 1 to %d threads\n", THREADS_MAX);
    return 2;
  }
  setvbuf(stdout, lines, _IOLBF, sizeof lines); /* no separate block */
  /* Else the allocator keeps ever larger freed blocks, which would look like a drift. */
  mallopt(M_MMAP_THRESHOLD, 128 * 1024);
  for (i = 0; i < threads; ++i) {
    snprintf(names[i], sizeof names[i], "seed %lu, thread %d", (unsigned long)seed, i);
    workers[i].name = names[i];
    workers[i].state = (seed + 1) * 0x9E3779B97F4A7C15u + (uint64_t)i * 0xD1B54A32D192ED03u;
  }
  t_context = "soak";
  plain_allocator = t_allocator(&plain_source);
  printf("seed %lu, %d threads, %.0f seconds\n", (unsigned long)seed, threads, seconds);
  for (i = 0; i < ROUNDS; ++i) {
    int t;
    round_of(threads, seconds / ROUNDS);
    if (i == 0) {
      live = inject_live();
      files = open_files();
      resident = resident_nbytes();
    }
    for (t = 0, operations = 0, checks = 0; t < threads; ++t) {
      operations += workers[t].operations;
      checks += workers[t].checks;
    }
    printf("%6.0f s: %ld operations, %ld checks, %ld deleters owed and %ld called, balance %ld, "
           "%ld KiB resident\n", now() - started, operations, checks, owed, called,
           inject_live() - live, resident_nbytes() / 1024);
  }
  EQUAL(wrong, 0);
  CHECK(plain_source.given == plain_source.taken && plain_source.strange == 0);
  EQUAL(called, owed);
  CHECK(owed > 0);
  EQUAL(open_files(), files);
  if (inject_works()) {
    EQUAL(inject_live(), live);
    CHECK(resident_nbytes() - resident < DRIFT_MAX);
  }
  printf("%ld operations on %d threads, %.0f a second; resident memory drifted by %ld KiB%s\n",
         operations, threads, (double)operations / (now() - started),
         (resident_nbytes() - resident) / 1024,
         inject_works() ? "" : "; memory not checked under a sanitizer");
  return t_close();
}
