/* CUDA's runtime for PyTorch on a machine without a GPU: the functions that make tensors, streams,
 * events and copies, over the stand-in driver of c_tests/standin. Preloaded (LD_PRELOAD), it
 * replaces libcudart. It runs no kernels, and tests DLPack's rules about capsules, stream numbers
 * and order; it proves nothing about hardware. */
#define _GNU_SOURCE
#include <cuda.h>
#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <string.h>

#define ERROR(code) ((cudaError_t)(code))
#define EXPORT __attribute__((visibility("default")))

static __thread int current; /* this thread's device */
static CUcontext contexts[8];

/* Makes the context of the thread's device current, as the runtime does in every call. */
static CUresult ready(void) {
  CUresult code = cuInit(0);
  if (code == CUDA_SUCCESS && !contexts[current]) {
    code = cuDevicePrimaryCtxRetain(&contexts[current], current);
  }
  return code == CUDA_SUCCESS ? cuCtxSetCurrent(contexts[current]) : code;
}

/* FUNCTION(name, (parameters), driver's call) */
#define FUNCTION(name, parameters, call)          \
  EXPORT cudaError_t name parameters {            \
    CUresult code = ready();                      \
    return ERROR(code == CUDA_SUCCESS ? call : code); \
  }

FUNCTION(cudaGetDeviceCount, (int *count), cuDeviceGetCount(count))
FUNCTION(cudaDeviceSynchronize, (void), cuCtxSynchronize())
FUNCTION(cudaDeviceGetAttribute, (int *value, enum cudaDeviceAttr which, int device),
         cuDeviceGetAttribute(value, (CUdevice_attribute)which, device))
FUNCTION(cudaDeviceCanAccessPeer, (int *can, int device, int peer),
         cuDeviceCanAccessPeer(can, device, peer))
FUNCTION(cudaDeviceEnablePeerAccess, (int peer, unsigned flags),
         (ready(), cuCtxEnablePeerAccess(contexts[peer], flags)))
FUNCTION(cudaMalloc, (void **out, size_t nbytes), cuMemAlloc((CUdeviceptr *)out, nbytes))
FUNCTION(cudaFree, (void *start), cuMemFree((CUdeviceptr)start))
FUNCTION(cudaHostAlloc, (void **out, size_t nbytes, unsigned flags),
         cuMemHostAlloc(out, nbytes, flags))
FUNCTION(cudaMallocHost, (void **out, size_t nbytes), cuMemHostAlloc(out, nbytes, 0))
FUNCTION(cudaFreeHost, (void *start), cuMemFreeHost(start))
FUNCTION(cudaMemGetInfo, (size_t *unused, size_t *total), cuMemGetInfo(unused, total))
FUNCTION(cudaMemcpyAsync, (void *to, const void *from, size_t nbytes, enum cudaMemcpyKind kind,
         cudaStream_t stream),
         ((void)kind, cuMemcpyAsync((CUdeviceptr)to, (CUdeviceptr)from, nbytes, stream)))
FUNCTION(cudaMemsetAsync, (void *to, int byte, size_t nbytes, cudaStream_t stream),
         cuMemsetD8Async((CUdeviceptr)to, (unsigned char)byte, nbytes, stream))
FUNCTION(cudaStreamCreate, (cudaStream_t *out), cuStreamCreate(out, 0))
FUNCTION(cudaStreamCreateWithFlags, (cudaStream_t *out, unsigned flags), cuStreamCreate(out, flags))
FUNCTION(cudaStreamCreateWithPriority, (cudaStream_t *out, unsigned flags, int priority),
         ((void)priority, cuStreamCreate(out, flags)))
FUNCTION(cudaStreamDestroy, (cudaStream_t stream), cuStreamDestroy(stream))
FUNCTION(cudaStreamQuery, (cudaStream_t stream), cuStreamQuery(stream))
FUNCTION(cudaStreamSynchronize, (cudaStream_t stream), cuStreamSynchronize(stream))
FUNCTION(cudaStreamWaitEvent, (cudaStream_t stream, cudaEvent_t event, unsigned flags),
         cuStreamWaitEvent(stream, event, flags))
FUNCTION(cudaStreamIsCapturing, (cudaStream_t stream, enum cudaStreamCaptureStatus *status),
         cuStreamIsCapturing(stream, (CUstreamCaptureStatus *)status))
FUNCTION(cudaThreadExchangeStreamCaptureMode, (enum cudaStreamCaptureMode *mode),
         cuThreadExchangeStreamCaptureMode((CUstreamCaptureMode *)mode))
FUNCTION(cudaEventCreate, (cudaEvent_t *out), cuEventCreate(out, 0))
FUNCTION(cudaEventCreateWithFlags, (cudaEvent_t *out, unsigned flags), cuEventCreate(out, flags))
FUNCTION(cudaEventDestroy, (cudaEvent_t event), cuEventDestroy(event))
FUNCTION(cudaEventQuery, (cudaEvent_t event), cuEventQuery(event))
FUNCTION(cudaEventRecord, (cudaEvent_t event, cudaStream_t stream), cuEventRecord(event, stream))
FUNCTION(cudaEventRecordWithFlags, (cudaEvent_t event, cudaStream_t stream, unsigned flags),
         ((void)flags, cuEventRecord(event, stream)))
FUNCTION(cudaEventSynchronize, (cudaEvent_t event), cuEventSynchronize(event))

EXPORT cudaError_t cudaMemcpy(void *to, const void *from, size_t nbytes, enum cudaMemcpyKind kind) {
  cudaError_t code = cudaMemcpyAsync(to, from, nbytes, kind, NULL);
  return code == cudaSuccess ? cudaStreamSynchronize(NULL) : code;
}

EXPORT cudaError_t cudaSetDevice(int device) {
  int count = 0;
  cudaError_t code = cudaGetDeviceCount(&count);
  if (code == cudaSuccess && (device < 0 || device >= count)) code = cudaErrorInvalidDevice;
  if (code != cudaSuccess) return code;
  current = device;
  return ERROR(ready());
}

EXPORT cudaError_t cudaGetDevice(int *device) {
  *device = current;
  return cudaSuccess;
}

EXPORT cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *out, int device) {
  size_t unused = 0;
  memset(out, 0, sizeof *out);
  strcpy(out->name, "stand-in, not hardware");
  out->major = 9;
  out->warpSize = 32;
  out->multiProcessorCount = 2;
  out->maxThreadsPerMultiProcessor = 2048;
  out->maxThreadsPerBlock = 1024;
  out->unifiedAddressing = 1;
  (void)device;
  return cudaMemGetInfo(&unused, &out->totalGlobalMem);
}

EXPORT cudaError_t cudaDeviceGetStreamPriorityRange(int *least, int *greatest) {
  *least = *greatest = 0;
  return cudaSuccess;
}

EXPORT cudaError_t cudaStreamGetPriority(cudaStream_t stream, int *priority) {
  *priority = 0;
  (void)stream;
  return cudaSuccess;
}

EXPORT cudaError_t cudaDriverGetVersion(int *version) { return ERROR(cuDriverGetVersion(version)); }

EXPORT cudaError_t cudaStreamGetCaptureInfo(cudaStream_t stream,
                                             enum cudaStreamCaptureStatus *status,
                                             unsigned long long *id, cudaGraph_t *graph,
                                             const cudaGraphNode_t **nodes,
                                             const cudaGraphEdgeData **edges, size_t *count) {
  if (id) *id = 0;
  (void)graph, (void)nodes, (void)edges, (void)count;
  return cudaStreamIsCapturing(stream, status);
}

EXPORT cudaError_t cudaGetLastError(void) { return cudaSuccess; }
EXPORT cudaError_t cudaPeekAtLastError(void) { return cudaSuccess; }

EXPORT cudaError_t cudaPointerGetAttributes(struct cudaPointerAttributes *out, const void *start) {
  unsigned type = 0;
  memset(out, 0, sizeof *out);
  ready();
  if (cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, (CUdeviceptr)start) ==
      CUDA_SUCCESS) {
    out->type = (enum cudaMemoryType)type; /* 1 host, 2 device: the same numbers */
    cuPointerGetAttribute(&out->device, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, (CUdeviceptr)start);
    out->devicePointer = (void *)start;
  }
  return cudaSuccess;
}

EXPORT cudaError_t cudaGetDriverEntryPointByVersion(const char *symbol, void **out, unsigned version,
                                                    unsigned long long flags,
                                                    enum cudaDriverEntryPointQueryResult *found) {
  (void)version, (void)flags;
  *out = dlsym(RTLD_DEFAULT, symbol);
  if (found) *found = *out ? cudaDriverEntryPointSuccess : cudaDriverEntryPointSymbolNotFound;
  return cudaSuccess;
}
