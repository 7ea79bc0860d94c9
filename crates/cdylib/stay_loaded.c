/* Part of the static library: the plugin that it is linked into stays loaded, as the shared library
 * does, for the deleters that it handed out must outlive dlclose. (Windows: crates/core/src/platform.) */
#ifdef __ELF__
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <dlfcn.h>

__attribute__((constructor)) static void stay_loaded(void) {
  Dl_info here;
  /* Reopened by name and never closed. For a program this fails, which is harmless. */
  if (dladdr((void *)&stay_loaded, &here) != 0) {
    dlopen(here.dli_fname, RTLD_NOW | RTLD_NOLOAD | RTLD_NODELETE);
  }
}
#else
typedef int nothing_to_do;
#endif
