/* mmap, mprotect and munmap of anonymous memory, for tests on Windows. */
#ifndef C_TESTS_WINDOWS_SYS_MMAN_H_
#define C_TESTS_WINDOWS_SYS_MMAN_H_

#include <stddef.h>
#define WIN32_LEAN_AND_MEAN
#include <windows.h>

enum { PROT_NONE = 0, PROT_READ = 1, PROT_WRITE = 2 };
enum { MAP_PRIVATE = 2, MAP_ANONYMOUS = 0x20, MAP_NORESERVE = 0x4000 };
#define MAP_FAILED ((void *)-1)

static inline DWORD mman_protection(int protection) {
  if (protection & PROT_WRITE) return PAGE_READWRITE;
  return protection & PROT_READ ? PAGE_READONLY : PAGE_NOACCESS;
}

static inline void *mmap(void *at, size_t nbytes, int protection, int flags, int file, long from) {
  void *memory;
  (void)flags, (void)file, (void)from;
  memory = VirtualAlloc(at, nbytes, MEM_RESERVE | MEM_COMMIT, mman_protection(protection));
  return memory != NULL ? memory : MAP_FAILED;
}

static inline int mprotect(void *at, size_t nbytes, int protection) {
  DWORD before;
  return VirtualProtect(at, nbytes, mman_protection(protection), &before) ? 0 : -1;
}

static inline int munmap(void *at, size_t nbytes) {
  (void)nbytes;
  return VirtualFree(at, 0, MEM_RELEASE) ? 0 : -1;
}

#endif
