/* A device without built-in support: a backend for OpenCL, in C. Any OpenCL device works; on Debian
 * `apt-get install pocl-opencl-icd ocl-icd-opencl-dev` makes one of the CPU.
 * Link: -lOpenCL
 * Needs: /usr/include/CL/cl.h opencl-c-headers
 * Needs: /etc/OpenCL/vendors/pocl.icd pocl-opencl-icd
 */
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>
#include <dlpack/dlpack_rs.h>

#include "backend_demo.h"

enum { DEVICES = 8 };

typedef struct Driver {
  cl_context context;
  cl_device_id devices[DEVICES];
  cl_command_queue queues[DEVICES]; /* the default streams: commands run in order */
  cl_uint count;
  int blocks, rectangles; /* the kind of each copy, for the demonstration */
} Driver;

/* OpenCL's code as a status of the library. */
static int32_t answer(cl_int code, dlrs_fault *fault) {
  fault->driver_code = code;
  switch (code) {
    case CL_SUCCESS: return DLRS_OK;
    case CL_MEM_OBJECT_ALLOCATION_FAILURE:
    case CL_OUT_OF_RESOURCES:
    case CL_INVALID_BUFFER_SIZE: return DLRS_DEV_OOM;
    case CL_OUT_OF_HOST_MEMORY: return DLRS_NOMEM;
    case CL_INVALID_COMMAND_QUEUE: return DLRS_STREAM;
    default: fault->detail = "OpenCL refuses"; return DLRS_INTERNAL;
  }
}

static cl_command_queue queue_of(const Driver *driver, DLDevice device, void *stream) {
  return stream ? stream : driver->queues[device.device_id];
}

static int32_t device_count(void *context, int32_t type, int32_t *out, dlrs_fault *fault) {
  (void)type, (void)fault;
  *out = (int32_t)((Driver *)context)->count;
  return DLRS_OK;
}

/* A tensor's `data` is the buffer itself, a cl_mem: only byte_offset gives a position in it. */
static int32_t alloc(void *context, DLDevice device, uint64_t nbytes, uint64_t align_bytes,
                     void *stream, void **out, dlrs_fault *fault) {
  (void)device, (void)align_bytes, (void)stream; /* a buffer is aligned for any type */
  cl_int code;
  *out = clCreateBuffer(((Driver *)context)->context, CL_MEM_READ_WRITE, nbytes, NULL, &code);
  return answer(code, fault);
}

/* OpenCL keeps a buffer until the commands that use it have ended. */
static int32_t release(void *context, DLDevice device, void *data, uint64_t nbytes,
                       uint64_t align_bytes, void *stream, dlrs_fault *fault) {
  (void)context, (void)device, (void)nbytes, (void)align_bytes, (void)stream;
  return answer(clReleaseMemObject(data), fault);
}

/* Rows of rows of items, as OpenCL's rectangles: extents and pitches, innermost first. Rejects
 * strides that are no pitches: broadcast, reversed or interleaved. */
static int pitches(const dlrs_byte_plan *plan, const int64_t *strides, size_t out[2]) {
  size_t inner = plan->item_nbytes;
  for (int i = 0; i < plan->ndim; ++i) {
    int64_t stride = strides[plan->ndim - 1 - i];
    if (stride < (int64_t)inner || (i == 1 && stride % (int64_t)out[0] != 0)) return 0;
    out[i] = (size_t)stride;
    inner = out[i] * (size_t)plan->shape[plan->ndim - 1 - i];
  }
  return 1;
}

/* Enqueues a copy: of one block, or of up to two strided dimensions. For others, such as a
 * transpose, the library copies blocks to the host and does them there. */
static int32_t copy(void *context, DLDevice device, const dlrs_byte_plan *plan, void *stream,
                    dlrs_fault *fault) {
  Driver *driver = context;
  cl_command_queue queue = queue_of(driver, device, stream);
  const int from_host = plan->src_device.device_type == kDLCPU;
  const int to_host = plan->dst_device.device_type == kDLCPU;
  const int from_here = plan->src_device.device_type == kDLOpenCL;
  const int to_here = plan->dst_device.device_type == kDLOpenCL;
  if (!(from_host || from_here) || !(to_host || to_here) || plan->ndim > 2) return DLRS_UNSUPPORTED;

  const size_t nbytes = plan->item_nbytes;
  if (plan->ndim == 0) {
    ++driver->blocks;
    if (from_host)
      return answer(clEnqueueWriteBuffer(queue, plan->dst, CL_FALSE, plan->dst_offset, nbytes,
                                         plan->src, 0, NULL, NULL), fault);
    if (to_host)
      return answer(clEnqueueReadBuffer(queue, (cl_mem)plan->src, CL_FALSE, plan->src_offset,
                                        nbytes, plan->dst, 0, NULL, NULL), fault);
    return answer(clEnqueueCopyBuffer(queue, (cl_mem)plan->src, plan->dst, plan->src_offset,
                                      plan->dst_offset, nbytes, 0, NULL, NULL), fault);
  }

  size_t src[2] = {0}, dst[2] = {0}, region[3] = {nbytes, 1, 1};
  for (int i = 0; i < plan->ndim; ++i) region[1 + i] = (size_t)plan->shape[plan->ndim - 1 - i];
  if (!pitches(plan, plan->src_strides, src) || !pitches(plan, plan->dst_strides, dst))
    return DLRS_UNSUPPORTED;
  /* An origin's first number counts bytes, so it is sufficient for an offset. */
  const size_t src_at[3] = {plan->src_offset, 0, 0}, dst_at[3] = {plan->dst_offset, 0, 0};
  ++driver->rectangles;
  if (from_host)
    return answer(clEnqueueWriteBufferRect(queue, plan->dst, CL_FALSE, dst_at, src_at, region,
                                           dst[0], dst[1], src[0], src[1], plan->src, 0, NULL,
                                           NULL), fault);
  if (to_host)
    return answer(clEnqueueReadBufferRect(queue, (cl_mem)plan->src, CL_FALSE, src_at, dst_at,
                                          region, src[0], src[1], dst[0], dst[1], plan->dst, 0,
                                          NULL, NULL), fault);
  return answer(clEnqueueCopyBufferRect(queue, (cl_mem)plan->src, plan->dst, src_at, dst_at, region,
                                        src[0], src[1], dst[0], dst[1], 0, NULL, NULL), fault);
}

static int32_t stream_sync(void *context, DLDevice device, void *stream, dlrs_fault *fault) {
  return answer(clFinish(queue_of(context, device, stream)), fault);
}

static int32_t stream_create(void *context, DLDevice device, void **out, dlrs_fault *fault) {
  Driver *driver = context;
  cl_int code;
  *out = clCreateCommandQueue(driver->context, driver->devices[device.device_id], 0, &code);
  return answer(code, fault);
}

static int32_t stream_destroy(void *context, DLDevice device, void *stream, dlrs_fault *fault) {
  (void)context, (void)device;
  return answer(clReleaseCommandQueue(stream), fault);
}

/* The devices of the first platform with any. */
static int start(Driver *driver) {
  cl_platform_id platforms[DEVICES];
  cl_uint n = 0;
  cl_int code;
  if (clGetPlatformIDs(DEVICES, platforms, &n) != CL_SUCCESS) return 0;
  for (cl_uint i = 0; i < n && i < DEVICES && driver->count == 0; ++i)
    if (clGetDeviceIDs(platforms[i], CL_DEVICE_TYPE_ALL, DEVICES, driver->devices,
                       &driver->count) != CL_SUCCESS)
      driver->count = 0;
  if (driver->count > DEVICES) driver->count = DEVICES;
  if (driver->count == 0) return 0;
  driver->context = clCreateContext(NULL, driver->count, driver->devices, NULL, NULL, &code);
  for (cl_uint i = 0; i < driver->count && code == CL_SUCCESS; ++i)
    driver->queues[i] = clCreateCommandQueue(driver->context, driver->devices[i], 0, &code);
  return code == CL_SUCCESS;
}

static void stop(Driver *driver) {
  for (cl_uint i = 0; i < driver->count; ++i) clReleaseCommandQueue(driver->queues[i]);
  clReleaseContext(driver->context);
}

int main(void) {
  static Driver driver;
  const dlrs_backend backend = {.struct_size = sizeof backend,
                                .name = "opencl",
                                .context = &driver,
                                .device_count = device_count,
                                .alloc = alloc,
                                .free = release,
                                .copy = copy,
                                .stream_sync = stream_sync,
                                .stream_create = stream_create,
                                .stream_destroy = stream_destroy};
  if (!start(&driver)) return puts("no OpenCL device: apt-get install pocl-opencl-icd"), 1;
  if (dlrs_backend_set(kDLOpenCL, &backend, NULL, &error)) return puts(error.message), 1;
  int result = demonstrate((DLDevice){kDLOpenCL, 0}); /* it has no OpenCL code */
  if (driver.rectangles == 0 || driver.blocks == 0) result = 1;
  dlrs_backend_set(kDLOpenCL, NULL, NULL, NULL);
  stop(&driver);
  return result;
}
