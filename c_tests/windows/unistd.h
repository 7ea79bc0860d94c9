/* sysconf, for tests on Windows; the rest is the toolchain's. */
#ifndef C_TESTS_WINDOWS_UNISTD_H_
#define C_TESTS_WINDOWS_UNISTD_H_

#include_next <unistd.h>

enum { _SC_PAGESIZE = 30, _SC_THREAD_STACK_MIN = 75, _SC_NPROCESSORS_ONLN = 84 };

static inline long sysconf(int name) {
  return name == _SC_PAGESIZE ? 4096 : name == _SC_THREAD_STACK_MIN ? 65536 : 1;
}

#endif
