/* Memory whose first or last byte is next to an inaccessible page. */
#ifndef C_TESTS_GUARDED_H_
#define C_TESTS_GUARDED_H_

#include <unistd.h>

#include "harness.h"

typedef struct guarded {
  unsigned char *base; /* between the two pages */
  size_t room;
} guarded;

static guarded guarded_new(size_t room) {
  size_t page = (size_t)sysconf(_SC_PAGESIZE);
  guarded memory;
  memory.room = (room + page - 1) / page * page;
  memory.base = (unsigned char *)t_behind_guard(memory.room);
  return memory;
}

/* nbytes that begin behind the lower page, end before the upper one, or neither. */
static unsigned char *guarded_place(const guarded *memory, size_t nbytes, unsigned how) {
  switch (how % 4) {
    case 0: return memory->base;
    case 1: return memory->base + 64 + how / 4 % 128;
    default: return memory->base + memory->room - nbytes;
  }
}

#endif
