/* lifecycle.c for Windows: loading and unloading, exit, threads that end, two copies in one
 * process, lookup of modules. Not linked to the library: `lifecycle LIBRARY COPY`. */
#include <process.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
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
    printf("lifecycle.c:%d: failed: %s\n", line, what);
  }
}
#define CHECK(x) check((x) ? 1 : 0, __LINE__, #x)

/* The functions of one loaded copy. */
typedef struct library {
  HMODULE module;
  dlrs_status (*tensor_new)(const int64_t *, int32_t, DLDataType, DLDevice,
                            const dlrs_alloc_options *, DLManagedTensorVersioned **, dlrs_error *);
  dlrs_status (*attach)(DLManagedTensorVersioned *, dlrs_free_fn, void *, int32_t, dlrs_error *);
  dlrs_status (*retain)(DLManagedTensorVersioned *, DLManagedTensorVersioned **, dlrs_error *);
  dlrs_status (*import_take)(DLManagedTensorVersioned **, const dlrs_import_options *,
                             DLManagedTensorVersioned **, dlrs_error *);
  void (*release)(DLManagedTensorVersioned *);
  int32_t (*is_own)(const DLManagedTensorVersioned *);
  uint32_t (*version)(void);
  dlrs_status (*py_import)(void *, const dlrs_py_import_options *, DLManagedTensorVersioned **,
                           dlrs_error *);
  dlrs_status (*device_count)(int32_t, int32_t *, dlrs_error *);
} library;

static int find(HMODULE module, const char *name, void *function) {
  FARPROC found = GetProcAddress(module, name);
  memcpy(function, &found, sizeof found);
  return found != NULL;
}

static int load(const char *path, library *lib) {
  lib->module = LoadLibraryA(path);
  return lib->module != NULL && find(lib->module, "dlrs_tensor_new", &lib->tensor_new) &&
         find(lib->module, "dlrs_attach", &lib->attach) &&
         find(lib->module, "dlrs_retain", &lib->retain) &&
         find(lib->module, "dlrs_import_take", &lib->import_take) &&
         find(lib->module, "dlrs_release", &lib->release) &&
         find(lib->module, "dlrs_is_own", &lib->is_own) &&
         find(lib->module, "dlrs_version", &lib->version) &&
         find(lib->module, "dlrs_py_import", &lib->py_import) &&
         find(lib->module, "dlrs_device_count", &lib->device_count);
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

/* A host that only queries gets its memory back. */
static void reload(const char *path) {
  library lib;
  int i;
  for (i = 0; i < 1000; ++i) {
    CHECK(load(path, &lib));
    CHECK(lib.version() == DLRS_HEADER_VERSION);
    CHECK(FreeLibrary(lib.module));
    CHECK(GetModuleHandleA(path) == NULL);
  }
}

/* F18: the owner of a tensor may still close the library, any number of times. */
static void unload(const char *path) {
  library lib;
  DLManagedTensorVersioned *tensor;
  int i;
  CHECK(load(path, &lib));
  tensor = make(&lib);
  for (i = 0; i < 10; ++i) FreeLibrary(lib.module);
  CHECK(GetModuleHandleA(path) == lib.module);
  CHECK(tensor->dl_tensor.shape[1] == 5);
  runs = 0;
  tensor->deleter(tensor);
  CHECK(runs == 1);
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

static void exits_late(const char *self, const char *path) {
  CHECK(_spawnl(_P_WAIT, self, self, path, NULL) == 0);
}

static void NTAPI at_thread_exit(void *tensor) {
  late.release((DLManagedTensorVersioned *)tensor);
}

static DWORD slot;
static DWORD WINAPI thread_with_tensor(void *argument) {
  (void)argument;
  return !FlsSetValue(slot, make(&late));
}

/* Z18: freed by the destructor of the application's thread-local variable. */
static void thread_exit(void) {
  HANDLE thread;
  slot = FlsAlloc(at_thread_exit);
  CHECK(slot != FLS_OUT_OF_INDEXES);
  runs = 0;
  thread = CreateThread(NULL, 0, thread_with_tensor, NULL, 0, NULL);
  CHECK(thread != NULL && WaitForSingleObject(thread, INFINITE) == WAIT_OBJECT_0);
  CloseHandle(thread);
  CHECK(runs == 1);
  FlsFree(slot);
}

/* Two copies in one process do not treat each other's tensors as their own. */
static void two_copies(const char *path, const char *copy) {
  library a, b;
  DLManagedTensorVersioned *tensor, *out = NULL;
  CHECK(load(path, &a) && load(copy, &b) && a.module != b.module);
  tensor = make(&a);
  CHECK(a.is_own(tensor) == 1 && b.is_own(tensor) == 0);
  CHECK(b.retain(tensor, &out, NULL) == DLRS_FOREIGN && out == NULL);
  CHECK(b.import_take(&tensor, NULL, &out, NULL) == DLRS_OK && tensor == NULL);
  CHECK(b.is_own(out) == 1 && a.is_own(out) == 0);
  runs = 0;
  a.release(out);
  CHECK(runs == 1);
}

/* Python is searched for in all modules, by the first function needed. This one has only that
 * function, as Python before 3.9 might. */
__declspec(dllexport) void PyObject_VectorcallMethod(void) {}

static void old_python(const char *path) {
  library lib;
  dlrs_error error;
  DLManagedTensorVersioned *out = NULL;
  memset(&error, 0, sizeof error);
  error.struct_size = sizeof error;
  CHECK(load(path, &lib));
  CHECK(lib.py_import(&lib, NULL, &out, &error) == DLRS_UNSUPPORTED && out == NULL);
  CHECK(strstr(error.message, "older than 3.9") != NULL);
}

/* A driver is found in the library folders of the system and the program, not in the current
 * folder. The nvcuda.dll in the folder `planted` is empty. */
static void driver(const char *path) {
  library lib;
  wchar_t folder[MAX_PATH];
  int32_t count;
  CHECK(load(path, &lib));
  CHECK(SetCurrentDirectoryA("planted"));
  CHECK(lib.device_count(kDLCUDA, &count, NULL) == DLRS_DRV_MISSING);
  CHECK(GetModuleHandleA("nvcuda.dll") == NULL);
  CHECK(GetCurrentDirectoryW(MAX_PATH, folder) != 0 && AddDllDirectory(folder) != NULL);
  CHECK(lib.device_count(kDLCUDA, &count, NULL) == DLRS_DRV_SYMBOL);
  CHECK(GetModuleHandleA("nvcuda.dll") != NULL);
}

int main(int argc, char **argv) {
  if (argc < 2) return 2;
  if (argc == 2) { /* as a child process */
    if (!load(argv[1], &late)) return 8;
    late_tensor = make(&late);
    atexit(at_exit);
    return failed != 0;
  }
  reload(argv[1]); /* first: from the first tensor on, the library stays loaded */
  unload(argv[1]);
  CHECK(load(argv[1], &late));
  exits_late(argv[0], argv[1]);
  thread_exit();
  two_copies(argv[1], argv[2]);
  old_python(argv[1]);
  driver(argv[1]); /* last: it changes the folder */
  printf("%ld passed, %ld failed\n", passed, failed);
  return failed != 0;
}
