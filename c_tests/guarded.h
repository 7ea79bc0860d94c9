/* Memory whose first or last byte is next to an inaccessible page. POSIX; the folder windows/ has
 * the few functions needed for Windows. */
#ifndef C_TESTS_GUARDED_H_
#define C_TESTS_GUARDED_H_

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

typedef struct guarded {
  unsigned char *base; /* between the two pages */
  size_t room;
} guarded;

static guarded guarded_new(size_t room) {
  size_t page = (size_t)sysconf(_SC_PAGESIZE);
  guarded memory;
  unsigned char *all;
  room = (room + page - 1) / page * page;
  all = (unsigned char *)mmap(NULL, room + 2 * page, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if ((void *)all == MAP_FAILED || mprotect(all, page, PROT_NONE) != 0 ||
      mprotect(all + page + room, page, PROT_NONE) != 0) {
    printf("no memory between guard pages\n");
    exit(1);
  }
  memory.base = all + page;
  memory.room = room;
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
