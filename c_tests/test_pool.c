/* Pools: reuse, statistics, limit, trimming, blocks that outlive their pool, bases that fail,
 * threads and fork. */
#define _DEFAULT_SOURCE /* fork */
#include "harness.h"

#include <pthread.h>
#ifndef _WIN32
#include <sys/wait.h>
#endif
#include <unistd.h>

/* ---- A base that counts, can fail, and can return inaccessible memory ------------------------*/

typedef struct {
  long allocs, frees, wrong; /* wrong: freed with other values than allocated with */
  long fail_at;              /* the k-th call fails; 0: none */
  long balance_bytes;
  uint64_t room;          /* fails beyond this many bytes; 0: no limit */
  uint64_t off;           /* added to every address: misaligned memory */
  int untouchable;        /* returns addresses without memory */
  DLDevice device;
} base_state;

static long add(long *number, long by) { return __atomic_add_fetch(number, by, __ATOMIC_RELAXED); }

/* The request is stored in front of the memory. */
typedef struct {
  void *memory;
  uint64_t nbytes, align_bytes;
} base_header;

static void *base_alloc(void *context, uint64_t nbytes, uint64_t align_bytes, DLDevice device) {
  base_state *state = context;
  long call = add(&state->allocs, 1);
  char *memory, *data;
  base_header header;
  if (call == state->fail_at ||
      (state->room != 0 && (uint64_t)state->balance_bytes + nbytes > state->room)) {
    add(&state->allocs, -1);
    if (call == state->fail_at) state->fail_at = 0;
    return NULL;
  }
  if (device.device_type != state->device.device_type ||
      device.device_id != state->device.device_id) {
    add(&state->wrong, 1);
  }
  add(&state->balance_bytes, (long)nbytes);
  if (state->untouchable) return (void *)((uintptr_t)call << (sizeof(void *) * 4));
  memory = malloc((size_t)(nbytes + align_bytes + sizeof header + state->off));
  if (memory == NULL) return NULL;
  data = memory + sizeof header;
  data += (align_bytes - ((uintptr_t)data & (align_bytes - 1))) & (align_bytes - 1);
  data += state->off;
  header.memory = memory;
  header.nbytes = nbytes;
  header.align_bytes = align_bytes;
  memcpy(data - sizeof header, &header, sizeof header);
  return data;
}

static void base_free(void *context, void *data, uint64_t nbytes, uint64_t align_bytes,
                      DLDevice device) {
  base_state *state = context;
  base_header header;
  add(&state->frees, 1);
  add(&state->balance_bytes, -(long)nbytes);
  if (device.device_type != state->device.device_type) add(&state->wrong, 1);
  if (state->untouchable) return;
  memcpy(&header, (char *)data - sizeof header, sizeof header);
  if (header.nbytes != nbytes || header.align_bytes != align_bytes) add(&state->wrong, 1);
  free(header.memory);
}

static base_state state;
static dlrs_allocator base;

static void base_reset(void) {
  memset(&state, 0, sizeof state);
  state.device = CPU;
  memset(&base, 0, sizeof base);
  base.struct_size = sizeof base;
  base.context = &state;
  base.alloc = base_alloc;
  base.free = base_free;
}

static dlrs_pool *pool_on(const dlrs_allocator *allocator, uint64_t limit_nbytes) {
  dlrs_pool_options options;
  dlrs_pool *pool = NULL;
  memset(&options, 0, sizeof options);
  options.struct_size = sizeof options;
  options.device = state.device;
  options.limit_nbytes = limit_nbytes;
  options.base = allocator;
  WORKS(dlrs_pool_create(&options, &pool, ERR));
  return pool;
}

static dlrs_pool_statistics stats_of(const dlrs_pool *pool) {
  dlrs_pool_statistics stats;
  memset(&stats, 0xA5, sizeof stats);
  stats.struct_size = sizeof stats;
  WORKS(dlrs_pool_stats(pool, &stats, ERR));
  EQUAL(stats.struct_size, sizeof stats);
  return stats;
}

static void expect(const dlrs_pool *pool, long live_blocks, long live_nbytes, long cached_blocks,
                   long cached_nbytes) {
  dlrs_pool_statistics stats = stats_of(pool);
  EQUAL(stats.live_blocks, live_blocks);
  EQUAL(stats.live_nbytes, live_nbytes);
  EQUAL(stats.cached_blocks, cached_blocks);
  EQUAL(stats.cached_nbytes, cached_nbytes);
}

static dlrs_alloc_options from(const dlrs_pool *pool, uint32_t align_bytes) {
  dlrs_alloc_options options;
  memset(&options, 0, sizeof options);
  options.struct_size = sizeof options;
  options.align_bytes = align_bytes;
  options.allocator = dlrs_pool_allocator(pool);
  return options;
}

#define U8 t_dtype(kDLUInt, 8, 1)

static dlrs_status make(const dlrs_pool *pool, int64_t nbytes, uint32_t align_bytes,
                        DLManagedTensorVersioned **out) {
  dlrs_alloc_options options = from(pool, align_bytes);
  return dlrs_tensor_new(&nbytes, 1, U8, state.device, &options, out, ERR);
}

static void refused(const dlrs_pool *pool, int64_t nbytes, dlrs_status status) {
  dlrs_alloc_options options = from(pool, 0);
  DLManagedTensorVersioned *out = NULL;
  t_result(&out);
  REFUSED(status, ANY, ANY, ANY,
          dlrs_tensor_new(&nbytes, 1, U8, state.device, &options, &out, ERR));
  t_unwatch();
}

static DLManagedTensorVersioned *made(const dlrs_pool *pool, int64_t nbytes, uint32_t align_bytes) {
  DLManagedTensorVersioned *tensor = NULL;
  WORKS(make(pool, nbytes, align_bytes, &tensor));
  return tensor;
}

static void *data_of(const DLManagedTensorVersioned *tensor) {
  return tensor == NULL ? NULL : tensor->dl_tensor.data;
}

/* The pool is destroyed, and all its blocks are freed. */
static void balanced(void) {
  EQUAL(state.allocs, state.frees);
  EQUAL(state.balance_bytes, 0);
  EQUAL(state.wrong, 0);
}

/* ---- Tests ----------------------------------------------------------------------------------*/

static void arguments(void) {
  dlrs_pool *pool;
  dlrs_pool_options options;
  dlrs_pool_statistics stats;
  t_context = "arguments";
  base_reset();
  t_result(&pool);
  REFUSED(DLRS_NULL_ARG, 2, DLRS_FIELD_NONE, -1, dlrs_pool_create(NULL, NULL, ERR));
  EQUAL(dlrs_pool_create(NULL, NULL, NULL), DLRS_NULL_ARG);
  memset(&options, 0, sizeof options);
  REFUSED(DLRS_STRUCT_SIZE, 1, DLRS_FIELD_STRUCT_SIZE, -1, dlrs_pool_create(&options, &pool, ERR));
  options.struct_size = sizeof options - 1;
  REFUSED(DLRS_STRUCT_SIZE, 1, DLRS_FIELD_STRUCT_SIZE, -1, dlrs_pool_create(&options, &pool, ERR));
  options.struct_size = sizeof options;
  options.device = t_device(99, 0);
  REFUSED(DLRS_DEVICE_TYPE, 1, DLRS_FIELD_DEVICE_TYPE, -1, dlrs_pool_create(&options, &pool, ERR));
  options.device = t_device(kDLCUDA, -1);
  REFUSED(DLRS_DEVICE_ID, 1, DLRS_FIELD_DEVICE_ID, -1, dlrs_pool_create(&options, &pool, ERR));
  options.device = t_device(kDLCUDA, 0);
  REFUSED(DLRS_DEVICE_TYPE, 1, DLRS_FIELD_DEVICE_TYPE, -1, dlrs_pool_create(&options, &pool, ERR));
  options.device = CPU;
  options.base = &base;
  base.struct_size = 8;
  REFUSED(DLRS_STRUCT_SIZE, 1, DLRS_FIELD_STRUCT_SIZE, -1, dlrs_pool_create(&options, &pool, ERR));
  base.struct_size = sizeof base;
  base.free = NULL;
  REFUSED(DLRS_NULL_ARG, 1, DLRS_FIELD_OPTION, -1, dlrs_pool_create(&options, &pool, ERR));
  base.free = base_free;
  base.alloc = NULL;
  REFUSED(DLRS_NULL_ARG, 1, DLRS_FIELD_OPTION, -1, dlrs_pool_create(&options, &pool, ERR));
  t_unwatch();

  dlrs_pool_release(NULL);
  CHECK(dlrs_pool_allocator(NULL) == NULL);
  REFUSED(DLRS_NULL_ARG, 1, DLRS_FIELD_NONE, -1, dlrs_pool_trim(NULL, 0, ERR));
  REFUSED(DLRS_NULL_ARG, 1, DLRS_FIELD_NONE, -1, dlrs_pool_set_limit(NULL, 0, ERR));
  memset(&stats, 0, sizeof stats);
  t_watch(&stats, sizeof stats);
  REFUSED(DLRS_NULL_ARG, 1, DLRS_FIELD_NONE, -1, dlrs_pool_stats(NULL, &stats, ERR));
  WORKS(dlrs_pool_create(NULL, &pool, ERR));
  REFUSED(DLRS_NULL_ARG, 2, DLRS_FIELD_NONE, -1, dlrs_pool_stats(pool, NULL, ERR));
  REFUSED(DLRS_STRUCT_SIZE, 2, DLRS_FIELD_STRUCT_SIZE, -1, dlrs_pool_stats(pool, &stats, ERR));
  t_unwatch();
  dlrs_pool_release(pool);

  /* Zeros mean the CPU without a limit; a newer header's struct is accepted if it sets no more. */
  {
    struct {
      dlrs_pool_options known;
      uint64_t unknown;
    } newer;
    memset(&newer, 0, sizeof newer);
    newer.known.struct_size = sizeof newer;
    newer.unknown = 1;
    REFUSED(DLRS_STRUCT_SIZE, 1, DLRS_FIELD_STRUCT_SIZE, -1,
            dlrs_pool_create(&newer.known, &pool, ERR));
    newer.unknown = 0;
    WORKS(dlrs_pool_create(&newer.known, &pool, ERR));
    dlrs_release(made(pool, 1, 0));
    expect(pool, 0, 0, 1, 256);
    dlrs_pool_release(pool);
  }
}

static void reuse(void) {
  dlrs_pool *pool;
  DLManagedTensorVersioned *a, *b, *c;
  void *first, *aligned;
  dlrs_pool_statistics stats;
  t_context = "reuse";
  base_reset();
  pool = pool_on(&base, 0);
  expect(pool, 0, 0, 0, 0);
  a = made(pool, 1000, 0);
  first = data_of(a);
  EQUAL((uintptr_t)first % 256, 0);
  memset(first, 7, 1000);
  expect(pool, 1, 1024, 0, 0);
  dlrs_release(a);
  expect(pool, 0, 0, 1, 1024);
  /* 897 to 1024 bytes are one class; 64 requests less than the existing alignment. */
  a = made(pool, 897, 64);
  CHECK(data_of(a) == first);
  b = made(pool, 1000, 0);
  CHECK(data_of(b) != first);
  dlrs_release(a);
  c = made(pool, 1025, 0);
  CHECK(data_of(c) != first);
  dlrs_release(made(pool, 0, 0)); /* size zero never reaches the pool */
  expect(pool, 2, 1024 + 1280, 1, 1024);
  dlrs_release(b);
  dlrs_release(c);
  /* Another alignment uses another list. */
  a = made(pool, 1000, 4096);
  aligned = data_of(a);
  EQUAL((uintptr_t)aligned % 4096, 0);
  dlrs_release(a);
  a = made(pool, 1000, 0);
  CHECK(data_of(a) != aligned);
  b = made(pool, 1000, 4096);
  CHECK(data_of(b) == aligned);
  dlrs_release(a);
  dlrs_release(b);
  stats = stats_of(pool);
  EQUAL(stats.hits, 3);
  EQUAL(stats.misses, 4);
  EQUAL(stats.limit_nbytes, 0);
  EQUAL(state.allocs, 4);
  dlrs_pool_release(pool);
  balanced();
}

/* Every power of two of alignment, on the library's memory. */
static void alignments(void) {
  dlrs_pool *pool;
  uint32_t align_bytes;
  t_context = "alignments";
  base_reset();
  WORKS(dlrs_pool_create(NULL, &pool, ERR));
  for (align_bytes = 1; align_bytes <= 1u << 30; align_bytes *= 2) {
    DLManagedTensorVersioned *tensor = made(pool, 300, align_bytes);
    uintptr_t wanted = align_bytes < 256 ? 256 : align_bytes;
    if (tensor == NULL) continue;
    EQUAL((uintptr_t)data_of(tensor) % wanted, 0);
    memset(data_of(tensor), 1, 300);
    dlrs_release(tensor);
  }
  dlrs_pool_release(pool);
}

/* The allocator, called from C. */
static void direct(void) {
  dlrs_pool *pool;
  const dlrs_allocator *allocator;
  void *data;
  t_context = "direct";
  base_reset();
  pool = pool_on(&base, 0);
  allocator = dlrs_pool_allocator(pool);
  EQUAL(allocator->struct_size, sizeof *allocator);
  CHECK(allocator->alloc(allocator->context, 64, 64, t_device(kDLCUDA, 0)) == NULL);
  CHECK(allocator->alloc(allocator->context, 64, 64, t_device(kDLCPU, 1)) == NULL);
  CHECK(allocator->alloc(allocator->context, 64, 0, CPU) == NULL);
  CHECK(allocator->alloc(allocator->context, 64, 3, CPU) == NULL);
  CHECK(allocator->alloc(allocator->context, 64, (uint64_t)1 << 31, CPU) == NULL);
  CHECK(allocator->alloc(allocator->context, UINT64_MAX, 64, CPU) == NULL);
  CHECK(allocator->alloc(allocator->context, ((uint64_t)1 << 46) + 1, 64, CPU) == NULL);
  EQUAL(state.allocs, 0);
  data = allocator->alloc(allocator->context, 64, 64, CPU);
  CHECK(data != NULL);
  allocator->free(allocator->context, NULL, 64, 64, CPU);
  expect(pool, 1, 256, 0, 0);
  allocator->free(allocator->context, data, 64, 64, CPU);
  expect(pool, 0, 0, 1, 256);
  dlrs_pool_release(pool);
  balanced();
}

static void trim(void) {
  dlrs_pool *pool;
  DLManagedTensorVersioned *tensors[4];
  int i;
  t_context = "trim";
  base_reset();
  pool = pool_on(&base, 0);
  for (i = 0; i < 4; ++i) tensors[i] = made(pool, 1024 << i, 0);
  WORKS(dlrs_pool_trim(pool, 0, ERR));
  EQUAL(state.frees, 0); /* no block is cached yet */
  for (i = 0; i < 3; ++i) dlrs_release(tensors[i]);
  expect(pool, 1, 8192, 3, 7168);
  WORKS(dlrs_pool_trim(pool, 7168, ERR));
  EQUAL(state.frees, 0);
  WORKS(dlrs_pool_trim(pool, 7167, ERR)); /* the largest is freed */
  EQUAL(state.frees, 1);
  expect(pool, 1, 8192, 2, 3072);
  WORKS(dlrs_pool_trim(pool, 1024, ERR));
  expect(pool, 1, 8192, 1, 1024);
  WORKS(dlrs_pool_trim(pool, 0, ERR));
  WORKS(dlrs_pool_trim(pool, 0, ERR));
  expect(pool, 1, 8192, 0, 0);
  dlrs_release(tensors[3]);
  expect(pool, 0, 0, 1, 8192);
  dlrs_pool_release(pool);
  balanced();
}

static void limit(void) {
  dlrs_pool *pool;
  DLManagedTensorVersioned *a, *b, *c;
  t_context = "limit";
  base_reset();
  pool = pool_on(&base, 8192);
  EQUAL(stats_of(pool).limit_nbytes, 8192);
  a = made(pool, 4096, 0);
  b = made(pool, 4096, 0);
  refused(pool, 256, DLRS_NOMEM);
  EQUAL(state.allocs, 2);
  dlrs_release(a);
  /* Cached blocks are freed for another size. */
  WORKS(make(pool, 2048, 0, &c));
  EQUAL(state.frees, 1);
  expect(pool, 2, 4096 + 2048, 0, 0);
  dlrs_release(c);
  dlrs_release(b);
  refused(pool, 8193, DLRS_NOMEM);
  a = made(pool, 8192, 0);
  expect(pool, 1, 8192, 0, 0);
  dlrs_release(a);

  a = made(pool, 2048, 0);
  b = made(pool, 4096, 0);
  dlrs_release(b);
  WORKS(dlrs_pool_set_limit(pool, 1024, ERR)); /* below the size in use: frees cached ones */
  expect(pool, 1, 2048, 0, 0);
  refused(pool, 256, DLRS_NOMEM);
  dlrs_release(a);
  expect(pool, 0, 0, 0, 0); /* nor is it kept beyond the limit */
  WORKS(dlrs_pool_set_limit(pool, 0, ERR));
  EQUAL(stats_of(pool).limit_nbytes, 0);
  a = made(pool, 1 << 20, 0);
  dlrs_release(a);
  dlrs_pool_release(pool);
  balanced();
}

/* Tensors outlive their pool, whose release frees its cached blocks. */
static void outlive(void) {
  dlrs_pool *pool;
  DLManagedTensorVersioned *a, *b;
  t_context = "outlive";
  base_reset();
  pool = pool_on(&base, 0);
  a = made(pool, 1000, 0);
  b = made(pool, 2000, 0);
  dlrs_release(made(pool, 3000, 0));
  EQUAL(state.frees, 0);
  dlrs_pool_release(pool);
  EQUAL(state.frees, 1);
  memset(data_of(a), 1, 1000);
  dlrs_release(a);
  EQUAL(state.frees, 2);
  memset(data_of(b), 1, 2000);
  dlrs_release(b);
  balanced();
}

/* A struct of a newer header: its unknown members become 0, and nothing behind it is written. */
static void newer_statistics(void) {
  struct {
    dlrs_pool_statistics known;
    uint64_t newer[2], behind;
  } out;
  dlrs_pool *pool;
  WORKS(dlrs_pool_create(NULL, &pool, ERR));
  memset(&out, 0xEE, sizeof out);
  out.known.struct_size = sizeof out.known + sizeof out.newer;
  WORKS(dlrs_pool_stats(pool, &out.known, ERR));
  EQUAL(out.known.struct_size, sizeof out.known + sizeof out.newer);
  CHECK(out.known.live_blocks == 0 && out.newer[0] == 0 && out.newer[1] == 0);
  CHECK(out.behind == 0xEEEEEEEEEEEEEEEEu);
  dlrs_pool_release(pool);
}

/* Behind dlrs_allocator_set; and a pool below a pool. */
static void stacked(void) {
  dlrs_pool *lower, *upper;
  DLManagedTensorVersioned *a = NULL;
  const dlrs_allocator *old = &base;
  int64_t extent = 5000;
  t_context = "stacked";
  base_reset();
  lower = pool_on(&base, 0);
  upper = pool_on(dlrs_pool_allocator(lower), 0);
  WORKS(dlrs_allocator_set(kDLCPU, dlrs_pool_allocator(upper), &old, ERR));
  CHECK(old == NULL);
  WORKS(dlrs_tensor_new(&extent, 1, U8, CPU, NULL, &a, ERR));
  WORKS(dlrs_allocator_set(kDLCPU, NULL, &old, ERR));
  CHECK(old == dlrs_pool_allocator(upper));
  expect(upper, 1, 5120, 0, 0);
  expect(lower, 1, 5120, 0, 0);
  dlrs_pool_release(lower); /* its block, in use by the upper pool, keeps it */
  dlrs_pool_release(upper);
  EQUAL(state.frees, 0);
  dlrs_release(a);
  balanced();
}

/* A device with inaccessible memory. */
static void device(void) {
  dlrs_pool *pool;
  DLManagedTensorVersioned *tensor;
  void *data;
  int i;
  t_context = "device";
  base_reset();
  state.device = t_device(kDLCUDA, 3);
  state.untouchable = 1;
  pool = pool_on(&base, 0);
  tensor = made(pool, 100000, 0);
  data = data_of(tensor);
  EQUAL(tensor->dl_tensor.device.device_id, 3);
  dlrs_release(tensor);
  tensor = made(pool, 100000, 0);
  CHECK(data_of(tensor) == data);
  for (i = 0; i < 300; ++i) dlrs_release(made(pool, 1 + i * 1000, 0));
  dlrs_release(tensor);
  dlrs_pool_release(pool);
  balanced();
}

/* A base that fails, once at each of its calls; one that is full; one that aligns badly. */
static void failing_base(void) {
  dlrs_pool *pool;
  DLManagedTensorVersioned *tensor, *full;
  long k;
  t_context = "failing base";
  for (k = 1; k <= 5; ++k) {
    int i, refused = 0;
    base_reset();
    pool = pool_on(&base, 0);
    state.fail_at = k;
    for (i = 0; i < 4; ++i) {
      if (make(pool, 1000 << i, 0, &tensor) == DLRS_NOMEM) {
        CHECK(tensor == NULL);
        ++refused;
        WORKS(make(pool, 1000 << i, 0, &tensor)); /* the next call succeeds */
      }
      dlrs_release(tensor);
    }
    /* Only at the first request is there no cached block that a retry could free. */
    EQUAL(refused, k == 1);
    dlrs_pool_release(pool);
    balanced();
  }
  base_reset();
  state.room = 4096;
  pool = pool_on(&base, 0);
  dlrs_release(made(pool, 2048, 0));
  full = made(pool, 4096, 0); /* the cached block is freed, and it fits */
  expect(pool, 1, 4096, 0, 0);
  refused(pool, 1, DLRS_NOMEM);
  expect(pool, 1, 4096, 0, 0);
  dlrs_release(full);
  dlrs_pool_release(pool);
  balanced();
  base_reset();
  state.off = 64;
  pool = pool_on(&base, 0);
  tensor = made(pool, 1000, 64);
  dlrs_release(tensor);
  EQUAL(state.frees, 1); /* sufficient for this request, but not cached */
  refused(pool, 1000, DLRS_MISALIGNED);
  EQUAL(state.frees, 2); /* freed once */
  expect(pool, 0, 0, 0, 0);
  dlrs_pool_release(pool);
  balanced();
}

/* The k-th malloc fails, once and from then on: no memory is lost, no state is inconsistent. */
static void no_memory(void) {
  long k, before = inject_live();
  int forever, fired = 1;
  t_context = "no memory";
  if (!inject_works()) return;
  for (forever = 0; forever < 2; ++forever) {
    for (k = 1, fired = 1; fired && k < 100; ++k) {
      dlrs_pool *pool = NULL;
      DLManagedTensorVersioned *tensors[70];
      int i, count = 0, refused = 0;
      base_reset();
      inject_arm(k, forever);
      if (dlrs_pool_create(NULL, &pool, ERR) != DLRS_OK) {
        CHECK(pool == NULL);
        ++refused;
      } else {
        for (i = 0; i < 70; ++i) { /* more than a chunk of nodes */
          if (make(pool, 1000, 0, &tensors[count]) == DLRS_OK) {
            ++count;
          } else {
            CHECK(tensors[count] == NULL);
            ++refused;
          }
        }
      }
      fired = inject_disarm();
      /* A retry after trimming can satisfy the request whose first attempt failed. */
      EQUAL(refused > 0, fired);
      if (pool != NULL) {
        EQUAL(stats_of(pool).live_blocks, count);
        EQUAL(stats_of(pool).live_nbytes, count * 1024);
        dlrs_release(made(pool, 1000, 0));
      }
      while (count > 0) dlrs_release(tensors[--count]);
      dlrs_pool_release(pool);
      EQUAL(inject_live(), before);
    }
  }
}

/* ---- Threads --------------------------------------------------------------------------------*/

enum { THREADS = 8, KEPT = 32 };
static long steps = 100000;

typedef struct {
  dlrs_pool *pool;
  uint64_t seed;
  long wrong;
} worker;

static uint64_t next(uint64_t *seed) {
  *seed ^= *seed << 13;
  *seed ^= *seed >> 7;
  *seed ^= *seed << 17;
  return *seed;
}

/* The first and last byte of a tensor carry its owner's mark during its lifetime. */
static void *work(void *argument) {
  worker *self = argument;
  DLManagedTensorVersioned *kept[KEPT] = {NULL};
  uint64_t seed = self->seed;
  long step;
  int i;
  dlrs_alloc_options options = from(self->pool, 0);
  for (step = 0; step < steps; ++step) {
    DLManagedTensorVersioned **slot = &kept[next(&seed) % KEPT];
    unsigned char mark = (unsigned char)self->seed;
    if (*slot != NULL) {
      unsigned char *bytes = (*slot)->dl_tensor.data;
      int64_t last = (*slot)->dl_tensor.shape[0] - 1;
      self->wrong += bytes[0] != mark || bytes[last] != mark;
      dlrs_release(*slot);
      *slot = NULL;
    } else {
      int64_t nbytes = 1 + (int64_t)(next(&seed) % 5000);
      unsigned char *bytes;
      options.align_bytes = next(&seed) % 8 == 0 ? 4096 : 0;
      if (dlrs_tensor_new(&nbytes, 1, U8, CPU, &options, slot, NULL) != 0) continue;
      bytes = (*slot)->dl_tensor.data;
      bytes[0] = bytes[nbytes - 1] = mark;
    }
    if (step % 5000 == 0) dlrs_pool_trim(self->pool, next(&seed) % 100000, NULL);
    if (step % 7000 == 0) dlrs_pool_set_limit(self->pool, 500000 + next(&seed) % 500000, NULL);
  }
  for (i = 0; i < KEPT; ++i) dlrs_release(kept[i]);
  return NULL;
}

static void threads(void) {
  pthread_t ids[THREADS];
  worker workers[THREADS];
  dlrs_pool *pool;
  dlrs_pool_statistics stats;
  int i;
  t_context = "threads";
  base_reset();
  pool = pool_on(&base, 1000000);
  for (i = 0; i < THREADS; ++i) {
    workers[i].pool = pool;
    workers[i].seed = 0x9E3779B97F4A7C15u * (uint64_t)(i + 1) | 1;
    workers[i].seed = (workers[i].seed & ~(uint64_t)0xFF) | (uint64_t)(i + 1);
    workers[i].wrong = 0;
    CHECK(pthread_create(&ids[i], NULL, work, &workers[i]) == 0);
  }
  for (i = 0; i < THREADS; ++i) {
    pthread_join(ids[i], NULL);
    EQUAL(workers[i].wrong, 0);
  }
  stats = stats_of(pool);
  EQUAL(stats.live_blocks, 0);
  EQUAL(stats.live_nbytes, 0);
  EQUAL(stats.cached_nbytes, state.balance_bytes);
  EQUAL(stats.cached_blocks, state.allocs - state.frees);
  CHECK(stats.hits > stats.misses);
  dlrs_pool_release(pool);
  balanced();
}

/* The last blocks are freed on other threads while the pool is released. */
static void *free_all(void *argument) {
  DLManagedTensorVersioned **tensors = argument;
  int i;
  for (i = 0; i < KEPT; ++i) dlrs_release(tensors[i]);
  return NULL;
}

static void release_race(void) {
  int round;
  t_context = "release race";
  base_reset();
  for (round = 0; round < 200; ++round) {
    dlrs_pool *pool = pool_on(&base, 0);
    DLManagedTensorVersioned *tensors[2][KEPT];
    pthread_t ids[2];
    int i;
    for (i = 0; i < 2 * KEPT; ++i) tensors[i / KEPT][i % KEPT] = made(pool, 500, 0);
    for (i = 0; i < 2; ++i) pthread_create(&ids[i], NULL, free_all, tensors[i]);
    dlrs_pool_release(pool);
    for (i = 0; i < 2; ++i) pthread_join(ids[i], NULL);
  }
  balanced();
}

#ifndef _WIN32 /* which does not fork */
/* Children of a process whose other thread is inside the pool do not deadlock. */
static void *busy(void *argument) {
  worker *self = argument;
  const dlrs_allocator *allocator = dlrs_pool_allocator(self->pool);
  while (!__atomic_load_n(&self->wrong, __ATOMIC_RELAXED)) {
    void *data = allocator->alloc(allocator->context, 1000, 64, CPU);
    if (data != NULL) allocator->free(allocator->context, data, 1000, 64, CPU);
  }
  return NULL;
}

static void forked(void) {
  worker self = {NULL, 0, 0};
  pthread_t id;
  int round;
  t_context = "fork";
  base_reset();
  WORKS(dlrs_pool_create(NULL, &self.pool, ERR));
  CHECK(pthread_create(&id, NULL, busy, &self) == 0);
  for (round = 0; round < 50; ++round) {
    int status = -1, i;
    pid_t child = fork();
    if (child == 0) {
      alarm(20);
      for (i = 0; i < 200; ++i) {
        const dlrs_allocator *allocator = dlrs_pool_allocator(self.pool);
        void *data = allocator->alloc(allocator->context, 1000, 64, CPU);
        if (data == NULL) _exit(1);
        memset(data, i, 1000);
        allocator->free(allocator->context, data, 1000, 64, CPU);
      }
      _exit(0);
    }
    CHECK(waitpid(child, &status, 0) == child);
    EQUAL(status, 0);
  }
  __atomic_store_n(&self.wrong, 1, __ATOMIC_RELAXED);
  pthread_join(id, NULL);
  dlrs_pool_release(self.pool);
}
#endif

int main(int argc, char **argv) {
  long live = inject_live();
  if (argc > 1) steps = atol(argv[1]); /* for valgrind: fewer, and no fork, which loses blocks */
  arguments();
  reuse();
  alignments();
  direct();
  trim();
  limit();
  outlive();
  stacked();
  device();
  failing_base();
  no_memory();
  t_context = "all but threads"; /* of which the C library keeps some memory */
  EQUAL(inject_live(), live);
  newer_statistics();
  threads();
  release_race();
#ifndef _WIN32
  if (argc == 1) forked();
#endif
  return t_close();
}
