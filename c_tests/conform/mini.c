/* A small library with one planted fault, written without the kit and without libdlpack_rs. */
#ifndef _POSIX_C_SOURCE
#define _POSIX_C_SOURCE 200809L
#endif
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "subject.h"

#define READ_ONLY DLPACK_FLAG_BITMASK_READ_ONLY
#define IS_COPIED DLPACK_FLAG_BITMASK_IS_COPIED
#define PADDED DLPACK_FLAG_BITMASK_IS_SUBBYTE_TYPE_PADDED
#define MOST 64

const char *mini_fault = "";
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_t home; /* the thread that created the subject */
static long exports, deletions;

static int has(const char *fault) { return strcmp(mini_fault, fault) == 0; }

/* Memory that tensors and exports share: of this library, or of a foreign tensor. */
typedef struct store {
  long references;
  unsigned char *memory;
  size_t bytes;
  DLManagedTensorVersioned *versioned;
  DLManagedTensor *legacy;
} store;

typedef struct mini {
  store *of;
  DLTensor t;
  uint64_t flags;
  int64_t shape[MOST], strides[MOST];
  int dropped;
} mini;

typedef struct out {
  DLManagedTensorVersioned versioned;
  DLManagedTensor legacy;
  store *of;
  mini *from;
  int64_t shape[MOST], strides[MOST];
  long references;
} out;

static int frees_twice(const store *of) {
  if (has("frees legacy tensors twice")) return of->legacy != NULL;
  if (has("frees twice on other threads")) return !pthread_equal(home, pthread_self());
  return has("frees twice");
}

/* Whether this call is the hundredth, and so on. */
static int hundredth(void) {
  static long count;
  long now;
  pthread_mutex_lock(&lock);
  now = ++count;
  pthread_mutex_unlock(&lock);
  return now % 100 == 0;
}

static void let_go(store *of) {
  if (of->versioned != NULL && (of->versioned->deleter != NULL || has("calls a NULL deleter")))
    of->versioned->deleter(of->versioned);
  if (of->legacy != NULL && (of->legacy->deleter != NULL || has("calls a NULL deleter")))
    of->legacy->deleter(of->legacy);
}

static void unref(store *of) {
  long left;
  pthread_mutex_lock(&lock);
  left = --of->references;
  pthread_mutex_unlock(&lock);
  if (left != 0 || has("leaks")) return;
  if (has("forgets each hundredth") && hundredth()) return;
  if (frees_twice(of)) let_go(of);
  if (!has("never frees") && !has("frees early")) let_go(of);
  if (of->memory != NULL) memset(of->memory, 0xdd, of->bytes);
  free(of->memory);
  of->memory = NULL;
  if (mini_fault[0] == 0) free(of); /* faults read it again */
}

static void ref(store *of) {
  pthread_mutex_lock(&lock);
  of->references++;
  pthread_mutex_unlock(&lock);
}

static store *new_store(size_t bytes) {
  store *of = (store *)calloc(1, sizeof(store));
  void *memory = NULL;
  if (bytes != 0 && posix_memalign(&memory, 256, bytes) != 0) abort();
  of->references = 1;
  of->memory = (unsigned char *)memory;
  of->bytes = bytes;
  return of;
}

static size_t size_of(const DLTensor *t) {
  size_t count = 1;
  for (int32_t i = 0; i < t->ndim; i++) count *= (size_t)t->shape[i];
  return (count * t->dtype.bits * t->dtype.lanes + 7) / 8;
}

static mini *new_tensor(store *of, const DLTensor *like) {
  mini *x = (mini *)calloc(1, sizeof(mini));
  int64_t stride = 1;
  x->of = of;
  x->t = *like;
  x->t.shape = x->shape;
  x->t.strides = x->strides;
  for (int32_t i = like->ndim - 1; i >= 0; i--) {
    x->shape[i] = like->shape[i];
    x->strides[i] = like->strides != NULL ? like->strides[i] : stride;
    if (like->strides == NULL && has("NULL strides are 0")) x->strides[i] = 0;
    if (has("ignores strides")) x->strides[i] = stride;
    stride *= like->shape[i];
  }
  return x;
}

static int32_t make(void *context, const DLTensor *values, uint64_t flags, void **tensor) {
  size_t bytes = size_of(values);
  if (has("prints") && puts("made") != EOF) fflush(stdout);
  store *of = new_store(bytes == 0 ? 0 : bytes + 16);
  mini *x = new_tensor(of, values);
  (void)context;
  x->flags = flags;
  x->t.data = of->memory;
  x->t.byte_offset = 0;
  if (has("is aligned to 16 bytes") && bytes != 0) x->t.data = of->memory + 16;
  if (bytes != 0) memcpy(x->t.data, values->data, bytes);
  *tensor = x;
  return 0;
}

/* ---- exports --------------------------------------------------------------------------------*/

static void done(out *o) {
  long count, deletion;
  pthread_mutex_lock(&lock);
  count = --o->references;
  if (count == 0 && o->of->references == 0) count = 1; /* only faults get here */
  deletion = ++deletions;
  pthread_mutex_unlock(&lock);
  if (has("frees on one thread only") && !pthread_equal(home, pthread_self())) abort();
  if (has("frees no later than the tensor") && o->from->dropped) abort();
  if (count != 0) return;
  if (!has("borrows")) unref(o->of);
  for (int i = 0; i < 2 && deletion == 1000 && has("frees three times at 1000"); i++) unref(o->of);
  free(o);
}

static void done_versioned(DLManagedTensorVersioned *self) { done((out *)(void *)self); }

static void done_legacy(DLManagedTensor *self) {
  done((out *)(void *)((char *)self - offsetof(out, legacy)));
}

static void edit(out *o, DLTensor *t) {
  int64_t stride = 1;
  if (has("strides are NULL")) t->strides = NULL;
  if (has("strides count bytes"))
    for (int32_t i = 0; i < t->ndim; i++) o->strides[i] *= t->dtype.bits / 8;
  for (int32_t i = t->ndim - 1; i >= 0 && has("exports compact strides"); i--) {
    o->strides[i] = stride;
    stride *= o->shape[i];
  }
  if (has("bool is uint8") && t->dtype.code == kDLBool) t->dtype.code = kDLUInt;
  if (has("half is bfloat16") && t->dtype.code == kDLFloat && t->dtype.bits == 16)
    t->dtype.code = kDLBfloat;
  if (has("is on device 1")) t->device.device_id = 1;
  if (has("begins at the second element")) t->byte_offset += t->dtype.bits / 8;
  if (has("a scalar has a dimension") && t->ndim == 0) {
    t->ndim = 1;
    o->shape[0] = 1;
  }
  if (has("shares its shape")) t->shape = o->from->shape;
}

static out *new_out(mini *x) {
  out *o = (out *)calloc(1, sizeof(out));
  DLTensor *t = &o->versioned.dl_tensor;
  o->of = x->of;
  o->from = x;
  o->references = 1;
  *t = x->t;
  t->shape = o->shape;
  t->strides = o->strides;
  for (int32_t i = 0; i < x->t.ndim; i++) {
    o->shape[i] = x->shape[i];
    o->strides[i] = x->strides[i];
  }
  if (size_of(t) == 0) {
    t->data = has("data where nothing is") ? (void *)o : NULL;
    t->byte_offset = 0;
  }
  edit(o, t);
  o->versioned.version.major = has("is of version 0.8") ? 0 : 1;
  o->versioned.version.minor = has("is of version 0.8") ? 8 : 3;
  o->versioned.manager_ctx = o;
  o->versioned.deleter = done_versioned;
  o->versioned.flags = x->flags & (uint64_t)~IS_COPIED;
  if (has("keeps IS_COPIED")) o->versioned.flags = x->flags;
  if (has("forgets READ_ONLY")) o->versioned.flags &= (uint64_t)~READ_ONLY;
  if (has("forgets PADDED")) o->versioned.flags &= (uint64_t)~PADDED;
  if (has("has an unknown flag")) o->versioned.flags |= 1 << 9;
  if (has("is IS_COPIED")) o->versioned.flags |= IS_COPIED;
  if (!has("borrows")) ref(o->of);
  return o;
}

static int32_t produce_copy(void *context, void *tensor, DLManagedTensorVersioned **managed) {
  mini *x = (mini *)tensor;
  mini copy = *x;
  out *o;
  size_t bytes = size_of(&x->t);
  copy.of = new_store(bytes + 16);
  if (has("a copy shares")) {
    copy.of = x->of;
    ref(copy.of);
  } else { /* a copy is compact */
    memcpy(copy.of->memory, (char *)x->t.data + x->t.byte_offset, bytes);
    copy.t.data = copy.of->memory;
    copy.t.byte_offset = 0;
  }
  copy.flags &= (uint64_t)~READ_ONLY;
  o = new_out(&copy);
  unref(copy.of);
  o->from = x;
  if (!has("a copy does not say so")) o->versioned.flags |= IS_COPIED;
  *managed = &o->versioned;
  (void)context;
  return 0;
}

static int32_t produce(void *context, void *tensor, DLManagedTensorVersioned **managed) {
  mini *x = (mini *)tensor;
  long count;
  pthread_mutex_lock(&lock);
  count = ++exports;
  pthread_mutex_unlock(&lock);
  if (has("exports 1000 times") && count > 1000) return 1;
  if (has("exports copies")) {
    int32_t status = produce_copy(context, tensor, managed);
    (*managed)->flags &= (uint64_t)~IS_COPIED;
    return status;
  }
  *managed = &new_out(x)->versioned;
  if (has("has 1000000 dimensions")) (*managed)->dl_tensor.ndim = 1000000;
  if (has("has no shape")) (*managed)->dl_tensor.shape = NULL;
  if (has("has no data")) (*managed)->dl_tensor.data = NULL;
  if (x->t.ndim > 0 && has("has a negative extent")) (*managed)->dl_tensor.shape[0] = -1;
  if (x->t.ndim > 0 && has("has a wild extent")) (*managed)->dl_tensor.shape[0] = INT64_MAX;
  if (x->t.ndim > 0 && has("has a wild stride")) (*managed)->dl_tensor.strides[0] = INT64_MIN;
  if (has("has a wild byte_offset")) (*managed)->dl_tensor.byte_offset = UINT64_MAX;
  return 0;
}

static int32_t produce_legacy(void *context, void *tensor, DLManagedTensor **managed) {
  mini *x = (mini *)tensor;
  out *o;
  (void)context;
  if ((x->flags & (READ_ONLY | PADDED)) != 0 && !has("exports READ_ONLY as legacy")) return 1;
  o = new_out(x);
  o->legacy.dl_tensor = o->versioned.dl_tensor;
  o->legacy.manager_ctx = o->versioned.manager_ctx;
  o->legacy.deleter = done_legacy;
  if (has("legacy is another")) {
    o->shape[0] = x->shape[1];
    o->shape[1] = x->shape[0];
  }
  *managed = &o->legacy;
  return 0;
}

/* ---- imports --------------------------------------------------------------------------------*/

static int known_dtype(DLDataType d) {
  if (d.lanes == 0) return has("takes any lanes");
  if (d.lanes != 1) return has("ignores lanes");
  if (has("takes any dtype")) return 1;
  if (d.code == kDLFloat4_e2m1fn) return d.bits == 4;
  if (d.code == kDLBool) return d.bits == 8;
  if (d.code == kDLComplex) return d.bits == 64 || d.bits == 128;
  if (d.code == kDLFloat) return d.bits == 16 || d.bits == 32 || d.bits == 64;
  if (d.code > kDLUInt) return 0;
  return d.bits == 8 || d.bits == 16 || d.bits == 32 || d.bits == 64;
}

static int good(const DLTensor *t) {
  int64_t count = 1;
  int device = (int)t->device.device_type;
  if (device != kDLCPU && device != kDLCUDAHost && !has("takes any device")) return 0;
  if (t->ndim < 0 || t->ndim > MOST) {
    if (has("dies of ndim") && t->ndim < 0) abort();
    return 0;
  }
  if (t->ndim != 0 && t->shape == NULL && !has("dies of shape NULL")) return 0;
  if (!known_dtype(t->dtype)) return 0;
  for (int32_t i = 0; i < t->ndim; i++) {
    int64_t extent = t->shape[i], stride = t->strides == NULL ? 1 : t->strides[i];
    if (extent < 0 && !has("takes any extent")) return 0;
    if (extent > (int64_t)1 << 35 && !has("takes any extent")) return 0;
    if (extent > 1 && (stride > (int64_t)1 << 40) && !has("takes any stride")) return 0;
    if (extent == 1 && stride != 1 && has("minds the strides of extents of 1")) return 0;
    count *= extent;
  }
  return count == 0 || t->data != NULL || has("takes data NULL");
}

static mini *take(const DLTensor *t, DLManagedTensorVersioned *versioned, DLManagedTensor *legacy) {
  store *of;
  mini *x;
  if (!good(t) || (legacy != NULL && has("refuses legacy tensors"))) return NULL;
  of = new_store(0);
  of->versioned = versioned;
  of->legacy = legacy;
  x = new_tensor(of, t);
  x->flags = versioned == NULL ? 0 : versioned->flags;
  if (has("needs the context") && versioned != NULL)
    x->flags |= *(volatile uint8_t *)versioned->manager_ctx & 0;
  if (has("ignores byte_offset")) x->t.byte_offset = 0;
  if (has("takes the second element first")) x->t.byte_offset += 4;
  if (has("rounds addresses")) x->t.data = (char *)t->data - (uintptr_t)t->data % 256;
  if (has("all is float32")) x->t.dtype.code = kDLFloat, x->t.dtype.bits = 32;
  if (has("integers are unsigned") && t->dtype.code == kDLInt) x->t.dtype.code = kDLUInt;
  if (has("integers are signed") && t->dtype.code == kDLUInt) x->t.dtype.code = kDLInt;
  if (has("4 bits are 8") && t->dtype.bits == 4) x->t.dtype.bits = 8;
  if (has("ignores lanes")) x->t.dtype.lanes = 1;
  if (has("nothing is a scalar") && size_of(t) == 0) x->t.ndim = 0;
  if (has("a scalar is a vector") && t->ndim == 0) x->t.ndim = 1, x->shape[0] = 1;
  if (has("extents have 32 bits") && t->ndim > 0) x->shape[0] = (int32_t)t->shape[0];
  if (has("copies") && size_of(t) != 0) {
    of->bytes = size_of(t);
    of->memory = (unsigned char *)malloc(of->bytes);
    memcpy(of->memory, (char *)t->data + t->byte_offset, of->bytes);
    x->t.data = of->memory;
    x->t.byte_offset = 0;
  }
  if (has("frees early")) let_go(of);
  return x;
}

static int32_t consume(void *context, DLManagedTensorVersioned *managed, void **tensor) {
  mini *x = NULL;
  (void)context;
  if (managed->version.major == 1 || has("takes any version"))
    if ((managed->flags & (uint64_t)~(READ_ONLY | IS_COPIED | PADDED)) == 0 ||
        has("takes any flag"))
      x = take(&managed->dl_tensor, managed, NULL);
  for (int i = 0; i < 2 && x == NULL && has("frees what it refuses twice"); i++)
    managed->deleter(managed);
  if (has("writes the struct")) managed->manager_ctx = NULL;
  if (x == NULL) return 1;
  *tensor = x;
  return 0;
}

static int32_t consume_legacy(void *context, DLManagedTensor *managed, void **tensor) {
  mini *x = take(&managed->dl_tensor, NULL, managed);
  (void)context;
  if (x == NULL) return 1;
  *tensor = x;
  return 0;
}

static int32_t read_it(void *context, void *tensor, DLTensor *seen, uint64_t *flags) {
  mini *x = (mini *)tensor;
  (void)context;
  *seen = x->t;
  *flags = has("forgets READ_ONLY") ? 0 : x->flags;
  return 0;
}

static int32_t reshape(void *context, void *tensor) {
  mini *x = (mini *)tensor;
  (void)context;
  x->t.ndim = 1;
  x->shape[0] = 12;
  x->strides[0] = 1;
  return 0;
}

static int32_t view(void *context, void *tensor, int32_t kind, void **made) {
  mini *x = (mini *)tensor, *v = (mini *)calloc(1, sizeof(mini));
  int64_t from = 0, size = x->t.dtype.bits / 8;
  (void)context;
  *v = *x;
  v->t.shape = v->shape;
  v->t.strides = v->strides;
  if (kind == DLRS_CONFORM_TRANSPOSED) {
    v->shape[0] = x->shape[1], v->shape[1] = x->shape[0];
    v->strides[0] = x->strides[1], v->strides[1] = x->strides[0];
  } else if (kind == DLRS_CONFORM_COLUMNS) {
    v->shape[1] = (x->shape[1] + 1) / 2, v->strides[1] = 2 * x->strides[1];
  } else if (kind == DLRS_CONFORM_REVERSED) {
    from = (x->shape[0] - 1) * x->strides[0], v->strides[0] = -x->strides[0];
  } else if (kind == DLRS_CONFORM_BROADCAST) {
    v->t.ndim++;
    memmove(v->shape + 1, x->shape, 2 * sizeof x->shape[0]);
    memmove(v->strides + 1, x->strides, 2 * sizeof x->strides[0]);
    v->shape[0] = 2, v->strides[0] = 0;
  } else {
    from = x->strides[0], v->shape[0]--;
    if (kind == DLRS_CONFORM_INNER) from += x->strides[1], v->shape[1]--;
  }
  if (has("views begin where their base does")) from = 0;
  if (has("views are 0 bytes apart")) v->strides[v->t.ndim - 1] = 0;
  v->t.byte_offset += (uint64_t)(from * size);
  if (!has("views borrow")) ref(v->of);
  *made = v;
  return 0;
}

static void drop(void *context, void *tensor) {
  mini *x = (mini *)tensor;
  (void)context;
  x->dropped = 1;
  unref(x->of);
  if (mini_fault[0] == 0) free(x);
}

/* ---- the C exchange API ---------------------------------------------------------------------*/

static int allocate(DLTensor *prototype, DLManagedTensorVersioned **made, void *context,
                    void (*set_error)(void *, const char *, const char *)) {
  DLTensor wanted = *prototype;
  void *x = NULL;
  static char zeros[64];
  wanted.data = zeros;
  wanted.strides = NULL;
  if (has("allocates nothing")) {
    set_error(context, "MemoryError", "no memory");
    return -1;
  }
  make(NULL, &wanted, 0, &x);
  produce(NULL, x, made);
  drop(NULL, x);
  return 0;
}

static int from_object(void *object, DLManagedTensorVersioned **managed) {
  return produce(NULL, object, managed);
}

static int to_object(DLManagedTensorVersioned *managed, void **object) {
  return consume(NULL, managed, object) == 0 ? 0 : -1;
}

static int borrow(void *object, DLTensor *seen) {
  uint64_t flags;
  read_it(NULL, object, seen, &flags);
  if (has("borrows another element")) seen->byte_offset += 4;
  if (has("has no shape to borrow")) seen->shape = NULL;
  if (has("borrows no strides")) seen->strides = NULL;
  return 0;
}

static int stream_of(DLDeviceType type, int32_t id, void **stream) {
  (void)type, (void)id;
  *stream = NULL;
  return has("has no streams") ? -1 : 0;
}

static void object_drop(void *object) {
  if (has("frees twice with its objects")) let_go(((mini *)object)->of);
  drop(NULL, object);
}

const dlrs_conform_subject *mini_subject(void) {
  static dlrs_conform_subject subject;
  static DLPackExchangeAPI api;
  static const float elements[12] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};
  static int64_t shape[2] = {3, 4};
  DLTensor values;
  if (subject.struct_size != 0) return &subject;
  home = pthread_self();
  api.header.version.major = has("has a table of version 2") ? 2 : 1;
  api.header.version.minor = 3;
  api.managed_tensor_allocator = allocate;
  api.managed_tensor_from_py_object_no_sync = from_object;
  api.managed_tensor_to_py_object_no_sync = to_object;
  api.dltensor_from_py_object_no_sync = borrow;
  api.current_work_stream = has("lacks a function") ? NULL : stream_of;
  memset(&values, 0, sizeof values);
  values.data = (void *)(uintptr_t)elements;
  values.device.device_type = kDLCPU;
  values.ndim = 2;
  values.dtype.code = kDLFloat;
  values.dtype.bits = 32;
  values.dtype.lanes = 1;
  values.shape = shape;
  subject.name = "mini";
  subject.version = "1";
  subject.make = make;
  subject.produce = produce;
  subject.produce_legacy = produce_legacy;
  subject.produce_copy = produce_copy;
  subject.consume = consume;
  subject.consume_legacy = consume_legacy;
  subject.read = read_it;
  subject.reshape = reshape;
  subject.view = view;
  subject.drop = drop;
  subject.exchange_api = &api;
  subject.object_drop = object_drop;
  make(NULL, &values, 0, &subject.object);
  subject.struct_size = sizeof subject;
  return &subject;
}

/* For the program that loads a shared library. */
const dlrs_conform_subject *dlrs_conform_get_subject(void) {
  const char *fault = getenv("MINI_FAULT");
  if (fault != NULL) mini_fault = fault;
  return mini_subject();
}
