/* Copies of the library that are loaded by path, for programs that are not linked to it. */
#ifndef C_TESTS_LOADED_H_
#define C_TESTS_LOADED_H_

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#ifdef _WIN32
#define WIN32_LEAN_AND_MEAN
#include <windows.h>
#else
#include <dlfcn.h>
#endif

#include "dlpack_rs.h"

static long passed, failed;

static void check(int ok, const char *file, int line, const char *what) {
  if (ok) {
    ++passed;
  } else {
    ++failed;
    printf("%s:%d: failed: %s\n", file, line, what);
  }
}
#define CHECK(x) check((x) ? 1 : 0, __FILE__, __LINE__, #x)

/* The functions of one loaded copy. */
typedef struct library {
#ifdef _WIN32
  HMODULE handle;
#else
  void *handle;
#endif
  dlrs_status (*tensor_new)(const int64_t *, int32_t, DLDataType, DLDevice,
                            const dlrs_alloc_options *, DLManagedTensorVersioned **, dlrs_error *);
  dlrs_status (*attach)(DLManagedTensorVersioned *, dlrs_free_fn, void *, int32_t, dlrs_error *);
  dlrs_status (*retain)(DLManagedTensorVersioned *, DLManagedTensorVersioned **, dlrs_error *);
  dlrs_status (*import_take)(DLManagedTensorVersioned **, const dlrs_import_options *,
                             DLManagedTensorVersioned **, dlrs_error *);
  void (*release)(DLManagedTensorVersioned *);
  int32_t (*is_own)(const DLManagedTensorVersioned *);
} library;

static int find(const library *lib, const char *name, void *function) {
#ifdef _WIN32
  FARPROC found = GetProcAddress(lib->handle, name);
#else
  void *found = dlsym(lib->handle, name);
#endif
  memcpy(function, &found, sizeof found);
  return found != NULL;
}

static int load(const char *path, library *lib) {
#ifdef _WIN32
  lib->handle = LoadLibraryA(path);
#else
  lib->handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (lib->handle == NULL) printf("%s\n", dlerror());
#endif
  return lib->handle != NULL && find(lib, "dlrs_tensor_new", &lib->tensor_new) &&
         find(lib, "dlrs_attach", &lib->attach) && find(lib, "dlrs_retain", &lib->retain) &&
         find(lib, "dlrs_import_take", &lib->import_take) &&
         find(lib, "dlrs_release", &lib->release) && find(lib, "dlrs_is_own", &lib->is_own);
}

static int runs;
static void ran(void *context) {
  (void)context;
  ++runs;
}

static DLManagedTensorVersioned *make(const library *lib) {
  int64_t shape[2] = {3, 5};
  DLDataType dtype = {kDLFloat, 32, 1};
  DLDevice device = {kDLCPU, 0};
  DLManagedTensorVersioned *out = NULL;
  CHECK(lib->tensor_new(shape, 2, dtype, device, NULL, &out, NULL) == DLRS_OK);
  CHECK(lib->attach(out, ran, NULL, DLRS_AFTER_FREE, NULL) == DLRS_OK);
  return out;
}

/* Freeing while the process exits, and while a thread does. */
static library late;
static DLManagedTensorVersioned *late_tensor;

static void at_exit(void) {
  runs = 0;
  late.release(late_tensor);
  late.release(make(&late));
  if (runs != 2) _exit(7);
}

/* Two copies in one process do not treat each other's tensors as their own. */
static void two_copies(const char *path, const char *copy) {
  library a, b;
  DLManagedTensorVersioned *tensor, *out = NULL;
  CHECK(load(path, &a) && load(copy, &b) && a.handle != b.handle);
  tensor = make(&a);
  CHECK(a.is_own(tensor) == 1 && b.is_own(tensor) == 0);
  CHECK(b.retain(tensor, &out, NULL) == DLRS_FOREIGN && out == NULL);
  CHECK(b.import_take(&tensor, NULL, &out, NULL) == DLRS_OK && tensor == NULL);
  CHECK(b.is_own(out) == 1 && a.is_own(out) == 0);
  runs = 0;
  a.release(out);
  CHECK(runs == 1);
}

#endif
