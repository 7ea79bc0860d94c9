/* Errors of a library that was built without a backend: those of any device kind without a backend,
 * with the remedy. DLRS_NO_CUDA and DLRS_NO_ROCM give the missing ones, as its CMake targets and
 * pkg-config define them. */
#include "harness.h"

/* A call that needs a backend for the device. */
typedef dlrs_status (*call)(DLDevice device);

static dlrs_status counts(DLDevice device) {
  int32_t count;
  return dlrs_device_count(device.device_type, &count, ERR);
}
static dlrs_status allocates(DLDevice device) {
  void *out;
  return dlrs_mem_alloc(device, 64, 0, NULL, &out, ERR);
}
static dlrs_status sets_a_path(DLDevice device) {
  return dlrs_driver_path_set(device.device_type, NULL, ERR);
}
static dlrs_status makes_a_stream(DLDevice device) {
  void *out;
  return dlrs_stream_create(device, &out, ERR);
}
static dlrs_status makes_a_tensor(DLDevice device) {
  const int64_t shape[] = {2, 3};
  DLManagedTensorVersioned *out;
  return dlrs_tensor_new(shape, 2, F32, device, NULL, &out, ERR);
}
static dlrs_status moves(DLDevice device) {
  t_tensor src;
  DLManagedTensorVersioned *out;
  t_make(&src);
  return dlrs_to_device(&src.managed, device, 0, NULL, &out, ERR);
}
static dlrs_status copies_from(DLDevice device) {
  t_tensor src, dst;
  t_make(&src);
  t_make(&dst);
  src.managed.dl_tensor.device = device;
  return dlrs_copy(&src.managed, &dst.managed, NULL, ERR);
}

static const struct {
  const char *text;
  call call;
} calls[] = {{"dlrs_device_count()", counts},         {"dlrs_mem_alloc()", allocates},
             {"dlrs_driver_path_set()", sets_a_path}, {"dlrs_stream_create()", makes_a_stream},
             {"dlrs_tensor_new()", makes_a_tensor},   {"dlrs_to_device()", moves},
             {"dlrs_copy()", copies_from}};

static int refused(size_t which, DLDevice device) {
  const dlrs_status got = (t_before(), calls[which].call(device));
  return t_refused(__FILE__, __LINE__, calls[which].text, got, DLRS_DEVICE_TYPE, ANY, ANY, -1);
}

/* All fail with these words, except that the host reads pinned memory directly. */
static void left_out(int32_t device_type, const char *words, const char *remedy) {
  size_t i;
  for (i = 0; i < sizeof calls / sizeof *calls; i++) {
    if (calls[i].call == copies_from && device_type != kDLCUDA && device_type != kDLROCM) continue;
    if (!refused(i, t_device(device_type, 0))) continue;
    if (!CHECK(strstr(t_error.message, words) != NULL)) printf("%s\n", t_error.message);
    CHECK(strstr(t_error.message + t_error.hint_start, remedy) != NULL);
    EQUAL(t_error.value, device_type);
  }
}

static int32_t count_one(void *context, int32_t device_type, int32_t *out, dlrs_fault *fault) {
  (void)context, (void)device_type, (void)fault;
  *out = 1;
  return DLRS_OK;
}
static int32_t copy_none(void *context, DLDevice device, const dlrs_byte_plan *plan, void *stream,
                         dlrs_fault *fault) {
  (void)context, (void)device, (void)plan, (void)stream, (void)fault;
  return DLRS_OK;
}

/* The backend that a message names can be set, and works. */
static void can_be_served(int32_t device_type) {
  static dlrs_backend backend; /* stored by the library */
  int32_t count = 0;
  backend.struct_size = sizeof backend;
  backend.device_count = count_one;
  backend.copy = copy_none;
  WORKS(dlrs_backend_set(device_type, &backend, NULL, ERR));
  WORKS(dlrs_device_count(device_type, &count, ERR));
  EQUAL(count, 1);
  WORKS(dlrs_backend_set(device_type, NULL, NULL, ERR));
}

int main(void) {
  static const int32_t cuda[] = {kDLCUDA, kDLCUDAHost, kDLCUDAManaged};
  static const int32_t rocm[] = {kDLROCM, kDLROCMHost};
  size_t i;
  for (i = 0; i < 3; i++) {
#ifdef DLRS_NO_CUDA
    left_out(cuda[i], "was built without CUDA", "Build it with the feature cuda, ");
    can_be_served(cuda[i]);
#else
    CHECK(counts(t_device(cuda[i], 0)) != DLRS_DEVICE_TYPE);
#endif
  }
  for (i = 0; i < 2; i++) {
#ifdef DLRS_NO_ROCM
    left_out(rocm[i], "was built without ROCm", "Build it with the feature rocm, ");
    can_be_served(rocm[i]);
#else
    CHECK(counts(t_device(rocm[i], 0)) != DLRS_DEVICE_TYPE);
#endif
  }
  /* For another kind nothing was left out. */
  refused(0, t_device(kDLMetal, 0));
  CHECK(strstr(t_error.message, "no backend serves this kind of device") != NULL);
  return t_close();
}
