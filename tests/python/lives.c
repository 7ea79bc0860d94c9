/* Interpreter lifetimes, in a program that embeds Python: objects of an interpreter are released in
   it, or not used again. No Python.h: one program runs with every CPython.

   lives PYTHON OURS restart     Python ends with tensors that are out, and is started again
   lives PYTHON OURS together    four interpreters at once, with locks of their own (3.13), each
                                 releasing what belongs to the next */
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <dlpack/dlpack_rs.h>

typedef struct { int kind; const char *function, *message; int exit_code; } Status;
typedef struct { int allocator, fork, exec, threads, daemons, check, lock; } Config;

typedef dlrs_status (*Import)(void *, const dlrs_py_import_options *, DLManagedTensorVersioned **,
                              dlrs_error *);
typedef dlrs_status (*Wrap)(const DLTensor *, uint64_t, void *, DLManagedTensorVersioned **,
                            dlrs_error *);

static void *python, *ours;
static const char *path; /* of ours */

static void *at(void *library, const char *name) {
  void *found = dlsym(library, name);
  if (found == NULL) { fprintf(stderr, "no %s\n", name); exit(9); }
  return found;
}

/* A function of a library, by type; POSIX allows this conversion of pointers, ISO C does not. */
#define OF(library, type, name) (*(type)(uintptr_t)at(library, #name))
#define PY(type, name) OF(python, type, name)

#define N 40
typedef struct {
  DLManagedTensorVersioned *out[8 * N];
  int n;
} Tensors;
static Tensors all;

#define ENSURE(condition) do { if (!(condition)) { \
  fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition); exit(1); } } while (0)

/* Objects that report too many releases, and buffers. */
static const char setup[] =
  "import array, os\n"
  "memory = array.array('d', [1.0, 2.0])\n"
  "deleted, sources = [], [bytearray(1000)]\n"
  "class Interface:\n"
  "    def __init__(self):\n"
  "        self.__array_interface__ = {'version': 3, 'shape': (2,), 'typestr': '<f8',\n"
  "                                    'data': (memory.buffer_info()[0], False)}\n"
  "    def __del__(self, deleted=deleted, write=os.write):\n"
  "        deleted.append(1)\n"
  "        if len(deleted) > 120:\n"
  "            write(2, b'deleted in another life\\n')\n"
  "def another():\n"
  "    sources.append(bytearray(1000))\n"
  "    return sources[-1], Interface()\n";

static void say(const char *script) {
  ENSURE(PY(int (*)(const char *), PyRun_SimpleString)(script) == 0);
}

/* A tensor over the object's memory, without a reference to the object. */
static dlrs_status wrap(void *object, DLManagedTensorVersioned **out, dlrs_error *error) {
  static double memory[2] = {1, 2};
  int64_t shape[1] = {2};
  DLTensor tensor;
  memset(&tensor, 0, sizeof tensor);
  tensor.data = memory;
  tensor.device.device_type = kDLCPU;
  tensor.dtype.code = kDLFloat; tensor.dtype.bits = 64; tensor.dtype.lanes = 1;
  tensor.ndim = 1;
  tensor.shape = shape;
  return OF(ours, Wrap, dlrs_py_wrap)(&tensor, 0, object, out, error);
}

/* Tensors of this interpreter: over a buffer and over an array interface; every second one of the
   latter over memory that the object owns, by dlrs_py_wrap. */
static void make(Tensors *to, int count) {
  void *(*attribute)(void *, const char *);
  void (*drop)(void *) = PY(void (*)(void *), Py_DecRef);
  Import import = OF(ours, Import, dlrs_py_import);
  void *main = PY(void *(*)(const char *), PyImport_AddModule)("__main__");
  attribute = PY(void *(*)(void *, const char *), PyObject_GetAttrString);
  while (count-- > 0) {
    long i;
    void *call = attribute(main, "another"), *empty = PY(void *(*)(intptr_t), PyTuple_New)(0);
    void *pair = PY(void *(*)(void *, void *, void *), PyObject_Call)(call, empty, NULL);
    ENSURE(pair != NULL);
    for (i = 0; i < 2; ++i) {
      dlrs_error error;
      void *object = PY(void *(*)(void *, intptr_t), PyTuple_GetItem)(pair, i);
      error.struct_size = sizeof error;
      if (i == 1 && count % 2 ? wrap(object, &to->out[to->n], &error) :
          import(object, NULL, &to->out[to->n], &error)) {
        PY(void (*)(void), PyErr_Print)();
        fputs(error.message, stderr);
        exit(1);
      }
      ++to->n;
    }
    drop(pair); drop(empty); drop(call);
  }
}

static void release_some(Tensors *from, int count) {
  for (; count > 0 && from->n > 0; --count) {
    DLManagedTensorVersioned *tensor = from->out[--from->n];
    tensor->deleter(tensor);
  }
}

static void *release(void *count) {
  release_some(&all, *(int *)count);
  return NULL;
}

/* On a thread without a Python thread state, while this one is attached to no interpreter. */
static void release_elsewhere(int count) {
  pthread_t thread;
  void *left = PY(void *(*)(void), PyEval_SaveThread)();
  ENSURE(pthread_create(&thread, NULL, release, &count) == 0 && pthread_join(thread, NULL) == 0);
  PY(void (*)(void *), PyEval_RestoreThread)(left);
}

/* The library's extension module, used and left to the interpreter. */
static void module(void) {
  static const char form[] =
    "from importlib.machinery import ExtensionFileLoader, ModuleSpec\n"
    "loader = ExtensionFileLoader('_dlpack_rs', '%s')\n"
    "module = loader.create_module(ModuleSpec('_dlpack_rs', loader, origin=loader.path))\n"
    "loader.exec_module(module)\n"
    "viewed = module.from_dlpack(bytearray(6)).reshape(2, 3).T\n"
    "assert type(viewed) is module.Tensor and viewed.shape == (3, 2)\n";
  char script[sizeof form + 4096];
  ENSURE(snprintf(script, sizeof script, form, path) < (int)sizeof script);
  say(script);
}

static void restart(void) {
  int life, half;
  for (life = 0; life < 5; ++life) {
    PY(void (*)(void), Py_Initialize)();
    module();
    /* From an earlier interpreter: not used, wherever it is. */
    half = all.n / 2;
    release(&half);
    release_elsewhere(all.n);
    say(setup);
    make(&all, 3 * N);
    half = 3 * N;
    release(&half);
    release_elsewhere(half);
    say("assert len(deleted) == 120, len(deleted)\n"
        "for source in sources: source.append(1)\n");
    make(&all, 2 * N);
    ENSURE(PY(int (*)(void), Py_FinalizeEx)() == 0);
    half = N; /* after the end */
    release(&half);
  }
}

static pthread_barrier_t barrier;
static Tensors boxes[4];

/* Waits for the others, detached from Python: they may need to attach. */
static void meet(void) {
  void *left = PY(void *(*)(void), PyEval_SaveThread)();
  pthread_barrier_wait(&barrier);
  PY(void (*)(void *), PyEval_RestoreThread)(left);
}

static void *one_of_four(void *place) {
  const Config own = {0, 0, 0, 1, 0, 1, 2};
  int here = *(int *)place, round;
  Status (*start)(void **, const Config *);
  start = PY(Status (*)(void **, const Config *), Py_NewInterpreterFromConfig);
  for (round = 0; round < 10; ++round) {
    int state = PY(int (*)(void), PyGILState_Ensure)();
    void *main = PY(void *(*)(void), PyThreadState_Get)(), *other;
    ENSURE(start(&other, &own).kind == 0);
    say(setup);
    module();
    make(&boxes[here], N);
    meet();
    release_some(&boxes[(here + 1) % 4], 2 * N);
    meet();
    say("assert len(deleted) == 40, len(deleted)\n"
        "for source in sources: source.append(1)\n");
    PY(void (*)(void *), Py_EndInterpreter)(other);
    PY(void (*)(void *), PyEval_RestoreThread)(main);
    PY(void (*)(int), PyGILState_Release)(state);
  }
  return NULL;
}

static void together(void) {
  pthread_t threads[4];
  int places[4], i;
  void *left;
  PY(void (*)(void), Py_Initialize)();
  if (atoi(PY(const char *(*)(void), Py_GetVersion)() + strlen("3.")) < 13) exit(77);
  pthread_barrier_init(&barrier, NULL, 4);
  left = PY(void *(*)(void), PyEval_SaveThread)();
  for (i = 0; i < 4; ++i) {
    places[i] = i;
    ENSURE(pthread_create(&threads[i], NULL, one_of_four, &places[i]) == 0);
  }
  for (i = 0; i < 4; ++i) ENSURE(pthread_join(threads[i], NULL) == 0);
  PY(void (*)(void *), PyEval_RestoreThread)(left);
  ENSURE(PY(int (*)(void), Py_FinalizeEx)() == 0);
}

int main(int argc, char **argv) {
  if (argc != 4) return 2;
  python = dlopen(argv[1], RTLD_NOW | RTLD_GLOBAL);
  path = argv[2];
  ours = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (python == NULL || ours == NULL) { fprintf(stderr, "%s\n", dlerror()); return 9; }
  switch (argv[3][0]) {
  case 'r': restart(); break;
  default: together();
  }
  return 0;
}
