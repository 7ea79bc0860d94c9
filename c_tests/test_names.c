/* Names of dtypes and devices; the odd texts are section P of the catalogue. */
#include "harness.h"

static void dtype(const char *name, int code, int bits, int lanes) {
  DLDataType found = t_dtype(0, 0, 0);
  char text[64];
  size_t nbytes = 0;
  t_context = name;
  WORKS(dlrs_dtype_parse(name, strlen(name), &found, ERR));
  CHECK(found.code == code && found.bits == bits && found.lanes == lanes);
  WORKS(dlrs_dtype_format(found, text, sizeof text, &nbytes, ERR));
  CHECK(strcmp(text, name) == 0 && nbytes == strlen(name));
}

/* Every letter and size, against a list of those that DLPack has. */
static void kinds(void) {
  static const struct { char kind; int code; uint32_t sizes[4]; } known[] = {
      {'b', kDLBool, {1, 0, 0, 0}}, {'i', kDLInt, {1, 2, 4, 8}}, {'u', kDLUInt, {1, 2, 4, 8}},
      {'f', kDLFloat, {2, 4, 8, 0}}, {'c', kDLComplex, {8, 16, 0, 0}}};
  static const int32_t odd[] = {-1, INT32_MIN, INT32_MAX, 256 + 'f'};
  DLDataType into = t_dtype(9, 9, 9);
  int32_t kind, letter = 7;
  uint32_t itemsize, found = 7;
  size_t i, k;
  for (kind = 0; kind < 256; ++kind) {
    for (itemsize = 0; itemsize < 40; ++itemsize) {
      int code = -1, letter_known = 0;
      for (i = 0; i < sizeof known / sizeof *known; ++i) {
        letter_known |= known[i].kind == kind;
        for (k = 0; k < 4; ++k) {
          if (known[i].kind == kind && itemsize > 0 && known[i].sizes[k] == itemsize) {
            code = known[i].code;
          }
        }
      }
      if (code < 0) {
        REJECTS(UNSUPPORTED, letter_known ? 2 : 1, NONE, -1,
                dlrs_dtype_from_kind(kind, itemsize, &into, ERR));
        EQUAL(t_error.value, letter_known ? (int64_t)itemsize : kind);
        CHECK(into.code == 9 && into.bits == 9 && into.lanes == 9);
      } else {
        DLDataType made = t_dtype(9, 9, 9);
        WORKS(dlrs_dtype_from_kind(kind, itemsize, &made, ERR));
        CHECK(made.code == code && made.bits == 8 * itemsize && made.lanes == 1);
        WORKS(dlrs_dtype_to_kind(made, &letter, &found, ERR));
        CHECK(letter == kind && found == itemsize);
      }
    }
  }
  /* With a kind and a size, the value is their combination. */
  for (i = 0; i < 256; ++i) {
    for (k = 0; k < 256; ++k) {
      DLDataType back = t_dtype(9, 9, 9);
      if (dlrs_dtype_to_kind(t_dtype((int)i, (int)k, 1), &letter, &found, NULL) == DLRS_OK) {
        WORKS(dlrs_dtype_from_kind(letter, found, &back, ERR));
        CHECK(back.code == i && back.bits == k && back.lanes == 1);
      }
    }
  }
  t_watch(&into, sizeof into);
  for (i = 0; i < sizeof odd / sizeof *odd; ++i) {
    REJECTS(UNSUPPORTED, 1, ANY, -1, dlrs_dtype_from_kind(odd[i], 4, &into, ERR));
  }
  /* 8 times this is 32 and 2^32. */
  REJECTS(UNSUPPORTED, 2, ANY, -1, dlrs_dtype_from_kind('f', (1U << 29) + 4, &into, ERR));
  REJECTS(NULL_ARG, 3, ANY, -1, dlrs_dtype_from_kind('f', 4, NULL, ERR));
  t_watch(&letter, sizeof letter);
  t_watch(&found, sizeof found);
  REJECTS(NULL_ARG, 2, ANY, -1, dlrs_dtype_to_kind(F32, NULL, &found, ERR));
#define NO_KIND(status, field, code, bits, lanes) \
  REFUSED(status, 1, field, -1, dlrs_dtype_to_kind(t_dtype(code, bits, lanes), &letter, &found, ERR))
  NO_KIND(DLRS_UNSUPPORTED, DLRS_FIELD_DTYPE_LANES, kDLFloat, 32, 4);
  NO_KIND(DLRS_UNSUPPORTED, DLRS_FIELD_DTYPE_BITS, kDLInt, 4, 1);
  NO_KIND(DLRS_UNSUPPORTED, DLRS_FIELD_DTYPE_BITS, kDLUInt, 1, 1);
  NO_KIND(DLRS_UNSUPPORTED, DLRS_FIELD_DTYPE_BITS, kDLComplex, 32, 1);
  NO_KIND(DLRS_UNSUPPORTED, DLRS_FIELD_DTYPE_CODE, kDLBfloat, 16, 1);
  NO_KIND(DLRS_UNSUPPORTED, DLRS_FIELD_DTYPE_CODE, kDLFloat8_e4m3fn, 8, 1);
  NO_KIND(DLRS_UNSUPPORTED, DLRS_FIELD_DTYPE_CODE, kDLOpaqueHandle, 64, 1);
  NO_KIND(DLRS_DTYPE_CODE, DLRS_FIELD_DTYPE_CODE, 99, 8, 1);
  NO_KIND(DLRS_DTYPE_BITS, DLRS_FIELD_DTYPE_BITS, kDLFloat, 128, 1);
  NO_KIND(DLRS_DTYPE_LANES, DLRS_FIELD_DTYPE_LANES, kDLFloat, 32, 0);
  t_unwatch();
}

int main(void) {
  DLDataType into = t_dtype(9, 9, 9);
  dtype("int8", kDLInt, 8, 1);
  dtype("uint1", kDLUInt, 1, 1);
  dtype("float64", kDLFloat, 64, 1);
  dtype("handle64", kDLOpaqueHandle, 64, 1);
  dtype("bfloat16", kDLBfloat, 16, 1);
  dtype("complex128", kDLComplex, 128, 1);
  dtype("bcomplex32", DLRS_CODE_BCOMPLEX, 32, 1);
  dtype("bool", kDLBool, 8, 1);
  dtype("float8_e3m4", kDLFloat8_e3m4, 8, 1);
  dtype("float8_e8m0fnu", kDLFloat8_e8m0fnu, 8, 1);
  dtype("float6_e3m2fn", kDLFloat6_e3m2fn, 6, 1);
  dtype("float4_e2m1fnx2", kDLFloat4_e2m1fn, 4, 2);
  t_context = "";
  kinds();
  /* The text is quoted where it is wrong, and nowhere else. */
  t_watch(&into, sizeof into);
  REJECTS(PARSE, 1, ANY, -1, dlrs_dtype_parse("int8", 3, &into, ERR));
  CHECK(strstr(t_error.message, "int") != NULL);
  REJECTS(NULL_ARG, 3, ANY, -1, dlrs_dtype_parse("intx", 4, NULL, ERR));
  CHECK(strstr(t_error.message, "intx") == NULL);
  return t_close();
}
