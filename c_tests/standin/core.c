/* Calls, settings, contexts. */
#include "core.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

settings set;
standin_stats_t stats;

static pthread_mutex_t lock = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
static pthread_cond_t hung = PTHREAD_COND_INITIALIZER;
static pid_t initialized; /* the process that called init */
static function *functions;
static uint64_t serial;
static char said[256];

/* ---- Calls ----------------------------------------------------------------------------------*/

static struct {
  long countdown, code, garbage;
  int always, fired;
  char only[64];
} fault;

enum { LOG = 4096 };
static const char *called_names[LOG];
static long logged;

void violation(const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(said, sizeof said, format, arguments);
  va_end(arguments);
  ++stats.violations;
}

unsigned chance(unsigned below) {
  static uint64_t state = 1;
  state = state * 6364136223846793005u + 1442695040888963407u + (uint64_t)set.seed;
  return below ? (unsigned)(state >> 33) % below : 0;
}

static void *place_at(char *table, size_t n, size_t nbytes, uint64_t handle) {
  for (char *it = table, *end = it + n * nbytes; it < end; it += nbytes) {
    if (*(uint64_t *)(void *)it == handle) return it;
  }
  return NULL;
}

void *place_of(void *table, size_t n, size_t nbytes, const void *handle) {
  return handle ? place_at(table, n, nbytes, (uint64_t)(uintptr_t)handle) : NULL;
}

void *place_new(void *table, size_t n, size_t nbytes, int kind) {
  void *it = place_at(table, n, nbytes, 0);
  if (it == NULL) return NULL;
  memset(it, 0, nbytes);
  *(uint64_t *)it = handle_new(kind);
  return it;
}

uint64_t handle_new(int kind) { return 0x5A00000000000000u | (uint64_t)kind << 48 | ++serial; }

static int injected(guard *self, const function *called, unsigned like) {
  if (fault.countdown == 0) return OK;
  if (fault.only[0] && strcmp(fault.only, called->name) != 0) return OK;
  if (fault.countdown > 1) return --fault.countdown, OK;
  if (fault.fired && like & KEEPS) return OK;
  if (fault.always && !fault.fired && !fault.only[0]) drop_work();
  fault.fired = 1;
  if (!fault.always) fault.countdown = 0;
  ++stats.injected;
  if (fault.garbage) {
    self->garbage = (int)fault.garbage;
    return OK;
  }
  int code = (int)fault.code;
  if (!(like & RELEASES)) return code;
  self->injected = code;
  return OK;
}

_Thread_local int last_error;

/* HIP: up to version 6 the last result, then the last error. */
static int remember(int code) {
  if (code != E_NOT_READY && (code != OK || is_hip < 7)) last_error = code;
  return code;
}

int enter(guard *self, function *called, unsigned like) {
  pthread_mutex_lock(&lock);
  self->injected = self->garbage = 0;
  if (!called->known) {
    called->known = 1;
    called->next = functions;
    functions = called;
  }
  ++called->calls;
  called_names[logged++ % LOG] = called->name;
  ++stats.calls;
  int code = OK;
  if (set.exiting) code = E_DEINITIALIZED;
  if (code == OK && initialized && initialized != getpid()) code = E_NOT_INITIALIZED;
  if (code == OK) code = injected(self, called, like);
  if (code == OK && !initialized && !(like & EARLY)) {
    code = E_NOT_INITIALIZED;
    if (is_hip) code = core_init() == OK ? OK : E_DEVICE;
  }
  if (code == OK && like & CURRENT) {
    context *here = current();
    if (here == NULL) code = set.devices ? E_CONTEXT : E_NO_DEVICE;
    else if (here->lost && !(like & RELEASES)) code = here->lost;
    else if (here->lost) self->injected = here->lost;
  }
  if (code == OK && like & UNSAFE) code = capture_forbids();
  if (code != OK) remember(code);
  return code;
}

void leave(guard *self) {
  (void)self;
  pthread_mutex_unlock(&lock);
}

int done(guard *self, int code) { return remember(self->injected ? self->injected : code); }

int garbage(const guard *self, void *out, size_t nbytes) {
  if (self->garbage == 2) memset(out, 0, nbytes);
  if (self->garbage == 3) memset(out, 0xFF, nbytes);
  return OK;
}

/* Blocks until the test lets it continue. */
void core_hang(void) {
  while (set.hang) pthread_cond_wait(&hung, &lock);
}

void core_lock(void) { pthread_mutex_lock(&lock); }
void core_unlock(void) { pthread_mutex_unlock(&lock); }

/* ---- Settings -------------------------------------------------------------------------------*/

static void defaults(void) {
  memset(&fault, 0, sizeof fault);
  memset(&set, 0, sizeof set);
  set.version = is_hip ? is_hip * 10000000 + 221153 : 12080;
  set.devices = 2;
  for (int i = 0; i < STANDIN_DEVICES_MAX; ++i) set.memory[i] = (size_t)1 << 30;
  set.pools = set.concurrent = set.free_waits = 1;
}

__attribute__((constructor)) static void loaded(void) { defaults(); }
__attribute__((destructor)) static void exiting(void) { set.exiting = 1; }

static int inject(int what, long a, long b, const char *text) {
  memset(&fault, 0, sizeof fault);
  fault.countdown = a;
  fault.code = b;
  fault.always = what == STANDIN_FAIL_ALWAYS;
  if (what == STANDIN_GARBAGE) fault.garbage = 1 + b;
  if (text != NULL) snprintf(fault.only, sizeof fault.only, "%s", text);
  return a < 0 ? -1 : 0;
}

static int lose(int device, int code);

static int change(int what, long a, long b, const char *text) {
  static long *const values[] = {
      [STANDIN_VERSION] = &set.version,       [STANDIN_DEVICES] = &set.devices,         [STANDIN_SEED] = &set.seed,
      [STANDIN_HANG] = &set.hang,             [STANDIN_FAULT_AFTER] = &set.fault_after, [STANDIN_EXITING] = &set.exiting,
      [STANDIN_POOLS] = &set.pools,           [STANDIN_CONCURRENT] = &set.concurrent,   [STANDIN_FREE_WAITS] = &set.free_waits,
      [STANDIN_FORGIVE] = &stats.violations, [STANDIN_HOST_DEVICE] = &set.host_device, [STANDIN_CTX_LOST] = NULL};
  if (what < 0 || what > STANDIN_CTX_LOST) return -1;
  if (values[what] != NULL) *values[what] = a;
  switch (what) {
  case STANDIN_DEFAULTS: defaults(); return 0;
  case STANDIN_FAIL:
  case STANDIN_FAIL_ALWAYS:
  case STANDIN_GARBAGE: return inject(what, a, b, text);
  case STANDIN_MEMORY: set.memory[a] = (size_t)b; return 0;
  case STANDIN_HANG: pthread_cond_broadcast(&hung); return 0;
  case STANDIN_FAULT_AFTER: set.fault_code = b; return 0;
  case STANDIN_RUN: return run(a);
  case STANDIN_EXCLUSIVE: set.exclusive = 1 << a; return 0;
  case STANDIN_CTX_LOST: return lose((int)a, b ? (int)b : E_CONTEXT_DESTROYED);
  default: return 0;
  }
}

int standin_ctl(int what, long a, long b, const char *text) {
  core_lock();
  int answer = change(what, a, b, text);
  core_unlock();
  return answer;
}

long standin_count(const char *name) {
  long calls = -1;
  core_lock();
  for (function *f = functions; f != NULL; f = f->next) {
    if (name == NULL) f->calls = 0;
    else if (strcmp(f->name, name) == 0) calls = f->calls;
  }
  if (name == NULL) logged = 0;
  core_unlock();
  return calls < 0 ? 0 : calls;
}

size_t standin_log(char *text, size_t n) {
  size_t at = 0;
  core_lock();
  for (long i = logged > LOG ? logged - LOG : 0; i < logged && at < n; ++i) {
    at += (size_t)snprintf(text + at, n - at, "%s\n", called_names[i % LOG]);
  }
  core_unlock();
  return at;
}

const char *standin_violation(void) {
  core_lock();
  memory_check();
  core_unlock();
  return said;
}

/* ---- Devices and contexts -------------------------------------------------------------------*/

enum { CONTEXTS = 256, STACK = 64 };
static context contexts[CONTEXTS];
static _Thread_local uint64_t stack[STACK];
static _Thread_local int depth, hip_device;

int core_init(void) {
  if (set.devices == 0) return E_NO_DEVICE;
  initialized = getpid();
  return OK;
}

int is_device(int device) { return device >= 0 && device < set.devices; }

context *context_of(const void *handle) { return FIND(contexts, handle); }

static int lose(int device, int code) {
  int found = -1;
  for (int i = 0; i < CONTEXTS; ++i) {
    if (contexts[i].handle == 0 || contexts[i].device != device) continue;
    contexts[i].lost = code;
    found = 0;
  }
  return found;
}

void *context_handle(const context *self) {
  return self == NULL ? NULL : (void *)(uintptr_t)self->handle;
}

static context *primary_of(int device) {
  for (int i = 0; i < CONTEXTS; ++i) {
    if (contexts[i].handle && contexts[i].primary && contexts[i].device == device) return &contexts[i];
  }
  return NULL;
}

static context *context_new(int device, int primary) {
  context *self = NEW(contexts, CONTEXT);
  if (self == NULL) return NULL;
  self->device = device;
  self->primary = primary;
  return self;
}

uint64_t context_base(const context *self) {
  return self->green ? primary_of(self->device)->handle : self->handle;
}

/* A green context may be current to one thread at a time. */
static void hold(uint64_t handle, int by) {
  context *self = context_of((void *)(uintptr_t)handle);
  if (self == NULL || !self->green) return;
  if (by > 0 && self->holds > 0 && !pthread_equal(self->owner, pthread_self())) {
    violation("a green context is made current to a second thread");
  }
  if (self->holds == 0) self->owner = pthread_self();
  self->holds += by;
}

static void context_end(context *self) {
  context_forget_work(self);
  memory_lose(self->handle);
  module_lose(self->handle);
  self->handle = 0;
}

context *current(void) {
  if (is_hip) {
    if (!is_device(hip_device)) return NULL;
    context *here = primary_of(hip_device);
    return here != NULL ? here : context_new(hip_device, 1);
  }
  return depth > 0 ? context_of((void *)(uintptr_t)stack[depth - 1]) : NULL;
}

int context_retain(int device, void **out) {
  if (!is_device(device)) return E_DEVICE;
  if (set.exclusive >> device & 1) return 46; /* CUDA_ERROR_DEVICE_UNAVAILABLE */
  core_unlock(); /* which takes long, so that threads do it at once */
  sched_yield();
  core_lock();
  context *self = primary_of(device);
  if (self == NULL) self = context_new(device, 1);
  if (self == NULL) return E_NOMEM;
  ++self->retains;
  ++stats.retains;
  *out = context_handle(self);
  return OK;
}

int context_release(int device) {
  if (!is_device(device)) return E_DEVICE;
  context *self = primary_of(device);
  if (self == NULL || self->retains == 0) return E_CONTEXT;
  --stats.retains;
  if (--self->retains == 0) context_end(self);
  return OK;
}

int context_active(int device) {
  context *self = primary_of(device);
  return self != NULL && self->retains > 0;
}

int context_create(int device, void **out) {
  if (!is_device(device)) return E_DEVICE;
  context *self = context_new(device, 0);
  if (self == NULL || depth == STACK) return E_NOMEM;
  ++stats.contexts;
  stack[depth++] = self->handle;
  *out = context_handle(self);
  return OK;
}

int green_create(int device, void **out) {
  void *primary;
  int code = context_retain(device, &primary);
  if (code != OK) return code;
  context *self = context_new(device, 0);
  if (self == NULL) return E_NOMEM;
  ++stats.contexts;
  self->green = 1;
  *out = context_handle(self);
  return OK;
}

int green_destroy(void *handle) {
  context *self = context_of(handle);
  if (self == NULL || !self->green) return E_HANDLE;
  if (self->holds) violation("a green context is destroyed while it is current");
  int device = self->device;
  --stats.contexts;
  context_end(self);
  return context_release(device);
}

int context_destroy(void *handle) {
  context *self = context_of(handle);
  if (self == NULL || self->primary || self->green) return E_CONTEXT;
  if (depth > 0 && stack[depth - 1] == self->handle) --depth;
  --stats.contexts;
  context_end(self);
  return OK;
}

int context_push(void *handle) {
  context *self = context_of(handle);
  if (self == NULL) return E_CONTEXT;
  if (depth == STACK) return E_NOMEM;
  stack[depth++] = self->handle;
  hold(self->handle, 1);
  return OK;
}

int context_pop(void **out) {
  if (depth == 0) return E_CONTEXT;
  --depth;
  hold(stack[depth], -1);
  if (out != NULL) *out = (void *)(uintptr_t)stack[depth];
  return OK;
}

int context_set(void *handle) {
  if (handle == NULL) {
    if (depth > 0) hold(stack[--depth], -1);
    return OK;
  }
  context *self = context_of(handle);
  if (self == NULL) return E_CONTEXT;
  if (depth == 0) ++depth;
  else hold(stack[depth - 1], -1);
  stack[depth - 1] = self->handle;
  hold(self->handle, 1);
  return OK;
}

int device_set(int device) {
  if (!is_device(device)) return E_DEVICE;
  hip_device = device;
  return OK;
}

int device_get(void) { return hip_device; }

/* By CUDA's numbers. */
int attribute(int *out, int attribute, int device) {
  static const int known[][2] = {{1, 1024}, {2, 1024}, {3, 1024}, {4, 64}, {5, 2147483647},
                                 {6, 65535}, {7, 65535}, {8, 49152}, {10, 32}, {11, 2147483647},
                                 {16, 4}, {18, 0}, {19, 1}, {40, 2}, {41, 1}, {75, 9}, {76, 0},
                                 {88, 0}, {91, 1}};
  if (!is_device(device)) return E_DEVICE;
  if (attribute == 83 || attribute == 89 || attribute == 115) {
    *out = attribute == 83 ? 1 : attribute == 89 ? (int)set.concurrent : (int)set.pools;
    return OK;
  }
  for (size_t i = 0; i < sizeof known / sizeof *known; ++i) {
    if (known[i][0] != attribute) continue;
    *out = known[i][1];
    return OK;
  }
  return E_VALUE;
}

void standin_stats(standin_stats_t *out) {
  core_lock();
  memory_check();
  stats.depth = depth;
  context *here = is_hip ? NULL : current();
  stats.device = is_hip ? hip_device : here != NULL ? here->device : -1;
  stats.current = context_handle(here);
  *out = stats;
  core_unlock();
}
