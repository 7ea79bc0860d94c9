/* lifecycle.c for Windows: loading and unloading, exit, threads that end, two copies in one
 * process, lookup of modules. Not linked to the library: `lifecycle LIBRARY COPY`. */
#include <process.h>

#include "../loaded.h"

/* A host that only queries gets its memory back. */
static void reload(const char *path) {
  library lib;
  uint32_t (*version)(void) = NULL;
  int i;
  for (i = 0; i < 1000; ++i) {
    CHECK(load(path, &lib) && find(&lib, "dlrs_version", &version));
    CHECK(version() == DLRS_HEADER_VERSION);
    CHECK(FreeLibrary(lib.handle));
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
  for (i = 0; i < 10; ++i) FreeLibrary(lib.handle);
  CHECK(GetModuleHandleA(path) == lib.handle);
  CHECK(tensor->dl_tensor.shape[1] == 5);
  runs = 0;
  tensor->deleter(tensor);
  CHECK(runs == 1);
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

/* Python is searched for in all modules, by the first function needed. This one has only that
 * function, as Python before 3.9 might. */
__declspec(dllexport) void PyObject_VectorcallMethod(void) {}

static void old_python(const char *path) {
  library lib;
  dlrs_error error;
  DLManagedTensorVersioned *out = NULL;
  dlrs_status (*py_import)(void *, const dlrs_py_import_options *, DLManagedTensorVersioned **,
                           dlrs_error *) = NULL;
  memset(&error, 0, sizeof error);
  error.struct_size = sizeof error;
  CHECK(load(path, &lib) && find(&lib, "dlrs_py_import", &py_import));
  CHECK(py_import(&lib, NULL, &out, &error) == DLRS_UNSUPPORTED && out == NULL);
  CHECK(strstr(error.message, "older than 3.9") != NULL);
}

/* A driver is found in the library folders of the system and the program, not in the current
 * folder. The nvcuda.dll in the folder `planted` is empty. */
static void driver(const char *path) {
  library lib;
  wchar_t folder[MAX_PATH];
  int32_t count;
  dlrs_status (*device_count)(int32_t, int32_t *, dlrs_error *) = NULL;
  CHECK(load(path, &lib) && find(&lib, "dlrs_device_count", &device_count));
  CHECK(SetCurrentDirectoryA("planted"));
  CHECK(device_count(kDLCUDA, &count, NULL) == DLRS_DRV_MISSING);
  CHECK(GetModuleHandleA("nvcuda.dll") == NULL);
  CHECK(GetCurrentDirectoryW(MAX_PATH, folder) != 0 && AddDllDirectory(folder) != NULL);
  CHECK(device_count(kDLCUDA, &count, NULL) == DLRS_DRV_SYMBOL);
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
