/* Calls on the device of a plugged backend, while at each of their points something goes wrong: an
 * allocation of the host fails, once or from then on; a function of the backend fails, returns a
 * number that is no status, reports success and gives nothing, or gives memory that is not aligned.
 * A call that fails has taken, written and leaked nothing and called no deleter, and succeeds
 * afterwards. */
#include "harness.h"

#define THERE t_device(kDLExtDev, 0)

enum { FAILS, NO_STATUS, NOTHING, MISALIGNED, NO_MEMORY, NO_MEMORY_ANY_MORE, WAYS };
static const char *const ways[] = {"fails",      "no status", "nothing",
                                   "misaligned", "no memory", "no memory any more"};

static struct {
  int way, at, calls; /* of its functions, counted from 1, the one that is wrong; 0: none */
  int fired;
  long memory, objects; /* that are not given back */
  int object[4];
} device;

static int wrong(int way) {
  if (device.way != way || device.calls != device.at) return 0;
  device.fired = 1;
  return 1;
}

static int32_t enter(void) {
  ++device.calls;
  return wrong(FAILS) ? DLRS_STREAM : wrong(NO_STATUS) ? 12345 : DLRS_OK;
}

static int32_t counts(void *context, int32_t type, int32_t *out, dlrs_fault *fault) {
  (void)context, (void)type, (void)fault;
  *out = 1;
  return DLRS_OK;
}

/* In one array, which begins anew when all was given back. */
static int32_t allocates(void *context, DLDevice there, uint64_t nbytes, uint64_t align, void *stream,
                         void **out, dlrs_fault *fault) {
  const int32_t status = enter();
  static unsigned char room[1 << 20];
  static size_t used;
  (void)context, (void)there, (void)stream, (void)fault;
  if (status != DLRS_OK || wrong(NOTHING)) return status;
  if (device.memory == 0) used = 0;
  used += (size_t)(0 - (uintptr_t)(room + used)) & ((size_t)align - 1);
  *out = room + used + (wrong(MISALIGNED) ? 1 : 0);
  used += (size_t)nbytes + 1;
  if (used > sizeof room) abort();
  ++device.memory;
  return DLRS_OK;
}

static int32_t frees(void *context, DLDevice there, void *data, uint64_t nbytes, uint64_t align,
                     void *stream, dlrs_fault *fault) {
  (void)context, (void)there, (void)stream, (void)fault;
  CHECK(data != NULL && nbytes > 0 && align > 0);
  --device.memory;
  return DLRS_OK;
}

static int32_t copies(void *context, DLDevice there, const dlrs_byte_plan *plan, void *stream,
                      dlrs_fault *fault) {
  const int32_t status = enter();
  (void)context, (void)there, (void)stream, (void)fault;
  if (status != DLRS_OK) return status;
  if (plan->ndim > 0) return DLRS_UNSUPPORTED; /* so others go through the host */
  memcpy((char *)plan->dst + plan->dst_offset, (const char *)plan->src + plan->src_offset,
         (size_t)plan->item_nbytes);
  return DLRS_OK;
}

static int32_t syncs(void *context, DLDevice there, void *stream, dlrs_fault *fault) {
  (void)context, (void)there, (void)stream, (void)fault;
  return enter();
}

static int32_t makes(void *context, DLDevice there, void **out, dlrs_fault *fault) {
  const int32_t status = enter();
  (void)context, (void)there, (void)fault;
  if (status != DLRS_OK || wrong(NOTHING)) return status;
  *out = &device.object[device.objects++];
  return DLRS_OK;
}

static int32_t drops(void *context, DLDevice there, void *object, dlrs_fault *fault) {
  (void)context, (void)there, (void)fault;
  CHECK(object != NULL);
  --device.objects;
  return DLRS_OK;
}

static int32_t records(void *context, DLDevice there, void *event, void *stream, dlrs_fault *fault) {
  (void)context, (void)there, (void)stream, (void)fault;
  CHECK(event != NULL);
  return enter();
}

static int32_t done(void *context, DLDevice there, void *object, int32_t *out, dlrs_fault *fault) {
  (void)context, (void)there, (void)object, (void)fault;
  *out = 1;
  return enter();
}

static int32_t event_syncs(void *context, DLDevice there, void *event, dlrs_fault *fault) {
  return syncs(context, there, event, fault);
}

/* ---- Calls ----------------------------------------------------------------------------------*/

static struct {
  t_tensor host;
  DLManagedTensorVersioned *in, *there, *other, *out;
  const DLManagedTensorVersioned *from[2];
  DLManagedTensorVersioned *onto[2];
  dlrs_import_options import;
  void *handle;
} S;

static int64_t shape[2] = {2, 3};

static void make(void) {
  memset(&S, 0, sizeof S);
  t_make(&S.host);
  WORKS(dlrs_tensor_new(shape, 2, F32, THERE, NULL, &S.there, ERR));
  WORKS(dlrs_tensor_new(shape, 2, F32, THERE, NULL, &S.other, ERR));
  S.other->dl_tensor.strides[0] = 1; /* not dense, so that copies of it are staged */
  S.other->dl_tensor.strides[1] = 2;
  S.in = &S.host.managed;
  S.from[0] = S.in;
  S.from[1] = S.there;
  S.onto[0] = S.there;
  S.onto[1] = S.other;
  S.import.struct_size = sizeof S.import;
  S.import.copy = 1;
  S.import.align_bytes = 4096;
}

/* Foreign to the library, and on the device. */
static void make_foreign(void) {
  make();
  S.host.managed.dl_tensor.device = THERE;
}
static void make_recorded(void) {
  make();
  WORKS(dlrs_ready_record(S.there, NULL, ERR));
}

static int32_t news(void) { return dlrs_tensor_new(shape, 2, F32, THERE, NULL, &S.out, ERR); }
static int32_t clones(void) { return dlrs_clone(S.in, THERE, NULL, &S.out, ERR); }
static int32_t clones_back(void) { return dlrs_clone(S.there, CPU, NULL, &S.out, ERR); }
static int32_t clones_staged(void) { return dlrs_clone(S.other, CPU, NULL, &S.out, ERR); }
static int32_t goes(void) { return dlrs_to_device(S.in, THERE, 1, NULL, &S.out, ERR); }
static int32_t gathers(void) { return dlrs_contiguous(S.other, 'C', NULL, &S.out, ERR); }
static int32_t imports(void) { return dlrs_import_take(&S.in, &S.import, &S.out, ERR); }
static int32_t batches(void) { return dlrs_copy_batch(2, S.from, S.onto, NULL, NULL, ERR); }
static int32_t copies_there(void) { return dlrs_copy(S.in, S.there, NULL, ERR); }
static int32_t scatters(void) { return dlrs_copy(S.in, S.other, NULL, ERR); }
static int32_t marks(void) { return dlrs_ready_record(S.there, NULL, ERR); }
static int32_t waits(void) { return dlrs_ready_wait(S.there, THERE, NULL, ERR); }
static int32_t defers(void) { return dlrs_release_after_take(&S.in, THERE, NULL, ERR); }
static int32_t allots(void) { return dlrs_mem_alloc(THERE, 8, 64, NULL, &S.handle, ERR); }

static void undo(int32_t status) {
  dlrs_release(S.out);
  if (status == DLRS_OK && S.handle) WORKS(dlrs_mem_free(THERE, S.handle, 8, 64, NULL, ERR));
  WORKS(dlrs_release_drain(NULL, ERR));
  dlrs_release(S.there);
  dlrs_release(S.other);
}

static const struct {
  const char *name;
  void (*make)(void);
  int32_t (*call)(void);
  int takes; /* S.in, whose deleter then runs in the end */
} calls[] = {{"tensor_new", make, news, 0},
             {"clone", make, clones, 0},
             {"clone to the CPU", make, clones_back, 0},
             {"clone of a strided one", make, clones_staged, 0},
             {"to_device", make, goes, 0},
             {"contiguous", make, gathers, 0},
             {"import_take", make_foreign, imports, 1},
             {"copy_batch", make, batches, 0},
             {"copy", make, copies_there, 0},
             {"copy, staged", make, scatters, 0},
             {"ready_record", make, marks, 0},
             {"ready_record again", make_recorded, marks, 0},
             {"ready_wait", make_recorded, waits, 0},
             {"clone of a recorded one", make_recorded, clones_back, 0},
             {"release_after_take", make, defers, 1},
             {"mem_alloc", make, allots, 0}};

/* Whether there was such a point. */
static int point(size_t i, int way, int at) {
  const int memory = way >= NO_MEMORY;
  long deleted, live, held, objects;
  int32_t status;
  calls[i].make();
  deleted = t_deleted;
  live = inject_live();
  held = device.memory;
  objects = device.objects;
  device.calls = device.fired = 0;
  if (memory) {
    inject_arm(at, way == NO_MEMORY_ANY_MORE);
  } else {
    device.way = way;
    device.at = at;
  }
  status = calls[i].call();
  device.at = 0;
  if (memory) device.fired = inject_disarm();
  if (status != DLRS_OK) {
    CHECK(device.fired && S.out == NULL && S.handle == NULL && S.in == &S.host.managed);
    EQUAL(t_deleted, deleted);
    EQUAL(inject_live(), live);
    EQUAL(device.memory, held);
    EQUAL(device.objects, objects);
    status = calls[i].call();
  }
  EQUAL(status, DLRS_OK);
  undo(status);
  EQUAL(t_deleted, deleted + calls[i].takes);
  EQUAL(device.memory, 0);
  EQUAL(device.objects, 0);
  return device.fired || (!memory && at <= device.calls);
}

int main(void) {
  dlrs_backend backend;
  long points = 0;
  size_t i;
  int way, at;
  memset(&backend, 0, sizeof backend);
  backend.struct_size = sizeof backend;
  backend.name = "faulty";
  backend.device_count = counts;
  backend.alloc = allocates;
  backend.free = frees;
  backend.copy = copies;
  backend.stream_sync = syncs;
  backend.stream_create = backend.event_create = makes;
  backend.stream_destroy = backend.event_destroy = drops;
  backend.event_query = done;
  backend.event_record = backend.event_wait = records;
  backend.event_sync = event_syncs;
  WORKS(dlrs_backend_set(kDLExtDev, &backend, NULL, ERR));
  for (i = 0; i < sizeof calls / sizeof *calls; ++i) {
    for (way = 0; way < WAYS; ++way) {
      char context[80];
      if (way >= NO_MEMORY && !inject_works()) continue;
      snprintf(context, sizeof context, "%s: %s", calls[i].name, ways[way]);
      t_context = context;
      for (at = 1; point(i, way, at) && at < 100; ++at) ++points;
      CHECK(at < 100);
    }
  }
  t_context = "all";
  CHECK(points > 100); /* else they are not reached */
  return t_close();
}
