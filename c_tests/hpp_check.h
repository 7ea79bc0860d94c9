// Checks of the C++ tests: CHECK(condition) counts, HPP_END prints and returns from main.
#ifndef HPP_CHECK_H_
#define HPP_CHECK_H_

#include <cstdio>

static int passed = 0, failed = 0;

static inline void check(bool ok, const char *what, const char *file, int line) {
  if (ok) {
    ++passed;
  } else {
    ++failed;
    std::printf("%s:%d: failed: %s\n", file, line, what);
  }
}
#define CHECK(...) check(static_cast<bool>(__VA_ARGS__), #__VA_ARGS__, __FILE__, __LINE__)
#define HPP_END(name) \
  return std::printf("%s: %d passed, %d failed\n", name, passed, failed), failed != 0

#endif  // HPP_CHECK_H_
