/* The program. Compiled with DLRS_CONFORM_LINKED, it judges the subject that it is linked with;
 * else that of a shared library: dlpack_rs-conform ./libmine.so [OPTION...]
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include "dlpack_rs_conform.h"

#ifdef DLRS_CONFORM_LINKED

int main(int argc, char **argv) {
  return dlrs_conform_main(dlrs_conform_get_subject, argc, argv);
}

#else

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

static const char *path;

static const dlrs_conform_subject *load(void) {
  void *library = dlopen(path, RTLD_NOW), *symbol = NULL;
  dlrs_conform_getter *get;
  if (library != NULL) symbol = dlsym(library, "dlrs_conform_get_subject");
  if (symbol == NULL) {
    fprintf(stderr, "%s\n", dlerror());
    return NULL;
  }
  memcpy(&get, &symbol, sizeof get);
  return get();
}

int main(int argc, char **argv) {
  if (argc < 2) {
    fprintf(stderr, "usage: %s LIBRARY [OPTION...]; --help\n", argv[0]);
    return 2;
  }
  if (argv[1][0] == '-') return dlrs_conform_main(load, argc, argv); /* --list, --help */
  path = argv[1]; /* the library comes first */
  argv[1] = argv[0];
  return dlrs_conform_main(load, argc - 1, argv + 1);
}

#endif
