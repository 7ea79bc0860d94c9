/* The functions that the library and its tests use of CUDA's driver (-DSTANDIN_HIP=0) and of HIP
 * (-DSTANDIN_HIP=5, 6 or 7). Most are the same under two names. */
#include "core.h"

#ifndef STANDIN_HIP
#define STANDIN_HIP 0
#endif
int is_hip = STANDIN_HIP;

#if STANDIN_HIP
#ifdef VENDOR_HEADERS
#define __HIP_PLATFORM_AMD__ 1
#include <hip/hip_runtime_api.h>
#include <hip/hiprtc.h>
#else
#include "hip_types.h"
#endif
#define SINCE_12_8 0
#define NAME(cuda, hip) hip
typedef hipError_t answer;
typedef void *pointer;
typedef const void *source;
typedef hipStream_t stream_handle;
typedef hipEvent_t event_handle;
typedef hipModule_t module_handle;
typedef hipFunction_t function_handle;
typedef hipGraph_t graph_handle;
typedef hipGraphExec_t exec_handle;
#else
#ifdef VENDOR_HEADERS
#include <cuda.h>
/* From version 13 on these names map to other functions, which the library does not use. */
#undef cuStreamGetCtx
#undef cuMemcpyBatchAsync
#if CUDA_VERSION >= 13000
CUresult cuCtxCreate_v2(CUcontext *, unsigned, CUdevice);
CUresult cuMemcpyBatchAsync(CUdeviceptr *, CUdeviceptr *, size_t *, size_t, CUmemcpyAttributes *, size_t *, size_t,
                            size_t *, CUstream);
#endif
#else
#include "cuda_types.h"
#define CUDA_VERSION 12080
#endif
#define SINCE_12_8 (CUDA_VERSION >= 12080)
#define NAME(cuda, hip) cuda
typedef CUresult answer;
typedef CUdeviceptr pointer, source;
typedef CUstream stream_handle;
typedef CUevent event_handle;
typedef CUmodule module_handle;
typedef CUfunction function_handle;
typedef CUgraph graph_handle;
typedef CUgraphExec exec_handle;
#endif
#include <stdio.h>
#include <string.h>

/* A function, by its properties, name, parameters and result; OUT: its first output is `out`. */
#define EXPORT __attribute__((visibility("default")))
#define FUNCTION(like, name, parameters, ...) \
  EXPORT answer name parameters {             \
    CALL(answer, like);                       \
    DONE(answer, (__VA_ARGS__));              \
  }
#define OUTPUT(like, name, parameters, ...) \
  EXPORT answer name parameters {           \
    CALL(answer, like);                     \
    OUT(answer, out);                       \
    DONE(answer, (__VA_ARGS__));            \
  }
#define AT(value) ((void *)(uintptr_t)(value))
#define HANDLE(out) ((void **)(void *)(out))
#define CUDA_ONLY(like) (STANDIN_HIP ? 0 : (like))

/* ---- The driver and its devices -------------------------------------------------------------*/

FUNCTION(EARLY, NAME(cuInit, hipInit), (unsigned int flags), flags ? E_VALUE : core_init())
OUTPUT(EARLY, NAME(cuDriverGetVersion, hipRuntimeGetVersion), (int *out), *out = (int)set.version, OK)
FUNCTION(CURRENT | RELEASES, NAME(cuCtxSynchronize, hipDeviceSynchronize), (void), context_sync(current()))

#if STANDIN_HIP
OUTPUT(EARLY | KEEPS, hipGetDeviceCount, (int *out), (*out = (int)set.devices) ? core_init() : E_NO_DEVICE)
OUTPUT(KEEPS, hipGetDevice, (int *out), *out = device_get(), OK)
FUNCTION(KEEPS, hipSetDevice, (int device), device_set(device))
/* Each device is of another architecture. */
static const char *gpu_name(int device) {
  return device % 2 ? "gfx1100" : "gfx90a:sramecc+:xnack-";
}

#ifndef VENDOR_HEADERS
/* hipDeviceProp_t: a name first, the architecture's name somewhere behind it. */
static int properties(void *out, int device) {
  if (out == NULL) return E_VALUE;
  if (!is_device(device)) return E_DEVICE;
  memset(out, 0, 792);
  strcpy(out, "stand-in, not hardware (gfx0)");
  strcpy((char *)out + (STANDIN_HIP < 6 ? 396 : 1160), gpu_name(device));
  return OK;
}
FUNCTION(0, hipGetDeviceProperties, (void *out, int device), properties(out, device))
#if STANDIN_HIP >= 6
FUNCTION(0, hipGetDevicePropertiesR0600, (void *out, int device), properties(out, device))
#endif
#endif

/* Not a call that a test counts. */
EXPORT hipError_t hipGetLastError(void) {
  int code = last_error;
  last_error = OK;
  return (hipError_t)code;
}

#else
OUTPUT(KEEPS, cuDeviceGetCount, (int *out), *out = (int)set.devices, OK)
OUTPUT(KEEPS, cuDeviceGet, (CUdevice *out, int ordinal), is_device(ordinal) ? *out = ordinal, OK : E_DEVICE)
OUTPUT(0, cuDeviceGetAttribute, (int *out, CUdevice_attribute which, CUdevice device),
       attribute(out, (int)which, device))
/* ---- Contexts -------------------------------------------------------------------------------*/

OUTPUT(KEEPS, cuDevicePrimaryCtxRetain, (CUcontext *out, CUdevice device), context_retain(device, HANDLE(out)))
FUNCTION(RELEASES, cuDevicePrimaryCtxRelease_v2, (CUdevice device), context_release(device))
OUTPUT(0, cuDevicePrimaryCtxGetState, (CUdevice device, unsigned int *flags, int *out),
       flags ? *flags = 0 : 0, is_device(device) ? *out = context_active(device), OK : E_DEVICE)
OUTPUT(0, cuCtxCreate_v2, (CUcontext *out, unsigned int flags, CUdevice device),
       (void)flags, context_create(device, HANDLE(out)))
FUNCTION(RELEASES, cuCtxDestroy_v2, (CUcontext context), context_destroy(context))
OUTPUT(KEEPS, cuCtxGetCurrent, (CUcontext *out), *out = context_handle(current()), OK)
FUNCTION(KEEPS, cuCtxSetCurrent, (CUcontext to), context_set(to))
FUNCTION(KEEPS, cuCtxPushCurrent_v2, (CUcontext on), on == NULL ? E_VALUE : context_push(on))
FUNCTION(RELEASES | KEEPS, cuCtxPopCurrent_v2, (CUcontext *out), context_pop(HANDLE(out)))
OUTPUT(KEEPS, cuCtxGetDevice, (CUdevice *out), current() ? *out = current()->device, OK : E_CONTEXT)

/* Kernels and fills reach their own device's memory only. */
OUTPUT(0, cuDeviceCanAccessPeer, (int *out, CUdevice device, CUdevice peer),
       is_device(device) && is_device(peer) ? *out = 0, OK : E_DEVICE)
FUNCTION(CURRENT, cuCtxEnablePeerAccess, (CUcontext peer, unsigned int flags),
         (void)peer, (void)flags, 217 /* CUDA_ERROR_PEER_ACCESS_UNSUPPORTED */)

/* Green contexts: part of a device's processors, else like its primary context; here all processors,
 * whatever the description says. */
#if SINCE_12_8
OUTPUT(0, cuGreenCtxCreate, (CUgreenCtx *out, CUdevResourceDesc description, CUdevice device, unsigned int flags),
       (void)description, flags != 1 ? E_VALUE : green_create(device, HANDLE(out)))
FUNCTION(RELEASES, cuGreenCtxDestroy, (CUgreenCtx green), green_destroy(green))
OUTPUT(0, cuCtxFromGreenCtx, (CUcontext *out, CUgreenCtx green),
       *out = (CUcontext)(void *)green, context_of(green) ? OK : E_HANDLE)
OUTPUT(0, cuGreenCtxStreamCreate, (CUstream *out, CUgreenCtx green, unsigned int flags, int priority),
       (void)priority, context_of(green) && flags == 1 ? stream_new(context_of(green), flags, HANDLE(out)) : E_VALUE)

static int green_of(void *stream, CUgreenCtx *out) {
  context *owner = NULL;
  int code = stream_context(stream, &owner);
  *out = owner != NULL && owner->green ? (CUgreenCtx)context_handle(owner) : NULL;
  return code;
}
OUTPUT(CURRENT | KEEPS, cuStreamGetGreenCtx, (CUstream stream, CUgreenCtx *out), green_of(stream, out))
#endif
#endif

/* ---- Memory ---------------------------------------------------------------------------------*/

static int made(int kind, size_t nbytes, void *out) {
  return memory_new(kind, nbytes, current()->device, (void **)out);
}

OUTPUT(CURRENT | UNSAFE, NAME(cuMemAlloc_v2, hipMalloc), (pointer *out, size_t nbytes), made(DEVICE_MEMORY, nbytes, out))
FUNCTION(CURRENT | RELEASES | UNSAFE, NAME(cuMemFree_v2, hipFree), (pointer address),
         memory_free(AT(address), 1 << DEVICE_MEMORY | 1 << MANAGED_MEMORY))
OUTPUT(CURRENT | CUDA_ONLY(UNSAFE), NAME(cuMemAllocAsync, hipMallocAsync),
       (pointer *out, size_t nbytes, stream_handle stream), *out = 0, alloc_enqueue(nbytes, stream, HANDLE(out)))
FUNCTION(CURRENT | RELEASES | CUDA_ONLY(UNSAFE), NAME(cuMemFreeAsync, hipFreeAsync),
         (pointer address, stream_handle stream), free_enqueue(AT(address), stream))
OUTPUT(CURRENT | UNSAFE, NAME(cuMemHostAlloc, hipHostMalloc), (void **out, size_t nbytes, unsigned int flags),
       flags > CUDA_ONLY(7) && !is_hip ? E_VALUE : made(PINNED, nbytes, out))
FUNCTION(CURRENT | RELEASES | UNSAFE, NAME(cuMemFreeHost, hipHostFree), (void *address),
         memory_free(address, 1 << PINNED))
OUTPUT(CURRENT | UNSAFE, NAME(cuMemAllocManaged, hipMallocManaged), (pointer *out, size_t nbytes, unsigned int flags),
       flags < 1 || flags > 2 ? E_VALUE : made(MANAGED_MEMORY, nbytes, out))
FUNCTION(CURRENT | UNSAFE, NAME(cuMemHostRegister_v2, hipHostRegister), (void *address, size_t nbytes, unsigned int flags),
         flags > 15 && !is_hip ? E_VALUE : memory_register(address, nbytes))
FUNCTION(CURRENT | RELEASES | UNSAFE, NAME(cuMemHostUnregister, hipHostUnregister), (void *address),
         memory_unregister(address))

#if !STANDIN_HIP
/* Either may be left out. */
static int memory_info(const guard *self, size_t *out, size_t *total) {
  int device = current()->device;
  if (self->garbage && out != NULL) return garbage(self, out, sizeof *out);
  if (out != NULL) *out = set.memory[device] - memory_used(device);
  if (total != NULL) *total = set.memory[device];
  return OK;
}
FUNCTION(CURRENT, cuMemGetInfo_v2, (size_t *out, size_t *total), memory_info(&self, out, total))
#endif

static int memory_range(const guard *self, pointer *base, size_t *size, const void *address) {
  block *it = block_of(address);
  if (is_hip && base == NULL) return E_VALUE;
  if (self->garbage && base != NULL && size != NULL) {
    garbage(self, size, sizeof *size);
    return garbage(self, base, sizeof *base);
  }
  if (it == NULL) return E_NOT_FOUND;
  if (base != NULL) *base = (pointer)(uintptr_t)it->address;
  if (size != NULL) *size = it->nbytes;
  return OK;
}
FUNCTION(CURRENT, NAME(cuMemGetAddressRange_v2, hipMemGetAddressRange), (pointer *base, size_t *size, pointer address),
         memory_range(&self, base, size, AT(address)))

#if STANDIN_HIP
/* hipMemoryType: in version 5 host 0, device 1; from 6 on unregistered 0, host 1, device 2, managed 3. */
static int memory_type(const block *it) {
  int is_host = it->kind == PINNED || it->kind == REGISTERED;
  if (is_hip == 5) return is_host || it->kind == MANAGED_MEMORY ? 0 : 1;
  if (it->kind == MANAGED_MEMORY) return 3;
  return is_host ? 1 : 2;
}

static int attributes(hipPointerAttribute_t *out, const void *address) {
  block *it = block_of(address);
  if (it == NULL) return E_VALUE;
  memset(out, 0, sizeof *out);
#if STANDIN_HIP >= 6
  out->type = memory_type(it);
#else
  out->memoryType = memory_type(it);
#endif
  out->device = it->device;
  out->devicePointer = AT(address);
  if (it->alias != NULL) out->devicePointer = it->alias + ((const unsigned char *)address - it->address);
  if (it->kind != DEVICE_MEMORY) out->hostPointer = AT(address);
  out->isManaged = it->kind == MANAGED_MEMORY;
  return OK;
}
OUTPUT(CURRENT, hipPointerGetAttributes, (hipPointerAttribute_t *out, const void *address), attributes(out, address))

#else
/* Memory types: 1 host, 2 device. Managed memory reports device. */
static int pointer_attribute(const guard *self, void *out, int which, CUdeviceptr address) {
  if (out == NULL) return E_VALUE;
  size_t nbytes = which == 2 || which == 9 ? 4 : which == 8 || which == 6 || which == 13 ? 1 : 8;
  block *it = block_of(AT(address));
  unsigned char bytes[8] = {0};
  unsigned type;
  if (self->garbage) return garbage(self, out, nbytes);
  if (it == NULL) return E_VALUE;
  switch (which) {
  case 1: memcpy(bytes, &it->context, 8); break;
  case 2:
    type = it->kind == DEVICE_MEMORY || it->kind == MANAGED_MEMORY ? 2 : 1;
    memcpy(bytes, &type, 4);
    break;
  case 3:
    if (current() == NULL || !memory_seen(it, current())) return E_VALUE;
    memcpy(bytes, &address, 8);
    break;
  case 4:
    if (it->kind == DEVICE_MEMORY) return E_VALUE;
    memcpy(bytes, &address, 8);
    break;
  case 8: bytes[0] = it->kind == MANAGED_MEMORY; break;
  case 9:
    type = it->kind == PINNED && set.host_device ? (unsigned)set.host_device : (unsigned)it->device;
    memcpy(bytes, &type, 4);
    break;
  case 11: memcpy(bytes, &it->address, 8); break;
  case 12: memcpy(bytes, &it->nbytes, 8); break;
  case 13: bytes[0] = 1; break;
  case 17: bytes[0] = (unsigned char)it->pool; break; /* a handle: not NULL for pools' memory */
  default: return E_VALUE;
  }
  memcpy(out, bytes, nbytes);
  return OK;
}
FUNCTION(0, cuPointerGetAttribute, (void *out, CUpointer_attribute which, CUdeviceptr address),
         pointer_attribute(&self, out, (int)which, address))
#endif

/* ---- Copies ---------------------------------------------------------------------------------*/

static copy2d row(pointer dst, source src, size_t nbytes) {
  return (copy2d){AT(dst), AT(src), nbytes, nbytes, nbytes, 1, 4, 4, 0};
}

FUNCTION(CURRENT, NAME(cuMemsetD8Async, hipMemsetAsync),
         (pointer dst, NAME(unsigned char, int) value, size_t nbytes, stream_handle stream),
         fill_enqueue(AT(dst), value, nbytes, stream))

#if STANDIN_HIP
/* Kinds: 0 host to host, 1 to device, 2 to host, 3 device to device, 4 determined by addresses. */
static int copy_of_kind(copy2d copy, int kind, void *stream) {
  static const int dst[] = {1, 4, 1, 4, 4}, src[] = {1, 1, 4, 4, 4};
  if (kind < 0 || kind > 4) return 21; /* hipErrorInvalidMemcpyDirection */
  if (copy.dst_pitch < copy.width || copy.src_pitch < copy.width) return 12; /* hipErrorInvalidPitchValue */
  copy.dst_kind = dst[kind];
  copy.src_kind = src[kind];
  return copy_enqueue(&copy, stream);
}
FUNCTION(CURRENT, hipMemcpyAsync, (void *dst, const void *src, size_t nbytes, hipMemcpyKind kind, hipStream_t stream),
         copy_of_kind(row(dst, src, nbytes), (int)kind, stream))
FUNCTION(CURRENT, hipMemcpy2DAsync,
         (void *dst, size_t dst_pitch, const void *src, size_t src_pitch, size_t width, size_t height,
          hipMemcpyKind kind, hipStream_t stream),
         copy_of_kind((copy2d){dst, src, dst_pitch, src_pitch, width, height, 4, 4, 0}, (int)kind, stream))

/* Whether a peer copy names the device of an address. */
static int peer_operand(const void *address, int device) {
  block *it = block_of(address);
  if (!is_device(device)) return E_DEVICE;
  if (it == NULL || it->kind != DEVICE_MEMORY || it->device == device) return OK;
  violation("a peer copy names the wrong device for an address");
  return E_VALUE;
}
#define PEER int
#else

static int apart(CUdeviceptr a, size_t a_nbytes, CUdeviceptr b, size_t b_nbytes) {
  return a + a_nbytes <= b || b + b_nbytes <= a;
}

#if SINCE_12_8
/* All are checked before the first is enqueued; in any order. The manual rules out the legacy stream,
 * and says nothing of captures. */
static int batch(const guard *self, CUdeviceptr *dsts, CUdeviceptr *srcs, size_t *sizes, size_t count,
                 CUmemcpyAttributes *attributes, size_t *firsts, size_t n, size_t *failed, CUstream stream) {
  int capturing = 0;
  if (failed == NULL || dsts == NULL || srcs == NULL || sizes == NULL || count == 0) return E_VALUE;
  if (self->garbage) garbage(self, failed, sizeof *failed);
  else *failed = SIZE_MAX;
  if (attributes == NULL || firsts == NULL || n == 0 || n > count || firsts[0] != 0) return E_VALUE;
  for (size_t i = 0; i < n; ++i) {
    if ((int)attributes[i].srcAccessOrder < 1 || (int)attributes[i].srcAccessOrder > 3) return E_VALUE;
    if (i > 0 && (firsts[i] <= firsts[i - 1] || firsts[i] >= count)) return E_VALUE;
    if ((int)attributes[i].srcAccessOrder != 1) violation("a batch reads its sources out of the stream's order");
  }
  if ((uintptr_t)stream <= 1) {
    violation("a batch of copies on the legacy stream");
    return E_VALUE;
  }
  int code = stream_capturing(stream, &capturing);
  if (code == OK && capturing) violation("a batch of copies is captured");
  for (size_t i = 0; code == OK && i < count; ++i) {
    copy2d copy = row(dsts[i], srcs[i], sizes[i]);
    code = copy_check(&copy, stream);
    if (code != OK && !self->garbage) *failed = i;
    for (size_t k = 0; k < count; ++k) {
      if (apart(dsts[i], sizes[i], srcs[k], sizes[k]) && (k == i || apart(dsts[i], sizes[i], dsts[k], sizes[k]))) continue;
      violation("copies of one batch depend on one another");
    }
  }
  for (size_t i = 0, from = chance((unsigned)count); code == OK && i < count; ++i) {
    size_t k = (from + count - i) % count;
    copy2d copy = row(dsts[k], srcs[k], sizes[k]);
    code = copy_enqueue(&copy, stream);
  }
  return code;
}
FUNCTION(CURRENT, cuMemcpyBatchAsync,
         (CUdeviceptr *dsts, CUdeviceptr *srcs, size_t *sizes, size_t count, CUmemcpyAttributes *attributes,
          size_t *firsts, size_t n, size_t *failed, CUstream stream),
         batch(&self, dsts, srcs, sizes, count, attributes, firsts, n, failed, stream))
#endif

/* Memory of a context, or of its device's pools, and not host memory. */
static int peer_operand(const void *address, CUcontext whose) {
  context *owner = context_of(whose);
  block *it = block_of(address);
  if (owner == NULL) return E_CONTEXT;
  if (it == NULL || it->kind == PINNED || it->kind == REGISTERED) return E_VALUE;
  if (it->kind != DEVICE_MEMORY || it->device == owner->device) return OK;
  violation("a peer copy names the wrong context for an address");
  return E_VALUE;
}
#define PEER CUcontext
#endif

static int peer_copy(copy2d copy, PEER to, PEER from, void *stream) {
  int code = copy.width == 0 ? OK : peer_operand(copy.dst, to);
  if (code == OK && copy.width != 0) code = peer_operand(copy.src, from);
  copy.peer = 1;
  return code != OK ? code : copy_enqueue(&copy, stream);
}
FUNCTION(CURRENT, NAME(cuMemcpyPeerAsync, hipMemcpyPeerAsync),
         (pointer dst, PEER to, source src, PEER from, size_t nbytes, stream_handle stream),
         peer_copy(row(dst, src, nbytes), to, from, stream))

#if !STANDIN_HIP
/* One layer, of device memory. */
static int peer_rows(const CUDA_MEMCPY3D_PEER *it, CUstream stream) {
  if (it == NULL || it->Depth != 1 || (int)it->srcMemoryType != 2 || (int)it->dstMemoryType != 2 ||
      it->srcXInBytes || it->srcY || it->srcZ || it->srcLOD || it->dstXInBytes || it->dstY || it->dstZ ||
      it->dstLOD || it->srcHeight < it->Height || it->dstHeight < it->Height) {
    return E_VALUE;
  }
  copy2d copy = {AT(it->dstDevice), AT(it->srcDevice), it->dstPitch, it->srcPitch, it->WidthInBytes, it->Height, 2, 2, 1};
  return peer_copy(copy, it->dstContext, it->srcContext, stream);
}
FUNCTION(CURRENT, cuMemcpy3DPeerAsync, (const CUDA_MEMCPY3D_PEER *given, CUstream stream), peer_rows(given, stream))

static int rows(const CUDA_MEMCPY2D *it, CUstream stream) {
  if (it == NULL) return E_VALUE;
  int src = (int)it->srcMemoryType, dst = (int)it->dstMemoryType;
  if (src < 1 || src > 4 || src == 3 || dst < 1 || dst > 4 || dst == 3) return E_VALUE;
  copy2d copy = {dst == 1 ? it->dstHost : AT(it->dstDevice), src == 1 ? it->srcHost : AT(it->srcDevice), it->dstPitch,
                 it->srcPitch, it->WidthInBytes, it->Height, dst, src, 0};
  copy.src += it->srcY * it->srcPitch + it->srcXInBytes;
  copy.dst += it->dstY * it->dstPitch + it->dstXInBytes;
  return copy_enqueue(&copy, stream);
}
FUNCTION(CURRENT, cuMemcpy2DAsync_v2, (const CUDA_MEMCPY2D *given, CUstream stream), rows(given, stream))
FUNCTION(CURRENT, cuMemcpyAsync, (CUdeviceptr dst, CUdeviceptr src, size_t nbytes, CUstream stream),
         copy_enqueue(&(copy2d){AT(dst), AT(src), nbytes, nbytes, nbytes, 1, 4, 4, 0}, stream))
#endif

/* ---- Streams and events ---------------------------------------------------------------------*/

OUTPUT(CURRENT, NAME(cuStreamCreate, hipStreamCreateWithFlags), (stream_handle *out, unsigned int flags),
       stream_new(current(), flags, HANDLE(out)))
FUNCTION(CURRENT | RELEASES, NAME(cuStreamDestroy_v2, hipStreamDestroy), (stream_handle stream), stream_destroy(stream))
/* For any stream: during a capture neither waits nor queries are permitted. */
FUNCTION(CURRENT | RELEASES | UNSAFE, NAME(cuStreamSynchronize, hipStreamSynchronize), (stream_handle stream), stream_sync(stream))
FUNCTION(CURRENT | UNSAFE, NAME(cuStreamQuery, hipStreamQuery), (stream_handle stream), stream_query(stream))
FUNCTION(CURRENT, NAME(cuStreamWaitEvent, hipStreamWaitEvent), (stream_handle stream, event_handle event, unsigned int flags),
         flags > 1 ? E_VALUE : stream_wait(stream, event))
OUTPUT(CURRENT, NAME(cuStreamIsCapturing, hipStreamIsCapturing),
       (stream_handle stream, NAME(CUstreamCaptureStatus, hipStreamCaptureStatus) *out),
       *out = 0, stream_capturing(stream, (int *)(void *)out))

FUNCTION(CURRENT, NAME(cuLaunchHostFunc, hipLaunchHostFunc), (stream_handle stream, NAME(CUhostFn, hipHostFn_t) host, void *with),
         host_enqueue(host, with, stream))

#if STANDIN_HIP >= 6 || SINCE_12_8
static int device_of(void *stream, int *out) {
  context *owner = NULL;
  int code = stream_context(stream, &owner);
  if (owner != NULL) *out = owner->device;
  return code;
}
OUTPUT(CURRENT | KEEPS, NAME(cuStreamGetDevice, hipStreamGetDevice), (stream_handle stream, int *out), device_of(stream, out))
#endif
FUNCTION(KEEPS, NAME(cuThreadExchangeStreamCaptureMode, hipThreadExchangeStreamCaptureMode),
         (NAME(CUstreamCaptureMode, hipStreamCaptureMode) * mode), mode ? capture_exchange((int *)(void *)mode) : E_VALUE)
FUNCTION(CURRENT, NAME(cuStreamBeginCapture_v2, hipStreamBeginCapture),
         (stream_handle stream, NAME(CUstreamCaptureMode, hipStreamCaptureMode) mode), capture_begin(stream, (int)mode))
OUTPUT(CURRENT | RELEASES, NAME(cuStreamEndCapture, hipStreamEndCapture), (stream_handle stream, graph_handle *out),
       capture_end(stream, HANDLE(out)))

/* An executable graph is the graph itself; destroying it does nothing. */
#if STANDIN_HIP
OUTPUT(CURRENT, hipGraphInstantiate, (exec_handle *out, graph_handle graph, hipGraphNode_t *node, char *log, size_t n),
       (void)node, (void)log, (void)n, *out = (exec_handle)(void *)graph, graph ? OK : E_VALUE)
#else
OUTPUT(0, cuGraphInstantiateWithFlags, (exec_handle *out, graph_handle graph, unsigned long long flags),
       (void)flags, *out = (exec_handle)(void *)graph, graph ? OK : E_VALUE)

static int context_of_stream(void *stream, CUcontext *out) {
  context *owner = NULL;
  int code = stream_context(stream, &owner);
  *out = context_handle(owner);
  return code;
}
OUTPUT(CURRENT | KEEPS, cuStreamGetCtx, (CUstream stream, CUcontext *out), context_of_stream(stream, out))
#endif
FUNCTION(CURRENT, NAME(cuGraphLaunch, hipGraphLaunch), (exec_handle graph, stream_handle stream), graph_launch(graph, stream))
FUNCTION(RELEASES, NAME(cuGraphExecDestroy, hipGraphExecDestroy), (exec_handle graph), graph ? OK : E_VALUE)
FUNCTION(RELEASES, NAME(cuGraphDestroy, hipGraphDestroy), (graph_handle graph), graph_destroy(graph))

OUTPUT(CURRENT, NAME(cuEventCreate, hipEventCreateWithFlags), (event_handle *out, unsigned int flags),
       flags > 7 && !is_hip ? E_VALUE : event_new(HANDLE(out)))
FUNCTION(RELEASES, NAME(cuEventDestroy_v2, hipEventDestroy), (event_handle event), event_destroy(event))
FUNCTION(CURRENT, NAME(cuEventRecord, hipEventRecord), (event_handle event, stream_handle stream), event_record(event, stream))
FUNCTION(CURRENT | UNSAFE, NAME(cuEventQuery, hipEventQuery), (event_handle event), event_query(event))
FUNCTION(CURRENT | UNSAFE | RELEASES, NAME(cuEventSynchronize, hipEventSynchronize), (event_handle event), event_sync(event))

/* ---- Modules and kernels --------------------------------------------------------------------*/

FUNCTION(CURRENT | RELEASES | UNSAFE, NAME(cuModuleUnload, hipModuleUnload), (module_handle module), module_destroy(module))
OUTPUT(CURRENT, NAME(cuModuleGetFunction, hipModuleGetFunction), (function_handle *out, module_handle module, const char *name),
       module_function(module, name, HANDLE(out)))
FUNCTION(CURRENT, NAME(cuLaunchKernel, hipModuleLaunchKernel),
         (function_handle kernel, unsigned int gx, unsigned int gy, unsigned int gz, unsigned int bx, unsigned int by,
          unsigned int bz, unsigned int shared_bytes, stream_handle stream, void **parameters, void **extra),
         shared_bytes > NAME(49152, 65536) || extra != NULL
             ? E_VALUE
             : launch_enqueue(kernel, (unsigned[6]){gx, gy, gz, bx, by, bz}, stream, parameters))

#if !STANDIN_HIP
/* Data that is no image is rejected before any other check. */
static int load(const char *image, void **out) {
  int code = image ? image_check(image) : OK;
  if (code == OK) code = capture_forbids();
  return code == OK ? module_new(image, out) : code;
}
OUTPUT(CURRENT, cuModuleLoadData, (CUmodule *out, const void *image), load(image, HANDLE(out)))

#else
static int load(const char *image, void **out) {
  char for_gpu[64];
  if (image == NULL) return E_VALUE;
  if (sscanf(image, "STANDIN-HIP %63s", for_gpu) != 1) return E_IMAGE;
  if (strcmp(for_gpu, gpu_name(device_get())) != 0) return 209; /* no binary for it */
  return module_new(strchr(image, '\n') + 1, out);
}
OUTPUT(CURRENT | UNSAFE, hipModuleLoadData, (hipModule_t *out, const void *image), load(image, HANDLE(out)))

/* ---- Compiling at run time ------------------------------------------------------------------*/

/* The "code" is the architecture and what NVRTC made of kernels.cu, without the kernels that the given
 * source lacks or that are not requested.
 * hiprtc: 1 no memory, 3 invalid input, 4 bad program, 6 the source does not compile. */
#ifndef VENDOR_HEADERS
__asm__(".section .rodata\nshipped_ptx: .incbin \"" PTX "\"\n.byte 0\n.text\n");
#endif
extern const char shipped_ptx[] __attribute__((visibility("hidden")));
struct _hiprtcProgram {
  char *source, *code;
  size_t nbytes;
};

#define ENTER_RTC(like) CALL(hiprtcResult, like)

EXPORT hiprtcResult hiprtcCreateProgram(hiprtcProgram *out, const char *source, const char *name,
                                        int headers, const char **texts, const char **names) {
  ENTER_RTC(EARLY);
  OUT(hiprtcResult, out);
  (void)name;
  (void)texts;
  (void)names;
  if (source == NULL || headers < 0) return (hiprtcResult)3;
  hiprtcProgram made = calloc(1, sizeof *made);
  if (made == NULL) return (hiprtcResult)1;
  made->source = malloc(strlen(source) + 1);
  if (made->source == NULL) {
    free(made);
    return (hiprtcResult)1;
  }
  strcpy(made->source, source);
  ++stats.modules; /* freed by hiprtcDestroyProgram */
  *out = made;
  DONE(hiprtcResult, OK);
}

/* Whether a kernel is of the requested families: between #if and #endif of the source. */
static int requested(const char *source, const char *kernel, unsigned families) {
  static const char start[] = "#if DLRS_KERNELS & ";
  char call[64];
  snprintf(call, sizeof call, " %.*s(", (int)strcspn(kernel, "("), kernel);
  const char *family = source, *found = strstr(source, call);
  if (found == NULL) return 0;
  for (const char *at = source; (at = strstr(at, start)) && at < found; ++at) family = at;
  return (families & strtoul(family + sizeof start - 1, NULL, 10)) != 0;
}

EXPORT hiprtcResult hiprtcCompileProgram(hiprtcProgram program, int count, const char **options) {
  ENTER_RTC(EARLY);
  if (program == NULL) return (hiprtcResult)4;
  if (count < 0 || (count > 0 && options == NULL)) return (hiprtcResult)3;
  /* Older versions compile C++14 by default. */
  unsigned families = ~0u;
  int standard = 14;
  char for_gpu[64] = "";
  for (int i = 0; i < count; ++i) {
    sscanf(options[i], "-std=c++%d", &standard);
    sscanf(options[i], "-DDLRS_KERNELS=%u", &families);
    sscanf(options[i], "--gpu-architecture=%63s", for_gpu);
  }
  /* Without an architecture hiprtc asks the development package's libamdhip64.so for one. */
  if (standard < 17 || for_gpu[0] == '\0') return (hiprtcResult)6;
  program->code = malloc(sizeof for_gpu + strlen(shipped_ptx) + 16);
  if (program->code == NULL) return (hiprtcResult)1;
  char *to = program->code + sprintf(program->code, "STANDIN-HIP %s\n", for_gpu);
  static const char entry[] = ".visible .entry ";
  for (const char *at = shipped_ptx, *next; at != NULL; at = next) {
    next = strstr(at + 1, entry);
    size_t nbytes = next ? (size_t)(next - at) : strlen(at);
    if (at != shipped_ptx && !requested(program->source, at + sizeof entry - 1, families)) continue;
    memcpy(to, at, nbytes);
    to += nbytes;
  }
  *to = '\0';
  program->nbytes = (size_t)(to - program->code) + 1;
  DONE(hiprtcResult, OK);
}

EXPORT hiprtcResult hiprtcGetCodeSize(hiprtcProgram program, size_t *out) {
  ENTER_RTC(EARLY);
  OUT(hiprtcResult, out);
  if (program == NULL || !program->code) return (hiprtcResult)4;
  *out = program->nbytes;
  DONE(hiprtcResult, OK);
}

EXPORT hiprtcResult hiprtcGetCode(hiprtcProgram program, char *code) {
  ENTER_RTC(EARLY);
  if (program == NULL || code == NULL || !program->code) return (hiprtcResult)4;
  memcpy(code, program->code, program->nbytes);
  DONE(hiprtcResult, OK);
}

EXPORT hiprtcResult hiprtcDestroyProgram(hiprtcProgram *program) {
  ENTER_RTC(EARLY | RELEASES);
  if (program == NULL || *program == NULL) return (hiprtcResult)4;
  free((*program)->source);
  free((*program)->code);
  free(*program);
  *program = NULL;
  --stats.modules;
  DONE(hiprtcResult, OK);
}
#endif
