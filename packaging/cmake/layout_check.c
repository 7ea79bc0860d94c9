/*
 * Compares the table of a translation unit that saw another dlpack.h (dlpack_rs_layout.h with
 * DLRS_LAYOUT_DEFINE) with the library's, row by row, and by dlrs_abi_check. C and C++.
 */
#include <dlpack/dlpack_rs.h>
#define DLRS_LAYOUT_NAMES_ONLY
#include <dlpack/dlpack_rs_layout.h>
#include <stdio.h>
#include <string.h>

typedef struct {
  uint32_t since;
  const char *name;
} row;

#define NAME(since, member, value) {since, #member},
static const row rows[] = {DLRS_LAYOUT_ROWS(NAME)};
enum {
  COUNT = sizeof rows / sizeof rows[0],
  MAJOR = 3, /* the rows of the version */
  MINOR = 4
};

int main(void) {
  const uint32_t version = dlrs_layout_seen[MAJOR] * 100 + dlrs_layout_seen[MINOR];
  uint32_t library[COUNT], table[COUNT];
  dlrs_abi_table expected;
  dlrs_error error;
  int passed = 0, failed = 0, i;
  if (dlrs_abi_layout()->struct_size < sizeof expected || sizeof expected < sizeof library) {
    printf("differs  the library is older than its header\n0 passed, 1 failed\n");
    return 1;
  }
  memcpy(&expected, dlrs_abi_layout(), sizeof expected);
  memcpy(library, dlrs_abi_layout(), sizeof library);
  printf("DLPack %u.%u of this header, DLPack %u.%u of libdlpack_rs %s\n",
         (unsigned)dlrs_layout_seen[MAJOR], (unsigned)dlrs_layout_seen[MINOR],
         (unsigned)library[MAJOR], (unsigned)library[MINOR], dlrs_version_string());
  for (i = 0; i < COUNT; ++i) {
    const uint32_t seen = dlrs_layout_seen[i];
    const int absent = rows[i].since > version;
    const int older = (i == MAJOR || i == MINOR) && version >= dlrs_layout_minimum && version < 200;
    table[i] = seen;
    if (seen == library[i]) {
      ++passed;
    } else if (older || (absent && rows[i].since > dlrs_layout_minimum)) {
      table[i] = library[i]; /* allowed to be another: nothing to compare */
      if (absent) printf("absent   %s: new in DLPack %u.%u\n", rows[i].name,
                         (unsigned)(rows[i].since / 100), (unsigned)(rows[i].since % 100));
    } else {
      ++failed;
      printf("differs  %s: %u%s, the library has %u\n", rows[i].name, (unsigned)seen,
             absent ? " (not declared)" : "", (unsigned)library[i]);
    }
  }
  memcpy(&expected, table, sizeof table);
  expected.struct_size = (uint32_t)sizeof expected;
  error.struct_size = sizeof error;
  if (dlrs_abi_check(DLRS_HEADER_VERSION, &expected, &error) == DLRS_OK) {
    ++passed;
  } else {
    ++failed;
    printf("dlrs_abi_check: %s\n", error.message);
  }
  printf("%d passed, %d failed\n", passed, failed);
  return failed != 0;
}
