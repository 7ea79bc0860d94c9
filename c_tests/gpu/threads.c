/* Threads on a driver: the first use from many threads at once, copies on a stream per thread, one
 * thread that allocates and another that releases, records. threads cuda|rocm [ROUNDS] */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <pthread.h>

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

static void *work(void *argument) {
  job *self = (job *)argument;
  t_tensor host;
  DLDevice device = DEV(self->number % devices);
  void *stream = NULL;
  pthread_barrier_wait(&gate);
  self->wrong += dlrs_stream_create(device, &stream, NULL) != DLRS_OK;
  for (int i = 0; i < rounds; ++i) {
    DLManagedTensorVersioned *there = NULL, *back = NULL;
    float first = (float)(self->number * 1000 + i);
    dlrs_copy_options up = gpu_options(NULL, i % 3 ? stream : NULL, 0), down = gpu_options(up.dst_stream, NULL, 0);
    t_make(&host);
    for (int k = 0; k < 6; ++k) host.values[k] = first + (float)k;
    self->wrong += dlrs_clone(&host.managed, device, &up, &there, NULL) != DLRS_OK;
    if (there == NULL) continue;
    self->wrong += !holds(there, first);
    self->wrong += dlrs_clone(there, CPU, &down, &back, NULL) != DLRS_OK;
    if (back != NULL) {
      self->wrong += memcmp(back->dl_tensor.data, host.values, sizeof host.values) != 0;
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

static job jobs[THREADS];

static void all(void *(*run)(void *)) {
  pthread_barrier_init(&gate, NULL, THREADS);
  for (int i = 0; i < THREADS; ++i) {
    jobs[i].number = i;
    if (pthread_create(&jobs[i].thread, NULL, run, &jobs[i]) != 0) exit(1);
  }
  for (int i = 0; i < THREADS; ++i) pthread_join(jobs[i].thread, NULL);
  for (int i = 0; i < THREADS; ++i) {
    EQUAL(jobs[i].wrong, 0);
    dlrs_release(jobs[i].left); /* by another thread than the creator */
  }
}

/* Z19: many threads start the driver at once. */
static void crowd(void) {
  devices = gpu_count() > 1 ? 2 : 1;
  all(work);
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
  G.ctl(STANDIN_SEED, 7, 0, NULL);
  crowd();
}

static void alone(void) {
  G.ctl(STANDIN_DEVICES, 1, 0, NULL);
  crowd();
}

/* The first strided copies, by many threads at once: the kernels are compiled and loaded once, and
 * no thread uses them before they are complete. */
static void *turns(void *argument) {
  static const float columns[6] = {0, 2, 4, 1, 3, 5};
  job *self = (job *)argument;
  gpu_tensor src, dst;
  gpu_make(&src, self->number & 1);
  gpu_make(&dst, self->number & 1);
  gpu_turn(&src);
  pthread_barrier_wait(&gate);
  self->wrong += dlrs_copy(&src.managed, &dst.managed, NULL, NULL) != DLRS_OK;
  self->wrong += !gpu_holds(&dst.managed.dl_tensor, columns);
  return NULL;
}

static void compile(void) {
  for (int i = 0; i < 2; ++i) gpu_alloc(i, 8); /* the test's contexts exist */
  all(turns);
  EQUAL(G.calls(LAUNCH), THREADS);
  EQUAL(G.calls(VENDOR("ModuleLoadData")), 2); /* devices */
  if (G.hip) EQUAL(G.calls("hiprtcCompileProgram"), 2);
}

/* Concurrent first records for one tensor create one event. */
static DLManagedTensorVersioned *common;

static void *record(void *argument) {
  job *self = (job *)argument;
  DLManagedTensorVersioned *mine = NULL, *out = NULL;
  void *stream = NULL;
  self->wrong += dlrs_stream_create(DEV(0), &stream, NULL) != DLRS_OK;
  self->wrong += dlrs_retain(common, &mine, NULL) != DLRS_OK;
  pthread_barrier_wait(&gate);
  for (int i = 0; i < 20; ++i) {
    dlrs_copy_options options = gpu_options(NULL, stream, i % 2 ? DLRS_COPY_ASYNC : 0);
    self->wrong += dlrs_ready_record(mine, stream, NULL) != DLRS_OK;
    self->wrong += (self->number % 2 ? dlrs_ready_wait(mine, DEV(0), stream, NULL) : dlrs_ready_sync(mine, NULL)) != DLRS_OK;
    self->wrong += dlrs_clone(mine, DEV(0), &options, &out, NULL) != DLRS_OK;
    self->wrong += dlrs_stream_sync(DEV(0), stream, NULL) != DLRS_OK;
    dlrs_release(out);
  }
  dlrs_release(mine);
  self->wrong += dlrs_stream_destroy(DEV(0), stream, NULL) != DLRS_OK;
  return NULL;
}

static void one_event(void) {
  int64_t n = 64;
  DLTensor bare = gpu_tensor_at(0, gpu_alloc(0, 64), U8, 1, &n, NULL);
  for (int round = 0; round < 20; ++round) {
    WORKS(dlrs_tensor_wrap(&bare, 0, NULL, NULL, &common, ERR));
    all(record);
    if (G.standin) EQUAL(gpu_now().stats.events, 1);
    WORKS(dlrs_ready_sync(common, ERR));
    dlrs_release(common);
    if (G.standin) EQUAL(gpu_now().stats.events, 0);
  }
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
  gpu_make(&src, 0);
  gpu_make(&dst, 0);
  t_make(&host);
  void *stream = gpu_stream(0, 1);
  dlrs_copy_options later = gpu_options(stream, stream, DLRS_COPY_ASYNC);
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
}

static const gpu_row rows[] = {
    {"Z19", "first use by 16 threads, copies on streams", crowd, 0},
    {"Z19", "the same, executed in a random order", seeds, STANDIN},
    {"Z19", "the same, on one device", alone, STANDIN},
    {"Z15", "waiting holds nobody up", hang, STANDIN},
    {"Z19", "first strided copies by 16 threads", compile, STANDIN},
    {"Z19", "records by 16 threads for one tensor", one_event, 0},
};

int main(int argc, char **argv) {
  gpu_begin(argc, argv);
  if (argc > 2) rounds = atoi(argv[2]);
  gpu_run_all(rows, sizeof rows / sizeof *rows, NULL, 0);
  return gpu_end();
}
