/* The driver's types that driver.c needs; left out when it is checked against NVIDIA's cuda.h
 * (-DVENDOR_HEADERS), which must then accept every definition. */
#ifndef C_TESTS_STANDIN_CUDA_TYPES_H_
#define C_TESTS_STANDIN_CUDA_TYPES_H_

#include <stddef.h>

typedef int CUresult;
typedef int CUdevice;
typedef unsigned long long CUdeviceptr;
typedef struct CUctx_st *CUcontext;
typedef struct CUgreenCtx_st *CUgreenCtx;
typedef struct CUdevResourceDesc_st *CUdevResourceDesc;
typedef struct CUstream_st *CUstream;
typedef struct CUevent_st *CUevent;
typedef struct CUmod_st *CUmodule;
typedef struct CUfunc_st *CUfunction;
typedef struct CUgraph_st *CUgraph;
typedef struct CUgraphExec_st *CUgraphExec;
typedef struct CUarray_st *CUarray;
typedef int CUdevice_attribute, CUpointer_attribute, CUmemorytype;
typedef int CUstreamCaptureStatus, CUstreamCaptureMode;
typedef void (*CUhostFn)(void *);

typedef struct CUDA_MEMCPY2D_st {
  size_t srcXInBytes, srcY;
  CUmemorytype srcMemoryType;
  const void *srcHost;
  CUdeviceptr srcDevice;
  CUarray srcArray;
  size_t srcPitch;
  size_t dstXInBytes, dstY;
  CUmemorytype dstMemoryType;
  void *dstHost;
  CUdeviceptr dstDevice;
  CUarray dstArray;
  size_t dstPitch;
  size_t WidthInBytes, Height;
} CUDA_MEMCPY2D;

typedef struct CUmemLocation_st {
  int type, id;
} CUmemLocation;

typedef struct CUmemcpyAttributes_st {
  int srcAccessOrder;
  CUmemLocation srcLocHint, dstLocHint;
  unsigned int flags;
} CUmemcpyAttributes;

typedef struct CUDA_MEMCPY3D_PEER_st {
  size_t srcXInBytes, srcY, srcZ, srcLOD;
  CUmemorytype srcMemoryType;
  const void *srcHost;
  CUdeviceptr srcDevice;
  CUarray srcArray;
  CUcontext srcContext;
  size_t srcPitch, srcHeight;
  size_t dstXInBytes, dstY, dstZ, dstLOD;
  CUmemorytype dstMemoryType;
  void *dstHost;
  CUdeviceptr dstDevice;
  CUarray dstArray;
  CUcontext dstContext;
  size_t dstPitch, dstHeight;
  size_t WidthInBytes, Height, Depth;
} CUDA_MEMCPY3D_PEER;

/* The functions that tests call: name and parameters. */
#define CUDA_FUNCTIONS(X)                                                                                          \
  X(cuInit, (unsigned)) X(cuDriverGetVersion, (int *)) X(cuDeviceGetCount, (int *))                                \
  X(cuDeviceGet, (CUdevice *, int)) X(cuDeviceGetAttribute, (int *, int, CUdevice))                                \
  X(cuDevicePrimaryCtxRetain, (CUcontext *, CUdevice)) X(cuDevicePrimaryCtxRelease_v2, (CUdevice))                 \
  X(cuDevicePrimaryCtxGetState, (CUdevice, unsigned *, int *)) X(cuCtxGetCurrent, (CUcontext *))                   \
  X(cuCtxSetCurrent, (CUcontext)) X(cuCtxPushCurrent_v2, (CUcontext)) X(cuCtxPopCurrent_v2, (CUcontext *))         \
  X(cuCtxGetDevice, (CUdevice *)) X(cuCtxSynchronize, (void))                                                      \
  X(cuCtxCreate_v2, (CUcontext *, unsigned, CUdevice)) X(cuCtxDestroy_v2, (CUcontext))                             \
  X(cuMemAlloc_v2, (CUdeviceptr *, size_t)) X(cuMemFree_v2, (CUdeviceptr))                                         \
  X(cuMemAllocAsync, (CUdeviceptr *, size_t, CUstream)) X(cuMemFreeAsync, (CUdeviceptr, CUstream))                 \
  X(cuMemHostAlloc, (void **, size_t, unsigned)) X(cuMemFreeHost, (void *))                                        \
  X(cuMemAllocManaged, (CUdeviceptr *, size_t, unsigned)) X(cuMemHostRegister_v2, (void *, size_t, unsigned))      \
  X(cuMemHostUnregister, (void *)) X(cuMemGetInfo_v2, (size_t *, size_t *))                                        \
  X(cuMemGetAddressRange_v2, (CUdeviceptr *, size_t *, CUdeviceptr))                                               \
  X(cuPointerGetAttribute, (void *, int, CUdeviceptr))                                                             \
  X(cuMemcpyAsync, (CUdeviceptr, CUdeviceptr, size_t, CUstream))                                                   \
  X(cuMemcpy2DAsync_v2, (const CUDA_MEMCPY2D *, CUstream))                                                         \
  X(cuMemcpyPeerAsync, (CUdeviceptr, CUcontext, CUdeviceptr, CUcontext, size_t, CUstream))                         \
  X(cuMemsetD8Async, (CUdeviceptr, unsigned char, size_t, CUstream)) X(cuStreamCreate, (CUstream *, unsigned))     \
  X(cuStreamDestroy_v2, (CUstream)) X(cuStreamSynchronize, (CUstream)) X(cuStreamQuery, (CUstream))                \
  X(cuStreamWaitEvent, (CUstream, CUevent, unsigned)) X(cuStreamIsCapturing, (CUstream, int *))                    \
  X(cuStreamGetCtx, (CUstream, CUcontext *)) X(cuStreamBeginCapture_v2, (CUstream, int))                           \
  X(cuStreamEndCapture, (CUstream, CUgraph *)) X(cuThreadExchangeStreamCaptureMode, (int *))                       \
  X(cuGraphInstantiateWithFlags, (CUgraphExec *, CUgraph, unsigned long long))                                     \
  X(cuGraphLaunch, (CUgraphExec, CUstream)) X(cuGraphExecDestroy, (CUgraphExec)) X(cuGraphDestroy, (CUgraph))      \
  X(cuEventCreate, (CUevent *, unsigned)) X(cuEventDestroy_v2, (CUevent)) X(cuEventRecord, (CUevent, CUstream))    \
  X(cuEventQuery, (CUevent)) X(cuEventSynchronize, (CUevent)) X(cuModuleLoadData, (CUmodule *, const void *))      \
  X(cuModuleUnload, (CUmodule)) X(cuModuleGetFunction, (CUfunction *, CUmodule, const char *))                     \
  X(cuLaunchKernel, (CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, CUstream, void **, void **))\
  X(cuDeviceCanAccessPeer, (int *, CUdevice, CUdevice))               \
  X(cuGreenCtxCreate, (CUgreenCtx *, CUdevResourceDesc, CUdevice, unsigned)) X(cuGreenCtxDestroy, (CUgreenCtx))    \
  X(cuCtxFromGreenCtx, (CUcontext *, CUgreenCtx))                                                                  \
  X(cuGreenCtxStreamCreate, (CUstream *, CUgreenCtx, unsigned, int))                                               \
  X(cuStreamGetGreenCtx, (CUstream, CUgreenCtx *)) X(cuStreamGetDevice, (CUstream, CUdevice *))

#endif
