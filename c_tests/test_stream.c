/* Streams and events without a driver; with one: c_tests/gpu. */
#include "harness.h"

/* Whether there is no CUDA driver; it may be installed without devices. */
static int driver_is_absent(void) {
  int32_t count, status = dlrs_device_count(kDLCUDA, &count, NULL);
  if (status == DLRS_OK || status == DLRS_NO_DEVICE || status == DLRS_DRV_INIT) {
    puts("not run: what a missing driver does (there is one)");
    return 0;
  }
  return EQUAL(status, DLRS_DRV_MISSING);
}

/* D01: every function reports that the driver is absent; nothing is taken. */
static void absent(void) {
  DLDevice gpu = t_device(kDLCUDA, 0);
  int here, *handle = &here;
  int32_t done;
  void *out;
  t_tensor host;
  DLManagedTensorVersioned *held;
  t_make(&host);
  held = &host.managed;
  t_result(&out);
  REJECTS(DRV_MISSING, ANY, ANY, -1, dlrs_stream_create(gpu, &out, ERR));
  REJECTS(DRV_MISSING, ANY, ANY, -1, dlrs_stream_destroy(gpu, handle, ERR));
  REJECTS(DRV_MISSING, ANY, ANY, -1, dlrs_stream_sync(gpu, NULL, ERR));
  REJECTS(DRV_MISSING, ANY, ANY, -1, dlrs_stream_query(gpu, NULL, &done, ERR));
  REJECTS(DRV_MISSING, ANY, ANY, -1, dlrs_stream_wait(gpu, NULL, handle, ERR));
  REJECTS(DRV_MISSING, ANY, ANY, -1, dlrs_event_create(gpu, &out, ERR));
  REJECTS(DRV_MISSING, ANY, ANY, -1, dlrs_event_destroy(gpu, handle, ERR));
  REJECTS(DRV_MISSING, ANY, ANY, -1, dlrs_event_record(gpu, handle, NULL, ERR));
  REJECTS(DRV_MISSING, ANY, ANY, -1, dlrs_event_wait(gpu, handle, NULL, ERR));
  REJECTS(DRV_MISSING, ANY, ANY, -1, dlrs_event_sync(gpu, handle, ERR));
  REJECTS(DRV_MISSING, ANY, ANY, -1, dlrs_event_query(gpu, handle, &done, ERR));
  REJECTS(DRV_MISSING, ANY, ANY, -1, dlrs_release_after_take(&held, gpu, NULL, ERR));
  CHECK(held == &host.managed);
  host.managed.dl_tensor.device = gpu;
  WORKS(dlrs_tensor_wrap(&host.managed.dl_tensor, 0, NULL, NULL, &held, ERR));
  REJECTS(DRV_MISSING, 1, ANY, -1, dlrs_ready_record(held, NULL, ERR));
  WORKS(dlrs_ready_wait(held, gpu, NULL, ERR)); /* nothing was recorded */
  WORKS(dlrs_ready_sync(held, ERR));
  dlrs_release(held);
  t_unwatch();
}

static void nulls(void) {
  int here, *handle = &here;
  int32_t done = 0;
  DLManagedTensorVersioned *none = NULL;
  REJECTS(NULL_ARG, 2, ANY, -1, dlrs_stream_create(CPU, NULL, ERR));
  REJECTS(NULL_ARG, 3, ANY, -1, dlrs_stream_query(CPU, NULL, NULL, ERR));
  REJECTS(NULL_ARG, 2, ANY, -1, dlrs_event_create(CPU, NULL, ERR));
  REJECTS(NULL_ARG, 2, ANY, -1, dlrs_event_destroy(CPU, NULL, ERR));
  REJECTS(NULL_ARG, 2, ANY, -1, dlrs_event_record(CPU, NULL, NULL, ERR));
  REJECTS(NULL_ARG, 2, ANY, -1, dlrs_event_wait(CPU, NULL, NULL, ERR));
  REJECTS(NULL_ARG, 2, ANY, -1, dlrs_event_sync(CPU, NULL, ERR));
  REJECTS(NULL_ARG, 2, ANY, -1, dlrs_event_query(CPU, NULL, &done, ERR));
  REJECTS(NULL_ARG, 1, ANY, -1, dlrs_release_after_take(NULL, CPU, NULL, ERR));
  REJECTS(NULL_ARG, 1, ANY, -1, dlrs_release_after_take(&none, CPU, NULL, ERR));
  REJECTS(NULL_ARG, 1, ANY, -1, dlrs_ready_record(NULL, NULL, ERR));
  REJECTS(NULL_ARG, 1, ANY, -1, dlrs_ready_wait(NULL, CPU, NULL, ERR));
  REJECTS(NULL_ARG, 1, ANY, -1, dlrs_ready_sync(NULL, ERR));
  /* The CPU has only one stream, whose work is always complete. */
  WORKS(dlrs_stream_sync(CPU, NULL, ERR));
  WORKS(dlrs_stream_query(CPU, NULL, &done, ERR));
  EQUAL(done, 1);
  WORKS(dlrs_stream_wait(CPU, NULL, NULL, ERR));
  REJECTS(STREAM, ANY, ANY, -1, dlrs_stream_wait(CPU, t_guard(), t_guard(), ERR));
  REJECTS(STREAM, ANY, ANY, -1, dlrs_stream_wait(CPU, NULL, t_guard(), ERR));
  REJECTS(STREAM, ANY, ANY, -1, dlrs_stream_wait(CPU, t_guard(), NULL, ERR));
  REJECTS(STREAM, 2, ANY, -1, dlrs_stream_sync(CPU, handle, ERR));
  REJECTS(DEVICE_TYPE, 1, ANY, -1, dlrs_stream_sync(t_device(kDLVulkan, 0), NULL, ERR));
  REJECTS(DEVICE_TYPE, 1, ANY, -1, dlrs_stream_sync(t_device(-1, 0), NULL, ERR));
}

/* On the CPU nothing is pending: a tensor waits for the next drain. */
static void released(void) {
  t_tensor host;
  DLManagedTensorVersioned *held;
  uint64_t waiting = 9;
  long before = t_deleted;
  t_make(&host);
  held = &host.managed;
  WORKS(dlrs_release_after_take(&held, CPU, NULL, ERR));
  CHECK(held == NULL);
  WORKS(dlrs_release_drain(&waiting, ERR));
  EQUAL(waiting, 0);
  EQUAL(t_deleted, before + 1);
  WORKS(dlrs_release_drain(NULL, ERR));
}

/* On the CPU a tensor is ready at once: nothing is recorded. */
static void ready(void) {
  t_tensor host;
  DLManagedTensorVersioned *own, *moved;
  DLDevice nowhere = t_device(kDLVulkan, 0);
  int32_t status;
  t_make(&host);
  REJECTS(FOREIGN, 1, ANY, -1, dlrs_ready_record(&host.managed, NULL, ERR));
  REJECTS(FOREIGN, ANY, ANY, -1, dlrs_ready_wait(&host.managed, CPU, NULL, ERR));
  REJECTS(FOREIGN, 1, ANY, -1, dlrs_ready_sync(&host.managed, ERR));
  host.managed.version.major = 2;
  REJECTS(VERSION, 1, ANY, -1, dlrs_ready_record(&host.managed, NULL, ERR));
  host.managed.version.major = 1;
  WORKS(dlrs_clone(&host.managed, CPU, NULL, &own, ERR));
  WORKS(dlrs_ready_record(own, NULL, ERR));
  WORKS(dlrs_ready_wait(own, CPU, NULL, ERR));
  WORKS(dlrs_ready_sync(own, ERR));
  REJECTS(STREAM, 1, ANY, -1, dlrs_ready_record(own, t_guard(), ERR));
  REJECTS(STREAM, ANY, ANY, -1, dlrs_ready_wait(own, CPU, t_guard(), ERR));
  REJECTS(DEVICE_TYPE, 2, ANY, -1, dlrs_ready_wait(own, nowhere, NULL, ERR));
  host.managed.dl_tensor.device = nowhere;
  WORKS(dlrs_tensor_wrap(&host.managed.dl_tensor, 0, NULL, NULL, &moved, ERR));
  status = dlrs_ready_record(moved, NULL, ERR);
  EQUAL(status, DLRS_DEVICE_TYPE);
  dlrs_release(moved);
  dlrs_release(own);
}

int main(void) {
  nulls();
  ready();
  released();
  if (driver_is_absent()) absent();
  return t_close();
}
