/* Devices, their memory, streams and events without a driver; with one: c_tests/gpu. */
#include "harness.h"

static int32_t missing; /* the result of calls for CUDA here */
static DLDevice gpu;

/* Whether there is no CUDA driver; it may be installed without devices. */
static int driver_is_absent(void) {
  int32_t count, status = dlrs_device_count(kDLCUDA, &count, NULL);
  if (status == DLRS_OK || status == DLRS_NO_DEVICE || status == DLRS_DRV_INIT) {
    puts("not run: what a missing driver does (there is one)");
    return 0;
  }
  return EQUAL(status, DLRS_DRV_MISSING);
}

/* D01: the driver is absent. Every function reports that, with the file names it tried. */
static void absent(void) {
  int32_t count = 7;
  void *data;
  char memory[64];
  dlrs_pointer_info info = DLRS_INIT(dlrs_pointer_info);
  DLManagedTensorVersioned *out;
  DLManagedTensor *legacy_out;
  DLManagedTensorVersioned *held;
  int here, *handle = &here;
  DLTensor bare;
  t_tensor host;
  t_make(&host);
  held = &host.managed;
  bare = host.managed.dl_tensor;
  t_watch(&host, sizeof host);
  t_watch(&info, sizeof info);
  t_result(&data);
  t_result(&out);
  t_result(&legacy_out);
  REFUSED(missing, ANY, ANY, -1, dlrs_device_count(kDLCUDA, &count, ERR));
  EQUAL(count, 0);
  CHECK(strstr(t_error.message, "cuda") != NULL);
  REFUSED(missing, ANY, ANY, -1, dlrs_mem_alloc(gpu, 64, 0, NULL, &data, ERR));
  REFUSED(missing, ANY, ANY, -1, dlrs_mem_free(gpu, memory, 64, 0, NULL, ERR));
  REFUSED(missing, ANY, ANY, -1, dlrs_pointer_device(kDLCUDA, memory, &info, ERR));
  REFUSED(missing, ANY, ANY, -1, dlrs_mem_register_host(kDLCUDA, memory, 64, ERR));
  REFUSED(missing, ANY, ANY, -1, dlrs_mem_unregister_host(kDLCUDA, memory, ERR));
  REFUSED(missing, ANY, ANY, ANY, dlrs_tensor_new(host.shape, 2, F32, gpu, NULL, &out, ERR));
  REFUSED(missing, 2, ANY, ANY, dlrs_clone(&host.managed, gpu, NULL, &out, ERR));
  REJECTS(DRV_MISSING, ANY, ANY, -1, dlrs_stream_create(gpu, &data, ERR));
  REJECTS(DRV_MISSING, ANY, ANY, -1, dlrs_stream_destroy(gpu, handle, ERR));
  REJECTS(DRV_MISSING, ANY, ANY, -1, dlrs_stream_sync(gpu, NULL, ERR));
  REJECTS(DRV_MISSING, ANY, ANY, -1, dlrs_stream_wait(gpu, NULL, handle, ERR));
  REJECTS(DRV_MISSING, ANY, ANY, -1, dlrs_event_create(gpu, &data, ERR));
  REJECTS(DRV_MISSING, ANY, ANY, -1, dlrs_event_destroy(gpu, handle, ERR));
  REJECTS(DRV_MISSING, ANY, ANY, -1, dlrs_event_record(gpu, handle, NULL, ERR));
  REJECTS(DRV_MISSING, ANY, ANY, -1, dlrs_event_wait(gpu, handle, NULL, ERR));
  REJECTS(DRV_MISSING, ANY, ANY, -1, dlrs_event_sync(gpu, handle, ERR));
  REJECTS(DRV_MISSING, ANY, ANY, -1, dlrs_release_after_take(&held, gpu, NULL, ERR));
  CHECK(held == &host.managed);
  bare.device = gpu;
  WORKS(dlrs_tensor_wrap(&bare, 0, NULL, NULL, &held, ERR));
  REJECTS(DRV_MISSING, 1, ANY, -1, dlrs_ready_record(held, NULL, ERR));
  WORKS(dlrs_ready_wait(held, gpu, NULL, ERR)); /* nothing was recorded */
  WORKS(dlrs_ready_sync(held, ERR));
  dlrs_release(held);
  /* Twice, and without an error carrier. */
  EQUAL(dlrs_device_count(kDLCUDA, &count, NULL), missing);
  EQUAL(dlrs_mem_alloc(gpu, 64, 0, NULL, &data, NULL), missing);
  t_unwatch();
  /* The CPU still works. */
  WORKS(dlrs_clone(&host.managed, CPU, NULL, &out, ERR));
  CHECK(memcmp(out->dl_tensor.data, host.values, sizeof host.values) == 0);
  dlrs_release(out);
}

/* D06: devices without a backend; copies of them are K30. */
static void unserved(void) {
  static const int32_t types[] = {kDLOpenCL, kDLVulkan, kDLMetal, kDLVPI, kDLExtDev,
                                  kDLWebGPU, kDLHexagon, kDLMAIA, kDLTrn};
  void *data;
  int32_t count;
  size_t i;
  t_result(&data);
  for (i = 0; i < sizeof types / sizeof *types; ++i) {
    DLDevice device = t_device(types[i], 0);
    REJECTS(DEVICE_TYPE, 1, ANY, -1, dlrs_device_count(types[i], &count, ERR));
    REJECTS(DEVICE_TYPE, 1, ANY, -1, dlrs_mem_alloc(device, 64, 0, NULL, &data, ERR));
  }
  t_unwatch();
}

static void nulls(void) {
  char memory[8];
  void *data = memory;
  dlrs_pointer_info info;
  memset(&info, 0, sizeof info);
  REJECTS(NULL_ARG, 2, ANY, -1, dlrs_device_count(kDLCPU, NULL, ERR));
  REJECTS(NULL_ARG, 5, ANY, -1, dlrs_mem_alloc(CPU, 4, 0, NULL, NULL, ERR));
  REJECTS(BAD_ARG, 3, ANY, -1, dlrs_mem_alloc(CPU, 4, 3, NULL, &data, ERR));
  REJECTS(DEVICE_ID, 1, ANY, -1, dlrs_mem_alloc(t_device(kDLCPU, -1), 4, 0, NULL, &data, ERR));
  WORKS(dlrs_mem_free(CPU, NULL, 0, 0, NULL, ERR));
  REJECTS(NULL_ARG, 2, ANY, -1, dlrs_pointer_device(kDLCUDA, NULL, &info, ERR));
  REJECTS(STRUCT_SIZE, 3, ANY, -1, dlrs_pointer_device(kDLCUDA, memory, &info, ERR));
  REJECTS(NULL_ARG, 2, ANY, -1, dlrs_mem_register_host(kDLCUDA, NULL, 8, ERR));
  REJECTS(NULL_ARG, 2, ANY, -1, dlrs_mem_unregister_host(kDLCUDA, NULL, ERR));
}

/* Host memory through the same functions. */
static void host(void) {
  void *data;
  int32_t count = 0;
  WORKS(dlrs_device_count(kDLCPU, &count, ERR));
  EQUAL(count, 1);
  WORKS(dlrs_mem_alloc(CPU, 1000, 0, NULL, &data, ERR));
  EQUAL((uintptr_t)data % 256, 0);
  memset(data, 1, 1000);
  WORKS(dlrs_mem_free(CPU, data, 1000, 0, NULL, ERR));
}

static void stream_nulls(void) {
  int here, *handle = &here;
  DLManagedTensorVersioned *none = NULL;
  REJECTS(NULL_ARG, 2, ANY, -1, dlrs_stream_create(CPU, NULL, ERR));
  REJECTS(NULL_ARG, 2, ANY, -1, dlrs_event_create(CPU, NULL, ERR));
  REJECTS(NULL_ARG, 2, ANY, -1, dlrs_event_destroy(CPU, NULL, ERR));
  REJECTS(NULL_ARG, 2, ANY, -1, dlrs_event_record(CPU, NULL, NULL, ERR));
  REJECTS(NULL_ARG, 2, ANY, -1, dlrs_event_wait(CPU, NULL, NULL, ERR));
  REJECTS(NULL_ARG, 2, ANY, -1, dlrs_event_sync(CPU, NULL, ERR));
  REJECTS(NULL_ARG, 1, ANY, -1, dlrs_release_after_take(NULL, CPU, NULL, ERR));
  REJECTS(NULL_ARG, 1, ANY, -1, dlrs_release_after_take(&none, CPU, NULL, ERR));
  REJECTS(NULL_ARG, 1, ANY, -1, dlrs_ready_record(NULL, NULL, ERR));
  REJECTS(NULL_ARG, 1, ANY, -1, dlrs_ready_wait(NULL, CPU, NULL, ERR));
  REJECTS(NULL_ARG, 1, ANY, -1, dlrs_ready_sync(NULL, ERR));
  /* The CPU has only one stream, whose work is always complete. */
  WORKS(dlrs_stream_sync(CPU, NULL, ERR));
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
  gpu = t_device(kDLCUDA, 0);
  missing = DLRS_DRV_MISSING;
  nulls();
  stream_nulls();
  ready();
  released();
  unserved();
  host();
  if (driver_is_absent()) absent();
  return t_close();
}
