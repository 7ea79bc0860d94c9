/* Devices and their memory without a driver; with one: c_tests/gpu. */
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
  t_tensor host;
  t_make(&host);
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
  /* Twice, and without an error carrier. */
  EQUAL(dlrs_device_count(kDLCUDA, &count, NULL), missing);
  EQUAL(dlrs_mem_alloc(gpu, 64, 0, NULL, &data, NULL), missing);
  t_unwatch();
  /* The CPU still works. */
  WORKS(dlrs_clone(&host.managed, CPU, NULL, &out, ERR));
  CHECK(memcmp(out->dl_tensor.data, host.values, sizeof host.values) == 0);
  dlrs_release(out);
}

/* D06, K30: devices without a backend. */
static void unserved(void) {
  static const int32_t types[] = {kDLOpenCL, kDLVulkan, kDLMetal, kDLVPI, kDLExtDev,
                                  kDLWebGPU, kDLHexagon, kDLMAIA, kDLTrn};
  t_tensor src, dst;
  DLManagedTensorVersioned *out;
  void *data;
  int32_t count;
  size_t i;
  t_result(&out);
  t_result(&data);
  for (i = 0; i < sizeof types / sizeof *types; ++i) {
    DLDevice device = t_device(types[i], 0);
    t_make(&src);
    t_make(&dst);
    REJECTS(DEVICE_TYPE, 1, ANY, -1, dlrs_device_count(types[i], &count, ERR));
    REJECTS(DEVICE_TYPE, 1, ANY, -1, dlrs_mem_alloc(device, 64, 0, NULL, &data, ERR));
    REJECTS(DEVICE_TYPE, 2, ANY, ANY, dlrs_clone(&src.managed, device, NULL, &out, ERR));
    src.managed.dl_tensor.device = device;
    REJECTS(DEVICE_TYPE, ANY, ANY, ANY, dlrs_copy(&src.managed, &dst.managed, NULL, ERR));
    REJECTS(DEVICE_TYPE, ANY, ANY, ANY, dlrs_copy(&dst.managed, &src.managed, NULL, ERR));
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
  REJECTS(NULL_ARG, 3, ANY, -1, dlrs_pointer_device(kDLCUDA, memory, NULL, ERR));
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

int main(void) {
  gpu = t_device(kDLCUDA, 0);
  missing = DLRS_DRV_MISSING;
  nulls();
  unserved();
  host();
  if (driver_is_absent()) absent();
  return t_close();
}
