/* The CUDA driver's functions that the library and its tests use. */
#include "core.h"

#ifdef VENDOR_HEADERS
#include <cuda.h>
/* From version 13 on these names map to other functions, which the library does not use. */
#undef cuMemPrefetchAsync
#undef cuMemAdvise
#undef cuStreamGetCtx
#undef cuMemcpyBatchAsync
#if CUDA_VERSION >= 13000
CUresult cuMemPrefetchAsync(CUdeviceptr, size_t, CUdevice, CUstream);
CUresult cuMemAdvise(CUdeviceptr, size_t, CUmem_advise, CUdevice);
CUresult cuCtxCreate_v2(CUcontext *, unsigned, CUdevice);
CUresult cuMemcpyBatchAsync(CUdeviceptr *, CUdeviceptr *, size_t *, size_t, CUmemcpyAttributes *, size_t *, size_t,
                            size_t *, CUstream);
#endif
#else
#include "cuda_types.h"
#endif
#include <string.h>

int is_hip = 0;

#define EXPORT __attribute__((visibility("default")))
#define ENTER(like) CALL(CUresult, like)
#define ANSWER(code) DONE(CUresult, code)
#define OUTPUT(out) OUT(CUresult, out)
#define ADDRESS(value) ((void *)(uintptr_t)(value))

/* ---- The driver and its devices -------------------------------------------------------------*/

EXPORT CUresult cuInit(unsigned int flags) {
  ENTER(EARLY);
  ANSWER(flags ? E_VALUE : core_init());
}

EXPORT CUresult cuDriverGetVersion(int *out) {
  ENTER(EARLY);
  OUTPUT(out);
  *out = set.version;
  ANSWER(OK);
}

EXPORT CUresult cuDeviceGetCount(int *out) {
  ENTER(KEEPS);
  OUTPUT(out);
  *out = set.devices;
  ANSWER(OK);
}

EXPORT CUresult cuDeviceGet(CUdevice *out, int ordinal) {
  ENTER(KEEPS);
  OUTPUT(out);
  if (!is_device(ordinal)) return (CUresult)E_DEVICE;
  *out = ordinal;
  ANSWER(OK);
}

EXPORT CUresult cuDeviceGetName(char *name, int length, CUdevice device) {
  ENTER(0);
  OUTPUT(name);
  if (!is_device(device)) return (CUresult)E_DEVICE;
  if (length <= 0) return (CUresult)E_VALUE;
  name[0] = '\0';
  strncat(name, "stand-in, not hardware", (size_t)length - 1);
  ANSWER(OK);
}

EXPORT CUresult cuDeviceGetAttribute(int *out, CUdevice_attribute which, CUdevice device) {
  ENTER(0);
  OUTPUT(out);
  ANSWER(attribute(out, (int)which, device));
}

EXPORT CUresult cuDeviceCanAccessPeer(int *out, CUdevice device, CUdevice peer) {
  ENTER(0);
  OUTPUT(out);
  if (!is_device(device) || !is_device(peer)) return (CUresult)E_DEVICE;
  *out = peer_can(device, peer);
  ANSWER(OK);
}

EXPORT CUresult cuGetErrorName(CUresult code, const char **out) {
  static const struct {
    int code;
    const char *name;
  } names[] = {{0, "CUDA_SUCCESS"}, {1, "CUDA_ERROR_INVALID_VALUE"},
               {2, "CUDA_ERROR_OUT_OF_MEMORY"}, {3, "CUDA_ERROR_NOT_INITIALIZED"},
               {4, "CUDA_ERROR_DEINITIALIZED"}, {34, "CUDA_ERROR_STUB_LIBRARY"},
               {46, "CUDA_ERROR_DEVICE_UNAVAILABLE"}, {100, "CUDA_ERROR_NO_DEVICE"},
               {101, "CUDA_ERROR_INVALID_DEVICE"}, {200, "CUDA_ERROR_INVALID_IMAGE"},
               {201, "CUDA_ERROR_INVALID_CONTEXT"}, {217, "CUDA_ERROR_PEER_ACCESS_UNSUPPORTED"},
               {222, "CUDA_ERROR_UNSUPPORTED_PTX_VERSION"}, {400, "CUDA_ERROR_INVALID_HANDLE"},
               {500, "CUDA_ERROR_NOT_FOUND"}, {600, "CUDA_ERROR_NOT_READY"},
               {700, "CUDA_ERROR_ILLEGAL_ADDRESS"},
               {704, "CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED"},
               {705, "CUDA_ERROR_PEER_ACCESS_NOT_ENABLED"},
               {709, "CUDA_ERROR_CONTEXT_IS_DESTROYED"}, {719, "CUDA_ERROR_LAUNCH_FAILED"},
               {801, "CUDA_ERROR_NOT_SUPPORTED"},
               {900, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED"},
               {901, "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED"},
               {906, "CUDA_ERROR_STREAM_CAPTURE_IMPLICIT"}, {999, "CUDA_ERROR_UNKNOWN"}};
  ENTER(EARLY);
  OUTPUT(out);
  *out = NULL;
  for (size_t i = 0; i < sizeof names / sizeof *names; ++i) {
    if (names[i].code == (int)code) *out = names[i].name;
  }
  ANSWER(*out ? OK : E_VALUE);
}

/* ---- Contexts -------------------------------------------------------------------------------*/

EXPORT CUresult cuDevicePrimaryCtxRetain(CUcontext *out, CUdevice device) {
  ENTER(KEEPS);
  OUTPUT(out);
  ANSWER(context_retain(device, (void **)out));
}

EXPORT CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device) {
  ENTER(RELEASES);
  ANSWER(context_release(device, 0));
}

EXPORT CUresult cuDevicePrimaryCtxReset_v2(CUdevice device) {
  ENTER(RELEASES);
  ANSWER(context_release(device, 1));
}

EXPORT CUresult cuDevicePrimaryCtxGetState(CUdevice device, unsigned int *flags, int *active) {
  ENTER(0);
  OUTPUT(active);
  if (!is_device(device)) return (CUresult)E_DEVICE;
  if (flags != NULL) *flags = 0;
  *active = context_active(device);
  ANSWER(OK);
}

EXPORT CUresult cuCtxCreate_v2(CUcontext *out, unsigned int flags, CUdevice device) {
  ENTER(0);
  OUTPUT(out);
  (void)flags;
  ANSWER(context_create(device, (void **)out));
}

EXPORT CUresult cuCtxDestroy_v2(CUcontext self_context) {
  ENTER(RELEASES);
  ANSWER(context_destroy(self_context));
}

EXPORT CUresult cuCtxGetCurrent(CUcontext *out) {
  ENTER(KEEPS);
  OUTPUT(out);
  *out = context_handle(current());
  ANSWER(OK);
}

EXPORT CUresult cuCtxSetCurrent(CUcontext to) {
  ENTER(KEEPS);
  ANSWER(context_set(to));
}

EXPORT CUresult cuCtxPushCurrent_v2(CUcontext on) {
  ENTER(KEEPS);
  ANSWER(on == NULL ? E_VALUE : context_push(on));
}

EXPORT CUresult cuCtxPopCurrent_v2(CUcontext *out) {
  ENTER(RELEASES | KEEPS);
  ANSWER(context_pop((void **)out));
}

EXPORT CUresult cuCtxGetDevice(CUdevice *out) {
  ENTER(KEEPS);
  OUTPUT(out);
  if (current() == NULL) return (CUresult)E_CONTEXT;
  *out = current()->device;
  ANSWER(OK);
}

EXPORT CUresult cuCtxSynchronize(void) {
  ENTER(CURRENT | RELEASES);
  ANSWER(context_sync(current()));
}

EXPORT CUresult cuCtxEnablePeerAccess(CUcontext peer, unsigned int flags) {
  ENTER(CURRENT);
  context *to = context_of(peer);
  if (flags != 0) return (CUresult)E_VALUE;
  if (to == NULL) return (CUresult)E_CONTEXT;
  ANSWER(to == current() ? E_CONTEXT : peer_enable(current(), to->device));
}

EXPORT CUresult cuCtxDisablePeerAccess(CUcontext peer) {
  ENTER(CURRENT | RELEASES);
  context *to = context_of(peer);
  ANSWER(to == NULL ? E_CONTEXT : peer_disable(current(), to->device));
}

/* ---- Green contexts: part of a device's processors, else like its primary context ------------*/

#if !defined(VENDOR_HEADERS) || CUDA_VERSION >= 12080
/* With all processors, whatever the description says. */
EXPORT CUresult cuGreenCtxCreate(CUgreenCtx *out, CUdevResourceDesc description, CUdevice device,
                                 unsigned int flags) {
  ENTER(0);
  OUTPUT(out);
  (void)description;
  ANSWER(flags != 1 ? E_VALUE : green_create(device, (void **)out));
}

EXPORT CUresult cuGreenCtxDestroy(CUgreenCtx green) {
  ENTER(RELEASES);
  ANSWER(green_destroy(green));
}

EXPORT CUresult cuCtxFromGreenCtx(CUcontext *out, CUgreenCtx green) {
  ENTER(0);
  OUTPUT(out);
  *out = (CUcontext)(void *)green;
  ANSWER(context_of(green) ? OK : E_HANDLE);
}

EXPORT CUresult cuGreenCtxStreamCreate(CUstream *out, CUgreenCtx green, unsigned int flags,
                                       int priority) {
  ENTER(0);
  OUTPUT(out);
  (void)priority;
  context *on = context_of(green);
  ANSWER(on == NULL || flags != 1 ? E_VALUE : stream_new(on, flags, (void **)out));
}

EXPORT CUresult cuStreamGetGreenCtx(CUstream stream, CUgreenCtx *out) {
  ENTER(CURRENT | KEEPS);
  OUTPUT(out);
  context *owner = NULL;
  int code = stream_context(stream, &owner);
  *out = owner != NULL && owner->green ? (CUgreenCtx)context_handle(owner) : NULL;
  ANSWER(code);
}

EXPORT CUresult cuStreamGetDevice(CUstream stream, CUdevice *out) {
  ENTER(CURRENT | KEEPS);
  OUTPUT(out);
  context *owner = NULL;
  int code = stream_context(stream, &owner);
  if (owner != NULL) *out = owner->device;
  ANSWER(code);
}
#endif

/* ---- Memory ---------------------------------------------------------------------------------*/

static int allocate(int kind, size_t nbytes, CUdeviceptr *out) {
  void *address;
  int code = memory_new(kind, nbytes, current()->device, &address);
  *out = (CUdeviceptr)(uintptr_t)address;
  return code;
}

EXPORT CUresult cuMemAlloc_v2(CUdeviceptr *out, size_t nbytes) {
  ENTER(CURRENT | UNSAFE);
  OUTPUT(out);
  ANSWER(allocate(DEVICE_MEMORY, nbytes, out));
}

EXPORT CUresult cuMemFree_v2(CUdeviceptr address) {
  ENTER(CURRENT | RELEASES | UNSAFE);
  ANSWER(memory_free(ADDRESS(address), 1 << DEVICE_MEMORY | 1 << MANAGED_MEMORY));
}

EXPORT CUresult cuMemAllocAsync(CUdeviceptr *out, size_t nbytes, CUstream stream) {
  ENTER(CURRENT | UNSAFE);
  OUTPUT(out);
  void *address = NULL;
  int code = alloc_enqueue(nbytes, stream, &address);
  *out = (CUdeviceptr)(uintptr_t)address;
  ANSWER(code);
}

EXPORT CUresult cuMemFreeAsync(CUdeviceptr address, CUstream stream) {
  ENTER(CURRENT | RELEASES | UNSAFE);
  ANSWER(free_enqueue(ADDRESS(address), stream));
}

EXPORT CUresult cuMemHostAlloc(void **out, size_t nbytes, unsigned int flags) {
  ENTER(CURRENT | UNSAFE);
  OUTPUT(out);
  ANSWER(flags > 7 ? E_VALUE : memory_new(PINNED, nbytes, current()->device, out));
}

EXPORT CUresult cuMemFreeHost(void *address) {
  ENTER(CURRENT | RELEASES | UNSAFE);
  ANSWER(memory_free(address, 1 << PINNED));
}

EXPORT CUresult cuMemAllocManaged(CUdeviceptr *out, size_t nbytes, unsigned int flags) {
  ENTER(CURRENT | UNSAFE);
  OUTPUT(out);
  if (flags < 1 || flags > 2) return (CUresult)E_VALUE;
  if (!set.managed) return (CUresult)E_NOT_SUPPORTED;
  ANSWER(allocate(MANAGED_MEMORY, nbytes, out));
}

EXPORT CUresult cuMemHostRegister_v2(void *address, size_t nbytes, unsigned int flags) {
  ENTER(CURRENT | UNSAFE);
  ANSWER(flags > 15 ? E_VALUE : memory_register(address, nbytes));
}

EXPORT CUresult cuMemHostUnregister(void *address) {
  ENTER(CURRENT | RELEASES | UNSAFE);
  ANSWER(memory_unregister(address));
}

/* Either may be left out. */
EXPORT CUresult cuMemGetInfo_v2(size_t *out, size_t *total) {
  ENTER(CURRENT);
  size_t all = set.memory[current()->device];
  if (self.garbage && out != NULL) return (CUresult)garbage(&self, out, sizeof *out);
  if (out != NULL) *out = all - memory_used(current()->device);
  if (total != NULL) *total = all;
  ANSWER(OK);
}

EXPORT CUresult cuMemGetAddressRange_v2(CUdeviceptr *base, size_t *size, CUdeviceptr address) {
  ENTER(CURRENT);
  block *it = block_of(ADDRESS(address));
  if (self.garbage && base != NULL && size != NULL) {
    garbage(&self, size, sizeof *size);
    return (CUresult)garbage(&self, base, sizeof *base);
  }
  if (it == NULL) return (CUresult)E_NOT_FOUND;
  if (base != NULL) *base = (CUdeviceptr)(uintptr_t)it->address;
  if (size != NULL) *size = it->nbytes;
  ANSWER(OK);
}

/* Memory types: 1 host, 2 device. Managed memory reports device. */
EXPORT CUresult cuPointerGetAttribute(void *out, CUpointer_attribute which, CUdeviceptr address) {
  ENTER(0);
  if (out == NULL) return (CUresult)E_VALUE;
  size_t nbytes = which == 2 || which == 9 ? 4 : which == 8 || which == 6 || which == 13 ? 1 : 8;
  block *it = block_of(ADDRESS(address));
  unsigned char bytes[8] = {0};
  unsigned type;
  if (self.garbage) return (CUresult)garbage(&self, out, nbytes);
  if (it == NULL) return (CUresult)E_VALUE;
  switch ((int)which) {
  case 1: memcpy(bytes, &it->context, 8); break;
  case 2:
    type = it->kind == DEVICE_MEMORY || it->kind == MANAGED_MEMORY ? 2 : 1;
    memcpy(bytes, &type, 4);
    break;
  case 3:
    if (current() == NULL || !memory_seen(it, current())) return (CUresult)E_VALUE;
    memcpy(bytes, &address, 8);
    break;
  case 4:
    if (it->kind == DEVICE_MEMORY) return (CUresult)E_VALUE;
    memcpy(bytes, &address, 8);
    break;
  case 8: bytes[0] = it->kind == MANAGED_MEMORY; break;
  case 9: memcpy(bytes, it->kind == PINNED && set.host_device ? &set.host_device : &it->device, 4); break;
  case 11: memcpy(bytes, &it->address, 8); break;
  case 12: memcpy(bytes, &it->nbytes, 8); break;
  case 13: bytes[0] = 1; break;
  case 17: bytes[0] = (unsigned char)it->pool; break; /* a handle: not NULL for pools' memory */
  default: return (CUresult)E_VALUE;
  }
  memcpy(out, bytes, nbytes);
  ANSWER(OK);
}

EXPORT CUresult cuMemPrefetchAsync(CUdeviceptr at, size_t nbytes, CUdevice device, CUstream stream) {
  ENTER(CURRENT);
  ANSWER(range_enqueue(ADDRESS(at), nbytes, device, stream));
}

EXPORT CUresult cuMemAdvise(CUdeviceptr at, size_t nbytes, CUmem_advise advice, CUdevice device) {
  ENTER(CURRENT);
  block *it = block_of(ADDRESS(at));
  if (it == NULL || it->kind != MANAGED_MEMORY || (int)advice < 1 || (int)advice > 6) {
    return (CUresult)E_VALUE;
  }
  if (nbytes == 0 || nbytes > it->nbytes) return (CUresult)E_VALUE;
  ANSWER(device != -1 && !is_device(device) ? E_DEVICE : OK);
}

/* ---- Copies ---------------------------------------------------------------------------------*/

EXPORT CUresult cuMemcpyAsync(CUdeviceptr dst, CUdeviceptr src, size_t nbytes, CUstream stream) {
  ENTER(CURRENT);
  copy2d copy = {ADDRESS(dst), ADDRESS(src), nbytes, nbytes, nbytes, 1, 4, 4, 0};
  ANSWER(copy_enqueue(&copy, stream));
}

#if !defined(VENDOR_HEADERS) || CUDA_VERSION >= 12080
static int apart(CUdeviceptr a, size_t a_nbytes, CUdeviceptr b, size_t b_nbytes) {
  return a + a_nbytes <= b || b + b_nbytes <= a;
}

/* All are checked before the first is enqueued; in any order. The manual rules out the legacy stream,
 * and says nothing of captures. */
EXPORT CUresult cuMemcpyBatchAsync(CUdeviceptr *dsts, CUdeviceptr *srcs, size_t *sizes, size_t count,
                                   CUmemcpyAttributes *attributes, size_t *firsts, size_t n, size_t *failed,
                                   CUstream stream) {
  ENTER(CURRENT);
  int capturing = 0, code = OK;
  if (failed == NULL || dsts == NULL || srcs == NULL || sizes == NULL || count == 0) return (CUresult)E_VALUE;
  if (self.garbage) garbage(&self, failed, sizeof *failed);
  else *failed = SIZE_MAX;
  if (attributes == NULL || firsts == NULL || n == 0 || n > count || firsts[0] != 0) return (CUresult)E_VALUE;
  for (size_t i = 0; i < n; ++i) {
    if ((int)attributes[i].srcAccessOrder < 1 || (int)attributes[i].srcAccessOrder > 3) return (CUresult)E_VALUE;
    if (i > 0 && (firsts[i] <= firsts[i - 1] || firsts[i] >= count)) return (CUresult)E_VALUE;
    if ((int)attributes[i].srcAccessOrder != 1) violation("a batch reads its sources out of the stream's order");
  }
  if ((uintptr_t)stream <= 1) {
    violation("a batch of copies on the legacy stream");
    return (CUresult)E_VALUE;
  }
  code = stream_capturing(stream, &capturing);
  if (code == OK && capturing) violation("a batch of copies is captured");
  for (size_t i = 0; code == OK && i < count; ++i) {
    copy2d copy = {ADDRESS(dsts[i]), ADDRESS(srcs[i]), sizes[i], sizes[i], sizes[i], 1, 4, 4, 0};
    code = copy_check(&copy, stream);
    if (code != OK && !self.garbage) *failed = i;
    for (size_t k = 0; k < count; ++k) {
      if (apart(dsts[i], sizes[i], srcs[k], sizes[k]) && (k == i || apart(dsts[i], sizes[i], dsts[k], sizes[k]))) continue;
      violation("copies of one batch depend on one another");
    }
  }
  for (size_t i = 0, from = chance((unsigned)count); code == OK && i < count; ++i) {
    size_t k = (from + count - i) % count;
    copy2d copy = {ADDRESS(dsts[k]), ADDRESS(srcs[k]), sizes[k], sizes[k], sizes[k], 1, 4, 4, 0};
    code = copy_enqueue(&copy, stream);
  }
  ANSWER(code);
}
#endif

/* Memory of a context, or of its device's pools, and not host memory. */
static int peer_operand(const void *address, CUcontext whose) {
  context *owner = context_of(whose);
  block *it = block_of(address);
  if (owner == NULL) return E_CONTEXT;
  if (it == NULL || it->kind == PINNED || it->kind == REGISTERED) return E_VALUE;
  if (it->kind == DEVICE_MEMORY && it->device != owner->device) {
    violation("a peer copy names the wrong context for an address");
    return E_VALUE;
  }
  return OK;
}

static int peer_copy(copy2d *copy, CUcontext to, CUcontext from, CUstream stream) {
  int code = copy->width == 0 ? OK : peer_operand(copy->dst, to);
  if (code == OK && copy->width != 0) code = peer_operand(copy->src, from);
  copy->peer = 1;
  return code != OK ? code : copy_enqueue(copy, stream);
}

EXPORT CUresult cuMemcpyPeerAsync(CUdeviceptr dst, CUcontext dst_context, CUdeviceptr src,
                                  CUcontext src_context, size_t nbytes, CUstream stream) {
  ENTER(CURRENT);
  copy2d copy = {ADDRESS(dst), ADDRESS(src), nbytes, nbytes, nbytes, 1, 4, 4, 1};
  ANSWER(peer_copy(&copy, dst_context, src_context, stream));
}

/* One layer, of device memory. */
EXPORT CUresult cuMemcpy3DPeerAsync(const CUDA_MEMCPY3D_PEER *given, CUstream stream) {
  ENTER(CURRENT);
  if (given == NULL || given->Depth != 1) return (CUresult)E_VALUE;
  if ((int)given->srcMemoryType != 2 || (int)given->dstMemoryType != 2) return (CUresult)E_VALUE;
  if (given->srcXInBytes || given->srcY || given->srcZ || given->srcLOD || given->dstXInBytes ||
      given->dstY || given->dstZ || given->dstLOD || given->srcHeight < given->Height ||
      given->dstHeight < given->Height) {
    return (CUresult)E_VALUE;
  }
  copy2d copy = {ADDRESS(given->dstDevice), ADDRESS(given->srcDevice), given->dstPitch,
                 given->srcPitch, given->WidthInBytes, given->Height, 2, 2, 1};
  ANSWER(peer_copy(&copy, given->dstContext, given->srcContext, stream));
}

EXPORT CUresult cuMemcpy2DAsync_v2(const CUDA_MEMCPY2D *given, CUstream stream) {
  ENTER(CURRENT);
  if (given == NULL) return (CUresult)E_VALUE;
  copy2d copy;
  copy.peer = 0;
  copy.width = given->WidthInBytes;
  copy.height = given->Height;
  copy.src_pitch = given->srcPitch;
  copy.dst_pitch = given->dstPitch;
  copy.src_kind = (int)given->srcMemoryType;
  copy.dst_kind = (int)given->dstMemoryType;
  if (copy.src_kind < 1 || copy.src_kind > 4 || copy.src_kind == 3 || copy.dst_kind < 1 ||
      copy.dst_kind > 4 || copy.dst_kind == 3) {
    return (CUresult)E_VALUE;
  }
  copy.src = copy.src_kind == 1 ? given->srcHost : ADDRESS(given->srcDevice);
  copy.dst = copy.dst_kind == 1 ? given->dstHost : ADDRESS(given->dstDevice);
  copy.src += given->srcY * given->srcPitch + given->srcXInBytes;
  copy.dst += given->dstY * given->dstPitch + given->dstXInBytes;
  ANSWER(copy_enqueue(&copy, stream));
}

EXPORT CUresult cuMemsetD8Async(CUdeviceptr dst, unsigned char value, size_t nbytes,
                                CUstream stream) {
  ENTER(CURRENT);
  ANSWER(fill_enqueue(ADDRESS(dst), value, nbytes, stream));
}

/* ---- Streams and events ---------------------------------------------------------------------*/

EXPORT CUresult cuStreamCreate(CUstream *out, unsigned int flags) {
  ENTER(CURRENT);
  OUTPUT(out);
  ANSWER(stream_new(current(), flags, (void **)out));
}

EXPORT CUresult cuStreamDestroy_v2(CUstream stream) {
  ENTER(CURRENT | RELEASES);
  ANSWER(stream_destroy(stream));
}

/* For any stream: during a capture neither waits nor queries are permitted. */
EXPORT CUresult cuStreamSynchronize(CUstream stream) {
  ENTER(CURRENT | RELEASES | UNSAFE);
  ANSWER(stream_sync(stream));
}

EXPORT CUresult cuStreamQuery(CUstream stream) {
  ENTER(CURRENT | UNSAFE);
  ANSWER(stream_query(stream));
}

EXPORT CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned int flags) {
  ENTER(CURRENT);
  ANSWER(flags > 1 ? E_VALUE : stream_wait(stream, event));
}

EXPORT CUresult cuStreamIsCapturing(CUstream stream, CUstreamCaptureStatus *out) {
  ENTER(CURRENT);
  OUTPUT(out);
  int status = 0, code = stream_capturing(stream, &status);
  *out = (CUstreamCaptureStatus)status;
  ANSWER(code);
}

EXPORT CUresult cuStreamGetCtx(CUstream stream, CUcontext *out) {
  ENTER(CURRENT | KEEPS);
  OUTPUT(out);
  context *owner = NULL;
  int code = stream_context(stream, &owner);
  *out = context_handle(owner);
  ANSWER(code);
}

EXPORT CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode *mode) {
  ENTER(KEEPS);
  if (mode == NULL) return (CUresult)E_VALUE;
  int value = (int)*mode, code = capture_exchange(&value);
  *mode = (CUstreamCaptureMode)value;
  ANSWER(code);
}

EXPORT CUresult cuStreamBeginCapture_v2(CUstream stream, CUstreamCaptureMode mode) {
  ENTER(CURRENT);
  ANSWER(capture_begin(stream, (int)mode));
}

EXPORT CUresult cuStreamEndCapture(CUstream stream, CUgraph *out) {
  ENTER(CURRENT | RELEASES);
  OUTPUT(out);
  ANSWER(capture_end(stream, (void **)out));
}

/* An executable graph is the graph itself; destroying it does nothing. */
EXPORT CUresult cuGraphInstantiateWithFlags(CUgraphExec *out, CUgraph graph,
                                            unsigned long long flags) {
  ENTER(0);
  OUTPUT(out);
  (void)flags;
  *out = (CUgraphExec)(void *)graph;
  ANSWER(graph ? OK : E_VALUE);
}

EXPORT CUresult cuGraphLaunch(CUgraphExec graph, CUstream stream) {
  ENTER(CURRENT);
  ANSWER(graph_launch(graph, stream));
}

EXPORT CUresult cuGraphExecDestroy(CUgraphExec graph) {
  ENTER(RELEASES);
  ANSWER(graph ? OK : E_VALUE);
}

EXPORT CUresult cuGraphDestroy(CUgraph graph) {
  ENTER(RELEASES);
  ANSWER(graph_destroy(graph));
}

EXPORT CUresult cuEventCreate(CUevent *out, unsigned int flags) {
  ENTER(CURRENT);
  OUTPUT(out);
  ANSWER(flags > 7 ? E_VALUE : event_new(flags, (void **)out));
}

EXPORT CUresult cuEventDestroy_v2(CUevent event) {
  ENTER(RELEASES);
  ANSWER(event_destroy(event));
}

EXPORT CUresult cuEventRecord(CUevent event, CUstream stream) {
  ENTER(CURRENT);
  ANSWER(event_record(event, stream));
}

EXPORT CUresult cuEventQuery(CUevent event) {
  ENTER(CURRENT | UNSAFE);
  ANSWER(event_query(event));
}

EXPORT CUresult cuEventSynchronize(CUevent event) {
  ENTER(CURRENT | UNSAFE | RELEASES);
  ANSWER(event_sync(event));
}

/* ---- Modules and kernels --------------------------------------------------------------------*/

/* Data that is no image is rejected before any other check. */
EXPORT CUresult cuModuleLoadData(CUmodule *out, const void *image) {
  ENTER(CURRENT);
  OUTPUT(out);
  int code = image ? image_check((const char *)image) : OK;
  if (code == OK) code = capture_forbids();
  ANSWER(code == OK ? module_new(image, (void **)out) : code);
}

EXPORT CUresult cuModuleUnload(CUmodule module) {
  ENTER(CURRENT | RELEASES | UNSAFE);
  ANSWER(module_destroy(module));
}

EXPORT CUresult cuModuleGetFunction(CUfunction *out, CUmodule module, const char *name) {
  ENTER(CURRENT);
  OUTPUT(out);
  ANSWER(module_function(module, name, (void **)out));
}

EXPORT CUresult cuLaunchKernel(CUfunction kernel, unsigned int gx, unsigned int gy, unsigned int gz,
                               unsigned int bx, unsigned int by, unsigned int bz,
                               unsigned int shared_bytes, CUstream stream, void **parameters,
                               void **extra) {
  ENTER(CURRENT);
  const unsigned size[6] = {gx, gy, gz, bx, by, bz};
  if (shared_bytes > 49152 || extra != NULL) return (CUresult)E_VALUE;
  ANSWER(launch_enqueue(kernel, size, stream, parameters));
}
