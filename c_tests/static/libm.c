/* The origin of the functions of <math.h> beside the static library. run.sh generates `math`. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "dlpack_rs.h"

extern const struct math {
  const char *name;
  void (*address)(void);
} math[];

int whose(void) {
  const struct math *one;
  int wrong = dlrs_version() == 0;
  for (one = math; one->name != NULL; ++one) {
    Dl_info found;
    void *address;
    memcpy(&address, &one->address, sizeof address);
    if (dladdr(address, &found) == 0 || strstr(found.dli_fname, "/libm") == NULL) {
      printf("%s: not libm's\n", one->name);
      ++wrong;
    }
  }
  return wrong;
}

int main(void) { return whose() != 0; }
