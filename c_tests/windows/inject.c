/* inject.c for Windows. Allocations of the test program are redirected here by the linker's --wrap,
 * those of dlpack_rs.dll by its import table, which is rewritten at the start. All memory is from
 * _aligned_malloc, so that every free can free every block. */
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#define WIN32_LEAN_AND_MEAN
#include <windows.h>

#include "../injected.h"

int inject_works(void) { return 1; }
long inject_live(void) { return __atomic_load_n(&live, __ATOMIC_RELAXED); }
static void *aligned(size_t alignment, size_t nbytes) {
  return fails() ? NULL : counted(_aligned_malloc(nbytes ? nbytes : 1, alignment));
}

void *__wrap_malloc(size_t nbytes) { return aligned(16, nbytes); }
void *aligned_alloc(size_t alignment, size_t nbytes) { return aligned(alignment, nbytes); }

void *__wrap_calloc(size_t count, size_t nbytes) {
  void *memory = aligned(16, count * nbytes);
  return memory != NULL ? memset(memory, 0, count * nbytes) : NULL;
}

void *__wrap_realloc(void *memory, size_t nbytes) {
  if (memory == NULL) return aligned(16, nbytes);
  return fails() ? NULL : _aligned_realloc(memory, nbytes ? nbytes : 1, 16);
}

int posix_memalign(void **out, size_t alignment, size_t nbytes) {
  *out = aligned(alignment, nbytes);
  return *out != NULL ? 0 : ENOMEM;
}

void __wrap_free(void *memory) {
  if (memory != NULL) __atomic_sub_fetch(&live, 1, __ATOMIC_RELAXED);
  _aligned_free(memory);
}

static HANDLE WINAPI create_thread(LPSECURITY_ATTRIBUTES attributes, SIZE_T stack,
                                   LPTHREAD_START_ROUTINE start, LPVOID argument, DWORD flags,
                                   LPDWORD id) {
  return refuses() ? NULL : CreateThread(attributes, stack, start, argument, flags, id);
}

static const struct {
  const char *name;
  ULONG_PTR function;
} replaced[] = {
    {"malloc", (ULONG_PTR)__wrap_malloc},
    {"calloc", (ULONG_PTR)__wrap_calloc},
    {"free", (ULONG_PTR)__wrap_free},
    {"CreateThread", (ULONG_PTR)create_thread},
};

static int replace(const char *name, ULONG_PTR *slot) {
  size_t i;
  DWORD before;
  for (i = 0; i < sizeof replaced / sizeof *replaced; ++i) {
    if (strcmp(name, replaced[i].name) != 0) continue;
    VirtualProtect(slot, sizeof *slot, PAGE_READWRITE, &before);
    *slot = replaced[i].function;
    VirtualProtect(slot, sizeof *slot, before, &before);
    return 1;
  }
  return 0;
}

/* Before main, and before the library is called: it then never calls the original functions. */
__attribute__((constructor)) static void rewrite_imports(void) {
  unsigned char *base = (unsigned char *)LoadLibraryA("dlpack_rs.dll");
  const IMAGE_NT_HEADERS *headers;
  const IMAGE_IMPORT_DESCRIPTOR *from;
  size_t count = 0;
  if (base == NULL) {
    printf("dlpack_rs.dll cannot be loaded: %lu\n", GetLastError());
    exit(1);
  }
  headers = (const IMAGE_NT_HEADERS *)(base + ((const IMAGE_DOS_HEADER *)base)->e_lfanew);
  from = (const IMAGE_IMPORT_DESCRIPTOR *)(base + headers->OptionalHeader
             .DataDirectory[IMAGE_DIRECTORY_ENTRY_IMPORT].VirtualAddress);
  for (; from->Name != 0; ++from) {
    const IMAGE_THUNK_DATA *names = (const IMAGE_THUNK_DATA *)(base + from->OriginalFirstThunk);
    IMAGE_THUNK_DATA *slots = (IMAGE_THUNK_DATA *)(base + from->FirstThunk);
    for (; names->u1.AddressOfData != 0; ++names, ++slots) {
      const IMAGE_IMPORT_BY_NAME *name =
          (const IMAGE_IMPORT_BY_NAME *)(base + names->u1.AddressOfData);
      if (replace((const char *)name->Name, (ULONG_PTR *)&slots->u1.Function))
        count += strcmp((const char *)name->Name, "calloc") != 0;
    }
  }
  /* Tests that find nothing to inject would pass without a word. calloc may be missing: the
   * compiler makes it of malloc and memset, or does not. */
  if (count != sizeof replaced / sizeof *replaced - 1) {
    printf("dlpack_rs.dll imports %lu of the functions that inject.c replaces\n", (unsigned long)count);
    exit(1);
  }
}
