/* Rows of section V with more than one tensor: pointers, the error struct, alignment. */
#include "catalogue.h"

static void v01(void) {
  t_tensor good;
  int64_t numel = 77;
  t_make(&good);
  REJECTS(NULL_ARG, 1, NONE, -1, dlrs_validate(NULL, 0, DLRS_LEVEL_STRICT, ERR));
  REJECTS(NULL_ARG, 1, NONE, -1, dlrs_validate_managed(NULL, DLRS_LEVEL_STRICT, ERR));
  REJECTS(NULL_ARG, 1, NONE, -1, dlrs_validate_legacy(NULL, DLRS_LEVEL_STRICT, ERR));
  REJECTS(NULL_ARG, 1, NONE, -1, dlrs_numel(NULL, &numel, ERR));
  EQUAL(dlrs_validate(NULL, 0, DLRS_LEVEL_STRICT, NULL), DLRS_NULL_ARG);
  EQUAL(dlrs_validate_managed(NULL, 0, NULL), DLRS_NULL_ARG);
  EQUAL(dlrs_validate(&good.managed.dl_tensor, 0, DLRS_LEVEL_STRICT, NULL), DLRS_OK);
  EQUAL(dlrs_numel(&good.managed.dl_tensor, NULL, NULL), DLRS_NULL_ARG);
}

static void v02(void) {
  /* The memory behind these pointers is not readable. */
  char *guard = (char *)t_guard();
  const DLTensor *bare = (const DLTensor *)(guard + 2);
  const DLManagedTensorVersioned *versioned = (const DLManagedTensorVersioned *)(guard + 1);
  DLManagedTensorVersioned *taken = (DLManagedTensorVersioned *)(guard + 2), *out;
  t_result(&out);
  t_watch(&taken, sizeof taken);
  REJECTS(MISALIGNED_STRUCT, 1, NONE, -1, dlrs_validate(bare, 0, DLRS_LEVEL_STRUCT, ERR));
  REJECTS(MISALIGNED_STRUCT, 1, NONE, -1, dlrs_validate_managed(versioned, DLRS_LEVEL_STRUCT, ERR));
  REJECTS(MISALIGNED_STRUCT, 1, NONE, -1, dlrs_clone(versioned, CPU, NULL, &out, ERR));
  REJECTS(MISALIGNED_STRUCT, 1, NONE, -1, dlrs_import_take(&taken, NULL, &out, ERR));
  REJECTS(MISALIGNED_STRUCT, 1, NONE, -1, dlrs_retain(taken, &out, ERR));
}

/* An error struct of `size` bytes gets exactly its first `size` bytes written. */
static void error_of_size(uint32_t size) {
  unsigned char *memory = (unsigned char *)t_behind_guard(4096);
  dlrs_error *error = (dlrs_error *)memory, full;
  size_t i, known = size < sizeof full ? size : sizeof full;
  memset(&full, 0, sizeof full);
  full.struct_size = sizeof full;
  EQUAL(dlrs_validate(NULL, 0, DLRS_LEVEL_STRICT, &full), DLRS_NULL_ARG);
  memset(memory, 0x5A, 4096);
  memcpy(memory, &size, sizeof size);
  EQUAL(dlrs_validate(NULL, 0, DLRS_LEVEL_STRICT, error), DLRS_NULL_ARG);
  EQUAL(error->struct_size, size);
  for (i = known > 4 ? known : 4; i < 4096 && memory[i] == 0x5A; ++i) {
  }
  EQUAL(i, 4096);
  if (known > 4) {
    size_t text = offsetof(dlrs_error, message), plain = known < text ? known : text;
    CHECK(memcmp(memory + 4, (char *)&full + 4, plain - 4) == 0);
    if (known > text) {
      CHECK(memchr(memory + text, 0, known - text) != NULL);
      CHECK(strncmp((char *)memory + text, full.message, strlen((char *)memory + text)) == 0);
    }
  }
}

static void v03(void) {
  uint32_t size;
  for (size = 0; size <= sizeof(dlrs_error) + 8; ++size) {
    error_of_size(size);
    t_guards_free();
  }
  error_of_size(4096);
  error_of_size(UINT32_MAX);
  /* A misaligned pointer is not written through: the code is still returned. */
  EQUAL(dlrs_validate(NULL, 0, 1, (dlrs_error *)((char *)t_guard() + 2)), DLRS_NULL_ARG);
}

static void of_major(uint32_t major) {
  /* The struct ends, and an inaccessible page begins, right behind `flags`. */
  size_t known = offsetof(DLManagedTensorVersioned, dl_tensor);
  DLManagedTensorVersioned *other = (DLManagedTensorVersioned *)t_before_guard(known);
  DLManagedTensorVersioned *taken = other, *out;
  DLManagedTensor *legacy_out;
  t_tensor good;
  long deleted;
  int32_t level, version = DLRS_FIELD_VERSION;
  memset(other, 0xA5, known);
  other->version.major = major;
  other->deleter = t_delete_versioned;
  t_make(&good);
  t_watch(other, known);
  t_watch(&taken, sizeof taken);
  t_watch(&good, sizeof good);
  t_result(&out);
  t_result(&legacy_out);
  for (level = 1; level <= 3; ++level) {
    REFUSED(DLRS_VERSION, 1, version, -1, dlrs_validate_managed(other, level, ERR));
    /* Of a legacy struct it would be half of an address. */
    CHECK(t_error.value == 0 && strstr(t_error.message, "value") == NULL);
  }
  REFUSED(DLRS_VERSION, 1, version, -1, dlrs_import_take(&taken, NULL, &out, ERR));
  REFUSED(DLRS_VERSION, 1, version, -1, dlrs_to_legacy_take(&taken, 1, &legacy_out, ERR));
  REFUSED(DLRS_VERSION, 1, version, -1, dlrs_copy(other, &good.managed, NULL, ERR));
  REFUSED(DLRS_VERSION, 2, version, -1, dlrs_copy(&good.managed, other, NULL, ERR));
  REFUSED(DLRS_VERSION, 1, version, -1, dlrs_clone(other, CPU, NULL, &out, ERR));
  REFUSED(DLRS_VERSION, 1, version, -1, dlrs_contiguous(other, 'C', NULL, &out, ERR));
  REFUSED(DLRS_VERSION, 1, version, -1, dlrs_to_device(other, CPU, 0, NULL, &out, ERR));
  REFUSED(DLRS_VERSION, 1, version, -1, dlrs_retain(other, &out, ERR));
  REFUSED(DLRS_VERSION, 1, version, -1, dlrs_set_flags(other, 1, 0, ERR));
  REFUSED(DLRS_VERSION, 1, version, -1, dlrs_attach(other, t_count, NULL, 0, ERR));
  REFUSED(DLRS_VERSION, 1, version, -1, dlrs_detach(other, t_count, NULL, ERR));
  EQUAL(dlrs_is_own(other), 0);
  EQUAL(dlrs_ref_count(other), 0);
  deleted = t_deleted;
  dlrs_release(other);
  EQUAL(t_deleted, deleted + 1);
  t_unwatch();
}

static void v04(void) {
  of_major(2);
  of_major(0);
  of_major(UINT32_MAX);
}

static void v41(void) {
  t_tensor good;
  DLTensor *tensor = &good.managed.dl_tensor;
  DLManagedTensorVersioned *taken, *out;
  dlrs_import_options options = DLRS_INIT(dlrs_import_options);
  char *memory = (char *)t_behind_guard(4096); /* page aligned */
  t_make(&good);
  tensor->data = memory;
  options.copy = -1;
  options.align_bytes = 64;
  taken = &good.managed;
  /* The offset counts: data is aligned, element 0 is not. */
  tensor->byte_offset = 4;
  REJECTS(MISALIGNED, 1, DATA, -1, dlrs_import_take(&taken, &options, &out, ERR));
  /* The reverse. */
  tensor->data = memory + 4;
  tensor->byte_offset = 60;
  WORKS(dlrs_import_take(&taken, &options, &out, ERR));
  CHECK(out->dl_tensor.data == memory + 4 && out->dl_tensor.byte_offset == 60);
  dlrs_release(out);
  /* Misaligned for its dtype: valid unless alignment is requested. */
  t_make(&good);
  tensor->data = memory + 4;
  tensor->byte_offset = 61;
  WORKS(dlrs_validate(tensor, 0, DLRS_LEVEL_STRICT, ERR));
  taken = &good.managed;
  t_watch(&good, sizeof good);
  t_watch(&taken, sizeof taken);
  t_result(&out);
  REJECTS(MISALIGNED, 1, DATA, -1, dlrs_import_take(&taken, &options, &out, ERR));
  options.align_bytes = 256;
  REJECTS(MISALIGNED, 1, DATA, -1, dlrs_import_take(&taken, &options, &out, ERR));
  t_unwatch();
  options.copy = 0; /* a copy is aligned */
  WORKS(dlrs_import_take(&taken, &options, &out, ERR));
  CHECK((uintptr_t)out->dl_tensor.data % 256 == 0 && out->dl_tensor.byte_offset == 0);
  dlrs_release(out);
}

static void v42(void) {
  static const uint64_t wrong[] = {3, 24, 2147483648u, 4294967296u, UINT64_MAX};
  t_tensor good;
  DLManagedTensorVersioned *taken = &good.managed, *out;
  dlrs_alloc_options alloc = DLRS_INIT(dlrs_alloc_options);
  dlrs_import_options import = DLRS_INIT(dlrs_import_options);
  size_t i;
  t_make(&good);
  t_watch(&good, sizeof good);
  t_watch(&taken, sizeof taken);
  t_result(&out);
  for (i = 0; i < sizeof wrong / sizeof *wrong; ++i) {
    alloc.align_bytes = (uint32_t)wrong[i];
    import.align_bytes = (uint32_t)wrong[i];
    if (alloc.align_bytes == 0) continue; /* 0 is the default in an options struct */
    REJECTS(BAD_ARG, 2, OPTION, -1,
            dlrs_tensor_new_like(&good.managed.dl_tensor, &alloc, &out, ERR));
    REJECTS(BAD_ARG, 2, OPTION, -1, dlrs_import_take(&taken, &import, &out, ERR));
  }
}

static void v60(void) {
  char memory[64];
  int64_t shape[1] = {4}, strides[1] = {2};
  DLTensor tensor = t_describe(memory + 16, F32, 1, shape, strides);
  char *base = memory + 16;
  t_watch(&tensor, sizeof tensor);
  t_watch(shape, sizeof shape);
  /* 4 elements, stride 2: bytes 0..28 from `base`. */
  WORKS(dlrs_validate_within(&tensor, 0, base, 28, ERR));
  REJECTS(OUT_OF_BOUNDS, 1, DATA, -1, dlrs_validate_within(&tensor, 0, base, 27, ERR));
  EQUAL(t_error.value, 28);
  EQUAL(t_error.limit, 27);
  REJECTS(OUT_OF_BOUNDS, 1, DATA, -1, dlrs_validate_within(&tensor, 0, base + 1, 40, ERR));
  EQUAL(t_error.value, -1);
  t_unwatch();
  strides[0] = -2;
  tensor.byte_offset = 24; /* the low end is at `base` again */
  t_watch(&tensor, sizeof tensor);
  WORKS(dlrs_validate_within(&tensor, 0, base, 28, ERR));
  REJECTS(OUT_OF_BOUNDS, 1, DATA, -1, dlrs_validate_within(&tensor, 0, base + 1, 40, ERR));
  EQUAL(t_error.value, -1);
  REJECTS(OUT_OF_BOUNDS, 1, DATA, -1, dlrs_validate_within(&tensor, 0, base, 27, ERR));
  REJECTS(OUT_OF_BOUNDS, 1, ANY, -1, dlrs_validate_within(&tensor, 0, base, UINT64_MAX, ERR));
  REJECTS(OUT_OF_BOUNDS, 1, ANY, -1, dlrs_validate_within(&tensor, 0, (void *)UINTPTR_MAX, 2, ERR));
  t_unwatch();
  shape[0] = 0; /* no elements: within any range, even an empty one */
  WORKS(dlrs_validate_within(&tensor, 0, NULL, 0, ERR));
}

/* Every code and every number of bits, against the list of the contract's E10. */
static void v47(void) {
  static const unsigned char legal[][8] = {
      {1, 2, 4, 8, 16, 32, 64}, {1, 2, 4, 8, 16, 32, 64}, {16, 32, 64}, {64}, {16}, {32, 64, 128},
      {8}, {8}, {8}, {8}, {8}, {8}, {8}, {8}, {8}, {6}, {6}, {4}, {32}};
  t_tensor good;
  const int known = sizeof legal / sizeof *legal;
  int code, bits, wrong = 0;
  t_make(&good);
  good.strides[0] = 0; /* as small as possible, so that only the dtype matters */
  good.shape[0] = good.shape[1] = 1;
  for (code = 0; code < 256; ++code) {
    for (bits = 0; bits < 256; ++bits) {
      int32_t want = bits == 0    ? (int32_t)DLRS_DTYPE_BITS
                     : code >= known ? (int32_t)DLRS_DTYPE_CODE
                                  : (int32_t)DLRS_DTYPE_BITS;
      if (code < known && bits > 0 && memchr(legal[code], bits, 8) != NULL) want = DLRS_OK;
      good.managed.dl_tensor.dtype = t_dtype(code, bits, 1);
      wrong += dlrs_validate_managed(&good.managed, DLRS_LEVEL_STRICT, NULL) != want;
    }
  }
  EQUAL(wrong, 0);
}

const c_row c_rows_v[] = {
    {"V01", "a NULL tensor is refused, with and without an error struct", v01},
    {"V02", "a misaligned struct is refused and not read", v02},
    {"V03", "of an error struct only struct_size bytes are written; 0 to 4 write nothing", v03},
    {"V04", "of another major version only the known part is read", v04},
    {"V41", "the question of alignment answers 0 or 1; an import that demands it refuses", v41},
    {"V42", "an alignment that is no power of two is refused; 0 in an options struct is the default",
     v42},
    {"V47", "every code and number of bits is judged as the list says", v47},
    {"V60", "a tensor that leaves its memory at either end is refused", v60},
    {NULL, NULL, NULL},
};
