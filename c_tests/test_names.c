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

static void device(const char *name, int32_t device_type, int32_t device_id) {
  DLDevice found = t_device(0, 0);
  char text[64];
  size_t nbytes = 0;
  t_context = name;
  WORKS(dlrs_device_parse(name, strlen(name), &found, ERR));
  CHECK((int32_t)found.device_type == device_type && found.device_id == device_id);
  WORKS(dlrs_device_format(found, text, sizeof text, &nbytes, ERR));
  CHECK(strcmp(text, name) == 0 && nbytes == strlen(name));
}

int main(void) {
  DLDataType into = t_dtype(9, 9, 9);
  DLDevice place = t_device(9, 9);
  char text[8];
  size_t nbytes = 77;
  dtype("int8", kDLInt, 8, 1);
  dtype("uint1", kDLUInt, 1, 1);
  dtype("float64", kDLFloat, 64, 1);
  dtype("handle64", kDLOpaqueHandle, 64, 1);
  dtype("bfloat16", kDLBfloat, 16, 1);
  dtype("complex128", kDLComplex, 128, 1);
  dtype("bool", kDLBool, 8, 1);
  dtype("float8_e3m4", kDLFloat8_e3m4, 8, 1);
  dtype("float8_e8m0fnu", kDLFloat8_e8m0fnu, 8, 1);
  dtype("float6_e3m2fn", kDLFloat6_e3m2fn, 6, 1);
  dtype("float4_e2m1fnx2", kDLFloat4_e2m1fn, 4, 2);
  device("cpu", kDLCPU, 0);
  device("cuda:7", kDLCUDA, 7);
  device("cuda_host", kDLCUDAHost, 0);
  device("rocm:1", kDLROCM, 1);
  device("rocm_host", kDLROCMHost, 0);
  device("cuda_managed", kDLCUDAManaged, 0);
  device("metal:0", kDLMetal, 0);
  device("trn:3", kDLTrn, 3);
  t_context = "";
  t_watch(&into, sizeof into);
  t_watch(&place, sizeof place);
  REFUSED(DLRS_NULL_ARG, 1, ANY, -1, dlrs_dtype_parse(NULL, 4, &into, ERR));
  REFUSED(DLRS_NULL_ARG, 3, ANY, -1, dlrs_dtype_parse("int8", 4, NULL, ERR));
  REFUSED(DLRS_NULL_ARG, 1, ANY, -1, dlrs_device_parse(NULL, 3, &place, ERR));
  REFUSED(DLRS_NULL_ARG, 3, ANY, -1, dlrs_device_parse("cpu", 3, NULL, ERR));
  REFUSED(DLRS_PARSE, 1, ANY, -1, dlrs_dtype_parse("int8", 3, &into, ERR));
  REFUSED(DLRS_PARSE, 1, ANY, -1, dlrs_device_parse("cpux", 4, &place, ERR));
  /* The text is quoted where it is at fault, and nowhere else. */
  CHECK(strstr(t_error.message, "cpux") != NULL);
  REFUSED(DLRS_NULL_ARG, 3, ANY, -1, dlrs_device_parse("cpux", 4, NULL, ERR));
  CHECK(strstr(t_error.message, "cpux") == NULL);
  REFUSED(DLRS_DTYPE_LANES, 1, DLRS_FIELD_DTYPE_LANES, -1,
          dlrs_dtype_parse_as("0f", 2, DLRS_NOTATION_PEP3118, &into, ERR));
  CHECK(t_error.value == 0 && t_error.limit == 1);
  REFUSED(DLRS_DTYPE_LANES, 1, DLRS_FIELD_DTYPE_LANES, -1,
          dlrs_dtype_parse_as("65536f", 6, DLRS_NOTATION_PEP3118, &into, ERR));
  CHECK(t_error.value == 65536 && t_error.limit == 65535);
  t_unwatch();
  REFUSED(DLRS_NULL_ARG, 2, ANY, -1, dlrs_dtype_format(F32, NULL, 1, &nbytes, ERR));
  REFUSED(DLRS_NULL_ARG, 2, ANY, -1, dlrs_device_format(CPU, NULL, 1, &nbytes, ERR));
  REFUSED(DLRS_BUF_SMALL, 3, ANY, -1, dlrs_dtype_format(F32, text, 7, &nbytes, ERR));
  CHECK(strcmp(text, "float3") == 0 && nbytes == 7);
  WORKS(dlrs_dtype_format(F32, text, 8, NULL, ERR));
  CHECK(strcmp(text, "float32") == 0);
  REFUSED(DLRS_BUF_SMALL, 3, ANY, -1, dlrs_device_format(CPU, text, 3, &nbytes, ERR));
  CHECK(strcmp(text, "cp") == 0 && nbytes == 3);
  return t_close();
}
