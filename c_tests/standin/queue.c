/* The work of streams. It stays in its stream until a call waits or queries; then steps run in any order
 * that the rules of streams allow. */
#include "queue.h"

#include <string.h>

enum { MAX_PITCH = 2147483647 };
stream streams[STREAMS];
static uint64_t orders;

/* ---- Looking up -----------------------------------------------------------------------------*/

stream *stream_make(context *on, uint64_t handle, int legacy) {
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

stream *stream_of(void *handle) {
  uint64_t number = (uint64_t)(uintptr_t)handle;
  if (number == 0 || number == 2 || (number == 1 && is_hip != 5)) return stream_special(number);
  for (int i = 0; i < STREAMS; ++i) {
    if (streams[i].live && streams[i].handle == number) return &streams[i];
  }
  return NULL;
}

void mark_drop(mark *self) {
  if (self != NULL && --self->refs == 0) free(self);
}

void op_free(op *self) {
  mark_drop(self->mark);
  free(self);
}

/* ---- Enqueuing ------------------------------------------------------------------------------*/

void use(op *self, const void *address) {
  block *it = block_of(address);
  if (it == NULL || self->used == 8) return;
  for (int i = 0; i < self->used; ++i) {
    if (self->uses[i] == it) return;
  }
  self->uses[self->used++] = it;
  ++it->in_use;
}

op *op_new(int kind) {
  op *self = calloc(1, sizeof *self);
  if (self == NULL) abort();
  self->kind = kind;
  return self;
}

int enqueue(stream *on, op *work) {
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
  code = enqueue(on, work);
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
stream *stream_to(const mark *self) {
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
int step(stream *target) {
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
void drift(void) {
  for (unsigned n = set.seed ? chance(4) : 0; n > 0; --n) step(NULL);
}

int stuck(void) {
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

int stream_finish(stream *self) {
  drift();
  while (self->first != NULL) {
    if (!step(self) && stuck()) return 999;
  }
  return self->context->lost;
}

int context_sync(context *self) {
  int code = capture_forbids_sync(self);
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
