/*
 * Instructions of one function, counted by stepping through it: for those that valgrind does not know
 * (AVX-512), on machines without counters. `steps OFFSET PROGRAM ARGUMENTS...`: where the function is
 * in the program's file, as nm tells it; the program is position-independent and has one thread there.
 * Some microseconds an instruction. Its last line of output is the count. Linux on x86-64.
 */
#define _GNU_SOURCE
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

static struct user_regs_struct registers(pid_t child) {
  struct user_regs_struct found;
  if (ptrace(PTRACE_GETREGS, child, NULL, &found) != 0) exit(1);
  return found;
}

/* Goes on, and says whether the child was stopped by a trap again. */
static int went(int how, pid_t child) {
  int status;
  return ptrace(how, child, NULL, NULL) == 0 && waitpid(child, &status, 0) == child && WIFSTOPPED(status) &&
         WSTOPSIG(status) == SIGTRAP;
}

static uint64_t loaded_at(pid_t child) {
  char name[64];
  uint64_t start = 0;
  snprintf(name, sizeof name, "/proc/%d/maps", (int)child);
  FILE *maps = fopen(name, "r"); /* the program itself comes first */
  if (maps == NULL || fscanf(maps, "%" SCNx64, &start) != 1) exit(1);
  fclose(maps);
  return start;
}

int main(int argc, char **argv) {
  if (argc < 3) return 2;
  pid_t child = fork();
  if (child == 0) {
    ptrace(PTRACE_TRACEME, 0, NULL, NULL);
    execv(argv[2], argv + 2);
    _exit(1);
  }
  if (waitpid(child, NULL, 0) != child) return 1;
  uint64_t place = loaded_at(child) + strtoull(argv[1], NULL, 16), count = 0;
  long code = ptrace(PTRACE_PEEKTEXT, child, place, NULL);
  ptrace(PTRACE_POKETEXT, child, place, (code & ~0xffL) | 0xcc); /* int3 */
  if (!went(PTRACE_CONT, child)) return 1;
  ptrace(PTRACE_POKETEXT, child, place, code);
  struct user_regs_struct at = registers(child);
  at.rip = place;
  ptrace(PTRACE_SETREGS, child, NULL, &at);
  uint64_t back = (uint64_t)ptrace(PTRACE_PEEKTEXT, child, at.rsp, NULL), frame = at.rsp;
  while (at.rip != back || at.rsp <= frame) {
    if (!went(PTRACE_SINGLESTEP, child)) return 1;
    at = registers(child);
    ++count;
  }
  ptrace(PTRACE_DETACH, child, NULL, NULL);
  waitpid(child, NULL, 0);
  printf("%" PRIu64 "\n", count);
  return 0;
}
