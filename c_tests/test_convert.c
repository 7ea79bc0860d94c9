/* Legacy, versioned, import. The rest is in section C of the catalogue. */
#include "harness.h"

static dlrs_import_options options_of(int32_t copy, int32_t order, uint32_t align_bytes,
                                      int32_t writable) {
  dlrs_import_options options = DLRS_INIT(dlrs_import_options);
  options.copy = copy;
  options.order = order;
  options.align_bytes = align_bytes;
  options.writable = writable;
  return options;
}

/* One import: rejected, boxed (same data) or copied (other data). */
static void import_one(t_tensor *good, const dlrs_import_options *options, int32_t refusal,
                       int copied) {
  DLManagedTensorVersioned *in = &good->managed, *out;
  long deleted = t_deleted;
  if (refusal != DLRS_OK) {
    t_watch(good, sizeof *good);
    t_watch(&in, sizeof in);
    t_result(&out);
    REFUSED(refusal, 1, ANY, ANY, dlrs_import_take(&in, options, &out, ERR));
    t_unwatch();
    return;
  }
  WORKS(dlrs_import_take(&in, options, &out, ERR));
  CHECK(in == NULL);
  EQUAL(t_deleted, deleted + copied); /* a copy releases the original at once */
  CHECK((out->dl_tensor.data != good->managed.dl_tensor.data) == copied);
  if (copied) EQUAL(out->flags & 3, DLPACK_FLAG_BITMASK_IS_COPIED);
  if (!copied) EQUAL(out->flags, good->managed.flags);
  dlrs_release(out);
  EQUAL(t_deleted, deleted + 1);
}

static void imports(void) {
  t_tensor good;
  dlrs_import_options options;
  int bit;
  t_make(&good);
  import_one(&good, NULL, DLRS_OK, 0);
  options = options_of(1, 0, 0, 0);
  import_one(&good, &options, DLRS_OK, 1);
  options = options_of(0, 'C', 4, 1);
  import_one(&good, &options, DLRS_OK, 0);
  options = options_of(-1, 'F', 0, 0);
  import_one(&good, &options, DLRS_COPY_NEEDED, 0);
  options = options_of(0, 'F', 0, 0);
  import_one(&good, &options, DLRS_OK, 1);
  options = options_of(-1, 'K', 0, 0);
  import_one(&good, &options, DLRS_OK, 0);
  options = options_of(-1, 'A', 0, 0);
  import_one(&good, &options, DLRS_OK, 0);
  good.managed.dl_tensor.data = (char *)good.values + 4;
  good.shape[1] = 2;
  good.strides[0] = 2;
  options = options_of(-1, 0, 1u << 12, 0);
  import_one(&good, &options, DLRS_MISALIGNED, 0);
  good.managed.flags = DLPACK_FLAG_BITMASK_READ_ONLY;
  for (bit = 0; bit < 32; ++bit) { /* any number but 0 */
    options = options_of(-1, 0, 0, (int32_t)(1u << bit));
    import_one(&good, &options, DLRS_READ_ONLY, 0);
  }
  options = options_of(0, 0, 0, 1);
  import_one(&good, &options, DLRS_OK, 1);
  options = options_of(0, 0, 0, 0);
  import_one(&good, &options, DLRS_OK, 0);
}

static void import_refusals(void) {
  t_tensor good;
  DLManagedTensorVersioned *in, *out;
  dlrs_import_options options = options_of(0, 0, 0, 0);
  t_make(&good);
  in = &good.managed;
  t_watch(&good, sizeof good);
  t_watch(&in, sizeof in);
  t_result(&out);
  options.struct_size = 12;
  REJECTS(STRUCT_SIZE, 2, STRUCT_SIZE, -1, dlrs_import_take(&in, &options, &out, ERR));
  options = options_of(2, 0, 0, 0);
  REJECTS(BAD_ARG, 2, OPTION, -1, dlrs_import_take(&in, &options, &out, ERR));
  options = options_of(0, 'X', 0, 0);
  REJECTS(BAD_ARG, 2, OPTION, -1, dlrs_import_take(&in, &options, &out, ERR));
  options = options_of(0, 0, 48, 0);
  REJECTS(BAD_ARG, 2, OPTION, -1, dlrs_import_take(&in, &options, &out, ERR));
  options = options_of(0, 0, 0, 0);
  options.level = 5;
  REJECTS(BAD_ARG, 2, OPTION, -1, dlrs_import_take(&in, &options, &out, ERR));
  options.level = -1;
  REJECTS(BAD_ARG, 2, OPTION, -1, dlrs_import_take(&in, &options, &out, ERR));
  t_unwatch();
}

/* At a level without checks of addresses, flags and dtypes a tensor is boxed as it is; a copy
 * requires the same as a clone, and reads nothing before. */
static void import_loose(void) {
  dlrs_import_options options[2];
  int copied, which;
  options[0] = options_of(-1, 0, 0, 0);
  options[1] = options_of(1, 0, 0, 0);
  for (copied = 0; copied < 2; ++copied) {
    for (which = 0; which < 6; ++which) {
      static const int32_t refusals[6] = {DLRS_DATA_NULL, DLRS_EXTENT_OVERFLOW, DLRS_OFFSET,
                                          DLRS_SIZE_OVERFLOW, DLRS_FLAGS, DLRS_DTYPE_CODE};
      t_tensor good;
      t_make(&good);
      options[copied].level = which < 4 ? DLRS_LEVEL_STRUCT : DLRS_LEVEL_LAYOUT;
      if (which == 0) good.managed.dl_tensor.data = NULL;
      if (which == 1) good.strides[0] = INT64_MAX;
      if (which == 2) good.managed.dl_tensor.byte_offset = UINT64_MAX;
      if (which == 3) good.shape[0] = INT64_MAX / 2;
      if (which == 4) good.managed.flags = (uint64_t)1 << 40;
      if (which == 5) good.managed.dl_tensor.dtype.code = 200;
      import_one(&good, &options[copied], copied ? refusals[which] : DLRS_OK, 0);
    }
  }
}

/* A handle of OpenCL is not an address, and has no alignment; an empty tensor needs none. */
static void import_handle(void) {
  dlrs_import_options options = options_of(-1, 0, 4, 0);
  t_tensor good;
  t_make(&good);
  good.managed.dl_tensor.device.device_type = kDLOpenCL;
  import_one(&good, &options, DLRS_UNSUPPORTED, 0);
  options.align_bytes = 0;
  import_one(&good, &options, DLRS_OK, 0);
  options.align_bytes = 4;
  good.managed.dl_tensor.data = NULL;
  good.shape[0] = 0;
  import_one(&good, &options, DLRS_OK, 0);
}

int main(void) {
  imports();
  import_refusals();
  import_loose();
  import_handle();
  return t_close();
}
