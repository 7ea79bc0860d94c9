/* Linked to a program by run.sh: its copies use the kernels of the level whose number is in the
 * environment's LEVEL. Exits with 77 where this processor lacks them. */
#include <stdbool.h>
#include <stdlib.h>

bool dlrs_test_level(unsigned char number);

static unsigned char number(const char *name) {
  const char *text = getenv(name);
  return text ? (unsigned char)atoi(text) : 0;
}

__attribute__((constructor)) static void use_level(void) {
  if (!dlrs_test_level(number("LEVEL"))) _Exit(77);
}
