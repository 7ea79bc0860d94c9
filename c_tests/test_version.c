/* Versions: of the header and of the library. */
#include "harness.h"

int main(void) {
  char text[64];
  uint32_t version = dlrs_version();
  EQUAL(version, DLRS_HEADER_VERSION);
  snprintf(text, sizeof text, "%u.%u.%u", version / 1000000, version / 1000 % 1000, version % 1000);
  CHECK(strcmp(dlrs_version_string(), text) == 0);
  CHECK(dlrs_version_string() == dlrs_version_string());
  return t_close();
}
