/* A backend for oneAPI devices, through the C interface to SYCL in the dpctl package. Tensors own
 * USM device memory, like dpctl's. run.sh builds and runs it. */
#include <dlpack/dlpack_rs.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <syclinterface/dpctl_sycl_device_interface.h>
#include <syclinterface/dpctl_sycl_device_manager.h>
#include <syclinterface/dpctl_sycl_event_interface.h>
#include <syclinterface/dpctl_sycl_queue_interface.h>
#include <syclinterface/dpctl_sycl_usm_interface.h>

#include "../c/backend_demo.h"

enum { DEVICES = 8 };

typedef struct Driver {
  DPCTLSyclQueueRef queues[DEVICES]; /* the default streams: commands run in order */
  int32_t count;
} Driver;

/* A stream is a SYCL queue. */
static DPCTLSyclQueueRef queue_of(const Driver *driver, DLDevice device, void *stream) {
  return stream ? stream : driver->queues[device.device_id];
}

static int32_t device_count(void *context, int32_t type, int32_t *out, dlrs_fault *fault) {
  (void)type, (void)fault;
  *out = ((Driver *)context)->count;
  return DLRS_OK;
}

static int32_t alloc(void *context, DLDevice device, uint64_t nbytes, uint64_t align_bytes,
                     void *stream, void **out, dlrs_fault *fault) {
  fault->detail = "SYCL gives no memory";
  *out = DPCTLaligned_alloc_device(align_bytes, nbytes, queue_of(context, device, stream));
  return *out ? DLRS_OK : DLRS_DEV_OOM;
}

/* SYCL frees immediately, so work that uses the memory must have ended. */
static int32_t release(void *context, DLDevice device, void *data, uint64_t nbytes,
                       uint64_t align_bytes, void *stream, dlrs_fault *fault) {
  DPCTLSyclQueueRef queue = queue_of(context, device, stream);
  (void)nbytes, (void)align_bytes, (void)fault;
  DPCTLQueue_Wait(queue);
  DPCTLfree_with_queue(data, queue);
  return DLRS_OK;
}

/* SYCL copies blocks; all other copies are staged on the host. */
static int32_t copy(void *context, DLDevice device, const dlrs_byte_plan *plan, void *stream,
                    dlrs_fault *fault) {
  const int32_t from = plan->src_device.device_type, to = plan->dst_device.device_type;
  if ((from != kDLOneAPI && from != kDLCPU) || (to != kDLOneAPI && to != kDLCPU) || plan->ndim != 0)
    return DLRS_UNSUPPORTED;
  DPCTLSyclEventRef event =
      DPCTLQueue_Memcpy(queue_of(context, device, stream), plan->dst, plan->src, plan->item_nbytes);
  fault->detail = "SYCL does not copy";
  if (!event) return DLRS_INTERNAL;
  DPCTLEvent_Delete(event); /* the queue's order is sufficient */
  return DLRS_OK;
}

static int32_t stream_sync(void *context, DLDevice device, void *stream, dlrs_fault *fault) {
  (void)fault;
  DPCTLQueue_Wait(queue_of(context, device, stream));
  return DLRS_OK;
}

/* SYCL reports errors after a command was accepted here. */
static void failed(int code) { printf("SYCL reports %d\n", code); }

static void start(Driver *driver) {
  DPCTLDeviceVectorRef devices = DPCTLDeviceMgr_GetDevices(DPCTL_ALL_BACKENDS | DPCTL_ALL);
  for (size_t i = 0; i < DPCTLDeviceVector_Size(devices) && i < DEVICES; ++i) {
    DPCTLSyclDeviceRef device = DPCTLDeviceVector_GetAt(devices, i);
    driver->queues[i] = DPCTLQueue_CreateForDevice(device, failed, DPCTL_IN_ORDER);
    DPCTLDevice_Delete(device);
    if (!driver->queues[i]) break;
    ++driver->count;
  }
  DPCTLDeviceVector_Delete(devices);
}

int main(void) {
  static Driver driver;
  const dlrs_backend backend = {.struct_size = sizeof backend,
                                .name = "oneapi",
                                .context = &driver,
                                .device_count = device_count,
                                .alloc = alloc,
                                .free = release,
                                .copy = copy,
                                .stream_sync = stream_sync};
  start(&driver);
  if (driver.count == 0) return puts("no oneAPI device"), 1;
  if (dlrs_backend_set(kDLOneAPI, &backend, NULL, &error)) return puts(error.message), 1;
  int result = demonstrate((DLDevice){kDLOneAPI, 0});
  dlrs_backend_set(kDLOneAPI, NULL, NULL, NULL);
  for (int32_t i = 0; i < driver.count; ++i) DPCTLQueue_Delete(driver.queues[i]);
  return result;
}
