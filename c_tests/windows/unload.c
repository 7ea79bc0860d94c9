/* Loading and unloading on Windows; not linked to the library: `unload LIBRARY COPY`. */
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#define WIN32_LEAN_AND_MEAN
#include <windows.h>

#include "dlpack_rs.h"

static long passed, failed;

static void check(int ok, int line, const char *what) {
  if (ok) {
    ++passed;
  } else {
    ++failed;
    printf("unload.c:%d: failed: %s\n", line, what);
  }
}
#define CHECK(x) check((x) ? 1 : 0, __LINE__, #x)

typedef struct library {
  HMODULE module;
  dlrs_status (*tensor_new)(const int64_t *, int32_t, DLDataType, DLDevice,
                            const dlrs_alloc_options *, DLManagedTensorVersioned **, dlrs_error *);
  int32_t (*is_own)(const DLManagedTensorVersioned *);
  uint32_t (*version)(void);
} library;

static int find(HMODULE module, const char *name, void *function) {
  FARPROC found = GetProcAddress(module, name);
  memcpy(function, &found, sizeof found);
  return found != NULL;
}

static int load(const char *path, library *lib) {
  lib->module = LoadLibraryA(path);
  return lib->module != NULL && find(lib->module, "dlrs_tensor_new", &lib->tensor_new) &&
         find(lib->module, "dlrs_is_own", &lib->is_own) &&
         find(lib->module, "dlrs_version", &lib->version);
}

static DLManagedTensorVersioned *make(const library *lib) {
  int64_t shape[2] = {3, 5};
  DLDataType dtype = {kDLFloat, 32, 1};
  DLDevice device = {kDLCPU, 0};
  DLManagedTensorVersioned *out = NULL;
  CHECK(lib->tensor_new(shape, 2, dtype, device, NULL, &out, NULL) == DLRS_OK);
  return out;
}

int main(int argc, char **argv) {
  library lib, copy;
  DLManagedTensorVersioned *tensor;
  int i;
  if (argc < 3) return 2;
  /* A host that only asks gets its memory back. */
  for (i = 0; i < 1000; ++i) {
    CHECK(load(argv[1], &lib));
    CHECK(lib.version() == DLRS_HEADER_VERSION);
    CHECK(FreeLibrary(lib.module));
    CHECK(GetModuleHandleA(argv[1]) == NULL);
  }
  /* One that holds a tensor may let go of the library all the same, as often as it likes. */
  CHECK(load(argv[1], &lib));
  tensor = make(&lib);
  for (i = 0; i < 10; ++i) FreeLibrary(lib.module);
  CHECK(GetModuleHandleA(argv[1]) == lib.module);
  CHECK(tensor->dl_tensor.shape[1] == 5);
  tensor->deleter(tensor);
  /* Two copies in one process keep their tensors apart. */
  CHECK(load(argv[1], &lib) && load(argv[2], &copy) && lib.module != copy.module);
  tensor = make(&lib);
  CHECK(lib.is_own(tensor) == 1 && copy.is_own(tensor) == 0);
  tensor->deleter(tensor);
  printf("%ld passed, %ld failed\n", passed, failed);
  return failed != 0;
}
