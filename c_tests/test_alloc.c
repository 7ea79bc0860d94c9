/* New and wrapped tensors; the rest is section W of the catalogue. */
#include "harness.h"

static int64_t shape[2] = {2, 3};

static dlrs_alloc_options options_of(uint32_t align_bytes, uint64_t flags) {
  dlrs_alloc_options options = DLRS_INIT(dlrs_alloc_options);
  options.align_bytes = align_bytes;
  options.flags = flags;
  return options;
}

/* Properties of every tensor allocated here. */
static void is_fresh(const DLManagedTensorVersioned *out, uint64_t flags) {
  const DLTensor *tensor = &out->dl_tensor;
  EQUAL(out->version.major, DLPACK_MAJOR_VERSION);
  EQUAL(out->version.minor, DLPACK_MINOR_VERSION);
  CHECK(out->deleter != NULL && out->manager_ctx != NULL);
  EQUAL(out->flags, flags);
  CHECK(tensor->shape != shape && tensor->shape[0] == 2 && tensor->shape[1] == 3);
  CHECK(tensor->strides[0] == 3 && tensor->strides[1] == 1);
  EQUAL(tensor->byte_offset, 0);
  CHECK((uintptr_t)tensor->data % 256 == 0);
  EQUAL(dlrs_is_own(out), 1);
  EQUAL(dlrs_ref_count(out), 1);
  WORKS(dlrs_validate_managed(out, DLRS_LEVEL_STRICT, ERR));
}

static void makes(void) {
  DLManagedTensorVersioned *out;
  DLTensor prototype = t_describe(NULL, F32, 2, shape, NULL);
  dlrs_alloc_options options = options_of(1024, DLPACK_FLAG_BITMASK_IS_SUBBYTE_TYPE_PADDED);
  WORKS(dlrs_tensor_new(shape, 2, F32, CPU, NULL, &out, ERR));
  is_fresh(out, 0);
  memset(out->dl_tensor.data, 0x77, 24);
  dlrs_release(out);
  WORKS(dlrs_tensor_new_like(&prototype, NULL, &out, ERR));
  is_fresh(out, 0);
  dlrs_release(out);
  prototype.dtype = t_dtype(kDLFloat6_e2m3fn, 6, 1);
  WORKS(dlrs_tensor_new_like(&prototype, &options, &out, ERR));
  EQUAL(out->flags, DLPACK_FLAG_BITMASK_IS_SUBBYTE_TYPE_PADDED);
  CHECK((uintptr_t)out->dl_tensor.data % 1024 == 0);
  dlrs_release(out);
}

static void prototypes(void) {
  DLManagedTensorVersioned *out;
  DLTensor prototype = t_describe(NULL, F32, 2, shape, NULL);
  t_watch(&prototype, sizeof prototype);
  t_result(&out);
  prototype.device = t_device(kDLTrn, 0);
  REJECTS(DEVICE_TYPE, 1, ANY, -1, dlrs_tensor_new_like(&prototype, NULL, &out, ERR));
  prototype.device = CPU;
  prototype.dtype.lanes = 0;
  REJECTS(DTYPE_LANES, 1, DTYPE_LANES, -1, dlrs_tensor_new_like(&prototype, NULL, &out, ERR));
  CHECK(strncmp(t_error.message, "dlrs_tensor_new_like: prototype->dtype.lanes: ", 46) == 0);
  t_unwatch();
  EQUAL(dlrs_tensor_new(shape, 2, F32, CPU, NULL, NULL, NULL), DLRS_NULL_ARG);
  EQUAL(dlrs_tensor_wrap(NULL, 0, NULL, NULL, &out, NULL), DLRS_NULL_ARG);
  CHECK(out == NULL);
}

static void allocators(void) {
  t_source source = {0, 0, 0, 0, 0, 0};
  dlrs_allocator allocator = t_allocator(&source), broken;
  const dlrs_allocator *old = &broken;
  DLManagedTensorVersioned *out;
  WORKS(dlrs_allocator_set(kDLROCM, &allocator, &old, ERR));
  CHECK(old == NULL);
  WORKS(dlrs_tensor_new(shape, 2, F32, t_device(kDLROCM, 1), NULL, &out, ERR));
  is_fresh(out, 0);
  EQUAL(t_request_of(out->dl_tensor.data).nbytes, 24);
  EQUAL(t_request_of(out->dl_tensor.data).align_bytes, 256);
  EQUAL(t_request_of(out->dl_tensor.data).device.device_id, 1);
  broken = allocator;
  broken.free = NULL;
  t_watch(&old, sizeof old);
  REJECTS(NULL_ARG, 2, OPTION, -1, dlrs_allocator_set(kDLROCM, &broken, &old, ERR));
  broken = allocator;
  broken.alloc = NULL;
  REJECTS(NULL_ARG, 2, OPTION, -1, dlrs_allocator_set(kDLROCM, &broken, &old, ERR));
  broken = allocator;
  broken.struct_size = sizeof broken - 1;
  REJECTS(STRUCT_SIZE, 2, STRUCT_SIZE, -1, dlrs_allocator_set(kDLROCM, &broken, &old, ERR));
  REJECTS(DEVICE_TYPE, 1, ANY, -1, dlrs_allocator_set((DLDeviceType)99, &allocator, &old, ERR));
  REJECTS(DEVICE_TYPE, 1, ANY, -1, dlrs_allocator_set((DLDeviceType)-1, &allocator, &old, ERR));
  REJECTS(DEVICE_TYPE, 1, ANY, -1, dlrs_allocator_set((DLDeviceType)0, NULL, &old, ERR));
  t_unwatch();
  WORKS(dlrs_allocator_set(kDLROCM, NULL, &old, ERR));
  CHECK(old == &allocator);
  WORKS(dlrs_allocator_set(kDLROCM, NULL, NULL, ERR));
  EQUAL(source.taken, 0);
  dlrs_release(out); /* the allocator is no longer set, but still frees its memory */
  CHECK(source.given == 1 && source.taken == 1 && source.strange == 0);
  /* If memory can be allocated on a device, an empty tensor can be cloned to it. */
  int64_t none[2] = {0, 3};
  DLManagedTensorVersioned empty = t_managed(t_describe(NULL, F32, 2, none, NULL), 0);
  REJECTS(DEVICE_TYPE, 2, ANY, -1, dlrs_clone(&empty, t_device(kDLMAIA, 0), NULL, &out, ERR));
  WORKS(dlrs_allocator_set(kDLMAIA, &allocator, NULL, ERR));
  WORKS(dlrs_clone(&empty, t_device(kDLMAIA, 0), NULL, &out, ERR));
  EQUAL(out->dl_tensor.device.device_type, kDLMAIA);
  WORKS(dlrs_allocator_set(kDLMAIA, NULL, NULL, ERR));
  dlrs_release(out);
  EQUAL(source.given, 1);
}

/* Without memory: an invalid tensor is reported first, then the requested size. */
static void starved(void) {
  t_tensor good;
  DLTensor *bare = &good.managed.dl_tensor;
  DLManagedTensorVersioned *out;
  int64_t nbytes;
  t_make(&good);
  if (!inject_works()) return;
  inject_arm(1, 1);
  EQUAL(dlrs_tensor_wrap(bare, 8, NULL, NULL, &out, ERR), DLRS_FLAGS);
  bare->dtype = t_dtype(kDLFloat, 0, 1);
  EQUAL(dlrs_tensor_wrap(bare, 0, NULL, NULL, &out, ERR), DLRS_DTYPE_BITS);
  bare->dtype = F32;
  EQUAL(dlrs_tensor_wrap(bare, 0, NULL, NULL, &out, ERR), DLRS_NOMEM);
  nbytes = t_error.value;
  bare->ndim = 0;
  EQUAL(dlrs_tensor_wrap(bare, 0, NULL, NULL, &out, ERR), DLRS_NOMEM);
  bare->ndim = 2;
  CHECK(inject_disarm());
  CHECK(out == NULL);
  EQUAL(nbytes - t_error.value, 4 * (int64_t)sizeof(int64_t)); /* extents and strides */
}

int main(void) {
  makes();
  prototypes();
  starved();
  allocators();
  return t_close();
}
