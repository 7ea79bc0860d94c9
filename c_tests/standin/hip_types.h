/* HIP's types that driver.c needs; left out when it is checked against AMD's headers
 * (-DVENDOR_HEADERS), which must then accept every definition. */
#ifndef C_TESTS_STANDIN_HIP_TYPES_H_
#define C_TESTS_STANDIN_HIP_TYPES_H_

#include <stddef.h>

typedef int hipError_t, hipMemcpyKind;
typedef int hipStreamCaptureStatus, hipStreamCaptureMode, hiprtcResult;
typedef struct ihipStream_t *hipStream_t;
typedef struct ihipEvent_t *hipEvent_t;
typedef struct ihipModule_t *hipModule_t;
typedef struct ihipModuleSymbol_t *hipFunction_t;
typedef struct ihipGraph *hipGraph_t;
typedef struct hipGraphExec *hipGraphExec_t;
typedef struct hipGraphNode *hipGraphNode_t;
typedef struct _hiprtcProgram *hiprtcProgram;
typedef void *hipDeviceptr_t;
typedef void (*hipHostFn_t)(void *);

typedef struct hipPointerAttribute_t {
#if STANDIN_HIP >= 6
  int type;
#else
  int memoryType;
#endif
  int device;
  void *devicePointer, *hostPointer;
  int isManaged;
  unsigned allocationFlags;
} hipPointerAttribute_t;

#endif
