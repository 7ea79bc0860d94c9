/* How the drivers are found, and what is missing: loading STANDINS [DROPPED FOLDER SYMBOL FACE]
 * STANDINS is build.sh's folder. Each case runs this program with another library search path. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "gpu.h"

static const char *folder;
static t_tensor host; /* with values 0 to 5 */

static int mapped(const char *name) {
  char line[1024];
  int found = 0;
  FILE *maps = fopen("/proc/self/maps", "r");
  while (maps && fgets(line, sizeof line, maps)) found |= strstr(line, name) != NULL;
  if (maps) fclose(maps);
  return found;
}

static int nothing_loaded(void) { return !mapped("libcuda") && !mapped("libamdhip64"); }

static DLDevice device(int type) { return t_device(type, 0); }

/* To the device and back; DLRS_OK when the values are right. */
static int32_t there_and_back(int32_t type) {
  DLManagedTensorVersioned *there, *back;
  t_before();
  int32_t status = dlrs_clone(&host.managed, device(type), NULL, &there, ERR);
  if (status != DLRS_OK) return status;
  status = dlrs_clone(there, CPU, NULL, &back, ERR);
  if (status == DLRS_OK) {
    CHECK(memcmp(back->dl_tensor.data, host.values, sizeof host.values) == 0);
    dlrs_release(back);
  }
  dlrs_release(there);
  return status;
}

/* Host functions work, and load nothing. */
static void cpu_works(void) {
  EQUAL(there_and_back(kDLCPU), DLRS_OK);
}

/* D01: no driver at all. */
static void none(void) {
  int32_t n;
  DLManagedTensorVersioned *out;
  CHECK(nothing_loaded());
  cpu_works();
  CHECK(nothing_loaded());
  if (dlopen("libcuda.so.1", RTLD_LAZY) == NULL) {
    t_result(&out);
    REFUSED(DLRS_DRV_MISSING, ANY, ANY, ANY, dlrs_device_count(kDLCUDA, &n, ERR));
    CHECK(strstr(t_error.message, "libcuda.so.1") != NULL);
    EQUAL(n, 0);
    REFUSED(DLRS_DRV_MISSING, ANY, ANY, ANY, dlrs_clone(&host.managed, device(kDLCUDA), NULL, &out, ERR));
  }
  if (dlopen("libamdhip64.so.5", RTLD_LAZY) == NULL && dlopen("libamdhip64.so.6", RTLD_LAZY) == NULL &&
      dlopen("libamdhip64.so.7", RTLD_LAZY) == NULL && dlopen("libamdhip64.so", RTLD_LAZY) == NULL) {
    REFUSED(DLRS_DRV_MISSING, ANY, ANY, ANY, dlrs_device_count(kDLROCM, &n, ERR));
    CHECK(strstr(t_error.message, "libamdhip64") != NULL);
    EQUAL(n, 0);
  }
  cpu_works();
}

/* Nothing is loaded until a function of a device is called, and then one driver only. */
static void lazy(void) {
  int32_t n;
  cpu_works();
  CHECK(nothing_loaded());
  WORKS(dlrs_device_count(kDLCUDA, &n, ERR));
  CHECK(mapped("libcuda") && !mapped("libamdhip64"));
  WORKS(dlrs_device_count(kDLROCM, &n, ERR));
  CHECK(mapped("libamdhip64"));
}

/* The driver's file by path, on a system where the search finds none. */
static void by_path(void) {
  static char file[600]; /* stored, not copied */
  int32_t n;
  WORKS(dlrs_driver_path_set(kDLCUDA, "/nowhere/libcuda.so.1", ERR));
  t_before();
  EQUAL(dlrs_device_count(kDLCUDA, &n, ERR), DLRS_DRV_MISSING);
  snprintf(file, sizeof file, "%s/cuda/libcuda.so.1", folder);
  WORKS(dlrs_driver_path_set(kDLCUDA, file, ERR));
  EQUAL(there_and_back(kDLCUDA), DLRS_OK);
  t_before();
  EQUAL(dlrs_driver_path_set(kDLCUDA, NULL, ERR), DLRS_BAD_ARG); /* too late */
  t_before();
  EQUAL(dlrs_driver_path_set(kDLOpenCL, NULL, ERR), DLRS_DEVICE_TYPE);
  EQUAL(there_and_back(kDLCUDA), DLRS_OK);
}

/* The method that a copy would use, reported before any driver is loaded. */
static void says(const DLTensor *src, const DLTensor *dst, const char *start) {
  char text[200] = "";
  WORKS(dlrs_copy_explain(src, 0, dst, 0, NULL, text, sizeof text, NULL, ERR));
  if (!CHECK(strncmp(text, start, strlen(start)) == 0)) printf("%s\n", text);
}

static void explained(void) {
  static int64_t shape[2] = {2, 3}, columns[2] = {1, 2}, gaps[2] = {64, 1}, wide[2] = {4, 32};
  static int64_t spread[2] = {12, 2};
  DLTensor a = host.managed.dl_tensor, b = a;
  a.data = (void *)4096;
  b.data = (void *)65536;
  a.device = b.device = device(kDLCUDA);
  a.shape = b.shape = shape;
  says(&a, &b, "cuda: the driver's copy; 24 bytes");
  a.strides = columns;
  says(&a, &b, "cuda: a kernel; 4 bytes x 2 (12 <- 4) x 3 (4 <- 8)");
  b.device.device_id = 1;
  says(&a, &b, "cuda: a kernel, and the driver's copy between devices; 4 bytes x 2 (12 <- 4) x 3");
  b.strides = spread; /* the source is compact, in another order */
  says(&a, &b, "cuda: a kernel, and the driver's copy between devices; ");
  a.strides = gaps;
  says(&a, &b, "through host memory: cuda:0 to cpu to cuda:1; ");
  b.strides = NULL;
  a.strides = columns;
  b.device = device(kDLROCM);
  says(&a, &b, "through host memory: cuda:0 to cpu to rocm:0; ");
  b.device = CPU;
  says(&a, &b, "cuda: pinned memory, and a kernel; ");
  a.shape = b.shape = wide;
  a.strides = gaps;
  b.strides = NULL;
  says(&a, &b, "cuda: the driver's copy of rows; 128 bytes x 4 (128 <- 256)");
  CHECK(nothing_loaded());
}

/* D05: both drivers in one process, and copies from one to the other. */
static void both(void) {
  DLManagedTensorVersioned *cuda, *rocm, *back;
  explained();
  WORKS(dlrs_clone(&host.managed, device(kDLCUDA), NULL, &cuda, ERR));
  WORKS(dlrs_clone(cuda, device(kDLROCM), NULL, &rocm, ERR));
  EQUAL(rocm->dl_tensor.device.device_type, kDLROCM);
  WORKS(dlrs_copy(rocm, cuda, NULL, ERR));
  WORKS(dlrs_clone(cuda, CPU, NULL, &back, ERR));
  CHECK(memcmp(back->dl_tensor.data, host.values, sizeof host.values) == 0);
  dlrs_release(cuda);
  dlrs_release(rocm);
  dlrs_release(back);
}

/* D34: one of the two is broken. */
static void broken(int32_t bad, int32_t good) {
  int32_t n;
  t_before();
  int32_t status = dlrs_device_count(bad, &n, ERR);
  /* ROCm has older file names, and the system may have an old driver without devices. */
  CHECK(status == DLRS_DRV_MISSING || status == DLRS_DRV_SYMBOL ||
        (bad == kDLROCM && status == DLRS_NO_DEVICE));
  EQUAL(n, 0);
  CHECK(strlen(t_error.message) > 20);
  EQUAL(there_and_back(good), DLRS_OK);
  CHECK(dlrs_device_count(bad, &n, ERR) == status);
  EQUAL(there_and_back(good), DLRS_OK);
  cpu_works();
}

static void broken_cuda(void) { broken(kDLCUDA, kDLROCM); }
static void broken_rocm(void) { broken(kDLROCM, kDLCUDA); }

/* A stand-in that fails at its start counts as broken; the other one works. */
static void failing(int32_t bad, int32_t good, const char *file, const char *function) {
  int32_t n;
  void *driver = dlopen(file, RTLD_NOW);
  int (*ctl)(int, long, long, const char *);
  *(void **)&ctl = dlsym(driver, "standin_ctl");
  ctl(STANDIN_FAIL_ALWAYS, 1, 999, function);
  t_before();
  CHECK(dlrs_device_count(bad, &n, ERR) == DLRS_DRV_INIT);
  EQUAL(t_error.driver_code, 999);
  EQUAL(there_and_back(good), DLRS_OK);
  ctl(STANDIN_DEFAULTS, 0, 0, NULL);
  EQUAL(there_and_back(bad), DLRS_OK);
}

static void failing_cuda(void) { failing(kDLCUDA, kDLROCM, "libcuda.so.1", "cuInit"); }
static void failing_rocm(void) { failing(kDLROCM, kDLCUDA, "libamdhip64.so.6", "hipInit"); }

/* ---- Z07: a function is missing -------------------------------------------------------------*/

static const char *missing;

/* The result when the driver lacks a function: an error that names it, or success. */
#define settled(call) (t_before(), judged(call))
static int32_t judged(int32_t status) {
  if (status != DLRS_OK) {
    EQUAL(status, DLRS_DRV_SYMBOL);
    CHECK(strstr(t_error.message, missing) != NULL);
    if (status != DLRS_DRV_SYMBOL || !strstr(t_error.message, missing)) printf("%s\n", t_error.message);
  } else {
    CHECK(1);
  }
  return status;
}

/* Without the function that destroys programs none is created, since it would leak. */
static void no_program_stays(void) {
  long (*count)(const char *) = NULL;
  void *driver = dlopen("libamdhip64.so.6", RTLD_NOW | RTLD_NOLOAD);
  if (strcmp(missing, "hiprtcDestroyProgram") != 0) return;
  if (CHECK(driver != NULL)) *(void **)&count = dlsym(driver, "standin_count");
  if (CHECK(count != NULL)) EQUAL(count("hiprtcCreateProgram"), 0);
}

static void dropped(int32_t type) {
  DLManagedTensorVersioned *there, *other;
  dlrs_copy_options options;
  dlrs_pointer_info info;
  t_tensor target;
  void *stream, *event, *data;
  int32_t n;
  static char page[4096];
  t_make(&target);
  memset(&info, 0, sizeof info);
  info.struct_size = sizeof info;
  memset(&options, 0, sizeof options);
  options.struct_size = sizeof options;
  DLDevice on = device(type);
  settled(dlrs_device_count(type, &n, ERR));
  settled(dlrs_pointer_device(type, page, &info, ERR));
  if (settled(dlrs_mem_register_host(type, page, sizeof page, ERR)) == DLRS_OK) {
    settled(dlrs_mem_unregister_host(type, page, ERR));
  }
  if (settled(dlrs_mem_alloc(on, 64, 0, NULL, &data, ERR)) == DLRS_OK) {
    settled(dlrs_mem_free(on, data, 64, 0, NULL, ERR));
  }
  if (settled(dlrs_stream_create(on, &stream, ERR)) == DLRS_OK) {
    if (settled(dlrs_mem_alloc(on, 64, 0, stream, &data, ERR)) == DLRS_OK) {
      settled(dlrs_mem_free(on, data, 64, 0, stream, ERR));
    }
    settled(dlrs_stream_wait(on, NULL, stream, ERR));
    if (settled(dlrs_event_create(on, &event, ERR)) == DLRS_OK) {
      settled(dlrs_event_record(on, event, stream, ERR));
      settled(dlrs_event_wait(on, event, stream, ERR));
      settled(dlrs_event_sync(on, event, ERR));
      settled(dlrs_event_destroy(on, event, ERR));
    }
    DLManagedTensorVersioned *three[3] = {NULL, NULL, NULL};
    for (int i = 0; i < 3; ++i) settled(dlrs_clone(&host.managed, on, NULL, &three[i], ERR));
    options.src_stream = options.dst_stream = stream;
    const DLManagedTensorVersioned *from[2] = {three[0], three[0]};
    if (three[0] && three[1] && three[2]) settled(dlrs_copy_batch(2, from, three + 1, &options, NULL, ERR));
    for (int i = 0; i < 3; ++i) dlrs_release(three[i]);
    options.dst_stream = NULL;
    options.src_stream = stream; /* the host has none */
    if (settled(dlrs_clone(&host.managed, on, NULL, &there, ERR)) == DLRS_OK) {
      options.flags = 0;
      settled(dlrs_copy(there, &target.managed, &options, ERR));
      there->dl_tensor.strides[0] = 1;
      there->dl_tensor.strides[1] = 2;
      options.dst_stream = stream;
      if (settled(dlrs_clone(there, on, &options, &other, ERR)) == DLRS_OK) dlrs_release(other);
      settled(dlrs_copy(there, &target.managed, NULL, ERR));
      settled(dlrs_copy(&host.managed, there, NULL, ERR));
      dlrs_release(there);
    }
    settled(dlrs_stream_sync(on, stream, ERR));
    settled(dlrs_stream_destroy(on, stream, ERR));
  }
  cpu_works();
}

/* ---- All cases ------------------------------------------------------------------------------*/

typedef struct mode {
  const char *name;
  void (*run)(void);
  const char *path; /* folders of the stand-ins, as LD_LIBRARY_PATH */
} mode;

static long passed, failed;

static void start(const void *arguments) {
  alarm(400);
  execv("/proc/self/exe", (char *const *)(uintptr_t)arguments);
}

/* Runs this program again; adds up its counts. */
static void again(const char *path, char **arguments) {
  int status;
  long p = 0, f = 1;
  setenv("LD_LIBRARY_PATH", path, 1);
  char *said = gpu_child(start, arguments, &status), *end = said + strlen(said);
  if (end > said) *--end = '\0';
  char *last = strrchr(said, '\n'), *closing = last ? last + 1 : said;
  if (sscanf(closing, "%ld passed, %ld failed", &p, &f) == 2) *closing = '\0';
  if (status != 0 && f == 0) f = 1;
  if (*said) printf("%s", said);
  if (f) printf("%s %s: %ld failed, status %#x\n", arguments[2], arguments[3] ? arguments[3] : "", f, status);
  passed += p;
  failed += f;
}

/* A file in place of a driver. */
static void put(const char *name, const void *bytes, size_t nbytes, mode_t rights) {
  int file = open(name, O_CREAT | O_TRUNC | O_WRONLY, 0700);
  if (file < 0 || write(file, bytes, nbytes) != (ssize_t)nbytes) exit(1);
  close(file);
  chmod(name, rights);
}

static const mode modes[] = {
    {"none", none, ""},
    {"lazy", lazy, "%s/cuda:%s/hip6"},
    {"by_path", by_path, ""},
    {"both", both, "%s/cuda:%s/hip6"},
    {"failing_cuda", failing_cuda, "%s/cuda:%s/hip6"},
    {"failing_rocm", failing_rocm, "%s/cuda:%s/hip6"},
    {"broken_cuda", broken_cuda, NULL},
    {"broken_rocm", broken_rocm, NULL},
};

/* Z06: other files in the driver's place. */
static void bad_files(char *program) {
  static const unsigned char elf32[64] = {0x7F, 'E', 'L', 'F', 1, 1, 1};
  static const char *const faces[2][3] = {{"libcuda.so.1", "broken_cuda", "hip6"},
                                          {"libamdhip64.so.6", "broken_rocm", "cuda"}};
  char place[512], name[600], path[1200];
  for (int face = 0; face < 2; ++face) {
    for (int kind = 0; kind < 7; ++kind) {
      snprintf(place, sizeof place, "%s/bad%d%d", folder, face, kind);
      mkdir(place, 0700);
      snprintf(name, sizeof name, "%s/%s", place, faces[face][0]);
      unlink(name);
      rmdir(name);
      if (kind == 0) put(name, "", 0, 0700);
      if (kind == 1) put(name, "this is no library\n", 19, 0700);
      if (kind == 2) put(name, elf32, sizeof elf32, 0700);
      if (kind == 3) mkdir(name, 0700);
      if (kind == 4 && symlink("nowhere", name) != 0) exit(1);
      if (kind == 5 && symlink(faces[face][0], name) != 0) exit(1);
      if (kind == 6) put(name, "no rights", 9, 0);
      snprintf(path, sizeof path, "%s:%s/%s", place, folder, faces[face][2]);
      char *arguments[] = {program, (char *)(uintptr_t)folder, (char *)(uintptr_t)faces[face][1], NULL};
      again(path, arguments);
    }
  }
}

int main(int argc, char **argv) {
  char path[1200];
  if (argc < 2) {
    puts("usage: loading STANDINS [dropped FACE SYMBOL FOLDER]");
    return 2;
  }
  folder = argv[1];
  t_make(&host);
  if (argc == 6) { /* loading STANDINS dropped FACE SYMBOL FOLDER: with the driver that lacks it */
    snprintf(path, sizeof path, "%s", argv[5]);
    if (!getenv("LOADING_AGAIN")) {
      setenv("LOADING_AGAIN", "1", 1);
      again(path, argv);
      printf("%ld passed, %ld failed\n", passed, failed);
      return failed != 0 || passed == 0;
    }
    missing = argv[4];
    t_context = missing;
    dropped(strcmp(argv[3], "cuda") == 0 ? kDLCUDA : kDLROCM);
    no_program_stays();
    return t_close();
  }
  for (size_t i = 0; argc == 3 && i < sizeof modes / sizeof *modes; ++i) {
    if (strcmp(argv[2], modes[i].name) != 0) continue;
    t_context = modes[i].name;
    modes[i].run();
    return t_close();
  }
  for (size_t i = 0; i < sizeof modes / sizeof *modes; ++i) {
    if (modes[i].path == NULL) continue;
    snprintf(path, sizeof path, modes[i].path, folder, folder);
    char *arguments[] = {argv[0], argv[1], (char *)(uintptr_t)modes[i].name, NULL};
    again(path, arguments);
  }
  bad_files(argv[0]);
  printf("%ld passed, %ld failed\n", passed, failed);
  return failed != 0 || passed == 0;
}
