/* HIP's functions that the library and its tests use; -DSTANDIN_HIP=5, 6 or 7. */
#include "core.h"

#ifndef STANDIN_HIP
#define STANDIN_HIP 6
#endif
#ifdef VENDOR_HEADERS
#define __HIP_PLATFORM_AMD__ 1
#include <hip/hip_runtime_api.h>
#include <hip/hiprtc.h>
#else
#include "hip_types.h"
#endif
#if STANDIN_HIP >= 6
#define MEMORY_TYPE type
#else
#define MEMORY_TYPE memoryType
#endif

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int is_hip = STANDIN_HIP;

#define EXPORT __attribute__((visibility("default")))
#define ENTER(like) CALL(hipError_t, like)
#define ANSWER(code) DONE(hipError_t, code)
#define OUTPUT(out) OUT(hipError_t, out)

/* ---- The runtime and its devices ------------------------------------------------------------*/

EXPORT hipError_t hipInit(unsigned int flags) {
  ENTER(EARLY);
  ANSWER(flags ? E_VALUE : core_init());
}

EXPORT hipError_t hipDriverGetVersion(int *out) {
  ENTER(EARLY);
  OUTPUT(out);
  *out = set.version;
  ANSWER(OK);
}

EXPORT hipError_t hipRuntimeGetVersion(int *out) {
  ENTER(EARLY);
  OUTPUT(out);
  *out = set.version;
  ANSWER(OK);
}

EXPORT hipError_t hipGetDeviceCount(int *out) {
  ENTER(EARLY | KEEPS);
  OUTPUT(out);
  *out = set.devices;
  ANSWER(set.devices ? core_init() : E_NO_DEVICE);
}

EXPORT hipError_t hipGetDevice(int *out) {
  ENTER(KEEPS);
  OUTPUT(out);
  *out = device_get();
  ANSWER(OK);
}

EXPORT hipError_t hipSetDevice(int device) {
  ENTER(KEEPS);
  ANSWER(device_set(device));
}

/* HIP's attributes, indexed by CUDA's numbers. */
EXPORT hipError_t hipDeviceGetAttribute(int *out, hipDeviceAttribute_t which, int device) {
  static const int same[][2] = {{56, 1}, {26, 2}, {27, 3}, {28, 4}, {29, 5}, {30, 6}, {31, 7},
                                {74, 8}, {87, 10}, {58, 11}, {63, 16}, {16, 18}, {3, 19},
                                {2, 40}, {85, 41}, {23, 75}, {61, 76}, {24, 83}, {65, 88},
                                {9, 89}, {4, 91}, {88, 115}};
  ENTER(0);
  OUTPUT(out);
  int code = is_device(device) ? E_VALUE : E_DEVICE;
  for (size_t i = 0; i < sizeof same / sizeof *same; ++i) {
    if (same[i][0] == (int)which) code = attribute(out, same[i][1], device);
  }
  ANSWER(code);
}

/* Each device is of another architecture. */
static const char *gpu_name(int device) {
  return device % 2 ? "gfx1100" : "gfx90a:sramecc+:xnack-";
}

#ifndef VENDOR_HEADERS
/* hipDeviceProp_t: a name first, the architecture's name somewhere behind it. */
static hipError_t properties(void *out, int device) {
  if (out == NULL) return (hipError_t)E_VALUE;
  if (!is_device(device)) return (hipError_t)E_DEVICE;
  memset(out, 0, 792);
  strcpy(out, "stand-in, not hardware (gfx0)");
  strcpy((char *)out + (STANDIN_HIP < 6 ? 396 : 1160), gpu_name(device));
  return (hipError_t)OK;
}

EXPORT hipError_t hipGetDeviceProperties(void *out, int device) {
  ENTER(0);
  ANSWER(properties(out, device));
}

#if STANDIN_HIP >= 6
EXPORT hipError_t hipGetDevicePropertiesR0600(void *out, int device) {
  ENTER(0);
  ANSWER(properties(out, device));
}
#endif
#endif

EXPORT hipError_t hipDeviceCanAccessPeer(int *out, int device, int peer) {
  ENTER(0);
  OUTPUT(out);
  if (!is_device(device) || !is_device(peer)) return (hipError_t)E_DEVICE;
  *out = peer_can(device, peer);
  ANSWER(OK);
}

EXPORT hipError_t hipDeviceEnablePeerAccess(int peer, unsigned int flags) {
  ENTER(CURRENT);
  ANSWER(flags ? E_VALUE : peer_enable(current(), peer));
}

EXPORT hipError_t hipDeviceDisablePeerAccess(int peer) {
  ENTER(CURRENT | RELEASES);
  ANSWER(peer_disable(current(), peer));
}

EXPORT hipError_t hipDeviceSynchronize(void) {
  ENTER(CURRENT | RELEASES);
  ANSWER(context_sync(current()));
}

/* Not a call that a test counts. */
EXPORT hipError_t hipGetLastError(void) {
  int code = last_error;
  last_error = OK;
  return (hipError_t)code;
}

EXPORT const char *hipGetErrorName(hipError_t code) {
  static const struct {
    int code;
    const char *name;
  } names[] = {{0, "hipSuccess"}, {1, "hipErrorInvalidValue"}, {2, "hipErrorOutOfMemory"},
               {3, "hipErrorNotInitialized"}, {4, "hipErrorDeinitialized"},
               {100, "hipErrorNoDevice"}, {101, "hipErrorInvalidDevice"},
               {200, "hipErrorInvalidImage"}, {201, "hipErrorInvalidContext"},
               {217, "hipErrorPeerAccessUnsupported"}, {400, "hipErrorInvalidHandle"},
               {500, "hipErrorNotFound"}, {600, "hipErrorNotReady"},
               {700, "hipErrorIllegalAddress"}, {704, "hipErrorPeerAccessAlreadyEnabled"},
               {705, "hipErrorPeerAccessNotEnabled"}, {709, "hipErrorContextIsDestroyed"},
               {719, "hipErrorLaunchFailure"}, {801, "hipErrorNotSupported"},
               {900, "hipErrorStreamCaptureUnsupported"},
               {901, "hipErrorStreamCaptureInvalidated"}};
  for (size_t i = 0; i < sizeof names / sizeof *names; ++i) {
    if (names[i].code == (int)code) return names[i].name;
  }
  return "hipErrorUnknown";
}

/* ---- Memory ---------------------------------------------------------------------------------*/

EXPORT hipError_t hipMalloc(void **out, size_t nbytes) {
  ENTER(CURRENT | UNSAFE);
  OUTPUT(out);
  ANSWER(memory_new(DEVICE_MEMORY, nbytes, device_get(), out));
}

EXPORT hipError_t hipFree(void *address) {
  ENTER(CURRENT | RELEASES | UNSAFE);
  ANSWER(memory_free(address, 1 << DEVICE_MEMORY | 1 << MANAGED_MEMORY));
}

EXPORT hipError_t hipMallocAsync(void **out, size_t nbytes, hipStream_t stream) {
  ENTER(CURRENT);
  OUTPUT(out);
  *out = NULL;
  ANSWER(alloc_enqueue(nbytes, stream, out));
}

EXPORT hipError_t hipFreeAsync(void *address, hipStream_t stream) {
  ENTER(CURRENT | RELEASES);
  ANSWER(free_enqueue(address, stream));
}

EXPORT hipError_t hipHostMalloc(void **out, size_t nbytes, unsigned int flags) {
  ENTER(CURRENT | UNSAFE);
  OUTPUT(out);
  (void)flags;
  ANSWER(memory_new(PINNED, nbytes, device_get(), out));
}

EXPORT hipError_t hipHostFree(void *address) {
  ENTER(CURRENT | RELEASES | UNSAFE);
  ANSWER(memory_free(address, 1 << PINNED));
}

EXPORT hipError_t hipMallocManaged(void **out, size_t nbytes, unsigned int flags) {
  ENTER(CURRENT | UNSAFE);
  OUTPUT(out);
  if (flags < 1 || flags > 2) return (hipError_t)E_VALUE;
  if (!set.managed) return (hipError_t)E_NOT_SUPPORTED;
  ANSWER(memory_new(MANAGED_MEMORY, nbytes, device_get(), out));
}

EXPORT hipError_t hipHostRegister(void *address, size_t nbytes, unsigned int flags) {
  ENTER(CURRENT | UNSAFE);
  (void)flags;
  ANSWER(memory_register(address, nbytes));
}

EXPORT hipError_t hipHostUnregister(void *address) {
  ENTER(CURRENT | RELEASES | UNSAFE);
  ANSWER(memory_unregister(address));
}

EXPORT hipError_t hipMemGetInfo(size_t *out, size_t *total) {
  ENTER(CURRENT);
  OUTPUT(out);
  if (total == NULL) return (hipError_t)E_VALUE;
  *total = set.memory[device_get()];
  *out = *total - memory_used(device_get());
  ANSWER(OK);
}

EXPORT hipError_t hipMemGetAddressRange(hipDeviceptr_t *base, size_t *size, hipDeviceptr_t at) {
  ENTER(CURRENT);
  OUTPUT(base);
  block *it = block_of(at);
  if (it == NULL) return (hipError_t)E_NOT_FOUND;
  *base = it->address;
  if (size != NULL) *size = it->nbytes;
  ANSWER(OK);
}

/* hipMemoryType: in version 5 host 0, device 1; from 6 on unregistered 0, host 1, device 2,
 * managed 3. */
static int memory_type(const block *it) {
  int is_host = it->kind == PINNED || it->kind == REGISTERED;
  if (is_hip == 5) return is_host || it->kind == MANAGED_MEMORY ? 0 : 1;
  if (it->kind == MANAGED_MEMORY) return 3;
  return is_host ? 1 : 2;
}

EXPORT hipError_t hipPointerGetAttributes(hipPointerAttribute_t *out, const void *address) {
  ENTER(CURRENT);
  OUTPUT(out);
  block *it = block_of(address);
  if (it == NULL && !(set.unknown_is_ok && is_hip > 5)) ANSWER(E_VALUE);
  memset(out, 0, sizeof *out);
  out->device = -2; /* hipInvalidDeviceId */
  if (it != NULL) {
    out->MEMORY_TYPE = memory_type(it);
    out->device = it->device;
    out->devicePointer = (void *)(uintptr_t)address;
    if (it->alias != NULL) {
      out->devicePointer = it->alias + ((const unsigned char *)address - it->address);
    }
    if (it->kind != DEVICE_MEMORY) out->hostPointer = (void *)(uintptr_t)address;
    out->isManaged = it->kind == MANAGED_MEMORY;
  }
  ANSWER(OK);
}

EXPORT hipError_t hipMemPrefetchAsync(const void *at, size_t nbytes, int device,
                                      hipStream_t stream) {
  ENTER(CURRENT);
  ANSWER(range_enqueue(at, nbytes, device, stream));
}

EXPORT hipError_t hipMemAdvise(const void *at, size_t nbytes, hipMemoryAdvise advice, int device) {
  ENTER(CURRENT);
  block *it = block_of(at);
  if (it == NULL || it->kind != MANAGED_MEMORY || nbytes == 0 || nbytes > it->nbytes) {
    return (hipError_t)E_VALUE;
  }
  if ((int)advice < 1 || ((int)advice > 6 && (int)advice != 100 && (int)advice != 101)) {
    return (hipError_t)E_VALUE;
  }
  ANSWER(device != -1 && !is_device(device) ? E_DEVICE : OK);
}

/* ---- Copies ---------------------------------------------------------------------------------*/

/* Kinds: 0 host to host, 1 to device, 2 to host, 3 device to device, 4 determined by addresses. */
static int kinds(copy2d *copy, int kind) {
  static const int dst[] = {1, 4, 1, 4, 4}, src[] = {1, 1, 4, 4, 4};
  if (kind < 0 || kind > 4) return 21; /* hipErrorInvalidMemcpyDirection */
  copy->dst_kind = dst[kind];
  copy->src_kind = src[kind];
  return OK;
}

EXPORT hipError_t hipMemcpyAsync(void *dst, const void *src, size_t nbytes, hipMemcpyKind kind,
                                 hipStream_t stream) {
  ENTER(CURRENT);
  copy2d copy = {dst, src, nbytes, nbytes, nbytes, 1, 4, 4, 0};
  int code = kinds(&copy, (int)kind);
  ANSWER(code != OK ? code : copy_enqueue(&copy, stream));
}

EXPORT hipError_t hipMemcpy2DAsync(void *dst, size_t dst_pitch, const void *src, size_t src_pitch,
                                   size_t width, size_t height, hipMemcpyKind kind,
                                   hipStream_t stream) {
  ENTER(CURRENT);
  copy2d copy = {dst, src, dst_pitch, src_pitch, width, height, 4, 4, 0};
  int code = kinds(&copy, (int)kind);
  if (code == OK && (dst_pitch < width || src_pitch < width)) code = 12;
  ANSWER(code != OK ? code : copy_enqueue(&copy, stream));
}

EXPORT hipError_t hipMemcpyPeerAsync(void *dst, int dst_device, const void *src, int src_device,
                                     size_t nbytes, hipStream_t stream) {
  ENTER(CURRENT);
  block *into = block_of(dst), *out_of = block_of(src);
  copy2d copy = {dst, src, nbytes, nbytes, nbytes, 1, 4, 4, 1};
  if (!is_device(dst_device) || !is_device(src_device)) return (hipError_t)E_DEVICE;
  if ((into && into->kind == DEVICE_MEMORY && into->device != dst_device) ||
      (out_of && out_of->kind == DEVICE_MEMORY && out_of->device != src_device)) {
    violation("a peer copy names the wrong device for an address");
    return (hipError_t)E_VALUE;
  }
  ANSWER(copy_enqueue(&copy, stream));
}

EXPORT hipError_t hipMemsetAsync(void *dst, int value, size_t nbytes, hipStream_t stream) {
  ENTER(CURRENT);
  ANSWER(fill_enqueue(dst, value, nbytes, stream));
}

/* ---- Streams and events ---------------------------------------------------------------------*/

EXPORT hipError_t hipStreamCreateWithFlags(hipStream_t *out, unsigned int flags) {
  ENTER(CURRENT);
  OUTPUT(out);
  ANSWER(stream_new(current(), flags, (void **)out));
}

EXPORT hipError_t hipStreamDestroy(hipStream_t stream) {
  ENTER(CURRENT | RELEASES);
  ANSWER(stream_destroy(stream));
}

/* Unlike CUDA, HIP treats any wait for a stream as unsafe. */
EXPORT hipError_t hipStreamSynchronize(hipStream_t stream) {
  ENTER(CURRENT | RELEASES | UNSAFE);
  ANSWER(stream_sync(stream));
}

EXPORT hipError_t hipStreamQuery(hipStream_t stream) {
  ENTER(CURRENT | UNSAFE);
  ANSWER(stream_query(stream));
}

EXPORT hipError_t hipStreamWaitEvent(hipStream_t stream, hipEvent_t event, unsigned int flags) {
  ENTER(CURRENT);
  ANSWER(flags > 1 ? E_VALUE : stream_wait(stream, event));
}

EXPORT hipError_t hipStreamIsCapturing(hipStream_t stream, hipStreamCaptureStatus *out) {
  ENTER(CURRENT);
  OUTPUT(out);
  int status = 0, code = stream_capturing(stream, &status);
  *out = (hipStreamCaptureStatus)status;
  ANSWER(code);
}

#if STANDIN_HIP >= 6
EXPORT hipError_t hipStreamGetDevice(hipStream_t stream, int *out) {
  ENTER(CURRENT | KEEPS);
  OUTPUT(out);
  context *owner = NULL;
  int code = stream_context(stream, &owner);
  if (owner != NULL) *out = owner->device;
  ANSWER(code);
}
#endif

EXPORT hipError_t hipThreadExchangeStreamCaptureMode(hipStreamCaptureMode *mode) {
  ENTER(KEEPS);
  if (mode == NULL) return (hipError_t)E_VALUE;
  int value = (int)*mode, code = capture_exchange(&value);
  *mode = (hipStreamCaptureMode)value;
  ANSWER(code);
}

EXPORT hipError_t hipStreamBeginCapture(hipStream_t stream, hipStreamCaptureMode mode) {
  ENTER(CURRENT);
  ANSWER(capture_begin(stream, (int)mode));
}

EXPORT hipError_t hipStreamEndCapture(hipStream_t stream, hipGraph_t *out) {
  ENTER(CURRENT | RELEASES);
  OUTPUT(out);
  ANSWER(capture_end(stream, (void **)out));
}

/* An executable graph is the graph itself; destroying it does nothing. */
EXPORT hipError_t hipGraphInstantiate(hipGraphExec_t *out, hipGraph_t graph, hipGraphNode_t *node,
                                      char *log, size_t log_bytes) {
  ENTER(CURRENT);
  OUTPUT(out);
  (void)node;
  (void)log;
  (void)log_bytes;
  *out = (hipGraphExec_t)(void *)graph;
  ANSWER(graph ? OK : E_VALUE);
}

EXPORT hipError_t hipGraphLaunch(hipGraphExec_t graph, hipStream_t stream) {
  ENTER(CURRENT);
  ANSWER(graph_launch(graph, stream));
}

EXPORT hipError_t hipGraphExecDestroy(hipGraphExec_t graph) {
  ENTER(RELEASES);
  ANSWER(graph ? OK : E_VALUE);
}

EXPORT hipError_t hipGraphDestroy(hipGraph_t graph) {
  ENTER(RELEASES);
  ANSWER(graph_destroy(graph));
}

EXPORT hipError_t hipEventCreateWithFlags(hipEvent_t *out, unsigned flags) {
  ENTER(CURRENT);
  OUTPUT(out);
  ANSWER(event_new(flags, (void **)out));
}

EXPORT hipError_t hipEventDestroy(hipEvent_t event) {
  ENTER(RELEASES);
  ANSWER(event_destroy(event));
}

EXPORT hipError_t hipEventRecord(hipEvent_t event, hipStream_t stream) {
  ENTER(CURRENT);
  ANSWER(event_record(event, stream));
}

EXPORT hipError_t hipEventQuery(hipEvent_t event) {
  ENTER(CURRENT | UNSAFE);
  ANSWER(event_query(event));
}

EXPORT hipError_t hipEventSynchronize(hipEvent_t event) {
  ENTER(CURRENT | UNSAFE | RELEASES);
  ANSWER(event_sync(event));
}

/* ---- Modules and kernels --------------------------------------------------------------------*/

EXPORT hipError_t hipModuleLoadData(hipModule_t *out, const void *image) {
  ENTER(CURRENT | UNSAFE);
  OUTPUT(out);
  if (image == NULL) return (hipError_t)E_VALUE;
  char for_gpu[64];
  if (sscanf(image, "STANDIN-HIP %63s", for_gpu) != 1) return (hipError_t)E_IMAGE;
  if (strcmp(for_gpu, gpu_name(device_get())) != 0) return (hipError_t)209; /* no binary for it */
  ANSWER(module_new(strchr(image, '\n') + 1, (void **)out));
}

EXPORT hipError_t hipModuleUnload(hipModule_t module) {
  ENTER(CURRENT | RELEASES | UNSAFE);
  ANSWER(module_destroy(module));
}

EXPORT hipError_t hipModuleGetFunction(hipFunction_t *out, hipModule_t module, const char *name) {
  ENTER(CURRENT);
  OUTPUT(out);
  ANSWER(module_function(module, name, (void **)out));
}

EXPORT hipError_t hipModuleLaunchKernel(hipFunction_t kernel, unsigned int gx, unsigned int gy,
                                        unsigned int gz, unsigned int bx, unsigned int by,
                                        unsigned int bz, unsigned int shared_bytes,
                                        hipStream_t stream, void **parameters, void **extra) {
  ENTER(CURRENT);
  const unsigned size[6] = {gx, gy, gz, bx, by, bz};
  if (shared_bytes > 65536 || extra != NULL) return (hipError_t)E_VALUE;
  ANSWER(launch_enqueue(kernel, size, stream, parameters));
}

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
