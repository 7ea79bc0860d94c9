/* Section P: names of dtypes and devices. */
#include <locale.h>

#include "catalogue.h"

/* One text and its result: for DLRS_OK the formatted name, else the status and value. */
typedef struct p_case {
  const char *text;
  int32_t status;
  int64_t value;
  const char *name;
} p_case;

#define GIVES(text, name) {text, DLRS_OK, 0, name}
#define FAILS(text, status, value) {text, DLRS_##status, value, NULL}

static void dtype_case(const p_case *row) {
  DLDataType dtype = t_dtype(7, 7, 7);
  char name[64];
  size_t nbytes = 99;
  if (row->status != DLRS_OK) {
    t_watch(&dtype, sizeof dtype);
    REFUSED(row->status, 1, ANY, -1, dlrs_dtype_parse(row->text, strlen(row->text), &dtype, ERR));
    EQUAL(t_error.value, row->value);
    t_unwatch();
    return;
  }
  WORKS(dlrs_dtype_parse(row->text, strlen(row->text), &dtype, ERR));
  WORKS(dlrs_dtype_format(dtype, name, sizeof name, &nbytes, ERR));
  CHECK(strcmp(name, row->name) == 0 && nbytes == strlen(name));
}

static void dtype_cases(const p_case *rows, size_t count) {
  size_t i;
  for (i = 0; i < count; ++i) dtype_case(&rows[i]);
}

#define COUNT(array) (sizeof(array) / sizeof *(array))

static void p01(void) {
  DLDataType dtype;
  REJECTS(NULL_ARG, 1, NONE, -1, dlrs_dtype_parse(NULL, 0, &dtype, ERR));
  REJECTS(NULL_ARG, 1, NONE, -1, dlrs_dtype_parse(NULL, 7, &dtype, ERR));
  REJECTS(NULL_ARG, 3, NONE, -1, dlrs_dtype_parse("float32", 7, NULL, ERR));
}

static void p02(void) {
  static const char text[] = "float32x4";
  DLDataType dtype;
  size_t n;
  for (n = 0; n <= 9; ++n) {
    char *end = (char *)t_before_guard(n);
    memcpy(end, text, n);
    CHECK((dlrs_dtype_parse(end, n, &dtype, ERR) == DLRS_OK) == (n == 7 || n == 9));
    t_guards_free();
  }
}

static void p03(void) {
  static const p_case rows[] = {FAILS("", PARSE, 0), FAILS(" ", PARSE, 0)};
  DLDataType dtype;
  dtype_cases(rows, COUNT(rows));
  REJECTS(PARSE, 1, ANY, -1, dlrs_dtype_parse("\0", 1, &dtype, ERR));
  EQUAL(t_error.value, 0);
  REJECTS(PARSE, 1, ANY, -1, dlrs_dtype_parse("float32\0x", 9, &dtype, ERR));
  EQUAL(t_error.value, 7);
  CHECK(strstr(t_error.message, "\\x00") != NULL);
}

static void p04(void) {
  static const p_case rows[] = {
      FAILS("float", PARSE, 5),    FAILS("float0", DTYPE_BITS, 0), FAILS("float-32", PARSE, 5),
      FAILS("float+32", PARSE, 5), FAILS("float032", PARSE, 6),    FAILS("FLOAT32", PARSE, 0),
      FAILS(" float32 ", PARSE, 0), GIVES("float32", "float32"),   GIVES("float32x1", "float32")};
  dtype_cases(rows, COUNT(rows));
}

static void p05(void) {
  static const p_case rows[] = {
      FAILS("int256", DTYPE_BITS, 256),
      FAILS("int99999999999999999999", DTYPE_BITS, INT64_MAX),
      FAILS("uint8x65536", DTYPE_LANES, 65536),
      FAILS("uint8x99999999999999999999", DTYPE_LANES, INT64_MAX),
      FAILS("uint8x0", DTYPE_LANES, 0),
      FAILS("x0", PARSE, 0),
      FAILS("x", PARSE, 0),
      FAILS("xx4", PARSE, 0),
      GIVES("uint8x65535", "uint8x65535")};
  dtype_cases(rows, COUNT(rows));
}

/* Every possible dtype with these lanes: parsing its name returns it. */
static void p07(void) {
  static const int lanes[] = {1, 2, 4, 65535};
  int code, bits, wrong = 0;
  size_t i, nbytes;
  char name[64];
  for (code = 0; code < 256; ++code) {
    for (bits = 0; bits < 256; ++bits) {
      for (i = 0; i < COUNT(lanes); ++i) {
        DLDataType dtype = t_dtype(code, bits, lanes[i]), back = t_dtype(0, 0, 0);
        wrong += dlrs_dtype_format(dtype, name, sizeof name, &nbytes, NULL) != DLRS_OK;
        wrong += dlrs_dtype_parse(name, nbytes, &back, NULL) != DLRS_OK;
        wrong += back.code != code || back.bits != bits || back.lanes != lanes[i];
      }
    }
  }
  EQUAL(wrong, 0);
}

static void p09(void) {
  static const p_case rows[] = {FAILS("\xFF\xFE", PARSE, 0),
                                FAILS("float\xD9\xA3\xD9\xA2", PARSE, 5), /* U+0663 U+0662 */
                                FAILS("\xE2\x80\x8F" "float32", PARSE, 0), /* U+200F */
                                FAILS("float32\xE2\x80\x8F", PARSE, 7)};
  size_t many = 1 << 20, n, shown = 0;
  char *text = (char *)malloc(many);
  DLDataType dtype;
  dtype_cases(rows, COUNT(rows));
  memset(text, '9', many);
  memcpy(text, "float", 5);
  REJECTS(DTYPE_BITS, 1, ANY, -1, dlrs_dtype_parse(text, many, &dtype, ERR));
  EQUAL(t_error.value, INT64_MAX);
  memset(text, 0xC3, many);
  REJECTS(PARSE, 1, ANY, -1, dlrs_dtype_parse(text, many, &dtype, ERR));
  for (n = 0; t_error.message[n] != '\0'; ++n) shown += strncmp(t_error.message + n, "\\xc3", 4) == 0;
  CHECK(shown > 0 && shown <= 32);
  free(text);
}

static const char *const locales[] = {"tr_TR.UTF-8", "ar_EG.UTF-8", "fa_IR.UTF-8", "C.UTF-8", "C"};

void c_load_locales(void) {
  size_t i;
  for (i = 0; i < COUNT(locales); ++i) setlocale(LC_ALL, locales[i]);
}

static void p11(void) {
  static const p_case dtype = GIVES("int16x3", "int16x3");
  static const p_case upper = FAILS("INT16", PARSE, 0);
  size_t i;
  for (i = 0; i < COUNT(locales); ++i) {
    setlocale(LC_ALL, locales[i]); /* where it is not installed, the locale is unchanged */
    dtype_case(&dtype);
    dtype_case(&upper);
  }
}

static void p12(void) {
  DLDataType dtype = t_dtype(kDLBfloat, 16, 1);
  DLDevice device = t_device(kDLCUDA, 12345);
  size_t nbytes = 0, capacity;
  WORKS(dlrs_dtype_format(dtype, NULL, 0, &nbytes, ERR));
  EQUAL(nbytes, 8);
  WORKS(dlrs_device_format(device, NULL, 0, &nbytes, ERR));
  EQUAL(nbytes, 10);
  WORKS(dlrs_dtype_format(dtype, NULL, 0, NULL, ERR));
  REJECTS(NULL_ARG, 2, NONE, -1, dlrs_dtype_format(dtype, NULL, 8, &nbytes, ERR));
  REJECTS(NULL_ARG, 2, NONE, -1, dlrs_device_format(device, NULL, 8, &nbytes, ERR));
  for (capacity = 0; capacity <= 12; ++capacity) {
    char *end = (char *)t_before_guard(capacity);
    memset(end, '#', capacity);
    nbytes = 0;
    if (capacity < 9) {
      REJECTS(BUF_SMALL, 3, NONE, -1, dlrs_dtype_format(dtype, end, capacity, &nbytes, ERR));
      EQUAL(t_error.limit, 9);
    } else {
      WORKS(dlrs_dtype_format(dtype, end, capacity, &nbytes, ERR));
    }
    EQUAL(nbytes, 8);
    if (capacity > 0) {
      CHECK(strlen(end) == (capacity < 9 ? capacity - 1 : 8));
      CHECK(strncmp(end, "bfloat16", strlen(end)) == 0);
    }
    CHECK((dlrs_device_format(device, end, capacity, &nbytes, NULL) == DLRS_OK) == (capacity > 10));
    if (capacity > 0) CHECK(strncmp(end, "cuda:12345", capacity - 1) == 0 || capacity > 10);
    t_guards_free();
  }
}

static void p13(void) {
  static const p_case rows[] = {GIVES("unknown(code=200)7x3", "unknown(code=200)7x3"),
                                GIVES("unknown(code=2)32", "float32"),
                                FAILS("unknown(code=256)8", DTYPE_CODE, 256),
                                FAILS("unknown(code=200)256", DTYPE_BITS, 256)};
  char name[64];
  dtype_cases(rows, COUNT(rows));
  WORKS(dlrs_dtype_format(t_dtype(200, 7, 3), name, sizeof name, NULL, ERR));
  CHECK(strcmp(name, "unknown(code=200)7x3") == 0);
  WORKS(dlrs_device_format(t_device(INT32_MIN, INT32_MIN), name, sizeof name, NULL, ERR));
  CHECK(strcmp(name, "unknown(type=-2147483648):-2147483648") == 0);
}

static void p15(void) {
  static const size_t huge[] = {SIZE_MAX, (size_t)PTRDIFF_MAX + 1};
  DLDataType dtype;
  char buffer[16];
  size_t i, nbytes = 0;
  for (i = 0; i < COUNT(huge); ++i) {
    REJECTS(BAD_ARG, ANY, NONE, -1, dlrs_dtype_parse("float32", huge[i], &dtype, ERR));
    REJECTS(BAD_ARG, 3, NONE, -1, dlrs_dtype_format(F32, buffer, huge[i], &nbytes, ERR));
    REJECTS(BAD_ARG, 3, NONE, -1, dlrs_device_format(CPU, buffer, huge[i], &nbytes, ERR));
  }
}

const c_row c_rows_p[] = {
    {"P01", "NULL is refused", p01},
    {"P02", "only so many bytes of a name are read", p02},
    {"P03", "empty names, blanks and NUL are refused, at their place", p03},
    {"P04", "names have one spelling", p04},
    {"P05", "numbers that are too large are named", p05},
    {"P07", "the name of every dtype reads back", p07},
    {"P09", "bytes that are no text are refused and shown as numbers", p09},
    {"P11", "the locale does not matter", p11},
    {"P12", "a buffer of any size is filled, ended and never left", p12},
    {"P13", "unknown types have a name too, and it reads back", p13},
    {"P15", "sizes beyond the address space are refused", p15},
    {NULL, NULL, NULL},
};
