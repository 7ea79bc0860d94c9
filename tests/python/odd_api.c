/* An exchange API that fails on request: each of its functions may return any value, with an
   exception set or without. Loaded into a Python process, it finds Python's functions there. */
#include <dlpack/dlpack.h>
#include <stddef.h>

extern void PyErr_SetString(void *kind, const char *message);
extern void *PyErr_Occurred(void);
extern void *PyExc_KeyError;

/* The results of the two functions, whether there is a tensor, and which sets an exception. */
struct {
  int export_answer, tensor, stream_answer, export_raises, stream_raises, deleter_raises;
} odd;
/* Counts: the deleter's calls, and calls while an exception was already set. */
int deleted, pending;

static void look(int raises) {
  pending += PyErr_Occurred() != NULL;
  if (raises) PyErr_SetString(PyExc_KeyError, "odd");
}

static void delete_it(DLManagedTensorVersioned *tensor) {
  (void)tensor;
  ++deleted;
  look(odd.deleter_raises);
}

static int64_t shape[1] = {3}, strides[1] = {1};
static double data[3];
static DLManagedTensorVersioned tensor;

static int export_it(void *object, DLManagedTensorVersioned **out) {
  (void)object;
  look(odd.export_raises);
  tensor.version.major = DLPACK_MAJOR_VERSION;
  tensor.version.minor = DLPACK_MINOR_VERSION;
  tensor.deleter = delete_it;
  tensor.dl_tensor.data = data;
  tensor.dl_tensor.device.device_type = kDLCUDA;
  tensor.dl_tensor.ndim = 1;
  tensor.dl_tensor.dtype.code = kDLFloat;
  tensor.dl_tensor.dtype.bits = 64;
  tensor.dl_tensor.dtype.lanes = 1;
  tensor.dl_tensor.shape = shape;
  tensor.dl_tensor.strides = strides;
  *out = odd.tensor ? &tensor : NULL;
  return odd.export_answer;
}

static int stream(DLDeviceType type, int32_t id, void **out) {
  (void)type, (void)id;
  look(odd.stream_raises);
  *out = NULL;
  return odd.stream_answer;
}

/* A table must be complete. */
static int allocate(DLTensor *prototype, DLManagedTensorVersioned **out, void *context,
                    void (*set_error)(void *context, const char *kind, const char *message)) {
  (void)prototype, (void)out, (void)context, (void)set_error;
  return -1;
}

static int put(DLManagedTensorVersioned *given, void **out) {
  (void)given, (void)out;
  return -1;
}

DLPackExchangeAPI api = {
  {{DLPACK_MAJOR_VERSION, DLPACK_MINOR_VERSION}, NULL}, allocate, export_it, put, NULL, stream};
