/* A device that the library does not know: a backend for OpenCL, in C. Any OpenCL device will do;
 * on Debian `apt-get install pocl-opencl-icd ocl-icd-opencl-dev` makes one of the CPU.
 * Link: -lOpenCL */
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>
#include <dlpack/dlpack_rs.h>
#include <stdio.h>
#include <string.h>

enum { DEVICES = 8 };

typedef struct Driver {
  cl_context context;
  cl_device_id devices[DEVICES];
  cl_command_queue queues[DEVICES]; /* the default streams: commands run in order */
  cl_uint count;
  int blocks, rectangles; /* what was copied how, for the demonstration below */
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

/* A tensor's `data` is the buffer itself, a cl_mem: only byte_offset says where in it. */
static int32_t alloc(void *context, DLDevice device, uint64_t nbytes, uint64_t align_bytes,
                     void *stream, void **out, dlrs_fault *fault) {
  (void)device, (void)align_bytes, (void)stream; /* a buffer starts where any type may */
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

/* Rows of rows of items, as OpenCL's rectangles want them: extents and pitches, innermost first.
 * Refuses strides that are no pitches: broadcast, reversed or woven. */
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

/* Enqueues a copy: of one block, or of up to two strided dimensions. What is left, such as a
 * transpose, the library then brings to the host as blocks and does there. */
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
  /* An origin's first number counts bytes, so it is all that an offset needs. */
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

/* The devices of the first platform that has any. */
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

/* ---- Its use: nothing below knows OpenCL ------------------------------------------------------*/

static const DLDevice cpu = {kDLCPU, 0}, opencl = {kDLOpenCL, 0};
static const int64_t shape[] = {6, 10, 8};
enum { COUNT = 6 * 10 * 8, VIEWS = 200 };
static dlrs_error error = {.struct_size = sizeof error};

static int draw(int n) {
  static unsigned state = 2463534242u;
  state ^= state << 13, state ^= state >> 17, state ^= state << 5;
  return (int)(state % (unsigned)n);
}

/* Views of two tensors: the same slices, the same order of the axes. */
static int views(DLManagedTensorVersioned *of[2], DLManagedTensorVersioned *out[2]) {
  static const int64_t orders[][3] = {{0, 1, 2}, {0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {2, 1, 0}};
  dlrs_view_step steps[4] = {0};
  for (int axis = 0; axis < 3; ++axis)
    steps[axis] = (dlrs_view_step){.struct_size = sizeof *steps, .op = DLRS_VIEW_SLICE,
                                   .axis = axis, .start = draw(3), .stop = shape[axis] - draw(3),
                                   .step = draw(3) ? 1 : 2};
  steps[3] = (dlrs_view_step){.struct_size = sizeof *steps, .op = DLRS_VIEW_PERMUTE, .ndim = 3,
                              .shape = orders[draw(5)]};
  return dlrs_view_apply(of[0], steps, 4, &out[0], &error) == DLRS_OK &&
         dlrs_view_apply(of[1], steps, 4, &out[1], &error) == DLRS_OK;
}

/* A view agrees with the host's when it is copied on the device, read, and written. */
static int agree(DLManagedTensorVersioned *host, DLManagedTensorVersioned *there) {
  DLManagedTensorVersioned *both[2] = {host, there}, *view[2] = {0}, *read[3] = {0}, *whole = NULL;
  int good = views(both, view) && !dlrs_clone(view[0], cpu, NULL, &read[0], &error) &&
             !dlrs_clone(view[1], cpu, NULL, &read[1], &error) &&
             !dlrs_clone(view[1], opencl, NULL, &whole, &error) &&
             !dlrs_to_device(whole, cpu, 0, NULL, &read[2], &error);
  dlrs_release(whole);
  whole = NULL;
  if (good) {
    const int64_t *n = view[0]->dl_tensor.shape, count = n[0] * n[1] * n[2];
    float *values = read[0]->dl_tensor.data;
    for (int i = 1; i < 3; ++i)
      good = good && !memcmp(values, read[i]->dl_tensor.data, (size_t)count * sizeof *values);
    for (int64_t i = 0; i < count; ++i) values[i] += 1;
  }
  for (int i = 0; i < 2 && good; ++i)
    good = !dlrs_copy_desc(&read[0]->dl_tensor, 0, &view[i]->dl_tensor, 0, NULL, &error);
  good = good && !dlrs_to_device(there, cpu, 0, NULL, &whole, &error) &&
         memcmp(whole->dl_tensor.data, host->dl_tensor.data, COUNT * sizeof(float)) == 0;
  dlrs_release(whole);
  for (int i = 0; i < 2; ++i) dlrs_release(view[i]);
  for (int i = 0; i < 3; ++i) dlrs_release(read[i]);
  return good;
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
  const DLDataType float32 = {kDLFloat, 32, 1};
  DLManagedTensorVersioned *host = NULL, *there = NULL, *corner = NULL, *back = NULL;
  char text[512];
  int good = 0, result = 1;
  if (!start(&driver)) return puts("no OpenCL device: apt-get install pocl-opencl-icd"), 1;
  if (dlrs_backend_set(kDLOpenCL, &backend, NULL, &error)) goto done;

  if (dlrs_tensor_new(shape, 3, float32, cpu, NULL, &host, &error)) goto done;
  for (int i = 0; i < COUNT; ++i) ((float *)host->dl_tensor.data)[i] = (float)i;
  if (dlrs_to_device(host, opencl, 0, NULL, &there, &error)) goto done;

  /* A view of the device's tensor is a byte_offset and strides. */
  const dlrs_view_step steps[] = {
      {.struct_size = sizeof *steps, .op = DLRS_VIEW_SELECT, .axis = 0, .start = 2},
      {.struct_size = sizeof *steps, .op = DLRS_VIEW_SLICE, .axis = 0, .stop = 10, .step = 4},
      {.struct_size = sizeof *steps, .op = DLRS_VIEW_NARROW, .axis = 1, .start = 4, .stop = 4}};
  if (dlrs_view_apply(there, steps, 3, &corner, &error)) goto done;
  printf("there: data is a cl_mem, byte_offset %d\n", (int)corner->dl_tensor.byte_offset);
  if (dlrs_clone(corner, cpu, NULL, &back, &error)) goto done;
  if (dlrs_managed_to_string(back, NULL, text, sizeof text, NULL, &error)) goto done;
  puts(text);

  driver.blocks = driver.rectangles = 0;
  for (int i = 0; i < VIEWS; ++i) good += agree(host, there);
  printf("%d of %d views agree with the host's\n", good, VIEWS);
  result = good != VIEWS || driver.rectangles == 0 || driver.blocks == 0;
done:
  if (result) fprintf(stderr, "%s\n", error.message);
  dlrs_release(back), dlrs_release(corner), dlrs_release(there), dlrs_release(host);
  dlrs_backend_set(kDLOpenCL, NULL, NULL, NULL);
  stop(&driver);
  return result;
}
