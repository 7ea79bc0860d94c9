/* Each setter concurrently with each user, on 8 threads: settings are read once per decision, so
 * that memory is freed by its allocator. Counts must balance. `test_setters N` divides the rounds
 * by N. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <pthread.h>

#include "harness.h"

enum { USERS = 6 };
static long rounds = 1000;

static t_source sources[4];

/* ---- Setters ---------------------------------------------------------------------------------*/

static dlrs_backend backends[2];
static dlrs_allocator allocators[2];
static int device_type;
static long stop;

static void set_backend(int which) {
  /* Neither address nor lifetime of the caller's struct matters after the call. */
  dlrs_backend table = backends[which & 1];
  if (dlrs_backend_set(kDLExtDev, which & 2 ? &table : &backends[which & 1], NULL, NULL)) abort();
  memset(&table, 0xEE, sizeof table);
}
static void set_one_allocator(DLDeviceType device, int which) {
  dlrs_allocator table = allocators[which & 1]; /* as for backends */
  if (dlrs_allocator_set(device, which % 3 == 2 ? NULL : &table, NULL, NULL)) abort();
  memset(&table, 0xEE, sizeof table);
}
static void set_allocator(int which) { set_one_allocator(kDLCPU, which); }
static void set_device_allocator(int which) { set_one_allocator(kDLExtDev, which); }
static void set_driver_path(int which) {
  static char paths[2][24] = {"/nowhere/a.so", "/nowhere/b.so"};
  if (dlrs_driver_path_set(kDLCUDA, paths[which & 1], NULL)) abort();
}

typedef struct setter {
  const char *name;
  void (*set)(int which);
  int device_type;
} setter;
static const setter setters[] = {
    {"backend_set", set_backend, kDLExtDev},
    {"allocator_set", set_allocator, kDLCPU},
    {"allocator_set of a device", set_device_allocator, kDLExtDev},
    {"driver_path_set", set_driver_path, kDLExtDev},
};

static void *sets(void *argument) {
  const setter *s = (const setter *)argument;
  int which = 0;
  while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) s->set(which++);
  return NULL;
}

/* ---- Users -----------------------------------------------------------------------------------*/

static DLDevice where(void) { return t_device(device_type, 0); }

/* Both are allowed: it succeeds, or no memory is left below the limit. */
static int made(int32_t status) {
  if (status != DLRS_OK && status != DLRS_NOMEM) abort();
  return status == DLRS_OK;
}

static DLManagedTensorVersioned *fresh(void) {
  int64_t shape[2] = {3, 5};
  DLManagedTensorVersioned *tensor = NULL;
  return made(dlrs_tensor_new(shape, 2, F32, where(), NULL, &tensor, NULL)) ? tensor : NULL;
}

static void use_new(void) { dlrs_release(fresh()); }
static void use_clone(void) {
  DLManagedTensorVersioned *tensor = fresh(), *copy;
  if (tensor && made(dlrs_clone(tensor, where(), NULL, &copy, NULL))) dlrs_release(copy);
  dlrs_release(tensor);
}
static void use_contiguous(void) {
  DLManagedTensorVersioned *tensor = fresh(), *turned, *copy;
  if (tensor) {
    if (dlrs_view_transpose(tensor, 0, 1, &turned, NULL)) abort();
    dlrs_release(tensor);
    if (made(dlrs_contiguous(turned, 'C', NULL, &copy, NULL))) dlrs_release(copy);
    dlrs_release(turned);
  }
}
static void use_to_device(void) {
  t_tensor good;
  DLManagedTensorVersioned *there, *back;
  t_make(&good);
  if (made(dlrs_to_device(&good.managed, where(), 1, NULL, &there, NULL))) {
    if (made(dlrs_to_device(there, CPU, 1, NULL, &back, NULL))) {
      if (memcmp(back->dl_tensor.data, good.values, 24) != 0) abort();
      dlrs_release(back);
    }
    dlrs_release(there);
  }
}
static void use_import(void) {
  DLManagedTensorVersioned *tensor = fresh(), *taken;
  dlrs_import_options options = DLRS_INIT(dlrs_import_options);
  options.copy = 1;
  if (tensor && made(dlrs_import_take(&tensor, &options, &taken, NULL))) tensor = taken;
  dlrs_release(tensor);
}
static void use_copy(void) {
  DLManagedTensorVersioned *a = fresh(), *b = fresh();
  if (a && b) made(dlrs_copy(a, b, NULL, NULL));
  dlrs_release(a);
  dlrs_release(b);
}
/* Memory has no mark here: only the sum balances. */
static void use_mem(void) {
  void *data;
  if (made(dlrs_mem_alloc(where(), 100, 64, NULL, &data, NULL))) {
    if (dlrs_mem_free(where(), data, 100, 64, NULL, NULL)) abort();
  }
}
static void use_driver(void) {
  int32_t count;
  if (dlrs_device_count(kDLCUDA, &count, NULL) == DLRS_OK || count != 0) abort();
}

typedef struct user {
  const char *name;
  void (*use)(void);
} user;
static const user users[] = {
    {"new", use_new},
    {"clone", use_clone},
    {"contiguous", use_contiguous},
    {"to_device", use_to_device},
    {"import_take", use_import},
    {"copy", use_copy},
    {"mem_alloc, mem_free", use_mem},
    {"device_count", use_driver},
};

static void *uses(void *argument) {
  long i;
  for (i = 0; i < rounds; ++i) ((const user *)argument)->use();
  return NULL;
}

static void beside(const setter *s, const user *u) {
  pthread_t set[2], use[USERS];
  long given = 0, taken = 0;
  int i;
  char context[96];
  snprintf(context, sizeof context, "%s beside %s", s->name, u->name);
  t_context = context;
  memset(sources, 0, sizeof sources);
  device_type = s->device_type;
  stop = 0;
  for (i = 0; i < 2; ++i) CHECK(pthread_create(&set[i], NULL, sets, (void *)(uintptr_t)s) == 0);
  for (i = 0; i < USERS; ++i) CHECK(pthread_create(&use[i], NULL, uses, (void *)(uintptr_t)u) == 0);
  for (i = 0; i < USERS; ++i) pthread_join(use[i], NULL);
  __atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
  for (i = 0; i < 2; ++i) pthread_join(set[i], NULL);
  for (i = 0; i < 4; ++i) {
    given += sources[i].given;
    taken += sources[i].taken;
    if (u->use != use_mem) EQUAL(sources[i].strange, 0);
  }
  EQUAL(taken, given);
  CHECK(dlrs_allocator_set(kDLCPU, NULL, NULL, NULL) == DLRS_OK);
  CHECK(dlrs_allocator_set(kDLExtDev, NULL, NULL, NULL) == DLRS_OK);
  CHECK(dlrs_backend_set(kDLExtDev, &backends[0], NULL, NULL) == DLRS_OK);
  t_context = NULL;
}

static void tables(void) {
  int i;
  for (i = 0; i < 2; ++i) {
    backends[i] = t_backend(&sources[i], i ? "second" : "first");
    /* Without these, streams are waited for by nobody, and nothing is counted. */
    backends[i].device_count = NULL;
    backends[i].stream_sync = NULL;
    allocators[i] = t_allocator(&sources[2 + i]);
  }
}

/* More different tables than there are static slots. */
static void many(void) {
  enum { MANY = 50 };
  int i;
  memset(sources, 0, sizeof sources);
  for (i = 0; i < MANY; ++i) {
    DLManagedTensorVersioned *tensor;
    struct {
      dlrs_backend table;
      unsigned char unknown[MANY]; /* a larger one of a newer header, which sets no more */
    } newer;
    const dlrs_backend *old = NULL;
    int64_t shape[1] = {4};
    char name[24];
    memset(&newer, 0, sizeof newer);
    newer.table = backends[1];
    snprintf(name, sizeof name, "number %d", i);
    newer.table.name = name;
    newer.table.context = &sources[i % 4];
    newer.table.struct_size = (uint32_t)(sizeof newer.table + (size_t)i);
    WORKS(dlrs_backend_set(kDLMAIA, &newer.table, NULL, ERR));
    WORKS(dlrs_tensor_new(shape, 1, F32, t_device(kDLMAIA, 0), NULL, &tensor, ERR));
    WORKS(dlrs_backend_set(kDLMAIA, NULL, &old, ERR));
    CHECK(old == &newer.table);
    dlrs_release(tensor);
  }
  for (i = 0; i < 4; ++i) {
    CHECK(sources[i].given >= MANY / 4 && sources[i].given == sources[i].taken);
    EQUAL(sources[i].strange, 0);
  }
}

int main(int argc, char **argv) {
  const long divisor = argc > 1 ? atol(argv[1]) : 1;
  size_t i, j;
  rounds /= divisor;
  tables();
  CHECK(dlrs_backend_set(kDLExtDev, &backends[0], NULL, NULL) == DLRS_OK);
  for (i = 0; i < sizeof setters / sizeof *setters; ++i) {
    for (j = 0; j < sizeof users / sizeof *users; ++j) beside(&setters[i], &users[j]);
  }
  if (divisor == 1) many(); /* leaks memory, permanently */
  CHECK(dlrs_backend_set(kDLExtDev, NULL, NULL, NULL) == DLRS_OK);
  return t_close();
}
