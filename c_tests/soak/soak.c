/* Random operations for hours: soak SECONDS [SEED [THREADS]].
 *
 * Threads create, wrap, import, share, convert, view, copy, cast and free tensors, pass them to
 * each other, set the global allocator and fork. A hash tells whether elements stay what they are:
 * none is written once another thread may have a reference. That they are the right ones is for
 * other tests.
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
#include "random.h"
#include "scattered.h"

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

static int one_in(int n) { return below(n) == 0; }

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

static DLDataType random_dtype(void) {
  static const unsigned char kinds[][2] = {{kDLUInt, 8},   {kDLInt, 8},    {kDLFloat, 16},
                                           {kDLBfloat, 16}, {kDLInt, 32},  {kDLFloat, 32},
                                           {kDLUInt, 64},  {kDLFloat, 64}, {kDLComplex, 128}};
  const unsigned char *kind = kinds[below(9)];
  return t_dtype(kind[0], kind[1], 1);
}

/* A shape: mostly small, sometimes with an extent of 0, now and then large enough for kernels, and
 * rarely for the library's threads. */
static int32_t random_shape(int64_t *shape) {
  int32_t ndim = below(5), d;
  int largest = 8;
  if (one_in(50)) {
    ndim = 2 + below(2);
    largest = ndim == 2 ? 200 : 30;
  }
  for (d = 0; d < ndim; ++d) shape[d] = one_in(40) ? 0 : 1 + below(largest);
  if (one_in(4000)) {
    ndim = 2;
    shape[0] = 700 + below(300);
    shape[1] = 500 + below(300);
  }
  return ndim;
}

/* ---- Owned tensors --------------------------------------------------------------------------*/

static void let_go(DLManagedTensorVersioned *tensor) {
  if (tensor == NULL) return;
  if (one_in(2)) {
    dlrs_release(tensor);
  } else {
    tensor->deleter(tensor);
  }
}

static void put(worker *w, DLManagedTensorVersioned *tensor, uint64_t hash, int read_only) {
  item *slot = &w->own[below(OWN)];
  let_go(slot->tensor);
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
  int32_t ndim = random_shape(shape);
  DLManagedTensorVersioned *tensor = NULL;
  dlrs_alloc_options options = DLRS_INIT(dlrs_alloc_options);
  options.align_bytes = one_in(4) ? 1u << below(13) : 0;
  if (!EXPECT(dlrs_tensor_new(shape, ndim, random_dtype(), CPU, &options, &tensor, NULL) ==
              DLRS_OK)) {
    return;
  }
  draw_bytes(tensor->dl_tensor.data,
               (size_t)(element_count(&tensor->dl_tensor) * element_nbytes(&tensor->dl_tensor)));
  put(w, tensor, hash_of(&tensor->dl_tensor), 0);
}

/* Memory for a tensor, which then has any strides. */
static void *scattered_memory(DLTensor *tensor, int64_t *strides) {
  int64_t bits = tensor->dtype.bits, room = 0;
  void *memory;
  while (!scattered(tensor->ndim, tensor->shape, bits, 0, room, strides, &tensor->byte_offset)) {
    room = 2 * room + element_count(tensor) * element_nbytes(tensor) + 64;
  }
  tensor->strides = strides;
  memory = room_for((size_t)room);
  draw_bytes(memory, (size_t)room);
  return memory;
}

static DLTensor lend(int64_t *shape, int64_t *strides) {
  DLTensor tensor = t_describe(NULL, random_dtype(), random_shape(shape), shape, NULL);
  tensor.data = scattered_memory(&tensor, strides);
  return tensor;
}

static void wrap(worker *w) {
  int64_t shape[NDIM_MAX], strides[NDIM_MAX];
  DLTensor lent = lend(shape, strides);
  DLManagedTensorVersioned *tensor = NULL;
  uint64_t hash = hash_of(&lent), flags = one_in(4) ? DLPACK_FLAG_BITMASK_READ_ONLY : 0;
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

static foreign *make_foreign(debt **mine) {
  foreign *made = (foreign *)room_for(sizeof *made);
  memset(made, 0, sizeof *made);
  made->managed = t_managed(lend(made->shape, made->strides), 0);
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
  foreign *made = make_foreign(&mine);
  DLManagedTensorVersioned *given = &made->managed, *tensor = NULL;
  uint64_t hash = hash_of(&given->dl_tensor);
  dlrs_import_options options = DLRS_INIT(dlrs_import_options);
  int32_t status;
  options.copy = below(3) - 1;
  options.order = "\0CFAK"[below(5)];
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
  foreign *made = make_foreign(&mine);
  DLManagedTensor *given = &made->legacy;
  DLManagedTensorVersioned *tensor = NULL;
  uint64_t hash = hash_of(&given->dl_tensor);
  if (one_in(8)) {
    dlrs_release_legacy(given);
  } else if (EXPECT(dlrs_from_legacy_take(&given, 0, &tensor, NULL) == DLRS_OK)) {
    EXPECT(given == NULL);
    put_checked(w, tensor, hash, 0);
  }
}

/* ---- Operations -----------------------------------------------------------------------------*/

static item *pick(worker *w) {
  item *slot = &w->own[below(OWN)];
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
  let_go(slot->tensor);
  slot->tensor = NULL;
}

static void hand_over(worker *w) {
  item *slot = pick(w), other;
  int place = below(EXCHANGED);
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
  int32_t policy = below(3), status;
  uint64_t flags = one_in(4) ? DLPACK_FLAG_BITMASK_READ_ONLY : 0;
  if (slot == NULL) return;
  status = dlrs_to_legacy_take(&slot->tensor, policy, &legacy, NULL);
  if (policy == DLRS_LEGACY_REFUSE && slot->read_only) {
    EXPECT(status == DLRS_READ_ONLY && slot->tensor != NULL && legacy == NULL);
    return;
  }
  if (!EXPECT(status == DLRS_OK && slot->tensor == NULL)) return;
  EXPECT(hash_of(&legacy->dl_tensor) == slot->hash);
  if (one_in(8)) {
    if (one_in(2)) {
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
  if (!EXPECT(dlrs_attach(slot->tensor, pay, mine, below(2), NULL) == DLRS_OK)) {
    forget(mine);
  } else if (one_in(2)) {
    EXPECT(dlrs_detach(slot->tensor, pay, mine, NULL) == DLRS_OK);
    forget(mine);
  }
}

static void view(worker *w) {
  item *slot = pick(w);
  DLManagedTensorVersioned *base, *out = NULL;
  int32_t ndim, axis, other, status = DLRS_OK;
  int read_only;
  if (slot == NULL || slot->tensor->dl_tensor.ndim == 0) return;
  base = slot->tensor;
  ndim = base->dl_tensor.ndim;
  axis = (int32_t)below(ndim);
  other = (int32_t)below(ndim);
  read_only = slot->read_only;
  switch (below(4)) {
    case 0:
      status = dlrs_view_slice(base, axis, below(4), INT64_MAX, 1 + below(3), &out, NULL);
      break;
    case 1: status = dlrs_view_flip(base, axis - ndim, &out, NULL); break;
    case 2: status = dlrs_view_transpose(base, axis, other, &out, NULL); break;
    default:
      if (ndim == NDIM_MAX) return;
      status = dlrs_view_unsqueeze(base, axis, &out, NULL);
  }
  if (EXPECT(status == DLRS_OK)) put(w, out, hash_of(&out->dl_tensor), read_only);
}

static void duplicate(worker *w) {
  item *slot = pick(w);
  DLManagedTensorVersioned *out = NULL;
  uint64_t hash;
  int32_t equal = 0, status;
  int plain = one_in(2), read_only;
  if (slot == NULL) return;
  hash = slot->hash;
  status = plain ? dlrs_clone(slot->tensor, CPU, NULL, &out, NULL)
                 : dlrs_contiguous(slot->tensor, "CFAK"[below(4)], NULL, &out, NULL);
  if (!EXPECT(status == DLRS_OK)) return;
  EXPECT(dlrs_equal(slot->tensor, out, DLRS_EQUAL_BITS, &equal, NULL) == DLRS_OK && equal == 1);
  /* Without a copy the result is another reference; its readers must not write then. */
  read_only = plain ? 0 : slot->read_only;
  if (!plain && out->dl_tensor.data != slot->tensor->dl_tensor.data) read_only = 0;
  put_checked(w, out, hash, read_only);
}

/* Into memory with any strides. */
static void copy(worker *w) {
  item *slot = pick(w);
  int64_t strides[NDIM_MAX];
  DLTensor into;
  dlrs_copy_options options = DLRS_INIT(dlrs_copy_options);
  if (slot == NULL) return;
  into = slot->tensor->dl_tensor;
  into.data = scattered_memory(&into, strides);
  options.threads = (uint32_t)below(4);
  EXPECT(dlrs_copy_desc(&slot->tensor->dl_tensor, 0, &into, DLPACK_FLAG_BITMASK_READ_ONLY,
                        &options, NULL) == DLRS_READ_ONLY);
  EXPECT(dlrs_copy_desc(&slot->tensor->dl_tensor, 0, &into, 0, &options, NULL) == DLRS_OK);
  EXPECT(hash_of(&into) == slot->hash);
  free(into.data);
}

/* Integers to floats that have them all, and back. */
static void cast(worker *w) {
  item *slot = pick(w);
  const DLTensor *from;
  DLManagedTensorVersioned *middle = NULL, *back = NULL;
  if (slot == NULL) return;
  from = &slot->tensor->dl_tensor;
  if (from->dtype.code != kDLInt) return;
  if (EXPECT(dlrs_tensor_new(from->shape, from->ndim, t_dtype(kDLFloat, 64, 1), CPU, NULL, &middle,
                             NULL) == DLRS_OK) &&
      EXPECT(dlrs_tensor_new_like(from, NULL, &back, NULL) == DLRS_OK)) {
    EXPECT(dlrs_cast(slot->tensor, middle, NULL, NULL) == DLRS_OK);
    EXPECT(dlrs_cast(middle, back, NULL, NULL) == DLRS_OK);
    EXPECT(hash_of(&back->dl_tensor) == slot->hash);
  }
  let_go(middle);
  let_go(back);
}

static void text(worker *w) {
  char name[64], printed[200];
  DLDataType dtype = random_dtype(), again = t_dtype(0, 0, 0);
  size_t nbytes = 0;
  item *slot = pick(w);
  int32_t status;
  EXPECT(dlrs_dtype_format(dtype, name, sizeof name, &nbytes, NULL) == DLRS_OK);
  EXPECT(dlrs_dtype_parse(name, nbytes, &again, NULL) == DLRS_OK);
  EXPECT(memcmp(&again, &dtype, sizeof dtype) == 0);
  if (slot == NULL) return;
  status = dlrs_managed_to_string(slot->tensor, NULL, printed, sizeof printed, &nbytes, NULL);
  EXPECT(status == (nbytes < sizeof printed ? DLRS_OK : DLRS_BUF_SMALL));
}

/* Calls that fail, change nothing, and report why. */
static void refused(worker *w) {
  dlrs_error error = DLRS_INIT(dlrs_error);
  item *slot = pick(w);
  DLManagedTensorVersioned *out = NULL;
  const int64_t shape[2] = {3, -1};
  if (slot == NULL) return;
  EXPECT(dlrs_tensor_new(shape, 2, F32, CPU, NULL, &out, &error) == DLRS_SHAPE_NEG);
  EXPECT(dlrs_contiguous(slot->tensor, 'X', NULL, &out, &error) == DLRS_BAD_ARG);
  EXPECT(dlrs_detach(slot->tensor, pay, &error, &error) == DLRS_BAD_ARG);
  EXPECT(out == NULL && strstr(error.message, "dlrs_detach") == error.message);
  EXPECT(hash_of(&slot->tensor->dl_tensor) == slot->hash);
}

/* ---- Global settings, and processes ----------------------------------------------------------*/

static t_source plain_source;
static dlrs_allocator plain_allocator;

/* The CPU's allocator, with which every other thread creates tensors meanwhile. */
static void set_allocator(worker *w) {
  const dlrs_allocator *new_one = one_in(2) ? &plain_allocator : NULL, *old = NULL;
  EXPECT(dlrs_allocator_set(kDLCPU, new_one, &old, NULL) == DLRS_OK);
  EXPECT(old == NULL || old == &plain_allocator);
}

/* The child has one thread, whatever state the others were in. */
static void fork_one(worker *w) {
  int status = -1;
  pid_t child;
  if (!one_in(64)) return;
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
  state = w->state;
  do {
    for (i = 0; i < 64; ++i, ++w->operations) operations[below(kinds)](w);
  } while (now() < w->until);
  for (i = 0; i < OWN; ++i) {
    if (w->own[i].tensor != NULL) {
      EXPECT(hash_of(&w->own[i].tensor->dl_tensor) == w->own[i].hash);
      let_go(w->own[i].tensor);
    }
    w->own[i].tensor = NULL;
  }
  w->state = state;
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
