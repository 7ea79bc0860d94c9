/* Linked to a program by run.sh: its copies use the kernels of the level whose number the
 * environment's LEVEL is, in the ways of the make whose number TUNED is (this processor's, if it
 * is not there). Exits with 77 where this processor has not got the kernels. */
#include <stdbool.h>
#include <stdlib.h>

bool dlrs_test_level(unsigned char number, unsigned char make);

static unsigned char number(const char *name) {
  const char *text = getenv(name);
  return text ? (unsigned char)atoi(text) : 0;
}

__attribute__((constructor)) static void use_level(void) {
  if (!dlrs_test_level(number("LEVEL"), number("TUNED"))) _Exit(77);
}
