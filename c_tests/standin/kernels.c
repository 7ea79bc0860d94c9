/* Modules of kernels, and their launches. */
#include "queue.h"

#include <stdio.h>
#include <string.h>

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
  if (code != OK) return code;
  program *of = program_of(image);
  if (of == NULL) return 218; /* CUDA_ERROR_INVALID_PTX */
  module *self = NEW(modules, MODULE);
  if (self == NULL) return E_NOMEM;
  self->program = of;
  self->context = context_base(current());
  ++stats.modules;
  *out = handle_of(self);
  return OK;
}

static void module_end(module *self) {
  for (int i = 0; i < KERNELS; ++i) {
    if (kernels[i].module == self->handle) memset(&kernels[i], 0, sizeof kernels[i]);
  }
  self->handle = 0;
  --stats.modules;
}

int module_destroy(void *handle) {
  module *self = FIND(modules, handle);
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
  module *of = FIND(modules, handle);
  if (of == NULL) return E_HANDLE;
  if (name == NULL) return E_VALUE;
  int number = program_kernel(of->program, name);
  if (number < 0) return E_NOT_FOUND;
  kernel *self = NEW(kernels, FUNCTION);
  if (self == NULL) return E_NOMEM;
  *self = (kernel){self->handle, of->handle, of->context, of->program, number};
  *out = handle_of(self);
  return OK;
}

int launch_enqueue(void *handle, const unsigned size[6], void *on_handle, void **args) {
  stream *on = stream_of(on_handle);
  kernel *it = FIND(kernels, handle);
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
int kernel_run(stream *on, op *work) {
  const char *wrong =
      program_run(work->program, work->kernel, work->blocks, work->blocks, work->argument, reached, on->context);
  if (wrong != NULL) violation("a kernel is stopped: %s", wrong);
  return wrong != NULL ? E_ILLEGAL_ADDRESS : OK;
}
