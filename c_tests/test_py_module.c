/* The Python module in a process without Python; tests/python/test_module.py has the rest. */
#include "harness.h"

int main(void) {
  void *module = &module;
  REFUSED(DLRS_NULL_ARG, 1, ANY, -1, dlrs_py_module(NULL, ERR));
  CHECK(dlrs_py_module(NULL, NULL) == DLRS_NULL_ARG);
  /* The first look-up that fails makes the C library keep a message. */
  CHECK(dlrs_py_module(&module, NULL) == DLRS_UNSUPPORTED && module == NULL);
  module = &module;
  t_result(module);
  REFUSED(DLRS_UNSUPPORTED, 0, ANY, -1, dlrs_py_module(&module, ERR));
  CHECK(strstr(t_error.message, "no Python in this process") != NULL);
  t_unwatch();
  return t_close();
}
