/* A consumer's limits, as import options express them; and the layout of allocated tensors. */
#include "harness.h"
#include "random.h"

/* ---- Limits ---------------------------------------------------------------------------------*/

static const DLDataType DTYPES[] = {{kDLFloat, 32, 1}, {kDLFloat, 64, 1}, {kDLInt, 32, 1},
                                    {kDLInt, 8, 4}};

/* The oracle: -1 for accepted, else the rejected field. */
static int32_t refused_field(const DLTensor *t, const dlrs_import_options *o) {
  uint64_t i, codes = 0, sizes = 0;
  if (o->device_types != 0 &&
      ((uint32_t)t->device.device_type > 63 || !(o->device_types >> t->device.device_type & 1))) {
    return DLRS_FIELD_DEVICE_TYPE;
  }
  if (o->ranks != 0 && (t->ndim > 63 || !(o->ranks >> t->ndim & 1))) { return DLRS_FIELD_NDIM; }
  if (o->dtypes == NULL) { return -1; }
  for (i = 0; i < o->dtypes_count; ++i) {
    const DLDataType *d = &o->dtypes[i];
    if (memcmp(d, &t->dtype, sizeof *d) == 0) { return -1; }
    codes += d->code == t->dtype.code;
    sizes += d->code == t->dtype.code && d->bits == t->dtype.bits;
  }
  return sizes ? DLRS_FIELD_DTYPE_LANES : codes ? DLRS_FIELD_DTYPE_BITS : DLRS_FIELD_DTYPE_CODE;
}

static void limits(void) {
  static const int32_t types[] = {kDLCPU, kDLCUDA, kDLCUDAHost, kDLTrn};
  static const int dtypes[][3] = {{kDLFloat, 32, 1}, {kDLFloat, 16, 1}, {kDLInt, 8, 1},
                                  {kDLInt, 8, 4}, {kDLUInt, 8, 1}};
  int64_t shape[64], strides[64];
  static double values[64];
  int round, i;
  for (round = 0; round < 4000; ++round) {
    DLTensor bare = t_describe(values, F32, (int32_t)below(5), shape, strides);
    DLManagedTensorVersioned foreign, *tensor = &foreign, *out;
    dlrs_import_options options = DLRS_INIT(dlrs_import_options);
    const int *dtype = dtypes[below(5)];
    int32_t field;
    if (below(10) == 0) { bare.ndim = 64; }
    for (i = 0; i < bare.ndim; ++i) { shape[i] = 1; }
    t_compact(bare.ndim, shape, strides);
    bare.dtype = t_dtype(dtype[0], dtype[1], dtype[2]);
    bare.device = t_device(types[below(4)], 0);
    foreign = t_managed(bare, 0);
    if (below(2)) { options.device_types = draw() & draw() & 0x60416; }
    if (below(2)) { options.ranks = below(2) ? (uint64_t)1 << below(5) : ((uint64_t)1 << 3) - 1; }
    if (below(2)) {
      options.dtypes = DTYPES;
      options.dtypes_count = (uint64_t)below(5);
    }
    field = refused_field(&foreign.dl_tensor, &options);
    if (field < 0) {
      long before = t_deleted;
      WORKS(dlrs_import_take(&tensor, &options, &out, ERR));
      dlrs_release(out);
      EQUAL(t_deleted, before + 1);
    } else {
      t_watch(&foreign, sizeof foreign);
      t_watch(&tensor, sizeof tensor);
      t_result(&out);
      options.copy = below(2) ? 1 : 0; /* rejected before it is copied */
      REFUSED(DLRS_UNSUPPORTED, 1, field, -1, dlrs_import_take(&tensor, &options, &out, ERR));
      t_unwatch();
    }
  }
}

static void bad_limits(void) {
  t_tensor good;
  DLManagedTensorVersioned *tensor, *out;
  dlrs_import_options options = DLRS_INIT(dlrs_import_options);
  t_make(&good);
  tensor = &good.managed;
  t_watch(&good, sizeof good);
  t_result(&out);
  options.dtypes = DTYPES;
  options.dtypes_count = UINT64_MAX;
  REJECTS(BAD_ARG, 2, ANY, -1, dlrs_import_take(&tensor, &options, &out, ERR));
  options.dtypes_count = 0; /* none is accepted */
  REJECTS(UNSUPPORTED, 1, DTYPE_CODE, -1, dlrs_import_take(&tensor, &options, &out, ERR));
  EQUAL(t_error.value, kDLFloat);
  options.dtypes = (const DLDataType *)((const char *)DTYPES + 1);
  options.dtypes_count = 1;
  REJECTS(MISALIGNED_STRUCT, 2, ANY, -1, dlrs_import_take(&tensor, &options, &out, ERR));
  t_unwatch();
}

/* Structs to which options point: at every address they are aligned, or refused. */
static void within_options(void) {
  int64_t shape[] = {2}, room[32];
  t_tensor good;
  DLManagedTensorVersioned *tensor, *out;
  dlrs_copy_options copy;
  dlrs_import_options import;
  dlrs_allocator allocator;
  dlrs_alloc_options alloc;
  size_t off;
  t_make(&good);
  tensor = &good.managed;
  memset(&copy, 0, sizeof copy);
  memset(&import, 0, sizeof import);
  memset(&allocator, 0, sizeof allocator);
  memset(&alloc, 0, sizeof alloc);
  copy.struct_size = sizeof copy;
  import.struct_size = sizeof import;
  allocator.struct_size = sizeof allocator;
  alloc.struct_size = sizeof alloc;
  CHECK(sizeof copy + 8 <= sizeof room && sizeof allocator + 8 <= sizeof room);
  for (off = 1; off <= 8; ++off) {
    const char *at = (char *)room + off;
    import.copy_options = (const dlrs_copy_options *)at;
    alloc.allocator = (const dlrs_allocator *)at;
    t_watch(&good, sizeof good);
    t_watch(&tensor, sizeof tensor);
    t_result(&out);
    memcpy((char *)room + off, &allocator, sizeof allocator); /* its functions are missing, too */
    REFUSED(off % sizeof(void *) ? DLRS_MISALIGNED_STRUCT : DLRS_NULL_ARG, 5, ANY, -1,
            dlrs_tensor_new(shape, 1, F32, CPU, &alloc, &out, ERR));
    memcpy((char *)room + off, &copy, sizeof copy);
    if (off % sizeof(void *)) {
      REJECTS(MISALIGNED_STRUCT, 2, ANY, -1, dlrs_import_take(&tensor, &import, &out, ERR));
    }
    t_unwatch();
  }
  WORKS(dlrs_import_take(&tensor, &import, &out, ERR));
  dlrs_release(out);
}

/* ---- Order and strides of allocated tensors --------------------------------------------------*/

static dlrs_alloc_options alloc_of(int32_t order, const int64_t *strides) {
  dlrs_alloc_options options = DLRS_INIT(dlrs_alloc_options);
  options.order = order;
  options.strides = strides;
  return options;
}

/* Elements that share memory, as dlrs_is_unique says, are refused; all others have room. */
static void given_strides(void) {
  int round;
  for (round = 0; round < 4000; ++round) {
    int64_t shape[4], strides[4], nbytes = 4;
    int32_t ndim = (int32_t)below(5), dim, unique = 9;
    DLTensor tensor = t_describe(shape, F32, ndim, shape, strides);
    DLManagedTensorVersioned *out;
    dlrs_alloc_options options = alloc_of(0, strides);
    for (dim = 0; dim < ndim; ++dim) {
      shape[dim] = 1 + below(3);
      strides[dim] = below(3) ? below(20) : (int64_t)1 << below(5);
      nbytes += 4 * (shape[dim] - 1) * strides[dim];
    }
    WORKS(dlrs_is_unique(&tensor, 0, &unique, ERR));
    if (unique != DLRS_YES) {
      t_result(&out);
      REJECTS(OVERLAP_DST, 5, STRIDES, -1,
              dlrs_tensor_new(shape, ndim, F32, CPU, &options, &out, ERR));
      t_unwatch();
      continue;
    }
    WORKS(dlrs_tensor_new(shape, ndim, F32, CPU, &options, &out, ERR));
    for (dim = 0; dim < ndim; ++dim) EQUAL(out->dl_tensor.strides[dim], strides[dim]);
    memset(out->dl_tensor.data, 1, (size_t)nbytes); /* ASan: the gaps are accessible too */
    dlrs_release(out);
  }
}

static void orders(void) {
  int64_t shape[3] = {2, 3, 4}, last[3] = {1, 8, 2}, negative[3] = {12, -4, 1};
  int64_t far[3] = {INT64_MAX / 2, 1, 2}, none[3] = {0, 3, 4};
  DLTensor like = t_describe(NULL, F32, 3, shape, last);
  DLManagedTensorVersioned *out;
  dlrs_alloc_options options = alloc_of('F', NULL);
  WORKS(dlrs_tensor_new(shape, 3, F32, CPU, &options, &out, ERR));
  CHECK(out->dl_tensor.strides[0] == 1 && out->dl_tensor.strides[2] == 6);
  dlrs_release(out);
  options.order = 'C';
  WORKS(dlrs_tensor_new(shape, 3, F32, CPU, &options, &out, ERR));
  CHECK(out->dl_tensor.strides[0] == 12 && out->dl_tensor.strides[2] == 1);
  dlrs_release(out);
  options.order = 'K';
  WORKS(dlrs_tensor_new_like(&like, &options, &out, ERR));
  CHECK(out->dl_tensor.strides[0] == 1 && out->dl_tensor.strides[1] == 8);
  CHECK(out->dl_tensor.strides[2] == 2);
  dlrs_release(out);
  like.strides = NULL;
  WORKS(dlrs_tensor_new_like(&like, &options, &out, ERR));
  CHECK(out->dl_tensor.strides[0] == 12 && out->dl_tensor.strides[2] == 1);
  dlrs_release(out);
  t_result(&out);
  REJECTS(BAD_ARG, 5, ANY, -1, dlrs_tensor_new(shape, 3, F32, CPU, &options, &out, ERR));
  options.order = 'A';
  REJECTS(BAD_ARG, 5, ANY, -1, dlrs_tensor_new(shape, 3, F32, CPU, &options, &out, ERR));
  options.order = 'x';
  REJECTS(BAD_ARG, 2, ANY, -1, dlrs_tensor_new_like(&like, &options, &out, ERR));
  options.order = 0;
  options.reserved = 1;
  REJECTS(BAD_ARG, 5, ANY, -1, dlrs_tensor_new(shape, 3, F32, CPU, &options, &out, ERR));
  options = alloc_of('C', last);
  REJECTS(BAD_ARG, 5, ANY, -1, dlrs_tensor_new(shape, 3, F32, CPU, &options, &out, ERR));
  options = alloc_of(0, negative);
  REJECTS(BAD_ARG, 5, STRIDES, 1, dlrs_tensor_new(shape, 3, F32, CPU, &options, &out, ERR));
  options = alloc_of(0, far);
  REJECTS(EXTENT_OVERFLOW, 5, STRIDES, ANY,
          dlrs_tensor_new(shape, 3, F32, CPU, &options, &out, ERR));
  options = alloc_of(0, last);
  REJECTS(SUBBYTE, 5, STRIDES, -1,
          dlrs_tensor_new(shape, 3, t_dtype(kDLUInt, 4, 1), CPU, &options, &out, ERR));
  REJECTS(DTYPE_BITS, 3, ANY, -1,
          dlrs_tensor_new(shape, 3, t_dtype(kDLFloat, 0, 1), CPU, &options, &out, ERR));
  options.strides = (const int64_t *)((const char *)last + 1);
  REJECTS(MISALIGNED_STRUCT, 5, ANY, -1, dlrs_tensor_new(shape, 3, F32, CPU, &options, &out, ERR));
  t_unwatch();
  options = alloc_of(0, negative); /* no strides are used */
  WORKS(dlrs_tensor_new(none, 3, F32, CPU, &options, &out, ERR));
  CHECK(out->dl_tensor.data == NULL && out->dl_tensor.strides[1] == -4);
  dlrs_release(out);
}

int main(void) {
  limits();
  bad_limits();
  within_options();
  orders();
  given_strides();
  return t_close();
}
