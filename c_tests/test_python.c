/* The functions for Python, in a process without Python: those that need it report that, the others
 * work. With Python: tests/python/test_abi.py. */
#include "harness.h"

/* Not a Python object, and not dereferenced. */
static void *const SOME_OBJECT = &t_deleted;

static void without_python(void) {
  t_tensor good;
  DLManagedTensorVersioned *versioned, *out;
  DLManagedTensor *legacy;
  const DLPackExchangeAPI *api;
  void *object;
  dlrs_error failure;
  dlrs_py_request request;
  memset(&failure, 0, sizeof failure);
  t_make(&good);
  versioned = &good.managed;
  legacy = &good.legacy;
  /* The C library's dlsym keeps the text of its last failure. */
  EQUAL(dlrs_py_error_set(&failure, NULL), DLRS_UNSUPPORTED);
  memset(&request, 0, sizeof request);
  request.struct_size = sizeof request;
  t_watch(&good, sizeof good);
  t_watch(&versioned, sizeof versioned);
  t_watch(&legacy, sizeof legacy);
  t_result(&out);
  t_result(&object);
  t_result(&api);
  REFUSED(DLRS_UNSUPPORTED, ANY, ANY, -1, dlrs_py_capsule_new_take(&versioned, &object, ERR));
  CHECK(strstr(t_error.message, "there is no Python in this process") != NULL);
  REFUSED(DLRS_UNSUPPORTED, ANY, ANY, -1, dlrs_py_capsule_new_legacy_take(&legacy, &object, ERR));
  REFUSED(DLRS_UNSUPPORTED, ANY, ANY, -1, dlrs_py_capsule_consume(SOME_OBJECT, 0, &out, ERR));
  REFUSED(DLRS_UNSUPPORTED, ANY, ANY, -1, dlrs_py_export(versioned, NULL, &object, ERR));
  REFUSED(DLRS_UNSUPPORTED, ANY, ANY, -1, dlrs_py_import(SOME_OBJECT, NULL, &out, ERR));
  REFUSED(DLRS_UNSUPPORTED, ANY, ANY, -1, dlrs_py_error_set(&failure, ERR));
  REFUSED(DLRS_UNSUPPORTED, ANY, ANY, -1, dlrs_exchange_api_from_type(SOME_OBJECT, &api, ERR));
  t_watch(&request, sizeof request);
  REFUSED(DLRS_UNSUPPORTED, ANY, ANY, -1, dlrs_py_request_parse(NULL, 0, NULL, &request, ERR));
  REFUSED(DLRS_UNSUPPORTED, ANY, ANY, -1,
          dlrs_py_wrap(&versioned->dl_tensor, 0, SOME_OBJECT, &out, ERR));
  REFUSED(DLRS_UNSUPPORTED, ANY, ANY, -1,
          dlrs_py_export_desc(&versioned->dl_tensor, 0, SOME_OBJECT, NULL, &object, ERR));
  REFUSED(DLRS_UNSUPPORTED, ANY, ANY, -1,
          dlrs_py_holder_new_take(&versioned, "test.private", &object, ERR));
  REFUSED(DLRS_UNSUPPORTED, ANY, ANY, -1, dlrs_py_error_set_as(&failure, NULL, ERR));
  CHECK(dlrs_py_holder_get(SOME_OBJECT, "test.private") == NULL);
  CHECK(dlrs_py_holder_get(NULL, "test.private") == NULL);
  CHECK(dlrs_py_holder_get(SOME_OBJECT, NULL) == NULL);
  t_unwatch();
}

static void nulls(void) {
  t_tensor good;
  DLManagedTensorVersioned *versioned, *none = NULL, *out;
  DLManagedTensor *legacy, *no_legacy = NULL;
  const DLPackExchangeAPI *api;
  void *object;
  t_make(&good);
  versioned = &good.managed;
  legacy = &good.legacy;
  t_result(&out);
  t_result(&object);
  t_result(&api);
  REFUSED(DLRS_NULL_ARG, 1, ANY, -1, dlrs_py_capsule_new_take(NULL, &object, ERR));
  REFUSED(DLRS_NULL_ARG, 1, ANY, -1, dlrs_py_capsule_new_take(&none, &object, ERR));
  REFUSED(DLRS_NULL_ARG, 2, ANY, -1, dlrs_py_capsule_new_take(&versioned, NULL, ERR));
  REFUSED(DLRS_NULL_ARG, 1, ANY, -1, dlrs_py_capsule_new_legacy_take(NULL, &object, ERR));
  REFUSED(DLRS_NULL_ARG, 1, ANY, -1, dlrs_py_capsule_new_legacy_take(&no_legacy, &object, ERR));
  REFUSED(DLRS_NULL_ARG, 2, ANY, -1, dlrs_py_capsule_new_legacy_take(&legacy, NULL, ERR));
  REFUSED(DLRS_NULL_ARG, 1, ANY, -1, dlrs_py_capsule_consume(NULL, 0, &out, ERR));
  REFUSED(DLRS_NULL_ARG, 3, ANY, -1, dlrs_py_capsule_consume(SOME_OBJECT, 0, NULL, ERR));
  REFUSED(DLRS_FLAGS, 2, DLRS_FIELD_FLAGS, -1, dlrs_py_capsule_consume(SOME_OBJECT, 8, &out, ERR));
  REFUSED(DLRS_NULL_ARG, 1, ANY, -1, dlrs_py_export(NULL, NULL, &object, ERR));
  REFUSED(DLRS_NULL_ARG, 3, ANY, -1, dlrs_py_export(versioned, NULL, NULL, ERR));
  REFUSED(DLRS_NULL_ARG, 1, ANY, -1, dlrs_py_import(NULL, NULL, &out, ERR));
  REFUSED(DLRS_NULL_ARG, 3, ANY, -1, dlrs_py_import(SOME_OBJECT, NULL, NULL, ERR));
  REFUSED(DLRS_NULL_ARG, 1, ANY, -1, dlrs_py_error_set(NULL, ERR));
  REFUSED(DLRS_NULL_ARG, 1, ANY, -1, dlrs_exchange_api_from_type(NULL, &api, ERR));
  REFUSED(DLRS_NULL_ARG, 2, ANY, -1, dlrs_exchange_api_from_type(SOME_OBJECT, NULL, ERR));
  t_unwatch();
}

/* Required properties of the functions for bindings and of their structs. */
static void bindings(void) {
  t_tensor good;
  DLManagedTensorVersioned *versioned, *none = NULL, *out;
  dlrs_py_request request;
  dlrs_py_error_options words;
  const DLTensor *tensor;
  void *object, *args[1];
  dlrs_error failure;
  t_make(&good);
  versioned = &good.managed;
  tensor = &versioned->dl_tensor;
  args[0] = SOME_OBJECT;
  memset(&request, 0, sizeof request);
  memset(&words, 0, sizeof words);
  memset(&failure, 0, sizeof failure);
  failure.struct_size = sizeof failure;
  t_watch(&good, sizeof good);
  t_watch(&request, sizeof request);
  t_result(&out);
  t_result(&object);
  REFUSED(DLRS_NULL_ARG, 1, ANY, -1, dlrs_py_wrap(NULL, 0, SOME_OBJECT, &out, ERR));
  REFUSED(DLRS_NULL_ARG, 3, ANY, -1, dlrs_py_wrap(tensor, 0, NULL, &out, ERR));
  REFUSED(DLRS_NULL_ARG, 4, ANY, -1, dlrs_py_wrap(tensor, 0, SOME_OBJECT, NULL, ERR));
  REFUSED(DLRS_MISALIGNED_STRUCT, 1, ANY, -1,
          dlrs_py_wrap((const DLTensor *)((const char *)tensor + 1), 0, SOME_OBJECT, &out, ERR));
  REFUSED(DLRS_NULL_ARG, 1, ANY, -1,
          dlrs_py_export_desc(NULL, 0, SOME_OBJECT, NULL, &object, ERR));
  REFUSED(DLRS_NULL_ARG, 3, ANY, -1, dlrs_py_export_desc(tensor, 0, NULL, NULL, &object, ERR));
  REFUSED(DLRS_NULL_ARG, 5, ANY, -1,
          dlrs_py_export_desc(tensor, 0, SOME_OBJECT, NULL, NULL, ERR));
  REFUSED(DLRS_STRUCT_SIZE, 4, DLRS_FIELD_STRUCT_SIZE, -1,
          dlrs_py_export_desc(tensor, 0, SOME_OBJECT, &request, &object, ERR));
  REFUSED(DLRS_NULL_ARG, 4, ANY, -1, dlrs_py_request_parse(args, 0, NULL, NULL, ERR));
  REFUSED(DLRS_NULL_ARG, 1, ANY, -1, dlrs_py_request_parse(NULL, 0, SOME_OBJECT, &request, ERR));
  REFUSED(DLRS_STRUCT_SIZE, 4, DLRS_FIELD_STRUCT_SIZE, -1,
          dlrs_py_request_parse(args, 0, NULL, &request, ERR));
  REFUSED(DLRS_NULL_ARG, 1, ANY, -1, dlrs_py_holder_new_take(NULL, "test.private", &object, ERR));
  REFUSED(DLRS_NULL_ARG, 1, ANY, -1, dlrs_py_holder_new_take(&none, "test.private", &object, ERR));
  REFUSED(DLRS_NULL_ARG, 2, ANY, -1, dlrs_py_holder_new_take(&versioned, NULL, &object, ERR));
  REFUSED(DLRS_NULL_ARG, 3, ANY, -1,
          dlrs_py_holder_new_take(&versioned, "test.private", NULL, ERR));
  REFUSED(DLRS_NULL_ARG, 1, ANY, -1, dlrs_py_error_set_as(NULL, &words, ERR));
  REFUSED(DLRS_STRUCT_SIZE, 2, DLRS_FIELD_STRUCT_SIZE, -1,
          dlrs_py_error_set_as(&failure, &words, ERR));
  CHECK(versioned == &good.managed);
  t_unwatch();
}

static void options(void) {
  dlrs_py_request request;
  dlrs_py_import_options import;
  dlrs_import_options inner;
  t_tensor good;
  DLManagedTensorVersioned *out;
  void *object;
  t_make(&good);
  memset(&request, 0, sizeof request);
  memset(&import, 0, sizeof import);
  memset(&inner, 0, sizeof inner);
  t_result(&out);
  t_result(&object);
  REFUSED(DLRS_STRUCT_SIZE, 2, DLRS_FIELD_STRUCT_SIZE, -1,
          dlrs_py_export(&good.managed, &request, &object, ERR));
  REFUSED(DLRS_STRUCT_SIZE, 2, DLRS_FIELD_STRUCT_SIZE, -1,
          dlrs_py_import(SOME_OBJECT, &import, &out, ERR));
  import.struct_size = sizeof import;
  import.flags = 4;
  REFUSED(DLRS_BAD_ARG, 2, DLRS_FIELD_OPTION, -1, dlrs_py_import(SOME_OBJECT, &import, &out, ERR));
  import.flags = 2; /* DLRS_PY_NO_EXCHANGE_API, before there were protocols */
  REFUSED(DLRS_BAD_ARG, 2, DLRS_FIELD_OPTION, -1, dlrs_py_import(SOME_OBJECT, &import, &out, ERR));
  import.flags = DLRS_PY_LEGACY_WRITABLE;
  import.protocols = 32;
  REFUSED(DLRS_BAD_ARG, 2, DLRS_FIELD_OPTION, -1, dlrs_py_import(SOME_OBJECT, &import, &out, ERR));
  import.protocols = DLRS_PY_DUNDER_DLPACK | DLRS_PY_ARRAY_INTERFACE;
  import.reserved = 1;
  REFUSED(DLRS_BAD_ARG, 2, DLRS_FIELD_OPTION, -1, dlrs_py_import(SOME_OBJECT, &import, &out, ERR));
  import.reserved = 0;
  import.import_options = &inner;
  REFUSED(DLRS_STRUCT_SIZE, 2, DLRS_FIELD_STRUCT_SIZE, -1,
          dlrs_py_import(SOME_OBJECT, &import, &out, ERR));
  inner.struct_size = sizeof inner;
  inner.copy = 7;
  REFUSED(DLRS_BAD_ARG, 2, DLRS_FIELD_OPTION, -1, dlrs_py_import(SOME_OBJECT, &import, &out, ERR));
  inner.copy = 0;
  REFUSED(DLRS_UNSUPPORTED, ANY, ANY, -1, dlrs_py_import(SOME_OBJECT, &import, &out, ERR));
  t_unwatch();
}

/* ---- Stream numbers -------------------------------------------------------------------------*/

#define REFUSE (-99)

static void stream_number(int32_t device_type, int64_t number, intptr_t handle, int sync) {
  void *out = &out;
  int32_t wait = 7;
  if (handle == REFUSE) {
    REFUSED(DLRS_STREAM, 1, ANY, -1,
            dlrs_stream_from_py(number, t_device(device_type, 0), &out, &wait, ERR));
    CHECK(number < 0 || strstr(t_error.message + t_error.hint_start, "None") != NULL);
    CHECK(out == &out && wait == 7);
    return;
  }
  WORKS(dlrs_stream_from_py(number, t_device(device_type, 0), &out, &wait, ERR));
  EQUAL((intptr_t)out, handle);
  EQUAL(wait, sync);
}

static void stream_back(int32_t device_type, intptr_t handle, int64_t number) {
  int64_t out = 77;
  if (number == REFUSE) {
    REFUSED(DLRS_STREAM, 1, ANY, -1,
            dlrs_stream_to_py((void *)handle, t_device(device_type, 0), &out, ERR));
    EQUAL(out, 77);
    return;
  }
  WORKS(dlrs_stream_to_py((void *)handle, t_device(device_type, 0), &out, ERR));
  EQUAL(out, number);
}

static void streams(void) {
  const int64_t none = DLRS_PY_STREAM_NONE;
  static const int32_t cudas[] = {kDLCUDA, kDLCUDAManaged, kDLCUDAHost};
  static const int32_t rocms[] = {kDLROCM, kDLROCMHost};
  void *out;
  int32_t sync;
  int64_t number;
  size_t i;
  for (i = 0; i < sizeof cudas / sizeof *cudas; ++i) {
    int32_t cuda = cudas[i];
    stream_number(cuda, none, 1, 1);
    stream_number(cuda, -1, 0, 0);
    stream_number(cuda, 0, REFUSE, 0);
    stream_number(cuda, 1, 1, 1);
    stream_number(cuda, 2, 2, 1);
    stream_number(cuda, 0x7f00, 0x7f00, 1);
    stream_number(cuda, -2, REFUSE, 0);
    stream_back(cuda, 0, 1);
    stream_back(cuda, 1, 1);
    stream_back(cuda, 2, 2);
    stream_back(cuda, 0x7f00, 0x7f00);
  }
  for (i = 0; i < sizeof rocms / sizeof *rocms; ++i) {
    stream_number(rocms[i], none, 0, 1);
    stream_number(rocms[i], -1, 0, 0);
    stream_number(rocms[i], 0, 0, 1);
    stream_number(rocms[i], 1, REFUSE, 0);
    stream_number(rocms[i], 2, REFUSE, 0);
    stream_number(rocms[i], 3, 3, 1);
    stream_back(rocms[i], 0, 0);
    stream_back(rocms[i], 1, REFUSE);
    stream_back(rocms[i], 2, REFUSE);
    stream_back(rocms[i], 0x7f00, 0x7f00);
  }
  stream_number(kDLOneAPI, none, 0, 1);
  stream_number(kDLOneAPI, -1, 0, 0);
  stream_number(kDLOneAPI, 0, REFUSE, 0);
  stream_number(kDLOneAPI, 0x7f00, 0x7f00, 1);
  stream_back(kDLOneAPI, 0, none);
  stream_back(kDLOneAPI, 0x7f00, 0x7f00);
  stream_number(kDLCPU, none, 0, 1);
  stream_number(kDLCPU, -1, 0, 0);
  stream_number(kDLCPU, 0, REFUSE, 0);
  stream_number(kDLCPU, 1, REFUSE, 0);
  stream_back(kDLCPU, 0, none);
  stream_back(kDLCPU, 1, REFUSE);
  REFUSED(DLRS_NULL_ARG, 3, ANY, -1, dlrs_stream_from_py(1, CPU, NULL, &sync, ERR));
  REFUSED(DLRS_NULL_ARG, 4, ANY, -1, dlrs_stream_from_py(1, CPU, &out, NULL, ERR));
  REFUSED(DLRS_NULL_ARG, 3, ANY, -1, dlrs_stream_to_py(NULL, CPU, NULL, ERR));
  WORKS(dlrs_stream_to_py(NULL, CPU, &number, ERR));
}

/* ---- Notations ------------------------------------------------------------------------------*/

/* Texts are for little-endian machines; this one is for the current machine. */
static const char *here(const char *text) {
  static char swapped[16];
  if (!dlrs_abi_layout()->big_endian) return text;
  strncpy(swapped, text, sizeof swapped - 1);
  if (*text == '<') *swapped = '>';
  if (*text == '>' || *text == '!') *swapped = '<';
  return swapped;
}

static void reads(int32_t notation, const char *text, DLDataType want) {
  DLDataType got = t_dtype(99, 99, 99);
  text = here(text);
  t_context = text;
  WORKS(dlrs_dtype_parse_as(text, strlen(text), notation, &got, ERR));
  EQUAL(got.code, want.code);
  EQUAL(got.bits, want.bits);
  EQUAL(got.lanes, want.lanes);
}

static void read_refused(int32_t notation, const char *text, int32_t status) {
  DLDataType got = t_dtype(99, 99, 99);
  text = here(text);
  t_context = text;
  REFUSED(status, 1, ANY, -1, dlrs_dtype_parse_as(text, strlen(text), notation, &got, ERR));
  EQUAL(got.code, 99);
}

/* Formatted, and parsed again. */
static void both(int32_t notation, const char *text, DLDataType dtype) {
  char buffer[16];
  size_t nbytes = 99;
  reads(notation, text, dtype);
  WORKS(dlrs_dtype_format_as(dtype, notation, buffer, sizeof buffer, &nbytes, ERR));
  CHECK(strcmp(buffer, here(text)) == 0);
  EQUAL(nbytes, strlen(text));
}

static void notations(void) {
  static const int bits[] = {8, 16, 32, 64};
  static const char *const signed_pep3118[] = {"b", "h", "i", "q"};
  static const char *const unsigned_pep3118[] = {"B", "H", "I", "Q"};
  static const char *const signed_typestr[] = {"|i1", "<i2", "<i4", "<i8"};
  static const char *const unsigned_typestr[] = {"|u1", "<u2", "<u4", "<u8"};
  static const char *const signed_arrow[] = {"c", "s", "i", "l"};
  static const char *const unsigned_arrow[] = {"C", "S", "I", "L"};
  static const char *const floats[3][3] = {
      {"e", "<f2", "e"}, {"f", "<f4", "f"}, {"d", "<f8", "g"}};
  int long_bits = (int)sizeof(long) * 8, i;
  for (i = 0; i < 4; ++i) {
    both(DLRS_NOTATION_PEP3118, signed_pep3118[i], t_dtype(kDLInt, bits[i], 1));
    both(DLRS_NOTATION_PEP3118, unsigned_pep3118[i], t_dtype(kDLUInt, bits[i], 1));
    both(DLRS_NOTATION_TYPESTR, signed_typestr[i], t_dtype(kDLInt, bits[i], 1));
    both(DLRS_NOTATION_TYPESTR, unsigned_typestr[i], t_dtype(kDLUInt, bits[i], 1));
    both(DLRS_NOTATION_ARROW, signed_arrow[i], t_dtype(kDLInt, bits[i], 1));
    both(DLRS_NOTATION_ARROW, unsigned_arrow[i], t_dtype(kDLUInt, bits[i], 1));
  }
  for (i = 0; i < 3; ++i) {
    DLDataType dtype = t_dtype(kDLFloat, bits[i + 1], 1);
    both(DLRS_NOTATION_PEP3118, floats[i][0], dtype);
    both(DLRS_NOTATION_TYPESTR, floats[i][1], dtype);
    both(DLRS_NOTATION_ARROW, floats[i][2], dtype);
  }
  both(DLRS_NOTATION_PEP3118, "Zf", t_dtype(kDLComplex, 64, 1));
  both(DLRS_NOTATION_PEP3118, "Zd", t_dtype(kDLComplex, 128, 1));
  both(DLRS_NOTATION_TYPESTR, "<c8", t_dtype(kDLComplex, 64, 1));
  both(DLRS_NOTATION_TYPESTR, "<c16", t_dtype(kDLComplex, 128, 1));
  both(DLRS_NOTATION_PEP3118, "?", t_dtype(kDLBool, 8, 1));
  both(DLRS_NOTATION_TYPESTR, "|b1", t_dtype(kDLBool, 8, 1));
  both(DLRS_NOTATION_ARROW, "b", t_dtype(kDLUInt, 1, 1));
  both(DLRS_NOTATION_PEP3118, "4f", t_dtype(kDLFloat, 32, 4));
  both(DLRS_NOTATION_PEP3118, "65535B", t_dtype(kDLUInt, 8, 65535));
  reads(DLRS_NOTATION_PEP3118, "1f", F32);
  reads(DLRS_NOTATION_PEP3118, "@f", F32);
  reads(DLRS_NOTATION_PEP3118, "=f", F32);
  reads(DLRS_NOTATION_PEP3118, "<f", F32);
  reads(DLRS_NOTATION_PEP3118, "<4f", t_dtype(kDLFloat, 32, 4));
  reads(DLRS_NOTATION_PEP3118, "c", t_dtype(kDLUInt, 8, 1));
  reads(DLRS_NOTATION_PEP3118, "l", t_dtype(kDLInt, long_bits, 1));
  reads(DLRS_NOTATION_PEP3118, "@L", t_dtype(kDLUInt, long_bits, 1));
  reads(DLRS_NOTATION_PEP3118, "<l", t_dtype(kDLInt, 32, 1));
  reads(DLRS_NOTATION_PEP3118, "=L", t_dtype(kDLUInt, 32, 1));
  reads(DLRS_NOTATION_PEP3118, "n", t_dtype(kDLInt, (int)sizeof(size_t) * 8, 1));
  reads(DLRS_NOTATION_PEP3118, "N", t_dtype(kDLUInt, (int)sizeof(size_t) * 8, 1));
  reads(DLRS_NOTATION_PEP3118, "P", t_dtype(kDLOpaqueHandle, (int)sizeof(size_t) * 8, 1));
  reads(DLRS_NOTATION_PEP3118, ">b", t_dtype(kDLInt, 8, 1)); /* a byte has no order */
  reads(DLRS_NOTATION_TYPESTR, ">u1", t_dtype(kDLUInt, 8, 1));
  reads(DLRS_NOTATION_TYPESTR, "=i2", t_dtype(kDLInt, 16, 1));
  reads(DLRS_NOTATION_PEP3118, "F", t_dtype(kDLComplex, 64, 1));
  reads(DLRS_NOTATION_PEP3118, "<D", t_dtype(kDLComplex, 128, 1));
  read_refused(DLRS_NOTATION_PEP3118, ">f", DLRS_UNSUPPORTED);
  read_refused(DLRS_NOTATION_PEP3118, "!d", DLRS_UNSUPPORTED);
  read_refused(DLRS_NOTATION_TYPESTR, ">f4", DLRS_UNSUPPORTED);
  read_refused(DLRS_NOTATION_PEP3118, "0f", DLRS_DTYPE_LANES);
  read_refused(DLRS_NOTATION_PEP3118, "65536f", DLRS_DTYPE_LANES);
  {
    static const char *const none_pep3118[] = {"", "<", "@", "g", "Zg", "Z", "O", "s", "4s", "x",
        "w", "u", "T{f:a:}", "(2,3)f", "ff", "f ", " f", "@@f", "<>f", "<n", "<P", "04f", "p"};
    static const char *const none_typestr[] = {"", "f4", "|f4", "|u2", "<V2", "<M8", "<U4",
        "|S1", "|O8", "<f", "<f3", "<f44", "<i16", "<t1", "< f4", "<4f4"};
    static const char *const none_arrow[] = {"", "n", "u", "z", "w:4", "d:19,10", "tdD", "+l", "ee",
        "<f", "4f"};
    size_t k;
    for (k = 0; k < sizeof none_pep3118 / sizeof *none_pep3118; ++k)
      read_refused(DLRS_NOTATION_PEP3118, none_pep3118[k], DLRS_PARSE);
    for (k = 0; k < sizeof none_typestr / sizeof *none_typestr; ++k)
      read_refused(DLRS_NOTATION_TYPESTR, none_typestr[k], DLRS_PARSE);
    for (k = 0; k < sizeof none_arrow / sizeof *none_arrow; ++k)
      read_refused(DLRS_NOTATION_ARROW, none_arrow[k], DLRS_PARSE);
  }
  t_context = NULL;
}

static void notation_refusals(void) {
  DLDataType dtype;
  char buffer[2];
  size_t nbytes = 0;
  REFUSED(DLRS_NULL_ARG, 1, ANY, -1, dlrs_dtype_parse_as(NULL, 0, DLRS_NOTATION_ARROW, &dtype, ERR));
  REFUSED(DLRS_NULL_ARG, 4, ANY, -1, dlrs_dtype_parse_as("f", 1, DLRS_NOTATION_ARROW, NULL, ERR));
  REFUSED(DLRS_BAD_ARG, 3, ANY, -1, dlrs_dtype_parse_as("f", 1, 0, &dtype, ERR));
  REFUSED(DLRS_BAD_ARG, 3, ANY, -1, dlrs_dtype_parse_as("f", 1, 4, &dtype, ERR));
  REFUSED(DLRS_BAD_ARG, 2, ANY, -1, dlrs_dtype_format_as(F32, 0, buffer, 2, NULL, ERR));
  REFUSED(DLRS_NULL_ARG, 3, ANY, -1,
          dlrs_dtype_format_as(F32, DLRS_NOTATION_ARROW, NULL, 2, NULL, ERR));
  REFUSED(DLRS_BUF_SMALL, 4, ANY, -1,
          dlrs_dtype_format_as(F32, DLRS_NOTATION_TYPESTR, buffer, 2, &nbytes, ERR));
  EQUAL(nbytes, 3);
  WORKS(dlrs_dtype_format_as(F32, DLRS_NOTATION_TYPESTR, NULL, 0, &nbytes, ERR));
  REFUSED(DLRS_UNSUPPORTED, 1, ANY, -1,
          dlrs_dtype_format_as(t_dtype(kDLFloat, 32, 4), DLRS_NOTATION_TYPESTR, NULL, 0, NULL, ERR));
  REFUSED(DLRS_UNSUPPORTED, 1, ANY, -1,
          dlrs_dtype_format_as(t_dtype(kDLBfloat, 16, 1), DLRS_NOTATION_ARROW, NULL, 0, NULL, ERR));
  REFUSED(DLRS_DTYPE_BITS, 1, ANY, -1,
          dlrs_dtype_format_as(t_dtype(kDLFloat, 17, 1), DLRS_NOTATION_ARROW, NULL, 0, NULL, ERR));
}

/* ---- Exchange API ---------------------------------------------------------------------------*/

static int no_export(void *object, DLManagedTensorVersioned **out) {
  (void)object;
  (void)out;
  return -1;
}
static int no_import(DLManagedTensorVersioned *tensor, void **out) {
  (void)tensor;
  (void)out;
  return -1;
}
static int no_stream(DLDeviceType device_type, int32_t device_id, void **out) {
  (void)device_type;
  (void)device_id;
  *out = NULL;
  return 0;
}

static DLPackExchangeAPI table_of(uint32_t major, DLPackExchangeAPI *older) {
  DLPackExchangeAPI table;
  memset(&table, 0, sizeof table);
  table.header.version.major = major;
  table.header.version.minor = 3;
  table.header.prev_api = (DLPackExchangeAPIHeader *)older;
  table.managed_tensor_allocator = dlrs_managed_tensor_allocator;
  table.managed_tensor_from_py_object_no_sync = no_export;
  table.managed_tensor_to_py_object_no_sync = no_import;
  table.current_work_stream = no_stream;
  return table;
}

static void exchange_tables(void) {
  enum { LONG = 17 };
  DLPackExchangeAPI one = table_of(1, NULL), two = table_of(2, &one), chain[LONG];
  const DLPackExchangeAPI *api;
  int i;
  WORKS(dlrs_exchange_api_find(&one.header, 1, &api, ERR));
  CHECK(api == &one);
  WORKS(dlrs_exchange_api_find(&two.header, 1, &api, ERR));
  CHECK(api == &one);
  WORKS(dlrs_exchange_api_find(&two.header, 2, &api, ERR));
  CHECK(api == &two);
  t_result(&api);
  REFUSED(DLRS_VERSION, 1, DLRS_FIELD_VERSION, -1, dlrs_exchange_api_find(&two.header, 3, &api, ERR));
  EQUAL(t_error.value, 2);
  two.header.prev_api = &two.header; /* a cycle */
  REFUSED(DLRS_VERSION, 1, DLRS_FIELD_VERSION, -1, dlrs_exchange_api_find(&two.header, 1, &api, ERR));
  two.header.prev_api = (DLPackExchangeAPIHeader *)((char *)&one + 1);
  REFUSED(DLRS_MISALIGNED_STRUCT, 1, ANY, -1, dlrs_exchange_api_find(&two.header, 1, &api, ERR));
  for (i = 0; i < LONG; ++i) chain[i] = table_of((uint32_t)(LONG - i), i + 1 < LONG ? &chain[i + 1] : NULL);
  REFUSED(DLRS_VERSION, 1, ANY, -1, dlrs_exchange_api_find(&chain[0].header, 1, &api, ERR));
  t_unwatch();
  WORKS(dlrs_exchange_api_find(&chain[1].header, 1, &api, ERR));
  CHECK(api == &chain[LONG - 1]);
  t_result(&api);
  for (i = 0; i < 4; ++i) {
    one = table_of(1, NULL);
    if (i == 0) one.managed_tensor_allocator = NULL;
    if (i == 1) one.managed_tensor_from_py_object_no_sync = NULL;
    if (i == 2) one.managed_tensor_to_py_object_no_sync = NULL;
    if (i == 3) one.current_work_stream = NULL;
    REFUSED(DLRS_NULL_ARG, 1, DLRS_FIELD_OPTION, -1, dlrs_exchange_api_find(&one.header, 1, &api, ERR));
  }
  REFUSED(DLRS_NULL_ARG, 1, ANY, -1, dlrs_exchange_api_find(NULL, 1, &api, ERR));
  REFUSED(DLRS_NULL_ARG, 3, ANY, -1, dlrs_exchange_api_find(&one.header, 1, NULL, ERR));
  t_unwatch();
}

typedef struct {
  int calls;
  char kind[32];
  size_t message;
} reported;

static void set_error(void *context, const char *kind, const char *message) {
  reported *r = (reported *)context;
  ++r->calls;
  strncpy(r->kind, kind, sizeof r->kind - 1);
  r->message = strlen(message);
}

/* X02: imports another tensor while its own failure is being reported. */
static void re_enters(void *context, const char *kind, const char *message) {
  int64_t shape[1] = {3};
  DLTensor like = t_describe(NULL, F32, 1, shape, NULL);
  DLManagedTensorVersioned *out = NULL;
  int calls = ((reported *)context)->calls;
  EQUAL(dlrs_managed_tensor_allocator(&like, &out, context, set_error), 0);
  EQUAL(((reported *)context)->calls, calls);
  out->deleter(out);
  set_error(context, kind, message);
}

/* X01, X03, X04 of the catalogue. */
static void allocator(void) {
  int64_t shape[2] = {2, 3}, negative[1] = {-1}, huge[2] = {INT64_MAX, 2};
  DLTensor like = t_describe(NULL, F32, 2, shape, NULL);
  DLManagedTensorVersioned *out = NULL;
  reported r;
  memset(&r, 0, sizeof r);
  EQUAL(dlrs_managed_tensor_allocator(&like, &out, &r, set_error), 0);
  EQUAL(r.calls, 0);
  CHECK(out != NULL && out->dl_tensor.data != NULL && dlrs_is_own(out));
  EQUAL(out->version.major, 1);
  EQUAL(out->dl_tensor.shape[1], 3);
  EQUAL(out->dl_tensor.strides[0], 3);
  out->deleter(out);
  like = t_describe(NULL, F32, 1, negative, NULL);
  out = (DLManagedTensorVersioned *)&like;
  EQUAL(dlrs_managed_tensor_allocator(&like, &out, &r, set_error), -1);
  CHECK(out == NULL);
  EQUAL(r.calls, 1);
  CHECK(strcmp(r.kind, "ValueError") == 0 && r.message > 0);
  EQUAL(dlrs_managed_tensor_allocator(&like, &out, NULL, NULL), -1);
  EQUAL(dlrs_managed_tensor_allocator(&like, &out, &r, re_enters), -1);
  EQUAL(r.calls, 2);
  like = t_describe(NULL, F32, 2, huge, NULL);
  EQUAL(dlrs_managed_tensor_allocator(&like, &out, &r, set_error), -1);
  EQUAL(r.calls, 3);
  like = t_describe(NULL, F32, 2, shape, NULL);
  like.device = t_device(kDLHexagon, 0); /* no backend of the library */
  EQUAL(dlrs_managed_tensor_allocator(&like, &out, &r, set_error), -1);
  CHECK(strcmp(r.kind, "BufferError") == 0);
  EQUAL(dlrs_managed_tensor_allocator(NULL, &out, &r, set_error), -1);
  like.device = CPU;
  EQUAL(dlrs_managed_tensor_allocator(&like, NULL, &r, set_error), -1);
  EQUAL(r.calls, 6);
  if (inject_works()) {
    inject_arm(1, 1);
    EQUAL(dlrs_managed_tensor_allocator(&like, &out, &r, set_error), -1);
    inject_disarm();
    CHECK(strcmp(r.kind, "MemoryError") == 0);
    EQUAL(r.calls, 7);
  }
}

int main(void) {
  t_error.struct_size = sizeof t_error;
  without_python();
  nulls();
  bindings();
  options();
  streams();
  notations();
  notation_refusals();
  allocator(); /* after one call, a program that loads the library late also has its address */
  exchange_tables();
  return t_close();
}
