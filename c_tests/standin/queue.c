/* Streams and events. Enqueued work stays in its stream until a call waits or queries; then steps
 * run in any order that the rules of streams allow. */
#include "core.h"
#include "program.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { COPY, FILL, KERNEL, RECORD, WAIT, ALLOC, FREE, RANGE, HOST };
enum { STREAMS = 1024, EVENTS = 4096, CAPTURES = 16, MAX_PITCH = 2147483647 };

/* A point in a stream's work, shared by the event, the step that reaches it and its waiters. */
typedef struct mark {
  int reached, refs;
} mark;

typedef struct op {
  struct op *next;
  int kind, value;
  uint64_t order;
  copy2d copy;
  mark *mark;
  block *uses[8]; /* must not be freed before */
  int used;
  program *program;
  int kernel; /* its number in the program */
  unsigned blocks;
  unsigned char argument[PROGRAM_ARGUMENT];
  void (*host)(void *);
  void *with;
} op;

typedef struct capture {
  int state, mode; /* 1 in progress, 2 invalidated */
  pthread_t thread;
  struct stream *origin;
  uint64_t context;
  op *first, **last;
  long steps;
} capture;

typedef struct stream {
  uint64_t handle;
  context *context;
  int live, used, legacy, nonblocking;
  pthread_t thread;
  op *first, **last;
  capture *capture;
  long captured, joined; /* index of its last captured step; and how far it is joined */
} stream;

typedef struct event {
  uint64_t handle;
  int live, device;
  uint64_t context;
  mark *mark;
  capture *capture;
  stream *recorded;
  long step;
} event;

static stream streams[STREAMS];
static event events[EVENTS];
static capture captures[CAPTURES];
static uint64_t orders;

/* ---- Looking up -----------------------------------------------------------------------------*/

static stream *stream_make(context *on, uint64_t handle, int legacy) {
  for (int i = 0; i < STREAMS; ++i) {
    if (streams[i].used) continue;
    memset(&streams[i], 0, sizeof streams[i]);
    streams[i].used = streams[i].live = 1;
    streams[i].handle = handle;
    streams[i].context = on;
    streams[i].legacy = legacy;
    streams[i].thread = pthread_self();
    streams[i].last = &streams[i].first;
    return &streams[i];
  }
  return NULL;
}

/* A context's default streams: the legacy one and one for each thread. */
static stream *stream_special(uint64_t number) {
  context *here = current();
  if (here == NULL) return NULL;
  int legacy = number != 2;
  for (int i = 0; i < STREAMS; ++i) {
    stream *it = &streams[i];
    if (it->used && it->context == here && it->handle < 3 && it->legacy == legacy &&
        (legacy || pthread_equal(it->thread, pthread_self()))) {
      return it;
    }
  }
  return stream_make(here, legacy ? 0 : 2, legacy);
}

static stream *stream_of(void *handle) {
  uint64_t number = (uint64_t)(uintptr_t)handle;
  if (number == 0 || number == 2 || (number == 1 && is_hip != 5)) return stream_special(number);
  for (int i = 0; i < STREAMS; ++i) {
    if (streams[i].live && streams[i].handle == number) return &streams[i];
  }
  return NULL;
}

static event *event_of(void *handle) {
  for (int i = 0; i < EVENTS; ++i) {
    if (events[i].live && events[i].handle == (uint64_t)(uintptr_t)handle) return &events[i];
  }
  return NULL;
}

static void mark_drop(mark *self) {
  if (self != NULL && --self->refs == 0) free(self);
}

static void op_free(op *self) {
  mark_drop(self->mark);
  free(self);
}

/* ---- Capture --------------------------------------------------------------------------------*/

static int capture_break(capture *self, int code) {
  if (self->state == 1) {
    self->state = 2;
    ++stats.captures_broken;
  }
  return code;
}

/* This thread's capture mode: 0 captures of any thread, 1 its own, 2 none. */
static _Thread_local int careful;

int capture_exchange(int *mode) {
  int old = careful;
  if (*mode < 0 || *mode > 2) return E_VALUE;
  careful = *mode;
  *mode = old;
  return OK;
}

int capture_forbids(void) {
  int code = OK;
  for (int i = 0; i < CAPTURES && careful != 2; ++i) {
    capture *it = &captures[i];
    int own = pthread_equal(it->thread, pthread_self());
    if (it->state != 1 || it->mode == 2) continue;
    if (!own && (it->mode != 0 || careful != 0)) continue;
    code = capture_break(it, E_CAPTURE_UNSUPPORTED);
  }
  return code;
}

/* Work on the legacy stream would wait for blocking streams that capture. Querying its capture
 * status fails in the same way, but invalidates nothing. */
static int legacy_captures(const stream *self, int breaks) {
  int code = OK;
  if (!self->legacy) return OK;
  for (int i = 0; i < STREAMS; ++i) {
    stream *it = &streams[i];
    if (it->live && it->capture && it->context == self->context && !it->nonblocking) {
      code = E_CAPTURE_IMPLICIT;
      if (breaks) capture_break(it->capture, code);
    }
  }
  return code;
}

static int legacy_forbidden(const stream *self) { return legacy_captures(self, 1); }

/* A wait for a stream or a query of it is not permitted while it captures. */
static int capture_waits(const stream *self) {
  if (self->capture == NULL) return legacy_forbidden(self);
  if (self->capture->state == 2) return E_CAPTURE_INVALIDATED;
  return capture_break(self->capture, E_CAPTURE_UNSUPPORTED);
}

int capture_begin(void *handle, int mode) {
  stream *self = stream_of(handle);
  if (self == NULL) return E_HANDLE;
  if (self->legacy) return E_CAPTURE_UNSUPPORTED;
  if (self->capture != NULL || mode < 0 || mode > 2) return self->capture ? 401 : E_VALUE;
  for (int i = 0; i < CAPTURES; ++i) {
    capture *it = &captures[i];
    if (it->state != 0) continue;
    memset(it, 0, sizeof *it);
    it->state = 1;
    it->mode = mode;
    it->thread = pthread_self();
    it->origin = self;
    it->context = self->context->handle;
    it->last = &it->first;
    self->capture = it;
    self->captured = self->joined = 0;
    return OK;
  }
  return E_NOMEM;
}

typedef struct graph {
  uint64_t handle;
  op *first;
} graph;
enum { GRAPHS = 64 };
static graph graphs[GRAPHS];

static void ops_free(op *list) {
  while (list != NULL) {
    op *next = list->next;
    op_free(list);
    list = next;
  }
}

/* Removes a capture from its streams; returns whether all of them were joined. */
static int capture_close(capture *self) {
  int joined = 1;
  for (int i = 0; i < STREAMS; ++i) {
    stream *it = &streams[i];
    if (!it->used || it->capture != self) continue;
    if (it != self->origin && it->joined < it->captured) joined = 0;
    it->capture = NULL;
  }
  for (int i = 0; i < EVENTS; ++i) {
    if (events[i].capture == self) events[i].capture = NULL;
  }
  return joined;
}

int capture_end(void *handle, void **out) {
  stream *self = stream_of(handle);
  if (self == NULL) return E_HANDLE;
  capture *it = self->capture;
  if (it == NULL) return 401;
  if (it->origin != self) return capture_break(it, E_CAPTURE_UNMATCHED);
  int joined = capture_close(it), broken = it->state == 2;
  op *first = it->first;
  it->state = 0;
  *out = NULL;
  if (broken || !joined) {
    ops_free(first);
    return broken ? E_CAPTURE_INVALIDATED : E_CAPTURE_UNJOINED;
  }
  for (int i = 0; i < GRAPHS; ++i) {
    if (graphs[i].handle != 0) continue;
    graphs[i].handle = handle_new(GRAPH);
    graphs[i].first = first;
    ++stats.graphs;
    *out = (void *)(uintptr_t)graphs[i].handle;
    return OK;
  }
  ops_free(first);
  return E_NOMEM;
}

int stream_capturing(void *handle, int *status) {
  stream *self = stream_of(handle);
  if (self == NULL) return E_HANDLE;
  if (legacy_captures(self, 0) != OK) return E_CAPTURE_IMPLICIT;
  *status = self->capture == NULL ? 0 : self->capture->state;
  return OK;
}

/* ---- Enqueuing ------------------------------------------------------------------------------*/

static void use(op *self, const void *address) {
  block *it = block_of(address);
  if (it == NULL || self->used == 8) return;
  for (int i = 0; i < self->used; ++i) {
    if (self->uses[i] == it) return;
  }
  self->uses[self->used++] = it;
  ++it->in_use;
}

static op *op_new(int kind) {
  op *self = calloc(1, sizeof *self);
  if (self == NULL) abort();
  self->kind = kind;
  return self;
}

/* Takes ownership of the work, also when it is rejected. */
static int enqueue(stream *on, op *work) {
  int code = legacy_forbidden(on);
  if (code == OK && on->capture != NULL && on->capture->state == 2) code = E_CAPTURE_INVALIDATED;
  if (code != OK) {
    for (int i = 0; i < work->used; ++i) --work->uses[i]->in_use;
    op_free(work);
    return code;
  }
  if (on->capture != NULL) {
    for (int i = 0; i < work->used; ++i) --work->uses[i]->in_use;
    work->used = 0;
    on->captured = ++on->capture->steps;
    *on->capture->last = work;
    on->capture->last = &work->next;
    return OK;
  }
  work->order = ++orders;
  *on->last = work;
  on->last = &work->next;
  ++stats.pending;
  return OK;
}

static int extent(size_t pitch, size_t width, size_t height, size_t *out) {
  return height == 0 || __builtin_mul_overflow(pitch, height - 1, out) ||
         __builtin_add_overflow(*out, width, out);
}

/* Whether an operand of a copy is of the call's kind; E_VALUE if not. Memory of another device's
 * pool is valid only in calls that name both devices. */
static int operand(const stream *on, const unsigned char *address, size_t pitch, const copy2d *copy,
                   int kind) {
  size_t nbytes;
  block *it = block_of(address);
  if (pitch < copy->width || extent(pitch, copy->width, copy->height, &nbytes)) return E_VALUE;
  if (it == NULL) {
    if (freed_before(address)) {
      violation("a copy of memory that was freed is enqueued");
      return E_VALUE;
    }
    return kind == 2 || address == NULL ? E_VALUE : OK;
  }
  if (it->dying) {
    violation("a copy of memory is enqueued after its stream-ordered free");
    return E_VALUE;
  }
  if (nbytes > it->nbytes - (size_t)(address - it->address)) return E_VALUE;
  if (it->pool && it->device != on->context->device && !copy->peer) return E_VALUE;
  return kind == 1 && it->kind == DEVICE_MEMORY ? E_VALUE : OK;
}

static int step(stream *target);

/* What is wrong with the operands of a copy. */
int copy_check(const copy2d *copy, void *handle) {
  stream *on = stream_of(handle);
  if (on == NULL) return E_HANDLE;
  if (copy->width == 0 || copy->height == 0) return OK;
  if (copy->dst_pitch > MAX_PITCH && copy->height > 1) return E_VALUE;
  if (copy->src_pitch > MAX_PITCH && copy->height > 1) return E_VALUE;
  if (copy->height == 1 && copy->dst < copy->src + copy->width && copy->src < copy->dst + copy->width) {
    violation("the two sides of a copy overlap");
  }
  int code = operand(on, copy->dst, copy->dst_pitch, copy, copy->dst_kind);
  return code == OK ? operand(on, copy->src, copy->src_pitch, copy, copy->src_kind) : code;
}

int copy_enqueue(const copy2d *copy, void *handle) {
  stream *on = stream_of(handle);
  int code = copy_check(copy, handle);
  if (code != OK || copy->width == 0 || copy->height == 0) return code;
  op *work = op_new(COPY);
  work->copy = *copy;
  use(work, copy->dst);
  use(work, copy->src);
  int pageable = block_of(copy->dst) == NULL || block_of(copy->src) == NULL;
  code = enqueue(on, work);
  while (code == OK && pageable && set.pageable && on->capture == NULL && on->first && step(on)) {
  }
  return code == OK && on->context->lost ? on->context->lost : code;
}

int fill_enqueue(void *address, int value, size_t nbytes, void *handle) {
  stream *on = stream_of(handle);
  copy2d copy = {address, NULL, nbytes, nbytes, nbytes, 1, 2, 4, 0};
  if (on == NULL) return E_HANDLE;
  if (nbytes == 0) return OK;
  int code = operand(on, address, nbytes, &copy, 2);
  block *it = block_of(address);
  if (code == OK && !memory_seen(it, on->context)) code = E_VALUE;
  if (code != OK) return code;
  op *work = op_new(FILL);
  work->copy = copy;
  work->value = value;
  use(work, address);
  return enqueue(on, work);
}

/* A prefetch: checked, and enqueued as a step that does nothing. */
int range_enqueue(const void *address, size_t nbytes, int device, void *handle) {
  stream *on = stream_of(handle);
  block *it = block_of(address);
  if (on == NULL) return E_HANDLE;
  if (device != -1 && !is_device(device)) return E_DEVICE;
  if (it == NULL || it->kind != MANAGED_MEMORY || nbytes == 0) return E_VALUE;
  if (nbytes > it->nbytes - (size_t)((const unsigned char *)address - it->address)) return E_VALUE;
  op *work = op_new(RANGE);
  use(work, address);
  return enqueue(on, work);
}

int host_enqueue(void (*function)(void *), void *with, void *handle) {
  stream *on = stream_of(handle);
  if (on == NULL || function == NULL) return on ? E_VALUE : E_HANDLE;
  op *work = op_new(HOST);
  work->host = function, work->with = with;
  return enqueue(on, work);
}

int alloc_enqueue(size_t nbytes, void *handle, void **out) {
  stream *on = stream_of(handle);
  if (on == NULL) return E_HANDLE;
  if (!set.pools) return E_NOT_SUPPORTED;
  *out = NULL;
  if (nbytes == 0) return OK;
  int code = memory_new(DEVICE_MEMORY, nbytes, on->context->device, out);
  if (code != OK) return code;
  block *made = block_of(*out);
  made->context = on->context->handle;
  made->pool = made->unready = 1;
  op *work = op_new(ALLOC);
  work->copy.dst = *out;
  code = enqueue(on, work);
  if (code == OK) return OK;
  block_drop(made);
  *out = NULL;
  return code;
}

int free_enqueue(void *address, void *handle) {
  stream *on = stream_of(handle);
  if (on == NULL) return E_HANDLE;
  if (!set.pools) return E_NOT_SUPPORTED;
  if (address == NULL) return OK;
  block *it = block_of(address);
  if (it == NULL || it->address != address || it->kind != DEVICE_MEMORY || it->dying) {
    violation("stream-ordered free of what is not, or no longer, a block");
    return E_VALUE;
  }
  if (it->device != on->context->device) {
    violation("memory of device %d freed on a stream of device %d", it->device,
              on->context->device);
  }
  op *work = op_new(FREE);
  work->copy.dst = address;
  int code = enqueue(on, work);
  if (code == OK && on->capture == NULL) it->dying = 1;
  return code;
}

/* ---- Modules and kernels --------------------------------------------------------------------*/

typedef struct module {
  uint64_t handle, context;
  program *program;
} module;
typedef struct kernel {
  uint64_t handle, module, context;
  program *program;
  int number;
} kernel;
enum { MODULES = 64, KERNELS = 1024, TEXTS = 256 };
static module modules[MODULES];
static kernel kernels[KERNELS];

/* PTX 7.y came with CUDA 11.y, 8.y with 12.y, 9.y with 13.y. */
int image_check(const char *text) {
  const char *line = strstr(text, ".version ");
  if (line == NULL || strstr(text, ".target ") == NULL) return E_IMAGE;
  int major = (int)strtol(line + 9, (char **)&line, 10);
  int minor = (int)strtol(line + 1, NULL, 10);
  return !is_hip && (major + 4) * 1000 + minor * 10 > set.version ? 222 : OK;
}

/* The program of a text, which is parsed once and kept for work that outlives its module. */
static program *program_of(const char *text) {
  static struct {
    char *text;
    program *of;
  } known[TEXTS];
  char wrong[200];
  for (int i = 0; i < TEXTS; ++i) {
    if (known[i].text != NULL && strcmp(known[i].text, text) == 0) return known[i].of;
    if (known[i].text != NULL) continue;
    program *made = program_new(text, wrong);
    if (made == NULL) return violation("%s", wrong), NULL;
    known[i].text = malloc(strlen(text) + 1);
    if (known[i].text != NULL) strcpy(known[i].text, text);
    return known[i].of = made;
  }
  return NULL;
}

int module_new(const void *image, void **out) {
  if (image == NULL) return E_VALUE;
  int code = image_check(image);
  for (int i = 0; code == OK && i < MODULES; ++i) {
    if (modules[i].handle != 0) continue;
    modules[i].program = program_of(image);
    if (modules[i].program == NULL) return 218; /* CUDA_ERROR_INVALID_PTX */
    modules[i].handle = handle_new(MODULE);
    modules[i].context = context_base(current());
    ++stats.modules;
    *out = (void *)(uintptr_t)modules[i].handle;
    return OK;
  }
  return code == OK ? E_NOMEM : code;
}

static module *module_of(uint64_t handle) {
  for (int i = 0; i < MODULES; ++i) {
    if (handle != 0 && modules[i].handle == handle) return &modules[i];
  }
  return NULL;
}

static void module_end(module *self) {
  for (int i = 0; i < KERNELS; ++i) {
    if (kernels[i].module == self->handle) memset(&kernels[i], 0, sizeof kernels[i]);
  }
  memset(self, 0, sizeof *self);
  --stats.modules;
}

int module_destroy(void *handle) {
  module *self = module_of((uint64_t)(uintptr_t)handle);
  if (self == NULL) return E_HANDLE;
  module_end(self);
  return OK;
}

void module_lose(uint64_t owner) {
  for (int i = 0; i < MODULES; ++i) {
    if (modules[i].handle != 0 && modules[i].context == owner) module_end(&modules[i]);
  }
}

int module_function(void *handle, const char *name, void **out) {
  module *self = module_of((uint64_t)(uintptr_t)handle);
  if (self == NULL) return E_HANDLE;
  if (name == NULL) return E_VALUE;
  int number = program_kernel(self->program, name);
  if (number < 0) return E_NOT_FOUND;
  for (int i = 0; i < KERNELS; ++i) {
    if (kernels[i].handle != 0) continue;
    kernels[i] = (kernel){handle_new(FUNCTION), self->handle, self->context, self->program, number};
    *out = (void *)(uintptr_t)kernels[i].handle;
    return OK;
  }
  return E_NOMEM;
}

int launch_enqueue(void *handle, const unsigned size[6], void *on_handle, void **args) {
  stream *on = stream_of(on_handle);
  kernel *it = NULL;
  for (int i = 0; i < KERNELS; ++i) {
    if (handle != NULL && kernels[i].handle == (uint64_t)(uintptr_t)handle) it = &kernels[i];
  }
  if (it == NULL || on == NULL) return E_HANDLE;
  /* A green context's streams are the primary one's, which has the modules. */
  uint64_t base = context_base(on->context);
  if (context_base(current()) != base || it->context != base) return E_HANDLE;
  /* The kernels are for blocks of one size, in one dimension. */
  const unsigned shape[5] = {1, 1, PROGRAM_THREADS, 1, 1};
  if (size[0] == 0 || size[0] > 2147483647 || memcmp(size + 1, shape, sizeof shape) != 0) return E_VALUE;
  if (args == NULL || args[0] == NULL) return E_VALUE;
  op *work = op_new(KERNEL);
  work->program = it->program;
  work->kernel = it->number;
  work->blocks = size[0];
  memcpy(work->argument, args[0], PROGRAM_ARGUMENT);
  for (size_t at = 0; at < PROGRAM_ARGUMENT; at += 8) {
    void *word;
    memcpy(&word, work->argument + at, sizeof word);
    block *seen = block_seen(word);
    if (seen != NULL) use(work, seen->address);
  }
  return enqueue(on, work);
}

/* Memory as kernels of a context see it. */
static int reached(void *from, uint64_t at, program_range *found) {
  block *it = block_seen((void *)(uintptr_t)at);
  if (it == NULL || !memory_seen(it, from)) return 0;
  found->low = (uint64_t)(uintptr_t)(it->alias ? it->alias : it->address);
  found->high = found->low + it->nbytes;
  found->bytes = it->bytes;
  return 1;
}

/* Runs a kernel; its fault becomes the device's error, not the host's. */
static int kernel_run(stream *on, op *work) {
  const char *wrong =
      program_run(work->program, work->kernel, work->blocks, work->blocks, work->argument, reached, on->context);
  if (wrong != NULL) violation("a kernel is stopped: %s", wrong);
  return wrong != NULL ? E_ILLEGAL_ADDRESS : OK;
}

/* ---- Executing ------------------------------------------------------------------------------*/

/* Where the stand-in finds the bytes of an address; NULL when they are not mapped (any more). */
static unsigned char *reach(const unsigned char *address, const char *what) {
  block *it = block_of(address);
  if (it == NULL) {
    if (!freed_before(address)) return (unsigned char *)(uintptr_t)address;
    violation("%s memory that was freed before it was its turn", what);
    return NULL;
  }
  if (it->unready) violation("%s memory before its stream-ordered allocation is reached", what);
  return it->bytes + (address - it->address);
}

static int copy_run(const copy2d *copy) {
  unsigned char *dst = reach(copy->dst, "a copy writes");
  const unsigned char *src = reach(copy->src, "a copy reads");
  if (dst == NULL || src == NULL) return E_ILLEGAL_ADDRESS;
  for (size_t row = 0; row < copy->height; ++row) {
    memmove(dst + row * copy->dst_pitch, src + row * copy->src_pitch, copy->width);
  }
  return OK;
}

static int fill_run(const op *work) {
  unsigned char *dst = reach(work->copy.dst, "a fill writes");
  if (dst == NULL) return E_ILLEGAL_ADDRESS;
  memset(dst, work->value, work->copy.width);
  return OK;
}

static int free_run(const op *work) {
  block *it = block_of(work->copy.dst);
  if (it == NULL) return OK;
  if (it->in_use) violation("a stream-ordered free overtakes work that uses the memory");
  block_drop(it);
  return OK;
}

static int execute(stream *on, op *work) {
  ++stats.executed;
  if (set.fault_after > 0 && --set.fault_after == 0) return (int)set.fault_code;
  switch (work->kind) {
  case COPY: return copy_run(&work->copy);
  case FILL: return fill_run(work);
  case KERNEL: return kernel_run(on, work);
  case FREE: return free_run(work);
  case HOST: return work->host(work->with), OK;
  case ALLOC:
    if (block_of(work->copy.dst)) block_of(work->copy.dst)->unready = 0;
    return OK;
  default: return OK;
  }
}

static int dropping;

/* Removes the first step of a stream, and executes it unless the context is lost. */
static void take(stream *on) {
  op *work = on->first;
  on->first = work->next;
  if (on->first == NULL) on->last = &on->first;
  --stats.pending;
  for (int i = 0; i < work->used; ++i) --work->uses[i]->in_use;
  if ((!on->context->lost && !dropping) || work->kind == FREE) {
    int code = execute(on, work);
    if (code != OK) on->context->lost = code;
  }
  if (work->kind == RECORD) work->mark->reached = 1;
  op_free(work);
  if (on->first == NULL && !on->live) on->used = 0;
}

/* Whether a stream's next step was enqueued before another one's, and the two are ordered because
 * one of them is the legacy stream. */
static int earlier(const stream *self, const stream *than) {
  if (self == than || self->context != than->context || self->first == NULL) return 0;
  int ordered = (than->legacy && !self->nonblocking) || (self->legacy && !than->nonblocking);
  return ordered && self->first->order < than->first->order;
}

static int may_run(const stream *self) {
  const op *work = self->first;
  if (work == NULL || (work->kind == WAIT && !work->mark->reached)) return 0;
  for (int i = 0; i < STREAMS; ++i) {
    if (streams[i].used && earlier(&streams[i], self)) return 0;
  }
  return 1;
}

/* The stream that will reach a mark. */
static stream *stream_to(const mark *self) {
  for (int i = 0; i < STREAMS; ++i) {
    for (op *it = streams[i].used ? streams[i].first : NULL; it != NULL; it = it->next) {
      if (it->kind == RECORD && it->mark == self) return &streams[i];
    }
  }
  return NULL;
}

/* A stream whose next step must run before this one's. */
static stream *first_before(const stream *self) {
  const op *work = self->first;
  if (work->kind == WAIT && !work->mark->reached) return stream_to(work->mark);
  for (int i = 0; i < STREAMS; ++i) {
    if (streams[i].used && earlier(&streams[i], self)) return &streams[i];
  }
  return NULL;
}

/* Runs one step of any stream; with seed 0 only one that `target` depends on. 0: none may run. */
static int step(stream *target) {
  stream *ready[STREAMS];
  unsigned n = 0;
  if (set.hang) return 0;
  stream *needed = set.seed == 0 ? target : NULL;
  for (int i = 0; i < STREAMS && needed != NULL && needed->first != NULL; ++i) {
    if (may_run(needed)) return take(needed), 1;
    needed = first_before(needed);
  }
  for (int i = 0; i < STREAMS; ++i) {
    if (streams[i].used && may_run(&streams[i])) ready[n++] = &streams[i];
  }
  if (n == 0) return 0;
  take(ready[set.seed == 0 ? 0 : chance(n)]);
  return 1;
}

/* The devices are broken: enqueued work never runs. */
void drop_work(void) {
  dropping = 1;
  for (int i = 0; i < STREAMS; ++i) {
    while (streams[i].used && streams[i].first != NULL) take(&streams[i]);
  }
  dropping = 0;
}

int run(long operations) {
  while (operations != 0 && step(NULL)) --operations;
  return 0;
}

/* Runs some steps that no call waits for. */
static void drift(void) {
  for (unsigned n = set.seed ? chance(4) : 0; n > 0; --n) step(NULL);
}

static int stuck(void) {
  if (set.hang) {
    core_hang();
    return 0;
  }
  violation("somebody waits for work that can never run");
  return 1;
}

static stream *stream_with(const block *self) {
  for (int i = 0; i < STREAMS; ++i) {
    for (op *it = streams[i].used ? streams[i].first : NULL; it != NULL; it = it->next) {
      for (int n = 0; n < it->used; ++n) {
        if (it->uses[n] == self) return &streams[i];
      }
    }
  }
  return NULL;
}

void wait_for_block(block *self) {
  while (self->in_use) {
    if (!step(stream_with(self)) && stuck()) return;
  }
}

static int stream_finish(stream *self) {
  drift();
  while (self->first != NULL) {
    if (!step(self) && stuck()) return 999;
  }
  return self->context->lost;
}

int context_sync(context *self) {
  int code = OK;
  for (int i = 0; i < CAPTURES; ++i) {
    if (captures[i].state == 1 && captures[i].context == self->handle) {
      code = capture_break(&captures[i], E_CAPTURE_UNSUPPORTED);
    }
  }
  for (int i = 0; code == OK && i < STREAMS; ++i) {
    if (streams[i].used && streams[i].context == self) code = stream_finish(&streams[i]);
  }
  return code != OK ? code : self->lost;
}

void context_forget_work(context *self) {
  for (int i = 0; i < STREAMS; ++i) {
    stream *it = &streams[i];
    if (!it->used || it->context != self) continue;
    while (it->first != NULL && !set.hang && step(it)) {
    }
    while (it->first != NULL) {
      self->lost = self->lost ? self->lost : E_CONTEXT_DESTROYED;
      take(it);
    }
    if (it->live && it->handle > 2) --stats.streams;
    it->live = it->used = 0;
  }
}

/* ---- Streams --------------------------------------------------------------------------------*/

int stream_new(context *on, unsigned flags, void **out) {
  if (flags > 1) return E_VALUE;
  stream *self = stream_make(on, handle_new(STREAM), 0);
  if (self == NULL) return E_NOMEM;
  self->nonblocking = flags == 1;
  ++stats.streams;
  *out = (void *)(uintptr_t)self->handle;
  return OK;
}

int stream_destroy(void *handle) {
  stream *self = stream_of(handle);
  if (self == NULL || self->handle < 3) return E_HANDLE;
  if (self->capture != NULL) {
    capture_break(self->capture, 0);
    if (self->capture->origin == self) {
      capture *it = self->capture;
      capture_close(it);
      ops_free(it->first);
      it->state = 0;
    }
    self->capture = NULL;
  }
  self->live = 0;
  if (self->first == NULL) self->used = 0;
  --stats.streams;
  return OK;
}

int stream_sync(void *handle) {
  stream *self = stream_of(handle);
  if (self == NULL) return E_HANDLE;
  int code = capture_waits(self);
  return code != OK ? code : stream_finish(self);
}

static long delayed;

/* Whether completed work must still be reported as not ready. */
static int delay(void) {
  if (delayed++ < set.delay) return 1;
  delayed = 0;
  return 0;
}

int stream_query(void *handle) {
  stream *self = stream_of(handle);
  if (self == NULL) return E_HANDLE;
  int code = capture_waits(self);
  if (code != OK) return code;
  if (delay()) return E_NOT_READY;
  drift();
  int busy = self->first != NULL;
  if (busy) step(self);
  if (self->context->lost) return self->context->lost;
  return busy ? E_NOT_READY : OK;
}

int stream_context(void *handle, context **out) {
  stream *self = stream_of(handle);
  if (self == NULL) return E_HANDLE;
  *out = self->context;
  return OK;
}

static int wait_captured(stream *self, event *it) {
  capture *theirs = it->capture;
  if (theirs != NULL && theirs->state == 2) return E_CAPTURE_INVALIDATED;
  if (self->capture != NULL && self->capture->state == 2) return E_CAPTURE_INVALIDATED;
  if (theirs == NULL) return capture_break(self->capture, E_CAPTURE_ISOLATION);
  if (self->legacy) return capture_break(theirs, E_CAPTURE_IMPLICIT);
  if (self->capture != NULL && self->capture != theirs) {
    capture_break(theirs, 0);
    return capture_break(self->capture, E_CAPTURE_MERGE);
  }
  if (self->capture == NULL) {
    self->joined = 0;
    self->capture = theirs;
  }
  self->captured = ++theirs->steps;
  if (it->recorded != NULL && it->recorded->joined < it->step) it->recorded->joined = it->step;
  return OK;
}

int stream_wait(void *handle, void *event_handle) {
  stream *self = stream_of(handle);
  event *it = event_of(event_handle);
  if (self == NULL || it == NULL) return E_HANDLE;
  if (it->capture != NULL || (self->capture != NULL && it->mark != NULL)) {
    return wait_captured(self, it);
  }
  if (it->mark == NULL) return legacy_forbidden(self);
  op *work = op_new(WAIT);
  work->mark = it->mark;
  ++it->mark->refs;
  return enqueue(self, work);
}

int graph_launch(void *handle, void *stream_handle) {
  stream *on = stream_of(stream_handle);
  for (int i = 0; on != NULL && i < GRAPHS; ++i) {
    if (handle == NULL || graphs[i].handle != (uint64_t)(uintptr_t)handle) continue;
    for (op *it = graphs[i].first; it != NULL; it = it->next) {
      op *again = op_new(it->kind);
      *again = *it;
      again->next = NULL;
      int code = enqueue(on, again);
      if (code != OK) return code;
    }
    return OK;
  }
  return E_HANDLE;
}

int graph_destroy(void *handle) {
  for (int i = 0; i < GRAPHS; ++i) {
    if (handle == NULL || graphs[i].handle != (uint64_t)(uintptr_t)handle) continue;
    ops_free(graphs[i].first);
    memset(&graphs[i], 0, sizeof graphs[i]);
    --stats.graphs;
    return OK;
  }
  return E_VALUE;
}

/* ---- Events ---------------------------------------------------------------------------------*/

int event_new(unsigned flags, void **out) {
  (void)flags;
  for (int i = 0; i < EVENTS; ++i) {
    if (events[i].live) continue;
    memset(&events[i], 0, sizeof events[i]);
    events[i].live = 1;
    events[i].handle = handle_new(EVENT);
    events[i].device = current()->device;
    events[i].context = context_base(current());
    ++stats.events;
    *out = (void *)(uintptr_t)events[i].handle;
    return OK;
  }
  return E_NOMEM;
}

int event_destroy(void *handle) {
  event *self = event_of(handle);
  if (self == NULL) return E_HANDLE;
  mark_drop(self->mark);
  self->live = 0;
  --stats.events;
  return OK;
}

int event_record(void *handle, void *stream_handle) {
  event *self = event_of(handle);
  stream *on = stream_of(stream_handle);
  if (self == NULL || on == NULL || self->context != context_base(on->context)) return E_HANDLE;
  int code = legacy_forbidden(on);
  if (code != OK) return code;
  if (on->capture != NULL) {
    if (on->capture->state == 2) return E_CAPTURE_INVALIDATED;
    mark_drop(self->mark);
    self->mark = NULL;
    self->capture = on->capture;
    self->recorded = on;
    self->step = on->captured;
    return OK;
  }
  mark *here = calloc(1, sizeof *here);
  op *work = op_new(RECORD);
  if (here == NULL) abort();
  here->refs = 2;
  work->mark = here;
  code = enqueue(on, work);
  if (code != OK) {
    free(here); /* the step has released its reference */
    return code;
  }
  mark_drop(self->mark);
  self->mark = here;
  self->capture = NULL;
  return OK;
}

static int event_captured(event *self) {
  if (self == NULL) return E_HANDLE;
  return self->capture == NULL ? OK : capture_break(self->capture, E_CAPTURED_EVENT);
}

static int device_lost(int device) {
  context *here = current();
  return here != NULL && here->device == device ? here->lost : OK;
}

int event_query(void *handle) {
  event *self = event_of(handle);
  int code = event_captured(self);
  if (code != OK) return code;
  if (delay()) return E_NOT_READY;
  drift();
  int busy = self->mark != NULL && !self->mark->reached;
  if (busy) step(stream_to(self->mark));
  if (device_lost(self->device)) return device_lost(self->device);
  return busy ? E_NOT_READY : OK;
}

int event_sync(void *handle) {
  event *self = event_of(handle);
  int code = event_captured(self);
  if (code != OK) return code;
  drift();
  while (self->mark != NULL && !self->mark->reached) {
    if (!step(stream_to(self->mark)) && stuck()) return 999;
  }
  return device_lost(self->device);
}
