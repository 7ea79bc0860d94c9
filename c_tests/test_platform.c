/* Differences between machines: the size of a pointer, the order of bytes, the width of
 * `unsigned long`. */
#include "harness.h"

/* For the alignment of a struct. */
struct behind_char_managed { char c; DLManagedTensorVersioned t; };

/* ---- Sizes ----------------------------------------------------------------------------------*/

/* Expected once per family of C ABIs: pointer, alignment of a 64-bit member, sizes. */
static const struct {
  const char *name;
  uint32_t pointer, align, tensor, legacy, versioned, exchange_header, exchange;
} abis[] = {
    {"64-bit", 8, 8, 48, 64, 80, 16, 56},
    {"32-bit, 64-bit members aligned to 8", 4, 8, 40, 48, 64, 12, 32},
    {"32-bit, 64-bit members aligned to 4", 4, 4, 36, 44, 60, 12, 32},
};

struct wide { char c; uint64_t value; };

static void sizes(void) {
  const dlrs_abi_table *table = dlrs_abi_layout();
  uint32_t align = (uint32_t)offsetof(struct wide, value);
  size_t i, found = 0;
  for (i = 0; i < sizeof abis / sizeof *abis; ++i) {
    if (abis[i].pointer != sizeof(void *) || abis[i].align != align) continue;
    ++found;
    CHECK(sizeof(DLTensor) == abis[i].tensor && table->tensor_size == abis[i].tensor);
    CHECK(sizeof(DLManagedTensor) == abis[i].legacy && table->legacy_size == abis[i].legacy);
    CHECK(sizeof(DLManagedTensorVersioned) == abis[i].versioned);
    CHECK(table->versioned_size == abis[i].versioned);
    CHECK(table->exchange_header_size == abis[i].exchange_header);
    CHECK(table->exchange_api_size == abis[i].exchange);
    CHECK(sizeof(DLPackExchangeAPI) == abis[i].exchange);
    printf("%s: DLTensor %u, DLManagedTensor %u, DLManagedTensorVersioned %u\n", abis[i].name,
           table->tensor_size, table->legacy_size, table->versioned_size);
  }
  CHECK(found == 1);
}

/* ---- 64 bits where `unsigned long`, or a pointer, has 32 -------------------------------------*/

static void flags(void) {
  float value = 1;
  int64_t shape[1] = {1}, strides[1] = {1};
  DLTensor bare = t_describe(&value, t_dtype(kDLFloat, 32, 1), 1, shape, strides);
  DLManagedTensorVersioned *own = NULL, foreign;
  int bit;
  CHECK(sizeof foreign.flags == 8);
  foreign = t_managed(bare, 0);
  for (bit = 3; bit < 64; ++bit) {
    uint64_t flag = (uint64_t)1 << bit;
    CHECK(dlrs_validate(&bare, flag, DLRS_LEVEL_STRICT, ERR) == DLRS_FLAGS);
    CHECK((uint64_t)t_error.value == flag);
    foreign.flags = flag;
    CHECK(dlrs_validate_managed(&foreign, DLRS_LEVEL_STRICT, ERR) == DLRS_FLAGS);
    CHECK((uint64_t)t_error.value == flag);
    CHECK(dlrs_copy_desc(&bare, flag, &bare, 0, NULL, ERR) == DLRS_FLAGS);
    CHECK(dlrs_tensor_wrap(&bare, flag, NULL, NULL, &own, ERR) == DLRS_FLAGS && own == NULL);
  }
  /* Host flags there are preserved when other flags change. */
  CHECK(dlrs_tensor_new(shape, 1, bare.dtype, CPU, NULL, &own, ERR) == DLRS_OK);
  own->flags |= (uint64_t)0xA5 << 40;
  CHECK(dlrs_set_flags(own, DLPACK_FLAG_BITMASK_READ_ONLY, 0, ERR) == DLRS_OK);
  CHECK(own->flags == ((uint64_t)0xA5 << 40 | DLPACK_FLAG_BITMASK_READ_ONLY));
  CHECK(dlrs_set_flags(own, 0, DLPACK_FLAG_BITMASK_READ_ONLY, ERR) == DLRS_OK);
  CHECK(own->flags == (uint64_t)0xA5 << 40);
  own->flags = 0;
  own->deleter(own);
  /* Upstream's macros have the type unsigned long: ~ of one must be widened first. */
  CHECK(~(uint64_t)DLPACK_FLAG_BITMASK_READ_ONLY == UINT64_MAX - 1);
}

/* Extents, offsets and sizes above 2^32 are rejected or right, never truncated. */
static void large_numbers(void) {
  unsigned char byte = 7;
  int64_t shape[1] = {((int64_t)1 << 32) + 1}, strides[1] = {1}, numel = 0;
  uint64_t nbytes = 0;
  DLManagedTensorVersioned *out = NULL;
  DLTensor bare = t_describe(&byte, t_dtype(kDLUInt, 8, 1), 1, shape, strides);
  dlrs_status status = dlrs_tensor_new(shape, 1, bare.dtype, CPU, NULL, &out, ERR);
  if (sizeof(void *) == 4) CHECK(status == DLRS_SIZE_OVERFLOW && out == NULL);
  if (status == DLRS_OK) {
    ((unsigned char *)out->dl_tensor.data)[shape[0] - 1] = 1;
    out->deleter(out);
  }
  CHECK(dlrs_numel(&bare, &numel, ERR) == DLRS_OK && numel == shape[0]);
  status = dlrs_nbytes(&bare, 0, &nbytes, ERR);
  if (sizeof(void *) == 4) {
    CHECK(status != DLRS_OK);
    CHECK(dlrs_validate(&bare, 0, DLRS_LEVEL_STRICT, ERR) != DLRS_OK);
    shape[0] = 1;
    bare.byte_offset = (uint64_t)1 << 32; /* truncated it would be 0 */
    CHECK(dlrs_validate(&bare, 0, DLRS_LEVEL_STRICT, ERR) == DLRS_OFFSET);
    bare.byte_offset = 0;
    shape[0] = 2;
    strides[0] = (int64_t)1 << 32;
    CHECK(dlrs_validate(&bare, 0, DLRS_LEVEL_STRICT, ERR) == DLRS_EXTENT_OVERFLOW);
  } else {
    CHECK(status == DLRS_OK && nbytes == (uint64_t)shape[0]);
  }
}

/* Memory in the upper half of a 32-bit address space, or across its middle, is valid. */
static void whole_address_space(void) {
  DLManagedTensorVersioned *out[3] = {NULL, NULL, NULL};
  int64_t shape[1] = {(int64_t)600 << 20}, strides[1] = {1};
  DLTensor bare = t_describe(NULL, t_dtype(kDLUInt, 8, 1), 1, shape, strides);
  int i, made = 0;
  if (sizeof(void *) == 4) {
    /* The blocks fill most of 2 GiB, untouched: one of them is in the upper half, or across. */
    for (i = 0; i < 3; ++i) {
      dlrs_status status = dlrs_tensor_new(shape, 1, bare.dtype, CPU, NULL, &out[i], ERR);
      made += status == DLRS_OK;
      if (status == DLRS_OK) {
        CHECK(dlrs_validate_managed(out[i], DLRS_LEVEL_STRICT, ERR) == DLRS_OK);
      }
    }
    CHECK(made > 0);
    for (i = 0; i < 3; ++i) dlrs_release(out[i]);
    bare.data = (void *)(uintptr_t)0x7ff00000u; /* never dereferenced */
    shape[0] = 0x200000;
    CHECK(dlrs_validate(&bare, 0, DLRS_LEVEL_STRICT, ERR) == DLRS_OK);
  }
}

/* On i386 a struct with 64-bit members may be at an odd multiple of 4. */
static void least_alignment(void) {
  union {
    uint64_t align;
    unsigned char bytes[sizeof(DLManagedTensorVersioned) + 16];
  } room;
  size_t align = offsetof(struct behind_char_managed, t), at;
  float value = 1;
  int64_t extent = 1;
  for (at = 0; at < 16; at += align) {
    DLManagedTensorVersioned *foreign = (DLManagedTensorVersioned *)(void *)(room.bytes + at);
    DLManagedTensorVersioned *clone = NULL;
    *foreign = t_managed(t_describe(&value, F32, 1, &extent, &extent),
                         DLPACK_FLAG_BITMASK_READ_ONLY);
    CHECK(dlrs_validate_managed(foreign, DLRS_LEVEL_STRICT, ERR) == DLRS_OK);
    CHECK(dlrs_copy(foreign, foreign, NULL, ERR) == DLRS_READ_ONLY);
    CHECK(dlrs_clone(foreign, CPU, NULL, &clone, ERR) == DLRS_OK);
    dlrs_release(clone);
  }
}

/* ---- The order of bytes and bits ------------------------------------------------------------*/

static void shows(int line, void *data, DLDataType type, int64_t n, const char *values) {
  int64_t stride = 1;
  char text[512] = "";
  size_t nbytes = 0;
  DLTensor tensor = t_describe(data, type, 1, &n, &stride);
  int ok = dlrs_tensor_to_string(&tensor, 0, NULL, text, sizeof text, &nbytes, ERR) == DLRS_OK &&
           strstr(text, values) != NULL;
  if (!t_check(ok, __FILE__, line, values)) printf("  %s %s\n", text, t_error.message);
}
#define SHOWS(data, code, bits, n, values) \
  shows(__LINE__, data, t_dtype(code, bits, 1), n, values)

static void values(void) {
  int16_t halves[3] = {1, -2, 300};
  uint32_t words[2] = {1, 0x01020304};
  int64_t longs[2] = {-1, 0x0102030405060708};
  uint16_t small[2] = {0x3c00, 0xc000}; /* 1 and -2 in binary16 */
  float floats[2] = {1.5f, -0.25f};
  double doubles[2] = {0.1, -3};
  float complex[4] = {1, 2, 3, -4};
  double complex_double[2] = {0.5, -8};
  unsigned char nibbles[2] = {0x21, 0xF3}, bits[1] = {0x05};
  unsigned char six[3] = {0x08, 0x00, 0x20}; /* 1, 0, 0, 1 in e2m3: bits 0 to 5 are the first */
  SHOWS(halves, kDLInt, 16, 3, "[1, -2, 300]");
  SHOWS(words, kDLUInt, 32, 2, "16909060");
  SHOWS(longs, kDLInt, 64, 2, "72623859790382856");
  SHOWS(small, kDLFloat, 16, 2, "[1.0, -2.0]");
  SHOWS(floats, kDLFloat, 32, 2, "[1.5, -0.25]");
  SHOWS(doubles, kDLFloat, 64, 2, "[0.1, -3.0]");
  SHOWS(complex, kDLComplex, 64, 2, "[1.0+2.0j, 3.0-4.0j]");
  SHOWS(complex_double, kDLComplex, 128, 1, "0.5-8.0j");
  SHOWS(nibbles, kDLInt, 4, 4, "[1, 2, 3, -1]");
  SHOWS(bits, kDLUInt, 1, 4, "[1, 0, 1, 0]");
  SHOWS(six, kDLFloat6_e2m3fn, 6, 4, "[1.0, 0.0, 0.0, 1.0]");
}

/* Packed elements count from the least significant bit of a byte, whatever the machine. */
static void packed(void) {
  static const struct {
    int bits;
    int64_t n;
    unsigned char from[4], backwards[4];
  } cases[] = {
      {4, 5, {0x21, 0x43, 0x05, 0}, {0x45, 0x23, 0xA1, 0xAA}},
      {2, 9, {0xE4, 0x1B, 0x02, 0}, {0x92, 0x6F, 0xA8, 0xAA}},
      {1, 17, {0x01, 0x80, 0x00, 0}, {0x02, 0x00, 0xAB, 0xAA}},
      {6, 5, {0x81, 0x30, 0x10, 0x05}, {0x05, 0x31, 0x08, 0x81}}, /* 1, 2, 3, 4, 5 */
  };
  size_t i, k;
  for (i = 0; i < sizeof cases / sizeof *cases; ++i) {
    DLDataType type = t_dtype(cases[i].bits == 6 ? kDLFloat6_e2m3fn : kDLUInt, cases[i].bits, 1);
    unsigned char from[4], to[4] = {0xAA, 0xAA, 0xAA, 0xAA};
    int64_t n = cases[i].n, back = -1, step = 1;
    DLTensor src = t_describe(from, type, 1, &n, &back), dst = t_describe(to, type, 1, &n, &step);
    memcpy(from, cases[i].from, 4);
    src.byte_offset = (uint64_t)((n - 1) * cases[i].bits / 8); /* the last one, at a whole byte */
    CHECK(dlrs_copy_desc(&src, 0, &dst, 0, NULL, ERR) == DLRS_OK);
    for (k = 0; k < 4; ++k) CHECK(to[k] == cases[i].backwards[k]);
  }
}

int main(void) {
  t_before();
  sizes();
  flags();
  large_numbers();
  whole_address_space();
  least_alignment();
  values();
  packed();
  return t_close();
}
