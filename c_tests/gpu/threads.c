/* Threads on a driver: the first use from many threads at once, copies on a stream per thread, one
 * thread that allocates and another that releases. threads cuda|rocm [ROUNDS] */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <pthread.h>
#include <unistd.h>

#include "gpu.h"

enum { THREADS = 16 };
static int rounds = 40, devices;
static pthread_barrier_t gate;

typedef struct job {
  pthread_t thread;
  int number, wrong;
  DLManagedTensorVersioned *left;
} job;

static int holds(const DLManagedTensorVersioned *tensor, float first) {
  float got[6];
  gpu_read(tensor->dl_tensor.device.device_id, got, tensor->dl_tensor.data, sizeof got);
  return got[0] == first && got[5] == first + 5;
}

static DLManagedTensorVersioned tensor_of(float values[6], float first, int64_t shape[2],
                                          int64_t strides[2]) {
  for (int i = 0; i < 6; ++i) values[i] = first + (float)i;
  shape[0] = 2;
  shape[1] = 3;
  strides[0] = 3;
  strides[1] = 1;
  DLManagedTensorVersioned managed = t_managed(t_describe(values, F32, 2, shape, strides), 0);
  managed.deleter = NULL;
  return managed;
}

static void *work(void *argument) {
  job *self = (job *)argument;
  dlrs_copy_options options;
  float values[6];
  int64_t shape[2], strides[2];
  DLDevice device = DEV(self->number % devices);
  void *stream = NULL;
  pthread_barrier_wait(&gate);
  self->wrong += dlrs_stream_create(device, &stream, NULL) != DLRS_OK;
  memset(&options, 0, sizeof options);
  options.struct_size = sizeof options;
  for (int i = 0; i < rounds; ++i) {
    DLManagedTensorVersioned *there = NULL, *back = NULL;
    float first = (float)(self->number * 1000 + i);
    DLManagedTensorVersioned host = tensor_of(values, first, shape, strides);
    options.src_stream = NULL;
    options.dst_stream = i % 3 ? stream : NULL;
    options.flags = 0;
    self->wrong += dlrs_clone(&host, device, &options, &there, NULL) != DLRS_OK;
    if (there == NULL) continue;
    self->wrong += !holds(there, first);
    options.src_stream = options.dst_stream;
    options.dst_stream = NULL;
    self->wrong += dlrs_clone(there, CPU, &options, &back, NULL) != DLRS_OK;
    if (back != NULL) {
      self->wrong += memcmp(back->dl_tensor.data, values, sizeof values) != 0;
      dlrs_release(back);
    }
    if (i % 4 == 0) {
      self->wrong += dlrs_release_after_take(&there, device, stream, NULL) != DLRS_OK;
      dlrs_release_drain(NULL, NULL);
    }
    if (i + 1 == rounds) self->left = there;
    else if (there) dlrs_release(there);
  }
  self->wrong += dlrs_stream_sync(device, stream, NULL) != DLRS_OK;
  self->wrong += dlrs_stream_destroy(device, stream, NULL) != DLRS_OK;
  return NULL;
}

/* Z19: many threads start the driver at once; optionally one of its initialisation calls fails. */
static void crowd(void) {
  static job jobs[THREADS];
  devices = gpu_count() > 1 ? 2 : 1;
  pthread_barrier_init(&gate, NULL, THREADS);
  for (int i = 0; i < THREADS; ++i) {
    jobs[i].number = i;
    if (pthread_create(&jobs[i].thread, NULL, work, &jobs[i]) != 0) exit(1);
  }
  for (int i = 0; i < THREADS; ++i) pthread_join(jobs[i].thread, NULL);
  for (int i = 0; i < THREADS; ++i) {
    EQUAL(jobs[i].wrong, 0);
    if (jobs[i].left) dlrs_release(jobs[i].left); /* by another thread than the creator */
  }
  uint64_t waiting = 0;
  if (G.standin) G.ctl(STANDIN_RUN, -1, 0, NULL);
  WORKS(dlrs_release_drain(&waiting, ERR));
  EQUAL(waiting, 0);
  if (G.standin) {
    standin_stats_t now = gpu_now().stats;
    EQUAL(now.device_blocks, 0);
    EQUAL(now.streams + now.events, 0);
    if (!G.hip) CHECK(now.retains <= 2);
  }
}

static void seeds(void) {
  NEEDS_STANDIN();
  G.ctl(STANDIN_SEED, 7, 0, NULL);
  crowd();
}

static void alone(void) {
  NEEDS_STANDIN();
  G.ctl(STANDIN_DEVICES, 1, 0, NULL);
  crowd();
}

/* The first strided copies, by many threads at once: the kernels are compiled and loaded once, and
 * no thread uses them before they are complete. */
static void *turns(void *argument) {
  job *self = (job *)argument;
  gpu_tensor src, dst;
  gpu_make(&src, self->number & 1);
  gpu_make(&dst, self->number & 1);
  src.strides[0] = 1;
  src.strides[1] = 2;
  pthread_barrier_wait(&gate);
  self->wrong += dlrs_copy(&src.managed, &dst.managed, NULL, NULL) != DLRS_OK;
  static const float turned[6] = {0, 2, 4, 1, 3, 5};
  self->wrong += !gpu_holds(&dst.managed.dl_tensor, turned);
  gpu_drop(&src);
  gpu_drop(&dst);
  return NULL;
}

static void compile(void) {
  static job jobs[THREADS];
  const char *loads = G.hip ? "hipModuleLoadData" : "cuModuleLoadData";
  const char *launches = G.hip ? "hipModuleLaunchKernel" : "cuLaunchKernel";
  NEEDS_STANDIN();
  for (int i = 0; i < 2; ++i) gpu_free(i, gpu_alloc(i, 8)); /* the test's contexts exist */
  pthread_barrier_init(&gate, NULL, THREADS);
  for (int i = 0; i < THREADS; ++i) {
    jobs[i].number = i;
    if (pthread_create(&jobs[i].thread, NULL, turns, &jobs[i]) != 0) exit(1);
  }
  for (int i = 0; i < THREADS; ++i) pthread_join(jobs[i].thread, NULL);
  for (int i = 0; i < THREADS; ++i) EQUAL(jobs[i].wrong, 0);
  EQUAL(G.calls(launches), THREADS);
  EQUAL(G.calls(loads), 2); /* devices */
  if (G.hip) EQUAL(G.calls("hiprtcCompileProgram"), 2);
}

/* A thread that waits for a hanging driver does not block other threads. */
static void *waits(void *argument) {
  void *stream = argument;
  return (void *)(intptr_t)dlrs_stream_sync(DEV(0), stream, NULL);
}

static void hang(void) {
  gpu_tensor src, dst;
  pthread_t thread;
  DLManagedTensorVersioned *out;
  t_tensor host;
  void *answer;
  NEEDS_STANDIN();
  gpu_make(&src, 0);
  gpu_make(&dst, 0);
  t_make(&host);
  void *stream = gpu_stream(0, 1);
  dlrs_copy_options later;
  memset(&later, 0, sizeof later);
  later.struct_size = sizeof later;
  later.src_stream = later.dst_stream = stream;
  later.flags = DLRS_COPY_ASYNC;
  WORKS(dlrs_copy(&src.managed, &dst.managed, NULL, ERR));
  G.ctl(STANDIN_HANG, 1, 0, NULL);
  WORKS(dlrs_copy(&src.managed, &dst.managed, &later, ERR));
  WORKS(dlrs_clone(&host.managed, CPU, NULL, &out, ERR));
  WORKS(dlrs_release_after_take(&out, DEV(0), stream, ERR));
  if (pthread_create(&thread, NULL, waits, stream) != 0) exit(1);
  for (int i = 0; i < 100; ++i) {
    uint64_t waiting = 0;
    WORKS(dlrs_clone(&host.managed, CPU, NULL, &out, ERR));
    dlrs_release(out);
    WORKS(dlrs_release_drain(&waiting, ERR));
    EQUAL(waiting, 1);
    WORKS(dlrs_tensor_new(src.shape, 2, F32, DEV(1), NULL, &out, ERR));
    dlrs_release(out);
  }
  G.ctl(STANDIN_HANG, 0, 0, NULL);
  pthread_join(thread, &answer);
  EQUAL((intptr_t)answer, DLRS_OK);
  WORKS(dlrs_release_drain(NULL, ERR));
  gpu_stream_free(0, stream);
  gpu_drop(&src);
  gpu_drop(&dst);
}

static const gpu_row rows[] = {
    {"Z19", "first use by 16 threads, copies on streams", crowd},
    {"Z19", "the same, executed in a random order", seeds},
    {"Z19", "the same, on one device", alone},
    {"Z15", "waiting holds nobody up", hang},
    {"Z19", "first strided copies by 16 threads", compile},
};

int main(int argc, char **argv) {
  if (argc < 2 || !gpu_open(argv[1])) {
    puts("usage: threads cuda|rocm [ROUNDS]: and its driver must be found");
    return 2;
  }
  if (argc > 2) rounds = atoi(argv[2]);
  for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) gpu_run(&rows[i]);
  return gpu_end();
}
